//! Random changes of claims: another iteration, another store, other conditions, cases left out or exchanged.
//!
//! A claim is believed in nothing, so a bent one proves either nothing or something that is true.

use tilewright_compiler::harness::inputs::Numbers;
use tilewright_ir::{Comparison, Evidence, Expr, Flow, Instance, Reordering, Scalarization, UnaryOp};

/// The evidence with its claim bent in one to three places. A comparison without a claim stays as it is.
pub fn bent(evidence: &Evidence, seed: u64) -> Evidence {
    let mut evidence = evidence.clone();
    let mut numbers = Numbers::new(seed, 1);
    for _ in 0..=below(&mut numbers, 3) {
        bend(&mut evidence.comparison, &mut numbers);
    }
    evidence
}

/// A claim about where values come from, bent in one to three places.
pub fn bent_flow(flow: &Flow, numbers: &mut Numbers) -> Flow {
    let mut flow = flow.clone();
    for _ in 0..=below(numbers, 3) {
        values(&mut flow, numbers);
    }
    flow
}

fn bend(comparison: &mut Comparison, numbers: &mut Numbers) {
    match comparison {
        Comparison::Values(flow) => values(flow, numbers),
        Comparison::Iterations(reordering) => iterations(reordering, numbers),
        Comparison::Scalarized(claim) => lanes(claim, numbers),
        Comparison::Statements
        | Comparison::Definitions(_)
        | Comparison::Phases(_)
        | Comparison::Barriers
        | Comparison::Packed
        | Comparison::Results => {}
    }
}

/// A number below `n`, or 0.
fn below(numbers: &mut Numbers, n: usize) -> usize {
    usize::try_from(numbers.next() % u64::try_from(n.max(1)).unwrap_or(1)).unwrap_or(0)
}

/// One of the items, if there is any.
fn choose<'a, T>(items: Vec<&'a mut T>, numbers: &mut Numbers) -> Option<&'a mut T> {
    let at = below(numbers, items.len());
    items.into_iter().nth(at)
}

/// A value that is one more or less; as it is if it is no `int32`.
fn shift(value: &mut Expr, numbers: &mut Numbers) {
    let by = Expr::int([-1, 1][below(numbers, 2)]);
    if value.dtype() == by.dtype() {
        *value = value.clone() + by;
    }
}

/// Changes a claim about where values come from.
fn values(flow: &mut Flow, numbers: &mut Numbers) {
    let n_stores = flow.before.len().max(flow.after.len());
    let kind = below(numbers, 9);
    match kind {
        0..=3 => {
            let Some(one) = choose(instances(flow), numbers) else { return };
            match kind {
                0 => {
                    if let Some(value) = choose(one.at.iter_mut().collect(), numbers) {
                        shift(value, numbers);
                    }
                }
                1 => one.store = Some(below(numbers, n_stores)),
                2 => one.store = None,
                _ => one.when = one.when.take().map(|when| Expr::unary(UnaryOp::Not, when)),
            }
        }
        4..=6 => {
            if let Some(list) = choose(lists(flow), numbers) {
                cases(list, kind, numbers);
            }
        }
        7 => {
            let opened = below(numbers, n_stores);
            if let Some(origin) = choose(flow.stores.iter_mut().collect(), numbers) {
                if below(numbers, 2) == 0 { &mut origin.opened_before } else { &mut origin.opened_after }.push(opened);
            }
        }
        _ => {
            // Every value of one program is what the call found.
            let side = if below(numbers, 2) == 0 { &mut flow.before } else { &mut flow.after };
            side.iter_mut().flatten().flatten().for_each(|one| one.store = None);
        }
    }
}

/// Leaves out a case, puts another one first, or ends the list early; the last case keeps no condition.
fn cases(list: &mut Vec<Instance>, kind: usize, numbers: &mut Numbers) {
    if list.is_empty() {
        return;
    }
    let at = below(numbers, list.len());
    match kind {
        4 => drop(list.remove(at)),
        5 => {
            let when = list[at].when.take();
            list.swap(0, at);
            list[0].when = when;
        }
        _ => {
            list.truncate(at + 1);
            list[at].when = None;
        }
    }
}

/// All instances of a claim.
fn instances(flow: &mut Flow) -> Vec<&mut Instance> {
    lists(flow).into_iter().flatten().collect()
}

/// The lists of cases of a claim.
fn lists(flow: &mut Flow) -> Vec<&mut Vec<Instance>> {
    let Flow { before, after, stores, .. } = flow;
    before.iter_mut().chain(after).flatten().chain(stores.iter_mut().map(|origin| &mut origin.instances)).collect()
}

/// Changes a claim about iterations.
fn iterations(reordering: &mut Reordering, numbers: &mut Numbers) {
    let n_stores = reordering.stores.len();
    let kind = below(numbers, 5);
    let other = below(numbers, n_stores);
    let Some(origins) = choose(reordering.stores.iter_mut().collect(), numbers) else { return };
    let at = below(numbers, origins.len());
    let Some(origin) = origins.get_mut(at) else { return };
    match kind {
        0 => {
            if let Some(value) = choose(origin.forward.iter_mut().collect(), numbers) {
                shift(value, numbers);
            }
        }
        1 => {
            if let Some(value) = choose(origin.back.iter_mut().collect(), numbers) {
                shift(value, numbers);
            }
        }
        2 => origin.before = other,
        3 => origin.when = origin.when.take().map(|when| Expr::unary(UnaryOp::Not, when)),
        _ => {
            if origins.len() > 1 {
                origins.remove(at);
            }
        }
    }
}

/// Changes a claim about vectors: which stores read all lanes first, or the claim about the programs without vectors.
fn lanes(claim: &mut Scalarization, numbers: &mut Numbers) {
    match below(numbers, 4) {
        0 => claim.buffered[1].clear(),
        1 => claim.buffered[0].clear(),
        2 => claim.buffered.reverse(),
        _ => bend(&mut claim.evidence.comparison, numbers),
    }
}
