//! The obligations bounds, injective, tight, overflow and specification, from the digits of the map.
//!
//! For `lambda n, c: [(n * 5 + c // 4) * 4 + c % 4]` on (2, 17) the output is the sum `c0 + 4 * c1 + 20 * n0` of the digits
//! `c0 = c % 4` below 4, `c1 = c // 4` below 5 and `n0 = n` below 2:
//!
//! ```text
//! bounds       0 <= c0 + 4 * c1 + 20 * n0 < 40
//! injective    c0 < 4, c0 + 4 * c1 < 20: each weight exceeds everything below it, so the digits can be read off
//! tight        c0 = 0, c1 = 4, n0 = 1 reaches 36: an extent of 37 is tight, one of 40 is padded
//! ```
//!
//! A point below every digit's extent need not be an index: with `17 = 4 * 4 + 1` the digits `c1 = 4, c0 = 3` are 19.
//! Bounds therefore use the axis as a whole where they can (`space`), and a witness is checked against the axis as
//! well.

use std::cmp::Ordering;

use tilewright_ir::{DigitCertificate, DigitSource, Expr, MAX_SYMBOLIC_ELEMENTS, ScalarType};

use super::atoms::TOO_LARGE;
use super::eval::Checker;
use super::space::{Space, Sum};
use super::{Instance, Poly, Rejected, eval_map, free};
use crate::lemmas::Lemma;
use crate::map::MapClaim;

/// A map whose outputs are evaluated to sums of digits.
pub(super) struct Evaluated<'c> {
    /// The claim that the certificate is checked against.
    pub(super) claim: &'c MapClaim<'c>,
    /// The certificate.
    pub(super) certificate: &'c DigitCertificate,
    /// The domain in digits.
    pub(super) logical: &'c Space,
    /// The outputs of the map, as evaluated by the checker.
    pub(super) outputs: &'c [Sum],
    /// The physical extents.
    pub(super) shape: &'c [Poly],
    /// Whether the value of each output determines its digits.
    pub(super) separated: Vec<bool>,
}

/// Shows that the value of a sum determines its digits: the weight of each place exceeds the greatest sum of all places
/// before it. `places` are in increasing order of their weights.
pub(super) fn separated(checker: &mut Checker, space: &Space, places: &[(usize, Poly)]) -> Result<(), Rejected> {
    checker.attempt(|checker| {
        let mut below = Sum::default();
        for (digit, weight) in places {
            let is_negative = checker.atoms.nonnegative(weight).is_none();
            let size = if is_negative { weight.scaled(-1).ok_or(TOO_LARGE)? } else { weight.clone() };
            checker.window(space, &below, Some(&size))?;
            checker.found.push(Instance::Lemma(Lemma::HornerInjective));
            // A negative weight times a digit is a positive one times the complement of the digit, plus a constant.
            let place = Sum { places: vec![(*digit, weight.clone())], offset: Poly::default() };
            below = below.plus(&place).ok_or(TOO_LARGE)?;
            if is_negative {
                let max = space.digits[*digit].extent.plus_const(-1).ok_or(TOO_LARGE)?;
                below.offset = max.times(&size).and_then(|lift| below.offset.plus(&lift)).ok_or(TOO_LARGE)?;
            }
        }
        Ok(())
    })
}

/// Compares two weights by magnitude; `Equal` if that is not known.
pub(super) fn by_weight(checker: &Checker, a: &Poly, b: &Poly) -> Ordering {
    let size = |weight: &Poly| match checker.atoms.nonnegative(weight) {
        Some(_) => Some(weight.clone()),
        None => weight.scaled(-1),
    };
    let at_most = |a: &Poly, b: &Poly| b.minus(a).is_some_and(|room| checker.atoms.nonnegative(&room).is_some());
    match (size(a), size(b)) {
        (Some(a), Some(b)) if at_most(&a, &b) => {
            if at_most(&b, &a) {
                Ordering::Equal
            } else {
                Ordering::Less
            }
        }
        (Some(_), Some(_)) => Ordering::Greater,
        _ => Ordering::Equal,
    }
}

impl Evaluated<'_> {
    /// Checks where the certificate reads off each digit: it states nothing, or exactly the first output from which the
    /// digit is determined.
    pub(super) fn check_sources(&self) -> Result<(), Rejected> {
        let stated = &self.certificate.sources;
        if stated.is_empty() {
            return Ok(());
        }
        match self.sources() {
            Some(sources) if sources == *stated => Ok(()),
            _ => Err(Rejected("a digit is not read off where it is stated")),
        }
    }

    /// For each digit the first output that determines it; `None` if there is none for some digit.
    fn sources(&self) -> Option<Vec<DigitSource>> {
        let mut sources = Vec::with_capacity(self.logical.digits.len());
        for (number, digit) in self.logical.digits.iter().enumerate().filter(|(_, digit)| !digit.is_unit()) {
            let axis = digit.axis;
            let digit = number - self.logical.axes[axis].first;
            let found = self.certificate.map.outputs.iter().enumerate().find_map(|(output, sum)| {
                let place = sum.places.iter().position(|place| (place.axis, place.digit) == (axis, digit));
                place.filter(|_| self.separated[output]).map(|place| (output, place))
            });
            let (output, place) = found?;
            sources.push(DigitSource { axis, digit, output, place });
        }
        Some(sources)
    }

    /// Checks the witnesses of the certificate. Returns, for each output, whether there is one.
    pub(super) fn check_witnesses(&self, checker: &mut Checker) -> Result<Vec<bool>, Rejected> {
        let stated = &self.certificate.witnesses;
        if stated.len() != self.outputs.len() {
            return Err(Rejected("the number of witnesses is wrong"));
        }
        let mut given = Vec::with_capacity(stated.len());
        for (output, witness) in stated.iter().enumerate() {
            if let Some(values) = witness {
                self.check_witness(checker, output, values)?;
            }
            given.push(witness.is_some());
        }
        Ok(given)
    }

    /// Checks that a point given by digits lies in the domain and reaches the last index of an output.
    fn check_witness(&self, checker: &mut Checker, output: usize, values: &[Expr]) -> Result<(), Rejected> {
        const WRONG: Rejected = Rejected("a witness does not reach the last index");
        let places = &self.certificate.map.outputs[output].places;
        if values.len() != places.len() {
            return Err(WRONG);
        }
        let mut reached = self.outputs[output].offset.clone();
        let mut point = vec![Poly::default(); self.logical.axes.len()];
        for (value, place) in free(checker, values)?.into_iter().zip(places) {
            let axis = &self.logical.axes[place.axis];
            let number = axis.first + place.digit;
            checker.atoms.show(&value, &mut checker.found)?;
            let extent = &self.logical.digits[number].extent;
            let room = extent.minus(&value).and_then(|room| room.plus_const(-1)).ok_or(TOO_LARGE)?;
            checker.atoms.show(&room, &mut checker.found)?;
            let weight = self.outputs[output].places.iter().find(|(digit, _)| *digit == number).ok_or(WRONG)?;
            reached = weight.1.times(&value).and_then(|part| reached.plus(&part)).ok_or(TOO_LARGE)?;
            let part = axis.strides[place.digit].times(&value).ok_or(TOO_LARGE)?;
            point[place.axis] = point[place.axis].plus(&part).ok_or(TOO_LARGE)?;
        }
        // Digits in range may still make an index beyond the axis, whose last block need not be full.
        for (index, axis) in point.iter().zip(&self.logical.axes) {
            let room = axis.extent.minus(index).and_then(|room| room.plus_const(-1)).ok_or(TOO_LARGE)?;
            checker.atoms.show(&room, &mut checker.found)?;
        }
        if reached.plus_const(1).as_ref() == Some(&self.shape[output]) { Ok(()) } else { Err(WRONG) }
    }

    /// Shows that every output lies in the physical shape.
    pub(super) fn bounds(&self, checker: &mut Checker) -> Result<(), Rejected> {
        for (output, extent) in self.outputs.iter().zip(self.shape) {
            checker.window(self.logical, output, Some(extent))?;
        }
        Ok(())
    }

    /// Shows that every digit can be read off an output. That those outputs determine their digits was shown when the
    /// sources were checked.
    pub(super) fn injective(&self, checker: &mut Checker) -> Result<(), Rejected> {
        let needed = self.logical.digits.iter().filter(|digit| !digit.is_unit()).count();
        if self.certificate.sources.len() != needed {
            return Err(Rejected("it is not stated where the digits are read off"));
        }
        checker.found.push(Instance::Lemma(Lemma::HornerInjective));
        Ok(())
    }

    /// Shows that every output reaches its last index, unless its axis is declared as padded.
    pub(super) fn tight(&self, witnesses: &[bool]) -> Result<(), Rejected> {
        let open = witnesses.iter().enumerate().any(|(axis, given)| !given && !self.claim.padded.contains(&axis));
        if open { Err(Rejected("no index is named that reaches the end of an axis")) } else { Ok(()) }
    }

    /// Shows that no operation leaves its type, given that a symbolic buffer has at most [`MAX_SYMBOLIC_ELEMENTS`]
    /// elements.
    pub(super) fn overflow(&self, checker: &mut Checker, operations: &[(Sum, ScalarType)]) -> Result<(), Rejected> {
        let mut sizes = Vec::new();
        let domain: Vec<Poly> = self.logical.axes.iter().map(|axis| axis.extent.clone()).collect();
        // Most operations stay below the physical size, which is the larger one.
        for shape in [self.shape, domain.as_slice()] {
            let size = shape.iter().try_fold(Poly::constant(1), |size, extent| size.times(extent)).ok_or(TOO_LARGE)?;
            sizes.extend(size.as_const().is_none().then_some(size));
        }
        for (position, (sum, ty)) in operations.iter().enumerate() {
            if !operations[..position].contains(&(sum.clone(), *ty)) {
                fits(checker, self.logical, sum, *ty, &sizes)?;
            }
        }
        Ok(())
    }

    /// Shows that the meaning has the same digits as the map.
    pub(super) fn specification(&self, checker: &mut Checker) -> Result<(), Rejected> {
        let meaning = self.claim.meaning.ok_or(Rejected("no meaning is stated"))?;
        let stated = eval_map(checker, meaning, self.logical)?;
        if stated == self.outputs { Ok(()) } else { Err(Rejected("the meaning has other digits")) }
    }
}

/// Shows that a sum fits a type: by numbers, or because it is below the size of a symbolic buffer.
fn fits(checker: &mut Checker, space: &Space, sum: &Sum, ty: ScalarType, sizes: &[Poly]) -> Result<(), Rejected> {
    let (low, high) = ty.integer_range().ok_or(Rejected("an operation is not one of integers"))?;
    let above = low.checked_neg().and_then(|lift| sum.plus_const(lift)).ok_or(TOO_LARGE)?;
    let span = high.checked_sub(low).and_then(|span| span.checked_add(1)).ok_or(TOO_LARGE)?;
    let slack = span.checked_sub(i128::from(MAX_SYMBOLIC_ELEMENTS)).ok_or(TOO_LARGE)?;
    let mut ends = sizes.iter().map(|size| size.plus_const(slack)).collect::<Option<Vec<_>>>().ok_or(TOO_LARGE)?;
    ends.push(Poly::constant(span));
    if ends.iter().any(|end| checker.window(space, &above, Some(end)).is_ok()) {
        return Ok(());
    }
    Err(Rejected("an operation may leave its type"))
}
