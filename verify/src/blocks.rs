//! What a block of S-TIR says of itself.
//!
//! | obligation | statement |
//! |---|---|
//! | bounds | the value of each axis lies in its domain, wherever an instance runs |
//! | region | each access of an instance is one of the elements that the block says it reads or writes |
//! | iteration | in each round of a reduction, each instance runs once, and all of an element run |
//! | order | in each round, the initialisation of an element comes before its other instances |
//!
//! A *round* is one iteration of the loops outside the first loop that counts a reduced axis: a block that is computed in a tile of its
//! consumer computes the same elements again for the next tile, from their initialisation on.
//!
//! ```text
//! for i_0, a, k in T.grid(4, 10, 96):                    a round for each (i_0, a)
//!     with T.sblock("P"):
//!         i = T.axis.spatial(34, i_0 * 8 + a)            8 * 1 + 0 and 8 * 0 + 8 are one element, in two rounds
//!         r = T.axis.reduce(96, k)
//! ```
//!
//! The program means what its statements do, whether the claims hold or not.

use tilewright_ir::visit::Substitution;
use tilewright_ir::{
    AxisKind, BinaryOp, Block, BlockAxis, BlockParts, BlockRegion, Buffer, Expr, PrimFunc, ScalarType, Stmt, StmtKind,
    THREAD_ALLREDUCE, Var, sabotage,
};

use crate::access::{Access, accesses};
use crate::judge::{Decision, Judge, Report, Side, all_of, suspected, unsupported};
use crate::lanes::{one_to_one, renamed};
use crate::obligation::Obligation;
use crate::pass::holds;
use crate::path::{Path, Step, each_statement, sites_in};
use crate::words::describe;

/// A block at its place in a program.
struct Placed<'a> {
    block: &'a Block,
    parts: BlockParts<'a>,
    stmt: &'a Stmt,
    /// The way to the block.
    path: Path,
    /// The number of steps at the beginning of the path that are outside of the innermost block with axes around this one.
    outside: usize,
}

impl Judge {
    /// Decides what the blocks of a function say of themselves. `inverses` claims for each block, in program order, the values of the
    /// loops that count its reduced axes, in terms of these axes.
    pub fn check_blocks(&self, func: &PrimFunc, inverses: &[Vec<(Var, Expr)>]) -> Vec<Report> {
        let (mut reports, mut axes, mut position) = (Vec::new(), Vec::new(), 0);
        each_statement(func, &mut |stmt, path| {
            let Some((block, below)) = Block::of(stmt) else { return };
            let inverse = inverses.get(position).map_or(&[][..], Vec::as_slice);
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
            let placed = Placed { block, parts, stmt, path: path.clone(), outside };
            reports.extend(placed.reports(self, inverse));
        });
        reports
    }
}

impl Placed<'_> {
    fn reports(&self, judge: &Judge, inverse: &[(Var, Expr)]) -> Vec<Report> {
        let name = &self.block.name;
        let inner = self.inner();
        let mut reports = Vec::new();
        let mut add = |obligation, subject, decide: &dyn Fn() -> Decision| {
            reports.push(Judge::report(obligation, subject, decide).placed(Side::Before, self.stmt.span));
        };
        for axis in &self.block.axes {
            let is_inside = within(&Expr::from(&axis.var), &axis.min, &axis.extent);
            add(Obligation::Bounds, format!("axis {} of block {name}", axis.var), &|| holds(judge, &inner, &is_inside));
        }
        for (access, regions, text) in self.accesses(&inner) {
            add(Obligation::Region, format!("{text} in block {name}"), &|| inside(judge, &access, &regions));
        }
        if self.reduced().next().is_some() {
            let subject = || format!("instances of block {name}");
            add(Obligation::Iteration, subject(), &|| self.once(judge));
            add(Obligation::Iteration, format!("reduced axes of block {name}"), &|| {
                suspected(self.all_run(judge, inverse))
            });
            if self.block.has_init {
                add(Obligation::Order, format!("initialisation of block {name}"), &|| self.init_first(judge));
            }
        }
        reports
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

    fn reduced(&self) -> impl Iterator<Item = (&BlockAxis, &Expr)> {
        let axes = self.block.axes.iter().zip(self.parts.bindings.iter().copied());
        axes.filter(|(axis, _)| axis.kind == AxisKind::Reduce)
    }

    /// Every access of memory that the block does not declare itself, with the regions that may contain it.
    fn accesses(&self, inner: &Path) -> Vec<(Access, Vec<&BlockRegion>, String)> {
        let own = declared(self.parts.body);
        let begun = started(self.parts.body);
        let combines = self.block.has_init || has_allreduce(self.parts.body);
        let (reads, writes) = (self.block.reads.as_deref(), self.block.writes.as_deref());
        let mut found = Vec::new();
        for site in sites_in(self.parts.body, inner) {
            let all = accesses(&site);
            let last = all.len();
            for (position, access) in all.into_iter().enumerate() {
                let is_write = matches!(site.stmt.kind, StmtKind::Store { .. }) && position + 1 == last;
                // What a reduction has computed so far is no input of it.
                let is_begun = combines || begun.contains(&(access.buffer.clone(), access.indices.clone()));
                let updated = writes.filter(|_| !is_write && is_begun).unwrap_or_default();
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
                found.push((access, stated.iter().chain(updated).collect(), text));
            }
        }
        found
    }

    /// The number of steps that are the same in all iterations of a round: those before the first loop that counts a reduced axis.
    fn round(&self) -> usize {
        let counts = |var: &Var| self.reduced().any(|(_, value)| value.vars().contains(var));
        let is_first = |step: &Step| matches!(step, Step::Loop(var, ..) if counts(var));
        let steps = self.path.steps.iter().enumerate().skip(self.outside);
        let n_steps = self.path.steps.iter().count();
        steps.into_iter().find(|(_, step)| is_first(step)).map_or(n_steps, |(at, _)| at)
    }

    /// The steps of a round: those that all its iterations share, and the others; or why there are no rounds to speak of.
    fn split(&self) -> Result<(Path, Path), String> {
        let (running, round) = (self.running(), self.round());
        let (mut shared, mut own) = (Vec::new(), Vec::new());
        for (at, step) in running.steps.iter().enumerate() {
            if matches!(step, Step::Let(..)) && at >= round {
                return Err(format!("a binding stands between the loops of block {}", self.block.name));
            }
            if at < round { shared.push(step.clone()) } else { own.push(step.clone()) }
        }
        let path = |steps: Vec<Step>| Path { steps: steps.into_iter().collect(), ..running.clone() };
        Ok((path(shared), path(own)))
    }

    /// Two iterations of a round: the way of the first, then that of the second with variables of its own.
    fn twice(&self) -> Result<(Path, Path, Substitution), String> {
        let (shared, own) = self.split()?;
        let (second, renames) = renamed(&own);
        let mut both = shared;
        both.steps.extend(own.steps.iter().cloned());
        both.steps.extend(second.steps.iter().cloned());
        Ok((both, own, renames))
    }

    /// In a round, an instance determines its iteration.
    fn once(&self, judge: &Judge) -> Decision {
        let (mut both, own, renames) = match self.twice() {
            Ok(found) => found,
            Err(reason) => return unsupported(reason),
        };
        let by_map = self.by_map(judge, &own);
        if by_map.0.is_proved() {
            return by_map;
        }
        for value in &self.parts.bindings {
            both.steps.push(Step::Guard(same(value, &renames.apply(value)), true));
        }
        let loops = own.loops();
        let is_same = |var: &Var| same(&Expr::from(var), &renames.apply(&Expr::from(var)));
        all_of(loops.iter().map(|var| holds(judge, &both, &is_same(var))))
    }

    /// The map from the loops of a round to the axes is injective.
    fn by_map(&self, judge: &Judge, own: &Path) -> Decision {
        let is_own = |at: usize| at >= self.round();
        let bound = |(at, step): (usize, &Step)| match step {
            Step::Loop(var, ..) | Step::Let(var, _) if !is_own(at) => Some(var.clone()),
            _ => None,
        };
        let outside: Vec<Var> = self.path.steps.iter().enumerate().filter_map(bound).collect();
        let range = |step: &Step| match step {
            Step::Loop(var, min, extent) => Some((var.clone(), min.clone(), extent.clone())),
            Step::Let(..) | Step::Guard(..) => None,
        };
        let loops: Vec<_> = own.steps.iter().filter_map(range).collect();
        let values: Vec<Expr> = self.parts.bindings.iter().map(|&value| value.clone()).collect();
        let shape: Vec<Expr> = self.block.axes.iter().map(|axis| axis.extent.clone()).collect();
        one_to_one(judge, (&self.path, &outside), &loops, &values, &shape)
    }

    /// In a round, each value of the reduced axes occurs together with the other axes of each iteration: the claimed values of the
    /// loops that count the reduced axes are an iteration, and lead to it.
    fn all_run(&self, judge: &Judge, inverse: &[(Var, Expr)]) -> Decision {
        let (mut path, own) = match self.split() {
            Ok(found) => found,
            Err(reason) => return unsupported(reason),
        };
        let others = || {
            let axes = self.block.axes.iter().zip(&self.parts.bindings);
            axes.filter(|(axis, _)| axis.kind != AxisKind::Reduce).map(|(_, value)| value)
        };
        // A loop outside of the round has one value in it.
        if let Some((var, _)) = inverse.iter().find(|(var, _)| !own.loops().contains(var)) {
            return unsupported(format!("loop {var} counts a reduced axis from outside of the block around"));
        }
        if let Some((var, _)) = inverse.iter().find(|(var, _)| others().any(|value| value.vars().contains(var))) {
            return unsupported(format!("loop {var} counts a reduced axis and another one"));
        }
        path.steps.extend(own.steps.iter().cloned());
        for (axis, _) in self.reduced() {
            path.steps.push(Step::Loop(axis.var.clone(), axis.min.clone(), axis.extent.clone()));
        }
        let there =
            Substitution::new(inverse.iter().map(|(var, _)| var), inverse.iter().map(|(_, value)| value.clone()));
        let mut needed: Vec<Expr> = Vec::new();
        for step in &own.steps {
            needed.extend(step.conditions(&there).unwrap_or_default());
        }
        needed.extend(self.reduced().map(|(axis, value)| same(&there.apply(value), &Expr::from(&axis.var))));
        all_of(needed.iter().map(|cond| holds(judge, &path, cond)))
    }

    /// In a round, no iteration of an element comes before the one that initialises it.
    fn init_first(&self, judge: &Judge) -> Decision {
        let (mut both, own, renames) = match self.twice() {
            Ok(found) => found,
            Err(reason) => return unsupported(reason),
        };
        for (axis, value) in self.block.axes.iter().zip(&self.parts.bindings) {
            let second = renames.apply(value);
            let known = if axis.kind == AxisKind::Reduce { same(&second, &axis.min) } else { same(value, &second) };
            both.steps.push(Step::Guard(known, true));
        }
        let mut is_earlier = truth(false);
        for var in own.loops().iter().rev() {
            let (one, two) = (Expr::from(var), renames.apply(&Expr::from(var)));
            is_earlier = either(one.clone().lt(two.clone()), same(&one, &two).and(is_earlier));
        }
        holds(judge, &both, &Expr::unary(tilewright_ir::UnaryOp::Not, is_earlier))
    }
}

/// An access lies in one of the regions.
fn inside(judge: &Judge, access: &Access, regions: &[&BlockRegion]) -> Decision {
    let of_memory = || regions.iter().filter(|region| region.buffer.aliases(&access.buffer));
    if of_memory().any(|region| region.buffer != access.buffer) {
        return unsupported(format!("`{}` is seen through another view than the block states", access.buffer));
    }
    let contains = |region: &&BlockRegion| {
        let ranges = access.indices.iter().zip(&region.ranges);
        ranges.map(|(index, (min, extent))| within(index, min, extent)).reduce(Expr::and).unwrap_or_else(|| truth(true))
    };
    let cond = of_memory().map(contains).reduce(either).unwrap_or_else(|| truth(false));
    holds(judge, &access.path, &cond)
}

/// The elements that a block updates in buffers to which it stores first of all, under a condition: what TVM's `LowerInitBlock` makes of an
/// initialisation.
fn started(stmt: &Stmt) -> Vec<(Buffer, Vec<Expr>)> {
    let stores = |stmt: &Stmt| {
        let mut found = Vec::new();
        stmt.walk(&mut |part| {
            if let StmtKind::Store { buffer, indices, .. } = &part.kind {
                found.push((buffer.clone(), indices.clone()));
            }
        });
        found
    };
    let StmtKind::Seq(stmts) = &stmt.kind else { return Vec::new() };
    let Some(StmtKind::If { then_body, else_body: None, .. }) = stmts.first().map(|first| &first.kind) else {
        return Vec::new();
    };
    let first = stores(then_body);
    let mut all = stores(stmt);
    all.retain(|(buffer, _)| first.iter().any(|(begun, _)| begun == buffer));
    all
}

/// Whether a statement combines the values of threads: what stands for the call of TVM reads the element that it computes.
fn has_allreduce(stmt: &Stmt) -> bool {
    let mut found = false;
    stmt.walk(&mut |part| {
        found |= matches!(&part.kind, StmtKind::Attr { key, .. } if key == THREAD_ALLREDUCE);
    });
    found
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
