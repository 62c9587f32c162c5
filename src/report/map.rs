//! The data of `tilewright map`, and its JSON: schema `tilewright.map/1`.

use serde::Serialize;
use tilewright_verify::Report;

use super::check::{Dim, obligations};
use crate::json::to_line;
use crate::pipeline::outcome::Summary;

/// The report on an index map on a shape.
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
    /// What the verdicts take for granted: positive extents, sizes, and the conditions that were assumed.
    pub premises: Vec<String>,
    /// Conditions on symbolic extents that were assumed.
    pub assumptions: Vec<String>,
    /// The images of the indices that were asked for.
    pub at: Vec<AtRow>,
    /// A lambda from physical to logical indices, if one was stated or found and then proved.
    pub inverse: Option<String>,
    /// A lambda that is true on exactly the physical indices that no logical index reaches; none if none was proved.
    /// For a map that reaches all of them it is `lambda ...: False`.
    pub padding: Option<String>,
    /// The obligations of the map with their verdicts.
    #[serde(serialize_with = "obligations")]
    pub verdicts: Vec<Report>,
}

/// A logical index and its image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AtRow {
    /// The index asked for.
    pub logical: Vec<i128>,
    /// The physical index.
    pub physical: Vec<i128>,
    /// The index in the flat buffer; null if an extent that it depends on is symbolic.
    pub flat: Option<Vec<i128>>,
}

impl MapReport {
    /// The worst verdict.
    pub fn summary(&self) -> Summary {
        Summary::of_reports(&self.verdicts)
    }

    /// The JSON document, on one line.
    pub fn to_json(&self) -> String {
        to_line(self)
    }
}
