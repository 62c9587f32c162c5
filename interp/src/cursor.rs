//! The cells that an access with affine indices visits in the iterations of a loop nest.

use std::ops::Range;

use tilewright_ir::gcd;

use crate::compile::MAX_NEST;

/// The sequence of cells of a stream: the first cell, and for each loop of the nest the distance to the next one.
///
/// For `for y in 3: for x in 5: B[y, x]` in a buffer of 8 columns the loops are `(5, 1)` and `(3, 8)`. In a buffer of
/// 5 columns the two loops are merged into `(15, 1)`, so that a whole block is one contiguous run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Cursor {
    /// The memory slot of the cells.
    pub(crate) slot: usize,
    first: i64,
    /// Extent and distance between neighbouring iterations of each loop, innermost first. A loop whose distance
    /// continues the next inner one is merged with it.
    dims: [(u64, i64); MAX_NEST],
    rank: usize,
    /// Least and greatest cell.
    span: (i64, i64),
}

/// Evenly spaced cells of some iterations of a block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    /// The first of the iterations, counted from the start of the block.
    pub(crate) at: usize,
    /// Their number.
    pub(crate) len: usize,
    pub(crate) first: i64,
    pub(crate) step: i64,
}

impl Run {
    /// Whether another run has the same cells.
    pub(crate) fn has_the_cells_of(&self, other: &Self) -> bool {
        (self.first, self.step, self.len) == (other.first, other.step, other.len)
    }
}

/// The cells of a block.
#[derive(Clone, Copy)]
pub(crate) struct Places<'a> {
    /// Where they are before they are moved by `shift`.
    pub(crate) runs: &'a [Run],
    pub(crate) shift: i64,
    /// All cells of `runs` as one run of step 1, in ascending order; `None` if they do not lie next to each other.
    pub(crate) row: Option<&'a Run>,
}

impl<'a> Places<'a> {
    /// The cells of a run.
    pub(crate) fn of(run: &'a Run) -> Self {
        Self { runs: std::slice::from_ref(run), shift: 0, row: None }
    }

    /// Moves the cells further.
    pub(crate) fn shifted(self, by: i64) -> Self {
        Self { shift: self.shift.wrapping_add(by), ..self }
    }

    /// The cells in any order, in as few runs as are known.
    pub(crate) fn sorted(&self) -> impl Iterator<Item = Run> {
        let runs = self.row.map_or(self.runs, std::slice::from_ref);
        runs.iter().map(|run| Run { first: run.first.wrapping_add(self.shift), ..*run })
    }
}

impl Cursor {
    /// A cursor over loops given as extent and distance in cells, outermost first. Returns `None` if a cell does not fit
    /// 63 bits or more than [`MAX_NEST`] loops remain after merging.
    #[inline]
    pub(crate) fn new(slot: usize, first: i64, loops: impl DoubleEndedIterator<Item = (u64, i64)>) -> Option<Self> {
        let mut cursor = Self::default();
        cursor.set(slot, first, loops)?;
        Some(cursor)
    }

    /// Makes it the cursor that [`Cursor::new`] returns.
    #[inline]
    pub(crate) fn set(
        &mut self,
        slot: usize,
        first: i64,
        loops: impl DoubleEndedIterator<Item = (u64, i64)>,
    ) -> Option<()> {
        (self.slot, self.first, self.rank, self.span) = (slot, first, 1, (first, first));
        self.dims = [(1, 0); MAX_NEST];
        for (extent, step) in loops.rev() {
            if extent == 1 {
                continue;
            }
            let reach = i64::try_from(extent.checked_sub(1)?).ok()?.checked_mul(step)?;
            let span = &mut self.span;
            *span = (span.0.checked_add(reach.min(0))?, span.1.checked_add(reach.max(0))?);
            let (inner, distance) = &mut self.dims[self.rank - 1];
            if *inner == 1 {
                (*inner, *distance) = (extent, step);
            } else if i64::try_from(*inner).ok().and_then(|inner| inner.checked_mul(*distance)) == Some(step) {
                *inner = inner.checked_mul(extent)?;
            } else {
                *self.dims.get_mut(self.rank)? = (extent, step);
                self.rank += 1;
            }
        }
        Some(())
    }

    /// Least and greatest cell.
    pub(crate) fn span(&self) -> (i64, i64) {
        self.span
    }

    /// Least and greatest cell of some iterations; `None` unless each iteration has a greater cell than the one before.
    pub(crate) fn ascending_span(&self, iterations: &Range<u64>) -> Option<(i64, i64)> {
        let mut span = 0;
        for &(extent, step) in self.dims.iter().take(self.rank) {
            (step > span).then_some(())?;
            span += step * (extent - 1).cast_signed();
        }
        let cell = |mut rest: u64| {
            let offset = |&(extent, step): &(u64, i64)| {
                let at = rest % extent;
                rest /= extent;
                at.cast_signed() * step
            };
            self.first + self.dims.iter().take(self.rank).map(offset).sum::<i64>()
        };
        (!iterations.is_empty()).then(|| (cell(iterations.start), cell(iterations.end - 1)))
    }

    /// Number of iterations in which the cells are evenly spaced.
    pub(crate) fn run_length(&self) -> u64 {
        self.dims[0].0.max(1)
    }

    /// The cells as neighbours, if they are neighbours and each is the cell of one iteration.
    pub(crate) fn row(&self) -> Option<Run> {
        let extents = self.dims.iter().take(self.rank).map(|&(extent, _)| extent);
        let len = usize::try_from(extents.product::<u64>()).ok()?;
        let is_row = usize::try_from(self.span.1.checked_sub(self.span.0)?).ok()?.checked_add(1) == Some(len);
        (is_row && self.is_injective()).then_some(Run { at: 0, len, first: self.span.0, step: 1 })
    }

    /// The distance of the cells of neighbouring ones among these.
    pub(crate) fn run_step(&self) -> i64 {
        self.dims[0].1
    }

    /// Splits the iterations `start .. start + len` into runs of evenly spaced cells, which replace those in `runs`.
    pub(crate) fn runs(&self, start: u64, len: usize, runs: &mut Vec<Run>) {
        runs.clear();
        let mut at = [0u64; MAX_NEST];
        let (mut rest, mut cell) = (start, self.first);
        for (at, &(extent, step)) in at.iter_mut().zip(&self.dims[..self.rank]) {
            if rest == 0 {
                break;
            }
            (*at, rest) = (rest % extent, rest / extent);
            cell += at.cast_signed() * step;
        }
        let (extent, step) = self.dims[0];
        let mut done = 0;
        while done < len {
            let count = usize::try_from(extent - at[0]).unwrap_or(usize::MAX).min(len - done);
            runs.push(Run { at: done, len: count, first: cell, step });
            done += count;
            if done == len {
                break;
            }
            // The run ended because the innermost loop did: carry into the outer loops, like an odometer.
            cell -= at[0].cast_signed() * step;
            at[0] = 0;
            for (at, &(extent, step)) in at.iter_mut().zip(&self.dims[..self.rank]).skip(1) {
                *at += 1;
                cell += step;
                if *at < extent {
                    break;
                }
                cell -= extent.cast_signed() * step;
                *at = 0;
            }
        }
    }

    /// Whether no two iterations have the same cell: sorted by distance, each loop steps over everything that the
    /// smaller ones reach. May return false for an injective cursor.
    pub(crate) fn is_injective(&self) -> bool {
        let mut dims = self.dims;
        let dims = &mut dims[..self.rank];
        dims.sort_unstable_by_key(|&(_, step)| step.unsigned_abs());
        let mut span = 0u64;
        dims.iter().filter(|&&(extent, _)| extent > 1).all(|&(extent, step)| {
            let apart = step.unsigned_abs() > span;
            span = span.saturating_add(step.unsigned_abs().saturating_mul(extent - 1));
            apart
        })
    }

    /// Whether the two cursors have no cell in common, in any iterations. True if they are in different memory, if their
    /// ranges do not overlap, or if the first cells differ modulo the gcd of all distances. May return false for
    /// disjoint cursors.
    pub(crate) fn is_disjoint_from(&self, other: &Self) -> bool {
        if self.slot != other.slot || self.span.1 < other.span.0 || other.span.1 < self.span.0 {
            return true;
        }
        let steps = self.dims[..self.rank].iter().chain(&other.dims[..other.rank]);
        let divisor = steps.fold(0, |divisor, &(_, step)| gcd(divisor, step.unsigned_abs().into()));
        divisor != 0 && !u128::from(self.first.abs_diff(other.first)).is_multiple_of(divisor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cells(cursor: &Cursor, start: u64, len: usize) -> Vec<i64> {
        let (mut runs, mut cells) = (Vec::new(), Vec::new());
        cursor.runs(start, len, &mut runs);
        for run in runs {
            assert_eq!(run.at, cells.len());
            cells.extend((0..run.len).map(|at| run.first + i64::try_from(at).unwrap() * run.step));
        }
        cells
    }

    #[test]
    fn runs_visit_the_cells_of_the_loops_from_any_iteration_on() {
        let mut compared = 0;
        for steps in [[35, 7, 1], [1, 3, 40], [0, 1, 0], [-5, 0, 0], [2, -9, 3], [0, 0, 0], [4, 4, -4]] {
            let extents = [3u64, 5, 7];
            let cursor = Cursor::new(0, 100, extents.into_iter().zip(steps)).unwrap();
            let mut all = Vec::new();
            for (i, j, k) in (0..3).flat_map(|i| (0..5).flat_map(move |j| (0..7).map(move |k| (i, j, k)))) {
                all.push(100 + i * steps[0] + j * steps[1] + k * steps[2]);
            }
            for start in 0..all.len() {
                for len in [1, 4, 9, 50] {
                    let len = len.min(all.len() - start);
                    assert_eq!(cells(&cursor, start as u64, len), all[start..start + len], "{steps:?} {start}");
                    compared += 1;
                }
            }
            let mut distinct = all.clone();
            distinct.sort_unstable();
            assert_eq!(cursor.span, (distinct[0], distinct[all.len() - 1]));
            distinct.dedup();
            assert!(!cursor.is_injective() || distinct.len() == all.len(), "{steps:?}");
        }
        assert_eq!(compared, 7 * 105 * 4);
    }

    #[test]
    fn cursors_with_a_common_cell_are_not_called_disjoint() {
        let cursor = |first, extent, step| Cursor::new(0, first, [(extent, step)].into_iter()).unwrap();
        assert!(cursor(0, 9, 4).is_disjoint_from(&cursor(1, 9, 4)), "other lanes of vectors");
        assert!(cursor(0, 9, 1).is_disjoint_from(&cursor(9, 9, 1)), "one after the other");
        assert!(!cursor(0, 9, 1).is_disjoint_from(&cursor(8, 9, 1)));
        assert!(!cursor(0, 9, 2).is_disjoint_from(&cursor(4, 9, 3)));
        assert!(cursor(0, 9, 2).is_injective() && !cursor(0, 9, 0).is_injective());
    }
}
