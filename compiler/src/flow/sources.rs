//! The stores that wrote what a program reads, latest first.
//!
//! For a read, the last instance of each store that may have written the element is found loop by loop: in the same iteration
//! of all shared loops, or in an earlier one of the innermost of them, and so on outwards. What the index of the element does not
//! determine is the iteration before, if the loop is shared, and else the last one.

use tilewright_algebra::{Ranges, linear_in, simplify};
use tilewright_ir::visit::Substitution;
use tilewright_ir::{BinaryOp, Bindings, Expr, Instance, Sources, UnaryOp, Var};
use tilewright_verify::flow::Observed;
use tilewright_verify::path::{Path, Step};
use tilewright_verify::reorder::{Statement, domain};

use super::budget::{Budget, SOLVING};
use super::origins::named;
use super::samples::samples;
use crate::reorder::solve::{Loop, System, loops, ranges};

/// Cases of a value among which nobody looks for those that never come.
const FEW: usize = 2;

/// Instances at one time that are all compared with each other. Of more, as in unrolled loops, one that comes later in any case is left
/// to the order of the cases.
const FEW_AT_ONCE: usize = 8;

/// Most instances at one time, and most pairs of them whose order depends on the iteration; where there are more, nothing is found.
const MOST_AT_ONCE: usize = 400;
const MOST_PAIRS: usize = 6_000;

/// The sources of everything that the stores of a program read, as far as they are found within the budget.
pub(super) fn of(observed: &Observed, budget: &Budget) -> Vec<Sources> {
    let of_store = |reader: &Statement| {
        let reads = observed.reads(reader);
        reads.iter().map(|read| Reading { observed, reader, budget }.sources(read)).collect()
    };
    observed.program.statements.iter().map(of_store).collect()
}

struct Reading<'a> {
    observed: &'a Observed,
    reader: &'a Statement,
    budget: &'a Budget,
}

/// A time at which a store may have written: after the reader's own iterations of the first `shared` loops began, in an earlier iteration
/// of the next loop (`carried`) or in another place of the same one.
struct Event<'a> {
    shared: usize,
    carried: bool,
    writer: usize,
    store: &'a Statement,
}

/// An instance that may have written an element last, and the conditions that there is one.
struct Last<'a> {
    event: &'a Event<'a>,
    conditions: Vec<Expr>,
    at: Vec<Expr>,
}

impl Reading<'_> {
    /// The instances that may have written what is read, latest first, each with the condition that it did.
    fn sources(&self, read: &Expr) -> Vec<Instance> {
        let Expr::Load { buffer, indices } = read else { return Vec::new() };
        let mut found = Vec::new();
        let events = self.events();
        let at_once = |a: &Event<'_>, b: &Event<'_>| a.shared == b.shared && a.carried == b.carried;
        for events in events.chunk_by(at_once) {
            let writing = || events.iter().filter(|event| event.store.buffer == *buffer);
            if !self.budget.spend(writing().count() * SOLVING) {
                return Vec::new();
            }
            let last: Vec<Last<'_>> = writing().flat_map(|event| self.instances(event, indices)).collect();
            let n_pairs = n_open_pairs(&last);
            if last.len() > MOST_AT_ONCE || n_pairs > MOST_PAIRS || !self.budget.spend(n_pairs * SOLVING) {
                return Vec::new();
            }
            for (place, one) in last.iter().enumerate() {
                let (first, rest) = last.split_at(if last.len() > FEW_AT_ONCE { place } else { 0 });
                let first = first.iter().filter(|other| is_earlier(one, other) != Some(true));
                let later = first.chain(rest).filter_map(|other| self.not_before(one, other));
                let Some(conditions) =
                    left(&self.reader.path, &one.conditions.iter().cloned().chain(later).collect::<Vec<_>>())
                else {
                    continue;
                };
                let when = conditions.into_iter().reduce(Expr::and);
                let is_last = when.is_none();
                found.push(Instance { when, store: Some(one.event.writer), at: one.at.clone() });
                if is_last {
                    return self.used(found);
                }
            }
        }
        found = self.used(found);
        // A program that reads memory that was never written is wrong; so one of the others is the last. In a reduction that starts in
        // its own first iteration, the first iteration and those behind it are all that there are.
        let is_known = !self.observed.params.contains(buffer) || self.covers_all(&found);
        match found.last_mut() {
            Some(last) if is_known => last.when = None,
            _ => found.push(Instance { when: None, store: None, at: Vec::new() }),
        }
        found
    }

    /// Whether one of the cases holds at each instance of the reader that is tried.
    fn covers_all(&self, cases: &[Instance]) -> bool {
        let tried = samples(&self.reader.path, cases.len());
        !tried.is_empty() && tried.iter().all(|at| cases.iter().any(|case| holds(case, at) == Some(true)))
    }

    /// A long list of cases without those that no instance that is tried comes to: the judge looks at each combination of cases.
    fn used(&self, mut cases: Vec<Instance>) -> Vec<Instance> {
        let tried = if cases.len() > FEW { samples(&self.reader.path, cases.len()) } else { Vec::new() };
        self.budget.spend(tried.len() * cases.len());
        let mut used = vec![tried.is_empty(); cases.len()];
        for at in &tried {
            for (case, used) in cases.iter().zip(&mut used) {
                // A case whose condition has no value for this instance is kept: it may hold.
                let holds = holds(case, at);
                *used |= holds != Some(false);
                if holds == Some(true) {
                    break;
                }
            }
        }
        let has_rest = cases.last().is_some_and(|last| last.when.is_none());
        let mut used = used.into_iter();
        cases.retain(|_| used.next().unwrap_or(true));
        if let Some(last) = cases.last_mut().filter(|_| has_rest) {
            last.when = None;
        }
        cases
    }

    /// The condition that an instance runs after another one that may have written the same element, if there is that one. None if
    /// it always does.
    fn not_before(&self, one: &Last<'_>, other: &Last<'_>) -> Option<Expr> {
        let common = shared(&one.event.store.place, &other.event.store.place);
        if common <= one.event.shared || one.event.writer == other.event.writer || is_earlier(one, other) == Some(false)
        {
            return None;
        }
        let known = ranges(&[&self.reader.path]);
        let pairs: Vec<(&Expr, &Expr)> = one.at.iter().zip(&other.at).take(common).skip(one.event.shared).collect();
        let equal = |(a, b): &(&Expr, &Expr)| Expr::binary(BinaryOp::Eq, Expr::clone(a), Expr::clone(b));
        let mut later = Expr::bool(other.event.store.place < one.event.store.place);
        for pair in pairs.iter().rev() {
            let greater = pair.1.clone().lt(pair.0.clone());
            later = Expr::binary(BinaryOp::Or, greater, equal(pair).and(later));
        }
        let absent = other.conditions.iter().map(|cond| Expr::unary(UnaryOp::Not, cond.clone()));
        let absent = absent.fold(Expr::bool(false), |all, cond| Expr::binary(BinaryOp::Or, all, cond));
        Some(simplify(&Expr::binary(BinaryOp::Or, simplify(&later, &known), absent), &known))
    }

    /// When each store may have written, latest first.
    fn events(&self) -> Vec<Event<'_>> {
        let stores = self.observed.program.statements.iter().enumerate().take(self.observed.n_stores);
        let mut found: Vec<Event<'_>> = Vec::new();
        for (writer, store) in stores {
            let most = shared(&store.place, &self.reader.place);
            found.extend((0..most).map(|shared| Event { shared, carried: true, writer, store }));
            if store.place < self.reader.place {
                found.push(Event { shared: most, carried: false, writer, store });
            }
        }
        found.sort_by(|a, b| {
            let key = |event: &Event<'_>| (event.shared, event.carried);
            key(b).cmp(&key(a)).then_with(|| b.store.place.cmp(&a.store.place))
        });
        found
    }

    /// The last instances of a store at some time that may have written an element: as a condition of the store bounds its loops, as
    /// these end, and where remainders are equal because the numbers are, as for the slots of a buffer that is used in turn.
    fn instances<'e>(&self, event: &'e Event<'e>, indices: &[Expr]) -> Vec<Last<'e>> {
        let mut found: Vec<Last<'e>> = Vec::new();
        let is_remainder = |index: &Expr| matches!(index, Expr::Binary(BinaryOp::FloorMod, ..));
        let in_turn =
            event.store.indices.iter().zip(indices).any(|(one, other)| is_remainder(one) && is_remainder(other));
        let all = [Search::Bounded, Search::Ends, Search::InTurn];
        for how in all.into_iter().filter(|how| in_turn || *how != Search::InTurn) {
            if let Some((conditions, at)) = self.instance(event, indices, how)
                && found.iter().all(|known| known.at != at)
            {
                found.push(Last { event, conditions, at });
            }
        }
        found
    }

    /// The last instance of a store at some time that wrote an element, and the conditions that there is one. None if there is never
    /// one.
    fn instance(&self, event: &Event<'_>, indices: &[Expr], how: Search) -> Option<(Vec<Expr>, Vec<Expr>)> {
        let mine: Vec<Expr> = self.reader.loops().iter().map(Expr::from).collect();
        let theirs = event.store.loops();
        let fresh = theirs.iter().map(|var| Var::new(format!("{}'", var.name()), var.dtype())).collect::<Vec<_>>();
        let names = Substitution::new(&theirs, fresh.iter().map(Expr::from));
        let of = |expr: &Expr| names.apply(expr);
        let unknown = named(&loops(&event.store.path), &fresh, &names);
        let known = ranges(&[&self.reader.path]);
        let inner = unknown.iter().fold(known.clone(), |known, l| known.with_loop(&l.var, &l.min, &l.extent));
        let mut equations: Vec<(Expr, Expr)> =
            event.store.indices.iter().map(of).zip(indices.iter().cloned()).collect();
        if how == Search::InTurn {
            equations.iter_mut().for_each(numerators);
        }
        equations.extend(fresh.iter().map(Expr::from).zip(mine.iter().cloned()).take(event.shared));
        let mut system =
            System { unknown: unknown.clone(), equations, ranges: &inner, solved: Substitution::default() };
        system.solve();
        if event.carried && system.solved.get(&fresh[event.shared]).is_none() {
            system.found(&fresh[event.shared], &(mine[event.shared].clone() - Expr::int(1)));
            system.solve();
        }
        if how == Search::Bounded {
            bounded(&mut system, &event.store.path, &of);
        }
        last(&mut system);
        let again = |value: &Expr| simplify(&system.solved.apply(value), &known);
        let at: Vec<Expr> = fresh.iter().map(|var| again(&again(&Expr::from(var)))).collect();
        let there = Substitution::new(&theirs, at.iter().cloned());
        let mut conditions = domain(event.store, &there);
        let same = event.store.indices.iter().map(|index| there.apply(index)).zip(indices.iter().cloned());
        let same = same.chain(at.iter().cloned().zip(mine.iter().cloned()).take(event.shared));
        conditions.extend(same.map(|(a, b)| Expr::binary(BinaryOp::Eq, a, b)));
        if event.carried {
            conditions.push(at[event.shared].clone().lt(mine[event.shared].clone()));
        }
        left(&self.reader.path, &conditions).map(|conditions| (conditions, at))
    }
}

/// Which last instance of a store is looked for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Search {
    /// The last one that the conditions of the store allow.
    Bounded,
    /// That at the ends of the loops.
    Ends,
    /// That with the same number, where the index is a remainder.
    InTurn,
}

/// Two remainders by the same number as what they are remainders of.
fn numerators(equation: &mut (Expr, Expr)) {
    if let (Expr::Binary(BinaryOp::FloorMod, x, c), Expr::Binary(BinaryOp::FloorMod, y, d)) = &*equation
        && c == d
    {
        *equation = (Expr::clone(x), Expr::clone(y));
    }
}

/// The number of pairs of instances whose order depends on the iteration.
fn n_open_pairs(last: &[Last<'_>]) -> usize {
    let is_open = |one: &Last<'_>, other: &Last<'_>| {
        let common = shared(&one.event.store.place, &other.event.store.place);
        common > one.event.shared && one.event.writer != other.event.writer && is_earlier(one, other).is_none()
    };
    last.iter().map(|one| last.iter().filter(|other| is_open(one, other)).count()).sum()
}

/// Whether an instance runs before another one in any case, or after it in any case: both are in the same iteration of all loops around
/// both.
fn is_earlier(one: &Last<'_>, other: &Last<'_>) -> Option<bool> {
    let (here, there) = (&one.event.store.place, &other.event.store.place);
    let (common, outer) = (shared(here, there), one.event.shared);
    let is_same = common > outer && one.at[outer..common] == other.at[outer..common];
    (is_same && one.event.writer != other.event.writer).then(|| here < there)
}

/// Whether the condition of a case holds; `None` if it has no value.
fn holds(case: &Instance, at: &Bindings) -> Option<bool> {
    case.when.as_ref().map_or(Some(true), |when| when.eval_index(at).ok().map(|value| value != 0))
}

/// Gives the loops that nothing determines the last values that a condition of the store allows.
pub(super) fn bounded(system: &mut System<'_>, path: &Path, of: &dyn Fn(&Expr) -> Expr) {
    for step in &path.steps {
        let Step::Guard(cond, true) = step else { continue };
        for (one, other) in equal_sides(cond) {
            let open = system.open();
            let uses = |expr: &Expr| of(expr).vars().iter().any(|var| open.iter().any(|l| l.var == *var));
            if uses(&one) && !uses(&other) {
                system.equations.push((of(&one), system.solved.apply(&of(&other))));
                system.solve();
            }
        }
        for (less, more) in bounds(cond) {
            let open = system.open();
            let uses = |expr: &Expr| of(expr).vars().iter().any(|var| open.iter().any(|l| l.var == *var));
            // Where a larger value of the loop makes that less, the condition bounds the loop from below.
            let falls = |l: &Loop| {
                let found = linear_in(&of(&less), &l.var, system.ranges);
                found.is_some_and(|(_, by)| by.as_const_int().is_some_and(|by| by < 0))
            };
            if uses(&less) && !uses(&more) && !open.iter().any(falls) {
                if let Some(last) = last_below(&of(&less), &system.solved.apply(&of(&more)), system) {
                    for (var, value) in &last {
                        system.found(var, value);
                    }
                    continue;
                }
                system.equations.push((of(&less), system.solved.apply(&of(&more)) - Expr::int(1)));
                system.solve();
            }
        }
    }
}

/// The last values of the open loops at which a sum of their multiples is less than a number, where the sum is not largest there: of
/// `k0 * 8 + k1 < 11` with `k1` outside of `k0`, these are `k1 = 7` and `k0 = 0`.
fn last_below(sum: &Expr, bound: &Expr, system: &System<'_>) -> Option<Vec<(Var, Expr)>> {
    let used = sum.vars();
    let open: Vec<Loop> = system.open().into_iter().filter(|l| used.contains(&l.var)).collect();
    let by = |l: &Loop| linear_in(sum, &l.var, system.ranges)?.1.as_const_int().filter(|by| *by > 0);
    let strides = open.iter().map(by).collect::<Option<Vec<_>>>()?;
    // The outermost loop counts in the largest steps: what is last is largest.
    if strides.is_sorted_by(|outer, inner| outer > inner) {
        return None;
    }
    let ends = |l: &Loop| (system.solved.apply(&l.min), system.solved.apply(&l.extent));
    let mut found: Vec<(Var, Expr)> = Vec::new();
    for (place, (l, by)) in open.iter().zip(strides).enumerate() {
        // The loops outside have their last values, and those inside their first ones.
        let mut others: Vec<(Var, Expr)> = found.clone();
        others.extend(open.iter().skip(place + 1).map(|inner| (inner.var.clone(), ends(inner).0)));
        others.push((l.var.clone(), Expr::int(0)));
        let others =
            Substitution::new(others.iter().map(|(var, _)| var), others.iter().map(|(_, value)| value.clone()));
        let (min, extent) = ends(l);
        let most = Expr::binary(
            BinaryOp::FloorDiv,
            bound.clone() - Expr::int(1) - others.apply(&system.solved.apply(sum)),
            Expr::int(i64::try_from(by).ok()?),
        );
        let last = Expr::binary(BinaryOp::Min, min + extent - Expr::int(1), most);
        found.push((l.var.clone(), simplify(&last, system.ranges)));
    }
    Some(found)
}

/// Gives the loops that nothing determines their last values.
pub(super) fn last(system: &mut System<'_>) {
    for l in system.open() {
        let last = system.solved.apply(&(l.min.clone() + l.extent.clone() - Expr::int(1)));
        system.found(&l.var, &last);
    }
}

/// The conditions that say something at the end of a path; none at all if one of them never holds.
pub(super) fn left(path: &Path, conditions: &[Expr]) -> Option<Vec<Expr>> {
    let known = ranges(&[path]);
    let mut guards: Vec<Expr> = Vec::new();
    for step in &path.steps {
        if let Step::Guard(cond, true) = step {
            guards.extend(conjuncts(cond).into_iter().map(|part| decided(&part, &known)));
        }
    }
    let mut left: Vec<Expr> = Vec::new();
    for cond in conditions.iter().flat_map(conjuncts) {
        let cond = decided(&cond, &known);
        match cond.as_const_int() {
            Some(0) => return None,
            Some(_) => {}
            None if guards.contains(&cond) || left.contains(&cond) => {}
            None => {
                // An instance that would need a condition and its opposite never comes.
                let opposite = decided(&Expr::unary(UnaryOp::Not, cond.clone()), &known);
                if left.contains(&opposite) {
                    return None;
                }
                left.push(cond);
            }
        }
    }
    Some(left)
}

/// The loops that two places have in common.
fn shared(one: &[usize], other: &[usize]) -> usize {
    let same = one.iter().zip(other).take_while(|(a, b)| a == b).count();
    same.min(one.len() - 1).min(other.len() - 1)
}

/// A condition, simplified; equal sides are recognised by their difference.
fn decided(cond: &Expr, known: &Ranges) -> Expr {
    if let Expr::Binary(BinaryOp::Eq, a, b) = cond
        && !a.reads_memory()
        && !b.reads_memory()
        && let Some(difference) = simplify(&(Expr::clone(a) - Expr::clone(b)), known).as_const_int()
    {
        return Expr::bool(difference == 0);
    }
    simplify(cond, known)
}

/// The parts of a condition all of which hold.
fn conjuncts(cond: &Expr) -> Vec<Expr> {
    match cond {
        Expr::Binary(BinaryOp::And, a, b) => [conjuncts(a), conjuncts(b)].concat(),
        _ => vec![cond.clone()],
    }
}

/// What a condition says to be equal to what, in both directions.
fn equal_sides(cond: &Expr) -> Vec<(Expr, Expr)> {
    let of = |part: &Expr| match part {
        Expr::Binary(BinaryOp::Eq, a, b) => {
            let (a, b) = (Expr::clone(a), Expr::clone(b));
            vec![(a.clone(), b.clone()), (b, a)]
        }
        _ => Vec::new(),
    };
    conjuncts(cond).iter().flat_map(of).collect()
}

/// What a condition says to be less than what.
fn bounds(cond: &Expr) -> Vec<(Expr, Expr)> {
    let below = |a: &Expr, b: &Expr| (a.clone(), b.clone());
    let at_most = |a: &Expr, b: &Expr| (a.clone(), b.clone() + Expr::int(1));
    let of = |part: &Expr| match part {
        Expr::Binary(BinaryOp::Lt, a, b) => vec![below(a, b)],
        Expr::Binary(BinaryOp::Le, a, b) => vec![at_most(a, b)],
        Expr::Binary(BinaryOp::Gt, a, b) => vec![below(b, a)],
        Expr::Binary(BinaryOp::Ge, a, b) => vec![at_most(b, a)],
        // The first iteration of a reduction, where it starts.
        Expr::Binary(BinaryOp::Eq, a, b) => vec![at_most(a, b), at_most(b, a)],
        _ => Vec::new(),
    };
    conjuncts(cond).iter().flat_map(of).collect()
}
