//! What a file says twice, or in a form that no report can show: declared outputs, and names.

use tilewright_ir::Diagnostic;

use super::fault;
use super::messages::{GraphProto, ValueInfoProto};
use super::tensors::FLOAT32;

/// Every name has to be printable: a control character would reach the terminal.
///
/// # Errors
/// `onnx-name` for the first name with a control character.
pub(super) fn names(graph: &GraphProto) -> Result<(), Diagnostic> {
    let infos = graph.input.iter().chain(&graph.output).map(|info| &info.name);
    let constants = graph.initializer.iter().map(|tensor| &tensor.name);
    let nodes = graph.node.iter().flat_map(|node| {
        let own = [&node.name, &node.op_type, &node.domain];
        own.into_iter().chain(&node.input).chain(&node.output).chain(node.attribute.iter().map(|one| &one.name))
    });
    match infos.chain(constants).chain(nodes).find(|name| name.chars().any(char::is_control)) {
        None => Ok(()),
        Some(name) => Err(fault("onnx-name", format!("the name {name:?} has a control character"))
            .with_help("rename it: reports, pictures and files name values and nodes")),
    }
}

/// An output has the element type and the shape that the file declares, as far as it does.
///
/// # Errors
/// `onnx-output`.
pub(super) fn output(info: &ValueInfoProto, shape: &[u64]) -> Result<(), Diagnostic> {
    let wrong = |what: String| fault("onnx-output", format!("output `{}`: {what}", info.name));
    let Some(tensor) = info.r#type.as_ref().and_then(|ty| ty.tensor_type.as_ref()) else { return Ok(()) };
    if tensor.elem_type != FLOAT32 {
        return Err(wrong(format!("its element type is number {}, and float32 is computed", tensor.elem_type)));
    }
    let Some(declared) = &tensor.shape else { return Ok(()) };
    let fits = |(dim, &extent): (&super::messages::DimensionProto, &u64)| {
        dim.dim_value.is_none_or(|value| u64::try_from(value) == Ok(extent))
    };
    if declared.dim.len() == shape.len() && declared.dim.iter().zip(shape).all(fits) {
        return Ok(());
    }
    let extent = |dim: &super::messages::DimensionProto| {
        dim.dim_value.map_or_else(|| dim.dim_param.clone().unwrap_or_default(), |value| value.to_string())
    };
    let declared: Vec<String> = declared.dim.iter().map(extent).collect();
    Err(wrong(format!("it is declared as [{}], and {shape:?} is computed", declared.join(", "))))
}
