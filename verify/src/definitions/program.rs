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

use tilewright_ir::{Axis, Buffer, Definition, Expr, ForKind, Holder, PrimFunc, Stage, StageBody, Stmt, StmtKind, Var};

use super::summands::not_well_formed;

/// The program that computes a definition, with the parameters and the assertions of a function.
///
/// # Errors
/// The definition is not well formed, or its parameters are not those of the function, followed by the tensors of `kept`.
pub fn program_of(
    func: &PrimFunc,
    asserted: &[Expr],
    definition: &Definition,
    kept: &[Holder],
) -> Result<PrimFunc, String> {
    let params = func.buffer_map.iter().map(|(_, buffer)| buffer);
    let expected: Vec<&Buffer> = params.chain(kept.iter().map(|holder| &holder.tensor)).collect();
    if definition.params.iter().collect::<Vec<_>>() != expected {
        return Err("the parameters of the definition are not those of the program".into());
    }
    if let Some(wrong) = not_well_formed(definition) {
        return Err(wrong);
    }
    if !func.attrs.layout_transform_map.is_empty() || !func.attrs.tile_layout.is_empty() {
        return Err("the program asks for other layouts".into());
    }
    let copies = kept.iter().map(|holder| copy(func, definition, holder)).collect::<Result<Vec<_>, _>>()?;
    let computed = definition.stages.iter().map(|stage| &stage.buffer);
    let tensors: Vec<&Buffer> = computed.chain(kept.iter().map(|holder| &holder.tensor)).collect();
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
fn copy(func: &PrimFunc, definition: &Definition, Holder { tensor, buffer }: &Holder) -> Result<Stage, String> {
    let is_param = |buffer: &Buffer| func.buffer_map.iter().any(|(_, param)| param == buffer);
    let is_input = definition.stage_of(tensor).is_none() && is_param(buffer) && !is_param(tensor);
    if !is_input || tensor.dtype != buffer.dtype || tensor.shape != buffer.shape || tensor.strides.is_some() {
        return Err(format!("`{tensor}` cannot stand for what `{buffer}` held"));
    }
    let axes = tensor.shape.iter().enumerate();
    let axes: Vec<Axis> = axes
        .map(|(axis, extent)| Axis { var: Var::new(format!("x{axis}"), extent.dtype()), extent: extent.clone() })
        .collect();
    let at = axes.iter().map(|axis| Expr::from(&axis.var)).collect::<Vec<_>>();
    Ok(Stage { buffer: tensor.clone(), axes, body: StageBody::Elementwise(Expr::load(buffer, at)) })
}
