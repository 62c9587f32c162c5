//! The data of `tilewright draw`, and its JSON: schema `tilewright.draw/1`.

use serde::Serialize;

use crate::json::to_line;

/// Where the elements of an array lie in memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DrawReport {
    /// `tilewright.draw/1`.
    pub schema: &'static str,
    /// The map or the layout.
    pub subject: String,
    /// The logical shape.
    pub shape: Vec<u64>,
    /// A name for each logical axis.
    pub axes: Vec<String>,
    /// The shape of memory in elements: one extent, or rows and columns.
    pub memory_shape: Vec<u64>,
    /// What makes a tile, a text for each level, the largest tiles first.
    pub levels: Vec<String>,
    /// Slots of memory in a line of the picture; they have no meaning of their own.
    pub columns: u64,
    /// The elements in row-major order of the logical indices.
    pub elements: Vec<ElementRow>,
    /// The slots that hold no element, in the order of memory.
    pub padding: Vec<PaddingRow>,
    /// What is wrong with the placement.
    pub counterexample: Option<MarkRow>,
}

/// An element and its place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ElementRow {
    /// The logical index.
    pub logical: Vec<u64>,
    /// The place in memory, an index for each extent of the memory's shape; it may lie outside.
    pub memory: Vec<i128>,
    /// The slot: the place in row-major order; null if it lies outside.
    pub slot: Option<u64>,
    /// Number of the tile that it belongs to, for each level; tiles count in the order of memory.
    pub tiles: Vec<u64>,
    /// Whether another element lies there, too.
    pub collides: bool,
}

/// A slot without an element.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PaddingRow {
    /// The place in memory.
    pub memory: Vec<i128>,
    /// The slot: the place in row-major order.
    pub slot: u64,
    /// The index beyond the shape that would lie there; null if there is none.
    pub logical: Option<Vec<u64>>,
    /// Number of the tile that it belongs to, for each level; empty if `logical` is null.
    pub tiles: Vec<u64>,
}

/// What is wrong, shown by one or two elements.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MarkRow {
    /// Two indices that share a slot, or one that has none.
    pub indices: Vec<Vec<u64>>,
    /// What happens there, in words.
    pub text: String,
}

impl DrawReport {
    /// The JSON document, on one line.
    pub fn to_json(&self) -> String {
        to_line(self)
    }

    /// The title of the picture's first part.
    pub fn summary(&self) -> String {
        let memory: Vec<_> = self.memory_shape.iter().map(ToString::to_string).collect();
        let tiles =
            if self.levels.is_empty() { String::new() } else { format!(", tiles {}", self.levels.join(" then ")) };
        format!(
            "{} elements of {:?} in {} slots, {} of them padding{tiles}",
            self.elements.len(),
            self.shape,
            memory.join(" x "),
            self.padding.len()
        )
    }
}
