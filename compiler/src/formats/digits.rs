//! The meaning of a format in named-axis form: a digit of an axis for each physical axis.
//!
//! With blocks `b1, ..., bk` of an axis `x` the outer part is `x // (b1 * ... * bk)`, and the block `bj` holds the digit
//! `x // (b(j+1) * ... * bk) % bj`: the mixed-radix digits of `x`, the left block the more major one.

use tilewright_ir::{Diagnostic, Expr, IndexMap, ScalarType};

use super::index_map;
use super::name::{AxisPart, Format};
use tilewright_algebra::{Ranges, simplify};

/// A number in a type that it fits.
pub(super) fn number(value: i64, ty: ScalarType) -> Expr {
    Expr::int_of(value.into(), ty).unwrap_or_else(|| Expr::int(value))
}

/// Returns axis `axis` of a format in terms of its parts at the physical places. The weight of a part is the product of the
/// blocks after it.
fn value(format: &Format, axis: usize, parts: &[Expr], ty: ScalarType) -> Expr {
    let terms =
        format.places.iter().zip(parts).filter(|(place, _)| place.axis == axis).map(|(place, part)| {
            match format.axes[axis].weight(place.level) {
                1 => part.clone(),
                weight => part.clone() * number(weight, ty),
            }
        });
    terms.reduce(|sum, term| sum + term).unwrap_or_else(|| number(0, ty))
}

/// Returns the digit at a physical place, for the value `x` of its axis.
fn digit(format: &Format, place: AxisPart, x: Expr, ty: ScalarType) -> Expr {
    let axis = &format.axes[place.axis];
    let above = match axis.weight(place.level) {
        1 => x,
        weight => x.floor_div(number(weight, ty)),
    };
    match place.level.checked_sub(1) {
        None => above,
        Some(block) => above.floor_mod(number(axis.blocks[block], ty)),
    }
}

/// Returns the map from one format to another by the meaning of the formats, over the same indices as `map`.
pub(super) fn map(source: &Format, target: &Format, map: &IndexMap) -> Result<IndexMap, Diagnostic> {
    let parts: Vec<Expr> = map.vars().iter().map(Expr::from).collect();
    let ty = map.vars().first().map_or(ScalarType::Int32, |var| var.dtype().scalar);
    let outputs = target.places.iter().map(|&place| digit(target, place, value(source, place.axis, &parts, ty), ty));
    index_map(IndexMap::new(map.vars().to_vec(), map.domain().to_vec(), outputs.collect(), Vec::new()))
}

/// The extents of the places of `target`, and the places that may have more than the axis needs: a block is whole.
pub(super) fn physical_shape(source: &Format, target: &Format, domain: &[Expr]) -> (Vec<Expr>, Vec<usize>) {
    let symbols = domain.iter().flat_map(Expr::vars).fold(Ranges::new(), |ranges, var| ranges.with_symbol(&var));
    let (mut shape, mut padded) = (Vec::new(), Vec::new());
    for (position, place) in target.places.iter().enumerate() {
        let (axis, extent) = (&target.axes[place.axis], extent(source, place.axis, domain));
        let ty = extent.dtype().scalar;
        let Some(block) = place.level.checked_sub(1).map(|at| axis.blocks[at]) else {
            let weight = axis.weight(0);
            let blocks = (extent + number(weight - 1, ty)).floor_div(number(weight, ty));
            shape.push(simplify(&blocks, &symbols));
            continue;
        };
        shape.push(number(block, ty));
        // The digit reaches its last value if the axis is long enough.
        let needed = i128::from(block - 1) * i128::from(axis.weight(place.level)) + 1;
        if simplify(&extent, &symbols).as_const_int().is_none_or(|extent| extent < needed) {
            padded.push(position);
        }
    }
    (shape, padded)
}

/// The extent of an axis of the source: whole blocks.
pub(super) fn extent(source: &Format, axis: usize, domain: &[Expr]) -> Expr {
    let outer = source.places.iter().position(|place| place.axis == axis && place.level == 0);
    let outer = outer.map_or_else(|| Expr::int(1), |position| domain[position].clone());
    let ty = outer.dtype().scalar;
    match source.axes[axis].weight(0) {
        1 => outer,
        weight => outer * number(weight, ty),
    }
}
