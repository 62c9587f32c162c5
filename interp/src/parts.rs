//! The memory that the threads of a distributed nest get: each has the cells that it writes for itself.
//!
//! ```text
//! for y in 50: for c in 1000: B[y, c] = A[y, c] * 2.0 + 1.0      iterations 0..25 of y: cells 0..25000 of B, and all of A
//!                                                                iterations 25..50:     cells 25000..50000, and all of A
//! ```
//!
//! A thread writes many of its own cells at once, and reads many of those that nobody writes. Memory is shared, cell by cell,
//! where that does not work: someone else holds it, or the iterations of two threads lie between each other in it.

use std::ops::Range;
use std::sync::Arc;

use crate::block_plan::{AccessEvent, AccessRef};
use crate::block_scratch::{Affine, BlockScratch};
use crate::code::{Phase, VectorizedNest};
use crate::memory::Memory;

/// The memory in each slot, if one is alive.
pub(crate) type Memories<'m> = Vec<Option<Arc<Memory<'m>>>>;

/// The iterations that one task runs: of the outermost loop, or of the nest.
pub(crate) type Task = Range<u64>;

/// A nest that tasks run, and its state for all of its iterations.
pub(crate) struct Work<'a> {
    pub(crate) nest: &'a VectorizedNest,
    pub(crate) scratch: &'a BlockScratch,
    pub(crate) span: &'a Span<'a>,
}

/// The least and the greatest cell of a stream in a task.
pub(crate) type Span<'a> = dyn Fn(&Affine, &Task) -> Option<(i64, i64)> + 'a;

/// What a nest does with the memory in a slot.
enum Use {
    /// Each task writes cells in its range and reads none of those that other tasks write.
    Apart(Vec<Range<usize>>),
    /// It writes any cells.
    Written,
    /// It writes none.
    Read,
}

/// The memory for each task, in the order of the tasks. It is shared unless these run a nest.
pub(crate) fn of_tasks<'w, 'm: 'w>(
    memories: &'w mut Memories<'m>,
    tasks: &[Task],
    work: Option<&Work<'_>>,
) -> Vec<Memories<'w>> {
    let mut all: Vec<Memories<'w>> = tasks.iter().map(|_| Memories::with_capacity(memories.len())).collect();
    for (slot, memory) in memories.iter_mut().enumerate() {
        let mut parts = Vec::new();
        if let Some(memory) = memory {
            let used = work.map_or(Use::Written, |work| use_of(slot, work, tasks));
            let is_own = Arc::get_mut(memory).is_some();
            match used {
                Use::Apart(ranges) if is_own && memory.can_be_parted(&ranges) => {
                    parts = Arc::get_mut(memory).map(|memory| memory.parts(&ranges)).unwrap_or_default();
                }
                Use::Read if is_own => {
                    let frozen = Arc::get_mut(memory).map(|memory| Arc::new(memory.freeze()));
                    give(&mut all, || frozen.clone());
                    continue;
                }
                Use::Apart(_) | Use::Written | Use::Read => {
                    give(&mut all, || Some(Arc::clone(memory)));
                    continue;
                }
            }
        }
        let mut parts = parts.into_iter().map(Arc::new);
        give(&mut all, || parts.next());
    }
    all
}

/// Gives each task its memory for the next slot.
fn give<'m>(all: &mut [Memories<'m>], mut memory: impl FnMut() -> Option<Arc<Memory<'m>>>) {
    for each in all {
        each.push(memory());
    }
}

/// What a nest does with the memory in a slot.
fn use_of(slot: usize, Work { nest, scratch, span }: &Work<'_>, tasks: &[Task]) -> Use {
    let of_phase = |phase: &'_ Phase| phase.plan.events.iter().any(|event| event.slot == slot && event.write);
    if !nest.phases.iter().any(of_phase) {
        return Use::Read;
    }
    let cells: Option<Vec<&Affine>> = nest
        .phases
        .iter()
        .zip(&scratch.phases)
        .flat_map(|(phase, state)| {
            let accesses = phase.plan.events.iter().filter(|event| event.slot == slot);
            accesses.map(move |event| state.known(stream_of(event, phase)?))
        })
        .collect();
    let range = |task: &Task| {
        let spans = cells.as_ref()?.iter().map(|cells| span(cells, task));
        let union = |(low, high): (i64, i64), span: (i64, i64)| (low.min(span.0), high.max(span.1));
        let (low, high) = spans.reduce(|a, b| a.zip(b).map(|(a, b)| union(a, b)))??;
        Some(usize::try_from(low).ok()?..usize::try_from(high).ok()?.checked_add(1)?)
    };
    let ranges: Option<Vec<Range<usize>>> = tasks.iter().map(range).collect();
    ranges.map_or(Use::Written, Use::Apart)
}

/// The stream with the elements of an access.
fn stream_of(event: &AccessEvent, phase: &Phase) -> Option<u32> {
    match event.access {
        AccessRef::Stream(number) => Some(number),
        AccessRef::Gather(number) => phase.plan.gathers.get(number as usize)?.stream,
    }
}
