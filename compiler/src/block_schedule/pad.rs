//! `pad_einsum`: the axes of a block become multiples of what a tile needs, and its operands are padded in copies.
//!
//! ```text
//! pad_einsum("C", [8, 8, 4])       block "A_pad": A_pad[v0, v1] = A[v0, v1] if v0 < 37 and v1 < 29 else 0
//!                                  block "B_pad": ...
//! C of (37, 23), k of 29           block "C" with axes of 40, 24 and 32: C_pad[i, j] += A_pad[i, k] * B_pad[k, j]
//!                                  block "C_pad": C[v0, v1] = C_pad[v0, v1] for 37 and 23
//! ```
//!
//! TVM pads with zeros whatever is computed. Here the padding is neutral for the reduction: 0 in sums, 1 in products, the least value in
//! maxima, the greatest in minima. If it could not be, as where one operand of a product of floats is not padded (0 times infinity is no
//! 0), that is an error at the call.

use std::convert::Infallible;

use tilewright_algebra::simplify;
use tilewright_ir::visit::{Rewrite, Substitution};
use tilewright_ir::{
    AxisKind, AxisSeparators, BinaryOp, Block, BlockAxis, Buffer, Comparison, DataType, Diagnostic, Evidence, Expr,
    For, PrimFunc, ReduceOp, Stmt, StmtKind, Var,
};

use super::cache::{only_written, searched};
use super::combiner::Combiner;
use super::domain::check_plain;
use super::regions::{int_like, stated};
use super::tree::{Found, block_named, in_own_loops, realized_again, unstated, with_neighbours};
use super::{BlockRef, BlockSchedule, fault};
use crate::lift;
use crate::passes::schedule::loops::with_loop;

impl BlockSchedule {
    /// Makes the extent of each axis of a block a multiple of a number. What the block reads and writes is padded in buffers of their own,
    /// which blocks in front of it fill and a block behind it copies back.
    ///
    /// # Errors
    /// `schedule`: the block is gone, its axes are not its loops, there is not one positive number for each of them, an index is neither
    /// an axis nor a constant, or no padding leaves the results as they are.
    pub fn pad_einsum(&mut self, block: BlockRef, padding: &[i64]) -> Result<(), Diagnostic> {
        let found = self.block(block)?;
        let name = found.block.name.clone();
        check_plain(&found)?;
        let extents = self.padded_extents(&found, padding)?;
        let einsum = Einsum::of(&found, extents)?;
        if einsum.padded.iter().all(Option::is_none) {
            let body = self.func().body.clone();
            self.same_step("pad_einsum", body)?;
            return Ok(());
        }
        let is_reduced = einsum.combiner.is_some();
        let body = self.padded(&name, &found, &einsum)?;
        if !is_reduced {
            self.step("pad_einsum", body, &searched())?;
            return Ok(());
        }
        let after = PrimFunc { body, ..self.func().clone() };
        let evidence = Evidence { pass: "pad_einsum".to_owned(), ..Evidence::default() };
        let claim = lift::find(self.func(), &after, &evidence, true);
        let comparison = claim.map_or_else(|_| Comparison::default(), |claim| Comparison::Definitions(claim.into()));
        self.record("pad_einsum", after, Evidence { comparison, ..evidence })?;
        Ok(())
    }

    /// The new extent of each axis; `None` where it stays as it is.
    fn padded_extents(&self, found: &Found<'_>, padding: &[i64]) -> Result<Vec<Option<Expr>>, Diagnostic> {
        let axes = &found.block.axes;
        if padding.len() != axes.len() || padding.iter().any(|number| *number < 1) {
            let message =
                format!("block `{}` has {} axes, and the padding is {padding:?}", found.block.name, axes.len());
            return Err(fault(message, "give one positive number for each axis; 1 leaves it as it is"));
        }
        let ranges = found.ranges(self.func());
        let extent = |(axis, number): (&BlockAxis, &i64)| {
            if axis.min.as_const_int() != Some(0) {
                return Err(fault(format!("axis `{}` does not start from 0", axis.var), "write the block from 0 on"));
            }
            let number = int_like(i128::from(*number), &axis.extent);
            let open = axis.extent.clone() + number.clone() - int_like(1, &axis.extent);
            let extent = simplify(&(open.floor_div(number.clone()) * number), &ranges);
            Ok((extent != simplify(&axis.extent, &ranges)).then_some(extent))
        };
        axes.iter().zip(padding).map(extent).collect()
    }

    /// The statements of the function with the padded block.
    fn padded(&self, name: &str, found: &Found<'_>, einsum: &Einsum) -> Result<Stmt, Diagnostic> {
        let pairs = einsum.pairs();
        let (mut front, mut behind) = (Vec::new(), Vec::new());
        for (access, after) in &pairs {
            let copy = self.fresh_block_name(&after.name);
            if access.buffer == einsum.target {
                behind.push(einsum.copied_back(found, &copy, (access, after), self.func()));
            } else {
                front.push(einsum.filled(found, &copy, (access, after), self.func()));
            }
        }
        let top = check_plain(found)?;
        let nest = einsum.nest(found, &pairs, self.func());
        let mut func = self.func().clone();
        func.body = with_loop(&func.body, &top, &nest);
        for (at, (_, after)) in pairs.iter().enumerate() {
            let around = if at == 0 {
                (std::mem::take(&mut front), std::mem::take(&mut behind))
            } else {
                (Vec::new(), Vec::new())
            };
            let placed = block_named(&func, name)?;
            func.body = with_neighbours(&func, &placed, around, Some(after));
        }
        Ok(func.body)
    }
}

/// A buffer that a block accesses at one index.
#[derive(Clone, Debug)]
struct Access {
    buffer: Buffer,
    index: Vec<Expr>,
}

/// A block whose indices are axes and constants.
struct Einsum {
    axes: Vec<BlockAxis>,
    /// The new extent of each axis, where it changes.
    padded: Vec<Option<Expr>>,
    target: Buffer,
    accesses: Vec<Access>,
    /// What a reduction combines.
    combiner: Option<Combiner>,
    /// What the padding of the operands holds.
    neutral: Expr,
}

impl Einsum {
    fn of(found: &Found<'_>, padded: Vec<Option<Expr>>) -> Result<Self, Diagnostic> {
        let target = only_written(found)?;
        let accesses = accesses(found)?;
        let axes = found.block.axes.clone();
        let ty = target.dtype.scalar;
        let combiner = if found.block.has_init { Some(Combiner::of(found)?) } else { None };
        let op = combiner.as_ref().map_or(ReduceOp::Sum, |combiner| combiner.op);
        let einsum = Self { axes, padded, target, accesses, combiner, neutral: op.identity_expr(ty) };
        einsum.check(found)?;
        Ok(einsum)
    }

    /// Checks that padding the operands leaves the results as they are.
    fn check(&self, found: &Found<'_>) -> Result<(), Diagnostic> {
        let name = &found.block.name;
        let help = "pad the spatial axes alone, or write the condition into the block";
        let is_other = |access: &&Access| access.buffer.dtype != self.target.dtype;
        if let Some(other) = self.accesses.iter().find(is_other) {
            let message = format!("`{}` has another type than `{}`", other.buffer, self.target);
            return Err(fault(message, "convert it in a block of its own first"));
        }
        let value = match &self.combiner {
            Some(combiner) => {
                if combiner.only_where.is_some() || combiner.start.reads_memory() {
                    let message = format!("block `{name}` has a condition, or starts from a value that is read");
                    return Err(fault(message, help));
                }
                combiner.value.clone()
            }
            None => only_value(found.parts.body).ok_or_else(|| fault(format!("block `{name}` is no einsum"), help))?,
        };
        let Some(operands) = operands(&value) else {
            let message = format!("`{value}` in block `{name}` is no product of elements");
            return Err(fault(message, help));
        };
        let Some(combiner) = &self.combiner else { return Ok(()) };
        let reduced = self.axes.iter().zip(&self.padded);
        let reduced = reduced.filter(|(axis, padded)| axis.kind == AxisKind::Reduce && padded.is_some());
        for (axis, _) in reduced {
            let has = |operand: &&&Expr| operand.vars().contains(&axis.var);
            let count = operands.iter().filter(has).count();
            let is_neutral = match combiner.op {
                ReduceOp::Sum if self.target.dtype.scalar.is_integer() => count > 0,
                ReduceOp::Sum | ReduceOp::Prod => count == operands.len(),
                ReduceOp::Max | ReduceOp::Min => count == 1 && operands.len() == 1,
            };
            if !is_neutral {
                let message =
                    format!("the padding of axis `{}` would change what block `{name}` combines: `{value}`", axis.var);
                return Err(fault(message, help));
            }
        }
        Ok(())
    }

    /// The number of the padded axis that an index is.
    fn padded_axis(&self, index: &Expr) -> Option<usize> {
        let Expr::Var(var) = index else { return None };
        let at = self.axes.iter().position(|axis| axis.var == *var)?;
        self.padded[at].as_ref().map(|_| at)
    }

    /// The accesses whose buffers are padded, with the buffers in their place.
    fn pairs(&self) -> Vec<(Access, Buffer)> {
        let is_padded = |access: &&Access| access.index.iter().any(|index| self.padded_axis(index).is_some());
        let pair = |access: &Access| {
            let name = format!("{}_pad", access.buffer.name);
            let data = Var::new(name.clone(), DataType::HANDLE);
            let after = access.buffer.with(|info| {
                for (extent, index) in info.shape.iter_mut().zip(&access.index) {
                    let new = self.padded_axis(index).and_then(|at| self.padded[at].clone());
                    *extent = new.unwrap_or_else(|| extent.clone());
                }
                info.name = name;
                info.data = data;
                info.strides = None;
                info.elem_offset = Expr::int(0);
                info.axis_separators = AxisSeparators::none(info.shape.len());
                info.span = None;
            });
            (access.clone(), after)
        };
        self.accesses.iter().filter(is_padded).map(pair).collect()
    }

    /// The block with its new axes and buffers, in its loops.
    fn nest(&self, found: &Found<'_>, pairs: &[(Access, Buffer)], func: &PrimFunc) -> Stmt {
        let extent_of = |at: usize| self.padded[at].clone().unwrap_or_else(|| self.axes[at].extent.clone());
        let axes = (0..self.axes.len()).map(|at| BlockAxis { extent: extent_of(at), ..self.axes[at].clone() });
        let Ok(body) = Moved(pairs).stmt(found.parts.body);
        let block = Block { axes: axes.collect(), ..found.block.clone() };
        let block = stated(&block, &body, &found.ranges(func));
        let inner = realized_again(&block, &found.parts, body).at(found.stmt.span);
        found.loops.iter().rev().fold(inner, |body, run| {
            let at = found.axes().position(|(_, value)| *value == Expr::from(&run.var));
            let extent = at.map_or_else(|| run.extent.clone(), extent_of);
            Stmt::new(StmtKind::For(For { extent, body, ..For::clone(run) }.into()))
        })
    }

    /// Fills the buffer in the place of one that is read.
    fn filled(&self, found: &Found<'_>, name: &str, (access, after): (&Access, &Buffer), func: &PrimFunc) -> Stmt {
        let axes: Vec<BlockAxis> = super::cache::spatial_axes(after);
        let index: Vec<Expr> = axes.iter().map(|axis| Expr::from(&axis.var)).collect();
        let inside = access.index.iter().zip(&index).filter_map(|(old, new)| {
            let at = self.padded_axis(old)?;
            Some(new.clone().lt(self.axes[at].extent.clone()))
        });
        let value = Expr::load(&access.buffer, index.clone());
        let value = match inside.reduce(Expr::and) {
            Some(inside) => Expr::IfThenElse(inside.into(), value.into(), self.neutral.clone().into()),
            None => value,
        };
        nest(found, name, axes, Stmt::store(after, index, value), func)
    }

    /// Copies the results to where they were.
    fn copied_back(&self, found: &Found<'_>, name: &str, (access, after): (&Access, &Buffer), func: &PrimFunc) -> Stmt {
        let used = self.axes.iter().filter(|axis| access.index.iter().any(|at| at.vars().contains(&axis.var)));
        let (mut axes, mut names) = (Vec::new(), Substitution::default());
        for axis in used {
            let var = Var::new(axis.var.name(), axis.var.dtype());
            names.insert(&axis.var, Expr::from(&var));
            axes.push(BlockAxis { var, kind: AxisKind::Spatial, ..axis.clone() });
        }
        let index: Vec<Expr> = access.index.iter().map(|at| names.apply(at)).collect();
        let value = Expr::load(after, index.clone());
        nest(found, name, axes, Stmt::store(&access.buffer, index, value), func)
    }
}

/// Loops around a block that does one thing.
fn nest(found: &Found<'_>, name: &str, axes: Vec<BlockAxis>, body: Stmt, func: &PrimFunc) -> Stmt {
    let block = stated(&unstated(name, axes), &body, &found.ranges(func));
    in_own_loops(block, body)
}

/// What a block accesses, each buffer at its index.
fn accesses(found: &Found<'_>) -> Result<Vec<Access>, Diagnostic> {
    let mut all: Vec<Access> = Vec::new();
    found.parts.body.walk(&mut |stmt| {
        for expr in stmt.exprs() {
            expr.walk(&mut |part| {
                if let Expr::Load { buffer, indices } = part {
                    all.push(Access { buffer: buffer.clone(), index: indices.to_vec() });
                }
            });
        }
        if let StmtKind::Store { buffer, indices, .. } = &stmt.kind {
            all.push(Access { buffer: buffer.clone(), index: indices.clone() });
        }
    });
    let is_axis = |index: &Expr| {
        index.as_const_int().is_some() || found.block.axes.iter().any(|axis| Expr::from(&axis.var) == *index)
    };
    let mut each: Vec<Access> = Vec::new();
    for access in all {
        if let Some(index) = access.index.iter().find(|index| !is_axis(index)) {
            let message = format!("the index `{index}` of `{}` is neither an axis nor a constant", access.buffer);
            return Err(fault(
                message,
                "an einsum has no other indices; `reindex` makes a buffer that is read like that",
            ));
        }
        match each.iter().find(|known| known.buffer.aliases(&access.buffer)) {
            Some(known) if known.buffer == access.buffer && known.index == access.index => {}
            Some(_) => {
                let message = format!("`{}` is accessed at several indices", access.buffer);
                return Err(fault(message, "copy it for one of them: `sch.cache_read`"));
            }
            None => each.push(access),
        }
    }
    Ok(each)
}

/// The elements of which a value is the product.
fn operands(value: &Expr) -> Option<Vec<&Expr>> {
    match value {
        Expr::Load { .. } => Some(vec![value]),
        Expr::Binary(BinaryOp::Mul, a, b) => Some([operands(a)?, operands(b)?].concat()),
        _ => None,
    }
}

/// The value of the only store.
fn only_value(body: &Stmt) -> Option<Expr> {
    match &body.kind {
        StmtKind::Store { value, .. } => Some(value.clone()),
        _ => None,
    }
}

/// Accesses other buffers at the same indices.
struct Moved<'a>(&'a [(Access, Buffer)]);

impl Rewrite for Moved<'_> {
    type Error = Infallible;

    fn buffer(&mut self, buffer: &Buffer) -> Result<Buffer, Infallible> {
        let found = self.0.iter().find(|(access, _)| access.buffer == *buffer);
        Ok(found.map_or_else(|| buffer.clone(), |(_, after)| after.clone()))
    }
}
