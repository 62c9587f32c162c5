//! Phases: programs with barriers as programs without.
//!
//! Barriers cut what the threads of a group do into phases. All threads run one phase before the first of them begins the next:
//!
//! ```text
//! for tx in 8 (threadIdx.x):              for tx in 8: S[tx] = A[tx]
//!     S[tx] = A[tx]                       for k in 3:
//!     barrier                                 for tx in 8: if tx < 4 >> k: S[tx] = S[tx] + S[tx + (4 >> k)]
//!     for k in 3:
//!         if tx < 4 >> k:
//!             S[tx] = S[tx] + S[tx + (4 >> k)]
//!         barrier
//! ```
//!
//! [`group_of`] makes the statement of a group: loops, conditions and names around barriers are those of the group, and each phase knows
//! its way, from the loops over threads to its body. This needs uniform control flow: no condition and no extent around a
//! barrier depends on a thread or on memory. [`without_barriers`] writes the program on the right. A program without races
//! means the same on both sides: two statements that are put into another order then touch no element in common that
//! one of them writes. That there are no races is not checked here.
//!
//! Memory in the scope `shared` belongs to the group, wherever among the loops over threads it is allocated; outside of the loop over groups
//! it is one memory for all of them. Any other memory that is allocated by a
//! thread belongs to this thread; if it lives through several phases, the program on the right has one copy for each thread.

mod arrays;
mod grouped;
mod kept;
mod rebuild;
mod synchronized;
mod unified;
mod uses;
mod views;

use std::collections::HashSet;
use std::sync::Arc;

use crate::buffer::{Buffer, Scope};
use crate::diag::{Diagnostic, Span};
use crate::expr::Expr;
use crate::sabotage;
use crate::stmt::{For, ForKind, Stmt, StmtKind, ThreadTag};
use crate::var::Var;

pub use arrays::plain_arrays;
pub use grouped::grouped;
pub use rebuild::{Barriers, OF_GROUP, without_barriers};
pub use synchronized::{
    IMPLICIT_BARRIER, barriers_removed, ends_with_barrier, has_barriers, is_implicit_barrier, leaves_barriers_out,
    n_implicit_barriers, synchronized,
};
pub use unified::unified;
pub use uses::{Use, Uses, uses_of};

/// What the threads of a group do.
#[derive(Clone, Debug)]
pub enum GroupStmt {
    /// Each thread runs a statement without barriers.
    Phase(Phase),
    /// All threads wait for each other.
    Barrier(Option<Span>),
    /// Statements of the group one after the other.
    Seq(Vec<GroupStmt>),
    /// A statement that all threads run in the same way: a serial loop, a condition, a name, shared memory, a hint. The
    /// bodies of the statement are those of the second field.
    Scope(Stmt, Vec<GroupStmt>),
    /// Memory of each thread that lives through several phases.
    Private {
        /// The memory of one thread.
        buffer: Buffer,
        /// The loops over threads around its allocation, outermost first. Their bodies are not those of the phases.
        threads: Vec<Arc<For>>,
        /// Where it is allocated.
        span: Option<Span>,
        /// What the group does while the memory is valid.
        body: Box<GroupStmt>,
    },
}

/// A statement without barriers that each thread of a group runs.
#[derive(Clone, Debug)]
pub struct Phase {
    /// What is around the statement and belongs to a thread, outermost first.
    pub way: Vec<Way>,
    /// The statement.
    pub body: Stmt,
}

/// A part of the way to a phase.
#[derive(Clone, Debug)]
pub enum Way {
    /// A loop over threads. Its body is not that of the phase.
    Thread(Arc<For>),
    /// A value that differs between threads; it reads no memory.
    Let(Var, Expr),
    /// Memory of the thread.
    Private(Buffer),
    /// A view of memory of the thread.
    View(Buffer),
}

/// Returns whether a statement contains a barrier, or memory that threads share: then it is no statement of one thread.
pub fn is_of_group(stmt: &Stmt) -> bool {
    let mut found = false;
    stmt.walk(&mut |stmt| {
        found |= match &stmt.kind {
            StmtKind::Barrier => true,
            StmtKind::Allocate { buffer, .. } => buffer.scope == Scope::Shared,
            StmtKind::For(_)
            | StmtKind::Store { .. }
            | StmtKind::DeclBuffer { .. }
            | StmtKind::If { .. }
            | StmtKind::Let { .. }
            | StmtKind::Seq(_)
            | StmtKind::Evaluate(_)
            | StmtKind::Attr { .. }
            | StmtKind::Assert { .. } => false,
        };
    });
    found
}

/// Returns the loop of a statement that is an outermost loop over threads of a group with barriers or shared memory.
pub fn group_loop(stmt: &Stmt) -> Option<&Arc<For>> {
    match &stmt.kind {
        StmtKind::For(inner) if is_thread_loop(inner.kind) && is_of_group(&inner.body) => Some(inner),
        _ => None,
    }
}

/// Returns whether a statement contains a group with barriers or shared memory.
pub fn has_groups(stmt: &Stmt) -> bool {
    let mut found = false;
    stmt.walk(&mut |stmt| found |= group_loop(stmt).is_some());
    found
}

/// Returns what the threads of a group do; `nest` is an outermost loop over threads.
///
/// # Errors
/// Control flow around a barrier or shared memory that may differ between threads (`barrier-divergent`), a concurrent loop there
/// (`barrier-place`), and memory of one thread around a barrier that is a texture or has strides, or views of it whose sizes are no
/// constants (`barrier-memory`).
pub fn group_of(nest: &Stmt) -> Result<GroupStmt, Diagnostic> {
    Splitter::default().part(nest)
}

/// Returns whether a loop of this kind runs over the threads of a group.
pub(crate) fn is_thread_loop(kind: ForKind) -> bool {
    match kind {
        ForKind::ThreadBinding(ThreadTag::Thread(_)) => true,
        ForKind::ThreadBinding(ThreadTag::Block(_))
        | ForKind::Serial
        | ForKind::Parallel
        | ForKind::Vectorized
        | ForKind::Unrolled => false,
    }
}

/// The loops over threads on a way.
fn threads_of(way: &[Way]) -> Vec<Arc<For>> {
    let thread = |step: &Way| match step {
        Way::Thread(inner) => Some(inner.clone()),
        Way::Let(..) | Way::Private(_) | Way::View(_) => None,
    };
    way.iter().filter_map(thread).collect()
}

/// The place in a group.
#[derive(Default)]
struct Splitter {
    /// The way to this place.
    way: Vec<Way>,
    /// Variables that may differ between threads.
    varying: HashSet<Var>,
    /// The data variables of the memory on the way.
    private: HashSet<Var>,
    span: Option<Span>,
}

impl Splitter {
    /// What the group does at a statement.
    fn part(&mut self, stmt: &Stmt) -> Result<GroupStmt, Diagnostic> {
        let outer = self.span;
        self.span = stmt.span.or(outer);
        let part = self.part_of_kind(stmt);
        self.span = outer;
        part
    }

    fn part_of_kind(&mut self, stmt: &Stmt) -> Result<GroupStmt, Diagnostic> {
        if !is_of_group(stmt) {
            return self.phase(stmt.clone());
        }
        match &stmt.kind {
            StmtKind::For(inner) => self.for_loop(stmt, inner),
            StmtKind::Seq(stmts) => self.sequence(stmts),
            StmtKind::If { cond, then_body, else_body } => {
                self.uniform(cond, "condition")?;
                let mut bodies = vec![self.part(then_body)?];
                if let Some(body) = else_body {
                    bodies.push(self.part(body)?);
                }
                Ok(GroupStmt::Scope(stmt.clone(), bodies))
            }
            StmtKind::Let { value, body, .. } if self.is_uniform(value) => {
                Ok(GroupStmt::Scope(stmt.clone(), vec![self.part(body)?]))
            }
            StmtKind::Let { var, value, body } => self.own_value(stmt, var, value, body),
            StmtKind::Allocate { buffer, body } if buffer.scope == Scope::Shared => {
                self.uniform_shape(buffer)?;
                Ok(GroupStmt::Scope(stmt.clone(), vec![self.part(body)?]))
            }
            StmtKind::Allocate { buffer, body } => self.own_memory(stmt, buffer, |this| this.part(body)),
            StmtKind::DeclBuffer { buffer, body } => {
                if self.private.contains(&buffer.data) {
                    if !self.follows(buffer) {
                        return Err(self.view_of_one_thread(buffer));
                    }
                    let body = self.within(Way::View(buffer.clone()), |this| this.part(body))?;
                    return Ok(GroupStmt::Scope(stmt.clone(), vec![body]));
                }
                self.uniform_shape(buffer)?;
                Ok(GroupStmt::Scope(stmt.clone(), vec![self.part(body)?]))
            }
            StmtKind::Attr { body, .. } => Ok(GroupStmt::Scope(stmt.clone(), vec![self.part(body)?])),
            StmtKind::Barrier => Ok(GroupStmt::Barrier(self.span)),
            StmtKind::Store { .. } | StmtKind::Evaluate(_) | StmtKind::Assert { .. } => self.phase(stmt.clone()),
        }
    }

    /// A statement of each thread. The memory of a thread on the way to it becomes memory of all threads, which some views of it would
    /// not follow.
    fn phase(&self, body: Stmt) -> Result<GroupStmt, Diagnostic> {
        let own = |step: &Way| match step {
            Way::Private(buffer) | Way::View(buffer) => Some(buffer.clone()),
            Way::Thread(_) | Way::Let(..) => None,
        };
        let own: Vec<Buffer> = self.way.iter().filter_map(own).collect();
        let is_own = |buffer: &Buffer| own.iter().any(|own| own.data == buffer.data);
        let is_other = |buffer: &&Buffer| is_own(buffer) && !own.contains(buffer) && !self.follows(buffer);
        match body.buffers().iter().find(is_other) {
            Some(view) => Err(self.view_of_one_thread(view)),
            None => Ok(GroupStmt::Phase(Phase { way: self.way.clone(), body })),
        }
    }

    /// Whether memory of all threads has such a view as this one of the memory of one.
    fn follows(&self, view: &Buffer) -> bool {
        let is_base = |step: &Way| matches!(step, Way::Private(base) if base.data == view.data);
        let Some(at) = self.way.iter().position(is_base) else { return false };
        let Way::Private(base) = &self.way[at] else { return false };
        views::of_all_threads(base, &threads_of(&self.way[..at]), view).is_some()
    }

    fn view_of_one_thread(&self, view: &Buffer) -> Diagnostic {
        let message = format!("`{view}` is a view of the memory of one thread, which is in use at a barrier");
        let help = "use the buffer that is allocated, or a view in it with a constant shape, strides and offset, of the same type";
        self.error("barrier-memory", message, help)
    }

    /// Statements one after the other: as many as possible without a barrier are one phase.
    fn sequence(&mut self, stmts: &[Stmt]) -> Result<GroupStmt, Diagnostic> {
        let (mut parts, mut own) = (Vec::new(), Vec::new());
        for stmt in stmts {
            if is_of_group(stmt) {
                if !own.is_empty() {
                    parts.push(self.phase(Stmt::seq(std::mem::take(&mut own)))?);
                }
                parts.push(self.part(stmt)?);
            } else {
                own.push(stmt.clone());
            }
        }
        if !own.is_empty() {
            parts.push(self.phase(Stmt::seq(own))?);
        }
        Ok(GroupStmt::Seq(parts))
    }

    fn for_loop(&mut self, stmt: &Stmt, inner: &Arc<For>) -> Result<GroupStmt, Diagnostic> {
        match inner.kind {
            ForKind::ThreadBinding(ThreadTag::Thread(_)) => {
                self.uniform(&inner.min, "first thread")?;
                self.uniform(&inner.extent, "number of threads")?;
                self.varying.insert(inner.var.clone());
                self.within(Way::Thread(inner.clone()), |this| this.part(&inner.body))
            }
            ForKind::Serial | ForKind::Unrolled => {
                self.uniform(&inner.min, "start of a loop")?;
                self.uniform(&inner.extent, "extent of a loop")?;
                Ok(GroupStmt::Scope(stmt.clone(), vec![self.part(&inner.body)?]))
            }
            ForKind::Parallel | ForKind::Vectorized | ForKind::ThreadBinding(ThreadTag::Block(_)) => {
                let message = format!("the loop over `{}` is concurrent, and has no threads of the group", inner.var);
                Err(self.error("barrier-place", message, "only serial loops and loops over threadIdx may be there"))
            }
        }
    }

    /// A part with one more step on the way to it.
    fn within(
        &mut self,
        step: Way,
        part: impl FnOnce(&mut Self) -> Result<GroupStmt, Diagnostic>,
    ) -> Result<GroupStmt, Diagnostic> {
        self.way.push(step);
        let part = part(self);
        self.way.pop();
        part
    }

    /// A name whose value differs between threads. One that is read from memory is kept in memory of the thread: a later
    /// phase may change what it was read from.
    fn own_value(&mut self, stmt: &Stmt, var: &Var, value: &Expr, body: &Stmt) -> Result<GroupStmt, Diagnostic> {
        if !value.reads_memory() || sabotage::on("phases-read-again") {
            self.varying.insert(var.clone());
            return self.within(Way::Let(var.clone(), value.clone()), |this| this.part(body));
        }
        if !value.dtype().is_scalar() {
            let message = format!("`{var}` is a vector that is read from memory, and is in use at a barrier");
            return Err(self.error("barrier-memory", message, "store it to memory of the thread"));
        }
        let kept =
            Buffer::compact(var.name(), value.dtype(), vec![Expr::int(1)]).with(|info| info.scope = Scope::Local);
        let load = Expr::load(&kept, vec![Expr::int(0)]);
        let renames = crate::visit::Substitution::new([var], [load]);
        let store = Stmt::store(&kept, vec![Expr::int(0)], value.clone()).at(stmt.span);
        // All threads read their values before one of them goes on, as a phase of their own.
        self.own_memory(stmt, &kept, |this| {
            let first = this.phase(store)?;
            Ok(GroupStmt::Seq(vec![first, this.part(&renames.apply_stmt(body))?]))
        })
    }

    /// Memory of each thread around a part.
    fn own_memory(
        &mut self,
        stmt: &Stmt,
        buffer: &Buffer,
        part: impl FnOnce(&mut Self) -> Result<GroupStmt, Diagnostic>,
    ) -> Result<GroupStmt, Diagnostic> {
        let is_plain = buffer.strides.is_none() && buffer.elem_offset.as_const_int() == Some(0);
        if buffer.scope.is_texture() || !is_plain {
            let message =
                format!("`{buffer}` is memory of one thread that is in use at a barrier, and is no plain array");
            return Err(self.error(
                "barrier-memory",
                message,
                "allocate it in the scope local, without strides or offset",
            ));
        }
        self.uniform_shape(buffer)?;
        self.private.insert(buffer.data.clone());
        let threads = threads_of(&self.way);
        let body = Box::new(self.within(Way::Private(buffer.clone()), part)?);
        Ok(GroupStmt::Private { buffer: buffer.clone(), threads, span: stmt.span, body })
    }

    fn uniform_shape(&self, buffer: &Buffer) -> Result<(), Diagnostic> {
        let strides = buffer.strides.iter().flatten();
        buffer.shape.iter().chain(strides).chain([&buffer.elem_offset]).try_for_each(|part| self.uniform(part, "size"))
    }

    fn is_uniform(&self, expr: &Expr) -> bool {
        if sabotage::on("phases-ignore-divergence") {
            return true;
        }
        !expr.reads_memory() && !expr.vars().iter().any(|var| self.varying.contains(var))
    }

    /// Checks that an expression has the same value for all threads of the group.
    fn uniform(&self, expr: &Expr, what: &str) -> Result<(), Diagnostic> {
        if self.is_uniform(expr) {
            return Ok(());
        }
        let by = if expr.reads_memory() { "memory" } else { "the thread" };
        let message = format!("the {what} `{expr}` around a barrier or shared memory depends on {by}");
        let help = "every thread of the group has to get there, equally often; move the barrier out of it";
        Err(self.error("barrier-divergent", message, help))
    }

    fn error(&self, code: &'static str, message: String, help: &str) -> Diagnostic {
        Diagnostic::error(code, self.span, message).with_help(help)
    }
}
