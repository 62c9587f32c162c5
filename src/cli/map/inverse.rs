//! Claims of inverses: those of the algebra, those of the user, and the padding that follows from an inverse.
//!
//! Nothing in this file is trusted. Every claim goes to the judge before it is printed.

use tilewright_ir::visit::{Rewrite, Substitution};
use tilewright_ir::{BinaryOp, Expr, IndexMap, InverseClaim, Var};
use tilewright_verify::MapClaim;

use super::question::FUNCTIONS;
use crate::algebra;

/// The inverse that the algebra finds, or the reason why it finds none.
pub(super) fn found(map: &IndexMap, physical: &[Expr], assumptions: &[Expr]) -> Result<InverseClaim, String> {
    algebra::inverse(map, physical, assumptions).map_err(|fault| match fault.help {
        Some(help) => format!("{}: {help}", fault.message),
        None => fault.message,
    })
}

/// The inverse that the algebra finds of a restricted map: of the map on its box, or on the smaller box of the indices below
/// the bounds that the predicate states.
pub(super) fn found_below(predicate: &Expr, claim: MapClaim<'_>) -> Result<InverseClaim, String> {
    let MapClaim { map, shape, assumptions, .. } = claim;
    let whole = found(map, shape, assumptions).map(|found| restricted(found, claim));
    let (vars, domain) = (map.vars(), below(predicate, map));
    if whole.is_ok() || domain == map.domain() {
        return whole;
    }
    let Ok(smaller) = IndexMap::new(vars.to_vec(), domain, map.outputs().to_vec(), Vec::new()) else { return whole };
    let found = found(&smaller, shape, assumptions)?;
    let inverse =
        IndexMap::new(found.vars, shape.to_vec(), found.outputs, Vec::new()).map_err(|error| error.to_string())?;
    Ok(with_own_padding(claim, &inverse))
}

/// The extents of the box of a map, cut off where the predicate states a number as the bound of an index.
fn below(predicate: &Expr, map: &IndexMap) -> Vec<Expr> {
    let parts = algebra::conjuncts(predicate);
    let cut = |(var, extent): (&Var, &Expr)| {
        let bounds = parts.iter().filter_map(|part| {
            let Expr::Binary(op, lhs, rhs) = part else { return None };
            let (Expr::Var(found), Some(bound)) = (lhs.as_ref(), rhs.as_const_int()) else { return None };
            let end = if *op == BinaryOp::Lt { bound } else { bound.checked_add(1)? };
            (found == var && matches!(op, BinaryOp::Lt | BinaryOp::Le) && end >= 1).then_some(end)
        });
        let least = bounds.chain(extent.as_const_int()).min();
        least.and_then(|end| Expr::int_of(end, extent.dtype().scalar)).unwrap_or_else(|| extent.clone())
    };
    map.vars().iter().zip(map.domain()).map(cut).collect()
}

/// An inverse with the padding of another claim.
pub(super) fn with_padding(inverse: &IndexMap, vars: &[Var], padding: &Expr) -> InverseClaim {
    let renaming = Substitution::new(vars, inverse.vars().iter().map(Expr::from));
    InverseClaim {
        vars: inverse.vars().to_vec(),
        outputs: inverse.outputs().to_vec(),
        padding: renaming.apply(padding),
    }
}

/// An inverse with the padding that follows from it, if it is a left inverse.
pub(super) fn with_own_padding(claim: MapClaim<'_>, inverse: &IndexMap) -> InverseClaim {
    let (vars, outputs) = (inverse.vars().to_vec(), inverse.outputs().to_vec());
    let padding = algebra::padding_of(claim.map, inverse.domain(), &vars, &outputs, claim.assumptions);
    restricted(InverseClaim { vars, outputs, padding }, claim)
}

/// The inverse of a map on its box, as one of the restricted map: a physical index whose logical index does not satisfy the
/// predicate is padding.
pub(super) fn restricted(inverse: InverseClaim, claim: MapClaim<'_>) -> InverseClaim {
    let Some(predicate) = claim.predicate else { return inverse };
    let back = Substitution::new(claim.map.vars(), inverse.outputs.iter().cloned()).apply(predicate);
    let symbols = back.vars().into_iter().filter(|var| !inverse.vars.contains(var));
    let ranges = symbols.fold(algebra::Ranges::new(), |ranges, symbol| ranges.with_symbol(&symbol));
    let places = inverse.vars.iter().zip(claim.shape);
    let ranges = places.fold(ranges, |ranges, (var, extent)| ranges.with(var, extent));
    let excluded = algebra::simplify(&algebra::negate(&back), &ranges);
    let padding = match (inverse.padding.as_const_int(), excluded.as_const_int()) {
        (Some(0), _) => excluded,
        (_, Some(0)) => inverse.padding,
        _ => Expr::binary(BinaryOp::Or, inverse.padding, excluded),
    };
    InverseClaim { padding, ..inverse }
}

/// The claim in a form that Python can read: no parameter has the name of a symbol or function, and nothing is called
/// but `min`, `max`, `abs` and `if_then_else`.
pub(super) fn printable(claim: &InverseClaim) -> InverseClaim {
    let symbols: Vec<Var> =
        claim.outputs.iter().chain([&claim.padding]).flat_map(Expr::vars).filter(|v| !claim.vars.contains(v)).collect();
    let mut taken: Vec<String> = symbols.iter().map(|symbol| symbol.name().to_owned()).collect();
    taken.extend(FUNCTIONS.map(str::to_owned));
    let mut vars = Vec::new();
    for var in &claim.vars {
        let numbered = (1..).map(|number| format!("{}_{number}", var.name()));
        let name = std::iter::once(var.name().to_owned()).chain(numbered).find(|name| !taken.contains(name));
        let name = name.unwrap_or_else(|| var.name().to_owned());
        taken.push(name.clone());
        vars.push(Var::new(name, var.dtype()));
    }
    let renaming = Substitution::new(&claim.vars, vars.iter().map(Expr::from));
    let plain = |expr: &Expr| plain(&renaming.apply(expr));
    InverseClaim { outputs: claim.outputs.iter().map(plain).collect(), padding: plain(&claim.padding), vars }
}

/// The expression without casts between integer types, and with `if_then_else` for every choice. The result is meant
/// over the integers, where such casts change nothing.
pub(super) fn plain(expr: &Expr) -> Expr {
    let Ok(plain) = Plain.expr(expr);
    plain
}

/// The rewrite of `plain`.
struct Plain;

impl Rewrite for Plain {
    type Error = std::convert::Infallible;

    fn expr(&mut self, expr: &Expr) -> Result<Expr, Self::Error> {
        Ok(match self.expr_children(expr)? {
            Expr::Cast(ty, value) if ty.scalar.is_integer() && value.dtype().scalar.is_integer() => value.into_expr(),
            Expr::Select(c, a, b) => Expr::IfThenElse(c, a, b),
            other => other,
        })
    }
}
