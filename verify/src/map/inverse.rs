//! Obligation inverse: the claimed inverse is a left inverse of the map on the domain, and a right inverse off the padding.
//!
//! ```text
//! map      lambda c: [c // 4, c % 4]    on 0..17 into (5, 4)
//! inverse  lambda p, q: [p * 4 + q]     padding: p * 4 + q > 16
//! ```
//!
//! The left inverse is a statement about the 17 logical indices, the right inverse one about the 17 of 20 physical indices
//! that are not padding. Each component of a composition is enumerated over the axes that it depends on; Z3 is asked for the
//! conjunction of all components.

use std::collections::BTreeSet;

use tilewright_ir::sabotage;
use tilewright_ir::{Bindings, EvalError, InverseClaim};

use super::case::{Case, Loops, briefly, certified, digits, empty, large, medium, small, wide};
use super::instance::{Answer, Instance, mentioned, narrowed};
use super::{MapClaim, Obligation, at, bits, fast, from_model, symbols_from, value};
use crate::concrete::{extents, tuple};
use crate::judge::{Decision, decide};
use crate::method::{Method, Points};
use crate::obligation::Obligation as Id;
use crate::question::index_of;
use crate::reason::Reason;
use crate::term::{Prop, Term};
use crate::translate::Names;
use crate::verdict::{Counterexample, Verdict};

/// `inverse(map(x)) = x` on the domain, and `map(inverse(p)) = p` for every physical index that is not padding.
pub(super) const OBLIGATION: Obligation = (
    Id::Inverse,
    Loops { fast: fast::outputs::inverse, plain: everywhere },
    &[certified, empty, small, digits, bits::inverse, medium, brief, wide, sampled, large, by_z3],
);

/// Looks at each component of both compositions at all points of the axes that it depends on.
fn everywhere(instance: &Instance<'_>, limit: u64) -> Answer {
    let Some(inverse) = instance.claim.inverse else { return Answer::Open(Reason::undecided("no inverse is claimed")) };
    let boxes = inverse.outputs.iter().enumerate().map(|(axis, back)| {
        let images = mentioned(back, &inverse.vars);
        instance.box_over(images.into_iter().flat_map(|output| instance.axes_of(output)).chain([axis]).collect())
    });
    // Every index has an image, whether the inverse makes use of each output or not.
    let valued = (0..instance.shape.len()).map(|output| instance.box_over(instance.axes_of(output)));
    let there = instance.in_boxes(boxes.chain(valued).collect(), limit, |index| {
        lost(instance.claim, inverse, &instance.symbols, index)
    });
    let Answer::Holds(points) = there else { return there };
    if sabotage::on("right-inverse-ignored") {
        return Answer::Holds(points);
    }
    match reached(instance, inverse, limit) {
        Answer::Holds(more) => Answer::Holds(points.saturating_add(more)),
        other => other,
    }
}

/// Looks at the physical indices: each one is padding, or the image of its inverse.
pub(super) fn reached(instance: &Instance<'_>, inverse: &InverseClaim, limit: u64) -> Answer {
    if instance.shape.iter().any(|&extent| extent < 1) {
        return Answer::Holds(0);
    }
    let map = instance.claim.map;
    let places_of = |axis: usize| mentioned(&inverse.outputs[axis], &inverse.vars);
    // Each statement is about the padding as well.
    let box_over = |places: BTreeSet<usize>| {
        narrowed(&instance.shape, &places.into_iter().chain(mentioned(&inverse.padding, &inverse.vars)).collect())
    };
    let inside = (0..inverse.outputs.len()).map(|axis| box_over(places_of(axis)));
    let again = map.outputs().iter().enumerate().map(|(output, expr)| {
        box_over(mentioned(expr, map.vars()).into_iter().flat_map(places_of).chain([output]).collect())
    });
    let admitted = instance
        .claim
        .predicate
        .map(|predicate| box_over(mentioned(predicate, map.vars()).into_iter().flat_map(places_of).collect()));
    let padding = box_over(BTreeSet::new());
    instance.in_boxes(inside.chain(again).chain(admitted).chain([padding]).collect(), limit, |place| {
        unreached(instance.claim, inverse, &instance.symbols, place)
    })
}

/// Tries some points of a shape that is too large for enumeration.
fn sampled(case: &Case<'_>) -> Option<Decision> {
    let (instance, inverse) = (case.constant()?, case.claim.inverse?);
    let found = case.claim.sample(|point, _| lost(case.claim, inverse, &instance.symbols, point))?;
    Some((Verdict::Refuted(found), Method::Enumeration(Points::Some)))
}

/// Z3 with a small budget.
fn brief(case: &Case<'_>) -> Option<Decision> {
    briefly(case, by_z3)
}

/// Asks Z3 about both compositions.
pub(super) fn by_z3(case: &Case<'_>) -> Option<Decision> {
    Some(super::padding::both(left(case)?, || right(case)))
}

/// The logical index that the claimed inverse takes a physical index to.
fn back_from(inverse: &InverseClaim, symbols: &Bindings, place: &[i128]) -> Result<Vec<i128>, EvalError> {
    inverse.outputs.iter().map(|output| output.eval_index_at(&inverse.vars, place, symbols)).collect()
}

/// Whether the claim calls a physical index padding; `None` if the predicate has no value there.
pub(super) fn is_padding(inverse: &InverseClaim, symbols: &Bindings, place: &[i128]) -> Option<bool> {
    inverse.padding.eval_index_at(&inverse.vars, place, symbols).ok().map(|value| value != 0)
}

/// A counterexample if a logical index has no image, or the inverse does not map its image back to it.
pub(super) fn lost(
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
    let back = back_from(inverse, symbols, &image);
    let text = match back {
        Ok(back) if back == point => return None,
        Ok(back) => format!("{} lands on {}, which the inverse takes to {}", tuple(point), tuple(&image), tuple(&back)),
        Err(error) => format!("{} lands on {}, where the inverse has no value: {error}", tuple(point), tuple(&image)),
    };
    Some(at(claim, symbols, &[point], text))
}

/// A counterexample if a physical index is not padding and is not the image of its inverse.
pub(super) fn unreached(
    claim: MapClaim<'_>,
    inverse: &InverseClaim,
    symbols: &Bindings,
    place: &[i128],
) -> Option<Counterexample> {
    if is_padding(inverse, symbols, place) == Some(true) {
        return None;
    }
    // The map is evaluated only inside its domain: an inverse that leaves the domain is wrong, even if the map happens
    // to lead back from there.
    let domain = extents(claim.map.domain(), symbols)?;
    let back = back_from(inverse, symbols, place).ok();
    let inside =
        back.as_ref().is_some_and(|back| back.iter().zip(&domain).all(|(at, extent)| (0..*extent).contains(at)));
    let inside = inside && back.as_ref().is_some_and(|back| claim.admits(back, symbols));
    let again = back.as_ref().filter(|_| inside).and_then(|back| claim.map.eval(back, symbols).ok());
    let text = match (&back, again) {
        (_, Some(again)) if again == place => return None,
        (Some(back), Some(again)) => {
            format!("the inverse takes {} to {}, which lands on {}", tuple(place), tuple(back), tuple(&again))
        }
        (Some(back), None) => {
            format!(
                "{} is said to be no padding, but the inverse takes it to {}, outside the {}",
                tuple(place),
                tuple(back),
                if claim.predicate.is_some() { "restricted domain" } else { "shape" }
            )
        }
        (None, _) => format!("{} is said to be no padding, but the inverse has no value there", tuple(place)),
    };
    Some(at(claim, symbols, &[], text).about(&inverse.vars, place))
}

/// Asks Z3 whether the inverse maps the image of every logical index back to it; `None` if no inverse is claimed.
pub(super) fn left(case: &Case<'_>) -> Option<Decision> {
    let (claim, inverse) = (case.claim, case.claim.inverse?);
    let mut names = Names::default();
    let mut question = claim.question(case.judge, &mut names);
    let vars = claim.assume(&mut question, &mut names, "");
    let there = value::shown(claim.map.outputs(), &mut names, &mut question);
    for (var, output) in inverse.vars.iter().zip(claim.outputs(&mut names)) {
        names.bind(var, output);
    }
    let valued = there.and_then(|there| Ok(there.and(value::shown(&inverse.outputs, &mut names, &mut question)?)));
    let from = question.steps().len();
    let back: Vec<Term> = inverse.outputs.iter().map(|output| names.term(output)).collect();
    let goal = Prop::all(back.iter().zip(&vars).map(|(back, var)| back.equals(var)));
    let result = valued.and_then(|valued| Ok(valued.and(question.settle(&goal)?)));
    Some(decide("map inverse", result, &question, from, |model| {
        let point = from_model(model, claim.map.vars(), &vars)?;
        lost(claim, inverse, &symbols_from(model, &mut names, case.symbols()), &point)
    }))
}

/// Asks Z3 whether every physical index that is not padding is the image of its inverse; `None` if no inverse is claimed.
pub(super) fn right(case: &Case<'_>) -> Option<Decision> {
    let (claim, inverse) = (case.claim, case.claim.inverse?);
    let mut names = Names::default();
    let mut question = claim.question(case.judge, &mut names);
    let vars = index_of(&inverse.vars, claim.shape, &mut question, &mut names, "");
    let said = value::shown_or_open([&inverse.padding], &mut names, &mut question);
    // Negations are moved inside so that the premise becomes comparisons, which the question can use one by one.
    let reached = names.prop(&inverse.padding).negate().with_negations_inside();
    question.assume(&reached, "no padding");
    let there = said.and_then(|said| Ok(said.and(value::shown_or_open(&inverse.outputs, &mut names, &mut question)?)));
    let back: Vec<Term> = inverse.outputs.iter().map(|output| names.term(output)).collect();
    let mut goals = Vec::new();
    for ((var, extent), back) in claim.map.vars().iter().zip(claim.map.domain()).zip(back) {
        let extent = names.term(extent);
        goals.push(back.at_least(0).and(back.less(extent)));
        names.bind(var, back);
    }
    let needed = claim.map.outputs().iter().chain(claim.predicate);
    let valued = there.and_then(|there| Ok(there.and(value::shown_or_open(needed, &mut names, &mut question)?)));
    goals.extend(claim.predicate.map(|predicate| names.prop(predicate)));
    let from = question.steps().len();
    let again = claim.outputs(&mut names);
    goals.extend(again.iter().zip(&vars).map(|(again, var)| again.equals(var)));
    let result = valued.and_then(|valued| Ok(valued.and(question.settle(&Prop::all(goals))?)));
    Some(decide("map right inverse", result, &question, from, |model| {
        let place = from_model(model, &inverse.vars, &vars)?;
        unreached(claim, inverse, &symbols_from(model, &mut names, case.symbols()), &place)
    }))
}
