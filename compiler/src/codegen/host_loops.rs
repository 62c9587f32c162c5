//! Loops of the host around launches that wait for each other.
//!
//! ```python
//! for t in range(3):                                            kernels f_0, f_1, f_2, ..., f_5, launched in this order;
//!     for i in T.thread_binding(17, thread="blockIdx.x"):       t is a constant in each
//!         B[i] = A[(i + 1) % 17]
//!     for i in T.thread_binding(17, thread="blockIdx.x"):
//!         A[i] = B[(i + t) % 17]
//! ```
//!
//! A nest is one kernel where its work-items need no order that groups would have to keep. Where they do, and the nest is a serial loop of
//! a constant number of iterations around the launches, each iteration has kernels of its own, since kernels run one after the other.

use tilewright_ir::visit::Substitution;
use tilewright_ir::{Diagnostic, Expr, For, ForKind, Stmt, StmtKind};

use super::kernel::SourceBuilder;

/// Most iterations of a loop that are launched one by one.
const MOST_ITERATIONS: i128 = 64;

/// Most kernels of a function with such loops.
const MOST_KERNELS: usize = 256;

impl SourceBuilder<'_> {
    /// Generates the kernels of each iteration of a nest for which `fault` says that groups would have to wait for each other; the
    /// fault is reported if the nest is no loop that can be launched like that.
    pub(super) fn launched_one_by_one(&mut self, nest: &Stmt, fault: Diagnostic) {
        let StmtKind::For(inner) = &nest.kind else { return self.errors.push(fault) };
        match iterations(inner) {
            Some(values) if self.metadata.kernels.len() < MOST_KERNELS => {
                for value in values {
                    let body = Substitution::new([&inner.var], [value]).apply_stmt(&inner.body);
                    self.root(&body);
                }
            }
            Some(_) | None => self.errors.push(fault.with_help(
                "statements of different launches need nests of their own, or a serial loop of at most 64 iterations around them, whose \
                 number is a constant; other loops around launches are for the program that calls the kernels",
            )),
        }
    }
}

/// The values of a serial loop that is not too long; `None` for other loops.
fn iterations(inner: &For) -> Option<Vec<Expr>> {
    let is_in_order = matches!(inner.kind, ForKind::Serial | ForKind::Unrolled);
    let (min, extent) = (inner.min.as_const_int()?, inner.extent.as_const_int()?);
    if !is_in_order || !(0..=MOST_ITERATIONS).contains(&extent) {
        return None;
    }
    (0..extent).map(|at| Expr::int_of(min + at, inner.var.dtype().scalar)).collect()
}
