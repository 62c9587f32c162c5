//! Reductions in a block: turn by turn in loops of their own, or one iteration after the other.

use std::sync::Arc;

use crate::block_exec::{decode_block, gather_cells, own_memory_of, run_ops};
use crate::block_ops::{accumulate_floats, accumulate_products, compute_block, fold_block, fold_floats};
use crate::block_plan::{AccessRef, Kind, Reduce};
use crate::block_scratch::{Affine, PhaseScratch, Staging};
use crate::cell_runs::Lane;
use crate::code::Phase;
use crate::cursor::{Places, Run};
use crate::exec::Frame;
use crate::memory::Memory;
use crate::num::{from_memory, to_memory};

/// Runs a reduction turn by turn. The elements stay in a buffer until all turns are done; if one fails, memory is as it was.
pub(crate) fn run_turns(
    phase: &Phase,
    len: usize,
    state: &mut PhaseScratch,
    staging: &mut Staging,
    frame: &mut Frame,
) -> Option<()> {
    let reduce = phase.plan.reduce.as_ref()?;
    let number = reduce.access.stream()? as usize;
    let is_float = phase.plan.kind(reduce.value) == Kind::Float;
    // Other operations use the buffers, too.
    let (mut floats, mut wide) = (std::mem::take(&mut staging.floats), std::mem::take(&mut staging.wide));
    let [elements, results] = &mut wide;
    let mut run = || {
        staging.touched.get_mut(..len)?.fill(0);
        let stream = state.streams.get(number)?;
        let memory = own_memory_of(stream, frame)?;
        let read = if is_float {
            memory.read_own(stream.places(), floats.get_mut(..len)?)
        } else {
            memory.read_own(stream.places(), elements.get_mut(..len)?)
        };
        read.then_some(())?;
        if !is_float {
            decode_block(reduce.ty, elements.get_mut(..len)?);
        }
        loop {
            run_ops(phase, len, state, staging, frame)?;
            if reduce.mask.is_some() && is_float {
                staging.saved.copy_from_slice(&floats);
            }
            if let Some([a, b]) = reduce.product {
                let (a, b) = (state.operand(a, len, frame), state.operand(b, len, frame));
                accumulate_products(floats.get_mut(..len)?, a, b);
            } else if is_float {
                let values = state.floats.get(reduce.value as usize)?.get(..len)?;
                accumulate_floats(reduce.instr.op, floats.get_mut(..len)?, values, reduce.element_first);
            } else {
                let values = state.values.get(reduce.value as usize)?.get(..len)?;
                combine_wide(reduce, elements, results.get_mut(..len)?, values)?;
                std::mem::swap(elements, results);
            }
            if let Some(mask) = reduce.mask {
                let mask = state.values.get(mask as usize)?.get(..len)?;
                staging.touched.iter_mut().zip(mask).for_each(|(touched, mask)| *touched |= mask);
                // Where the mask is 0 the element gets back the value that it had before this turn.
                if is_float {
                    restore(mask, &staging.saved, &mut floats);
                } else {
                    restore(mask, results, elements);
                }
            }
            if !state.next_turn() {
                break;
            }
        }
        let target = state.streams.get(number)?;
        let memory = own_memory_of(target, frame)?;
        let touched = staging.touched.get(..len)?;
        let mask = reduce.mask.map(|_| touched).filter(|touched| touched.contains(&0));
        let cells = staging.cells.get_mut(..len)?;
        let written = if is_float {
            write_masked(memory, target, mask, cells, floats.get(..len)?)
        } else {
            write_masked(memory, target, mask, cells, elements.get(..len)?)
        };
        written.then_some(())
    };
    let done = run();
    (staging.floats, staging.wide) = (floats, wide);
    done
}

/// Sets values back where a mask is 0.
fn restore<T: Copy>(mask: &[u64], saved: &[T], values: &mut [T]) {
    let pairs = values.iter_mut().zip(saved).zip(mask);
    pairs.for_each(|((value, &saved), &mask)| *value = if mask == 0 { saved } else { *value });
}

/// Writes values to the cells of a stream that does not move from turn to turn, where the mask is not 0.
fn write_masked<L: Lane>(
    memory: &mut Arc<Memory>,
    target: &Affine,
    mask: Option<&[u64]>,
    cells: &mut [i64],
    values: &[L],
) -> bool {
    if mask.is_none() {
        return memory.write_places(target.places(), values);
    }
    target.list(cells);
    memory.write_cells(cells, mask, values)
}

/// Combines elements with values, in registers of 64 bits.
fn combine_wide(reduce: &Reduce, elements: &[u64], results: &mut [u64], values: &[u64]) -> Option<()> {
    let elements = elements.get(..results.len())?;
    let (a, b) = if reduce.element_first { (elements, values) } else { (values, elements) };
    compute_block(&reduce.instr, results, [a, b, a], None).then_some(())
}

/// Combines the values of a block with their elements, in program order.
///
/// # Errors
/// The number of iterations completed before the first one that failed.
pub(crate) fn run_reduce(
    reduce: &Reduce,
    phase: &Phase,
    len: usize,
    state: &PhaseScratch,
    staging: &mut Staging,
    frame: &mut Frame,
) -> Result<(), usize> {
    let is_float = phase.plan.kind(reduce.value) == Kind::Float;
    match reduce.access {
        AccessRef::Stream(number) => {
            let stream = state.streams.get(number as usize).ok_or(0usize)?;
            let memory = own_memory_of(stream, frame).ok_or(0usize)?;
            for run in &stream.runs {
                let done = if is_float {
                    reduce_floats(reduce, run, memory, &state.floats[reduce.value as usize], staging)
                } else {
                    reduce_wide(reduce, run, memory, &state.values[reduce.value as usize], staging)
                };
                done.ok_or(run.at)?;
            }
            Ok(())
        }
        AccessRef::Gather(number) => {
            let cells = staging.cells.get_mut(..len).ok_or(0usize)?;
            let gather = &phase.plan.gathers[number as usize];
            let view = gather_cells(gather, reduce.mask, cells, state, frame).ok_or(0usize)?;
            let slot = view.slot;
            let memory = frame.memories[slot].as_mut().ok_or(0usize)?;
            for (at, &first) in cells.iter().enumerate() {
                if reduce.mask.is_some_and(|mask| state.values[mask as usize][at] == 0) {
                    continue;
                }
                let run = Run { at, len: 1, first, step: 0 };
                let done = if is_float {
                    let values = [state.floats[reduce.value as usize][at]];
                    reduce_one_float(reduce, &run, memory, &values)
                } else {
                    let values = [state.values[reduce.value as usize][at]];
                    reduce_one_wide(reduce, &run, memory, &values)
                };
                done.ok_or(at)?;
            }
            Ok(())
        }
    }
}

/// Combines the values of a run with its elements, in registers of 64 bits.
fn reduce_wide(
    reduce: &Reduce,
    run: &Run,
    memory: &mut Arc<Memory>,
    values: &[u64],
    staging: &mut Staging,
) -> Option<()> {
    let values = values.get(run.at..run.at + run.len)?;
    if run.step == 0 {
        return reduce_one_wide(reduce, run, memory, values);
    }
    let [elements, results] = &mut staging.wide;
    let (elements, results) = (elements.get_mut(..run.len)?, results.get_mut(..run.len)?);
    let run = Run { at: 0, ..*run };
    memory.read_own(Places::of(&run), elements).then_some(())?;
    decode_block(reduce.ty, elements);
    combine_wide(reduce, elements, results, values)?;
    memory.write_places(Places::of(&run), results).then_some(())
}

/// Combines an element with values, one after the other, in registers of 64 bits.
fn reduce_one_wide(reduce: &Reduce, run: &Run, memory: &mut Arc<Memory>, values: &[u64]) -> Option<()> {
    let (run, mut element) = (Run { at: 0, len: 1, ..*run }, [0u64]);
    memory.read_own(Places::of(&run), &mut element).then_some(())?;
    let end = fold_block(&reduce.instr, from_memory(reduce.ty, element[0]), values, reduce.element_first);
    memory.write_places(Places::of(&run), &[to_memory(reduce.ty, end)]).then_some(())
}

/// [`reduce_wide`] in registers of floats.
fn reduce_floats(
    reduce: &Reduce,
    run: &Run,
    memory: &mut Arc<Memory>,
    values: &[f32],
    staging: &mut Staging,
) -> Option<()> {
    let values = values.get(run.at..run.at + run.len)?;
    if run.step == 0 {
        return reduce_one_float(reduce, run, memory, values);
    }
    let elements = staging.floats.get_mut(..run.len)?;
    let run = Run { at: 0, ..*run };
    memory.read_own(Places::of(&run), elements).then_some(())?;
    accumulate_floats(reduce.instr.op, elements, values, reduce.element_first);
    memory.write_places(Places::of(&run), elements).then_some(())
}

/// [`reduce_one_wide`] in registers of floats.
fn reduce_one_float(reduce: &Reduce, run: &Run, memory: &mut Arc<Memory>, values: &[f32]) -> Option<()> {
    let (run, mut element) = (Run { at: 0, len: 1, ..*run }, [0f32]);
    memory.read_own(Places::of(&run), &mut element).then_some(())?;
    let end = fold_floats(reduce.instr.op, element[0], values, reduce.element_first);
    memory.write_places(Places::of(&run), &[end]).then_some(())
}
