//! Boxes of indices in mixed radix, and sums of their digits.

use std::collections::BTreeMap;

use crate::poly::Poly;

/// A digit: its axis, and its position, where 0 is the least significant digit.
pub(super) type Digit = (usize, usize);

/// A box of indices: the extents of its axes, and for each axis the radices of its digits, the least significant
/// first. The top digit of an axis has no radix.
#[derive(Clone, Debug)]
pub(super) struct Space {
    extents: Vec<Poly>,
    radices: Vec<Vec<Poly>>,
}

/// A sum of digits times weights, and an offset. No weight is 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Sum {
    pub(super) places: BTreeMap<Digit, Poly>,
    pub(super) offset: Poly,
}

impl Space {
    /// A box in which every index is a single digit.
    pub(super) fn new(extents: Vec<Poly>) -> Self {
        let radices = vec![Vec::new(); extents.len()];
        Self { extents, radices }
    }

    /// The extents of the axes.
    pub(super) fn extents(&self) -> &[Poly] {
        &self.extents
    }

    /// The radices of the digits of each axis, without the top digit.
    pub(super) fn radices(&self) -> &[Vec<Poly>] {
        &self.radices
    }

    /// All digits, axis by axis, the least significant first.
    pub(super) fn digits(&self) -> Vec<Digit> {
        let of_axis = |(axis, radices): (usize, &Vec<Poly>)| (0..=radices.len()).map(move |digit| (axis, digit));
        self.radices.iter().enumerate().flat_map(of_axis).collect()
    }

    /// Whether the digit is the most significant one of its axis, which has no radix.
    pub(super) fn is_top(&self, (axis, digit): Digit) -> bool {
        self.radices[axis].len() == digit
    }

    /// The weight of a digit in its index: the product of the radices below it.
    pub(super) fn stride(&self, (axis, digit): Digit) -> Option<Poly> {
        self.radices[axis][..digit].iter().try_fold(Poly::constant(1), |stride, radix| stride.times(radix))
    }

    /// The number of values of a digit; `None` for the top digit, which the extent of its axis bounds.
    pub(super) fn radix(&self, (axis, digit): Digit) -> Option<&Poly> {
        self.radices[axis].get(digit)
    }

    /// Whether the digit is always 0, as far as the extent and the stride show it.
    pub(super) fn is_unit(&self, digit: Digit) -> bool {
        let extent = &self.extents[digit.0];
        match self.radix(digit) {
            Some(radix) => radix.as_const() == Some(1),
            None => self.stride(digit).is_some_and(|stride| match (extent.as_const(), stride.as_const()) {
                (Some(extent), Some(stride)) => extent <= stride,
                _ => stride == *extent,
            }),
        }
    }

    /// Splits a digit into one below `by` and the rest above it. Returns `None` if `by` does not divide the radix of
    /// the digit.
    pub(super) fn split(&mut self, (axis, digit): Digit, by: &Poly) -> Option<()> {
        let radices = &mut self.radices[axis];
        if let Some(radix) = radices.get(digit) {
            let rest = radix.divided(&by.as_term()?)?;
            radices[digit] = rest;
        }
        radices.insert(digit, by.clone());
        Some(())
    }

    /// The index of an axis as the sum of its digits.
    pub(super) fn index(&self, axis: usize) -> Option<Sum> {
        let mut sum = Sum::default();
        for digit in (0..=self.radices[axis].len()).map(|digit| (axis, digit)) {
            if !self.is_unit(digit) {
                sum.places.insert(digit, self.stride(digit)?);
            }
        }
        Some(sum)
    }
}

impl Sum {
    /// A sum without digits.
    pub(super) fn number(offset: Poly) -> Self {
        Self { places: BTreeMap::new(), offset }
    }

    /// The offset, if the sum holds no digit.
    pub(super) fn as_offset(&self) -> Option<&Poly> {
        self.places.is_empty().then_some(&self.offset)
    }

    /// The sum of two sums; `None` if a weight leaves 128 bits.
    pub(super) fn plus(&self, other: &Self) -> Option<Self> {
        let mut sum = Self { places: self.places.clone(), offset: self.offset.plus(&other.offset)? };
        for (digit, coefficient) in &other.places {
            let total = match sum.places.get(digit) {
                Some(known) => known.plus(coefficient)?,
                None => coefficient.clone(),
            };
            if total.is_zero() {
                sum.places.remove(digit);
            } else {
                sum.places.insert(*digit, total);
            }
        }
        Some(sum)
    }

    /// Every weight and the offset times `factor`.
    pub(super) fn times(&self, factor: &Poly) -> Option<Self> {
        if factor.is_zero() {
            return Some(Self::default());
        }
        let scale = |(digit, coefficient): (&Digit, &Poly)| Some((*digit, coefficient.times(factor)?));
        Some(Self { places: self.places.iter().map(scale).collect::<Option<_>>()?, offset: self.offset.times(factor)? })
    }

    /// The difference of two sums.
    pub(super) fn minus(&self, other: &Self) -> Option<Self> {
        self.plus(&other.times(&Poly::constant(-1))?)
    }

    /// The sum with `value` added to its offset.
    pub(super) fn plus_const(&self, value: i128) -> Option<Self> {
        Some(Self { places: self.places.clone(), offset: self.offset.plus_const(value)? })
    }
}
