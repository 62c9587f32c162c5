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
    /// Whether messages are wrapped at the width. Those that go to a file or a pipe are not, because tools read them line
    /// by line.
    pub is_wrapped: bool,
}

impl DiagnosticRenderer {
    /// Without colours, with excerpts 100 columns wide.
    pub const PLAIN: Self = Self { color: false, width: 100, is_wrapped: false };

    /// Renders a diagnostic with the excerpts that its labels point at. The text ends with a newline.
    pub fn render(self, source: &Source, diagnostic: &Diagnostic) -> String {
        let level = match diagnostic.severity {
            Severity::Error => Level::ERROR,
            Severity::Warning => Level::WARNING,
        };
        let name = if matches!(diagnostic.severity, Severity::Error) { "error" } else { "warning" };
        let message = self.wrapped(&shortened(&diagnostic.message), name.len() + diagnostic.code.len() + 4);
        let title = level.primary_title(message).id(diagnostic.code);
        let mut group = if diagnostic.labels.is_empty() {
            Group::with_title(title).element(annotate_snippets::Origin::path(source.name.as_str()))
        } else {
            title.element(snippet(source, diagnostic))
        };
        if let Some(help) = &diagnostic.help {
            // In front of it are the numbers of the lines, and ` = help: `.
            let used = diagnostic.labels.iter().map(|label| source.region(label.span).end_line).max().unwrap_or(1);
            let indent = used.to_string().len() + " = help: ".len();
            group = group.element(Level::HELP.message(self.wrapped(&shortened(help), indent)));
        }
        let renderer = if self.color { Renderer::styled() } else { Renderer::plain() };
        let mut text = renderer.term_width(self.width).render(&[group]);
        text.push('\n');
        text
    }
}

impl DiagnosticRenderer {
    /// The lines of a message that begins `indent` columns from the left.
    fn wrapped(self, message: &str, indent: usize) -> String {
        if !self.is_wrapped {
            return message.to_owned();
        }
        let lines = message.lines().flat_map(|line| wrapped(line, indent, indent, self.width));
        lines.collect::<Vec<_>>().join("\n")
    }

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

/// The fewest columns for words beside an indent. A narrower terminal breaks the lines itself.
const MIN_COLUMNS: usize = 12;

/// Returns the words of a text on lines that end before column `width`, if the first line begins at column `first` and
/// all others at `indent`. A part in parentheses is not broken if it fits on a line of its own.
///
/// ```
/// use tilewright_script::diagnostic::wrapped;
/// assert_eq!(wrapped("agree (seed 0, Z3 5.4.0) and more", 2, 4, 24), ["agree", "(seed 0, Z3 5.4.0)", "and more"]);
/// ```
pub fn wrapped(text: &str, first: usize, indent: usize, width: usize) -> Vec<String> {
    let room = |indent: usize| width.saturating_sub(indent).max(MIN_COLUMNS);
    let mut lines: Vec<String> = Vec::new();
    for word in unbroken(text, room(indent)) {
        let room = room(if lines.len() > 1 { indent } else { first });
        match lines.last_mut() {
            Some(last) if columns(last) + 1 + columns(word) <= room => {
                last.push(' ');
                last.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// Returns the number of columns that a text takes: that of its characters, without the codes of colours.
pub fn columns(text: &str) -> usize {
    let (mut count, mut is_code) = (0, false);
    for c in text.chars() {
        match c {
            '\u{1b}' => is_code = true,
            'm' if is_code => is_code = false,
            _ => count += usize::from(!is_code),
        }
    }
    count
}

/// Splits a text at its blanks, except those in parentheses that take at most `most` columns together.
fn unbroken(text: &str, most: usize) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = text;
    loop {
        let word_end = rest.find(' ').unwrap_or(rest.len());
        let group_end = if rest.starts_with('(') { end_of_group(rest) } else { None };
        let end = group_end.filter(|&end| end > word_end && columns(&rest[..end]) <= most).unwrap_or(word_end);
        parts.push(&rest[..end]);
        match rest.get(end + 1..) {
            Some(after) => rest = after,
            None => return parts,
        }
    }
}

/// Returns where the word ends that closes the parenthesis at the start of a text.
fn end_of_group(text: &str) -> Option<usize> {
    let mut depth = 0usize;
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return Some(text[at..].find(' ').map_or(text.len(), |blank| at + blank));
        }
    }
    None
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
        let styled = DiagnosticRenderer { color: true, ..DiagnosticRenderer::PLAIN }.render(&source(), &diagnostic);
        assert!(styled.contains('\u{1b}'));
    }

    #[test]
    fn words_go_to_the_next_line_and_none_is_lost() {
        let text = "bounds 7, flatten 3, injective 3, iteration 8, overflow 5, simulation 6, tight 3";
        let lines = wrapped(text, 49, 49, 100);
        assert!(lines.iter().all(|line| 49 + line.len() <= 100));
        assert_eq!(lines.join(" "), text);
        assert_eq!(lines.len(), 2);
        assert_eq!(wrapped(text, 49, 49, 200).len(), 1);
        assert_eq!(wrapped(text, 90, 90, 60).join(" "), text);
        for text in ["", " ", "a  (b", "a (b) c)", "( ( ) é ) x", "(((", "a (b (c d) e), f"] {
            for width in 0..30 {
                assert_eq!(wrapped(text, 0, 2, width).join(" "), text);
            }
        }
    }

    #[test]
    fn a_message_is_wrapped_on_a_terminal() {
        let diagnostic = Diagnostic::error("x", Some(Span::new(12, 16)), "word ".repeat(20).trim())
            .with_help("help ".repeat(20).trim());
        let narrow = DiagnosticRenderer { width: 40, is_wrapped: true, ..DiagnosticRenderer::PLAIN };
        let text = narrow.render(&source(), &diagnostic);
        assert!(text.lines().all(|line| line.chars().count() <= 40), "{text}");
        assert!(DiagnosticRenderer::PLAIN.render(&source(), &diagnostic).lines().any(|line| line.len() > 100));
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
