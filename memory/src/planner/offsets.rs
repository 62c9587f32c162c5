//! Planners that place buffers at offsets of one pool.
//!
//! *In order of time*: blocks of the pool are allocated and released step by step. A request takes the smallest free
//! block that is large enough; if there is none, the pool grows. Costs a logarithmic number of steps for each tensor.
//!
//! *Greedy*: tensors are placed in a given order, such as largest first, each in the smallest gap between the placed
//! tensors whose lifetimes overlap its own. Costs one look at each pair of overlapping lifetimes.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use tilewright_ir::sabotage;
use tilewright_ir::{Region, Room};

use super::live::Slot;
use super::overlaps::Overlaps;
use super::packing::Packing;

/// The greedy planner of a group of buffers, with the sizes in bytes, unpadded and padded to the alignment.
#[derive(Debug)]
pub(super) struct Greedy {
    sizes: Vec<u64>,
    padded: Vec<u64>,
    overlaps: Overlaps,
}

impl Greedy {
    /// Prepares the planner. `None` for a group of textures, or if too many lifetimes overlap.
    pub(super) fn new(slots: &[Slot], alignment: u64) -> Option<Self> {
        let (sizes, padded) = sizes(slots, alignment)?;
        Some(Self { sizes, padded, overlaps: Overlaps::new(slots)? })
    }

    /// Places the slots in the given order.
    pub(super) fn pack(&self, order: &[usize]) -> Packing {
        packing(&self.sizes, &greedy(&self.padded, &self.overlaps, order))
    }
}

/// Plans a group of buffers in order of time; `None` for a group of textures.
pub(super) fn in_time(slots: &[Slot], alignment: u64) -> Option<Packing> {
    let (sizes, padded) = sizes(slots, alignment)?;
    Some(packing(&sizes, &time_ordered(slots, &padded)))
}

/// The sizes of buffers in bytes, and the sizes rounded up to the alignment. Their sum is far below 2^64
/// ([`MAX_BYTES`](crate::graph::check::MAX_BYTES)). `None` for textures.
fn sizes(slots: &[Slot], alignment: u64) -> Option<(Vec<u64>, Vec<u64>)> {
    let sizes = slots.iter().map(|slot| bytes(slot.room)).collect::<Option<Vec<u64>>>()?;
    let alignment = if sabotage::on("planner-unaligned") { 1 } else { alignment };
    let padded = sizes.iter().map(|size| size.next_multiple_of(alignment)).collect();
    Some((sizes, padded))
}

/// The indices below `n` by decreasing key; equal keys keep the order of the indices.
pub(super) fn ordered<K: Ord>(n: usize, key: impl Fn(usize) -> K) -> Vec<usize> {
    let mut order: Vec<usize> = (0..n).collect();
    if sabotage::on("planner-other-ties") {
        order.reverse();
    }
    order.sort_by_cached_key(|&at| Reverse(key(at)));
    order
}

/// The size of a buffer; `None` for a texture.
fn bytes(room: Room) -> Option<u64> {
    match room {
        Room::Bytes(bytes) => Some(bytes),
        Room::Texels { .. } => None,
    }
}

/// A packing with one pool, which ends with the last tensor. It is not padded, because nothing follows.
fn packing(sizes: &[u64], offsets: &[u64]) -> Packing {
    let places = offsets.iter().zip(sizes).map(|(&offset, &size)| (0, Region::Bytes { offset, size }));
    let end = offsets.iter().zip(sizes).map(|(offset, size)| offset + size).max();
    Packing { pools: end.into_iter().map(Room::Bytes).collect(), places: places.collect() }
}

/// The offset of each slot, allocated in order of time.
fn time_ordered(slots: &[Slot], sizes: &[u64]) -> Vec<u64> {
    let mut ending = ordered(slots.len(), |at| Reverse(slots[at].last)).into_iter().peekable();
    let mut offsets = vec![0; slots.len()];
    let mut arena = Arena::default();
    for (at, slot) in slots.iter().enumerate() {
        while let Some(ended) = ending.next_if(|&ended| slots[ended].last < slot.first) {
            arena.give_back(offsets[ended], sizes[ended]);
        }
        offsets[at] = arena.take(sizes[at]);
    }
    offsets
}

/// A pool whose free blocks are indexed by offset and by size. Adjacent free blocks are merged.
#[derive(Debug, Default)]
struct Arena {
    end: u64,
    by_offset: BTreeMap<u64, u64>,
    by_size: BTreeSet<(u64, u64)>,
}

impl Arena {
    /// Allocates `size` bytes and returns their offset. Empty tensors get offset 0 and occupy nothing.
    fn take(&mut self, size: u64) -> u64 {
        if size == 0 {
            return 0;
        }
        if let Some(&(found, offset)) = self.by_size.range((size, 0)..).next() {
            self.remove(offset, found);
            if found > size {
                let left = if sabotage::on("arena-splits-wrong") { found } else { found - size };
                self.insert(offset + size, left);
            }
            return offset;
        }
        // A free block at the end of the pool is extended, so the pool grows only by what is missing.
        let last = self.by_offset.last_key_value().map(|(&offset, &size)| (offset, size));
        let offset = match last.filter(|(offset, size)| offset + size == self.end) {
            Some((offset, size)) => {
                self.remove(offset, size);
                offset
            }
            None => self.end,
        };
        self.end = offset + size;
        offset
    }

    /// Releases a block, and merges it with the free blocks before and after it.
    fn give_back(&mut self, mut offset: u64, mut size: u64) {
        if size == 0 {
            return;
        }
        let before = self.by_offset.range(..offset).next_back().map(|(&at, &size)| (at, size));
        if let Some((at, length)) = before.filter(|(at, length)| at + length == offset) {
            self.remove(at, length);
            (offset, size) = (at, size + length);
        }
        if let Some(length) = self.by_offset.get(&(offset + size)).copied() {
            self.remove(offset + size, length);
            size += length;
        }
        self.insert(offset, size);
    }

    /// Enters a free block in both indices.
    fn insert(&mut self, offset: u64, size: u64) {
        self.by_offset.insert(offset, size);
        self.by_size.insert((size, offset));
    }

    /// Removes a free block from both indices.
    fn remove(&mut self, offset: u64, size: u64) {
        self.by_offset.remove(&offset);
        self.by_size.remove(&(size, offset));
    }
}

/// The offset of each slot, placed in the given order.
fn greedy(sizes: &[u64], overlaps: &Overlaps, order: &[usize]) -> Vec<u64> {
    let mut placed: Vec<Option<u64>> = vec![None; sizes.len()];
    let mut taken: Vec<(u64, u64)> = Vec::new();
    for &at in order {
        taken.clear();
        let others = overlaps.overlapping(at).iter().filter(|&&other| sizes[other] > 0);
        taken.extend(others.filter_map(|&other| Some((placed[other]?, placed[other]? + sizes[other]))));
        taken.sort_unstable();
        placed[at] = Some(if sizes[at] == 0 { 0 } else { smallest_gap(&taken, sizes[at]) });
    }
    placed.into_iter().flatten().collect()
}

/// The offset of the smallest gap of at least `size` bytes between blocks `(start, end)`, which are sorted by start.
/// If there is none, the end of the last block.
fn smallest_gap(taken: &[(u64, u64)], size: u64) -> u64 {
    let mut free_from = 0;
    let mut best: Option<(u64, u64)> = None;
    for &(start, end) in taken {
        let gap = start.saturating_sub(free_from);
        if gap >= size && best.is_none_or(|(smallest, _)| gap < smallest) {
            best = Some((gap, free_from));
        }
        // Blocks may overlap, because their tensors need not be alive at the same time: a later block may end
        // earlier.
        free_from = if sabotage::on("gap-forgets-longer") { end } else { free_from.max(end) };
    }
    best.map_or(free_from, |(_, offset)| offset)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_gap_that_is_large_enough_is_taken() {
        assert_eq!(smallest_gap(&[], 64), 0);
        assert_eq!(smallest_gap(&[(0, 64), (256, 320), (448, 512)], 128), 320);
        assert_eq!(smallest_gap(&[(0, 64), (256, 320), (448, 512)], 192), 64);
        assert_eq!(smallest_gap(&[(0, 64), (256, 320), (448, 512)], 256), 512);
        assert_eq!(smallest_gap(&[(0, 512), (64, 128), (512, 576)], 64), 576);
    }

    #[test]
    fn free_blocks_that_touch_become_one() {
        let mut arena = Arena::default();
        let offsets: Vec<u64> = [64, 128, 192].into_iter().map(|size| arena.take(size)).collect();
        assert_eq!((offsets, arena.end), (vec![0, 64, 192], 384));
        arena.give_back(0, 64);
        arena.give_back(192, 192);
        arena.give_back(64, 128);
        assert_eq!(arena.by_size.iter().copied().collect::<Vec<_>>(), [(384, 0)]);
        // The free block at the end counts towards a larger request.
        assert_eq!((arena.take(448), arena.end), (0, 448));
    }

    #[test]
    fn two_small_buffers_lie_side_by_side_where_a_large_one_was() {
        let slot = |first, last, bytes| Slot { first, last, room: Room::Bytes(bytes) };
        let slots = [slot(0, 1, 1000), slot(1, 2, 300), slot(2, 4, 500), slot(3, 4, 448)];
        let greedy = Greedy::new(&slots, 64).unwrap();
        let orders = [[0, 1, 2, 3], [3, 2, 1, 0], [0, 2, 3, 1]];
        let best = orders.iter().map(|order| greedy.pack(order).size()).min();
        assert_eq!(best, Some(320 + 1000)); // each begins at a multiple of 64
    }
}
