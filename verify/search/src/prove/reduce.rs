//! Reduction of terms: divisions of sums are carried out, and digits of digits become digits of the number itself.
//!
//! ```text
//! ((n*W + w)*4 + c % 4) // 4 % W      is  w                 (0 <= c % 4 < 4, 0 <= w < W)
//! (p % 1024) // 256                   is  p // 256 % 4
//! p // 4 // W                         is  p // (4 * W)
//! ```
//!
//! A reduced term contains quotients and remainders of single numbers only. Two equal terms of this form are usually the
//! same polynomial once each remainder `x % b` is written as `x - x // b * b`; so it is decided whether an inverse leads
//! back to an index.
//!
//! Every step is an instance of a lemma; the equality of the whole follows from the steps by congruence.
//!
//! At most [`MAX_STEPS`] steps are made for one division, so reduction ends even if the lemmas would apply in a circle.

use super::{Prover, facts};
use crate::numeral::Product;
use tilewright_kernel::facts::{Fact, Mode};
use tilewright_kernel::lemmas::{Lemma, poly_identity};
use tilewright_kernel::poly::{normalized, probably_equal};
use tilewright_kernel::strategy::Strategy as _;
use tilewright_kernel::term::{BinaryOp, Comparison, Prop, PropKind, Term, TermKind, UnaryOp};

/// A reduced term, and the equations by which it equals the original one.
#[derive(Clone, Debug)]
pub(super) struct Reduced {
    /// The reduced term.
    pub(super) term: Term,
    /// Facts from which the equality with the original term follows.
    because: Vec<Fact>,
}

impl Reduced {
    /// A term that is not reduced further.
    fn unchanged(term: &Term) -> Self {
        Self { term: term.clone(), because: Vec::new() }
    }
}

/// Greatest number of steps for one division.
const MAX_STEPS: usize = 12;

impl Prover {
    /// Proves a goal about terms with divisions by proving it about the reduced terms.
    pub(super) fn by_reduction(&mut self, goal: &Prop) -> Option<Fact> {
        if let PropKind::Compare(Comparison::Eq, lhs, rhs) = goal.kind() {
            let sides = [self.reduce(lhs), self.reduce(rhs)];
            return self.same_polynomial(goal, [&sides[0], &sides[1]]);
        }
        let mut candidates = Vec::new();
        for without_remainders in [false, true] {
            let mut because = Vec::new();
            let reduced = self.reduce_prop(goal, without_remainders, &mut because)?;
            if reduced != *goal {
                candidates.push((reduced, because));
            }
        }
        let known =
            candidates.iter().position(|(reduced, _)| reduced.as_bool().is_some() || self.known(reduced).is_some());
        if let Some(known) = known {
            candidates.swap(0, known);
        }
        candidates.into_iter().find_map(|(reduced, mut because)| {
            because.push(self.prove_reduced(&reduced)?);
            self.context.derive(goal.clone(), &because.iter().collect::<Vec<_>>(), Mode::Abstract).ok()
        })
    }

    /// The proposition about reduced terms in normal form; the equations are added to `because`.
    fn reduce_prop(&mut self, prop: &Prop, without_remainders: bool, because: &mut Vec<Fact>) -> Option<Prop> {
        let mut parts = |prover: &mut Self, parts: &[Prop]| -> Option<Vec<Prop>> {
            parts.iter().map(|part| prover.reduce_prop(part, without_remainders, because)).collect()
        };
        Some(match prop.kind() {
            PropKind::Bool(_) | PropKind::Sym(_) => prop.clone(),
            PropKind::Compare(comparison, lhs, rhs) => {
                // Both sides are sorted into normal form, so that the reduced goal can be found among the known facts
                // as data.
                let mut side = |term: &Term| {
                    let mut reduced = self.reduce(term);
                    if without_remainders {
                        reduced = self.without_remainders(&reduced);
                    }
                    because.extend(reduced.because);
                    let sorted = normalized(&reduced.term);
                    if sorted != reduced.term {
                        because.push(poly_identity(&mut self.context, &reduced.term, &sorted).ok()?);
                    }
                    Some(sorted)
                };
                side(lhs)?.compare(*comparison, side(rhs)?)
            }
            PropKind::Not(inner) => self.reduce_prop(inner, without_remainders, because)?.negate(),
            PropKind::And(inner) => Prop::all(parts(self, inner)?),
            PropKind::Or(inner) => Prop::any(parts(self, inner)?),
            PropKind::Implies(a, b) => {
                let a = self.reduce_prop(a, without_remainders, because)?;
                a.implies(self.reduce_prop(b, without_remainders, because)?)
            }
            PropKind::Iff(a, b) => {
                let a = self.reduce_prop(a, without_remainders, because)?;
                a.iff(self.reduce_prop(b, without_remainders, because)?)
            }
        })
    }

    /// Proves an equation whose sides are the same polynomial, possibly after remainders are eliminated.
    fn same_polynomial(&mut self, goal: &Prop, sides: [&Reduced; 2]) -> Option<Fact> {
        let mut sides = sides.map(Reduced::clone);
        if !probably_equal(&sides[0].term, &sides[1].term) {
            sides = sides.map(|side| self.without_remainders(&side));
            if !probably_equal(&sides[0].term, &sides[1].term) {
                return None;
            }
        }
        let same = poly_identity(&mut self.context, &sides[0].term, &sides[1].term).ok()?;
        let using: Vec<&Fact> = sides.iter().flat_map(|side| &side.because).chain([&same]).collect();
        self.context.derive(goal.clone(), &using, Mode::Abstract).ok()
    }

    /// Proves a reduced goal: it is known, or follows by the strategies that need no reduction.
    fn prove_reduced(&mut self, goal: &Prop) -> Option<Fact> {
        if goal.as_bool() == Some(true) {
            return self.context.derive(goal.clone(), &[], Mode::Abstract).ok();
        }
        if let Some(known) = self.known(goal) {
            return Some(known);
        }
        if let Some(shown) = self.prove_digit(goal) {
            return Some(shown);
        }
        if let Some(shown) = self.by_digits(goal) {
            return Some(shown);
        }
        let near = self.near(goal);
        let divisions = self.division_facts(goal);
        let mut using = facts(&near);
        using.extend(&divisions);
        self.context.derive(goal.clone(), &using, Mode::Abstract).ok()
    }

    /// The term with its divisions carried out.
    pub(super) fn reduce(&mut self, term: &Term) -> Reduced {
        if let Some(known) = self.reduced.get(term) {
            return known.clone();
        }
        let found = match term.kind() {
            TermKind::Binary(op, a, b) => {
                let (a, b) = (self.reduce(a), self.reduce(b));
                // Inner divisions first: `divide` expects a dividend that is reduced, such as a sum of quotients of
                // single numbers.
                let rebuilt = Term::binary(*op, a.term.clone(), b.term.clone());
                let mut because = [a.because, b.because].concat();
                let division = matches!(op, BinaryOp::FloorDiv | BinaryOp::FloorMod);
                match rebuilt.kind() {
                    TermKind::Binary(_, a, b) if division => {
                        let done = self.divide(*op, a, b);
                        because.extend(done.because);
                        Reduced { term: done.term, because }
                    }
                    TermKind::Binary(BinaryOp::BitXor, x, y) => match self.cancelled(x, y) {
                        Some((rest, facts)) => {
                            because.extend(facts);
                            Reduced { term: rest, because }
                        }
                        None => Reduced { term: rebuilt, because },
                    },
                    _ => Reduced { term: rebuilt, because },
                }
            }
            TermKind::Unary(op, a) => {
                let a = self.reduce(a);
                Reduced { term: Term::unary(*op, a.term), because: a.because }
            }
            TermKind::Const(_) | TermKind::Sym(_) | TermKind::Ite(..) | TermKind::App(..) => Reduced::unchanged(term),
        };
        self.reduced.insert(term.clone(), found.clone());
        found
    }

    /// Carries out `a // b` or `a % b`, step by step.
    fn divide(&mut self, op: BinaryOp, a: &Term, b: &Term) -> Reduced {
        let mut result = Reduced::unchanged(&Term::binary(op, a.clone(), b.clone()));
        let Some(positive) = self.shown_positive(b) else { return result };
        for _ in 0..MAX_STEPS {
            let Some((before, rest)) = open_division(&result.term) else { break };
            let TermKind::Binary(op, a, b) = before.kind() else { break };
            let Some((after, because)) = self.division_step(*op, a, b, &positive) else { break };
            result.because.extend(because);
            result.term = match rest {
                Some(rest) => after + rest,
                None => after,
            };
        }
        result
    }

    /// One step of a division: a simpler term that it equals, and the facts that say so.
    fn division_step(&mut self, op: BinaryOp, a: &Term, b: &Term, positive: &Fact) -> Option<(Term, Vec<Fact>)> {
        if let Some(found) = self.nested_division(op, a, b) {
            return Some(found);
        }
        if let Some(found) = self.same_divisor(op, a, b) {
            return Some(found);
        }
        let (q, r) = super::split_by(a, b)?;
        if let Some(in_range) = self.digit_range(&r, b) {
            let values = [("q", &q), ("r", &r), ("d", b)];
            let parts = self.lemmas.apply(&mut self.context, Lemma::HornerInverse, &values, &[&in_range]).ok()?;
            let same = poly_identity(&mut self.context, a, &(&q * b + &r)).ok()?;
            let after = if op == BinaryOp::FloorDiv { q } else { r };
            return Some((after, vec![same, parts]));
        }
        if q.as_const() == Some(0) {
            return None;
        }
        let values = [("x", &r), ("k", &q), ("b", b)];
        let parts = self.lemmas.apply(&mut self.context, Lemma::DivShift, &values, &[positive]).ok()?;
        let same = poly_identity(&mut self.context, a, &(&r + &q * b)).ok()?;
        let after = if op == BinaryOp::FloorDiv { r.floor_div(b) + &q } else { r.floor_mod(b) };
        Some((after, vec![same, parts]))
    }

    /// A division by `b` of a sum in which remainders by `b` occur: each of them differs from its dividend by a multiple of `b`.
    ///
    /// ```text
    /// ((i + j) % m - i) % m    is    (j - (i + j) // m * m) % m
    /// ```
    fn same_divisor(&mut self, op: BinaryOp, a: &Term, b: &Term) -> Option<(Term, Vec<Fact>)> {
        let mut because = Vec::new();
        let opened = self.eliminated(a, Some(b), &mut because);
        if opened == *a {
            return None;
        }
        let sorted = normalized(&opened);
        because.push(poly_identity(&mut self.context, &opened, &sorted).ok()?);
        Some((Term::binary(op, sorted, b.clone()), because))
    }

    /// A division whose dividend is a quotient or a remainder: DivDiv, ModMod or ModDiv.
    fn nested_division(&mut self, op: BinaryOp, a: &Term, b: &Term) -> Option<(Term, Vec<Fact>)> {
        let TermKind::Binary(inner, x, m) = a.kind() else { return None };
        if op == BinaryOp::FloorDiv && *inner == BinaryOp::FloorDiv {
            let using = [self.shown_positive(m)?, self.shown_positive(b)?];
            let size = normalized(&(m * b));
            let values = [("x", x), ("a", m), ("b", b)];
            let lemma = self.lemmas.apply(&mut self.context, Lemma::DivDiv, &values, &[&using[0], &using[1]]).ok()?;
            let same = poly_identity(&mut self.context, &(m * b), &size).ok()?;
            return Some((x.floor_div(&size), vec![lemma, same]));
        }
        if *inner != BinaryOp::FloorMod {
            return None;
        }
        let times = Product::from_term(m)?.divide(&Product::from_term(b)?)?.term();
        if times.as_const() == Some(1) {
            return None;
        }
        let using = [self.shown_positive(&times)?, self.shown_positive(b)?];
        let values = [("x", x), ("a", &times), ("b", b)];
        let (lemma, after) = match op {
            BinaryOp::FloorDiv => (Lemma::ModDiv, x.floor_div(b).floor_mod(&times)),
            _ => (Lemma::ModMod, x.floor_mod(b)),
        };
        let lemma = self.lemmas.apply(&mut self.context, lemma, &values, &[&using[0], &using[1]]).ok()?;
        let same = poly_identity(&mut self.context, m, &(&times * b)).ok()?;
        let mut because = vec![lemma, same];
        // The quotient in `x // b % times` may be one of a quotient.
        let TermKind::Binary(_, quotient, _) = after.kind() else { return Some((after, because)) };
        let reduced = self.reduce(&quotient.clone());
        because.extend(reduced.because);
        let after = if op == BinaryOp::FloorDiv { reduced.term.floor_mod(&times) } else { after };
        Some((after, because))
    }

    /// The fact `0 <= r < b`, if `r` is a remainder by `b` or can be shown to be in range.
    fn digit_range(&mut self, r: &Term, b: &Term) -> Option<Fact> {
        let goal = r.at_least(0).and(r.less(b));
        if let TermKind::Binary(BinaryOp::FloorMod, _, m) = r.kind()
            && m == b
        {
            let positive = self.shown_positive(b)?;
            let TermKind::Binary(_, x, _) = r.kind() else { return None };
            let parts =
                self.lemmas.apply(&mut self.context, Lemma::Euclid, &[("a", x), ("b", b)], &[&positive]).ok()?;
            return self.context.derive(goal, &[&parts], Mode::Abstract).ok();
        }
        if let Some(shown) = self.prove_digit(&goal) {
            return Some(shown);
        }
        let low = self.prove_reduced(&r.at_least(0))?;
        let high = self.prove_reduced(&r.less(b))?;
        self.context.join(&[&low, &high]).ok()
    }

    /// The term with every remainder `x % b` written as `x - x // b * b`.
    pub(super) fn without_remainders(&mut self, reduced: &Reduced) -> Reduced {
        let mut because = reduced.because.clone();
        let term = self.eliminated(&reduced.term, None, &mut because);
        Reduced { term, because }
    }

    /// The term with its remainders eliminated, those of one divisor or all; the equations are added to `because`.
    fn eliminated(&mut self, term: &Term, of: Option<&Term>, because: &mut Vec<Fact>) -> Term {
        match term.kind() {
            TermKind::Binary(op @ (BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul), a, b) => {
                let (a, b) = (self.eliminated(a, of, because), self.eliminated(b, of, because));
                Term::binary(*op, a, b)
            }
            TermKind::Unary(UnaryOp::Neg, a) => -self.eliminated(a, of, because),
            TermKind::Binary(BinaryOp::FloorMod, x, b) if of.is_none_or(|divisor| divisor == b) => {
                let Some(positive) = self.shown_positive(b) else { return term.clone() };
                let values = [("a", x), ("b", b)];
                let Ok(parts) = self.lemmas.apply(&mut self.context, Lemma::Euclid, &values, &[&positive]) else {
                    return term.clone();
                };
                let quotient = self.divide(BinaryOp::FloorDiv, x, b);
                let written = x - &quotient.term * b;
                let using: Vec<&Fact> = quotient.because.iter().chain([&parts]).collect();
                let Ok(same) = self.context.derive(term.equals(&written), &using, Mode::Abstract) else {
                    return term.clone();
                };
                because.push(same);
                self.eliminated(&written, of, because)
            }
            _ => term.clone(),
        }
    }
}

/// The division that a sum begins with, and the other summand.
fn open_division(term: &Term) -> Option<(Term, Option<Term>)> {
    let is_division =
        |term: &Term| matches!(term.kind(), TermKind::Binary(BinaryOp::FloorDiv | BinaryOp::FloorMod, _, _));
    match term.kind() {
        _ if is_division(term) => Some((term.clone(), None)),
        TermKind::Binary(BinaryOp::Add, a, b) if is_division(a) => Some((a.clone(), Some(b.clone()))),
        _ => None,
    }
}
