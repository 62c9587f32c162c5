//! The meaning of the operators on single lanes.
//!
//! An integer value is an `i128` within the range of its type. A float value is an `f64` that its type represents
//! exactly: rounding the `f64` result of `+ - * /` or `sqrt` to a type with at most 24 bits of precision gives the
//! same value as computing in that type (53 >= 2 * 24 + 2; Figueroa, "When is double rounding innocuous?", 1995).

use half::{bf16, f16};

use crate::dtype::{ScalarType, TypeClass};
use crate::op::{BinaryOp, MathFn, UnaryOp};
use crate::sabotage;

/// The value of one lane. Its type is stored separately.
#[derive(Clone, Copy, Debug)]
pub enum Scalar {
    /// An integer or a `bool` (0 or 1), within the range of its type.
    Int(i128),
    /// A float that its type represents exactly.
    Float(f64),
}

/// The reason why an operation has no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScalarError {
    /// The divisor of an integer division or remainder is 0.
    #[error("division by zero")]
    DivisionByZero,
    /// The amount of a shift is negative, or not below the width of the type.
    #[error("shift by {0} is out of range")]
    ShiftAmount(i128),
    /// The operator's type rule does not accept the operands.
    #[error("operands do not have the operator's type")]
    Type,
    /// An exact intermediate result does not fit into 128 bits.
    #[error("integer overflow")]
    Overflow,
}

impl Scalar {
    /// Returns whether two values are identical: NaN equals NaN, and 0.0 differs from -0.0.
    pub fn same(self, other: Self) -> bool {
        match (self, other) {
            (Self::Int(a), Self::Int(b)) => a == b,
            (Self::Float(a), Self::Float(b)) => a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan()),
            (Self::Int(_), Self::Float(_)) | (Self::Float(_), Self::Int(_)) => false,
        }
    }

    /// Returns the value of an integer or `bool`, and `None` for a float.
    pub fn as_int(self) -> Option<i128> {
        if let Self::Int(value) = self { Some(value) } else { None }
    }
}

/// Rounds `value` to the nearest value of the float type `ty`, ties to even. Other types return it unchanged.
pub fn round_float(ty: ScalarType, value: f64) -> f64 {
    match ty {
        ScalarType::Float16 if sabotage::on("half-towards-zero") => half_towards_zero(value),
        ScalarType::Float16 => f16::from_f32(odd_f32(value)).to_f64(),
        ScalarType::BFloat16 => bf16::from_f32(odd_f32(value)).to_f64(),
        #[expect(clippy::cast_possible_truncation, reason = "rounding to float32 is what is asked for")]
        ScalarType::Float32 => f64::from(value as f32),
        ScalarType::Float64
        | ScalarType::Bool
        | ScalarType::Int8
        | ScalarType::Int16
        | ScalarType::Int32
        | ScalarType::Int64
        | ScalarType::UInt8
        | ScalarType::UInt16
        | ScalarType::UInt32
        | ScalarType::UInt64
        | ScalarType::Handle => value,
    }
}

/// Rounds towards zero instead of to nearest: the effect of a forgotten rounding, for the planted fault `half-towards-zero`.
fn half_towards_zero(value: f64) -> f64 {
    let near = f16::from_f32(odd_f32(value));
    let is_beyond = near.to_f64().abs() > value.abs() && value.is_finite();
    if is_beyond { f16::from_bits(near.to_bits() - 1).to_f64() } else { near.to_f64() }
}

/// Rounds to `f32`, to the neighbour with an odd last bit if `value` lies between two floats.
///
/// Rounding the result to a narrower type gives the same as rounding `value` directly, because rounding to odd
/// neither creates nor removes a tie. `half` itself converts through an ordinary `f32` on processors with a
/// conversion instruction, and would round twice.
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

/// Wraps an integer into the range of its type, modulo 2^bits. A `bool` becomes 1 unless the value is 0.
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

/// Returns the greatest common divisor. That of a number and 0 is the number.
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

/// Returns the floor quotient and remainder over the integers. Returns `None` for a divisor of 0, and if the quotient
/// does not fit into 128 bits.
pub fn floor_div_mod(a: i128, b: i128) -> Option<(i128, i128)> {
    let (q, r) = match (i64::try_from(a), i64::try_from(b)) {
        // Processors divide numbers of 64 bits many times faster.
        (Ok(a), Ok(b)) if b > 0 => (i128::from(a / b), i128::from(a % b)),
        _ => (a.checked_div(b)?, a.checked_rem(b)?),
    };
    if r != 0 && (r < 0) != (b < 0) { Some((q - 1, r + b)) } else { Some((q, r)) }
}

impl BinaryOp {
    /// Returns the value of `lhs op rhs` for operands of the scalar type `ty`. The result has the type that the
    /// operator's type rule states.
    ///
    /// # Errors
    /// The divisor is 0, the shift amount is out of range, or the operator is not defined for `ty`.
    pub fn eval(self, ty: ScalarType, lhs: Scalar, rhs: Scalar) -> Result<Scalar, ScalarError> {
        match (lhs, rhs) {
            // The product of two uint64 may exceed i128. Wrapping modulo 2^128 first does not change it modulo 2^64.
            (Scalar::Int(a), Scalar::Int(b)) if self == Self::Mul => Ok(Scalar::Int(wrap_int(ty, a.wrapping_mul(b)))),
            (Scalar::Int(a), Scalar::Int(b)) => {
                let exact = self.eval_exact(a, b, ty)?;
                // A truth value must not be wrapped into the operands' type.
                let is_comparison = matches!(self.info().rule, crate::op::TypeRule::Comparison);
                Ok(Scalar::Int(if is_comparison { exact } else { wrap_int(ty, exact) }))
            }
            (Scalar::Float(a), Scalar::Float(b)) => self.eval_float(ty, a, b),
            (Scalar::Int(_), Scalar::Float(_)) | (Scalar::Float(_), Scalar::Int(_)) => Err(ScalarError::Type),
        }
    }

    /// Returns the result over the integers, before it is wrapped into `ty`. Truth values are 0 and 1. The width of
    /// `ty` bounds shift amounts.
    ///
    /// # Errors
    /// The divisor is 0, the shift amount is out of range, the operator is defined for floats only, or the result
    /// does not fit into 128 bits.
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
            // A product, because `<<` would drop high bits without notice. The amount is below the width of `ty`, at most
            // 64.
            Self::Shl => a.checked_mul(1i128 << shift()?).ok_or(overflow),
            Self::Shr => Ok(a >> shift()?),
        }
    }

    /// Returns the value for floats of type `ty`, rounded once.
    #[expect(clippy::float_cmp, reason = "IEEE equality is the operator's meaning")]
    fn eval_float(self, ty: ScalarType, a: f64, b: f64) -> Result<Scalar, ScalarError> {
        let value = |x: f64| Ok(Scalar::Float(round_float(ty, x)));
        let truth = |value: bool| Ok(Scalar::Int(i128::from(value)));
        match self {
            Self::Add => value(a + b),
            Self::Sub => value(a - b),
            Self::Mul => value(a * b),
            Self::Div => value(a / b),
            Self::Min => value(min_num(a, b)),
            Self::Max => value(-min_num(-a, -b)),
            Self::Eq => truth(a == b),
            Self::Ne => truth(a != b),
            Self::Lt => truth(a < b),
            Self::Le => truth(a <= b),
            Self::Gt => truth(a > b),
            Self::Ge => truth(a >= b),
            Self::FloorDiv | Self::FloorMod | Self::TruncDiv | Self::TruncMod => Err(ScalarError::Type),
            Self::And | Self::Or | Self::BitAnd | Self::BitOr | Self::BitXor | Self::Shl | Self::Shr => {
                Err(ScalarError::Type)
            }
        }
    }
}

/// Returns the minimum as IEEE 754-2008 minNum defines it: a NaN loses to a number. For -0.0 and 0.0 it returns the
/// first operand, since neither is less.
fn min_num(a: f64, b: f64) -> f64 {
    if a.is_nan() || b < a { b } else { a }
}

impl UnaryOp {
    /// Returns the value of `op x` for an operand of the scalar type `ty`.
    ///
    /// # Errors
    /// The operator is not defined for floats.
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
    /// Returns the value for arguments of the scalar type `ty`. Functions of floats are computed in `float64` by a
    /// portable library, which returns the same bits on every machine, and rounded once to `ty`.
    ///
    /// # Errors
    /// The number or the types of the arguments do not match the function.
    pub fn eval(self, ty: ScalarType, args: &[Scalar]) -> Result<Scalar, ScalarError> {
        match *args {
            [Scalar::Int(value)] if self == Self::Abs => Ok(Scalar::Int(wrap_int(ty, value.abs()))),
            [Scalar::Int(bits)] if self == Self::FloatOfBits => float_of_bits(ty, bits),
            [Scalar::Int(value)] => self.eval_integer(ty, value),
            [Scalar::Float(x)] => self.eval_unary(ty, x),
            [Scalar::Float(x), Scalar::Float(y)] => self.eval_binary(ty, x, y),
            _ => Err(ScalarError::Type),
        }
    }

    /// Returns the value of a function that counts bits of an integer of the type `ty`.
    fn eval_integer(self, ty: ScalarType, value: i128) -> Result<Scalar, ScalarError> {
        if !ty.is_integer() {
            return Err(ScalarError::Type);
        }
        let bits = value.cast_unsigned() & ((1 << ty.bits()) - 1);
        let count = match self {
            Self::PopCount => bits.count_ones(),
            Self::Clz => bits.leading_zeros() - (u128::BITS - ty.bits()),
            _ => return Err(ScalarError::Type),
        };
        let result = if self == Self::Clz { ScalarType::Int32 } else { ty };
        Ok(Scalar::Int(wrap_int(result, count.into())))
    }

    /// Returns the value of a function of two floats. [`MathFn::eval_unary`] lists all functions, so that a new one cannot
    /// be forgotten.
    fn eval_binary(self, ty: ScalarType, x: f64, y: f64) -> Result<Scalar, ScalarError> {
        let value = match self {
            Self::Atan2 => libm::atan2(x, y),
            Self::Pow => libm::pow(x, y),
            Self::Hypot => libm::hypot(x, y),
            Self::Fmod => libm::fmod(x, y),
            _ => return Err(ScalarError::Type),
        };
        Ok(Scalar::Float(round_float(ty, value)))
    }

    /// Returns the value of a function of one float.
    fn eval_unary(self, ty: ScalarType, x: f64) -> Result<Scalar, ScalarError> {
        let value = match self {
            Self::IsNan => return Ok(Scalar::Int(i128::from(x.is_nan()))),
            Self::IsInf => return Ok(Scalar::Int(i128::from(x.is_infinite()))),
            Self::IsFinite => return Ok(Scalar::Int(i128::from(x.is_finite()))),
            Self::BitsOfFloat => return bits_of_float(ty, x),
            Self::Abs => x.abs(),
            // Square roots and roundings are exact in IEEE arithmetic. The rest comes from one library, because the
            // functions of the platform differ in their last bits.
            Self::Exp => libm::exp(x),
            Self::Exp2 => libm::exp2(x),
            Self::Exp10 => libm::exp10(x),
            Self::Log => libm::log(x),
            Self::Log1p => libm::log1p(x),
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
            Self::Asinh => libm::asinh(x),
            // The library gives numbers below -1, too.
            Self::Acosh if x < 1.0 => f64::NAN,
            Self::Acosh => libm::acosh(x),
            Self::Atanh => libm::atanh(x),
            Self::Erf => libm::erf(x),
            Self::Sigmoid => 1.0 / (1.0 + libm::exp(-x)),
            Self::Floor => x.floor(),
            Self::Ceil => x.ceil(),
            Self::Round => x.round_ties_even(),
            Self::Trunc => x.trunc(),
            Self::Atan2 | Self::Pow | Self::Hypot | Self::Fmod => return Err(ScalarError::Type),
            Self::PopCount | Self::Clz | Self::FloatOfBits => return Err(ScalarError::Type),
        };
        Ok(Scalar::Float(round_float(ty, value)))
    }
}

/// Returns the bits of a float of the type `ty` as a signed integer. All NaNs have the same.
fn bits_of_float(ty: ScalarType, x: f64) -> Result<Scalar, ScalarError> {
    match ty {
        #[expect(clippy::cast_possible_truncation, reason = "the value is representable in float32")]
        ScalarType::Float32 => {
            let bits = if x.is_nan() { 0x7fc0_0000 } else { (x as f32).to_bits() };
            Ok(Scalar::Int(bits.cast_signed().into()))
        }
        ScalarType::Float64 => {
            let bits = if x.is_nan() { 0x7ff8_0000_0000_0000 } else { x.to_bits() };
            Ok(Scalar::Int(bits.cast_signed().into()))
        }
        _ => Err(ScalarError::Type),
    }
}

/// Returns the float with the bits of a signed integer of the type `ty`.
fn float_of_bits(ty: ScalarType, bits: i128) -> Result<Scalar, ScalarError> {
    match ty {
        ScalarType::Int32 => {
            let bits = i32::try_from(bits).map_err(|_| ScalarError::Overflow)?;
            Ok(Scalar::Float(f32::from_bits(bits.cast_unsigned()).into()))
        }
        ScalarType::Int64 => {
            let bits = i64::try_from(bits).map_err(|_| ScalarError::Overflow)?;
            Ok(Scalar::Float(f64::from_bits(bits.cast_unsigned())))
        }
        _ => Err(ScalarError::Type),
    }
}

/// Converts a value of type `from` to type `to`, as C does where C defines it. Floats become integers by truncation,
/// which saturates at the range of `to` and maps NaN to 0. Integers wrap into narrower integers, and are rounded once
/// to floats. A conversion to `bool` compares with 0.
pub fn cast(from: ScalarType, to: ScalarType, value: Scalar) -> Scalar {
    match (value, to.class()) {
        (Scalar::Int(x), TypeClass::Float) => Scalar::Float(int_to_float(to, x)),
        (Scalar::Int(x), TypeClass::Bool | TypeClass::Int | TypeClass::UInt | TypeClass::Handle) => {
            Scalar::Int(wrap_int(to, x))
        }
        (Scalar::Float(x), TypeClass::Float) => Scalar::Float(if from == to { x } else { round_float(to, x) }),
        (Scalar::Float(x), TypeClass::Bool) => Scalar::Int(i128::from(x != 0.0)),
        (Scalar::Float(x), TypeClass::Int | TypeClass::UInt | TypeClass::Handle) => {
            // A handle has no integer range; no well-typed program casts to it.
            let (low, high) = to.integer_range().unwrap_or((0, 0));
            #[expect(clippy::cast_possible_truncation, reason = "a float cast saturates")]
            let whole = x as i128;
            Scalar::Int(if sabotage::on("cast-wraps") { wrap_int(to, whole) } else { whole.clamp(low, high) })
        }
    }
}

/// Rounds an integer to a float type once. For the narrow types, an integer with more bits than an `f64` holds is
/// first rounded to odd, see [`odd_f32`].
fn int_to_float(ty: ScalarType, value: i128) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "rounding is what is asked for")]
    match ty {
        ScalarType::Float64 => value as f64,
        ScalarType::Float32 => f64::from(value as f32),
        ScalarType::Float16
        | ScalarType::BFloat16
        | ScalarType::Bool
        | ScalarType::Int8
        | ScalarType::Int16
        | ScalarType::Int32
        | ScalarType::Int64
        | ScalarType::UInt8
        | ScalarType::UInt16
        | ScalarType::UInt32
        | ScalarType::UInt64
        | ScalarType::Handle => {
            // Keep the 40 leading bits and fold the others into the last one: more than the 8 and 11 bits of precision
            // that the narrow types round to, and exact in an `f64`.
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
    fn float32_arithmetic_equals_that_of_the_processor() {
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
    fn all_nans_have_the_same_bits_and_other_floats_their_own() {
        let bits = |ty, x| MathFn::BitsOfFloat.eval(ty, &[Scalar::Float(x)]).map(Scalar::as_int);
        let float = |ty, x| MathFn::FloatOfBits.eval(ty, &[Scalar::Int(x)]);
        let payload = f64::from_bits(0xfff8_0000_0000_0001);
        assert_eq!(bits(ScalarType::Float32, payload), Ok(Some(0x7fc0_0000)));
        assert_eq!(bits(ScalarType::Float64, payload), bits(ScalarType::Float64, f64::NAN));
        assert_eq!(bits(ScalarType::Float32, -0.0), Ok(Some(i32::MIN.into())));
        assert_eq!(bits(ScalarType::Float32, 1.0), Ok(Some(0x3f80_0000)));
        assert_eq!(bits(ScalarType::Float16, 1.0), Err(ScalarError::Type));
        for value in [0x3f80_0000, 1, -1, i128::from(i32::MIN)] {
            let found = float(ScalarType::Int32, value).unwrap();
            let bits = i32::try_from(value).unwrap().cast_unsigned();
            assert!(found.same(Scalar::Float(f32::from_bits(bits).into())), "{value}");
        }
        assert!(float(ScalarType::Int64, 0x3ff0_0000_0000_0000).unwrap().same(Scalar::Float(1.0)));
    }

    #[test]
    fn bfloat16_rounds_once() {
        // 1 + 2^-8 is a tie (to even: 1.0); 1 + 2^-8 + 2^-40 is above it, which float32 cannot represent.
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
        // 1 + 2^-11 is a tie (to even: 1.0); 2^-40 more is above it, which float32 cannot represent.
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
