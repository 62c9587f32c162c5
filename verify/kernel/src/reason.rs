//! The reasons why an obligation is neither proved nor refuted: a kind for decisions, and a text for people.
//!
//! ```text
//! Timeout      "timeout of 10000 ms"                  a larger limit may help
//! Unsupported  "3 extents for 2 outputs"              the claim has to be changed
//! Internal     "internal: z3 proves what ..."         the judge is wrong: exit code 70
//! ```

use std::fmt;

/// The kind of a reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ReasonKind {
    /// The wall clock allowed for one question to the solver is over.
    Timeout,
    /// The resources allowed are spent: the solver's count, its memory, or the number of points that may be tried.
    Budget,
    /// The claim, the program or the layout has a form that the judge has no rule for, or that does not fit.
    Unsupported,
    /// Values in memory decide whether it has to hold.
    Memory,
    /// Nothing is ever executed or indexed: the premises contradict each other.
    Empty,
    /// The obligation was not asked.
    NotAsked,
    /// Parts of two programs differ. That is no execution: the programs may still mean the same.
    Differs,
    /// No method gave an answer, for a reason that is none of the other kinds.
    Undecided,
    /// A model of the premises is not confirmed by evaluation, where the encoding is known to be approximate.
    Unreplayed,
    /// A counterexample is not confirmed by evaluation: the judge is at fault, unless the goal is about values that are not
    /// known.
    NoReplay,
    /// The judge itself is at fault: two methods contradict each other, or the solver answered what it must not.
    Internal,
}

/// The reason why an obligation is skipped, vacuous or unknown. Reasons are ordered by their texts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reason {
    /// The text, printed after the word `because`.
    text: String,
    /// The kind.
    kind: ReasonKind,
    /// Values of variables at which it was seen; they show nothing by themselves.
    seen_at: Vec<(String, i128)>,
}

impl Reason {
    /// A reason of a kind. `text` is printed after the word `because`.
    pub fn new(kind: ReasonKind, text: impl Into<String>) -> Self {
        Self { text: text.into(), kind, seen_at: Vec::new() }
    }

    /// A reason of kind [`ReasonKind::Undecided`].
    pub fn undecided(text: impl Into<String>) -> Self {
        Self::new(ReasonKind::Undecided, text)
    }

    /// A reason of kind [`ReasonKind::Unsupported`].
    pub fn unsupported(text: impl Into<String>) -> Self {
        Self::new(ReasonKind::Unsupported, text)
    }

    /// A reason of kind [`ReasonKind::Internal`]; the text begins with `internal: `.
    pub fn internal(fault: impl fmt::Display) -> Self {
        Self::new(ReasonKind::Internal, format!("internal: {fault}"))
    }

    /// A reason of kind [`ReasonKind::NoReplay`]: `found`, such as a counterexample, is not confirmed by evaluation.
    /// The text begins with `internal: `.
    pub fn no_replay(found: impl fmt::Display) -> Self {
        Self::new(ReasonKind::NoReplay, format!("internal: {found} does not replay"))
    }

    /// The reason with more text before its own.
    #[must_use]
    pub fn after(self, text: &str) -> Self {
        Self { text: format!("{text}{}", self.text), ..self }
    }

    /// The reason with values of variables at which it was seen.
    #[must_use]
    pub fn seen_at(self, values: Vec<(String, i128)>) -> Self {
        Self { seen_at: values, ..self }
    }

    /// Values of variables at which it was seen, by name; empty if there are none. They may be worth a try, and show nothing.
    pub fn values(&self) -> &[(String, i128)] {
        &self.seen_at
    }

    /// The kind.
    pub fn kind(&self) -> ReasonKind {
        self.kind
    }

    /// The text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether the judge itself is at fault.
    pub fn is_internal(&self) -> bool {
        matches!(self.kind, ReasonKind::Internal | ReasonKind::NoReplay)
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_of_the_judge_are_found_by_kind_and_not_by_text() {
        assert!(Reason::internal("two methods disagree").is_internal());
        assert!(Reason::no_replay("the counterexample i = 3").is_internal());
        assert_eq!(Reason::no_replay("it").text(), "internal: it does not replay");
        let quoted = Reason::undecided("internal: so says a buffer's name, which does not replay");
        assert!(!quoted.is_internal());
        assert!(!Reason::new(ReasonKind::Unreplayed, "a model of the premises does not replay").is_internal());
    }

    #[test]
    fn more_text_keeps_the_kind() {
        let reason = Reason::new(ReasonKind::Timeout, "timeout of 200 ms").after("not shown: ");
        assert_eq!((reason.kind(), reason.text()), (ReasonKind::Timeout, "not shown: timeout of 200 ms"));
    }
}
