//! Computes a buffer where it is read: `compute_at=BUFFER:LOOP`.
//!
//! ```text
//! t = T.alloc_buffer((n + 2,), "float32")         t = T.alloc_buffer((10,), "float32")
//! for i in range(n + 2):                          for io in range((n + 7) // 8):
//!     t[i] = A[i] * 2                                 for i in range(10):
//! for io in range((n + 7) // 8):            ->            if io * 8 + i < n + 2:
//!     for ii, r in T.grid(8, 3):                              t[i] = A[io * 8 + i] * 2
//!         if io * 8 + ii < n:                         for ii, r in T.grid(8, 3):
//!             C[...] = t[io * 8 + ii + r]                 if io * 8 + ii < n:
//!                                                             C[...] = t[ii + r]
//! ```
//!
//! In each iteration of the loop, the box of elements that it reads is computed in front of its body, under a guard where the box
//! may overhang the loops of the original nest. The buffer shrinks to the box, whatever its scope; an axis that the box does not
//! make shorter stays whole. The buffer stays where it was allocated, or moves into the innermost loop around it whose iterations
//! run at once, so that each has its own. The nest has one loop for each axis, in any order, with reductions anywhere inside; split
//! its loops afterwards. Elements that several iterations read are computed several times. Cost: a few walks, and the search for the
//! evidence.

use tilewright_algebra::{Ranges, simplify};
use tilewright_ir::visit::{Rewrite, Substitution};
use tilewright_ir::{
    AxisSeparators, BinaryOp, Buffer, Diagnostic, Expr, For, ForKind, IndexMap, Origin, PrimFunc, Scope, Stmt,
    StmtKind, ThreadTag, Var, sabotage,
};

use tilewright_verify::reorder::Statement;

use super::super::Rewritten;
use super::super::remap::{Move, inside, remap, retyped};
use super::buffers::{allocated, allocates, moved_into, n_loads};
use super::claims::{Claim, at, unchanged};
use super::loops::{Found, loops_named, with_loop};
use super::producer::{Producer, producer};
use super::region::{Span, region};
use super::{applied, fault};

/// Applies the first step `compute_at` of the schedule.
///
/// # Errors
/// `schedule`: the step names no buffer that the function allocates and no loop around all its loads; the buffer is not computed by
/// nests of its own, with one loop for each axis; or the part that is read has no known extent.
///
/// ```
/// use tilewright_compiler::passes::compute_at;
/// let text = r#"
/// @T.prim_func
/// def main(a: T.handle, c: T.handle):
///     n = T.int32()
///     A = T.match_buffer(a, (n,), "float32")
///     C = T.match_buffer(c, (n,), "float32")
///     T.func_attr({"schedule": ["compute_at=t:io"]})
///     t = T.alloc_buffer((n,), "float32")
///     for i in range(n):
///         t[i] = A[i] * T.float32(2)
///     for io, ii in T.grid((n + 7) // 8, 8):
///         if io * 8 + ii < n:
///             C[io * 8 + ii] = t[io * 8 + ii]
/// "#;
/// let func = tilewright_script::read_module(text)?.funcs.remove(0);
/// let printed = tilewright_script::print_func(&compute_at(&func)?.func);
/// let body: Vec<&str> = printed.lines().skip(5).map(str::trim).collect();
/// assert_eq!(body, [
///     r#"t = T.alloc_buffer((8,), "float32")"#,
///     "for io in range((n + 7) // 8):",
///     "for i in range(8):",
///     "if io * 8 + i < n:",
///     "t[i] = A[io * 8 + i] * T.float32(2.0)",
///     "for ii in range(8):",
///     "if io * 8 + ii < n:",
///     "C[io * 8 + ii] = t[ii]",
/// ]);
/// # Ok::<(), Vec<tilewright_ir::Diagnostic>>(())
/// ```
pub fn compute_at(func: &PrimFunc) -> Result<Rewritten, Vec<Diagnostic>> {
    applied("compute_at", func, &|func, argument| {
        let help = "such as `compute_at=A:i`: a buffer, and the loop in which it is computed";
        let wrong = || fault(format!("`{argument}` is no buffer and loop"), help);
        let (name, target) = argument.split_once(':').ok_or_else(wrong)?;
        let buffer = allocated(func, name.trim())?;
        let Producer { nests, rest, behind, own } = producer(func, &buffer)?;
        let found = target_loop(&rest, target.trim(), &buffer)?;
        check_behind(&behind, &found, &buffer)?;
        check_exchange(&behind, &buffer)?;
        let mut spans = region(&rest, &found, &buffer)?;
        let known = inside(&found.ranges(&rest), found.inner);
        clip(&mut spans, &buffer, &known);
        let axes = axes(&nests, &buffer, &mut spans)?;
        check_memory(&nests, &axes)?;
        nests.iter().try_for_each(check_threads)?;
        let mut part = Part { axes: &axes, spans: &spans, known, values: Substitution::default() };
        let nests = nests.iter().map(|nest| part.stmt(nest)).collect::<Result<Vec<_>, _>>()?;
        let (to, values) = (shrunk(&buffer, &spans)?, part.values);
        let body = attached(&rest, &found, nests, &to)?;
        let claim = move |old: &[Statement], new: &[Statement]| origins((old, new), (&own, &to.after), &values);
        Ok((body, Claim::Values(Box::new(claim))))
    })
}

/// What each store after is: those of the nests come in their order, and so do all others. The nests store to buffers of their
/// `own`, of which one became another.
fn origins(
    (old, new): (&[Statement], &[Statement]),
    (own, after): (&[Buffer], &Buffer),
    values: &Substitution,
) -> Option<Vec<Origin>> {
    let is_own = |store: &Statement| own.contains(&store.buffer);
    let places = |is_meant: bool| old.iter().enumerate().filter(move |(_, store)| is_own(store) == is_meant);
    let (mut nests, mut others) = (places(true), places(false));
    let origin = |store: &Statement| {
        if store.buffer != *after && !own.contains(&store.buffer) {
            return others.next().map(|(position, old)| unchanged(position, old));
        }
        let (position, old) = nests.next()?;
        let value = |var: &Var| values.apply(&Expr::from(var));
        Some(at(position, old.loops().iter().map(value).collect()))
    };
    new.iter().map(origin).collect()
}

/// The loop of that name around all loads of a buffer.
fn target_loop<'f>(func: &'f PrimFunc, text: &str, buffer: &Buffer) -> Result<Found<'f>, Diagnostic> {
    let n_all = n_loads(&func.body, buffer);
    let named = loops_named(func, text)?;
    let mut around = named.into_iter().filter(|found| n_loads(&found.inner.body, buffer) == n_all);
    match (around.next(), around.next()) {
        (Some(found), None) if n_all > 0 => Ok(found),
        (Some(_), Some(_)) => {
            Err(fault(format!("several loops `{text}` are around the loads of `{buffer}`"), "rename one"))
        }
        _ => {
            let message = format!("`{text}` is not a loop around all loads of `{buffer}`");
            Err(fault(message, "name a loop further out, behind the nest that computes it"))
        }
    }
}

/// Computes an axis whole where the box around what is read is at least as long, as it is around a diagonal or under a guard.
fn clip(spans: &mut [Span], buffer: &Buffer, known: &Ranges) {
    for (span, whole) in spans.iter_mut().zip(&buffer.shape) {
        let extent = retyped(&span.extent, whole.dtype().scalar, &|_| None);
        let is_longer = Expr::binary(BinaryOp::Le, whole.clone(), extent);
        if simplify(&is_longer, known).as_const_int() == Some(1) {
            *span = all_of_axis(whole);
        }
    }
}

/// All elements of an axis.
fn all_of_axis(extent: &Expr) -> Span {
    let zero = Expr::int_of(0, extent.dtype().scalar).unwrap_or_else(|| Expr::int(0));
    Span { low: zero, extent: extent.clone() }
}

/// Checks that a loop stands behind the nests, where all names that these use are known.
fn check_behind(behind: &[Stmt], found: &Found<'_>, buffer: &Buffer) -> Result<(), Diagnostic> {
    let mut is_behind = false;
    for stmt in behind {
        stmt.walk(&mut |part| is_behind |= matches!(&part.kind, StmtKind::For(run) if run.var == found.inner.var));
    }
    if is_behind {
        return Ok(());
    }
    let message = format!("`{}` is around the nest that computes `{buffer}`", found.inner.var);
    Err(fault(message, "name a loop behind that nest"))
}

/// Checks that the threads that compute the elements do not exchange them: no barrier of theirs stands behind the nests. Groups that
/// are launched there have barriers of their own.
fn check_exchange(behind: &[Stmt], buffer: &Buffer) -> Result<(), Diagnostic> {
    fn waits(stmt: &Stmt) -> bool {
        match &stmt.kind {
            StmtKind::Barrier => true,
            StmtKind::For(run) if matches!(run.kind, ForKind::ThreadBinding(_)) => false,
            _ => stmt.children().any(waits),
        }
    }
    if !behind.iter().any(waits) {
        return Ok(());
    }
    let message = format!("the threads of a group exchange elements of `{buffer}` at a barrier");
    Err(fault(message, "compute it before its loop is bound to threads"))
}

/// For each axis of a buffer, the loops of its nests that run over it. An axis that no loop runs over is kept whole.
fn axes(nests: &[Stmt], buffer: &Buffer, spans: &mut [Span]) -> Result<Vec<Vec<Var>>, Diagnostic> {
    let (mut bound, mut names): (Vec<Var>, Substitution) = (Vec::new(), Substitution::default());
    let mut accesses: Vec<Vec<Expr>> = Vec::new();
    for nest in nests {
        nest.walk(&mut |stmt| {
            match &stmt.kind {
                StmtKind::For(inner) => bound.push(inner.var.clone()),
                StmtKind::Let { var, value, .. } => {
                    let value = names.apply(value);
                    names.insert(var, value);
                }
                StmtKind::Store { buffer: stored, indices, .. } if stored == buffer => accesses.push(indices.clone()),
                _ => {}
            }
            for expr in stmt.exprs() {
                expr.walk(&mut |part| match part {
                    Expr::Load { buffer: read, indices } if read == buffer => accesses.push(indices.to_vec()),
                    _ => {}
                });
            }
        });
    }
    let mut axes: Vec<Vec<Var>> = vec![Vec::new(); buffer.rank()];
    for (axis, index) in accesses.iter().flat_map(|indices| indices.iter().enumerate()) {
        let index = &names.apply(index);
        let is_inside = index.vars().iter().any(|var| bound.contains(var));
        let wrong = |why: &str| {
            let message = format!("`{buffer}` is accessed at `{index}` where it is computed, {why}");
            fault(message, "compute it with one loop for each axis, and split its loops afterwards")
        };
        match index {
            Expr::Var(var) if is_inside => {
                if axes.iter().enumerate().any(|(other, vars)| other != axis && vars.contains(var)) {
                    return Err(wrong("which is the index of another axis too"));
                }
                if !axes[axis].contains(var) {
                    axes[axis].push(var.clone());
                }
            }
            _ if is_inside => return Err(wrong("which is no loop variable")),
            _ => spans[axis] = all_of_axis(&buffer.shape[axis]),
        }
    }
    Ok(axes)
}

/// Checks that no loop of a nest is bound to threads: their number would change, and the loop around them may be bound, too.
fn check_threads(nest: &Stmt) -> Result<(), Diagnostic> {
    let mut bound = None;
    nest.walk(&mut |part| {
        if let StmtKind::For(run) = &part.kind
            && matches!(run.kind, ForKind::ThreadBinding(_))
        {
            bound = Some(run.var.clone());
        }
    });
    bound.map_or(Ok(()), |var| {
        let message = format!("`{var}` is bound to threads, whose number would change");
        Err(fault(message, "bind it afterwards"))
    })
}

/// Checks that the nests keep no values in memory of their own from one element to the next: some would not be computed.
fn check_memory(nests: &[Stmt], axes: &[Vec<Var>]) -> Result<(), Diagnostic> {
    let mut found = None;
    for nest in nests {
        nest.walk(&mut |stmt| {
            let StmtKind::Allocate { buffer, body } = &stmt.kind else { return };
            body.walk(&mut |part| {
                if let StmtKind::For(run) = &part.kind
                    && axes.iter().any(|vars| vars.contains(&run.var))
                {
                    found = Some(buffer.clone());
                }
            });
        });
    }
    found.map_or(Ok(()), |kept| {
        let message = format!("the nest keeps values in `{kept}` from one iteration to the next");
        Err(fault(message, "allocate it inside of all loops over elements"))
    })
}

/// Restricts a nest to part of each axis.
struct Part<'a> {
    axes: &'a [Vec<Var>],
    spans: &'a [Span],
    /// What is known of variables at the current statement.
    known: Ranges,
    /// The old loop variables in terms of the new ones.
    values: Substitution,
}

impl Part<'_> {
    /// A loop over an axis of the buffer, from the first index of the part on.
    fn over(&mut self, inner: &For, span: &Span) -> Result<Stmt, Diagnostic> {
        let var = Var::new(inner.var.name(), inner.var.dtype());
        let typed = |expr: &Expr| retyped(expr, var.dtype().scalar, &|_| None);
        let span = Span { low: typed(&span.low), extent: typed(&span.extent) };
        let extent = match span.extent.as_const_int() {
            Some(all @ 2..) if sabotage::on("compute-at-short-box") => {
                Expr::int_of(all - 1, var.dtype().scalar).unwrap_or_else(|| span.extent.clone())
            }
            _ => span.extent.clone(),
        };
        let (min, end) = (typed(&self.expr(&inner.min)?), typed(&self.expr(&inner.extent)?));
        self.known = self.known.clone().with_loop(&var, &Expr::int(0), &extent);
        let index = simplify(&(span.low.clone() + Expr::from(&var)), &self.known);
        let end = simplify(&(min.clone() + end), &self.known);
        let guards = [Expr::binary(BinaryOp::Le, min, index.clone()), index.clone().lt(end)];
        let guards = guards.into_iter().map(|guard| simplify(&guard, &self.known));
        let guard = guards.filter(|guard| guard.as_const_int() != Some(1)).reduce(Expr::and);
        self.values.insert(&inner.var, index);
        let mut body = self.stmt(&inner.body)?;
        if let (Some(guard), false) = (guard, sabotage::on("compute-at-unguarded")) {
            body = Stmt::guarded(guard, body);
        }
        // Lanes need a constant number.
        let is_vector = inner.kind == ForKind::Vectorized && extent.as_const_int().is_none();
        let kind = if is_vector { ForKind::Serial } else { inner.kind };
        let (min, annotations) =
            (Expr::int_of(0, var.dtype().scalar).unwrap_or_else(|| Expr::int(0)), inner.annotations.clone());
        Ok(Stmt::new(StmtKind::For(For { var, min, extent, kind, annotations, body }.into())))
    }

    /// Whether a loop runs over the part exactly.
    fn is_whole(&self, inner: &For, span: &Span) -> bool {
        let is_zero = |a: &Expr, b: &Expr| {
            let b = retyped(b, a.dtype().scalar, &|_| None);
            simplify(&(a.clone() - b), &self.known).as_const_int() == Some(0)
        };
        is_zero(&inner.min, &span.low) && is_zero(&inner.extent, &span.extent)
    }
}

impl Rewrite for Part<'_> {
    type Error = Diagnostic;

    fn expr(&mut self, expr: &Expr) -> Result<Expr, Diagnostic> {
        let is_index =
            expr.dtype().is_scalar() && expr.dtype().scalar.integer_range().is_some() && !expr.reads_memory();
        if !is_index {
            return self.expr_children(expr);
        }
        let moved = self.values.apply(expr);
        Ok(if moved == *expr { moved } else { simplify(&moved, &self.known) })
    }

    fn stmt(&mut self, stmt: &Stmt) -> Result<Stmt, Diagnostic> {
        let StmtKind::For(inner) = &stmt.kind else { return self.stmt_children(stmt) };
        let outside = self.known.clone();
        let axis = self.axes.iter().position(|vars| vars.contains(&inner.var));
        let rewritten = match axis {
            Some(axis) if !self.is_whole(inner, &self.spans[axis]) => {
                let span = self.spans[axis].clone();
                self.over(inner, &span).map(|run| run.at(stmt.span))
            }
            _ => {
                self.known = inside(&self.known, inner);
                self.stmt_children(stmt)
            }
        };
        self.known = outside;
        rewritten
    }
}

/// The buffer of the size of a box, and the map to it.
fn shrunk(buffer: &Buffer, spans: &[Span]) -> Result<Move, Diagnostic> {
    let after = buffer.with(|info| {
        info.shape = spans.iter().map(|span| span.extent.clone()).collect();
        info.axis_separators = AxisSeparators::none(spans.len());
    });
    let vars: Vec<Var> =
        buffer.shape.iter().enumerate().map(|(axis, extent)| Var::new(format!("i{axis}"), extent.dtype())).collect();
    let outputs = vars.iter().zip(spans).map(|(var, span)| Expr::from(var) - span.low.clone()).collect();
    let map = IndexMap::new(vars, buffer.shape.clone(), outputs, Vec::new());
    let map = map.map_err(|error| Diagnostic::error("index-map", buffer.span, error.to_string()))?;
    Ok(Move { before: buffer.clone(), after, map })
}

/// The body of a function with nests in front of the body of a loop, and the buffer replaced.
fn attached(func: &PrimFunc, found: &Found<'_>, mut nests: Vec<Stmt>, to: &Move) -> Result<Stmt, Diagnostic> {
    let inner = found.inner;
    nests.push(inner.body.clone());
    let run = For { body: Stmt::seq(nests), ..inner.clone() };
    let body = with_loop(&func.body, &inner.var, &Stmt::new(StmtKind::For(run.into())));
    let body = remap(&PrimFunc { body, ..func.clone() }, std::slice::from_ref(to))?;
    let is_own = |run: &&&For| match (to.after.scope, run.kind) {
        // The threads of a group share it.
        (Scope::Shared, ForKind::ThreadBinding(ThreadTag::Thread(_))) => false,
        (_, kind) => kind.is_concurrent(),
    };
    let own = found.outer.iter().chain([&inner]).rfind(is_own);
    let own = own.filter(|run| !allocates(&run.body, &to.before));
    Ok(own.map_or(body.clone(), |run| moved_into(&body, &to.after, &run.var)))
}
