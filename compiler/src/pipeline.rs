//! The main job as a library: read, lower, run every pass, prove every step, run every stage on every engine.
//!
//! ```text
//! text ── read ──> Program ── lower ──> stages [lowered, after apply_buffer_transforms, after flatten_buffer, ...]
//!                                       and a StepOutcome for each step with its reports
//! ```
//!
//! The pipeline continues after a step only if the judge proved the step, or if its unproved obligations are undecided and
//! the options allow that. The steps after a refused one have the outcome *blocked*, with the reason. [`outcome`] holds the
//! findings of a run as data.

pub mod assume;
pub mod bench;
pub mod engines;
pub mod executed;
pub mod findings;
pub mod limits;
pub mod outcome;
mod own_memory;
pub mod pair;
pub mod races;
mod reading;
mod scheduled;

use std::time::{Duration, Instant};

use tilewright_device::DeviceHost;
use tilewright_ir::{
    Buffer, Definition, Diagnostic, Evidence, Expr, LoweringEvidence, PrimFunc, TextureLimits, validate,
};
use tilewright_verify::definitions::reassociated_in;
use tilewright_verify::{Config, Judge, OWN_MEMORY, Place, Premise, Report, Side};

use crate::block_schedule::Step;
use crate::codegen::Kernels;
use crate::harness::stages::ChainTimes;
use crate::lift;
use crate::passes::{PassCall, Pipeline, REASSOCIATING};
use assume::{AssumeFault, Assumption};
use executed::{Before, Order};
use outcome::{Blocked, BufferOutcome, CheckOutcome, FunctionOutcome, Setting, StepOutcome, Summary};

pub use reading::read;

/// The name of the step that generates kernels, in reports.
pub const CODEGEN: &str = "codegen";

/// The options of a run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Number of threads for proving; 0 means all cores.
    pub threads: usize,
    /// Wall-clock time for one goal.
    pub timeout: Duration,
    /// Seed of the input values.
    pub seed: u64,
    /// Values of symbolic extents for the engines; the harness chooses the others.
    pub shapes: Vec<(String, i64)>,
    /// The devices on which generated kernels run.
    pub device: DeviceChoice,
    /// Whether drivers run in this process (the default) or in one of their own.
    pub host: DeviceHost,
    /// Conditions on the integers of a call that its caller guarantees, as text.
    pub assume: Vec<String>,
    /// The largest texture, if it was stated.
    pub limits: Option<TextureLimits>,
    /// Whether the pipeline may continue after a step that is undecided.
    pub allow_unknown: bool,
    /// The passes that run on each function.
    pub pipeline: Pipeline,
    /// Whether the reports carry the goals and facts that they rest on, for a certificate.
    pub record: bool,
    /// The function to process; `None` for all functions of the text.
    pub function: Option<String>,
}

impl Options {
    /// Returns the configuration of the judge: its time limits and threads.
    pub fn judge_config(&self) -> Config {
        Config { threads: self.threads, timeout: self.timeout, ..Config::default() }
    }

    /// Creates a judge with this configuration, which records what a certificate needs if `record` is set.
    ///
    /// # Errors
    /// No usable solver was found.
    pub fn judge(&self) -> Result<Judge, tilewright_verify::solver::SolverError> {
        let judge = Judge::new(self.judge_config(), tilewright_search::strategies())?;
        Ok(if self.record { judge.recording() } else { judge })
    }

    /// Returns the part of the outcome that describes how the run was made.
    pub fn setting(&self, solver: String) -> Setting {
        Setting { solver, seed: self.seed, allow_unknown: self.allow_unknown }
    }
}

/// The devices on which generated kernels run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum DeviceChoice {
    /// On the first device.
    #[default]
    First,
    /// On every device.
    All,
    /// On no device, because the caller asked for none.
    None,
    /// On the device with this index or name.
    Named(String),
}

/// A function to be lowered, and where it comes from.
#[derive(Clone, Debug)]
pub struct Program {
    /// The function, as it was read or lowered from TE.
    pub func: PrimFunc,
    /// The definition of a program written in TE, and the claim that the function computes it.
    pub definition: Option<(Definition, LoweringEvidence)>,
    /// The definition as its author wrote it, if its schedule computes a reduction in two stages.
    pub written: Option<Definition>,
    /// What the caller guarantees of the integers of a call; the function asserts it at its start.
    pub assumed: Vec<Expr>,
    /// The steps of a schedule on blocks, in order, each with the program after it.
    pub scheduled: Vec<Step>,
}

impl Program {
    /// Returns the definition of a program in TE as its author wrote it.
    pub fn written(&self) -> Option<&Definition> {
        self.written.as_ref().or(self.definition.as_ref().map(|(definition, _)| definition))
    }

    /// Returns the function after all steps of its schedule on blocks.
    pub fn scheduled_func(&self) -> &PrimFunc {
        self.scheduled.last().map_or(&self.func, |step| &step.func)
    }
}

/// A program after a step.
#[derive(Clone, Debug)]
pub struct Stage {
    /// Name of the step; `input` for the program as it was read, `lower` as it was lowered from TE.
    pub name: String,
    /// The program.
    pub func: PrimFunc,
    /// The evidence of the pass that made the program; `None` for the first stage.
    pub evidence: Option<Evidence>,
}

/// A program through all steps.
#[derive(Clone, Debug)]
pub struct Lowering {
    /// The program after each accepted step; the first stage is the program as it was read.
    pub stages: Vec<Stage>,
    /// The outcome of each step, including the steps that did not run.
    pub steps: Vec<StepOutcome>,
    /// The reason why the later steps did not run; `None` if every step was accepted.
    pub stopped: Option<Blocked>,
    /// The kernels of the last program, or why the code generator refuses it; `None` if some step was not accepted.
    pub kernels: Option<Result<Kernels, Vec<Diagnostic>>>,
    /// Warnings about what was asked for and not done.
    pub notes: Vec<Diagnostic>,
    /// Whether something about memory of threads was open in some step.
    are_threads_open: bool,
}

/// Called before each step with the function's name and the step's.
pub type Observer<'a> = dyn FnMut(&str, &str) + 'a;

/// The programs of a text, with warnings.
#[derive(Clone, Debug)]
pub struct Programs {
    /// The functions that were asked for.
    pub programs: Vec<Program>,
    /// Warnings about the text.
    pub warnings: Vec<Diagnostic>,
}

/// The reason why a check has no outcome.
#[derive(Clone, Debug)]
pub enum CheckFault {
    /// All problems of the input.
    Input(Vec<Diagnostic>),
    /// A condition cannot be assumed.
    Assumed(AssumeFault),
    /// A pass cannot do what is asked of it: the text of the request, and why.
    Asked(String, Box<Diagnostic>),
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
/// [`CheckFault::Input`] for bad input, [`CheckFault::Assumed`] for a bad condition, [`CheckFault::Asked`] for a bad request to a pass, [`CheckFault::Internal`] for a fault of the machine or of Tilewright. A
/// refuted obligation is no error; the outcome reports it.
pub fn check(text: &str, options: &Options, observe: &mut Observer<'_>) -> Result<CheckOutcome, CheckFault> {
    let start = Instant::now();
    let Programs { mut programs, warnings } = read(text, options.function.as_deref())?;
    known_symbols(&programs, &options.shapes)?;
    let reading = ChainTimes::since(start);
    let internal = |error: tilewright_verify::solver::SolverError| CheckFault::Internal(error.to_string());
    let solver = format!("Z3 {}", tilewright_verify::solver::z3_version().map_err(internal)?);
    let judge = options.judge().map_err(internal)?;
    let mut outcome = CheckOutcome { warnings, ..CheckOutcome::new(options.setting(solver)) };
    let assumed = assume_of(&mut programs, &options.assume, &judge)?;
    for (program, assumed) in programs.iter_mut().zip(assumed) {
        let limits = limits::set(program, options.limits, &options.device, &options.host);
        let lowering = lower_by(program, &options.pipeline, (&judge, options.allow_unknown), observe);
        let mut lowering = lowering.map_err(|fault| limits::explained(limits.as_ref(), fault))?;
        for step in lowering.steps.iter_mut().filter(|step| step.blocked.is_none()) {
            step.premises.extend(assume::premises(&assumed));
        }
        outcome.warnings.extend(lowering.notes.iter().cloned());
        let mut function = FunctionOutcome::of_lowering(&program.func.name, &lowering);
        function.texture_limits = limits;
        function.run = engines::run(program, &lowering, options, observe)?;
        outcome.functions.push(function);
    }
    outcome.reading = reading;
    outcome.total = ChainTimes::since(start);
    Ok(outcome)
}

/// Reads the conditions that are assumed, and makes each an assertion of the functions that it is about. Returns the conditions of
/// each function.
fn assume_of(programs: &mut [Program], texts: &[String], judge: &Judge) -> Result<Vec<Vec<Assumption>>, CheckFault> {
    let funcs: Vec<&PrimFunc> = programs.iter().map(|program| &program.func).collect();
    let assumed = assume::read(texts, &funcs).map_err(CheckFault::Assumed)?;
    for (program, assumed) in programs.iter_mut().zip(&assumed) {
        assume::have_values(judge, &program.func, assumed).map_err(CheckFault::Assumed)?;
        program.func = assume::asserted(&program.func, assumed);
        program.scheduled.iter_mut().for_each(|step| step.func = assume::asserted(&step.func, assumed));
        program.assumed = assumed.iter().map(|assumed| assumed.condition.clone()).collect();
    }
    Ok(assumed)
}

/// Checks that every extent with a given value is a symbolic extent of some function.
///
/// # Errors
/// A name that is no extent of any function, or that is given twice.
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

/// Runs the default pipeline on a program, proves every step and generates the kernels.
///
/// # Errors
/// Those of [`lower_by`].
pub fn lower(
    program: &Program,
    judge: &Judge,
    allow_unknown: bool,
    observe: &mut Observer<'_>,
) -> Result<Lowering, CheckFault> {
    lower_by(program, &Pipeline::default(), (judge, allow_unknown), observe)
}

/// Runs a pipeline on a program, proves every step and generates the kernels. After a step that is not proved nothing runs, unless it is
/// undecided and that is allowed.
///
/// # Errors
/// Those of [`transform`].
pub fn lower_by(
    program: &Program,
    pipeline: &Pipeline,
    (judge, allow_unknown): (&Judge, bool),
    observe: &mut Observer<'_>,
) -> Result<Lowering, CheckFault> {
    let mut lowering = transform(program, pipeline, (judge, allow_unknown), observe)?;
    if lowering.is_complete() {
        observe(&program.func.name, CODEGEN);
        lowering.generate(judge, allow_unknown);
    }
    Ok(lowering)
}

/// Runs a pipeline on a program and proves every step, without kernels.
///
/// # Errors
/// A pass refuses the program, for example because the separators of two layouts contradict each other; or it makes a
/// malformed one, which is a fault of the pass.
pub fn transform(
    program: &Program,
    pipeline: &Pipeline,
    (judge, allow_unknown): (&Judge, bool),
    observe: &mut Observer<'_>,
) -> Result<Lowering, CheckFault> {
    let calls = pipeline.calls(program.scheduled_func())?;
    let mut program = program.clone();
    if calls.iter().any(|call| call.pass.name == "thread_sync") {
        reading::synchronize(&mut program);
    }
    let (program, name) = (&program, &program.func.name);
    let first = if program.definition.is_some() { "lower" } else { "input" };
    observe(name, first);
    let mut lowering = begun(program, first, judge, allow_unknown);
    for step in &program.scheduled {
        if let Some(blocked) = lowering.stopped.clone() {
            lowering.skip(step.name, blocked);
        } else {
            observe(name, step.name);
            lowering.apply(step, judge, allow_unknown)?;
        }
    }
    for call in calls {
        if !call.runs_on(lowering.last()) {
            continue;
        }
        if let Some(blocked) = lowering.stopped.clone() {
            lowering.skip(call.pass.name, blocked);
        } else {
            observe(name, call.pass.name);
            lowering.run(&call, judge, allow_unknown)?;
        }
    }
    lowering.ask_of_threads(judge, allow_unknown);
    Ok(lowering)
}

/// The lowering of a program before any pass, with what is to be proved of the program alone.
fn begun(program: &Program, first: &str, judge: &Judge, allow_unknown: bool) -> Lowering {
    let start = Instant::now();
    let mut reports = match &program.definition {
        Some((definition, evidence)) => {
            let mut reports = judge.check_definition_assuming(definition, &program.assumed);
            reports.extend(judge.check_lowering_assuming(definition, &program.func, evidence, &program.assumed));
            reports
        }
        None => judge.check_program(&program.func),
    };
    reports.extend(judge.check_blocks(&program.func, &crate::blocks::inverses(&program.func)));
    let factored = factored(program, judge);
    reports.extend(factored.iter().flat_map(|(reports, _)| reports.clone()));
    races::look_by_running(&program.func, &mut reports);
    if let Some((definition, _)) = &program.definition {
        executed::refute(Before::Definition(definition), &program.func, None, &mut reports);
    }
    let stage = Stage { name: first.to_owned(), func: program.func.clone(), evidence: None };
    let mut lowering = Lowering {
        stages: vec![stage],
        steps: Vec::new(),
        stopped: None,
        kernels: None,
        notes: Vec::new(),
        are_threads_open: false,
    };
    let mut premises = premises_of(&program.func);
    premises.extend(Premise::of_implicit_barriers(&program.func));
    if let Some((definition, evidence)) = &program.definition {
        premises.extend(Premise::of_lowering(definition, evidence));
    }
    premises.extend(factored.into_iter().filter_map(|(_, premise)| premise));
    lowering.finish(first, start, (reports, premises), allow_unknown);
    lowering
}

/// What a proof about a function takes for granted of its calls.
fn premises_of(func: &PrimFunc) -> Vec<Premise> {
    [Premise::of_call(func), Premise::of_assumptions(func)].concat()
}

/// Decides whether a definition that was rewritten is what its author wrote, and under which premise. `None` if nothing was rewritten.
fn factored(program: &Program, judge: &Judge) -> Option<(Vec<Report>, Option<Premise>)> {
    let (written, (definition, _)) = (program.written.as_ref()?, program.definition.as_ref()?);
    let outputs: Vec<(Buffer, Buffer)> = written.outputs().into_iter().map(|one| (one.clone(), one.clone())).collect();
    let (definitions, evidence) = ([written, definition], Evidence::default());
    // Without a matching the judge says that the outputs are not compared.
    let mut matching = lift::matching_of(&program.func, definitions, &evidence, &outputs).unwrap_or_default();
    matching.reassociate = true;
    let mut reports = judge.check_definition_assuming(written, &program.assumed);
    reports.extend(judge.check_definitions((&program.func, &program.func), definitions, &evidence, &matching));
    let tensors = reassociated_in(definitions, &evidence, &matching);
    Some((reports, (!tensors.is_empty()).then_some(Premise::ReductionOrder(tensors))))
}

/// Checks that a pass made a well-formed program.
fn well_formed(name: &str, func: &PrimFunc) -> Result<(), CheckFault> {
    validate(func).map(|_| ()).map_err(|faults| malformed(name, &faults))
}

/// A pass or a step of a schedule made a program with these faults.
fn malformed(name: &str, faults: &[Diagnostic]) -> CheckFault {
    let what = faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
    CheckFault::Internal(format!("internal: `{name}` made a malformed program: {what}"))
}

impl Lowering {
    /// Returns the worst verdict of the steps; `Skipped` if no step had anything to prove.
    pub fn summary(&self) -> Summary {
        let empty = self.steps.iter().all(|step| step.reports.is_empty()).then_some(Summary::Skipped);
        Summary::worst(self.steps.iter().map(StepOutcome::summary).chain(empty))
    }

    /// Returns whether every step was accepted.
    pub fn is_complete(&self) -> bool {
        self.stopped.is_none()
    }

    /// Returns the program after the last accepted step.
    pub fn last(&self) -> &PrimFunc {
        &self.stages[self.stages.len() - 1].func
    }

    /// Runs a pass on the last stage and proves it.
    fn run(&mut self, call: &PassCall, judge: &Judge, allow_unknown: bool) -> Result<(), CheckFault> {
        let (start, pass) = (Instant::now(), call.pass);
        // A request is an attribute of the program before, so that the judge sees what was asked for.
        let refused = |fault| CheckFault::Asked(call.request.clone().unwrap_or_default(), Box::new(fault));
        let before = call.ask(self.last()).map_err(refused)?;
        if before.buffers() != self.last().buffers() {
            let message = format!("what is asked of `{}` replaces buffers, and this step is not proved", pass.name);
            let help = "ask for it by the attribute of the same name, in the program itself";
            return Err(refused(Diagnostic::error("pass-argument", None, message).with_help(help)));
        }
        let after = (pass.run)(&before)?;
        well_formed(pass.name, &after.func)?;
        self.notes.extend(after.notes);
        self.change(pass.name, start, (&before, after.func, after.evidence), (judge, allow_unknown), None);
        Ok(())
    }

    /// Adds a program and the outcome of the step that made it.
    fn change(
        &mut self,
        name: &str,
        start: Instant,
        (before, func, evidence): (&PrimFunc, PrimFunc, Evidence),
        (judge, allow_unknown): (&Judge, bool),
        step: Option<&Step>,
    ) {
        let mut reports = judge.check_pass(before, &func, &evidence);
        let mut premises = premises_of(&func);
        premises.extend(Premise::of_pass(&evidence));
        let takes_any = premises.iter().any(|premise| matches!(premise, Premise::ReductionOrder(_)));
        let takes_any = takes_any || REASSOCIATING.contains(&name);
        let order = if takes_any { Order::Any } else { Order::Same };
        let models = executed::models(&reports);
        executed::refute_in(order, Before::Func(before), &func, Some(&evidence), (&mut reports, &models));
        if let Some(step) = step {
            reports.extend(judge.check_blocks(&func, &crate::blocks::inverses(&func)));
            // What is wrong with a step is shown where it is asked for.
            let place = step.span.map(|span| Place { side: Side::After, span });
            for report in &mut reports {
                report.place = place.or(report.place);
            }
        }
        self.finish(name, start, (reports, premises), allow_unknown);
        if self.is_complete() {
            self.stages.push(Stage { name: name.to_owned(), func, evidence: Some(evidence) });
        }
    }

    /// Adds a step that does not run.
    fn skip(&mut self, name: &str, blocked: Blocked) {
        let (name, blocked) = (name.to_owned(), Some(blocked));
        self.steps.push(StepOutcome { name, ms: 0.0, reports: Vec::new(), premises: Vec::new(), blocked });
    }

    /// Generates the kernels of the last stage. What they need proved becomes a step of its own, if there is any: a division
    /// that is not proved is written so that nothing has to be proved of it.
    fn generate(&mut self, judge: &Judge, allow_unknown: bool) {
        let start = Instant::now();
        let kernels = Kernels::proved(judge, self.last());
        if let Ok(kernels) = &kernels
            && !kernels.reports().is_empty()
        {
            let premises = premises_of(self.last());
            self.finish(CODEGEN, start, (kernels.reports().to_vec(), premises), allow_unknown);
        }
        self.kernels = Some(kernels);
    }

    /// Adds the outcome of a step, and stops the lowering if the step must not go on.
    fn finish(
        &mut self,
        name: &str,
        start: Instant,
        (mut reports, premises): (Vec<Report>, Vec<Premise>),
        allow_unknown: bool,
    ) {
        let is_open = |report: &mut Report| report.subject.ends_with(OWN_MEMORY) && !report.verdict.is_proved();
        self.are_threads_open |= reports.extract_if(.., is_open).count() > 0;
        let ms = start.elapsed().as_secs_f64() * 1e3;
        let step = StepOutcome { name: name.to_owned(), ms, reports, premises, blocked: None };
        let goes_on = goes_on(step.summary(), allow_unknown);
        self.steps.push(step);
        self.stop_unless(goes_on);
    }

    /// Adds to the last step what is open about memory of threads in the last program. Only the last program runs on a device: before, a schedule may still have to
    /// put what computes a value into the loops that use it.
    fn ask_of_threads(&mut self, judge: &Judge, allow_unknown: bool) {
        if !self.are_threads_open {
            return;
        }
        let is_open = |report: &Report| !report.verdict.is_proved();
        let open: Vec<Report> = judge.check_memory_of_threads(self.last()).into_iter().filter(is_open).collect();
        if let Some(step) = self.steps.iter_mut().rfind(|step| step.blocked.is_none()) {
            step.reports.extend(open);
            let goes_on = goes_on(step.summary(), allow_unknown);
            self.stop_unless(goes_on);
        }
    }

    fn stop_unless(&mut self, goes_on: bool) {
        if !goes_on && self.stopped.is_none() {
            let unproved = self.steps.iter().find(|step| step.summary() != Summary::Proved);
            self.stopped = unproved.map(|step| Blocked { by: step.name.clone(), summary: step.summary() });
        }
    }

    /// Follows each buffer of the first stage through all later stages.
    pub fn buffers(&self) -> Vec<BufferOutcome> {
        let Some((first, later)) = self.stages.split_first() else { return Vec::new() };
        let declared = first.func.buffers();
        declared.iter().map(|buffer| BufferOutcome::follow(buffer, later)).collect()
    }
}

/// Returns whether the next step may run after a step with this summary.
fn goes_on(summary: Summary, allow_unknown: bool) -> bool {
    match summary {
        Summary::Proved => true,
        Summary::Skipped | Summary::Vacuous | Summary::Unknown => allow_unknown,
        Summary::Mismatch | Summary::Refuted => false,
    }
}
