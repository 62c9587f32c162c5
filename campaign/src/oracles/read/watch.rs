//! Limits on the time and the memory that reading a text may take.

use std::fs;
use std::time::{Duration, Instant};

use super::CheckResult;
use crate::oracle::Failure;

/// Limit on the time for a short text; longer texts get a multiple of it.
const MAX_TIME: Duration = Duration::from_secs(2);
/// Length up to which a text is short, in bytes.
const SHORT: usize = 4096;
/// Limit on the memory for a text in KiB, in addition to 10 KiB per byte.
const MAX_KIB: u64 = 512 << 10;

/// The resources that the process had used before a text was read.
pub(super) struct Watch {
    max_time: Duration,
    start: Instant,
    cpu: Option<Duration>,
    peak: Option<u64>,
}

impl Watch {
    /// Starts watching.
    pub(super) fn begin() -> Self {
        Self { max_time: MAX_TIME, cpu: cpu_time(), peak: peak_kib(), start: Instant::now() }
    }

    /// Processor time of this thread since the start, if the system reports it, so that the load of
    /// the machine does not matter; otherwise wall time. The system is asked only if the wall time
    /// exceeds the limit.
    fn time(&self) -> Duration {
        let wall = self.start.elapsed();
        if wall < self.max_time {
            return wall;
        }
        match (self.cpu, cpu_time()) {
            (Some(before), Some(now)) => now.saturating_sub(before),
            _ => wall,
        }
    }

    /// Checks the limits for a text of this length.
    ///
    /// # Errors
    /// The text took too much time or memory.
    pub(super) fn end(&self, bytes: usize) -> CheckResult {
        let time = self.time();
        let pieces = u32::try_from(bytes.div_ceil(SHORT).max(1)).unwrap_or(u32::MAX);
        if time > self.max_time.saturating_mul(pieces) {
            return Err(Failure::outcome("reading takes too long", format!("{bytes} bytes take {time:?}")));
        }
        let more = self.peak.zip(peak_kib()).map_or(0, |(before, now)| now.saturating_sub(before));
        if more > MAX_KIB + 10 * u64::try_from(bytes).unwrap_or(u64::MAX >> 8) {
            return Err(Failure::outcome("reading takes too much memory", format!("{bytes} bytes take {more} KiB")));
        }
        Ok(())
    }
}

/// Processor time of this thread; `None` if the system does not report it.
fn cpu_time() -> Option<Duration> {
    let text = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_whitespace().next()?.parse().ok().map(Duration::from_nanos)
}

/// Peak memory of the process in KiB; `None` if the system does not report it.
fn peak_kib() -> Option<u64> {
    let text = fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::hint::black_box;

    use super::*;

    fn what(watch: &Watch, bytes: usize) -> Option<String> {
        match watch.end(bytes).err()? {
            crate::Outcome::Failed(failure) => Some(failure.what),
            other => Some(format!("{other:?}")),
        }
    }

    #[test]
    fn computing_for_too_long_is_seen_and_waiting_is_not() {
        let watch = Watch { max_time: Duration::from_millis(20), ..Watch::begin() };
        std::thread::sleep(Duration::from_millis(60));
        if watch.cpu.is_some() {
            assert_eq!(what(&watch, 10), None);
        }
        let before = cpu_time();
        while cpu_time().zip(before).is_some_and(|(now, before)| now < before + Duration::from_millis(40)) {
            black_box((0..10_000_u64).sum::<u64>());
        }
        assert_eq!(what(&watch, 10).as_deref(), Some("reading takes too long"));
        // A text ten times as long may take so much.
        assert_eq!(what(&watch, 10 * SHORT), None);
    }

    #[test]
    fn taking_much_memory_is_seen() {
        let watch = Watch::begin();
        drop(black_box(vec![1_u8; 700 << 20]));
        if watch.peak.is_some() {
            assert_eq!(what(&watch, 10).as_deref(), Some("reading takes too much memory"));
        }
    }
}
