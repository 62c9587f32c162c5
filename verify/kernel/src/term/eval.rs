//! The meaning of terms: evaluation under an assignment, in checked `i128` arithmetic.
//!
//! ```
//! use tilewright_kernel::term::{Assignment, EvalError, Term};
//! let quotient = Term::sym("a").floor_div(Term::sym("b"));
//! let at = |a, b| quotient.eval(&Assignment::new().with("a", a).with("b", b));
//! assert_eq!(at(-7, 2), Ok(-4));
//! assert_eq!(at(7, 0), Err(EvalError::DivisionByZero));
//! ```
//!
//! An undefined operation is an error, never a value: a counterexample that needs the quotient by 0 is no
//! counterexample.

use super::{BinaryOp, Comparison, Prop, PropKind, Symbol, Term, TermKind, UnaryOp};
use std::collections::BTreeMap;
use std::fmt;
use tilewright_ir::sabotage;

/// The value of a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Value {
    /// An integer.
    Int(i128),
    /// A truth value.
    Bool(bool),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Int(value) => value.fmt(f),
            Self::Bool(value) => value.fmt(f),
        }
    }
}

/// Values for variables, in the order of their names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Assignment(BTreeMap<Symbol, Value>);

impl Assignment {
    /// The empty assignment.
    pub fn new() -> Self {
        Self::default()
    }

    /// Gives `symbol` the value, replacing an earlier one.
    pub fn set(&mut self, symbol: impl Into<Symbol>, value: Value) {
        self.0.insert(symbol.into(), value);
    }

    /// The assignment with the value of an integer variable added.
    #[must_use]
    pub fn with(mut self, symbol: impl Into<Symbol>, value: i128) -> Self {
        self.set(symbol, Value::Int(value));
        self
    }

    /// The value of `symbol`.
    pub fn get(&self, symbol: &Symbol) -> Option<Value> {
        self.0.get(symbol).copied()
    }

    /// All values, in the order of the names.
    pub fn iter(&self) -> impl Iterator<Item = (&Symbol, Value)> {
        self.0.iter().map(|(symbol, value)| (symbol, *value))
    }
}

impl fmt::Display for Assignment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, (symbol, value)) in self.iter().enumerate() {
            let separator = if position == 0 { "" } else { ", " };
            write!(f, "{separator}{symbol} = {value}")?;
        }
        Ok(())
    }
}

/// Why a term has no value under an assignment.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EvalError {
    /// Division or remainder by zero.
    #[error("division by zero")]
    DivisionByZero,
    /// A shift by a negative amount.
    #[error("shift by a negative amount")]
    NegativeShift,
    /// A value outside of `i128`.
    #[error("a value does not fit 128 bits")]
    Overflow,
    /// A variable without a value, or with one of the other kind.
    #[error("`{0}` has no value of the right kind")]
    Missing(Symbol),
    /// The value of an uninterpreted function is not known.
    #[error("`{0}` is uninterpreted")]
    Uninterpreted(Symbol),
}

impl EvalError {
    /// Whether the term is undefined, as opposed to defined but not computable here.
    pub fn is_undefined(&self) -> bool {
        matches!(self, Self::DivisionByZero | Self::NegativeShift)
    }
}

impl Term {
    /// Its value; the condition of a choice is evaluated first, then only the chosen side.
    pub fn eval(&self, env: &Assignment) -> Result<i128, EvalError> {
        match self.kind() {
            TermKind::Const(value) => Ok(*value),
            TermKind::Sym(symbol) => match env.get(symbol) {
                Some(Value::Int(value)) => Ok(value),
                Some(Value::Bool(_)) | None => Err(EvalError::Missing(symbol.clone())),
            },
            TermKind::Unary(op, operand) => apply_unary(*op, operand.eval(env)?),
            TermKind::Binary(op, lhs, rhs) => apply_binary(*op, lhs.eval(env)?, rhs.eval(env)?),
            TermKind::Ite(condition, then, otherwise) => {
                if condition.eval(env)? {
                    then.eval(env)
                } else {
                    otherwise.eval(env)
                }
            }
            TermKind::App(name, _) => Err(EvalError::Uninterpreted(name.clone())),
        }
    }
}

impl Prop {
    /// Its truth value. `and`, `or` and `implies` look at their parts from left to right and stop when decided.
    pub fn eval(&self, env: &Assignment) -> Result<bool, EvalError> {
        match self.kind() {
            PropKind::Bool(value) => Ok(*value),
            PropKind::Sym(symbol) => match env.get(symbol) {
                Some(Value::Bool(value)) => Ok(value),
                Some(Value::Int(_)) | None => Err(EvalError::Missing(symbol.clone())),
            },
            PropKind::Compare(op, lhs, rhs) => Ok(compare(*op, lhs.eval(env)?, rhs.eval(env)?)),
            PropKind::Not(inner) => Ok(!inner.eval(env)?),
            // From left to right, and no further than needed: a later part may have a value only if the earlier ones
            // hold.
            PropKind::And(parts) => {
                for part in parts {
                    if !part.eval(env)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            PropKind::Or(parts) => {
                for part in parts {
                    if part.eval(env)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            PropKind::Implies(premise, conclusion) => Ok(!premise.eval(env)? || conclusion.eval(env)?),
            PropKind::Iff(lhs, rhs) => Ok(lhs.eval(env)? == rhs.eval(env)?),
        }
    }
}

/// The value of an operator with one operand.
///
/// # Errors
/// The value leaves `i128`.
pub(super) fn apply_unary(op: UnaryOp, a: i128) -> Result<i128, EvalError> {
    match op {
        UnaryOp::Neg => a.checked_neg(),
        UnaryOp::Abs => a.checked_abs(),
        UnaryOp::Not => Some(!a),
    }
    .ok_or(EvalError::Overflow)
}

/// The value of an operator with two operands.
///
/// # Errors
/// The operator is undefined on them, or the value leaves `i128`.
pub(super) fn apply_binary(op: BinaryOp, a: i128, b: i128) -> Result<i128, EvalError> {
    let divides = matches!(op, BinaryOp::FloorDiv | BinaryOp::FloorMod | BinaryOp::TruncDiv | BinaryOp::TruncMod);
    if divides && b == 0 {
        return Err(EvalError::DivisionByZero);
    }
    match op {
        BinaryOp::Add => a.checked_add(b),
        BinaryOp::Sub => a.checked_sub(b),
        BinaryOp::Mul => a.checked_mul(b),
        BinaryOp::FloorDiv => floor_div(a, b),
        BinaryOp::FloorMod => Some(floor_mod(a, b)),
        BinaryOp::TruncDiv => a.checked_div(b),
        BinaryOp::TruncMod => Some(a.wrapping_rem(b)),
        BinaryOp::Min => Some(a.min(b)),
        BinaryOp::Max => Some(a.max(b)),
        BinaryOp::BitAnd => Some(a & b),
        BinaryOp::BitOr => Some(a | b),
        BinaryOp::BitXor => Some(a ^ b),
        BinaryOp::Shl => return shift_left(a, b),
        BinaryOp::Shr if b < 0 => return Err(EvalError::NegativeShift),
        BinaryOp::Shr => Some(a >> u32::try_from(b).unwrap_or(u32::MAX).min(127)),
    }
    .ok_or(EvalError::Overflow)
}

/// The quotient rounded towards negative infinity; `b` is not 0.
fn floor_div(a: i128, b: i128) -> Option<i128> {
    let quotient = a.checked_div(b)?;
    let inexact = a.wrapping_rem(b) != 0 && !sabotage::on("terms-divide-towards-zero");
    Some(if inexact && ((a < 0) != (b < 0)) { quotient - 1 } else { quotient })
}

/// The remainder with the sign of the divisor; `b` is not 0.
fn floor_mod(a: i128, b: i128) -> i128 {
    let rest = a.wrapping_rem(b);
    if rest != 0 && ((rest < 0) != (b < 0)) { rest + b } else { rest }
}

/// `a * 2^by`
fn shift_left(a: i128, by: i128) -> Result<i128, EvalError> {
    if by < 0 {
        return Err(EvalError::NegativeShift);
    }
    if a == 0 {
        return Ok(0);
    }
    let by = u32::try_from(by).ok().filter(|by| *by < 127).ok_or(EvalError::Overflow)?;
    a.checked_mul(1 << by).ok_or(EvalError::Overflow)
}

/// Whether a comparison holds.
pub(super) fn compare(op: Comparison, a: i128, b: i128) -> bool {
    match op {
        Comparison::Eq => a == b,
        Comparison::Ne => a != b,
        Comparison::Lt => a < b,
        Comparison::Le => a <= b,
    }
}
