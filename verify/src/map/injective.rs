//! Obligation injective: different logical indices never share a physical one.

use std::collections::HashMap;

use tilewright_ir::Bindings;

use super::{MapClaim, QUICK, THOROUGH, at, from_model, symbols_from};
use crate::concrete::tuple;
use crate::judge::{Decision, Judge, decide, vacuity};
use crate::kernel::{Fact, Failure};
use crate::prove::Prover;
use crate::term::{Prop, Term};
use crate::translate::Names;
use crate::verdict::{Counterexample, Verdict};

/// Two indices of one image, by evaluation.
fn collision(claim: MapClaim<'_>, symbols: &Bindings, a: &[i128], b: &[i128]) -> Option<Counterexample> {
    let image = claim.map.eval(a, symbols).ok()?;
    let text = format!("{} and {} both land on {}", tuple(a), tuple(b), tuple(&image));
    (a != b && claim.map.eval(b, symbols).ok()? == image).then(|| at(claim, symbols, &[a, b], text))
}

/// The first collision among at most `limit` points an instance.
fn find_collision(claim: MapClaim<'_>, limit: usize) -> Option<Counterexample> {
    let mut seen: HashMap<Vec<i128>, Vec<i128>> = HashMap::new();
    let mut instance = None;
    claim.search(limit, |symbols, _, point, image| {
        if instance.as_ref() != Some(symbols) {
            seen.clear();
            instance = Some(symbols.clone());
        }
        let first = seen.entry(image?).or_insert_with(|| point.to_vec());
        if first == point { None } else { collision(claim, symbols, first, point) }
    })
}

/// Different logical indices never share a physical one.
pub(super) fn injective(judge: &Judge, claim: MapClaim<'_>) -> Decision {
    if let Some(decision) = crate::digits::decide(judge, &claim, "injective") {
        return decision;
    }
    if let Some(found) = find_collision(claim, QUICK) {
        return (Verdict::Refuted(found), "evaluation".into());
    }
    let mut names = Names::default();
    let symbols = claim.symbols();
    let mut prover = claim.prover(judge, &mut names);
    let a = claim.assume(&mut prover, &mut names, "");
    let left = claim.outputs(&mut names);
    let b = claim.assume(&mut prover, &mut names, "'");
    let right = claim.outputs(&mut names);
    if !claim.has_points()
        && let Some(vacuous) = vacuity(&prover)
    {
        return vacuous;
    }
    let from = prover.context().steps().len();
    let result = same_image(&mut prover, &left, &right, &a, &b);
    let decision = decide("map injective", result, &prover, from, |model| {
        let (first, second) = (from_model(model, claim.map.vars(), &a)?, from_model(model, claim.map.vars(), &b)?);
        let symbols = symbols_from(model, &mut names, &symbols);
        collision(claim, &symbols, &first, &second)
    });
    match decision {
        (Verdict::Unknown(reason), method) => by_enumeration(claim, reason, method),
        decided => decided,
    }
}

/// From equal images to equal indices.
fn same_image(prover: &mut Prover<'_>, left: &[Term], right: &[Term], a: &[Term], b: &[Term]) -> Result<(), Failure> {
    let mut digits: Vec<Fact> = Vec::new();
    for (this, other) in left.iter().zip(right) {
        let same = this.equals(other);
        prover.assume(&same, "both have the same image");
        if let Some(fact) = prover.known(&same)
            && let Some(found) = prover.digits_equal(this, other, &fact)
        {
            digits.extend(found);
        }
    }
    for fact in digits {
        prover.keep(&fact);
    }
    let goal = Prop::all(a.iter().zip(b).map(|(x, y)| x.equals(y)));
    prover.prove(&goal).map(drop)
}

/// Where Z3 gives up: every point, if they are few enough.
fn by_enumeration(claim: MapClaim<'_>, reason: String, method: String) -> Decision {
    let count = claim.map.domain().iter().try_fold(1i128, |count, extent| count.checked_mul(extent.as_const_int()?));
    match count.and_then(|count| usize::try_from(count).ok()).filter(|&count| count <= THOROUGH) {
        _ if !claim.symbols().is_empty() => (Verdict::Unknown(reason), method),
        None => (Verdict::Unknown(reason), method),
        Some(count) => match find_collision(claim, THOROUGH) {
            Some(found) => (Verdict::Refuted(found), "evaluation".into()),
            None => (Verdict::Proved, format!("enumeration of {count} points")),
        },
    }
}
