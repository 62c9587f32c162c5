//! Z3 behind budgets and a memo.
//!
//! A [`Solver`] may be shared by threads: each thread has a private Z3 context that never leaves it. The budget is Z3's own
//! resource count, which does not depend on the machine; wall clock and memory limits are safety nets. If a context that has
//! seen other goals gives an answer other than *proved*, the goal is asked again in a new context, so that models and
//! unknowns do not depend on earlier goals.
//!
//! ```
//! use tilewright_kernel::{encode::Encoding, solver::{Outcome, Solver}, term::Term};
//! let solver = Solver::new()?;
//! let x = Term::sym("x");
//! let answer = solver.check(&[x.at_least(0)], &x.floor_mod(8).at_most(&x), Encoding::Exact)?;
//! assert_eq!(answer.outcome, Outcome::Proved);
//! # Ok::<(), tilewright_kernel::solver::SolverError>(())
//! ```

mod memo;
pub mod text;
mod worker;

use crate::encode::{self, EncodeError, Encoding, Query};
use crate::reason::{Reason, ReasonKind};
use crate::smtlib;
use crate::term::{Assignment, Prop};
use memo::{Memo, Remembered};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use tilewright_ir::sabotage;

/// The version of the encoding. An answer is valid for the same text, the same encoder version and the same
/// [`z3_version`].
pub const ENCODER_VERSION: u32 = 1;

/// The oldest Z3 that is accepted.
pub const MINIMUM: Version = Version([5, 3, 0, 0]);

/// A version of Z3: major, minor, build and revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version(pub [u32; 4]);

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [major, minor, build, revision] = self.0;
        write!(f, "{major}.{minor}.{build}.{revision}")
    }
}

impl Version {
    /// Reads the leading dotted numbers of Z3's version string.
    fn parse(text: &str) -> Option<Self> {
        let mut numbers = text.split([' ', '-']).next()?.split('.').map(str::parse::<u32>);
        let mut version = [0; 4];
        for (position, slot) in version.iter_mut().enumerate() {
            match numbers.next() {
                Some(number) => *slot = number.ok()?,
                None if position >= 2 => break,
                None => return None,
            }
        }
        Some(Self(version))
    }
}

/// A failure of the solver itself, which leaves the judge without answers.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SolverError {
    /// The library that was loaded is too old.
    #[error("Z3 {found} is loaded but {MINIMUM} or newer is needed; run scripts/setup.sh")]
    TooOld {
        /// The version that was loaded.
        found: Version,
    },
    /// The library reports no version that can be read.
    #[error("Z3 reports the version `{0}`, which cannot be read")]
    NoVersion(String),
    /// The goal cannot be stated.
    #[error(transparent)]
    Encode(#[from] EncodeError),
    /// A query was built wrongly or Z3 answered something that it must not.
    #[error("internal error of the solver: {0}")]
    Internal(String),
}

/// The version of the Z3 that is loaded; an error if it is older than [`MINIMUM`].
///
/// # Errors
/// The version is too old or cannot be read.
pub fn z3_version() -> Result<Version, SolverError> {
    static VERSION: OnceLock<Result<Version, SolverError>> = OnceLock::new();
    let version = VERSION.get_or_init(|| accepted(z3_full_version()));
    version.clone()
}

/// The version in Z3's version string, if it is new enough.
fn accepted(text: &str) -> Result<Version, SolverError> {
    let found = Version::parse(text).ok_or_else(|| SolverError::NoVersion(text.to_owned()))?;
    if found < MINIMUM { Err(SolverError::TooOld { found }) } else { Ok(found) }
}

/// Z3's full version string, for reports.
pub fn z3_full_version() -> &'static str {
    z3::full_version()
}

/// The resources that a goal may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Z3's resource count: the budget proper.
    pub rlimit: u32,
    /// Milliseconds of wall clock: a safety net. [`u32::MAX`] is none.
    pub timeout_ms: u32,
    /// Megabytes for all solvers of the process together: a safety net. The first budget used sets it.
    pub memory_mb: u32,
    /// Z3's random seed.
    pub seed: u32,
}

impl Default for Budget {
    fn default() -> Self {
        Self { rlimit: 5_000_000, timeout_ms: 10_000, memory_mb: 4096, seed: 0 }
    }
}

/// The answer to a goal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It follows from the assumptions.
    Proved,
    /// Z3 has a model of the assumptions in which the goal is false. The model has not been evaluated; for
    /// [`Encoding::Abstract`] it is empty and means nothing.
    Refuted(Assignment),
    /// Undecided, for this reason.
    Unknown(Reason),
}

/// Where an answer came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Method {
    /// Z3 answered.
    Solver,
    /// The same canonical text was answered before.
    Memo,
}

/// An answer and where it came from.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The answer.
    pub outcome: Outcome,
    /// How it came about.
    pub method: Method,
    /// The time spent, encoding included.
    pub elapsed: Duration,
    /// The query that was answered.
    pub query: Arc<Query>,
}

/// Z3 with a budget and a memo of the goals answered; clones share the memo.
#[derive(Clone, Debug)]
pub struct Solver {
    /// The budget of each goal.
    budget: Budget,
    /// The goals answered so far.
    memo: Arc<Memo>,
    /// Whether the memo is asked.
    remembers: bool,
    /// When all questions together have to be answered.
    until: Option<Instant>,
    /// Nanoseconds that Z3 took, all threads together.
    spent: Arc<AtomicU64>,
}

impl Solver {
    /// A solver with the default budget and an empty memo.
    ///
    /// # Errors
    /// The Z3 that is loaded is too old.
    pub fn new() -> Result<Self, SolverError> {
        Self::with_budget(Budget::default())
    }

    /// A solver with this budget and an empty memo.
    ///
    /// # Errors
    /// The Z3 that is loaded is too old.
    pub fn with_budget(budget: Budget) -> Result<Self, SolverError> {
        z3_version()?;
        Ok(Self { budget, memo: Arc::new(Memo::default()), remembers: true, until: None, spent: Arc::default() })
    }

    /// The same solver, memo included, which answers no question after a point in time.
    #[must_use]
    pub fn until(&self, end: Instant) -> Self {
        Self { until: Some(end), ..self.clone() }
    }

    /// Milliseconds that are left until no question is answered any more.
    fn left_ms(&self) -> u32 {
        let left = self.until.map(|end| end.saturating_duration_since(Instant::now()));
        left.map_or(u32::MAX, |left| u32::try_from(left.as_millis()).unwrap_or(u32::MAX))
    }

    /// The same solver, memo included, with another budget.
    #[must_use]
    pub fn limited_to(&self, budget: Budget) -> Self {
        Self { budget, ..self.clone() }
    }

    /// Its budget.
    pub fn budget(&self) -> Budget {
        self.budget
    }

    /// The time that Z3 took for this solver and its clones, contexts included, all threads together.
    pub fn spent(&self) -> Duration {
        Duration::from_nanos(self.spent.load(Ordering::Relaxed))
    }

    /// The same solver without a memo: every goal is given to Z3.
    #[must_use]
    pub fn without_memo(self) -> Self {
        Self { remembers: false, ..self }
    }

    /// The answer in the memo, if there is one.
    fn recall(&self, text: &str) -> Option<Remembered> {
        if self.remembers { self.memo.recall(text, self.budget.rlimit) } else { None }
    }

    /// The number of goals in the memo.
    pub fn remembered(&self) -> usize {
        self.memo.len()
    }

    /// Whether `goal` follows from `assumptions`; if not, with a model.
    ///
    /// # Errors
    /// The goal cannot be encoded, or the solver fails. A goal that is not proved is no error.
    pub fn check(&self, assumptions: &[Prop], goal: &Prop, encoding: Encoding) -> Result<Answer, SolverError> {
        self.decide(assumptions, goal, encoding, matches!(encoding, Encoding::Exact | Encoding::Bits(_)))
    }

    /// Whether `goal` follows from `assumptions`; if not, the model is empty. A negative answer is cheaper than that of
    /// [`Solver::check`], since a model has to come from a new context.
    pub fn follows(&self, assumptions: &[Prop], goal: &Prop, encoding: Encoding) -> Result<Answer, SolverError> {
        self.decide(assumptions, goal, encoding, false)
    }

    /// Answers a goal from the memo or by Z3.
    fn decide(
        &self,
        assumptions: &[Prop],
        goal: &Prop,
        encoding: Encoding,
        model: bool,
    ) -> Result<Answer, SolverError> {
        let start = Instant::now();
        let query = Arc::new(encode::encode(assumptions, goal, encoding)?);
        let mut text = smtlib::canonical_text(&query);
        text.push_str(if model { "(get-model)\n" } else { "" });
        if sabotage::on("memo-omits-definitions") {
            text = text.lines().filter(|line| !line.starts_with("(define-fun")).collect();
        }
        let (remembered, method) = if let Some(remembered) = self.recall(&text) {
            (remembered, Method::Memo)
        } else {
            (self.fresh(&query, text, model)?, Method::Solver)
        };
        let outcome = outcome(&query, remembered);
        Ok(Answer { outcome, method, elapsed: start.elapsed(), query })
    }

    /// Asks Z3, and remembers its answer unless the end of the time for all questions cut it short.
    fn fresh(&self, query: &Query, text: String, model: bool) -> Result<Remembered, SolverError> {
        let left = self.left_ms();
        if left == 0 {
            return Ok(over());
        }
        let budget = Budget { timeout_ms: self.budget.timeout_ms.min(left), ..self.budget };
        let asked = Instant::now();
        let found = worker::solve(query, budget, model)?;
        let nanoseconds = u64::try_from(asked.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.spent.fetch_add(nanoseconds, Ordering::Relaxed);
        let is_cut = budget.timeout_ms < self.budget.timeout_ms;
        if is_cut && matches!(found, Remembered::Unknown(_)) {
            return Ok(over());
        }
        self.memo.store(text, found.clone(), self.budget.rlimit);
        Ok(found)
    }
}

/// The answer to what is asked when no time is left.
fn over() -> Remembered {
    Remembered::Unknown(Reason::new(ReasonKind::Timeout, "the time for all questions together is over"))
}

/// The outcome of a remembered answer, with the values of a model under the names of this query.
fn outcome(query: &Query, remembered: Remembered) -> Outcome {
    match remembered {
        Remembered::Unsat => Outcome::Proved,
        Remembered::Unknown(reason) => Outcome::Unknown(reason),
        Remembered::Sat(values) => {
            let mut model = Assignment::new();
            let mut values = values;
            if sabotage::on("model-values-shift") {
                values.reverse();
            }
            for (variable, value) in query.variables.iter().zip(values) {
                match (&variable.symbol, value) {
                    (Some(symbol), Some(value)) => model.set(symbol.clone(), value),
                    (Some(symbol), None) => {
                        let text = format!("the model's value of `{symbol}` does not fit 128 bits");
                        return Outcome::Unknown(Reason::unsupported(text));
                    }
                    (None, _) => {}
                }
            }
            Outcome::Refuted(model)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_and_the_old_one_is_refused() {
        assert_eq!(Version::parse("5.4.0.0"), Some(Version([5, 4, 0, 0])));
        assert_eq!(Version::parse("4.8.12 - 64 bit"), Some(Version([4, 8, 12, 0])));
        assert_eq!(Version::parse("Z3"), None);
        assert!(matches!(accepted("4.8.12.0"), Err(SolverError::TooOld { .. })));
        assert!(matches!(accepted("five"), Err(SolverError::NoVersion(_))));
        assert!(z3_version().is_ok());
    }
}
