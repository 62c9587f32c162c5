//! The operators a second time: plain loops over logical tensors, without kernels, arrangements and memory plans.
//!
//! An executed network is compared with these values, so that a constant that is packed wrongly, a texel that is read by the
//! wrong convention and a tensor whose memory was reused show as a difference at the first node that is affected. Sums are
//! made in float64, and each result is rounded to float32 once.

use crate::model::{Binary, Contents, Model, Node, Op, Unary, Window};

/// Returns the elements of each value, row-major; those of constants are left out, and so are values that no node computes.
///
/// `inputs` are the inputs of the model in their order.
///
/// # Errors
/// An input has another number of elements than its value, or an operand is missing.
pub fn evaluate(model: &Model, inputs: &[Vec<f32>]) -> Result<Vec<Option<Vec<f32>>>, String> {
    let mut values: Vec<Option<Vec<f32>>> = vec![None; model.values.len()];
    if inputs.len() != model.inputs.len() {
        return Err(format!("{} inputs are given, the model has {}", inputs.len(), model.inputs.len()));
    }
    for (&value, input) in model.inputs.iter().zip(inputs) {
        if u64::try_from(input.len()) != Ok(model.values[value].n_elements()) {
            let info = &model.values[value];
            return Err(format!("input `{}` has {} elements, its shape is {:?}", info.name, input.len(), info.shape));
        }
        values[value] = Some(input.clone());
    }
    for node in &model.nodes {
        let operands = node.inputs.iter().map(|&value| operand(model, &values, value));
        let operands = operands.collect::<Option<Vec<_>>>();
        let operands = operands.ok_or_else(|| format!("node `{}` reads a value that is not computed", node.name))?;
        let result = computed(model, node, &operands);
        values[node.output] = Some(result);
    }
    Ok(values)
}

/// A tensor of a node.
struct Array<'a> {
    shape: Vec<usize>,
    elements: Elements<'a>,
}

enum Elements<'a> {
    Given(&'a [f32]),
    Constant(&'a Contents),
}

fn operand<'a>(model: &'a Model, values: &'a [Option<Vec<f32>>], value: usize) -> Option<Array<'a>> {
    let info = &model.values[value];
    let elements = match &info.contents {
        Some(contents) => Elements::Constant(contents),
        None => Elements::Given(values[value].as_deref()?),
    };
    Some(Array { shape: sizes(&info.shape), elements })
}

fn sizes(shape: &[u64]) -> Vec<usize> {
    shape.iter().map(|&extent| usize::try_from(extent).unwrap_or(usize::MAX)).collect()
}

impl Array<'_> {
    fn at(&self, position: usize) -> f64 {
        let element = match &self.elements {
            Elements::Given(values) => values[position],
            Elements::Constant(contents) => contents.float(position).unwrap_or(f32::NAN),
        };
        element.into()
    }

    /// The element at indices, where an axis of extent 1 is repeated and missing axes are in front.
    fn broadcast(&self, indices: &[usize]) -> f64 {
        let own = &indices[indices.len() - self.shape.len()..];
        let position = own
            .iter()
            .zip(&self.shape)
            .fold(0, |sum, (&index, &extent)| sum * extent + if extent == 1 { 0 } else { index });
        self.at(position)
    }

    fn element(&self, indices: &[usize]) -> f64 {
        self.at(indices.iter().zip(&self.shape).fold(0, |sum, (&index, &extent)| sum * extent + index))
    }
}

/// Rounds a result.
#[expect(clippy::cast_possible_truncation, reason = "the rounding is the purpose")]
fn rounded(value: f64) -> f32 {
    value as f32
}

/// A size as a number.
#[expect(clippy::cast_precision_loss, reason = "sizes are below 2^40")]
fn number(size: usize) -> f64 {
    size as f64
}

/// The elements of a result from a function of their indices.
fn filled(shape: &[usize], mut element: impl FnMut(&[usize]) -> f64) -> Vec<f32> {
    let count: usize = shape.iter().product();
    let mut indices = vec![0; shape.len()];
    let mut result = Vec::with_capacity(count);
    for _ in 0..count {
        result.push(rounded(element(&indices)));
        for (index, &extent) in indices.iter_mut().zip(shape).rev() {
            *index += 1;
            if *index < extent {
                break;
            }
            *index = 0;
        }
    }
    result
}

fn computed(model: &Model, node: &Node, operands: &[Array<'_>]) -> Vec<f32> {
    let shape = sizes(&model.values[node.output].shape);
    let x = &operands[0];
    match &node.op {
        Op::Conv { window, groups } => {
            let groups = usize::try_from(*groups).unwrap_or(1);
            filled(&shape, |at| convolved(window, groups, operands, at, shape[1]))
        }
        Op::MaxPool(window) => filled(&shape, |at| {
            let mut largest = f64::NEG_INFINITY;
            each(window, &x.shape, at, |row, column, _| {
                largest = largest.max(x.element(&[at[0], at[1], row, column]));
            });
            largest
        }),
        Op::AveragePool { window, counts_padding } => filled(&shape, |at| {
            let (mut sum, mut count) = (0.0, 0);
            each(window, &x.shape, at, |row, column, _| {
                sum += x.element(&[at[0], at[1], row, column]);
                count += 1;
            });
            let all = usize::try_from(window.kernel[0] * window.kernel[1]).unwrap_or(usize::MAX);
            sum / number(if *counts_padding { all } else { count })
        }),
        Op::GlobalAveragePool => filled(&shape, |at| {
            let area = x.shape[2] * x.shape[3];
            let first = (at[0] * x.shape[1] + at[1]) * area;
            (first..first + area).map(|position| x.at(position)).sum::<f64>() / number(area)
        }),
        Op::Unary(function) => filled(&shape, |at| unary(*function, x.element(at))),
        Op::Binary(function) => filled(&shape, |at| {
            let (a, b) = (x.broadcast(at), operands[1].broadcast(at));
            match function {
                Binary::Add => a + b,
                Binary::Sub => a - b,
                Binary::Mul => a * b,
                Binary::Div => a / b,
            }
        }),
        Op::Sum => filled(&shape, |at| operands.iter().map(|operand| operand.element(at)).sum()),
        Op::Concat { axis } => filled(&shape, |at| {
            let mut at = at.to_vec();
            for operand in operands {
                if at[*axis] < operand.shape[*axis] {
                    return operand.element(&at);
                }
                at[*axis] -= operand.shape[*axis];
            }
            f64::NAN
        }),
        Op::BatchNormalization { epsilon } => filled(&shape, |at| {
            let [scale, bias, mean, variance] = [1, 2, 3, 4].map(|which: usize| operands[which].at(at[1]));
            (x.element(at) - mean) / (variance + f64::from(*epsilon)).sqrt() * scale + bias
        }),
        Op::Lrn { size, alpha, beta, bias } => filled(&shape, |at| {
            let size = usize::try_from(*size).unwrap_or(usize::MAX);
            let first = at[1].saturating_sub((size - 1) / 2);
            let end = (at[1] + (size - 1) - (size - 1) / 2).min(x.shape[1] - 1);
            let squares = (first..=end).map(|channel| x.element(&[at[0], channel, at[2], at[3]]).powi(2));
            let norm = f64::from(*bias) + f64::from(*alpha) / number(size) * squares.sum::<f64>();
            x.element(at) / norm.powf(f64::from(*beta))
        }),
        Op::Gemm { alpha, beta, transpose_a, transpose_b } => filled(&shape, |at| {
            let added = operands.get(2).map_or(0.0, |added| added.broadcast(at));
            let product = product(operands, [*transpose_a, *transpose_b], at);
            f64::from(*alpha) * product + f64::from(*beta) * added
        }),
        Op::MatMul => filled(&shape, |at| product(operands, [false, false], at)),
        Op::Softmax { first, end } => softmax(x, &shape, *first, *end),
        Op::Reshape => (0..shape.iter().product()).map(|position| rounded(x.at(position))).collect(),
        Op::Transpose { order } => filled(&shape, |at| {
            let mut own = at.to_vec();
            order.iter().zip(at).for_each(|(&axis, &index)| own[axis] = index);
            x.element(&own)
        }),
        Op::Pad { before, value, .. } => filled(&shape, |at| {
            let own = at.iter().zip(before).zip(&x.shape).map(|((&index, &front), &extent)| {
                index.checked_sub(usize::try_from(front).ok()?).filter(|&index| index < extent)
            });
            own.collect::<Option<Vec<_>>>().map_or(f64::from(*value), |own| x.element(&own))
        }),
    }
}

/// Calls a function with row, column and position in the window of each element of the operand that the window at `at` covers.
fn each(window: &Window, shape: &[usize], at: &[usize], mut visit: impl FnMut(usize, usize, usize)) {
    let [kernel, strides, dilations] = [window.kernel, window.strides, window.dilations]
        .map(|pair| pair.map(|size| usize::try_from(size).unwrap_or(0)));
    let pads = window.pads.map(|pad| usize::try_from(pad).unwrap_or(0));
    let place = |direction: usize, step: usize| {
        let place = at[2 + direction] * strides[direction] + step * dilations[direction];
        place.checked_sub(pads[direction]).filter(|&place| place < shape[2 + direction])
    };
    for row in 0..kernel[0] {
        let Some(y) = place(0, row) else { continue };
        for column in 0..kernel[1] {
            if let Some(x) = place(1, column) {
                visit(y, x, row * kernel[1] + column);
            }
        }
    }
}

fn convolved(window: &Window, groups: usize, operands: &[Array<'_>], at: &[usize], filters: usize) -> f64 {
    let (x, weight) = (&operands[0], &operands[1]);
    let per_group = x.shape[1] / groups;
    let first = at[1] / (filters / groups) * per_group;
    let area = weight.shape[2] * weight.shape[3];
    let mut sum = 0.0;
    each(window, &x.shape, at, |row, column, position| {
        for channel in 0..per_group {
            let read = x.element(&[at[0], first + channel, row, column]);
            sum += read * weight.at((at[1] * per_group + channel) * area + position);
        }
    });
    sum + operands.get(2).map_or(0.0, |bias| bias.at(at[1]))
}

fn product(operands: &[Array<'_>], transposed: [bool; 2], at: &[usize]) -> f64 {
    let (a, b) = (&operands[0], &operands[1]);
    let depth = a.shape[usize::from(!transposed[0])];
    let term = |k: usize| {
        let left = if transposed[0] { [k, at[0]] } else { [at[0], k] };
        let right = if transposed[1] { [at[1], k] } else { [k, at[1]] };
        a.element(&left) * b.element(&right)
    };
    (0..depth).map(term).sum()
}

fn unary(function: Unary, x: f64) -> f64 {
    match function {
        Unary::Relu if x < 0.0 => 0.0,
        Unary::Relu => x,
        // The upper limit counts if it is below the lower one, and a NaN is neither below nor above.
        Unary::Clip { high, .. } if x > high.into() => high.into(),
        Unary::Clip { low, high } if x < low.into() => low.min(high).into(),
        Unary::Clip { .. } => x,
        Unary::Sigmoid => 1.0 / (1.0 + (-x).exp()),
        Unary::Tanh => x.tanh(),
        Unary::LeakyRelu { alpha } => {
            if x < 0.0 {
                x * f64::from(alpha)
            } else {
                x
            }
        }
    }
}

fn softmax(x: &Array<'_>, shape: &[usize], first: usize, end: usize) -> Vec<f32> {
    let outer: usize = shape[..first].iter().product();
    let length: usize = shape[first..end].iter().product();
    let inner: usize = shape[end..].iter().product();
    let mut result = vec![0.0; outer * length * inner];
    for group in 0..outer * inner {
        let start = group / inner * length * inner + group % inner;
        let places = || (0..length).map(|step| start + step * inner);
        let largest = places().map(|place| x.at(place)).fold(f64::NEG_INFINITY, f64::max);
        let total: f64 = places().map(|place| (x.at(place) - largest).exp()).sum();
        for place in places() {
            result[place] = rounded((x.at(place) - largest).exp() / total);
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::{Unary, unary};

    #[test]
    fn the_upper_of_two_contradictory_limits_counts_and_a_nan_stays() {
        let clip = Unary::Clip { low: 1.0, high: -1.0 };
        let inside = Unary::Clip { low: -1.0, high: 1.5 };
        let of = |function, x: f64| unary(function, x).to_string();
        assert_eq!([-3.0, 0.5, 3.0].map(|x| of(clip, x)), ["-1", "-1", "-1"]);
        assert_eq!([-3.0, 0.5, 3.0].map(|x| of(inside, x)), ["-1", "0.5", "1.5"]);
        assert!([clip, inside, Unary::Relu].iter().all(|&function| unary(function, f64::NAN).is_nan()));
    }
}
