//! Names of types in OpenCL C.
//!
//! A value of `float16` or `bfloat16` is held in a `float`, rounded after every operation. A `bool` of one lane is an
//! `int` that is 0 or 1, of several lanes a `ucharN` of 0 and 1.

use tilewright_ir::{DataType, ScalarType};

/// `4` of `float4`; nothing for one lane.
pub(super) fn suffix(lanes: u16) -> String {
    if lanes == 1 { String::new() } else { lanes.to_string() }
}

/// The type that a value of one lane is computed in.
pub(super) fn scalar_name(ty: ScalarType) -> &'static str {
    match ty {
        ScalarType::Bool | ScalarType::Int32 => "int",
        ScalarType::Int8 => "char",
        ScalarType::Int16 => "short",
        ScalarType::Int64 => "long",
        ScalarType::UInt8 => "uchar",
        ScalarType::UInt16 => "ushort",
        ScalarType::UInt32 => "uint",
        ScalarType::UInt64 | ScalarType::Handle => "ulong",
        ScalarType::Float16 | ScalarType::BFloat16 | ScalarType::Float32 => "float",
        ScalarType::Float64 => "double",
    }
}

/// The type of a value.
pub(super) fn value_name(ty: DataType) -> String {
    match (ty.scalar, ty.lanes) {
        (ScalarType::Bool, 2..) => format!("uchar{}", ty.lanes),
        _ => format!("{}{}", scalar_name(ty.scalar), suffix(ty.lanes)),
    }
}

/// The type of an element in memory, lanes apart.
pub(super) fn storage_name(ty: ScalarType) -> &'static str {
    match ty {
        ScalarType::Bool => "uchar",
        ScalarType::Float16 => "half",
        ScalarType::BFloat16 => "ushort",
        ScalarType::Int8
        | ScalarType::Int16
        | ScalarType::Int32
        | ScalarType::Int64
        | ScalarType::UInt8
        | ScalarType::UInt16
        | ScalarType::UInt32
        | ScalarType::UInt64
        | ScalarType::Float32
        | ScalarType::Float64
        | ScalarType::Handle => scalar_name(ty),
    }
}

/// The unsigned type as wide as an integer type.
pub(super) fn unsigned_name(ty: ScalarType) -> &'static str {
    match ty.bits() {
        8 => "uchar",
        16 => "ushort",
        64 => "ulong",
        _ => "uint",
    }
}

/// The unsigned type in which C computes with an integer type without undefined behaviour: 32 bits at least.
pub(super) fn wrapping_name(ty: ScalarType) -> &'static str {
    if ty.bits() == 64 { "ulong" } else { "uint" }
}

/// Short name for names of helpers: `float16` and `float32` share a C type but not their meaning.
pub(super) fn helper_name(ty: DataType) -> String {
    match ty.scalar {
        ScalarType::Bool => format!("bool{}", suffix(ty.lanes)),
        ScalarType::Int8
        | ScalarType::Int16
        | ScalarType::Int32
        | ScalarType::Int64
        | ScalarType::UInt8
        | ScalarType::UInt16
        | ScalarType::UInt32
        | ScalarType::UInt64
        | ScalarType::Float16
        | ScalarType::BFloat16
        | ScalarType::Float32
        | ScalarType::Float64
        | ScalarType::Handle => value_name(ty),
    }
}

/// The signed type as wide as the mask that selects between values of a type.
pub(super) fn mask_name(ty: ScalarType) -> &'static str {
    match value_width(ty) {
        8 => "char",
        16 => "short",
        64 => "long",
        _ => "int",
    }
}

/// Bits of a lane of a value in a vector.
fn value_width(ty: ScalarType) -> u32 {
    match ty {
        ScalarType::Bool => 8,
        ScalarType::Float16 | ScalarType::BFloat16 => 32,
        ScalarType::Int8
        | ScalarType::Int16
        | ScalarType::Int32
        | ScalarType::Int64
        | ScalarType::UInt8
        | ScalarType::UInt16
        | ScalarType::UInt32
        | ScalarType::UInt64
        | ScalarType::Float32
        | ScalarType::Float64
        | ScalarType::Handle => ty.bits(),
    }
}
