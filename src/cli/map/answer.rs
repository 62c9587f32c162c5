//! The answer to a question about a map: claims are made, the judge decides, and only what it proved is printed.

use tilewright_ir::{AxisSeparators, Bindings, Expr, IndexMap, InverseClaim, ScalarType};
use tilewright_verify::{Judge, MapClaim};

use super::super::failure::Failure;
use super::inverse;
use super::question::{self, Question};
use crate::algebra;
use crate::report::{AtRow, Dim, MapReport, ObligationRow, Source, Verdict};

/// Everything that is known about the map.
///
/// # Errors
/// The map has no physical shape; an inverse or a padding does not fit it; a point has no image.
pub(super) fn answer(question: &Question, judge: &Judge) -> Result<MapReport, Failure> {
    let map = &question.map;
    let (physical, padded) = physical_shape(question)?;
    let (inverse, padding) = (question.inverse(&physical)?, question.padding(&physical)?);
    let at = question.points.iter().map(|point| follow(point, map, &physical)).collect::<Result<Vec<_>, _>>()?;
    let mut claim = MapClaim::new(map, &physical).padded(&padded).assuming(&question.assumptions);
    if let Some(meaning) = &question.meaning {
        claim = claim.meaning(meaning);
    }
    let found = inverse::found(map, &physical, &question.assumptions);
    let judged = Judged::new(judge, claim, inverse.as_ref(), padding, found);
    let lambda = |claim: &InverseClaim| inverse::printable(claim).lambda();
    let padding_lambda = |claim: &InverseClaim| inverse::printable(claim).padding_lambda();
    let plain = |shape: &[Expr]| shape.iter().map(inverse::plain).collect::<Vec<_>>();
    let physical = plain(&physical);
    Ok(MapReport {
        schema: "tilewright.map/1",
        map: map.to_string(),
        shape: Dim::shape(&plain(map.domain())),
        physical_shape: Dim::shape(&physical),
        axis_separators: map.axis_separators().positions().to_vec(),
        flat_shape: Dim::shape(&flat_shape(map.axis_separators(), &physical)),
        assumptions: question.assumptions.iter().map(ToString::to_string).collect(),
        at,
        inverse: judged.inverse.as_ref().map(lambda),
        padding: judged.padding.as_ref().map(padding_lambda),
        verdicts: judged.rows,
    })
}

/// What the judge says, and the claims that it proved.
struct Judged {
    rows: Vec<ObligationRow>,
    inverse: Option<InverseClaim>,
    padding: Option<InverseClaim>,
}

impl Judged {
    /// The inverse is the user's or else the one that was found; so is the padding. Each is held against the best that
    /// there is of the other, so that a wrong padding is no fault of an inverse, nor the other way round.
    fn new(
        judge: &Judge,
        claim: MapClaim<'_>,
        stated: Option<&IndexMap>,
        padding: Option<(Vec<tilewright_ir::Var>, Expr)>,
        found: Result<InverseClaim, String>,
    ) -> Self {
        let first = match (stated, &found) {
            (Some(inverse), Ok(found)) => Some(inverse::with_padding(inverse, &found.vars, &found.padding)),
            (Some(inverse), Err(_)) => Some(inverse::with_own_padding(claim.map, inverse)),
            (None, Ok(found)) => Some(found.clone()),
            (None, Err(_)) => None,
        };
        let mut rows = check(judge, first.as_ref().map_or(claim, |first| claim.inverse(first)));
        let collides = rows.iter().any(|row| row.obligation == "injective" && row.verdict == Verdict::Refuted);
        let mut judged = Self { rows: Vec::new(), inverse: None, padding: None };
        let mut inverse_row = take(&mut rows, "inverse");
        let mut padding_row = take(&mut rows, "padding");
        let mut proved = first.clone();
        if let Some(inverse) = stated
            && !is_proved(inverse_row.as_ref())
        {
            if found.is_ok() {
                // The padding that was found may be what is wrong.
                let own = inverse::with_own_padding(claim.map, inverse);
                inverse_row = take(&mut check(judge, claim.inverse(&own)), "inverse").or(inverse_row);
            }
            proved = found.clone().ok();
            padding_row = proved.as_ref().and_then(|found| take(&mut check(judge, claim.inverse(found)), "padding"));
        }
        judged.inverse = first.filter(|_| is_proved(inverse_row.as_ref()));
        let subject = claim.map.to_string();
        let reason = match (&found, collides, &inverse_row) {
            (_, true, _) => "the map is not injective".to_owned(),
            (Err(reason), _, _) => reason.clone(),
            (Ok(_), _, Some(row)) => why_not(row),
            (Ok(_), _, None) => "the claim does not fit the map".to_owned(),
        };
        let user_padding = padding.is_some();
        if let Some((vars, padding)) = padding {
            let base = proved.as_ref().and_then(|proved| {
                IndexMap::new(proved.vars.clone(), claim.shape.to_vec(), proved.outputs.clone(), Vec::new()).ok()
            });
            proved = base.map(|base| inverse::with_padding(&base, &vars, &padding));
            padding_row = proved.as_ref().and_then(|claimed| take(&mut check(judge, claim.inverse(claimed)), "padding"));
        }
        judged.padding = proved.filter(|_| is_proved(padding_row.as_ref()));
        let inverse_row = inverse_row.filter(|row| stated.is_some() || row.verdict != Verdict::Refuted && !(collides && row.verdict == Verdict::Unknown));
        let padding_row = padding_row.filter(|row| user_padding || row.verdict != Verdict::Refuted && !(collides && row.verdict == Verdict::Unknown));
        let at = rows.iter().position(|row| row.obligation == "specification").unwrap_or(rows.len());
        let unknown = |obligation: &str| undecided(obligation, &subject, &reason);
        let both = [inverse_row.unwrap_or_else(|| unknown("inverse")), padding_row.unwrap_or_else(|| unknown("padding"))];
        rows.splice(at..at, both);
        judged.rows = rows;
        judged
    }
}

/// An obligation that nobody was asked about, or whose answer says nothing of the map.
fn undecided(obligation: &str, subject: &str, reason: &str) -> ObligationRow {
    ObligationRow {
        obligation: obligation.to_owned(),
        subject: subject.to_owned(),
        verdict: Verdict::Unknown,
        method: "none".to_owned(),
        ms: 0.0,
        counterexample: None,
        reason: Some(reason.to_owned()),
    }
}

fn check(judge: &Judge, claim: MapClaim<'_>) -> Vec<ObligationRow> {
    judge.check_map(claim).into_iter().map(ObligationRow::from).collect()
}

fn take(rows: &mut Vec<ObligationRow>, obligation: &str) -> Option<ObligationRow> {
    let at = rows.iter().position(|row| row.obligation == obligation)?;
    Some(rows.remove(at))
}

fn is_proved(row: Option<&ObligationRow>) -> bool {
    row.is_some_and(|row| row.verdict == Verdict::Proved)
}

/// Why an inverse that was found is not printed.
fn why_not(row: &ObligationRow) -> String {
    match (&row.counterexample, &row.reason) {
        (Some(found), _) => format!("the inverse that was found is wrong: {}", found.text),
        (None, Some(reason)) => reason.clone(),
        (None, None) => "no inverse was found".to_owned(),
    }
}

/// The stated shape, or the algebra's. Where it has none because an index is negative, the shape of the others: the
/// judge then refutes the bounds, with the index. And the axes that are larger than needed on purpose.
fn physical_shape(question: &Question) -> Result<(Vec<Expr>, Vec<usize>), Failure> {
    let map = &question.map;
    let found = algebra::physical_shape(map, &question.assumptions);
    if let Some(stated) = &question.physical_shape {
        let needed = |axis: usize| found.as_ref().ok().and_then(|found| found.extents.get(axis));
        let mut padded: Vec<usize> = (0..stated.len()).filter(|&axis| needed(axis) != stated.get(axis)).collect();
        padded.extend(found.iter().flat_map(|found| &found.padded_axes));
        padded.sort_unstable();
        padded.dedup();
        return Ok((stated.clone(), padded));
    }
    let shape = found.or_else(|fault| {
        let extents = enumerated_shape(map).ok_or_else(|| {
            let help = fault.help.as_deref().unwrap_or("state it by --physical-shape");
            question::fault(&question.source, fault.code, fault.message.clone(), help)
        })?;
        Ok(algebra::PhysicalShape { extents, padded_axes: Vec::new() })
    })?;
    question::size_fits(&shape.extents)
        .map_err(|message| question::fault(&question.source, "shape-size", message, "give smaller extents"))?;
    Ok((shape.extents, shape.padded_axes))
}

/// Largest index + 1 on each axis, at least 1, by trying all points of a small constant shape.
fn enumerated_shape(map: &IndexMap) -> Option<Vec<Expr>> {
    const MAX_POINTS: u64 = 1 << 16;
    let domain: Vec<i128> = map.domain().iter().map(Expr::as_const_int).collect::<Option<_>>()?;
    let count = tilewright_ir::checked_size(&domain).ok().filter(|count| (1..=MAX_POINTS).contains(count))?;
    let mut extents = vec![1i128; map.outputs().len()];
    let mut index = vec![0i128; domain.len()];
    for _ in 0..count {
        for (extent, at) in extents.iter_mut().zip(map.eval(&index, &Bindings::new()).ok()?) {
            *extent = (*extent).max(at.checked_add(1)?);
        }
        for axis in (0..domain.len()).rev() {
            index[axis] += 1;
            if index[axis] < domain[axis] {
                break;
            }
            index[axis] = 0;
        }
    }
    extents.into_iter().map(|extent| i64::try_from(extent).ok().map(Expr::int)).collect()
}

/// One extent a separator group: the product of its extents.
fn flat_shape(separators: &AxisSeparators, physical: &[Expr]) -> Vec<Expr> {
    let symbols = physical.iter().flat_map(Expr::vars);
    let ranges = symbols.fold(algebra::Ranges::new(), |ranges, symbol| ranges.with_symbol(&symbol));
    let product = |group: &[Expr]| {
        let known: Option<Vec<i128>> = group.iter().map(Expr::as_const_int).collect();
        let size = known.and_then(|known| known.into_iter().try_fold(1i128, i128::checked_mul));
        if let Some(size) = size.and_then(|size| i64::try_from(size).ok()) {
            return Expr::int(size);
        }
        algebra::n_elements(group, &ranges, ScalarType::Int32)
    };
    separators.groups().into_iter().map(|group| product(&physical[group])).collect()
}

fn follow((source, point): &(Source, Vec<i128>), map: &IndexMap, extents: &[Expr]) -> Result<AtRow, Failure> {
    let physical = map.eval(point, &Bindings::new()).map_err(|error| {
        let help = "give numbers instead of names in the shape to follow an index";
        question::fault(source, "no-value", format!("the map has no value at {point:?}: {error}"), help)
    })?;
    let numeral = |group: std::ops::Range<usize>| {
        group.clone().try_fold(0i128, |high, axis| {
            // The extent of a group's first axis does not matter.
            let extent = if axis == group.start { 1 } else { extents[axis].as_const_int()? };
            high.checked_mul(extent)?.checked_add(physical[axis])
        })
    };
    let flat = map.axis_separators().groups().into_iter().map(numeral).collect();
    Ok(AtRow { logical: point.clone(), physical, flat })
}
