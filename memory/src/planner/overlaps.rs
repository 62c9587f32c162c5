//! The pairs of tensors of a group whose lifetimes overlap.

use super::live::Slot;
use tilewright_ir::sabotage;

/// For each slot of a group the slots whose lifetimes overlap its own, unless there are too many such pairs.
#[derive(Debug)]
pub(super) struct Overlaps {
    /// The position in `others` of the first entry of each slot, and the length of `others` at the end.
    starts: Vec<usize>,
    others: Vec<usize>,
}

/// Limit on the number of pairs per slot, on average. Beyond it, planners that look at pairs would no longer be
/// near-linear. In networks about ten tensors are alive at a time.
const PAIRS_PER_SLOT: usize = 64;
/// Number of pairs that is always allowed, so that small groups are never refused.
const MIN_PAIR_LIMIT: usize = 1 << 16;

impl Overlaps {
    /// Computes all pairs of slots, which have to be sorted by their first steps. `None` if there are too many.
    pub(super) fn new(slots: &[Slot]) -> Option<Self> {
        let limit = slots.len() * PAIRS_PER_SLOT + MIN_PAIR_LIMIT;
        let mut pairs: Vec<(usize, usize)> = Vec::new();
        let mut alive: Vec<usize> = Vec::new();
        for (at, slot) in slots.iter().enumerate() {
            let early = usize::from(sabotage::on("planner-shares-early"));
            alive.retain(|&other| slots[other].last >= slot.first + early);
            if pairs.len() + alive.len() > limit {
                return None;
            }
            pairs.extend(alive.iter().map(|&other| (other, at)));
            alive.push(at);
        }
        // The pairs become one flat list, by a counting sort: the counts, their prefix sums, then the entries.
        let mut starts = vec![0; slots.len() + 1];
        for &(one, other) in &pairs {
            starts[one + 1] += 1;
            starts[other + 1] += 1;
        }
        for at in 0..slots.len() {
            starts[at + 1] += starts[at];
        }
        let mut next = starts.clone();
        let mut others = vec![0; pairs.len() * 2];
        for (one, other) in pairs {
            others[next[one]] = other;
            others[next[other]] = one;
            next[one] += 1;
            next[other] += 1;
        }
        Some(Self { starts, others })
    }

    /// The slots that are alive in some step in which this slot is alive.
    pub(super) fn overlapping(&self, slot: usize) -> &[usize] {
        &self.others[self.starts[slot]..self.starts[slot + 1]]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilewright_ir::Room;

    #[test]
    fn lifetimes_that_share_a_step_overlap() {
        let slot = |first, last| Slot { first, last, room: Room::Bytes(3) };
        let overlaps = Overlaps::new(&[slot(0, 2), slot(0, 0), slot(1, 1), slot(2, 5), slot(3, 3)]).unwrap();
        let of: Vec<Vec<usize>> = (0..5).map(|at| overlaps.overlapping(at).to_vec()).collect();
        assert_eq!(of, [vec![1, 2, 3], vec![0], vec![0], vec![0, 4], vec![3]]);
    }

    #[test]
    fn too_many_pairs_are_refused() {
        let slots = vec![Slot { first: 0, last: 0, room: Room::Bytes(3) }; 3000];
        assert!(Overlaps::new(&slots).is_none());
    }
}
