//! The cells of allocations: who owns them, and how blocks of them are read and written.
//!
//! Threads share allocations, so cells are atomic and all accesses are relaxed, which compiles to plain loads and stores
//! on the usual machines. Cells that nobody writes while a program runs are plain numbers, of which the processor reads
//! many at once. Arguments are not copied where the bytes of their tensors can be cells: on a little-endian machine, and
//! if they are aligned.

use std::ops::Deref;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering::Relaxed};

use rayon::prelude::*;
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

use crate::cursor::Run;
use crate::memory::OutOfMemory;

/// The cells of an allocation, all of the same width.
pub(crate) enum Cells<'a> {
    U8(Shared<'a, AtomicU8>),
    U16(Shared<'a, AtomicU16>),
    U32(Shared<'a, AtomicU32>),
    U64(Shared<'a, AtomicU64>),
    /// Cells that are not written.
    FixedU8(&'a [u8]),
    FixedU16(&'a [u16]),
    FixedU32(&'a [u32]),
    FixedU64(&'a [u64]),
}

/// Cells that threads share, owned by the allocation or lent to it.
pub(crate) enum Shared<'a, T> {
    Own(Vec<T>),
    Lent(&'a [T]),
}

impl<T> Deref for Shared<'_, T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        match self {
            Self::Own(cells) => cells,
            Self::Lent(cells) => cells,
        }
    }
}

/// A cell.
trait Cell {
    fn load(&self) -> u64;
}

/// A cell that can be written.
trait SharedCell: Cell {
    /// Writes the low bits.
    fn store(&self, bits: u64);
}

macro_rules! cell_types {
    ($($atomic:ident $plain:ident)*) => {$(
        impl Cell for $plain {
            #[inline(always)]
            fn load(&self) -> u64 {
                u64::from(*self)
            }
        }

        impl Cell for $atomic {
            #[inline(always)]
            fn load(&self) -> u64 {
                u64::from($atomic::load(self, Relaxed))
            }
        }

        impl SharedCell for $atomic {
            #[inline(always)]
            #[allow(clippy::cast_possible_truncation, reason = "the low bits are the element")]
            fn store(&self, bits: u64) {
                $atomic::store(self, bits as $plain, Relaxed);
            }
        }
    )*};
}

cell_types!(AtomicU8 u8 AtomicU16 u16 AtomicU32 u32 AtomicU64 u64);

/// Evaluates an expression on cells of any width, shared or fixed.
macro_rules! on_cells {
    ($cells:expr, |$each:ident| $body:expr) => {
        match $cells {
            Cells::FixedU32($each) => $body,
            Cells::U32($each) => $body,
            Cells::U8($each) => $body,
            Cells::U16($each) => $body,
            Cells::U64($each) => $body,
            Cells::FixedU8($each) => $body,
            Cells::FixedU16($each) => $body,
            Cells::FixedU64($each) => $body,
        }
    };
}

/// Evaluates an expression on shared cells of any width; the last expression is the value for fixed ones.
macro_rules! on_shared_cells {
    ($cells:expr, |$each:ident| $body:expr, $fixed:expr) => {
        match $cells {
            Cells::U32($each) => $body,
            Cells::U8($each) => $body,
            Cells::U16($each) => $body,
            Cells::U64($each) => $body,
            Cells::FixedU8(_) | Cells::FixedU16(_) | Cells::FixedU32(_) | Cells::FixedU64(_) => $fixed,
        }
    };
}

/// Bytes as cells, shared.
fn lent<T: FromBytes + IntoBytes + KnownLayout>(bytes: &mut [u8]) -> Option<Shared<'_, T>> {
    <[T]>::mut_from_bytes(bytes).ok().map(|cells| Shared::Lent(&*cells))
}

/// Bytes as cells.
fn fixed<T: FromBytes + KnownLayout + Immutable>(bytes: &[u8]) -> Option<&[T]> {
    <[T]>::ref_from_bytes(bytes).ok()
}

impl<'a> Cells<'a> {
    /// `len` cells of `width` bytes (1, 2, 4 or 8), all 0.
    pub(crate) fn zeroed(width: u64, len: usize) -> Result<Self, OutOfMemory> {
        Ok(match width {
            1 => Self::U8(Shared::Own(zeroed(len)?)),
            2 => Self::U16(Shared::Own(zeroed(len)?)),
            4 => Self::U32(Shared::Own(zeroed(len)?)),
            _ => Self::U64(Shared::Own(zeroed(len)?)),
        })
    }

    /// A copy of bytes, little endian, as cells.
    pub(crate) fn copied(width: u64, bytes: &[u8]) -> Result<Self, OutOfMemory> {
        Ok(match width {
            1 => Self::U8(Shared::Own(load_all(bytes, |[byte]| AtomicU8::new(byte))?)),
            2 => Self::U16(Shared::Own(load_all(bytes, |word| AtomicU16::new(u16::from_le_bytes(word)))?)),
            4 => Self::U32(Shared::Own(load_all(bytes, |word| AtomicU32::new(u32::from_le_bytes(word)))?)),
            _ => Self::U64(Shared::Own(load_all(bytes, |word| AtomicU64::new(u64::from_le_bytes(word)))?)),
        })
    }

    /// The bytes themselves as cells; `None` if they cannot be.
    pub(crate) fn lent(width: u64, bytes: &'a mut [u8]) -> Option<Self> {
        match width {
            _ if cfg!(target_endian = "big") => None,
            1 => lent(bytes).map(Self::U8),
            2 => lent(bytes).map(Self::U16),
            4 => lent(bytes).map(Self::U32),
            _ => lent(bytes).map(Self::U64),
        }
    }

    /// The bytes themselves as cells that are not written; `None` if they cannot be.
    pub(crate) fn fixed(width: u64, bytes: &'a [u8]) -> Option<Self> {
        match width {
            _ if cfg!(target_endian = "big") => None,
            1 => fixed(bytes).map(Self::FixedU8),
            2 => fixed(bytes).map(Self::FixedU16),
            4 => fixed(bytes).map(Self::FixedU32),
            _ => fixed(bytes).map(Self::FixedU64),
        }
    }

    /// Whether the cells are bytes that somebody else owns.
    pub(crate) fn is_lent(&self) -> bool {
        on_shared_cells!(self, |cells| matches!(cells, Shared::Lent(_)), true)
    }

    /// Number of cells.
    pub(crate) fn len(&self) -> usize {
        on_cells!(self, |cells| cells.len())
    }

    /// The bits of a cell; `None` if it is outside.
    #[inline]
    pub(crate) fn get(&self, cell: usize) -> Option<u64> {
        on_cells!(self, |cells| Some(Cell::load(cells.get(cell)?)))
    }

    /// Writes the low bits to a cell; `None` if it is outside, or not to be written.
    #[inline]
    pub(crate) fn set(&self, cell: usize, bits: u64) -> Option<()> {
        on_shared_cells!(self, |cells| cells.get(cell).map(|cell| SharedCell::store(cell, bits)), None)
    }

    /// Reads the cells of runs, moved by `shift`, into `out`; false if one is outside.
    pub(crate) fn read<L: Lane>(&self, runs: &[Run], shift: i64, out: &mut [L]) -> bool {
        on_cells!(self, |cells| read(cells, runs, shift, out))
    }

    /// Reads `places[i]` into `out[i]` wherever the mask is not 0; false if one is outside.
    pub(crate) fn gather<L: Lane>(&self, places: &[i64], mask: Option<&[u64]>, out: &mut [L]) -> bool {
        on_cells!(self, |cells| gather(cells, places, mask, out))
    }

    /// `len` neighbouring cells as `float32`, if they are not written.
    pub(crate) fn fixed_floats(&self, first: i64, len: usize) -> Option<&[f32]> {
        let Self::FixedU32(cells) = self else { return None };
        <[f32]>::ref_from_bytes(in_a_row(cells, first, len)?.as_bytes()).ok()
    }

    /// Writes the low bits of the values to the cells of runs, moved by `shift`; false if one is outside, or not to be written.
    pub(crate) fn write<L: Lane>(&self, runs: &[Run], shift: i64, values: &[L]) -> bool {
        on_shared_cells!(self, |cells| write(cells, runs, shift, values), false)
    }

    /// Copies the cells to little-endian bytes, on several threads where there are many; excess bytes or cells are left alone.
    pub(crate) fn read_bytes(&self, bytes: &mut [u8]) {
        match self {
            Self::U8(cells) => store_all(cells, bytes, |cell, to: &mut [u8; 1]| *to = [cell.load(Relaxed)]),
            Self::U16(cells) => store_all(cells, bytes, |cell, to| *to = cell.load(Relaxed).to_le_bytes()),
            Self::U32(cells) => store_all(cells, bytes, |cell, to| *to = cell.load(Relaxed).to_le_bytes()),
            Self::U64(cells) => store_all(cells, bytes, |cell, to| *to = cell.load(Relaxed).to_le_bytes()),
            // The results of a program are never among them.
            Self::FixedU8(_) | Self::FixedU16(_) | Self::FixedU32(_) | Self::FixedU64(_) => {}
        }
    }
}

/// `len` neighbouring cells; `None` if one is outside the allocation.
#[inline]
fn in_a_row<T>(cells: &[T], first: i64, len: usize) -> Option<&[T]> {
    let first = usize::try_from(first).ok()?;
    cells.get(first..first.checked_add(len)?)
}

/// The cells of a run from its first to its last one, and the distance of its cells; `None` if that is not positive or one is
/// outside the allocation.
#[inline]
fn at_distances<'a, T>(cells: &'a [T], first: i64, run: &Run) -> Option<(&'a [T], usize)> {
    let (first, step) = (usize::try_from(first).ok()?, usize::try_from(run.step).ok().filter(|&step| step > 0)?);
    let last = run.len.checked_sub(1)?.checked_mul(step)?.checked_add(first)?;
    Some((cells.get(first..=last)?, step))
}

/// Calls `each` with the position and the cell of `len` cells that lie `step` apart.
///
/// Returns false if a cell is outside the allocation or `each` returns false for one; it may have been called for any
/// of the cells then.
#[inline(always)]
#[expect(clippy::inline_always, reason = "the closure is the body of a hot loop")]
pub(crate) fn for_each_cell<T>(
    cells: &[T],
    first: i64,
    step: i64,
    len: usize,
    mut each: impl FnMut(usize, &T) -> bool,
) -> bool {
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
fn read<T: Cell, L: Lane>(cells: &[T], runs: &[Run], shift: i64, out: &mut [L]) -> bool {
    let mut last: Option<&Run> = None;
    runs.iter().all(|run| {
        let previous = last.replace(run);
        // The same cells again, as when an operand does not depend on one of the loops.
        if let Some(same) = previous.filter(|other| other.has_the_cells_of(run))
            && run.at + run.len <= out.len()
        {
            out.copy_within(same.at..same.at + run.len, run.at);
            return true;
        }
        let Some(out) = out.get_mut(run.at..run.at + run.len) else { return false };
        let first = run.first.wrapping_add(shift);
        if run.step == 0 {
            let cell = usize::try_from(first).ok().and_then(|first| cells.get(first));
            return cell.map(|cell| out.fill(L::of_bits(cell.load()))).is_some();
        }
        if run.step == 1 {
            let Some(cells) = in_a_row(cells, first, run.len) else { return false };
            out.iter_mut().zip(cells).for_each(|(out, cell)| *out = L::of_bits(cell.load()));
            return true;
        }
        if let Some((cells, step)) = at_distances(cells, first, run) {
            out.iter_mut().zip(cells.iter().step_by(step)).for_each(|(out, cell)| *out = L::of_bits(cell.load()));
            return true;
        }
        let mut out = out.iter_mut();
        for_each_cell(cells, first, run.step, run.len, |_, cell| {
            out.next().map(|out| *out = L::of_bits(cell.load())).is_some()
        })
    })
}

/// Reads `places[i]` into `out[i]` wherever the mask is not 0; false if one is outside the allocation.
fn gather<T: Cell, L: Lane>(cells: &[T], places: &[i64], mask: Option<&[u64]>, out: &mut [L]) -> bool {
    let cell = |place: i64| cells.get(usize::try_from(place).unwrap_or(usize::MAX));
    let read = |place: i64, out: &mut L| cell(place).map(|cell| *out = L::of_bits(cell.load())).is_some();
    let pairs = places.iter().zip(out);
    match mask {
        None => pairs.fold(true, |all, (&place, out)| all & read(place, out)),
        Some(mask) => pairs.zip(mask).fold(true, |all, ((&place, out), &mask)| all & (mask == 0 || read(place, out))),
    }
}

/// Writes `values` to the cells of runs, moved by `shift`; false if one is outside the allocation.
#[inline(always)]
#[expect(clippy::inline_always, reason = "the closure is the body of a hot loop")]
fn write<T: SharedCell, L: Lane>(cells: &[T], runs: &[Run], shift: i64, values: &[L]) -> bool {
    runs.iter().all(|run| {
        let Some(values) = values.get(run.at..run.at + run.len) else { return false };
        let first = run.first.wrapping_add(shift);
        if run.step == 1 {
            let Some(cells) = in_a_row(cells, first, run.len) else { return false };
            cells.iter().zip(values).for_each(|(cell, value)| cell.store(value.bits()));
            return true;
        }
        if let Some((cells, step)) = at_distances(cells, first, run) {
            cells.iter().step_by(step).zip(values).for_each(|(cell, value)| cell.store(value.bits()));
            return true;
        }
        let mut values = values.iter();
        for_each_cell(cells, first, run.step, run.len, |_, cell| {
            values.next().map(|value| cell.store(value.bits())).is_some()
        })
    })
}

/// `len` zeros. The system finds memory when it is first written, so that the thread that writes pays for it.
pub(crate) fn zeroed<T: FromZeros>(len: usize) -> Result<Vec<T>, OutOfMemory> {
    T::new_vec_zeroed(len).map_err(|_| OutOfMemory)
}

/// The number of cells that one task copies.
pub(crate) const CELLS_OF_A_TASK: usize = 1 << 16;

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
