//! The answer to a question about a map: claims are made, the judge decides, and only proved claims are printed.

use tilewright_ir::{AxisSeparators, Bindings, Expr, IndexMap, InverseClaim, ScalarType, Span, Var};
use tilewright_script::output_spans;
use tilewright_verify::{Judge, MapClaim, Method, Obligation, Premise, Proof, Reason, Report, Verdict};

use super::super::failure::Failure;
use super::super::point::Point;
use super::question::{self, Question};
use super::{inverse, parts};
use crate::algebra::{self, PhysicalShape};
use crate::report::{Answer, AtRow, Dim, MapReport};

/// Most points of a restricted domain that are enumerated to find the physical shape.
const MAX_ENUMERATED: i128 = 1 << 15;

/// The report on a map.
///
/// # Errors
/// The map has no physical shape, an inverse or a padding does not fit it, or an index to follow has no image.
pub(super) fn answer(question: &Question, judge: &Judge) -> Result<MapReport, Failure> {
    let map = &question.map;
    let (physical, padded) = physical_shape(question)?;
    let (inverse, padding) = (question.inverse(&physical)?, question.padding(&physical)?);
    let at = question.points.iter().map(|point| follow(point, map, &physical)).collect::<Result<Vec<_>, _>>()?;
    let mut claim = MapClaim::new(map, &physical).padded(&padded).assuming(&question.assumptions);
    if let Some(meaning) = &question.meaning {
        claim = claim.meaning(meaning);
    }
    if let Some(predicate) = &question.predicate {
        claim = claim.restricted_to(predicate);
    }
    let found = match &question.predicate {
        Some(predicate) => inverse::found_below(predicate, claim),
        None => inverse::found(map, &physical, &question.assumptions),
    };
    let claims = Claims { judge, claim, inverse: inverse.as_ref(), padding: padding.as_ref(), found: &found };
    let mut judged = claims.judged();
    let parts =
        if question.parts { parts::parts(question, claim, judge, &mut judged.rows)?.into() } else { Answer::NotAsked };
    let subspace = match &question.inner {
        Some((text, inner)) => parts::subspace(question, (text, inner), claim, judge, &mut judged.rows)?.into(),
        None => Answer::NotAsked,
    };
    // Claims are judged as they are, and made printable only afterwards: the judge sees no rewritten claim.
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
        premises: Premise::of_map(claim).iter().map(ToString::to_string).collect(),
        predicate: question.predicate.as_ref().map(|predicate| inverse::plain(predicate).to_string()),
        parts,
        subspace,
        assumptions: question.assumptions.iter().map(ToString::to_string).collect(),
        at,
        inverse: judged.inverse.as_ref().map(lambda),
        padding: judged.padding.as_ref().map(padding_lambda),
        verdicts: judged.rows,
    })
}

/// The verdicts on a map and its physical shape. An inverse and digits that the algebra finds help to prove them.
pub(in super::super) fn judged(judge: &Judge, map: &IndexMap, physical: &[Expr]) -> Vec<Report> {
    let found = inverse::found(map, physical, &[]).ok();
    let digits = algebra::digit_certificate(map, physical, found.as_ref(), None, &[]);
    let claim = MapClaim::new(map, physical);
    let claim = found.as_ref().map_or(claim, |inverse| claim.inverse(inverse));
    let mut reports = judge.check_map(digits.as_ref().map_or(claim, |digits| claim.digits(digits)));
    // A wrong inverse is the algebra's fault and says nothing about the map.
    reports.retain(|report| !matches!(report.obligation, Obligation::Inverse | Obligation::Padding));
    reports
}

/// What the judge says, and the claims that it proved.
struct Judged {
    rows: Vec<Report>,
    inverse: Option<InverseClaim>,
    padding: Option<InverseClaim>,
}

/// A claim and the report on the obligation that was asked for; `None` if nothing could be claimed.
type Asked = Option<(InverseClaim, Report)>;

/// The possible claims: the inverse and padding that the user stated, and those that the algebra found.
struct Claims<'a> {
    judge: &'a Judge,
    claim: MapClaim<'a>,
    inverse: Option<&'a IndexMap>,
    padding: Option<&'a (Vec<Var>, Expr)>,
    found: &'a Result<InverseClaim, String>,
}

impl Claims<'_> {
    /// Judges the map with the user's inverse and padding, or else those that were found. Each is checked together with
    /// the best known other one, so that a wrong padding is not reported as a fault of the inverse, nor the other way
    /// round.
    fn judged(&self) -> Judged {
        let first = match (self.inverse, self.found) {
            (Some(inverse), Ok(found)) => Some(inverse::with_padding(inverse, &found.vars, &found.padding)),
            (Some(inverse), Err(_)) => Some(inverse::with_own_padding(self.claim, inverse)),
            (None, Ok(found)) => Some(found.clone()),
            (None, Err(_)) => None,
        };
        let mut rows = self.check(first.as_ref());
        let mut asked = |obligation: Obligation| Some((first.clone()?, take(&mut rows, obligation)?));
        let (inverse, padding) = (asked(Obligation::Inverse), asked(Obligation::Padding));
        let inverse = self.inverse_of(inverse);
        let padding = self.padding_of(is_proved(&inverse), &inverse, padding);
        let collides = rows
            .iter()
            .any(|row| row.obligation == Obligation::Injective && matches!(row.verdict, Verdict::Refuted(_)));
        let reason = self.reason(collides, &inverse);
        let said = |asked: &Asked, stated: bool, obligation: Obligation| {
            let row = asked.as_ref().map(|(_, row)| row.clone());
            // A wrong claim of the algebra says nothing about the map, and an undecided one nothing if no inverse can
            // exist.
            let speaks = |row: &Report| match row.verdict {
                Verdict::Refuted(_) => stated,
                Verdict::Unknown(_) => stated || !collides,
                Verdict::Proved(_) | Verdict::Skipped(_) | Verdict::Vacuous(_) => true,
            };
            row.filter(speaks).unwrap_or_else(|| undecided(obligation, &self.claim.map.to_string(), &reason))
        };
        let both = [
            said(&inverse, self.inverse.is_some(), Obligation::Inverse),
            said(&padding, self.padding.is_some(), Obligation::Padding),
        ];
        let at = rows.iter().position(|row| row.obligation == Obligation::Specification).unwrap_or(rows.len());
        rows.splice(at..at, both);
        let proved = |asked: Asked| asked.filter(|(_, row)| row.verdict.is_proved()).map(|(claim, _)| claim);
        Judged { rows, inverse: proved(inverse), padding: proved(padding) }
    }

    /// All reports on the map, with an inverse or without. A digit certificate is added if one is found.
    fn check(&self, inverse: Option<&InverseClaim>) -> Vec<Report> {
        let claim = inverse.map_or(self.claim, |inverse| self.claim.inverse(inverse));
        let MapClaim { map, shape, meaning, assumptions, .. } = claim;
        let digits = algebra::digit_certificate(map, shape, inverse, meaning, assumptions);
        let claim = digits.as_ref().map_or(claim, |digits| claim.digits(digits));
        self.judge.check_map(claim)
    }

    /// A claim and the report on one of its obligations.
    fn ask(&self, claim: InverseClaim, obligation: Obligation) -> Asked {
        let row = take(&mut self.check(Some(&claim)), obligation)?;
        Some((claim, row))
    }

    /// Judges the user's inverse again with the padding that follows from it, if it was not proved with the padding
    /// that was found: that padding may be the fault.
    fn inverse_of(&self, first: Asked) -> Asked {
        match (self.inverse, self.found) {
            (Some(inverse), Ok(_)) if !is_proved(&first) => {
                self.ask(inverse::with_own_padding(self.claim, inverse), Obligation::Inverse).or(first)
            }
            _ => first,
        }
    }

    /// The user's padding with an inverse that was proved, or else with the one that was found. Where the user stated no
    /// padding and a wrong inverse, the padding that was found with its own inverse.
    fn padding_of(&self, has_inverse: bool, inverse: &Asked, first: Asked) -> Asked {
        let base = if has_inverse { inverse.as_ref().map(|(claim, _)| claim) } else { self.found.as_ref().ok() };
        match self.padding {
            Some((vars, padding)) => {
                let base = base?;
                let shape = self.claim.shape.to_vec();
                let map = IndexMap::new(base.vars.clone(), shape, base.outputs.clone(), Vec::new()).ok()?;
                self.ask(inverse::with_padding(&map, vars, padding), Obligation::Padding)
            }
            None if has_inverse => match inverse {
                Some((claim, _)) if !is_proved(&first) => self.ask(claim.clone(), Obligation::Padding).or(first),
                _ => first,
            },
            None if self.inverse.is_none() => first,
            None => self.ask(base?.clone(), Obligation::Padding),
        }
    }

    /// Why there is no inverse and no padding, where there is none.
    fn reason(&self, collides: bool, inverse: &Asked) -> String {
        match (self.found, inverse) {
            _ if collides => "the map is not injective".to_owned(),
            (Err(reason), _) => reason.clone(),
            (Ok(_), Some((_, row))) => why_not(row),
            (Ok(_), None) => "the claim does not fit the map".to_owned(),
        }
    }
}

/// Removes the report on an obligation from a list.
fn take(rows: &mut Vec<Report>, obligation: Obligation) -> Option<Report> {
    let at = rows.iter().position(|row| row.obligation == obligation)?;
    Some(rows.remove(at))
}

/// Whether a claim was made and proved.
fn is_proved(asked: &Asked) -> bool {
    asked.as_ref().is_some_and(|(_, row)| row.verdict.is_proved())
}

/// The report of an obligation that was not asked, or whose answer says nothing about the map.
fn undecided(obligation: Obligation, subject: &str, reason: &str) -> Report {
    Report {
        obligation,
        subject: subject.to_owned(),
        verdict: Verdict::Unknown(Reason::undecided(reason)),
        method: Method::Nothing,
        ms: 0.0,
        place: None,
        counterpart: None,
        proof: Proof::default(),
    }
}

/// The reason why an inverse that was found is not printed.
fn why_not(row: &Report) -> String {
    match &row.verdict {
        Verdict::Refuted(found) => format!("the inverse that was found is wrong: {}", found.text),
        Verdict::Skipped(reason) | Verdict::Vacuous(reason) | Verdict::Unknown(reason) => reason.to_string(),
        Verdict::Proved(_) => "no inverse was found".to_owned(),
    }
}

/// The stated physical shape, or the one that the algebra finds; and the axes that are larger than needed on purpose. If
/// an index can be negative, the shape holds only the other indices: the judge then refutes the bounds, with the index.
pub(in super::super) fn physical_shape(question: &Question) -> Result<(Vec<Expr>, Vec<usize>), Failure> {
    let map = &question.map;
    let found = algebra::physical_shape_above_zero(map, &question.assumptions);
    let found = found.map(|found| restricted_shape(question, found));
    if let Some(stated) = &question.physical_shape {
        let needed = |axis: usize| found.as_ref().ok().and_then(|found| found.extents.get(axis));
        let mut padded: Vec<usize> = (0..stated.len()).filter(|&axis| needed(axis) != stated.get(axis)).collect();
        padded.extend(found.iter().flat_map(|found| &found.padded_axes));
        padded.sort_unstable();
        padded.dedup();
        return Ok((stated.clone(), padded));
    }
    let shape = found.map_err(|fault| {
        let help = fault.help.as_deref().unwrap_or("state the physical shape by --physical-shape");
        let source = &question.source;
        match place_without_extent(question) {
            Some(place) => question::fault_at(source, place, fault.code, fault.message.clone(), help),
            None => question::fault(source, fault.code, fault.message.clone(), help),
        }
    })?;
    question::size_fits(&shape.extents)
        .map_err(|message| question::fault(&question.source, "shape-size", message, "give smaller extents"))?;
    Ok((shape.extents, shape.padded_axes))
}

/// The physical shape of the map on the indices for which its predicate holds. A small constant domain is enumerated; otherwise
/// an axis may be larger than needed if the predicate is about an index that its output depends on.
fn restricted_shape(question: &Question, whole: PhysicalShape) -> PhysicalShape {
    let map = &question.map;
    let Some(predicate) = &question.predicate else { return whole };
    if let Some(extents) = enumerated(map, predicate) {
        return PhysicalShape { extents, padded_axes: Vec::new() };
    }
    let of_predicate = predicate.vars();
    let is_loose =
        |output: &Expr| output.vars().iter().any(|var| map.vars().contains(var) && of_predicate.contains(var));
    let loose = (0..map.outputs().len()).filter(|&axis| is_loose(&map.outputs()[axis]));
    let mut padded_axes: Vec<usize> = loose.chain(whole.padded_axes).collect();
    padded_axes.sort_unstable();
    padded_axes.dedup();
    PhysicalShape { extents: whole.extents, padded_axes }
}

/// The least physical shape of a restricted map on a constant domain of few points; `None` if there are many, or an index has no
/// image.
fn enumerated(map: &IndexMap, predicate: &Expr) -> Option<Vec<Expr>> {
    let domain: Vec<i128> = map.domain().iter().map(Expr::as_const_int).collect::<Option<_>>()?;
    let points = domain.iter().try_fold(1i128, |points, extent| points.checked_mul(*extent))?;
    if points > MAX_ENUMERATED {
        return None;
    }
    let mut most = vec![0; map.outputs().len()];
    for point in 0..points {
        let (mut rest, mut index) = (point, vec![0; domain.len()]);
        for (at, extent) in index.iter_mut().zip(&domain).rev() {
            (*at, rest) = (rest % extent, rest / extent);
        }
        let bindings: Bindings = map.vars().iter().cloned().zip(index).collect();
        if predicate.eval_index(&bindings).ok()? != 0 {
            for (most, output) in most.iter_mut().zip(map.outputs()) {
                *most = (*most).max(output.eval_index(&bindings).ok()?);
            }
        }
    }
    let extent = |(most, output): (i128, &Expr)| Expr::int_of(most.checked_add(1)?, output.dtype().scalar);
    most.into_iter().zip(map.outputs()).map(extent).collect()
}

/// The place of the first output that has no extent.
fn place_without_extent(question: &Question) -> Option<Span> {
    place_of_first(question, |alone| algebra::physical_shape_above_zero(alone, &question.assumptions).is_err())
}

/// The place of the first output that has a fault if it is the only output of the map.
pub(super) fn place_of_first(question: &Question, is_faulty: impl Fn(&IndexMap) -> bool) -> Option<Span> {
    let map = &question.map;
    let is_faulty = |output: &Expr| {
        let alone = IndexMap::new(map.vars().to_vec(), map.domain().to_vec(), vec![output.clone()], Vec::new());
        !alone.is_ok_and(|alone| !is_faulty(&alone))
    };
    let axis = map.outputs().iter().position(is_faulty)?;
    output_spans(&question.source.text)?.get(axis).copied()
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

fn follow(point: &Point, map: &IndexMap, extents: &[Expr]) -> Result<AtRow, Failure> {
    let Point { source, index: point, .. } = point;
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
