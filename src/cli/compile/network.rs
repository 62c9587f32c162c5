//! `tilewright compile` of a model, or of a graph with its kernels: a folder that a host without Tilewright runs.
//!
//! The network is lowered, planned and proved as by `tilewright plan --run`; see [`crate::deploy`] for what is written.

use std::path::Path;

use tilewright_device::DeviceHost;
use tilewright_interp::Tensor;
use tilewright_ir::{MemoryPlan, Module, PoolRules, TextureLimits};
use tilewright_script::{Dialect, Source, print_module_in};
use tilewright_verify::Report;

use super::{Args, Output, say, write};
use crate::cli::exit::ExitStatus;
use crate::cli::failure::Failure;
use crate::cli::input::Input;
use crate::cli::options::{Global, Shapes};
use crate::cli::plan::model::{self, Loaded};
use crate::cli::plan::run::{Proved, lowered};
use crate::cli::plan::{self, Planner, in_place};
use crate::cli::printer::Printer;
use crate::cli::target::Target;
use crate::deploy::{Argument, Deployment};
use crate::graph::Document;
use crate::network::npy::Array;
use crate::network::npz;
use crate::network::place::{Arrangement, Operand};
use crate::pipeline::outcome::Summary;
use crate::pipeline::{self, Program};
use crate::planner;
use crate::report::lines::folded;
use crate::report::model::ModelReport;
use crate::report::plan::Planned;
use crate::report::plan_run::RunReport;
use crate::report::{PlanReport, plan_text};
use crate::runtime::{self, GraphFault, Network};

/// Options for models and graphs.
#[derive(clap::Args, Debug)]
pub(super) struct NetworkArgs {
    /// For a model: what it is compiled for, `opencl`, `opencl --device=adreno` (the default), `opencl --device=mali`, or `device` or `device:ID`,
    /// which is read; with the options --pitch=N, --group=N and --half
    #[arg(long, value_name = "TARGET")]
    target: Option<Target>,
    /// For a graph: the TVMScript or TE file with the functions of its steps
    #[arg(long, value_name = "KERNELS.py")]
    kernels: Option<String>,
    /// For a model or a graph: who plans its memory
    #[arg(long, value_enum)]
    planner: Option<Planner>,
    /// For a model or a graph: also write kernels.py and weights.npz, with which `tilewright plan DIR/graph.json --run
    /// DIR/kernels.py` proves and runs the graph of the folder
    #[arg(long)]
    executor: bool,
}

impl NetworkArgs {
    /// Refuses the options for a file that is neither a model nor a graph.
    ///
    /// # Errors
    /// One of them was given.
    pub(super) fn refuse(&self, file: &str) -> Result<(), Failure> {
        let used = [
            ("--target", self.target.is_some()),
            ("--kernels", self.kernels.is_some()),
            ("--planner", self.planner.is_some()),
            ("--executor", self.executor),
        ];
        let Some((option, _)) = used.iter().find(|(_, used)| *used) else { return Ok(()) };
        let message = format!("{option} is for models and graphs, and {file} is a program");
        Err(Failure::plain(file, "network-option", message)
            .with_help("give a model with the suffix .onnx, or a graph with the suffix .json"))
    }
}

/// Whether a path names a model or a graph.
pub(super) fn is_network(path: &str) -> bool {
    model::is_model(path) || Path::new(path).extension().is_some_and(|suffix| suffix.eq_ignore_ascii_case("json"))
}

/// What is compiled.
struct Subject {
    /// The text of the graph; empty for a model.
    source: Source,
    document: Document,
    /// The file of the kernels.
    kernels: Source,
    programs: Vec<Program>,
    model: Option<Loaded>,
    rules: PoolRules,
}

/// Compiles a model or a graph: writes the whole folder, or nothing.
///
/// # Errors
/// Bad input, or a folder that cannot be written.
pub(super) fn run(args: &Args, global: &Global, printer: &mut Printer) -> Result<ExitStatus, Failure> {
    let subject = subject(args, &global.host, printer)?;
    let Subject { source, document, rules, .. } = &subject;
    let (graph, rules, limits) = (&document.graph, *rules, rules.limits);
    let options = crate::cli::pipeline_options(global, &Shapes::default(), None);
    let judge = options.judge().map_err(|error| Failure::Internal(error.to_string()))?;
    let fault = |fault| Failure::input(source, vec![plan::placed(fault, source, &graph.graph, limits)]);
    // A graph that cannot be planned is refused before its kernels are proved.
    planner::candidates(&graph.graph, rules).map_err(fault)?;
    let programs = subject.programs.iter().cloned();
    let (rows, proved) = lowered(programs, (limits, &options), &judge, &subject.kernels, printer)?;
    let functions = proved.as_ref().map(|proved| in_place::functions(graph, &proved.module)).unwrap_or_default();
    let pairs = in_place::pairs(&judge, &graph.graph, rules, &functions).map_err(fault)?;
    let planner = args.network.planner.unwrap_or_default();
    let plan = plan::planned(planner, document, rules, &pairs).map_err(fault)?;
    let taken = in_place::taken(&pairs, &plan);
    let mut report = PlanReport::new(&Planned {
        file: &source.name,
        graph: &graph.graph,
        plan: &plan,
        lifetimes: &in_place::lifetimes(&graph.graph, &taken).map_err(fault)?,
        in_place: &taken,
        figures: &planner::figures_in_place(&graph.graph, &plan, rules, &pairs).map_err(fault)?,
        planner: planner.name(),
        rules,
    });
    report.verdicts = judge.check_plan_of(&graph.graph, &plan, rules, &functions, &crate::flow::FINDERS);
    report.run =
        Some(RunReport { kernels: subject.kernels.clone(), seed: global.seed, functions: rows, devices: Vec::new() });
    report.model = subject.model.as_ref().map(|loaded| {
        let Loaded { model, storage, network, profile } = loaded;
        ModelReport::new(model, storage, network, &profile.label(), false)
    });
    let status = if report.reports().any(Report::is_internal) {
        ExitStatus::Internal
    } else {
        ExitStatus::of_summary(report.summary(), global.allow_unknown)
    };
    let (ExitStatus::Success, Some(proved)) = (status, proved) else {
        return Ok(refused(args, &report, status, printer));
    };
    check_names(&subject)?;
    let mut outputs = files(args, &subject, &plan, &proved)?;
    if args.network.executor {
        outputs.extend(executor_files(&subject, args.dialect.dialect)?);
    }
    outputs.push(Output::text("report.json".to_owned(), report.to_json() + "\n"));
    write(&args.output, &outputs)?;
    say(args, report.summary(), &source.name, &outputs, printer)?;
    Ok(status)
}

/// Says what is not proved, and that nothing was written.
fn refused(args: &Args, report: &PlanReport, status: ExitStatus, printer: &Printer) -> ExitStatus {
    printer.message(&plan_text::plan(report, printer.style_of_messages()));
    let said = format!("nothing was written to {}: not every step is proved", args.output.display());
    printer.message(&folded(&said, printer.style_of_messages()));
    // A lowering that stops early is no success, whatever the summary says.
    if status == ExitStatus::Success { ExitStatus::of_summary(Summary::Unknown, false) } else { status }
}

/// Reads the model or the graph.
fn subject(args: &Args, host: &DeviceHost, printer: &mut Printer) -> Result<Subject, Failure> {
    let (file, network) = (&args.file, &args.network);
    let wrong = |code, message: &str| Failure::plain(file, code, message);
    if model::is_model(file) {
        if network.kernels.is_some() {
            return Err(wrong("model-kernels", "a model has kernels of its own, so that --kernels is not for it"));
        }
        let profile = Target::profile(network.target.as_ref(), host)?;
        let limits = args.limits.limits.unwrap_or(profile.limits);
        let (loaded, source) = model::load(file, &profile, limits)?;
        let document = Document { graph: loaded.network.graph.clone(), plan: None };
        let kernels = Source { name: format!("{file} for {}", loaded.profile.label()), text: String::new() };
        let programs = loaded.network.programs.clone();
        let rules = PoolRules { limits, pitch: profile.pitch };
        return Ok(Subject { source, document, kernels, programs, model: Some(loaded), rules });
    }
    if network.target.is_some() {
        return Err(wrong("model-option", "--target is for models: a graph says itself what is in textures"));
    }
    let Some(kernels) = &network.kernels else {
        return Err(wrong("graph-kernels", "a graph is compiled together with the functions of its steps")
            .with_help("write --kernels KERNELS.py"));
    };
    let (source, document) = plan::read_graph(file)?;
    let input = Input::read(kernels)?;
    let read = pipeline::read(&input.source.text, input.function.as_deref());
    let read = read.map_err(|faults| Failure::input(&input.source, faults))?;
    printer.diagnostics(&input.source, &read.warnings);
    // Only what the steps name is compiled; a step without a function is reported where they are bound.
    let as_read = Module { funcs: read.programs.iter().map(|program| program.func.clone()).collect() };
    let nothing = MemoryPlan::default();
    let bound = Network::new(&document.graph, &nothing, &as_read).map_err(|faults| Failure::input(&source, faults))?;
    let wanted: Vec<&str> = bound.functions.iter().map(|func| func.name.as_str()).collect();
    let programs = read.programs.iter().filter(|program| wanted.contains(&program.func.name.as_str())).cloned();
    let programs = programs.collect();
    let rules = PoolRules::any_width(args.limits.limits.unwrap_or(TextureLimits::PROMISED));
    Ok(Subject { source, document, kernels: input.source, programs, model: None, rules })
}

/// Checks that every name fits into a line of `plan.txt`, and that the command line of the host can say it.
///
/// # Errors
/// The first name with a control character.
fn check_names(subject: &Subject) -> Result<(), Failure> {
    let model = subject.model.iter().flat_map(|loaded| loaded.model.values.iter().map(|value| &value.name));
    let mut names = subject.document.graph.graph.tensors.iter().map(|tensor| &tensor.name).chain(model);
    match names.find(|name| name.chars().any(char::is_control)) {
        None => Ok(()),
        Some(name) => {
            let message =
                format!("the name {name:?} has a control character, which the files for the host cannot hold");
            Err(Failure::plain(&subject.source.name, "network-names", message).with_help("rename the tensor"))
        }
    }
}

/// The files of a proved network.
fn files(args: &Args, subject: &Subject, plan: &MemoryPlan, proved: &Proved) -> Result<Vec<Output>, Failure> {
    let (graph, of_graph) = (&subject.document.graph, |faults| Failure::input(&subject.source, faults));
    let inputs = inputs(subject)?;
    let network = Network::new(graph, plan, &proved.module).map_err(of_graph)?;
    let shipment = runtime::ship(&network, &inputs, args.checked).map_err(|fault| match fault {
        GraphFault::Input(faults) => of_graph(faults),
        GraphFault::Engine(fault) => Failure::Internal(format!("{fault:?}")),
    })?;
    let target = subject.model.as_ref().map_or("opencl".to_owned(), |loaded| loaded.profile.label());
    let deployment = Deployment {
        file: &subject.source.name,
        target: &target,
        limits: subject.rules.limits,
        graph,
        plan,
        shipment: &shipment,
        arguments: arguments(subject, inputs),
    };
    let files = deployment.files().map_err(|fault| Failure::Internal(fault.to_string()))?;
    Ok(files.into_iter().map(|file| Output { name: file.name, contents: file.contents }).collect())
}

/// What the executor needs beside `graph.json`: the functions of the steps before the passes, and the packed constants by name.
fn executor_files(subject: &Subject, dialect: Dialect) -> Result<Vec<Output>, Failure> {
    let funcs = subject.programs.iter().map(|program| program.scheduled_func().clone()).collect();
    let kernels =
        print_module_in(&Module { funcs }, dialect).map_err(|faults| Failure::input(&subject.kernels, faults))?;
    let mut weights: Vec<(&str, Array)> = Vec::new();
    for (tensor, argument) in subject.document.graph.graph.tensors.iter().zip(arguments(subject, inputs(subject)?)) {
        let Some(constant) = argument.constant else { continue };
        let packed = Operand { dtype: tensor.dtype.scalar, ..Operand::plain(&tensor.shape) };
        weights.push((&tensor.name, Array { shape: tensor.shape.clone(), elements: packed.unpacked(&constant) }));
    }
    let weights = npz::write(weights.iter().map(|(name, array)| (*name, array))).map_err(Failure::Internal)?;
    let weights = Output { name: "weights.npz".to_owned(), contents: weights };
    Ok(vec![Output::text("kernels.py".to_owned(), kernels), weights])
}

/// The inputs of the graph: packed constants, and zeros for what the caller gives when the network runs.
fn inputs(subject: &Subject) -> Result<Vec<Tensor>, Failure> {
    let wrong = |what: String| Failure::plain(&subject.source.name, "graph-inputs", what);
    if let Some(Loaded { model, network, .. }) = &subject.model {
        let zeros = |value: &crate::network::model::Value| {
            Operand::plain(&value.shape).packed(|_| 0.0).map_err(|error| format!("input `{}`: {error}", value.name))
        };
        return network.inputs(model, &zeros).map_err(wrong);
    }
    let tensors = subject.document.graph.graph.tensors.iter();
    let given = tensors.filter(|tensor| tensor.role.is_given());
    let zeros = given.map(|tensor| {
        Tensor::undefined(tensor.dtype, &tensor.shape).map_err(|error| wrong(format!("`{}`: {error}", tensor.name)))
    });
    zeros.collect()
}

/// What the tensors of the graph hold.
fn arguments(subject: &Subject, inputs: Vec<Tensor>) -> Vec<Argument> {
    let mut inputs = inputs.into_iter();
    let tensors = subject.document.graph.graph.tensors.iter().enumerate();
    let argument = |(number, tensor): (usize, &tilewright_ir::GraphTensor)| {
        let input = if tensor.role.is_given() { inputs.next() } else { None };
        let plain = Argument {
            value: tensor.name.clone(),
            shape: tensor.shape.clone(),
            arrangement: Arrangement::Plain,
            constant: None,
        };
        let Some(Loaded { model, network, .. }) = &subject.model else { return plain };
        let known = &network.tensors[number];
        let value = &model.values[known.value];
        Argument {
            value: value.name.clone(),
            shape: known.operand.shape.clone(),
            arrangement: known.operand.arrangement,
            constant: input.filter(|_| value.contents.is_some()),
        }
    };
    tensors.map(argument).collect()
}
