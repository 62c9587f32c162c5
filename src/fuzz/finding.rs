//! What is written of a failure: a file that holds all that is needed to see it again.

use serde::{Deserialize, Serialize};

use super::oracle::Failure;

/// The schema of a finding's file.
pub const SCHEMA: &str = "tilewright.finding/1";

/// A failure with the case that shows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Finding {
    /// [`SCHEMA`].
    pub schema: String,
    /// Name of the oracle.
    pub oracle: String,
    /// What is wrong.
    #[serde(flatten)]
    pub failure: Failure,
    /// Where the campaign came across it; none for one that somebody wrote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
    /// The case, as the oracle's own data.
    pub case: serde_json::Value,
    /// The case as people read it.
    #[serde(default)]
    pub text: String,
}

/// Which case of which campaign.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// Seed of the campaign.
    pub seed: u64,
    /// Number of the case.
    pub number: u64,
}
