//! Evaluation of index expressions over the mathematical integers.
//!
//! This defines the meaning of an index expression: floor division, floor modulo, and no wrapping. If a result or an
//! intermediate value does not fit into 128 bits, evaluation returns an error, never a wrong number. Values of
//! programs, which do wrap, are computed by the interpreter from the same operator table.

use std::collections::HashMap;

use crate::dtype::ScalarType;
use crate::expr::Expr;
use crate::op::{BinaryOp, MathFn, UnaryOp};
use crate::scalar::ScalarError;
use crate::var::Var;

/// The value of each variable.
pub type Bindings = HashMap<Var, i128>;

/// The reason why an index expression has no value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EvalError {
    /// A variable is not bound to a value.
    #[error("variable `{0}` has no value")]
    Unbound(String),
    /// The expression reads memory, computes with floats or has several lanes.
    #[error("`{0}` is not a scalar integer expression")]
    NotAnIndex(String),
    /// An operator is undefined for its operands.
    #[error("{source} in `{expr}`")]
    Scalar {
        /// Why it is undefined.
        source: ScalarError,
        /// The subexpression that failed.
        expr: String,
    },
}

impl Expr {
    /// Evaluates the expression over the integers. Truth values are 0 and 1.
    ///
    /// A cast to an integer type is the identity, and an error if the value is outside the range of that type.
    ///
    /// # Errors
    /// - [`EvalError::Unbound`] for a variable that `bindings` does not contain.
    /// - [`EvalError::NotAnIndex`] for a load, a float, a vector, or a math function other than the absolute value.
    /// - [`EvalError::Scalar`] for a zero divisor, a shift amount outside the width of the shifted type, and a value that
    ///   does not fit into 128 bits.
    ///
    /// # Examples
    /// ```
    /// use tilewright_ir::{Expr, Var};
    /// let c = Var::index("c");
    /// let bindings = [(c.clone(), 101)].into_iter().collect();
    /// assert_eq!(Expr::from(&c).floor_div(Expr::int(4)).eval_index(&bindings), Ok(25));
    /// ```
    pub fn eval_index(&self, bindings: &Bindings) -> Result<i128, EvalError> {
        self.eval_index_by(&|var| bindings.get(var).copied())
    }

    /// As [`Expr::eval_index`], with the values of some variables, in their order, besides those of `symbols`.
    ///
    /// # Errors
    /// As [`Expr::eval_index`].
    pub fn eval_index_at(&self, vars: &[Var], index: &[i128], symbols: &Bindings) -> Result<i128, EvalError> {
        // There are few variables: a comparison with each of them takes less time than a hash.
        let own = |var: &Var| vars.iter().zip(index).rfind(|(known, _)| *known == var).map(|(_, value)| *value);
        self.eval_index_by(&|var| own(var).or_else(|| symbols.get(var).copied()))
    }

    /// As [`Expr::eval_index`], with the value of each variable from a function.
    ///
    /// # Errors
    /// As [`Expr::eval_index`].
    pub fn eval_index_by(&self, value_of: &impl Fn(&Var) -> Option<i128>) -> Result<i128, EvalError> {
        let scalar = |source| EvalError::Scalar { source, expr: self.to_string() };
        let overflow = || scalar(ScalarError::Overflow);
        let not_an_index = || EvalError::NotAnIndex(self.to_string());
        match self {
            Self::Int { value, .. } => Ok(*value),
            Self::Var(var) => value_of(var).ok_or_else(|| EvalError::Unbound(var.name().to_owned())),
            Self::Binary(op, lhs, rhs) => {
                let (a, b) = (lhs.eval_index_by(value_of)?, rhs.eval_index_by(value_of)?);
                op.eval_exact(a, b, shift_type(*op, lhs)).map_err(scalar)
            }
            Self::Unary(UnaryOp::Neg, operand) => operand.eval_index_by(value_of)?.checked_neg().ok_or_else(overflow),
            Self::Unary(UnaryOp::Not, operand) => Ok(i128::from(operand.eval_index_by(value_of)? == 0)),
            Self::Unary(UnaryOp::BitNot, operand) => Ok(!operand.eval_index_by(value_of)?),
            Self::Call(MathFn::Abs, args) => match &**args {
                [arg] => arg.eval_index_by(value_of)?.checked_abs().ok_or_else(overflow),
                _ => Err(not_an_index()),
            },
            // `Select` evaluates both arms, so an error in either is one of the whole; `IfThenElse` evaluates the chosen
            // arm only.
            Self::Select(c, a, b) => {
                let (c, a, b) = (c.eval_index_by(value_of)?, a.eval_index_by(value_of)?, b.eval_index_by(value_of)?);
                Ok(if c != 0 { a } else { b })
            }
            Self::IfThenElse(c, a, b) => {
                if c.eval_index_by(value_of)? != 0 {
                    a.eval_index_by(value_of)
                } else {
                    b.eval_index_by(value_of)
                }
            }
            Self::Cast(ty, value) if ty.scalar.is_integer() && ty.is_scalar() => {
                let exact = value.eval_index_by(value_of)?;
                // A cast that wraps would have another value than over the integers, so it has none here.
                let (low, high) = ty.scalar.integer_range().unwrap_or((0, 0));
                if (low..=high).contains(&exact) { Ok(exact) } else { Err(overflow()) }
            }
            Self::Cast(ty, value) if ty.scalar == ScalarType::Bool && value.dtype().is_scalar() => {
                Ok((value.eval_index_by(value_of)? != 0).into())
            }
            Self::Cast(..)
            | Self::Float { .. }
            | Self::Call(..)
            | Self::Ramp { .. }
            | Self::Broadcast { .. }
            | Self::Load { .. } => Err(not_an_index()),
        }
    }
}

/// Returns the type whose width bounds the amount of a shift of `lhs`. The other operators ignore the type, so it is found
/// only for shifts: it takes a walk over `lhs`.
fn shift_type(op: BinaryOp, lhs: &Expr) -> ScalarType {
    if matches!(op, BinaryOp::Shl | BinaryOp::Shr) { lhs.dtype().scalar } else { ScalarType::Int32 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shared::SharedExpr;

    #[test]
    fn overflow_of_128_bits_is_an_error() {
        let big = Expr::Int { value: i128::MAX, ty: ScalarType::Int64 };
        let result = (big + Expr::int(1)).eval_index(&Bindings::new());
        assert!(matches!(result, Err(EvalError::Scalar { source: ScalarError::Overflow, .. })));
    }

    #[test]
    fn if_then_else_evaluates_only_the_chosen_branch() {
        let bad = Expr::int(1).floor_div(Expr::int(0));
        let chosen = Expr::IfThenElse(
            SharedExpr::new(Expr::bool(false)),
            SharedExpr::new(bad.clone()),
            SharedExpr::new(Expr::int(7)),
        );
        assert_eq!(chosen.eval_index(&Bindings::new()), Ok(7));
        let both =
            Expr::Select(SharedExpr::new(Expr::bool(false)), SharedExpr::new(bad), SharedExpr::new(Expr::int(7)));
        assert!(both.eval_index(&Bindings::new()).is_err());
    }
}
