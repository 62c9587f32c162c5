//! Lifetimes of tensors, by a backward walk over the steps.
//!
//! A lifetime ends at the last step that accesses the tensor and begins at the first one that writes it. Moments are
//! numbered with one extra at both ends:
//!
//! ```text
//! moment   0        1        2        ..    n        n + 1
//!          start    step 0   step 1         step n-1 end
//! ```

use super::graph::Planned;
use crate::verdict::Counterexample;
use tilewright_ir::sabotage;

/// The first and the last moment at which a tensor is alive, both inclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Life {
    /// The moment from which the memory is needed.
    pub(super) first: usize,
    /// The moment up to which it is needed.
    pub(super) last: usize,
}

/// The moment before the first step.
const START: usize = 0;

/// The moment of a step.
pub(super) fn moment(step: usize) -> usize {
    step + 1
}

/// The moment after the last step.
pub(super) fn end(planned: &Planned<'_>) -> usize {
    planned.graph.steps.len() + 1
}

/// The lifetime of each root. `None` for a view, which has the lifetime of its root, and for a tensor that is never
/// accessed.
///
/// # Errors
/// A tensor is read, or taken by the caller as an output, before it is written.
pub(super) fn lives(planned: &Planned<'_>) -> Result<Vec<Option<Life>>, Counterexample> {
    let mut lives: Vec<Option<Life>> = vec![None; planned.roots.len()];
    let mut writes_left = vec![0_usize; planned.roots.len()];
    for &tensor in planned.graph.steps.iter().flat_map(|step| &step.writes) {
        writes_left[planned.roots[tensor]] += 1;
    }
    for (tensor, &root) in planned.roots.iter().enumerate() {
        let written = planned.given[root] || writes_left[root] > 0;
        if tensor == root && planned.taken[root] && !written {
            let text = format!("the caller takes `{}`, which no step writes", planned.name(tensor));
            return Err(Counterexample { text, ..Counterexample::default() });
        }
        if tensor == root && (planned.given[root] || planned.taken[root]) {
            lives[root] = Some(Life { first: end(planned), last: end(planned) });
        }
    }
    for (number, step) in planned.graph.steps.iter().enumerate().rev() {
        let now = moment(number);
        let reads = if sabotage::on("plan-forgets-reads") { &[] } else { step.reads.as_slice() };
        for &tensor in reads.iter().chain(&step.writes) {
            let life = lives[planned.roots[tensor]].get_or_insert(Life { first: now, last: now });
            life.first = now;
        }
        for &tensor in &step.writes {
            writes_left[planned.roots[tensor]] -= 1;
        }
        // The writes that are left belong to earlier steps.
        let unwritten =
            |tensor: &&usize| writes_left[planned.roots[**tensor]] == 0 && !planned.given[planned.roots[**tensor]];
        if let Some(&tensor) = step.reads.iter().find(unwritten) {
            let text = format!(
                "{} reads `{}`, which no step before it wrote",
                planned.step_name(number),
                planned.name(tensor)
            );
            let assignments = vec![("step".to_owned(), i128::try_from(number).unwrap_or(i128::MAX))];
            return Err(Counterexample { assignments, text, ..Counterexample::default() });
        }
    }
    for (root, life) in lives.iter_mut().enumerate() {
        if let Some(life) = life.as_mut().filter(|_| planned.given[root]) {
            life.first = START;
        }
    }
    Ok(lives)
}

/// Whether a root is alive in a step, by the definition; used to check counterexamples.
pub(super) fn is_alive(planned: &Planned<'_>, root: usize, step: usize) -> bool {
    let touches = |number: usize| {
        let step = &planned.graph.steps[number];
        step.reads.iter().chain(&step.writes).any(|&tensor| planned.roots[tensor] == root)
    };
    let begun = planned.given[root] || (0..=step).any(touches);
    let needed = planned.given[root] || planned.taken[root] || (step..planned.graph.steps.len()).any(touches);
    begun && needed
}
