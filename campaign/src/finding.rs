//! What is written of a failure: a file that holds all that is needed to see it again.

use serde::{Deserialize, Serialize};
use tilewright_ir::Diagnostic;

use super::oracle::Failure;
use super::oracles::{ORACLES, by_name};

/// The schema of a finding's file.
pub const SCHEMA: &str = "tilewright.finding/1";

/// A failure with the case that shows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
    /// The command that looks at it again.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub replay: String,
}

/// Which case of which campaign.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// Seed of the campaign.
    pub seed: u64,
    /// Number of the case.
    pub number: u64,
}

impl Finding {
    /// Reads a finding's file.
    ///
    /// # Errors
    /// It is no JSON, of another schema, lacks something, or names an oracle that there is none of.
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
