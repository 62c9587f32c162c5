//! The meaning of a tiled layout, stated by the judge itself: each tile pads, reshapes and transposes (XLA's page).
//!
//! ```text
//! f32[3,5]{1,0:T(2,2)}    axes (i0 of 3, i1 of 5)
//!   pad                        (i0 of 4, i1 of 6)
//!   reshape                    (i0 // 2 of 2, i0 % 2 of 2, i1 // 2 of 3, i1 % 2 of 2)
//!   transpose                  (i0 // 2 of 2, i1 // 2 of 3, i0 % 2 of 2, i1 % 2 of 2)
//! ```
//!
//! It is constructed without reference to the formula that is judged, and simplifies only constants.
//!
//! A tail alignment rounds the number of slots up, beyond the padded array. Memory spaces, element widths and prefixes
//! do not change positions.

use tilewright_ir::layout::{Layout, Tile, TileDim};
use tilewright_ir::sabotage;
use tilewright_ir::{Bindings, Expr, IndexMap, ScalarType, Var};

/// Greatest number of nodes in all index expressions of a layout: folding the same dimensions repeatedly doubles them.
const MAX_PARTS: usize = 1 << 14;

/// An axis of the array after some tiles: the index of the element on it, and its extent.
#[derive(Clone, Debug)]
struct Axis {
    /// The index of the element on this axis.
    index: Expr,
    /// The number of indices.
    extent: Expr,
}

/// A layout's meaning.
#[derive(Clone, Debug)]
pub(super) struct Meaning {
    /// The logical indices.
    vars: Vec<Var>,
    /// The logical extents.
    domain: Vec<Expr>,
    /// The axes after the last tile, from major to minor.
    axes: Vec<Axis>,
    /// The tail alignment; 1 if there is none.
    tail: Expr,
    /// The type of all constants.
    ty: ScalarType,
}

/// The constant `value` of a type.
fn number(value: u64, ty: ScalarType) -> Expr {
    Expr::Int { value: value.into(), ty }
}

/// The number of tiles of a size that cover an extent.
fn ceiling(extent: Expr, size: u64, ty: ScalarType) -> Expr {
    evaluated((extent + number(size - 1, ty)).floor_div(number(size, ty)))
}

/// The value of an expression without symbols as a constant; other expressions stay as they are.
fn evaluated(extent: Expr) -> Expr {
    let value = if extent.vars().is_empty() { extent.eval_index(&Bindings::new()).ok() } else { None };
    let ty = extent.dtype().scalar;
    value.map_or(extent, |value| Expr::Int { value, ty })
}

impl Meaning {
    /// The meaning of a layout for an array with these indices and extents; `None` if the layout does not fit the array.
    pub(super) fn new(layout: &Layout, vars: &[Var], domain: &[Expr]) -> Option<Self> {
        let ty = vars.first().map_or(ScalarType::Int64, |var| var.dtype().scalar);
        if layout.is_sparse() || layout.minor_to_major.len() != vars.len() || layout.tail_alignment == 0 {
            return None;
        }
        let mut sorted = layout.minor_to_major.clone();
        sorted.sort_unstable();
        // Every dimension exactly once; otherwise different elements would share a position.
        if !sorted.into_iter().eq(0..vars.len()) {
            return None;
        }
        let mut axes = Vec::new();
        for &dimension in layout.minor_to_major.iter().rev() {
            axes.push(Axis { index: Expr::from(vars.get(dimension)?), extent: domain.get(dimension)?.clone() });
        }
        for tile in &layout.tiles {
            axes = tiled(axes, tile, ty)?;
            let mut parts = 0usize;
            for axis in &axes {
                axis.index.walk(&mut |_| parts += 1);
            }
            (parts <= MAX_PARTS).then_some(())?;
        }
        let tail = number(layout.tail_alignment, ty);
        Some(Self { vars: vars.to_vec(), domain: domain.to_vec(), axes, tail, ty })
    }

    /// The extents after the last tile, from major to minor.
    pub(super) fn extents(&self) -> Vec<Expr> {
        self.axes.iter().map(|axis| axis.extent.clone()).collect()
    }

    /// The map from logical indices to the indices after the last tile.
    pub(super) fn tiled(&self) -> Option<IndexMap> {
        let outputs = self.axes.iter().map(|axis| axis.index.clone()).collect();
        IndexMap::new(self.vars.clone(), self.domain.clone(), outputs, Vec::new()).ok()
    }

    /// The map from logical indices to positions in memory.
    pub(super) fn flat(&self) -> Option<IndexMap> {
        let indices: Vec<Expr> = self.axes.iter().map(|axis| axis.index.clone()).collect();
        let position = numeral(&indices, &self.extents(), self.ty);
        IndexMap::new(self.vars.clone(), self.domain.clone(), vec![position], Vec::new()).ok()
    }

    /// One more than the largest position of the padded array, which is that of its last element.
    pub(super) fn after_last(&self) -> Expr {
        let last: Vec<Expr> = self.axes.iter().map(|axis| axis.extent.clone() - number(1, self.ty)).collect();
        numeral(&last, &self.extents(), self.ty) + number(1, self.ty)
    }

    /// The number of elements of the padded array.
    pub(super) fn padded_elements(&self) -> Expr {
        product(&self.extents(), self.ty)
    }

    /// The tail alignment: the number of slots is a multiple of it.
    pub(super) fn tail(&self) -> Expr {
        self.tail.clone()
    }

    /// The number of slots: the elements of the padded array, rounded up to the tail alignment.
    pub(super) fn slots(&self) -> Expr {
        let padded = self.padded_elements();
        if self.tail.as_const_int() == Some(1) {
            return padded;
        }
        let rounded = padded + (self.tail.clone() - number(1, self.ty));
        rounded.floor_div(self.tail.clone()) * self.tail.clone()
    }
}

/// The row-major position of indices in a box, in Horner form.
pub(super) fn numeral(indices: &[Expr], extents: &[Expr], ty: ScalarType) -> Expr {
    let mut value = number(0, ty);
    for (index, extent) in indices.iter().zip(extents) {
        value = value * extent.clone() + index.clone();
    }
    value
}

/// The product of extents.
pub(super) fn product(extents: &[Expr], ty: ScalarType) -> Expr {
    extents.iter().cloned().reduce(|product, extent| product * extent).unwrap_or_else(|| number(1, ty))
}

/// Applies one tile: fold, pad, reshape, transpose.
fn tiled(axes: Vec<Axis>, tile: &Tile, ty: ScalarType) -> Option<Vec<Axis>> {
    split(folded(axes, tile, ty)?, &sizes(tile)?, ty)
}

/// The sizes of a tile without its `*`; `None` if the tile ends with `*` or a size is 0 or above 2^63 - 1.
fn sizes(tile: &Tile) -> Option<Vec<u64>> {
    if tile.0.last() == Some(&TileDim::Combine) {
        return None;
    }
    let size = |dim: &TileDim| if let TileDim::Size(size) = dim { Some(*size) } else { None };
    let sizes: Vec<u64> = tile.0.iter().filter_map(size).collect();
    sizes.iter().all(|&size| size > 0 && i64::try_from(size).is_ok()).then_some(sizes)
}

/// Prepends extents of 1 if the tile has more dimensions than the array; then combines the dimension of each `*` with the
/// next more minor one.
fn folded(mut axes: Vec<Axis>, tile: &Tile, ty: ScalarType) -> Option<Vec<Axis>> {
    while axes.len() < tile.0.len() {
        axes.insert(0, Axis { index: number(0, ty), extent: number(1, ty) });
    }
    let mut at = axes.len() - tile.0.len();
    for dim in &tile.0 {
        if *dim == TileDim::Combine {
            let major = axes.remove(at);
            let minor = axes.get_mut(at)?;
            minor.index = if sabotage::on("meaning-folds-backwards") {
                minor.index.clone() * major.extent.clone() + major.index
            } else {
                major.index * minor.extent.clone() + minor.index.clone()
            };
            minor.extent = evaluated(major.extent * minor.extent.clone());
        } else {
            at += 1;
        }
    }
    Some(axes)
}

/// Splits each of the last axes, padded to a multiple of its tile size, into (count, size). Padding moves no element. The
/// in-tile dimensions move to the minor end, in their order.
fn split(mut axes: Vec<Axis>, sizes: &[u64], ty: ScalarType) -> Option<Vec<Axis>> {
    let touched = axes.split_off(axes.len().checked_sub(sizes.len())?);
    let mut inside = Vec::new();
    for (axis, &size) in touched.into_iter().zip(sizes) {
        let floors = sabotage::on("meaning-floors");
        let count =
            if floors { evaluated(axis.extent.floor_div(number(size, ty))) } else { ceiling(axis.extent, size, ty) };
        axes.push(Axis { index: axis.index.clone().floor_div(number(size, ty)), extent: count });
        inside.push(Axis { index: axis.index.floor_mod(number(size, ty)), extent: number(size, ty) });
    }
    axes.extend(inside);
    Some(axes)
}

/// One step from a logical index to its position, as a map of its own.
#[derive(Clone, Debug)]
pub(super) struct Stage {
    /// What the step does.
    pub(super) kind: Kind,
    /// From the indices before the step, whose extents are the domain, to those after it.
    pub(super) map: IndexMap,
    /// The extents after the step.
    pub(super) extents: Vec<Expr>,
}

/// The kind of a stage.
#[derive(Clone, Debug)]
pub(super) enum Kind {
    /// Combines groups of adjacent dimensions, given by their lengths; an empty group makes an extent of 1.
    Fold(Vec<usize>),
    /// Splits the last dimensions by these sizes.
    Split(Vec<u64>),
    /// Combines all dimensions to the position.
    Numeral,
}

/// The number of dimensions that each dimension after a tile's folds consists of.
fn groups(tile: &Tile, rank: usize) -> Vec<usize> {
    let prepended = tile.0.len().saturating_sub(rank);
    let mut groups = vec![1; (rank + prepended).saturating_sub(tile.0.len())];
    let mut length = 0;
    for (position, dim) in tile.0.iter().enumerate() {
        length += usize::from(position >= prepended);
        if *dim != TileDim::Combine {
            groups.push(std::mem::take(&mut length));
        }
    }
    groups
}

impl Stage {
    /// The stage that `step` performs on axes with the extents `before`.
    fn new(
        kind: Kind,
        before: &[Expr],
        ty: ScalarType,
        step: impl FnOnce(Vec<Axis>) -> Option<Vec<Axis>>,
    ) -> Option<Self> {
        let vars: Vec<Var> = (0..before.len()).map(|axis| Var::new(format!("k{axis}"), ty)).collect();
        let axis = |(var, extent): (&Var, &Expr)| Axis { index: var.into(), extent: extent.clone() };
        let after = step(vars.iter().zip(before).map(axis).collect())?;
        let (outputs, extents) = after.into_iter().map(|axis| (axis.index, axis.extent)).unzip();
        Some(Self { kind, map: IndexMap::new(vars, before.to_vec(), outputs, Vec::new()).ok()?, extents })
    }
}

/// The stages from an element's index, in physical order of the dimensions, to its position: for each tile a fold (if it has
/// one) and a split, then the numeral.
pub(super) fn stages(layout: &Layout, domain: &[Expr], ty: ScalarType) -> Option<Vec<Stage>> {
    let ordered: Option<Vec<Expr>> =
        layout.minor_to_major.iter().rev().map(|&axis| domain.get(axis).cloned()).collect();
    let (mut stages, mut extents) = (Vec::new(), ordered?);
    for tile in &layout.tiles {
        let sizes = sizes(tile)?;
        if sizes.len() < tile.0.len() || tile.0.len() > extents.len() {
            let stage =
                Stage::new(Kind::Fold(groups(tile, extents.len())), &extents, ty, |axes| folded(axes, tile, ty))?;
            extents.clone_from(&stage.extents);
            stages.push(stage);
        }
        let stage = Stage::new(Kind::Split(sizes.clone()), &extents, ty, |axes| split(axes, &sizes, ty))?;
        extents.clone_from(&stage.extents);
        stages.push(stage);
    }
    let flat = Stage::new(Kind::Numeral, &extents, ty, |axes| {
        let indices: Vec<Expr> = axes.into_iter().map(|axis| axis.index).collect();
        Some(vec![Axis { index: numeral(&indices, &extents, ty), extent: product(&extents, ty) }])
    })?;
    stages.push(flat);
    Some(stages)
}
