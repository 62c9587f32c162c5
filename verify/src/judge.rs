//! The judge: decides obligations and reports how.
//!
//! Its methods `check_map`, `check_layout`, `check_program`, `check_pass` and so on take claims, which are not
//! believed, and return a [`Report`] for each obligation:
//!
//! ```text
//! claim  ->  obligations  ->  tiers or question  ->  verdict, method, time, place, proof (if recorded)
//! ```
//!
//! A verdict *proved* rests on the meaning of the language as this crate states it, on Z3, and on the kernel's few
//! rules. A counterexample is always evaluated before it is reported. A contradiction between two methods is reported
//! as an internal error and never resolved in favour of one.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tilewright_ir::{Expr, Span, Var, sabotage};
use tilewright_kernel::strategy::Search;

use crate::digits::Windows;
use crate::door::{self, All, Grounds};
use crate::enumerate::MAX_POINTS;
use crate::goal::Kind;
use crate::kernel::{Consistency, Context, Failure, Rule, Step};
use crate::lemmas::Lemmas;
use crate::map::Memory;
use crate::method::Method;
use crate::obligation::Obligation;
use crate::path::Path;
use crate::question::Question;
use crate::reason::{Reason, ReasonKind};
use crate::record::{self, Proof, Record};
use crate::solver::{Budget, Solver, SolverError};
use crate::translate::Names;
use crate::verdict::{Counterexample, Verdict};

/// The resources and options of a judge.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Threads on which obligations are decided; 0 means one for each core.
    pub threads: usize,
    /// Wall clock for one question to Z3: a safety net, because it depends on the machine. Keeping it costs about 50 us
    /// a question; [`Duration::MAX`] means no limit.
    pub timeout: Duration,
    /// Z3's resource count for one question: the budget proper.
    pub rlimit: u32,
    /// Z3's random seed: the same one gives the same answers, and no verdict may depend on it.
    pub seed: u32,
    /// Points of a constant shape that may be enumerated to prove an obligation. With 0, proofs are left to ranges,
    /// digits, linear algebra and Z3, so that tests can compare these with enumeration; counterexamples are still
    /// searched for among the points.
    pub most_points: u64,
    /// Steps of the parts in which two programs of constant shape are run on terms; shorter runs are made at once. No verdict may depend
    /// on it, except that a run may have too many terms at once.
    pub part_steps: u64,
    /// Whether a goal that was answered before is answered from memory. Without, every goal is given to Z3, so that
    /// tests can compare the answers.
    pub memo: bool,
}

/// A part of so many steps has about a quarter as many terms, which fit into the caches of a processor.
const PART_STEPS: u64 = 1 << 19;

impl Default for Config {
    fn default() -> Self {
        Self {
            threads: 0,
            timeout: Duration::from_secs(10),
            rlimit: Budget::default().rlimit,
            seed: 0,
            most_points: MAX_POINTS,
            part_steps: PART_STEPS,
            memo: true,
        }
    }
}

/// The decision of one obligation.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// The obligation.
    pub obligation: Obligation,
    /// The map, access, buffer or pass that it is about, as text.
    pub subject: String,
    /// The verdict.
    pub verdict: Verdict,
    /// The method by which it was decided.
    pub method: Method,
    /// The time that it took, in milliseconds.
    pub ms: f64,
    /// The place of the statement, or of the request for a layout, that the obligation is about; `None` if it is in no
    /// text.
    pub place: Option<Place>,
    /// The place of the statement of the other program that the one at `place` is compared with; `None` if there is none, or if there are
    /// several.
    pub counterpart: Option<Place>,
    /// The proof of the verdict; empty unless the judge records.
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

impl Side {
    /// The side of the other program.
    pub(crate) fn other(self) -> Self {
        match self {
            Self::Before => Self::After,
            Self::After => Self::Before,
        }
    }
}

impl Report {
    /// The report with the place that the obligation comes from.
    #[must_use]
    pub(crate) fn placed(self, side: Side, span: Option<Span>) -> Self {
        Self { place: span.map(|span| Place { side, span }), ..self }
    }

    /// The report with the place of the statement that is compared, in the program of the other side.
    #[must_use]
    pub(crate) fn compared_with(self, side: Side, span: Option<Span>) -> Self {
        Self { counterpart: span.map(|span| Place { side, span }), ..self }
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

/// Decides obligations. Clones share the solver's memo, so the same goal is given to Z3 once.
#[derive(Clone, Debug)]
pub struct Judge {
    /// The threads asked for, each with its own Z3 context; `None` means rayon's global pool, one thread for each core.
    threads: Option<Arc<rayon::ThreadPool>>,
    /// Z3 with the budget and the memo.
    pub(crate) solver: Solver,
    /// The lemmas, proved when they are first used.
    pub(crate) lemmas: Arc<Lemmas>,
    /// Makes the strategies that find proofs.
    search: Arc<dyn Search>,
    /// Present if proofs are kept for a certificate.
    record: Option<Record>,
    /// The theorems that certificates of digits rest on.
    pub(crate) windows: Windows,
    /// Guesses about maps.
    pub(crate) memory: Arc<Memory>,
    /// Points of a constant shape that may be enumerated to prove an obligation.
    pub(crate) most_points: u64,
    pub(crate) part_steps: u64,
    /// Whether goals are proved over bit-vectors.
    in_bits: bool,
    /// Whether what is open of the program after may follow from the program before.
    pub(crate) takes_over: bool,
    /// Whether the certificate of a constant map is checked before any of its points are tried.
    pub(crate) certificates_first: bool,
    /// When all that is asked has to be decided.
    pub(crate) until: Option<Instant>,
}

/// A verdict and how it was found.
pub(crate) type Decision = (Verdict, Method);

impl Judge {
    /// A judge with a budget, for which `search` finds the proofs. What it finds is checked.
    ///
    /// # Errors
    /// The Z3 that is loaded is too old.
    pub fn new(config: Config, search: Arc<dyn Search>) -> Result<Self, SolverError> {
        let timeout_ms = u32::try_from(config.timeout.as_millis()).unwrap_or(u32::MAX);
        let solver =
            Solver::with_budget(Budget { rlimit: config.rlimit, timeout_ms, seed: config.seed, ..Budget::default() })?;
        let solver = if config.memo { solver } else { solver.without_memo() };
        let (lemmas, windows) = (Arc::new(Lemmas::new(&solver)), Windows::of(&solver));
        // If the pool cannot be made, rayon's global one serves: the verdicts do not depend on it.
        let asked = (config.threads > 0).then(|| rayon::ThreadPoolBuilder::new().num_threads(config.threads).build());
        let threads = asked.and_then(Result::ok).map(Arc::new);
        Ok(Self {
            threads,
            solver,
            lemmas,
            search,
            record: None,
            windows,
            memory: Arc::new(if config.memo { Memory::default() } else { Memory::off() }),
            most_points: config.most_points,
            part_steps: config.part_steps,
            in_bits: false,
            takes_over: false,
            certificates_first: false,
            until: None,
        })
    }

    /// The judge with recording switched on: its reports carry their proofs from now on, for a certificate.
    #[must_use]
    pub fn recording(self) -> Self {
        Self { record: Some(Record::default()), ..self }
    }

    /// The judge for many claims: it checks the certificate of a constant map before it tries any points. That takes less time than
    /// trying more than a few hundred points, but starts Z3, which takes longer than trying all points of a small shape once.
    #[must_use]
    pub fn for_many_claims(self) -> Self {
        Self { certificates_first: true, ..self }
    }

    /// The judge for pairs of programs of which the first is given: what is open of the program after holds if it holds of the program
    /// before ([`Method::Before`]), which becomes a premise ([`crate::Premise::of_reports`]). Without, a pass has to be shown to keep
    /// accesses inside by itself.
    #[must_use]
    pub fn taking_over(&self) -> Self {
        Self { takes_over: true, ..self.clone() }
    }

    /// The judge with a limit on the time of all that it is asked: what is not decided at that point in time stays unknown.
    #[must_use]
    pub fn until(&self, end: Instant) -> Self {
        Self { until: Some(end), solver: self.solver.until(end), ..self.clone() }
    }

    /// Whether the time is over.
    pub fn is_over(&self) -> bool {
        self.until.is_some_and(|end| end <= Instant::now())
    }

    /// Whether reports carry their proofs.
    pub(crate) fn is_recording(&self) -> bool {
        self.record.is_some()
    }

    /// The time that Z3 took so far, summed over all threads.
    pub fn solver_time(&self) -> Duration {
        self.solver.spent()
    }

    /// Runs a closure on the judge's threads.
    pub(crate) fn in_parallel<T: Send>(&self, run: impl FnOnce() -> T + Send) -> T {
        match &self.threads {
            Some(pool) => pool.install(run),
            None => run(),
        }
    }

    /// A question about a program or a map with these extents.
    pub(crate) fn question(&self, names: &mut Names, extents: &[Var]) -> Question {
        let strategy = self.search.begin(Context::new(&self.solver), &self.lemmas);
        let mut question = Question::new(strategy, self.in_bits, self.record.clone());
        for extent in extents {
            question.declare(names, extent, Kind::Extent);
        }
        question
    }

    /// The judge with a smaller budget for each question to Z3. It shares the memo.
    pub(crate) fn limited(&self, rlimit: u32) -> Self {
        let budget = self.solver.budget();
        let solver = self.solver.limited_to(Budget { rlimit: budget.rlimit.min(rlimit), ..budget });
        Self { solver, ..self.clone() }
    }

    /// The judge whose goals are proved over bit-vectors. It shares the memo.
    pub(crate) fn in_bits(&self) -> Self {
        Self { in_bits: true, ..self.clone() }
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
            // The steps that were kept prove parts of an obligation that was not proved as a whole.
            proof.clear();
        }
        let ms = start.elapsed().as_secs_f64() * 1e3;
        Report { obligation, subject: subject.into(), verdict, method, ms, place: None, counterpart: None, proof }
    }
}

/// The worse of two decisions.
pub(crate) fn worse(a: Decision, b: Decision) -> Decision {
    match (a, b) {
        ((Verdict::Proved(one), how), (Verdict::Proved(two), other)) => {
            (Verdict::Proved(one.and(two)), if how.weight() < other.weight() { other } else { how })
        }
        (a, b) if b.0 > a.0 || (b.0 == a.0 && a.1.weight() < b.1.weight()) => b,
        (a, _) => a,
    }
}

/// The decision about a statement that is made of several: the first one that is not proved, or else all of them. What comes after
/// one that is not proved is not asked.
pub(crate) fn all_of(decisions: impl IntoIterator<Item = Decision>) -> Decision {
    let (mut grounds, mut method) = (All::default(), Method::SameText);
    for decision in decisions {
        match decision {
            (Verdict::Proved(found), how) => {
                grounds.add(found);
                method = if how.weight() > method.weight() { how } else { method };
            }
            open => return open,
        }
    }
    (grounds.proved(), method)
}

/// The verdict if the premises contradict each other, or if it is not known whether they do. `None` if they can hold.
pub(crate) fn vacuity(question: &Question) -> Option<Decision> {
    let verdict = match question.context().consistent() {
        Ok(Consistency::Satisfiable(_)) => return None,
        Ok(Consistency::Vacuous) if sabotage::on("vacuity-accepted") => return None,
        Ok(Consistency::Vacuous) => Verdict::Vacuous(Reason::new(ReasonKind::Empty, door::CONTRADICTION)),
        Ok(Consistency::Unknown(reason)) => Verdict::Unknown(reason.after(door::UNTRIED)),
        Err(failure) => Verdict::Unknown(failure.reason()),
    };
    Some((verdict, Method::Z3))
}

/// The method by which a question showed its goals since step `from`: the number of goals that Z3 proved, and of
/// instances of lemmas. If there was none since then, the goals are earlier facts and the method is that of all steps.
pub(crate) fn method_of(question: &Question, from: usize) -> Method {
    let steps = question.steps();
    match proof_of(&steps[from.min(steps.len())..]) {
        Method::Premises => proof_of(steps),
        proof => proof,
    }
}

/// The method of some steps.
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

/// The method of an attempt that proved nothing.
pub(crate) fn attempt_of(question: &Question) -> Method {
    let asked = question.steps().iter().any(|step| matches!(step.rule, Rule::Solver(..)));
    if asked { Method::Z3 } else { Method::Nothing }
}

/// The decision of a proof attempt. `of` names the part of the obligation in certificates. `replay` turns Z3's model
/// into a counterexample by evaluation; a model that it rejects is an internal error, not a refutation.
pub(crate) fn decide(
    of: &'static str,
    result: Result<Grounds, Failure>,
    question: &Question,
    from: usize,
    replay: impl FnOnce(&crate::term::Assignment) -> Option<Counterexample>,
) -> Decision {
    match result {
        Ok(grounds) => {
            question.keep_proof(of);
            (Verdict::Proved(grounds), method_of(question, from))
        }
        Err(Failure::NotShown(reason)) if reason.kind() == ReasonKind::Empty => {
            (Verdict::Vacuous(reason), attempt_of(question))
        }
        Err(Failure::Refuted(model)) => match replay(&model) {
            Some(found) => (Verdict::Refuted(found), Method::Model),
            None => (Verdict::Unknown(Reason::no_replay(format_args!("the counterexample {model}"))), Method::Z3),
        },
        Err(failure) => (Verdict::Unknown(failure.reason()), attempt_of(question)),
    }
}

/// The decision about a goal at the end of a path, if loads take part. Memory is an uninterpreted function in a goal,
/// so a model that does not replay is no contradiction if the path, or the goal itself (`reads`), depends on what was
/// loaded.
pub(crate) fn on_the_way(path: &Path, reads: bool, decision: Decision) -> Decision {
    match decision {
        (Verdict::Unknown(reason), method) if is_unreplayed(&reason) && (reads || path.asks_memory()) => {
            (Verdict::Unknown(Reason::new(ReasonKind::Memory, MEMORY_DECIDES)), method)
        }
        // Terms give every division a value, and take a conversion for its operand; evaluation does not.
        (Verdict::Unknown(reason), method) if is_unreplayed(&reason) && path.is_partial() => {
            let text = "whether it has to hold depends on a division, a shift or a conversion on the way that may have no value";
            (Verdict::Unknown(Reason::undecided(text)), method)
        }
        decision => decision,
    }
}

/// The decision of a comparison in which a side may have no value as an integer of its type. A model that does not
/// replay is no contradiction then: whether the side has a value is the obligation overflow.
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
        Verdict::Refuted(found) => {
            let values = found.shape.iter().chain(&found.assignments).cloned().collect();
            (Verdict::Unknown(Reason::new(ReasonKind::Differs, found.to_string()).seen_at(values)), method)
        }
        verdict => (verdict, method),
    }
}

/// The decision about a goal at the end of a path that nothing reaches: it holds, because no execution gets there, unless
/// what the caller has to guarantee is contradictory by itself. `None` if something may get there.
pub(crate) fn unreached(question: &Question) -> Option<Decision> {
    let decision = vacuity(question)?;
    Some(match (decision, question.is_possible()) {
        ((Verdict::Vacuous(_), method), Ok(Consistency::Satisfiable(_))) => {
            (door::unreached(), Method::NeverReached(Box::new(method)))
        }
        (decision, _) => decision,
    })
}

/// Whether a model was not confirmed by evaluation.
fn is_unreplayed(reason: &Reason) -> bool {
    matches!(reason.kind(), ReasonKind::NoReplay | ReasonKind::Unreplayed)
}

/// The reason why there is no counterexample on a path that depends on memory.
const MEMORY_DECIDES: &str = "it does not hold everywhere, and whether it has to depends on what is read on the way";

/// The decision about a form that the judge has no rule for: unknown.
pub(crate) fn unsupported(reason: impl Into<String>) -> Decision {
    (Verdict::Unknown(Reason::unsupported(reason)), Method::Structure)
}

/// The decision about a claim whose ranks or extents do not fit: unknown.
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
    use tilewright_ir::ScalarType;

    use super::*;
    use crate::term::Assignment;

    /// What becomes of a result that somebody invented.
    fn decided(result: Result<Grounds, Failure>) -> Verdict {
        let judge = Judge::new(Config::default(), tilewright_search::strategies()).unwrap();
        let question = judge.question(&mut Names::default(), &[]);
        decide("test", result, &question, 0, |_| None).0
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
        let is_internal = |(verdict, _): Decision| verdict.reason().is_some_and(Reason::is_internal);
        let kept = |path: &Path| is_internal(on_the_way(path, false, internal()));
        let (of_values, _) = on_the_way(&of_memory, false, internal());
        assert_eq!(of_values.reason().map(Reason::kind), Some(ReasonKind::Memory));
        assert!(kept(&asks(Expr::int(7))));
        // `int8(i) < 3` is evaluated with wrapping, and read as `i < 3`.
        let i = Expr::from(&tilewright_ir::Var::index("i"));
        let converted = |ty: ScalarType| Expr::Cast(ty.into(), i.clone().into());
        assert!(!kept(&asks(converted(ScalarType::Int8))));
        assert!(kept(&asks(converted(ScalarType::Int64))));
        // The variable of a loop that is too long, or a sum, has left its type before the conversion.
        assert!(!kept(&asks(converted(ScalarType::Int32))));
        let sum = Expr::Cast(ScalarType::Int64.into(), (i.clone() * Expr::int(2)).into());
        assert!(!kept(&asks(sum)));
        assert!(!is_internal(on_the_way(&Path::default(), true, internal())));
    }

    #[test]
    fn a_fault_of_the_solver_is_an_internal_error_and_no_shrug() {
        let fault = Err(Failure::Internal("a countermodel does not replay".into()));
        assert!(matches!(decided(fault), Verdict::Unknown(reason) if reason.kind() == ReasonKind::Internal));
        let shrug = Err(Failure::NotShown(Reason::new(ReasonKind::Timeout, "timeout")));
        assert!(matches!(decided(shrug), Verdict::Unknown(reason) if reason.kind() == ReasonKind::Timeout));
    }
}
