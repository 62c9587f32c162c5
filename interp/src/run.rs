//! Running a function: arguments are bound, the function is translated, the machine runs it, results are taken out.

use std::collections::HashMap;
use std::sync::Arc;

use tilewright_ir::{Bindings, Buffer, Diagnostic, Expr, PrimFunc, Scalar, StmtKind, Validated, Var};

use crate::compile::{Setup, compile};
use crate::config::{Argument, Arguments, Config, Order, Report, RunError};
use crate::exec::{Frame, Machine, view_of};
use crate::memory::{BadView, Memory, View};
use crate::num::encode;
use crate::race::Race;
use crate::tensor::Tensor;
use crate::vector::Lanes;

/// Runs a function. The tensors in `args` are replaced by what the function leaves in them.
///
/// # Errors
/// [`RunError::Input`] if the arguments do not fit, [`RunError::Trap`] if the program traps. `args` are then unchanged.
pub fn run(func: Validated<'_>, args: &mut Arguments, config: &Config) -> Result<Report, RunError> {
    let func = func.func();
    let bound = bind(func, args)?;
    let buffers = func.buffers();
    let (slots, widths) = slots(&buffers);
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
        streams: !single,
        spreads: threads > 1,
        bindings: bound.bindings,
        buffers,
    };
    let program = compile(&setup)?;
    let mut frame = Frame {
        registers: program.registers.clone(),
        memories: vec![None; setup.widths.len()],
        views: views(&setup)?,
        live: 0,
        fuel: config.fuel.unwrap_or(u64::MAX),
        iterations: 0,
        parallel_loops: 0,
        worker: false,
        lanes: Lanes::default(),
        race: config.observers.race.then(|| Box::new(Race::new())),
    };
    let passed = load_arguments(func, args, config, &setup, &mut frame)?;
    let machine = Machine { program: &program, config, threads };
    if threads == 1 {
        machine.nodes(&program.nodes, &mut frame)?;
    } else {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().map_err(|error| {
            Diagnostic::error("threads", None, format!("{threads} threads cannot be started: {error}"))
        })?;
        pool.install(|| machine.nodes(&program.nodes, &mut frame))?;
    }
    let stored = stored(func);
    for (position, memory, view) in passed {
        let buffer = func.params.get(position).and_then(|param| func.param_buffer(param));
        if buffer.is_some_and(|buffer| !stored.contains(&buffer.data)) {
            continue;
        }
        if let Some(Argument::Tensor(tensor)) = args.params.get_mut(position) {
            let packed = buffer.is_some_and(|buffer| buffer.strides.is_none()) && view.offset == 0;
            if packed && memory.len() == tensor.lane_count() * view.per_lane {
                let (bytes, defined) = tensor.parts_mut();
                memory.read_bytes(bytes);
                memory.read_defined(view.per_lane, defined);
                continue;
            }
            each_lane(tensor.dtype().lanes, &view, |lane, cell| {
                let raw = memory.get_wide(cell, view.per_lane, view.width).unwrap_or(0);
                let defined = (cell..cell + view.per_lane).all(|cell| memory.is_defined(cell));
                tensor.set_raw(lane, raw, defined);
            });
        }
    }
    Ok(Report { iterations: frame.iterations, parallel_loops: frame.parallel_loops, threads })
}

/// The data variables that the function writes to.
fn stored(func: &PrimFunc) -> Vec<Var> {
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

/// A slot of memory for each data variable, and the bytes of its narrowest element.
fn slots(buffers: &[Buffer]) -> (HashMap<Var, usize>, Vec<u64>) {
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

/// The views whose extents are known now.
fn views(setup: &Setup<'_>) -> Result<Vec<Option<Arc<View>>>, Diagnostic> {
    let view = |buffer: &Buffer| {
        let exprs = buffer.shape.iter().chain(buffer.strides.iter().flatten()).chain([&buffer.elem_offset]);
        let known = |expr: &Expr| expr.vars().iter().all(|var| setup.bindings.contains_key(var));
        if !exprs.into_iter().all(known) {
            return Ok(None);
        }
        let slot = setup.slots.get(&buffer.data).copied().unwrap_or(0);
        let made = view_of(buffer, slot, setup.widths[slot], &setup.bindings);
        made.map(|view| Some(Arc::new(view))).map_err(|BadView(why)| {
            Diagnostic::error("bad-size", buffer.span, format!("buffer `{buffer}` has no possible layout: {why}"))
        })
    };
    setup.buffers.iter().map(view).collect()
}

/// Values of symbols and scalar parameters.
struct Bound {
    bindings: Bindings,
    scalars: Vec<(Var, u64)>,
}

fn mismatch(message: String) -> Diagnostic {
    Diagnostic::error("argument", None, message)
}

/// Binds symbols and scalars from the arguments, then holds every shape against them.
fn bind(func: &PrimFunc, args: &Arguments) -> Result<Bound, Diagnostic> {
    let (given, expected) = (args.params.len(), func.params.len());
    if given != expected {
        return Err(mismatch(format!("`{}` takes {expected} arguments, but {given} are given", func.name)));
    }
    let mut bound = Bound { bindings: Bindings::new(), scalars: Vec::new() };
    for (var, value) in &args.symbols {
        bind_symbol(&mut bound, var, *value)?;
    }
    for (param, arg) in func.params.iter().zip(&args.params) {
        match (func.param_buffer(param), arg) {
            (Some(buffer), Argument::Tensor(tensor)) => bind_shape(&mut bound, buffer, tensor)?,
            (Some(buffer), Argument::Scalar(_)) => {
                return Err(mismatch(format!("parameter `{buffer}` takes a tensor, but a scalar is given")));
            }
            (None, Argument::Scalar(value)) => bind_scalar(&mut bound, param, *value)?,
            (None, Argument::Tensor(_)) => {
                return Err(mismatch(format!("parameter `{param}` takes a scalar, but a tensor is given")));
            }
        }
    }
    if let Some(var) = func.symbols().iter().find(|var| !bound.bindings.contains_key(var)) {
        let message = format!("no argument's shape says what `{var}` is");
        return Err(mismatch(message).with_help("give its value as a symbol"));
    }
    for (param, arg) in func.params.iter().zip(&args.params) {
        if let (Some(buffer), Argument::Tensor(tensor)) = (func.param_buffer(param), arg) {
            check_shape(&bound, buffer, tensor)?;
        }
    }
    Ok(bound)
}

fn bind_symbol(bound: &mut Bound, var: &Var, value: i128) -> Result<(), Diagnostic> {
    match bound.bindings.get(var) {
        Some(&known) if known != value => Err(mismatch(format!("`{var}` is {known} in one place, {value} in another"))),
        Some(_) => Ok(()),
        None => {
            let range = var.dtype().scalar.integer_range().unwrap_or((0, 0));
            if !(range.0..=range.1).contains(&value) {
                return Err(mismatch(format!("{value} is no value of `{var}`, whose type is {}", var.dtype())));
            }
            bound.bindings.insert(var.clone(), value);
            bound.scalars.push((var.clone(), encode(var.dtype().scalar, Scalar::Int(value))));
            Ok(())
        }
    }
}

fn bind_scalar(bound: &mut Bound, param: &Var, value: Scalar) -> Result<(), Diagnostic> {
    let ty = param.dtype().scalar;
    match value {
        Scalar::Int(value) if !ty.is_float() => bind_symbol(bound, param, value),
        Scalar::Float(value) if ty.is_float() => {
            let value = tilewright_ir::scalar::round_float(ty, value);
            bound.scalars.push((param.clone(), encode(ty, Scalar::Float(value))));
            Ok(())
        }
        Scalar::Int(_) | Scalar::Float(_) => {
            Err(mismatch(format!("parameter `{param}` has the type {}, the value given has not", param.dtype())))
        }
    }
}

fn bind_shape(bound: &mut Bound, buffer: &Buffer, tensor: &Tensor) -> Result<(), Diagnostic> {
    if tensor.dtype() != buffer.dtype || tensor.shape().len() != buffer.rank() {
        let (rank, ty) = (buffer.rank(), buffer.dtype);
        let (given, given_ty) = (tensor.shape().len(), tensor.dtype());
        return Err(mismatch(format!(
            "parameter `{buffer}` has {rank} axes of {ty}, but a tensor of {given} axes of {given_ty} is given"
        )));
    }
    for (expr, &extent) in buffer.shape.iter().zip(tensor.shape()) {
        if let Expr::Var(var) = expr {
            if extent == 0 {
                return Err(mismatch(format!(
                    "the extent `{var}` of `{buffer}` is 0; a symbolic extent is at least 1"
                )));
            }
            bind_symbol(bound, var, extent.into())?;
        }
    }
    Ok(())
}

fn check_shape(bound: &Bound, buffer: &Buffer, tensor: &Tensor) -> Result<(), Diagnostic> {
    for (axis, (expr, &extent)) in buffer.shape.iter().zip(tensor.shape()).enumerate() {
        let wanted = expr.eval_index(&bound.bindings).map_err(|error| mismatch(error.to_string()))?;
        if wanted != i128::from(extent) {
            return Err(mismatch(format!("axis {axis} of `{buffer}` has {wanted} elements, but {extent} are given")));
        }
    }
    Ok(())
}

type Passed = Vec<(usize, Arc<Memory>, Arc<View>)>;

/// Puts the tensors into memory.
fn load_arguments(
    func: &PrimFunc,
    args: &Arguments,
    config: &Config,
    setup: &Setup<'_>,
    frame: &mut Frame,
) -> Result<Passed, Diagnostic> {
    let mut passed = Passed::new();
    for (position, (param, arg)) in func.params.iter().zip(&args.params).enumerate() {
        let (Some(buffer), Argument::Tensor(tensor)) = (func.param_buffer(param), arg) else { continue };
        let number = setup.buffers.iter().position(|other| other == buffer).unwrap_or(0);
        let Some(view) = frame.views[number].clone() else { continue };
        if frame.memories[view.slot].is_some() {
            return Err(mismatch(format!("the memory of parameter `{buffer}` is another parameter's too")));
        }
        let cells = view
            .needed(buffer.dtype.lanes)
            .ok_or_else(|| mismatch(format!("parameter `{buffer}` starts before its memory")))?;
        frame.live = frame.live.saturating_add(cells.saturating_mul(view.width));
        if frame.live > config.max_bytes {
            let (bytes, limit) = (frame.live, config.max_bytes);
            return Err(mismatch(format!("the arguments take {bytes} bytes where {limit} are allowed")));
        }
        let refused = || mismatch(format!("there is no memory for parameter `{buffer}`"));
        let count = usize::try_from(cells).map_err(|_| refused())?;
        let whole = tensor.is_all_defined() && tensor.lane_count() * view.per_lane == count;
        let id = frame.race.as_mut().map_or(0, |race| race.memory());
        // Definedness is always kept for arguments that are not whole, so that it comes back as it went in.
        let memory = Memory::new(view.width, count, [!whole, config.observers.defined], id).map_err(|_| refused())?;
        if whole && buffer.strides.is_none() && view.offset == 0 {
            memory.write_bytes(tensor.bytes());
        } else if tensor.defined().contains(&true) {
            each_lane(buffer.dtype.lanes, &view, |lane, cell| {
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

/// Calls `each` with every lane of a packed tensor and its cell in a view.
fn each_lane(lanes: u16, view: &View, mut each: impl FnMut(usize, usize)) {
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
