//! The worker process: it answers requests of the coordinator, and may die while checking any case.
//!
//! A fault that is planted is switched on for the whole process, by its command line, before the first request.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::time::{Duration, Instant};

use tilewright_device::process::{answer, requests};
use tilewright_ir::sabotage;

use super::protocol::{Clock, Range, Reply, Request};
use crate::bytes;
use crate::cpu::Stopwatch;
use crate::finding::{Finding, Origin};
use crate::oracle::{Environment, Tally};
use crate::oracles::by_name;
use crate::session::{Runner, remember_panics};

/// The counter for how often the fault that is switched on was reached, in programs built with
/// faults.
pub(super) const REACHED: &str = "times that the fault was reached";

/// How many times longer than its processor time a slice may take.
const MAX_WAIT: u32 = 50;

/// Answers requests from standard input until its end. Then the process ends at once, even in the
/// middle of a case, so that no worker outlives its coordinator.
///
/// # Errors
/// Standard output is closed.
pub fn serve(environment: Environment) -> io::Result<()> {
    remember_panics();
    let mut worker = Worker { environment, runners: BTreeMap::new() };
    let mut out = io::stdout();
    for request in requests() {
        let reply = worker.answer(request, &mut out)?;
        answer(&mut out, &reply)?;
    }
    Ok(())
}

/// The runners created so far, by oracle.
struct Worker {
    environment: Environment,
    runners: BTreeMap<String, Box<dyn Runner>>,
}

impl Worker {
    /// The reply to a request; a trace writes further messages to `out` before.
    fn answer(&mut self, request: Request, out: &mut impl Write) -> io::Result<Reply> {
        let oracle = match &request {
            Request::About => return Ok(about()),
            Request::Run { range, .. } | Request::Trace { range } | Request::Draw { range } => &range.oracle,
            Request::Reduce { finding, .. } => &finding.oracle,
            Request::Replay { oracle, .. } | Request::Simpler { oracle, .. } => oracle,
        };
        // The runner is found before the request is taken apart, so that an unknown or unavailable oracle is answered
        // in one place for all kinds of requests.
        let runner = match self.runner(&oracle.clone()) {
            Ok(runner) => runner,
            Err(reply) => return Ok(*reply),
        };
        Ok(match request {
            // Answered above, without a runner.
            Request::About => about(),
            Request::Run { range, millis, clock } => run(runner, &range, Duration::from_millis(millis), clock),
            Request::Trace { range } => trace(runner, &range, out)?,
            Request::Draw { range } => Reply::Cases {
                cases: runner.draw(&bytes_of(&range, range.first)).into_iter().collect(),
                text: String::new(),
            },
            Request::Reduce { finding, attempts, millis } => {
                let until = Instant::now() + Duration::from_millis(millis);
                Reply::Reduced(runner.reduce_within(finding, attempts, Some(until)))
            }
            Request::Replay { case, .. } => match runner.replay(&case) {
                Ok(outcome) => Reply::Outcome(outcome),
                Err(why) => Reply::Refused { why: why.message },
            },
            Request::Simpler { case, .. } => Reply::Cases { cases: runner.simpler(&case), text: runner.text(&case) },
        })
    }

    /// The runner of an oracle, created at its first use; the reply if there is none.
    fn runner(&mut self, name: &str) -> Result<&mut dyn Runner, Box<Reply>> {
        if !self.runners.contains_key(name) {
            let entry = by_name(name)
                .ok_or_else(|| Box::new(Reply::Refused { why: format!("there is no oracle `{name}`") }))?;
            let made = (entry.make)(&self.environment).map_err(|why| Box::new(Reply::Skipped { why }))?;
            self.runners.insert(name.to_owned(), made);
        }
        match self.runners.get_mut(name) {
            Some(runner) => Ok(runner.as_mut()),
            None => unreachable!("it was made above"),
        }
    }
}

/// The solver and the devices of this machine.
fn about() -> Reply {
    let solver = tilewright_verify::solver::z3_version();
    let solver = solver.map_or_else(|error| error.to_string(), |version| format!("Z3 {version}"));
    let devices = tilewright_device::survey().devices;
    let device = |info: &tilewright_device::DeviceInfo| format!("{} ({})", info.label(), info.driver_version);
    Reply::About { solver, devices: devices.iter().map(device).collect() }
}

/// The byte string of a case of a range.
fn bytes_of(range: &Range, number: u64) -> Vec<u8> {
    bytes::of_case(range.seed, &range.oracle, number)
}

/// Adds the first finding of each kind of failure to `all`, with its origin. `first` is the number
/// of the first case of the batch.
fn keep(all: &mut Vec<Finding>, found: Vec<(usize, Finding)>, range: &Range, first: u64) {
    for (place, finding) in found {
        if !all.iter().any(|known| known.failure.what == finding.failure.what) {
            let number = first.saturating_add(u64::try_from(place).unwrap_or(0));
            all.push(Finding { origin: Some(Origin { seed: range.seed, number }), ..finding });
        }
    }
}

/// Checks batches until the end of the range or of the time; at least one batch, so that every
/// slice makes progress.
fn run(runner: &mut dyn Runner, range: &Range, limit: Duration, clock: Clock) -> Reply {
    let batch = u64::try_from(runner.batch()).unwrap_or(1).max(1);
    let (mut tally, mut findings, mut next) = (Tally::default(), Vec::new(), range.first);
    let (start, watch) = (Instant::now(), Stopwatch::start());
    let is_over = || match clock {
        Clock::Wall => start.elapsed() >= limit,
        // A worker that waits for something uses no processor time, so there is a limit on wall time as well.
        Clock::Processor => {
            Duration::from_micros(watch.micros()) >= limit || start.elapsed() >= limit.saturating_mul(MAX_WAIT)
        }
    };
    sabotage::reached();
    while next < range.end() && (next == range.first || !is_over()) {
        let end = next.saturating_add(batch).min(range.end());
        let inputs: Vec<Vec<u8>> = (next..end).map(|number| bytes_of(range, number)).collect();
        keep(&mut findings, runner.run(&inputs, &mut tally), range, next);
        next = end;
    }
    tally.cpu_micros = watch.micros();
    if sabotage::AVAILABLE {
        tally.count(REACHED, sabotage::reached());
    }
    Reply::Ran { done: next - range.first, batch, tally, findings }
}

/// Checks the cases one by one, announcing each.
fn trace(runner: &mut dyn Runner, range: &Range, out: &mut impl Write) -> io::Result<Reply> {
    let (mut tally, mut findings) = (Tally::default(), Vec::new());
    for number in range.first..range.end() {
        answer(out, &Reply::At { number })?;
        keep(&mut findings, runner.run(&[bytes_of(range, number)], &mut tally), range, number);
    }
    let batch = u64::try_from(runner.batch()).unwrap_or(1).max(1);
    Ok(Reply::Ran { done: range.count, batch, tally, findings })
}
