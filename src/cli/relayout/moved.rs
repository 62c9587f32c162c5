//! `relayout --explain` and `relayout --run`: chooses a strategy, proves its program, writes its kernel and moves data.

use std::fs;
use std::io::Read;
use std::path::Path;

use tilewright_ir::Expr;
use tilewright_relayout::program::{moved, plain};
use tilewright_relayout::{Placement, RelayoutError, Sizes, Strategy, device};
use tilewright_verify::{Judge, MapClaim, Obligation, Report, Verdict};

use super::super::exit::ExitStatus;
use super::super::failure::Failure;
use super::super::options::Global;
use super::super::output::{self, OutputFile};
use super::super::printer::Printer;
use super::npy::Npy;
use super::sides::Sides;
use crate::pipeline::{self, Program, pair};
use crate::report::Dim;
use crate::report::moved::{LoopRow, MoveReport, RanRow};

/// Files to read and to write.
pub(super) type Files<'a> = Option<(&'a str, &'a str)>;

/// Answers a request: proves the move, and runs it if files are given.
///
/// # Errors
/// There is no strategy, or a file cannot be read, does not fit, or cannot be written.
pub(super) fn run(
    sides: &Sides,
    files: Files<'_>,
    judge: &Judge,
    (global, printer): (&Global, &mut Printer),
    is_long: bool,
) -> Result<ExitStatus, Failure> {
    if let Some((input, output)) = files {
        let output = OutputFile { option: "--run", path: Path::new(output), suffix: Some("npy") };
        output::refuse_clashes(&[input], &[output])?;
    }
    let strategy = match Strategy::choose(&sides.relayout, sides.element_bytes) {
        Ok(strategy) => Some(strategy),
        Err(RelayoutError::NotDigits { .. } | RelayoutError::Mixed { .. }) if !sides.is_packed => None,
        Err(fault) => return Err(no_strategy(&fault)),
    };
    let strategy = strategy.as_ref();
    let mut report = proved(sides, strategy, judge, global)?;
    let is_proved = report.verdicts.iter().all(|row| row.verdict.is_proved());
    if let Some((input, output)) = files.filter(|_| is_proved || global.allow_unknown && !is_refuted(&report)) {
        report.ran = Some(ran(sides, strategy, input, output)?);
    }
    if printer.is_json() {
        printer.json(&report.to_json())?;
    } else {
        printer.result(&report.to_text(printer.style(), (is_long, global.verbose)))?;
    }
    Ok(super::super::bitcast::status(&report.verdicts, report.summary(), global))
}

fn is_refuted(report: &MoveReport) -> bool {
    report.verdicts.iter().any(|row| matches!(row.verdict, Verdict::Refuted(_)))
}

/// The failure of a move that is not possible.
fn no_strategy(fault: &RelayoutError) -> Failure {
    let help = match fault {
        RelayoutError::NoPlace { .. } => "an index of a layout may not be negative, nor outside of its physical shape",
        RelayoutError::NotDigits { .. } | RelayoutError::Mixed { .. } => {
            "elements of 4 bits need layouts whose indices are sums of digits of the logical indices, `i // a % b`"
        }
        RelayoutError::Shape(_) | RelayoutError::Length { .. } | RelayoutError::ElementSize(_) => {
            "give arrays with elements, of 1 to 16 bytes each"
        }
    };
    Failure::plain("<A and B>", "no-strategy", fault.to_string()).with_help(help)
}

/// The report on a move: its program compared with the two maps, and its kernel. Without a strategy, the program is the plain one.
fn proved(sides: &Sides, strategy: Option<&Strategy>, judge: &Judge, global: &Global) -> Result<MoveReport, Failure> {
    let before = plain(&sides.relayout, &sides.elements);
    let sizes = Sizes::known(&sides.relayout);
    let after = strategy.map_or_else(|| before.clone(), |strategy| moved(strategy, &sizes, &sides.elements));
    let faults = |faults: Vec<pair::PairFault>| {
        let texts: Vec<String> = faults.into_iter().map(|fault| fault.diagnostic().message).collect();
        Failure::Internal(texts.join("; "))
    };
    let judged = pair::validate(&before, &after, &[], judge).map_err(faults)?;
    let mut verdicts = keeps_all(sides, judge);
    verdicts.extend(judged.reports);
    let device = match strategy.and_then(|strategy| device::kernel(strategy, &sizes, &sides.elements)) {
        Some(func) => {
            let reports = pair::validate(&before, &func, &[], judge).map_err(faults)?.reports;
            // What is not decided of the faster program leaves the plain one, of which it is.
            let is_kept = reports.iter().all(|report| report.verdict.is_proved())
                || reports.iter().any(|report| matches!(report.verdict, Verdict::Refuted(_)));
            verdicts.extend(reports.into_iter().filter(|_| is_kept));
            is_kept.then_some(func)
        }
        None => None,
    };
    let func = device.clone().unwrap_or_else(|| after.clone());
    let program = Program { func, definition: None, written: None, assumed: Vec::new(), scheduled: Vec::new() };
    let lowering = pipeline::lower(&program, judge, global.allow_unknown, &mut |_, _| {});
    let lowering = lowering.map_err(|fault| Failure::Internal(format!("{fault:?}")))?;
    verdicts.extend(lowering.steps.iter().flat_map(|step| step.reports.iter().cloned()));
    let kernel = match &lowering.kernels {
        Some(Ok(kernels)) => Some(kernels.plain().source.clone()),
        Some(Err(_)) | None => None,
    };
    let loops = strategy.map_or(&[][..], |strategy| &strategy.loops);
    let names = strategy.map(tilewright_relayout::program::loop_names).unwrap_or_default();
    let row = |(one, name): (&tilewright_relayout::Loop, String)| LoopRow {
        name,
        extent: dim(one.extent),
        source: dim(one.source),
        target: dim(one.target),
    };
    Ok(MoveReport {
        schema: "tilewright.relayout-move/1",
        from: sides.from.clone(),
        to: sides.to.clone(),
        shape: dims(&sides.relayout.extents),
        element_bytes: sides.element_bytes,
        from_shape: dims(&sides.relayout.from.shape),
        to_shape: dims(&sides.relayout.to.shape),
        tile: strategy.map_or("each", Strategy::tile_name),
        loops: loops.iter().zip(names).map(row).collect(),
        is_wide: strategy.is_some_and(|strategy| strategy.is_wide),
        fill: strategy.map_or("whole", Strategy::fill_name),
        program: tilewright_script::print_func(&after),
        device_program: device.map(|func| tilewright_script::print_func(&func)),
        kernel,
        premises: judged.premises.iter().map(ToString::to_string).collect(),
        verdicts,
        ran: None,
    })
}

/// Extents in a report.
fn dims(extents: &[u64]) -> Vec<Dim> {
    extents.iter().copied().map(dim).collect()
}

fn dim(size: u64) -> Dim {
    i64::try_from(size).map_or_else(|_| Dim::Symbolic(size.to_string()), Dim::Known)
}

/// That no slot of A or of B stands for two elements: otherwise a move, though it does what the maps say, would lose some.
fn keeps_all(sides: &Sides, judge: &Judge) -> Vec<Report> {
    let one = |placement: &Placement| {
        let shape: Vec<Expr> =
            placement.shape.iter().filter_map(|&extent| i64::try_from(extent).ok()).map(Expr::int).collect();
        judge.check_map_for(MapClaim::new(&placement.map, &shape), Obligation::Injective)
    };
    vec![one(&sides.relayout.from), one(&sides.relayout.to)]
}

/// Most bytes of the header of a .npy file that are read.
const MAX_HEADER: u64 = 1 << 16;

/// Reads, moves and writes.
fn ran(sides: &Sides, strategy: Option<&Strategy>, input: &str, output: &str) -> Result<RanRow, Failure> {
    let fault = |code, message: String| Failure::plain(input, code, message);
    // No more is read than A has, behind a header: a device or a pipe may have no end.
    let slots: u64 = sides.relayout.from.shape.iter().product();
    let most = slots.saturating_mul(sides.element_bytes).saturating_add(MAX_HEADER);
    let mut bytes = Vec::new();
    let read = fs::File::open(input).and_then(|file| file.take(most.saturating_add(1)).read_to_end(&mut bytes));
    read.map_err(|error| {
        fault("cannot-read", format!("cannot read {input}: {error}")).with_help("give the path of a .npy file")
    })?;
    if bytes.len() as u64 > most {
        let message = format!("{input} has more than {most} bytes, and A has {slots} slots");
        let help = "it holds A's memory, padding included, and nothing else";
        return Err(fault("npy-shape", message).with_help(help));
    }
    let npy = Npy::read(bytes).map_err(|message| fault("npy", format!("{input}: {message}")))?;
    if npy.element_bytes as u64 != sides.element_bytes {
        let message = format!("{input} has elements of {} bytes, and A of {}", npy.element_bytes, sides.element_bytes);
        return Err(fault("element-size", message).with_help("elements are moved as bytes: only their size has to fit"));
    }
    // Elements of 4 bits are pairs in a list of bytes, whatever the shape of either memory.
    let bytes_of = |shape: &[u64]| match shape.iter().product::<u64>() {
        slots if sides.is_packed => slots.div_ceil(2),
        slots => slots,
    };
    let (given, slots) = (npy.shape.iter().product::<u64>(), bytes_of(&sides.relayout.from.shape));
    let shape = if sides.is_packed { vec![slots] } else { sides.relayout.from.shape.clone() };
    if given != slots {
        let message = format!("{input} has {given} elements, {:?}, and A has {slots} slots", npy.shape);
        let help = format!("it holds A's memory, padding included: {shape:?}, or any shape of as many");
        return Err(fault("npy-shape", message).with_help(&help));
    }
    let count = bytes_of(&sides.relayout.to.shape);
    let shape = if sides.is_packed { vec![count] } else { sides.relayout.to.shape.clone() };
    let size = usize::try_from(count * sides.element_bytes);
    let size = size.map_err(|_| fault("npy-shape", "B does not fit into memory".to_owned()))?;
    let mut data = vec![0; size];
    let fill = vec![0; npy.element_bytes];
    let done = match strategy {
        Some(strategy) if sides.is_packed => strategy.run_nibbles(&npy.data, &mut data, 0),
        Some(strategy) => strategy.run_bytes(&npy.data, &mut data, &fill),
        None => sides.relayout.run_each(&npy.data, &mut data, &fill),
    };
    done.map_err(|error| Failure::Internal(error.to_string()))?;
    let result = Npy { shape, data, ..npy };
    output::write_bytes(Path::new(output), &result.bytes())?;
    Ok(RanRow { input: input.to_owned(), output: output.to_owned(), shape: result.shape })
}
