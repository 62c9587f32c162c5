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
    /// The predicate that restricts the domain of the map.
    #[serde(rename = "where", skip_serializing_if = "Option::is_none")]
    pub predicate: Option<String>,
    /// The images of the indices that were asked for.
    pub at: Vec<AtRow>,
    /// A lambda from physical to logical indices, if one was stated or found and then proved.
    pub inverse: Option<String>,
    /// A lambda that is true on exactly the physical indices that no logical index reaches; none if none was proved.
    /// For a map that reaches all of them it is `lambda ...: False`.
    pub padding: Option<String>,
    /// The parts of each output, if they were asked for; null if they are not proved.
    #[serde(skip_serializing_if = "Answer::is_not_asked")]
    pub parts: Answer<Vec<PartsRow>>,
    /// The map over outer and inner indices, if it was asked for; null if it is not proved.
    #[serde(skip_serializing_if = "Answer::is_not_asked")]
    pub subspace: Answer<SubspaceRow>,
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

/// The answer to a question that need not be asked. In JSON it is null if it is not proved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Answer<T> {
    /// The answer, which is proved.
    Proved(T),
    /// The answer was not proved.
    NotProved,
    /// Nobody asked.
    NotAsked,
}

impl<T> Answer<T> {
    /// Whether the question was not asked.
    pub fn is_not_asked(&self) -> bool {
        matches!(self, Self::NotAsked)
    }

    /// The answer, if it is proved.
    pub fn proved(&self) -> Option<&T> {
        match self {
            Self::Proved(answer) => Some(answer),
            Self::NotProved | Self::NotAsked => None,
        }
    }
}

impl<T> From<Option<T>> for Answer<T> {
    /// The answer to a question that was asked.
    fn from(answer: Option<T>) -> Self {
        answer.map_or(Self::NotProved, Self::Proved)
    }
}

/// An output of a map as a sum of parts of the logical indices.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PartsRow {
    /// The parts; the output is the sum of them and the base.
    pub parts: Vec<PartRow>,
    /// The number that is added to the parts.
    pub base: Dim,
}

/// The part `axis // lower_factor % extent * scale` of an output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PartRow {
    /// The name of the logical index.
    pub axis: String,
    /// The divisor of the index.
    pub lower_factor: Dim,
    /// The number of values of the part.
    pub extent: Dim,
    /// The factor of the part in the sum.
    pub scale: Dim,
}

/// A map over outer and inner indices: each output is `outer * extent + inner`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SubspaceRow {
    /// The map of the outer indices: which block.
    pub outer: String,
    /// The map of the inner indices: where in the block.
    pub inner: String,
    /// The shape of a block: the extent of the inner map on each axis.
    pub extents: Vec<Dim>,
    /// What the predicate that restricts the domain says of the outer indices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outer_where: Option<String>,
    /// What it says of the inner indices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inner_where: Option<String>,
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
