//! Running plans: an innermost nest of loops, a block of iterations at a time.

use tilewright_ir::ScalarType;
use tilewright_ir::sabotage;

use crate::code::{Fast, Loop, Node, Op};
use crate::compile::MAX_NEST;
use crate::config::Trap;
use crate::cursor::Cursor;
use crate::exec::{Frame, Machine, Outcome};
use crate::lanes::{apply, fold};
use crate::memory::View;
use crate::num::{from_memory, to_memory};
use crate::plan::{BLOCK, Gather, Lane, Place, Reduce, Step, Store};

/// Iterations below which a plan costs more than it saves.
const WORTH: u64 = 4;

/// What the plans of a thread need; each uses it for itself.
#[derive(Default)]
pub(crate) struct Lanes {
    values: Vec<Vec<u64>>,
    streams: Vec<Cursor>,
    /// The variables of the nest, where they are asked for, as if they were cells.
    counters: Vec<(Lane, Cursor)>,
    cells: Vec<i64>,
    scratch: [Vec<u64>; 2],
}

impl Clone for Lanes {
    /// What is in them lasts for a plan only; a copy starts afresh.
    fn clone(&self) -> Self {
        Self::default()
    }
}

/// Iterations of a nest.
#[derive(Clone, Copy)]
struct Block {
    start: u64,
    len: usize,
}

impl Machine<'_> {
    /// Runs `extent` iterations of a loop from `min` on by its plan; none if it has none that may be used here, and then
    /// nothing has happened.
    pub(crate) fn vectorised(&self, outer: &Loop, min: u64, extent: u64, frame: &mut Frame) -> Option<Outcome> {
        let fast = outer.fast.as_ref().filter(|_| !sabotage::on("one-by-one"))?;
        let (mut all, mut inner_iterations) = (extent, 0u64);
        frame.registers[outer.var as usize] = min;
        for inner in &fast.inner {
            all = all.checked_mul(inner.extent)?;
            inner_iterations = inner_iterations.checked_add(all)?;
            frame.registers[inner.var as usize] = inner.min;
        }
        if all < WORTH || inner_iterations > frame.fuel {
            return None;
        }
        self.code(&fast.pre, frame).and_then(|()| self.code(&fast.probe, frame)).ok()?;
        let mut lanes = std::mem::take(&mut frame.lanes);
        let entered = enter(&mut lanes, fast, min, extent, all, frame);
        let outcome = entered.map(|()| {
            frame.iterations = frame.iterations.saturating_add(inner_iterations);
            if frame.fuel != u64::MAX {
                frame.fuel -= inner_iterations;
            }
            self.blocks(outer, fast, (min, extent, all), &mut lanes, frame)
        });
        frame.lanes = lanes;
        outcome
    }

    fn blocks(
        &self,
        outer: &Loop,
        fast: &Fast,
        (min, extent, all): (u64, u64, u64),
        lanes: &mut Lanes,
        frame: &mut Frame,
    ) -> Outcome {
        let mut start = 0;
        while start < all {
            let len = usize::try_from(all - start).unwrap_or(BLOCK).min(BLOCK);
            if let Err(done) = run_block(fast, Block { start, len }, lanes, frame) {
                // What cannot be done at once is done one by one; mostly to find which iteration traps.
                let (fuel, iterations) = (frame.fuel, frame.iterations);
                self.resume(outer, fast, 0, (min, extent), start + done as u64, frame)?;
                (frame.fuel, frame.iterations) = (fuel, iterations);
                return Ok(());
            }
            start += len as u64;
        }
        Ok(())
    }

    /// Runs the nest inside loop number `level` from the iteration `position` on.
    fn resume(
        &self,
        at: &Loop,
        fast: &Fast,
        level: usize,
        (min, extent): (u64, u64),
        position: u64,
        frame: &mut Frame,
    ) -> Result<(), Box<Trap>> {
        let below: u64 = fast.inner[level..].iter().map(|inner| inner.extent).product();
        let mut next = position / below;
        self.code(&at.pre, frame)?;
        if let ([Node::Loop(child)], Some(inner)) = (at.body.as_slice(), fast.inner.get(level)) {
            frame.registers[at.var as usize] = min.wrapping_add(next);
            self.resume(child, fast, level + 1, (inner.min, inner.extent), position % below, frame)?;
            next += 1;
        }
        for at_position in next..extent {
            frame.registers[at.var as usize] = min.wrapping_add(at_position);
            self.nodes(&at.body, frame)?;
        }
        Ok(())
    }
}

/// Prepares the lanes; none if an address of some iteration is out of bounds or accesses may meet.
fn enter(lanes: &mut Lanes, fast: &Fast, min: u64, extent: u64, all: u64, frame: &Frame) -> Option<()> {
    let mut extents = [extent; MAX_NEST];
    for (to, inner) in extents[1..].iter_mut().zip(&fast.inner) {
        *to = inner.extent;
    }
    let extents = &extents[..=fast.inner.len()];
    lanes.streams.clear();
    for stream in &fast.streams {
        lanes.streams.push(stream_cursor(stream, extents, frame)?);
    }
    let meets = |&(a, b): &(u32, u32)| {
        let (a, b) = (a as usize, b as usize);
        if a == b { lanes.streams[a].never_meets_itself() } else { lanes.streams[a].never_meets(&lanes.streams[b]) }
    };
    if !fast.plan.apart.iter().all(meets) {
        return None;
    }
    if lanes.values.len() < fast.plan.lanes {
        lanes.values.resize(fast.plan.lanes, Vec::new());
    }
    for values in lanes.values[..fast.plan.lanes].iter_mut().chain(&mut lanes.scratch) {
        values.resize(BLOCK, 0);
    }
    lanes.cells.resize(BLOCK, 0);
    let used = usize::try_from(all).unwrap_or(BLOCK).min(BLOCK);
    for &(lane, reg) in &fast.plan.uniforms {
        lanes.values[lane as usize][..used].fill(frame.registers[reg as usize]);
    }
    if let Some(zero) = fast.plan.zero {
        lanes.values[zero as usize][..used].fill(0);
    }
    lanes.counters.clear();
    for &(lane, level) in &fast.plan.counters {
        let first = level.checked_sub(1).map_or(min, |inner| fast.inner[inner].min);
        let loops = extents.iter().enumerate().map(|(at, &extent)| (extent, i64::from(at == level)));
        lanes.counters.push((lane, Cursor::new(0, first.cast_signed(), loops)?));
    }
    Some(())
}

/// The cells of a stream, all of them in bounds of its view.
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

/// Runs a block; gives how many of its iterations are done if that is not all.
fn run_block(fast: &Fast, block: Block, lanes: &mut Lanes, frame: &Frame) -> Result<(), usize> {
    for (lane, cursor) in &lanes.counters {
        let values = &mut lanes.values[*lane as usize];
        cursor.runs(block.start, block.len, |position, first, step, count| {
            let mut value = first;
            for to in &mut values[position..position + count] {
                *to = value.cast_unsigned();
                value = value.wrapping_add(step);
            }
            true
        })?;
    }
    for step in &fast.plan.steps {
        if !run_step(step, fast, block, lanes, frame) {
            return Err(0);
        }
    }
    for store in &fast.plan.stores {
        // Nothing is stored before everything that may trap has gone well, but for the memory being too short.
        run_store(store, fast, block, lanes, frame).ok_or(0usize)?;
    }
    match &fast.plan.reduce {
        Some(reduce) => run_reduce(reduce, fast, block, lanes, frame),
        None => Ok(()),
    }
}

fn run_step(step: &Step, fast: &Fast, block: Block, lanes: &mut Lanes, frame: &Frame) -> bool {
    let len = block.len;
    match step {
        Step::Load { place, ty, d, mask } => {
            let mut out = std::mem::take(&mut lanes.values[*d as usize]);
            let loaded = match *place {
                Place::Stream(number) => {
                    let cursor = &lanes.streams[number as usize];
                    frame.memories[cursor.slot].as_ref().is_some_and(|memory| {
                        let read = |position: usize, cell, step, count| {
                            memory.read_run(cell, step, &mut out[position..position + count])
                        };
                        cursor.runs(block.start, len, read).is_ok()
                    })
                }
                Place::Gather(number) => {
                    let gather = &fast.plan.gathers[number as usize];
                    address(gather, *mask, len, lanes, frame).is_some_and(|view| {
                        let mask = mask.map(|mask| &lanes.values[mask as usize][..len]);
                        let memory = frame.memories[view.slot].as_ref();
                        memory.is_some_and(|memory| memory.read_cells(&lanes.cells[..len], mask, &mut out[..len]))
                    })
                }
            };
            decode_all(*ty, &mut out[..len]);
            lanes.values[*d as usize] = out;
            loaded
        }
        Step::Compute { instr, mask } => {
            let mut out = std::mem::take(&mut lanes.values[instr.d as usize]);
            let operand = |lane: Lane| &lanes.values[lane as usize][..len];
            let mask = mask.map(operand);
            let done = match (instr.op, mask) {
                (Op::Move, Some(mask)) => {
                    let moved = out.iter_mut().zip(mask).zip(operand(instr.a));
                    moved.filter(|((_, mask), _)| **mask != 0).for_each(|((to, _), value)| *to = *value);
                    true
                }
                _ => apply(instr, &mut out[..len], [operand(instr.a), operand(instr.b), operand(instr.c)], mask),
            };
            lanes.values[instr.d as usize] = out;
            done
        }
        Step::Assert { cond, mask } => {
            let cond = &lanes.values[*cond as usize][..len];
            let active = |at: usize| mask.is_none_or(|mask| lanes.values[mask as usize][at] != 0);
            cond.iter().enumerate().all(|(at, &holds)| holds != 0 || !active(at))
        }
    }
}

/// Turns the bits of elements into registers.
fn decode_all(ty: ScalarType, values: &mut [u64]) {
    match ty {
        ScalarType::Float32 | ScalarType::Float64 | ScalarType::Int64 | ScalarType::UInt64 => {}
        ScalarType::Int32 => values.iter_mut().for_each(|bits| *bits = from_memory(ScalarType::Int32, *bits)),
        _ => values.iter_mut().for_each(|bits| *bits = from_memory(ty, *bits)),
    }
}

/// Computes the cells of a gather; none if an index is out of bounds where the mask is not 0.
fn address<'f>(
    gather: &Gather,
    mask: Option<Lane>,
    len: usize,
    lanes: &mut Lanes,
    frame: &'f Frame,
) -> Option<&'f View> {
    let view = frame.views[gather.view as usize].as_deref().filter(|view| view.per_lane == 1)?;
    let cells = &mut lanes.cells[..len];
    cells.fill(view.offset.checked_add(i64::try_from(gather.lane).ok()?)?);
    let mask = mask.map(|mask| &lanes.values[mask as usize][..len]);
    for ((&lane, &extent), &stride) in gather.indices.iter().zip(&view.extents).zip(&view.strides) {
        let indices = &lanes.values[lane as usize][..len];
        let outside = match mask {
            None => indices.iter().any(|&index| index >= extent),
            Some(mask) => indices.iter().zip(mask).any(|(&index, &mask)| index >= extent && mask != 0),
        };
        if outside {
            return None;
        }
        for (cell, &index) in cells.iter_mut().zip(indices) {
            *cell = cell.wrapping_add(index.cast_signed().wrapping_mul(stride));
        }
    }
    Some(view)
}

fn run_store(store: &Store, fast: &Fast, block: Block, lanes: &mut Lanes, frame: &Frame) -> Option<()> {
    let len = block.len;
    let [scratch, _] = &mut lanes.scratch;
    let values = &lanes.values[store.value as usize][..len];
    if matches!(store.ty, ScalarType::Float16 | ScalarType::BFloat16) {
        scratch.iter_mut().zip(values).for_each(|(to, &value)| *to = to_memory(store.ty, value));
    } else {
        scratch[..len].copy_from_slice(values);
    }
    match store.place {
        Place::Stream(number) => {
            let cursor = &lanes.streams[number as usize];
            let memory = frame.memories[cursor.slot].as_ref()?;
            let write = |position: usize, cell, step, count| {
                memory.write_run(cell, step, &lanes.scratch[0][position..position + count])
            };
            cursor.runs(block.start, len, write).ok()
        }
        Place::Gather(number) => {
            let view = address(&fast.plan.gathers[number as usize], store.mask, len, lanes, frame)?;
            let mask = store.mask.map(|mask| &lanes.values[mask as usize][..len]);
            let memory = frame.memories[view.slot].as_ref()?;
            memory.write_cells(&lanes.cells[..len], mask, &lanes.scratch[0][..len]).then_some(())
        }
    }
}

/// Puts the values of a block into the elements they go to, in program order.
fn run_reduce(reduce: &Reduce, fast: &Fast, block: Block, lanes: &mut Lanes, frame: &Frame) -> Result<(), usize> {
    let (instr, ty, len) = (&reduce.instr, reduce.ty, block.len);
    match reduce.place {
        Place::Stream(number) => {
            let cursor = lanes.streams[number as usize];
            let Lanes { values, scratch: [elements, results], .. } = lanes;
            let values = &values[reduce.value as usize][..len];
            let memory = frame.memories[cursor.slot].as_ref().ok_or(0usize)?;
            cursor.runs(block.start, len, |position, cell, step, count| {
                let values = &values[position..position + count];
                let (elements, results) = (&mut elements[..count], &mut results[..count]);
                if step == 0 {
                    if !memory.read_run(cell, 0, &mut elements[..1]) {
                        return false;
                    }
                    let start = from_memory(ty, elements[0]);
                    let end = fold(instr, start, values, reduce.element_first);
                    return memory.write_run(cell, 0, &[to_memory(ty, end)]);
                }
                if !memory.read_run(cell, step, elements) {
                    return false;
                }
                decode_all(ty, elements);
                let (a, b) = if reduce.element_first { (&*elements, values) } else { (values, &*elements) };
                apply(instr, results, [a, b, a], None) && memory.write_run(cell, step, results)
            })
        }
        Place::Gather(number) => {
            let view = address(&fast.plan.gathers[number as usize], reduce.mask, len, lanes, frame).ok_or(0usize)?;
            let memory = frame.memories[view.slot].as_ref().ok_or(0usize)?;
            let values = &lanes.values[reduce.value as usize][..len];
            for (at, (&cell, &value)) in lanes.cells[..len].iter().zip(values).enumerate() {
                if reduce.mask.is_some_and(|mask| lanes.values[mask as usize][at] == 0) {
                    continue;
                }
                let mut element = [0];
                if !memory.read_run(cell, 0, &mut element) {
                    return Err(at);
                }
                let end = fold(instr, from_memory(ty, element[0]), &[value], reduce.element_first);
                if !memory.write_run(cell, 0, &[to_memory(ty, end)]) {
                    return Err(at);
                }
            }
            Ok(())
        }
    }
}
