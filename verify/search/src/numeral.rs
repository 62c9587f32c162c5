//! Decomposition of a flattened index: `((a * n + b) * m + c)` is the mixed-radix numeral of the digits `a, b, c` in the
//! radices `n, m`.
//!
//! This is a heuristic. The [kernel](tilewright_kernel::facts) proves every decomposition before it is used.
//!
//! ```text
//! ((n * H + h) * W + w) * 4 + 3 + c      digits n, h, w, c + 3        radices H, W, 4
//! 6 * a + 4 * b                          one digit 3 * a + 2 * b      unit 2: neither place value divides the other
//! ```

use tilewright_ir::gcd;

use tilewright_kernel::poly::{Monomial, Poly, common, without};
use tilewright_kernel::term::{Symbol, Term};

/// A product of a positive constant and extents: a single term of a polynomial.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Product {
    /// The constant factor.
    coefficient: i128,
    /// The other factors.
    atoms: Monomial<Term>,
}

impl Product {
    /// The product of nothing.
    fn one() -> Self {
        Self { coefficient: 1, atoms: Vec::new() }
    }

    /// The product as a term.
    pub(crate) fn term(&self) -> Term {
        self.atoms.iter().fold(Term::int(self.coefficient), |product, atom| product * atom)
    }

    /// The factors one by one: the atoms, then the constant unless it is 1.
    pub(crate) fn factors(&self) -> Vec<Term> {
        let constant = (self.coefficient != 1).then(|| Term::int(self.coefficient));
        self.atoms.iter().cloned().chain(constant).collect()
    }

    /// `self / divisor`; `None` if the division is not exact.
    pub(crate) fn divide(&self, divisor: &Self) -> Option<Self> {
        if divisor.coefficient == 0 || self.coefficient % divisor.coefficient != 0 {
            return None;
        }
        let atoms = without(&self.atoms, &divisor.atoms)?;
        Some(Self { coefficient: self.coefficient / divisor.coefficient, atoms })
    }

    /// The greatest common divisor.
    fn common(&self, other: &Self) -> Self {
        let coefficient = gcd(self.coefficient.unsigned_abs(), other.coefficient.unsigned_abs());
        let coefficient = i128::try_from(coefficient).unwrap_or(1);
        Self { coefficient, atoms: common(&self.atoms, &other.atoms) }
    }

    /// The key by which places are sorted: the number of atoms, then the constant.
    fn degree(&self) -> (usize, i128) {
        (self.atoms.len(), self.coefficient)
    }

    /// The product that `term` is; `None` unless it is a single monomial with a positive coefficient.
    pub(crate) fn from_term(term: &Term) -> Option<Self> {
        let poly = Poly::from_term(term)?;
        let mut terms = poly.terms();
        let (monomial, coefficient) = terms.next()?;
        (terms.next().is_none() && coefficient > 0).then(|| Self { coefficient, atoms: monomial.to_vec() })
    }

    /// `term / self`; `None` unless every monomial of the term is divisible.
    pub(crate) fn quotient_of(&self, term: &Term) -> Option<Term> {
        let mut sum = Term::int(0);
        for (powers, coefficient) in Poly::from_term(term)?.powers() {
            let product = Self { coefficient, atoms: expanded(powers) };
            sum = sum + product.divide(self)?.term();
        }
        Some(sum)
    }
}

/// A monomial written with exponents as a sorted list of atoms.
fn expanded(powers: impl IntoIterator<Item = (Term, u32)>) -> Monomial<Term> {
    powers.into_iter().flat_map(|(atom, exponent)| (0..exponent).map(move |_| atom.clone())).collect()
}

/// A numeral: `((digits[0] * radices[0] + digits[1]) * radices[1] + ...)`, one radix fewer than digits.
#[derive(Clone, Debug)]
pub(crate) struct Numeral {
    /// Most significant first.
    pub(crate) digits: Vec<Term>,
    /// The radix that the value so far is multiplied by before the next digit is added.
    pub(crate) radices: Vec<Term>,
    /// The last digit's place value; 1 unless every place has a common factor.
    pub(crate) unit: Product,
    /// The first digit's place value, in units of `unit`.
    pub(crate) top: Product,
}

impl Numeral {
    /// The numeral in which digit `position` (at least 1) and the one before it are combined into one digit.
    #[must_use]
    pub(crate) fn merged(&self, position: usize) -> Self {
        let mut merged = self.clone();
        let low = merged.digits.remove(position);
        let radix = merged.radices.remove(position - 1);
        let high = &merged.digits[position - 1];
        merged.digits[position - 1] = high * &radix + &low;
        if let Some(above) = position.checked_sub(2).and_then(|above| merged.radices.get_mut(above)) {
            *above = &*above * &radix;
        }
        if position == 1 {
            merged.top =
                Product::from_term(&radix).and_then(|radix| self.top.divide(&radix)).unwrap_or_else(Product::one);
        }
        merged
    }

    /// The value of the numeral, in Horner form.
    #[cfg(test)]
    pub(crate) fn term(&self) -> Term {
        let mut value = self.digits.first().cloned().unwrap_or_else(|| Term::int(0));
        for (radix, digit) in self.radices.iter().zip(&self.digits[1..]) {
            value = value * radix + digit;
        }
        value * self.unit.term()
    }
}

/// Decomposes a term. Atoms that contain a symbol for which `is_index` holds belong to digits, the others to place values.
/// `None` if a monomial contains a product of digits or the places do not form a numeral.
pub(crate) fn numeral(term: &Term, is_index: &dyn Fn(&Symbol) -> bool) -> Option<Numeral> {
    decomposed(term, is_index, false)
}

/// [`numeral`] with constant factors in the digits, not in the places: `(a * 16 + b) * n + c * 8 + d` has the digits `a * 16 + b` and
/// `c * 8 + d`, as of tiles that need not divide an extent.
pub(crate) fn coarse_numeral(term: &Term, is_index: &dyn Fn(&Symbol) -> bool) -> Option<Numeral> {
    decomposed(term, is_index, true)
}

fn decomposed(term: &Term, is_index: &dyn Fn(&Symbol) -> bool, is_coarse: bool) -> Option<Numeral> {
    let mut places: Vec<(Product, Term)> = Vec::new();
    let mut offsets = Vec::new();
    for (powers, coefficient) in Poly::from_term(term)?.powers() {
        let (index, extents): (Vec<_>, Vec<_>) =
            powers.into_iter().partition(|(atom, _)| atom.free_symbols().iter().any(is_index));
        let sign = if coefficient < 0 { -1 } else { 1 };
        let size = coefficient.checked_abs()?;
        let place = Product { coefficient: size, atoms: expanded(extents) };
        match index.as_slice() {
            [] => offsets.push((place, sign)),
            [(atom, 1)] if is_coarse => {
                add(&mut places, Product { coefficient: 1, ..place }, atom * Term::int(sign * size));
            }
            [(atom, 1)] => add(&mut places, place, atom * Term::int(sign)),
            _ => return None,
        }
    }
    places.sort_by_key(|(place, _)| std::cmp::Reverse(place.degree()));
    for (offset, sign) in offsets {
        let home = places.iter_mut().find_map(|(place, digit)| offset.divide(place).map(|times| (digit, times)));
        match home {
            Some((digit, times)) => *digit = &*digit + times.term() * Term::int(sign),
            None => places.push((offset, Term::int(sign))),
        }
    }
    chain(places)
}

/// Adds a digit to the place of the given value.
fn add(places: &mut Vec<(Product, Term)>, place: Product, digit: Term) {
    match places.iter_mut().find(|(other, _)| *other == place) {
        Some((_, sum)) => *sum = &*sum + digit,
        None => places.push((place, digit)),
    }
}

/// The numeral of places in decreasing order of their values. A place that does not divide the one before it is merged
/// with it, at their greatest common divisor.
fn chain(places: Vec<(Product, Term)>) -> Option<Numeral> {
    let mut kept: Vec<(Product, Term)> = Vec::new();
    for (mut place, mut digit) in places {
        while let Some((above, high)) = kept.last() {
            if above.divide(&place).is_some() {
                break;
            }
            let common = above.common(&place);
            let (up, down) = (above.divide(&common)?, place.divide(&common)?);
            digit = high * up.term() + digit * down.term();
            place = common;
            kept.pop();
        }
        kept.push((place, digit));
    }
    let radices: Option<Vec<_>> =
        kept.windows(2).map(|pair| pair[0].0.divide(&pair[1].0).map(|radix| radix.term())).collect();
    let unit = kept.last()?.0.clone();
    let top = kept.first()?.0.divide(&unit)?;
    Some(Numeral { digits: kept.into_iter().map(|(_, digit)| digit).collect(), radices: radices?, unit, top })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilewright_kernel::poly::probably_equal;

    fn taken_apart(term: &Term) -> Option<Numeral> {
        numeral(term, &|symbol| symbol.name().starts_with('i'))
    }

    #[test]
    fn a_symbolic_index_is_decomposed_into_its_digits() {
        let [n, c, h, w] = ["in", "ic", "ih", "iw"].map(Term::sym);
        let [blocks, height, width] = [Term::sym("C").ceil_div(4), Term::sym("H"), Term::sym("W")];
        let index = (((&n * &blocks + c.floor_div(4)) * &height + &h) * &width + &w) * 4 + c.floor_mod(4);
        let found = taken_apart(&index).unwrap();
        let shown: Vec<_> = found.digits.iter().map(ToString::to_string).collect();
        assert_eq!(shown, ["in", "ic // 4", "ih", "iw", "ic % 4"]);
        assert!(probably_equal(&found.term(), &index));
        assert!(probably_equal(&found.merged(2).term(), &index));
    }

    #[test]
    fn tiles_of_symbolic_extents_are_digits() {
        let [a, b, c, d] = ["ia", "ib", "ic", "id"].map(Term::sym);
        let index = (&a * 16 + &b) * Term::sym("N") + &c * 8 + &d;
        let found = coarse_numeral(&index, &|symbol| symbol.name().starts_with('i')).unwrap();
        assert_eq!((found.digits.len(), found.radices[0].to_string()), (2, "N".to_owned()));
        assert!(probably_equal(&found.digits[0], &(&a * 16 + &b)) && probably_equal(&found.digits[1], &(&c * 8 + &d)));
        assert!(probably_equal(&found.term(), &index));
    }

    #[test]
    fn constant_places_are_ordered_by_size() {
        let [a, b] = ["ia", "ib"].map(Term::sym);
        let found = taken_apart(&(&b + &a * 128 + 3)).unwrap();
        assert_eq!(found.digits.len(), 2);
        assert_eq!(found.digits[1].to_string(), "ib + 3");
        let odd = taken_apart(&(&a * 6 + &b * 4)).unwrap();
        assert_eq!((odd.digits.len(), odd.unit.term()), (1, Term::int(2)));
    }
}
