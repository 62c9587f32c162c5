//! Diagnostics as JSON, and the document that takes the place of a result: schema `tilewright.error/1`.
//!
//! ```json
//! {"schema":"tilewright.error/1","file":"a.py","exit_code":2,
//!  "error":{"message":"...","start":17,"end":20,"hint":null},
//!  "diagnostics":[{"severity":"error","code":"...","message":"...","labels":[{"line":2,"column":5,"end_line":2,
//!                  "end_column":8,"message":""}],"help":null}]}
//! ```

use serde::Serialize;
use tilewright_ir::{Diagnostic, Severity};
use tilewright_script::diagnostic::{Region, Source, shortened};

/// The JSON form of a diagnostic.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DiagnosticRow {
    /// `error` or `warning`.
    pub severity: &'static str,
    /// The stable short name of the kind of fault.
    pub code: String,
    /// One sentence.
    pub message: String,
    /// Places in the text, the main one first.
    pub labels: Vec<LabelRow>,
    /// What to do about it.
    pub help: Option<String>,
}

/// A place. Lines and columns count from 1, columns in characters; the end is exclusive.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LabelRow {
    /// First line.
    pub line: usize,
    /// Column in it.
    pub column: usize,
    /// Line of the end.
    pub end_line: usize,
    /// Column past the end.
    pub end_column: usize,
    /// A remark on the place; may be empty.
    pub message: String,
}

impl DiagnosticRow {
    /// The row of a diagnostic of `source`.
    pub fn new(source: &Source, diagnostic: &Diagnostic) -> Self {
        let severity = match diagnostic.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        let label = |label: &tilewright_ir::Label| {
            let Region { line, column, end_line, end_column } = source.region(label.span);
            LabelRow { line, column, end_line, end_column, message: shortened(&label.message) }
        };
        Self {
            severity,
            code: diagnostic.code.to_owned(),
            message: shortened(&diagnostic.message),
            labels: diagnostic.labels.iter().map(label).collect(),
            help: diagnostic.help.as_deref().map(shortened),
        }
    }
}

/// The document that `--format json` prints if a command has no result: schema `tilewright.error/1`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ErrorReport {
    /// `tilewright.error/1`.
    pub schema: &'static str,
    /// The name of the input: a file, `<stdin>`, or a part of the command line.
    pub file: String,
    /// The exit code of the process.
    pub exit_code: u8,
    /// The first fault, with its place in bytes.
    pub error: Option<FaultRow>,
    /// All faults, at least one entry.
    pub diagnostics: Vec<DiagnosticRow>,
}

/// One fault in short. Offsets count bytes of the text from 0, and the end is exclusive; both are null if there is no
/// place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FaultRow {
    /// One sentence.
    pub message: String,
    /// Where it begins.
    pub start: Option<u32>,
    /// Where it ends.
    pub end: Option<u32>,
    /// What to do about it.
    pub hint: Option<String>,
}

impl FaultRow {
    /// The row of a diagnostic.
    pub fn new(diagnostic: &Diagnostic) -> Self {
        let span = diagnostic.labels.first().map(|label| label.span);
        Self {
            message: shortened(&diagnostic.message),
            start: span.map(|span| span.start),
            end: span.map(|span| span.end),
            hint: diagnostic.help.as_deref().map(shortened),
        }
    }
}

impl ErrorReport {
    /// The report of `diagnostics` of `source`.
    pub fn new(source: &Source, diagnostics: &[Diagnostic], exit_code: u8) -> Self {
        let rows = diagnostics.iter().map(|diagnostic| DiagnosticRow::new(source, diagnostic)).collect();
        let error = diagnostics.first().map(FaultRow::new);
        Self { schema: "tilewright.error/1", file: source.name.clone(), exit_code, error, diagnostics: rows }
    }

    /// The JSON document, on one line.
    pub fn to_json(&self) -> String {
        crate::json::to_line(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilewright_ir::Span;

    fn source() -> Source {
        Source { name: "a.py".into(), text: "x = 1\nné = quux + 2\n".into() }
    }

    #[test]
    fn a_row_has_every_label_whatever_its_span() {
        for (start, end) in [(0, 0), (7, 8), (500, 900), (0, u32::MAX)] {
            let diagnostic =
                Diagnostic::error("x", Some(Span::new(start, end)), "m").with_label(Span::new(end, start), "second");
            assert_eq!(DiagnosticRow::new(&source(), &diagnostic).labels.len(), 2);
        }
    }

    #[test]
    fn json_counts_lines_and_characters_from_one() {
        let row = DiagnosticRow::new(&source(), &Diagnostic::error("x", Some(Span::new(12, 16)), "m"));
        assert_eq!((row.labels[0].line, row.labels[0].column), (2, 6));
        assert_eq!((row.labels[0].end_line, row.labels[0].end_column), (2, 10));
    }
}
