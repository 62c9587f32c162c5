//! Cells that move by constants with the loops of a nest.

use crate::compile::MAX_NEST;

/// A first cell and how the next ones lie, for the iterations of a nest in program order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cursor {
    pub(crate) slot: usize,
    first: i64,
    /// Iterations and distance between neighbours, innermost first; loops that continue the inner one are one with it.
    dims: [(u64, i64); MAX_NEST],
    rank: usize,
    /// Least and greatest cell.
    span: (i64, i64),
}

impl Cursor {
    /// A cursor over loops given from the outermost to the innermost; none if its cells leave 63 bits.
    pub(crate) fn new(slot: usize, first: i64, loops: impl DoubleEndedIterator<Item = (u64, i64)>) -> Option<Self> {
        let mut cursor = Self { slot, first, dims: [(1, 0); MAX_NEST], rank: 1, span: (first, first) };
        for (extent, step) in loops.rev() {
            if extent == 1 {
                continue;
            }
            let reach = i64::try_from(extent.checked_sub(1)?).ok()?.checked_mul(step)?;
            let span = &mut cursor.span;
            *span = (span.0.checked_add(reach.min(0))?, span.1.checked_add(reach.max(0))?);
            let (inner, distance) = &mut cursor.dims[cursor.rank - 1];
            if *inner == 1 {
                (*inner, *distance) = (extent, step);
            } else if i64::try_from(*inner).ok().and_then(|inner| inner.checked_mul(*distance)) == Some(step) {
                *inner = inner.checked_mul(extent)?;
            } else {
                *cursor.dims.get_mut(cursor.rank)? = (extent, step);
                cursor.rank += 1;
            }
        }
        Some(cursor)
    }

    /// Calls `each` with the parts of the iterations `start .. start + len` along which the cell moves evenly: position
    /// of the part in them, first cell, distance, number. Gives the position of the part for which `each` gave false.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "the closure is the body of a hot loop")]
    pub(crate) fn runs(
        &self,
        start: u64,
        len: usize,
        mut each: impl FnMut(usize, i64, i64, usize) -> bool,
    ) -> Result<(), usize> {
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
            if !each(done, cell, step, count) {
                return Err(done);
            }
            done += count;
            if done == len {
                break;
            }
            // The part ended because the innermost loop did.
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
        Ok(())
    }

    /// Whether no two iterations have the same cell.
    pub(crate) fn never_meets_itself(&self) -> bool {
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

    /// Whether no cell is the other's too, in whatever iterations.
    pub(crate) fn never_meets(&self, other: &Self) -> bool {
        if self.slot != other.slot || self.span.1 < other.span.0 || other.span.1 < self.span.0 {
            return true;
        }
        let steps = self.dims[..self.rank].iter().chain(&other.dims[..other.rank]);
        let divisor = steps.fold(0, |divisor, &(_, step)| gcd(divisor, step.unsigned_abs()));
        divisor != 0 && !self.first.abs_diff(other.first).is_multiple_of(divisor)
    }
}

fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cells(cursor: &Cursor, start: u64, len: usize) -> Vec<i64> {
        let mut cells = Vec::new();
        let complete = cursor.runs(start, len, |position, cell, step, count| {
            assert_eq!(position, cells.len());
            cells.extend((0..count).map(|at| cell + i64::try_from(at).unwrap() * step));
            true
        });
        assert_eq!(complete, Ok(()));
        cells
    }

    #[test]
    fn the_cells_are_those_of_the_loops_from_any_iteration_on() {
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
            assert!(!cursor.never_meets_itself() || distinct.len() == all.len(), "{steps:?}");
        }
        assert_eq!(compared, 7 * 105 * 4);
    }

    #[test]
    fn cursors_that_meet_are_known_to() {
        let cursor = |first, extent, step| Cursor::new(0, first, [(extent, step)].into_iter()).unwrap();
        assert!(cursor(0, 9, 4).never_meets(&cursor(1, 9, 4)), "other lanes of vectors");
        assert!(cursor(0, 9, 1).never_meets(&cursor(9, 9, 1)), "one after the other");
        assert!(!cursor(0, 9, 1).never_meets(&cursor(8, 9, 1)));
        assert!(!cursor(0, 9, 2).never_meets(&cursor(4, 9, 3)));
        assert!(cursor(0, 9, 2).never_meets_itself() && !cursor(0, 9, 0).never_meets_itself());
    }
}
