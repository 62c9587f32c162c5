//! Reads ONNX files into a [`Model`]: attributes are decoded, shapes inferred and constants resolved.
//!
//! | in the file | in the model |
//! |---|---|
//! | initializers, `Constant`, `ConstantOfShape` | values with contents |
//! | `Reshape`, `Unsqueeze` and their like of a constant | a constant of another shape |
//! | `Dropout`, `Identity` | nothing: their output is another name of their input |
//! | any other node | a [`Node`] |
//!
//! Whatever is not understood is an error that names the node: an operator, an attribute, an element type, a shape that is not
//! known. Nothing is skipped. The messages are decoded by `prost`, which limits the depth of nesting; sizes are checked
//! before memory is taken for them.

mod attributes;
mod checks;
pub mod messages;
mod nodes;
mod tensors;

use std::collections::BTreeMap;

use prost::Message;
use tilewright_ir::Diagnostic;

use crate::model::{Contents, Model, Node, Op, Value};
use crate::shapes;
use attributes::Attributes;
use messages::{GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto};
use nodes::{Decoded, Operands};

/// Reads a model.
///
/// # Errors
/// `onnx-format` if the bytes are no ONNX file, `onnx-operator` for each node with an operator that is not supported,
/// `onnx-node` for a node with an unsupported attribute or wrong operands, `onnx-tensor` for a constant, `onnx-input` for
/// an input without a fixed shape, `onnx-output` for an output that is declared otherwise than it is computed, `onnx-name` for a name
/// that is missing, defined twice or not printable.
pub fn read(bytes: &[u8]) -> Result<Model, Vec<Diagnostic>> {
    let proto = ModelProto::decode(bytes).map_err(|error| {
        let message = format!("this is no ONNX model: {error}");
        vec![Diagnostic::error("onnx-format", None, message)]
    })?;
    let no_graph = || vec![Diagnostic::error("onnx-format", None, "this is no ONNX model: it has no graph")];
    let graph = proto.graph.as_ref().ok_or_else(no_graph)?;
    checks::names(graph).map_err(|fault| vec![fault])?;
    let unsupported = unsupported(graph);
    if !unsupported.is_empty() {
        return Err(unsupported);
    }
    let ours = proto.opset_import.iter().find(|set| set.domain.is_empty() || set.domain == "ai.onnx");
    let mut reader =
        Reader { model: Model::default(), names: BTreeMap::new(), opset: ours.map_or(1, |set| set.version) };
    reader.graph(graph).map_err(|fault| vec![fault])?;
    Ok(reader.model)
}

/// Returns the shape and the elements of a constant tensor.
///
/// # Errors
/// The element type is not supported, or the number of elements is not that of the shape.
pub fn tensor_of(tensor: &TensorProto) -> Result<(Vec<u64>, Contents), String> {
    tensors::read(tensor)
}

fn fault(code: &'static str, message: String) -> Diagnostic {
    Diagnostic::error(code, None, message)
}

/// How a node is called in messages and in the model.
fn label(node: &NodeProto, number: usize) -> String {
    if node.name.is_empty() { format!("{}_{number}", node.op_type) } else { node.name.clone() }
}

/// Every node whose operator is not supported.
fn unsupported(graph: &GraphProto) -> Vec<Diagnostic> {
    let is_ours = |node: &NodeProto| node.domain.is_empty() || node.domain == "ai.onnx";
    let unknown = graph.node.iter().enumerate().filter(|(_, node)| !is_ours(node) || !nodes::is_known(&node.op_type));
    let report = |(number, node): (usize, &NodeProto)| {
        let domain = if is_ours(node) { String::new() } else { format!(" of `{}`", node.domain) };
        let message = format!(
            "node `{}` has the operator `{}`{domain}, which is not supported",
            label(node, number),
            node.op_type
        );
        fault("onnx-operator", message).with_help(format!("supported are {}", nodes::OPERATORS.join(", ")))
    };
    unknown.map(report).collect()
}

/// A model while it is read.
struct Reader {
    model: Model,
    /// The value behind each name.
    names: BTreeMap<String, usize>,
    opset: i64,
}

impl Reader {
    fn graph(&mut self, graph: &GraphProto) -> Result<(), Diagnostic> {
        self.model.name.clone_from(&graph.name);
        if !graph.sparse_initializer.is_empty() {
            return Err(fault("onnx-tensor", "sparse initializers are not supported".to_owned()));
        }
        for tensor in &graph.initializer {
            let read = tensors::read(tensor);
            let (shape, contents) =
                read.map_err(|what| fault("onnx-tensor", format!("initializer `{}`: {what}", tensor.name)))?;
            self.add(&tensor.name, shape, Some(contents))?;
        }
        for input in &graph.input {
            if !self.names.contains_key(&input.name) {
                let shape = input_shape(input)?;
                let value = self.add(&input.name, shape, None)?;
                self.model.inputs.push(value);
            }
        }
        for (number, node) in graph.node.iter().enumerate() {
            self.node(node, &label(node, number))?;
        }
        for output in &graph.output {
            let message = || format!("output `{}` is computed by no node", output.name);
            let value = *self.names.get(&output.name).ok_or_else(|| fault("onnx-name", message()))?;
            if self.model.values[value].contents.is_some() || self.model.inputs.contains(&value) {
                let message = format!("output `{}` is a constant or an input, which is not supported", output.name);
                return Err(fault("onnx-name", message));
            }
            checks::output(output, &self.model.values[value].shape)?;
            if self.model.outputs.contains(&value) {
                return Err(fault("onnx-name", format!("output `{}` is listed twice", output.name)));
            }
            self.model.outputs.push(value);
        }
        if self.model.outputs.is_empty() {
            return Err(fault("onnx-name", "the graph has no outputs".to_owned()));
        }
        Ok(())
    }

    /// Adds a value under a new name.
    fn add(&mut self, name: &str, shape: Vec<u64>, contents: Option<Contents>) -> Result<usize, Diagnostic> {
        let value = self.model.values.len();
        self.bind(name, value)?;
        self.model.values.push(Value { name: name.to_owned(), shape, contents });
        Ok(value)
    }

    /// Gives a value a name.
    fn bind(&mut self, name: &str, value: usize) -> Result<(), Diagnostic> {
        if name.is_empty() {
            return Err(fault("onnx-name", "a value has an empty name".to_owned()));
        }
        match self.names.insert(name.to_owned(), value) {
            Some(_) => Err(fault("onnx-name", format!("the value `{name}` is defined twice"))),
            None => Ok(()),
        }
    }

    /// Adds a node, or what it stands for.
    fn node(&mut self, node: &NodeProto, name: &str) -> Result<(), Diagnostic> {
        let wrong = |what: String| fault("onnx-node", format!("node `{name}` ({}): {what}", node.op_type));
        let mut operands = Vec::new();
        for input in &node.input {
            let undefined = || wrong(format!("it reads `{input}`, which nothing before it defines"));
            let value = if input.is_empty() { None } else { Some(*self.names.get(input).ok_or_else(undefined)?) };
            operands.push(value);
        }
        let Some(output) = node.output.first() else { return Err(wrong("it has no output".to_owned())) };
        if let Some(unread) = node.output.iter().skip(1).find(|name| !name.is_empty())
            && node.op_type != "Dropout"
        {
            return Err(wrong(format!("its second output `{unread}` is not supported")));
        }
        let mut attributes = Attributes::of(node);
        let is_alias = matches!(node.op_type.as_str(), "Dropout" | "Identity");
        if is_alias {
            attributes.ignore(&["ratio", "seed", "is_test"]);
            attributes.finish().map_err(&wrong)?;
            if let Some(Some(_)) = operands.get(2) {
                return Err(wrong("its operand `training_mode` is not supported".to_owned()));
            }
            let source = operands.first().copied().flatten().ok_or_else(|| wrong("it has no operand".to_owned()))?;
            return self.bind(output, source);
        }
        if let Some((shape, contents)) = self.constant(node, &operands, &mut attributes).map_err(&wrong)? {
            attributes.finish().map_err(&wrong)?;
            return self.add(output, shape, Some(contents)).map(drop);
        }
        let decoded = self.decoded(node, &operands, &mut attributes).map_err(&wrong)?;
        attributes.finish().map_err(&wrong)?;
        let data = present(operands, decoded.n_data).map_err(&wrong)?;
        if let (Op::Reshape, Some(contents)) = (&decoded.op, self.contents_of(&data)) {
            return self.add(output, decoded.shape.unwrap_or_default(), Some(contents)).map(drop);
        }
        self.computed(name, output, decoded, data).map_err(wrong)
    }

    /// The contents of the first of some values.
    fn contents_of(&self, data: &[usize]) -> Option<Contents> {
        data.first().and_then(|&value| self.model.values[value].contents.clone())
    }

    /// The shape and the elements of a node that is a constant.
    fn constant(
        &self,
        node: &NodeProto,
        operands: &[Option<usize>],
        attributes: &mut Attributes<'_>,
    ) -> Result<Option<(Vec<u64>, Contents)>, String> {
        match node.op_type.as_str() {
            "Constant" => tensors::read(attributes.tensor("value").ok_or("it has no attribute `value`")?).map(Some),
            "ConstantOfShape" => {
                let shape = operands.first().copied().flatten();
                let shape = shape.and_then(|value| self.model.values[value].contents.as_ref()?.integers());
                let shape = shapes::checked(tensors::shape_of(shape.ok_or("its shape is no constant")?)?)?;
                let value = attributes.tensor("value").map(tensors::read).transpose()?;
                match value.map_or(Contents::Same(0.0), |(_, contents)| contents) {
                    contents @ Contents::Same(_) => Ok(Some((shape, contents))),
                    Contents::Floats(values) if values.len() == 1 => Ok(Some((shape, Contents::Same(values[0])))),
                    Contents::Floats(_) => Err("its attribute `value` has several elements".to_owned()),
                    Contents::Integers(_) => Err("its elements are integers, which is not supported".to_owned()),
                }
            }
            _ => Ok(None),
        }
    }

    /// Decodes a node that computes something.
    fn decoded(
        &self,
        node: &NodeProto,
        operands: &[Option<usize>],
        attributes: &mut Attributes<'_>,
    ) -> Result<Decoded, String> {
        let value = |operand: &Option<usize>| operand.map(|at| &self.model.values[at]);
        let values: Vec<Option<&Value>> = operands.iter().map(value).collect();
        let shapes: Vec<_> = values.iter().map(|value| value.map(|value| value.shape.as_slice())).collect();
        let integers: Vec<_> = values.iter().map(|value| value.and_then(contents)?.integers()).collect();
        let scalar = |value: Option<&Value>| {
            let is_one = value.is_some_and(|value| value.shape.iter().all(|&extent| extent == 1));
            value.and_then(contents).filter(|_| is_one)?.float(0)
        };
        let scalars: Vec<_> = values.iter().copied().map(scalar).collect();
        let operands = Operands { shapes: &shapes, integers: &integers, scalars: &scalars, opset: self.opset };
        let decoded = nodes::decode(&node.op_type, attributes, &operands)?;
        decoded.ok_or_else(|| "the operator is not supported".to_owned())
    }

    /// Adds a node and the value that it computes.
    fn computed(&mut self, name: &str, output: &str, decoded: Decoded, data: Vec<usize>) -> Result<(), String> {
        let values: Vec<&Value> = data.iter().map(|&value| &self.model.values[value]).collect();
        if let Some(of_integers) = values.iter().find(|value| matches!(value.contents, Some(Contents::Integers(_)))) {
            return Err(format!("its operand `{}` has integers, and only float32 is computed", of_integers.name));
        }
        let shapes: Vec<&[u64]> = values.iter().map(|value| value.shape.as_slice()).collect();
        let shape = match decoded.shape {
            Some(shape) => shapes::checked(shape)?,
            None => shapes::infer(&decoded.op, &shapes)?,
        };
        if self.model.nodes.iter().any(|node| node.name == name) {
            return Err("another node has the same name".to_owned());
        }
        let value = self.add(output, shape, None).map_err(|fault| fault.message)?;
        self.model.nodes.push(Node { name: name.to_owned(), op: decoded.op, inputs: data, output: value });
        Ok(())
    }
}

/// The elements of a value that is a constant.
fn contents(value: &Value) -> Option<&Contents> {
    value.contents.as_ref()
}

/// The operands of a node that are data. The last ones may be left out.
fn present(mut operands: Vec<Option<usize>>, n_data: usize) -> Result<Vec<usize>, String> {
    operands.truncate(n_data);
    let n_present = operands.iter().rposition(Option::is_some).map_or(0, |last| last + 1);
    operands.truncate(n_present);
    let missing =
        |(place, operand): (usize, Option<usize>)| operand.ok_or(format!("its operand {} is missing", place + 1));
    operands.into_iter().enumerate().map(missing).collect()
}

/// The shape of an input, which has to be known.
fn input_shape(input: &ValueInfoProto) -> Result<Vec<u64>, Diagnostic> {
    let wrong = |what: String| fault("onnx-input", format!("input `{}`: {what}", input.name));
    let tensor = input.r#type.as_ref().and_then(|ty| ty.tensor_type.as_ref());
    let tensor = tensor.ok_or_else(|| wrong("it is no tensor".to_owned()))?;
    if tensor.elem_type != tensors::FLOAT32 {
        return Err(wrong(format!("its element type is number {}, and only float32 is supported", tensor.elem_type)));
    }
    let shape = tensor.shape.as_ref().ok_or_else(|| wrong("its shape is not known".to_owned()))?;
    let extent = |dim: &messages::DimensionProto| {
        let named = || wrong(format!("the extent `{}` is not known", dim.dim_param.clone().unwrap_or_default()));
        let value = dim.dim_value.ok_or_else(named)?;
        u64::try_from(value).map_err(|_| wrong(format!("an extent is {value}")))
    };
    let shape = shape.dim.iter().map(extent).collect::<Result<Vec<_>, _>>()?;
    shapes::checked(shape).map_err(wrong)
}
