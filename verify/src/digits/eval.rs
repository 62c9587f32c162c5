//! Evaluation of expressions to sums of digits, and of conditions to true or false.
//!
//! There are few rules, each resting on a lemma: sums, and products with factors that contain no digits, are linear;
//! `(b*q + r) // b` is `q` and `(b*q + r) % b` is `r` if `0 <= r < b` (*HornerInverse*); shifts and masks by powers of two
//! are such divisions. Everything else is rejected.
//!
//! A rejection is never a refutation. It means that this tier has no answer.
//!
//! ```text
//! c                            c0 + 4 * c1                          with c0 = c % 4, c1 = c // 4
//! c // 4                       c1                                   4 divides 4 * c1, and 0 <= c0 < 4
//! (n * 5 + c // 4) * 4 + c % 4   c0 + 4 * c1 + 20 * n0
//! c // 3                       rejected: the division cuts through a digit
//! ```

use tilewright_ir::sabotage;
use tilewright_ir::{BinaryOp, Expr, MathFn, ScalarType, UnaryOp, Var};

use super::atoms::{Atoms, NonNegative, TOO_LARGE};
use super::space::{Bounded, Space, Sum};
use super::{Instance, Poly, Rejected};
use crate::lemmas::Lemma;

/// Greatest number of operators in all expressions together.
const MAX_NODES: usize = 20_000;
/// Greatest nesting of operators.
const MAX_DEPTH: usize = 300;

/// The statement that a sum of bounded digits lies in a window that starts at 0.
#[derive(Clone, Debug)]
pub struct Window {
    /// The bounded summands.
    pub(super) places: Vec<Bounded>,
    /// The summand without digits.
    pub(super) offset: Poly,
    /// The exclusive upper bound, if one is claimed.
    pub(super) below: Option<Poly>,
    /// Whether the coefficient of each place is negative.
    pub(super) negative: Vec<bool>,
    /// Why the least value is not negative, the greatest is below the bound, and coefficients have these signs.
    pub(super) reasons: Vec<NonNegative>,
}

impl Window {
    /// Whether the least and the greatest sum lie in the window, evaluated; `None` if coefficients or bounds are no numbers.
    /// That they do is what instances with numbers rest on, so it is computed apart from what the certificate needed.
    pub(super) fn is_inside(&self) -> Option<bool> {
        let (mut low, mut high) = (self.offset.as_const()?, self.offset.as_const()?);
        for (place, is_negative) in self.places.iter().zip(&self.negative) {
            let (weight, max) = (place.coefficient.as_const()?, place.max.as_const()?);
            if max < 0 || (weight < 0) != *is_negative {
                return Some(false);
            }
            let bound = if *is_negative { &mut low } else { &mut high };
            *bound = bound.checked_add(weight.checked_mul(max)?)?;
        }
        let is_below = match &self.below {
            Some(below) => high < below.as_const()?,
            None => true,
        };
        Some(self.places.len() == self.negative.len() && low >= 0 && is_below)
    }
}

/// The values of variables; a variable without one is a symbolic extent.
pub(super) struct Env<'e> {
    /// The space that the digits belong to.
    pub(super) space: &'e Space,
    /// The sum of digits of each variable.
    pub(super) vars: Vec<(&'e Var, Sum)>,
}

/// The state of the checker.
#[derive(Debug, Default)]
pub(super) struct Checker {
    /// The symbols and quotients met so far.
    pub(super) atoms: Atoms,
    /// The instances that the evaluation relied on so far.
    pub(super) found: Vec<Instance>,
    /// The value and type of every operation, while they are recorded (for the obligation overflow).
    pub(super) operations: Option<Vec<(Sum, ScalarType)>>,
    /// Operators evaluated so far, in all expressions.
    nodes: usize,
    /// Operators around the current one.
    depth: usize,
}

/// The result of evaluating an expression.
type Evaluated = Result<Sum, Rejected>;

impl Checker {
    /// Evaluates an expression to a sum of digits.
    pub(super) fn eval(&mut self, expr: &Expr, env: &Env<'_>) -> Evaluated {
        self.nested(|checker| checker.eval_node(expr, env))
    }

    /// Runs `run` one level deeper; fails if there are too many nodes or levels.
    pub(super) fn nested<T>(&mut self, run: impl FnOnce(&mut Self) -> Result<T, Rejected>) -> Result<T, Rejected> {
        self.nodes += 1;
        if self.nodes > MAX_NODES || self.depth > MAX_DEPTH {
            return Err(TOO_LARGE);
        }
        self.depth += 1;
        let result = run(self);
        self.depth -= 1;
        result
    }

    /// Evaluates an expression whose node is counted.
    fn eval_node(&mut self, expr: &Expr, env: &Env<'_>) -> Evaluated {
        let value = match expr {
            Expr::Int { value, .. } => return Ok(Sum::number(Poly::constant(*value))),
            Expr::Var(var) => return self.var(var, env),
            Expr::Binary(op, lhs, rhs) => {
                let (a, b) = (self.eval(lhs, env)?, self.eval(rhs, env)?);
                // `binary` accepts amounts below 31, which a narrower type does not allow.
                if matches!(op, BinaryOp::Shl | BinaryOp::Shr) && lhs.dtype().scalar.bits() < 32 {
                    return Err(Rejected("a shift is not by a small number"));
                }
                self.binary(*op, &a, &b, env.space)?
            }
            Expr::Unary(UnaryOp::Neg, operand) => {
                self.eval(operand, env)?.times(&Poly::constant(-1)).ok_or(TOO_LARGE)?
            }
            Expr::Call(MathFn::Abs, args) if args.len() == 1 => {
                let value = self.eval(&args[0], env)?;
                // The absolute value of a sum that is not negative is the sum.
                self.window(env.space, &value, None)?;
                value
            }
            Expr::Select(condition, a, b) | Expr::IfThenElse(condition, a, b) => {
                let holds = self.attempt(|checker| checker.truth(condition, env, true)).is_ok();
                if !holds {
                    self.truth(condition, env, false)?;
                }
                let (chosen, other) = if holds { (a, b) } else { (b, a) };
                // `select` evaluates both branches, so the other one must have a value; a conditional expression does
                // not.
                if matches!(expr, Expr::Select(..)) {
                    self.eval(other, env)?;
                }
                self.eval(chosen, env)?
            }
            Expr::Unary(..)
            | Expr::Float { .. }
            | Expr::Call(..)
            | Expr::Cast(..)
            | Expr::Ramp { .. }
            | Expr::Broadcast { .. }
            | Expr::Load { .. } => return Err(Rejected("an operation is not one on digits")),
        };
        if let Some(operations) = &mut self.operations {
            operations.push((value.clone(), expr.dtype().scalar));
        }
        Ok(value)
    }

    /// The value of a variable.
    fn var(&mut self, var: &Var, env: &Env<'_>) -> Evaluated {
        match env.vars.iter().find(|(bound, _)| *bound == var) {
            Some((_, value)) => Ok(value.clone()),
            None => self.atoms.symbol(var).map(Sum::number).ok_or(TOO_LARGE),
        }
    }

    /// The value of a binary operator.
    fn binary(&mut self, op: BinaryOp, a: &Sum, b: &Sum, space: &Space) -> Evaluated {
        let power = |by: &Sum, limit: i128| {
            let by = by.free().and_then(Poly::as_const).filter(|by| (0..limit).contains(by));
            by.map(|by| Poly::constant(1 << by)).ok_or(Rejected("a shift is not by a small number"))
        };
        match op {
            BinaryOp::Add => a.plus(b).ok_or(TOO_LARGE),
            BinaryOp::Sub => a.minus(b).ok_or(TOO_LARGE),
            BinaryOp::Mul => match (a.free(), b.free()) {
                (_, Some(factor)) => a.times(factor).ok_or(TOO_LARGE),
                (Some(factor), None) => b.times(factor).ok_or(TOO_LARGE),
                (None, None) => Err(Rejected("two sums of digits are multiplied")),
            },
            BinaryOp::FloorDiv => Ok(self.divide(a, b.free().ok_or(BY_DIGITS)?, space)?.0),
            BinaryOp::FloorMod => Ok(self.divide(a, b.free().ok_or(BY_DIGITS)?, space)?.1),
            BinaryOp::TruncDiv | BinaryOp::TruncMod => {
                // Truncation is rounding down, since the dividend is shown to be non-negative.
                self.window(space, a, None)?;
                let (quotient, rest) = self.divide(a, b.free().ok_or(BY_DIGITS)?, space)?;
                Ok(if op == BinaryOp::TruncDiv { quotient } else { rest })
            }
            // Amounts below 31 are valid for every index type.
            BinaryOp::Shl => a.times(&power(b, 31)?).ok_or(TOO_LARGE),
            BinaryOp::Shr => Ok(self.divide(a, &power(b, 31)?, space)?.0),
            BinaryOp::BitAnd => {
                let mask = b.free().and_then(Poly::as_const).and_then(|mask| mask.checked_add(1));
                let power = mask.filter(|power| *power > 0 && power.count_ones() == 1);
                let power = power.ok_or(Rejected("a mask is not one of low bits"))?;
                Ok(self.divide(a, &Poly::constant(power), space)?.1)
            }
            BinaryOp::Min | BinaryOp::Max => {
                let difference = b.minus(a).ok_or(TOO_LARGE)?;
                let ordered = self.attempt(|checker| checker.window(space, &difference, None)).is_ok();
                if !ordered {
                    self.window(space, &a.minus(b).ok_or(TOO_LARGE)?, None)?;
                }
                Ok(if ordered == (op == BinaryOp::Min) { a.clone() } else { b.clone() })
            }
            BinaryOp::Div
            | BinaryOp::BitOr
            | BinaryOp::BitXor
            | BinaryOp::Eq
            | BinaryOp::Ne
            | BinaryOp::Lt
            | BinaryOp::Le
            | BinaryOp::Gt
            | BinaryOp::Ge
            | BinaryOp::And
            | BinaryOp::Or => Err(Rejected("an operation is not one on digits")),
        }
    }

    /// Quotient and remainder of a division by a polynomial without digits.
    ///
    /// The quotient takes the terms that the divisor divides. The rest has to be shown to be in `0..divisor`, possibly after
    /// moving a multiple of the divisor between the two.
    fn divide(&mut self, sum: &Sum, divisor: &Poly, space: &Space) -> Result<(Sum, Sum), Rejected> {
        self.atoms.show(&divisor.plus_const(-1).ok_or(TOO_LARGE)?, &mut self.found)?;
        if let Some(free) = sum.free() {
            let quotient = self.atoms.floor(free, divisor, &mut self.found)?;
            let whole = quotient.times(divisor).ok_or(TOO_LARGE)?;
            return Ok((Sum::number(quotient), Sum::number(free.minus(&whole).ok_or(TOO_LARGE)?)));
        }
        let (mut quotient, mut rest) = (Sum::default(), Sum::default());
        for (digit, coefficient) in &sum.places {
            let (q, r) = coefficient.split(divisor).ok_or(TOO_LARGE)?;
            quotient.places.extend((!q.is_zero()).then_some((*digit, q)));
            rest.places.extend((!r.is_zero()).then_some((*digit, r)));
        }
        (quotient.offset, rest.offset) = sum.offset.split(divisor).ok_or(TOO_LARGE)?;
        // With a constant divisor the multiple to be moved is known: the one that brings the least value into `0..by`.
        // Otherwise the three likely ones are tried.
        if let (Some(low), Some(by)) = (self.lowest(space, &rest)?.as_const(), divisor.as_const()) {
            let (quotient, rest) = moved(&quotient, &rest, low.div_euclid(by), divisor)?;
            self.window(space, &rest, Some(divisor))?;
            self.found.push(Instance::Lemma(Lemma::HornerInverse));
            return Ok((quotient, rest));
        }
        for times in [0, -1, 1] {
            let (quotient, rest) = moved(&quotient, &rest, times, divisor)?;
            if self.attempt(|checker| checker.window(space, &rest, Some(divisor))).is_ok() {
                self.found.push(Instance::Lemma(Lemma::HornerInverse));
                return Ok((quotient, rest));
            }
        }
        Err(Rejected("a division cuts through a digit"))
    }

    /// A lower bound of a sum that is attained: every digit at 0, or at its maximum if its coefficient is negative.
    fn lowest(&self, space: &Space, sum: &Sum) -> Result<Poly, Rejected> {
        let mut low = sum.offset.clone();
        for place in space.grouped(sum).ok_or(TOO_LARGE)? {
            if self.sign(&place.coefficient, &mut Vec::new())? {
                let product = place.coefficient.times(&place.max).ok_or(TOO_LARGE)?;
                low = low.plus(&product).ok_or(TOO_LARGE)?;
            }
        }
        Ok(low)
    }

    /// Whether a coefficient is negative for all values of the symbols; the reason is added to `reasons`. Fails if the sign
    /// is not known.
    fn sign(&self, coefficient: &Poly, reasons: &mut Vec<NonNegative>) -> Result<bool, Rejected> {
        if let Some(value) = coefficient.as_const() {
            return Ok(value < 0);
        }
        if let Some(reason) = self.atoms.nonnegative(coefficient) {
            reasons.push(reason);
            return Ok(false);
        }
        let negated = coefficient.scaled(-1).ok_or(TOO_LARGE)?;
        reasons.push(self.atoms.nonnegative(&negated).ok_or(Rejected("the sign of a weight is not known"))?);
        Ok(true)
    }

    /// Shows that a sum is at least 0 and, if a bound is given, below it. Digits of one axis are bounded together where
    /// possible, which is sharper.
    pub(super) fn window(&mut self, space: &Space, sum: &Sum, below: Option<&Poly>) -> Result<(), Rejected> {
        let grouped = space.grouped(sum).ok_or(TOO_LARGE)?;
        let is_single = grouped.len() == sum.places.len();
        let mut result = self.window_of(grouped, &sum.offset, below);
        if result.is_err() && !is_single {
            result = self.window_of(space.single(sum).ok_or(TOO_LARGE)?, &sum.offset, below);
        }
        if result.is_err() && space.shares_axes(sum) {
            result = self.window_of(space.in_parts(sum).ok_or(TOO_LARGE)?, &sum.offset, below);
        }
        self.found.push(Instance::Window(result?));
        Ok(())
    }

    /// The window of a sum of bounded parts.
    fn window_of(&self, places: Vec<Bounded>, offset: &Poly, below: Option<&Poly>) -> Result<Window, Rejected> {
        let (mut low, mut high) = (offset.clone(), offset.clone());
        let (mut reasons, mut negative) = (Vec::new(), Vec::with_capacity(places.len()));
        for place in &places {
            let is_negative = self.sign(&place.coefficient, &mut reasons)?;
            let product = place.coefficient.times(&place.max).ok_or(TOO_LARGE)?;
            let bound = if is_negative { &mut low } else { &mut high };
            *bound = bound.plus(&product).ok_or(TOO_LARGE)?;
            negative.push(is_negative);
        }
        reasons.push(self.atoms.nonnegative(&low).ok_or(OUTSIDE)?);
        if let Some(below) = below {
            let last = if sabotage::on("window-off-by-one") { 0 } else { -1 };
            let room = below.minus(&high).and_then(|room| room.plus_const(last)).ok_or(TOO_LARGE)?;
            reasons.push(self.atoms.nonnegative(&room).ok_or(OUTSIDE)?);
        }
        Ok(Window { places, offset: offset.clone(), below: below.cloned(), negative, reasons })
    }

    /// Runs `run`; if it fails, the instances and operations that it recorded are dropped.
    pub(super) fn attempt<T>(&mut self, run: impl FnOnce(&mut Self) -> Result<T, Rejected>) -> Result<T, Rejected> {
        let (found, operations) = (self.found.len(), self.operations.as_ref().map(Vec::len));
        let result = run(self);
        if result.is_err() {
            self.found.truncate(found);
            if let (Some(operations), Some(count)) = (&mut self.operations, operations) {
                operations.truncate(count);
            }
        }
        result
    }

    /// Shows that a condition always has the value `wanted`.
    pub(super) fn truth(&mut self, condition: &Expr, env: &Env<'_>, wanted: bool) -> Result<(), Rejected> {
        self.nested(|checker| checker.truth_node(condition, env, wanted))
    }

    /// Shows the value of a condition whose node is counted.
    fn truth_node(&mut self, condition: &Expr, env: &Env<'_>, wanted: bool) -> Result<(), Rejected> {
        match condition {
            Expr::Int { value, .. } if (*value != 0) == wanted => Ok(()),
            Expr::Unary(UnaryOp::Not, operand) => self.truth(operand, env, !wanted),
            Expr::Binary(op @ (BinaryOp::And | BinaryOp::Or), lhs, rhs) => {
                if (*op == BinaryOp::And) == wanted {
                    self.truth(lhs, env, wanted)?;
                    return self.truth(rhs, env, wanted);
                }
                // One operand decides, but both are evaluated, so the other one must have a value.
                if self.attempt(|checker| checker.truth(lhs, env, wanted)).is_ok() {
                    return self.evaluated(rhs, env);
                }
                self.evaluated(lhs, env)?;
                self.truth(rhs, env, wanted)
            }
            Expr::Binary(op, lhs, rhs) => {
                let (a, b) = (self.eval(lhs, env)?, self.eval(rhs, env)?);
                let op = if wanted { Some(*op) } else { negated(*op) };
                self.comparison(op.ok_or(NO_COMPARISON)?, &a, &b, env.space)
            }
            Expr::Int { .. }
            | Expr::Float { .. }
            | Expr::Var(_)
            | Expr::Unary(UnaryOp::Neg | UnaryOp::BitNot, _)
            | Expr::Call(..)
            | Expr::Select(..)
            | Expr::IfThenElse(..)
            | Expr::Cast(..)
            | Expr::Ramp { .. }
            | Expr::Broadcast { .. }
            | Expr::Load { .. } => Err(NO_COMPARISON),
        }
    }

    /// Shows that a condition has a value.
    pub(super) fn evaluated(&mut self, condition: &Expr, env: &Env<'_>) -> Result<(), Rejected> {
        self.nested(|checker| match condition {
            Expr::Int { .. } => Ok(()),
            Expr::Unary(UnaryOp::Not, operand) => checker.evaluated(operand, env),
            Expr::Binary(BinaryOp::And | BinaryOp::Or, lhs, rhs) => {
                checker.evaluated(lhs, env)?;
                checker.evaluated(rhs, env)
            }
            Expr::Binary(op, lhs, rhs) if negated(*op).is_some() => {
                checker.eval(lhs, env)?;
                checker.eval(rhs, env).map(drop)
            }
            Expr::Float { .. }
            | Expr::Var(_)
            | Expr::Unary(UnaryOp::Neg | UnaryOp::BitNot, _)
            | Expr::Call(..)
            | Expr::Select(..)
            | Expr::IfThenElse(..)
            | Expr::Cast(..)
            | Expr::Ramp { .. }
            | Expr::Broadcast { .. }
            | Expr::Binary(..)
            | Expr::Load { .. } => Err(NO_COMPARISON),
        })
    }

    /// Shows that every operation in an expression has a value for all values of its operands.
    pub(super) fn total(&mut self, expr: &Expr, env: &Env<'_>) -> Result<(), Rejected> {
        const PARTIAL: Rejected = Rejected("an operation may have no value");
        self.nested(|checker| {
            match expr {
                Expr::Binary(
                    BinaryOp::FloorDiv | BinaryOp::FloorMod | BinaryOp::TruncDiv | BinaryOp::TruncMod,
                    _,
                    divisor,
                ) if divisor.as_const_int().is_none_or(|divisor| divisor == 0) => {
                    let divisor = checker.eval(divisor, env)?;
                    let above = divisor.plus_const(-1).ok_or(TOO_LARGE)?;
                    checker.window(env.space, &above, None)?;
                }
                Expr::Binary(BinaryOp::Shl | BinaryOp::Shr, _, amount) => {
                    let small = amount.as_const_int().is_some_and(|amount| (0..8).contains(&amount));
                    small.then_some(()).ok_or(PARTIAL)?;
                }
                Expr::Cast(..) | Expr::Load { .. } | Expr::Float { .. } => return Err(PARTIAL),
                Expr::Call(function, _) if *function != MathFn::Abs => return Err(PARTIAL),
                Expr::Int { .. }
                | Expr::Var(_)
                | Expr::Unary(..)
                | Expr::Call(..)
                | Expr::Select(..)
                | Expr::IfThenElse(..)
                | Expr::Ramp { .. }
                | Expr::Broadcast { .. } => {}
                // Division by a constant that is not 0 is listed here too.
                Expr::Binary(
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
                    | BinaryOp::Eq
                    | BinaryOp::Ne
                    | BinaryOp::Lt
                    | BinaryOp::Le
                    | BinaryOp::Gt
                    | BinaryOp::Ge
                    | BinaryOp::And
                    | BinaryOp::Or
                    | BinaryOp::BitAnd
                    | BinaryOp::BitOr
                    | BinaryOp::BitXor,
                    ..,
                ) => {}
            }
            expr.children().into_iter().try_for_each(|child| checker.total(child, env))
        })
    }

    /// Shows that a comparison of two sums always holds: `a <= b` if the window of `b - a` starts at 0.
    fn comparison(&mut self, op: BinaryOp, a: &Sum, b: &Sum, space: &Space) -> Result<(), Rejected> {
        let above = |low: &Sum, high: &Sum, by: i128| high.minus(low)?.plus_const(by.checked_neg()?);
        let difference = match op {
            BinaryOp::Lt => above(a, b, 1),
            BinaryOp::Le => above(a, b, 0),
            BinaryOp::Gt => above(b, a, 1),
            BinaryOp::Ge => above(b, a, 0),
            BinaryOp::Eq if a == b => return Ok(()),
            BinaryOp::Eq => return Err(Rejected("two sums of digits are not the same")),
            BinaryOp::Ne => {
                // Two sums differ everywhere if one is always the smaller one. Sums that cross without meeting are
                // rejected.
                let less = above(a, b, 1).ok_or(TOO_LARGE)?;
                if self.attempt(|checker| checker.window(space, &less, None)).is_ok() {
                    return Ok(());
                }
                above(b, a, 1)
            }
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
            | BinaryOp::And
            | BinaryOp::Or
            | BinaryOp::BitAnd
            | BinaryOp::BitOr
            | BinaryOp::BitXor
            | BinaryOp::Shl
            | BinaryOp::Shr => return Err(NO_COMPARISON),
        };
        self.window(space, &difference.ok_or(TOO_LARGE)?, None)
    }
}

const BY_DIGITS: Rejected = Rejected("a divisor depends on an index");
const OUTSIDE: Rejected = Rejected("a sum of digits leaves its window");
const NO_COMPARISON: Rejected = Rejected("a condition is not a comparison of digits");

/// Moves `times` divisors from the rest to the quotient.
fn moved(quotient: &Sum, rest: &Sum, times: i128, divisor: &Poly) -> Result<(Sum, Sum), Rejected> {
    let taken = divisor.scaled(times).and_then(|taken| rest.offset.minus(&taken)).ok_or(TOO_LARGE)?;
    let quotient = quotient.plus_const(times).ok_or(TOO_LARGE)?;
    Ok((quotient, Sum { places: rest.places.clone(), offset: taken }))
}

/// The comparison that holds exactly if `op` does not (a table); `None` if `op` is not a comparison.
pub(super) fn negated(op: BinaryOp) -> Option<BinaryOp> {
    Some(match op {
        BinaryOp::Lt => BinaryOp::Ge,
        BinaryOp::Le => BinaryOp::Gt,
        BinaryOp::Gt => BinaryOp::Le,
        BinaryOp::Ge => BinaryOp::Lt,
        BinaryOp::Eq => BinaryOp::Ne,
        BinaryOp::Ne => BinaryOp::Eq,
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
        | BinaryOp::And
        | BinaryOp::Or
        | BinaryOp::BitAnd
        | BinaryOp::BitOr
        | BinaryOp::BitXor
        | BinaryOp::Shl
        | BinaryOp::Shr => return None,
    })
}
