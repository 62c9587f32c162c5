//! Proofs of verdicts, recorded for a certificate.
//!
//! A judge that records ([`crate::Judge::recording`]) creates questions that keep their steps. The steps belong to the
//! obligation that the thread is deciding, so each [`crate::Report`] carries its own [`Proof`], whatever the order in which
//! threads finish. Steps that are kept while no obligation is being decided are dropped.

use std::cell::RefCell;
use std::sync::Arc;

use crate::judge::Decision;
use crate::kernel::{Rule, Step};
use crate::term::Prop;
use crate::verdict::Verdict;

/// The answer that solvers must give to the file of a goal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// The facts and the negation of the goal contradict each other: the goal follows.
    Unsat,
    /// They do not: the facts contain the values of a counterexample.
    Sat,
}

impl Expected {
    /// The answer in SMT-LIB.
    pub fn word(self) -> &'static str {
        match self {
            Self::Unsat => "unsat",
            Self::Sat => "sat",
        }
    }
}

/// A part of a proof.
#[derive(Clone, Debug, PartialEq)]
pub enum Part {
    /// Steps of the kernel, each proved by Z3 or an instance of a lemma that was.
    Steps {
        /// The part of the obligation that they prove, such as `map right inverse`.
        of: &'static str,
        /// The steps, those that were inherited from a fork first.
        steps: Arc<Vec<Step>>,
    },
    /// The obligation itself as a goal that no solver was asked about, because it was decided in another way.
    Statement {
        /// The premises; for a counterexample also its values.
        using: Vec<Prop>,
        /// The proposition that follows from them.
        goal: Prop,
        /// The answer that a solver must give.
        expected: Expected,
    },
}

/// The proof of a verdict, as far as it can be given to a solver; empty unless the judge records.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Proof {
    /// The parts, no two equal.
    parts: Vec<Part>,
}

impl Proof {
    /// The parts, in the order in which they were found.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// Whether a solver was asked: every part consists of steps of the kernel, and Z3 showed one of them or the lemma
    /// that it is an instance of. A proof from the premises alone is not confirmed.
    pub fn is_confirmed(&self) -> bool {
        let steps = |part: &Part| match part {
            Part::Steps { steps, .. } => Some(steps.iter().any(is_inference)),
            Part::Statement { .. } => None,
        };
        let parts: Option<Vec<bool>> = self.parts.iter().map(steps).collect();
        parts.is_some_and(|inferred| inferred.contains(&true))
    }

    /// Removes all parts, which belong to attempts that decided nothing.
    pub(crate) fn clear(&mut self) {
        self.parts.clear();
    }

    /// Adds a part, unless an equal one is there.
    pub(crate) fn push(&mut self, part: Part) {
        if !self.parts.contains(&part) {
            self.parts.push(part);
        }
    }
}

/// Whether the solver showed the step, or the theorem that it is an instance of.
fn is_inference(step: &Step) -> bool {
    match &step.rule {
        Rule::Solver(..) | Rule::Theorem(..) => true,
        Rule::Premise(_) | Rule::Given => false,
        Rule::Discharge(steps) => steps.iter().any(is_inference),
    }
}

/// The steps that a question inherited from those that it was forked from.
#[derive(Clone, Debug, Default)]
pub(crate) struct Record {
    /// Steps of the questions that this one was forked from, outermost first.
    inherited: Vec<Step>,
}

impl Record {
    /// The record of a fork made after `steps`.
    pub(crate) fn after(&self, steps: &[Step]) -> Self {
        Self { inherited: self.inherited.iter().chain(steps).filter(|step| step.shown).cloned().collect() }
    }

    /// Keeps the inherited steps and `steps` for the obligation that this thread is deciding.
    pub(crate) fn keep(&self, of: &'static str, steps: &[Step]) {
        let steps = Arc::new(self.after(steps).inherited);
        // If all steps are premises, no solver was asked: the goal folded to `true`.
        if steps.iter().all(|step| matches!(step.rule, Rule::Premise(_))) {
            return;
        }
        FRAMES.with_borrow_mut(|frames| {
            if let Some(frame) = frames.last_mut() {
                frame.push(Part::Steps { of, steps });
            }
        });
    }
}

thread_local! {
    /// The obligations that this thread is deciding: a thread of the pool that waits for others may start another one.
    static FRAMES: RefCell<Vec<Proof>> = const { RefCell::new(Vec::new()) };
}

/// Runs a procedure that tries to decide an obligation. The steps that it keeps count only if it proves the obligation.
pub(crate) fn attempt(decide: impl FnOnce() -> Option<Decision>) -> Option<Decision> {
    let (decided, proof) = during(decide);
    if matches!(decided, Some((Verdict::Proved(_), _))) {
        FRAMES.with_borrow_mut(|frames| {
            if let Some(frame) = frames.last_mut() {
                proof.parts.into_iter().for_each(|part| frame.push(part));
            }
        });
    }
    decided
}

/// Whether steps have been kept for the obligation that this thread is deciding.
pub(crate) fn has_proof() -> bool {
    FRAMES.with_borrow(|frames| frames.last().is_some_and(|proof| !proof.parts.is_empty()))
}

/// Runs the decision of an obligation and returns the result with the steps that it kept.
pub(crate) fn during<T>(decide: impl FnOnce() -> T) -> (T, Proof) {
    FRAMES.with_borrow_mut(|frames| frames.push(Proof::default()));
    let decided = decide();
    (decided, FRAMES.with_borrow_mut(Vec::pop).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::encode::Encoding;
    use crate::solver::Method;

    fn step(rule: Rule) -> Step {
        Step { goal: Prop::bool(true), using: Vec::new(), rule, shown: true, elapsed: Duration::ZERO }
    }

    fn proof(rules: Vec<Rule>) -> Proof {
        let steps = Arc::new(rules.into_iter().map(step).collect());
        Proof { parts: vec![Part::Steps { of: "test", steps }] }
    }

    #[test]
    fn a_proof_is_confirmed_only_if_the_solver_showed_a_step_of_it() {
        let asked = || Rule::Solver(Encoding::Exact, Method::Solver);
        let premise = || Rule::Premise("the domain".into());
        assert!(!Proof::default().is_confirmed());
        assert!(!proof(vec![premise(), Rule::Given]).is_confirmed());
        assert!(proof(vec![premise(), asked()]).is_confirmed());
        assert!(proof(vec![Rule::Discharge(vec![step(asked())])]).is_confirmed());
        let mut stated = proof(vec![asked()]);
        stated.push(Part::Statement { using: Vec::new(), goal: Prop::bool(true), expected: Expected::Unsat });
        assert!(!stated.is_confirmed());
    }
}
