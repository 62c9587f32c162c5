//! Reductions in two stages: `rfactor`.
//!
//! ```text
//! for i, k_0, k_1 in T.grid(n, 5, 4):          for i, k_0, k_1 in T.grid(n, 5, 4):
//!     block "B": init B[v_i] = 0                   block "B_rf": init B_rf[v_k_1, v_i] = 0, for each v_k_1
//!         B[v_i] += A[v_i, v_k]          ->            B_rf[v_k_1, v_i] += A[v_i, v_k_0 * 4 + v_k_1]
//!                                              for i, k_1 in T.grid(n, 4):
//!                                                  block "B": init B[v_i] = 0
//!                                                      B[v_i] += B_rf[v_k_1, v_i]
//! ```
//!
//! The values of floats are combined in another order, which is a premise of the step.

use tilewright_algebra::conjuncts;
use tilewright_ir::visit::Substitution;
use tilewright_ir::{
    AxisKind, AxisSeparators, BinaryOp, Block, BlockAxis, Buffer, Comparison, DataType, Diagnostic, Evidence, Expr,
    For, ForKind, PrimFunc, Stmt, StmtKind, Var,
};

use super::cache::{moved_accesses, only_written};
use super::regions::{int_like, stated};
use super::tree::{Found, realized, replaced, with_block, with_neighbours};
use super::{BlockRef, BlockSchedule, LoopRef, fault};
use crate::lift;

impl BlockSchedule {
    /// Computes a reduction in two stages: first for each iteration of a loop that counts a reduced axis, in a buffer with one more axis at
    /// the position `factor_axis`, then over these. Returns the block of the first stage; the block itself is the second.
    ///
    /// # Errors
    /// `schedule`: the block or the loop is gone, the block is no reduction that combines its values by `+`, `*`, `min` or `max`, or the
    /// loop counts something else than reduced axes.
    pub fn rfactor(&mut self, block: BlockRef, run: &LoopRef, factor_axis: usize) -> Result<BlockRef, Diagnostic> {
        let found = self.block(block)?;
        let buffer = only_written(&found)?;
        let factored = Factored::of(&found, run, &buffer)?;
        if factor_axis > buffer.rank() {
            let message = format!("`{buffer}` has {} axes, and no place {factor_axis} for another one", buffer.rank());
            return Err(fault(message, "the position is a number of axes in front of it"));
        }
        let name = found.block.name.clone();
        let rf_name = self.fresh_block_name(&format!("{name}_rf"));
        let partial = partial_buffer(&buffer, &factored.run.extent, factor_axis);
        let first = factored.first(&found, &rf_name, (&buffer, &partial), factor_axis, self.func());
        let second = factored.second(&found, (&buffer, &partial), factor_axis, self.func());
        // The second stage stands behind the first one, which takes the place of the block.
        let body = with_neighbours(self.func(), &found, (Vec::new(), vec![second]), Some(&partial));
        let mut is_first = true;
        let body = with_block(&body, &name, &mut |_, stmt, _| {
            if std::mem::take(&mut is_first) { first.clone() } else { stmt.clone() }
        });
        let after = PrimFunc { body, ..self.func().clone() };
        let evidence = Evidence { pass: "rfactor".to_owned(), ..Evidence::default() };
        let claim = lift::find(self.func(), &after, &evidence, true);
        let comparison = claim.map_or_else(|_| Comparison::Results, |claim| Comparison::Definitions(Box::new(claim)));
        self.record("rfactor", after, Evidence { comparison, ..evidence });
        Ok(self.block_ref(&rf_name))
    }
}

/// A reduction, and the loop that becomes an axis of its own.
struct Factored<'f> {
    run: &'f For,
    /// The other loops that count reduced axes.
    reduced: Vec<&'f For>,
    /// The loops that count the other axes.
    spatial: Vec<&'f For>,
    op: BinaryOp,
    /// The index of the element that the block updates, and its first value.
    index: Vec<Expr>,
    identity: Expr,
}

impl<'f> Factored<'f> {
    fn of(found: &Found<'f>, run: &LoopRef, buffer: &Buffer) -> Result<Self, Diagnostic> {
        let wrong = |why: &str| {
            let help = "such as `C[i] = C[i] + A[i, k]` with `T.init`, and a loop that counts `k`";
            fault(format!("block `{}` has no such second stage: {why}", found.block.name), help)
        };
        let counts = |kind: fn(AxisKind) -> bool, run: &For| {
            found.axes().any(|(axis, value)| kind(axis.kind) && value.vars().contains(&run.var))
        };
        let (mut reduced, mut spatial, mut chosen) = (Vec::new(), Vec::new(), None);
        for one in &found.loops {
            let (is_reduced, is_spatial) =
                (counts(|kind| kind == AxisKind::Reduce, one), counts(|kind| kind != AxisKind::Reduce, one));
            match (one.var == run.0, is_reduced, is_spatial) {
                (true, true, false) => chosen = Some(*one),
                (true, ..) => return Err(wrong("the loop does not count reduced axes alone")),
                (false, true, true) => return Err(wrong("a loop counts reduced axes and others")),
                (false, true, false) => reduced.push(*one),
                (false, false, _) => spatial.push(*one),
            }
        }
        let run = chosen.ok_or_else(|| wrong("the loop is not around it"))?;
        if run.min.as_const_int() != Some(0) {
            return Err(wrong("the loop does not start from 0"));
        }
        let (index, identity, op) = reduction(found, buffer).ok_or_else(|| wrong("it is no such reduction"))?;
        Ok(Self { run, reduced, spatial, op, index, identity })
    }

    /// The block of the first stage, in the loops of the reduction.
    fn first(
        &self,
        found: &Found<'_>,
        name: &str,
        (buffer, partial): (&Buffer, &Buffer),
        factor_axis: usize,
        func: &PrimFunc,
    ) -> Stmt {
        let axis_of = |run: &For, kind| BlockAxis {
            var: Var::new(format!("v_{}", run.var), run.var.dtype()),
            kind,
            min: run.min.clone(),
            extent: run.extent.clone(),
        };
        let factor = axis_of(self.run, AxisKind::Spatial);
        let (mut axes, mut values) = (vec![factor.clone()], vec![Expr::from(&self.run.var)]);
        let mut of_loops = Substitution::new([&self.run.var], [Expr::from(&factor.var)]);
        let (mut fresh, mut old_axes) = (Vec::new(), Substitution::default());
        for run in &self.reduced {
            let axis = axis_of(run, AxisKind::Reduce);
            of_loops.insert(&run.var, Expr::from(&axis.var));
            fresh.push((axis, Expr::from(&run.var)));
        }
        for (axis, value) in found.axes() {
            if axis.kind == AxisKind::Reduce {
                old_axes.insert(&axis.var, of_loops.apply(value));
                continue;
            }
            let var = Var::new(axis.var.name(), axis.var.dtype());
            old_axes.insert(&axis.var, Expr::from(&var));
            axes.push(BlockAxis { var, ..axis.clone() });
            values.push(value.clone());
        }
        for (axis, value) in fresh {
            axes.push(axis);
            values.push(value);
        }
        let mut at = self.index.clone();
        at.insert(factor_axis, Expr::from(&factor.var));
        let rest = match &found.parts.body.kind {
            StmtKind::Seq(stmts) => Stmt::seq(stmts[1..].to_vec()),
            _ => found.parts.body.clone(),
        };
        let update = replaced(&moved_accesses(&rest, buffer, partial, &at), &old_axes, &[]);
        let init = replaced(&Stmt::store(partial, at, self.identity.clone()), &old_axes, &[]);
        let block = Block { name: name.to_owned(), axes, has_init: true, ..found.block.clone() };
        let init = block.is_first().map_or(init.clone(), |first| Stmt::guarded(first, init));
        let body = Stmt::seq(vec![init, update]);
        let block = stated(&block, &body, &found.ranges(func));
        realized(block, found.parts.predicate.cloned(), values, body).at(found.stmt.span)
    }

    /// The loops and the block of the second stage.
    fn second(
        &self,
        found: &Found<'_>,
        (buffer, partial): (&Buffer, &Buffer),
        factor_axis: usize,
        func: &PrimFunc,
    ) -> Stmt {
        let mut loops: Vec<For> = Vec::new();
        let mut there = Substitution::default();
        for run in self.spatial.iter().chain([&self.run]) {
            let var = Var::new(run.var.name(), run.var.dtype());
            let (min, extent) = (there.apply(&run.min), there.apply(&run.extent));
            there.insert(&run.var, Expr::from(&var));
            let (kind, annotations, body) = (ForKind::Serial, Vec::new(), Stmt::seq(Vec::new()));
            loops.push(For { var, min, extent, kind, annotations, body });
        }
        let (mut axes, mut values, mut old_axes) = (Vec::new(), Vec::new(), Substitution::default());
        for (axis, value) in found.axes().filter(|(axis, _)| axis.kind != AxisKind::Reduce) {
            let var = Var::new(axis.var.name(), axis.var.dtype());
            old_axes.insert(&axis.var, Expr::from(&var));
            axes.push(BlockAxis { var, ..axis.clone() });
            values.push(there.apply(value));
        }
        let factor = Var::new(format!("v_{}", self.run.var), self.run.var.dtype());
        let (min, extent) = (int_like(0, &self.run.extent), self.run.extent.clone());
        axes.push(BlockAxis { var: factor.clone(), kind: AxisKind::Reduce, min, extent });
        values.push(there.apply(&Expr::from(&self.run.var)));
        let at: Vec<Expr> = self.index.iter().map(|at| old_axes.apply(at)).collect();
        let mut of_partial = at.clone();
        of_partial.insert(factor_axis, Expr::from(&factor));
        let sum = Expr::binary(self.op, Expr::load(buffer, at.clone()), Expr::load(partial, of_partial));
        let block = Block { axes, has_init: true, annotations: Vec::new(), ..found.block.clone() };
        let init = Stmt::store(buffer, at.clone(), self.identity.clone());
        let init = block.is_first().map_or(init.clone(), |first| Stmt::guarded(first, init));
        let body = Stmt::seq(vec![init, Stmt::store(buffer, at, sum)]);
        let is_kept = |cond: &Expr| cond.vars().iter().all(|var| !self.is_reduced(var));
        let parts = found.parts.predicate.map(conjuncts).unwrap_or_default();
        let predicate = parts.iter().filter(|cond| is_kept(cond)).map(|cond| there.apply(cond)).reduce(Expr::and);
        let block = stated(&block, &body, &found.ranges(func));
        let inner = realized(block, predicate, values, body).at(found.stmt.span);
        loops.into_iter().rev().fold(inner, |body, run| Stmt::new(StmtKind::For(For { body, ..run }.into())))
    }

    fn is_reduced(&self, var: &Var) -> bool {
        self.run.var == *var || self.reduced.iter().any(|run| run.var == *var)
    }
}

/// The element that a block updates, its first value, and how the values are combined.
fn reduction(found: &Found<'_>, buffer: &Buffer) -> Option<(Vec<Expr>, Expr, BinaryOp)> {
    let StmtKind::Seq(stmts) = &found.parts.body.kind else { return None };
    let [init, update] = &stmts[..] else { return None };
    let StmtKind::If { then_body, else_body: None, .. } = &init.kind else { return None };
    let StmtKind::Store { buffer: first, indices: init_at, value: identity } = &then_body.kind else { return None };
    let StmtKind::Store { buffer: stored, indices, value: Expr::Binary(op, known, _) } = &update.kind else {
        return None;
    };
    let is_updated = **known == Expr::load(buffer, indices.clone());
    let is_same = first == buffer && stored == buffer && init_at == indices && is_updated && found.block.has_init;
    let combines = matches!(op, BinaryOp::Add | BinaryOp::Mul | BinaryOp::Min | BinaryOp::Max);
    (is_same && combines).then(|| (indices.clone(), identity.clone(), *op))
}

/// The buffer of the first stage.
fn partial_buffer(buffer: &Buffer, extent: &Expr, axis: usize) -> Buffer {
    let name = format!("{}_rf", buffer.name);
    let data = Var::new(name.clone(), DataType::HANDLE);
    buffer.with(|info| {
        info.name = name;
        info.data = data;
        info.shape.insert(axis, extent.clone());
        info.strides = None;
        info.elem_offset = Expr::int(0);
        info.axis_separators = AxisSeparators::none(info.shape.len());
        info.span = None;
    })
}
