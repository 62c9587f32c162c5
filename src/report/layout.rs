//! The data of `tilewright layout`, and its JSON: schema `tilewright.layout/1`. The words are those of XLA's page "Tiled
//! layout".

use serde::Serialize;
use tilewright_verify::Report;

use super::check::{Dim, obligations};
use crate::json::to_line;
use crate::pipeline::outcome::Summary;

/// The report on an array's tiled layout. Sizes are numbers, or expressions in `d0`, `d1`, ... as text: the extent of
/// dimension `k` is called `d<k>` if the dimension has no bound.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LayoutReport {
    /// `tilewright.layout/1`.
    pub schema: &'static str,
    /// The shape and layout in XLA's exact text.
    pub text: String,
    /// The element type's name.
    pub element_type: &'static str,
    /// The logical extents; a bounded dimension has its bound.
    pub shape: Vec<Dim>,
    /// Logical dimensions, the most minor one first.
    pub minor_to_major: Vec<usize>,
    /// Each tile from major to minor; `"*"` folds a dimension into the next.
    pub tiles: Vec<Vec<TileSize>>,
    /// The extents after the last tile, from major to minor.
    pub physical_shape: Vec<Dim>,
    /// Logical elements.
    pub elements: Dim,
    /// Elements that memory is allocated for.
    pub physical_elements: Dim,
    /// Allocated elements that hold nothing.
    pub padding_elements: Dim,
    /// Bits from one element to the next.
    pub element_bits: u64,
    /// Bytes of the allocation, without a metadata prefix.
    pub bytes: Dim,
    /// Bytes of the metadata prefix, which stands before the elements.
    pub metadata_prefix_bytes: u64,
    /// The map from logical indices to the position in memory, as a lambda.
    pub index_map: String,
    /// A lambda from positions to logical indices, correct except on padding; null if it was not proved.
    pub inverse: Option<String>,
    /// A lambda that is true on exactly the positions that hold no element; null if it was not proved.
    pub padding: Option<String>,
    /// The position of every element in row-major order of the logical indices; null if it was not asked for.
    pub offsets: Option<Vec<u64>>,
    /// The positions of the indices that were asked for.
    pub at: Vec<PositionRow>,
    /// What the verdicts take for granted: positive extents and sizes.
    pub premises: Vec<String>,
    /// The obligations of the layout with their verdicts.
    #[serde(serialize_with = "obligations")]
    pub verdicts: Vec<Report>,
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

/// A logical index and its position. Parts that depend on a symbolic extent are null.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PositionRow {
    /// The index asked for.
    pub logical: Vec<u64>,
    /// The index after the last tile.
    pub physical: Option<Vec<u64>>,
    /// The position in memory, in elements.
    pub flat: Option<u64>,
    /// The byte where it begins, counted from the first element.
    pub byte: Option<u128>,
    /// The bit in that byte, the lowest one being 0.
    pub bit: Option<u128>,
}

impl LayoutReport {
    /// The worst verdict.
    pub fn summary(&self) -> Summary {
        Summary::of_reports(&self.verdicts)
    }

    /// The JSON document, on one line.
    pub fn to_json(&self) -> String {
        let Some(offsets) = self.offsets.as_deref() else { return to_line(self) };
        // A table of a million numbers goes around serde, which takes several times as long.
        const EMPTY: &str = "\"offsets\":[]";
        let line = to_line(&Self { offsets: Some(Vec::new()), ..self.clone_without_offsets() });
        let Some(at) = line.find(EMPTY).map(|at| at + EMPTY.len() - 1) else { return to_line(self) };
        let mut document = String::with_capacity(line.len() + offsets.len() * 8);
        document.push_str(&line[..at]);
        let mut digits = Digits::default();
        for (position, offset) in offsets.iter().enumerate() {
            if position > 0 {
                document.push(',');
            }
            document.push_str(digits.of(*offset));
        }
        document.push_str(&line[at..]);
        document
    }

    /// A copy without the offsets, which may be millions.
    fn clone_without_offsets(&self) -> Self {
        Self {
            offsets: None,
            text: self.text.clone(),
            shape: self.shape.clone(),
            minor_to_major: self.minor_to_major.clone(),
            tiles: self.tiles.clone(),
            physical_shape: self.physical_shape.clone(),
            elements: self.elements.clone(),
            physical_elements: self.physical_elements.clone(),
            padding_elements: self.padding_elements.clone(),
            bytes: self.bytes.clone(),
            index_map: self.index_map.clone(),
            inverse: self.inverse.clone(),
            padding: self.padding.clone(),
            at: self.at.clone(),
            premises: self.premises.clone(),
            verdicts: self.verdicts.clone(),
            ..*self
        }
    }
}

/// Decimal digits of numbers, without an allocation for each.
#[derive(Debug, Default)]
pub(super) struct Digits {
    bytes: [u8; 20],
}

impl Digits {
    /// The digits of a number.
    pub(super) fn of(&mut self, mut value: u64) -> &str {
        let mut start = self.bytes.len();
        loop {
            start -= 1;
            let [low, ..] = (value % 10).to_le_bytes();
            self.bytes[start] = b'0' + low;
            value /= 10;
            if value == 0 {
                break;
            }
        }
        std::str::from_utf8(&self.bytes[start..]).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_their_digits() {
        for value in [0, 7, 10, 1_024_000, u64::MAX] {
            assert_eq!(Digits::default().of(value), value.to_string());
        }
    }
}
