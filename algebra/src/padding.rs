//! Padding: the physical indices that no logical index reaches.
//!
//! For any left inverse of the map, `p` is padding if and only if `inverse(p)` is outside of the domain, or the map
//! takes it to another index than `p`. The functions here simplify this condition.

use tilewright_ir::{BinaryOp, Bindings, Expr, IndexMap, Var};

use super::bits::bits_as_arithmetic;
use super::cases::{Case, cases};
use super::extreme::each_point;
use super::logic::{all_of, any_of, conjuncts, negate};
use super::physical::ranges_of_map;
use super::ranges::Ranges;

/// Shapes with more physical indices than this are not enumerated.
const MAX_PLACES: i128 = 1 << 11;

/// Conditions with more nodes than this are not simplified.
const MAX_PARTS: usize = 160;

/// Returns the exact padding of a map, given any left inverse of it: `vars` are the physical indices, and `outputs`
/// are the logical indices in terms of them. The result is `False` if every physical index of the shape `physical` is
/// reached.
///
/// ```
/// use tilewright_algebra::padding_of;
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
        vars.iter().zip(physical).fold(ranges_of_map(map, assumptions), |known, (var, extent)| known.with(var, extent));
    negate(&without_idle_parts(reached(map, vars, outputs, &ranges, Vec::new()), vars, physical))
}

/// Returns the condition under which a physical index is reached: the inverse gives a logical index, the map takes it
/// back to the physical index, and `path` holds.
pub(super) fn reached(map: &IndexMap, vars: &[Var], outputs: &[Expr], ranges: &Ranges, path: Vec<Expr>) -> Expr {
    let images = map.apply(outputs).into_iter().map(|image| bits_as_arithmetic(&image, ranges));
    let all: Vec<Expr> = outputs.iter().map(|output| bits_as_arithmetic(output, ranges)).chain(images).collect();
    let mut n_parts = 0;
    for expr in &all {
        expr.walk(&mut |_| n_parts += 1);
    }
    let conditions = |case: &Case| {
        let (outputs, images) = case.exprs.split_at(outputs.len());
        let mut conditions = case.path.clone();
        for (value, extent) in outputs.iter().zip(map.domain()) {
            let ty = value.dtype().scalar;
            conditions.push(Expr::binary(BinaryOp::Ge, value.clone(), Expr::Int { value: 0, ty }));
            conditions.push(value.clone().lt(extent.clone()));
        }
        for (image, var) in images.iter().zip(vars) {
            conditions.push(Expr::binary(BinaryOp::Eq, image.clone(), Expr::from(var)));
        }
        if n_parts > MAX_PARTS {
            // Exact as it stands, and too large to be made plainer.
            return conditions.into_iter().reduce(Expr::and).unwrap_or_else(|| Expr::bool(true));
        }
        all_of(&conditions, ranges)
    };
    if n_parts > MAX_PARTS {
        let whole = conditions(&Case { path: path.clone(), exprs: all.clone(), ranges: ranges.clone() });
        return whole;
    }
    let whole = || vec![Case { path: Vec::new(), exprs: all.clone(), ranges: ranges.clone() }];
    let cases = cases(&all, ranges).unwrap_or_else(whole);
    let either = any_of(&cases.iter().map(conditions).collect::<Vec<_>>(), ranges);
    if path.is_empty() {
        return either;
    }
    let all: Vec<Expr> = path.into_iter().chain(conjuncts(&either)).collect();
    all_of(&all, ranges)
}

/// Drops the conjuncts that make no difference at any physical index of a small constant shape.
pub(super) fn without_idle_parts(condition: Expr, vars: &[Var], physical: &[Expr]) -> Expr {
    let extents: Option<Vec<i128>> = physical.iter().map(Expr::as_const_int).collect();
    let size = |extents: &[i128]| extents.iter().try_fold(1i128, |size, extent| size.checked_mul(*extent));
    let Some(extents) = extents.filter(|extents| size(extents).is_some_and(|size| (1..=MAX_PLACES).contains(&size)))
    else {
        return condition;
    };
    let mut kept = conjuncts(&condition);
    // A truth table: one column for each conjunct, one row for each physical index. A conjunct is idle if another one
    // is false in every row in which it is false.
    let mut columns: Vec<Vec<bool>> = Vec::new();
    for part in &kept {
        let mut column = Vec::new();
        let complete = each_point(&extents, |place| {
            let bindings: Bindings = vars.iter().cloned().zip(place.iter().copied()).collect();
            part.eval_index(&bindings).is_ok_and(|value| {
                column.push(value != 0);
                true
            })
        });
        if !complete {
            return condition;
        }
        columns.push(column);
    }
    let mut position = 0;
    while position < kept.len() {
        let others = || columns.iter().enumerate().filter(|(other, _)| *other != position);
        let idle = (0..columns[position].len())
            .all(|place| columns[position][place] || others().any(|(_, column)| !column[place]));
        if idle {
            kept.remove(position);
            columns.remove(position);
        } else {
            position += 1;
        }
    }
    kept.into_iter().reduce(Expr::and).unwrap_or_else(|| Expr::bool(true))
}
