//! Intervals of polynomials and expressions, computed from those of the variables.
//!
//! Every interval contains all values; it may contain others. Values are those over the integers, except that an
//! unsigned expression which may leave its type gets the range of the type, because unsigned arithmetic wraps.

use tilewright_ir::{BinaryOp, Expr, MathFn, ScalarType, UnaryOp};

use super::interval::{End, Interval};
use super::poly::{Atom, Key, Poly};
use super::ranges::{Known, Ranges};

impl Ranges {
    /// Returns an interval that contains all values of a polynomial: the sum of the products of its atoms' intervals.
    pub(super) fn interval(&self, poly: &Poly) -> Interval {
        let products = poly.pairs().map(|(mono, coef)| {
            let factors = mono.iter().map(|atom| self.atom_interval(atom));
            factors.fold(Interval::point(coef), Interval::times)
        });
        products.fold(Interval::point(0), Interval::plus)
    }

    /// Returns an interval that contains all values of an atom.
    pub(super) fn atom_interval(&self, atom: &Atom) -> Interval {
        match atom {
            Atom::Opaque(Key(expr)) => self.expr_interval(expr),
            Atom::Div(a, b) => self.interval(a).divided(self.interval(b)),
            Atom::Mod(a, b) => self.interval(a).remainder(self.interval(b)),
        }
    }

    /// Returns an interval that contains all values of an integer expression of one lane, over the integers. It is
    /// [`Interval::ALL`] for variables about which nothing is known, and for loads, vectors and floats.
    pub(super) fn expr_interval(&self, expr: &Expr) -> Interval {
        let interval = |expr: &Expr| self.expr_interval(expr);
        match expr {
            Expr::Int { value, .. } => Interval::point(*value),
            Expr::Var(var) => match self.known.get(var) {
                Some(Known::Symbol(interval) | Known::Index { interval, .. }) => *interval,
                None => Interval::ALL,
            },
            Expr::Binary(op, a, b) => unless_wrapping(expr, self.binary_interval(*op, a, b)),
            Expr::Unary(UnaryOp::Neg, a) => unless_wrapping(expr, interval(a).negated()),
            Expr::Call(MathFn::Abs, args) => args.first().map_or(Interval::ALL, |arg| {
                let value = interval(arg);
                // The absolute value of the least value of a signed type wraps around to that value.
                let least = arg.dtype().scalar.integer_range().map_or(i128::MIN, |(least, _)| least);
                let wraps = least < 0 && !value.is_at_least(least.saturating_add(1));
                if wraps { Interval::ALL } else { value.max(value.negated()).max(Interval::point(0)) }
            }),
            Expr::Select(c, a, b) | Expr::IfThenElse(c, a, b) => match self.decided_by_intervals(c) {
                Some(holds) => interval(if holds { a } else { b }),
                None => interval(a).hull(interval(b)),
            },
            // A conversion keeps the value where it fits the new type; where it does not, nothing is claimed.
            Expr::Cast(ty, value) if value.dtype().scalar.is_integer() && ty.scalar.is_integer() => {
                let (lo, hi) = ty.scalar.integer_range().unwrap_or((0, 0));
                let value = match &**value {
                    Expr::Load { buffer, .. } if buffer.dtype.is_scalar() => {
                        let range = buffer.dtype.scalar.integer_range();
                        range.map_or(Interval::ALL, |(least, greatest)| Interval::new(least, greatest))
                    }
                    value => interval(value),
                };
                if value.within(lo, hi) { value } else { Interval::ALL }
            }
            Expr::Float { .. } | Expr::Unary(UnaryOp::Not | UnaryOp::BitNot, _) | Expr::Call(..) => Interval::ALL,
            Expr::Cast(..) | Expr::Ramp { .. } | Expr::Broadcast { .. } | Expr::Load { .. } => Interval::ALL,
        }
    }

    /// Returns an interval of `a op b`; a single point if both operands are constant.
    fn binary_interval(&self, op: BinaryOp, a: &Expr, b: &Expr) -> Interval {
        let (x, y) = (self.expr_interval(a), self.expr_interval(b));
        if let (Some(x), Some(y)) = (x.only(), y.only())
            && let Ok(value) = op.eval_exact(x, y, a.dtype().scalar)
        {
            return Interval::point(value);
        }
        let nonneg = x.is_at_least(0);
        match op {
            BinaryOp::Add => x.plus(y),
            BinaryOp::Sub => x.plus(y.negated()),
            BinaryOp::Mul => x.times(y),
            BinaryOp::FloorDiv if y.is_at_least(1) => x.divided(y),
            BinaryOp::FloorMod if y.is_at_least(1) => x.remainder(y),
            BinaryOp::TruncDiv if y.is_at_least(1) && nonneg => x.divided(y),
            BinaryOp::TruncMod if y.is_at_least(1) && nonneg => x.remainder(y),
            BinaryOp::Min => x.min(y),
            BinaryOp::Max => x.max(y),
            // x & y has no bit that y lacks, so it is at most y if y is not negative, whatever x is.
            BinaryOp::BitAnd if y.is_at_least(0) => Interval { lo: End::At(0), hi: y.hi },
            BinaryOp::BitAnd if nonneg => Interval { lo: End::At(0), hi: x.hi },
            BinaryOp::BitOr | BinaryOp::BitXor if nonneg && y.is_at_least(0) => Interval {
                lo: End::At(0),
                hi: match (x.hi, y.hi) {
                    (End::At(x), End::At(y)) => End::At(all_ones(x.max(y))),
                    _ => End::Above,
                },
            },
            BinaryOp::Shr => match y.least().filter(|&least| y.greatest() == Some(least)) {
                Some(amount @ 0..=62) => x.divided(Interval::point(1 << amount)),
                _ => Interval::ALL,
            },
            BinaryOp::Shl => match y.least().filter(|&least| y.greatest() == Some(least)) {
                Some(amount @ 0..=62) => x.times(Interval::point(1 << amount)),
                _ => Interval::ALL,
            },
            BinaryOp::FloorDiv | BinaryOp::FloorMod | BinaryOp::TruncDiv | BinaryOp::TruncMod => Interval::ALL,
            BinaryOp::BitAnd | BinaryOp::BitOr | BinaryOp::BitXor | BinaryOp::Div => Interval::ALL,
            BinaryOp::Eq | BinaryOp::Ne | BinaryOp::Lt | BinaryOp::Le | BinaryOp::Gt | BinaryOp::Ge => Interval::ALL,
            BinaryOp::And | BinaryOp::Or => Interval::ALL,
        }
    }

    /// Returns the truth value of a comparison if the intervals of its two sides decide it, and of a constant. Other
    /// conditions give `None`.
    fn decided_by_intervals(&self, condition: &Expr) -> Option<bool> {
        let Expr::Binary(op, a, b) = condition else { return condition.as_const_int().map(|value| value != 0) };
        let (x, y) = (self.expr_interval(a), self.expr_interval(b));
        let decide = |yes: bool, no: bool| if yes { Some(true) } else { no.then_some(false) };
        match op {
            BinaryOp::Lt => decide(x.hi < y.lo, x.lo >= y.hi),
            BinaryOp::Le => decide(x.hi <= y.lo, x.lo > y.hi),
            BinaryOp::Gt => decide(x.lo > y.hi, x.hi <= y.lo),
            BinaryOp::Ge => decide(x.lo >= y.hi, x.hi < y.lo),
            _ => None,
        }
    }
}

/// The least number of the form `2^n - 1` that is not below `value`.
fn all_ones(value: i128) -> i128 {
    let bits = 128 - value.leading_zeros();
    if bits >= 127 { i128::MAX } else { (1 << bits) - 1 }
}

/// Returns the range of the type for an unsigned expression whose result may leave the type, because it then wraps
/// around; otherwise the result itself.
fn unless_wrapping(expr: &Expr, result: Interval) -> Interval {
    let range = scalar_of(expr).integer_range().filter(|(lo, _)| *lo == 0);
    range.filter(|(lo, hi)| !result.within(*lo, *hi)).map_or(result, |(lo, hi)| Interval::new(lo, hi))
}

/// The element type of an expression. That of a sum, a product or a division is the one of its first operand, so the other
/// operands need not be looked at: intervals are asked of every part of an expression.
fn scalar_of(mut expr: &Expr) -> ScalarType {
    while let Expr::Binary(
        BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul | BinaryOp::FloorDiv | BinaryOp::FloorMod | BinaryOp::BitXor,
        first,
        _,
    ) = expr
    {
        expr = first;
    }
    expr.dtype().scalar
}
