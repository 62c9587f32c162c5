//! `rfactor`: a reduction in two stages.
//!
//! ```text
//! C[i] = sum over k of A[i, k]                   C_rf[ki, i] = sum over ko of (A[i, 4 * ko + ki] if 4 * ko + ki < n else 0)
//! ko, ki = s[C].split(k, 4)                      C[i]        = sum over ki of C_rf[ki, i]
//! rf = s.rfactor(C, ki)
//! ```
//!
//! The definition is rewritten before it is lowered, and the judge compares the two. Values are combined in another order, which for
//! floats is a premise.

use tilewright_ir::visit::Substitution;
use tilewright_ir::{self as ir, Axis, Diagnostic, Expr, StageBody, Var};

use super::arith::cast;
use super::nest::Nest;
use super::schedule::{Schedule, ScheduleData};
use super::stage::{StageData, Work};
use super::{Built, Loop, Tensor, TensorData, TensorKind};

/// A reduction that is computed in two stages.
#[derive(Debug)]
pub(super) struct Factored {
    /// The tensor.
    pub(super) tensor: usize,
    /// The tensor with one element for each iteration of the factored loop.
    pub(super) parts: usize,
    /// The definition of the tensor in terms of the parts.
    pub(super) body: StageBody,
}

impl ScheduleData {
    /// The definition of a computed tensor in this schedule, before tensors are inlined.
    pub(super) fn body<'t>(&'t self, tensors: &'t [TensorData], tensor: usize) -> &'t StageBody {
        let TensorKind::Computed { body, .. } = &tensors[tensor].kind else {
            unreachable!("only computed tensors have a definition")
        };
        self.factored.iter().find(|factored| factored.tensor == tensor).map_or(body, |factored| &factored.body)
    }
}

impl Schedule<'_> {
    /// Computes a reduction in two stages: for each iteration of a reduced loop by itself, and these together. Returns the tensor of
    /// the first stage, whose first axis is that loop; it can be scheduled like any other. The loops of both stages are new.
    ///
    /// # Errors
    /// `rfactor` if the tensor is not computed by its stage as a reduction, if it was factored before, if the loop is not reduced, or if
    /// other primitives than splits, fusions and orders of reduced loops were applied; `no-stage`, `not-a-loop`, `foreign-tensor`.
    pub fn rfactor(&mut self, tensor: Tensor, axis: Loop) -> Result<Tensor, Diagnostic> {
        self.rfactor_at(tensor, axis, 0)
    }

    /// [`Schedule::rfactor`] with the loop as another axis of the first stage. A negative position counts from the end: -1 is the last
    /// axis.
    ///
    /// # Errors
    /// `rfactor` if there is no such axis, and those of [`Schedule::rfactor`].
    pub fn rfactor_at(&mut self, tensor: Tensor, axis: Loop, factor_axis: i64) -> Result<Tensor, Diagnostic> {
        let position = self.position(tensor)?;
        let leaf = self.stage(tensor)?.position(axis)?;
        let stage = &self.data().stages[position];
        let leaf = stage.leaves[leaf];
        let name = self.te.tensors[tensor.index].buffer.name.clone();
        check(self.data(), stage, (&name, tensor.index), leaf)?;
        let TensorKind::Computed {
            axes,
            body: StageBody::Reduce { op, axes: reduced, init: None, condition: None, source },
        } = &self.te.tensors[tensor.index].kind
        else {
            return Err(refused(&name, "it is no plain reduction"));
        };
        let (op, axes) = (*op, axes.clone());
        let at = place_of(factor_axis, axes.len())?;
        let reduced_vars: Vec<Var> = reduced.iter().map(|axis| axis.var.clone()).collect();
        let site = Nest::new(stage)?.reduction(&reduced_vars);
        let axis_of =
            |(loop_, var): &(usize, Var)| Axis { var: var.clone(), extent: stage.loops[*loop_].extent.clone() };
        let (own, rest): (Vec<_>, Vec<_>) = site.loops.iter().partition(|(other, _)| *other == leaf);
        let rest: Vec<Axis> = rest.into_iter().map(axis_of).collect();
        let Some(part) = own.into_iter().next().map(axis_of) else {
            return Err(refused(&name, "the loop is not reduced"));
        };
        // The first stage has axes of its own.
        let fresh =
            |axis: &Axis| Axis { var: Var::new(axis.var.name(), axis.var.dtype()), extent: axis.extent.clone() };
        let mut mine: Vec<Axis> = axes.iter().map(fresh).collect();
        let values = site.axes.iter().zip(&reduced_vars).map(|(value, var)| cast(value.clone(), var.dtype()));
        let there = mine.iter().map(|axis| Expr::from(&axis.var)).chain(values);
        let value = Substitution::new(axes.iter().map(|axis| &axis.var).chain(&reduced_vars), there).apply(source);
        mine.insert(at, part.clone());
        let value = match &site.guard {
            Some(guard) => {
                let identity = op.identity_expr(value.dtype().scalar);
                Expr::IfThenElse(guard.clone().into(), value.into(), identity.into())
            }
            None => value,
        };
        let body = if rest.is_empty() { value.into() } else { StageBody::reduce(op, rest.clone(), value) };
        let shape = mine.iter().map(|axis| axis.extent.clone()).collect();
        let (dtype, place) = (self.te.tensors[tensor.index].buffer.dtype, self.te.place);
        let buffer = ir::Buffer::compact(format!("{name}_rf"), dtype, shape).with(|info| info.span = place);
        let again = fresh(&part);
        let mut index: Vec<Expr> = axes.iter().map(|axis| Expr::from(&axis.var)).collect();
        index.insert(at, Expr::from(&again.var));
        let whole = StageBody::reduce(op, vec![again.clone()], Expr::load(&buffer, index));
        let parts = self.te.add_tensor(buffer, TensorKind::Computed { axes: mine.clone(), body });
        let mut first = StageData::new(parts.index, Work::Compute(parts.index), &mine, &rest);
        let mut second = StageData::new(tensor.index, Work::Compute(tensor.index), &axes, &[again]);
        let data = self.data_mut();
        let old = &mut data.stages[position];
        first.redirects = std::mem::take(&mut old.redirects);
        second.scope = old.scope;
        *old = second;
        data.stages.insert(position, first);
        data.factored.push(Factored { tensor: tensor.index, parts: parts.index, body: whole });
        Ok(parts)
    }
}

/// The position of the factored loop among the axes of the first stage, of which there is one more than the tensor has.
fn place_of(factor_axis: i64, rank: usize) -> Built<usize> {
    let most = i64::try_from(rank).unwrap_or(i64::MAX);
    let at = if factor_axis < 0 { factor_axis.saturating_add(most).saturating_add(1) } else { factor_axis };
    usize::try_from(at).ok().filter(|at| *at <= rank).ok_or_else(|| {
        let message = format!("there is no axis {factor_axis}: the first stage has {} axes", rank + 1);
        Diagnostic::error("rfactor", None, message)
            .with_help(format!("factor_axis is {} to {most}; negative numbers count from the end", -most - 1))
    })
}

fn refused(name: &str, why: &str) -> Diagnostic {
    Diagnostic::error("rfactor", None, format!("`{name}` cannot be factored: {why}"))
        .with_help("call rfactor behind the splits of the reduced loops, and before all else")
}

/// Whether a stage can be factored at a loop.
fn check(data: &ScheduleData, stage: &StageData, (name, tensor): (&str, usize), leaf: usize) -> Built<()> {
    if data.factored.iter().any(|factored| factored.tensor == tensor || factored.parts == tensor) {
        return Err(refused(name, "it was factored before"));
    }
    if stage.work != Work::Compute(tensor) {
        return Err(refused(name, "its stage does not compute it"));
    }
    if !stage.loops[leaf].reduce {
        return Err(refused(name, "the loop is not reduced"));
    }
    let is_plain = |leaf: &usize| {
        stage.loops[*leaf].kind == tilewright_ir::ForKind::Serial && stage.loops[*leaf].annotations.is_empty()
    };
    let are_axes = stage.roots.iter().all(|root| stage.leaves.contains(root)) && stage.layouts.is_empty();
    if !are_axes || stage.tiled.is_some() || !stage.leaves.iter().all(is_plain) {
        return Err(refused(name, "other primitives were applied to its stage"));
    }
    Ok(())
}
