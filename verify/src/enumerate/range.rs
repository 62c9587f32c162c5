//! What is known of a value before any point is looked at: an interval, and how densely it is filled.
//!
//! The interval makes plain 64-bit arithmetic safe: an operation whose interval leaves [`LIMIT`], or that may have no value
//! (a divisor that may be 0, a shift that may be too far), has no range, and whatever needs it is evaluated point by point by
//! the language's own evaluation. How densely it is filled tells the largest index of most outputs without looking.

use tilewright_ir::BinaryOp;
use tilewright_ir::sabotage;
use tilewright_ir::scalar::floor_div_mod;

/// Values and intermediate results stay within this.
const LIMIT: i128 = 1 << 62;

/// The interval of a value over all points of a box, and what of it is certain to be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) low: i64,
    pub(crate) high: i64,
    /// Both ends are values at some points.
    pub(crate) ends: bool,
    /// Both ends are values, and neighbouring values differ by at most this.
    pub(crate) gap: Option<i64>,
}

impl Range {
    /// A single value.
    pub(super) fn one(value: i128) -> Option<Self> {
        Self::new(value, value).map(|range| range.dense(Some(1)))
    }

    /// All values from 0 below `extent`.
    pub(super) fn index(extent: i128) -> Option<Self> {
        Self::new(0, extent - 1).map(|range| range.dense(Some(1)))
    }

    /// Nothing is known to be reached.
    pub(super) fn new(low: i128, high: i128) -> Option<Self> {
        let fits = -LIMIT <= low && low <= high && high <= LIMIT;
        let (low, high) = (i64::try_from(low).ok()?, i64::try_from(high).ok()?);
        fits.then_some(Self { low, high, ends: low == high, gap: (low == high).then_some(1) })
    }

    /// The interval that the values of a type make.
    pub(super) fn truth() -> Self {
        Self { low: 0, high: 1, ends: false, gap: None }
    }

    fn dense(self, gap: Option<i64>) -> Self {
        let one = self.low == self.high;
        Self { ends: self.ends || one || gap.is_some(), gap: if one { Some(1) } else { gap }, ..self }
    }

    fn reached(self, ends: bool) -> Self {
        Self { ends: self.ends || ends, ..self }
    }

    /// The value, if there is only one.
    pub(crate) fn constant(self) -> Option<i64> {
        (self.low == self.high).then_some(self.low)
    }

    /// How many integers there are in it.
    pub(crate) fn count(self) -> i128 {
        i128::from(self.high) - i128::from(self.low) + 1
    }

    fn wide(self) -> (i128, i128) {
        (self.low.into(), self.high.into())
    }

    fn negated(self) -> Self {
        Self { low: -self.high, high: -self.low, ..self }
    }

    /// `a | b`, as a range of either: of a conditional value.
    pub(super) fn either(self, other: Self) -> Option<Self> {
        Self::new(self.low.min(other.low).into(), self.high.max(other.high).into())
    }

    /// `|a|`
    pub(super) fn abs(self) -> Option<Self> {
        if self.low >= 0 {
            return Some(self);
        }
        let least = if self.high >= 0 { 0 } else { -self.high };
        Self::new(least.into(), self.high.max(-self.low).into())
    }

    /// `-a`
    pub(super) fn neg(self) -> Self {
        self.negated()
    }

    /// `~a`
    pub(super) fn bit_not(self) -> Option<Self> {
        add(self.negated(), Self::one(-1)?, true)
    }
}

/// The range of `a op b`; `disjoint` says that no index is in both. `bits` is the width that bounds shifts.
pub(super) fn binary(op: BinaryOp, a: Range, b: Range, disjoint: bool, bits: u32) -> Option<Range> {
    match op {
        BinaryOp::Add => add(a, b, disjoint),
        BinaryOp::Sub => add(a, b.negated(), disjoint),
        BinaryOp::Mul => mul(a, b, disjoint),
        BinaryOp::FloorDiv => floor_div(a, b),
        BinaryOp::FloorMod => floor_mod(a, b),
        BinaryOp::TruncDiv | BinaryOp::TruncMod => truncating(op, a, b),
        BinaryOp::Min => least(a, b),
        BinaryOp::Max => least(a.negated(), b.negated()).map(Range::negated),
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

fn is_false(a: Range) -> bool {
    a.constant() == Some(0)
}

fn is_true(a: Range) -> bool {
    a.low > 0 || a.high < 0
}

fn logic(no: bool, yes: bool) -> Option<Range> {
    match (no, yes) {
        (true, _) => Range::one(0),
        (_, true) => Range::one(1),
        _ => Some(Range::truth()),
    }
}

/// A comparison that is certainly false or certainly true, or (of single values) `same` if they are equal.
fn compare(no: bool, yes: bool, a: Range, b: Range, same: bool) -> Option<Range> {
    match (a.constant(), b.constant()) {
        (Some(a), Some(b)) if a == b => logic(!same, same),
        _ => logic(no, yes),
    }
}

/// Sums: with no index in both, the values are all sums of one value of each.
fn add(a: Range, b: Range, disjoint: bool) -> Option<Range> {
    let ((al, ah), (bl, bh)) = (a.wide(), b.wide());
    let sum = Range::new(al + bl, ah + bh)?;
    if !disjoint && a.constant().is_none() && b.constant().is_none() && !sabotage::on("ends-of-shared-axes") {
        return Some(sum);
    }
    // Translates of the one by the other overlap by its length.
    let filled = |gap: i64, other: i64, length: i64| other.max(gap - length).max(1);
    let gap = a.gap.zip(b.gap).map(|(x, y)| {
        let (left, right) = (filled(x, y, b.high.saturating_sub(b.low)), filled(y, x, a.high.saturating_sub(a.low)));
        if a.constant().is_some() {
            y
        } else if b.constant().is_some() {
            x
        } else {
            left.min(right)
        }
    });
    Some(sum.reached(a.ends && b.ends).dense(gap))
}

fn corners(a: Range, b: Range, of: impl Fn(i128, i128) -> Option<i128>) -> Option<Range> {
    let ((al, ah), (bl, bh)) = (a.wide(), b.wide());
    let all = [of(al, bl)?, of(al, bh)?, of(ah, bl)?, of(ah, bh)?];
    Range::new(*all.iter().min()?, *all.iter().max()?)
}

fn mul(a: Range, b: Range, disjoint: bool) -> Option<Range> {
    let product = corners(a, b, |x, y| Some(x * y))?;
    let by = |x: Range, k: i64| Some(product.reached(x.ends).dense(x.gap.and_then(|gap| gap.checked_mul(k.abs()))));
    match (a.constant(), b.constant()) {
        (_, Some(k)) => by(a, k),
        (Some(k), _) => by(b, k),
        _ => Some(product.reached(disjoint && a.ends && b.ends)),
    }
}

fn floor_div(a: Range, b: Range) -> Option<Range> {
    if b.low <= 0 && b.high >= 0 {
        return None;
    }
    let quotient = corners(a, b, |x, y| Some(floor_div_mod(x, y)?.0))?;
    let Some(k) = b.constant() else { return Some(quotient) };
    let gap = a.gap.map(|gap| (gap - 1) / k.abs() + 1);
    Some(quotient.reached(a.ends).dense(gap))
}

fn floor_mod(a: Range, b: Range) -> Option<Range> {
    if b.low <= 0 && b.high >= 0 {
        return None;
    }
    let Some(k) = b.constant().filter(|k| *k > 0) else {
        let (low, high) = (i128::from(b.low), i128::from(b.high));
        return match b.low > 0 {
            true if a.low >= 0 => Range::new(0, (high - 1).min(a.high.into())),
            true => Range::new(0, high - 1),
            false => Range::new((low + 1).min(0), 0),
        };
    };
    if a.low.div_euclid(k) == a.high.div_euclid(k) {
        let rest = Range::new(a.low.rem_euclid(k).into(), a.high.rem_euclid(k).into())?;
        return Some(rest.reached(a.ends).dense(a.gap));
    }
    // Neighbouring numbers that pass a multiple of k take the values k - 1 and 0.
    let rest = Range::new(0, i128::from(k) - 1)?;
    let near = a.gap == Some(1);
    let missing = u8::from(sabotage::on("remainders-of-fewer"));
    let all = near && a.count() + i128::from(missing) >= k.into();
    Some(rest.reached(near).dense(all.then_some(1)))
}

fn truncating(op: BinaryOp, a: Range, b: Range) -> Option<Range> {
    if b.low <= 0 && b.high >= 0 {
        return None;
    }
    if a.low >= 0 && b.low > 0 {
        return if op == BinaryOp::TruncDiv { floor_div(a, b) } else { floor_mod(a, b) };
    }
    let size = |range: Range| i128::from(range.low.abs().max(range.high.abs()));
    if op == BinaryOp::TruncDiv {
        return Range::new(-size(a), size(a));
    }
    let most = size(a).min(size(b) - 1);
    Range::new(if a.low < 0 { -most } else { 0 }, if a.high > 0 { most } else { 0 })
}

fn least(a: Range, b: Range) -> Option<Range> {
    let range = Range::new(a.low.min(b.low).into(), a.high.min(b.high).into())?;
    if a.high <= b.low {
        return Some(a);
    }
    if b.high <= a.low {
        return Some(b);
    }
    let fixed = (a.constant().is_some() && b.ends) || (b.constant().is_some() && a.ends);
    Some(range.reached(fixed))
}

fn bitwise(op: BinaryOp, a: Range, b: Range) -> Option<Range> {
    if let (Some(x), Some(y)) = (a.constant(), b.constant()) {
        return Range::one(op.eval_exact(x.into(), y.into(), tilewright_ir::ScalarType::Int64).ok()?);
    }
    if op == BinaryOp::BitAnd && (a.low >= 0 || b.low >= 0) {
        let most = match (a.low >= 0, b.low >= 0) {
            (true, true) => a.high.min(b.high),
            (true, false) => a.high,
            _ => b.high,
        };
        return Range::new(0, most.into());
    }
    let reach = [a.low, a.high, b.low, b.high].map(|end| if end < 0 { !end } else { end });
    let bits = 64 - reach.iter().max()?.leading_zeros();
    let power = 1i128 << bits;
    let negative = a.low < 0 || b.low < 0;
    Range::new(if negative { -power } else { 0 }, power - 1)
}

fn shift(op: BinaryOp, a: Range, b: Range, bits: u32) -> Option<Range> {
    if b.low < 0 || b.high >= i64::from(bits.min(62)) {
        return None;
    }
    let by = |amount: i128| 1i128 << amount;
    if op == BinaryOp::Shl {
        mul(a, corners(b, b, |x, _| Some(by(x)))?, false)
    } else {
        let divisor = Range::new(by(b.low.into()), by(b.high.into()))?;
        floor_div(a, divisor)
    }
}
