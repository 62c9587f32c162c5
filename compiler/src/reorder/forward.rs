//! The loops of a store before, in terms of those of a store after.

use std::collections::HashSet;

use tilewright_algebra::{Ranges, linear_in, simplify};
use tilewright_ir::visit::Substitution;
use tilewright_ir::{BinaryOp, Bindings, Expr, Var};
use tilewright_verify::path::Step;
use tilewright_verify::reorder::Statement;

use super::equations::Equations;
use super::solve::{Loop, System, loops, ranges};

/// Instances of a store that are tried.
const TRIED: usize = 40;

/// Ways to choose the loops that no access determines.
const MOST_CHOICES: usize = 96;

/// A store before that a store after may be, and how.
pub(super) struct Candidate {
    /// The position of the store before.
    pub(super) position: usize,
    /// The value of each loop before.
    pub(super) forward: Vec<Expr>,
    /// Which of the instances that were tried are instances of the store before.
    pub(super) inside: Vec<bool>,
    /// Equations that do not follow from the values: they hold for some instances only.
    pub(super) rest: Vec<(Expr, Expr)>,
    /// Whether a loop before was chosen, since no access determines it.
    pub(super) is_chosen: bool,
}

/// Solves the equations of two stores for the loops before. What no access determines is tried as `hints` say first.
pub(super) fn candidate(
    position: usize,
    before: &Statement,
    after: &Statement,
    found: &Equations,
    hints: &Substitution,
) -> Candidate {
    let known = ranges(&[&before.path, &after.path]);
    let (unknown, given) = (loops(&before.path), loops(&after.path));
    let mut equations = found.pairs.clone();
    for step in &before.path.steps {
        // A store that runs in one iteration alone.
        if let Step::Guard(Expr::Binary(BinaryOp::Eq, a, b), true) = step
            && matches!((&**a, &**b), (Expr::Var(_), Expr::Int { .. }))
        {
            equations.push((Expr::clone(a), Expr::clone(b)));
        }
    }
    let solved = |more: &[(Expr, Expr)]| {
        let equations = [more, &equations].concat();
        let mut system =
            System { unknown: unknown.clone(), equations, ranges: &known, solved: Substitution::default() };
        system.solve();
        system
    };
    let system = solved(&[]);
    let is_chosen = !system.open().is_empty();
    let same_digits = same_digits(&found.pairs, (&unknown, &given), &known);
    let more = [by_factor(&found.pairs, before, &known), same_form(&found.pairs), same_digits];
    let more = more.iter().filter(|more| !is_chosen && !more.is_empty());
    let others: Vec<Substitution> = more.flat_map(|more| choices(&solved(more), &given, hints)).collect();
    let samples = after.path.samples(TRIED);
    let mut best: Option<(usize, Candidate)> = None;
    for chosen in others.into_iter().chain(choices(&system, &given, hints)) {
        let system = System { unknown: unknown.clone(), equations: Vec::new(), ranges: &known, solved: chosen };
        let forward: Vec<Expr> = unknown.iter().map(|l| simplify(&system.value(l), &known)).collect();
        let tried = Tried { before, forward: &forward, equations: &found.pairs };
        let inside: Vec<bool> = samples.iter().map(|instance| tried.is_inside(instance)).collect();
        let images: HashSet<_> = samples.iter().filter_map(|instance| tried.image(instance)).collect();
        let quality = images.len() + inside.iter().filter(|inside| **inside).count();
        if best.as_ref().is_none_or(|(known, _)| quality > *known) {
            let rest = rest(&found.pairs, &unknown, &forward, &known);
            best = Some((quality, Candidate { position, forward, inside, rest, is_chosen }));
        }
    }
    best.map_or_else(
        || Candidate { position, forward: Vec::new(), inside: Vec::new(), rest: Vec::new(), is_chosen },
        |best| best.1,
    )
}

/// Equations of the factors of an extent: two flat indices of the same row length, of which no part carries into another.
///
/// ```text
/// (4 * a + b) * n + c = (4 * x + 2) * n + y           4 * a + b = 4 * x + 2, and c = y
/// ```
fn by_factor(pairs: &[(Expr, Expr)], before: &Statement, known: &Ranges) -> Vec<(Expr, Expr)> {
    let mut found = Vec::new();
    for (old, new) in pairs {
        let mut parts = vec![(old.clone(), new.clone())];
        for symbol in before.path.symbols.iter().chain(&before.path.scalars) {
            let split =
                |(old, new): (Expr, Expr)| match (linear_in(&old, symbol, known), linear_in(&new, symbol, known)) {
                    (Some((a, b)), Some((c, d))) if b.as_const_int() != Some(0) && d.as_const_int() != Some(0) => {
                        vec![(b, d), (a, c)]
                    }
                    _ => vec![(old, new)],
                };
            parts = parts.into_iter().flat_map(split).collect();
        }
        if parts.len() > 1 {
            found.extend(parts);
        }
    }
    found
}

/// Equations of what is divided in the same way.
///
/// ```text
/// (4 * a + b) % (n * m) // m = f % (n * m) // m           4 * a + b = f
/// ```
fn same_form(pairs: &[(Expr, Expr)]) -> Vec<(Expr, Expr)> {
    let inner = |(old, new): &(Expr, Expr)| -> Option<(Expr, Expr)> {
        match (old, new) {
            (Expr::Binary(op @ (BinaryOp::FloorDiv | BinaryOp::FloorMod), a, x), Expr::Binary(other, b, y))
                if op == other && x == y =>
            {
                Some((Expr::clone(a), Expr::clone(b)))
            }
            _ => None,
        }
    };
    let innermost = |pair: &(Expr, Expr)| {
        let mut found = inner(pair)?;
        while let Some(next) = inner(&found) {
            found = next;
        }
        Some(found)
    };
    pairs.iter().filter_map(innermost).collect()
}

/// Loops that have the same factor on both sides of an equation, and as many iterations: digits of one number that stay as they are,
/// where the ranges of the others do not tell how they are divided.
///
/// ```text
/// 14 * k + t = 14 * k' + (8 * q + r), which is below 14 by a condition         k = k', not k' + (8 * q + r) // 14
/// ```
fn same_digits(pairs: &[(Expr, Expr)], (before, after): (&[Loop], &[Loop]), known: &Ranges) -> Vec<(Expr, Expr)> {
    let factor = |expr: &Expr, l: &Loop| linear_in(expr, &l.var, known)?.1.as_const_int().filter(|by| by.abs() > 1);
    let mut found = Vec::new();
    for (old, new) in pairs {
        for one in before {
            let Some(by) = factor(old, one) else { continue };
            let is_same = |other: &&Loop| factor(new, other) == Some(by) && other.extent == one.extent;
            let mut same = after.iter().filter(is_same);
            if let (Some(other), None) = (same.next(), same.next()) {
                found.push((Expr::from(&one.var), Expr::from(&other.var) - other.min.clone() + one.min.clone()));
            }
        }
    }
    found
}

/// Solutions in which each loop before that no access determines, such as one over time, got some value.
fn choices(system: &System<'_>, after: &[Loop], hints: &Substitution) -> Vec<Substitution> {
    let open = system.open();
    let free = unused(after, system);
    let mut found = vec![(system.solved.clone(), Vec::<Var>::new())];
    for (place, old) in open.iter().enumerate() {
        let mut next = Vec::new();
        for (solved, taken) in &found {
            if let Some(hint) = hints.get(&old.var) {
                let mut solved = solved.clone();
                solved.insert(&old.var, hint.clone());
                next.push((solved, taken.clone()));
            }
            for (value, uses) in values(old, (place, open.len()), &free, after, taken) {
                let mut solved = solved.clone();
                solved.insert(&old.var, simplify(&value, system.ranges));
                next.push((solved, [taken.as_slice(), &uses].concat()));
            }
        }
        next.truncate(MOST_CHOICES);
        found = next;
    }
    found.into_iter().map(|(solved, _)| solved).collect()
}

/// The values to try for one such loop, each with the loops after that it uses: a loop after that nothing else uses, counted from
/// its start or as it is; all of those as one number; one of the other loops; and the first iteration. A loop of one iteration has no other.
fn values(
    old: &Loop,
    (place, open): (usize, usize),
    free: &[Loop],
    after: &[Loop],
    taken: &[Var],
) -> Vec<(Expr, Vec<Var>)> {
    if is_single(old) {
        return vec![(old.min.clone(), Vec::new())];
    }
    let moved = |new: &Loop| (Expr::from(&new.var) - new.min.clone() + old.min.clone(), vec![new.var.clone()]);
    let is_free = |new: &&Loop| !taken.contains(&new.var);
    let mut found = Vec::new();
    let digits = free.iter().map(|l| (Expr::from(&l.var) - l.min.clone(), l.extent.clone()));
    if open == 1
        && free.len() > 1
        && let Some((number, _)) = digits.reduce(|(high, _), (low, extent)| (high * extent.clone() + low, extent))
    {
        found.push((number + old.min.clone(), free.iter().map(|l| l.var.clone()).collect()));
    }
    // A loop over part of a range, such as a clipped tile, keeps the values of the whole one.
    let is_part = |new: &&Loop| after.iter().any(|outer| new.min.vars().contains(&outer.var));
    let itself = |new: &Loop| (Expr::from(&new.var), vec![new.var.clone()]);
    if free.len() == open {
        found.extend(free.get(place).filter(is_free).filter(is_part).map(itself));
        found.extend(free.get(place).filter(is_free).map(moved));
    }
    found.extend(free.iter().filter(is_free).filter(is_part).map(itself));
    found.extend(free.iter().filter(is_free).map(moved));
    let mut others: Vec<&Loop> = after.iter().filter(is_free).collect();
    others.sort_by_key(|new| (new.extent != old.extent, new.var.name() != old.var.name()));
    found.extend(others.into_iter().map(moved));
    found.push((old.min.clone(), Vec::new()));
    found
}

/// The loops after that no value mentions, and from which no other loop starts.
fn unused(after: &[Loop], system: &System<'_>) -> Vec<Loop> {
    let mut used: Vec<Var> =
        system.unknown.iter().filter_map(|l| system.solved.get(&l.var)).flat_map(Expr::vars).collect();
    used.extend(after.iter().flat_map(|l| l.min.vars()));
    after.iter().filter(|l| !used.contains(&l.var) && !is_single(l)).cloned().collect()
}

fn is_single(l: &Loop) -> bool {
    l.extent.as_const_int() == Some(1)
}

/// The equations that do not follow from the values of the loops before.
fn rest(pairs: &[(Expr, Expr)], unknown: &[Loop], forward: &[Expr], known: &Ranges) -> Vec<(Expr, Expr)> {
    let at = Substitution::new(unknown.iter().map(|l| &l.var), forward.iter().cloned());
    let there = pairs.iter().map(|(old, new)| (simplify(&at.apply(old), known), simplify(new, known)));
    there
        .filter(|(old, new)| old != new && simplify(&(old.clone() - new.clone()), known).as_const_int() != Some(0))
        .collect()
}

/// A way to map instances.
struct Tried<'a> {
    before: &'a Statement,
    forward: &'a [Expr],
    equations: &'a [(Expr, Expr)],
}

impl Tried<'_> {
    fn image(&self, instance: &Bindings) -> Option<Vec<i128>> {
        self.forward.iter().map(|value| value.eval_index(instance).ok()).collect()
    }

    /// Whether the image of an instance lies in the domain of the store, and touches the same elements.
    fn is_inside(&self, instance: &Bindings) -> bool {
        let Some(image) = self.image(instance) else { return false };
        let mut bindings = instance.clone();
        bindings.extend(self.before.loops().into_iter().zip(image));
        let holds = |(old, new): &(Expr, Expr)| match (old.eval_index(&bindings), new.eval_index(instance)) {
            (Ok(old), Ok(new)) => old == new,
            _ => true,
        };
        self.before.path.admits(&bindings) && self.equations.iter().all(holds)
    }
}
