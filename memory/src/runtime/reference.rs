//! Executes the graph in the interpreter, tensor by tensor.

use std::time::Instant;

use tilewright_interp::{Argument, Arguments, Tensor};
use tilewright_ir::{Diagnostic, GraphTensor, PrimFunc};

use super::GraphFault;
use super::bind::Bound;
use tilewright_compiler::harness::compare::Tolerance;
use tilewright_compiler::harness::engine::{Engine, EngineFault, StageProgram};
use tilewright_compiler::harness::interpreter::Interpreter;

/// The expected tensors.
#[derive(Debug)]
pub(super) struct Reference {
    /// For each step the tensors that it writes, in order.
    pub(super) written: Vec<Vec<Tensor>>,
    /// For each step the time that the interpreter took, in nanoseconds.
    pub(super) nanoseconds: Vec<u64>,
    /// The value of each root at the end, in the root's shape; `None` if no step wrote it.
    held: Vec<Option<Tensor>>,
    /// Tolerance of each root in units in the last place: that of the function that wrote it, plus that of what it
    /// read.
    pub(super) ulp: Vec<u64>,
}

/// Executes all steps, each by its function of `functions`, which has the parameters of the step's own function.
///
/// # Errors
/// The interpreter fails, or a tensor is read before it is written.
pub(super) fn run(bound: &Bound<'_>, functions: &[&PrimFunc], inputs: &[Tensor]) -> Result<Reference, GraphFault> {
    let graph = bound.network.graph;
    let n_tensors = graph.tensors.len();
    let mut all = Reference {
        written: Vec::new(),
        nanoseconds: Vec::new(),
        held: vec![None; n_tensors],
        ulp: vec![0; n_tensors],
    };
    let given = (0..n_tensors).filter(|&tensor| graph.tensors[tensor].role.is_given());
    for (tensor, input) in given.zip(inputs) {
        all.keep(bound, tensor, input).map_err(super::input_fault)?;
    }
    for (number, step) in graph.steps.iter().enumerate() {
        let func = *functions.get(number).ok_or_else(|| {
            let message = format!("step {number} `{}` has no function to compare with", step.name);
            super::input_fault(Diagnostic::error("graph-function", None, message))
        })?;
        let mut params = Vec::new();
        for &tensor in &step.reads {
            params.push(Argument::Tensor(all.current_value(bound, tensor).map_err(super::input_fault)?));
        }
        for &tensor in &step.writes {
            let info = &graph.tensors[tensor];
            // On the device an output lies where another tensor was. Here it is undefined, so a read of it traps.
            let fresh = Tensor::undefined(info.dtype, &info.shape)
                .map_err(|error| super::input_fault(tensor_error(info, &error.to_string())))?;
            params.push(Argument::Tensor(fresh));
        }
        let symbols = &bound.symbols[number];
        let mut arguments = Arguments { params, symbols: Vec::new() };
        let start = Instant::now();
        Interpreter::default()
            .run(&StageProgram::Func(func), symbols, &mut arguments)
            .map_err(|fault| fault_in_step(step, fault))?;
        all.nanoseconds.push(u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX));
        // Errors of earlier steps are passed on, and the steps' own errors add up along a path.
        let upstream = step.reads.iter().map(|&tensor| all.ulp[bound.roots[tensor]]).max().unwrap_or(0);
        let ulp = Tolerance::of_func(func).ulp.saturating_add(upstream);
        let mut written = Vec::new();
        let results = arguments.params.into_iter().skip(step.reads.len());
        for (&tensor, result) in step.writes.iter().zip(results) {
            let Argument::Tensor(result) = result else { continue };
            all.keep(bound, tensor, &result).map_err(super::input_fault)?;
            all.ulp[bound.roots[tensor]] = ulp;
            written.push(result);
        }
        all.written.push(written);
    }
    Ok(all)
}

impl Reference {
    /// The current value of a tensor: the value of its root, in its own shape.
    pub(super) fn current_value(&self, bound: &Bound<'_>, tensor: usize) -> Result<Tensor, Diagnostic> {
        let info = &bound.network.graph.tensors[tensor];
        let held = self.held[bound.roots[tensor]].as_ref();
        held.map_or_else(|| Err(tensor_error(info, "no step wrote it")), |held| in_shape_of(info, held))
    }

    /// Sets the value of a tensor's root.
    fn keep(&mut self, bound: &Bound<'_>, tensor: usize, value: &Tensor) -> Result<(), Diagnostic> {
        let root = bound.roots[tensor];
        self.held[root] = Some(in_shape_of(&bound.network.graph.tensors[root], value)?);
        Ok(())
    }
}

/// A tensor with the same elements in the shape of `info`; undefined elements stay undefined.
fn in_shape_of(info: &GraphTensor, value: &Tensor) -> Result<Tensor, Diagnostic> {
    if info.shape == value.shape() {
        return Ok(value.clone());
    }
    let mut shown =
        Tensor::undefined(info.dtype, &info.shape).map_err(|error| tensor_error(info, &error.to_string()))?;
    if shown.lane_count() != value.lane_count() {
        return Err(tensor_error(info, "it has another number of elements than what it is a view of"));
    }
    for lane in 0..value.lane_count() {
        if let Some(lane_value) = value.get(lane) {
            shown.set(lane, lane_value);
        }
    }
    Ok(shown)
}

fn tensor_error(info: &GraphTensor, why: &str) -> Diagnostic {
    Diagnostic::error("graph-tensor", None, format!("`{}`: {why}", info.name))
}

/// Adds the name of the step to a fault.
fn fault_in_step(step: &tilewright_ir::GraphStep, fault: EngineFault) -> GraphFault {
    let with_step = |text: String| format!("step `{}` in the interpreter: {text}", step.name);
    GraphFault::Engine(match fault {
        EngineFault::Trap { message, is_undefined_read } => {
            EngineFault::Trap { message: with_step(message), is_undefined_read }
        }
        EngineFault::Skipped(why) => EngineFault::Skipped(with_step(why)),
        EngineFault::Absent(why) => EngineFault::Absent(with_step(why)),
        EngineFault::Error(why) => EngineFault::Error(with_step(why)),
        EngineFault::Lost(why) => EngineFault::Lost(with_step(why)),
    })
}
