//! Softmax: three tensors, one behind the other.
//!
//! ```text
//! largest[o, i] = max over r of x[o, r, i]
//! total[o, i]   = sum over r of exp(x[o, r, i] - largest[o, i])
//! y[o, r, i]    = exp(x[o, r, i] - largest[o, i]) / total[o, i]
//! ```

use tilewright_compiler::te::build::{Builder, Lowered, ReduceAxis, Tensor, call, reduce, reduce_axis};
use tilewright_ir::{BinaryOp, Diagnostic, Expr, MathFn, ReduceOp, ThreadTag};

use super::coords::{Coord, load};
use super::{Kernel, Signature, extents, int, schedule};

/// Defines, schedules and lowers a kernel. The sums run over the axes `first..end` of row-major operands.
pub(super) fn lower(name: &str, signature: &Signature, first: usize, end: usize) -> Result<Lowered, Vec<Diagnostic>> {
    let one = |fault| vec![fault];
    let mut kernel = Kernel::new(signature).map_err(one)?;
    let (largest, total, result) = defined(&mut kernel, first, end).map_err(one)?;
    let Kernel { mut te, operands, result: operand } = kernel;
    let mut scheduled = te.create_schedule(&[result]).map_err(one)?;
    for (tensor, operand) in &operands {
        schedule::set_scope(&mut scheduled, *tensor, operand).map_err(one)?;
    }
    for (tensor, shape) in [
        (largest, kept(&operand.shape, first, end)),
        (total, kept(&operand.shape, first, end)),
        (result, operand.shape.clone()),
    ] {
        let mut stage = scheduled.stage(tensor).map_err(one)?;
        let axes = stage.axes();
        let all = if axes.len() == 1 { axes[0] } else { stage.fuse(&axes).map_err(one)? };
        let count: u64 = shape.iter().product();
        let items = schedule::work_items(count, signature.group);
        let by = tilewright_compiler::te::build::SplitBy::Factor(i64::try_from(items).unwrap_or(1));
        let (groups, within) = stage.split(all, by).map_err(one)?;
        stage.bind(groups, ThreadTag::Block(0), None).map_err(one)?;
        stage.bind(within, ThreadTag::Thread(0), None).map_err(one)?;
    }
    let params: Vec<_> = operands.iter().map(|(tensor, _)| (*tensor).into()).chain([result.into()]).collect();
    scheduled.lower(&params, name)
}

/// The extents that the sums do not run over; one of 1 if there are none.
fn kept(shape: &[u64], first: usize, end: usize) -> Vec<u64> {
    let kept: Vec<u64> = shape[..first].iter().chain(&shape[end..]).copied().collect();
    if kept.is_empty() { vec![1] } else { kept }
}

/// The three tensors.
fn defined(kernel: &mut Kernel<'_>, first: usize, end: usize) -> Result<(Tensor, Tensor, Tensor), Diagnostic> {
    let (x, shape) = (kernel.operands[0], kernel.result.shape.clone());
    let outer = extents(&kept(&shape, first, end));
    let is_all = first == 0 && end == shape.len();
    // The coordinates of an element from those of its sum and those within the sum.
    let full = |outer: &[Expr], within: &[ReduceAxis]| {
        let (front, back) = if is_all { (&outer[..0], &outer[..0]) } else { outer.split_at(first) };
        let within = within.iter().map(ReduceAxis::index);
        front.iter().cloned().chain(within).chain(back.iter().cloned()).map(Coord::Whole).collect::<Vec<_>>()
    };
    let axes = || -> Result<Vec<ReduceAxis>, Diagnostic> {
        let extents = shape[first..end].iter().enumerate();
        extents.map(|(at, &extent)| reduce_axis(&format!("r{at}"), &Expr::int(0), &int(extent))).collect()
    };
    let largest = kernel.te.compute("largest", &outer, |te, at| {
        let within: Vec<ReduceAxis> = axes()?;
        let value = load(te, x, &full(at, &within))?;
        reduce(ReduceOp::Max, value, &within.into_iter().map(|axis| axis.axis).collect::<Vec<_>>())
    })?;
    let shifted = |te: &Builder, at: &[Coord], outer: &[Expr]| {
        call(MathFn::Exp, vec![load(te, x, at)? - te.load(largest, outer)?])
    };
    let total = kernel.te.compute("total", &outer, |te, at| {
        let within: Vec<ReduceAxis> = axes()?;
        let value = shifted(te, &full(at, &within), at)?;
        reduce(ReduceOp::Sum, value, &within.into_iter().map(|axis| axis.axis).collect::<Vec<_>>())
    })?;
    let result = kernel.te.compute("y", &extents(&shape), |te, at| {
        let outer: Vec<Expr> = at[..first].iter().chain(&at[end..]).cloned().collect();
        let outer = if is_all { vec![Expr::int(0)] } else { outer };
        let coords: Vec<Coord> = at.iter().cloned().map(Coord::Whole).collect();
        let value = shifted(te, &coords, &outer)?;
        Ok(Expr::binary(BinaryOp::Div, value, te.load(total, &outer)?).into())
    })?;
    Ok((largest, total, result))
}
