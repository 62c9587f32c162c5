//! The interface of oracles, their outcomes, and the counts kept while they run.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::case::Case;
use super::config::Config;
use tilewright_compiler::pipeline::DeviceChoice;
use tilewright_device::DeviceHost;

/// A property that has to hold of every case.
///
/// An oracle compares two independent ways of computing the same thing, such as a pass and the
/// interpreter. It must not report a failure unless one of the two is wrong.
pub trait Oracle {
    /// The cases it checks.
    type Case: Case;

    /// The name on the command line, in findings and of the fuzz target. It never changes.
    const NAME: &'static str;

    /// The number of cases that are best checked together.
    fn batch(&self) -> usize {
        1
    }

    /// Checks several cases together and returns an outcome for each, in order. The default checks
    /// them one by one.
    fn check_all(&mut self, cases: &[Self::Case], tally: &mut Tally) -> Vec<Outcome> {
        cases.iter().map(|case| self.check(case, tally)).collect()
    }

    /// Checks one case. `tally` receives what is counted besides the outcome.
    fn check(&mut self, case: &Self::Case, tally: &mut Tally) -> Outcome;
}

/// The parameters with which an oracle is created.
#[derive(Clone, Debug)]
pub struct Environment {
    /// The ranges of cases.
    pub config: Config,
    /// The devices on which kernels run.
    pub device: DeviceChoice,
    /// The process in which PoCL runs where it optimises kernels, because its optimiser may end the process.
    pub optimiser: DeviceHost,
}

impl Default for Environment {
    /// The default ranges and all devices, all of them in this process.
    fn default() -> Self {
        Self { config: Config::default(), device: DeviceChoice::All, optimiser: DeviceHost::default() }
    }
}

/// The result of checking a case.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The property was checked and holds.
    Held,
    /// The case is not valid: it does not validate, or the program has undefined behaviour.
    /// Generators should avoid this.
    Invalid(String),
    /// The case is valid, but it could not be decided whether the property holds. The reason is a
    /// short text; outcomes are counted by it.
    Undecided(String),
    /// The property does not hold.
    Failed(Failure),
}

/// A violated property.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The kind of failure, in a few words that are the same for all cases with the same cause;
    /// reduction keeps it constant. For example `flatten_buffer changes the result`.
    pub what: String,
    /// The details: the affected element, its expected and its actual value.
    pub detail: String,
}

impl Failure {
    /// The outcome of a failed case.
    pub fn outcome(what: impl Into<String>, detail: impl Into<String>) -> Outcome {
        Outcome::Failed(Self { what: what.into(), detail: detail.into() })
    }
}

/// The counts of an oracle's run. The tallies of several workers are added up.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// Number of cases checked.
    pub runs: u64,
    /// Number of cases that held.
    pub held: u64,
    /// Number of invalid cases, by reason.
    pub invalid: BTreeMap<String, u64>,
    /// Number of undecided cases, by reason.
    pub undecided: BTreeMap<String, u64>,
    /// Number of cases that failed.
    pub failed: u64,
    /// How often each feature occurred: the features of cases, and those that oracles report, such
    /// as `pass:flatten_buffer` for a pass that changed a program.
    pub coverage: BTreeMap<String, u64>,
    /// Counters of the oracles: `maps proved`, `maps refuted`, `values compared`.
    pub counts: BTreeMap<String, u64>,
    /// Microseconds of wall time spent drawing and checking.
    pub micros: u64,
    /// Microseconds of processor time of the workers, if the system reports it; the time of other
    /// processes does not count.
    #[serde(default)]
    pub cpu_micros: u64,
    /// Microseconds of processor time spent on parts of the work, by name, such as `Portable
    /// Computing Language`.
    #[serde(default)]
    pub part_micros: BTreeMap<String, u64>,
}

impl Tally {
    /// Counts an occurrence of a feature.
    pub fn saw(&mut self, feature: &str) {
        add(&mut self.coverage, feature, 1);
    }

    /// Adds to a counter of the oracle.
    pub fn count(&mut self, what: &str, number: u64) {
        add(&mut self.counts, what, number);
    }

    /// Adds to the time of a part of the work.
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

    /// Adds the counts of another tally.
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

    /// Share of valid cases in percent.
    pub fn valid_percent(&self) -> f64 {
        let invalid: u64 = self.invalid.values().sum();
        #[expect(clippy::cast_precision_loss, reason = "a share for people")]
        let share = |part: u64| 100.0 * part as f64 / self.runs.max(1) as f64;
        share(self.runs - invalid.min(self.runs))
    }
}

/// Adds to an entry of a map, and creates it if necessary.
fn add(map: &mut BTreeMap<String, u64>, key: &str, number: u64) {
    match map.get_mut(key) {
        Some(count) => *count += number,
        None => drop(map.insert(key.to_owned(), number)),
    }
}
