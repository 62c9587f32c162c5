//! The judge: what callers see.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tilewright_ir::{Expr, Span, Var};

use crate::enumerate::MAX_POINTS;
use crate::kernel::{Consistency, Context, Failure, Rule, Step};
use crate::lemmas::Lemmas;
use crate::method::Method;
use crate::obligation::Obligation;
use crate::path::Path;
use crate::prove::Prover;
use crate::reason::{Reason, ReasonKind};
use crate::record::{self, Proof, Record};
use crate::solver::{Budget, Solver, SolverError};
use crate::translate::Names;
use crate::verdict::{Counterexample, Verdict};

/// What the judge may spend.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Threads that obligations are proved on; 0 means one a core.
    pub threads: usize,
    /// Wall clock for one question to Z3: a safety net. It costs about 50 us a question; [`Duration::MAX`] is none.
    pub timeout: Duration,
    /// Z3's resource count for one question: the budget proper.
    pub rlimit: u32,
    /// Z3's random seed: the same one gives the same answers, and no verdict may depend on it.
    pub seed: u32,
    /// Points of a constant shape that may be tried to prove something. With 0 it is left to ranges, digits, linear algebra
    /// and Z3, so that these can be held against the points themselves; what they refute is still looked for among the points.
    pub most_points: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            threads: 0,
            timeout: Duration::from_secs(10),
            rlimit: Budget::default().rlimit,
            seed: 0,
            most_points: MAX_POINTS,
        }
    }
}

/// What became of one obligation.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// Which one.
    pub obligation: Obligation,
    /// What it is about.
    pub subject: String,
    /// The answer.
    pub verdict: Verdict,
    /// How it was decided.
    pub method: Method,
    /// The time it took, in milliseconds.
    pub ms: f64,
    /// The statement, or the request for a layout, that the obligation is about; `None` if no text has it.
    pub place: Option<Place>,
    /// What the verdict rests on; empty unless the judge records.
    pub proof: Proof,
}

/// The program that a place belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The program before a pass, or the only one.
    Before,
    /// The program after a pass.
    After,
}

/// A place in the source text of one of the programs compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The program. After a pass of the pipeline both programs have the same text.
    pub side: Side,
    /// The place in its text.
    pub span: Span,
}

impl Report {
    /// Says where the obligation comes from.
    #[must_use]
    pub(crate) fn placed(self, side: Side, span: Option<Span>) -> Self {
        Self { place: span.map(|span| Place { side, span }), ..self }
    }

    /// The same report, unless it refutes a guess: that is unknown.
    #[must_use]
    pub(crate) fn guessed_if(self, is_guess: bool) -> Self {
        let Verdict::Refuted(found) = &self.verdict else { return self };
        if !is_guess {
            return self;
        }
        let text = format!("the map was guessed from the shapes, and does not fit: {found}");
        Self { verdict: Verdict::Unknown(Reason::new(ReasonKind::Differs, text)), ..self }
    }

    /// Whether the judge itself is at fault: deciders disagree, or a counterexample does not replay.
    pub fn is_internal(&self) -> bool {
        self.verdict.reason().is_some_and(Reason::is_internal)
    }
}

/// Decides obligations. It remembers what it has proved, so asking twice costs nothing.
#[derive(Clone, Debug)]
pub struct Judge {
    /// The threads asked for, each with its Z3 context; none means rayon's own, one a core.
    threads: Option<Arc<rayon::ThreadPool>>,
    pub(crate) solver: Solver,
    pub(crate) lemmas: Arc<Lemmas>,
    record: Option<Record>,
    /// Points of a constant shape that may be tried to prove something.
    pub(crate) most_points: u64,
}

/// An answer and how it was found.
pub(crate) type Decision = (Verdict, Method);

impl Judge {
    /// A judge with a budget.
    ///
    /// # Errors
    /// The Z3 that is loaded is too old.
    pub fn new(config: Config) -> Result<Self, SolverError> {
        let timeout_ms = u32::try_from(config.timeout.as_millis()).unwrap_or(u32::MAX);
        let solver =
            Solver::with_budget(Budget { rlimit: config.rlimit, timeout_ms, seed: config.seed, ..Budget::default() })?;
        let lemmas = Arc::new(Lemmas::new(&solver));
        // Where threads cannot be had, rayon's own do.
        let asked = (config.threads > 0).then(|| rayon::ThreadPoolBuilder::new().num_threads(config.threads).build());
        let threads = asked.and_then(Result::ok).map(Arc::new);
        Ok(Self { threads, solver, lemmas, record: None, most_points: config.most_points })
    }

    /// The same judge, whose reports carry what they rest on from now on, for a certificate.
    #[must_use]
    pub fn recording(self) -> Self {
        Self { record: Some(Record::default()), ..self }
    }

    /// Whether reports carry what they rest on.
    pub(crate) fn is_recording(&self) -> bool {
        self.record.is_some()
    }

    /// The time that Z3 took so far, all threads together.
    pub fn solver_time(&self) -> Duration {
        self.solver.spent()
    }

    /// Runs on the threads asked for.
    pub(crate) fn in_parallel<T: Send>(&self, run: impl FnOnce() -> T + Send) -> T {
        match &self.threads {
            Some(pool) => pool.install(run),
            None => run(),
        }
    }

    /// A prover that knows that symbolic extents are at least 1.
    pub(crate) fn prover(&self, names: &mut Names, symbols: &[Var]) -> Prover<'_> {
        let mut prover = Prover::recorded(Context::new(&self.solver), &self.lemmas, self.record.clone());
        for symbol in symbols {
            prover.assume(&names.var(symbol).at_least(1), "an extent is positive");
        }
        prover
    }

    /// Keeps the steps of a proof for the certificate, if one is wanted.
    pub(crate) fn keep(&self, of: &'static str, steps: &[Step]) {
        if let Some(record) = &self.record {
            record.keep(of, steps);
        }
    }

    /// Runs one decision and times it.
    pub(crate) fn report(
        obligation: Obligation,
        subject: impl Into<String>,
        decide: impl FnOnce() -> Decision,
    ) -> Report {
        let start = Instant::now();
        let ((verdict, method), mut proof) = record::during(decide);
        if !verdict.is_proved() {
            // What was kept belongs to parts that hold; the whole does not.
            proof.clear();
        }
        let ms = start.elapsed().as_secs_f64() * 1e3;
        Report { obligation, subject: subject.into(), verdict, method, ms, place: None, proof }
    }
}

/// The verdict if the premises cannot hold, or nobody knows whether they can.
pub(crate) fn vacuity(prover: &Prover<'_>) -> Option<Decision> {
    let verdict = match prover.context().consistent() {
        Ok(Consistency::Satisfiable(_)) => return None,
        Ok(Consistency::Vacuous) => {
            let text = "nothing is ever executed or indexed here: the premises contradict each other";
            Verdict::Vacuous(Reason::new(ReasonKind::Empty, text))
        }
        Ok(Consistency::Unknown(reason)) => Verdict::Unknown(reason.after("whether the premises can hold: ")),
        Err(failure) => Verdict::Unknown(failure.reason()),
    };
    Some((verdict, Method::Z3))
}

/// How the goals of a prover since its step `from` were shown: how many Z3 showed, and how many instances of lemmas there
/// are. Goals that are facts which were shown before count with those.
pub(crate) fn method_of(prover: &Prover<'_>, from: usize) -> Method {
    let steps = prover.context().steps();
    match proof_of(&steps[from.min(steps.len())..]) {
        Method::Premises => proof_of(steps),
        proof => proof,
    }
}

fn proof_of(steps: &[Step]) -> Method {
    let (mut goals, mut lemmas) = (0, 0);
    for step in steps.iter().filter(|step| step.shown) {
        match &step.rule {
            Rule::Solver(..) => goals += 1,
            Rule::Theorem(..) => lemmas += 1,
            Rule::Premise(_) | Rule::Given | Rule::Discharge(_) => {}
        }
    }
    Method::proof(goals, lemmas)
}

/// How a prover tried what it did not show.
pub(crate) fn attempt_of(prover: &Prover<'_>) -> Method {
    let asked = prover.context().steps().iter().any(|step| matches!(step.rule, Rule::Solver(..)));
    if asked { Method::Z3 } else { Method::Nothing }
}

/// The decision that a proof attempt (of what kind, `of` says) amounts to; `replay` turns Z3's model into a counterexample by evaluation.
pub(crate) fn decide(
    of: &'static str,
    result: Result<(), Failure>,
    prover: &Prover<'_>,
    from: usize,
    replay: impl FnOnce(&crate::term::Assignment) -> Option<Counterexample>,
) -> Decision {
    match result {
        Ok(()) => {
            prover.keep_proof(of);
            (Verdict::Proved, method_of(prover, from))
        }
        Err(Failure::Refuted(model)) => match replay(&model) {
            Some(found) => (Verdict::Refuted(found), Method::Model),
            None => (Verdict::Unknown(Reason::no_replay(format_args!("the counterexample {model}"))), Method::Z3),
        },
        Err(failure) => (Verdict::Unknown(failure.reason()), attempt_of(prover)),
    }
}

/// A decision about the end of a way. Where something that is read decides who gets there, a model that does not replay is
/// no contradiction: nobody knows what memory holds.
/// So it is where the goal itself reads.
pub(crate) fn on_the_way(path: &Path, reads: bool, decision: Decision) -> Decision {
    match decision {
        (Verdict::Unknown(reason), method) if is_unreplayed(&reason) && (reads || path.asks_memory()) => {
            (Verdict::Unknown(Reason::new(ReasonKind::Memory, MEMORY_DECIDES)), method)
        }
        decision => decision,
    }
}

/// The same where one of the sides compared has no value as an integer of its type: what it is there is another question, the
/// obligation overflow.
pub(crate) fn without_value(decision: Decision) -> Decision {
    match decision {
        (Verdict::Unknown(reason), method) if is_unreplayed(&reason) => {
            let text = "a side has no value as an integer of its type where the other has";
            (Verdict::Unknown(Reason::undecided(text)), method)
        }
        decision => decision,
    }
}

/// A decision about parts of two programs that correspond by their structure: parts that differ refute nothing, since equal
/// programs may be built otherwise. An execution of both does.
pub(crate) fn suspected((verdict, method): Decision) -> Decision {
    match verdict {
        Verdict::Refuted(found) => (Verdict::Unknown(Reason::new(ReasonKind::Differs, found.to_string())), method),
        verdict => (verdict, method),
    }
}

/// Whether a model was not confirmed by evaluation.
fn is_unreplayed(reason: &Reason) -> bool {
    matches!(reason.kind(), ReasonKind::NoReplay | ReasonKind::Unreplayed)
}

/// Why there is no counterexample where a way depends on memory.
const MEMORY_DECIDES: &str = "it does not hold everywhere, and whether it has to depends on what is read on the way";

/// What has a form that the judge has no rule for: nothing was decided.
pub(crate) fn unsupported(reason: impl Into<String>) -> Decision {
    (Verdict::Unknown(Reason::unsupported(reason)), Method::Structure)
}

/// A claim whose ranks or extents do not fit: nothing was decided.
pub(crate) fn unfit(reason: impl Into<String>) -> Decision {
    (Verdict::Unknown(Reason::unsupported(reason)), Method::Shape)
}

/// The variables of `exprs` that are not among `bound`: symbolic extents.
pub(crate) fn free_vars<'e>(exprs: impl IntoIterator<Item = &'e Expr>, bound: &[Var]) -> Vec<Var> {
    let mut free = Vec::new();
    for var in exprs.into_iter().flat_map(Expr::vars) {
        if !bound.contains(&var) && !free.contains(&var) {
            free.push(var);
        }
    }
    free
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::term::Assignment;

    /// What becomes of a result that somebody invented.
    fn decided(result: Result<(), Failure>) -> Verdict {
        let judge = Judge::new(Config::default()).unwrap();
        let prover = judge.prover(&mut Names::default(), &[]);
        decide("test", result, &prover, 0, |_| None).0
    }

    #[test]
    fn a_counterexample_that_does_not_replay_is_an_internal_error() {
        let invented = Err(Failure::Refuted(Assignment::new().with("i", 3)));
        assert!(matches!(decided(invented), Verdict::Unknown(reason) if reason.kind() == ReasonKind::NoReplay));
    }

    #[test]
    fn a_counterexample_beyond_a_condition_on_memory_is_no_contradiction() {
        let internal = || (Verdict::Unknown(Reason::no_replay("the counterexample i = 3")), Method::Z3);
        let table = tilewright_ir::Buffer::compact("t", tilewright_ir::DataType::INT32, vec![Expr::int(3)]);
        let asks = |value: Expr| Path {
            steps: vec![crate::path::Step::Guard(value.lt(Expr::int(3)), true)].into(),
            ..Path::default()
        };
        let of_memory = asks(Expr::load(&table, vec![Expr::int(0)]));
        let reason = |path| on_the_way(path, false, internal()).0.to_string();
        assert!(!reason(&of_memory).contains("internal") && reason(&of_memory).contains("what is read"));
        assert!(reason(&asks(Expr::int(7))).contains("internal"));
        assert!(!on_the_way(&Path::default(), true, internal()).0.to_string().contains("internal"));
    }

    #[test]
    fn a_fault_of_the_solver_is_an_internal_error_and_no_shrug() {
        let fault = Err(Failure::Internal("a countermodel does not replay".into()));
        assert!(matches!(decided(fault), Verdict::Unknown(reason) if reason.kind() == ReasonKind::Internal));
        let shrug = Err(Failure::NotShown(Reason::new(ReasonKind::Timeout, "timeout")));
        assert!(matches!(decided(shrug), Verdict::Unknown(reason) if reason.kind() == ReasonKind::Timeout));
    }
}
