//! The main job as a library: read, lower, run every pass, prove every step, run every stage on every engine.
//!
//! ```text
//! text ── read ──> Program ── lower ──> stages [lowered, after apply_buffer_transforms, after flatten_buffer, ...]
//!                                       and a StepOutcome for each step with its reports
//! ```
//!
//! A step goes on only if the judge proved it, or if what is not proved is undecided and was allowed. Steps after one
//! that was refused have an outcome too: blocked, with the reason. [`outcome`] is what a run found, as data.

pub mod engines;
pub mod limits;
pub mod outcome;
pub mod pair;
pub mod races;

use std::time::{Duration, Instant};

use tilewright_device::DeviceHost;
use tilewright_ir::{
    Buffer, Definition, Diagnostic, Evidence, LoweringEvidence, Module, PrimFunc, TextureLimits, validate,
};
use tilewright_verify::{Config, Judge, Report};

use crate::passes::{self, Pass};
use crate::te;
use outcome::{Blocked, BufferOutcome, CheckOutcome, FunctionOutcome, Setting, StepOutcome, Summary};

/// What a run is given.
#[derive(Clone, Debug)]
pub struct Options {
    /// Threads for proving; 0 means all cores.
    pub threads: usize,
    /// Wall clock for one goal.
    pub timeout: Duration,
    /// Seed of the input values.
    pub seed: u64,
    /// Values of symbolic extents for the engines; the harness chooses the others.
    pub shapes: Vec<(String, i64)>,
    /// Where generated kernels run.
    pub device: DeviceChoice,
    /// Whether drivers run in this process (the default) or in one of their own.
    pub host: DeviceHost,
    /// The largest texture, where it was stated.
    pub limits: Option<TextureLimits>,
    /// Whether a step that is not decided may go on.
    pub allow_unknown: bool,
    /// Whether the rows carry what they rest on, for a certificate.
    pub record: bool,
    /// The function that is meant; all of them if none.
    pub function: Option<String>,
}

impl Options {
    /// What the judge may spend.
    pub fn judge_config(&self) -> Config {
        Config { threads: self.threads, timeout: self.timeout, ..Config::default() }
    }

    /// A judge that spends no more, and records if that is asked for.
    ///
    /// # Errors
    /// There is no solver that will do.
    pub fn judge(&self) -> Result<Judge, tilewright_verify::solver::SolverError> {
        let judge = Judge::new(self.judge_config())?;
        Ok(if self.record { judge.recording() } else { judge })
    }

    /// What the outcome says of the run.
    pub fn setting(&self, solver: String) -> Setting {
        Setting { solver, seed: self.seed, allow_unknown: self.allow_unknown }
    }
}

/// Where generated kernels run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum DeviceChoice {
    /// On the first device that there is.
    #[default]
    First,
    /// On every device.
    All,
    /// Nowhere, because that was asked for.
    None,
    /// On the one with that index or name.
    Named(String),
}

/// A function to be lowered, and where it comes from.
#[derive(Clone, Debug)]
pub struct Program {
    /// The function as it was read or lowered.
    pub func: PrimFunc,
    /// What it computes, if it was written in TE: the definition, and the claim that ties the function to it.
    pub definition: Option<(Definition, LoweringEvidence)>,
}

/// A program after a step.
#[derive(Clone, Debug)]
pub struct Stage {
    /// Name of the step; `input` for the program as it was read, `lower` as it was lowered from TE.
    pub name: String,
    /// The program.
    pub func: PrimFunc,
    /// What the pass that made it claims; none for the first stage.
    pub evidence: Option<Evidence>,
}

/// A program through all steps.
#[derive(Clone, Debug)]
pub struct Lowering {
    /// The program after each step that went through, the first as it came in.
    pub stages: Vec<Stage>,
    /// The outcome of each step, of those that did not run, too.
    pub steps: Vec<StepOutcome>,
    /// Why the later steps did not run; none if every step went through.
    pub stopped: Option<Blocked>,
}

/// Called before each step with the function's name and the step's.
pub type Observer<'a> = dyn FnMut(&str, &str) + 'a;

/// What was found in a text.
#[derive(Clone, Debug)]
pub struct Programs {
    /// The functions that were asked for.
    pub programs: Vec<Program>,
    /// What should be known of the text.
    pub warnings: Vec<Diagnostic>,
}

/// Reads the functions of a text: TVMScript as they stand, TE lowered.
///
/// # Errors
/// All that is wrong with the text; `no-function` if there is none, or none of that name.
pub fn read(text: &str, function: Option<&str>) -> Result<Programs, Vec<Diagnostic>> {
    if let Some(fault) = tilewright_script::foreign::diagnose(text).or_else(|| empty(text)) {
        return Err(vec![fault]);
    }
    let mut read =
        if tilewright_script::is_tvmscript(text) { read_tvmscript(text, function)? } else { read_te(text, function)? };
    let faults = read.programs.iter().filter_map(|program| validate(&program.func).err()).flatten();
    let faults: Vec<Diagnostic> = faults.collect();
    read.warnings.extend(read.programs.iter().flat_map(|program| separators_beside_layouts(&program.func)));
    if faults.is_empty() { Ok(read) } else { Err(faults) }
}

/// The error of a text that has blank lines and comments only.
fn empty(text: &str) -> Option<Diagnostic> {
    let is_empty = text.lines().map(str::trim).all(|line| line.is_empty() || line.starts_with('#'));
    is_empty.then(|| {
        Diagnostic::error("no-function", None, "the program is empty").with_help(
            "write TVMScript, a function with `@T.prim_func`, or TE: `te.placeholder`, `te.compute` and \
             `te.create_schedule`",
        )
    })
}

/// Notes on buffers that have axis separators of their own beside a layout map: RFC 39's text counts them from the last
/// axis of a group, all releases of TVM count the axes in front.
fn separators_beside_layouts(func: &PrimFunc) -> Vec<Diagnostic> {
    let note = |buffer: &Buffer| {
        let (_, maps) = func.attrs.layout_transform_map.iter().find(|(data, _)| *data == buffer.data)?;
        let last = maps.last()?;
        let positions = buffer.axis_separators.positions();
        if positions.is_empty() || !last.axis_separators().is_empty() {
            return None;
        }
        let message =
            format!("the axis separators {positions:?} of `{buffer}` count from the front of the new layout, `{last}`");
        let counted: Vec<usize> = positions.iter().map(|at| at - 1).collect();
        let help = format!(
            "a separator is the number of axes in front of it, as in every release of TVM; the text of RFC 39 writes \
             {counted:?} for the same place"
        );
        Some(Diagnostic::warning("axis-separators", buffer.span, message).with_help(help))
    };
    func.buffers().iter().filter_map(note).collect()
}

/// The functions of that name, or all of them.
fn select(programs: Vec<Program>, function: Option<&str>) -> Result<Vec<Program>, Diagnostic> {
    let names: Vec<String> = programs.iter().map(|program| program.func.name.clone()).collect();
    let named = |program: &Program| function.is_none_or(|name| program.func.name == name);
    let selected: Vec<Program> = programs.into_iter().filter(named).collect();
    if selected.is_empty() { Err(no_function(function, &names)) } else { Ok(selected) }
}

/// The error for a text without the wanted function.
fn no_function(wanted: Option<&str>, names: &[String]) -> Diagnostic {
    match wanted {
        Some(name) if !names.is_empty() => {
            Diagnostic::error("no-function", None, format!("there is no function `{name}` in the file"))
                .with_help(format!("it has {}", names.join(", ")))
        }
        _ => Diagnostic::error("no-function", None, "the file holds no function, so there is nothing to check")
            .with_help("write a function with @T.prim_func, or a TE program with te.create_schedule"),
    }
}

/// Reads the functions of a TVMScript text.
fn read_tvmscript(text: &str, function: Option<&str>) -> Result<Programs, Vec<Diagnostic>> {
    let module: Module = tilewright_script::read_module(text)?;
    let programs = module.funcs.into_iter().map(|func| Program { func, definition: None }).collect();
    let programs = select(programs, function).map_err(|fault| vec![fault])?;
    Ok(Programs { programs, warnings: Vec::new() })
}

/// `function` is one of the Python functions of the text, which is then called; failing that, a function that the
/// text lowers.
fn read_te(text: &str, function: Option<&str>) -> Result<Programs, Vec<Diagnostic>> {
    let tree = tilewright_script::te::read(text)?;
    match te::evaluate(&tree, function) {
        Ok(lowered) => Ok(from_te(lowered)),
        Err(faults) if function.is_some() => {
            let all = te::evaluate(&tree, None).map_err(|_| faults.clone())?;
            let Programs { programs, warnings } = from_te(all);
            let programs = select(programs, function).map_err(|_| faults)?;
            Ok(Programs { programs, warnings })
        }
        Err(faults) => Err(faults),
    }
}

/// The programs that the TE evaluator lowered.
fn from_te(lowered: Vec<te::Lowered>) -> Programs {
    let mut read = Programs { programs: Vec::new(), warnings: Vec::new() };
    for lowered in lowered {
        read.warnings.extend(lowered.warnings);
        let definition = Some((lowered.definition, lowered.evidence));
        read.programs.push(Program { func: lowered.func, definition });
    }
    read
}

/// Why a check has no outcome.
#[derive(Clone, Debug)]
pub enum CheckFault {
    /// All that is wrong with the input.
    Input(Vec<Diagnostic>),
    /// A fault of the machine or of Tilewright itself.
    Internal(String),
}

impl From<Vec<Diagnostic>> for CheckFault {
    fn from(diagnostics: Vec<Diagnostic>) -> Self {
        Self::Input(diagnostics)
    }
}

/// Reads a text, lowers its functions, proves every step and runs every stage.
///
/// # Errors
/// [`CheckFault::Input`] for bad input, [`CheckFault::Internal`] for a fault of the machine or of Tilewright. A
/// refuted obligation is no error; the outcome reports it.
pub fn check(text: &str, options: &Options, observe: &mut Observer<'_>) -> Result<CheckOutcome, CheckFault> {
    let Programs { mut programs, warnings } = read(text, options.function.as_deref())?;
    known_symbols(&programs, &options.shapes)?;
    let internal = |error: tilewright_verify::solver::SolverError| CheckFault::Internal(error.to_string());
    let solver = format!("Z3 {}", tilewright_verify::solver::z3_version().map_err(internal)?);
    let judge = options.judge().map_err(internal)?;
    let mut outcome = CheckOutcome { warnings, ..CheckOutcome::new(options.setting(solver)) };
    for program in &mut programs {
        let limits = limits::set(program, options.limits, &options.device, &options.host);
        let lowering = lower(program, &judge, options.allow_unknown, observe);
        let lowering = lowering.map_err(|fault| limits::explained(limits.as_ref(), fault))?;
        let mut function = FunctionOutcome::of_lowering(&program.func.name, &lowering);
        function.texture_limits = limits;
        function.run = engines::run(program, &lowering, options, observe)?;
        outcome.functions.push(function);
    }
    Ok(outcome)
}

/// Every extent that was given a value has to be one of some function.
///
/// # Errors
/// One that is not, or is given twice.
pub fn known_symbols(programs: &[Program], shapes: &[(String, i64)]) -> Result<(), Vec<Diagnostic>> {
    let symbols: Vec<String> =
        programs.iter().flat_map(|program| program.func.symbols()).map(|symbol| symbol.name().to_owned()).collect();
    let mut faults = Vec::new();
    for (position, (name, _)) in shapes.iter().enumerate() {
        if shapes[..position].iter().any(|(other, _)| other == name) {
            let message = format!("--shape gives extent `{name}` twice");
            faults.push(Diagnostic::error("duplicate-extent", None, message));
        } else if !symbols.contains(name) {
            let message = format!("--shape gives a value to `{name}`, which is no symbolic extent of the program");
            let listed =
                if symbols.is_empty() { "it has none".to_owned() } else { format!("it has {}", symbols.join(", ")) };
            faults.push(Diagnostic::error("unknown-extent", None, message).with_help(listed));
        }
    }
    if faults.is_empty() { Ok(()) } else { Err(faults) }
}

/// Runs every pass on a program and proves every step.
///
/// # Errors
/// A pass refuses the program, for example because the separators of two layouts contradict each other; or it makes a
/// malformed one, which is a fault of the pass.
pub fn lower(
    program: &Program,
    judge: &Judge,
    allow_unknown: bool,
    observe: &mut Observer<'_>,
) -> Result<Lowering, CheckFault> {
    let name = &program.func.name;
    let first = if program.definition.is_some() { "lower" } else { "input" };
    observe(name, first);
    let start = Instant::now();
    let mut reports = match &program.definition {
        Some((definition, evidence)) => {
            let mut reports = judge.check_definition(definition);
            reports.extend(judge.check_lowering(definition, &program.func, evidence));
            reports
        }
        None => judge.check_program(&program.func),
    };
    races::look_by_running(&program.func, &mut reports);
    let stage = Stage { name: first.to_owned(), func: program.func.clone(), evidence: None };
    let mut lowering = Lowering { stages: vec![stage], steps: Vec::new(), stopped: None };
    lowering.finish(first, start, reports, allow_unknown);
    let in_pipeline = |pass: &&Pass| passes::DEFAULT_PIPELINE.contains(&pass.name) && (pass.wanted)(&program.func);
    for pass in passes::PASSES.iter().filter(in_pipeline) {
        if let Some(blocked) = lowering.stopped.clone() {
            let (name, blocked) = (pass.name.to_owned(), Some(blocked));
            lowering.steps.push(StepOutcome { name, ms: 0.0, reports: Vec::new(), blocked });
        } else {
            observe(name, pass.name);
            lowering.run(pass, judge, allow_unknown)?;
        }
    }
    Ok(lowering)
}

impl Lowering {
    /// The worst of its steps; `Skipped` if there was nothing to prove at all.
    pub fn summary(&self) -> Summary {
        let empty = self.steps.iter().all(|step| step.reports.is_empty()).then_some(Summary::Skipped);
        Summary::worst(self.steps.iter().map(StepOutcome::summary).chain(empty))
    }

    /// Whether every step went through.
    pub fn is_complete(&self) -> bool {
        self.stopped.is_none()
    }

    /// The program after the last step that went through.
    pub fn last(&self) -> &PrimFunc {
        &self.stages[self.stages.len() - 1].func
    }

    /// Runs a pass on the last stage and proves it.
    fn run(&mut self, pass: &Pass, judge: &Judge, allow_unknown: bool) -> Result<(), CheckFault> {
        let start = Instant::now();
        let before = self.last().clone();
        let after = (pass.run)(&before)?;
        if let Err(faults) = validate(&after.func) {
            let what = faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
            return Err(CheckFault::Internal(format!("internal: `{}` made a malformed program: {what}", pass.name)));
        }
        let reports = judge.check_pass(&before, &after.func, &after.evidence);
        self.finish(pass.name, start, reports, allow_unknown);
        if self.is_complete() {
            let evidence = Some(after.evidence);
            self.stages.push(Stage { name: pass.name.to_owned(), func: after.func, evidence });
        }
        Ok(())
    }

    /// Adds the outcome of a step, and stops the lowering if the step must not go on.
    fn finish(&mut self, name: &str, start: Instant, reports: Vec<Report>, allow_unknown: bool) {
        let ms = start.elapsed().as_secs_f64() * 1e3;
        let step = StepOutcome { name: name.to_owned(), ms, reports, blocked: None };
        let goes_on = goes_on(step.summary(), allow_unknown);
        self.steps.push(step);
        if !goes_on {
            let unproved = self.steps.iter().find(|step| step.summary() != Summary::Proved);
            self.stopped = unproved.map(|step| Blocked { by: step.name.clone(), summary: step.summary() });
        }
    }

    /// The buffers of the first stage through all stages.
    pub fn buffers(&self) -> Vec<BufferOutcome> {
        let Some((first, later)) = self.stages.split_first() else { return Vec::new() };
        let declared = first.func.buffers();
        declared.iter().map(|buffer| BufferOutcome::follow(buffer, later)).collect()
    }
}

/// Whether a step with this summary lets the next one run.
fn goes_on(summary: Summary, allow_unknown: bool) -> bool {
    match summary {
        Summary::Proved => true,
        Summary::Skipped | Summary::Vacuous | Summary::Unknown => allow_unknown,
        Summary::Mismatch | Summary::Refuted => false,
    }
}
