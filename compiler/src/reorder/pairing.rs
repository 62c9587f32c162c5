//! Which store became which, and by which maps of their loops.

use tilewright_ir::visit::Substitution;
use tilewright_ir::{BinaryOp, Evidence, Expr, Reordering, StoreOrigin, Var};
use tilewright_verify::path::Step;
use tilewright_verify::reorder::{Statement, domain};

use super::equations::{self, Equations};
use super::forward::{Candidate, candidate};
use super::solve::{System, loops, ranges};
use super::types::{typed, typed_condition, untyped};

/// The origins of all stores after; `None` if a store has none.
pub(crate) fn pair(before: &[Statement], after: &[Statement], evidence: &Evidence) -> Option<Reordering> {
    let none = Substitution::default();
    let first: Vec<Vec<Candidate>> = after.iter().map(|store| candidates(before, store, evidence, &none)).collect();
    let again = |(place, list): (usize, &Vec<Candidate>)| match list.as_slice() {
        [only] if only.is_chosen => {
            let hints = neighbour(before, after, &first, place, only.position);
            Some(candidates(before, &after[place], evidence, &hints?))
        }
        _ => None,
    };
    let better: Vec<Option<Vec<Candidate>>> = first.iter().enumerate().map(again).collect();
    let found: Vec<Vec<Candidate>> = first.into_iter().zip(better).map(|(old, new)| new.unwrap_or(old)).collect();
    let class = |list: &[Candidate]| list.iter().map(|candidate| candidate.position).collect::<Vec<_>>();
    let mut stores = Vec::new();
    for (place, list) in found.iter().enumerate() {
        let chosen = if is_clear(list) {
            list.iter().filter(|candidate| candidate.inside.contains(&true)).collect()
        } else {
            // Stores that are alike: the first one is the first one, and so on.
            let alike: Vec<usize> = (0..found.len()).filter(|other| class(&found[*other]) == class(list)).collect();
            let rank = alike.iter().position(|other| *other == place)?;
            vec![list.get(rank * list.len() / alike.len())?]
        };
        let last = chosen.len().checked_sub(1)?;
        let origins = chosen.into_iter().enumerate().map(|(piece, candidate)| {
            let old = &before[candidate.position];
            let when = (piece < last).then(|| condition(old, candidate)).flatten();
            origin(old, &after[place], candidate, when)
        });
        stores.push(origins.collect());
    }
    Some(Reordering { stores })
}

/// Whether each instance that was tried is one of exactly one store before.
fn is_clear(list: &[Candidate]) -> bool {
    let tried = list.first().map_or(0, |candidate| candidate.inside.len());
    tried > 0 && (0..tried).all(|at| list.iter().filter(|candidate| candidate.inside[at]).count() == 1)
}

/// The loops before as a neighbour has them: the nearest store in the same loops after whose accesses determine its loops, and
/// which stands on the same side before. Copies of an unrolled store that mentions no loop differ in their neighbours alone.
fn neighbour(
    before: &[Statement],
    after: &[Statement],
    first: &[Vec<Candidate>],
    place: usize,
    position: usize,
) -> Option<Substitution> {
    let is_neighbour = |other: &usize| match first[*other].as_slice() {
        [only] => {
            !only.is_chosen
                && after[*other].loops() == after[place].loops()
                && (only.position < position) == (*other < place)
        }
        _ => false,
    };
    let nearest = (0..after.len()).filter(is_neighbour).min_by_key(|other| other.abs_diff(place))?;
    let [only] = first[nearest].as_slice() else { return None };
    Some(Substitution::new(&before[only.position].loops(), only.forward.iter().cloned()))
}

/// The stores before that are most alike.
fn candidates(before: &[Statement], after: &Statement, evidence: &Evidence, hints: &Substitution) -> Vec<Candidate> {
    let alike: Vec<(usize, Equations)> = before
        .iter()
        .enumerate()
        .filter_map(|(position, old)| Some((position, equations::of(old, after, evidence)?)))
        .collect();
    let best = alike.iter().map(|(_, found)| found.score).max().unwrap_or(0);
    let best = alike.into_iter().filter(|(_, found)| found.score == best);
    best.map(|(position, found)| candidate(position, &before[position], after, &found, hints)).collect()
}

/// The claim about one store before.
fn origin(before: &Statement, after: &Statement, candidate: &Candidate, when: Option<Expr>) -> StoreOrigin {
    let back = in_types_of(&after.loops(), &back(before, after, candidate));
    let forward = in_types_of(&before.loops(), &candidate.forward);
    StoreOrigin { when: when.map(|when| typed_condition(&when)), before: candidate.position, forward, back }
}

/// Values of loops in the types of these.
fn in_types_of(loops: &[Var], values: &[Expr]) -> Vec<Expr> {
    loops.iter().zip(values).map(|(var, value)| typed(value, var.dtype().scalar)).collect()
}

/// The loops after in terms of those before.
fn back(before: &Statement, after: &Statement, candidate: &Candidate) -> Vec<Expr> {
    let known = ranges(&[&before.path, &after.path]);
    let unknown = loops(&after.path);
    let mut equations: Vec<(Expr, Expr)> =
        candidate.forward.iter().cloned().zip(before.loops().iter().map(Expr::from)).collect();
    equations.extend(candidate.rest.iter().map(|(old, new)| (new.clone(), old.clone())));
    for step in &after.path.steps {
        if let Step::Guard(Expr::Binary(BinaryOp::Eq, a, b), true) = step {
            equations.push((untyped(a) - untyped(b), Expr::int(0)));
        }
    }
    let mut system = System { unknown: unknown.clone(), equations, ranges: &known, solved: Substitution::default() };
    system.solve();
    // A loop over tiles that the values do not mention, but from which another loop starts.
    for open in system.open().iter().rev() {
        for inner in &unknown {
            let Some(value) = system.solved.get(&inner.var).cloned() else { continue };
            let starts = starts(&inner.min);
            let tile = starts.iter().find_map(|start| {
                let (base, stride) = tilewright_algebra::linear_in(start, &open.var, &known)?;
                let is_start = stride.as_const_int() != Some(0);
                is_start.then(|| (value.clone() - system.solved.apply(&base)).floor_div(stride))
            });
            if let Some(tile) = tile {
                system.found(&open.var, &tile);
                break;
            }
        }
        system.solve();
    }
    // A value may mention loops that were solved after it.
    let values: Vec<Expr> = unknown.iter().map(|l| system.value(l)).collect();
    let again = Substitution::new(unknown.iter().map(|l| &l.var), values.iter().cloned());
    values.iter().map(|value| tilewright_algebra::simplify(&again.apply(value), &known)).collect()
}

/// The expressions that a loop may start from: the operands, if its first value is a `max` or a `min`.
fn starts(min: &Expr) -> Vec<Expr> {
    match min {
        Expr::Binary(BinaryOp::Max | BinaryOp::Min, a, b) => [starts(a), starts(b)].concat(),
        _ => vec![min.clone()],
    }
}

/// The condition that an instance is one of the store before.
fn condition(store: &Statement, candidate: &Candidate) -> Option<Expr> {
    let at = Substitution::new(&store.loops(), candidate.forward.iter().cloned());
    let rest = candidate.rest.iter().map(|(old, new)| Expr::binary(BinaryOp::Eq, old.clone(), new.clone()));
    domain(store, &at).into_iter().chain(rest).reduce(Expr::and)
}
