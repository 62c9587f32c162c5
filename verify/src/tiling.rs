//! What an XLA layout means, written down by the judge: pad, reshape, transpose.
//!
//! An array of extents `d` under a tile `t` is padded to `ceil(d / t) * t`, each of its dimensions is reshaped to
//! `(ceil(d / t), t)`, and the transpose moves all of the `t` behind all of the counts. The next tile does the same to the
//! last dimensions of what came out.

use tilewright_ir::layout::{Layout, TileDim};
use tilewright_ir::{Expr, IndexMap, Var};

/// Where an element is along a dimension, and how long the dimension is.
type Coordinate = (Expr, Expr);

/// Longest that all indices of a layout together may be: folding the same dimensions again and again doubles them.
const MAX_PARTS: usize = 4096;

/// The map of a layout on an array of these extents, over `vars`, and the extents of its outputs; none for a layout that
/// is no order of these dimensions, does more than order and tile them, or folds dimensions without end.
pub fn meaning(layout: &Layout, vars: &[Var], shape: &[Expr]) -> Option<(IndexMap, Vec<Expr>)> {
    let rank = shape.len();
    let bare = Layout::new(layout.minor_to_major.clone()).with_tiles(layout.tiles.clone());
    let mut order = layout.minor_to_major.clone();
    order.sort_unstable();
    if vars.len() != rank || bare != *layout || !order.into_iter().eq(0..rank) {
        return None;
    }
    let at = |dimension: &usize| (Expr::from(&vars[*dimension]), shape[*dimension].clone());
    let mut array: Vec<Coordinate> = layout.minor_to_major.iter().rev().map(at).collect();
    for tile in &layout.tiles {
        array = tiled(array, &tile.0)?;
        let mut parts = 0usize;
        for (index, _) in &array {
            index.walk(&mut |_| parts += 1);
        }
        if parts > MAX_PARTS {
            return None;
        }
    }
    let (outputs, extents) = array.into_iter().unzip();
    let map = IndexMap::new(vars.to_vec(), shape.to_vec(), outputs, Vec::new()).ok()?;
    Some((map, extents))
}

/// An array under one tile.
fn tiled(mut array: Vec<Coordinate>, tile: &[TileDim]) -> Option<Vec<Coordinate>> {
    while array.len() < tile.len() {
        array.insert(0, (Expr::int(0), Expr::int(1)));
    }
    let touched = array.split_off(array.len() - tile.len());
    let (array_part, sizes) = combined(touched, tile)?;
    let (mut counts, mut inside) = (Vec::new(), Vec::new());
    for ((index, extent), size) in array_part.into_iter().zip(sizes) {
        let padded = extent + (size.clone() - Expr::int(1));
        counts.push((index.clone().floor_div(size.clone()), padded.floor_div(size.clone())));
        inside.push((index.floor_mod(size.clone()), size));
    }
    array.extend(counts);
    array.extend(inside);
    Some(array)
}

/// Dimensions under a `*` become one with the next: `[d1, d2]` is `[d1 * d2]`, row-major.
fn combined(touched: Vec<Coordinate>, tile: &[TileDim]) -> Option<(Vec<Coordinate>, Vec<Expr>)> {
    let (mut array, mut sizes): (Vec<Coordinate>, Vec<Expr>) = (Vec::new(), Vec::new());
    let mut folds = false;
    for ((index, extent), dim) in touched.into_iter().zip(tile) {
        let before = if folds { array.pop() } else { None };
        let coordinate = match before {
            Some((high, length)) => (high * extent.clone() + index, length * extent),
            None => (index, extent),
        };
        array.push(coordinate);
        folds = match dim {
            TileDim::Combine => true,
            TileDim::Size(size) => {
                sizes.push(Expr::int(i64::try_from(*size).ok().filter(|size| *size > 0)?));
                false
            }
        };
    }
    (!folds).then_some((array, sizes))
}
