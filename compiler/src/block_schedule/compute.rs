//! Moves blocks into loops: `compute_at` and `reverse_compute_at`.
//!
//! ```text
//! for ax0 in 37: T[v0] = A[v0] * 2              for i_0 in 5:
//! for i_0, i_1 in T.grid(5, 8):                     for ax0 in 8:
//!     C[v_i] = T[v_i] + 1               ->              block "T": v0 = i_0 * 8 + ax0, T.where(i_0 * 8 + ax0 < 37)
//!                                                   for i_1 in 8: C[v_i] = T[v_i] + 1
//! ```
//!
//! In each iteration of the loop, `compute_at` computes the box of elements that the iteration reads, in front of its first reader, and
//! `reverse_compute_at` consumes the box that the iteration wrote, behind everything in the loop. The block gets a loop for each of its
//! axes, over the box. The buffer keeps its shape; its memory moves into the innermost loop around all its uses whose iterations run
//! at once, so that each of them has its own.

use tilewright_algebra::{Ranges, inverse, simplify};
use tilewright_ir::visit::{Rewrite, Substitution};
use tilewright_ir::{
    AxisKind, BinaryOp, Block, BlockAxis, Buffer, Diagnostic, Expr, For, ForKind, IndexMap, PrimFunc, Stmt, StmtKind,
    Var, sabotage,
};
use tilewright_verify::reorder::Statement;

use super::cache::only_written;
use super::left_out::none_left_out;
use super::reduction::{n_stores, n_stores_before_block};
use super::regions::int_like;
use super::tree::{Found, FoundLoop, loop_over, realized, without_block};
use super::{BlockRef, BlockSchedule, LoopRef, fault};
use crate::passes::remap::{inside, retyped};
use crate::passes::schedule::buffers::{is_private, loads_from, n_loads, stores_to, with_own_memory};
use crate::passes::schedule::claims::{Claim, at, unchanged};
use crate::passes::schedule::loops::{Found as Around, with_loop};
use crate::passes::schedule::region::{Span, region};

impl BlockSchedule {
    /// Computes a block in each iteration of a loop around all that reads its result: as much as the iteration reads. An axis
    /// with one value there has a loop only if `unit_loops` is set.
    ///
    /// # Errors
    /// `schedule`: the block or the loop is gone, a reader is outside of the loop, another block writes the buffer, or what is read has no
    /// known extent.
    pub fn compute_at(&mut self, block: BlockRef, run: &LoopRef, unit_loops: bool) -> Result<(), Diagnostic> {
        let found = self.block(block)?;
        let buffer = only_written(&found)?;
        let name = found.block.name.clone();
        let axes = indexed_axes(&found, &stores(found.parts.body), &buffer)?;
        let rest = PrimFunc { body: without_block(&self.func().body, &name), ..self.func().clone() };
        if stores_to(&rest.body, &|stored| stored.aliases(&buffer)) {
            let message = format!("another block writes `{buffer}`, too");
            return Err(fault(message, "move blocks that write a buffer alone"));
        }
        let target = target(&rest, run, &name)?;
        if n_loads(&rest.body, &buffer) != n_loads(&target.run.body, &buffer) || n_loads(&rest.body, &buffer) == 0 {
            let message = format!("`{run}` is not around everything that reads `{buffer}`", run = run.name());
            return Err(fault(message, "name a loop further out"));
        }
        let spans = region(&rest, &around(&target), &buffer)?;
        let known = inside(&target.ranges(&rest), target.run);
        let (nest, values) = Nest { found: &found, axes: &axes, spans: &spans, known, unit_loops }.stmt()?;
        let body = in_front_of_readers(&target.run.body, nest, &buffer);
        let body = with_body(&rest, target.run, body);
        let body = own_memory(&body, &target, &buffer);
        let claim = moved(&found, &self.func().body, &body, &values);
        self.step("compute_at", body, &claim)?;
        Ok(())
    }

    /// Computes a block behind everything in each iteration of a loop that writes what it reads: for as much as the iteration writes.
    /// An axis with one value there has a loop only if `unit_loops` is set.
    ///
    /// # Errors
    /// `schedule`: the block or the loop is gone, nothing in the loop writes what the block reads, another block behind the loop writes
    /// what the block uses, what is written has no known extent, or several iterations write the same elements, as those of a sum do.
    pub fn reverse_compute_at(&mut self, block: BlockRef, run: &LoopRef, unit_loops: bool) -> Result<(), Diagnostic> {
        let found = self.block(block)?;
        let name = found.block.name.clone();
        let rest = PrimFunc { body: without_block(&self.func().body, &name), ..self.func().clone() };
        let target = target(&rest, run, &name)?;
        let read = loads(found.parts.body);
        check_nothing_behind(&rest.body, target.run, &found)?;
        let written = |buffer: &Buffer| !stores_of(&target.run.body, buffer).is_empty();
        let Some((buffer, _)) = read.iter().find(|(buffer, _)| written(buffer)) else {
            let message = format!("block `{name}` reads nothing that `{}` contains writes of", run.name());
            return Err(fault(message, "name a loop around the block that writes what it reads"));
        };
        let indices: Vec<Vec<Expr>> =
            read.iter().filter(|(other, _)| other == buffer).map(|(_, index)| index.clone()).collect();
        let axes = indexed_axes(&found, &indices, buffer)?;
        let spans = region(&as_reads(&rest, buffer), &around(&loop_over(&as_reads(&rest, buffer), &run.0)?), buffer)?;
        check_whole_sums(&found, &axes, &spans)?;
        let known = inside(&target.ranges(&rest), target.run);
        let (nest, values) = Nest { found: &found, axes: &axes, spans: &spans, known, unit_loops }.stmt()?;
        check_once(&found, &target, &values)?;
        let parts = [target.run.body.clone(), nest];
        let is_early = sabotage::on("block-consumes-early");
        let body = Stmt::seq(if is_early { parts.into_iter().rev().collect() } else { parts.to_vec() });
        let body = with_body(&rest, target.run, body);
        let body = own_memory(&body, &target, buffer);
        let claim = moved(&found, &self.func().body, &body, &values);
        self.step("reverse_compute_at", body, &claim)?;
        Ok(())
    }
}

/// Checks that no store behind a loop is to what a block uses: the block would run in front of it.
fn check_nothing_behind(rest: &Stmt, run: &For, found: &Found<'_>) -> Result<(), Diagnostic> {
    let mut used: Vec<Buffer> = loads(found.parts.body).into_iter().map(|(buffer, _)| buffer).collect();
    found.parts.body.walk(&mut |part| {
        if let StmtKind::Store { buffer, .. } = &part.kind {
            used.push(buffer.clone());
        }
    });
    let (mut stores, mut is_behind) = (Vec::new(), false);
    rest.walk(&mut |part| match &part.kind {
        StmtKind::For(inner) if inner.var == run.var => is_behind = true,
        StmtKind::Store { buffer, .. } if is_behind => stores.push(buffer.clone()),
        _ => {}
    });
    // A walk goes through the loop before it goes on behind it.
    let mut n_inside = 0;
    run.body.walk(&mut |part| n_inside += usize::from(matches!(part.kind, StmtKind::Store { .. })));
    let late = stores.into_iter().skip(n_inside).find(|stored| used.iter().any(|buffer| buffer.aliases(stored)));
    late.map_or(Ok(()), |buffer| {
        let message = format!("`{buffer}` is written behind `{}`, and block `{}` uses it", run.var, found.block.name);
        Err(fault(message, "name a loop behind that, or move the block that writes it first"))
    })
}

/// Checks that an iteration writes all values of the reduced axes of a block that consumes it.
fn check_whole_sums(found: &Found<'_>, axes: &[Option<usize>], spans: &[Span]) -> Result<(), Diagnostic> {
    for (axis, of_buffer) in found.block.axes.iter().zip(axes) {
        let Some(span) = of_buffer.and_then(|position| spans.get(position)) else { continue };
        let starts = span.low == axis.min || (span.low.as_const_int() == Some(0) && axis.min.as_const_int() == Some(0));
        let is_whole = starts && span.extent == axis.extent;
        if axis.kind == AxisKind::Reduce && !is_whole {
            let message =
                format!("block `{}` sums up more along `{}` than one iteration writes", found.block.name, axis.var);
            return Err(fault(message, "name a loop further out, around everything that the sums need"));
        }
    }
    Ok(())
}

/// Checks that each new loop around a block takes part in the values of its axes: with the same values it would run again, and initialise
/// again what it has summed up.
fn check_once(found: &Found<'_>, target: &FoundLoop<'_>, values: &[Expr]) -> Result<(), Diagnostic> {
    let is_new = |run: &&For| !found.outer.iter().any(|around| around.var == run.var);
    let repeats = |run: &&For| {
        run.extent.as_const_int() != Some(1) && !values.iter().any(|value| value.vars().contains(&run.var))
    };
    let mut loops = target.outer.iter().copied().chain([target.run]).filter(is_new);
    loops.find(repeats).map_or(Ok(()), |run| {
        let (var, name) = (&run.var, &found.block.name);
        let message = format!("each iteration of `{var}` would run block `{name}` for the same elements again");
        Err(fault(message, "name a loop further out, in which these elements are complete"))
    })
}

/// The claim that the stores of a block are those that they were, where its axes have the same values; all others stay as they are. If
/// the values of its loops before do not follow from its axes, the claim is searched for.
fn moved(found: &Found<'_>, before: &Stmt, after: &Stmt, values: &[Expr]) -> Claim {
    let name = &found.block.name;
    let (old_first, new_first) = (n_stores_before_block(before, name), n_stores_before_block(after, name));
    let (count, loops) = (n_stores(found.parts.body), loops_of_axes(found, values));
    Claim::Values(Box::new(move |old, new| {
        let loops = loops.as_ref()?;
        let mut others = old.iter().enumerate().filter(|(place, _)| !(old_first..old_first + count).contains(place));
        let origin = |(place, _): (usize, &Statement)| match place.checked_sub(new_first).filter(|part| *part < count) {
            Some(part) => {
                let store = old.get(old_first + part)?;
                Some(at(old_first + part, store.loops().iter().map(|var| loops.apply(&Expr::from(var))).collect()))
            }
            None => others.next().map(|(place, store)| unchanged(place, store)),
        };
        new.iter().enumerate().map(origin).collect()
    }))
}

/// The values of the loops of a block for which its axes have certain values. `None` if the axes do not tell.
fn loops_of_axes(found: &Found<'_>, values: &[Expr]) -> Option<Substitution> {
    let vars: Vec<Var> = found.loops.iter().map(|run| run.var.clone()).collect();
    let from_zero = Substitution::new(&vars, found.loops.iter().map(|run| Expr::from(&run.var) + run.min.clone()));
    let outputs = found.axes().map(|(axis, value)| from_zero.apply(value) - axis.min.clone()).collect();
    let domain = found.loops.iter().map(|run| run.extent.clone()).collect();
    let map = IndexMap::new(vars.clone(), domain, outputs, Vec::new()).ok()?;
    let shape: Vec<Expr> = found.block.axes.iter().map(|axis| axis.extent.clone()).collect();
    let claim = inverse(&map, &shape, &[]).ok()?;
    let positions = found.block.axes.iter().zip(values).map(|(axis, value)| value.clone() - axis.min.clone());
    let there = Substitution::new(&claim.vars, positions);
    let starts = found.loops.iter().map(|run| run.min.clone());
    let number = |(output, min): (&Expr, Expr)| simplify(&(there.apply(output) + min), &Ranges::new());
    Some(Substitution::new(&vars, claim.outputs.iter().zip(starts).map(number)))
}

/// The loop, which must not be around the block.
fn target<'f>(rest: &'f PrimFunc, run: &LoopRef, name: &str) -> Result<FoundLoop<'f>, Diagnostic> {
    loop_over(rest, &run.0).map_err(|_| {
        let message = format!("`{}` is not a loop beside the nest of block `{name}`", run.name());
        fault(message, "name a loop around the other blocks that use the buffer, and not one around this block")
    })
}

fn around<'f>(found: &FoundLoop<'f>) -> Around<'f> {
    Around { inner: found.run, outer: found.outer.clone() }
}

/// The loop with another body, in its function.
fn with_body(func: &PrimFunc, run: &For, body: Stmt) -> Stmt {
    with_loop(&func.body, &run.var, &Stmt::new(StmtKind::For(For { body, ..run.clone() }.into())))
}

/// Every index at which a statement stores to a buffer.
fn stores_of(stmt: &Stmt, buffer: &Buffer) -> Vec<Vec<Expr>> {
    let mut found = Vec::new();
    stmt.walk(&mut |part| match &part.kind {
        StmtKind::Store { buffer: stored, indices, .. } if stored == buffer => found.push(indices.clone()),
        _ => {}
    });
    found
}

/// Every index at which a statement stores.
fn stores(stmt: &Stmt) -> Vec<Vec<Expr>> {
    let mut found = Vec::new();
    stmt.walk(&mut |part| {
        if let StmtKind::Store { indices, .. } = &part.kind {
            found.push(indices.clone());
        }
    });
    found
}

/// Everything that a statement loads.
fn loads(stmt: &Stmt) -> Vec<(Buffer, Vec<Expr>)> {
    let mut found = Vec::new();
    stmt.walk(&mut |part| {
        for expr in part.exprs() {
            expr.walk(&mut |part| {
                if let Expr::Load { buffer, indices } = part {
                    found.push((buffer.clone(), indices.to_vec()));
                }
            });
        }
    });
    found
}

/// The function with a load in the place of each store to a buffer, and without all others: the part of the buffer that it writes is
/// the part that this one reads.
fn as_reads(func: &PrimFunc, buffer: &Buffer) -> PrimFunc {
    struct AsReads<'a>(&'a Buffer);
    impl Rewrite for AsReads<'_> {
        type Error = std::convert::Infallible;

        fn stmt(&mut self, stmt: &Stmt) -> Result<Stmt, Self::Error> {
            match &stmt.kind {
                StmtKind::Store { buffer, indices, .. } if buffer == self.0 => {
                    Ok(Stmt::new(StmtKind::Evaluate(Expr::load(buffer, indices.clone()))))
                }
                StmtKind::Store { .. } => Ok(Stmt::seq(Vec::new())),
                _ => self.stmt_children(stmt),
            }
        }
    }
    let Ok(body) = AsReads(buffer).stmt(&func.body);
    PrimFunc { body, ..func.clone() }
}

/// For each axis of a block, the axis of a buffer that it is the index of; `None` for an axis that indexes none.
///
/// # Errors
/// An index of the buffer is made of axes in another way.
fn indexed_axes(found: &Found<'_>, accesses: &[Vec<Expr>], buffer: &Buffer) -> Result<Vec<Option<usize>>, Diagnostic> {
    let block = found.block;
    let mut axes = vec![None; block.axes.len()];
    for (position, index) in accesses.iter().flat_map(|indices| indices.iter().enumerate()) {
        let of_block = |var: &Var| block.axes.iter().position(|axis| axis.var == *var);
        match index {
            Expr::Var(var) if of_block(var).is_some() => {
                let axis = of_block(var).unwrap_or_default();
                if axes[axis].is_some_and(|known| known != position) {
                    return Err(mixed(block, index, buffer));
                }
                axes[axis] = Some(position);
            }
            _ if index.vars().iter().any(|var| of_block(var).is_some()) => return Err(mixed(block, index, buffer)),
            _ => {}
        }
    }
    Ok(axes)
}

fn mixed(block: &Block, index: &Expr, buffer: &Buffer) -> Diagnostic {
    let message = format!("block `{}` accesses `{buffer}` at `{index}`, which is no axis of its own", block.name);
    fault(message, "each index is one axis of the block, and each axis is one index")
}

/// Loops over part of the domain of a block.
struct Nest<'a> {
    found: &'a Found<'a>,
    /// For each axis, the axis of the buffer that it is the index of.
    axes: &'a [Option<usize>],
    /// The part of each axis of the buffer.
    spans: &'a [Span],
    /// The ranges of the variables at the place of the new loops.
    known: Ranges,
    /// Whether an axis with one value has a loop, too.
    unit_loops: bool,
}

impl Nest<'_> {
    /// The loops with the block, and the values of its axes.
    fn stmt(self) -> Result<(Stmt, Vec<Expr>), Diagnostic> {
        none_left_out(self.found)?;
        let mut loops: Vec<(Var, Expr)> = Vec::new();
        let (mut values, mut conditions) = (Vec::new(), Vec::new());
        let mut known = self.known.clone();
        for (axis, of_buffer) in self.found.block.axes.iter().zip(self.axes) {
            let (low, extent) = self.part(axis, *of_buffer);
            let value = if extent.as_const_int() == Some(1) && !self.unit_loops {
                low.clone()
            } else {
                let var = Var::new(format!("ax{}", loops.len()), axis.var.dtype());
                known = known.with_loop(&var, &int_like(0, &extent), &extent);
                loops.push((var.clone(), extent));
                if low.as_const_int() == Some(0) { Expr::from(&var) } else { low + Expr::from(&var) }
            };
            let value = simplify(&value, &known);
            let end = axis.min.clone() + axis.extent.clone();
            let inside = [Expr::binary(BinaryOp::Le, axis.min.clone(), value.clone()), value.clone().lt(end)];
            conditions.extend(inside.into_iter().map(|cond| simplify(&cond, &known)));
            values.push(value);
        }
        // Conditions and names around the block, other than its loops, stay where they are.
        let kept = self.found.outer.iter().map(|run| &run.var);
        if let Some(var) = kept.into_iter().find(|var| self.found.stmt_mentions(var)) {
            return Err(fault(format!("the block depends on `{var}`"), "name a block of the outermost scope"));
        }
        let is_open = |cond: &Expr| cond.as_const_int() != Some(1) && !sabotage::on("block-compute-unguarded");
        let predicate = conditions.into_iter().filter(is_open).reduce(Expr::and);
        let block = self.found.block.clone();
        let inner = realized(block, predicate, values.clone(), self.found.parts.body.clone());
        let inner = inner.at(self.found.stmt.span);
        let around = |body: Stmt, (var, extent): (Var, Expr)| Stmt::for_loop(&var, extent, ForKind::Serial, body);
        Ok((loops.into_iter().rev().fold(inner, around), values))
    }

    /// The first value of an axis, and the number of values.
    fn part(&self, axis: &BlockAxis, of_buffer: Option<usize>) -> (Expr, Expr) {
        let ty = axis.var.dtype().scalar;
        let span = of_buffer.filter(|_| axis.kind != AxisKind::Reduce).and_then(|position| self.spans.get(position));
        span.map_or_else(
            || (axis.min.clone(), axis.extent.clone()),
            |span| {
                let (low, extent) = (retyped(&span.low, ty, &|_| None), retyped(&span.extent, ty, &|_| None));
                let one = int_like(i128::from(sabotage::on("block-compute-one-less")), &extent);
                (low, if one.as_const_int() == Some(0) { extent } else { extent - one })
            },
        )
    }
}

impl Found<'_> {
    /// Whether what an instance does depends on a variable outside of it.
    fn stmt_mentions(&self, var: &Var) -> bool {
        let mut found = false;
        self.parts.body.walk(&mut |stmt| found |= stmt.exprs().any(|expr| expr.vars().contains(var)));
        found
    }
}

/// A body with a nest in front of the first statement that reads a buffer.
fn in_front_of_readers(body: &Stmt, nest: Stmt, buffer: &Buffer) -> Stmt {
    let StmtKind::Seq(parts) = &body.kind else { return Stmt::seq(vec![nest, body.clone()]) };
    let at = parts.iter().position(|part| loads_from(part, buffer)).unwrap_or(0);
    Stmt::seq([&parts[..at], &[nest], &parts[at..]].concat())
}

/// The body of a function in which each iteration that runs at once with others has memory of its own for a buffer that the function
/// allocates outside.
fn own_memory(body: &Stmt, target: &FoundLoop<'_>, buffer: &Buffer) -> Stmt {
    let is_own = |run: &&&For| is_private(buffer, run.kind);
    let own = target.outer.iter().chain([&target.run]).rfind(is_own);
    own.map_or_else(|| body.clone(), |run| with_own_memory(body, &run.var, buffer))
}
