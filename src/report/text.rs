//! The report of `check` for people, within the width of the terminal, or 100 columns without one.
//!
//! ```text
//! examples/addone.py: addone
//!   step                       verdict         ms  obligations
//!   lower                      proved         3.1  bounds 2, iteration 1, overflow 2
//!   apply_buffer_transforms    proved         8.4  injective 1, simulation 1, tight 1
//!
//!   buffer  type     logical   physical   separators  flat
//!   A       float32  [3, 8]    [3, 2, 4]  []          [24]
//!
//!   engine           status          compared different max ulp        ms
//!   opencl simplify  agrees                24         0       0       2.5
//!     on 0: pthread (Portable Computing Language)
//! proved: 8 of 8 obligations proved, 1 of 1 engine runs agree (seed 0, Z3 5.4.0)
//! ```

use std::collections::BTreeMap;

use tilewright_ir::Expr;
use tilewright_verify::Report;

use super::check::{Dim, FileReport, reason};
use super::lines::{hanging, line, table};
use super::obligation::{self, Texts, obligation};
use crate::harness::engine::{EngineOutcome, Status};
use crate::pipeline::outcome::{self, BufferOutcome, FunctionOutcome, Setting, StepOutcome, Summary};

/// Options of text output.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    /// Whether ANSI colours are used.
    pub color: bool,
    /// Whether every obligation has a line of its own, not only those that are not proved.
    pub verbose: bool,
    /// Columns of the terminal.
    pub width: usize,
}

impl Default for Style {
    fn default() -> Self {
        Self { color: false, verbose: false, width: Self::WIDTH }
    }
}

impl Style {
    /// The width of text that does not go to a terminal.
    pub const WIDTH: usize = 100;

    /// The text in a colour, if colours are wanted.
    pub(super) fn paint(self, code: &str, text: &str) -> String {
        if self.color { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }

    /// A verdict's word in its colour, padded to `width` columns.
    pub(super) fn verdict(self, verdict: Summary, width: usize) -> String {
        let code = match verdict {
            Summary::Proved => "32",
            Summary::Skipped | Summary::Vacuous | Summary::Unknown => "33",
            Summary::Mismatch | Summary::Refuted => "1;31",
        };
        self.paint(code, &format!("{:<width$}", verdict.word()))
    }

    /// A status in its colour, padded to `width` columns.
    pub(super) fn status(self, status: Status, width: usize) -> String {
        let code = match status {
            Status::Agrees => "32",
            Status::Reference | Status::NotRequested => "2",
            Status::Skipped | Status::Absent => "33",
            Status::Mismatch | Status::Trap | Status::Failed => "1;31",
        };
        self.paint(code, &format!("{:<width$}", status.word()))
    }
}

/// Columns of an engine's figures, with the blanks between its name and them.
const FIGURES: usize = 56;

/// Below this many columns the obligations of a step have lines of their own.
const NARROW: usize = 80;

/// The report of `tilewright check` on one file; ends with a newline.
pub fn check(report: &FileReport<'_>, style: Style) -> String {
    let mut out = String::new();
    let (file, outcome) = (&report.source.name, report.outcome);
    for function in &outcome.functions {
        let title = format!("{file}: {}", function.name);
        line(&mut out, &style.paint("1", &title), style);
        passes(&mut out, &function.steps, Texts::one(report.source), style);
        premises(&mut out, &function.steps, style);
        if !function.buffers.is_empty() {
            out.push('\n');
            buffers(&mut out, &function.buffers, style);
            texture_limits(&mut out, function, style);
        }
        if !function.run.engines.is_empty() {
            out.push('\n');
            engines(&mut out, function, style);
        }
        summary(&mut out, &outcome.setting, function, style);
    }
    if style.verbose && !outcome.functions.is_empty() {
        line(&mut out, &format!("  {:<36} {:>9}", "time beside steps and engines", "ms"), style);
        for (part, ms) in outcome.times() {
            line(&mut out, &format!("  {:<36} {ms:>9.1}", part.word()), style);
        }
    }
    if outcome.functions.is_empty() {
        line(&mut out, &format!("{} nothing in {file} was checked", style.verdict(Summary::Skipped, 0)), style);
    }
    out
}

/// How large textures may be, who says so, and what only the launch can check.
fn texture_limits(out: &mut String, function: &FunctionOutcome, style: Style) {
    let Some(chosen) = &function.texture_limits else { return };
    let (width, height) = (chosen.limits.width, chosen.limits.height);
    line(out, &format!("  textures: at most {width} wide and {height} high, by {}", chosen.from), style);
    if !chosen.checked_at_launch.is_empty() {
        line(
            out,
            &format!("    the launch checks the symbolic extents of {}", chosen.checked_at_launch.join(", ")),
            style,
        );
    }
}

/// The table of the steps of one function, with what their proofs take for granted; ends with a newline.
pub fn steps(title: &str, steps: &[StepOutcome], texts: Texts<'_>, style: Style) -> String {
    let mut out = String::new();
    line(&mut out, &style.paint("1", title), style);
    passes(&mut out, steps, texts, style);
    premises(&mut out, steps, style);
    out
}

/// Writes the table of steps, each with the obligations that are not proved below it.
pub(super) fn passes(out: &mut String, steps: &[StepOutcome], texts: Texts<'_>, style: Style) {
    let last = if style.width >= NARROW { "obligations" } else { "" };
    line(out, &format!("  {:<26} {:<9} {:>9}  {last}", "step", "verdict", "ms"), style);
    for step in steps {
        let said = step.blocked.as_ref().map_or_else(|| counts(&step.reports), ToString::to_string);
        let empty = step.blocked.is_none() && step.reports.is_empty();
        let verdict = if empty { format!("{:<9}", "-") } else { style.verdict(step.summary(), 9) };
        let head = format!("  {:<26} {verdict} {:>9.1}", step.name, step.ms);
        if style.width >= NARROW {
            hanging(out, &format!("{head}  "), &said, 49, style);
        } else {
            line(out, &head, style);
            hanging(out, "      ", &said, 6, style);
        }
        for report in &step.reports {
            if style.verbose || !report.verdict.is_proved() {
                obligation(out, report, texts, style);
            }
        }
    }
}

/// Writes what the proofs take for granted.
pub(super) fn premises(out: &mut String, steps: &[StepOutcome], style: Style) {
    for premise in outcome::premises(steps) {
        hanging(out, "  premise: ", &premise.to_string(), 4, style);
    }
}

/// `proved under 2 premises`, or the verdict alone.
pub(super) fn under(verdict: Summary, steps: &[StepOutcome]) -> String {
    obligation::under(verdict, outcome::premises(steps).len())
}

/// The number of obligations of each kind: `bounds 6, injective 2`.
fn counts(reports: &[Report]) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for report in reports {
        *counts.entry(report.obligation.id()).or_default() += 1;
    }
    let each: Vec<_> = counts.iter().map(|(name, count)| format!("{name} {count}")).collect();
    if each.is_empty() { "nothing to prove".to_owned() } else { each.join(", ") }
}

/// `[16, n]`.
pub(super) fn shape(dims: &[Dim]) -> String {
    let dims: Vec<_> = dims.iter().map(Dim::to_string).collect();
    format!("[{}]", dims.join(", "))
}

fn buffers(out: &mut String, buffers: &[BufferOutcome], style: Style) {
    let head = ["buffer", "type", "logical", "physical", "separators", "flat"].map(str::to_owned).to_vec();
    let extents = |extents: &[Expr]| shape(&Dim::shape(extents));
    let row = |buffer: &BufferOutcome| {
        vec![
            buffer.logical.name.clone(),
            buffer.logical.dtype.to_string(),
            extents(&buffer.logical.shape),
            extents(&buffer.physical.shape),
            format!("{:?}", buffer.physical.axis_separators.positions()),
            buffer.flat.as_ref().map_or_else(|| "-".to_owned(), |flat| extents(&flat.shape)),
        ]
    };
    let rows: Vec<_> = std::iter::once(head).chain(buffers.iter().map(row)).collect();
    table(out, &rows, style);
}

/// Writes the table of runs, then the stage to blame and notes.
fn engines(out: &mut String, function: &FunctionOutcome, style: Style) {
    let run = &function.run;
    if !run.symbols.is_empty() {
        let shapes: Vec<_> = run.symbols.iter().map(|(name, value)| format!("{name} = {value}")).collect();
        line(out, &format!("  run with {}", shapes.join(", ")), style);
    }
    let widest = run.engines.iter().map(|row| engine_name(row).chars().count()).max().unwrap_or(0).max(6);
    // If the names leave no room for the figures, the figures stand below the names.
    let beside = widest + FIGURES <= style.width;
    let width = if beside { widest } else { 0 };
    let head = format!("{:<13} {:>10} {:>9} {:>7} {:>9}", "status", "compared", "different", "max ulp", "ms");
    let name = |name: &str| format!("  {name:<width$}  ");
    if !beside {
        line(out, "  engine", style);
    }
    line(out, &format!("{}{head}", name(if beside { "engine" } else { "" })), style);
    for row in &run.engines {
        let own = engine_name(row);
        if !beside {
            line(out, &format!("  {own}"), style);
        }
        line(out, &format!("{}{}", name(if beside { &own } else { "" }), engine(row, style)), style);
        if let Some(device) = &row.device {
            line(out, &format!("    on {device}"), style);
        }
        let shown = !row.status.is_ok() || style.verbose;
        for said in reason(row).iter().filter(|_| shown).flat_map(|reason| reason.lines()) {
            hanging(out, "    ", said, 4, style);
        }
    }
    if let Some(blame) = &run.blame {
        line(out, &format!("  the first stage that went wrong is {blame}"), style);
    }
    for note in &run.notes {
        hanging(out, "  note: ", note, 8, style);
    }
}

/// `interpreter flatten_buffer`.
fn engine_name(row: &EngineOutcome) -> String {
    row.stage.as_ref().map_or_else(|| row.engine.clone(), |stage| format!("{} {stage}", row.engine))
}

/// The figures of a run. Those that mean nothing for its status are `-`.
fn engine(row: &EngineOutcome, style: Style) -> String {
    let status = style.status(row.status, 13);
    let ms = format!("{:.1}", row.ms);
    let far = if row.max_ulp == u64::MAX { "far".to_owned() } else { row.max_ulp.to_string() };
    let [compared, mismatches, far, ms] = match row.status {
        Status::Agrees | Status::Mismatch => [row.compared.to_string(), row.mismatches.to_string(), far, ms],
        Status::Reference => ["-".into(), "-".into(), "-".into(), ms],
        Status::Trap | Status::Failed | Status::Skipped | Status::Absent | Status::NotRequested => {
            ["-", "-", "-", "-"].map(str::to_owned)
        }
    };
    format!("{status} {compared:>10} {mismatches:>9} {far:>7} {ms:>9}")
}

/// Writes the last line of a function: verdict, and how many obligations and runs are fine.
fn summary(out: &mut String, setting: &Setting, function: &FunctionOutcome, style: Style) {
    let verdict = function.summary();
    let engines = &function.run.engines;
    let agree = engines.iter().filter(|row| row.status == Status::Agrees).count();
    let ran = engines.iter().filter(|row| row.summary().is_some()).count();
    let proved = function.reports().filter(|report| report.verdict.is_proved()).count();
    let count = function.reports().count();
    let mut said = format!("{proved} of {count} obligations proved, {agree} of {ran} engine runs agree");
    if engines.is_empty() {
        said.push_str(", nothing was run");
    } else if engines.iter().any(|row| row.status == Status::NotRequested) {
        said.push_str(", OpenCL not run as asked");
    }
    if setting.allow_unknown && verdict != Summary::Proved {
        said.push_str("; --allow-unknown was given");
    }
    let said = format!("{said} (seed {}, {})", setting.seed, setting.solver);
    let mut text = String::new();
    let under = under(verdict, &function.steps);
    hanging(&mut text, &format!("{}{under}: ", verdict.word()), &said, 2, style);
    out.push_str(&text.replacen(verdict.word(), &style.verdict(verdict, 0), 1));
}

#[cfg(test)]
mod tests {
    use tilewright_verify::{Counterexample, Reason, ReasonKind, Verdict};

    use super::super::check::tests::{file, proved, source};
    use super::*;
    use crate::pipeline::outcome::CheckOutcome;

    fn text_of(outcome: &CheckOutcome, style: Style) -> String {
        check(&FileReport { source: &source(), outcome }, style)
    }

    #[test]
    fn a_proved_report_reads_in_a_hundred_columns() {
        let text = text_of(&file(vec![proved()]), Style::default());
        assert_eq!(
            text,
            "\
a.py: main
  step                       verdict          ms  obligations
  apply_buffer_transforms    proved          1.5  injective 1

  buffer  type     logical  physical  separators  flat
  B       float32  [3, n]   [n, 3]    [1]         [n, 3]

  run with n = 7
  engine           status          compared different max ulp        ms
  opencl simplify  agrees                21         0       0       2.5
    on 0: pthread (Portable Computing Language)
proved: 1 of 1 obligations proved, 1 of 1 engine runs agree (seed 0, Z3 5.4.0)
"
        );
        assert!(text.lines().all(|line| line.chars().count() <= 100));
    }

    #[test]
    fn a_refuted_obligation_shows_its_counterexample() {
        let mut report = proved();
        report.steps[0].reports[0].verdict = Verdict::Refuted(Counterexample {
            shape: vec![("n".into(), 4)],
            indices: vec![vec![0, 2], vec![1, 0]],
            assignments: Vec::new(),
            text: "(0, 2) and (1, 0) both land on (2)".into(),
        });
        let text = text_of(&file(vec![report]), Style::default());
        assert!(text.contains("counterexample: (0, 2) and (1, 0) both land on (2)\n"), "{text}");
        assert!(text.contains("with n = 4\n"), "{text}");
        assert!(text.contains("\nrefuted: 0 of 1 obligations proved"), "{text}");
    }

    #[test]
    fn what_was_skipped_or_allowed_is_said() {
        let mut report = proved();
        report.run.engines[0].status = Status::Skipped;
        report.run.engines[0].detail = "no OpenCL device".into();
        report.steps[0].reports[0].verdict = Verdict::Unknown(Reason::new(ReasonKind::Timeout, "timeout after 2 s"));
        let mut file = file(vec![report]);
        file.setting.allow_unknown = true;
        let text = text_of(&file, Style::default());
        for said in ["no OpenCL device", "because timeout after 2 s", "--allow-unknown was given", "unknown: 0 of 1"] {
            assert!(text.contains(said), "{said}: {text}");
        }
        assert!(text_of(&super::super::check::tests::file(vec![]), Style::default()).contains("nothing in a.py"));
    }

    #[test]
    fn colour_is_only_where_it_is_asked_for() {
        let outcome = file(vec![proved()]);
        assert!(!text_of(&outcome, Style::default()).contains('\u{1b}'));
        assert!(
            text_of(&outcome, Style { color: true, verbose: true, ..Style::default() }).contains("\u{1b}[32mproved")
        );
    }
}
