//! Interval arithmetic over the mathematical integers, for the reference interpreter and the judge.
//!
//! An [`Interval`] bounds the values of an integer expression. Every operation returns an interval that contains all
//! results for operands in the given intervals; the bounds need not be attained. Operations return `None` if some result
//! does not exist (division by an interval that contains 0, a negative shift amount) or a bound leaves `i128`. Nothing
//! wraps: a caller that computes in a fixed type compares the interval with that type's range.
//!
//! `algebra`, whose results are judged, has interval arithmetic of its own, so that one mistake cannot be made twice.
//!
//! ```
//! use tilewright_ir::Interval;
//! let (i, four) = (Interval { low: 0, high: 63 }, Interval::point(4));
//! assert_eq!(i.floor_div(four), Some(Interval { low: 0, high: 15 }));
//! assert_eq!(i.floor_mod(four), Some(Interval { low: 0, high: 3 }));
//! ```

use crate::scalar::floor_div_mod;

/// All integers from `low` to `high`, both inclusive; `low <= high`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Interval {
    /// The least value.
    pub low: i128,
    /// The greatest value.
    pub high: i128,
}

/// `2^bits` with the least `bits` such that `-2^bits <= value < 2^bits`; `None` if that is not below `2^127`.
fn power_above(value: i128) -> Option<i128> {
    let magnitude = if value < 0 { !value } else { value };
    1i128.checked_shl(128 - magnitude.leading_zeros()).filter(|power| *power > 0)
}

impl Interval {
    /// Creates the interval of a single value.
    pub fn point(value: i128) -> Self {
        Self { low: value, high: value }
    }

    /// Returns the value if there is only one.
    pub fn constant(self) -> Option<i128> {
        (self.low == self.high).then_some(self.low)
    }

    /// Returns whether the interval contains a value.
    pub fn contains(self, value: i128) -> bool {
        self.low <= value && value <= self.high
    }

    /// Returns whether the interval contains all values of `other`.
    pub fn includes(self, other: Self) -> bool {
        self.low <= other.low && other.high <= self.high
    }

    /// Returns the smallest interval that includes both.
    #[must_use]
    pub fn hull(self, other: Self) -> Self {
        Self { low: self.low.min(other.low), high: self.high.max(other.high) }
    }

    /// The interval between the least and the greatest result of `op` at the corners: for operations that are monotone
    /// in each operand while the other one is fixed.
    fn of_corners(self, other: Self, op: impl Fn(i128, i128) -> Option<i128>) -> Option<Self> {
        let [a, b, c, d] = [
            op(self.low, other.low)?,
            op(self.low, other.high)?,
            op(self.high, other.low)?,
            op(self.high, other.high)?,
        ];
        Some(Self { low: a.min(b).min(c).min(d), high: a.max(b).max(c).max(d) })
    }

    /// `-a`
    pub fn checked_neg(self) -> Option<Self> {
        Some(Self { low: self.high.checked_neg()?, high: self.low.checked_neg()? })
    }

    /// `~a`
    #[must_use]
    pub fn bit_not(self) -> Self {
        Self { low: !self.high, high: !self.low }
    }

    /// `|a|`
    pub fn abs(self) -> Option<Self> {
        let (low, high) = (self.low.checked_abs()?, self.high.checked_abs()?);
        Some(Self { low: if self.contains(0) { 0 } else { low.min(high) }, high: low.max(high) })
    }

    /// `a + b`
    pub fn checked_add(self, other: Self) -> Option<Self> {
        Some(Self { low: self.low.checked_add(other.low)?, high: self.high.checked_add(other.high)? })
    }

    /// `a - b`
    pub fn checked_sub(self, other: Self) -> Option<Self> {
        Some(Self { low: self.low.checked_sub(other.high)?, high: self.high.checked_sub(other.low)? })
    }

    /// `a * b`
    pub fn checked_mul(self, other: Self) -> Option<Self> {
        self.of_corners(other, i128::checked_mul)
    }

    /// `a // b`, rounded towards negative infinity; `None` if `b` may be 0.
    pub fn floor_div(self, other: Self) -> Option<Self> {
        if other.contains(0) {
            return None;
        }
        self.of_corners(other, |a, b| floor_div_mod(a, b).map(|(quotient, _)| quotient))
    }

    /// `a % b`, with the sign of the divisor; `None` if `b` may be 0.
    pub fn floor_mod(self, other: Self) -> Option<Self> {
        if other.contains(0) {
            return None;
        }
        if other.high < 0 {
            return Some(Self { low: (other.low + 1).min(0), high: 0 });
        }
        if let Some(divisor) = other.constant()
            && self.low.div_euclid(divisor) == self.high.div_euclid(divisor)
        {
            return Some(Self { low: self.low.rem_euclid(divisor), high: self.high.rem_euclid(divisor) });
        }
        let most = other.high - 1;
        Some(Self { low: 0, high: if self.low >= 0 { most.min(self.high) } else { most } })
    }

    /// `a / b`, rounded towards 0; `None` if `b` may be 0.
    pub fn trunc_div(self, other: Self) -> Option<Self> {
        if self.low >= 0 && other.low > 0 {
            return self.floor_div(other);
        }
        if other.contains(0) {
            return None;
        }
        let most = self.abs()?.high;
        Some(Self { low: -most, high: most })
    }

    /// The remainder of [`Interval::trunc_div`], with the sign of the dividend; `None` if `b` may be 0.
    pub fn trunc_mod(self, other: Self) -> Option<Self> {
        if self.low >= 0 && other.low > 0 {
            return self.floor_mod(other);
        }
        if other.contains(0) {
            return None;
        }
        let most = self.abs()?.high.min(other.abs()?.high - 1);
        Some(Self { low: if self.low < 0 { -most } else { 0 }, high: if self.high > 0 { most } else { 0 } })
    }

    /// The smaller of `a` and `b`.
    #[must_use]
    pub fn min(self, other: Self) -> Self {
        Self { low: self.low.min(other.low), high: self.high.min(other.high) }
    }

    /// The greater of `a` and `b`.
    #[must_use]
    pub fn max(self, other: Self) -> Self {
        Self { low: self.low.max(other.low), high: self.high.max(other.high) }
    }

    /// `a & b` in two's complement.
    pub fn bit_and(self, other: Self) -> Option<Self> {
        // An operand that is not negative clears the sign and bounds the result.
        match (self.low >= 0, other.low >= 0) {
            (true, true) => Some(Self { low: 0, high: self.high.min(other.high) }),
            (true, false) => Some(Self { low: 0, high: self.high }),
            (false, true) => Some(Self { low: 0, high: other.high }),
            (false, false) => self.of_equal_width(other),
        }
    }

    /// `a | b` in two's complement.
    pub fn bit_or(self, other: Self) -> Option<Self> {
        self.of_equal_width(other)
    }

    /// `a ^ b` in two's complement.
    pub fn bit_xor(self, other: Self) -> Option<Self> {
        self.of_equal_width(other)
    }

    /// The values with as many bits as the operands need: contains the result of every bitwise operation on them.
    fn of_equal_width(self, other: Self) -> Option<Self> {
        let power = [self.low, self.high, other.low, other.high]
            .into_iter()
            .try_fold(1, |power: i128, end| Some(power.max(power_above(end)?)))?;
        let is_negative = self.low < 0 || other.low < 0;
        Some(Self { low: if is_negative { -power } else { 0 }, high: power - 1 })
    }

    /// `2^a`; `None` if `a` may be negative or the greatest power does not fit `i128`.
    fn power_of_two(self) -> Option<Self> {
        let power = |exponent: i128| {
            let exponent = u32::try_from(exponent).ok().filter(|exponent| *exponent < 127)?;
            Some(1i128 << exponent)
        };
        Some(Self { low: power(self.low)?, high: power(self.high)? })
    }

    /// `a << b`, without loss of bits: `a * 2^b`; `None` if `b` may be negative or large.
    pub fn checked_shl(self, other: Self) -> Option<Self> {
        self.checked_mul(other.power_of_two()?)
    }

    /// `a >> b` with copies of the sign: `a // 2^b`; `None` if `b` may be negative or at least 127.
    pub fn checked_shr(self, other: Self) -> Option<Self> {
        self.floor_div(other.power_of_two()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BinaryOp, ScalarType};

    type Operation = fn(Interval, Interval) -> Option<Interval>;

    /// All intervals with ends in -7..=8, against the language's own evaluation at all points.
    #[test]
    fn an_interval_contains_every_result_and_is_missing_where_one_does_not_exist() {
        let operations: [(BinaryOp, Operation); 14] = [
            (BinaryOp::Add, Interval::checked_add),
            (BinaryOp::Sub, Interval::checked_sub),
            (BinaryOp::Mul, Interval::checked_mul),
            (BinaryOp::FloorDiv, Interval::floor_div),
            (BinaryOp::FloorMod, Interval::floor_mod),
            (BinaryOp::TruncDiv, Interval::trunc_div),
            (BinaryOp::TruncMod, Interval::trunc_mod),
            (BinaryOp::Min, |a, b| Some(a.min(b))),
            (BinaryOp::Max, |a, b| Some(a.max(b))),
            (BinaryOp::BitAnd, Interval::bit_and),
            (BinaryOp::BitOr, Interval::bit_or),
            (BinaryOp::BitXor, Interval::bit_xor),
            (BinaryOp::Shl, Interval::checked_shl),
            (BinaryOp::Shr, Interval::checked_shr),
        ];
        let ends = || (-7..=8i128).flat_map(|low| (low..=8).map(move |high| Interval { low, high }));
        let mut compared = 0;
        for (op, operation) in operations {
            for (a, b) in ends().flat_map(|a| ends().map(move |b| (a, b))) {
                let result = operation(a, b);
                for (x, y) in [a.low, a.high].into_iter().flat_map(|x| (b.low..=b.high).map(move |y| (x, y))) {
                    match (op.eval_exact(x, y, ScalarType::Int64), result) {
                        (Ok(value), Some(result)) => assert!(result.contains(value), "{op:?} {a:?} {b:?} {x} {y}"),
                        (Err(_), result) => assert_eq!(result, None, "{op:?} {a:?} {b:?}: no value at {x} {y}"),
                        (Ok(_), None) => assert!(matches!(
                            op,
                            BinaryOp::FloorDiv
                                | BinaryOp::FloorMod
                                | BinaryOp::TruncDiv
                                | BinaryOp::TruncMod
                                | BinaryOp::Shl
                                | BinaryOp::Shr
                        )),
                    }
                    compared += 1;
                }
            }
        }
        assert!(compared > 1_000_000, "{compared}");
    }

    #[test]
    fn unary_results_are_contained() {
        for interval in (-5..=5i128).flat_map(|low| (low..=5).map(move |high| Interval { low, high })) {
            for value in interval.low..=interval.high {
                assert!(interval.checked_neg().unwrap().contains(-value));
                assert!(interval.bit_not().contains(!value));
                assert!(interval.abs().unwrap().contains(value.abs()));
            }
        }
    }

    #[test]
    fn a_bound_beyond_128_bits_gives_none() {
        let large = Interval { low: 0, high: i128::MAX };
        assert_eq!(large.checked_add(Interval::point(1)), None);
        assert_eq!(large.checked_mul(Interval::point(2)), None);
        assert_eq!(Interval::point(i128::MIN).checked_neg(), None);
        assert_eq!(Interval::point(1).checked_shl(Interval::point(127)), None);
        assert_eq!(large.bit_xor(Interval::point(0)), None);
    }
}
