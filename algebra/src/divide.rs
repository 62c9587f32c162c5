//! Floor quotient and remainder of polynomials.
//!
//! For a divisor `d >= 1`, over the integers, the first rule that applies is used:
//!
//! | dividend | quotient | remainder | if |
//! |---|---|---|---|
//! | `a*d + r` | `a + r // d` | `r % d` | always |
//! | `r` | `0` | `r` | `0 <= r < d` |
//! | `g*s + b`, `d = g*t` | `s // t` | `g*(s % t) + b` | `0 <= b < g` |
//! | `x // a` | `x // (a*d)` | | always |
//! | `x ^ y`, and `&`, `\|` alike | `x // d ^ y // d` | `x % d ^ y % d` | `d` is a power of two |
//! | `x % d + y` | | `(x + y) % d` | always |
//! | `x % a`, `a = d*m` | `(x // d) % m` | `x % d` | always |

use std::sync::Arc;

use tilewright_ir::sabotage;
use tilewright_ir::{BinaryOp, Expr};

use super::poly::{Atom, Key, Poly, Term};
use super::rewrite::Simplifier;
use super::work;

/// Quotient and remainder.
type Pair = (Poly, Poly);

impl Simplifier<'_> {
    /// Returns `dividend // divisor` and `dividend % divisor`. Returns `None` if the divisor cannot be proved to be at
    /// least 1, if a coefficient leaves 128 bits, or if the steps of the question are used up.
    pub(super) fn divide(&self, dividend: &Poly, divisor: &Poly) -> Option<Pair> {
        let _limit = work::limit(work::EXPRESSION);
        if !work::step() || !self.ranges.prove_nonneg(&divisor.plus_const(-1)?) {
            return None;
        }
        let (whole, rest) = if self.ranges.multiples.is_empty() {
            split(dividend, divisor)?
        } else {
            let (whole, rest) = split(&self.ranges.written_in_multiples(dividend, divisor)?, divisor)?;
            (self.ranges.without_multiples(whole)?, self.ranges.without_multiples(rest)?)
        };
        let (quotient, remainder) = self.divide_rest(&rest, divisor)?;
        Some((whole.plus(&quotient)?, remainder))
    }

    /// Divides a dividend in which no multiple of the divisor is left.
    fn divide_rest(&self, rest: &Poly, divisor: &Poly) -> Option<Pair> {
        if self.ranges.prove_below(rest, divisor) {
            return Some((Poly::default(), rest.clone()));
        }
        let wrapped = rest.plus(divisor)?;
        if self.ranges.prove_below(&wrapped, divisor) {
            let quotient = if sabotage::on("divide-towards-zero") { 0 } else { -1 };
            return Some((Poly::constant(quotient), wrapped));
        }
        self.in_one_block(rest, divisor)
            .or_else(|| self.by_common_factor(rest, divisor))
            .or_else(|| self.of_division(rest, divisor))
            .or_else(|| self.of_remainders(rest, divisor))
            .or_else(|| Some(as_atoms(rest, divisor)))
    }

    /// Divides a dividend whose values all have the same quotient.
    fn in_one_block(&self, rest: &Poly, divisor: &Poly) -> Option<Pair> {
        let by = divisor.as_const()?;
        let interval = self.ranges.interval(rest);
        let (lo, hi) = (interval.least()?.div_euclid(by), interval.greatest()?.div_euclid(by));
        (lo == hi).then_some(())?;
        let below = if sabotage::on("remainder-keeps-block") { lo - lo.signum() } else { lo };
        Some((Poly::constant(lo), rest.plus_const(below.checked_mul(by)?.checked_neg()?)?))
    }

    /// Divides by a product: `(g*s + b) // (g*t) = s // t` for `0 <= b < g`.
    fn by_common_factor(&self, rest: &Poly, divisor: &Poly) -> Option<Pair> {
        let by = divisor.as_term()?;
        let mut tried: Vec<Term> = Vec::new();
        for term in rest.terms().filter(|term| !term.mono.is_empty()) {
            let common = term.gcd(&by);
            if common.is_one() || common == by || tried.contains(&common) {
                continue;
            }
            let factor = Poly::from(common.clone());
            let (high, low) = split(rest, &factor)?;
            let fits = self.ranges.prove_below(&low, &factor) || sabotage::on("divide-ignores-rest");
            if fits && self.ranges.prove_nonneg(&factor.plus_const(-1)?) {
                let (quotient, remainder) = self.divide(&high, &by.divided(&common)?.into())?;
                return Some((quotient, remainder.times(&factor)?.plus(&low)?));
            }
            tried.push(common);
        }
        None
    }

    /// Divides a quotient, a remainder, or a bit operation.
    fn of_division(&self, rest: &Poly, divisor: &Poly) -> Option<Pair> {
        match rest.as_atom()? {
            Atom::Div(x, by) => {
                let (quotient, _) = self.divide(x, &by.times(divisor)?)?;
                Some((quotient, as_atoms(rest, divisor).1))
            }
            Atom::Mod(x, by) => {
                let (times, left) = split(&self.ranges.written_in_multiples(by, divisor)?, divisor)?;
                left.is_zero().then_some(())?;
                let (quotient, remainder) = self.divide(x, divisor)?;
                let (_, quotient) = self.divide(&quotient, &times)?;
                Some((quotient, remainder))
            }
            Atom::Opaque(Key(Expr::Binary(op @ (BinaryOp::BitXor | BinaryOp::BitAnd | BinaryOp::BitOr), a, b))) => {
                self.of_bits(*op, a, b, divisor)
            }
            Atom::Opaque(_) => None,
        }
    }

    /// Removes inner remainders: `(x % d + y) % d = (x + y) % d`. Only if the result holds no remainder by `d` at all;
    /// otherwise the two forms would alternate.
    fn of_remainders(&self, rest: &Poly, divisor: &Poly) -> Option<Pair> {
        let mut opened = rest.clone();
        for atom in rest.atoms() {
            let Atom::Mod(x, by) = &atom else { continue };
            let (factor, others) = opened.by_atom(&atom);
            let (_, left) = split(&self.ranges.written_in_multiples(&factor.times(by)?, divisor)?, divisor)?;
            if left.is_zero() {
                opened = others.plus(&factor.times(x)?)?;
            }
        }
        (opened != *rest).then_some(())?;
        let (_, remainder) = self.divide(&opened, divisor)?;
        let same = |atom: &Atom| matches!(atom, Atom::Mod(_, by) if **by == *divisor);
        (!remainder.atoms().iter().any(same)).then(|| (as_atoms(rest, divisor).0, remainder))
    }

    /// Divides a bit operation by a power of two, operand by operand.
    fn of_bits(&self, op: BinaryOp, a: &Expr, b: &Expr, divisor: &Poly) -> Option<Pair> {
        divisor.as_const().filter(|by| *by > 1 && by.count_ones() == 1)?;
        let ty = a.dtype().scalar;
        let (high, low) = (self.divide(&self.poly(a)?, divisor)?, self.divide(&self.poly(b)?, divisor)?);
        let both = |x: &Poly, y: &Poly| self.poly(&Expr::binary(op, self.emit(x, ty)?, self.emit(y, ty)?));
        Some((both(&high.0, &low.0)?, both(&high.1, &low.1)?))
    }
}

/// Returns quotient and remainder as atoms, where no rule applies.
fn as_atoms(dividend: &Poly, divisor: &Poly) -> Pair {
    let (x, by) = (Arc::new(dividend.clone()), Arc::new(divisor.clone()));
    (Atom::Div(x.clone(), by.clone()).into(), Atom::Mod(x, by).into())
}

/// Writes `dividend` as `quotient * divisor + rest`, term by term, and returns `(quotient, rest)`. If the divisor is a
/// constant, the constant of the rest is in `0..divisor`. Returns `None` if a coefficient leaves 128 bits, or after
/// 256 steps.
pub(super) fn split(dividend: &Poly, divisor: &Poly) -> Option<Pair> {
    // The term of the divisor with most factors is the one that is looked for.
    let lead = divisor.terms().max_by_key(|term| term.mono.len())?;
    let (mut quotient, mut rest) = (Poly::default(), dividend.clone());
    // Each step may bring terms of lower degree back, so the steps are counted.
    for _ in 0..256 {
        let next = rest.terms().find_map(|term| match (term.mono.is_empty(), lead.mono.is_empty()) {
            (true, true) => {
                let whole = term.coef.checked_div_euclid(lead.coef)?;
                (whole != 0).then_some(Term { coef: whole, mono: term.mono })
            }
            _ => term.divided(&lead),
        });
        let Some(step) = next else { return Some((quotient, rest)) };
        let step = Poly::from(step);
        rest = rest.minus(&step.times(divisor)?)?;
        quotient = quotient.plus(&step)?;
    }
    None
}
