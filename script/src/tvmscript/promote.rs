//! Type conversion of operands, by the rules of TVMScript.
//!
//! - A literal takes the type of the other operand: `A[i] * 2` with a `float32` buffer is `A[i] * T.float32(2)`.
//! - Other operands are converted if the target type represents every value exactly: `int32 + int64` is an `int64`,
//!   `int16 + float32` a `float32`.
//! - A scalar is broadcast to the lanes of a vector.
//! - Everything else is an error, such as `int32 + float32`, so that no implicit conversion loses a value.

use ruff_text_size::TextRange;
use tilewright_ir::{BinaryOp, DataType, Expr, ScalarType, SharedExpr, TypeClass};

use super::reader::Reader;

/// An expression as it was read, before its type is settled.
#[derive(Clone, Debug)]
pub(crate) struct Value {
    /// The expression. A literal has its default type.
    pub(crate) expr: Expr,
    /// Whether the expression is a literal, whose type follows from the context.
    pub(crate) is_literal: bool,
}

impl From<Expr> for Value {
    fn from(expr: Expr) -> Self {
        Self { expr, is_literal: false }
    }
}

/// Returns a literal as a constant of type `ty`. Returns `None` if `ty` cannot represent an integer literal exactly;
/// float literals are rounded to any float type.
pub(super) fn literal_as(literal: &Expr, ty: ScalarType) -> Option<Expr> {
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
        // `bool` and handles have no literals, and a float literal is not an integer.
        _ => None,
    }
}

/// Returns the number of significant bits of a float type, and `None` for other types.
fn float_precision(ty: ScalarType) -> Option<u32> {
    match ty {
        ScalarType::BFloat16 => Some(8),
        ScalarType::Float16 => Some(11),
        ScalarType::Float32 => Some(24),
        ScalarType::Float64 => Some(53),
        ScalarType::Bool
        | ScalarType::Int8
        | ScalarType::Int16
        | ScalarType::Int32
        | ScalarType::Int64
        | ScalarType::UInt8
        | ScalarType::UInt16
        | ScalarType::UInt32
        | ScalarType::UInt64
        | ScalarType::Handle => None,
    }
}

/// Returns whether type `to` represents every value of type `from`.
fn is_lossless(from: ScalarType, to: ScalarType) -> bool {
    match (from.class(), to.class()) {
        (TypeClass::Int | TypeClass::UInt, TypeClass::Int | TypeClass::UInt) => {
            let ranges = from.integer_range().zip(to.integer_range());
            ranges.is_some_and(|(a, b)| b.0 <= a.0 && a.1 <= b.1)
        }
        (TypeClass::Int | TypeClass::UInt, TypeClass::Float) => {
            // float16 has a small range besides its 11 bits: TVM converts no integer to it implicitly.
            to != ScalarType::Float16 && float_precision(to).is_some_and(|precision| from.bits() <= precision)
        }
        (TypeClass::Float, TypeClass::Float) => {
            // bfloat16 has fewer bits of precision than float16, but a larger exponent range.
            float_precision(from) <= float_precision(to) && !(from == ScalarType::BFloat16 && to == ScalarType::Float16)
        }
        (TypeClass::Bool | TypeClass::Handle, _) | (_, TypeClass::Bool | TypeClass::Handle) => false,
        (TypeClass::Float, TypeClass::Int | TypeClass::UInt) => false,
    }
}

impl Reader<'_> {
    /// Converts a value to type `ty`. A scalar is broadcast to the lanes of `ty`. Reports an error if the conversion
    /// would lose values.
    pub(super) fn coerce(&mut self, value: Value, ty: DataType, range: TextRange) -> Option<Expr> {
        let from = value.expr.dtype();
        if from == ty {
            return Some(super::calls::round_literal(value));
        }
        let scalar = if from.scalar == ty.scalar {
            Some(value.expr.clone())
        } else if value.is_literal {
            literal_as(&value.expr, ty.scalar)
        } else {
            let cast = || Expr::Cast(ty.with_lanes(from.lanes), SharedExpr::new(value.expr.clone()));
            is_lossless(from.scalar, ty.scalar).then(cast)
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

    /// Converts both operands to a common type: their own if it is the same, that of the operand which is not a
    /// literal, or the one that represents all values of the other. The number of lanes is the larger one.
    pub(super) fn unify(&mut self, lhs: Value, rhs: Value, range: TextRange) -> Option<(Expr, Expr)> {
        let (a, b) = (lhs.expr.dtype(), rhs.expr.dtype());
        // Literals adapt before anything is converted: `x + 1` must not turn an `int8` into an `int32`.
        let scalar = if a.scalar == b.scalar {
            Some(a.scalar)
        } else if lhs.is_literal && literal_as(&lhs.expr, b.scalar).is_some() {
            Some(b.scalar)
        } else if rhs.is_literal && literal_as(&rhs.expr, a.scalar).is_some() {
            Some(a.scalar)
        } else if is_lossless(a.scalar, b.scalar) {
            Some(b.scalar)
        } else {
            is_lossless(b.scalar, a.scalar).then_some(a.scalar)
        };
        let Some(scalar) = scalar else {
            let message = format!("`{}` has the type {a}, `{}` the type {b}", lhs.expr, rhs.expr);
            return self.error("type", range, message, "convert one of them: `T.cast(x, \"float32\")`");
        };
        let ty = DataType { scalar, lanes: a.lanes.max(b.lanes) };
        let rhs = self.coerce(rhs, ty, range);
        Some((self.coerce(lhs, ty, range)?, rhs?))
    }

    /// Creates `lhs op rhs` after converting the operands to a common type. Reports an error if the operator is not
    /// defined for that type.
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
