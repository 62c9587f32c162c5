//! Named formats: the names that people give to layouts, read to what they mean.
//!
//! ```text
//! NCHW4c              n, c // 4, h, w, c % 4                      TVM: capitals are axes, 4c is a block of 4
//! nChw16c             n, c // 16, h, w, c % 16                    oneDNN: a capital marks an axis that has blocks
//! OIhw4i16o4i         o // 16, i // 16, h, w, i // 4 % 4, o % 16, i % 4      the left block is the more major one
//! NHWC->NCHW4c        the same physical places, indexed by n, h, w, c
//! (8,128)(2,1)        XLA's tiles on the last dimensions
//! ```
//!
//! The logical order is that of the letters: N C D H W for activations, G O I D H W for weights, t n c and l d i g o for
//! recurrent networks, a b c d ... for oneDNN's neutral letters; other letters stand in the order in which they appear.
//! `A->B` states another one: the indices are then those of the format A, blocks included.
//!
//! The map of a name is computed twice: from its *meaning*, which gives the digit of an axis at each physical place
//! (`digits`), and by splitting the axes one block after the other (`splits`). The judge proves the two equal.

mod digits;
mod name;
mod splits;
#[cfg(test)]
mod tests;
mod tiles;

use tilewright_ir::{Diagnostic, Expr, IndexMap};

pub use name::{Axis, AxisPart, Format};
pub use tiles::{Tiled, tiled};

/// A format on a shape: the map, and its meaning.
#[derive(Clone, Debug)]
pub struct Named {
    /// From the logical indices to the physical ones.
    pub map: IndexMap,
    /// A second statement of the map, computed from the meaning of the format: the judge proves both equal.
    pub meaning: IndexMap,
    /// The physical shape: whole blocks.
    pub shape: Vec<Expr>,
    /// Physical axes that may be longer than the largest index needs, because blocks are always whole.
    pub padded_axes: Vec<usize>,
}

/// Reads a format name in place of an index map. Returns `None` if the text is not a format name; it may be a lambda.
///
/// # Errors
/// The problems of the name, with their positions in `text`, or a shape of another rank.
///
/// ```
/// use tilewright_compiler::formats;
/// use tilewright_ir::Expr;
/// let shape = [2, 17, 7, 9].map(Expr::int);
/// let named = formats::read("NCHW4c", &shape).and_then(Result::ok).ok_or("no format")?;
/// assert_eq!(named.map.to_string(), "lambda n, c, h, w: [n, c // 4, h, w, c % 4]");
/// assert_eq!(named.shape, [2, 5, 7, 9, 4].map(Expr::int));
/// assert!(formats::read("lambda i, j: [j, i]", &shape[..2]).is_none());
/// # Ok::<(), &str>(())
/// ```
pub fn read(text: &str, shape: &[Expr]) -> Option<Result<Named, Vec<Diagnostic>>> {
    if !looks_like_a_name(text) {
        return None;
    }
    let is_tiles = text.trim().starts_with('(');
    let named = if is_tiles { tiles::read(text, shape) } else { read_letters(text, shape) };
    Some(named.map_err(|fault| vec![fault]))
}

/// Whether a text may be a format name: letters and numbers, two such words with an arrow between them, or tiles. Any
/// other text is left to the reader of lambdas.
fn looks_like_a_name(text: &str) -> bool {
    let text = text.trim();
    let is_tiles = |c: char| c.is_ascii_digit() || "(),*- \t".contains(c);
    if text.starts_with('(') {
        return text.chars().all(is_tiles);
    }
    let word = |part: &str| {
        let part = part.trim();
        part.starts_with(|c: char| c.is_ascii_alphanumeric()) && !part.contains([' ', ':', '(', '[', ',', '\t', '\n'])
    };
    text.split("->").all(word) && !text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Reads `NCHW4c` or `NHWC->NCHW4c`.
fn read_letters(text: &str, shape: &[Expr]) -> Result<Named, Diagnostic> {
    let (source, target) = match text.split_once("->") {
        None => {
            let target = name::read(text, 0)?;
            (target.without_blocks(), target)
        }
        Some((source, target)) => {
            let source = name::read(source, 0)?;
            let target = name::read(target, text.len() - target.len())?;
            let target = target.in_order_of(&source).map_err(|fault| at_whole(fault, text))?;
            (source, target)
        }
    };
    let map = splits::map(&source, &target, shape).map_err(|fault| at_whole(fault, text))?;
    let meaning = digits::map(&source, &target, &map)?;
    let (shape, padded_axes) = digits::physical_shape(&source, &target, map.domain());
    Ok(Named { map, meaning, shape, padded_axes })
}

/// Labels the whole text in a fault that has no position.
fn at_whole(mut fault: Diagnostic, text: &str) -> Diagnostic {
    if fault.labels.is_empty()
        && let Ok(end) = u32::try_from(text.len())
    {
        fault = fault.with_label(tilewright_ir::Span::new(0, end), "");
    }
    fault
}

/// Converts the error of an index map to a diagnostic.
fn index_map(map: Result<IndexMap, tilewright_ir::IndexMapError>) -> Result<IndexMap, Diagnostic> {
    map.map_err(|error| Diagnostic::error("index-map", None, error.to_string()))
}
