//! Obligations inverse and padding: a claimed inverse takes every logical index back, and exactly the padding is reached
//! by nothing.

use tilewright_ir::{Bindings, IndexMap, InverseClaim};

use super::{MapClaim, QUICK, assume_index, at, from_model, symbols_from};
use crate::concrete::{extents, points, tuple};
use crate::judge::{Decision, Judge, decide, vacuity};
use crate::term::{Prop, Term};
use crate::translate::Names;
use crate::verdict::{Counterexample, Verdict};

/// `inverse(map(x)) = x` on the domain, and `map(inverse(p)) = p` off the padding.
pub(super) fn inverse(judge: &Judge, claim: MapClaim<'_>) -> Decision {
    if let Some(decision) = crate::digits::decide(judge, &claim, "inverse") {
        return decision;
    }
    let Some(inverse) = claim.inverse else { return nothing_claimed() };
    let quick = claim.search(QUICK, |symbols, _, point, _| lost(claim, inverse, symbols, point));
    if let Some(found) = quick.or_else(|| small_physical(claim, inverse, unreached)) {
        return (Verdict::Refuted(found), "enumeration".into());
    }
    match left(judge, claim, inverse) {
        (Verdict::Proved, method) => match right(judge, claim, inverse) {
            (Verdict::Proved, other) if other == method => (Verdict::Proved, method),
            (Verdict::Proved, other) => (Verdict::Proved, format!("{method}; {other}")),
            other => other,
        },
        other => other,
    }
}

/// No logical index lands on the padding, and what is no padding is reached: by its inverse.
pub(super) fn padding(judge: &Judge, claim: MapClaim<'_>) -> Decision {
    if let Some(decision) = crate::digits::decide(judge, &claim, "padding") {
        return decision;
    }
    let Some(inverse) = claim.inverse else { return nothing_claimed() };
    let quick = claim.search(QUICK, |symbols, _, point, _| hit(claim, inverse, symbols, point));
    if let Some(found) = quick.or_else(|| small_physical(claim, inverse, unreached)) {
        return (Verdict::Refuted(found), "enumeration".into());
    }
    match untouched(judge, claim, inverse) {
        (Verdict::Proved, method) => match right(judge, claim, inverse) {
            (Verdict::Proved, other) if other == method => (Verdict::Proved, method),
            (Verdict::Proved, other) => (Verdict::Proved, format!("{method}; {other}")),
            other => other,
        },
        other => other,
    }
}

fn nothing_claimed() -> Decision {
    (Verdict::Unknown("no inverse is claimed".into()), "none".into())
}

/// The inverse as an index map on the physical shape.
fn as_map(claim: MapClaim<'_>, inverse: &InverseClaim) -> Option<IndexMap> {
    IndexMap::new(inverse.vars.clone(), claim.shape.to_vec(), inverse.outputs.clone(), Vec::new()).ok()
}

fn is_padding(inverse: &InverseClaim, symbols: &Bindings, place: &[i128]) -> Option<bool> {
    let mut bindings = symbols.clone();
    bindings.extend(inverse.vars.iter().cloned().zip(place.iter().copied()));
    inverse.padding.eval_index(&bindings).ok().map(|value| value != 0)
}

/// A logical index that the inverse does not take back.
fn lost(claim: MapClaim<'_>, inverse: &InverseClaim, symbols: &Bindings, point: &[i128]) -> Option<Counterexample> {
    let image = claim.map.eval(point, symbols).ok()?;
    let back = as_map(claim, inverse)?.eval(&image, symbols);
    let text = match back {
        Ok(back) if back == point => return None,
        Ok(back) => format!("{} lands on {}, which the inverse takes to {}", tuple(point), tuple(&image), tuple(&back)),
        Err(error) => format!("{} lands on {}, where the inverse has no value: {error}", tuple(point), tuple(&image)),
    };
    Some(at(claim, symbols, &[point], text))
}

/// A logical index that lands on the padding.
fn hit(claim: MapClaim<'_>, inverse: &InverseClaim, symbols: &Bindings, point: &[i128]) -> Option<Counterexample> {
    let image = claim.map.eval(point, symbols).ok()?;
    let text = match is_padding(inverse, symbols, &image) {
        Some(false) => return None,
        Some(true) => format!("{} lands on {}, which is said to be padding", tuple(point), tuple(&image)),
        None => format!("{} lands on {}, of which the padding says nothing", tuple(point), tuple(&image)),
    };
    Some(at(claim, symbols, &[point], text))
}

/// A physical index that is said to be reached and is not by its inverse.
fn unreached(
    claim: MapClaim<'_>,
    inverse: &InverseClaim,
    symbols: &Bindings,
    place: &[i128],
) -> Option<Counterexample> {
    if is_padding(inverse, symbols, place) == Some(true) {
        return None;
    }
    let domain = extents(claim.map.domain(), symbols)?;
    let back = as_map(claim, inverse)?.eval(place, symbols).ok();
    let inside =
        back.as_ref().is_some_and(|back| back.iter().zip(&domain).all(|(at, extent)| (0..*extent).contains(at)));
    let again = back.as_ref().filter(|_| inside).and_then(|back| claim.map.eval(back, symbols).ok());
    let text = match (&back, again) {
        (_, Some(again)) if again == place => return None,
        (Some(back), Some(again)) => {
            format!("the inverse takes {} to {}, which lands on {}", tuple(place), tuple(back), tuple(&again))
        }
        (Some(back), None) => {
            format!(
                "{} is said to be no padding, but the inverse takes it to {}, outside the shape",
                tuple(place),
                tuple(back)
            )
        }
        (None, _) => format!("{} is said to be no padding, but the inverse has no value there", tuple(place)),
    };
    Some(at(claim, symbols, &[], text).about(&inverse.vars, place))
}

/// Looks at the physical indices of small instances.
fn small_physical(
    claim: MapClaim<'_>,
    inverse: &InverseClaim,
    look: fn(MapClaim<'_>, &InverseClaim, &Bindings, &[i128]) -> Option<Counterexample>,
) -> Option<Counterexample> {
    claim.instances().iter().find_map(|symbols| {
        let shape = extents(claim.shape, symbols)?;
        points(&shape, QUICK).iter().find_map(|place| look(claim, inverse, symbols, place))
    })
}

fn left(judge: &Judge, claim: MapClaim<'_>, inverse: &InverseClaim) -> Decision {
    let mut names = Names::default();
    let mut prover = claim.prover(judge, &mut names);
    let vars = claim.assume(&mut prover, &mut names, "");
    if !claim.has_points()
        && let Some(vacuous) = vacuity(&prover)
    {
        return vacuous;
    }
    let from = prover.context().steps().len();
    for (var, output) in inverse.vars.iter().zip(claim.outputs(&mut names)) {
        names.bind(var, output);
    }
    let back: Vec<Term> = inverse.outputs.iter().map(|output| names.term(output)).collect();
    let goal = Prop::all(back.iter().zip(&vars).map(|(back, var)| back.equals(var)));
    let result = prover.prove(&goal).map(drop);
    decide("map inverse", result, &prover, from, |model| {
        let point = from_model(model, claim.map.vars(), &vars)?;
        lost(claim, inverse, &symbols_from(model, &mut names, &claim.symbols()), &point)
    })
}

fn untouched(judge: &Judge, claim: MapClaim<'_>, inverse: &InverseClaim) -> Decision {
    let mut names = Names::default();
    let mut prover = claim.prover(judge, &mut names);
    let vars = claim.assume(&mut prover, &mut names, "");
    if !claim.has_points()
        && let Some(vacuous) = vacuity(&prover)
    {
        return vacuous;
    }
    let from = prover.context().steps().len();
    for (var, output) in inverse.vars.iter().zip(claim.outputs(&mut names)) {
        names.bind(var, output);
    }
    let goal = names.prop(&inverse.padding).negate();
    let result = prover.prove(&goal).map(drop);
    decide("map padding", result, &prover, from, |model| {
        let point = from_model(model, claim.map.vars(), &vars)?;
        hit(claim, inverse, &symbols_from(model, &mut names, &claim.symbols()), &point)
    })
}

fn right(judge: &Judge, claim: MapClaim<'_>, inverse: &InverseClaim) -> Decision {
    let mut names = Names::default();
    let mut prover = claim.prover(judge, &mut names);
    let vars = assume_index(&inverse.vars, claim.shape, &mut prover, &mut names, "");
    let reached = names.prop(&inverse.padding).negate();
    prover.assume(&reached, "no padding");
    let from = prover.context().steps().len();
    let back: Vec<Term> = inverse.outputs.iter().map(|output| names.term(output)).collect();
    let mut goals = Vec::new();
    for ((var, extent), back) in claim.map.vars().iter().zip(claim.map.domain()).zip(back) {
        let extent = names.term(extent);
        goals.push(back.at_least(0).and(back.less(extent)));
        names.bind(var, back);
    }
    let again = claim.outputs(&mut names);
    goals.extend(again.iter().zip(&vars).map(|(again, var)| again.equals(var)));
    let result = prover.prove(&Prop::all(goals)).map(drop);
    decide("map right inverse", result, &prover, from, |model| {
        let place = from_model(model, &inverse.vars, &vars)?;
        unreached(claim, inverse, &symbols_from(model, &mut names, &claim.symbols()), &place)
    })
}
