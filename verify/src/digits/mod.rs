//! Mixed-radix digits: the tier that decides most index maps, constant and symbolic, without a search.
//!
//! A [`DigitCertificate`] writes every index in mixed radix and claims what each output
//! is in terms of the digits. [`check`] trusts none of it: it evaluates the map in these digits itself and compares. The
//! obligations are then simple statements about sums of digits: `bounds` is an interval; `injective` holds if the places of
//! a sum do not overlap and every digit can be read off some output; `inverse` holds if evaluation leads back to the index.
//! There are few rules, each named after the lemma that it rests on, and every instance is collected. `confirm` asks Z3 to
//! prove all instances; if one is not proved, this tier decides nothing.
//!
//! | rule | lemma |
//! |---|---|
//! | an index is the sum of its digits times their strides | Euclid, DivNonNegative, DivBelowCeil, HornerInverse |
//! | `(b*q + r) // b == q` and `% b == r` for `0 <= r < b` | HornerInverse; `0 <= r < b` is a [`Window`] |
//! | a sum of bounded digits lies between the sums of their bounds | [`Window`]: Monotone and linear arithmetic |
//! | `w*a + r == w*b + s` with `0 <= r, s < w` gives `a == b` and `r == s` | HornerInjective; a [`Window`] |
//! | a polynomial in positive symbols is not negative | [`NonNegative`] |
//! | `(x + k*b) // b == x // b + k` without digits | DivShift, Euclid |

mod atoms;
mod confirm;
mod eval;
mod inverse;
mod obligations;
mod space;

use std::cell::OnceCell;

use tilewright_ir::{DigitCertificate, DigitSum, DigitView, Expr, IndexMap, Var};

use crate::door::certified;
use crate::judge::{Decision, Judge};
use crate::lemmas::Lemma;
use crate::map::MapClaim;
use crate::method::Method;
use crate::obligation::Obligation;
use atoms::TOO_LARGE;
use eval::{Checker, Env};
use space::{Space, Sum};

/// Polynomials over the numbers of [`atoms::Atoms`].
type Poly = crate::poly::Poly<u32>;

pub use atoms::NonNegative;
use confirm::Confirmation;
pub(crate) use confirm::Windows;
pub use eval::Window;

/// Why a certificate is rejected, or does not show an obligation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Rejected(pub(crate) &'static str);

/// A statement that the checker relies on, for Z3 to confirm.
#[derive(Clone, Debug)]
pub enum Instance {
    /// A lemma, which is proved once for all values. The hypotheses of its use are among the other instances.
    Lemma(Lemma),
    /// A sum of digits lies in a window.
    Window(Window),
    /// A polynomial in the extents is not negative.
    NonNegative(NonNegative),
}

/// The obligations that a certificate can show.
pub const OBLIGATIONS: [Obligation; 7] = [
    Obligation::Bounds,
    Obligation::Injective,
    Obligation::Tight,
    Obligation::Overflow,
    Obligation::Inverse,
    Obligation::Padding,
    Obligation::Specification,
];

/// The result of checking a certificate: what it shows, provided that Z3 confirms the instances.
#[derive(Debug)]
pub struct Checked {
    /// Instances that all obligations rest on.
    base: Vec<Instance>,
    /// Further instances of each obligation, in the order of [`OBLIGATIONS`].
    shown: Vec<Result<Vec<Instance>, Rejected>>,
    /// Least value of each atom of the polynomials.
    lows: Vec<i128>,
}

impl Checked {
    /// All instances that the checker relies on.
    pub fn instances(&self) -> impl Iterator<Item = &Instance> {
        self.base.iter().chain(self.shown.iter().flatten().flatten())
    }

    /// Number of instances that an obligation rests on.
    ///
    /// # Errors
    /// The certificate does not show the obligation.
    pub fn shows(&self, obligation: Obligation) -> Result<usize, Rejected> {
        self.own_instances(obligation).map(|own| self.base.len() + own.len())
    }

    /// Whether Z3 confirms the instances of all obligations. Goals in the judge's memo are not asked again.
    pub fn is_confirmed(&self, judge: &Judge) -> bool {
        confirm::all_instances(judge, self).is_some()
    }

    /// The instances of one obligation, without those that all of them rest on.
    fn own_instances(&self, obligation: Obligation) -> Result<&[Instance], Rejected> {
        let position = OBLIGATIONS.iter().position(|known| *known == obligation);
        match position.and_then(|position| self.shown.get(position)) {
            Some(Ok(own)) => Ok(own),
            Some(Err(reason)) => Err(*reason),
            None => Err(Rejected("no such obligation")),
        }
    }
}

/// Checks a certificate against a claim, without a solver.
///
/// # Errors
/// A statement of the certificate is wrong. It is no error if the certificate does not show some obligation: see
/// [`Checked::shows`].
pub fn check(claim: &MapClaim<'_>, certificate: &DigitCertificate) -> Result<Checked, Rejected> {
    if claim.ill_formed().is_some() {
        return Err(Rejected("the claim makes no sense as such"));
    }
    let mut checker = Checker::default();
    checker.atoms.assume(claim.assumptions, claim.scalars).ok_or(TOO_LARGE)?;
    let logical = space(&mut checker, claim.map.domain(), &certificate.map)?;
    let env = indices(claim.map.vars(), &logical);
    // Overflow is about the operations of the map, so operations are recorded only while the map itself is evaluated.
    checker.operations = Some(Vec::new());
    let outputs = claim.map.outputs().iter().map(|output| checker.eval(output, &env)).collect::<Result<Vec<_>, _>>()?;
    let operations = checker.operations.take().unwrap_or_default();
    let shape = free(&mut checker, claim.shape)?;
    let separated = stated(&mut checker, &logical, &outputs, &certificate.map.outputs)?;
    let map =
        obligations::Evaluated { claim, certificate, logical: &logical, outputs: &outputs, shape: &shape, separated };
    map.check_sources()?;
    let witnesses = map.check_witnesses(&mut checker)?;
    let inverse = inverse::Physical::new(&mut checker, &map)?;
    // From here on each obligation collects its own instances: one that needs an unproved instance fails alone.
    let base = std::mem::take(&mut checker.found);
    let mut shown = Vec::with_capacity(OBLIGATIONS.len());
    let mut collect = |result: Result<(), Rejected>, checker: &mut Checker| {
        let found = std::mem::take(&mut checker.found);
        shown.push(result.map(|()| found));
    };
    let result = map.bounds(&mut checker);
    collect(result, &mut checker);
    let result = map.injective(&mut checker);
    collect(result, &mut checker);
    collect(map.tight(&witnesses), &mut checker);
    let result = map.overflow(&mut checker, &operations);
    collect(result, &mut checker);
    let result = inverse.as_ref().ok_or(NO_INVERSE).and_then(|inverse| inverse.inverse(&mut checker, &map));
    collect(result, &mut checker);
    let result = inverse.as_ref().ok_or(NO_INVERSE).and_then(|inverse| inverse.padding(&mut checker, &map));
    collect(result, &mut checker);
    let result = map.specification(&mut checker);
    collect(result, &mut checker);
    Ok(Checked { base, shown, lows: checker.atoms.lows().to_vec() })
}

/// The rejection of inverse and padding if there is nothing to check.
const NO_INVERSE: Rejected = Rejected("no inverse is claimed, or nothing is said of it");

/// Expressions over symbols alone, as polynomials.
fn free(checker: &mut Checker, exprs: &[Expr]) -> Result<Vec<Poly>, Rejected> {
    let space = Space::default();
    let env = Env { space: &space, vars: Vec::new() };
    let polynomial = |checker: &mut Checker, expr| checker.eval(expr, &env).map(|sum| sum.offset);
    exprs.iter().map(|expr| polynomial(checker, expr)).collect()
}

/// The index space of a shape, with the axes written in the radices of a view.
fn space(checker: &mut Checker, shape: &[Expr], view: &DigitView) -> Result<Space, Rejected> {
    if view.radices.len() != shape.len() {
        return Err(Rejected("the number of axes is not that of the shape"));
    }
    let mut space = Space::default();
    let extents = free(checker, shape)?;
    for (extent, radices) in extents.into_iter().zip(&view.radices) {
        let radices = free(checker, radices)?;
        space.add(extent, radices, &mut checker.atoms, &mut checker.found)?;
    }
    Ok(space)
}

/// An environment in which the variables are the indices of a space.
fn indices<'e>(vars: &'e [Var], space: &'e Space) -> Env<'e> {
    Env { space, vars: vars.iter().enumerate().map(|(axis, var)| (var, space.index(axis))).collect() }
}

/// Compares the claimed digits of all outputs with the evaluated ones. Returns, for each output, whether its value
/// determines its digits.
fn stated(checker: &mut Checker, space: &Space, outputs: &[Sum], claims: &[DigitSum]) -> Result<Vec<bool>, Rejected> {
    if outputs.len() != claims.len() {
        return Err(Rejected("the number of outputs is wrong"));
    }
    // If two adjacent digits occur in no output, splitting them is not needed. Rejecting such certificates keeps them in a
    // normal form.
    let appears = |digit: usize| outputs.iter().any(|output| output.places.iter().any(|(other, _)| *other == digit));
    let is_idle = |axis: &space::Axis| {
        let digits: Vec<bool> = (axis.first..axis.first + axis.n_digits()).map(appears).collect();
        digits.windows(2).any(|pair| pair == [false, false])
    };
    if space.axes.iter().any(is_idle) {
        return Err(Rejected("an index is split where no output tells of it"));
    }
    outputs.iter().zip(claims).map(|(output, claim)| stated_one(checker, space, output, claim)).collect()
}

/// Compares the claimed digits of one output with the evaluated ones; returns whether its value determines its digits.
fn stated_one(checker: &mut Checker, space: &Space, output: &Sum, claim: &DigitSum) -> Result<bool, Rejected> {
    const WRONG: Rejected = Rejected("an output is not the sum of digits that is stated");
    let offset = free(checker, std::slice::from_ref(&claim.offset))?;
    if offset.first() != Some(&output.offset) || claim.places.len() != output.places.len() {
        return Err(WRONG);
    }
    let mut places = Vec::with_capacity(claim.places.len());
    for place in &claim.places {
        let digit = digit_number(space, place.axis, place.digit).ok_or(WRONG)?;
        let weight = free(checker, std::slice::from_ref(&place.weight))?;
        let known = output.places.iter().find(|(other, _)| *other == digit).ok_or(WRONG)?;
        if weight.first() != Some(&known.1) || places.iter().any(|(other, _)| *other == digit) {
            return Err(WRONG);
        }
        places.push(known.clone());
    }
    let is_sorted = places.is_sorted_by_key(|(digit, _)| *digit);
    if obligations::separated(checker, space, &places).is_ok() {
        return Ok(true);
    }
    // If another order of the places shows that the digits are determined, the certificate has to state that order.
    let mut ordered = output.places.clone();
    ordered.sort_by(|(_, a), (_, b)| obligations::by_weight(checker, a, b));
    let separable = checker.attempt(|checker| {
        obligations::separated(checker, space, &ordered)?;
        Ok(())
    });
    if !is_sorted || separable.is_ok() {
        return Err(Rejected("the places of an output are out of order"));
    }
    Ok(false)
}

/// The number in the space of a digit of an axis.
fn digit_number(space: &Space, axis: usize, digit: usize) -> Option<usize> {
    let axis = space.axes.get(axis)?;
    (digit < axis.n_digits()).then(|| axis.first + digit)
}

/// Evaluates a second map on the same indices.
fn eval_map(checker: &mut Checker, map: &IndexMap, space: &Space) -> Result<Vec<Sum>, Rejected> {
    let env = indices(map.vars(), space);
    map.outputs().iter().map(|output| checker.eval(output, &env)).collect()
}

/// A claim's certificate, checked once for all obligations.
#[derive(Debug)]
pub(crate) struct Accepted {
    /// What it shows, provided that Z3 confirms the instances.
    checked: Checked,
    /// The answers of Z3 to the instances of all obligations, once they were asked for.
    answers: OnceCell<Option<Confirmation>>,
}

impl Accepted {
    /// The certificate of a claim; `None` if it has none or a wrong one, and for small constant maps, which enumeration
    /// decides faster.
    pub(crate) fn of(judge: &Judge, claim: &MapClaim<'_>) -> Option<Self> {
        let certificate = claim.digits?;
        if !is_large(claim, judge.most_points) || !can_hold(claim) {
            return None;
        }
        let checked = check(claim, certificate).ok()?;
        Some(Self { checked, answers: OnceCell::new() })
    }

    /// Proves an obligation, if the certificate shows it and Z3 confirms the instances.
    pub(crate) fn decide(&self, judge: &Judge, obligation: Obligation) -> Option<Decision> {
        let instances = self.checked.shows(obligation).ok()?;
        let all = self.answers.get_or_init(|| confirm::all_instances(judge, &self.checked));
        // One instance of another obligation may be without an answer: then those of this one are asked alone.
        let own = match all {
            Some(_) => None,
            None => Some(confirm::own_instances(judge, &self.checked, obligation)?),
        };
        let confirmation = own.as_ref().or(all.as_ref())?;
        judge.keep("map digits", &confirmation.steps);
        Some((certified(), Method::Digits { instances, confirmed: confirmation.by_solver }))
    }
}

/// Whether the domain is symbolic or has so many points (more than 64, or than the judge may try) that enumeration is
/// not faster.
fn is_large(claim: &MapClaim<'_>, most_points: u64) -> bool {
    const CHEAP: i128 = 1 << 6;
    let extents: Option<Vec<i128>> = claim.map.domain().iter().map(Expr::as_const_int).collect();
    let count = extents.and_then(|extents| extents.into_iter().try_fold(1i128, i128::checked_mul));
    count.is_none_or(|count| count > CHEAP.min(most_points.into()))
}

/// Whether the assumptions can hold, shown by a small example. Without this, a proof from contradictory assumptions would
/// be vacuous.
fn can_hold(claim: &MapClaim<'_>) -> bool {
    if claim.assumptions.is_empty() {
        return true;
    }
    let mut symbols: Vec<Var> = claim.assumptions.iter().flat_map(Expr::vars).collect();
    symbols.sort();
    symbols.dedup();
    let holds = |value: i128| {
        let bindings = symbols.iter().map(|symbol| (symbol.clone(), value)).collect();
        claim.assumptions.iter().all(|expr| expr.eval_index(&bindings).is_ok_and(|value| value != 0))
    };
    (1..=128).any(holds) || (8..31).any(|bit| holds(1 << bit))
}
