//! The program of a definition: its nests one after the other, on the parameters of a given function.
//!
//! ```text
//! C[i] = C.old[i] + sum over k of A[i, k]        for i: C.old[i] = C[i]
//!                                                for i: C[i] = C.old[i]
//!                                                       for k: C[i] = C[i] + A[i, k]
//! ```
//!
//! What it leaves in its parameters is what the definition says, with the elements that the call found for the inputs that stand for
//! them: each tensor is written once, before it is read.

use std::sync::Arc;

use tilewright_ir::{Axis, Buffer, Definition, Expr, ForKind, Kept, PrimFunc, Stage, StageBody, Stmt, StmtKind, Var};

use super::summands::not_well_formed;

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
    let computed = definition.stages.iter().map(|stage| &stage.buffer);
    let tensors: Vec<&Buffer> = computed.chain(kept.iter().map(|kept| &kept.tensor)).collect();
    for (position, tensor) in tensors.iter().enumerate() {
        let is_param = |(_, param): &(Var, Buffer)| param.aliases(tensor) && param != *tensor;
        if func.buffer_map.iter().any(is_param) || tensors[..position].iter().any(|other| other.aliases(tensor)) {
            return Err(format!("`{tensor}` shares its memory with another tensor"));
        }
    }
    let assert = |cond: &Expr| Stmt::new(StmtKind::Assert { cond: cond.clone(), message: String::new() });
    let nests = copies.iter().chain(&definition.stages).map(|stage| stage.nest(ForKind::Serial));
    let mut body = Stmt::seq(nests.collect());
    for stage in definition.stages.iter().rev().chain(copies.iter().rev()) {
        if !func.buffer_map.iter().any(|(_, param)| *param == stage.buffer) {
            body = Stmt::new(StmtKind::Allocate { buffer: stage.buffer.clone(), body: Arc::new(body) });
        }
    }
    let body = Stmt::seq(asserted.iter().map(assert).chain([body]).collect());
    Ok(PrimFunc { body, ..func.clone() })
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
