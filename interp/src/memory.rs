//! Allocations, and the views through which buffers address them.
//!
//! The cells of an allocation are as wide as the narrowest element of any buffer that aliases it;
//! a wider element takes several cells, little endian.

use std::ops::Range;
use std::sync::Arc;

use tilewright_ir::ScalarType;

use crate::cell_runs::Lane;
use crate::cells::Cells;
use crate::cursor::{Places, Run};
use crate::written::Written;

/// An allocation, or a part of one.
///
/// A thread that holds the only reference to it reads and writes many cells at once; others share it.
pub(crate) struct Memory<'a> {
    cells: Cells<'a>,
    /// Number of cells of the allocation before the first one of the part.
    start: usize,
    /// The cells of the allocation that are defined; `None` if all are.
    defined: Option<Arc<Written>>,
    /// Whether a cell must be defined to be read.
    pub(crate) check: bool,
    /// Number of the allocation, for the race check.
    pub(crate) id: usize,
}

/// What is recorded about the cells that have been written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Definedness {
    /// Nothing: all cells count as defined.
    Untracked,
    /// Whether each cell was written; any cell may be read.
    Tracked,
    /// Whether each cell was written; only those may be read.
    Checked,
}

/// Least number of cells that are read or written differently by a thread that has them for itself.
const MIN_ALONE: usize = 32;

/// The memory for an allocation is not available.
pub(crate) struct OutOfMemory;

impl<'a> Memory<'a> {
    /// Defined cells, unless `definedness` says that none is yet.
    pub(crate) fn of_cells(cells: Cells<'a>, definedness: Definedness, id: usize) -> Result<Self, OutOfMemory> {
        let defined = match definedness {
            Definedness::Untracked => None,
            Definedness::Tracked | Definedness::Checked => Some(Arc::new(Written::none(cells.len())?)),
        };
        Ok(Self { cells, start: 0, defined, check: definedness == Definedness::Checked, id })
    }

    /// `len` cells of `width` bytes (1, 2, 4 or 8), all 0, and undefined if that is tracked.
    pub(crate) fn new(width: u64, len: usize, definedness: Definedness, id: usize) -> Result<Self, OutOfMemory> {
        Self::of_cells(Cells::zeroed(width, len)?, definedness, id)
    }

    /// Whether [`Memory::parts`] can make parts of these ranges: each begins where the one before ends, or later.
    pub(crate) fn can_be_parted(&self, ranges: &[Range<usize>]) -> bool {
        let (start, end) = (self.start, self.len());
        let is_inside = |range: &Range<usize>| start <= range.start && range.start <= range.end && range.end <= end;
        self.cells.can_be_written()
            && ranges.iter().all(is_inside)
            && ranges.is_sorted_by(|before, behind| before.end <= behind.start)
    }

    /// Parts of the memory with the cells of ranges. In a part the other cells are outside of the allocation.
    pub(crate) fn parts(&mut self, ranges: &[Range<usize>]) -> Vec<Memory<'_>> {
        let Self { cells, start, defined, check, id } = self;
        let places: Vec<_> = ranges.iter().map(|range| range.start - *start..range.end - *start).collect();
        let part = |(cells, range): (_, &Range<usize>)| Memory {
            cells,
            start: range.start,
            defined: defined.clone(),
            check: *check,
            id: *id,
        };
        cells.parts(&places).into_iter().zip(ranges).map(part).collect()
    }

    /// The memory as one that nobody writes as long as the result lives.
    pub(crate) fn freeze(&mut self) -> Memory<'_> {
        Memory {
            cells: self.cells.freeze(),
            start: self.start,
            defined: self.defined.clone(),
            check: self.check,
            id: self.id,
        }
    }

    /// Whether the cells are bytes that somebody else owns.
    pub(crate) fn is_lent(&self) -> bool {
        self.cells.is_lent()
    }

    /// Number of cells from the start of the allocation to the last one.
    pub(crate) fn len(&self) -> usize {
        self.start + self.cells.len()
    }

    /// What is added to the number of a cell of the allocation to get its place here.
    fn shift(&self) -> i64 {
        i64::try_from(self.start).map_or(i64::MIN, |start| -start)
    }

    /// The bits of a cell; `None` if it is outside the allocation.
    #[inline]
    pub(crate) fn get(&self, cell: usize) -> Option<u64> {
        self.cells.get(cell.wrapping_sub(self.start))
    }

    /// Writes the low bits to a cell and marks it defined; `None` if it is outside the allocation.
    #[inline]
    pub(crate) fn set(&self, cell: usize, bits: u64) -> Option<()> {
        self.cells.set(cell.wrapping_sub(self.start), bits)?;
        if let Some(defined) = &self.defined {
            defined.set(cell)?;
        }
        Some(())
    }

    /// Reads cells into `out`; false if one is outside the allocation or undefined where that
    /// is checked.
    pub(crate) fn read_places<L: Lane>(&self, places: Places<'_>, out: &mut [L]) -> bool {
        self.are_readable(places) && self.cells.read(places.shifted(self.shift()), out)
    }

    /// The memory of a thread that has it for itself, unless it takes longer to find that out than it saves for so few cells.
    fn alone(self: &mut Arc<Self>, cells: usize) -> Option<&mut Self> {
        if cells >= MIN_ALONE && self.cells.can_be_written() { Arc::get_mut(self) } else { None }
    }

    /// [`Memory::read_places`], many cells at once where nobody else has a reference to the memory.
    pub(crate) fn read_own<L: Lane>(self: &mut Arc<Self>, places: Places<'_>, out: &mut [L]) -> bool {
        let here = places.shifted(self.shift());
        self.are_readable(places)
            && match self.alone(out.len()) {
                Some(own) => own.cells.read_alone(here, out),
                None => self.cells.read(here, out),
            }
    }

    /// Whether cells may be read.
    fn are_readable(&self, places: Places<'_>) -> bool {
        match &self.defined {
            Some(defined) if self.check => places.sorted().all(|run| defined.has_run(&run)),
            _ => true,
        }
    }

    /// The elements of neighbouring cells as `float32`, if nobody writes the memory and they may be read.
    pub(crate) fn fixed_floats(&self, run: &Run, shift: i64) -> Option<&[f32]> {
        let floats = self.cells.fixed_floats(run.first.wrapping_add(shift).wrapping_add(self.shift()), run.len)?;
        self.are_readable(Places::of(run).shifted(shift)).then_some(floats)
    }

    /// Writes the low bits of the values to cells and marks them defined; false if one is outside the
    /// allocation.
    pub(crate) fn write_places<L: Lane>(self: &mut Arc<Self>, places: Places<'_>, values: &[L]) -> bool {
        let here = places.shifted(self.shift());
        let written = match self.alone(values.len()) {
            Some(own) => own.cells.write_alone(here, values),
            None => self.cells.write(here, values),
        };
        written && self.mark(places)
    }

    /// Marks cells as defined; false if one is outside the allocation.
    pub(crate) fn mark(&self, places: Places<'_>) -> bool {
        self.defined.as_ref().is_none_or(|defined| places.sorted().all(|run| defined.set_run(&run)))
    }

    /// Neighbouring cells as `float32`, to be written and marked as defined; `None` if others share them.
    pub(crate) fn own_floats(self: &mut Arc<Self>, run: &Run, shift: i64) -> Option<&mut [f32]> {
        let own = self.alone(run.len)?;
        let first = run.first.wrapping_add(shift).wrapping_add(own.shift());
        own.cells.own_floats(first, run.len)
    }

    /// Reads `cells[i]` into `out[i]` wherever the mask is not 0; false if one is outside the allocation or undefined
    /// where that is checked.
    pub(crate) fn read_cells<L: Lane>(&self, cells: &[i64], mask: Option<&[u64]>, out: &mut [L]) -> bool {
        let is_readable = |(at, &cell): (usize, &i64)| {
            mask.is_some_and(|mask| mask[at] == 0) || self.is_readable(usize::try_from(cell).unwrap_or(usize::MAX))
        };
        (!self.check || cells.iter().enumerate().all(is_readable)) && self.cells.gather(cells, self.shift(), mask, out)
    }

    /// Writes `values[i]` to `cells[i]` wherever the mask is not 0; false if one is outside the allocation.
    pub(crate) fn write_cells<L: Lane>(&self, cells: &[i64], mask: Option<&[u64]>, values: &[L]) -> bool {
        cells.iter().zip(values).enumerate().all(|(at, (&cell, &value))| {
            let skipped = mask.is_some_and(|mask| mask[at] == 0);
            skipped || self.set(usize::try_from(cell).unwrap_or(usize::MAX), value.bits()).is_some()
        })
    }

    /// Whether a cell may be read: it is defined, or that is not checked.
    #[inline]
    pub(crate) fn is_readable(&self, cell: usize) -> bool {
        !self.check || self.is_defined(cell)
    }

    /// Whether a cell is defined; true if that is not tracked.
    #[inline]
    pub(crate) fn is_defined(&self, cell: usize) -> bool {
        self.defined.as_ref().is_none_or(|defined| defined.get(cell))
    }

    /// Copies the cells to little-endian bytes, on several threads where there are many; excess bytes or cells are left alone.
    pub(crate) fn read_bytes(&self, bytes: &mut [u8]) {
        self.cells.read_bytes(bytes);
    }

    /// For each lane, which takes `cells` cells, whether all of them are defined; `None` if they are in all lanes.
    pub(crate) fn flags(&self, cells: usize) -> Option<Vec<bool>> {
        self.defined.as_ref()?.lanes(cells)
    }

    /// The bits of an element that takes `count` cells of `width` bytes, little endian; `None` if a cell is outside.
    pub(crate) fn get_wide(&self, cell: usize, count: usize, width: u64) -> Option<u64> {
        if count == 1 {
            return self.get(cell);
        }
        let mut bits = 0;
        for part in (0..count).rev() {
            bits = bits << (8 * width) | self.get(cell.checked_add(part)?)?;
        }
        Some(bits)
    }

    /// Writes an element that takes `count` cells of `width` bytes; writes nothing and returns `None` if one is outside.
    pub(crate) fn set_wide(&self, cell: usize, count: usize, width: u64, bits: u64) -> Option<()> {
        if count == 1 {
            return self.set(cell, bits);
        }
        self.get(cell.checked_add(count)?.checked_sub(1)?)?;
        for part in 0..count {
            self.set(cell + part, bits >> (8 * width * part as u64))?;
        }
        Some(())
    }
}

/// A buffer with known extents, strides and offset, as a window on an allocation.
#[derive(Clone, Debug)]
pub(crate) struct View {
    /// The allocation, as an index into a frame's memories.
    pub(crate) slot: usize,
    /// Extents in elements.
    pub(crate) extents: Vec<u64>,
    /// Distance in cells between neighbours along each axis.
    pub(crate) strides: Vec<i64>,
    /// Cell of the element whose indices are all 0.
    pub(crate) offset: i64,
    /// Cells of one lane.
    pub(crate) per_lane: usize,
    /// Bytes of a cell.
    pub(crate) width: u64,
}

/// Why extents, strides and an offset do not describe a view; reads as the end of a sentence about the buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BadView(pub(crate) String);

/// Extents, strides and offset of a view, all in elements.
pub(crate) struct Geometry<'a> {
    /// Extent of each axis.
    pub(crate) extents: &'a [i128],
    /// Distance between neighbours along each axis; row-major if `None`.
    pub(crate) strides: Option<&'a [i128]>,
    /// Position of the element whose indices are all 0.
    pub(crate) offset: i128,
    /// Lanes of an element.
    pub(crate) lanes: u16,
    /// Type of a lane.
    pub(crate) scalar: ScalarType,
}

impl View {
    /// A view on the allocation `slot` with cells of `width` bytes.
    ///
    /// # Errors
    /// An extent is negative, or the address of some element, in bytes, does not fit 62 bits. Address arithmetic can therefore use
    /// wrapping operations on `i64` as long as all indices are in bounds.
    pub(crate) fn new(slot: usize, width: u64, geometry: &Geometry<'_>) -> Result<Self, BadView> {
        let too_large = || BadView("its addresses leave 63 bits".to_owned());
        // Aliases of different types share an allocation, whose cells are as wide as the narrowest of them.
        let per_lane = geometry.scalar.bytes() / width.max(1);
        let per_element = i128::from(per_lane) * i128::from(geometry.lanes);
        if let Some(axis) = geometry.extents.iter().rposition(|&extent| extent < 0) {
            return Err(BadView(format!("its extent {} on axis {axis} is negative", geometry.extents[axis])));
        }
        if geometry.extents.contains(&0) {
            // Without an element there is no address: the product of the other extents may be as large as it likes.
            let extents = geometry.extents.iter().map(|&extent| u64::try_from(extent).unwrap_or(u64::MAX)).collect();
            let strides = vec![0; geometry.extents.len()];
            let per_lane = usize::try_from(per_lane).map_err(|_| too_large())?;
            return Ok(Self { slot, extents, strides, offset: 0, per_lane, width });
        }
        let mut strides = Vec::with_capacity(geometry.extents.len());
        let mut compact: i128 = 1;
        for (axis, &extent) in geometry.extents.iter().enumerate().rev() {
            let stride = geometry.strides.map_or(compact, |strides| strides[axis]);
            strides.push(stride.checked_mul(per_element).ok_or_else(too_large)?);
            compact = compact.checked_mul(extent).ok_or_else(too_large)?;
        }
        strides.reverse();
        let offset = geometry.offset.checked_mul(per_element).ok_or_else(too_large)?;
        // A bound on the absolute value of every address: an address is the offset plus one term for each axis, and the end
        // of an element is at most `per_element` further.
        let mut reach = offset.checked_abs().ok_or_else(too_large)?.checked_add(per_element).ok_or_else(too_large)?;
        for (&extent, &stride) in geometry.extents.iter().zip(&strides) {
            let span = (extent - 1).max(0).checked_mul(stride).and_then(i128::checked_abs).ok_or_else(too_large)?;
            reach = reach.checked_add(span).ok_or_else(too_large)?;
        }
        if reach.saturating_mul(width.max(1).into()) > i128::from(i64::MAX / 2) {
            return Err(too_large());
        }
        let narrow = |value: i128| i64::try_from(value).map_err(|_| too_large());
        Ok(Self {
            slot,
            extents: geometry
                .extents
                .iter()
                .map(|&extent| u64::try_from(extent).map_err(|_| too_large()))
                .collect::<Result<_, _>>()?,
            strides: strides.into_iter().map(narrow).collect::<Result<_, _>>()?,
            offset: narrow(offset)?,
            per_lane: usize::try_from(per_lane).map_err(|_| too_large())?,
            width,
        })
    }

    /// Number of cells from the start of the allocation to the end of the last element, 0 if the view has no element.
    /// `None` if an element lies before the start of the allocation.
    pub(crate) fn cells_needed(&self, lanes: u16) -> Option<u64> {
        if self.extents.contains(&0) {
            return Some(0);
        }
        let (mut low, mut high) = (i128::from(self.offset), i128::from(self.offset));
        for (&extent, &stride) in self.extents.iter().zip(&self.strides) {
            let span = i128::from(extent - 1) * i128::from(stride);
            if span < 0 { low += span } else { high += span }
        }
        let end = high + i128::from(lanes) * self.per_lane as i128;
        if low < 0 { None } else { u64::try_from(end).ok() }
    }
}
