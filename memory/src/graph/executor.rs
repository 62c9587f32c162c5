//! Reads the JSON of TVM's graph executor, including the memory plan if there is one.
//!
//! ```json
//! {"nodes": [{"op": "null", "name": "x", "inputs": []},
//!            {"op": "tvm_op", "name": "relu", "inputs": [[0, 0, 0]],
//!             "attrs": {"func_name": "relu4", "num_inputs": "1", "num_outputs": "1", "flatten_data": "0"}}],
//!  "arg_nodes": [0], "heads": [[1, 0, 0]], "node_row_ptr": [0, 1, 2],
//!  "attrs": {"shape": ["list_shape", [[3, 5], [3, 5]]], "dltype": ["list_str", ["float32", "float32"]],
//!            "storage_id": ["list_int", [0, 1]], "storage_scope": ["list_str", ["global", "global"]]}}
//! ```
//!
//! The lists in `attrs` have one element for each output of each node, in order; `node_row_ptr[n]` is the position of
//! the first output of node `n`. Such a position is called an *entry* below.

use std::collections::HashSet;

use serde::Deserialize;
use serde::de::IgnoredAny;
use tilewright_ir::{DataType, Diagnostic, GraphStep, GraphTensor, Scope, Span, TensorRole};

use super::check::{self, Site};
use super::json::{Number, Numbers, Strict, Text, parse, sorted_and_truncated, unreadable};
use super::{Document, NamedGraph, storage};

/// The `func_name` of a node that only gives its input another shape.
pub(super) const VIEW: &str = "__nop";
/// The role of a constant in the list `tensor_role`.
pub(super) const CONSTANT: &str = "constant";

/// The top-level object.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FileText<'a> {
    #[serde(borrow)]
    nodes: Vec<Strict<NodeText<'a>>>,
    arg_nodes: Numbers<usize>,
    heads: Vec<Numbers<usize>>,
    attrs: Strict<AttrsText<'a>>,
    node_row_ptr: Numbers<usize>,
    storage_pool: Option<Vec<Strict<storage::PoolText<'a>>>>,
}

/// An element of `nodes`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NodeText<'a> {
    #[serde(borrow)]
    op: Text<'a>,
    name: Text<'a>,
    inputs: Vec<Numbers<usize>>,
    attrs: Option<Strict<NodeAttrs<'a>>>,
    #[serde(rename = "control_deps")]
    _control_deps: Option<IgnoredAny>,
}

/// Attributes of a node. Unknown attributes are allowed, because TVM and its users add their own.
#[derive(Deserialize)]
struct NodeAttrs<'a> {
    #[serde(borrow)]
    func_name: Option<Text<'a>>,
    num_outputs: Option<Text<'a>>,
}

/// A list of `attrs`: a tag that names the type of its elements, then the elements.
type Tagged<'a, T> = (Text<'a>, Vec<T>);

/// The object `attrs`, whose lists have one element for each entry. Unknown attributes are allowed.
#[derive(Deserialize)]
pub(super) struct AttrsText<'a> {
    #[serde(borrow)]
    shape: Tagged<'a, Numbers<u64>>,
    dltype: Tagged<'a, Text<'a>>,
    pub(super) storage_id: Option<Tagged<'a, Number<usize>>>,
    pub(super) storage_offset: Option<Tagged<'a, storage::Offset>>,
    storage_scope: Option<Tagged<'a, Text<'a>>>,
    axis_separators: Option<Tagged<'a, Numbers<usize>>>,
    tensor_index: Option<Tagged<'a, Number<usize>>>,
    tensor_name: Option<Tagged<'a, Text<'a>>>,
    tensor_role: Option<Tagged<'a, Text<'a>>>,
}

fn error(message: impl Into<String>) -> Diagnostic {
    Diagnostic::error("graph-json", None, message)
}

/// Reads a graph and its plan.
///
/// # Errors
/// As [`super::read`].
pub(super) fn read(text: &str) -> Result<Document, Vec<Diagnostic>> {
    let Strict(file) = parse::<Strict<FileText<'_>>>(text).map_err(|fault| vec![fault])?;
    let reader = Reader { text, file: &file, n_entries: entries(&file, text).map_err(|fault| vec![fault])? };
    let (graph, index) = reader.graph()?;
    let faults = check::check(&graph.graph);
    if !faults.is_empty() {
        let mut entry_of = vec![0; index.len()];
        index.iter().enumerate().for_each(|(entry, &tensor)| entry_of[tensor] = entry);
        return Err(sorted_and_truncated(
            faults.into_iter().map(|defect| reader.with_span(defect, &graph, &entry_of)).collect(),
        ));
    }
    let Strict(attrs) = &file.attrs;
    let plan = storage::plan(attrs, file.storage_pool.as_deref(), &graph.graph, &index, text);
    Ok(Document { plan: plan.map_err(|fault| vec![fault])?, graph })
}

/// The number of entries.
///
/// # Errors
/// The tables do not agree with one another (`graph-json`).
fn entries(file: &FileText<'_>, text: &str) -> Result<usize, Diagnostic> {
    let rows = &file.node_row_ptr;
    let n_nodes = file.nodes.len();
    if rows.len() != n_nodes + 1 || rows.first() != Some(&0) {
        let message = format!("`node_row_ptr` has {} numbers for {n_nodes} nodes", rows.len());
        return Err(error(message).with_help("it begins with 0 and has one more number than there are nodes"));
    }
    for (Strict(node), row) in file.nodes.iter().zip(rows.windows(2)) {
        let declared = node.attrs.as_ref().and_then(|Strict(attrs)| attrs.num_outputs.as_ref());
        // `None` if the row decreases. After this loop every range of `Reader::outputs` is within the entries.
        let found = row[1].checked_sub(row[0]);
        let fits = declared.is_none_or(|declared| declared.as_str().parse().ok() == found);
        if found.is_none() || !fits || (node.op.as_str() == "null" && found != Some(1)) {
            let message = format!("`node_row_ptr` goes from {} to {} at node `{}`", row[0], row[1], node.name.as_str());
            let help = "the difference is the number of the node's outputs; an input has one";
            return Err(Diagnostic::error("graph-json", node.name.span(text), message).with_help(help));
        }
    }
    let n = rows.last().copied().unwrap_or(0);
    let Strict(attrs) = &file.attrs;
    // The reader indexes these lists by entry without further checks.
    let lists = [
        ("shape", "list_shape", Some((&attrs.shape.0, attrs.shape.1.len()))),
        ("dltype", "list_str", Some((&attrs.dltype.0, attrs.dltype.1.len()))),
        ("storage_id", "list_int", attrs.storage_id.as_ref().map(|list| (&list.0, list.1.len()))),
        ("storage_offset", "list_offset", attrs.storage_offset.as_ref().map(|list| (&list.0, list.1.len()))),
        ("storage_scope", "list_str", attrs.storage_scope.as_ref().map(|list| (&list.0, list.1.len()))),
        ("axis_separators", "list_shape", attrs.axis_separators.as_ref().map(|list| (&list.0, list.1.len()))),
        ("tensor_index", "list_int", attrs.tensor_index.as_ref().map(|list| (&list.0, list.1.len()))),
        ("tensor_name", "list_str", attrs.tensor_name.as_ref().map(|list| (&list.0, list.1.len()))),
        ("tensor_role", "list_str", attrs.tensor_role.as_ref().map(|list| (&list.0, list.1.len()))),
    ];
    for (name, kind, list) in lists {
        let Some((declared, len)) = list else { continue };
        if declared.as_str() != kind || len != n {
            let message = format!("attribute `{name}` is a `{}` of {len}, not a `{kind}` of {n}", declared.as_str());
            let help = "it has one element for each output of each node";
            return Err(Diagnostic::error("graph-json", declared.span(text), message).with_help(help));
        }
    }
    Ok(n)
}

/// The file after [`entries`] has checked the lengths of its tables.
struct Reader<'a> {
    text: &'a str,
    file: &'a FileText<'a>,
    n_entries: usize,
}

impl Reader<'_> {
    /// The graph, and the number of the tensor of each entry.
    fn graph(&self) -> Result<(NamedGraph, Vec<usize>), Vec<Diagnostic>> {
        let index = self.index().map_err(|fault| vec![fault])?;
        let mut faults = Vec::new();
        let mut tensors = self.tensors(&index, &mut faults);
        let mut named = NamedGraph::default();
        for (at, Strict(node)) in self.file.nodes.iter().enumerate() {
            let mut reads = Vec::new();
            for input in &node.inputs {
                match self.entry(input, at) {
                    Some(entry) => reads.push(index[entry]),
                    None => faults.push(self.no_entry(&format!("node `{}` reads", node.name.as_str()), input, at)),
                }
            }
            let writes: Vec<usize> = self.outputs(at).map(|entry| index[entry]).collect();
            let function = node.attrs.as_ref().and_then(|Strict(attrs)| attrs.func_name.as_ref()).map(Text::as_str);
            // Inputs, views and steps share one list in this format; only the op and the function tell them apart.
            match (node.op.as_str(), function) {
                ("null", _) => self.outputs(at).for_each(|entry| tensors[index[entry]].role = self.given_role(entry)),
                ("tvm_op", Some(VIEW)) => {
                    if let (&[of], &[view]) = (&reads[..], &writes[..]) {
                        tensors[view].view_of = Some(of);
                    } else {
                        let message = format!("node `{}` is a view of {} tensors", node.name.as_str(), reads.len());
                        faults.push(Diagnostic::error("graph-json", node.name.span(self.text), message));
                    }
                }
                ("tvm_op", function) => {
                    named.graph.steps.push(GraphStep { name: node.name.as_str().to_owned(), reads, writes });
                    named.functions.push(function.map(str::to_owned));
                }
                (op, _) => {
                    let message = format!("node `{}` is a `{op}`", node.name.as_str());
                    let fault = Diagnostic::error("graph-json", node.op.span(self.text), message);
                    faults.push(fault.with_help("inputs are `null`, everything else is a `tvm_op`"));
                }
            }
        }
        named.inputs = self.arguments(&index, &mut faults);
        faults.extend(self.roles(&index, &tensors));
        for head in &self.file.heads {
            match self.entry(head, self.file.nodes.len()) {
                Some(entry) => named.outputs.push(index[entry]),
                None => faults.push(self.no_entry("`heads` name", head, self.file.nodes.len())),
            }
        }
        for &output in &named.outputs {
            if tensors[output].role == TensorRole::Intermediate {
                tensors[output].role = TensorRole::Output;
            }
        }
        named.graph.tensors = tensors;
        if faults.is_empty() { Ok((named, index)) } else { Err(sorted_and_truncated(faults)) }
    }

    /// The role of an input: that of a constant, if the file says so.
    fn given_role(&self, entry: usize) -> TensorRole {
        let Strict(attrs) = &self.file.attrs;
        let said = attrs.tensor_role.as_ref().map(|(_, roles)| roles[entry].as_str());
        if said == Some(CONSTANT) { TensorRole::Constant } else { TensorRole::Input }
    }

    /// Roles that are not known, and constants that are no inputs.
    fn roles(&self, index: &[usize], tensors: &[GraphTensor]) -> Vec<Diagnostic> {
        let Strict(attrs) = &self.file.attrs;
        let Some((_, roles)) = &attrs.tensor_role else { return Vec::new() };
        let is_wrong = |(role, tensor): (&Text<'_>, &GraphTensor)| match role.as_str() {
            "" => false,
            CONSTANT => tensor.role != TensorRole::Constant,
            _ => true,
        };
        let entries = roles.iter().zip(index.iter().map(|&at| &tensors[at]));
        let wrong = entries.filter(|&(role, tensor)| is_wrong((role, tensor)));
        let fault = |(role, tensor): (&Text<'_>, &GraphTensor)| {
            let message = format!("`tensor_role` of `{}` is `{}`", tensor.name, role.as_str());
            let help = "it is `constant` for an input that is the same in every run, and empty for everything else";
            Diagnostic::error("graph-json", role.span(self.text), message).with_help(help)
        };
        wrong.map(fault).collect()
    }

    /// The entries of a node's outputs.
    fn outputs(&self, node: usize) -> std::ops::Range<usize> {
        self.file.node_row_ptr[node]..self.file.node_row_ptr[node + 1]
    }

    /// The entry that `[node, output, version]` denotes. `None` if there is none, or if the node is not before node
    /// `before`.
    fn entry(&self, place: &[usize], before: usize) -> Option<usize> {
        let ([node, output] | [node, output, _]) = *place else { return None };
        (node < before).then(|| self.outputs(node).nth(output)).flatten()
    }

    /// The error that `place` denotes no earlier output; `who` names the part of the file that mentions it.
    fn no_entry(&self, who: &str, place: &[usize], before: usize) -> Diagnostic {
        let span = self.file.nodes.get(before).and_then(|Strict(node)| node.name.span(self.text));
        let message = format!("{who} {place:?}, which is no output of a node before");
        Diagnostic::error("graph-unknown-name", span, message).with_help("an output is [node, output, version]")
    }

    /// The number of the tensor of each entry: `tensor_index` if the file has it, otherwise the entries' order.
    fn index(&self) -> Result<Vec<usize>, Diagnostic> {
        let Strict(attrs) = &self.file.attrs;
        let Some((_, index)) = &attrs.tensor_index else { return Ok((0..self.n_entries).collect()) };
        let index: Vec<usize> = index.iter().map(|number| number.0).collect();
        let mut sorted = index.clone();
        sorted.sort_unstable();
        if !sorted.iter().copied().eq(0..self.n_entries) {
            return Err(error("`tensor_index` does not name each tensor once"));
        }
        Ok(index)
    }

    /// The tensors in the order of their numbers. An unreadable type or scope is reported and replaced, so that
    /// reading goes on and later errors are found, too.
    fn tensors(&self, index: &[usize], faults: &mut Vec<Diagnostic>) -> Vec<GraphTensor> {
        let Strict(attrs) = &self.file.attrs;
        let names = self.names();
        let mut tensors: Vec<(usize, GraphTensor)> = Vec::with_capacity(self.n_entries);
        for (entry, name) in names.into_iter().enumerate() {
            let dtype = &attrs.dltype.1[entry];
            let dtype = dtype.as_str().parse::<DataType>().unwrap_or_else(|error| {
                faults.push(unreadable(dtype, self.text, "graph-type", &error));
                DataType::INT32
            });
            let scope = attrs.storage_scope.as_ref().map_or(Scope::Global, |(_, scopes)| {
                scopes[entry].as_str().parse().unwrap_or_else(|error| {
                    faults.push(unreadable(&scopes[entry], self.text, "graph-scope", &error));
                    Scope::Global
                })
            });
            let separators = attrs.axis_separators.as_ref().map(|(_, separators)| separators[entry].to_vec());
            tensors.push((
                index[entry],
                GraphTensor {
                    name,
                    shape: attrs.shape.1[entry].to_vec(),
                    dtype,
                    scope,
                    axis_separators: separators.unwrap_or_default(),
                    view_of: None,
                    role: TensorRole::Intermediate,
                },
            ));
        }
        // `Self::index` made sure that the numbers are a permutation, so each tensor moves to the place of its number.
        tensors.sort_by_key(|(at, _)| *at);
        tensors.into_iter().map(|(_, tensor)| tensor).collect()
    }

    /// The name of each entry's tensor: `tensor_name` if the file has it, otherwise the node's name, with the
    /// output's number if the node has several outputs. TVM gives all views one name, so the number of the entry is
    /// appended to a name that is taken.
    fn names(&self) -> Vec<String> {
        let Strict(attrs) = &self.file.attrs;
        if let Some((_, names)) = &attrs.tensor_name {
            return names.iter().map(|name| name.as_str().to_owned()).collect();
        }
        let mut seen: HashSet<String> = HashSet::new();
        let mut names = Vec::with_capacity(self.n_entries);
        for (at, Strict(node)) in self.file.nodes.iter().enumerate() {
            let name = node.name.as_str();
            let outputs = self.outputs(at);
            for (k, entry) in outputs.clone().enumerate() {
                let base = if outputs.len() == 1 { name.to_owned() } else { format!("{name}:{k}") };
                // Numbers of entries are unique, so the new name can still equal only a name of the file that happens
                // to end in this way; the check of the graph reports that.
                let unique = if seen.contains(&base) { format!("{base}.{entry}") } else { base };
                seen.insert(unique.clone());
                names.push(unique);
            }
        }
        names
    }

    /// The inputs in the order of `arg_nodes`, which has to list each `null` node once and nothing else.
    fn arguments(&self, index: &[usize], faults: &mut Vec<Diagnostic>) -> Vec<usize> {
        let nodes = &self.file.nodes;
        let mut given = HashSet::new();
        let mut inputs = Vec::new();
        for &node in self.file.arg_nodes.iter() {
            let is_input = nodes.get(node).is_some_and(|Strict(node)| node.op.as_str() == "null");
            if !is_input || !given.insert(node) {
                faults.push(error(format!("`arg_nodes` has {node}, which is no input or stands there twice")));
                continue;
            }
            inputs.extend(self.outputs(node).map(|entry| index[entry]));
        }
        for (at, Strict(node)) in nodes.iter().enumerate() {
            if node.op.as_str() == "null" && !given.contains(&at) {
                let message = format!("input `{}` is not in `arg_nodes`", node.name.as_str());
                faults.push(Diagnostic::error("graph-json", node.name.span(self.text), message));
            }
        }
        inputs
    }

    /// Adds to a defect the span of the node that it concerns; `entry_of` gives the entry of each tensor.
    fn with_span(&self, defect: check::Defect, graph: &NamedGraph, entry_of: &[usize]) -> Diagnostic {
        let node_of_tensor = |tensor: usize| {
            let entry = *entry_of.get(tensor)?;
            Some(self.file.node_row_ptr.partition_point(|&first| first <= entry) - 1)
        };
        let node_of_step = |step: usize| node_of_tensor(*graph.graph.steps.get(step)?.writes.first()?);
        let node = match defect.site {
            Site::Graph => None,
            Site::Tensor(at) | Site::ViewOf(at) => node_of_tensor(at),
            Site::Step(at) | Site::Read(at, _) | Site::Write(at, _) => node_of_step(at),
        };
        match node.and_then(|node| self.file.nodes.get(node)).and_then(|Strict(node)| node.name.span(self.text)) {
            Some(span) => defect.diagnostic.with_label(span, ""),
            None => defect.diagnostic,
        }
    }
}

/// The span of the name of the node that produces a tensor.
pub(super) fn place_of(text: &str, tensor: usize) -> Option<Span> {
    let Strict(file) = parse::<Strict<FileText<'_>>>(text).ok()?;
    let reader = Reader { text, file: &file, n_entries: entries(&file, text).ok()? };
    let entry = reader.index().ok()?.into_iter().position(|at| at == tensor)?;
    let node = file.node_row_ptr.partition_point(|&first| first <= entry).checked_sub(1)?;
    let Strict(node) = file.nodes.get(node)?;
    node.name.span(text)
}
