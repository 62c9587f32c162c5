//! How much work a question may be: what would take more is not answered.
//!
//! A proof divides, a division asks for proofs, and each of them begins afresh with the parts of what it was asked: nested
//! quotients and remainders would be taken apart once for every way to them. So steps are counted across all of that, and
//! where they are used up a proof fails and a quotient stays as it is, which is never wrong.
//!
//! The count is one of the thread, and begins with the outermost question: the same question has the same answer.

use std::cell::Cell;

/// Steps of a single proof or bound.
pub(super) const PROOF: u32 = 600;
/// Steps of one expression that is simplified.
pub(super) const EXPRESSION: u32 = 20_000;
/// Steps of one map: its shape, its inverse, its digits.
pub(super) const MAP: u32 = 60_000;

thread_local! {
    /// Steps left to the outermost question; none if nothing is asked.
    static LEFT: Cell<Option<u32>> = const { Cell::new(None) };
}

/// Ends a limit.
pub(super) struct Limit {
    outer: Option<u32>,
    given: u32,
}

/// At most so many steps until the result is dropped, and no more than are left of the limits around it.
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

/// One step more; whether there was one left.
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
    fn a_limit_within_another_takes_from_it() {
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
