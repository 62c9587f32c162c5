//! An obligation as text: the verdict, the method, and for a refuted one the line of the program that it is about.
//!
//! ```text
//!     refuted  bounds      A[i + 1] in `B[i] = ...`                     evaluation (0.5 ms)
//!              counterexample: `A[i + 1]` is at 8, outside A of shape 8
//!              with i = 7
//!               --> a.py:5:9
//!                |
//!              5 |         B[i] = A[i + 1]
//!                |         ^^^^^^^^^^^^^^^
//! ```

use tilewright_script::{DiagnosticRenderer, Source};
use tilewright_verify::{Counterexample, Place, Report, Side, Verdict};

use super::lines::{hanging, line, verbatim};
use super::text::Style;
use crate::pipeline::outcome::Summary;

/// Columns in front of an obligation's subject.
const SUBJECT_COLUMN: usize = 25;

/// Columns in front of the lines below an obligation.
const BELOW_COLUMN: usize = 13;

/// Columns of a subject that has the method beside it.
const SUBJECT_COLUMNS: usize = 44;

/// Most columns of a subject and a method beside it.
const SUBJECT_AND_METHOD: usize = 60;

/// Columns of a time in milliseconds, with the parentheses around it.
const TIME_COLUMNS: usize = " (999.9 ms)".len();

/// The source texts that obligations point into.
#[derive(Clone, Copy, Debug, Default)]
pub struct Texts<'a> {
    /// The text of the program before a pass, or of the only program.
    pub before: Option<&'a Source>,
    /// The text of the program after the pass.
    pub after: Option<&'a Source>,
}

impl<'a> Texts<'a> {
    /// The texts of programs that all come from one source.
    pub fn one(source: &'a Source) -> Self {
        Self { before: Some(source), after: Some(source) }
    }

    /// The text that a place belongs to.
    pub(super) fn of(self, place: Place) -> Option<&'a Source> {
        match place.side {
            Side::Before => self.before,
            Side::After => self.after,
        }
    }
}

/// Writes one obligation, and the reason or counterexample if it is not proved.
pub(super) fn obligation(out: &mut String, report: &Report, texts: Texts<'_>, style: Style) {
    written(out, report, &report.subject, style);
    if let (Verdict::Refuted(_), Some(place)) = (&report.verdict, report.place)
        && let Some(source) = texts.of(place)
    {
        let columns = style.width.saturating_sub(BELOW_COLUMN).max(1);
        let renderer = DiagnosticRenderer { color: style.color, width: columns, ..DiagnosticRenderer::PLAIN };
        for row in renderer.excerpt(source, place.span).lines() {
            verbatim(out, &format!("{:BELOW_COLUMN$}{row}", ""));
        }
    }
}

/// Writes the obligations of a map whose text stands above them already; a long text is not repeated.
pub(super) fn obligations_of(out: &mut String, map: &str, reports: &[Report], style: Style) {
    let is_long = map.chars().count() > SUBJECT_COLUMNS;
    for report in reports {
        let subject = if is_long && report.subject == map { "the map above" } else { &report.subject };
        written(out, report, subject, style);
    }
}

/// Writes what the proofs take for granted.
pub(super) fn premise_lines(out: &mut String, premises: &[String], style: Style) {
    for premise in premises {
        hanging(out, "  premise: ", premise, 4, style);
    }
}

/// Writes the number of proved obligations: `proved under 2 premises: 7 of 7 obligations proved`.
pub(super) fn proved_line(out: &mut String, reports: &[Report], premises: &[String], style: Style) {
    let proved = reports.iter().filter(|report| report.verdict.is_proved()).count();
    let summary = Summary::of_reports(reports);
    let verdict = style.verdict(summary, 0);
    let under = under(summary, premises.len());
    line(out, &format!("{verdict}{under}: {proved} of {} obligations proved", reports.len()), style);
}

/// ` under 2 premises` after the verdict *proved*; empty after any other verdict.
pub(super) fn under(verdict: Summary, n_premises: usize) -> String {
    match (verdict, n_premises) {
        (Summary::Proved, 1) => " under 1 premise".to_owned(),
        (Summary::Proved, count @ 2..) => format!(" under {count} premises"),
        _ => String::new(),
    }
}

/// Writes an obligation in one line if it fits, else the method below it.
fn written(out: &mut String, report: &Report, subject: &str, style: Style) {
    let verdict = style.verdict(Summary::from(&report.verdict), 8);
    let how = format!("{} ({:.1} ms)", report.method, report.ms);
    let length = subject.chars().count();
    // The colour of the verdict takes no columns.
    let head = format!("    {:<8} {:<11} ", "", report.obligation);
    // The time does not decide the form: it has the same room whatever it is.
    let method = report.method.to_string().chars().count();
    let beside = head.len() + length.max(SUBJECT_COLUMNS) + 1 + method + TIME_COLUMNS;
    let fits = length + method <= SUBJECT_AND_METHOD && beside <= style.width;
    let mut first = String::new();
    let text = if fits { format!("{subject:<SUBJECT_COLUMNS$} {how}") } else { subject.to_owned() };
    if fits {
        verbatim(&mut first, &format!("{head}{text}"));
    } else {
        hanging(&mut first, &head, &text, SUBJECT_COLUMN, style);
    }
    out.push_str(&first.replacen(&" ".repeat(12), &format!("    {verdict}"), 1));
    if !fits {
        below(out, &format!("by {how}"), style);
    }
    if let Some(reason) = report.verdict.reason() {
        below(out, &format!("because {reason}"), style);
    }
    if let Some(counterexample) = report.verdict.counterexample() {
        counterexample_lines(out, counterexample, style);
    }
}

/// Writes a counterexample: its text, and the values of symbols and variables.
fn counterexample_lines(out: &mut String, counterexample: &Counterexample, style: Style) {
    below(out, &format!("counterexample: {}", counterexample.text), style);
    // The text names the indices of a map already.
    let values = if counterexample.indices.is_empty() { counterexample.named_values() } else { Vec::new() };
    let assigned = counterexample.shape.iter().chain(&values);
    let assigned: Vec<_> = assigned.map(|(name, value)| format!("{name} = {value}")).collect();
    if !assigned.is_empty() {
        below(out, &format!("with {}", assigned.join(", ")), style);
    }
}

/// Writes a text below an obligation.
fn below(out: &mut String, text: &str, style: Style) {
    hanging(out, &" ".repeat(BELOW_COLUMN), text, BELOW_COLUMN + 2, style);
}
