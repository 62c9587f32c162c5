//! Compares the kernels of a program on every OpenCL device with the interpreter.
//!
//! Drivers take far longer to compile a kernel than to run it, so the kernels of a whole batch are
//! joined into one OpenCL program. PoCL optimises only one program in 16, because its
//! optimiser takes ten times as long as everything else it does. Oclgrind reports invalid accesses
//! and data races to the file named by `OCLGRIND_LOG`; if the variable is set, a report is a
//! failure.

use std::cell::Cell;
use std::path::PathBuf;
use std::rc::Rc;

use arbitrary::Unstructured;
use serde::{Deserialize, Serialize};
use tilewright_device::{DeviceError, DeviceHost, Program as Built};
use tilewright_interp::Arguments;
use tilewright_ir::{BinaryOp, Bindings, Diagnostic, Evidence, Expr, MathFn, PrimFunc, validate};

use crate::case::{Case, Redrawn};
use crate::config::Config as Limits;
use crate::cpu::Stopwatch;
use crate::inputs::has_special_floats;
use crate::oracle::{Environment, Failure, Oracle, Outcome, Tally};
use crate::program::ProgramCase;
use tilewright_compiler::codegen::{Generated, Options, generate_judged, generate_with, join};
use tilewright_compiler::harness::arguments::Inputs;
use tilewright_compiler::harness::engine::{Engine, EngineFault, EngineOutcome, Ran, StageProgram, Status};
use tilewright_compiler::harness::interpreter::{Interpreter, n_iterations};
use tilewright_compiler::harness::opencl::{NOT_OPTIMISED, OpenCl, fault};
use tilewright_compiler::harness::stages::{Config, Stage, run_chain};
use tilewright_compiler::passes::{DEFAULT_PIPELINE, pass_by_name};
use tilewright_compiler::pipeline::{DeviceChoice, engines};
use tilewright_verify::{Config as JudgeConfig, Judge};

/// Number of cases whose kernels are joined into one OpenCL program.
const BATCH: usize = 16;

/// PoCL compiles one case out of this number with its optimiser.
const OPTIMISED: u64 = 16;

/// Limit on the iterations of a program for Oclgrind, which executes some hundred thousand per
/// second.
const OCLGRIND_ITERATIONS: u128 = 1 << 13;

/// Oclgrind runs one case out of this number if there are other devices, because it is by far the
/// slowest.
const SHARE_OF_OCLGRIND: u64 = 4;

/// The platform name of PoCL.
pub const POCL: &str = "Portable Computing Language";

/// The folder of the sources of PoCL's compiler passes. The message of an assertion that fails there names it.
const ASSERTION: &str = "lib/llvmopencl/";

/// The platform name of Oclgrind.
const OCLGRIND: &str = "Oclgrind";

/// A program with more of the features that only devices have: textures, and work-groups with
/// barriers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Kernels(pub ProgramCase);

impl From<ProgramCase> for Kernels {
    fn from(case: ProgramCase) -> Self {
        Self(case)
    }
}

impl Redrawn for Kernels {
    type Of = ProgramCase;

    /// Draws a program in which 40 % of the reductions are done by work-groups; in one program out
    /// of three, 70 % of the tensors are textures.
    fn redraw(u: &mut Unstructured<'_>, config: &Limits) -> arbitrary::Result<ProgramCase> {
        let mut config = config.clone();
        config.program.group_percent = 40;
        config.program.shared_percent = 25;
        if u.ratio(1, 3)? {
            config.program.texture_percent = 70;
        }
        ProgramCase::draw(u, &config)
    }

    fn inner(&self) -> &ProgramCase {
        &self.0
    }
}

/// The oracle `device`; see the module.
#[derive(Debug)]
pub struct Devices {
    devices: Vec<Opened>,
    /// Decides which divisions are written with the operators of C.
    judge: Judge,
}

impl Devices {
    /// Opens the requested devices.
    ///
    /// # Errors
    /// No device was requested or found, or one of them cannot be opened.
    pub fn new(environment: &Environment) -> Result<Self, String> {
        if environment.device == DeviceChoice::None {
            return Err("no device is asked for".into());
        }
        let open = |device: Result<OpenCl, EngineFault>| match device {
            Ok(opencl) => Ok(Opened::new(opencl, &environment.optimiser)),
            Err(
                EngineFault::Trap { message: why, .. }
                | EngineFault::Skipped(why)
                | EngineFault::Absent(why)
                | EngineFault::Error(why)
                | EngineFault::Lost(why),
            ) => Err(why),
        };
        let mut devices = engines::open(&environment.device, &DeviceHost::default())
            .into_iter()
            .map(open)
            .collect::<Result<Vec<_>, _>>()?;
        let is_alone = devices.len() == 1;
        for device in &mut devices {
            device.is_alone = is_alone;
        }
        let config = JudgeConfig { threads: 1, ..JudgeConfig::default() };
        let judge = Judge::new(config, tilewright_search::strategies()).map_err(|error| error.to_string())?;
        Ok(Self { devices, judge })
    }

    /// Runs a case on every device whose kernels were built, and compares the results with the
    /// interpreter's.
    fn compare(&self, case: &Ready, built: &[Compiled], tally: &mut Tally) -> Outcome {
        let lines: Vec<_> = self
            .devices
            .iter()
            .zip(built)
            .map(|(device, program)| {
                program.clone().map(|program| Launcher { device, case, program, micros: Cell::new(0) })
            })
            .collect();
        let devices: Vec<Result<&dyn Engine, EngineFault>> =
            lines.iter().map(|line| line.as_ref().map(|line| line as &dyn Engine).map_err(Clone::clone)).collect();
        let stages: Vec<_> = case.funcs.iter().map(Lowered::stage).collect();
        let inputs = if has_special_floats(case.seed) { Inputs::Special } else { Inputs::Random };
        let config = Config { seed: case.seed, symbols: case.named(), inputs, ..Config::default() };
        let report = run_chain(&stages, &config, &interpreter(), &devices);
        for line in lines.iter().flatten() {
            tally.spent(&line.device.platform, line.micros.get());
        }
        let report = match report {
            Ok(report) => report,
            Err(fault) => return Outcome::Invalid(fault.code.to_owned()),
        };
        // The passes are compared in the interpreter first, so that a difference is attributed to a
        // pass or to the kernels.
        let (reference, lines) = report.engines.split_at(stages.len().min(report.engines.len()));
        match reference.iter().enumerate().find(|(_, line)| !line.status.is_ok()) {
            None => self.outcome(case, lines, tally),
            Some((0, _)) => Outcome::Invalid("the program traps".into()),
            Some((_, line)) if line.status == Status::Skipped => Outcome::Undecided(line.detail.clone()),
            Some((_, line)) => {
                let stage = line.stage.as_deref().unwrap_or_default();
                Failure::outcome(format!("{stage} changes the result of input"), detail(line))
            }
        }
    }

    /// The outcome that follows from the results of the devices: a failure of any of them, else
    /// held if anything was compared.
    fn outcome(&self, case: &Ready, lines: &[EngineOutcome], tally: &mut Tally) -> Outcome {
        let mut compared = 0;
        let mut miscompiled = None;
        for (device, line) in self.devices.iter().zip(lines) {
            match line.status {
                Status::Mismatch | Status::Trap | Status::Failed if device.is_miscompiled(case, line) => {
                    let does = if line.status == Status::Failed { "ends its process" } else { "changes the result" };
                    miscompiled = Some(format!("the optimiser of {} {does}", device.platform));
                }
                // A run that agrees but compared no value is no evidence.
                Status::Agrees if line.compared > 0 => {
                    compared += line.compared;
                    tally.saw(&format!("device:{}", device.platform));
                    tally.count("kernels run", case.generated.metadata.kernels.len() as u64);
                    tally.count(&kernels_on(&device.platform), case.generated.metadata.kernels.len() as u64);
                    tally.count("values compared", line.compared);
                    if device.is_optimised(case) {
                        tally.count("kernels optimised", case.generated.metadata.kernels.len() as u64);
                    }
                }
                Status::Reference | Status::Agrees | Status::Skipped | Status::Absent | Status::NotRequested => {}
                Status::Mismatch => {
                    let what = format!("kernels on {} differ from the interpreter", device.platform);
                    return Failure::outcome(what, detail(line));
                }
                Status::Trap => {
                    let what = format!("kernels on {} leave their memory", device.platform);
                    return Failure::outcome(what, detail(line));
                }
                Status::Failed => {
                    let what = format!("kernels on {}: {}", device.platform, kind(&line.detail));
                    return Failure::outcome(what, detail(line));
                }
            }
        }
        // It is no evidence for the kernels that another device agrees; a wrong result of another one counts.
        if let Some(why) = miscompiled {
            return Outcome::Undecided(why);
        }
        match lines.iter().find(|line| line.status == Status::Skipped) {
            // One device that compared values is enough; others may skip a program that they do not support.
            _ if compared > 0 => Outcome::Held,
            Some(line) => Outcome::Undecided(line.detail.clone()),
            None => Outcome::Undecided("nothing is compared".into()),
        }
    }
}

impl Oracle for Devices {
    type Case = Kernels;

    const NAME: &'static str = "device";

    fn batch(&self) -> usize {
        BATCH
    }

    fn check(&mut self, case: &Kernels, tally: &mut Tally) -> Outcome {
        let outcomes = self.check_all(std::slice::from_ref(case), tally);
        outcomes.into_iter().next().unwrap_or(Outcome::Undecided("nothing is compared".into()))
    }

    fn check_all(&mut self, cases: &[Kernels], tally: &mut Tally) -> Vec<Outcome> {
        let prepared: Vec<_> =
            cases.iter().enumerate().map(|(at, case)| Ready::new(&case.0, at, &self.judge)).collect();
        let ready: Vec<_> = prepared.iter().filter_map(|case| case.as_ref().ok()).collect();
        let build = |device: &Opened| {
            let watch = Stopwatch::start();
            let built = device.build_all(&ready);
            tally.spent(&device.platform, watch.micros());
            built
        };
        let built: Vec<_> = self.devices.iter().map(build).collect();
        let mut place = 0;
        let mut outcomes = Vec::new();
        for case in &prepared {
            outcomes.push(match case {
                Err(outcome) => outcome.clone(),
                Ok(case) => {
                    let programs: Vec<_> = built.iter().map(|programs| programs[place].clone()).collect();
                    place += 1;
                    self.compare(case, &programs, tally)
                }
            });
        }
        outcomes
    }
}

/// A function after a pass, with the evidence of the pass.
struct Lowered {
    name: &'static str,
    func: PrimFunc,
    evidence: Option<Evidence>,
}

/// The function as a stage of the comparison.
impl Lowered {
    fn stage(&self) -> Stage<'_> {
        let program = StageProgram::Func(&self.func);
        Stage { name: self.name, program, evidence: self.evidence.as_ref(), reassociates: false }
    }
}

/// A case whose kernels are generated.
struct Ready {
    seed: u64,
    symbols: Bindings,
    /// Whether the case is given as text, as in a file of findings.
    is_pinned: bool,
    /// The function after every pass; kernels are generated from the last one.
    funcs: Vec<Lowered>,
    generated: Generated,
}

impl Ready {
    /// Lowers a program and generates its kernels, with names that are unique within the batch.
    fn new(case: &ProgramCase, number: usize, judge: &Judge) -> Result<Self, Outcome> {
        let program = case.build().map_err(Outcome::Invalid)?;
        let func = PrimFunc { name: format!("p{number}"), ..program.func };
        let mut funcs = vec![Lowered { name: "input", func, evidence: None }];
        for name in DEFAULT_PIPELINE {
            let before = &funcs[funcs.len() - 1].func;
            let Ok(pass) = pass_by_name(name) else { continue };
            if !(pass.wanted)(before) {
                continue;
            }
            let after = (pass.run)(before)
                .map_err(|found| Outcome::Undecided(format!("{name} refuses: {}", refusal(&found))))?;
            funcs.push(Lowered { name, func: after.func, evidence: Some(after.evidence) });
        }
        // A program that runs in the interpreter accesses no texel outside of a texture, so kernels
        // without checks are right, too. Half of the cases test each kind.
        let options = Options { checked: program.seed.is_multiple_of(2), placed: false, aliased: false };
        let last = &funcs[funcs.len() - 1].func;
        // The other half of the cases tests the helpers, which round down whatever is proved.
        let generated = |valid| {
            if program.seed % 4 < 2 { generate_judged(judge, valid, &options) } else { generate_with(valid, &options) }
        };
        let generated = validate(last)
            .and_then(generated)
            .map_err(|found| Outcome::Undecided(format!("codegen refuses: {}", refusal(&found))))?;
        let is_pinned = matches!(case, ProgramCase::Tvmscript { .. });
        Ok(Self { seed: program.seed, symbols: program.symbols, is_pinned, funcs, generated })
    }

    /// The values of the symbols by name.
    fn named(&self) -> Vec<(String, i128)> {
        self.symbols.iter().map(|(var, value)| (var.name().to_owned(), *value)).collect()
    }
}

/// An opened device, with what is particular about its driver.
#[derive(Debug)]
struct Opened {
    opencl: OpenCl,
    /// Name of the platform, which does not depend on the machine.
    platform: String,
    /// The file of reports, for Oclgrind.
    log: Option<Log>,
    /// Whether it is the only device.
    is_alone: bool,
    /// The process of the driver where it optimises kernels, if that is PoCL.
    optimiser: Option<DeviceHost>,
}

/// A program, and the device on which it was built.
#[derive(Debug)]
struct Loaded {
    program: Built,
    opencl: OpenCl,
}

impl Loaded {
    /// Builds one program for all cases. If that fails, each half is built by itself, recursively,
    /// so that the failure is attributed to single cases.
    fn build(opencl: &OpenCl, cases: &[&Ready], flags: &[String]) -> Vec<Compiled> {
        let generated: Vec<_> = cases.iter().map(|case| &case.generated).collect();
        let error = match join(&generated) {
            Err(name) => format!("one name means two things: {name}"),
            Ok(source) => match opencl.build(&source, flags.to_vec()) {
                Err(error @ DeviceError::Process { .. }) if cases.len() == 1 => return vec![Err(fault(&error))],
                Err(error) => format!("the source is refused: {error}"),
                Ok(program) => {
                    let program = Rc::new(Self { opencl: opencl.clone(), program });
                    return cases.iter().map(|_| Ok(program.clone())).collect();
                }
            },
        };
        if cases.len() == 1 {
            return vec![Err(EngineFault::Error(error))];
        }
        let (left, right) = cases.split_at(cases.len() / 2);
        [Self::build(opencl, left, flags), Self::build(opencl, right, flags)].concat()
    }
}

/// The OpenCL program that contains the kernels of a case, or why there is none.
type Compiled = Result<Rc<Loaded>, EngineFault>;

impl Opened {
    /// Wraps a device.
    fn new(opencl: OpenCl, optimiser: &DeviceHost) -> Self {
        let platform = opencl.session().info().platform.clone();
        let log = if platform == OCLGRIND { Log::from_environment() } else { None };
        // Oclgrind would allow accesses to guard bytes; without them it reports the accesses.
        let opencl = if log.is_some() { opencl.guarded_by(0) } else { opencl };
        let optimiser = (platform == POCL).then(|| optimiser.clone());
        Self { opencl, platform, log, is_alone: true, optimiser }
    }

    /// Whether the driver optimises the kernels of a case.
    fn is_optimised(&self, case: &Ready) -> bool {
        // The last residue is used because libFuzzer's shortest inputs have seed 0.
        self.optimiser.is_none() || case.seed % OPTIMISED == OPTIMISED - 1
    }

    /// Whether a run fails for a fault of the driver's optimiser, as far as is known: the same kernels agree without it, and it is PoCL's, whose
    /// optimiser makes loops over the work-items of a group between barriers.
    ///
    /// Optimised, such kernels sometimes write where their text does not: one was read statement by statement. And an assertion in that part of
    /// PoCL 3.1 fails, for example, where a loop around a barrier ends in front of it with a guard that holds in all iterations but the last.
    /// Programs without barriers do not count: there, a result that the optimiser changes is more likely undefined behaviour of the kernel. Nor
    /// does another end of the process: a kernel may have damaged its memory.
    fn is_miscompiled(&self, case: &Ready, line: &EngineOutcome) -> bool {
        let is_known = line.status != Status::Failed || line.detail.contains(ASSERTION);
        let is_pocl_with_barriers = self.platform == POCL && case.generated.source.contains("barrier(");
        line.agrees_unoptimised && is_known && is_pocl_with_barriers
    }

    /// The compiler flags of a case. Cases with equal flags are built together.
    fn flags(&self, case: &Ready) -> Vec<String> {
        let mut flags = case.generated.metadata.build_options.clone();
        if !self.is_optimised(case) {
            flags.push(NOT_OPTIMISED.into());
        }
        flags
    }

    /// Why a case is skipped on this device; `None` if it is not.
    fn skip_reason(&self, case: &Ready) -> Option<String> {
        let is_its_turn = self.is_alone || case.is_pinned || case.seed.is_multiple_of(SHARE_OF_OCLGRIND);
        if self.platform == OCLGRIND && !is_its_turn {
            return Some("not a case for Oclgrind".into());
        }
        let iterations = |lowered: &Lowered| n_iterations(&lowered.func.body, &case.symbols);
        let is_long = case.funcs.last().is_some_and(|lowered| iterations(lowered) > OCLGRIND_ITERATIONS);
        if self.platform == OCLGRIND && is_long {
            return Some("too long for Oclgrind".into());
        }
        self.opencl.lacks(&case.generated).map(|_| format!("{} lacks what the program needs", self.platform))
    }

    /// Builds a program for each case, in order; cases with equal flags share one. A case that PoCL optimises has one of its own, in a process of
    /// its own.
    fn build_all(&self, cases: &[&Ready]) -> Vec<Compiled> {
        let mut built: Vec<Option<Compiled>> =
            cases.iter().map(|case| self.skip_reason(case).map(|why| Err(EngineFault::Skipped(why)))).collect();
        while let Some(first) = built.iter().position(Option::is_none) {
            let flags = self.flags(cases[first]);
            if let Some(host) = self.optimiser.as_ref().filter(|_| self.is_optimised(cases[first])) {
                let apart = self.opencl.on(host).map(|opencl| Loaded::build(&opencl, &cases[first..=first], &flags));
                built[first] = apart.map_or_else(|fault| Some(Err(fault)), |mut built| built.pop());
                continue;
            }
            let same: Vec<_> =
                (first..cases.len()).filter(|&at| built[at].is_none() && self.flags(cases[at]) == flags).collect();
            let group: Vec<_> = same.iter().map(|&at| cases[at]).collect();
            for (at, program) in same.into_iter().zip(Loaded::build(&self.opencl, &group, &flags)) {
                built[at] = Some(program);
            }
        }
        built.into_iter().flatten().collect()
    }
}

/// A device with the kernels of one case, in the role of an engine.
struct Launcher<'a> {
    device: &'a Opened,
    case: &'a Ready,
    program: Rc<Loaded>,
    /// Processor time of the launches in microseconds.
    micros: Cell<u64>,
}

impl Engine for Launcher<'_> {
    fn name(&self) -> &'static str {
        self.device.opencl.name()
    }

    fn device(&self) -> Option<String> {
        self.device.opencl.device()
    }

    fn run(
        &self,
        program: &StageProgram<'_>,
        symbols: &Bindings,
        arguments: &mut Arguments,
    ) -> Result<Ran, EngineFault> {
        let StageProgram::Func(func) = program else {
            return Err(EngineFault::Skipped("a definition has no kernels".into()));
        };
        // Oclgrind does not claim correctly rounded division, but uses the host's, which is.
        let Loaded { opencl, program } = &*self.program;
        if !program.correctly_rounded() && self.device.platform != OCLGRIND && has_inexact_operators(func) {
            return Err(EngineFault::Skipped(format!("{} does not divide as IEEE says", self.device.platform)));
        }
        let watch = Stopwatch::start();
        let ran = opencl.launch(func, &self.case.generated, program, symbols, arguments);
        self.micros.set(self.micros.get() + watch.micros());
        match self.device.log.as_ref().and_then(Log::new_text) {
            Some(report) => Err(EngineFault::Error(reported(&report))),
            None => ran,
        }
    }

    fn unoptimised(&self) -> Option<Box<dyn Engine + '_>> {
        let flags = self.device.flags(self.case);
        if flags.iter().any(|flag| flag == NOT_OPTIMISED) {
            return None;
        }
        let flags = [flags, vec![NOT_OPTIMISED.to_owned()]].concat();
        let program = Loaded::build(&self.device.opencl, &[self.case], &flags).pop()?.ok()?;
        Some(Box::new(Self { program, micros: Cell::new(0), ..*self }))
    }
}

/// The file of Oclgrind's reports.
#[derive(Debug)]
struct Log {
    path: PathBuf,
    /// Number of bytes that were read before.
    seen: Cell<usize>,
}

impl Log {
    /// Opens the file, and skips the reports that it contains already. `None` if the variable is
    /// not set.
    fn from_environment() -> Option<Self> {
        let log = Self { path: std::env::var_os("OCLGRIND_LOG")?.into(), seen: Cell::new(0) };
        log.new_text();
        Some(log)
    }

    /// The text appended since the last call, if any.
    fn new_text(&self) -> Option<String> {
        let bytes = std::fs::read(&self.path).ok()?;
        let news = bytes.get(self.seen.replace(bytes.len())..)?;
        let text = String::from_utf8_lossy(news).trim().to_owned();
        (!text.is_empty()).then_some(text)
    }
}

/// The description of an Oclgrind report: its subject first, without sizes and addresses, so that
/// reports of one kind have equal keys.
fn reported(report: &str) -> String {
    let first = report.lines().next().unwrap_or_default();
    let what = [" of size", " at "].iter().find_map(|end| first.split_once(end)).map_or(first, |(what, _)| what);
    let excerpt: Vec<_> = report.lines().take(12).collect();
    format!("Oclgrind reports {what}: {}", excerpt.join("\n"))
}

/// The counter for the kernels run on a platform.
pub fn kernels_on(platform: &str) -> String {
    format!("kernels on {platform}")
}

/// Whether a function divides floats or takes square roots, which devices may round differently.
fn has_inexact_operators(func: &PrimFunc) -> bool {
    let mut found = false;
    func.body.walk(&mut |stmt| {
        for expr in stmt.exprs() {
            expr.walk(&mut |part| {
                let inexact = match part {
                    Expr::Binary(op, _, _) => *op == BinaryOp::Div,
                    Expr::Call(function, _) => *function == MathFn::Sqrt,
                    Expr::Int { .. }
                    | Expr::Float { .. }
                    | Expr::Var(_)
                    | Expr::Unary(..)
                    | Expr::Select(..)
                    | Expr::IfThenElse(..)
                    | Expr::Cast(..)
                    | Expr::Ramp { .. }
                    | Expr::Broadcast { .. }
                    | Expr::Load { .. } => false,
                };
                found |= inexact && part.dtype().scalar.is_float();
            });
        }
    });
    found
}

/// The start of an error message up to the first name or number, for counting.
fn kind(detail: &str) -> &str {
    detail.split(|c: char| matches!(c, ':' | '`' | '(') || c.is_ascii_digit()).next().unwrap_or_default().trim()
}

/// The message of a refusal without names and numbers, for counting.
fn refusal(found: &[Diagnostic]) -> String {
    let message = found.first().map_or("", |first| first.message.as_str());
    let text: String = message.split('`').step_by(2).collect::<Vec<_>>().join("_");
    text.chars().filter(|letter| !letter.is_ascii_digit()).collect()
}

/// The first mismatch of a comparison, or its message.
fn detail(line: &EngineOutcome) -> String {
    line.first.as_ref().map_or_else(|| line.detail.clone(), ToString::to_string)
}

/// The reference engine: one thread, and a limit on the iterations, so that programs that never end
/// are skipped.
fn interpreter() -> Interpreter {
    let config = tilewright_interp::Config { threads: 1, fuel: Some(1 << 22), ..tilewright_interp::Config::default() };
    Interpreter { config, is_reference: false }
}

#[cfg(test)]
mod tests;
