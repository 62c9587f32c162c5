//! Lemmas of index arithmetic, each proved by Z3 once for all values and instantiated afterwards.
//!
//! A flattened index is a Horner chain `((i0 * n1 + i1) * n2 + i2) ...` of digits `0 <= i < n`. With symbolic extents it is
//! non-linear, and Z3 does not terminate on it in practice. Digit by digit, however, each step is an instance of a lemma
//! over five variables that Z3 proves in a millisecond. Nothing here is trusted: all facts come from the
//! [kernel](crate::facts).
//!
//! ```
//! use tilewright_kernel::{facts::Context, lemmas::{Lemma, Lemmas}, solver::Solver, term::Term};
//! let solver = Solver::new()?;
//! let lemmas = Lemmas::new(&solver);
//! let mut context = Context::new(&solver);
//! let (x, b) = (Term::sym("x"), Term::sym("b"));
//! let positive = context.assume(b.at_least(1), "extents are positive");
//! let parts = lemmas.apply(&mut context, Lemma::Euclid, &[("a", &x), ("b", &b)], &[&positive])?;
//! assert_eq!(parts.prop().to_string(), "x == x // b * b + x % b and 0 <= x % b and x % b < b");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! An instance costs no more than its hypotheses, which are looked up among the facts, or derived from them if they are not
//! there; the lemma itself is not proved again.

mod chain;
mod statements;

use crate::facts::{Context, Fact, Failure, Mode, Theorem};
use crate::reason::Reason;
use crate::solver::{Budget, Solver};
use crate::term::{Prop, Substitution, Term};
use std::sync::OnceLock;

pub use chain::{Chain, Digit};
pub use statements::Lemma;

/// The lemmas, each proved when it is first needed; may be shared by threads.
#[derive(Debug)]
pub struct Lemmas {
    /// The solver that proves them.
    solver: Solver,
    /// The theorem of each lemma, or why it was not proved.
    proved: [OnceLock<Result<Theorem, Failure>>; Lemma::ALL.len()],
}

impl Lemmas {
    /// The lemmas, none of them proved yet.
    pub fn new(solver: &Solver) -> Self {
        Self { solver: solver.clone(), proved: [const { OnceLock::new() }; Lemma::ALL.len()] }
    }

    /// The theorem of a lemma, proved at the first use.
    ///
    /// # Errors
    /// Z3 does not prove the lemma on the solver's budget.
    pub fn theorem(&self, lemma: Lemma) -> Result<Theorem, Failure> {
        self.proved[lemma as usize].get_or_init(|| self.once_a_process(lemma)).clone()
    }

    /// The theorem of a lemma, proved once per process: a closed statement that Z3 proved for one judge holds for all. A
    /// judge with less than the default budget proves its own, so that its verdicts do not depend on earlier ones; so does
    /// a build with injectable faults.
    fn once_a_process(&self, lemma: Lemma) -> Result<Theorem, Failure> {
        static PROVED: [OnceLock<Theorem>; Lemma::ALL.len()] = [const { OnceLock::new() }; Lemma::ALL.len()];
        let known = &PROVED[lemma as usize];
        let is_usual = self.solver.budget().rlimit >= Budget::default().rlimit;
        if !is_usual || tilewright_ir::sabotage::AVAILABLE {
            return lemma.prove(self, &self.solver);
        }
        if let Some(theorem) = known.get() {
            return Ok(theorem.clone());
        }
        let theorem = lemma.prove(self, &self.solver)?;
        Ok(known.get_or_init(|| theorem).clone())
    }

    /// The lemma with `values` for its variables. Hypotheses that are not among the facts used are derived from them first.
    ///
    /// # Errors
    /// A hypothesis does not follow from the facts used, or the lemma is not proved.
    pub fn apply(
        &self,
        context: &mut Context,
        lemma: Lemma,
        values: &[(&str, &Term)],
        using: &[&Fact],
    ) -> Result<Fact, Failure> {
        let theorem = self.theorem(lemma)?;
        let values = Substitution::new(values.iter().copied());
        let mut hypotheses = Vec::new();
        for hypothesis in theorem.hypotheses() {
            hypotheses.push(establish(context, &values.prop(hypothesis), using)?);
        }
        let hypotheses: Vec<&Fact> = hypotheses.iter().collect();
        context.apply(&theorem, &values, &hypotheses)
    }

    /// From `q * d + r == p * d + s` with `0 <= r < d` and `0 <= s < d`: `q == p` and `r == s`.
    pub fn horner_injective(
        &self,
        context: &mut Context,
        [q, r]: [&Term; 2],
        [p, s]: [&Term; 2],
        d: &Term,
        using: &[&Fact],
    ) -> Result<[Fact; 2], Failure> {
        let values = [("q", q), ("r", r), ("p", p), ("s", s), ("d", d)];
        let both = self.apply(context, Lemma::HornerInjective, &values, using)?;
        let high = context.derive(q.equals(p), &[&both], Mode::Abstract)?;
        let low = context.derive(r.equals(s), &[&both], Mode::Abstract)?;
        Ok([high, low])
    }

    /// From `0 <= q < n` and `0 <= r < d`: `0 <= q * d + r < n * d`.
    pub fn horner_bounds(
        &self,
        context: &mut Context,
        [q, n]: [&Term; 2],
        [r, d]: [&Term; 2],
        using: &[&Fact],
    ) -> Result<Fact, Failure> {
        self.apply(context, Lemma::HornerBounds, &[("q", q), ("n", n), ("r", r), ("d", d)], using)
    }

    /// From `0 <= a` and `x <= y`: `a * x <= a * y`.
    pub fn monotone(
        &self,
        context: &mut Context,
        a: &Term,
        [x, y]: [&Term; 2],
        using: &[&Fact],
    ) -> Result<Fact, Failure> {
        self.apply(context, Lemma::Monotone, &[("a", a), ("x", x), ("y", y)], using)
    }
}

/// Derives `goal` from those facts of `using` that contain no other symbols, or else from all of them.
///
/// The order saves time: Z3 is slow with facts that have nothing to do with the goal.
///
/// # Errors
/// The goal does not follow without the meaning of products and divisions.
pub fn establish(context: &mut Context, goal: &Prop, using: &[&Fact]) -> Result<Fact, Failure> {
    let symbols = goal.free_symbols();
    let near: Vec<&Fact> =
        using.iter().copied().filter(|fact| fact.prop().free_symbols().is_subset(&symbols)).collect();
    let first = context.derive(goal.clone(), &near, Mode::Abstract);
    if first.is_ok() || near.len() == using.len() {
        return first;
    }
    context.derive(goal.clone(), using, Mode::Abstract)
}

/// Derives `lhs == rhs` if both are the same polynomial over their atoms; fails without asking a solver if they are not.
///
/// # Errors
/// The sides differ as polynomials, or Z3 does not confirm that they are equal.
pub fn poly_identity(context: &mut Context, lhs: &Term, rhs: &Term) -> Result<Fact, Failure> {
    if !crate::poly::probably_equal(lhs, rhs) {
        return Err(Failure::NotShown(Reason::undecided(format!("{lhs} and {rhs} differ as polynomials"))));
    }
    context.derive(lhs.equals(rhs), &[], Mode::Abstract)
}
