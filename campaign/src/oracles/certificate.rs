//! Checks digit certificates in both directions: a certificate that the algebra finds is accepted
//! by the checker and states the truth, and every mutation of it is rejected unless it states the
//! truth, too. The truth is decided by evaluating the map at every point.
//!
//! A mutated certificate describes another map, another inverse or another shape than the claim. It
//! is checked against those as well (`Twin`): whatever the checker accepts has to hold.

use arbitrary::Unstructured;
use serde::{Deserialize, Serialize};
use tilewright_ir::{Bindings, DigitCertificate, DigitView, Expr, IndexMap, InverseClaim, Var};
use tilewright_verify::digits::{OBLIGATIONS, check};
use tilewright_verify::{MapClaim, Obligation};

use crate::case::{Case, Redrawn};
use crate::config::Config;
use crate::map::truth::{Truth, numbers};
use crate::map::{Generated, MapCase, MapRecipe, Op};
use crate::mutate::certificate as mutate;
use crate::oracle::{Environment, Failure, Oracle, Outcome, Tally};
use tilewright_algebra as algebra;

/// A map whose outputs are sums of digits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DigitMap(pub MapCase);

impl From<MapCase> for DigitMap {
    fn from(case: MapCase) -> Self {
        Self(case)
    }
}

impl Redrawn for DigitMap {
    type Of = MapCase;

    /// Draws a map without mistakes, and removes the operations whose results are not sums of
    /// digits. One map in eight gets symbolic extents, on about half of its axes.
    fn redraw(u: &mut Unstructured<'_>, config: &Config) -> arbitrary::Result<MapCase> {
        let mut recipe = MapRecipe::draw(u, config)?;
        // Operations on bits and case distinctions are no sums of digits.
        recipe.ops.retain(|op| {
            !matches!(
                op,
                Op::Swizzle(_)
                    | Op::SwizzleBits(..)
                    | Op::Gray(..)
                    | Op::TurnBits(..)
                    | Op::Cases(..)
                    | Op::Clamp(_)
                    | Op::Skew(_)
                    | Op::Rotate(..)
            )
        });
        if u.ratio(1, 8)? {
            recipe.symbolic = (0..recipe.shape.len()).filter(|axis| (recipe.ops.len() + axis) % 2 == 0).collect();
        }
        Ok(MapCase::Recipe(recipe))
    }

    fn inner(&self) -> &MapCase {
        &self.0
    }
}

/// The oracle `certificate`; see the module.
#[derive(Debug, Default)]
pub struct Certificate;

impl Certificate {
    /// Creates the oracle. It needs no solver: certificates are checked without one.
    ///
    /// # Errors
    /// Never.
    pub fn new(_: &Environment) -> Result<Self, String> {
        Ok(Self)
    }
}

/// The obligations that the checker accepts on the grounds of a certificate.
fn shown(claim: &MapClaim<'_>, certificate: &DigitCertificate) -> Result<Vec<Obligation>, String> {
    let checked = check(claim, certificate).map_err(|reason| reason.to_string())?;
    Ok(OBLIGATIONS.into_iter().filter(|obligation| checked.shows(*obligation).is_ok()).collect())
}

/// The values of the symbols at which a claim is evaluated: small and pairwise different.
fn bindings(built: &Generated) -> Vec<Bindings> {
    let bind = |value: i128| {
        let values = built.symbols.iter().zip(0..).map(|(symbol, axis)| (symbol.clone(), value + axis));
        values.collect::<Bindings>()
    };
    if built.symbols.is_empty() { vec![Bindings::new()] } else { [1, 2, 3, 4, 7].map(bind).to_vec() }
}

/// Whether an obligation holds, by evaluation; `None` if it was not evaluated. `inverse` says
/// whether the inverse leads back and whether its padding is exact.
fn holds(truth: &Truth, inverse: Option<[bool; 2]>, obligation: Obligation) -> Option<bool> {
    match obligation {
        Obligation::Bounds => Some(truth.bounds),
        Obligation::Injective => Some(truth.injective),
        Obligation::Tight => Some(truth.tight),
        Obligation::Overflow => Some(truth.fits),
        Obligation::Inverse => inverse.map(|[there, _]| there),
        Obligation::Padding => inverse.map(|[_, exact]| exact),
        Obligation::Iteration
        | Obligation::Order
        | Obligation::Alive
        | Obligation::Simulation
        | Obligation::Flatten
        | Obligation::Tiling
        | Obligation::Texture
        | Obligation::Lanes
        | Obligation::Race
        | Obligation::Barrier
        | Obligation::Defined
        | Obligation::Specification
        | Obligation::Bitcast
        | Obligation::Dividend
        | Obligation::PlanDisjoint
        | Obligation::PlanFits
        | Obligation::PlanType
        | Obligation::PlanAccess
        | Obligation::PlanInPlace
        | Obligation::Region => None,
    }
}

/// The value of an expression of symbols alone.
fn value(expr: &Expr, symbols: &Bindings) -> Option<i128> {
    expr.eval_index(symbols).ok()
}

/// Limit on the number of points at which a view is evaluated. The generator's maps have at most so
/// many, including padding.
const MAX_POINTS: usize = 1 << 14;

/// Whether each output equals the sum of digits that a view states, at every point of the domain.
/// `None` if there are too many points or an expression has no value.
fn view_holds(vars: &[Var], extents: &[Expr], outputs: &[Expr], view: &DigitView, symbols: &Bindings) -> Option<bool> {
    let extents = numbers(extents, symbols)?;
    if view.radices.len() != extents.len() || view.outputs.len() != outputs.len() {
        return Some(false);
    }
    let points = crate::map::table::Table::of_box(vars, &extents, symbols, MAX_POINTS)?;
    let radices: Vec<Vec<i128>> = view
        .radices
        .iter()
        .map(|axis| axis.iter().map(|radix| value(radix, symbols)).collect())
        .collect::<Option<_>>()?;
    // A digit needs a positive base; 0 would also divide by zero below.
    if radices.iter().flatten().any(|radix| *radix < 1) {
        return Some(false);
    }
    let digit = |point: &[i64], axis: usize, digit: usize| -> Option<i128> {
        let radices = radices.get(axis).filter(|radices| digit <= radices.len())?;
        let rest = radices[..digit].iter().try_fold(i128::from(point[axis]), |rest, radix| Some(rest / radix))?;
        Some(radices.get(digit).map_or(rest, |radix| rest % radix))
    };
    for (output, sum) in outputs.iter().zip(&view.outputs) {
        let values = points.eval(output)?;
        let offset = value(&sum.offset, symbols)?;
        let weights: Vec<i128> = sum.places.iter().map(|place| value(&place.weight, symbols)).collect::<Option<_>>()?;
        for (at, output) in values.iter().enumerate() {
            let point = points.point(at);
            let mut stated = offset;
            for (place, weight) in sum.places.iter().zip(&weights) {
                // A place may name an axis or a digit that the view does not have; such a view states nothing true.
                let Some(digit) = digit(&point, place.axis, place.digit) else { return Some(false) };
                stated += weight * digit;
            }
            if stated != i128::from(*output) {
                return Some(false);
            }
        }
    }
    Some(true)
}

/// Whether the digits of a witness are within their radices and denote an index of the domain at
/// which an output takes its last value.
fn witness_holds(
    built: &Generated,
    certificate: &DigitCertificate,
    output: usize,
    values: &[Expr],
    symbols: &Bindings,
) -> Option<bool> {
    let (map, view) = (&built.map, &certificate.map);
    let (domain, shape) = (numbers(map.domain(), symbols)?, numbers(&built.shape, symbols)?);
    let (Some(sum), Some(stated)) = (view.outputs.get(output), map.outputs().get(output)) else { return Some(false) };
    if sum.places.len() != values.len() {
        return Some(false);
    }
    // The index with these digits, axis by axis: each digit counts for the product of the radices
    // below it.
    let mut point = vec![0i128; domain.len()];
    for (place, digit) in sum.places.iter().zip(values) {
        let Some(radices) = view.radices.get(place.axis).filter(|radices| place.digit <= radices.len()) else {
            return Some(false);
        };
        let radices: Vec<i128> = radices.iter().map(|radix| value(radix, symbols)).collect::<Option<_>>()?;
        let digit = value(digit, symbols)?;
        if digit < 0 || radices.get(place.digit).is_some_and(|radix| digit >= *radix) {
            return Some(false);
        }
        point[place.axis] += digit * radices[..place.digit].iter().product::<i128>();
    }
    if point.iter().zip(&domain).any(|(at, extent)| *at >= i128::from(*extent)) {
        return Some(false);
    }
    let mut bindings = symbols.clone();
    bindings.extend(map.vars().iter().cloned().zip(point));
    Some(stated.eval_index(&bindings).ok()? + 1 == i128::from(shape[output]))
}

/// Whether everything that a certificate states is true for one binding of the symbols; `None` if
/// it cannot be evaluated.
fn states_the_truth(
    built: &Generated,
    inverse: Option<&InverseClaim>,
    certificate: &DigitCertificate,
    symbols: &Bindings,
) -> Option<bool> {
    let map = &built.map;
    let mut is_true = view_holds(map.vars(), map.domain(), map.outputs(), &certificate.map, symbols)?;
    if let (Some(claim), Some(view)) = (inverse, &certificate.inverse) {
        is_true &= view_holds(&claim.vars, &built.shape, &claim.outputs, view, symbols)?;
    }
    for source in &certificate.sources {
        let place = certificate.map.outputs.get(source.output).and_then(|sum| sum.places.get(source.place));
        is_true &= place.is_some_and(|place| (place.axis, place.digit) == (source.axis, source.digit));
    }
    for (output, witness) in certificate.witnesses.iter().enumerate() {
        if let Some(values) = witness {
            is_true &= witness_holds(built, certificate, output, values, symbols)?;
        }
    }
    Some(is_true)
}

/// An obligation that was accepted and does not hold.
fn untrue(
    built: &Generated,
    inverse: Option<&InverseClaim>,
    shown: &[Obligation],
    tally: &mut Tally,
) -> Option<Obligation> {
    if shown.is_empty() {
        return None;
    }
    for symbols in bindings(built) {
        let Some(truth) = Truth::of(&built.map, &built.shape, &symbols) else { continue };
        let inverse_truth = inverse.and_then(|inverse| truth.of_inverse(&built.map, inverse));
        for &obligation in shown {
            if let Some(holds) = holds(&truth, inverse_truth, obligation) {
                tally.count("soundness checks", 1);
                if !holds {
                    return Some(obligation);
                }
            }
        }
    }
    None
}

/// A neighbouring claim, together with a certificate that describes it.
struct Twin<'a> {
    what: &'a str,
    built: Generated,
    inverse: Option<InverseClaim>,
    certificate: &'a DigitCertificate,
}

/// Number of mutants per case for which a claim is made.
const TWINS: usize = 8;

/// Claims close to the original one: an axis of the physical shape is longer or shorter by one;
/// everything is called padding; the map or the inverse is the one that a mutant states. `seed`
/// selects the mutants.
fn twins<'a>(
    built: &Generated,
    inverse: Option<&InverseClaim>,
    valid: &'a DigitCertificate,
    mutants: &'a mutate::Mutants,
    seed: usize,
) -> Vec<Twin<'a>> {
    let mut found = Vec::new();
    let axis = seed % built.shape.len().max(1);
    for by in [-1, 1] {
        let mut built = built.clone();
        if let Some(extent) = built.shape.get_mut(axis) {
            *extent = extent.clone() + Expr::int(by);
            found.push(Twin { what: "another shape", built, inverse: inverse.cloned(), certificate: valid });
        }
    }
    if let Some(claim) = inverse {
        let all = InverseClaim { padding: Expr::bool(true), ..claim.clone() };
        let what = "everything is padding";
        found.push(Twin { what, built: built.clone(), inverse: Some(all), certificate: valid });
    }
    let stride = (mutants.len() / TWINS).max(1);
    for (what, mutant) in mutants.iter().skip(seed % stride).step_by(stride) {
        let (mut built, mut inverse) = (built.clone(), inverse.cloned());
        if mutant.map != valid.map {
            let map = &built.map;
            let Some(outputs) = mutate::written(&mutant.map, map.vars()) else { continue };
            let separators = map.axis_separators().positions().to_vec();
            let Ok(map) = IndexMap::new(map.vars().to_vec(), map.domain().to_vec(), outputs, separators) else {
                continue;
            };
            built.map = map;
        } else if let (Some(claim), Some(view), true) = (&mut inverse, &mutant.inverse, mutant.inverse != valid.inverse)
        {
            let Some(outputs) = mutate::written(view, &claim.vars) else { continue };
            claim.outputs = outputs;
            // If everything is padding, only the condition that images are mapped back is left.
            if found.len() % 2 == 0 {
                claim.padding = Expr::bool(true);
            }
        } else {
            continue;
        }
        found.push(Twin { what, built, inverse, certificate: mutant });
    }
    found
}

/// A hash of a text, for choices that do not depend on the drawn bytes.
fn seed_of(text: &str) -> usize {
    text.bytes().fold(7, |hash: usize, byte| hash.wrapping_mul(31).wrapping_add(usize::from(byte)))
}

impl Oracle for Certificate {
    type Case = DigitMap;

    const NAME: &'static str = "certificate";

    /// Finds a certificate; checks its statements and the conclusions of the checker, for the certificate and
    /// for its mutants.
    fn check(&mut self, case: &DigitMap, tally: &mut Tally) -> Outcome {
        let built = match case.0.build() {
            Ok(built) => built,
            Err(why) => return Outcome::Invalid(why),
        };
        let inverse = algebra::inverse(&built.map, &built.shape, &[]).ok();
        let found = algebra::digit_certificate(&built.map, &built.shape, inverse.as_ref(), None, &[]);
        let Some(valid) = found else { return Outcome::Undecided("no certificate was found".to_owned()) };
        // The algebra must not state anything false, even if the checker would reject it.
        for symbols in bindings(&built) {
            if states_the_truth(&built, inverse.as_ref(), &valid, &symbols) == Some(false) {
                return Failure::outcome(
                    "a certificate that is found states what is not so",
                    format!("{}: {valid:?}", case.text()),
                );
            }
            tally.count("certificates evaluated", 1);
        }
        let claim = MapClaim { inverse: inverse.as_ref(), ..MapClaim::new(&built.map, &built.shape) };
        let before = match shown(&claim, &valid) {
            Ok(before) => before,
            Err(why) => {
                tally.count("certificates rejected as they were found", 1);
                tally.count(&format!("rejected: {why}"), 1);
                return Outcome::Undecided(format!("rejected as it was found: {why}"));
            }
        };
        if before.is_empty() {
            return Outcome::Undecided("a certificate that shows nothing".to_owned());
        }
        tally.count("certificates accepted", 1);
        if let Some(obligation) = untrue(&built, inverse.as_ref(), &before, tally) {
            return Failure::outcome(format!("{obligation} is shown by digits and does not hold"), case.text());
        }
        let mutants = mutate::all(&valid);
        for twin in twins(&built, inverse.as_ref(), &valid, &mutants, seed_of(&case.text())) {
            tally.count("other claims", 1);
            let claim =
                MapClaim { inverse: twin.inverse.as_ref(), ..MapClaim::new(&twin.built.map, &twin.built.shape) };
            let Ok(shown) = shown(&claim, twin.certificate) else { continue };
            tally.count("other claims accepted", u64::from(!shown.is_empty()));
            if let Some(obligation) = untrue(&twin.built, twin.inverse.as_ref(), &shown, tally) {
                let text = format!("{} into {}", twin.built.map, crate::map::listed(&twin.built.shape));
                let text = format!("{text}, {}: {:?}; {}", twin.what, twin.inverse, case.text());
                return Failure::outcome(
                    format!("{obligation} is shown by digits of another map and does not hold"),
                    text,
                );
            }
        }
        // A mutant that is accepted for the original claim has to state the truth about it.
        for (what, mutant) in mutants {
            if mutant == valid {
                continue;
            }
            tally.count("mutants", 1);
            let after = shown(&claim, &mutant).unwrap_or_default();
            if !before.iter().all(|obligation| after.contains(obligation)) {
                tally.count("mutants rejected", 1);
                continue;
            }
            let is_true: Vec<Option<bool>> = bindings(&built)
                .iter()
                .map(|symbols| states_the_truth(&built, inverse.as_ref(), &mutant, symbols))
                .collect();
            if !is_true.contains(&Some(true)) && !is_true.contains(&Some(false)) {
                tally.count("mutants too large to be tried", 1);
                continue;
            }
            if is_true.contains(&Some(false)) {
                return Failure::outcome(
                    "a mutated certificate is accepted",
                    format!("{}: {what}: {mutant:?}", case.text()),
                );
            }
            tally.count("mutants that state the truth as well", 1);
        }
        Outcome::Held
    }
}
