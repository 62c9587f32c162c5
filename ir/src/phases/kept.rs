//! Memory of threads that is allocated outside of the loops over them and that several of these loops use, or one behind a serial loop.
//!
//! ```text
//! acc: local memory (1,)                    acc: local memory (8, 1)
//! for k in 4:                               for k in 4:
//!     for tx in 8 (threadIdx.x):      ->        for tx in 8 (threadIdx.x):
//!         acc[0] = acc[0] + A[k, tx]                acc[tx, 0] = acc[tx, 0] + A[k, tx]
//! for tx in 8 (threadIdx.x):                for tx in 8 (threadIdx.x):
//!     B[tx] = acc[0]                            B[tx] = acc[tx, 0]
//! ```
//!
//! A thread of a device keeps what it has in memory of its own (OpenCL's `private`, TVM's `local`) from one of these loops to the next. Here
//! it gets an element of an array for all threads, so that the text says what it means without a rule about memory.

use std::convert::Infallible;
use std::sync::Arc;

use crate::buffer::{AxisSeparators, Buffer};
use crate::expr::Expr;
use crate::shared::SharedExprs;
use crate::stmt::{For, ForKind, Stmt, StmtKind, ThreadTag};
use crate::visit::Rewrite;

use super::uses::{Use, Uses, uses_of};

/// A buffer with one axis in front for each of some loops over threads.
pub(super) fn with_threads(buffer: &Buffer, extents: Vec<Expr>) -> Buffer {
    let added = extents.len();
    let separators = buffer.axis_separators.positions().iter().map(|position| position + added).collect();
    let rank = buffer.rank() + added;
    let axis_separators = AxisSeparators::new(separators, rank).unwrap_or_else(|_| AxisSeparators::none(rank));
    buffer.with(|info| {
        info.shape.splice(0..0, extents);
        info.axis_separators = axis_separators;
    })
}

/// Returns the memory of all threads in place of `buffer`, and the body of its allocation that uses it. `None` if a use is in other loops
/// over threads than the others, or in loops over groups or virtual threads, or is no element of the buffer itself, and if each use has the
/// indices of its threads in front already.
pub(super) fn kept(buffer: &Buffer, body: &Stmt) -> Option<(Buffer, Stmt)> {
    if buffer.strides.is_some() || buffer.elem_offset.as_const_int() != Some(0) {
        return None;
    }
    let Uses { elements: uses, is_seen_otherwise: false } = uses_of(buffer, body) else { return None };
    let threads = uses.iter().map(|one| threads_of(one, buffer)).collect::<Option<Vec<_>>>()?;
    let is_alike = threads.windows(2).all(|pair| pair[0] == pair[1]);
    let threads = threads.into_iter().next().filter(|threads| is_alike && !threads.is_empty())?;
    if uses.iter().all(Use::is_of_its_thread) {
        return None;
    }
    let old = buffer;
    let buffer = with_threads(old, threads.iter().map(|(_, extent)| extent.clone()).collect());
    let tags = threads.into_iter().map(|(tag, _)| tag).collect();
    let mut with_axis = WithAxis { old, new: &buffer, tags, open: Vec::new() };
    let Ok(body) = with_axis.stmt(body);
    Some((buffer, body))
}

/// The axes of the threads around a use, with their extents. `None` if it is no element of the buffer itself, or if loops over anything but
/// different axes of known extents are around it.
fn threads_of(one: &Use, buffer: &Buffer) -> Option<Vec<(ThreadTag, Expr)>> {
    let threads = one.threads();
    let is_known = |inner: &For| inner.min.as_const_int() == Some(0) && inner.extent.as_const_int().is_some();
    let are_all = one.buffer == *buffer && threads.len() == one.loops.len();
    let are_different = threads.windows(2).all(|pair| pair[0].0 != pair[1].0);
    (are_all && are_different && threads.iter().all(|(_, inner)| is_known(inner)))
        .then(|| threads.into_iter().map(|(tag, inner)| (tag, inner.extent.clone())).collect())
}

/// The index of the thread on an axis.
fn index_of(open: &[Arc<For>], tag: ThreadTag) -> Option<Expr> {
    let inner = open.iter().find(|inner| inner.kind == ForKind::ThreadBinding(tag))?;
    Some(Expr::from(&inner.var))
}

/// Puts the indices of threads in front of those of a buffer.
struct WithAxis<'a> {
    old: &'a Buffer,
    new: &'a Buffer,
    tags: Vec<ThreadTag>,
    /// The loops over threads around this place.
    open: Vec<Arc<For>>,
}

impl WithAxis<'_> {
    fn place(&self, indices: Vec<Expr>) -> Vec<Expr> {
        self.tags.iter().filter_map(|tag| index_of(&self.open, *tag)).chain(indices).collect()
    }
}

impl Rewrite for WithAxis<'_> {
    type Error = Infallible;

    fn expr(&mut self, expr: &Expr) -> Result<Expr, Infallible> {
        match expr {
            Expr::Load { buffer, indices } if buffer == self.old => {
                let indices = self.exprs(indices)?;
                Ok(Expr::Load { buffer: self.new.clone(), indices: SharedExprs::from(self.place(indices)) })
            }
            _ => self.expr_children(expr),
        }
    }

    fn stmt(&mut self, stmt: &Stmt) -> Result<Stmt, Infallible> {
        match &stmt.kind {
            StmtKind::Store { buffer, indices, value } if buffer == self.old => {
                let (indices, value) = (self.exprs(indices)?, self.expr(value)?);
                Ok(Stmt::store(self.new, self.place(indices), value).at(stmt.span))
            }
            StmtKind::For(inner) => {
                self.open.push(inner.clone());
                let rewritten = self.stmt_children(stmt);
                self.open.pop();
                rewritten
            }
            _ => self.stmt_children(stmt),
        }
    }
}
