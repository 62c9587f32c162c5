//! Plainer terms: divisions of sums are carried out, digits of digits become digits of the number itself.
//!
//! ```text
//! ((n*W + w)*4 + c % 4) // 4 % W      is  w                 (0 <= c % 4 < 4, 0 <= w < W)
//! (p % 1024) // 256                   is  p // 256 % 4
//! p // 4 // W                         is  p // (4 * W)
//! ```
//!
//! What is left are quotients and remainders of single numbers. Two such terms that are equal are so as polynomials once
//! each remainder `x % b` is written `x - x // b * b`: that decides whether an inverse takes an index back.
//!
//! Every step is an instance of a lemma; that the whole is equal follows from the steps by congruence alone.

use super::{Prover, facts};
use crate::kernel::{Fact, Mode};
use crate::lemmas::{Lemma, poly_identity};
use crate::numeral::Product;
use crate::poly::{normalized, probably_equal};
use crate::term::{BinaryOp, Comparison, Prop, PropKind, Term, TermKind, UnaryOp};

/// A plainer term, and the equations by which it is equal to the one asked for.
#[derive(Clone, Debug)]
pub(super) struct Plain {
    term: Term,
    because: Vec<Fact>,
}

impl Plain {
    fn as_is(term: &Term) -> Self {
        Self { term: term.clone(), because: Vec::new() }
    }
}

/// Steps for one division: quotients of quotients end sooner.
const MAX_STEPS: usize = 12;

impl Prover<'_> {
    /// A statement about terms with divisions, by the same about plainer ones.
    pub(super) fn by_reduction(&mut self, goal: &Prop) -> Option<Fact> {
        if let PropKind::Compare(Comparison::Eq, lhs, rhs) = goal.kind() {
            let sides = [self.reduced(lhs), self.reduced(rhs)];
            return self.same_polynomial(goal, [&sides[0], &sides[1]]);
        }
        let mut ways = Vec::new();
        for without_remainders in [false, true] {
            let mut because = Vec::new();
            let plain = self.plainer(goal, without_remainders, &mut because)?;
            if plain != *goal {
                ways.push((plain, because));
            }
        }
        let known = ways.iter().position(|(plain, _)| plain.as_bool().is_some() || self.known(plain).is_some());
        if let Some(known) = known {
            ways.swap(0, known);
        }
        ways.into_iter().find_map(|(plain, mut because)| {
            because.push(self.prove_plain(&plain)?);
            self.context.derive(goal.clone(), &because.iter().collect::<Vec<_>>(), Mode::Abstract).ok()
        })
    }

    /// The same statement about plainer terms.
    fn plainer(&mut self, prop: &Prop, without_remainders: bool, because: &mut Vec<Fact>) -> Option<Prop> {
        let mut parts = |prover: &mut Self, parts: &[Prop]| -> Option<Vec<Prop>> {
            parts.iter().map(|part| prover.plainer(part, without_remainders, because)).collect()
        };
        Some(match prop.kind() {
            PropKind::Bool(_) | PropKind::Sym(_) => prop.clone(),
            PropKind::Compare(comparison, lhs, rhs) => {
                let mut side = |term: &Term| {
                    let mut plain = self.reduced(term);
                    if without_remainders {
                        plain = self.without_remainders(&plain);
                    }
                    because.extend(plain.because);
                    let sorted = normalized(&plain.term);
                    if sorted != plain.term {
                        because.push(poly_identity(&mut self.context, &plain.term, &sorted).ok()?);
                    }
                    Some(sorted)
                };
                side(lhs)?.compare(*comparison, side(rhs)?)
            }
            PropKind::Not(inner) => self.plainer(inner, without_remainders, because)?.negate(),
            PropKind::And(inner) => Prop::all(parts(self, inner)?),
            PropKind::Or(inner) => Prop::any(parts(self, inner)?),
            PropKind::Implies(a, b) => {
                let a = self.plainer(a, without_remainders, because)?;
                a.implies(self.plainer(b, without_remainders, because)?)
            }
            PropKind::Iff(a, b) => {
                let a = self.plainer(a, without_remainders, because)?;
                a.iff(self.plainer(b, without_remainders, because)?)
            }
        })
    }

    /// Both sides are one polynomial, at the latest without remainders.
    fn same_polynomial(&mut self, goal: &Prop, sides: [&Plain; 2]) -> Option<Fact> {
        let mut sides = sides.map(Plain::clone);
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

    /// A comparison that was made plainer: known, or shown in the ways that need no reduction.
    fn prove_plain(&mut self, goal: &Prop) -> Option<Fact> {
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

    /// The same value with its divisions carried out.
    pub(super) fn reduced(&mut self, term: &Term) -> Plain {
        if let Some(known) = self.plain.get(term) {
            return known.clone();
        }
        let found = match term.kind() {
            TermKind::Binary(op, a, b) => {
                let (a, b) = (self.reduced(a), self.reduced(b));
                let rebuilt = Term::binary(*op, a.term.clone(), b.term.clone());
                let mut because = [a.because, b.because].concat();
                let division = matches!(op, BinaryOp::FloorDiv | BinaryOp::FloorMod);
                match rebuilt.kind() {
                    TermKind::Binary(_, a, b) if division => {
                        let done = self.divided(*op, a, b);
                        because.extend(done.because);
                        Plain { term: done.term, because }
                    }
                    _ => Plain { term: rebuilt, because },
                }
            }
            TermKind::Unary(op, a) => {
                let a = self.reduced(a);
                Plain { term: Term::unary(*op, a.term), because: a.because }
            }
            TermKind::Const(_) | TermKind::Sym(_) | TermKind::Ite(..) | TermKind::App(..) => Plain::as_is(term),
        };
        self.plain.insert(term.clone(), found.clone());
        found
    }

    /// `a // b` or `a % b`, step by step.
    fn divided(&mut self, op: BinaryOp, a: &Term, b: &Term) -> Plain {
        let mut result = Plain::as_is(&Term::binary(op, a.clone(), b.clone()));
        let Some(positive) = self.positive(b) else { return result };
        for _ in 0..MAX_STEPS {
            let Some((before, rest)) = open_division(&result.term) else { break };
            let TermKind::Binary(op, a, b) = before.kind() else { break };
            let Some((after, because)) = self.step(*op, a, b, &positive) else { break };
            result.because.extend(because);
            result.term = match rest {
                Some(rest) => after + rest,
                None => after,
            };
        }
        result
    }

    /// One step of a division: what it is equal to, and why.
    fn step(&mut self, op: BinaryOp, a: &Term, b: &Term, positive: &Fact) -> Option<(Term, Vec<Fact>)> {
        if let Some(found) = self.nested(op, a, b) {
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

    /// A division of a quotient or of a remainder.
    fn nested(&mut self, op: BinaryOp, a: &Term, b: &Term) -> Option<(Term, Vec<Fact>)> {
        let TermKind::Binary(inner, x, m) = a.kind() else { return None };
        if op == BinaryOp::FloorDiv && *inner == BinaryOp::FloorDiv {
            let using = [self.positive(m)?, self.positive(b)?];
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
        let using = [self.positive(&times)?, self.positive(b)?];
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
        let plain = self.reduced(&quotient.clone());
        because.extend(plain.because);
        let after = if op == BinaryOp::FloorDiv { plain.term.floor_mod(&times) } else { after };
        Some((after, because))
    }

    /// `0 <= r` and `r < b`, for a rest that looks like it.
    fn digit_range(&mut self, r: &Term, b: &Term) -> Option<Fact> {
        let goal = r.at_least(0).and(r.less(b));
        if let TermKind::Binary(BinaryOp::FloorMod, _, m) = r.kind()
            && m == b
        {
            let positive = self.positive(b)?;
            let TermKind::Binary(_, x, _) = r.kind() else { return None };
            let parts =
                self.lemmas.apply(&mut self.context, Lemma::Euclid, &[("a", x), ("b", b)], &[&positive]).ok()?;
            return self.context.derive(goal, &[&parts], Mode::Abstract).ok();
        }
        if let Some(shown) = self.prove_digit(&goal) {
            return Some(shown);
        }
        let low = self.prove_plain(&r.at_least(0))?;
        let high = self.prove_plain(&r.less(b))?;
        self.context.join(&[&low, &high]).ok()
    }

    /// Every remainder `x % b` as `x - x // b * b`.
    fn without_remainders(&mut self, plain: &Plain) -> Plain {
        let mut because = plain.because.clone();
        let term = self.eliminated(&plain.term, &mut because);
        Plain { term, because }
    }

    fn eliminated(&mut self, term: &Term, because: &mut Vec<Fact>) -> Term {
        match term.kind() {
            TermKind::Binary(op @ (BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul), a, b) => {
                let (a, b) = (self.eliminated(a, because), self.eliminated(b, because));
                Term::binary(*op, a, b)
            }
            TermKind::Unary(UnaryOp::Neg, a) => -self.eliminated(a, because),
            TermKind::Binary(BinaryOp::FloorMod, x, b) => {
                let Some(positive) = self.positive(b) else { return term.clone() };
                let values = [("a", x), ("b", b)];
                let Ok(parts) = self.lemmas.apply(&mut self.context, Lemma::Euclid, &values, &[&positive]) else {
                    return term.clone();
                };
                let quotient = self.divided(BinaryOp::FloorDiv, x, b);
                let written = x - &quotient.term * b;
                let using: Vec<&Fact> = quotient.because.iter().chain([&parts]).collect();
                let Ok(same) = self.context.derive(term.equals(&written), &using, Mode::Abstract) else {
                    return term.clone();
                };
                because.push(same);
                self.eliminated(&written, because)
            }
            _ => term.clone(),
        }
    }
}

/// The division that a sum begins with, and the rest of the sum.
fn open_division(term: &Term) -> Option<(Term, Option<Term>)> {
    let is_division =
        |term: &Term| matches!(term.kind(), TermKind::Binary(BinaryOp::FloorDiv | BinaryOp::FloorMod, _, _));
    match term.kind() {
        _ if is_division(term) => Some((term.clone(), None)),
        TermKind::Binary(BinaryOp::Add, a, b) if is_division(a) => Some((a.clone(), Some(b.clone()))),
        _ => None,
    }
}
