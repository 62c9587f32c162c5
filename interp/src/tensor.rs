//! Tensors: what is passed to a program and what comes back.

use half::f16;
use tilewright_ir::{DataType, Scalar, ScalarType, SizeError, checked_size};

use crate::num;

/// A block of elements in row-major order, as they lie in memory: little endian, `bool` as one byte, the lanes of a
/// vector element side by side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tensor {
    dtype: DataType,
    shape: Vec<u64>,
    bytes: Vec<u8>,
    defined: Vec<bool>,
}

/// Why there is no such tensor.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TensorError {
    /// The shape is no size.
    #[error(transparent)]
    Size(#[from] SizeError),
    /// The type has no elements in memory.
    #[error("a tensor has no elements of the type {0}")]
    Type(DataType),
    /// More bytes than can be had.
    #[error("{0} bytes cannot be allocated")]
    Memory(u64),
    /// The bytes given are not as many as the shape asks for.
    #[error("{given} bytes are given where the shape asks for {expected}")]
    Length {
        /// How many were given.
        given: u64,
        /// How many the shape and the type ask for.
        expected: u64,
    },
}

/// Bytes and lanes of a tensor.
fn sizes(dtype: DataType, shape: &[u64]) -> Result<(u64, usize, usize), TensorError> {
    if dtype.scalar == ScalarType::Handle || dtype.lanes == 0 {
        return Err(TensorError::Type(dtype));
    }
    let mut extents: Vec<i128> = shape.iter().map(|&extent| extent.into()).collect();
    extents.push(dtype.lanes.into());
    let lanes = checked_size(&extents)?;
    extents.push(dtype.scalar.bytes().into());
    let bytes = checked_size(&extents)?;
    let fits = |size: u64| usize::try_from(size).map_err(|_| TensorError::Memory(bytes));
    Ok((bytes, fits(bytes)?, fits(lanes)?))
}

fn filled<T: Clone>(len: usize, value: T) -> Result<Vec<T>, TensorError> {
    let mut items = Vec::new();
    items.try_reserve_exact(len).map_err(|_| TensorError::Memory(len as u64))?;
    items.resize(len, value);
    Ok(items)
}

impl Tensor {
    /// A tensor whose elements are not defined (their bytes are 0).
    pub fn undefined(dtype: impl Into<DataType>, shape: &[u64]) -> Result<Self, TensorError> {
        let dtype = dtype.into();
        let (_, bytes, lanes) = sizes(dtype, shape)?;
        Ok(Self { dtype, shape: shape.to_vec(), bytes: filled(bytes, 0)?, defined: filled(lanes, false)? })
    }

    /// A tensor of the bytes given, all elements defined.
    pub fn from_bytes(dtype: impl Into<DataType>, shape: &[u64], bytes: Vec<u8>) -> Result<Self, TensorError> {
        let dtype = dtype.into();
        let (expected, _, lanes) = sizes(dtype, shape)?;
        if bytes.len() as u64 != expected {
            return Err(TensorError::Length { given: bytes.len() as u64, expected });
        }
        Ok(Self { dtype, shape: shape.to_vec(), bytes, defined: filled(lanes, true)? })
    }

    /// A tensor of the bytes given, of which some lanes are not defined; the bytes of those count as 0.
    ///
    /// # Errors
    /// The bytes, or the marks, are not as many as the shape asks for.
    pub fn from_parts(
        dtype: impl Into<DataType>,
        shape: &[u64],
        bytes: Vec<u8>,
        defined: Vec<bool>,
    ) -> Result<Self, TensorError> {
        let mut tensor = Self::from_bytes(dtype, shape, bytes)?;
        if defined.len() != tensor.defined.len() {
            return Err(TensorError::Length { given: defined.len() as u64, expected: tensor.defined.len() as u64 });
        }
        let width = tensor.bytes.len() / defined.len().max(1);
        for (lane, _) in defined.iter().enumerate().filter(|(_, defined)| !**defined) {
            tensor.bytes[lane * width..(lane + 1) * width].fill(0);
        }
        tensor.defined = defined;
        Ok(tensor)
    }

    /// A tensor whose lane number `n` (over all elements, row-major, lanes innermost) is `value(n)`, all defined.
    ///
    /// Values are converted to the lane's type as [`tilewright_ir::scalar::cast`] converts `float64` and `int64`.
    pub fn from_fn(
        dtype: impl Into<DataType>,
        shape: &[u64],
        mut value: impl FnMut(usize) -> Scalar,
    ) -> Result<Self, TensorError> {
        let mut tensor = Self::undefined(dtype, shape)?;
        for lane in 0..tensor.lane_count() {
            tensor.set(lane, value(lane));
        }
        Ok(tensor)
    }

    /// Type of an element.
    pub fn dtype(&self) -> DataType {
        self.dtype
    }

    /// Extents in elements.
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// The memory.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Whether each lane was ever written, one entry a lane in the order of the memory.
    pub fn defined(&self) -> &[bool] {
        &self.defined
    }

    /// Number of lanes of all elements together.
    pub fn lane_count(&self) -> usize {
        self.defined.len()
    }

    /// Every lane is defined.
    pub fn is_all_defined(&self) -> bool {
        self.defined.iter().all(|&defined| defined)
    }

    /// Number of the first lane of the element at a logical index; none outside the shape.
    pub fn lane_at(&self, index: &[u64]) -> Option<usize> {
        if index.len() != self.shape.len() {
            return None;
        }
        let mut position = 0u64;
        for (&at, &extent) in index.iter().zip(&self.shape) {
            if at >= extent {
                return None;
            }
            position = position * extent + at;
        }
        usize::try_from(position * u64::from(self.dtype.lanes)).ok()
    }

    /// Value of a lane, counted over all elements; none if it is not defined or there is none.
    pub fn get(&self, lane: usize) -> Option<Scalar> {
        if !*self.defined.get(lane)? {
            return None;
        }
        let ty = self.dtype.scalar;
        Some(num::decode(ty, num::from_memory(ty, self.raw(lane))))
    }

    /// Value of a lane as a float64, for looking at; none if it is not defined.
    pub fn get_f64(&self, lane: usize) -> Option<f64> {
        #[expect(clippy::cast_precision_loss, reason = "a number to look at")]
        self.get(lane).map(|value| match value {
            Scalar::Int(value) => value as f64,
            Scalar::Float(value) => value,
        })
    }

    /// Writes a lane; a lane that there is not is left alone.
    pub fn set(&mut self, lane: usize, value: Scalar) {
        let ty = self.dtype.scalar;
        let from = if matches!(value, Scalar::Int(_)) { ScalarType::Int64 } else { ScalarType::Float64 };
        let value = tilewright_ir::scalar::cast(from, ty, value);
        let raw = num::to_memory(ty, num::encode(ty, value));
        self.set_raw(lane, raw, true);
    }

    /// Bits of a lane in the low bits.
    pub(crate) fn raw(&self, lane: usize) -> u64 {
        let width = self.width();
        let mut word = [0; 8];
        word[..width].copy_from_slice(&self.bytes[lane * width..(lane + 1) * width]);
        u64::from_le_bytes(word)
    }

    /// Writes the low bits to a lane.
    pub(crate) fn set_raw(&mut self, lane: usize, raw: u64, defined: bool) {
        let width = self.width();
        if let Some(flag) = self.defined.get_mut(lane) {
            *flag = defined;
            self.bytes[lane * width..(lane + 1) * width].copy_from_slice(&raw.to_le_bytes()[..width]);
        }
    }

    /// The memory and the flags, for writing them as a whole.
    pub(crate) fn parts_mut(&mut self) -> (&mut [u8], &mut [bool]) {
        (&mut self.bytes, &mut self.defined)
    }

    /// Bytes of a lane.
    fn width(&self) -> usize {
        match self.dtype.scalar.bytes() {
            1 => 1,
            2 => 2,
            4 => 4,
            _ => 8,
        }
    }
}

/// The value of the 16 bits of an IEEE half, for tests and messages.
pub(crate) fn half_value(bits: u16) -> f64 {
    f16::from_bits(bits).to_f64()
}
