//! `tilewright fuzz`: a campaign over generated cases, or with `--sabotage` a mutation test of the oracles.
//!
//! The campaign itself is in the crate `tilewright-campaign`; this file reads the options, counts Ctrl-C, shows progress
//! and prints the report.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tilewright_script::nearest;

use super::exit::ExitStatus;
use super::failure::Failure;
use super::options::{Global, whole};
use super::printer::Printer;
use crate::fuzz::campaign::files::{quoted, write_whole};
use crate::fuzz::campaign::link::Launch;
use crate::fuzz::campaign::{self, Plan, Standing};
use crate::fuzz::oracles::{Entry, ORACLES, by_name};
use crate::pipeline::DeviceChoice;
use crate::report::fuzz::FuzzReport;
use crate::report::fuzz_text;

/// The folder of findings, unless `--out` names another.
const FINDINGS: &str = "fuzz-findings";

/// Try everything on generated programs, layouts and graphs, and write down what does not hold
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  tilewright fuzz                                   # a minute, every oracle, every device, all cores
  tilewright fuzz --minutes 30 --seed 7 --out night
  tilewright fuzz --oracle passes --oracle order --runs 1000 --device none
  tilewright replay fuzz-findings/*.json

A campaign depends on its seed alone: case 17 of an oracle is the same on every machine. Cases run in worker processes; one \
that ends or hangs is a finding, and another takes its place. Ctrl-C ends a campaign with a report, twice ends it at once.

Exit codes: 0 nothing was found; 1 something was; 2 bad usage, or files that cannot be written; 3 the campaign was interrupted, or an oracle that was named did not hold \
on a single case, for example because it cannot be had here.")]
pub struct Args {
    /// How long; 1 if neither this nor --runs is given
    #[arg(long, value_name = "M", value_parser = parse_minutes, allow_hyphen_values = true)]
    minutes: Option<Duration>,
    /// Most cases of each oracle
    #[arg(long, value_name = "N", value_parser = parse_runs, allow_hyphen_values = true)]
    runs: Option<u64>,
    /// Which oracle, and not all of them; may be given several times
    #[arg(long = "oracle", value_name = "NAME", value_parser = parse_oracle)]
    oracles: Vec<&'static str>,
    /// Worker processes; 0 means one a core
    #[arg(long, value_name = "J", default_value_t = 0, value_parser = parse_jobs, allow_hyphen_values = true)]
    jobs: u16,
    /// Folder of findings and of the report; `fuzz-findings` if not given, and then only if there is a finding
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Switch these faults on one after the other (names or parts, with commas between them, or `all`), and measure which oracle sees each;
    /// in a program that was built with --features sabotage
    #[arg(long, value_name = "NAME", conflicts_with_all = ["runs", "out"])]
    sabotage: Option<String>,
    /// With --sabotage: write the table to this file
    #[arg(long, value_name = "FILE.md", requires = "sabotage")]
    markdown: Option<PathBuf>,
    /// Seconds without a word after which a worker hangs
    #[arg(long, value_name = "SECONDS", default_value_t = 60, hide = true, value_parser = clap::value_parser!(u16).range(1..))]
    patience: u16,
    /// Most memory of a worker, in MiB
    #[arg(long, value_name = "MIB", default_value_t = 4096, hide = true, value_parser = clap::value_parser!(u32).range(64..))]
    memory: u32,
}

/// Reads a number of minutes, from a tenth of a second to a week.
fn parse_minutes(text: &str) -> Result<Duration, String> {
    let minutes: f64 = text.parse().map_err(|_| "expected a number of minutes, such as 30 or 0.5".to_owned())?;
    // 10080 minutes are a week; 0.0015 minutes are about a tenth of a second.
    if (0.0015..=10080.0).contains(&minutes) {
        Ok(Duration::from_secs_f64(minutes * 60.0))
    } else {
        Err("expected at least 0.0015 and at most 10080 minutes".into())
    }
}

fn parse_runs(text: &str) -> Result<u64, String> {
    whole(text, 1..=u64::MAX)
}

fn parse_jobs(text: &str) -> Result<u16, String> {
    whole(text, 0..=256)
}

fn parse_oracle(text: &str) -> Result<&'static str, String> {
    let names = || ORACLES.iter().map(|entry| entry.name);
    let unknown = || match nearest(text, names()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("the oracles are {}", names().collect::<Vec<_>>().join(", ")),
    };
    by_name(text).map(|entry: &Entry| entry.name).ok_or_else(unknown)
}

/// The devices on which kernels run: all of them, unless `--device` says otherwise.
pub(super) fn devices(global: &Global) -> DeviceChoice {
    match global.device.as_deref() {
        None | Some("all") => DeviceChoice::All,
        Some("none") => DeviceChoice::None,
        Some(named) => DeviceChoice::Named(named.to_owned()),
    }
}

/// How workers are started: this program as `fuzz-worker`, with the same device.
///
/// # Errors
/// The system does not say where this program is.
pub(super) fn launch(global: &Global, patience: Duration, memory: u64) -> Result<Launch, Failure> {
    let program = std::env::current_exe()
        .map_err(|error| Failure::Internal(format!("cannot find this program to start workers: {error}")))?;
    let mut arguments = vec!["fuzz-worker".to_owned(), "--threads".into(), "1".into()];
    if let Some(device) = &global.device {
        arguments.push(format!("--device={device}"));
    }
    Ok(Launch { program, arguments, patience, memory })
}

/// The number of times that Ctrl-C was pressed.
static INTERRUPTS: AtomicU8 = AtomicU8::new(0);

/// Counts Ctrl-C from now on. The second one ends the process with 130 (128 + SIGINT); workers end when their input
/// does.
fn count_interrupts() -> Result<(), Failure> {
    let count = || {
        if INTERRUPTS.fetch_add(1, Ordering::SeqCst) > 0 {
            std::process::exit(130);
        }
    };
    ctrlc::set_handler(count).map_err(|error| Failure::Internal(format!("cannot listen to Ctrl-C: {error}")))
}

/// Whether Ctrl-C was pressed.
fn interrupted() -> bool {
    INTERRUPTS.load(Ordering::SeqCst) > 0
}

/// Runs a campaign and prints its report.
///
/// # Errors
/// The folder of findings cannot be written, or no worker can be started.
pub fn run(args: &Args, global: &Global, printer: &mut Printer) -> Result<ExitStatus, Failure> {
    // clap waives `requires` where an option is given that `--sabotage` conflicts with, such as --runs.
    if args.markdown.is_some() && args.sabotage.is_none() {
        let failure = Failure::plain("<arguments>", "usage", "--markdown writes the table of --sabotage");
        return Err(failure.with_help("give --sabotage as well, or leave --markdown out"));
    }
    super::check_device(global)?;
    let plan = plan(args, global)?;
    count_interrupts()?;
    if let Some(name) = &args.sabotage {
        return super::fuzz_sabotage::run(name, args.markdown.as_ref(), args.minutes, &plan, &interrupted, printer);
    }
    let bar = bar(&plan);
    let standing =
        campaign::run(&plan, &interrupted, &mut |standing| show(&bar, standing)).map_err(Failure::Internal)?;
    bar.finish_and_clear();
    let mut report = FuzzReport::new(&plan, &standing, !args.oracles.is_empty());
    if args.out.is_some() || !report.findings.is_empty() {
        let path = plan.out.join("report.json");
        if let Err(error) = write_whole(&path, &(report.to_json() + "\n")) {
            report.faults.push(format!("cannot write {}: {error}", path.display()));
            report.n_unwritten += 1;
        }
    }
    if printer.is_json() {
        printer.json(&report.to_json())?;
    } else {
        printer.result(&fuzz_text::fuzz(&report, printer.style()))?;
    }
    Ok(match report.verdict {
        "failed" => ExitStatus::Refuted,
        _ if report.faults.len() > report.n_unwritten => ExitStatus::Internal,
        _ if report.n_unwritten > 0 => ExitStatus::Usage,
        // What was not tried any more is not allowed by --allow-unknown.
        _ if report.interrupted => ExitStatus::Undecided,
        "held" => ExitStatus::Success,
        _ if global.allow_unknown => ExitStatus::Success,
        _ => ExitStatus::Undecided,
    })
}

/// The plan of the campaign: oracles without repetitions, limits on time and cases, workers, folder.
fn plan(args: &Args, global: &Global) -> Result<Plan, Failure> {
    if let Some(out) = &args.out {
        make_folder(out)?;
    }
    let mut oracles = args.oracles.clone();
    if oracles.is_empty() {
        oracles = ORACLES.iter().map(|entry| entry.name).collect();
    }
    // A name that is given twice is one oracle.
    let mut seen = std::collections::BTreeSet::new();
    oracles.retain(|name| seen.insert(*name));
    let minute = Duration::from_mins(1);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let memory = u64::from(args.memory) << 20;
    Ok(Plan {
        oracles,
        seed: global.seed,
        duration: args.minutes.or_else(|| args.runs.is_none().then_some(minute)),
        runs: args.runs,
        jobs: if args.jobs == 0 { cores } else { args.jobs.into() },
        launch: launch(global, Duration::from_secs(args.patience.into()), memory)?,
        out: args.out.clone().unwrap_or_else(|| FINDINGS.into()),
        replay_options: global.device.as_ref().map_or_else(String::new, |id| format!(" --device {}", quoted(id))),
    })
}

/// Makes the folder of findings and tries to write to it, so that a campaign does not fail at its end.
fn make_folder(folder: &Path) -> Result<(), Failure> {
    let probe = folder.join(format!(".tilewright.{}", std::process::id()));
    let tried = std::fs::create_dir_all(folder)
        // A full disk takes a file without contents.
        .and_then(|()| std::fs::write(&probe, "\n").inspect_err(|_| drop(std::fs::remove_file(&probe))))
        .and_then(|()| std::fs::remove_file(&probe));
    tried.map_err(|error| {
        let name = folder.display().to_string();
        Failure::plain(&name, "cannot-write", format!("cannot write to {name}: {error}"))
            .with_help("give a folder with --out")
    })
}

/// The progress bar: of the time, or a spinner if only the number of cases is limited.
fn bar(plan: &Plan) -> ProgressBar {
    let length = plan.duration.map(|duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX));
    let bar = ProgressBar::with_draw_target(length, ProgressDrawTarget::stderr());
    let template = if length.is_some() { "{bar:20} {elapsed} {msg}" } else { "{spinner} {elapsed} {msg}" };
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar
}

/// Shows cases, cases a second, the share of valid ones, coverage and findings.
fn show(bar: &ProgressBar, standing: &Standing) {
    let runs: u64 = standing.lanes.iter().map(|lane| lane.tally.runs).sum();
    let invalid: u64 = standing.lanes.iter().flat_map(|lane| lane.tally.invalid.values()).sum();
    let seen = |kind: &str| {
        let all = standing.lanes.iter().flat_map(|lane| lane.tally.coverage.keys());
        all.filter(|feature| feature.starts_with(kind)).collect::<std::collections::BTreeSet<_>>().len()
    };
    #[expect(clippy::cast_precision_loss, reason = "figures for people")]
    let (rate, valid) =
        (runs as f64 / standing.elapsed.as_secs_f64().max(0.001), 100.0 * (1.0 - invalid as f64 / runs.max(1) as f64));
    let found = match (standing.found.len(), standing.interrupted) {
        (n, false) => format!("{n} found"),
        (n, true) => format!("{n} found, ending"),
    };
    bar.set_position(u64::try_from(standing.elapsed.as_millis()).unwrap_or(u64::MAX));
    let (ops, passes) = (seen("op:"), seen("pass:"));
    bar.set_message(format!("{runs} cases, {rate:.0}/s, {valid:.1} % valid, {ops} ops, {passes} passes, {found}"));
}
