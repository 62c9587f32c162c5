//! Domains of blocks: `transform_block_layout` and `reindex`.
//!
//! ```text
//! transform_block_layout("B", lambda i, j: [i * 7 + j])        for ax0 in 35: block "B": v0 = ax0, with v0 // 7 for v_i, v0 % 7 for v_j
//!
//! reindex("C", ("read", 0))        block "A_reindex": A_reindex[v_h, v_r] = A[v_h + v_r]
//!                                  block "C" reads A_reindex[v_h, v_r] where it read A[v_h + v_r]
//! ```

use tilewright_algebra::{inverse, physical_shape, simplify};
use tilewright_ir::visit::Substitution;
use tilewright_ir::{
    AxisKind, AxisSeparators, Block, BlockAxis, Buffer, DataType, Diagnostic, Expr, ForKind, IndexMap, Stmt, StmtKind,
    UnaryOp, Var, sabotage,
};

use super::cache::{check_read_behind, check_written_before, point, searched};
use super::loops::Renamed;
use super::regions::{int_like, stated};
use super::tree::{Found, in_own_loops, realized, replaced, unstated, with_neighbours};
use super::{BlockRef, BlockSchedule, fault};
use crate::passes::schedule::loops::with_loop;

impl BlockSchedule {
    /// Returns the extents of the axes of a block, in their order.
    ///
    /// # Errors
    /// `schedule`: the block is gone.
    pub fn block_extents(&self, block: BlockRef) -> Result<Vec<Expr>, Diagnostic> {
        Ok(self.block(block)?.block.axes.iter().map(|axis| axis.extent.clone()).collect())
    }

    /// Gives a block other axes, the outputs of a map of its axes, and a new loop for each of them.
    ///
    /// # Errors
    /// `schedule`: the block is gone, its loops contain something else, its axes are not its loops, the map has no inverse, or an
    /// output mixes reduced axes with others.
    pub fn transform_block_layout(&mut self, block: BlockRef, map: &IndexMap) -> Result<(), Diagnostic> {
        let found = self.block(block)?;
        let top = check_plain(&found)?;
        let shape = physical_shape(map, &[])?;
        let back = inverse(map, &shape.extents, &[]).map_err(|error| {
            fault(
                format!("the map of the axes has no inverse: {}", error.message),
                "each instance needs a place of its own",
            )
        })?;
        let (mut axes, mut loops) = (Vec::new(), Vec::new());
        for (at, (output, extent)) in map.outputs().iter().zip(&shape.extents).enumerate() {
            let kind = kind_of(&found, map, output)?;
            let min = int_like(0, extent);
            axes.push(BlockAxis { var: Var::new(format!("v{at}"), extent.dtype()), kind, min, extent: extent.clone() });
            loops.push(Var::new(format!("ax{at}"), extent.dtype()));
        }
        // The old axes in terms of the new ones, and the loops before in terms of those after.
        let to_axes = Substitution::new(&back.vars, axes.iter().map(|axis| Expr::from(&axis.var)));
        let to_loops = Substitution::new(&back.vars, loops.iter().map(Expr::from));
        let known = axes
            .iter()
            .fold(found.ranges(self.func()), |known, axis| known.with_loop(&axis.var, &axis.min, &axis.extent));
        let (mut old_axes, mut forward) = (Substitution::default(), Substitution::default());
        for ((axis, value), output) in found.axes().zip(&back.outputs) {
            let from_zero = axis.min.as_const_int() == Some(0);
            let moved = |expr: Expr| if from_zero { expr } else { axis.min.clone() + expr };
            old_axes.insert(&axis.var, simplify(&moved(to_axes.apply(output)), &known));
            if let Expr::Var(run) = value {
                forward.insert(run, moved(to_loops.apply(output)));
            }
        }
        let mut positions = Substitution::default();
        for ((axis, value), var) in found.axes().zip(map.vars()) {
            let from_zero = axis.min.as_const_int() == Some(0);
            positions.insert(var, if from_zero { value.clone() } else { value.clone() - axis.min.clone() });
        }
        let to_new = Substitution::new(&loops, map.outputs().iter().map(|output| positions.apply(output)));
        let changed = Block { axes, ..found.block.clone() };
        let body = with_init(&found, &changed, &old_axes);
        let predicate = match back.padding.as_const_int() {
            _ if sabotage::on("block-axes-unguarded") => None,
            Some(0) => None,
            _ => Some(Expr::unary(UnaryOp::Not, to_loops.apply(&back.padding))),
        };
        let changed = stated(&changed, &body, &found.ranges(self.func()));
        let inner = realized(changed, predicate, loops.iter().map(Expr::from).collect(), body).at(found.stmt.span);
        let nest = loops
            .iter()
            .zip(&shape.extents)
            .rev()
            .fold(inner, |body, (var, extent)| Stmt::for_loop(var, extent.clone(), ForKind::Serial, body));
        let body = with_loop(&self.func().body, &top, &nest);
        self.step("transform_block_layout", body, &Renamed { forward, back: to_new }.claim())?;
        Ok(())
    }

    /// Copies what a block reads from a buffer into one that has an axis for each axis of the block in the index, or lets the block write
    /// such a buffer, and copies that behind it. Returns the block that copies.
    ///
    /// # Errors
    /// `schedule`: the block is gone, or accesses the buffer at several indices, or another block in the same loops writes what it reads
    /// or reads what it writes.
    pub fn reindex(&mut self, block: BlockRef, buffer: &Buffer, is_write: bool) -> Result<BlockRef, Diagnostic> {
        let found = self.block(block)?;
        if is_write {
            check_read_behind(&found, buffer)?;
        } else {
            check_written_before(&found, buffer)?;
        }
        let index = only_index(&found, buffer)?;
        let used: Vec<&BlockAxis> =
            found.block.axes.iter().filter(|axis| index.iter().any(|at| at.vars().contains(&axis.var))).collect();
        let is_reduced = used.iter().any(|axis| axis.kind == AxisKind::Reduce);
        if is_write && is_reduced {
            return Err(fault(format!("a reduced axis is in the index of `{buffer}`"), "reindex what the block reads"));
        }
        // A copy has all values of the axes, and may be outside of the buffer where the block does not run.
        if leaves_values_out(&found) {
            let message = format!("block `{}` does not run for all values of its axes", found.block.name);
            return Err(fault(message, "reindex before `transform_block_layout`"));
        }
        if let Some(axis) = used.iter().find(|axis| axis.min.as_const_int() != Some(0)) {
            return Err(fault(format!("axis `{}` does not start from 0", axis.var), "write the block from 0 on"));
        }
        let cache = reindexed(buffer, &used);
        let name = self.fresh_block_name(&cache.name);
        let fresh: Vec<BlockAxis> = used
            .iter()
            .map(|axis| BlockAxis {
                var: Var::new(axis.var.name(), axis.var.dtype()),
                kind: AxisKind::Spatial,
                ..BlockAxis::clone(axis)
            })
            .collect();
        let there =
            Substitution::new(used.iter().map(|axis| &axis.var), fresh.iter().map(|axis| Expr::from(&axis.var)));
        let outside: Vec<Expr> = index.iter().map(|at| there.apply(at)).collect();
        let inside: Vec<Expr> = fresh.iter().map(|axis| Expr::from(&axis.var)).collect();
        let (from, to) =
            if is_write { ((&cache, &inside), (buffer, &outside)) } else { ((buffer, &outside), (&cache, &inside)) };
        let nest = copy_nest(&name, from, to, fresh);
        let around = if is_write { (Vec::new(), vec![nest]) } else { (vec![nest], Vec::new()) };
        let mut own: Vec<Expr> = used.iter().map(|axis| Expr::from(&axis.var)).collect();
        if sabotage::on("block-reindex-swaps-axes") {
            own.reverse();
        }
        let inner = super::cache::moved_accesses(found.parts.body, buffer, &cache, &own);
        let changed = stated(found.block, &inner, &found.ranges(self.func()));
        let block_name = found.block.name.clone();
        let body = with_neighbours(self.func(), &found, around, Some(&cache));
        let body = super::tree::with_block(&body, &block_name, &mut |_, _, parts| {
            super::tree::realized_again(&changed, &parts, inner.clone())
        });
        self.step("reindex", body, &searched())?;
        Ok(self.block_ref(&name))
    }
}

/// Checks that the loops of a block contain only the block, that its axes are these loops, and that it has no predicate. Returns the
/// outermost loop.
pub(super) fn check_plain(found: &Found<'_>) -> Result<Var, Diagnostic> {
    let name = &found.block.name;
    let help = "transform the block before its loops are split, fused or shared with others";
    let wrong = |why: &str| fault(format!("the axes of block `{name}` cannot be changed: {why}"), help);
    let Some(top) = found.loops.first() else { return Err(wrong("it has no loops")) };
    if found.parts.predicate.is_some() {
        return Err(wrong("it has a predicate"));
    }
    let mut body = &top.body;
    while let StmtKind::For(next) = &body.kind {
        body = &next.body;
    }
    if Block::of(body).is_none_or(|(block, _)| block.name != *name) {
        return Err(wrong("its loops contain something else"));
    }
    let is_loop = |value: &Expr| matches!(value, Expr::Var(var) if found.loops.iter().any(|run| run.var == *var));
    let same = found.axes().all(|(axis, value)| {
        let run = found.loops.iter().find(|run| Expr::from(&run.var) == *value);
        run.is_some_and(|run| run.min == axis.min && run.extent == axis.extent && run.kind == ForKind::Serial)
    });
    let n_loops = found.loops.len();
    if !found.parts.bindings.iter().all(|value| is_loop(value)) || !same || n_loops != found.block.axes.len() {
        return Err(wrong("its axes are not its loops"));
    }
    Ok(top.var.clone())
}

/// The kind of an axis that combines several others.
fn kind_of(found: &Found<'_>, map: &IndexMap, output: &Expr) -> Result<AxisKind, Diagnostic> {
    let used = output.vars();
    let mut kinds =
        map.vars().iter().zip(&found.block.axes).filter(|(var, _)| used.contains(var)).map(|(_, axis)| axis.kind);
    let first = kinds.next().unwrap_or(AxisKind::Spatial);
    if kinds.all(|kind| kind == first) {
        return Ok(first);
    }
    let help = "keep reduced axes in outputs of their own";
    Err(fault(format!("`{output}` mixes axes of several kinds"), help))
}

/// The statement of a block whose axes are replaced, with its initialisation where the new axes begin.
fn with_init(found: &Found<'_>, changed: &Block, old_axes: &Substitution) -> Stmt {
    let (Some(before), Some(after)) = (found.block.is_first(), changed.is_first()) else {
        return replaced(found.parts.body, old_axes, &[]);
    };
    let part = |stmt: &Stmt| match &stmt.kind {
        StmtKind::If { cond, then_body, else_body: None } if found.block.has_init && *cond == before => {
            Stmt::guarded(after.clone(), replaced(then_body, old_axes, &[])).at(stmt.span)
        }
        _ => replaced(stmt, old_axes, &[]),
    };
    match &found.parts.body.kind {
        StmtKind::Seq(stmts) => Stmt::seq(stmts.iter().map(part).collect()),
        _ => part(found.parts.body),
    }
}

/// The only index at which a block accesses a buffer.
fn only_index(found: &Found<'_>, buffer: &Buffer) -> Result<Vec<Expr>, Diagnostic> {
    let mut all: Vec<Vec<Expr>> = Vec::new();
    found.parts.body.walk(&mut |stmt| {
        if let StmtKind::Store { buffer: stored, indices, .. } = &stmt.kind
            && stored == buffer
        {
            all.push(indices.clone());
        }
        for expr in stmt.exprs() {
            expr.walk(&mut |part| match part {
                Expr::Load { buffer: read, indices } if read == buffer => all.push(indices.to_vec()),
                _ => {}
            });
        }
    });
    all.dedup();
    let [only] = &all[..] else {
        let message = format!("block `{}` accesses `{buffer}` at {} indices", found.block.name, all.len());
        return Err(fault(message, "reindex a buffer that is accessed at one"));
    };
    Ok(only.clone())
}

/// A buffer with the axes of a block.
fn reindexed(buffer: &Buffer, axes: &[&BlockAxis]) -> Buffer {
    let name = format!("{}_reindex", buffer.name);
    let data = Var::new(name.clone(), DataType::HANDLE);
    buffer.with(|info| {
        info.name = name;
        info.data = data;
        info.shape = axes.iter().map(|axis| axis.extent.clone()).collect();
        info.strides = None;
        info.elem_offset = Expr::int(0);
        info.axis_separators = AxisSeparators::none(axes.len());
        info.span = None;
    })
}

/// Loops around a block that copies one element to another.
fn copy_nest(name: &str, from: (&Buffer, &Vec<Expr>), to: (&Buffer, &Vec<Expr>), axes: Vec<BlockAxis>) -> Stmt {
    let block = Block {
        reads: Some(vec![point(from.0, from.1)]),
        writes: Some(vec![point(to.0, to.1)]),
        ..unstated(name, axes)
    };
    in_own_loops(block, Stmt::store(to.0, to.1.clone(), Expr::load(from.0, from.1.clone())))
}

/// Whether a predicate is about the axes of a block. One about loops that were split only keeps them in range.
fn leaves_values_out(found: &Found<'_>) -> bool {
    let is_loop = |value: &Expr| matches!(value, Expr::Var(_));
    found.parts.predicate.is_some() && found.parts.bindings.iter().all(|value| is_loop(value))
}
