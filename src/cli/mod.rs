//! The command line: one file a command.
//!
//! ```text
//! main -> run -> clap -> dispatch -> check::run | map::run | ...  ->  ExitStatus
//! ```
//!
//! Each command has a struct `Args` for its own options and a function `run`, which gets the options of every command
//! ([`options::Global`]) and a [`printer::Printer`]. The result goes to standard output, diagnostics and progress go to
//! standard error. [`ExitStatus`] is the exit code; a command without a result returns a [`Failure`].

pub mod batch;
pub mod bench;
pub mod bitcast;
mod bitcast_slots;
mod bug;
pub mod certificate;
pub mod check;
pub mod compile;
pub mod completions;
mod device_worker;
pub mod devices;
pub mod draw;
pub mod exit;
pub mod failure;
#[cfg(feature = "campaign")]
pub mod fuzz;
#[cfg(feature = "campaign")]
mod fuzz_sabotage;
#[cfg(feature = "campaign")]
pub mod fuzz_worker;
pub mod input;
pub mod layout;
mod man;
pub mod map;
pub mod opt;
pub mod options;
mod output;
pub mod passes;
pub mod plan;
mod point;
pub mod printer;
pub mod recheck;
pub mod relayout;
#[cfg(feature = "campaign")]
pub mod replay;
pub mod run;
mod target;
pub mod validate;
mod version;

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::panic::{AssertUnwindSafe, catch_unwind};

use clap::error::ErrorKind;
use clap::{ColorChoice, CommandFactory, FromArgMatches, Parser, Subcommand};
use tilewright_ir::Diagnostic;

pub use exit::ExitStatus;
pub use failure::Failure;
use options::{Format, Global};
use printer::Printer;

use crate::passes::Pipeline;
use crate::pipeline::{self, DeviceChoice};
use crate::report::lines::folded;
use crate::report::text::Style;

/// Lowers tensor programs to physical memory layouts and proves, pass by pass, that nothing went wrong
#[derive(Parser, Debug)]
#[command(name = "tilewright", version, subcommand_required = true, arg_required_else_help = true)]
#[command(
    after_help = "Exit codes: 0 all fine; 1 refuted or mismatch; 2 bad usage, bad input or an output that cannot be written; 3 unknown, vacuous or \
                        skipped where it was not allowed; 70 internal."
)]
struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    Check(check::Args),
    Compile(compile::Args),
    Opt(opt::Args),
    Validate(validate::Args),
    Map(map::Args),
    Layout(layout::Args),
    Recheck(recheck::Args),
    Draw(draw::Args),
    Bitcast(bitcast::Args),
    Relayout(relayout::Args),
    Plan(plan::Args),
    Run(run::Args),
    Bench(bench::Args),
    #[cfg(feature = "campaign")]
    Fuzz(fuzz::Args),
    #[cfg(feature = "campaign")]
    Replay(replay::Args),
    #[cfg(feature = "campaign")]
    FuzzWorker(fuzz_worker::Args),
    Devices(devices::Args),
    DeviceWorker(device_worker::Args),
    Completions(completions::Args),
    Man(man::Args),
}

/// Stack of the thread that reads and lowers, in bytes.
///
/// Programs are trees that are walked by recursion, and the readers bound their depth. In a release build, 400 allocations
/// in one another touch 1 MiB of it, 230 conditions in one another 0.7 MiB and an expression of 240 operators 0.5 MiB; the
/// deepest that is accepted, the 1000 stages of a TE schedule, comes to 3 MiB.
const STACK_BYTES: usize = 64 << 20;
/// Stack of each thread that proves, in bytes. They see single goals: the deepest expression touches 0.4 MiB of it.
const WORKER_STACK_BYTES: usize = 8 << 20;

/// Runs the command line of the process, on a thread with a large stack. A panic gives [`ExitStatus::Internal`], for which a
/// file for a bug report is written.
pub fn main() -> ExitStatus {
    #[cfg(unix)]
    block_file_size_signal();
    let arguments: Vec<OsString> = std::env::args_os().collect();
    let thread = std::thread::Builder::new().name("tilewright".into()).stack_size(STACK_BYTES);
    let guarded = move || {
        catch_unwind(AssertUnwindSafe(|| run(&arguments))).unwrap_or_else(|_| {
            bug::found(&arguments);
            ExitStatus::Internal
        })
    };
    thread.spawn(guarded).ok().and_then(|running| running.join().ok()).unwrap_or(ExitStatus::Internal)
}

/// Blocks SIGXFSZ in this thread and in those that it starts. A write beyond the limit on the size of files then fails, and
/// is reported, instead of ending the process.
#[cfg(unix)]
fn block_file_size_signal() {
    use nix::sys::signal::{SigSet, Signal};
    let mut signals = SigSet::empty();
    signals.add(Signal::SIGXFSZ);
    // Where it cannot be blocked, the signal ends the process as it does any other.
    let _ = signals.thread_block();
}

/// Runs a command line, the program's name first.
pub fn run(arguments: &[OsString]) -> ExitStatus {
    let command = Cli::command().color(color_asked_for(arguments));
    let parsed = command.try_get_matches_from(arguments).and_then(|matches| Cli::from_arg_matches(&matches));
    let mut cli: Cli = match parsed {
        Ok(cli) => cli,
        Err(error) => return usage(&error, arguments),
    };
    cli.global.host = device_worker::host();
    let mut printer = Printer::new(&cli.global);
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(cli.global.threads.into())
        .stack_size(WORKER_STACK_BYTES)
        .build_global();
    let done = pool
        .map_err(|error| Failure::Internal(format!("cannot start threads: {error}")))
        .and_then(|()| dispatch(&cli, &mut printer));
    match done {
        // A failure of the machine, such as a file that cannot be read, is no fault to be reported.
        Err(failure) => printer.failure(&failure),
        Ok(status) => {
            if status == ExitStatus::Internal {
                bug::found(arguments);
            }
            status
        }
    }
}

/// Runs the command that was parsed. This is a table with one line for each command.
fn dispatch(cli: &Cli, printer: &mut Printer) -> Result<ExitStatus, Failure> {
    match &cli.command {
        Command::Check(args) => check::run(args, &cli.global, printer),
        Command::Compile(args) => compile::run(args, &cli.global, printer),
        Command::Opt(args) => opt::run(args, &cli.global, printer),
        Command::Validate(args) => validate::run(args, &cli.global, printer),
        Command::Map(args) => map::run(args, &cli.global, printer),
        Command::Layout(args) => layout::run(args, &cli.global, printer),
        Command::Recheck(args) => recheck::run(args, &cli.global, printer),
        Command::Draw(args) => draw::run(args, &cli.global, printer),
        Command::Bitcast(args) => bitcast::run(args, &cli.global, printer),
        Command::Relayout(args) => relayout::run(args, &cli.global, printer),
        Command::Plan(args) => plan::run(args, &cli.global, printer),
        Command::Run(args) => run::run(args, &cli.global, printer),
        Command::Bench(args) => bench::run(args, &cli.global, printer),
        #[cfg(feature = "campaign")]
        Command::Fuzz(args) => fuzz::run(args, &cli.global, printer),
        #[cfg(feature = "campaign")]
        Command::Replay(args) => replay::run(args, &cli.global, printer),
        #[cfg(feature = "campaign")]
        Command::FuzzWorker(args) => fuzz_worker::run(args, &cli.global),
        Command::Devices(args) => devices::run(args, &cli.global, printer),
        Command::DeviceWorker(args) => device_worker::run(args),
        Command::Completions(args) => completions::run(args, printer),
        Command::Man(args) => man::run(args),
    }
}

/// Prints the message of clap. Help and version are results; everything else is bad usage.
fn usage(error: &clap::Error, arguments: &[OsString]) -> ExitStatus {
    let mut plain = Printer::plain(Format::Text);
    if error.kind() == ErrorKind::DisplayVersion {
        let printed = plain.result(&version::text());
        return printed.map_or_else(|failure| plain.failure(&failure), |()| ExitStatus::Success);
    }
    let is_help = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand);
    let printed = match printer::width_of_messages().filter(|_| !is_help) {
        Some(width) => {
            wrapped_usage(error, arguments, width);
            Ok(())
        }
        None => error.print(),
    };
    if error.kind() == ErrorKind::DisplayHelp {
        return match printed {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => plain.failure(&Failure::of_stdout(&error)),
            _ => ExitStatus::Success,
        };
    }
    if option_value(arguments, "--format").as_deref() == Some("json") {
        let message = error.to_string();
        let first = message.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned();
        let source = tilewright_script::Source { name: "<arguments>".into(), text: String::new() };
        let diagnostic = Diagnostic::error("usage", None, first).with_help("run with --help for the usage");
        let report = crate::report::diagnostic::ErrorReport::new(&source, &[diagnostic], ExitStatus::Usage.code());
        let mut printer = Printer::plain(Format::Json);
        let _ = printer.json(&report.to_json());
    }
    ExitStatus::Usage
}

/// Prints a usage error within a width: clap wraps only help.
fn wrapped_usage(error: &clap::Error, arguments: &[OsString], width: usize) {
    let style = Style { width, ..Style::default() };
    let text = folded(&error.render().ansi().to_string(), style);
    let choice = match color_asked_for(arguments) {
        ColorChoice::Always => anstream::ColorChoice::Always,
        ColorChoice::Never => anstream::ColorChoice::Never,
        ColorChoice::Auto => anstream::ColorChoice::Auto,
    };
    // Nobody is left to tell if this fails.
    let _ = anstream::AutoStream::new(std::io::stderr(), choice).write_all(text.as_bytes());
}

/// `--color` as far as it can be known before the arguments are parsed: help and usage errors honour it too.
fn color_asked_for(arguments: &[OsString]) -> ColorChoice {
    match option_value(arguments, "--color").as_deref() {
        Some("always") => ColorChoice::Always,
        Some("never") => ColorChoice::Never,
        _ => ColorChoice::Auto,
    }
}

/// The value of `--name VALUE` or `--name=VALUE`, the last one given.
fn option_value(arguments: &[OsString], name: &str) -> Option<String> {
    let texts: Vec<&str> = arguments.iter().map(|argument| argument.to_str().unwrap_or_default()).collect();
    let apart = texts.windows(2).filter(|pair| pair[0] == name).map(|pair| pair[1]);
    let joined = texts.iter().filter_map(|text| text.strip_prefix(name)?.strip_prefix('='));
    apart.chain(joined).last().map(str::to_owned)
}

/// The options of a run of the pipeline.
fn pipeline_options(global: &Global, shapes: &options::Shapes, function: Option<String>) -> pipeline::Options {
    let device = match global.device.as_deref() {
        None => DeviceChoice::First,
        Some("none") => DeviceChoice::None,
        Some("all") => DeviceChoice::All,
        Some(named) => DeviceChoice::Named(named.to_owned()),
    };
    pipeline::Options {
        threads: global.threads.into(),
        timeout: global.timeout,
        seed: global.seed,
        shapes: shapes.shape.clone(),
        assume: Vec::new(),
        device,
        host: global.host.clone(),
        allow_unknown: global.allow_unknown,
        pipeline: Pipeline::default(),
        limits: None,
        record: false,
        function,
    }
}

/// Refuses a `--device` that names no device or several. Succeeds if there is no device at all or the drivers fail,
/// because the reports say so.
///
/// # Errors
/// The named device is not among those that exist.
fn check_device(global: &Global) -> Result<(), Failure> {
    let Some(wanted) = global.device.as_deref().filter(|wanted| !["all", "none"].contains(wanted)) else {
        return Ok(());
    };
    let survey = global.host.survey();
    match survey.select(Some(wanted)) {
        Err(error) if !survey.devices.is_empty() => {
            let failure = Failure::plain("<arguments>", "device", error.to_string());
            Err(failure.with_help("give --device an index or a part of a name, as `tilewright devices` lists them"))
        }
        _ => Ok(()),
    }
}

/// The failure of a command whose pipeline gave no report.
fn pipeline_failure(source: &tilewright_script::Source, fault: pipeline::CheckFault) -> Failure {
    match fault {
        pipeline::CheckFault::Input(diagnostics) => Failure::input(source, diagnostics),
        pipeline::CheckFault::Assumed(fault) => options::assume_failure(&fault.text, fault.faults),
        pipeline::CheckFault::Asked(text, fault) => passes::asked_failure(text, *fault),
        pipeline::CheckFault::Internal(message) => Failure::Internal(message),
    }
}

/// Name and version of the solver.
///
/// # Errors
/// The solver is missing or older than the judge needs.
fn solver() -> Result<String, Failure> {
    match tilewright_verify::solver::z3_version() {
        Ok(version) => Ok(format!("Z3 {version}")),
        Err(error) => Err(Failure::Internal(error.to_string())),
    }
}
