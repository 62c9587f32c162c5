//! Packings: the pools of one group of tensors, and the tensors' places in them.

use tilewright_ir::{PoolRules, Region, Room};

use super::live::{Slot, whole_region};

/// The sizes of the pools of a group, and for each slot its pool and its region there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Packing {
    pub(super) pools: Vec<Room>,
    pub(super) places: Vec<(usize, Region)>,
}

impl Packing {
    /// Total size of the pools, in bytes or texels.
    pub(super) fn size(&self) -> u128 {
        self.pools.iter().map(|&pool| area(pool)).sum()
    }

    /// The same places, in textures whose widths are multiples of the pitch.
    pub(super) fn with_pitch(mut self, rules: PoolRules) -> Self {
        for pool in &mut self.pools {
            *pool = rules.pool_room(*pool);
        }
        self
    }
}

/// Size in bytes or texels.
pub(super) fn area(room: Room) -> u128 {
    match room {
        Room::Bytes(bytes) => bytes.into(),
        Room::Texels { width, height } => u128::from(width) * u128::from(height),
    }
}

/// The largest sum of sizes that are alive in one step, given the first step, the last step and the size of each
/// tensor.
pub(super) fn largest_live_set(lives: impl Iterator<Item = (usize, usize, u128)>) -> u128 {
    let mut changes: Vec<(usize, bool, u128)> =
        lives.flat_map(|(first, last, size)| [(first, true, size), (last + 1, false, size)]).collect();
    // In one step, tensors whose lifetime has ended are subtracted before new ones are added.
    changes.sort_unstable();
    let (mut now, mut most) = (0u128, 0);
    for (_, begins, size) in changes {
        now = if begins { now + size } else { now.saturating_sub(size) };
        most = most.max(now);
    }
    most
}

/// A packing in which each slot has a pool of its own.
pub(super) fn unshared(slots: &[Slot]) -> Packing {
    let places = slots.iter().enumerate().map(|(pool, slot)| (pool, whole_region(slot.room)));
    Packing { pools: slots.iter().map(|slot| slot.room).collect(), places: places.collect() }
}
