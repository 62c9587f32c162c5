//! False evidence.

use tilewright_ir::{BufferChange, Evidence, Expr, IndexMap, PadFill};

use super::{Choices, mutated_expr, one_more};

/// The evidence with one change: half of the time in the padding, if there is one; otherwise a
/// claim about a buffer is left out (1/6), gets all axes padded (1/6), another kind of change (1/6)
/// or another map (1/2).
pub fn false_evidence(evidence: &Evidence, seed: u64) -> Evidence {
    let mut choices = Choices::new(seed);
    let mut evidence = evidence.clone();
    // Few passes pad with a value, so half of the changes go there if one does.
    if !evidence.fills.is_empty() && choices.chance(2) {
        let at = choices.below(evidence.fills.len());
        lie_of_padding(&mut evidence.fills[at], &mut choices);
        return evidence;
    }
    if evidence.buffers.is_empty() {
        return evidence;
    }
    // A change may leave the claim as it is or true. Callers compare runs and discard such evidence.
    let at = choices.below(evidence.buffers.len());
    match choices.below(6) {
        0 => drop(evidence.buffers.remove(at)),
        1 => evidence.buffers[at].padded_axes = (0..evidence.buffers[at].after.rank()).collect(),
        2 => {
            let kinds = [BufferChange::Rename, BufferChange::Flatten, BufferChange::Layout];
            evidence.buffers[at].change = kinds[choices.below(kinds.len())];
        }
        _ => {
            let claim = &mut evidence.buffers[at];
            if let Some(map) = other_map(&claim.map, &mut choices) {
                claim.map = map;
            }
        }
    }
    evidence
}

/// The map with one output changed, or exchanged with its neighbour in a third of the cases.
fn other_map(map: &IndexMap, choices: &mut Choices) -> Option<IndexMap> {
    let mut outputs = map.outputs().to_vec();
    let at = choices.below(outputs.len());
    if at + 1 < outputs.len() && choices.chance(3) {
        outputs.swap(at, at + 1);
    } else {
        let output = outputs.get_mut(at)?;
        *output = mutated_expr(output, choices);
    }
    let separators = map.axis_separators().positions().to_vec();
    IndexMap::new(map.vars().to_vec(), map.domain().to_vec(), outputs, separators).ok()
}

/// Changes one property of a padding: who fills it, its predicate, or its inverse.
fn lie_of_padding(fill: &mut PadFill, choices: &mut Choices) {
    match choices.below(4) {
        0 => fill.by_host = !fill.by_host,
        1 => fill.inverse.padding = Expr::bool(false),
        2 => fill.inverse.padding = mutated_expr(&fill.inverse.padding, choices),
        _ => {
            let at = choices.below(fill.inverse.outputs.len());
            if let Some(output) = fill.inverse.outputs.get_mut(at) {
                *output = one_more(output, 1);
            }
        }
    }
}
