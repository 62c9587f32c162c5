//! Requests to store a buffer of a program in one of XLA's tiled layouts (the attribute `tile_layout`).

use crate::dtype::DataType;
use crate::expr::Expr;
use crate::layout::{Layout, TileDim};
use crate::scalar::Scalar;

/// The XLA layout that `tile_layout` requests for a buffer, and the value of its padding.
///
/// An allocation holds whole tiles. The physical axes are those that the last tile produces, and an extent that is
/// not a multiple of the tile size is rounded up to one.
#[derive(Clone, Debug)]
pub struct TileRequest {
    /// The order of the dimensions and the tiles. The other properties of a layout have no effect on a buffer.
    pub layout: Layout,
    /// The value of every padding element. `None` leaves the padding undefined.
    pub pad_value: Option<Scalar>,
}

impl TileRequest {
    /// Returns the number of physical axes. A tile of `k` sizes replaces the `k` last axes by `2 * k` axes: `k` tile
    /// counts, then `k` positions within the tile.
    pub fn physical_rank(&self) -> usize {
        self.layout.tiles.iter().fold(self.layout.minor_to_major.len(), |rank, tile| {
            let sizes = tile.0.iter().filter(|dim| matches!(dim, TileDim::Size(_))).count();
            rank.saturating_sub(tile.0.len()) + 2 * sizes
        })
    }

    /// Returns the padding value as a constant of type `dtype`. Returns `None` if the request states no value, if
    /// `dtype` is a vector type, or if the type cannot represent the value.
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

    /// Returns whether two requests state the same layout and the same padding value. Two NaNs are the same value.
    pub fn is_same(&self, other: &Self) -> bool {
        let pads = match (self.pad_value, other.pad_value) {
            (None, None) => true,
            (Some(a), Some(b)) => a.same(b),
            _ => false,
        };
        pads && self.layout == other.layout
    }
}
