//! `tilewright recheck`: checks that a certificate is as it was written, and that solvers answer its goals as it says.

use std::path::{Path, PathBuf};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;

use super::exit::ExitStatus;
use super::failure::Failure;
use super::options::Global;
use super::printer::Printer;
use crate::certificate::MANIFEST;
use crate::certificate::cvc5::Cvc5;
use crate::certificate::recheck::{self, Checker, Damage, GoalRow, Loaded, Outcome, Unloadable};
use crate::json::to_line;
use crate::report::lines::folded;

/// Check a certificate again: its files and hashes, and every goal with Z3 and, where it is installed, cvc5
#[derive(clap::Args, Debug)]
#[command(
    after_help = "Examples:\n  tilewright map 'lambda i: [i // 4, i % 4]' --shape 17 --certificate proof\n  tilewright \
                        recheck proof\n  tilewright recheck proof --solver cvc5 --timeout 60\n\nExit codes: 0 every \
                        solver that was asked agrees on every goal; 1 a file was changed, is missing or is not \
                        listed, or a solver disagrees; 3 a solver gives no answer, or nothing could be asked; 70 a \
                        solver reports an error. cvc5 is the program that TILEWRIGHT_CVC5 names, that of .deps, or \
                        the one on the search path; one that is not there is named, and is no agreement."
)]
pub struct Args {
    /// The folder that --certificate, or `compile`, made
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// Who is asked
    #[arg(long, value_enum, default_value_t = Solvers::All)]
    solver: Solvers,
}

/// Who is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Solvers {
    /// Z3
    Z3,
    /// cvc5
    Cvc5,
    /// Both; cvc5 only where it is installed
    All,
}

/// The document of `--format json`: schema `tilewright.recheck/1`.
#[derive(Debug, Serialize)]
struct Report {
    schema: &'static str,
    directory: String,
    /// `agree`, `unknown`, `disagree`, `damaged` or `error`.
    verdict: &'static str,
    /// The solver that answered when the certificate was written.
    written_with: Option<String>,
    obligations: Obligations,
    damages: Vec<Damage>,
    solvers: Vec<SolverRow>,
    goals: Vec<GoalRow>,
}

/// How many obligations the certificate has.
#[derive(Debug, Default, Serialize)]
struct Obligations {
    /// All obligations.
    total: usize,
    /// Those that were proved.
    proved: usize,
    /// Those that were refuted.
    refuted: usize,
    /// Of the proved ones, those for which no solver was asked when the certificate was written.
    not_confirmed: usize,
    /// Of the proved ones, those without a goal that can be given to a solver.
    without_goal: usize,
}

#[derive(Debug, Serialize)]
/// The answers of one solver, counted. `ms` is the sum of its times in milliseconds.
struct SolverRow {
    name: &'static str,
    version: Option<String>,
    /// The reason why it was not asked, if it was not.
    skipped: Option<String>,
    agree: usize,
    unknown: usize,
    disagree: usize,
    error: usize,
    ms: f64,
}

/// Checks a certificate and prints the result.
///
/// # Errors
/// The folder is not a certificate.
pub fn run(args: &Args, global: &Global, printer: &mut Printer) -> Result<ExitStatus, Failure> {
    let folder = certificate(&args.directory);
    let directory = folder.display().to_string();
    let mut report = Report {
        schema: "tilewright.recheck/1",
        directory: directory.clone(),
        verdict: "damaged",
        written_with: None,
        obligations: Obligations::default(),
        damages: Vec::new(),
        solvers: Vec::new(),
        goals: Vec::new(),
    };
    // Solvers are asked only about an undamaged certificate: answers to other files would say nothing about this proof.
    match recheck::load(&folder) {
        Ok(loaded) => check(&loaded, args.solver, global, &mut report),
        Err(Unloadable::Damaged(damages)) => report.damages = damages,
        Err(Unloadable::NotOne(reason)) => {
            return Err(Failure::plain(directory, "no-certificate", reason)
                .with_help("give the folder that --certificate or `tilewright compile` made"));
        }
    }
    if printer.is_json() {
        printer.json(&to_line(&report))?;
    } else {
        printer.result(&folded(&text(&report), printer.style()))?;
    }
    Ok(match report.verdict {
        "agree" => ExitStatus::Success,
        "unknown" if global.allow_unknown => ExitStatus::Success,
        "unknown" => ExitStatus::Undecided,
        "error" => ExitStatus::Internal,
        _ => ExitStatus::Refuted,
    })
}

/// The folder itself, or the folder `certificate` in one that `compile` wrote.
fn certificate(folder: &Path) -> PathBuf {
    let inner = folder.join("certificate");
    if !folder.join(MANIFEST).exists() && inner.join(MANIFEST).is_file() { inner } else { folder.to_owned() }
}

/// Asks the solvers about every goal and fills the report.
fn check(loaded: &Loaded, solvers: Solvers, global: &Global, report: &mut Report) {
    let checkers = checkers(solvers);
    let bar = ProgressBar::with_draw_target(u64::try_from(loaded.goals.len()).ok(), ProgressDrawTarget::stderr());
    if let Ok(style) = ProgressStyle::with_template("{bar:30} {pos}/{len} goals") {
        bar.set_style(style);
    }
    report.goals = recheck::ask(&loaded.goals, &checkers, global.timeout, || bar.inc(1));
    bar.finish_and_clear();
    let solver = &loaded.manifest.solver;
    report.written_with = Some(format!("{} {}", solver.name, solver.version));
    report.obligations = obligations(loaded);
    report.solvers = checkers.iter().map(|checker| solver_row(checker, &report.goals)).collect();
    report.verdict = verdict(&report.goals, checkers.len(), &report.solvers);
}

/// The solvers to ask. cvc5 that is not installed becomes [`Checker::Missing`], so that the report names it.
fn checkers(solvers: Solvers) -> Vec<Checker> {
    let mut checkers = Vec::new();
    if solvers != Solvers::Cvc5 {
        checkers.push(Checker::Z3);
    }
    if solvers != Solvers::Z3 {
        checkers.push(Cvc5::find().map_or_else(|reason| Checker::Missing("cvc5", reason), Checker::Cvc5));
    }
    checkers
}

/// Counts the obligations of a certificate.
fn obligations(loaded: &Loaded) -> Obligations {
    use crate::pipeline::outcome::Summary;
    let rows = &loaded.manifest.obligations;
    let proved = || rows.iter().filter(|row| row.verdict == Summary::Proved);
    Obligations {
        total: rows.len(),
        proved: proved().count(),
        refuted: rows.iter().filter(|row| row.verdict == Summary::Refuted).count(),
        not_confirmed: proved().filter(|row| !row.confirmed).count(),
        without_goal: proved().filter(|row| row.steps.iter().all(|step| step.file.is_none())).count(),
    }
}

/// Counts the answers of one solver.
fn solver_row(checker: &Checker, goals: &[GoalRow]) -> SolverRow {
    let answers = || goals.iter().flat_map(|goal| &goal.answers).filter(|answer| answer.solver == checker.name());
    let count = |outcome| answers().filter(|answer| answer.outcome == outcome).count();
    let skipped = match checker {
        Checker::Missing(_, reason) => Some(reason.clone()),
        Checker::Z3 | Checker::Cvc5(_) => None,
    };
    SolverRow {
        name: checker.name(),
        version: checker.version(),
        skipped,
        agree: count(Outcome::Agree),
        unknown: count(Outcome::Unknown),
        disagree: count(Outcome::Disagree),
        error: count(Outcome::Error),
        ms: answers().map(|answer| answer.ms).sum(),
    }
}

/// The worst of the answers. Without any answer the verdict is `unknown`: an empty certificate agrees with nothing.
fn verdict(goals: &[GoalRow], asked: usize, solvers: &[SolverRow]) -> &'static str {
    let worst = goals.iter().flat_map(|goal| &goal.answers).map(|answer| answer.outcome).max();
    match worst {
        Some(Outcome::Error) => "error",
        Some(Outcome::Disagree) => "disagree",
        Some(Outcome::Unknown) | None => "unknown",
        Some(Outcome::Agree) if solvers.iter().filter(|solver| solver.skipped.is_some()).count() == asked => "unknown",
        Some(Outcome::Agree) => "agree",
    }
}

/// The report for people: faults first, then the obligations, then a line for each solver.
fn text(report: &Report) -> String {
    let mut lines = vec![format!("certificate {}", report.directory)];
    lines.extend(report.damages.iter().map(|damage| format!("  {}: {}", damage.file, damage.message)));
    // Goals that every solver agrees on are only counted: there may be thousands of them.
    for goal in &report.goals {
        for answer in goal.answers.iter().filter(|answer| answer.outcome != Outcome::Agree) {
            let reason = answer.reason.as_ref().map_or_else(String::new, |reason| format!(" ({reason})"));
            let (file, expected, solver) = (&goal.file, &goal.expected, answer.solver);
            lines.push(format!("  {file}: {solver} answers {}{reason}, expected {expected}", answer.answer));
            lines.push(format!("    goal: {}", goal.goal));
        }
    }
    if let Some(written_with) = &report.written_with {
        let Obligations { total, proved, refuted, not_confirmed, without_goal } = &report.obligations;
        lines.push(format!(
            "  {total} obligations: {proved} proved, {refuted} refuted; written with {written_with}; {} goals",
            report.goals.len()
        ));
        if *not_confirmed > 0 {
            lines.push(format!(
                "  {not_confirmed} were proved without a solver; {without_goal} of them have no goal to give to one"
            ));
        }
    }
    for solver in &report.solvers {
        lines.push(match &solver.skipped {
            Some(reason) => format!("  {}: skipped, {reason}", solver.name),
            None => format!(
                "  {} {}: {} agree, {} unknown, {} disagree, {} errors, {:.0} ms",
                solver.name,
                solver.version.as_deref().unwrap_or("?"),
                solver.agree,
                solver.unknown,
                solver.disagree,
                solver.error,
                solver.ms
            ),
        });
    }
    lines.push(match report.verdict {
        "agree" => "agree: every solver that was asked gives the answers of the certificate".into(),
        "unknown" if report.goals.is_empty() => "unknown: there is no goal to ask a solver about".into(),
        "unknown" => "unknown: not every goal has an answer".into(),
        "disagree" => "DISAGREE: a solver contradicts the certificate".into(),
        "error" => "ERROR: a solver reports an error".into(),
        _ => "DAMAGED: this is not what was written".to_owned(),
    });
    lines.iter().map(|line| printable(line) + "\n").collect()
}

/// A line without control characters. A certificate from elsewhere may hold terminal escape sequences.
fn printable(line: &str) -> String {
    line.replace(char::is_control, "\u{fffd}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hostile_name_forges_no_line() {
        assert_eq!(printable("a\nagree: all\u{1b}[2K"), "a\u{fffd}agree: all\u{fffd}[2K");
    }
}
