//! The operations of the index map algebra that the lowering uses.

use tilewright_ir::{Expr, IndexMap, InverseClaim, Var};

use super::Built;
use tilewright_algebra as algebra;

/// Returns the expression simplified under `0 <= var < extent` for each of `ranges`.
pub(super) fn simplify(expr: &Expr, ranges: &[(Var, Expr)]) -> Expr {
    algebra::simplify(expr, &ranges_of(ranges, expr))
}

/// Returns the ranges of the variables of `expr`: a variable that is not in `ranges` is a symbolic extent, at least 1.
fn ranges_of(ranges: &[(Var, Expr)], expr: &Expr) -> algebra::Ranges {
    let mut known = algebra::Ranges::new();
    for var in expr.vars() {
        if !ranges.iter().any(|(index, _)| *index == var) {
            known = known.with_symbol(&var);
        }
    }
    ranges.iter().fold(known, |known, (var, extent)| known.with(var, extent))
}

/// Returns the extents of the physical indices of a map.
pub(super) fn physical_shape(map: &IndexMap) -> Built<Vec<Expr>> {
    algebra::physical_shape(map, &[]).map(|shape| shape.extents)
}

/// Returns the map from physical indices back to logical ones.
pub(super) fn inverse(map: &IndexMap, physical: &[Expr]) -> Built<InverseClaim> {
    algebra::inverse(map, physical, &[])
}

/// Returns whether `divisor` provably divides `extent` for all values of the symbolic extents.
pub(super) fn divides(divisor: &Expr, extent: &Expr) -> bool {
    simplify(&extent.clone().floor_mod(divisor.clone()), &[]).as_const_int() == Some(0)
}
