//! Polynomials with integer coefficients over numbered atoms, in checked arithmetic.

use std::cmp::Ordering;

/// More terms than this are given up on.
const MAX_TERMS: usize = 256;

/// A product of atoms, sorted; empty is 1.
pub(super) type Mono = Vec<u32>;

/// A polynomial: a constant, and terms by degree and then by atoms, no coefficient 0. Equal polynomials are equal data.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Poly {
    constant: i128,
    /// Products that are not empty: most polynomials have none, and need no memory.
    rest: Vec<(Mono, i128)>,
}

fn order(a: &[u32], b: &[u32]) -> Ordering {
    a.len().cmp(&b.len()).then_with(|| a.cmp(b))
}

/// The product of two products.
pub(super) fn join(a: &[u32], b: &[u32]) -> Mono {
    let mut all = [a, b].concat();
    all.sort_unstable();
    all
}

/// `whole` without the atoms of `part`, if it has them all.
pub(super) fn without(whole: &[u32], part: &[u32]) -> Option<Mono> {
    let mut left = whole.to_vec();
    for atom in part {
        let position = left.iter().position(|other| other == atom)?;
        left.remove(position);
    }
    Some(left)
}

impl Poly {
    pub(super) fn constant(value: i128) -> Self {
        Self { constant: value, rest: Vec::new() }
    }

    pub(super) fn atom(atom: u32) -> Self {
        Self { constant: 0, rest: vec![(vec![atom], 1)] }
    }

    pub(super) fn is_zero(&self) -> bool {
        self.constant == 0 && self.rest.is_empty()
    }

    /// Its value, if it is a number.
    pub(super) fn as_const(&self) -> Option<i128> {
        self.rest.is_empty().then_some(self.constant)
    }

    /// Its terms, the constant one first if there is one.
    pub(super) fn terms(&self) -> impl Iterator<Item = (&[u32], i128)> + '_ {
        let constant = (self.constant != 0).then_some((&[] as &[u32], self.constant));
        constant.into_iter().chain(self.rest.iter().map(|(mono, value)| (mono.as_slice(), *value)))
    }

    /// The atoms in it.
    pub(super) fn atoms(&self) -> Vec<u32> {
        self.rest.iter().flat_map(|(mono, _)| mono.iter().copied()).collect()
    }

    /// The constant term.
    pub(super) fn constant_term(&self) -> i128 {
        self.constant
    }

    pub(super) fn plus(&self, other: &Self) -> Option<Self> {
        let constant = self.constant.checked_add(other.constant)?;
        let mut sum = Vec::with_capacity(self.rest.len() + other.rest.len());
        let (mut left, mut right) = (self.rest.iter().peekable(), other.rest.iter().peekable());
        loop {
            let side = match (left.peek(), right.peek()) {
                (Some((a, _)), Some((b, _))) => order(a, b),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (None, None) => break,
            };
            match side {
                Ordering::Less => sum.extend(left.next().cloned()),
                Ordering::Greater => sum.extend(right.next().cloned()),
                Ordering::Equal => {
                    if let (Some((mono, a)), Some((_, b))) = (left.next(), right.next()) {
                        let value = a.checked_add(*b)?;
                        sum.extend((value != 0).then(|| (mono.clone(), value)));
                    }
                }
            }
        }
        (sum.len() < MAX_TERMS).then_some(Self { constant, rest: sum })
    }

    pub(super) fn minus(&self, other: &Self) -> Option<Self> {
        self.plus(&other.scaled(-1)?)
    }

    pub(super) fn plus_const(&self, value: i128) -> Option<Self> {
        Some(Self { constant: self.constant.checked_add(value)?, rest: self.rest.clone() })
    }

    pub(super) fn scaled(&self, factor: i128) -> Option<Self> {
        if factor == 0 {
            return Some(Self::default());
        }
        let scaled = |(mono, value): &(Mono, i128)| Some((mono.clone(), value.checked_mul(factor)?));
        let rest = self.rest.iter().map(scaled).collect::<Option<_>>()?;
        Some(Self { constant: self.constant.checked_mul(factor)?, rest })
    }

    pub(super) fn times(&self, other: &Self) -> Option<Self> {
        match (self.as_const(), other.as_const()) {
            (_, Some(value)) => return self.scaled(value),
            (Some(value), _) => return other.scaled(value),
            (None, None) => {}
        }
        other.terms().try_fold(Self::default(), |sum, (mono, value)| sum.plus(&self.times_term(mono, value)?))
    }

    /// A term.
    fn term(mono: Mono, value: i128) -> Self {
        match (value, mono.is_empty()) {
            (0, _) => Self::default(),
            (_, true) => Self::constant(value),
            (_, false) => Self { constant: 0, rest: vec![(mono, value)] },
        }
    }

    /// Times one term, whose factor is not 0; the order of the terms stays.
    pub(super) fn times_term(&self, mono: &[u32], factor: i128) -> Option<Self> {
        if mono.is_empty() {
            return self.scaled(factor);
        }
        let term = |(other, value): (&[u32], i128)| Some((join(other, mono), value.checked_mul(factor)?));
        let rest = self.terms().map(term).collect::<Option<_>>()?;
        Some(Self { constant: 0, rest })
    }

    /// Itself as `by * quotient + rest`; the quotient takes the terms that are divided exactly.
    pub(super) fn split(&self, by: &Self) -> Option<(Self, Self)> {
        let mut divisors = by.terms();
        let (Some((mono, factor)), None) = (divisors.next(), divisors.next()) else {
            return Some(match self.divided(by) {
                Some(quotient) => (quotient, Self::default()),
                None => (Self::default(), self.clone()),
            });
        };
        let (mut quotient, mut rest) = (Self::default(), Self::default());
        for (other, value) in self.terms() {
            match without(other, mono) {
                Some(left) if value.checked_rem(factor)? == 0 => {
                    quotient.push(left, value.checked_div(factor)?);
                }
                _ => rest.push(other.to_vec(), value),
            }
        }
        Some((quotient, rest))
    }

    /// Adds a term that comes after all others.
    fn push(&mut self, mono: Mono, value: i128) {
        if mono.is_empty() {
            self.constant = value;
        } else {
            self.rest.push((mono, value));
        }
    }

    /// The exact quotient, by long division.
    fn divided(&self, by: &Self) -> Option<Self> {
        let (lead, factor) = by.terms().last()?;
        let (mut left, mut quotient) = (self.clone(), Self::default());
        for _ in 0..MAX_TERMS {
            let Some((mono, value)) = left.terms().last() else { return Some(quotient) };
            let (mono, exact) = (without(mono, lead)?, value.checked_rem(factor)? == 0);
            let value = exact.then_some(value.checked_div(factor)?)?;
            left = left.minus(&by.times_term(&mono, value)?)?;
            quotient = quotient.plus(&Self::term(mono, value))?;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> (Poly, Poly) {
        let (x, y) = (Poly::atom(0), Poly::atom(1));
        (x.plus(&y).unwrap().plus_const(3).unwrap(), x.minus(&y).unwrap())
    }

    #[test]
    fn products_are_divided_again() {
        let (a, b) = sample();
        let product = a.times(&b).unwrap();
        assert_eq!(product.split(&a).unwrap(), (b.clone(), Poly::default()));
        assert_eq!(product.plus_const(1).unwrap().divided(&a), None);
    }

    #[test]
    fn a_monomial_takes_what_it_divides() {
        let (x, y) = (Poly::atom(0), Poly::atom(1));
        let sum = x.times(&y).unwrap().scaled(6).unwrap().plus(&x).unwrap();
        let (quotient, rest) = sum.split(&y.scaled(3).unwrap()).unwrap();
        assert_eq!((quotient, rest), (x.scaled(2).unwrap(), x));
    }

    #[test]
    fn nothing_wraps() {
        assert_eq!(Poly::constant(i128::MAX).plus_const(1), None);
        assert_eq!(Poly::constant(i128::MIN).scaled(-1), None);
    }
}
