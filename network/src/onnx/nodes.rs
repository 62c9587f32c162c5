//! Turns the attributes of a node into an [`Op`].
//!
//! Nodes that only describe shapes or name a value again (`Constant`, `ConstantOfShape`, `Dropout`, `Identity`) are not operators;
//! [`super`] resolves them.

use super::attributes::Attributes;
use crate::model::{Binary, Op, Unary, Window};

/// The values that a node reads, as far as the meaning of its attributes depends on them.
pub(super) struct Operands<'a> {
    /// The shape of each operand; `None` for an optional one that is absent.
    pub(super) shapes: &'a [Option<&'a [u64]>],
    /// The integers of each operand that is a constant of integers.
    pub(super) integers: &'a [Option<&'a [i64]>],
    /// The only element of each operand that is a constant with one float.
    pub(super) scalars: &'a [Option<f32>],
    /// The version of the operator set.
    pub(super) opset: i64,
}

/// An operator, and the shape of the result where the node states it.
pub(super) struct Decoded {
    pub(super) op: Op,
    /// The shape, for [`Op::Reshape`].
    pub(super) shape: Option<Vec<u64>>,
    /// How many of the operands are data; the others were evaluated.
    pub(super) n_data: usize,
}

/// Whether an operator is supported at all.
pub(super) fn is_known(op_type: &str) -> bool {
    OPERATORS.contains(&op_type)
}

/// The supported operators.
pub(super) const OPERATORS: &[&str] = &[
    "Add",
    "AveragePool",
    "BatchNormalization",
    "Clip",
    "Concat",
    "Constant",
    "ConstantOfShape",
    "Conv",
    "Div",
    "Dropout",
    "Flatten",
    "Gemm",
    "GlobalAveragePool",
    "Identity",
    "LRN",
    "LeakyRelu",
    "MatMul",
    "MaxPool",
    "Mul",
    "Pad",
    "Relu",
    "Reshape",
    "Sigmoid",
    "Softmax",
    "Squeeze",
    "Sub",
    "Sum",
    "Tanh",
    "Transpose",
    "Unsqueeze",
];

/// Decodes a node. `None` if the operator is not supported.
pub(super) fn decode(
    op_type: &str,
    attributes: &mut Attributes<'_>,
    operands: &Operands<'_>,
) -> Result<Option<Decoded>, String> {
    let rank = operands.shapes.first().copied().flatten().map_or(0, <[u64]>::len);
    let op = match op_type {
        "Conv" => conv(attributes, operands)?,
        "MaxPool" => {
            attributes.only("storage_order", 0)?;
            Op::MaxPool(window(attributes, operands, None)?)
        }
        "AveragePool" => average_pool(attributes, operands)?,
        "GlobalAveragePool" => Op::GlobalAveragePool,
        "Relu" => Op::Unary(Unary::Relu),
        "Sigmoid" => Op::Unary(Unary::Sigmoid),
        "Tanh" => Op::Unary(Unary::Tanh),
        "LeakyRelu" => Op::Unary(Unary::LeakyRelu { alpha: attributes.float("alpha", 0.01) }),
        "Clip" => return clip(attributes, operands).map(Some),
        "Add" => Op::Binary(Binary::Add),
        "Sub" => Op::Binary(Binary::Sub),
        "Mul" => Op::Binary(Binary::Mul),
        "Div" => Op::Binary(Binary::Div),
        "Sum" => Op::Sum,
        "Concat" => Op::Concat { axis: axis(attributes.int("axis", 1), rank)? },
        "BatchNormalization" => {
            attributes.only("training_mode", 0)?;
            attributes.only("spatial", 1)?;
            attributes.ignore(&["momentum"]);
            Op::BatchNormalization { epsilon: attributes.float("epsilon", 1e-5) }
        }
        "LRN" => Op::Lrn {
            size: u64::try_from(attributes.int("size", 0)).ok().filter(|&size| size > 0).ok_or("it has no size")?,
            alpha: attributes.float("alpha", 1e-4),
            beta: attributes.float("beta", 0.75),
            bias: attributes.float("bias", 1.0),
        },
        "Gemm" => Op::Gemm {
            alpha: attributes.float("alpha", 1.0),
            beta: attributes.float("beta", 1.0),
            transpose_a: attributes.int("transA", 0) != 0,
            transpose_b: attributes.int("transB", 0) != 0,
        },
        "MatMul" => Op::MatMul,
        "Softmax" => softmax(attributes, operands.opset, rank)?,
        "Reshape" | "Flatten" | "Squeeze" | "Unsqueeze" => {
            let shape = reshaped(op_type, attributes, operands)?;
            return Ok(Some(Decoded { op: Op::Reshape, shape: Some(shape), n_data: 1 }));
        }
        "Transpose" => Op::Transpose {
            order: match attributes.ints("perm") {
                Some(order) => order.iter().map(|&at| axis(at, rank)).collect::<Result<_, _>>()?,
                None => (0..rank).rev().collect(),
            },
        },
        "Pad" => return pad(attributes, operands, rank).map(Some),
        _ => return Ok(None),
    };
    Ok(Some(Decoded { op, shape: None, n_data: operands.shapes.len() }))
}

/// An axis, which may be counted from the end.
fn axis(given: i64, rank: usize) -> Result<usize, String> {
    let limit = i64::try_from(rank).unwrap_or(i64::MAX);
    let counted = if given < 0 { given.checked_add(limit) } else { Some(given) };
    let at = counted.filter(|at| (0..limit).contains(at)).and_then(|at| usize::try_from(at).ok());
    at.ok_or_else(|| format!("axis {given} is none of {rank} axes"))
}

fn conv(attributes: &mut Attributes<'_>, operands: &Operands<'_>) -> Result<Op, String> {
    let groups = attributes.int("group", 1);
    let groups = u64::try_from(groups).map_err(|_| format!("it has {groups} groups"))?;
    let kernel = match operands.shapes.get(1).copied().flatten() {
        Some([_, _, rows, columns]) => Some([*rows, *columns]),
        _ => return Err("its weights have no 4 axes; only 2-d convolutions are supported".to_owned()),
    };
    Ok(Op::Conv { window: window(attributes, operands, kernel)?, groups })
}

fn average_pool(attributes: &mut Attributes<'_>, operands: &Operands<'_>) -> Result<Op, String> {
    let counts_padding = attributes.int("count_include_pad", 0) != 0;
    if counts_padding {
        // With both, releases of ONNX disagree about the divisor of the last window.
        attributes.only("ceil_mode", 0)?;
    }
    Ok(Op::AveragePool { window: window(attributes, operands, None)?, counts_padding })
}

/// The window of a convolution or a pool. `kernel` replaces an absent `kernel_shape`.
fn window(
    attributes: &mut Attributes<'_>,
    operands: &Operands<'_>,
    kernel: Option<[u64; 2]>,
) -> Result<Window, String> {
    let kernel = match (attributes.has("kernel_shape"), kernel) {
        (false, Some(kernel)) => kernel,
        (false, None) => return Err("it has no kernel_shape".to_owned()),
        (true, _) => attributes.sizes("kernel_shape", 1)?,
    };
    let mut window = Window {
        kernel,
        strides: attributes.sizes("strides", 1)?,
        dilations: attributes.sizes("dilations", 1)?,
        pads: attributes.sizes("pads", 0)?,
    };
    if window.kernel.iter().chain(&window.strides).chain(&window.dilations).any(|&size| size == 0) {
        return Err("a window, stride or dilation is 0".to_owned());
    }
    let is_ceil = attributes.int("ceil_mode", 0) != 0;
    let auto = attributes.text("auto_pad").unwrap_or(b"NOTSET");
    let Some(&[_, _, rows, columns]) = operands.shapes.first().copied().flatten() else {
        return Err("its operand has no 4 axes; only windows over images are supported".to_owned());
    };
    for (direction, extent) in [rows, columns].into_iter().enumerate() {
        padded(&mut window, direction, extent, auto)?;
        if is_ceil {
            rounded_up(&mut window, direction, extent)?;
        }
    }
    Ok(window)
}

/// Sets the padding in one direction as `auto_pad` says.
fn padded(window: &mut Window, direction: usize, extent: u64, auto: &[u8]) -> Result<(), String> {
    let is_upper = match auto {
        b"NOTSET" | b"" => return Ok(()),
        b"VALID" => {
            window.pads[direction] = 0;
            window.pads[direction + 2] = 0;
            return Ok(());
        }
        b"SAME_UPPER" => true,
        b"SAME_LOWER" => false,
        other => return Err(format!("auto_pad is `{}`", String::from_utf8_lossy(other))),
    };
    let total = (|| {
        let covered = window.dilations[direction].checked_mul(window.kernel[direction] - 1)?.checked_add(1)?;
        let stride = window.strides[direction];
        let last = extent.div_ceil(stride).checked_sub(1)?.checked_mul(stride)?.checked_add(covered)?;
        Some(last.saturating_sub(extent))
    })();
    let total = total.ok_or("its window is too large")?;
    let (small, large) = (total / 2, total - total / 2);
    (window.pads[direction], window.pads[direction + 2]) = if is_upper { (small, large) } else { (large, small) };
    Ok(())
}

/// Adds padding behind so that a last window that fits only in part counts, provided that it begins in the operand or in the padding
/// in front of it.
fn rounded_up(window: &mut Window, direction: usize, extent: u64) -> Result<(), String> {
    let pads = [window.pads[direction], window.pads[direction + 2]];
    let behind = (|| {
        let covered = window.dilations[direction].checked_mul(window.kernel[direction] - 1)?.checked_add(1)?;
        let begin = extent.checked_add(pads[0])?;
        let padded = begin.checked_add(pads[1])?;
        let stride = window.strides[direction];
        let last = padded.checked_sub(covered)?.div_ceil(stride).checked_mul(stride)?;
        if last >= begin {
            return Some(pads[1]);
        }
        Some(last.checked_add(covered)?.checked_sub(begin)?.max(pads[1]))
    })();
    window.pads[direction + 2] = behind.ok_or("its window does not fit its operand")?;
    Ok(())
}

/// Limits are attributes up to version 10, and operands since version 11.
fn clip(attributes: &mut Attributes<'_>, operands: &Operands<'_>) -> Result<Decoded, String> {
    let mut limit = |at: usize, name: &'static str, default: f32| match operands.shapes.get(at) {
        Some(Some(_)) => {
            let scalar = operands.scalars.get(at).copied().flatten();
            scalar.ok_or_else(|| format!("its operand `{name}` is no constant"))
        }
        Some(None) | None => Ok(attributes.float(name, default)),
    };
    let (low, high) = (limit(1, "min", f32::MIN)?, limit(2, "max", f32::MAX)?);
    Ok(Decoded { op: Op::Unary(Unary::Clip { low, high }), shape: None, n_data: 1 })
}

/// Up to version 12, Softmax takes all axes from `axis` on together; since version 13 the axis alone.
fn softmax(attributes: &mut Attributes<'_>, opset: i64, rank: usize) -> Result<Op, String> {
    let default = if opset < 13 { 1 } else { -1 };
    let first = axis(attributes.int("axis", default), rank)?;
    Ok(Op::Softmax { first, end: if opset < 13 { rank } else { first + 1 } })
}

/// The shape that a node of the family of Reshape states.
fn reshaped(op_type: &str, attributes: &mut Attributes<'_>, operands: &Operands<'_>) -> Result<Vec<u64>, String> {
    let from = operands.shapes.first().copied().flatten().ok_or("it has no operand")?;
    let count: u64 = from.iter().product();
    let stated = |what: &str| operands.integers.get(1).copied().flatten().ok_or(format!("its {what} is no constant"));
    match op_type {
        "Flatten" => {
            let given = attributes.int("axis", 1);
            // An axis behind the last one has no negative name.
            let is_last = usize::try_from(given) == Ok(from.len());
            let at = if is_last { from.len() } else { axis(given, from.len())? };
            let outer: u64 = from[..at].iter().product();
            Ok(vec![outer, from[at..].iter().product()])
        }
        "Reshape" => {
            attributes.only("allowzero", 0)?;
            with_gaps(stated("shape")?, from, count)
        }
        _ => {
            let axes = match attributes.ints("axes") {
                Some(axes) => axes,
                None if operands.shapes.len() > 1 => stated("list of axes")?,
                None => &[],
            };
            if op_type == "Unsqueeze" { unsqueezed(axes, from) } else { squeezed(axes, from) }
        }
    }
}

/// A shape in which 0 copies an extent and -1 stands for what remains.
fn with_gaps(stated: &[i64], from: &[u64], count: u64) -> Result<Vec<u64>, String> {
    let wrong = || format!("{from:?} cannot be reshaped to {stated:?}");
    let mut shape = Vec::new();
    let mut gap = None;
    for (at, &extent) in stated.iter().enumerate() {
        shape.push(match extent {
            0 => *from.get(at).ok_or_else(wrong)?,
            -1 if gap.replace(at).is_none() => 1,
            _ => u64::try_from(extent).map_err(|_| wrong())?,
        });
    }
    let known = shape.iter().try_fold(1u64, |product, &extent| product.checked_mul(extent)).ok_or_else(wrong)?;
    if let Some(gap) = gap {
        shape[gap] = count.checked_div(known).ok_or_else(wrong)?;
    }
    let total = shape.iter().try_fold(1u64, |product, &extent| product.checked_mul(extent));
    if total == Some(count) { Ok(shape) } else { Err(wrong()) }
}

fn unsqueezed(axes: &[i64], from: &[u64]) -> Result<Vec<u64>, String> {
    let rank = from.len().saturating_add(axes.len());
    let mut added = axes.iter().map(|&at| axis(at, rank)).collect::<Result<Vec<_>, _>>()?;
    added.sort_unstable();
    added.dedup();
    if added.len() != axes.len() {
        return Err(format!("the axes {axes:?} repeat one"));
    }
    let mut rest = from.iter();
    Ok((0..rank).map(|at| if added.contains(&at) { 1 } else { rest.next().copied().unwrap_or(1) }).collect())
}

fn squeezed(axes: &[i64], from: &[u64]) -> Result<Vec<u64>, String> {
    let removed = axes.iter().map(|&at| axis(at, from.len())).collect::<Result<Vec<_>, _>>()?;
    if let Some(&at) = removed.iter().find(|&&at| from[at] != 1) {
        return Err(format!("axis {at} of {from:?} is not 1"));
    }
    let stays = |(at, extent): &(usize, &u64)| if axes.is_empty() { **extent != 1 } else { !removed.contains(at) };
    Ok(from.iter().enumerate().filter(stays).map(|(_, extent)| *extent).collect())
}

/// Pads are an attribute up to version 10, and operands since version 11.
fn pad(attributes: &mut Attributes<'_>, operands: &Operands<'_>, rank: usize) -> Result<Decoded, String> {
    let mode = attributes.text("mode").unwrap_or(b"constant");
    if mode != b"constant" && !mode.is_empty() {
        return Err(format!("its mode is `{}`, and only `constant` is supported", String::from_utf8_lossy(mode)));
    }
    if operands.shapes.len() > 3 {
        return Err("it states axes, which is not supported".to_owned());
    }
    let pads = match attributes.ints("pads") {
        Some(pads) => pads,
        None => operands.integers.get(1).copied().flatten().ok_or("its list of pads is no constant")?,
    };
    let value = match operands.shapes.get(2) {
        Some(Some(_)) => operands.scalars[2].ok_or("its value is no constant")?,
        Some(None) | None => attributes.float("value", 0.0),
    };
    let sizes = super::tensors::shape_of(pads).map_err(|_| format!("pads are {pads:?}; cropping is not supported"))?;
    if sizes.len() != 2 * rank {
        return Err(format!("{} pads are given for {rank} axes", sizes.len()));
    }
    let (before, after) = (sizes[..rank].to_vec(), sizes[rank..].to_vec());
    Ok(Decoded { op: Op::Pad { before, after, value }, shape: None, n_data: 1 })
}
