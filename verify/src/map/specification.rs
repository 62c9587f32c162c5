//! Obligation specification: the map equals its meaning, an independent statement of the same map.
//!
//! ```text
//! map      lambda h, w: [h * 7 + w]                   as a pass produced it
//! meaning  lambda h, w: [(0 * 5 + h) * 7 + w]         as the judge states it
//! ```
//!
//! The two maps have the same domain; their outputs are compared one by one.

use tilewright_ir::Bindings;

use super::case::{Case, Loops, briefly, certified, digits, empty, large, medium, small, wide};
use super::instance::{Answer, Instance, mentioned};
use super::{MapClaim, Obligation, at, bits, fast, from_model, symbols_from, value};
use crate::concrete::tuple;
use crate::judge::{Decision, decide};
use crate::method::{Method, Points};
use crate::obligation::Obligation as Id;
use crate::reason::Reason;
use crate::term::Prop;
use crate::translate::Names;
use crate::verdict::{Counterexample, Verdict};

/// Both maps have the same value at every index of the domain.
pub(super) const OBLIGATION: Obligation = (
    Id::Specification,
    Loops { fast: fast::outputs::specification, plain: everywhere },
    &[certified, empty, small, digits, bits::specification, medium, brief, wide, sampled, large, by_z3],
);

/// Looks at each output and its meaning at all points of the axes that they depend on.
fn everywhere(instance: &Instance<'_>, limit: u64) -> Answer {
    let Some(meaning) = instance.claim.meaning else { return Answer::Open(Reason::undecided("no meaning is claimed")) };
    let boxes = meaning.outputs().iter().enumerate().map(|(output, stated)| {
        let mut axes = instance.axes_of(output);
        axes.extend(mentioned(stated, meaning.vars()));
        instance.box_over(axes)
    });
    instance.in_boxes(boxes.collect(), limit, |index| different(instance.claim, &instance.symbols, index))
}

/// Tries some points of a shape that is too large for enumeration.
fn sampled(case: &Case<'_>) -> Option<Decision> {
    let instance = case.constant()?;
    let found = case.claim.sample(|point, _| different(case.claim, &instance.symbols, point))?;
    Some((Verdict::Refuted(found), Method::Enumeration(Points::Some)))
}

/// Z3 with a small budget.
fn brief(case: &Case<'_>) -> Option<Decision> {
    briefly(case, by_z3)
}

/// Asks Z3 whether both maps are equal on the domain.
pub(super) fn by_z3(case: &Case<'_>) -> Option<Decision> {
    let claim = case.claim;
    let meaning = claim.meaning?;
    let mut names = Names::default();
    let mut question = claim.question(case.judge, &mut names);
    let vars = claim.assume(&mut question, &mut names, "");
    let there = value::shown(claim.map.outputs(), &mut names, &mut question);
    let outputs = claim.outputs(&mut names);
    let mut inside = names.renamed(meaning.vars(), &vars);
    let valued = there.and_then(|there| Ok(there.and(value::shown(meaning.outputs(), &mut inside, &mut question)?)));
    let stated = meaning.outputs().iter().map(|output| inside.term(output)).collect::<Vec<_>>();
    let from = question.steps().len();
    let goal = Prop::all(outputs.iter().zip(&stated).map(|(output, stated)| output.equals(stated)));
    let result = valued.and_then(|valued| Ok(valued.and(question.settle(&goal)?)));
    Some(decide("map specification", result, &question, from, |model| {
        let point = from_model(model, claim.map.vars(), &vars)?;
        different(claim, &symbols_from(model, &mut names, case.symbols()), &point)
    }))
}

/// An index where the map and its meaning differ.
pub(super) fn different(claim: MapClaim<'_>, symbols: &Bindings, point: &[i128]) -> Option<Counterexample> {
    if !claim.admits(point, symbols) {
        return None;
    }
    let (image, stated) = (claim.map.eval(point, symbols), claim.meaning?.eval(point, symbols));
    let text = match (&image, &stated) {
        (Ok(image), Ok(stated)) if image == stated => return None,
        (Ok(image), Ok(stated)) => {
            format!("{} lands on {}, but its meaning is {}", tuple(point), tuple(image), tuple(stated))
        }
        (Err(error), _) => format!("{} has no image: {error}", tuple(point)),
        (_, Err(error)) => format!("{} has no meaning: {error}", tuple(point)),
    };
    Some(at(claim, symbols, &[point], text))
}
