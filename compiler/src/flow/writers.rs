//! Finds for each element of a result a store that writes it.
//!
//! ```text
//! for o, i in 15, 32: if o * 32 + i < 456: y[o * 32 + i] = ...      x0 is written by (x0 // 32, x0 % 32)
//! ```
//!
//! The index of each store is solved for its loops, as for the values that programs read ([`super::sources`]). The cases are those in which the
//! store runs in that iteration; the last one is claimed of all elements that are left.

use tilewright_ir::visit::Substitution;
use tilewright_ir::{BinaryOp, Expr, Instance};
use tilewright_verify::Stores;
use tilewright_verify::path::{Path, Step};

use super::sources::{bounded, last, left};
use crate::reorder::solve::{System, loops, ranges};

/// Which of the iterations that write an element is looked for, where the index does not determine all loops.
#[derive(Clone, Copy)]
enum Search {
    First,
    Bounded,
    Last,
}

/// Most stores that are looked at.
const MOST: usize = 64;

/// The store and the iteration that write an element, case by case; nothing where none is found.
pub fn writers_of(stores: &Stores<'_>) -> Vec<Instance> {
    let mut found: Vec<Instance> = Vec::new();
    for (number, (path, index)) in stores.stores.iter().enumerate().take(MOST) {
        for how in [Search::First, Search::Bounded, Search::Last] {
            let Some((conditions, at)) = iteration(stores.element, (path, index), how) else { continue };
            if found.iter().any(|known| known.store == Some(number) && known.at == at) {
                continue;
            }
            let when = conditions.into_iter().reduce(Expr::and);
            let case = Instance { when, store: Some(number), at };
            if case.when.is_none() {
                return vec![case];
            }
            found.push(case);
        }
    }
    if let Some(last) = found.last_mut() {
        last.when = None;
    }
    found
}

/// Adds for each quotient that is an index the first of the numbers that have it: `i // 4 = x` for `i = x * 4`.
fn multiplied(system: &mut System<'_>) {
    let quotients = system.equations.iter().filter_map(|(index, axis)| match index {
        Expr::Binary(BinaryOp::FloorDiv, value, by) => Some((Expr::clone(value), axis.clone() * Expr::clone(by))),
        _ => None,
    });
    let quotients: Vec<(Expr, Expr)> = quotients.collect();
    system.equations.extend(quotients);
    system.solve();
}

/// An iteration of a store that writes an element, and the conditions that it does. `None` if it never does, or if memory decides.
fn iteration(element: &Path, (path, index): (&Path, &[Expr]), how: Search) -> Option<(Vec<Expr>, Vec<Expr>)> {
    let (unknown, known) = (loops(path), ranges(&[element]));
    let inner = unknown.iter().fold(known.clone(), |known, l| known.with_loop(&l.var, &l.min, &l.extent));
    let axes: Vec<Expr> = element.loops().iter().map(Expr::from).collect();
    let equations: Vec<(Expr, Expr)> = index.iter().cloned().zip(axes).collect();
    let mut system = System {
        unknown: unknown.clone(),
        equations: equations.clone(),
        ranges: &inner,
        solved: Substitution::default(),
    };
    system.solve();
    if !system.open().is_empty() {
        multiplied(&mut system);
    }
    match how {
        Search::First => {}
        Search::Bounded => bounded(&mut system, path, &Expr::clone),
        Search::Last => last(&mut system),
    }
    for l in system.open() {
        let first = system.value(&l);
        system.found(&l.var, &first);
    }
    let again = |value: &Expr| tilewright_algebra::simplify(&system.solved.apply(value), &known);
    let at: Vec<Expr> = unknown.iter().map(|l| again(&again(&Expr::from(&l.var)))).collect();
    let there = Substitution::new(unknown.iter().map(|l| &l.var), at.iter().cloned());
    let mut conditions: Vec<Expr> =
        path.steps.iter().flat_map(|step: &Step| step.conditions(&there).unwrap_or_default()).collect();
    conditions.extend(equations.iter().map(|(one, axis)| Expr::binary(BinaryOp::Eq, there.apply(one), axis.clone())));
    if conditions.iter().chain(&at).any(Expr::reads_memory) {
        return None;
    }
    left(element, &conditions).map(|conditions| (conditions, at))
}
