//! The tile_layout pass.
