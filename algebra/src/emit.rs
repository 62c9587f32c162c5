//! Writes polynomials as expressions that people can read.
//!
//! Terms of the highest degree come first, then those with the greatest coefficient, and the constant last; what is
//! subtracted follows what is added. Symbolic extents are factored out, so that a row-major index is a Horner chain:
//! `((n * H + h) * W + w) * 4 + c`.

use std::cmp::Reverse;

use tilewright_ir::{BinaryOp, Expr, ScalarType, UnaryOp};

use super::poly::{Atom, Key, Poly, Term};
use super::rewrite::Simplifier;

/// An addend: whether it is subtracted, and its magnitude.
type Addend = (bool, Expr);

impl Simplifier<'_> {
    /// Returns the expression of the type `ty`; `None` if a constant does not fit the type.
    pub(super) fn emit(&self, poly: &Poly, ty: ScalarType) -> Option<Expr> {
        let mut addends = self.addends(poly, ty)?;
        let Some(first) = addends.iter().position(|(negative, _)| !negative) else {
            return negated_sum(addends, ty);
        };
        let (_, start) = addends.remove(first);
        Some(addends.into_iter().fold(start, |sum, (negative, addend)| {
            let op = if negative { BinaryOp::Sub } else { BinaryOp::Add };
            Expr::binary(op, sum, addend)
        }))
    }

    /// Returns the addends of a polynomial in the order in which they are written.
    fn addends(&self, poly: &Poly, ty: ScalarType) -> Option<Vec<Addend>> {
        if let Some(symbol) = self.common_symbol(poly) {
            if let Some(addends) = self.numeral(poly, &symbol, ty) {
                return Some(addends);
            }
            let (factor, rest) = poly.by_atom(&symbol);
            let mut content = factor.content();
            if factor.terms().all(|term| term.coef < 0) {
                content = -content;
            }
            let inner = self.emit(&factor.divided(&Term { coef: content, mono: Vec::new() })?, ty)?;
            let product = inner * self.atom(&symbol, ty)?;
            let mut addends = vec![(content < 0, scaled(product, content.checked_abs()?, ty)?)];
            addends.extend(self.addends(&rest, ty)?);
            return Some(addends);
        }
        let mut terms: Vec<_> = poly.terms().collect();
        terms.sort_by_key(|term| (Reverse(term.mono.len()), Reverse(term.coef.unsigned_abs())));
        terms.iter().map(|term| Some((term.coef < 0, self.product(term, ty)?))).collect()
    }

    /// Writes `(outer * symbol + middle) * radix + inner`, where the constant `radix` divides the terms with the
    /// symbol and some terms with another index. Returns `None` if there is no such radix, or if a term would be
    /// subtracted.
    fn numeral(&self, poly: &Poly, symbol: &Atom, ty: ScalarType) -> Option<Vec<Addend>> {
        let radix = poly.by_atom(symbol).0.content();
        let above = |term: &Term| {
            term.mono.contains(symbol) || term.coef % radix == 0 && term.mono.iter().any(|atom| self.has_index(atom))
        };
        let (outer, inner) = poly.split(above);
        let beside = outer.terms().any(|term| !term.mono.contains(symbol));
        let positive = outer.terms().all(|term| term.coef > 0);
        if radix == 1 || !beside || !positive {
            return None;
        }
        let outer = self.emit(&outer.divided(&Term { coef: radix, mono: Vec::new() })?, ty)?;
        let mut addends = vec![(false, scaled(outer, radix, ty)?)];
        addends.extend(self.addends(&inner, ty)?);
        Some(addends)
    }

    /// Returns the symbolic extent that most terms share, if at least two terms share it and one of them holds an
    /// index.
    fn common_symbol(&self, poly: &Poly) -> Option<Atom> {
        let count = |atom: &Atom| poly.terms().filter(|term| term.mono.contains(atom)).count();
        let shares = |atom: &Atom| {
            !self.has_index(atom)
                && poly.terms().any(|term| term.mono.contains(atom) && term.mono.iter().any(|a| self.has_index(a)))
        };
        let symbols = poly.atoms().into_iter().filter(shares).map(|atom| (count(&atom), atom));
        // `max_by_key` returns the last of several maxima: the innermost extent of a row-major index.
        symbols.filter(|(count, _)| *count > 1).max_by_key(|(count, _)| *count).map(|(_, atom)| atom)
    }

    /// Whether an atom depends on an index, as opposed to symbolic extents only.
    fn has_index(&self, atom: &Atom) -> bool {
        let mut found = false;
        atom.each_var(&mut |var| found |= self.ranges.is_index(var));
        found
    }

    /// Writes the magnitude of a term: indices first, then extents, then the coefficient.
    fn product(&self, term: &Term, ty: ScalarType) -> Option<Expr> {
        let (indices, symbols): (Vec<&Atom>, Vec<&Atom>) = term.mono.iter().partition(|atom| self.has_index(atom));
        let mut factors = indices.into_iter().chain(symbols).map(|atom| self.atom(atom, ty));
        let magnitude = term.coef.checked_abs()?;
        let Some(first) = factors.next() else { return Expr::int_of(magnitude, ty) };
        let product = factors.try_fold(first?, |product, factor| Some(product * factor?))?;
        scaled(product, magnitude, ty)
    }

    /// Writes an atom; a quotient by a product of known radices as one division after the other.
    fn atom(&self, atom: &Atom, ty: ScalarType) -> Option<Expr> {
        Some(match atom {
            Atom::Opaque(Key(expr)) => expr.clone(),
            Atom::Div(a, b) => match self.ranges.radices_of(b) {
                // One division after the other, from the innermost place of the numeral.
                Some(radices) => radices
                    .iter()
                    .try_fold(self.emit(a, ty)?, |quotient, radix| Some(quotient.floor_div(self.emit(radix, ty)?)))?,
                None => self.emit(a, ty)?.floor_div(self.emit(b, ty)?),
            },
            Atom::Mod(a, b) => self.emit(a, ty)?.floor_mod(self.emit(b, ty)?),
        })
    }
}

/// `product * magnitude`, without a factor of 1.
fn scaled(product: Expr, magnitude: i128, ty: ScalarType) -> Option<Expr> {
    if magnitude == 1 { Some(product) } else { Some(product * Expr::int_of(magnitude, ty)?) }
}

/// Writes a sum in which everything is subtracted: `-a - b`, or `-3 - a` with a constant; 0 without addends.
fn negated_sum(mut addends: Vec<Addend>, ty: ScalarType) -> Option<Expr> {
    let Some((_, last)) = addends.pop() else { return Expr::int_of(0, ty) };
    let start = match last.as_const_int() {
        Some(value) => Expr::int_of(-value, ty)?,
        None => Expr::unary(UnaryOp::Neg, last),
    };
    Some(addends.into_iter().fold(start, |sum, (_, addend)| sum - addend))
}
