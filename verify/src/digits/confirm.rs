//! The instances that the checker relied on, as goals for Z3.
//!
//! Lemmas are theorems, proved once per process. A window is linear in the products of weight and digit, whose bounds follow
//! from Monotone. It is stated with variables for these products and their bounds, so there is one theorem for each pattern
//! of signs, and a map only instantiates it: the sums of the bounds are numbers that are compared here, or polynomials. A
//! polynomial is not negative if it is a sum of products of numbers that are not negative, the amounts by which its symbols
//! exceed their least values; sums and products of such numbers are one lemma. If a multiple of a polynomial is such a sum,
//! another lemma leads back to the polynomial.
//!
//! ```text
//! window                        0 <= t0 <= u0, o >= 0, o + u0 < b     implies  0 <= o + t0 < b
//! instance of a constant map    t0 = 4 * d1, u0 = 4 * 4, o = 0, b = 20, and 0 + 16 < 20 is evaluated
//! non-negative polynomial       (s0 + 1) * (s1 + 1) - 1 is s0 + s1 + s0 * s1
//! ```
//!
//! This is the only step that a verdict of this tier believes besides the rules in `eval`: if Z3 does not prove an
//! instance, the tier decides nothing and the next one is asked.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use tilewright_ir::sabotage;

use super::atoms::NonNegative;
use super::{Checked, Instance};
use crate::encode::Encoding;
use crate::judge::Judge;
use crate::kernel::{Rule, Step};
use crate::lemmas::Lemma;
use crate::obligation::Obligation;
use crate::solver::{Budget, Outcome, Solver};
use crate::term::{Prop, Term};

/// What confirms some instances.
#[derive(Debug)]
pub(super) struct Confirmation {
    /// The steps of the proofs, if the judge records them.
    pub(super) steps: Vec<Step>,
    /// Whether Z3 was needed.
    pub(super) by_solver: bool,
}

/// The proofs of the instances of all obligations; `None` if one is not proved.
pub(super) fn all_instances(judge: &Judge, checked: &Checked) -> Option<Confirmation> {
    answers(judge, checked, &checked.instances().collect::<Vec<_>>())
}

/// The proofs of the instances that one obligation rests on; `None` if one is not proved.
pub(super) fn own_instances(judge: &Judge, checked: &Checked, obligation: Obligation) -> Option<Confirmation> {
    let own: Vec<&Instance> = checked.base.iter().chain(checked.own_instances(obligation).ok()?).collect();
    answers(judge, checked, &own)
}

/// The proofs of some instances; `None` if one is not proved.
fn answers(judge: &Judge, checked: &Checked, instances: &[&Instance]) -> Option<Confirmation> {
    let mut questions = Questions::new(judge, checked);
    questions.ask(judge, instances)?;
    Some(questions.confirmation)
}

/// What windows have in common that are instances of one theorem: which weights are negative, and whether there is an upper
/// bound.
type Pattern = (Vec<bool>, bool);

/// The theorems about windows that were proved so far, shared by the clones of a judge.
#[derive(Clone, Debug, Default)]
pub(crate) struct Windows(Arc<Mutex<HashMap<Pattern, Step>>>);

impl Windows {
    /// The theorems for a judge with this solver: those of the process, because a closed statement that Z3 proved for one judge
    /// holds for all. As with lemmas, a judge with less than the default budget proves its own, so that its verdicts do
    /// not depend on earlier ones; so does a build with injectable faults.
    pub(crate) fn of(solver: &Solver) -> Self {
        static PROVED: LazyLock<Windows> = LazyLock::new(Windows::default);
        let is_usual = solver.budget().rlimit >= Budget::default().rlimit;
        if is_usual && !sabotage::AVAILABLE { PROVED.clone() } else { Self::default() }
    }

    /// Passes the step that proves the theorem of a pattern to `look`; `None` if the theorem was not proved yet.
    fn with<T>(&self, pattern: &Pattern, look: impl FnOnce(&Step) -> T) -> Option<T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(pattern).map(look)
    }

    /// Keeps the proof of a theorem.
    fn put(&self, pattern: Pattern, step: Step) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(pattern, step);
    }
}

/// The questions about one certificate: a solver with a small budget, and what the answers amount to.
struct Questions<'c> {
    /// The judge's solver, limited to a tenth of its budget and 2 seconds a question: later tiers are still to come.
    solver: Solver,
    /// Least value of each atom of the polynomials.
    lows: &'c [i128],
    /// Whether the steps of proofs are kept.
    records: bool,
    /// The answers so far.
    confirmation: Confirmation,
}

impl<'c> Questions<'c> {
    /// No question asked yet.
    fn new(judge: &Judge, checked: &'c Checked) -> Self {
        let full = judge.solver.budget();
        let budget = Budget { rlimit: full.rlimit / 10, timeout_ms: full.timeout_ms.min(2_000), ..full };
        let confirmation = Confirmation { steps: Vec::new(), by_solver: false };
        let solver = judge.solver.limited_to(budget);
        Self { solver, lows: &checked.lows, records: judge.is_recording(), confirmation }
    }

    /// Asks for a list of instances; `None` if one is not proved.
    fn ask(&mut self, judge: &Judge, instances: &[&Instance]) -> Option<()> {
        let mut lemmas: Vec<Lemma> = Vec::new();
        let mut patterns: Vec<(&Vec<bool>, bool)> = Vec::new();
        let mut reasons: Vec<&NonNegative> = Vec::new();
        for instance in instances {
            match instance {
                Instance::Lemma(lemma) => lemmas.push(*lemma),
                Instance::Window(window) => {
                    match window.is_inside() {
                        Some(true) => {}
                        Some(false) => return None,
                        None => reasons.extend(&window.reasons),
                    }
                    patterns.push((&window.negative, window.below.is_some()));
                }
                Instance::NonNegative(reason) => reasons.push(reason),
            }
        }
        if !patterns.is_empty() {
            lemmas.push(Lemma::Monotone);
        }
        if !reasons.is_empty() {
            lemmas.push(Lemma::NonNegative);
        }
        if reasons.iter().any(|reason| reason.is_scaled()) {
            lemmas.push(Lemma::Scaled);
        }
        lemmas.sort_unstable();
        lemmas.dedup();
        for lemma in lemmas {
            self.note(judge.lemmas.theorem(lemma).ok()?.steps());
        }
        patterns.sort_unstable();
        patterns.dedup();
        for (negative, is_below) in patterns {
            self.window(judge, (negative.clone(), is_below))?;
        }
        if !reasons.iter().all(|reason| reason.is_sum_of_products(self.lows)) {
            return None;
        }
        Some(())
    }

    /// Adds steps to the confirmation.
    fn note(&mut self, steps: &[Step]) {
        self.confirmation.by_solver |= steps.iter().any(|step| matches!(step.rule, Rule::Solver(..)));
        if self.records {
            self.confirmation.steps.extend_from_slice(steps);
        }
    }

    /// The step that shows that `goal` follows from `using`; `None` if Z3 does not prove it.
    fn follows(&self, using: Vec<Prop>, goal: Prop, encoding: Encoding) -> Option<Step> {
        let answer = self.solver.follows(&using, &goal, encoding).ok()?;
        let shown = answer.outcome == Outcome::Proved;
        let rule = Rule::Solver(encoding, answer.method);
        shown.then_some(Step { goal, using, rule, shown, elapsed: answer.elapsed })
    }

    /// The theorem of the windows of a pattern, proved once.
    fn window(&mut self, judge: &Judge, pattern: Pattern) -> Option<()> {
        if judge.windows.with(&pattern, |step| self.note(std::slice::from_ref(step))).is_some() {
            return Some(());
        }
        let step = self.window_theorem(&pattern)?;
        self.note(std::slice::from_ref(&step));
        judge.windows.put(pattern, step);
        Some(())
    }

    /// Asks for the windows of a pattern: a sum of terms, each between 0 and its bound (or minus its bound and 0), lies in
    /// the window.
    fn window_theorem(&self, (negative, is_below): &Pattern) -> Option<Step> {
        let offset = Term::sym("o");
        let (mut sum, mut low, mut high) = (offset.clone(), offset.clone(), offset);
        let mut using = Vec::new();
        for (position, is_negative) in negative.iter().enumerate() {
            let (term, end) = (Term::sym(format!("t{position}").as_str()), Term::sym(format!("u{position}").as_str()));
            sum = sum + &term;
            if *is_negative {
                using.push((-end.clone()).at_most(&term).and(term.at_most(0)));
                low = low - end;
            } else {
                using.push(term.at_least(0).and(term.at_most(&end)));
                high = high + end;
            }
        }
        using.push(low.at_least(0));
        let mut goal = sum.at_least(0);
        if *is_below {
            let below = Term::sym("b");
            using.push(high.less(&below));
            goal = goal.and(sum.less(below));
        }
        self.follows(using, goal, Encoding::Opaque)
    }
}
