//! The worker's side of a connection: it holds the devices, and may end during any call of a driver.

use std::collections::BTreeMap;
use std::io;

use super::protocol::{Reply, Request};
use crate::error::DeviceError;
use crate::{Program, Session, info, process};

/// Answers requests for devices from standard input until its end; then the process exits.
///
/// The program of [`Isolation::Process`](crate::Isolation::Process) calls this function and does nothing else, because
/// standard input and output are the connection.
///
/// # Errors
/// Standard output is closed.
pub fn serve() -> io::Result<()> {
    let mut worker = Worker::default();
    let mut out = io::stdout();
    for request in process::requests() {
        let reply = worker.answer(request).unwrap_or_else(Reply::Failed);
        process::answer(&mut out, &reply)?;
    }
    Ok(())
}

/// The open sessions and built programs, by the numbers under which the other side knows them.
#[derive(Default)]
struct Worker {
    sessions: BTreeMap<u64, Session>,
    programs: BTreeMap<u64, Program>,
    /// The last number that was given to a session or a program.
    given: u64,
}

impl Worker {
    /// A new number.
    fn number(&mut self) -> u64 {
        self.given += 1;
        self.given
    }

    fn session(&self, number: u64) -> Result<&Session, DeviceError> {
        self.sessions.get(&number).ok_or_else(|| unknown("session", number))
    }

    /// The reply to a request. Closing a session or releasing a program that does not exist is no error.
    fn answer(&mut self, request: Request<'_>) -> Result<Reply, DeviceError> {
        Ok(match request {
            Request::Survey => Reply::Survey(info::survey()),
            Request::Open { device } => {
                let opened = Session::open(&device)?;
                let (session, info) = (self.number(), opened.info().clone());
                self.sessions.insert(session, opened);
                Reply::Opened { session, info }
            }
            Request::Close { session } => {
                self.sessions.remove(&session);
                Reply::Done
            }
            Request::Build { session, source, options } => {
                let built = self.session(session)?.build(&source, &options)?;
                let program = self.number();
                // The program stays in this process. The reply carries everything that a caller may ask about it.
                let (kernels, log) = (built.kernels().to_vec(), built.log().to_owned());
                let correctly_rounded = built.correctly_rounded();
                self.programs.insert(program, built);
                Reply::Built { program, correctly_rounded, kernels, log }
            }
            Request::Release { program } => {
                self.programs.remove(&program);
                Reply::Done
            }
            Request::Run { session, programs, plan, options } => {
                let found = |number| self.programs.get(number).ok_or_else(|| unknown("program", *number));
                let programs = programs.iter().map(found).collect::<Result<Vec<_>, _>>()?;
                Reply::Ran(self.session(session)?.run_programs(&programs, &plan, &options)?)
            }
            Request::Copy { session, bytes } => Reply::Nanoseconds(self.session(session)?.copy_nanoseconds(bytes)?),
            Request::ScratchStats { session } => Reply::ScratchStats(self.session(session)?.scratch_stats()),
            Request::TrimScratch { session } => {
                self.session(session)?.trim_scratch();
                Reply::Done
            }
        })
    }
}

fn unknown(what: &str, number: u64) -> DeviceError {
    DeviceError::Plan(format!("there is no {what} {number} in the process of the driver"))
}
