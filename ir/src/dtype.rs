//! Element types: a scalar type and a number of lanes, with TVM's names (`float32`, `int8x4`).

use std::fmt;
use std::str::FromStr;

/// A scalar type. Integers are two's complement. Floats are IEEE 754, and `bfloat16` is the upper half of a
/// `float32`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ScalarType {
    /// A truth value, stored as one byte that is 0 or 1.
    Bool,
    /// A signed integer of 8 bits.
    Int8,
    /// A signed integer of 16 bits.
    Int16,
    /// A signed integer of 32 bits, the default index type.
    Int32,
    /// A signed integer of 64 bits.
    Int64,
    /// An unsigned integer of 8 bits.
    UInt8,
    /// An unsigned integer of 16 bits.
    UInt16,
    /// An unsigned integer of 32 bits.
    UInt32,
    /// An unsigned integer of 64 bits.
    UInt64,
    /// IEEE half precision.
    Float16,
    /// IEEE single precision.
    Float32,
    /// IEEE double precision.
    Float64,
    /// Brain float: 8 exponent bits and 7 fraction bits.
    BFloat16,
    /// The address of an allocation: the type of a data variable or a buffer parameter. It has no arithmetic.
    Handle,
}

/// The kind of a scalar type, regardless of its width.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TypeClass {
    /// [`ScalarType::Bool`].
    Bool,
    /// Signed integers.
    Int,
    /// Unsigned integers.
    UInt,
    /// Floating point, including `bfloat16`.
    Float,
    /// [`ScalarType::Handle`].
    Handle,
}

impl ScalarType {
    /// The scalar types that a buffer element may have: all but [`ScalarType::Handle`].
    pub const ELEMENTS: [Self; 13] = [
        Self::Bool,
        Self::Int8,
        Self::Int16,
        Self::Int32,
        Self::Int64,
        Self::UInt8,
        Self::UInt16,
        Self::UInt32,
        Self::UInt64,
        Self::Float16,
        Self::Float32,
        Self::Float64,
        Self::BFloat16,
    ];

    /// Returns TVM's name of the type.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::Int8 => "int8",
            Self::Int16 => "int16",
            Self::Int32 => "int32",
            Self::Int64 => "int64",
            Self::UInt8 => "uint8",
            Self::UInt16 => "uint16",
            Self::UInt32 => "uint32",
            Self::UInt64 => "uint64",
            Self::Float16 => "float16",
            Self::Float32 => "float32",
            Self::Float64 => "float64",
            Self::BFloat16 => "bfloat16",
            Self::Handle => "handle",
        }
    }

    /// Returns the width of a value in bits. A `bool` has 1, a handle 64.
    pub fn bits(self) -> u32 {
        match self {
            Self::Bool => 1,
            Self::Int8 | Self::UInt8 => 8,
            Self::Int16 | Self::UInt16 | Self::Float16 | Self::BFloat16 => 16,
            Self::Int32 | Self::UInt32 | Self::Float32 => 32,
            Self::Int64 | Self::UInt64 | Self::Float64 | Self::Handle => 64,
        }
    }

    /// Returns the size of an element in memory, in bytes.
    pub fn bytes(self) -> u64 {
        u64::from(self.bits().div_ceil(8))
    }

    /// Returns the kind of the type.
    pub fn class(self) -> TypeClass {
        match self {
            Self::Bool => TypeClass::Bool,
            Self::Int8 | Self::Int16 | Self::Int32 | Self::Int64 => TypeClass::Int,
            Self::UInt8 | Self::UInt16 | Self::UInt32 | Self::UInt64 => TypeClass::UInt,
            Self::Float16 | Self::Float32 | Self::Float64 | Self::BFloat16 => TypeClass::Float,
            Self::Handle => TypeClass::Handle,
        }
    }

    /// Returns whether the type is a signed or unsigned integer. `bool` is not an integer.
    pub fn is_integer(self) -> bool {
        matches!(self.class(), TypeClass::Int | TypeClass::UInt)
    }

    /// Returns whether the type is a floating-point type.
    pub fn is_float(self) -> bool {
        self.class() == TypeClass::Float
    }

    /// Returns the least and greatest value of an integer type or `bool`, and `None` for floats and handles.
    pub fn integer_range(self) -> Option<(i128, i128)> {
        match self.class() {
            TypeClass::Bool => Some((0, 1)),
            TypeClass::Int => Some((-(1 << (self.bits() - 1)), (1 << (self.bits() - 1)) - 1)),
            TypeClass::UInt => Some((0, (1 << self.bits()) - 1)),
            TypeClass::Float | TypeClass::Handle => None,
        }
    }
}

impl fmt::Display for ScalarType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// An element type: a scalar type and a number of lanes (1 for a scalar).
///
/// ```
/// use tilewright_ir::{DataType, ScalarType};
/// let ty: DataType = "float32x4".parse()?;
/// assert_eq!((ty.scalar, ty.lanes, ty.bytes()), (ScalarType::Float32, 4, 16));
/// assert_eq!(ty.to_string(), "float32x4");
/// # Ok::<(), tilewright_ir::DataTypeError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DataType {
    /// The type of each lane.
    pub scalar: ScalarType,
    /// The number of lanes, at least 1.
    pub lanes: u16,
}

impl DataType {
    /// `int32`, the default index type.
    pub const INT32: Self = Self::scalar(ScalarType::Int32);
    /// `bool`.
    pub const BOOL: Self = Self::scalar(ScalarType::Bool);
    /// `handle`.
    pub const HANDLE: Self = Self::scalar(ScalarType::Handle);

    /// Creates a type with one lane.
    pub const fn scalar(scalar: ScalarType) -> Self {
        Self { scalar, lanes: 1 }
    }

    /// Returns the same scalar type with `lanes` lanes.
    #[must_use]
    pub fn with_lanes(self, lanes: u16) -> Self {
        Self { scalar: self.scalar, lanes }
    }

    /// Returns whether the type has exactly one lane.
    pub fn is_scalar(self) -> bool {
        self.lanes == 1
    }

    /// Returns the size of an element in memory, in bytes, with all its lanes.
    pub fn bytes(self) -> u64 {
        self.scalar.bytes() * u64::from(self.lanes)
    }
}

impl From<ScalarType> for DataType {
    fn from(scalar: ScalarType) -> Self {
        Self::scalar(scalar)
    }
}

impl fmt::Display for DataType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.scalar.name())?;
        if self.lanes != 1 { write!(f, "x{}", self.lanes) } else { Ok(()) }
    }
}

/// The error for text that does not name an element type.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an element type: expected a name such as float32, int8 or float32x4")]
pub struct DataTypeError(pub String);

impl FromStr for DataType {
    type Err = DataTypeError;

    /// Reads a name such as `float32` or `float32x4`. `float`, `int` and `uint` are TVM's short names for 32 bits.
    ///
    /// # Errors
    /// The name is unknown, or the number of lanes is not a decimal number from 1 to 65535 without leading zeros.
    fn from_str(text: &str) -> Result<Self, DataTypeError> {
        let error = || DataTypeError(text.to_owned());
        let named = |name: &str| match name {
            "float" => Some(ScalarType::Float32),
            "int" => Some(ScalarType::Int32),
            "uint" => Some(ScalarType::UInt32),
            "handle" => Some(ScalarType::Handle),
            _ => ScalarType::ELEMENTS.into_iter().find(|ty| ty.name() == name),
        };
        if let Some(scalar) = named(text) {
            return Ok(Self::scalar(scalar));
        }
        let (name, lanes) = text.rsplit_once('x').ok_or_else(error)?;
        let scalar = named(name).filter(|&ty| ty != ScalarType::Handle).ok_or_else(error)?;
        // `u16::from_str` also accepts `+4` and `04`, which are not part of a type name.
        let is_decimal = !lanes.starts_with('0') && lanes.bytes().all(|b| b.is_ascii_digit());
        let lanes = lanes.parse().ok().filter(|_| is_decimal).ok_or_else(error)?;
        Ok(Self { scalar, lanes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printing_then_reading_a_type_is_the_identity() {
        for scalar in ScalarType::ELEMENTS {
            for lanes in [1, 2, 3, 4, 8, 16, 64] {
                let ty = DataType { scalar, lanes };
                assert_eq!(ty.to_string().parse(), Ok(ty));
            }
        }
    }

    #[test]
    fn malformed_type_names_are_errors() {
        for text in [
            "",
            "float",
            "floatx",
            "float32x0",
            "float32x-1",
            "float32x99999",
            "f32",
            "int33",
            "handlex2",
            "x4",
            "int8x04",
        ] {
            assert_eq!(text.parse::<DataType>().is_ok(), text == "float", "{text}");
        }
    }

    #[test]
    fn integer_ranges_are_those_of_the_machine_types() {
        assert_eq!(ScalarType::Int8.integer_range(), Some((-128, 127)));
        assert_eq!(ScalarType::UInt64.integer_range(), Some((0, i128::from(u64::MAX))));
        assert_eq!(ScalarType::Int64.integer_range(), Some((i128::from(i64::MIN), i128::from(i64::MAX))));
        assert_eq!(ScalarType::Float32.integer_range(), None);
    }
}
