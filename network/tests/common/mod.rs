//! Writes small ONNX models, and takes models through all steps.
#![allow(clippy::unwrap_used, dead_code, reason = "a test fails by panicking; each test file uses a part")]

use prost::Message;
use tilewright_compiler::pipeline::{self, DeviceChoice, Options, Program};
use tilewright_interp::Tensor;
use tilewright_ir::{MemoryPlan, Module};
use tilewright_memory::planner::{Strategy, plan_within};
use tilewright_memory::runtime::{self, interpret_graph};
use tilewright_network::lower::{self, Network};
use tilewright_network::model::Model;
use tilewright_network::onnx::{self, messages as proto};
use tilewright_network::profile::{PROFILES, Profile};
use tilewright_network::run::Difference;
use tilewright_network::run::Tolerance;
use tilewright_network::{reference, scopes};

/// A model under construction.
#[derive(Clone, Debug, Default)]
pub(crate) struct Writer {
    pub(crate) proto: proto::ModelProto,
}

impl Writer {
    /// A model of a version of the operator set.
    pub(crate) fn new(opset: i64) -> Self {
        let graph = proto::GraphProto { name: "test".to_owned(), ..Default::default() };
        let version = proto::OperatorSetIdProto { domain: String::new(), version: opset };
        Self { proto: proto::ModelProto { ir_version: 8, graph: Some(graph), opset_import: vec![version] } }
    }

    pub(crate) fn graph(&mut self) -> &mut proto::GraphProto {
        self.proto.graph.as_mut().unwrap()
    }

    #[must_use]
    pub(crate) fn input(mut self, name: &str, shape: &[i64]) -> Self {
        self.graph().input.push(info(name, shape));
        self
    }

    #[must_use]
    pub(crate) fn output(mut self, name: &str) -> Self {
        // Without a shape, which is that of the node.
        let mut output = info(name, &[]);
        if let Some(tensor) = output.r#type.as_mut().and_then(|ty| ty.tensor_type.as_mut()) {
            tensor.shape = None;
        }
        self.graph().output.push(output);
        self
    }

    /// A constant whose elements are small and different: none is 0, and neighbours do not cancel.
    #[must_use]
    pub(crate) fn constant(mut self, name: &str, dims: &[i64]) -> Self {
        let count: i64 = dims.iter().product();
        let seed = name.bytes().fold(7u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
        let float_data = (0..u32::try_from(count).unwrap()).map(|at| element(seed, at)).collect();
        let tensor = proto::TensorProto {
            dims: dims.to_vec(),
            data_type: 1,
            float_data,
            name: name.to_owned(),
            ..Default::default()
        };
        self.graph().initializer.push(tensor);
        self
    }

    #[must_use]
    pub(crate) fn integers(mut self, name: &str, values: &[i64]) -> Self {
        let dims = vec![i64::try_from(values.len()).unwrap()];
        let tensor = proto::TensorProto {
            dims,
            data_type: 7,
            int64_data: values.to_vec(),
            name: name.to_owned(),
            ..Default::default()
        };
        self.graph().initializer.push(tensor);
        self
    }

    /// A node named like its output.
    #[must_use]
    pub(crate) fn node(
        mut self,
        op: &str,
        inputs: &[&str],
        output: &str,
        attributes: &[proto::AttributeProto],
    ) -> Self {
        self.graph().node.push(proto::NodeProto {
            input: inputs.iter().map(|&name| name.to_owned()).collect(),
            output: vec![output.to_owned()],
            name: format!("n_{output}"),
            op_type: op.to_owned(),
            attribute: attributes.to_vec(),
            domain: String::new(),
        });
        self
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.proto.encode_to_vec()
    }

    pub(crate) fn model(&self) -> Model {
        onnx::read(&self.bytes()).unwrap_or_else(|faults| panic!("{faults:?}"))
    }
}

/// A number between 1/8 and 1 with either sign.
pub(crate) fn element(seed: u32, at: u32) -> f32 {
    let mixed = (seed ^ at.wrapping_mul(2_654_435_761)).wrapping_mul(2_246_822_519) >> 20;
    let size = f32::from(u16::try_from(mixed % 897 + 128).unwrap()) / 1024.0;
    if mixed & 2048 == 0 { size } else { -size }
}

pub(crate) fn info(name: &str, shape: &[i64]) -> proto::ValueInfoProto {
    let dim = shape.iter().map(|&extent| proto::DimensionProto { dim_value: Some(extent), dim_param: None }).collect();
    let tensor = proto::TensorTypeProto { elem_type: 1, shape: Some(proto::TensorShapeProto { dim }) };
    proto::ValueInfoProto { name: name.to_owned(), r#type: Some(proto::TypeProto { tensor_type: Some(tensor) }) }
}

pub(crate) fn ints(name: &str, ints: &[i64]) -> proto::AttributeProto {
    proto::AttributeProto { name: name.to_owned(), ints: ints.to_vec(), r#type: 7, ..Default::default() }
}

pub(crate) fn int(name: &str, i: i64) -> proto::AttributeProto {
    proto::AttributeProto { name: name.to_owned(), i, r#type: 2, ..Default::default() }
}

pub(crate) fn float(name: &str, f: f32) -> proto::AttributeProto {
    proto::AttributeProto { name: name.to_owned(), f, r#type: 1, ..Default::default() }
}

pub(crate) fn adreno() -> Profile {
    PROFILES[1].clone()
}

/// The default of a type, whatever crate it comes from.
fn standard<T: Default>() -> T {
    T::default()
}

pub(crate) fn options() -> Options {
    Options {
        threads: 1,
        timeout: std::time::Duration::from_secs(20),
        seed: 0,
        shapes: Vec::new(),
        device: DeviceChoice::None,
        host: standard(),
        assume: Vec::new(),
        limits: None,
        allow_unknown: false,
        pipeline: standard(),
        record: false,
        function: None,
    }
}

/// A model with its graph, its kernels after the passes, and its plan.
#[derive(Clone)]
pub(crate) struct Lowered {
    pub(crate) model: Model,
    pub(crate) network: Network,
    pub(crate) module: Module,
    pub(crate) plan: MemoryPlan,
    pub(crate) given: Vec<Vec<f32>>,
    pub(crate) tolerance: Tolerance,
}

pub(crate) fn lowered_without_proof(model: Model, profile: &Profile) -> (Model, Network, MemoryPlan) {
    let storage = scopes::collect_storage_info(&model, profile);
    let network = lower::lower(&model, &storage, profile).unwrap_or_else(|faults| panic!("{faults:?}"));
    let plan = plan_within(&network.graph.graph, Strategy::Best, profile.limits).unwrap();
    (model, network, plan)
}

/// Proves a program through all passes; the function after the last one, or what is not proved.
pub(crate) fn proved(program: &Program, profile: &Profile) -> Result<tilewright_ir::PrimFunc, String> {
    let judge = options().judge().unwrap();
    let mut program = program.clone();
    program.func.attrs.texture_limits = Some(profile.limits);
    let lowering = pipeline::lower(&program, &judge, false, &mut |_, _| {}).map_err(|fault| format!("{fault:?}"))?;
    let open = lowering.steps.iter().flat_map(|step| step.reports.iter().map(move |report| (step, report)));
    let open: Vec<String> = open
        .filter(|(_, report)| !report.verdict.is_proved())
        .map(|(step, report)| format!("{} {} {}: {}", step.name, report.obligation, report.subject, report.verdict))
        .collect();
    if lowering.is_complete() && open.is_empty() { Ok(lowering.last().clone()) } else { Err(open.join("\n")) }
}

impl Lowered {
    /// Lowers a model, and proves every kernel and the plan.
    pub(crate) fn new(model: Model, profile: &Profile) -> Self {
        let (model, network, plan) = lowered_without_proof(model, profile);
        let mut funcs = Vec::new();
        for program in &network.programs {
            let func = proved(program, profile);
            funcs.push(func.unwrap_or_else(|open| panic!("{}:\n{open}", program.func.name)));
        }
        for report in options().judge().unwrap().check_plan(&network.graph.graph, &plan) {
            assert!(report.verdict.is_proved(), "{}: {}", report.obligation, report.verdict);
        }
        let given = (0..).zip(&model.inputs).map(|(number, &input)| {
            let count = u32::try_from(model.values[input].n_elements()).unwrap();
            (0..count).map(|at| element(number + 99, at)).collect()
        });
        let given = given.collect();
        Self { model, network, module: Module { funcs }, plan, given, tolerance: Tolerance::of(profile) }
    }

    /// The inputs of the graph.
    pub(crate) fn inputs(&self) -> Vec<Tensor> {
        let given = |value: &tilewright_network::model::Value| {
            let at = self.model.inputs.iter().position(|&input| self.model.values[input].name == value.name).unwrap();
            let operand = tilewright_network::place::Operand::plain(&value.shape);
            operand.packed(|element| self.given[at][element]).map_err(|error| error.to_string())
        };
        self.network.inputs(&self.model, &given).unwrap()
    }

    /// Runs the kernels in the interpreter, and compares every tensor with the reference.
    pub(crate) fn interpreted(&self, inputs: &[Tensor]) -> Vec<Difference> {
        let network = runtime::Network::new(&self.network.graph, &self.plan, &self.module).unwrap();
        let run = interpret_graph(&network, inputs).unwrap_or_else(|fault| panic!("{fault:?}"));
        let written: Vec<&[Tensor]> = run.steps.iter().map(|step| step.written.as_slice()).collect();
        let values = reference::evaluate(&self.model, &self.given).unwrap();
        self.network.differences(&self.model, &values, &written, self.tolerance).into_iter().flatten().collect()
    }
}
