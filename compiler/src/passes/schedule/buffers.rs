//! Which buffers a statement stores to and loads from.

use std::convert::Infallible;

use tilewright_ir::visit::Rewrite;
use tilewright_ir::{Buffer, Diagnostic, Expr, For, ForKind, PrimFunc, Scope, Stmt, StmtKind, ThreadTag, Var};

use super::{fault, known_names};

/// Returns whether a statement stores to a buffer of a kind.
pub(crate) fn stores_to(stmt: &Stmt, is_meant: &dyn Fn(&Buffer) -> bool) -> bool {
    let mut found = false;
    stmt.walk(&mut |part| found |= matches!(&part.kind, StmtKind::Store { buffer, .. } if is_meant(buffer)));
    found
}

/// Returns whether an expression loads from the memory of a buffer.
pub(crate) fn loads(expr: &Expr, buffer: &Buffer) -> bool {
    let mut found = false;
    expr.walk(&mut |part| found |= matches!(part, Expr::Load { buffer: read, .. } if read.aliases(buffer)));
    found
}

/// Returns whether a statement loads from the memory of a buffer.
pub(crate) fn loads_from(stmt: &Stmt, buffer: &Buffer) -> bool {
    let mut found = false;
    stmt.walk(&mut |part| found |= part.exprs().any(|expr| loads(expr, buffer)));
    found
}

/// Returns the number of loads from and stores to the memory of a buffer in a statement.
pub(crate) fn n_uses(stmt: &Stmt, buffer: &Buffer) -> usize {
    let mut n_stores = 0;
    stmt.walk(&mut |part| {
        n_stores += usize::from(matches!(&part.kind, StmtKind::Store { buffer: stored, .. } if stored.aliases(buffer)));
    });
    n_stores + n_loads(stmt, buffer)
}

/// Returns whether a buffer is allocated in a statement.
pub(crate) fn allocates(stmt: &Stmt, buffer: &Buffer) -> bool {
    let mut found = false;
    stmt.walk(&mut |part| found |= matches!(&part.kind, StmtKind::Allocate { buffer: other, .. } if other == buffer));
    found
}

/// Returns the buffer of a name, if the function allocates it and nothing else sees its memory.
///
/// # Errors
/// There is no such buffer, it is a parameter or has a view, or a layout is asked for it.
pub(crate) fn allocated(func: &PrimFunc, name: &str) -> Result<Buffer, Diagnostic> {
    let buffers = func.buffers();
    let mut named = buffers.iter().filter(|buffer| buffer.name == name);
    let Some(buffer) = named.next() else {
        let names: Vec<&str> = buffers.iter().map(|buffer| buffer.name.as_str()).collect();
        let help = known_names("buffers", name, &names);
        return Err(fault(format!("`{}` has no buffer `{name}`", func.name), help));
    };
    if named.next().is_some() {
        return Err(fault(format!("`{}` has several buffers `{name}`", func.name), "give them different names"));
    }
    has_own_memory(func, buffer)?;
    Ok(buffer.clone())
}

/// Checks that the function allocates a buffer, and that nothing else sees its memory.
///
/// # Errors
/// It is a parameter or has a view, or a layout is asked for it.
pub(in crate::passes) fn has_own_memory(func: &PrimFunc, buffer: &Buffer) -> Result<(), Diagnostic> {
    let (name, buffers) = (&buffer.name, func.buffers());
    if func.buffer_map.iter().any(|(_, param)| param.aliases(buffer)) {
        let help = "a caller sees all of a parameter; take a buffer that the function allocates";
        return Err(fault(format!("`{name}` is a parameter"), help));
    }
    let has_view = buffers.iter().any(|other| other != buffer && other.aliases(buffer));
    let is_plain = buffer.strides.is_none() && buffer.elem_offset.as_const_int() == Some(0);
    if has_view || !is_plain {
        return Err(fault(format!("`{name}` has views, strides or an offset"), "name a buffer with memory of its own"));
    }
    let attrs = &func.attrs;
    let is_moved = attrs.layout_transform_map.iter().any(|(data, maps)| *data == buffer.data && !maps.is_empty());
    if is_moved || attrs.tile_layout.iter().any(|(data, _)| *data == buffer.data) || !buffer.axis_separators.is_empty()
    {
        let help = "its axes are those of the layout; ask for a layout of another buffer";
        return Err(fault(format!("a layout is asked for `{name}`, which would be applied after the schedule"), help));
    }
    Ok(())
}

/// Returns the number of loads from a buffer in a statement.
pub(crate) fn n_loads(stmt: &Stmt, buffer: &Buffer) -> usize {
    let mut count = 0;
    stmt.walk(&mut |part| {
        for expr in part.exprs() {
            expr.walk(&mut |part| {
                count += usize::from(matches!(part, Expr::Load { buffer: read, .. } if read == buffer));
            });
        }
    });
    count
}

/// Returns a statement in which a buffer is allocated inside a loop, if it was allocated outside of that.
pub(crate) fn moved_into(stmt: &Stmt, buffer: &Buffer, run: &Var) -> Stmt {
    let mut moving = Moving { buffer, run, is_outside: false };
    let Ok(stmt) = moving.stmt(stmt);
    stmt
}

/// Returns a statement without the allocation of a buffer.
pub(crate) fn unallocated(stmt: &Stmt, buffer: &Buffer) -> Stmt {
    // No loop runs over a variable that nothing else knows.
    moved_into(stmt, buffer, &Var::index("nowhere"))
}

/// Returns a statement with another buffer in the place of one.
pub(crate) fn reallocated(stmt: &Stmt, before: &Buffer, after: &Buffer) -> Stmt {
    let Ok(stmt) = Replace { before, after }.stmt(stmt);
    stmt
}

/// Replaces a buffer.
struct Replace<'a> {
    before: &'a Buffer,
    after: &'a Buffer,
}

impl Rewrite for Replace<'_> {
    type Error = Infallible;

    fn buffer(&mut self, buffer: &Buffer) -> Result<Buffer, Infallible> {
        Ok(if buffer == self.before { self.after.clone() } else { buffer.clone() })
    }
}

/// Moves an allocation into a loop.
struct Moving<'a> {
    buffer: &'a Buffer,
    run: &'a Var,
    /// Whether the allocation was met, and taken away.
    is_outside: bool,
}

impl Rewrite for Moving<'_> {
    type Error = Infallible;

    fn stmt(&mut self, stmt: &Stmt) -> Result<Stmt, Infallible> {
        match &stmt.kind {
            StmtKind::Allocate { buffer, body } if buffer == self.buffer => {
                self.is_outside = true;
                self.stmt(body)
            }
            StmtKind::For(inner) if inner.var == *self.run && self.is_outside => {
                let (buffer, body) = (self.buffer.clone(), inner.body.clone().into());
                let body = Stmt::new(StmtKind::Allocate { buffer, body });
                Ok(Stmt::new(StmtKind::For(For { body, ..For::clone(inner) }.into())).at(stmt.span))
            }
            _ => self.stmt_children(stmt),
        }
    }
}

/// Whether iterations of a kind need memory of their own: the threads of a group share that of the group.
pub(crate) fn is_private(buffer: &Buffer, kind: ForKind) -> bool {
    match (buffer.scope, kind) {
        (Scope::Shared, ForKind::ThreadBinding(ThreadTag::Thread(_))) => false,
        (_, kind) => kind.is_concurrent(),
    }
}

/// A body with the allocation of a buffer moved into a loop, if everything that uses it is in there.
pub(crate) fn with_own_memory(body: &Stmt, run: &Var, buffer: &Buffer) -> Stmt {
    let mut uses = 0;
    let mut is_inside = false;
    body.walk(&mut |stmt| {
        if let StmtKind::For(inner) = &stmt.kind
            && inner.var == *run
        {
            uses = n_uses(&inner.body, buffer);
            is_inside = allocates(&inner.body, buffer);
        }
    });
    let moves = allocates(body, buffer) && !is_inside && uses == n_uses(body, buffer);
    if moves { moved_into(body, buffer, run) } else { body.clone() }
}
