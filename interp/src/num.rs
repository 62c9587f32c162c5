//! Conversion of values between registers, memory and [`Scalar`].
//!
//! A register has 64 bits. It holds an integer or `bool` extended to 64 bits (signed types by their sign), a `float32`
//! as its 32 bits, and a `float64`, `float16` or `bfloat16` as the bits of a `float64`.
//!
//! ```text
//! int8    -1   0xffff_ffff_ffff_ffff        float32  1.0   0x0000_0000_3f80_0000
//! uint8  255   0x0000_0000_0000_00ff        float16  1.0   0x3ff0_0000_0000_0000
//! ```

use half::bf16;
use tilewright_ir::sabotage;
use tilewright_ir::{Scalar, ScalarType, TypeClass};

use crate::tensor::half_value;

/// Encodes a value of the type `ty` as a register.
pub(crate) fn encode(ty: ScalarType, value: Scalar) -> u64 {
    match value {
        Scalar::Int(value) if ty == ScalarType::UInt64 => u64::try_from(value).unwrap_or_default(),
        Scalar::Int(value) => i64::try_from(value).unwrap_or_default().cast_unsigned(),
        #[expect(clippy::cast_possible_truncation, reason = "a float32 value is representable in float32")]
        Scalar::Float(value) if ty == ScalarType::Float32 => u64::from((value as f32).to_bits()),
        Scalar::Float(value) => value.to_bits(),
    }
}

/// Decodes a register that holds a value of the type `ty`.
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
        ScalarType::Int64
        | ScalarType::UInt64
        | ScalarType::Float16
        | ScalarType::Float32
        | ScalarType::Float64
        | ScalarType::BFloat16
        | ScalarType::Handle => value,
    }
}

/// The register for an element loaded from memory, whose bits are the low bits of `raw`; the higher bits are ignored.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "the low bits are the element")]
pub(crate) fn from_memory(ty: ScalarType, raw: u64) -> u64 {
    match ty {
        ScalarType::Float16 => half_value(raw as u16).to_bits(),
        ScalarType::BFloat16 => bf16::from_bits(raw as u16).to_f64().to_bits(),
        ScalarType::Float32 | ScalarType::Float64 => raw,
        ScalarType::Bool
        | ScalarType::Int8
        | ScalarType::Int16
        | ScalarType::Int32
        | ScalarType::Int64
        | ScalarType::UInt8
        | ScalarType::UInt16
        | ScalarType::UInt32
        | ScalarType::UInt64
        | ScalarType::Handle => wrap(ty, raw.cast_signed()).cast_unsigned(),
    }
}

/// The bits to store for the value in a register, in the low bits of the result; the higher bits are unspecified.
#[inline]
pub(crate) fn to_memory(ty: ScalarType, register: u64) -> u64 {
    match ty {
        ScalarType::Float16 => u64::from(half::f16::from_f64(f64::from_bits(register)).to_bits()),
        ScalarType::BFloat16 => u64::from(bf16::from_f64(f64::from_bits(register)).to_bits()),
        ScalarType::Bool
        | ScalarType::Int8
        | ScalarType::Int16
        | ScalarType::Int32
        | ScalarType::Int64
        | ScalarType::UInt8
        | ScalarType::UInt16
        | ScalarType::UInt32
        | ScalarType::UInt64
        | ScalarType::Float32
        | ScalarType::Float64
        | ScalarType::Handle => register,
    }
}

/// Whether signed 64-bit operations on registers, wrapped to the type, are the operations of the type. True for `bool`
/// and all integers except `uint64`, whose values from 2^63 on look negative in a register.
pub(crate) fn signed_in_register(ty: ScalarType) -> bool {
    ty != ScalarType::UInt64 && matches!(ty.class(), TypeClass::Bool | TypeClass::Int | TypeClass::UInt)
}
