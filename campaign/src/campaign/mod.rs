//! Campaigns: oracles share the time of some worker processes; what fails is made smaller and written to files.
//!
//! ```text
//! coordinator ──┬─ thread ── worker process: Request ──> Runner ──> Reply     (protocol: JSON lines over pipes)
//!   schedule    ├─ thread ── worker process
//!   found       └─ ...        ends, hangs, needs too much memory: the case is found, another process goes on
//! ```
//!
//! - [`schedule`] says which cases of which oracle are next: slices of a quarter of a second, of the oracle on which the least
//!   time was spent. A case depends on the seed, the oracle and its number alone, so what is bad does not depend on the workers.
//! - [`protocol`] is what is said, [`worker`] the worker's side, [`link`] the process as the coordinator has it.
//! - [`driver`] is the coordinator's thread for a worker; [`rescue`] finds the case at which a worker ended, and makes such
//!   cases smaller; [`files`] writes.
//! - [`sabotage`] switches faults on, and measures which the oracles see.

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
use self::link::{Launch, Link};
use self::protocol::{Reply, Request};
use self::schedule::{Lane, Schedule};
use super::finding::Finding;

/// What a campaign is to do.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Names of the oracles.
    pub oracles: Vec<&'static str>,
    /// Seed of all cases.
    pub seed: u64,
    /// How long it lasts; without an end it needs `runs`.
    pub duration: Option<Duration>,
    /// Most cases of each oracle.
    pub runs: Option<u64>,
    /// How many workers.
    pub jobs: usize,
    /// How they are started.
    pub launch: Launch,
    /// Where findings are written.
    pub out: PathBuf,
    /// What is added to the command that replays a finding.
    pub replay_options: String,
}

/// A way to fail that came up.
#[derive(Clone, Debug)]
pub struct Found {
    /// How many slices had such a failure.
    pub times: u64,
    /// The finding, as small as it was made so far.
    pub finding: Finding,
    /// Its file, once it is written.
    pub file: Option<PathBuf>,
}

/// How a campaign stands, and at its end how it went.
#[derive(Clone, Debug)]
pub struct Standing {
    /// One for each oracle.
    pub lanes: Vec<Lane>,
    /// What fails, by oracle and by what is wrong.
    pub found: BTreeMap<(String, String), Found>,
    /// How long it has run.
    pub elapsed: Duration,
    /// The solver, once a worker said it.
    pub solver: String,
    /// The devices.
    pub devices: Vec<String>,
    /// Somebody ended it.
    pub interrupted: bool,
    /// What could not be done, such as a file that could not be written.
    pub faults: Vec<String>,
}

/// What the threads share.
pub(crate) struct Shared<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) start: Instant,
    pub(crate) interrupted: &'a (dyn Fn() -> bool + Sync),
    state: Mutex<State>,
}

/// What changes.
pub(crate) struct State {
    pub(crate) schedule: Schedule,
    pub(crate) found: BTreeMap<(String, String), Found>,
    pub(crate) faults: Vec<String>,
}

impl Shared<'_> {
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// When the time is over.
    pub(crate) fn end(&self) -> Option<Instant> {
        self.plan.duration.map(|duration| self.start + duration)
    }

    /// Whether somebody wants it to end.
    pub(crate) fn is_interrupted(&self) -> bool {
        (self.interrupted)()
    }

    /// Whether nothing new is to be begun.
    pub(crate) fn is_over(&self) -> bool {
        self.is_interrupted() || self.end().is_some_and(|end| Instant::now() >= end)
    }
}

/// How often those who watch are told.
const WATCH: Duration = Duration::from_millis(100);

/// Runs a campaign to its end, or until `interrupted`; `watch` is told how it stands now and then.
///
/// # Errors
/// No worker can be started.
pub fn run(
    plan: &Plan,
    interrupted: &(dyn Fn() -> bool + Sync),
    watch: &mut dyn FnMut(&Standing),
) -> Result<Standing, String> {
    let mut first = Link::start(&plan.launch).map_err(|error| format!("cannot start a worker process: {error}"))?;
    let (solver, devices) = match first.ask(&Request::About, interrupted, &mut |_| {}) {
        Ok(Reply::About { solver, devices }) => (solver, devices),
        // A survey of broken drivers may end the process; that is no end of the campaign.
        Ok(_) | Err(_) => ("unknown".to_owned(), vec!["unknown: the survey of devices gave no answer".to_owned()]),
    };
    drop(first);
    let schedule = Schedule::new(&plan.oracles, plan.seed, plan.runs);
    let state = Mutex::new(State { schedule, found: BTreeMap::new(), faults: Vec::new() });
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
