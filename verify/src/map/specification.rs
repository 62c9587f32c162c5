//! Obligation specification: the map is equal to its meaning, stated a second time by somebody else.

use tilewright_ir::Bindings;

use super::{MapClaim, QUICK, at, from_model, symbols_from};
use crate::concrete::tuple;
use crate::judge::{Decision, Judge, decide, vacuity};
use crate::term::Prop;
use crate::translate::Names;
use crate::verdict::{Counterexample, Verdict};

/// Both maps have the same value at every index of the domain.
pub(super) fn specification(judge: &Judge, claim: MapClaim<'_>) -> Decision {
    if let Some(decision) = crate::digits::decide(judge, &claim, "specification") {
        return decision;
    }
    let Some(meaning) = claim.meaning else { return (Verdict::Unknown("no meaning is stated".into()), "none".into()) };
    let quick = claim.search(QUICK, |symbols, _, point, _| different(claim, symbols, point));
    if let Some(found) = quick {
        return (Verdict::Refuted(found), "enumeration".into());
    }
    let mut names = Names::default();
    let mut prover = claim.prover(judge, &mut names);
    let vars = claim.assume(&mut prover, &mut names, "");
    if !claim.has_points()
        && let Some(vacuous) = vacuity(&prover)
    {
        return vacuous;
    }
    let from = prover.context().steps().len();
    for (var, term) in meaning.vars().iter().zip(&vars) {
        names.bind(var, term.clone());
    }
    let outputs = claim.outputs(&mut names);
    let stated = meaning.outputs().iter().map(|output| names.term(output)).collect::<Vec<_>>();
    let goal = Prop::all(outputs.iter().zip(&stated).map(|(output, stated)| output.equals(stated)));
    let result = prover.prove(&goal).map(drop);
    decide("map specification", result, &prover, from, |model| {
        let point = from_model(model, claim.map.vars(), &vars)?;
        different(claim, &symbols_from(model, &mut names, &claim.symbols()), &point)
    })
}

/// An index where the map and its meaning differ.
fn different(claim: MapClaim<'_>, symbols: &Bindings, point: &[i128]) -> Option<Counterexample> {
    let (image, stated) = (claim.map.eval(point, symbols).ok()?, claim.meaning?.eval(point, symbols).ok()?);
    let text = format!("{} lands on {}, but its meaning is {}", tuple(point), tuple(&image), tuple(&stated));
    (image != stated).then(|| at(claim, symbols, &[point], text))
}
