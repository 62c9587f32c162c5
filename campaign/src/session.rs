//! An oracle at work: cases are drawn from bytes, looked at, counted; a panic is a failure like any other; failures are
//! reduced.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::time::Instant;

use arbitrary::Unstructured;
use tilewright_ir::Diagnostic;

use super::case::Case;
use super::finding::{Finding, SCHEMA};
use super::oracle::{Environment, Failure, Oracle, Outcome, Tally};

/// An oracle whose kind of case is forgotten: what campaigns, targets and `replay` work with.
pub trait Runner {
    /// The oracle's name.
    fn name(&self) -> &'static str;

    /// How many inputs are best given at a time.
    fn batch(&self) -> usize;

    /// Draws a case from each input and looks at it; outcomes are counted in `tally`, failures come back with the place of
    /// their input, not yet reduced.
    fn run(&mut self, inputs: &[Vec<u8>], tally: &mut Tally) -> Vec<(usize, Finding)>;

    /// Makes the case of a finding smaller as long as it fails in the same way, with at most `attempts` looks.
    fn reduce(&mut self, finding: Finding, attempts: usize) -> Finding {
        self.reduce_within(finding, attempts, None)
    }

    /// As [`Runner::reduce`], and begins no look after `until`.
    fn reduce_within(&mut self, finding: Finding, attempts: usize, until: Option<Instant>) -> Finding;

    /// The case of an input, as a finding's file has it, and as people read it. Nothing looks at it.
    fn draw(&self, input: &[u8]) -> Option<serde_json::Value>;

    /// The case as people read it; empty if it is no case of this oracle.
    fn text(&self, case: &serde_json::Value) -> String;

    /// Simpler cases, the boldest first; none for what is no case of this oracle.
    fn simpler(&self, case: &serde_json::Value) -> Vec<serde_json::Value>;

    /// Looks at the case of a finding's file again.
    ///
    /// # Errors
    /// The case is no case of this oracle.
    fn replay(&mut self, case: &serde_json::Value) -> Result<Outcome, Diagnostic>;
}

/// A runner of an oracle; the oracle is made anew after a panic.
pub struct Session<O, F> {
    oracle: O,
    make: F,
    environment: Environment,
}

impl<O: Oracle, F: Fn(&Environment) -> Result<O, String>> Session<O, F> {
    /// Makes the oracle.
    ///
    /// # Errors
    /// It cannot be had here, such as for want of a device: in a sentence.
    pub fn new(make: F, environment: Environment) -> Result<Self, String> {
        Ok(Self { oracle: make(&environment)?, make, environment })
    }

    /// One look at several cases; if there is a panic, at each by itself.
    fn look(&mut self, cases: &[O::Case], tally: &mut Tally) -> Vec<Outcome> {
        let before = tally.clone();
        match catch_unwind(AssertUnwindSafe(|| self.oracle.check_all(cases, tally))) {
            Ok(outcomes) => outcomes,
            Err(_) if cases.len() > 1 => {
                *tally = before;
                self.renew();
                cases.iter().flat_map(|case| self.look(std::slice::from_ref(case), tally)).collect()
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

    /// The oracle may have been left in the middle of something.
    fn renew(&mut self) {
        if let Ok(oracle) = (self.make)(&self.environment) {
            self.oracle = oracle;
        }
    }

    fn failure_of(&mut self, case: &O::Case) -> Option<Failure> {
        match self.look(std::slice::from_ref(case), &mut Tally::default()).pop()? {
            Outcome::Failed(failure) => Some(failure),
            Outcome::Held | Outcome::Invalid(_) | Outcome::Undecided(_) => None,
        }
    }

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

    fn run(&mut self, inputs: &[Vec<u8>], tally: &mut Tally) -> Vec<(usize, Finding)> {
        let start = Instant::now();
        let (mut places, mut cases) = (Vec::new(), Vec::new());
        for (place, input) in inputs.iter().enumerate() {
            match O::Case::draw(&mut Unstructured::new(input), &self.environment.config) {
                Ok(case) => {
                    places.push(place);
                    cases.push(case);
                }
                Err(error) => tally.outcome(&Outcome::Invalid(error.to_string())),
            }
        }
        let outcomes = self.look(&cases, tally);
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
        Ok(self.look(&[case], &mut Tally::default()).pop().unwrap_or(Outcome::Held))
    }
}

/// File and line of the last panic, once [`remember_panics`] was called.
static LAST_PANIC: Mutex<Option<(String, u32)>> = Mutex::new(None);

/// From now on panics of this process are said nowhere but in findings, which then name the file. For worker processes.
pub fn remember_panics() {
    std::panic::set_hook(Box::new(|info| {
        let place = info.location().map(|place| (short(place.file()), place.line()));
        *LAST_PANIC.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = place;
    }));
}

fn last_panic() -> Option<(String, u32)> {
    LAST_PANIC.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take()
}

/// The path from the crate on: `ir/src/expr.rs`, wherever it was built.
fn short(file: &str) -> String {
    let parts: Vec<&str> = file.split(['/', '\\']).collect();
    let src = parts.iter().rposition(|&part| part == "src").unwrap_or(parts.len().saturating_sub(1));
    parts[src.saturating_sub(1)..].join("/")
}
