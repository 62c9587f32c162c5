//! Assumptions about symbolic extents, and conditions of branches: `c % 4 == 0`, `n <= 1024`, `i < 4`.
//!
//! An assumption is stored in the form in which the other modules can use it: as an interval of a variable, as a
//! tighter end of an index, as a divisibility, as a polynomial that is not negative, or at least as a condition that
//! can be recognised when it appears again. An assumption that fits none of these forms is lost, which makes later
//! proofs weaker but never wrong.

use tilewright_ir::{BinaryOp, Expr, UnaryOp, Var};

use super::divide;
use super::interval::{End, Interval};
use super::logic::negate;
use super::poly::{Atom, Poly, Term};
use super::ranges::{Known, Ranges};
use super::rewrite::Simplifier;

impl Ranges {
    /// Adds a condition that holds. The simplifier uses bounds and divisibility; any other condition is recognised
    /// only where it appears again in the same form. Variables of the condition about which nothing is known are taken
    /// to be symbolic extents, which are at least 1.
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
                    self.add_comparison(*op, &gap);
                }
            }
            Expr::Int { .. } | Expr::Float { .. } | Expr::Var(_) | Expr::Unary(..) | Expr::Call(..) => {}
            Expr::Select(..) | Expr::IfThenElse(..) | Expr::Cast(..) => {}
            Expr::Ramp { .. } | Expr::Broadcast { .. } | Expr::Load { .. } => {}
        }
        self.truths.push(condition.clone());
        self
    }

    /// Adds the condition `gap op 0`. Operators that are not comparisons add nothing.
    fn add_comparison(&mut self, op: BinaryOp, gap: &Poly) {
        let (up, down) = (Some(gap.clone()), gap.scaled(-1));
        let less = |poly: Option<Poly>| poly.and_then(|poly| poly.plus_const(-1));
        match op {
            BinaryOp::Ge => self.add_nonneg(up),
            BinaryOp::Le => self.add_nonneg(down),
            BinaryOp::Gt => self.add_nonneg(less(up)),
            BinaryOp::Lt => self.add_nonneg(less(down)),
            BinaryOp::Ne => {
                let not_zero = |poly: Option<Poly>| less(poly.clone().filter(|poly| self.prove_nonneg(poly)));
                let (up, down) = (not_zero(up), not_zero(down));
                self.add_nonneg(up);
                self.add_nonneg(down);
            }
            BinaryOp::Eq if !self.add_divisibility(gap) && !self.add_equality(gap) => {
                self.add_nonneg(up);
                self.add_nonneg(down);
            }
            // An equality that was taken as a divisibility or as a replacement says nothing more.
            BinaryOp::Eq => {}
            BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul | BinaryOp::Div | BinaryOp::Min | BinaryOp::Max => {}
            BinaryOp::FloorDiv | BinaryOp::FloorMod | BinaryOp::TruncDiv | BinaryOp::TruncMod => {}
            BinaryOp::And | BinaryOp::Or | BinaryOp::BitAnd | BinaryOp::BitOr | BinaryOp::BitXor => {}
            BinaryOp::Shl | BinaryOp::Shr => {}
        }
    }

    /// Adds `gap == 0` if it has the form `x % m - r == 0` with `0 <= r < m`: then `x - r` is a multiple of `m`.
    /// Returns whether `gap` has this form.
    fn add_divisibility(&mut self, gap: &Poly) -> bool {
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
            self.add_nonneg(more);
        }
        self.multiples.push((x, by));
        true
    }

    /// Adds `gap == 0` if it has the form `symbol == value`, where `value` does not use the symbol: the symbol is
    /// replaced by its value from now on. Returns whether `gap` has this form.
    fn add_equality(&mut self, gap: &Poly) -> bool {
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

    /// Adds `poly >= 0`, unless it is `None` or already follows from what is known.
    fn add_nonneg(&mut self, poly: Option<Poly>) {
        let Some(poly) = poly.filter(|poly| !self.prove_nonneg(poly)) else { return };
        let (in_interval, at_index_end) = (self.tighten_interval(&poly), self.tighten_index_end(&poly));
        if !in_interval && !at_index_end {
            self.facts.push(poly);
        }
    }

    /// Adds `a * var + b >= 0`, for constants `a` and `b`, to the interval of the variable. Returns whether the
    /// interval now says all that the condition does; if not, the caller keeps the condition as a fact as well.
    fn tighten_interval(&mut self, poly: &Poly) -> bool {
        let mut terms = poly.terms().filter(|term| !term.mono.is_empty());
        let (Some(Term { coef, mono }), None) = (terms.next(), terms.next()) else { return false };
        let [atom] = mono.as_slice() else { return false };
        let Some(var) = atom.as_var() else { return false };
        let (Some(offset), Some(magnitude)) = (poly.coef(&Vec::new()).checked_neg(), coef.checked_abs()) else {
            return false;
        };
        // a * var + b >= 0 is var >= ceil(-b / a) for positive a, and var <= floor(b / -a) for negative a.
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

    /// Adds `value - var >= 0` or `var - value >= 0` as a new last or first value of the index `var`. The new end must
    /// be a polynomial in symbolic extents, and provably at least as tight as the old one. Returns whether it was
    /// taken.
    fn tighten_index_end(&mut self, poly: &Poly) -> bool {
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

    /// Replaces each value that is known to be a multiple by its quotient, wherever `divisor` divides the factor: with
    /// `c % 4 == 0`, `c` becomes `4 * (c // 4)`. Division then sees the factor. Returns `None` if a coefficient leaves
    /// 128 bits.
    pub(super) fn written_in_multiples(&self, poly: &Poly, divisor: &Poly) -> Option<Poly> {
        let mut result = poly.clone();
        for (x, by) in &self.multiples {
            let Some((_, rest)) = divide::split(by, divisor) else { continue };
            let Some(atom) = lone_variable(x).filter(|_| rest.is_zero()) else { continue };
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

    /// Undoes [`Ranges::written_in_multiples`]: with `c % 4 == 0`, `4 * (c // 4)` becomes `c` again.
    pub(super) fn without_multiples(&self, poly: Poly) -> Option<Poly> {
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

/// Returns a variable that is a term of `x` by itself, with the coefficient 1.
fn lone_variable(x: &Poly) -> Option<Atom> {
    x.terms().find_map(|Term { coef, mono }| match mono.as_slice() {
        [atom] if coef == 1 && atom.as_var().is_some() => Some(atom.clone()),
        _ => None,
    })
}
