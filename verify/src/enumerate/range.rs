//! The values that a node takes over a box: an interval.
//!
//! The interval makes 64-bit arithmetic safe. An operation whose interval leaves [`LIMIT`], or that may have no value (a
//! divisor that may be 0, a shift that may be too far), has no range, and everything that depends on it is evaluated point
//! by point by the language's own evaluation.
//!
//! ```text
//! i            on 0..8         0..=7
//! i * 4 + j    j on 0..4       0..=31
//! ```

use tilewright_ir::{BinaryOp, Interval};

/// Greatest magnitude of values and intermediate results: sums of two still fit 64 bits.
const LIMIT: i128 = 1 << 62;

/// The interval of a value over all points of a box.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    /// No value is smaller.
    pub(crate) low: i64,
    /// No value is larger.
    pub(crate) high: i64,
}

impl Range {
    /// A single value.
    pub(super) fn one(value: i128) -> Option<Self> {
        Self::within(Interval::point(value))
    }

    /// All values from 0 below `extent`.
    pub(super) fn index(extent: i128) -> Option<Self> {
        if extent < 1 {
            return None;
        }
        Self::within(Interval { low: 0, high: extent - 1 })
    }

    /// Some values of an interval; `None` if the interval leaves [`LIMIT`].
    pub(super) fn within(interval: Interval) -> Option<Self> {
        let limits = Interval { low: -LIMIT, high: LIMIT };
        if !limits.includes(interval) {
            return None;
        }
        let (low, high) = (i64::try_from(interval.low).ok()?, i64::try_from(interval.high).ok()?);
        Some(Self { low, high })
    }

    /// A truth value that is not known.
    pub(super) fn truth() -> Self {
        Self { low: 0, high: 1 }
    }

    /// The value, if there is only one.
    pub(crate) fn constant(self) -> Option<i64> {
        (self.low == self.high).then_some(self.low)
    }

    /// The number of integers in the interval.
    pub(crate) fn count(self) -> i128 {
        i128::from(self.high) - i128::from(self.low) + 1
    }

    /// The interval alone.
    fn interval(self) -> Interval {
        Interval { low: self.low.into(), high: self.high.into() }
    }

    /// `-a`
    pub(super) fn neg(self) -> Self {
        Self { low: -self.high, high: -self.low }
    }

    /// The values of a conditional: of either range.
    pub(super) fn either(self, other: Self) -> Option<Self> {
        Self::within(self.interval().hull(other.interval()))
    }

    /// `|a|`
    pub(super) fn abs(self) -> Option<Self> {
        if self.low >= 0 { Some(self) } else { Self::within(self.interval().abs()?) }
    }

    /// `~a`
    pub(super) fn bit_not(self) -> Option<Self> {
        add(self.neg(), Self::one(-1)?)
    }
}

/// The range of `a op b` (a table over the operators). `bits` is
/// the width that bounds shifts. `None` if the operation may lack a value or leave 62 bits.
pub(super) fn binary(op: BinaryOp, a: Range, b: Range, bits: u32) -> Option<Range> {
    let (left, right) = (a.interval(), b.interval());
    match op {
        BinaryOp::Add => add(a, b),
        BinaryOp::Sub => add(a, b.neg()),
        BinaryOp::Mul => mul(a, b),
        BinaryOp::FloorDiv => floor_div(a, b),
        BinaryOp::FloorMod => floor_mod(a, b),
        BinaryOp::TruncDiv if a.low >= 0 && b.low > 0 => floor_div(a, b),
        BinaryOp::TruncMod if a.low >= 0 && b.low > 0 => floor_mod(a, b),
        BinaryOp::TruncDiv => Range::within(left.trunc_div(right)?),
        BinaryOp::TruncMod => Range::within(left.trunc_mod(right)?),
        BinaryOp::Min => least(a, b),
        BinaryOp::Max => least(a.neg(), b.neg()).map(Range::neg),
        BinaryOp::Eq => compare(a.high < b.low || b.high < a.low, false, a, b, true),
        BinaryOp::Ne => compare(false, a.high < b.low || b.high < a.low, a, b, false),
        BinaryOp::Lt => compare(a.low >= b.high, a.high < b.low, a, b, false),
        BinaryOp::Le => compare(a.low > b.high, a.high <= b.low, a, b, true),
        BinaryOp::Gt => compare(b.low >= a.high, b.high < a.low, a, b, false),
        BinaryOp::Ge => compare(b.low > a.high, b.high <= a.low, a, b, true),
        BinaryOp::And => logic(is_false(a) || is_false(b), is_true(a) && is_true(b)),
        BinaryOp::Or => logic(is_false(a) && is_false(b), is_true(a) || is_true(b)),
        BinaryOp::BitAnd | BinaryOp::BitOr | BinaryOp::BitXor => bitwise(op, a, b),
        BinaryOp::Shl | BinaryOp::Shr => shift(op, a, b, bits),
        BinaryOp::Div => None,
    }
}

/// Whether a truth value is always false.
fn is_false(a: Range) -> bool {
    a.constant() == Some(0)
}

/// Whether a truth value is always true.
fn is_true(a: Range) -> bool {
    a.low > 0 || a.high < 0
}

/// A truth value that is certainly false, certainly true, or not known.
fn logic(no: bool, yes: bool) -> Option<Range> {
    match (no, yes) {
        (true, _) => Range::one(0),
        (_, true) => Range::one(1),
        _ => Some(Range::truth()),
    }
}

/// A comparison that is certainly false (`no`) or certainly true (`yes`); two equal constants compare as `same`.
fn compare(no: bool, yes: bool, a: Range, b: Range, same: bool) -> Option<Range> {
    match (a.constant(), b.constant()) {
        (Some(a), Some(b)) if a == b => logic(!same, same),
        _ => logic(no, yes),
    }
}

/// The range of a sum.
fn add(a: Range, b: Range) -> Option<Range> {
    Range::within(a.interval().checked_add(b.interval())?)
}

/// The range of a product.
fn mul(a: Range, b: Range) -> Option<Range> {
    Range::within(a.interval().checked_mul(b.interval())?)
}

/// The range of a floor quotient.
fn floor_div(a: Range, b: Range) -> Option<Range> {
    Range::within(a.interval().floor_div(b.interval())?)
}

/// The range of a floor remainder.
fn floor_mod(a: Range, b: Range) -> Option<Range> {
    Range::within(a.interval().floor_mod(b.interval())?)
}

/// The range of a minimum.
fn least(a: Range, b: Range) -> Option<Range> {
    Range::within(a.interval().min(b.interval()))
}

/// A bitwise operation.
fn bitwise(op: BinaryOp, a: Range, b: Range) -> Option<Range> {
    if let (Some(x), Some(y)) = (a.constant(), b.constant()) {
        return Range::one(op.eval_exact(x.into(), y.into(), tilewright_ir::ScalarType::Int64).ok()?);
    }
    let (a, b) = (a.interval(), b.interval());
    Range::within(if op == BinaryOp::BitAnd { a.bit_and(b) } else { a.bit_or(b) }?)
}

/// A shift; `None` if the amount may be negative or at least the width.
fn shift(op: BinaryOp, a: Range, b: Range, bits: u32) -> Option<Range> {
    if b.low < 0 || b.high >= i64::from(bits.min(62)) {
        return None;
    }
    let power = Range::within(Interval::point(1).checked_shl(b.interval())?)?;
    if op == BinaryOp::Shl { mul(a, power) } else { floor_div(a, power) }
}
