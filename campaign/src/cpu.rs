//! Processor time of this process, in which rates are measured, so that they do not depend on the
//! load of the machine.

use std::time::Instant;

/// Microseconds per tick of the clock in `/proc`. Linux reports 100 ticks per second to programs,
/// whatever its own clock is.
const TICK: u64 = 10_000;

/// A point in time, in processor time if available and in wall time.
#[derive(Clone, Copy, Debug)]
pub struct Stopwatch {
    ticks: Option<u64>,
    wall: Instant,
}

impl Stopwatch {
    /// Starts measuring.
    pub fn start() -> Self {
        Self { ticks: ticks(), wall: Instant::now() }
    }

    /// Microseconds of processor time since the start, of all threads and of the children that
    /// ended. Wall time where the system does not report processor time. The resolution is 10 000
    /// microseconds; errors do not accumulate.
    pub fn micros(&self) -> u64 {
        match self.ticks.zip(ticks()) {
            Some((start, end)) => end.saturating_sub(start).saturating_mul(TICK),
            None => u64::try_from(self.wall.elapsed().as_micros()).unwrap_or(u64::MAX),
        }
    }
}

/// Ticks of this process and its ended children, in user mode and in the kernel.
fn ticks() -> Option<u64> {
    parse(&std::fs::read_to_string("/proc/self/stat").ok()?)
}

/// The sum of fields 14 to 17 of `/proc/self/stat`. Field 2 is a name in parentheses with arbitrary
/// contents, so fields are counted from the last closing parenthesis.
fn parse(stat: &str) -> Option<u64> {
    let (_, fields) = stat.rsplit_once(')')?;
    let times: Vec<u64> =
        fields.split_whitespace().skip(11).take(4).map(|field| field.parse().ok()).collect::<Option<_>>()?;
    (times.len() == 4).then(|| times.iter().sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_times_of_a_process_and_its_children_are_added_whatever_its_name_is() {
        let stat = "7 (a) b (c)) S 1 7 7 0 -1 4194304 100 0 0 0 12 3 40 5 20 0 1 0 99";
        assert_eq!(parse(stat), Some(60));
        assert_eq!(parse("7 (a) S 1 2"), None);
    }
}
