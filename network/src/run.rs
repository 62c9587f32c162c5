//! Compares an executed network with [`mod@crate::reference`], node by node.
//!
//! A value differs if an element is further away than a part of its magnitude plus a part of the largest magnitude of the tensor
//! ([`Tolerance`]). Both sides round, in other orders; a wrong kernel is off by far more.

use tilewright_interp::Tensor;
use tilewright_ir::{GraphStep, ScalarType};

use crate::lower::Network;
use crate::model::Model;
use crate::profile::Profile;

/// How far an element may be away from what is expected.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tolerance {
    /// As a part of the magnitude of the element.
    pub relative: f32,
    /// As a part of the largest magnitude of the tensor.
    pub absolute: f32,
}

impl Tolerance {
    /// For networks that hold float32.
    pub const SINGLE: Self = Self { relative: 1e-3, absolute: 1e-5 };
    /// For networks whose textures hold float16, which rounds each tensor to a part in 2048; the roundings of tensors before add up.
    pub const HALF: Self = Self { relative: 2e-2, absolute: 1e-2 };

    /// The tolerance of a target.
    pub fn of(profile: &Profile) -> Self {
        if profile.half { Self::HALF } else { Self::SINGLE }
    }
}

/// The least magnitude that float16 rounds to infinity. Its largest number is 65504.
pub(crate) const HALF_OVERFLOW: f32 = 65520.0;

/// Elements that are numbers in the reference and infinite in float16.
#[derive(Clone, Debug, PartialEq)]
pub struct Overflow {
    /// The step that wrote them.
    pub step: String,
    /// How many there are.
    pub elements: usize,
    /// The largest magnitude in the reference.
    pub largest: f32,
}

impl Overflow {
    /// The elements of a tensor of float16 that are infinite on one side alone; `None` if there are none. A number of the reference may be
    /// just in range where the device, which has rounded before, leaves it.
    fn of(step: &str, expected: &[f32], found: &[f32]) -> Option<Self> {
        let pairs = expected.iter().map(|value| value.abs()).zip(found);
        let beyond =
            pairs.filter(|(value, found)| value.is_finite() && (*value >= HALF_OVERFLOW || found.is_infinite()));
        let (elements, largest) =
            beyond.fold((0, 0f32), |(count, largest), (value, _)| (count + 1, largest.max(value)));
        (elements > 0).then(|| Self { step: step.to_owned(), elements, largest })
    }
}

/// A tensor that was compared.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// The name of the tensor in the graph.
    pub tensor: String,
    /// Elements compared.
    pub compared: usize,
    /// Elements that differ.
    pub different: usize,
    /// The largest distance.
    pub largest: f32,
    /// The first element that differs: its row-major position, the expected value and the value found.
    pub first: Option<(usize, f32, f32)>,
    /// For a tensor of float16: the elements that it cannot hold.
    pub overflow: Option<Overflow>,
}

/// Compares elements with those expected. Sizes that differ make every element differ.
pub fn compare(tensor: &str, (expected, found): (&[f32], &[f32]), tolerance: Tolerance) -> Difference {
    let Tolerance { relative, absolute } = tolerance;
    let scale = expected.iter().filter(|value| value.is_finite()).fold(0f32, |largest, value| largest.max(value.abs()));
    let agrees = |a: f32, b: f32| {
        let is_close = a.is_finite() && (a - b).abs() <= relative.mul_add(a.abs(), absolute * scale);
        a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan()) || is_close
    };
    let mut difference = Difference {
        tensor: tensor.to_owned(),
        compared: expected.len(),
        different: 0,
        largest: 0.0,
        first: None,
        overflow: None,
    };
    if expected.len() != found.len() {
        difference.different = expected.len().max(found.len());
        difference.largest = f32::INFINITY;
        return difference;
    }
    for (position, (&a, &b)) in expected.iter().zip(found).enumerate() {
        // NaN is infinitely far away from every number.
        let distance = if a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan()) { 0.0 } else { (a - b).abs() };
        difference.largest = difference.largest.max(if distance.is_nan() { f32::INFINITY } else { distance });
        if !agrees(a, b) {
            difference.different += 1;
            difference.first.get_or_insert((position, a, b));
        }
    }
    difference
}

impl Network {
    /// Compares the tensors that each step wrote with the values of the reference. `written` has one list for each step.
    ///
    /// Padding is not compared: it is no element of the logical tensor.
    pub fn differences(
        &self,
        model: &Model,
        values: &[Option<Vec<f32>>],
        written: &[&[Tensor]],
        tolerance: Tolerance,
    ) -> Vec<Vec<Difference>> {
        let steps = self.graph.graph.steps.iter().zip(written);
        let of_step = |(step, written): (&GraphStep, &&[Tensor])| {
            let pairs = step.writes.iter().zip(*written);
            pairs.map(|(&tensor, found)| self.difference((model, values), (step, tensor), found, tolerance)).collect()
        };
        steps.map(of_step).collect()
    }

    /// Compares one tensor of the graph.
    fn difference(
        &self,
        (model, values): (&Model, &[Option<Vec<f32>>]),
        (step, tensor): (&GraphStep, usize),
        found: &Tensor,
        tolerance: Tolerance,
    ) -> Difference {
        let GraphValueRef { name, value, operand } = self.described(tensor);
        let found = operand.unpacked(found);
        if let Some(expected) = &values[value] {
            let is_half = operand.dtype == ScalarType::Float16;
            let overflow = Overflow::of(&step.name, expected, &found).filter(|_| is_half);
            return Difference { overflow, ..compare(name, (expected, &found), tolerance) };
        }
        let contents = model.values[value].contents.as_ref();
        let expected = (0..found.len()).map(|at| contents.and_then(|all| all.float(at)).unwrap_or(f32::NAN));
        compare(name, (&expected.collect::<Vec<_>>(), &found), tolerance)
    }

    fn described(&self, tensor: usize) -> GraphValueRef<'_> {
        let known = &self.tensors[tensor];
        GraphValueRef { name: &self.graph.graph.tensors[tensor].name, value: known.value, operand: &known.operand }
    }
}

/// A tensor of the graph.
struct GraphValueRef<'a> {
    name: &'a str,
    value: usize,
    operand: &'a crate::place::Operand,
}

#[cfg(test)]
mod tests {
    use super::{Difference, Tolerance};

    fn compare(tensor: &str, expected: &[f32], found: &[f32]) -> Difference {
        super::compare(tensor, (expected, found), Tolerance::SINGLE)
    }

    #[test]
    fn a_value_differs_beyond_the_tolerance() {
        let same = compare("t", &[1.0, -2.0, 0.0], &[1.0005, -2.0, 1e-5]);
        assert_eq!((same.compared, same.different), (3, 0));
        let other = compare("t", &[1.0, -2.0, 0.0], &[1.0, -2.01, 1e-3]);
        assert_eq!((other.different, other.first), (2, Some((1, -2.0, -2.01))));
        let halves = super::compare("t", (&[1.0, -2.0, 0.0], &[1.01, -2.01, 0.01]), Tolerance::HALF);
        assert_eq!(halves.different, 0);
        assert_eq!(super::compare("t", (&[1.0, -2.0], &[1.05, -2.0]), Tolerance::HALF).different, 1);
    }

    #[test]
    fn nan_and_other_sizes_differ() {
        let one = compare("t", &[1.0, 2.0], &[f32::NAN, 2.0]);
        assert_eq!((one.different, one.largest), (1, f32::INFINITY));
        assert!(compare("t", &[f32::NAN], &[f32::NAN]).largest < 1e-9);
        assert_eq!(compare("t", &[1.0, 2.0], &[1.0]).different, 2);
        assert_eq!(compare("t", &[f32::INFINITY], &[f32::INFINITY]).different, 0);
        assert_eq!(compare("t", &[f32::INFINITY], &[1.0]).different, 1);
    }
}
