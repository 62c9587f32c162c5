//! The report of `tilewright layout` as people read it.

use super::check::Verdict;
use super::layout::{LayoutReport, TileSize};
use super::text::{Style, line, obligation, table};

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
        vec!["logical shape".to_owned(), format!("{:?}", report.shape)],
        vec!["minor to major".to_owned(), format!("{:?}", report.minor_to_major)],
        vec!["tiles".to_owned(), tiles(&report.tiles)],
        vec!["physical shape".to_owned(), format!("{:?}", report.physical_shape)],
        vec!["elements".to_owned(), elements],
        vec!["bytes".to_owned(), bytes],
        vec!["index map".to_owned(), report.index_map.clone()],
    ];
    for at in &report.at {
        let inside = if at.bit == 0 { String::new() } else { format!(" bit {}", at.bit) };
        let place = format!("{:?} -> {:?} -> {} (byte {}{inside})", at.logical, at.physical, at.flat, at.byte);
        rows.push(vec!["at".to_owned(), place]);
    }
    table(&mut out, &rows);
    if let Some(offsets) = &report.offsets {
        out.push('\n');
        grid(&mut out, offsets, report.shape.last().copied().unwrap_or(1));
        out.push('\n');
    }
    for row in &report.verdicts {
        obligation(&mut out, row, style);
    }
    let proved = report.verdicts.iter().filter(|row| row.verdict == Verdict::Proved).count();
    let verdict = style.verdict(report.verdict(), 0);
    line(&mut out, &format!("{verdict}: {proved} of {} obligations proved", report.verdicts.len()));
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

/// Positions, a line for each row of the last dimension.
fn grid(out: &mut String, offsets: &[u64], row: u64) {
    let width = offsets.iter().max().map_or(1, |largest| largest.to_string().len());
    for part in offsets.chunks(usize::try_from(row).unwrap_or(usize::MAX).max(1)) {
        out.push(' ');
        for offset in part {
            let text = offset.to_string();
            out.push(' ');
            out.extend(std::iter::repeat_n(' ', width - text.len()));
            out.push_str(&text);
        }
        out.push('\n');
    }
}
