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

use super::case::{Case, Loops, briefly, certified, digits, empty, large, medium, small, wide};
use super::instance::{Answer, Instance, count, mentioned};
use super::inverse::{is_padding, right};
use super::{MapClaim, Obligation, at, bits, fast, from_model, symbols_from, value};
use crate::concrete::{row_major, tuple};
use crate::judge::{Decision, decide};
use crate::method::{Method, Points};
use crate::obligation::Obligation as Id;
use crate::reason::Reason;
use crate::translate::Names;
use crate::verdict::{Counterexample, Verdict};

/// Greatest number of physical indices that are remembered one by one.
const REMEMBERED: u64 = 1 << 15;

/// No logical index is mapped to padding, and every other physical index is reached. Z3 shows the second part with the
/// inverse.
pub(super) const OBLIGATION: Obligation = (
    Id::Padding,
    Loops { fast: fast::padding::padding, plain: everywhere },
    &[certified, empty, small, digits, bits::padding, medium, brief, wide, sampled, large, by_z3],
);

/// Looks at all logical indices to see whether one is mapped to padding, and at all physical indices to see whether each other
/// one is reached: all of them are remembered, or if they are many the claimed inverse says from where.
fn everywhere(instance: &Instance<'_>, limit: u64) -> Answer {
    let Some(inverse) = instance.claim.inverse else { return Answer::Open(Reason::undecided("no inverse is claimed")) };
    let images = mentioned(&inverse.padding, &inverse.vars);
    let asked = instance.box_over(images.into_iter().flat_map(|output| instance.axes_of(output)).collect());
    // Every index has an image, whether the predicate makes use of each output or not.
    let valued = (0..instance.shape.len()).map(|output| instance.box_over(instance.axes_of(output)));
    let there = instance.in_boxes(valued.chain([asked]).collect(), limit, |index| {
        hit(instance.claim, inverse, &instance.symbols, index)
    });
    let Answer::Holds(points) = there else { return there };
    let used = instance.box_over((0..instance.shape.len()).flat_map(|output| instance.axes_of(output)).collect());
    let is_small = |extents: &[i128]| count(extents).is_some_and(|points| points <= REMEMBERED.min(limit));
    let reached = if is_small(&used) && is_small(&instance.shape) {
        all_reached(instance, inverse, &used)
    } else {
        match super::inverse::reached(instance, inverse, limit) {
            // A wrong inverse does not refute the padding predicate.
            Answer::Fails(_) => Answer::Open(Reason::undecided("the inverse is wrong")),
            answer => answer,
        }
    };
    match reached {
        Answer::Holds(more) => Answer::Holds(points.saturating_add(more)),
        other => other,
    }
}

/// Compares the physical indices that the indices of a box reach with the padding predicate.
fn all_reached(instance: &Instance<'_>, inverse: &InverseClaim, used: &[i128]) -> Answer {
    let mut reached = HashSet::new();
    for index in row_major(used) {
        if instance.claim.admits(&index, &instance.symbols) || sabotage::on("excluded-reach") {
            reached.extend(instance.claim.map.eval(&index, &instance.symbols).ok());
        }
    }
    instance.in_boxes(vec![instance.shape.clone()], REMEMBERED, |place| {
        let is_used = is_padding(inverse, &instance.symbols, place) != Some(true);
        (is_used && !reached.contains(place)).then(|| nothing_there(instance, inverse, place))
    })
}

/// The counterexample of a physical index that is not padding and not reached.
pub(super) fn nothing_there(instance: &Instance<'_>, inverse: &InverseClaim, place: &[i128]) -> Counterexample {
    let text = format!("{} is said to be no padding, but nothing lands on it", tuple(place));
    at(instance.claim, &instance.symbols, &[], text).about(&inverse.vars, place)
}

/// A counterexample if a logical index has no image, or is mapped to padding.
pub(super) fn hit(
    claim: MapClaim<'_>,
    inverse: &InverseClaim,
    symbols: &Bindings,
    point: &[i128],
) -> Option<Counterexample> {
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
pub(super) fn by_z3(case: &Case<'_>) -> Option<Decision> {
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
