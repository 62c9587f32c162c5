//! Decides the obligations of a map by evaluating it at every point of its domain, or at those for which a predicate holds, and
//! of its shape.

use std::collections::HashSet;

use tilewright_ir::{Bindings, Expr, IndexMap, InverseClaim};

use super::table::{Table, n_points};

/// Limit on the number of points on either side.
pub const MAX_POINTS: usize = 1 << 16;

/// A map with all its images, and the obligations that hold of it.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "one fact for each obligation")]
pub struct Truth {
    points: Table,
    images: Vec<Vec<i64>>,
    domain: Vec<i64>,
    shape: Vec<i64>,
    symbols: Bindings,
    predicate: Option<Expr>,
    /// Every image is within the shape.
    pub bounds: bool,
    /// Different indices have different images.
    pub injective: bool,
    /// On each axis the last position is reached.
    pub tight: bool,
    /// No intermediate result exceeds its type.
    pub fits: bool,
}

/// Extents as numbers; `None` if one has no value or is negative.
pub fn numbers(extents: &[Expr], symbols: &Bindings) -> Option<Vec<i64>> {
    let one = |extent: &Expr| i64::try_from(extent.eval_index(symbols).ok()?).ok().filter(|extent| *extent >= 0);
    extents.iter().map(one).collect()
}

impl Truth {
    /// Evaluates a map on its whole domain. `None` if there are too many points or a point has no
    /// image.
    pub fn of(map: &IndexMap, shape: &[Expr], symbols: &Bindings) -> Option<Self> {
        Self::restricted(map, shape, symbols, None)
    }

    /// Evaluates a map at the indices for which a predicate holds. `None` if there are too many points or none, or one has no
    /// image.
    pub fn restricted(map: &IndexMap, shape: &[Expr], symbols: &Bindings, predicate: Option<&Expr>) -> Option<Self> {
        let (domain, shape) = (numbers(map.domain(), symbols)?, numbers(shape, symbols)?);
        let mut points = Table::of_box(map.vars(), &domain, symbols, MAX_POINTS)?;
        if let Some(predicate) = predicate {
            let holds = points.eval(predicate)?;
            let keep =
                |column: &Vec<i64>| column.iter().zip(&holds).filter(|(_, is)| **is != 0).map(|(at, _)| *at).collect();
            points = Table::of_columns(map.vars(), points.columns().iter().map(keep).collect(), symbols);
            (!points.is_empty()).then_some(())?;
        }
        let (mut images, mut fits) = (Vec::new(), true);
        for output in map.outputs() {
            let (values, output_fits) = points.eval_fitting(output)?;
            images.push(values);
            fits &= output_fits;
        }
        let inside = |(values, extent): (&Vec<i64>, &i64)| values.iter().all(|value| (0..*extent).contains(value));
        let bounds = images.iter().zip(&shape).all(inside);
        let tight = images.iter().zip(&shape).all(|(values, extent)| values.contains(&(extent - 1)));
        let injective = distinct(&images, points.len());
        let (symbols, predicate) = (symbols.clone(), predicate.cloned());
        Some(Self { points, images, domain, shape, symbols, predicate, bounds, injective, tight, fits })
    }

    /// Number of indices of the map.
    pub fn n_points(&self) -> usize {
        self.points.len()
    }

    /// The image of each index in row-major order, as a row-major number; `None` for images out of
    /// bounds.
    pub fn places(&self) -> Vec<Option<usize>> {
        (0..self.points.len()).map(|at| self.place(at)).collect()
    }

    /// The image of one index as a row-major number.
    fn place(&self, at: usize) -> Option<usize> {
        self.images.iter().zip(&self.shape).try_fold(0usize, |place, (values, extent)| {
            let inside = (0..*extent).contains(&values[at]);
            let (extent, value) = (usize::try_from(*extent).ok()?, usize::try_from(values[at]).ok()?);
            if inside { place.checked_mul(extent)?.checked_add(value) } else { None }
        })
    }

    /// Decides a claimed inverse. The first value says whether it leads back (`inverse(map(x)) =
    /// x`, and `map(inverse(p)) = p` except for padding), the second whether exactly the padding is
    /// never an image. `None` if there are too many positions or an expression has no value.
    pub fn of_inverse(&self, map: &IndexMap, claim: &InverseClaim) -> Option<[bool; 2]> {
        let n_places = n_points(&self.shape, MAX_POINTS)?;
        // First direction: every image is mapped back to its index.
        let images = Table::of_columns(&claim.vars, self.images.clone(), &self.symbols);
        let images = if self.images.is_empty() { Table::of_box(&[], &[], &self.symbols, 1)? } else { images };
        let (mut there, mut exact) = (true, true);
        for (output, column) in claim.outputs.iter().zip(self.points.columns()) {
            there &= images.eval(output)? == *column;
        }
        exact &= images.eval(&claim.padding)?.iter().all(|is_padding| *is_padding == 0);
        // Second direction: every position that is not padding is mapped to an index and back.
        let places = Table::of_box(&claim.vars, &self.shape, &self.symbols, MAX_POINTS)?;
        let kept: Vec<usize> =
            places.eval(&claim.padding)?.iter().enumerate().filter(|(_, is)| **is == 0).map(|(at, _)| at).collect();
        let mut reached = vec![false; n_places];
        for place in self.places().into_iter().flatten() {
            reached[place] = true;
        }
        exact &= kept.iter().all(|at| reached[*at]);
        let pick = |column: &Vec<i64>| -> Vec<i64> { kept.iter().map(|at| column[*at]).collect() };
        let mut indices = Vec::new();
        for (output, extent) in claim.outputs.iter().zip(&self.domain) {
            let values = pick(&places.eval(output)?);
            there &= values.iter().all(|value| (0..*extent).contains(value));
            indices.push(values);
        }
        if there && !kept.is_empty() && !indices.is_empty() {
            let indices = Table::of_columns(map.vars(), indices, &self.symbols);
            // The inverse has to lead to an index that the map is about.
            if let Some(predicate) = &self.predicate {
                there &= indices.eval(predicate)?.iter().all(|holds| *holds != 0);
            }
            for (output, column) in map.outputs().iter().zip(places.columns()) {
                there &= indices.eval(output)? == pick(column);
            }
        }
        Some([there, exact])
    }
}

/// Whether no two points have the same values. A point becomes one number if the ranges of the
/// columns allow it, because a table of flags or a sort is much faster than a hash set of lists.
fn distinct(columns: &[Vec<i64>], len: usize) -> bool {
    let ranges: Option<Vec<(i64, i64)>> =
        columns.iter().map(|column| Some((*column.iter().min()?, *column.iter().max()?))).collect();
    let Some(ranges) = ranges else { return len < 2 };
    let sizes = ranges.iter().map(|(low, high)| high.checked_sub(*low)?.checked_add(1));
    let size = sizes.clone().try_fold(1i64, |all, size| all.checked_mul(size?));
    let Some(size) = size else {
        let mut seen = HashSet::new();
        return (0..len).all(|at| seen.insert(columns.iter().map(|column| column[at]).collect::<Vec<_>>()));
    };
    let mut keys = vec![0i64; len];
    for ((column, (low, _)), size) in columns.iter().zip(&ranges).zip(sizes) {
        for (key, value) in keys.iter_mut().zip(column) {
            *key = *key * size.unwrap_or(1) + (value - low);
        }
    }
    if let Some(size) = usize::try_from(size).ok().filter(|size| *size <= 64 * len + 4096) {
        let mut seen = vec![false; size];
        return keys.iter().all(|key| usize::try_from(*key).is_ok_and(|key| !std::mem::replace(&mut seen[key], true)));
    }
    keys.sort_unstable();
    keys.windows(2).all(|pair| pair[0] != pair[1])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::map::MapCase;

    fn truth(text: &str, shape: &str, physical: &str) -> Truth {
        let case = MapCase::Lambda { text: text.into(), shape: shape.into(), physical: physical.into() };
        let built = case.build().unwrap();
        Truth::of(&built.map, &built.shape, &Bindings::new()).unwrap()
    }

    #[test]
    fn the_truth_about_maps_that_everyone_knows() {
        let facts = |truth: &Truth| [truth.bounds, truth.injective, truth.tight, truth.fits];
        let split = "lambda c: [c // 4, c % 4]";
        assert_eq!(facts(&truth(split, "17", "5,4")), [true; 4]);
        assert_eq!(facts(&truth(split, "17", "4,4")), [false, true, true, true]);
        assert_eq!(facts(&truth(split, "17", "6,4")), [true, true, false, true]);
        assert_eq!(facts(&truth("lambda c: [c // 4, c % 3]", "17", "5,3")), [true, false, true, true]);
        assert_eq!(facts(&truth("lambda a, b: [a * 4 + b]", "3,5", "13")), [true, false, true, true]);
        assert_eq!(facts(&truth("lambda c: [c * 2000000000 // 2000000000]", "3", "3")), [true, true, true, false]);
        assert_eq!(facts(&truth("lambda c: [c, c * 1000000000 * 4]", "2", "2,9")), [false, true, false, false]);
    }

    #[test]
    fn an_index_that_is_left_out_reaches_nothing() {
        let case = |text: &str| MapCase::Lambda { text: text.into(), shape: "5".into(), physical: "5".into() };
        let built = case("lambda i: [i % 3]").build().unwrap();
        let i = Expr::from(&built.map.vars()[0]);
        let below = i.clone().lt(Expr::int(3));
        let of = |predicate| Truth::restricted(&built.map, &built.shape, &Bindings::new(), predicate);
        assert!(!of(None).unwrap().injective && of(Some(&below)).unwrap().injective);
        let nowhere = i.lt(Expr::int(0));
        assert!(of(Some(&nowhere)).is_none(), "the predicate holds nowhere");
        // Of the physical indices 0 to 4 the indices 0, 1 and 2 are reached.
        let vars = built.map.vars().to_vec();
        let claim = |padding: Expr| InverseClaim { outputs: vec![Expr::from(&vars[0])], vars: vars.clone(), padding };
        let truth = of(Some(&below)).unwrap();
        assert_eq!(truth.of_inverse(&built.map, &claim(tilewright_algebra::negate(&below))), Some([true, true]));
        assert_eq!(truth.of_inverse(&built.map, &claim(Expr::bool(false))), Some([false, false]));
    }
}
