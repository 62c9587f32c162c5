//! The program without barriers: each phase becomes a nest of loops over threads of its own.
//!
//! ```text
//! for tx in 8 (threadIdx.x):              acc: (8, 3)
//!     acc: (3,)                           for tx in 8: acc[tx, 0] = A[tx]
//!     acc[0] = A[tx]                      for tx in 8: B[tx] = acc[tx, 0]
//!     barrier
//!     B[tx] = acc[0]
//! ```

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::Arc;

use super::kept::with_threads;
use super::{GroupStmt, Phase, Way, group_loop, group_of, has_groups};
use crate::block::BLOCK;
use crate::buffer::Buffer;
use crate::diag::{Diagnostic, Span};
use crate::expr::Expr;
use crate::func::PrimFunc;
use crate::sabotage;
use crate::shared::SharedExprs;
use crate::stmt::{AttrValue, For, ForKind, Stmt, StmtKind, ThreadTag};
use crate::var::Var;
use crate::visit::{Rewrite, Substitution};

/// What becomes of the barriers between the nests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Barriers {
    /// They are left out: the nests run one after the other.
    Dropped,
    /// They stay, as statements of the group, for those who look for races: nests of one group without a barrier between them
    /// are concurrent. Each group begins with a barrier, its loops over threads have the annotation [`OF_GROUP`], and it has a loop over
    /// blockIdx around it.
    Kept,
}

/// The annotation of loops over the threads of a group with barriers, which the group enters once for each phase.
pub const OF_GROUP: &str = "of_group";

/// Returns the program whose groups run phase by phase; the program itself if it has no barriers and no threads share memory.
///
/// # Errors
/// Groups that have no phases; see [`group_of`].
pub fn without_barriers(func: &PrimFunc, barriers: Barriers) -> Result<PrimFunc, Vec<Diagnostic>> {
    if !has_groups(&func.body) {
        return Ok(func.clone());
    }
    let mut groups = Groups { func, barriers, in_block: false, errors: Vec::new() };
    let Ok(body) = groups.stmt(&func.body);
    if groups.errors.is_empty() { Ok(PrimFunc { body, ..func.clone() }) } else { Err(groups.errors) }
}

/// Replaces each group.
struct Groups<'a> {
    func: &'a PrimFunc,
    barriers: Barriers,
    /// Whether the innermost concurrent loop around this place is one over blockIdx.
    in_block: bool,
    errors: Vec<Diagnostic>,
}

impl Rewrite for Groups<'_> {
    type Error = Infallible;

    fn stmt(&mut self, stmt: &Stmt) -> Result<Stmt, Infallible> {
        if group_loop(stmt).is_some() {
            return Ok(match self.group(stmt) {
                Ok(rebuilt) => rebuilt,
                Err(error) => {
                    self.errors.push(error);
                    stmt.clone()
                }
            });
        }
        let outer = self.in_block;
        if let StmtKind::For(inner) = &stmt.kind
            && inner.kind.is_concurrent()
        {
            self.in_block = matches!(inner.kind, ForKind::ThreadBinding(ThreadTag::Block(_)));
        }
        let rewritten = self.stmt_children(stmt);
        self.in_block = outer;
        rewritten
    }
}

impl Groups<'_> {
    fn group(&self, nest: &Stmt) -> Result<Stmt, Diagnostic> {
        let part = group_of(nest)?;
        let mut builder = Builder { func: self.func, barriers: self.barriers, copies: HashMap::new() };
        let rebuilt = builder.part(&part)?.at(nest.span);
        if self.barriers == Barriers::Dropped {
            return Ok(rebuilt);
        }
        let rebuilt = Stmt::seq(vec![Stmt::new(StmtKind::Barrier).at(nest.span), rebuilt]);
        if self.in_block {
            return Ok(rebuilt);
        }
        let kind = ForKind::ThreadBinding(ThreadTag::Block(0));
        Ok(Stmt::for_loop(&Var::index("group"), Expr::int(1), kind, rebuilt).at(nest.span))
    }
}

/// The memory of all threads that replaces the memory of one.
#[derive(Clone)]
struct Copies {
    buffer: Buffer,
    /// The loops over threads around the memory.
    threads: Vec<Arc<For>>,
    /// Whether it is no view of other memory.
    is_allocated: bool,
}

struct Builder<'a> {
    func: &'a PrimFunc,
    barriers: Barriers,
    copies: HashMap<Buffer, Copies>,
}

impl Builder<'_> {
    /// The statement of a part.
    fn part(&mut self, part: &GroupStmt) -> Result<Stmt, Diagnostic> {
        match part {
            GroupStmt::Phase(phase) => self.phase(phase),
            GroupStmt::Barrier(span) => Ok(match self.barriers {
                Barriers::Dropped => Stmt::seq(Vec::new()),
                Barriers::Kept => Stmt::new(StmtKind::Barrier).at(*span),
            }),
            GroupStmt::Seq(parts) => {
                let stmts = parts.iter().map(|part| self.part(part)).collect::<Result<_, _>>()?;
                Ok(Stmt::seq(stmts))
            }
            GroupStmt::Scope(head, bodies) => {
                let view = match &head.kind {
                    StmtKind::DeclBuffer { buffer, .. } => view_of(&self.copies, buffer),
                    _ => None,
                };
                let head = match (view, &head.kind) {
                    (Some(copies), StmtKind::DeclBuffer { buffer, body }) => {
                        let of_all = copies.buffer.clone();
                        self.copies.insert(buffer.clone(), copies);
                        let kind = StmtKind::DeclBuffer { buffer: of_all, body: body.clone() };
                        &Stmt::new(kind).at(head.span)
                    }
                    _ => head,
                };
                let bodies = bodies.iter().map(|body| self.part(body)).collect::<Result<Vec<_>, _>>()?;
                Ok(with_bodies(head, bodies))
            }
            GroupStmt::Private { buffer, threads, span, body } => {
                let copies = self.copies_of(buffer, threads.clone(), *span)?;
                let of_all = copies.buffer.clone();
                self.copies.insert(buffer.clone(), copies);
                let body = Arc::new(self.part(body)?);
                Ok(Stmt::new(StmtKind::Allocate { buffer: of_all, body }).at(*span))
            }
        }
    }

    /// The memory of all threads.
    fn copies_of(&self, buffer: &Buffer, threads: Vec<Arc<For>>, span: Option<Span>) -> Result<Copies, Diagnostic> {
        if self.func.attrs.final_rank(&buffer.data, buffer.rank()) != buffer.rank() {
            let message = format!("the layout of `{buffer}` is to be changed, and a barrier is in its scope");
            return Err(Diagnostic::error("barrier-memory", span, message)
                .with_help("change layouts of memory that all threads share"));
        }
        let buffer = with_threads(buffer, threads.iter().map(|inner| inner.extent.clone()).collect());
        Ok(Copies { buffer, threads, is_allocated: true })
    }

    /// A phase in loops over threads of its own, with variables of its own.
    fn phase(&self, phase: &Phase) -> Result<Stmt, Diagnostic> {
        let mut own = Own { copies: self.copies.clone(), renames: Substitution::default(), fault: None };
        let mut heads = Vec::new();
        for step in &phase.way {
            match step {
                Way::Thread(inner) => {
                    let suffix = if sabotage::on("phases-rename-threads") { "_phase" } else { "" };
                    let var = Var::new(format!("{}{suffix}", inner.var.name()), inner.var.dtype());
                    let (Ok(min), Ok(extent)) = (own.expr(&inner.min), own.expr(&inner.extent));
                    own.renames.insert(&inner.var, Expr::from(&var));
                    let mut inner = For { var, min, extent, body: Stmt::seq(Vec::new()), ..(**inner).clone() };
                    if self.barriers == Barriers::Kept {
                        inner.annotations.push((OF_GROUP.to_owned(), AttrValue::Int(1)));
                    }
                    heads.push(Head::Loop(inner));
                }
                Way::Let(var, value) => {
                    let Ok(value) = own.expr(value);
                    let renamed = Var::new(var.name(), var.dtype());
                    own.renames.insert(var, Expr::from(&renamed));
                    heads.push(Head::Let(renamed, value));
                }
                Way::Private(_) | Way::View(_) => {}
            }
        }
        let Ok(body) = own.stmt(&phase.body);
        if let Some(buffer) = own.fault {
            let message = format!("the size of `{buffer}` depends on the thread, in a group with barriers");
            return Err(Diagnostic::error("barrier-memory", phase.body.span, message).with_help("give it a fixed size"));
        }
        Ok(heads.into_iter().rev().fold(body, |body, head| {
            let span = body.span;
            let kind = match head {
                Head::Loop(inner) => StmtKind::For(Arc::new(For { body, ..inner })),
                Head::Let(var, value) => StmtKind::Let { var, value, body: Arc::new(body) },
            };
            Stmt::new(kind).at(span)
        }))
    }
}

/// The view of the memory of all threads for a view of the memory of one. `None` for other memory; views that have none were refused.
fn view_of(copies: &HashMap<Buffer, Copies>, view: &Buffer) -> Option<Copies> {
    let memory = copies.iter().find(|(own, memory)| own.data == view.data && memory.is_allocated);
    let (base, memory) = memory?;
    let buffer = super::views::of_all_threads(base, &memory.threads, view)?;
    Some(Copies { buffer, threads: memory.threads.clone(), is_allocated: false })
}

/// A statement around a phase.
enum Head {
    Loop(For),
    Let(Var, Expr),
}

/// A statement with other bodies. Blocks lose what they say: it is about variables of the program with barriers.
fn with_bodies(head: &Stmt, bodies: Vec<Stmt>) -> Stmt {
    let mut bodies = bodies.into_iter();
    let mut next = || bodies.next().unwrap_or_else(|| Stmt::seq(Vec::new()));
    let kind = match &head.kind {
        StmtKind::For(inner) => StmtKind::For(Arc::new(For { body: next(), ..(**inner).clone() })),
        StmtKind::If { cond, else_body, .. } => StmtKind::If {
            cond: cond.clone(),
            then_body: Arc::new(next()),
            else_body: else_body.as_ref().map(|_| Arc::new(next())),
        },
        StmtKind::Let { var, value, .. } => {
            StmtKind::Let { var: var.clone(), value: value.clone(), body: Arc::new(next()) }
        }
        StmtKind::Allocate { buffer, .. } => StmtKind::Allocate { buffer: buffer.clone(), body: Arc::new(next()) },
        StmtKind::DeclBuffer { buffer, .. } => StmtKind::DeclBuffer { buffer: buffer.clone(), body: Arc::new(next()) },
        StmtKind::Attr { key, .. } if key == BLOCK => return next(),
        StmtKind::Attr { node, key, value, .. } => {
            let (node, key, value) = (node.clone(), key.clone(), value.clone());
            StmtKind::Attr { node, key, value, body: Arc::new(next()) }
        }
        kind @ (StmtKind::Store { .. }
        | StmtKind::Seq(_)
        | StmtKind::Evaluate(_)
        | StmtKind::Barrier
        | StmtKind::Assert { .. }) => kind.clone(),
    };
    Stmt::new(kind).at(head.span)
}

/// Rewrites a phase: its own variables, and the memory of all threads for that of one.
struct Own {
    copies: HashMap<Buffer, Copies>,
    renames: Substitution,
    /// A buffer of the phase whose size names a variable that is replaced.
    fault: Option<Buffer>,
}

impl Own {
    /// The element of the memory of all threads, if the buffer is memory of one.
    fn place(&self, buffer: &Buffer, indices: Vec<Expr>) -> (Buffer, Vec<Expr>) {
        let Some(copies) = self.copies.get(buffer) else { return (buffer.clone(), indices) };
        let thread = |inner: &Arc<For>| {
            let var = self.renames.apply(&Expr::from(&inner.var));
            if sabotage::on("phases-share-own-memory") {
                return Expr::Int { value: 0, ty: inner.var.dtype().scalar };
            }
            if inner.min.as_const_int() == Some(0) { var } else { var - self.renames.apply(&inner.min) }
        };
        let at = copies.threads.iter().map(thread).chain(indices).collect();
        (copies.buffer.clone(), at)
    }

    fn declared(&mut self, buffer: &Buffer) {
        let strides = buffer.strides.iter().flatten();
        let mut sizes = buffer.shape.iter().chain(strides).chain([&buffer.elem_offset]);
        if sizes.any(|size| size.vars().iter().any(|var| self.renames.get(var).is_some())) {
            self.fault = Some(buffer.clone());
        }
    }
}

impl Rewrite for Own {
    type Error = Infallible;

    fn expr(&mut self, expr: &Expr) -> Result<Expr, Infallible> {
        match expr {
            Expr::Var(var) => Ok(self.renames.get(var).unwrap_or(expr).clone()),
            Expr::Load { buffer, indices } => {
                let indices = self.exprs(indices)?;
                let (buffer, indices) = self.place(buffer, indices);
                Ok(Expr::Load { buffer, indices: SharedExprs::from(indices) })
            }
            _ => self.expr_children(expr),
        }
    }

    fn stmt(&mut self, stmt: &Stmt) -> Result<Stmt, Infallible> {
        match &stmt.kind {
            StmtKind::Store { buffer, indices, value } => {
                let (indices, value) = (self.exprs(indices)?, self.expr(value)?);
                let (buffer, indices) = self.place(buffer, indices);
                Ok(Stmt::store(&buffer, indices, value).at(stmt.span))
            }
            StmtKind::Attr { key, body, .. } if key == BLOCK => self.stmt(body),
            StmtKind::DeclBuffer { buffer, body } if let Some(copies) = view_of(&self.copies, buffer) => {
                let of_all = copies.buffer.clone();
                self.copies.insert(buffer.clone(), copies);
                let body = Arc::new(self.stmt(body)?);
                Ok(Stmt::new(StmtKind::DeclBuffer { buffer: of_all, body }).at(stmt.span))
            }
            StmtKind::Allocate { buffer, .. } | StmtKind::DeclBuffer { buffer, .. } => {
                self.declared(buffer);
                self.stmt_children(stmt)
            }
            StmtKind::For(_)
            | StmtKind::If { .. }
            | StmtKind::Let { .. }
            | StmtKind::Seq(_)
            | StmtKind::Evaluate(_)
            | StmtKind::Barrier
            | StmtKind::Attr { .. }
            | StmtKind::Assert { .. } => self.stmt_children(stmt),
        }
    }
}
