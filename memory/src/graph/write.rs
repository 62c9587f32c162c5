//! Writes a graph and its plan as the JSON of TVM's graph executor, with the fields of the texture RFC.
//!
//! `storage_id`, `storage_scope` and `shape` are TVM's. Extensions express what the format lacks: `storage_offset`
//! (bytes, or `[x, y]` in texels), `storage_pool` (the pools: `[bytes]`, or `[width, height, 4]`), `axis_separators`,
//! `tensor_name` and `tensor_index`, because tensors of a [`NamedGraph`] have names and an order of their own, and `tensor_role`, which
//! tells constants from other inputs and is left out if there are none.
//! The output reads back as the same graph and plan.

use std::fmt::Write as _;

use serde::Serialize;
use serde_json::{Value, json};
use tilewright_ir::{CHANNELS, Diagnostic, GraphTensor, MemoryPlan, Pool, Region, Room, Scope, TensorRole};

use super::storage::Offset;
use super::{NamedGraph, check, executor};

/// The JSON of a graph and its plan, with one line for each node and each pool, and a newline at the end.
///
/// # Errors
/// A graph with a defect ([`check::check`]); a plan whose number of places differs from the number of tensors
/// (`graph-storage`).
pub fn write(graph: &NamedGraph, plan: Option<&MemoryPlan>) -> Result<String, Diagnostic> {
    if let Some(fault) = check::check(&graph.graph).into_iter().next() {
        return Err(fault.diagnostic);
    }
    let tensors = &graph.graph.tensors;
    let mut nodes = Nodes::new(graph);
    for &input in &graph.inputs {
        nodes.add(&[input], |_| json!({"op": "null", "name": tensors[input].name, "inputs": []}));
    }
    for (step, function) in graph.graph.steps.iter().zip(&graph.functions) {
        nodes.add(&step.writes, |nodes| {
            let inputs: Vec<Value> = step.reads.iter().map(|&read| nodes.place(read)).collect();
            let mut attrs = json!({
                "num_inputs": inputs.len().to_string(),
                "num_outputs": step.writes.len().to_string(),
                "flatten_data": "0",
            });
            if let Some(function) = function {
                attrs["func_name"] = json!(function);
            }
            json!({"op": "tvm_op", "name": step.name, "inputs": inputs, "attrs": attrs})
        });
    }
    // The lists in `attrs` follow the order of the nodes' outputs, not the order of the tensors.
    let order = &nodes.order;
    let all = |value: &dyn Fn(&GraphTensor) -> Value| order.iter().map(|&at| value(&tensors[at])).collect::<Value>();
    let mut attrs = vec![
        ("shape", "list_shape", all(&|tensor| json!(tensor.shape))),
        ("dltype", "list_str", all(&|tensor| json!(tensor.dtype.to_string()))),
        ("storage_scope", "list_str", all(&|tensor| json!(scope(tensor.scope)))),
        ("axis_separators", "list_shape", all(&|tensor| json!(tensor.axis_separators))),
        ("tensor_name", "list_str", all(&|tensor| json!(tensor.name))),
        ("tensor_index", "list_int", json!(order)),
    ];
    if tensors.iter().any(|tensor| tensor.role == TensorRole::Constant) {
        attrs.push(("tensor_role", "list_str", all(&|tensor| json!(role(tensor.role)))));
    }
    if let Some(plan) = plan {
        let (ids, offsets) = storage(plan, order, tensors.len())?;
        attrs.push(("storage_id", "list_int", json!(ids)));
        attrs.push(("storage_offset", "list_offset", json!(offsets)));
    }
    let attrs: Vec<String> =
        attrs.into_iter().map(|(name, kind, list)| format!("{}: {}", json!(name), json!([kind, list]))).collect();
    let heads: Vec<Value> = graph.outputs.iter().map(|&output| nodes.place(output)).collect();
    let mut out = format!("{{\"nodes\": {},\n", lines(&nodes.written));
    let _ = writeln!(out, "\"arg_nodes\": {},", json!(nodes.arguments));
    let _ = writeln!(out, "\"heads\": {},", json!(heads));
    let _ = writeln!(out, "\"node_row_ptr\": {},", json!(nodes.rows));
    if let Some(plan) = plan {
        let pools: Vec<Value> = plan.pools.iter().enumerate().map(pool).collect();
        let _ = writeln!(out, "\"storage_pool\": {},", lines(&pools));
    }
    let _ = writeln!(out, "\"attrs\": {{\n  {}}}}}", attrs.join(",\n  "));
    Ok(out)
}

/// TVM's name of a scope, such as `global.texture-weight`.
fn scope(scope: Scope) -> String {
    if scope.is_texture() { format!("global.{}", scope.name().replace(':', "-")) } else { scope.name().to_owned() }
}

/// The role of a tensor in the list `tensor_role`. Only constants have to be told: the nodes tell everything else.
fn role(role: TensorRole) -> &'static str {
    match role {
        TensorRole::Constant => executor::CONSTANT,
        TensorRole::Input | TensorRole::Output | TensorRole::Intermediate => "",
    }
}

/// A JSON list with one element per line.
fn lines<T: Serialize>(rows: &[T]) -> String {
    let rows: Vec<String> = rows.iter().map(|row| json!(row).to_string()).collect();
    if rows.is_empty() { "[]".to_owned() } else { format!("[\n  {}]", rows.join(",\n  ")) }
}

/// The lists `storage_id` and `storage_offset`, for tensors in this order.
fn storage(plan: &MemoryPlan, order: &[usize], n: usize) -> Result<(Vec<usize>, Vec<Offset>), Diagnostic> {
    if plan.places.len() != n {
        let message = format!("the plan has {} places for {n} tensors", plan.places.len());
        return Err(Diagnostic::error("graph-storage", None, message));
    }
    let places = || order.iter().map(|&at| plan.places[at]);
    let offset = |region| match region {
        Region::Bytes { offset, .. } => Offset::Byte(offset),
        Region::Texels { x, y, .. } => Offset::Texel([x, y]),
    };
    Ok((places().map(|place| place.pool).collect(), places().map(|place| offset(place.region)).collect()))
}

/// An element of `storage_pool`.
fn pool((id, pool): (usize, &Pool)) -> Value {
    let shape = match pool.room {
        Room::Bytes(bytes) => vec![bytes],
        Room::Texels { width, height } => vec![width, height, CHANNELS.into()],
    };
    json!({
        "storage_id": id, "storage_scope": scope(pool.scope), "dtype": pool.dtype.to_string(), "shape": shape,
    })
}

/// The nodes written so far, and the node that produces each tensor.
struct Nodes<'a> {
    graph: &'a NamedGraph,
    written: Vec<Value>,
    rows: Vec<usize>,
    arguments: Vec<usize>,
    /// The tensors in the order of the outputs of the nodes.
    order: Vec<usize>,
    /// The node and the number of the output that produce each tensor.
    places: Vec<Option<(usize, usize)>>,
    /// The views that refer directly to each tensor.
    views: Vec<Vec<usize>>,
}

impl<'a> Nodes<'a> {
    fn new(graph: &'a NamedGraph) -> Self {
        let n = graph.graph.tensors.len();
        let mut views: Vec<Vec<usize>> = vec![Vec::new(); n];
        for (at, tensor) in graph.graph.tensors.iter().enumerate() {
            if let Some(of) = tensor.view_of {
                views[of].push(at);
            }
        }
        let (nodes, order, arguments) = (Vec::new(), Vec::new(), Vec::new());
        Self { graph, written: nodes, rows: vec![0], arguments, order, places: vec![None; n], views }
    }

    /// `[node, output, version]` of a tensor; the version is always 0.
    fn place(&self, tensor: usize) -> Value {
        let (node, output) = self.places[tensor].unwrap_or_default();
        json!([node, output, 0])
    }

    /// Adds a node that produces these tensors, followed by a node for each of their views, direct and indirect.
    fn add(&mut self, outputs: &[usize], node: impl FnOnce(&Self) -> Value) {
        let node = node(self);
        self.push(outputs, node);
        let mut pending: Vec<usize> = outputs.iter().rev().copied().collect();
        while let Some(of) = pending.pop() {
            let views = self.views[of].clone();
            for &view in &views {
                let attrs =
                    json!({"func_name": executor::VIEW, "num_inputs": "1", "num_outputs": "1", "flatten_data": "0"});
                let name = &self.graph.graph.tensors[view].name;
                let node = json!({"op": "tvm_op", "name": name, "inputs": [self.place(of)], "attrs": attrs});
                self.push(&[view], node);
            }
            pending.extend(views.into_iter().rev());
        }
    }

    /// Adds one node and numbers its outputs.
    fn push(&mut self, outputs: &[usize], node: Value) {
        let at = self.written.len();
        for (output, &tensor) in outputs.iter().enumerate() {
            self.places[tensor] = Some((at, output));
            self.order.push(tensor);
            if self.graph.graph.tensors[tensor].role.is_given() {
                self.arguments.push(at);
            }
        }
        self.written.push(node);
        self.rows.push(self.order.len());
    }
}
