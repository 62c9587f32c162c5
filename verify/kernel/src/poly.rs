//! Polynomials with integer coefficients over atoms, in checked arithmetic: the judge's only polynomial type.
//!
//! Three parts of the judge use it, each with atoms of its own:
//!
//! - [`Poly<Term>`](Poly), built by [`Poly::from_term`], guesses that two terms are equal. A guess is proved by the
//!   [kernel](crate::facts) like everything else, so nothing rests on it.
//! - The judge's digit tier checks certificates in polynomials over numbered symbols and quotients.
//! - `ring` compares integer expressions that may wrap, with coefficients modulo a power of two.
//!
//! The untrusted side (`algebra`) has a polynomial type of its own. The two are kept apart so that one mistake cannot both
//! make a wrong map and prove it right.
//!
//! ```
//! use tilewright_kernel::{poly::Poly, term::Term};
//! let (x, y) = (Term::sym("x"), Term::sym("y"));
//! let square = Poly::from_term(&((&x + &y) * (&x + &y))).unwrap();
//! assert_eq!(Some(square), Poly::from_term(&(&x * &x + &x * &y * 2 + &y * &y)));
//! ```

use crate::term::{BinaryOp, Term, TermKind, UnaryOp};
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// What a polynomial does not look into: an indeterminate.
pub trait Atom: Clone + Ord {
    /// A polynomial has fewer terms than this, not counting the constant; an operation that would make more gives `None`.
    const MAX_TERMS: usize;
    /// A product of polynomials with more pairs of terms than this gives `None`.
    const MAX_PAIRS: usize;
}

/// Atoms by number. The limit keeps a hostile certificate from using up the time of the checker.
impl Atom for u32 {
    const MAX_TERMS: usize = 256;
    const MAX_PAIRS: usize = usize::MAX;
}

/// Atoms are terms that are neither sums, differences, products nor constants.
impl Atom for Term {
    const MAX_TERMS: usize = 1 << 16;
    const MAX_PAIRS: usize = 4096;
}

/// A product of atoms: sorted, each as often as its exponent says; empty is 1.
pub type Monomial<A> = Vec<A>;

/// A polynomial in normal form: equal polynomials are equal data.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Poly<A = Term> {
    constant: i128,
    /// The other terms by degree and then by atoms, no coefficient 0. Most polynomials are numbers and have none.
    terms: Vec<(Monomial<A>, i128)>,
}

impl<A> Default for Poly<A> {
    /// The polynomial 0.
    fn default() -> Self {
        Self { constant: 0, terms: Vec::new() }
    }
}

/// The order of terms: by degree, then by atoms. Multiplying two monomials by a third one keeps their order.
fn order<A: Ord>(a: &[A], b: &[A]) -> Ordering {
    a.len().cmp(&b.len()).then_with(|| a.cmp(b))
}

/// The product of two monomials.
pub fn join<A: Atom>(a: &[A], b: &[A]) -> Monomial<A> {
    let mut all = [a, b].concat();
    all.sort_unstable();
    all
}

/// The quotient of two monomials; `None` if `part` does not divide `whole`.
pub fn without<A: Atom>(whole: &[A], part: &[A]) -> Option<Monomial<A>> {
    let mut left = whole.to_vec();
    for atom in part {
        let position = left.iter().position(|other| other == atom)?;
        left.remove(position);
    }
    Some(left)
}

/// The greatest common divisor of two monomials.
pub fn common<A: Atom>(a: &[A], b: &[A]) -> Monomial<A> {
    let mut rest = b.to_vec();
    let mut shared = Vec::new();
    for atom in a {
        if let Some(position) = rest.iter().position(|other| other == atom) {
            rest.remove(position);
            shared.push(atom.clone());
        }
    }
    shared
}

impl<A: Atom> Poly<A> {
    /// A number.
    pub fn constant(value: i128) -> Self {
        Self { constant: value, terms: Vec::new() }
    }

    /// A single atom.
    pub fn atom(atom: A) -> Self {
        Self { constant: 0, terms: vec![(vec![atom], 1)] }
    }

    /// Whether it is the polynomial 0.
    pub fn is_zero(&self) -> bool {
        self.constant == 0 && self.terms.is_empty()
    }

    /// Its value, if it is a number.
    pub fn as_const(&self) -> Option<i128> {
        self.terms.is_empty().then_some(self.constant)
    }

    /// The constant term.
    pub fn constant_term(&self) -> i128 {
        self.constant
    }

    /// Monomials and coefficients by degree and then by atoms: the constant term comes first, unless it is 0.
    pub fn terms(&self) -> impl DoubleEndedIterator<Item = (&[A], i128)> + '_ {
        let constant = (self.constant != 0).then_some((&[] as &[A], self.constant));
        constant.into_iter().chain(self.terms.iter().map(|(monomial, value)| (monomial.as_slice(), *value)))
    }

    /// Number of terms, the constant one included unless it is 0.
    pub fn n_terms(&self) -> usize {
        self.terms.len() + usize::from(self.constant != 0)
    }

    /// All atoms, each as often as it occurs.
    pub fn atoms(&self) -> impl Iterator<Item = &A> {
        self.terms.iter().flat_map(|(monomial, _)| monomial)
    }

    /// The sum; `None` if a coefficient leaves `i128` or there are too many terms. So do all operations below.
    pub fn plus(&self, other: &Self) -> Option<Self> {
        self.clone().accumulated(other.clone())
    }

    /// The sum of two polynomials that are not needed any more. A short one is inserted into a long one, so that adding up
    /// `n` terms one by one does not copy the sum `n` times.
    fn accumulated(mut self, mut other: Self) -> Option<Self> {
        let constant = self.constant.checked_add(other.constant)?;
        if self.terms.len() < other.terms.len() {
            std::mem::swap(&mut self, &mut other);
        }
        self.constant = constant;
        if 8 * other.terms.len() <= self.terms.len() {
            for (monomial, value) in other.terms {
                self.insert(monomial, value)?;
            }
        } else {
            self.terms = merged(self.terms, other.terms)?;
        }
        (self.terms.len() < A::MAX_TERMS).then_some(self)
    }

    /// Adds a term that is not constant.
    fn insert(&mut self, monomial: Monomial<A>, value: i128) -> Option<()> {
        match self.terms.binary_search_by(|(other, _)| order(other, &monomial)) {
            Ok(position) => {
                let sum = self.terms[position].1.checked_add(value)?;
                if sum == 0 {
                    self.terms.remove(position);
                } else {
                    self.terms[position].1 = sum;
                }
            }
            Err(position) => self.terms.insert(position, (monomial, value)),
        }
        Some(())
    }

    /// The difference.
    pub fn minus(&self, other: &Self) -> Option<Self> {
        self.plus(&other.scaled(-1)?)
    }

    /// The sum with a number.
    pub fn plus_const(&self, value: i128) -> Option<Self> {
        Some(Self { constant: self.constant.checked_add(value)?, terms: self.terms.clone() })
    }

    /// The product with a number.
    pub fn scaled(&self, factor: i128) -> Option<Self> {
        if factor == 0 {
            return Some(Self::default());
        }
        let scaled = |(monomial, value): &(Monomial<A>, i128)| Some((monomial.clone(), value.checked_mul(factor)?));
        let terms = self.terms.iter().map(scaled).collect::<Option<_>>()?;
        Some(Self { constant: self.constant.checked_mul(factor)?, terms })
    }

    /// The product.
    pub fn times(&self, other: &Self) -> Option<Self> {
        match (self.as_const(), other.as_const()) {
            (_, Some(value)) => return self.scaled(value),
            (Some(value), _) => return other.scaled(value),
            (None, None) => {}
        }
        if self.n_terms().saturating_mul(other.n_terms()) > A::MAX_PAIRS {
            return None;
        }
        let mut terms = other.terms();
        let product = |(monomial, value): (&[A], i128)| self.times_term(monomial, value);
        terms.try_fold(Self::default(), |sum, term| sum.accumulated(product(term)?))
    }

    /// The product with a single term, whose coefficient is not 0.
    pub fn times_term(&self, monomial: &[A], factor: i128) -> Option<Self> {
        if monomial.is_empty() {
            return self.scaled(factor);
        }
        // Multiplication by a monomial keeps the order of the terms.
        let term = |(other, value): (&[A], i128)| Some((join(other, monomial), value.checked_mul(factor)?));
        let terms = self.terms().map(term).collect::<Option<_>>()?;
        Some(Self { constant: 0, terms })
    }

    /// The polynomial with `map` applied to every coefficient.
    #[must_use]
    pub fn map_coefficients(mut self, map: impl Fn(i128) -> i128) -> Self {
        self.constant = map(self.constant);
        for (_, value) in &mut self.terms {
            *value = map(*value);
        }
        self.terms.retain(|(_, value)| *value != 0);
        self
    }

    /// Quotient and rest of a division: `self == by * quotient + rest`. If `by` is a single term, the quotient takes all
    /// terms that it divides; else the quotient is 0 unless the division is exact.
    pub fn split(&self, by: &Self) -> Option<(Self, Self)> {
        let mut divisors = by.terms();
        let (Some((monomial, factor)), None) = (divisors.next(), divisors.next()) else {
            return Some(match self.exact_quotient(by) {
                Some(quotient) => (quotient, Self::default()),
                None => (Self::default(), self.clone()),
            });
        };
        let (mut quotient, mut rest) = (Self::default(), Self::default());
        for (other, value) in self.terms() {
            match without(other, monomial) {
                Some(left) if value.checked_rem(factor)? == 0 => quotient.push(left, value.checked_div(factor)?),
                _ => rest.push(other.to_vec(), value),
            }
        }
        Some((quotient, rest))
    }

    /// Appends a term that comes after all others.
    fn push(&mut self, monomial: Monomial<A>, value: i128) {
        if monomial.is_empty() {
            self.constant = value;
        } else {
            self.terms.push((monomial, value));
        }
    }

    /// The quotient of an exact division, by long division; `None` if the division leaves a rest.
    fn exact_quotient(&self, by: &Self) -> Option<Self> {
        let (lead, factor) = by.terms().next_back()?;
        let (mut left, mut quotient) = (self.clone(), Self::default());
        // Each step removes the leading term and adds smaller ones only.
        for _ in 0..A::MAX_TERMS {
            let Some((monomial, value)) = left.terms().next_back() else { return Some(quotient) };
            let monomial = without(monomial, lead)?;
            if value.checked_rem(factor)? != 0 {
                return None;
            }
            let value = value.checked_div(factor)?;
            left = left.minus(&by.times_term(&monomial, value)?)?;
            let mut term = Self::default();
            term.push(monomial, value);
            quotient = quotient.accumulated(term)?;
        }
        None
    }
}

/// The sum of two sorted lists of terms, without those that cancel.
fn merged<A: Ord>(left: Vec<(Monomial<A>, i128)>, right: Vec<(Monomial<A>, i128)>) -> Option<Vec<(Monomial<A>, i128)>> {
    let mut sum = Vec::with_capacity(left.len() + right.len());
    let (mut left, mut right) = (left.into_iter().peekable(), right.into_iter().peekable());
    loop {
        let side = match (left.peek(), right.peek()) {
            (Some((a, _)), Some((b, _))) => order(a, b),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => return Some(sum),
        };
        match side {
            Ordering::Less => sum.extend(left.next()),
            Ordering::Greater => sum.extend(right.next()),
            Ordering::Equal => {
                if let (Some((monomial, a)), Some((_, b))) = (left.next(), right.next()) {
                    let value = a.checked_add(b)?;
                    sum.extend((value != 0).then_some((monomial, value)));
                }
            }
        }
    }
}

impl Poly<Term> {
    /// The normal form of a term. `None` if a coefficient leaves `i128` or the polynomial grows too large.
    pub fn from_term(term: &Term) -> Option<Self> {
        // Sums are moved into `accumulated`, which adds `n` terms without copying the sum `n` times.
        match term.kind() {
            TermKind::Const(value) => Some(Self::constant(*value)),
            TermKind::Unary(UnaryOp::Neg, a) => Self::from_term(a)?.scaled(-1),
            TermKind::Binary(BinaryOp::Add, a, b) => Self::from_term(a)?.accumulated(Self::from_term(b)?),
            TermKind::Binary(BinaryOp::Sub, a, b) => Self::from_term(a)?.accumulated(Self::from_term(b)?.scaled(-1)?),
            TermKind::Binary(BinaryOp::Mul, a, b) => Self::from_term(a)?.times(&Self::from_term(b)?),
            TermKind::Sym(_)
            | TermKind::Unary(UnaryOp::Abs | UnaryOp::Not, _)
            | TermKind::Binary(
                BinaryOp::FloorDiv
                | BinaryOp::FloorMod
                | BinaryOp::TruncDiv
                | BinaryOp::TruncMod
                | BinaryOp::Min
                | BinaryOp::Max
                | BinaryOp::BitAnd
                | BinaryOp::BitOr
                | BinaryOp::BitXor
                | BinaryOp::Shl
                | BinaryOp::Shr,
                ..,
            )
            | TermKind::Ite(..)
            | TermKind::App(..) => Some(Self::atom(normalized_atom(term))),
        }
    }

    /// Monomials as atoms with exponents, and their coefficients, in lexicographic order: the order in which terms are
    /// written. The constant term comes first, unless it is 0.
    pub fn powers(&self) -> BTreeMap<Vec<(Term, u32)>, i128> {
        let with_exponents = |monomial: &[Term]| {
            let runs = monomial.chunk_by(|a, b| a == b);
            runs.map(|run| (run[0].clone(), u32::try_from(run.len()).unwrap_or(u32::MAX))).collect()
        };
        self.terms().map(|(monomial, value)| (with_exponents(monomial), value)).collect()
    }

    /// The polynomial as a sum of products, in a fixed order.
    pub fn to_term(&self) -> Term {
        self.powers().iter().fold(Term::int(0), |sum, (powers, coefficient)| {
            let product = powers.iter().fold(Term::int(*coefficient), |product, (atom, exponent)| {
                (0..*exponent).fold(product, |product, _| product * atom)
            });
            sum + product
        })
    }
}

/// An atom with its arguments in normal form.
fn normalized_atom(term: &Term) -> Term {
    match term.kind() {
        TermKind::Const(_) | TermKind::Sym(_) => term.clone(),
        TermKind::Unary(op, a) => Term::unary(*op, normalized(a)),
        TermKind::Binary(op, a, b) => Term::binary(*op, normalized(a), normalized(b)),
        TermKind::Ite(condition, a, b) => Term::ite(condition, normalized(a), normalized(b)),
        TermKind::App(name, args) => Term::app(name.clone(), args.iter().map(normalized).collect::<Vec<_>>()),
    }
}

/// A term in normal form; the term itself if that is too large.
pub fn normalized(term: &Term) -> Term {
    Poly::from_term(term).map_or_else(|| term.clone(), |poly| poly.to_term())
}

/// Whether both terms have the same normal form. A hint: `true` has still to be proved, `false` refutes nothing.
pub fn probably_equal(lhs: &Term, rhs: &Term) -> bool {
    Poly::from_term(&(lhs - rhs)).is_some_and(|difference| difference.is_zero())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_expand_and_cancel() {
        let (x, y) = (Term::sym("x"), Term::sym("y"));
        let square = (&x + &y) * (&x + &y);
        assert!(probably_equal(&square, &(&x * &x + &x * &y * 2 + &y * &y)));
        assert!(!probably_equal(&square, &(&x * &x + &y * &y)));
        assert!(probably_equal(&(&x - &x), &Term::int(0)));
    }

    #[test]
    fn arguments_of_atoms_are_normalised() {
        let (x, y) = (Term::sym("x"), Term::sym("y"));
        assert!(probably_equal(&(&x + &y).floor_div(4), &(&y + &x).floor_div(4)));
        assert!(!probably_equal(&(&x + &y).floor_div(4), &(&y + &x).floor_mod(4)));
        assert_eq!(normalized(&(&y * 2 + &x - &y)), normalized(&(&x + &y)));
    }

    #[test]
    fn a_coefficient_beyond_128_bits_gives_none() {
        let large = Term::sym("x") * i128::MAX;
        assert_eq!(Poly::from_term(&(&large * &large)), None);
        assert!(!probably_equal(&(&large * &large), &(&large * &large * 2)));
        assert_eq!(Poly::<u32>::constant(i128::MAX).plus_const(1), None);
        assert_eq!(Poly::<u32>::constant(i128::MIN).scaled(-1), None);
    }

    #[test]
    fn long_sums_are_the_same_however_they_are_added_up() {
        let term = |n: u32| Poly::atom(n % 97).times(&Poly::atom(n % 53)).unwrap().plus(&Poly::atom(n)).unwrap();
        let one_by_one = (0..60).fold(Poly::default(), |sum: Poly<u32>, n| sum.plus(&term(n)).unwrap());
        let backwards = (0..60).rev().fold(Poly::default(), |sum: Poly<u32>, n| term(n).plus(&sum).unwrap());
        let halves = [0..30, 30..60].map(|range| range.fold(Poly::default(), |sum, n| term(n).plus(&sum).unwrap()));
        assert_eq!(one_by_one, backwards);
        assert_eq!(one_by_one, halves[0].plus(&halves[1]).unwrap());
        assert!(one_by_one.minus(&halves[1]).unwrap().minus(&halves[0]).unwrap().is_zero());
        assert_eq!(one_by_one.n_terms(), 120);
    }

    fn sum_and_difference() -> (Poly<u32>, Poly<u32>) {
        let (x, y) = (Poly::atom(0), Poly::atom(1));
        (x.plus(&y).unwrap().plus_const(3).unwrap(), x.minus(&y).unwrap())
    }

    #[test]
    fn a_product_divided_by_a_factor_is_the_other_factor() {
        let (a, b) = sum_and_difference();
        let product = a.times(&b).unwrap();
        assert_eq!(product.split(&a).unwrap(), (b.clone(), Poly::default()));
        assert_eq!(product.plus_const(1).unwrap().exact_quotient(&a), None);
    }

    #[test]
    fn a_single_term_divides_the_terms_that_contain_it() {
        let (x, y) = (Poly::<u32>::atom(0), Poly::atom(1));
        let sum = x.times(&y).unwrap().scaled(6).unwrap().plus(&x).unwrap();
        let (quotient, rest) = sum.split(&y.scaled(3).unwrap()).unwrap();
        assert_eq!((quotient, rest), (x.scaled(2).unwrap(), x));
    }
}
