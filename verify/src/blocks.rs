//! What a block of S-TIR says of itself.
//!
//! | obligation | statement |
//! |---|---|
//! | bounds | the value of each axis lies in its domain, wherever an instance runs |
//! | region | each access of an instance is one of the elements that the block says it reads or writes |
//! | iteration | in each round, an instance runs once; all values of the reduced and scanned axes of an element run ([`rounds`]) |
//! | iteration | if the block runs at all, each instance of the domain does, or is one that nobody needs ([`domain`]) |
//! | order | in each round, the initialisation of an element comes before its other instances; scanned axes run upwards |
//!
//! A *round* is one iteration of the loops outside the first loop that counts a reduced or scanned axis, and outside the loops that
//! run nothing but the block: a block that is computed in a tile of its consumer computes the same elements again for the next tile,
//! from their initialisation on. A block that may not compute the same again has one round ([`memory`]).
//!
//! ```text
//! for i_0 in range(4):                                   a round for each i_0, since the consumer of the tile is in the loop as well
//!     for a, k in T.grid(10, 96):
//!         with T.sblock("P"):
//!             i = T.axis.spatial(34, i_0 * 8 + a)        8 * 1 + 0 and 8 * 0 + 8 are one element, in two rounds
//!             r = T.axis.reduce(96, k)
//!     for i_1 in range(8):
//!         with T.sblock("C"):
//! ```
//!
//! A block with an opaque axis says nothing about how often its instances run, and a block without axes has none to speak of.
//! The program means what its statements do, whether the claims hold or not.

mod domain;
mod memory;
mod possible;
mod rounds;
mod work;

use std::collections::{HashMap, HashSet};

use tilewright_ir::{
    AxisKind, BinaryOp, Block, BlockAxis, BlockParts, BlockRegion, Buffer, Expr, ForKind, PrimFunc, ScalarType, Stmt,
    StmtKind, THREAD_ALLREDUCE, Var, sabotage,
};

use self::memory::Blocks;
use self::work::{Beginning, Origin, beginning, is_part};
use crate::access::{Access, accesses};
use crate::judge::{Decision, Judge, Report, Side, suspected, unsupported};
use crate::obligation::Obligation;
use crate::pass::holds;
use crate::path::{Path, Step, each_statement, sites_in};
use crate::words::describe;

/// What is claimed of a block: an iteration for given values of its axes. Nothing of it is believed.
#[derive(Clone, Debug, Default)]
pub struct BlockClaim {
    /// The values of the loops that count its reduced and scanned axes, in terms of these axes.
    pub counted: Vec<(Var, Expr)>,
    /// The values of all loops around the block, in terms of its axes.
    pub anywhere: Vec<(Var, Expr)>,
    /// The values of the loops that run nothing but the block, in terms of its axes and of the loops outside of them.
    pub own: Vec<(Var, Expr)>,
    /// The values of all loops, if all axes are parts of one number that the loops make.
    pub through: Option<Through>,
}

/// A number between loops and axes: `a * 32 + b` for loops that were fused and split, of which `n` and `m` are the axes.
#[derive(Clone, Debug)]
pub struct Through {
    /// The number, in terms of the loops.
    pub number: Expr,
    /// Its value, in terms of the axes.
    pub value: Expr,
    /// It is less than this, and not negative.
    pub extent: Expr,
    /// The name that the values of the loops have for it.
    pub name: Var,
    /// The values of the loops.
    pub loops: Vec<(Var, Expr)>,
}

/// What is known of the loops of a function.
#[derive(Default)]
struct Loops {
    kinds: HashMap<Var, ForKind>,
    /// The number of actions in the body of each loop: stores, expressions that are evaluated, and what reads memory.
    actions: HashMap<Var, usize>,
}

/// A block at its place in a program.
struct Placed<'a> {
    func: &'a PrimFunc,
    loops: &'a Loops,
    block: &'a Block,
    parts: BlockParts<'a>,
    stmt: &'a Stmt,
    /// The way to the block.
    path: Path,
    /// The number of steps at the beginning of the path that are outside of the innermost block with axes around this one.
    outside: usize,
    claim: &'a BlockClaim,
    /// The conditions of the `T.init` of outer blocks that this one is a part of.
    begins: Vec<Expr>,
}

/// An access, and what the block states of it.
struct Stated {
    access: Access,
    /// The regions that may contain it.
    regions: Vec<BlockRegion>,
    text: String,
    /// Whether `T.init` may have written the element, so that it is no input.
    is_open: bool,
}

impl Judge {
    /// Decides what the blocks of a function say of themselves. There is one claim for each block, in program order.
    pub fn check_blocks(&self, func: &PrimFunc, claims: &[BlockClaim]) -> Vec<Report> {
        let (mut reports, mut placed, mut axes, mut position) = (Vec::new(), Vec::new(), HashSet::new(), 0);
        let (mut loops, mut begins, nothing) = (Loops::default(), Vec::new(), BlockClaim::default());
        loops.collect(&func.body);
        each_statement(func, &mut |stmt, path| {
            let Some((block, below)) = Block::of(stmt) else { return };
            let claim = claims.get(position).unwrap_or(&nothing);
            position += 1;
            let Some(parts) = block.parts(below) else {
                let reason = "the statement below does not bind the axes";
                let name = format!("block {}", block.name);
                reports.push(
                    Self::report(Obligation::Bounds, name, || unsupported(reason)).placed(Side::Before, stmt.span),
                );
                return;
            };
            let is_axis = |step: &Step| matches!(step, Step::Let(var, _) if axes.contains(var));
            let outside = path.steps.iter().enumerate().filter(|(_, step)| is_axis(step)).map(|(at, _)| at + 1).max();
            let outside = outside.unwrap_or(0);
            axes.extend(block.axes.iter().map(|axis| axis.var.clone()));
            let outer = begins.iter().filter(|(begin, _): &&(&Stmt, Expr)| is_part(stmt, begin));
            let around = outer.map(|(_, cond)| cond.clone()).collect();
            let first = block.is_first().filter(|_| block.has_init);
            begins.extend(first.and_then(|first| Some((beginning(parts.body, &first)?, first))));
            placed.push(Placed {
                func,
                loops: &loops,
                block,
                parts,
                stmt,
                path: path.clone(),
                outside,
                claim,
                begins: around,
            });
        });
        let blocks = Blocks::new(placed);
        reports.extend(blocks.all.iter().flat_map(|placed| placed.reports(self, &blocks)));
        reports
    }
}

impl Loops {
    /// Collects the loops of a statement; returns the number of its actions.
    fn collect(&mut self, stmt: &Stmt) -> usize {
        let is_action = match &stmt.kind {
            StmtKind::Store { .. } => true,
            StmtKind::Evaluate(expr) => expr.as_const_int().is_none(),
            _ => stmt.exprs().into_iter().any(Expr::reads_memory),
        };
        let inside: usize = stmt.children().map(|child| self.collect(child)).sum();
        if let StmtKind::For(inner) = &stmt.kind {
            self.kinds.insert(inner.var.clone(), inner.kind);
            self.actions.insert(inner.var.clone(), inside);
        }
        usize::from(is_action) + inside
    }
}

/// The number of actions of a statement.
fn actions(stmt: &Stmt) -> usize {
    Loops::default().collect(stmt)
}

impl Placed<'_> {
    fn reports(&self, judge: &Judge, blocks: &Blocks<'_>) -> Vec<Report> {
        let name = &self.block.name;
        let inner = self.inner();
        let mut reports = Vec::new();
        let mut add = |obligation, subject, decide: &dyn Fn() -> Decision| {
            reports.push(Judge::report(obligation, subject, decide).placed(Side::Before, self.stmt.span));
        };
        for (axis, value) in self.axes() {
            let is_inside = within(&Expr::from(&axis.var), &axis.min, &axis.extent);
            let path = self.to_axis(axis, value);
            add(Obligation::Bounds, format!("axis {} of block {name}", axis.var), &|| holds(judge, &path, &is_inside));
        }
        for stated in self.accesses(&inner) {
            let decide = || {
                let decided = self.inside(judge, &stated.access, &stated.regions);
                if stated.is_open { suspected(decided) } else { decided }
            };
            add(Obligation::Region, format!("{} in block {name}", stated.text), &decide);
        }
        let has = |kind: AxisKind| self.block.axes.iter().any(|axis| axis.kind == kind);
        let (is_counted, is_open) = (self.counted().next().is_some(), has(AxisKind::Opaque));
        if is_counted || !(is_open || self.block.axes.is_empty()) {
            add(Obligation::Iteration, format!("instances of block {name}"), &|| self.once(judge, is_open, blocks));
        }
        if is_counted {
            let kinds = if has(AxisKind::Scan) { "reduced and scanned" } else { "reduced" };
            add(Obligation::Iteration, format!("{kinds} axes of block {name}"), &|| suspected(self.all_run(judge)));
        }
        if !is_open && !self.block.axes.is_empty() {
            add(Obligation::Iteration, format!("domain of block {name}"), &|| self.whole(judge, blocks));
        }
        if has(AxisKind::Reduce) && self.block.has_init {
            add(Obligation::Order, format!("initialisation of block {name}"), &|| self.init_first(judge, blocks));
        }
        if has(AxisKind::Scan) {
            add(Obligation::Order, format!("scanned axes of block {name}"), &|| self.upwards(judge));
        }
        reports
    }

    /// The axes and their values.
    fn axes(&self) -> impl Iterator<Item = (&BlockAxis, &Expr)> {
        self.block.axes.iter().zip(self.parts.bindings.iter().copied())
    }

    /// The way to the instances that run.
    fn running(&self) -> Path {
        let mut path = self.path.clone();
        path.steps.extend(self.parts.predicate.map(|cond| Step::Guard(cond.clone(), true)));
        path
    }

    /// The way to the statement of an instance.
    fn inner(&self) -> Path {
        let mut path = self.running();
        let values = self.parts.bindings.iter().map(|&value| value.clone());
        path.steps.extend(self.block.axes.iter().zip(values).map(|(axis, value)| Step::Let(axis.var.clone(), value)));
        path
    }

    /// The way to the value of an axis: those of other axes are left out unless the value needs them.
    fn to_axis(&self, axis: &BlockAxis, value: &Expr) -> Path {
        let is_needed = |var: &Var| self.block.axes.iter().any(|other| other.var == *var);
        if value.vars().iter().chain(&axis.min.vars()).chain(&axis.extent.vars()).any(is_needed) {
            return self.inner();
        }
        let mut path = self.running();
        path.steps.push(Step::Let(axis.var.clone(), value.clone()));
        path
    }

    /// The variables that some values depend on, also through names.
    fn behind<'e>(&self, values: impl IntoIterator<Item = &'e Expr>) -> HashSet<Var> {
        let mut found: HashSet<Var> = values.into_iter().flat_map(Expr::vars).collect();
        let mut steps: Vec<&Step> = self.path.steps.iter().collect();
        while let Some(step) = steps.pop() {
            if let Step::Let(var, value) = step
                && found.contains(var)
            {
                found.extend(value.vars());
            }
        }
        found
    }

    /// Whether a value, or a name that it depends on, is read from memory that the function writes: it may differ in each iteration.
    fn changes(&self, value: &Expr) -> bool {
        let behind = self.behind([value]);
        let is_behind = |step: &&Step| matches!(step, Step::Let(var, _) if behind.contains(var));
        let names = self.path.steps.iter().filter(is_behind).flat_map(Step::exprs);
        let is_written = |expr: &Expr| {
            let mut found = false;
            expr.walk(&mut |part| {
                found |= matches!(part, Expr::Load { buffer, .. } if !self.path.constant.contains(buffer));
            });
            found
        };
        is_written(value) || names.into_iter().any(is_written)
    }

    /// A condition holds at the end of a path, on which every variable of it has a value.
    fn holds(&self, judge: &Judge, path: &Path, cond: &Expr) -> Decision {
        let mut known: HashSet<Var> = path.symbols.iter().chain(&path.scalars).cloned().collect();
        let mut asked = Vec::new();
        for step in &path.steps {
            asked.extend(step.exprs().flat_map(Expr::vars).filter(|var| !known.contains(var)));
            if let Step::Loop(var, ..) | Step::Let(var, _) = step {
                known.insert(var.clone());
            }
        }
        asked.extend(cond.vars().into_iter().filter(|var| !known.contains(var)));
        match asked.first() {
            Some(var) => unsupported(format!("`{var}` has a value only inside of block {}", self.block.name)),
            None => holds(judge, path, cond),
        }
    }

    /// The axes whose values come one after the other in a round: reduced and scanned ones.
    fn counted(&self) -> impl Iterator<Item = (&BlockAxis, &Expr)> {
        self.axes().filter(|(axis, _)| matches!(axis.kind, AxisKind::Reduce | AxisKind::Scan))
    }

    /// Every access of memory that the block does not declare itself.
    fn accesses(&self, inner: &Path) -> Vec<Stated> {
        let own = declared(self.parts.body);
        let begin = Beginning::of(self.parts.body, self.block);
        let is_combined = has_allreduce(self.parts.body);
        let (reads, writes) = (self.block.reads.as_deref(), self.block.writes.as_deref());
        let mut found = Vec::new();
        for site in sites_in(self.parts.body, inner) {
            let all = accesses(&site);
            let last = all.len();
            for (position, access) in all.into_iter().enumerate() {
                let is_write = matches!(site.stmt.kind, StmtKind::Store { .. }) && position + 1 == last;
                let origin =
                    if is_write { Origin::Outside } else { begin.origin(site.stmt, &access, inner.steps.len()) };
                let is_begun = !is_write && (is_combined || matches!(origin, Origin::Begun));
                let updated = writes.filter(|_| is_begun).unwrap_or_default();
                let begun = if let Origin::Elements(begun) = &origin { begun.as_slice() } else { &[] };
                let Some(stated) = (if is_write { writes } else { reads }) else { continue };
                if !is_write && sabotage::on("region-ignores-reads") {
                    continue;
                }
                if own.iter().any(|buffer| buffer.aliases(&access.buffer)) {
                    continue;
                }
                let verb = if is_write { "written" } else { "read" };
                let text = if access.text == describe(site.stmt) {
                    format!("{} {verb}", Expr::load(&access.buffer, access.indices.clone()))
                } else {
                    format!("{} {verb}", access.text)
                };
                let regions = stated.iter().chain(updated).chain(begun).cloned().collect();
                found.push(Stated { access, regions, text, is_open: matches!(origin, Origin::Open) });
            }
        }
        found
    }

    /// An access lies in one of the regions.
    fn inside(&self, judge: &Judge, access: &Access, regions: &[BlockRegion]) -> Decision {
        let of_memory = || regions.iter().filter(|region| region.buffer.aliases(&access.buffer));
        if of_memory().any(|region| region.buffer != access.buffer) {
            return unsupported(format!("`{}` is seen through another view than the block states", access.buffer));
        }
        // A region has its values at the beginning of an instance.
        if of_memory().flat_map(|region| &region.ranges).any(|(min, extent)| self.changes(min) || self.changes(extent))
        {
            return unsupported("the region is read from memory that changes");
        }
        let contains = |region: &BlockRegion| {
            let ranges = access.indices.iter().zip(&region.ranges);
            ranges
                .map(|(index, (min, extent))| within(index, min, extent))
                .reduce(Expr::and)
                .unwrap_or_else(|| truth(true))
        };
        let cond = of_memory().map(contains).reduce(either).unwrap_or_else(|| truth(false));
        holds(judge, &access.path, &cond)
    }
}

/// Whether a statement combines the values of threads: what stands for the call of TVM reads the element that it computes.
fn has_allreduce(stmt: &Stmt) -> bool {
    stmt.has_attribute(THREAD_ALLREDUCE)
}

/// The buffers that a statement declares.
fn declared(stmt: &Stmt) -> Vec<Buffer> {
    let mut found = Vec::new();
    stmt.walk(&mut |part| {
        if let StmtKind::Allocate { buffer, .. } = &part.kind {
            found.push(buffer.clone());
        }
    });
    found
}

/// A value is at least `min` and less than `min + extent`.
fn within(value: &Expr, min: &Expr, extent: &Expr) -> Expr {
    let above = Expr::binary(BinaryOp::Le, min.clone(), value.clone());
    above.and(value.clone().lt(min.clone() + extent.clone()))
}

fn same(a: &Expr, b: &Expr) -> Expr {
    Expr::binary(BinaryOp::Eq, a.clone(), b.clone())
}

fn either(a: Expr, b: Expr) -> Expr {
    Expr::binary(BinaryOp::Or, a, b)
}

fn truth(value: bool) -> Expr {
    Expr::Int { value: value.into(), ty: ScalarType::Bool }
}
