//! The operations of a block plan, each on all iterations of a block.

use std::sync::Arc;

use tilewright_ir::ScalarType;

use crate::block_ops::{combine_floats, compare_floats, compute_block};
use crate::block_plan::{AccessRef, BlockOp, Gather, Kind, Store, VecReg};
use crate::block_reduce::{run_reduce, run_turns};
use crate::block_scratch::{Affine, PhaseScratch, Source, Staging, floats_of};
use crate::block_strips::run_strips;
use crate::cell_runs::Lane;
use crate::code::{Instr, Op, Phase};
use crate::cursor::{Places, Run};
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
    frame: &mut Frame,
) -> Result<(), usize> {
    if state.row.is_some() {
        return run_strips(phase, len, state, frame).ok_or(0);
    }
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

/// The memory of a stream.
pub(crate) fn memory_of<'f>(stream: &Affine, frame: &'f Frame) -> Option<&'f Memory<'f>> {
    frame.memories.get(stream.slot())?.as_deref()
}

/// The memory of a stream, which the thread may have for itself.
pub(crate) fn own_memory_of<'f, 'm>(stream: &Affine, frame: &'f mut Frame<'m>) -> Option<&'f mut Arc<Memory<'m>>> {
    frame.memories.get_mut(stream.slot())?.as_mut()
}

/// Runs the operations that precede the stores; `None` if the block must be abandoned.
pub(crate) fn run_ops(
    phase: &Phase,
    len: usize,
    state: &mut PhaseScratch,
    staging: &mut Staging,
    frame: &mut Frame,
) -> Option<()> {
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
    frame: &mut Frame,
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
        BlockOp::Arithmetic { op, d, operands } => {
            arithmetic(op, d, operands, len, state, frame);
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

/// Runs an arithmetic operator on registers of floats.
fn arithmetic(op: Op, d: VecReg, [a, b]: [VecReg; 2], len: usize, state: &mut PhaseScratch, frame: &Frame) {
    let mut out = std::mem::take(&mut state.floats[d as usize]);
    combine_floats(op, &mut out[..len], state.operand(a, len, frame), state.operand(b, len, frame));
    state.floats[d as usize] = out;
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
pub(crate) fn find_source(access: AccessRef, d: VecReg, state: &mut PhaseScratch, frame: &Frame) -> Option<()> {
    let number = access.stream()?;
    let stream = state.streams.get(number as usize)?;
    let scalar = load_scalar(stream, frame).map(Source::Scalar);
    let source = scalar.or_else(|| floats_of(stream, frame).map(|_| Source::Memory(number)));
    *state.sources.get_mut(d as usize)? = source.unwrap_or(Source::Register);
    source.map(drop)
}

/// The element of a stream that has one for all iterations of the block; `None` if it has several, or it cannot be read.
fn load_scalar(stream: &Affine, frame: &Frame) -> Option<f32> {
    let [Run { step: 0, first, .. }] = stream.runs.as_slice() else { return None };
    let mut value = [0f32];
    let run = Run { at: 0, len: 1, first: *first, step: 0 };
    memory_of(stream, frame)?.read_places(Places::of(&run).shifted(stream.shift), &mut value).then_some(value[0])
}

/// Loads the bits of elements; `None` if one is out of bounds, or undefined where that is checked.
fn load<L: Lane>(
    access: AccessRef,
    mask: Option<VecReg>,
    phase: &Phase,
    out: &mut [L],
    state: &PhaseScratch,
    staging: &mut Staging,
    frame: &mut Frame,
) -> Option<()> {
    let len = out.len();
    let loaded = match access {
        AccessRef::Stream(number) => {
            let stream = state.streams.get(number as usize)?;
            own_memory_of(stream, frame)?.read_own(stream.places(), out)
        }
        AccessRef::Gather(number) => {
            let gather = &phase.plan.gathers[number as usize];
            if let Some(stream) = gather.stream.and_then(|number| state.known(number))
                && own_memory_of(stream, frame)?.read_own(stream.places(), out)
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
pub(crate) fn decode_block(ty: ScalarType, values: &mut [u64]) {
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
pub(crate) fn gather_cells<'f>(
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
    state: &mut PhaseScratch,
    staging: &mut Staging,
    frame: &mut Frame,
) -> Option<()> {
    if let Some((op, operands)) = store.arithmetic {
        if compute_in_memory(op, operands, store.access, len, state, frame).is_some() {
            return Some(());
        }
        arithmetic(op, store.value, operands, len, state, frame);
    }
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

/// Writes the results of an operator to the elements of a stream as they are computed; `None`, with memory unchanged, unless these lie
/// in a row of memory that nobody shares.
fn compute_in_memory(
    op: Op,
    [a, b]: [VecReg; 2],
    access: AccessRef,
    len: usize,
    state: &PhaseScratch,
    frame: &mut Frame,
) -> Option<()> {
    let stream = state.streams.get(access.stream()? as usize)?;
    let [run @ Run { step: 1, .. }] = stream.runs.as_slice() else { return None };
    // The operands are in registers or in memory that nobody writes.
    let mut memory = frame.memories.get_mut(stream.slot())?.take()?;
    let target = memory.own_floats(run, stream.shift);
    let done =
        target.map(|target| combine_floats(op, target, state.operand(a, len, frame), state.operand(b, len, frame)));
    let done = done.filter(|()| memory.mark(stream.places()));
    *frame.memories.get_mut(stream.slot())? = Some(memory);
    done
}

/// Writes the bits of elements; `None` if a cell is outside the allocation.
fn write<L: Lane>(
    store: &Store,
    phase: &Phase,
    values: &[L],
    state: &PhaseScratch,
    cells: &mut [i64],
    frame: &mut Frame,
) -> Option<()> {
    let written = match store.access {
        AccessRef::Stream(number) => {
            let stream = state.streams.get(number as usize)?;
            own_memory_of(stream, frame)?.write_places(stream.places(), values)
        }
        AccessRef::Gather(number) => {
            let gather = &phase.plan.gathers[number as usize];
            let mask = store.mask.map(|mask| &state.values[mask as usize][..values.len()]);
            if let Some(stream) = gather.stream.and_then(|number| state.known(number))
                && mask.is_none_or(|mask| !mask.contains(&0))
            {
                return own_memory_of(stream, frame)?.write_places(stream.places(), values).then_some(());
            }
            let cells = cells.get_mut(..values.len())?;
            let view = gather_cells(gather, store.mask, cells, state, frame)?;
            frame.memories.get(view.slot)?.as_ref()?.write_cells(cells, mask, values)
        }
    };
    written.then_some(())
}
