//! Shrinks the memory that is allocated to the elements that are used (TVM's `CompactBufferAllocation`).
//!
//! ```text
//! for io in range((n + 7) // 8):                         for io in range((n + 7) // 8):
//!     t = T.alloc_buffer((n + 9, 5), "float32")              t = T.alloc_buffer((10, 1), "float32")
//!     for ii in range(10):                                   for ii in range(10):
//!         if io * 8 + ii < n + 2:                  ->            if io * 8 + ii < n + 2:
//!             t[io * 8 + ii, 3] = A[io * 8 + ii]                     t[ii, 0] = A[io * 8 + ii]
//!     for ii in range(8):                                    for ii in range(8):
//!         if io * 8 + ii < n:                                    if io * 8 + ii < n:
//!             B[io * 8 + ii] = t[io * 8 + ii + 2, 3]                 B[io * 8 + ii] = t[ii + 2, 0]
//! ```
//!
//! The box around all elements that are read or written where the buffer is allocated is computed axis by axis, from the loops inside
//! of the allocation; guards are not looked at. The least index of an axis becomes 0. An axis stays as it is if its box depends on
//! memory, on what the iteration is, or may be larger than the axis. Buffers with views, strides or with a layout that is asked
//! for are left alone, with a note: all aliases would have to change together. So is the memory of a group that its threads allocate, of
//! which each of them uses a part. Textures and parameters keep their shape. Cost: a
//! walk for each buffer, and the search for the evidence.

use tilewright_algebra::{Ranges, simplify};
use tilewright_ir::{
    Buffer, Diagnostic, Evidence, Expr, For, ForKind, IndexMap, PrimFunc, Scope, Stmt, StmtKind, ThreadTag, Var,
    sabotage,
};

use super::Rewritten;
use super::remap::{Move, inside, remap, symbol_ranges};
use super::schedule::touched;
use super::storage::claims::{same_stores, values};
use super::storage::{has_views, is_at_least_one, is_at_most, is_compact, is_layout_asked, without_blocks};

const NAME: &str = "compact_buffer_allocation";

/// Shrinks allocations to what is used of them.
///
/// # Errors
/// `blocks`: the function has blocks. A vector access whose lanes are not evenly spaced.
///
/// ```
/// use tilewright_compiler::passes::compact_buffer_allocation;
/// let text = r#"
/// @T.prim_func
/// def main(a: T.handle, b: T.handle):
///     n = T.int32()
///     A = T.match_buffer(a, (n + 2,), "float32")
///     B = T.match_buffer(b, (n,), "float32")
///     for io in range((n + 7) // 8):
///         t = T.alloc_buffer((n + 9, 5), "float32")
///         for ii in range(10):
///             if io * 8 + ii < n + 2:
///                 t[io * 8 + ii, 3] = A[io * 8 + ii]
///         for ii in range(8):
///             if io * 8 + ii < n:
///                 B[io * 8 + ii] = t[io * 8 + ii + 2, 3]
/// "#;
/// let func = tilewright_script::read_module(text)?.funcs.remove(0);
/// let printed = tilewright_script::print_func(&compact_buffer_allocation(&func)?.func);
/// let body: Vec<&str> = printed.lines().skip(5).map(str::trim).collect();
/// assert_eq!(body, [
///     "for io in range((n + 7) // 8):",
///     r#"t = T.alloc_buffer((10, 1), "float32")"#,
///     "for ii in range(10):",
///     "if io * 8 + ii < n + 2:",
///     "t[ii, 0] = A[io * 8 + ii]",
///     "for ii in range(8):",
///     "if io * 8 + ii < n:",
///     "B[io * 8 + ii] = t[ii + 2, 0]",
/// ]);
/// # Ok::<(), Vec<tilewright_ir::Diagnostic>>(())
/// ```
pub fn compact_buffer_allocation(func: &PrimFunc) -> Result<Rewritten, Vec<Diagnostic>> {
    without_blocks(func, NAME)?;
    let mut found = Found { func, outer: Vec::new(), moves: Vec::new(), notes: Vec::new() };
    found.stmt(&func.body);
    let Found { moves, notes, .. } = found;
    if moves.is_empty() {
        let evidence = Evidence { pass: NAME.to_owned(), ..Evidence::default() };
        return Ok(Rewritten { func: func.clone(), evidence, notes });
    }
    let body = remap(func, &moves).map_err(|fault| vec![fault])?;
    let after = PrimFunc { body, ..func.clone() };
    let evidence = values(func, &after, NAME, &same_stores);
    Ok(Rewritten { func: after, evidence, notes })
}

/// Walks over the allocations.
struct Found<'f> {
    func: &'f PrimFunc,
    /// The loops around the current statement.
    outer: Vec<&'f For>,
    moves: Vec<Move>,
    notes: Vec<Diagnostic>,
}

impl<'f> Found<'f> {
    fn stmt(&mut self, stmt: &'f Stmt) {
        if let StmtKind::Allocate { buffer, body } = &stmt.kind
            && !buffer.scope.is_texture()
            && let Some(shrunk) = self.shrunk(buffer, body)
        {
            match self.obstacle(buffer) {
                Some(why) => {
                    let message = format!("`{buffer}` keeps its shape, of which not all is used: it {why}");
                    let help = "all that see its memory would have to change together";
                    self.notes.push(Diagnostic::warning("not-compact", buffer.span, message).with_help(help));
                }
                None => self.moves.push(shrunk),
            }
        }
        if let StmtKind::For(inner) = &stmt.kind {
            self.outer.push(inner);
            self.stmt(&inner.body);
            self.outer.pop();
        } else {
            stmt.children().for_each(|child| self.stmt(child));
        }
    }

    /// Why the shape of a buffer cannot change.
    fn obstacle(&self, buffer: &Buffer) -> Option<&'static str> {
        let is_thread = |run: &&For| matches!(run.kind, ForKind::ThreadBinding(ThreadTag::Thread(_)));
        if buffer.scope == Scope::Shared && self.outer.iter().any(is_thread) {
            // What one thread uses is less than what the group needs.
            Some("is memory of all threads around it")
        } else if has_views(self.func, buffer) {
            Some("has views")
        } else if !is_compact(buffer) {
            Some("has strides or an offset")
        } else {
            is_layout_asked(self.func, buffer).then_some("has a layout that is asked for")
        }
    }

    /// The buffer with the extents that are used. `None` if that is all of it, or if it is not known.
    fn shrunk(&self, buffer: &Buffer, body: &Stmt) -> Option<Move> {
        let known = self.outer.iter().fold(symbol_ranges(self.func), |known, run| inside(&known, run));
        let spans = touched(self.func, &self.outer, body, buffer);
        let mut is_smaller = false;
        let vars: Vec<Var> = buffer.shape.iter().map(|extent| Var::new("i", extent.dtype())).collect();
        let (mut shape, mut outputs) = (Vec::new(), Vec::new());
        for ((extent, span), var) in buffer.shape.iter().zip(spans).zip(&vars) {
            let used =
                span.filter(|span| is_at_least_one(&span.extent, &known) && is_less(&span.extent, extent, &known));
            let Some(span) = used else {
                outputs.push(Expr::from(var));
                shape.push(extent.clone());
                continue;
            };
            is_smaller = true;
            let low = if sabotage::on("compact-forgets-start") { span.low.clone() - span.low } else { span.low };
            let one = Expr::int_of(1, extent.dtype().scalar)?;
            let extent = if sabotage::on("compact-one-less") { span.extent - one } else { span.extent };
            outputs.push(simplify(&(Expr::from(var) - low), &known));
            shape.push(simplify(&extent, &known));
        }
        is_smaller.then_some(())?;
        let map = IndexMap::new(vars, buffer.shape.clone(), outputs, Vec::new()).ok()?;
        let after = buffer.with(|info| info.shape = shape);
        Some(Move { before: buffer.clone(), after, map })
    }
}

/// Whether one extent is at most another one, whatever the parameters are, and not always the same.
fn is_less(a: &Expr, b: &Expr, known: &Ranges) -> bool {
    is_at_most(a, b, known) && simplify(&(b.clone() - a.clone()), known).as_const_int() != Some(0)
}
