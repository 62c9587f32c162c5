//! Copies of buffers: `cache_read` and `cache_write`.
//!
//! ```text
//! cache_read("C", 0, "shared")        for ax0, ax1 in T.grid(37, 29):
//!                                         with T.sblock("A_shared"): A_shared[v0, v1] = A[v0, v1]
//!                                     ... block C reads A_shared where it read A
//! cache_write("C", 0, "local")        ... block C writes C_local where it wrote C
//!                                     for ax0, ax1 in T.grid(37, 23):
//!                                         with T.sblock("C_local"): C[v0, v1] = C_local[v0, v1]
//! ```
//!
//! The copy is a block of its own, directly in front of the first nest that reads it or behind the one that writes it, and copies the
//! whole buffer; `compute_at` and `reverse_compute_at` move it inwards.

use std::convert::Infallible;

use tilewright_algebra::inverse;
use tilewright_ir::visit::Rewrite;
use tilewright_ir::{
    AxisKind, AxisSeparators, Block, BlockAxis, BlockRegion, Buffer, BufferClaim, DataType, Diagnostic, Expr, ForKind,
    Scope, Stmt, StmtKind, Var, sabotage,
};

use super::regions::{accesses, int_like};
use super::tree::{Found, block_named, realized, replaced, with_block, with_neighbours};
use super::{BlockRef, BlockSchedule, Step, fault};
use crate::passes::schedule::buffers::{loads_from, n_loads, stores_to};
use crate::passes::schedule::claims::Claim;

impl BlockSchedule {
    /// Copies the buffer that is the read number `index` of a block, and lets its readers read the copy: the blocks in `consumers`, or
    /// all blocks that read it, this one among them, if there are none. Returns the block that copies.
    ///
    /// # Errors
    /// `schedule`: the block is gone or has no such read, the buffer is written in the statement that would read the copy, or its layout
    /// has padding without a value.
    pub fn cache_read(
        &mut self,
        block: BlockRef,
        index: usize,
        scope: Scope,
        consumers: &[BlockRef],
    ) -> Result<BlockRef, Diagnostic> {
        let buffer = self.accessed(block, index, false)?;
        let readers = if consumers.is_empty() {
            self.blocks_that(|body| loads_from(body, &buffer) && !stores_to(body, &|stored| *stored == buffer))
        } else {
            let names = consumers.iter().map(|block| self.block_name(*block).map(str::to_owned));
            names.collect::<Result<Vec<_>, _>>()?
        };
        let first = readers.first().ok_or_else(|| not_cached(&buffer, "no block reads it"))?;
        let first = block_named(self.func(), first)?;
        check_written_before(&first, &buffer)?;
        self.check_filled(&buffer)?;
        let cache = copy_of(&buffer, scope);
        let name = self.fresh_block_name(&cache.name);
        let nest = copy_nest(&name, &buffer, &cache);
        let body = with_neighbours(self.func(), &first, (vec![nest], Vec::new()), Some(&cache));
        let pair = [(buffer, cache)];
        let body = readers.iter().fold(body, |body, reader| swapped(&body, reader, &pair));
        self.step("cache_read", body, &searched())?;
        Ok(self.block_ref(&name))
    }

    /// Lets a block write a copy of the buffer that is its write number `index`, and copies that behind it. Returns the block that
    /// copies.
    ///
    /// # Errors
    /// `schedule`: the block is gone or has no such write, another block writes the buffer or reads it in the same loops, the
    /// block updates what it held before, or the layout of the buffer has padding without a value.
    pub fn cache_write(&mut self, block: BlockRef, index: usize, scope: Scope) -> Result<BlockRef, Diagnostic> {
        let buffer = self.accessed(block, index, true)?;
        let writers = self.blocks_that(|body| stores_to(body, &|stored| stored.aliases(&buffer)));
        let found = self.block(block)?;
        if writers != [found.block.name.clone()] {
            let message = format!("several blocks write it: {}", writers.join(", "));
            return Err(not_cached(&buffer, &message));
        }
        check_read_behind(&found, &buffer)?;
        self.check_filled(&buffer)?;
        let cache = copy_of(&buffer, scope);
        let name = self.fresh_block_name(&cache.name);
        let nest = copy_nest(&name, &cache, &buffer);
        let (front, behind) = (Vec::new(), vec![nest]);
        let around = if sabotage::on("block-cache-write-early") { (behind, front) } else { (front, behind) };
        let body = with_neighbours(self.func(), &found, around, Some(&cache));
        let body = swapped(&body, &found.block.name.clone(), &[(buffer, cache)]);
        self.step("cache_write", body, &searched())?;
        Ok(self.block_ref(&name))
    }

    /// Checks that a copy of a whole buffer reads no padding: it holds nothing unless it was given a value.
    fn check_filled(&self, buffer: &Buffer) -> Result<(), Diagnostic> {
        let leaves_padding = |step: &Step| {
            let claims = step.evidence.buffers.iter().filter(|claim| claim.after.data == buffer.data);
            step.name == "transform_layout" && step.evidence.fills.is_empty() && claims.into_iter().any(has_padding)
        };
        if !self.steps().iter().any(leaves_padding) {
            return Ok(());
        }
        let help = "give transform_layout a pad_value, or copy the buffer before its layout changes";
        Err(fault(format!("`{buffer}` cannot be copied: its new layout has padding, which holds nothing"), help))
    }

    /// Returns whether a block writes a buffer.
    ///
    /// # Errors
    /// `schedule`: the block is gone.
    pub fn writes(&self, block: BlockRef, buffer: &Buffer) -> Result<bool, Diagnostic> {
        Ok(stores_to(self.block(block)?.parts.body, &|stored| stored == buffer))
    }

    /// The buffer that a block reads or writes at a position.
    pub(super) fn accessed(&self, block: BlockRef, index: usize, is_write: bool) -> Result<Buffer, Diagnostic> {
        let found = self.block(block)?;
        let buffers = accessed_buffers(self.func(), &found, is_write);
        buffers.get(index).cloned().ok_or_else(|| {
            let verb = if is_write { "writes" } else { "reads" };
            let names: Vec<&str> = buffers.iter().map(|buffer| buffer.name.as_str()).collect();
            let message = format!("block `{}` has no buffer number {index} that it {verb}", found.block.name);
            fault(message, format!("counted from 0, it {verb} {}", names.join(", ")))
        })
    }

    /// The innermost blocks with such a statement, in program order.
    pub(super) fn blocks_that(&self, is_meant: impl Fn(&Stmt) -> bool) -> Vec<String> {
        let mut found = Vec::new();
        self.func().body.walk(&mut |stmt| {
            let Some((block, below)) = Block::of(stmt) else { return };
            let mut is_inner = true;
            below.walk(&mut |part| is_inner &= Block::of(part).is_none());
            if is_inner && is_meant(below) {
                found.push(block.name.clone());
            }
        });
        found
    }
}

/// The buffers that a block says it reads or writes, or that it does read or write if it does not say so; each once.
fn accessed_buffers(func: &tilewright_ir::PrimFunc, found: &Found<'_>, is_write: bool) -> Vec<Buffer> {
    let block = found.block;
    let stated = if is_write { &block.writes } else { &block.reads };
    let regions = stated.clone().unwrap_or_else(|| {
        let all = accesses(found.parts.body, &found.inner_ranges(func));
        let is_updated =
            |region: &BlockRegion| block.has_init && all.writes.iter().any(|other| other.buffer == region.buffer);
        if is_write { all.writes } else { all.reads.iter().filter(|one| !is_updated(one)).cloned().collect() }
    });
    let mut buffers: Vec<Buffer> = Vec::new();
    for region in regions {
        if !buffers.contains(&region.buffer) {
            buffers.push(region.buffer);
        }
    }
    buffers
}

/// Checks that a block does not update what a buffer held before, and that no other block in its loops reads what it writes: the copy would
/// hold nothing, or be copied back too late.
pub(super) fn check_read_behind(found: &Found<'_>, buffer: &Buffer) -> Result<(), Diagnostic> {
    let own = n_loads(found.stmt, buffer);
    if own > 0 && !found.block.has_init {
        return Err(not_cached(buffer, "the block updates what was there before"));
    }
    if outermost(found).is_some_and(|stmt| n_loads(stmt, buffer) > own) {
        return Err(not_cached(buffer, "another block in the same loops reads it"));
    }
    Ok(())
}

/// Checks that no block in the loops of a block writes a buffer that the block reads: a copy in front of the loops would come too early.
pub(super) fn check_written_before(found: &Found<'_>, buffer: &Buffer) -> Result<(), Diagnostic> {
    if outermost(found).is_some_and(|stmt| stores_to(stmt, &|stored| stored.aliases(buffer))) {
        return Err(not_cached(buffer, "the nest that reads it writes it, too"));
    }
    Ok(())
}

/// The outermost loop of the scope of a block that contains it.
fn outermost<'f>(found: &Found<'f>) -> Option<&'f Stmt> {
    found.loops.first().map(|run| &run.body)
}

/// A statement in which a block uses other buffers.
fn swapped(stmt: &Stmt, name: &str, pairs: &[(Buffer, Buffer)]) -> Stmt {
    let nothing = tilewright_ir::visit::Substitution::default();
    with_block(stmt, name, &mut |_, stmt, _| replaced(stmt, &nothing, pairs))
}

/// The claim that values go through other memory; the search knows how.
pub(super) fn searched() -> Claim {
    Claim::Values(Box::new(|_, _| None))
}

/// Whether a layout may have elements that no element of the buffer before is moved to.
fn has_padding(claim: &BufferClaim) -> bool {
    inverse(&claim.map, &claim.after.shape, &[]).map_or(true, |claim| claim.padding.as_const_int() != Some(0))
}

fn not_cached(buffer: &Buffer, why: &str) -> Diagnostic {
    fault(format!("`{buffer}` cannot be cached here: {why}"), "cache it for blocks that only read it, or only write it")
}

/// A compact buffer of the same shape in another scope.
fn copy_of(buffer: &Buffer, scope: Scope) -> Buffer {
    let name = format!("{}_{}", buffer.name, scope.name().replace(':', "_"));
    let data = Var::new(name.clone(), DataType::HANDLE);
    buffer.with(|info| {
        info.name = name;
        info.scope = scope;
        info.data = data;
        info.strides = None;
        info.elem_offset = Expr::int(0);
        info.axis_separators = AxisSeparators::none(info.shape.len());
        info.span = None;
    })
}

/// Loops over a buffer around a block that copies an element.
fn copy_nest(name: &str, from: &Buffer, to: &Buffer) -> Stmt {
    let loops: Vec<Var> =
        from.shape.iter().enumerate().map(|(axis, extent)| Var::new(format!("ax{axis}"), extent.dtype())).collect();
    let axes: Vec<BlockAxis> = spatial_axes(from);
    let index: Vec<Expr> = axes.iter().map(|axis| Expr::from(&axis.var)).collect();
    let copy = Stmt::store(to, index.clone(), Expr::load(from, index.clone()));
    let block = Block {
        name: name.to_owned(),
        axes,
        has_predicate: false,
        has_init: false,
        reads: Some(vec![point(from, &index)]),
        writes: Some(vec![point(to, &index)]),
        annotations: Vec::new(),
    };
    let inner = realized(block, None, loops.iter().map(Expr::from).collect(), copy);
    loops.iter().zip(&from.shape).rev().fold(inner, |body, (var, extent)| {
        let one = i128::from(sabotage::on("block-cache-one-less"));
        let extent = if one > 0 { extent.clone() - int_like(one, extent) } else { extent.clone() };
        Stmt::for_loop(var, extent, ForKind::Serial, body)
    })
}

/// One spatial axis for each axis of a buffer.
pub(super) fn spatial_axes(buffer: &Buffer) -> Vec<BlockAxis> {
    let axis = |(position, extent): (usize, &Expr)| BlockAxis {
        var: Var::new(format!("v{position}"), extent.dtype()),
        kind: AxisKind::Spatial,
        min: int_like(0, extent),
        extent: extent.clone(),
    };
    buffer.shape.iter().enumerate().map(axis).collect()
}

/// One element.
pub(super) fn point(buffer: &Buffer, index: &[Expr]) -> BlockRegion {
    let ranges = index.iter().map(|index| (index.clone(), int_like(1, index))).collect();
    BlockRegion { buffer: buffer.clone(), ranges }
}

/// The only buffer that a block stores to.
///
/// # Errors
/// There are several.
pub(super) fn only_written(found: &Found<'_>) -> Result<Buffer, Diagnostic> {
    let mut written: Vec<Buffer> = Vec::new();
    found.parts.body.walk(&mut |stmt| {
        if let StmtKind::Store { buffer, .. } = &stmt.kind
            && !written.contains(buffer)
        {
            written.push(buffer.clone());
        }
    });
    let [only] = &written[..] else {
        let message = format!("block `{}` writes {} buffers", found.block.name, written.len());
        return Err(fault(message, "name a block that writes one buffer"));
    };
    Ok(only.clone())
}

/// A statement that accesses another buffer, at another index, in the place of one.
pub(super) fn moved_accesses(stmt: &Stmt, before: &Buffer, after: &Buffer, index: &[Expr]) -> Stmt {
    let Ok(stmt) = Moved { before, after, index }.stmt(stmt);
    stmt
}

struct Moved<'a> {
    before: &'a Buffer,
    after: &'a Buffer,
    index: &'a [Expr],
}

impl Rewrite for Moved<'_> {
    type Error = Infallible;

    fn expr(&mut self, expr: &Expr) -> Result<Expr, Infallible> {
        match expr {
            Expr::Load { buffer, .. } if buffer == self.before => Ok(Expr::load(self.after, self.index.to_vec())),
            _ => self.expr_children(expr),
        }
    }

    fn stmt(&mut self, stmt: &Stmt) -> Result<Stmt, Infallible> {
        let rewritten = self.stmt_children(stmt)?;
        match rewritten.kind {
            StmtKind::Store { buffer, value, .. } if buffer == *self.before => {
                Ok(Stmt::store(self.after, self.index.to_vec(), value).at(stmt.span))
            }
            _ => Ok(rewritten),
        }
    }
}
