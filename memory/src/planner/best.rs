//! Runs several planners on one group of tensors and keeps the smallest packing.
//!
//! The result of a greedy planner depends on the order in which it places tensors. The usual orders are tried first:
//! largest first, longest-lived first, by time. Random perturbations of them follow, from a fixed seed, so that the
//! result is deterministic. The search ends early when a packing reaches the lower bound.

use tilewright_ir::PoolRules;

use super::live::Group;
use super::offsets::{self, Greedy};
use super::packing::{self, Packing, area, largest_live_set};
use super::rectangles::Sheets;
use super::tokens;

/// Maximal number of perturbed orders.
const MAX_PERTURBED_ORDERS: usize = 64;
/// Approximate limit on the number of tensors placed in perturbed orders, over all of them: large groups get fewer
/// orders.
const MAX_PERTURBED_SLOTS: usize = 20_000;

/// The smallest packing of a group. Of equally small ones the first that was tried wins; the compatible planner is
/// tried first.
///
/// The result never depends on time: the number of orders follows from the number of slots alone.
pub(super) fn pack(group: &Group, rules: PoolRules) -> Packing {
    let slots = &group.slots;
    let mut best = Best::new(tokens::pack(slots).with_pitch(rules), group);
    // Tokens may grow by more than they save.
    best.offer(packing::unshared(slots).with_pitch(rules));
    let n_tries = (MAX_PERTURBED_SLOTS / slots.len().max(1)).min(MAX_PERTURBED_ORDERS);
    let mut orders = standard_orders(group);
    orders.extend(perturbed_orders(group, n_tries));
    // A group consists of buffers or of textures. The planners for the other kind return `None`.
    if let Some(packing) = offsets::in_time(slots, group.alignment) {
        best.offer(packing);
    }
    if let Some(greedy) = Greedy::new(slots, group.alignment) {
        for order in &orders {
            if best.is_optimal() {
                break;
            }
            best.offer(greedy.pack(order));
        }
    }
    if let Some(sheets) = Sheets::new(group, rules) {
        for (order, prefer_new) in orders.iter().flat_map(|order| [(order, false), (order, true)]) {
            if best.is_optimal() {
                break;
            }
            sheets.pack(order, prefer_new).into_iter().for_each(|packing| best.offer(packing));
        }
    }
    best.packing
}

/// The smallest packing so far, with its size in bytes or texels.
struct Best {
    packing: Packing,
    size: u128,
    /// The largest live set: no packing is smaller.
    lower_bound: u128,
}

impl Best {
    fn new(packing: Packing, group: &Group) -> Self {
        let lives = group.slots.iter().map(|slot| (slot.first, slot.last, area(slot.room)));
        Self { size: packing.size(), packing, lower_bound: largest_live_set(lives) }
    }

    /// Replaces the packing if the new one is smaller.
    fn offer(&mut self, packing: Packing) {
        let size = packing.size();
        if size < self.size {
            (self.packing, self.size) = (packing, size);
        }
    }

    /// Whether no smaller packing exists.
    fn is_optimal(&self) -> bool {
        self.size <= self.lower_bound
    }
}

/// The size of a slot in bytes or texels, multiplied by the number of steps of its lifetime.
fn volume(group: &Group, at: usize) -> u128 {
    let slot = &group.slots[at];
    let steps = u128::try_from(slot.last - slot.first + 1).unwrap_or(u128::MAX);
    area(slot.room).saturating_mul(steps)
}

/// The unperturbed orders: by time, by size, by volume, by lifetime, and from the last to the first.
fn standard_orders(group: &Group) -> Vec<Vec<usize>> {
    let n = group.slots.len();
    let slot = |at: usize| &group.slots[at];
    let size = |at: usize| area(slot(at).room);
    let life = |at: usize| slot(at).last - slot(at).first;
    vec![
        (0..n).collect(),
        offsets::ordered(n, |at| (size(at), life(at))),
        offsets::ordered(n, |at| (volume(group, at), size(at))),
        offsets::ordered(n, |at| (life(at), size(at))),
        offsets::ordered(n, |at| slot(at).first),
    ]
}

/// Orders by size, by volume and by time in round. The first two multiply each key by a random factor from 1 to 5 (in
/// units of 1/256), the third moves each tensor by up to eight places.
fn perturbed_orders(group: &Group, n_tries: usize) -> impl Iterator<Item = Vec<usize>> {
    let n = group.slots.len();
    let mut random = 0x9E37_79B9_7F4A_7C15_u64;
    let mut below = move |end: u64| {
        // xorshift64
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        (random >> 33) % end
    };
    (0..n_tries).map(move |round| {
        let keys: Vec<u128> = (0..n)
            .map(|at| match round % 3 {
                0 => area(group.slots[at].room).saturating_mul((256 + below(1024)).into()),
                1 => volume(group, at).saturating_mul((256 + below(1024)).into()),
                _ => u128::try_from(n - at).unwrap_or(0) * 8 + u128::from(below(64)),
            })
            .collect();
        offsets::ordered(n, |at| keys[at])
    })
}
