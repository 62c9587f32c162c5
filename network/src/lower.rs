//! From a model and its storage to a graph: tensors with scopes, steps, and a program for each kernel.
//!
//! ```text
//! node  pool = MaxPool(c), c and pool in textures       step `pool`: reads c, writes pool, function `maxpool_2`
//! value data row-major, `conv` wants a texture          step `data.texture`: reads data, writes data.texture
//! node  rows = Reshape(mean)                            no step: tensor rows is a view of mean
//! ```
//!
//! The scopes of the parameters of a kernel are those of the tensors of its step (texture RFC, L1.2, `CollectBufferBinds`), because
//! both come from one [`Operand`]. Steps of one [`Signature`] share a program (L1.3).

use std::collections::BTreeMap;

use tilewright_compiler::pipeline::Program;
use tilewright_interp::Tensor;
use tilewright_ir::{Diagnostic, ScalarType};
use tilewright_memory::graph::{GraphBuilder, NamedGraph};

use crate::model::{Contents, Model, Node, Op, Value};
use crate::ops::{Signature, program};
use crate::place::{Arrangement, Operand};
use crate::profile::Profile;
use crate::run::HALF_OVERFLOW;
use crate::scopes::{self, Storage};

/// A model as a graph with kernels.
#[derive(Clone, Debug)]
pub struct Network {
    /// Tensors and steps.
    pub graph: NamedGraph,
    /// The tensors of the graph, in its order.
    pub tensors: Vec<GraphValue>,
    /// The programs of the kernels. The steps name them.
    pub programs: Vec<Program>,
    /// The signature of each program.
    pub signatures: Vec<Signature>,
}

/// A value of the model as a tensor of the graph.
#[derive(Clone, Debug, PartialEq)]
pub struct GraphValue {
    /// The value.
    pub value: usize,
    /// Its arrangement.
    pub operand: Operand,
}

/// Makes the graph and the kernels of a model.
///
/// # Errors
/// A kernel cannot be made, or the graph has a defect: the model has no nodes, for example.
pub fn lower(model: &Model, storage: &[Option<Storage>], profile: &Profile) -> Result<Network, Vec<Diagnostic>> {
    let mut lowering = Lowering {
        model,
        storage,
        profile,
        graph: GraphBuilder::new(),
        tensors: Vec::new(),
        found: BTreeMap::new(),
        kernels: Kernels::default(),
    };
    for &input in &model.inputs {
        lowering.input(input, &Operand::plain(&model.values[input].shape), &model.values[input].name);
    }
    for node in &model.nodes {
        lowering.node(node)?;
    }
    for &output in &model.outputs {
        let tensor = lowering.tensor(output, Arrangement::Plain)?;
        lowering.graph.output(tensor);
    }
    let Lowering { graph, tensors, kernels, .. } = lowering;
    Ok(Network { graph: graph.finish()?, tensors, programs: kernels.programs, signatures: kernels.signatures })
}

impl Network {
    /// The contents of each input of the graph, in the order of its tensors: packed constants, and what `given` returns for an input
    /// of the model.
    ///
    /// # Errors
    /// The memory is not available, or `given` fails.
    pub fn inputs(
        &self,
        model: &Model,
        given: &dyn Fn(&Value) -> Result<Tensor, String>,
    ) -> Result<Vec<Tensor>, String> {
        let inputs = self.graph.graph.tensors.iter().zip(&self.tensors);
        let inputs = inputs.filter(|(tensor, _)| tensor.role.is_given());
        let contents = inputs.map(|(_, tensor)| {
            let value = &model.values[tensor.value];
            match &value.contents {
                Some(contents) => {
                    let element = |at| contents.float(at).unwrap_or(f32::NAN);
                    tensor.operand.packed(element).map_err(|error| format!("constant `{}`: {error}", value.name))
                }
                None => given(value),
            }
        });
        contents.collect()
    }

    /// Bytes of all constants in memory.
    pub fn constant_bytes(&self, model: &Model) -> u64 {
        let constants = self.tensors.iter().filter(|tensor| model.values[tensor.value].contents.is_some());
        let bytes =
            |tensor: &GraphValue| tensor.operand.physical().iter().product::<u64>() * tensor.operand.dtype.bytes();
        constants.map(bytes).sum()
    }
}

/// The kernels made so far.
#[derive(Default)]
struct Kernels {
    programs: Vec<Program>,
    signatures: Vec<Signature>,
}

impl Kernels {
    /// The name of the kernel of a signature, which is made if there is none yet.
    fn name(&mut self, signature: Signature) -> Result<String, Vec<Diagnostic>> {
        if let Some(found) = self.signatures.iter().position(|known| *known == signature) {
            return Ok(self.programs[found].func.name.clone());
        }
        let kind = match &signature.op {
            Op::Reshape => "convert".to_owned(),
            op => op.name().to_ascii_lowercase(),
        };
        let name = format!("{kind}_{}", self.programs.len());
        self.programs.push(program(&name, &signature)?);
        self.signatures.push(signature);
        Ok(name)
    }
}

struct Lowering<'a> {
    model: &'a Model,
    storage: &'a [Option<Storage>],
    profile: &'a Profile,
    graph: GraphBuilder,
    /// One for each tensor of the graph.
    tensors: Vec<GraphValue>,
    /// The tensor that holds a value in an arrangement.
    found: BTreeMap<(usize, Arrangement), usize>,
    kernels: Kernels,
}

impl Lowering<'_> {
    /// A value in an arrangement. Buffers hold float32, textures what the target keeps in them.
    fn operand(&self, shape: &[u64], arrangement: Arrangement) -> Operand {
        let plain = Operand::plain(shape);
        let dtype = if arrangement.scope().is_texture() { self.profile.texture_type() } else { plain.dtype };
        Operand { arrangement, dtype, ..plain }
    }

    /// Adds a tensor whose contents are supplied.
    fn input(&mut self, value: usize, operand: &Operand, name: &str) -> usize {
        let (shape, scope) = (operand.physical(), operand.arrangement.scope());
        let tensor = if self.model.values[value].contents.is_some() {
            self.graph.constant(name, shape, operand.dtype, scope)
        } else {
            self.graph.input(name, shape, operand.dtype, scope)
        };
        self.record(value, operand, tensor)
    }

    /// Adds a tensor that a step computes.
    fn computed(&mut self, value: usize, operand: &Operand, name: &str) -> usize {
        let tensor = self.graph.tensor(name, operand.physical(), operand.dtype, operand.arrangement.scope());
        self.record(value, operand, tensor)
    }

    fn record(&mut self, value: usize, operand: &Operand, tensor: usize) -> usize {
        self.tensors.push(GraphValue { value, operand: operand.clone() });
        self.found.insert((value, operand.arrangement), tensor);
        tensor
    }

    /// Adds the step of a node, and the conversions that it needs.
    fn node(&mut self, node: &Node) -> Result<(), Vec<Diagnostic>> {
        let (model, output) = (self.model, node.output);
        let value = &model.values[output];
        if let (Op::Reshape, Some(&source)) = (&node.op, node.inputs.first()) {
            let source = self.tensor(source, Arrangement::Plain)?;
            let operand = Operand::plain(&value.shape);
            let view = self.graph.view(&value.name, source, operand.physical());
            self.record(output, &operand, view);
            return Ok(());
        }
        let result = self.operand(&value.shape, self.home(output));
        let mut reads = Vec::new();
        for position in 0..node.inputs.len() {
            let arrangement = self.arrangement(node, position, &result);
            reads.push(self.tensor(node.inputs[position], arrangement)?);
        }
        let written = self.computed(output, &result, &value.name);
        self.step(&node.name, &node.op, reads, written)
    }

    /// Adds a step.
    fn step(&mut self, name: &str, op: &Op, reads: Vec<usize>, written: usize) -> Result<(), Vec<Diagnostic>> {
        let operands = reads.iter().map(|&tensor| self.tensors[tensor].operand.clone()).collect();
        let result = self.tensors[written].operand.clone();
        let signature = Signature { op: op.clone(), operands, result, group: self.profile.group };
        let function = self.kernels.name(signature)?;
        let step = self.graph.step(name, reads, [written]);
        self.graph.function(step, function);
        Ok(())
    }

    /// Where a node or the caller writes a value.
    fn home(&self, value: usize) -> Arrangement {
        self.storage[value].as_ref().map_or(Arrangement::Plain, |storage| storage.arrangement)
    }

    /// The arrangement in which a node reads an operand.
    fn arrangement(&self, node: &Node, position: usize, result: &Operand) -> Arrangement {
        let value = node.inputs[position];
        let info = &self.model.values[value];
        if info.contents.is_some() {
            return constant(node, position, info, result, self.profile);
        }
        let number = self.model.nodes.iter().position(|other| other.output == node.output);
        let wants = number.is_some_and(|number| scopes::wants_texture(self.model, number, value));
        if self.profile.textures && wants && scopes::fits(&info.shape, self.profile).is_ok() {
            Arrangement::Channels4
        } else {
            self.home(value)
        }
    }

    /// The tensor that holds a value in an arrangement. If there is none, it is added: a constant is packed, anything else converted.
    fn tensor(&mut self, value: usize, arrangement: Arrangement) -> Result<usize, Vec<Diagnostic>> {
        if let Some(&tensor) = self.found.get(&(value, arrangement)) {
            return Ok(tensor);
        }
        let info = &self.model.values[value];
        let operand = self.operand(&logical(&info.shape, arrangement), arrangement);
        let name = match arrangement {
            Arrangement::Plain if info.contents.is_some() => info.name.clone(),
            Arrangement::Plain => format!("{}.buffer", info.name),
            Arrangement::Channels4 => format!("{}.texture", info.name),
            Arrangement::Filter4 => format!("{}.filters", info.name),
            Arrangement::Vector4 => format!("{}.vector", info.name),
        };
        if let Some(contents) = &info.contents {
            fits(info, contents, &operand)?;
            return Ok(self.input(value, &operand, &name));
        }
        let home = self.found.get(&(value, self.home(value))).copied();
        let source = home.ok_or_else(|| {
            vec![Diagnostic::error("network-order", None, format!("`{name}` is read before it is computed"))]
        })?;
        let written = self.computed(value, &operand, &name);
        self.step(&name, &Op::Reshape, vec![source], written)?;
        Ok(written)
    }
}

/// Checks that a constant that is kept in float16 has no element that becomes infinite there.
fn fits(info: &Value, contents: &Contents, operand: &Operand) -> Result<(), Vec<Diagnostic>> {
    let elements = (0..info.shape.iter().product::<u64>()).filter_map(|at| contents.float(usize::try_from(at).ok()?));
    let mut beyond = elements.filter(|value| value.is_finite() && value.abs() >= HALF_OVERFLOW);
    match beyond.next().filter(|_| operand.dtype == ScalarType::Float16) {
        None => Ok(()),
        Some(value) => {
            let message = format!(
                "constant `{}` has the element {value:e}, and the largest number of float16 is 65504",
                info.name
            );
            Err(vec![Diagnostic::error("network-half", None, message).with_help("leave out --half")])
        }
    }
}

/// The extents of a constant in an arrangement: a vector over channels has one axis, however many of extent 1 it was given.
fn logical(shape: &[u64], arrangement: Arrangement) -> Vec<u64> {
    match arrangement {
        Arrangement::Vector4 => vec![shape.iter().product()],
        Arrangement::Plain | Arrangement::Channels4 | Arrangement::Filter4 => shape.to_vec(),
    }
}

/// The arrangement of a constant, which depends on the node that reads it and on where that writes.
fn constant(node: &Node, position: usize, info: &Value, result: &Operand, profile: &Profile) -> Arrangement {
    if result.arrangement != Arrangement::Channels4 {
        return Arrangement::Plain;
    }
    let channels = result.shape[1];
    match (&node.op, position) {
        (Op::Conv { .. }, 1) => {
            let filters = Operand { arrangement: Arrangement::Filter4, ..Operand::plain(&info.shape) };
            let fits = scopes::within_limits(&filters, profile).is_ok();
            if fits { Arrangement::Filter4 } else { Arrangement::Plain }
        }
        (Op::Conv { .. } | Op::BatchNormalization { .. }, _) if info.shape == [channels] => Arrangement::Vector4,
        (Op::Binary(_), _) if is_per_channel(&info.shape, channels) => Arrangement::Vector4,
        _ => Arrangement::Plain,
    }
}

/// Whether a constant has one element for each channel: `[C, 1, 1]`, possibly with axes of extent 1 in front.
fn is_per_channel(shape: &[u64], channels: u64) -> bool {
    match shape {
        [channel, 1, 1] | [1, channel, 1, 1] => *channel == channels && channels > 1,
        _ => false,
    }
}
