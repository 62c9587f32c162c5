//! The coordinator's thread for one worker: it takes a slice from the schedule, lets the worker run
//! it, and records the result.

use std::time::{Duration, Instant};

use super::files::write_finding;
use super::link::{Lost, WorkerLink};
use super::protocol::{Clock, Range, Reply, Request};
use super::schedule::{Next, SLICE};
use super::{Found, Shared};
use crate::finding::Finding;

/// How long a slice may continue after the end of the campaign.
const GRACE: Duration = Duration::from_secs(10);
/// How long a slice may continue after Ctrl-C.
const SHORT_GRACE: Duration = Duration::from_millis(1500);
/// Limit on the time for reducing a finding.
pub const REDUCTION: Duration = Duration::from_secs(20);
/// Limit on the number of checks for reducing a finding.
const ATTEMPTS: usize = 20_000;

/// A thread of the coordinator together with its worker.
pub(crate) struct Driver<'a> {
    pub(super) shared: &'a Shared<'a>,
    link: Option<WorkerLink>,
}

impl<'a> Driver<'a> {
    /// Creates the thread's state; the worker is started with the first request.
    pub(crate) fn new(shared: &'a Shared<'a>) -> Self {
        Self { shared, link: None }
    }

    /// Runs slices until the schedule is exhausted or the campaign is over.
    pub(crate) fn run(mut self) {
        while !self.shared.is_over() {
            let next = self.shared.state().schedule.next_slice();
            match next {
                Next::Done => break,
                Next::Wait => std::thread::sleep(Duration::from_millis(5)),
                Next::Slice(lane, range) => {
                    let start = Instant::now();
                    self.slice(lane, &range);
                    self.shared.state().schedule.finish_slice(lane, start.elapsed());
                }
            }
        }
    }

    /// Sends a request to the worker, which is started if necessary; `at` receives the numbers of
    /// traced cases. A worker that gives no reply is discarded.
    pub(super) fn ask(&mut self, request: &Request, at: &mut dyn FnMut(u64)) -> Result<Reply, Lost> {
        let mut link = match self.link.take() {
            Some(link) => link,
            None => WorkerLink::start(&self.shared.plan.launch).map_err(|error| {
                self.shared.state().faults.push(format!("cannot start a worker process: {error}"));
                Lost::Stopped
            })?,
        };
        // Without these limits a case that hangs would delay the end of the campaign by the
        // worker's patience.
        let interrupted = std::cell::Cell::new(None);
        let stop = || {
            if self.shared.is_interrupted() && interrupted.get().is_none() {
                interrupted.set(Some(Instant::now()));
            }
            let after_interrupt = interrupted.get().is_some_and(|since: Instant| since.elapsed() > SHORT_GRACE);
            // Reductions have a limit of their own.
            let limit = GRACE + if matches!(request, Request::Reduce { .. }) { REDUCTION } else { Duration::ZERO };
            after_interrupt || self.shared.end().is_some_and(|end| Instant::now() > end + limit)
        };
        let reply = link.ask(request, &stop, at)?;
        self.link = Some(link);
        Ok(reply)
    }

    /// Runs one slice and records its tally and findings. If the worker dies, [`Driver::rescue`]
    /// finds the case.
    fn slice(&mut self, lane: usize, range: &Range) {
        let left = self.shared.end().map_or(SLICE, |end| end.saturating_duration_since(Instant::now()).min(SLICE));
        let millis = u64::try_from(left.as_millis()).unwrap_or(0);
        match self.ask(&Request::Run { range: range.clone(), millis, clock: Clock::Wall }, &mut |_| {}) {
            Ok(Reply::Ran { done, batch, tally, findings }) => {
                self.shared.state().schedule.record(lane, range, done.min(range.count), batch, &tally);
                for finding in findings {
                    self.found(finding);
                }
            }
            Ok(Reply::Skipped { why } | Reply::Refused { why }) => self.skip(lane, why),
            Ok(_) => self.skip(lane, "its worker gives an answer that makes no sense".into()),
            Err(Lost::Stopped) => self.shared.state().schedule.lanes[lane].given_up += range.count,
            Err(Lost::Worker(failure)) => self.rescue(lane, range, failure),
        }
    }

    /// Marks the oracle as not available, with the reason.
    pub(super) fn skip(&mut self, lane: usize, why: String) {
        self.shared.state().schedule.lanes[lane].skipped.get_or_insert(why);
    }

    /// Handles a failure reported by a worker: the first of its kind is reduced and written.
    pub(super) fn found(&mut self, finding: Finding) {
        if !self.is_new(&finding) || self.shared.is_interrupted() {
            return;
        }
        let millis = u64::try_from(REDUCTION.as_millis()).unwrap_or(0);
        let request = Request::Reduce { finding: finding.clone(), attempts: ATTEMPTS, millis };
        let smaller = match self.ask(&request, &mut |_| {}) {
            Ok(Reply::Reduced(smaller)) => smaller,
            // A reduced case ended the worker, so each further check needs a worker that may die.
            Err(Lost::Worker(_)) => self.reduce_outside(finding),
            Ok(_) | Err(Lost::Stopped) => finding,
        };
        self.keep(smaller);
    }

    /// Counts a failure, and returns whether it is the first of its kind, which the caller has to
    /// reduce.
    pub(super) fn is_new(&self, finding: &Finding) -> bool {
        let key = (finding.oracle.clone(), finding.failure.what.clone());
        let mut state = self.shared.state();
        if let Some(known) = state.found.get_mut(&key) {
            known.times += 1;
            return false;
        }
        state.found.insert(key, Found { times: 1, finding: finding.clone(), file: None });
        true
    }

    /// Records a reduced finding and writes it to a file.
    pub(super) fn keep(&self, finding: Finding) {
        let plan = self.shared.plan;
        let written = write_finding(&plan.out, &finding, &plan.replay_options);
        let key = (finding.oracle.clone(), finding.failure.what.clone());
        let mut state = self.shared.state();
        let file = match written {
            Ok(file) => Some(file),
            Err(error) => {
                state.unwritten.push(format!("cannot write a finding to {}: {error}", plan.out.display()));
                None
            }
        };
        if let Some(known) = state.found.get_mut(&key) {
            known.file = file;
            known.finding = finding;
        }
    }
}
