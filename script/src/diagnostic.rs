//! Source texts, positions in them, and the rendering of diagnostics with source excerpts (annotate-snippets).
//!
//! ```text
//! error[unknown-name]: `quux` is not defined
//!  --> a.py:2:6
//!   |
//! 2 | y = quux + 2
//!   |     ^^^^
//! ```

use std::ops::Range;

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use tilewright_ir::{Diagnostic, Severity, Span};

/// A source text and its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The path as it was given; `<stdin>` for standard input, `<argument>` for a part of the command line.
    pub name: String,
    /// The contents.
    pub text: String,
}

/// The position of a span in a text. Lines and columns count from 1, columns in characters; the end is exclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// The line of the first character.
    pub line: usize,
    /// The column of the first character.
    pub column: usize,
    /// The line of the end.
    pub end_line: usize,
    /// The column of the end.
    pub end_column: usize,
}

impl Source {
    /// Returns the lines and columns of a span. A span that ends behind the text or inside a character is cut to
    /// whole characters of the text.
    pub fn region(&self, span: Span) -> Region {
        let range = byte_range(&self.text, span);
        let (line, column) = line_column(&self.text, range.start);
        let (end_line, end_column) = line_column(&self.text, range.end);
        Region { line, column, end_line, end_column }
    }

    /// Returns the part of a span that is on its first line. The statement of a loop, for example, begins with the line
    /// that has the loop's header.
    pub fn first_line(&self, span: Span) -> Span {
        let range = byte_range(&self.text, span);
        let line = self.text[range].find('\n').and_then(|length| u32::try_from(length).ok());
        line.map_or(span, |length| Span::new(span.start, span.start.saturating_add(length)))
    }
}

/// The style in which diagnostics are rendered.
#[derive(Clone, Copy, Debug)]
pub struct DiagnosticRenderer {
    /// Whether to use ANSI colours.
    pub color: bool,
    /// The width of the terminal, in columns.
    pub width: usize,
}

impl DiagnosticRenderer {
    /// Without colours, 100 columns wide.
    pub const PLAIN: Self = Self { color: false, width: 100 };

    /// Renders a diagnostic with the excerpts that its labels point at. The text ends with a newline.
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
            group = group.element(Level::HELP.message(shortened(help)));
        }
        let renderer = if self.color { Renderer::styled() } else { Renderer::plain() };
        let mut text = renderer.term_width(self.width).render(&[group]);
        text.push('\n');
        text
    }
}

impl DiagnosticRenderer {
    /// Renders the place of a span: the name of the source, the line and column, and the first line of the span,
    /// underlined. The text ends with a newline.
    pub fn excerpt(self, source: &Source, span: Span) -> String {
        let place = Diagnostic::error("", Some(source.first_line(span)), "");
        let group = Group::with_level(Level::ERROR).element(snippet(source, &place));
        let renderer = if self.color { Renderer::styled() } else { Renderer::plain() };
        let mut text = renderer.term_width(self.width).render(&[group]);
        text.push('\n');
        text
    }
}

/// Returns the excerpt of the source with all labels of a diagnostic; the first one is the main one.
fn snippet<'a>(source: &'a Source, diagnostic: &'a Diagnostic) -> Snippet<'a, annotate_snippets::Annotation<'a>> {
    let mut snippet = Snippet::source(source.text.as_str()).path(source.name.as_str()).fold(true);
    for (position, label) in diagnostic.labels.iter().enumerate() {
        let kind = if position == 0 { AnnotationKind::Primary } else { AnnotationKind::Context };
        let mut annotation = kind.span(excerpt_range(&source.text, label.span));
        if !label.message.is_empty() {
            annotation = annotation.label(shortened(&label.message));
        }
        snippet = snippet.annotation(annotation);
    }
    snippet
}

/// Returns a message of at most about 2000 bytes. The middle of a longer one, which usually repeats a long word of
/// the input, is left out.
pub fn shortened(message: &str) -> String {
    const MOST: usize = 2000;
    const END: usize = 400;
    if message.len() <= MOST {
        return message.to_owned();
    }
    let start = message.floor_char_boundary(MOST - END);
    let end = message.ceil_char_boundary(message.len() - END);
    format!("{} ... {}", &message[..start], &message[end..])
}

/// Returns the bytes of a span that an excerpt underlines. Of a span that is very long on its first line, such as a name of
/// a million letters, the end is left out: everything that is underlined is printed.
fn excerpt_range(text: &str, span: Span) -> Range<usize> {
    const MOST: usize = 240;
    let range = byte_range(text, span);
    let line = &text.as_bytes()[range.clone()];
    let length = line.iter().take(MOST + 1).position(|&byte| byte == b'\n').unwrap_or(line.len());
    if length <= MOST { range } else { range.start..text.floor_char_boundary(range.start + MOST) }
}

/// Returns the bytes of a span, clamped to the text and to character boundaries.
fn byte_range(text: &str, span: Span) -> Range<usize> {
    let start = floor_boundary(text, span.start);
    let end = floor_boundary(text, span.end).max(start);
    start..end
}

/// Returns the character boundary at or before an offset.
fn floor_boundary(text: &str, offset: u32) -> usize {
    let offset = usize::try_from(offset).unwrap_or(usize::MAX);
    text.floor_char_boundary(offset)
}

/// Returns the line and the column of a byte offset, both counted from 1; the column counts characters.
fn line_column(text: &str, offset: usize) -> (usize, usize) {
    let before = &text[..offset];
    let line = before.matches('\n').count() + 1;
    let start = before.rfind('\n').map_or(0, |newline| newline + 1);
    (line, before[start..].chars().count() + 1)
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
            for label in &diagnostic.labels {
                let region = source().region(label.span);
                assert!((1..=3).contains(&region.line) && region.line <= region.end_line, "{region:?}");
            }
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
    fn lines_and_characters_count_from_one() {
        let region = source().region(Span::new(12, 16));
        assert_eq!((region.line, region.column), (2, 6));
        assert_eq!((region.end_line, region.end_column), (2, 10));
    }
}
