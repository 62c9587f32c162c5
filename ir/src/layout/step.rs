//! The application of one tile to the physical dimensions that precede it.
//!
//! This is the formula of XLA's page on tiled layouts, generic over the arithmetic: [`super::tiling`] computes with
//! numbers, [`super::symbolic`] with expressions.

use std::ops::Range;

use super::{Tile, TileDim};
use crate::buffer::checked_size;

/// An extent, in elements.
pub(super) trait Extent: Clone {
    /// Returns a constant extent.
    fn known(extent: u64) -> Self;
    /// Returns the product. `None` if it exceeds 2^63 - 1.
    fn product(extents: &[Self]) -> Option<Self>;
    /// Returns the number of tiles of size `tile` that cover the extent, rounded up. `None` if it cannot be
    /// represented.
    fn tiles(&self, tile: u64) -> Option<Self>;
}

/// An index into an extent of type `E`.
pub(super) trait Coordinate<E>: Clone {
    /// Returns `self * extent + low`: the linearized index of two dimensions, where `extent` is that of the minor
    /// one.
    fn fold(self, extent: &E, low: Self) -> Self;
    /// Divides an index into `extent` by `tile`. Returns the quotient, which numbers the tile, and the remainder, the
    /// position inside it.
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

/// A tile, prepared for the physical dimensions that it is applied to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TileStep<E> {
    /// The number of extents of 1 added in front, because the tile has more dimensions than the array.
    prepended: usize,
    /// The number of leading dimensions that the tile leaves unchanged.
    leading: usize,
    /// The other dimensions, from major to minor.
    splits: Vec<Split<E>>,
}

/// Dimensions that are combined into one, which is then split into tile counts and positions.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Split<E> {
    /// The combined dimensions, counted after prepending.
    dims: Range<usize>,
    /// Their extents.
    extents: Vec<E>,
    /// The product of the extents.
    extent: E,
    /// The tile size.
    tile: u64,
}

impl<E: Extent> TileStep<E> {
    /// Prepares `tile` for dimensions of the extents `before`, and returns the extents after it: the untouched ones,
    /// the tile counts, and the tile sizes. `None` if a product exceeds 2^63 - 1.
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

    /// Returns the index after the step. `zero` is the index into the prepended dimensions.
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

    /// Returns the number of prepended dimensions, the number of dimensions that stay unchanged, and the ranges of
    /// dimensions that are combined, counted after prepending.
    pub(super) fn folds(&self) -> (usize, usize, Vec<Range<usize>>) {
        (self.prepended, self.leading, self.splits.iter().map(|split| split.dims.clone()).collect())
    }
}

impl TileStep<u64> {
    /// Returns the index before the step, and `None` if `index` is padding that this step added.
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
