//! Index maps on all points of a box, fast: tens of millions of points a second on one core.
//!
//! Expressions are built into a graph (`builder`) in which every value has a known range (`range`); a part of it is laid out
//! for blocks of neighbouring points (`program`, `lanes`) and run over the box (`search`). Only what certainly has a value
//! that fits 64 bits, at every point, is built; the rest is evaluated point by point by [`tilewright_ir::Expr::eval_index`],
//! which says what all of this means.
//!
//! A question is asked over the axes that it depends on, and those alone: of `[i // 3, (j + 3) % 1000]` the bounds are two
//! short loops, whatever the product of the extents is. Often it is answered without any point, by the ranges.
//!
//! `shapes` lists the small shapes on which a symbolic claim is tried, in the order of their size.

mod builder;
mod lanes;
mod program;
mod range;
mod search;
mod shapes;
#[cfg(test)]
mod tests;

pub(crate) use builder::{Builder, NodeId};
pub(crate) use search::{collision, first_nonzero, first_wrong_padding, largest};
pub(crate) use shapes::shapes;

/// The most points that are ever enumerated for one question.
pub(crate) const MAX_POINTS: u64 = 1 << 24;

/// The most bits of the table of places that were reached.
pub(crate) const MAX_BITS: u64 = 1 << 27;
