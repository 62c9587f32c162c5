//! The value of an expression.
//!
//! ```text
//! T.if_then_else(m, A[T.Ramp(0, 2, 4)], 0)     m has 4 lanes: A[0] is read if the first lane of m is true, A[2] if ...
//! ```

use tilewright_ir::{BinaryOp, Expr, Scalar, ScalarError, ScalarType, scalar};

use super::{Interpreter, Value};
use crate::config::{RunError as Stop, TrapKind};

/// The number of a lane if only that lane of vectors is to be evaluated, as in an operand that a condition with several
/// lanes chooses; `None` for all lanes. A scalar, such as the base of a ramp, has its only lane in either case.
type OnlyLane = Option<u16>;
/// One lane of a result, or why an operator has none.
type ScalarResult = Result<Scalar, ScalarError>;

/// The lanes to evaluate of a vector with this many.
fn lanes(count: u16, only: OnlyLane) -> std::ops::Range<u16> {
    only.filter(|_| count > 1).map_or(0..count, |lane| lane..lane + 1)
}

/// One lane of an operand; a scalar operand has the same value for every lane.
pub(super) fn lane_of(value: &Value, lane: usize) -> Scalar {
    value.get(lane).or(value.first()).copied().unwrap_or(Scalar::Int(0))
}

/// Whether a lane of a condition holds.
pub(super) fn is_true(value: Scalar) -> bool {
    value.as_int() != Some(0)
}

impl Interpreter<'_> {
    /// Evaluates a scalar.
    pub(super) fn scalar(&mut self, expr: &Expr) -> Result<Scalar, Stop> {
        Ok(lane_of(&self.value(expr, None)?, 0))
    }

    /// Evaluates an expression.
    pub(super) fn value(&mut self, expr: &Expr, only: OnlyLane) -> Result<Value, Stop> {
        self.enter()?;
        let value = self.value_of_kind(expr, only)?;
        self.depth -= 1;
        Ok(value)
    }

    /// Evaluates several operands from left to right.
    pub(super) fn values(&mut self, exprs: &[&Expr], only: OnlyLane) -> Result<Vec<Value>, Stop> {
        exprs.iter().map(|expr| self.value(expr, only)).collect()
    }

    /// Applies an operator to each lane of its operands.
    fn each_lane(&self, operands: &[Value], operator: impl Fn(&[Scalar]) -> ScalarResult) -> Result<Value, Stop> {
        let count = operands.iter().map(Vec::len).max().unwrap_or(0);
        let lane = |at: usize| operands.iter().map(|operand| lane_of(operand, at)).collect::<Vec<_>>();
        (0..count).map(|at| operator(&lane(at))).collect::<Result<_, _>>().map_err(|error| {
            let kind = match error {
                ScalarError::ShiftAmount(_) => TrapKind::ShiftRange,
                // Operands have the operator's type in a validated function, and 128 bits hold every exact result.
                ScalarError::DivisionByZero | ScalarError::Type | ScalarError::Overflow => TrapKind::DivisionByZero,
            };
            self.trap(kind, error.to_string())
        })
    }

    /// Evaluates an expression, operands first.
    fn value_of_kind(&mut self, expr: &Expr, only: OnlyLane) -> Result<Value, Stop> {
        let ty = |operand: &Expr| operand.dtype().scalar;
        match expr {
            Expr::Int { value, .. } => Ok(vec![Scalar::Int(*value)]),
            Expr::Float { value, .. } => Ok(vec![Scalar::Float(*value)]),
            Expr::Var(var) => match self.vars.get(var) {
                Some(value) => Ok(lanes(var.dtype().lanes, only).map(|lane| lane_of(value, lane.into())).collect()),
                None => Err(self.trap(TrapKind::Undefined, format!("handle `{var}` has no value"))),
            },
            Expr::Binary(op, lhs, rhs) => {
                let operands = self.values(&[lhs, rhs], only)?;
                self.each_lane(&operands, |lane| op.eval(ty(lhs), lane[0], lane[1]))
            }
            Expr::Unary(op, operand) => {
                let operands = self.values(&[operand], only)?;
                self.each_lane(&operands, |lane| op.eval(ty(operand), lane[0]))
            }
            Expr::Call(function, args) => {
                let operands = self.values(&Vec::from_iter(&**args), only)?;
                let ty = args.first().map_or(ScalarType::Float32, ty);
                self.each_lane(&operands, |lane| function.eval(ty, lane))
            }
            Expr::Select(cond, a, b) => {
                let operands = self.values(&[cond, a, b], only)?;
                self.each_lane(&operands, |lane| Ok(if is_true(lane[0]) { lane[1] } else { lane[2] }))
            }
            Expr::IfThenElse(cond, a, b) if cond.dtype().is_scalar() || only.is_some() => {
                let cond = lane_of(&self.value(cond, only)?, 0);
                self.value(if is_true(cond) { a } else { b }, only)
            }
            Expr::IfThenElse(cond, ..) => {
                let each = (0..cond.dtype().lanes).map(|lane| self.value(expr, Some(lane)));
                Ok(each.collect::<Result<Vec<_>, _>>()?.concat())
            }
            Expr::Cast(to, operand) => {
                let operands = self.values(&[operand], only)?;
                self.each_lane(&operands, |lane| Ok(scalar::cast(ty(operand), to.scalar, lane[0])))
            }
            Expr::Ramp { base, stride, lanes: count } => {
                let numbers = lanes(*count, only).map(|lane| Scalar::Int(lane.into())).collect();
                let (base, stride, ty) = (self.value(base, only)?, self.value(stride, only)?, ty(base));
                self.each_lane(&[base, stride, numbers], |lane| {
                    BinaryOp::Add.eval(ty, lane[0], BinaryOp::Mul.eval(ty, lane[1], lane[2])?)
                })
            }
            Expr::Broadcast { value, lanes: count } => {
                let value = self.scalar(value)?;
                Ok(lanes(*count, only).map(|_| value).collect())
            }
            Expr::Load { buffer, indices } => {
                let count = expr.dtype().lanes;
                let indices = self.values(&Vec::from_iter(&**indices), only)?;
                lanes(count, only).map(|lane| self.load(buffer, &indices, lane.into())).collect()
            }
        }
    }
}
