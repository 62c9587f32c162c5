//! A logical index as text, such as `2,3`, with the place of each number.

use std::ops::Range;

use tilewright_ir::{Diagnostic, Span};
use tilewright_script::Source;

use super::failure::Failure;

const HELP: &str = "give one integer for each axis, such as 2,3";

/// An index that was read.
#[derive(Clone, Debug)]
pub(super) struct Point {
    /// The text.
    pub(super) source: Source,
    /// The numbers.
    pub(super) index: Vec<i128>,
    /// Where each number is.
    places: Vec<Range<usize>>,
}

impl Point {
    /// Reads `1,2`, also in brackets.
    ///
    /// # Errors
    /// A part is no integer.
    pub(super) fn read(source: Source) -> Result<Self, Failure> {
        let (mut index, mut places) = (Vec::new(), Vec::new());
        for place in parts(&source.text) {
            let part = &source.text[place.clone()];
            let Ok(number) = part.parse() else {
                let message = format!("`{part}` is no integer");
                return Err(fault(&source, place, "bad-index", message, HELP));
            };
            index.push(number);
            places.push(place);
        }
        Ok(Self { source, index, places })
    }

    /// Checks that there is an index for each of `rank` axes of `what`.
    ///
    /// # Errors
    /// There are more or fewer.
    pub(super) fn check_rank(&self, rank: usize, what: &str) -> Result<(), Failure> {
        let count = self.index.len();
        if count == rank {
            return Ok(());
        }
        let message = format!("the index has {count} numbers, {what} {rank} axes");
        Err(fault(&self.source, 0..self.source.text.len(), "index-rank", message, HELP))
    }

    /// The error of a number that is outside of its axis; `range` says where it has to be.
    pub(super) fn outside(&self, axis: usize, what: &str, range: &str) -> Failure {
        let index = self.index.get(axis).copied().unwrap_or_default();
        let message = format!("index {index} of axis {axis} is outside {what}: it has to be {range}");
        let place = self.places.get(axis).cloned().unwrap_or(0..self.source.text.len());
        fault(&self.source, place, "index-out-of-shape", message, HELP)
    }
}

/// A fault at a place of a text.
fn fault(source: &Source, place: Range<usize>, code: &'static str, message: String, help: &str) -> Failure {
    Failure::input(source, vec![Diagnostic::error(code, Some(span(place)), message).with_help(help)])
}

/// A range of bytes as a span.
pub(super) fn span(range: Range<usize>) -> Span {
    let offset = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
    Span::new(offset(range.start), offset(range.end))
}

/// The places of the numbers, without blanks around them.
fn parts(text: &str) -> Vec<Range<usize>> {
    let trimmed = |range: Range<usize>| {
        let part = &text[range.clone()];
        let start = range.start + (part.len() - part.trim_start().len());
        start..start + part.trim().len()
    };
    let whole = trimmed(0..text.len());
    let inside = &text[whole.clone()];
    let bracketed = [('(', ')'), ('[', ']')]
        .iter()
        .any(|(open, close)| inside.strip_prefix(*open).and_then(|rest| rest.strip_suffix(*close)).is_some());
    let inner = if bracketed { trimmed(whole.start + 1..whole.end - 1) } else { whole };
    if inner.is_empty() {
        return Vec::new();
    }
    // A trailing comma is Python's.
    let end = if inner.len() > 1 && text[inner.clone()].ends_with(',') { inner.end - 1 } else { inner.end };
    let mut start = inner.start;
    let mut found = Vec::new();
    for part in text[inner.start..end].split(',') {
        found.push(trimmed(start..start + part.len()));
        start += part.len() + 1;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_their_places() {
        assert_eq!(parts("2,3"), [0..1, 2..3]);
        assert_eq!(parts(" ( 12 , -3, ) "), [3..5, 8..10]);
        assert_eq!(parts("[é,1]"), [1..3, 4..5]);
        assert_eq!((parts(""), parts("()"), parts(",")), (vec![], vec![], vec![0..0, 1..1]));
        assert_eq!(parts("(2"), [0..2]);
    }
}
