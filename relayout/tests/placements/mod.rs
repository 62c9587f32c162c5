//! Placements that the tests and the benchmark of moves share.

#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::cast_possible_wrap,
    reason = "each user needs a part of it; a test fails by panicking, and its numbers are small"
)]

use tilewright_ir::{Expr, IndexMap, Var};
use tilewright_relayout::Placement;

/// A map from a shape, written as a function of the indices.
pub(crate) fn map(extents: &[u64], outputs: impl Fn(&[Expr]) -> Vec<Expr>) -> IndexMap {
    let vars: Vec<Var> = (0..extents.len()).map(|axis| Var::index(format!("i{axis}"))).collect();
    let index: Vec<Expr> = vars.iter().map(Expr::from).collect();
    let domain = extents.iter().map(|&extent| Expr::int(extent as i64)).collect();
    IndexMap::new(vars, domain, outputs(&index), Vec::new()).unwrap()
}

pub(crate) fn permuted(extents: &[u64], order: &[usize]) -> Placement {
    let shape = order.iter().map(|&axis| extents[axis]).collect();
    Placement { shape, map: map(extents, |index| order.iter().map(|&axis| index[axis].clone()).collect()) }
}

pub(crate) fn over(index: &Expr, size: i64) -> [Expr; 2] {
    [index.clone().floor_div(Expr::int(size)), index.clone().floor_mod(Expr::int(size))]
}

/// Tiles of `a` by `b` on two axes.
pub(crate) fn tiled(extents: &[u64], (a, b): (u64, u64)) -> Placement {
    let shape = vec![extents[0].div_ceil(a), extents[1].div_ceil(b), a, b];
    let outputs = |index: &[Expr]| {
        let ([q0, r0], [q1, r1]) = (over(&index[0], a as i64), over(&index[1], b as i64));
        vec![q0, q1, r0, r1]
    };
    Placement { shape, map: map(extents, outputs) }
}

/// `(8,128)(2,1)`: pairs of rows beside each other.
pub(crate) fn paired(extents: &[u64]) -> Placement {
    let shape = vec![extents[0].div_ceil(8), extents[1].div_ceil(128), 4, 128, 2];
    let outputs = |index: &[Expr]| {
        let ([q0, r0], [q1, r1]) = (over(&index[0], 8), over(&index[1], 128));
        let [pair, within] = over(&r0, 2);
        vec![q0, q1, pair, r1, within]
    };
    Placement { shape, map: map(extents, outputs) }
}

/// Axis 1 in blocks of `size`, which become the last axis.
pub(crate) fn blocked(extents: &[u64], size: u64) -> Placement {
    let shape = vec![extents[0], extents[1].div_ceil(size), extents[2], extents[3], size];
    let outputs = |index: &[Expr]| {
        let [q, r] = over(&index[1], size as i64);
        vec![index[0].clone(), q, index[2].clone(), index[3].clone(), r]
    };
    Placement { shape, map: map(extents, outputs) }
}
