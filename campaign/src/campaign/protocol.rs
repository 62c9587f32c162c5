//! What coordinator and worker say to each other, as messages of [`tilewright_device::process`].

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::finding::Finding;
use crate::oracle::{Outcome, Tally};

/// Cases of an oracle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Range {
    /// The oracle.
    pub oracle: String,
    /// Seed of the campaign.
    pub seed: u64,
    /// Number of the first case.
    pub first: u64,
    /// How many.
    pub count: u64,
}

impl Range {
    /// The number after the last.
    pub fn end(&self) -> u64 {
        self.first.saturating_add(self.count)
    }

    /// The cases from number `first` to before `end`.
    #[must_use]
    pub fn part(&self, first: u64, end: u64) -> Self {
        Self { first, count: end.saturating_sub(first), ..self.clone() }
    }
}

/// What a worker is asked.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    /// Which solver and devices there are.
    About,
    /// Looks at cases, at least one batch, and begins none after that many milliseconds.
    Run {
        /// The cases.
        range: Range,
        /// The time.
        millis: u64,
    },
    /// Looks at cases one by one, and says the number of each before it does.
    Trace {
        /// The cases.
        range: Range,
    },
    /// Makes the case of a finding smaller.
    Reduce {
        /// The finding.
        finding: Finding,
        /// Most looks.
        attempts: usize,
        /// Most time.
        millis: u64,
    },
    /// Looks at a case.
    Replay {
        /// The oracle.
        oracle: String,
        /// The case.
        case: Value,
    },
    /// Draws the first case of a range, and looks at nothing.
    Draw {
        /// The case is the first.
        range: Range,
    },
    /// Simpler cases, and the text of this one.
    Simpler {
        /// The oracle.
        oracle: String,
        /// The case.
        case: Value,
    },
}

/// What a worker answers.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// Name and version of the solver; the devices, one a line.
    About {
        /// The solver.
        solver: String,
        /// The devices.
        devices: Vec<String>,
    },
    /// The next case is this one; more follows.
    At {
        /// Its number.
        number: u64,
    },
    /// Cases were looked at.
    Ran {
        /// How many of the range, from the first on.
        done: u64,
        /// How many are best given at a time.
        batch: u64,
        /// What was counted.
        tally: Tally,
        /// One finding for each way to fail, with the number of failures in `tally`.
        findings: Vec<Finding>,
    },
    /// The finding, smaller.
    Reduced(Finding),
    /// What came of a case.
    Outcome(Outcome),
    /// Cases, and a text.
    Cases {
        /// The cases.
        cases: Vec<Value>,
        /// The text of the case asked about.
        text: String,
    },
    /// The oracle cannot be had here.
    Skipped {
        /// Why, in a sentence.
        why: String,
    },
    /// The request makes no sense.
    Refused {
        /// Why, in a sentence.
        why: String,
    },
}
