//! Words of XLA's text: names, numbers, signs, each with its place.

use tilewright_ir::{Diagnostic, Span};

/// A word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Word<'a> {
    /// Letters, digits, `_`, `.` and `-` after a letter or `_`.
    Name(&'a str),
    /// An integer; none if it is outside 64 bits.
    Int(Option<i64>),
    /// One of `[]{}(),:*#+~?` or `<=`.
    Sign(&'static str),
    /// The end of the text.
    End,
}

/// A word and where it stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token<'a> {
    pub(super) word: Word<'a>,
    pub(super) span: Span,
    /// As it is written.
    pub(super) text: &'a str,
}

const SIGNS: [&str; 14] = ["[", "]", "{", "}", "(", ")", ",", ":", "*", "#", "+", "~", "?", "<="];

/// The words of `text`, the last one [`Word::End`]. `text` is shorter than 2^32 bytes.
pub(super) fn words(text: &str) -> Result<Vec<Token<'_>>, Diagnostic> {
    let mut tokens = Vec::new();
    let mut at = 0;
    loop {
        at = skip_blanks(text, at)?;
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
                None => return Err(strange(rest, at)),
            },
        };
        tokens.push(Token { word, span: span(at, at + length), text: &rest[..length] });
        if word == Word::End {
            return Ok(tokens);
        }
        at += length;
    }
}

pub(super) fn span(start: usize, end: usize) -> Span {
    let offset = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
    Span::new(offset(start), offset(end))
}

/// The offset of the next word. XLA's blanks are space, tab and line ends.
fn skip_blanks(text: &str, mut at: usize) -> Result<usize, Diagnostic> {
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

fn name_length(rest: &str) -> usize {
    rest.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-'))).unwrap_or(rest.len())
}

fn number(rest: &str, at: usize) -> Result<(Word<'_>, usize), Diagnostic> {
    let digits = rest.strip_prefix('-').unwrap_or(rest);
    let count = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    let length = rest.len() - digits.len() + count;
    let more = name_length(&rest[length..]);
    if count == 0 || more > 0 {
        let whole = &rest[..length + more];
        let message = format!("`{whole}` is no number");
        let help = "numbers are decimal integers";
        return Err(Diagnostic::error("number", Some(span(at, at + whole.len())), message).with_help(help));
    }
    Ok((Word::Int(rest[..length].parse().ok()), length))
}

fn strange(rest: &str, at: usize) -> Diagnostic {
    let Some(first) = rest.chars().next() else { return Diagnostic::error("character", None, "nothing is here") };
    let place = span(at, at + first.len_utf8());
    let help = match first {
        '<' | '=' => "a dynamic extent with a bound is written `<=5`",
        '∗' | '×' | '＊' => "a combined dimension is written with an ASCII `*`",
        '/' => "comments are `/* ... */` or `// ...`",
        _ => "a shape is written such as f32[3,5]{1,0:T(2,2)}",
    };
    Diagnostic::error("character", Some(place), format!("{first:?} has no meaning here")).with_help(help)
}
