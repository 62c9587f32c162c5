//! Tensors: the arguments and results of a program.

use half::f16;
use rayon::prelude::*;
use tilewright_ir::{DataType, Scalar, ScalarType, SizeError, checked_size};

use crate::num;

/// Elements in row-major order, each with a flag that says whether it is defined.
///
/// The bytes are little endian; a `bool` takes one byte, and the lanes of a vector element are adjacent. Positions are
/// counted in lanes: element `n` of a tensor of `float32x4` has the lanes `4 * n` to `4 * n + 3`.
///
/// ```
/// use tilewright_interp::Tensor;
/// use tilewright_ir::{Scalar, ScalarType};
/// let mut tensor = Tensor::undefined(ScalarType::Int32, &[2, 3])?;
/// let lane = tensor.lane_at(&[1, 2]).unwrap_or_default();
/// assert_eq!((lane, tensor.get_f64(lane)), (5, None));
/// tensor.set(lane, Scalar::Int(-7));
/// assert_eq!(tensor.get_f64(lane), Some(-7.0));
/// # Ok::<(), tilewright_interp::TensorError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tensor {
    dtype: DataType,
    shape: Vec<u64>,
    bytes: Vec<u8>,
    defined: Vec<bool>,
}

/// The number of lanes that one task computes.
const LANES_OF_A_TASK: usize = 1 << 16;

/// Why a tensor cannot be created.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TensorError {
    /// The shape is not the size of an array.
    #[error(transparent)]
    Size(#[from] SizeError),
    /// Values of the type are not stored in tensors.
    #[error("the elements of a tensor cannot have the type {0}")]
    Type(DataType),
    /// The memory is not available; the size in bytes.
    #[error("{0} bytes cannot be allocated")]
    Memory(u64),
    /// The number of bytes or flags given does not match the shape and the type.
    #[error("{given} bytes are given, but the shape needs {expected}")]
    Length {
        /// The number given.
        given: u64,
        /// The number that the shape and the type need.
        expected: u64,
    },
}

/// Number of bytes (twice, once as an index) and of lanes of a tensor.
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

/// `len` copies of a value.
fn filled<T: Clone>(len: usize, value: T) -> Result<Vec<T>, TensorError> {
    let mut items = Vec::new();
    items.try_reserve_exact(len).map_err(|_| TensorError::Memory(len as u64))?;
    items.resize(len, value);
    Ok(items)
}

impl Tensor {
    /// A tensor without defined elements; their bytes are 0.
    ///
    /// # Errors
    /// The shape is not a valid size, the type cannot be stored, or the memory is not available.
    pub fn undefined(dtype: impl Into<DataType>, shape: &[u64]) -> Result<Self, TensorError> {
        let dtype = dtype.into();
        let (_, bytes, lanes) = sizes(dtype, shape)?;
        Ok(Self { dtype, shape: shape.to_vec(), bytes: filled(bytes, 0)?, defined: filled(lanes, false)? })
    }

    /// A tensor with the given bytes; all elements are defined.
    ///
    /// # Errors
    /// Those of [`Tensor::undefined`], or the number of bytes does not match the shape.
    pub fn from_bytes(dtype: impl Into<DataType>, shape: &[u64], bytes: Vec<u8>) -> Result<Self, TensorError> {
        let dtype = dtype.into();
        let (expected, _, lanes) = sizes(dtype, shape)?;
        if bytes.len() as u64 != expected {
            return Err(TensorError::Length { given: bytes.len() as u64, expected });
        }
        Ok(Self { dtype, shape: shape.to_vec(), bytes, defined: filled(lanes, true)? })
    }

    /// A tensor with the given bytes, and one flag for each lane that says whether it is defined. The bytes of undefined
    /// lanes are set to 0.
    ///
    /// # Errors
    /// Those of [`Tensor::undefined`], or the number of bytes or flags does not match the shape.
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

    /// A tensor whose lane number `n` (over all elements, row-major, lanes innermost) is `value(n)`; all are defined.
    ///
    /// Values are converted to the lane's type as [`tilewright_ir::scalar::cast`] converts `float64` and `int64`.
    ///
    /// # Errors
    /// Those of [`Tensor::undefined`].
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

    /// As [`Tensor::from_fn`]; the values of large tensors are computed on several threads.
    ///
    /// # Errors
    /// Those of [`Tensor::undefined`].
    pub fn from_lanes(
        dtype: impl Into<DataType>,
        shape: &[u64],
        value: impl Fn(usize) -> Scalar + Sync,
    ) -> Result<Self, TensorError> {
        let mut tensor = Self::undefined(dtype, shape)?;
        let (ty, width) = (tensor.dtype.scalar, tensor.width());
        let fill = |start: usize, bytes: &mut [u8]| {
            for (place, lane) in bytes.chunks_exact_mut(width).enumerate() {
                lane.copy_from_slice(&memory_of(ty, value(start + place)).to_le_bytes()[..width]);
            }
        };
        if tensor.lane_count() <= LANES_OF_A_TASK {
            fill(0, &mut tensor.bytes);
        } else {
            let tasks = tensor.bytes.par_chunks_mut(LANES_OF_A_TASK * width).enumerate();
            tasks.for_each(|(task, bytes)| fill(task * LANES_OF_A_TASK, bytes));
        }
        tensor.defined.fill(true);
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

    /// The bytes of all elements.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Whether each lane is defined, in the order of the memory.
    pub fn defined(&self) -> &[bool] {
        &self.defined
    }

    /// Total number of lanes of all elements.
    pub fn lane_count(&self) -> usize {
        self.defined.len()
    }

    /// Whether every lane is defined.
    pub fn is_all_defined(&self) -> bool {
        self.defined.iter().all(|&defined| defined)
    }

    /// Number of the first lane of the element at a logical index; `None` if the index is outside the shape.
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

    /// Value of a lane, counted over all elements; `None` if it is undefined or out of range.
    pub fn get(&self, lane: usize) -> Option<Scalar> {
        if !*self.defined.get(lane)? {
            return None;
        }
        let ty = self.dtype.scalar;
        Some(num::decode(ty, num::from_memory(ty, self.raw(lane))))
    }

    /// Value of a lane as a `float64`, rounded if it does not fit; `None` if it is undefined or out of range.
    pub fn get_f64(&self, lane: usize) -> Option<f64> {
        #[expect(clippy::cast_precision_loss, reason = "a number to look at")]
        self.get(lane).map(|value| match value {
            Scalar::Int(value) => value as f64,
            Scalar::Float(value) => value,
        })
    }

    /// Writes a lane, converting the value as [`Tensor::from_fn`] does. Does nothing if the lane is out of range.
    pub fn set(&mut self, lane: usize, value: Scalar) {
        self.set_raw(lane, memory_of(self.dtype.scalar, value), true);
    }

    /// The bits of a lane, in the low bits of the result.
    pub(crate) fn raw(&self, lane: usize) -> u64 {
        let width = self.width();
        let mut word = [0; 8];
        word[..width].copy_from_slice(&self.bytes[lane * width..(lane + 1) * width]);
        u64::from_le_bytes(word)
    }

    /// Writes the low bits of `raw` to a lane and sets its flag.
    pub(crate) fn set_raw(&mut self, lane: usize, raw: u64, defined: bool) {
        let width = self.width();
        if let Some(flag) = self.defined.get_mut(lane) {
            *flag = defined;
            self.bytes[lane * width..(lane + 1) * width].copy_from_slice(&raw.to_le_bytes()[..width]);
        }
    }

    /// The bytes, and for each lane whether it is defined.
    pub fn into_parts(self) -> (Vec<u8>, Vec<bool>) {
        (self.bytes, self.defined)
    }

    /// The bytes and the flags, to be overwritten as a whole.
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

/// The bits of a value in memory, after its conversion to the type of a lane.
fn memory_of(ty: ScalarType, value: Scalar) -> u64 {
    let from = if matches!(value, Scalar::Int(_)) { ScalarType::Int64 } else { ScalarType::Float64 };
    num::to_memory(ty, num::encode(ty, tilewright_ir::scalar::cast(from, ty, value)))
}

/// The value of an IEEE half given by its 16 bits.
pub(crate) fn half_value(bits: u16) -> f64 {
    f16::from_bits(bits).to_f64()
}
