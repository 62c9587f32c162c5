//! Worker processes: starts them, sends requests, and detects that they end, hang or use too much memory.
//!
//! A request and its answer are one frame each: a line `@tilewright N`, and N bytes of MessagePack, so that the contents of
//! memory travel as they are.
//!
//! ```text
//! this process ── requests on standard input ──> worker
//!              <── answers on standard output ──
//!              <── the end of standard error, for the report of a crash ──
//! ```
//!
//! Code that may crash, hang or end its process (a driver, a solver) runs in a worker, so that the caller survives and can
//! report what happened.

use std::ffi::OsString;
use std::fmt;
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::Serialize;
use serde::de::DeserializeOwned;

/// The beginning of every frame; the number of bytes and the end of the line follow. Drivers write to standard output, too,
/// and may leave a line unfinished, so a frame may follow other text on its line.
const MARK: &[u8] = b"@tilewright ";
/// The interval at which a working process is checked for its limits.
const TICK: Duration = Duration::from_millis(40);
/// The number of bytes at the end of a worker's standard error that are kept.
const TAIL: usize = 2000;
/// The most bytes for which a reader makes room before they arrive: what announces them may be the text of a driver.
const AT_ONCE: usize = 1 << 30;
/// Capacity of the queue of requests in a worker.
const WAITING: usize = 16;
/// A worker that got less than this part of the time since it was asked waits for something, and not for a busy machine.
const SHARE: u32 = 16;

/// The command line and the limits of a worker.
#[derive(Clone, Debug, Default)]
pub struct Launch {
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Environment variables in addition to those of this process.
    pub environment: Vec<(OsString, OsString)>,
    /// Limit on the resident memory of the worker in bytes; `None` for no limit.
    pub memory: Option<u64>,
}

/// The reason why there is no answer. All but [`Lost::Stopped`] are failures of the worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lost {
    /// The process ended.
    Ended {
        /// A signal (`signal SIGABRT`), an exit code (`exit code 1`), or `stack overflow`.
        how: String,
        /// The end of its standard error.
        stderr: String,
    },
    /// The process gave no answer for this long, or for longer on a busy machine, and was killed.
    Silent(Duration),
    /// The process used more than this many bytes of memory, and was killed.
    Memory(u64),
    /// The caller stopped waiting; the process was killed.
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

/// A running worker process; dropping it kills the process.
#[derive(Debug)]
pub struct Worker {
    child: Child,
    stdin: Option<ChildStdin>,
    answers: Receiver<Vec<u8>>,
    stderr: Arc<Mutex<Vec<u8>>>,
    memory: Option<u64>,
}

impl Worker {
    /// Starts a worker in a process group of its own, so that Ctrl-C in a terminal does not reach it. It ends at the end of
    /// its standard input ([`requests`]).
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
                let mut from = BufReader::new(stdout);
                while let Ok(Some(frame)) = next_frame(&mut from) {
                    if sender.send(frame).is_err() {
                        break;
                    }
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
        let sent = self.stdin.as_mut().map(|stdin| answer(stdin, request));
        if matches!(sent, Some(Ok(()))) { Ok(()) } else { Err(self.ended()) }
    }

    /// Waits for the next answer, at most for `patience`; a process that the machine gives little time may take that much
    /// processor time. `stop` is polled, and ends the wait when it returns true. Answers that do not parse as `R` are ignored.
    ///
    /// # Errors
    /// The worker ended, did not answer in time, exceeded its memory, or `stop` returned true. The worker is gone then, and
    /// every further request fails.
    pub fn receive<R: DeserializeOwned>(&mut self, patience: Duration, stop: &dyn Fn() -> bool) -> Result<R, Lost> {
        let start = Instant::now();
        let before = processor_time(self.child.id());
        loop {
            match self.answers.recv_timeout(TICK) {
                Ok(frame) => {
                    // Any other frame falls through to the checks below, so that a flood of them cannot outlast `patience`.
                    if let Ok(answer) = rmp_serde::from_slice(&frame) {
                        return Ok(answer);
                    }
                }
                Err(RecvTimeoutError::Disconnected) => return Err(self.ended()),
                Err(RecvTimeoutError::Timeout) => {}
            }
            let lost = if stop() {
                Lost::Stopped
            } else if start.elapsed() > patience && !self.is_starved(before, start.elapsed(), patience) {
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

    /// Whether the worker is gone, so that every further request fails.
    pub fn is_gone(&self) -> bool {
        self.stdin.is_none()
    }

    /// Whether the process works, and other programs kept it from working for `patience`.
    fn is_starved(&self, before: Option<Duration>, elapsed: Duration, patience: Duration) -> bool {
        let spent = processor_time(self.child.id()).zip(before).map(|(now, before)| now.saturating_sub(before));
        spent.is_some_and(|spent| spent < patience && spent * SHARE > elapsed)
    }

    /// Waits for the end of the process and describes it.
    fn ended(&mut self) -> Lost {
        // A worker that only closed its output ends at the end of its input.
        self.stdin = None;
        let status = self.child.wait();
        // A short pause lets the thread read the rest of standard error. Joining the thread could block forever, because a
        // process that the worker started may keep the pipe open.
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

    /// Kills the process, if it still runs, and waits for its end.
    fn kill(&mut self) {
        self.stdin = None;
        // Fails if the process has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.kill();
    }
}

/// In a worker: receives the requests from standard input.
///
/// At the end of standard input the process exits at once, even while it works on a request, so that no worker outlives the
/// process that started it. A frame that does not parse as a request ends it as well, because then the other side speaks
/// another version of the protocol.
pub fn requests<R: DeserializeOwned + Send + 'static>() -> Receiver<R> {
    let (sender, receiver) = mpsc::sync_channel(WAITING);
    std::thread::spawn(move || {
        let mut from = io::stdin().lock();
        while let Ok(Some(frame)) = next_frame(&mut from) {
            let Ok(request) = rmp_serde::from_slice(&frame) else { break };
            if sender.send(request).is_err() {
                break;
            }
        }
        std::process::exit(0);
    });
    receiver
}

/// In a worker: writes an answer to `out`, which is standard output.
///
/// # Errors
/// Standard output is closed.
pub fn answer(out: &mut impl Write, reply: &impl Serialize) -> io::Result<()> {
    write_frame(&mut BufWriter::new(&mut *out), reply)?;
    out.flush()
}

/// Writes a message as a frame. Its length is counted first, so that the contents of memory go from where they are to the pipe.
fn write_frame(out: &mut impl Write, message: &impl Serialize) -> io::Result<()> {
    let mut length = Count(0);
    rmp_serde::encode::write_named(&mut length, message).map_err(io::Error::other)?;
    out.write_all(MARK)?;
    writeln!(out, "{}", length.0)?;
    rmp_serde::encode::write_named(out, message).map_err(io::Error::other)?;
    out.flush()
}

/// A message as a frame.
#[cfg(test)]
pub(crate) fn frame(message: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut frame = Vec::new();
    write_frame(&mut frame, message).map(|()| frame)
}

/// Counts the bytes that are written to it.
struct Count(u64);

impl Write for Count {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += u64::try_from(bytes.len()).map_err(io::Error::other)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The body of the next frame, which is shorter than announced if the input ends within it; `None` at the end of the input.
/// Lines that announce no frame are passed over.
fn next_frame(from: &mut impl BufRead) -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    while from.read_until(b'\n', &mut line)? > 0 {
        if let Some(length) = announced(&line) {
            let mut body = Vec::new();
            // If there is no room for all of it, reading ends with the error.
            let _ = body.try_reserve_exact(usize::try_from(length).unwrap_or(usize::MAX).min(AT_ONCE));
            from.take(length).read_to_end(&mut body)?;
            return Ok(Some(body));
        }
        line.clear();
    }
    Ok(None)
}

/// The number of bytes that the end of a line announces.
fn announced(line: &[u8]) -> Option<u64> {
    let start = line.windows(MARK.len()).rposition(|part| part == MARK)? + MARK.len();
    std::str::from_utf8(&line[start..]).ok()?.trim_end().parse().ok()
}

/// The exit status in words, such as `signal SIGSEGV` or `exit code 70`.
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

/// The resident memory of a process in bytes; `None` if the system does not report it.
fn resident_bytes(pid: u32) -> Option<u64> {
    const PAGE: u64 = 4096;
    let text = std::fs::read_to_string(format!("/proc/{pid}/statm")).ok()?;
    let pages: u64 = text.split(' ').nth(1)?.parse().ok()?;
    pages.checked_mul(PAGE)
}

/// The processor time of a process and its threads; `None` if the system does not report it.
fn processor_time(pid: u32) -> Option<Duration> {
    /// Linux reports 100 ticks per second to programs, whatever its own clock is.
    const TICK: u64 = 10;
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name of the program, in parentheses, may contain anything. User and system time are fields 14 and 15.
    let (_, fields) = text.rsplit_once(')')?;
    let ticks = fields.split_whitespace().skip(11).take(2).map(|field| field.parse::<u64>().ok());
    ticks.sum::<Option<u64>>().map(|ticks| Duration::from_millis(ticks.saturating_mul(TICK)))
}

/// Reads `from` to its end, and keeps the last [`TAIL`] bytes in `into`.
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
        let mut worker = worker(r"read x; printf '7\nwarning: no newline here@tilewright 3\n\222\007\010'; read x");
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

    #[test]
    fn a_worker_that_works_for_ever_is_ended_and_a_starved_one_is_not() {
        let mut busy = worker("while :; do :; done");
        let patience = Duration::from_millis(200);
        assert_eq!(busy.receive::<u64>(patience, &|| false), Err(Lost::Silent(patience)));
        let second = Duration::from_secs(1);
        let waiting = worker("read x");
        // It has had no time of any, and would not be the faster for more of it.
        assert!(!waiting.is_starved(Some(Duration::ZERO), second * 60, second));
        let working = worker("while :; do :; done");
        while processor_time(working.child.id()) == Some(Duration::ZERO) {
            std::thread::sleep(patience);
        }
        assert!(working.is_starved(Some(Duration::ZERO), Duration::from_millis(1), second * 60));
        assert!(!working.is_starved(None, second, second * 60));
    }
}
