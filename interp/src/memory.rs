//! Allocations, and the views through which buffers address them.
//!
//! Threads share allocations, so cells are atomic and all accesses are relaxed, which compiles to plain loads and stores
//! on the usual machines. The cells of an allocation are as wide as the narrowest element of any buffer that aliases it;
//! a wider element takes several cells, little endian.

use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering::Relaxed};

use rayon::prelude::*;
use tilewright_ir::ScalarType;

use crate::cursor::Run;

/// The cells of an allocation, all of the same width.
pub(crate) enum Cells {
    U8(Vec<AtomicU8>),
    U16(Vec<AtomicU16>),
    U32(Vec<AtomicU32>),
    U64(Vec<AtomicU64>),
}

/// An allocation.
pub(crate) struct Memory {
    pub(crate) cells: Cells,
    /// One flag per cell; `None` if all cells count as defined.
    pub(crate) defined: Option<Vec<AtomicU8>>,
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

/// The memory for an allocation is not available.
pub(crate) struct OutOfMemory;

/// `len` default values, made on several threads if there are many: the system finds memory when it is first written.
fn zeroed<T: Default + Send>(len: usize) -> Result<Vec<T>, OutOfMemory> {
    let mut items = Vec::new();
    items.try_reserve_exact(len).map_err(|_| OutOfMemory)?;
    if len <= CELLS_OF_A_TASK {
        items.resize_with(len, T::default);
    } else {
        items.par_extend((0..len).into_par_iter().with_min_len(CELLS_OF_A_TASK).map(|_| T::default()));
    }
    Ok(items)
}

/// `len` neighbouring cells; `None` if one is outside the allocation.
#[inline]
fn in_a_row<T>(cells: &[T], first: i64, len: usize) -> Option<&[T]> {
    let first = usize::try_from(first).ok()?;
    cells.get(first..first.checked_add(len)?)
}

/// Calls `each` with the position and the cell of `len` cells that lie `step` apart.
///
/// Returns false if a cell is outside the allocation or `each` returns false for one; it may have been called for any
/// of the cells then.
#[inline(always)]
#[expect(clippy::inline_always, reason = "the closure is the body of a hot loop")]
fn for_each_cell<T>(cells: &[T], first: i64, step: i64, len: usize, mut each: impl FnMut(usize, &T) -> bool) -> bool {
    let Some(last) = len.checked_sub(1).and_then(|last| i64::try_from(last).ok()) else { return true };
    let (Ok(from), Ok(to)) = (usize::try_from(first), usize::try_from(first.wrapping_add(last.wrapping_mul(step))))
    else {
        return false;
    };
    let mut all = true;
    // One branch for each kind of step, so that the contiguous and the constant case compile to simple loops.
    match (step, cells.get(from..), usize::try_from(step)) {
        (1, ..) => {
            let Some(cells) = cells.get(from..from + len) else { return false };
            for (at, cell) in cells.iter().enumerate() {
                all &= each(at, cell);
            }
        }
        (0, Some([cell, ..]), _) => (0..len).for_each(|at| all &= each(at, cell)),
        (_, Some(cells), Ok(step @ 1..)) if to - from < cells.len() => {
            for (at, cell) in cells.iter().step_by(step).take(len).enumerate() {
                all &= each(at, cell);
            }
        }
        (..0, ..) => {
            let mut cell = first;
            for at in 0..len {
                let Some(here) = usize::try_from(cell).ok().and_then(|cell| cells.get(cell)) else { return false };
                all &= each(at, here);
                cell = cell.wrapping_add(step);
            }
        }
        _ => return false,
    }
    all
}

/// A value of a vector register, with the bits of an element in its low bits.
pub(crate) trait Lane: Copy {
    fn of_bits(bits: u64) -> Self;
    fn bits(self) -> u64;
}

impl Lane for u64 {
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "the body of a hot loop")]
    fn of_bits(bits: u64) -> Self {
        bits
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "the body of a hot loop")]
    fn bits(self) -> u64 {
        self
    }
}

impl Lane for f32 {
    #[inline(always)]
    #[expect(clippy::inline_always, clippy::cast_possible_truncation, reason = "hot; the low bits are the element")]
    fn of_bits(bits: u64) -> Self {
        Self::from_bits(bits as u32)
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "the body of a hot loop")]
    fn bits(self) -> u64 {
        self.to_bits().into()
    }
}

/// Reads the cells of runs, moved by `shift`, into `out`; false if one is outside the allocation.
#[inline(always)]
#[expect(clippy::inline_always, reason = "the closure is the body of a hot loop")]
fn read_with<T, L: Lane>(cells: &[T], runs: &[Run], shift: i64, out: &mut [L], get: impl Fn(&T) -> u64) -> bool {
    runs.iter().all(|run| {
        let Some(out) = out.get_mut(run.at..run.at + run.len) else { return false };
        let first = run.first.wrapping_add(shift);
        if run.step == 0 {
            let cell = usize::try_from(first).ok().and_then(|first| cells.get(first));
            return cell.map(|cell| out.fill(L::of_bits(get(cell)))).is_some();
        }
        if run.step == 1 {
            let Some(cells) = in_a_row(cells, first, run.len) else { return false };
            out.iter_mut().zip(cells).for_each(|(out, cell)| *out = L::of_bits(get(cell)));
            return true;
        }
        let mut out = out.iter_mut();
        for_each_cell(cells, first, run.step, run.len, |_, cell| {
            out.next().map(|out| *out = L::of_bits(get(cell))).is_some()
        })
    })
}

/// Writes `values` to the cells of runs; false if one is outside the allocation.
#[inline(always)]
#[expect(clippy::inline_always, reason = "the closure is the body of a hot loop")]
fn write_with<T, L: Lane>(cells: &[T], runs: &[Run], values: &[L], set: impl Fn(&T, u64)) -> bool {
    runs.iter().all(|run| {
        let Some(values) = values.get(run.at..run.at + run.len) else { return false };
        if run.step == 1 {
            let Some(cells) = in_a_row(cells, run.first, run.len) else { return false };
            cells.iter().zip(values).for_each(|(cell, value)| set(cell, value.bits()));
            return true;
        }
        let mut values = values.iter();
        for_each_cell(cells, run.first, run.step, run.len, |_, cell| {
            values.next().map(|value| set(cell, value.bits())).is_some()
        })
    })
}

/// The number of cells that one task copies.
const CELLS_OF_A_TASK: usize = 1 << 16;

/// Cells made of little-endian bytes, on several threads where there are many.
fn load_all<T: Send, const WIDTH: usize>(
    bytes: &[u8],
    cell: impl Fn([u8; WIDTH]) -> T + Sync,
) -> Result<Vec<T>, OutOfMemory> {
    let (words, _) = bytes.as_chunks::<WIDTH>();
    let mut cells = Vec::new();
    cells.try_reserve_exact(words.len()).map_err(|_| OutOfMemory)?;
    if words.len() <= CELLS_OF_A_TASK {
        cells.extend(words.iter().map(|word| cell(*word)));
    } else {
        cells.par_extend(words.par_iter().with_min_len(CELLS_OF_A_TASK).map(|word| cell(*word)));
    }
    Ok(cells)
}

/// Writes cells to bytes, on several threads where there are many.
fn store_all<T: Sync, const WIDTH: usize>(cells: &[T], bytes: &mut [u8], store: impl Fn(&T, &mut [u8; WIDTH]) + Sync) {
    let (words, _) = bytes.as_chunks_mut::<WIDTH>();
    let task = |(cells, words): (&[T], &mut [[u8; WIDTH]])| {
        cells.iter().zip(words).for_each(|(cell, word)| store(cell, word));
    };
    if cells.len() <= CELLS_OF_A_TASK {
        task((cells, words));
    } else {
        cells.par_chunks(CELLS_OF_A_TASK).zip(words.par_chunks_mut(CELLS_OF_A_TASK)).for_each(task);
    }
}

impl Memory {
    /// Defined cells of `width` bytes (1, 2, 4 or 8) with the given contents, little endian.
    pub(crate) fn of_bytes(width: u64, bytes: &[u8], id: usize) -> Result<Self, OutOfMemory> {
        let cells = match width {
            1 => Cells::U8(load_all(bytes, |[byte]| AtomicU8::new(byte))?),
            2 => Cells::U16(load_all(bytes, |word| AtomicU16::new(u16::from_le_bytes(word)))?),
            4 => Cells::U32(load_all(bytes, |word| AtomicU32::new(u32::from_le_bytes(word)))?),
            _ => Cells::U64(load_all(bytes, |word| AtomicU64::new(u64::from_le_bytes(word)))?),
        };
        Ok(Self { cells, defined: None, check: false, id })
    }

    /// `len` cells of `width` bytes (1, 2, 4 or 8), all 0, and undefined if that is tracked.
    pub(crate) fn new(width: u64, len: usize, definedness: Definedness, id: usize) -> Result<Self, OutOfMemory> {
        let cells = match width {
            1 => Cells::U8(zeroed(len)?),
            2 => Cells::U16(zeroed(len)?),
            4 => Cells::U32(zeroed(len)?),
            _ => Cells::U64(zeroed(len)?),
        };
        let defined = match definedness {
            Definedness::Untracked => None,
            Definedness::Tracked | Definedness::Checked => Some(zeroed(len)?),
        };
        Ok(Self { cells, defined, check: definedness == Definedness::Checked, id })
    }

    /// Number of cells.
    pub(crate) fn len(&self) -> usize {
        match &self.cells {
            Cells::U8(cells) => cells.len(),
            Cells::U16(cells) => cells.len(),
            Cells::U32(cells) => cells.len(),
            Cells::U64(cells) => cells.len(),
        }
    }

    /// The bits of a cell; `None` if it is outside the allocation.
    #[inline]
    pub(crate) fn get(&self, cell: usize) -> Option<u64> {
        Some(match &self.cells {
            Cells::U32(cells) => cells.get(cell)?.load(Relaxed).into(),
            Cells::U8(cells) => cells.get(cell)?.load(Relaxed).into(),
            Cells::U16(cells) => cells.get(cell)?.load(Relaxed).into(),
            Cells::U64(cells) => cells.get(cell)?.load(Relaxed),
        })
    }

    /// Writes the low bits to a cell and marks it defined; `None` if it is outside the allocation.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the low bits are the element")]
    pub(crate) fn set(&self, cell: usize, bits: u64) -> Option<()> {
        match &self.cells {
            Cells::U32(cells) => cells.get(cell)?.store(bits as u32, Relaxed),
            Cells::U8(cells) => cells.get(cell)?.store(bits as u8, Relaxed),
            Cells::U16(cells) => cells.get(cell)?.store(bits as u16, Relaxed),
            Cells::U64(cells) => cells.get(cell)?.store(bits, Relaxed),
        }
        if let Some(defined) = &self.defined {
            defined.get(cell)?.store(1, Relaxed);
        }
        Some(())
    }

    /// Reads the cells of runs, moved by `shift`, into `out`; false if one is outside the allocation or undefined where that
    /// is checked.
    pub(crate) fn read_runs<L: Lane>(&self, runs: &[Run], shift: i64, out: &mut [L]) -> bool {
        let is_defined = |defined: &[AtomicU8], run: &Run| {
            let first = run.first.wrapping_add(shift);
            for_each_cell(defined, first, run.step, run.len, |_, flag| flag.load(Relaxed) != 0)
        };
        let readable = match &self.defined {
            Some(defined) if self.check => runs.iter().all(|run| is_defined(defined, run)),
            _ => true,
        };
        readable
            && match &self.cells {
                Cells::U32(cells) => read_with(cells, runs, shift, out, |cell| cell.load(Relaxed).into()),
                Cells::U8(cells) => read_with(cells, runs, shift, out, |cell| cell.load(Relaxed).into()),
                Cells::U16(cells) => read_with(cells, runs, shift, out, |cell| cell.load(Relaxed).into()),
                Cells::U64(cells) => read_with(cells, runs, shift, out, |cell| cell.load(Relaxed)),
            }
    }

    /// Writes the low bits of the values to the cells of runs and marks them defined; false if one is outside the
    /// allocation.
    #[expect(clippy::cast_possible_truncation, reason = "the low bits are the element")]
    pub(crate) fn write_runs<L: Lane>(&self, runs: &[Run], values: &[L]) -> bool {
        let written = match &self.cells {
            Cells::U32(cells) => write_with(cells, runs, values, |cell, bits| cell.store(bits as u32, Relaxed)),
            Cells::U8(cells) => write_with(cells, runs, values, |cell, bits| cell.store(bits as u8, Relaxed)),
            Cells::U16(cells) => write_with(cells, runs, values, |cell, bits| cell.store(bits as u16, Relaxed)),
            Cells::U64(cells) => write_with(cells, runs, values, |cell, bits| cell.store(bits, Relaxed)),
        };
        let mark = |_, flag: &AtomicU8| {
            flag.store(1, Relaxed);
            true
        };
        let mut marked =
            |defined: &[AtomicU8]| runs.iter().all(|run| for_each_cell(defined, run.first, run.step, run.len, mark));
        written && self.defined.as_deref().is_none_or(&mut marked)
    }

    /// Reads `cells[i]` into `out[i]` wherever the mask is not 0; false if one is outside the allocation or undefined
    /// where that is checked.
    pub(crate) fn read_cells<L: Lane>(&self, cells: &[i64], mask: Option<&[u64]>, out: &mut [L]) -> bool {
        cells.iter().zip(out).enumerate().all(|(at, (&cell, out))| {
            if mask.is_some_and(|mask| mask[at] == 0) {
                return true;
            }
            let cell = usize::try_from(cell).unwrap_or(usize::MAX);
            let bits = self.get(cell).filter(|_| self.is_readable(cell));
            *out = L::of_bits(bits.unwrap_or(0));
            bits.is_some()
        })
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
        match &self.defined {
            None => true,
            Some(defined) => defined.get(cell).is_some_and(|flag| flag.load(Relaxed) != 0),
        }
    }

    /// Copies the cells to little-endian bytes, on several threads where there are many; excess bytes or cells are left alone.
    pub(crate) fn read_bytes(&self, bytes: &mut [u8]) {
        match &self.cells {
            Cells::U8(cells) => store_all(cells, bytes, |cell, to: &mut [u8; 1]| *to = [cell.load(Relaxed)]),
            Cells::U16(cells) => store_all(cells, bytes, |cell, to| *to = cell.load(Relaxed).to_le_bytes()),
            Cells::U32(cells) => store_all(cells, bytes, |cell, to| *to = cell.load(Relaxed).to_le_bytes()),
            Cells::U64(cells) => store_all(cells, bytes, |cell, to| *to = cell.load(Relaxed).to_le_bytes()),
        }
    }

    /// For each lane, which takes `cells` cells, whether all of them are defined; `None` if that is not tracked.
    pub(crate) fn flags(&self, cells: usize) -> Option<Vec<bool>> {
        let flags = self.defined.as_ref()?;
        let lanes = flags.par_chunks_exact(cells.max(1)).with_min_len(CELLS_OF_A_TASK);
        Some(lanes.map(|lane| lane.iter().all(|flag| flag.load(Relaxed) != 0)).collect())
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
    /// An extent is negative, or the address of some element does not fit 62 bits. Address arithmetic can therefore use
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
        if reach > i128::from(i64::MAX / 2) {
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
