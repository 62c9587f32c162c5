//! Which cells of an allocation were written.
//!
//! There are two flags for each cell, a bit and a byte, and one for all cells; a cell was written if one of these is set. Neighbours
//! that are written at once set bits, many with one store of a word. Single cells set bytes, which threads can do side by side
//! without a read-modify-write of the word that the cells share. There are no bits and no bytes before one is set.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, OnceLock, PoisonError};

use rayon::prelude::*;

use crate::cell_runs::for_each_cell;
use crate::cells::CELLS_OF_A_TASK;
use crate::cursor::Run;
use crate::memory::OutOfMemory;

/// Number of bits in a word.
const WORD: usize = 64;

/// Least number of neighbours that set bits: setting some of the bits of a word takes as long as setting some bytes.
const MIN_NEIGHBOURS: usize = 16;

/// A word and some of its bits.
type Part<'a> = (&'a AtomicU64, u64);

/// Words all of whose bits are meant, and one before and one behind them.
type Parts<'a> = (Option<Part<'a>>, &'a [AtomicU64], Option<Part<'a>>);

/// The flags of an allocation. Threads share them.
pub(crate) struct Written {
    /// Number of cells.
    len: usize,
    all: AtomicBool,
    /// The bits; those behind the last cell are 0.
    words: Flags<AtomicU64>,
    bytes: Flags<AtomicU8>,
}

/// Flags that are all 0 when one is first set, and not in memory before.
struct Flags<T> {
    made: OnceLock<Vec<T>>,
    len: usize,
    /// Empty, with the memory that the flags will have, so that setting one cannot fail.
    reserved: Mutex<Vec<T>>,
}

impl<T: Default> Flags<T> {
    fn none(len: usize) -> Result<Self, OutOfMemory> {
        let mut reserved = Vec::new();
        reserved.try_reserve_exact(len).map_err(|_| OutOfMemory)?;
        Ok(Self { made: OnceLock::new(), len, reserved: Mutex::new(reserved) })
    }

    /// The flags, to set some.
    fn to_set(&self) -> &[T] {
        self.made.get_or_init(|| {
            let mut flags = std::mem::take(&mut *self.reserved.lock().unwrap_or_else(PoisonError::into_inner));
            flags.resize_with(self.len, T::default);
            flags
        })
    }

    /// The flags; none if none was set.
    fn known(&self) -> &[T] {
        self.made.get().map_or(&[], Vec::as_slice)
    }
}

fn set(flag: &AtomicU8) {
    flag.store(1, Relaxed);
}

impl Written {
    /// Flags of `len` cells, none of which was written.
    pub(crate) fn none(len: usize) -> Result<Self, OutOfMemory> {
        let (words, bytes) = (Flags::none(len.div_ceil(WORD))?, Flags::none(len)?);
        Ok(Self { len, all: AtomicBool::new(false), words, bytes })
    }

    /// Sets the flag of a cell; `None` if it is outside the allocation.
    #[inline]
    pub(crate) fn set(&self, cell: usize) -> Option<()> {
        self.bytes.to_set().get(cell).map(set)
    }

    /// Whether a cell was written; false if it is outside the allocation.
    #[inline]
    pub(crate) fn get(&self, cell: usize) -> bool {
        let has_bit = |word: &AtomicU64| word.load(Relaxed) >> (cell % WORD) & 1 != 0;
        let has_byte = |byte: &AtomicU8| byte.load(Relaxed) != 0;
        self.words.known().get(cell / WORD).is_some_and(has_bit)
            || self.bytes.known().get(cell).is_some_and(has_byte)
            || cell < self.len && self.all.load(Relaxed)
    }

    /// Sets the flags of a run; false if a cell is outside the allocation.
    pub(crate) fn set_run(&self, run: &Run) -> bool {
        if let (1, MIN_NEIGHBOURS.., Ok(first)) = (run.step, run.len, usize::try_from(run.first)) {
            return self.set_range(first, run.len).is_some();
        }
        for_each_cell(self.bytes.to_set(), run.first, run.step, run.len, |_, flag| {
            set(flag);
            true
        })
    }

    /// Sets the bits of neighbours; `None` if a cell is outside the allocation.
    fn set_range(&self, first: usize, len: usize) -> Option<()> {
        let range = first..first.checked_add(len).filter(|&end| end <= self.len)?;
        if range == (0..self.len) {
            self.all.store(true, Relaxed);
            return Some(());
        }
        let (before, whole, behind) = words_of(self.words.to_set(), &range)?;
        for word in whole {
            word.store(u64::MAX, Relaxed);
        }
        // Another thread may write the other cells of these words at the same time.
        for (word, bits) in before.into_iter().chain(behind) {
            word.fetch_or(bits, Relaxed);
        }
        Some(())
    }

    /// Whether all cells of a run were written; false if one is outside the allocation.
    pub(crate) fn has_run(&self, run: &Run) -> bool {
        if let (1, Ok(first)) = (run.step, usize::try_from(run.first)) {
            return first.checked_add(run.len).is_some_and(|end| self.has_range(first..end));
        }
        let cell = |at: usize| run.step.checked_mul(i64::try_from(at).ok()?)?.checked_add(run.first);
        let cell = |at| cell(at).and_then(|cell| usize::try_from(cell).ok());
        let places = if run.step == 0 { run.len.min(1) } else { run.len };
        (0..places).all(|at| cell(at).is_some_and(|cell| self.get(cell)))
    }

    /// Whether all of these cells were written.
    fn has_range(&self, cells: Range<usize>) -> bool {
        if cells.end > self.len || self.all.load(Relaxed) {
            return cells.end <= self.len;
        }
        let Some((before, whole, behind)) = words_of(self.words.known(), &cells) else { return self.has_flags(cells) };
        let has_bits = |(word, bits): Part<'_>| word.load(Relaxed) & bits == bits;
        let has_all =
            |words: &[AtomicU64]| words.iter().fold(u64::MAX, |all, word| all & word.load(Relaxed)) == u64::MAX;
        whole.chunks(WORD).all(has_all) && before.into_iter().chain(behind).all(has_bits) || self.has_flags(cells)
    }

    /// Whether each of these cells has a flag.
    fn has_flags(&self, mut cells: Range<usize>) -> bool {
        let bytes = self.bytes.known().get(cells.clone());
        let has_bytes = bytes.is_some_and(|bytes| bytes.iter().all(|byte| byte.load(Relaxed) != 0));
        has_bytes || cells.all(|cell| self.get(cell))
    }

    /// For each lane, which takes `cells` cells, whether all of them were written; `None` if they were in all lanes.
    pub(crate) fn lanes(&self, cells: usize) -> Option<Vec<bool>> {
        if self.has_range(0..self.len) {
            return None;
        }
        let cells = cells.max(1);
        let lanes = (0..self.len / cells).into_par_iter().with_min_len(CELLS_OF_A_TASK);
        Some(lanes.map(|lane| (lane * cells..(lane + 1) * cells).all(|cell| self.get(cell))).collect())
    }
}

/// The words with the bits of cells: the one before the first word that has all of its cells among them, with these bits, the words
/// that have, and the one behind them. `None` if there are none.
fn words_of<'a>(words: &'a [AtomicU64], cells: &Range<usize>) -> Option<Parts<'a>> {
    if cells.is_empty() {
        return Some((None, &[], None));
    }
    words.get(cells.end.div_ceil(WORD) - 1)?;
    let part = |number: usize| {
        let (start, end) = (cells.start.max(number * WORD), cells.end.min(number * WORD + WORD));
        let bits = u64::MAX >> (WORD - (end - start)) << (start - number * WORD);
        words.get(number).map(|word| (word, bits))
    };
    let (first, end) = (cells.start.div_ceil(WORD), cells.end / WORD);
    if first > end {
        return Some((part(end), &[], None));
    }
    let before = if cells.start.is_multiple_of(WORD) { None } else { part(first - 1) };
    let behind = if cells.end.is_multiple_of(WORD) { None } else { part(end) };
    Some((before, words.get(first..end)?, behind))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// First cell, number and distance of cells.
    const RUNS: [(i64, usize, i64); 9] = [
        (0, 300, 1),
        (0, 64, 1),
        (1, 127, 1),
        (63, 66, 1),
        (64, 128, 1),
        (70, 3, 1),
        (5, 9, 7),
        (299, 12, -25),
        (9, 4, 0),
    ];

    /// Both kinds of flags together are as one flag for each cell.
    #[test]
    fn bits_and_bytes_are_as_one_flag_for_each_cell() {
        for (len, (first, count, step)) in
            [0, 1, 63, 64, 65, 127, 128, 200, 300].into_iter().flat_map(|len| RUNS.map(|run| (len, run)))
        {
            let written = Written::none(len).unwrap_or_else(|_| unreachable!("a few bytes"));
            let run = |len| Run { at: 0, len, first, step };
            let places: Vec<i64> = (0i64..).take(count).map(|at| first + step * at).collect();
            let is_inside = places.iter().all(|&place| usize::try_from(place).is_ok_and(|place| place < len));
            assert!(!written.has_run(&run(count)), "{first} {count} {step} of {len}");
            assert_eq!(written.set_run(&run(count)), is_inside, "{first} {count} {step} of {len}");
            if !is_inside {
                continue;
            }
            assert!(written.has_run(&run(count)));
            let expected: Vec<bool> = (0i64..).take(len).map(|cell| places.contains(&cell)).collect();
            assert_eq!((0..len).map(|cell| written.get(cell)).collect::<Vec<_>>(), expected);
            assert_eq!(written.lanes(1).unwrap_or_else(|| vec![true; len]), expected);
            // One more neighbour was written only if it is one of the run's.
            let next = |first| Run { len: 2, step: 1, first, ..run(2) };
            let has = |place: usize| expected.get(place).copied().unwrap_or(false);
            for (place, cell) in (0i64..).take(len).enumerate() {
                assert_eq!(written.has_run(&next(cell)), has(place) && has(place + 1), "{place}");
            }
        }
    }
}
