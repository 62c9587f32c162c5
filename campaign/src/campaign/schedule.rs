//! Decides which cases come next, so that oracles share the time evenly whatever their cases cost.
//!
//! A slice is about a quarter of a second of one oracle. The number of its cases is estimated from the average so far, and
//! the worker stops at the end of the time; cases it did not reach are handed out again, lowest numbers first. So every
//! case below the highest number is checked exactly once, however many workers there are.

use std::time::Duration;

use super::protocol::Range;
use crate::oracle::Tally;

/// Duration of a slice.
pub const SLICE: Duration = Duration::from_millis(250);
/// Limit on the number of cases of a slice.
const MAX_CASES: u64 = 1 << 16;

/// The state of an oracle in a campaign.
#[derive(Clone, Debug, Default)]
pub struct Lane {
    /// Its name.
    pub oracle: String,
    /// Why it is not available here.
    pub skipped: Option<String>,
    /// The counts.
    pub tally: Tally,
    /// Time that workers spent on it.
    pub spent: Duration,
    /// Number of cases that were running when the campaign ended, and do not count.
    pub given_up: u64,
    /// Number of the first case that was never handed out.
    next: u64,
    /// Cases that were handed out but not checked.
    left: Vec<Range>,
    /// Number of slices that workers are running.
    busy: u32,
    /// The number of cases that are best checked together, once known.
    batch: u64,
}

impl Lane {
    /// The state of an oracle before its first slice.
    pub fn new(oracle: &str) -> Self {
        Self { oracle: oracle.to_owned(), batch: 1, ..Self::default() }
    }

    /// The estimated number of cases that fill a slice, by the average time so far.
    fn count(&self) -> u64 {
        let known = u128::from(self.tally.runs) * SLICE.as_micros();
        let fit = known.checked_div(u128::from(self.tally.micros)).unwrap_or(0);
        let fit = u64::try_from(fit).unwrap_or(MAX_CASES).clamp(1, MAX_CASES);
        // A quarter more than the estimate: the worker looks at the clock itself, and must not run
        // out of cases.
        (fit + fit / 4).next_multiple_of(self.batch.max(1))
    }

    /// Takes the next cases; at most `limit` cases are handed out in total.
    fn take(&mut self, seed: u64, limit: u64) -> Option<Range> {
        let count = self.count();
        if let Some(left) = self.left.pop() {
            let end = left.first.saturating_add(count).min(left.end());
            if end < left.end() {
                self.left.push(left.part(end, left.end()));
            }
            return Some(left.part(left.first, end));
        }
        let count = count.min(limit.saturating_sub(self.next));
        let range = Range { oracle: self.oracle.clone(), seed, first: self.next, count };
        self.next = range.end();
        (count > 0).then_some(range)
    }
}

/// The result of [`Schedule::next_slice`].
#[derive(Debug, PartialEq, Eq)]
pub enum Next {
    /// The cases to check, and the index of their lane.
    Slice(usize, Range),
    /// Nothing until another worker returns its slice.
    Wait,
    /// Nothing: all cases are checked.
    Done,
}

/// The lanes of all oracles.
#[derive(Clone, Debug)]
pub struct Schedule {
    /// One lane for each oracle.
    pub lanes: Vec<Lane>,
    seed: u64,
    limit: u64,
}

impl Schedule {
    /// A schedule for these oracles, with at most `limit` cases each.
    pub fn new(oracles: &[&str], seed: u64, limit: Option<u64>) -> Self {
        let lanes = oracles.iter().map(|name| Lane::new(name)).collect();
        Self { lanes, seed, limit: limit.unwrap_or(u64::MAX) }
    }

    /// Hands out the next slice, for the oracle with the least time so far. Slices that are running
    /// count with their full duration.
    pub fn next_slice(&mut self) -> Next {
        let mut order: Vec<usize> = (0..self.lanes.len()).filter(|&at| self.lanes[at].skipped.is_none()).collect();
        order.sort_by_key(|&at| self.lanes[at].spent + SLICE * self.lanes[at].busy);
        for at in order {
            if let Some(range) = self.lanes[at].take(self.seed, self.limit) {
                self.lanes[at].busy += 1;
                return Next::Slice(at, range);
            }
        }
        if self.lanes.iter().any(|lane| lane.busy > 0) { Next::Wait } else { Next::Done }
    }

    /// Records that a worker checked the first `done` cases of a range; the others will be handed
    /// out again.
    pub fn record(&mut self, lane: usize, range: &Range, done: u64, batch: u64, tally: &Tally) {
        let lane = &mut self.lanes[lane];
        lane.batch = batch.max(1);
        lane.tally.merge(tally);
        lane.give_back(range.part(range.first.saturating_add(done), range.end()));
    }

    /// Records that the cases of a range were not checked; they will be handed out again.
    pub fn return_cases(&mut self, lane: usize, range: Range) {
        self.lanes[lane].give_back(range);
    }

    /// Records that a worker finished a slice, and the time it took.
    pub fn finish_slice(&mut self, lane: usize, spent: Duration) {
        self.lanes[lane].busy -= 1;
        self.lanes[lane].spent += spent;
    }
}

impl Lane {
    /// Adds a range to the cases to hand out again.
    fn give_back(&mut self, range: Range) {
        if range.count > 0 {
            self.left.push(range);
            // `pop` takes the lowest numbers first.
            self.left.sort_by_key(|range| std::cmp::Reverse(range.first));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(runs: u64, micros: u64) -> Tally {
        Tally { runs, micros, ..Tally::default() }
    }

    #[test]
    fn every_case_is_looked_at_once_whatever_workers_come_to() {
        let mut schedule = Schedule::new(&["a"], 3, Some(1000));
        let (mut seen, mut turn) = (Vec::new(), 0);
        loop {
            match schedule.next_slice() {
                Next::Done => break,
                Next::Wait => unreachable!("one worker"),
                Next::Slice(lane, range) => {
                    turn += 1;
                    let done = if turn % 3 == 0 { range.count.div_ceil(2) } else { range.count };
                    seen.extend(range.first..range.first + done);
                    schedule.record(lane, &range, done, 4, &counted(done, done * 5000));
                    schedule.finish_slice(lane, SLICE);
                }
            }
        }
        seen.sort_unstable();
        assert_eq!(seen, (0..1000).collect::<Vec<_>>());
    }

    #[test]
    fn cheap_and_expensive_oracles_share_the_time() {
        let mut schedule = Schedule::new(&["cheap", "dear", "absent"], 0, None);
        schedule.lanes[2].skipped = Some("no device".into());
        let mut times = [Duration::ZERO; 3];
        for _ in 0..400 {
            let Next::Slice(lane, range) = schedule.next_slice() else { unreachable!("no limit") };
            let each = [10, 700_000, 0][lane];
            let spent = Duration::from_micros(range.count * each);
            times[lane] += spent;
            schedule.record(lane, &range, range.count, 1, &counted(range.count, range.count * each));
            schedule.finish_slice(lane, spent);
        }
        let share = times[0].as_secs_f64() / times[1].as_secs_f64();
        assert!((0.9..1.1).contains(&share), "{times:?}");
        assert_eq!(times[2], Duration::ZERO);
    }
}
