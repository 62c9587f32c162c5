//! Schedules: which loops are threads, and where a reduction accumulates.
//!
//! | result | groups | work-items | vector |
//! |---|---|---|---|
//! | NCHW4c | batches and texels of channels; rows | columns | the 4 lanes |
//! | row-major | the first two axes; the other axes but the last; parts of the last | the last axis | none |
//!
//! A reduction is computed at the innermost thread, in registers.

use tilewright_compiler::te::build::{Builder, Lowered, Schedule, SplitBy, Tensor};
use tilewright_ir::{Diagnostic, Expr, Scope, ThreadTag};

use super::coords::of_indices;
use super::{Kernel, Signature, define, extents};
use crate::place::{Arrangement, Operand};
use tilewright_compiler::te::build::cast;

type Scheduled<T> = Result<T, Diagnostic>;

impl<'a> Kernel<'a> {
    /// A kernel with placeholders for its operands.
    pub(super) fn new(signature: &'a Signature) -> Scheduled<Self> {
        let mut te = Builder::new();
        let mut operands = Vec::new();
        for (number, operand) in signature.operands.iter().enumerate() {
            let tensor = te.placeholder(&format!("x{number}"), &extents(&operand.physical()), operand.dtype)?;
            operands.push((tensor, operand));
        }
        Ok(Self { te, operands, result: &signature.result })
    }
}

/// Defines, schedules and lowers a kernel with at most one reduction.
pub(super) fn lower(name: &str, signature: &Signature) -> Result<Lowered, Vec<Diagnostic>> {
    let one = |fault| vec![fault];
    let mut kernel = Kernel::new(signature).map_err(one)?;
    let (total, result) = defined(&mut kernel, signature).map_err(one)?;
    let Kernel { mut te, operands, result: operand } = kernel;
    let mut schedule = te.create_schedule(&[result]).map_err(one)?;
    let scheduled = scheduled(&mut schedule, &operands, (result, operand), total, signature.group);
    scheduled.map_err(one)?;
    let params: Vec<_> = operands.iter().map(|(tensor, _)| (*tensor).into()).chain([result.into()]).collect();
    schedule.lower(&params, name)
}

/// The tensor of the reduction, if there is one, and the result.
fn defined(kernel: &mut Kernel<'_>, signature: &Signature) -> Scheduled<(Option<Tensor>, Tensor)> {
    let (op, operand) = (&signature.op, kernel.result);
    let shape = extents(&operand.physical());
    let operands = &kernel.operands;
    let probe: Vec<Expr> = shape.iter().map(|_| Expr::int(0)).collect();
    let is_reduced = define::reduction(&kernel.te, op, operands, &of_indices(operand, &probe))?.is_some();
    let total = if is_reduced {
        let missing = || Diagnostic::error("network-kernel", None, "the operator has no reduction");
        let sum = kernel.te.compute("total", &shape, |te, at| {
            define::reduction(te, op, operands, &of_indices(operand, at))?.ok_or_else(missing)
        });
        Some(sum?)
    } else {
        None
    };
    let result = kernel.te.compute("y", &shape, |te, at| {
        let total = total.map(|total| te.load(total, at)).transpose()?;
        let value = define::element(te, op, operands, &of_indices(operand, at), total)?;
        Ok(cast(value, operand.dtype.into()).into())
    })?;
    Ok((total, result))
}

/// Schedules the result and the reduction.
fn scheduled(
    schedule: &mut Schedule<'_>,
    operands: &[define::Bound<'_>],
    (result, operand): define::Bound<'_>,
    total: Option<Tensor>,
    group: u64,
) -> Scheduled<()> {
    for (tensor, operand) in operands {
        set_scope(schedule, *tensor, operand)?;
    }
    set_scope(schedule, result, operand)?;
    let is_texture = operand.arrangement == Arrangement::Channels4;
    let mut stage = schedule.stage(result)?;
    let axes = stage.axes();
    let shape = operand.physical();
    let (outer, last) =
        if is_texture { (&axes[..3], axes[3]) } else { (&axes[..axes.len() - 1], axes[axes.len() - 1]) };
    let columns = if is_texture { shape[3] } else { shape[shape.len() - 1] };
    if let [batch, block, rows] = outer
        && is_texture
    {
        let blocks = stage.fuse(&[*batch, *block])?;
        stage.bind(blocks, ThreadTag::Block(1), None)?;
        stage.bind(*rows, ThreadTag::Block(0), None)?;
        stage.vectorize(axes[4])?;
    } else {
        // Two axes for each group index: the judge takes indices of two fused axes apart, and not those of three.
        let (front, back) = outer.split_at(outer.len().min(2));
        for (axes, tag) in [(front, ThreadTag::Block(1)), (back, ThreadTag::Block(0))] {
            match axes {
                [] => {}
                [axis] => stage.bind(*axis, tag, None)?,
                axes => {
                    let fused = stage.fuse(axes)?;
                    stage.bind(fused, tag, None)?;
                }
            }
        }
    }
    let mut thread = last;
    let most = work_items(columns, group);
    if most < columns {
        let (parts, within) = stage.split(last, SplitBy::Factor(i64::try_from(most).unwrap_or(1)))?;
        stage.bind(parts, ThreadTag::Block(2), None)?;
        thread = within;
    }
    stage.bind(thread, ThreadTag::Thread(0), None)?;
    let Some(total) = total else { return Ok(()) };
    let mut sum = schedule.stage(total)?;
    sum.set_scope(Scope::Local)?;
    sum.compute_at(thread)?;
    if is_texture {
        let lanes = sum.axes()[4];
        let mut order = sum.reduce_axes();
        order.push(lanes);
        sum.reorder(&order)?;
        sum.vectorize(lanes)?;
    }
    Ok(())
}

/// Sets the scope of an operand.
pub(super) fn set_scope(schedule: &mut Schedule<'_>, tensor: Tensor, operand: &Operand) -> Scheduled<()> {
    match operand.arrangement.scope() {
        // What is global stays as it is: an input without a scope of its own has no entry in the schedule.
        Scope::Global => Ok(()),
        scope => schedule.stage(tensor)?.set_scope(scope),
    }
}

/// The largest divisor of an extent that a group may have as work-items, so that no group is partial.
pub(super) fn work_items(extent: u64, group: u64) -> u64 {
    (1..=group.min(extent)).rev().find(|size| extent.is_multiple_of(*size)).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::work_items;

    #[test]
    fn a_group_has_as_many_items_as_divide_the_extent() {
        assert_eq!(
            [work_items(224, 256), work_items(1000, 256), work_items(257, 256), work_items(1, 256)],
            [224, 250, 1, 1]
        );
    }
}
