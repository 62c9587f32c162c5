//! The reports as people read them, in 100 columns.
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
use std::fmt::Write as _;

use super::check::{
    BufferRow, CheckReport, CounterexampleRow, Dim, EngineRow, EngineStatus, FileReport, ObligationRow, PassRow,
    Verdict,
};

/// How text is written.
#[derive(Clone, Copy, Debug, Default)]
pub struct Style {
    /// With ANSI colours.
    pub color: bool,
    /// Every obligation on a line of its own, not only those that are not proved.
    pub verbose: bool,
}

impl Style {
    /// The text in a colour, if colours are wanted.
    pub(super) fn paint(self, code: &str, text: &str) -> String {
        if self.color { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }

    /// A verdict's word in its colour, padded to `width` columns.
    pub(super) fn verdict(self, verdict: Verdict, width: usize) -> String {
        let code = match verdict {
            Verdict::Proved => "32",
            Verdict::Skipped | Verdict::Vacuous | Verdict::Unknown => "33",
            Verdict::Mismatch | Verdict::Refuted => "1;31",
        };
        self.paint(code, &format!("{:<width$}", verdict.word()))
    }

    /// A status in its colour, padded to `width` columns.
    pub(super) fn status(self, status: EngineStatus, width: usize) -> String {
        let code = match status {
            EngineStatus::Agrees => "32",
            EngineStatus::Reference | EngineStatus::NotRequested => "2",
            EngineStatus::Skipped => "33",
            EngineStatus::Mismatch | EngineStatus::Trap | EngineStatus::Failed => "1;31",
        };
        self.paint(code, &format!("{:<width$}", status.word()))
    }
}

/// The report of `tilewright check` on one file; ends with a newline.
pub fn check(report: &FileReport, style: Style) -> String {
    let mut out = String::new();
    for function in &report.functions {
        let title = format!("{}: {}", report.file, function.function);
        line(&mut out, &style.paint("1", &title));
        passes(&mut out, &function.passes, style);
        if !function.buffers.is_empty() {
            out.push('\n');
            buffers(&mut out, &function.buffers);
            texture_limits(&mut out, function);
        }
        if !function.engines.is_empty() {
            out.push('\n');
            engines(&mut out, function, style);
        }
        summary(&mut out, report, function, style);
    }
    if report.functions.is_empty() {
        line(&mut out, &format!("{} nothing in {} was checked", style.verdict(Verdict::Skipped, 0), report.file));
    }
    out
}

/// Appends a line without blanks at its end.
pub(super) fn line(out: &mut String, text: &str) {
    out.push_str(text.trim_end());
    out.push('\n');
}

/// How large textures may be, who says so, and what only the launch can check.
fn texture_limits(out: &mut String, report: &CheckReport) {
    let Some(limits) = &report.texture_limits else { return };
    line(out, &format!("  textures: at most {} wide and {} high, by {}", limits.width, limits.height, limits.from));
    if !limits.checked_at_launch.is_empty() {
        line(out, &format!("    the launch checks the symbolic extents of {}", limits.checked_at_launch.join(", ")));
    }
}

fn passes(out: &mut String, passes: &[PassRow], style: Style) {
    line(out, &format!("  {:<26} {:<9} {:>9}  {}", "step", "verdict", "ms", "obligations"));
    for pass in passes {
        let said = pass.skipped.clone().unwrap_or_else(|| counts(&pass.obligations));
        let empty = pass.skipped.is_none() && pass.obligations.is_empty();
        let verdict = if empty { format!("{:<9}", "-") } else { style.verdict(pass.verdict(), 9) };
        let mut said = wrapped(&said, 49).into_iter();
        let first = said.next().unwrap_or_default();
        line(out, &format!("  {:<26} {verdict} {:>9.1}  {first}", pass.name, pass.ms));
        for more in said {
            line(out, &format!("{:49}{more}", ""));
        }
        for row in &pass.obligations {
            if style.verbose || row.verdict != Verdict::Proved {
                obligation(out, row, style);
            }
        }
    }
}

/// Words on lines that end before column 100 when they begin at column `indent`.
fn wrapped(text: &str, indent: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(last) if indent + last.chars().count() + 1 + word.chars().count() <= 100 => {
                last.push(' ');
                last.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// How many of each: `bounds 6, injective 2`.
fn counts(rows: &[ObligationRow]) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for row in rows {
        *counts.entry(&row.obligation).or_default() += 1;
    }
    let each: Vec<_> = counts.iter().map(|(name, count)| format!("{name} {count}")).collect();
    if each.is_empty() { "nothing to prove".to_owned() } else { each.join(", ") }
}

/// One obligation, and why it is not proved if it is not.
pub(super) fn obligation(out: &mut String, row: &ObligationRow, style: Style) {
    let verdict = style.verdict(row.verdict, 8);
    let how = format!("{} ({:.1} ms)", row.method, row.ms);
    let wide = row.subject.chars().count() + how.chars().count() > 70;
    let (beside, below) = if wide { (String::new(), Some(how)) } else { (how, None) };
    line(out, &format!("    {verdict} {:<11} {:<44} {beside}", row.obligation, row.subject));
    if let Some(below) = below {
        line(out, &format!("             by {below}"));
    }
    if let Some(reason) = &row.reason {
        line(out, &format!("             because {reason}"));
    }
    if let Some(counterexample) = &row.counterexample {
        counterexample_lines(out, counterexample);
    }
}

fn counterexample_lines(out: &mut String, counterexample: &CounterexampleRow) {
    line(out, &format!("             counterexample: {}", counterexample.text));
    // The text names the indices of a map already.
    let values = if counterexample.indices.is_empty() { counterexample.values.as_slice() } else { &[] };
    let assigned = counterexample.shape.iter().chain(values);
    let assigned: Vec<_> = assigned.map(|(name, value)| format!("{name} = {value}")).collect();
    if !assigned.is_empty() {
        line(out, &format!("             with {}", assigned.join(", ")));
    }
}

/// Columns as wide as their widest entry, two blanks apart.
pub(super) fn table(out: &mut String, rows: &[Vec<String>]) {
    let n_columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widths: Vec<usize> = (0..n_columns)
        .map(|column| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0))
        .collect();
    for row in rows {
        let mut text = String::from(" ");
        for (cell, width) in row.iter().zip(&widths) {
            let _ = write!(text, " {cell:<width$} ");
        }
        line(out, &text);
    }
}

/// `[16, n]`.
pub(super) fn shape(dims: &[Dim]) -> String {
    let dims: Vec<_> = dims.iter().map(Dim::to_string).collect();
    format!("[{}]", dims.join(", "))
}

fn buffers(out: &mut String, buffers: &[BufferRow]) {
    let head = ["buffer", "type", "logical", "physical", "separators", "flat"].map(str::to_owned).to_vec();
    let row = |buffer: &BufferRow| {
        vec![
            buffer.name.clone(),
            buffer.dtype.clone(),
            shape(&buffer.logical_shape),
            shape(&buffer.physical_shape),
            format!("{:?}", buffer.axis_separators),
            buffer.flat_shape.as_deref().map_or_else(|| "-".to_owned(), shape),
        ]
    };
    let rows: Vec<_> = std::iter::once(head).chain(buffers.iter().map(row)).collect();
    table(out, &rows);
}

fn engines(out: &mut String, report: &CheckReport, style: Style) {
    if !report.shapes.is_empty() {
        let shapes: Vec<_> = report.shapes.iter().map(|(name, value)| format!("{name} = {value}")).collect();
        line(out, &format!("  run with {}", shapes.join(", ")));
    }
    let width = report.engines.iter().map(|row| engine_name(row).chars().count()).max().unwrap_or(0).max(6);
    let head = ["compared", "different", "max ulp", "ms"];
    line(
        out,
        &format!(
            "  {:<width$}  {:<13} {:>10} {:>9} {:>7} {:>9}",
            "engine", "status", head[0], head[1], head[2], head[3]
        ),
    );
    for row in &report.engines {
        line(out, &engine(row, width, style));
        if let Some(device) = &row.device {
            line(out, &format!("    on {device}"));
        }
        let shown = row.status != EngineStatus::Agrees && row.status != EngineStatus::Reference || style.verbose;
        for said in row.reason.iter().filter(|_| shown).flat_map(|reason| reason.lines()) {
            line(out, &format!("    {said}"));
        }
    }
    if let Some(blame) = &report.blame {
        line(out, &format!("  the first stage that went wrong is {blame}"));
    }
    for note in &report.notes {
        line(out, &format!("  note: {note}"));
    }
}

/// `interpreter flatten_buffer`.
fn engine_name(row: &EngineRow) -> String {
    row.stage.as_ref().map_or_else(|| row.engine.clone(), |stage| format!("{} {stage}", row.engine))
}

fn engine(row: &EngineRow, width: usize, style: Style) -> String {
    let (name, status) = (engine_name(row), style.status(row.status, 13));
    let ms = format!("{:.1}", row.ms);
    let far = if row.max_ulp == u64::MAX { "far".to_owned() } else { row.max_ulp.to_string() };
    let [compared, mismatches, far, ms] = match row.status {
        EngineStatus::Agrees | EngineStatus::Mismatch => {
            [row.compared.to_string(), row.mismatches.to_string(), far, ms]
        }
        EngineStatus::Reference => ["-".into(), "-".into(), "-".into(), ms],
        EngineStatus::Trap | EngineStatus::Failed | EngineStatus::Skipped | EngineStatus::NotRequested => {
            ["-", "-", "-", "-"].map(str::to_owned)
        }
    };
    format!("  {name:<width$}  {status} {compared:>10} {mismatches:>9} {far:>7} {ms:>9}")
}

fn summary(out: &mut String, file: &FileReport, report: &CheckReport, style: Style) {
    let verdict = report.verdict();
    let agree = report.engines.iter().filter(|row| row.status == EngineStatus::Agrees).count();
    let ran = report.engines.iter().filter(|row| row.verdict().is_some()).count();
    let proved = report.passes.iter().flat_map(|pass| &pass.obligations);
    let proved = proved.filter(|row| row.verdict == Verdict::Proved).count();
    let mut said =
        format!("{proved} of {} obligations proved, {agree} of {ran} engine runs agree", report.n_obligations());
    if report.engines.is_empty() {
        said.push_str(", nothing was run");
    } else if report.engines.iter().any(|row| row.status == EngineStatus::NotRequested) {
        said.push_str(", OpenCL not run as asked");
    }
    if file.setting.allow_unknown && verdict != Verdict::Proved {
        said.push_str("; --allow-unknown was given");
    }
    line(out, &format!("{}: {said} (seed {}, {})", style.verdict(verdict, 0), file.setting.seed, file.setting.solver));
}

/// The report of `tilewright validate`; ends with a newline.
pub fn validate(before: &str, after: &str, rows: &[PassRow], verdict: Verdict, style: Style) -> String {
    let mut out = String::new();
    line(&mut out, &style.paint("1", &format!("{before} -> {after}")));
    passes(&mut out, rows, style);
    let all = rows.iter().flat_map(|row| &row.obligations);
    let (proved, count) = (all.clone().filter(|row| row.verdict == Verdict::Proved).count(), all.count());
    line(&mut out, &format!("{}: {proved} of {count} obligations proved", style.verdict(verdict, 0)));
    out
}

#[cfg(test)]
mod tests {
    use super::super::check::tests::{file, proved};
    use super::*;

    #[test]
    fn a_proved_report_reads_in_a_hundred_columns() {
        let text = check(&file(vec![proved()]), Style::default());
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
        let row = &mut report.passes[0].obligations[0];
        row.verdict = Verdict::Refuted;
        row.counterexample = Some(CounterexampleRow {
            shape: vec![("n".into(), 4)],
            indices: vec![vec![0, 2], vec![1, 0]],
            values: Vec::new(),
            text: "(0, 2) and (1, 0) both land on (2)".into(),
        });
        let text = check(&file(vec![report]), Style::default());
        assert!(text.contains("counterexample: (0, 2) and (1, 0) both land on (2)\n"), "{text}");
        assert!(text.contains("with n = 4\n"), "{text}");
        assert!(text.contains("\nrefuted: 0 of 1 obligations proved"), "{text}");
    }

    #[test]
    fn what_was_skipped_or_allowed_is_said() {
        let mut report = proved();
        report.engines[0].status = EngineStatus::Skipped;
        report.engines[0].reason = Some("no OpenCL device".into());
        report.passes[0].obligations[0].verdict = Verdict::Unknown;
        report.passes[0].obligations[0].reason = Some("timeout after 2 s".into());
        let mut file = file(vec![report]);
        file.setting.allow_unknown = true;
        let text = check(&file, Style::default());
        for said in ["no OpenCL device", "because timeout after 2 s", "--allow-unknown was given", "unknown: 0 of 1"] {
            assert!(text.contains(said), "{said}: {text}");
        }
        assert!(check(&super::super::check::tests::file(vec![]), Style::default()).contains("nothing in a.py"));
    }

    #[test]
    fn a_long_line_of_obligations_is_wrapped() {
        let text = "bounds 7, flatten 3, injective 3, iteration 8, overflow 5, simulation 6, tight 3";
        let lines = wrapped(text, 49);
        assert!(lines.iter().all(|line| 49 + line.len() <= 100));
        assert_eq!(lines.join(" "), text);
        assert_eq!(lines.len(), 2);
    }

    #[test]
    fn colour_is_only_where_it_is_asked_for() {
        let report = file(vec![proved()]);
        assert!(!check(&report, Style::default()).contains('\u{1b}'));
        assert!(check(&report, Style { color: true, verbose: true }).contains("\u{1b}[32mproved"));
    }
}
