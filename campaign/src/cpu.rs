//! Processor time of this process: what rates are measured in, so that they are the same on a busy machine.

use std::time::Instant;

/// Microseconds of a tick of the clock in `/proc`; Linux has 100 a second for programs, whatever it has itself.
const TICK: u64 = 10_000;

/// A point in time, of this process and of the wall.
#[derive(Clone, Copy, Debug)]
pub struct Stopwatch {
    ticks: Option<u64>,
    wall: Instant,
}

impl Stopwatch {
    /// Starts now.
    pub fn start() -> Self {
        Self { ticks: ticks(), wall: Instant::now() }
    }

    /// Microseconds of processor time since then, of all threads and of children that ended; of the wall where the system
    /// does not say. In steps of 10 000, which add up.
    pub fn micros(&self) -> u64 {
        match self.ticks.zip(ticks()) {
            Some((start, end)) => end.saturating_sub(start).saturating_mul(TICK),
            None => u64::try_from(self.wall.elapsed().as_micros()).unwrap_or(u64::MAX),
        }
    }
}

/// Ticks of this process and its children, in user mode and in the system.
fn ticks() -> Option<u64> {
    parse(&std::fs::read_to_string("/proc/self/stat").ok()?)
}

/// The 14th to 17th field; the second is a name in brackets, which may hold anything.
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
