//! Concrete points: for tests before Z3 is asked, and for checking counterexamples.
//!
//! Expressions are evaluated by the language's own evaluation ([`Expr::eval_index`]), never as solver terms.
//!
//! ```text
//! points(&[2, 3], 6)         all 6 points
//! points(&[64, 1021], 500)   (0, 0) to (14, 14), the four corners, and about 125 others
//! ```
//!
//! Sampled points can refute a claim. They prove it only if they are the whole box.

use tilewright_ir::{Bindings, Expr, Var};

/// Values of the symbolic extents to try, smallest first, some with pairwise different extents.
///
/// Each instance binds all `symbols`; without symbols the only instance is empty.
pub fn instances(symbols: &[Var]) -> Vec<Bindings> {
    if symbols.is_empty() {
        return vec![Bindings::new()];
    }
    let patterns: [&dyn Fn(usize) -> i128; 8] = [
        &|_| 1,
        &|_| 2,
        &|position| [2, 3, 5, 7][position % 4],
        &|position| [3, 2, 4, 5][position % 4],
        &|position| [5, 4, 3, 2][position % 4],
        &|position| [1, 9, 2, 6][position % 4],
        &|position| [17, 1, 3, 2][position % 4],
        &|position| [2, 3, 1, 17][position % 4],
    ];
    patterns
        .iter()
        .map(|pattern| symbols.iter().enumerate().map(|(position, var)| (var.clone(), pattern(position))).collect())
        .collect()
}

/// The values of extents; `None` if one has no value or is negative.
pub fn extents(shape: &[Expr], symbols: &Bindings) -> Option<Vec<i128>> {
    shape.iter().map(|extent| extent.eval_index(symbols).ok().filter(|&value| value >= 0)).collect()
}

/// The values of the extents of a stated physical shape; `None` if one has no value. A negative extent is kept: an axis
/// with it holds no index, like one of extent 0.
pub fn stated_extents(shape: &[Expr], symbols: &Bindings) -> Option<Vec<i128>> {
    shape.iter().map(|extent| extent.eval_index(symbols).ok()).collect()
}

/// Different points of the box `0..extents`, in row-major order: all of them if there are at most `limit`; otherwise about
/// `limit` of them, those of a smaller box at the origin, the corners, and some in between.
pub fn points(extents: &[i128], limit: usize) -> Vec<Vec<i128>> {
    if extents.contains(&0) {
        return Vec::new();
    }
    let total = extents.iter().try_fold(1i128, |product, &extent| product.checked_mul(extent));
    let fits =
        |count: Option<i128>| count.is_some_and(|count| usize::try_from(count).is_ok_and(|count| count <= limit));
    if fits(total) {
        return row_major(extents);
    }
    // With many axes even the box of side 2 has too many points.
    let mut side = 1;
    let box_of = |side: i128| extents.iter().map(|&extent| extent.min(side)).collect::<Vec<_>>();
    while fits(box_of(side + 1).iter().try_fold(2i128, |product, &extent| product.checked_mul(extent))) {
        side += 1;
    }
    let mut found = row_major(&box_of(side));
    found.truncate(limit);
    found.extend(corners(extents, limit));
    found.extend(scattered(extents, limit / 4));
    found.sort_unstable();
    found.dedup();
    found
}

/// The corners of the box: combinations of first and last indices, at most `limit`.
fn corners(extents: &[i128], limit: usize) -> Vec<Vec<i128>> {
    let bits = u32::try_from(extents.len().min(16)).unwrap_or(16);
    let count = (1usize << bits).min(limit);
    let end = |mask: usize, axis: usize, extent: i128| if mask >> axis.min(15) & 1 == 1 { extent - 1 } else { 0 };
    (0..count).map(|mask| extents.iter().enumerate().map(|(axis, &extent)| end(mask, axis, extent)).collect()).collect()
}

/// Pseudo-random points of the box, the same ones on every run.
fn scattered(extents: &[i128], count: usize) -> Vec<Vec<i128>> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        i128::from(state >> 16)
    };
    (0..count).map(|_| extents.iter().map(|&extent| next().rem_euclid(extent)).collect()).collect()
}

/// All points of the box, the last axis fastest.
pub fn row_major(extents: &[i128]) -> Vec<Vec<i128>> {
    let mut found = vec![Vec::new()];
    for &extent in extents {
        found = found
            .into_iter()
            .flat_map(|point: Vec<i128>| {
                (0..extent).map(move |value| {
                    let mut longer = point.clone();
                    longer.push(value);
                    longer
                })
            })
            .collect();
    }
    found
}

/// `(1, 2, 3)`, as indices are written.
pub fn tuple(index: &[i128]) -> String {
    let inner: Vec<_> = index.iter().map(ToString::to_string).collect();
    if let [only] = inner.as_slice() { only.clone() } else { format!("({})", inner.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_points_of_a_small_box_are_listed() {
        assert_eq!(points(&[2, 3], 6).len(), 6);
        assert_eq!(points(&[], 6), vec![Vec::<i128>::new()]);
        assert!(points(&[3, 0], 6).is_empty());
    }

    #[test]
    fn the_number_of_points_is_bounded_for_many_axes() {
        let found = points(&[2; 200], 1000);
        assert!((100..5000).contains(&found.len()), "{}", found.len());
    }

    #[test]
    fn the_points_of_a_large_box_include_the_corners_and_are_inside() {
        let extents = [64, 1023, 1021, 255];
        let found = points(&extents, 500);
        assert!(found.len() < 1000);
        assert!(found.contains(&vec![63, 1022, 1020, 254]));
        assert!(
            found.iter().all(|point| point.iter().zip(&extents).all(|(index, extent)| (0..*extent).contains(index)))
        );
    }
}
