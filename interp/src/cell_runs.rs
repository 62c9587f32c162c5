//! How the cells of a block are read and written, whatever they are: shared by threads or not, of any width.

use crate::cursor::{Places, Run};

/// A cell.
pub(crate) trait Cell {
    fn load(&self) -> u64;
}

/// A cell that can be written.
pub(crate) trait SharedCell: Cell {
    /// Writes the low bits.
    fn store(&self, bits: u64);
}

/// `len` neighbouring cells; `None` if one is outside the allocation.
#[inline]
pub(crate) fn in_a_row<T>(cells: &[T], first: i64, len: usize) -> Option<&[T]> {
    let first = usize::try_from(first).ok()?;
    cells.get(first..first.checked_add(len)?)
}

/// The cells of a run from its first to its last one, and the distance of its cells; `None` if that is not positive or one is
/// outside the allocation.
#[inline]
pub(crate) fn at_distances<'a, T>(cells: &'a [T], first: i64, run: &Run) -> Option<(&'a [T], usize)> {
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

/// Reads cells into `out`; false if one is outside the allocation.
#[inline(always)]
#[expect(clippy::inline_always, reason = "the closure is the body of a hot loop")]
pub(crate) fn read<T: Cell, L: Lane>(cells: &[T], places: Places<'_>, out: &mut [L]) -> bool {
    let mut last: Option<&Run> = None;
    places.runs.iter().all(|run| {
        let previous = last.replace(run);
        // This run reads what the one before has read, as where an operand does not depend on a loop: its values are copied.
        if let Some(same) = previous.filter(|other| other.has_the_cells_of(run))
            && run.at + run.len <= out.len()
        {
            out.copy_within(same.at..same.at + run.len, run.at);
            return true;
        }
        let Some(out) = out.get_mut(run.at..run.at + run.len) else { return false };
        let first = run.first.wrapping_add(places.shift);
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

/// Reads `places[i] + shift` into `out[i]` wherever the mask is not 0; false if one is outside the allocation.
pub(crate) fn gather<T: Cell, L: Lane>(
    cells: &[T],
    places: &[i64],
    shift: i64,
    mask: Option<&[u64]>,
    out: &mut [L],
) -> bool {
    let cell = |place: i64| cells.get(usize::try_from(place.wrapping_add(shift)).unwrap_or(usize::MAX));
    let read = |place: i64, out: &mut L| cell(place).map(|cell| *out = L::of_bits(cell.load())).is_some();
    let pairs = places.iter().zip(out);
    match mask {
        None => pairs.fold(true, |all, (&place, out)| all & read(place, out)),
        Some(mask) => pairs.zip(mask).fold(true, |all, ((&place, out), &mask)| all & (mask == 0 || read(place, out))),
    }
}

/// Writes `values` to cells; false if one is outside the allocation.
#[inline(always)]
#[expect(clippy::inline_always, reason = "the closure is the body of a hot loop")]
pub(crate) fn write<T: SharedCell, L: Lane>(cells: &[T], places: Places<'_>, values: &[L]) -> bool {
    places.runs.iter().all(|run| {
        let Some(values) = values.get(run.at..run.at + run.len) else { return false };
        let first = run.first.wrapping_add(places.shift);
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
