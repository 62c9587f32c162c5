//! Obligation tight: the stated physical shape is the smallest one, or the padding is stated.

use tilewright_ir::Bindings;

use super::{MapClaim, THOROUGH, at};
use crate::judge::{Decision, Judge, method_of};
use crate::term::Term;
use crate::translate::Names;
use crate::verdict::Verdict;

/// The stated physical shape is the smallest one, or the padding is stated.
pub(super) fn tight(judge: &Judge, claim: MapClaim<'_>) -> Decision {
    if let Some(decision) = crate::digits::decide(judge, &claim, "tight") {
        return decision;
    }
    let mut methods = Vec::new();
    for axis in 0..claim.shape.len() {
        if claim.padded.contains(&axis) {
            methods.push("padding stated".to_owned());
            continue;
        }
        match tight_axis(judge, claim, axis) {
            (Verdict::Proved, method) => methods.push(method),
            other => return other,
        }
    }
    methods.sort_unstable();
    methods.dedup();
    let method = if methods.is_empty() { "no axes".to_owned() } else { methods.join(", ") };
    (Verdict::Proved, method)
}

fn tight_axis(judge: &Judge, claim: MapClaim<'_>, axis: usize) -> Decision {
    let mut names = Names::default();
    let mut prover = claim.prover(judge, &mut names);
    let domain: Vec<Term> = claim.map.domain().iter().map(|extent| names.term(extent)).collect();
    let extent = names.term(&claim.shape[axis]);
    let from = prover.context().steps().len();
    let used = claim.map.outputs()[axis].vars();
    let moving: Vec<usize> = (0..domain.len()).filter(|&position| used.contains(&claim.map.vars()[position])).collect();
    for mask in 0..1usize << moving.len().min(10) {
        // All axes that matter at their end first: that is the largest index of nearly every map.
        let at_end = |position: usize| {
            moving.iter().position(|&other| other == position).is_some_and(|bit| mask >> bit.min(9) & 1 == 0)
        };
        for (position, var) in claim.map.vars().iter().enumerate() {
            names.bind(var, if at_end(position) { &domain[position] - 1 } else { Term::int(0) });
        }
        let reached = names.term(&claim.map.outputs()[axis]);
        if prover.prove(&reached.equals(&extent - 1)).is_ok() {
            prover.keep_proof("map tight");
            return (Verdict::Proved, format!("witness, {}", method_of(&prover, from)));
        }
    }
    by_witness(claim, axis)
}

/// The axis of a constant map whose largest index is at no corner: found by enumeration, or not at all.
fn by_witness(claim: MapClaim<'_>, axis: usize) -> Decision {
    let mut largest: Option<(Bindings, i128, i128)> = None;
    let reached = claim.search(THOROUGH.min(1 << 18), |symbols, shape, _, image| {
        let (index, extent) = (*image?.get(axis)?, *shape.get(axis)?);
        if largest.as_ref().is_none_or(|(instance, best, _)| instance == symbols && index > *best) {
            largest = Some((symbols.clone(), index, extent));
        }
        (index + 1 == extent && symbols.is_empty()).then_some(index)
    });
    if let Some(index) = reached {
        return (Verdict::Proved, format!("witness {index} by evaluation"));
    }
    let total = claim.map.domain().iter().try_fold(1i128, |count, extent| count.checked_mul(extent.as_const_int()?));
    match (largest, total) {
        // Of a symbolic map only some instances were looked at.
        (Some((symbols, index, extent)), Some(total)) if symbols.is_empty() && total <= 1 << 18 => {
            let text = format!("axis {axis} has extent {extent}, but the largest index is {index}");
            let found = at(claim, &symbols, &[], text);
            (Verdict::Refuted(found), "enumeration".into())
        }
        _ => (Verdict::Unknown(format!("no index was found that reaches the end of axis {axis}")), "z3".into()),
    }
}
