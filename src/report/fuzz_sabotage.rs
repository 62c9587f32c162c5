//! The report of a mutation test: which oracle detected which fault; text, Markdown, and the schema
//! `tilewright.sabotage/1`.

use std::fmt::Write as _;

use serde::Serialize;

use super::fuzz_text::number;
use super::lines::{line, table_rows, verbatim};
use super::text::Style;
use crate::fuzz::campaign::sabotage::{Outcome, Trial};
use crate::json::to_line;

/// The report.
#[derive(Clone, Debug, Serialize)]
pub struct SabotageReport {
    /// `tilewright.sabotage/1`.
    pub schema: &'static str,
    /// Every fault was caught, and neither a decoy nor the control was flagged.
    pub is_complete: bool,
    /// Faults that were caught.
    pub caught: usize,
    /// Faults.
    pub faults: usize,
    /// Decoys that were flagged, and the control if it was.
    pub flagged: usize,
    /// Decoys and the control.
    pub decoys: usize,
    /// Whether it was ended by Ctrl-C.
    pub interrupted: bool,
    /// Seed of all cases.
    pub seed: u64,
    /// How many worker processes there were.
    pub jobs: usize,
    /// How long the test took, in seconds.
    pub seconds: f64,
    /// Failures that occur without a fault. They count neither as caught faults nor as flagged decoys; the control is
    /// flagged by them.
    pub known: Vec<KnownRow>,
    /// One for each fault; the control first.
    pub rows: Vec<SabotageRow>,
}

/// A way to fail without a fault.
#[derive(Clone, Debug, Serialize)]
pub struct KnownRow {
    /// The oracle.
    pub oracle: &'static str,
    /// The failure that it reports.
    pub what: String,
}

/// An oracle whose cases reached the broken place.
#[derive(Clone, Debug, Serialize)]
pub struct LookRow {
    /// The oracle.
    pub oracle: &'static str,
    /// How many cases it looked at.
    pub cases: u64,
    /// How often they reached the place.
    pub reached: u64,
}

/// A fault, a decoy or the control.
#[derive(Clone, Debug, Serialize)]
pub struct SabotageRow {
    /// Its name; `none` is the control.
    pub fault: &'static str,
    /// `control`, `decoy` or `fault`.
    pub kind: &'static str,
    /// The part of the program in which it is.
    pub room: &'static str,
    /// A description of the fault.
    pub summary: &'static str,
    /// `caught` and `missed` for faults; `flagged`, `not flagged` and `not run` for the others.
    pub verdict: &'static str,
    /// The oracle that detected it.
    pub oracle: Option<&'static str>,
    /// The failure that it reports.
    pub what: Option<String>,
    /// The details.
    pub detail: Option<String>,
    /// How many cases of that oracle it took.
    pub oracle_runs: Option<u64>,
    /// How many cases all oracles looked at.
    pub runs: u64,
    /// The oracles that came to the broken place.
    pub looks: Vec<LookRow>,
    /// Seconds until it was detected, including the oracles that were tried before.
    pub seconds: f64,
}

impl SabotageReport {
    /// The report on the trials.
    pub fn new(done: &Outcome, seed: u64, jobs: usize, seconds: f64, interrupted: bool) -> Self {
        let rows: Vec<SabotageRow> = done.trials.iter().map(row).collect();
        let known =
            done.known.iter().map(|catch| KnownRow { oracle: catch.oracle, what: catch.what.clone() }).collect();
        let count = |verdict: &str| rows.iter().filter(|row| row.verdict == verdict).count();
        let faults = rows.iter().filter(|row| row.kind == "fault").count();
        let (caught, flagged) = (count("caught"), count("flagged"));
        Self {
            schema: "tilewright.sabotage/1",
            is_complete: caught == faults && flagged == 0 && count("not run") == 0,
            caught,
            faults,
            flagged,
            decoys: rows.len() - faults,
            interrupted,
            seed,
            jobs,
            seconds: round(seconds),
            known,
            rows,
        }
    }

    /// The document, in one line.
    pub fn to_json(&self) -> String {
        to_line(self)
    }
}

fn round(number: f64) -> f64 {
    (number * 100.0).round() / 100.0
}

fn row(trial: &Trial) -> SabotageRow {
    let caught = trial.caught.as_ref();
    let verdict = match (trial.is_fault(), caught, trial.runs) {
        (true, Some(_), _) => "caught",
        (true, None, _) => "missed",
        (false, Some(_), _) => "flagged",
        (false, None, 0) => "not run",
        (false, None, _) => "not flagged",
    };
    SabotageRow {
        fault: trial.fault.map_or("none", |row| row.name),
        kind: trial.fault.map_or("control", |row| if row.is_decoy { "decoy" } else { "fault" }),
        room: trial.fault.map_or("", |row| row.area.name()),
        summary: trial.fault.map_or("nothing is broken", |row| row.summary),
        verdict,
        oracle: caught.map(|catch| catch.oracle),
        what: caught.map(|catch| catch.what.clone()),
        detail: caught.map(|catch| catch.detail.clone()),
        oracle_runs: caught.map(|catch| catch.runs),
        runs: trial.runs,
        looks: trial.looks().into_iter().map(|(oracle, cases, reached)| LookRow { oracle, cases, reached }).collect(),
        seconds: round(caught.map_or(trial.spent, |catch| catch.after).as_secs_f64()),
    }
}

fn summary(report: &SabotageReport) -> String {
    let mut text = format!(
        "{} of {} faults caught, {} of {} decoys flagged (the control among them), {:.0} s",
        report.caught, report.faults, report.flagged, report.decoys, report.seconds
    );
    let _ = write!(text, ", {} workers, seed {}", report.jobs, report.seed);
    if report.interrupted {
        text.push_str("; interrupted");
    }
    text
}

/// The oracles that reached the broken place of a missed fault.
fn reached(row: &SabotageRow) -> String {
    let look =
        |look: &LookRow| format!("{} ({} times in {} cases)", look.oracle, number(look.reached), number(look.cases));
    let looks: Vec<String> = row.looks.iter().map(look).collect();
    if looks.is_empty() { "no oracle came to it".into() } else { format!("come to by {}", looks.join(", ")) }
}

/// The report for people; ends with a newline.
pub fn text(report: &SabotageReport, style: Style) -> String {
    let mut out = String::new();
    let head = ["fault", "room", "", "oracle", "cases", "seconds", "what is broken"].map(str::to_owned).to_vec();
    let cells = |row: &SabotageRow| {
        let runs = number(row.oracle_runs.unwrap_or(row.runs));
        let seconds = format!("{:.1}", row.seconds);
        vec![
            row.fault.into(),
            row.room.into(),
            row.verdict.into(),
            row.oracle.unwrap_or("").into(),
            runs,
            seconds,
            row.summary.into(),
        ]
    };
    let texts = table_rows(&std::iter::once(head).chain(report.rows.iter().map(cells)).collect::<Vec<_>>(), style);
    for (at, text) in texts.iter().enumerate() {
        let code = match at.checked_sub(1).and_then(|at| report.rows.get(at)).map_or("", |row| row.verdict) {
            "caught" | "not flagged" => "32",
            "" => "2",
            _ => "1;31",
        };
        for row in text.lines() {
            verbatim(&mut out, &style.paint(code, row));
        }
    }
    for row in report.rows.iter().filter(|row| row.verdict == "flagged" || (style.verbose && row.what.is_some())) {
        let what = row.what.as_deref().unwrap_or("").replace(char::is_control, "\u{fffd}");
        line(&mut out, &format!("{}: {}", row.fault, what), style);
    }
    // A fault may be missed because no case reaches it, or because no oracle looks at the result. The remedies differ.
    for row in report.rows.iter().filter(|row| row.verdict == "missed") {
        line(&mut out, &format!("{}: {}", row.fault, reached(row)), style);
    }
    for known in &report.known {
        let what = known.what.replace(char::is_control, "\u{fffd}");
        line(&mut out, &format!("found where nothing is broken: {}: {what}", known.oracle), style);
    }
    out.push('\n');
    let (code, word) = if report.is_complete { ("32", "complete") } else { ("1;31", "incomplete") };
    line(&mut out, &format!("{}: {}", style.paint(code, word), summary(report)), style);
    out
}

/// The report as a page of the documentation; ends with a newline.
pub fn markdown(report: &SabotageReport, command: &str, machine: &str) -> String {
    let mut out = format!(
        "# Sabotage\n\nFaults that are switched on one at a time, and the oracle that sees each first. `cases` are those of that \
         oracle,\n`seconds` the time on one core until then, the oracles before it included. Written by\n\n```\n{command}\n```\n\n{}; \
         {machine}.\n\n| fault | room | what is broken | | oracle | cases | seconds |\n|---|---|---|---|---|---:|---:|\n",
        summary(report)
    );
    for row in &report.rows {
        let name =
            if row.kind == "fault" { format!("`{}`", row.fault) } else { format!("`{}` ({})", row.fault, row.kind) };
        let runs = number(row.oracle_runs.unwrap_or(row.runs));
        let cells =
            [name, row.room.into(), row.summary.into(), row.verdict.into(), row.oracle.unwrap_or("all").into(), runs];
        let cells = cells.map(|cell: String| cell.replace('|', "\\|"));
        let _ = writeln!(out, "| {} | {:.1} |", cells.join(" | "), row.seconds);
    }
    let missed: Vec<&SabotageRow> = report.rows.iter().filter(|row| row.verdict == "missed").collect();
    if !missed.is_empty() {
        out.push_str("\nMissed, and the oracles whose cases ran the broken place:\n\n");
    }
    for row in missed {
        let _ = writeln!(out, "- `{}`: {}", row.fault, reached(row));
    }
    if !report.known.is_empty() {
        out.push_str("\nFound where nothing is broken, and so no catch:\n\n");
    }
    for known in &report.known {
        let _ = writeln!(out, "- `{}`: {}", known.oracle, known.what.replace(char::is_control, " "));
    }
    out
}
