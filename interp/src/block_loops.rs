//! The loops of a nest as streams see them, and the cells that a stream has in them.

use tilewright_ir::sabotage;

use crate::block_scratch::Affine;
use crate::code::{NestLoop, Phase, Stream, VectorizedNest};
use crate::compile::MAX_NEST;
use crate::exec::Frame;

/// The loops of a nest and of a phase as streams see them, outermost first: a split loop is two.
pub(crate) struct Parts {
    pub(crate) extents: [u64; MAX_NEST],
    /// The loop that each belongs to and how far one iteration moves the variable of that.
    levels: [(usize, i64); MAX_NEST],
    /// The first values of the loops.
    mins: [u64; MAX_NEST],
    /// How many of them are loops of the nest.
    pub(crate) lanes: usize,
    rank: usize,
}

impl Parts {
    /// The loops of a phase. `None` if the range of a split loop is not divided by its number.
    #[inline]
    pub(crate) fn of(nest: &VectorizedNest, phase: &Phase, outer: (u64, u64)) -> Option<Self> {
        let (levels, mins) = ([(0, 0); MAX_NEST], [0; MAX_NEST]);
        let mut parts = Self { extents: [1; MAX_NEST], levels, mins, lanes: 0, rank: 0 };
        let range = |inner: &NestLoop| (inner.min, inner.extent);
        let lanes = std::iter::once(outer).chain(nest.inner.iter().map(range));
        for (level, (range, &split)) in lanes.zip(&nest.splits).enumerate() {
            parts.push(level, range, split)?;
        }
        parts.lanes = parts.rank;
        for (number, (range, &split)) in phase.turns.iter().map(range).zip(&phase.turn_splits).enumerate() {
            parts.push(nest.splits.len() + number, range, split)?;
        }
        Some(parts)
    }

    /// Adds a loop.
    #[inline]
    fn push(&mut self, level: usize, (min, extent): (u64, u64), split: u64) -> Option<()> {
        if min % split != 0 || extent % split != 0 {
            return None;
        }
        *self.mins.get_mut(level)? = min;
        if split > 1 {
            self.push_part(extent / split, (level, i64::try_from(split).ok()?))?;
        }
        self.push_part(if split > 1 { split } else { extent }, (level, 1))
    }

    #[inline]
    fn push_part(&mut self, extent: u64, level: (usize, i64)) -> Option<()> {
        *self.extents.get_mut(self.rank)? = extent;
        *self.levels.get_mut(self.rank)? = level;
        self.rank += 1;
        Some(())
    }

    /// The extents of all loops.
    #[inline]
    pub(crate) fn all(&self) -> &[u64] {
        self.extents.get(..self.rank).unwrap_or_default()
    }

    /// The extents of the loops that run in turn.
    #[inline]
    pub(crate) fn turns(&self) -> &[u64] {
        self.extents.get(self.lanes..self.rank).unwrap_or_default()
    }

    /// Makes a number the variable of a loop.
    #[inline]
    pub(crate) fn set_variable(&self, level: usize, variable: &mut Affine) -> Option<()> {
        let steps = self.levels.map(|(of, step)| if of == level { step } else { 0 });
        variable.set(0, self.mins.get(level)?.cast_signed(), self, &steps)
    }
}

/// Finds the cells of a stream. Returns `None` if an index is outside the view's extents in some iteration.
///
/// An affine index takes its extreme values at the corners of the iteration domain, so two sums per axis suffice.
#[inline]
pub(crate) fn find_cells(stream: &Stream, loops: &Parts, frame: &Frame, cells: &mut Affine) -> Option<()> {
    let view = frame.views[stream.view as usize].as_ref().filter(|view| view.per_lane == 1)?;
    let offset = if sabotage::on("stream-forgets-offset") { 0 } else { view.offset };
    let mut cell = offset.checked_add(i64::try_from(stream.lane).ok()?)?;
    let mut steps = [0i64; MAX_NEST];
    for ((dim, &bound), &stride) in stream.dims.iter().zip(&view.extents).zip(&view.strides) {
        let first = frame.registers[dim.reg as usize].cast_signed().checked_add(dim.plus)?;
        let (mut low, mut high) = (first, first);
        for ((&step, &extent), total) in dim.steps.iter().zip(loops.all()).zip(&mut steps) {
            let reach = step.checked_mul(i64::try_from(extent - 1).ok()?)?;
            low = low.checked_add(reach.min(0))?;
            high = high.checked_add(reach.max(0))?;
            *total = total.checked_add(step.checked_mul(stride)?)?;
        }
        let bound = bound + u64::from(sabotage::on("bounds-off-by-one"));
        if low < 0 || high.cast_unsigned() >= bound || i128::from(high) > dim.max {
            return None;
        }
        cell = cell.checked_add(first.checked_mul(stride)?)?;
    }
    cells.set(view.slot, cell, loops, &steps)
}
