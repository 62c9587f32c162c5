//! The passes that a generated program asks for, and what they need: marks of buffers, and virtual threads.

use std::convert::Infallible;

use tilewright_compiler::passes::{PASSES_ATTRIBUTE, inject_double_buffer, split_host_device};
use tilewright_ir::phases::IMPLICIT_BARRIER;
use tilewright_ir::visit::Rewrite;
use tilewright_ir::{AttrValue, Buffer, For, ForKind, PrimFunc, Stmt, StmtKind, VIRTUAL_THREAD};

use super::super::recipe::Requested;
use super::schedule::Scheduled;

/// The function with the attribute that asks for the passes. Where buffers are marked, the steps of the schedule are applied first,
/// as they make the loops in which buffers are filled.
pub(super) fn with_passes(scheduled: Scheduled, passes: &[Requested]) -> PrimFunc {
    let Scheduled { mut func, after } = scheduled;
    if passes.is_empty() {
        return func;
    }
    if passes.contains(&Requested::InjectDoubleBuffer) {
        func = with_marks(after);
    }
    if passes.contains(&Requested::InjectVirtualThread) {
        let Ok(body) = (Virtual { copies: 1 }).stmt(&func.body);
        func.body = body;
    }
    if passes.contains(&Requested::ThreadSync) {
        let Ok(body) = Implicit.stmt(&func.body);
        func.body = body;
    }
    let is_split = split_host_device(&func).is_ok();
    let asked = passes.iter().filter(|pass| **pass != Requested::SplitHostDevice || is_split);
    let names = asked.map(|pass| AttrValue::Str(pass.name().to_owned())).collect();
    func.attrs.other.push((PASSES_ATTRIBUTE.to_owned(), AttrValue::List(names)));
    func
}

/// Most buffers that are marked: each copy of an unrolled loop may have one, and each is tried.
const MOST_MARKED: usize = 4;

/// The function with a mark at each buffer that may have two halves.
fn with_marks(mut func: PrimFunc) -> PrimFunc {
    let mut allocated: Vec<Buffer> = Vec::new();
    func.body.walk(&mut |stmt| {
        if let StmtKind::Allocate { buffer, .. } = &stmt.kind {
            allocated.push(buffer.clone());
        }
    });
    allocated.truncate(MOST_MARKED);
    for buffer in allocated {
        let Ok(body) = Mark(&buffer).stmt(&func.body);
        let marked = PrimFunc { body, ..func.clone() };
        if inject_double_buffer(&marked).is_ok() {
            func = marked;
        }
    }
    func
}

/// Marks a buffer where it is allocated.
struct Mark<'a>(&'a Buffer);

impl Rewrite for Mark<'_> {
    type Error = Infallible;

    fn stmt(&mut self, stmt: &Stmt) -> Result<Stmt, Infallible> {
        let StmtKind::Allocate { buffer, body } = &stmt.kind else { return self.stmt_children(stmt) };
        if buffer != self.0 {
            return self.stmt_children(stmt);
        }
        let (node, value) = (AttrValue::Var(buffer.data.clone()), AttrValue::Int(1));
        let key = "double_buffer_scope".to_owned();
        let body = Stmt::new(StmtKind::Attr { node, key, value, body: body.clone() });
        Ok(Stmt::new(StmtKind::Allocate { buffer: buffer.clone(), body: body.into() }).at(stmt.span))
    }
}

/// Makes each barrier one that the text does not have, which `thread_sync` removes if threads do not race without it.
struct Implicit;

impl Rewrite for Implicit {
    type Error = Infallible;

    fn stmt(&mut self, stmt: &Stmt) -> Result<Stmt, Infallible> {
        if !matches!(stmt.kind, StmtKind::Barrier) {
            return self.stmt_children(stmt);
        }
        let (node, key, value) = (AttrValue::Int(0), IMPLICIT_BARRIER.to_owned(), AttrValue::Int(1));
        Ok(Stmt::new(StmtKind::Attr { node, key, value, body: stmt.clone().into() }))
    }
}

/// Most copies that virtual threads make of a statement: the judge compares each copy with each other one.
const MOST_COPIES: i128 = 24;

/// Makes parallel loops loops over virtual threads, unless these would be too many.
struct Virtual {
    /// The virtual threads of the loops around this place.
    copies: i128,
}

impl Rewrite for Virtual {
    type Error = Infallible;

    fn stmt(&mut self, stmt: &Stmt) -> Result<Stmt, Infallible> {
        let threads = match &stmt.kind {
            StmtKind::For(inner) if inner.kind == ForKind::Parallel => inner.extent.as_const_int(),
            _ => None,
        };
        let Some(copies) = threads.map(|threads| threads.max(1) * self.copies).filter(|all| *all <= MOST_COPIES) else {
            return self.stmt_children(stmt);
        };
        let outside = std::mem::replace(&mut self.copies, copies);
        let rewritten = self.stmt_children(stmt)?;
        self.copies = outside;
        let StmtKind::For(inner) = &rewritten.kind else { return Ok(rewritten) };
        let mut inner = For::clone(inner);
        inner.annotations.push((VIRTUAL_THREAD.to_owned(), AttrValue::Str("vthread.x".to_owned())));
        Ok(Stmt::new(StmtKind::For(inner.into())).at(stmt.span))
    }
}
