//! The small shapes on which a symbolic claim is tried: values of the symbols that satisfy the assumptions, smallest first.
//!
//! For `n` and `c` with the assumption `c % 4 == 0` the first shapes are (1, 4), (2, 4), (3, 4), (4, 4) and (1, 8).
//!
//! Small shapes come first because a counterexample on a small shape is easy to read, and because most mistakes show
//! there: an extent of 1, a block that is not full, two extents exchanged. No proof rests on the choice.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use tilewright_ir::{Bindings, Expr, Var};

/// Number of values tried for a symbol.
const VALUES: usize = 24;
/// Number of shapes, and of special ones besides.
const SHAPES: usize = 160;
/// With more symbols only the smallest shape is tried.
const SYMBOLS: usize = 256;
/// Greatest value at which values that satisfy the assumptions are searched for.
const REACH: i128 = 4096;

/// Values of the symbols that satisfy `assumptions`, ordered by their sum and then lexicographically. The smallest shapes
/// are followed by some around the constants of `exprs`, where the behaviour of a map changes.
///
/// Without symbols the only shape is the empty one.
pub(crate) fn shapes<'e>(
    symbols: &[Var],
    assumptions: &'e [Expr],
    exprs: impl IntoIterator<Item = &'e Expr>,
) -> Vec<Bindings> {
    if symbols.is_empty() {
        return vec![Bindings::new()];
    }
    let constants = constants(exprs.into_iter().chain(assumptions));
    let values: Vec<Vec<i128>> = symbols.iter().map(|symbol| values(symbol, assumptions, &constants)).collect();
    if values.iter().any(Vec::is_empty) {
        return Vec::new();
    }
    if symbols.len() > SYMBOLS {
        let smallest: Vec<i128> = values.iter().map(|values| values[0]).collect();
        let bound = || symbols.iter().cloned().zip(smallest.iter().copied()).collect();
        return if holds(symbols, &smallest, assumptions) { vec![bound()] } else { Vec::new() };
    }
    let mut found = by_size(&values, SHAPES, |shape| holds(symbols, shape, assumptions));
    // A map changes its behaviour where an extent passes a constant, such as the size of a block. Each symbol is put
    // there while the others stay small.
    let near: BTreeSet<i128> = constants.iter().flat_map(|c| [c - 1, *c, c + 1, 2 * c + 1]).collect();
    let mut special: BTreeSet<(i128, Vec<i128>)> = BTreeSet::new();
    for (symbol, axis) in symbols.iter().zip(0..).take(16) {
        for &value in near.iter().filter(|value| **value >= 1) {
            for base in 0..3 {
                let mut shape: Vec<i128> = values.iter().map(|values| values[base.min(values.len() - 1)]).collect();
                shape[axis] = value;
                let alone = holds(std::slice::from_ref(symbol), &[value], &own(symbol, assumptions));
                if alone && holds(symbols, &shape, assumptions) {
                    special.insert((sum(&shape), shape));
                }
            }
        }
    }
    // Different values for neighbouring symbols tell a map from one with two extents exchanged.
    for pattern in [[2, 3, 5, 7], [3, 2, 4, 5], [17, 1, 3, 2], [2, 3, 1, 17], [9, 7, 8, 6]] {
        let at_least = |(axis, values): (usize, &Vec<i128>)| {
            values.iter().copied().find(|value| *value >= pattern[axis % 4]).unwrap_or(values[values.len() - 1])
        };
        let shape: Vec<i128> = values.iter().enumerate().map(at_least).collect();
        if holds(symbols, &shape, assumptions) {
            special.insert((sum(&shape), shape));
        }
    }
    found.extend(special.into_iter().map(|(_, shape)| shape).take(SHAPES));
    let mut seen = BTreeSet::new();
    found.retain(|shape| seen.insert(shape.clone()));
    let mut bound: Vec<Bindings> = Vec::new();
    for shape in found {
        bound.push(symbols.iter().cloned().zip(shape).collect());
    }
    bound
}

/// The sum of the extents, saturating.
fn sum(shape: &[i128]) -> i128 {
    shape.iter().fold(0, |sum, value| sum.saturating_add(*value))
}

/// Whether the values are of the symbols' types and satisfy the assumptions; an assumption without a value is not
/// satisfied.
pub(crate) fn holds(symbols: &[Var], shape: &[i128], assumptions: &[Expr]) -> bool {
    let is_of_type = |(symbol, value): (&Var, &i128)| {
        symbol.dtype().scalar.integer_range().is_none_or(|(low, high)| (low..=high).contains(value))
    };
    if !symbols.iter().zip(shape).all(is_of_type) {
        return false;
    }
    let bindings: Bindings = symbols.iter().cloned().zip(shape.iter().copied()).collect();
    assumptions.iter().all(|assumption| assumption.eval_index(&bindings).is_ok_and(|value| value != 0))
}

/// The assumptions that contain no other symbol.
fn own(symbol: &Var, assumptions: &[Expr]) -> Vec<Expr> {
    assumptions.iter().filter(|assumption| assumption.vars() == [symbol.clone()]).cloned().collect()
}

/// The least values that satisfy the assumptions about a symbol alone; values near the constants if none is small.
fn values(symbol: &Var, assumptions: &[Expr], constants: &BTreeSet<i128>) -> Vec<i128> {
    let own = own(symbol, assumptions);
    let allowed = |value: &i128| holds(std::slice::from_ref(symbol), &[*value], &own);
    let mut values: Vec<i128> = (1..=REACH).filter(allowed).take(VALUES).collect();
    if values.is_empty() {
        let near = constants.iter().flat_map(|c| [c - 1, *c, c + 1, 2 * c]).filter(|value| *value >= 1);
        values = near.collect::<BTreeSet<_>>().into_iter().filter(allowed).take(VALUES).collect();
    }
    values
}

/// The combinations of `values` (each increasing) in the order of their sum, then lexicographic.
fn by_size(values: &[Vec<i128>], limit: usize, holds: impl Fn(&[i128]) -> bool) -> Vec<Vec<i128>> {
    let value = |at: &[usize]| -> Vec<i128> { values.iter().zip(at).map(|(values, &at)| values[at]).collect() };
    let mut next = BinaryHeap::new();
    let start = vec![0; values.len()];
    next.push(Reverse((sum(&value(&start)), value(&start), start)));
    let (mut found, mut left) = (Vec::new(), (16 * limit).min((1 << 17) / (values.len() * values.len()) + 16));
    while let Some(Reverse((_, shape, at))) = next.pop() {
        if holds(&shape) {
            found.push(shape);
        }
        left -= 1;
        if found.len() >= limit || left == 0 {
            break;
        }
        // Each combination has one predecessor: the one with its last raised axis lowered.
        let last = at.iter().rposition(|at| *at > 0).unwrap_or(0);
        for axis in last..values.len() {
            if at[axis] + 1 < values[axis].len() {
                let mut at = at.clone();
                at[axis] += 1;
                next.push(Reverse((sum(&value(&at)), value(&at), at)));
            }
        }
    }
    found
}

/// The smallest constants of expressions, from 2 to 2^20.
fn constants<'e>(exprs: impl IntoIterator<Item = &'e Expr>) -> BTreeSet<i128> {
    let mut found = BTreeSet::new();
    for expr in exprs {
        expr.walk(&mut |part| {
            if let Some(value) = part.as_const_int().filter(|value| (2..=1 << 20).contains(value)) {
                found.insert(value);
            }
        });
    }
    found.into_iter().take(12).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn smaller_shapes_come_first_and_assumptions_hold() {
        let (n, c) = (Var::index("n"), Var::index("c"));
        let divisible = Expr::binary(tilewright_ir::BinaryOp::Eq, Expr::from(&c).floor_mod(Expr::int(4)), Expr::int(0));
        let less = Expr::from(&n).lt(Expr::from(&c));
        let found = shapes(&[n.clone(), c.clone()], &[divisible, less], []);
        let pairs: Vec<_> = found.iter().map(|bound| (bound[&n], bound[&c])).collect();
        assert_eq!(&pairs[..5], &[(1, 4), (2, 4), (3, 4), (1, 8), (2, 8)]);
        assert!(pairs.iter().all(|(n, c)| c % 4 == 0 && n < c));
        assert!(pairs.len() > 50);
    }

    #[test]
    fn a_bound_that_is_far_away_is_found_by_its_constant() {
        let n = Var::index("n");
        let far = Expr::int(100_000).lt(Expr::from(&n));
        let found = shapes(std::slice::from_ref(&n), &[far], []);
        assert_eq!(found.first().map(|bound| bound[&n]), Some(100_001));
    }

    #[test]
    fn the_number_of_shapes_is_bounded_for_many_symbols() {
        let symbols: Vec<Var> = (0..200).map(|at| Var::index(format!("n{at}"))).collect();
        let found = shapes(&symbols, &[], []);
        assert!((10..1000).contains(&found.len()), "{}", found.len());
        let symbols: Vec<Var> = (0..5000).map(|at| Var::index(format!("n{at}"))).collect();
        assert_eq!(shapes(&symbols, &[], []).len(), 1);
    }
}
