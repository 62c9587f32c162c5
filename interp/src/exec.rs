//! The machine: executes a compiled function, one iteration at a time.
//!
//! [`Machine::run_loop`] hands a loop to the threads (`spread`) or to the block engine (`block_run`) where that gives
//! the same result faster. All checks are made here: bounds, definedness, races, fuel and memory.

use std::sync::Arc;

use rayon::ThreadPool;
use tilewright_ir::{Bindings, Buffer, Scalar, ScalarType, StmtKind, gcd};

use crate::block_scratch::BlockScratch;
use crate::code::{Access, Code, CompiledFunc, DynamicShape, Loop, Node, Op};
use crate::config::{Config, Order, Trap, TrapKind};
use crate::memory::{BadView, Definedness, Geometry, Memory, View};
use crate::num::{decode, from_memory, to_memory};
use crate::ops::compute;
use crate::race::Race;

/// The state that all threads share.
pub(crate) struct Machine<'p> {
    pub(crate) program: &'p CompiledFunc<'p>,
    pub(crate) config: &'p Config,
    /// Number of threads, one of which runs the program.
    pub(crate) threads: usize,
    /// The others, if there are any.
    pub(crate) pool: Option<&'p ThreadPool>,
}

/// The state of one thread.
#[derive(Clone)]
pub(crate) struct Frame<'m> {
    /// The registers of the compiled function.
    pub(crate) registers: Vec<u64>,
    /// The allocation in each memory slot, if one is alive.
    pub(crate) memories: Vec<Option<Arc<Memory<'m>>>>,
    /// The view of each buffer, once its extents are known.
    pub(crate) views: Vec<Option<Arc<View>>>,
    /// Bytes of the arguments and of the allocations that are alive.
    pub(crate) live: u64,
    /// Iterations that may still be started; `u64::MAX` for no limit.
    pub(crate) fuel: u64,
    /// Iterations started so far.
    pub(crate) iterations: u64,
    /// Loops distributed over threads so far.
    pub(crate) parallel_loops: u64,
    /// Whether this is a worker of a distributed loop.
    pub(crate) worker: bool,
    /// Buffers of the block engine.
    pub(crate) scratch: BlockScratch,
    /// The race check, if it is on.
    pub(crate) race: Option<Box<Race>>,
}

/// The result of executing a part of a function.
pub(crate) type Outcome = Result<(), Box<Trap>>;

/// The view of a buffer with all variables in its shape, strides and offset bound.
///
/// # Errors
/// An expression has no value, or [`View::new`] fails.
pub(crate) fn view_of(buffer: &Buffer, slot: usize, width: u64, bindings: &Bindings) -> Result<View, BadView> {
    let value = |expr: &tilewright_ir::Expr| expr.eval_index(bindings).map_err(|error| BadView(error.to_string()));
    let extents = buffer.shape.iter().map(value).collect::<Result<Vec<_>, _>>()?;
    let strides = buffer.strides.as_ref().map(|strides| strides.iter().map(value).collect::<Result<Vec<_>, _>>());
    let strides = strides.transpose()?;
    let (lanes, scalar) = (buffer.dtype.lanes, buffer.dtype.scalar);
    let offset = value(&buffer.elem_offset)?;
    View::new(slot, width, &Geometry { extents: &extents, strides: strides.as_deref(), offset, lanes, scalar })
}

/// The iteration that runs at `position` when the iterations `0..extent` run in the given order.
fn permuted_position(order: Order, position: u64, extent: u64) -> u64 {
    match order {
        Order::Program => position,
        Order::Reversed => extent - 1 - position,
        Order::Shuffled(seed) => {
            let wide = |value: u64| u128::from(value);
            // An affine map modulo the extent is a permutation if its factor is coprime to the extent.
            let mut factor = (seed | 1) % extent;
            while gcd(wide(factor.max(1)), wide(extent)) != 1 || factor == 0 {
                factor = (factor + 1) % extent.max(2);
            }
            let at = (wide(position) * wide(factor) + wide(seed >> 7)) % wide(extent);
            u64::try_from(at).unwrap_or(0)
        }
    }
}

impl Machine<'_> {
    /// Executes nodes in order.
    pub(crate) fn run_nodes(&self, nodes: &[Node], frame: &mut Frame) -> Outcome {
        for node in nodes {
            match node {
                Node::Code(code) => self.run_code(code, frame)?,
                Node::If { cond, then_body, else_body } => {
                    let chosen = if frame.registers[*cond as usize] != 0 { then_body } else { else_body };
                    self.run_nodes(chosen, frame)?;
                }
                Node::Loop(inner) => self.run_loop(inner, frame)?,
                Node::Allocate { view, dims, site, body } => {
                    self.allocate(*view, dims.as_deref(), *site, body, frame)?;
                }
                Node::Barrier => frame.race.iter_mut().for_each(|race| race.barrier()),
                Node::Declare { view, dims, site } => self.declare(*view, dims, *site, frame)?,
            }
        }
        Ok(())
    }

    /// Computes a view from the current values of its variables.
    fn declare(&self, view: u32, dims: &DynamicShape, site: u32, frame: &mut Frame) -> Outcome {
        let mut bindings = Bindings::new();
        for (var, reg) in &dims.vars {
            let value = decode(var.dtype().scalar, frame.registers[*reg as usize]);
            bindings.insert(var.clone(), value.as_int().unwrap_or_default());
        }
        let slot = self.program.slot_of[view as usize];
        let made = view_of(&dims.buffer, slot, self.program.widths[slot], &bindings);
        let made = made.map_err(|BadView(why)| {
            self.trap(TrapKind::Size, format!("buffer `{}` has no valid layout: {why}", dims.buffer), site, frame)
        })?;
        frame.views[view as usize] = Some(Arc::new(made));
        Ok(())
    }

    /// Allocates memory for a view, runs the body of the allocation, and frees the memory.
    ///
    /// # Errors
    /// The view is invalid or its memory is larger than allowed, or the body traps.
    fn allocate(&self, view: u32, dims: Option<&DynamicShape>, site: u32, body: &[Node], frame: &mut Frame) -> Outcome {
        if let Some(dims) = dims {
            self.declare(view, dims, site, frame)?;
        }
        let buffer = &self.program.buffers[view as usize];
        let size = |why: String| self.trap(TrapKind::Size, format!("buffer `{buffer}` {why}"), site, frame);
        let Some(made) = frame.views[view as usize].clone() else {
            return Err(size("has no extents here".to_owned()));
        };
        let cells = made.cells_needed(buffer.dtype.lanes).ok_or_else(|| size("starts before its memory".to_owned()))?;
        let bytes = cells.saturating_mul(made.width);
        let total = frame.live.saturating_add(bytes);
        // Before the allocation, so that a program over the limit traps the same way on machines of any size.
        if total > self.config.max_bytes {
            let limit = self.config.max_bytes;
            let message =
                format!("buffer `{buffer}` takes {bytes} bytes, {total} in all, but only {limit} are allowed");
            return Err(self.trap(TrapKind::Memory, message, site, frame));
        }
        let id = frame.race.as_mut().map_or(0, |race| race.new_memory_id());
        let count = usize::try_from(cells).unwrap_or(usize::MAX);
        let definedness = if self.config.observers.defined { Definedness::Checked } else { Definedness::Untracked };
        let memory = Memory::new(made.width, count, definedness, id);
        let memory = memory.map_err(|_| {
            self.trap(
                TrapKind::Memory,
                format!("buffer `{buffer}` takes {bytes} bytes, which cannot be allocated"),
                site,
                frame,
            )
        })?;
        let outer = frame.memories[made.slot].replace(Arc::new(memory));
        let live = std::mem::replace(&mut frame.live, total);
        let outcome = self.run_nodes(body, frame);
        // The outcome is returned last, so that the memory is freed after a trap too.
        frame.live = live;
        frame.memories[made.slot] = outer;
        if let Some(race) = &mut frame.race {
            race.forget_memory(id);
        }
        outcome
    }

    /// Runs a loop, by the fastest engine that applies.
    ///
    /// Fuel is taken for all iterations of the loop in advance, so that running out of it does not depend on the engine.
    /// A trap then comes before the first iteration.
    fn run_loop(&self, inner: &Loop, frame: &mut Frame) -> Outcome {
        let value = |(reg, ty): (u32, ScalarType), frame: &Frame| {
            decode(ty, frame.registers[reg as usize]).as_int().unwrap_or_default()
        };
        let (min, extent) = (value(inner.min, frame), value(inner.extent, frame));
        let Some(extent) = u64::try_from(extent).ok().filter(|&extent| extent > 0) else { return Ok(()) };
        let last = min + i128::from(extent) - 1;
        let (low, high) = inner.ty.integer_range().unwrap_or((0, 0));
        if min < low || last > high {
            let message = format!("the loop's values {min} to {last} leave its variable's type {}", inner.ty);
            return Err(self.trap(TrapKind::LoopRange, message, inner.site, frame));
        }
        let min = crate::num::encode(inner.ty, Scalar::Int(min));
        if extent > frame.fuel {
            let fuel = self.config.fuel.unwrap_or_default();
            let message = format!("the loop would start {extent} iterations, more than are left of {fuel}");
            return Err(self.trap(TrapKind::FuelExhausted, message, inner.site, frame));
        }
        if let Some(outcome) = self.run_flat(inner, min, extent, frame) {
            return outcome;
        }
        if self.should_spread(inner, extent, frame) {
            return self.run_parallel(inner, min, extent, frame);
        }
        if frame.fuel != u64::MAX {
            frame.fuel -= extent;
        }
        frame.iterations = frame.iterations.saturating_add(extent);
        // A plan that does not apply leaves memory unchanged, so all iterations can still be run here.
        if !self.spreads_inside(inner, extent, frame)
            && let Some(outcome) = self.run_vectorized(inner, min, extent, frame)
        {
            return outcome;
        }
        self.run_code(&inner.pre, frame)?;
        self.run_sequential(inner, min, extent, frame)
    }

    /// Runs the iterations of a loop one after the other, in the configured order unless the loop is serial.
    fn run_sequential(&self, inner: &Loop, min: u64, extent: u64, frame: &mut Frame) -> Outcome {
        let serial = !inner.kind.is_concurrent();
        let order = if serial { Order::Program } else { self.config.order };
        let outer = frame.race.as_ref().map(|race| race.current);
        let entry = frame.race.as_mut().map_or(0, |race| race.enter_loop(inner.of_group));
        for position in 0..extent {
            let at = min.wrapping_add(permuted_position(order, position, extent));
            frame.registers[inner.var as usize] = at;
            if let (false, Some(race), Some(outer)) = (serial, &mut frame.race, outer) {
                let value = decode(inner.ty, at).as_int().unwrap_or_default();
                race.begin_iteration(outer, entry, inner, value);
            }
            self.run_nodes(&inner.body, frame)?;
        }
        // A serial loop runs in the iteration around it, or in the phase that its last barrier began.
        if let (false, Some(race), Some(outer)) = (serial, &mut frame.race, outer) {
            race.current = outer;
        }
        Ok(())
    }

    /// Executes straight-line code.
    #[inline]
    pub(crate) fn run_code(&self, code: &Code, frame: &mut Frame) -> Outcome {
        let mut at = 0;
        while let Some(instr) = code.instrs.get(at) {
            at += 1;
            match instr.op {
                Op::JumpIfZero => {
                    if frame.registers[instr.a as usize] == 0 {
                        at += instr.c as usize;
                    }
                }
                Op::Jump => at += instr.c as usize,
                Op::Load => {
                    let bits = self.load(instr.a, code.sites[at - 1], frame)?;
                    frame.registers[instr.d as usize] = from_memory(instr.ty, bits);
                }
                Op::Store => {
                    let bits = to_memory(instr.ty, frame.registers[instr.b as usize]);
                    self.store(instr.a, bits, code.sites[at - 1], frame)?;
                }
                Op::Assert => {
                    if frame.registers[instr.a as usize] == 0 {
                        let message = self.program.messages[instr.b as usize].clone();
                        return Err(self.trap(TrapKind::Assertion, message, code.sites[at - 1], frame));
                    }
                }
                // Computations; streams, listed to make the match exhaustive, occur in block plans only.
                Op::Move
                | Op::Add
                | Op::Sub
                | Op::Mul
                | Op::Add32
                | Op::Sub32
                | Op::Mul32
                | Op::Wrap
                | Op::FloorDiv
                | Op::FloorMod
                | Op::TruncDiv
                | Op::TruncMod
                | Op::Min
                | Op::Max
                | Op::Eq
                | Op::Ne
                | Op::Lt
                | Op::Le
                | Op::And
                | Op::Or
                | Op::Xor
                | Op::Shl
                | Op::Shr
                | Op::AddF32
                | Op::SubF32
                | Op::MulF32
                | Op::DivF32
                | Op::MinF32
                | Op::MaxF32
                | Op::EqF32
                | Op::LtF32
                | Op::LeF32
                | Op::AddF64
                | Op::SubF64
                | Op::MulF64
                | Op::DivF64
                | Op::IntToF32
                | Op::Binary
                | Op::Unary
                | Op::Call
                | Op::Cast
                | Op::Select
                | Op::LoadStream
                | Op::StoreStream => match compute(instr, &frame.registers) {
                    Ok(value) => frame.registers[instr.d as usize] = value,
                    Err(error) => return Err(self.arithmetic_trap(error, code.sites[at - 1], frame)),
                },
            }
        }
        Ok(())
    }

    /// Loads the bits of an element.
    fn load(&self, number: u32, site: u32, frame: &mut Frame) -> Result<u64, Box<Trap>> {
        let access = &self.program.accesses[number as usize];
        let (cell, view) = self.cell_of(access, site, frame)?;
        let Some(memory) = &frame.memories[view.slot] else {
            return Err(self.outside_allocation(access, site, frame));
        };
        let bits = if view.per_lane == 1 { memory.get(cell) } else { memory.get_wide(cell, view.per_lane, view.width) };
        let bits = bits.ok_or_else(|| self.outside_allocation(access, site, frame))?;
        if !(cell..cell + view.per_lane).all(|cell| memory.is_readable(cell)) {
            let message = format!("{} was never written", self.describe_element(access, frame));
            return Err(self.trap(TrapKind::Undefined, message, site, frame));
        }
        if frame.race.is_some() {
            let (memory, cells) = (memory.id, cell..cell + view.per_lane);
            self.check_race(access, memory, cells, false, site, frame)?;
        }
        Ok(bits)
    }

    /// Stores the bits of an element.
    fn store(&self, number: u32, bits: u64, site: u32, frame: &mut Frame) -> Outcome {
        let access = &self.program.accesses[number as usize];
        let (cell, view) = self.cell_of(access, site, frame)?;
        let Some(memory) = &frame.memories[view.slot] else {
            return Err(self.outside_allocation(access, site, frame));
        };
        if cell.checked_add(view.per_lane).is_none_or(|end| end > memory.len()) {
            return Err(self.outside_allocation(access, site, frame));
        }
        let (id, cells, slot, width) = (memory.id, cell..cell + view.per_lane, view.slot, view.width);
        if frame.race.is_some() {
            self.check_race(access, id, cells.clone(), true, site, frame)?;
        }
        let Some(memory) = &frame.memories[slot] else { return Ok(()) };
        if cells.len() == 1 {
            memory.set(cell, bits);
        } else {
            memory.set_wide(cell, cells.len(), width, bits);
        }
        Ok(())
    }

    /// The first cell of an access and its view. Traps if an index is out of bounds.
    ///
    /// Indices are compared as unsigned numbers, so a negative one is out of bounds too.
    #[inline]
    fn cell_of<'f>(&self, access: &Access, site: u32, frame: &'f Frame) -> Result<(usize, &'f View), Box<Trap>> {
        let Some(view) = &frame.views[access.view as usize] else {
            return Err(self.outside_allocation(access, site, frame));
        };
        let mut cell = view.offset.wrapping_add(i64::try_from(access.lane * view.per_lane).unwrap_or(i64::MAX));
        for (axis, &reg) in access.indices.iter().enumerate() {
            let index = frame.registers[reg as usize];
            if index >= view.extents[axis] {
                return Err(self.index_out_of_bounds(access, axis, view, site, frame));
            }
            cell = cell.wrapping_add(index.cast_signed().wrapping_mul(view.strides[axis]));
        }
        let cell = usize::try_from(cell).map_err(|_| self.outside_allocation(access, site, frame))?;
        Ok((cell, view))
    }

    /// Records an access to `cells` with the race check; traps if it races with an earlier access.
    fn check_race(
        &self,
        access: &Access,
        memory: usize,
        cells: std::ops::Range<usize>,
        write: bool,
        site: u32,
        frame: &mut Frame,
    ) -> Outcome {
        let Some(race) = &mut frame.race else { return Ok(()) };
        for cell in cells {
            if let Some(clash) = race.record_access(memory, cell, write) {
                // An iteration is identified by the site of its loop.
                let name = |site: u32| match &self.program.sites[site as usize].stmt.kind {
                    StmtKind::For(inner) => inner.var.name().to_owned(),
                    StmtKind::Store { .. }
                    | StmtKind::Allocate { .. }
                    | StmtKind::DeclBuffer { .. }
                    | StmtKind::If { .. }
                    | StmtKind::Let { .. }
                    | StmtKind::Seq(_)
                    | StmtKind::Evaluate(_)
                    | StmtKind::Barrier
                    | StmtKind::Attr { .. }
                    | StmtKind::Assert { .. } => String::new(),
                };
                let race = frame.race.as_ref();
                let at = |context| race.map_or_else(String::new, |race| race.describe(context, name));
                let (first, second) = (at(clash.earlier), at(clash.now));
                let verb = |write: bool| if write { "writes" } else { "reads" };
                let message = format!(
                    "race on {}: iteration ({first}) {} it, iteration ({second}) {} it",
                    self.describe_element(access, frame),
                    verb(clash.earlier_writes),
                    verb(write),
                );
                let mut trap = self.trap(TrapKind::Race, message, site, frame);
                trap.buffer = Some(self.program.buffers[access.view as usize].name.clone());
                return Err(trap);
            }
        }
        Ok(())
    }
}
