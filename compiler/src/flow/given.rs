//! Where the program before reads what the call gave, for instances after that do.
//!
//! ```text
//! before: for i: B[i] = B[i] + A[i]        after: for i: t[i] = B[i]        at i, B is read at i before, too
//! ```

use tilewright_ir::visit::Substitution;
use tilewright_ir::{Bindings, Expr, Instance, Origin, Sources};
use tilewright_verify::flow::Observed;
use tilewright_verify::reorder::{Statement, domain};

use super::samples::samples;
use crate::reorder::solve::{Loop, loops};

/// Adds an instance before to the claim about each store after that reads what the call gave.
pub(super) fn find(before: &Observed, after: &Observed, sources: [&[Sources]; 2], origins: &mut [Origin]) {
    let stores = after.program.statements.iter().zip(sources[1]).take(after.n_stores);
    for ((reader, theirs), origin) in stores.zip(origins) {
        if !finds_something(theirs) {
            continue;
        }
        let when = after.finds(reader, theirs);
        let inside = |bindings: &Bindings| when.eval_index(bindings).is_ok_and(|value| value != 0);
        let samples: Vec<Bindings> = samples(&reader.path, 1).into_iter().filter(inside).collect();
        origin.given = candidates(before, sources[0], reader, origin)
            .into_iter()
            .find(|one| holds(before, sources[0], one, &samples));
    }
}

/// Whether some value may be what memory held at the call.
fn finds_something(sources: &Sources) -> bool {
    sources.iter().flatten().any(|piece| piece.store.is_none())
}

/// Instances before that may read what the call gave: those with the same values, and the first, the last and the like one of each store.
fn candidates(before: &Observed, sources: &[Sources], reader: &Statement, origin: &Origin) -> Vec<Instance> {
    let is_reader = |place: usize| place < before.n_stores && sources.get(place).is_some_and(finds_something);
    let same = origin.instances.iter().filter(|one| one.store.is_some_and(is_reader));
    let mut found: Vec<Instance> = same.map(|one| Instance { when: None, ..one.clone() }).collect();
    let mine = reader.loops();
    for (place, store) in before.program.statements.iter().enumerate().filter(|(place, _)| is_reader(*place)) {
        let one = |at: Vec<Expr>| Instance { when: None, store: Some(place), at };
        if store.loops().len() == mine.len() {
            found.push(one(mine.iter().map(Expr::from).collect()));
        }
        found.extend([false, true].map(|last| one(corner(store, last))));
    }
    found
}

/// The first or the last iteration of all loops around a store.
fn corner(store: &Statement, last: bool) -> Vec<Expr> {
    let mut outer = Substitution::default();
    let value = |one: Loop| {
        let min = outer.apply(&one.min);
        let value = if last { min + outer.apply(&one.extent) - Expr::int(1) } else { min };
        outer.insert(&one.var, value.clone());
        value
    };
    loops(&store.path).into_iter().map(value).collect()
}

/// Whether the instance reads what the call gave, at all instances of the reader that are tried.
fn holds(before: &Observed, sources: &[Sources], one: &Instance, samples: &[Bindings]) -> bool {
    let Some((store, sources)) =
        one.store.and_then(|place| before.program.statements.get(place).zip(sources.get(place)))
    else {
        return false;
    };
    let at = Substitution::new(&store.loops(), one.at.iter().cloned());
    let conditions: Vec<Expr> =
        domain(store, &at).into_iter().chain([at.apply(&before.finds(store, sources))]).collect();
    let fails = |cond: &Expr, bindings: &Bindings| cond.eval_index(bindings).is_ok_and(|value| value == 0);
    !samples.iter().any(|bindings| conditions.iter().any(|cond| fails(cond, bindings)))
}
