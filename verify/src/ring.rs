//! Integers that may wrap, as polynomials: sums, differences and products of the same parts.
//!
//! Arithmetic modulo `2^bits` is a ring, so what is the same polynomial is the same value, whatever wraps on the way.

use std::collections::BTreeMap;

use tilewright_ir::{BinaryOp, Expr, UnaryOp};

/// Most products of parts in one sum.
const MOST: usize = 64;

/// Coefficients, modulo `2^bits`, of products of parts: the parts' numbers in order.
type Poly = BTreeMap<Vec<usize>, i128>;

/// Whether two integers of one lane are sums and products of the same parts: then they are the same value, also where
/// something wraps. Parts are the same if they have the same text; `new` has none of its own, which might have no value.
pub(crate) fn same_polynomial(old: &Expr, new: &Expr) -> bool {
    let ty = old.dtype();
    if ty != new.dtype() || !ty.is_scalar() || !ty.scalar.is_integer() {
        return false;
    }
    let mut ring = Ring { bits: ty.scalar.bits(), parts: Vec::new() };
    let before = ring.poly(old);
    let n_parts = ring.parts.len();
    let after = ring.poly(new);
    ring.parts.len() == n_parts && before.is_some() && before == after
}

struct Ring<'e> {
    bits: u32,
    parts: Vec<&'e Expr>,
}

impl<'e> Ring<'e> {
    fn poly(&mut self, expr: &'e Expr) -> Option<Poly> {
        match expr {
            Expr::Int { value, .. } => self.sum([(Vec::new(), *value)]),
            Expr::Binary(BinaryOp::Add, a, b) => {
                let (a, b) = (self.poly(a)?, self.poly(b)?);
                self.sum(a.into_iter().chain(b))
            }
            Expr::Binary(BinaryOp::Sub, a, b) => {
                let (a, b) = (self.poly(a)?, self.poly(b)?);
                self.sum(a.into_iter().chain(b.into_iter().map(|(product, times)| (product, -times))))
            }
            Expr::Unary(UnaryOp::Neg, a) => {
                let a = self.poly(a)?;
                self.sum(a.into_iter().map(|(product, times)| (product, -times)))
            }
            Expr::Binary(BinaryOp::Mul, a, b) => {
                let (a, b) = (self.poly(a)?, self.poly(b)?);
                let products = a.iter().flat_map(|(p, x)| {
                    b.iter().map(move |(q, y)| {
                        let mut product = [p.as_slice(), q].concat();
                        product.sort_unstable();
                        // Both are below 2^64 in magnitude: modulo 2^128 nothing is lost.
                        (product, x.wrapping_mul(*y))
                    })
                });
                self.sum(products)
            }
            _ => {
                let number = self.parts.iter().position(|part| *part == expr).unwrap_or_else(|| {
                    self.parts.push(expr);
                    self.parts.len() - 1
                });
                self.sum([(vec![number], 1)])
            }
        }
    }

    /// Products that are the same taken together; none if there are too many.
    fn sum(&self, products: impl IntoIterator<Item = (Vec<usize>, i128)>) -> Option<Poly> {
        let mut sum = Poly::new();
        for (product, times) in products {
            let total = sum.entry(product).or_default();
            *total = total.wrapping_add(times) & ((1i128 << self.bits) - 1);
            if sum.len() > MOST {
                return None;
            }
        }
        sum.retain(|_, times| *times != 0);
        Some(sum)
    }
}

#[cfg(test)]
mod tests {
    use tilewright_ir::{DataType, ScalarType, Var};

    use super::*;

    #[test]
    fn the_same_polynomial_whatever_wraps_and_no_other() {
        let var = |name: &str| Expr::from(&Var::new(name, DataType::INT32));
        let (x, y) = (var("x"), var("y"));
        let int = |value: i64| Expr::int(value);
        let same = |a: &Expr, b: &Expr| same_polynomial(a, b);
        assert!(same(&(int(-20) + x.clone()), &(x.clone() - int(20))));
        assert!(!same(&(int(-20) + x.clone()), &(x.clone() - int(21))));
        assert!(!same(&(x.clone() - y.clone()), &(y.clone() - x.clone())));
        let square = (x.clone() + y.clone()) * (x.clone() + y.clone());
        let expanded = x.clone() * x.clone() + x.clone() * y.clone() * int(2) + y.clone() * y.clone();
        assert!(same(&square, &expanded));
        assert!(!same(&square, &(expanded + x.clone())));
        // 2^31 + 2^31 is 0 in 32 bits, and 2^31 is not.
        let half = Expr::Int { value: -(1 << 31), ty: ScalarType::Int32 };
        assert!(same(&(x.clone() + half.clone() + half.clone()), &x));
        assert!(!same(&(x.clone() + half), &x));
        // A quotient is a part of its own: nothing is known of what wraps below it.
        let third = |of: Expr| of.floor_div(int(3));
        assert!(same(&(third(x.clone()) + x.clone()), &(x.clone() + third(x.clone()))));
        assert!(!same(&third(x.clone() + y.clone()), &third(y.clone() + x.clone())));
        // It may have no value, and is not there before.
        let none = third(x.clone()) * int(0);
        assert!(same(&(none.clone() + y.clone()), &y) && !same(&y, &(none + y.clone())));
        let long = Expr::from(&Var::new("z", DataType::from(ScalarType::Int64)));
        assert!(!same(&long, &x));
    }

    #[test]
    fn many_products_are_left_alone() {
        let sum = (0..9).map(|n| Expr::from(&Var::new(format!("x{n}"), DataType::INT32)));
        let sum = sum.reduce(|a, b| a + b).unwrap();
        let cube = sum.clone() * sum.clone() * sum.clone();
        assert!(!same_polynomial(&cube, &cube));
    }
}
