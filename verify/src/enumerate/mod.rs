//! Fast evaluation of index maps at all points of a box, to find counterexamples: tens of millions of points a second on one core.
//!
//! Expressions are built into a graph (`builder`) in which every value has a known range (`range`). A part of the graph is
//! scheduled for blocks of neighbouring points (`program`, `lanes`) and run over the box (`search`). The graph contains
//! only values that exist and fit 64 bits at every point; all others are evaluated point by point with
//! [`tilewright_ir::Expr::eval_index`], which defines the meaning of expressions.
//!
//! A question is decided over the axes that it depends on: the bounds of `[i // 3, (j + 3) % 1000]` take two short loops,
//! however large the product of the extents is.
//!
//! `shapes` lists the small shapes on which a symbolic claim is tried, smallest first.
//!
//! Nothing here is believed. Every counterexample is evaluated again with `eval_index`, and where none is found, the plain loop of
//! the obligation (`map::instance`) looks at all points before anything is proved.

mod builder;
mod lanes;
mod program;
mod range;
mod search;
mod shapes;
#[cfg(test)]
mod tests;

pub(crate) use builder::{Builder, NodeId};
pub(crate) use search::{collision, first_nonzero, first_wrong_padding};
pub(crate) use shapes::shapes;

/// Greatest number of points that are enumerated for one question.
pub(crate) const MAX_POINTS: u64 = 1 << 24;

/// Greatest number of bits in a table of places that were reached.
pub(crate) const MAX_BITS: u64 = 1 << 27;
