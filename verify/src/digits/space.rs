//! Index spaces in mixed radix: axes, their digits, and sums of digits.
//!
//! With radices `[4, 8]` (minor first) an axis `0 <= x < n` has the digits `x % 4`, `x // 4 % 8` and `x // 32`, with the
//! strides 1, 4 and 32. The parts `x`, `x // 4` and `x // 32` are bounded by `n`, `ceil(n / 4)` and `ceil(n / 32)`.
//!
//! A sum is bounded by its digits one by one, or with the upper digits of an axis taken together as a part. The latter is
//! sharper: for `n = 17` the digits of `x` allow `x % 4 + 4 * (x // 4) <= 19`, the axis itself only `x <= 16`. If other axes
//! lie between the digits of one, the sum is written in the parts of each axis: `x % 4 + 20 * (x // 4)` is
//! `x + 16 * (x // 4)`, which is at most `16 + 16 * 4`.

use super::atoms::{Atoms, TOO_LARGE};
use super::{Instance, Poly, Rejected};
use crate::lemmas::Lemma;

/// Greatest number of digits in a space.
const MAX_DIGITS: usize = 256;

/// An index `0 <= x < extent`. Its part `k` is `x // strides[k]`; digit `k` is part `k` modulo its radix, the last digit
/// the last part.
#[derive(Debug)]
pub(super) struct Axis {
    /// The number of indices.
    pub(super) extent: Poly,
    /// The number of its first digit.
    pub(super) first: usize,
    /// The weight of each digit in the index, the minor one first: 1, then products of radices.
    pub(super) strides: Vec<Poly>,
    /// The extent of each part.
    parts: Vec<Poly>,
}

impl Axis {
    /// Number of digits.
    pub(super) fn n_digits(&self) -> usize {
        self.strides.len()
    }
}

/// A digit `0 <= d < extent`.
#[derive(Debug)]
pub(super) struct Digit {
    /// The axis that it is a digit of.
    pub(super) axis: usize,
    /// The number of its values.
    pub(super) extent: Poly,
}

impl Digit {
    /// Whether the digit is always 0.
    pub(super) fn is_unit(&self) -> bool {
        self.extent.as_const() == Some(1)
    }
}

/// A box of indices in mixed radix.
#[derive(Debug, Default)]
pub(super) struct Space {
    /// The axes, in the order of the shape.
    pub(super) axes: Vec<Axis>,
    /// The digits of all axes, the minor one of each axis first.
    pub(super) digits: Vec<Digit>,
}

/// A sum of digits with coefficients that are not 0, ordered by the number of the digit, and an offset. Digits that are
/// always 0 do not occur.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Sum {
    /// The number of each digit and its coefficient.
    pub(super) places: Vec<(usize, Poly)>,
    /// The part without digits.
    pub(super) offset: Poly,
}

/// A summand with a known range: a digit, or several upper digits of an axis taken together, times a coefficient.
#[derive(Clone, Debug)]
pub(super) struct Bounded {
    /// The factor.
    pub(super) coefficient: Poly,
    /// The greatest value; the least is 0.
    pub(super) max: Poly,
}

impl Space {
    /// Adds an axis of the given extent, written with the given radices, the minor one first.
    ///
    /// # Errors
    /// There are too many digits, a radix is 1 or not shown to be positive, or the last digit is always 0.
    pub(super) fn add(
        &mut self,
        extent: Poly,
        radices: Vec<Poly>,
        atoms: &mut Atoms,
        found: &mut Vec<Instance>,
    ) -> Result<(), Rejected> {
        if self.digits.len() + radices.len() >= MAX_DIGITS {
            return Err(Rejected("there are too many digits"));
        }
        atoms.show(&extent.plus_const(-1).ok_or(TOO_LARGE)?, found)?;
        let (mut stride, mut strides, mut parts) = (Poly::constant(1), vec![Poly::constant(1)], vec![extent.clone()]);
        for radix in &radices {
            // The digit would always be 0.
            if radix.as_const() == Some(1) {
                return Err(Rejected("a radix is 1"));
            }
            atoms.show(&radix.plus_const(-1).ok_or(TOO_LARGE)?, found)?;
            stride = stride.times(radix).ok_or(TOO_LARGE)?;
            let rounded = extent.plus(&stride).and_then(|sum| sum.plus_const(-1)).ok_or(TOO_LARGE)?;
            parts.push(atoms.floor(&rounded, &stride, found)?);
            strides.push(stride.clone());
            found.extend(
                [Lemma::Euclid, Lemma::DivNonNegative, Lemma::DivBelowCeil, Lemma::HornerInverse].map(Instance::Lemma),
            );
        }
        let (axis, first) = (self.axes.len(), self.digits.len());
        let last = parts.last().cloned().unwrap_or_default();
        if !radices.is_empty() && last.as_const() == Some(1) {
            return Err(Rejected("a radix leaves nothing above it"));
        }
        self.digits.extend(radices.into_iter().chain([last]).map(|extent| Digit { axis, extent }));
        self.axes.push(Axis { extent, first, strides, parts });
        Ok(())
    }

    /// An index as the sum of its digits.
    pub(super) fn index(&self, axis: usize) -> Sum {
        let axis = &self.axes[axis];
        let digits = axis.strides.iter().enumerate().map(|(k, stride)| (axis.first + k, stride.clone()));
        let places = digits.filter(|(digit, _)| !self.digits[*digit].is_unit()).collect();
        Sum { places, offset: Poly::default() }
    }

    /// The summands of a sum, each digit alone.
    pub(super) fn single(&self, sum: &Sum) -> Option<Vec<Bounded>> {
        let bounded = |(digit, coefficient): &(usize, Poly)| {
            let max = self.digits[*digit].extent.plus_const(-1)?;
            Some(Bounded { coefficient: coefficient.clone(), max })
        };
        sum.places.iter().map(bounded).collect()
    }

    /// The summands of a sum, with the upper digits of an axis taken together where their coefficients allow it:
    /// `4*d1 + 32*d2` is `4 * (x // 4)`, whose bound is sharper if the last tile is not full.
    pub(super) fn grouped(&self, sum: &Sum) -> Option<Vec<Bounded>> {
        let mut bounded = Vec::with_capacity(sum.places.len());
        let mut rest = sum.places.as_slice();
        while let Some((digit, _)) = rest.first() {
            let axis = &self.axes[self.digits[*digit].axis];
            let count = rest.iter().take_while(|(other, _)| *other < axis.first + axis.n_digits()).count();
            let (own, others) = rest.split_at(count);
            let start = self.part_of(axis, own);
            for (digit, coefficient) in &own[..start] {
                let max = self.digits[*digit].extent.plus_const(-1)?;
                bounded.push(Bounded { coefficient: coefficient.clone(), max });
            }
            if let Some((digit, coefficient)) = own.get(start) {
                let part = digit - axis.first;
                let max = axis.parts[part].plus_const(-1)?;
                bounded.push(Bounded { coefficient: coefficient.clone(), max });
            }
            rest = others;
        }
        Some(bounded)
    }

    /// Whether several digits of one axis occur in a sum. Otherwise nothing is gained by parts.
    pub(super) fn shares_axes(&self, sum: &Sum) -> bool {
        sum.places.windows(2).any(|pair| self.digits[pair[0].0].axis == self.digits[pair[1].0].axis)
    }

    /// The summands of a sum, written in the parts of each axis: digit `k` is part `k` less part `k + 1` times the radix
    /// between them. The bound is exact where the coefficient of each part is at least 0, however far apart the places are.
    pub(super) fn in_parts(&self, sum: &Sum) -> Option<Vec<Bounded>> {
        let mut bounded = Vec::with_capacity(sum.places.len() + 1);
        for axis in &self.axes {
            let mut taken = Poly::default();
            for (number, part) in (axis.first..).zip(&axis.parts) {
                let place = sum.places.iter().find(|(digit, _)| *digit == number);
                let weight = place.map_or_else(Poly::default, |(_, weight)| weight.clone());
                let coefficient = weight.minus(&taken)?;
                // The extent of each digit but the last one is its radix. There is no part above the last one.
                taken = weight.times(&self.digits[number].extent)?;
                if !coefficient.is_zero() {
                    bounded.push(Bounded { coefficient, max: part.plus_const(-1)? });
                }
            }
        }
        Some(bounded)
    }

    /// The position from which on the places of one axis form a part `x // stride` of it; the number of places if none do.
    fn part_of(&self, axis: &Axis, own: &[(usize, Poly)]) -> usize {
        let mut expected = axis.first + axis.n_digits();
        let mut start = own.len();
        let mut above: Option<&Poly> = None;
        for (position, (digit, coefficient)) in own.iter().enumerate().rev() {
            // Digits that are always 0 have no place; they may be missing in between.
            while expected > axis.first && expected > digit + 1 && self.digits[expected - 1].is_unit() {
                expected -= 1;
            }
            let number = digit - axis.first;
            let fits = *digit + 1 == expected
                && above.is_none_or(|above| {
                    let next = own[position + 1].0 - axis.first;
                    let ratio = axis.strides[next].split(&axis.strides[number]);
                    ratio.is_some_and(|(ratio, rest)| {
                        rest.is_zero() && coefficient.times(&ratio).as_ref() == Some(above)
                    })
                });
            if !fits {
                break;
            }
            (expected, start, above) = (*digit, position, Some(coefficient));
        }
        start
    }
}

impl Sum {
    /// A sum without digits.
    pub(super) fn number(offset: Poly) -> Self {
        Self { places: Vec::new(), offset }
    }

    /// The value, if the sum contains no digits.
    pub(super) fn free(&self) -> Option<&Poly> {
        self.places.is_empty().then_some(&self.offset)
    }

    /// The sum of two sums; `None` if a number leaves `i128`. So do the operations below.
    pub(super) fn plus(&self, other: &Self) -> Option<Self> {
        let mut places = Vec::with_capacity(self.places.len() + other.places.len());
        // A merge of two lists that are ordered by digit. Terms that cancel are dropped: sums are compared as data, so
        // equal sums must have one form.
        let (mut left, mut right) = (self.places.as_slice(), other.places.as_slice());
        loop {
            let (a, b) = match (left.split_first(), right.split_first()) {
                (Some((a, rest)), Some((b, _))) if a.0 < b.0 => {
                    left = rest;
                    (a, None)
                }
                (Some((a, _)), Some((b, rest))) if b.0 < a.0 => {
                    right = rest;
                    (b, None)
                }
                (Some((a, more)), Some((b, rest))) => {
                    (left, right) = (more, rest);
                    (a, Some(b))
                }
                (Some((a, rest)), None) => {
                    left = rest;
                    (a, None)
                }
                (None, Some((b, rest))) => {
                    right = rest;
                    (b, None)
                }
                (None, None) => break,
            };
            let sum = match b {
                Some(b) => a.1.plus(&b.1)?,
                None => a.1.clone(),
            };
            if !sum.is_zero() {
                places.push((a.0, sum));
            }
        }
        Some(Self { places, offset: self.offset.plus(&other.offset)? })
    }

    /// The product with a polynomial.
    pub(super) fn times(&self, factor: &Poly) -> Option<Self> {
        if factor.is_zero() {
            return Some(Self::default());
        }
        let scale = |(digit, coefficient): &(usize, Poly)| Some((*digit, coefficient.times(factor)?));
        let places = self.places.iter().map(scale).collect::<Option<_>>()?;
        Some(Self { places, offset: self.offset.times(factor)? })
    }

    /// The difference.
    pub(super) fn minus(&self, other: &Self) -> Option<Self> {
        self.plus(&other.times(&Poly::constant(-1))?)
    }

    /// The sum with a number.
    pub(super) fn plus_const(&self, value: i128) -> Option<Self> {
        Some(Self { places: self.places.clone(), offset: self.offset.plus_const(value)? })
    }
}
