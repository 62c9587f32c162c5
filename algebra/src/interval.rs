//! Intervals of integers, unbounded on either side.
//!
//! Every operation returns an interval that contains all results; an end whose arithmetic leaves 128 bits becomes
//! infinite.

use tilewright_ir::sabotage;
use tilewright_ir::scalar::floor_div_mod;

/// An end of an interval: minus infinity, a number, or plus infinity, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum End {
    Below,
    At(i128),
    Above,
}

/// The integers from `lo` to `hi`, both included; empty if `hi < lo`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Interval {
    pub(super) lo: End,
    pub(super) hi: End,
}

impl Interval {
    /// All integers.
    pub(super) const ALL: Self = Self { lo: End::Below, hi: End::Above };

    /// The integers from `lo` to `hi`, both included.
    pub(super) fn new(lo: i128, hi: i128) -> Self {
        Self { lo: End::At(lo), hi: End::At(hi) }
    }

    /// The integers from `lo` on.
    pub(super) fn at_least(lo: i128) -> Self {
        Self { lo: End::At(lo), hi: End::Above }
    }

    /// A single integer.
    pub(super) fn point(value: i128) -> Self {
        Self::new(value, value)
    }

    /// The least integer, if it is bounded below.
    pub(super) fn least(self) -> Option<i128> {
        if let End::At(value) = self.lo { Some(value) } else { None }
    }

    /// The greatest integer, if it is bounded above.
    pub(super) fn greatest(self) -> Option<i128> {
        if let End::At(value) = self.hi { Some(value) } else { None }
    }

    /// The single integer of a point.
    pub(super) fn only(self) -> Option<i128> {
        self.least().filter(|&least| self.hi == End::At(least))
    }

    /// Whether no integer in it is below `value`.
    pub(super) fn is_at_least(self, value: i128) -> bool {
        self.lo >= End::At(value)
    }

    /// All sums.
    pub(super) fn plus(self, other: Self) -> Self {
        Self { lo: add(self.lo, other.lo, End::Below), hi: add(self.hi, other.hi, End::Above) }
    }

    /// All negated integers.
    pub(super) fn negated(self) -> Self {
        Self { lo: negate(self.hi, End::Below), hi: negate(self.lo, End::Above) }
    }

    /// All products; [`Interval::ALL`] if a product of two ends leaves 128 bits.
    pub(super) fn times(self, other: Self) -> Self {
        let corners = [(self.lo, other.lo), (self.lo, other.hi), (self.hi, other.lo), (self.hi, other.hi)];
        let step = if sabotage::on("interval-two-corners") { 3 } else { 1 };
        let mut products = corners.into_iter().step_by(step).map(|(a, b)| multiply(a, b));
        let Some(Some(first)) = products.next() else { return Self::ALL };
        let mut hull = Self { lo: first, hi: first };
        for product in products {
            let Some(end) = product else { return Self::ALL };
            hull = Self { lo: hull.lo.min(end), hi: hull.hi.max(end) };
        }
        hull
    }

    /// Floor quotients by a divisor of at least 1.
    pub(super) fn divided(self, divisor: Self) -> Self {
        let divisor = Self { lo: divisor.lo.max(End::At(1)), hi: divisor.hi.max(End::At(1)) };
        let quotient = |dividend: End, infinity: End| match dividend {
            End::At(value) => {
                // A smaller divisor moves the quotient away from zero.
                let by = if (infinity == End::Above) == (value >= 0) { divisor.lo } else { divisor.hi };
                match by {
                    End::At(by) => floor_div_mod(value, by).map_or(infinity, |(q, _)| End::At(q)),
                    End::Below | End::Above => End::At(if value < 0 { -1 } else { 0 }),
                }
            }
            end => end,
        };
        Self { lo: quotient(self.lo, End::Below), hi: quotient(self.hi, End::Above) }
    }

    /// Floor remainders by a divisor of at least 1.
    pub(super) fn remainder(self, divisor: Self) -> Self {
        if let (Some(lo), Some(hi), Some(by)) = (self.least(), self.greatest(), divisor.only().filter(|by| *by > 0))
            && lo.div_euclid(by) == hi.div_euclid(by)
        {
            return Self::new(lo.rem_euclid(by), hi.rem_euclid(by));
        }
        let below = match divisor.hi {
            End::At(value) => End::At(value - 1),
            end => end,
        };
        let hi = if self.is_at_least(0) { below.min(self.hi) } else { below };
        Self { lo: End::At(0), hi }
    }

    /// All minima.
    pub(super) fn min(self, other: Self) -> Self {
        Self { lo: self.lo.min(other.lo), hi: self.hi.min(other.hi) }
    }

    /// All maxima.
    pub(super) fn max(self, other: Self) -> Self {
        Self { lo: self.lo.max(other.lo), hi: self.hi.max(other.hi) }
    }

    /// The smallest interval that contains both.
    pub(super) fn hull(self, other: Self) -> Self {
        Self { lo: self.lo.min(other.lo), hi: self.hi.max(other.hi) }
    }

    /// The intersection; empty if they share no integer.
    pub(super) fn meet(self, other: Self) -> Self {
        Self { lo: self.lo.max(other.lo), hi: self.hi.min(other.hi) }
    }

    /// Whether every integer in it is in `lo..=hi`.
    pub(super) fn within(self, lo: i128, hi: i128) -> bool {
        self.lo >= End::At(lo) && self.hi <= End::At(hi)
    }
}

/// The sum of two ends; `infinity` if one is infinite or the sum leaves 128 bits.
fn add(a: End, b: End, infinity: End) -> End {
    match (a, b) {
        (End::At(a), End::At(b)) => a.checked_add(b).map_or(infinity, End::At),
        (End::Below | End::Above, _) | (_, End::Below | End::Above) => infinity,
    }
}

/// The negated end; `infinity` if it is infinite or leaves 128 bits.
fn negate(end: End, infinity: End) -> End {
    match end {
        End::At(value) => value.checked_neg().map_or(infinity, End::At),
        End::Below | End::Above => infinity,
    }
}

/// The product of two ends; `None` if the product of two numbers leaves 128 bits. Infinity times 0 is 0.
fn multiply(a: End, b: End) -> Option<End> {
    let sign = |end: End| end.cmp(&End::At(0)) as i8;
    match (a, b) {
        (End::At(a), End::At(b)) => a.checked_mul(b).map(End::At),
        _ => Some(match sign(a) * sign(b) {
            1 => End::Above,
            -1 => End::Below,
            _ => End::At(0),
        }),
    }
}
