//! How much memory plans take, and how much any plan has to take.

use std::collections::BTreeMap;

use tilewright_ir::{CHANNELS, DataType, Diagnostic, Graph, MemoryPlan, Pool, Scope, TextureLimits};

use super::live::{Kind, Problem, kind};
use super::packing::{area, largest_live_set};
use super::{Strategy, plan_within};

/// Four ways of having memory, in bytes or texels; inputs and outputs included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amounts {
    /// Each tensor has its own.
    pub unshared: u128,
    /// With the compatible planner.
    pub compatible: u128,
    /// With the plan in question.
    pub planned: u128,
    /// The largest sum of the tensors that are alive in one step: no plan takes less.
    pub lower_bound: u128,
}

/// The memory of what can share pools: all buffers, or the textures of one scope and element type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Scope and type of the textures; none for buffers.
    pub texture: Option<(Scope, DataType)>,
    /// Bytes of one unit: 1 for buffers, those of a texel of four channels for textures.
    pub unit: u64,
    /// In bytes for buffers, in texels for textures.
    pub amounts: Amounts,
}

/// The memory of a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Buffers first.
    pub parts: Vec<Part>,
    /// The sum of all parts, in bytes. The lower bound is the sum of theirs, because parts share no memory.
    pub bytes: Amounts,
}

/// What a plan of a graph takes, beside other plans.
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
        let of = |sums: &BTreeMap<Kind, u128>| sums.get(&texture).copied().unwrap_or(0);
        let unit = texture.map_or(1, |(_, dtype)| dtype.bytes() * u64::from(CHANNELS));
        let amounts =
            Amounts { unshared, compatible: of(&compatible), planned: of(&planned), lower_bound: of(&bounds) };
        all.bytes.add(amounts, unit.into());
        all.parts.push(Part { texture, unit, amounts });
    }
    Ok(all)
}

impl Amounts {
    fn add(&mut self, other: Self, unit: u128) {
        self.unshared += other.unshared * unit;
        self.compatible += other.compatible * unit;
        self.planned += other.planned * unit;
        self.lower_bound += other.lower_bound * unit;
    }
}

fn sums(pools: &[Pool]) -> BTreeMap<Kind, u128> {
    let mut sums = BTreeMap::new();
    for pool in pools {
        *sums.entry(kind(pool.scope, pool.dtype)).or_default() += area(pool.room);
    }
    sums
}

/// The largest live set of each part.
fn lower_bounds(problem: &Problem<'_>, graph: &Graph) -> BTreeMap<Kind, u128> {
    let mut lives: BTreeMap<Kind, Vec<(usize, usize, u128)>> = BTreeMap::new();
    let lifetimes = problem.lifetimes();
    for at in problem.holders() {
        let (tensor, life) = (&graph.tensors[at], lifetimes[at]);
        let lives = lives.entry(kind(tensor.scope, tensor.dtype)).or_default();
        lives.push((life.first, life.last, area(problem.room(at))));
    }
    lives.into_iter().map(|(kind, lives)| (kind, largest_live_set(lives.into_iter()))).collect()
}
