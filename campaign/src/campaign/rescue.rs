//! After a worker died: finds the case that killed it, and reduces it to a smaller case that kills
//! a worker in the same way.
//!
//! If the second worker survives all cases of the range, the failure is recorded for the range as a whole, without a case:
//! it may have come from memory that earlier cases left behind.

use std::time::Instant;

use serde_json::Value;

use super::driver::{Driver, REDUCTION};
use super::link::Lost;
use super::protocol::{Range, Reply, Request};
use crate::finding::{Finding, Origin, SCHEMA};
use crate::oracle::{Failure, Outcome, Tally};

impl Driver<'_> {
    /// Handles the death of a worker somewhere in a range: another worker traces the range case by
    /// case, so that the last announced number is the case to blame.
    pub(super) fn rescue(&mut self, lane: usize, range: &Range, failure: Failure) {
        let mut last = None;
        match self.ask(&Request::Trace { range: range.clone() }, &mut |number| last = Some(number)) {
            Ok(Reply::Ran { done, batch, tally, findings }) => {
                self.shared.state().schedule.record(lane, range, done.min(range.count), batch, &tally);
                let (first, end) = (range.first, range.end().saturating_sub(1));
                let detail = format!("once, somewhere in cases {first} to {end}, and not again: {}", failure.detail);
                self.report(range, first, Failure { detail, ..failure }, true);
                for finding in findings {
                    self.found(finding);
                }
            }
            Ok(Reply::Skipped { why } | Reply::Refused { why }) => self.skip(lane, why),
            Ok(_) => self.skip(lane, "its worker gives an answer that makes no sense".into()),
            Err(Lost::Stopped) => self.shared.state().schedule.lanes[lane].given_up += range.count,
            Err(Lost::Worker(again)) => {
                let Some(number) = last else {
                    self.skip(lane, format!("{} before the first case", again.what));
                    self.report(range, range.first, again, true);
                    return;
                };
                {
                    let mut state = self.shared.state();
                    let one = Tally { runs: 1, failed: 1, ..Tally::default() };
                    // The cases before and after it count as not checked, because the worker died before it
                    // could report their outcomes.
                    state.schedule.return_cases(lane, range.part(range.first, number));
                    state.schedule.return_cases(lane, range.part(number.saturating_add(1), range.end()));
                    state.schedule.lanes[lane].tally.merge(&one);
                }
                self.report(range, number, again, false);
            }
        }
    }

    /// Records a finding whose failure is the death of a worker. `is_all` if no single case is to
    /// blame.
    fn report(&mut self, range: &Range, number: u64, failure: Failure, is_all: bool) {
        let mut finding = Finding {
            schema: SCHEMA.to_owned(),
            oracle: range.oracle.clone(),
            failure,
            origin: Some(Origin { seed: range.seed, number }),
            case: Value::Null,
            text: String::new(),
            replay: String::new(),
        };
        if !self.is_new(&finding) {
            return;
        }
        if !is_all
            && let Ok(Reply::Cases { cases, .. }) =
                self.ask(&Request::Draw { range: range.part(number, number + 1) }, &mut |_| {})
            && let Some(case) = cases.into_iter().next()
        {
            finding.case = case;
            finding.text = self.simpler(&finding).1;
            // A case that fails only after others depends on state in the worker, and cannot be
            // reduced.
            match self.failure_of(&finding) {
                Some(found) if found.what == finding.failure.what => finding = self.reduce_outside(finding),
                _ => {
                    let detail = &finding.failure.detail;
                    let first = range.first;
                    finding.failure.detail = format!("only after the cases from {first} on, not alone: {detail}");
                }
            }
        }
        self.keep(finding);
    }

    /// Reduces a finding whose checks may kill a worker: each check is a request of its own.
    pub(super) fn reduce_outside(&mut self, mut finding: Finding) -> Finding {
        let patience = self.shared.plan.launch.patience;
        let until = Instant::now() + REDUCTION.max(patience * 2);
        'smaller: loop {
            let (cases, text) = self.simpler(&finding);
            finding.text = text;
            for case in cases {
                if Instant::now() >= until || self.shared.is_interrupted() {
                    break 'smaller;
                }
                let candidate = Finding { case, ..finding.clone() };
                if let Some(failure) = self.failure_of(&candidate).filter(|found| found.what == finding.failure.what) {
                    finding = Finding { failure, ..candidate };
                    continue 'smaller;
                }
            }
            break;
        }
        finding.text = self.simpler(&finding).1;
        finding
    }

    /// How the case of a finding fails, if it does.
    fn failure_of(&mut self, finding: &Finding) -> Option<Failure> {
        let request = Request::Replay { oracle: finding.oracle.clone(), case: finding.case.clone() };
        match self.ask(&request, &mut |_| {}) {
            Ok(Reply::Outcome(Outcome::Failed(failure))) | Err(Lost::Worker(failure)) => Some(failure),
            Ok(_) | Err(Lost::Stopped) => None,
        }
    }

    /// The simpler cases of a finding and its text.
    fn simpler(&mut self, finding: &Finding) -> (Vec<Value>, String) {
        let request = Request::Simpler { oracle: finding.oracle.clone(), case: finding.case.clone() };
        match self.ask(&request, &mut |_| {}) {
            Ok(Reply::Cases { cases, text }) => (cases, text),
            Ok(_) | Err(_) => (Vec::new(), finding.text.clone()),
        }
    }
}
