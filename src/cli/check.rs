//! `tilewright check`: lowers programs with every pass, proves every step, runs every stage and compares the results.
//!
//! ```text
//! FILE  ->  functions  ->  after each pass: obligations + runs (interpreter, devices)  ->  report, exit code
//! ```
//!
//! The work itself is in `pipeline::check`; this file reads the options, prints one report a file and writes the
//! certificate.

use tilewright_script::Source;
use tilewright_verify::Report;

use super::certificate::{CertificateOption, entries};
use super::exit::ExitStatus;
use super::failure::Failure;
use super::input::{Input, refuse_stdin_twice};
use super::options::{Assume, Global, Limits, Shapes};
use super::passes::PassOptions;
use super::printer::Printer;
use crate::pipeline;
use crate::pipeline::outcome::CheckOutcome;
use crate::report::{FileReport, text};

/// Lower with every pass, prove every step, interpret every stage, run the generated kernels, compare
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  tilewright check examples/addone.py\n  tilewright check --device none \
                        examples/nhwc_to_nchwc.tvm.py::bias_relu\n  tilewright check --format json --shape n=3,c=10 \
                        examples/*.py\n  tilewright check --assume 'n % 4 == 0' program.py\n  tilewright check -p split=i:4,loop_partition,flatten_buffer program.py\n\nEvery verdict counts: the exit code is 0 only if everything was proved and \
                        every engine that was asked for ran and agrees. With --format json there is one document a \
                        FILE, each on one line: a report (tilewright.check/1) or an error (tilewright.error/1).")]
pub struct Args {
    /// TVMScript or TE programs; FILE::name picks one function, `-` is standard input
    #[arg(value_name = "FILE[::name]", required = true)]
    files: Vec<String>,
    #[command(flatten)]
    passes: PassOptions,
    #[command(flatten)]
    shapes: Shapes,
    #[command(flatten)]
    assume: Assume,
    #[command(flatten)]
    limits: Limits,
    #[command(flatten)]
    certificate: CertificateOption,
}

/// Checks every file and returns the worst status. A file that cannot be read does not stop the others.
///
/// # Errors
/// Standard output or the certificate cannot be written, or the device that is named does not exist.
pub fn run(args: &Args, global: &Global, printer: &mut Printer) -> Result<ExitStatus, Failure> {
    refuse_stdin_twice(args.files.iter().map(String::as_str))?;
    super::check_device(global)?;
    let record = args.certificate.is_wanted()?;
    let (mut worst, mut outcomes) = (ExitStatus::Success, Vec::new());
    for file in &args.files {
        let status = match check_file(file, args, record, global, printer) {
            Ok((source, outcome)) => {
                print(&FileReport { source: &source, outcome: &outcome }, printer)?;
                let status = status_of(&outcome);
                outcomes.push((source, outcome));
                status
            }
            Err(failure) => printer.failure(&failure),
        };
        worst = worst.max(status);
    }
    let entries = outcomes.iter().flat_map(|(source, outcome)| entries(&source.name, outcome));
    args.certificate.write(&entries.collect::<Vec<_>>())?;
    Ok(worst)
}

/// Reads and checks one file. The source is returned with the outcome, because reports quote it.
fn check_file(
    file: &str,
    args: &Args,
    record: bool,
    global: &Global,
    printer: &mut Printer,
) -> Result<(Source, CheckOutcome), Failure> {
    let input = Input::read(file)?;
    let mut options = super::pipeline_options(global, &args.shapes, input.function.clone());
    options.record = record;
    options.pipeline = args.passes.pipeline()?.unwrap_or_default();
    options.assume.clone_from(&args.assume.conditions);
    options.limits = args.limits.limits;
    let progress = printer.progress();
    let mut observe = |function: &str, step: &str| {
        progress.set_message(format!("{function}: {step}"));
        progress.tick();
    };
    let checked = pipeline::check(&input.source.text, &options, &mut observe);
    progress.finish_and_clear();
    let outcome = checked.map_err(|fault| super::pipeline_failure(&input.source, fault))?;
    printer.diagnostics(&input.source, &outcome.warnings);
    Ok((input.source, outcome))
}

/// Prints a report as text or as a line of JSON.
fn print(report: &FileReport<'_>, printer: &mut Printer) -> Result<(), Failure> {
    if printer.is_json() {
        printer.json(&report.to_json())
    } else {
        printer.result(&text::check(report, printer.style()))
    }
}

/// The exit status of an outcome: internal if any obligation met a fault of the program, else that of the summary.
fn status_of(outcome: &CheckOutcome) -> ExitStatus {
    if outcome.reports().any(Report::is_internal) {
        return ExitStatus::Internal;
    }
    ExitStatus::of_summary(outcome.summary(), outcome.setting.allow_unknown)
}
