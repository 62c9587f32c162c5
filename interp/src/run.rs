//! Running a function: binds the arguments, compiles the function, runs it and copies the results back.

use std::collections::HashMap;
use std::sync::Arc;

use tilewright_ir::{Bindings, Buffer, Diagnostic, Expr, PrimFunc, Scalar, StmtKind, Validated, Var};

use crate::block_run::BlockScratch;
use crate::compile::{Setup, compile};
use crate::config::{Argument, Arguments, Config, Order, Report, RunError};
use crate::exec::{Frame, Machine, view_of};
use crate::memory::{BadView, Definedness, Memory, View};
use crate::num::encode;
use crate::race::Race;
use crate::tensor::Tensor;

/// Stack of each thread that runs a program, in bytes: allocations in one another recurse, with 1 KiB of stack for each in a
/// release build and 4 KiB in one without optimization. Readers open at most some thousand of them.
const STACK_BYTES: usize = 16 << 20;

/// Runs a function on `args` and stores the results in the tensors of the buffers that it writes.
///
/// # Errors
/// [`RunError::Input`] if the arguments do not fit the function or a limit is exceeded, [`RunError::Trap`] if the program
/// traps. `args` is unchanged in both cases.
pub fn run(func: Validated<'_>, args: &mut Arguments, config: &Config) -> Result<Report, RunError> {
    let func = func.func();
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
        scalars: bound.scalars,
        vectorize: !single,
        multithreaded: threads > 1,
        bindings: bound.bindings,
        buffers,
    };
    let program = compile(&setup)?;
    let mut frame = Frame {
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
    let passed = load_arguments(func, args, config, &setup, &mut frame)?;
    let machine = Machine { program: &program, config, threads };
    if threads == 1 {
        machine.run_nodes(&program.nodes, &mut frame)?;
    } else {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).stack_size(STACK_BYTES);
        let pool = pool.build().map_err(|error| {
            Diagnostic::error("threads", None, format!("{threads} threads cannot be started: {error}"))
        })?;
        pool.install(|| machine.run_nodes(&program.nodes, &mut frame))?;
    }
    let stored = stored_data_vars(func);
    // Only here are the arguments changed: a trap has returned before.
    for (position, memory, view) in passed {
        let buffer = func.params.get(position).and_then(|param| func.param_buffer(param));
        if buffer.is_some_and(|buffer| !stored.contains(&buffer.data)) {
            continue;
        }
        // A packed buffer is copied as a whole; strides and offsets need one lane at a time.
        if let Some(Argument::Tensor(tensor)) = args.params.get_mut(position) {
            let packed = buffer.is_some_and(|buffer| buffer.strides.is_none()) && view.offset == 0;
            if packed && memory.len() == tensor.lane_count() * view.per_lane {
                let (bytes, defined) = tensor.parts_mut();
                memory.read_bytes(bytes);
                memory.read_defined(view.per_lane, defined);
                continue;
            }
            for_each_lane(tensor.dtype().lanes, &view, |lane, cell| {
                let raw = memory.get_wide(cell, view.per_lane, view.width).unwrap_or(0);
                let defined = (cell..cell + view.per_lane).all(|cell| memory.is_defined(cell));
                tensor.set_raw(lane, raw, defined);
            });
        }
    }
    Ok(Report { iterations: frame.iterations, parallel_loops: frame.parallel_loops, threads })
}

/// The data variables of the buffers that the function writes.
fn stored_data_vars(func: &PrimFunc) -> Vec<Var> {
    let mut stored = Vec::new();
    func.body.walk(&mut |stmt| {
        if let StmtKind::Store { buffer, .. } = &stmt.kind
            && !stored.contains(&buffer.data)
        {
            stored.push(buffer.data.clone());
        }
    });
    stored
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

/// Values of the symbols and scalar parameters: integers as bindings, and all of them as registers.
struct Bound {
    bindings: Bindings,
    scalars: Vec<(Var, u64)>,
}

/// An error about the arguments of a run.
fn argument_error(message: String) -> Diagnostic {
    Diagnostic::error("argument", None, message)
}

/// Binds symbols and scalar parameters from the arguments, then checks every tensor's shape against its buffer.
fn bind_arguments(func: &PrimFunc, args: &Arguments) -> Result<Bound, Diagnostic> {
    let (given, expected) = (args.params.len(), func.params.len());
    if given != expected {
        return Err(argument_error(format!("`{}` takes {expected} arguments, but {given} are given", func.name)));
    }
    let mut bound = Bound { bindings: Bindings::new(), scalars: Vec::new() };
    // Three passes: an extent such as `n + 1` can be checked only after a later argument has determined `n`.
    for (var, value) in &args.symbols {
        bind_symbol(&mut bound, var, *value)?;
    }
    for (param, arg) in func.params.iter().zip(&args.params) {
        match (func.param_buffer(param), arg) {
            (Some(buffer), Argument::Tensor(tensor)) => bind_shape(&mut bound, buffer, tensor)?,
            (Some(buffer), Argument::Scalar(_)) => {
                return Err(argument_error(format!("parameter `{buffer}` takes a tensor, but a scalar is given")));
            }
            (None, Argument::Scalar(value)) => bind_scalar(&mut bound, param, *value)?,
            (None, Argument::Tensor(_)) => {
                return Err(argument_error(format!("parameter `{param}` takes a scalar, but a tensor is given")));
            }
        }
    }
    if let Some(var) = func.symbols().iter().find(|var| !bound.bindings.contains_key(var)) {
        let message = format!("no argument's shape determines `{var}`");
        return Err(argument_error(message).with_help("give its value as a symbol"));
    }
    if let Some(var) = func.attrs.extents.iter().find(|var| bound.bindings.get(*var).is_some_and(|&value| value < 1)) {
        return Err(argument_error(format!("the extent `{var}` is {}; an extent is at least 1", bound.bindings[var])));
    }
    for (param, arg) in func.params.iter().zip(&args.params) {
        if let (Some(buffer), Argument::Tensor(tensor)) = (func.param_buffer(param), arg) {
            check_shape(&bound, buffer, tensor)?;
        }
    }
    Ok(bound)
}

/// Binds a symbol. Fails if it has another value already or the value is outside its type.
fn bind_symbol(bound: &mut Bound, var: &Var, value: i128) -> Result<(), Diagnostic> {
    match bound.bindings.get(var) {
        Some(&known) if known != value => {
            Err(argument_error(format!("`{var}` is {known} in one place, {value} in another")))
        }
        Some(_) => Ok(()),
        None => {
            let range = var.dtype().scalar.integer_range().unwrap_or((0, 0));
            if !(range.0..=range.1).contains(&value) {
                return Err(argument_error(format!("{value} is no value of `{var}`, whose type is {}", var.dtype())));
            }
            bound.bindings.insert(var.clone(), value);
            bound.scalars.push((var.clone(), encode(var.dtype().scalar, Scalar::Int(value))));
            Ok(())
        }
    }
}

/// Binds a scalar parameter; a float is rounded to the parameter's type.
fn bind_scalar(bound: &mut Bound, param: &Var, value: Scalar) -> Result<(), Diagnostic> {
    let ty = param.dtype().scalar;
    match value {
        Scalar::Int(value) if !ty.is_float() => bind_symbol(bound, param, value),
        Scalar::Float(value) if ty.is_float() => {
            let value = tilewright_ir::scalar::round_float(ty, value);
            bound.scalars.push((param.clone(), encode(ty, Scalar::Float(value))));
            Ok(())
        }
        Scalar::Int(_) | Scalar::Float(_) => Err(argument_error(format!(
            "parameter `{param}` has the type {}, but a value of another type is given",
            param.dtype()
        ))),
    }
}

/// Checks rank and element type of a tensor, and binds the extents that are single variables.
fn bind_shape(bound: &mut Bound, buffer: &Buffer, tensor: &Tensor) -> Result<(), Diagnostic> {
    if tensor.dtype() != buffer.dtype || tensor.shape().len() != buffer.rank() {
        let (rank, ty) = (buffer.rank(), buffer.dtype);
        let (given, given_ty) = (tensor.shape().len(), tensor.dtype());
        return Err(argument_error(format!(
            "parameter `{buffer}` has {rank} axes of {ty}, but a tensor of {given} axes of {given_ty} is given"
        )));
    }
    for (expr, &extent) in buffer.shape.iter().zip(tensor.shape()) {
        if let Expr::Var(var) = expr {
            if extent == 0 {
                return Err(argument_error(format!(
                    "the extent `{var}` of `{buffer}` is 0; a symbolic extent is at least 1"
                )));
            }
            bind_symbol(bound, var, extent.into())?;
        }
    }
    Ok(())
}

/// Checks the extents of a tensor against the buffer's shape, in which all variables are bound.
fn check_shape(bound: &Bound, buffer: &Buffer, tensor: &Tensor) -> Result<(), Diagnostic> {
    for (axis, (expr, &extent)) in buffer.shape.iter().zip(tensor.shape()).enumerate() {
        let wanted = expr.eval_index(&bound.bindings).map_err(|error| argument_error(error.to_string()))?;
        if wanted != i128::from(extent) {
            return Err(argument_error(format!(
                "axis {axis} of `{buffer}` has {wanted} elements, but {extent} are given"
            )));
        }
    }
    Ok(())
}

/// Position of the parameter, its memory and its view, for each tensor argument.
type LoadedTensors = Vec<(usize, Arc<Memory>, Arc<View>)>;

/// Allocates memory for the tensor arguments and copies them into it.
///
/// # Errors
/// Two parameters share a data variable, a view starts before its memory, or there is not enough memory.
fn load_arguments(
    func: &PrimFunc,
    args: &Arguments,
    config: &Config,
    setup: &Setup<'_>,
    frame: &mut Frame,
) -> Result<LoadedTensors, Diagnostic> {
    let mut passed = LoadedTensors::new();
    for (position, (param, arg)) in func.params.iter().zip(&args.params).enumerate() {
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
        let whole = tensor.is_all_defined() && tensor.lane_count() * view.per_lane == count;
        let id = frame.race.as_mut().map_or(0, |race| race.new_memory_id());
        // Definedness is tracked even if it is not checked, so that elements that were undefined and not written are
        // still undefined in the result.
        let definedness = match (whole, config.observers.defined) {
            (true, _) => Definedness::Untracked,
            (false, true) => Definedness::Checked,
            (false, false) => Definedness::Tracked,
        };
        let memory = Memory::new(view.width, count, definedness, id).map_err(|_| refused())?;
        if whole && buffer.strides.is_none() && view.offset == 0 {
            memory.write_bytes(tensor.bytes());
        } else if tensor.defined().contains(&true) {
            for_each_lane(buffer.dtype.lanes, &view, |lane, cell| {
                if tensor.defined()[lane] {
                    memory.set_wide(cell, view.per_lane, view.width, tensor.raw(lane));
                }
            });
        }
        let memory = Arc::new(memory);
        frame.memories[view.slot] = Some(Arc::clone(&memory));
        passed.push((position, memory, view));
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
            // The last axis moves fastest, because a packed tensor is row-major. An axis that reaches its extent takes back
            // the strides that it added, and the axis before it advances.
            if index[axis] < view.extents[axis] {
                break;
            }
            cell = cell.wrapping_sub(view.strides[axis].wrapping_mul(index[axis].cast_signed()));
            index[axis] = 0;
        }
    }
}
