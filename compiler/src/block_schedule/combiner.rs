//! What a block of a reduction combines: its operator, its start value, and the value of one instance.
//!
//! ```text
//! with T.init():                                      operator: sum        start: T.float32(0)
//!     C[v_i] = T.float32(0)                           target:   C[v_i]     value: A[v_i, v_k]
//! if v_k < m:                                         only where: v_k < m
//!     C[v_i] = C[v_i] + A[v_i, v_k]
//! ```

use tilewright_ir::{Buffer, Diagnostic, Expr, ReduceOp, Stmt, StmtKind};

use super::fault;
use super::reduction::parts;
use super::tree::Found;

/// The parts of a reduction, in terms of the axes of its block.
#[derive(Clone, Debug)]
pub(super) struct Combiner {
    pub(super) op: ReduceOp,
    /// The element that is computed.
    pub(super) target: Buffer,
    pub(super) index: Vec<Expr>,
    /// The value that the reduction starts from.
    pub(super) start: Expr,
    /// What an instance combines with it.
    pub(super) value: Expr,
    /// The condition under which it does, apart from the predicate of the block.
    pub(super) only_where: Option<Expr>,
}

impl Combiner {
    /// Returns what a block combines.
    ///
    /// # Errors
    /// `schedule`: the block has no initialisation, or does not combine one element with one value by `+`, `*`, `max` or `min`.
    pub(super) fn of(found: &Found<'_>) -> Result<Self, Diagnostic> {
        let wrong = || {
            let message = format!("block `{}` is no reduction of one element", found.block.name);
            fault(
                message,
                "it has `C[i] = start` in `T.init` and then `C[i] = C[i] + value`; also `*`, `T.max`, `T.min`",
            )
        };
        let (init, rest) = parts(found)?;
        let (only_where, update) = match &rest.kind {
            StmtKind::If { cond, then_body, else_body: None } => (Some(cond.clone()), &**then_body),
            _ => (None, &rest),
        };
        let (first, index, start) = stored(&init).ok_or_else(wrong)?;
        let (target, again, value) = stored(update).ok_or_else(wrong)?;
        let is_same = first == target && index == again;
        let read = Expr::load(target, index.clone());
        let (op, value) = combined(value, &read).filter(|_| is_same).ok_or_else(wrong)?;
        let is_read_again = reads(&value, target)
            || reads(start, target)
            || only_where.as_ref().is_some_and(|cond| reads(cond, target));
        if is_read_again {
            return Err(wrong());
        }
        Ok(Self { op, target: target.clone(), index: index.clone(), start: start.clone(), value, only_where })
    }
}

fn stored(stmt: &Stmt) -> Option<(&Buffer, &Vec<Expr>, &Expr)> {
    match &stmt.kind {
        StmtKind::Store { buffer, indices, value } => Some((buffer, indices, value)),
        _ => None,
    }
}

fn reads(expr: &Expr, buffer: &Buffer) -> bool {
    let mut found = false;
    expr.walk(&mut |part| found |= matches!(part, Expr::Load { buffer: read, .. } if read.aliases(buffer)));
    found
}

/// What a value combines with what was read, and how.
fn combined(value: &Expr, read: &Expr) -> Option<(ReduceOp, Expr)> {
    let Expr::Binary(op, a, b) = value else { return None };
    let all = [ReduceOp::Sum, ReduceOp::Prod, ReduceOp::Max, ReduceOp::Min];
    let op = all.into_iter().find(|other| other.combine() == *op)?;
    let other = if **a == *read { b } else { a };
    (**a == *read || **b == *read).then(|| (op, Expr::clone(other)))
}
