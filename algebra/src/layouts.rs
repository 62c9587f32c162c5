//! Inverses of tiled layouts, and maps from one layout to another. All of them are claims; the judge proves them.
//!
//! A tiling is undone from its last tile to its first: a linear position is split into the digits of the physical
//! index, each tile's (count, inside) becomes `count * size + inside` again, and combined dimensions are split. The
//! layouts are those of XLA's page on tiled layout. Sizes are in elements, positions count from 0.

use tilewright_ir::layout::{ArrayShape, Layout, SymbolicTiling, TileDim};
use tilewright_ir::{BinaryOp, Expr, IndexMap, InverseClaim, ScalarType, Var};

use crate::{self as algebra, Ranges};

/// Two arrays A and B of the same data, with extents in the same symbols.
#[derive(Clone, Debug)]
pub struct Pair {
    /// The extents of A, in its logical order.
    pub from_extents: Vec<Expr>,
    /// The extents of B, in its logical order.
    pub to_extents: Vec<Expr>,
    /// From the logical index in A to the logical index in B.
    pub reindex: IndexMap,
}

/// A map from the slots of A to the slots of B. A slot is a position in memory, in elements; some slots are padding.
#[derive(Clone, Debug)]
pub struct Relayout {
    /// From a slot of A to the logical index in A, with the slots of A that are padding.
    pub inverse: InverseClaim,
    /// From a slot of A to a slot of B, simplified.
    pub map: IndexMap,
    /// The map before simplification. It is longer, but some obligations are easier to prove for it.
    pub unsimplified: IndexMap,
    /// The number of slots of A, padding included.
    pub from_slots: Expr,
    /// The number of slots of B, padding included.
    pub to_slots: Expr,
}

/// Returns the inverse of a tiling from linear positions, and the condition under which a position is padding. The
/// extents are those of the tiling ([`SymbolicTiling::domain`]). Returns `None` if the layout and the tiling do not
/// belong together.
pub fn inverse(layout: &Layout, tiling: &SymbolicTiling) -> Option<InverseClaim> {
    let ty = tiling.index_type();
    let slot = Var::new("p", ty);
    let physical = tiling.physical_shape();
    let padded = physical.iter().fold(number(1, ty), times);
    let mut padding = Vec::new();
    if layout.tail_alignment > 1 && zero(&(padded.clone() - tiling.physical_elements().clone())).is_none() {
        padding.push(at_least(Expr::from(&slot), padded));
    }
    let index = digits(Expr::from(&slot), physical, ty);
    untiled(layout, tiling, vec![slot], index, padding)
}

/// Returns the inverse of a tiling from the indices after the last tile, and the condition under which such an index
/// is padding. Tail alignment is not considered: it appends positions to the linear array only.
pub fn tiled_inverse(layout: &Layout, tiling: &SymbolicTiling) -> Option<InverseClaim> {
    let ty = tiling.index_type();
    let vars: Vec<Var> = (0..tiling.physical_shape().len()).map(|axis| Var::new(format!("p{axis}"), ty)).collect();
    let index = vars.iter().map(Expr::from).collect();
    untiled(layout, tiling, vars, index, Vec::new())
}

/// Returns the extents after the first `count` tiles.
fn shape_after(count: usize, layout: &Layout, tiling: &SymbolicTiling) -> Option<Vec<Expr>> {
    let tiles = layout.tiles.get(..count)?.to_vec();
    let layout = Layout { tiles, tail_alignment: 1, split_configs: Vec::new(), ..layout.clone() };
    let formula = SymbolicTiling::with_index_type(&layout, tiling.domain(), tiling.index_type()).ok()?;
    Some(formula.physical_shape().to_vec())
}

/// Undoes all tiles, from the index after the last of them. `padding` lists conditions that are already known to mean
/// padding.
fn untiled(
    layout: &Layout,
    tiling: &SymbolicTiling,
    vars: Vec<Var>,
    mut index: Vec<Expr>,
    mut padding: Vec<Expr>,
) -> Option<InverseClaim> {
    let ty = tiling.index_type();
    for (count, tile) in layout.tiles.iter().enumerate().rev() {
        index = undo(&tile.0, &shape_after(count, layout, tiling)?, &index, &mut padding, ty)?;
    }
    let mut outputs = vec![number(0, ty); index.len()];
    for (&dimension, index) in layout.minor_to_major.iter().rev().zip(index) {
        *outputs.get_mut(dimension)? = index;
    }
    let either = |a: Expr, b: Expr| Expr::binary(BinaryOp::Or, a, b);
    let padding = padding.into_iter().reduce(either).unwrap_or_else(|| Expr::bool(false));
    Some(InverseClaim { vars, outputs, padding })
}

/// Undoes one tile. `before` are the extents before the tile, and `index` is the index after it: the counts of its
/// tiles, then the positions inside a tile. Appends to `padding` the conditions under which the result is outside of
/// `before`.
fn undo(
    tile: &[TileDim],
    before: &[Expr],
    index: &[Expr],
    padding: &mut Vec<Expr>,
    ty: ScalarType,
) -> Option<Vec<Expr>> {
    // A tile with more dimensions than the array treats it as if it had leading dimensions of extent 1.
    let prepended = tile.len().saturating_sub(before.len());
    let extents: Vec<Expr> = std::iter::repeat_n(number(1, ty), prepended).chain(before.iter().cloned()).collect();
    let leading = extents.len() - tile.len();
    let n_splits = tile.iter().filter(|dim| matches!(dim, TileDim::Size(_))).count();
    let mut result = index.get(..leading)?.to_vec();
    let (mut start, mut split) = (leading, 0);
    for (position, dim) in tile.iter().enumerate() {
        // A combined dimension (`*`) belongs to the next sized one: `start..=position` fold into one number.
        let TileDim::Size(size) = *dim else { continue };
        let end = leading + position + 1;
        let (count, inside) = (index.get(leading + split)?, index.get(leading + n_splits + split)?);
        let folded = plus(times(count.clone(), &number(size, ty)), inside.clone());
        let part = extents.get(start..end)?;
        let extent = part.iter().fold(number(1, ty), times);
        if size > 1 && !is_multiple(&extent, size, ty) {
            padding.push(at_least(folded.clone(), extent));
        }
        result.extend(digits(folded, part, ty));
        (start, split) = (end, split + 1);
    }
    Some(result.split_off(prepended))
}

/// Returns the digits of a row-major number that is below the product of the extents. Constant extents are collected
/// in one divisor, so that a division by `4 * 8` is a division by 32.
fn digits(value: Expr, extents: &[Expr], ty: ScalarType) -> Vec<Expr> {
    let is_one = |extent: &Expr| extent.as_const_int() == Some(1);
    let major = extents.iter().position(|extent| !is_one(extent)).unwrap_or(extents.len());
    let mut rest = value;
    let mut stride: u64 = 1;
    let mut found = Vec::new();
    for (axis, extent) in extents.iter().enumerate().rev() {
        if is_one(extent) {
            found.push(number(0, ty));
            continue;
        }
        let high = if stride == 1 { rest.clone() } else { rest.clone().floor_div(number(stride, ty)) };
        let divisor = if extent.as_const_int() == Some(0) { number(1, ty) } else { extent.clone() };
        found.push(if axis == major { high.clone() } else { high.clone().floor_mod(divisor.clone()) });
        let known = divisor.as_const_int().and_then(|extent| stride.checked_mul(u64::try_from(extent).ok()?));
        if let Some(product) = known {
            stride = product;
        } else {
            (rest, stride) = (high.floor_div(divisor), 1);
        }
    }
    found.reverse();
    found
}

/// Relates two arrays of the same data: dimension `k` of B is dimension `permutation[k]` of A, or without a
/// permutation B is a reshape of A. Dimensions without a bound get symbolic extents `d0`, `d1`, ..., numbered by their
/// position in A; those of B are taken from A by the permutation, or in order.
///
/// # Errors
/// The reason why the arrays do not correspond, as a sentence.
pub fn pair(from: &ArrayShape, to: &ArrayShape, permutation: Option<&[usize]>) -> Result<Pair, String> {
    let ty = ScalarType::Int64;
    let known = |extent: Option<u64>| extent.map(|extent| number(extent, ty));
    let from_extents: Vec<Expr> = from
        .dimensions()
        .iter()
        .enumerate()
        .map(|(axis, dim)| known(dim.bound()).unwrap_or_else(|| Expr::from(Var::new(format!("d{axis}"), ty))))
        .collect();
    let unbounded = |array: &ArrayShape| array.dimensions().iter().filter(|dim| dim.bound().is_none()).count();
    if unbounded(from) != unbounded(to) {
        return Err(format!(
            "A has {} dimensions without a bound and B {}: it is not said which are the same",
            unbounded(from),
            unbounded(to)
        ));
    }
    if let Some(permutation) = permutation {
        check_permutation(permutation, from.dimensions().len(), to.dimensions().len())?;
    }
    // Without a permutation the dimensions without a bound correspond in order: a reshape keeps them apart.
    let mut symbols = from_extents.iter().filter(|extent| extent.as_const_int().is_none());
    let mut to_extents = Vec::new();
    for (axis, dimension) in to.dimensions().iter().enumerate() {
        let source = permutation.and_then(|permutation| from_extents.get(*permutation.get(axis)?));
        let symbol = || match source {
            Some(extent) => Some(extent.clone()),
            None => symbols.next().cloned(),
        };
        let extent = known(dimension.bound()).or_else(symbol);
        to_extents.push(extent.ok_or("the dimensions without a bound do not correspond")?);
    }
    let vars: Vec<Var> = (0..from_extents.len()).map(|axis| Var::new(format!("i{axis}"), ty)).collect();
    let outputs = match permutation {
        Some(permutation) => permutation.iter().filter_map(|&axis| vars.get(axis)).map(Expr::from).collect(),
        None => reshaped(&vars, &from_extents, &to_extents, ty),
    };
    let reindex = IndexMap::new(vars, from_extents.clone(), outputs, Vec::new()).map_err(|error| error.to_string())?;
    Ok(Pair { from_extents, to_extents, reindex })
}

/// Checks that `permutation` permutes the dimensions of A, of which there are `from`, and that B has as many.
///
/// # Errors
/// The reason why it does not, as a sentence.
pub fn check_permutation(permutation: &[usize], from: usize, to: usize) -> Result<(), String> {
    let mut sorted = permutation.to_vec();
    sorted.sort_unstable();
    if sorted != (0..from).collect::<Vec<_>>() {
        return Err(format!("{permutation:?} is no permutation of the {from} dimensions of A"));
    }
    if from != to {
        return Err(format!("a transpose keeps the number of dimensions, but A has {from} and B {to}"));
    }
    Ok(())
}

/// Returns the index in a reshape. Dimensions are grouped, as few as possible at a time, so that both sides of a group
/// have the same product; each group is linearized and split again.
fn reshaped(vars: &[Var], from: &[Expr], to: &[Expr], ty: ScalarType) -> Vec<Expr> {
    let (mut i, mut j) = (0, 0);
    let mut outputs = Vec::new();
    while i < from.len() || j < to.len() {
        let (next_i, next_j) = group(from, to, i, j);
        let value = vars[i..next_i].iter().zip(&from[i..next_i]).fold(number(0, ty), |value, (var, extent)| {
            plus(times(value, extent), if extent.as_const_int() == Some(1) { number(0, ty) } else { var.into() })
        });
        outputs.extend(digits(value, &to[j..next_j], ty));
        (i, j) = (next_i, next_j);
    }
    outputs
}

/// Returns the ends of the next groups of dimensions, from `i` and `j` on, that have the same product; the ends of all
/// dimensions if there are none.
fn group(from: &[Expr], to: &[Expr], i: usize, j: usize) -> (usize, usize) {
    let (mut next_i, mut next_j) = (i, j);
    let (mut left, mut right) = (Expr::from(1), Expr::from(1));
    while next_i < from.len() || next_j < to.len() {
        let size = |product: &Expr| product.as_const_int();
        // The smaller product grows. In doubt A's does, so that a symbolic extent meets the same extent in B.
        let grow_left = next_j >= to.len()
            || (next_i < from.len()
                && match (size(&left), size(&right)) {
                    (Some(left), Some(right)) => left <= right,
                    (left, _) => left.is_some(),
                });
        let (product, extents, next) =
            if grow_left { (&mut left, from, &mut next_i) } else { (&mut right, to, &mut next_j) };
        *product = times(product.clone(), &extents[*next]);
        *next += 1;
        let grown = next_i > i && next_j > j;
        if grown && (left == right || zero(&(left.clone() - right.clone())).is_some()) {
            // Trailing extents of 1 would form groups of their own with nothing to match: they join the last group.
            return if are_all_one(&from[next_i..]) && are_all_one(&to[next_j..]) {
                (from.len(), to.len())
            } else {
                (next_i, next_j)
            };
        }
    }
    (from.len(), to.len())
}

/// Whether all extents are 1.
fn are_all_one(extents: &[Expr]) -> bool {
    extents.iter().all(|extent| extent.as_const_int() == Some(1))
}

/// Returns the map from the slots of A to the slots of B: undo A's tiling, convert the logical index, apply B's
/// tiling.
///
/// # Errors
/// The reason why there is none, as a sentence.
pub fn relayout(from: &ArrayShape, to: &ArrayShape, pair: &Pair) -> Result<Relayout, String> {
    let tiling = |array: &ArrayShape, extents: &[Expr]| {
        let layout = Layout { split_configs: Vec::new(), ..array.layout_or_default() };
        SymbolicTiling::with_index_type(&layout, extents, ScalarType::Int64)
            .map(|tiling| (layout, tiling))
            .map_err(|error| error.to_string())
    };
    let ((layout, first), (_, second)) = (tiling(from, &pair.from_extents)?, tiling(to, &pair.to_extents)?);
    let inverse = inverse(&layout, &first).ok_or("the layout cannot be undone")?;
    let flat = second.to_flat_map().map_err(|error| error.to_string())?;
    let placed = flat.apply(&pair.reindex.apply(&inverse.outputs));
    let slots = vec![first.physical_elements().clone()];
    let map = |outputs: Vec<Expr>| {
        IndexMap::new(inverse.vars.clone(), slots.clone(), outputs, Vec::new()).map_err(|error| error.to_string())
    };
    let ranges = inverse.vars.iter().zip(&slots).fold(Ranges::new(), |ranges, (var, extent)| ranges.with(var, extent));
    let simple = placed.iter().map(|output| algebra::simplify(output, &ranges)).collect();
    Ok(Relayout {
        map: map(simple)?,
        unsimplified: map(placed)?,
        from_slots: first.physical_elements().clone(),
        to_slots: second.physical_elements().clone(),
        inverse,
    })
}

/// An integer constant of the type `ty`.
fn number(value: u64, ty: ScalarType) -> Expr {
    Expr::Int { value: value.into(), ty }
}

/// `a * b`, without factors of 1 and products with 0.
fn times(a: Expr, b: &Expr) -> Expr {
    match (a.as_const_int(), b.as_const_int()) {
        (Some(0), _) | (_, Some(1)) => a,
        (Some(1), _) => b.clone(),
        (_, Some(0)) => b.clone(),
        (Some(x), Some(y)) => match x.checked_mul(y) {
            Some(value) => Expr::Int { value, ty: b.dtype().scalar },
            None => a * b.clone(),
        },
        _ => a * b.clone(),
    }
}

/// `a + b`, without addends of 0.
fn plus(a: Expr, b: Expr) -> Expr {
    match (a.as_const_int(), b.as_const_int()) {
        (Some(0), _) => b,
        (_, Some(0)) => a,
        _ => a + b,
    }
}

/// The condition `index >= extent`.
fn at_least(index: Expr, extent: Expr) -> Expr {
    Expr::binary(BinaryOp::Ge, index, extent)
}

/// Returns `Some(())` if the algebra shows that an expression is 0.
fn zero(difference: &Expr) -> Option<()> {
    (algebra::simplify(difference, &Ranges::new()).as_const_int() == Some(0)).then_some(())
}

/// Whether the algebra shows that an extent is a multiple of a size.
fn is_multiple(extent: &Expr, size: u64, ty: ScalarType) -> bool {
    zero(&extent.clone().floor_mod(number(size, ty))).is_some()
}
