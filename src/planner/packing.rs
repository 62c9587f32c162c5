//! A packing: pools, and where in them the tensors of one group lie.

use tilewright_ir::{Region, Room};

use super::live::{Slot, whole};

/// Pools, and for each slot of a group its pool and its region there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Packing {
    pub(super) pools: Vec<Room>,
    pub(super) places: Vec<(usize, Region)>,
}

impl Packing {
    /// Bytes or texels of all pools.
    pub(super) fn size(&self) -> u128 {
        self.pools.iter().map(|&pool| area(pool)).sum()
    }
}

/// Bytes or texels.
pub(super) fn area(room: Room) -> u128 {
    match room {
        Room::Bytes(bytes) => bytes.into(),
        Room::Texels { width, height } => u128::from(width) * u128::from(height),
    }
}

/// A pool for each.
pub(super) fn unshared(slots: &[Slot]) -> Packing {
    let places = slots.iter().enumerate().map(|(pool, slot)| (pool, whole(slot.room)));
    Packing { pools: slots.iter().map(|slot| slot.room).collect(), places: places.collect() }
}
