//! Equality of integer expressions that may wrap, as polynomials modulo a power of two.
//!
//! Arithmetic modulo `2^bits` is a ring. Two expressions that are the same polynomial over the same parts have the same
//! value, whatever wraps in between: `(-20 + x) + 20` is `x` although `-20 + x` may wrap.
//!
//! The comparison is a proof without a solver: polynomials over a commutative ring have a normal form, and equal normal
//! forms have equal values under every assignment of the parts.

use tilewright_ir::{BinaryOp, Expr, UnaryOp};

/// Polynomials over the numbers of parts.
type Poly = crate::poly::Poly<u32>;

/// Greatest number of terms in a polynomial; longer ones are not compared, which bounds the time.
const MAX_TERMS: usize = 64;

/// Whether two scalar integer expressions are the same polynomial modulo the size of their type, over the same parts. They
/// then have the same value, even if an operation wraps. False may mean that it is not known.
///
/// Parts are the subexpressions that are neither sums, differences, products nor constants. They are compared as text.
/// `new` must not contain a part that `old` lacks: such a part might have no value (a division by zero).
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

/// The ring of polynomials modulo `2^bits` over the parts met so far.
struct Ring<'e> {
    /// The width of the type.
    bits: u32,
    /// The parts, by the numbers of their atoms.
    parts: Vec<&'e Expr>,
}

impl<'e> Ring<'e> {
    /// An expression as a polynomial.
    fn poly(&mut self, expr: &'e Expr) -> Option<Poly> {
        match expr {
            Expr::Int { value, .. } => self.reduced(Poly::constant(*value)),
            Expr::Binary(BinaryOp::Add, a, b) => {
                let sum = self.poly(a)?.plus(&self.poly(b)?)?;
                self.reduced(sum)
            }
            Expr::Binary(BinaryOp::Sub, a, b) => {
                let difference = self.poly(a)?.minus(&self.poly(b)?)?;
                self.reduced(difference)
            }
            Expr::Unary(UnaryOp::Neg, a) => {
                let negated = self.poly(a)?.scaled(-1)?;
                self.reduced(negated)
            }
            Expr::Binary(BinaryOp::Mul, a, b) => {
                let (a, b) = (self.poly(a)?, self.poly(b)?);
                // Coefficients have at most 63 bits and a sign, so the product of two of them fits 128 bits; the sum of
                // several might not, which is why every partial sum is reduced.
                b.terms().try_fold(Poly::default(), |sum, (monomial, factor)| {
                    let product = self.reduced(a.times_term(monomial, factor)?)?;
                    self.reduced(sum.plus(&product)?)
                })
            }
            Expr::Binary(BinaryOp::Shl, a, by) if self.shifts(by) => {
                let shifted = self.poly(a)?.scaled(1 << by.as_const_int()?)?;
                self.reduced(shifted)
            }
            Expr::Float { .. }
            | Expr::Var(_)
            | Expr::Binary(..)
            | Expr::Unary(UnaryOp::Not | UnaryOp::BitNot, _)
            | Expr::Call(..)
            | Expr::Select(..)
            | Expr::IfThenElse(..)
            | Expr::Cast(..)
            | Expr::Ramp { .. }
            | Expr::Broadcast { .. }
            | Expr::Load { .. } => {
                let number = self.parts.iter().position(|part| *part == expr).unwrap_or_else(|| {
                    self.parts.push(expr);
                    self.parts.len() - 1
                });
                Some(Poly::atom(u32::try_from(number).ok()?))
            }
        }
    }

    /// Whether a shift by this amount is a product with a power of two: a constant that does not trap.
    fn shifts(&self, by: &Expr) -> bool {
        by.as_const_int().is_some_and(|by| (0..i128::from(self.bits)).contains(&by))
    }

    /// A polynomial with its coefficients in `-2^(bits - 1) .. 2^(bits - 1)`; `None` if it has too many terms.
    fn reduced(&self, poly: Poly) -> Option<Poly> {
        let (size, half) = (1i128 << self.bits, 1i128 << (self.bits - 1));
        let reduced = poly.map_coefficients(|value| {
            let rest = value.rem_euclid(size);
            if rest < half { rest } else { rest - size }
        });
        (reduced.n_terms() <= MAX_TERMS).then_some(reduced)
    }
}

#[cfg(test)]
mod tests {
    use tilewright_ir::{DataType, ScalarType, Var};

    use super::*;

    #[test]
    fn equal_polynomials_are_found_although_operations_wrap() {
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
        assert!(!same(&(x.clone() + half.clone()), &x));
        // A quotient is a part: nothing is known about its operands, which may wrap.
        let third = |operand: Expr| operand.floor_div(int(3));
        assert!(same(&(third(x.clone()) + x.clone()), &(x.clone() + third(x.clone()))));
        assert!(!same(&third(x.clone() + y.clone()), &third(y.clone() + x.clone())));
        // A shift by a constant is a product; by 32 bits it traps, and by a variable it may.
        let shifted = |by: Expr| Expr::binary(BinaryOp::Shl, x.clone() + y.clone(), by);
        assert!(same(&shifted(int(3)), &(x.clone() * int(8) + y.clone() * int(8))));
        assert!(same(&shifted(int(31)), &((x.clone() + y.clone()) * half)));
        assert!(!same(&shifted(int(3)), &shifted(int(2))) && !same(&shifted(int(32)), &int(0)));
        assert!(!same(&shifted(y.clone()), &(x.clone() + y.clone())));
        // A part that only the new expression contains may have no value.
        let none = third(x.clone()) * int(0);
        assert!(same(&(none.clone() + y.clone()), &y) && !same(&y, &(none + y.clone())));
        let long = Expr::from(&Var::new("z", DataType::from(ScalarType::Int64)));
        assert!(!same(&long, &x));
    }

    #[test]
    fn polynomials_of_many_terms_are_not_compared() {
        let sum = (0..9).map(|n| Expr::from(&Var::new(format!("x{n}"), DataType::INT32)));
        let sum = sum.reduce(|a, b| a + b).unwrap();
        let cube = sum.clone() * sum.clone() * sum.clone();
        assert!(!same_polynomial(&cube, &cube));
    }
}
