//! Non-negative polynomials in symbolic extents.
//!
//! An atom is a symbol or the floor quotient of two polynomials. Each atom has a constant lower bound. A polynomial is
//! written in the amounts by which the atoms exceed their bounds; it is non-negative if no coefficient is negative.
//! Otherwise multiples of known facts are subtracted first: `d*q <= n` and `n <= d*q + d - 1` for `q = n // d`, and the
//! user's assumptions.
//!
//! ```text
//! n * c - n             with n = 1 + s, c = 1 + t:   t + s * t               no negative coefficient: non-negative
//! n - (n // 4) * 4      with q = n // 4:             n - 4 * q               non-negative by the fact 4 * q <= n
//! ```
//!
//! The search for multiples is heuristic, and its result is not believed: `confirm` subtracts them again, and what is left has
//! to be a sum of products of numbers that are not negative, which is one lemma for all polynomials. Only the facts
//! themselves are believed here, and they hold by the definition of `//` (Euclid) or are the user's assumptions, which are
//! premises of every obligation.

use std::cell::RefCell;
use std::collections::HashMap;

use tilewright_ir::{BinaryOp, Expr, Var, gcd};

use super::{Instance, Poly, Rejected};
use crate::lemmas::Lemma;
use crate::poly::{Monomial, without};

/// Greatest number of facts in a combination.
const MAX_FACTS: usize = 4;
/// Greatest number of combinations tried for one polynomial.
const MAX_TRIALS: usize = 48;

/// What an atom stands for.
#[derive(Clone, Debug)]
pub(super) enum Kind {
    /// A symbol; or, for an extent that is assumed to be a multiple of a number, the quotient by that number.
    Symbol,
    /// `num // den`, with a positive divisor.
    Floor { num: Poly, den: Poly },
}

/// The atoms met so far.
#[derive(Debug, Default)]
pub(super) struct Atoms {
    /// The meaning of each atom.
    kinds: Vec<Kind>,
    /// The lower bound of each atom.
    lows: Vec<i128>,
    /// The polynomial of each symbol: its atom, or a multiple of it.
    symbols: Vec<(Var, Poly)>,
    /// Variables that are no extents.
    scalars: Vec<Var>,
    /// Polynomials that are never negative, by the assumptions and the definition of each quotient: in the amounts by which
    /// atoms exceed their bounds, and as they are.
    facts: Vec<(Poly, Poly)>,
    /// Why polynomials are never negative, or that no reason was found, with the atoms and facts of now.
    answers: RefCell<HashMap<Poly, Option<NonNegative>>>,
}

/// A polynomial that is never negative, and the facts from which that follows.
#[derive(Clone, Debug)]
pub struct NonNegative {
    /// The polynomial.
    pub(super) poly: Poly,
    /// The facts, in the order in which multiples of them are subtracted.
    used: Vec<Used>,
}

/// The step from a polynomial `p` to `scale * p + (scale - 1) - times * factor * fact`. If the result is not negative, `p` is
/// not, since it is an integer.
#[derive(Clone, Debug)]
struct Used {
    /// What the polynomial is multiplied by, at least 1.
    scale: i128,
    /// A polynomial that is never negative.
    fact: Poly,
    /// The number of times that the fact is subtracted, at least 0.
    times: i128,
    /// A product of amounts by which atoms exceed their bounds.
    factor: Monomial<u32>,
}

impl Atoms {
    /// A new atom with a lower bound, as a polynomial; `None` if there are 4096 already.
    fn add(&mut self, kind: Kind, low: i128) -> Option<Poly> {
        let atom = u32::try_from(self.kinds.len()).ok().filter(|&atom| atom < 1 << 12)?;
        self.answers.get_mut().clear();
        self.kinds.push(kind);
        self.lows.push(low);
        Some(Poly::atom(atom))
    }

    /// The polynomial of a symbol.
    pub(super) fn symbol(&mut self, var: &Var) -> Option<Poly> {
        if let Some((_, poly)) = self.symbols.iter().find(|(known, _)| known == var) {
            return Some(poly.clone());
        }
        // A scalar may be negative; its type bounds it from below.
        let low = if self.scalars.contains(var) { var.dtype().scalar.integer_range()?.0 } else { 1 };
        let poly = self.add(Kind::Symbol, low)?;
        self.symbols.push((var.clone(), poly.clone()));
        Some(poly)
    }

    /// Records the assumptions of the forms `x % k == 0` and `x <= k` (or any comparison with a number); others are
    /// ignored. `scalars` are the variables that are no extents. Must be called before any symbol is evaluated.
    pub(super) fn assume(&mut self, assumptions: &[Expr], scalars: &[Var]) -> Option<()> {
        self.scalars = scalars.to_vec();
        for assumption in assumptions {
            // A multiple of `k` that is at least 1 is `k * q` with `q` at least 1; that says nothing of scalars.
            if let Some((var, factor)) = multiple_of(assumption)
                && !scalars.contains(var)
                && self.symbols.iter().all(|(known, _)| known != var)
            {
                let times = self.add(Kind::Symbol, 1)?;
                self.symbols.push((var.clone(), times.scaled(factor)?));
            }
        }
        for assumption in assumptions {
            let Some((var, low, high)) = bounds_of(assumption) else { continue };
            let poly = self.symbol(var)?;
            if let Some(low) = low {
                self.fact(poly.plus_const(low.checked_neg()?)?)?;
            }
            if let Some(high) = high {
                self.fact(Poly::constant(high).minus(&poly)?)?;
            }
        }
        Some(())
    }

    /// `num // den` as a polynomial.
    ///
    /// The quotient takes the terms that `den` divides. If the rest is shown to be in `0..den` (or in `-den..0`), that is
    /// all; otherwise the quotient of the rest becomes a new atom.
    ///
    /// # Errors
    /// The divisor is not shown to be positive, or the rest not to be non-negative.
    pub(super) fn floor(&mut self, num: &Poly, den: &Poly, found: &mut Vec<Instance>) -> Result<Poly, Rejected> {
        if let (Some(a), Some(b)) = (num.as_const(), den.as_const().filter(|&b| b > 0)) {
            return Ok(Poly::constant(a.div_euclid(b)));
        }
        self.show(&den.plus_const(-1).ok_or(TOO_LARGE)?, found)?;
        let (mut quotient, mut rest) = num.split(den).ok_or(TOO_LARGE)?;
        if let Some(b) = den.as_const() {
            let whole = rest.constant_term().div_euclid(b);
            quotient = quotient.plus_const(whole).ok_or(TOO_LARGE)?;
            let taken = whole.checked_mul(b).and_then(i128::checked_neg).ok_or(TOO_LARGE)?;
            rest = rest.plus_const(taken).ok_or(TOO_LARGE)?;
        }
        found.push(Instance::Lemma(Lemma::DivShift));
        if rest.is_zero() {
            return Ok(quotient);
        }
        // A rest in `0..den` is the remainder. One in `-den..0` becomes it by adding `den`, which the quotient pays for
        // with 1. Anything else might be several multiples off, and needs an atom of its own.
        for (shift, lift) in [(0, Poly::default()), (-1, den.clone())] {
            let rest = rest.plus(&lift).ok_or(TOO_LARGE)?;
            let room = den.minus(&rest).and_then(|room| room.plus_const(-1)).ok_or(TOO_LARGE)?;
            let mut shown = Vec::new();
            if self.show(&rest, &mut shown).and_then(|()| self.show(&room, &mut shown)).is_ok() {
                found.append(&mut shown);
                found.push(Instance::Lemma(Lemma::HornerInverse));
                return quotient.plus_const(shift).ok_or(TOO_LARGE);
            }
        }
        let atom = self.quotient_atom(&rest, den, found)?;
        quotient.plus(&atom).ok_or(TOO_LARGE)
    }

    /// The atom of a quotient, shared with an equal one.
    ///
    /// # Errors
    /// The dividend is not shown to be non-negative, so that no lower bound of the quotient is known.
    fn quotient_atom(&mut self, num: &Poly, den: &Poly, found: &mut Vec<Instance>) -> Result<Poly, Rejected> {
        let same = |kind: &Kind| matches!(kind, Kind::Floor { num: a, den: b } if a == num && b == den);
        if let Some(position) = self.kinds.iter().position(same) {
            return u32::try_from(position).map(Poly::atom).map_err(|_| TOO_LARGE);
        }
        self.show(num, found)?;
        let least = self.shifted(num).ok_or(TOO_LARGE)?.constant_term();
        // The least dividend divided by the divisor bounds the quotient from below. For a symbolic divisor, or if the
        // bound cannot be shown, 0 is a bound that always holds.
        let mut low = den.as_const().map_or(0, |den| least.div_euclid(den)).max(0);
        let above = den.scaled(low).and_then(|product| num.minus(&product)).ok_or(TOO_LARGE)?;
        if low > 0 && self.show(&above, found).is_err() {
            low = 0;
        }
        found.push(Instance::Lemma(Lemma::Euclid));
        found.push(Instance::Lemma(Lemma::DivNonNegative));
        self.quotient(num, den, low).ok_or(TOO_LARGE)
    }

    /// A new atom for a quotient, and what its definition says: `0 <= num - den * atom <= den - 1`.
    fn quotient(&mut self, num: &Poly, den: &Poly, low: i128) -> Option<Poly> {
        let atom = self.add(Kind::Floor { num: num.clone(), den: den.clone() }, low)?;
        let rest = num.minus(&den.times(&atom)?)?;
        self.fact(rest.clone())?;
        self.fact(den.plus_const(-1)?.minus(&rest)?)?;
        Some(atom)
    }

    /// Records a polynomial that is never negative.
    fn fact(&mut self, poly: Poly) -> Option<()> {
        self.answers.get_mut().clear();
        self.facts.push((self.shifted(&poly)?, poly));
        Some(())
    }

    /// The lower bound of each atom.
    pub(super) fn lows(&self) -> &[i128] {
        &self.lows
    }

    /// The polynomial in the amounts by which the atoms exceed their lower bounds.
    pub(super) fn shifted(&self, poly: &Poly) -> Option<Poly> {
        shifted(poly, &self.lows)
    }

    /// The reason why `poly` is never negative; `None` if none is found.
    pub(super) fn nonnegative(&self, poly: &Poly) -> Option<NonNegative> {
        if let Some(value) = poly.as_const() {
            return (value >= 0).then(|| NonNegative { poly: poly.clone(), used: Vec::new() });
        }
        if let Some(answer) = self.answers.borrow().get(poly) {
            return answer.clone();
        }
        let answer = self.reason(poly);
        self.answers.borrow_mut().insert(poly.clone(), answer.clone());
        answer
    }

    /// The reason why `poly` is never negative, found by a search.
    fn reason(&self, poly: &Poly) -> Option<NonNegative> {
        let shifted = self.shifted(poly)?;
        if negative(&shifted).is_none() {
            return Some(NonNegative { poly: poly.clone(), used: Vec::new() });
        }
        let (mut used, mut trials) = (Vec::new(), MAX_TRIALS);
        search(&shifted, &self.facts, &mut used, MAX_FACTS, &mut trials)?;
        Some(NonNegative { poly: poly.clone(), used })
    }

    /// Shows that `poly` is never negative and records the instance.
    pub(super) fn show(&self, poly: &Poly, found: &mut Vec<Instance>) -> Result<(), Rejected> {
        let shown = self.nonnegative(poly).ok_or(NEGATIVE)?;
        if poly.as_const().is_none() {
            found.push(Instance::NonNegative(shown));
        }
        Ok(())
    }
}

impl NonNegative {
    /// Whether the polynomial, less the multiples of the facts, has no negative coefficient when it is written in the amounts
    /// by which the atoms exceed their lower bounds. Then it is a sum of products of numbers that are not negative.
    pub(super) fn is_sum_of_products(&self, lows: &[i128]) -> bool {
        let start = shifted(&self.poly, lows);
        let rest = start.and_then(|poly| self.used.iter().try_fold(poly, |poly, used| used.subtracted(&poly, lows)));
        rest.is_some_and(|rest| negative(&rest).is_none())
    }

    /// Whether the polynomial is multiplied by a number.
    pub(super) fn is_scaled(&self) -> bool {
        self.used.iter().any(|used| used.scale != 1)
    }
}

impl Used {
    /// The polynomial after the step, in the amounts by which the atoms exceed their lower bounds; `None` if the step is not
    /// valid or a number leaves `i128`.
    fn subtracted(&self, poly: &Poly, lows: &[i128]) -> Option<Poly> {
        if self.scale < 1 || self.times < 0 {
            return None;
        }
        let fact = shifted(&self.fact, lows)?.times_term(&self.factor, self.times)?;
        poly.scaled(self.scale)?.plus_const(self.scale - 1)?.minus(&fact)
    }
}

/// The polynomial in the amounts by which the atoms exceed these lower bounds.
fn shifted(poly: &Poly, lows: &[i128]) -> Option<Poly> {
    if poly.as_const().is_some() {
        return Some(poly.clone());
    }
    poly.terms().try_fold(Poly::default(), |sum, (mono, value)| {
        let product = mono.iter().try_fold(Poly::constant(value), |product, &atom| {
            product.times(&Poly::atom(atom).plus_const(*lows.get(atom as usize)?)?)
        })?;
        sum.plus(&product)
    })
}

pub(super) const TOO_LARGE: Rejected = Rejected("a number or a polynomial is too large");
const NEGATIVE: Rejected = Rejected("a polynomial in the extents may be negative");

/// The largest term with a negative coefficient.
fn negative(poly: &Poly) -> Option<(&[u32], i128)> {
    poly.terms().rfind(|(_, value)| *value < 0)
}

/// Subtracts multiples of facts from `poly` until no coefficient is negative, with at most `left` facts. The facts are given
/// in the amounts by which atoms exceed their bounds, and as they are. `used` receives the steps.
fn search(poly: &Poly, facts: &[(Poly, Poly)], used: &mut Vec<Used>, left: usize, trials: &mut usize) -> Option<()> {
    let Some((mono, value)) = negative(poly) else { return Some(()) };
    let left = left.checked_sub(1)?;
    for (shifted, fact) in facts {
        for (part, weight) in shifted.terms().filter(|(_, weight)| *weight < 0) {
            let Some(factor) = without(mono, part) else { continue };
            *trials = trials.checked_sub(1)?;
            let common = gcd(value.unsigned_abs(), weight.unsigned_abs());
            let scale = i128::try_from(weight.unsigned_abs() / common).ok()?;
            let times = i128::try_from(value.unsigned_abs() / common).ok()?;
            let rest = poly.scaled(scale)?.plus_const(scale - 1)?.minus(&shifted.times_term(&factor, times)?)?;
            used.push(Used { scale, fact: fact.clone(), times, factor });
            if search(&rest, facts, used, left, trials).is_some() {
                return Some(());
            }
            used.pop();
        }
    }
    None
}

/// The variable and the divisor of an assumption `x % k == 0`.
fn multiple_of(assumption: &Expr) -> Option<(&Var, i128)> {
    let Expr::Binary(BinaryOp::Eq, lhs, rhs) = assumption else { return None };
    let Expr::Binary(BinaryOp::FloorMod, base, factor) = lhs.as_ref() else { return None };
    let (Expr::Var(var), Some(0)) = (base.as_ref(), rhs.as_const_int()) else { return None };
    Some((var, factor.as_const_int().filter(|&factor| factor > 0)?))
}

/// The variable and the bounds, lower and upper, of an assumption that compares it with a number. Other assumptions are
/// not used, which can only lose proofs.
fn bounds_of(assumption: &Expr) -> Option<(&Var, Option<i128>, Option<i128>)> {
    let Expr::Binary(op, lhs, rhs) = assumption else { return None };
    let (var, value, op) = match (lhs.as_ref(), rhs.as_ref()) {
        (Expr::Var(var), Expr::Int { value, .. }) => (var, *value, *op),
        (Expr::Int { value, .. }, Expr::Var(var)) => (var, *value, mirrored(*op)?),
        _ => return None,
    };
    Some(match op {
        // Over the integers a strict bound is the next number as a bound.
        BinaryOp::Lt => (var, None, Some(value.checked_sub(1)?)),
        BinaryOp::Le => (var, None, Some(value)),
        BinaryOp::Gt => (var, Some(value.checked_add(1)?), None),
        BinaryOp::Ge => (var, Some(value), None),
        BinaryOp::Eq => (var, Some(value), Some(value)),
        BinaryOp::Add
        | BinaryOp::Sub
        | BinaryOp::Mul
        | BinaryOp::Div
        | BinaryOp::FloorDiv
        | BinaryOp::FloorMod
        | BinaryOp::TruncDiv
        | BinaryOp::TruncMod
        | BinaryOp::Min
        | BinaryOp::Max
        | BinaryOp::Ne
        | BinaryOp::And
        | BinaryOp::Or
        | BinaryOp::BitAnd
        | BinaryOp::BitOr
        | BinaryOp::BitXor
        | BinaryOp::Shl
        | BinaryOp::Shr => return None,
    })
}

/// The comparison with exchanged operands (a table): `3 < x` is `x > 3`. `None` for other operators.
fn mirrored(op: BinaryOp) -> Option<BinaryOp> {
    Some(match op {
        BinaryOp::Lt => BinaryOp::Gt,
        BinaryOp::Le => BinaryOp::Ge,
        BinaryOp::Gt => BinaryOp::Lt,
        BinaryOp::Ge => BinaryOp::Le,
        BinaryOp::Eq => BinaryOp::Eq,
        BinaryOp::Add
        | BinaryOp::Sub
        | BinaryOp::Mul
        | BinaryOp::Div
        | BinaryOp::FloorDiv
        | BinaryOp::FloorMod
        | BinaryOp::TruncDiv
        | BinaryOp::TruncMod
        | BinaryOp::Min
        | BinaryOp::Max
        | BinaryOp::Ne
        | BinaryOp::And
        | BinaryOp::Or
        | BinaryOp::BitAnd
        | BinaryOp::BitOr
        | BinaryOp::BitXor
        | BinaryOp::Shl
        | BinaryOp::Shr => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether `poly` is shown not to be negative, for atoms that are at least 0.
    fn shown(poly: &Poly, scale: i128, fact: &Poly, times: i128) -> bool {
        let used = vec![Used { scale, fact: fact.clone(), times, factor: Monomial::default() }];
        NonNegative { poly: poly.clone(), used }.is_sum_of_products(&[0, 0])
    }

    #[test]
    fn a_polynomial_is_scaled_only_by_positive_numbers_and_facts_are_only_subtracted() {
        let [x, y] = [0, 1].map(Poly::atom);
        let difference = |a: i128, b: i128| x.scaled(a).unwrap().minus(&y.scaled(b).unwrap()).unwrap();
        // From 2x >= 3y follows x >= y.
        assert!(shown(&difference(1, 1), 3, &difference(2, 3), 1));
        assert!(!shown(&difference(1, 1), 1, &difference(2, 3), 1));
        assert!(!shown(&difference(1, 2), 3, &difference(2, 3), 1));
        // A fact that is added is worth nothing, nor is a negative multiple of the polynomial.
        assert!(!shown(&difference(1, 1), 3, &difference(-2, -3), -1));
        assert!(!shown(&difference(-1, 0).plus_const(-5).unwrap(), -1, &Poly::default(), 0));
        // From 2x >= 1 follows x >= 1, and not x >= 2.
        let fact = difference(2, 0).plus_const(-1).unwrap();
        assert!(shown(&x.plus_const(-1).unwrap(), 2, &fact, 1));
        assert!(!shown(&x.plus_const(-2).unwrap(), 2, &fact, 1));
    }
}
