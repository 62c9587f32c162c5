//! The best of several planners, on one group of tensors.
//!
//! Greedy planners depend on the order in which they place tensors. The usual orders are tried first: largest, longest-lived, in
//! order of time; then the same with a grain of chance, from a seed that is always the same. It ends early where nothing
//! smaller is possible.

use tilewright_ir::TextureLimits;

use super::live::Group;
use super::offsets::{self, Greedy};
use super::packing::{Packing, area, largest_live_set};
use super::rectangles::Sheets;
use super::tokens;

/// Orders with a grain of chance, at most.
const MOST_TRIES: usize = 64;
/// Tensors placed in such orders, all together, at most about.
const TRIED_SLOTS: usize = 20_000;

/// The smallest packing of a group; of equal ones the first that was tried, the compatible one first of all.
pub(super) fn pack(group: &Group, limits: TextureLimits) -> Packing {
    let slots = &group.slots;
    let mut best = Best::new(tokens::pack(slots), group);
    let n_tries = (TRIED_SLOTS / slots.len().max(1)).min(MOST_TRIES);
    let mut orders = orders(group);
    orders.extend(perturbed(group, n_tries));
    if let Some(packing) = offsets::in_time(slots, group.alignment) {
        best.offer(packing);
    }
    if let Some(greedy) = Greedy::new(slots, group.alignment) {
        for order in &orders {
            if best.is_least() {
                break;
            }
            best.offer(greedy.pack(order));
        }
    }
    if let Some(sheets) = Sheets::new(group, limits) {
        for (order, prefer_new) in orders.iter().flat_map(|order| [(order, false), (order, true)]) {
            if best.is_least() {
                break;
            }
            sheets.pack(order, prefer_new).into_iter().for_each(|packing| best.offer(packing));
        }
    }
    best.packing
}

/// The smallest packing so far.
struct Best {
    packing: Packing,
    size: u128,
    /// No packing is smaller.
    least: u128,
}

impl Best {
    fn new(packing: Packing, group: &Group) -> Self {
        let lives = group.slots.iter().map(|slot| (slot.first, slot.last, area(slot.room)));
        Self { size: packing.size(), packing, least: largest_live_set(lives) }
    }

    fn offer(&mut self, packing: Packing) {
        let size = packing.size();
        if size < self.size {
            (self.packing, self.size) = (packing, size);
        }
    }

    fn is_least(&self) -> bool {
        self.size <= self.least
    }
}

/// Bytes or texels times steps.
fn volume(group: &Group, at: usize) -> u128 {
    let slot = &group.slots[at];
    let steps = u128::try_from(slot.last - slot.first + 1).unwrap_or(u128::MAX);
    area(slot.room).saturating_mul(steps)
}

fn orders(group: &Group) -> Vec<Vec<usize>> {
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

/// Orders by size, by volume and by time in turn, each key moved by chance.
fn perturbed(group: &Group, n_tries: usize) -> impl Iterator<Item = Vec<usize>> {
    let n = group.slots.len();
    let mut random = 0x9E37_79B9_7F4A_7C15_u64;
    let mut below = move |end: u64| {
        // xorshift64
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        (random >> 33) % end
    };
    (0..n_tries).map(move |turn| {
        let keys: Vec<u128> = (0..n)
            .map(|at| match turn % 3 {
                0 => area(group.slots[at].room).saturating_mul((256 + below(1024)).into()),
                1 => volume(group, at).saturating_mul((256 + below(1024)).into()),
                _ => u128::try_from(n - at).unwrap_or(0) * 8 + u128::from(below(64)),
            })
            .collect();
        offsets::ordered(n, |at| keys[at])
    })
}
