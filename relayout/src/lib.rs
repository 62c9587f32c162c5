//! Moves an array from one memory layout to another.
//!
//! Both layouts are given as index maps from the same logical indices to physical ones ([`Placement`]). [`Strategy::choose`] finds the
//! loops of the move, [`Strategy::run_bytes`] runs them on slices of memory, and [`program`] writes them as a function in TIR:
//!
//! ```text
//! f32[37,155]{1,0} -> {1,0:T(8,128)}
//!
//! loops     i0//8 in 5, i1//128 in 2, i0%8 in 8, i1%128 in 128      rows of 128 elements are copied as a whole
//! bounds    8*(i0//8) + i0%8 < 37, 128*(i1//128) + i1%128 < 155     the last tiles are ragged
//! fill      where a bound does not hold                             the padding of the destination
//! ```
//!
//! # How a strategy is found
//! [`digits`] splits each logical axis at the points where its place in either memory stops being linear. A move is then a nest of
//! loops, each with a stride in the source and one in the destination, and a bound for each ragged axis. The loop with the stride 1
//! in the source and the one with the stride 1 in the destination decide how elements are moved ([`Tile`]); the other loops are
//! ordered so that the destination is written front to back, in chunks that threads share out.
//!
//! Nothing here is trusted for a proof. The function that [`program::moved`] writes uses the strides and the bounds of the strategy
//! and nothing else; the judge compares it with [`program::plain`], which applies the two index maps to each logical index. The same holds for
//! [`device::kernel`], the function that kernels are made of. Where there is no strategy, [`Relayout::run_each`] moves element by element.

pub mod device;
pub mod digits;
mod each;
mod error;
mod fill;
mod nest;
mod nibbles;
mod pieces;
mod prefetch;
pub mod program;
mod run;
mod sizes;
pub mod strategy;
mod tile;
mod word;

pub use digits::{Placement, Relayout};
pub use error::RelayoutError;
pub use run::relayout;
pub use sizes::{Maps, Sizes};
pub use strategy::{Bound, Fill, Loop, Strategy, Tile};
