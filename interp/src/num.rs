//! Numbers in registers and in memory.
//!
//! A register is 64 bits wide. Integers and `bool` stand in it extended to 64 bits, signed ones with their sign;
//! `float32` as its own bits; `float64` and the narrow floats as the bits of a `float64`.

use half::bf16;
use tilewright_ir::sabotage;
use tilewright_ir::{Scalar, ScalarType, TypeClass};

use crate::tensor::half_value;

/// The register that holds a value of the type.
pub(crate) fn encode(ty: ScalarType, value: Scalar) -> u64 {
    match value {
        Scalar::Int(value) if ty == ScalarType::UInt64 => u64::try_from(value).unwrap_or_default(),
        Scalar::Int(value) => i64::try_from(value).unwrap_or_default().cast_unsigned(),
        #[expect(clippy::cast_possible_truncation, reason = "a float32 value is representable in float32")]
        Scalar::Float(value) if ty == ScalarType::Float32 => u64::from((value as f32).to_bits()),
        Scalar::Float(value) => value.to_bits(),
    }
}

/// The value of the type that a register holds.
pub(crate) fn decode(ty: ScalarType, register: u64) -> Scalar {
    match ty {
        ScalarType::Float32 => Scalar::Float(f64::from(f32_of(register))),
        ScalarType::Float16 | ScalarType::Float64 | ScalarType::BFloat16 => Scalar::Float(f64::from_bits(register)),
        ScalarType::UInt64 | ScalarType::Handle => Scalar::Int(register.into()),
        ScalarType::Bool
        | ScalarType::Int8
        | ScalarType::Int16
        | ScalarType::Int32
        | ScalarType::Int64
        | ScalarType::UInt8
        | ScalarType::UInt16
        | ScalarType::UInt32 => Scalar::Int(register.cast_signed().into()),
    }
}

/// The `float32` in a register.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, clippy::inline_always, reason = "the low half is the value; hot")]
pub(crate) fn f32_of(register: u64) -> f32 {
    f32::from_bits(register as u32)
}

/// Wraps an integer into its type, modulo 2^bits; a `bool` becomes 1 if it is not 0.
#[inline]
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "wrapping is what is asked for")]
pub(crate) fn wrap(ty: ScalarType, value: i64) -> i64 {
    match ty {
        ScalarType::Bool => i64::from(value != 0),
        ScalarType::Int8 => i64::from(value as i8),
        ScalarType::Int16 => i64::from(value as i16),
        ScalarType::Int32 => i64::from(value as i32),
        ScalarType::UInt8 if sabotage::on("unsigned-bytes-have-signs") => i64::from(value as i8),
        ScalarType::UInt8 => i64::from(value as u8),
        ScalarType::UInt16 => i64::from(value as u16),
        ScalarType::UInt32 => i64::from(value as u32),
        _ => value,
    }
}

/// The register for the bits of an element, which stand in the low bits of `raw`.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "the low bits are the element")]
pub(crate) fn from_memory(ty: ScalarType, raw: u64) -> u64 {
    match ty {
        ScalarType::Float16 => half_value(raw as u16).to_bits(),
        ScalarType::BFloat16 => bf16::from_bits(raw as u16).to_f64().to_bits(),
        ScalarType::Float32 | ScalarType::Float64 => raw,
        _ => wrap(ty, raw.cast_signed()).cast_unsigned(),
    }
}

/// The bits of an element in the low bits, for the value in a register; higher bits are without meaning.
#[inline]
pub(crate) fn to_memory(ty: ScalarType, register: u64) -> u64 {
    match ty {
        ScalarType::Float16 => u64::from(half::f16::from_f64(f64::from_bits(register)).to_bits()),
        ScalarType::BFloat16 => u64::from(bf16::from_f64(f64::from_bits(register)).to_bits()),
        _ => register,
    }
}

/// Whether the 64-bit operations of signed integers compute the type's own after wrapping. They do for all but
/// `uint64`, whose upper half is negative there.
pub(crate) fn signed_in_register(ty: ScalarType) -> bool {
    ty != ScalarType::UInt64 && matches!(ty.class(), TypeClass::Bool | TypeClass::Int | TypeClass::UInt)
}
