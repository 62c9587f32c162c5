//! The parser of XLA's shapes.

use tilewright_ir::layout::{ArrayShape, Dimension, Layout, LayoutError};
use tilewright_ir::{Diagnostic, ElementType, Span, XlaShape};

use super::layout::PartSpans;
use super::lexer::{Token, Word, tokenize};
use crate::source::nearest;
use crate::tile_layout::MAX_RANK;

/// The greatest length of a text, in bytes.
const MAX_BYTES: usize = 1 << 20;
/// The greatest nesting depth of tuples and of physical shapes.
const MAX_NESTING: usize = 64;

/// Reads a shape in XLA's notation.
///
/// # Errors
/// The first problem found, located in `text`: a syntax error, or a layout that does not fit its array.
pub fn read_xla_shape(text: &str) -> Result<XlaShape, Vec<Diagnostic>> {
    read(text).map_err(|found| vec![found])
}

/// Reads tiles without the layout around them, such as `(8,128)(2,1)`, for a row-major array of `rank` dimensions.
///
/// # Errors
/// The first problem found, located in `text`: a syntax error, or tiles that do not fit the array.
pub fn read_xla_tiles(text: &str, rank: usize) -> Result<Layout, Diagnostic> {
    check_length(text)?;
    if rank > MAX_RANK {
        let message = format!("layouts of at most {MAX_RANK} dimensions are read, not of {rank}");
        return Err(Diagnostic::error("layout", None, message).with_help("fuse axes"));
    }
    let tokens = tokenize(text)?;
    let mut parser = Parser { tokens: &tokens, at: 0, depth: 0 };
    let mut spans = PartSpans::default();
    let tiles = parser.tiles(&mut spans)?;
    let found = parser.peek();
    if found.word != Word::End {
        let message = format!("{} follows the end of the tiles", found.describe());
        return Err(found.error("trailing", message, "tiles are lists of sizes, such as (8,128)(2,1)"));
    }
    spans.whole = Some(Span::new(0, parser.last_end()));
    let layout = Layout::row_major(rank).with_tiles(tiles);
    // Extents of 1 fit every layout; the real ones may be symbolic.
    let ones = vec![Dimension::Static(1); rank];
    match ArrayShape::new(ElementType::Pred, ones, Some(layout)) {
        Ok(array) => Ok(array.layout_or_default()),
        Err(error) => Err(layout_diagnostic(error, &spans)),
    }
}

/// Refuses a text that is too long.
fn check_length(text: &str) -> Result<(), Diagnostic> {
    if text.len() <= MAX_BYTES {
        return Ok(());
    }
    let message = format!("the text has {} bytes; at most {MAX_BYTES} are read", text.len());
    Err(Diagnostic::error("too-large", None, message))
}

/// Reads a shape and checks that nothing follows it.
fn read(text: &str) -> Result<XlaShape, Diagnostic> {
    check_length(text)?;
    let tokens = tokenize(text)?;
    let mut parser = Parser { tokens: &tokens, at: 0, depth: 0 };
    let shape = parser.shape()?;
    let found = parser.peek();
    if found.word == Word::End {
        return Ok(shape);
    }
    let help = "one shape is read: a type, extents, and at most one layout";
    Err(found.error("trailing", format!("{} follows the end of the shape", found.describe()), help))
}

/// A recursive-descent parser over the tokens of a text.
pub(super) struct Parser<'a> {
    /// The tokens; the last one is [`Word::End`].
    tokens: &'a [Token<'a>],
    /// The index of the next token.
    at: usize,
    /// The number of shapes around the current one.
    depth: usize,
}

/// The result of a parsing method. The first error ends the parsing.
pub(super) type Parsed<T> = Result<T, Diagnostic>;

impl Token<'_> {
    /// Creates an error located at the token.
    pub(super) fn error(&self, code: &'static str, message: impl Into<String>, help: &str) -> Diagnostic {
        Diagnostic::error(code, Some(self.span), message).with_help(help)
    }

    /// Returns the token in quotes, or a description of the end of the text.
    pub(super) fn describe(&self) -> String {
        match self.word {
            Word::End => "the end of the text".to_owned(),
            _ => format!("`{}`", self.text),
        }
    }
}

impl<'a> Parser<'a> {
    /// Returns the next token without consuming it. At the end this is [`Word::End`] again and again.
    pub(super) fn peek(&self) -> Token<'a> {
        let last = self.tokens.len().saturating_sub(1);
        let end = Token { word: Word::End, span: Span::new(0, 0), text: "" };
        self.tokens.get(self.at.min(last)).copied().unwrap_or(end)
    }

    /// Consumes and returns the next token.
    pub(super) fn next(&mut self) -> Token<'a> {
        let token = self.peek();
        self.at += 1;
        token
    }

    /// Returns the offset at which the token consumed last ends.
    pub(super) fn last_end(&self) -> u32 {
        self.at.checked_sub(1).and_then(|at| self.tokens.get(at)).map_or(0, |token| token.span.end)
    }

    /// Consumes the next token if it is the sign `sign`.
    pub(super) fn eat(&mut self, sign: &str) -> Option<Token<'a>> {
        let token = self.peek();
        (matches!(token.word, Word::Sign(found) if found == sign)).then(|| self.next())
    }

    /// Consumes the sign `sign`, or fails with the hint `help`.
    pub(super) fn expect(&mut self, sign: &str, help: &str) -> Parsed<Token<'a>> {
        let found = self.peek();
        self.eat(sign)
            .ok_or_else(|| found.error("syntax", format!("expected `{sign}`, found {}", found.describe()), help))
    }

    /// Consumes the bracket that closes `opened`, or fails with a label on both brackets.
    pub(super) fn close(&mut self, sign: &str, opened: Token<'_>) -> Parsed<Token<'a>> {
        let found = self.peek();
        let after = matches!(found.word, Word::Sign("," | "]" | "}" | ")") | Word::End);
        let help = if after { "every bracket that is opened is closed" } else { "entries are separated by commas" };
        self.eat(sign).ok_or_else(|| {
            let message = format!("expected `,` or `{sign}`, found {}", found.describe());
            found.error("unclosed", message, help).with_label(opened.span, "opened here")
        })
    }

    /// Consumes a number that is at least 0. `what` names it in errors, with its article; `negative` is the help for
    /// other tokens and for negative numbers.
    pub(super) fn number(&mut self, what: &str, negative: &str) -> Parsed<u64> {
        self.number_of_at_least(0, what, negative)
    }

    /// Consumes a number as [`Parser::number`] does. The error of a negative one says that it has to be at least
    /// `least`; whether another one is too small is checked with the layout.
    pub(super) fn number_of_at_least(&mut self, least: u64, what: &str, negative: &str) -> Parsed<u64> {
        let token = self.next();
        let Word::Int(value) = token.word else {
            return Err(token.error("syntax", format!("expected {what}, found {}", token.describe()), negative));
        };
        let Some(value) = value else {
            let message = format!("{} is outside 64 bits", token.text);
            return Err(token.error("number", message, "numbers are at most 2^63 - 1"));
        };
        let message = || format!("{value} is negative, and {what} is at least {least}");
        u64::try_from(value).map_err(|_| token.error("negative", message(), negative))
    }

    /// Reads a shape, one level deeper than the shape around it.
    pub(super) fn shape(&mut self) -> Parsed<XlaShape> {
        if self.depth >= MAX_NESTING {
            let message = format!("shapes nest deeper than {MAX_NESTING} levels here");
            return Err(self.peek().error("nesting", message, "use fewer tuples inside of each other"));
        }
        self.depth += 1;
        let shape = if self.peek().word == Word::Sign("(") { self.tuple() } else { self.leaf() };
        self.depth -= 1;
        shape
    }

    /// Reads a tuple of shapes: `(f32[3], s8[2])`.
    fn tuple(&mut self) -> Parsed<XlaShape> {
        let opened = self.next();
        let mut parts = Vec::new();
        if self.eat(")").is_some() {
            return Ok(XlaShape::Tuple(parts));
        }
        loop {
            parts.push(self.shape()?);
            if self.eat(",").is_none() {
                break;
            }
        }
        self.close(")", opened)?;
        Ok(XlaShape::Tuple(parts))
    }

    /// Reads an array, `token[]` or `opaque[]`.
    fn leaf(&mut self) -> Parsed<XlaShape> {
        let name = self.next();
        let Word::Name(written) = name.word else {
            let message = format!("expected an element type, found {}", name.describe());
            return Err(name.error("syntax", message, "a shape begins with its type, such as f32[3,5]"));
        };
        let special = match written {
            "token" | "TOKEN" => Some(XlaShape::Token),
            "opaque" | "OPAQUE" => Some(XlaShape::Opaque),
            _ => None,
        };
        // `token` and `opaque` are no element types, but their brackets are read like those of an array, so that an extent
        // in them gets its own error.
        let ty = if special.is_some() { None } else { Some(element_type(&name)?) };
        let opened = self.expect("[", "extents follow the type; a scalar has none: f32[]")?;
        let dimensions = self.dimensions(opened)?;
        let extents = Span::new(opened.span.start, self.last_end());
        let Some(ty) = ty else {
            if !dimensions.is_empty() {
                let message = format!("{written} has no extents");
                let found = Diagnostic::error("extent", Some(extents), message);
                return Err(found.with_help(format!("write {written}[]")));
            }
            if self.peek().word == Word::Sign("{") {
                let message = format!("{written} has no layout");
                return Err(self.peek().error("layout", message, "leave it out"));
            }
            return Ok(special.unwrap_or(XlaShape::Token));
        };
        let mut spans = PartSpans::with_dimensions(extents);
        let layout = if self.peek().word == Word::Sign("{") { Some(self.layout(&mut spans)?) } else { None };
        spans.whole = Some(Span::new(name.span.start, self.last_end()));
        match ArrayShape::new(ty, dimensions, layout) {
            Ok(array) => Ok(XlaShape::Array(array)),
            Err(error) => Err(layout_diagnostic(error, &spans)),
        }
    }

    /// Reads the extents after `[`, and the closing bracket.
    fn dimensions(&mut self, opened: Token<'_>) -> Parsed<Vec<Dimension>> {
        let mut dimensions = Vec::new();
        if self.eat("]").is_some() {
            return Ok(dimensions);
        }
        let help = "extents are numbers that are at least 0, `<=n` or `?`";
        loop {
            dimensions.push(if self.eat("?").is_some() {
                Dimension::Unbounded
            } else if self.eat("<=").is_some() {
                Dimension::Bounded(self.number("a bound", help)?)
            } else {
                Dimension::Static(self.number("an extent", help)?)
            });
            if self.eat(",").is_none() {
                break;
            }
        }
        self.close("]", opened)?;
        Ok(dimensions)
    }

    /// Reads an element type.
    pub(super) fn element_type(&mut self) -> Parsed<ElementType> {
        element_type(&self.next())
    }
}

/// Returns the element type that a token names. Mixed case is an error, because XLA prints lower case and its page
/// upper case.
fn element_type(token: &Token<'_>) -> Parsed<ElementType> {
    let lower = token.text.to_ascii_lowercase();
    let uniform = token.text == lower || token.text == token.text.to_ascii_uppercase();
    match ElementType::from_name(&lower) {
        Some(ty) if uniform => Ok(ty),
        Some(ty) => {
            let help = format!("write `{ty}`");
            Err(token.error("type", format!("`{}` mixes upper and lower case", token.text), &help))
        }
        None => {
            let names = ElementType::ALL.map(ElementType::name);
            let help = match nearest(token.text, names) {
                Some(name) => format!("did you mean `{name}`?"),
                None => "types are such as pred, s8, u32, bf16, f32, c64".to_owned(),
            };
            Err(token.error("type", format!("{} is not an element type", token.describe()), &help))
        }
    }
}

/// Converts an error about parts of a shape into a diagnostic located at the part.
fn layout_diagnostic(error: LayoutError, spans: &PartSpans) -> Diagnostic {
    Diagnostic::error(error.code, spans.span_of(error.part), error.message).with_help(error.help)
}
