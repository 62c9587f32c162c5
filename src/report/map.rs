//! The data of `tilewright map`, and its JSON: schema `tilewright.map/1`.

use serde::Serialize;
use tilewright_verify::Report;

use super::check::{Dim, obligations};
use crate::json::to_line;
use crate::pipeline::outcome::Summary;

/// What is known about an index map on a shape.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MapReport {
    /// `tilewright.map/1`.
    pub schema: &'static str,
    /// The map as it was read.
    pub map: String,
    /// The logical shape.
    pub shape: Vec<Dim>,
    /// The stated physical shape, or the smallest one that holds every physical index.
    pub physical_shape: Vec<Dim>,
    /// Positions of the separators in the physical shape: axes before each.
    pub axis_separators: Vec<usize>,
    /// The shape after flattening.
    pub flat_shape: Vec<Dim>,
    /// What was taken for granted of the symbolic extents.
    pub assumptions: Vec<String>,
    /// The points asked for.
    pub at: Vec<AtRow>,
    /// A lambda from physical to logical indices, if one was stated or found and then proved.
    pub inverse: Option<String>,
    /// A lambda that is true on the physical indices that nothing reaches; none if none was proved. A map that reaches
    /// all of them has `lambda ...: False`.
    pub padding: Option<String>,
    /// What was asked of the map.
    #[serde(serialize_with = "obligations")]
    pub verdicts: Vec<Report>,
}

/// A logical index and where it goes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AtRow {
    /// The index asked for.
    pub logical: Vec<i128>,
    /// Where the map puts it.
    pub physical: Vec<i128>,
    /// The index in the flattened buffer; null where an extent that it needs is symbolic.
    pub flat: Option<Vec<i128>>,
}

impl MapReport {
    /// The worst of its verdicts.
    pub fn summary(&self) -> Summary {
        Summary::of_reports(&self.verdicts)
    }

    /// The JSON document, on one line.
    pub fn to_json(&self) -> String {
        to_line(self)
    }
}
