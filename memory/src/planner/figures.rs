//! The memory consumption of plans, beside that of other strategies and a lower bound.

use std::collections::BTreeMap;

use tilewright_ir::{CHANNELS, DataType, Diagnostic, Graph, MemoryPlan, Pool, Scope, TextureLimits};

use super::live::{PoolKind, Problem, pool_kind};
use super::packing::{area, largest_live_set};
use super::{Strategy, plan_within};

/// Memory consumption under four strategies, in bytes or texels, including inputs and outputs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amounts {
    /// Each tensor has memory of its own.
    pub unshared: u128,
    /// The plan of [`Strategy::Compatible`].
    pub compatible: u128,
    /// The plan that is described.
    pub planned: u128,
    /// The largest sum of the sizes of the tensors alive in one step, which no plan falls below.
    pub lower_bound: u128,
}

/// The memory of the tensors that can share pools: all buffers, or the textures of one scope and element type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Scope and element type of the textures; `None` for buffers.
    pub texture: Option<(Scope, DataType)>,
    /// Size of one unit in bytes: 1 for buffers, a texel of four channels for textures.
    pub unit: u64,
    /// In units: bytes for buffers, texels for textures.
    pub amounts: Amounts,
}

/// The memory consumption of a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// One part for each kind of memory, buffers first.
    pub parts: Vec<Part>,
    /// The sum over all parts, in bytes. Parts share no memory, so the sum of their lower bounds is a lower bound,
    /// too.
    pub bytes: Amounts,
}

/// The memory consumption of a plan of a graph, beside that of the other strategies.
///
/// # Errors
/// As [`plan_within`].
pub fn figures(graph: &Graph, plan: &MemoryPlan, limits: TextureLimits) -> Result<Figures, Diagnostic> {
    let unshared = sums(&plan_within(graph, Strategy::Unshared, limits)?.pools);
    let compatible = sums(&plan_within(graph, Strategy::Compatible, limits)?.pools);
    let planned = sums(&plan.pools);
    let bounds = lower_bounds(&Problem::new(graph, limits)?, graph);
    let mut all = Figures::default();
    for (&texture, &unshared) in &unshared {
        let amount = |sums: &BTreeMap<PoolKind, u128>| sums.get(&texture).copied().unwrap_or(0);
        let unit = texture.map_or(1, |(_, dtype)| dtype.bytes() * u64::from(CHANNELS));
        let amounts = Amounts {
            unshared,
            compatible: amount(&compatible),
            planned: amount(&planned),
            lower_bound: amount(&bounds),
        };
        all.bytes.add(amounts, unit.into());
        all.parts.push(Part { texture, unit, amounts });
    }
    Ok(all)
}

impl Amounts {
    /// Adds amounts that count units of `unit` bytes.
    fn add(&mut self, other: Self, unit: u128) {
        self.unshared += other.unshared * unit;
        self.compatible += other.compatible * unit;
        self.planned += other.planned * unit;
        self.lower_bound += other.lower_bound * unit;
    }
}

/// The total size of the pools of each kind, in bytes or texels.
fn sums(pools: &[Pool]) -> BTreeMap<PoolKind, u128> {
    let mut sums = BTreeMap::new();
    for pool in pools {
        *sums.entry(pool_kind(pool.scope, pool.dtype)).or_default() += area(pool.room);
    }
    sums
}

/// The largest live set of each kind, in bytes or texels.
fn lower_bounds(problem: &Problem<'_>, graph: &Graph) -> BTreeMap<PoolKind, u128> {
    let mut lives: BTreeMap<PoolKind, Vec<(usize, usize, u128)>> = BTreeMap::new();
    let lifetimes = problem.lifetimes();
    for at in problem.holders() {
        let (tensor, life) = (&graph.tensors[at], lifetimes[at]);
        let lives = lives.entry(pool_kind(tensor.scope, tensor.dtype)).or_default();
        lives.push((life.first, life.last, area(problem.room(at))));
    }
    lives.into_iter().map(|(kind, lives)| (kind, largest_live_set(lives.into_iter()))).collect()
}
