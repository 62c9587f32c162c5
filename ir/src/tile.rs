//! Requests for tiled layouts: a buffer of a program in one of XLA's layouts.

use crate::dtype::DataType;
use crate::expr::Expr;
use crate::layout::{Layout, TileDim};
use crate::scalar::Scalar;

/// What `tile_layout` asks for a buffer: an XLA layout of its shape, and what its padding holds.
///
/// Memory holds whole tiles: the physical axes are those that the last tile makes, ragged extents rounded up.
#[derive(Clone, Debug)]
pub struct TileRequest {
    /// The order of the dimensions, and the tiles. Other properties have no meaning for a buffer.
    pub layout: Layout,
    /// The value that every element of the padding has; without one it holds nothing.
    pub pad_value: Option<Scalar>,
}

impl TileRequest {
    /// The number of physical axes: a tile of `k` sizes makes `2 * k` axes out of the last ones.
    pub fn physical_rank(&self) -> usize {
        self.layout.tiles.iter().fold(self.layout.minor_to_major.len(), |rank, tile| {
            let sizes = tile.0.iter().filter(|dim| matches!(dim, TileDim::Size(_))).count();
            rank.saturating_sub(tile.0.len()) + 2 * sizes
        })
    }

    /// The padding's value as a constant of an element type; none if there is none, or the type does not have it.
    pub fn pad_expr(&self, dtype: DataType) -> Option<Expr> {
        let ty = dtype.scalar;
        if !dtype.is_scalar() {
            return None;
        }
        match self.pad_value? {
            Scalar::Int(value) if ty.is_float() => {
                // Every integer of up to 53 bits is a float64.
                let exact = i32::try_from(value).ok()?;
                Some(Expr::float_of(exact.into(), ty))
            }
            Scalar::Int(value) => Expr::int_of(value, ty),
            Scalar::Float(value) if ty.is_float() && !value.is_nan() => {
                let is_finite = |expr: &Expr| matches!(expr, Expr::Float { value, .. } if value.is_finite());
                Some(Expr::float_of(value, ty)).filter(|rounded| !value.is_finite() || is_finite(rounded))
            }
            Scalar::Float(_) => None,
        }
    }

    /// Whether two requests ask for the same.
    pub fn same(&self, other: &Self) -> bool {
        let pads = match (self.pad_value, other.pad_value) {
            (None, None) => true,
            (Some(a), Some(b)) => a.same(b),
            _ => false,
        };
        pads && self.layout == other.layout
    }
}
