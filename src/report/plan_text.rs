//! The report of `tilewright plan` for people: pools, tensors, amounts of memory, obligations, the run.

use std::fmt::Write as _;

use super::lines::{line, shortened, table};
use super::model;
use super::obligation::{Texts, obligation};
use super::plan::{AmountsRow, PartRow, PlaceRow, PlanReport, PoolRow, TensorRow};
use super::plan_run;
use super::text::Style;
use crate::harness::engine::Status;

/// Most rows of a table without `--verbose`.
const MAX_ROWS: usize = 40;
/// Columns of a cell: names and shapes may be of any length, a table is not.
const MAX_COLUMNS: usize = 48;

/// The report; ends with a newline.
pub fn plan(report: &PlanReport, style: Style) -> String {
    let mut out = String::new();
    let figures = &report.report;
    let title =
        format!("{}: {} tensors, {} steps, {} pools", report.file, figures.tensors, figures.steps, report.pools.len());
    line(&mut out, &style.paint("1", &title), style);
    line(&mut out, &format!("  planner {}, textures up to {}", figures.planner, figures.limits), style);
    if let Some(model) = &report.model {
        model::text(&mut out, model, style);
    }
    out.push('\n');
    let head = ["pool", "scope", "type", "size", "bytes"];
    rows(&mut out, &head, report.pools.iter().map(pool), style);
    out.push('\n');
    let head = ["tensor", "type and shape", "pool", "place", "steps", "role"];
    rows(&mut out, &head, report.tensors.iter().map(tensor), style);
    out.push('\n');
    let ours = figures.planner;
    let head = ["memory", "unshared", "compatible", ours, "lower bound", "of unshared", "of compatible", "of bound"];
    // Parts are in their own units, bytes or texels; only the last row, their sum in bytes, compares everything.
    let parts = figures.parts.iter().map(part).chain([amounts("all in bytes".into(), &figures.bytes)]);
    rows(&mut out, &head, parts, style);
    let peak = &figures.peak;
    if !peak.name.is_empty() {
        let name = shortened(&peak.name, MAX_COLUMNS);
        line(&mut out, &format!("  most is alive in step {} `{name}`: {} bytes", peak.step, peak.bytes), style);
    }
    out.push('\n');
    for row in &report.verdicts {
        obligation(&mut out, row, Texts::default(), style);
    }
    if let Some(run) = &report.run {
        out.push('\n');
        plan_run::text(&mut out, run, style);
    }
    let proved = report.reports().filter(|report| report.verdict.is_proved()).count();
    let mut said = format!("{proved} of {} obligations proved", report.reports().count());
    if let Some(run) = &report.run {
        let agree = run.devices.iter().filter(|row| row.status == Status::Agrees).count();
        let ran = run.devices.iter().filter(|row| row.status != Status::NotRequested).count();
        let _ = match ran {
            0 => write!(said, ", not run, as asked"),
            ran => write!(said, ", {agree} of {ran} device runs agree (seed {})", run.seed),
        };
    }
    line(&mut out, &format!("{}: {said}", style.verdict(report.summary(), 0)), style);
    out
}

/// Writes a table, cut after `MAX_ROWS` rows.
fn rows(out: &mut String, head: &[&str], rows: impl Iterator<Item = Vec<String>>, style: Style) {
    let mut lines = vec![head.iter().map(|&word| word.to_owned()).collect::<Vec<_>>()];
    lines.extend(rows.map(|row| row.iter().map(|cell| shortened(cell, MAX_COLUMNS)).collect()));
    let n = lines.len() - 1;
    if n > MAX_ROWS && !style.verbose {
        lines.truncate(1 + MAX_ROWS);
    }
    table(out, &lines, style);
    if n > MAX_ROWS && !style.verbose {
        line(out, &format!("  ... and {} more, which --verbose shows", n - MAX_ROWS), style);
    }
}

fn pool(pool: &PoolRow) -> Vec<String> {
    let (size, dtype) = match pool.shape.as_slice() {
        &[width, height, _] => (format!("{width}x{height} texels"), pool.dtype.clone()),
        _ => (String::new(), String::new()),
    };
    vec![pool.storage_id.to_string(), pool.scope.to_owned(), dtype, size, pool.bytes.to_string()]
}

/// The row of a tensor. Steps are those at which its memory is needed: `3`, or `3-7`.
fn tensor(tensor: &TensorRow) -> Vec<String> {
    let place = match tensor.place {
        PlaceRow::Byte { offset } => format!("bytes {offset}..{}", offset.saturating_add(tensor.size)),
        PlaceRow::Texels { x, y, width, height } => format!("{width}x{height} at ({x}, {y})"),
    };
    let steps = if tensor.first == tensor.last {
        tensor.first.to_string()
    } else {
        format!("{}-{}", tensor.first, tensor.last)
    };
    vec![tensor.name.clone(), tensor.what.clone(), tensor.storage_id.to_string(), place, steps, tensor.role_text()]
}

/// The row of a part.
fn part(part: &PartRow) -> Vec<String> {
    let class = if part.is_constant() { " constants" } else { "" };
    let name = match &part.dtype {
        Some(dtype) => format!("{} {dtype}{class}, {}s", part.scope, part.unit),
        None => format!("{}{class}, {}s", part.scope, part.unit),
    };
    amounts(name, &part.amounts)
}

/// The row of amounts: four numbers, and the planned one relative to the others.
fn amounts(name: String, row: &AmountsRow) -> Vec<String> {
    let percent = |ratio: f64| format!("{:.1}%", ratio * 100.0);
    vec![
        name,
        row.unshared.to_string(),
        row.compatible.to_string(),
        row.planned.to_string(),
        row.lower_bound.to_string(),
        percent(row.planned_per_unshared),
        percent(row.planned_per_compatible),
        percent(row.planned_per_lower_bound),
    ]
}
