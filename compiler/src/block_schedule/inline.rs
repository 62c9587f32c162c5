//! Joins blocks: `compute_inline` and `reverse_compute_inline`.
//!
//! ```text
//! block "T": T[v_i, v_j] = A[v_i, v_j] * 2             compute_inline("T")
//! block "C": C[v_j, v_i] = T[v_i, v_j] + 1      ->     block "C": C[v_j, v_i] = A[v_i, v_j] * 2 + 1
//!
//! block "T": T[v_i, v_j] = A[v_i, v_j] * 2             reverse_compute_inline("C")
//! block "C": C[v_a, v_b] = T[v_a, v_b] + 1      ->     block "T": C[v_i, v_j] = A[v_i, v_j] * 2 + 1
//! ```

use std::convert::Infallible;

use tilewright_algebra::simplify;
use tilewright_ir::visit::{Rewrite, Substitution};
use tilewright_ir::{AxisKind, BlockAxis, Buffer, Diagnostic, Expr, SharedExpr, Stmt, StmtKind, Var, sabotage};

use super::cache::searched;
use super::regions::stated;
use super::tree::{Found, realized_again, with_block, without_block};
use super::{BlockRef, BlockSchedule, fault};
use crate::passes::schedule::buffers::{allocates, loads, loads_from, n_uses, stores_to, unallocated};

impl BlockSchedule {
    /// Puts the value that a block computes where it is read, and removes the block and its buffer.
    ///
    /// # Errors
    /// `schedule`: the block is gone, is not one store at its spatial axes, or stores to a parameter.
    pub fn compute_inline(&mut self, block: BlockRef) -> Result<(), Diagnostic> {
        let found = self.block(block)?;
        let element = Element::of(&found)?;
        if !allocates(&self.func().body, &element.buffer) {
            return Err(not_inline(&found, "it writes a parameter, which the caller sees"));
        }
        let body = without_block(&self.func().body, &found.block.name);
        if stores_to(&body, &|stored| stored.aliases(&element.buffer)) {
            return Err(not_inline(&found, "another block writes the buffer, too"));
        }
        let readers = self.blocks_that(|body| loads_from(body, &element.buffer));
        let mut body = readers.iter().fold(body, |body, reader| {
            with_block(&body, reader, &mut |block, _, parts| {
                let Ok(inner) = Inline(&element).stmt(parts.body);
                realized_again(&stated(block, &inner, &found.ranges(self.func())), &parts, inner)
            })
        });
        if n_uses(&body, &element.buffer) > 0 {
            return Err(not_inline(&found, "its buffer is read outside of blocks"));
        }
        body = unallocated(&body, &element.buffer);
        self.step("compute_inline", body, &searched())?;
        Ok(())
    }

    /// Lets the block that computes what a block reads do what the block does with it, and removes the block and the buffer between them.
    ///
    /// # Errors
    /// `schedule`: the block is gone, is not one store that reads one buffer at its spatial axes, or the block that writes this buffer is
    /// not one store.
    pub fn reverse_compute_inline(&mut self, block: BlockRef) -> Result<(), Diagnostic> {
        let found = self.block(block)?;
        let (indices, value, target) = only_store(&found)?;
        let mut read = None;
        value.walk(&mut |part| {
            if let Expr::Load { buffer, indices } = part
                && allocates(&self.func().body, buffer)
            {
                read = Some((buffer.clone(), indices.to_vec()));
            }
        });
        let (buffer, at) = read.ok_or_else(|| not_inline(&found, "it reads no buffer that the function allocates"))?;
        let axes = axes_of(&at).filter(|axes| axes.len() == found.block.axes.len());
        let axes = axes.ok_or_else(|| not_inline(&found, "it does not read one element of each of its instances"))?;
        let writers = self.blocks_that(|body| stores_to(body, &|stored| stored.aliases(&buffer)));
        let [writer] = &writers[..] else {
            return Err(not_inline(&found, "its buffer is not written by one block"));
        };
        let writer = super::tree::block_named(self.func(), writer)?;
        let (stored_at, computed, _) = only_store(&writer)?;
        if writer.block.axes.iter().any(|axis| axis.kind != AxisKind::Spatial) {
            return Err(not_inline(&found, "the block that writes its buffer is a reduction"));
        }
        let mut stored_at = stored_at;
        if sabotage::on("block-reverse-inline-swaps-axes") {
            stored_at.reverse();
        }
        let there = Substitution::new(&axes, stored_at);
        let apply = |expr: &Expr| {
            let Ok(joined) = (Join { buffer: &buffer, value: &computed, there: &there }).expr(expr);
            joined
        };
        let known = writer.inner_ranges(self.func());
        let indices = indices.iter().map(|index| simplify(&apply(index), &known)).collect();
        let store = Stmt::store(&target, indices, apply(&value)).at(found.parts.body.span);
        let ranges = writer.ranges(self.func());
        let name = writer.block.name.clone();
        let body = without_block(&self.func().body, &found.block.name);
        let body = with_block(&body, &name, &mut |block, _, parts| {
            realized_again(&stated(block, &store, &ranges), &parts, store.clone())
        });
        if n_uses(&body, &buffer) > 0 {
            return Err(not_inline(&found, "another block uses the buffer, too"));
        }
        let body = unallocated(&body, &buffer);
        self.step("reverse_compute_inline", body, &searched())?;
        Ok(())
    }
}

fn not_inline(found: &Found<'_>, why: &str) -> Diagnostic {
    let help =
        "both blocks are one store each, at one axis for each index, and nothing else uses the buffer between them";
    fault(format!("block `{}` cannot be inlined: {why}", found.block.name), help)
}

/// The value of an element in terms of its indices.
struct Element {
    buffer: Buffer,
    /// The variable that stands for each index in the value; none on an axis of one element.
    index: Vec<Option<Var>>,
    value: Expr,
}

impl Element {
    fn of(found: &Found<'_>) -> Result<Self, Diagnostic> {
        let (indices, value, buffer) = only_store(found)?;
        let axes = &found.block.axes;
        let index = element_index(&indices, &buffer);
        let is_spatial = axes.iter().all(|axis| axis.kind == AxisKind::Spatial);
        let index = index.filter(|_| is_spatial && !loads(&value, &buffer));
        // An axis that is not in the index has one value.
        let others = |index: &Vec<Option<Var>>| -> Option<Vec<&BlockAxis>> {
            let others: Vec<_> = axes.iter().filter(|axis| !index.contains(&Some(axis.var.clone()))).collect();
            others.iter().all(|axis| is_one(&axis.extent)).then_some(others)
        };
        let both = index.and_then(|index| others(&index).map(|others| (index, others)));
        let why = "it is a reduction, or not one element of each instance";
        let (index, others) = both.ok_or_else(|| not_inline(found, why))?;
        let only = Substitution::new(others.iter().map(|axis| &axis.var), others.iter().map(|axis| axis.min.clone()));
        Ok(Self { buffer, index, value: only.apply(&value) })
    }
}

fn is_one(extent: &Expr) -> bool {
    extent.as_const_int() == Some(1)
}

/// The variables of an index, if each is another one; none on an axis of one element.
fn element_index(indices: &[Expr], buffer: &Buffer) -> Option<Vec<Option<Var>>> {
    let of_axis = |(index, extent): (&Expr, &Expr)| match index {
        Expr::Var(var) => Some(Some(var.clone())),
        _ if is_one(extent) && index.as_const_int() == Some(0) => Some(None),
        _ => None,
    };
    let found: Vec<Option<Var>> = indices.iter().zip(&buffer.shape).map(of_axis).collect::<Option<_>>()?;
    let is_new = |(place, var): (usize, &Option<Var>)| var.is_none() || !found[..place].contains(var);
    found.iter().enumerate().all(is_new).then_some(found)
}

/// The only store of a block: its index, its value and its buffer.
fn only_store(found: &Found<'_>) -> Result<(Vec<Expr>, Expr, Buffer), Diagnostic> {
    match &found.parts.body.kind {
        StmtKind::Store { buffer, indices, value } => Ok((indices.clone(), value.clone(), buffer.clone())),
        _ => Err(not_inline(found, "it is not one store")),
    }
}

/// The variables that indices are, if each is another one.
fn axes_of(indices: &[Expr]) -> Option<Vec<Var>> {
    let mut vars: Vec<Var> = Vec::new();
    for index in indices {
        let Expr::Var(var) = index else { return None };
        (!vars.contains(var)).then(|| vars.push(var.clone()))?;
    }
    Some(vars)
}

/// Replaces loads of a buffer by the value of the element.
struct Inline<'a>(&'a Element);

impl Rewrite for Inline<'_> {
    type Error = Infallible;

    fn expr(&mut self, expr: &Expr) -> Result<Expr, Infallible> {
        let rewritten = self.expr_children(expr)?;
        match &rewritten {
            Expr::Load { buffer, indices } if *buffer == self.0.buffer => {
                let mut indices = indices.to_vec();
                if sabotage::on("block-inline-swaps-axes") {
                    indices.reverse();
                }
                let named = self.0.index.iter().zip(&indices).filter_map(|(var, at)| Some((var.as_ref()?, at)));
                let typed = |(var, at): (&Var, &Expr)| {
                    if at.dtype() == var.dtype() {
                        at.clone()
                    } else {
                        Expr::Cast(var.dtype(), SharedExpr::new(at.clone()))
                    }
                };
                let vars = self.0.index.iter().flatten();
                Ok(Substitution::new(vars, named.map(typed)).apply(&self.0.value))
            }
            _ => Ok(rewritten),
        }
    }
}

/// Replaces loads of a buffer by a value, and axes by their values.
struct Join<'a> {
    buffer: &'a Buffer,
    value: &'a Expr,
    there: &'a Substitution,
}

impl Rewrite for Join<'_> {
    type Error = Infallible;

    fn expr(&mut self, expr: &Expr) -> Result<Expr, Infallible> {
        match expr {
            Expr::Load { buffer, .. } if buffer == self.buffer => Ok(self.value.clone()),
            Expr::Var(var) => Ok(self.there.get(var).unwrap_or(expr).clone()),
            _ => self.expr_children(expr),
        }
    }
}
