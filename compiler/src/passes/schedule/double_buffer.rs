//! Fills a buffer for the next iteration while this one reads it: `double_buffer=BUFFER`.
//!
//! ```text
//! t = T.alloc_buffer((8,), "float32")          t = T.alloc_buffer((2, 8), "float32")
//! for i in range(n):                           for j in range(8):
//!     for j in range(8):                           t[0, j] = A[0, j]
//!         t[j] = A[i, j]                       for i in range(n):
//!     for j in range(8):                 ->        if i + 1 < n:
//!         C[i, j] = t[7 - j]                           for j in range(8):
//!                                                          t[(i + 1) % 2, j] = A[i + 1, j]
//!                                                  for j in range(8):
//!                                                      C[i, j] = t[i % 2, 7 - j]
//! ```
//!
//! The loop is the innermost one around everything that uses the buffer. The first iteration is filled for in front of it, every
//! other one in the iteration before, in front of what reads the buffer, as TVM's `InjectDoubleBuffer` does. The buffer is
//! allocated outside of the loop. Whether the fill reads nothing that the iteration before changes is for the judge to say
//! (obligation *alive*). Cost: a few walks, and the search for the evidence.

use tilewright_algebra::{Ranges, simplify};
use tilewright_ir::phases::ends_with_barrier;
use tilewright_ir::visit::{Rewrite, Substitution};
use tilewright_ir::{
    AxisSeparators, Buffer, Diagnostic, Expr, For, IndexMap, Origin, PrimFunc, Stmt, StmtKind, Var, sabotage,
};
use tilewright_verify::reorder::Statement;

use super::super::Rewritten;
use super::super::remap::{Move, remap};
use super::super::simplify::Simplify;
use super::buffers::{allocated, allocates, loads_from, n_uses, reallocated, stores_to};
use super::claims::{Claim, at, in_iteration, unchanged};
use super::copy::copied;
use super::loops::{Found, all_loops, check_in_order, with_loop};
use super::{applied, fault};

/// Applies the first step `double_buffer` of the schedule.
///
/// # Errors
/// `schedule`: the step names no buffer that the function allocates, or the buffer is not filled by nests of its own in each
/// iteration of a serial loop, in front of what reads it.
///
/// ```
/// use tilewright_compiler::passes::double_buffer;
/// let text = r#"
/// @T.prim_func
/// def main(a: T.handle, c: T.handle):
///     n = T.int32()
///     A = T.match_buffer(a, (n, 8), "float32")
///     C = T.match_buffer(c, (n, 8), "float32")
///     T.func_attr({"schedule": ["double_buffer=t"]})
///     t = T.alloc_buffer((8,), "float32")
///     for i in range(n):
///         for j in range(8):
///             t[j] = A[i, j]
///         for j in range(8):
///             C[i, j] = t[7 - j]
/// "#;
/// let func = tilewright_script::read_module(text)?.funcs.remove(0);
/// let printed = tilewright_script::print_func(&double_buffer(&func)?.func);
/// let body: Vec<&str> = printed.lines().skip(5).map(str::trim).collect();
/// assert_eq!(body, [
///     r#"t = T.alloc_buffer((2, 8), "float32")"#,
///     "for j in range(8):",
///     "t[0, j] = A[0, j]",
///     "for i in range(n):",
///     "if i + 1 < n:",
///     "for j in range(8):",
///     "t[(i + 1) % 2, j] = A[i + 1, j]",
///     "for j in range(8):",
///     "C[i, j] = t[i % 2, 7 - j]",
/// ]);
/// # Ok::<(), Vec<tilewright_ir::Diagnostic>>(())
/// ```
pub fn double_buffer(func: &PrimFunc) -> Result<Rewritten, Vec<Diagnostic>> {
    applied("double_buffer", func, &|func, argument| doubled(func, &allocated(func, argument)?))
}

/// The body of a function with two halves of a buffer that it allocates, and what is claimed of that.
///
/// # Errors
/// The buffer is not filled by nests of its own in each iteration of a serial loop, in front of what reads it.
pub(in crate::passes) fn doubled(func: &PrimFunc, buffer: &Buffer) -> Result<(Stmt, Claim), Diagnostic> {
    let found = loop_around(func, buffer)?;
    let known = found.ranges(func);
    let doubled = Doubled::new(func, buffer, found.inner, &known)?;
    let mut replaced = doubled.replaced()?;
    if allocates(&found.inner.body, buffer) {
        let (buffer, body) = (doubled.after.clone(), replaced.into());
        replaced = Stmt::new(StmtKind::Allocate { buffer, body });
    }
    let body = with_loop(&func.body, &found.inner.var, &replaced);
    let body = reallocated(&body, buffer, &doubled.after);
    let (before, after) = (buffer.clone(), doubled.after.clone());
    let (var, first, next) = (found.inner.var.clone(), found.inner.min.clone(), doubled.next());
    let claim = move |old: &[Statement], new: &[Statement]| {
        let filled = Filled { before: &before, after: &after, var: &var, iterations: [&first, &next] };
        filled.origins(old, new)
    };
    Ok((body, Claim::Values(Box::new(claim))))
}

/// A buffer that is filled for two iterations of a loop: the first one, and the next one.
struct Filled<'a> {
    before: &'a Buffer,
    after: &'a Buffer,
    var: &'a Var,
    iterations: [&'a Expr; 2],
}

impl Filled<'_> {
    /// What each store after is: the fills come in their order, twice, and all others in theirs.
    fn origins(&self, old: &[Statement], new: &[Statement]) -> Option<Vec<Origin>> {
        let places = |is_meant: bool| {
            old.iter().enumerate().filter(move |(_, store)| (store.buffer == *self.before) == is_meant)
        };
        let fills = |iteration| places(true).map(move |place| (iteration, place));
        let mut filled = self.iterations.into_iter().flat_map(fills);
        let mut others = places(false);
        let origin = |store: &Statement| {
            if store.buffer != *self.after {
                return others.next().map(|(position, old)| unchanged(position, old));
            }
            let (iteration, (position, old)) = filled.next()?;
            Some(at(position, in_iteration(old, store, self.var, iteration)?))
        };
        new.iter().map(origin).collect()
    }
}

/// The innermost loop around everything that uses a buffer.
fn loop_around<'f>(func: &'f PrimFunc, buffer: &Buffer) -> Result<Found<'f>, Diagnostic> {
    let n_all = n_uses(&func.body, buffer);
    let around = all_loops(func).into_iter().filter(|found| n_all > 0 && n_uses(&found.inner.body, buffer) == n_all);
    let found = around.max_by_key(|found| found.outer.len()).ok_or_else(|| {
        let help = "compute it in the loop that reads it first: compute_at";
        fault(format!("`{buffer}` is not filled and read in one loop"), help)
    })?;
    check_in_order(found.inner, "double_buffer")?;
    let mut waits = false;
    found.inner.body.walk(&mut |stmt| waits |= matches!(stmt.kind, StmtKind::Barrier));
    if waits && !ends_with_barrier(&found.inner.body) {
        // The next iteration fills what this one may still read.
        let help = "end each iteration with a barrier";
        let message = format!("`{buffer}` is filled in a loop whose threads do not wait for each other at its end");
        return Err(fault(message, help));
    }
    Ok(found)
}

/// A loop that is changed, and the parts of its body.
struct Doubled<'f> {
    func: &'f PrimFunc,
    before: &'f Buffer,
    after: Buffer,
    inner: &'f For,
    known: &'f Ranges,
    /// The statements of the body that fill the buffer, and all the others.
    fills: Vec<Stmt>,
    parts: Vec<Stmt>,
    /// How many of the others come before the first fill.
    in_front: usize,
}

impl<'f> Doubled<'f> {
    fn new(func: &'f PrimFunc, buffer: &'f Buffer, inner: &'f For, known: &'f Ranges) -> Result<Self, Diagnostic> {
        let wrong = |why: &str| {
            let help = "nests of its own fill it, in front of what reads it, directly in the loop";
            fault(format!("`{buffer}` is not filled in each iteration of `{}`: {why}", inner.var), help)
        };
        let mut body = &inner.body;
        // The buffer may be allocated in the loop itself.
        while let StmtKind::Allocate { buffer: other, body: next } = &body.kind {
            if other != buffer {
                return Err(wrong(&format!("`{other}` is allocated around it in the loop")));
            }
            body = next;
        }
        let StmtKind::Seq(stmts) = &body.kind else { return Err(wrong("it is in one statement")) };
        let is_fill = |stmt: &&Stmt| stores_to(stmt, &|stored| stored == buffer);
        let fills: Vec<Stmt> = stmts.iter().filter(is_fill).cloned().collect();
        if fills.iter().any(|fill| stores_to(fill, &|stored| stored != buffer)) {
            return Err(wrong("its stores are among others"));
        }
        let (Some(first), Some(last)) =
            (stmts.iter().position(|stmt| is_fill(&stmt)), stmts.iter().rposition(|stmt| is_fill(&stmt)))
        else {
            return Err(wrong("nothing stores to it"));
        };
        if stmts[..last].iter().any(|stmt| !is_fill(&stmt) && loads_from(stmt, buffer)) {
            return Err(wrong("it is read in front of a store"));
        }
        let parts: Vec<Stmt> = stmts.iter().filter(|stmt| !is_fill(stmt)).cloned().collect();
        // The first fill comes in front of the loop, where these values are not computed yet.
        let mut computed = None;
        for part in &parts {
            part.walk(&mut |stmt| {
                if let StmtKind::Store { buffer: stored, .. } = &stmt.kind
                    && fills.iter().any(|fill| loads_from(fill, stored))
                {
                    computed = Some(stored.clone());
                }
            });
        }
        if let Some(computed) = computed {
            return Err(wrong(&format!("it is filled from `{computed}`, which the loop computes")));
        }
        let two = Expr::int_of(2, inner.var.dtype().scalar).unwrap_or_else(|| Expr::int(2));
        let after = buffer.with(|info| {
            info.shape.insert(0, two);
            info.axis_separators = AxisSeparators::none(info.shape.len());
        });
        Ok(Self { func, before: buffer, after, inner, known, fills, parts, in_front: first })
    }

    /// A statement that uses the half for an iteration.
    fn in_half(&self, stmt: &Stmt, iteration: &Expr) -> Result<Stmt, Diagnostic> {
        let ty = iteration.dtype().scalar;
        let two = Expr::int_of(2, ty).unwrap_or_else(|| Expr::int(2));
        let number = simplify(&(iteration.clone() - self.inner.min.clone()), self.known);
        let number = if sabotage::on("double-buffer-one-half") { two.clone() } else { number };
        let half = number.floor_mod(two);
        let half = simplify(&half, self.known);
        let vars: Vec<Var> = self.before.shape.iter().map(|extent| Var::new("i", extent.dtype())).collect();
        let outputs = std::iter::once(half).chain(vars.iter().map(Expr::from)).collect();
        let map = IndexMap::new(vars, self.before.shape.clone(), outputs, Vec::new());
        let map = map.map_err(|error| Diagnostic::error("index-map", self.before.span, error.to_string()))?;
        let moved = Move { before: self.before.clone(), after: self.after.clone(), map };
        remap(&PrimFunc { body: stmt.clone(), ..self.func.clone() }, &[moved])
    }

    /// The fills for an iteration.
    fn filled(&self, iteration: &Expr) -> Result<Stmt, Diagnostic> {
        let fills = self.in_half(&Stmt::seq(self.fills.clone()), &Expr::from(&self.inner.var))?;
        let there = Substitution::new([&self.inner.var], [iteration.clone()]);
        Ok(copied(&fills, &there))
    }

    /// The next iteration.
    fn next(&self) -> Expr {
        let one = Expr::int_of(1, self.inner.var.dtype().scalar).unwrap_or_else(|| Expr::int(1));
        Expr::from(&self.inner.var) + one
    }

    /// The first fill, and the loop.
    fn replaced(&self) -> Result<Stmt, Diagnostic> {
        let (var, inner) = (Expr::from(&self.inner.var), self.inner);
        let zero = Expr::int_of(0, inner.extent.dtype().scalar).unwrap_or_else(|| Expr::int(0));
        let is_run = simplify(&zero.lt(inner.extent.clone()), self.known);
        let Ok(first) = Simplify::within(self.known).stmt(&self.filled(&inner.min)?);
        let first = if is_run.as_const_int() == Some(1) { first } else { Stmt::guarded(is_run, first) };
        let next = self.next();
        let end = simplify(&(inner.min.clone() + inner.extent.clone()), self.known);
        let fill = self.filled(&next)?;
        let fill = if sabotage::on("double-buffer-unguarded") { fill } else { Stmt::guarded(next.lt(end), fill) };
        let mut parts: Vec<Stmt> = self.parts.iter().map(|part| self.in_half(part, &var)).collect::<Result<_, _>>()?;
        let at = if sabotage::on("double-buffer-fills-late") { parts.len() } else { self.in_front };
        parts.insert(at, fill);
        let run = Stmt::new(StmtKind::For(For { body: Stmt::seq(parts), ..inner.clone() }.into()));
        let has_first = !sabotage::on("double-buffer-starts-empty");
        Ok(Stmt::seq(has_first.then_some(first).into_iter().chain([run]).collect()))
    }
}
