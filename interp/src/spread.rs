//! Loops whose iterations are spread over threads.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use rayon::prelude::*;
use tilewright_ir::sabotage;

use crate::code::Loop;
use crate::config::Trap;
use crate::exec::{Frame, Machine, Outcome};

/// Instructions below which a loop is not worth spreading over threads.
const WORTH: u64 = 20_000;

impl Machine<'_> {
    /// Whether the iterations are to be spread over threads.
    pub(crate) fn spreads(&self, inner: &Loop, extent: u64, frame: &Frame) -> bool {
        let threads = self.threads as u64;
        let enough_fuel = || {
            let each = inner.inner_iterations.and_then(|inner| inner.checked_add(1));
            frame.fuel == u64::MAX
                || each.and_then(|each| each.checked_mul(extent)).is_some_and(|all| all <= frame.fuel)
        };
        inner.independent
            && !frame.worker
            && self.threads > 1
            && extent > 1
            && (extent >= 4 * threads || !inner.inner_independent)
            && inner.weight.saturating_mul(extent) >= WORTH
            && enough_fuel()
    }

    pub(crate) fn parallel(&self, inner: &Loop, min: u64, extent: u64, frame: &mut Frame) -> Outcome {
        self.code(&inner.pre, frame)?;
        let mut template = frame.clone();
        (template.worker, template.iterations) = (true, 0);
        let chunks = extent.min(self.threads as u64 * 8);
        let size = if sabotage::on("spread-drops-rest") { extent / chunks } else { extent.div_ceil(chunks) };
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
            if let Some(outcome) = self.vectorised(inner, min.wrapping_add(start), end - start, &mut frame) {
                return outcome.map(|()| frame.iterations).map_err(failure);
            }
            for position in start..end {
                // A chunk before this one has failed: whatever happens here comes later.
                if failed.load(Relaxed) < chunk {
                    break;
                }
                frame.registers[inner.var as usize] = min.wrapping_add(position);
                self.nodes(&inner.body, &mut frame).map_err(failure)?;
            }
            Ok(frame.iterations)
        };
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
