//! The proof kernel: the only place where facts come into being.
//!
//! A [`Fact`] is a proposition that follows from the premises of a [`Context`]. Its constructor is private, and every
//! operation that returns one is sound by itself: a premise is assumed and listed; a goal is derived if Z3 shows that it
//! follows from facts; a [`Theorem`] is instantiated if its hypotheses are facts. Everything that searches for proofs
//! (strategies, the choice of lemmas, the evidence of passes) is therefore untrusted: at worst it finds no proof.
//!
//! What a fact rests on: this file, the encoding of goals (`encode`), Z3, and the premises, which are listed with their
//! reasons. The idea is that of LCF (Milner 1972).
//!
//! The channel digit of `NCHW4c` is in range and, with its block, determines the channel:
//!
//! ```
//! use tilewright_kernel::facts::{Consistency, Context, Mode};
//! use tilewright_kernel::solver::Solver;
//! use tilewright_kernel::term::Term;
//!
//! let mut context = Context::new(&Solver::new()?);
//! let (c, d) = (Term::sym("c"), Term::sym("d"));
//! let low = context.assume(c.at_least(0), "the index is not negative");
//! let same_block = context.assume(c.floor_div(4).equals(d.floor_div(4)), "one block");
//! let same_lane = context.assume(c.floor_mod(4).equals(d.floor_mod(4)), "one lane");
//!
//! let lane = context.derive(c.floor_mod(4).less(4), &[&low], Mode::Exact)?;
//! let same = context.derive(c.equals(&d), &[&same_block, &same_lane], Mode::Exact)?;
//! assert_eq!(same.prop().to_string(), "c == d");
//!
//! // Without the lane it does not follow, and the kernel says where.
//! let mut other = Context::new(&Solver::new()?);
//! let same_block = other.assume(c.floor_div(4).equals(d.floor_div(4)), "one block");
//! assert!(other.derive(c.equals(&d), &[&same_block], Mode::Exact).is_err());
//! assert!(other.derive(c.equals(&d), &[&lane], Mode::Exact).is_err(), "a fact of another context");
//!
//! // The premises can hold, so the proof is not vacuous.
//! assert!(matches!(context.consistent()?, Consistency::Satisfiable(_)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod replay;
mod theorem;

use crate::encode::{Encoding, bits};
use crate::reason::{Reason, ReasonKind};
use crate::solver::{Answer, Budget, Method, Outcome, Solver, SolverError};
use crate::term::{Assignment, Prop, Substitution, Term};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tilewright_ir::sabotage;

pub use theorem::Theorem;
pub use theorem::euclid;

/// A proposition that follows from the premises of its context.
#[derive(Clone, Debug)]
pub struct Fact {
    prop: Prop,
    /// The id of the context in which it was established.
    owner: u64,
    /// How many premises its context had when it was established.
    premises: usize,
}

impl Fact {
    /// The proposition that is established.
    pub fn prop(&self) -> &Prop {
        &self.prop
    }
}

/// How much effort a derivation may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Divisions and bit operations are opaque (equal operands give equal values). Cheap; never refutes.
    Abstract,
    /// [`Mode::Abstract`] first, then with their meaning, on a tenth of the budget; never refutes. For strategies that
    /// have something else to try.
    Search,
    /// [`Mode::Abstract`] first, then with their meaning. Refutes where a model replays.
    Exact,
}

/// Why a goal did not become a fact.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// Neither shown nor refuted.
    #[error("not shown: {0}")]
    NotShown(Reason),
    /// Refuted: under this assignment the premises and the facts used hold and the goal does not, by evaluation.
    #[error("refuted at {0}")]
    Refuted(Assignment),
    /// A fact of another context was offered.
    #[error("a fact of another context was used: {0}")]
    Foreign(Prop),
    /// The solver or the encoding is wrong; nothing can be trusted.
    #[error("internal: {0}")]
    Internal(String),
}

impl From<SolverError> for Failure {
    fn from(error: SolverError) -> Self {
        match error {
            SolverError::Encode(error) => Self::NotShown(Reason::unsupported(error.to_string())),
            SolverError::TooOld { .. } | SolverError::NoVersion(_) | SolverError::Internal(_) => {
                Self::Internal(error.to_string())
            }
        }
    }
}

impl Failure {
    /// The failure as a reason for reports.
    pub fn reason(&self) -> Reason {
        let kind = match self {
            Self::NotShown(reason) => reason.kind(),
            Self::Refuted(_) | Self::Foreign(_) => ReasonKind::Undecided,
            Self::Internal(_) => ReasonKind::Internal,
        };
        Reason::new(kind, self.to_string())
    }
}

/// Whether the premises of a context can hold together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Consistency {
    /// They can: they hold under this assignment.
    Satisfiable(Assignment),
    /// They contradict each other: every proof of the context is vacuous.
    Vacuous,
    /// Undecided, for this reason.
    Unknown(Reason),
}

/// The rule that a proof step applies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Assumed, for this reason.
    Premise(String),
    /// The goal is among the facts used, or is `true`.
    Given,
    /// Z3 was asked, or the memo of its answers.
    Solver(Encoding, Method),
    /// An instance of this theorem, with these values for its variables.
    Theorem(Theorem, Substitution),
    /// The premises of a fork were discharged; its steps.
    Discharge(Vec<Step>),
}

/// A step of a proof: a goal, the facts it was derived from, and the result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The goal.
    pub goal: Prop,
    /// The facts that it was to be derived from.
    pub using: Vec<Prop>,
    /// The rule.
    pub rule: Rule,
    /// Whether the goal was derived.
    pub shown: bool,
    /// The time it took.
    pub elapsed: Duration,
}

/// A premise and why it may be assumed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Premise {
    /// The proposition that is assumed.
    pub prop: Prop,
    /// The reason why it may be assumed, such as `an extent is positive`.
    pub reason: String,
}

/// A set of premises, and a proof under construction from them.
#[derive(Debug)]
pub struct Context {
    /// An id that no other context of the process has.
    id: u64,
    /// The contexts this one was forked from, and how many of their premises it has.
    ancestors: Vec<(u64, usize)>,
    /// How many of the premises are the ancestors'.
    inherited: usize,
    /// All premises, inherited ones first.
    premises: Vec<Premise>,
    /// The proof so far.
    steps: Vec<Step>,
    /// Z3 with a budget and a memo.
    solver: Solver,
}

impl Context {
    /// A context without premises.
    pub fn new(solver: &Solver) -> Self {
        Self {
            id: next_id(),
            ancestors: Vec::new(),
            inherited: 0,
            premises: Vec::new(),
            steps: Vec::new(),
            solver: solver.clone(),
        }
    }

    /// A context with the same premises, to which more can be added. Facts of this context hold there. A fork may move to
    /// another thread.
    #[must_use]
    pub fn fork(&self) -> Self {
        let mut ancestors = self.ancestors.clone();
        ancestors.push((self.id, self.premises.len()));
        Self {
            id: next_id(),
            ancestors,
            inherited: self.premises.len(),
            premises: self.premises.clone(),
            steps: Vec::new(),
            solver: self.solver.clone(),
        }
    }

    /// The premises, inherited ones first.
    pub fn premises(&self) -> &[Premise] {
        &self.premises
    }

    /// The steps made so far, failed ones included.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// The time spent on all steps.
    pub fn elapsed(&self) -> Duration {
        self.steps.iter().map(|step| step.elapsed).sum()
    }

    /// Assumes a premise; `reason` says why that is justified, such as the domain of a map.
    pub fn assume(&mut self, prop: Prop, reason: &str) -> Fact {
        self.premises.push(Premise { prop: prop.clone(), reason: reason.to_owned() });
        self.record(&prop, &[], Rule::Premise(reason.to_owned()), true, Duration::ZERO);
        self.fact(prop)
    }

    /// Derives `goal` from the facts `using`: by lookup, then with the encodings that `mode` allows, the cheapest first.
    ///
    /// # Errors
    /// The goal does not follow, a fact belongs to another context, or the solver fails.
    pub fn derive(&mut self, goal: Prop, using: &[&Fact], mode: Mode) -> Result<Fact, Failure> {
        self.own(using)?;
        if contains(using, &goal) {
            self.record(&goal, using, Rule::Given, true, Duration::ZERO);
            return Ok(self.fact(goal));
        }
        let facts: Vec<Prop> = using.iter().map(|fact| fact.prop.clone()).collect();
        let full = self.solver.budget();
        // The cheaper encodings get a tenth of the budget: most goals need no more, and the rest is kept for the exact
        // one.
        let first = match mode {
            Mode::Abstract => full,
            Mode::Search | Mode::Exact => Budget { rlimit: full.rlimit / 10, ..full },
        };
        if self.ask(&facts, &goal, Encoding::Opaque, first)? == Outcome::Proved {
            return Ok(self.fact(goal));
        }
        match (self.ask(&facts, &goal, Encoding::Abstract, first)?, mode) {
            (Outcome::Proved, _) => return Ok(self.fact(goal)),
            (Outcome::Unknown(reason), Mode::Abstract) => return Err(Failure::NotShown(reason)),
            (Outcome::Refuted(_), Mode::Abstract) => {
                return Err(not_shown(format!("{goal} does not follow without the meaning of its parts")));
            }
            // A model of an abstract goal means nothing, because operators had no meaning in it.
            (Outcome::Refuted(_) | Outcome::Unknown(_), Mode::Search | Mode::Exact) => {}
        }
        let budget = if mode == Mode::Search { first } else { full };
        match (self.follows(&facts, &goal, budget)?, mode) {
            (Outcome::Proved, _) => Ok(self.fact(goal)),
            (Outcome::Unknown(reason), _) => Err(Failure::NotShown(reason)),
            (Outcome::Refuted(_), Mode::Exact) => self.refute(facts, goal),
            (Outcome::Refuted(_), Mode::Search | Mode::Abstract) => {
                Err(not_shown(format!("{goal} does not follow from the facts tried")))
            }
        }
    }

    /// Derives `goal` from the facts `using` over bit-vectors of the smallest width at which nothing can wrap.
    ///
    /// # Errors
    /// As [`Context::derive`]; also if a variable of the goal has no bounds among the facts.
    pub fn derive_in_bits(&mut self, goal: &Prop, using: &[&Fact]) -> Result<Fact, Failure> {
        self.own(using)?;
        let facts: Vec<Prop> = using.iter().map(|fact| fact.prop.clone()).collect();
        let Some(width) = bits::width(&facts, goal) else {
            return Err(Failure::NotShown(Reason::unsupported(format!("{goal} cannot be stated over bit-vectors"))));
        };
        match self.ask(&facts, goal, Encoding::Bits(width), self.solver.budget())? {
            Outcome::Proved => Ok(self.fact(goal.clone())),
            Outcome::Unknown(reason) => Err(Failure::NotShown(reason)),
            Outcome::Refuted(model) => Err(replay::counterexample(&facts, goal, model)),
        }
    }

    /// Asks again with all premises, after the facts used did not suffice: the goal follows after all, or it is refuted.
    fn refute(&mut self, mut facts: Vec<Prop>, goal: Prop) -> Result<Fact, Failure> {
        facts.extend(self.premises.iter().map(|premise| premise.prop.clone()));
        let mut unique = std::collections::HashSet::new();
        facts.retain(|fact| unique.insert(fact.clone()));
        match self.ask(&facts, &goal, Encoding::Exact, self.solver.budget())? {
            Outcome::Proved => Ok(self.fact(goal)),
            Outcome::Unknown(reason) => Err(Failure::NotShown(reason)),
            Outcome::Refuted(model) => Err(replay::counterexample(&facts, &goal, model)),
        }
    }

    /// Asks whether a goal follows from facts and records the step.
    fn ask(&mut self, facts: &[Prop], goal: &Prop, encoding: Encoding, budget: Budget) -> Result<Outcome, Failure> {
        let answer = self.solver.limited_to(budget).check(facts, goal, encoding)?;
        Ok(self.answered(facts, goal, encoding, answer))
    }

    /// Asks with the exact meaning of all operators, without asking for a model.
    fn follows(&mut self, facts: &[Prop], goal: &Prop, budget: Budget) -> Result<Outcome, Failure> {
        let answer = self.solver.limited_to(budget).follows(facts, goal, Encoding::Exact)?;
        Ok(self.answered(facts, goal, Encoding::Exact, answer))
    }

    /// Records an answer of the solver as a step.
    fn answered(&mut self, facts: &[Prop], goal: &Prop, encoding: Encoding, answer: Answer) -> Outcome {
        self.steps.push(Step {
            goal: goal.clone(),
            using: facts.to_vec(),
            rule: Rule::Solver(encoding, answer.method),
            shown: answer.outcome == Outcome::Proved,
            elapsed: answer.elapsed,
        });
        answer.outcome
    }

    /// The Euclidean facts of a division: `a == a // b * b + a % b`, `0 <= a % b` and `a % b < b`.
    ///
    /// `positive` has to be the fact `0 < b`, or one from which it follows; for a positive constant `b` none is needed.
    ///
    /// # Errors
    /// The divisor is not shown to be positive.
    pub fn define_div(&mut self, a: &Term, b: &Term, positive: Option<&Fact>) -> Result<Fact, Failure> {
        let theorem = euclid(&self.solver)?;
        let using: Vec<&Fact> = positive.into_iter().collect();
        let positive = self.derive(b.more(0), &using, Mode::Abstract)?;
        let values = Substitution::new([("a", a), ("b", b)]);
        self.apply(&theorem, &values, &[&positive])
    }

    /// The conclusion of `theorem` with `values` for its variables, if each of its hypotheses is among the facts used.
    ///
    /// # Errors
    /// An instantiated hypothesis is not a conjunct of the facts used, or a fact belongs to another context.
    pub fn apply(&mut self, theorem: &Theorem, values: &Substitution, using: &[&Fact]) -> Result<Fact, Failure> {
        let start = Instant::now();
        self.own(using)?;
        for hypothesis in theorem.hypotheses() {
            let needed = values.prop(hypothesis);
            if !contains(using, &needed) && !sabotage::on("lemma-without-hypotheses") {
                return Err(not_shown(format!("{} needs {needed}", theorem.name())));
            }
        }
        let conclusion = values.prop(theorem.conclusion());
        self.record(&conclusion, using, Rule::Theorem(theorem.clone(), values.clone()), true, start.elapsed());
        Ok(self.fact(conclusion))
    }

    /// The parts of a conjunction, each as a fact.
    ///
    /// # Errors
    /// The fact belongs to another context.
    pub fn split(&self, fact: &Fact) -> Result<Vec<Fact>, Failure> {
        self.own(&[fact])?;
        Ok(fact.prop.conjuncts().into_iter().map(|part| self.fact(part)).collect())
    }

    /// The conjunction of facts.
    ///
    /// # Errors
    /// A fact belongs to another context.
    pub fn join(&mut self, facts: &[&Fact]) -> Result<Fact, Failure> {
        self.own(facts)?;
        Ok(self.fact(Prop::all(facts.iter().map(|fact| fact.prop.clone()))))
    }

    /// A fact of a fork of this context as a fact of this one: under the premises that the fork added.
    ///
    /// # Errors
    /// `fork` was not forked from this context, or the fact is not one of it.
    pub fn discharge(&mut self, fork: Self, fact: &Fact) -> Result<Fact, Failure> {
        fork.own(&[fact])?;
        if fork.ancestors.last().map(|(id, _)| *id) != Some(self.id) {
            return Err(Failure::Foreign(fact.prop.clone()));
        }
        let added = fork.premises.into_iter().skip(fork.inherited).map(|premise| premise.prop);
        let added = Prop::all(added);
        let goal = if sabotage::on("discharge-drops-premises") { fact.prop.clone() } else { added.implies(&fact.prop) };
        let elapsed = fork.steps.iter().map(|step| step.elapsed).sum();
        self.record(&goal, &[], Rule::Discharge(fork.steps), true, elapsed);
        Ok(self.fact(goal))
    }

    /// Turns a fact into a theorem: the premises become hypotheses and every variable is general.
    ///
    /// # Errors
    /// The fact belongs to another context.
    pub fn generalize(self, name: &str, fact: &Fact) -> Result<Theorem, Failure> {
        self.own(&[fact])?;
        let hypotheses = self.premises.into_iter().flat_map(|premise| premise.prop.conjuncts()).collect();
        Ok(Theorem::new(name, hypotheses, fact.prop.clone(), self.steps))
    }

    /// Whether the premises can hold together: a few small points are tried, then Z3 is asked.
    ///
    /// # Errors
    /// Z3 gives a model of the premises that evaluation refutes although nothing was approximated: an internal error.
    pub fn consistent(&self) -> Result<Consistency, Failure> {
        let premises: Vec<Prop> = self.premises.iter().map(|premise| premise.prop.clone()).collect();
        self.can_hold(&premises)
    }

    /// Whether some propositions can hold together: a few small points are tried, then Z3 is asked.
    ///
    /// # Errors
    /// As [`Context::consistent`].
    pub fn can_hold(&self, premises: &[Prop]) -> Result<Consistency, Failure> {
        if let Some(point) = replay::small_witness(premises) {
            return Ok(Consistency::Satisfiable(point));
        }
        let answer = self.solver.check(premises, &Prop::bool(false), Encoding::Exact)?;
        match answer.outcome {
            Outcome::Proved => Ok(Consistency::Vacuous),
            Outcome::Unknown(reason) => Ok(Consistency::Unknown(reason)),
            Outcome::Refuted(model) => replay::witness(premises, model, answer.query.approximate),
        }
    }

    /// A fact of this context: private, since this is the only constructor.
    fn fact(&self, prop: Prop) -> Fact {
        Fact { prop, owner: self.id, premises: self.premises.len() }
    }

    /// Whether a fact is this context's, or an ancestor's from before the fork.
    pub fn holds(&self, fact: &Fact) -> bool {
        fact.owner == self.id
            || self.ancestors.iter().any(|(id, premises)| *id == fact.owner && fact.premises <= *premises)
    }

    /// Checks that every fact holds in this context.
    fn own(&self, facts: &[&Fact]) -> Result<(), Failure> {
        match facts.iter().find(|fact| !self.holds(fact)) {
            Some(fact) => Err(Failure::Foreign(fact.prop.clone())),
            None => Ok(()),
        }
    }

    /// Appends a step to the proof.
    fn record(&mut self, goal: &Prop, using: &[&Fact], rule: Rule, shown: bool, elapsed: Duration) {
        let using = using.iter().map(|fact| fact.prop.clone()).collect();
        self.steps.push(Step { goal: goal.clone(), using, rule, shown, elapsed });
    }
}

/// A goal that no rule shows.
fn not_shown(text: String) -> Failure {
    Failure::NotShown(Reason::undecided(text))
}

/// Whether each conjunct of `goal` is a conjunct of one of the facts.
fn contains(facts: &[&Fact], goal: &Prop) -> bool {
    let known = |part: &Prop| facts.iter().any(|fact| fact.prop == *part || fact.prop.conjuncts().contains(part));
    goal.conjuncts().iter().all(known)
}

/// An id that no other context of the process has.
fn next_id() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}
