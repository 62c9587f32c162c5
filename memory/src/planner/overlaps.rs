//! Which tensors of a group are alive at once.

use super::live::Slot;
use tilewright_ir::sabotage;

/// Pairs that are alive at once, for each slot of a group, as long as there are not too many of them.
#[derive(Debug)]
pub(super) struct Overlaps {
    /// Where the others of each slot begin in `others`; one more at the end.
    starts: Vec<usize>,
    others: Vec<usize>,
}

/// Pairs for each slot, at most on average: with more, looking at pairs would no longer be near-linear. Networks have some
/// ten tensors alive at a time.
const PAIRS_PER_SLOT: usize = 64;
/// Pairs that are always looked at.
const SOME_PAIRS: usize = 1 << 16;

impl Overlaps {
    /// All pairs of slots, which come in the order of their first steps. None if there are too many.
    pub(super) fn new(slots: &[Slot]) -> Option<Self> {
        let most = slots.len() * PAIRS_PER_SLOT + SOME_PAIRS;
        let mut pairs: Vec<(usize, usize)> = Vec::new();
        let mut alive: Vec<usize> = Vec::new();
        for (at, slot) in slots.iter().enumerate() {
            let early = usize::from(sabotage::on("planner-shares-early"));
            alive.retain(|&other| slots[other].last >= slot.first + early);
            if pairs.len() + alive.len() > most {
                return None;
            }
            pairs.extend(alive.iter().map(|&other| (other, at)));
            alive.push(at);
        }
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

    /// The slots that are alive in some step in which this one is.
    pub(super) fn of(&self, slot: usize) -> &[usize] {
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
        let of: Vec<Vec<usize>> = (0..5).map(|at| overlaps.of(at).to_vec()).collect();
        assert_eq!(of, [vec![1, 2, 3], vec![0], vec![0], vec![0, 4], vec![3]]);
    }

    #[test]
    fn too_many_pairs_are_refused() {
        let slots = vec![Slot { first: 0, last: 0, room: Room::Bytes(3) }; 3000];
        assert!(Overlaps::new(&slots).is_none());
    }
}
