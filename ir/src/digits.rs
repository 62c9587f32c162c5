//! Digit certificates: why an index map is injective and stays in its shape, as plain data.
//!
//! Every index is written in mixed radix, `x = d0 + d1*r0 + d2*r0*r1 + ...` with `0 <= d0 < r0` and so on; the last digit
//! takes the rest. In these digits most maps are sums, and a sum whose weights leave room for what stands below determines
//! its digits. `lambda c: [c // 4, c % 4]` splits `c` by 4: the first output is digit 1 of axis 0, the second is digit 0.
//!
//! A certificate is a claim and believed by nobody: the judge evaluates the map in the digits given and compares.

use crate::expr::Expr;

/// A digit of an axis times a weight.
#[derive(Clone, Debug, PartialEq)]
pub struct DigitPlace {
    /// The axis, counted from 0.
    pub axis: usize,
    /// The digit of the axis, the least one being 0.
    pub digit: usize,
    /// The weight: a number, or an expression in the symbolic extents.
    pub weight: Expr,
}

/// A sum of digits and an offset. Digits that are always 0 (of extent 1) do not stand in it, nor do weights of 0.
#[derive(Clone, Debug, PartialEq)]
pub struct DigitSum {
    /// Each digit once. Where each weight is greater than what all places before it come to, in that order; else by axis
    /// and digit.
    pub places: Vec<DigitPlace>,
    /// What is added: a number, or an expression in the symbolic extents.
    pub offset: Expr,
}

/// Where a digit of a logical index is read off: at one place of one output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DigitSource {
    /// The axis of the digit.
    pub axis: usize,
    /// The digit.
    pub digit: usize,
    /// The first output that determines it.
    pub output: usize,
    /// The place in that output's sum.
    pub place: usize,
}

/// Indices in mixed radix, and what is claimed of outputs in terms of their digits.
#[derive(Clone, Debug, PartialEq)]
pub struct DigitView {
    /// For each axis the radices from the least digit up; an axis without any is one digit.
    pub radices: Vec<Vec<Expr>>,
    /// The digit sum of each output.
    pub outputs: Vec<DigitSum>,
}

/// A reason for what is claimed of an index map; see the [module page](self).
#[derive(Clone, Debug, PartialEq)]
pub struct DigitCertificate {
    /// The logical indices, and the outputs of the map in their digits.
    pub map: DigitView,
    /// Where each digit that is not always 0 is read off, by axis and digit; empty where the map is not claimed to be
    /// injective.
    pub sources: Vec<DigitSource>,
    /// The physical indices, and the outputs of the claimed inverse in their digits.
    pub inverse: Option<DigitView>,
    /// For each output the values of the digits of its sum, in order, at a logical index that lands on the last
    /// physical one; all other digits are 0 there.
    pub witnesses: Vec<Option<Vec<Expr>>>,
}
