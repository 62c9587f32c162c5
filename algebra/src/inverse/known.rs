//! Substitution of what is solved already: logical indices, and digits of logical indices, in terms of the physical
//! ones.
//!
//! ```text
//! i // 4 == p   makes   i % 4 ^ i // 4 % 4 == q   to   i % 4 == q ^ p % 4
//! ```

use std::convert::Infallible;

use tilewright_ir::visit::{Rewrite, Substitution};
use tilewright_ir::{BinaryOp, Expr};

use super::super::poly::{Atom, Poly};
use super::super::ranges::Ranges;
use super::super::rewrite::Simplifier;
use super::solve::Solver;

impl Solver<'_> {
    /// Writes an expression in terms of the physical indices, with solved indices and digits replaced by their values.
    /// Returns `None` if it holds an index that is not solved.
    pub(super) fn substituted(&self, expr: &Expr) -> Option<Expr> {
        let with_digits =
            if self.unknowns(expr.vars()).is_empty() { expr.clone() } else { self.digits_replaced(expr)? };
        let vars: Vec<_> = with_digits.vars().into_iter().filter(|var| self.is_logical(var)).collect();
        let simplifier = Simplifier::new(self.ranges);
        let values = vars.iter().map(|var| simplifier.emit(self.value_of(var)?, var.dtype().scalar));
        let values: Vec<Expr> = values.collect::<Option<_>>()?;
        // All values are substituted at once: a physical index in a value must not be replaced in turn.
        Some(Substitution::new(&vars, values).apply(&with_digits))
    }

    /// Replaces each solved digit by its value. Returns `None` if another part of an unsolved index remains.
    fn digits_replaced(&self, expr: &Expr) -> Option<Expr> {
        let simplifier = Simplifier::new(self.ranges);
        let ty = expr.dtype().scalar;
        let digits = self
            .known_digits()
            .filter_map(|(atom, value)| Some((simplifier.emit(&atom.into(), ty)?, simplifier.emit(value, ty)?)));
        let mut known = ReplaceDigits { digits: digits.collect() };
        if known.digits.is_empty() {
            return None;
        }
        let Ok(replaced) = known.expr(expr);
        self.unknowns(replaced.vars()).is_empty().then_some(replaced)
    }

    /// Adds the equations that follow from the path condition of a case: `i % 2 == 0`, and `i % 2 == 1` where it is
    /// not 0. `ranges` are those outside of the case, because inside it the conditions are known to hold and say
    /// nothing.
    pub(super) fn assume(&mut self, path: &[Expr], ranges: &Ranges) {
        for condition in path {
            if let Some(equation) = equation(condition, ranges) {
                self.open.push(equation);
            }
        }
    }
}

/// Returns the equation that a condition states: an equality, or an inequality of a value that has only two possible
/// values.
fn equation(condition: &Expr, ranges: &Ranges) -> Option<(Poly, Poly)> {
    let Expr::Binary(op @ (BinaryOp::Eq | BinaryOp::Ne), a, b) = condition else { return None };
    let simplifier = Simplifier::new(ranges);
    let gap = simplifier.poly(a)?.minus(&simplifier.poly(b)?)?;
    if *op == BinaryOp::Eq {
        return Some((gap, Poly::default()));
    }
    let ends = (ranges.least(&gap)?.as_const()?, ranges.greatest(&gap)?.as_const()?);
    match ends {
        (0, 1) => Some((gap, Poly::constant(1))),
        (-1, 0) => Some((gap, Poly::constant(-1))),
        _ => None,
    }
}

/// Replaces digits by their values.
struct ReplaceDigits {
    /// A digit as an expression, and its value.
    digits: Vec<(Expr, Expr)>,
}

impl Rewrite for ReplaceDigits {
    type Error = Infallible;

    fn expr(&mut self, expr: &Expr) -> Result<Expr, Infallible> {
        match self.digits.iter().find(|(digit, _)| digit == expr) {
            Some((_, value)) => Ok(value.clone()),
            None => self.expr_children(expr),
        }
    }
}

/// Returns the atom `base // place`, or `base // place % modulus`. Returns `None` if it would be `base` itself.
pub(super) fn digit_atom(base: &Poly, place: &Poly, modulus: Option<&Poly>) -> Option<Atom> {
    let whole = place.as_const() == Some(1);
    let quotient = || Atom::Div(base.clone().into(), place.clone().into());
    match modulus {
        None if whole => None,
        None => Some(quotient()),
        Some(modulus) if whole => Some(Atom::Mod(base.clone().into(), modulus.clone().into())),
        Some(modulus) => Some(Atom::Mod(Poly::from(quotient()).into(), modulus.clone().into())),
    }
}
