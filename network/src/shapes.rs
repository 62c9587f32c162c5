//! Shape inference: the shape of what a node computes, from the shapes of its operands.
//!
//! The sizes come from a file that may be hostile, so that all arithmetic is checked, and every result has at least one and
//! at most [`MAX_ELEMENTS`] elements.

use crate::model::{Op, Window};

/// The most elements of a tensor.
pub const MAX_ELEMENTS: u64 = 1 << 40;

/// Returns the shape of the result, or what is wrong with the operands. The shape of [`Op::Reshape`] is stated by its node and is not
/// inferred here.
pub fn infer(op: &Op, operands: &[&[u64]]) -> Result<Vec<u64>, String> {
    let first = *operands.first().ok_or("it has no operand")?;
    let shape = match op {
        Op::Conv { window, groups } => conv(window, *groups, operands)?,
        Op::MaxPool(window) | Op::AveragePool { window, .. } => {
            let [n, c, rows, columns] = four(first)?;
            let [rows, columns] = slid(window, [rows, columns])?;
            vec![n, c, rows, columns]
        }
        Op::GlobalAveragePool => {
            let [n, c, ..] = four(first)?;
            vec![n, c, 1, 1]
        }
        Op::Unary(_) | Op::Softmax { .. } => first.to_vec(),
        Op::Lrn { .. } => four(first)?.to_vec(),
        Op::Binary(_) => match operands {
            [a, b] => broadcast(a, b)?,
            _ => return Err(format!("it has {} operands instead of 2", operands.len())),
        },
        Op::Sum => match operands.iter().find(|other| **other != first) {
            Some(other) => return Err(format!("its operands have the shapes {first:?} and {other:?}")),
            None => first.to_vec(),
        },
        Op::Concat { axis } => concatenated(*axis, operands)?,
        Op::BatchNormalization { .. } => {
            let [_, c, ..] = four(first)?;
            match operands[1..].iter().find(|other| ***other != [c]) {
                Some(other) => return Err(format!("an operand for {c} channels has the shape {other:?}")),
                None => first.to_vec(),
            }
        }
        Op::Gemm { transpose_a, transpose_b, .. } => gemm([*transpose_a, *transpose_b], operands)?,
        Op::MatMul => gemm([false, false], operands)?,
        Op::Reshape => return Err("its shape is stated, not inferred".to_owned()),
        Op::Transpose { order } => {
            let mut sorted = order.clone();
            sorted.sort_unstable();
            if !sorted.into_iter().eq(0..first.len()) {
                return Err(format!("{order:?} is no order of {} axes", first.len()));
            }
            order.iter().map(|&axis| first[axis]).collect()
        }
        Op::Pad { before, after, .. } => {
            if before.len() != first.len() || after.len() != first.len() {
                return Err(format!("it pads {} of {} axes", before.len().min(after.len()), first.len()));
            }
            let sum = |((a, b), c): ((&u64, &u64), &u64)| a.checked_add(*b)?.checked_add(*c);
            let padded = first.iter().zip(before).zip(after).map(sum);
            padded.collect::<Option<_>>().ok_or("an extent is too large")?
        }
    };
    checked(shape)
}

/// A shape with at least one and not too many elements.
pub fn checked(shape: Vec<u64>) -> Result<Vec<u64>, String> {
    let count = shape.iter().try_fold(1u64, |product, &extent| product.checked_mul(extent));
    match count {
        Some(1..=MAX_ELEMENTS) => Ok(shape),
        Some(0) => Err(format!("the shape {shape:?} has no elements")),
        Some(_) | None => Err(format!("the shape {shape:?} has more than 2^40 elements")),
    }
}

/// The extents of an image: batch, channels, rows, columns.
fn four(shape: &[u64]) -> Result<[u64; 4], String> {
    shape.try_into().map_err(|_| format!("its operand has {} axes instead of 4: {shape:?}", shape.len()))
}

/// The number of windows in each direction.
fn slid(window: &Window, extents: [u64; 2]) -> Result<[u64; 2], String> {
    let along = |axis: usize| {
        let [kernel, stride, dilation] = [window.kernel[axis], window.strides[axis], window.dilations[axis]];
        let padded = extents[axis].checked_add(window.pads[axis])?.checked_add(window.pads[axis + 2])?;
        let covered = dilation.checked_mul(kernel.checked_sub(1)?)?.checked_add(1)?;
        padded.checked_sub(covered)?.checked_div(stride)?.checked_add(1)
    };
    match (along(0), along(1)) {
        (Some(rows), Some(columns)) => Ok([rows, columns]),
        _ => Err(format!("the window {:?} with padding {:?} does not fit {extents:?}", window.kernel, window.pads)),
    }
}

fn conv(window: &Window, groups: u64, operands: &[&[u64]]) -> Result<Vec<u64>, String> {
    let (data, weight, bias) = match operands {
        [data, weight] => (four(data)?, four(weight)?, None),
        [data, weight, bias] => (four(data)?, four(weight)?, Some(*bias)),
        _ => return Err(format!("it has {} operands instead of 2 or 3", operands.len())),
    };
    let [n, c, rows, columns] = data;
    let [m, per_group, kernel_rows, kernel_columns] = weight;
    if groups == 0 || c % groups != 0 || m % groups != 0 || c / groups != per_group {
        return Err(format!("{c} channels in {groups} groups do not fit weights of the shape {weight:?}"));
    }
    if window.kernel != [kernel_rows, kernel_columns] {
        return Err(format!("the attribute kernel_shape is {:?}, the weights are {weight:?}", window.kernel));
    }
    if bias.is_some_and(|bias| *bias != [m]) {
        return Err(format!("the bias has the shape {bias:?} and there are {m} filters"));
    }
    let [rows, columns] = slid(window, [rows, columns])?;
    Ok(vec![n, m, rows, columns])
}

/// The shape of NumPy's broadcasting.
pub fn broadcast(a: &[u64], b: &[u64]) -> Result<Vec<u64>, String> {
    let rank = a.len().max(b.len());
    let extent = |shape: &[u64], axis: usize| (axis + shape.len()).checked_sub(rank).map_or(1, |at| shape[at]);
    let both = |axis| match (extent(a, axis), extent(b, axis)) {
        (p, q) if p == q || q == 1 => Some(p),
        (1, q) => Some(q),
        _ => None,
    };
    (0..rank).map(both).collect::<Option<_>>().ok_or_else(|| format!("{a:?} and {b:?} cannot be broadcast"))
}

fn concatenated(axis: usize, operands: &[&[u64]]) -> Result<Vec<u64>, String> {
    let mut shape = operands[0].to_vec();
    if axis >= shape.len() {
        return Err(format!("its operands have {} axes, and it joins them along axis {axis}", shape.len()));
    }
    for other in &operands[1..] {
        let same = |(at, (p, q)): (usize, (&u64, &u64))| at == axis || p == q;
        if other.len() != shape.len() || !shape.iter().zip(*other).enumerate().all(same) {
            return Err(format!("{:?} and {other:?} cannot be joined along axis {axis}", operands[0]));
        }
        shape[axis] = shape[axis].checked_add(other[axis]).ok_or("an extent is too large")?;
    }
    Ok(shape)
}

fn gemm([transpose_a, transpose_b]: [bool; 2], operands: &[&[u64]]) -> Result<Vec<u64>, String> {
    let matrix = |shape: &[u64], transposed: bool| match *shape {
        [rows, columns] if transposed => Ok([columns, rows]),
        [rows, columns] => Ok([rows, columns]),
        _ => Err(format!("an operand of a product has the shape {shape:?}, and only matrices are supported")),
    };
    let (a, b, c) = match operands {
        [a, b] => (a, b, None),
        [a, b, c] => (a, b, Some(*c)),
        _ => return Err(format!("it has {} operands instead of 2 or 3", operands.len())),
    };
    let ([rows, depth], [depth_b, columns]) = (matrix(a, transpose_a)?, matrix(b, transpose_b)?);
    if depth != depth_b {
        return Err(format!("matrices of the shapes {a:?} and {b:?} cannot be multiplied"));
    }
    let shape = vec![rows, columns];
    match c {
        Some(c) if broadcast(&shape, c)? != shape => Err(format!("{c:?} cannot be broadcast to {shape:?}")),
        Some(_) | None => Ok(shape),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(kernel: [u64; 2], strides: [u64; 2], pads: [u64; 4]) -> Window {
        Window { kernel, strides, dilations: [1, 1], pads }
    }

    #[test]
    fn a_convolution_has_as_many_windows_as_fit() {
        let op = Op::Conv { window: window([3, 5], [2, 3], [1, 0, 1, 2]), groups: 1 };
        assert_eq!(infer(&op, &[&[2, 6, 13, 11], &[10, 6, 3, 5], &[10]]), Ok(vec![2, 10, 7, 3]));
        assert!(infer(&op, &[&[2, 7, 13, 11], &[10, 6, 3, 5]]).is_err());
        assert!(infer(&op, &[&[2, 6, 13, 11], &[10, 6, 5, 3]]).is_err());
        assert!(infer(&op, &[&[2, 6, 13, 2], &[10, 6, 3, 5]]).is_err());
    }

    #[test]
    fn hostile_sizes_are_errors() {
        let huge = u64::MAX;
        let op = Op::MaxPool(window([1, 1], [1, 1], [huge, 0, huge, 0]));
        assert!(infer(&op, &[&[1, 1, 3, 3]]).is_err());
        assert!(infer(&Op::MaxPool(window([0, 1], [1, 1], [0; 4])), &[&[1, 1, 3, 3]]).is_err());
        assert!(infer(&Op::MaxPool(window([1, 1], [0, 1], [0; 4])), &[&[1, 1, 3, 3]]).is_err());
        assert!(checked(vec![1 << 20, 1 << 21]).is_err());
        assert!(checked(vec![huge, huge]).is_err());
        assert!(checked(vec![3, 0]).is_err());
    }

    #[test]
    fn operands_are_broadcast_from_the_last_axis() {
        assert_eq!(broadcast(&[2, 3, 5, 7], &[3, 1, 1]), Ok(vec![2, 3, 5, 7]));
        assert_eq!(broadcast(&[], &[4]), Ok(vec![4]));
        assert!(broadcast(&[2, 3], &[3, 2]).is_err());
    }

    #[test]
    fn products_need_one_inner_extent() {
        let op = |transpose_b| Op::Gemm { alpha: 1.0, beta: 1.0, transpose_a: false, transpose_b };
        assert_eq!(infer(&op(true), &[&[2, 5], &[7, 5], &[7]]), Ok(vec![2, 7]));
        assert!(infer(&op(false), &[&[2, 5], &[7, 5]]).is_err());
        assert!(infer(&op(true), &[&[2, 5], &[7, 5], &[5]]).is_err());
    }
}
