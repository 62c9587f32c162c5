//! Mixed-radix numerals: the form of every flattened index.
//!
//! ```text
//! digits (n, N), (h, H), (w, W)     value (n * H + h) * W + w     size (N * H) * W
//! ```

use super::{Lemma, Lemmas};
use crate::facts::{Context, Fact, Failure};
use crate::reason::Reason;
use crate::term::Term;

/// A digit of a numeral: `0 <= value < extent`, which is a claim until facts say so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Digit {
    /// Its value.
    pub value: Term,
    /// The number of values it may have.
    pub extent: Term,
}

impl Digit {
    /// The digit `value` below `extent`.
    pub fn new(value: impl Into<Term>, extent: impl Into<Term>) -> Self {
        Self { value: value.into(), extent: extent.into() }
    }
}

/// The digits of a flattened index, the slowest first: `((d0 * n1 + d1) * n2 + d2) ...`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chain(Vec<Digit>);

impl Chain {
    /// The numeral with these digits; without any it is 0.
    pub fn new(digits: impl IntoIterator<Item = Digit>) -> Self {
        Self(digits.into_iter().collect())
    }

    /// Its digits, the slowest first.
    pub fn digits(&self) -> &[Digit] {
        &self.0
    }

    /// Its value as a Horner term.
    pub fn value(&self) -> Term {
        self.prefix(self.0.len()).0
    }

    /// The product of the extents, multiplied from the left: `(n0 * n1) * n2 ...`.
    pub fn size(&self) -> Term {
        self.prefix(self.0.len()).1
    }

    /// Value and size of the numeral of the first `count` digits.
    fn prefix(&self, count: usize) -> (Term, Term) {
        let mut digits = self.0.iter().take(count);
        let Some(first) = digits.next() else { return (Term::int(0), Term::int(1)) };
        digits.fold((first.value.clone(), first.extent.clone()), |(value, size), digit| {
            (value * &digit.extent + &digit.value, size * &digit.extent)
        })
    }

    /// `0 <= value < size` of the first digit, of the first two, and so on; the last is that of the whole numeral.
    ///
    /// `ranges` have to say of each digit that it is not negative and below its extent.
    ///
    /// # Errors
    /// A range does not follow from `ranges`.
    pub fn bounds(&self, lemmas: &Lemmas, context: &mut Context, ranges: &[&Fact]) -> Result<Vec<Fact>, Failure> {
        let mut shown: Vec<Fact> = Vec::with_capacity(self.0.len());
        for (count, digit) in self.0.iter().enumerate() {
            let fact = if count == 0 {
                let range = digit.value.at_least(0).and(digit.value.less(&digit.extent));
                super::establish(context, &range, ranges)?
            } else {
                let (value, size) = self.prefix(count);
                let using: Vec<&Fact> = ranges.iter().copied().chain(shown.last()).collect();
                let low = [&digit.value, &digit.extent];
                lemmas.horner_bounds(context, [&value, &size], low, &using)?
            };
            shown.push(fact);
        }
        Ok(shown)
    }

    /// From `same`, that this numeral and `other` (with the same extents) have one value: that their digits are equal,
    /// slowest first.
    ///
    /// `ranges` have to say of each digit but the slowest that it is not negative and below its extent.
    ///
    /// # Errors
    /// The numerals differ in rank or extents, or a range does not follow from `ranges`.
    pub fn injective(
        &self,
        other: &Self,
        lemmas: &Lemmas,
        context: &mut Context,
        same: &Fact,
        ranges: &[&Fact],
    ) -> Result<Vec<Fact>, Failure> {
        let extents = |chain: &Self| chain.0.iter().skip(1).map(|digit| digit.extent.clone()).collect::<Vec<_>>();
        if self.0.len() != other.0.len() || extents(self) != extents(other) {
            return Err(Failure::NotShown(Reason::undecided("the numerals differ in their extents")));
        }
        let mut same = same.clone();
        let mut shown = Vec::with_capacity(self.0.len());
        // From the fastest digit up: each step splits the equality of two numerals into that of their last digits and
        // that of the numerals before them.
        for (count, (left, right)) in self.0.iter().zip(&other.0).enumerate().skip(1).rev() {
            let using: Vec<&Fact> = ranges.iter().copied().chain([&same]).collect();
            let (high, other_high) = (self.prefix(count).0, other.prefix(count).0);
            let [prefix, digit] = lemmas.horner_injective(
                context,
                [&high, &left.value],
                [&other_high, &right.value],
                &left.extent,
                &using,
            )?;
            shown.push(digit);
            same = prefix;
        }
        if !self.0.is_empty() {
            shown.push(same);
        }
        shown.reverse();
        Ok(shown)
    }
}

impl Lemmas {
    /// The digits `x // b` below `ceil(n / b)` and `x % b` below `b` of an axis `0 <= x < n`, with facts that say so: the
    /// Euclidean identity and both ranges. `b` has to be positive and `n` bounds `x`, by the facts used.
    pub fn split_axis(
        &self,
        context: &mut Context,
        [x, n]: [&Term; 2],
        b: &Term,
        using: &[&Fact],
    ) -> Result<([Digit; 2], [Fact; 3]), Failure> {
        let values = [("a", x), ("b", b), ("n", n)];
        let identity = self.apply(context, Lemma::Euclid, &values, using)?;
        let low = self.apply(context, Lemma::DivNonNegative, &values, using)?;
        let high = self.apply(context, Lemma::DivBelowCeil, &values, using)?;
        let digits = [Digit::new(x.floor_div(b), n.ceil_div(b)), Digit::new(x.floor_mod(b), b)];
        Ok((digits, [identity, low, high]))
    }
}
