//! Writes the fill value to the slots beyond the ends of ragged axes.

use crate::run::repeat;
use crate::strategy::Edge;

/// Fills the slots of an edge. `value` has the bytes of one element.
pub(crate) fn edge(edge: &Edge, dst: &mut [u8], value: &[u8]) {
    Walk { edge, value }.from(0, 0, 0, dst);
}

struct Walk<'a> {
    edge: &'a Edge,
    value: &'a [u8],
}

impl Walk<'_> {
    /// Fills the slots at and after the loop at `depth`. `sum` is the left side of the bound so far, `position` the place in memory.
    fn from(&self, depth: usize, sum: u64, position: u64, dst: &mut [u8]) {
        let Some(one) = self.edge.loops.get(depth) else {
            if sum >= self.edge.bound.limit {
                self.slots(position, position + 1, dst);
            }
            return;
        };
        let factor = self.factor(depth);
        let first = self.first(depth, sum, factor);
        if self.edge.loops.len() == depth + 1 && one.target == 1 {
            // The last loop is contiguous: where it begins to be padding, it stays so.
            return self.slots(position + first, position + one.extent, dst);
        }
        for value in first..one.extent {
            self.from(depth + 1, sum + value * factor, position + value * one.target, dst);
        }
    }

    /// Fills the slots from `start` to `end`.
    fn slots(&self, start: u64, end: u64, dst: &mut [u8]) {
        let byte = |slot: u64| usize::try_from(slot).ok()?.checked_mul(self.value.len());
        let range = byte(start).zip(byte(end));
        if let Some(memory) = range.and_then(|(start, end)| dst.get_mut(start..end)) {
            repeat(memory, self.value);
        }
    }

    /// The factor of a loop in the bound, which is 0 if the loop is not in it.
    fn factor(&self, depth: usize) -> u64 {
        self.edge.bound.terms.iter().find(|(at, _)| *at == depth).map_or(0, |(_, factor)| *factor)
    }

    /// The first value of a loop from which on the loops inside of it can reach the limit; its extent if none can.
    fn first(&self, depth: usize, sum: u64, factor: u64) -> u64 {
        let Edge { loops, bound } = self.edge;
        let inner = bound.terms.iter().filter(|(at, _)| *at > depth);
        let most: u64 = inner.map(|&(at, factor)| (loops[at].extent - 1) * factor).sum();
        let missing = bound.limit.saturating_sub(sum + most);
        let extent = loops[depth].extent;
        match (missing, factor) {
            (0, _) => 0,
            (_, 0) => extent,
            _ => missing.div_ceil(factor).min(extent),
        }
    }
}
