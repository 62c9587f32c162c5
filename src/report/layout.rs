//! The data of `tilewright layout`, and its JSON: schema `tilewright.layout/1`.

use serde::Serialize;

use super::check::{ObligationRow, Verdict, to_line};

/// What is known about an array's tiled layout.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LayoutReport {
    /// `tilewright.layout/1`.
    pub schema: &'static str,
    /// The shape and layout in XLA's exact text.
    pub text: String,
    /// The element type's name.
    pub element_type: &'static str,
    /// The logical extents; a bounded dimension has its bound.
    pub shape: Vec<u64>,
    /// Logical dimensions, the most minor one first.
    pub minor_to_major: Vec<usize>,
    /// Each tile from major to minor; `"*"` folds a dimension into the next.
    pub tiles: Vec<Vec<TileSize>>,
    /// The extents after the last tile, from major to minor.
    pub physical_shape: Vec<u64>,
    /// Logical elements.
    pub elements: u64,
    /// Elements that memory is allocated for.
    pub physical_elements: u64,
    /// Those that hold nothing.
    pub padding_elements: u64,
    /// Bits from one element to the next.
    pub element_bits: u64,
    /// Bytes of the allocation, without a metadata prefix.
    pub bytes: u64,
    /// Bytes of the metadata prefix, which stands before the elements.
    pub metadata_prefix_bytes: u64,
    /// The map from logical indices to the position in memory, as a lambda.
    pub index_map: String,
    /// The position of every element in row-major order of the logical indices; null if it was not asked for.
    pub offsets: Option<Vec<u64>>,
    /// The points asked for.
    pub at: Vec<PositionRow>,
    /// What was asked of the index map.
    pub verdicts: Vec<ObligationRow>,
}

/// One size of a tile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum TileSize {
    /// A number of elements.
    Size(u64),
    /// `*`.
    Combined(&'static str),
}

/// A logical index and where it goes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PositionRow {
    /// The index asked for.
    pub logical: Vec<u64>,
    /// The index after the last tile.
    pub physical: Vec<u64>,
    /// The position in memory, in elements.
    pub flat: u64,
    /// The byte where it begins, counted from the first element.
    pub byte: u128,
    /// The bit in that byte, the lowest one being 0.
    pub bit: u128,
}

impl LayoutReport {
    /// The worst of its verdicts.
    pub fn verdict(&self) -> Verdict {
        Verdict::worst(self.verdicts.iter().map(|row| row.verdict))
    }

    /// The JSON document, on one line.
    pub fn to_json(&self) -> String {
        to_line(self)
    }
}
