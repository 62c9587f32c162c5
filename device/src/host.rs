//! Where drivers run: in this process, or in one of their own that they may take down.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::error::DeviceError;
use crate::info::{self, DeviceInfo, Survey};
use crate::process::Launch;
use crate::remote::{self, Connection};
use crate::session::Session;

/// How long a build or a run may take in a process of its own, if nothing else is said: ten minutes. OpenCL cannot stop a
/// launch that never ends, but a process can be ended.
pub const PATIENCE: Duration = Duration::from_mins(10);

/// Where drivers run.
#[derive(Clone, Debug, Default)]
pub enum Isolation {
    /// In this process. A driver that crashes, or a kernel that writes far out of bounds, takes it down.
    #[default]
    InProcess,
    /// In a worker process; what happens to it becomes a [`DeviceError::Process`].
    Process {
        /// A program that calls [`serve`](crate::serve): the caller's own, as a rule.
        program: PathBuf,
        /// The arguments with which it does.
        arguments: Vec<String>,
        /// How long a build or a run may take before the worker is ended; [`PATIENCE`] if there is no reason for another.
        patience: Duration,
    },
}

/// Finds devices and opens them as an [`Isolation`] says. Clones share their worker processes.
///
/// Every session that is open has a worker of its own, so that a crash is that of its own driver. A worker whose session
/// was closed is used again: starting the drivers up can take longer than running a kernel.
#[derive(Clone, Debug, Default)]
pub struct DeviceHost {
    /// None for drivers in this process.
    processes: Option<Arc<Processes>>,
}

/// The workers that no session uses, and how another is started.
#[derive(Debug)]
pub(crate) struct Processes {
    launch: Launch,
    patience: Duration,
    idle: Mutex<Vec<Connection>>,
}

impl Processes {
    fn take(&self) -> Result<Connection, DeviceError> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        idle.map_or_else(|| Connection::start(&self.launch, self.patience), Ok)
    }

    /// Keeps a worker for the next session.
    pub(crate) fn give_back(&self, connection: Connection) {
        if connection.is_alive() {
            self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
        }
    }
}

impl DeviceHost {
    /// A host of this kind. No process is started before the first question.
    pub fn new(isolation: Isolation) -> Self {
        let Isolation::Process { program, arguments, patience } = isolation else {
            return Self::default();
        };
        let launch = Launch { program, arguments, ..Launch::default() };
        Self { processes: Some(Arc::new(Processes { launch, patience, idle: Mutex::default() })) }
    }

    /// Which devices there are, and which drivers failed. A worker that was lost while it asked the drivers is one of the
    /// failures.
    pub fn survey(&self) -> Survey {
        let Some(processes) = &self.processes else { return info::survey() };
        let asked = processes.take().and_then(|connection| {
            let survey = connection.survey()?;
            processes.give_back(connection);
            Ok(survey)
        });
        // Opening the loader starts no driver, so that this process can say whether there is one.
        asked.unwrap_or_else(|fault| Survey { loader: info::loader(), faults: vec![fault], ..Survey::default() })
    }

    /// As [`devices`](crate::devices).
    ///
    /// Errors: the last driver's failure, when no device is left.
    pub fn devices(&self) -> Result<Vec<DeviceInfo>, DeviceError> {
        self.survey().into_devices()
    }

    /// As [`Session::open`].
    ///
    /// Errors: as there, and [`DeviceError::Process`].
    pub fn open(&self, info: &DeviceInfo) -> Result<Session, DeviceError> {
        let Some(processes) = &self.processes else { return Session::open(info) };
        let connection = processes.take()?;
        let opened = remote::Session::open(connection.clone(), Arc::clone(processes), info);
        match opened {
            Ok((session, info)) => Ok(Session::remote(session, info)),
            Err(error) => {
                processes.give_back(connection);
                Err(error)
            }
        }
    }
}
