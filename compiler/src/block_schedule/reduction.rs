//! Reductions: `decompose_reduction`.
//!
//! ```text
//! for i, j:                                    for i:
//!     for k:                                       for j_init: block "C_init":   C[v_i, v_j] = 0
//!         block "C": init, update        ->        for j, k:   block "C_update": C[v_i, v_j] += A[v_i, v_k] * B[v_k, v_j]
//! ```

use tilewright_algebra::simplify;
use tilewright_ir::visit::Substitution;
use tilewright_ir::{AxisKind, Block, BlockAxis, Diagnostic, Expr, For, Stmt, StmtKind, StoreOrigin, Var, sabotage};
use tilewright_verify::reorder::Statement;

use super::regions::stated;
use super::tree::{Found, realized, realized_again, with_block};
use super::{BlockRef, BlockSchedule, LoopRef, fault};
use crate::passes::schedule::claims::Claim;
use crate::passes::schedule::copy::copied;
use crate::passes::schedule::loops::with_loop;

impl BlockSchedule {
    /// Initialises a reduction in a block of its own, in front of a loop. Returns that block.
    ///
    /// # Errors
    /// `schedule`: the block is gone or has no initialisation, the loop is not around it or is inside of a loop of a
    /// reduced axis, or a loop around the reduction counts both
    /// reduced axes and others.
    pub fn decompose_reduction(&mut self, block: BlockRef, run: &LoopRef) -> Result<BlockRef, Diagnostic> {
        let found = self.block(block)?;
        let (name, span) = (found.block.name.clone(), found.stmt.span);
        let at = found.loops.iter().position(|other| other.var == run.0).ok_or_else(|| {
            fault(format!("`{}` is not a loop around block `{name}`", run.name()), "name one of `sch.get_loops(block)`")
        })?;
        let counts = |run: &&&For| {
            found.axes().any(|(axis, value)| axis.kind == AxisKind::Reduce && value.vars().contains(&run.var))
        };
        if let Some(outer) = found.loops[..at].iter().find(counts) {
            let message = format!("`{}` is inside of `{}`, which counts a reduced axis", run.name(), outer.var);
            return Err(fault(message, "each sum starts once: name a loop around all loops of reduced axes"));
        }
        let (init, rest) = parts(&found)?;
        let names = (self.fresh_block_name(&format!("{name}_init")), self.fresh_block_name(&format!("{name}_update")));
        let inner = Inner::of(&found, &found.loops[at..])?;
        let nest = inner.nest(&found, &names.0, &init, self.func()).at(span);
        let claim = Decomposed {
            n_before: n_stores_before(&self.func().body, run),
            first: n_stores_before_block(&self.func().body, &name),
            n_init: n_stores(&init),
            inner,
        };
        let ranges = found.ranges(self.func());
        let looped = Stmt::new(StmtKind::For(For::clone(found.loops[at]).into()));
        let update = with_block(&looped, &name, &mut |block, _, parts| {
            let block = Block { name: names.1.clone(), has_init: false, ..block.clone() };
            realized_again(&stated(&block, &rest, &ranges), &parts, rest.clone()).at(span)
        });
        let mut parts = vec![nest, update];
        if sabotage::on("block-decompose-starts-late") {
            parts.reverse();
        }
        let body = with_loop(&self.func().body, &run.0, &Stmt::seq(parts));
        self.step("decompose_reduction", body, &Claim::Iterations(Box::new(move |old, new| claim.origins(old, new))))?;
        if let Some(known) = self.names.get_mut(block.0) {
            *known = names.1;
        }
        Ok(self.block_ref(&names.0))
    }
}

/// The initialisation of a block, and all that it does besides.
pub(super) fn parts(found: &Found<'_>) -> Result<(Stmt, Stmt), Diagnostic> {
    let no_init = || {
        let help = "it has `with T.init():` at the start of its statements";
        fault(format!("block `{}` has no initialisation", found.block.name), help)
    };
    let first = found.block.is_first().filter(|_| found.block.has_init).ok_or_else(no_init)?;
    let StmtKind::Seq(stmts) = &found.parts.body.kind else { return Err(no_init()) };
    let is_init = |stmt: &&Stmt| matches!(&stmt.kind, StmtKind::If { cond, else_body: None, .. } if *cond == first);
    let init = stmts.first().filter(is_init).ok_or_else(no_init)?;
    let StmtKind::If { then_body, .. } = &init.kind else { return Err(no_init()) };
    Ok((Stmt::clone(then_body), Stmt::seq(stmts[1..].to_vec())))
}

/// The loops inside of the place of the initialisation: those that it has, too, with variables of its own, and the others.
struct Inner {
    kept: Vec<(For, Var)>,
    dropped: Vec<For>,
}

impl Inner {
    fn of(found: &Found<'_>, loops: &[&For]) -> Result<Self, Diagnostic> {
        let mentions = |kind: fn(AxisKind) -> bool, var: &Var| {
            found.axes().any(|(axis, value)| kind(axis.kind) && value.vars().contains(var))
        };
        let (mut kept, mut dropped) = (Vec::new(), Vec::new());
        for run in loops {
            let counts = mentions(|kind| kind == AxisKind::Reduce, &run.var);
            let places = mentions(|kind| kind != AxisKind::Reduce, &run.var);
            if counts && places {
                let message = format!("`{}` counts a reduced axis and another one", run.var);
                return Err(fault(message, "fuse only loops of one kind, or decompose the reduction first"));
            }
            if places {
                kept.push((For::clone(run), Var::new(format!("{}_init", run.var), run.var.dtype())));
            } else {
                dropped.push(For::clone(run));
            }
        }
        Ok(Self { kept, dropped })
    }

    /// The values of the old loops where the initialisation stands.
    fn values(&self) -> Substitution {
        let mut values = Substitution::default();
        for (run, var) in &self.kept {
            values.insert(&run.var, Expr::from(var));
        }
        for run in &self.dropped {
            let min = values.apply(&run.min);
            values.insert(&run.var, min);
        }
        values
    }

    fn nest(&self, found: &Found<'_>, name: &str, init: &Stmt, func: &tilewright_ir::PrimFunc) -> Stmt {
        let there = self.values();
        let mut ranges = found.ranges(func);
        for (run, var) in &self.kept {
            ranges = ranges.with_loop(var, &there.apply(&run.min), &there.apply(&run.extent));
        }
        let mut fresh = Substitution::default();
        let (mut axes, mut values) = (Vec::new(), Vec::new());
        for (axis, value) in found.axes() {
            if axis.kind == AxisKind::Reduce {
                fresh.insert(&axis.var, axis.min.clone());
                continue;
            }
            let var = Var::new(axis.var.name(), axis.var.dtype());
            fresh.insert(&axis.var, Expr::from(&var));
            axes.push(BlockAxis { var, ..axis.clone() });
            values.push(there.apply(value));
        }
        let body = copied(init, &fresh);
        let predicate = found.parts.predicate.map(|cond| simplify(&there.apply(cond), &ranges));
        let predicate = predicate.filter(|cond| cond.as_const_int() != Some(1));
        let block = Block {
            name: name.to_owned(),
            axes,
            has_predicate: predicate.is_some(),
            has_init: false,
            annotations: Vec::new(),
            ..found.block.clone()
        };
        let block = stated(&block, &body, &ranges);
        let inner = realized(block, predicate, values, body);
        self.kept.iter().rev().fold(inner, |body, (run, var)| {
            let (min, extent) = (there.apply(&run.min), there.apply(&run.extent));
            let run = For { var: var.clone(), min, extent, body, ..run.clone() };
            Stmt::new(StmtKind::For(run.into()))
        })
    }
}

/// The claim that the stores of an initialisation come earlier.
struct Decomposed {
    /// The number of stores in front of the loop.
    n_before: usize,
    /// The position of the first store of the initialisation, and their number.
    first: usize,
    n_init: usize,
    inner: Inner,
}

impl Decomposed {
    fn origins(&self, old: &[Statement], new: &[Statement]) -> Option<Vec<StoreOrigin>> {
        let is_init = |position: &usize| (self.first..self.first + self.n_init).contains(position);
        let mut order: Vec<usize> = (0..old.len()).filter(|position| !is_init(position)).collect();
        let at = self.n_before.min(order.len());
        order.splice(at..at, self.first..self.first + self.n_init);
        (order.len() == new.len()).then_some(())?;
        let there = self.inner.values();
        let mut back = Substitution::default();
        self.inner.kept.iter().for_each(|(run, var)| back.insert(var, Expr::from(&run.var)));
        let origin = |(before, new): (usize, &Statement)| {
            let value = |values: &Substitution, var: &Var| values.get(var).cloned().unwrap_or_else(|| Expr::from(var));
            let is_moved = is_init(&before);
            let forward = |var: &Var| if is_moved { value(&there, var) } else { Expr::from(var) };
            Some(StoreOrigin {
                when: None,
                before,
                forward: old.get(before)?.loops().iter().map(forward).collect(),
                back: new.loops().iter().map(|var| value(&back, var)).collect(),
            })
        };
        order.into_iter().zip(new).map(origin).collect()
    }
}

/// The number of stores in a statement.
pub(super) fn n_stores(stmt: &Stmt) -> usize {
    let mut count = 0;
    stmt.walk(&mut |part| count += usize::from(matches!(part.kind, StmtKind::Store { .. })));
    count
}

/// The number of stores in front of a loop.
fn n_stores_before(body: &Stmt, run: &LoopRef) -> usize {
    let (mut count, mut is_met) = (0, false);
    body.walk(&mut |part| {
        is_met |= matches!(&part.kind, StmtKind::For(other) if other.var == run.0);
        count += usize::from(!is_met && matches!(part.kind, StmtKind::Store { .. }));
    });
    count
}

/// The number of stores in front of a block.
pub(super) fn n_stores_before_block(body: &Stmt, name: &str) -> usize {
    let (mut count, mut is_met) = (0, false);
    body.walk(&mut |part| {
        is_met |= Block::of(part).is_some_and(|(block, _)| block.name == name);
        count += usize::from(!is_met && matches!(part.kind, StmtKind::Store { .. }));
    });
    count
}
