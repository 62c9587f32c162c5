//! The program of a definition: its nests one after the other, on the parameters of a given function.
//!
//! ```text
//! C[i] = C.old[i] + sum over k of A[i, k]        for i: C.old[i] = C[i]
//!                                                for i: C[i] = C.old[i]
//!                                                       for k: C[i] = C[i] + A[i, k]
//! ```
//!
//! An element of a parameter that is what the call found there is not stored, and what the call found is taken only if something is
//! computed from it: it may be nothing.
//!
//! ```text
//! C[i] = B[i] if i < 5 else C.old[i]             for i: if i < 5: C[i] = B[i]
//! ```
//!
//! What it leaves in its parameters is what the definition says, with the elements that the call found for the inputs that stand for
//! them: each tensor is written once, before it is read.

use std::sync::Arc;

use tilewright_ir::visit::Substitution;
use tilewright_ir::{
    Axis, BinaryOp, Buffer, Definition, Expr, ForKind, Kept, PrimFunc, Stage, StageBody, Stmt, StmtKind, Var,
};

use super::summands::{exprs, not_well_formed};

/// Iterations of an axis that may become stores.
const MOST_SPREAD: i128 = 16;

/// The program that computes a definition, with the parameters and the assertions of a function.
///
/// # Errors
/// The definition is not well formed, or its parameters are not those of the function, followed by the tensors of `kept`.
pub fn program_of(
    func: &PrimFunc,
    asserted: &[Expr],
    definition: &Definition,
    kept: &[Kept],
) -> Result<PrimFunc, String> {
    let params = func.buffer_map.iter().map(|(_, buffer)| buffer);
    let expected: Vec<&Buffer> = params.chain(kept.iter().map(|kept| &kept.tensor)).collect();
    if definition.params.iter().collect::<Vec<_>>() != expected {
        return Err("the parameters of the definition are not those of the program".into());
    }
    if let Some(wrong) = not_well_formed(definition) {
        return Err(wrong);
    }
    if !func.attrs.layout_transform_map.is_empty() || !func.attrs.tile_layout.is_empty() {
        return Err("the program asks for other layouts".into());
    }
    let copies = kept.iter().map(|kept| copy(func, definition, kept)).collect::<Result<Vec<_>, _>>()?;
    let is_taken = |copy: &Stage| kept.iter().any(|one| one.tensor == copy.buffer && is_read(definition, kept, one));
    let copies: Vec<Stage> = copies.into_iter().filter(is_taken).collect();
    let computed = definition.stages.iter().map(|stage| &stage.buffer);
    let tensors: Vec<&Buffer> = computed.chain(kept.iter().map(|kept| &kept.tensor)).collect();
    for (position, tensor) in tensors.iter().enumerate() {
        let is_param = |(_, param): &(Var, Buffer)| param.aliases(tensor) && param != *tensor;
        if func.buffer_map.iter().any(is_param) || tensors[..position].iter().any(|other| other.aliases(tensor)) {
            return Err(format!("`{tensor}` shares its memory with another tensor"));
        }
    }
    let assert =
        |cond: &Expr| Stmt::new(StmtKind::Assert { cond: cond.clone(), message: String::new(), is_assumed: false });
    let nest = |stage: &Stage| {
        let other = keeping(stage, kept).or_else(|| spread(stage)).or_else(|| branching(stage));
        other.unwrap_or_else(|| stage.nest(ForKind::Serial))
    };
    let nests = copies.iter().chain(&definition.stages).map(nest);
    let mut body = Stmt::seq(nests.collect());
    for stage in definition.stages.iter().rev().chain(copies.iter().rev()) {
        if !func.buffer_map.iter().any(|(_, param)| *param == stage.buffer) {
            body = Stmt::new(StmtKind::Allocate { buffer: stage.buffer.clone(), body: Arc::new(body) });
        }
    }
    let body = Stmt::seq(asserted.iter().map(assert).chain([body]).collect());
    Ok(PrimFunc { body, ..func.clone() })
}

/// The nest of a reduction whose last axis chooses what is combined, with a store for each of its iterations in the place of the innermost
/// loop: `for k: C[i] += A[i, k]; C[i] += B[i, k]`. `None` for other stages.
fn spread(stage: &Stage) -> Option<Stmt> {
    let StageBody::Reduce { op, axes, init, condition, source } = &stage.body else { return None };
    let (last, outer) = axes.split_last()?;
    let count = last.extent.as_const_int().filter(|count| (2..=MOST_SPREAD).contains(count))?;
    let Expr::IfThenElse(cond, ..) = source else { return None };
    if !matches!(&**cond, Expr::Binary(BinaryOp::Eq, a, _) if **a == Expr::from(&last.var)) {
        return None;
    }
    let at: Vec<Expr> = stage.axes.iter().map(|axis| Expr::from(&axis.var)).collect();
    let so_far = Expr::load(&stage.buffer, at.clone());
    let update = |place: i128| {
        let here = Expr::Int { value: place, ty: last.var.dtype().scalar };
        let here = Substitution::new([&last.var], [here]);
        let value = decided(&here.apply(source));
        let update = Stmt::store(&stage.buffer, at.clone(), Expr::binary(op.combine(), so_far.clone(), value));
        match condition.as_ref().map(|cond| decided(&here.apply(cond))) {
            Some(cond) if cond.as_const_int() == Some(0) => None,
            Some(cond) if cond.as_const_int().is_none() => Some(Stmt::guarded(cond, update)),
            _ => Some(update),
        }
    };
    let start = init.clone().unwrap_or_else(|| op.identity_expr(stage.buffer.dtype.scalar));
    let inside = |body, axis: &Axis| Stmt::for_loop(&axis.var, axis.extent.clone(), ForKind::Serial, body);
    let updates = outer.iter().rev().fold(Stmt::seq((0..count).filter_map(update).collect()), inside);
    let body = Stmt::seq(vec![Stmt::store(&stage.buffer, at.clone(), start), updates]);
    Some(stage.axes.iter().rev().fold(body, inside))
}

/// An expression without the choices and the parts of conditions that constants decide.
fn decided(expr: &Expr) -> Expr {
    let parts = |a: &Expr, b: &Expr| (decided(a), decided(b));
    match expr {
        Expr::Binary(op @ (BinaryOp::Eq | BinaryOp::Ne), a, b) => match (a.as_const_int(), b.as_const_int()) {
            (Some(a), Some(b)) => Expr::bool((a == b) == (*op == BinaryOp::Eq)),
            _ => expr.clone(),
        },
        Expr::Binary(op @ (BinaryOp::And | BinaryOp::Or), a, b) => {
            let (a, b) = parts(a, b);
            match a.as_const_int() {
                Some(value) if (value != 0) == (*op == BinaryOp::And) => b,
                Some(_) => a,
                None => Expr::binary(*op, a, b),
            }
        }
        Expr::IfThenElse(cond, a, b) => match decided(cond).as_const_int() {
            Some(value) => decided(if value != 0 { a } else { b }),
            None => expr.clone(),
        },
        _ => expr.clone(),
    }
}

/// Whether something is computed from what the call found in a parameter: an element may be kept as it is without that.
pub(super) fn is_read(definition: &Definition, all: &[Kept], kept: &Kept) -> bool {
    let loads = |expr: &Expr| {
        let mut found = false;
        expr.walk(&mut |part| found |= matches!(part, Expr::Load { buffer, .. } if *buffer == kept.tensor));
        found
    };
    definition.stages.iter().any(|stage| match keeping(stage, all) {
        Some(nest) => {
            let mut found = false;
            nest.walk(&mut |stmt| found |= stmt.exprs().any(loads));
            found
        }
        None => exprs(stage).into_iter().any(loads),
    })
}

/// The nest of a stage that leaves elements of a parameter as the call found them: it stores the others. `None` for other stages.
fn keeping(stage: &Stage, kept: &[Kept]) -> Option<Stmt> {
    let StageBody::Elementwise(value) = &stage.body else { return None };
    let own = kept.iter().find(|kept| kept.param == stage.buffer)?;
    let at: Vec<Expr> = stage.axes.iter().map(|axis| Expr::from(&axis.var)).collect();
    let body = stored(value, &stage.buffer, &at, &Expr::load(&own.tensor, at.clone()))?;
    let inside = |body, axis: &Axis| Stmt::for_loop(&axis.var, axis.extent.clone(), ForKind::Serial, body);
    Some(stage.axes.iter().rev().fold(body, inside))
}

/// The nest of a stage whose values are a choice, with a branch for each of its sides: `if cond: C[i] = A[i] else: C[i] = B[i]`. `None` for
/// other stages.
fn branching(stage: &Stage) -> Option<Stmt> {
    let StageBody::Elementwise(value @ Expr::IfThenElse(..)) = &stage.body else { return None };
    let at: Vec<Expr> = stage.axes.iter().map(|axis| Expr::from(&axis.var)).collect();
    let inside = |body, axis: &Axis| Stmt::for_loop(&axis.var, axis.extent.clone(), ForKind::Serial, body);
    Some(stage.axes.iter().rev().fold(branches(value, &stage.buffer, &at), inside))
}

/// The stores of a choice, each where it is chosen.
fn branches(value: &Expr, buffer: &Buffer, at: &[Expr]) -> Stmt {
    match value {
        Expr::IfThenElse(cond, then, otherwise) if !cond.reads_memory() && cond.dtype().is_scalar() => {
            let side = |value: &Expr| Arc::new(branches(value, buffer, at));
            let (then_body, else_body) = (side(then), Some(side(otherwise)));
            Stmt::new(StmtKind::If { cond: Expr::clone(cond), then_body, else_body })
        }
        _ => Stmt::store(buffer, at.to_vec(), value.clone()),
    }
}

/// The stores of a choice whose last value is kept.
fn stored(value: &Expr, buffer: &Buffer, at: &[Expr], kept: &Expr) -> Option<Stmt> {
    let Expr::IfThenElse(cond, then, otherwise) = value else { return None };
    if cond.reads_memory() || !cond.dtype().is_scalar() {
        return None;
    }
    let then_body = Arc::new(Stmt::store(buffer, at.to_vec(), Expr::clone(then)));
    let rest = if **otherwise == *kept { None } else { Some(Arc::new(stored(otherwise, buffer, at, kept)?)) };
    Some(Stmt::new(StmtKind::If { cond: Expr::clone(cond), then_body, else_body: rest }))
}

/// The stage that takes what the call found in a parameter.
fn copy(func: &PrimFunc, definition: &Definition, Kept { tensor, param, index }: &Kept) -> Result<Stage, String> {
    let is_param = |buffer: &Buffer| func.buffer_map.iter().any(|(_, other)| other == buffer);
    let is_input = definition.stage_of(tensor).is_none() && is_param(param) && !is_param(tensor);
    let is_alike = tensor.dtype == param.dtype && tensor.shape == param.shape && index.len() == param.rank();
    if !is_input || !is_alike || tensor.strides.is_some() {
        return Err(format!("`{tensor}` cannot stand for what `{param}` held"));
    }
    let axes = index.iter().zip(&tensor.shape).map(|(var, extent)| Axis { var: var.clone(), extent: extent.clone() });
    let at = index.iter().map(Expr::from).collect::<Vec<_>>();
    let body = StageBody::Elementwise(Expr::load(param, at));
    Ok(Stage { buffer: tensor.clone(), axes: axes.collect(), body })
}
