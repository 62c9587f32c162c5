//! Changes of a memory plan, one at a time. Most changed plans are wrong, some are as good as the
//! original.
//!
//! Some changes can never matter (a spare pool, exchanged pool numbers), some matter depending on the plan (a shift inside
//! of a larger pool), some always do (a region of another size). The oracle does not know which: the simulation decides.

use arbitrary::Unstructured;
use serde::{Deserialize, Serialize};
use tilewright_ir::{MemoryPlan, Region, Room, ScalarType, Scope};

/// A change of one plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mutation {
    /// The plan that is changed, by the number of its [strategy](super::strategy).
    pub strategy: u8,
    /// The change.
    pub change: Change,
}

/// A change of a plan. Tensors and pools are numbers, taken modulo how many there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// Moves a tensor and its views by a number of bytes, or of columns and rows; negative numbers
    /// move towards the origin.
    Shift(usize, i8, i8),
    /// Moves one tensor alone, without its views, by a number of bytes or columns.
    ShiftAlone(usize, i8),
    /// Enlarges a pool by a number of bytes, or of columns and rows; negative numbers shrink it.
    Resize(usize, i8, i8),
    /// Exchanges the positions of two tensors and their views; each keeps its size.
    Swap(usize, usize),
    /// Moves a tensor and its views to the position of another tensor.
    Onto(usize, usize),
    /// Moves a tensor and its views to another pool, at the same offset.
    Into(usize, usize),
    /// Changes the element type of a pool.
    Dtype(usize, usize),
    /// Changes the scope of a pool.
    Scope(usize, usize),
    /// Enlarges a region by a number of bytes or columns; negative numbers shrink it.
    Region(usize, i8),
    /// Moves a tensor to offset 2^64 - 1 or 2^64 - 1 - 2^62, to provoke overflows.
    Far(usize, bool),
    /// Adds a pool without tensors.
    Spare,
    /// Exchanges the numbers of two pools, which changes nothing.
    Renumber(usize, usize),
}

impl Change {
    /// The name in the coverage table.
    pub fn name(self) -> &'static str {
        match self {
            Self::Shift(..) => "shift",
            Self::ShiftAlone(..) => "shift_alone",
            Self::Resize(..) => "resize",
            Self::Swap(..) => "swap",
            Self::Onto(..) => "onto",
            Self::Into(..) => "into",
            Self::Dtype(..) => "dtype",
            Self::Scope(..) => "scope",
            Self::Region(..) => "region",
            Self::Far(..) => "far",
            Self::Spare => "spare",
            Self::Renumber(..) => "renumber",
        }
    }

    /// The changed plan; `roots` gives the root of each tensor.
    pub fn apply(self, plan: &MemoryPlan, roots: &[usize]) -> MemoryPlan {
        let mut plan = plan.clone();
        let (n_tensors, n_pools) = (plan.places.len().max(1), plan.pools.len().max(1));
        if plan.places.is_empty() || plan.pools.is_empty() {
            return plan;
        }
        // A view has to stay where its root is, so most changes move all tensors with one root.
        let same = |one: usize, other: usize| roots[one] == roots[other];
        match self {
            Self::Shift(at, x, y) => {
                for tensor in (0..n_tensors).filter(|&tensor| same(tensor, at % n_tensors)) {
                    shift(&mut plan.places[tensor].region, x.into(), y.into());
                }
            }
            Self::ShiftAlone(at, x) => shift(&mut plan.places[at % n_tensors].region, x.into(), 0),
            Self::Resize(at, x, y) => match &mut plan.pools[at % n_pools].room {
                Room::Bytes(bytes) => *bytes = bytes.saturating_add_signed(x.into()),
                Room::Texels { width, height } => {
                    *width = width.saturating_add_signed(x.into());
                    *height = height.saturating_add_signed(y.into());
                }
            },
            Self::Swap(one, other) => {
                let (one, other) = (one % n_tensors, other % n_tensors);
                let (to_other, to_one) = (plan.places[other], plan.places[one]);
                for tensor in 0..n_tensors {
                    let to = if same(tensor, one) { to_other } else { to_one };
                    if same(tensor, one) || same(tensor, other) {
                        plan.places[tensor].pool = to.pool;
                        plan.places[tensor].region = begins(plan.places[tensor].region, to.region);
                    }
                }
            }
            Self::Onto(one, other) => {
                let to = plan.places[other % n_tensors];
                for tensor in (0..n_tensors).filter(|&tensor| same(tensor, one % n_tensors)) {
                    plan.places[tensor].pool = to.pool;
                    plan.places[tensor].region = begins(plan.places[tensor].region, to.region);
                }
            }
            Self::Into(at, pool) => {
                for tensor in (0..n_tensors).filter(|&tensor| same(tensor, at % n_tensors)) {
                    plan.places[tensor].pool = pool % n_pools;
                }
            }
            Self::Dtype(at, to) => {
                use ScalarType::{Float16, Float32, Float64, Int8, Int64, UInt8, UInt16};
                let types = [Float16, Float32, Int8, UInt8, UInt16, Int64, Float64];
                plan.pools[at % n_pools].dtype = types[to % types.len()].into();
            }
            Self::Scope(at, to) => plan.pools[at % n_pools].scope = Scope::ALL[to % Scope::ALL.len()],
            Self::Region(at, by) => match &mut plan.places[at % n_tensors].region {
                Region::Bytes { size, .. } => *size = size.saturating_add_signed(by.into()),
                Region::Texels { width, .. } => *width = width.saturating_add_signed(by.into()),
            },
            Self::Far(at, last) => {
                let by = if last { 0 } else { 1 << 62 };
                let region = &mut plan.places[at % n_tensors].region;
                match region {
                    Region::Bytes { offset, .. } => *offset = u64::MAX - by,
                    Region::Texels { x, .. } => *x = u64::MAX - by,
                }
            }
            Self::Spare => plan.pools.push(plan.pools[0].clone()),
            Self::Renumber(one, other) => {
                let (one, other) = (one % n_pools, other % n_pools);
                plan.pools.swap(one, other);
                for place in &mut plan.places {
                    place.pool = if place.pool == one {
                        other
                    } else if place.pool == other {
                        one
                    } else {
                        place.pool
                    };
                }
            }
        }
        plan
    }
}

impl Mutation {
    /// Draws a change of one of the three plans.
    pub(super) fn draw(u: &mut Unstructured<'_>) -> arbitrary::Result<Self> {
        let strategy = u.int_in_range(0..=2)?;
        let (at, other) = (u.int_in_range(0..=60usize)?, u.int_in_range(0..=60usize)?);
        let change = match u.int_in_range(0..=13)? {
            0 => Change::Shift(at, step(u)?, step(u)?),
            1 => Change::ShiftAlone(at, step(u)?),
            2 | 3 => Change::Resize(at, step(u)?, step(u)?),
            4 => Change::Swap(at, other),
            5 | 6 => Change::Onto(at, other),
            7 => Change::Into(at, other),
            8 => Change::Dtype(at, other),
            9 => Change::Scope(at, other),
            10 => Change::Region(at, step(u)?),
            11 => Change::Far(at, u.arbitrary()?),
            12 => Change::Spare,
            _ => Change::Renumber(at, other),
        };
        Ok(Self { strategy, change })
    }
}

/// Draws a small distance or an alignment of buffers.
fn step(u: &mut Unstructured<'_>) -> arbitrary::Result<i8> {
    u.choose(&[0, 1, -1, 1, -1, 2, -2, 3, 4, -4, 8, 16, 64, -64]).copied()
}

/// Moves a region; buffers ignore `by_y`.
fn shift(region: &mut Region, by_x: i64, by_y: i64) {
    match region {
        Region::Bytes { offset, .. } => *offset = offset.saturating_add_signed(by_x),
        Region::Texels { x, y, .. } => {
            *x = x.saturating_add_signed(by_x);
            *y = y.saturating_add_signed(by_y);
        }
    }
}

/// The region at the position of another one, if both are of the same kind.
fn begins(region: Region, at: Region) -> Region {
    match (region, at) {
        (Region::Bytes { size, .. }, Region::Bytes { offset, .. }) => Region::Bytes { offset, size },
        (Region::Texels { width, height, .. }, Region::Texels { x, y, .. }) => Region::Texels { x, y, width, height },
        (Region::Bytes { .. }, Region::Texels { .. }) | (Region::Texels { .. }, Region::Bytes { .. }) => region,
    }
}
