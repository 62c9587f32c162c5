//! Turns loops that are marked `vectorized` into vector statements (TVM's `VectorizeLoop`).
//!
//! ```text
//! for c in T.vectorized(4):
//!     B[i, c] = A[i, c] + T.float32(1)
//! # becomes
//! B[i, 0:4] = A[i, 0:4] + T.Broadcast(T.float32(1), 4)
//! ```
//!
//! A loop of 2, 3, 4, 8 or 16 iterations becomes one vector store if its body is one store, possibly under conditions that
//! do not depend on the lane. Every other loop becomes a scalar loop, with a note that says why: one with several statements,
//! with a condition on the lane, with lanes that are not evenly spaced in the last index, or with an iteration that reads what
//! another one writes.
//!
//! A choice that depends on the lane is a mask: `B[i, c] = T.if_then_else(c < 5, A[i, c], 0)` becomes one vector store, and each lane
//! evaluates its operand alone. There is no masked store for a condition: to write back what the other lanes hold is another program, since it
//! reads elements that may be undefined or outside of the buffer, and races with whoever writes them. The pass `loop_partition` takes such a
//! condition out of the main part of a loop.
//!
//! Loops over the channels of a texture are left to `lower_texture`. Cost: one walk.

use std::convert::Infallible;
use std::sync::Arc;

use tilewright_ir::visit::Rewrite;
use tilewright_ir::{Diagnostic, Evidence, For, ForKind, PrimFunc, Stmt, StmtKind};

use super::Rewritten;
use super::lanes::{Body, LaneGuards, Lanes};
use super::remap::{inside, symbol_ranges};
use tilewright_algebra::Ranges;

/// Numbers of lanes that vectors have.
const LANES: [u16; 5] = [2, 3, 4, 8, 16];

/// Vectorises a function. It never fails; the result has the type of a pass.
///
/// ```
/// use tilewright_compiler::passes::vectorize;
/// let text = r#"
/// @T.prim_func
/// def main(A: T.Buffer((5, 8), "float32"), B: T.Buffer((5, 8), "float32")):
///     for i in T.vectorized(5):
///         for j in T.vectorized(8):
///             B[i, j] = A[i, j]
/// "#;
/// let func = tilewright_script::read_module(text)?.funcs.remove(0);
/// let rewritten = vectorize(&func)?;
/// let printed = tilewright_script::print_func(&rewritten.func);
/// let body: Vec<&str> = printed.lines().skip(1).map(str::trim).collect();
/// assert_eq!(body[1..], ["for i in range(5):", "B[i, T.Ramp(0, 1, 8)] = A[i, T.Ramp(0, 1, 8)]"]);
/// assert_eq!(rewritten.notes[0].message, "`i` is no loop of vectors, and becomes a scalar loop: its body is not one store");
/// # Ok::<(), Vec<tilewright_ir::Diagnostic>>(())
/// ```
pub fn vectorize(func: &PrimFunc) -> Result<Rewritten, Vec<Diagnostic>> {
    let mut vectorize = Vectorize { ranges: symbol_ranges(func), notes: Vec::new() };
    let Ok(body) = vectorize.stmt(&func.body);
    let evidence = Evidence { pass: "vectorize".to_owned(), ..Evidence::default() };
    Ok(Rewritten { func: PrimFunc { body, ..func.clone() }, evidence, notes: vectorize.notes })
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
    /// The loops that became scalar ones.
    notes: Vec<Diagnostic>,
}

impl Rewrite for Vectorize {
    type Error = Infallible;

    fn stmt(&mut self, stmt: &Stmt) -> Result<Stmt, Infallible> {
        let StmtKind::For(inner) = &stmt.kind else { return self.stmt_children(stmt) };
        let vector = (inner.kind == ForKind::Vectorized).then(|| vector_statement(inner, &self.ranges));
        if let Some(Ok(vector)) = vector {
            return Ok(vector);
        }
        let outer = self.ranges.clone();
        self.ranges = inside(&outer, inner);
        let mut rewritten = self.stmt_children(stmt)?;
        self.ranges = outer;
        if let (Some(Err(reason)), StmtKind::For(inner)) = (vector, &mut rewritten.kind)
            && !stores_texels(&inner.body)
        {
            let message = format!("`{}` is no loop of vectors, and becomes a scalar loop: {reason}", inner.var);
            self.notes.push(
                Diagnostic::warning("not-vectorized", stmt.span, message)
                    .with_help("the iterations run one after the other; leave out that the loop is vectorized"),
            );
            Arc::make_mut(inner).kind = ForKind::Serial;
        }
        Ok(rewritten)
    }
}

/// Returns whether a statement stores to a texture; its loops over channels are left to `lower_texture`.
fn stores_texels(stmt: &Stmt) -> bool {
    let mut found = false;
    stmt.walk(&mut |part| {
        found |= matches!(&part.kind, StmtKind::Store { buffer, .. } if buffer.scope.is_texture());
    });
    found
}

/// Returns the vector statement for a loop, or the reason why there is none.
fn vector_statement(inner: &For, ranges: &Ranges) -> Result<Stmt, String> {
    let is_count = |lanes: &u16| inner.extent.as_const_int() == Some((*lanes).into());
    let body = Body::from_stmt(&inner.body).ok_or("its body is not one store")?;
    let lanes = LANES
        .into_iter()
        .find(is_count)
        .ok_or_else(|| format!("vectors have 2, 3, 4, 8 or 16 lanes, and it has {} iterations", inner.extent))?;
    if inner.min.as_const_int().is_none() {
        return Err(format!("it starts from {}, which is no constant", inner.min));
    }
    Lanes::from_loop(inner, lanes, ranges).statement(&body, LaneGuards::Refuse).map_err(|obstacle| obstacle.reason)
}
