//! Memory planners: they assign tensors to pools so that tensors that are never alive at the same time share memory.
//!
//! ```text
//! step     0     1     2     3
//! x       [input, memory of its own ......]
//! a       written..read                          pool 1: a, then c
//! b             written..read                    pool 2: b
//! c                   written..read
//! ```
//!
//! The planners are not trusted: the judge proves of each plan that no two live tensors overlap and that everything
//! fits.
//!
//! # Compatible
//! [`Strategy::Compatible`] is the storage token allocation of the texture RFC's addendum, with the rules that TVM's
//! releases add. Steps are processed in order: first the tensors that a step writes request memory, then the tensors
//! whose last reader has run release theirs.
//!
//! *Buffers.* A request considers the free pools of 1/16 (rounded down to bytes) to 16 times its size. It takes the
//! smallest of those that are large enough; if there is none, it takes the largest of the smaller ones, which grows
//! to the size of the request.
//!
//! *Textures.* A request considers the free pools of its scope and element type, except those more than 5 times
//! wider, higher, narrower or lower, with integer division: 29 to 5 is within the limit, 30 to 5 is not. It goes through
//! them by storage id and keeps the best one so far; a pool is better if in one direction it grows less, or grows as much and has
//! less left over. The pool grows to the request in each direction, however much that is, so that a plan may be larger
//! than one in which nothing is shared: where 22 rows of 400 texels are free and 5 rows of 600 are requested, both share 22
//! rows of 600. (The RFC's text minimizes the added area; TVM's releases, and this planner, compare the directions one by one.)
//!
//! *Ties* go to the lowest storage id. Pools are numbered in the order of their creation: those of the inputs, then
//! by step and by the order of a step's writes. Inputs have pools of their own, outputs never release theirs, views
//! share the place of their roots.
//!
//! # Best
//! [`Strategy::Best`] runs several planners in several orders on each part and keeps the smallest result, so no part
//! is larger than in the compatible plan. All buffers are one part; the textures of each scope and element type are
//! one part. Buffers share one pool at offsets that are multiples of [`ALIGNMENT`] bytes, or of the largest vector if
//! that is larger; textures lie side by side in one texture. No image of OpenCL 1.2 can be read and written by the
//! same kernel, so what a step reads and what it writes are never placed in the same texture.
//!
//! *In place.* A step whose function reads each element of an operand in the iteration that writes it may write its result where the
//! operand lies, if nobody reads that later. The caller says which steps may ([`plan_in_place`]); then the operand and the result are one
//! buffer for the planners, and the smaller plan is taken, with such pairs or without.
//!
//! # Cost
//! Near-linear in tensors and steps. Planners that compare pairs of live tensors give up if there are too many pairs.
//! The limit is a count, not a time, so the result does not depend on the machine.

mod best;
mod bounds;
mod figures;
mod live;
mod offsets;
mod overlaps;
mod packing;
mod rectangles;
mod tokens;

use tilewright_ir::{Diagnostic, Graph, InPlace, MemoryPlan, PoolRules, TextureLimits};

pub use figures::{Amounts, Figures, Part, figures, figures_for, figures_in_place};
pub use live::Lifetime;

/// Alignment of buffers that share a pool, in bytes: one cache line.
pub const ALIGNMENT: u64 = 64;

/// The sharing strategy of a planner.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Strategy {
    /// No sharing: each tensor has a pool of its own.
    Unshared,
    /// TVM's rules, see the [module page](self#compatible).
    Compatible,
    /// The smallest plan that any of the planners finds, see the [module page](self#best).
    #[default]
    Best,
}

/// Plans a graph for a device with the texture limits that OpenCL guarantees ([`TextureLimits::PROMISED`]).
///
/// # Errors
/// As [`plan_within`].
pub fn plan(graph: &Graph, strategy: Strategy) -> Result<MemoryPlan, Diagnostic> {
    plan_within(graph, strategy, TextureLimits::PROMISED)
}

/// Plans a graph for a device with the given texture limits; no pool exceeds them.
///
/// # Errors
/// The first defect of the graph ([`crate::graph::check::check`]), or a texture that exceeds the limits
/// (`texture-limits`).
pub fn plan_within(graph: &Graph, strategy: Strategy, limits: TextureLimits) -> Result<MemoryPlan, Diagnostic> {
    plan_for(graph, strategy, PoolRules::any_width(limits))
}

/// Plans a graph for a device with the given rules: no pool exceeds the limits, and the width of each texture is a multiple of the
/// pitch.
///
/// # Errors
/// As [`plan_within`].
pub fn plan_for(graph: &Graph, strategy: Strategy, rules: PoolRules) -> Result<MemoryPlan, Diagnostic> {
    Ok(planned(&live::Problem::new(graph, rules)?, strategy, rules))
}

/// Plans a graph some of whose steps may work in place: the smaller one of the plans with and without. Only [`Strategy::Best`] makes use of
/// them. Pairs that are no [`candidates`] are ignored.
///
/// # Errors
/// As [`plan_within`].
pub fn plan_in_place(
    graph: &Graph,
    strategy: Strategy,
    rules: PoolRules,
    pairs: &[InPlace],
) -> Result<MemoryPlan, Diagnostic> {
    let apart = plan_for(graph, strategy, rules)?;
    if pairs.is_empty() || strategy != Strategy::Best {
        return Ok(apart);
    }
    let shared = planned(&live::Problem::in_place(graph, rules, pairs)?, strategy, rules);
    // Only buffers are in place, so the textures of both plans are the same.
    let bytes = |plan: &MemoryPlan| plan.pools.iter().map(|pool| packing::area(pool.room)).sum::<u128>();
    Ok(if bytes(&shared) < bytes(&apart) { shared } else { apart })
}

/// The operands and results that could share memory if their steps worked in place: buffers of one size and type, and the operand is
/// needed no longer.
///
/// # Errors
/// As [`plan_within`].
pub fn candidates(graph: &Graph, rules: PoolRules) -> Result<Vec<InPlace>, Diagnostic> {
    Ok(live::Problem::new(graph, rules)?.candidates())
}

/// Plans each group.
fn planned(problem: &live::Problem<'_>, strategy: Strategy, rules: PoolRules) -> MemoryPlan {
    let packings = problem.groups.iter().map(|group| match strategy {
        Strategy::Unshared => packing::unshared(&group.slots),
        Strategy::Compatible => tokens::pack(&group.slots),
        Strategy::Best => best::pack(group, rules),
    });
    let packings = packings.map(|packing| packing.with_pitch(rules));
    problem.assemble(&packings.collect::<Vec<_>>(), rules)
}

/// The lifetime of each tensor's memory. A view has the lifetime of its root, which its readers extend.
///
/// # Errors
/// The first defect of the graph.
pub fn lifetimes(graph: &Graph) -> Result<Vec<Lifetime>, Diagnostic> {
    let unlimited = TextureLimits { width: u64::MAX, height: u64::MAX };
    Ok(live::Problem::new(graph, PoolRules::any_width(unlimited))?.lifetimes())
}
