//! What verdicts rest on, kept for a certificate.
//!
//! A judge that records ([`crate::Judge::recording`]) hands out provers that keep their steps. They go to the obligation
//! that the thread is deciding: each [`crate::Report`] carries its own [`Proof`], whatever the order in which threads come
//! to an end. What is kept while no obligation is being decided has no report to go to, and is dropped.

use std::cell::RefCell;
use std::sync::Arc;

use crate::judge::Decision;
use crate::kernel::{Rule, Step};
use crate::term::Prop;
use crate::verdict::Verdict;

/// What solvers have to answer to a goal's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// The facts and the negation of the goal contradict each other: the goal follows.
    Unsat,
    /// They do not: the counterexample stands among the facts.
    Sat,
}

impl Expected {
    /// SMT-LIB's word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Unsat => "unsat",
            Self::Sat => "sat",
        }
    }
}

/// A part of what a verdict rests on.
#[derive(Clone, Debug, PartialEq)]
pub enum Part {
    /// Steps of the kernel: what they show was shown by Z3 or is an instance of a lemma that was.
    Steps {
        /// Which part of the obligation they show, such as `map right inverse`.
        of: &'static str,
        /// The steps, those that were inherited from a fork first.
        steps: Arc<Vec<Step>>,
    },
    /// The obligation itself as one goal, of which no solver was asked: it was decided in another way.
    Statement {
        /// What is taken for granted; of a counterexample, its values as well.
        using: Vec<Prop>,
        /// What has to follow.
        goal: Prop,
        /// What a solver has to answer.
        expected: Expected,
    },
}

/// What a verdict rests on, as far as it can be given to a solver; empty unless the judge records.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Proof {
    parts: Vec<Part>,
}

impl Proof {
    /// The parts, in the order in which they were found.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// Whether a solver was asked about all of it, and there is something.
    pub fn is_confirmed(&self) -> bool {
        !self.parts.is_empty() && self.parts.iter().all(|part| matches!(part, Part::Steps { .. }))
    }

    /// Forgets the parts: they belong to attempts that decided nothing.
    pub(crate) fn clear(&mut self) {
        self.parts.clear();
    }

    pub(crate) fn push(&mut self, part: Part) {
        if !self.parts.contains(&part) {
            self.parts.push(part);
        }
    }
}

/// The steps that a prover inherited from those that it was forked from.
#[derive(Clone, Debug, Default)]
pub(crate) struct Record {
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
        // A goal that is `true` as it is written takes no step, and no solver was asked about it.
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
    /// The obligations that this thread is deciding: a thread that waits for others may begin another one meanwhile.
    static FRAMES: RefCell<Vec<Proof>> = const { RefCell::new(Vec::new()) };
}

/// Runs a way to decide an obligation: what it keeps counts only if it proves the whole.
pub(crate) fn attempt(decide: impl FnOnce() -> Option<Decision>) -> Option<Decision> {
    let (decided, proof) = during(decide);
    if matches!(decided, Some((Verdict::Proved, _))) {
        FRAMES.with_borrow_mut(|frames| {
            if let Some(frame) = frames.last_mut() {
                proof.parts.into_iter().for_each(|part| frame.push(part));
            }
        });
    }
    decided
}

/// Whether anything was kept so far of the obligation that this thread is deciding.
pub(crate) fn has_proof() -> bool {
    FRAMES.with_borrow(|frames| frames.last().is_some_and(|proof| !proof.parts.is_empty()))
}

/// Runs the decision of an obligation; what was kept meanwhile is its proof.
pub(crate) fn during<T>(decide: impl FnOnce() -> T) -> (T, Proof) {
    FRAMES.with_borrow_mut(|frames| frames.push(Proof::default()));
    let decided = decide();
    (decided, FRAMES.with_borrow_mut(Vec::pop).unwrap_or_default())
}
