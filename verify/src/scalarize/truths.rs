//! Truth values that are kept as integers of one byte, as TVM stores them, and programs that keep them as `bool` instead.
//!
//! ```text
//! M: (n,) int8                                 M: (n,) bool
//! M[i] = Cast(int8, A[i] > 0)                  M[i] = A[i] > 0
//! B[i] = Cast(bool, M[i]) or M[i] != 0         B[i] = M[i] or M[i]
//! ```
//!
//! A `bool` is one byte that is 0 or 1, so that memory has the same bytes in both programs if nothing but 0 and 1 is ever written
//! to it as an integer. That is seen from the form of each value that is stored: the conversion of a truth value, 0, 1, a choice
//! between such values, or the value of memory that holds nothing else either. The memory is an allocation, or a parameter of truth
//! values; a parameter of integers may hold any integers at the call.

use std::convert::Infallible;

use tilewright_ir::visit::Rewrite;
use tilewright_ir::{BinaryOp, Buffer, DataType, Expr, PrimFunc, ScalarType, SharedExpr, Stmt, StmtKind, UnaryOp};

/// Whether a function keeps truth values as integers.
pub(super) fn has_truths(func: &PrimFunc) -> bool {
    !Truths::of(func).kept.is_empty()
}

/// The function with `bool` in the place of the integers that stand for truth values.
pub(super) fn with_truths(func: &PrimFunc) -> PrimFunc {
    let mut truths = Truths::of(func);
    if truths.kept.is_empty() {
        return func.clone();
    }
    let Ok(body) = truths.stmt(&func.body);
    PrimFunc { body, ..func.clone() }
}

/// The buffers of integers that stand for truth values.
struct Truths {
    /// Each with the buffer of truth values on the same memory.
    kept: Vec<(Buffer, Buffer)>,
}

impl Truths {
    /// The greatest set of buffers such that nothing but 0 and 1 is written through any of them.
    fn of(func: &PrimFunc) -> Self {
        let candidates = candidates(func).into_iter().map(|buffer| {
            let truths = buffer.with(|info| info.dtype = DataType::BOOL);
            (buffer, truths)
        });
        let mut found = Self { kept: candidates.collect() };
        loop {
            let mut wrong: Option<Buffer> = None;
            func.body.walk(&mut |stmt| {
                if let StmtKind::Store { buffer, value, .. } = &stmt.kind
                    && found.of_integers(buffer).is_some()
                    && found.truth(value).is_none()
                {
                    wrong.get_or_insert_with(|| buffer.clone());
                }
            });
            let Some(wrong) = wrong else { return found };
            found.kept.retain(|(buffer, _)| !buffer.aliases(&wrong));
        }
    }

    /// The buffer of truth values for a buffer of integers.
    fn of_integers(&self, buffer: &Buffer) -> Option<&Buffer> {
        self.kept.iter().find(|(kept, _)| kept == buffer).map(|(_, truths)| truths)
    }

    /// The truth value that an integer stands for: the integer is 1 where it holds, and else 0.
    fn truth(&mut self, value: &Expr) -> Option<Expr> {
        match value {
            Expr::Int { value: 0 | 1, .. } => Some(Expr::bool(value.as_const_int() == Some(1))),
            Expr::Broadcast { value, lanes } => {
                Some(Expr::Broadcast { value: SharedExpr::new(self.truth(value)?), lanes: *lanes })
            }
            Expr::Cast(ty, inner) if ty.scalar.is_integer() => {
                if inner.dtype().scalar == ScalarType::Bool {
                    let Ok(inner) = self.expr(inner);
                    Some(inner)
                } else {
                    self.truth(inner)
                }
            }
            Expr::Load { buffer, indices } => {
                let truths = self.of_integers(buffer)?.clone();
                let Ok(indices) = self.exprs(indices);
                Some(Expr::load(&truths, indices))
            }
            Expr::IfThenElse(cond, a, b) | Expr::Select(cond, a, b) => {
                let (a, b) = (self.truth(a)?, self.truth(b)?);
                let Ok(cond) = self.expr(cond);
                let is_alike = cond.dtype() == a.dtype();
                Some(match (constant(&a), constant(&b)) {
                    (Some(1), Some(0)) if is_alike => cond,
                    (Some(0), Some(1)) if is_alike => Expr::unary(UnaryOp::Not, cond),
                    _ if matches!(value, Expr::Select(..)) => Expr::Select(cond.into(), a.into(), b.into()),
                    _ => Expr::IfThenElse(cond.into(), a.into(), b.into()),
                })
            }
            _ => None,
        }
    }
}

/// Buffers of integers of one byte, on memory that holds nothing but 0 and 1 at the call: that of an allocation, or of a parameter of
/// truth values. The memory is seen as truth values and as such integers, and not otherwise.
fn candidates(func: &PrimFunc) -> Vec<Buffer> {
    let buffers = func.buffers();
    let is_byte = |buffer: &Buffer| buffer.dtype.is_scalar() && is_byte(buffer.dtype.scalar);
    let is_truth = |buffer: &Buffer| buffer.dtype == DataType::BOOL;
    let is_given = |buffer: &Buffer| func.buffer_map.iter().any(|(_, param)| param.aliases(buffer) && !is_truth(param));
    let is_seen_so = |buffer: &Buffer| {
        buffers.iter().filter(|other| other.aliases(buffer)).all(|other| is_byte(other) || is_truth(other))
    };
    buffers.iter().filter(|buffer| is_byte(buffer) && !is_given(buffer) && is_seen_so(buffer)).cloned().collect()
}

fn is_byte(ty: ScalarType) -> bool {
    matches!(ty, ScalarType::Int8 | ScalarType::UInt8)
}

/// The value of a constant, in all lanes.
fn constant(expr: &Expr) -> Option<i128> {
    match expr {
        Expr::Broadcast { value, .. } => value.as_const_int(),
        _ => expr.as_const_int(),
    }
}

/// The truth value that an integer was converted from.
fn converted(expr: &Expr) -> Option<&Expr> {
    match expr {
        Expr::Cast(ty, inner) if ty.scalar.is_integer() && inner.dtype().scalar == ScalarType::Bool => Some(inner),
        _ => None,
    }
}

/// A conversion, or a comparison with 0 or 1, of an integer that was converted from a truth value.
fn undone(expr: &Expr) -> Option<Expr> {
    match expr {
        Expr::Cast(ty, value) => {
            let truth = converted(value)?;
            Some(if ty.scalar == ScalarType::Bool { truth.clone() } else { Expr::Cast(*ty, truth.clone().into()) })
        }
        Expr::Binary(op @ (BinaryOp::Eq | BinaryOp::Ne), a, b) => {
            let (truth, other) = match (converted(a), converted(b)) {
                (Some(truth), _) => (truth, constant(b)?),
                (None, Some(truth)) => (truth, constant(a)?),
                (None, None) => return None,
            };
            match (other, *op == BinaryOp::Eq) {
                (0, false) | (1, true) => Some(truth.clone()),
                (0, true) | (1, false) => Some(Expr::unary(UnaryOp::Not, truth.clone())),
                _ => None,
            }
        }
        _ => None,
    }
}

impl Rewrite for Truths {
    type Error = Infallible;

    fn expr(&mut self, expr: &Expr) -> Result<Expr, Infallible> {
        if let Expr::Load { buffer, indices } = expr
            && let Some(truths) = self.of_integers(buffer).cloned()
        {
            let load = Expr::load(&truths, self.exprs(indices)?);
            let ty = buffer.dtype.with_lanes(load.dtype().lanes);
            return Ok(Expr::Cast(ty, load.into()));
        }
        let expr = self.expr_children(expr)?;
        Ok(undone(&expr).unwrap_or(expr))
    }

    fn stmt(&mut self, stmt: &Stmt) -> Result<Stmt, Infallible> {
        if let StmtKind::Store { buffer, indices, value } = &stmt.kind
            && let Some(truths) = self.of_integers(buffer).cloned()
            && let Some(value) = self.truth(value)
        {
            return Ok(Stmt::store(&truths, self.exprs(indices)?, value).at(stmt.span));
        }
        self.stmt_children(stmt)
    }

    fn buffer(&mut self, buffer: &Buffer) -> Result<Buffer, Infallible> {
        Ok(self.of_integers(buffer).unwrap_or(buffer).clone())
    }
}
