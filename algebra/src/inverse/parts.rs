//! Maps whose outputs are parts of single indices, with symbolic extents: packs, tiles, splits and permutations, inverted
//! directly.
//!
//! ```text
//! lambda n, c: [n, c // 8, c // 2 % 4, c % 2]   over n, c   in [n, (c + 7) // 8, 4, 2]
//! n == p    c == q * 8 + r * 2 + s    padding: q * 8 + r * 2 + s >= c
//! ```
//!
//! Every output is `index // stride % radix` with constants, or without the remainder, and the parts of each index follow one
//! another without a gap. As in [`super::numeral`], the result is correct by construction: the parts are the digits of the
//! index in mixed radix, and a number that is made of digits is an index if and only if it is below the extent. All other
//! maps are left to the rules, which print the same where both apply.

use tilewright_ir::{BinaryOp, Expr, IndexMap, ScalarType, Var};

/// The part `index // stride % radix` of an index; the topmost part has no radix.
#[derive(Clone, Copy)]
pub(super) struct Part {
    pub(super) axis: usize,
    pub(super) stride: i128,
    pub(super) radix: Option<i128>,
    /// The output that computes it.
    pub(super) output: usize,
}

/// The part that an output computes; `None` if it computes something else.
pub(super) fn part_of(expr: &Expr, output: usize, vars: &[Var]) -> Option<Part> {
    if let Expr::Var(var) = expr {
        let axis = vars.iter().position(|other| other == var)?;
        return Some(Part { axis, stride: 1, radix: None, output });
    }
    let Expr::Binary(op @ (BinaryOp::FloorDiv | BinaryOp::FloorMod), value, by) = expr else { return None };
    let part = part_of(value, output, vars)?;
    let by = by.as_const_int().filter(|by| *by > 1)?;
    // `x % r // b` is `x // b % (r // b)`, and `x % r % b` is `x % b`, if `b` divides `r`.
    if part.radix.is_some_and(|radix| radix % by != 0 || radix == by) {
        return None;
    }
    Some(if *op == BinaryOp::FloorDiv {
        Part { stride: part.stride.checked_mul(by)?, radix: part.radix.map(|radix| radix / by), ..part }
    } else {
        Part { radix: Some(by), ..part }
    })
}

/// The parts of an axis, the least significant first; `None` if there are none, or they do not follow one another.
pub(super) fn parts_of_axis(parts: &[Part], axis: usize) -> Option<Vec<Part>> {
    let mut own: Vec<Part> = parts.iter().filter(|part| part.axis == axis).copied().collect();
    own.sort_by_key(|part| part.stride);
    let mut stride = Some(1);
    for part in &own {
        if stride != Some(part.stride) {
            return None;
        }
        stride = part.radix.map(|radix| part.stride.checked_mul(radix)).unwrap_or_default();
    }
    (!own.is_empty() && stride.is_none()).then_some(own)
}

/// Whether the physical extents are those of the parts of an index, without spare room. Extents of a single block are left to
/// the rules.
fn fits(parts: &[Part], extent: &Expr, physical: &[Expr], ty: ScalarType) -> Option<bool> {
    let (top, lower) = parts.split_last()?;
    let is_full = |part: &Part| part.radix.is_some() && physical[part.output].as_const_int() == part.radix;
    let fits_top = match extent.as_const_int() {
        Some(extent) => {
            let count = (extent - 1).div_euclid(top.stride) + 1;
            count > 1 && physical[top.output].as_const_int() == Some(count)
        }
        None if top.stride == 1 => physical[top.output] == *extent,
        None => {
            let padded = extent.clone() + Expr::int_of(top.stride - 1, ty)?;
            physical[top.output] == padded.floor_div(Expr::int_of(top.stride, ty)?)
        }
    };
    Some(fits_top && lower.iter().all(is_full))
}

/// Returns the logical indices in terms of the physical ones, and the condition under which a physical index is
/// reached. Returns `None` if the map is not of this kind.
pub(super) fn solutions(map: &IndexMap, physical: &[Expr], vars: &[Var]) -> Option<(Vec<Expr>, Expr)> {
    let ty = map.vars().first()?.dtype().scalar;
    if map.vars().iter().chain(vars).any(|var| var.dtype().scalar != ty) {
        return None;
    }
    let part = |(output, expr)| part_of(expr, output, map.vars());
    let parts = map.outputs().iter().enumerate().map(part).collect::<Option<Vec<_>>>()?;
    let (mut outputs, mut reached) = (Vec::with_capacity(map.vars().len()), Vec::new());
    for (axis, extent) in map.domain().iter().enumerate() {
        let own = parts_of_axis(&parts, axis)?;
        if !fits(&own, extent, physical, ty)? {
            return None;
        }
        let (index, is_inside) = index_of(&own, extent, ty, |part| Some(Expr::from(&vars[part.output])))?;
        reached.extend(is_inside);
        outputs.push(index);
    }
    Some((outputs, reached.into_iter().reduce(Expr::and).unwrap_or_else(|| Expr::bool(true))))
}

/// An index as the sum of its parts, of which `value` gives each one, and the condition that it is below its extent, if that does not
/// follow.
pub(super) fn index_of(
    own: &[Part],
    extent: &Expr,
    ty: ScalarType,
    value: impl Fn(&Part) -> Option<Expr>,
) -> Option<(Expr, Option<Expr>)> {
    let scaled = |part: &Part| {
        let value = value(part)?;
        Some(if part.stride == 1 { value } else { value * Expr::int_of(part.stride, ty)? })
    };
    let terms = own.iter().rev().map(scaled).collect::<Option<Vec<_>>>()?;
    let index = terms.into_iter().reduce(|sum, term| sum + term)?;
    let stride = own.last()?.stride;
    let may_exceed = extent.as_const_int().is_none_or(|extent| extent % stride != 0) && stride > 1;
    let is_inside = may_exceed.then(|| index.clone().lt(extent.clone()));
    Some((index, is_inside))
}

#[cfg(test)]
mod tests {
    use tilewright_script::{Symbols, read_index_map, read_shape};

    use super::super::{by_rules, physical_vars};
    use super::*;
    use crate::physical_shape;

    fn read(map: &str, shape: &str) -> (IndexMap, Vec<Expr>) {
        let mut symbols = Symbols::default();
        let shape = read_shape(shape, &mut symbols).unwrap();
        let map = read_index_map(map, Some(&shape), &mut symbols).unwrap();
        let physical = physical_shape(&map, &[]).unwrap().extents;
        (map, physical)
    }

    #[test]
    fn direct_inverses_equal_those_of_the_rules() {
        for [map, shape] in [
            ["lambda n, h, w, c: [n, c // 4, h, w, c % 4]", "N,H,W,C"],
            ["lambda n, h, w, c: [n, c // 4, h, w, c % 4]", "N,7,9,C"],
            ["lambda n, h, w, c: [n, c // 4, h, w, c % 4]", "N,7,9,17"],
            ["lambda n, h, w, c: [n, c // 4, h, w, c % 4]", "N,7,9,16"],
            ["lambda i, j: [i // 27, j // 43, i % 27, j % 43]", "M,K"],
            ["lambda i, j: [i // 8, j // 128, i % 8 // 2, j % 128, i % 2]", "M,K"],
            ["lambda i, j: [i // 8, j // 128, i % 8 // 2, j % 128, i % 2]", "M,1000"],
            ["lambda i: [i // 64, i // 4 % 16, i % 4]", "N"],
            ["lambda i, j: [j, i // 3, i % 3]", "N,N"],
            ["lambda n, h, w, c: [w, n, c, h]", "N,H,W,C"],
        ] {
            let (map, physical) = read(map, shape);
            let vars = physical_vars(&map);
            let (outputs, reached) = solutions(&map, &physical, &vars).unwrap_or_else(|| panic!("{map}"));
            let rules = by_rules(&map, &physical, &[], &vars).unwrap();
            let text = |exprs: &[Expr]| exprs.iter().map(ToString::to_string).collect::<Vec<_>>();
            assert_eq!(text(&outputs), text(&rules.outputs), "{map}");
            assert_eq!(crate::negate(&reached).to_string(), rules.padding.to_string(), "{map}");
        }
    }

    #[test]
    fn maps_of_other_kinds_are_left_to_the_rules() {
        for [map, shape] in [
            ["lambda i, j: [i * 4 + j]", "N,4"],
            ["lambda i: [i // 4, i % 8]", "N"],
            ["lambda i: [i // 4, i % 3]", "N"],
            ["lambda i: [i // 8, i // 2 % 2, i % 2]", "N"],
            ["lambda i, j: [i, i]", "N,1"],
            ["lambda i, j: [i, j // 4, j % 4]", "N,3"],
            ["lambda i: [i // 4 + 1, i % 4]", "N"],
            ["lambda i: [i // 4]", "N"],
        ] {
            let (map, physical) = read(map, shape);
            assert!(solutions(&map, &physical, &physical_vars(&map)).is_none(), "{map}");
        }
        // A physical shape with spare room has padding of its own.
        let (map, mut physical) = read("lambda i: [i // 4, i % 4]", "N");
        physical[1] = Expr::int(5);
        assert!(solutions(&map, &physical, &physical_vars(&map)).is_none());
    }
}
