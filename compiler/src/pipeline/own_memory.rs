//! Refuses memory in the scope `local` that threads would have to share.
//!
//! ```text
//! for b in 4 (blockIdx.x):
//!     acc: local memory (1,)
//!     for t in 1 (threadIdx.x): acc[0] = A[b, t]
//!     for t in 8 (threadIdx.x): B[b, t] = acc[0]         seven of the threads read what they never wrote
//! ```
//!
//! Each thread of a device has such memory for itself. What several loops over the same threads use has an axis for them when a text has
//! been read (`tilewright_ir::phases::grouped`). Where it has none, one array for all threads would mean something else.

use std::convert::Infallible;
use std::sync::Arc;

use tilewright_ir::visit::Rewrite;
use tilewright_ir::{Buffer, Diagnostic, Expr, For, ForKind, PrimFunc, Scope, Stmt, StmtKind, ThreadTag};

/// The errors of a function without blocks.
pub(super) fn refused(func: &PrimFunc) -> Vec<Diagnostic> {
    let mut walk = Walk { open: Vec::new(), errors: Vec::new() };
    let Ok(_) = walk.stmt(&func.body);
    walk.errors
}

/// Looks for allocations between the loops over groups and those over threads.
struct Walk {
    open: Vec<Arc<For>>,
    errors: Vec<Diagnostic>,
}

impl Rewrite for Walk {
    type Error = Infallible;

    fn stmt(&mut self, stmt: &Stmt) -> Result<Stmt, Infallible> {
        let is_bound = |is_of: fn(ThreadTag) -> bool, inner: &Arc<For>| matches!(inner.kind, ForKind::ThreadBinding(tag) if is_of(tag));
        match &stmt.kind {
            StmtKind::Allocate { buffer, body } if buffer.scope == Scope::Local => {
                let is_in_group = self.open.iter().any(|inner| is_bound(|tag| !is_thread(tag), inner));
                if is_in_group && !self.open.iter().any(|inner| is_bound(is_thread, inner)) && !is_own(buffer, body) {
                    let message = format!(
                        "`{buffer}` is memory of each thread, and not all of its uses are in loops over the same threads"
                    );
                    let help =
                        "allocate it inside of the loop over threads; memory that threads share is in scope `shared`";
                    self.errors
                        .push(Diagnostic::error("local-memory", buffer.span.or(stmt.span), message).with_help(help));
                }
            }
            StmtKind::For(inner) => {
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

fn is_thread(tag: ThreadTag) -> bool {
    matches!(tag, ThreadTag::Thread(_))
}

/// Whether all uses of a buffer have the indices of their threads in front, those of the same axes, or none is below a loop over threads.
fn is_own(buffer: &Buffer, body: &Stmt) -> bool {
    let mut uses = Uses { buffer, open: Vec::new(), axes: Vec::new(), is_own: true };
    let Ok(_) = uses.stmt(body);
    let is_outside = uses.axes.iter().all(Vec::is_empty);
    is_outside || uses.is_own && uses.axes.windows(2).all(|pair| pair[0] == pair[1])
}

/// Looks at all uses of a buffer.
struct Uses<'a> {
    buffer: &'a Buffer,
    /// The loops over threads around this place, by their axes.
    open: Vec<(ThreadTag, Arc<For>)>,
    /// The axes of the threads around each use.
    axes: Vec<Vec<ThreadTag>>,
    is_own: bool,
}

impl Uses<'_> {
    fn used(&mut self, used: &Buffer, indices: &[Expr]) {
        if !used.aliases(self.buffer) {
            return;
        }
        let mut threads: Vec<&(ThreadTag, Arc<For>)> = self.open.iter().collect();
        threads.sort_by_key(|(tag, _)| *tag);
        let is_index = |((_, inner), (index, extent)): (&&(ThreadTag, Arc<For>), (&Expr, &Expr))| {
            *index == Expr::from(&inner.var) && *extent == inner.extent
        };
        let places = indices.iter().zip(&self.buffer.shape);
        self.is_own &=
            used == self.buffer && threads.len() <= indices.len() && threads.iter().zip(places).all(is_index);
        self.axes.push(threads.into_iter().map(|(tag, _)| *tag).collect());
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

    fn stmt(&mut self, stmt: &Stmt) -> Result<Stmt, Infallible> {
        match &stmt.kind {
            StmtKind::Store { buffer, indices, .. } => self.used(buffer, indices),
            StmtKind::For(inner) => {
                if let ForKind::ThreadBinding(tag @ ThreadTag::Thread(_)) = inner.kind {
                    self.open.push((tag, inner.clone()));
                    let Ok(_) = self.stmt(&inner.body);
                    self.open.pop();
                    return Ok(stmt.clone());
                }
            }
            _ => {}
        }
        self.stmt_children(stmt)
    }
}
