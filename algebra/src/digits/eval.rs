//! Symbolic evaluation to sums of digits. Where a division cuts through a digit it stops and says where to split.
//!
//! Every comparison of sizes is made at the sample extents only, so a result is a guess that the judge has to check.

use std::cell::RefCell;

use tilewright_ir::{BinaryOp, Bindings, Expr, UnaryOp, Var};

use super::sums::{Digit, Space, Sum};
use super::{Ordered, WIDE};
use crate::poly::{Atom, Key, Poly};
use crate::rewrite::Simplifier;

/// Why evaluation returned no sum.
#[derive(Clone, Debug)]
pub(super) enum Stop {
    /// A digit has to be split.
    Split {
        /// The digit.
        digit: Digit,
        /// The radix of its lower part.
        by: Poly,
    },
    /// There is no sum of digits.
    Fail,
}

/// The values of variables: sums over the digits of one space. A variable that is not listed is a symbolic extent.
pub(super) struct Env<'e> {
    vars: Vec<(&'e Var, Option<Sum>)>,
    space: &'e Space,
}

impl<'e> Env<'e> {
    /// Binds each variable to the index of one axis of `space`, in order.
    pub(super) fn indices(vars: &'e [Var], space: &'e Space) -> Self {
        let vars = vars.iter().enumerate().map(|(axis, var)| (var, space.index(axis))).collect();
        Self { vars, space }
    }

    /// Binds each variable to a sum over the digits of `space`, in order.
    pub(super) fn with_values(vars: &'e [Var], sums: &[Sum], space: &'e Space) -> Self {
        let vars = vars.iter().zip(sums.iter().cloned().map(Some)).collect();
        Self { vars, space }
    }
}

/// Evaluates expressions to sums of digits, and compares them at the samples.
pub(super) struct Evaluator<'f> {
    simplifier: Simplifier<'f>,
    samples: &'f [Bindings],
    /// Dividends without digits and divisors, with quotients and remainders: the same extents are divided again and again.
    divisions: RefCell<Vec<([Poly; 2], [Poly; 2])>>,
}

type Evaluated = Result<Sum, Stop>;

impl<'f> Evaluator<'f> {
    pub(super) fn new(simplifier: Simplifier<'f>, samples: &'f [Bindings]) -> Self {
        Self { simplifier, samples, divisions: RefCell::default() }
    }

    /// Returns a radix or weight as an expression.
    pub(super) fn emit(&self, poly: &Poly) -> Option<Expr> {
        self.simplifier.emit(poly, WIDE)
    }

    /// Returns extents, which hold no digits, as polynomials.
    pub(super) fn as_polys(&self, exprs: &[Expr]) -> Option<Vec<Poly>> {
        exprs.iter().map(|expr| self.simplifier.poly(expr)).collect()
    }

    /// Evaluates several expressions; stops at the first that cannot be evaluated.
    pub(super) fn eval_all(&self, exprs: &[Expr], env: &Env<'_>) -> Result<Vec<Sum>, Stop> {
        exprs.iter().map(|expr| self.eval(expr, env)).collect()
    }

    /// Evaluates an expression to a sum of digits.
    fn eval(&self, expr: &Expr, env: &Env<'_>) -> Evaluated {
        match expr {
            Expr::Int { value, .. } => Ok(Sum::number(Poly::constant(*value))),
            Expr::Var(var) => match env.vars.iter().find(|(bound, _)| *bound == var) {
                Some((_, value)) => value.clone().ok_or(Stop::Fail),
                None => Ok(Sum::number(Atom::var(var).into())),
            },
            Expr::Binary(op, lhs, rhs) => {
                let (a, b) = (self.eval(lhs, env)?, self.eval(rhs, env)?);
                self.binary(*op, &a, &b, env)
            }
            Expr::Unary(UnaryOp::Neg, operand) => self.eval(operand, env)?.times(&Poly::constant(-1)).ok_or(Stop::Fail),
            // The judge evaluates `abs` of a sum that is not negative; a negative one fails its check later.
            Expr::Call(tilewright_ir::MathFn::Abs, args) if args.len() == 1 => self.eval(&args[0], env),
            Expr::Select(condition, a, b) | Expr::IfThenElse(condition, a, b) => {
                self.check_splits(condition, env)?;
                match self.truth_value(condition, env) {
                    Some(true) => self.eval(a, env),
                    Some(false) => self.eval(b, env),
                    None => Err(Stop::Fail),
                }
            }
            Expr::Float { .. } | Expr::Unary(UnaryOp::Not | UnaryOp::BitNot, _) | Expr::Call(..) => Err(Stop::Fail),
            Expr::Cast(..) | Expr::Ramp { .. } | Expr::Broadcast { .. } | Expr::Load { .. } => Err(Stop::Fail),
        }
    }

    /// Evaluates an operator on two sums.
    fn binary(&self, op: BinaryOp, a: &Sum, b: &Sum, env: &Env<'_>) -> Evaluated {
        let power = |by: &Sum| {
            let by = by.as_offset().and_then(Poly::as_const).filter(|by| (0..31).contains(by));
            by.map(|by| Poly::constant(1 << by)).ok_or(Stop::Fail)
        };
        let divisor = || b.as_offset().filter(|by| self.always(by, |value| value >= 1)).ok_or(Stop::Fail);
        match op {
            BinaryOp::Add => a.plus(b).ok_or(Stop::Fail),
            BinaryOp::Sub => a.minus(b).ok_or(Stop::Fail),
            BinaryOp::Mul => match (a.as_offset(), b.as_offset()) {
                (_, Some(factor)) => a.times(factor).ok_or(Stop::Fail),
                (Some(factor), None) => b.times(factor).ok_or(Stop::Fail),
                (None, None) => Err(Stop::Fail),
            },
            BinaryOp::FloorDiv | BinaryOp::TruncDiv => Ok(self.divide(a, divisor()?, env)?.0),
            BinaryOp::FloorMod | BinaryOp::TruncMod => Ok(self.divide(a, divisor()?, env)?.1),
            BinaryOp::Shl => a.times(&power(b)?).ok_or(Stop::Fail),
            BinaryOp::Shr => Ok(self.divide(a, &power(b)?, env)?.0),
            // `x & (2^k - 1)` is `x % 2^k`.
            BinaryOp::BitAnd => {
                let mask = b.as_offset().and_then(Poly::as_const).filter(|mask| *mask >= 0);
                let power = mask.and_then(|mask| mask.checked_add(1)).filter(|power| power & (power - 1) == 0);
                Ok(self.divide(a, &Poly::constant(power.ok_or(Stop::Fail)?), env)?.1)
            }
            BinaryOp::Min | BinaryOp::Max => {
                let difference = b.minus(a).ok_or(Stop::Fail)?;
                let smaller = self.always_nonneg(&difference, env).ok_or(Stop::Fail)?;
                Ok(if smaller == (op == BinaryOp::Min) { a.clone() } else { b.clone() })
            }
            BinaryOp::Div | BinaryOp::BitOr | BinaryOp::BitXor | BinaryOp::And | BinaryOp::Or => Err(Stop::Fail),
            BinaryOp::Eq | BinaryOp::Ne | BinaryOp::Lt | BinaryOp::Le => Err(Stop::Fail),
            BinaryOp::Gt | BinaryOp::Ge => Err(Stop::Fail),
        }
    }

    /// Returns `Some(true)` if a sum is at least 0 for all values of its digits, `Some(false)` if it is always
    /// negative, and `None` if it may be either.
    fn always_nonneg(&self, sum: &Sum, env: &Env<'_>) -> Option<bool> {
        let ends: Vec<_> = self.samples.iter().map(|sample| ends(sum, env.space, sample)).collect::<Option<_>>()?;
        if ends.iter().all(|(low, _)| *low >= 0) {
            return Some(true);
        }
        ends.iter().all(|(_, high)| *high < 0).then_some(false)
    }

    /// Evaluates the sides of all comparisons in a condition, for the splits that they need. Parts that are no
    /// comparison are ignored.
    ///
    /// # Errors
    /// A digit that has to be split. A side that cannot be evaluated is no error.
    pub(super) fn check_splits(&self, condition: &Expr, env: &Env<'_>) -> Result<(), Stop> {
        match condition {
            Expr::Unary(UnaryOp::Not, operand) => self.check_splits(operand, env),
            Expr::Binary(BinaryOp::And | BinaryOp::Or, lhs, rhs) => {
                self.check_splits(lhs, env)?;
                self.check_splits(rhs, env)
            }
            Expr::Binary(_, lhs, rhs) => {
                for side in [lhs, rhs] {
                    if let Err(stop @ Stop::Split { .. }) = self.eval(side, env) {
                        return Err(stop);
                    }
                }
                Ok(())
            }
            Expr::Int { .. } | Expr::Float { .. } | Expr::Var(_) | Expr::Unary(..) | Expr::Call(..) => Ok(()),
            Expr::Select(..) | Expr::IfThenElse(..) | Expr::Cast(..) => Ok(()),
            Expr::Ramp { .. } | Expr::Broadcast { .. } | Expr::Load { .. } => Ok(()),
        }
    }

    /// Returns the truth value of a condition, if it is the same for all values of the digits.
    fn truth_value(&self, condition: &Expr, env: &Env<'_>) -> Option<bool> {
        match condition {
            Expr::Int { value, .. } => Some(*value != 0),
            Expr::Unary(UnaryOp::Not, operand) => self.truth_value(operand, env).map(|value| !value),
            Expr::Binary(BinaryOp::And, a, b) => match (self.truth_value(a, env), self.truth_value(b, env)) {
                (Some(false), _) | (_, Some(false)) => Some(false),
                (Some(true), Some(true)) => Some(true),
                _ => None,
            },
            Expr::Binary(op, a, b) => {
                let (a, b) = (self.eval(a, env).ok()?, self.eval(b, env).ok()?);
                match op {
                    BinaryOp::Lt => self.always_nonneg(&a.minus(&b)?, env).map(|value| !value),
                    BinaryOp::Ge => self.always_nonneg(&a.minus(&b)?, env),
                    BinaryOp::Le => self.always_nonneg(&b.minus(&a)?, env),
                    BinaryOp::Gt => self.always_nonneg(&b.minus(&a)?, env).map(|value| !value),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// Divides a sum by a polynomial and returns quotient and remainder.
    ///
    /// # Errors
    /// The digit that the division cuts through, or a failure.
    fn divide(&self, sum: &Sum, by: &Poly, env: &Env<'_>) -> Result<(Sum, Sum), Stop> {
        if let Some(free) = sum.as_offset() {
            let [quotient, rest] = self.divide_free(free, by).ok_or(Stop::Fail)?;
            return Ok((Sum::number(quotient), Sum::number(rest)));
        }
        let (mut quotient, mut rest) = (Sum::default(), Sum::default());
        for (digit, coefficient) in &sum.places {
            let (q, r) = exact_part(coefficient, by).ok_or(Stop::Fail)?;
            quotient.places.extend((!q.is_zero()).then_some((*digit, q)));
            rest.places.extend((!r.is_zero()).then_some((*digit, r)));
        }
        (quotient.offset, rest.offset) = exact_part(&sum.offset, by).ok_or(Stop::Fail)?;
        for times in self.carries(&rest, by, env) {
            let moved = by.scaled(times).and_then(|taken| rest.offset.minus(&taken)).ok_or(Stop::Fail)?;
            let rest = Sum { places: rest.places.clone(), offset: moved };
            if self.is_within(&rest, by, env) {
                return Ok((quotient.plus_const(times).ok_or(Stop::Fail)?, rest));
            }
        }
        Err(self.split_at_divisor(&rest, by, env).unwrap_or(Stop::Fail))
    }

    /// Quotient and remainder of a dividend without digits.
    fn divide_free(&self, free: &Poly, by: &Poly) -> Option<[Poly; 2]> {
        let is_same = |known: &&([Poly; 2], [Poly; 2])| known.0[0] == *free && known.0[1] == *by;
        if let Some((_, known)) = self.divisions.borrow().iter().find(is_same) {
            return Some(known.clone());
        }
        let (quotient, rest) = self.simplifier.divide(free, by)?;
        let found = [quotient, rest];
        self.divisions.borrow_mut().push(([free.clone(), by.clone()], found.clone()));
        Some(found)
    }

    /// Returns how many divisors may have to be moved from the remainder to the quotient, so that the remainder is in
    /// `0..by`: the offset of a sum may be negative or too large.
    fn carries(&self, rest: &Sum, by: &Poly, env: &Env<'_>) -> Vec<i128> {
        let sample = self.samples.first();
        let low = sample.and_then(|sample| ends(rest, env.space, sample)).map(|(low, _)| low);
        match (low, by.as_const()) {
            (Some(low), Some(by)) => vec![low.div_euclid(by)],
            _ => vec![0, -1, 1],
        }
    }

    /// Whether a sum is in `0..by` at every sample, for all values of its digits.
    fn is_within(&self, rest: &Sum, by: &Poly, env: &Env<'_>) -> bool {
        self.samples.iter().all(|sample| match (ends(rest, env.space, sample), value(by, sample)) {
            (Some((low, high)), Some(by)) => low >= 0 && high < by,
            _ => false,
        })
    }

    /// Returns the split of a digit that reaches across the divisor.
    fn split_at_divisor(&self, rest: &Sum, by: &Poly, env: &Env<'_>) -> Option<Stop> {
        rest.places.iter().find_map(|(digit, coefficient)| {
            let mut at = by.divided(&coefficient.as_term()?)?;
            if self.always(&at, |value| value < 0) {
                at = at.scaled(-1)?;
            }
            let fits = match env.space.radix(*digit) {
                Some(radix) => radix.divided(&at.as_term()?).is_some_and(|rest| rest.as_const() != Some(1)),
                None => true,
            };
            let reaches = self.samples.iter().any(|sample| {
                extent(env.space, *digit, sample).zip(value(&at, sample)).is_some_and(|(extent, at)| extent > at)
            });
            let stop = Stop::Split { digit: *digit, by: at.clone() };
            (fits && reaches && at.as_const() != Some(1)).then_some(stop)
        })
    }

    /// Whether a condition holds for the value of a polynomial at every sample.
    fn always(&self, poly: &Poly, holds: impl Fn(i128) -> bool) -> bool {
        self.samples.iter().all(|sample| value(poly, sample).is_some_and(&holds))
    }

    /// Returns the digits of a sum sorted by weight, with `true`, if each weight exceeds the sum of all smaller
    /// digits; otherwise the digits in their stored order, with `false`.
    pub(super) fn ordered(&self, space: &Space, sum: &Sum) -> Option<Ordered> {
        // Over all samples together: at a single one two weights may be the same.
        let size = |weight: &Poly| {
            self.samples.iter().try_fold(0i128, |sum, sample| sum.checked_add(value(weight, sample)?.checked_abs()?))
        };
        let mut places =
            sum.places.iter().map(|(digit, weight)| Some((size(weight)?, *digit))).collect::<Option<Vec<_>>>()?;
        places.sort_unstable();
        let order: Vec<Digit> = places.into_iter().map(|(_, digit)| digit).collect();
        let separated = (0..order.len()).all(|position| {
            let below = order[..position].iter().filter_map(|digit| Some((*digit, sum.places.get(digit)?.clone())));
            let below = Sum { places: below.collect(), offset: Poly::default() };
            self.samples.iter().all(|sample| {
                let room = sum.places.get(&order[position]).and_then(|weight| value(weight, sample));
                let span = ends(&below, space, sample).and_then(|(low, high)| high.checked_sub(low));
                room.zip(span).is_some_and(|(room, span)| span < room.saturating_abs())
            })
        });
        Some(if separated { (order, true) } else { (sum.places.keys().copied().collect(), false) })
    }

    /// Returns values of a sum's digits at which it reaches the last physical index, `extent - 1`, as a proof that the
    /// extent is tight. `None` if the obvious choice does not reach it.
    pub(super) fn witness(&self, space: &Space, sum: &Sum, order: &[Digit], extent: &Expr) -> Option<Vec<Expr>> {
        let values = order.iter().map(|digit| self.end(space, sum, *digit)).collect::<Option<Vec<_>>>()?;
        let reaches = self.samples.iter().all(|sample| reaches(space, sum, order, &values, extent, sample).is_some());
        reaches.then_some(values)
    }

    /// Returns the value that a digit takes at the end of its axis: the digit of the last index if the sum holds the
    /// top digit of the axis, otherwise the radix less 1. A digit with a negative weight is 0 there.
    fn end(&self, space: &Space, sum: &Sum, digit: Digit) -> Option<Expr> {
        let (axis, number) = digit;
        if self.always(sum.places.get(&digit)?, |weight| weight < 0) {
            return Some(Expr::int(0));
        }
        let has_top = sum.places.keys().any(|other| other.0 == axis && space.is_top(*other));
        let one = Expr::int(1);
        if !has_top {
            return self.emit(&space.radix(digit)?.plus_const(-1)?);
        }
        let last = self.emit(&space.extents()[axis])? - one;
        let part = if number == 0 { last } else { last.floor_div(self.emit(&space.stride(digit)?)?) };
        Some(match space.radix(digit) {
            Some(radix) => part.floor_mod(self.emit(radix)?),
            None => part,
        })
    }
}

/// Returns `Some(())` if the values of the digits form an index inside the box, and the sum is `end - 1` there.
fn reaches(space: &Space, sum: &Sum, order: &[Digit], values: &[Expr], end: &Expr, sample: &Bindings) -> Option<()> {
    let mut reached = value(&sum.offset, sample)?;
    let mut point = vec![0i128; space.extents().len()];
    for (digit, expr) in order.iter().zip(values) {
        let at = expr.eval_index(sample).ok()?;
        (0..extent(space, *digit, sample)?).contains(&at).then_some(())?;
        reached = reached.checked_add(value(sum.places.get(digit)?, sample)?.checked_mul(at)?)?;
        point[digit.0] = point[digit.0].checked_add(value(&space.stride(*digit)?, sample)?.checked_mul(at)?)?;
    }
    let inside =
        point.iter().zip(space.extents()).all(|(at, extent)| value(extent, sample).is_some_and(|extent| *at < extent));
    (inside && end.eval_index(sample).ok()? == reached + 1).then_some(())
}

/// Splits a polynomial into the terms that `by` divides, divided, and the other terms.
fn exact_part(poly: &Poly, by: &Poly) -> Option<(Poly, Poly)> {
    let Some(term) = by.as_term() else {
        // A sum divides as a whole or not at all.
        return Some((Poly::default(), poly.clone()));
    };
    let (divided, rest) = poly.split(|other| other.divided(&term).is_some());
    Some((divided.divided(&term)?, rest))
}

/// Returns the value of a polynomial at a sample.
fn value(poly: &Poly, sample: &Bindings) -> Option<i128> {
    poly.terms().try_fold(0i128, |sum, term| {
        let product =
            term.mono.iter().try_fold(term.coef, |product, atom| product.checked_mul(atom_value(atom, sample)?));
        sum.checked_add(product?)
    })
}

/// Returns the value of an atom at a sample.
fn atom_value(atom: &Atom, sample: &Bindings) -> Option<i128> {
    match atom {
        Atom::Opaque(Key(expr)) => expr.eval_index(sample).ok(),
        Atom::Div(a, b) => value(a, sample)?.checked_div_euclid(value(b, sample)?),
        Atom::Mod(a, b) => value(a, sample)?.checked_rem_euclid(value(b, sample)?),
    }
}

/// Returns the number of values of a digit at a sample.
fn extent(space: &Space, digit: Digit, sample: &Bindings) -> Option<i128> {
    match space.radix(digit) {
        Some(radix) => value(radix, sample),
        None => part_extent(space, digit, sample),
    }
}

/// Returns the number of values of a top digit at a sample: the extent of its axis, divided by its stride and rounded
/// up.
fn part_extent(space: &Space, digit: Digit, sample: &Bindings) -> Option<i128> {
    let (whole, stride) = (value(&space.extents()[digit.0], sample)?, value(&space.stride(digit)?, sample)?);
    whole.checked_add(stride)?.checked_sub(1)?.checked_div_euclid(stride)
}

/// Returns the least and the greatest value of a sum at a sample. Digits of one axis that stand together up to the top
/// digit count as one number: its greatest value follows from the extent of the axis, which is less than all digits at
/// their greatest values.
fn ends(sum: &Sum, space: &Space, sample: &Bindings) -> Option<(i128, i128)> {
    let (mut low, mut high) = (value(&sum.offset, sample)?, value(&sum.offset, sample)?);
    let mut add = |weight: i128, max: i128| {
        let product = weight.checked_mul(max)?;
        if product < 0 {
            low = low.checked_add(product)?;
        } else {
            high = high.checked_add(product)?;
        }
        Some(())
    };
    // From the top digit down: `above` is the lowest digit, with its weight, of a number that is not added yet.
    let mut above: Option<(Digit, i128)> = None;
    for (digit, weight) in sum.places.iter().rev() {
        let weight = value(weight, sample)?;
        let joined = match above {
            Some((upper, upper_weight)) if upper.0 == digit.0 => {
                let radix = space.radix(*digit).and_then(|radix| value(radix, sample));
                upper.1 == digit.1 + 1 && radix.and_then(|radix| radix.checked_mul(weight)) == Some(upper_weight)
            }
            Some(_) | None => space.is_top(*digit),
        };
        if let Some((upper, upper_weight)) = above
            && !(joined && upper.0 == digit.0)
        {
            add(upper_weight, part_extent(space, upper, sample)? - 1)?;
            above = None;
        }
        if joined {
            above = Some((*digit, weight));
        } else {
            add(weight, extent(space, *digit, sample)? - 1)?;
        }
    }
    if let Some((upper, upper_weight)) = above {
        add(upper_weight, part_extent(space, upper, sample)? - 1)?;
    }
    Some((low, high))
}
