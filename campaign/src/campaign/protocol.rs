//! The messages between coordinator and worker, sent by [`tilewright_device::process`].
//!
//! Each request has one reply, except [`Request::Trace`], which is answered by one [`Reply::At`] for each case and a
//! [`Reply::Ran`] at the end. There is no message for a worker that dies: the coordinator notices
//! that by itself.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::finding::Finding;
use crate::oracle::{Outcome, Tally};

/// A range of cases of an oracle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Range {
    /// The oracle.
    pub oracle: String,
    /// Seed of the campaign.
    pub seed: u64,
    /// Number of the first case.
    pub first: u64,
    /// Number of cases.
    pub count: u64,
}

impl Range {
    /// The number after the last case.
    pub fn end(&self) -> u64 {
        self.first.saturating_add(self.count)
    }

    /// The part of the range from number `first` to before `end`.
    #[must_use]
    pub fn part(&self, first: u64, end: u64) -> Self {
        Self { first, count: end.saturating_sub(first), ..self.clone() }
    }
}

/// The clock that limits the time of a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Clock {
    /// Wall time, for campaigns that end at a certain time.
    Wall,
    /// Processor time of the worker, which does not depend on what else the machine does.
    Processor,
}

/// A request to a worker.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    /// Asks for the solver and the devices.
    About,
    /// Checks cases, at least one batch, and starts none after `millis` milliseconds.
    Run {
        /// The cases.
        range: Range,
        /// The time in milliseconds.
        millis: u64,
        /// The clock that this time is read from.
        clock: Clock,
    },
    /// Checks cases one by one, and announces each number before checking the case.
    Trace {
        /// The cases.
        range: Range,
    },
    /// Reduces a finding.
    Reduce {
        /// The finding.
        finding: Finding,
        /// Limit on the number of checks.
        attempts: usize,
        /// Limit on the time in milliseconds.
        millis: u64,
    },
    /// Checks a case.
    Replay {
        /// The oracle.
        oracle: String,
        /// The case.
        case: Value,
    },
    /// Draws the first case of a range without checking it.
    Draw {
        /// The range.
        range: Range,
    },
    /// Asks for the simpler cases of a case and its text.
    Simpler {
        /// The oracle.
        oracle: String,
        /// The case.
        case: Value,
    },
}

/// A reply of a worker.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// Name and version of the solver, and the devices.
    About {
        /// The solver.
        solver: String,
        /// The devices, one description each.
        devices: Vec<String>,
    },
    /// The number of the case that is checked next; more messages follow.
    At {
        /// Its number.
        number: u64,
    },
    /// The result of checking a range.
    Ran {
        /// Number of checked cases, from the first on.
        done: u64,
        /// The number of cases that are best checked together.
        batch: u64,
        /// The counts.
        tally: Tally,
        /// One finding for each kind of failure; `tally` has the number of failures.
        findings: Vec<Finding>,
    },
    /// The reduced finding.
    Reduced(Finding),
    /// The outcome of a case.
    Outcome(Outcome),
    /// Cases and a text.
    Cases {
        /// The cases.
        cases: Vec<Value>,
        /// The text of the case in the request.
        text: String,
    },
    /// The oracle is not available here.
    Skipped {
        /// Why, in a sentence.
        why: String,
    },
    /// The request is invalid.
    Refused {
        /// Why, in a sentence.
        why: String,
    },
}
