//! The compatible planner: storage tokens that are requested, released and reused (texture RFC, "Addendum: Storage
//! scope based memory planning", with the rules of TVM's releases; [`super`] states them).
//!
//! Costs one search among the free pools for each tensor: logarithmic for buffers, linear for textures.

use std::collections::{BTreeMap, BTreeSet};

use tilewright_ir::Room;
use tilewright_ir::sabotage;

use super::live::{Slot, whole_region};
use super::packing::Packing;

/// A free buffer is considered if its size differs from the request by at most this factor.
const MATCH_RANGE: u64 = 16;
/// A free texture is not considered if a quotient of widths or heights exceeds this number.
const MAX_RATIO: u64 = 5;

/// Assigns each slot a token; slots are in the order of their requests.
pub(super) fn pack(slots: &[Slot]) -> Packing {
    let mut by_end: Vec<usize> = (0..slots.len()).collect();
    by_end.sort_by_key(|&slot| slots[slot].last);
    let mut ending = by_end.into_iter().peekable();
    let mut packing = Packing::default();
    let mut free = Free::default();
    for slot in slots {
        // The tensors that a step reads are released only after those that it writes have memory.
        while let Some(ended) = ending.next_if(|&ended| slots[ended].last < slot.first) {
            let (pool, _) = packing.places[ended];
            free.insert(pool, packing.pools[pool]);
        }
        let pool = if let Some((pool, grown)) = free.take(slot.room) {
            if !sabotage::on("token-does-not-grow") {
                packing.pools[pool] = grown;
            }
            pool
        } else {
            packing.pools.push(slot.room);
            packing.pools.len() - 1
        };
        packing.places.push((pool, whole_region(slot.room)));
    }
    packing
}

/// The free pools.
#[derive(Debug, Default)]
struct Free {
    /// Size in bytes and number of each free buffer.
    buffers: BTreeSet<(u64, usize)>,
    /// Width and height of each free texture, by its number.
    textures: BTreeMap<usize, (u64, u64)>,
}

impl Free {
    /// Adds a pool of this size.
    fn insert(&mut self, pool: usize, room: Room) {
        match room {
            Room::Bytes(bytes) => {
                self.buffers.insert((bytes, pool));
            }
            Room::Texels { width, height } => {
                self.textures.insert(pool, (width, height));
            }
        }
    }

    /// Takes a pool for a request, and returns its number and its size from now on. `None` if a new pool is needed.
    fn take(&mut self, request: Room) -> Option<(usize, Room)> {
        match request {
            Room::Bytes(bytes) => self.take_buffer(bytes),
            Room::Texels { width, height } => self.take_texture(width, height),
        }
    }

    /// Takes the smallest pool that is large enough, otherwise the largest that is smaller.
    fn take_buffer(&mut self, request: u64) -> Option<(usize, Room)> {
        let (least, most) = (request / MATCH_RANGE, request.saturating_mul(MATCH_RANGE));
        let enough = self.buffers.range((request, 0)..=(most, usize::MAX)).next().copied();
        let taken = enough.or_else(|| {
            // Of equally large pools the one with the lowest number is taken.
            let &(largest, _) = self.buffers.range((least, 0)..(request, 0)).next_back()?;
            self.buffers.range((largest, 0)..).next().copied()
        })?;
        self.buffers.remove(&taken);
        Some((taken.1, Room::Bytes(taken.0.max(request))))
    }

    /// Takes a pool whose extents are near those of the request, which grows in each direction to the request.
    ///
    /// TVM goes through the free pools and compares each with the best one so far, direction by direction: less growth in a direction is
    /// better as long as the best one grows there, and of equal growth less of the pool that stays unused. Growth itself is no
    /// reason for a new pool.
    fn take_texture(&mut self, width: u64, height: u64) -> Option<(usize, Room)> {
        let is_far = |one: u64, other: u64| one / other > MAX_RATIO || other / one > MAX_RATIO;
        let mut best: Option<Fit> = None;
        for (&pool, &(w, h)) in &self.textures {
            if is_far(width, w) || is_far(height, h) {
                continue;
            }
            let grown = [w.max(width), h.max(height)];
            let fit =
                Fit { pool, grown, added: [grown[0] - w, grown[1] - h], unused: [grown[0] - width, grown[1] - height] };
            if best.as_ref().is_none_or(|best| fit.is_better_than(best)) {
                best = Some(fit);
            }
        }
        let Fit { pool, grown: [width, height], .. } = best?;
        self.textures.remove(&pool);
        Some((pool, Room::Texels { width, height }))
    }
}

/// A free texture that is considered for a request; extents are width and height.
struct Fit {
    pool: usize,
    /// The extents that it would have.
    grown: [u64; 2],
    /// How much it would grow.
    added: [u64; 2],
    /// How much of it the request would not use.
    unused: [u64; 2],
}

impl Fit {
    /// Whether TVM prefers it to one that was considered earlier.
    fn is_better_than(&self, best: &Self) -> bool {
        let grows_less = |side: usize| best.added[side] > 0 && self.added[side] < best.added[side];
        let is_tighter = |side: usize| self.added[side] == best.added[side] && self.unused[side] < best.unused[side];
        grows_less(0) || grows_less(1) || is_tighter(0) || is_tighter(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn free(rooms: &[Room]) -> Free {
        let mut free = Free::default();
        rooms.iter().enumerate().for_each(|(pool, &room)| free.insert(pool, room));
        free
    }

    fn buffer(free: &[u64], request: u64) -> Option<(usize, u64)> {
        let rooms: Vec<Room> = free.iter().map(|&bytes| Room::Bytes(bytes)).collect();
        self::free(&rooms).take(Room::Bytes(request)).map(|(pool, room)| match room {
            Room::Bytes(bytes) => (pool, bytes),
            Room::Texels { .. } => panic!("a buffer became a texture"),
        })
    }

    fn texture(free: &[(u64, u64)], request: (u64, u64)) -> Option<(usize, u64, u64)> {
        let texels = |&(width, height): &(u64, u64)| Room::Texels { width, height };
        let rooms: Vec<Room> = free.iter().map(texels).collect();
        self::free(&rooms).take(texels(&request)).map(|(pool, room)| match room {
            Room::Texels { width, height } => (pool, width, height),
            Room::Bytes(_) => panic!("a texture became a buffer"),
        })
    }

    #[test]
    fn a_buffer_takes_the_smallest_that_is_large_enough() {
        assert_eq!(buffer(&[900, 100, 300, 101], 100), Some((1, 100)));
        assert_eq!(buffer(&[900, 99, 300, 101], 100), Some((3, 101)));
        assert_eq!(buffer(&[99, 900], 100), Some((1, 900)));
    }

    #[test]
    fn sixteen_times_the_request_is_near_enough_and_one_byte_more_is_not() {
        assert_eq!(buffer(&[1600], 100), Some((0, 1600)));
        assert_eq!(buffer(&[1601], 100), None);
    }

    #[test]
    fn the_largest_smaller_buffer_grows_to_the_request() {
        assert_eq!(buffer(&[7, 50, 99, 60], 100), Some((2, 100)));
    }

    #[test]
    fn a_sixteenth_rounded_down_is_near_enough_and_one_byte_less_is_not() {
        assert_eq!(buffer(&[6], 100), Some((0, 100))); // 100 / 16 = 6
        assert_eq!(buffer(&[5], 100), None);
        assert_eq!(buffer(&[6], 112), None); // 112 / 16 = 7
    }

    #[test]
    fn of_equal_buffers_the_lowest_id_is_taken() {
        assert_eq!(buffer(&[200, 150, 150], 100), Some((1, 150)));
        assert_eq!(buffer(&[40, 50, 50, 50], 100), Some((1, 100)));
    }

    #[test]
    fn empty_buffers_share_with_empty_ones_only() {
        assert_eq!(buffer(&[1, 0], 0), Some((1, 0)));
        assert_eq!(buffer(&[1], 0), None);
        assert_eq!(buffer(&[0], 15), Some((0, 15))); // 15 / 16 = 0
        assert_eq!(buffer(&[u64::MAX], u64::MAX / 2), Some((0, u64::MAX)));
    }

    #[test]
    fn a_texture_takes_what_need_not_grow_and_wastes_least() {
        assert_eq!(texture(&[(9, 9), (7, 9), (7, 11)], (7, 8)), Some((1, 7, 9)));
        assert_eq!(texture(&[(7, 7), (30, 30)], (7, 8)), Some((1, 30, 30)));
    }

    #[test]
    fn growth_is_compared_direction_by_direction() {
        // (6, 7) grows by 4 in width and (10, 3) by 4 in height: each is better than the other in one direction, so that the later
        // one is taken.
        assert_eq!(texture(&[(10, 3), (6, 7)], (10, 7)), Some((1, 10, 7)));
        assert_eq!(texture(&[(6, 7), (10, 3)], (10, 7)), Some((1, 10, 7)));
        assert_eq!(texture(&[(9, 6), (6, 5)], (10, 7)), Some((0, 10, 7)));
    }

    #[test]
    fn a_texture_grows_however_large_the_growth_is() {
        // TVM's test DifferentSizesTokenReuse2: 22 rows of 400 texels are free, 5 rows of 600 are requested. By area it
        // would grow by 4400 texels for a request of 3000.
        assert_eq!(texture(&[(400, 22)], (600, 5)), Some((0, 600, 22)));
        assert_eq!(texture(&[(5, 11)], (10, 5)), Some((0, 10, 11)));
    }

    #[test]
    fn five_times_and_a_rest_is_near_enough_and_six_times_is_not() {
        assert_eq!(texture(&[(29, 7)], (5, 7)), Some((0, 29, 7))); // 29 / 5 = 5
        assert_eq!(texture(&[(30, 7)], (5, 7)), None); // 30 / 5 = 6
        assert_eq!(texture(&[(7, 29)], (7, 5)), Some((0, 7, 29)));
        assert_eq!(texture(&[(7, 30)], (7, 5)), None);
        assert_eq!(texture(&[(15, 7)], (29, 7)), Some((0, 29, 7)));
        // Both extents count: a wide and a high texture of the same area are not compatible.
        assert_eq!(texture(&[(60, 1)], (1, 60)), None);
    }

    #[test]
    fn of_equal_textures_the_lowest_id_is_taken() {
        assert_eq!(texture(&[(9, 9), (8, 8), (8, 8)], (7, 8)), Some((1, 8, 8)));
        // Each of two that are tighter in one direction is better than the other one.
        assert_eq!(texture(&[(8, 14), (14, 8)], (7, 7)), Some((1, 14, 8)));
    }

    #[test]
    fn what_is_read_is_given_back_after_what_is_written_has_memory() {
        let slot = |first, last, bytes| Slot { first, last, room: Room::Bytes(bytes) };
        // A chain of equal tensors needs two pools, not one.
        let chain = pack(&[slot(0, 1, 8), slot(1, 2, 8), slot(2, 3, 8), slot(3, 3, 8)]);
        assert_eq!(chain.places.iter().map(|place| place.0).collect::<Vec<_>>(), [0, 1, 0, 1]);
        // A tensor without readers is released after the step that writes it.
        let unread = pack(&[slot(0, 0, 8), slot(0, 2, 8), slot(1, 2, 8)]);
        assert_eq!(unread.places.iter().map(|place| place.0).collect::<Vec<_>>(), [0, 1, 0]);
    }
}
