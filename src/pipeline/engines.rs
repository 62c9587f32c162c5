//! Every stage on every engine: the definition and the program after each step in the interpreter, the last one on the
//! devices, all compared with the first.

use tilewright_device::DeviceHost;
use tilewright_interp::Config;

use super::{DeviceChoice, Fault, Lowering, Observer, Options, Program};
use crate::harness::engine::{Engine, EngineReport, Fault as EngineFault, Program as Staged, Status};
use crate::harness::interpreter::Interpreter;
use crate::harness::opencl::OpenCl;
use crate::harness::stages::{self, Stage, run_chain};
use crate::report::{CheckReport, EngineRow, EngineStatus};

/// Runs what was lowered and adds what came of it to `report`.
///
/// # Errors
/// Extents that make no sense, such as a tensor that does not fit the machine.
pub fn run(
    program: &Program,
    lowering: &Lowering,
    options: &Options,
    observe: &mut Observer<'_>,
    report: &mut CheckReport,
) -> Result<(), Fault> {
    observe(&report.function, "engines");
    let stages = stages_of(program, lowering);
    let symbols = symbols_of(&stages, &options.shapes);
    let config = stages::Config { seed: options.seed, symbols, stumbling: false };
    let interpreter = Interpreter { config: Config { threads: options.threads, ..Config::default() } };
    let opened =
        if lowering.complete { open(&options.device, &options.host) } else { vec![Err(not_lowered(lowering))] };
    let asked = options.device != DeviceChoice::None;
    let devices: Vec<Result<&dyn Engine, EngineFault>> = opened
        .iter()
        .filter(|_| asked)
        .map(|device| device.as_ref().map(|device| device as &dyn Engine).map_err(Clone::clone))
        .collect();
    let chain = run_chain(&stages, &config, &interpreter, &devices).map_err(|fault| Fault::Input(vec![fault]))?;
    report.shapes = chain.symbols;
    report.notes = chain.notes;
    report.blame = chain.blame;
    report.engines = chain.engines.into_iter().enumerate().map(|(position, line)| row(line, position == 0)).collect();
    if !asked {
        report.engines.push(not_requested());
    }
    Ok(())
}

/// The definition, if there is one, and the program after each step.
fn stages_of<'a>(program: &'a Program, lowering: &'a Lowering) -> Vec<Stage<'a>> {
    let mut stages = Vec::new();
    if let Some((definition, _)) = &program.definition {
        let program = Staged::Definition(definition);
        stages.push(Stage { name: "definition", program, evidence: None, reassociates: false });
    }
    let reassociates = |first: bool| match &program.definition {
        Some((definition, evidence)) if first => stages::reassociates(definition, evidence),
        _ => false,
    };
    for (position, stage) in lowering.stages.iter().enumerate() {
        stages.push(Stage {
            name: &stage.name,
            program: Staged::Func(&stage.func),
            evidence: stage.evidence.as_ref(),
            reassociates: reassociates(position == 0),
        });
    }
    stages
}

/// The values given for extents of this function: the file may have others.
fn symbols_of(stages: &[Stage<'_>], given: &[(String, i64)]) -> Vec<(String, i128)> {
    let names: Vec<String> =
        stages.iter().flat_map(|stage| stage.program.symbols()).map(|symbol| symbol.name().to_owned()).collect();
    given.iter().filter(|(name, _)| names.contains(name)).map(|(name, value)| (name.clone(), (*value).into())).collect()
}

/// The devices that were asked for, opened; one that does not open is the fault that says why.
pub(crate) fn open(choice: &DeviceChoice, host: &DeviceHost) -> Vec<Result<OpenCl, EngineFault>> {
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

fn not_lowered(lowering: &Lowering) -> EngineFault {
    let stopped = lowering.steps.iter().find_map(|step| step.skipped.clone());
    EngineFault::Skipped(stopped.unwrap_or_else(|| "the program was not lowered to the end".into()))
}

fn not_requested() -> EngineRow {
    EngineRow {
        engine: "opencl".into(),
        stage: None,
        device: None,
        status: EngineStatus::NotRequested,
        compared: 0,
        mismatches: 0,
        max_ulp: 0,
        ms: 0.0,
        reason: Some("--device none".into()),
    }
}

/// A line of the report; `reference` if it is the one that the others are compared with.
fn row(line: EngineReport, reference: bool) -> EngineRow {
    let first = line.first.map(|first| first.to_string());
    let detail = Some(line.detail).filter(|detail| !detail.is_empty());
    let mut reason = first.or(detail);
    let absent = line.status == Status::Skipped && line.device.is_none() && line.engine == "opencl";
    if absent && !reason.as_deref().unwrap_or_default().starts_with("not run") {
        reason = reason.map(|reason| format!("{reason}; run with --device none to do without"));
    }
    let status = match line.status {
        Status::Ok if reference => EngineStatus::Reference,
        Status::Ok => EngineStatus::Agrees,
        Status::Mismatch => EngineStatus::Mismatch,
        Status::Trap => EngineStatus::Trap,
        Status::Skipped => EngineStatus::Skipped,
        Status::Error => EngineStatus::Failed,
    };
    EngineRow {
        engine: line.engine,
        stage: Some(line.stage),
        device: line.device,
        status,
        compared: line.compared,
        mismatches: line.mismatches,
        max_ulp: line.max_ulp,
        ms: line.ms,
        reason,
    }
}
