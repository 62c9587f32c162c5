//! One tile, applied to the physical dimensions before it: the page's formula, on numbers and on expressions alike.

use std::ops::Range;

use super::{Tile, TileDim};
use crate::buffer::checked_size;

/// An extent, in elements.
pub(super) trait Extent: Clone {
    /// A known extent.
    fn known(extent: u64) -> Self;
    /// The product; none if it is above 2^63 - 1.
    fn product(extents: &[Self]) -> Option<Self>;
    /// The number of tiles that cover it.
    fn tiles(&self, tile: u64) -> Option<Self>;
}

/// What the steps compute with: an index into an extent.
pub(super) trait Coordinate<E>: Clone {
    /// `self * extent + low`.
    fn fold(self, extent: &E, low: Self) -> Self;
    /// Quotient and remainder of division by `tile` of what is below `extent`.
    fn split(self, extent: &E, tile: u64) -> (Self, Self);
}

impl Extent for u64 {
    fn known(extent: u64) -> Self {
        extent
    }

    fn product(extents: &[Self]) -> Option<Self> {
        let extents: Vec<i128> = extents.iter().map(|&extent| extent.into()).collect();
        checked_size(&extents).ok()
    }

    fn tiles(&self, tile: u64) -> Option<Self> {
        Some(self.div_ceil(tile))
    }
}

impl Coordinate<u64> for u64 {
    fn fold(self, extent: &u64, low: Self) -> Self {
        self * extent + low
    }

    fn split(self, _: &u64, tile: u64) -> (Self, Self) {
        (self / tile, self % tile)
    }
}

/// One tile, applied to the physical dimensions before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Step<E> {
    /// Extents of 1 put in front because the tile has more dimensions than there are.
    prepended: usize,
    /// Leading dimensions that the tile does not touch.
    leading: usize,
    /// The dimensions that it does touch, from major to minor.
    splits: Vec<Split<E>>,
}

/// Dimensions that are folded into one, which is then split.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Split<E> {
    /// Which ones, counted after prepending.
    dims: Range<usize>,
    /// Their extents.
    extents: Vec<E>,
    /// Product of the extents.
    extent: E,
    tile: u64,
}

impl<E: Extent> Step<E> {
    /// The step of `tile` on the extents `before`, and the extents after it; none if a product is above 2^63 - 1.
    pub(super) fn new(tile: &Tile, before: &[E]) -> Option<(Self, Vec<E>)> {
        let prepended = tile.0.len().saturating_sub(before.len());
        let extents: Vec<E> = std::iter::repeat_n(E::known(1), prepended).chain(before.iter().cloned()).collect();
        let leading = extents.len() - tile.0.len();
        let mut splits = Vec::new();
        let mut start = leading;
        for (position, dim) in tile.0.iter().enumerate() {
            let TileDim::Size(tile) = *dim else { continue };
            let end = leading + position + 1;
            let part = extents[start..end].to_vec();
            let extent = E::product(&part)?;
            splits.push(Split { dims: start..end, extents: part, extent, tile });
            start = end;
        }
        let mut after = extents[..leading].to_vec();
        for split in &splits {
            after.push(split.extent.tiles(split.tile)?);
        }
        after.extend(splits.iter().map(|split| E::known(split.tile)));
        Some((Self { prepended, leading, splits }, after))
    }

    /// The index after the step; `zero` is the index into an extent of 1.
    pub(super) fn apply<T: Coordinate<E>>(&self, index: Vec<T>, zero: &T) -> Vec<T> {
        let mut index: Vec<T> = std::iter::repeat_n(zero.clone(), self.prepended).chain(index).collect();
        let (mut counts, mut inside) = (Vec::new(), Vec::new());
        for split in &self.splits {
            let parts = index[split.dims.clone()].iter().cloned().zip(&split.extents);
            let folded = parts.reduce(|(high, _), (low, extent)| (high.fold(extent, low), extent));
            let Some((folded, _)) = folded else { continue };
            let (count, rest) = folded.split(&split.extent, split.tile);
            counts.push(count);
            inside.push(rest);
        }
        index.truncate(self.leading);
        index.extend(counts);
        index.extend(inside);
        index
    }

    /// Which dimensions are folded into one, counted after prepending, and how many are untouched before them.
    pub(super) fn folds(&self) -> (usize, usize, Vec<Range<usize>>) {
        (self.prepended, self.leading, self.splits.iter().map(|split| split.dims.clone()).collect())
    }
}

impl Step<u64> {
    /// The index before the step; none where it is padding of this step.
    pub(super) fn undo(&self, index: &[u64]) -> Option<Vec<u64>> {
        let n_splits = self.splits.len();
        let mut before = index[..self.leading].to_vec();
        for (position, split) in self.splits.iter().enumerate() {
            let (count, rest) = (index[self.leading + position], index[self.leading + n_splits + position]);
            let mut folded = count.checked_mul(split.tile)?.checked_add(rest).filter(|&index| index < split.extent)?;
            let mut parts: Vec<u64> = Vec::with_capacity(split.extents.len());
            for &extent in split.extents.iter().rev() {
                parts.push(folded % extent);
                folded /= extent;
            }
            before.extend(parts.into_iter().rev());
        }
        Some(before.split_off(self.prepended))
    }
}
