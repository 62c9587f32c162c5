//! Runs a program in all its stages on the same inputs. The first stage that differs names the pass to blame.
//!
//! Inputs are made in the layout of the first stage. A pass that moved a parameter to another layout says so in its
//! evidence, and the harness does what a caller would have to do: it packs the inputs into the new layout, and unpacks
//! the outputs from it. So every stage is compared in the layout of the first one.

use std::time::Instant;

use tilewright_interp::Tensor;
use tilewright_interp::{Argument, Arguments};
use tilewright_ir::MAX_SYMBOLIC_ELEMENTS;
use tilewright_ir::{Bindings, Buffer, Diagnostic, Evidence, Expr, Scalar, Var};

use super::arguments::{Draw, Inputs};
use super::compare::{self, Comparison, Tolerance};
use super::engine::{Engine, EngineFault, EngineOutcome, Param, Ran, StageProgram, Status};
use super::inputs::{Numbers, Sampled, bind_scalars, premises, satisfy_with_scalars, satisfying};
use super::layout::{pack, padding_holds, shape, unpack};
use super::moved::{Layout, LayoutStep, follow_params};
use super::room;
use crate::codegen::OPENCL;

/// Bytes that every machine has: for a run that needs no more, the system is not asked.
const SMALL: u64 = 64 << 20;

/// A stage of a program.
#[derive(Clone, Copy, Debug)]
pub struct Stage<'a> {
    /// `definition`, or the name of the step that made the program.
    pub name: &'a str,
    /// The program.
    pub program: StageProgram<'a>,
    /// What the pass claims about the step from the stage before; `None` for a lowering, which keeps the parameters.
    pub evidence: Option<&'a Evidence>,
    /// Whether the step may sum in another order than the stage before.
    pub reassociates: bool,
}

/// How a chain of stages is run.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// Seed of the inputs.
    pub seed: u64,
    /// Values of symbolic extents by name; other extents get small values.
    pub symbols: Vec<(String, i128)>,
    /// Values of integers among the scalar parameters by name; others come from the seed.
    pub scalars: Vec<(String, i128)>,
    /// What input tensors hold. Where a stage sums in another order, they hold whole numbers, unless [`Inputs::Indices`] is asked for.
    pub inputs: Inputs,
    /// Whether sums that were made in another order are a mismatch even if they differ by no more than roundings.
    pub exact: bool,
}

/// The outcome of running all stages; by default the outcome of no stages.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChainOutcome {
    /// Seed of the inputs.
    pub seed: u64,
    /// Values of the symbolic extents.
    pub symbols: Vec<(String, i128)>,
    /// Values of scalar parameters that do not follow from the seed, because the assertions of the program need others.
    pub scalars: Vec<(String, i128)>,
    /// One outcome for each run: the reference on each stage, then each device on the last stage.
    pub engines: Vec<EngineOutcome>,
    /// The first stage whose run differs from the first stage, traps or fails.
    pub blame: Option<String>,
    /// Whether buffers that the program writes had values from the seed too, because it reads them first.
    pub outputs_given: bool,
    /// Remarks, such as unusual inputs.
    pub notes: Vec<String>,
    /// Where the time went that no engine has.
    pub times: ChainTimes,
}

/// Wall-clock times in milliseconds of what is done around the runs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ChainTimes {
    /// Opening the devices.
    pub opening: f64,
    /// Filling the inputs.
    pub inputs: f64,
    /// Packing the inputs into the layout of a stage, and unpacking its outputs.
    pub packing: f64,
    /// Comparing outputs.
    pub comparing: f64,
}

impl ChainTimes {
    /// The milliseconds since `start`.
    pub fn since(start: Instant) -> f64 {
        start.elapsed().as_secs_f64() * 1e3
    }
}

impl ChainOutcome {
    /// Whether every engine ran and agrees, and none was skipped.
    pub fn is_ok(&self) -> bool {
        !self.engines.is_empty() && self.engines.iter().all(|line| line.status.is_ok())
    }
}

/// Runs every stage on `reference` and the last stage on each of `devices`, and compares all of them with the first
/// run.
///
/// A device that could not be opened is passed as the fault that says why, and is reported as such.
///
/// # Errors
/// `no-stages`, symbols that do not exist, or shapes that are too large.
pub fn run_chain(
    stages: &[Stage<'_>],
    config: &Config,
    reference: &dyn Engine,
    devices: &[Result<&dyn Engine, EngineFault>],
) -> Result<ChainOutcome, Diagnostic> {
    run_chain_within(stages, config, reference, devices, room::available)
}

/// Runs every stage as [`run_chain`] does, if the memory of the machine, which `available` returns in bytes, is enough.
/// Engines for which it is not are skipped, and the rows say why.
///
/// # Errors
/// Those of [`run_chain`].
pub fn run_chain_within(
    stages: &[Stage<'_>],
    config: &Config,
    reference: &dyn Engine,
    devices: &[Result<&dyn Engine, EngineFault>],
    available: impl FnOnce() -> Option<u64>,
) -> Result<ChainOutcome, Diagnostic> {
    let Some(first) = stages.first() else {
        return Err(Diagnostic::error("no-stages", None, "there is no program to run"));
    };
    let mut symbols = Vec::new();
    for var in stages.iter().flat_map(|stage| stage.program.symbols()) {
        if !symbols.contains(&var) {
            symbols.push(var);
        }
    }
    // The extents must satisfy what the program asserts: any other extents only show that the assertion fails.
    let asserted = stages.iter().find_map(|stage| match stage.program {
        StageProgram::Func(func) => Some(premises(func)),
        StageProgram::Definition(_) => None,
    });
    let asserted = asserted.unwrap_or_default();
    let Sampled { mut bindings, unmet } = satisfying(&symbols, &config.symbols, &asserted, 0)?;
    let mut named: Vec<(String, i128)> = Vec::new();
    for var in &symbols {
        if named.iter().all(|(name, _)| name != var.name()) {
            named.push((var.name().to_owned(), bindings[var]));
        }
    }
    let (scalars, unmet_scalar) = draw_scalars(first, &mut bindings, &asserted, config);
    let unmet = unmet.filter(|_| config.symbols.is_empty()).or(unmet_scalar);
    bind_added(stages, &mut bindings, config);
    let report = ChainOutcome { seed: config.seed, symbols: named, scalars, ..ChainOutcome::default() };
    let is_reordered = stages.iter().any(|stage| stage.reassociates);
    let inputs = if is_reordered && config.inputs != Inputs::Indices { Inputs::Whole } else { config.inputs };
    let draw = Draw { seed: config.seed, inputs };
    let mut run = Run { stages, bindings, report, draw, exact: config.exact, tolerance: tolerance(stages) };
    if inputs == Inputs::Indices {
        run.report.notes.push("an index is read from memory: integers of inputs are 0 or 1".into());
    } else if is_reordered {
        run.report
            .notes
            .push("a stage sums in another order: inputs are small whole numbers, whose sums are exact".into());
    }
    let [no_interpreter, no_device] = too_large(stages, &run.bindings, available);
    let without: Vec<Result<&dyn Engine, EngineFault>>;
    let devices = match no_device {
        None => devices,
        Some(why) => {
            let skipped = |device: &Result<&dyn Engine, EngineFault>| {
                device.as_ref().map_or_else(|fault| Err(fault.clone()), |_| Err(EngineFault::Skipped(why.clone())))
            };
            without = devices.iter().map(skipped).collect();
            &without
        }
    };
    let layouts = run.layouts(first);
    if let Some(unmet) = unmet {
        run.skip(
            &format!("no extents were found for which the program's assertion `{unmet}` holds"),
            reference,
            devices,
        );
    } else if let Some(why) = no_interpreter {
        run.skip(&why, reference, devices);
    } else if let Err(why) = run.run_stages(&layouts, reference, devices) {
        run.skip(&why.message, reference, devices);
    }
    Ok(run.report)
}

/// Binds the scalar integers among the parameters to the given values, to the values that the seed gives, or to others for which the
/// assertions hold. Returns those that do not come from the seed, and an assertion that does not hold for any that were tried.
fn draw_scalars(
    first: &Stage<'_>,
    bindings: &mut Bindings,
    asserted: &[Expr],
    config: &Config,
) -> (Vec<(String, i128)>, Option<Expr>) {
    let seed = config.seed;
    let (mut scalars, mut given) = (Vec::new(), Vec::new());
    for (param, part) in first.program.params().iter().zip(0u64..) {
        let Param::Scalar(var) = param else { continue };
        if bindings.contains_key(var) {
            continue;
        }
        let known = config.scalars.iter().find(|(name, _)| name == var.name());
        let range = var.dtype().scalar.integer_range();
        if let (Some((name, value)), Some((low, high))) = (known, range) {
            bindings.insert(var.clone(), (*value).clamp(low, high));
            given.push((name.clone(), (*value).clamp(low, high)));
        } else if let Scalar::Int(value) = Numbers::new(seed, part).argument(var.dtype().scalar, seed, part) {
            bindings.insert(var.clone(), value);
            scalars.push(var.clone());
        }
    }
    let drawn = bindings.clone();
    let is_given = |var: &Var| given.iter().any(|(name, _)| name == var.name());
    let is_about_scalars = |cond: &&Expr| cond.vars().iter().any(|var| scalars.contains(var) || is_given(var));
    let asserted: Vec<Expr> = asserted.iter().filter(is_about_scalars).cloned().collect();
    let unmet = satisfy_with_scalars(bindings, &scalars, &asserted, seed);
    let changed = scalars.iter().filter(|var| bindings[*var] != drawn[*var]);
    let changed = changed.map(|var| (var.name().to_owned(), bindings[var]));
    (given.iter().cloned().chain(changed).collect(), unmet)
}

/// Binds the scalar integers that a later stage has behind the parameters of the first one.
fn bind_added(stages: &[Stage<'_>], bindings: &mut Bindings, config: &Config) {
    for stage in stages {
        let StageProgram::Func(func) = stage.program else { continue };
        let scalars = func.params.iter().filter(|param| func.param_buffer(param).is_none());
        let is_open = |var: &&Var| var.dtype().scalar.is_integer() && !bindings.contains_key(*var);
        let added: Vec<Var> = scalars.filter(is_open).cloned().collect();
        bind_scalars(bindings, &added, &config.scalars, &premises(func));
    }
}

/// Why the interpreter and the devices cannot run the stages: they need more memory than is available.
fn too_large(
    stages: &[Stage<'_>],
    bindings: &Bindings,
    available: impl FnOnce() -> Option<u64>,
) -> [Option<String>; 2] {
    let needs: Vec<_> = stages.iter().map(|stage| room::need(&stage.program, bindings)).collect();
    let interpreter = needs.iter().map(|need| need.interpreter).max().unwrap_or(0);
    let device = needs.iter().map(|need| need.device).max().unwrap_or(0);
    // Campaigns run many small chains, for which the system is not asked.
    let available = (device > SMALL).then(available).flatten();
    [interpreter, device].map(|needed| room::refusal(needed, available))
}

/// The state of [`run_chain`].
struct Run<'a> {
    stages: &'a [Stage<'a>],
    bindings: Bindings,
    report: ChainOutcome,
    /// How the inputs are made.
    draw: Draw,
    /// Whether sums in another order are compared exactly.
    exact: bool,
    /// The tolerance for devices; the reference is compared exactly.
    tolerance: Tolerance,
}

/// The outputs of a run by name, in the layout of the first stage.
type Outputs = Vec<(String, Tensor)>;

impl Run<'_> {
    /// Returns the layout of each parameter in each stage, or why the evidence of a stage does not explain its
    /// parameters.
    fn layouts(&self, first: &Stage<'_>) -> Vec<Result<Vec<Layout>, String>> {
        let mut params = buffers(&first.program);
        let mut layouts = vec![Layout::default(); params.len()];
        let mut all = vec![Ok(layouts.clone())];
        for stage in &self.stages[1..] {
            let after = buffers(&stage.program);
            let step = if same_scalars(&first.program, &stage.program) {
                follow_params(&params, &after, stage.evidence, &mut layouts)
            } else {
                Err("the scalar parameters are at other positions".into())
            };
            all.push(step.map(|()| layouts.clone()));
            params = after;
        }
        all
    }

    /// Records every run of the chain as skipped.
    fn skip(&mut self, why: &str, reference: &dyn Engine, devices: &[Result<&dyn Engine, EngineFault>]) {
        let skipped = || EngineFault::Skipped(why.to_owned());
        for stage in self.stages {
            self.report.engines.push(EngineOutcome::fault(reference.name(), stage.name, reference.device(), skipped()));
        }
        let Some(stage) = self.stages.last() else { return };
        for device in devices {
            self.report.engines.push(match device {
                Ok(engine) => EngineOutcome::fault(engine.name(), stage.name, engine.device(), skipped()),
                Err(fault) => EngineOutcome::fault(OPENCL.name, stage.name, None, fault.clone()),
            });
        }
    }

    /// Runs the reference on every stage, then each device on the last one.
    fn run_stages(
        &mut self,
        layouts: &[Result<Vec<Layout>, String>],
        reference: &dyn Engine,
        devices: &[Result<&dyn Engine, EngineFault>],
    ) -> Result<(), Diagnostic> {
        let inputs = self.inputs(false)?;
        let mut inputs = (inputs, false);
        let mut expected: Option<Outputs> = None;
        let mut last = Ok(());
        let stages = self.stages;
        for (stage, layouts) in stages.iter().zip(layouts) {
            let tolerance =
                expected.as_ref().filter(|_| stage.reassociates && !self.exact).map_or(Tolerance::EXACT, |expected| {
                    let all = tensors(&inputs.0).chain(expected.iter().map(|(_, tensor)| tensor));
                    Tolerance::reordered(all.map(compare::magnitude).fold(0.0, f64::max))
                });
            let mut outcome = self.run_stage(stage, layouts, reference, &inputs.0, expected.as_ref(), tolerance);
            // A program that accumulates into its output reads it first. Its outputs then get input values, once for
            // the whole chain, because all stages must see the same inputs.
            if let (Err(EngineFault::Trap { is_undefined_read: true, .. }), None, false) =
                (&outcome, &expected, inputs.1)
            {
                inputs = (self.inputs(true)?, true);
                outcome = self.run_stage(stage, layouts, reference, &inputs.0, None, Tolerance::EXACT);
                self.report.outputs_given = true;
                if outcome.is_ok() {
                    self.report
                        .notes
                        .push("outputs are read before they are written: they are given as inputs too".into());
                }
            }
            last = self.record_reference(stage, reference, outcome, &mut expected);
        }
        let (Some(stage), Some(layouts)) = (self.stages.last(), layouts.last()) else {
            return Ok(());
        };
        for device in devices {
            let line = match (device, &last) {
                (Err(fault), _) => EngineOutcome::fault(OPENCL.name, stage.name, None, fault.clone()),
                (Ok(engine), Err(why)) => {
                    EngineOutcome::fault(engine.name(), stage.name, engine.device(), EngineFault::Skipped(why.clone()))
                }
                (Ok(engine), Ok(())) => self.run_device(*engine, (stage, layouts), &inputs.0, expected.as_ref()),
            };
            self.report.engines.push(line);
        }
        Ok(())
    }

    /// Runs a stage on a device. Where the result is wrong, or the driver's process ends, the kernels run once more without the optimiser of
    /// the device's compiler.
    fn run_device(
        &mut self,
        engine: &dyn Engine,
        (stage, layouts): (&Stage<'_>, &Result<Vec<Layout>, String>),
        inputs: &[Argument],
        expected: Option<&Outputs>,
    ) -> EngineOutcome {
        let mut run =
            |engine: &dyn Engine| match self.run_stage(stage, layouts, engine, inputs, expected, self.tolerance) {
                Ok((line, _, notes)) => {
                    self.add_notes(notes);
                    (line, false)
                }
                Err(fault) => {
                    let is_lost = matches!(fault, EngineFault::Lost(_));
                    (EngineOutcome::fault(engine.name(), stage.name, engine.device(), fault), is_lost)
                }
            };
        let (line, is_lost) = run(engine);
        if !is_lost && !matches!(line.status, Status::Mismatch | Status::Trap) {
            return line;
        }
        let agrees_unoptimised =
            engine.unoptimised().is_some_and(|unoptimised| run(&*unoptimised).0.status == Status::Agrees);
        EngineOutcome { agrees_unoptimised, ..line }
    }

    /// Records a run of the reference; the first one becomes the one to compare with.
    ///
    /// # Errors
    /// Why devices cannot run the stage.
    fn record_reference(
        &mut self,
        stage: &Stage<'_>,
        engine: &dyn Engine,
        outcome: Result<(EngineOutcome, Outputs, Vec<String>), EngineFault>,
        expected: &mut Option<Outputs>,
    ) -> Result<(), String> {
        let line = match outcome {
            Ok((mut line, outputs, notes)) => {
                if self.report.engines.is_empty() {
                    line.status = Status::Reference;
                }
                // The stages behind one that sums in another order sum as it does.
                if stage.reassociates && line.status == Status::Agrees {
                    *expected = Some(outputs);
                } else {
                    expected.get_or_insert(outputs);
                }
                self.add_notes(notes);
                line
            }
            Err(fault) => EngineOutcome::fault(engine.name(), stage.name, engine.device(), fault),
        };
        let (status, why) = (line.status, line.detail.clone());
        // Later stages usually inherit the difference, so only the first one is blamed.
        let wrong = matches!(status, Status::Mismatch | Status::Trap | Status::Failed);
        if wrong && self.report.blame.is_none() {
            self.report.blame = Some(stage.name.to_owned());
        }
        self.report.engines.push(line);
        match status {
            Status::Reference | Status::Agrees | Status::Mismatch => Ok(()),
            Status::Trap => Err("the program traps in the interpreter".into()),
            Status::Skipped | Status::Absent | Status::NotRequested => Err(why),
            Status::Failed => Err("there is no reference to compare with".into()),
        }
    }

    /// Adds notes that the report does not hold yet.
    fn add_notes(&mut self, notes: Vec<String>) {
        for note in notes {
            if !self.report.notes.contains(&note) {
                self.report.notes.push(note);
            }
        }
    }

    /// Makes the inputs in the layout of the first stage. Tensors that the program writes are undefined, unless
    /// `outputs_too`.
    fn inputs(&mut self, outputs_too: bool) -> Result<Vec<Argument>, Diagnostic> {
        let start = Instant::now();
        let program = self.stages[0].program;
        let fault = |message: String| Diagnostic::error("input-shape", None, message);
        for param in program.params() {
            let Param::Buffer(buffer) = param else { continue };
            let extents = shape(&buffer.shape, &self.bindings).map_err(fault)?;
            // A proof for symbolic shapes covers buffers up to this size, so a larger run could show an
            // overflow that was never excluded.
            let count = extents.iter().try_fold(1u64, |count, &extent| count.checked_mul(extent));
            if buffer.const_shape().is_none() && count.is_none_or(|count| count > MAX_SYMBOLIC_ELEMENTS) {
                let text = format!("`{buffer}` has more than {MAX_SYMBOLIC_ELEMENTS} elements");
                return Err(fault(format!("{text}, beyond what is proved of symbolic shapes")));
            }
        }
        let inputs = self.draw.arguments(&program, &self.bindings, outputs_too);
        self.report.times.inputs += ChainTimes::since(start);
        inputs
    }

    /// Packs the inputs, runs a stage, unpacks its outputs and compares them with `expected`. Returns the outcome, the
    /// outputs and the notes of the engine.
    fn run_stage(
        &mut self,
        stage: &Stage<'_>,
        layouts: &Result<Vec<Layout>, String>,
        engine: &dyn Engine,
        inputs: &[Argument],
        expected: Option<&Outputs>,
        tolerance: Tolerance,
    ) -> Result<(EngineOutcome, Outputs, Vec<String>), EngineFault> {
        let layouts = layouts.as_ref().map_err(|why| EngineFault::Error(why.clone()))?;
        let start = Instant::now();
        let mut arguments = Arguments { params: self.arguments(stage, layouts, inputs)?, ..Arguments::default() };
        arguments.symbols = stage.program.symbols().iter().map(|var| (var.clone(), self.bindings[var])).collect();
        self.report.times.packing += ChainTimes::since(start);
        let start = Instant::now();
        let Ran { detail, notes, sources, .. } = engine.run(&stage.program, &self.bindings, &mut arguments)?;
        let ms = ChainTimes::since(start);
        let start = Instant::now();
        let outputs = self.outputs(inputs, &arguments, layouts).map_err(EngineFault::Error)?;
        // Releasing hundreds of megabytes takes its time, too.
        drop(arguments);
        self.report.times.packing += ChainTimes::since(start);
        let mut line = EngineOutcome::new(engine.name(), Some(stage.name), engine.device(), Status::Agrees, detail);
        (line.ms, line.sources) = (ms, sources);
        let Some(expected) = expected else {
            return Ok((line, outputs, notes));
        };
        let start = Instant::now();
        let mut comparison = Comparison::default();
        let is_reference = engine.device().is_none();
        for ((name, want), (_, got)) in expected.iter().zip(&outputs) {
            // A device does not track which elements were written.
            let result = if is_reference {
                compare::tensors(name, want, got, tolerance)
            } else {
                compare::tensors_where_defined(name, want, got, tolerance)
            };
            comparison.merge(result.map_err(EngineFault::Error)?);
        }
        self.report.times.comparing += ChainTimes::since(start);
        let line = line.compared(comparison);
        Ok((line, outputs, notes))
    }

    /// The arguments of a stage: the inputs in its layouts. A definition has no scalar parameters; the extents that a function takes as
    /// such have the values that they have in the definition.
    fn arguments(
        &self,
        stage: &Stage<'_>,
        layouts: &[Layout],
        inputs: &[Argument],
    ) -> Result<Vec<Argument>, EngineFault> {
        let mut tensors = tensors(inputs).zip(layouts);
        let mut scalars = inputs.iter().filter(|argument| matches!(argument, Argument::Scalar(_)));
        let argument = |param: &Param| match param {
            Param::Buffer(buffer) => {
                let (tensor, layout) = tensors.next().ok_or_else(|| format!("there is no input for `{buffer}`"))?;
                Ok(Argument::Tensor(self.pack(tensor, layout)?))
            }
            Param::Scalar(var) => {
                let known = || Some(Argument::Scalar(Scalar::Int(*self.bindings.get(var)?)));
                scalars.next().cloned().or_else(known).ok_or_else(|| format!("nothing says what `{var}` is"))
            }
        };
        stage.program.params().iter().map(argument).collect::<Result<_, String>>().map_err(EngineFault::Error)
    }

    /// Packs a tensor into the layout of a stage.
    fn pack(&self, tensor: &Tensor, layout: &Layout) -> Result<Tensor, String> {
        // Clones share their elements, so a parameter that no pass moved is not copied.
        let mut tensor = tensor.clone();
        for LayoutStep { map, shape: after, pad } in &layout.steps {
            let pad = pad.filter(|(_, by_host)| *by_host).map(|(value, _)| value);
            tensor = pack(&tensor, map, &shape(after, &self.bindings)?, &self.bindings, pad)?;
        }
        Ok(tensor)
    }

    /// Returns the tensors that the first stage writes, in its layout. Checks on the way that padding with a stated
    /// value has it.
    fn outputs(&self, inputs: &[Argument], after: &Arguments, layouts: &[Layout]) -> Result<Outputs, String> {
        let program = self.stages[0].program;
        let mut outputs = Vec::new();
        let pairs = tensors(inputs).zip(tensors(&after.params));
        for ((buffer, layout), (before, tensor)) in buffers(&program).iter().zip(layouts).zip(pairs) {
            if !program.writes(buffer) {
                continue;
            }
            // Unpacking goes backwards and needs the shape before each step.
            let mut shapes = vec![before.shape().to_vec()];
            for step in &layout.steps {
                shapes.push(shape(&step.shape, &self.bindings)?);
            }
            let mut tensor = tensor.clone();
            for (LayoutStep { map, pad, .. }, shape) in layout.steps.iter().zip(&shapes).rev() {
                if let Some((value, _)) = pad {
                    padding_holds(&tensor, map, shape, &self.bindings, *value)
                        .map_err(|why| format!("`{}`: {why}", buffer.name))?;
                }
                tensor = unpack(&tensor, map, shape, &self.bindings)?;
            }
            outputs.push((buffer.name.clone(), tensor));
        }
        Ok(outputs)
    }
}

/// The buffers of the parameters, in order.
fn buffers(program: &StageProgram<'_>) -> Vec<Buffer> {
    let buffer = |param| if let Param::Buffer(buffer) = param { Some(buffer) } else { None };
    program.params().into_iter().filter_map(buffer).collect()
}

/// The tensors among some arguments, in order.
fn tensors(arguments: &[Argument]) -> impl Iterator<Item = &Tensor> {
    arguments.iter().filter_map(|argument| if let Argument::Tensor(tensor) = argument { Some(tensor) } else { None })
}

/// Whether two programs have their scalar parameters at the same positions, apart from those that the later one has at its end. A
/// definition has none: its extents are known from elsewhere.
fn same_scalars(first: &StageProgram<'_>, later: &StageProgram<'_>) -> bool {
    let scalars = |program: &StageProgram<'_>| -> Vec<bool> {
        program.params().iter().map(|param| matches!(param, Param::Scalar(_))).collect()
    };
    let later = scalars(later);
    let added = later.strip_prefix(scalars(first).as_slice());
    matches!(first, StageProgram::Definition(_)) || added.is_some_and(|added| added.iter().all(|is_scalar| *is_scalar))
}

/// Returns the tolerance for devices: what the functions in the last stage allow.
fn tolerance(stages: &[Stage<'_>]) -> Tolerance {
    let funcs = stages.iter().rev().filter_map(|stage| match stage.program {
        StageProgram::Func(func) => Some(Tolerance::of_func(func)),
        StageProgram::Definition(_) => None,
    });
    funcs.into_iter().next().unwrap_or(Tolerance::EXACT)
}
