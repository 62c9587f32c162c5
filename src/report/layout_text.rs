//! The report of `tilewright layout` for people: properties, the table of positions if it was asked for, obligations.

use super::check::Dim;
use super::layout::{Digits, LayoutReport, PositionRow, TileSize};
use super::lines::properties;
use super::obligation::{obligations_of, premise_lines, proved_line};
use super::text::Style;

/// The report; ends with a newline.
pub fn layout(report: &LayoutReport, style: Style) -> String {
    let mut out = String::new();
    let bytes = match report.metadata_prefix_bytes {
        0 => report.bytes.to_string(),
        prefix => format!("{} after a prefix of {prefix}", report.bytes),
    };
    let elements =
        format!("{} in {}, {} of them padding", report.elements, report.physical_elements, report.padding_elements);
    let mut rows = vec![
        vec!["layout".to_owned(), report.text.clone()],
        vec!["logical shape".to_owned(), shape(&report.shape)],
        vec!["minor to major".to_owned(), format!("{:?}", report.minor_to_major)],
        vec!["tiles".to_owned(), tiles(&report.tiles)],
        vec!["physical shape".to_owned(), shape(&report.physical_shape)],
        vec!["elements".to_owned(), elements],
        vec!["bytes".to_owned(), bytes],
        vec!["index map".to_owned(), report.index_map.clone()],
        vec!["inverse".to_owned(), report.inverse.clone().unwrap_or_else(|| "not proved".into())],
        vec!["padding".to_owned(), report.padding.clone().unwrap_or_else(|| "not proved".into())],
    ];
    rows.extend(report.at.iter().map(|at| vec!["at".to_owned(), position(at)]));
    properties(&mut out, &rows, style);
    if let Some(offsets) = &report.offsets {
        out.push('\n');
        // A line of the table is a row of the last logical dimension, whatever the order in memory is.
        let row = match report.shape.last() {
            Some(Dim::Known(row)) => usize::try_from(*row).unwrap_or(1),
            Some(Dim::Symbolic(_)) | None => 1,
        };
        grid(&mut out, offsets, row);
        out.push('\n');
    }
    obligations_of(&mut out, &report.index_map, &report.verdicts, style);
    premise_lines(&mut out, &report.premises, style);
    proved_line(&mut out, &report.verdicts, &report.premises, style);
    out
}

fn tiles(tiles: &[Vec<TileSize>]) -> String {
    let size = |size: &TileSize| match size {
        TileSize::Size(size) => size.to_string(),
        TileSize::Combined(star) => (*star).to_owned(),
    };
    let tile = |tile: &Vec<TileSize>| format!("({})", tile.iter().map(size).collect::<Vec<_>>().join(","));
    let text: String = tiles.iter().map(tile).collect();
    if text.is_empty() { "none".to_owned() } else { text }
}

fn shape(extents: &[Dim]) -> String {
    format!("[{}]", extents.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))
}

/// The position of an index: `[2, 3] -> [1, 1, 0, 1] -> 17 (byte 68)`.
fn position(at: &PositionRow) -> String {
    let physical = at.physical.as_ref().map(|physical| format!(" -> {physical:?}")).unwrap_or_default();
    let place = match (at.flat, at.byte, at.bit) {
        (Some(flat), Some(byte), Some(0) | None) => format!("{flat} (byte {byte})"),
        (Some(flat), Some(byte), Some(bit)) => format!("{flat} (byte {byte} bit {bit})"),
        _ => "depends on a symbolic extent".to_owned(),
    };
    format!("{:?}{physical} -> {place}", at.logical)
}

/// Writes positions in columns, with `row` of them in a line. Tables have millions of numbers, so no number is formatted
/// into a text of its own.
fn grid(out: &mut String, offsets: &[u64], row: usize) {
    const BLANKS: &str = "                    ";
    let mut digits = Digits::default();
    let width = offsets.iter().max().map_or(1, |largest| digits.of(*largest).len());
    out.reserve(offsets.len().saturating_mul(width + 1));
    for part in offsets.chunks(row.max(1)) {
        out.push(' ');
        for offset in part {
            let text = digits.of(*offset);
            out.push_str(&BLANKS[..=(width - text.len()).min(BLANKS.len() - 1)]);
            out.push_str(text);
        }
        out.push('\n');
    }
}
