//! `manifest.json`: everything that a host needs to know, for other tools. Schema `tilewright.network/1`.

use serde::Serialize;
use tilewright_device::{Arg, MemoryKind};

use super::plan_text::{hexadecimal, numpy_type};
use super::{Deployment, Part, Weights, arrangement_name, channel, extents, hash, order};
use crate::json::to_line;
use crate::network::place::Arrangement;

/// The document.
#[derive(Serialize)]
struct Manifest<'a> {
    schema: &'static str,
    file: &'a str,
    target: &'a str,
    limits: String,
    memory: Vec<MemoryRow<'a>>,
    programs: Vec<ProgramRow<'a>>,
    tensors: Vec<TensorRow<'a>>,
    inputs: Vec<&'a str>,
    outputs: Vec<&'a str>,
    steps: Vec<StepRow<'a>>,
    weights: WeightsRow,
}

/// A memory object: the pools, then what kernels need besides.
#[derive(Serialize)]
struct MemoryRow<'a> {
    name: &'a str,
    kind: &'static str,
    scope: Option<&'static str>,
    bytes: u64,
    width: Option<u64>,
    height: Option<u64>,
    channel_order: Option<&'static str>,
    channel_type: Option<&'static str>,
}

/// The kernels of a function.
#[derive(Serialize)]
struct ProgramRow<'a> {
    function: &'a str,
    file: String,
    build_options: &'a [String],
    required_extensions: &'a [String],
    notes: &'a [String],
}

/// A tensor of the graph.
#[derive(Serialize)]
struct TensorRow<'a> {
    name: &'a str,
    value: &'a str,
    role: &'static str,
    dtype: String,
    numpy_type: &'static str,
    logical_shape: &'a [u64],
    physical_shape: &'a [u64],
    scope: &'static str,
    arrangement: &'static str,
    index_map: String,
    padding_value: Option<u32>,
    place_function: String,
    part: Part,
    weights_offset: Option<usize>,
}

/// A step: its launches are those of one function.
#[derive(Serialize)]
struct StepRow<'a> {
    name: &'a str,
    program: usize,
    reads: Vec<&'a str>,
    writes: Vec<&'a str>,
    launches: Vec<LaunchRow<'a>>,
}

/// A kernel launch.
#[derive(Serialize)]
struct LaunchRow<'a> {
    kernel: &'a str,
    global: [u64; 3],
    local: Option<[u64; 3]>,
    args: Vec<ArgRow>,
}

/// An argument.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum ArgRow {
    Memory(usize),
    Value(String),
    Local(u64),
}

/// The file of constants.
#[derive(Serialize)]
struct WeightsRow {
    file: &'static str,
    bytes: usize,
    fnv1a: String,
}

/// Writes the manifest.
pub(super) fn write(deployment: &Deployment<'_>, weights: &Weights) -> String {
    let tensors = &deployment.graph.graph.tensors;
    let names = |list: &[usize]| list.iter().map(|&tensor| tensors[tensor].name.as_str()).collect();
    let value = |tensor: usize| deployment.arguments[tensor].value.as_str();
    let manifest = Manifest {
        schema: "tilewright.network/1",
        file: deployment.file,
        target: deployment.target,
        limits: deployment.limits.to_string(),
        memory: memory(deployment),
        programs: programs(deployment),
        tensors: (0..tensors.len()).map(|tensor| tensor_row(deployment, weights, tensor)).collect(),
        inputs: deployment.inputs().map(value).collect(),
        outputs: deployment.graph.outputs.iter().map(|&tensor| value(tensor)).collect(),
        steps: deployment
            .graph
            .graph
            .steps
            .iter()
            .zip(&deployment.shipment.steps)
            .map(|(step, launched)| StepRow {
                name: &step.name,
                program: launched.program,
                reads: names(&step.reads),
                writes: names(&step.writes),
                launches: launched.launches.iter().map(launch).collect(),
            })
            .collect(),
        weights: WeightsRow {
            file: "weights.bin",
            bytes: weights.bytes.len(),
            fnv1a: format!("{:016x}", hash(&weights.bytes)),
        },
    };
    to_line(&manifest) + "\n"
}

fn memory<'a>(deployment: &Deployment<'a>) -> Vec<MemoryRow<'a>> {
    let pools = &deployment.plan.pools;
    let row = |(number, spec): (usize, &'a tilewright_device::BufferSpec)| {
        let (kind, format) = match spec.kind {
            MemoryKind::Buffer if deployment.is_report(number) => ("report", None),
            MemoryKind::Buffer => ("buffer", None),
            MemoryKind::Image2d { format, .. } => ("image2d", Some(format)),
        };
        let size = extents(spec);
        MemoryRow {
            name: &spec.name,
            kind,
            scope: pools.get(number).map(|pool| pool.scope.name()),
            bytes: spec.bytes,
            width: size.map(|[width, _]| width),
            height: size.map(|[_, height]| height),
            channel_order: format.map(|format| order(format.channels).1),
            channel_type: format.map(|format| channel(format.ty).1),
        }
    };
    deployment.shipment.memory.iter().enumerate().map(row).collect()
}

fn programs<'a>(deployment: &Deployment<'a>) -> Vec<ProgramRow<'a>> {
    let programs = deployment.shipment.programs.iter().enumerate();
    let row = |(number, program): (usize, &'a crate::codegen::Generated)| ProgramRow {
        function: &program.metadata.function,
        file: deployment.source_name(number),
        build_options: &program.metadata.build_options,
        required_extensions: &program.metadata.required_extensions,
        notes: &program.metadata.notes,
    };
    programs.map(row).collect()
}

fn tensor_row<'a>(deployment: &'a Deployment<'_>, weights: &Weights, tensor: usize) -> TensorRow<'a> {
    let (info, argument) = (&deployment.graph.graph.tensors[tensor], &deployment.arguments[tensor]);
    let role = deployment.role(tensor);
    let elements = |shape: &[u64]| shape.iter().product::<u64>();
    // Kernels may leave anything in the padding of what they write; constants and inputs are packed with zeros.
    let is_packed = role == "constant" || role == "input";
    let is_padded = elements(&info.shape) > elements(&argument.shape);
    TensorRow {
        name: &info.name,
        value: &argument.value,
        role,
        dtype: info.dtype.to_string(),
        numpy_type: numpy_type(info.dtype),
        logical_shape: &argument.shape,
        physical_shape: &info.shape,
        scope: info.scope.name(),
        arrangement: arrangement_name(argument.arrangement),
        index_map: index_map(argument.arrangement, argument.shape.len()),
        padding_value: (is_packed && is_padded).then_some(0),
        place_function: format!("tw_place_{}", arrangement_name(argument.arrangement)),
        part: deployment.part(tensor),
        weights_offset: weights.places[tensor].map(|(offset, _)| offset),
    }
}

/// The map from logical to physical indices.
fn index_map(arrangement: Arrangement, rank: usize) -> String {
    match arrangement {
        Arrangement::Channels4 => "lambda n, c, h, w: [n, c // 4, h, w, c % 4]".to_owned(),
        Arrangement::Filter4 => "lambda o, i, h, w: [o // 4, i, h, w, o % 4]".to_owned(),
        Arrangement::Vector4 => "lambda c: [c // 4, c % 4]".to_owned(),
        // A tensor without axes has one element, at index 0 of one axis.
        Arrangement::Plain if rank == 0 => "lambda: [0]".to_owned(),
        Arrangement::Plain => {
            let axes = (0..rank).map(|axis| format!("i{axis}")).collect::<Vec<_>>().join(", ");
            format!("lambda {axes}: [{axes}]")
        }
    }
}

fn launch(launch: &tilewright_device::Launch) -> LaunchRow<'_> {
    let arg = |arg: &Arg| match arg {
        Arg::Memory(memory) => ArgRow::Memory(*memory),
        Arg::Scalar(scalar) => ArgRow::Value(hexadecimal(&scalar.to_bytes())),
        Arg::Local(bytes) => ArgRow::Local(*bytes),
    };
    LaunchRow {
        kernel: &launch.kernel,
        global: launch.global,
        local: launch.local,
        args: launch.args.iter().map(arg).collect(),
    }
}
