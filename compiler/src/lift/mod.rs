//! Finds what two programs compute, as definitions, and why these are equal.
//!
//! ```text
//! before: for i, k: C[i] += A[i, k]              C[i] = C.old[i] + sum over k of A[i, k]
//! after:  for i, ko, ki: t[i, ki] += A[i, ..]    t[i, ki] = sum over ko of A[i, 4 * ko + ki] if 4 * ko + ki < n
//!         for i, ki: C[i] += t[i, ki]            C[i] = C.old[i] + sum over ki of t[i, ki]
//!
//! A[i, k] before is A[i, 4 * ko + ki] after:     k = 4 * ko + ki, ko = k // 4, ki = k % 4
//! ```
//!
//! A program is lifted along the sources of its values (`definition`): a store that reads what it wrote in an earlier iteration is a
//! reduction, and every other one is replaced by its value. The summands of both definitions are then paired like the stores of two
//! programs (`matching`). Nothing here is believed: the judge checks the claim, and a wrong one is *unknown*.

mod chain;
mod definition;
mod matching;

use tilewright_ir::{Buffer, Evidence, Lifted, Lifting, PrimFunc};
use tilewright_verify::Side;
use tilewright_verify::definitions::program_of;
use tilewright_verify::flow::programs;

use crate::flow;

pub use matching::find as matching_of;

/// What the program of a side computes, as a definition; the parameters in `outputs` are computed, even if the program leaves them as
/// they are.
///
/// # Errors
/// Why the program is not lifted: it is not of the kind that the judge takes, or values depend on each other otherwise than by a
/// reduction.
pub fn lift(func: &PrimFunc, outputs: &[Buffer], side: Side) -> Result<Lifted, String> {
    let [observed, _] = programs(func, func, &Evidence::default())?;
    let definition::Found { definition, kept, links } = definition::lift(func, &observed, outputs)?;
    let nests = program_of(func, &observed.program.asserted, &definition, &kept)?;
    let (first, second) = if side == Side::Before { (func, &nests) } else { (&nests, func) };
    let links: [&[usize]; 2] = if side == Side::Before { [&links, &[]] } else { [&[], &links] };
    let flow = flow::find_through(links, first, second, &Evidence::default())?;
    Ok(Lifted { definition, kept, flow })
}

/// What both programs compute, and why it is equal; the parameters correspond as `evidence` says. Floats may be combined in another
/// order if `reassociate` says so.
///
/// # Errors
/// Why one is not lifted, or which tensor has no counterpart.
pub fn find(before: &PrimFunc, after: &PrimFunc, evidence: &Evidence, reassociate: bool) -> Result<Lifting, String> {
    let pairs = outputs(before, after, evidence)?;
    let (old, new): (Vec<Buffer>, Vec<Buffer>) = pairs.iter().cloned().unzip();
    let lifted = |side: Side, func, outputs: &[Buffer]| {
        let which = if side == Side::Before { "before" } else { "after" };
        lift(func, outputs, side).map_err(|why| format!("the program {which} is not lifted: {why}"))
    };
    let (first, second) = (lifted(Side::Before, before, &old)?, lifted(Side::After, after, &new)?);
    let definitions = [&first.definition, &second.definition];
    let all = tilewright_verify::definitions::with_kept(evidence, [&first.kept, &second.kept]);
    let mut matching = matching::find(before, definitions, &all, &pairs)?;
    matching.reassociate = reassociate;
    Ok(Lifting { before: first, after: second, matching })
}

/// The parameters that one of the programs writes, before and after.
fn outputs(before: &PrimFunc, after: &PrimFunc, evidence: &Evidence) -> Result<Vec<(Buffer, Buffer)>, String> {
    let written = |func: &PrimFunc| programs(func, func, &Evidence::default()).map(|[observed, _]| observed.written);
    let (first, second) = (written(before)?, written(after)?);
    let params = |func: &PrimFunc| -> Vec<Buffer> {
        func.params.iter().filter_map(|param| func.param_buffer(param)).cloned().collect()
    };
    let pairs = params(before).into_iter().zip(params(after));
    let is_claimed = |old: &Buffer, new: &Buffer| {
        old == new || evidence.buffers.iter().any(|claim| claim.before == *old && claim.after == *new)
    };
    let written = pairs.filter(|(old, new)| first.contains(old) || second.contains(new)).collect::<Vec<_>>();
    match written.iter().find(|(old, new)| !is_claimed(old, new)) {
        Some((old, new)) => Err(format!("nothing is known of how `{old}` became `{new}`")),
        None => Ok(written),
    }
}
