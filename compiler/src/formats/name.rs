//! Reads the letters of a format name: `NCHW4c`, `nChw16c`, `OIhw4i16o4i`.

use tilewright_ir::{Diagnostic, Span};

/// Most bytes of a name.
const MAX_BYTES: usize = 256;
/// Largest product of the blocks of an axis.
const MAX_BLOCK: i64 = i32::MAX as i64;

/// For each family of letters, the usual order of the axes, and the letters of which a name of the family contains at least
/// one; empty if none is required.
const FAMILIES: [(&str, &str); 5] = [("NCDHW", ""), ("GOIDHW", "OI"), ("TNC", "T"), ("LDNC", "L"), ("LDIGO", "L")];

/// A format: its axes in logical order, and the part of an axis that stands at each physical position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Format {
    /// The logical axes.
    pub axes: Vec<Axis>,
    /// The physical places, from major to minor.
    pub places: Vec<AxisPart>,
}

/// A logical axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Axis {
    /// Its letter, a capital.
    pub letter: char,
    /// Sizes of its blocks, the most major one first: what is left above them is the outer part.
    pub blocks: Vec<i64>,
}

/// The part of an axis that stands at a physical position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AxisPart {
    /// The position of the axis.
    pub axis: usize,
    /// Which part of it: 0 is the outer part, `k` the block `blocks[k - 1]`.
    pub level: usize,
}

impl Axis {
    /// The product of the blocks after `level`: how far one step of this part moves the index.
    pub(super) fn weight(&self, level: usize) -> i64 {
        self.blocks[level..].iter().product()
    }
}

impl Format {
    /// The same axes without blocks, in logical order.
    pub(super) fn without_blocks(&self) -> Self {
        let axes = self.axes.iter().map(|axis| Axis { letter: axis.letter, blocks: Vec::new() }).collect();
        let places = (0..self.axes.len()).map(|axis| AxisPart { axis, level: 0 }).collect();
        Self { axes, places }
    }

    /// The same format with its axes numbered as those of another one.
    pub(super) fn in_order_of(&self, other: &Self) -> Result<Self, Diagnostic> {
        let letters = |format: &Self| format.axes.iter().map(|axis| axis.letter).collect::<Vec<char>>();
        let (own, others) = (letters(self), letters(other));
        let lacks = |a: &[char], b: &[char]| a.iter().find(|letter| !b.contains(letter)).copied();
        if let Some(letter) = lacks(&others, &own).or_else(|| lacks(&own, &others)) {
            let side = if own.contains(&letter) { "right" } else { "left" };
            let message = format!("the axis {letter} stands on the {side} side of the arrow only");
            let help = "both formats have the same axes, such as NHWC->NCHW4c";
            return Err(Diagnostic::error("format-axes", None, message).with_help(help));
        }
        let position = |axis: usize| others.iter().position(|letter| *letter == own[axis]).unwrap_or(axis);
        let places = self.places.iter().map(|place| AxisPart { axis: position(place.axis), ..*place }).collect();
        let own_axis = |letter: &char| self.axes.iter().find(|axis| axis.letter == *letter).cloned();
        Ok(Self { axes: others.iter().filter_map(own_axis).collect(), places })
    }
}

/// A letter of a name, with the block size before it.
struct Part {
    letter: char,
    block: Option<i64>,
    span: Span,
}

/// An error in a format name, at `span` in the text.
fn error(span: Span, message: String, help: &str) -> Diagnostic {
    Diagnostic::error("format-name", Some(span), message).with_help(help)
}

/// Reads a name that starts `offset` bytes into its text.
///
/// # Errors
/// The first problem of the name, with its position in the text.
pub(super) fn read(text: &str, offset: usize) -> Result<Format, Diagnostic> {
    let name = text.trim();
    let start = offset + (text.len() - text.trim_start().len());
    let span = |from: usize, to: usize| {
        let at = |position: usize| u32::try_from(start + position).unwrap_or(u32::MAX);
        Span::new(at(from), at(to))
    };
    if name.is_empty() || name.len() > MAX_BYTES {
        let message = format!("a format name has 1 to {MAX_BYTES} letters and digits");
        return Err(error(span(0, name.len()), message, "such as NCHW4c"));
    }
    let letters = letters(name, &span)?;
    let capitals = check_style(&letters)?;
    let order = logical_order(&capitals);
    let mut axes: Vec<Axis> = order.iter().map(|&letter| Axis { letter, blocks: Vec::new() }).collect();
    let mut places = Vec::new();
    for Part { letter, block, span } in &letters {
        let Some(position) = order.iter().position(|axis| *axis == letter.to_ascii_uppercase()) else { continue };
        // Blocks of one axis are listed from left to right, the most significant first, so a new block gets the next
        // level.
        let level = block.map_or(0, |block| {
            axes[position].blocks.push(block);
            axes[position].blocks.len()
        });
        let product = axes[position].blocks.iter().try_fold(1i64, |product, block| product.checked_mul(*block));
        if product.is_none_or(|product| product > MAX_BLOCK) {
            let message = format!("the blocks of {letter} have more than {MAX_BLOCK} elements");
            return Err(error(*span, message, "use smaller blocks"));
        }
        places.push(AxisPart { axis: position, level });
    }
    Ok(Format { axes, places })
}

/// Splits a name into letters with their block sizes.
fn letters(name: &str, span: &impl Fn(usize, usize) -> Span) -> Result<Vec<Part>, Diagnostic> {
    let mut found = Vec::new();
    // A block size is written before its letter, so digits are kept until the letter comes.
    let mut digits: Option<usize> = None;
    for (at, c) in name.char_indices() {
        let end = at + c.len_utf8();
        match c {
            '0'..='9' => {
                digits.get_or_insert(at);
            }
            'a'..='z' | 'A'..='Z' => {
                let from = digits.take().unwrap_or(at);
                let block = (from < at).then(|| block_size(&name[from..at], span(from, at))).transpose()?;
                found.push(Part { letter: c, block, span: span(from, end) });
            }
            _ => {
                let help = "a name has letters and block sizes only, such as NCHW4c; a map is a lambda";
                return Err(error(span(at, end), format!("`{c}` is no part of a format name"), help));
            }
        }
    }
    match digits {
        Some(from) => {
            let message = format!("the block size {} has no axis", &name[from..]);
            Err(error(span(from, name.len()), message, "the axis follows the size of its block: NCHW4c"))
        }
        None => Ok(found),
    }
}

/// Reads a block size, from 1 to 2^31 - 1.
fn block_size(digits: &str, span: Span) -> Result<i64, Diagnostic> {
    match digits.parse::<i64>() {
        Ok(size) if (1..=MAX_BLOCK).contains(&size) => Ok(size),
        _ => {
            let message = format!("{digits} is no size of a block");
            Err(error(span, message, "a block has 1 to 2^31 - 1 elements"))
        }
    }
}

/// The axes of a name, as capitals in the order in which they appear; which letters may be what is checked here.
///
/// Where an axis is written as a small letter without a size, this is oneDNN's notation: capitals then mark exactly the
/// axes that have blocks. Otherwise all axes are capitals, as in TVM's.
fn check_style(letters: &[Part]) -> Result<Vec<char>, Diagnostic> {
    let outer: Vec<&Part> = letters.iter().filter(|letter| letter.block.is_none()).collect();
    // One small letter without a block decides the notation of the whole name.
    let is_onednn = outer.iter().any(|letter| letter.letter.is_ascii_lowercase());
    let mut axes: Vec<char> = Vec::new();
    for &Part { letter, span, .. } in &outer {
        if axes.contains(&letter.to_ascii_uppercase()) {
            let message = format!("the axis {letter} appears twice");
            let help = format!("a block of it has its size before it: 4{}", letter.to_ascii_lowercase());
            return Err(error(*span, message, &help));
        }
        axes.push(letter.to_ascii_uppercase());
    }
    for &Part { letter, span, .. } in &outer {
        let (capital, small) = (letter.to_ascii_uppercase(), letter.to_ascii_lowercase());
        let is_blocked = letters.iter().any(|other| other.block.is_some() && other.letter.eq_ignore_ascii_case(letter));
        if is_onednn && letter.is_ascii_uppercase() && !is_blocked {
            let message = format!("the capital {capital} marks an axis with blocks, but it has none");
            let help = format!("write {small}, or add its block, such as 16{small}");
            return Err(error(*span, message, &help));
        }
        if letter.is_ascii_lowercase() && is_blocked {
            let message = format!("the axis {small} has a block, so its outer part is written {capital}");
            return Err(error(*span, message, "such as nChw16c"));
        }
    }
    for Part { letter, block, span } in letters {
        let (Some(block), capital) = (block, letter.to_ascii_uppercase()) else { continue };
        if letter.is_ascii_uppercase() {
            let message = format!("the block {block}{letter} is written with a capital");
            let help = format!("blocks are small letters: {block}{}", letter.to_ascii_lowercase());
            return Err(error(*span, message, &help));
        }
        if !axes.contains(&capital) {
            let message = format!("the axis {letter} has a block, but there is no {capital}");
            let listed: String = axes.iter().collect();
            let help = if listed.is_empty() {
                "the outer parts are capitals, such as NCHW4c".to_owned()
            } else {
                format!("the axes of this name are {listed}")
            };
            return Err(error(*span, message, &help));
        }
    }
    Ok(axes)
}

/// Returns the usual logical order of the axes; the order of appearance for letters of no known family.
fn logical_order(letters: &[char]) -> Vec<char> {
    let in_order = |order: &str| order.chars().filter(|letter| letters.contains(letter)).collect::<Vec<char>>();
    for (order, needed) in FAMILIES {
        let known = letters.iter().all(|letter| order.contains(*letter));
        let is_marked = needed.is_empty() || letters.iter().any(|letter| needed.contains(*letter));
        if known && is_marked {
            return in_order(order);
        }
    }
    let neutral: String = ('A'..='Z').take(letters.len()).collect();
    if letters.iter().all(|letter| neutral.contains(*letter)) { in_order(&neutral) } else { letters.to_vec() }
}
