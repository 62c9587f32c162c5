//! The data of `tilewright draw`, and its JSON: schema `tilewright.draw/1`.
//!
//! ```json
//! {"schema":"tilewright.draw/1","subject":"lambda i: [i // 2, i % 2]","shape":[3],"axes":["i"],"memory_shape":[4],
//!  "levels":["(i // 2)"],"columns":4,"elements":[{"logical":[0],"memory":[0],"slot":0,"tiles":[0],"collides":false}],
//!  "padding":[{"memory":[3],"slot":3,"logical":[3],"tiles":[1]}],"counterexample":null}
//! ```
//!
//! In the example only the first of three elements is shown.

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
    /// The definition of the tiles of each level, as text, the largest tiles first.
    pub levels: Vec<String>,
    /// Slots of memory in a line of the picture. For memory with one axis this is only a choice of the picture.
    pub columns: u64,
    /// The elements in row-major order of the logical indices.
    pub elements: Vec<ElementRow>,
    /// The slots that hold no element, in the order of memory.
    pub padding: Vec<PaddingRow>,
    /// The part that is drawn of an array that is too large for a picture; absent if all of it is drawn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cut: Option<CutRow>,
    /// The first fault of the placement: a collision, or an element outside of memory.
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
    /// Whether another element lies there, too; in a cut picture, another one that is drawn or is in the counterexample.
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

/// The part of a large array that is drawn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CutRow {
    /// The elements have logical indices below these.
    pub shape: Vec<u64>,
    /// The slots have places in memory below these. Slots that no drawn element has are left blank.
    pub memory_shape: Vec<u64>,
    /// What is proved of the whole array, that each element has a slot of its own: `proved`, `refuted` or `unknown`.
    pub verdict: &'static str,
    /// Why it is unknown.
    pub reason: Option<String>,
}

/// A fault of the placement, shown by one or two elements.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MarkRow {
    /// Two indices that share a slot, or one that has none.
    pub indices: Vec<Vec<u64>>,
    /// A description, such as `(0, 2) and (1, 0) both land on 2`.
    pub text: String,
}

impl DrawReport {
    /// The JSON document, on one line.
    pub fn to_json(&self) -> String {
        to_line(self)
    }

    /// The extents of the logical indices that are drawn.
    pub(super) fn drawn_shape(&self) -> &[u64] {
        self.cut.as_ref().map_or(&self.shape, |cut| &cut.shape)
    }

    /// The extents of memory that are drawn.
    pub(super) fn drawn_memory(&self) -> &[u64] {
        self.cut.as_ref().map_or(&self.memory_shape, |cut| &cut.memory_shape)
    }

    /// A note that the picture shows only a part; `None` if it shows everything.
    pub(super) fn cut_note(&self) -> Option<String> {
        let cut = self.cut.as_ref()?;
        Some(format!(
            "too large for one picture: only indices below {:?} and memory below {:?} are drawn, without padding",
            cut.shape, cut.memory_shape
        ))
    }

    /// What a picture of a part does not show, in words: whether all of the array is right.
    pub(super) fn whole_note(&self) -> Option<String> {
        let cut = self.cut.as_ref()?;
        match (cut.verdict, &cut.reason) {
            ("proved", _) => Some("proved of the whole array: each element has a slot of its own".into()),
            (_, Some(reason)) => Some(format!("not decided of the whole array: {reason}")),
            // The counterexample says it.
            _ => None,
        }
    }

    /// The title of the picture's first part.
    pub fn summary(&self) -> String {
        let memory: Vec<_> = self.memory_shape.iter().map(ToString::to_string).collect();
        let tiles =
            if self.levels.is_empty() { String::new() } else { format!(", tiles {}", self.levels.join(" then ")) };
        let (shape, slots) = (&self.shape, memory.join(" x "));
        if self.cut.is_some() {
            let elements = shape.iter().fold(1u128, |count, extent| count.saturating_mul((*extent).into()));
            return format!("{elements} elements of {shape:?} in {slots} slots{tiles}");
        }
        let (elements, padding) = (self.elements.len(), self.padding.len());
        format!("{elements} elements of {shape:?} in {slots} slots, {padding} of them padding{tiles}")
    }
}
