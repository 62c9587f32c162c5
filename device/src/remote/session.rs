//! The caller's side of a connection: workers, and the sessions and programs in them.

use std::borrow::Cow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::protocol::{Reply, Request};
use crate::error::DeviceError;
use crate::host::Processes;
use crate::info::{DeviceInfo, Survey};
use crate::plan::{LaunchPlan, RunOptions, RunOutput};
use crate::pool::ScratchStats;
use crate::process::{Launch, Lost, Worker};
use crate::program::BuildOptions;

/// Time limit for finding and opening devices. It is shorter than that of a build or a run, so that a driver that hangs at
/// its start is detected soon.
const START_UP: Duration = Duration::from_mins(1);

/// A connection to a worker, shared by the sessions and programs in it.
#[derive(Clone, Debug)]
pub(crate) struct Connection(Arc<Mutex<Inner>>);

#[derive(Debug)]
struct Inner {
    worker: Worker,
    patience: Duration,
    /// The error with which the worker was lost; every further request returns it.
    lost: Option<DeviceError>,
    /// Whether a kernel wrote out of bounds in the worker, whose memory may be damaged since.
    is_damaged: bool,
}

impl Connection {
    pub(crate) fn start(launch: &Launch, patience: Duration) -> Result<Self, DeviceError> {
        let worker = Worker::start(launch).map_err(|error| DeviceError::Process {
            how: "cannot be started".into(),
            detail: format!("{}: {error}", launch.program.display()),
        })?;
        Ok(Self(Arc::new(Mutex::new(Inner { worker, patience, lost: None, is_damaged: false }))))
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the worker can serve another session: it answers requests, and no kernel wrote out of bounds in it.
    pub(crate) fn is_sound(&self) -> bool {
        let inner = self.lock();
        inner.lost.is_none() && !inner.is_damaged
    }

    /// Sends a request and waits for its reply. [`Reply::Failed`] becomes an error.
    fn ask(&self, request: &Request<'_>) -> Result<Reply, DeviceError> {
        let mut inner = self.lock();
        if let Some(lost) = &inner.lost {
            return Err(lost.clone());
        }
        let patience = match request {
            Request::Survey | Request::Open { .. } => START_UP.min(inner.patience),
            _ => inner.patience,
        };
        let reply = inner.worker.send(request).and_then(|()| inner.worker.receive(patience, &|| false));
        match reply {
            Ok(Reply::Failed(error)) => {
                inner.is_damaged |= matches!(error, DeviceError::GuardTouched(_));
                Err(error)
            }
            Ok(reply) => Ok(reply),
            Err(lost) => Err(inner.lost.insert(process_error(&lost)).clone()),
        }
    }

    pub(crate) fn survey(&self) -> Result<Survey, DeviceError> {
        match self.ask(&Request::Survey)? {
            Reply::Survey(survey) => Ok(survey),
            other => Err(senseless(&other)),
        }
    }
}

/// The error for a lost worker, with the last line of its standard error that is not blank.
fn process_error(lost: &Lost) -> DeviceError {
    let stderr = if let Lost::Ended { stderr, .. } = lost { stderr.as_str() } else { "" };
    let detail = stderr.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or_default().to_owned();
    DeviceError::Process { how: lost.to_string(), detail }
}

/// The error for a reply of the wrong kind.
fn senseless(reply: &Reply) -> DeviceError {
    let detail = format!("{reply:?}").chars().take(80).collect();
    DeviceError::Process { how: "gave an answer to another question".into(), detail }
}

/// A session in a worker.
#[derive(Debug)]
pub(crate) struct Session {
    connection: Connection,
    number: u64,
    /// The pool of idle workers, to which the worker is returned when this session is dropped.
    processes: Arc<Processes>,
}

impl Session {
    pub(crate) fn open(
        connection: Connection,
        processes: Arc<Processes>,
        device: &DeviceInfo,
    ) -> Result<(Self, DeviceInfo), DeviceError> {
        match connection.ask(&Request::Open { device: device.clone() })? {
            Reply::Opened { session, info } => Ok((Self { connection, number: session, processes }, info)),
            other => Err(senseless(&other)),
        }
    }

    /// Opens the device in another worker than one that is lost or damaged.
    pub(crate) fn reopened(&self, device: &DeviceInfo) -> Result<crate::Session, DeviceError> {
        self.processes.open(device)
    }

    pub(crate) fn build(&self, source: &str, options: &BuildOptions) -> Result<Program, DeviceError> {
        let request = Request::Build { session: self.number, source: source.to_owned(), options: options.clone() };
        match self.connection.ask(&request)? {
            Reply::Built { program, correctly_rounded, kernels, log } => {
                let connection = self.connection.clone();
                Ok(Program { connection, number: program, correctly_rounded, kernels, log })
            }
            other => Err(senseless(&other)),
        }
    }

    pub(crate) fn run_programs(
        &self,
        programs: &[&Program],
        plan: &LaunchPlan,
        options: &RunOptions,
    ) -> Result<RunOutput, DeviceError> {
        if programs.iter().any(|program| !Arc::ptr_eq(&program.connection.0, &self.connection.0)) {
            return Err(DeviceError::Plan("a program was built in the process of another session".into()));
        }
        let programs = programs.iter().map(|program| program.number).collect();
        let (plan, options) = (Cow::Borrowed(plan), Cow::Borrowed(options));
        match self.connection.ask(&Request::Run { session: self.number, programs, plan, options })? {
            Reply::Ran(output) => Ok(output),
            other => Err(senseless(&other)),
        }
    }

    pub(crate) fn copy_nanoseconds(&self, bytes: u64) -> Result<u64, DeviceError> {
        match self.connection.ask(&Request::Copy { session: self.number, bytes })? {
            Reply::Nanoseconds(nanoseconds) => Ok(nanoseconds),
            other => Err(senseless(&other)),
        }
    }

    /// The statistics of the scratch pool; all zero if the worker is gone.
    pub(crate) fn scratch_stats(&self) -> ScratchStats {
        match self.connection.ask(&Request::ScratchStats { session: self.number }) {
            Ok(Reply::ScratchStats(stats)) => stats,
            _ => ScratchStats::default(),
        }
    }

    pub(crate) fn trim_scratch(&self) {
        // If the worker is gone, so are its textures.
        let _ = self.connection.ask(&Request::TrimScratch { session: self.number });
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if self.connection.ask(&Request::Close { session: self.number }).is_ok() {
            self.processes.give_back(self.connection.clone());
        }
    }
}

/// A program in a worker.
#[derive(Debug)]
pub(crate) struct Program {
    connection: Connection,
    number: u64,
    pub(crate) correctly_rounded: bool,
    pub(crate) kernels: Vec<String>,
    pub(crate) log: String,
}

impl Drop for Program {
    fn drop(&mut self) {
        // If the worker is gone, so is the program.
        let _ = self.connection.ask(&Request::Release { program: self.number });
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may fail")]

    use super::*;
    use crate::process;

    /// A connection to a worker that gives one reply to whatever it is asked, and lives on.
    fn replying(reply: &Reply) -> Connection {
        let octal: Vec<String> = process::frame(reply).unwrap().iter().map(|byte| format!("\\{byte:03o}")).collect();
        let script = format!("read x; printf '{}'; read x", octal.concat());
        let launch = Launch { program: "/bin/sh".into(), arguments: vec!["-c".into(), script], ..Launch::default() };
        Connection::start(&launch, START_UP).unwrap()
    }

    #[test]
    fn a_worker_in_which_a_kernel_wrote_out_of_bounds_serves_no_other_session() {
        let connection = replying(&Reply::Survey(Survey::default()));
        assert!(connection.survey().is_ok() && connection.is_sound());
        let connection = replying(&Reply::Failed(DeviceError::NoOpenCl));
        assert_eq!(connection.survey(), Err(DeviceError::NoOpenCl));
        assert!(connection.is_sound(), "a request that fails damages nothing");
        let written = DeviceError::GuardTouched(Vec::new());
        let connection = replying(&Reply::Failed(written.clone()));
        assert_eq!(connection.survey(), Err(written));
        assert!(!connection.is_sound());
    }
}
