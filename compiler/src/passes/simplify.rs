//! Simplifies every expression, and drops branches that are never taken.
//!
//! ```text
//! for i in range(16):                        for i in range(16):
//!     if i < 16:                      ->         B[i] = A[i]
//!         B[0 * 16 + i] = A[i // 1]
//! ```
//!
//! Loops are kept, even those of one iteration. Buffers stay the same objects, so the evidence makes no claim about them.
//! Cost: one walk; each expression is normalized once for every level of loads in it.

use std::convert::Infallible;

use tilewright_ir::sabotage;
use tilewright_ir::visit::Rewrite;
use tilewright_ir::{Diagnostic, Evidence, Expr, For, PrimFunc, Stmt, StmtKind};

use super::Rewritten;
use super::remap::{inside, symbol_ranges};
use tilewright_algebra::{Ranges, Simplifier};

/// Simplifies a function. It never fails; the result has the type of a pass.
pub fn simplify(func: &PrimFunc) -> Result<Rewritten, Vec<Diagnostic>> {
    let Ok(body) = Simplify::within(&symbol_ranges(func)).stmt(&func.body);
    let evidence = Evidence { pass: "simplify".to_owned(), buffers: Vec::new(), ..Evidence::default() };
    Ok(Rewritten { func: PrimFunc { body, ..func.clone() }, evidence, notes: Vec::new() })
}

/// The rewrite, with what is known of variables at the current statement.
pub(super) struct Simplify {
    ranges: Ranges,
}

impl Simplify {
    /// The rewrite of a statement where this much is known of its variables.
    pub(super) fn within(ranges: &Ranges) -> Self {
        Self { ranges: ranges.clone() }
    }
}

impl Rewrite for Simplify {
    type Error = Infallible;

    fn expr(&mut self, expr: &Expr) -> Result<Expr, Infallible> {
        let simple = Simplifier::for_values(&self.ranges).simplify(expr);
        let again = sabotage::on("simplify-twice");
        Ok(if again { Simplifier::for_values(&self.ranges).simplify(&simple) } else { simple })
    }

    fn stmt(&mut self, stmt: &Stmt) -> Result<Stmt, Infallible> {
        match &stmt.kind {
            StmtKind::For(inner) => {
                let mut inner = For::clone(inner);
                let outer = self.ranges.clone();
                let simplifier = Simplifier::new(&outer);
                (inner.min, inner.extent) = (simplifier.simplify(&inner.min), simplifier.simplify(&inner.extent));
                // The bounds of a loop are evaluated outside of it, so its variable is known in the body only.
                self.ranges = inside(&outer, &inner);
                inner.body = self.stmt(&inner.body)?;
                self.ranges = outer;
                Ok(Stmt { kind: StmtKind::For(inner.into()), span: stmt.span })
            }
            StmtKind::Store { buffer, indices, value } => {
                let simplifier = Simplifier::new(&self.ranges);
                let indices = indices.iter().map(|index| simplifier.simplify(index)).collect();
                let kind = StmtKind::Store { buffer: buffer.clone(), indices, value: self.expr(value)? };
                Ok(Stmt { kind, span: stmt.span })
            }
            StmtKind::If { cond, then_body, else_body } => match (self.expr(cond)?, else_body) {
                (Expr::Int { value: 0, .. }, Some(body)) => self.stmt(body),
                (Expr::Int { value: 0, .. }, None) => Ok(Stmt { kind: StmtKind::Seq([].into()), span: stmt.span }),
                (Expr::Int { .. }, _) => self.stmt(then_body),
                _ => self.stmt_children(stmt),
            },
            _ => self.stmt_children(stmt),
        }
    }
}
