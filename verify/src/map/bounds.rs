//! Obligation bounds: every result index lies in the physical shape.
//!
//! ```text
//! lambda i: [i + 1]    on (4) into (4)    refuted: 3 lands on 4, outside the physical shape 4
//! ```
//!
//! An index without a value, such as `i // 0`, is outside too.
//!
//! The proof by Z3 rests on two facts for each output: that it has a value (`value`), and that the value is in
//! `0..extent` under the premises that the index is in the domain, extents are at least 1, and the assumptions hold.

use tilewright_ir::Bindings;

use super::case::{Case, Loops, briefly, certified, digits, empty, large, medium, small, wide};
use super::instance::{Answer, Instance};
use super::{MapClaim, Obligation, at, bits, fast, from_model, symbols_from, value};
use crate::concrete::{stated_extents, tuple};
use crate::judge::{Decision, decide};
use crate::method::{Method, Points};
use crate::obligation::Obligation as Id;
use crate::term::Prop;
use crate::translate::Names;
use crate::verdict::{Counterexample, Verdict};

/// Every result index lies in the physical shape.
pub(super) const OBLIGATION: Obligation = (
    Id::Bounds,
    Loops { fast: fast::outputs::bounds, plain: everywhere },
    &[certified, empty, small, digits, bits::bounds, medium, brief, wide, sampled, large, by_z3],
);

/// A counterexample if the image of a point has no value or lies outside the physical shape.
pub(super) fn outside(
    claim: MapClaim<'_>,
    symbols: &Bindings,
    shape: &[i128],
    point: &[i128],
) -> Option<Counterexample> {
    if !claim.admits(point, symbols) {
        return None;
    }
    let image = match claim.map.eval(point, symbols) {
        Ok(image) => image,
        Err(error) => {
            let text = format!("{} has no image: {error}", tuple(point));
            return Some(at(claim, symbols, &[point], text));
        }
    };
    let inside = image.iter().zip(shape).all(|(index, extent)| (0..*extent).contains(index));
    let text = format!("{} lands on {}, outside the physical shape {}", tuple(point), tuple(&image), tuple(shape));
    (!inside).then(|| at(claim, symbols, &[point], text))
}

/// Looks at each output at all points of the axes that it depends on.
fn everywhere(instance: &Instance<'_>, limit: u64) -> Answer {
    let boxes = (0..instance.shape.len()).map(|output| instance.box_over(instance.axes_of(output)));
    instance
        .in_boxes(boxes.collect(), limit, |index| outside(instance.claim, &instance.symbols, &instance.shape, index))
}

/// Tries some points of a shape that is too large for enumeration.
fn sampled(case: &Case<'_>) -> Option<Decision> {
    let instance = case.constant()?;
    let found = case.claim.sample(|point, _| outside(case.claim, &instance.symbols, &instance.shape, point))?;
    Some((Verdict::Refuted(found), Method::Enumeration(Points::Some)))
}

/// Z3 with a small budget.
fn brief(case: &Case<'_>) -> Option<Decision> {
    briefly(case, by_z3)
}

/// Asks Z3 whether each output lies in its extent, after all outputs have been shown to have a value.
#[expect(clippy::unnecessary_wraps, reason = "the signature of a tier")]
pub(super) fn by_z3(case: &Case<'_>) -> Option<Decision> {
    let claim = case.claim;
    let mut names = Names::default();
    let mut question = claim.question(case.judge, &mut names);
    let vars = claim.assume(&mut question, &mut names, "");
    let valued = value::shown(claim.map.outputs(), &mut names, &mut question);
    let from = question.steps().len();
    let outputs = claim.outputs(&mut names);
    let inside = outputs.iter().zip(claim.shape).map(|(output, extent)| {
        let extent = names.term(extent);
        output.at_least(0).and(output.less(extent))
    });
    let goal = Prop::all(inside.collect::<Vec<_>>());
    let result = valued.and_then(|valued| Ok(valued.and(question.settle(&goal)?)));
    Some(decide("map bounds", result, &question, from, |model| {
        let point = from_model(model, claim.map.vars(), &vars)?;
        let symbols = symbols_from(model, &mut names, case.symbols());
        match stated_extents(claim.shape, &symbols) {
            Some(shape) => outside(claim, &symbols, &shape, &point),
            None => Some(shapeless(claim, &symbols, &point)),
        }
    }))
}

/// The counterexample of symbols for which the physical shape has no value: the map leads nowhere.
fn shapeless(claim: MapClaim<'_>, symbols: &Bindings, point: &[i128]) -> Counterexample {
    let text = match claim.map.eval(point, symbols) {
        Ok(image) => format!("{} lands on {}, but the physical shape has no value", tuple(point), tuple(&image)),
        Err(error) => format!("{} has no image: {error}", tuple(point)),
    };
    at(claim, symbols, &[point], text)
}
