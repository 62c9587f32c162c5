//! Obligation bounds: every result index lies in the physical shape.

use tilewright_ir::Bindings;

use super::{MapClaim, QUICK, at, from_model, symbols_from};
use crate::concrete::{extents, tuple};
use crate::judge::{Decision, Judge, decide, vacuity};
use crate::translate::Names;
use crate::verdict::{Counterexample, Verdict};

fn outside(claim: MapClaim<'_>, symbols: &Bindings, shape: &[i128], point: &[i128]) -> Option<Counterexample> {
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

/// Every result index lies in the physical shape.
pub(super) fn bounds(judge: &Judge, claim: MapClaim<'_>) -> Decision {
    if let Some(decision) = crate::digits::decide(judge, &claim, "bounds") {
        return decision;
    }
    let quick = claim.search(QUICK, |symbols, shape, point, _| outside(claim, symbols, shape, point));
    if let Some(found) = quick {
        return (Verdict::Refuted(found), "evaluation".into());
    }
    let mut names = Names::default();
    let symbols = claim.symbols();
    let mut prover = claim.prover(judge, &mut names);
    let vars = claim.assume(&mut prover, &mut names, "");
    if !claim.has_points()
        && let Some(vacuous) = vacuity(&prover)
    {
        return vacuous;
    }
    let from = prover.context().steps().len();
    let outputs = claim.outputs(&mut names);
    let mut result = Ok(());
    for (output, extent) in outputs.iter().zip(claim.shape) {
        let extent = names.term(extent);
        result = prover.prove(&output.at_least(0).and(output.less(extent))).map(drop);
        if result.is_err() {
            break;
        }
    }
    decide("map bounds", result, &prover, from, |model| {
        let point = from_model(model, claim.map.vars(), &vars)?;
        let symbols = symbols_from(model, &mut names, &symbols);
        outside(claim, &symbols, &extents(claim.shape, &symbols)?, &point)
    })
}
