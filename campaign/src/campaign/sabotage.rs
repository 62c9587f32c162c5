//! Which faults the oracles see: each fault is switched on in worker processes of its own, and the oracles go round until one
//! finds something.
//!
//! All faults get the same time, in turns that grow from round to round, so that what is seen easily is seen at once. Within a
//! turn the next slice is that of the oracle with the least time spent, the cost of the slice included: cheap oracles look first,
//! and none waits for ever; but those that never came to the broken place, and so cannot see it, get less. A trial without a
//! fault is the control, and decoys change nothing: whoever finds something there is wrong.
//!
//! What is found without a fault too is no catch: the case of each catch is looked at again by a worker in which nothing is
//! broken, and a way to fail that the control knows counts for nobody. The control is flagged then.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::faults::Fault;

use super::link::{Launch, Link, Lost};
use super::protocol::{Range, Reply, Request};
use super::worker::REACHED;
use crate::finding::Finding;
use crate::oracle::Failure;

/// The first turn of a trial; each next is twice as long.
const TURN: Duration = Duration::from_secs(2);
/// How long the first slice of an oracle takes; each next is twice as long.
const SLICE: Duration = Duration::from_millis(60);
/// How much less time an oracle gets that never came to the place of the fault, at most.
const IMPATIENCE: u32 = 8;
/// From so many cases on; of fewer, as many as there were.
const CONVINCED: u64 = 400;
/// The longest slice.
const LONGEST: Duration = Duration::from_secs(2);
/// How long a slice may go on after the end.
const GRACE: Duration = Duration::from_secs(10);
/// Most time for a decoy.
const ENOUGH: Duration = Duration::from_secs(15);
/// Most time for the control.
const CONTROL: Duration = Duration::from_mins(1);
/// What the first slice of an oracle costs, where that is much more than [`SLICE`]; after it, what the last one took.
const DEAR: &[(&str, Duration)] = &[
    ("certificate", Duration::from_millis(120)),
    ("padding", Duration::from_millis(120)),
    ("order", Duration::from_millis(120)),
    ("judge_layouts", Duration::from_millis(180)),
    ("judge_maps", Duration::from_millis(240)),
    ("judge_programs", Duration::from_millis(480)),
    ("device", Duration::from_millis(1200)),
];

/// What is to be tried.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Names of the oracles.
    pub oracles: Vec<&'static str>,
    /// The faults; the control is added.
    pub faults: Vec<&'static Fault>,
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
    pub fault: Option<&'static Fault>,
    /// Who saw it. Of the control: its first finding.
    pub caught: Option<Catch>,
    /// Cases looked at, by all oracles.
    pub runs: u64,
    /// Time that was spent.
    pub spent: Duration,
    /// One for each oracle that is there.
    lanes: Vec<Lane>,
    turn: Duration,
    busy: bool,
}

/// An oracle in a trial.
#[derive(Clone, Debug)]
struct Lane {
    oracle: &'static str,
    next: u64,
    absent: bool,
    /// Time that was spent on it.
    spent: Duration,
    /// How often it came to the place of the fault.
    reached: u64,
    /// How long its next slice is to be.
    slice: Duration,
    /// How long its last slice took, or what its first one should.
    cost: Duration,
}

impl Lane {
    fn new(oracle: &'static str) -> Self {
        let cost = DEAR.iter().find(|(name, _)| *name == oracle).map_or(SLICE, |(_, cost)| *cost);
        Self { oracle, next: 0, absent: false, spent: Duration::ZERO, reached: 0, slice: SLICE, cost }
    }

    /// The time spent on it as it counts: who never came to the place of the fault waits.
    fn weight(&self) -> Duration {
        let cases = if self.reached == 0 { u32::try_from(self.next.min(CONVINCED)).unwrap_or(0) } else { 0 };
        let all = u32::try_from(CONVINCED).unwrap_or(1);
        (self.spent + self.cost) * (all + cases * (IMPATIENCE - 1)) / all
    }
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
    /// The cases to look at again.
    range: Range,
    /// For how long.
    millis: u64,
}

impl Catch {
    fn way(&self) -> Way {
        (self.oracle, self.what.clone())
    }
}

impl Trial {
    fn new(fault: Option<&'static Fault>, oracles: &[&'static str]) -> Self {
        let lanes = oracles.iter().map(|oracle| Lane::new(oracle)).collect();
        Self { fault, caught: None, runs: 0, spent: Duration::ZERO, lanes, turn: TURN, busy: false }
    }

    /// Whether something is to be found.
    pub fn is_fault(&self) -> bool {
        self.fault.is_some_and(|row| !row.is_decoy)
    }

    /// The oracles that came to the place of the fault: name, cases, how often; those that came most often first.
    pub fn looks(&self) -> Vec<(&'static str, u64, u64)> {
        let there = self.lanes.iter().filter(|lane| lane.reached > 0);
        let mut looks: Vec<_> = there.map(|lane| (lane.oracle, lane.next, lane.reached)).collect();
        looks.sort_by_key(|(_, _, reached)| std::cmp::Reverse(*reached));
        looks
    }

    fn is_finished(&self, share: Duration, all: Duration) -> bool {
        let is_over = self.most(share, all).is_some_and(|most| self.spent >= most);
        is_over || (self.fault.is_some() && self.caught.is_some()) || self.lanes.iter().all(|lane| lane.absent)
    }

    /// Most time, if nothing is to be found.
    fn most(&self, share: Duration, all: Duration) -> Option<Duration> {
        match self.fault {
            None => Some(CONTROL.min(share * 4).min(all / 5)),
            Some(row) => row.is_decoy.then(|| ENOUGH.min(share)),
        }
    }
}

/// A way to fail: the oracle, and what it says is wrong.
type Way = (&'static str, String);

/// Tries the control and every fault; `watch` is told how it stands now and then.
pub fn run(plan: &Plan, interrupted: &(dyn Fn() -> bool + Sync), watch: &mut dyn FnMut(&[Trial])) -> Outcome {
    let faults = std::iter::once(None).chain(plan.faults.iter().map(|row| Some(*row)));
    let trials: Vec<Trial> = faults.map(|fault| Trial::new(fault, &plan.oracles)).collect();
    let n = u32::try_from(trials.len()).unwrap_or(u32::MAX).max(1);
    let jobs = u32::try_from(plan.jobs).unwrap_or(1).max(1);
    let share = plan.duration.saturating_mul(jobs) / n;
    let bench = Bench {
        plan,
        share,
        end: Instant::now() + plan.duration,
        interrupted,
        trials: Mutex::new(trials),
        known: Mutex::default(),
    };
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

/// What came out.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The control first.
    pub trials: Vec<Trial>,
    /// What is found where nothing is broken, and counts for nobody: one for each way to fail.
    pub known: Vec<Catch>,
}

/// What the threads share.
struct Bench<'a> {
    plan: &'a Plan,
    /// Time of a trial in which nothing is to be found.
    share: Duration,
    end: Instant,
    interrupted: &'a (dyn Fn() -> bool + Sync),
    trials: Mutex<Vec<Trial>>,
    /// Ways to fail without a fault.
    known: Mutex<BTreeMap<Way, Catch>>,
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
                let open = trials
                    .iter_mut()
                    .enumerate()
                    .filter(|(_, trial)| !trial.is_finished(self.share, self.plan.duration));
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
            let mut trials = self.trials();
            trials[at] = trial;
            self.withdraw(&mut trials);
        }
    }

    /// What is found without a fault too is no catch.
    fn withdraw(&self, trials: &mut [Trial]) {
        let known = self.known();
        for trial in trials {
            if trial.fault.is_none() {
                trial.caught = trial.caught.take().or_else(|| known.values().next().cloned());
            } else if trial.caught.as_ref().is_some_and(|catch| known.contains_key(&catch.way())) {
                trial.caught = None;
            }
        }
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<Way, Catch>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The oracles take turns, in a worker of their own, until the turn is over or one finds something.
    fn turn(&self, trial: &mut Trial, start: Instant) {
        let mut launch = self.plan.launch.clone();
        if let Some(row) = trial.fault {
            launch.arguments.extend(["--fault".to_owned(), row.name.to_owned()]);
        }
        let limit = trial
            .most(self.share, self.plan.duration)
            .map_or(trial.turn, |most| trial.turn.min(most.saturating_sub(trial.spent)));
        let Ok(mut link) = Link::start(&launch) else { return };
        while start.elapsed() < limit {
            if Instant::now() >= self.end || (self.interrupted)() {
                return;
            }
            let there = trial.lanes.iter().enumerate().filter(|(_, lane)| !lane.absent);
            let Some((at, _)) = there.min_by_key(|(_, lane)| lane.weight()) else { return };
            let before = Instant::now();
            let caught = self.slice(&mut link, trial, at);
            let lane = &mut trial.lanes[at];
            lane.cost = before.elapsed();
            lane.spent += lane.cost;
            lane.slice = (lane.slice * 2).min(LONGEST);
            for catch in caught {
                let catch = Catch { after: trial.spent + start.elapsed(), ..catch };
                if trial.fault.is_none() {
                    self.known().entry(catch.way()).or_insert(catch);
                } else if !self.is_without_fault(&catch) {
                    trial.caught = Some(catch);
                    return;
                }
            }
            if link.is_gone() {
                return;
            }
        }
        trial.turn *= 2;
    }

    /// Whether this is found where nothing is broken: known already, or found in the same case. The control is flagged then.
    fn is_without_fault(&self, catch: &Catch) -> bool {
        if self.known().contains_key(&catch.way()) {
            return true;
        }
        let Ok(mut link) = Link::start(&self.plan.launch) else { return false };
        let request = Request::Run { range: catch.range.clone(), millis: catch.millis };
        let is_same = match link.ask(&request, &|| (self.interrupted)(), &mut |_| {}) {
            Ok(Reply::Ran { findings, .. }) => findings.iter().any(|finding| finding.failure.what == catch.what),
            Err(Lost::Worker(failure)) => failure.what == catch.what,
            Err(Lost::Stopped) | Ok(_) => false,
        };
        if is_same {
            self.known().insert(catch.way(), catch.clone());
        }
        is_same
    }

    /// A slice of an oracle, and what it found, in the order of cases.
    fn slice(&self, link: &mut Link, trial: &mut Trial, at: usize) -> Vec<Catch> {
        let lane = &mut trial.lanes[at];
        let range = Range {
            oracle: lane.oracle.to_owned(),
            seed: self.plan.seed,
            first: lane.next,
            count: u64::from(u32::MAX),
        };
        let millis = u64::try_from(lane.slice.as_millis()).unwrap_or(0);
        let request = Request::Run { range: range.clone(), millis };
        let stop = || (self.interrupted)() || Instant::now() > self.end + GRACE;
        let catch = |failure: Failure, number: u64, range: Range| Catch {
            oracle: lane.oracle,
            what: failure.what,
            detail: failure.detail,
            runs: number.saturating_add(1),
            after: Duration::ZERO,
            range,
            // The same cases again, and twice the time for them.
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
                caught
            }
            Err(Lost::Worker(failure)) => {
                let caught = catch(failure, lane.next, range.clone());
                // Nobody knows which case it was: if this happens without a fault too, the oracle is of no use here.
                lane.absent = true;
                vec![caught]
            }
            Err(Lost::Stopped) => Vec::new(),
            Ok(_) => {
                lane.absent = true;
                Vec::new()
            }
        }
    }
}
