//! `tilewright bench`: times the kernels of a program on a device, beside a copy of as many bytes.
//!
//! Proving and lowering are those of `check`; the measurement is `harness::timing`.

use tilewright_verify::Report;

use super::exit::ExitStatus;
use super::failure::Failure;
use super::input::Input;
use super::options::{Assume, Global, Limits, Shapes, whole};
use super::passes::PassOptions;
use super::printer::Printer;
use crate::harness::timing::Rounds;
use crate::pipeline::{self, DeviceChoice};
use crate::report::bench::BenchReport;

/// Lower and prove a program, and time its kernels on a device, beside a copy of as many bytes
#[derive(clap::Args, Debug)]
#[command(
    after_help = "Examples:\n  tilewright bench examples/conv2d_resnet.py\n  tilewright bench --rounds 50 --device 1 --shape n=512,m=512 program.py\n\nTimes are those of the device's \
                        own clock: OpenCL events. GB/s counts each buffer that a kernel takes once; FLOP/s counts the operators and functions \
                        with float results in the program, with all conditions true. `of a copy` is the time of clEnqueueCopyBuffer for as many bytes \
                        in the same run, divided by the time of the kernel. A program with textures is timed with plain buffers, too. The results are not \
                        compared with the program's; `tilewright check` does that. The exit code is 3 if nothing could be timed."
)]
pub struct Args {
    /// A TVMScript or TE program; FILE::name picks one function, `-` is standard input
    #[arg(value_name = "FILE[::name]")]
    file: String,
    /// Runs that are counted
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = parse_rounds, allow_hyphen_values = true)]
    rounds: usize,
    /// Runs before them that are not
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = parse_warm_up, allow_hyphen_values = true)]
    warm_up: usize,
    #[command(flatten)]
    passes: PassOptions,
    #[command(flatten)]
    shapes: Shapes,
    #[command(flatten)]
    assume: Assume,
    #[command(flatten)]
    limits: Limits,
}

fn parse_rounds(text: &str) -> Result<usize, String> {
    whole(text, 1..=10_000)
}

fn parse_warm_up(text: &str) -> Result<usize, String> {
    whole(text, 0..=1_000)
}

/// Times the functions of a file.
///
/// # Errors
/// The input is bad, or no device was asked for.
pub fn run(args: &Args, global: &Global, printer: &mut Printer) -> Result<ExitStatus, Failure> {
    super::check_device(global)?;
    let input = Input::read(&args.file)?;
    let mut options = super::pipeline_options(global, &args.shapes, input.function.clone());
    if options.device == DeviceChoice::None {
        let failure = Failure::plain("<arguments>", "device", "kernels cannot be timed without a device");
        return Err(failure.with_help("leave out `--device none`; `tilewright devices` lists the devices"));
    }
    options.pipeline = args.passes.pipeline()?.unwrap_or_default();
    options.assume.clone_from(&args.assume.conditions);
    options.limits = args.limits.limits;
    let rounds = Rounds { warm_up: args.warm_up, rounds: args.rounds };
    let progress = printer.progress();
    let mut observe = |function: &str, step: &str| {
        progress.set_message(format!("{function}: {step}"));
        progress.tick();
    };
    let done = pipeline::bench::bench(&input.source.text, &options, rounds, &mut observe);
    progress.finish_and_clear();
    let (outcomes, warnings) = done.map_err(|fault| super::pipeline_failure(&input.source, fault))?;
    printer.diagnostics(&input.source, &warnings);
    let report = BenchReport { file: &input.source.name, rounds, outcomes: &outcomes };
    if printer.is_json() {
        printer.json(&report.to_json())?;
    } else {
        printer.result(&report.to_text(printer.style()))?;
    }
    if outcomes.iter().flat_map(|outcome| outcome.lowering.reports()).any(Report::is_internal) {
        return Ok(ExitStatus::Internal);
    }
    Ok(ExitStatus::of_summary(report.summary(), global.allow_unknown))
}
