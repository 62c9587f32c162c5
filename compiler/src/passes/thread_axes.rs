//! Reductions across threads in memory that was flattened: the axes of the threads are found again, and the tree is flattened in its turn.
//!
//! ```text
//! S[ty * 8 + tx] = A[i, ty, tx]                       S[ty, tx] = A[i, ty, tx]
//! T.tvm_storage_sync("shared")                  ->    T.tvm_storage_sync("shared")
//! for tx_r in range(8):                               for tx_r in range(8):
//!     R[0] = R[0] + S[ty * 8 + tx_r]                      R[0] = R[0] + S[ty, tx_r]
//! ```

use std::convert::Infallible;
use std::sync::Arc;

use tilewright_algebra::{Ranges, simplify};
use tilewright_ir::visit::Rewrite;
use tilewright_ir::{AttrValue, Buffer, Expr, For, Scope, Stmt, StmtKind};

/// The memory with an axis for each loop over threads.
struct Unflat {
    flat: Buffer,
    full: Buffer,
    threads: Vec<Arc<For>>,
    /// The loops over the values, and for each the position of its thread.
    reduced: Vec<(Arc<For>, usize)>,
}

/// Returns the statements of a reduction with an axis for each loop over threads, if its memory was flattened. `threads` are the loops
/// around it, outermost first.
pub(super) fn unflattened(node: &AttrValue, stmt: &Stmt, threads: &[Arc<For>]) -> Option<Stmt> {
    let StmtKind::Allocate { buffer: flat, body } = &stmt.kind else { return None };
    let StmtKind::Seq(parts) = &body.kind else { return None };
    let StmtKind::Store { buffer, indices, .. } = &parts.first()?.kind else { return None };
    let ([index], AttrValue::List(of)) = (&indices[..], node) else { return None };
    if buffer != flat || flat.rank() != 1 {
        return None;
    }
    let named = index.vars();
    let threads: Vec<_> = threads.iter().filter(|inner| named.contains(&inner.var)).cloned().collect();
    let mut inner = parts.get(3)?;
    let mut heads = Vec::new();
    while let StmtKind::For(head) = &inner.kind {
        heads.push(head.clone());
        inner = &head.body;
    }
    let position = |thread: &AttrValue| match thread {
        AttrValue::Var(var) | AttrValue::Expr(Expr::Var(var)) => threads.iter().position(|inner| inner.var == *var),
        _ => None,
    };
    let reduced: Vec<usize> = of.iter().map(position).collect::<Option<_>>()?;
    if threads.len() < 2 || reduced.len() != heads.len() {
        return None;
    }
    let extents = threads.iter().map(|inner| inner.extent.clone()).collect();
    let full = Buffer::compact(&flat.name, flat.dtype, extents).with(|info| info.scope = Scope::Shared);
    let mut unflat =
        Unflat { flat: flat.clone(), full: full.clone(), threads, reduced: heads.into_iter().zip(reduced).collect() };
    let body = Arc::new(unflat.stmt(body).ok()?);
    Some(Stmt { kind: StmtKind::Allocate { buffer: full, body }, span: stmt.span })
}

/// An access of the memory that is that of no thread.
struct Other;

impl Unflat {
    /// The axes of an index: those of this thread, or of the threads whose values are combined.
    fn axes(&self, index: &Expr) -> Result<Vec<Expr>, Other> {
        let own: Vec<Expr> = self.threads.iter().map(|inner| Expr::from(&inner.var)).collect();
        let mut all = own.clone();
        let mut ranges = ranges_of(&self.threads);
        for (head, at) in &self.reduced {
            all[*at] = Expr::from(&head.var);
            ranges = ranges.with(&head.var, &head.extent);
        }
        let is = |axes: &Vec<Expr>| {
            simplify(&(numeral(axes, &self.full.shape) - index.clone()), &ranges).as_const_int() == Some(0)
        };
        [own, all].into_iter().find(is).ok_or(Other)
    }
}

impl Rewrite for Unflat {
    type Error = Other;

    fn expr(&mut self, expr: &Expr) -> Result<Expr, Other> {
        match expr {
            Expr::Load { buffer, indices } if *buffer == self.flat => {
                let index = indices.first().ok_or(Other)?;
                Ok(Expr::load(&self.full, self.axes(index)?))
            }
            _ => self.expr_children(expr),
        }
    }

    fn stmt(&mut self, stmt: &Stmt) -> Result<Stmt, Other> {
        match &stmt.kind {
            StmtKind::Store { buffer, indices, value } if *buffer == self.flat => {
                let index = indices.first().ok_or(Other)?;
                let (axes, value) = (self.axes(index)?, self.expr(value)?);
                Ok(Stmt::store(&self.full, axes, value).at(stmt.span))
            }
            _ => self.stmt_children(stmt),
        }
    }
}

fn ranges_of(threads: &[Arc<For>]) -> Ranges {
    threads.iter().fold(Ranges::new(), |ranges, inner| ranges.with(&inner.var, &inner.extent))
}

/// The row-major number of an element.
fn numeral(index: &[Expr], shape: &[Expr]) -> Expr {
    let steps = index.iter().zip(shape).map(|(index, extent)| (index.clone(), extent.clone()));
    let number = steps.reduce(|(outer, _), (index, extent)| (outer * extent.clone() + index, extent));
    number.map_or_else(|| Expr::int(0), |(number, _)| number)
}

/// Flattens all shared memory of several axes in the statements of a tree, in loops over `threads`.
pub(super) fn flattened(stmt: &Stmt, threads: &[Arc<For>]) -> Stmt {
    let mut flat = Flat { ranges: ranges_of(threads), memory: Vec::new() };
    let Ok(stmt) = flat.stmt(stmt);
    stmt
}

/// Flattens memory.
struct Flat {
    ranges: Ranges,
    /// The memory with its axes, and without.
    memory: Vec<(Buffer, Buffer)>,
}

impl Flat {
    fn access(&self, buffer: &Buffer, indices: &[Expr]) -> (Buffer, Vec<Expr>) {
        match self.memory.iter().find(|(full, _)| full == buffer) {
            Some((full, flat)) => (flat.clone(), vec![simplify(&numeral(indices, &full.shape), &self.ranges)]),
            None => (buffer.clone(), indices.to_vec()),
        }
    }
}

impl Rewrite for Flat {
    type Error = Infallible;

    fn expr(&mut self, expr: &Expr) -> Result<Expr, Infallible> {
        match expr {
            Expr::Load { buffer, indices } => {
                let indices = self.exprs(indices)?;
                let (buffer, indices) = self.access(buffer, &indices);
                Ok(Expr::load(&buffer, indices))
            }
            _ => self.expr_children(expr),
        }
    }

    fn stmt(&mut self, stmt: &Stmt) -> Result<Stmt, Infallible> {
        match &stmt.kind {
            StmtKind::Allocate { buffer, body } if buffer.scope == Scope::Shared && buffer.rank() > 1 => {
                let size = buffer.shape.iter().cloned().reduce(|size, extent| size * extent);
                let size = size.map(|size| simplify(&size, &self.ranges));
                let flat = Buffer::compact(&buffer.name, buffer.dtype, size.into_iter().collect())
                    .with(|info| info.scope = Scope::Shared);
                self.memory.push((buffer.clone(), flat.clone()));
                let body = Arc::new(self.stmt(body)?);
                Ok(Stmt { kind: StmtKind::Allocate { buffer: flat, body }, span: stmt.span })
            }
            StmtKind::Store { buffer, indices, value } => {
                let (indices, value) = (self.exprs(indices)?, self.expr(value)?);
                let (buffer, indices) = self.access(buffer, &indices);
                Ok(Stmt::store(&buffer, indices, value).at(stmt.span))
            }
            _ => self.stmt_children(stmt),
        }
    }
}
