//! From text to shapes.

use tilewright_ir::layout::{ArrayShape, Dimension, LayoutError};
use tilewright_ir::{Diagnostic, ElementType, Span, XlaShape};

use super::layout::Places;
use super::lexer::{Token, Word, words};
use crate::source::nearest;

/// Longest text, in bytes.
const MAX_BYTES: usize = 1 << 20;
/// Deepest nesting of tuples.
const MAX_NESTING: usize = 64;

/// Reads a shape as XLA writes it.
///
/// # Errors
/// What is wrong, with its place in `text`.
pub fn read_xla_shape(text: &str) -> Result<XlaShape, Vec<Diagnostic>> {
    read(text).map_err(|found| vec![found])
}

fn read(text: &str) -> Result<XlaShape, Diagnostic> {
    if text.len() > MAX_BYTES {
        let message = format!("the text has {} bytes; at most {MAX_BYTES} are read", text.len());
        return Err(Diagnostic::error("too-large", None, message));
    }
    let tokens = words(text)?;
    let mut reader = Reader { tokens: &tokens, at: 0, depth: 0 };
    let shape = reader.shape()?;
    let found = reader.peek();
    if found.word == Word::End {
        return Ok(shape);
    }
    let help = "one shape is read: a type, extents, and at most one layout";
    Err(found.error("trailing", format!("{} stands after the end of the shape", found.described()), help))
}

/// Walks over the words.
pub(super) struct Reader<'a> {
    tokens: &'a [Token<'a>],
    at: usize,
    depth: usize,
}

pub(super) type Read<T> = Result<T, Diagnostic>;

impl Token<'_> {
    pub(super) fn error(&self, code: &'static str, message: impl Into<String>, help: &str) -> Diagnostic {
        Diagnostic::error(code, Some(self.span), message).with_help(help)
    }

    /// What it is, in words.
    pub(super) fn described(&self) -> String {
        match self.word {
            Word::End => "the end of the text".to_owned(),
            _ => format!("`{}`", self.text),
        }
    }
}

impl<'a> Reader<'a> {
    /// The next word.
    pub(super) fn peek(&self) -> Token<'a> {
        let last = self.tokens.len().saturating_sub(1);
        let end = Token { word: Word::End, span: Span::new(0, 0), text: "" };
        self.tokens.get(self.at.min(last)).copied().unwrap_or(end)
    }

    /// Takes the next word.
    pub(super) fn next(&mut self) -> Token<'a> {
        let token = self.peek();
        self.at += 1;
        token
    }

    /// Where the last word taken ends.
    pub(super) fn last_end(&self) -> u32 {
        self.at.checked_sub(1).and_then(|at| self.tokens.get(at)).map_or(0, |token| token.span.end)
    }

    /// Takes the next word if it is this sign.
    pub(super) fn eat(&mut self, sign: &str) -> Option<Token<'a>> {
        let token = self.peek();
        (matches!(token.word, Word::Sign(found) if found == sign)).then(|| self.next())
    }

    /// Takes this sign.
    pub(super) fn expect(&mut self, sign: &str, help: &str) -> Read<Token<'a>> {
        let found = self.peek();
        self.eat(sign)
            .ok_or_else(|| found.error("syntax", format!("expected `{sign}`, found {}", found.described()), help))
    }

    /// Takes the sign that closes what was opened.
    pub(super) fn close(&mut self, sign: &str, opened: Token<'_>) -> Read<Token<'a>> {
        let found = self.peek();
        let after = matches!(found.word, Word::Sign("," | "]" | "}" | ")") | Word::End);
        let help = if after { "every bracket that is opened is closed" } else { "entries are separated by commas" };
        self.eat(sign).ok_or_else(|| {
            let message = format!("expected `,` or `{sign}`, found {}", found.described());
            found.error("unclosed", message, help).with_label(opened.span, "opened here")
        })
    }

    /// A number from 0.
    pub(super) fn number(&mut self, what: &str, negative: &str) -> Read<u64> {
        let token = self.next();
        let Word::Int(value) = token.word else {
            return Err(token.error("syntax", format!("expected {what}, found {}", token.described()), negative));
        };
        let Some(value) = value else {
            let message = format!("{} is outside 64 bits", token.text);
            return Err(token.error("number", message, "numbers are at most 2^63 - 1"));
        };
        u64::try_from(value).map_err(|_| token.error("negative", format!("{value} is no {}", bare(what)), negative))
    }

    /// `shape`, one level deeper.
    pub(super) fn shape(&mut self) -> Read<XlaShape> {
        if self.depth >= MAX_NESTING {
            let message = format!("shapes nest deeper than {MAX_NESTING} levels here");
            return Err(self.peek().error("nesting", message, "use fewer tuples inside of each other"));
        }
        self.depth += 1;
        let shape = if self.peek().word == Word::Sign("(") { self.tuple() } else { self.leaf() };
        self.depth -= 1;
        shape
    }

    fn tuple(&mut self) -> Read<XlaShape> {
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

    fn leaf(&mut self) -> Read<XlaShape> {
        let name = self.next();
        let Word::Name(written) = name.word else {
            let message = format!("expected an element type, found {}", name.described());
            return Err(name.error("syntax", message, "a shape begins with its type, such as f32[3,5]"));
        };
        let special = match written {
            "token" | "TOKEN" => Some(XlaShape::Token),
            "opaque" | "OPAQUE" => Some(XlaShape::Opaque),
            _ => None,
        };
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
        let mut places = Places::with_dimensions(extents);
        let layout = if self.peek().word == Word::Sign("{") { Some(self.layout(&mut places)?) } else { None };
        places.whole = Some(Span::new(name.span.start, self.last_end()));
        match ArrayShape::new(ty, dimensions, layout) {
            Ok(array) => Ok(XlaShape::Array(array)),
            Err(error) => Err(located(error, &places)),
        }
    }

    /// The extents after `[`.
    fn dimensions(&mut self, opened: Token<'_>) -> Read<Vec<Dimension>> {
        let mut dimensions = Vec::new();
        if self.eat("]").is_some() {
            return Ok(dimensions);
        }
        let help = "extents are numbers from 0, `<=n` or `?`";
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

    /// An element type.
    pub(super) fn element_type(&mut self) -> Read<ElementType> {
        element_type(&self.next())
    }
}

/// The noun without its article.
fn bare(what: &str) -> &str {
    what.trim_start_matches("an ").trim_start_matches("a ")
}

fn element_type(token: &Token<'_>) -> Read<ElementType> {
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
                Some(name) => format!("is `{name}` meant?"),
                None => "types are such as pred, s8, u32, bf16, f32, c64".to_owned(),
            };
            Err(token.error("type", format!("{} is no element type", token.described()), &help))
        }
    }
}

fn located(error: LayoutError, places: &Places) -> Diagnostic {
    Diagnostic::error(error.code, places.of(error.place), error.message).with_help(error.help)
}
