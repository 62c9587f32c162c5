//! Loops of the host around launches that wait for each other.
//!
//! ```python
//! for t in range(3):                                            kernels f_0, f_1, f_2, ..., f_5, launched in this order;
//!     for i in T.thread_binding(17, thread="blockIdx.x"):       t is a constant in each
//!         B[i] = A[(i + 1) % 17]
//!     for i in T.thread_binding(17, thread="blockIdx.x"):
//!         A[i] = B[(i + t) % 17]
//!
//! for t in range(n): ...                                        kernels f_0 and f_1, launched n times; t is an argument
//! ```
//!
//! A nest is one kernel where its work-items need no order that groups would have to keep. Where they do, and the nest is a serial loop
//! around the launches, the host runs the loop, since kernels run one after the other. Few iterations have kernels of their own, in
//! which the variable is a constant.

use tilewright_ir::visit::Substitution;
use tilewright_ir::{Diagnostic, Expr, For, ForKind, Stmt, StmtKind};

use super::kernel::SourceBuilder;
use super::metadata::{HostLoop, Size};

/// Most iterations of a loop that have kernels of their own.
const MOST_ITERATIONS: i128 = 64;

/// Most kernels of a function with such loops.
const MOST_KERNELS: usize = 256;

impl SourceBuilder<'_> {
    /// Generates the kernels of a nest for which `fault` says that groups would have to wait for each other; the fault is reported if
    /// the nest is no loop that the host can run.
    pub(super) fn launched_one_by_one(&mut self, nest: &Stmt, fault: Diagnostic) {
        let StmtKind::For(inner) = &nest.kind else { return self.errors.push(fault) };
        match iterations(inner) {
            Some(values) if self.metadata.kernels.len() < MOST_KERNELS && rounds(nest) <= MOST_ITERATIONS => {
                for value in values {
                    let body = Substitution::new([&inner.var], [value]).apply_stmt(&inner.body);
                    self.root(&body);
                }
            }
            _ if self.is_run_by_host(inner) => self.run_by_host(inner),
            Some(_) | None => self.errors.push(fault.with_help(
                "statements of different launches need nests of their own, or a serial loop around them, whose length is known before \
                 the launch, and in which no memory is allocated; other loops around launches are for the program that calls the \
                 kernels",
            )),
        }
    }

    /// Whether the host can run a loop: it knows how often, and all memory outlives the loop.
    fn is_run_by_host(&self, inner: &For) -> bool {
        let is_known =
            |expr: &Expr| !expr.reads_memory() && expr.vars().iter().all(|var| self.base.known_scalars.contains(var));
        is_in_order(inner) && is_known(&inner.min) && is_known(&inner.extent) && !allocates(&inner.body)
    }

    /// Generates the kernels of one iteration, which take the variable of the loop as an argument.
    fn run_by_host(&mut self, inner: &For) {
        let (place, first) = (self.metadata.loops.len(), self.metadata.kernels.len());
        self.base.declare(&inner.var);
        self.base.known_scalars.insert(inner.var.clone());
        self.base.ranges.insert_loop(&inner.var, &inner.min, &inner.extent);
        let (var, min, extent) = (inner.var.clone(), inner.min.clone(), Size(inner.extent.clone()));
        self.metadata.loops.push(HostLoop { var, min, extent, kernels: first..first });
        self.root(&inner.body);
        self.metadata.loops[place].kernels.end = self.metadata.kernels.len();
        if self.metadata.loops[place].kernels.is_empty() {
            self.metadata.loops.truncate(place);
        }
        self.base.known_scalars.remove(&inner.var);
    }
}

/// How often the launches in a statement run, with the loops around them counted whose length is a constant.
fn rounds(stmt: &Stmt) -> i128 {
    match &stmt.kind {
        StmtKind::For(inner) if is_in_order(inner) => {
            inner.extent.as_const_int().unwrap_or(1).saturating_mul(rounds(&inner.body))
        }
        StmtKind::Seq(stmts) => stmts.iter().map(rounds).max().unwrap_or(1),
        StmtKind::DeclBuffer { body, .. }
        | StmtKind::Attr { body, .. }
        | StmtKind::Let { body, .. }
        | StmtKind::Allocate { body, .. } => rounds(body),
        StmtKind::For(_)
        | StmtKind::If { .. }
        | StmtKind::Store { .. }
        | StmtKind::Evaluate(_)
        | StmtKind::Barrier
        | StmtKind::Assert { .. } => 1,
    }
}

/// Whether a statement has memory that the host would have to allocate in each iteration.
fn allocates(stmt: &Stmt) -> bool {
    match &stmt.kind {
        StmtKind::Allocate { .. } => true,
        StmtKind::Seq(stmts) => stmts.iter().any(allocates),
        StmtKind::DeclBuffer { body, .. } | StmtKind::Attr { body, .. } | StmtKind::Let { body, .. } => allocates(body),
        StmtKind::For(inner) => !matches!(inner.kind, ForKind::ThreadBinding(_)) && allocates(&inner.body),
        StmtKind::If { .. }
        | StmtKind::Store { .. }
        | StmtKind::Evaluate(_)
        | StmtKind::Barrier
        | StmtKind::Assert { .. } => false,
    }
}

fn is_in_order(inner: &For) -> bool {
    matches!(inner.kind, ForKind::Serial | ForKind::Unrolled)
}

/// The values of a serial loop that is not too long; `None` for other loops.
fn iterations(inner: &For) -> Option<Vec<Expr>> {
    let (min, extent) = (inner.min.as_const_int()?, inner.extent.as_const_int()?);
    if !is_in_order(inner) || !(0..=MOST_ITERATIONS).contains(&extent) {
        return None;
    }
    (0..extent).map(|at| Expr::int_of(min + at, inner.var.dtype().scalar)).collect()
}
