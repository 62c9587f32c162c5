//! The least and the greatest value of an index over a box of constant extents, exactly.
//!
//! Branch and bound: the part of the box whose interval has the greatest upper bound is halved, until a value that is
//! attained equals the bound of everything left. If that does not decide within its limits, all points are enumerated,
//! provided there are few enough.

use std::collections::BinaryHeap;

use tilewright_ir::{Bindings, EvalError, Expr, Var};

use super::ranges::Ranges;

/// Parts examined before the search gives up.
const MAX_BOXES: usize = 1500;
/// Boxes with more points than this are not enumerated.
const MAX_POINTS: i128 = 1 << 20;

/// A value and the point at which it is attained.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Attained {
    pub(super) value: i128,
    pub(super) at: Vec<i128>,
}

/// Returns the least and the greatest value over `0 <= var < extent`, for extents of at least 1. Returns `None` if
/// neither search nor enumeration finds them.
///
/// # Errors
/// The expression has no value at some point, for example because of a division by 0.
pub(super) fn extremes(expr: &Expr, vars: &[(Var, i128)]) -> Result<Option<(Attained, Attained)>, EvalError> {
    let greatest = search(expr, vars, false)?;
    match greatest {
        Some(greatest) => match search(expr, vars, true)? {
            Some(least) => Ok(Some((least, greatest))),
            None => enumerated(expr, vars),
        },
        None => enumerated(expr, vars),
    }
}

/// Calls `visit` on the points of a box in row-major order, until it returns false. Returns whether it never did.
pub(super) fn each_point(extents: &[i128], mut visit: impl FnMut(&[i128]) -> bool) -> bool {
    if extents.iter().any(|&extent| extent < 1) {
        return true;
    }
    let mut point = vec![0i128; extents.len()];
    loop {
        if !visit(&point) {
            return false;
        }
        let next = (0..extents.len()).rev().find(|&axis| {
            point[axis] += 1;
            let fits = point[axis] < extents[axis];
            if !fits {
                point[axis] = 0;
            }
            fits
        });
        if next.is_none() {
            return true;
        }
    }
}

/// The least and the greatest value by evaluation at every point; `None` if there are more than [`MAX_POINTS`].
fn enumerated(expr: &Expr, vars: &[(Var, i128)]) -> Result<Option<(Attained, Attained)>, EvalError> {
    let extents: Vec<i128> = vars.iter().map(|(_, extent)| *extent).collect();
    let size = extents.iter().try_fold(1i128, |size, extent| size.checked_mul(*extent));
    if size.is_none_or(|size| size > MAX_POINTS) {
        return Ok(None);
    }
    // The first point with an error ends the walk: the index has no extremes if it has no value somewhere.
    let (mut found, mut fault): (Option<(Attained, Attained)>, _) = (None, None);
    let mut bindings: Bindings = vars.iter().map(|(var, _)| (var.clone(), 0)).collect();
    each_point(&extents, |at| {
        for ((var, _), value) in vars.iter().zip(at) {
            bindings.entry(var.clone()).and_modify(|place| *place = *value);
        }
        match expr.eval_index(&bindings) {
            Ok(value) => {
                let here = || Attained { value, at: at.to_vec() };
                match &mut found {
                    None => found = Some((here(), here())),
                    Some((least, greatest)) => {
                        if value < least.value {
                            *least = here();
                        }
                        if value > greatest.value {
                            *greatest = here();
                        }
                    }
                }
                true
            }
            Err(error) => {
                fault = Some(error);
                false
            }
        }
    });
    fault.map_or(Ok(found), Err)
}

/// A part of the box: an upper bound of the values in it, and the first and last index on each axis. Ordered by the
/// bound, for the heap.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Part {
    bound: i128,
    ends: Vec<(i128, i128)>,
}

/// How often a variable occurs in an expression.
fn occurrences(expr: &Expr, var: &Var) -> usize {
    let mut count = 0;
    expr.walk(&mut |node| count += usize::from(matches!(node, Expr::Var(other) if other == var)));
    count
}

/// Branch and bound for the greatest value; for the least one with all values negated.
fn search(expr: &Expr, vars: &[(Var, i128)], least: bool) -> Result<Option<Attained>, EvalError> {
    let sign = if least { -1 } else { 1 };
    let bound = |ends: &[(i128, i128)]| {
        let ranges =
            vars.iter().zip(ends).fold(Ranges::new(), |ranges, ((var, _), (lo, hi))| ranges.within(var, *lo, *hi));
        let interval = ranges.expr_interval(expr);
        if least { interval.least().and_then(i128::checked_neg) } else { interval.greatest() }
    };
    let value = |at: &[i128]| {
        let bindings: Bindings = vars.iter().map(|(var, _)| var.clone()).zip(at.iter().copied()).collect();
        expr.eval_index(&bindings).map(|value| value.saturating_mul(sign))
    };
    let whole: Vec<(i128, i128)> = vars.iter().map(|(_, extent)| (0, extent - 1)).collect();
    let Some(first) = bound(&whole) else { return Ok(None) };
    // Bounds are wide where a variable occurs more than once, as in `c // 4 * 63 + c % 4`: its axis is halved first.
    let repeated: Vec<bool> = vars.iter().map(|(var, _)| occurrences(expr, var) > 1).collect();
    let mut best: Option<Attained> = None;
    let mut parts = BinaryHeap::from([Part { bound: first, ends: whole }]);
    for _ in 0..MAX_BOXES {
        let Some(Part { bound: limit, ends }) = parts.pop() else { break };
        if best.as_ref().is_some_and(|best| best.value >= limit) {
            break;
        }
        let (low, high): (Vec<i128>, Vec<i128>) = ends.iter().copied().unzip();
        // Most indices are monotonic, so a corner attains the bound and the search ends at once.
        for at in [low, high] {
            let value = value(&at)?;
            if best.as_ref().is_none_or(|best| value > best.value) {
                best = Some(Attained { value, at });
            }
        }
        if best.as_ref().is_some_and(|best| best.value >= limit) {
            break;
        }
        let width = |axis: usize| ends[axis].1 - ends[axis].0;
        let Some(axis) = (0..ends.len()).max_by_key(|&axis| (repeated[axis] && width(axis) > 0, width(axis))) else {
            break;
        };
        let (lo, hi) = ends[axis];
        if lo == hi {
            continue;
        }
        let middle = lo + (hi - lo) / 2;
        for half in [(lo, middle), (middle + 1, hi)] {
            let mut ends = ends.clone();
            ends[axis] = half;
            let Some(bound) = bound(&ends) else { return Ok(None) };
            parts.push(Part { bound, ends });
        }
        if parts.len() > MAX_BOXES {
            return Ok(None);
        }
    }
    let done = |best: &Attained| parts.peek().is_none_or(|part| part.bound <= best.value);
    Ok(best.filter(done).map(|best| Attained { value: best.value.saturating_mul(sign), at: best.at }))
}
