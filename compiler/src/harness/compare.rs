//! Comparison of results: bit for bit, or within units in the last place (ULP) where a function is not exact.
//!
//! `+ - * /`, minimum, maximum, conversions, square root and all integer arithmetic are exact. For the other functions
//! the OpenCL C specification allows an error (section 7.4, "Relative Error as ULPs", full profile).

use std::fmt;

use serde::Serialize;
use tilewright_interp::Tensor;
use tilewright_ir::{Expr, MathFn, PrimFunc, Scalar, ScalarType};

/// A distance that means "not comparable": NaN and a number, or an infinity and a finite value.
pub const FAR: u64 = u64::MAX;

/// Returns the error, in units in the last place, that a function may have in a type; 0 for exact functions.
///
/// `float16` and `bfloat16` are computed in `float32` and rounded: the result may be off by one where the exact value
/// lies near a tie. In the wider types one unit is added for the reference, which is rounded once itself.
pub fn max_ulp_error(function: MathFn, ty: ScalarType) -> u64 {
    let single = match function {
        MathFn::Abs | MathFn::Floor | MathFn::Ceil | MathFn::Round | MathFn::Trunc | MathFn::Fmod => 0,
        MathFn::IsNan | MathFn::IsInf | MathFn::IsFinite | MathFn::PopCount | MathFn::Clz => 0,
        MathFn::Sqrt | MathFn::BitsOfFloat | MathFn::FloatOfBits => 0,
        MathFn::Exp | MathFn::Exp2 | MathFn::Exp10 | MathFn::Log | MathFn::Log2 | MathFn::Log10 => 3,
        MathFn::Rsqrt | MathFn::Log1p => 2,
        MathFn::Sin | MathFn::Cos | MathFn::Sinh | MathFn::Cosh | MathFn::Asin | MathFn::Acos => 4,
        MathFn::Asinh | MathFn::Acosh | MathFn::Hypot => 4,
        MathFn::Tan | MathFn::Tanh | MathFn::Atan | MathFn::Atanh => 5,
        MathFn::Atan2 => 6,
        MathFn::Pow | MathFn::Erf => 16,
        // No builtin: the error of exp, of the sum and of the quotient together.
        MathFn::Sigmoid => 6,
    };
    match ty {
        _ if single == 0 => 0,
        ScalarType::Float16 | ScalarType::BFloat16 => 1,
        _ => single + 1,
    }
}

/// Returns the distance of two values of one type: 0 if they are the same (NaN equals NaN, -0.0 differs from 0.0); for
/// floats the number of steps between neighbouring values; for integers the difference; [`FAR`] if they are not
/// comparable.
pub fn ulp_distance(ty: ScalarType, a: Scalar, b: Scalar) -> u64 {
    match (a, b) {
        _ if a.same(b) => 0,
        (Scalar::Int(a), Scalar::Int(b)) => u64::try_from((a - b).unsigned_abs()).unwrap_or(FAR),
        (Scalar::Float(x), Scalar::Float(y)) if x.is_nan() || y.is_nan() => FAR,
        (Scalar::Float(x), Scalar::Float(y)) if x.is_infinite() != y.is_infinite() => FAR,
        (Scalar::Float(x), Scalar::Float(y)) => {
            let distance = (ordinal(ty, x) - ordinal(ty, y)).unsigned_abs();
            // 0.0 and -0.0 have the same ordinal, but are different values.
            u64::try_from(distance).unwrap_or(FAR).max(1)
        }
        (Scalar::Int(_), Scalar::Float(_)) | (Scalar::Float(_), Scalar::Int(_)) => FAR,
    }
}

/// Returns the position of a float in the order of all values of its type; 0 for both zeros.
fn ordinal(ty: ScalarType, x: f64) -> i128 {
    let magnitude = match ty {
        ScalarType::Float16 => half::f16::from_f64(x.abs()).to_bits().into(),
        ScalarType::BFloat16 => half::bf16::from_f64(x.abs()).to_bits().into(),
        #[expect(clippy::cast_possible_truncation, reason = "the value is representable in float32")]
        ScalarType::Float32 => i128::from((x.abs() as f32).to_bits()),
        _ => i128::from(x.abs().to_bits()),
    };
    if x < 0.0 { -magnitude } else { magnitude }
}

/// The distance up to which results agree.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Tolerance {
    /// In units in the last place; 0 demands the same bits.
    pub ulp: u64,
    /// The magnitude of the numbers that were summed in another order, 0 if none were: floats agree as well if they differ by at most
    /// [`ROUNDINGS`] roundings of such a number. A tensor of whole numbers alone has exact sums, and has to be the same.
    pub magnitude: f64,
}

/// How many roundings two sums of the same terms may lie apart.
pub const ROUNDINGS: f64 = 64.0;

impl Tolerance {
    /// The same bits.
    pub const EXACT: Self = Self { ulp: 0, magnitude: 0.0 };

    /// The tolerance for sums of numbers of this magnitude that were added in another order.
    pub const fn reordered(magnitude: f64) -> Self {
        Self { magnitude, ..Self::EXACT }
    }

    /// Whether two values of a type are the same number but for roundings.
    fn is_rounding(self, ty: ScalarType, a: Option<Scalar>, b: Option<Scalar>) -> bool {
        let (Some(Scalar::Float(a)), Some(Scalar::Float(b))) = (a, b) else { return false };
        let unit = match ty {
            ScalarType::Float16 => f64::from(half::f16::EPSILON),
            ScalarType::BFloat16 => f64::from(half::bf16::EPSILON),
            ScalarType::Float32 => f64::from(f32::EPSILON),
            _ => f64::EPSILON,
        };
        a.is_finite() && b.is_finite() && (a - b).abs() <= ROUNDINGS * unit * self.magnitude
    }

    /// Returns what the functions in a program allow: nothing if all are exact, otherwise the sum of their errors,
    /// once for each place where one is called.
    pub fn of_func(func: &PrimFunc) -> Self {
        let mut ulp = 0;
        func.body.walk(&mut |stmt| {
            for expr in stmt.exprs() {
                ulp += Self::of_expr(expr).ulp;
            }
        });
        Self { ulp, ..Self::EXACT }
    }

    /// Returns what the functions in an expression allow.
    pub fn of_expr(expr: &Expr) -> Self {
        let mut ulp = 0;
        expr.walk(&mut |expr| {
            if let Expr::Call(function, args) = expr {
                ulp += max_ulp_error(*function, args.first().map_or(ScalarType::Float32, |arg| arg.dtype().scalar));
            }
        });
        Self { ulp, ..Self::EXACT }
    }
}

/// The first two elements that differ by more than the tolerance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Mismatch {
    /// The name of the tensor.
    pub tensor: String,
    /// The logical index of the element.
    pub index: Vec<u64>,
    /// The value in the reference.
    pub expected: String,
    /// The value in the other result.
    pub got: String,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{:?} is {}, the reference has {}", self.tensor, self.index, self.got, self.expected)
    }
}

/// The result of a comparison.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Comparison {
    /// Number of lanes compared.
    pub compared: u64,
    /// Number of lanes that differ by more than the tolerance.
    pub mismatches: u64,
    /// The greatest distance, in units in the last place; [`FAR`] if some lanes are not comparable.
    pub max_ulp: u64,
    /// The first lane that differs by more than the tolerance, in row-major order.
    pub first: Option<Mismatch>,
}

impl Comparison {
    /// Adds the result of comparing another tensor.
    pub fn merge(&mut self, other: Self) {
        self.compared += other.compared;
        self.mismatches += other.mismatches;
        self.max_ulp = self.max_ulp.max(other.max_ulp);
        if self.first.is_none() {
            self.first = other.first;
        }
    }
}

/// Compares two tensors of one type and shape, lane by lane. An undefined lane agrees only with an undefined lane.
///
/// # Errors
/// The types or the shapes differ; the text names both.
pub fn tensors(name: &str, expected: &Tensor, got: &Tensor, tolerance: Tolerance) -> Result<Comparison, String> {
    if expected.dtype() != got.dtype() || expected.shape() != got.shape() {
        let (a, b) = (expected.dtype(), got.dtype());
        return Err(format!("`{name}` is {a}{:?} in one and {b}{:?} in the other", expected.shape(), got.shape()));
    }
    let mut result = Comparison { compared: expected.lane_count() as u64, ..Comparison::default() };
    // The common case, without decoding every lane.
    if expected.bytes() == got.bytes() && expected.has_same_flags(got) {
        return Ok(result);
    }
    let ty = expected.dtype().scalar;
    let tolerance = if tolerance.magnitude > 0.0 && is_whole(expected) {
        Tolerance { magnitude: 0.0, ..tolerance }
    } else {
        tolerance
    };
    for lane in 0..expected.lane_count() {
        let (a, b) = (expected.get(lane), got.get(lane));
        let distance = match (a, b) {
            (Some(a), Some(b)) => ulp_distance(ty, a, b),
            (None, None) => 0,
            (Some(_), None) | (None, Some(_)) => FAR,
        };
        result.max_ulp = result.max_ulp.max(distance);
        if distance > tolerance.ulp && !tolerance.is_rounding(ty, a, b) {
            result.mismatches += 1;
            result.first.get_or_insert_with(|| Mismatch {
                tensor: name.to_owned(),
                index: index_of(lane / usize::from(expected.dtype().lanes.max(1)), expected.shape()),
                expected: show(a),
                got: show(b),
            });
        }
    }
    Ok(result)
}

/// Compares two tensors as [`tensors`] does, but only in the lanes that are defined in `expected`: a device does not
/// track which elements were written.
///
/// # Errors
/// The types or the shapes differ; the text names both.
pub fn tensors_where_defined(
    name: &str,
    expected: &Tensor,
    got: &Tensor,
    tolerance: Tolerance,
) -> Result<Comparison, String> {
    if expected.is_all_defined() || expected.shape() != got.shape() || expected.dtype() != got.dtype() {
        return tensors(name, expected, got, tolerance);
    }
    let mut masked = Tensor::undefined(got.dtype(), got.shape()).map_err(|error| error.to_string())?;
    let mut compared = 0;
    for lane in (0..got.lane_count()).filter(|&lane| expected.is_defined(lane)) {
        compared += 1;
        if let Some(value) = got.get(lane) {
            masked.set(lane, value);
        }
    }
    tensors(name, expected, &masked, tolerance).map(|result| Comparison { compared, ..result })
}

/// Whether a tensor has whole numbers alone, as sums of whole numbers are.
fn is_whole(tensor: &Tensor) -> bool {
    let is_whole = |value: Scalar| !matches!(value, Scalar::Float(value) if value.fract() != 0.0);
    (0..tensor.lane_count()).filter_map(|lane| tensor.get(lane)).all(is_whole)
}

/// The largest finite magnitude of a float in a tensor; 0 if there is none.
pub(crate) fn magnitude(tensor: &Tensor) -> f64 {
    let value = |lane| match tensor.get(lane) {
        Some(Scalar::Float(value)) if value.is_finite() => value.abs(),
        _ => 0.0,
    };
    (0..tensor.lane_count()).map(value).fold(0.0, f64::max)
}

/// Returns a value as text; `undefined` for none.
pub fn show(value: Option<Scalar>) -> String {
    match value {
        None => "undefined".into(),
        Some(Scalar::Int(value)) => value.to_string(),
        Some(Scalar::Float(value)) => format!("{value:?}"),
    }
}

/// Returns the index of the element at a row-major position.
pub(crate) fn index_of(mut element: usize, shape: &[u64]) -> Vec<u64> {
    let mut index = vec![0; shape.len()];
    for (axis, &extent) in shape.iter().enumerate().rev() {
        let extent = usize::try_from(extent).unwrap_or(usize::MAX).max(1);
        index[axis] = (element % extent) as u64;
        element /= extent;
    }
    index
}

#[cfg(test)]
mod tests {
    use super::*;

    fn distance(a: f64, b: f64) -> u64 {
        ulp_distance(ScalarType::Float32, Scalar::Float(a), Scalar::Float(b))
    }

    #[test]
    fn distances_count_the_values_between() {
        assert_eq!(distance(1.0, 1.0), 0);
        assert_eq!(distance(1.0, f64::from(f32::from_bits(1.0f32.to_bits() + 3))), 3);
        assert_eq!(distance(f64::NAN, -f64::NAN), 0);
        assert_eq!(distance(f64::NAN, 1.0), FAR);
        assert_eq!(distance(0.0, -0.0), 1);
        let tiny = f64::from(f32::from_bits(1));
        assert_eq!(distance(tiny, -tiny), 2);
        assert_eq!(distance(f64::INFINITY, f64::from(f32::MAX)), FAR);
        assert_eq!(ulp_distance(ScalarType::Int8, Scalar::Int(-3), Scalar::Int(4)), 7);
    }

    #[test]
    fn sums_in_another_order_agree_but_for_roundings() {
        let make = |ty, values: [f64; 3]| Tensor::from_fn(ty, &[3], |at| Scalar::Float(values[at])).unwrap();
        let differ = |one, two, tolerance| {
            let (one, two) = (make(ScalarType::Float32, one), make(ScalarType::Float32, two));
            tensors("A", &one, &two, tolerance).unwrap().mismatches
        };
        let (one, two) = ([0.0, 5.5, -7.0], [1e-6, 5.500_02, -7.0]);
        assert_eq!(differ(one, one, Tolerance::EXACT), 0);
        assert_eq!(differ(one, two, Tolerance::EXACT), 2);
        assert_eq!(differ(one, two, Tolerance::reordered(7.0)), 0);
        assert_eq!(differ(one, two, Tolerance::reordered(0.5)), 1);
        // Sums of whole numbers are exact, also where one is less than a rounding of the largest number.
        let halves = [[20.0, 30.0, 7.0], [21.0, 30.0, 7.0]].map(|values| make(ScalarType::Float16, values));
        assert_eq!(tensors("A", &halves[0], &halves[1], Tolerance::reordered(30.0)).unwrap().mismatches, 1);
        assert_eq!(differ(one, [0.0, 6.0, -7.0], Tolerance::reordered(7.0)), 1);
        assert_eq!(differ([f64::INFINITY, 0.0, 0.0], [1.0, f64::NAN, 0.0], Tolerance::reordered(7.0)), 2);
        let largest = magnitude(&make(ScalarType::Float32, [f64::NEG_INFINITY, -7.5, f64::NAN]));
        assert_eq!(largest.to_bits(), 7.5f64.to_bits());
        let whole = Tensor::from_fn(ScalarType::Int32, &[2], |at| Scalar::Int(at as i128)).unwrap();
        let other = Tensor::from_fn(ScalarType::Int32, &[2], |_| Scalar::Int(0)).unwrap();
        assert_eq!(tensors("A", &whole, &other, Tolerance::reordered(1e12)).unwrap().mismatches, 1);
    }

    #[test]
    fn the_first_mismatch_has_its_index() {
        let make =
            |at: usize| Tensor::from_fn(ScalarType::Int32, &[2, 3, 5], |k| Scalar::Int(i128::from(k == at))).unwrap();
        let result = tensors("A", &make(99), &make(22), Tolerance::EXACT).unwrap();
        assert_eq!((result.compared, result.mismatches, result.max_ulp), (30, 1, 1));
        let first = result.first.unwrap();
        assert_eq!((first.index, first.expected.as_str(), first.got.as_str()), (vec![1, 1, 2], "0", "1"));
        let undefined = Tensor::undefined(ScalarType::Int32, &[2, 3, 5]).unwrap();
        assert_eq!(tensors("A", &make(99), &undefined, Tolerance::EXACT).unwrap().mismatches, 30);
        let other = Tensor::undefined(ScalarType::Int32, &[3, 2, 5]).unwrap();
        assert!(tensors("A", &undefined, &other, Tolerance::EXACT).is_err());
    }
}
