//! Checks, before anything runs, that graph, plan, functions and inputs fit together.

use tilewright_interp::Tensor;
use tilewright_ir::{Bindings, Buffer, Diagnostic, Expr, Graph, GraphTensor, MemoryPlan, PrimFunc, Region, Room};

use super::Network;
use crate::graph::check;

/// A network that passed the checks.
#[derive(Debug)]
pub(super) struct Bound<'a> {
    pub(super) network: &'a Network<'a>,
    /// The root of each tensor, which owns its memory.
    pub(super) roots: Vec<usize>,
    /// For each step the values of the symbolic extents of its function.
    pub(super) symbols: Vec<Bindings>,
}

fn fault(code: &'static str, message: String) -> Diagnostic {
    Diagnostic::error(code, None, message)
}

/// Checks every part against the others.
///
/// # Errors
/// Everything that does not fit.
pub(super) fn bind<'a>(network: &'a Network<'a>, inputs: &[Tensor]) -> Result<Bound<'a>, Vec<Diagnostic>> {
    let graph = network.graph;
    // Without roots nothing else can be checked, so the defects of the graph are returned alone.
    let defects: Vec<_> = check::check(graph).into_iter().map(|found| found.diagnostic).collect();
    let roots = check::roots_of(graph).filter(|_| defects.is_empty()).ok_or(defects)?;
    let mut faults = unplaced(graph, network.plan);
    if graph.steps.is_empty() {
        faults.push(fault("graph-steps", "the graph has no steps, so there is nothing to run".into()));
    }
    if network.functions.len() != graph.steps.len() {
        let (given, wanted) = (network.functions.len(), graph.steps.len());
        faults.push(fault("graph-function", format!("{given} functions are given for {wanted} steps")));
    }
    faults.extend(wrong_inputs(graph, inputs));
    faults.extend(other_types(graph, &roots));
    let mut symbols = Vec::new();
    for (number, func) in network.functions.iter().enumerate().take(graph.steps.len()) {
        match bind_step(graph, number, func) {
            Ok(bindings) => symbols.push(bindings),
            Err(found) => faults.push(found),
        }
    }
    if faults.is_empty() { Ok(Bound { network, roots, symbols }) } else { Err(faults) }
}

impl Bound<'_> {
    /// The tensors that the parameters of a step's function stand for, in order.
    pub(super) fn arguments(&self, step: usize) -> Vec<usize> {
        arguments(self.network.graph, step)
    }
}

/// The tensors that a step reads, then those that it writes.
fn arguments(graph: &Graph, step: usize) -> Vec<usize> {
    let step = &graph.steps[step];
    step.reads.iter().chain(&step.writes).copied().collect()
}

/// Tensors without a valid place in the plan. A kernel would access memory beyond the end of a pool.
fn unplaced(graph: &Graph, plan: &MemoryPlan) -> Vec<Diagnostic> {
    let (n_tensors, n_places) = (graph.tensors.len(), plan.places.len());
    if n_tensors != n_places {
        return vec![fault("graph-plan", format!("the plan has places for {n_places} tensors of {n_tensors}"))];
    }
    let mut faults = Vec::new();
    for (tensor, place) in graph.tensors.iter().zip(&plan.places) {
        let Some(pool) = plan.pools.get(place.pool) else {
            faults.push(fault(
                "graph-plan",
                format!("`{}` lies in pool {}, which there is not", tensor.name, place.pool),
            ));
            continue;
        };
        // A plan that was read from a file may hold any number, so the sum may overflow.
        let is_inside = |start: u64, size: u64, limit: u64| start.checked_add(size).is_some_and(|end| end <= limit);
        let fits = match (tensor.room(), place.region, pool.room) {
            (Err(found), ..) => {
                faults.push(found);
                continue;
            }
            (Ok(Room::Bytes(needed)), Region::Bytes { offset, size }, Room::Bytes(bytes)) => {
                needed == size && is_inside(offset, size, bytes)
            }
            (
                Ok(Room::Texels { width: columns, height: rows }),
                Region::Texels { x, y, width, height },
                Room::Texels { width: limit, height: last },
            ) => columns == width && rows == height && is_inside(x, width, limit) && is_inside(y, height, last),
            // A buffer in a pool of texels, or a texture in a pool of bytes.
            _ => false,
        };
        let same_type = !tensor.scope.is_texture() || tensor.dtype == pool.dtype;
        if !fits || tensor.scope.is_texture() != pool.scope.is_texture() || !same_type {
            faults
                .push(fault("graph-plan", format!("`{}` does not fit its place in pool {}", tensor.name, place.pool)));
        }
    }
    faults
}

/// Inputs whose number, element type or shape differs from the graph's.
fn wrong_inputs(graph: &Graph, inputs: &[Tensor]) -> Vec<Diagnostic> {
    let wanted: Vec<&GraphTensor> = graph.tensors.iter().filter(|tensor| tensor.role.is_given()).collect();
    if wanted.len() != inputs.len() {
        let message = format!("{} inputs are given, the graph has {}", inputs.len(), wanted.len());
        return vec![fault("graph-inputs", message)];
    }
    let differs = |(wanted, given): &(&&GraphTensor, &Tensor)| {
        (wanted.dtype, wanted.shape.as_slice()) != (given.dtype(), given.shape())
    };
    let told = |(wanted, given): (&&GraphTensor, &Tensor)| {
        let (name, ty, shape) = (&wanted.name, wanted.dtype, &wanted.shape);
        fault("graph-inputs", format!("`{name}` is {ty}{shape:?}, and {}{:?} is given", given.dtype(), given.shape()))
    };
    wanted.iter().zip(inputs).filter(differs).map(told).collect()
}

/// Views whose element type differs from their root's. Their elements would have to be reinterpreted, which the
/// interpreter cannot do.
fn other_types(graph: &Graph, roots: &[usize]) -> Vec<Diagnostic> {
    let differs = |(tensor, root): &(&GraphTensor, &usize)| tensor.dtype != graph.tensors[**root].dtype;
    let told = |(tensor, root): (&GraphTensor, &usize)| {
        let root = &graph.tensors[*root];
        let (view, ty, name, other) = (&tensor.name, tensor.dtype, &root.name, root.dtype);
        fault("graph-view", format!("`{view}` holds {ty} and is a view of `{name}`, which holds {other}"))
    };
    graph.tensors.iter().zip(roots).filter(differs).map(told).collect()
}

/// Matches the parameters of a function with the tensors that its step reads and writes; returns the values of its
/// symbolic extents.
fn bind_step(graph: &Graph, number: usize, func: &PrimFunc) -> Result<Bindings, Diagnostic> {
    let tensors = arguments(graph, number);
    let at = format!("step {number} `{}`, function `{}`", graph.steps[number].name, func.name);
    if func.params.len() != tensors.len() {
        let (params, tensors) = (func.params.len(), tensors.len());
        let message = format!("{at} has {params} parameters, the step reads and writes {tensors} tensors");
        let help = "the parameters are what the step reads and then what it writes, in its order";
        return Err(fault("graph-parameters", message).with_help(help));
    }
    let mut bindings = Bindings::new();
    for (param, tensor) in func.params.iter().zip(&tensors) {
        let tensor = &graph.tensors[*tensor];
        let buffer = func.param_buffer(param);
        let buffer = buffer.ok_or_else(|| fault("graph-parameters", format!("{at}: `{param}` is a scalar")))?;
        matches(buffer, tensor, &mut bindings)
            .map_err(|what| fault("graph-parameters", format!("{at}: parameter `{buffer}` {what}")))?;
    }
    Ok(bindings)
}

/// Checks that a parameter has the element type, scope, shape and texture columns of its tensor.
///
/// A symbolic extent is bound at its first occurrence, and compared at the others.
fn matches(buffer: &Buffer, tensor: &GraphTensor, bindings: &mut Bindings) -> Result<(), String> {
    let name = &tensor.name;
    if buffer.dtype != tensor.dtype {
        return Err(format!("holds {}, tensor `{name}` {}", buffer.dtype, tensor.dtype));
    }
    if buffer.scope != tensor.scope {
        return Err(format!("is in scope `{}`, tensor `{name}` in `{}`", buffer.scope, tensor.scope));
    }
    if buffer.strides.is_some() || buffer.elem_offset.as_const_int() != Some(0) {
        return Err("has strides or an element offset, which no tensor of a graph has".into());
    }
    let unlike = || {
        let extents: Vec<String> = buffer.shape.iter().map(ToString::to_string).collect();
        format!("has the shape [{}], tensor `{name}` {:?}", extents.join(", "), tensor.shape)
    };
    if buffer.rank() != tensor.shape.len() {
        return Err(unlike());
    }
    for (expr, &extent) in buffer.shape.iter().zip(&tensor.shape) {
        // In order of the axes: an expression has a value only if its symbols are bound by earlier axes or parameters.
        let value = match expr {
            Expr::Var(var) => *bindings.entry(var.clone()).or_insert(i128::from(extent)),
            other => other.eval_index(bindings).map_err(|error| format!("{}: {error}", unlike()))?,
        };
        if value != i128::from(extent) {
            return Err(unlike());
        }
    }
    if tensor.scope.is_texture() {
        let own = tensor.buffer().and_then(|own| own.texture_separators());
        let same = buffer.texture_separators().ok().zip(own.ok()).is_some_and(|(a, b)| a == b);
        return if same { Ok(()) } else { Err(format!("has its columns elsewhere than tensor `{name}`")) };
    }
    Ok(())
}
