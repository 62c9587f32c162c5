//! Memory of groups and of threads that is written outside of the loops over them, and belongs to each of them.
//!
//! ```text
//! S: shared memory                          for bx in n (blockIdx.x):
//! for bx in n (blockIdx.x):                     S: shared memory
//!     for tx in 8 (threadIdx.x):      ->        for tx in 8 (threadIdx.x):
//!         S[tx] = A[bx, tx]                         S[tx] = A[bx, tx]
//!         ...                                       ...
//! ```
//!
//! A device gives each group memory of its own, wherever its text declares it, and so does TVM: functions with blocks allocate all
//! memory at their root, and those with `launch_thread` may allocate in front of the launch. This is what such a text means if one
//! launch alone uses the memory. Memory that several launches use, or one in a loop of the host, is one for all groups.
//!
//! Memory in the scope `local` belongs to each thread in the same way, if the loops over threads are directly in each other around all of
//! its uses. Behind a serial loop it would lose what a thread keeps from one iteration to the next, unless the loop has one iteration, or
//! the memory is one element that each iteration writes first: there it gets an axis for the threads ([`kept`]).
//!
//! Virtual threads have memory of their own, too, if it is allocated outside of the loops over groups or the function has blocks: TVM then
//! allocates it where all of its uses are, and gives what is allocated inside of virtual threads an axis for them. What a text without blocks
//! allocates between the loops over groups and virtual threads is one for all of these.

use std::convert::Infallible;
use std::sync::Arc;

use super::kept::kept;
use crate::block::BLOCK;
use crate::buffer::{Buffer, Scope};
use crate::expr::Expr;
use crate::func::PrimFunc;
use crate::stmt::{AttrValue, For, ForKind, Stmt, StmtKind, ThreadTag, VIRTUAL_THREAD};
use crate::visit::Rewrite;

/// Returns the program in which shared memory that one launch uses is allocated inside of its loops over groups, and local memory inside of
/// those over threads.
pub fn grouped(func: &PrimFunc) -> PrimFunc {
    let mut inwards = Inwards { func, has_blocks: func.body.has_attribute(BLOCK), n_groups: 0 };
    let Ok(body) = inwards.stmt(&func.body);
    PrimFunc { body, ..func.clone() }
}

/// Moves allocations.
struct Inwards<'a> {
    func: &'a PrimFunc,
    has_blocks: bool,
    /// The number of loops over groups around this place.
    n_groups: usize,
}

impl Inwards<'_> {
    /// Whether the memory can have an axis for threads: no layout is asked for, and no block says which elements it uses.
    fn may_widen(&self, buffer: &Buffer) -> bool {
        let has_layout = self.func.attrs.layout_transform_map.iter().any(|(data, _)| *data == buffer.data);
        buffer.scope == Scope::Local && !self.has_blocks && !has_layout
    }
}

impl Rewrite for Inwards<'_> {
    type Error = Infallible;

    fn stmt(&mut self, stmt: &Stmt) -> Result<Stmt, Infallible> {
        let is_group = matches!(&stmt.kind, StmtKind::For(inner) if is_group(inner));
        self.n_groups += usize::from(is_group);
        let stmt = self.stmt_children(stmt)?;
        self.n_groups -= usize::from(is_group);
        match &stmt.kind {
            StmtKind::Allocate { buffer, body } if matches!(buffer.scope, Scope::Shared | Scope::Local) => {
                let allocate = |body: &Stmt, in_group: bool| {
                    // What is in front of a launch does not outlive it.
                    let may_widen = in_group && self.may_widen(buffer);
                    let kept = may_widen.then(|| kept(buffer, body)).flatten();
                    let (buffer, body) = kept.unwrap_or_else(|| (buffer.clone(), body.clone()));
                    Stmt { kind: StmtKind::Allocate { buffer, body: Arc::new(body) }, span: stmt.span }
                };
                let in_group = self.n_groups > 0;
                let memory = Memory { buffer, is_placed: !self.has_blocks, in_group, is_repeated: false };
                Ok(memory.inside(body, &allocate).unwrap_or_else(|| allocate(body, in_group)))
            }
            _ => Ok(stmt),
        }
    }
}

/// An allocation that is moved.
#[derive(Clone, Copy)]
struct Memory<'a> {
    buffer: &'a Buffer,
    /// Whether the text says which virtual threads share it: it has no blocks, and no loop over groups is behind the allocation.
    is_placed: bool,
    /// Whether a loop over groups is around.
    in_group: bool,
    /// Whether a serial loop of several iterations is behind the allocation.
    is_repeated: bool,
}

impl Memory<'_> {
    /// Whether each iteration of a loop has memory of its own in the scope of the buffer.
    fn has_own(self, inner: &For) -> bool {
        match inner.kind {
            ForKind::ThreadBinding(ThreadTag::Block(_)) => true,
            ForKind::ThreadBinding(ThreadTag::Thread(_)) => self.buffer.scope == Scope::Local,
            // Virtual threads are copies of the group.
            ForKind::Parallel => !self.is_placed && inner.annotations.iter().any(|(key, _)| key == VIRTUAL_THREAD),
            ForKind::Serial | ForKind::Vectorized | ForKind::Unrolled => false,
        }
    }

    /// A statement with the allocation inside of the loops that have memory of their own and are around all uses of the buffer; `None` if there
    /// are none.
    fn inside(self, stmt: &Stmt, allocate: &dyn Fn(&Stmt, bool) -> Stmt) -> Option<Stmt> {
        let buffer = self.buffer;
        let around = |body: &Stmt| self.inside(body, allocate).map(Arc::new);
        let kind = match &stmt.kind {
            StmtKind::For(inner) if reads(&inner.min, buffer) || reads(&inner.extent, buffer) => return None,
            StmtKind::For(inner) if self.has_own(inner) => {
                let (is_placed, in_group) = (self.is_placed && !is_group(inner), self.in_group || is_group(inner));
                let memory = Self { is_placed, in_group, ..self };
                let is_here = || {
                    (!self.is_repeated || writes_first(&inner.body, buffer)).then(|| allocate(&inner.body, in_group))
                };
                let body = memory.inside(&inner.body, allocate).or_else(is_here)?;
                StmtKind::For(Arc::new(For { body, ..For::clone(inner) }))
            }
            StmtKind::For(inner) if matches!(inner.kind, ForKind::Serial | ForKind::Unrolled) => {
                let is_single = inner.extent.as_const_int() == Some(1);
                let memory = Self { is_repeated: self.is_repeated || !is_single, ..self };
                let body = memory.inside(&inner.body, allocate)?;
                StmtKind::For(Arc::new(For { body, ..For::clone(inner) }))
            }
            StmtKind::Attr { node, key, value, body } if *node != AttrValue::Var(buffer.data.clone()) => {
                let (node, key, value) = (node.clone(), key.clone(), value.clone());
                StmtKind::Attr { node, key, value, body: around(body)? }
            }
            StmtKind::Allocate { buffer: other, body } => {
                StmtKind::Allocate { buffer: other.clone(), body: around(body)? }
            }
            StmtKind::DeclBuffer { buffer: view, body } if !view.aliases(buffer) => {
                StmtKind::DeclBuffer { buffer: view.clone(), body: around(body)? }
            }
            // A view goes where its memory goes.
            StmtKind::DeclBuffer { buffer: view, body } => {
                let declared = |body: &Stmt, in_group: bool| {
                    let kind = StmtKind::DeclBuffer { buffer: view.clone(), body: Arc::new(body.clone()) };
                    allocate(&Stmt { kind, span: stmt.span }, in_group)
                };
                return self.inside(body, &declared);
            }
            StmtKind::Let { var, value, body } if !reads(value, buffer) => {
                StmtKind::Let { var: var.clone(), value: value.clone(), body: around(body)? }
            }
            StmtKind::If { cond, then_body, else_body: None } if !reads(cond, buffer) => {
                StmtKind::If { cond: cond.clone(), then_body: around(then_body)?, else_body: None }
            }
            StmtKind::Seq(stmts) => {
                let mut users = (0..stmts.len()).filter(|place| uses(&stmts[*place], buffer));
                let place = users.next()?;
                if users.next().is_some() {
                    return None;
                }
                let mut stmts = stmts.to_vec();
                stmts[place] = self.inside(&stmts[place], allocate)?;
                StmtKind::Seq(stmts.into())
            }
            StmtKind::Attr { .. }
            | StmtKind::For(_)
            | StmtKind::Let { .. }
            | StmtKind::If { .. }
            | StmtKind::Store { .. }
            | StmtKind::Evaluate(_)
            | StmtKind::Barrier
            | StmtKind::Assert { .. } => return None,
        };
        Some(Stmt { kind, span: stmt.span })
    }
}

fn is_group(inner: &For) -> bool {
    matches!(inner.kind, ForKind::ThreadBinding(ThreadTag::Block(_)))
}

/// Whether the first thing that a statement does with a buffer of one element, whatever happens, is to write it.
fn writes_first(stmt: &Stmt, buffer: &Buffer) -> bool {
    match &stmt.kind {
        StmtKind::Store { buffer: written, indices, value } => {
            let is_single = buffer.shape.iter().all(|extent| extent.as_const_int() == Some(1));
            let is_first = indices.iter().all(|index| index.as_const_int() == Some(0));
            written == buffer && is_single && is_first && !reads(value, buffer)
        }
        StmtKind::Seq(stmts) => {
            stmts.iter().find(|stmt| uses(stmt, buffer)).is_some_and(|first| writes_first(first, buffer))
        }
        StmtKind::For(inner) => {
            let is_serial = matches!(inner.kind, ForKind::Serial | ForKind::Unrolled);
            is_serial
                && inner.extent.as_const_int().is_some_and(|extent| extent >= 1)
                && writes_first(&inner.body, buffer)
        }
        StmtKind::Let { value, body, .. } => !reads(value, buffer) && writes_first(body, buffer),
        StmtKind::Allocate { body, .. } | StmtKind::Attr { body, .. } => writes_first(body, buffer),
        StmtKind::DeclBuffer { buffer: view, body } => !view.aliases(buffer) && writes_first(body, buffer),
        StmtKind::If { .. } | StmtKind::Evaluate(_) | StmtKind::Barrier | StmtKind::Assert { .. } => false,
    }
}

fn reads(expr: &Expr, buffer: &Buffer) -> bool {
    let mut found = false;
    expr.walk(&mut |part| found |= matches!(part, Expr::Load { buffer: read, .. } if read.aliases(buffer)));
    found
}

fn uses(stmt: &Stmt, buffer: &Buffer) -> bool {
    stmt.buffers().iter().any(|used| used.aliases(buffer))
}
