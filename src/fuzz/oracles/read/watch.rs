//! Watches over the time and the memory that a text takes.

use std::fs;
use std::time::{Duration, Instant};

use super::Looked;
use crate::fuzz::oracle::Failure;

/// The time that a short text may take.
const MOST_TIME: Duration = Duration::from_secs(2);
/// A text so short.
const SHORT: usize = 4096;
/// Memory that a text may take, in KiB, beside 10 KiB a byte.
const MOST_KIB: u64 = 512 << 10;

/// What the process had used when a look began.
pub(super) struct Watch {
    start: Instant,
    cpu: Option<Duration>,
    peak: Option<u64>,
}

impl Watch {
    pub(super) fn begin() -> Self {
        Self { cpu: cpu_time(), peak: peak_kib(), start: Instant::now() }
    }

    /// What this thread has computed for since, where the system says so: other processes do not count.
    fn time(&self) -> Duration {
        let wall = self.start.elapsed();
        if wall < MOST_TIME {
            return wall;
        }
        match (self.cpu, cpu_time()) {
            (Some(before), Some(now)) => now.saturating_sub(before),
            _ => wall,
        }
    }

    /// # Errors
    /// A text of so many bytes should not take so much.
    pub(super) fn end(&self, bytes: usize) -> Looked {
        let time = self.time();
        let pieces = u32::try_from(bytes.div_ceil(SHORT).max(1)).unwrap_or(u32::MAX);
        if time > MOST_TIME.saturating_mul(pieces) {
            return Err(Failure::outcome("reading takes too long", format!("{bytes} bytes take {time:?}")));
        }
        let more = self.peak.zip(peak_kib()).map_or(0, |(before, now)| now.saturating_sub(before));
        if more > MOST_KIB + 10 * u64::try_from(bytes).unwrap_or(u64::MAX >> 8) {
            return Err(Failure::outcome("reading takes too much memory", format!("{bytes} bytes take {more} KiB")));
        }
        Ok(())
    }
}

/// Whether a look that began then has computed for longer than it may.
#[cfg(test)]
pub(super) fn is_over_time(start: Instant) -> bool {
    thread_local!(static CPU: Option<Duration> = cpu_time());
    let before = CPU.with(|cpu| *cpu);
    start.elapsed() > MOST_TIME
        && before.zip(cpu_time()).is_none_or(|(before, now)| now.saturating_sub(before) > MOST_TIME * 3 / 2)
}

/// Time that this thread has computed for. None where there is no such file.
fn cpu_time() -> Option<Duration> {
    let text = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_whitespace().next()?.parse().ok().map(Duration::from_nanos)
}

/// The most memory that the process ever had, in KiB. None where there is no such file.
fn peak_kib() -> Option<u64> {
    let text = fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse().ok()
}
