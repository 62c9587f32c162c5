//! Inverses by table: a small constant map that no rule solves is evaluated at all its points.
//!
//! ```text
//! lambda x: [x // 2, x % 2 ^ x // 2 % 2]   over x < 8   in [4, 2]
//! physical indices 0 1 2 3 4 5 6 7 come from 0 1 3 2 4 5 7 6: pieces q, 5 - q, q, 13 - q of q = x_outer * 2 + x_inner
//! ```
//!
//! Axes that share no output are handled separately. A piece is a run of physical indices along which the logical
//! index moves in equal steps; the inverse selects the piece by binary search.

use std::collections::BTreeMap;

use tilewright_ir::{BinaryOp, Bindings, Expr, IndexMap, Var};

use super::super::extreme::each_point;
use super::super::logic::{all_of, any_of};
use super::super::ranges::Ranges;
use super::super::rewrite::Simplifier;

/// Logical points of one group of axes; a larger group is refused.
const MAX_POINTS: i128 = 1 << 12;
/// Pieces of one index; an expression with more would be a table and no closed form.
const MAX_PIECES: usize = 64;

/// Axes and outputs that depend on each other and on no other axes.
#[derive(Debug, Default)]
struct Group {
    axes: Vec<usize>,
    outputs: Vec<usize>,
}

/// A run of physical positions `from..=to` along which a value is `at + step * (position - from)`.
#[derive(Clone, Copy, Debug)]
struct Piece {
    from: i128,
    to: i128,
    at: i128,
    step: i128,
}

/// Returns the logical indices in terms of the physical ones, and the condition under which a physical index is
/// reached.
///
/// # Errors
/// The reason, as part of a sentence: the map is symbolic, too large or too irregular.
pub(super) fn solutions(
    map: &IndexMap,
    physical: &[Expr],
    vars: &[Var],
    ranges: &Ranges,
) -> Result<(Vec<Expr>, Expr), String> {
    let constant = |exprs: &[Expr]| exprs.iter().map(Expr::as_const_int).collect::<Option<Vec<i128>>>();
    let (Some(domain), Some(shape)) = (constant(map.domain()), constant(physical)) else {
        return Err("none of the rules applies".into());
    };
    let mut values: Vec<Expr> = map.vars().iter().map(super::zero).collect();
    let mut conditions = Vec::new();
    for group in groups(map) {
        let places = places(map, &group, &domain, &shape)?;
        // Pieces are found along one number, so the group's outputs are linearized first.
        let place = numeral(&group, vars, &shape);
        for (position, &axis) in group.axes.iter().enumerate() {
            let pieces = pieces(places.iter().map(|(&place, index)| (place, index[position])));
            if pieces.len() > MAX_PIECES {
                return Err(format!("its table has more than {MAX_PIECES} pieces"));
            }
            values[axis] = Simplifier::new(ranges).simplify(&chosen(&pieces, &place));
        }
        conditions.push(reached(&places, &group, &place, &shape, ranges)?);
    }
    Ok((values, all_of(&conditions, ranges)))
}

/// Returns the connected components of axes and outputs.
fn groups(map: &IndexMap) -> Vec<Group> {
    let mut groups: Vec<Group> =
        (0..map.vars().len()).map(|axis| Group { axes: vec![axis], outputs: Vec::new() }).collect();
    for (output, expr) in map.outputs().iter().enumerate() {
        let used = expr.vars();
        let touches = |group: &Group| group.axes.iter().any(|&axis| used.contains(&map.vars()[axis]));
        let (joined, mut rest): (Vec<Group>, Vec<Group>) = groups.into_iter().partition(touches);
        let mut all = Group::default();
        for group in joined {
            all.axes.extend(group.axes);
            all.outputs.extend(group.outputs);
        }
        all.axes.sort_unstable();
        all.outputs.push(output);
        rest.push(all);
        groups = rest;
    }
    groups
}

/// Returns, for each physical position of a group that is reached, the logical index that it comes from.
///
/// # Errors
/// Too many points, an index outside of the shape, or two logical indices at one position.
fn places(map: &IndexMap, group: &Group, domain: &[i128], shape: &[i128]) -> Result<BTreeMap<i128, Vec<i128>>, String> {
    let extents: Vec<i128> = group.axes.iter().map(|&axis| domain[axis]).collect();
    let size = extents.iter().try_fold(1i128, |size, extent| size.checked_mul(*extent));
    if size.is_none_or(|size| size > MAX_POINTS) {
        return Err("none of the rules applies, and it is too large for a table".into());
    }
    let mut found: BTreeMap<i128, Vec<i128>> = BTreeMap::new();
    let complete = each_point(&extents, |index| {
        let bindings: Bindings =
            group.axes.iter().map(|&axis| map.vars()[axis].clone()).zip(index.iter().copied()).collect();
        let place = group.outputs.iter().try_fold(0i128, |place, &output| {
            let at = map.outputs()[output].eval_index(&bindings).ok()?;
            let inside = (0..shape[output]).contains(&at);
            place.checked_mul(shape[output])?.checked_add(at).filter(|_| inside)
        });
        place.is_some_and(|place| found.insert(place, index.to_vec()).is_none())
    });
    if complete { Ok(found) } else { Err("an index is outside of the physical shape, or shares its place".into()) }
}

/// The row-major position of a group's outputs. Outputs of extent 1 are left out.
fn numeral(group: &Group, vars: &[Var], shape: &[i128]) -> Expr {
    let digits = group.outputs.iter().filter(|&&output| shape[output] != 1);
    let number = digits.fold(None, |number: Option<Expr>, &output| {
        let digit = Expr::from(&vars[output]);
        Some(number.map_or(digit.clone(), |number| number * int(shape[output]) + digit))
    });
    number.unwrap_or_else(|| int(0))
}

/// A constant: int32, or int64 if it does not fit.
fn int(value: i128) -> Expr {
    Expr::int_of(value, tilewright_ir::ScalarType::Int32)
        .unwrap_or(Expr::Int { value, ty: tilewright_ir::ScalarType::Int64 })
}

/// Splits points into pieces, each as long as possible.
fn pieces(points: impl Iterator<Item = (i128, i128)>) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Vec::new();
    for (place, value) in points {
        if let Some(last) = pieces.last_mut() {
            let (run, rise) = (place - last.from, value - last.at);
            let goes_on = if last.from == last.to {
                rise % run == 0 && {
                    last.step = rise / run;
                    true
                }
            } else {
                rise == last.step * run
            };
            if goes_on {
                last.to = place;
                continue;
            }
        }
        pieces.push(Piece { from: place, to: place, at: value, step: 0 });
    }
    pieces
}

/// Writes the value of the piece that a position is in, as nested conditions by halving.
fn chosen(pieces: &[Piece], place: &Expr) -> Expr {
    match pieces {
        [] => int(0),
        [piece] => int(piece.at - piece.step * piece.from) + place.clone() * int(piece.step),
        [_, _, ..] => {
            let (low, high) = pieces.split_at(pieces.len() / 2);
            let below = place.clone().lt(int(high[0].from));
            Expr::IfThenElse(below.into(), chosen(low, place).into(), chosen(high, place).into())
        }
    }
}

/// Returns the condition that a position is one of those that are reached, as a disjunction of runs with equal steps.
fn reached(
    places: &BTreeMap<i128, Vec<i128>>,
    group: &Group,
    place: &Expr,
    shape: &[i128],
    ranges: &Ranges,
) -> Result<Expr, String> {
    let size = group.outputs.iter().try_fold(1i128, |size, &output| size.checked_mul(shape[output]));
    let numbered = places.keys().enumerate().filter_map(|(number, &place)| Some((i128::try_from(number).ok()?, place)));
    // The inverse pieces: the position with rank n among all positions that are reached, as a function of n.
    let runs = pieces(numbered);
    if runs.len() > MAX_PIECES {
        return Err(format!("the places that it reaches are in more than {MAX_PIECES} runs"));
    }
    let one = |run: &Piece| {
        let last = run.at + run.step * (run.to - run.from);
        let mut parts = Vec::new();
        if run.at > 0 {
            parts.push(Expr::binary(BinaryOp::Ge, place.clone(), int(run.at)));
        }
        if Some(last + 1) != size {
            parts.push(place.clone().lt(int(last + 1)));
        }
        if run.step > 1 {
            let rest = place.clone().floor_mod(int(run.step));
            parts.push(Expr::binary(BinaryOp::Eq, rest, int(run.at % run.step)));
        }
        all_of(&parts, ranges)
    };
    Ok(any_of(&runs.iter().map(one).collect::<Vec<_>>(), ranges))
}
