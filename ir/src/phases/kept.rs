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
use crate::stmt::{AttrValue, For, ForKind, Stmt, StmtKind, ThreadTag};
use crate::visit::Rewrite;

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
    let mut uses = Uses { buffer, open: Vec::new(), threads: None, is_alike: true, is_own: true };
    let Ok(_) = uses.stmt(body);
    let threads = uses.threads.filter(|threads| uses.is_alike && !uses.is_own && !threads.is_empty())?;
    let buffer = with_threads(buffer, threads.iter().map(|(_, extent)| extent.clone()).collect());
    let tags = threads.into_iter().map(|(tag, _)| tag).collect();
    let mut with_axis = WithAxis { old: uses.buffer, new: &buffer, tags, open: Vec::new() };
    let Ok(body) = with_axis.stmt(body);
    Some((buffer, body))
}

/// Looks at all uses of a buffer.
struct Uses<'a> {
    buffer: &'a Buffer,
    /// The loops over groups and threads and other parallel ones around this place.
    open: Vec<Arc<For>>,
    /// The loops over threads around the first use, by their axes, with their extents.
    threads: Option<Vec<(ThreadTag, Expr)>>,
    /// Whether all uses are elements, in the same loops over threads and in no other concurrent ones.
    is_alike: bool,
    /// Whether all uses have the indices of their threads in front, each below the extent of its axis.
    is_own: bool,
}

impl Uses<'_> {
    fn used(&mut self, used: &Buffer, indices: &[Expr]) {
        if !used.aliases(self.buffer) {
            return;
        }
        let axis = |inner: &Arc<For>| match inner.kind {
            ForKind::ThreadBinding(tag @ ThreadTag::Thread(_)) if inner.min.as_const_int() == Some(0) => {
                inner.extent.as_const_int().map(|_| (tag, inner.extent.clone()))
            }
            _ => None,
        };
        let threads: Option<Vec<_>> = self.open.iter().map(axis).collect();
        let Some(mut threads) = threads else {
            self.is_alike = false;
            return;
        };
        threads.sort_by_key(|(tag, _)| *tag);
        let is_twice = threads.windows(2).any(|pair| pair[0].0 == pair[1].0);
        let index = |(tag, _): &(ThreadTag, Expr)| index_of(&self.open, *tag);
        self.is_own &= threads.iter().map(index).eq(indices.iter().take(threads.len()).cloned().map(Some))
            && threads.iter().map(|(_, extent)| extent).eq(used.shape.iter().take(threads.len()));
        self.is_alike &= !is_twice;
        self.is_alike &= used == self.buffer && *self.threads.get_or_insert_with(|| threads.clone()) == threads;
    }
}

impl Rewrite for Uses<'_> {
    type Error = Infallible;

    fn expr(&mut self, expr: &Expr) -> Result<Expr, Infallible> {
        if let Expr::Load { buffer, indices } = expr {
            self.used(buffer, indices);
        }
        self.expr_children(expr)
    }

    fn attr_value(&mut self, value: &AttrValue) -> Result<AttrValue, Infallible> {
        self.is_alike &= *value != AttrValue::Var(self.buffer.data.clone());
        self.attr_value_children(value)
    }

    fn stmt(&mut self, stmt: &Stmt) -> Result<Stmt, Infallible> {
        match &stmt.kind {
            StmtKind::Store { buffer, indices, .. } => self.used(buffer, indices),
            StmtKind::DeclBuffer { buffer, .. } => self.is_alike &= !buffer.aliases(self.buffer),
            StmtKind::For(inner) if is_among_threads(inner) => {
                let (Ok(_), Ok(_)) = (self.expr(&inner.min), self.expr(&inner.extent));
                self.open.push(inner.clone());
                let Ok(_) = self.stmt(&inner.body);
                self.open.pop();
                return Ok(stmt.clone());
            }
            _ => {}
        }
        self.stmt_children(stmt)
    }
}

/// The index of the thread on an axis.
fn index_of(open: &[Arc<For>], tag: ThreadTag) -> Option<Expr> {
    let inner = open.iter().find(|inner| inner.kind == ForKind::ThreadBinding(tag))?;
    Some(Expr::from(&inner.var))
}

/// Whether the iterations of a loop are groups, threads, or others that run at once; vectors belong to one thread.
fn is_among_threads(inner: &For) -> bool {
    matches!(inner.kind, ForKind::ThreadBinding(_) | ForKind::Parallel)
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
