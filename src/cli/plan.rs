//! `tilewright plan`: plans the memory of a graph and proves the plan; with `--run` it runs the kernels on a device.
//!
//! ```text
//! model  ->  graph and kernels
//! graph  ->  plan (planner, not trusted)  ->  proof (judge)  ->  report, picture, JSON of TVM's graph executor
//! ```
//!
//! The plan is written only if every obligation is proved and, with `--run`, every device agrees.

mod arrays;
pub(super) mod in_place;
pub(super) mod model;
pub(super) mod run;

use std::path::PathBuf;

use tilewright_ir::{Diagnostic, Graph, InPlace, MemoryPlan, Module, PoolRules, Room, TextureLimits};
use tilewright_script::Source;
use tilewright_verify::Report;

use super::certificate::CertificateOption;
use super::exit::ExitStatus;
use super::failure::Failure;
use super::input::{Input, Kind, refuse_stdin_twice};
use super::options::{Global, Limits, Shapes};
use super::output::{self, OutputFile};
use super::printer::Printer;
use crate::certificate::Entry;
use crate::graph::{self, Document};
use crate::network::profile::Profile;
use crate::planner::{self, Strategy};
use crate::report::palette::PictureStyle;
use crate::report::plan::Planned;
use crate::report::{PlanReport, network_svg, plan_html, plan_svg, plan_text};

/// Plan the memory of a graph or of an ONNX model: which tensors share a pool, where in it, the proof that none overlap; and run it
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  tilewright plan examples/graphs/mobilenet_block.json
  tilewright plan examples/graphs/mobilenet_block.json --svg plan.svg -o planned.json
  tilewright plan planned.json --planner given     # judges the plan that the file has, TVM's own for example
  tilewright plan examples/graphs/block.json --run examples/graphs/block.py
  tilewright plan examples/models/tiny.onnx --explain --run

With --run every function that a step names is proved, and after each step the device's tensors are compared with the \
interpreter's; --device none proves and runs nothing.")]
pub struct Args {
    /// The graph: `tilewright.graph/1` or the JSON of TVM's graph executor; `-` reads standard input. Or a model: a file with
    /// the suffix `.onnx`
    #[arg(value_name = "GRAPH.json|MODEL.onnx")]
    graph: String,
    /// Write the graph with its plan to this file, as the JSON of TVM's graph executor; only if all is
    /// proved and agrees
    #[arg(long, short, value_name = "OUT.json")]
    output: Option<PathBuf>,
    /// Who plans
    #[arg(long, value_enum, default_value_t = Planner::Best)]
    planner: Planner,
    /// Draw the plan to this file: steps against memory
    #[arg(long, value_name = "FILE.svg")]
    svg: Option<PathBuf>,
    /// Draw the graph to this file: steps, and tensors in the colour of their scope
    #[arg(long, value_name = "FILE.svg")]
    network_svg: Option<PathBuf>,
    /// Write the whole report as a page to this file: pictures, memory, proofs, and times with --run
    #[arg(long, value_name = "FILE.html")]
    html: Option<PathBuf>,
    /// Colours of the pictures
    #[arg(long, value_enum, default_value_t)]
    style: PictureStyle,
    /// Prove the kernels of the graph, run them on the device in the planned memory and compare every tensor. The file is
    /// TVMScript or TE; a step is run by the function that it names, or that is called like it; its parameters are what the
    /// step reads and then what it writes. A model has kernels of its own, and takes no file
    #[arg(long, value_name = "KERNELS.py", num_args = 0..=1, default_missing_value = "")]
    run: Option<String>,
    #[command(flatten)]
    arrays: arrays::ArrayArgs,
    #[command(flatten)]
    model: model::ModelArgs,
    #[command(flatten)]
    limits: Limits,
    #[command(flatten)]
    certificate: CertificateOption,
}

/// Who plans.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Planner {
    /// As TVM does: storage tokens that are given back and taken again
    Compatible,
    /// The smallest of several plans, never larger than the compatible one
    #[default]
    Best,
    /// Nobody: the file says where tensors lie
    Given,
}

impl Planner {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Compatible => "compatible",
            Self::Best => "best",
            Self::Given => "given",
        }
    }
}

/// Plans the memory of a graph, proves the plan, and prints, draws and writes it.
///
/// # Errors
/// The graph has faults, a texture is above the limits, or a file cannot be read or written.
pub fn run(args: &Args, global: &Global, printer: &mut Printer) -> Result<ExitStatus, Failure> {
    let output = args.output.iter().map(|path| OutputFile { option: "-o", path, suffix: Some("json") });
    let picture = args.svg.iter().map(|path| OutputFile { option: "--svg", path, suffix: Some("svg") });
    let network = args.network_svg.iter().map(|path| OutputFile { option: "--network-svg", path, suffix: Some("svg") });
    let page = args.html.iter().map(|path| OutputFile { option: "--html", path, suffix: Some("html") });
    let kernels = args.run.as_ref().filter(|file| !file.is_empty());
    let inputs: Vec<&str> = std::iter::once(&args.graph).chain(kernels).map(String::as_str).collect();
    refuse_stdin_twice(inputs.iter().copied())?;
    let outputs: Vec<_> = output.chain(picture).chain(network).chain(page).chain(args.certificate.output()).collect();
    output::refuse_clashes(&inputs, &outputs)?;
    let options = super::pipeline_options(global, &Shapes::default(), None);
    let judge = args.certificate.judge(&options)?;
    let profile = args.model.profile(&args.graph, &global.host)?;
    // The largest texture: as stated; that of the target for a model; what every device has for a graph.
    let known = profile.as_ref().map_or(PoolRules::any_width(TextureLimits::PROMISED), Profile::pool_rules);
    let rules = PoolRules { limits: args.limits.limits.unwrap_or(known.limits), pitch: known.pitch };
    let limits = rules.limits;
    let Subject { source, document, model } = subject(args, profile.as_ref(), limits)?;
    let exchanged = match &model {
        Some(loaded) => loaded.exchanged(&args.arrays, &args.graph)?,
        None => run::exchanged(&args.arrays, &document.graph, &args.graph)?,
    };
    let graph = &document.graph.graph;
    printer.diagnostics(&source, &warnings(&document));
    let fault = |fault| Failure::input(&source, vec![placed(fault, &source, graph, limits)]);
    // A graph that cannot be planned is refused before its kernels are proved. The kernels come before the plan, because a step works in
    // place only if that is proved of its function.
    planner::candidates(graph, rules).map_err(fault)?;
    let mut kernels = None;
    if let Some(file) = &args.run {
        super::check_device(global)?;
        kernels = Some(match &model {
            Some(loaded) => loaded.kernels(&source.name, &options, &judge, printer)?,
            None => run::kernels((&document.graph, &source), file, (limits, &options), (&judge, printer))?,
        });
    }
    let unproved = match (&kernels, &model) {
        (None, Some(loaded)) => in_place::unproved(&document.graph, rules, &loaded.network.programs).map_err(fault)?,
        (Some(_), _) | (None, None) => Module::default(),
    };
    let proved = kernels.as_ref().and_then(|kernels| kernels.proved.as_ref()).map(|proved| proved.module.clone());
    let module = proved.unwrap_or(unproved);
    let functions = in_place::functions(&document.graph, &module);
    let pairs = in_place::pairs(&judge, graph, rules, &functions).map_err(fault)?;
    let plan = planned(args.planner, &document, rules, &pairs).map_err(fault)?;
    let figures = planner::figures_in_place(graph, &plan, rules, &pairs).map_err(fault)?;
    let taken = in_place::taken(&pairs, &plan);
    let lifetimes = in_place::lifetimes(graph, &taken).map_err(fault)?;
    let mut report = PlanReport::new(&Planned {
        file: &source.name,
        graph,
        plan: &plan,
        lifetimes: &lifetimes,
        in_place: &taken,
        figures: &figures,
        planner: args.planner.name(),
        rules,
    });
    // The judge checks the plan, whoever made it: the planner is not trusted, nor is the plan of a file.
    report.verdicts = judge.check_plan_of(graph, &plan, rules, &functions, &crate::flow::FINDERS);
    if let Some(kernels) = kernels {
        let (graph, plan, summary, source) = (&document.graph, &plan, report.summary(), &source);
        let request = run::Request { source, graph, plan, summary, options: &options };
        report.run = Some(match &model {
            Some(model) => model.run(&request, kernels, (&args.model, &exchanged), printer)?,
            None => run::run(&request, kernels, &exchanged)?,
        });
    }
    report.functions.clone_from(&document.graph.functions);
    report.model = model.as_ref().map(|model| model.report(&args.model));
    let status = if report.reports().any(Report::is_internal) {
        ExitStatus::Internal
    } else {
        ExitStatus::of_summary(report.summary(), global.allow_unknown)
    };
    args.certificate.write(&entries(&report))?;
    if let Some(path) = &args.svg {
        output::write(path, &plan_svg::draw(&report, args.style))?;
    }
    if let Some(path) = &args.network_svg {
        output::write(path, &network_svg::draw(&report, args.style))?;
    }
    if let Some(path) = &args.html {
        output::write(path, &plan_html::page(&report, args.style))?;
    }
    // The plan is written last, and only if everything else succeeded.
    if let (Some(path), ExitStatus::Success) = (&args.output, status) {
        let text = graph::write(&document.graph, Some(&plan)).map_err(|fault| Failure::Internal(fault.to_string()))?;
        output::write(path, &text)?;
    }
    if printer.is_json() {
        printer.json(&report.to_json())?;
    } else {
        printer.result(&plan_text::plan(&report, printer.style()))?;
    }
    Ok(status)
}

/// What is planned.
struct Subject {
    /// The text of the graph; empty for a model, which is no text.
    source: Source,
    document: Document,
    model: Option<model::Loaded>,
}

/// Reads the graph or the model.
fn subject(args: &Args, profile: Option<&Profile>, limits: TextureLimits) -> Result<Subject, Failure> {
    if let (Some(option), None) = (args.arrays.first_used(), &args.run) {
        let message = format!("{option} is for networks that are run");
        return Err(Failure::plain(&args.graph, "plan-option", message).with_help("add --run"));
    }
    if let Some(profile) = profile {
        if args.run.as_ref().is_some_and(|file| !file.is_empty()) {
            let message = "a model has kernels of its own, so that --run takes no file";
            return Err(Failure::plain(&args.graph, "model-kernels", message));
        }
        let (loaded, source) = model::load(&args.graph, profile, limits)?;
        let document = Document { graph: loaded.network.graph.clone(), plan: None };
        return Ok(Subject { source, document, model: Some(loaded) });
    }
    if let Some(option) = args.model.first_used() {
        let message = format!("{option} is for models, and {} is a graph", args.graph);
        return Err(Failure::plain(&args.graph, "model-option", message).with_help("give a file with the suffix .onnx"));
    }
    if args.run.as_ref().is_some_and(String::is_empty) {
        let message = "--run needs the file of the kernels of the graph";
        return Err(Failure::plain(&args.graph, "graph-kernels", message).with_help("write --run KERNELS.py"));
    }
    let (source, document) = read_graph(&args.graph)?;
    Ok(Subject { source, document, model: None })
}

/// Reads a graph.
pub(super) fn read_graph(path: &str) -> Result<(Source, Document), Failure> {
    let source = Input::read_as(path, Kind::Graph)?.source;
    if let Some(fault) = tilewright_script::foreign::diagnose_graph(&source.text) {
        return Err(Failure::input(&source, vec![fault]));
    }
    let document = graph::read(&source.text).map_err(|faults| Failure::input(&source, faults))?;
    Ok((source, document))
}

/// Warnings about a graph that may mean something else than was intended.
fn warnings(document: &Document) -> Vec<Diagnostic> {
    if !document.graph.outputs.is_empty() {
        return Vec::new();
    }
    let message = "the graph has no outputs: the results of its last steps are lost";
    let warning = Diagnostic::warning("graph-no-outputs", None, message);
    vec![
        warning
            .with_help("list in `outputs`, or in `heads`, what the caller takes; its memory is then kept to the end"),
    ]
}

/// The plan: that of the file, or a new one.
/// `pairs` are the steps that may work in place.
pub(super) fn planned(
    planner: Planner,
    document: &Document,
    rules: PoolRules,
    pairs: &[InPlace],
) -> Result<MemoryPlan, Diagnostic> {
    let strategy = match planner {
        Planner::Compatible => Strategy::Compatible,
        Planner::Best => Strategy::Best,
        Planner::Given => {
            let missing = || {
                Diagnostic::error("no-plan", None, "the file does not say where its tensors lie")
                    .with_help("a planned file has `storage_id`; without --planner given this graph is planned")
            };
            let plan = document.plan.clone().ok_or_else(missing)?;
            return pools_within(plan, rules.limits);
        }
    };
    planner::plan_in_place(&document.graph.graph, strategy, rules, pairs)
}

/// The entries of the certificate: the obligations of the plan, and of each step of a kernel's lowering.
fn entries(report: &PlanReport) -> Vec<Entry<'_>> {
    let own = report.verdicts.iter().map(|row| (String::new(), row));
    let kernels = report.run.iter().flat_map(|run| {
        run.functions.iter().flat_map(move |function| {
            function.steps.iter().flat_map(move |step| {
                let within = format!("{}::{} {}", run.kernels.name, function.name, step.name);
                step.reports.iter().map(move |row| (within.clone(), row))
            })
        })
    });
    own.chain(kernels).collect()
}

/// Places a fault about texture limits at the first texture above them. Planners do not know the text of the graph.
pub(super) fn placed(fault: Diagnostic, source: &Source, graph: &Graph, limits: TextureLimits) -> Diagnostic {
    let too_large =
        |room| matches!(room, Ok(Room::Texels { width, height }) if width > limits.width || height > limits.height);
    let tensor = graph.tensors.iter().position(|tensor| too_large(tensor.room()));
    match tensor.filter(|_| fault.code == "texture-limits").and_then(|at| graph::place_of(&source.text, at)) {
        Some(span) => fault.with_label(span, "this texture"),
        None => fault,
    }
}

/// Refuses a plan with textures above the limits. The judge does not check this, because it knows no device.
fn pools_within(plan: MemoryPlan, limits: TextureLimits) -> Result<MemoryPlan, Diagnostic> {
    for (id, pool) in plan.pools.iter().enumerate() {
        if let Room::Texels { width, height } = pool.room
            && (width > limits.width || height > limits.height)
        {
            let message = format!("pool {id} is {width} wide and {height} high, the limits are {limits}");
            return Err(Diagnostic::error("texture-limits", None, message)
                .with_help("say what the device has with --limits WIDTHxHEIGHT"));
        }
    }
    Ok(plan)
}
