//! Polynomial normal form: a heuristic for guessing that two terms are equal. Nothing here is trusted; what it suggests
//! is proved by the [kernel](crate::kernel) like everything else.

use crate::term::{BinaryOp, Term, TermKind, UnaryOp};
use std::collections::BTreeMap;

/// A product of atoms (everything that is not `+`, `-`, `*` or a constant) with their exponents, sorted.
pub type Monomial = Vec<(Term, u32)>;

/// A polynomial over atoms; no coefficient is zero.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Poly(BTreeMap<Monomial, i128>);

/// Larger polynomials are given up: the heuristic must stay cheap.
const MAX_MONOMIALS: usize = 4096;

impl Poly {
    /// The normal form of `term`; `None` when a coefficient leaves `i128` or the polynomial grows too large.
    pub fn of(term: &Term) -> Option<Self> {
        match term.kind() {
            TermKind::Const(value) => Some(Self::constant(*value)),
            TermKind::Unary(UnaryOp::Neg, a) => Self::of(a)?.scaled(-1),
            TermKind::Binary(BinaryOp::Add, a, b) => Self::of(a)?.plus(&Self::of(b)?, 1),
            TermKind::Binary(BinaryOp::Sub, a, b) => Self::of(a)?.plus(&Self::of(b)?, -1),
            TermKind::Binary(BinaryOp::Mul, a, b) => Self::of(a)?.times(&Self::of(b)?),
            _ => Some(Self(BTreeMap::from([(vec![(atom(term), 1)], 1)]))),
        }
    }

    fn constant(value: i128) -> Self {
        Self(if value == 0 { BTreeMap::new() } else { BTreeMap::from([(Vec::new(), value)]) })
    }

    /// Its monomials and their coefficients, in a fixed order.
    pub fn monomials(&self) -> impl Iterator<Item = (&Monomial, i128)> {
        self.0.iter().map(|(monomial, coefficient)| (monomial, *coefficient))
    }

    /// Whether it is the zero polynomial.
    pub fn is_zero(&self) -> bool {
        self.0.is_empty()
    }

    fn scaled(mut self, factor: i128) -> Option<Self> {
        for coefficient in self.0.values_mut() {
            *coefficient = coefficient.checked_mul(factor)?;
        }
        Some(self)
    }

    fn plus(mut self, other: &Self, factor: i128) -> Option<Self> {
        for (monomial, coefficient) in &other.0 {
            self.add(monomial.clone(), coefficient.checked_mul(factor)?)?;
        }
        Some(self.without_zeros())
    }

    fn add(&mut self, monomial: Monomial, coefficient: i128) -> Option<()> {
        let slot = self.0.entry(monomial).or_insert(0);
        *slot = slot.checked_add(coefficient)?;
        Some(())
    }

    fn times(&self, other: &Self) -> Option<Self> {
        if self.0.len().saturating_mul(other.0.len()) > MAX_MONOMIALS {
            return None;
        }
        let mut product = Self::default();
        for (lhs, a) in &self.0 {
            for (rhs, b) in &other.0 {
                product.add(merged(lhs, rhs), a.checked_mul(*b)?)?;
            }
        }
        Some(product.without_zeros())
    }

    fn without_zeros(mut self) -> Self {
        self.0.retain(|_, coefficient| *coefficient != 0);
        self
    }

    /// The polynomial as a sum of products, in a fixed order.
    pub fn to_term(&self) -> Term {
        self.0.iter().fold(Term::int(0), |sum, (monomial, coefficient)| {
            let product = monomial.iter().fold(Term::int(*coefficient), |product, (atom, exponent)| {
                (0..*exponent).fold(product, |product, _| product * atom)
            });
            sum + product
        })
    }
}

fn merged(lhs: &Monomial, rhs: &Monomial) -> Monomial {
    let mut powers: BTreeMap<&Term, u32> = BTreeMap::new();
    for (atom, exponent) in lhs.iter().chain(rhs) {
        *powers.entry(atom).or_insert(0) += exponent;
    }
    powers.into_iter().map(|(atom, exponent)| (atom.clone(), exponent)).collect()
}

/// The atom with its arguments in normal form.
fn atom(term: &Term) -> Term {
    match term.kind() {
        TermKind::Const(_) | TermKind::Sym(_) => term.clone(),
        TermKind::Unary(op, a) => Term::unary(*op, normalized(a)),
        TermKind::Binary(op, a, b) => Term::binary(*op, normalized(a), normalized(b)),
        TermKind::Ite(condition, a, b) => Term::ite(condition, normalized(a), normalized(b)),
        TermKind::App(name, args) => Term::app(name.clone(), args.iter().map(normalized).collect::<Vec<_>>()),
    }
}

/// `term` in normal form, or as it is where that is not found.
pub fn normalized(term: &Term) -> Term {
    Poly::of(term).map_or_else(|| term.clone(), |poly| poly.to_term())
}

/// Whether both terms have the same normal form. A hint: `true` has still to be proved, `false` refutes nothing.
pub fn probably_equal(lhs: &Term, rhs: &Term) -> bool {
    match Poly::of(&(lhs - rhs)) {
        Some(difference) => difference.is_zero(),
        None => false,
    }
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
    fn what_overflows_is_given_up() {
        let large = Term::sym("x") * i128::MAX;
        assert_eq!(Poly::of(&(&large * &large)), None);
        assert!(!probably_equal(&(&large * &large), &(&large * &large * 2)));
    }
}
