//! A worker process as its coordinator has it: started, asked, watched, and ended.

use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::protocol::{self, Reply, Request};
use crate::drivers::Scratch;
use crate::oracle::Failure;

/// How often a worker is looked after while it works.
const TICK: Duration = Duration::from_millis(40);
/// How much of a worker's standard error is kept: its end.
const TAIL: usize = 2000;

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
    child: Child,
    stdin: Option<ChildStdin>,
    replies: Receiver<Reply>,
    errors: Arc<Mutex<Vec<u8>>>,
    patience: Duration,
    memory: u64,
    /// What the drivers of this worker write: gone when it is.
    _scratch: Scratch,
}

impl Link {
    /// Starts a worker, in a process group of its own: what a terminal sends on Ctrl-C is not for it.
    ///
    /// # Errors
    /// The process cannot be started.
    pub fn start(launch: &Launch) -> io::Result<Self> {
        let scratch = Scratch::new()?;
        let mut command = Command::new(&launch.program);
        command.envs(scratch.environment()?);
        command.args(&launch.arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.process_group(0).spawn()?;
        let (sender, replies) = mpsc::channel();
        if let Some(stdout) = child.stdout.take() {
            std::thread::spawn(move || {
                let mut lines = BufReader::new(stdout);
                let mut line = Vec::new();
                while lines.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
                    if let Some(reply) = protocol::reply(&String::from_utf8_lossy(&line))
                        && sender.send(reply).is_err()
                    {
                        break;
                    }
                    line.clear();
                }
            });
        }
        let errors = Arc::new(Mutex::new(Vec::new()));
        if let Some(stderr) = child.stderr.take() {
            let errors = Arc::clone(&errors);
            std::thread::spawn(move || keep_tail(stderr, &errors));
        }
        let stdin = child.stdin.take();
        Ok(Self { child, stdin, replies, errors, patience: launch.patience, memory: launch.memory, _scratch: scratch })
    }

    /// Asks, and waits for the answer; `at` is told of the cases that a trace comes to. `stop` is asked now and then whether
    /// to go on waiting.
    ///
    /// # Errors
    /// The worker ended, hangs or needs too much memory; it is gone then, and nothing can be asked any more.
    pub fn ask(&mut self, request: &Request, stop: &dyn Fn() -> bool, at: &mut dyn FnMut(u64)) -> Result<Reply, Lost> {
        let sent = self.stdin.as_mut().map(|stdin| protocol::ask(stdin, request));
        if !matches!(sent, Some(Ok(()))) {
            return Err(self.ended());
        }
        let mut last_word = Instant::now();
        loop {
            match self.replies.recv_timeout(TICK) {
                Ok(Reply::At { number }) => {
                    at(number);
                    last_word = Instant::now();
                }
                Ok(reply) => return Ok(reply),
                Err(RecvTimeoutError::Disconnected) => return Err(self.ended()),
                Err(RecvTimeoutError::Timeout) => {}
            }
            if stop() {
                self.kill();
                return Err(Lost::Stopped);
            }
            if last_word.elapsed() > self.patience {
                self.kill();
                let detail = format!("no word from the worker process for {} s", self.patience.as_secs_f64());
                return Err(Lost::Worker(Failure { what: "the worker process hangs".into(), detail }));
            }
            if resident_bytes(self.child.id()).is_some_and(|bytes| bytes > self.memory) {
                self.kill();
                let detail = format!("more than {} MiB", self.memory >> 20);
                return Err(Lost::Worker(Failure { what: "the worker process needs too much memory".into(), detail }));
            }
        }
    }

    /// Whether the worker has ended, so that nothing can be asked any more.
    pub fn is_gone(&self) -> bool {
        self.stdin.is_none()
    }

    /// How the process ended, as a failure.
    fn ended(&mut self) -> Lost {
        self.stdin = None;
        let status = self.child.wait();
        // The other thread has read what there is once the process is gone; a moment is enough.
        std::thread::sleep(TICK / 4);
        let errors = self.errors.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let errors = String::from_utf8_lossy(&errors).into_owned();
        let how = match status {
            Ok(_) if errors.contains("has overflowed its stack") => "stack overflow".to_owned(),
            Ok(status) => how(status),
            Err(_) => "nobody knows how".to_owned(),
        };
        Lost::Worker(Failure { what: format!("the worker process ends: {how}"), detail: errors.trim().to_owned() })
    }

    fn kill(&mut self) {
        self.stdin = None;
        // It may be gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.kill();
    }
}

/// `SIGSEGV`, `exit code 70`.
fn how(status: ExitStatus) -> String {
    match (status.signal(), status.code()) {
        (Some(4), _) => "signal SIGILL".into(),
        (Some(6), _) => "signal SIGABRT".into(),
        (Some(7), _) => "signal SIGBUS".into(),
        (Some(8), _) => "signal SIGFPE".into(),
        (Some(9), _) => "signal SIGKILL".into(),
        (Some(11), _) => "signal SIGSEGV".into(),
        (Some(number), _) => format!("signal {number}"),
        (None, Some(code)) => format!("exit code {code}"),
        (None, None) => "nobody knows how".into(),
    }
}

/// Bytes of memory that a process has in use; none where the system does not say.
fn resident_bytes(pid: u32) -> Option<u64> {
    const PAGE: u64 = 4096;
    let text = std::fs::read_to_string(format!("/proc/{pid}/statm")).ok()?;
    let pages: u64 = text.split(' ').nth(1)?.parse().ok()?;
    pages.checked_mul(PAGE)
}

/// Reads to the end and keeps the last bytes.
fn keep_tail(mut from: impl Read, into: &Mutex<Vec<u8>>) {
    let mut piece = [0u8; 1024];
    while let Ok(read @ 1..) = from.read(&mut piece) {
        let mut kept = into.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend_from_slice(&piece[..read]);
        let surplus = kept.len().saturating_sub(TAIL);
        kept.drain(..surplus);
    }
}
