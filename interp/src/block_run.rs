//! Execution of block plans: an innermost nest of loops runs a block of iterations at a time.
//!
//! [`Machine::run_vectorized`] tests once per entry of the nest that all streams stay in bounds and that no two accesses
//! overlap where the plan forbids it. A block in which anything else fails (a gather out of bounds, an undefined element,
//! a division by zero) is left to the one-by-one engine, which finds the iteration that traps.

use tilewright_ir::sabotage;

use crate::block_exec::run_phase;
use crate::block_plan::BLOCK;
use crate::block_scratch::{Block, BlockScratch, blocks_of};
use crate::code::{Loop, Node, VectorizedNest};
use crate::config::Trap;
use crate::exec::{Frame, Machine, Outcome};

/// Least number of iterations for which a plan is faster than running them one by one.
const MIN_ITERATIONS: u64 = 4;

/// Least number of iterations in a block for which it pays to run the loops of a reduction outside of it.
const MIN_LANES: u64 = 12;

impl Machine<'_> {
    /// Runs `extent` iterations of a loop, from the value `min` on, by the loop's plan. Returns `None`, with memory
    /// unchanged, if there is no plan or it does not apply here.
    pub(crate) fn run_vectorized(&self, outer: &Loop, min: u64, extent: u64, frame: &mut Frame) -> Option<Outcome> {
        let nest = outer.vectorized.as_ref().filter(|_| !sabotage::on("one-by-one"))?;
        // `all` counts the iterations of the innermost loop, `inner_iterations` those of all loops but the outermost.
        let (mut all, mut inner_iterations) = (extent, 0u64);
        frame.registers[outer.var as usize] = min;
        for inner in &nest.inner {
            all = all.checked_mul(inner.extent)?;
            inner_iterations = inner_iterations.checked_add(all)?;
            frame.registers[inner.var as usize] = inner.min;
        }
        let has_turns = nest.phases.iter().any(|phase| !phase.turns.is_empty());
        for phase in &nest.phases {
            let mut each = all;
            for turn in &phase.turns {
                each = each.checked_mul(turn.extent)?;
                inner_iterations = inner_iterations.checked_add(each)?;
                frame.registers[turn.var as usize] = turn.min;
            }
        }
        if all < if has_turns { MIN_LANES } else { MIN_ITERATIONS } || inner_iterations > frame.fuel {
            return None;
        }
        for phase in &nest.phases {
            self.run_code(&phase.pre, frame).and_then(|()| self.run_code(&phase.probe, frame)).ok()?;
        }
        let mut scratch = std::mem::take(&mut frame.scratch);
        let prepared = scratch.prepare(nest, (min, extent), all, frame);
        let outcome = prepared.map(|()| {
            frame.iterations = frame.iterations.saturating_add(inner_iterations);
            if frame.fuel != u64::MAX {
                frame.fuel -= inner_iterations;
            }
            self.run_blocks(outer, nest, (min, extent, all), &mut scratch, frame)
        });
        frame.scratch = scratch;
        outcome
    }

    /// Runs all iterations of a nest, block by block.
    fn run_blocks(
        &self,
        outer: &Loop,
        nest: &VectorizedNest,
        (min, extent, all): (u64, u64, u64),
        scratch: &mut BlockScratch,
        frame: &mut Frame,
    ) -> Outcome {
        let size = if nest.boxes() { blocks_of(extent, all / extent) * (all / extent) } else { BLOCK as u64 };
        let mut start = 0;
        while start < all {
            let len = usize::try_from(size.min(all - start)).unwrap_or(BLOCK);
            if let Err(done) = run_block(nest, Block { start, len }, scratch, frame) {
                // Some iteration of the block probably traps. Running one by one from here finds out which. The nest has
                // paid for all of its iterations already, so it has fuel enough, and fuel and count are restored.
                let (fuel, iterations) = (frame.fuel, frame.iterations);
                frame.fuel = u64::MAX;
                self.run_from(outer, nest, 0, (min, extent), start + done as u64, frame)?;
                (frame.fuel, frame.iterations) = (fuel, iterations);
                return Ok(());
            }
            start += len as u64;
        }
        Ok(())
    }

    /// Runs the loop `at`, number `level` of the nest, one iteration at a time, starting at the iteration `position` of
    /// the nest below it.
    fn run_from(
        &self,
        at: &Loop,
        nest: &VectorizedNest,
        level: usize,
        (min, extent): (u64, u64),
        position: u64,
        frame: &mut Frame,
    ) -> Result<(), Box<Trap>> {
        let below: u64 = nest.inner[level..].iter().map(|inner| inner.extent).product();
        let mut next = position / below;
        self.run_code(&at.pre, frame)?;
        if let Some(inner) = nest.inner.get(level).filter(|_| !position.is_multiple_of(below)) {
            frame.registers[at.var as usize] = min.wrapping_add(next);
            // Beside the next loop of the nest there is only code that its range needs.
            for node in &at.body {
                match node {
                    Node::Loop(child) => {
                        self.run_from(child, nest, level + 1, (inner.min, inner.extent), position % below, frame)?;
                    }
                    other => self.run_nodes(std::slice::from_ref(other), frame)?,
                }
            }
            next += 1;
        }
        for at_position in next..extent {
            frame.registers[at.var as usize] = min.wrapping_add(at_position);
            self.run_nodes(&at.body, frame)?;
        }
        Ok(())
    }
}

/// Runs a block: all phases, one after the other.
///
/// # Errors
/// The number of iterations completed before the first one that failed. Several phases have completed none; what they have
/// written, the same iterations overwrite before they read it.
fn run_block(nest: &VectorizedNest, block: Block, scratch: &mut BlockScratch, frame: &Frame) -> Result<(), usize> {
    let alone = nest.phases.len() == 1;
    for (phase, state) in nest.phases.iter().zip(&mut scratch.phases) {
        state.start(block).ok_or(0usize)?;
        let done = run_phase(phase, block.len, state, &mut scratch.staging, frame);
        done.map_err(|completed| if alone { completed } else { 0 })?;
    }
    Ok(())
}
