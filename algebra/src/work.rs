//! Limits on the work that one question may take. A question that would take more is not answered.
//!
//! A proof divides, a division asks for proofs, and each of them examines its operands again; nested quotients and
//! remainders would be examined once for every path to them. So steps are counted across all of these calls. When they
//! are used up, proofs fail and quotients stay as they are, which is always sound.
//!
//! The counter belongs to the thread and starts with the outermost question, so the same question always has the same
//! answer.

use std::cell::Cell;

/// Steps for a single proof or bound.
pub(super) const PROOF: u32 = 600;
/// Steps for the simplification of one expression.
pub(super) const EXPRESSION: u32 = 20_000;
/// Steps for one map: its shape, its inverse, or its digits.
pub(super) const MAP: u32 = 60_000;

thread_local! {
    /// Steps left for the innermost limit in force; none if there is no limit.
    static LEFT: Cell<Option<u32>> = const { Cell::new(None) };
}

/// A limit in force; dropping it ends it.
pub(super) struct Limit {
    outer: Option<u32>,
    given: u32,
}

/// Limits the work to `steps`, and to what is left of the enclosing limits, until the result is dropped.
#[must_use]
pub(super) fn limit(steps: u32) -> Limit {
    let outer = LEFT.get();
    let given = outer.map_or(steps, |left| left.min(steps));
    LEFT.set(Some(given));
    Limit { outer, given }
}

impl Drop for Limit {
    fn drop(&mut self) {
        let used = self.given.saturating_sub(LEFT.get().unwrap_or(0));
        LEFT.set(self.outer.map(|left| left.saturating_sub(used)));
    }
}

/// Takes one step. Returns whether there was one left; always true without a limit.
pub(super) fn step() -> bool {
    let left = LEFT.get();
    LEFT.set(left.map(|left| left.saturating_sub(1)));
    left != Some(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps() -> usize {
        (0..100).take_while(|_| step()).count()
    }

    #[test]
    fn an_inner_limit_counts_against_the_outer_one() {
        let outer = limit(10);
        {
            let _inner = limit(4);
            assert_eq!(steps(), 4);
        }
        assert_eq!(steps(), 6);
        drop(outer);
        assert_eq!(steps(), 100);
    }
}
