//! What the operators mean on single values.
//!
//! An integer value is kept exactly in an `i128`, a float value in an `f64` that is always representable in its type:
//! rounding an `f64` result of `+ - * /` or `sqrt` to a type of at most 24 bits of precision gives the same as
//! computing in that type (53 >= 2 * 24 + 2; Figueroa, "When is double rounding innocuous?", 1995).

use half::{bf16, f16};

use crate::dtype::{ScalarType, TypeClass};
use crate::op::{BinaryOp, MathFn, UnaryOp};
use crate::sabotage;

/// One value of one lane. The type stands beside it, not in it.
#[derive(Clone, Copy, Debug)]
pub enum Scalar {
    /// An integer or a `bool` (0 or 1), within the range of its type.
    Int(i128),
    /// A float, representable in its type.
    Float(f64),
}

/// Why an operation has no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScalarError {
    /// The divisor of an integer division or remainder is 0.
    #[error("division by zero")]
    DivisionByZero,
    /// The amount of a shift is below 0 or not below the width.
    #[error("shift by {0} is out of range")]
    ShiftAmount(i128),
    /// An operator met operands that its type rule refuses.
    #[error("operands do not have the operator's type")]
    Type,
    /// An exact intermediate result left 128 bits.
    #[error("integer overflow")]
    Overflow,
}

impl Scalar {
    /// Equal as bits are equal: NaN equals NaN, 0.0 differs from -0.0.
    pub fn same(self, other: Self) -> bool {
        match (self, other) {
            (Self::Int(a), Self::Int(b)) => a == b,
            (Self::Float(a), Self::Float(b)) => a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan()),
            (Self::Int(_), Self::Float(_)) | (Self::Float(_), Self::Int(_)) => false,
        }
    }

    /// The integer, if it is one.
    pub fn as_int(self) -> Option<i128> {
        if let Self::Int(value) = self { Some(value) } else { None }
    }
}

/// Rounds `value` to the nearest value of a float type, ties to even.
pub fn round_float(ty: ScalarType, value: f64) -> f64 {
    match ty {
        ScalarType::Float16 if sabotage::on("half-towards-zero") => half_towards_zero(value),
        ScalarType::Float16 => f16::from_f32(odd_f32(value)).to_f64(),
        ScalarType::BFloat16 => bf16::from_f32(odd_f32(value)).to_f64(),
        #[expect(clippy::cast_possible_truncation, reason = "rounding to float32 is what is asked for")]
        ScalarType::Float32 => f64::from(value as f32),
        _ => value,
    }
}

/// The `float16` of the same sign that is not above in size: what a rounding that was forgotten leaves.
fn half_towards_zero(value: f64) -> f64 {
    let near = f16::from_f32(odd_f32(value));
    let is_beyond = near.to_f64().abs() > value.abs() && value.is_finite();
    if is_beyond { f16::from_bits(near.to_bits() - 1).to_f64() } else { near.to_f64() }
}

/// The `f32` from which a narrower type is rounded as if from `value`: it is rounded to odd, so that no tie is made or
/// lost. (`half` goes through a plain `f32` where the processor converts, and so rounds twice.)
#[expect(clippy::float_cmp, reason = "whether the conversion was exact is what is asked")]
fn odd_f32(value: f64) -> f32 {
    #[expect(clippy::cast_possible_truncation, reason = "the lost bits are folded into the last one below")]
    let near = value as f32;
    let exact = f64::from(near) == value || value.is_nan() || near.is_infinite();
    if exact || near.to_bits() & 1 == 1 {
        near
    } else if (f64::from(near) < value) == (value > 0.0) {
        f32::from_bits(near.to_bits() + 1)
    } else {
        f32::from_bits(near.to_bits().wrapping_sub(1))
    }
}

/// Wraps an integer into its type, modulo 2^bits; a `bool` becomes 1 if it is not 0.
pub fn wrap_int(ty: ScalarType, value: i128) -> i128 {
    match ty.class() {
        TypeClass::Bool => i128::from(value != 0),
        TypeClass::Int => {
            let modulus = 1i128 << ty.bits();
            let low = value.rem_euclid(modulus);
            if low >= modulus / 2 { low - modulus } else { low }
        }
        TypeClass::UInt => value.rem_euclid(1i128 << ty.bits()),
        TypeClass::Float | TypeClass::Handle => value,
    }
}

/// The greatest common divisor; that of a number and 0 is the number.
///
/// ```
/// assert_eq!(tilewright_ir::gcd(12, 18), 6);
/// assert_eq!(tilewright_ir::gcd(0, 5), 5);
/// ```
pub fn gcd(mut a: u128, mut b: u128) -> u128 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Floor quotient and remainder over the integers; none for a divisor of 0.
pub fn floor_div_mod(a: i128, b: i128) -> Option<(i128, i128)> {
    let (q, r) = (a.checked_div(b)?, a.checked_rem(b)?);
    if r != 0 && (r < 0) != (b < 0) { Some((q - 1, r + b)) } else { Some((q, r)) }
}

impl BinaryOp {
    /// The value of `lhs op rhs` for operands of the scalar type `ty`, in the type that the type rule says.
    pub fn eval(self, ty: ScalarType, lhs: Scalar, rhs: Scalar) -> Result<Scalar, ScalarError> {
        match (lhs, rhs) {
            // The product of two uint64 may leave 128 bits; what wraps there wraps the same modulo 2^64.
            (Scalar::Int(a), Scalar::Int(b)) if self == Self::Mul => Ok(Scalar::Int(wrap_int(ty, a.wrapping_mul(b)))),
            (Scalar::Int(a), Scalar::Int(b)) => {
                let exact = self.eval_exact(a, b, ty)?;
                let compares = matches!(self.info().rule, crate::op::TypeRule::Comparison);
                Ok(Scalar::Int(if compares { exact } else { wrap_int(ty, exact) }))
            }
            (Scalar::Float(a), Scalar::Float(b)) => self.eval_float(ty, a, b),
            (Scalar::Int(_), Scalar::Float(_)) | (Scalar::Float(_), Scalar::Int(_)) => Err(ScalarError::Type),
        }
    }

    /// The result over the integers, before wrapping into `ty`; truth values are 0 and 1.
    ///
    /// `ty` bounds shift amounts.
    pub fn eval_exact(self, a: i128, b: i128, ty: ScalarType) -> Result<i128, ScalarError> {
        let overflow = ScalarError::Overflow;
        let shift = || {
            let amount = u32::try_from(b).ok().filter(|&amount| amount < ty.bits());
            amount.ok_or(ScalarError::ShiftAmount(b))
        };
        let truth = |value: bool| Ok(i128::from(value));
        match self {
            Self::Add => a.checked_add(b).ok_or(overflow),
            Self::Sub => a.checked_sub(b).ok_or(overflow),
            Self::Mul => a.checked_mul(b).ok_or(overflow),
            Self::Div => Err(ScalarError::Type),
            Self::FloorDiv => floor_div_mod(a, b).map(|(q, _)| q).ok_or(ScalarError::DivisionByZero),
            Self::FloorMod => floor_div_mod(a, b).map(|(_, r)| r).ok_or(ScalarError::DivisionByZero),
            Self::TruncDiv => a.checked_div(b).ok_or(ScalarError::DivisionByZero),
            Self::TruncMod => a.checked_rem(b).ok_or(ScalarError::DivisionByZero),
            Self::Min => Ok(a.min(b)),
            Self::Max => Ok(a.max(b)),
            Self::Eq => truth(a == b),
            Self::Ne => truth(a != b),
            Self::Lt => truth(a < b),
            Self::Le => truth(a <= b),
            Self::Gt => truth(a > b),
            Self::Ge => truth(a >= b),
            Self::And => truth(a != 0 && b != 0),
            Self::Or => truth(a != 0 || b != 0),
            Self::BitAnd => Ok(a & b),
            Self::BitOr => Ok(a | b),
            Self::BitXor => Ok(a ^ b),
            Self::Shl => a.checked_mul(1i128 << shift()?).ok_or(overflow),
            Self::Shr => Ok(a >> shift()?),
        }
    }

    fn eval_float(self, ty: ScalarType, a: f64, b: f64) -> Result<Scalar, ScalarError> {
        let value = |x: f64| Ok(Scalar::Float(round_float(ty, x)));
        #[expect(clippy::float_cmp, reason = "IEEE equality is the operator's meaning")]
        let truth = |op: Self| match op {
            Self::Eq => a == b,
            Self::Ne => a != b,
            Self::Lt => a < b,
            Self::Le => a <= b,
            Self::Gt => a > b,
            _ => a >= b,
        };
        match self {
            Self::Add => value(a + b),
            Self::Sub => value(a - b),
            Self::Mul => value(a * b),
            Self::Div => value(a / b),
            Self::Min => value(min_num(a, b)),
            Self::Max => value(-min_num(-a, -b)),
            Self::Eq | Self::Ne | Self::Lt | Self::Le | Self::Gt | Self::Ge => Ok(Scalar::Int(i128::from(truth(self)))),
            Self::FloorDiv | Self::FloorMod | Self::TruncDiv | Self::TruncMod => Err(ScalarError::Type),
            Self::And | Self::Or | Self::BitAnd | Self::BitOr | Self::BitXor | Self::Shl | Self::Shr => {
                Err(ScalarError::Type)
            }
        }
    }
}

/// IEEE 754-2008 minNum; of -0.0 and 0.0 the first operand unless the second is less.
fn min_num(a: f64, b: f64) -> f64 {
    if a.is_nan() || b < a { b } else { a }
}

impl UnaryOp {
    /// The value of `op x` for an operand of the scalar type `ty`.
    pub fn eval(self, ty: ScalarType, x: Scalar) -> Result<Scalar, ScalarError> {
        match (self, x) {
            (Self::Neg, Scalar::Int(value)) => Ok(Scalar::Int(wrap_int(ty, -value))),
            (Self::Neg, Scalar::Float(value)) => Ok(Scalar::Float(-value)),
            (Self::Not, Scalar::Int(value)) => Ok(Scalar::Int(i128::from(value == 0))),
            (Self::BitNot, Scalar::Int(value)) => Ok(Scalar::Int(wrap_int(ty, !value))),
            (Self::Not | Self::BitNot, Scalar::Float(_)) => Err(ScalarError::Type),
        }
    }
}

impl MathFn {
    /// The value for arguments of the scalar type `ty`: computed in `float64` (portable, the same bits on every
    /// machine) and rounded once to `ty`.
    pub fn eval(self, ty: ScalarType, args: &[Scalar]) -> Result<Scalar, ScalarError> {
        match (self, args) {
            (Self::Abs, &[Scalar::Int(value)]) => Ok(Scalar::Int(wrap_int(ty, value.abs()))),
            (_, &[Scalar::Float(x)]) => Ok(self.eval_one(ty, x)),
            (Self::Atan2, &[Scalar::Float(y), Scalar::Float(x)]) => {
                Ok(Scalar::Float(round_float(ty, libm::atan2(y, x))))
            }
            (Self::Pow, &[Scalar::Float(x), Scalar::Float(y)]) => Ok(Scalar::Float(round_float(ty, libm::pow(x, y)))),
            _ => Err(ScalarError::Type),
        }
    }

    fn eval_one(self, ty: ScalarType, x: f64) -> Scalar {
        let value = match self {
            Self::IsNan => return Scalar::Int(i128::from(x.is_nan())),
            Self::IsInf => return Scalar::Int(i128::from(x.is_infinite())),
            Self::Abs => x.abs(),
            Self::Exp => libm::exp(x),
            Self::Exp2 => libm::exp2(x),
            Self::Exp10 => libm::exp10(x),
            Self::Log => libm::log(x),
            Self::Log2 => libm::log2(x),
            Self::Log10 => libm::log10(x),
            Self::Sqrt => x.sqrt(),
            Self::Rsqrt => 1.0 / x.sqrt(),
            Self::Sin => libm::sin(x),
            Self::Cos => libm::cos(x),
            Self::Tan => libm::tan(x),
            Self::Sinh => libm::sinh(x),
            Self::Cosh => libm::cosh(x),
            Self::Tanh => libm::tanh(x),
            Self::Asin => libm::asin(x),
            Self::Acos => libm::acos(x),
            Self::Atan => libm::atan(x),
            Self::Erf => libm::erf(x),
            Self::Sigmoid => 1.0 / (1.0 + libm::exp(-x)),
            Self::Floor => x.floor(),
            Self::Ceil => x.ceil(),
            Self::Round => x.round_ties_even(),
            Self::Trunc => x.trunc(),
            Self::Atan2 | Self::Pow => f64::NAN,
        };
        Scalar::Float(round_float(ty, value))
    }
}

/// Converts a value of the type `from` to the type `to`, as C converts: floats to integers by truncation (saturating,
/// NaN gives 0), integers by wrapping, anything to `bool` by comparing with 0, integers to floats rounded once.
pub fn cast(from: ScalarType, to: ScalarType, value: Scalar) -> Scalar {
    match (value, to.class()) {
        (Scalar::Int(x), TypeClass::Float) => Scalar::Float(int_to_float(to, x)),
        (Scalar::Int(x), _) => Scalar::Int(wrap_int(to, x)),
        (Scalar::Float(x), TypeClass::Float) => Scalar::Float(if from == to { x } else { round_float(to, x) }),
        (Scalar::Float(x), TypeClass::Bool) => Scalar::Int(i128::from(x != 0.0)),
        (Scalar::Float(x), _) => {
            let (low, high) = to.integer_range().unwrap_or((0, 0));
            #[expect(clippy::cast_possible_truncation, reason = "a float cast saturates")]
            let whole = x as i128;
            Scalar::Int(if sabotage::on("cast-wraps") { wrap_int(to, whole) } else { whole.clamp(low, high) })
        }
    }
}

/// Rounds an integer to a float type once: for the narrow types a `f64` that has lost bits is made odd first.
fn int_to_float(ty: ScalarType, value: i128) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "rounding is what is asked for")]
    match ty {
        ScalarType::Float64 => value as f64,
        ScalarType::Float32 => f64::from(value as f32),
        _ => {
            // 24 bits are sticky enough for types of 8 and 11 bits of precision.
            let shift = (128 - value.unsigned_abs().leading_zeros()).saturating_sub(40);
            let sticky = i128::from(value & ((1 << shift) - 1) != 0);
            let odd = (((value >> shift) | sticky) << shift) as f64;
            round_float(ty, odd)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floor_and_truncating_division_differ_on_negative_operands() {
        let int = |op: BinaryOp, a, b| op.eval(ScalarType::Int32, Scalar::Int(a), Scalar::Int(b)).map(Scalar::as_int);
        assert_eq!(int(BinaryOp::FloorDiv, -7, 2), Ok(Some(-4)));
        assert_eq!(int(BinaryOp::TruncDiv, -7, 2), Ok(Some(-3)));
        assert_eq!(int(BinaryOp::FloorMod, -7, 2), Ok(Some(1)));
        assert_eq!(int(BinaryOp::TruncMod, -7, 2), Ok(Some(-1)));
        assert_eq!(int(BinaryOp::FloorMod, 7, -2), Ok(Some(-1)));
        assert_eq!(int(BinaryOp::FloorDiv, 7, 0), Err(ScalarError::DivisionByZero));
        assert_eq!(int(BinaryOp::Add, i128::from(i32::MAX), 1), Ok(Some(i128::from(i32::MIN))));
        assert_eq!(int(BinaryOp::Shl, 1, 32), Err(ScalarError::ShiftAmount(32)));
        assert_eq!(int(BinaryOp::Gt, 300, 2), Ok(Some(1)));
    }

    #[test]
    fn float32_arithmetic_is_that_of_the_machine() {
        let values = [0.1f32, -3.7, 1e-40, 3.4e38, 16_777_217.0, 0.0, -0.0, f32::INFINITY];
        for &a in &values {
            for &b in &values {
                let run = |op: BinaryOp| op.eval(ScalarType::Float32, Scalar::Float(a.into()), Scalar::Float(b.into()));
                for (op, expected) in [(BinaryOp::Add, a + b), (BinaryOp::Mul, a * b), (BinaryOp::Div, a / b)] {
                    assert!(run(op).unwrap().same(Scalar::Float(expected.into())), "{a} {op:?} {b}");
                }
            }
        }
    }

    #[test]
    fn bfloat16_rounds_once() {
        // 1 + 2^-8 is a tie (to even: 1.0); 1 + 2^-8 + 2^-40 is above it, though float32 cannot tell.
        let tie = 1.0 + 2f64.powi(-8);
        assert!((round_float(ScalarType::BFloat16, tie) - 1.0).abs() < 1e-9);
        assert!(round_float(ScalarType::BFloat16, tie + 2f64.powi(-40)) > 1.0);
        assert!(round_float(ScalarType::BFloat16, -tie - 2f64.powi(-40)) < -1.0);
        assert!(
            (round_float(ScalarType::BFloat16, 1.0 + 2f64.powi(-7) + 2f64.powi(-8) - 2f64.powi(-40)) - 1.007_812_5)
                .abs()
                < 1e-9
        );
    }

    #[test]
    fn float16_rounds_once() {
        // 1 + 2^-11 is a tie (to even: 1.0); 2^-40 more is above it, though float32 cannot tell.
        let tie = 1.0 + 2f64.powi(-11);
        assert!((round_float(ScalarType::Float16, tie) - 1.0).abs() < 1e-9);
        assert!(round_float(ScalarType::Float16, tie + 2f64.powi(-40)) > 1.0);
        assert!(round_float(ScalarType::Float16, -tie - 2f64.powi(-40)) < -1.0);
        assert!((round_float(ScalarType::Float16, 3.0 * 2f64.powi(-25)) - 2f64.powi(-23)).abs() < 1e-12);
        assert!(round_float(ScalarType::Float16, 65520.0).is_infinite());
        assert!(round_float(ScalarType::Float16, 65519.999).is_finite());
    }

    #[test]
    #[expect(clippy::cast_precision_loss, reason = "the machine's own rounding is the expectation")]
    fn casts_follow_c() {
        let cast_int = |from, to, x| cast(from, to, x).as_int();
        assert_eq!(cast_int(ScalarType::Float32, ScalarType::Int32, Scalar::Float(-1.9)), Some(-1));
        assert_eq!(cast_int(ScalarType::Float32, ScalarType::UInt8, Scalar::Float(300.0)), Some(255));
        assert_eq!(cast_int(ScalarType::Int32, ScalarType::Int8, Scalar::Int(200)), Some(-56));
        assert_eq!(cast_int(ScalarType::Float64, ScalarType::Bool, Scalar::Float(0.5)), Some(1));
        let big = cast(ScalarType::Int64, ScalarType::Float32, Scalar::Int(9_007_199_791_611_905));
        assert!(big.same(Scalar::Float(f64::from(9_007_199_791_611_905i64 as f32))));
    }
}
