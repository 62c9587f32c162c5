//! `tilewright replay`: runs the cases of findings again, each in a process of its own.

use std::time::Duration;

use serde::Serialize;

use super::exit::ExitStatus;
use super::failure::Failure;
use super::input::{Input, Kind};
use super::options::Global;
use super::printer::Printer;
use crate::fuzz::campaign::link::{Launch, Lost, WorkerLink};
use crate::fuzz::campaign::protocol::{Reply, Request};
use crate::fuzz::finding::Finding;
use crate::fuzz::oracle::{Failure as Wrong, Outcome};
use crate::json::to_line;
use crate::report::fuzz_text;

/// Look at the cases of findings again, each in a process of its own
#[derive(clap::Args, Debug)]
#[command(after_help = "Example:
  tilewright replay fuzz-findings/*.json

Exit codes: 0 every case holds now; 1 one still fails, in the same way or another; 2 a file is no finding; 3 a case is none \
any more, could not be decided, or its oracle cannot be had here.")]
pub struct Args {
    /// Files that `tilewright fuzz` wrote; `-` reads standard input
    #[arg(value_name = "FILE", required = true)]
    files: Vec<String>,
    /// Seconds after which the process hangs
    #[arg(long, value_name = "SECONDS", default_value_t = 60, hide = true, value_parser = clap::value_parser!(u16).range(1..))]
    patience: u16,
    /// Most memory of the process, in MiB
    #[arg(long, value_name = "MIB", default_value_t = 4096, hide = true, value_parser = clap::value_parser!(u32).range(64..))]
    memory: u32,
}

/// The result for one file; the document of `--format json`: schema `tilewright.replay/1`.
#[derive(Debug, Serialize)]
struct Report {
    schema: &'static str,
    file: String,
    oracle: String,
    /// `held`, `failed`, `invalid`, `undecided` or `skipped`.
    verdict: &'static str,
    /// The failure, or the reason why the case has no result.
    what: String,
    detail: String,
    /// The failure when the file was written.
    expected: String,
}

/// Runs the case of each file again.
///
/// # Errors
/// A file is not a finding (reported before any case is run), or no process can be started.
pub fn run(args: &Args, global: &Global, printer: &mut Printer) -> Result<ExitStatus, Failure> {
    super::check_device(global)?;
    let patience = Duration::from_secs(args.patience.into());
    let launch = super::fuzz::launch(global, patience, u64::from(args.memory) << 20)?;
    let findings = args.files.iter().map(|file| read(file)).collect::<Result<Vec<_>, _>>()?;
    let mut worst = ExitStatus::Success;
    for (file, finding) in findings {
        let report = report(file, &finding, look(&launch, &finding)?);
        worst = worst.max(match report.verdict {
            "held" => ExitStatus::Success,
            "failed" => ExitStatus::Refuted,
            _ if global.allow_unknown => ExitStatus::Success,
            _ => ExitStatus::Undecided,
        });
        if printer.is_json() {
            printer.json(&to_line(&report))?;
        } else {
            printer.result(&fuzz_text::replayed(
                [&report.file, &report.oracle, report.verdict, &report.what, &report.detail, &report.expected],
                printer.style(),
            ))?;
        }
    }
    Ok(worst)
}

/// The finding in a file, and the file's name.
fn read(file: &str) -> Result<(String, Finding), Failure> {
    let source = Input::read_as(file, Kind::Finding)?.source;
    match Finding::read(&source.text) {
        Ok(finding) => Ok((source.name, finding)),
        Err(diagnostic) => Err(Failure::input(&source, vec![*diagnostic])),
    }
}

/// Runs the case in a new process. A process that ends or hangs is a failure of the case, as in a campaign.
fn look(launch: &Launch, finding: &Finding) -> Result<Reply, Failure> {
    let mut link = WorkerLink::start(launch)
        .map_err(|error| Failure::Internal(format!("cannot start a process for the case: {error}")))?;
    let request = Request::Replay { oracle: finding.oracle.clone(), case: finding.case.clone() };
    match link.ask(&request, &|| false, &mut |_| {}) {
        Ok(reply) => Ok(reply),
        Err(Lost::Worker(failure)) => Ok(Reply::Outcome(Outcome::Failed(failure))),
        Err(Lost::Stopped) => unreachable!("nobody stops it"),
    }
}

/// The result of one file.
fn report(file: String, finding: &Finding, reply: Reply) -> Report {
    let (verdict, what, detail) = match reply {
        Reply::Outcome(Outcome::Held) => ("held", String::new(), String::new()),
        Reply::Outcome(Outcome::Failed(Wrong { what, detail })) => ("failed", what, detail),
        Reply::Outcome(Outcome::Invalid(why)) => ("invalid", why, String::new()),
        Reply::Outcome(Outcome::Undecided(why)) => ("undecided", why, String::new()),
        Reply::Skipped { why } => ("skipped", why, String::new()),
        Reply::Refused { why } => ("invalid", why, String::new()),
        _ => ("skipped", "the process gives an answer that makes no sense".to_owned(), String::new()),
    };
    Report {
        schema: "tilewright.replay/1",
        file,
        oracle: finding.oracle.clone(),
        verdict,
        what,
        detail,
        expected: finding.failure.what.clone(),
    }
}
