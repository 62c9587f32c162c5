//! The report of `tilewright bench`: times of kernels as a table and as JSON, schema `tilewright.bench/1`.
//!
//! ```text
//! a.py: scale as written, 20 rounds after 3
//!   on 0: pthread (Portable Computing Language)
//!   kernel    held in  ms   spread  GB/s  GFLOP/s  of a copy
//!   scale_k0  buffers  ...  ...     ...   ...      ...
//!   copy      buffers  ...  ...     ...   -        1.00
//! ```

use serde::Serialize;

use super::lines::{hanging, line, table};
use super::text::Style;
use crate::harness::timing::{Measured, Rounds, Times, ratio};
use crate::json::{as_map, to_line};
use crate::pipeline::bench::{BenchOutcome, BenchRow};
use crate::pipeline::outcome::Summary;

/// The times of one file.
#[derive(Clone, Copy, Debug)]
pub struct BenchReport<'a> {
    /// The file.
    pub file: &'a str,
    /// How often kernels ran.
    pub rounds: Rounds,
    /// The outcome of each function.
    pub outcomes: &'a [BenchOutcome],
}

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    file: &'a str,
    verdict: Summary,
    rounds: usize,
    warm_up: usize,
    functions: Vec<FunctionView<'a>>,
}

#[derive(Serialize)]
struct FunctionView<'a> {
    name: &'a str,
    verdict: Summary,
    #[serde(serialize_with = "as_map")]
    shapes: &'a [(String, i128)],
    runs: Vec<RunView<'a>>,
}

#[derive(Serialize)]
struct RunView<'a> {
    form: &'static str,
    device: Option<&'a str>,
    /// Why nothing was measured.
    reason: Option<String>,
    kernels: Vec<RowView<'a>>,
    total: Option<RowView<'a>>,
    copy: Option<RowView<'a>>,
}

/// Times of a kernel, of all kernels, or of a copy.
#[derive(Serialize)]
struct RowView<'a> {
    name: &'a str,
    held_in: &'static str,
    bytes: u64,
    operations: Option<u64>,
    median_ms: f64,
    least_ms: f64,
    greatest_ms: f64,
    spread: f64,
    gigabytes_per_second: f64,
    gigaflops: Option<f64>,
    of_a_copy: Option<f64>,
}

impl BenchReport<'_> {
    /// The worst of all functions.
    pub fn summary(&self) -> Summary {
        Summary::worst(self.outcomes.iter().map(BenchOutcome::summary))
    }

    /// The JSON document, on one line.
    pub fn to_json(&self) -> String {
        to_line(&Document {
            schema: "tilewright.bench/1",
            file: self.file,
            verdict: self.summary(),
            rounds: self.rounds.rounds,
            warm_up: self.rounds.warm_up,
            functions: self.outcomes.iter().map(function_view).collect(),
        })
    }

    /// The tables, one for each form and device.
    pub fn to_text(&self, style: Style) -> String {
        let mut out = String::new();
        for outcome in self.outcomes {
            for row in &outcome.rows {
                let Rounds { rounds, warm_up } = self.rounds;
                let (name, form) = (&outcome.lowering.name, row.form.word());
                let title = format!("{}: {name} {form}, {rounds} rounds after {warm_up}", self.file);
                line(&mut out, &style.paint("1", &title), style);
                run_text(&mut out, outcome, row, style);
            }
            let verdict = outcome.summary();
            line(&mut out, &style.verdict(verdict, 0), style);
        }
        out
    }
}

fn function_view(outcome: &BenchOutcome) -> FunctionView<'_> {
    FunctionView {
        name: &outcome.lowering.name,
        verdict: outcome.summary(),
        shapes: &outcome.symbols,
        runs: outcome.rows.iter().map(run_view).collect(),
    }
}

fn run_view(row: &BenchRow) -> RunView<'_> {
    let (form, device) = (row.form.word(), row.device.as_deref());
    match &row.measured {
        Ok(measured) => {
            let (kernels, total, copy) = rows(measured);
            RunView { form, device, reason: None, kernels, total: Some(total), copy }
        }
        Err(fault) => {
            let reason = Some(fault.clone().into_status().1);
            RunView { form, device, reason, kernels: Vec::new(), total: None, copy: None }
        }
    }
}

/// The rows of the kernels, of all of them together, and of the copy.
fn rows(measured: &Measured) -> (Vec<RowView<'_>>, RowView<'_>, Option<RowView<'_>>) {
    let bytes = measured.kernels.iter().map(|kernel| kernel.bytes).sum();
    let per_byte = measured.copy.as_ref().map(|copy| ratio(copy.median(), bytes));
    let has_textures = measured.kernels.iter().any(|kernel| kernel.has_textures);
    let alone = measured.kernels.len() == 1;
    let kernels = measured.kernels.iter().map(|kernel| {
        let counts = (kernel.bytes, measured.operations.filter(|_| alone));
        row_view(&kernel.name, held_in(kernel.has_textures), counts, &kernel.times, per_byte)
    });
    let total = row_view("total", held_in(has_textures), (bytes, measured.operations), &measured.total, per_byte);
    let copy = measured.copy.as_ref().map(|copy| row_view("copy", held_in(false), (bytes, None), copy, per_byte));
    (kernels.collect(), total, copy)
}

fn held_in(has_textures: bool) -> &'static str {
    if has_textures { "textures" } else { "buffers" }
}

/// A row; `per_byte` is the time of a copy in nanoseconds for each byte that it reads or writes.
#[expect(clippy::cast_precision_loss, reason = "numbers to look at")]
fn row_view<'a>(
    name: &'a str,
    held_in: &'static str,
    (bytes, operations): (u64, Option<u128>),
    times: &Times,
    per_byte: Option<f64>,
) -> RowView<'a> {
    let operations = operations.and_then(|count| u64::try_from(count).ok());
    let ms = |nanoseconds: u64| nanoseconds as f64 / 1e6;
    let median = times.median();
    RowView {
        name,
        held_in,
        bytes,
        operations,
        median_ms: ms(median),
        least_ms: ms(times.least()),
        greatest_ms: ms(times.greatest()),
        spread: times.spread(),
        gigabytes_per_second: ratio(bytes, median),
        gigaflops: operations.map(|count| ratio(count, median)),
        of_a_copy: per_byte.map(|per_byte| per_byte * bytes as f64 / median.max(1) as f64),
    }
}

fn run_text(out: &mut String, outcome: &BenchOutcome, row: &BenchRow, style: Style) {
    if !outcome.symbols.is_empty() {
        let shapes: Vec<_> = outcome.symbols.iter().map(|(name, value)| format!("{name} = {value}")).collect();
        line(out, &format!("  with {}", shapes.join(", ")), style);
    }
    if let Some(device) = &row.device {
        line(out, &format!("  on {device}"), style);
    }
    let measured = match &row.measured {
        Ok(measured) => measured,
        Err(fault) => {
            let (status, why) = fault.clone().into_status();
            return hanging(out, &format!("  {}: ", status.word()), &why, 4, style);
        }
    };
    let (kernels, total, copy) = rows(measured);
    let total = Some(total).filter(|_| kernels.len() > 1);
    let head = ["kernel", "held in", "ms", "spread", "GB/s", "GFLOP/s", "of a copy"];
    let mut lines = vec![head.map(str::to_owned).to_vec()];
    let number =
        |value: Option<f64>, digits: usize| value.map_or_else(|| "-".to_owned(), |value| format!("{value:.digits$}"));
    lines.extend(kernels.iter().chain(&total).chain(&copy).map(|row| {
        vec![
            row.name.to_owned(),
            row.held_in.to_owned(),
            number(Some(row.median_ms), 3),
            number(Some(row.spread), 2),
            number(Some(row.gigabytes_per_second), 2),
            number(row.gigaflops, 2),
            number(row.of_a_copy, 2),
        ]
    }));
    table(out, &lines, style);
}
