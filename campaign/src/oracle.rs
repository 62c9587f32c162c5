//! What an oracle is, and what comes of it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::case::Case;
use super::config::Config;
use tilewright_compiler::pipeline::DeviceChoice;

/// Something that says of a case whether what should hold holds.
pub trait Oracle {
    /// What it looks at.
    type Case: Case;

    /// Its name on the command line.
    const NAME: &'static str;

    /// How many cases are best looked at together.
    fn batch(&self) -> usize {
        1
    }

    /// Looks at cases together; an outcome for each, in order. The default looks at one after the other.
    fn check_all(&mut self, cases: &[Self::Case], tally: &mut Tally) -> Vec<Outcome> {
        cases.iter().map(|case| self.check(case, tally)).collect()
    }

    /// Looks at a case.
    fn check(&mut self, case: &Self::Case, tally: &mut Tally) -> Outcome;
}

/// What an oracle is made with.
#[derive(Clone, Debug)]
pub struct Environment {
    /// The ranges of cases.
    pub config: Config,
    /// Where kernels run.
    pub device: DeviceChoice,
}

impl Default for Environment {
    /// The default ranges, every device there is.
    fn default() -> Self {
        Self { config: Config::default(), device: DeviceChoice::All }
    }
}

/// What came of a case.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// What should hold was looked at and holds.
    Held,
    /// The case is none: it does not validate, or the program has no meaning. The generator should not make such.
    Invalid(String),
    /// The case is valid, and it could not be decided whether it holds: the reason in a few words, counted by them.
    Undecided(String),
    /// It does not hold.
    Failed(Failure),
}

/// Something that should hold and does not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// What is wrong in a few words that are the same for all cases of one fault: reduction keeps to it. For example
    /// `flatten_buffer changes the result`.
    pub what: String,
    /// The details: which element, which values.
    pub detail: String,
}

impl Failure {
    /// A failed case.
    pub fn outcome(what: impl Into<String>, detail: impl Into<String>) -> Outcome {
        Outcome::Failed(Self { what: what.into(), detail: detail.into() })
    }
}

/// What was counted while an oracle ran; tallies of several workers are added up.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// Cases looked at.
    pub runs: u64,
    /// Those that held.
    pub held: u64,
    /// Those that were no cases, by reason.
    pub invalid: BTreeMap<String, u64>,
    /// Those that could not be decided, by reason.
    pub undecided: BTreeMap<String, u64>,
    /// Those that failed.
    pub failed: u64,
    /// How often each feature of cases occurred, and what oracles saw beside: `pass:flatten_buffer` that changed something.
    pub coverage: BTreeMap<String, u64>,
    /// What an oracle counts beside: `maps proved`, `maps refuted`, `values compared`.
    pub counts: BTreeMap<String, u64>,
    /// Microseconds spent drawing and checking.
    pub micros: u64,
    /// Microseconds of processor time of the workers, where the system says; what another process takes does not count.
    #[serde(default)]
    pub cpu_micros: u64,
    /// Microseconds of processor time spent on parts of the work: `Portable Computing Language`.
    #[serde(default)]
    pub part_micros: BTreeMap<String, u64>,
}

impl Tally {
    /// Counts that something was seen.
    pub fn saw(&mut self, feature: &str) {
        add(&mut self.coverage, feature, 1);
    }

    /// Adds to a count of the oracle's own.
    pub fn count(&mut self, what: &str, number: u64) {
        add(&mut self.counts, what, number);
    }

    /// Adds the time of a part of the work.
    pub fn spent(&mut self, part: &str, micros: u64) {
        add(&mut self.part_micros, part, micros);
    }

    /// Counts an outcome.
    pub fn outcome(&mut self, outcome: &Outcome) {
        self.runs += 1;
        match outcome {
            Outcome::Held => self.held += 1,
            Outcome::Invalid(why) => add(&mut self.invalid, why, 1),
            Outcome::Undecided(why) => add(&mut self.undecided, why, 1),
            Outcome::Failed(_) => self.failed += 1,
        }
    }

    /// Adds another tally.
    pub fn merge(&mut self, other: &Self) {
        self.runs += other.runs;
        self.held += other.held;
        self.failed += other.failed;
        self.micros += other.micros;
        self.cpu_micros += other.cpu_micros;
        let pairs = [
            (&mut self.invalid, &other.invalid),
            (&mut self.undecided, &other.undecided),
            (&mut self.coverage, &other.coverage),
            (&mut self.counts, &other.counts),
            (&mut self.part_micros, &other.part_micros),
        ];
        for (mine, theirs) in pairs {
            for (key, number) in theirs {
                add(mine, key, *number);
            }
        }
    }

    /// Cases that were valid, of a hundred.
    pub fn valid_percent(&self) -> f64 {
        let invalid: u64 = self.invalid.values().sum();
        #[expect(clippy::cast_precision_loss, reason = "a share for people")]
        let share = |part: u64| 100.0 * part as f64 / self.runs.max(1) as f64;
        share(self.runs - invalid.min(self.runs))
    }
}

fn add(map: &mut BTreeMap<String, u64>, key: &str, number: u64) {
    match map.get_mut(key) {
        Some(count) => *count += number,
        None => drop(map.insert(key.to_owned(), number)),
    }
}
