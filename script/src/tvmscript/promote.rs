//! Types of operands: literals adapt to the other side, exact conversions are made, everything else is an error.

use ruff_text_size::TextRange;
use tilewright_ir::{BinaryOp, DataType, Expr, ScalarType, SharedExpr, TypeClass};

use super::reader::Reader;

/// An expression, and whether it is a plain number, whose type follows from its use.
#[derive(Clone, Debug)]
pub(crate) struct Value {
    pub(crate) expr: Expr,
    pub(crate) literal: bool,
}

impl From<Expr> for Value {
    fn from(expr: Expr) -> Self {
        Self { expr, literal: false }
    }
}

/// A literal as a value of the type `ty`; none if it would change.
pub(super) fn adapt(literal: &Expr, ty: ScalarType) -> Option<Expr> {
    match literal {
        Expr::Int { value, .. } if ty.is_integer() => Expr::int_of(*value, ty),
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            reason = "whether the conversion was exact is what is checked"
        )]
        Expr::Int { value, .. } if ty.is_float() => {
            let float = Expr::float_of(*value as f64, ty);
            matches!(float, Expr::Float { value: rounded, .. } if rounded.is_finite() && rounded as i128 == *value)
                .then_some(float)
        }
        Expr::Float { value, .. } if ty.is_float() => Some(Expr::float_of(*value, ty)),
        _ => None,
    }
}

/// Whether every value of `from` is one of `to`.
fn exact(from: ScalarType, to: ScalarType) -> bool {
    let precision = |ty| match ty {
        ScalarType::Float16 => 11,
        ScalarType::BFloat16 => 8,
        ScalarType::Float32 => 24,
        _ => 53,
    };
    match (from.class(), to.class()) {
        (TypeClass::Int | TypeClass::UInt, TypeClass::Int | TypeClass::UInt) => {
            let ranges = from.integer_range().zip(to.integer_range());
            ranges.is_some_and(|(a, b)| b.0 <= a.0 && a.1 <= b.1)
        }
        (TypeClass::Int | TypeClass::UInt, TypeClass::Float) => {
            from.bits() <= precision(to) && to != ScalarType::Float16
        }
        (TypeClass::Float, TypeClass::Float) => {
            precision(from) <= precision(to) && !(from == ScalarType::BFloat16 && to == ScalarType::Float16)
        }
        _ => false,
    }
}

impl Reader<'_> {
    /// A value brought to the type `ty`, if nothing is lost.
    pub(super) fn coerce(&mut self, value: Value, ty: DataType, range: TextRange) -> Option<Expr> {
        let from = value.expr.dtype();
        if from == ty {
            return Some(super::calls::round_literal(value));
        }
        let scalar = if from.scalar == ty.scalar {
            Some(value.expr.clone())
        } else if value.literal {
            adapt(&value.expr, ty.scalar)
        } else {
            let cast = || Expr::Cast(ty.with_lanes(from.lanes), SharedExpr::new(value.expr.clone()));
            exact(from.scalar, ty.scalar).then(cast)
        };
        match scalar {
            Some(expr) if from.lanes == ty.lanes => Some(expr),
            Some(expr) if from.is_scalar() => Some(Expr::Broadcast { value: SharedExpr::new(expr), lanes: ty.lanes }),
            _ => {
                let message = format!("`{}` has the type {from}, but {ty} is needed", value.expr);
                self.error("type", range, message, format!("convert it: `T.cast(..., \"{ty}\")`"))
            }
        }
    }

    /// Both operands in one type.
    pub(super) fn unify(&mut self, lhs: Value, rhs: Value, range: TextRange) -> Option<(Expr, Expr)> {
        let (a, b) = (lhs.expr.dtype(), rhs.expr.dtype());
        let scalar = if a.scalar == b.scalar {
            Some(a.scalar)
        } else if lhs.literal && adapt(&lhs.expr, b.scalar).is_some() {
            Some(b.scalar)
        } else if rhs.literal && adapt(&rhs.expr, a.scalar).is_some() {
            Some(a.scalar)
        } else if exact(a.scalar, b.scalar) {
            Some(b.scalar)
        } else {
            exact(b.scalar, a.scalar).then_some(a.scalar)
        };
        let Some(scalar) = scalar else {
            let message = format!("`{}` has the type {a}, `{}` the type {b}", lhs.expr, rhs.expr);
            return self.error("type", range, message, "convert one of them: `T.cast(x, \"float32\")`");
        };
        let ty = DataType { scalar, lanes: a.lanes.max(b.lanes) };
        let rhs = self.coerce(rhs, ty, range);
        Some((self.coerce(lhs, ty, range)?, rhs?))
    }

    /// `lhs op rhs`.
    pub(super) fn binary(&mut self, op: BinaryOp, lhs: Value, rhs: Value, range: TextRange) -> Option<Expr> {
        let (lhs, rhs) = self.unify(lhs, rhs, range)?;
        let ty = lhs.dtype();
        if op.result_type(ty, rhs.dtype()).is_some() {
            return Some(Expr::binary(op, lhs, rhs));
        }
        let help = match op {
            BinaryOp::Div => "integers are divided by `//`, which rounds down, or `T.truncdiv`, which rounds to zero",
            BinaryOp::And | BinaryOp::Or => "compare with 0 to get a bool, or use `&` and `|` on integers",
            _ => "convert the operands with `T.cast(x, \"...\")`",
        };
        let info = op.info();
        let name = info.symbol.unwrap_or(info.call);
        self.error("type", range, format!("`{name}` is not defined for operands of the type {ty}"), help)
    }
}
