//! What is assumed of symbolic extents, and the condition of a branch: `c % 4 == 0`, `n <= 1024`, `i < 4`.

use tilewright_ir::{BinaryOp, Expr, UnaryOp, Var};

use super::divide;
use super::interval::{End, Interval};
use super::logic::negate;
use super::poly::{Atom, Poly, Term};
use super::ranges::{Known, Ranges};
use super::rewrite::Simplifier;

impl Ranges {
    /// Adds a condition that holds. Bounds and divisibility are used by the rules of the simplifier, any other condition
    /// where it is met again word for word. Variables of which nothing is known are symbolic extents, at least 1.
    ///
    /// ```
    /// use tilewright_algebra::{Ranges, simplify};
    /// use tilewright_ir::{BinaryOp, Expr, Var};
    /// let c = Var::index("c");
    /// let four_divides_it = Expr::binary(BinaryOp::Eq, Expr::from(&c).floor_mod(Expr::int(4)), Expr::int(0));
    /// let ranges = Ranges::new().assuming(&four_divides_it);
    /// let rounded_up = (Expr::from(&c) + Expr::int(3)).floor_div(Expr::int(4));
    /// assert_eq!(simplify(&rounded_up, &ranges).to_string(), "c // 4");
    /// ```
    #[must_use]
    pub fn assuming(mut self, condition: &Expr) -> Self {
        for symbol in condition.vars() {
            self = self.with_symbol(&symbol);
        }
        match condition {
            Expr::Binary(BinaryOp::And, a, b) => return self.assuming(a).assuming(b),
            Expr::Unary(UnaryOp::Not, a) if negate(a) != *condition => return self.assuming(&negate(a)),
            Expr::Binary(op, a, b) => {
                let simplifier = Simplifier::new(&self);
                if let Some(gap) = simplifier.poly(a).zip(simplifier.poly(b)).and_then(|(a, b)| a.minus(&b)) {
                    self.compared(*op, &gap);
                }
            }
            _ => {}
        }
        self.truths.push(condition.clone());
        self
    }

    /// Adds `gap op 0`.
    fn compared(&mut self, op: BinaryOp, gap: &Poly) {
        let (up, down) = (Some(gap.clone()), gap.scaled(-1));
        let less = |poly: Option<Poly>| poly.and_then(|poly| poly.plus_const(-1));
        match op {
            BinaryOp::Ge => self.not_negative(up),
            BinaryOp::Le => self.not_negative(down),
            BinaryOp::Gt => self.not_negative(less(up)),
            BinaryOp::Lt => self.not_negative(less(down)),
            BinaryOp::Ne => {
                let not_zero = |poly: Option<Poly>| less(poly.clone().filter(|poly| self.prove_nonneg(poly)));
                let (up, down) = (not_zero(up), not_zero(down));
                self.not_negative(up);
                self.not_negative(down);
            }
            BinaryOp::Eq if !self.divisible(gap) && !self.replaced(gap) => {
                self.not_negative(up);
                self.not_negative(down);
            }
            _ => {}
        }
    }

    /// `x % m == r`: `x - r` is a multiple of `m`.
    fn divisible(&mut self, gap: &Poly) -> bool {
        let found = gap.terms().find_map(|Term { coef, mono }| {
            let (1 | -1, [Atom::Mod(x, by)]) = (coef, mono.as_slice()) else { return None };
            let rest = gap.minus(&Term { coef, mono: mono.clone() }.into())?.scaled(-coef)?;
            (self.prove_below(&rest, by)).then_some((x.minus(&rest)?, (**by).clone()))
        });
        let Some((x, by)) = found else { return false };
        // A multiple of at least 1 is at least the divisor.
        if let Some(atom) =
            x.as_atom().and_then(Atom::as_var).filter(|_| self.prove_nonneg(&x.plus_const(-1).unwrap_or_default()))
        {
            let more = Poly::from(Atom::var(atom)).minus(&by);
            self.not_negative(more);
        }
        self.multiples.push((x, by));
        true
    }

    /// `symbol == value`: the symbol is replaced from now on.
    fn replaced(&mut self, gap: &Poly) -> bool {
        let found = gap.terms().find_map(|Term { coef, mono }| {
            let (1 | -1, [atom]) = (coef, mono.as_slice()) else { return None };
            let var = atom.as_var()?;
            let value = gap.minus(&Term { coef, mono: mono.clone() }.into())?.scaled(-coef)?;
            (!value.vars().contains(var)).then_some((var.clone(), value))
        });
        let Some((var, value)) = found else { return false };
        let interval = self.interval(&value);
        self.known.insert(var, Known::Index { min: value.clone(), last: value, interval });
        true
    }

    /// Adds `poly >= 0`.
    fn not_negative(&mut self, poly: Option<Poly>) {
        let Some(poly) = poly.filter(|poly| !self.prove_nonneg(poly)) else { return };
        let (bounded, ended) = (self.bounded(&poly), self.ended(&poly));
        if !bounded && !ended {
            self.facts.push(poly);
        }
    }

    /// `a * var + b >= 0` with numbers `a` and `b` bounds the variable; whether no more is to be said.
    fn bounded(&mut self, poly: &Poly) -> bool {
        let mut terms = poly.terms().filter(|term| !term.mono.is_empty());
        let (Some(Term { coef, mono }), None) = (terms.next(), terms.next()) else { return false };
        let [atom] = mono.as_slice() else { return false };
        let Some(var) = atom.as_var() else { return false };
        let (Some(offset), Some(magnitude)) = (poly.coef(&Vec::new()).checked_neg(), coef.checked_abs()) else {
            return false;
        };
        let bound = if coef > 0 {
            let least = offset.checked_add(magnitude - 1).map(|offset| offset.div_euclid(magnitude));
            Interval { lo: least.map_or(End::Below, End::At), hi: End::Above }
        } else {
            Interval {
                lo: End::Below,
                hi: offset.checked_neg().map_or(End::Above, |x| End::At(x.div_euclid(magnitude))),
            }
        };
        let var: Var = var.clone();
        match self.known.get_mut(&var) {
            Some(Known::Symbol(interval)) => *interval = interval.meet(bound),
            Some(Known::Index { min, last, interval }) => {
                *interval = interval.meet(bound);
                let (lo, hi) = (interval.least(), interval.greatest());
                let whole = |end: &mut Poly, value: Option<i128>| {
                    let known = end.as_const().is_some();
                    if let (true, Some(value)) = (known, value) {
                        *end = Poly::constant(value);
                    }
                    known
                };
                let (low, high) = (whole(min, lo), whole(last, hi));
                if coef > 0 && low || coef < 0 && high {
                    return true;
                }
            }
            None => return false,
        }
        matches!(self.known.get(&var), Some(Known::Symbol(_)))
    }

    /// `value - var >= 0` is the new end of an index where it is no larger than the one known; alike `var - value >= 0`.
    fn ended(&mut self, poly: &Poly) -> bool {
        let found = poly.terms().find_map(|Term { coef, mono }| {
            let (1 | -1, [atom]) = (coef, mono.as_slice()) else { return None };
            let var = atom.as_var().filter(|var| self.is_index(var))?;
            let value = poly.minus(&Term { coef, mono: mono.clone() }.into())?.scaled(-coef)?;
            (!value.vars().iter().any(|var| self.is_index(var))).then(|| (var.clone(), coef > 0, value))
        });
        let Some((var, from_below, value)) = found else { return false };
        let Some(Known::Index { min, last, .. }) = self.known.get(&var) else { return false };
        let gap = if from_below { value.minus(min) } else { last.minus(&value) };
        if !gap.is_some_and(|gap| self.prove_nonneg(&gap)) {
            return false;
        }
        if let Some(Known::Index { min, last, .. }) = self.known.get_mut(&var) {
            *(if from_below { min } else { last }) = value;
        }
        true
    }

    /// Writes what is known to be a multiple as one, wherever `divisor` divides the multiple: `c` becomes `4 * (c // 4)`.
    pub(super) fn in_multiples(&self, poly: &Poly, divisor: &Poly) -> Option<Poly> {
        let mut result = poly.clone();
        for (x, by) in &self.multiples {
            let Some((_, rest)) = divide::split(by, divisor) else { continue };
            let Some(atom) = lead(x).filter(|_| rest.is_zero()) else { continue };
            let (factor, others) = result.by_atom(&atom);
            if factor.is_zero() || factor.atoms().contains(&atom) {
                continue;
            }
            let quotient = Atom::Div(x.clone().into(), by.clone().into());
            let beside = x.minus(&atom.into())?;
            let written = by.times(&quotient.into())?.minus(&beside)?;
            result = others.plus(&factor.times(&written)?)?;
        }
        Some(result)
    }

    /// `4 * (c // 4)` is `c` again.
    pub(super) fn out_of_multiples(&self, poly: Poly) -> Option<Poly> {
        let mut result = poly;
        for (x, by) in &self.multiples {
            let quotient = Atom::Div(x.clone().into(), by.clone().into());
            let (factor, others) = result.by_atom(&quotient);
            if factor.is_zero() {
                continue;
            }
            let (whole, rest) = divide::split(&factor, by)?;
            result = others.plus(&whole.times(x)?)?.plus(&rest.times(&quotient.into())?)?;
        }
        Some(result)
    }
}

/// A variable that stands alone in `x`, once.
fn lead(x: &Poly) -> Option<Atom> {
    x.terms().find_map(|Term { coef, mono }| match mono.as_slice() {
        [atom] if coef == 1 && atom.as_var().is_some() => Some(atom.clone()),
        _ => None,
    })
}
