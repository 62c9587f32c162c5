//! Obligation overflow: no subterm of the map leaves its type.

use tilewright_ir::{BinaryOp, Expr, MAX_SYMBOLIC_ELEMENTS};

use super::{MapClaim, at, from_model, symbols_from};
use crate::concrete::tuple;
use crate::judge::{Decision, Judge, decide, vacuity};
use crate::prove::Prover;
use crate::term::{Prop, Term};
use crate::translate::Names;

/// No subterm of the map leaves its type. Of symbolic shapes it is assumed that both sides have no more elements than the
/// index type can count, which whoever launches the program checks.
pub(super) fn overflow(judge: &Judge, claim: MapClaim<'_>) -> Decision {
    if let Some(decision) = crate::digits::decide(judge, &claim, "overflow") {
        return decision;
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
    assume_addressable(&mut prover, &mut names, claim.map.domain());
    assume_addressable(&mut prover, &mut names, claim.shape);
    let from = prover.context().steps().len();
    let mut parts = Vec::new();
    for output in claim.map.outputs() {
        subterms(output, &mut parts);
    }
    let mut result = Ok(());
    let mut wrong = None;
    for part in &parts {
        result = prover.prove(&fits(part, &mut names)).map(drop);
        if result.is_err() {
            wrong = Some(*part);
            break;
        }
    }
    decide("map overflow", result, &prover, from, |model| {
        let part = wrong?;
        let point = from_model(model, claim.map.vars(), &vars)?;
        let symbols = symbols_from(model, &mut names, &symbols);
        let mut bindings = symbols.clone();
        bindings.extend(claim.map.vars().iter().cloned().zip(point.iter().copied()));
        let value = part.eval_index(&bindings).ok()?;
        let (low, high) = part.dtype().scalar.integer_range()?;
        let text = format!("`{part}` is {value} at {}, which does not fit {}", tuple(&point), part.dtype());
        (value < low || value > high).then(|| at(claim, &symbols, &[&point], text))
    })
}

/// Assumes, of a symbolic shape, that it has no more than [`MAX_SYMBOLIC_ELEMENTS`].
pub(crate) fn assume_addressable(prover: &mut Prover<'_>, names: &mut Names, shape: &[Expr]) {
    if shape.iter().all(|extent| extent.as_const_int().is_some()) {
        return;
    }
    let size = shape.iter().fold(Term::int(1), |size, extent| size * names.term(extent));
    let max = Term::int(i128::from(MAX_SYMBOLIC_ELEMENTS));
    prover.assume(&size.at_most(&max), "a symbolic buffer has at most 2^31 - 2^16 - 1 elements (checked at launch)");
    for extent in shape {
        let extent = names.term(extent);
        if extent.as_const().is_none() {
            prover.keep_if_implied(&extent.at_most(&max), &size, &extent);
        }
    }
}

/// That `part` has a value and that it fits its type.
pub(crate) fn fits(part: &Expr, names: &mut Names) -> Prop {
    let term = names.term(part);
    let range = match part.dtype().scalar.integer_range() {
        Some((low, high)) => term.at_least(low).and(term.at_most(high)),
        None => Prop::bool(true),
    };
    let Expr::Binary(op, _, operand) = part else { return range };
    match op {
        BinaryOp::FloorDiv | BinaryOp::FloorMod | BinaryOp::TruncDiv | BinaryOp::TruncMod => {
            range.and(names.term(operand).differs(0))
        }
        BinaryOp::Shl | BinaryOp::Shr => {
            let amount = names.term(operand);
            range.and(amount.at_least(0)).and(amount.less(i128::from(part.dtype().scalar.bits())))
        }
        _ => range,
    }
}

/// The integer operations in an expression, innermost first, each once.
pub(crate) fn subterms<'e>(expr: &'e Expr, found: &mut Vec<&'e Expr>) {
    for child in expr.children() {
        subterms(child, found);
    }
    let operation = matches!(expr, Expr::Binary(..) | Expr::Unary(..) | Expr::Call(..) | Expr::Cast(..));
    let ty = expr.dtype();
    if operation && ty.is_scalar() && ty.scalar.is_integer() && !found.contains(&expr) {
        found.push(expr);
    }
}
