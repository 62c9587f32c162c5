//! Integers of several types in one equation. Equations are solved as if there were one type of integers, without conversions; what
//! is found gets its types back.
//!
//! ```text
//! i * 24 + int64(j) = i' * 24 + int64(j')         i * 24 + j = i' * 24 + j', so i = i' and j = j'
//! ```

use std::convert::Infallible;

use tilewright_ir::visit::Rewrite;
use tilewright_ir::{BinaryOp, DataType, Expr, ScalarType, SharedExpr, UnaryOp};

/// An expression without conversions of integers to integers.
pub(super) fn untyped(expr: &Expr) -> Expr {
    let Ok(expr) = Untyped.expr(expr);
    expr
}

struct Untyped;

impl Rewrite for Untyped {
    type Error = Infallible;

    fn expr(&mut self, expr: &Expr) -> Result<Expr, Infallible> {
        match expr {
            Expr::Cast(ty, inner) if [*ty, inner.dtype()].into_iter().all(is_integer) => self.expr(inner),
            Expr::Load { .. } => Ok(expr.clone()),
            _ => self.expr_children(expr),
        }
    }
}

fn is_integer(ty: DataType) -> bool {
    ty.is_scalar() && ty.scalar.is_integer() && ty.scalar != ScalarType::Bool
}

/// An integer expression of the type `ty`, in which all operands have that type, too. What has one type already stays as it is.
pub(super) fn typed(expr: &Expr, ty: ScalarType) -> Expr {
    if has_one_type(expr) { expr.clone() } else { integer(expr, ty) }
}

/// A condition in which both sides of each comparison have one type. What has one type already stays as it is.
pub(super) fn typed_condition(expr: &Expr) -> Expr {
    if has_one_type(expr) { expr.clone() } else { condition(expr) }
}

/// Whether the integers in an expression have one type.
fn has_one_type(expr: &Expr) -> bool {
    let mut found: Option<ScalarType> = None;
    let mut is_one = true;
    expr.walk(&mut |part| {
        let ty = part.dtype();
        if is_integer(ty) {
            is_one &= *found.get_or_insert(ty.scalar) == ty.scalar;
        }
    });
    is_one
}

fn integer(expr: &Expr, ty: ScalarType) -> Expr {
    let part = |part: &Expr| integer(part, ty);
    match expr {
        Expr::Int { value, .. } => Expr::int_of(*value, ty).unwrap_or_else(|| expr.clone()),
        Expr::Cast(_, inner) if inner.dtype().scalar.is_integer() => part(inner),
        Expr::Binary(op, a, b) if keeps_type(*op) => Expr::binary(*op, part(a), part(b)),
        Expr::Select(cond, a, b) => {
            Expr::Select(SharedExpr::new(condition(cond)), SharedExpr::new(part(a)), SharedExpr::new(part(b)))
        }
        Expr::IfThenElse(cond, a, b) => {
            Expr::IfThenElse(SharedExpr::new(condition(cond)), SharedExpr::new(part(a)), SharedExpr::new(part(b)))
        }
        _ if expr.dtype().scalar == ty => expr.clone(),
        _ => Expr::Cast(DataType::scalar(ty), SharedExpr::new(expr.clone())),
    }
}

fn condition(expr: &Expr) -> Expr {
    match expr {
        Expr::Binary(op @ (BinaryOp::And | BinaryOp::Or), a, b) => Expr::binary(*op, condition(a), condition(b)),
        Expr::Unary(UnaryOp::Not, inner) => Expr::unary(UnaryOp::Not, condition(inner)),
        Expr::Binary(op, a, b) => Expr::binary(*op, integer(a, ScalarType::Int64), integer(b, ScalarType::Int64)),
        _ => expr.clone(),
    }
}

fn keeps_type(op: BinaryOp) -> bool {
    use BinaryOp::{Add, FloorDiv, FloorMod, Max, Min, Mul, Sub, TruncDiv, TruncMod};
    matches!(op, Add | Sub | Mul | FloorDiv | FloorMod | TruncDiv | TruncMod | Min | Max)
}
