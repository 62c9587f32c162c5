//! Tokens of XLA's notation: names, numbers and signs, each with its location.

use tilewright_ir::{Diagnostic, Span};

/// The kinds of tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Word<'a> {
    /// A letter or `_`, followed by letters, digits, `_`, `.` and `-`.
    Name(&'a str),
    /// A decimal integer; `None` if it does not fit into 64 bits.
    Int(Option<i64>),
    /// One of `[]{}(),:*#+~?` or `<=`.
    Sign(&'static str),
    /// The end of the text.
    End,
}

/// A token and its location.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token<'a> {
    /// The kind of token, with its value.
    pub(super) word: Word<'a>,
    /// The location.
    pub(super) span: Span,
    /// The token as it is written.
    pub(super) text: &'a str,
}

/// All signs. None is a prefix of another one.
const SIGNS: [&str; 14] = ["[", "]", "{", "}", "(", ")", ",", ":", "*", "#", "+", "~", "?", "<="];

/// Splits `text`, which is shorter than 2^32 bytes, into tokens. The last token is [`Word::End`].
///
/// # Errors
/// A comment is not closed, a number is malformed, or a character does not belong to any token.
pub(super) fn tokenize(text: &str) -> Result<Vec<Token<'_>>, Diagnostic> {
    let mut tokens = Vec::new();
    let mut at = 0;
    loop {
        at = skip_whitespace(text, at)?;
        let rest = text.get(at..).unwrap_or_default();
        let (word, length) = match rest.bytes().next() {
            None => (Word::End, 0),
            Some(first) if first.is_ascii_alphabetic() || first == b'_' => {
                let length = name_length(rest);
                (Word::Name(&rest[..length]), length)
            }
            Some(first) if first.is_ascii_digit() || first == b'-' => number(rest, at)?,
            Some(_) => match SIGNS.iter().find(|sign| rest.starts_with(**sign)) {
                Some(sign) => (Word::Sign(sign), sign.len()),
                None => return Err(unknown_character(rest, at)),
            },
        };
        tokens.push(Token { word, span: span(at, at + length), text: &rest[..length] });
        if word == Word::End {
            return Ok(tokens);
        }
        at += length;
    }
}

/// Creates a location from byte offsets.
pub(super) fn span(start: usize, end: usize) -> Span {
    let offset = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
    Span::new(offset(start), offset(end))
}

/// Returns the offset of the next token at or after `at`, behind whitespace and comments. XLA's whitespace is space,
/// tab and line ends.
///
/// # Errors
/// A comment is not closed.
fn skip_whitespace(text: &str, mut at: usize) -> Result<usize, Diagnostic> {
    loop {
        let rest = text.get(at..).unwrap_or_default();
        let trimmed = rest.trim_start_matches([' ', '\t', '\n', '\r']);
        at += rest.len() - trimmed.len();
        if let Some(comment) = trimmed.strip_prefix("/*") {
            let Some(length) = comment.find("*/") else {
                let message = "the comment is not closed";
                let help = "a comment that begins with `/*` ends with `*/`";
                return Err(Diagnostic::error("comment", Some(span(at, at + 2)), message).with_help(help));
            };
            at += length + 4;
        } else if let Some(comment) = trimmed.strip_prefix("//") {
            at += 2 + comment.find(['\n', '\r']).unwrap_or(comment.len());
        } else {
            return Ok(at);
        }
    }
}

/// Returns the length of the name characters at the start of `rest`, in bytes.
fn name_length(rest: &str) -> usize {
    rest.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-'))).unwrap_or(rest.len())
}

/// Reads the integer at the start of `rest`, and returns its length in bytes.
///
/// # Errors
/// A minus without digits, or digits followed by name characters, as in `3x5` or `3.5`.
fn number(rest: &str, at: usize) -> Result<(Word<'_>, usize), Diagnostic> {
    let digits = rest.strip_prefix('-').unwrap_or(rest);
    let count = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    let length = rest.len() - digits.len() + count;
    let more = name_length(&rest[length..]);
    if count == 0 || more > 0 {
        let whole = &rest[..length + more];
        let message = format!("`{whole}` is not a number");
        let help = "numbers are decimal integers";
        return Err(Diagnostic::error("number", Some(span(at, at + whole.len())), message).with_help(help));
    }
    Ok((Word::Int(rest[..length].parse().ok()), length))
}

/// Creates the error for a character that does not belong to any token, with a hint about what may be meant.
fn unknown_character(rest: &str, at: usize) -> Diagnostic {
    let Some(first) = rest.chars().next() else { return Diagnostic::error("character", None, "nothing is here") };
    let place = span(at, at + first.len_utf8());
    let help = match first {
        '<' | '=' => "a dynamic extent with a bound is written `<=5`",
        '∗' | '×' | '＊' => "a combined dimension is written with an ASCII `*`",
        '/' => "comments are `/* ... */` or `// ...`",
        _ => "a shape is written such as f32[3,5]{1,0:T(2,2)}",
    };
    Diagnostic::error("character", Some(place), format!("unexpected character {first:?}")).with_help(help)
}
