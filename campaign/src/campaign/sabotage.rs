//! Measures which planted faults the oracles detect: each fault is switched on in worker processes
//! of its own, and the oracles take turns until one reports a failure.
//!
//! All times are processor time of the workers: on a machine that is busy with other work the measurement takes longer, and finds the
//! same. All faults get the same time, in turns that grow from round to round, so that easily detected
//! faults are detected early. Within a turn the next slice goes to the oracle with the least time
//! so far, including the expected cost of the slice: cheap oracles come first, and none starves.
//! Oracles whose cases never reached the code of the fault get less time, and so do those that do not
//! look at its part (`Area::oracles`). A trial without a fault is the control; decoys change no behaviour. A failure in either means that an oracle is wrong.
//!
//! A failure that also occurs without a fault does not count: the cases of each catch are checked
//! again by a worker without a fault, and kinds of failure that the control knows are discarded.
//! The control is marked as failed then.
//!
//! ```text
//! round 1   control 2 s | fault A 2 s | fault B: caught by `passes` after 0.3 s | decoy 2 s | ...
//! round 2   control 4 s | fault A: caught by `judge_maps` after 3.1 s | decoy 4 s | ...
//! ...       until every fault is caught or the time is over
//! ```
//!
//! Cases depend on the seed and their numbers alone, so an oracle always detects a fault at the same case. Which of several
//! oracles comes to its case first depends on the speed of the machine.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::faults::PlantedFault;

use super::link::{Launch, Lost, WorkerLink};
use super::protocol::{Clock, Range, Reply, Request};
use super::worker::REACHED;
use crate::finding::Finding;
use crate::oracle::Failure;

/// Duration of the first turn of a trial; it doubles from turn to turn.
const FIRST_TURN: Duration = Duration::from_secs(2);
/// Duration of an oracle's first slice; it doubles from slice to slice.
const FIRST_SLICE: Duration = Duration::from_millis(60);
/// The factor by which the time of an oracle counts more if its cases never reached the fault.
const MAX_PENALTY: u32 = 8;
/// Number of cases after which that factor applies in full; with fewer cases it grows linearly.
const FULL_PENALTY_CASES: u64 = 400;
/// The factor by which the time of an oracle counts more if it does not look at the part of the fault.
const OTHER_PART: u32 = 16;
/// Limit on the duration of a slice.
const MAX_SLICE: Duration = Duration::from_secs(2);
/// The least time that a slice counts for: processor time is measured in steps, and a slice below one would be free.
const LEAST_COST: Duration = Duration::from_millis(2);
/// Limit on the time for a decoy.
const DECOY_LIMIT: Duration = Duration::from_secs(15);
/// Limit on the time for the control.
const CONTROL_LIMIT: Duration = Duration::from_mins(1);
/// The expected cost of an oracle's first slice where it is much more than [`FIRST_SLICE`], because a
/// single case takes long. Later the cost of the last slice is used.
const INITIAL_COSTS: &[(&str, Duration)] = &[
    ("certificate", Duration::from_millis(120)),
    ("padding", Duration::from_millis(120)),
    ("order", Duration::from_millis(120)),
    ("judge_layouts", Duration::from_millis(180)),
    ("judge_maps", Duration::from_millis(240)),
    ("judge_programs", Duration::from_millis(480)),
    ("schedules", Duration::from_millis(240)),
    ("block_schedules", Duration::from_millis(480)),
    ("second_judge", Duration::from_millis(480)),
    ("recheck", Duration::from_millis(480)),
    ("lifting", Duration::from_millis(480)),
    ("device", Duration::from_millis(1200)),
];

/// The parameters of a measurement.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Names of the oracles.
    pub oracles: Vec<&'static str>,
    /// The faults; the control is added to them.
    pub faults: Vec<&'static PlantedFault>,
    /// Seed of all cases.
    pub seed: u64,
    /// Limit on the processor time of the workers of each job.
    pub duration: Duration,
    /// Number of workers.
    pub jobs: usize,
    /// How workers are started, without a fault.
    pub launch: Launch,
}

/// One fault or the control, and the result of the oracles.
#[derive(Clone, Debug)]
pub struct Trial {
    /// The fault; `None` for the control.
    pub fault: Option<&'static PlantedFault>,
    /// The first failure that counts. For the control: a failure that occurs without a fault.
    pub caught: Option<Catch>,
    /// Number of cases checked, over all oracles.
    pub runs: u64,
    /// Processor time spent on the trial.
    pub spent: Duration,
    /// One lane for each oracle.
    lanes: Vec<Lane>,
    turn: Duration,
    busy: bool,
}

/// The state of an oracle in a trial.
#[derive(Clone, Debug)]
struct Lane {
    oracle: &'static str,
    /// The factor by which its time counts.
    factor: u32,
    next: u64,
    absent: bool,
    /// Time spent on it.
    spent: Duration,
    /// How often its cases reached the code of the fault.
    reached: u64,
    /// Duration of its next slice.
    slice: Duration,
    /// Duration of its last slice, or the expected one of its first.
    cost: Duration,
}

impl Lane {
    fn new(oracle: &'static str, fault: Option<&PlantedFault>) -> Self {
        let is_other = fault.is_some_and(|row| !row.area.oracles().contains(&oracle));
        let factor = if is_other { OTHER_PART } else { 1 };
        let cost = INITIAL_COSTS.iter().find(|(name, _)| *name == oracle).map_or(FIRST_SLICE, |(_, cost)| *cost);
        Self { oracle, factor, next: 0, absent: false, spent: Duration::ZERO, reached: 0, slice: FIRST_SLICE, cost }
    }

    /// The time that counts for choosing the next oracle: time spent plus expected cost, multiplied
    /// by its factor, and by up to [`MAX_PENALTY`] if the fault was never reached and the oracle does not look at its part.
    fn weight(&self) -> Duration {
        let is_in_vain = self.reached == 0 && self.factor > 1;
        let cases = if is_in_vain { u32::try_from(self.next.min(FULL_PENALTY_CASES)).unwrap_or(0) } else { 0 };
        let all = u32::try_from(FULL_PENALTY_CASES).unwrap_or(1);
        (self.spent + self.cost) * self.factor * (all + cases * (MAX_PENALTY - 1)) / all
    }
}

/// The detection of a fault.
#[derive(Clone, Debug)]
pub struct Catch {
    /// The oracle.
    pub oracle: &'static str,
    /// The kind of failure it reported.
    pub what: String,
    /// The details.
    pub detail: String,
    /// Number of cases of that oracle until then.
    pub runs: u64,
    /// Processor time until then, including the other oracles.
    pub after: Duration,
    /// The cases to check again without the fault.
    range: Range,
    /// The time for that in milliseconds.
    millis: u64,
}

impl Catch {
    fn failure_kind(&self) -> FailureKind {
        (self.oracle, self.what.clone())
    }
}

impl Trial {
    fn new(fault: Option<&'static PlantedFault>, oracles: &[&'static str]) -> Self {
        let lanes = oracles.iter().map(|oracle| Lane::new(oracle, fault)).collect();
        Self { fault, caught: None, runs: 0, spent: Duration::ZERO, lanes, turn: FIRST_TURN, busy: false }
    }

    /// Whether it has a fault that should be detected.
    pub fn is_fault(&self) -> bool {
        self.fault.is_some_and(|row| !row.is_decoy)
    }

    /// The oracles whose cases reached the fault, with the number of cases and of times it was
    /// reached, the most frequent first.
    pub fn looks(&self) -> Vec<(&'static str, u64, u64)> {
        let there = self.lanes.iter().filter(|lane| lane.reached > 0);
        let mut looks: Vec<_> = there.map(|lane| (lane.oracle, lane.next, lane.reached)).collect();
        looks.sort_by_key(|(_, _, reached)| std::cmp::Reverse(*reached));
        looks
    }

    fn is_finished(&self, share: Duration, all: Duration) -> bool {
        let is_over = self.time_limit(share, all).is_some_and(|most| self.spent >= most);
        is_over || (self.fault.is_some() && self.caught.is_some()) || self.lanes.iter().all(|lane| lane.absent)
    }

    /// The time limit, if nothing should be detected.
    fn time_limit(&self, share: Duration, all: Duration) -> Option<Duration> {
        match self.fault {
            None => Some(CONTROL_LIMIT.min(share * 4).min(all / 5)),
            Some(row) => row.is_decoy.then(|| DECOY_LIMIT.min(share)),
        }
    }
}

/// A kind of failure: the oracle, and [`Failure::what`].
type FailureKind = (&'static str, String);

/// Tries the control and every fault. `watch` receives the trials every 100 ms.
pub fn run(plan: &Plan, interrupted: &(dyn Fn() -> bool + Sync), watch: &mut dyn FnMut(&[Trial])) -> Outcome {
    let faults = std::iter::once(None).chain(plan.faults.iter().map(|row| Some(*row)));
    let trials: Vec<Trial> = faults.map(|fault| Trial::new(fault, &plan.oracles)).collect();
    let n = u32::try_from(trials.len()).unwrap_or(u32::MAX).max(1);
    let jobs = u32::try_from(plan.jobs).unwrap_or(1).max(1);
    let share = plan.duration.saturating_mul(jobs) / n;
    let bench = Bench { plan, share, interrupted, trials: Mutex::new(trials), known: Mutex::default() };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..jobs).map(|_| scope.spawn(|| bench.work())).collect();
        while threads.iter().any(|thread| !thread.is_finished()) {
            std::thread::sleep(Duration::from_millis(100));
            let trials = bench.trials().clone();
            watch(&trials);
        }
    });
    let known = bench.known().values().cloned().collect();
    Outcome { trials: bench.trials.into_inner().unwrap_or_else(PoisonError::into_inner), known }
}

/// The result of a measurement.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The control first.
    pub trials: Vec<Trial>,
    /// Failures that occur without a fault and do not count, one for each kind.
    pub known: Vec<Catch>,
}

/// The state shared by the threads.
struct Bench<'a> {
    plan: &'a Plan,
    /// The time for a trial in which nothing should be detected.
    share: Duration,
    interrupted: &'a (dyn Fn() -> bool + Sync),
    trials: Mutex<Vec<Trial>>,
    /// The kinds of failure that occur without a fault.
    known: Mutex<BTreeMap<FailureKind, Catch>>,
}

impl Bench<'_> {
    fn trials(&self) -> MutexGuard<'_, Vec<Trial>> {
        self.trials.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The loop of a thread: gives a turn to the trial with the least time, until none is left.
    fn work(&self) {
        let mut used = Duration::ZERO;
        while !(self.interrupted)() && used < self.plan.duration {
            let taken = {
                let mut trials = self.trials();
                let open = trials
                    .iter_mut()
                    .enumerate()
                    .filter(|(_, trial)| !trial.is_finished(self.share, self.plan.duration));
                let free = open.filter(|(_, trial)| !trial.busy).min_by_key(|(_, trial)| trial.spent);
                // The turn works on a copy, so that the lock is not held for its seconds. `busy` keeps other threads off
                // the trial meanwhile.
                free.map(|(at, trial)| {
                    trial.busy = true;
                    (at, trial.clone())
                })
            };
            let Some((at, mut trial)) = taken else {
                // A busy trial may need another turn, and its turn may withdraw the catch of another trial, so the thread
                // ends only when no trial is busy.
                if self.trials().iter().all(|trial| !trial.busy) {
                    return;
                }
                std::thread::sleep(Duration::from_millis(20));
                continue;
            };
            let before = trial.spent;
            self.turn(&mut trial, self.plan.duration.saturating_sub(used));
            used += trial.spent.saturating_sub(before);
            trial.busy = false;
            let mut trials = self.trials();
            trials[at] = trial;
            // The turn may have found that a kind of failure occurs without a fault, after this or another trial
            // counted it as a catch.
            self.withdraw(&mut trials);
        }
    }

    /// Discards catches that also occur without a fault.
    fn withdraw(&self, trials: &mut [Trial]) {
        let known = self.known();
        for trial in trials {
            if trial.fault.is_none() {
                trial.caught = trial.caught.take().or_else(|| known.values().next().cloned());
            } else if trial.caught.as_ref().is_some_and(|catch| known.contains_key(&catch.failure_kind())) {
                trial.caught = None;
            }
        }
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<FailureKind, Catch>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One turn of a trial: its oracles run slices in a worker of their own, until the turn is over, `most` is used up,
    /// or one of them reports a failure.
    fn turn(&self, trial: &mut Trial, most: Duration) {
        let mut launch = self.plan.launch.clone();
        if let Some(row) = trial.fault {
            launch.arguments.extend(["--fault".to_owned(), row.name.to_owned()]);
        }
        let limit = trial
            .time_limit(self.share, self.plan.duration)
            .map_or(trial.turn, |most| trial.turn.min(most.saturating_sub(trial.spent)))
            .min(most);
        let end = trial.spent + limit;
        // A fault is switched on for a whole process by its command line, so every turn has a worker of its own.
        let Ok(mut link) = WorkerLink::start(&launch) else {
            // The turn counts, so that a measurement whose workers cannot be started ends.
            trial.spent += trial.turn;
            return;
        };
        while trial.spent < end {
            if (self.interrupted)() {
                return;
            }
            let there = trial.lanes.iter().enumerate().filter(|(_, lane)| !lane.absent);
            let Some((at, _)) = there.min_by_key(|(_, lane)| lane.weight()) else { return };
            let (caught, cost) = self.slice(&mut link, trial, at);
            let lane = &mut trial.lanes[at];
            lane.cost = cost;
            lane.spent += cost;
            lane.slice = (lane.slice * 2).min(MAX_SLICE);
            trial.spent += cost;
            for catch in caught {
                let catch = Catch { after: trial.spent, ..catch };
                // The control goes on after a failure: every kind that it meets is one that does not count elsewhere.
                if trial.fault.is_none() {
                    self.known().entry(catch.failure_kind()).or_insert(catch);
                } else if !self.is_without_fault(&catch) {
                    trial.caught = Some(catch);
                    return;
                }
            }
            if link.is_gone() {
                return;
            }
        }
        // Only a turn that used all its time doubles the next one; a turn that lost its worker does not.
        trial.turn *= 2;
    }

    /// Whether a failure also occurs without a fault: its kind is known, or the same cases fail in
    /// the same way. The control is marked then.
    fn is_without_fault(&self, catch: &Catch) -> bool {
        if self.known().contains_key(&catch.failure_kind()) {
            return true;
        }
        let Ok(mut link) = WorkerLink::start(&self.plan.launch) else { return false };
        let request = Request::Run { range: catch.range.clone(), millis: catch.millis, clock: Clock::Processor };
        let is_same = match link.ask(&request, &|| (self.interrupted)(), &mut |_| {}) {
            Ok(Reply::Ran { findings, .. }) => findings.iter().any(|finding| finding.failure.what == catch.what),
            Err(Lost::Worker(failure)) => failure.what == catch.what,
            Err(Lost::Stopped) | Ok(_) => false,
        };
        if is_same {
            self.known().insert(catch.failure_kind(), catch.clone());
        }
        is_same
    }

    /// Runs a slice of an oracle; returns its failures in the order of the cases, and its processor time. The time of a worker that
    /// died is not known, so wall time counts instead.
    fn slice(&self, link: &mut WorkerLink, trial: &mut Trial, at: usize) -> (Vec<Catch>, Duration) {
        let lane = &mut trial.lanes[at];
        let range = Range {
            oracle: lane.oracle.to_owned(),
            seed: self.plan.seed,
            first: lane.next,
            count: u64::from(u32::MAX),
        };
        let millis = u64::try_from(lane.slice.as_millis()).unwrap_or(0);
        let request = Request::Run { range: range.clone(), millis, clock: Clock::Processor };
        let start = Instant::now();
        let stop = || (self.interrupted)();
        let catch = |failure: Failure, number: u64, range: Range| Catch {
            oracle: lane.oracle,
            what: failure.what,
            detail: failure.detail,
            runs: number.saturating_add(1),
            after: Duration::ZERO,
            range,
            // The same cases are run again with twice the time, because the first run may have been
            // at its limit.
            millis: millis.saturating_mul(2),
        };
        match link.ask(&request, &stop, &mut |_| {}) {
            Ok(Reply::Ran { done, mut findings, batch, tally }) => {
                lane.reached += tally.counts.get(REACHED).copied().unwrap_or(0);
                let number = |finding: &Finding| finding.origin.map_or(0, |origin| origin.number);
                findings.sort_by_key(number);
                let again = |number: u64| {
                    let first = number - (number.saturating_sub(range.first)) % batch.max(1);
                    range.part(first, first + batch.max(1))
                };
                let caught = findings.into_iter().map(|finding| {
                    let number = number(&finding);
                    catch(finding.failure, number, again(number))
                });
                let caught = caught.collect();
                lane.next = lane.next.saturating_add(done);
                trial.runs += done;
                (caught, Duration::from_micros(tally.cpu_micros).max(LEAST_COST))
            }
            Err(Lost::Worker(failure)) => {
                let caught = catch(failure, lane.next, range.clone());
                // The case is unknown. If the same happens without the fault, the oracle cannot be
                // used here.
                lane.absent = true;
                (vec![caught], start.elapsed())
            }
            Err(Lost::Stopped) => (Vec::new(), Duration::ZERO),
            Ok(_) => {
                lane.absent = true;
                (Vec::new(), LEAST_COST)
            }
        }
    }
}
