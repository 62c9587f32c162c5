//! Obligation injective: different logical indices have different images.
//!
//! ```text
//! lambda i, j: [i % 4, j]   on (8, 5)     refuted: (0, 0) and (4, 0) both land on (0, 0)
//! lambda i: [i // 4, i % 4] on (n)        proved: i is i // 4 * 4 + i % 4 (Euclid)
//! ```
//!
//! The tiers are, in this order: the digit certificate of a symbolic claim, small shapes, the digit certificate, linear algebra
//! over GF(2), enumeration and Z3 with limits that grow, the claimed inverse.

use std::collections::HashMap;

use tilewright_ir::{BinaryOp, Bindings};

use super::case::{Case, briefly, certified, digits, empty, large, medium, small, wide};
use super::instance::{Answer, Graph, Instance, does_not_replay, each_point, too_many};
use super::{MapClaim, Obligation, at, bits, from_model, symbols_from, value};
use crate::concrete::tuple;
use crate::enumerate::{self, Builder, NodeId};
use crate::judge::{Decision, decide};
use crate::method::{Method, Points};
use crate::obligation::Obligation as Id;
use crate::reason::Reason;
use crate::term::{Prop, Term};
use crate::translate::Names;
use crate::verdict::{Counterexample, Verdict};

/// Different logical indices have different images.
pub(super) const OBLIGATION: Obligation = (
    Id::Injective,
    exhaustive,
    &[certified, empty, small, digits, bits::injective, medium, brief, wide, sampled, by_left_inverse, by_z3, large],
);

/// A counterexample if two different points have the same image.
pub(super) fn collision(claim: MapClaim<'_>, symbols: &Bindings, a: &[i128], b: &[i128]) -> Option<Counterexample> {
    if !claim.admits(a, symbols) || !claim.admits(b, symbols) {
        return None;
    }
    let image = claim.map.eval(a, symbols).ok()?;
    let text = format!("{} and {} both land on {}", tuple(a), tuple(b), tuple(&image));
    (a != b && claim.map.eval(b, symbols).ok()? == image).then(|| at(claim, symbols, &[a, b], text))
}

/// A set of outputs and the axes that they depend on, which no other output depends on.
#[derive(Debug, Default)]
struct Group {
    /// The axes, increasing.
    axes: Vec<usize>,
    /// The outputs that depend on them.
    outputs: Vec<NodeId>,
}

/// The groups of some outputs. An axis that no output depends on is a group without outputs; an axis of extent 1 is in no group.
fn groups(builder: &Builder, axes: &[NodeId], outputs: &[NodeId]) -> Vec<Group> {
    let moving = |axis: &usize| builder.range(axes[*axis]).constant().is_none();
    let mut groups: Vec<Group> =
        (0..axes.len()).filter(moving).map(|axis| Group { axes: vec![axis], outputs: Vec::new() }).collect();
    for &output in outputs {
        let used = builder.axes(output);
        let (joined, others): (Vec<Group>, Vec<Group>) =
            groups.into_iter().partition(|group| group.axes.iter().any(|axis| used.contains(axis)));
        groups = others;
        let mut all = Group::default();
        for group in joined {
            all.axes.extend(group.axes);
            all.outputs.extend(group.outputs);
        }
        if !all.axes.is_empty() {
            all.axes.sort_unstable();
            all.outputs.push(output);
            groups.push(all);
        }
    }
    groups
}

/// The outputs of a map, and for a restricted claim one more: it is 0 at the indices for which the predicate holds, and has a
/// value of its own at each other one, so that only collisions between the former are left.
fn told_apart(graph: &Graph, domain: &[i128]) -> Option<(Builder, Vec<NodeId>)> {
    let (mut builder, mut outputs) = (graph.builder.clone(), graph.outputs.clone());
    if let Some(holds) = graph.predicate {
        let (zero, one) = (builder.int(0)?, builder.int(1)?);
        let fails = builder.binary(BinaryOp::Eq, holds, zero)?;
        let place = builder.place(&graph.axes, domain)?;
        let own = builder.binary(BinaryOp::Add, place, one)?;
        outputs.push(builder.binary(BinaryOp::Mul, fails, own)?);
    }
    Some((builder, outputs))
}

/// Enumerates group by group; the documentation of `instance` says why that is sufficient.
fn exhaustive(instance: &Instance<'_>, limit: u64) -> Answer {
    let Some(graph) = &instance.graph else { return one_by_one(instance, limit) };
    let Some((builder, outputs)) = told_apart(graph, &instance.domain) else { return one_by_one(instance, limit) };
    let mut first: Option<(Vec<i128>, Vec<i128>)> = None;
    let (mut points, mut open) = (0, false);
    for group in groups(&builder, &graph.axes, &outputs) {
        match first_of_group(instance, &builder, &group, limit) {
            Ok((looked_at, None)) => points += looked_at,
            Ok((_, Some(pair))) => first = Some(first.map_or_else(|| pair.clone(), |first| first.min(pair.clone()))),
            Err(()) => open = true,
        }
    }
    match first {
        Some((second, first)) => collision(instance.claim, &instance.symbols, &first, &second)
            .map_or_else(|| does_not_replay(&second), Answer::Fails),
        None if open => too_many(limit),
        None => Answer::Holds(points),
    }
}

/// The number of points looked at and the first collision of a group, as its second and its first index. An error if there
/// are too many points.
#[expect(clippy::type_complexity, reason = "a pair of indices, or none")]
fn first_of_group(
    instance: &Instance<'_>,
    builder: &Builder,
    group: &Group,
    limit: u64,
) -> Result<(u64, Option<(Vec<i128>, Vec<i128>)>), ()> {
    let rank = instance.domain.len();
    let determined: Vec<usize> = group.outputs.iter().filter_map(|&output| builder.determines(output)).collect();
    if group.axes.iter().all(|axis| determined.contains(axis)) {
        return Ok((0, None));
    }
    if group.outputs.is_empty() {
        let mut second = vec![0; rank];
        second[group.axes[0]] = 1;
        return Ok((0, Some((second, vec![0; rank]))));
    }
    let mut builder = builder.clone();
    let key = builder.key(&group.outputs);
    let roots = key.map_or_else(|| group.outputs.clone(), |(key, _)| vec![key]);
    let program = builder.program_over(&roots, &group.axes).filter(|program| program.points() <= limit).ok_or(())?;
    let found = enumerate::collision(instance.judge, &program, roots.len(), key.map(|(_, size)| size));
    let index = |place| program.index(place, rank);
    Ok((program.points(), found.map(|found| (index(found.second), index(found.first)))))
}

/// Enumerates all points with the language's own evaluation, for maps that have no graph.
fn one_by_one(instance: &Instance<'_>, limit: u64) -> Answer {
    let mut seen: HashMap<Vec<i128>, Vec<i128>> = HashMap::new();
    let mut without = None;
    let answer = each_point(&instance.domain, limit, |point| {
        if !instance.claim.admits(point, &instance.symbols) {
            return None;
        }
        let Ok(image) = instance.claim.map.eval(point, &instance.symbols) else {
            without.get_or_insert_with(|| point.to_vec());
            return None;
        };
        let first = seen.entry(image).or_insert_with(|| point.to_vec());
        if first == point { None } else { collision(instance.claim, &instance.symbols, first, point) }
    });
    match (answer, without) {
        (Answer::Holds(_), Some(point)) => Answer::Open(Reason::undecided(format!("{} has no image", tuple(&point)))),
        (answer, _) => answer,
    }
}

/// Tries some points of a shape that is too large for enumeration.
fn sampled(case: &Case<'_>) -> Option<Decision> {
    let instance = case.constant()?;
    let mut seen: HashMap<Vec<i128>, Vec<i128>> = HashMap::new();
    let found = case.claim.sample(|point, image| {
        let first = seen.entry(image).or_insert_with(|| point.to_vec());
        if first == point { None } else { collision(case.claim, &instance.symbols, first, point) }
    })?;
    Some((Verdict::Refuted(found), Method::Enumeration(Points::Some)))
}

/// A map with a left inverse is injective.
fn by_left_inverse(case: &Case<'_>) -> Option<Decision> {
    match super::inverse::left(case)? {
        (Verdict::Proved(grounds), method) => Some((Verdict::Proved(grounds), Method::ByInverse(Box::new(method)))),
        _ => None,
    }
}

/// Z3 with a small budget.
fn brief(case: &Case<'_>) -> Option<Decision> {
    briefly(case, by_z3)
}

/// Asks Z3 whether two indices with the same image are equal.
#[expect(clippy::unnecessary_wraps, reason = "the signature of a tier")]
pub(super) fn by_z3(case: &Case<'_>) -> Option<Decision> {
    let claim = case.claim;
    let mut names = Names::default();
    let mut question = claim.question(case.judge, &mut names);
    let a = claim.assume(&mut question, &mut names, "");
    let valued = value::shown_or_open(claim.map.outputs(), &mut names, &mut question);
    let left = claim.outputs(&mut names);
    let b = claim.assume(&mut question, &mut names, "'");
    let right = claim.outputs(&mut names);
    let from = question.steps().len();
    let images: Vec<(Term, Term)> = left.into_iter().zip(right).collect();
    question.assume_equal(&images, "both have the same image");
    let goal = Prop::all(a.iter().zip(&b).map(|(x, y)| x.equals(y)));
    let result = valued.and_then(|valued| Ok(valued.and(question.settle(&goal)?)));
    Some(decide("map injective", result, &question, from, |model| {
        let (first, second) = (from_model(model, claim.map.vars(), &a)?, from_model(model, claim.map.vars(), &b)?);
        let symbols = symbols_from(model, &mut names, case.symbols());
        collision(claim, &symbols, &first, &second)
    }))
}
