//! The last resort for small constant maps: what was found by looking at all points, written as runs.
//!
//! Axes and outputs that have nothing to do with each other are looked at alone. The place of a group's outputs is numbered
//! in row-major order; along these numbers each logical index goes up in runs.

use std::collections::BTreeMap;

use tilewright_ir::{BinaryOp, Bindings, Expr, IndexMap, ScalarType, Var};

use super::super::logic::any_of;
use super::super::ranges::Ranges;

/// Points of a group that are looked at.
const POINTS: i128 = 1 << 10;
/// Places of a group.
const PLACES: i128 = 1 << 20;
/// Runs of an index that are written down.
const RUNS: usize = 64;

/// Axes and outputs that depend on each other.
#[derive(Default)]
struct Group {
    axes: Vec<usize>,
    outputs: Vec<usize>,
}

/// The logical indices in terms of the physical ones, and whether a place is reached.
pub(super) fn table(map: &IndexMap, physical: &[Expr], vars: &[Var], ranges: &Ranges) -> Option<(Vec<Expr>, Expr)> {
    let constants = |exprs: &[Expr]| exprs.iter().map(Expr::as_const_int).collect::<Option<Vec<_>>>();
    let (domain, physical) = (constants(map.domain())?, constants(physical)?);
    let scalar = map.vars().iter().chain(vars).next()?.dtype().scalar;
    let one_type = map.vars().iter().chain(vars).all(|var| var.dtype().scalar == scalar);
    if !one_type || domain.iter().chain(&physical).any(|extent| *extent < 1) {
        return None;
    }
    let mut indices = vec![Expr::Int { value: 0, ty: scalar }; domain.len()];
    let mut reached = Vec::new();
    for group in groups(map) {
        let place = group.outputs.iter().fold(Expr::Int { value: 0, ty: scalar }, |place, &output| {
            let index = Expr::from(&vars[output]);
            let extent = Expr::Int { value: physical[output], ty: scalar };
            if place.as_const_int() == Some(0) { index } else { place * extent + index }
        });
        let found = places(map, &domain, &physical, &group)?;
        for (position, &axis) in group.axes.iter().enumerate() {
            let values: Vec<(i128, i128)> = found.iter().map(|(place, point)| (*place, point[position])).collect();
            indices[axis] = runs(&place, &values, scalar)?;
        }
        let all = product(&group.outputs, &physical)?;
        if i128::try_from(found.len()).ok()? < all {
            let places: Vec<i128> = found.into_keys().collect();
            let within = |run: &[i128]| -> Option<Expr> {
                let [first, last] = [run.first()?, run.last()?].map(|value| Expr::Int { value: *value, ty: scalar });
                let low = Expr::binary(BinaryOp::Ge, place.clone(), first);
                Some(Expr::binary(BinaryOp::And, low, Expr::binary(BinaryOp::Le, place.clone(), last)))
            };
            let parts: Vec<Expr> = places.chunk_by(|a, b| a + 1 == *b).map(within).collect::<Option<_>>()?;
            (parts.len() <= RUNS).then_some(())?;
            reached.push(any_of(&parts, ranges));
        }
    }
    let reached = reached.into_iter().reduce(|all, part| Expr::binary(BinaryOp::And, all, part));
    Some((indices, reached.unwrap_or_else(|| Expr::bool(true))))
}

/// The groups of a map; an axis that no output depends on is one without outputs.
fn groups(map: &IndexMap) -> Vec<Group> {
    let mut groups: Vec<Group> =
        (0..map.vars().len()).map(|axis| Group { axes: vec![axis], outputs: Vec::new() }).collect();
    for (output, expr) in map.outputs().iter().enumerate() {
        let used = expr.vars();
        let uses = |group: &Group| group.axes.iter().any(|&axis| used.contains(&map.vars()[axis]));
        let (joined, others): (Vec<Group>, Vec<Group>) = groups.into_iter().partition(uses);
        groups = others;
        let mut all = Group::default();
        for group in joined {
            all.axes.extend(group.axes);
            all.outputs.extend(group.outputs);
        }
        all.axes.sort_unstable();
        all.outputs.push(output);
        all.outputs.sort_unstable();
        groups.push(all);
    }
    groups
}

fn product(which: &[usize], extents: &[i128]) -> Option<i128> {
    which.iter().try_fold(1i128, |all, &at| all.checked_mul(extents[at]))
}

/// The logical indices of a group by the place that they land on; none if two share one, or one has none.
fn places(map: &IndexMap, domain: &[i128], physical: &[i128], group: &Group) -> Option<BTreeMap<i128, Vec<i128>>> {
    let (points, places) = (product(&group.axes, domain)?, product(&group.outputs, physical)?);
    if points > POINTS || places > PLACES {
        return None;
    }
    let mut found = BTreeMap::new();
    for number in 0..points {
        let mut rest = number;
        let mut bindings: Bindings = map.vars().iter().map(|var| (var.clone(), 0)).collect();
        let mut point = Vec::with_capacity(group.axes.len());
        for &axis in &group.axes {
            point.push(rest % domain[axis]);
            bindings.insert(map.vars()[axis].clone(), rest % domain[axis]);
            rest /= domain[axis];
        }
        let mut place = 0;
        for &output in &group.outputs {
            let index = map.outputs()[output].eval_index(&bindings).ok()?;
            (0..physical[output]).contains(&index).then_some(())?;
            place = place * physical[output] + index;
        }
        if found.insert(place, point).is_some() {
            return None;
        }
    }
    Some(found)
}

/// A value by its place: in a run it goes up with the place, or stays.
fn runs(place: &Expr, values: &[(i128, i128)], scalar: ScalarType) -> Option<Expr> {
    let int = |value: i128| Expr::Int { value, ty: scalar };
    let mut runs: Vec<(i128, Expr)> = Vec::new();
    let mut rest = values;
    while let Some(&(first, value)) = rest.first() {
        let rising = rest.iter().take_while(|(at, here)| here - value == at - first).count();
        let level = rest.iter().take_while(|(_, here)| *here == value).count();
        let moved = value - first;
        let written = match (level >= rising, moved) {
            (true, _) => int(value),
            (false, 0) => place.clone(),
            (false, 1..) => place.clone() + int(moved),
            (false, _) => place.clone() - int(-moved),
        };
        runs.push((first, written));
        rest = &rest[level.max(rising)..];
    }
    (runs.len() <= RUNS).then_some(())?;
    let (mut start, mut chosen) = runs.pop()?;
    for (first, value) in runs.into_iter().rev() {
        let before = place.clone().lt(int(start));
        chosen = Expr::IfThenElse(Box::new(before), Box::new(value), Box::new(chosen));
        start = first;
    }
    Some(chosen)
}
