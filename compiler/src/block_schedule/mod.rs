//! Schedules on blocks: TVM's `tir.Schedule`, as a builder whose steps carry evidence.
//!
//! A [`BlockSchedule`] holds a program with blocks. Each primitive rewrites it at once into another program with blocks, which the next
//! primitive can name, and records a [`Step`]: the program after it and what is claimed of the change. Nothing of that is believed: the
//! pipeline has each step judged by itself, together with what the blocks of the new program say of themselves.
//!
//! ```
//! use tilewright_compiler::block_schedule::BlockSchedule;
//! let text = r#"
//! @T.prim_func
//! def main(A: T.Buffer((37, 29), "float32"), B: T.Buffer((29, 23), "float32"), C: T.Buffer((37, 23), "float32")):
//!     for i, j, k in T.grid(37, 23, 29):
//!         with T.sblock("C"):
//!             v_i, v_j, v_k = T.axis.remap("SSR", [i, j, k])
//!             with T.init():
//!                 C[v_i, v_j] = T.float32(0)
//!             C[v_i, v_j] = C[v_i, v_j] + A[v_i, v_k] * B[v_k, v_j]
//! "#;
//! let func = tilewright_script::read_module(text)?.funcs.remove(0);
//! let mut sch = BlockSchedule::new(&func);
//! let block = sch.get_block("C").map_err(|fault| vec![fault])?;
//! let loops = sch.get_loops(block).map_err(|fault| vec![fault])?;
//! let parts = sch.split(&loops[0], &[None, Some(8)]).map_err(|fault| vec![fault])?;
//! sch.reorder(&[parts[0].clone(), loops[1].clone(), parts[1].clone()]).map_err(|fault| vec![fault])?;
//! let printed = tilewright_script::print_func(sch.func());
//! let body: Vec<&str> = printed.lines().skip(2).take(5).map(str::trim).collect();
//! assert_eq!(body, [
//!     "for i_0, j, i_1, k in T.grid(5, 23, 8, 29):",
//!     r#"with T.sblock("C"):"#,
//!     "v_i = T.axis.spatial(37, i_0 * 8 + i_1)",
//!     "v_j = T.axis.spatial(23, j)",
//!     "v_k = T.axis.reduce(29, k)",
//! ]);
//! assert_eq!(sch.steps().iter().map(|step| step.name).collect::<Vec<_>>(), ["split", "reorder"]);
//! # Ok::<(), Vec<tilewright_ir::Diagnostic>>(())
//! ```
//!
//! | module | primitives |
//! |---|---|
//! | `loops` | `split`, `fuse`, `reorder`, `bind`, `parallel`, `vectorize`, `unroll`, `annotate`, `unannotate` |
//! | `cache` | `cache_read`, `cache_write` |
//! | `compute` | `compute_at`, `reverse_compute_at` |
//! | `inline` | `compute_inline`, `reverse_compute_inline` |
//! | `layout` | `transform_layout`, `set_axis_separator`, `set_scope` |
//! | `domain` | `transform_block_layout`, `reindex` |
//! | `reduction` | `decompose_reduction` |
//! | `rfactor` | `rfactor` |
//! | `pad` | `pad_einsum` |
//! | `combiner` | what a block of a reduction combines |
//! | `tree`, `regions` | finds blocks and loops and replaces them; what a block reads and writes |

mod by_threads;
mod cache;
mod combiner;
mod compute;
mod domain;
mod inline;
mod layout;
mod left_out;
mod loops;
mod pad;
mod reduction;
mod regions;
mod rfactor;
mod tree;

pub(crate) use by_threads::reduced_in_order;
pub(crate) use layout::with_buffers;

pub use layout::BufferOf;

use tilewright_ir::{Block, Diagnostic, Evidence, PrimFunc, Span, Stmt, StmtKind, Var, validate};

use crate::passes::schedule::claims::Claim;
use crate::passes::schedule::same_iterations;
use tree::{Found, block_named};

/// The primitives that change loops, each as a [`Step`] of that name.
pub const LOOP_PRIMITIVES: [&str; 9] =
    ["split", "fuse", "reorder", "bind", "parallel", "vectorize", "unroll", "annotate", "unannotate"];

/// The primitives that change blocks and buffers, each as a [`Step`] of that name.
pub const BLOCK_PRIMITIVES: [&str; 14] = [
    "cache_read",
    "cache_write",
    "compute_at",
    "reverse_compute_at",
    "compute_inline",
    "reverse_compute_inline",
    "transform_layout",
    "transform_block_layout",
    "reindex",
    "set_axis_separator",
    "set_scope",
    "decompose_reduction",
    "rfactor",
    "pad_einsum",
];

/// A block of a schedule. It stays the same block whatever name and place a step gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockRef(usize);

/// A loop of a schedule. It is gone when a step replaces it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoopRef(Var);

impl LoopRef {
    /// Returns the name of the loop variable.
    pub fn name(&self) -> &str {
        self.0.name()
    }
}

/// A primitive that was applied.
#[derive(Clone, Debug)]
pub struct Step {
    /// The name of the primitive.
    pub name: &'static str,
    /// Where the source text asks for it.
    pub span: Option<Span>,
    /// The program after it.
    pub func: PrimFunc,
    /// What is claimed of the change.
    pub evidence: Evidence,
}

/// A program with blocks, and the primitives that were applied to it.
#[derive(Clone, Debug)]
pub struct BlockSchedule {
    first: PrimFunc,
    steps: Vec<Step>,
    /// The names of the blocks that were asked for; [`BlockRef`] counts them.
    names: Vec<String>,
    place: Option<Span>,
}

impl BlockSchedule {
    /// Starts a schedule of a function.
    pub fn new(func: &PrimFunc) -> Self {
        Self { first: func.clone(), steps: Vec::new(), names: Vec::new(), place: None }
    }

    /// Sets the place in the source text of the steps that follow.
    pub fn set_place(&mut self, place: Option<Span>) {
        self.place = place;
    }

    /// Returns the program before all steps.
    pub fn first(&self) -> &PrimFunc {
        &self.first
    }

    /// Returns the program after the last step.
    pub fn func(&self) -> &PrimFunc {
        self.steps.last().map_or(&self.first, |step| &step.func)
    }

    /// Returns the steps, in order.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Returns the block of that name. `root` is the function as a whole, as TVM calls the block around all others, of which only
    /// [`get_loops`](Self::get_loops) and [`get_child_blocks`](Self::get_child_blocks) can be asked.
    ///
    /// # Errors
    /// `schedule`: there is none, or there are several.
    pub fn get_block(&mut self, name: &str) -> Result<BlockRef, Diagnostic> {
        if !self.is_root(name) {
            block_named(self.func(), name)?;
        }
        Ok(self.block_ref(name))
    }

    /// Returns the loops around a block, outermost first, as far as the block around it.
    ///
    /// # Errors
    /// `schedule`: the block is gone.
    pub fn get_loops(&self, block: BlockRef) -> Result<Vec<LoopRef>, Diagnostic> {
        if self.is_root(self.block_name(block)?) {
            return Ok(Vec::new());
        }
        Ok(self.block(block)?.loops.iter().map(|run| LoopRef(run.var.clone())).collect())
    }

    /// Returns the outermost blocks inside of a block, in program order.
    ///
    /// # Errors
    /// `schedule`: the block is gone.
    pub fn get_child_blocks(&mut self, block: BlockRef) -> Result<Vec<BlockRef>, Diagnostic> {
        let mut names = Vec::new();
        if self.is_root(self.block_name(block)?) {
            children(&self.func().body, &mut names);
        } else {
            children(self.block(block)?.parts.body, &mut names);
        }
        names.iter().map(|name| self.get_block(name)).collect()
    }

    /// Returns the outermost blocks inside of a loop, in program order.
    ///
    /// # Errors
    /// `schedule`: the loop is gone.
    pub fn get_child_blocks_of_loop(&mut self, run: &LoopRef) -> Result<Vec<BlockRef>, Diagnostic> {
        let mut names = Vec::new();
        children(&tree::loop_over(self.func(), &run.0)?.run.body, &mut names);
        names.iter().map(|name| self.get_block(name)).collect()
    }

    /// Returns the name that a block has now.
    ///
    /// # Errors
    /// `schedule`: the block belongs to another schedule.
    pub fn block_name(&self, block: BlockRef) -> Result<&str, Diagnostic> {
        let name = self.names.get(block.0).map(String::as_str);
        name.ok_or_else(|| fault("the block belongs to another schedule", "ask this one: `sch.get_block(\"C\")`"))
    }

    /// Whether a name stands for the function as a whole: it has blocks, and none of them is called so.
    fn is_root(&self, name: &str) -> bool {
        let names = tree::block_names(&self.func().body);
        name == "root" && !names.is_empty() && !names.iter().any(|known| known == name)
    }

    /// The block at its place.
    fn block(&self, block: BlockRef) -> Result<Found<'_>, Diagnostic> {
        block_named(self.func(), self.block_name(block)?)
    }

    /// The reference to the block that has a name now.
    fn block_ref(&mut self, name: &str) -> BlockRef {
        if let Some(known) = self.names.iter().position(|known| known == name) {
            return BlockRef(known);
        }
        self.names.push(name.to_owned());
        BlockRef(self.names.len() - 1)
    }

    /// A name that no block has yet.
    fn fresh_block_name(&self, name: &str) -> String {
        let taken = tree::block_names(&self.func().body);
        let numbered = (1..=taken.len()).map(|count| format!("{name}_{count}"));
        let free = std::iter::once(name.to_owned()).chain(numbered).find(|name| !taken.contains(name));
        free.unwrap_or_else(|| name.to_owned())
    }

    /// Records a step that changes the body.
    fn step(&mut self, name: &'static str, body: Stmt, claim: &Claim) -> Result<(), Diagnostic> {
        let after = PrimFunc { body, ..self.func().clone() };
        let evidence = Evidence { pass: name.to_owned(), ..Evidence::default() };
        let comparison = claim.comparison(self.func(), &after, &evidence);
        self.record(name, after, Evidence { comparison, ..evidence })
    }

    /// Records a step after which each store runs in the same iterations of the same loops.
    fn same_step(&mut self, name: &'static str, body: Stmt) -> Result<(), Diagnostic> {
        let after = PrimFunc { body, ..self.func().clone() };
        let evidence = Evidence { pass: name.to_owned(), ..Evidence::default() };
        let comparison = same_iterations(self.func(), &after, &evidence);
        self.record(name, after, Evidence { comparison, ..evidence })
    }

    /// Records a step.
    ///
    /// # Errors
    /// `schedule`: what uses a buffer is outside of its memory now, which an earlier step has moved into a loop.
    fn record(&mut self, name: &'static str, func: PrimFunc, evidence: Evidence) -> Result<(), Diagnostic> {
        if let Some(lost) = validate(&func).err().into_iter().flatten().find(|fault| fault.code == "no-memory") {
            let message = format!("after `{name}`, {}", lost.message);
            let help = "an iteration of a loop that runs in parallel or in a thread has memory of its own: move what uses it before the loop is \
                        `parallel` or `bind`, or stay inside of that loop";
            return Err(fault(message, help));
        }
        self.steps.push(Step { name, span: self.place, func, evidence });
        Ok(())
    }
}

/// The names of the outermost blocks of a statement.
fn children(stmt: &Stmt, names: &mut Vec<String>) {
    if let Some((block, _)) = Block::of(stmt) {
        names.push(block.name.clone());
        return;
    }
    if !matches!(stmt.kind, StmtKind::Store { .. }) {
        stmt.children().for_each(|child| children(child, names));
    }
}

/// An error about a primitive.
fn fault(message: impl Into<String>, help: impl Into<String>) -> Diagnostic {
    Diagnostic::error("schedule", None, message).with_help(help)
}
