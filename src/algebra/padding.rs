//! Padding: the physical indices that no logical index reaches.
//!
//! For any left inverse, `p` is padding exactly if `inverse(p)` is outside the domain or leads to another place than `p`.
//! That is what is simplified here.

use tilewright_ir::{BinaryOp, Expr, IndexMap, Var};

use super::logic::{all_of, negate};
use super::physical::known_of;
use super::ranges::Ranges;

/// The exact padding of a map, given any left inverse of it: `vars` are the physical indices and `outputs` the logical
/// ones in terms of them. `False` where every physical index of the shape `physical` is reached.
///
/// ```
/// use tilewright::algebra::padding_of;
/// use tilewright_ir::{Expr, IndexMap, Var};
/// let [c, high, low] = ["c", "high", "low"].map(Var::index);
/// let split = vec![Expr::from(&c).floor_div(Expr::int(4)), Expr::from(&c).floor_mod(Expr::int(4))];
/// let map = IndexMap::new(vec![c], vec![Expr::int(17)], split, vec![])?;
/// let back = Expr::from(&high) * Expr::int(4) + Expr::from(&low);
/// let padding = padding_of(&map, &[5, 4].map(Expr::int), &[high, low], &[back], &[]);
/// assert_eq!(padding.to_string(), "high * 4 + low >= 17");
/// # Ok::<(), tilewright_ir::IndexMapError>(())
/// ```
pub fn padding_of(map: &IndexMap, physical: &[Expr], vars: &[Var], outputs: &[Expr], assumptions: &[Expr]) -> Expr {
    let ranges =
        vars.iter().zip(physical).fold(known_of(map, assumptions), |known, (var, extent)| known.with(var, extent));
    negate(&reached(map, vars, outputs, &ranges))
}

/// Whether a place is reached: by the logical index that the inverse gives, if that is one.
pub(super) fn reached(map: &IndexMap, vars: &[Var], outputs: &[Expr], ranges: &Ranges) -> Expr {
    let mut conditions = Vec::new();
    for (value, extent) in outputs.iter().zip(map.domain()) {
        let ty = value.dtype().scalar;
        conditions.push(Expr::binary(BinaryOp::Ge, value.clone(), Expr::Int { value: 0, ty }));
        conditions.push(value.clone().lt(extent.clone()));
    }
    for (image, var) in map.apply(outputs).into_iter().zip(vars) {
        conditions.push(Expr::binary(BinaryOp::Eq, image, Expr::from(var)));
    }
    all_of(conditions, ranges)
}
