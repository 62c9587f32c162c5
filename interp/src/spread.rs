//! Loops whose iterations are distributed over several threads.
//!
//! A worker has its own copy of the frame; memory is shared, or each has a part for itself (`parts`). Loops inside a worker
//! are not distributed again. Iterations and fuel are counted as in a sequential run, and the first trap in program order is
//! reported, so that neither the result nor the report depends on the number of threads.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tilewright_ir::sabotage;

use crate::block_plan::BLOCK;
use crate::block_scratch::Affine;
use crate::code::Loop;
use crate::config::Trap;
use crate::exec::{Frame, Machine, Outcome};
use crate::parts::{Task, Work, of_tasks};

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
    pub(crate) fn run_parallel(&self, inner: &Loop, min: u64, extent: u64, frame: &mut Frame) -> Outcome {
        self.run_code(&inner.pre, frame)?;
        let chunks = extent.min(self.threads as u64 * 8);
        let size = if sabotage::on("spread-drops-rest") { extent / chunks } else { extent.div_ceil(chunks) };
        // The vectorized form of a split loop needs whole parts.
        let split = inner.vectorized.as_ref().and_then(|nest| nest.splits.first().copied()).unwrap_or(1);
        let size = size.next_multiple_of(split);
        let starts = (0..chunks).map(|chunk| chunk * size).take_while(|&start| start < extent);
        let tasks: Vec<Task> = starts.map(|start| start..(start + size).min(extent)).collect();
        let mut scratch = std::mem::take(&mut frame.scratch);
        let nest = inner.vectorized.as_ref();
        let nest = nest.filter(|nest| self.enter(inner, nest, (min, extent), &mut scratch, frame).is_some());
        let span = |cells: &Affine, task: &Task| cells.span_of(task.start / split..task.end / split);
        let work = nest.map(|nest| Work { nest, scratch: &scratch, span: &span });
        let outcome = self.run_tasks(tasks, work.as_ref(), frame, |Range { start, end }, frame, is_needed| {
            if let Some(outcome) = self.run_vectorized(inner, min.wrapping_add(start), end - start, frame) {
                return outcome;
            }
            for position in (start..end).take_while(|_| is_needed()) {
                frame.registers[inner.var as usize] = min.wrapping_add(position);
                self.run_nodes(&inner.body, frame)?;
            }
            Ok(())
        });
        frame.scratch = scratch;
        let iterations = outcome?.saturating_add(extent);
        frame.iterations = frame.iterations.saturating_add(iterations);
        if frame.fuel != u64::MAX {
            frame.fuel = frame.fuel.saturating_sub(iterations);
        }
        Ok(())
    }

    /// Runs the iterations of a nest that runs strip by strip in chunks on all threads, whatever loop they belong to. `None`, with nothing
    /// done, if it does not, if it is not worth while, or if an iteration may overwrite what another one has written.
    pub(crate) fn run_flat(&self, outer: &Loop, min: u64, extent: u64, frame: &mut Frame) -> Option<Outcome> {
        let nest = outer.vectorized.as_ref().filter(|nest| nest.only_computes())?;
        if !self.may_spread(outer, extent, frame) {
            return None;
        }
        let mut scratch = std::mem::take(&mut frame.scratch);
        let entered = self.enter(outer, nest, (min, extent), &mut scratch, frame);
        let entered = entered.filter(|&(all, _)| scratch.ascends(nest, all));
        let outcome = entered.map(|(all, inner_iterations)| {
            // With two tasks a thread that is late leaves one to another; each more costs some percent.
            let size = all.div_ceil(self.threads as u64 * 2).next_multiple_of(BLOCK as u64);
            let count = if sabotage::on("spread-drops-rest") { all / size } else { all.div_ceil(size) };
            let tasks = (0..count).map(|task| task * size..all.min((task + 1) * size)).collect();
            let span = |cells: &Affine, task: &Task| cells.ascending_span(task);
            let work = Work { nest, scratch: &scratch, span: &span };
            self.run_tasks(tasks, Some(&work), frame, |task, frame, _| {
                let mut scratch = std::mem::take(&mut frame.scratch);
                let entered = self.enter(outer, nest, (min, extent), &mut scratch, frame);
                let outcome = if entered.is_some() && scratch.ascends(nest, all) {
                    self.run_blocks(outer, nest, (min, extent), task, &mut scratch, frame)
                } else {
                    self.run_range(outer, nest, 0, min, task, frame)
                };
                frame.scratch = scratch;
                outcome
            })?;
            scratch.mark(nest, frame);
            let iterations = extent.saturating_add(inner_iterations);
            frame.iterations = frame.iterations.saturating_add(iterations);
            if frame.fuel != u64::MAX {
                frame.fuel = frame.fuel.saturating_sub(iterations);
            }
            Ok(())
        });
        frame.scratch = scratch;
        outcome
    }

    /// Runs tasks on all threads, each with a frame of its own. Returns the number of iterations that they have counted.
    ///
    /// Tasks do not affect each other, so all of them before a failing one still run. The trap of the first failing task is returned,
    /// which is the first one in program order. A task that another one before it has made needless may stop early.
    fn run_tasks<'m>(
        &self,
        tasks: Vec<Task>,
        work: Option<&Work<'_>>,
        frame: &mut Frame<'m>,
        run: impl for<'w> Fn(Task, &mut Frame<'w>, &dyn Fn() -> bool) -> Outcome + Sync,
    ) -> Result<u64, Box<Trap>> {
        let mut memories = std::mem::take(&mut frame.memories);
        let template = Frame { worker: true, iterations: 0, ..frame.clone() };
        let parts = of_tasks(&mut memories, &tasks, work);
        let queues = Queues::of(tasks.into_iter().zip(parts).collect(), self.threads);
        let (failed, results) = (AtomicUsize::new(usize::MAX), Mutex::new(Vec::new()));
        let work_off = |thread: usize| {
            let mut frame = template.clone();
            while let Some((number, (task, memories))) = queues.next(thread) {
                (frame.memories, frame.iterations, frame.fuel) = (memories, 0, template.fuel);
                let is_needed = || failed.load(Relaxed) >= number;
                let done = if is_needed() { run(task, &mut frame, &is_needed) } else { Ok(()) };
                if done.is_err() {
                    failed.fetch_min(number, Relaxed);
                }
                lock(&results).push((number, done.map(|()| frame.iterations)));
            }
        };
        // This thread is one of them: it need not wait until another one wakes up.
        match self.pool {
            Some(pool) => pool.in_place_scope(|scope| {
                let work_off = &work_off;
                (1..self.threads).for_each(|thread| scope.spawn(move |_| work_off(thread)));
                work_off(0);
            }),
            None => work_off(0),
        }
        drop(queues);
        frame.memories = memories;
        frame.parallel_loops += 1;
        let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
        results.sort_unstable_by_key(|&(number, _)| number);
        // The first error is the first one in program order.
        results.into_iter().try_fold(0, |sum: u64, (_, result)| Ok(sum.saturating_add(result?)))
    }
}

/// The tasks of each thread, with their numbers. These are neighbours, so that a thread keeps to a part of the memory; one that has no
/// more takes the last one of another thread.
struct Queues<T>(Vec<Mutex<VecDeque<(usize, T)>>>);

impl<T> Queues<T> {
    fn of(tasks: Vec<T>, threads: usize) -> Self {
        let each = tasks.len().div_ceil(threads.max(1));
        let mut tasks = tasks.into_iter().enumerate();
        Self((0..threads).map(|_| Mutex::new(tasks.by_ref().take(each).collect())).collect())
    }

    /// The next task of a thread.
    fn next(&self, thread: usize) -> Option<(usize, T)> {
        let own = self.0.get(thread).and_then(|own| lock(own).pop_front());
        own.or_else(|| self.0.iter().find_map(|other| lock(other).pop_back()))
    }
}

/// Locks what threads share for a moment.
fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
