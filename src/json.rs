//! The JSON forms that reports and certificates share: documents on one line, pairs as objects, counterexamples.

use serde::{Serialize, Serializer};
use tilewright_verify::Counterexample;

/// A value as one line of JSON. Serialization cannot fail, because all reports have only text keys.
pub(crate) fn to_line(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_else(|error| unreachable!("a report has text keys only: {error}"))
}

/// Pairs as an object, in their order.
pub(crate) fn as_map<S: Serializer, T: Serialize>(pairs: &[(String, T)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(pairs.iter().map(|(name, value)| (name, value)))
}

/// A counterexample: the symbolic extents, the indices of a map (of a collision both, else one; empty if it is not about
/// a map), the other values by name, and what goes wrong there.
#[derive(Serialize)]
pub(crate) struct CounterexampleView<'a> {
    #[serde(serialize_with = "as_map")]
    shape: &'a [(String, i128)],
    indices: &'a [Vec<i128>],
    #[serde(serialize_with = "as_map")]
    values: Vec<(String, i128)>,
    text: &'a str,
}

impl<'a> CounterexampleView<'a> {
    /// The form of `found`.
    pub(crate) fn new(found: &'a Counterexample) -> Self {
        Self { shape: &found.shape, indices: &found.indices, values: found.named_values(), text: &found.text }
    }
}
