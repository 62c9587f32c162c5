//! The definition of each operator: the value of one element of the result, from elements of the operands.
//!
//! A reduction has two parts, so that it can accumulate in registers: [`reduction`] says what is summed, and [`element`] makes the
//! result of the sum.

use tilewright_compiler::te::build::{Builder, Tensor, call, cast, if_then_else, reduce, reduce_axis};
use tilewright_ir::{BinaryOp, Diagnostic, Expr, MathFn, ReduceOp, StageBody};

use super::coords::{Coord, FLOAT, float, load, load_broadcast, within};
use super::int;
use crate::model::{Binary, Op, Unary, Window};
use crate::place::{Arrangement, Operand};

/// An operand of a kernel, or the result: its tensor and its arrangement.
pub(super) type Bound<'a> = (Tensor, &'a Operand);

type Defined<T> = Result<T, Diagnostic>;

/// What is accumulated for the element at `at`; `None` if the operator has no reduction.
pub(super) fn reduction(te: &Builder, op: &Op, operands: &[Bound<'_>], at: &[Coord]) -> Defined<Option<StageBody>> {
    Ok(Some(match op {
        Op::Conv { window, groups } => convolution(te, window, *groups, operands, at)?,
        Op::MaxPool(window) => pooled(te, ReduceOp::Max, window, operands[0], at, f32::NEG_INFINITY)?,
        Op::AveragePool { window, .. } => pooled(te, ReduceOp::Sum, window, operands[0], at, 0.0)?,
        Op::GlobalAveragePool => {
            let shape = &operands[0].1.shape;
            let rows = reduce_axis("ry", &Expr::int(0), &int(shape[2]))?;
            let columns = reduce_axis("rx", &Expr::int(0), &int(shape[3]))?;
            let at = [at[0].clone(), at[1].clone(), Coord::Whole(rows.index()), Coord::Whole(columns.index())];
            reduce(ReduceOp::Sum, load(te, operands[0], &at)?, &[rows.axis, columns.axis])?
        }
        Op::Lrn { size, .. } => {
            let [tensor, ..] = operands else { return Ok(None) };
            let step = reduce_axis("rc", &Expr::int(0), &int(*size))?;
            let before = (size - 1) / 2;
            let channel = at[1].whole() + step.index();
            let mut there = at.to_vec();
            there[1] = Coord::Whole(channel.clone() - int(before));
            let value = load(te, *tensor, &there)?;
            let inside = within(&channel, before, tensor.1.shape[1].saturating_add(before));
            let square = if_then_else(inside, value.clone() * value, float(0.0))?;
            reduce(ReduceOp::Sum, square, &[step.axis])?
        }
        Op::Gemm { transpose_a, transpose_b, .. } => product(te, [*transpose_a, *transpose_b], operands, at)?,
        Op::MatMul => product(te, [false, false], operands, at)?,
        Op::Unary(_)
        | Op::Binary(_)
        | Op::Sum
        | Op::Concat { .. }
        | Op::BatchNormalization { .. }
        | Op::Softmax { .. }
        | Op::Reshape
        | Op::Transpose { .. }
        | Op::Pad { .. } => return Ok(None),
    }))
}

/// The element at `at`; `total` is the value of the reduction there, if the operator has one.
pub(super) fn element(
    te: &Builder,
    op: &Op,
    operands: &[Bound<'_>],
    at: &[Coord],
    total: Option<Expr>,
) -> Defined<Expr> {
    let total = total.unwrap_or_else(|| float(0.0));
    Ok(match op {
        Op::Conv { .. } => match operands {
            [_, _, bias] => total + load(te, *bias, &at[1..2])?,
            _ => total,
        },
        Op::MaxPool(_) | Op::MatMul => total,
        Op::AveragePool { window, counts_padding } => {
            divided(total, count(window, *counts_padding, &operands[0].1.shape, at))
        }
        Op::GlobalAveragePool => {
            let shape = &operands[0].1.shape;
            divided(total, cast(int(shape[2] * shape[3]), FLOAT))
        }
        Op::Lrn { size, alpha, beta, bias } => {
            // The factor is rounded once, as the reference implementations do.
            #[expect(clippy::cast_precision_loss, reason = "a number of channels")]
            let factor = alpha / *size as f32;
            let norm = float(*bias) + float(factor) * total;
            divided(load(te, operands[0], at)?, call(MathFn::Pow, vec![norm, float(*beta)])?)
        }
        Op::Gemm { alpha, beta, .. } => {
            let scaled = if (alpha - 1.0).abs() < f32::EPSILON { total } else { float(*alpha) * total };
            match operands {
                [_, _, added] => {
                    let added = load_broadcast(te, *added, at)?;
                    scaled + if (beta - 1.0).abs() < f32::EPSILON { added } else { float(*beta) * added }
                }
                _ => scaled,
            }
        }
        Op::Unary(function) => unary(*function, load(te, operands[0], at)?)?,
        Op::Binary(function) => {
            let (a, b) = (load_broadcast(te, operands[0], at)?, load_broadcast(te, operands[1], at)?);
            Expr::binary(
                match function {
                    Binary::Add => BinaryOp::Add,
                    Binary::Sub => BinaryOp::Sub,
                    Binary::Mul => BinaryOp::Mul,
                    Binary::Div => BinaryOp::Div,
                },
                a,
                b,
            )
        }
        Op::Sum => {
            let first = load(te, operands[0], at)?;
            operands[1..].iter().try_fold(first, |sum, operand| Ok::<_, Diagnostic>(sum + load(te, *operand, at)?))?
        }
        Op::Concat { axis } => joined(te, *axis, operands, at)?,
        Op::BatchNormalization { epsilon } => {
            let [x, scale, bias, mean, variance] = operands else {
                return Err(Diagnostic::error("network-kernel", None, "a normalization has five operands"));
            };
            let channel = |operand: &Bound<'_>| load(te, *operand, &at[1..2]);
            let deviation = call(MathFn::Sqrt, vec![channel(variance)? + float(*epsilon)])?;
            divided(load(te, *x, at)? - channel(mean)?, deviation) * channel(scale)? + channel(bias)?
        }
        Op::Transpose { order } => {
            let mut own = at.to_vec();
            order.iter().zip(at).for_each(|(&axis, coord)| own[axis] = coord.clone());
            load(te, operands[0], &own)?
        }
        Op::Pad { before, value, .. } => {
            let shape = &operands[0].1.shape;
            let mut own = at.to_vec();
            let mut inside: Option<Expr> = None;
            for (axis, (coord, &front)) in at.iter().zip(before).enumerate() {
                let Coord::Whole(place) = coord else { continue };
                own[axis] = Coord::Whole(minus(place.clone(), front));
                let condition = within(place, front, shape[axis].saturating_add(front));
                inside = Some(inside.map_or(condition.clone(), |all| all.and(condition)));
            }
            let read = load(te, operands[0], &own)?;
            inside.map_or(Ok(read.clone()), |inside| if_then_else(inside, read, float(*value)))?
        }
        // The same elements: a copy into another arrangement.
        Op::Reshape | Op::Softmax { .. } => load(te, operands[0], at)?,
    })
}

/// Position of a window plus position in it, in a direction: without the padding in front.
fn slid(window: &Window, direction: usize, at: &Coord, within: &Expr) -> Expr {
    let times = |expr: Expr, factor: u64| if factor == 1 { expr } else { expr * int(factor) };
    times(at.whole(), window.strides[direction]) + times(within.clone(), window.dilations[direction])
}

/// `at - pad`
fn minus(at: Expr, pad: u64) -> Expr {
    if pad == 0 { at } else { at - int(pad) }
}

fn divided(a: Expr, b: Expr) -> Expr {
    Expr::binary(BinaryOp::Div, a, b)
}

/// The element of an image that a window reads, or `outside` where the window is over padding.
fn windowed(
    te: &Builder,
    window: &Window,
    image: Bound<'_>,
    (batch, channel): (&Coord, Coord),
    (at, within_window): (&[Coord], [&Expr; 2]),
    outside: f32,
) -> Defined<Expr> {
    let mut own = vec![batch.clone(), channel];
    let mut inside: Option<Expr> = None;
    for direction in 0..2 {
        let place = slid(window, direction, &at[2 + direction], within_window[direction]);
        let (pad, extent) = (window.pads[direction], image.1.shape[2 + direction]);
        if pad > 0 || window.pads[direction + 2] > 0 {
            let condition = within(&place, pad, extent.saturating_add(pad));
            inside = Some(inside.map_or(condition.clone(), |all| all.and(condition)));
        }
        own.push(Coord::Whole(minus(place, pad)));
    }
    let read = load(te, image, &own)?;
    inside.map_or(Ok(read.clone()), |inside| if_then_else(inside, read, float(outside)))
}

fn convolution(te: &Builder, window: &Window, groups: u64, operands: &[Bound<'_>], at: &[Coord]) -> Defined<StageBody> {
    let (image, weight) = (operands[0], operands[1]);
    let (channels, filters) = (image.1.shape[1], weight.1.shape[0]);
    let (per_group, filters_per_group) = (channels / groups, filters / groups);
    let rows = reduce_axis("ry", &Expr::int(0), &int(window.kernel[0]))?;
    let columns = reduce_axis("rx", &Expr::int(0), &int(window.kernel[1]))?;
    let (row, column) = (rows.index(), columns.index());
    let mut axes = vec![rows.axis, columns.axis];
    let (channel, within_group) = if per_group == 1 && filters_per_group == 1 {
        // Depthwise: the filter is the channel, so that whole texels are read.
        (at[1].clone(), Expr::int(0))
    } else {
        let group = match &at[1] {
            _ if groups == 1 => None,
            Coord::Split { block, .. } if filters_per_group % 4 == 0 => {
                Some(block.clone().floor_div(int(filters_per_group / 4)))
            }
            filter @ (Coord::Split { .. } | Coord::Whole(_)) => Some(filter.whole().floor_div(int(filters_per_group))),
        };
        let behind =
            |first: u64, index: &Expr| group.clone().map_or(index.clone(), |group| group * int(first) + index.clone());
        if image.1.arrangement == Arrangement::Channels4 && per_group % 4 == 0 {
            // The channels of a texel come one after the other, so that it is read once for all of them.
            let blocks = reduce_axis("rc", &Expr::int(0), &int(per_group / 4))?;
            let lanes = reduce_axis("rl", &Expr::int(0), &int(4))?;
            let (block, lane) = (blocks.index(), lanes.index());
            axes.insert(0, blocks.axis);
            axes.push(lanes.axis);
            let channel = Coord::Split { block: behind(per_group / 4, &block), lane: lane.clone() };
            (channel, block * int(4) + lane)
        } else {
            let step = reduce_axis("rc", &Expr::int(0), &int(per_group))?;
            let index = step.index();
            axes.insert(0, step.axis);
            (Coord::Whole(behind(per_group, &index)), index)
        }
    };
    let read = windowed(te, window, image, (&at[0], channel), (at, [&row, &column]), 0.0)?;
    let of_weight = [at[1].clone(), Coord::Whole(within_group), Coord::Whole(row), Coord::Whole(column)];
    reduce(ReduceOp::Sum, read * load(te, weight, &of_weight)?, &axes)
}

fn pooled(
    te: &Builder,
    op: ReduceOp,
    window: &Window,
    image: Bound<'_>,
    at: &[Coord],
    outside: f32,
) -> Defined<StageBody> {
    let rows = reduce_axis("ry", &Expr::int(0), &int(window.kernel[0]))?;
    let columns = reduce_axis("rx", &Expr::int(0), &int(window.kernel[1]))?;
    let place = (at, [&rows.index(), &columns.index()]);
    let read = windowed(te, window, image, (&at[0], at[1].clone()), place, outside)?;
    reduce(op, read, &[rows.axis, columns.axis])
}

/// The number of elements that a mean is over.
fn count(window: &Window, counts_padding: bool, shape: &[u64], at: &[Coord]) -> Expr {
    let is_padded = window.pads.iter().any(|&pad| pad > 0);
    if counts_padding || !is_padded {
        return cast(int(window.kernel[0] * window.kernel[1]), FLOAT);
    }
    let along = |direction: usize| {
        let (pad, extent) = (window.pads[direction], shape[2 + direction]);
        let first = slid(window, direction, &at[2 + direction], &Expr::int(0));
        // The number of steps from the first element of the window that lead no further than `end`.
        let dilation = window.dilations[direction];
        let steps = |end: u64| match dilation {
            1 => int(end) - first.clone(),
            _ => (int(end + dilation - 1) - first.clone()).floor_div(int(dilation)),
        };
        let begin = Expr::binary(BinaryOp::Max, steps(pad), Expr::int(0));
        let end = Expr::binary(BinaryOp::Min, steps(extent + pad), int(window.kernel[direction]));
        end - begin
    };
    cast(along(0) * along(1), FLOAT)
}

fn product(te: &Builder, transposed: [bool; 2], operands: &[Bound<'_>], at: &[Coord]) -> Defined<StageBody> {
    let (a, b) = (operands[0], operands[1]);
    let depth = a.1.shape[usize::from(!transposed[0])];
    let step = reduce_axis("rk", &Expr::int(0), &int(depth))?;
    let inner = Coord::Whole(step.index());
    let pair = |outer: &Coord, is_inner_first: bool| {
        if is_inner_first { [inner.clone(), outer.clone()] } else { [outer.clone(), inner.clone()] }
    };
    let left = load(te, a, &pair(&at[0], transposed[0]))?;
    let right = load(te, b, &pair(&at[1], !transposed[1]))?;
    reduce(ReduceOp::Sum, left * right, &[step.axis])
}

/// A function of one element. `Relu` and `Clip` keep a NaN, which the operators `min` and `max` would drop; of two contradictory
/// limits the upper one counts.
fn unary(function: Unary, x: Expr) -> Defined<Expr> {
    let chosen = |cond: Expr, a: Expr, b: Expr| Expr::Select(cond.into(), a.into(), b.into());
    Ok(match function {
        Unary::Relu => chosen(x.clone().lt(float(0.0)), float(0.0), x),
        Unary::Clip { low, high } => {
            let raised = chosen(x.clone().lt(float(low)), float(low), x);
            chosen(float(high).lt(raised.clone()), float(high), raised)
        }
        Unary::Sigmoid => call(MathFn::Sigmoid, vec![x])?,
        Unary::Tanh => call(MathFn::Tanh, vec![x])?,
        Unary::LeakyRelu { alpha } => chosen(x.clone().lt(float(0.0)), x.clone() * float(alpha), x),
    })
}

/// The element of the operand in whose part of the axis the coordinate lies.
fn joined(te: &Builder, axis: usize, operands: &[Bound<'_>], at: &[Coord]) -> Defined<Expr> {
    let mut begins = vec![0u64];
    for (_, operand) in operands {
        begins.push(begins[begins.len() - 1] + operand.shape[axis]);
    }
    let mut value: Option<Expr> = None;
    for (number, operand) in operands.iter().enumerate().rev() {
        let begin = begins[number];
        let mut own = at.to_vec();
        own[axis] = match &at[axis] {
            Coord::Whole(place) => Coord::Whole(minus(place.clone(), begin)),
            Coord::Split { block, lane } => Coord::Split { block: minus(block.clone(), begin / 4), lane: lane.clone() },
        };
        let read = load(te, *operand, &own)?;
        value = Some(match value {
            None => read,
            Some(behind) => {
                let is_before = match &at[axis] {
                    Coord::Whole(place) => place.clone().lt(int(begins[number + 1])),
                    Coord::Split { block, .. } => block.clone().lt(int(begins[number + 1] / 4)),
                };
                if_then_else(is_before, read, behind)?
            }
        });
    }
    value.ok_or_else(|| Diagnostic::error("network-kernel", None, "nothing is joined"))
}
