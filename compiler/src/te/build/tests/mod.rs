//! Programs built from Rust are those that Python texts build, and misuse is an error.

mod examples;
mod misuse;

use tilewright_ir::{Axis, Diagnostic, Expr, IndexMap, ScalarType, Var};

use super::{Builder, Built, Loop, Lowered, Stage, Tensor, axis};
use crate::te::evaluate;

const F32: ScalarType = ScalarType::Float32;

fn int(value: i64) -> Expr {
    Expr::int(value)
}

fn float(value: f64) -> Expr {
    Expr::float_of(value, F32)
}

fn ints<const N: usize>(extents: [i64; N]) -> Vec<Expr> {
    extents.map(Expr::int).to_vec()
}

/// A computed tensor whose axes have names, as the parameters of a lambda do.
fn compute(
    te: &mut Builder,
    name: &str,
    axes: &[&str],
    shape: &[Expr],
    value: impl FnOnce(&Builder, &[Expr]) -> Built<Expr>,
) -> Built<Tensor> {
    let axes = axes.iter().zip(shape).map(|(name, extent)| axis(name, extent)).collect::<Built<Vec<Axis>>>()?;
    let indices: Vec<Expr> = axes.iter().map(|axis| Expr::from(&axis.var)).collect();
    let value = value(te, &indices)?;
    te.define(name, axes, value.into())
}

/// The index map of a stage's current layout that a lambda over `names` is.
fn layout<const N: usize>(
    stage: &Stage<'_>,
    names: [&str; N],
    separators: &[usize],
    outputs: impl FnOnce([Expr; N]) -> Vec<Expr>,
) -> Built<IndexMap> {
    let shape = stage.layout_shape()?;
    let vars: Vec<Var> = names.iter().zip(&shape).map(|(name, extent)| Var::new(*name, extent.dtype())).collect();
    let indices = std::array::from_fn(|at| Expr::from(&vars[at]));
    IndexMap::new(vars, shape, outputs(indices), separators.to_vec())
        .map_err(|error| Diagnostic::error("index-map", None, error.to_string()))
}

/// The axes of a stage.
fn axes<const N: usize>(stage: &Stage<'_>) -> [Loop; N] {
    stage.axes().try_into().unwrap()
}

/// The program that a Python text lowers to.
fn from_text(text: &str) -> Vec<Lowered> {
    let tree = tilewright_script::te::read(text).unwrap();
    evaluate(&tree, None).unwrap_or_else(|errors| panic!("{errors:#?}"))
}

/// Both lower to the same TVMScript, compute definitions of the same tensors, and make as many claims.
fn assert_same(built: &Lowered, read: &Lowered) {
    let text = |lowered: &Lowered| tilewright_script::print_func(&lowered.func);
    assert_eq!(text(built), text(read));
    let stages = |lowered: &Lowered| -> Vec<String> {
        let stages = lowered.definition.stages.iter();
        stages.map(|stage| format!("{} {:?}", stage.buffer, stage.buffer.shape.len())).collect()
    };
    assert_eq!(stages(built), stages(read));
    let claims = |lowered: &Lowered| -> Vec<String> {
        let list = |exprs: &[Expr]| exprs.iter().map(ToString::to_string).collect::<Vec<_>>();
        let claims = lowered.evidence.stores.iter();
        claims.map(|claim| format!("{} {:?} {:?}", claim.tensor, claim.role, list(&claim.axes))).collect()
    };
    assert_eq!(claims(built), claims(read));
}
