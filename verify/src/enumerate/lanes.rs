//! Operators on the values at many points at once.
//!
//! They mean what [`tilewright_ir::BinaryOp::eval_exact`] defines. The ranges of the operands have shown before that every
//! operation has a value and that no result leaves 64 bits, so that nothing is checked here.
//!
//! Division is the slowest operator by far. If the divisor is a power of two it becomes a shift or a mask; if both operands
//! fit 32 bits, a 32-bit division.

use tilewright_ir::BinaryOp;

use super::range::Range;

/// The values of an operation in a block: one value at all points, or one at each point.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Lanes<'a> {
    One(i64),
    Many(&'a [i64]),
}

impl Lanes<'_> {
    /// The value at a point.
    pub(crate) fn at(self, lane: usize) -> i64 {
        match self {
            Self::One(value) => value,
            Self::Many(values) => values[lane],
        }
    }

    /// Writes `op` of each value to `out`.
    pub(super) fn map(self, out: &mut [i64], op: impl Fn(i64) -> i64) {
        match self {
            Self::One(value) => out.fill(op(value)),
            Self::Many(values) => out.iter_mut().zip(values).for_each(|(out, &value)| *out = op(value)),
        }
    }
}

/// What is known about the operands of a division, which decides how fast it can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Size {
    /// Nothing.
    Any,
    /// The dividend is not negative, and the divisor is positive.
    Natural,
    /// As `Natural`, and both operands fit 32 bits.
    Small,
}

impl Size {
    /// The size of a dividend and a divisor in these ranges.
    pub(super) fn of(a: Range, b: Range) -> Self {
        let small = |range: Range| range.high <= i64::from(u32::MAX);
        match a.low >= 0 && b.low > 0 {
            true if small(a) && small(b) => Self::Small,
            true => Self::Natural,
            false => Self::Any,
        }
    }
}

/// `out = op(a, b)` at each point, with one loop for each combination of constant and varying operands.
fn zip(a: Lanes<'_>, b: Lanes<'_>, out: &mut [i64], op: impl Fn(i64, i64) -> i64) {
    match (a, b) {
        (Lanes::One(a), Lanes::One(b)) => out.fill(op(a, b)),
        (Lanes::Many(a), Lanes::One(b)) => out.iter_mut().zip(a).for_each(|(out, &a)| *out = op(a, b)),
        (Lanes::One(a), Lanes::Many(b)) => out.iter_mut().zip(b).for_each(|(out, &b)| *out = op(a, b)),
        (Lanes::Many(a), Lanes::Many(b)) => {
            out.iter_mut().zip(a.iter().zip(b)).for_each(|(out, (&a, &b))| *out = op(a, b));
        }
    }
}

/// `out = a op b` at each point.
pub(super) fn apply(op: BinaryOp, size: Size, a: Lanes<'_>, b: Lanes<'_>, out: &mut [i64]) {
    let truth = i64::from;
    match op {
        BinaryOp::Add => zip(a, b, out, |a, b| a + b),
        BinaryOp::Sub => zip(a, b, out, |a, b| a - b),
        BinaryOp::Mul => zip(a, b, out, |a, b| a * b),
        BinaryOp::FloorDiv | BinaryOp::TruncDiv | BinaryOp::FloorMod | BinaryOp::TruncMod => {
            divide(op, size, a, b, out);
        }
        BinaryOp::Min => zip(a, b, out, i64::min),
        BinaryOp::Max => zip(a, b, out, i64::max),
        BinaryOp::Eq => zip(a, b, out, |a, b| truth(a == b)),
        BinaryOp::Ne => zip(a, b, out, |a, b| truth(a != b)),
        BinaryOp::Lt => zip(a, b, out, |a, b| truth(a < b)),
        BinaryOp::Le => zip(a, b, out, |a, b| truth(a <= b)),
        BinaryOp::Gt => zip(a, b, out, |a, b| truth(a > b)),
        BinaryOp::Ge => zip(a, b, out, |a, b| truth(a >= b)),
        BinaryOp::And => zip(a, b, out, |a, b| truth(a != 0 && b != 0)),
        BinaryOp::Or => zip(a, b, out, |a, b| truth(a != 0 || b != 0)),
        BinaryOp::BitAnd => zip(a, b, out, |a, b| a & b),
        BinaryOp::BitOr => zip(a, b, out, |a, b| a | b),
        BinaryOp::BitXor => zip(a, b, out, |a, b| a ^ b),
        BinaryOp::Shl => zip(a, b, out, |a, b| a << b),
        BinaryOp::Shr => zip(a, b, out, |a, b| a >> b),
        // `Range` has no float division, so no program contains it.
        BinaryOp::Div => out.fill(0),
    }
}

/// Divisions and remainders, with the fastest instruction that is right for the operands.
fn divide(op: BinaryOp, size: Size, a: Lanes<'_>, b: Lanes<'_>, out: &mut [i64]) {
    let quotient = matches!(op, BinaryOp::FloorDiv | BinaryOp::TruncDiv);
    if let (Lanes::One(by), true) = (b, size != Size::Any || matches!(op, BinaryOp::FloorDiv | BinaryOp::FloorMod))
        && by > 0
        && by.count_ones() == 1
    {
        // An arithmetic shift rounds towards negative infinity, as floor division does.
        let (bits, mask) = (by.trailing_zeros(), by - 1);
        return if quotient { a.map(out, |a| a >> bits) } else { a.map(out, |a| a & mask) };
    }
    match (size, quotient) {
        (Size::Small, true) => zip(a, b, out, |a, b| i64::from(narrow(a) / narrow(b))),
        (Size::Small, false) => zip(a, b, out, |a, b| i64::from(narrow(a) % narrow(b))),
        (Size::Natural, true) => zip(a, b, out, |a, b| a / b),
        (Size::Natural, false) => zip(a, b, out, |a, b| a % b),
        (Size::Any, _) => match op {
            BinaryOp::TruncDiv => zip(a, b, out, |a, b| a / b),
            BinaryOp::TruncMod => zip(a, b, out, |a, b| a % b),
            BinaryOp::FloorDiv => zip(a, b, out, |a, b| floor(a, b).0),
            _ => zip(a, b, out, |a, b| floor(a, b).1),
        },
    }
}

/// A number of [`Size::Small`] as 32 bits: a 32-bit division is faster.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "Size::Small says that it fits")]
fn narrow(value: i64) -> u32 {
    value as u32
}

/// Floor quotient and remainder.
fn floor(a: i64, b: i64) -> (i64, i64) {
    let (quotient, rest) = (a / b, a % b);
    if rest != 0 && (rest < 0) != (b < 0) { (quotient - 1, rest + b) } else { (quotient, rest) }
}
