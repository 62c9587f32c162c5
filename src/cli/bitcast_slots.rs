//! Counterexamples of bitcasts in terms of slots: which element of A each array holds in the first slot that differs.
//!
//! ```text
//! f32[3,4] to f32[4,3], transposed: slot 1 holds (0, 1) in A and (0, 1), which is (1, 0) of A, in B
//! ```
//!
//! Without a transpose the judge's words say it already: an index of B is the same index in A, or has the same number.

use tilewright_ir::layout::{ArrayShape, Dimension, Layout, Tiling};
use tilewright_ir::{Bindings, Expr};
use tilewright_verify::{Counterexample, Report, Verdict};

use super::bitcast::Request;

/// Slots searched for the first one that differs.
const SEARCHED: u64 = 1 << 18;

/// The report with a counterexample that names elements by their indices in A.
pub(super) fn with_elements_of_a(mut report: Report, request: &Request) -> Report {
    drop_empty_indices(&mut report, request);
    if let Verdict::Refuted(found) = &mut report.verdict
        && let Some(text) = described(found, request)
    {
        found.text = text;
    }
    report
}

/// Drops the index of a counterexample that is about the sizes of the arrays: it is empty, but they have dimensions.
pub(super) fn drop_empty_indices(report: &mut Report, request: &Request) {
    let is_scalar = request.pair.reindex.vars().is_empty();
    if let Verdict::Refuted(found) = &mut report.verdict {
        found.indices.retain(|index| is_scalar || !index.is_empty());
    }
}

/// What the first slot that differs holds; `None` if that is said already, or if no such slot is found.
fn described(found: &Counterexample, request: &Request) -> Option<String> {
    let transpose = request.transpose.as_deref()?;
    let a = tiling(&request.from.array, request.pair.reindex.domain(), found)?;
    let b = tiling(&request.to.array, &request.pair.to_extents, found)?;
    // The judge compares the sizes first, and says so.
    if a.physical_elements() != b.physical_elements() {
        return None;
    }
    let in_b = |slot: u64| b.element_at(slot).map(|index| (index_in_a(&index, transpose), index));
    let slots = 0..a.physical_elements().min(SEARCHED);
    let slot = slots.into_iter().find(|&slot| a.element_at(slot) != in_b(slot).map(|(index, _)| index))?;
    let (of_a, of_b) = (a.element_at(slot)?, in_b(slot)?);
    let (of_a, same, of_b) = (tuple(&of_a), tuple(&of_b.0), tuple(&of_b.1));
    Some(format!("slot {slot} holds {of_a} in A and {of_b}, which is {same} of A, in B"))
}

/// The index in A of the element that has this index in B.
fn index_in_a(index: &[u64], transpose: &[usize]) -> Vec<u64> {
    let mut found = vec![0; index.len()];
    for (&axis, &at) in transpose.iter().zip(index) {
        if let Some(place) = found.get_mut(axis) {
            *place = at;
        }
    }
    found
}

/// The positions in an array whose symbolic extents have the values of the counterexample.
fn tiling(array: &ArrayShape, extents: &[Expr], found: &Counterexample) -> Option<Tiling> {
    let value = |expr: &Expr| {
        let of = |name: &str| found.shape.iter().find(|(known, _)| known == name).map_or(1, |(_, value)| *value);
        let symbols: Bindings = expr.vars().into_iter().map(|var| (var.clone(), of(var.name()))).collect();
        u64::try_from(expr.eval_index(&symbols).ok()?).ok().map(Dimension::Static)
    };
    let dimensions = extents.iter().map(value).collect::<Option<Vec<_>>>()?;
    let layout = Layout { split_configs: Vec::new(), ..array.layout_or_default() };
    ArrayShape::new(array.element_type(), dimensions, Some(layout)).ok()?.tiling().ok()
}

fn tuple(index: &[u64]) -> String {
    format!("({})", index.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))
}
