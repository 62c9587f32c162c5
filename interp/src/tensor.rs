//! Tensors: the arguments and results of a program.

use std::borrow::Cow;
use std::sync::Arc;

use half::f16;
use rayon::prelude::*;
use tilewright_ir::{DataType, Scalar, ScalarType, SizeError, checked_size};

use crate::memory::Memory;
use crate::num;

/// Elements in row-major order, each with a flag that says whether it is defined.
///
/// Clones share the elements until one of them is written.
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
#[derive(Clone, Debug)]
pub struct Tensor {
    dtype: DataType,
    shape: Vec<u64>,
    bytes: Arc<Vec<u8>>,
    defined: Defined,
    /// Number of lanes of all elements.
    lanes: usize,
}

/// Which lanes are defined. Large tensors are defined as a whole or not at all, and then need no flags.
#[derive(Clone, Debug)]
enum Defined {
    All,
    None,
    Each(Arc<Vec<bool>>),
}

impl Defined {
    /// The state that flags describe.
    fn of(flags: Vec<bool>) -> Self {
        match flags.first() {
            Some(true) | None if flags.par_iter().with_min_len(LANES_OF_A_TASK).all(|flag| *flag) => Self::All,
            _ => Self::Each(Arc::new(flags)),
        }
    }
}

impl PartialEq for Tensor {
    fn eq(&self, other: &Self) -> bool {
        (self.dtype, &self.shape) == (other.dtype, &other.shape)
            && self.bytes == other.bytes
            && self.has_same_flags(other)
    }
}

impl Eq for Tensor {}

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

/// `len` zeros. The system hands out memory that is 0 and not touched yet, which the thread that writes it first pays for.
fn zeros(len: usize) -> Result<Vec<u8>, TensorError> {
    // `vec!` ends the process where there is no memory, so that a request that may fail goes first.
    Vec::<u8>::new().try_reserve_exact(len).map_err(|_| TensorError::Memory(len as u64))?;
    Ok(vec![0; len])
}

impl Tensor {
    /// A tensor without defined elements; their bytes are 0.
    ///
    /// # Errors
    /// The shape is not a valid size, the type cannot be stored, or the memory is not available.
    pub fn undefined(dtype: impl Into<DataType>, shape: &[u64]) -> Result<Self, TensorError> {
        let dtype = dtype.into();
        let (_, bytes, lanes) = sizes(dtype, shape)?;
        Ok(Self { dtype, shape: shape.to_vec(), bytes: Arc::new(zeros(bytes)?), defined: Defined::None, lanes })
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
        Ok(Self { dtype, shape: shape.to_vec(), bytes: Arc::new(bytes), defined: Defined::All, lanes })
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
        if defined.len() != tensor.lanes {
            return Err(TensorError::Length { given: defined.len() as u64, expected: tensor.lanes as u64 });
        }
        tensor.defined = Defined::of(defined);
        if let Defined::Each(flags) = &tensor.defined {
            let width = tensor.width();
            let lanes = Arc::make_mut(&mut tensor.bytes).chunks_exact_mut(width);
            lanes.zip(flags.iter()).filter(|(_, defined)| !**defined).for_each(|(lane, _)| lane.fill(0));
        }
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
        let (ty, width) = (tensor.dtype.scalar, tensor.width());
        for (place, lane) in Arc::make_mut(&mut tensor.bytes).chunks_exact_mut(width).enumerate() {
            lane.copy_from_slice(&memory_of(ty, value(place)).to_le_bytes()[..width]);
        }
        tensor.defined = Defined::All;
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
        tensor.set_all(value);
        Ok(tensor)
    }

    /// Sets each lane, as [`Tensor::from_lanes`] does.
    pub(crate) fn set_all(&mut self, value: impl Fn(usize) -> Scalar + Sync) {
        let (ty, width) = (self.dtype.scalar, self.width());
        let fill = |start: usize, bytes: &mut [u8]| {
            for (place, lane) in bytes.chunks_exact_mut(width).enumerate() {
                lane.copy_from_slice(&memory_of(ty, value(start + place)).to_le_bytes()[..width]);
            }
        };
        let is_small = self.lane_count() <= LANES_OF_A_TASK;
        let bytes = Arc::make_mut(&mut self.bytes);
        if is_small {
            fill(0, bytes);
        } else {
            let tasks = bytes.par_chunks_mut(LANES_OF_A_TASK * width).enumerate();
            tasks.for_each(|(task, bytes)| fill(task * LANES_OF_A_TASK, bytes));
        }
        self.defined = Defined::All;
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

    /// The bytes of all elements, shared with this tensor.
    pub fn shared_bytes(&self) -> Arc<Vec<u8>> {
        Arc::clone(&self.bytes)
    }

    /// Whether each lane is defined, in the order of the memory. Makes a list unless there is one; [`Tensor::is_defined`] asks for
    /// one lane.
    pub fn defined(&self) -> Cow<'_, [bool]> {
        match &self.defined {
            Defined::All => Cow::Owned(vec![true; self.lanes]),
            Defined::None => Cow::Owned(vec![false; self.lanes]),
            Defined::Each(flags) => Cow::Borrowed(flags),
        }
    }

    /// Whether a lane, counted over all elements, is defined; false if it is out of range.
    pub fn is_defined(&self, lane: usize) -> bool {
        match &self.defined {
            Defined::All => lane < self.lanes,
            Defined::None => false,
            Defined::Each(flags) => flags.get(lane).is_some_and(|defined| *defined),
        }
    }

    /// Whether the same lanes are defined in a tensor of the same number of lanes.
    pub fn has_same_flags(&self, other: &Self) -> bool {
        match (&self.defined, &other.defined) {
            (Defined::All, Defined::All) | (Defined::None, Defined::None) => true,
            _ => self.defined() == other.defined(),
        }
    }

    /// Total number of lanes of all elements.
    pub fn lane_count(&self) -> usize {
        self.lanes
    }

    /// Whether every lane is defined.
    pub fn is_all_defined(&self) -> bool {
        match &self.defined {
            Defined::All => true,
            Defined::None => self.lanes == 0,
            Defined::Each(flags) => flags.iter().all(|defined| *defined),
        }
    }

    /// Whether no lane is defined.
    pub fn is_none_defined(&self) -> bool {
        match &self.defined {
            Defined::All => self.lanes == 0,
            Defined::None => true,
            Defined::Each(flags) => !flags.contains(&true),
        }
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
        if !self.is_defined(lane) {
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

    /// Writes the low bits of `raw`, or 0 if they are not defined, to a lane and sets its flag.
    pub(crate) fn set_raw(&mut self, lane: usize, raw: u64, defined: bool) {
        let width = self.width();
        if lane >= self.lanes {
            return;
        }
        let raw = if defined { raw } else { 0 };
        Arc::make_mut(&mut self.bytes)[lane * width..(lane + 1) * width].copy_from_slice(&raw.to_le_bytes()[..width]);
        if self.is_defined(lane) != defined {
            if !matches!(self.defined, Defined::Each(_)) {
                self.defined = Defined::Each(Arc::new(self.defined().into_owned()));
            }
            if let Defined::Each(flags) = &mut self.defined {
                Arc::make_mut(flags)[lane] = defined;
            }
        }
    }

    /// Takes the bytes, all 0, if no lane was ever defined and nobody shares them. [`Tensor::replace`] or [`Tensor::give_back`] must
    /// follow.
    pub(crate) fn take_undefined(&mut self) -> Option<Vec<u8>> {
        let (Defined::None, Some(bytes)) = (&self.defined, Arc::get_mut(&mut self.bytes)) else { return None };
        Some(std::mem::take(bytes))
    }

    /// Takes back the bytes that it gave away. No lane is defined, as before.
    pub(crate) fn give_back(&mut self, mut bytes: Vec<u8>) {
        bytes.fill(0);
        self.bytes = Arc::new(bytes);
    }

    /// Writes the bytes of a large tensor without defined elements on all threads, so that the system has found memory for them before a
    /// run whose time is taken.
    pub fn touch(&mut self) {
        if let (Defined::None, Some(bytes)) = (&self.defined, Arc::get_mut(&mut self.bytes))
            && bytes.len() > LANES_OF_A_TASK
        {
            bytes.par_chunks_mut(LANES_OF_A_TASK).for_each(|bytes| bytes.fill(0));
        }
    }

    /// The bytes of all elements.
    pub fn into_bytes(self) -> Vec<u8> {
        Arc::unwrap_or_clone(self.bytes)
    }

    /// The bytes, and for each lane whether it is defined.
    pub fn into_parts(self) -> (Vec<u8>, Vec<bool>) {
        let defined = self.defined().into_owned();
        (Arc::unwrap_or_clone(self.bytes), defined)
    }

    /// Replaces all elements by those of memory that has them in the same order, each lane in `cells` cells.
    pub(crate) fn read_from(&mut self, memory: &Memory, cells: usize) {
        // The old bytes are not copied where they are shared: all of them are overwritten.
        let shared = Arc::get_mut(&mut self.bytes).is_none();
        if shared {
            self.bytes = Arc::new(vec![0; self.bytes.len()]);
        }
        memory.read_bytes(Arc::make_mut(&mut self.bytes).as_mut_slice());
        self.defined = memory.flags(cells).map_or(Defined::All, Defined::of);
    }

    /// Replaces all elements by bytes, and the flags; without flags, all elements are defined.
    pub(crate) fn replace(&mut self, bytes: Vec<u8>, flags: Option<Vec<bool>>) {
        self.bytes = Arc::new(bytes);
        self.defined = flags.map_or(Defined::All, Defined::of);
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
