//! Which part of which index each output is made of, and the map over outer and inner indices.
//!
//! ```text
//! lambda i, j: [i // 4, i % 4 * 8 + j]   on (13, 8)
//! parts      axis 0: i // 4 % 4              axis 1: i % 4 * 8 + j % 8
//! inner j    outer: lambda i: [i // 4, i % 4]    inner: lambda j: [0, j]    in blocks of [1, 8]
//! ```
//!
//! The algebra finds both. Neither is printed unless the judge has proved that it is the map: that the sum of the parts, and
//! `outer * extent + inner`, is the output at every index of the domain.

use tilewright_ir::{Diagnostic, Expr, IndexMap, Var};
use tilewright_script::Source;
use tilewright_verify::{Judge, MapClaim, Obligation, Report, Verdict};

use super::super::failure::Failure;
use super::answer::place_of_first;
use super::inverse::plain;
use super::question::{self, Question};
use crate::algebra;
use crate::report::{Dim, PartRow, PartsRow, SubspaceRow};

/// The parts of each output, if they are proved. The verdict is added to `rows`.
///
/// # Errors
/// An output is no sum of parts.
pub(super) fn parts(
    question: &Question,
    claim: MapClaim<'_>,
    judge: &Judge,
    rows: &mut Vec<Report>,
) -> Result<Option<Vec<PartsRow>>, Failure> {
    let map = &question.map;
    let sums = algebra::parts_of(map, &question.assumptions).map_err(|fault| {
        let place = place_of_first(question, |alone| algebra::parts_of(alone, &question.assumptions).is_err());
        at_output(question, &fault, place)
    })?;
    let values = sums.iter().map(|sum| sum.value(map)).collect();
    let row = equal(question, claim, judge, values, "the sum of the parts")?;
    if let Verdict::Refuted(_) = row.verdict {
        // What was found is wrong, and nobody claimed it.
        let message = format!("no parts of the map `{map}` are found");
        return Err(question::fault(&question.source, "no-parts", message, "write it with quotients and remainders"));
    }
    let is_proved = row.verdict.is_proved();
    rows.push(row);
    let dim = |expr: &Expr| Dim::new(&plain(expr));
    let part = |part: &algebra::Part| PartRow {
        axis: map.vars()[part.axis].name().to_owned(),
        lower_factor: dim(&part.lower_factor),
        extent: dim(&part.extent),
        scale: dim(&part.scale),
    };
    let sum = |sum: &algebra::PartSum| PartsRow { parts: sum.parts.iter().map(part).collect(), base: dim(&sum.base) };
    Ok(is_proved.then(|| sums.iter().map(sum).collect()))
}

/// The map over outer and inner indices, if it is proved. The verdicts are added to `rows`.
///
/// # Errors
/// The map does not divide, or the predicate relates outer indices to inner ones.
pub(super) fn subspace(
    question: &Question,
    (text, inner): (&Source, &[Var]),
    claim: MapClaim<'_>,
    judge: &Judge,
    rows: &mut Vec<Report>,
) -> Result<Option<SubspaceRow>, Failure> {
    let map = &question.map;
    let fault = |fault: Diagnostic| {
        let place = place_of_first(question, |alone| algebra::subspace_split(alone, inner).is_err());
        at_output(question, &fault, place)
    };
    let (outer_map, inner_map) = algebra::subspace_split(map, inner).map_err(fault)?;
    let extents = algebra::physical_shape(&inner_map, &question.assumptions).map_err(fault)?.extents;
    let (outer_where, inner_where) = divided(question, question.predicate_text.as_ref().unwrap_or(text), inner)?;
    let blocks = outer_map.outputs().iter().zip(&extents).zip(inner_map.outputs());
    let values = blocks.map(|((outer, extent), inside)| outer.clone() * extent.clone() + inside.clone());
    let mut judged = vec![equal(question, claim, judge, values.collect(), "outer * block shape + inner")?];
    let inside = MapClaim::new(&inner_map, &extents).assuming(claim.assumptions);
    let within = judge.check_map_for(inside, Obligation::Bounds);
    judged.push(Report { subject: "inner indices in the block".to_owned(), ..within });
    if let Some(predicate) = claim.predicate {
        judged.push(same_predicate(question, judge, predicate, [&outer_where, &inner_where])?);
    }
    if judged.iter().any(|row| matches!(row.verdict, Verdict::Refuted(_))) {
        let message = format!("no outer and inner map of `{map}` are found");
        return Err(question::fault(&question.source, "no-subspace", message, "choose other inner indices"));
    }
    let is_proved = judged.iter().all(|row| row.verdict.is_proved());
    rows.extend(judged);
    let text = |predicate: &Option<Expr>| predicate.as_ref().map(|predicate| plain(predicate).to_string());
    Ok(is_proved.then(|| SubspaceRow {
        outer: printed(&outer_map),
        inner: printed(&inner_map),
        extents: Dim::shape(&extents.iter().map(plain).collect::<Vec<_>>()),
        outer_where: text(&outer_where),
        inner_where: text(&inner_where),
    }))
}

/// What the predicate says of the outer indices and of the inner ones. A condition on neither counts as one on the outer ones.
fn divided(question: &Question, text: &Source, inner: &[Var]) -> Result<(Option<Expr>, Option<Expr>), Failure> {
    let Some(predicate) = &question.predicate else { return Ok((None, None)) };
    let (mut outside, mut inside) = (Vec::new(), Vec::new());
    for part in algebra::conjuncts(predicate) {
        let vars = part.vars();
        let is_outer = vars.iter().any(|var| question.map.vars().contains(var) && !inner.contains(var));
        match (is_outer, vars.iter().any(|var| inner.contains(var))) {
            (true, true) => {
                let message = format!("the predicate `{}` relates outer indices to inner ones", plain(&part));
                let help =
                    "choose indices so that each condition is about outer indices only, or about inner ones only";
                return Err(question::fault(text, "no-subspace", message, help));
            }
            (false, true) => inside.push(part),
            (_, false) => outside.push(part),
        }
    }
    let all = |parts: Vec<Expr>| parts.into_iter().reduce(Expr::and);
    Ok((all(outside), all(inside)))
}

/// The verdict on whether the predicate is the conjunction of what is said of outer and of inner indices, at every index of the
/// box.
fn same_predicate(
    question: &Question,
    judge: &Judge,
    predicate: &Expr,
    parts: [&Option<Expr>; 2],
) -> Result<Report, Failure> {
    let number = |condition: Expr| Expr::IfThenElse(condition.into(), Expr::int(1).into(), Expr::int(0).into());
    let as_map = |condition: Expr| over(question, vec![number(condition)]);
    let both = parts.into_iter().flatten().cloned().reduce(Expr::and).unwrap_or_else(|| Expr::bool(true));
    let (whole, divided) = (as_map(predicate.clone())?, as_map(both)?);
    let shape = [Expr::int(2)];
    let claim = MapClaim::new(&whole, &shape).assuming(&question.assumptions).meaning(&divided);
    let row = judge.check_map_for(claim, Obligation::Specification);
    Ok(Report { subject: "the predicates of outer and inner indices".to_owned(), ..row })
}

/// The verdict on whether these values are the outputs of the map, at every index of its domain.
fn equal(
    question: &Question,
    claim: MapClaim<'_>,
    judge: &Judge,
    values: Vec<Expr>,
    subject: &str,
) -> Result<Report, Failure> {
    let stated = over(question, values)?;
    let claim = claim.meaning(&stated);
    let digits = algebra::digit_certificate(claim.map, claim.shape, None, Some(&stated), claim.assumptions);
    let claim = digits.as_ref().map_or(claim, |digits| claim.digits(digits));
    let row = judge.check_map_for(claim, Obligation::Specification);
    Ok(Report { subject: subject.to_owned(), ..row })
}

/// A map over the indices of the question.
fn over(question: &Question, outputs: Vec<Expr>) -> Result<IndexMap, Failure> {
    let map = &question.map;
    IndexMap::new(map.vars().to_vec(), map.domain().to_vec(), outputs, Vec::new()).map_err(|error| {
        question::fault(&question.source, "index-map", error.to_string(), "this is a fault of tilewright")
    })
}

/// A map without casts between integer types.
fn printed(map: &IndexMap) -> String {
    let outputs = map.outputs().iter().map(plain).collect();
    let positions = map.axis_separators().positions().to_vec();
    let simple = IndexMap::new(map.vars().to_vec(), map.domain().to_vec(), outputs, positions);
    simple.map_or_else(|_| map.to_string(), |simple| simple.to_string())
}

/// A fault of the algebra at the output that has it.
fn at_output(question: &Question, found: &Diagnostic, place: Option<tilewright_ir::Span>) -> Failure {
    let help = found.help.as_deref().unwrap_or("give another map");
    match place {
        Some(place) => question::fault_at(&question.source, place, found.code, found.message.clone(), help),
        None => question::fault(&question.source, found.code, found.message.clone(), help),
    }
}
