//! The one door to *proved*.
//!
//! [`Verdict::Proved`] carries its [`Grounds`], and nothing outside this file can make grounds: the fields are private. There
//! are four kinds, and a function for each. Everything else in the judge states goals, or combines grounds it was given.
//!
//! | ground | function | what was checked |
//! |---|---|---|
//! | fact | `follows` | a fact of the kernel states the goal, and rests on the premises of the goal alone |
//! | points | `everywhere` | a statement was evaluated at all points of a finite domain |
//! | certificate | `certified` | a checker accepted a certificate, and Z3 confirmed what it relies on |
//! | inspection | `inspected` | a comparison of texts, or a finite structure that was looked through |
//!
//! From premises that contradict each other everything follows. Before a fact counts, values must have been found for which
//! all that the caller has to guarantee holds together.

use std::cmp::Ordering;

use crate::goal::Goal;
use crate::kernel::{Consistency, Context, Fact, Failure};
use crate::reason::{Reason, ReasonKind};
use crate::verdict::Verdict;

/// What a proof rests on: how many of each kind of ground. Only this file makes one.
///
/// Grounds are all equal in comparisons, because no way to show a statement makes its verdict worse.
#[derive(Clone, Copy, Debug)]
pub struct Grounds {
    facts: u64,
    points: u64,
    certificates: u64,
    inspections: u64,
}

impl Grounds {
    /// No ground at all: private, as it shows nothing.
    const NONE: Self = Self { facts: 0, points: 0, certificates: 0, inspections: 0 };

    /// The number of goals that facts of the kernel state.
    pub fn facts(&self) -> u64 {
        self.facts
    }

    /// The number of points at which statements were evaluated.
    pub fn points(&self) -> u64 {
        self.points
    }

    /// The number of certificates that were checked.
    pub fn certificates(&self) -> u64 {
        self.certificates
    }

    /// The number of texts or finite structures that were looked through.
    pub fn inspections(&self) -> u64 {
        self.inspections
    }

    /// The grounds of a conjunction of two statements.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            facts: self.facts.saturating_add(other.facts),
            points: self.points.saturating_add(other.points),
            certificates: self.certificates.saturating_add(other.certificates),
            inspections: self.inspections.saturating_add(other.inspections),
        }
    }
}

impl PartialEq for Grounds {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Grounds {}

impl PartialOrd for Grounds {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Grounds {
    fn cmp(&self, _: &Self) -> Ordering {
        Ordering::Equal
    }
}

/// The grounds of a goal that a fact states. `possible` is the answer to whether the caller's premises can hold together.
///
/// # Errors
/// The fact states something else, is no fact of the context, or the context has other premises than the goal: whoever
/// searched for the proof is wrong. Or the caller's premises are not known to hold together.
pub(crate) fn follows(
    goal: &Goal<'_>,
    context: &Context,
    fact: &Fact,
    possible: Result<Consistency, Failure>,
) -> Result<Grounds, Failure> {
    let fault = |what: &str| Failure::Internal(format!("{what}: {}", goal.conclusion));
    if !context.holds(fact) {
        return Err(fault("a fact of another context was offered"));
    }
    if fact.prop() != goal.conclusion {
        return Err(fault("a fact that states something else was offered"));
    }
    let premises = context.premises();
    let is_stated = premises.len() == goal.premises.len()
        && premises.iter().zip(goal.premises).all(|(assumed, stated)| assumed.prop == stated.prop);
    if !is_stated {
        return Err(fault("a proof from other premises was offered"));
    }
    match possible? {
        Consistency::Satisfiable(_) => Ok(Grounds { facts: 1, ..Grounds::NONE }),
        Consistency::Vacuous => Err(Failure::NotShown(Reason::new(ReasonKind::Empty, CONTRADICTION))),
        Consistency::Unknown(reason) => Err(Failure::NotShown(reason.after(UNTRIED))),
    }
}

/// The reason of a verdict that is vacuous.
pub(crate) const CONTRADICTION: &str = "nothing is ever executed or indexed here: the premises contradict each other";

/// What an unknown reason is about if it is not known whether the premises contradict each other.
pub(crate) const UNTRIED: &str = "whether the premises can hold: ";

/// Proved, because a statement was evaluated at this number of points, which are all there are.
pub(crate) fn everywhere(points: u64) -> Verdict {
    Verdict::Proved(Grounds { points, ..Grounds::NONE })
}

/// Proved, because a checker accepted a certificate.
pub(crate) fn certified() -> Verdict {
    Verdict::Proved(Grounds { certificates: 1, ..Grounds::NONE })
}

/// Proved, because nothing gets to the place of the goal: Z3 has shown that the premises on the way contradict each other.
pub(crate) fn unreached() -> Verdict {
    Verdict::Proved(Grounds { facts: 1, ..Grounds::NONE })
}

/// Proved, because texts are the same, or a finite structure was looked through.
pub(crate) fn inspected() -> Verdict {
    Verdict::Proved(Grounds { inspections: 1, ..Grounds::NONE })
}

/// The grounds of a conjunction, collected part by part.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct All(Option<Grounds>);

impl All {
    /// Adds the grounds of a part.
    pub(crate) fn add(&mut self, part: Grounds) {
        self.0 = Some(self.0.map_or(part, |known| known.and(part)));
    }

    /// The grounds of all parts. A conjunction without parts is one that was looked through and found empty.
    pub(crate) fn grounds(self) -> Grounds {
        self.0.unwrap_or(Grounds { inspections: 1, ..Grounds::NONE })
    }

    /// Proved, because all parts are.
    pub(crate) fn proved(self) -> Verdict {
        Verdict::Proved(self.grounds())
    }
}
