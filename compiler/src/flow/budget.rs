//! How much a search may do: a program with hundreds of copies of its stores ends with nothing found, and not after minutes.

use std::cell::Cell;

/// The work of one search, in evaluations of a condition, of which a machine does some millions in a second.
#[derive(Debug)]
pub(super) struct Budget(Cell<u64>);

/// Evaluations that take as long as solving for the loops of an instance, comparing two of them, or writing the value of one.
pub(super) const SOLVING: usize = 100;

impl Default for Budget {
    fn default() -> Self {
        Self(Cell::new(MOST))
    }
}

/// The work of a search: ten times that of the largest unrolled programs that are proved in the tests.
const MOST: u64 = 4_000_000;

impl Budget {
    /// Takes work off; `false` if there is none left.
    pub(super) fn spend(&self, work: usize) -> bool {
        let left = self.0.get().saturating_sub(u64::try_from(work).unwrap_or(u64::MAX));
        self.0.set(left);
        left > 0
    }
}
