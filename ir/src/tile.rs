//! Requests for tiled layouts: a buffer of a program in one of XLA's layouts.

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
}
