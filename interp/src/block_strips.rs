//! Blocks of long rows of `float32`, which run strip by strip.
//!
//! Where every stream of a nest has its elements in long rows, or one element for a row, and the nest only computes, blocks are long,
//! so that what it takes to begin one hardly counts. All operations run on a strip before the next one: what one of them leaves to the
//! next stays in the processor's cache, and the last one writes its results to memory at once.
//!
//! ```text
//! for y in 50: for c in 1000: B[y, c] = A[y, c] * 2.0 + 1.0      strips of 512 cells in blocks of 8192:
//!                                                                register = A * 2.0; B = register + 1.0
//! ```

use std::ops::Range;
use std::sync::Arc;

use crate::block_exec::find_source;
use crate::block_ops::{Floats, combine_far_floats, combine_floats};
use crate::block_plan::{BLOCK, BlockOp, BlockPlan, Kind, Store, VecReg};
use crate::block_scratch::{Affine, PhaseScratch, Source, floats_of};
use crate::code::{Op, Phase};
use crate::cursor::{Places, Run};
use crate::exec::Frame;
use crate::memory::Memory;

/// Greatest number of iterations in a block of strips, each of which has [`BLOCK`] iterations.
const STRIPS: u64 = 16 * BLOCK as u64;

/// Least number of iterations for which the elements exceed the caches: 8 MiB for each stream.
pub(crate) const FAR: u64 = 1 << 21;

/// The number of iterations in the block from `start` on, of those before `end`, if `row` iterations have their elements in a row.
pub(crate) fn block_len(start: u64, row: u64, end: u64) -> u64 {
    STRIPS.min(row - start % row).min(end - start)
}

/// Whether a plan loads, computes and stores `float32` only, and writes memory that it does not access otherwise.
pub(crate) fn only_computes(plan: &BlockPlan) -> bool {
    let is_float = |reg: VecReg| plan.kind(reg) == Kind::Float;
    let is_simple = |op: &BlockOp| match *op {
        BlockOp::Load { access, d, mask, .. } => access.stream().is_some() && mask.is_none() && is_float(d),
        BlockOp::Arithmetic { .. } => true,
        _ => false,
    };
    let is_plain = |store: &Store| store.access.stream().is_some() && store.mask.is_none() && is_float(store.value);
    let mut written = plan.events.iter().filter(|event| event.write);
    plan.reduce.is_none()
        && !plan.stores.is_empty()
        && plan.ops.iter().all(is_simple)
        && plan.stores.iter().all(is_plain)
        && written.all(|write| plan.events.iter().filter(|event| event.slot == write.slot).count() == 1)
}

/// The number of iterations in which every stream has its elements in a row or is one element; `None` if there are too few, or if others
/// share the memory that is written.
pub(crate) fn row_of(phase: &Phase, streams: &[Affine], frame: &Frame) -> Option<u64> {
    if !phase.plan.only_computes || !phase.turns.is_empty() {
        return None;
    }
    let row = streams.iter().map(Affine::row_length).min()??;
    let is_whole = |stream: &Affine| stream.row_length().is_some_and(|length| length.is_multiple_of(row));
    let is_own = |store: &Store| {
        let slot = streams.get(store.access.stream()? as usize)?.slot();
        frame.memories.get(slot)?.as_ref().map(|memory| Arc::strong_count(memory) == 1)
    };
    let applies = row >= BLOCK as u64 && streams.iter().all(is_whole);
    (applies && phase.plan.stores.iter().all(|store| is_own(store) == Some(true))).then_some(row)
}

/// Runs a block of `len` iterations; `None` if it must be abandoned. What it has written then, the same iterations write again.
pub(crate) fn run_strips(phase: &Phase, len: usize, state: &mut PhaseScratch, frame: &mut Frame) -> Option<()> {
    let mut read = Vec::new();
    for op in &phase.plan.ops {
        if let BlockOp::Load { access, d, .. } = *op
            && find_source(access, d, state, frame).is_none()
        {
            take(state.streams.get(access.stream()? as usize)?.slot(), &mut read, frame);
        }
    }
    let slot_of = |store: &Store| Some(state.streams.get(store.access.stream()? as usize)?.slot());
    let slots: Option<Vec<usize>> = phase.plan.stores.iter().map(slot_of).collect();
    let mut written = Vec::new();
    slots.into_iter().flatten().for_each(|slot| take(slot, &mut written, frame));
    let done = run_into(phase, len, state, (&mut read, &mut written), frame);
    for (slot, memory) in read.into_iter().chain(written) {
        if let Some(place) = frame.memories.get_mut(slot) {
            *place = Some(memory);
        }
    }
    done
}

/// Memory that is not in its slot for the time of a block.
type Taken<'m> = Vec<(usize, Arc<Memory<'m>>)>;

/// Takes the memory out of a slot, if nobody shares it.
fn take<'m>(slot: usize, taken: &mut Taken<'m>, frame: &mut Frame<'m>) {
    let memory =
        frame.memories.get_mut(slot).and_then(|memory| memory.take_if(|memory| Arc::strong_count(memory) == 1));
    taken.extend(memory.map(|memory| (slot, memory)));
}

/// Runs a block whose stores write the given memory, one each.
fn run_into(
    phase: &Phase,
    len: usize,
    state: &mut PhaseScratch,
    (read, written): (&mut Taken<'_>, &mut Taken<'_>),
    frame: &Frame,
) -> Option<()> {
    let combine: Combine = if state.is_far { combine_far_floats } else { combine_floats };
    let PhaseScratch { floats, sources, streams, is_marked_later, .. } = state;
    let mut targets: Vec<&mut [f32]> = Vec::with_capacity(written.len());
    for (store, (_, memory)) in phase.plan.stores.iter().zip(written) {
        let stream = streams.get(store.access.stream()? as usize)?;
        let [run @ Run { step: 1, .. }] = stream.runs.as_slice() else { return None };
        if !*is_marked_later {
            memory.mark(stream.places()).then_some(())?;
        }
        targets.push(memory.own_floats(run, stream.shift)?);
    }
    (targets.len() == phase.plan.stores.len()).then_some(())?;
    let mut frozen: Vec<(usize, Memory<'_>)> = Vec::with_capacity(read.len());
    for (slot, memory) in read {
        frozen.push((*slot, Arc::get_mut(memory)?.freeze()));
    }
    let elsewhere = |source: &Source| match *source {
        Source::Scalar(value) => Some(Some(Floats::One(value))),
        Source::Memory(stream) => Some(Some(Floats::Each(floats_of(streams.get(stream as usize)?, frame)?))),
        Source::Register => Some(None),
    };
    let mut elsewhere: Vec<Option<Floats<'_>>> = sources.iter().map(elsewhere).collect::<Option<_>>()?;
    for op in &phase.plan.ops {
        if let BlockOp::Load { access, d, .. } = *op
            && let (stream, Some(known)) = (streams.get(access.stream()? as usize)?, elsewhere.get_mut(d as usize))
            && let (None, [run @ Run { step: 1, .. }]) = (&known, stream.runs.as_slice())
            && let Some((_, memory)) = frozen.iter().find(|(slot, _)| *slot == stream.slot())
        {
            *known = Some(Floats::Each(memory.fixed_floats(run, stream.shift)?));
        }
    }
    let mut strip = Strip { iterations: 0..0, elsewhere: &elsewhere, registers: floats, combine };
    for start in (0..len).step_by(BLOCK) {
        strip.iterations = start..len.min(start + BLOCK);
        for op in &phase.plan.ops {
            strip.run_op(op, streams, frame)?;
        }
        for (store, target) in phase.plan.stores.iter().zip(&mut targets) {
            let target = target.get_mut(strip.iterations.clone())?;
            match store.arithmetic {
                Some((op, [a, b])) => combine(op, target, strip.values(a)?, strip.values(b)?),
                None => match strip.values(store.value)? {
                    Floats::Each(values) => target.copy_from_slice(values),
                    Floats::One(value) => target.fill(value),
                },
            }
        }
    }
    Some(())
}

/// How arithmetic is done.
type Combine = fn(Op, &mut [f32], Floats<'_>, Floats<'_>);

/// The values of a strip.
struct Strip<'a> {
    /// Its iterations, counted from the start of the block.
    iterations: Range<usize>,
    /// For each register of floats that has its values elsewhere, those of the whole block.
    elsewhere: &'a [Option<Floats<'a>>],
    /// The registers of floats, with the values of the strip.
    registers: &'a mut [Vec<f32>],
    combine: Combine,
}

impl Strip<'_> {
    /// The values of a register.
    fn values(&self, reg: VecReg) -> Option<Floats<'_>> {
        Some(match *self.elsewhere.get(reg as usize)? {
            Some(Floats::One(value)) => Floats::One(value),
            Some(Floats::Each(values)) => Floats::Each(values.get(self.iterations.clone())?),
            None => Floats::Each(self.registers.get(reg as usize)?.get(..self.iterations.len())?),
        })
    }

    /// Runs an operation; `None` if the block must be abandoned.
    fn run_op(&mut self, op: &BlockOp, streams: &[Affine], frame: &Frame) -> Option<()> {
        let (BlockOp::Load { d, .. } | BlockOp::Arithmetic { d, .. }) = *op else { return None };
        if self.elsewhere.get(d as usize)?.is_some() {
            return Some(());
        }
        let mut values = std::mem::take(self.registers.get_mut(d as usize)?);
        let out = values.get_mut(..self.iterations.len());
        let done = out.and_then(|out| match *op {
            BlockOp::Load { access, .. } => self.load(streams.get(access.stream()? as usize)?, out, frame),
            BlockOp::Arithmetic { op, operands: [a, b], .. } => {
                (self.combine)(op, out, self.values(a)?, self.values(b)?);
                Some(())
            }
            _ => None,
        });
        *self.registers.get_mut(d as usize)? = values;
        done
    }

    /// Loads elements of a stream; `None` if one may not be read.
    fn load(&self, stream: &Affine, out: &mut [f32], frame: &Frame) -> Option<()> {
        let [run] = stream.runs.as_slice() else { return None };
        let first = run.first.wrapping_add(run.step.wrapping_mul(i64::try_from(self.iterations.start).ok()?));
        let run = Run { at: 0, len: out.len(), first, step: run.step };
        let memory = frame.memories.get(stream.slot())?.as_deref()?;
        memory.read_places(Places::of(&run).shifted(stream.shift), out).then_some(())
    }
}
