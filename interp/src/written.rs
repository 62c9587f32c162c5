//! Which cells of an allocation were written.
//!
//! There is a flag for each cell, and one for each row of [`ROW`] cells that was written at once: neighbours are usually
//! written together, and then the flags of rows are all that is set and tested. A cell was written if either flag is set.

use std::ops::Range;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

use rayon::prelude::*;

use crate::cells::{CELLS_OF_A_TASK, for_each_cell, zeroed};
use crate::cursor::Run;
use crate::memory::OutOfMemory;

/// Number of cells in a row.
const ROW: usize = 64;

/// The flags of an allocation. Threads share them.
pub(crate) struct Written {
    cells: Vec<AtomicU8>,
    /// Cells behind the last whole row have flags of their own only.
    rows: Vec<AtomicU8>,
}

fn set(flag: &AtomicU8) {
    flag.store(1, Relaxed);
}

fn is_set(flag: &AtomicU8) -> bool {
    flag.load(Relaxed) != 0
}

impl Written {
    /// Flags of `len` cells, none of which was written.
    pub(crate) fn none(len: usize) -> Result<Self, OutOfMemory> {
        Ok(Self { cells: zeroed(len)?, rows: zeroed(len / ROW)? })
    }

    /// Sets the flag of a cell; `None` if it is outside the allocation.
    #[inline]
    pub(crate) fn set(&self, cell: usize) -> Option<()> {
        self.cells.get(cell).map(set)
    }

    /// Whether a cell was written; false if it is outside the allocation.
    #[inline]
    pub(crate) fn get(&self, cell: usize) -> bool {
        self.cells.get(cell).is_some_and(is_set) || self.rows.get(cell / ROW).is_some_and(is_set)
    }

    /// Sets the flags of a run whose first cell is `first`; false if a cell is outside the allocation.
    pub(crate) fn set_run(&self, first: i64, run: &Run) -> bool {
        if let (1, Ok(first)) = (run.step, usize::try_from(first)) {
            return self.set_range(first, run.len).is_some();
        }
        for_each_cell(&self.cells, first, run.step, run.len, |_, flag| {
            set(flag);
            true
        })
    }

    /// Sets the flags of neighbours: of whole rows, and of the cells before and behind them.
    fn set_range(&self, first: usize, len: usize) -> Option<()> {
        let end = first.checked_add(len)?;
        let (start_row, end_row) = (first.div_ceil(ROW), end / ROW);
        if start_row >= end_row {
            self.cells.get(first..end)?.iter().for_each(set);
            return Some(());
        }
        let (before, behind) = (self.cells.get(first..start_row * ROW)?, self.cells.get(end_row * ROW..end)?);
        self.rows.get(start_row..end_row)?.iter().chain(before).chain(behind).for_each(set);
        Some(())
    }

    /// Whether all cells of a run whose first cell is `first` were written; false if one is outside the allocation.
    pub(crate) fn has_run(&self, first: i64, run: &Run) -> bool {
        if let (1, Ok(first)) = (run.step, usize::try_from(first)) {
            return first.checked_add(run.len).is_some_and(|end| self.has_range(first..end));
        }
        let cell = |at: usize| run.step.checked_mul(i64::try_from(at).ok()?)?.checked_add(first);
        let cell = |at| cell(at).and_then(|cell| usize::try_from(cell).ok());
        let places = if run.step == 0 { run.len.min(1) } else { run.len };
        (0..places).all(|at| cell(at).is_some_and(|cell| self.get(cell)))
    }

    /// Whether all of these cells were written.
    fn has_range(&self, range: Range<usize>) -> bool {
        (range.start / ROW..range.end.div_ceil(ROW)).all(|row| {
            let cells = (row * ROW).max(range.start)..((row + 1) * ROW).min(range.end);
            let cells = self.cells.get(cells);
            cells.is_some_and(|cells| self.rows.get(row).is_some_and(is_set) || cells.iter().all(is_set))
        })
    }

    /// For each lane, which takes `cells` cells, whether all of them were written; `None` if they were in all lanes.
    pub(crate) fn lanes(&self, cells: usize) -> Option<Vec<bool>> {
        let (len, cells) = (self.cells.len(), cells.max(1));
        let tasks = (0..len.div_ceil(CELLS_OF_A_TASK)).into_par_iter().map(|task| task * CELLS_OF_A_TASK);
        if tasks.all(|start| self.has_range(start..(start + CELLS_OF_A_TASK).min(len))) {
            return None;
        }
        let lanes = (0..len / cells).into_par_iter().with_min_len(CELLS_OF_A_TASK);
        Some(lanes.map(|lane| (lane * cells..(lane + 1) * cells).all(|cell| self.get(cell))).collect())
    }
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
    fn rows_and_cells_are_as_one_flag_for_each_cell() {
        for (len, (first, count, step)) in
            [0, 1, 63, 64, 65, 127, 128, 200, 300].into_iter().flat_map(|len| RUNS.map(|run| (len, run)))
        {
            let written = Written::none(len).unwrap_or_else(|_| unreachable!("a few bytes"));
            let run = |len| Run { at: 0, len, first: 0, step };
            let places: Vec<i64> = (0i64..).take(count).map(|at| first + step * at).collect();
            let is_inside = places.iter().all(|&place| usize::try_from(place).is_ok_and(|place| place < len));
            assert!(!written.has_run(first, &run(count)), "{first} {count} {step} of {len}");
            assert_eq!(written.set_run(first, &run(count)), is_inside, "{first} {count} {step} of {len}");
            if !is_inside {
                continue;
            }
            assert!(written.has_run(first, &run(count)));
            let expected: Vec<bool> = (0i64..).take(len).map(|cell| places.contains(&cell)).collect();
            assert_eq!((0..len).map(|cell| written.get(cell)).collect::<Vec<_>>(), expected);
            assert_eq!(written.lanes(1).unwrap_or_else(|| vec![true; len]), expected);
            // One more neighbour was written only if it is one of the run's.
            let next = Run { len: 2, step: 1, ..run(2) };
            let has = |place: usize| expected.get(place).copied().unwrap_or(false);
            for (place, cell) in (0i64..).take(len).enumerate() {
                assert_eq!(written.has_run(cell, &next), has(place) && has(place + 1), "{place}");
            }
        }
    }
}
