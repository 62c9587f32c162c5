//! The report of `tilewright plan` as people read it.

use tilewright_ir::TensorRole;

use super::check::Verdict;
use super::plan::{AmountsRow, PartRow, PlaceRow, PlanReport, PoolRow, TensorRow};
use super::text::{Style, line, obligation, table};

/// Rows of a table, unless all are wanted.
const MAX_ROWS: usize = 40;

/// The report; ends with a newline.
pub fn plan(report: &PlanReport, style: Style) -> String {
    let mut out = String::new();
    let figures = &report.report;
    let title =
        format!("{}: {} tensors, {} steps, {} pools", report.file, figures.tensors, figures.steps, report.pools.len());
    line(&mut out, &style.paint("1", &title));
    line(&mut out, &format!("  planner {}, textures up to {}", figures.planner, figures.limits));
    out.push('\n');
    let head = ["pool", "scope", "type", "size", "bytes"];
    rows(&mut out, &head, report.pools.iter().map(pool), style);
    out.push('\n');
    let head = ["tensor", "type and shape", "pool", "place", "steps", ""];
    rows(&mut out, &head, report.tensors.iter().map(tensor), style);
    out.push('\n');
    let ours = figures.planner;
    let head = ["memory", "unshared", "compatible", ours, "lower bound", "of unshared", "of compatible", "of bound"];
    let parts = figures.parts.iter().map(part).chain([amounts("all in bytes".into(), &figures.bytes)]);
    rows(&mut out, &head, parts, style);
    out.push('\n');
    for row in &report.verdicts {
        obligation(&mut out, row, style);
    }
    let proved = report.verdicts.iter().filter(|row| row.verdict == Verdict::Proved).count();
    let verdict = style.verdict(report.verdict(), 0);
    line(&mut out, &format!("{verdict}: {proved} of {} obligations proved", report.verdicts.len()));
    out
}

fn rows(out: &mut String, head: &[&str], rows: impl Iterator<Item = Vec<String>>, style: Style) {
    let mut lines = vec![head.iter().map(|&word| word.to_owned()).collect::<Vec<_>>()];
    lines.extend(rows);
    let n = lines.len() - 1;
    if n > MAX_ROWS && !style.verbose {
        lines.truncate(1 + MAX_ROWS);
    }
    table(out, &lines);
    if n > MAX_ROWS && !style.verbose {
        line(out, &format!("  ... and {} more, which --verbose shows", n - MAX_ROWS));
    }
}

fn pool(pool: &PoolRow) -> Vec<String> {
    let (size, dtype) = match pool.shape.as_slice() {
        &[width, height, _] => (format!("{width}x{height} texels"), pool.dtype.clone()),
        _ => (String::new(), String::new()),
    };
    vec![pool.storage_id.to_string(), pool.scope.to_owned(), dtype, size, pool.bytes.to_string()]
}

fn tensor(tensor: &TensorRow) -> Vec<String> {
    let place = match tensor.place {
        PlaceRow::Byte { offset } => format!("bytes {offset}..{}", offset.saturating_add(tensor.size)),
        PlaceRow::Texels { x, y, width, height } => format!("{width}x{height} at ({x}, {y})"),
    };
    let what = match (tensor.role, tensor.is_view) {
        (TensorRole::Input, _) => "input",
        (TensorRole::Output, false) => "output",
        (TensorRole::Output, true) => "output, view",
        (TensorRole::Intermediate, true) => "view",
        (TensorRole::Intermediate, false) => "",
    };
    let steps = if tensor.first == tensor.last {
        tensor.first.to_string()
    } else {
        format!("{}-{}", tensor.first, tensor.last)
    };
    vec![tensor.name.clone(), tensor.what.clone(), tensor.storage_id.to_string(), place, steps, what.to_owned()]
}

fn part(part: &PartRow) -> Vec<String> {
    let name = match &part.dtype {
        Some(dtype) => format!("{} {dtype}, {}s", part.scope, part.unit),
        None => format!("{}, {}s", part.scope, part.unit),
    };
    amounts(name, &part.amounts)
}

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
