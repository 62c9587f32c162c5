//! Runs an oracle: cases are drawn from bytes, checked and counted; a panic counts as a failure;
//! failures are reduced.
//!
//! ```text
//! input bytes ── draw ──> case ── check ──> held | invalid | undecided     counted in the tally
//!                                  └──────> failed ──> finding ── reduce ──> smaller finding ── pin ──> text instead of recipe
//! ```
//!
//! Reduction is greedy. It follows [`Case::simpler`] as long as [`Failure::what`] stays the same, so a finding never turns
//! into one of another cause; its number of checks and its time are limited.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::time::Instant;

use arbitrary::Unstructured;
use tilewright_ir::Diagnostic;

use super::case::Case;
use super::finding::{Finding, SCHEMA};
use super::oracle::{Environment, Failure, Oracle, Outcome, Tally};

/// An oracle with its case type erased, for campaigns, fuzz targets and `replay`.
pub trait Runner {
    /// The oracle's name.
    fn name(&self) -> &'static str;

    /// The number of inputs that are best run together.
    fn batch(&self) -> usize;

    /// Draws a case from each input and checks it. Outcomes are counted in `tally`; each failure is
    /// returned with the index of its input, not yet reduced.
    fn run(&mut self, inputs: &[Vec<u8>], tally: &mut Tally) -> Vec<(usize, Finding)>;

    /// Reduces the case of a finding as long as it fails in the same way, with at most `attempts`
    /// checks.
    fn reduce(&mut self, finding: Finding, attempts: usize) -> Finding {
        self.reduce_within(finding, attempts, None)
    }

    /// Like [`Runner::reduce`], but starts no check after `until`.
    fn reduce_within(&mut self, finding: Finding, attempts: usize, until: Option<Instant>) -> Finding;

    /// The case of an input as JSON, without checking it. `None` if no case can be drawn.
    fn draw(&self, input: &[u8]) -> Option<serde_json::Value>;

    /// The case in readable form; empty if it is not a case of this oracle.
    fn text(&self, case: &serde_json::Value) -> String;

    /// Simpler cases, the most simplified first; none if it is not a case of this oracle.
    fn simpler(&self, case: &serde_json::Value) -> Vec<serde_json::Value>;

    /// Checks the case of a finding's file again.
    ///
    /// # Errors
    /// The case is not a case of this oracle.
    fn replay(&mut self, case: &serde_json::Value) -> Result<Outcome, Diagnostic>;
}

/// The runner of an oracle. The oracle is created again after a panic, because its state may be
/// inconsistent.
pub struct Session<O, F> {
    oracle: O,
    make: F,
    environment: Environment,
}

impl<O: Oracle, F: Fn(&Environment) -> Result<O, String>> Session<O, F> {
    /// Creates the oracle.
    ///
    /// # Errors
    /// The oracle is not available here, for example because there is no device; as a sentence.
    pub fn new(make: F, environment: Environment) -> Result<Self, String> {
        Ok(Self { oracle: make(&environment)?, make, environment })
    }

    /// Checks several cases together. If that panics, each is checked by itself, so that the panic
    /// is attributed to one case.
    fn check_cases(&mut self, cases: &[O::Case], tally: &mut Tally) -> Vec<Outcome> {
        let before = tally.clone();
        match catch_unwind(AssertUnwindSafe(|| self.oracle.check_all(cases, tally))) {
            Ok(outcomes) => outcomes,
            Err(_) if cases.len() > 1 => {
                *tally = before;
                self.renew();
                cases.iter().flat_map(|case| self.check_cases(std::slice::from_ref(case), tally)).collect()
            }
            Err(payload) => {
                *tally = before;
                self.renew();
                let text = payload.downcast_ref::<String>().map(String::as_str);
                let text = text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("(no message)");
                vec![match last_panic() {
                    Some((file, line)) => Failure::outcome(format!("panic in {file}"), format!("line {line}: {text}")),
                    None => Failure::outcome("panic", text),
                }]
            }
        }
    }

    /// Replaces the oracle after a panic, which may have interrupted it at any point.
    fn renew(&mut self) {
        if let Ok(oracle) = (self.make)(&self.environment) {
            self.oracle = oracle;
        }
    }

    /// The failure of a case, if it fails.
    fn failure_of(&mut self, case: &O::Case) -> Option<Failure> {
        match self.check_cases(std::slice::from_ref(case), &mut Tally::default()).pop()? {
            Outcome::Failed(failure) => Some(failure),
            Outcome::Held | Outcome::Invalid(_) | Outcome::Undecided(_) => None,
        }
    }

    /// The finding for a failed case.
    fn finding(case: &O::Case, failure: Failure) -> Finding {
        Finding {
            schema: SCHEMA.to_owned(),
            oracle: O::NAME.to_owned(),
            failure,
            origin: None,
            case: serde_json::to_value(case).unwrap_or_default(),
            text: case.text(),
            replay: String::new(),
        }
    }
}

impl<O: Oracle, F: Fn(&Environment) -> Result<O, String>> Runner for Session<O, F> {
    fn name(&self) -> &'static str {
        O::NAME
    }

    fn batch(&self) -> usize {
        self.oracle.batch()
    }

    /// Draws, checks and counts; inputs from which no case can be drawn count as invalid.
    fn run(&mut self, inputs: &[Vec<u8>], tally: &mut Tally) -> Vec<(usize, Finding)> {
        let start = Instant::now();
        let (mut places, mut cases) = (Vec::new(), Vec::new());
        for (place, input) in inputs.iter().enumerate() {
            match O::Case::draw(&mut Unstructured::new(input), &self.environment.config) {
                Ok(case) => {
                    // Not every input gives a case, so the positions of those that do are kept for the findings.
                    places.push(place);
                    cases.push(case);
                }
                Err(error) => tally.outcome(&Outcome::Invalid(error.to_string())),
            }
        }
        let outcomes = self.check_cases(&cases, tally);
        let mut found = Vec::new();
        for ((place, case), outcome) in places.into_iter().zip(&cases).zip(outcomes) {
            tally.outcome(&outcome);
            for feature in case.features() {
                tally.saw(&feature);
            }
            if let Outcome::Failed(failure) = outcome {
                found.push((place, Self::finding(case, failure)));
            }
        }
        tally.micros += u64::try_from(start.elapsed().as_micros()).unwrap_or(u64::MAX);
        found
    }

    /// Greedy reduction: the first simpler case with the same kind of failure replaces the case,
    /// until none is left. At the end the case is pinned if its pinned form fails in the same way.
    fn reduce_within(&mut self, finding: Finding, attempts: usize, until: Option<Instant>) -> Finding {
        let Ok(mut case) = serde_json::from_value::<O::Case>(finding.case.clone()) else { return finding };
        let (mut failure, mut left) = (finding.failure.clone(), attempts);
        'smaller: loop {
            for simpler in case.simpler() {
                if left == 0 || until.is_some_and(|until| Instant::now() >= until) {
                    break 'smaller;
                }
                left -= 1;
                if let Some(found) = self.failure_of(&simpler).filter(|found| found.what == failure.what) {
                    (case, failure) = (simpler, found);
                    continue 'smaller;
                }
            }
            break;
        }
        if let Some(pinned) = case.pinned()
            && let Some(found) = self.failure_of(&pinned).filter(|found| found.what == failure.what)
        {
            (case, failure) = (pinned, found);
        }
        Finding { origin: finding.origin, ..Self::finding(&case, failure) }
    }

    fn draw(&self, input: &[u8]) -> Option<serde_json::Value> {
        let case = O::Case::draw(&mut Unstructured::new(input), &self.environment.config).ok()?;
        serde_json::to_value(case).ok()
    }

    fn text(&self, case: &serde_json::Value) -> String {
        serde_json::from_value::<O::Case>(case.clone()).map_or_else(|_| String::new(), |case| case.text())
    }

    fn simpler(&self, case: &serde_json::Value) -> Vec<serde_json::Value> {
        let Ok(case) = serde_json::from_value::<O::Case>(case.clone()) else { return Vec::new() };
        case.simpler().iter().filter_map(|simpler| serde_json::to_value(simpler).ok()).collect()
    }

    fn replay(&mut self, case: &serde_json::Value) -> Result<Outcome, Diagnostic> {
        let case = serde_json::from_value::<O::Case>(case.clone()).map_err(|error| {
            Diagnostic::error("finding-case", None, format!("the case is none of oracle `{}`: {error}", O::NAME))
        })?;
        Ok(self.check_cases(&[case], &mut Tally::default()).pop().unwrap_or(Outcome::Held))
    }
}

/// File and line of the last panic, recorded by the hook of [`remember_panics`].
static LAST_PANIC: Mutex<Option<(String, u32)>> = Mutex::new(None);

/// Installs a panic hook that records the position of a panic for findings and prints nothing. For
/// worker processes.
pub fn remember_panics() {
    std::panic::set_hook(Box::new(|info| {
        let place = info.location().map(|place| (short(place.file()), place.line()));
        *LAST_PANIC.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = place;
    }));
}

/// Takes the position of the last panic.
fn last_panic() -> Option<(String, u32)> {
    LAST_PANIC.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take()
}

/// The path relative to the workspace, such as `ir/src/expr.rs`, wherever it was built.
fn short(file: &str) -> String {
    let parts: Vec<&str> = file.split(['/', '\\']).collect();
    let src = parts.iter().rposition(|&part| part == "src").unwrap_or(parts.len().saturating_sub(1));
    parts[src.saturating_sub(1)..].join("/")
}
