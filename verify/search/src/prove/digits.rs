//! Goals about flattened indices, digit by digit: bounds of a numeral, and equal digits of equal numerals.
//!
//! ```text
//! 0 <= (n * H + h) * W + w < N * H * W      from  0 <= n < N, 0 <= h < H, 0 <= w < W
//!   0 <= n * H + h < N * H                  HornerBounds on n and h
//!   0 <= (n * H + h) * W + w < N * H * W    HornerBounds on that and w
//! ```
//!
//! A digit that is not in the range of its radix, such as `h` in `h < 2 * H`, is merged with the one above it.

use super::{Prover, facts};
use crate::numeral::{Numeral, Product, coarse_numeral, numeral};
use tilewright_kernel::facts::{Fact, Mode};
use tilewright_kernel::lemmas::{Lemma, poly_identity};
use tilewright_kernel::term::{BinaryOp, Comparison, Prop, PropKind, Symbol, Term, TermKind};

impl Prover {
    /// Proves a bound of a flattened index digit by digit; `None` if the goal is no such bound or a digit is out of range.
    pub(super) fn by_digits(&mut self, goal: &Prop) -> Option<Fact> {
        let PropKind::Compare(comparison, lhs, rhs) = goal.kind() else { return None };
        let (index, extent) = match comparison {
            Comparison::Lt => (lhs.clone(), rhs.clone()),
            // A lower bound: the numeral is shown not to be negative.
            Comparison::Le if lhs.as_const().is_some() => (rhs.clone(), Term::int(0)),
            Comparison::Le => (lhs.clone(), rhs + 1),
            Comparison::Eq | Comparison::Ne => return None,
        };
        let bounds = self.numeral_bounds(&index, (extent.as_const() != Some(0)).then_some(&extent))?;
        let using: Vec<&Fact> = bounds.iter().collect();
        self.context.derive(goal.clone(), &using, Mode::Abstract).ok()
    }

    /// Facts from which `0 <= index < extent` follows, by decomposing the index into digits. Without an extent, the bound is
    /// the least one found.
    pub fn numeral_bounds(&mut self, index: &Term, extent: Option<&Term>) -> Option<Vec<Fact>> {
        let key = (index.clone(), extent.cloned());
        if let Some(known) = self.bounds.get(&key) {
            return known.clone();
        }
        let found = self.search_bounds(index, extent);
        self.bounds.insert(key, found.clone());
        found
    }

    /// Decomposes an index into digits and proves their ranges.
    fn search_bounds(&mut self, index: &Term, extent: Option<&Term>) -> Option<Vec<Fact>> {
        let indices = self.indices.clone();
        let mut found = numeral(index, &|symbol| indices.contains(symbol))?;
        let mut position = 1;
        let mut digits = Vec::new();
        // A digit that does not fit its radix is merged with the one above it.
        while position < found.digits.len() {
            let (digit, radix) = (found.digits[position].clone(), found.radices[position - 1].clone());
            let in_range = digit.at_least(0).and(digit.less(&radix));
            if let Some(fact) = self.prove_digit(&in_range) {
                digits.push(fact);
                position += 1;
            } else {
                found = found.merged(position);
                position = 1;
                digits.clear();
            }
        }
        self.horner(index, extent, &found, &digits)
    }

    /// Bounds a numeral whose digits are in range, from the most significant digit down.
    pub(super) fn horner(
        &mut self,
        index: &Term,
        extent: Option<&Term>,
        found: &Numeral,
        digits: &[Fact],
    ) -> Option<Vec<Fact>> {
        let top = found.digits.first()?.clone();
        let place = found.top.term() * found.unit.term();
        let bound = match extent {
            Some(extent) => Product::from_term(&place)?.quotient_of(extent),
            None => None,
        };
        let bound = bound.or_else(|| self.upper(&top))?;
        let mut known = self.prove_digit(&top.at_least(0).and(top.less(&bound)))?;
        let (mut value, mut limit) = (top, bound);
        let units = (found.unit.term().as_const() != Some(1)).then(|| (found.unit.term(), Term::int(0)));
        let places = found.radices.iter().cloned().zip(found.digits[1..].iter().cloned()).chain(units);
        for (position, (radix, digit)) in places.enumerate() {
            let mut using = vec![known.clone()];
            match digits.get(position) {
                Some(fact) => using.push(fact.clone()),
                // The unit: a last digit of 0 in a radix of at least 1.
                None => using.push(self.shown_positive(&radix)?),
            }
            let using: Vec<&Fact> = using.iter().collect();
            known = self.lemmas.horner_bounds(&mut self.context, [&value, &limit], [&digit, &radix], &using).ok()?;
            (value, limit) = (value * &radix + &digit, limit * &radix);
        }
        let mut facts = vec![poly_identity(&mut self.context, &value, index).ok()?, known];
        if let Some(extent) = extent {
            match poly_identity(&mut self.context, &limit, extent) {
                Ok(same) => facts.push(same),
                Err(_) => facts.push(self.at_most(&limit, extent)?),
            }
        }
        Some(facts)
    }

    /// `limit <= extent`, where a known fact bounds a multiple of `limit` by `extent`: the other factor is at least 1.
    pub(super) fn at_most(&mut self, limit: &Term, extent: &Term) -> Option<Fact> {
        let goal = limit.at_most(extent);
        let candidates: Vec<(Fact, Term)> =
            self.facts.iter().filter_map(|known| capacity(&known.fact, extent)).collect();
        for (fact, size) in candidates {
            let (Some(whole), Some(part)) = (Product::from_term(&size), Product::from_term(limit)) else { continue };
            let Some(rest) = whole.divide(&part) else { continue };
            let rest = rest.term();
            let Some(positive) = self.shown_positive(&rest) else { continue };
            let Some(not_negative) = self.not_negative(limit) else { continue };
            let one = Term::int(1);
            let using = [&positive, &not_negative];
            let Ok(grows) = self.lemmas.monotone(&mut self.context, limit, [&one, &rest], &using) else { continue };
            let Ok(same) = poly_identity(&mut self.context, &(limit * &rest), &size) else { continue };
            if let Ok(shown) = self.context.derive(goal.clone(), &[&grows, &same, &fact], Mode::Abstract) {
                return Some(shown);
            }
        }
        let near = self.near(&goal);
        self.context.derive(goal, &facts(&near), Mode::Abstract).ok()
    }

    /// `1 <= product`, factor by factor.
    pub(super) fn shown_positive(&mut self, product: &Term) -> Option<Fact> {
        if let Some(known) = self.positive.get(product) {
            return Some(known.clone());
        }
        let found = self.search_positive(product)?;
        self.positive.insert(product.clone(), found.clone());
        Some(found)
    }

    /// Proves that all factors of a product are at least 1, and so is the product.
    fn search_positive(&mut self, product: &Term) -> Option<Fact> {
        let factors = Product::from_term(product)?.factors();
        let mut known: Option<(Term, Fact)> = None;
        for factor in factors {
            let fact = self.prove_digit(&factor.more(0))?;
            known = Some(match known {
                None => (factor, fact),
                Some((so_far, before)) => {
                    let values = [("a", &so_far), ("b", &factor)];
                    let both = self.lemmas.apply(&mut self.context, Lemma::ProductPositive, &values, &[&before, &fact]);
                    (&so_far * &factor, both.ok()?)
                }
            });
        }
        let goal = product.at_least(1);
        match known {
            None => self.context.derive(goal, &[], Mode::Abstract).ok(),
            Some((nested, fact)) => {
                let same = poly_identity(&mut self.context, &nested, product).ok()?;
                self.context.derive(goal, &[&fact, &same], Mode::Abstract).ok()
            }
        }
    }

    /// `0 <= product`
    pub(super) fn not_negative(&mut self, product: &Term) -> Option<Fact> {
        let positive = self.shown_positive(product)?;
        self.context.derive(product.at_least(0), &[&positive], Mode::Abstract).ok()
    }

    /// An exclusive upper bound of a digit, by its form or by a fact.
    pub(super) fn upper(&self, digit: &Term) -> Option<Term> {
        match digit.kind() {
            TermKind::Const(value) => Some(Term::int(value.checked_add(1)?)),
            TermKind::Binary(BinaryOp::FloorMod, _, divisor) => Some(divisor.clone()),
            TermKind::Binary(BinaryOp::FloorDiv, a, divisor) => {
                Some(self.stated(digit).unwrap_or(self.upper(a)?.ceil_div(divisor)))
            }
            TermKind::Binary(BinaryOp::Add, a, b) => match (a.as_const(), b.as_const()) {
                (Some(k), _) => Some(self.upper(b)? + k),
                (_, Some(k)) => Some(self.upper(a)? + k),
                _ => Some(self.upper(a)? + self.upper(b)? - 1),
            },
            TermKind::Binary(BinaryOp::Mul, a, b) => match (a.as_const(), b.as_const()) {
                (Some(k), _) if k > 0 => Some((self.upper(b)? - 1) * k + 1),
                (_, Some(k)) if k > 0 => Some((self.upper(a)? - 1) * k + 1),
                _ => None,
            },
            _ => self.stated(digit),
        }
    }

    /// `n` where `digit < n` is a fact.
    pub(super) fn stated(&self, digit: &Term) -> Option<Term> {
        self.facts.iter().find_map(|known| match known.fact.prop().kind() {
            PropKind::Compare(Comparison::Lt, lhs, rhs) if lhs == digit => Some(rhs.clone()),
            _ => None,
        })
    }

    /// Facts that the digits of two equal numerals are pairwise equal. `other` is `this` with other index symbols.
    pub fn digits_equal(&mut self, this: &Term, other: &Term, same: &Fact) -> Option<Vec<Fact>> {
        let indices = self.indices.clone();
        let is_index = |symbol: &Symbol| indices.contains(symbol);
        let alike = |(left, right): &(Numeral, Numeral)| left.radices == right.radices && left.unit == right.unit;
        let fine = numeral(this, &is_index).zip(numeral(other, &is_index));
        let coarse = coarse_numeral(this, &is_index).zip(coarse_numeral(other, &is_index));
        let coarse = coarse.filter(|(left, _)| !left.radices.is_empty());
        // No place needs to be merged where all digits are in range, as they are, or with constant factors in them.
        for (left, right) in fine.iter().chain(&coarse).filter(|pair| alike(pair)) {
            if let Some(ranges) = self.in_range(left, right) {
                return self.peel(this, other, same, left, right, &ranges);
            }
        }
        let (mut left, mut right) = fine.filter(alike)?;
        let mut position = 1;
        let mut ranges = Vec::new();
        while position < left.digits.len() {
            let radix = left.radices[position - 1].clone();
            let pair = [&left.digits[position], &right.digits[position]];
            let in_range = pair.map(|digit| digit.at_least(0).and(digit.less(&radix)));
            if let (Some(first), Some(second)) = (self.prove_digit(&in_range[0]), self.prove_digit(&in_range[1])) {
                ranges.push([first, second]);
                position += 1;
            } else {
                (left, right) = (left.merged(position), right.merged(position));
                position = 1;
                ranges.clear();
            }
        }
        self.peel(this, other, same, &left, &right, &ranges)
    }

    /// That all digits but the first of two numerals with the same radices are in range.
    fn in_range(&mut self, left: &Numeral, right: &Numeral) -> Option<Vec<[Fact; 2]>> {
        let digits = left.radices.iter().zip(left.digits[1..].iter().zip(&right.digits[1..]));
        let ranges = digits.map(|(radix, (first, second))| {
            let [first, second] = [first, second].map(|digit| digit.at_least(0).and(digit.less(radix)));
            Some([self.prove_digit(&first)?, self.prove_digit(&second)?])
        });
        ranges.collect()
    }

    /// Shows digit by digit, the last one first, that equal numerals have equal digits. `same` says that `this` equals
    /// `other`, `left` and `right` are their decompositions, and `ranges` says that all digits but the first are in
    /// range.
    pub(super) fn peel(
        &mut self,
        this: &Term,
        other: &Term,
        same: &Fact,
        left: &Numeral,
        right: &Numeral,
        ranges: &[[Fact; 2]],
    ) -> Option<Vec<Fact>> {
        if left.unit.term().as_const() != Some(1) {
            return None;
        }
        let prefixes = |numeral: &Numeral| -> Vec<Term> {
            let mut value = numeral.digits[0].clone();
            let mut all = vec![value.clone()];
            for (radix, digit) in numeral.radices.iter().zip(&numeral.digits[1..]) {
                value = value * radix + digit;
                all.push(value.clone());
            }
            all
        };
        let (mine, theirs) = (prefixes(left), prefixes(right));
        let (whole, whole_other) = (mine.last()?, theirs.last()?);
        // The decomposition was a guess: that the numerals have the values of the terms is proved here, not assumed.
        let here = poly_identity(&mut self.context, this, whole).ok()?;
        let there = poly_identity(&mut self.context, other, whole_other).ok()?;
        let mut equal = self.context.derive(whole.equals(whole_other), &[&here, &there, same], Mode::Abstract).ok()?;
        let mut found = Vec::new();
        for position in (1..left.digits.len()).rev() {
            let [first, second] = &ranges[position - 1];
            let (q, r) = (&mine[position - 1], &left.digits[position]);
            let (p, s) = (&theirs[position - 1], &right.digits[position]);
            let radix = &left.radices[position - 1];
            let [high, low] = self
                .lemmas
                .horner_injective(&mut self.context, [q, r], [p, s], radix, &[first, second, &equal])
                .ok()?;
            found.push(low);
            equal = high;
        }
        found.push(equal);
        Some(found)
    }
}

/// `(fact, size)` if the fact implies that `size` is at most `extent`.
fn capacity(fact: &Fact, extent: &Term) -> Option<(Fact, Term)> {
    match fact.prop().kind() {
        PropKind::Compare(Comparison::Le | Comparison::Lt, size, bound) if bound == extent => {
            Some((fact.clone(), size.clone()))
        }
        // The bound is a smaller constant.
        PropKind::Compare(Comparison::Le, size, bound) => {
            let enough = bound.as_const()? <= extent.as_const()?;
            enough.then(|| (fact.clone(), size.clone()))
        }
        _ => None,
    }
}
