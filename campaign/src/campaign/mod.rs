//! Campaigns: oracles share the time of several worker processes; failures are reduced and written
//! to files.
//!
//! ```text
//! coordinator ──┬─ thread ── worker process: Request ──> Runner ──> Reply     (protocol: JSON lines over pipes)
//!   schedule    ├─ thread ── worker process
//!   found       └─ ...        dies, hangs, needs too much memory: the case is found, another
//!   process continues
//! ```
//!
//! - [`schedule`] decides which cases of which oracle come next: slices of a quarter of a second,
//!   for the oracle with the least time so far. A case depends only on the seed, the oracle and its
//!   number, so findings do not depend on the number of workers.
//! - [`protocol`] defines the messages, [`worker`] is the worker's side, [`link`] the coordinator's
//!   view of the process.
//! - [`driver`] is the coordinator's thread for a worker; [`rescue`] finds the case at which a
//!   worker died and reduces it; [`files`] writes.
//! - [`sabotage`] switches planted faults on, and measures which of them the oracles detect.

pub mod driver;
pub mod files;
pub mod link;
pub mod protocol;
pub mod rescue;
pub mod sabotage;
pub mod schedule;
pub mod worker;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use self::driver::Driver;
use self::link::{Launch, WorkerLink};
use self::protocol::{Reply, Request};
use self::schedule::{Lane, Schedule};
use super::finding::Finding;

/// The parameters of a campaign.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Names of the oracles.
    pub oracles: Vec<&'static str>,
    /// The seed of all cases.
    pub seed: u64,
    /// The duration. Without one, `runs` has to be given.
    pub duration: Option<Duration>,
    /// Limit on the cases of each oracle.
    pub runs: Option<u64>,
    /// The number of workers.
    pub jobs: usize,
    /// How workers are started.
    pub launch: Launch,
    /// The folder for findings.
    pub out: PathBuf,
    /// Options appended to the replay command of a finding.
    pub replay_options: String,
}

/// A kind of failure that occurred.
#[derive(Clone, Debug)]
pub struct Found {
    /// Number of slices with a failure of this kind.
    pub times: u64,
    /// The finding, reduced as far as possible so far.
    pub finding: Finding,
    /// The file, once it is written.
    pub file: Option<PathBuf>,
}

/// The progress of a campaign, and at its end the result.
#[derive(Clone, Debug)]
pub struct Standing {
    /// One lane for each oracle.
    pub lanes: Vec<Lane>,
    /// The kinds of failure, by oracle and [`Failure::what`](crate::Failure::what).
    pub found: BTreeMap<(String, String), Found>,
    /// The running time so far.
    pub elapsed: Duration,
    /// Name and version of the solver, or `unknown`.
    pub solver: String,
    /// Name and driver version of each device.
    pub devices: Vec<String>,
    /// Whether the user interrupted it.
    pub interrupted: bool,
    /// Errors of the campaign itself, such as a worker that could not be started.
    pub faults: Vec<String>,
    /// Findings that could not be written to the folder for them.
    pub unwritten: Vec<String>,
}

/// The state shared by the threads of the coordinator.
pub(crate) struct Shared<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) start: Instant,
    pub(crate) interrupted: &'a (dyn Fn() -> bool + Sync),
    state: Mutex<State>,
}

/// The part of it that changes, guarded by a lock.
pub(crate) struct State {
    pub(crate) schedule: Schedule,
    pub(crate) found: BTreeMap<(String, String), Found>,
    pub(crate) faults: Vec<String>,
    pub(crate) unwritten: Vec<String>,
}

impl Shared<'_> {
    /// Locks the state. A thread that panicked leaves it usable, so poisoning is ignored.
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The end of the campaign, if it has one.
    pub(crate) fn end(&self) -> Option<Instant> {
        self.plan.duration.map(|duration| self.start + duration)
    }

    /// Whether the user interrupted the campaign.
    pub(crate) fn is_interrupted(&self) -> bool {
        (self.interrupted)()
    }

    /// Whether no new slice may be started.
    pub(crate) fn is_over(&self) -> bool {
        self.is_interrupted() || self.end().is_some_and(|end| Instant::now() >= end)
    }
}

/// Interval between calls of `watch`.
const WATCH: Duration = Duration::from_millis(100);

/// Runs a campaign to its end or until `interrupted` returns true. `watch` receives the progress
/// every 100 ms.
///
/// # Errors
/// No worker process can be started.
pub fn run(
    plan: &Plan,
    interrupted: &(dyn Fn() -> bool + Sync),
    watch: &mut dyn FnMut(&Standing),
) -> Result<Standing, String> {
    let mut first =
        WorkerLink::start(&plan.launch).map_err(|error| format!("cannot start a worker process: {error}"))?;
    let (solver, devices) = match first.ask(&Request::About, interrupted, &mut |_| {}) {
        Ok(Reply::About { solver, devices }) => (solver, devices),
        // Querying broken drivers may kill the worker; the campaign continues without the
        // information.
        Ok(_) | Err(_) => ("unknown".to_owned(), vec!["unknown: the survey of devices gave no answer".to_owned()]),
    };
    drop(first);
    let schedule = Schedule::new(&plan.oracles, plan.seed, plan.runs);
    let state = State { schedule, found: BTreeMap::new(), faults: Vec::new(), unwritten: Vec::new() };
    let state = Mutex::new(state);
    let shared = Shared { plan, start: Instant::now(), interrupted, state };
    let standing = || {
        let state = shared.state();
        Standing {
            lanes: state.schedule.lanes.clone(),
            found: state.found.clone(),
            elapsed: shared.start.elapsed(),
            solver: solver.clone(),
            devices: devices.clone(),
            interrupted: interrupted(),
            faults: state.faults.clone(),
            unwritten: state.unwritten.clone(),
        }
    };
    std::thread::scope(|scope| {
        let drivers: Vec<_> = (0..plan.jobs.max(1)).map(|_| scope.spawn(|| Driver::new(&shared).run())).collect();
        while drivers.iter().any(|driver| !driver.is_finished()) {
            std::thread::sleep(WATCH);
            watch(&standing());
        }
    });
    Ok(standing())
}
