//! The report of `tilewright map` for people.

use super::check::Dim;
use super::lines::properties;
use super::map::{MapReport, PartRow, PartsRow, SubspaceRow};
use super::obligation::{obligations_of, premise_lines, proved_line};
use super::text::{Style, shape};

/// The report; ends with a newline.
pub fn map(report: &MapReport, style: Style) -> String {
    let mut out = String::new();
    let mut rows = vec![
        vec!["map".to_owned(), report.map.clone()],
        vec!["logical shape".to_owned(), shape(&report.shape)],
        vec!["physical shape".to_owned(), shape(&report.physical_shape)],
        vec!["axis separators".to_owned(), format!("{:?}", report.axis_separators)],
        vec!["flat shape".to_owned(), shape(&report.flat_shape)],
    ];
    rows.extend(report.assumptions.iter().map(|assumed| vec!["assuming".to_owned(), assumed.clone()]));
    rows.extend(report.predicate.iter().map(|predicate| vec!["where".to_owned(), predicate.clone()]));
    let or_none = |text: &Option<String>| text.clone().unwrap_or_else(|| "not proved".to_owned());
    rows.push(vec!["inverse".to_owned(), or_none(&report.inverse)]);
    rows.push(vec!["padding".to_owned(), or_none(&report.padding)]);
    for at in &report.at {
        let flat = at.flat.as_ref().map_or_else(|| "unknown (symbolic extents)".to_owned(), |flat| format!("{flat:?}"));
        rows.push(vec!["at".to_owned(), format!("{:?} -> {:?} -> {flat}", at.logical, at.physical)]);
    }
    if !report.parts.is_not_asked() {
        rows.extend(parts_rows(report.parts.proved().map(Vec::as_slice)));
    }
    if !report.subspace.is_not_asked() {
        rows.extend(subspace_rows(report.subspace.proved()));
    }
    properties(&mut out, &rows, style);
    obligations_of(&mut out, &report.map, &report.verdicts, style);
    premise_lines(&mut out, &report.premises, style);
    proved_line(&mut out, &report.verdicts, &report.premises, style);
    out
}

/// The rows that list the parts of each output.
fn parts_rows(parts: Option<&[PartsRow]>) -> Vec<Vec<String>> {
    let Some(parts) = parts else { return vec![vec!["parts".to_owned(), "not proved".to_owned()]] };
    let mut rows = Vec::new();
    for (number, sum) in parts.iter().enumerate() {
        let part = |part: &PartRow| {
            let PartRow { axis, lower_factor, extent, scale } = part;
            format!("{axis}: lower factor {lower_factor}, extent {extent}, scale {scale}")
        };
        let mut lines: Vec<String> = sum.parts.iter().map(part).collect();
        if sum.base != Dim::Known(0) || lines.is_empty() {
            lines.push(format!("base {}", sum.base));
        }
        let heads = std::iter::once(format!("parts of axis {number}")).chain(std::iter::repeat(String::new()));
        rows.extend(heads.zip(lines).map(|(head, line)| vec![head, line]));
    }
    rows
}

/// The rows that say how the map divides into outer and inner indices.
fn subspace_rows(subspace: Option<&SubspaceRow>) -> Vec<Vec<String>> {
    let row = |head: &str, text: String| vec![head.to_owned(), text];
    let Some(found) = subspace else { return vec![row("subspace", "not proved".to_owned())] };
    let mut rows = vec![row("outer map", found.outer.clone())];
    rows.extend(found.outer_where.iter().map(|predicate| row("outer where", predicate.clone())));
    rows.push(row("inner map", found.inner.clone()));
    rows.extend(found.inner_where.iter().map(|predicate| row("inner where", predicate.clone())));
    rows.push(row("block shape", shape(&found.extents)));
    rows
}
