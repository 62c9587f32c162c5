//! Loops over threads inside of loops over the same threads: one thread has one index on each axis.
//!
//! ```text
//! for t in 8 (threadIdx.x):                       for t in 8 (threadIdx.x):
//!     for o in 4:                                     for o in 4:
//!         for u in 8 (threadIdx.x):         ->            S[o * 8 + t] = A[o * 8 + t]
//!             S[o * 8 + u] = A[o * 8 + u]
//! ```
//!
//! Schedules of TVM bind the loops of a copy to the threads that are around it already, and mean that all threads share the copy. Loops
//! with other bounds stay as they are.

use std::convert::Infallible;
use std::sync::Arc;

use crate::expr::Expr;
use crate::func::PrimFunc;
use crate::shared::SharedExpr;
use crate::stmt::{For, ForKind, Stmt, StmtKind, ThreadTag};
use crate::visit::{Rewrite, Substitution};

/// Returns the program in which no loop over threads is inside of another one over the same threads.
pub fn unified(func: &PrimFunc) -> PrimFunc {
    let Ok(body) = Unify { open: Vec::new() }.stmt(&func.body);
    PrimFunc { body, ..func.clone() }
}

/// The loops over threads around a place.
struct Unify {
    open: Vec<(ThreadTag, Arc<For>)>,
}

impl Rewrite for Unify {
    type Error = Infallible;

    fn stmt(&mut self, stmt: &Stmt) -> Result<Stmt, Infallible> {
        let StmtKind::For(inner) = &stmt.kind else { return self.stmt_children(stmt) };
        let ForKind::ThreadBinding(tag) = inner.kind else { return self.stmt_children(stmt) };
        let around = self.open.iter().find(|(other, outer)| *other == tag && has_same_bounds(outer, inner));
        if let Some((_, outer)) = around {
            let (index, ty) = (Expr::from(&outer.var), inner.var.dtype());
            let index = if index.dtype() == ty { index } else { Expr::Cast(ty, SharedExpr::new(index)) };
            return self.stmt(&Substitution::new([&inner.var], [index]).apply_stmt(&inner.body));
        }
        self.open.push((tag, inner.clone()));
        let rewritten = self.stmt_children(stmt);
        self.open.pop();
        rewritten
    }
}

/// Whether two loops run over the same indices: constants that are equal, or bounds that are written in the same way.
fn has_same_bounds(outer: &For, inner: &For) -> bool {
    let same = |a: &Expr, b: &Expr| match (a.as_const_int(), b.as_const_int()) {
        (Some(a), Some(b)) => a == b,
        _ => a == b,
    };
    same(&outer.min, &inner.min) && same(&outer.extent, &inner.extent)
}
