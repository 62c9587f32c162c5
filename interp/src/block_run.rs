//! Execution of block plans: an innermost nest of loops runs a block of iterations at a time.
//!
//! [`Machine::run_vectorized`] tests once per entry of the nest that all streams stay in bounds and that no two accesses
//! overlap where the plan forbids it. A block in which anything else fails (a gather out of bounds, an undefined element,
//! a division by zero) is left to the one-by-one engine, which finds the iteration that traps.

use tilewright_ir::ScalarType;
use tilewright_ir::sabotage;

use crate::block_ops::{compute_block, fold_block};
use crate::block_plan::{AccessRef, BLOCK, BlockOp, Gather, Reduce, Store, VecReg};
use crate::code::{Loop, Node, Op, VectorizedNest};
use crate::compile::MAX_NEST;
use crate::config::Trap;
use crate::cursor::Cursor;
use crate::exec::{Frame, Machine, Outcome};
use crate::memory::View;
use crate::num::{from_memory, to_memory};

/// Least number of iterations for which a plan is faster than running them one by one.
const MIN_ITERATIONS: u64 = 4;

/// Buffers that the plans of a thread use, one plan at a time; kept to save allocations.
#[derive(Default)]
pub(crate) struct BlockScratch {
    /// The vector registers, [`BLOCK`] values each.
    values: Vec<Vec<u64>>,
    /// The cells of each stream.
    streams: Vec<Cursor>,
    /// The loop variables that the plan reads, as sequences of values.
    counters: Vec<(VecReg, Cursor)>,
    /// The cells of the gather that is being executed.
    cells: Vec<i64>,
    /// Elements on their way to and from memory.
    staging: [Vec<u64>; 2],
}

impl Clone for BlockScratch {
    /// An empty one: the contents are meaningful only while a plan runs.
    fn clone(&self) -> Self {
        Self::default()
    }
}

/// The iterations `start .. start + len` of a nest, numbered in program order.
#[derive(Clone, Copy)]
struct Block {
    start: u64,
    len: usize,
}

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
        if all < MIN_ITERATIONS || inner_iterations > frame.fuel {
            return None;
        }
        self.run_code(&nest.pre, frame).and_then(|()| self.run_code(&nest.probe, frame)).ok()?;
        let mut scratch = std::mem::take(&mut frame.scratch);
        let prepared = prepare(&mut scratch, nest, min, extent, all, frame);
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
        let mut start = 0;
        while start < all {
            let len = usize::try_from(all - start).unwrap_or(BLOCK).min(BLOCK);
            if let Err(done) = run_block(nest, Block { start, len }, scratch, frame) {
                // Some iteration of the block probably traps. Running one by one from here finds out which. The nest has
                // paid for all of its iterations already, so fuel and count are restored.
                let (fuel, iterations) = (frame.fuel, frame.iterations);
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
        if let ([Node::Loop(child)], Some(inner)) = (at.body.as_slice(), nest.inner.get(level)) {
            frame.registers[at.var as usize] = min.wrapping_add(next);
            self.run_from(child, nest, level + 1, (inner.min, inner.extent), position % below, frame)?;
            next += 1;
        }
        for at_position in next..extent {
            frame.registers[at.var as usize] = min.wrapping_add(at_position);
            self.run_nodes(&at.body, frame)?;
        }
        Ok(())
    }
}

/// Prepares the buffers for a run of the nest. Returns `None` if some iteration's stream is out of bounds or accesses
/// that must be apart may overlap.
fn prepare(
    scratch: &mut BlockScratch,
    nest: &VectorizedNest,
    min: u64,
    extent: u64,
    all: u64,
    frame: &Frame,
) -> Option<()> {
    let (extents, levels, rank) = extents_of(nest, min, extent)?;
    let extents = &extents[..rank];
    scratch.streams.clear();
    for stream in &nest.streams {
        scratch.streams.push(stream_cursor(stream, extents, frame)?);
    }
    let are_apart = |&(a, b): &(u32, u32)| {
        let (a, b) = (a as usize, b as usize);
        if a == b {
            scratch.streams[a].is_injective()
        } else {
            scratch.streams[a].is_disjoint_from(&scratch.streams[b])
        }
    };
    if !nest.plan.apart.iter().all(are_apart) {
        return None;
    }
    if scratch.values.len() < nest.plan.n_vec_regs {
        scratch.values.resize(nest.plan.n_vec_regs, Vec::new());
    }
    for values in scratch.values[..nest.plan.n_vec_regs].iter_mut().chain(&mut scratch.staging) {
        values.resize(BLOCK, 0);
    }
    scratch.cells.resize(BLOCK, 0);
    let used = usize::try_from(all).unwrap_or(BLOCK).min(BLOCK);
    for &(vec_reg, reg) in &nest.plan.uniforms {
        scratch.values[vec_reg as usize][..used].fill(frame.registers[reg as usize]);
    }
    if let Some(zero) = nest.plan.zero {
        scratch.values[zero as usize][..used].fill(0);
    }
    scratch.counters.clear();
    for &(vec_reg, level) in &nest.plan.counters {
        let first = level.checked_sub(1).map_or(min, |inner| nest.inner[inner].min);
        let loops =
            extents.iter().zip(&levels).map(|(&extent, &(of, step))| (extent, if of == level { step } else { 0 }));
        scratch.counters.push((vec_reg, Cursor::new(0, first.cast_signed(), loops)?));
    }
    Some(())
}

/// The extents of all loops as streams see them, outermost first, each with the loop of the nest that it belongs to and how far one iteration moves
/// the variable of that; and their number. `None` if the range of a split loop is not divided by its number.
#[expect(clippy::type_complexity, reason = "a private helper with one caller")]
fn extents_of(
    nest: &VectorizedNest,
    min: u64,
    extent: u64,
) -> Option<([u64; MAX_NEST], [(usize, i64); MAX_NEST], usize)> {
    let (mut extents, mut levels, mut rank) = ([1; MAX_NEST], [(0, 0); MAX_NEST], 0);
    let loops = std::iter::once((min, extent)).chain(nest.inner.iter().map(|inner| (inner.min, inner.extent)));
    for (level, ((min, extent), &split)) in loops.zip(&nest.splits).enumerate() {
        if min % split != 0 || extent % split != 0 {
            return None;
        }
        if split > 1 {
            (*extents.get_mut(rank)?, *levels.get_mut(rank)?) = (extent / split, (level, i64::try_from(split).ok()?));
            rank += 1;
        }
        let innermost = if split > 1 { split } else { extent };
        (*extents.get_mut(rank)?, *levels.get_mut(rank)?) = (innermost, (level, 1));
        rank += 1;
    }
    Some((extents, levels, rank))
}

/// The cells of a stream. Returns `None` if an index is outside the view's extents in some iteration.
///
/// An affine index takes its extreme values at the corners of the iteration domain, so two sums per axis suffice.
fn stream_cursor(stream: &crate::code::Stream, extents: &[u64], frame: &Frame) -> Option<Cursor> {
    let view = frame.views[stream.view as usize].as_ref().filter(|view| view.per_lane == 1)?;
    let offset = if sabotage::on("stream-forgets-offset") { 0 } else { view.offset };
    let mut cell = offset.checked_add(i64::try_from(stream.lane).ok()?)?;
    let mut steps = [0i64; MAX_NEST];
    for ((dim, &bound), &stride) in stream.dims.iter().zip(&view.extents).zip(&view.strides) {
        let first = frame.registers[dim.reg as usize].cast_signed().checked_add(dim.plus)?;
        let (mut low, mut high) = (first, first);
        for ((&step, &extent), total) in dim.steps.iter().zip(extents).zip(&mut steps) {
            let reach = step.checked_mul(i64::try_from(extent - 1).ok()?)?;
            low = low.checked_add(reach.min(0))?;
            high = high.checked_add(reach.max(0))?;
            *total = total.checked_add(step.checked_mul(stride)?)?;
        }
        let bound = bound + u64::from(sabotage::on("bounds-off-by-one"));
        if low < 0 || high.cast_unsigned() >= bound || i128::from(high) > dim.max {
            return None;
        }
        cell = cell.checked_add(first.checked_mul(stride)?)?;
    }
    Cursor::new(view.slot, cell, extents.iter().copied().zip(steps))
}

/// Runs a block.
///
/// # Errors
/// The number of iterations completed before the first one that failed; memory is as these iterations left it.
fn run_block(nest: &VectorizedNest, block: Block, scratch: &mut BlockScratch, frame: &Frame) -> Result<(), usize> {
    for (reg, cursor) in &scratch.counters {
        let values = &mut scratch.values[*reg as usize];
        cursor.for_each_run(block.start, block.len, |position, first, step, count| {
            let mut value = first;
            for to in &mut values[position..position + count] {
                *to = value.cast_unsigned();
                value = value.wrapping_add(step);
            }
            true
        })?;
    }
    for op in &nest.plan.ops {
        if !run_op(op, nest, block, scratch, frame) {
            return Err(0);
        }
    }
    for store in &nest.plan.stores {
        // Only an allocation that is smaller than the view can fail here; the first failing store then changes nothing
        // that a repetition would not write again.
        run_store(store, nest, block, scratch, frame).ok_or(0usize)?;
    }
    match &nest.plan.reduce {
        Some(reduce) => run_reduce(reduce, nest, block, scratch, frame),
        None => Ok(()),
    }
}

/// Runs an operation on a block. Returns false if the block must be abandoned.
fn run_op(op: &BlockOp, nest: &VectorizedNest, block: Block, scratch: &mut BlockScratch, frame: &Frame) -> bool {
    let len = block.len;
    match op {
        // A stream needs no mask: accesses in a branch are gathers.
        BlockOp::Load { access, ty, d, mask } => {
            let mut out = std::mem::take(&mut scratch.values[*d as usize]);
            let loaded = match *access {
                AccessRef::Stream(number) => {
                    let cursor = &scratch.streams[number as usize];
                    frame.memories[cursor.slot].as_ref().is_some_and(|memory| {
                        let read = |position: usize, cell, step, count| {
                            memory.read_run(cell, step, &mut out[position..position + count])
                        };
                        cursor.for_each_run(block.start, len, read).is_ok()
                    })
                }
                AccessRef::Gather(number) => {
                    let gather = &nest.plan.gathers[number as usize];
                    gather_cells(gather, *mask, len, scratch, frame).is_some_and(|view| {
                        let mask = mask.map(|mask| &scratch.values[mask as usize][..len]);
                        let memory = frame.memories[view.slot].as_ref();
                        memory.is_some_and(|memory| memory.read_cells(&scratch.cells[..len], mask, &mut out[..len]))
                    })
                }
            };
            decode_block(*ty, &mut out[..len]);
            scratch.values[*d as usize] = out;
            loaded
        }
        BlockOp::Compute { instr, mask } => {
            let mut out = std::mem::take(&mut scratch.values[instr.d as usize]);
            let operand = |reg: VecReg| &scratch.values[reg as usize][..len];
            let mask = mask.map(operand);
            let done = match (instr.op, mask) {
                // Both branches of a conditional move their value to one register, each under its own mask, so the lanes of
                // the other branch must be kept.
                (Op::Move, Some(mask)) => {
                    let moved = out.iter_mut().zip(mask).zip(operand(instr.a));
                    moved.filter(|((_, mask), _)| **mask != 0).for_each(|((to, _), value)| *to = *value);
                    true
                }
                _ => {
                    compute_block(instr, &mut out[..len], [operand(instr.a), operand(instr.b), operand(instr.c)], mask)
                }
            };
            scratch.values[instr.d as usize] = out;
            done
        }
        BlockOp::Assert { cond, mask } => {
            let cond = &scratch.values[*cond as usize][..len];
            let active = |at: usize| mask.is_none_or(|mask| scratch.values[mask as usize][at] != 0);
            cond.iter().enumerate().all(|(at, &holds)| holds != 0 || !active(at))
        }
    }
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

/// Computes the cells of a gather into `scratch.cells` and returns its view; `None` if an index is out of bounds where
/// the mask is not 0.
fn gather_cells<'f>(
    gather: &Gather,
    mask: Option<VecReg>,
    len: usize,
    scratch: &mut BlockScratch,
    frame: &'f Frame,
) -> Option<&'f View> {
    let view = frame.views[gather.view as usize].as_deref().filter(|view| view.per_lane == 1)?;
    let cells = &mut scratch.cells[..len];
    cells.fill(view.offset.checked_add(i64::try_from(gather.lane).ok()?)?);
    let mask = mask.map(|mask| &scratch.values[mask as usize][..len]);
    for ((&reg, &extent), &stride) in gather.indices.iter().zip(&view.extents).zip(&view.strides) {
        let indices = &scratch.values[reg as usize][..len];
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
    nest: &VectorizedNest,
    block: Block,
    scratch: &mut BlockScratch,
    frame: &Frame,
) -> Option<()> {
    let len = block.len;
    let [staged, _] = &mut scratch.staging;
    let values = &scratch.values[store.value as usize][..len];
    // A register holds a narrow float as `float64`; of any other type it holds the bits of the element in its low bits.
    if matches!(store.ty, ScalarType::Float16 | ScalarType::BFloat16) {
        staged.iter_mut().zip(values).for_each(|(to, &value)| *to = to_memory(store.ty, value));
    } else {
        staged[..len].copy_from_slice(values);
    }
    match store.access {
        AccessRef::Stream(number) => {
            let cursor = &scratch.streams[number as usize];
            let memory = frame.memories[cursor.slot].as_ref()?;
            let write = |position: usize, cell, step, count| {
                memory.write_run(cell, step, &scratch.staging[0][position..position + count])
            };
            cursor.for_each_run(block.start, len, write).ok()
        }
        AccessRef::Gather(number) => {
            let view = gather_cells(&nest.plan.gathers[number as usize], store.mask, len, scratch, frame)?;
            let mask = store.mask.map(|mask| &scratch.values[mask as usize][..len]);
            let memory = frame.memories[view.slot].as_ref()?;
            memory.write_cells(&scratch.cells[..len], mask, &scratch.staging[0][..len]).then_some(())
        }
    }
}

/// Combines the values of a block with their elements, in program order.
///
/// # Errors
/// The number of iterations completed before the first one that failed.
fn run_reduce(
    reduce: &Reduce,
    nest: &VectorizedNest,
    block: Block,
    scratch: &mut BlockScratch,
    frame: &Frame,
) -> Result<(), usize> {
    let (instr, ty, len) = (&reduce.instr, reduce.ty, block.len);
    match reduce.access {
        AccessRef::Stream(number) => {
            let cursor = scratch.streams[number as usize];
            let BlockScratch { values, staging: [elements, results], .. } = scratch;
            let values = &values[reduce.value as usize][..len];
            let memory = frame.memories[cursor.slot].as_ref().ok_or(0usize)?;
            cursor.for_each_run(block.start, len, |position, cell, step, count| {
                let values = &values[position..position + count];
                let (elements, results) = (&mut elements[..count], &mut results[..count]);
                // The whole run updates one element, which stays in a register.
                if step == 0 {
                    if !memory.read_run(cell, 0, &mut elements[..1]) {
                        return false;
                    }
                    let start = from_memory(ty, elements[0]);
                    let end = fold_block(instr, start, values, reduce.element_first);
                    return memory.write_run(cell, 0, &[to_memory(ty, end)]);
                }
                if !memory.read_run(cell, step, elements) {
                    return false;
                }
                decode_block(ty, elements);
                let (a, b) = if reduce.element_first { (&*elements, values) } else { (values, &*elements) };
                compute_block(instr, results, [a, b, a], None) && memory.write_run(cell, step, results)
            })
        }
        AccessRef::Gather(number) => {
            let view =
                gather_cells(&nest.plan.gathers[number as usize], reduce.mask, len, scratch, frame).ok_or(0usize)?;
            let memory = frame.memories[view.slot].as_ref().ok_or(0usize)?;
            let values = &scratch.values[reduce.value as usize][..len];
            for (at, (&cell, &value)) in scratch.cells[..len].iter().zip(values).enumerate() {
                if reduce.mask.is_some_and(|mask| scratch.values[mask as usize][at] == 0) {
                    continue;
                }
                let mut element = [0];
                if !memory.read_run(cell, 0, &mut element) {
                    return Err(at);
                }
                let end = fold_block(instr, from_memory(ty, element[0]), &[value], reduce.element_first);
                if !memory.write_run(cell, 0, &[to_memory(ty, end)]) {
                    return Err(at);
                }
            }
            Ok(())
        }
    }
}
