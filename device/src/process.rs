//! Worker processes: started, asked, watched and ended. A request and its answer are one line of JSON each.
//!
//! ```text
//! this process ── requests on standard input ──> worker
//!              <── answers on standard output ──
//!              <── the end of standard error, for the day it crashes ──
//! ```
//!
//! Code that may crash, hang or end its process (a driver, a solver) runs in a worker, so that the caller learns what
//! happened and goes on.

use std::ffi::OsString;
use std::fmt;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::Serialize;
use serde::de::DeserializeOwned;

/// What every answer begins with: drivers write to standard output too, even in the middle of a line.
const MARK: &str = "@tilewright ";
/// How often a worker is looked after while it works.
const TICK: Duration = Duration::from_millis(40);
/// Bytes of a worker's standard error that are kept, from its end.
const TAIL: usize = 2000;
/// Most requests that wait in a worker.
const WAITING: usize = 16;

/// How a worker is started.
#[derive(Clone, Debug, Default)]
pub struct Launch {
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Environment variables besides those of this process.
    pub environment: Vec<(OsString, OsString)>,
    /// Most bytes of memory that the worker may have in use, if there is a limit.
    pub memory: Option<u64>,
}

/// Why there is no answer. Only after [`Lost::Stopped`] is the worker not to blame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lost {
    /// The process ended.
    Ended {
        /// With a signal (`signal SIGABRT`), an exit code (`exit code 1`), or a stack overflow.
        how: String,
        /// The end of its standard error.
        stderr: String,
    },
    /// It said nothing for this long, and was ended.
    Silent(Duration),
    /// It had more than this many bytes of memory in use, and was ended.
    Memory(u64),
    /// The caller does not want the answer any more.
    Stopped,
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ended { how, .. } => write!(f, "ended with {how}"),
            Self::Silent(patience) => write!(f, "hangs: no answer for {} s", patience.as_secs_f64()),
            Self::Memory(limit) => write!(f, "needs too much memory: more than {} MiB", limit >> 20),
            Self::Stopped => f.write_str("was stopped"),
        }
    }
}

/// A running worker; it is ended when this is dropped.
#[derive(Debug)]
pub struct Worker {
    child: Child,
    stdin: Option<ChildStdin>,
    answers: Receiver<String>,
    stderr: Arc<Mutex<Vec<u8>>>,
    memory: Option<u64>,
}

impl Worker {
    /// Starts a worker in a process group of its own, so that Ctrl-C in a terminal does not reach it: it ends when its
    /// standard input does ([`requests`]).
    ///
    /// # Errors
    /// The process cannot be started.
    pub fn start(launch: &Launch) -> io::Result<Self> {
        let mut command = Command::new(&launch.program);
        command.args(&launch.arguments).envs(launch.environment.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.process_group(0).spawn()?;
        let (sender, answers) = mpsc::channel();
        if let Some(stdout) = child.stdout.take() {
            std::thread::spawn(move || {
                let mut lines = BufReader::new(stdout);
                let mut line = Vec::new();
                while lines.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
                    // Drivers write to the same stream: a line may be invalid UTF-8, and an answer may begin in its middle.
                    let text = String::from_utf8_lossy(&line);
                    if let Some((_, json)) = text.split_once(MARK)
                        && sender.send(json.to_owned()).is_err()
                    {
                        break;
                    }
                    line.clear();
                }
            });
        }
        let kept = Arc::new(Mutex::new(Vec::new()));
        if let Some(stderr) = child.stderr.take() {
            let kept = Arc::clone(&kept);
            std::thread::spawn(move || keep_tail(stderr, &kept));
        }
        let stdin = child.stdin.take();
        Ok(Self { child, stdin, answers, stderr: kept, memory: launch.memory })
    }

    /// Sends a request.
    ///
    /// # Errors
    /// The worker has ended.
    pub fn send(&mut self, request: &impl Serialize) -> Result<(), Lost> {
        let sent = self.stdin.as_mut().map(|stdin| write_line(stdin, "", request));
        if matches!(sent, Some(Ok(()))) { Ok(()) } else { Err(self.ended()) }
    }

    /// Waits for the next answer, at most for `patience`; `stop` is asked now and then whether to give up. Lines that are no
    /// answer of type `R` are passed over.
    ///
    /// # Errors
    /// The worker ended, says nothing or needs too much memory, or `stop` said so; it is gone then, and nothing can be asked
    /// any more.
    pub fn receive<R: DeserializeOwned>(&mut self, patience: Duration, stop: &dyn Fn() -> bool) -> Result<R, Lost> {
        let start = Instant::now();
        loop {
            match self.answers.recv_timeout(TICK) {
                Ok(json) => {
                    // Any other line falls through to the checks below, so that a flood of them cannot outlast `patience`.
                    if let Ok(answer) = serde_json::from_str(&json) {
                        return Ok(answer);
                    }
                }
                Err(RecvTimeoutError::Disconnected) => return Err(self.ended()),
                Err(RecvTimeoutError::Timeout) => {}
            }
            let lost = if stop() {
                Lost::Stopped
            } else if start.elapsed() > patience {
                Lost::Silent(patience)
            } else if let Some(limit) = self.memory
                && resident_bytes(self.child.id()).is_some_and(|bytes| bytes > limit)
            {
                Lost::Memory(limit)
            } else {
                continue;
            };
            self.kill();
            return Err(lost);
        }
    }

    /// Whether the worker is gone, so that nothing can be asked any more.
    pub fn is_gone(&self) -> bool {
        self.stdin.is_none()
    }

    /// How the process ended; waits for it.
    fn ended(&mut self) -> Lost {
        // A worker that only closed its output is ended by the end of its input.
        self.stdin = None;
        let status = self.child.wait();
        // The other thread has read what there is once the process is gone; a moment is enough. Its end of the pipe may
        // stay open in a process that the worker started, so that waiting for the thread could take for ever.
        std::thread::sleep(TICK / 4);
        let stderr = self.stderr.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let stderr = String::from_utf8_lossy(&stderr).trim().to_owned();
        let how = match status {
            Ok(_) if stderr.contains("has overflowed its stack") => "stack overflow".to_owned(),
            Ok(status) => describe(status),
            Err(error) => format!("an unknown status: {error}"),
        };
        Lost::Ended { how, stderr }
    }

    fn kill(&mut self) {
        self.stdin = None;
        // It may be gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.kill();
    }
}

/// In a worker: the requests on standard input. At its end the process ends at once, whatever it is doing, so that no
/// worker outlives the process that started it. A line that is no request ends it too: the other side speaks another version
/// of the protocol.
pub fn requests<R: DeserializeOwned + Send + 'static>() -> Receiver<R> {
    let (sender, receiver) = mpsc::sync_channel(WAITING);
    std::thread::spawn(move || {
        for line in io::stdin().lock().lines() {
            let Ok(line) = line else { break };
            let Ok(request) = serde_json::from_str(&line) else { break };
            if sender.send(request).is_err() {
                break;
            }
        }
        std::process::exit(0);
    });
    receiver
}

/// In a worker: writes an answer.
///
/// # Errors
/// Nobody reads it.
pub fn answer(out: &mut impl Write, reply: &impl Serialize) -> io::Result<()> {
    write_line(out, MARK, reply)
}

fn write_line(out: &mut impl Write, mark: &str, message: &impl Serialize) -> io::Result<()> {
    let mut line = mark.as_bytes().to_vec();
    serde_json::to_writer(&mut line, message)?;
    line.push(b'\n');
    out.write_all(&line)?;
    out.flush()
}

/// `signal SIGSEGV`, `exit code 70`.
fn describe(status: ExitStatus) -> String {
    match (status.signal(), status.code()) {
        (Some(4), _) => "signal SIGILL".into(),
        (Some(6), _) => "signal SIGABRT".into(),
        (Some(7), _) => "signal SIGBUS".into(),
        (Some(8), _) => "signal SIGFPE".into(),
        (Some(9), _) => "signal SIGKILL".into(),
        (Some(11), _) => "signal SIGSEGV".into(),
        (Some(number), _) => format!("signal {number}"),
        (None, Some(code)) => format!("exit code {code}"),
        (None, None) => "an unknown status".into(),
    }
}

/// Bytes of memory that a process has in use; `None` where the system does not say.
fn resident_bytes(pid: u32) -> Option<u64> {
    const PAGE: u64 = 4096;
    let text = std::fs::read_to_string(format!("/proc/{pid}/statm")).ok()?;
    let pages: u64 = text.split(' ').nth(1)?.parse().ok()?;
    pages.checked_mul(PAGE)
}

/// Reads to the end and keeps the last bytes.
fn keep_tail(mut from: impl Read, into: &Mutex<Vec<u8>>) {
    let mut piece = [0_u8; 1024];
    while let Ok(read @ 1..) = from.read(&mut piece) {
        let mut kept = into.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend_from_slice(&piece[..read]);
        let surplus = kept.len().saturating_sub(TAIL);
        kept.drain(..surplus);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may fail")]

    use super::*;

    const SOON: Duration = Duration::from_mins(1);

    /// A worker that is a shell script.
    fn worker(script: &str) -> Worker {
        let arguments = vec!["-c".into(), script.into()];
        Worker::start(&Launch { program: "/bin/sh".into(), arguments, ..Launch::default() }).unwrap()
    }

    #[test]
    fn an_answer_is_found_behind_what_a_driver_wrote() {
        let mut worker = worker(r#"read x; printf '7\nwarning: no newline here@tilewright [7, '; echo "$x]"; read x"#);
        worker.send(&8).unwrap();
        assert_eq!(worker.receive::<Vec<u64>>(SOON, &|| false), Ok(vec![7, 8]));
        assert!(!worker.is_gone());
    }

    #[test]
    fn a_worker_that_ends_says_how_and_its_last_words() {
        let mut crashing = worker("echo 'no linker' >&2; kill -ABRT $$");
        let lost = crashing.receive::<u64>(SOON, &|| false).unwrap_err();
        assert_eq!(lost, Lost::Ended { how: "signal SIGABRT".into(), stderr: "no linker".into() });
        assert!(crashing.is_gone());
        let mut leaving = worker("exit 3");
        let lost = leaving.receive::<u64>(SOON, &|| false).unwrap_err();
        assert_eq!(lost.to_string(), "ended with exit code 3");
        assert!(leaving.send(&1).is_err());
    }

    #[test]
    fn a_worker_that_says_nothing_is_ended() {
        let mut silent = worker("read x; read x");
        let patience = Duration::from_millis(100);
        assert_eq!(silent.receive::<u64>(patience, &|| false), Err(Lost::Silent(patience)));
        assert!(silent.is_gone());
        assert_eq!(worker("read x").receive::<u64>(SOON, &|| true), Err(Lost::Stopped));
    }
}
