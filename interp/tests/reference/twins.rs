//! Wrong versions of the rules of the language.

use std::convert::Infallible;
use std::sync::Arc;

use tilewright_ir::visit::{Rewrite, Substitution};
use tilewright_ir::{BinaryOp as B, Buffer, BufferInfo, DataType, Expr, For, MathFn, ScalarType as S, Stmt, StmtKind};

use crate::cases::{allocate, call, cast, int, ramp, shared, store};

/// A wrong version of a rule, as the program that a right interpreter would have to be given to behave like that.
#[derive(Clone, Copy, Default)]
pub(crate) struct Twin {
    expr: Option<fn(&Expr) -> Option<Expr>>,
    stmt: Option<fn(&Stmt) -> Option<Stmt>>,
    buffer: Option<fn(&mut BufferInfo)>,
}

impl Rewrite for Twin {
    type Error = Infallible;

    fn expr(&mut self, expr: &Expr) -> Result<Expr, Infallible> {
        let expr = self.expr_children(expr)?;
        Ok(self.expr.and_then(|change| change(&expr)).unwrap_or(expr))
    }

    fn stmt(&mut self, stmt: &Stmt) -> Result<Stmt, Infallible> {
        let stmt = self.stmt_children(stmt)?;
        Ok(self.stmt.and_then(|change| change(&stmt)).unwrap_or(stmt))
    }

    fn buffer(&mut self, buffer: &Buffer) -> Result<Buffer, Infallible> {
        Ok(self.buffer.map_or_else(|| buffer.clone(), |change| buffer.with(change)))
    }
}

fn binary(expr: &Expr) -> Option<(B, Expr, Expr, DataType)> {
    let Expr::Binary(op, a, b) = expr else { return None };
    Some((*op, (**a).clone(), (**b).clone(), expr.dtype()))
}

/// The operator on operands of another type, converted back.
fn computed_in(from: S, within: S, expr: &Expr) -> Option<Expr> {
    let (op, a, b, result) = binary(expr).filter(|(_, a, ..)| a.dtype().scalar == from)?;
    Some(cast(result.scalar, Expr::binary(op, cast(within, a), cast(within, b))))
}

fn replaced(expr: &Expr, pairs: &[(B, B)]) -> Option<Expr> {
    let (op, a, b, _) = binary(expr)?;
    pairs.iter().find(|(from, _)| *from == op).map(|(_, to)| Expr::binary(*to, a, b))
}

pub(crate) fn twins() -> Vec<(&'static str, Twin)> {
    let expr = |name, change| (name, Twin { expr: Some(change), ..Twin::default() });
    let stmt = |name, change| (name, Twin { stmt: Some(change), ..Twin::default() });
    let buffer = |name, change| (name, Twin { buffer: Some(change), ..Twin::default() });
    vec![
        expr("floor division truncates", |expr| {
            replaced(expr, &[(B::FloorDiv, B::TruncDiv), (B::FloorMod, B::TruncMod)])
        }),
        expr("truncating division floors", |expr| {
            replaced(expr, &[(B::TruncDiv, B::FloorDiv), (B::TruncMod, B::FloorMod)])
        }),
        expr("unsigned bytes have a sign", |expr| computed_in(S::UInt8, S::Int8, expr)),
        expr("right shifts fill with zeros", |expr| {
            computed_in(S::Int8, S::UInt8, expr).filter(|_| matches!(expr, Expr::Binary(B::Shr, ..)))
        }),
        expr("sums saturate", |expr| {
            let (_, a, b, _) = binary(expr).filter(|(op, a, ..)| *op == B::Add && a.dtype() == S::Int8.into())?;
            let least = Expr::binary(B::Min, cast(S::Int32, a) + cast(S::Int32, b), Expr::int(127));
            Some(cast(S::Int8, Expr::binary(B::Max, least, Expr::int(-128))))
        }),
        expr("and stops at the first false operand", |expr| {
            let (_, a, b, _) = binary(expr).filter(|(op, ..)| *op == B::And)?;
            Some(Expr::IfThenElse(shared(a), shared(b), shared(Expr::bool(false))))
        }),
        expr("or stops at the first true operand", |expr| {
            let (_, a, b, _) = binary(expr).filter(|(op, ..)| *op == B::Or)?;
            Some(Expr::IfThenElse(shared(a), shared(Expr::bool(true)), shared(b)))
        }),
        expr("both branches of if_then_else are evaluated", |expr| {
            let Expr::IfThenElse(cond, a, b) = expr else { return None };
            Some(Expr::Select(cond.clone(), a.clone(), b.clone()))
        }),
        expr("select evaluates one operand", |expr| {
            let Expr::Select(cond, a, b) = expr else { return None };
            Some(Expr::IfThenElse(cond.clone(), a.clone(), b.clone()))
        }),
        expr("the stride of a ramp is ignored", |expr| {
            let Expr::Ramp { base, lanes, .. } = expr else { return None };
            let stride = shared(int(1, base.dtype().scalar));
            Some(Expr::Ramp { base: base.clone(), stride, lanes: *lanes })
        }),
        expr("floats are rounded to the nearest integer", |expr| {
            let Expr::Cast(to, value) = expr else { return None };
            let is_float = value.dtype().scalar.is_float() && to.scalar.is_integer();
            is_float.then(|| Expr::Cast(*to, shared(call(MathFn::Round, &[(**value).clone()]))))
        }),
        buffer("the offset of a view is ignored", |info| info.elem_offset = Expr::int(0)),
        buffer("the strides of a view are ignored", |info| info.strides = None),
        stmt("memory starts with zeros", |stmt| {
            let StmtKind::Allocate { buffer, body } = &stmt.kind else { return None };
            let extent = u16::try_from(*buffer.const_shape()?.first()?).ok().filter(|extent| *extent > 1)?;
            let zeros = Expr::Broadcast { value: shared(Expr::int(0)), lanes: extent };
            let zeros = store(buffer, ramp(0, 1, extent), zeros);
            Some(allocate(buffer, Stmt::seq(vec![zeros, (**body).clone()])))
        }),
        stmt("loops run backwards", |stmt| {
            let StmtKind::For(inner) = &stmt.kind else { return None };
            let backwards =
                inner.min.clone() + inner.min.clone() + inner.extent.clone() - Expr::int(1) - Expr::from(&inner.var);
            let substitution = Substitution::new([&inner.var], [backwards]);
            let body = substitution.apply_stmt(&inner.body);
            (inner.var.dtype() == DataType::INT32)
                .then(|| Stmt::new(StmtKind::For(Arc::new(For { body, ..(**inner).clone() }))))
        }),
    ]
}
