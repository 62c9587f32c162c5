//! The memory consumption of plans, beside that of other strategies and a lower bound.

use std::collections::BTreeMap;

use tilewright_ir::{
    CHANNELS, DataType, Diagnostic, Graph, InPlace, MemoryPlan, PoolRules, Scope, TensorRole, TextureLimits,
};

use super::bounds::texture_bound;
use super::live::{PoolKind, Problem, pool_kind};
use super::packing::{area, largest_live_set};
use super::{Strategy, plan_for};

/// Memory consumption under four strategies, in bytes or texels, including inputs and outputs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amounts {
    /// Each tensor has memory of its own.
    pub unshared: u128,
    /// The plan of [`Strategy::Compatible`].
    pub compatible: u128,
    /// The plan that is described.
    pub planned: u128,
    /// A size that no plan falls below: the largest sum of the sizes of the tensors alive in one step; for textures a larger number if
    /// their shapes, and steps that read one and write another, demand it. A result that may be in place of an operand does not count in
    /// the step that writes it.
    pub lower_bound: u128,
}

/// The memory of the tensors that can share pools: all buffers, or the textures of one scope and element type. Constants are a part
/// of their own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Scope and element type of the textures; `None` for buffers.
    pub texture: Option<(Scope, DataType)>,
    /// Whether the part has the constants ([`TensorRole::Constant`]) or all other tensors.
    pub constants: bool,
    /// Size of one unit in bytes: 1 for buffers, a texel of four channels for textures.
    pub unit: u64,
    /// In units: bytes for buffers, texels for textures.
    pub amounts: Amounts,
}

/// The memory consumption of a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// One part for each kind of memory, buffers first; constants behind the other tensors of their kind.
    pub parts: Vec<Part>,
    /// The sum over all parts, in bytes. Parts share no memory, so the sum of their lower bounds is a lower bound,
    /// too.
    pub bytes: Amounts,
}

/// The memory consumption of a plan of a graph, beside that of the other strategies.
///
/// # Errors
/// As [`plan_within`](super::plan_within).
pub fn figures(graph: &Graph, plan: &MemoryPlan, limits: TextureLimits) -> Result<Figures, Diagnostic> {
    figures_for(graph, plan, PoolRules::any_width(limits))
}

/// The memory consumption of a plan of a graph for a device with the given rules.
///
/// # Errors
/// As [`plan_for`].
pub fn figures_for(graph: &Graph, plan: &MemoryPlan, rules: PoolRules) -> Result<Figures, Diagnostic> {
    figures_in_place(graph, plan, rules, &[])
}

/// The memory consumption of a plan of a graph some of whose steps may work in place.
///
/// # Errors
/// As [`plan_for`].
pub fn figures_in_place(
    graph: &Graph,
    plan: &MemoryPlan,
    rules: PoolRules,
    pairs: &[InPlace],
) -> Result<Figures, Diagnostic> {
    let unshared = sums(graph, &plan_for(graph, Strategy::Unshared, rules)?);
    let compatible = sums(graph, &plan_for(graph, Strategy::Compatible, rules)?);
    let planned = sums(graph, plan);
    let bounds = lower_bounds(&Problem::new(graph, rules)?, graph, pairs);
    let mut all = Figures::default();
    for (&(texture, constants), &unshared) in &unshared {
        let amount = |sums: &BTreeMap<Class, u128>| sums.get(&(texture, constants)).copied().unwrap_or(0);
        let unit = texture.map_or(1, |(_, dtype)| dtype.bytes() * u64::from(CHANNELS));
        let amounts = Amounts {
            unshared,
            compatible: amount(&compatible),
            planned: amount(&planned),
            lower_bound: amount(&bounds),
        };
        all.bytes.add(amounts, unit.into());
        all.parts.push(Part { texture, constants, unit, amounts });
    }
    Ok(all)
}

/// A kind of memory, and whether it holds constants.
type Class = (PoolKind, bool);

impl Amounts {
    /// Adds amounts that count units of `unit` bytes.
    fn add(&mut self, other: Self, unit: u128) {
        self.unshared += other.unshared * unit;
        self.compatible += other.compatible * unit;
        self.planned += other.planned * unit;
        self.lower_bound += other.lower_bound * unit;
    }
}

/// The total size of the pools of each kind and class, in bytes or texels. A pool of constants holds nothing else: planners give each
/// a pool of its own.
fn sums(graph: &Graph, plan: &MemoryPlan) -> BTreeMap<Class, u128> {
    let mut has_constants = vec![false; plan.pools.len()];
    for (tensor, place) in graph.tensors.iter().zip(&plan.places) {
        if let Some(pool) = has_constants.get_mut(place.pool) {
            *pool |= tensor.role == TensorRole::Constant;
        }
    }
    let mut sums = BTreeMap::new();
    for (pool, constants) in plan.pools.iter().zip(has_constants) {
        *sums.entry((pool_kind(pool.scope, pool.dtype), constants)).or_default() += area(pool.room);
    }
    sums
}

/// The lower bound of each kind and class, in bytes or texels: the largest live set, or [`texture_bound`] if that is larger.
///
/// A result that may be in place of an operand counts from the step after the one that writes it: in that step it may have the bytes of the
/// operand, which counts.
///
/// Constants live all the time. What they take is subtracted from the bound of their kind, which holds however they are placed, so that
/// the sum of both classes is that bound.
fn lower_bounds(problem: &Problem<'_>, graph: &Graph, pairs: &[InPlace]) -> BTreeMap<Class, u128> {
    let mut lives: BTreeMap<PoolKind, Vec<(usize, usize, u128)>> = BTreeMap::new();
    let mut constants: BTreeMap<PoolKind, u128> = BTreeMap::new();
    let lifetimes = problem.lifetimes();
    for at in problem.holders() {
        let (tensor, life) = (&graph.tensors[at], lifetimes[at]);
        let (kind, size) = (pool_kind(tensor.scope, tensor.dtype), area(problem.room(at)));
        let first = life.first + usize::from(pairs.iter().any(|pair| pair.result == at));
        let of_kind = lives.entry(kind).or_default();
        if first <= life.last {
            of_kind.push((first, life.last, size));
        }
        if tensor.role == TensorRole::Constant {
            *constants.entry(kind).or_default() += size;
        }
    }
    let mut bounds = BTreeMap::new();
    for (kind, lives) in lives {
        let shapes = problem.group(kind).map_or(0, texture_bound);
        let all = largest_live_set(lives.into_iter()).max(shapes);
        let fixed = constants.get(&kind).copied().unwrap_or(0);
        bounds.insert((kind, false), all.saturating_sub(fixed));
        bounds.insert((kind, true), fixed);
    }
    bounds
}
