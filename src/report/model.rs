//! The report on a model: the field `model` of `tilewright.plan/1`, and its text.
//!
//! ```json
//! {"target":"opencl --device=adreno","nodes":3,"kernels":4,"conversions":1,"constant_bytes":812,
//!  "values":[{"value":"data","node":null,"shape":[1,3,7,9],"scope":"global","reason":"the caller writes it"}]}
//! ```

use serde::Serialize;

use super::lines::{line, table};
use super::text::Style;
use crate::network::lower::Network;
use crate::network::model::{Model, Op};
use crate::network::scopes::Storage;

/// A model and the places of its values.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ModelReport {
    /// The target.
    pub target: String,
    /// The number of nodes.
    pub nodes: usize,
    /// The number of kernels; steps of one signature share a kernel.
    pub kernels: usize,
    /// The number of steps that convert a tensor into another arrangement.
    pub conversions: usize,
    /// Bytes of the packed constants.
    pub constant_bytes: u64,
    /// The values that are no constants.
    pub values: Vec<ValueRow>,
    /// For each step whether it only converts a tensor into another arrangement.
    #[serde(skip)]
    pub converts: Vec<bool>,
    /// Whether the text lists the values.
    #[serde(skip)]
    pub explain: bool,
}

/// The place of a value, and why.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ValueRow {
    /// Its name.
    pub value: String,
    /// The node that writes it; none for an input.
    pub node: Option<String>,
    /// Its logical extents.
    pub shape: Vec<u64>,
    /// The scope in which it is written.
    pub scope: &'static str,
    /// The reason.
    pub reason: String,
}

impl ModelReport {
    /// The report on a model that was lowered for a target.
    pub fn new(model: &Model, storage: &[Option<Storage>], network: &Network, target: &str, explain: bool) -> Self {
        let writer = |at: usize| model.nodes.iter().find(|node| node.output == at);
        let values = model.values.iter().zip(storage).enumerate().filter_map(|(at, (value, storage))| {
            let storage = storage.as_ref()?;
            Some(ValueRow {
                value: value.name.clone(),
                node: writer(at).map(|node| format!("{} `{}`", node.op.name(), node.name)),
                shape: value.shape.clone(),
                scope: storage.arrangement.scope().name(),
                reason: storage.reason.sentence(model),
            })
        });
        let views = model.nodes.iter().filter(|node| node.op == Op::Reshape).count();
        Self {
            target: target.to_owned(),
            nodes: model.nodes.len(),
            kernels: network.programs.len(),
            conversions: (network.graph.graph.steps.len() + views).saturating_sub(model.nodes.len()),
            constant_bytes: network.constant_bytes(model),
            values: values.collect(),
            converts: converts(network),
            explain,
        }
    }
}

/// For each step whether its kernel is a conversion.
fn converts(network: &Network) -> Vec<bool> {
    let conversions: Vec<&str> = network
        .programs
        .iter()
        .zip(&network.signatures)
        .filter(|(_, signature)| signature.op == Op::Reshape)
        .map(|(program, _)| program.func.name.as_str())
        .collect();
    let functions = network.graph.functions.iter();
    functions.map(|name| name.as_deref().is_some_and(|name| conversions.contains(&name))).collect()
}

/// The report for people.
pub(super) fn text(out: &mut String, report: &ModelReport, style: Style) {
    let ModelReport { target, nodes, kernels, conversions, constant_bytes, .. } = report;
    let said = format!(
        "  target {target}: {nodes} nodes, {kernels} kernels, {conversions} conversions, {constant_bytes} bytes of constants"
    );
    line(out, &said, style);
    if !report.explain {
        return;
    }
    out.push('\n');
    let mut rows = vec![["value", "node", "shape", "scope", "reason"].map(str::to_owned).to_vec()];
    rows.extend(report.values.iter().map(|row| {
        let node = row.node.clone().unwrap_or_default();
        vec![row.value.clone(), node, format!("{:?}", row.shape), row.scope.to_owned(), row.reason.clone()]
    }));
    table(out, &rows, style);
}
