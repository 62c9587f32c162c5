//! What both readers share: deserialization by serde, strings with spans, and the limit on reported errors.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, Visitor};
use serde_json::error::Category;
use tilewright_ir::{Diagnostic, Span};

/// Maximal number of errors that are reported for one file.
pub(super) const MAX_FAULTS: usize = 20;

/// U+FEFF, which some editors write before the first character of a file.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// The two formats that [`super::read`] accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// `tilewright.graph/1`.
    Native,
    /// TVM's graph executor.
    Executor,
}

/// The two fields that distinguish the formats.
#[derive(Deserialize)]
struct Probe {
    schema: Option<IgnoredAny>,
    nodes: Option<IgnoredAny>,
}

/// The format of a text, decided by the presence of `schema` or `nodes`.
pub(super) fn form(text: &str) -> Result<Form, Diagnostic> {
    let Strict(probe) = parse::<Strict<Probe>>(text)?;
    match (probe.schema, probe.nodes) {
        (Some(_), _) => Ok(Form::Native),
        (None, Some(_)) => Ok(Form::Executor),
        (None, None) => Err(Diagnostic::error("graph-json", None, "the object has neither `schema` nor `nodes`")
            .with_help("a graph begins {\"schema\": \"tilewright.graph/1\", \"tensors\": [...]; TVM's has \"nodes\"")),
    }
}

/// Deserializes JSON; an error of serde becomes a diagnostic with its span.
pub(super) fn parse<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, Diagnostic> {
    if text.starts_with(BYTE_ORDER_MARK) {
        let message = "the text begins with a byte order mark, which is no part of JSON";
        let place = span(0, BYTE_ORDER_MARK.len_utf8());
        return Err(Diagnostic::error("graph-json", Some(place), message).with_help("save it as UTF-8 without one"));
    }
    serde_json::from_str(text).map_err(|error| {
        let message = error.to_string();
        let place = format!(" at line {} column {}", error.line(), error.column());
        let message = message.strip_suffix(&place).unwrap_or(&message);
        let (kind, help) = match error.classify() {
            Category::Eof => ("the text ends too early: ", "close every bracket and every quote that is open"),
            Category::Syntax | Category::Io => ("", "a graph is JSON; the text up to here is read, and this is not"),
            Category::Data => ("", "docs/schemas.md lists the fields of a graph, and what each of them holds"),
        };
        let place = place_of(text, error.line(), error.column());
        Diagnostic::error("graph-json", Some(place), format!("{kind}{message}")).with_help(help)
    })
}

/// The span of the word, the number or the string whose last character is at a line and a column as serde counts them:
/// from 1, columns in bytes. Any other character is a span of its own.
fn place_of(text: &str, line: usize, column: usize) -> Span {
    let before: usize = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    let at = text.floor_char_boundary((before + column.saturating_sub(1)).min(text.len()));
    let end = at + text[at..].chars().next().map_or(0, char::len_utf8);
    let of_word = |c: char| c.is_ascii_alphanumeric() || ['+', '-', '.', '_'].contains(&c);
    let start = match text[at..end].chars().next() {
        Some('"') => text[..at].rfind('"').filter(|_| !text[..at].ends_with([':', ',', '[', '{', ' ', '\n'])),
        Some(c) if of_word(c) => Some(at - text[..at].chars().rev().take_while(|&c| of_word(c)).count()),
        _ => None,
    };
    span(start.unwrap_or(at), end)
}

/// A whole number of 0 to 2^63 - 1. Serde's own errors would name a type of Rust.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Number<T>(pub(super) T);

impl<'de, T: TryFrom<u64>> Deserialize<'de> for Number<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Whole<T>(PhantomData<T>);
        impl<T: TryFrom<u64>> Visitor<'_> for Whole<T> {
            type Value = T;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a whole number")
            }
            fn visit_u64<E: Error>(self, value: u64) -> Result<T, E> {
                let fits = value <= i64::MAX.unsigned_abs();
                T::try_from(value)
                    .ok()
                    .filter(|_| fits)
                    .ok_or_else(|| E::custom(format!("{value} is above the largest number, 2^63 - 1")))
            }
            fn visit_i64<E: Error>(self, value: i64) -> Result<T, E> {
                Err(E::custom(format!("{value} is negative: extents and positions are at least 0")))
            }
            fn visit_f64<E: Error>(self, _: f64) -> Result<T, E> {
                Err(E::custom("this is not a whole number of 0 to 2^63 - 1"))
            }
        }
        deserializer.deserialize_u64(Whole(PhantomData)).map(Self)
    }
}

/// A list of whole numbers.
#[derive(Clone, Debug)]
pub(super) struct Numbers<T>(Vec<T>);

impl<T> Default for Numbers<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> std::ops::Deref for Numbers<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<'de, T: TryFrom<u64>> Deserialize<'de> for Numbers<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let numbers = Vec::<Number<T>>::deserialize(deserializer)?;
        Ok(Self(numbers.into_iter().map(|Number(number)| number).collect()))
    }
}

/// The span from byte `start` to byte `end`. Positions are 32 bits wide; texts are shorter than 4 GiB.
pub(super) fn span(start: usize, end: usize) -> Span {
    Span::new(u32::try_from(start).unwrap_or(u32::MAX), u32::try_from(end).unwrap_or(u32::MAX))
}

/// A value that has to be a JSON object. Serde alone would also accept a list of the fields' values.
#[derive(Debug)]
pub(super) struct Strict<T>(pub(super) T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Strict<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Object<T> {
            type Value = T;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map))
            }
        }
        deserializer.deserialize_map(Object(PhantomData)).map(Self)
    }
}

/// A string of the file. It borrows from the file unless it contains escapes, so its span follows from its address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Text<'a>(Cow<'a, str>);

impl Text<'_> {
    /// The contents.
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    /// Its span in `file`, including the quotes; `None` if the string contains escapes.
    pub(super) fn span(&self, file: &str) -> Option<Span> {
        let Cow::Borrowed(text) = self.0 else { return None };
        let start = text.as_ptr().addr().checked_sub(file.as_ptr().addr())?;
        let end = start + text.len();
        (end < file.len() && start > 0).then(|| span(start - 1, end + 1))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Words;
        impl<'de> Visitor<'de> for Words {
            type Value = Cow<'de, str>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text")
            }
            fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Cow::Borrowed(text))
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Cow::Owned(text.to_owned()))
            }
        }
        deserializer.deserialize_str(Words).map(Self)
    }
}

/// Sorts errors by position and cuts them after [`MAX_FAULTS`], with a note about how many were left out.
pub(super) fn sorted_and_truncated(mut faults: Vec<Diagnostic>) -> Vec<Diagnostic> {
    faults.sort_by_key(|fault| fault.labels.first().map(|label| label.span));
    let more = faults.len().saturating_sub(MAX_FAULTS);
    if more > 0 {
        faults.truncate(MAX_FAULTS);
        faults.push(Diagnostic::error("graph-json", None, format!("{more} more errors are not shown")));
    }
    faults
}

/// The error for an element type or a scope that cannot be parsed.
pub(super) fn unreadable(text: &Text<'_>, file: &str, code: &'static str, error: &dyn fmt::Display) -> Diagnostic {
    Diagnostic::error(code, text.span(file), error.to_string())
}
