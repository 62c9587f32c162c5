//! Programs of a few blocks of S-TIR with random schedules on them.
//!
//! ```text
//! T0 = T.alloc_buffer((5, 7), "int32")
//! for i, j in T.grid(5, 7):
//!     with T.sblock("T0"):
//!         v_i, v_j = T.axis.remap("SS", [i, j])
//!         T0[v_i, v_j] = A[v_i, v_j] * 2 + 1                  steps: split loop 0 of block 1 by 3
//! for i, j, k in T.grid(7, 3, 5):                                    compute block 0 at loop 1 of block 1
//!     with T.sblock("C"):
//!         v_i, v_j, v_k = T.axis.remap("SSR", [i, j, k])
//!         with T.init():
//!             C[v_i, v_j] = 4
//!         C[v_i, v_j] = C[v_i, v_j] + T0[v_k, v_i] * B[v_k, v_j]
//! ```
//!
//! Steps name blocks, loops and buffers by position, modulo their number, so that every list of steps is a schedule. A step that the
//! schedule refuses is left out.

use std::fmt::Write as _;

use arbitrary::Unstructured;
use serde::{Deserialize, Serialize};
use tilewright_compiler::block_schedule::{BlockRef, BlockSchedule, BufferOf, LoopRef};
use tilewright_ir::{
    AttrValue, Block, Buffer, Diagnostic, Expr, For, ForKind, PrimFunc, Scalar, Scope, Stmt, StmtKind, ThreadTag,
};
use tilewright_script::{Symbols, read_index_map};

use crate::case::{Case, smaller, without_one};
use crate::config::Config;

/// What a block computes of the tensor before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Work {
    /// An element, times 2, plus 1.
    Scaled,
    /// An element of the transposed tensor, plus one of an input.
    Transposed,
    /// The sum of two neighbours in a row.
    Window,
    /// The element, or a constant in the first row.
    Choice,
    /// The product with a matrix.
    Product,
    /// The greatest element of each column, in a matrix of one row.
    Greatest,
}

/// Where the iterations of a loop run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Run {
    /// At once.
    Parallel,
    /// As lanes of vectors.
    Vectorized,
    /// Written out.
    Unrolled,
    /// As groups of a launch.
    Block,
    /// As threads of a group.
    Thread,
}

/// A step of a schedule: the block, and what is done to it or to its loops and buffers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// Splits a loop by factors.
    Split(usize, usize, Vec<i64>),
    /// Fuses a loop with the one inside it.
    Fuse(usize, usize),
    /// Exchanges two loops.
    Reorder(usize, usize, usize),
    /// Changes how a loop runs.
    Kind(usize, usize, Run),
    /// Copies what the block reads: the number of the read, and whether the copy is shared.
    CacheRead(usize, usize, bool),
    /// Copies what the block writes.
    CacheWrite(usize, bool),
    /// Computes the block at a loop of another block.
    ComputeAt(usize, usize, usize),
    /// Consumes at a loop of another block.
    ReverseComputeAt(usize, usize, usize),
    /// Inlines the block.
    Inline(usize),
    /// Inlines the block into the one that it reads.
    ReverseInline(usize),
    /// Changes the layout of a buffer of the block: a read, or the write; the number of the map; a pad value.
    Layout(usize, Option<usize>, u8, Option<i8>),
    /// Changes the axes of the block by a map.
    Axes(usize, u8),
    /// Separates the axes of the buffer that is written.
    Separator(usize),
    /// Puts the buffer that is written into another memory.
    Scope(usize, bool),
    /// Copies a buffer so that its axes are those of the block.
    Reindex(usize, Option<usize>),
    /// Initialises in a block of its own, in front of a loop.
    Decompose(usize, usize),
    /// Adds a hint to a loop.
    Annotate(usize, usize),
}

/// A case.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScheduledBlocks {
    /// The seed of the inputs, and of the mistake.
    pub seed: u64,
    /// The extents of the input: rows and columns.
    pub shape: [i64; 2],
    /// The columns of the matrix of products.
    pub columns: i64,
    /// Whether the number of rows is a name.
    pub symbolic: bool,
    /// What the blocks compute, in order.
    pub work: Vec<Work>,
    /// The schedule.
    pub steps: Vec<Step>,
}

/// A step that was applied, or refused.
pub type Applied = Result<(), Diagnostic>;

impl Work {
    const ALL: [Self; 6] = [Self::Scaled, Self::Transposed, Self::Window, Self::Choice, Self::Product, Self::Greatest];

    /// The extents of the result.
    fn shape(self, [rows, columns]: &[Extent; 2], wide: i64) -> [Extent; 2] {
        match self {
            Self::Scaled | Self::Choice => [rows.clone(), columns.clone()],
            Self::Transposed => [columns.clone(), rows.clone()],
            Self::Window => [rows.clone(), columns.less()],
            Self::Product => [columns.clone(), Extent::new(wide)],
            Self::Greatest => [Extent::new(1), columns.clone()],
        }
    }
}

/// An extent, as it is written and as a number.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Extent {
    text: String,
    value: i64,
}

impl Extent {
    fn new(value: i64) -> Self {
        Self { text: value.to_string(), value }
    }

    /// One less; an extent of 1, or one that is a name, stays.
    fn less(&self) -> Self {
        if self.value > 1 && self.text == self.value.to_string() { Self::new(self.value - 1) } else { self.clone() }
    }
}

impl ScheduledBlocks {
    /// The program.
    pub fn source(&self) -> String {
        let rows =
            if self.symbolic { Extent { text: "n".into(), value: self.shape[0] } } else { Extent::new(self.shape[0]) };
        let mut shape = [rows, Extent::new(self.shape[1])];
        let (mut params, mut matches, mut memory, mut blocks) =
            (vec!["a: T.handle".to_owned()], String::new(), String::new(), String::new());
        let buffer = |name: &str, handle: &str, [rows, columns]: &[Extent; 2]| {
            format!("    {name} = T.match_buffer({handle}, ({}, {}), \"int32\")\n", rows.text, columns.text)
        };
        matches.push_str(&buffer("A", "a", &shape));
        let mut from = "A".to_owned();
        for (number, work) in self.work.iter().enumerate() {
            let is_last = number + 1 == self.work.len();
            let to = if is_last { "C".to_owned() } else { format!("T{number}") };
            let after = work.shape(&shape, self.columns);
            let (input, handle) = (format!("B{number}"), format!("b{number}"));
            let given = match work {
                Work::Transposed => Some(after.clone()),
                Work::Product => Some([shape[0].clone(), Extent::new(self.columns)]),
                Work::Scaled | Work::Window | Work::Choice | Work::Greatest => None,
            };
            if let Some(given) = given {
                params.push(format!("{handle}: T.handle"));
                matches.push_str(&buffer(&input, &handle, &given));
            }
            if is_last {
                params.push("c: T.handle".to_owned());
                matches.push_str(&buffer(&to, "c", &after));
            } else {
                let _ =
                    writeln!(memory, "    {to} = T.alloc_buffer(({}, {}), \"int32\")", after[0].text, after[1].text);
            }
            blocks.push_str(&block(*work, &to, [&from, &input], &shape, &after));
            (shape, from) = (after, to);
        }
        let names = if self.symbolic { "    n = T.int32()\n" } else { "" };
        format!("@T.prim_func\ndef main({}):\n{names}{matches}{memory}{blocks}", params.join(", "))
    }

    /// Applies a step to a schedule.
    ///
    /// # Errors
    /// The schedule refuses it.
    pub fn apply(schedule: &mut BlockSchedule, step: &Step) -> Applied {
        match step {
            Step::Split(block, at, factors) => {
                let run = loop_of(schedule, *block, *at)?;
                let factors: Vec<Option<i64>> =
                    std::iter::once(None).chain(factors.iter().copied().map(Some)).collect();
                schedule.split(&run, &factors).map(drop)
            }
            Step::Fuse(block, at) => {
                let runs = loops_of(schedule, *block)?;
                let at = at % runs.len().saturating_sub(1).max(1);
                schedule.fuse(runs.get(at..at + 2).unwrap_or(&runs)).map(drop)
            }
            Step::Reorder(block, one, other) => {
                let mut pair = [loop_of(schedule, *block, *one)?, loop_of(schedule, *block, *other)?];
                let runs = loops_of(schedule, *block)?;
                let place = |run: &LoopRef| runs.iter().position(|other| other == run);
                if place(&pair[0]) < place(&pair[1]) {
                    pair.reverse();
                }
                schedule.reorder(&pair)
            }
            Step::Kind(block, at, run) => {
                let at = loop_of(schedule, *block, *at)?;
                match run {
                    Run::Parallel => schedule.parallel(&at),
                    Run::Vectorized => schedule.vectorize(&at),
                    Run::Unrolled => schedule.unroll(&at),
                    Run::Block => schedule.bind(&at, ThreadTag::Block(0)),
                    Run::Thread => schedule.bind(&at, ThreadTag::Thread(0)),
                }
            }
            Step::CacheRead(block, read, is_shared) => {
                let block = block_of(schedule, *block)?;
                schedule.cache_read(block, *read, memory(*is_shared), &[]).map(drop)
            }
            Step::CacheWrite(block, is_shared) => {
                let block = block_of(schedule, *block)?;
                schedule.cache_write(block, 0, memory(*is_shared)).map(drop)
            }
            Step::ComputeAt(block, other, at) => {
                let (block, run) = (block_of(schedule, *block)?, loop_of(schedule, *other, *at)?);
                schedule.compute_at(block, &run, at % 2 == 1)
            }
            Step::ReverseComputeAt(block, other, at) => {
                let (block, run) = (block_of(schedule, *block)?, loop_of(schedule, *other, *at)?);
                schedule.reverse_compute_at(block, &run, at % 2 == 1)
            }
            Step::Inline(block) => block_of(schedule, *block).and_then(|block| schedule.compute_inline(block)),
            Step::ReverseInline(block) => {
                block_of(schedule, *block).and_then(|block| schedule.reverse_compute_inline(block))
            }
            Step::Layout(block, read, map, pad) => {
                let block = block_of(schedule, *block)?;
                let of = read.map_or(BufferOf::Write(0), BufferOf::Read);
                let buffer = schedule.buffer_of(block, &of)?;
                let text = LAYOUTS[usize::from(*map) % LAYOUTS.len()];
                let map = read_index_map(text, Some(&buffer.shape), &mut Symbols::default()).map_err(first)?;
                schedule.transform_layout(&buffer, &map, pad.map(|value| Scalar::Int(value.into())))
            }
            Step::Axes(block, map) => {
                let block = block_of(schedule, *block)?;
                let extents: Vec<Expr> = schedule.block_extents(block)?;
                let all = if extents.len() == 3 { &AXES_OF_THREE } else { &AXES };
                let text = all[usize::from(*map) % all.len()];
                let map = read_index_map(text, Some(&extents), &mut Symbols::default()).map_err(first)?;
                schedule.transform_block_layout(block, &map)
            }
            Step::Separator(block) => {
                let block = block_of(schedule, *block)?;
                let buffer = schedule.buffer_of(block, &BufferOf::Write(0))?;
                schedule.set_axis_separator(&buffer, vec![1])
            }
            Step::Scope(block, is_shared) => {
                let block = block_of(schedule, *block)?;
                let buffer = schedule.buffer_of(block, &BufferOf::Write(0))?;
                schedule.set_scope(&buffer, memory(*is_shared))
            }
            Step::Reindex(block, read) => {
                let block = block_of(schedule, *block)?;
                let of = read.map_or(BufferOf::Write(0), BufferOf::Read);
                let buffer = schedule.buffer_of(block, &of)?;
                schedule.reindex(block, &buffer, read.is_none()).map(drop)
            }
            Step::Decompose(block, at) => {
                let (name, run) = (block_of(schedule, *block)?, loop_of(schedule, *block, *at)?);
                schedule.decompose_reduction(name, &run).map(drop)
            }
            Step::Annotate(block, at) => {
                let run = loop_of(schedule, *block, *at)?;
                schedule.annotate_loop(&run, "pragma_unroll_explicit", AttrValue::Int(1))
            }
        }
    }

    /// Whether the program after a step is what was asked for, where the values that it computes do not tell: memory, separators, extents
    /// of loops, and memory of each iteration that runs at once.
    pub fn is_done(before: &PrimFunc, schedule: &BlockSchedule, step: &Step) -> bool {
        let written = |block: &usize| {
            let mut copy = schedule.clone();
            let block = block_of(&mut copy, *block)?;
            copy.buffer_of(block, &BufferOf::Write(0))
        };
        match step {
            Step::Separator(block) => {
                written(block).is_ok_and(|buffer| buffer.axis_separators.positions() == [1].as_slice())
            }
            Step::Scope(block, is_shared) => written(block).is_ok_and(|buffer| buffer.scope == memory(*is_shared)),
            Step::Reorder(..) => {
                let (old, new) = (loops(&before.body), loops(&schedule.func().body));
                let is_kept = |run: &&For| {
                    new.iter().any(|other| (&other.var, &other.min, &other.extent) == (&run.var, &run.min, &run.extent))
                };
                old.len() == new.len() && old.iter().all(is_kept)
            }
            Step::Kind(..) => {
                let old = loops(&before.body);
                let is_changed = |run: &&&For| old.iter().any(|other| other.var == run.var && other.kind != run.kind);
                let new = loops(&schedule.func().body);
                new.iter().filter(is_changed).all(|run| has_own_memory(&schedule.func().body, run))
            }
            Step::Split(..)
            | Step::Fuse(..)
            | Step::CacheRead(..)
            | Step::CacheWrite(..)
            | Step::ComputeAt(..)
            | Step::ReverseComputeAt(..)
            | Step::Inline(_)
            | Step::ReverseInline(_)
            | Step::Layout(..)
            | Step::Axes(..)
            | Step::Reindex(..)
            | Step::Decompose(..)
            | Step::Annotate(..) => true,
        }
    }
}

/// All loops of a statement.
fn loops(stmt: &Stmt) -> Vec<&For> {
    let mut found = Vec::new();
    let mut rest = vec![stmt];
    while let Some(stmt) = rest.pop() {
        if let StmtKind::For(run) = &stmt.kind {
            found.push(&**run);
        }
        rest.extend(stmt.children());
    }
    found
}

/// Whether memory that only the iterations of a loop use is allocated in the loop, if they run at once. Threads share that of their group.
fn has_own_memory(body: &Stmt, run: &For) -> bool {
    let is_thread = matches!(run.kind, ForKind::ThreadBinding(ThreadTag::Thread(_)));
    let inside = allocated(&run.body);
    let is_shared_in_vain = |buffer: &Buffer| {
        let is_of_group = buffer.scope == Scope::Shared && is_thread;
        let uses = n_uses(&run.body, buffer);
        !is_of_group && !inside.contains(buffer) && uses > 0 && uses == n_uses(body, buffer)
    };
    !run.kind.is_concurrent() || !allocated(body).iter().any(is_shared_in_vain)
}

fn allocated(stmt: &Stmt) -> Vec<Buffer> {
    let mut found = Vec::new();
    stmt.walk(&mut |stmt| {
        if let StmtKind::Allocate { buffer, .. } = &stmt.kind {
            found.push(buffer.clone());
        }
    });
    found
}

/// The number of loads and stores of a buffer.
fn n_uses(stmt: &Stmt, buffer: &Buffer) -> usize {
    let mut count = 0;
    stmt.walk(&mut |stmt| {
        count += usize::from(matches!(&stmt.kind, StmtKind::Store { buffer: stored, .. } if stored == buffer));
        for expr in stmt.exprs() {
            expr.walk(&mut |part| {
                count += usize::from(matches!(part, Expr::Load { buffer: read, .. } if read == buffer));
            });
        }
    });
    count
}

/// Layouts of matrices. All of them are injective.
const LAYOUTS: [&str; 6] = [
    "lambda i, j: [j, i]",
    "lambda i, j: [j // 4, i, j % 4]",
    "lambda i, j: [i // 3, j, i % 3]",
    "lambda i, j: [i + 1, j]",
    "lambda i, j: [i // 2, j // 3, i % 2, j % 3]",
    "lambda i, j: [j, i // 2, 1 - i % 2]",
];

/// Other axes of a block of two axes.
const AXES: [&str; 4] = [
    "lambda i, j: [j, i]",
    "lambda i, j: [i, j // 3, j % 3]",
    "lambda i, j: [i // 2, i % 2, j]",
    "lambda i, j: [i, j]",
];

/// Other axes of a block of three axes, the last of which is reduced.
const AXES_OF_THREE: [&str; 4] = [
    "lambda i, j, k: [j, i, k]",
    "lambda i, j, k: [i, j, k // 2, k % 2]",
    "lambda i, j, k: [k, i, j]",
    "lambda i, j, k: [i // 3, j, i % 3, k]",
];

fn first(found: Vec<Diagnostic>) -> Diagnostic {
    found.into_iter().next().unwrap_or_else(|| Diagnostic::error("map", None, "no map"))
}

fn memory(is_shared: bool) -> Scope {
    if is_shared { Scope::Shared } else { Scope::Local }
}

/// The block at a position, modulo the number of blocks.
fn block_of(schedule: &mut BlockSchedule, at: usize) -> Result<BlockRef, Diagnostic> {
    let mut names = Vec::new();
    schedule.func().body.walk(&mut |stmt| names.extend(Block::of(stmt).map(|(block, _)| block.name.clone())));
    let name = names.get(at.checked_rem(names.len()).unwrap_or(0)).cloned().unwrap_or_default();
    schedule.get_block(&name)
}

fn loops_of(schedule: &mut BlockSchedule, block: usize) -> Result<Vec<LoopRef>, Diagnostic> {
    let block = block_of(schedule, block)?;
    schedule.get_loops(block)
}

/// The loop at a position, modulo the number of loops around the block.
fn loop_of(schedule: &mut BlockSchedule, block: usize, at: usize) -> Result<LoopRef, Diagnostic> {
    let runs = loops_of(schedule, block)?;
    let none = || Diagnostic::error("schedule", None, "the block has no loops");
    runs.get(at.checked_rem(runs.len()).unwrap_or(0)).cloned().ok_or_else(none)
}

/// The nest of one block.
fn block(work: Work, to: &str, [from, input]: [&str; 2], before: &[Extent; 2], after: &[Extent; 2]) -> String {
    let reduced = match work {
        Work::Product | Work::Greatest => Some(&before[0]),
        Work::Scaled | Work::Transposed | Work::Window | Work::Choice => None,
    };
    let (vars, kinds, extents) = match reduced {
        Some(rows) => ("i, j, k", "SSR", format!("{}, {}, {}", after[0].text, after[1].text, rows.text)),
        None => ("i, j", "SS", format!("{}, {}", after[0].text, after[1].text)),
    };
    let axes: Vec<String> = vars.split(", ").map(|var| format!("v_{var}")).collect();
    let here = format!("{to}[v_i, v_j]");
    // A window of one column is the element itself.
    let next = usize::from(before[1] != after[1]);
    let (init, value) = match work {
        Work::Scaled => (None, format!("{from}[v_i, v_j] * 2 + 1")),
        Work::Transposed => (None, format!("{from}[v_j, v_i] + {input}[v_i, v_j]")),
        Work::Window => (None, format!("{from}[v_i, v_j] - {from}[v_i, v_j + {next}] * 3")),
        Work::Choice => (None, format!("T.if_then_else(v_i < 1, 5, {from}[v_i, v_j])")),
        Work::Product => (Some("4"), format!("{here} + {from}[v_k, v_i] * {input}[v_k, v_j]")),
        Work::Greatest => (Some("-9"), format!("T.max({here}, {from}[v_k, v_j])")),
    };
    let mut text = format!("    for {vars} in T.grid({extents}):\n        with T.sblock(\"{to}\"):\n");
    let _ = writeln!(text, "            {} = T.axis.remap(\"{kinds}\", [{vars}])", axes.join(", "));
    if let Some(init) = init {
        let _ = writeln!(text, "            with T.init():\n                {here} = {init}");
    }
    let _ = writeln!(text, "            {here} = {value}");
    text
}

impl Step {
    fn draw(u: &mut Unstructured<'_>) -> arbitrary::Result<Self> {
        let (block, at) = (u.int_in_range(0..=7usize)?, u.int_in_range(0..=7usize)?);
        let runs = [Run::Parallel, Run::Vectorized, Run::Unrolled, Run::Block, Run::Thread];
        Ok(match u.int_in_range(0..=19u8)? {
            0 | 1 => {
                let n_factors = u.int_in_range(1..=2)?;
                let factors = (0..n_factors).map(|_| u.int_in_range(1..=5)).collect::<arbitrary::Result<_>>()?;
                Self::Split(block, at, factors)
            }
            2 => Self::Fuse(block, at),
            3 => Self::Reorder(block, at, u.int_in_range(0..=7)?),
            4 | 5 => Self::Kind(block, at, *u.choose(&runs)?),
            6 => Self::CacheRead(block, at % 2, u.arbitrary()?),
            7 => Self::CacheWrite(block, u.arbitrary()?),
            8 | 9 => Self::ComputeAt(block, u.int_in_range(0..=7)?, at),
            10 | 11 => Self::ReverseComputeAt(block, u.int_in_range(0..=7)?, at),
            12 => Self::Inline(block),
            13 => Self::ReverseInline(block),
            14 => {
                let read = if u.arbitrary()? { Some(at % 2) } else { None };
                let pad = if u.arbitrary()? { Some(u.int_in_range(-5..=5)?) } else { None };
                Self::Layout(block, read, u.int_in_range(0..=5)?, pad)
            }
            15 => Self::Axes(block, u.int_in_range(0..=3)?),
            16 => {
                if u.arbitrary()? {
                    Self::Separator(block)
                } else {
                    Self::Scope(block, u.arbitrary()?)
                }
            }
            17 => Self::Reindex(block, if u.arbitrary()? { Some(at % 2) } else { None }),
            18 => Self::Decompose(block, at),
            _ => Self::Annotate(block, at),
        })
    }

    /// The name of the primitive in the coverage table.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Split(..) => "split",
            Self::Fuse(..) => "fuse",
            Self::Reorder(..) => "reorder",
            Self::Kind(..) => "kind",
            Self::CacheRead(..) => "cache_read",
            Self::CacheWrite(..) => "cache_write",
            Self::ComputeAt(..) => "compute_at",
            Self::ReverseComputeAt(..) => "reverse_compute_at",
            Self::Inline(_) => "compute_inline",
            Self::ReverseInline(_) => "reverse_compute_inline",
            Self::Layout(..) => "transform_layout",
            Self::Axes(..) => "transform_block_layout",
            Self::Separator(_) => "set_axis_separator",
            Self::Scope(..) => "set_scope",
            Self::Reindex(..) => "reindex",
            Self::Decompose(..) => "decompose_reduction",
            Self::Annotate(..) => "annotate",
        }
    }
}

impl Case for ScheduledBlocks {
    fn draw(u: &mut Unstructured<'_>, _: &Config) -> arbitrary::Result<Self> {
        let seed = u64::from(u.arbitrary::<u16>()?);
        let shape = [u.int_in_range(1..=8)?, u.int_in_range(1..=9)?];
        let columns = u.int_in_range(1..=5)?;
        let symbolic = u.ratio(1, 4)?;
        let n_blocks = u.int_in_range(1..=3)?;
        let work = (0..n_blocks).map(|_| u.choose(&Work::ALL).copied()).collect::<arbitrary::Result<_>>()?;
        let n_steps = u.int_in_range(1..=5)?;
        let steps = (0..n_steps).map(|_| Step::draw(u)).collect::<arbitrary::Result<_>>()?;
        Ok(Self { seed, shape, columns, symbolic, work, steps })
    }

    fn simpler(&self) -> Vec<Self> {
        let mut found: Vec<Self> = Vec::new();
        found.extend(without_one(&self.steps).into_iter().map(|steps| Self { steps, ..self.clone() }));
        let fewer = without_one(&self.work).into_iter().filter(|work| !work.is_empty());
        found.extend(fewer.map(|work| Self { work, ..self.clone() }));
        if self.symbolic {
            found.push(Self { symbolic: false, ..self.clone() });
        }
        for (axis, extent) in self.shape.iter().enumerate() {
            for less in smaller(*extent) {
                let mut case = self.clone();
                case.shape[axis] = less;
                found.push(case);
            }
        }
        found.extend(smaller(self.columns).into_iter().map(|columns| Self { columns, ..self.clone() }));
        if self.seed > 0 {
            found.push(Self { seed: 0, ..self.clone() });
        }
        found
    }

    fn features(&self) -> Vec<String> {
        let mut names: Vec<String> = self.steps.iter().map(|step| format!("step:{}", step.name())).collect();
        names.extend(self.symbolic.then(|| "kind:symbolic".to_owned()));
        names.sort_unstable();
        names.dedup();
        names
    }

    fn text(&self) -> String {
        let steps: Vec<String> = self.steps.iter().map(|step| format!("# {step:?}\n")).collect();
        format!("{}{}", self.source(), steps.concat())
    }
}
