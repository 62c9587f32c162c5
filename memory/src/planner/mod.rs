//! Memory planners: where the tensors of a graph lie, so that those never alive at once share memory.
//!
//! ```text
//! step     0     1     2     3
//! x       [input, memory of its own ......]
//! a       written..read                          pool 1: a, then c
//! b             written..read                    pool 2: b
//! c                   written..read
//! ```
//!
//! Nothing here is trusted: the judge proves of each plan that nothing overlaps and everything fits.
//!
//! # Compatible
//! [`Strategy::Compatible`] is the storage token allocation of the texture RFC's addendum with the rules that TVM's releases
//! add. Steps are taken in order; what a step writes asks for memory, then what nobody reads any more gives its memory back.
//!
//! *Buffers.* A request takes a free pool of 1/16 (rounded down to bytes) to 16 times its size: the smallest of those at
//! least as large; if there is none, the largest of the smaller ones, which grows to the request.
//!
//! *Textures.* A request looks at the free pools of its scope and element type, except those more than 5 times as wide or as
//! high, or the other way round, dividing integers: 29 to 5 is near enough, 30 to 5 is not. It takes the one that has the least
//! area to be added, then the one with the least area left over. A pool grows only if the area added does not exceed that of
//! the request, else there is a new pool. (TVM compares the directions one by one, so that its choice depends on the
//! order in which pools became free; an order that everybody can state was preferred.)
//!
//! *Ties* go to the lowest storage id; pools are numbered as they come into being: those of the inputs, then by step and
//! by the order of a step's writes. Inputs have pools of their own, outputs never give theirs back, views lie where their
//! roots lie.
//!
//! # Best
//! [`Strategy::Best`] tries several planners, in several orders, on each part and keeps the smallest, so that it is nowhere larger than
//! the compatible plan: buffers are one part, the textures of one scope and type are one part each. Buffers are put at
//! offsets of one pool, multiples of [`ALIGNMENT`] bytes (of the largest vector, if one is larger); textures side by side in one texture. Since no image of
//! OpenCL 1.2 can be read and written by one kernel, what a step reads and what it writes are never put into the same texture.
//!
//! # Cost
//! Near-linear in tensors and steps. Planners that compare pairs of tensors alive at once give up when there are too many pairs
//! for that; how many is counted, so the result does not depend on the machine.

mod best;
mod figures;
mod live;
mod offsets;
mod overlaps;
mod packing;
mod rectangles;
mod tokens;

use tilewright_ir::{Diagnostic, Graph, MemoryPlan, TextureLimits};

pub use figures::{Amounts, Figures, Part, figures};
pub use live::Lifetime;

/// Buffers that share a pool begin at multiples of so many bytes at least: a cache line.
pub const ALIGNMENT: u64 = 64;

/// How memory is shared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Strategy {
    /// Not at all: each tensor has a pool of its own.
    Unshared,
    /// As TVM does.
    Compatible,
    /// The smallest plan that any of our planners finds.
    #[default]
    Best,
}

/// Plans a graph for a device with the texture limits that every device keeps ([`TextureLimits::PROMISED`]).
///
/// # Errors
/// As [`plan_within`].
pub fn plan(graph: &Graph, strategy: Strategy) -> Result<MemoryPlan, Diagnostic> {
    plan_within(graph, strategy, TextureLimits::PROMISED)
}

/// Plans a graph for a device with these texture limits; no pool is larger.
///
/// # Errors
/// A graph with a fault ([`crate::graph::check::check`], the first is told), a texture above the limits (`texture-limits`).
pub fn plan_within(graph: &Graph, strategy: Strategy, limits: TextureLimits) -> Result<MemoryPlan, Diagnostic> {
    let problem = live::Problem::new(graph, limits)?;
    let packings = problem.groups.iter().map(|group| match strategy {
        Strategy::Unshared => packing::unshared(&group.slots),
        Strategy::Compatible => tokens::pack(&group.slots),
        Strategy::Best => best::pack(group, limits),
    });
    Ok(problem.assemble(&packings.collect::<Vec<_>>()))
}

/// When each tensor's memory is needed; a view has the lifetime of its root, which it prolongs.
///
/// # Errors
/// A graph with a fault.
pub fn lifetimes(graph: &Graph) -> Result<Vec<Lifetime>, Diagnostic> {
    Ok(live::Problem::new(graph, TextureLimits { width: u64::MAX, height: u64::MAX })?.lifetimes())
}
