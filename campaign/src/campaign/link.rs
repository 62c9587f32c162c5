//! A worker process as its coordinator has it: started, asked, watched, and ended.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use tilewright_device::process::{self, Worker};

use super::protocol::{Reply, Request};
use crate::drivers::Scratch;
use crate::oracle::Failure;

/// How workers are started.
#[derive(Clone, Debug)]
pub struct Launch {
    /// The program: this one.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// How long a worker may say nothing.
    pub patience: Duration,
    /// Most bytes of memory that a worker may have.
    pub memory: u64,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lost {
    /// The worker is gone, or had to be ended: a failure of the case it was at.
    Worker(Failure),
    /// Nobody wants the answer any more.
    Stopped,
}

/// A running worker.
#[derive(Debug)]
pub struct Link {
    worker: Worker,
    patience: Duration,
    /// What the drivers of this worker write: gone when it is.
    _scratch: Scratch,
}

impl Link {
    /// Starts a worker.
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

    /// Asks, and waits for the answer; `at` is told of the cases that a trace comes to. `stop` is asked now and then whether
    /// to give up.
    ///
    /// # Errors
    /// The worker ended, hangs or needs too much memory; it is gone then, and nothing can be asked any more.
    pub fn ask(&mut self, request: &Request, stop: &dyn Fn() -> bool, at: &mut dyn FnMut(u64)) -> Result<Reply, Lost> {
        self.worker.send(request).map_err(failure)?;
        loop {
            match self.worker.receive(self.patience, stop).map_err(failure)? {
                Reply::At { number } => at(number),
                reply => return Ok(reply),
            }
        }
    }

    /// Whether the worker has ended, so that nothing can be asked any more.
    pub fn is_gone(&self) -> bool {
        self.worker.is_gone()
    }
}

/// The end of a worker as a failure of the case it was at.
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
