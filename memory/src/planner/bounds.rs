//! A lower bound on the size of textures: what every plan of a group takes, whatever planner made it.
//!
//! The largest live set is one bound. It is often out of reach, because a texture is a rectangle that is as wide as its widest tensor
//! and as high as its highest, and because a step cannot read and write one texture:
//!
//! ```text
//! a 224x9, later b 9x224               largest live set 2016 texels; one texture for both 50176, two textures 4032
//! b written from a, c from b           a and b are in two textures, b and c as well
//! ```
//!
//! A few tensors of the group are considered, and all ways to distribute them over textures, in which no texture holds a tensor that a
//! step reads and one that the same step writes. A texture takes at least the product of its largest width and its largest height, and at
//! least what its tensors take that are alive at once. The least sum over all distributions is a bound for any choice of tensors; the
//! tensors are chosen one by one so that it becomes large.

use std::collections::{BTreeMap, BTreeSet};

use tilewright_ir::Room;

use super::live::Group;

/// Most tensors that are distributed: there are 21147 ways to distribute 9.
const MAX_MEMBERS: usize = 10;
/// Most shapes whose tensors are considered.
const MAX_SHAPES: usize = 20;
/// Most tensors of one shape that are considered.
const MAX_OF_SHAPE: usize = 24;
/// Limit on the partial distributions that are looked at, for one choice of tensors and for all of them.
const MAX_WORK: usize = 20_000;
const MAX_TOTAL_WORK: usize = 400_000;

/// A lower bound on the texels of all plans of a group; 0 for a group of buffers, about which nothing is known.
pub(super) fn texture_bound(group: &Group) -> u128 {
    let (mut members, mut bound, mut work_left): (Vec<Item<'_>>, u128, usize) = (Vec::new(), 0, MAX_TOTAL_WORK);
    let candidates = candidates(group);
    while members.len() < MAX_MEMBERS {
        let mut best: Option<((u128, u128), Item<'_>)> = None;
        let mut tried = BTreeSet::new();
        let is_member = |one: &Item<'_>| members.iter().any(|member| member.slot == one.slot);
        let rest: Vec<Item<'_>> = candidates.iter().filter(|one| !is_member(one)).copied().collect();
        for candidate in &rest {
            // Tensors that stand in the same relations to the members give the same bound.
            let relations: Vec<_> =
                members.iter().map(|member| (member.excludes(candidate), member.meets(candidate))).collect();
            if !tried.insert((candidate.width, candidate.height, relations)) {
                continue;
            }
            members.push(*candidate);
            let (found, work) = smallest_distribution(&members);
            members.pop();
            work_left = work_left.saturating_sub(work);
            let Some(found) = found else { continue };
            let rank = (found, candidate.area());
            if best.as_ref().is_none_or(|(known, _)| *known < rank) {
                best = Some((rank, *candidate));
            }
        }
        let Some(((found, _), chosen)) = best.filter(|_| work_left > 0) else { break };
        // More tensors never lower the bound.
        bound = bound.max(found);
        members.push(chosen);
    }
    bound
}

/// A tensor of a group of textures. Width and height are in texels.
#[derive(Clone, Copy)]
struct Item<'a> {
    slot: usize,
    first: usize,
    last: usize,
    width: u64,
    height: u64,
    readers: &'a [usize],
}

impl Item<'_> {
    fn area(&self) -> u128 {
        u128::from(self.width) * u128::from(self.height)
    }

    /// Whether some step reads one of the two and writes the other.
    fn excludes(&self, other: &Self) -> bool {
        self.readers.binary_search(&other.first).is_ok() || other.readers.binary_search(&self.first).is_ok()
    }

    /// Whether both are alive in some step.
    fn meets(&self, other: &Self) -> bool {
        self.first <= other.last && other.first <= self.last
    }
}

/// The tensors with the largest shapes, by area, by width and by height.
fn candidates(group: &Group) -> Vec<Item<'_>> {
    let slots = group.slots.iter().zip(&group.readers).enumerate();
    let items: Vec<Item<'_>> = slots
        .filter_map(|(slot, (info, readers))| match info.room {
            Room::Texels { width, height } => {
                Some(Item { slot, first: info.first, last: info.last, width, height, readers })
            }
            Room::Bytes(_) => None,
        })
        .collect();
    let mut shapes: Vec<(u64, u64)> = items.iter().map(|item| (item.width, item.height)).collect();
    shapes.sort_unstable();
    shapes.dedup();
    let mut chosen = BTreeSet::new();
    let area = |&(width, height): &(u64, u64)| u128::from(width) * u128::from(height);
    let mut choose = |key: fn(&(u64, u64)) -> u128, count: usize| {
        shapes.sort_by_key(|shape| std::cmp::Reverse((key(shape), area(shape))));
        chosen.extend(shapes.iter().take(count).copied());
    };
    choose(area, MAX_SHAPES / 2);
    choose(|shape| shape.0.into(), MAX_SHAPES / 4);
    choose(|shape| shape.1.into(), MAX_SHAPES / 4);
    let mut taken = BTreeMap::new();
    let is_taken = |item: &Item<'_>| {
        let count = taken.entry((item.width, item.height)).or_insert(0);
        *count += 1;
        *count <= MAX_OF_SHAPE && chosen.contains(&(item.width, item.height))
    };
    items.into_iter().filter(is_taken).collect()
}

/// The least size of all distributions of tensors over textures, and the number of partial distributions that were looked at. None if
/// there are too many.
fn smallest_distribution(members: &[Item<'_>]) -> (Option<u128>, usize) {
    let mut items = members.to_vec();
    // Large tensors first, so that poor distributions are given up early.
    items.sort_by_key(|item| (std::cmp::Reverse(item.area()), item.slot));
    let mut search = Search { items: &items, textures: Vec::new(), best: None, work: 0 };
    search.distribute(0, 0);
    (search.best.filter(|_| search.work <= MAX_WORK), search.work)
}

/// The search for the smallest distribution.
struct Search<'a> {
    items: &'a [Item<'a>],
    /// The tensors of each texture, by their places in `items`.
    textures: Vec<Vec<usize>>,
    best: Option<u128>,
    work: usize,
}

impl Search<'_> {
    /// Distributes the tensors from the given one on; `size` is the sum of the textures so far.
    fn distribute(&mut self, at: usize, size: u128) {
        self.work += 1;
        if self.work > MAX_WORK || self.best.is_some_and(|best| best <= size) {
            return;
        }
        let items = self.items;
        let Some(item) = items.get(at) else {
            self.best = Some(size);
            return;
        };
        for texture in 0..self.textures.len() {
            if self.textures[texture].iter().any(|&other| items[other].excludes(item)) {
                continue;
            }
            let before = self.least(texture);
            self.textures[texture].push(at);
            let after = self.least(texture);
            self.distribute(at + 1, size - before + after);
            self.textures[texture].pop();
        }
        self.textures.push(vec![at]);
        self.distribute(at + 1, size + item.area());
        self.textures.pop();
    }

    /// What a texture takes at least.
    fn least(&self, texture: usize) -> u128 {
        let tensors = || self.textures[texture].iter().map(|&at| &self.items[at]);
        let width = tensors().map(|item| item.width).max().unwrap_or(0);
        let height = tensors().map(|item| item.height).max().unwrap_or(0);
        let alive_at = |step: usize| {
            tensors().filter(|item| item.first <= step && step <= item.last).map(Item::area).sum::<u128>()
        };
        // The set of tensors that are alive is largest in some step in which one of them is written.
        let alive = tensors().map(|item| alive_at(item.first)).max().unwrap_or(0);
        alive.max(u128::from(width) * u128::from(height))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::planner::live::Slot;

    /// Slots from first step, last step, width, height and readers.
    fn bound(slots: &[(usize, usize, u64, u64, &[usize])]) -> u128 {
        let room = |width, height| Room::Texels { width, height };
        let slot = |&(first, last, width, height, _): &(usize, usize, u64, u64, &[usize])| Slot {
            first,
            last,
            room: room(width, height),
        };
        let readers = slots.iter().map(|slot| slot.4.to_vec()).collect();
        texture_bound(&Group::for_test(slots.iter().map(slot).collect(), readers))
    }

    #[test]
    fn a_wide_and_a_high_tensor_do_not_share_a_texture() {
        // One after the other, so that the largest live set is one of them.
        assert_eq!(bound(&[(0, 1, 30, 2, &[1]), (3, 4, 3, 40, &[4])]), 60 + 120);
        assert_eq!(bound(&[(0, 1, 30, 2, &[1]), (3, 4, 29, 2, &[4])]), 60);
    }

    #[test]
    fn what_a_step_reads_and_what_it_writes_are_in_two_textures() {
        // In two textures, the third tensor in that of the first one.
        assert_eq!(bound(&[(0, 1, 7, 9, &[1]), (1, 2, 7, 9, &[2]), (2, 3, 7, 9, &[3])]), 2 * 63);
        // A step that reads two and writes a third: the two may lie side by side, and are alive at once.
        assert_eq!(bound(&[(0, 2, 7, 9, &[2]), (1, 2, 7, 9, &[2]), (2, 3, 7, 9, &[3])]), 3 * 63);
    }

    #[test]
    fn a_bound_is_never_above_a_plan() {
        // Side by side in 8x5 texels.
        assert_eq!(bound(&[(0, 2, 3, 5, &[2]), (1, 2, 5, 5, &[2])]), 40);
        assert_eq!(bound(&[]), 0);
    }
}
