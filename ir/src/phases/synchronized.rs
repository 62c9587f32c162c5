//! Programs whose threads wait for each other after each statement on shared memory.
//!
//! ```text
//! for tx in 8 (threadIdx.x):              for tx in 8 (threadIdx.x):
//!     S[tx] = A[tx]                           S[tx] = A[tx]
//!     for k in 3:                             implicit barrier
//!         acc[0] = acc[0] + S[7 - tx]   ->    for k in 3:
//!         S[tx] = acc[0]                          acc[0] = acc[0] + S[7 - tx]
//!                                                 implicit barrier
//!                                                 S[tx] = acc[0]
//!                                                 implicit barrier
//! ```
//!
//! This is the meaning of a program without barriers for a compiler that inserts them by itself, as TVM does with `ThreadSync`. Barriers
//! can only be where all threads of the group get to: a statement under a condition or in a loop that depends on a thread or on memory is
//! one statement of each thread, and so is a block of S-TIR that has no blocks inside.
//!
//! An implicit barrier is an ordinary barrier inside of an attribute, which tells a pass that the text does not have it.

use std::collections::HashSet;
use std::convert::Infallible;
use std::sync::Arc;

use super::is_thread_loop;
use crate::block::BLOCK;
use crate::buffer::{Buffer, Scope};
use crate::expr::Expr;
use crate::func::PrimFunc;
use crate::stmt::{AttrValue, For, ForKind, Stmt, StmtKind};
use crate::var::Var;
use crate::visit::Rewrite;

/// The key of the attribute around a barrier that the text of a program does not have.
pub const IMPLICIT_BARRIER: &str = "implicit_barrier";

/// Returns the program whose threads wait for each other after each statement on shared memory that another one follows. The program
/// itself if no threads access shared memory.
pub fn synchronized(func: &PrimFunc) -> PrimFunc {
    let Ok(body) = Outside.stmt(&func.body);
    PrimFunc { body, ..func.clone() }
}

/// Returns whether a program with blocks leaves its barriers to the compiler: threads share memory, and there is none. TVM inserts them
/// when blocks are gone, so that all programs with blocks that it prints are such.
pub fn leaves_barriers_out(func: &PrimFunc) -> bool {
    func.body.has_attribute(BLOCK) && !has_barriers(func) && n_implicit_barriers(&synchronized(func).body) > 0
}

/// Returns whether threads wait anywhere, by a barrier of the text or an implicit one.
pub fn has_barriers(func: &PrimFunc) -> bool {
    let mut found = false;
    func.body.walk(&mut |part| found |= is_explicit_barrier(part));
    found
}

/// Returns the program with all of its barriers left out.
pub fn barriers_removed(func: &PrimFunc) -> PrimFunc {
    let Ok(body) = Removed.stmt(&func.body);
    PrimFunc { body, ..func.clone() }
}

/// Returns whether a statement is a barrier that the text does not have.
pub fn is_implicit_barrier(stmt: &Stmt) -> bool {
    matches!(&stmt.kind, StmtKind::Attr { key, body, .. } if key == IMPLICIT_BARRIER && is_explicit_barrier(body))
}

/// Returns the number of barriers that the text does not have.
pub fn n_implicit_barriers(stmt: &Stmt) -> usize {
    let mut count = 0;
    stmt.walk(&mut |part| count += usize::from(is_implicit_barrier(part)));
    count
}

fn is_explicit_barrier(stmt: &Stmt) -> bool {
    matches!(stmt.kind, StmtKind::Barrier)
}

fn implicit_barrier() -> Stmt {
    let (node, value) = (AttrValue::Int(0), AttrValue::Int(1));
    let body = Arc::new(Stmt::new(StmtKind::Barrier));
    Stmt::new(StmtKind::Attr { node, key: IMPLICIT_BARRIER.to_owned(), value, body })
}

/// Finds the groups of threads.
struct Outside;

impl Rewrite for Outside {
    type Error = Infallible;

    fn stmt(&mut self, stmt: &Stmt) -> Result<Stmt, Infallible> {
        match &stmt.kind {
            StmtKind::For(inner) if is_thread_loop(inner.kind) => Ok(Group::default().part(stmt)),
            _ => self.stmt_children(stmt),
        }
    }
}

/// Removes barriers.
struct Removed;

impl Rewrite for Removed {
    type Error = Infallible;

    fn stmt(&mut self, stmt: &Stmt) -> Result<Stmt, Infallible> {
        match &stmt.kind {
            StmtKind::Barrier => Ok(Stmt::seq(Vec::new())),
            StmtKind::Attr { body, .. } if is_implicit_barrier(stmt) => self.stmt(body),
            StmtKind::Seq(stmts) => {
                let parts = stmts.iter().map(|part| self.stmt(part)).collect::<Result<Vec<_>, _>>()?;
                Ok(Stmt::seq(parts).at(stmt.span))
            }
            _ => self.stmt_children(stmt),
        }
    }
}

/// A place that all threads of a group get to.
#[derive(Default)]
struct Group {
    /// Variables that may differ between threads.
    varying: HashSet<Var>,
}

impl Group {
    /// The statement with barriers in it.
    fn part(&mut self, stmt: &Stmt) -> Stmt {
        if !uses_shared(stmt) {
            return stmt.clone();
        }
        let kind = match &stmt.kind {
            StmtKind::For(inner) => return self.for_loop(stmt, inner),
            StmtKind::Seq(stmts) => return self.sequence(stmts).at(stmt.span),
            StmtKind::If { cond, then_body, else_body } if self.is_uniform(cond) => StmtKind::If {
                cond: cond.clone(),
                then_body: Arc::new(self.part(then_body)),
                else_body: else_body.as_ref().map(|body| Arc::new(self.part(body))),
            },
            StmtKind::Let { var, value, body } => {
                if !self.is_uniform(value) {
                    self.varying.insert(var.clone());
                }
                let inner = self.part(body);
                // All threads read the value before one of them goes on.
                let inner = if reads_shared(value) { Stmt::seq(vec![implicit_barrier(), inner]) } else { inner };
                StmtKind::Let { var: var.clone(), value: value.clone(), body: Arc::new(inner) }
            }
            StmtKind::Allocate { buffer, body } if buffer.scope == Scope::Shared || self.can_be_kept(buffer, body) => {
                StmtKind::Allocate { buffer: buffer.clone(), body: Arc::new(self.part(body)) }
            }
            StmtKind::DeclBuffer { buffer, body } => {
                StmtKind::DeclBuffer { buffer: buffer.clone(), body: Arc::new(self.part(body)) }
            }
            StmtKind::Attr { node, key, value, body } if key != BLOCK || body.has_attribute(BLOCK) => {
                let (node, key, value) = (node.clone(), key.clone(), value.clone());
                StmtKind::Attr { node, key, value, body: Arc::new(self.part(body)) }
            }
            StmtKind::If { .. }
            | StmtKind::Allocate { .. }
            | StmtKind::Attr { .. }
            | StmtKind::Store { .. }
            | StmtKind::Evaluate(_)
            | StmtKind::Barrier
            | StmtKind::Assert { .. } => return stmt.clone(),
        };
        Stmt::new(kind).at(stmt.span)
    }

    fn for_loop(&mut self, stmt: &Stmt, inner: &Arc<For>) -> Stmt {
        let is_serial = match inner.kind {
            ForKind::ThreadBinding(_) if is_thread_loop(inner.kind) => {
                self.varying.insert(inner.var.clone());
                false
            }
            ForKind::Serial | ForKind::Unrolled => true,
            ForKind::Parallel | ForKind::Vectorized | ForKind::ThreadBinding(_) => return stmt.clone(),
        };
        if !self.is_uniform(&inner.min) || !self.is_uniform(&inner.extent) {
            return stmt.clone();
        }
        let mut body = self.part(&inner.body);
        if is_serial && !ends_with_barrier(&body) {
            body = Stmt::seq(vec![body, implicit_barrier()]);
        }
        Stmt::new(StmtKind::For(Arc::new(For { body, ..(**inner).clone() }))).at(stmt.span)
    }

    /// Statements one after the other, with a barrier behind each that uses shared memory if another one does.
    fn sequence(&mut self, stmts: &[Stmt]) -> Stmt {
        let mut parts: Vec<Stmt> = Vec::new();
        for (position, stmt) in stmts.iter().enumerate() {
            let part = self.part(stmt);
            let rest = &stmts[position + 1..];
            let is_followed = rest.iter().any(uses_shared);
            let has_barrier = ends_with_barrier(&part) && !matches!(part.kind, StmtKind::For(_));
            let is_before_one = rest.first().is_some_and(|next| is_explicit_barrier(next) || is_implicit_barrier(next));
            let is_needed = uses_shared(stmt) && is_followed && !has_barrier && !is_before_one;
            parts.push(part);
            parts.extend(is_needed.then(implicit_barrier));
        }
        Stmt::seq(parts)
    }

    /// Whether memory of one thread may live through several phases: a plain array without views.
    fn can_be_kept(&self, buffer: &Buffer, body: &Stmt) -> bool {
        let is_plain = buffer.strides.is_none() && buffer.elem_offset.as_const_int() == Some(0);
        let has_size = buffer.shape.iter().all(|extent| self.is_uniform(extent));
        let is_alone = body.buffers().iter().all(|other| other.data != buffer.data || other == buffer);
        is_plain && !buffer.scope.is_texture() && has_size && is_alone
    }

    fn is_uniform(&self, expr: &Expr) -> bool {
        !expr.reads_memory() && !expr.vars().iter().any(|var| self.varying.contains(var))
    }
}

/// Returns whether the last thing that a statement does is to wait at a barrier.
pub fn ends_with_barrier(stmt: &Stmt) -> bool {
    match &stmt.kind {
        StmtKind::Seq(parts) => parts.last().is_some_and(ends_with_barrier),
        StmtKind::Barrier => true,
        _ => is_implicit_barrier(stmt),
    }
}

/// Whether a statement accesses shared memory.
fn uses_shared(stmt: &Stmt) -> bool {
    let mut found = false;
    stmt.walk(&mut |part| {
        found |= matches!(&part.kind, StmtKind::Store { buffer, .. } if buffer.scope == Scope::Shared);
        found |= part.exprs().into_iter().any(reads_shared);
    });
    found
}

fn reads_shared(expr: &Expr) -> bool {
    let mut found = false;
    expr.walk(&mut |part| found |= matches!(part, Expr::Load { buffer, .. } if buffer.scope == Scope::Shared));
    found
}
