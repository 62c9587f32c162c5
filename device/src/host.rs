//! Chooses the process in which drivers run: the caller's, or a worker that may crash without harm.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::error::DeviceError;
use crate::info::{self, DeviceInfo, Survey};
use crate::process::Launch;
use crate::remote::{self, Connection};
use crate::session::Session;

/// The usual time limit of a build or a run in a worker process: ten minutes. OpenCL cannot stop a launch that never ends,
/// but a process can be killed.
pub const PATIENCE: Duration = Duration::from_mins(10);

/// The process in which drivers run.
#[derive(Clone, Debug, Default)]
pub enum Isolation {
    /// The caller's process. A driver that crashes, or a kernel that writes far out of bounds, ends it.
    #[default]
    InProcess,
    /// A worker process; its end becomes a [`DeviceError::Process`].
    Process {
        /// A program that calls [`serve`](crate::serve), usually the caller's own program.
        program: PathBuf,
        /// The arguments with which the program calls `serve`.
        arguments: Vec<String>,
        /// Time limit of a build or a run, after which the worker is killed; usually [`PATIENCE`].
        patience: Duration,
    },
}

/// Lists devices and opens sessions in the process that an [`Isolation`] selects. Clones share their worker processes.
///
/// Every open session has a worker of its own, so that a crash ends no other session. The worker of a closed session is
/// reused, because starting the drivers can take longer than running a kernel.
#[derive(Clone, Debug, Default)]
pub struct DeviceHost {
    /// `None` if drivers run in this process.
    processes: Option<Arc<Processes>>,
}

/// The idle workers, and the command line to start another one.
#[derive(Debug)]
pub(crate) struct Processes {
    launch: Launch,
    patience: Duration,
    idle: Mutex<Vec<Connection>>,
}

impl Processes {
    /// An idle worker, or a new one.
    fn take(&self) -> Result<Connection, DeviceError> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        idle.map_or_else(|| Connection::start(&self.launch, self.patience), Ok)
    }

    /// Opens a device in an idle worker, or in a new one.
    pub(crate) fn open(self: &Arc<Self>, info: &DeviceInfo) -> Result<Session, DeviceError> {
        let connection = self.take()?;
        match remote::Session::open(connection.clone(), Arc::clone(self), info) {
            Ok((session, info)) => Ok(Session::remote(session, info)),
            Err(error) => {
                self.give_back(connection);
                Err(error)
            }
        }
    }

    /// Keeps a worker for the next session, unless it is gone or its memory may be damaged.
    pub(crate) fn give_back(&self, connection: Connection) {
        if connection.is_sound() {
            self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
        }
    }
}

impl DeviceHost {
    /// Creates a host. No process is started before the first request.
    pub fn new(isolation: Isolation) -> Self {
        let Isolation::Process { program, arguments, patience } = isolation else {
            return Self::default();
        };
        let launch = Launch { program, arguments, ..Launch::default() };
        Self { processes: Some(Arc::new(Processes { launch, patience, idle: Mutex::default() })) }
    }

    /// Lists the devices and the drivers that failed. The loss of the worker during the survey is one of the failures.
    pub fn survey(&self) -> Survey {
        let Some(processes) = &self.processes else { return info::survey() };
        let asked = processes.take().and_then(|connection| {
            let survey = connection.survey()?;
            processes.give_back(connection);
            Ok(survey)
        });
        // Opening the loader starts no driver, so it is safe in this process.
        asked.unwrap_or_else(|fault| Survey { loader: info::loader(), faults: vec![fault], ..Survey::default() })
    }

    /// Lists the devices, as [`devices`](crate::devices) does.
    ///
    /// # Errors
    /// No device answered, and a driver failed: the last such failure.
    pub fn devices(&self) -> Result<Vec<DeviceInfo>, DeviceError> {
        self.survey().into_devices()
    }

    /// Opens a device, as [`Session::open`] does.
    ///
    /// # Errors
    /// Those of [`Session::open`], and [`DeviceError::Process`] if the worker cannot be started or is lost.
    pub fn open(&self, info: &DeviceInfo) -> Result<Session, DeviceError> {
        let Some(processes) = &self.processes else { return Session::open(info) };
        processes.open(info)
    }
}
