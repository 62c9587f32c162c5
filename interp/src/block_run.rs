//! Execution of block plans: an innermost nest of loops runs a block of iterations at a time.
//!
//! [`Machine::run_vectorized`] tests once per entry of the nest that all streams stay in bounds and that no two accesses
//! overlap where the plan forbids it. A block in which anything else fails (a gather out of bounds, an undefined element,
//! a division by zero) is left to the one-by-one engine, which finds the iteration that traps.

use std::ops::Range;

use tilewright_ir::sabotage;

use crate::block_exec::run_phase;
use crate::block_plan::BLOCK;
use crate::block_scratch::{Block, BlockScratch, blocks_of};
use crate::block_strips::block_len;
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
        let nest = outer.vectorized.as_ref()?;
        let mut scratch = std::mem::take(&mut frame.scratch);
        let entered = self.enter(outer, nest, (min, extent), &mut scratch, frame);
        let outcome = entered.map(|(all, inner_iterations)| {
            frame.iterations = frame.iterations.saturating_add(inner_iterations);
            if frame.fuel != u64::MAX {
                frame.fuel -= inner_iterations;
            }
            self.run_blocks(outer, nest, (min, extent), 0..all, &mut scratch, frame)?;
            scratch.mark(nest, frame);
            Ok(())
        });
        frame.scratch = scratch;
        outcome
    }

    /// Prepares a run of a nest: finds the cells of its streams. Returns the number of iterations of all of its loops, and that of
    /// those inside the outermost one with the loops of reductions. `None` if the plan does not apply.
    pub(crate) fn enter(
        &self,
        outer: &Loop,
        nest: &VectorizedNest,
        (min, extent): (u64, u64),
        scratch: &mut BlockScratch,
        frame: &mut Frame,
    ) -> Option<(u64, u64)> {
        if sabotage::on("one-by-one") {
            return None;
        }
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
        scratch.prepare(nest, (min, extent), all, frame)?;
        Some((all, inner_iterations))
    }

    /// Runs iterations of a nest, block by block: all, or some if blocks are in program order.
    pub(crate) fn run_blocks(
        &self,
        outer: &Loop,
        nest: &VectorizedNest,
        (min, extent): (u64, u64),
        range: Range<u64>,
        scratch: &mut BlockScratch,
        frame: &mut Frame,
    ) -> Outcome {
        let inner: u64 = nest.inner.iter().map(|inner| inner.extent).product();
        let size = if nest.boxes() { blocks_of(extent, inner) * inner } else { BLOCK as u64 };
        let row = scratch.phases.first().and_then(|state| state.row);
        let Range { mut start, end } = range;
        while start < end {
            let len = row.map_or(size.min(end - start), |row| block_len(start, row, end));
            let len = usize::try_from(len).unwrap_or(BLOCK);
            if let Err(done) = run_block(nest, Block { start, len }, scratch, frame) {
                // Some iteration of the block probably traps. Running one by one from here finds out which. The nest has
                // paid for all of its iterations already, so it has fuel enough, and fuel and count are restored.
                let (fuel, iterations) = (frame.fuel, frame.iterations);
                frame.fuel = u64::MAX;
                self.run_range(outer, nest, 0, min, start + done as u64..end, frame)?;
                (frame.fuel, frame.iterations) = (fuel, iterations);
                return Ok(());
            }
            start += len as u64;
        }
        Ok(())
    }

    /// Runs iterations of the loop `at`, number `level` of the nest, and those below it, one at a time. They are numbered as
    /// iterations of the whole nest below the loops around it.
    pub(crate) fn run_range(
        &self,
        at: &Loop,
        nest: &VectorizedNest,
        level: usize,
        min: u64,
        range: Range<u64>,
        frame: &mut Frame,
    ) -> Result<(), Box<Trap>> {
        let below: u64 = nest.inner[level..].iter().map(|inner| inner.extent).product();
        self.run_code(&at.pre, frame)?;
        for position in range.start / below..range.end.div_ceil(below) {
            frame.registers[at.var as usize] = min.wrapping_add(position);
            let first = position * below;
            let part = range.start.max(first) - first..range.end.min(first + below) - first;
            match nest.inner.get(level) {
                // Beside the next loop of the nest there is only code that its range needs.
                Some(inner) if part != (0..below) => {
                    for node in &at.body {
                        match node {
                            Node::Loop(child) => {
                                self.run_range(child, nest, level + 1, inner.min, part.clone(), frame)?;
                            }
                            other => self.run_nodes(std::slice::from_ref(other), frame)?,
                        }
                    }
                }
                _ => self.run_nodes(&at.body, frame)?,
            }
        }
        Ok(())
    }
}

/// Runs a block: all phases, one after the other.
///
/// # Errors
/// The number of iterations completed before the first one that failed. Several phases have completed none; what they have
/// written, the same iterations overwrite before they read it.
fn run_block(nest: &VectorizedNest, block: Block, scratch: &mut BlockScratch, frame: &mut Frame) -> Result<(), usize> {
    let alone = nest.phases.len() == 1;
    for (phase, state) in nest.phases.iter().zip(&mut scratch.phases) {
        state.start(block).ok_or(0usize)?;
        let done = run_phase(phase, block.len, state, &mut scratch.staging, frame);
        done.map_err(|completed| if alone { completed } else { 0 })?;
    }
    Ok(())
}
