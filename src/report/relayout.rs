//! The data of `tilewright bitcast` and `tilewright relayout`, and their JSON: schemas `tilewright.bitcast/1` and
//! `tilewright.relayout/1`.
//!
//! ```json
//! {"schema":"tilewright.bitcast/1","from":"f32[3,5]{1,0}","to":"f32[3,5]{0,1}","transpose":null,
//!  "same_elements":"lambda i0, i1: [i0, i1]","legal":false,"premises":[],
//!  "verdicts":[{"obligation":"bitcast",...}]}
//! {"schema":"tilewright.relayout/1","from":...,"to":...,"transpose":null,"same_elements":...,
//!  "from_slots":24,"to_slots":15,"map":"lambda p: [...]","padding":"lambda p: ...","premises":[],"verdicts":[...]}
//! ```

use serde::Serialize;
use tilewright_verify::Report;

use super::check::{Dim, obligations};
use super::lines::properties;
use super::obligation::{obligations_of, premise_lines, proved_line};
use super::text::Style;
use crate::json::to_line;
use crate::pipeline::outcome::Summary;

/// Whether the memory of one array may be read as another.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BitcastReport {
    /// `tilewright.bitcast/1`.
    pub schema: &'static str,
    /// A in XLA's exact text.
    pub from: String,
    /// B in XLA's exact text.
    pub to: String,
    /// Dimension `k` of B is this dimension of A; null if B is A or a reshape of it.
    pub transpose: Option<Vec<usize>>,
    /// A lambda from the logical index in A to that in B of the same element.
    pub same_elements: String,
    /// Whether each slot holds the same in both; null if that was not decided.
    pub legal: Option<bool>,
    /// What the proof takes for granted.
    pub premises: Vec<String>,
    /// The obligation with its verdict.
    #[serde(serialize_with = "obligations")]
    pub verdicts: Vec<Report>,
}

/// The map from the slots of one array to those of another.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RelayoutReport {
    /// `tilewright.relayout/1`.
    pub schema: &'static str,
    /// A in XLA's exact text.
    pub from: String,
    /// B in XLA's exact text.
    pub to: String,
    /// Dimension `k` of B is this dimension of A; null if B is A or a reshape of it.
    pub transpose: Option<Vec<usize>>,
    /// A lambda from the logical index in A to that in B of the same element.
    pub same_elements: String,
    /// Slots of A's allocation.
    pub from_slots: Dim,
    /// Slots of B's allocation.
    pub to_slots: Dim,
    /// A lambda from a slot of A to the slot of B of the same element; null if it was not proved.
    pub map: Option<String>,
    /// A lambda that is true on exactly the slots of A that hold no element, where `map` says nothing; null if it was not
    /// proved.
    pub padding: Option<String>,
    /// What the proofs take for granted.
    pub premises: Vec<String>,
    /// The obligations of the map with their verdicts.
    #[serde(serialize_with = "obligations")]
    pub verdicts: Vec<Report>,
}

impl BitcastReport {
    /// The worst of its verdicts.
    pub fn summary(&self) -> Summary {
        Summary::of_reports(&self.verdicts)
    }

    /// The JSON document, on one line.
    pub fn to_json(&self) -> String {
        to_line(self)
    }

    /// What people read; ends with a newline.
    pub fn to_text(&self, style: Style) -> String {
        let mut rows = head(&self.from, &self.to, self.transpose.as_deref(), &self.same_elements);
        let legal = match self.legal {
            Some(true) => "yes: every slot holds the same in both",
            Some(false) => "no",
            None => "not decided",
        };
        rows.push(vec!["bitcast".to_owned(), legal.to_owned()]);
        ended(&rows, &self.same_elements, &self.verdicts, &self.premises, style)
    }
}

impl RelayoutReport {
    /// The worst of its verdicts.
    pub fn summary(&self) -> Summary {
        Summary::of_reports(&self.verdicts)
    }

    /// The JSON document, on one line.
    pub fn to_json(&self) -> String {
        to_line(self)
    }

    /// What people read; ends with a newline.
    pub fn to_text(&self, style: Style) -> String {
        let mut rows = head(&self.from, &self.to, self.transpose.as_deref(), &self.same_elements);
        rows.push(vec!["slots".to_owned(), format!("{} -> {}", self.from_slots, self.to_slots)]);
        let shown = |lambda: &Option<String>| lambda.clone().unwrap_or_else(|| "not proved".to_owned());
        rows.push(vec!["map".to_owned(), shown(&self.map)]);
        rows.push(vec!["padding".to_owned(), shown(&self.padding)]);
        ended(&rows, self.map.as_deref().unwrap_or_default(), &self.verdicts, &self.premises, style)
    }
}

/// The rows that both reports begin with.
fn head(from: &str, to: &str, transpose: Option<&[usize]>, same_elements: &str) -> Vec<Vec<String>> {
    let mut rows = vec![vec!["from A".to_owned(), from.to_owned()], vec!["to B".to_owned(), to.to_owned()]];
    if let Some(transpose) = transpose {
        rows.push(vec!["transpose".to_owned(), format!("{transpose:?}")]);
    }
    rows.push(vec!["same elements".to_owned(), same_elements.to_owned()]);
    rows
}

/// The text: the rows, then the obligations with their premises.
fn ended(rows: &[Vec<String>], map: &str, verdicts: &[Report], premises: &[String], style: Style) -> String {
    let mut out = String::new();
    properties(&mut out, rows, style);
    obligations_of(&mut out, map, verdicts, style);
    premise_lines(&mut out, premises, style);
    proved_line(&mut out, verdicts, premises, style);
    out
}
