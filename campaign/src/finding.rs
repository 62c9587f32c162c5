//! Findings: files that describe a failure completely enough to reproduce it.
//!
//! ```text
//! {
//!   "schema": "tilewright.finding/1",
//!   "oracle": "passes",
//!   "what": "flatten_buffer changes the result",
//!   "detail": "3 of 15 lanes differ: ...",
//!   "origin": {"seed": 1, "number": 4711},
//!   "case": {"tvmscript": {"text": "...", "seed": 17}},
//!   "text": "...",
//!   "replay": "tilewright replay findings/passes-flatten-buffer-changes-the-result-1.json"
//! }
//! ```
//!
//! - `what` identifies the kind of failure; a campaign keeps one finding for each pair of `oracle` and `what`.
//! - `detail` names the element and the values of this case; it changes while the case is reduced.
//! - `origin` is the place in the campaign: the same seed and number draw the unreduced case again, as long as the
//!   generator does not change.
//! - `case` is all that `tilewright replay` needs. Its form depends on the oracle.
//! - `text` and `replay` are for people.

use serde::{Deserialize, Serialize};
use tilewright_ir::Diagnostic;

use super::oracle::Failure;
use super::oracles::{ORACLES, by_name};

/// The value of `schema` in a finding's file.
pub const SCHEMA: &str = "tilewright.finding/1";

/// A failure together with the case that shows it.
///
/// The case is stored as data and not as a seed, so the file stays valid when the generator
/// changes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// [`SCHEMA`].
    pub schema: String,
    /// The name of the oracle that failed.
    pub oracle: String,
    /// The description of the failure.
    #[serde(flatten)]
    pub failure: Failure,
    /// The case of the campaign that failed; `None` for findings written by hand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
    /// The reduced case, in the oracle's own data format.
    pub case: serde_json::Value,
    /// The case in readable form; not read back.
    #[serde(default)]
    pub text: String,
    /// The command that checks the case again.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub replay: String,
}

/// The origin of a case: a campaign and a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// Seed of the campaign.
    pub seed: u64,
    /// Number of the case among those of its oracle, from 0.
    pub number: u64,
}

impl Finding {
    /// Parses a finding's file.
    ///
    /// # Errors
    /// The text is not JSON, has another schema, lacks a field or the case, or names an unknown
    /// oracle.
    pub fn read(text: &str) -> Result<Self, Box<Diagnostic>> {
        let fault = |message: String, help: &str| Box::new(Diagnostic::error("finding", None, message).with_help(help));
        let written = "give a file that `tilewright fuzz` wrote";
        let json: serde_json::Value = serde_json::from_str(text)
            .map_err(|error| fault(format!("this is not JSON, or not all of it: {error}"), written))?;
        let schema = json.get("schema").and_then(serde_json::Value::as_str);
        if schema != Some(SCHEMA) {
            let found = schema.map_or_else(|| "there is none".to_owned(), |found| format!("it is `{found}`"));
            return Err(fault(format!("the schema of a finding is `{SCHEMA}`; here {found}"), written));
        }
        let finding: Self =
            serde_json::from_value(json).map_err(|error| fault(format!("this is no finding: {error}"), written))?;
        if by_name(&finding.oracle).is_none() {
            let names: Vec<_> = ORACLES.iter().map(|entry| entry.name).collect();
            let help = format!("the oracles are {}", names.join(", "));
            return Err(fault(format!("there is no oracle `{}`", finding.oracle), &help));
        }
        if finding.case.is_null() {
            let help = "it was written of a process that ended in none of its cases alone; run the campaign again";
            return Err(fault("the finding has no case".into(), help));
        }
        Ok(finding)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_no_finding_says_why() {
        let whole =
            r#"{"schema": "tilewright.finding/1", "oracle": "judge_maps", "what": "x", "detail": "", "case": [1]}"#;
        assert_eq!(Finding::read(whole).unwrap().failure.what, "x");
        for (bad, why) in [
            (whole[..40].to_owned(), "not JSON, or not all"),
            (whole.replace("finding/1", "finding/2"), "here it is `tilewright.finding/2`"),
            (whole.replace("judge_maps", "judge_caps"), "no oracle `judge_caps`"),
            (whole.replace("\"what\"", "\"that\""), "missing field `what`"),
            (whole.replace("[1]", "null"), "no case"),
            ("[]".to_owned(), "there is none"),
        ] {
            let message = Finding::read(&bad).unwrap_err().message;
            assert!(message.contains(why), "{message}");
        }
    }
}
