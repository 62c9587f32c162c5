//! The picture of `tilewright draw` as text.
//!
//! `|` and `-` are borders of the tiles of the first level, `:` those of further levels. Padding of the logical array
//! is in brackets, padding of memory is a dot, and elements with a fault have a `!`.

use super::draw::DrawReport;
use super::draw_grid::{Cell, Grid, Kind, logical, memory};
use super::lines::{hanging, line, verbatim};
use super::text::Style;

/// The picture; ends with a newline.
pub fn draw(report: &DrawReport, style: Style) -> String {
    let mut out = String::new();
    line(&mut out, &style.paint("1", &report.subject), style);
    line(&mut out, &report.summary(), style);
    for note in [report.cut_note(), report.whole_note()].into_iter().flatten() {
        hanging(&mut out, "note: ", &note, 6, style);
    }
    if let Some(mark) = &report.counterexample {
        line(&mut out, &style.paint("1;31", &format!("wrong: {}", mark.text)), style);
    }
    out.push('\n');
    line(&mut out, "each element with its place in memory, padding in brackets:", style);
    for part in logical(report) {
        grid(&mut out, &part, report.levels.len(), style);
    }
    out.push('\n');
    line(&mut out, "memory, each slot with the index of its element, padding as dots:", style);
    grid(&mut out, &memory(report), 0, style);
    out
}

/// The text of a cell.
fn label(cell: &Cell) -> String {
    match cell.kind {
        Kind::Padding if cell.label.is_empty() => ".".to_owned(),
        Kind::Padding => format!("[{}]", cell.label),
        Kind::Marked | Kind::Outside => format!("!{}", cell.label),
        Kind::Element | Kind::Collides => cell.label.clone(),
    }
}

/// Writes a grid. One that is wider than the page is written in parts, each with the numbers of its columns.
fn grid(out: &mut String, grid: &Grid, n_levels: usize, style: Style) {
    out.push('\n');
    if !grid.title.is_empty() {
        line(out, &format!("  {}", grid.title), style);
    }
    // One width for all columns, the widest of labels and numbers, keeps rows and borders aligned.
    let widest = grid.cells.iter().flatten().map(|cell| label(cell).chars().count()).max().unwrap_or(1);
    let last = (grid.rows() * grid.row_step).to_string().len();
    let head = last.max(grid.row_axis.chars().count()).max(3);
    let step = widest.max(last) + 2;
    // The name of the axis stands behind the last column.
    let around = head + 5 + grid.column_axis.chars().count();
    let per_part = (style.width.saturating_sub(around) / step).max(1);
    for start in (0..grid.columns).step_by(per_part) {
        if start > 0 {
            out.push('\n');
        }
        let columns = start..(start + per_part).min(grid.columns);
        let numbers: Vec<_> = columns.clone().map(|column| format!(" {column:>width$}", width = step - 1)).collect();
        let numbers = numbers.concat();
        let axis = &grid.column_axis;
        verbatim(out, &style.paint("2", &format!("  {:>head$} {numbers}  {axis}", grid.row_axis)));
        for row in 0..grid.rows() {
            if let Some(border) = border(grid, n_levels, row, columns.clone(), step) {
                verbatim(out, &format!("  {:>head$} {border}", ""));
            }
            let number = style.paint("2", &format!("  {:>head$} ", row * grid.row_step));
            let cells: String =
                columns.clone().map(|column| written(grid, n_levels, row, column, step, style)).collect();
            verbatim(out, &format!("{number}{cells}"));
        }
    }
}

/// A cell with the border at its left.
fn written(grid: &Grid, n_levels: usize, row: usize, column: usize, step: usize, style: Style) -> String {
    let cell = grid.cell(row, column);
    let left = column.checked_sub(1).and_then(|left| grid.cell(row, left));
    let level = (0..n_levels).find(|&level| column > 0 && Grid::border(level, left, cell));
    let bar = match level {
        Some(0) => "|",
        Some(_) => ":",
        None => " ",
    };
    let Some(cell) = cell else { return format!("{bar}{:width$}", "", width = step - 1) };
    let text = format!("{:>width$}", label(cell), width = step - 1);
    let code = match cell.kind {
        Kind::Element => return format!("{bar}{text}"),
        Kind::Padding => "2",
        Kind::Collides => "33",
        Kind::Marked | Kind::Outside => "1;31",
    };
    format!("{bar}{}", style.paint(code, &text))
}

/// The line between two rows, where a tile of the first level ends.
fn border(grid: &Grid, n_levels: usize, row: usize, columns: std::ops::Range<usize>, step: usize) -> Option<String> {
    let above = row.checked_sub(1)?;
    let ends = |column: usize| n_levels > 0 && Grid::border(0, grid.cell(above, column), grid.cell(row, column));
    let text = |column: usize| if ends(column) { "-".repeat(step) } else { " ".repeat(step) };
    columns.clone().any(ends).then(|| columns.map(text).collect())
}
