//! The coordinator's thread for a worker: takes a slice, has it run, keeps what came of it.

use std::time::{Duration, Instant};

use super::files::write_finding;
use super::link::{Link, Lost};
use super::protocol::{Range, Reply, Request};
use super::schedule::{Next, SLICE};
use super::{Found, Shared};
use crate::finding::Finding;

/// How long a slice may go on after the end of the campaign.
const GRACE: Duration = Duration::from_secs(10);
/// The same after Ctrl-C.
const SHORT_GRACE: Duration = Duration::from_millis(1500);
/// Most time for making a finding smaller.
pub const REDUCTION: Duration = Duration::from_secs(20);
/// Most looks for making a finding smaller.
const ATTEMPTS: usize = 20_000;

/// A thread of the coordinator, with its worker.
pub(crate) struct Driver<'a> {
    pub(super) shared: &'a Shared<'a>,
    link: Option<Link>,
}

impl<'a> Driver<'a> {
    /// Without a worker yet.
    pub(crate) fn new(shared: &'a Shared<'a>) -> Self {
        Self { shared, link: None }
    }

    /// Takes slices until nothing is left or the campaign is over.
    pub(crate) fn run(mut self) {
        while !self.shared.is_over() {
            let next = self.shared.state().schedule.hand_out();
            match next {
                Next::Done => break,
                Next::Wait => std::thread::sleep(Duration::from_millis(5)),
                Next::Slice(lane, range) => {
                    let start = Instant::now();
                    self.slice(lane, &range);
                    self.shared.state().schedule.back(lane, start.elapsed());
                }
            }
        }
    }

    /// Asks the worker; starts one where there is none. One that gives no answer is gone.
    pub(super) fn ask(&mut self, request: &Request, at: &mut dyn FnMut(u64)) -> Result<Reply, Lost> {
        let mut link = match self.link.take() {
            Some(link) => link,
            None => Link::start(&self.shared.plan.launch).map_err(|error| {
                self.shared.state().faults.push(format!("cannot start a worker process: {error}"));
                Lost::Stopped
            })?,
        };
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

    fn slice(&mut self, lane: usize, range: &Range) {
        let left = self.shared.end().map_or(SLICE, |end| end.saturating_duration_since(Instant::now()).min(SLICE));
        let millis = u64::try_from(left.as_millis()).unwrap_or(0);
        match self.ask(&Request::Run { range: range.clone(), millis }, &mut |_| {}) {
            Ok(Reply::Ran { done, batch, tally, findings }) => {
                self.shared.state().schedule.done(lane, range, done.min(range.count), batch, &tally);
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

    /// The oracle does not run here.
    pub(super) fn skip(&mut self, lane: usize, why: String) {
        self.shared.state().schedule.lanes[lane].skipped.get_or_insert(why);
    }

    /// A failure within a worker: the first of its kind is made smaller and written.
    pub(super) fn found(&mut self, finding: Finding) {
        if !self.is_new(&finding) || self.shared.is_interrupted() {
            return;
        }
        let millis = u64::try_from(REDUCTION.as_millis()).unwrap_or(0);
        let request = Request::Reduce { finding: finding.clone(), attempts: ATTEMPTS, millis };
        let smaller = match self.ask(&request, &mut |_| {}) {
            Ok(Reply::Reduced(smaller)) => smaller,
            // A smaller case ends the worker: one process for each look, then.
            Err(Lost::Worker(_)) => self.reduce_outside(finding),
            Ok(_) | Err(Lost::Stopped) => finding,
        };
        self.keep(smaller);
    }

    /// Counts a failure. The first of its kind is kept as it is, and is the caller's to make smaller.
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

    /// Keeps a finding that is as small as it gets, and writes it.
    pub(super) fn keep(&self, finding: Finding) {
        let plan = self.shared.plan;
        let written = write_finding(&plan.out, &finding, &plan.replay_options);
        let key = (finding.oracle.clone(), finding.failure.what.clone());
        let mut state = self.shared.state();
        let file = match written {
            Ok(file) => Some(file),
            Err(error) => {
                state.faults.push(format!("cannot write a finding to {}: {error}", plan.out.display()));
                None
            }
        };
        if let Some(known) = state.found.get_mut(&key) {
            known.file = file;
            known.finding = finding;
        }
    }
}
