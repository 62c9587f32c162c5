//! Diagnostics with source excerpts, for people (annotate-snippets) and for machines (JSON).

use std::ops::Range;

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use serde::Serialize;
use tilewright_ir::{Diagnostic, Severity, Span};

/// A text that was read, and the name to call it by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The path as it was given; `<stdin>` for standard input, `<argument>` for a part of the command line.
    pub name: String,
    /// What was read.
    pub text: String,
}

/// How diagnostics are rendered.
#[derive(Clone, Copy, Debug)]
pub struct DiagnosticRenderer {
    /// With ANSI colours.
    pub color: bool,
    /// Columns of the terminal.
    pub width: usize,
}

impl DiagnosticRenderer {
    /// Plain text, 100 columns.
    pub const PLAIN: Self = Self { color: false, width: 100 };

    /// One diagnostic with the excerpts that its labels point at; ends with a newline.
    pub fn render(self, source: &Source, diagnostic: &Diagnostic) -> String {
        let level = match diagnostic.severity {
            Severity::Error => Level::ERROR,
            Severity::Warning => Level::WARNING,
        };
        let title = level.primary_title(shortened(&diagnostic.message)).id(diagnostic.code);
        let mut group = if diagnostic.labels.is_empty() {
            Group::with_title(title).element(annotate_snippets::Origin::path(source.name.as_str()))
        } else {
            title.element(snippet(source, diagnostic))
        };
        if let Some(help) = &diagnostic.help {
            group = group.element(Level::HELP.message(help.as_str()));
        }
        let renderer = if self.color { Renderer::styled() } else { Renderer::plain() };
        let mut text = renderer.term_width(self.width).render(&[group]);
        text.push('\n');
        text
    }
}

fn snippet<'a>(source: &'a Source, diagnostic: &'a Diagnostic) -> Snippet<'a, annotate_snippets::Annotation<'a>> {
    let mut snippet = Snippet::source(source.text.as_str()).path(source.name.as_str()).fold(true);
    for (position, label) in diagnostic.labels.iter().enumerate() {
        let kind = if position == 0 { AnnotationKind::Primary } else { AnnotationKind::Context };
        let mut annotation = kind.span(byte_range(&source.text, label.span));
        if !label.message.is_empty() {
            annotation = annotation.label(label.message.as_str());
        }
        snippet = snippet.annotation(annotation);
    }
    snippet
}

/// A message that repeats a word of any length is cut in its middle.
fn shortened(message: &str) -> String {
    const MOST: usize = 2000;
    const END: usize = 400;
    if message.len() <= MOST {
        return message.to_owned();
    }
    let start = message.floor_char_boundary(MOST - END);
    let end = message.ceil_char_boundary(message.len() - END);
    format!("{} ... {}", &message[..start], &message[end..])
}

/// The bytes of a span, inside the text and on the borders of characters.
fn byte_range(text: &str, span: Span) -> Range<usize> {
    let start = floor_boundary(text, span.start);
    let end = floor_boundary(text, span.end).max(start);
    start..end
}

fn floor_boundary(text: &str, offset: u32) -> usize {
    let offset = usize::try_from(offset).unwrap_or(usize::MAX);
    text.floor_char_boundary(offset)
}

/// A diagnostic as JSON has it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DiagnosticRow {
    /// `error` or `warning`.
    pub severity: &'static str,
    /// Stable short name.
    pub code: String,
    /// One sentence.
    pub message: String,
    /// Places, the main one first.
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
    /// What is there; may be empty.
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
            let range = byte_range(&source.text, label.span);
            let ((line, column), (end_line, end_column)) =
                (line_column(&source.text, range.start), line_column(&source.text, range.end));
            LabelRow { line, column, end_line, end_column, message: label.message.clone() }
        };
        Self {
            severity,
            code: diagnostic.code.to_owned(),
            message: shortened(&diagnostic.message),
            labels: diagnostic.labels.iter().map(label).collect(),
            help: diagnostic.help.clone(),
        }
    }
}

/// Line and column of a byte, both from 1, the column in characters.
fn line_column(text: &str, offset: usize) -> (usize, usize) {
    let before = &text[..offset];
    let line = before.matches('\n').count() + 1;
    let start = before.rfind('\n').map_or(0, |newline| newline + 1);
    (line, before[start..].chars().count() + 1)
}

/// What `--format json` prints in the place of a result that could not be had: schema `tilewright.error/1`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ErrorReport {
    /// `tilewright.error/1`.
    pub schema: &'static str,
    /// What was read.
    pub file: String,
    /// The exit code that goes with it.
    pub exit_code: u8,
    /// The first that is wrong, with its place in bytes.
    pub error: Option<FaultRow>,
    /// All that is wrong, at least one entry.
    pub diagnostics: Vec<DiagnosticRow>,
}

/// One fault in short. Offsets count bytes of the text from 0, the end is exclusive; null where it has no place.
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
            hint: diagnostic.help.clone(),
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
        super::check::to_line(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source() -> Source {
        Source { name: "a.py".into(), text: "x = 1\nné = quux + 2\n".into() }
    }

    #[test]
    fn an_excerpt_points_at_the_place_and_gives_the_help() {
        let diagnostic = Diagnostic::error("unknown-name", Some(Span::new(12, 16)), "`quux` is not defined")
            .with_help("define it first");
        let text = DiagnosticRenderer::PLAIN.render(&source(), &diagnostic);
        assert!(text.starts_with("error[unknown-name]: `quux` is not defined\n"), "{text}");
        assert!(text.contains("a.py:2:6"), "{text}");
        assert!(text.contains("né = quux + 2"), "{text}");
        assert!(text.contains("^^^^"), "{text}");
        assert!(text.contains("help: define it first"), "{text}");
        assert!(!text.contains('\u{1b}'));
        let styled = DiagnosticRenderer { color: true, width: 100 }.render(&source(), &diagnostic);
        assert!(styled.contains('\u{1b}'));
    }

    #[test]
    fn spans_outside_the_text_or_inside_a_character_do_not_panic() {
        for (start, end) in [(0, 0), (7, 8), (8, 8), (500, 900), (22, 22), (0, u32::MAX), (23, 23)] {
            let diagnostic =
                Diagnostic::error("x", Some(Span::new(start, end)), "m").with_label(Span::new(end, start), "second");
            assert!(DiagnosticRenderer::PLAIN.render(&source(), &diagnostic).contains("error[x]: m"));
            assert_eq!(DiagnosticRow::new(&source(), &diagnostic).labels.len(), 2);
        }
        let empty = Source { name: "<stdin>".into(), text: String::new() };
        let diagnostic = Diagnostic::error("empty", Some(Span::new(0, 0)), "nothing here");
        assert!(DiagnosticRenderer::PLAIN.render(&empty, &diagnostic).contains("<stdin>"));
    }

    #[test]
    fn a_diagnostic_without_a_place_names_the_file() {
        let text = DiagnosticRenderer::PLAIN.render(&source(), &Diagnostic::error("no-function", None, "no function"));
        assert!(text.contains("a.py"), "{text}");
    }

    #[test]
    fn json_counts_lines_and_characters_from_one() {
        let row = DiagnosticRow::new(&source(), &Diagnostic::error("x", Some(Span::new(12, 16)), "m"));
        assert_eq!((row.labels[0].line, row.labels[0].column), (2, 6));
        assert_eq!((row.labels[0].end_line, row.labels[0].end_column), (2, 10));
    }
}
