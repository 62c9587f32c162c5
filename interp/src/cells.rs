//! The cells of allocations: who owns them, and how blocks of them are read and written.
//!
//! Threads share allocations, so cells are atomic and all accesses are relaxed, which compiles to plain loads and stores
//! on the usual machines, of one cell at a time. Where a thread has cells for itself they are plain numbers, of which the
//! processor reads and writes many at once, and so they are while nobody writes them. Arguments are not copied where the
//! bytes of their tensors can be cells: on a little-endian machine, and if they are aligned.

use std::ops::{Deref, DerefMut, Range};
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering::Relaxed};

use rayon::prelude::*;
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

use crate::cell_runs::{Cell, Lane, SharedCell, gather, in_a_row, read, write};
use crate::cursor::Places;
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
    Lent(&'a mut [T]),
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

impl<T> DerefMut for Shared<'_, T> {
    fn deref_mut(&mut self) -> &mut [T] {
        match self {
            Self::Own(cells) => cells,
            Self::Lent(cells) => cells,
        }
    }
}

/// A cell that becomes a plain number where a thread has it for itself.
trait Alone: FromBytes + IntoBytes + Sized {
    type Plain: FromBytes + IntoBytes + KnownLayout;

    /// The memory of cells that nobody shares, as plain numbers.
    fn plain(cells: &mut [Self]) -> &mut [Self::Plain] {
        // They have the same size and alignment.
        <[Self::Plain]>::mut_from_bytes(cells.as_mut_bytes()).unwrap_or_default()
    }

    /// The memory of cells that nobody shares, through the interface of shared cells.
    fn alone(cells: &mut [Self]) -> &[std::cell::Cell<Self::Plain>] {
        std::cell::Cell::from_mut(Self::plain(cells)).as_slice_of_cells()
    }
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

        impl Cell for std::cell::Cell<$plain> {
            #[inline(always)]
            fn load(&self) -> u64 {
                u64::from(self.get())
            }
        }

        impl SharedCell for std::cell::Cell<$plain> {
            #[inline(always)]
            #[allow(clippy::cast_possible_truncation, reason = "the low bits are the element")]
            fn store(&self, bits: u64) {
                self.set(bits as $plain);
            }
        }

        impl Alone for $atomic {
            type Plain = $plain;
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

/// Evaluates an expression on cells of any width that the thread has for itself; the last expression is the value for fixed ones.
macro_rules! on_own_cells {
    ($cells:expr, |$each:ident| $body:expr, $fixed:expr) => {
        on_shared_cells!(
            $cells,
            |$each| {
                let $each = Alone::alone($each);
                $body
            },
            $fixed
        )
    };
}

/// Bytes as cells, shared.
fn lent<T: FromBytes + IntoBytes + KnownLayout>(bytes: &mut [u8]) -> Option<Shared<'_, T>> {
    <[T]>::mut_from_bytes(bytes).ok().map(Shared::Lent)
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

    /// Reads cells into `out`; false if one is outside.
    pub(crate) fn read<L: Lane>(&self, places: Places<'_>, out: &mut [L]) -> bool {
        on_cells!(self, |cells| read(cells, places, out))
    }

    /// Reads `places[i] + shift` into `out[i]` wherever the mask is not 0; false if one is outside.
    pub(crate) fn gather<L: Lane>(&self, places: &[i64], shift: i64, mask: Option<&[u64]>, out: &mut [L]) -> bool {
        on_cells!(self, |cells| gather(cells, places, shift, mask, out))
    }

    /// [`Cells::read`], of cells that the thread has for itself.
    pub(crate) fn read_alone<L: Lane>(&mut self, places: Places<'_>, out: &mut [L]) -> bool {
        on_own_cells!(self, |cells| read(cells, places, out), self.read(places, out))
    }

    /// [`Cells::write`], to cells that the thread has for itself.
    pub(crate) fn write_alone<L: Lane>(&mut self, places: Places<'_>, values: &[L]) -> bool {
        on_own_cells!(self, |cells| write(cells, places, values), false)
    }

    /// `len` neighbouring cells as `float32`, to be written, if the thread has them for itself.
    pub(crate) fn own_floats(&mut self, first: i64, len: usize) -> Option<&mut [f32]> {
        let Self::U32(cells) = self else { return None };
        let first = usize::try_from(first).ok()?;
        let cells = cells.get_mut(first..first.checked_add(len)?)?;
        <[f32]>::mut_from_bytes(cells.as_mut_bytes()).ok()
    }

    /// Cells that nobody writes as long as the result lives.
    pub(crate) fn freeze(&mut self) -> Cells<'_> {
        match self {
            Self::U8(cells) => Cells::FixedU8(Alone::plain(cells)),
            Self::U16(cells) => Cells::FixedU16(Alone::plain(cells)),
            Self::U32(cells) => Cells::FixedU32(Alone::plain(cells)),
            Self::U64(cells) => Cells::FixedU64(Alone::plain(cells)),
            Self::FixedU8(cells) => Cells::FixedU8(cells),
            Self::FixedU16(cells) => Cells::FixedU16(cells),
            Self::FixedU32(cells) => Cells::FixedU32(cells),
            Self::FixedU64(cells) => Cells::FixedU64(cells),
        }
    }

    /// Whether they may be written.
    pub(crate) fn can_be_written(&self) -> bool {
        on_shared_cells!(self, |_cells| true, false)
    }

    /// The cells of ranges, each of which begins where the one before ends, or later.
    pub(crate) fn parts(&mut self, ranges: &[Range<usize>]) -> Vec<Cells<'_>> {
        match self {
            Self::U8(cells) => parts(cells, ranges).map(Cells::U8).collect(),
            Self::U16(cells) => parts(cells, ranges).map(Cells::U16).collect(),
            Self::U32(cells) => parts(cells, ranges).map(Cells::U32).collect(),
            Self::U64(cells) => parts(cells, ranges).map(Cells::U64).collect(),
            Self::FixedU8(_) | Self::FixedU16(_) | Self::FixedU32(_) | Self::FixedU64(_) => Vec::new(),
        }
    }

    /// `len` neighbouring cells as `float32`, if they are not written.
    pub(crate) fn fixed_floats(&self, first: i64, len: usize) -> Option<&[f32]> {
        let Self::FixedU32(cells) = self else { return None };
        <[f32]>::ref_from_bytes(in_a_row(cells, first, len)?.as_bytes()).ok()
    }

    /// Writes the low bits of the values to cells; false if one is outside, or not to be written.
    pub(crate) fn write<L: Lane>(&self, places: Places<'_>, values: &[L]) -> bool {
        on_shared_cells!(self, |cells| write(cells, places, values), false)
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

/// The cells of ranges, as [`Cells::parts`] returns them.
fn parts<'a, T>(mut cells: &'a mut [T], ranges: &[Range<usize>]) -> impl Iterator<Item = Shared<'a, T>> {
    let mut end = 0;
    ranges.iter().map(move |range| {
        let (part, behind) = std::mem::take(&mut cells).split_at_mut(range.end - end);
        let (_, part) = part.split_at_mut(range.start - end);
        (cells, end) = (behind, range.end);
        Shared::Lent(part)
    })
}

/// `len` zeros. The system finds memory when it is first written, so that the thread that writes pays for it.
fn zeroed<T: FromZeros>(len: usize) -> Result<Vec<T>, OutOfMemory> {
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
