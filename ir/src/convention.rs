//! The packed calling convention: what a caller says of its arguments, and what a function may expect.
//!
//! A compiled function is called with a number of arguments, a type code for each, and for each tensor a descriptor (`DLTensor` of DLPack):
//! its rank, element type, shape, strides, offset and device. The descriptor is a claim of the caller. A function that believes it
//! reads other memory than it is given, so TVM's `MakePackedAPI` compares all of it with the types of the parameters.
//!
//! In a program each part of a description is a scalar parameter, behind all others:
//!
//! ```text
//! main(A: (n, 8) float32, n)     num_args == 2
//!                                A_type_code == 7
//!                                A_ndim == 2, A_dtype_code == 2, A_dtype_bits == 32, A_dtype_lanes == 1
//!                                A_shape_0 == n, A_shape_1 == 8, A_strides_1 == 1, A_strides_0 == 8
//!                                A_byte_offset == 0, A_device_type == 4, A_device_id: any
//!                                n_type_code == 0
//! ```
//!
//! [`packed_fields`] lists them in this order, with the value that each has in a right call.

use crate::buffer::Buffer;
use crate::dtype::{DataType, ScalarType, TypeClass};
use crate::expr::Expr;
use crate::func::PrimFunc;
use crate::var::Var;

/// The type code of an integer argument.
pub const CODE_INT: i64 = 0;
/// The type code of a floating-point argument.
pub const CODE_FLOAT: i64 = 2;
/// The type code of an address.
pub const CODE_HANDLE: i64 = 3;
/// The type code of a descriptor of a tensor.
pub const CODE_TENSOR: i64 = 7;
/// DLPack's number of the device type OpenCL.
pub const DEVICE_OPENCL: i64 = 4;

/// A part of the description of a call.
#[derive(Clone, Debug)]
pub struct PackedField {
    /// The scalar parameter that holds it.
    pub var: Var,
    /// Its value in a right call, in terms of the extents and scalars of the function and of fields in front of this one. `None` if any value
    /// is right.
    pub value: Option<Expr>,
    /// What it is, such as `argument A (0): shape[1]`.
    pub text: String,
}

/// Returns the fields of a call of a function, with fresh variables, in their order. Strides come from the last axis to the first.
pub fn packed_fields(func: &PrimFunc) -> Vec<PackedField> {
    let mut fields = Fields { found: Vec::new(), device: None };
    let count = i64::try_from(func.params.len()).unwrap_or(i64::MAX);
    fields.add("num_args", ScalarType::Int32, Some(Expr::int(count)), "the number of arguments");
    for (position, param) in func.params.iter().enumerate() {
        let buffer = func.param_buffer(param);
        let name = buffer.map_or(param.name(), |buffer| &buffer.name);
        let argument = Argument { name, text: format!("argument {name} ({position})") };
        let code = match param.dtype().scalar.class() {
            _ if buffer.is_some() => CODE_TENSOR,
            TypeClass::Bool | TypeClass::Int | TypeClass::UInt => CODE_INT,
            TypeClass::Float => CODE_FLOAT,
            TypeClass::Handle => CODE_HANDLE,
        };
        fields.constant(&argument, "type_code", "type code", code);
        if let Some(buffer) = buffer {
            fields.tensor(&argument, buffer);
        }
    }
    fields.found
}

/// A parameter.
struct Argument<'a> {
    name: &'a str,
    /// How messages name it.
    text: String,
}

struct Fields {
    found: Vec<PackedField>,
    /// The device of the first tensor.
    device: Option<Var>,
}

impl Fields {
    fn add(&mut self, name: &str, ty: ScalarType, value: Option<Expr>, text: &str) -> Var {
        let var = Var::new(name, ty);
        self.found.push(PackedField { var: var.clone(), value, text: text.to_owned() });
        var
    }

    /// A field of one argument, with the last part of its name and of its text.
    fn field(
        &mut self,
        argument: &Argument<'_>,
        (name, text): (&str, &str),
        ty: ScalarType,
        value: Option<Expr>,
    ) -> Var {
        let (name, text) = (format!("{}_{name}", argument.name), format!("{}: {text}", argument.text));
        self.add(&name, ty, value, &text)
    }

    fn constant(&mut self, argument: &Argument<'_>, name: &str, text: &str, value: i64) {
        self.field(argument, (name, text), ScalarType::Int32, Some(Expr::int(value)));
    }

    /// The descriptor of a tensor.
    fn tensor(&mut self, argument: &Argument<'_>, buffer: &Buffer) {
        let DataType { scalar, lanes } = buffer.dtype;
        self.constant(argument, "ndim", "ndim", i64::try_from(buffer.rank()).unwrap_or(i64::MAX));
        self.constant(argument, "dtype_code", "dtype code", dtype_code(scalar));
        self.constant(argument, "dtype_bits", "dtype bits", i64::try_from(scalar.bytes() * 8).unwrap_or(i64::MAX));
        self.constant(argument, "dtype_lanes", "dtype lanes", lanes.into());
        let mut shape = Vec::new();
        for (axis, extent) in buffer.shape.iter().enumerate() {
            let (name, text) = (format!("shape_{axis}"), format!("shape[{axis}]"));
            shape.push(self.field(argument, (&name, &text), ScalarType::Int64, Some(wide(extent))));
        }
        // Without strides of its own, a tensor is row-major without gaps.
        let mut compact = wide(&Expr::int(1));
        for axis in (0..buffer.rank()).rev() {
            let own = buffer.strides.as_ref().and_then(|strides| strides.get(axis));
            let value = own.map_or(compact, wide);
            let (name, text) = (format!("strides_{axis}"), format!("strides[{axis}]"));
            let var = self.field(argument, (&name, &text), ScalarType::Int64, Some(value.clone()));
            compact = match value.as_const_int().zip(buffer.shape[axis].as_const_int()) {
                Some((stride, extent)) => {
                    Expr::int_of(stride.saturating_mul(extent), ScalarType::Int64).unwrap_or(value)
                }
                None => Expr::from(&var) * Expr::from(&shape[axis]),
            };
        }
        let bytes = i64::try_from(buffer.dtype.bytes()).unwrap_or(i64::MAX);
        let offset = match buffer.elem_offset.as_const_int() {
            Some(offset) => Expr::int_of(offset.saturating_mul(bytes.into()), ScalarType::Int64),
            None => Some(wide(&buffer.elem_offset) * wide(&Expr::int(bytes))),
        };
        self.field(argument, ("byte_offset", "byte offset"), ScalarType::Int64, offset);
        self.constant(argument, "device_type", "device type", DEVICE_OPENCL);
        let of_first = self.device.as_ref().map(Expr::from);
        let var = self.field(argument, ("device_id", "device id"), ScalarType::Int32, of_first);
        self.device.get_or_insert(var);
    }
}

/// An integer as one of 64 bits.
fn wide(expr: &Expr) -> Expr {
    match expr {
        Expr::Int { value, .. } => Expr::Int { value: *value, ty: ScalarType::Int64 },
        _ if expr.dtype().scalar == ScalarType::Int64 => expr.clone(),
        _ => Expr::Cast(ScalarType::Int64.into(), expr.clone().into()),
    }
}

/// DLPack's number of the kind of an element type.
fn dtype_code(ty: ScalarType) -> i64 {
    match ty {
        ScalarType::Int8 | ScalarType::Int16 | ScalarType::Int32 | ScalarType::Int64 => 0,
        ScalarType::UInt8 | ScalarType::UInt16 | ScalarType::UInt32 | ScalarType::UInt64 => 1,
        ScalarType::Float16 | ScalarType::Float32 | ScalarType::Float64 => 2,
        ScalarType::Handle => 3,
        ScalarType::BFloat16 => 4,
        ScalarType::Bool => 6,
    }
}
