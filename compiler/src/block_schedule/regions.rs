//! What a block reads and writes, computed from its statements.

use tilewright_algebra::{Ranges, bounds_of, simplify};
use tilewright_ir::visit::Substitution;
use tilewright_ir::{Block, BlockRegion, Buffer, Expr, Stmt, StmtKind, Var};

use crate::passes::remap::inside;

/// The regions that a statement reads and writes, in terms of variables that are bound outside of it: points, boxes where an index
/// runs over a loop inside, and the whole axis where a box is not found.
#[derive(Clone, Debug, Default)]
pub(super) struct Accesses {
    pub(super) reads: Vec<BlockRegion>,
    pub(super) writes: Vec<BlockRegion>,
}

/// Returns what a statement reads and writes, apart from memory that it allocates.
pub(super) fn accesses(stmt: &Stmt, ranges: &Ranges) -> Accesses {
    let mut walk =
        Walk { found: Accesses::default(), ranges: ranges.clone(), inner: Vec::new(), names: Substitution::default() };
    walk.stmt(stmt);
    let mut own = Vec::new();
    stmt.walk(&mut |part| {
        if let StmtKind::Allocate { buffer, .. } = &part.kind {
            own.push(buffer.clone());
        }
    });
    let is_other = |region: &BlockRegion| !own.iter().any(|buffer| buffer.aliases(&region.buffer));
    walk.found.reads.retain(is_other);
    walk.found.writes.retain(is_other);
    walk.found
}

/// Returns a block that says what its statement reads and writes, if it said so before.
pub(super) fn stated(block: &Block, body: &Stmt, ranges: &Ranges) -> Block {
    let ranges =
        block.axes.iter().fold(ranges.clone(), |known, axis| known.with_loop(&axis.var, &axis.min, &axis.extent));
    let mut found = accesses(body, &ranges);
    if block.has_init {
        // What a reduction has computed so far is no input of it.
        let written: Vec<Buffer> = found.writes.iter().map(|region| region.buffer.clone()).collect();
        found.reads.retain(|region| !written.contains(&region.buffer));
    }
    Block {
        reads: block.reads.as_ref().map(|_| found.reads),
        writes: block.writes.as_ref().map(|_| found.writes),
        ..block.clone()
    }
}

struct Walk {
    found: Accesses,
    ranges: Ranges,
    /// The loops inside of the statement.
    inner: Vec<Var>,
    names: Substitution,
}

impl Walk {
    fn stmt(&mut self, stmt: &Stmt) {
        for expr in stmt.exprs() {
            self.loads(expr);
        }
        match &stmt.kind {
            StmtKind::For(run) => {
                let outside = self.ranges.clone();
                self.ranges = inside(&outside, run);
                self.inner.push(run.var.clone());
                self.stmt(&run.body);
                self.ranges = outside;
            }
            StmtKind::Let { var, value, body } => {
                let value = self.names.apply(value);
                self.names.insert(var, value);
                self.stmt(body);
            }
            StmtKind::Store { buffer, indices, .. } => {
                let region = self.region(buffer, indices);
                add(&mut self.found.writes, region);
            }
            _ => stmt.children().for_each(|child| self.stmt(child)),
        }
    }

    fn loads(&mut self, expr: &Expr) {
        let mut read = Vec::new();
        expr.walk(&mut |part| {
            if let Expr::Load { buffer, indices } = part {
                read.push((buffer.clone(), indices.to_vec()));
            }
        });
        for (buffer, indices) in read {
            let region = self.region(&buffer, &indices);
            add(&mut self.found.reads, region);
        }
    }

    fn region(&self, buffer: &Buffer, indices: &[Expr]) -> BlockRegion {
        let axis = |(index, extent): (&Expr, &Expr)| {
            let index = self.names.apply(index);
            self.range(&index).unwrap_or_else(|| (int_like(0, extent), extent.clone()))
        };
        BlockRegion { buffer: buffer.clone(), ranges: indices.iter().zip(&buffer.shape).map(axis).collect() }
    }

    /// The least index and the number of indices.
    fn range(&self, index: &Expr) -> Option<(Expr, Expr)> {
        if index.reads_memory() || !index.dtype().is_scalar() {
            return None;
        }
        let runs = index.vars().iter().any(|var| self.inner.contains(var));
        if !runs {
            return Some((index.clone(), int_like(1, index)));
        }
        // Bounded over the loops inside alone: what is outside stays as it is.
        let inner = self.inner.iter().fold(Ranges::new(), |known, var| {
            let whole = bounds_of(&Expr::from(var), &self.ranges);
            let Some((low, high)) = whole else { return known };
            let extent = high - low.clone() + int_like(1, &low);
            known.with_loop(var, &low, &simplify(&extent, &self.ranges))
        });
        let (low, high) = bounds_of(index, &inner)?;
        let is_open = |expr: &Expr| expr.vars().iter().any(|var| self.inner.contains(var));
        let extent = simplify(&(high - low.clone() + int_like(1, index)), &self.ranges);
        (!is_open(&low) && !is_open(&extent)).then_some((low, extent))
    }
}

fn add(regions: &mut Vec<BlockRegion>, region: BlockRegion) {
    if !regions.contains(&region) {
        regions.push(region);
    }
}

/// A constant of the type of an expression.
pub(super) fn int_like(value: i128, like: &Expr) -> Expr {
    Expr::int_of(value, like.dtype().scalar).unwrap_or_else(|| Expr::Int { value, ty: like.dtype().scalar })
}
