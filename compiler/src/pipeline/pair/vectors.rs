//! Pairs of functions with vectors: how they correspond where each statement on vectors is a loop over its lanes.
//!
//! ```text
//! A: (n, 4) float32x4       is memory of (n, 4, 4) elements; if it was (n, 16) float32 before, A[i, j] is A[i, j // 4, j % 4]
//! ```

use tilewright_ir::{Buffer, BufferClaim, Comparison, Evidence, Expr, PrimFunc, Scalarization};
use tilewright_verify::Judge;
use tilewright_verify::scalarize::{has_other_form, scalar_parameters, scalarize};

use super::symbols::rename_symbols;
use super::ways::Pair;
use super::{GivenMap, Related, relate};
use crate::pipeline::findings::Way;

/// Both functions with parameters of elements, if a parameter has other lanes in one of them, and with the maps that follow from that.
pub(super) fn as_elements(
    before: &PrimFunc,
    after: &PrimFunc,
    maps: &[GivenMap],
) -> (PrimFunc, PrimFunc, Vec<GivenMap>) {
    let renamed = rename_symbols(before, after);
    let pairs: Vec<(&Buffer, &Buffer)> = before
        .params
        .iter()
        .zip(&renamed.params)
        .filter_map(|(old, new)| before.param_buffer(old).zip(renamed.param_buffer(new)))
        .collect();
    let has_other_lanes =
        |(old, new): &(&Buffer, &Buffer)| old.dtype.scalar == new.dtype.scalar && old.dtype.lanes != new.dtype.lanes;
    if !pairs.iter().any(has_other_lanes) {
        return (before.clone(), after.clone(), maps.to_vec());
    }
    let is_given = |old: &Buffer| maps.iter().any(|map| map.buffer == old.name);
    let moved = pairs.iter().filter(|pair| has_other_lanes(pair) && !is_given(pair.0));
    let moved = moved.filter_map(|(old, new)| Some(GivenMap { buffer: old.name.clone(), text: regrouped(old, new)? }));
    let maps = maps.iter().cloned().chain(moved).collect();
    (scalar_parameters(before), scalar_parameters(after), maps)
}

/// The map between the elements of two buffers of one rank that show the same memory, of which one holds vectors: the lanes are the last digit of
/// the last axis of the other one. `None` if the memory is not the same, element by element.
fn regrouped(before: &Buffer, after: &Buffer) -> Option<String> {
    let lanes = before.dtype.lanes.max(after.dtype.lanes);
    let (wide, narrow) = if before.dtype.is_scalar() { (before, after) } else { (after, before) };
    let last = narrow.rank().checked_sub(1).filter(|_| wide.dtype.is_scalar() && wide.rank() == narrow.rank())?;
    let (whole, part) = (&wide.shape[last], &narrow.shape[last]);
    let is_whole = match (whole.as_const_int(), part.as_const_int()) {
        (Some(whole), Some(part)) => whole == part * i128::from(lanes),
        _ => *whole == part.clone() * Expr::int(lanes.into()),
    };
    if !is_whole || wide.shape[..last] != narrow.shape[..last] {
        return None;
    }
    let list = |names: &[String]| names.join(", ");
    let axes: Vec<String> = (0..=last + 1).map(|axis| format!("x{axis}")).collect();
    let (outer, digit, lane) = (&axes[..last], &axes[last], &axes[last + 1]);
    let (from, to) = if before.dtype.is_scalar() {
        let to = [outer, &[format!("{digit} // {lanes}"), format!("{digit} % {lanes}")]].concat();
        (axes[..=last].to_vec(), to)
    } else {
        (axes.clone(), [outer, &[format!("{digit} * {lanes} + {lane}")]].concat())
    };
    Some(format!("lambda {}: [{}]", list(&from), list(&to)))
}

/// Two functions without vectors.
pub(super) struct Scalar {
    before: PrimFunc,
    after: PrimFunc,
    buffered: [Vec<usize>; 2],
    /// The claims about their buffers.
    evidence: Evidence,
    /// Whether all buffers have counterparts.
    is_whole: bool,
}

/// Two functions, the second one in terms of the symbolic extents of the first, without vectors. `None` if neither has vectors nor truth values
/// that are kept as integers, or if they cannot be written without.
pub(super) fn without(before: &PrimFunc, after: &PrimFunc, maps: &[GivenMap], judge: &Judge) -> Option<Scalar> {
    if !has_other_form(before) && !has_other_form(after) {
        return None;
    }
    let one = |func: &PrimFunc| {
        let buffered = judge.lanes_together(&scalarize(func, &[]).ok()?);
        Some((scalarize(func, &buffered).ok()?.func, buffered))
    };
    let ((before, first), (after, second)) = (one(before)?, one(after)?);
    let Related { after, evidence, is_whole, .. } = relate(&before, &after, maps).ok()?;
    Some(Scalar { before, after, buffered: [first, second], evidence, is_whole })
}

impl Scalar {
    /// The claim of a way about the functions without vectors.
    pub(super) fn claim(&self, way: Way, reassociate: bool) -> Result<Evidence, String> {
        let Self { before, after, buffered, evidence, is_whole } = self;
        let pair = Pair { before, after, evidence, is_whole: *is_whole, reassociate, scalar: None, grouped: &Ok(None) };
        let evidence = pair.claim(way, false)?;
        let pass = evidence.pass.clone();
        let (before, after, buffered) = (before.clone(), after.clone(), buffered.clone());
        let claim = Scalarization { before, after, buffered, evidence };
        Ok(Evidence { pass, comparison: Comparison::Scalarized(Box::new(claim)), ..Evidence::default() })
    }
}

/// Returns both functions as they are compared, and the claim that their values come from the same places once each statement on
/// vectors is a loop over its lanes. `None` if neither has vectors, or if they cannot be compared like that.
pub fn vector_claim(before: &PrimFunc, after: &PrimFunc, judge: &Judge) -> Option<(PrimFunc, PrimFunc, Evidence)> {
    let (before, after, maps) = as_elements(before, after, &[]);
    let Related { after, .. } = relate(&before, &after, &maps).ok()?;
    let claim = without(&before, &after, &maps, judge)?.claim(Way::Values, false).ok()?;
    Some((before, after, claim))
}

/// The claims about buffers of some evidence.
pub(super) fn claims(evidence: Evidence) -> Vec<BufferClaim> {
    match evidence.comparison {
        Comparison::Scalarized(claim) => claims(claim.evidence),
        Comparison::Phases(claim) => claims(claim.evidence),
        _ => evidence.buffers,
    }
}
