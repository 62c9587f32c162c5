//! Obligation padding: the padding predicate holds exactly on the physical indices that no logical index reaches.
//!
//! ```text
//! map      lambda c: [c // 4, c % 4]    on 0..17 into (5, 4)
//! padding  p * 4 + q > 16               holds exactly for (4, 1), (4, 2) and (4, 3)
//! ```
//!
//! A predicate that is true too often hides data; one that is true too rarely lets undefined memory be read.
//!
//! That every other physical index is reached is an existential statement. Z3 is not asked for it: the claimed inverse
//! names the logical index, and it is shown that the map leads from there to the physical index.

use std::collections::HashSet;

use tilewright_ir::{Bindings, InverseClaim, sabotage};

use super::case::{Case, briefly, certified, digits, empty, large, medium, small, wide};
use super::instance::{Answer, Instance, does_not_replay, each_point, settle, too_many};
use super::inverse::{is_padding, right};
use super::{MapClaim, Obligation, at, bits, from_model, symbols_from, value};
use crate::concrete::tuple;
use crate::enumerate::{Builder, MAX_BITS, NodeId, first_wrong_padding};
use crate::judge::{Decision, decide};
use crate::method::{Method, Points};
use crate::obligation::Obligation as Id;
use crate::reason::Reason;
use crate::translate::Names;
use crate::verdict::{Counterexample, Verdict};

/// No logical index is mapped to padding, and every other physical index is reached. Z3 shows the second part with the
/// inverse.
pub(super) const OBLIGATION: Obligation = (
    Id::Padding,
    exhaustive,
    &[certified, empty, small, digits, bits::padding, medium, brief, wide, sampled, by_z3, large],
);

/// Enumerates the logical indices to see whether one is mapped to padding, then marks the physical indices that are
/// reached and compares them with the padding predicate.
fn exhaustive(instance: &Instance<'_>, limit: u64) -> Answer {
    let Some(inverse) = instance.claim.inverse else { return Answer::Open(Reason::undecided("no inverse is claimed")) };
    let hit = |index: &[i128]| hit(instance.claim, inverse, &instance.symbols, index);
    let Some((mut builder, flag)) = lands_on_padding(instance, inverse) else {
        return one_by_one(instance, inverse, limit);
    };
    let Some(found) = instance.first_logical(&mut builder, &[flag], limit) else {
        return one_by_one(instance, inverse, limit);
    };
    let Answer::Holds(points) = settle(&found, limit, hit) else {
        return settle(&found, limit, hit);
    };
    if instance.shape.iter().any(|&extent| extent < 1) {
        return Answer::Holds(points);
    }
    match wrongly_used(instance, inverse, limit) {
        None => one_by_one(instance, inverse, limit),
        Some(Err(answer)) => answer,
        Some(Ok((places, None))) => Answer::Holds(points + places),
        Some(Ok((_, Some(place)))) if is_padding(inverse, &instance.symbols, &place) == Some(false) => {
            Answer::Fails(nothing_there(instance, inverse, &place))
        }
        Some(Ok((_, Some(place)))) => does_not_replay(&place),
    }
}

/// A flag that is set where a logical index is mapped to padding.
fn lands_on_padding(instance: &Instance<'_>, inverse: &InverseClaim) -> Option<(Builder, NodeId)> {
    let graph = instance.graph.as_ref()?;
    let mut builder = graph.builder.clone();
    for (var, &output) in inverse.vars.iter().zip(&graph.outputs) {
        builder.bind(var, output);
    }
    let flag = builder.expr(&inverse.padding)?;
    Some((builder, flag))
}

/// The number of points looked at, and the first physical index that is not padding and not reached. `None` if the padding
/// predicate has no graph.
#[expect(clippy::type_complexity, reason = "a number of points and an index")]
fn wrongly_used(
    instance: &Instance<'_>,
    inverse: &InverseClaim,
    limit: u64,
) -> Option<Result<(u64, Option<Vec<i128>>), Answer>> {
    let graph = instance.graph.as_ref()?;
    let mut physical = Builder::new(&instance.shape, &instance.symbols)?;
    physical.bind_axes(&inverse.vars)?;
    let padding = physical.expr(&inverse.padding)?;
    let axes = |rank: usize| (0..rank).collect::<Vec<_>>();
    let padding = physical.program_over(&[padding], &axes(instance.shape.len()));
    let Some(padding) = padding.filter(|padding| padding.points() <= limit.min(MAX_BITS)) else {
        return Some(Err(too_many(limit)));
    };
    let mut builder = graph.builder.clone();
    // A logical index outside of the restricted domain reaches nothing.
    let mut outside = match graph.predicate {
        Some(holds) if !sabotage::on("excluded-reach") => builder.unary(tilewright_ir::UnaryOp::Not, holds)?,
        Some(_) | None => builder.int(0)?,
    };
    let mut inside = Vec::new();
    for (&output, &extent) in graph.outputs.iter().zip(&instance.shape) {
        let wrong = builder.outside(output, extent)?;
        outside = builder.binary(tilewright_ir::BinaryOp::Or, outside, wrong)?;
        inside.push(builder.clamped(output, extent)?);
    }
    let place = builder.place(&inside, &instance.shape)?;
    // Over the axes that the outputs depend on: the others reach no further position.
    let map = builder.program(&[outside, place]);
    let Some(map) = map.filter(|map| map.points() <= limit) else { return Some(Err(too_many(limit))) };
    let found = first_wrong_padding(&map, &padding).map(|place| padding.index(place, instance.shape.len()));
    Some(Ok((map.points() + padding.points(), found)))
}

/// Enumerates all points with the language's own evaluation, for maps that have no graph.
fn one_by_one(instance: &Instance<'_>, inverse: &InverseClaim, limit: u64) -> Answer {
    let mut reached = HashSet::new();
    let there = each_point(&instance.domain, limit, |index| {
        if instance.claim.admits(index, &instance.symbols) {
            reached.extend(instance.claim.map.eval(index, &instance.symbols).ok());
        }
        hit(instance.claim, inverse, &instance.symbols, index)
    });
    let Answer::Holds(points) = there else { return there };
    let places = each_point(&instance.shape, limit, |place| {
        let used = is_padding(inverse, &instance.symbols, place) != Some(true);
        (used && !reached.contains(place)).then(|| nothing_there(instance, inverse, place))
    });
    match places {
        Answer::Holds(more) => Answer::Holds(points + more),
        other => other,
    }
}

/// The counterexample of a physical index that is not padding and not reached.
fn nothing_there(instance: &Instance<'_>, inverse: &InverseClaim, place: &[i128]) -> Counterexample {
    let text = format!("{} is said to be no padding, but nothing lands on it", tuple(place));
    at(instance.claim, &instance.symbols, &[], text).about(&inverse.vars, place)
}

/// A counterexample if a logical index has no image, or is mapped to padding.
fn hit(claim: MapClaim<'_>, inverse: &InverseClaim, symbols: &Bindings, point: &[i128]) -> Option<Counterexample> {
    if !claim.admits(point, symbols) {
        return None;
    }
    let image = match claim.map.eval(point, symbols) {
        Ok(image) => image,
        Err(error) => return Some(at(claim, symbols, &[point], format!("{} has no image: {error}", tuple(point)))),
    };
    let text = match is_padding(inverse, symbols, &image) {
        Some(false) => return None,
        Some(true) => format!("{} lands on {}, which is said to be padding", tuple(point), tuple(&image)),
        None => format!("{} lands on {}, of which the padding says nothing", tuple(point), tuple(&image)),
    };
    Some(at(claim, symbols, &[point], text))
}

/// Tries some points of a shape that is too large for enumeration.
fn sampled(case: &Case<'_>) -> Option<Decision> {
    let (instance, inverse) = (case.constant()?, case.claim.inverse?);
    let found = case.claim.sample(|point, _| hit(case.claim, inverse, &instance.symbols, point))?;
    Some((Verdict::Refuted(found), Method::Enumeration(Points::Some)))
}

/// Z3 with a small budget.
fn brief(case: &Case<'_>) -> Option<Decision> {
    briefly(case, by_z3)
}

/// Asks Z3 whether no index is mapped to padding, and whether the inverse shows that all other places are reached.
fn by_z3(case: &Case<'_>) -> Option<Decision> {
    // A wrong inverse does not refute the padding predicate.
    let right = || match right(case) {
        Some((Verdict::Refuted(_), method)) => {
            Some((Verdict::Unknown(Reason::undecided("the inverse is wrong")), method))
        }
        other => other,
    };
    Some(both(untouched(case)?, right))
}

/// The conjunction of two decisions; the second one is made only if the first is proved.
pub(super) fn both(first: Decision, second: impl FnOnce() -> Option<Decision>) -> Decision {
    let (Verdict::Proved(grounds), method) = first else { return first };
    match second() {
        Some((Verdict::Proved(more), other)) if other == method => (Verdict::Proved(grounds.and(more)), method),
        Some((Verdict::Proved(more), other)) => (Verdict::Proved(grounds.and(more)), Method::Each(vec![method, other])),
        Some(other) => other,
        None => (Verdict::Unknown(Reason::undecided("nothing is claimed")), method),
    }
}

/// Asks Z3 whether no logical index is mapped to padding.
fn untouched(case: &Case<'_>) -> Option<Decision> {
    let (claim, inverse) = (case.claim, case.claim.inverse?);
    let mut names = Names::default();
    let mut question = claim.question(case.judge, &mut names);
    let vars = claim.assume(&mut question, &mut names, "");
    let there = value::shown(claim.map.outputs(), &mut names, &mut question);
    for (var, output) in inverse.vars.iter().zip(claim.outputs(&mut names)) {
        names.bind(var, output);
    }
    let valued = there.and_then(|there| Ok(there.and(value::shown([&inverse.padding], &mut names, &mut question)?)));
    let from = question.steps().len();
    let goal = names.prop(&inverse.padding).negate().with_negations_inside();
    let result = valued.and_then(|valued| Ok(valued.and(question.settle(&goal)?)));
    Some(decide("map padding", result, &question, from, |model| {
        let point = from_model(model, claim.map.vars(), &vars)?;
        hit(claim, inverse, &symbols_from(model, &mut names, case.symbols()), &point)
    }))
}
