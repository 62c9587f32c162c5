//! Digit certificates: plain data that shows why an index map is injective and stays within its shape.
//!
//! Each index is written in mixed radix, `x = d0 + d1*r0 + d2*r0*r1 + ...` with `0 <= d0 < r0` and so on; the last
//! digit is the remaining quotient. Expressed in digits, most maps are sums. A sum determines its digits if each
//! weight exceeds the largest value of the sum of all lower places. For example, `lambda c: [c // 4, c % 4]` splits
//! `c` with radix 4: the first output is digit 1 of axis 0, the second is digit 0.
//!
//! A certificate is only a claim. The judge evaluates the map in the given digits and compares the result.

use crate::expr::Expr;

/// A place of a [`DigitSum`]: one digit of one axis and its weight, as in positional notation.
#[derive(Clone, Debug, PartialEq)]
pub struct DigitPlace {
    /// The axis, counted from 0.
    pub axis: usize,
    /// The digit of that axis; 0 is the least significant one.
    pub digit: usize,
    /// The weight: a number, or an expression in the symbolic extents.
    pub weight: Expr,
}

/// A sum of weighted digits and an offset. Digits that are always 0 (those with extent 1) and places of weight 0 are
/// left out.
#[derive(Clone, Debug, PartialEq)]
pub struct DigitSum {
    /// The places, each digit at most once. They are ordered by increasing significance if each weight exceeds the
    /// largest value of the sum of all places before it, and otherwise by axis and digit.
    pub places: Vec<DigitPlace>,
    /// The constant part: a number, or an expression in the symbolic extents.
    pub offset: Expr,
}

/// The place of an output from which the value of one digit can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DigitSource {
    /// The axis of the digit.
    pub axis: usize,
    /// The digit of that axis; 0 is the least significant one.
    pub digit: usize,
    /// The first output that determines the digit, counted from 0.
    pub output: usize,
    /// The index of the digit's place in the sum of that output.
    pub place: usize,
}

/// Indices in mixed radix, and the claimed value of each output in terms of their digits.
#[derive(Clone, Debug, PartialEq)]
pub struct DigitView {
    /// The radices of each axis, from the least significant digit up. An axis without radices is a single digit.
    pub radices: Vec<Vec<Expr>>,
    /// The digit sum of each output.
    pub outputs: Vec<DigitSum>,
}

/// A justification of what is claimed about an index map; see the [module documentation](self).
#[derive(Clone, Debug, PartialEq)]
pub struct DigitCertificate {
    /// The logical indices in mixed radix, and the outputs of the map in terms of their digits.
    pub map: DigitView,
    /// Where each digit that is not always 0 can be read, ordered by axis and digit. Empty if the map is not claimed
    /// to be injective.
    pub sources: Vec<DigitSource>,
    /// The physical indices in mixed radix, and the outputs of the claimed inverse in terms of their digits.
    pub inverse: Option<DigitView>,
    /// A witness for the tightness of each physical extent: the digit values, in the order of the places of the
    /// output's sum, of a logical index that the map takes to the largest physical index. All other digits are 0
    /// there. `None` if no witness is claimed for that output.
    pub witnesses: Vec<Option<Vec<Expr>>>,
}
