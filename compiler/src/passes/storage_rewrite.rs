//! Gives one memory to buffers that are not in use at the same time (TVM's `StorageRewrite`).
//!
//! ```text
//! t = T.alloc_buffer((7, 5), "float32")              t = T.alloc_buffer((7, 5), "float32")
//! u = T.alloc_buffer((7, 5), "float32")              v = T.alloc_buffer((4,), "float32")
//! v = T.alloc_buffer((4,), "float32")                for i, j in T.grid(7, 5):
//! for i, j in T.grid(7, 5):                              t[i, j] = A[i, j]
//!     t[i, j] = A[i, j]                              for i, j in T.grid(7, 5):
//! for i, j in T.grid(7, 5):                   ->         t[i, j] = t[i, j] * T.float32(2)
//!     u[i, j] = t[i, j] * T.float32(2)               for i in range(4):
//! for i in range(4):                                     v[i] = t[i, 0]
//!     v[i] = u[i, 0]                                 for i in range(4):
//! for i in range(4):                                     B[i] = v[3 - i]
//!     B[i] = v[3 - i]
//! ```
//!
//! - A buffer takes the memory of buffers that were used for the last time before it is used for the first time. A use in a loop
//!   counts for all of the loop, unless the buffer is allocated in it ([`super::storage::lifetimes`]).
//! - It may take the memory of a buffer that is read for the last time where its own values are computed, if each iteration reads only
//!   the element that it then overwrites (`u` above).
//! - Scope and element type are the same. Buffers of one rank share the largest of their shapes if that contains the others; if
//!   not, the memory has one axis, and each buffer becomes a view of it.
//! - Allocations move out of serial loops, to the innermost loop around them whose iterations run at once, or to the front of the
//!   function. Iterations that run at once never share memory.
//! - Views are views of the new memory. Parameters, textures, buffers with strides, with a layout that is asked for or that an
//!   attribute is about, and buffers whose shape is not known outside of the loops, keep their memory.
//!
//! The judge asks whether each value that is read is the one that was written for it (obligation *alive*). Cost: a few walks, the
//! square of the number of buffers, and the search for the evidence.

use std::collections::HashMap;
use std::convert::Infallible;

use tilewright_algebra::{Ranges, simplify};
use tilewright_ir::visit::Rewrite;
use tilewright_ir::{AxisSeparators, Buffer, Diagnostic, Evidence, Expr, For, PrimFunc, Stmt, StmtKind, Var, sabotage};

use super::Rewritten;
use super::remap::symbol_ranges;
use super::storage::claims::{same_stores, values};
use super::storage::in_place::is_in_place;
use super::storage::lifetimes::{Lifetime, Lifetimes, Piece, lifetimes};
use super::storage::{has_views, is_at_least_one, is_at_most, is_compact, is_layout_asked, without_blocks};

/// Lets buffers with disjoint lifetimes share memory, and moves allocations out of serial loops.
///
/// # Errors
/// `blocks`: the function has blocks, which say which buffers they read.
///
/// ```
/// use tilewright_compiler::passes::storage_rewrite;
/// let text = r#"
/// @T.prim_func
/// def main(A: T.Buffer((7, 5), "float32"), B: T.Buffer((4,), "float32")):
///     t = T.alloc_buffer((7, 5), "float32")
///     u = T.alloc_buffer((7, 5), "float32")
///     v = T.alloc_buffer((4,), "float32")
///     for i, j in T.grid(7, 5):
///         t[i, j] = A[i, j]
///     for i, j in T.grid(7, 5):
///         u[i, j] = t[i, j] * T.float32(2)
///     for i in range(4):
///         v[i] = u[i, 0]
///     for i in range(4):
///         B[i] = v[3 - i]
/// "#;
/// let func = tilewright_script::read_module(text)?.funcs.remove(0);
/// let printed = tilewright_script::print_func(&storage_rewrite(&func)?.func);
/// let body: Vec<&str> = printed.lines().skip(2).map(str::trim).collect();
/// assert_eq!(body, [
///     r#"t = T.alloc_buffer((7, 5), "float32")"#,
///     r#"v = T.alloc_buffer((4,), "float32")"#,
///     "for i, j in T.grid(7, 5):",
///     "t[i, j] = A[i, j]",
///     "for i, j in T.grid(7, 5):",
///     "t[i, j] = t[i, j] * T.float32(2.0)",
///     "for i in range(4):",
///     "v[i] = t[i, 0]",
///     "for i in range(4):",
///     "B[i] = v[3 - i]",
/// ]);
/// # Ok::<(), Vec<tilewright_ir::Diagnostic>>(())
/// ```
pub fn storage_rewrite(func: &PrimFunc) -> Result<Rewritten, Vec<Diagnostic>> {
    without_blocks(func, "storage_rewrite")?;
    let used = lifetimes(func);
    let storages = planned(func, &used);
    let is_moved = |storage: &Storage<'_>| storage.members.len() > 1 || !storage.members[0].bound.is_empty();
    if !storages.iter().any(is_moved) {
        let evidence = Evidence { pass: "storage_rewrite".to_owned(), ..Evidence::default() };
        return Ok(Rewritten { func: func.clone(), evidence, notes: Vec::new() });
    }
    let mut change = Change::new(func, &storages);
    let Ok(body) = change.stmt(&func.body);
    let after = PrimFunc { body: change.attached(None, body), ..func.clone() };
    let evidence = values(func, &after, "storage_rewrite", &same_stores);
    Ok(Rewritten { func: after, evidence, notes: Vec::new() })
}

/// Memory, and the buffers that are kept in it one after the other.
struct Storage<'f> {
    members: Vec<&'f Lifetime<'f>>,
    /// When the last of them is used.
    last: Piece,
    shape: Shape,
}

/// The shape of memory.
enum Shape {
    /// That of one of the members, which contains all others.
    Box(Vec<Expr>),
    /// A number of elements.
    Flat(Expr),
}

/// How well a buffer fits into memory; the best comes first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fit {
    Same,
    Inside,
    Around,
    Flat,
}

/// The memory of each buffer that may move.
fn planned<'f>(func: &PrimFunc, used: &'f Lifetimes<'f>) -> Vec<Storage<'f>> {
    let known = symbol_ranges(func);
    let mut movable: Vec<(Piece, &Lifetime<'_>)> = used
        .allocations
        .iter()
        .filter(|one| is_movable(func, used, one, &known))
        .filter_map(|one| Some((one.whole()?, one)))
        .collect();
    movable.sort_by_key(|(whole, _)| whole.begin);
    let mut found: Vec<Storage<'_>> = Vec::new();
    for (whole, one) in movable {
        let own = || Storage { members: vec![one], last: whole, shape: Shape::Box(one.buffer.shape.clone()) };
        let fits = found.iter().enumerate().filter_map(|(place, storage)| {
            let shared = fit(func, storage, one, &known)?;
            is_free(used, storage, (one, whole), shared.0).then_some((shared.0, place, shared.1))
        });
        match fits.min_by_key(|(fit, place, _)| (*fit, *place)) {
            Some((_, place, shape)) => {
                let storage = &mut found[place];
                storage.members.push(one);
                storage.last = Piece { end: whole.end.max(storage.last.end), ..whole };
                if !sabotage::on("storage-keeps-first-size") {
                    storage.shape = shape;
                }
            }
            None => found.push(own()),
        }
    }
    found.sort_by_key(|storage| place_of(used, storage.members[0]));
    found
}

/// The place of an allocation in the program.
fn place_of(used: &Lifetimes<'_>, one: &Lifetime<'_>) -> usize {
    used.allocations.iter().position(|other| other.buffer == one.buffer).unwrap_or_default()
}

/// Whether a buffer may be kept in other memory.
fn is_movable(func: &PrimFunc, used: &Lifetimes<'_>, one: &Lifetime<'_>, known: &Ranges) -> bool {
    let buffer = one.buffer;
    let n_allocations = used.allocations.iter().filter(|other| other.buffer.aliases(buffer)).count();
    let is_known = |extent: &Expr| {
        let is_outside = !extent.reads_memory() && extent.vars().iter().all(|var| !one.bound.contains(&var));
        // Where it is allocated now, a guard may say that there is an element.
        is_outside && is_at_least_one(extent, known)
    };
    !buffer.scope.is_texture()
        && is_compact(buffer)
        && !is_layout_asked(func, buffer)
        && n_allocations == 1
        && !used.mentioned.contains(&&buffer.data)
        && buffer.shape.iter().all(is_known)
}

/// How a buffer fits into memory, and the shape of the memory then. `None` if they cannot share.
fn fit(func: &PrimFunc, storage: &Storage<'_>, one: &Lifetime<'_>, known: &Ranges) -> Option<(Fit, Shape)> {
    let (first, buffer) = (storage.members[0], one.buffer);
    let has_views = |buffer: &Buffer| has_views(func, buffer);
    let is_one_kind = first.buffer.dtype == buffer.dtype
        && first.buffer.scope == buffer.scope
        && first.buffer.axis_separators.positions() == buffer.axis_separators.positions()
        && first.attach == one.attach;
    if !is_one_kind {
        return None;
    }
    if let Shape::Box(shape) = &storage.shape {
        let is_inside = |inner: &[Expr], outer: &[Expr]| {
            inner.len() == outer.len() && inner.iter().zip(outer).all(|(a, b)| is_at_most(a, b, known))
        };
        let (fits, contains) = (is_inside(&buffer.shape, shape), is_inside(shape, &buffer.shape));
        if fits && contains {
            return Some((Fit::Same, Shape::Box(shape.clone())));
        }
        let is_seen = has_views(buffer) || storage.members.iter().any(|member| has_views(member.buffer));
        if (fits || contains) && !is_seen {
            let (fit, shape) = if fits { (Fit::Inside, shape) } else { (Fit::Around, &buffer.shape) };
            return Some((fit, Shape::Box(shape.clone())));
        }
    }
    if !buffer.axis_separators.is_empty() || buffer.shape.is_empty() {
        return None;
    }
    let ours = match &storage.shape {
        Shape::Box(shape) => n_elements(shape)?,
        Shape::Flat(size) => size.clone(),
    };
    let theirs = n_elements(&buffer.shape)?;
    let size = if is_at_most(&theirs, &ours, known) {
        ours
    } else if is_at_most(&ours, &theirs, known) {
        theirs
    } else {
        return None;
    };
    Some((Fit::Flat, Shape::Flat(simplify(&size, known))))
}

/// The number of elements; `None` for a buffer without axes.
fn n_elements(shape: &[Expr]) -> Option<Expr> {
    shape.iter().cloned().reduce(|a, b| a * b)
}

/// Whether memory is not used any more when a buffer is used for the first time, or is overwritten element by element.
fn is_free(used: &Lifetimes<'_>, storage: &Storage<'_>, (one, whole): (&Lifetime<'_>, Piece), fit: Fit) -> bool {
    if sabotage::on("storage-counts-first-use") {
        let begins = storage.members.iter().filter_map(|member| member.whole()).map(|piece| piece.begin);
        return begins.max().is_some_and(|begin| begin < whole.begin);
    }
    if storage.last.end < whole.begin {
        return true;
    }
    let (Some(last), Some(end)) = (storage.members.last(), storage.members.last().and_then(|last| last.pieces.last()))
    else {
        return false;
    };
    let is_met_once = one.pieces.first() == Some(end)
        && one.pieces.iter().skip(1).all(|piece| piece.begin > end.end)
        && last.pieces.iter().rev().skip(1).all(|piece| piece.end < end.begin);
    fit == Fit::Same && is_met_once && is_in_place(used.statements[end.begin], last.buffer, one.buffer)
}

/// The rewriting.
struct Change<'a, 'f> {
    /// The buffers that are replaced, and the buffers after.
    replaced: HashMap<Buffer, Buffer>,
    /// The owners that become views.
    views: Vec<Buffer>,
    /// All buffers that lose their own allocation.
    moved: Vec<Buffer>,
    storages: &'a [Storage<'f>],
    memory: Vec<Buffer>,
}

impl<'a, 'f> Change<'a, 'f> {
    fn new(func: &PrimFunc, storages: &'a [Storage<'f>]) -> Self {
        let mut change =
            Self { replaced: HashMap::new(), views: Vec::new(), moved: Vec::new(), storages, memory: Vec::new() };
        let buffers = func.buffers();
        for storage in storages {
            let members = storage.members.iter().map(|member| member.buffer);
            change.moved.extend(members.clone().cloned());
            let memory = memory_of(storage);
            for owner in members {
                let is_flat = matches!(storage.shape, Shape::Flat(_));
                for buffer in buffers.iter().filter(|buffer| buffer.aliases(owner)) {
                    let after = if buffer == owner && !is_flat {
                        memory.clone()
                    } else if owner.data == memory.data {
                        continue;
                    } else {
                        buffer.with(|info| info.data = memory.data.clone())
                    };
                    change.replaced.insert(buffer.clone(), after);
                }
                if is_flat {
                    change.views.push(owner.clone());
                }
            }
            change.memory.push(memory);
        }
        change
    }

    /// The body of a loop whose iterations run at once, or of the function, with the memory that is allocated there.
    fn attached(&self, attach: Option<&Var>, body: Stmt) -> Stmt {
        let here = self.storages.iter().zip(&self.memory).filter(|(storage, _)| storage.members[0].attach == attach);
        here.rev().fold(body, |body, (_, memory)| {
            Stmt::new(StmtKind::Allocate { buffer: memory.clone(), body: body.into() }).at(memory.span)
        })
    }
}

/// The buffer that owns memory: one of the members, or a new one with one axis.
fn memory_of(storage: &Storage<'_>) -> Buffer {
    let first = storage.members[0].buffer;
    match &storage.shape {
        Shape::Box(shape) => {
            let owner = storage.members.iter().find(|member| member.buffer.shape == *shape);
            let is_first = owner.is_some_and(|owner| owner.buffer == first);
            if is_first { first.clone() } else { first.with(|info| info.shape.clone_from(shape)) }
        }
        Shape::Flat(size) => {
            let memory = Buffer::compact(format!("{}_storage", first.name), first.dtype, vec![size.clone()]);
            memory.with(|info| {
                (info.scope, info.span) = (first.scope, first.span);
                info.axis_separators = AxisSeparators::none(1);
            })
        }
    }
}

impl Rewrite for Change<'_, '_> {
    type Error = Infallible;

    fn buffer(&mut self, buffer: &Buffer) -> Result<Buffer, Infallible> {
        Ok(self.replaced.get(buffer).unwrap_or(buffer).clone())
    }

    fn stmt(&mut self, stmt: &Stmt) -> Result<Stmt, Infallible> {
        match &stmt.kind {
            StmtKind::Allocate { buffer, body } if self.views.contains(buffer) => {
                let (buffer, body) = (self.buffer(buffer)?, self.stmt(body)?.into());
                Ok(Stmt::new(StmtKind::DeclBuffer { buffer, body }).at(stmt.span))
            }
            StmtKind::Allocate { buffer, body } if self.moved.contains(buffer) => self.stmt(body),
            StmtKind::For(inner) if inner.kind.is_concurrent() => {
                let rewritten = self.stmt_children(stmt)?;
                let StmtKind::For(after) = &rewritten.kind else { return Ok(rewritten) };
                let body = self.attached(Some(&inner.var), after.body.clone());
                Ok(Stmt::new(StmtKind::For(For { body, ..For::clone(after) }.into())).at(stmt.span))
            }
            _ => self.stmt_children(stmt),
        }
    }
}
