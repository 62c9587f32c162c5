//! The option `--run`: proves the kernels of a planned graph, runs them on the devices and compares with the
//! interpreter.

use tilewright_interp::Tensor;
use tilewright_ir::{Diagnostic, GraphTensor, MemoryPlan, Module, TensorRole, TextureLimits};
use tilewright_script::Source;
use tilewright_verify::Judge;

use super::arrays::{ArrayArgs, Contents, Exchanged, Known};
use super::model::difference;
use crate::cli::failure::Failure;
use crate::cli::input::Input;
use crate::cli::printer::Printer;
use crate::graph::NamedGraph;
use crate::harness::engine::EngineFault;
use crate::harness::inputs::Numbers;
use crate::harness::opencl::OpenCl;
use crate::network::npy::Array;
use crate::network::place::Operand;
use crate::network::run::{Tolerance, compare};
use crate::pipeline::limits::explained;
use crate::pipeline::outcome::{Blocked, Summary};
use crate::pipeline::{self, Options, Program, engines};
use crate::report::plan_run::{DeviceRow, FunctionRow, RunReport};
use crate::runtime::{GraphFault, Network, run_graph};

/// A planned graph and the file of its kernels.
pub(in crate::cli) struct Request<'a> {
    /// The text of the graph.
    pub(in crate::cli) source: &'a Source,
    /// The graph.
    pub(in crate::cli) graph: &'a NamedGraph,
    /// Its plan.
    pub(in crate::cli) plan: &'a MemoryPlan,
    /// The verdict of the judge on the plan.
    pub(in crate::cli) summary: Summary,
    /// How the kernels are lowered, and where they run.
    pub(in crate::cli) options: &'a Options,
}

/// The kernels of a graph, lowered.
pub(in crate::cli) struct Kernels {
    /// The file that they are from.
    pub(in crate::cli) source: Source,
    /// The reports on each function.
    pub(in crate::cli) functions: Vec<FunctionRow>,
    /// All functions; `None` if a lowering stopped early.
    pub(in crate::cli) proved: Option<Proved>,
}

/// Reads the functions that the steps name, and proves them.
///
/// # Errors
/// The file of kernels has faults, or a step has no function.
pub(super) fn kernels(
    (graph, source): (&NamedGraph, &Source),
    file: &str,
    (limits, options): (TextureLimits, &Options),
    (judge, printer): (&Judge, &mut Printer),
) -> Result<Kernels, Failure> {
    let input = Input::read(file)?;
    let read = pipeline::read(&input.source.text, input.function.as_deref());
    let read = read.map_err(|faults| Failure::input(&input.source, faults))?;
    printer.diagnostics(&input.source, &read.warnings);
    let as_read = Module { funcs: read.programs.iter().map(|program| program.func.clone()).collect() };
    let nothing = MemoryPlan::default();
    let network = Network::new(graph, &nothing, &as_read).map_err(|faults| Failure::input(source, faults))?;
    let wanted: Vec<&str> = network.functions.iter().map(|func| func.name.as_str()).collect();
    let programs = read.programs.into_iter().filter(|program| wanted.contains(&program.func.name.as_str()));
    let (functions, proved) = lowered(programs, (limits, options), judge, &input.source, printer)?;
    Ok(Kernels { source: input.source, functions, proved })
}

/// Runs the kernels of a graph. Nothing is run unless the plan and all functions are proved.
///
/// # Errors
/// A function does not fit its step.
pub(super) fn run(request: &Request<'_>, kernels: Kernels, exchanged: &Exchanged) -> Result<RunReport, Failure> {
    let Kernels { source, functions, proved } = kernels;
    let of_graph = |faults| Failure::input(request.source, faults);
    let inputs = inputs(request, exchanged)?;
    let mut report = RunReport { kernels: source, seed: request.options.seed, functions, devices: Vec::new() };
    // A plan that is refuted may have no place for a tensor. One that is open may be so because a function does not fit its step.
    let Some(Proved { module, .. }) = proved.filter(|_| request.summary != Summary::Refuted) else {
        report.devices.push(blocked(request.summary, &report.functions));
        return Ok(report);
    };
    let network = Network::new(request.graph, request.plan, &module).map_err(of_graph)?;
    // Passes change the layouts of parameters, and those have to fit as well, so this check comes after the passes.
    network.check(&inputs).map_err(of_graph)?;
    if request.summary != Summary::Proved {
        report.devices.push(blocked(request.summary, &report.functions));
        return Ok(report);
    }
    for opened in engines::open(&request.options.device, &request.options.host) {
        report.devices.push(match opened {
            Ok(device) => on_device(&network, request.graph, (&inputs, exchanged), &device)?.map_err(of_graph)?,
            Err(fault) => DeviceRow::fault(None, fault),
        });
    }
    if report.devices.is_empty() {
        if exchanged.saves() || !exchanged.expected.is_empty() {
            let message = "an option needs the results of a device, and --device none runs nothing";
            return Err(Failure::plain(&request.source.name, "plan-option", message)
                .with_help("leave out --save and --expect, or name a device"));
        }
        report.devices.push(DeviceRow::not_requested());
    }
    Ok(report)
}

/// The row of a graph that is not run, because the plan or a function is not proved.
pub(super) fn blocked(plan: Summary, functions: &[FunctionRow]) -> DeviceRow {
    let functions = functions.iter().map(|row| (format!("`{}`", row.name), row.verdict));
    let mut all = std::iter::once(("the plan".to_owned(), plan)).chain(functions);
    let stopped = all.find(|(_, summary)| *summary != Summary::Proved);
    let reason = stopped.map(|(by, summary)| Blocked { by, summary }.to_string());
    DeviceRow::fault(None, EngineFault::Skipped(reason.unwrap_or_default()))
}

/// Functions whose lowering was accepted.
pub(in crate::cli) struct Proved {
    /// The functions after the passes.
    pub(in crate::cli) module: Module,
    /// The same functions before the passes.
    pub(in crate::cli) before: Module,
}

/// The reports on each function, and all functions; `None` if a lowering stopped early.
pub(in crate::cli) fn lowered(
    programs: impl Iterator<Item = Program>,
    (limits, options): (TextureLimits, &Options),
    judge: &Judge,
    source: &Source,
    printer: &Printer,
) -> Result<(Vec<FunctionRow>, Option<Proved>), Failure> {
    // A function that is not proved does not stop the others: the report lists every one of them.
    let (mut rows, mut funcs, mut before, mut complete) = (Vec::new(), Vec::new(), Vec::new(), true);
    let programs: Vec<Program> = programs.collect();
    let progress = printer.progress_of(programs.len());
    for mut program in programs {
        let limits = pipeline::limits::set(&mut program, Some(limits), &options.device, &options.host);
        let mut observe = |function: &str, step: &str| {
            progress.set_message(format!("proving {function}: {step}"));
            progress.tick();
        };
        let lowering = pipeline::lower(&program, judge, options.allow_unknown, &mut observe);
        let lowering =
            lowering.map_err(|fault| super::super::pipeline_failure(source, explained(limits.as_ref(), fault)))?;
        complete &= lowering.is_complete();
        funcs.push(lowering.last().clone());
        before.push(program.func.clone());
        progress.inc(1);
        let (name, verdict) = (program.func.name, lowering.summary());
        rows.push(FunctionRow { name, verdict, steps: lowering.steps });
    }
    progress.finish_and_clear();
    let proved = Proved { module: Module { funcs }, before: Module { funcs: before } };
    Ok((rows, complete.then_some(proved)))
}

/// Runs the graph on one device. Faults of the device become the row of the report; those of the input are returned apart from
/// failures of files.
fn on_device(
    network: &Network<'_>,
    graph: &NamedGraph,
    (inputs, exchanged): (&[Tensor], &Exchanged),
    device: &OpenCl,
) -> Result<Result<DeviceRow, Vec<Diagnostic>>, Failure> {
    let label = device.session().info().label();
    let run = match run_graph(network, inputs, device.session()) {
        Ok(run) => run,
        Err(GraphFault::Input(found)) => return Ok(Err(found)),
        Err(GraphFault::Engine(fault)) => return Ok(Ok(DeviceRow::fault(Some(label), fault))),
    };
    let outputs = graph.graph.tensors.iter().filter(|tensor| tensor.role == TensorRole::Output);
    let outputs: Vec<(&GraphTensor, &Tensor)> = outputs.zip(&run.outputs).collect();
    let found = |name: &str| {
        let found = outputs.iter().find(|(tensor, _)| tensor.name == name);
        let (tensor, value) = found.ok_or_else(|| Failure::Internal(format!("`{name}` was not read back")))?;
        Ok(Array { shape: tensor.shape.clone(), elements: operand(tensor).unpacked(value) })
    };
    let mut rows = Vec::new();
    for Contents { name, file, elements } in &exchanged.expected {
        rows.push(difference(compare(name, (elements, &found(name)?.elements), Tolerance::SINGLE), file));
    }
    exchanged.save(found)?;
    Ok(Ok(DeviceRow::ran_model(label, &run, rows, true)))
}

/// A tensor of a graph as an operand: row-major in its physical shape.
fn operand(tensor: &GraphTensor) -> Operand {
    Operand { dtype: tensor.dtype.scalar, ..Operand::plain(&tensor.shape) }
}

/// Whether a file can hold the elements of a tensor: files have float32, which holds float16 and bfloat16 as well.
fn is_in_files(tensor: &GraphTensor) -> bool {
    let scalar = tensor.dtype.scalar;
    tensor.dtype.is_scalar() && scalar.is_float() && scalar.bytes() <= 4
}

/// Reads the files of arrays that options name: those of tensors of floats.
///
/// # Errors
/// A name is no input or output, its tensor has other elements than floats, or a file is no array of its shape.
pub(super) fn exchanged(args: &ArrayArgs, graph: &NamedGraph, path: &str) -> Result<Exchanged, Failure> {
    let tensors = &graph.graph.tensors;
    let known = |is_wanted: &dyn Fn(&GraphTensor) -> bool| -> Vec<Known<'_>> {
        let wanted = tensors.iter().filter(|tensor| is_wanted(tensor) && is_in_files(tensor));
        wanted.map(|tensor| (&*tensor.name, &*tensor.shape)).collect()
    };
    args.read(path, &known(&|tensor| tensor.role.is_given()), &known(&|tensor| tensor.role == TensorRole::Output))
}

/// The inputs of a graph: from files, or random numbers.
fn inputs(request: &Request<'_>, exchanged: &Exchanged) -> Result<Vec<Tensor>, Failure> {
    let given = request.graph.graph.tensors.iter().filter(|tensor| tensor.role.is_given());
    let input = |(tensor, part): (&GraphTensor, u64)| {
        let made = match exchanged.input(&tensor.name) {
            Some(elements) => operand(tensor).packed(|at| elements[at]).map_err(|error| error.to_string()),
            None => Numbers::new(request.options.seed, part).tensor(tensor.dtype, &tensor.shape),
        };
        made.map_err(|what| format!("input `{}`: {what}", tensor.name))
    };
    let inputs = given.zip(0..).map(input).collect::<Result<Vec<_>, _>>();
    inputs.map_err(|what| Failure::plain(&request.source.name, "graph-inputs", what))
}
