//! Memory as bytes, and the addresses of elements.
//!
//! A buffer is a view of the memory of its data variable. Aliases share the bytes, whatever their types and shapes are.
//!
//! ```text
//! A: shape (3, 5), strides (8, 1), elem_offset 2, float32x2      element A[2, 1] is number 2 * 8 + 1 * 1 + 2 = 19
//!                                                                lane 1 of it is bytes 19 * 8 + 4 .. 19 * 8 + 8
//! ```

use std::ops::Range;

use half::{bf16, f16};
use tilewright_ir::ScalarType::{BFloat16, Float16, Float32, Float64};
use tilewright_ir::ScalarType::{Bool, Handle, Int8, Int16, Int32, Int64, UInt8, UInt16, UInt32, UInt64};
use tilewright_ir::{Buffer, Expr, Scalar, ScalarType, Var, scalar};

use super::expr::lane_of;
use super::{Interpreter, Value};
use crate::config::{RunError as Stop, TrapKind};

/// The shape, strides and offset of a buffer with the values that its variables have now.
#[derive(PartialEq)]
pub(super) struct Layout {
    extents: Vec<i128>,
    /// Distance in elements between neighbours along each axis.
    strides: Vec<i128>,
    /// The number of the element whose indices are all 0; those of the first element in memory and behind the last.
    offset: i128,
    span: Range<i128>,
}

/// Computes a layout; row-major if there are no strides. `None` if an extent is negative or an address leaves 62 bits.
fn layout(extents: Vec<i128>, strides: Option<Vec<i128>>, offset: i128, element: i128) -> Option<Layout> {
    if extents.contains(&0) && extents.iter().all(|extent| *extent >= 0) {
        return Some(Layout { strides: vec![0; extents.len()], extents, offset: 0, span: 0..0 });
    }
    let row_major = |axis: usize| extents[axis + 1..].iter().try_fold(1i128, |size, extent| size.checked_mul(*extent));
    let strides = strides.map_or_else(|| (0..extents.len()).map(row_major).collect(), Some)?;
    let mut span = offset..offset.checked_add(1)?;
    for (extent, stride) in extents.iter().zip(&strides) {
        let distance = (extent - 1).checked_mul(*stride).filter(|_| *extent > 0)?;
        let end = if distance < 0 { &mut span.start } else { &mut span.end };
        *end = end.checked_add(distance)?;
    }
    let fits = |at: i128| at.checked_mul(element).is_some_and(|byte| (-1 << 62..1 << 62).contains(&byte));
    (fits(span.start) && fits(span.end)).then_some(Layout { extents, strides, offset, span })
}

/// The value of the type `ty` with the given bytes, little endian. Bytes that were never written count as 0.
fn decode(ty: ScalarType, bytes: &[Option<u8>]) -> Scalar {
    let bits = bytes.iter().rev().fold(0u64, |bits, byte| bits << 8 | u64::from(byte.unwrap_or(0)));
    let (half, single) = (u16::try_from(bits).unwrap_or(0), u32::try_from(bits).unwrap_or(0));
    match ty {
        Float16 => Scalar::Float(f16::from_bits(half).to_f64()),
        BFloat16 => Scalar::Float(bf16::from_bits(half).to_f64()),
        Float32 => Scalar::Float(f32::from_bits(single).into()),
        Float64 => Scalar::Float(f64::from_bits(bits)),
        Bool | Int8 | Int16 | Int32 | Int64 | UInt8 | UInt16 | UInt32 | UInt64 | Handle => {
            Scalar::Int(scalar::wrap_int(ty, bits.into()))
        }
    }
}

/// The bytes of a value of the type `ty`, little endian, followed by others that it does not have in memory.
pub(super) fn encode(ty: ScalarType, value: Scalar) -> [u8; 16] {
    let bits: i128 = match (value, ty) {
        (Scalar::Int(value), _) => value,
        (Scalar::Float(value), Float16) => f16::from_f64(value).to_bits().into(),
        (Scalar::Float(value), BFloat16) => bf16::from_f64(value).to_bits().into(),
        #[expect(clippy::cast_possible_truncation, reason = "float32 represents its values")]
        (Scalar::Float(value), Float32) => (value as f32).to_bits().into(),
        (Scalar::Float(value), Float64 | Bool | Int8 | Int16 | Int32 | Int64) => value.to_bits().into(),
        (Scalar::Float(value), UInt8 | UInt16 | UInt32 | UInt64 | Handle) => value.to_bits().into(),
    };
    bits.to_le_bytes()
}

impl Interpreter<'_> {
    /// The layout of a buffer at this place in the program, or a sentence that says why it has none.
    pub(super) fn layout(&self, buffer: &Buffer) -> Result<Layout, String> {
        let integer = |var: Var| Some((var.clone(), self.vars.get(&var)?.first()?.as_int()?));
        let bound = |expr: &Expr| expr.vars().into_iter().filter_map(integer).collect();
        let value = |expr: &Expr| expr.eval_index(&bound(expr)).map_err(|error| format!("`{buffer}`: {error}"));
        let extents = buffer.shape.iter().map(value).collect::<Result<_, _>>()?;
        let strides = buffer.strides.as_ref().map(|strides| strides.iter().map(value).collect()).transpose()?;
        let layout = layout(extents, strides, value(&buffer.elem_offset)?, buffer.dtype.bytes().into());
        layout.ok_or_else(|| format!("`{buffer}` has a negative extent or an address that is too large"))
    }

    /// Gives a buffer undefined memory up to its last element. The limit is checked before anything is allocated.
    ///
    /// # Errors
    /// The buffer has no layout, or its memory is above the limit or not there: the kind of the trap, and its text.
    pub(super) fn allocate(&mut self, buffer: &Buffer) -> Result<(), (TrapKind, String)> {
        let span = self.layout(buffer).map_err(|why| (TrapKind::Size, why))?.span;
        if span.start < 0 {
            return Err((TrapKind::Size, format!("`{buffer}` starts before its memory")));
        }
        let bytes = u64::try_from(span.end).unwrap_or(u64::MAX).saturating_mul(buffer.dtype.bytes());
        let (total, limit) = (self.live.saturating_add(bytes), self.config.max_bytes);
        if total > limit {
            let why = format!("`{buffer}` takes {bytes} bytes, {total} in all, but only {limit} are allowed");
            return Err((TrapKind::Memory, why));
        }
        let (mut memory, count) = (Vec::new(), usize::try_from(bytes).unwrap_or(usize::MAX));
        let absent = |_| (TrapKind::Memory, format!("`{buffer}` takes {bytes} bytes, which are not there"));
        memory.try_reserve_exact(count).map_err(absent)?;
        memory.resize(count, None);
        self.live = total;
        self.memories.insert(buffer.data.clone(), memory);
        Ok(())
    }

    /// The bytes that hold one lane of the element at some indices. Lanes are counted over all elements that an index with
    /// several lanes selects. A view may be larger than its memory, so indices in bounds do not suffice.
    fn place(&self, buffer: &Buffer, indices: &[Value], lane: usize) -> Result<Range<usize>, Stop> {
        let Layout { extents, strides, offset, .. } =
            self.layout(buffer).map_err(|why| self.trap(TrapKind::Size, why))?;
        let per_element = usize::from(buffer.dtype.lanes.max(1));
        let at = |index: &Value| lane_of(index, lane / per_element).as_int().unwrap_or_default();
        let indices: Vec<_> = indices.iter().map(at).collect();
        if let Some(axis) = (0..indices.len()).find(|axis| !(0..extents[*axis]).contains(&indices[*axis])) {
            let message = format!("`{buffer}` at {indices:?} is out of bounds on axis {axis} of {extents:?}");
            return Err(self.trap(TrapKind::OutOfBounds, message));
        }
        let element = indices.iter().zip(&strides).fold(offset, |sum, (index, stride)| sum + index * stride);
        let (bytes, width) = (i128::from(buffer.dtype.bytes()), i128::from(buffer.dtype.scalar.bytes()));
        let first = element * bytes + (lane % per_element) as i128 * width;
        let place = usize::try_from(first).ok().zip(usize::try_from(first + width).ok());
        let place = place.filter(|(_, end)| *end <= self.memories.get(&buffer.data).map_or(0, Vec::len));
        let message = || format!("`{buffer}` at {indices:?} lies outside the memory of its allocation");
        place.map(|(first, end)| first..end).ok_or_else(|| self.trap(TrapKind::OutOfBounds, message()))
    }

    /// The bytes of one lane of an element.
    pub(super) fn read(&self, buffer: &Buffer, indices: &[Value], lane: usize) -> Result<&[Option<u8>], Stop> {
        let place = self.place(buffer, indices, lane)?;
        Ok(self.memories.get(&buffer.data).and_then(|memory| memory.get(place)).unwrap_or_default())
    }

    /// Writes as many of the bytes as one lane of an element has.
    pub(super) fn write(&mut self, buffer: &Buffer, indices: &[Value], lane: usize, bytes: &[u8]) -> Result<(), Stop> {
        let place = self.place(buffer, indices, lane)?;
        let memory = self.memories.get_mut(&buffer.data).and_then(|memory| memory.get_mut(place));
        memory.unwrap_or_default().iter_mut().zip(bytes).for_each(|(to, byte)| *to = Some(*byte));
        Ok(())
    }

    /// The value of one lane of an element, all bytes of which must have been written.
    pub(super) fn load(&self, buffer: &Buffer, indices: &[Value], lane: usize) -> Result<Scalar, Stop> {
        let bytes = self.read(buffer, indices, lane)?;
        if self.config.observers.defined && bytes.contains(&None) {
            return Err(self.trap(TrapKind::Undefined, format!("an element of `{buffer}` was never written")));
        }
        Ok(decode(buffer.dtype.scalar, bytes))
    }
}
