//! The buffers of a recipe's tensors: their layouts, and views of their memory.

use tilewright_ir::layout::{Layout as XlaLayout, Tile, TileDim};
use tilewright_ir::{AxisSeparators, Buffer, DataType, Expr, FuncAttrs, Scalar, TileRequest};

use crate::map::{Generated, MapRecipe, Op};
use crate::program::recipe::{Layout, Tensor, View};

/// Limit on the number of elements of a physical layout.
const LARGEST: i64 = 1 << 15;

/// A tensor together with its buffer.
#[derive(Clone, Debug)]
pub(super) struct Made {
    pub(super) buffer: Buffer,
    pub(super) shape: Vec<i64>,
    /// Whether it is row-major without separators, so that views of its memory are meaningful.
    pub(super) is_row_major: bool,
    /// Whether it is a texture whose last axis is packed in texels.
    pub(super) is_packed: bool,
}

/// The buffer of a tensor. The requested layout is added to `attrs`.
pub(super) fn made(tensor: &Tensor, name: String, attrs: &mut FuncAttrs) -> Made {
    let shape = tensor.extents();
    let buffer = Buffer::compact(name, tensor.dtype, shape.iter().copied().map(Expr::int).collect());
    let row_major = Made { buffer, shape, is_row_major: true, is_packed: false };
    if tensor.is_texture() {
        let buffer = row_major.buffer.with(|info| info.scope = tensor.scope);
        let texture = Made { buffer, ..row_major };
        return if tensor.is_packed() { packed(texture, attrs) } else { texture };
    }
    match &tensor.layout {
        Layout::Plain | Layout::Packed => row_major,
        Layout::Ops { ops, separators, cuts } => mapped(row_major, ops, separators, cuts, attrs),
        Layout::Tiles { turn, tiles, pad } => tiled(row_major, *turn, tiles, *pad, attrs),
    }
}

/// Requests texels of four channels for the last axis of a texture.
fn packed(texture: Made, attrs: &mut FuncAttrs) -> Made {
    let texels = Op::Split(texture.shape.len() - 1, 4);
    let recipe = MapRecipe { shape: texture.shape.clone(), ops: vec![texels], symbolic: Vec::new() };
    let Some(built) = recipe.build() else { return texture };
    attrs.layout_transform_map.push((texture.buffer.data.clone(), vec![built.map]));
    let rank = texture.buffer.rank() + 1;
    let buffer = texture.buffer.with(|info| info.axis_separators = AxisSeparators::none(rank));
    Made { buffer, is_row_major: false, is_packed: true, ..texture }
}

/// The maps of the parts into which `cuts` divides the operations, each on the layout of the one
/// before. Only the last one may have separators. `None` if a physical shape is too large.
fn maps(shape: &[i64], ops: &[Op], cuts: &[usize]) -> Option<Vec<Generated>> {
    let mut cuts: Vec<usize> = cuts.iter().map(|&cut| cut.min(ops.len())).filter(|&cut| cut > 0).collect();
    cuts.push(ops.len());
    cuts.sort_unstable();
    cuts.dedup();
    let (mut found, mut shape, mut start) = (Vec::new(), shape.to_vec(), 0);
    for end in cuts {
        let is_last = end == ops.len();
        let part = ops[start..end].iter().copied().filter(|op| is_last || !matches!(op, Op::Separator(_)));
        let built = MapRecipe { shape, ops: part.collect(), symbolic: Vec::new() }.build()?;
        if physical_size(&built) > LARGEST {
            return None;
        }
        shape = built.shape.iter().map(|extent| i64::try_from(extent.as_const_int()?).ok()).collect::<Option<_>>()?;
        start = end;
        found.push(built);
    }
    Some(found)
}

/// Requests the layout of the longest prefix of the operations that is small enough. Operations
/// that are not injective are left out.
fn mapped(row_major: Made, ops: &[Op], separators: &[usize], cuts: &[usize], attrs: &mut FuncAttrs) -> Made {
    let mut ops: Vec<Op> = ops.iter().copied().filter(|op| op.keeps_injective()).collect();
    let mut rank = row_major.shape.len();
    let mut separated = false;
    while !ops.is_empty() {
        let built = maps(&row_major.shape, &ops, cuts).unwrap_or_default();
        if let Some(last) = built.last() {
            rank = last.shape.len();
            separated = !last.map.axis_separators().is_empty();
            let maps = built.into_iter().map(|built| built.map).collect();
            attrs.layout_transform_map.push((row_major.buffer.data.clone(), maps));
            break;
        }
        ops.pop();
    }
    // Separators are given twice in a recipe: by an operation and by position. The operation takes
    // precedence.
    let mut positions: Vec<usize> =
        separators.iter().filter(|_| rank > 1 && !separated).map(|position| 1 + position % (rank - 1)).collect();
    positions.sort_unstable();
    positions.dedup();
    let is_row_major = ops.is_empty() && positions.is_empty();
    let separators = AxisSeparators::new(positions, rank).unwrap_or_else(|_| AxisSeparators::none(rank));
    Made { buffer: row_major.buffer.with(|info| info.axis_separators = separators), is_row_major, ..row_major }
}

/// Number of elements of a physical shape; saturates.
fn physical_size(built: &Generated) -> i64 {
    let extents = built.shape.iter().map(|extent| extent.as_const_int().and_then(|extent| i64::try_from(extent).ok()));
    extents.fold(1i64, |size, extent| size.saturating_mul(extent.unwrap_or(i64::MAX)))
}

/// Requests a tiled layout with at most two tiles, whose sizes are limited to 1 to 16. The padding
/// value is dropped if the type cannot represent it.
fn tiled(row_major: Made, turn: usize, tiles: &[Vec<u64>], pad: Option<i64>, attrs: &mut FuncAttrs) -> Made {
    let mut order: Vec<usize> = (0..row_major.shape.len()).rev().collect();
    order.rotate_left(turn % row_major.shape.len().max(1));
    // The dimensions from major to minor, in which order tiles apply.
    let mut dims: Vec<u64> = order.iter().rev().map(|&axis| row_major.shape[axis].unsigned_abs()).collect();
    let mut kept = Vec::new();
    for tile in tiles.iter().take(2) {
        let sizes: Vec<u64> = tile.iter().take(dims.len()).map(|size| (*size).clamp(1, 16)).collect();
        let major = dims.len() - sizes.len();
        let counts = dims[major..].iter().zip(&sizes).map(|(dim, size)| dim.div_ceil(*size));
        let new: Vec<u64> = dims[..major].iter().copied().chain(counts).chain(sizes.iter().copied()).collect();
        if sizes.is_empty() || new.iter().product::<u64>() > LARGEST.unsigned_abs() {
            break;
        }
        kept.push(Tile(sizes.into_iter().map(TileDim::Size).collect()));
        dims = new;
    }
    let request = TileRequest { layout: XlaLayout::new(order).with_tiles(kept), pad_value: None };
    let pad_value = pad.map(|value| Scalar::Int(value.into()));
    let padded = TileRequest { pad_value, ..request.clone() };
    let request = if padded.pad_expr(row_major.buffer.dtype).is_some() { padded } else { request };
    let rank = request.physical_rank();
    attrs.tile_layout.push((row_major.buffer.data.clone(), request));
    let buffer = row_major.buffer.with(|info| info.axis_separators = AxisSeparators::none(rank));
    Made { buffer, is_row_major: false, ..row_major }
}

impl Made {
    /// The tensor through a view. `None` if there is no such view, because a pass would change the
    /// layout of its memory.
    pub(super) fn seen(&self, view: View) -> Option<Self> {
        let whole = |buffer: &Buffer| buffer.scope.is_texture() || !self.is_row_major;
        let name = format!("{}_view", self.buffer.name);
        if whole(&self.buffer) {
            let same = self.buffer.with(|info| info.name = name);
            return (view == View::Same).then(|| Self { buffer: same, ..self.clone() });
        }
        let size: i64 = self.shape.iter().product();
        let (shape, strides, offset) = match view {
            View::Same => (self.shape.clone(), None, 0),
            View::Flat => (vec![size], None, 0),
            View::Fold(by) if by > 0 && size % by == 0 => (vec![size / by, by], None, 0),
            View::Fold(_) => (vec![1, size], None, 0),
            View::Offset(by) => (vec![size - by.rem_euclid(size)], None, by.rem_euclid(size)),
            // The last element is the last multiple of `by` below the size.
            View::Every(by) => (vec![(size - 1) / by.clamp(1, size) + 1], Some(vec![by.clamp(1, size)]), 0),
            View::Transposed => {
                let mut strides: Vec<i64> = Vec::new();
                let mut stride = 1;
                for extent in self.shape.iter().rev() {
                    strides.push(stride);
                    stride *= extent;
                }
                (self.shape.iter().rev().copied().collect(), Some(strides), 0)
            }
        };
        let buffer = self.buffer.with(|info| {
            info.name = name;
            info.axis_separators = AxisSeparators::none(shape.len());
            info.shape = shape.iter().copied().map(Expr::int).collect();
            info.strides = strides.map(|strides| strides.into_iter().map(Expr::int).collect());
            info.elem_offset = Expr::int(offset);
        });
        Some(Self { buffer, shape, is_row_major: true, is_packed: false })
    }

    /// A tensor of vectors as a tensor of their lanes. `None` if it is not row-major.
    pub(super) fn scalars(&self) -> Option<Self> {
        let lanes = self.buffer.dtype.lanes;
        if lanes == 1 {
            return Some(self.clone());
        }
        if !self.is_row_major || self.buffer.strides.is_some() || self.buffer.elem_offset.as_const_int() != Some(0) {
            return None;
        }
        let mut shape = self.shape.clone();
        match shape.last_mut() {
            Some(last) => *last *= i64::from(lanes),
            None => shape.push(lanes.into()),
        }
        let buffer = self.buffer.with(|info| {
            info.name.push_str("_lanes");
            info.dtype = DataType::scalar(info.dtype.scalar);
            info.axis_separators = AxisSeparators::none(shape.len());
            info.shape = shape.iter().copied().map(Expr::int).collect();
        });
        Some(Self { buffer, shape, is_row_major: true, is_packed: false })
    }
}
