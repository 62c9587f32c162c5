//! Turns loops that are marked `vectorized` into vector statements.
//!
//! ```text
//! for c in T.vectorized(4):
//!     B[i, c] = A[i, c] + T.float32(1)
//! # becomes
//! B[i, 0:4] = A[i, 0:4] + T.Broadcast(T.float32(1), 4)
//! ```
//!
//! A loop of 2, 3, 4, 8 or 16 iterations becomes one vector store if its body is one store, possibly under conditions that
//! do not depend on the lane. Every other loop is kept: one with several statements, with a condition on the lane, with
//! lanes that are not evenly spaced in the last index, or with an iteration that reads what another one writes. Cost: one
//! walk.

use std::convert::Infallible;

use tilewright_ir::visit::Rewrite;
use tilewright_ir::{Diagnostic, Evidence, For, ForKind, PrimFunc, Stmt, StmtKind};

use super::Rewritten;
use super::lanes::{Body, LaneGuards, Lanes};
use super::remap::{inside, symbol_ranges};
use tilewright_algebra::Ranges;

/// Numbers of lanes that vectors have.
const LANES: [u16; 5] = [2, 3, 4, 8, 16];

/// Vectorises a function. It never fails; the result has the type of a pass.
pub fn vectorize(func: &PrimFunc) -> Result<Rewritten, Vec<Diagnostic>> {
    let Ok(body) = Vectorize { ranges: symbol_ranges(func) }.stmt(&func.body);
    let evidence = Evidence { pass: "vectorize".to_owned(), ..Evidence::default() };
    Ok(Rewritten { func: PrimFunc { body, ..func.clone() }, evidence, notes: Vec::new() })
}

/// Returns whether a function has a loop marked `vectorized`.
pub(super) fn is_wanted(func: &PrimFunc) -> bool {
    let mut found = false;
    func.body.walk(&mut |stmt| {
        found |= matches!(&stmt.kind, StmtKind::For(inner) if inner.kind == ForKind::Vectorized);
    });
    found
}

struct Vectorize {
    ranges: Ranges,
}

impl Rewrite for Vectorize {
    type Error = Infallible;

    fn stmt(&mut self, stmt: &Stmt) -> Result<Stmt, Infallible> {
        let StmtKind::For(inner) = &stmt.kind else { return self.stmt_children(stmt) };
        if let Some(vector) = vector_statement(inner, &self.ranges) {
            return Ok(vector);
        }
        let outer = self.ranges.clone();
        self.ranges = inside(&outer, inner);
        let rewritten = self.stmt_children(stmt)?;
        self.ranges = outer;
        Ok(rewritten)
    }
}

/// Returns the vector statement for a loop; `None` if the loop is not marked or has no such statement.
fn vector_statement(inner: &For, ranges: &Ranges) -> Option<Stmt> {
    let lanes = LANES.into_iter().find(|lanes| inner.extent.as_const_int() == Some((*lanes).into()))?;
    if inner.kind != ForKind::Vectorized || inner.min.as_const_int().is_none() {
        return None;
    }
    let body = Body::from_stmt(&inner.body)?;
    Lanes::from_loop(inner, lanes, ranges).statement(&body, LaneGuards::Refuse).ok()
}
