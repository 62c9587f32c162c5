//! Loops whose iterations are distributed over several threads.
//!
//! A worker has its own copy of the frame; memory is shared. Loops inside a worker are not distributed again. Iterations
//! and fuel are counted as in a sequential run, and the first trap in program order is reported, so that neither the
//! result nor the report depends on the number of threads.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use rayon::prelude::*;
use tilewright_ir::sabotage;

use crate::code::Loop;
use crate::config::Trap;
use crate::exec::{Frame, Machine, Outcome};

/// Least number of instructions in a loop for which the cost of starting tasks pays off.
const MIN_INSTRUCTIONS: u64 = 20_000;

impl Machine<'_> {
    /// Whether to distribute the iterations of a loop over threads.
    ///
    /// Not with less than four iterations per thread if a loop inside is independent too: that one is distributed then.
    pub(crate) fn should_spread(&self, inner: &Loop, extent: u64, frame: &Frame) -> bool {
        let enough = extent >= 4 * self.threads as u64 || !inner.inner_independent;
        inner.independent && extent > 1 && enough && self.may_spread(inner, extent, frame)
    }

    /// Whether to leave the iterations of a loop to a loop inside that is distributed over threads.
    pub(crate) fn spreads_inside(&self, inner: &Loop, extent: u64, frame: &Frame) -> bool {
        inner.inner_independent && self.may_spread(inner, extent, frame)
    }

    /// Whether it is worth while to use several threads in a loop.
    ///
    /// Not inside a worker, and not if fuel might run out: which iteration gets the last of it would depend on timing.
    fn may_spread(&self, inner: &Loop, extent: u64, frame: &Frame) -> bool {
        let enough_fuel = || {
            let each = inner.inner_iterations.and_then(|inner| inner.checked_add(1));
            frame.fuel == u64::MAX
                || each.and_then(|each| each.checked_mul(extent)).is_some_and(|all| all <= frame.fuel)
        };
        !frame.worker && self.threads > 1 && inner.weight.saturating_mul(extent) >= MIN_INSTRUCTIONS && enough_fuel()
    }

    /// Runs the iterations of an independent loop in chunks on all threads.
    ///
    /// Iterations do not affect each other, so all chunks before a failing one still run. The trap of the first failing
    /// chunk is returned, which is the first one in program order.
    pub(crate) fn run_parallel(&self, inner: &Loop, min: u64, extent: u64, frame: &mut Frame) -> Outcome {
        self.run_code(&inner.pre, frame)?;
        let mut template = frame.clone();
        (template.worker, template.iterations) = (true, 0);
        let chunks = extent.min(self.threads as u64 * 8);
        let size = if sabotage::on("spread-drops-rest") { extent / chunks } else { extent.div_ceil(chunks) };
        // The vectorized form of a split loop needs whole parts.
        let size = size
            .next_multiple_of(inner.vectorized.as_ref().map_or(1, |nest| nest.splits.first().copied().unwrap_or(1)));
        let failed = AtomicU64::new(u64::MAX);
        let run = |chunk: u64| -> Result<u64, Box<Trap>> {
            let mut frame = template.clone();
            let (start, end) = ((chunk * size).min(extent), ((chunk + 1) * size).min(extent));
            let failure = |trap| {
                failed.fetch_min(chunk, Relaxed);
                trap
            };
            if start == end || failed.load(Relaxed) < chunk {
                return Ok(0);
            }
            if let Some(outcome) = self.run_vectorized(inner, min.wrapping_add(start), end - start, &mut frame) {
                return outcome.map(|()| frame.iterations).map_err(failure);
            }
            for position in start..end {
                // An earlier chunk has failed, so a trap in this one would not be reported.
                if failed.load(Relaxed) < chunk {
                    break;
                }
                frame.registers[inner.var as usize] = min.wrapping_add(position);
                self.run_nodes(&inner.body, &mut frame).map_err(failure)?;
            }
            Ok(frame.iterations)
        };
        // Results are collected in the order of the chunks, so the first error is the first one in program order.
        let results: Vec<_> = (0..chunks).into_par_iter().map(run).collect();
        let mut iterations = extent;
        for result in results {
            iterations = iterations.saturating_add(result?);
        }
        frame.iterations = frame.iterations.saturating_add(iterations);
        frame.parallel_loops += 1;
        if frame.fuel != u64::MAX {
            frame.fuel = frame.fuel.saturating_sub(iterations);
        }
        Ok(())
    }
}
