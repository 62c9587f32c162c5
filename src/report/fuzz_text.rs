//! The report of a campaign for people, in 100 columns.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::fuzz::{FindingRow, FuzzReport, OracleRow};
use super::lines::{hanging, line, table_rows, verbatim};
use super::text::Style;

/// Most reasons of a kind, unless all are wanted.
const MAX_REASONS: usize = 3;
/// Most lines of a case's text that are shown without `--verbose`.
const MAX_LINES: usize = 24;

/// The report; ends with a newline.
pub fn fuzz(report: &FuzzReport, style: Style) -> String {
    let mut out = String::new();
    let machine = &report.machine;
    let title = format!("fuzz: seed {}, {} workers, {:.1} s", report.seed, report.jobs, report.seconds);
    line(&mut out, &style.paint("1", &title), style);
    line(&mut out, &format!("  tilewright {}, {}", machine.tilewright, machine.solver), style);
    line(&mut out, &format!("  {}, {} cores", machine.system, machine.cores), style);
    for device in &machine.devices {
        line(&mut out, &format!("  {device}"), style);
    }
    out.push('\n');
    // The verdict is the last line, because a terminal shows the end of a long report.
    oracles(&mut out, &report.oracles, style);
    if !report.rates.is_empty() {
        out.push('\n');
    }
    for row in &report.rates {
        let text =
            format!("  {} {} a second of a core ({} in all)", rate(row.per_second), row.what, number(row.number));
        line(&mut out, &text, style);
    }
    for row in &report.oracles {
        reasons(&mut out, row, style);
    }
    if !report.coverage.is_empty() {
        out.push('\n');
        coverage(&mut out, report, style);
    }
    for finding in &report.findings {
        out.push('\n');
        self::finding(&mut out, finding, style);
    }
    for fault in &report.faults {
        line(&mut out, &format!("warning: {fault}"), style);
    }
    out.push('\n');
    line(&mut out, &summary(report, style), style);
    out
}

/// Writes the table of the oracles.
fn oracles(out: &mut String, rows: &[OracleRow], style: Style) {
    let head = ["oracle", "", "cases", "cases/s", "valid", "undecided", "found", "seconds"].map(str::to_owned).to_vec();
    let cells = |row: &OracleRow| {
        let mut cells = vec![row.oracle.clone(), row.verdict.to_owned()];
        if row.runs > 0 {
            cells.extend([
                number(row.runs),
                rate(row.per_second),
                format!("{:.1} %", row.valid_percent),
                format!("{:.1} %", row.undecided_percent),
                row.findings.to_string(),
                format!("{:.1}", row.seconds),
            ]);
        }
        cells
    };
    let texts = table_rows(&std::iter::once(head).chain(rows.iter().map(cells)).collect::<Vec<_>>(), style);
    for (at, text) in texts.iter().enumerate() {
        let code = match at.checked_sub(1).and_then(|at| rows.get(at)).map_or("", |row| row.verdict) {
            "held" => "32",
            "failed" => "1;31",
            "" => "2",
            _ => "33",
        };
        for row in text.lines() {
            verbatim(out, &style.paint(code, row));
        }
    }
}

/// Writes the reasons why cases were invalid or undecided, and why an oracle did not run.
fn reasons(out: &mut String, row: &OracleRow, style: Style) {
    if let Some(why) = &row.skipped {
        line(out, &format!("  {}: skipped: {}", row.oracle, printable(why)), style);
    }
    if row.given_up > 0 {
        line(out, &format!("  {}: {} cases were begun and not finished at the end", row.oracle, row.given_up), style);
    }
    for (what, reasons) in [("invalid", &row.invalid), ("undecided", &row.undecided)] {
        let mut reasons: Vec<_> = reasons.iter().collect();
        reasons.sort_by_key(|(_, number)| std::cmp::Reverse(**number));
        let most = if style.verbose { reasons.len() } else { MAX_REASONS };
        for (reason, times) in reasons.iter().take(most) {
            line(out, &format!("  {}: {what} {}: {}", row.oracle, number(**times), printable(reason)), style);
        }
        if reasons.len() > most {
            let more = reasons.len() - most;
            line(out, &format!("  {}: {what} for {more} more reasons, which --verbose shows", row.oracle), style);
        }
    }
    if style.verbose {
        for (what, times) in &row.counts {
            line(out, &format!("  {}: {what}: {}", row.oracle, number(*times)), style);
        }
    }
}

fn coverage(out: &mut String, report: &FuzzReport, style: Style) {
    for (kind, seen) in &report.coverage {
        seen_of(out, kind, seen, style);
    }
    if !report.passes_not_covered.is_empty() {
        line(out, &format!("  passes that changed no program: {}", report.passes_not_covered.join(", ")), style);
    }
}

/// `op: fuse 120, pad 80`.
fn seen_of(out: &mut String, kind: &str, seen: &BTreeMap<String, u64>, style: Style) {
    let items: Vec<_> = seen.iter().map(|(name, times)| format!("{} {}", printable(name), number(*times))).collect();
    hanging(out, &format!("  {kind:<6} "), &items.join(", "), 9, style);
}

fn finding(out: &mut String, finding: &FindingRow, style: Style) {
    let title = format!("{}: {}", finding.oracle, printable(&finding.what));
    line(out, &style.paint("1;31", &title), style);
    indented(out, &finding.detail, style);
    indented(out, &finding.text, style);
    match &finding.file {
        Some(file) => line(out, &format!("  file: {file}"), style),
        None => line(out, "  not written", style),
    }
}

fn indented(out: &mut String, text: &str, style: Style) {
    let lines: Vec<&str> = text.lines().collect();
    let most = if style.verbose { lines.len() } else { MAX_LINES };
    for text in lines.iter().take(most) {
        // The text of a case: its lines mean something.
        verbatim(out, &format!("  {}", printable(text)));
    }
    if lines.len() > most {
        line(out, &format!("  ... and {} more lines", lines.len() - most), style);
    }
}

fn summary(report: &FuzzReport, style: Style) -> String {
    let runs: u64 = report.oracles.iter().map(|row| row.runs).sum();
    let held = report.oracles.iter().filter(|row| row.verdict == "held").count();
    let (code, found) = match (report.verdict, report.findings.len()) {
        ("held", _) => ("32", String::from("nothing found")),
        ("incomplete", _) => ("33", String::from("nothing found, and not everything that was asked for was looked at")),
        (_, 1) => ("1;31", String::from("1 finding")),
        (_, n) => ("1;31", format!("{n} findings")),
    };
    let mut text = format!("{}: {found}; {} cases, ", style.paint(code, report.verdict), number(runs));
    let _ = write!(text, "{held} of {} oracles held", report.oracles.len());
    if report.interrupted {
        text.push_str("; interrupted");
    }
    text
}

/// The report of `tilewright replay` on one finding. The texts are its file, oracle, verdict, failure, details, and the
/// failure when it was written.
pub fn replayed([file, oracle, verdict, what, detail, once]: [&str; 6], style: Style) -> String {
    let mut out = String::new();
    let (code, said) = match verdict {
        "held" => ("32", format!("it holds now; it was: {}", printable(once))),
        "failed" if what == once => ("1;31", format!("it still fails: {}", printable(what))),
        "failed" => ("1;31", format!("it fails in another way: {}; it was: {}", printable(what), printable(once))),
        _ => ("33", printable(what)),
    };
    line(&mut out, &format!("{}: {}: {oracle}: {said}", style.paint(code, verdict), printable(file)), style);
    indented(&mut out, detail, style);
    out
}

/// A number with a blank before each three digits: `12 345`.
pub(super) fn number(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

fn rate(rate: f64) -> String {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rate is small and not negative")]
    if rate >= 100.0 { number(rate.round() as u64) } else { format!("{rate:.1}") }
}

/// A text without control characters. A case may contain any.
fn printable(text: &str) -> String {
    text.replace(char::is_control, "\u{fffd}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_numbers_have_gaps() {
        assert_eq!([7, 1234, 1_234_567].map(number), ["7", "1 234", "1 234 567"]);
    }
}
