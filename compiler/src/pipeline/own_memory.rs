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

use tilewright_ir::phases::{Use, uses_of};
use tilewright_ir::visit::Rewrite;
use tilewright_ir::{Buffer, Diagnostic, ForKind, PrimFunc, Scope, Stmt, StmtKind};

/// The errors of a function without blocks.
pub(super) fn refused(func: &PrimFunc) -> Vec<Diagnostic> {
    let mut walk = Walk { n_bound: 0, errors: Vec::new() };
    let Ok(_) = walk.stmt(&func.body);
    walk.errors
}

/// Looks for allocations below a loop over groups or threads and around other loops over threads. Memory in front of all of them is one for
/// all groups.
struct Walk {
    /// The loops over groups and threads around this place.
    n_bound: usize,
    errors: Vec<Diagnostic>,
}

impl Rewrite for Walk {
    type Error = Infallible;

    fn stmt(&mut self, stmt: &Stmt) -> Result<Stmt, Infallible> {
        if let StmtKind::Allocate { buffer, body } = &stmt.kind
            && buffer.scope == Scope::Local
            && self.n_bound > 0
            && !is_own(buffer, body)
        {
            let message = format!(
                "`{buffer}` is memory of each thread, and not all of its uses are in loops over the same threads"
            );
            let help = "allocate it inside of the loops over threads; memory that threads share is in scope `shared`";
            self.errors.push(Diagnostic::error("local-memory", buffer.span.or(stmt.span), message).with_help(help));
        }
        let is_bound = matches!(&stmt.kind, StmtKind::For(inner) if matches!(inner.kind, ForKind::ThreadBinding(_)));
        self.n_bound += usize::from(is_bound);
        let walked = self.stmt_children(stmt);
        self.n_bound -= usize::from(is_bound);
        walked
    }
}

/// Whether all uses of a buffer have the indices of their threads in front, those of the same axes, or none is below a loop over threads.
fn is_own(buffer: &Buffer, body: &Stmt) -> bool {
    let uses = uses_of(buffer, body).elements;
    let axes = |one: &Use| one.threads().iter().map(|(tag, _)| *tag).collect::<Vec<_>>();
    let is_outside = uses.iter().all(|one| one.threads().is_empty());
    let is_like_the_next = |pair: &[Use]| axes(&pair[0]) == axes(&pair[1]);
    let is_of_threads = uses.iter().all(|one| one.buffer == *buffer && one.is_of_its_thread());
    is_outside || is_of_threads && uses.windows(2).all(is_like_the_next)
}
