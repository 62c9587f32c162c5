//! Which faults the oracles see: each fault is switched on in worker processes of its own, and the oracles go round until one
//! finds something.
//!
//! All faults get the same time, in turns that grow from round to round, so that what is seen easily is seen at once. A trial
//! without a fault is the control, and decoys change nothing: whoever finds something there is wrong.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tilewright_ir::sabotage::Row;

use super::link::{Launch, Link, Lost};
use super::protocol::{Range, Reply, Request};

/// The first turn of a trial; each next is twice as long.
const TURN: Duration = Duration::from_secs(2);
/// How long the first slice of an oracle takes; each next is twice as long.
const SLICE: Duration = Duration::from_millis(60);
/// The longest slice.
const LONGEST: Duration = Duration::from_secs(2);
/// How long a slice may go on after the end.
const GRACE: Duration = Duration::from_secs(10);
/// Most time for a trial in which nothing is to be found.
const ENOUGH: Duration = Duration::from_secs(60);
/// Oracles from the cheapest case to the dearest; those that are not here come last.
const CHEAP_FIRST: &[&str] = &[
    "roundtrip",
    "passes",
    "inverse",
    "read_layout",
    "read_graph",
    "read_script",
    "padding",
    "order",
    "planner",
    "judge_maps",
    "judge_layouts",
    "judge_programs",
    "certificate",
    "device",
];

/// What is to be tried.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Names of the oracles.
    pub oracles: Vec<&'static str>,
    /// The faults; the control is added.
    pub faults: Vec<&'static Row>,
    /// Seed of all cases.
    pub seed: u64,
    /// How long all of it may take.
    pub duration: Duration,
    /// How many workers.
    pub jobs: usize,
    /// How they are started, without the fault.
    pub launch: Launch,
}

/// A fault, or none, and what the oracles say.
#[derive(Clone, Debug)]
pub struct Trial {
    /// The fault; none is the control.
    pub fault: Option<&'static Row>,
    /// Who saw it.
    pub caught: Option<Catch>,
    /// Cases looked at, by all oracles.
    pub runs: u64,
    /// Time that was spent.
    pub spent: Duration,
    /// One for each oracle that is there.
    lanes: Vec<Lane>,
    slice: Duration,
    turn: Duration,
    busy: bool,
}

/// An oracle in a trial.
#[derive(Clone, Debug)]
struct Lane {
    oracle: &'static str,
    next: u64,
    absent: bool,
}

/// Who saw a fault.
#[derive(Clone, Debug)]
pub struct Catch {
    /// The oracle.
    pub oracle: &'static str,
    /// What it says is wrong.
    pub what: String,
    /// The details.
    pub detail: String,
    /// How many cases of that oracle it took.
    pub runs: u64,
    /// How long it took, the other oracles before included.
    pub after: Duration,
}

impl Trial {
    fn new(fault: Option<&'static Row>, oracles: &[&'static str]) -> Self {
        let mut lanes: Vec<Lane> = oracles.iter().map(|oracle| Lane { oracle, next: 0, absent: false }).collect();
        let place = |lane: &Lane| CHEAP_FIRST.iter().position(|&name| name == lane.oracle).unwrap_or(CHEAP_FIRST.len());
        lanes.sort_by_key(place);
        Self { fault, caught: None, runs: 0, spent: Duration::ZERO, lanes, slice: SLICE, turn: TURN, busy: false }
    }

    /// Whether something is to be found.
    pub fn is_fault(&self) -> bool {
        self.fault.is_some_and(|row| !row.is_decoy)
    }

    fn is_finished(&self, share: Duration) -> bool {
        self.caught.is_some() || self.lanes.iter().all(|lane| lane.absent) || (!self.is_fault() && self.spent >= share)
    }
}

/// Tries the control and every fault; `watch` is told how it stands now and then.
pub fn run(plan: &Plan, interrupted: &(dyn Fn() -> bool + Sync), watch: &mut dyn FnMut(&[Trial])) -> Vec<Trial> {
    let faults = std::iter::once(None).chain(plan.faults.iter().map(|row| Some(*row)));
    let trials: Vec<Trial> = faults.map(|fault| Trial::new(fault, &plan.oracles)).collect();
    let n = u32::try_from(trials.len()).unwrap_or(u32::MAX).max(1);
    let jobs = u32::try_from(plan.jobs).unwrap_or(1).max(1);
    let share = (plan.duration.saturating_mul(jobs) / n).min(ENOUGH);
    let bench = Bench { plan, share, end: Instant::now() + plan.duration, interrupted, trials: Mutex::new(trials) };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..jobs).map(|_| scope.spawn(|| bench.work())).collect();
        while threads.iter().any(|thread| !thread.is_finished()) {
            std::thread::sleep(Duration::from_millis(100));
            let trials = bench.trials().clone();
            watch(&trials);
        }
    });
    bench.trials.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// What the threads share.
struct Bench<'a> {
    plan: &'a Plan,
    /// Time of a trial in which nothing is to be found.
    share: Duration,
    end: Instant,
    interrupted: &'a (dyn Fn() -> bool + Sync),
    trials: Mutex<Vec<Trial>>,
}

impl Bench<'_> {
    fn trials(&self) -> MutexGuard<'_, Vec<Trial>> {
        self.trials.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives turns to trials, those with the least time first, until nothing is left to try.
    fn work(&self) {
        while !(self.interrupted)() && Instant::now() < self.end {
            let taken = {
                let mut trials = self.trials();
                let open = trials.iter_mut().enumerate().filter(|(_, trial)| !trial.is_finished(self.share));
                let free = open.filter(|(_, trial)| !trial.busy).min_by_key(|(_, trial)| trial.spent);
                free.map(|(at, trial)| {
                    trial.busy = true;
                    (at, trial.clone())
                })
            };
            let Some((at, mut trial)) = taken else {
                if self.trials().iter().all(|trial| !trial.busy) {
                    return;
                }
                std::thread::sleep(Duration::from_millis(20));
                continue;
            };
            let start = Instant::now();
            self.turn(&mut trial, start);
            trial.spent += start.elapsed();
            trial.busy = false;
            self.trials()[at] = trial;
        }
    }

    /// The oracles go round, in a worker of their own, until the turn is over or one finds something.
    fn turn(&self, trial: &mut Trial, start: Instant) {
        let mut launch = self.plan.launch.clone();
        if let Some(row) = trial.fault {
            launch.arguments.extend(["--fault".to_owned(), row.name.to_owned()]);
        }
        let limit = if trial.is_fault() { trial.turn } else { trial.turn.min(self.share.saturating_sub(trial.spent)) };
        let Ok(mut link) = Link::start(&launch) else { return };
        while start.elapsed() < limit {
            for at in 0..trial.lanes.len() {
                if Instant::now() >= self.end || (self.interrupted)() {
                    return;
                }
                if trial.lanes[at].absent {
                    continue;
                }
                trial.caught = self
                    .slice(&mut link, trial, at)
                    .map(|catch| Catch { after: trial.spent + start.elapsed(), ..catch });
                if trial.caught.is_some() {
                    return;
                }
            }
            trial.slice = (trial.slice * 2).min(LONGEST);
            if trial.lanes.iter().all(|lane| lane.absent) {
                return;
            }
        }
        trial.turn *= 2;
    }

    /// A slice of an oracle.
    fn slice(&self, link: &mut Link, trial: &mut Trial, at: usize) -> Option<Catch> {
        let lane = &mut trial.lanes[at];
        let range = Range {
            oracle: lane.oracle.to_owned(),
            seed: self.plan.seed,
            first: lane.next,
            count: u64::from(u32::MAX),
        };
        let request = Request::Run { range, millis: u64::try_from(trial.slice.as_millis()).unwrap_or(0) };
        let stop = || (self.interrupted)() || Instant::now() > self.end + GRACE;
        let catch = |what, detail, number: u64| Catch {
            oracle: lane.oracle,
            what,
            detail,
            runs: number.saturating_add(1),
            after: Duration::ZERO,
        };
        match link.ask(&request, &stop, &mut |_| {}) {
            Ok(Reply::Ran { done, findings, .. }) => {
                let first = findings.into_iter().min_by_key(|finding| finding.origin.map_or(0, |origin| origin.number));
                let caught = first.map(|finding| {
                    let number = finding.origin.map_or(0, |origin| origin.number);
                    catch(finding.failure.what, finding.failure.detail, number)
                });
                lane.next = lane.next.saturating_add(done);
                trial.runs += done;
                caught
            }
            Err(Lost::Worker(failure)) => Some(catch(failure.what, failure.detail, lane.next)),
            Err(Lost::Stopped) => None,
            Ok(_) => {
                lane.absent = true;
                None
            }
        }
    }
}
