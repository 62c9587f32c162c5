//! The report of `tilewright map` for people.

use super::lines::properties;
use super::map::MapReport;
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
    let or_none = |text: &Option<String>| text.clone().unwrap_or_else(|| "not proved".to_owned());
    rows.push(vec!["inverse".to_owned(), or_none(&report.inverse)]);
    rows.push(vec!["padding".to_owned(), or_none(&report.padding)]);
    for at in &report.at {
        let flat = at.flat.as_ref().map_or_else(|| "unknown (symbolic extents)".to_owned(), |flat| format!("{flat:?}"));
        rows.push(vec!["at".to_owned(), format!("{:?} -> {:?} -> {flat}", at.logical, at.physical)]);
    }
    properties(&mut out, &rows, style);
    obligations_of(&mut out, &report.map, &report.verdicts, style);
    premise_lines(&mut out, &report.premises, style);
    proved_line(&mut out, &report.verdicts, &report.premises, style);
    out
}
