//! Theorems: statements that are proved once for all values of their variables and instantiated without a solver.
//!
//! ```text
//! Euclid      0 < b   |-   a == a // b * b + a % b,  0 <= a % b,  a % b < b         for all integers a, b
//! instance    a := c + 3, b := 4                                                    needs the fact 0 < 4
//! ```

use super::{Context, Failure, Mode, Step};
use crate::solver::Solver;
use crate::term::{Prop, Term};
use std::sync::Arc;

/// A conclusion that follows from hypotheses for all values of the variables; made by
/// [`Context::generalize`], used by [`Context::apply`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Theorem(Arc<Inner>);

#[derive(Debug, PartialEq, Eq)]
struct Inner {
    /// The name in reports and certificates.
    name: String,
    /// The propositions that the conclusion follows from.
    hypotheses: Vec<Prop>,
    /// The proposition that follows.
    conclusion: Prop,
    /// The proof.
    steps: Vec<Step>,
}

impl Theorem {
    /// Private to the kernel: the conclusion must have been derived from the hypotheses.
    pub(super) fn new(name: &str, hypotheses: Vec<Prop>, conclusion: Prop, steps: Vec<Step>) -> Self {
        Self(Arc::new(Inner { name: name.to_owned(), hypotheses, conclusion, steps }))
    }

    /// The name in reports and certificates.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// The propositions that the conclusion follows from.
    pub fn hypotheses(&self) -> &[Prop] {
        &self.0.hypotheses
    }

    /// The proposition that follows.
    pub fn conclusion(&self) -> &Prop {
        &self.0.conclusion
    }

    /// The proof.
    pub fn steps(&self) -> &[Step] {
        &self.0.steps
    }
}

/// `0 < b` gives `a == a // b * b + a % b`, `0 <= a % b` and `a % b < b`.
///
/// Each caller proves it again; after the first time Z3's answer is in the memo.
///
/// # Errors
/// Z3 does not prove it on the solver's budget.
pub fn euclid(solver: &Solver) -> Result<Theorem, Failure> {
    let (a, b) = (Term::sym("a"), Term::sym("b"));
    let (quotient, rest) = (a.floor_div(&b), a.floor_mod(&b));
    let mut context = Context::new(solver);
    let positive = context.assume(b.more(0), "the divisor is positive");
    let goal = Prop::all([a.equals(quotient * &b + &rest), rest.at_least(0), rest.less(&b)]);
    let fact = context.derive(goal, &[&positive], Mode::Exact)?;
    context.generalize("Euclid", &fact)
}
