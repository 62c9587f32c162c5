//! The operations of a block plan, each on all iterations of a block.

use tilewright_ir::ScalarType;

use crate::block_ops::{
    accumulate_floats, accumulate_products, combine_floats, compare_floats, compute_block, fold_block, fold_floats,
};
use crate::block_plan::{AccessRef, BlockOp, Gather, Kind, Reduce, Store, VecReg};
use crate::block_scratch::{Affine, PhaseScratch, Source, Staging};
use crate::cells::Lane;
use crate::code::{Instr, Op, Phase};
use crate::cursor::Run;
use crate::exec::Frame;
use crate::memory::{Memory, View};
use crate::num::{f32_of, from_memory, to_memory};

/// Runs a phase for a block of `len` iterations.
///
/// # Errors
/// The number of iterations completed before the first one that failed; memory is as these iterations left it.
pub(crate) fn run_phase(
    phase: &Phase,
    len: usize,
    state: &mut PhaseScratch,
    staging: &mut Staging,
    frame: &Frame,
) -> Result<(), usize> {
    if !phase.turns.is_empty() {
        return run_turns(phase, len, state, staging, frame).ok_or(0);
    }
    run_ops(phase, len, state, staging, frame).ok_or(0usize)?;
    for store in &phase.plan.stores {
        // Only an allocation that is smaller than the view can fail here; the first failing store then changes nothing
        // that a repetition would not write again.
        run_store(store, phase, len, state, staging, frame).ok_or(0usize)?;
    }
    match &phase.plan.reduce {
        Some(reduce) => run_reduce(reduce, phase, len, state, staging, frame),
        None => Ok(()),
    }
}

/// Runs a reduction turn by turn. The elements stay in a buffer until all turns are done; if one fails, memory is as it was.
fn run_turns(phase: &Phase, len: usize, state: &mut PhaseScratch, staging: &mut Staging, frame: &Frame) -> Option<()> {
    let reduce = phase.plan.reduce.as_ref()?;
    let number = reduce.access.stream()? as usize;
    let memory = memory_of(state.streams.get(number)?, frame)?;
    let is_float = phase.plan.kind(reduce.value) == Kind::Float;
    // Other operations use the buffers, too.
    let (mut floats, mut wide) = (std::mem::take(&mut staging.floats), std::mem::take(&mut staging.wide));
    let [elements, results] = &mut wide;
    staging.touched.fill(0);
    let mut run = || {
        let Affine { runs: target, shift, .. } = state.streams.get(number)?;
        let shift = *shift;
        let read = if is_float {
            memory.read_runs(target, shift, floats.get_mut(..len)?)
        } else {
            memory.read_runs(target, shift, elements.get_mut(..len)?)
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
    memory: &Memory,
    target: &Affine,
    mask: Option<&[u64]>,
    cells: &mut [i64],
    values: &[L],
) -> bool {
    if mask.is_none() {
        return memory.write_runs(&target.runs, target.shift, values);
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

/// The memory of a stream.
fn memory_of<'f>(stream: &Affine, frame: &'f Frame) -> Option<&'f Memory<'f>> {
    frame.memories.get(stream.slot())?.as_deref()
}

/// Runs the operations that precede the stores; `None` if the block must be abandoned.
fn run_ops(phase: &Phase, len: usize, state: &mut PhaseScratch, staging: &mut Staging, frame: &Frame) -> Option<()> {
    let skips = state.skips_indices;
    let ops = phase.plan.ops.iter().zip(&phase.plan.for_indices);
    let mut needed = ops.filter(|(_, for_indices)| !(skips && **for_indices));
    needed.all(|(op, _)| run_op(op, phase, len, state, staging, frame)).then_some(())
}

/// Runs an operation on a block. Returns false if the block must be abandoned.
fn run_op(
    op: &BlockOp,
    phase: &Phase,
    len: usize,
    state: &mut PhaseScratch,
    staging: &mut Staging,
    frame: &Frame,
) -> bool {
    match *op {
        // A stream needs no mask: accesses in a branch are gathers.
        BlockOp::Load { access, ty, d, mask } => match phase.plan.kind(d) {
            Kind::Wide => {
                let mut out = std::mem::take(&mut state.values[d as usize]);
                let loaded = load(access, mask, phase, &mut out[..len], state, staging, frame).is_some();
                decode_block(ty, &mut out[..len]);
                state.values[d as usize] = out;
                loaded
            }
            Kind::Float => {
                if phase.plan.is_operand(d) && find_source(access, d, state, frame).is_some() {
                    return true;
                }
                let mut out = std::mem::take(&mut state.floats[d as usize]);
                let loaded = load(access, mask, phase, &mut out[..len], state, staging, frame).is_some();
                state.floats[d as usize] = out;
                loaded
            }
        },
        BlockOp::Compute { ref instr, mask } => compute(instr, mask, len, state),
        BlockOp::Arithmetic { op, d, operands: [a, b] } => {
            let mut out = std::mem::take(&mut state.floats[d as usize]);
            combine_floats(op, &mut out[..len], state.operand(a, len, frame), state.operand(b, len, frame));
            state.floats[d as usize] = out;
            true
        }
        BlockOp::Compare { op, d, operands: [a, b] } => {
            let out = &mut state.values[d as usize][..len];
            compare_floats(op, out, &state.floats[a as usize][..len], &state.floats[b as usize][..len]);
            true
        }
        BlockOp::Choose { mask, d, operands: [a, b] } => {
            let mut out = std::mem::take(&mut state.floats[d as usize]);
            let pairs = state.floats[a as usize].iter().zip(&state.floats[b as usize]);
            let chosen = pairs.zip(&state.values[mask as usize]);
            out[..len].iter_mut().zip(chosen).for_each(|(to, ((&a, &b), &mask))| *to = if mask != 0 { a } else { b });
            state.floats[d as usize] = out;
            true
        }
        BlockOp::Copy { from, d, mask } => {
            let mut out = std::mem::take(&mut state.floats[d as usize]);
            let values = &state.floats[from as usize][..len];
            match mask {
                None => out[..len].copy_from_slice(values),
                // Both branches of a conditional move their value to one register, each under its own mask, so the lanes
                // of the other branch must be kept.
                Some(mask) => {
                    let masked = values.iter().zip(&state.values[mask as usize]);
                    out.iter_mut()
                        .zip(masked)
                        .for_each(|(to, (&value, &mask))| *to = if mask != 0 { value } else { *to });
                }
            }
            state.floats[d as usize] = out;
            true
        }
        BlockOp::Convert { from, d } => {
            let (wide, floats) = (&mut state.values, &mut state.floats);
            match phase.plan.kind(d) {
                Kind::Wide => {
                    let pairs = wide[d as usize].iter_mut().zip(&floats[from as usize][..len]);
                    pairs.for_each(|(to, value)| *to = value.bits());
                }
                Kind::Float => {
                    let pairs = floats[d as usize].iter_mut().zip(&wide[from as usize][..len]);
                    pairs.for_each(|(to, &value)| *to = f32_of(value));
                }
            }
            true
        }
        BlockOp::Assert { cond, mask } => {
            let cond = &state.values[cond as usize][..len];
            let active = |at: usize| mask.is_none_or(|mask| state.values[mask as usize][at] != 0);
            cond.iter().enumerate().all(|(at, &holds)| holds != 0 || !active(at))
        }
    }
}

/// Runs a computation on registers of 64 bits. Returns false if the block must be abandoned.
fn compute(instr: &Instr, mask: Option<VecReg>, len: usize, state: &mut PhaseScratch) -> bool {
    let mut out = std::mem::take(&mut state.values[instr.d as usize]);
    let operand = |reg: VecReg| &state.values[reg as usize][..len];
    let mask = mask.map(operand);
    let done = match (instr.op, mask) {
        // As for `BlockOp::Copy`.
        (Op::Move, Some(mask)) => {
            let moved = out.iter_mut().zip(mask).zip(operand(instr.a));
            moved.filter(|((_, mask), _)| **mask != 0).for_each(|((to, _), value)| *to = *value);
            true
        }
        _ => compute_block(instr, &mut out[..len], [operand(instr.a), operand(instr.b), operand(instr.c)], mask),
    };
    state.values[instr.d as usize] = out;
    done
}

/// Takes the values of a register from elsewhere: from memory, or one number for all iterations. `None` if they have to be
/// loaded.
fn find_source(access: AccessRef, d: VecReg, state: &mut PhaseScratch, frame: &Frame) -> Option<()> {
    let number = access.stream()?;
    let scalar = load_scalar(state.streams.get(number as usize)?, frame).map(Source::Scalar);
    let source = scalar.or_else(|| state.floats_of(number, frame).map(|_| Source::Memory(number)));
    *state.sources.get_mut(d as usize)? = source.unwrap_or(Source::Register);
    source.map(drop)
}

/// The element of a stream that has one for all iterations of the block; `None` if it has several, or it cannot be read.
fn load_scalar(stream: &Affine, frame: &Frame) -> Option<f32> {
    let [Run { step: 0, first, .. }] = stream.runs.as_slice() else { return None };
    let mut value = [0f32];
    let run = Run { at: 0, len: 1, first: *first, step: 0 };
    memory_of(stream, frame)?.read_runs(&[run], stream.shift, &mut value).then_some(value[0])
}

/// Loads the bits of elements; `None` if one is out of bounds, or undefined where that is checked.
fn load<L: Lane>(
    access: AccessRef,
    mask: Option<VecReg>,
    phase: &Phase,
    out: &mut [L],
    state: &PhaseScratch,
    staging: &mut Staging,
    frame: &Frame,
) -> Option<()> {
    let len = out.len();
    let loaded = match access {
        AccessRef::Stream(number) => {
            let stream = state.streams.get(number as usize)?;
            memory_of(stream, frame)?.read_runs(&stream.runs, stream.shift, out)
        }
        AccessRef::Gather(number) => {
            let gather = &phase.plan.gathers[number as usize];
            if let Some(stream) = gather.stream.and_then(|number| state.known(number))
                && memory_of(stream, frame)?.read_runs(&stream.runs, stream.shift, out)
            {
                return Some(());
            }
            let cells = staging.cells.get_mut(..len)?;
            let view = gather_cells(gather, mask, cells, state, frame)?;
            let mask = mask.map(|mask| &state.values[mask as usize][..len]);
            frame.memories.get(view.slot)?.as_ref()?.read_cells(cells, mask, out)
        }
    };
    loaded.then_some(())
}

/// Converts the bits of elements to registers, in place.
fn decode_block(ty: ScalarType, values: &mut [u64]) {
    match ty {
        ScalarType::Float32 | ScalarType::Float64 | ScalarType::Int64 | ScalarType::UInt64 => {}
        ScalarType::Int32 => values.iter_mut().for_each(|bits| *bits = from_memory(ScalarType::Int32, *bits)),
        ScalarType::Bool
        | ScalarType::Int8
        | ScalarType::Int16
        | ScalarType::UInt8
        | ScalarType::UInt16
        | ScalarType::UInt32
        | ScalarType::Float16
        | ScalarType::BFloat16
        | ScalarType::Handle => values.iter_mut().for_each(|bits| *bits = from_memory(ty, *bits)),
    }
}

/// Computes the cells of a gather and returns its view; `None` if an index is out of bounds where the mask is not 0.
fn gather_cells<'f>(
    gather: &Gather,
    mask: Option<VecReg>,
    cells: &mut [i64],
    state: &PhaseScratch,
    frame: &'f Frame,
) -> Option<&'f View> {
    let view = frame.views[gather.view as usize].as_deref().filter(|view| view.per_lane == 1)?;
    if let Some(stream) = gather.stream.and_then(|number| state.known(number)) {
        stream.list(cells);
        return Some(view);
    }
    let len = cells.len();
    cells.fill(view.offset.checked_add(i64::try_from(gather.lane).ok()?)?);
    let mask = mask.map(|mask| &state.values[mask as usize][..len]);
    for ((&reg, &extent), &stride) in gather.indices.iter().zip(&view.extents).zip(&view.strides) {
        let indices = &state.values[reg as usize][..len];
        let outside = match mask {
            None => indices.iter().any(|&index| index >= extent),
            Some(mask) => indices.iter().zip(mask).any(|(&index, &mask)| index >= extent && mask != 0),
        };
        if outside {
            return None;
        }
        // Wrapping, because an index where the mask is 0 may be anything; its cell is not accessed.
        for (cell, &index) in cells.iter_mut().zip(indices) {
            *cell = cell.wrapping_add(index.cast_signed().wrapping_mul(stride));
        }
    }
    Some(view)
}

/// Runs a store; `None` if a cell is outside the allocation.
fn run_store(
    store: &Store,
    phase: &Phase,
    len: usize,
    state: &PhaseScratch,
    staging: &mut Staging,
    frame: &Frame,
) -> Option<()> {
    if phase.plan.kind(store.value) == Kind::Float {
        let values = state.floats.get(store.value as usize)?.get(..len)?;
        return write(store, phase, values, state, &mut staging.cells, frame);
    }
    let values = state.values.get(store.value as usize)?.get(..len)?;
    // A register holds a narrow float as `float64`; of any other type it holds the bits of the element in its low bits.
    if !matches!(store.ty, ScalarType::Float16 | ScalarType::BFloat16) {
        return write(store, phase, values, state, &mut staging.cells, frame);
    }
    let Staging { cells, wide: [staged, _], .. } = staging;
    staged.iter_mut().zip(values).for_each(|(to, &value)| *to = to_memory(store.ty, value));
    write(store, phase, staged.get(..len)?, state, cells, frame)
}

/// Writes the bits of elements; `None` if a cell is outside the allocation.
fn write<L: Lane>(
    store: &Store,
    phase: &Phase,
    values: &[L],
    state: &PhaseScratch,
    cells: &mut [i64],
    frame: &Frame,
) -> Option<()> {
    let written = match store.access {
        AccessRef::Stream(number) => {
            let stream = state.streams.get(number as usize)?;
            memory_of(stream, frame)?.write_runs(&stream.runs, stream.shift, values)
        }
        AccessRef::Gather(number) => {
            let gather = &phase.plan.gathers[number as usize];
            let mask = store.mask.map(|mask| &state.values[mask as usize][..values.len()]);
            if let Some(stream) = gather.stream.and_then(|number| state.known(number))
                && mask.is_none_or(|mask| !mask.contains(&0))
            {
                return memory_of(stream, frame)?.write_runs(&stream.runs, stream.shift, values).then_some(());
            }
            let cells = cells.get_mut(..values.len())?;
            let view = gather_cells(gather, store.mask, cells, state, frame)?;
            frame.memories.get(view.slot)?.as_ref()?.write_cells(cells, mask, values)
        }
    };
    written.then_some(())
}

/// Combines the values of a block with their elements, in program order.
///
/// # Errors
/// The number of iterations completed before the first one that failed.
fn run_reduce(
    reduce: &Reduce,
    phase: &Phase,
    len: usize,
    state: &PhaseScratch,
    staging: &mut Staging,
    frame: &Frame,
) -> Result<(), usize> {
    let is_float = phase.plan.kind(reduce.value) == Kind::Float;
    match reduce.access {
        AccessRef::Stream(number) => {
            let stream = state.streams.get(number as usize).ok_or(0usize)?;
            let memory = memory_of(stream, frame).ok_or(0usize)?;
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
            let memory = frame.memories[view.slot].as_ref().ok_or(0usize)?;
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
fn reduce_wide(reduce: &Reduce, run: &Run, memory: &Memory, values: &[u64], staging: &mut Staging) -> Option<()> {
    let values = values.get(run.at..run.at + run.len)?;
    if run.step == 0 {
        return reduce_one_wide(reduce, run, memory, values);
    }
    let [elements, results] = &mut staging.wide;
    let (elements, results) = (elements.get_mut(..run.len)?, results.get_mut(..run.len)?);
    let run = [Run { at: 0, ..*run }];
    memory.read_runs(&run, 0, elements).then_some(())?;
    decode_block(reduce.ty, elements);
    combine_wide(reduce, elements, results, values)?;
    memory.write_runs(&run, 0, results).then_some(())
}

/// Combines an element with values, one after the other, in registers of 64 bits.
fn reduce_one_wide(reduce: &Reduce, run: &Run, memory: &Memory, values: &[u64]) -> Option<()> {
    let (run, mut element) = ([Run { at: 0, len: 1, ..*run }], [0u64]);
    memory.read_runs(&run, 0, &mut element).then_some(())?;
    let end = fold_block(&reduce.instr, from_memory(reduce.ty, element[0]), values, reduce.element_first);
    memory.write_runs(&run, 0, &[to_memory(reduce.ty, end)]).then_some(())
}

/// [`reduce_wide`] in registers of floats.
fn reduce_floats(reduce: &Reduce, run: &Run, memory: &Memory, values: &[f32], staging: &mut Staging) -> Option<()> {
    let values = values.get(run.at..run.at + run.len)?;
    if run.step == 0 {
        return reduce_one_float(reduce, run, memory, values);
    }
    let elements = staging.floats.get_mut(..run.len)?;
    let run = [Run { at: 0, ..*run }];
    memory.read_runs(&run, 0, elements).then_some(())?;
    accumulate_floats(reduce.instr.op, elements, values, reduce.element_first);
    memory.write_runs(&run, 0, elements).then_some(())
}

/// [`reduce_one_wide`] in registers of floats.
fn reduce_one_float(reduce: &Reduce, run: &Run, memory: &Memory, values: &[f32]) -> Option<()> {
    let (run, mut element) = ([Run { at: 0, len: 1, ..*run }], [0f32]);
    memory.read_runs(&run, 0, &mut element).then_some(())?;
    let end = fold_floats(reduce.instr.op, element[0], values, reduce.element_first);
    memory.write_runs(&run, 0, &[end]).then_some(())
}
