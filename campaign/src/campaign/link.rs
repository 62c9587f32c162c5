//! The coordinator's view of a worker process: starting it, sending requests, and detecting that it
//! died or hangs.
//!
//! A worker may die or hang at any case, because a case may make the project crash. The coordinator detects this by the end
//! of the pipe, by a missing reply, or by the memory of the process, and turns it into a [`Failure`] of the case.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use tilewright_device::process::{self, Worker};

use super::protocol::{Reply, Request};
use crate::drivers::Scratch;
use crate::oracle::Failure;

/// The command line and the limits of workers.
#[derive(Clone, Debug)]
pub struct Launch {
    /// The program, which is this one.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// How long a worker may be silent before it counts as hanging.
    pub patience: Duration,
    /// Limit on the memory of a worker in bytes.
    pub memory: u64,
}

/// Why there is no reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lost {
    /// The worker died or was killed, which is a failure of the case it was checking.
    Worker(Failure),
    /// The campaign ended before the reply came.
    Stopped,
}

/// A running worker.
#[derive(Debug)]
pub struct WorkerLink {
    worker: Worker,
    patience: Duration,
    /// The folder of this worker's drivers, removed with it.
    _scratch: Scratch,
}

impl WorkerLink {
    /// Starts a worker with an environment of [`Scratch`].
    ///
    /// # Errors
    /// The process cannot be started.
    pub fn start(launch: &Launch) -> io::Result<Self> {
        let scratch = Scratch::new()?;
        let environment = scratch.environment()?.into_iter().map(|(name, value)| (name.into(), value)).collect();
        let worker = Worker::start(&process::Launch {
            program: launch.program.clone(),
            arguments: launch.arguments.clone(),
            environment,
            memory: Some(launch.memory),
        })?;
        Ok(Self { worker, patience: launch.patience, _scratch: scratch })
    }

    /// Sends a request and waits for the reply. `at` receives the number of each case that a trace
    /// starts; `stop` is polled and ends the wait when true.
    ///
    /// # Errors
    /// The worker died, is silent for too long, or exceeded its memory. It is gone then, and
    /// further requests fail.
    pub fn ask(&mut self, request: &Request, stop: &dyn Fn() -> bool, at: &mut dyn FnMut(u64)) -> Result<Reply, Lost> {
        self.worker.send(request).map_err(failure)?;
        loop {
            match self.worker.receive(self.patience, stop).map_err(failure)? {
                Reply::At { number } => at(number),
                reply => return Ok(reply),
            }
        }
    }

    /// Whether the worker is gone, so that further requests would fail.
    pub fn is_gone(&self) -> bool {
        self.worker.is_gone()
    }
}

/// Describes the end of a worker as a failure of the case it was checking.
fn failure(lost: process::Lost) -> Lost {
    let (what, detail) = match lost {
        process::Lost::Ended { how, stderr } => (format!("the worker process ends: {how}"), stderr),
        process::Lost::Silent(patience) => {
            let detail = format!("no word from the worker process for {} s", patience.as_secs_f64());
            ("the worker process hangs".into(), detail)
        }
        process::Lost::Memory(limit) => {
            ("the worker process needs too much memory".into(), format!("more than {} MiB", limit >> 20))
        }
        process::Lost::Stopped => return Lost::Stopped,
    };
    Lost::Worker(Failure { what, detail })
}
