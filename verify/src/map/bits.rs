//! The tier for maps that move and mix bits: proofs by Z3 over bit-vectors, for power-of-two extents of any size.
//!
//! Linear algebra over GF(2) (`gf2`) looks for a counterexample first, which is evaluated, and finds what helps with a proof:
//! a left inverse for *injective*, and for *tight* an index that reaches the end of an axis. The goals are those of the other
//! tiers; only the encoding differs.
//!
//! ```text
//! lambda i, j: [i, j ^ (i % 8)]   on (64, 8)     left inverse, bit by bit: i is p0 and j is p1 ^ (p0 % 8)
//! ```
//!
//! Enumeration would take 2^n points for n input bits; a proof takes n goals of n bits.

use super::case::{Case, Shared, Tier};
use super::instance::Instance;
use super::{MapClaim, bounds, injective, inverse, padding, specification, tight};
use crate::door::{All, everywhere};
use crate::gf2::Linear;
use crate::judge::Decision;
use crate::method::Method;
use crate::reason::Reason;
use crate::verdict::{Counterexample, Verdict};

/// The instance of a claim about all indices of a constant box, and the affine form of its map, if it has one.
fn linear<'a>(case: &Case<'a>) -> Option<(&'a Instance<'a>, Linear)> {
    let instance = case.constant().filter(|_| case.claim.predicate.is_none())?;
    Some((instance, Linear::new(case.claim.map, &instance.domain)?))
}

/// Refuted by an evaluated counterexample; an internal error if evaluation does not confirm it.
fn refuted(found: Option<Counterexample>) -> Decision {
    let verdict = match found {
        Some(found) => Verdict::Refuted(found),
        None => Verdict::Unknown(Reason::no_replay("what linear algebra found")),
    };
    (verdict, Method::Gf2 { goals: 0 })
}

/// The decision of a tier about a claim, with all goals proved over bit-vectors.
fn by_z3(case: &Case<'_>, claim: MapClaim<'_>, tier: Tier) -> Option<Decision> {
    let judge = case.judge.in_bits();
    let (shared, obligation, loops) = (Shared::new(claim), case.obligation, case.loops);
    Some(match tier(&Case { judge: &judge, claim, obligation, loops, shared: &shared })? {
        (Verdict::Proved(grounds), _) => {
            (Verdict::Proved(grounds), Method::Gf2 { goals: usize::try_from(grounds.facts()).unwrap_or(usize::MAX) })
        }
        (Verdict::Unknown(reason), method) => (Verdict::Unknown(reason.after("over bit-vectors: ")), method),
        other => other,
    })
}

/// Bounds.
pub(super) fn bounds(case: &Case<'_>) -> Option<Decision> {
    let (instance, linear) = linear(case)?;
    match linear.outside(&instance.shape) {
        Some(index) => Some(refuted(bounds::outside(case.claim, &instance.symbols, &instance.shape, &index))),
        None => by_z3(case, case.claim, bounds::by_z3),
    }
}

/// Injective: Z3 confirms that there is a left inverse.
pub(super) fn injective(case: &Case<'_>) -> Option<Decision> {
    let (instance, linear) = linear(case)?;
    if let Some((first, second)) = linear.collision() {
        return Some(refuted(injective::collision(case.claim, &instance.symbols, &first, &second)));
    }
    let inverse = linear.left_inverse()?;
    // The inverse is not believed: as that of a claim it may not mention the logical index.
    let claim = MapClaim { inverse: Some(&inverse), ..case.claim };
    if claim.ill_formed().is_some() {
        return None;
    }
    by_z3(case, claim, inverse::left).filter(|(verdict, _)| verdict.is_proved())
}

/// Tight: the map takes an index to the end of each axis, which is evaluated.
pub(super) fn tight(case: &Case<'_>) -> Option<Decision> {
    let (instance, linear) = linear(case)?;
    let mut all = All::default();
    for axis in (0..instance.shape.len()).filter(|axis| !case.claim.padded.contains(axis)) {
        match linear.reaches(axis, instance.shape[axis] - 1) {
            Ok(index) if tight::reaches(instance, axis, &index) => {
                let Verdict::Proved(grounds) = everywhere(1) else { return None };
                all.add(grounds);
            }
            Err(Some(largest)) => return too_large(case, instance, axis, largest),
            Ok(_) | Err(None) => return None,
        }
    }
    Some((all.proved(), Method::Gf2 { goals: 0 }))
}

/// The refutation of an extent that is larger than needed: Z3 confirms that a smaller one has room for all indices.
fn too_large(case: &Case<'_>, instance: &Instance<'_>, axis: usize, largest: i128) -> Option<Decision> {
    let mut shape = case.claim.shape.to_vec();
    shape[axis] = tilewright_ir::Expr::Int { value: largest + 1, ty: tilewright_ir::ScalarType::Int64 };
    let is_smaller = largest + 1 < instance.shape[axis];
    let (verdict, method) = by_z3(case, MapClaim { shape: &shape, ..case.claim }, bounds::by_z3)?;
    let found = tight::loose(instance, axis, largest);
    (is_smaller && verdict.is_proved()).then_some((Verdict::Refuted(found), method))
}

/// Inverse, for a claim without padding: both compositions are the identity.
pub(super) fn inverse(case: &Case<'_>) -> Option<Decision> {
    let (instance, linear) = linear(case)?;
    let (claim, symbols, inverse) = (case.claim, &instance.symbols, case.claim.inverse?);
    // With padding the right inverse holds on a part of the physical box, which need not be given by linear equations.
    if inverse.padding.as_const_int() != Some(0) {
        return None;
    }
    if let Some(index) = linear.lost_by(inverse).ok()? {
        return Some(refuted(inverse::lost(claim, inverse, symbols, &index)));
    }
    if let Some(place) = Linear::unreached_by(claim.map, inverse, &instance.shape).ok()? {
        return Some(refuted(inverse::unreached(claim, inverse, symbols, &place)));
    }
    by_z3(case, claim, inverse::by_z3)
}

/// Padding, for a claim without padding whose map and inverse have affine forms.
pub(super) fn padding(case: &Case<'_>) -> Option<Decision> {
    let (instance, _) = linear(case)?;
    let inverse = case.claim.inverse.filter(|inverse| inverse.padding.as_const_int() == Some(0))?;
    if Linear::unreached_by(case.claim.map, inverse, &instance.shape).ok()?.is_some() {
        return None;
    }
    by_z3(case, case.claim, padding::by_z3).filter(|(verdict, _)| verdict.is_proved())
}

/// Specification: each bit has the same affine form in both maps.
pub(super) fn specification(case: &Case<'_>) -> Option<Decision> {
    let (instance, linear) = linear(case)?;
    match linear.differs_from(case.claim.meaning?).ok()? {
        Some(index) => Some(refuted(specification::different(case.claim, &instance.symbols, &index))),
        None => by_z3(case, case.claim, specification::by_z3),
    }
}
