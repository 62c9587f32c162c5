//! The kernels of a file, timed on devices.
//!
//! ```text
//! text ── read ──> programs ── lower, prove ──> kernels ── on each device ──> times, and those of a copy of as many bytes
//!                      └─ textures as plain buffers, lowered and proved the same way ──> times to compare with
//! ```
//!
//! Only kernels of a program of which every step is proved (or undecided, and that is allowed) are timed.

use tilewright_interp::Arguments;
use tilewright_ir::{Bindings, Buffer, Diagnostic, PrimFunc, Scope, Var};

use super::engines::open;
use super::outcome::{FunctionOutcome, Summary};
use super::{CheckFault, Lowering, Observer, Options, Program, Programs, known_symbols, limits, lower_by, read};
use crate::block_schedule::with_buffers;
use crate::harness::arguments::{Draw, Inputs};
use crate::harness::engine::{EngineFault, StageProgram};
use crate::harness::inputs::{bind_scalars, premises, satisfying};
use crate::harness::opencl::{OpenCl, refused};
use crate::harness::room;
use crate::harness::timing::{Measured, Rounds, measure};

/// The outcome of timing one function.
#[derive(Clone, Debug)]
pub struct BenchOutcome {
    /// The steps of its lowering, and what was proved.
    pub lowering: FunctionOutcome,
    /// Values of the symbolic extents.
    pub symbols: Vec<(String, i128)>,
    /// What was measured, for each form of the program and each device.
    pub rows: Vec<BenchRow>,
}

/// The form of a program that is timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// As it was written.
    Written,
    /// With plain buffers in place of its textures.
    Buffers,
}

impl Form {
    /// The word for it in reports.
    pub fn word(self) -> &'static str {
        match self {
            Self::Written => "as written",
            Self::Buffers => "textures as buffers",
        }
    }
}

/// A measurement on one device.
#[derive(Clone, Debug)]
pub struct BenchRow {
    /// The form of the program.
    pub form: Form,
    /// The device; `None` if none could be opened.
    pub device: Option<String>,
    /// What was measured, or why nothing was.
    pub measured: Result<Measured, EngineFault>,
}

impl BenchOutcome {
    /// The worst of what was proved, and whether everything that was asked for was measured. That a program has no form without textures
    /// does not count.
    pub fn summary(&self) -> Summary {
        let steps = self.lowering.steps.iter().map(super::outcome::StepOutcome::summary);
        let rows = self.rows.iter().filter(|row| row.form == Form::Written);
        let measured = rows.map(|row| match &row.measured {
            Ok(_) => Summary::Proved,
            Err(fault) => fault.clone().into_status().0.summary().unwrap_or(Summary::Skipped),
        });
        let nothing = self.rows.is_empty().then_some(Summary::Skipped);
        Summary::worst(steps.chain(measured).chain(nothing))
    }
}

/// Lowers and proves the functions of a text, and times their kernels.
///
/// # Errors
/// As [`super::check`].
pub fn bench(
    text: &str,
    options: &Options,
    rounds: Rounds,
    observe: &mut Observer<'_>,
) -> Result<(Vec<BenchOutcome>, Vec<Diagnostic>), CheckFault> {
    let Programs { mut programs, mut warnings } = read(text, options.function.as_deref())?;
    known_symbols(&programs, &options.shapes)?;
    let judge = options.judge().map_err(|error| CheckFault::Internal(error.to_string()))?;
    super::assume_of(&mut programs, &options.assume, &judge)?;
    let devices = open(&options.device, &options.host);
    let mut outcomes = Vec::new();
    for program in &mut programs {
        let chosen = limits::set(program, options.limits, &options.device, &options.host);
        let lowering = lower_by(program, &options.pipeline, (&judge, options.allow_unknown), observe);
        let lowering = lowering.map_err(|fault| limits::explained(chosen.as_ref(), fault))?;
        warnings.extend(lowering.notes.iter().cloned());
        let symbols = symbols_of(lowering.last(), options)?;
        let mut outcome = BenchOutcome {
            lowering: FunctionOutcome::of_lowering(&program.func.name, &lowering),
            symbols: named(lowering.last(), &symbols),
            rows: Vec::new(),
        };
        observe(&program.func.name, "device");
        outcome.rows.extend(timed(Form::Written, &lowering, &devices, &symbols, options, rounds));
        if let Some(plain) = without_textures(program) {
            let lowered = lower_by(&plain, &options.pipeline, (&judge, options.allow_unknown), observe);
            observe(&program.func.name, "device");
            outcome.rows.extend(match lowered {
                Ok(lowering) => timed(Form::Buffers, &lowering, &devices, &symbols, options, rounds),
                Err(_) => vec![refused_form("no pass lowers the program without its textures")],
            });
        }
        outcomes.push(outcome);
    }
    Ok((outcomes, warnings))
}

/// The form without textures could not be made.
fn refused_form(why: &str) -> BenchRow {
    BenchRow { form: Form::Buffers, device: None, measured: Err(EngineFault::Skipped(why.to_owned())) }
}

/// The program with plain buffers in place of its textures; `None` if it has none. The definition of a program in TE is left behind: what is
/// timed is proved of the function alone.
fn without_textures(program: &Program) -> Option<Program> {
    let func = program.scheduled_func();
    let textures = func.buffers().into_iter().filter(|buffer| buffer.scope.is_texture());
    let pairs: Vec<(Buffer, Buffer)> =
        textures.map(|buffer| (buffer.clone(), buffer.with(|info| info.scope = Scope::Global))).collect();
    if pairs.is_empty() {
        return None;
    }
    let func = with_buffers(func, &pairs);
    Some(Program { func, definition: None, written: None, assumed: program.assumed.clone(), scheduled: Vec::new() })
}

/// Values of the integers of a call, as `check` chooses them.
fn symbols_of(func: &PrimFunc, options: &Options) -> Result<Bindings, CheckFault> {
    let symbols = func.symbols();
    let is_own = |name: &String| symbols.iter().any(|symbol| symbol.name() == name);
    let given: Vec<(String, i128)> =
        options.shapes.iter().map(|(name, value)| (name.clone(), (*value).into())).collect();
    let given: Vec<(String, i128)> = given.into_iter().filter(|(name, _)| is_own(name)).collect();
    let premises = premises(func);
    let sampled = satisfying(&symbols, &given, &premises, 0).map_err(|fault| CheckFault::Input(vec![fault]))?;
    let mut bindings = sampled.bindings;
    let is_open = |var: &&Var| var.dtype().scalar.is_integer() && !symbols.contains(var);
    let scalars: Vec<Var> = func.scalars().iter().filter(is_open).cloned().collect();
    bind_scalars(&mut bindings, &scalars, &[], &premises);
    Ok(bindings)
}

/// The symbolic extents of a function with their values.
fn named(func: &PrimFunc, bindings: &Bindings) -> Vec<(String, i128)> {
    let symbols = func.symbols();
    symbols.iter().filter_map(|var| Some((var.name().to_owned(), *bindings.get(var)?))).collect()
}

/// Times the kernels of a lowering on each device.
fn timed(
    form: Form,
    lowering: &Lowering,
    devices: &[Result<OpenCl, EngineFault>],
    symbols: &Bindings,
    options: &Options,
    rounds: Rounds,
) -> Vec<BenchRow> {
    let on = |device: &Result<OpenCl, EngineFault>| {
        let opened = device.as_ref().map_err(Clone::clone);
        let label = opened.as_ref().ok().map(|device| device.session().info().label());
        let measured = opened.and_then(|device| time_on(device, lowering, symbols, options, rounds));
        BenchRow { form, device: label, measured }
    };
    devices.iter().map(on).collect()
}

fn time_on(
    device: &OpenCl,
    lowering: &Lowering,
    symbols: &Bindings,
    options: &Options,
    rounds: Rounds,
) -> Result<Measured, EngineFault> {
    if let Some(blocked) = &lowering.stopped {
        return Err(EngineFault::Skipped(blocked.to_string()));
    }
    let kernels = match &lowering.kernels {
        Some(Ok(kernels)) => kernels,
        Some(Err(found)) => return Err(refused(found)),
        None => return Err(EngineFault::Skipped("a program that is not lowered has no kernels".into())),
    };
    let func = lowering.last();
    let program = StageProgram::Func(func);
    if let Some(why) = room::refusal(room::need(&program, symbols).device, room::available()) {
        return Err(EngineFault::Skipped(why));
    }
    // Arguments are made in the layout of the kernels: which element is where does not matter for the time.
    let draw = Draw { seed: options.seed, inputs: Inputs::Random };
    let params = draw.arguments(&program, symbols, true).map_err(|fault| EngineFault::Error(fault.to_string()))?;
    let symbols_of_call = func.symbols().iter().filter_map(|var| Some((var.clone(), *symbols.get(var)?))).collect();
    let arguments = Arguments { params, symbols: symbols_of_call };
    measure(device, func, kernels.plain(), symbols, &arguments, rounds)
}
