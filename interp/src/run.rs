//! Running a function: binds the arguments, compiles the function, runs it and copies the results back.

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::Arc;

use rayon::{ThreadPool, ThreadPoolBuilder};
use tilewright_ir::phases::{Barriers, has_groups, without_barriers};
use tilewright_ir::{Buffer, Diagnostic, Expr, PrimFunc, Validated, Var};

use crate::arguments::{argument_error, bind_arguments, stored_data_vars};
use crate::block_scratch::BlockScratch;
use crate::cells::Cells;
use crate::compile::{Setup, compile};
use crate::config::{Argument, Arguments, Config, Order, Report, RunError, TrapKind};
use crate::exec::{Frame, Machine, view_of};
use crate::memory::{BadView, Definedness, Memory, View};
use crate::num::encode;
use crate::race::Race;
use crate::reference;
use crate::tensor::Tensor;

/// Stack of each thread that helps to run a program, in bytes: allocations in one another recurse, with 1 KiB of stack for each in a
/// release build and 4 KiB in one without optimization. Readers open at most some thousand of them.
const STACK_BYTES: usize = 16 << 20;

/// Runs a function on `args` and stores the results in the tensors of the buffers that it writes.
///
/// # Errors
/// [`RunError::Input`] if the arguments do not fit the function or a limit is exceeded, [`RunError::Trap`] if the program
/// traps. `args` is unchanged in both cases.
pub fn run(func: Validated<'_>, args: &mut Arguments, config: &Config) -> Result<Report, RunError> {
    if has_groups(&func.func().body) { run_group(func, args, config) } else { run_function(func.func(), args, config) }
}

/// Runs a function with barriers or shared memory, phase by phase. Where a phase traps, the reference interpreter says what
/// the program itself does.
fn run_group(func: Validated<'_>, args: &mut Arguments, config: &Config) -> Result<Report, RunError> {
    let barriers = if config.observers.race { Barriers::Kept } else { Barriers::Dropped };
    match without_barriers(func.func(), barriers) {
        Ok(phases) => match run_function(&phases, args, config) {
            Err(RunError::Trap(trap)) if trap.kind != TrapKind::Race => reference::run(func, args, config),
            result => result,
        },
        // Control flow around a barrier depends on memory or on the thread, and may be uniform all the same.
        Err(mut faults) if config.observers.race => {
            let mut tried = args.clone();
            reference::run(func, &mut tried, config)?;
            Err(RunError::Input(faults.swap_remove(0)))
        }
        Err(_) => reference::run(func, args, config),
    }
}

/// Runs a function without barriers, except between the nests of its phases.
fn run_function(func: &PrimFunc, args: &mut Arguments, config: &Config) -> Result<Report, RunError> {
    let bound = bind_arguments(func, args)?;
    let buffers = func.buffers();
    let (slots, widths) = assign_slots(&buffers);
    // The race check and the permuted orders are defined on a sequence of iterations.
    let single = config.observers.race || config.order != Order::Program;
    let threads = match config.threads {
        _ if single => 1,
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        count => count,
    };
    let setup = Setup {
        body: &func.body,
        slots,
        widths,
        scalars: bound
            .scalars
            .into_iter()
            .map(|(var, value)| (var.clone(), encode(var.dtype().scalar, value)))
            .collect(),
        vectorize: !single,
        multithreaded: threads > 1,
        bindings: bound.bindings,
        buffers,
    };
    let program = compile(&setup)?;
    let frame = Frame {
        registers: program.registers.clone(),
        memories: vec![None; setup.widths.len()],
        views: static_views(&setup)?,
        live: 0,
        fuel: config.fuel.unwrap_or(u64::MAX),
        iterations: 0,
        parallel_loops: 0,
        worker: false,
        scratch: BlockScratch::default(),
        race: config.observers.race.then(|| Box::new(Race::new())),
    };
    let stored = stored_data_vars(func);
    let pool = Pool::of(threads)?;
    let machine = Machine { program: &program, config, threads, pool: pool.0.as_ref() };
    let mut held = Vec::with_capacity(args.params.len());
    let result = hold_arguments(func, args, &stored, &mut held)
        .map_err(RunError::Input)
        .and_then(|()| execute(func, args, &machine, &setup, &mut held, frame));
    let Ok((report, flags)) = result else {
        give_back(args, held);
        return result.map(|(report, _)| report);
    };
    for (position, flags) in flags {
        if let (Some(Argument::Tensor(tensor)), Some(Held::Own(bytes) | Held::Taken(bytes))) =
            (args.params.get_mut(position), held.get_mut(position))
        {
            tensor.replace(std::mem::take(bytes), flags);
        }
    }
    Ok(report)
}

/// Gives tensors their bytes back after a trap.
fn give_back(args: &mut Arguments, held: Vec<Held>) {
    for (arg, held) in args.params.iter_mut().zip(held) {
        if let (Argument::Tensor(tensor), Held::Taken(bytes)) = (arg, held) {
            tensor.give_back(bytes);
        }
    }
}

/// For a parameter whose memory was its bytes: its position, and whether each lane is defined, if not all are.
type Flags = (usize, Option<Vec<bool>>);

/// Runs a program in the memory of its arguments. Stores the results whose memory is not made of the bytes held for them; the
/// flags of the others are returned.
fn execute<'m>(
    func: &PrimFunc,
    args: &mut Arguments,
    machine: &Machine<'_>,
    setup: &Setup<'_>,
    held: &'m mut [Held],
    mut frame: Frame<'m>,
) -> Result<(Report, Vec<Flags>), RunError> {
    let passed = load_arguments(func, args, machine.config, setup, held, &mut frame)?;
    let nodes = &machine.program.nodes;
    machine.run_nodes(nodes, &mut frame)?;
    let stored = stored_data_vars(func);
    let mut flags = Vec::new();
    // Only here are the arguments changed: a trap has returned before.
    for (position, view) in passed {
        let Some(memory) = frame.memories.get(view.slot).and_then(Option::as_deref) else { continue };
        let buffer = func.params.get(position).and_then(|param| func.param_buffer(param));
        if buffer.is_some_and(|buffer| !stored.contains(&buffer.data)) {
            continue;
        }
        // A packed buffer is copied as a whole, unless its cells are the bytes; strides and offsets need one lane at a time.
        if let Some(Argument::Tensor(tensor)) = args.params.get_mut(position) {
            let packed = buffer.is_some_and(|buffer| buffer.strides.is_none()) && view.offset == 0;
            if memory.is_lent() {
                flags.push((position, memory.flags(view.per_lane)));
            } else if packed && memory.len() == tensor.lane_count() * view.per_lane {
                tensor.read_from(memory, view.per_lane);
            } else {
                for_each_lane(tensor.dtype().lanes, &view, |lane, cell| {
                    let raw = memory.get_wide(cell, view.per_lane, view.width).unwrap_or(0);
                    let defined = (cell..cell + view.per_lane).all(|cell| memory.is_defined(cell));
                    tensor.set_raw(lane, raw, defined);
                });
            }
        }
    }
    let (iterations, parallel_loops) = (frame.iterations, frame.parallel_loops);
    Ok((Report { iterations, parallel_loops, threads: machine.threads }, flags))
}

thread_local! {
    /// The pool that a thread last used. It is kept, because starting threads takes longer than running a small program.
    static KEPT: Cell<Option<ThreadPool>> = const { Cell::new(None) };
}

/// The threads that help the one that runs a program, if it may have any.
struct Pool(Option<ThreadPool>);

impl Pool {
    /// All threads but the one that runs the program.
    fn of(threads: usize) -> Result<Self, Diagnostic> {
        let Some(others) = threads.checked_sub(1).filter(|&others| others > 0) else { return Ok(Self(None)) };
        let kept = KEPT.take().filter(|pool| pool.current_num_threads() == others);
        let make = || ThreadPoolBuilder::new().num_threads(others).stack_size(STACK_BYTES).build();
        let pool = kept.map_or_else(make, Ok).map_err(|error| {
            Diagnostic::error("threads", None, format!("{threads} threads cannot be started: {error}"))
        })?;
        Ok(Self(Some(pool)))
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        if let Some(pool) = self.0.take() {
            KEPT.set(Some(pool));
        }
    }
}

/// The bytes of an argument while a program runs on them.
enum Held {
    Nothing,
    /// Those of the tensor, which the program only reads.
    Shared(Arc<Vec<u8>>),
    /// Bytes that the program writes and that become the tensor's.
    Own(Vec<u8>),
    /// Those that were the tensor's, which has none in the meantime.
    Taken(Vec<u8>),
}

/// The bytes that the memory of each parameter can be made of: those of its tensor, or a copy if the program writes it and
/// may trap.
fn hold_arguments(
    func: &PrimFunc,
    args: &mut Arguments,
    stored: &[Var],
    held: &mut Vec<Held>,
) -> Result<(), Diagnostic> {
    let hold = |(param, arg): (&Var, &mut Argument)| {
        let (Some(buffer), Argument::Tensor(tensor)) = (func.param_buffer(param), arg) else {
            return Ok(Held::Nothing);
        };
        if !stored.contains(&buffer.data) {
            return Ok(Held::Shared(tensor.shared_bytes()));
        }
        let refused = || argument_error(format!("there is no memory for parameter `{buffer}`"));
        if let Some(bytes) = tensor.take_undefined() {
            return Ok(Held::Taken(bytes));
        }
        if tensor.is_none_defined() {
            let bytes = Tensor::undefined(tensor.dtype(), tensor.shape()).map(Tensor::into_bytes);
            return bytes.map(Held::Own).map_err(|_| refused());
        }
        if !tensor.is_all_defined() {
            return Ok(Held::Nothing);
        }
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(tensor.bytes().len()).map_err(|_| refused())?;
        bytes.extend_from_slice(tensor.bytes());
        Ok(Held::Own(bytes))
    };
    for pair in func.params.iter().zip(&mut args.params) {
        held.push(hold(pair)?);
    }
    Ok(())
}

/// The memory that the bytes of an argument are; `None` if they cannot be.
fn cells_of(held: &mut Held, width: u64) -> Option<Cells<'_>> {
    match held {
        Held::Nothing => None,
        Held::Shared(bytes) => Cells::fixed(width, bytes),
        Held::Own(bytes) | Held::Taken(bytes) => Cells::lent(width, bytes),
    }
}

/// Assigns a memory slot to each data variable; returns the slots and, for each, the bytes of the narrowest element that
/// any buffer on it has.
fn assign_slots(buffers: &[Buffer]) -> (HashMap<Var, usize>, Vec<u64>) {
    let mut slots = HashMap::new();
    let mut widths: Vec<u64> = Vec::new();
    for buffer in buffers {
        let bytes = buffer.dtype.scalar.bytes();
        let slot = *slots.entry(buffer.data.clone()).or_insert(widths.len());
        match widths.get_mut(slot) {
            Some(width) => *width = bytes.min(*width),
            None => widths.push(bytes),
        }
    }
    (slots, widths)
}

/// The views whose extents, strides and offset depend on symbols and scalar parameters only; `None` for the others.
fn static_views(setup: &Setup<'_>) -> Result<Vec<Option<Arc<View>>>, Diagnostic> {
    let view = |buffer: &Buffer| {
        let exprs = buffer.shape.iter().chain(buffer.strides.iter().flatten()).chain([&buffer.elem_offset]);
        let known = |expr: &Expr| expr.vars().iter().all(|var| setup.bindings.contains_key(var));
        if !exprs.into_iter().all(known) {
            return Ok(None);
        }
        let slot = setup.slots.get(&buffer.data).copied().unwrap_or(0);
        let made = view_of(buffer, slot, setup.widths[slot], &setup.bindings);
        made.map(|view| Some(Arc::new(view))).map_err(|BadView(why)| {
            Diagnostic::error("bad-size", buffer.span, format!("buffer `{buffer}` has no valid layout: {why}"))
        })
    };
    setup.buffers.iter().map(view).collect()
}

/// Position of the parameter and its view, for each tensor argument.
type LoadedTensors = Vec<(usize, Arc<View>)>;

/// Makes the memory of the tensor arguments: of the bytes held for them, or a copy.
///
/// # Errors
/// Two parameters share a data variable, a view starts before its memory, or there is not enough memory.
fn load_arguments<'m>(
    func: &PrimFunc,
    args: &mut Arguments,
    config: &Config,
    setup: &Setup<'_>,
    held: &'m mut [Held],
    frame: &mut Frame<'m>,
) -> Result<LoadedTensors, Diagnostic> {
    let mut passed = LoadedTensors::new();
    for (position, ((param, arg), held)) in func.params.iter().zip(&mut args.params).zip(held).enumerate() {
        let (Some(buffer), Argument::Tensor(tensor)) = (func.param_buffer(param), arg) else { continue };
        let number = setup.buffers.iter().position(|other| other == buffer).unwrap_or(0);
        let Some(view) = frame.views[number].clone() else { continue };
        if frame.memories[view.slot].is_some() {
            return Err(argument_error(format!("parameter `{buffer}` shares its memory with another parameter")));
        }
        let cells = view
            .cells_needed(buffer.dtype.lanes)
            .ok_or_else(|| argument_error(format!("parameter `{buffer}` starts before its memory")))?;
        frame.live = frame.live.saturating_add(cells.saturating_mul(view.width));
        if frame.live > config.max_bytes {
            let (bytes, limit) = (frame.live, config.max_bytes);
            return Err(argument_error(format!("the arguments take {bytes} bytes, but only {limit} are allowed")));
        }
        let refused = || argument_error(format!("there is no memory for parameter `{buffer}`"));
        let count = usize::try_from(cells).map_err(|_| refused())?;
        let fits = tensor.lane_count() * view.per_lane == count;
        let whole = tensor.is_all_defined() && fits;
        let id = frame.race.as_mut().map_or(0, |race| race.new_memory_id());
        // Definedness is tracked even if it is not checked, so that elements that were undefined and not written are
        // still undefined in the result.
        let definedness = match (whole, config.observers.defined) {
            (true, _) => Definedness::Untracked,
            (false, true) => Definedness::Checked,
            (false, false) => Definedness::Tracked,
        };
        let is_packed = fits && buffer.strides.is_none() && view.offset == 0 && (whole || tensor.is_none_defined());
        if let Held::Taken(bytes) = held
            && !(is_packed && Cells::lent(view.width, bytes).is_some())
        {
            tensor.give_back(std::mem::take(bytes));
            *held = Held::Nothing;
        }
        let cells = if is_packed { cells_of(held, view.width) } else { None };
        let memory = match cells {
            Some(cells) => Memory::of_cells(cells, definedness, id),
            None if is_packed && whole => {
                Cells::copied(view.width, tensor.bytes()).and_then(|cells| Memory::of_cells(cells, definedness, id))
            }
            None => Memory::new(view.width, count, definedness, id),
        };
        let memory = memory.map_err(|_| refused())?;
        if !is_packed && !tensor.is_none_defined() {
            for_each_lane(buffer.dtype.lanes, &view, |lane, cell| {
                if tensor.is_defined(lane) {
                    memory.set_wide(cell, view.per_lane, view.width, tensor.raw(lane));
                }
            });
        }
        frame.memories[view.slot] = Some(Arc::new(memory));
        passed.push((position, view));
    }
    Ok(passed)
}

/// Calls `each` with the number of every lane of a packed tensor and the cell of that lane in `view`.
fn for_each_lane(lanes: u16, view: &View, mut each: impl FnMut(usize, usize)) {
    if view.extents.contains(&0) {
        return;
    }
    let mut index = vec![0u64; view.extents.len()];
    let mut lane = 0;
    let mut cell = view.offset;
    loop {
        for part in 0..usize::from(lanes) {
            let first = usize::try_from(cell).unwrap_or(usize::MAX);
            each(lane, first.saturating_add(part * view.per_lane));
            lane += 1;
        }
        let mut axis = index.len();
        loop {
            if axis == 0 {
                return;
            }
            axis -= 1;
            index[axis] += 1;
            cell = cell.wrapping_add(view.strides[axis]);
            if index[axis] < view.extents[axis] {
                break;
            }
            cell = cell.wrapping_sub(view.strides[axis].wrapping_mul(index[axis].cast_signed()));
            index[axis] = 0;
        }
    }
}
