//! Every stage on every engine: the definition and the program after each step in the interpreter, the last one on the
//! devices, all compared with the first.

use std::time::Instant;

use tilewright_device::DeviceHost;
use tilewright_interp::{Arguments, Config};
use tilewright_ir::{Bindings, Evidence};
use tilewright_verify::Premise;

use super::{CheckFault, DeviceChoice, Lowering, Observer, Options, Program};
use crate::codegen::OPENCL;
use crate::harness::arguments::{Inputs, reads_indices};
use crate::harness::engine::{Engine, EngineFault, EngineOutcome, Ran, StageProgram, Status};
use crate::harness::interpreter::Interpreter;
use crate::harness::opencl::{OpenCl, refused};
use crate::harness::stages::{self, ChainOutcome, ChainTimes, Stage, run_chain};

/// Runs every stage of a lowering on the engines.
///
/// # Errors
/// The given extents cannot be used, for example because a tensor does not fit the memory of the machine.
pub fn run(
    program: &Program,
    lowering: &Lowering,
    options: &Options,
    observe: &mut Observer<'_>,
) -> Result<ChainOutcome, CheckFault> {
    observe(&program.func.name, "engines");
    let stages = stages_of(program, lowering);
    let symbols = symbols_of(&stages, &options.shapes);
    let mut config =
        stages::Config { seed: options.seed, symbols, inputs: Inputs::Random, ..stages::Config::default() };
    let interpreter =
        Interpreter { config: Config { threads: options.threads, ..Config::default() }, is_reference: false };
    // A program that was not proved is not run on a device: an access out of bounds could crash the driver or the machine.
    let start = Instant::now();
    let opened = match &lowering.stopped {
        None => open(&options.device, &options.host),
        Some(blocked) => vec![Err(EngineFault::Skipped(blocked.to_string()))],
    };
    let opening = ChainTimes::since(start);
    let asked = options.device != DeviceChoice::None;
    let launchers: Vec<Result<Launcher<'_>, EngineFault>> = opened
        .iter()
        .filter(|_| asked)
        .map(|device| device.as_ref().map(|device| Launcher { device: device.clone(), lowering }).map_err(Clone::clone))
        .collect();
    let devices: Vec<Result<&dyn Engine, EngineFault>> = launchers
        .iter()
        .map(|launcher| launcher.as_ref().map(|launcher| launcher as &dyn Engine).map_err(Clone::clone))
        .collect();
    let run_chain = |config: &stages::Config| {
        run_chain(&stages, config, &interpreter, &devices).map_err(|fault| CheckFault::Input(vec![fault]))
    };
    let mut run = run_chain(&config)?;
    let is_trapped = run.engines.first().is_some_and(|first| first.status == Status::Trap);
    if is_trapped && reads_indices(&program.func) {
        config.inputs = Inputs::Indices;
        run = run_chain(&config)?;
    }
    run.times.opening = opening;
    if !asked {
        run.engines.push(EngineOutcome::not_requested(OPENCL.name));
    }
    Ok(run)
}

/// A device that runs the kernels of a lowering, which are those that `compile` writes.
struct Launcher<'a> {
    device: OpenCl,
    lowering: &'a Lowering,
}

impl Engine for Launcher<'_> {
    fn name(&self) -> &'static str {
        self.device.name()
    }

    fn device(&self) -> Option<String> {
        self.device.device()
    }

    /// Runs the kernels of the last stage, whichever stage is asked for: devices run no other.
    fn run(&self, _: &StageProgram<'_>, symbols: &Bindings, arguments: &mut Arguments) -> Result<Ran, EngineFault> {
        match &self.lowering.kernels {
            Some(Ok(kernels)) => self.device.run_kernels(self.lowering.last(), kernels, symbols, arguments),
            Some(Err(found)) => Err(refused(found)),
            None => Err(EngineFault::Skipped("a program that is not lowered has no kernels".into())),
        }
    }

    fn unoptimised(&self) -> Option<Box<dyn Engine + '_>> {
        Some(Box::new(Self { device: self.device.without_optimiser()?, ..*self }))
    }
}

/// Returns the definition, if there is one, and the program after each step.
fn stages_of<'a>(program: &'a Program, lowering: &'a Lowering) -> Vec<Stage<'a>> {
    let mut stages = Vec::new();
    if let Some(definition) = program.written() {
        let program = StageProgram::Definition(definition);
        stages.push(Stage { name: "definition", program, evidence: None, reassociates: false });
    }
    let reassociates = |first: bool| match &program.definition {
        Some((definition, evidence)) if first => {
            program.written.is_some() || !tilewright_verify::premise::reassociated(definition, evidence).is_empty()
        }
        _ => false,
    };
    for (position, stage) in lowering.stages.iter().enumerate() {
        stages.push(Stage {
            name: &stage.name,
            program: StageProgram::Func(&stage.func),
            evidence: stage.evidence.as_ref(),
            reassociates: reassociates(position == 0) || stage.evidence.as_ref().is_some_and(changes_order),
        });
    }
    stages
}

/// Returns whether a pass claims that floats may be combined in another order.
fn changes_order(evidence: &Evidence) -> bool {
    Premise::of_pass(evidence).iter().any(|premise| matches!(premise, Premise::ReductionOrder(_)))
}

/// Returns the given values that are for extents of this function; others belong to other functions of the file.
fn symbols_of(stages: &[Stage<'_>], given: &[(String, i64)]) -> Vec<(String, i128)> {
    let names: Vec<String> =
        stages.iter().flat_map(|stage| stage.program.symbols()).map(|symbol| symbol.name().to_owned()).collect();
    given.iter().filter(|(name, _)| names.contains(name)).map(|(name, value)| (name.clone(), (*value).into())).collect()
}

/// Opens the chosen devices. A device that cannot be opened gives a fault with the reason.
pub fn open(choice: &DeviceChoice, host: &DeviceHost) -> Vec<Result<OpenCl, EngineFault>> {
    match choice {
        DeviceChoice::None => Vec::new(),
        DeviceChoice::First => vec![OpenCl::open_on(host, None)],
        DeviceChoice::Named(name) => vec![OpenCl::open_on(host, Some(name))],
        DeviceChoice::All => {
            let found = host.devices().unwrap_or_default();
            if found.is_empty() {
                return vec![OpenCl::open_on(host, None)];
            }
            found.iter().map(|info| OpenCl::open_on(host, Some(&info.index.to_string()))).collect()
        }
    }
}
