//! Writes a graph as `tilewright.graph/1`, the native format. Outside of the tests there is only a reader for it.

use serde_json::{Value, json};
use tilewright_ir::{GraphStep, GraphTensor};

use tilewright_memory::graph::NamedGraph;

/// The JSON of a graph. An output that is listed several times is written once.
pub fn native(graph: &NamedGraph) -> Value {
    let tensors = &graph.graph.tensors;
    let names = |places: &[usize]| places.iter().map(|&at| tensors[at].name.clone()).collect::<Vec<_>>();
    let tensor = |tensor: &GraphTensor| {
        let mut row = json!({
            "name": tensor.name, "shape": tensor.shape, "dtype": tensor.dtype.to_string(),
            "scope": tensor.scope.name(), "axis_separators": tensor.axis_separators,
        });
        if let Some(of) = tensor.view_of {
            row["view_of"] = json!(tensors[of].name);
        }
        row
    };
    let step = |(step, function): (&GraphStep, &Option<String>)| {
        let mut row = json!({"name": step.name, "reads": names(&step.reads), "writes": names(&step.writes)});
        if let Some(function) = function {
            row["function"] = json!(function);
        }
        row
    };
    json!({
        "schema": "tilewright.graph/1",
        "tensors": tensors.iter().map(tensor).collect::<Vec<_>>(),
        "steps": graph.graph.steps.iter().zip(&graph.functions).map(step).collect::<Vec<_>>(),
        // The reader refuses a name that is listed twice, but a recipe may refer to one output several times.
        "inputs": names(&graph.inputs), "outputs": names(&once(&graph.outputs)),
    })
}

/// The list without repetitions, in the order of first occurrences.
pub(super) fn once(list: &[usize]) -> Vec<usize> {
    let mut seen = Vec::new();
    for &item in list {
        if !seen.contains(&item) {
            seen.push(item);
        }
    }
    seen
}
