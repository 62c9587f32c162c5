//! Simplification of expressions over the integers, with floor division.
//!
//! ```text
//! ((n*32 + (c // 4 * 4 + c % 4) // 4) * 64 + h) % 64   with h < 64   becomes   h
//! ```
//!
//! An arithmetic expression becomes a polynomial ([`super::poly`]). On the way, quotients and remainders are
//! simplified ([`Simplifier::divide`]), and joined again where `k * (x // k) + x % k` appears. Expressions that have
//! no such form (floats, vectors, unsigned integers, a divisor that might be 0) keep their structure, and only their
//! operands are simplified.

use std::cell::Cell;

use tilewright_ir::sabotage;
use tilewright_ir::{BinaryOp, Expr, SharedExpr, TypeClass, UnaryOp};

use super::bits::xor_of;
use super::poly::{Atom, Key, Poly, Term};
use super::ranges::Ranges;
use super::work;

/// Steps before an expression is returned as it is.
const FUEL: u32 = 20_000;

/// Simplifies expressions under the ranges of their variables.
pub struct Simplifier<'a> {
    pub(super) ranges: &'a Ranges,
    /// Steps left. A subexpression may be visited once for each level around it, so deep nesting needs a limit.
    fuel: Cell<u32>,
    /// Whether stored values are simplified: integers read from memory may wrap around, so arithmetic on them keeps its
    /// structure.
    values: bool,
}

impl<'a> Simplifier<'a> {
    /// For indices, extents and conditions, which are defined over the integers.
    pub fn new(ranges: &'a Ranges) -> Self {
        Self { ranges, values: false, fuel: Cell::new(FUEL) }
    }

    /// For values that are stored. Arithmetic on integers from memory wraps, and is left alone.
    pub fn for_values(ranges: &'a Ranges) -> Self {
        Self { ranges, values: true, fuel: Cell::new(FUEL) }
    }

    /// Returns an equal expression with fewer or simpler operations; the expression itself if the steps are used up.
    pub fn simplify(&self, expr: &Expr) -> Expr {
        let _limit = work::limit(work::EXPRESSION);
        if !self.step() {
            return expr.clone();
        }
        if let Expr::Load { buffer, indices } = expr {
            let simplifier = Self { ranges: self.ranges, values: false, fuel: Cell::new(self.fuel.get()) };
            let indices = indices.iter().map(|index| simplifier.simplify(index)).collect();
            return Expr::Load { buffer: buffer.clone(), indices };
        }
        let fixed = matches!(expr, Expr::Var(var) if self.ranges.fixed(var).is_some());
        if is_index_type(expr) && (fixed || is_arithmetic(expr)) && !self.may_wrap(expr) {
            let kept = |result: &Expr| !self.escapes(result) && loads(result) == loads(expr);
            let normal = self.poly(expr).and_then(|poly| self.emit(&poly, expr.dtype().scalar));
            if let Some(result) = normal.filter(kept) {
                return result;
            }
        }
        self.structural(expr)
    }

    /// Takes one step. Returns whether there was one left.
    fn step(&self) -> bool {
        let left = self.fuel.get();
        self.fuel.set(left.saturating_sub(1));
        left > 0 && work::step()
    }

    /// Returns the expression as a polynomial; `None` if it is no signed integer of one lane, or if a division in it
    /// might trap.
    pub(super) fn poly(&self, expr: &Expr) -> Option<Poly> {
        let _limit = work::limit(work::EXPRESSION);
        if !self.step() || !is_index_type(expr) {
            return None;
        }
        match expr {
            Expr::Int { value, .. } => Some(Poly::constant(*value)),
            Expr::Var(var) => Some(self.ranges.fixed(var).cloned().unwrap_or_else(|| Atom::var(var).into())),
            Expr::Unary(UnaryOp::Neg, a) => self.poly(a)?.scaled(-1),
            Expr::Binary(op, a, b) => self.binary_poly(*op, a, b, expr),
            Expr::Load { .. } if self.values => None,
            Expr::Float { .. } | Expr::Unary(UnaryOp::Not | UnaryOp::BitNot, _) | Expr::Call(..) => self.opaque(expr),
            Expr::Select(..) | Expr::IfThenElse(..) | Expr::Cast(..) | Expr::Load { .. } => self.opaque(expr),
            Expr::Ramp { .. } | Expr::Broadcast { .. } => self.opaque(expr),
        }
    }

    /// Returns the polynomial of `a op b`, which is the expression `whole`.
    fn binary_poly(&self, op: BinaryOp, a: &Expr, b: &Expr, whole: &Expr) -> Option<Poly> {
        let both = || Some((self.poly(a)?, self.poly(b)?));
        match op {
            BinaryOp::Add => both().and_then(|(a, b)| self.joined(a.plus(&b)?)),
            BinaryOp::Sub => both().and_then(|(a, b)| self.joined(a.minus(&b)?)),
            BinaryOp::Mul => both().and_then(|(a, b)| self.joined(a.times(&b)?)),
            BinaryOp::FloorDiv => both().and_then(|(a, b)| self.divide(&a, &b)).map(|(quotient, _)| quotient),
            BinaryOp::FloorMod => both().and_then(|(a, b)| self.divide(&a, &b)).map(|(_, remainder)| remainder),
            BinaryOp::TruncDiv | BinaryOp::TruncMod => {
                let (a, b) = both()?;
                // For a dividend that is not negative, truncating and floor division agree. Otherwise the division is kept,
                // and `divide` only shows that the divisor is positive, so that it cannot trap.
                let divided = self.divide(&a, &b)?;
                if self.ranges.prove_nonneg(&a) {
                    return Some(if op == BinaryOp::TruncDiv { divided.0 } else { divided.1 });
                }
                self.opaque(whole)
            }
            BinaryOp::Min | BinaryOp::Max => {
                let (x, y) = both()?;
                let (least, greatest) = if op == BinaryOp::Min { (&x, &y) } else { (&y, &x) };
                if self.ranges.prove_nonneg(&y.minus(&x)?) {
                    return Some(least.clone());
                }
                if self.ranges.prove_nonneg(&x.minus(&y)?) {
                    return Some(greatest.clone());
                }
                self.opaque(whole)
            }
            BinaryOp::Shl | BinaryOp::Shr => {
                let amount = self.poly(b)?.as_const()?;
                (0..i128::from(whole.dtype().scalar.bits())).contains(&amount).then_some(())?;
                self.opaque(whole)
            }
            BinaryOp::BitAnd | BinaryOp::BitOr | BinaryOp::BitXor => self.opaque(whole),
            BinaryOp::Div | BinaryOp::Eq | BinaryOp::Ne | BinaryOp::Lt | BinaryOp::Le => None,
            BinaryOp::Gt | BinaryOp::Ge | BinaryOp::And | BinaryOp::Or => None,
        }
    }

    /// Returns an expression that is no polynomial as an atom. Its operands are simplified first, which may turn it
    /// into a polynomial after all.
    fn opaque(&self, expr: &Expr) -> Option<Poly> {
        let inner = self.structural(expr);
        if is_arithmetic(&inner) && !same_operator(&inner, expr) {
            return self.poly(&inner);
        }
        match inner {
            Expr::Int { value, .. } => Some(Poly::constant(value)),
            _ => Some(Atom::Opaque(Key(inner)).into()),
        }
    }

    /// Replaces `c*k*(x // k) + c*(x % k)` by `c*x` wherever both terms occur.
    fn joined(&self, mut poly: Poly) -> Option<Poly> {
        if !self.ranges.multiples.is_empty() {
            poly = self.ranges.without_multiples(poly)?;
        }
        // Each replacement removes a remainder; a sum without any is done.
        loop {
            let next = poly.terms().find_map(|term| self.join_term(&poly, &term));
            let Some(next) = next else { return Some(poly) };
            poly = next;
        }
    }

    /// Returns the sum in which a remainder in `term` was joined with its quotient.
    fn join_term(&self, poly: &Poly, term: &Term) -> Option<Poly> {
        term.mono.iter().enumerate().find_map(|(position, atom)| {
            let Atom::Mod(x, by) = atom else { return None };
            let mut mono = term.mono.clone();
            mono.remove(position);
            // A cheap test before the division: some other coefficient must be a multiple of this one.
            let step = term.coef.checked_mul(by.content())?;
            poly.pairs().any(|(other, coef)| other != term.mono && coef.checked_rem(step) == Some(0)).then_some(())?;
            let factor = Poly::from(Term { coef: term.coef, mono });
            let (quotient, _) = self.divide(x, by)?;
            let high = factor.times(&quotient.times(by)?)?;
            let there = !high.is_zero() && high.terms().all(|part| poly.coef(&part.mono) == part.coef);
            there.then_some(())?;
            poly.minus(&high)?.minus(&term.clone().into())?.plus(&factor.times(x)?)
        })
    }

    /// Simplifies the operands of an expression, and decides conditions whose outcome is known.
    fn structural(&self, expr: &Expr) -> Expr {
        let part = |expr: &Expr| self.simplify(expr);
        let boxed = |expr: &Expr| SharedExpr::new(self.simplify(expr));
        match expr {
            Expr::Int { .. } | Expr::Float { .. } | Expr::Var(_) => expr.clone(),
            Expr::Binary(op, a, b) => self.binary(*op, a, b),
            Expr::Unary(UnaryOp::Not, a) => match part(a) {
                Expr::Int { value, .. } => Expr::bool(value == 0),
                Expr::Unary(UnaryOp::Not, inner) => inner.into_expr(),
                other => Expr::unary(UnaryOp::Not, other),
            },
            Expr::Unary(op, a) => Expr::Unary(*op, boxed(a)),
            Expr::Call(function, args) => Expr::Call(*function, args.iter().map(part).collect()),
            // `select` evaluates both sides, so a side that loads, and might trap, must not be dropped.
            Expr::Select(c, a, b) => match (part(c), part(a), part(b)) {
                (Expr::Int { value: 0, .. }, a, b) if loads(&a).is_empty() => b,
                (Expr::Int { value: 1, .. }, a, b) if loads(&b).is_empty() => a,
                (c, a, b) => Expr::Select(SharedExpr::new(c), SharedExpr::new(a), SharedExpr::new(b)),
            },
            Expr::IfThenElse(c, a, b) => match part(c) {
                Expr::Int { value, .. } => part(if value != 0 { a } else { b }),
                c => Expr::IfThenElse(SharedExpr::new(c), boxed(a), boxed(b)),
            },
            Expr::Cast(ty, value) => cast(*ty, part(value)),
            Expr::Ramp { base, stride, lanes } => {
                Expr::Ramp { base: boxed(base), stride: boxed(stride), lanes: *lanes }
            }
            Expr::Broadcast { value, lanes } => Expr::Broadcast { value: boxed(value), lanes: *lanes },
            Expr::Load { .. } => self.simplify(expr),
        }
    }

    /// Simplifies an operator on two operands.
    fn binary(&self, op: BinaryOp, a: &Expr, b: &Expr) -> Expr {
        if let Some(outcome) = self.decided(op, a, b) {
            return Expr::bool(outcome);
        }
        let (a, b) = (self.simplify(a), self.simplify(b));
        // An operand that loads is not dropped, even if the other one decides the result: the load might trap.
        match (op, &a, &b) {
            (BinaryOp::And, Expr::Int { value: 1, .. }, _) => return b,
            (BinaryOp::And, _, Expr::Int { value: 1, .. }) => return a,
            (BinaryOp::Or, Expr::Int { value: 0, .. }, _) => return b,
            (BinaryOp::Or, _, Expr::Int { value: 0, .. }) => return a,
            (BinaryOp::And, Expr::Int { value: 0, .. }, other) | (BinaryOp::And, other, Expr::Int { value: 0, .. })
                if loads(other).is_empty() =>
            {
                return Expr::bool(false);
            }
            (BinaryOp::Or, Expr::Int { value: 1, .. }, other) | (BinaryOp::Or, other, Expr::Int { value: 1, .. })
                if loads(other).is_empty() =>
            {
                return Expr::bool(true);
            }
            (BinaryOp::And | BinaryOp::Or, x, y) if x == y => return a,
            _ => {}
        }
        if op == BinaryOp::BitXor && is_index_type(&a) && loads(&a).is_empty() && loads(&b).is_empty() {
            return xor_of(&[a.clone(), b.clone()]).unwrap_or_else(|| Expr::binary(op, a, b));
        }
        folded(op, &a, &b).unwrap_or_else(|| Expr::binary(op, a, b))
    }

    /// Returns the outcome of a comparison of indices if the ranges decide it.
    fn decided(&self, op: BinaryOp, a: &Expr, b: &Expr) -> Option<bool> {
        if !loads(a).is_empty() || !loads(b).is_empty() || self.may_wrap(a) || self.may_wrap(b) {
            return None;
        }
        // Both answers need a proof: that `x < y` cannot be proved does not show `x >= y`.
        let at_least = |x: &Poly, y: &Poly| x.minus(y).is_some_and(|gap| self.ranges.prove_nonneg(&gap));
        let above = |x: &Poly, y: &Poly| {
            x.minus(y).and_then(|gap| gap.plus_const(-1)).is_some_and(|gap| self.ranges.prove_nonneg(&gap))
        };
        let decide = |yes: bool, no: bool| if yes { Some(true) } else { no.then_some(false) };
        let both = || Some((self.poly(a)?, self.poly(b)?));
        let differ = |x: &Poly, y: &Poly| above(x, y) || above(y, x);
        match op {
            BinaryOp::Lt if sabotage::on("compare-decides-early") => {
                both().and_then(|(x, y)| decide(at_least(&y, &x), at_least(&x, &y)))
            }
            BinaryOp::Lt => both().and_then(|(x, y)| decide(above(&y, &x), at_least(&x, &y))),
            BinaryOp::Gt => both().and_then(|(x, y)| decide(above(&x, &y), at_least(&y, &x))),
            BinaryOp::Le => both().and_then(|(x, y)| decide(at_least(&y, &x), above(&x, &y))),
            BinaryOp::Ge => both().and_then(|(x, y)| decide(at_least(&x, &y), above(&y, &x))),
            BinaryOp::Eq => both().and_then(|(x, y)| decide(x == y, differ(&x, &y))),
            BinaryOp::Ne => both().and_then(|(x, y)| decide(differ(&x, &y), x == y)),
            BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul | BinaryOp::Div | BinaryOp::Min | BinaryOp::Max => None,
            BinaryOp::FloorDiv | BinaryOp::FloorMod | BinaryOp::TruncDiv | BinaryOp::TruncMod => None,
            BinaryOp::And | BinaryOp::Or | BinaryOp::BitAnd | BinaryOp::BitOr | BinaryOp::BitXor => None,
            BinaryOp::Shl | BinaryOp::Shr => None,
        }
    }

    /// Whether a subexpression may leave its type, so that its value is not the one over the integers. For indices and
    /// extents this is proved elsewhere (obligation `overflow`). Nothing is proved for parameters and converted
    /// values, which may be any number of their type.
    fn may_wrap(&self, expr: &Expr) -> bool {
        let computes = |part: &Expr| matches!(part, Expr::Binary(..) | Expr::Unary(..)) && is_index_type(part);
        let wraps_somewhere = || {
            let mut found = false;
            expr.walk(&mut |part| found |= computes(part) && self.has_unknown_value(part) && !self.fits(part));
            found
        };
        self.values && (self.escapes(expr) || (self.has_unknown_value(expr) && wraps_somewhere()))
    }

    /// Whether an expression holds a value that may be any number of its type.
    fn has_unknown_value(&self, expr: &Expr) -> bool {
        let mut found = false;
        expr.walk(&mut |part| {
            found |= match part {
                Expr::Var(var) => !self.ranges.known.contains_key(var),
                Expr::Cast(..) | Expr::Call(..) => !self.fits(part),
                Expr::Load { .. } => true,
                Expr::Int { .. } | Expr::Float { .. } | Expr::Binary(..) | Expr::Unary(..) | Expr::Select(..) => false,
                Expr::IfThenElse(..) | Expr::Ramp { .. } | Expr::Broadcast { .. } => false,
            }
        });
        found
    }

    /// Whether the bounds of an expression are known and lie within its type.
    fn fits(&self, expr: &Expr) -> bool {
        let range = expr.dtype().scalar.integer_range();
        range.is_some_and(|(lo, hi)| self.ranges.expr_interval(expr).within(lo, hi))
    }

    /// Whether a constant, or a value whose bounds are known, leaves the type of a subexpression.
    fn escapes(&self, expr: &Expr) -> bool {
        let mut escapes = false;
        expr.walk(&mut |part| {
            if !escapes && is_index_type(part) {
                let (lo, hi) = part.dtype().scalar.integer_range().unwrap_or((0, 0));
                let interval = self.ranges.expr_interval(part);
                escapes = interval.least().is_some_and(|least| least < lo)
                    || interval.greatest().is_some_and(|greatest| greatest > hi);
            }
        });
        escapes
    }
}

/// Whether an expression is a signed integer of one lane, as indices are.
pub(super) fn is_index_type(expr: &Expr) -> bool {
    let ty = expr.dtype();
    ty.is_scalar() && ty.scalar.class() == TypeClass::Int
}

/// Whether the normal form of an expression may be more than an atom.
fn is_arithmetic(expr: &Expr) -> bool {
    match expr {
        Expr::Binary(op, ..) => !matches!(
            op,
            BinaryOp::Div | BinaryOp::And | BinaryOp::Or | BinaryOp::BitAnd | BinaryOp::BitOr | BinaryOp::BitXor
        ),
        Expr::Unary(op, _) => *op == UnaryOp::Neg,
        Expr::Int { .. } | Expr::Float { .. } | Expr::Var(_) | Expr::Call(..) | Expr::Select(..) => false,
        Expr::IfThenElse(..) | Expr::Cast(..) | Expr::Ramp { .. } | Expr::Broadcast { .. } | Expr::Load { .. } => false,
    }
}

/// Whether two expressions have the same operator at the root.
fn same_operator(a: &Expr, b: &Expr) -> bool {
    match (a, b) {
        (Expr::Binary(x, ..), Expr::Binary(y, ..)) => x == y,
        _ => std::mem::discriminant(a) == std::mem::discriminant(b),
    }
}

/// The buffers that an expression loads from, sorted, one entry for each load.
fn loads(expr: &Expr) -> Vec<tilewright_ir::Buffer> {
    let mut found = Vec::new();
    expr.walk(&mut |part| {
        if let Expr::Load { buffer, .. } = part {
            found.push(buffer.clone());
        }
    });
    found.sort();
    found
}

/// Evaluates an operator on two constants, if the result fits its type.
fn folded(op: BinaryOp, a: &Expr, b: &Expr) -> Option<Expr> {
    let (Expr::Int { value: x, ty }, Expr::Int { value: y, .. }) = (a, b) else { return None };
    let result = op.result_type(a.dtype(), b.dtype())?;
    Expr::int_of(op.eval_exact(*x, *y, *ty).ok()?, result.scalar)
}

/// A conversion; evaluated for integer constants that fit the new type.
fn cast(ty: tilewright_ir::DataType, value: Expr) -> Expr {
    if value.dtype() == ty {
        return value;
    }
    match &value {
        Expr::Int { value: number, ty: from } if from.is_integer() && ty.scalar.is_integer() => {
            Expr::int_of(*number, ty.scalar).unwrap_or_else(|| Expr::Cast(ty, SharedExpr::new(value)))
        }
        _ => Expr::Cast(ty, SharedExpr::new(value)),
    }
}
