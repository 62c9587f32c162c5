//! The position of each element of a tiled array, for constant extents.
//!
//! This is the closed formula of XLA's page on tiled layouts, for any number of tiles. With extents `d` and a tile `t`,
//! the element `e` moves to `(⌊e/t⌋, e mod t)` in a space with the extents `(⌈d/t⌉, t)`, and the next tile is applied to
//! that space. The position in memory is the row-major linearization of the final index:
//!
//! ```
//! use tilewright_ir::layout::{ArrayShape, Dimension, ElementType, Layout, Tile};
//! let layout = Layout::row_major(2).with_tiles(vec![Tile::from_vector(&[2, 2])?]);
//! let shape = ArrayShape::new(ElementType::F32, vec![Dimension::Static(3), Dimension::Static(5)], Some(layout))?;
//! let tiling = shape.tiling()?;
//! assert_eq!(tiling.physical_shape(), [2, 3, 2, 2]);
//! assert_eq!(tiling.physical_index(&[2, 3]), Some(vec![1, 1, 0, 1]));
//! assert_eq!(tiling.linear_index(&[2, 3]), Some(17));
//! assert_eq!(tiling.physical_elements(), 24);
//! # Ok::<(), tilewright_ir::layout::LayoutError>(())
//! ```

use super::step::{Extent, TileStep};
use super::{ArrayShape, Layout, LayoutError, LayoutPart, SymbolicTiling};
use crate::dtype::ScalarType;
use crate::index_map::IndexMap;

/// The largest number of elements in the result of [`Tiling::offsets`].
pub const MAX_TABLE: u64 = 1 << 24;

/// The position of each element of an array, in elements from its start.
///
/// A bounded dimension is laid out for its bound. Every size is at most 2^63 - 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tiling {
    /// The logical extents.
    shape: Vec<u64>,
    /// The layout, to derive the symbolic form from.
    layout: Layout,
    /// The logical dimensions from major to minor.
    major_to_minor: Vec<usize>,
    /// The tiles, each prepared for the extents before it.
    steps: Vec<TileStep<u64>>,
    /// The physical extents after the last step.
    physical: Vec<u64>,
    /// The number of logical elements.
    elements: u64,
    /// The number of allocated elements, padding included.
    physical_elements: u64,
    /// The distance between elements, in bits.
    element_bits: u64,
    /// The size of the allocation, in bytes.
    bytes: u64,
}

/// Creates the error that a size, named by `what`, exceeds 2^63 - 1 because of `part`.
pub(super) fn too_large(part: LayoutPart, what: &str) -> LayoutError {
    let message = format!("{what} is above 2^63 - 1");
    LayoutError { part, code: "size", message, help: "use smaller extents or tiles" }
}

impl Tiling {
    /// Computes the sizes of an array.
    ///
    /// # Errors
    /// The array is sparse or has a dimension without a bound, or a size exceeds 2^63 - 1. The error names the part
    /// of the shape that makes the size too large.
    pub(super) fn new(array: &ArrayShape) -> Result<Self, LayoutError> {
        let layout = array.layout_or_default();
        if layout.is_sparse() {
            let message = "a sparse array has no positions that its shape alone determines".to_owned();
            let help = "only dense arrays are laid out";
            return Err(LayoutError { part: LayoutPart::DimAttributes(None), code: "sparse", message, help });
        }
        let bounds: Option<Vec<u64>> = array.dimensions().iter().map(|dimension| dimension.bound()).collect();
        let Some(shape) = bounds else {
            let message = "a dimension without a bound has no size".to_owned();
            let help = "give a bound, `<=n`, instead of `?`";
            return Err(LayoutError { part: LayoutPart::Dimensions, code: "unbounded", message, help });
        };
        // Every size is checked as soon as it is known, so that the error names the part that makes it too large.
        let elements =
            u64::product(&shape).ok_or_else(|| too_large(LayoutPart::Dimensions, "the number of elements"))?;
        let major_to_minor: Vec<usize> = layout.minor_to_major.iter().rev().copied().collect();
        let mut physical: Vec<u64> = major_to_minor.iter().map(|&dimension| shape[dimension]).collect();
        let mut steps = Vec::new();
        for (index, tile) in layout.tiles.iter().enumerate() {
            let what = "the number of elements with the padding of this tile";
            let done = TileStep::new(tile, &physical).filter(|(_, after)| u64::product(after).is_some());
            let (step, after) = done.ok_or_else(|| too_large(LayoutPart::Tile(index, None), what))?;
            steps.push(step);
            physical = after;
        }
        let count = u64::product(&physical).ok_or_else(|| too_large(LayoutPart::Whole, "the number of elements"))?;
        let aligned =
            count.checked_next_multiple_of(layout.tail_alignment).filter(|count| i64::try_from(*count).is_ok());
        let physical_elements = aligned
            .ok_or_else(|| too_large(LayoutPart::TailAlignment, "the number of elements with the tail's padding"))?;
        let element_bits = match layout.element_bits {
            // `E(..)` is not given: the element type decides.
            0 => array.element_type().storage_bits(),
            bits => bits,
        };
        let bytes = (u128::from(physical_elements) * u128::from(element_bits)).div_ceil(8);
        let bytes = i64::try_from(bytes).ok().and_then(|bytes| u64::try_from(bytes).ok());
        let place = if layout.element_bits == 0 { LayoutPart::Whole } else { LayoutPart::ElementBits };
        let bytes = bytes.ok_or_else(|| too_large(place, "the number of bytes"))?;
        Ok(Self { shape, layout, major_to_minor, steps, physical, elements, physical_elements, element_bits, bytes })
    }

    /// Returns the logical extents. A bounded dimension has its bound.
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// Returns the extents after the last tile, from major to minor. Their product is the number of physical elements
    /// before it is rounded up to the tail alignment.
    pub fn physical_shape(&self) -> &[u64] {
        &self.physical
    }

    /// Returns the number of logical elements.
    pub fn elements(&self) -> u64 {
        self.elements
    }

    /// Returns the number of allocated elements, padding included.
    pub fn physical_elements(&self) -> u64 {
        self.physical_elements
    }

    /// Returns the number of allocated elements that hold no logical element.
    pub fn padding_elements(&self) -> u64 {
        self.physical_elements - self.elements
    }

    /// Returns the distance between elements, in bits.
    pub fn element_bits(&self) -> u64 {
        self.element_bits
    }

    /// Returns the size of the allocation in bytes, without a metadata prefix.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the physical index of a logical index, and `None` if the latter is outside the shape.
    pub fn physical_index(&self, index: &[u64]) -> Option<Vec<u64>> {
        let inside = index.len() == self.shape.len() && index.iter().zip(&self.shape).all(|(at, extent)| at < extent);
        inside.then(|| self.tiled_index(index))
    }

    /// Returns the position in memory of a logical index, in elements, and `None` if the index is outside the shape.
    pub fn linear_index(&self, index: &[u64]) -> Option<u64> {
        self.physical_index(index).map(|physical| self.linearize(physical))
    }

    /// Returns the logical index of the element at a position in memory. `None` if the position is padding or outside
    /// the allocation.
    pub fn element_at(&self, position: u64) -> Option<Vec<u64>> {
        let mut rest = position;
        let mut index = vec![0; self.physical.len()];
        for (at, extent) in index.iter_mut().zip(&self.physical).rev() {
            *at = rest.checked_rem(*extent)?;
            rest /= extent;
        }
        if rest != 0 {
            return None;
        }
        for step in self.steps.iter().rev() {
            index = step.undo(&index)?;
        }
        let mut logical = vec![0; self.shape.len()];
        for (&dimension, at) in self.major_to_minor.iter().zip(index) {
            logical[dimension] = at;
        }
        Some(logical)
    }

    /// Returns the byte at which the element at a position in memory begins, and the bit inside that byte. Elements
    /// are packed from the least significant bit up.
    pub fn bit_offset(&self, position: u64) -> (u128, u128) {
        let bits = u128::from(position) * u128::from(self.element_bits);
        (bits / 8, bits % 8)
    }

    /// Returns the position of every element, in row-major order of the logical indices.
    ///
    /// # Errors
    /// The array has more than [`MAX_TABLE`] elements.
    pub fn offsets(&self) -> Result<Vec<u64>, LayoutError> {
        if self.elements > MAX_TABLE {
            let message = format!("a table of {} elements is too long; at most {MAX_TABLE} are listed", self.elements);
            let help = "ask for single elements";
            return Err(LayoutError { part: LayoutPart::Dimensions, code: "table-size", message, help });
        }
        Ok(self.offset_table())
    }

    /// Returns a partition of the logical dimensions such that dimensions which some tile combines are in one group,
    /// in ascending order.
    ///
    /// The contribution of a group to the position does not depend on the indices of other groups, so a position is
    /// the sum of the contributions of all groups.
    fn independent_groups(&self) -> Vec<Vec<usize>> {
        let mut lists: Vec<Vec<usize>> = (0..self.shape.len()).map(|dimension| vec![dimension]).collect();
        // The logical dimensions that each physical one depends on.
        let mut sources: Vec<Vec<usize>> = self.major_to_minor.iter().map(|&dimension| vec![dimension]).collect();
        for step in &self.steps {
            let (prepended, leading, folds) = step.folds();
            let all: Vec<Vec<usize>> = std::iter::repeat_n(Vec::new(), prepended).chain(sources).collect();
            let folded: Vec<Vec<usize>> = folds.into_iter().map(|dims| all[dims].concat()).collect();
            for together in folded.iter().filter(|together| together.len() > 1) {
                let (meet, mut rest): (Vec<_>, Vec<_>) =
                    lists.into_iter().partition(|list| list.iter().any(|dimension| together.contains(dimension)));
                let mut merged = meet.concat();
                merged.sort_unstable();
                rest.push(merged);
                lists = rest;
            }
            sources = all[..leading].to_vec();
            sources.extend(folded.iter().cloned());
            sources.extend(folded);
            for source in &mut sources {
                source.sort_unstable();
                source.dedup();
            }
        }
        lists
    }

    /// Computes [`Tiling::offsets`] from a small table for each independent group, with one addition per element and
    /// group.
    fn offset_table(&self) -> Vec<u64> {
        let Ok(length) = usize::try_from(self.elements) else { return Vec::new() };
        if length == 0 {
            return Vec::new();
        }
        // The positions of all indices of each group; and for each dimension, its group and its stride in the group's
        // table.
        let mut parts: Vec<Vec<u64>> = Vec::new();
        let mut place = vec![(0usize, 0usize); self.shape.len()];
        for list in self.independent_groups() {
            let mut positions = Vec::new();
            let mut index = vec![0; self.shape.len()];
            loop {
                positions.push(self.linearize(self.tiled_index(&index)));
                if !advance(&mut index, &list, &self.shape) {
                    break;
                }
            }
            let mut stride = 1usize;
            for &dimension in list.iter().rev() {
                place[dimension] = (parts.len(), stride);
                stride = stride.saturating_mul(usize::try_from(self.shape[dimension]).unwrap_or(usize::MAX));
            }
            parts.push(positions);
        }
        // If the last dimension is a group of its own, whole rows are copied from its table.
        let last = self
            .shape
            .len()
            .checked_sub(1)
            .filter(|&last| place.iter().filter(|at| at.0 == place[last].0).count() == 1);
        let row: &[u64] = last.map_or(&[0], |last| &parts[place[last].0]);
        let rank = self.shape.len() - usize::from(last.is_some());
        let mut table = Vec::with_capacity(length);
        let mut index = vec![0u64; rank];
        let mut at = vec![0usize; parts.len()];
        loop {
            // The group of the row contributes index 0, whose position is 0.
            let base: u64 = parts.iter().zip(&at).map(|(positions, &at)| positions[at]).sum();
            table.extend(row.iter().map(|position| base + position));
            let mut dimension = rank;
            loop {
                let Some(next) = dimension.checked_sub(1) else { return table };
                dimension = next;
                let (part, stride) = place[dimension];
                index[dimension] += 1;
                at[part] += stride;
                if index[dimension] < self.shape[dimension] {
                    break;
                }
                at[part] -= stride * usize::try_from(index[dimension]).unwrap_or(usize::MAX);
                index[dimension] = 0;
            }
        }
    }

    /// Returns the physical index of a logical index inside the shape.
    fn tiled_index(&self, index: &[u64]) -> Vec<u64> {
        let ordered = self.major_to_minor.iter().map(|&dimension| index[dimension]).collect();
        self.steps.iter().fold(ordered, |index, step| step.apply(index, &0))
    }

    /// Returns the row-major position of a physical index.
    fn linearize(&self, physical: Vec<u64>) -> u64 {
        physical.into_iter().zip(&self.physical).fold(0, |high, (at, extent)| high * extent + at)
    }

    /// Returns the same tiling as expressions, of type `int32` if every size fits.
    ///
    /// # Errors
    /// An index expression exceeds the size limit of [`SymbolicTiling`], because tiles with `*` combine dimensions
    /// repeatedly.
    pub fn to_symbolic(&self) -> Result<SymbolicTiling, LayoutError> {
        let largest = self.shape.iter().chain(&self.physical).chain([&self.physical_elements]).max();
        let narrow = largest.is_none_or(|&largest| i32::try_from(largest).is_ok());
        let ty = if narrow { ScalarType::Int32 } else { ScalarType::Int64 };
        SymbolicTiling::for_constant_shape(ty, &self.shape, &self.layout)
    }

    /// Returns the map from the logical to the physical index, with one output for each of
    /// [`Tiling::physical_shape`].
    ///
    /// # Errors
    /// As for [`Tiling::to_symbolic`].
    pub fn to_tiled_map(&self) -> Result<IndexMap, LayoutError> {
        self.to_symbolic()?.to_tiled_map()
    }

    /// Returns the map from the logical index to the position in memory, its only output.
    ///
    /// # Errors
    /// As for [`Tiling::to_symbolic`].
    pub fn to_flat_map(&self) -> Result<IndexMap, LayoutError> {
        self.to_symbolic()?.to_flat_map()
    }
}

/// Advances `index` over some of the dimensions in row-major order. Returns false after the last index.
fn advance(index: &mut [u64], dimensions: &[usize], shape: &[u64]) -> bool {
    for &dimension in dimensions.iter().rev() {
        index[dimension] += 1;
        if index[dimension] < shape[dimension] {
            return true;
        }
        index[dimension] = 0;
    }
    false
}
