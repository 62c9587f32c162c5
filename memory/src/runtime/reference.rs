//! The same graph in the interpreter.

use tilewright_interp::{Argument, Arguments, Tensor};
use tilewright_ir::{Diagnostic, GraphTensor, TensorRole};

use super::GraphFault;
use super::bind::Bound;
use tilewright_compiler::harness::compare::Tolerance;
use tilewright_compiler::harness::engine::{Engine, EngineFault, StageProgram};
use tilewright_compiler::harness::interpreter::Interpreter;

/// What the tensors should be.
#[derive(Debug)]
pub(super) struct Reference {
    /// What each step writes, in its order.
    pub(super) written: Vec<Vec<Tensor>>,
    /// What each root holds at the end, in the root's shape; none if nobody wrote it.
    held: Vec<Option<Tensor>>,
    /// Units in the last place that each root may be off: by the functions that made it, and those before them.
    pub(super) ulp: Vec<u64>,
}

/// Runs all steps.
pub(super) fn run(bound: &Bound<'_>, inputs: &[Tensor]) -> Result<Reference, GraphFault> {
    let graph = bound.network.graph;
    let n_tensors = graph.tensors.len();
    let mut all = Reference { written: Vec::new(), held: vec![None; n_tensors], ulp: vec![0; n_tensors] };
    let given = (0..n_tensors).filter(|&tensor| graph.tensors[tensor].role == TensorRole::Input);
    for (tensor, input) in given.zip(inputs) {
        all.keep(bound, tensor, input).map_err(super::one)?;
    }
    for (number, step) in graph.steps.iter().enumerate() {
        let func = bound.network.functions[number];
        let mut params = Vec::new();
        for &tensor in &step.reads {
            params.push(Argument::Tensor(all.at_end(bound, tensor).map_err(super::one)?));
        }
        for &tensor in &step.writes {
            let info = &graph.tensors[tensor];
            let fresh = Tensor::undefined(info.dtype, &info.shape)
                .map_err(|error| super::one(unlike(info, &error.to_string())))?;
            params.push(Argument::Tensor(fresh));
        }
        let symbols = &bound.symbols[number];
        let mut arguments = Arguments { params, symbols: Vec::new() };
        Interpreter::default()
            .run(&StageProgram::Func(func), symbols, &mut arguments)
            .map_err(|fault| at(step, fault))?;
        let upstream = step.reads.iter().map(|&tensor| all.ulp[bound.roots[tensor]]).max().unwrap_or(0);
        let ulp = Tolerance::of_func(func).ulp.saturating_add(upstream);
        let mut written = Vec::new();
        let results = arguments.params.into_iter().skip(step.reads.len());
        for (&tensor, result) in step.writes.iter().zip(results) {
            let Argument::Tensor(result) = result else { continue };
            all.keep(bound, tensor, &result).map_err(super::one)?;
            all.ulp[bound.roots[tensor]] = ulp;
            written.push(result);
        }
        all.written.push(written);
    }
    Ok(all)
}

impl Reference {
    /// What a tensor holds now: what its root holds, in its own shape.
    pub(super) fn at_end(&self, bound: &Bound<'_>, tensor: usize) -> Result<Tensor, Diagnostic> {
        let info = &bound.network.graph.tensors[tensor];
        let held = self.held[bound.roots[tensor]].as_ref();
        held.map_or_else(|| Err(unlike(info, "nobody wrote it")), |held| in_shape_of(info, held))
    }

    fn keep(&mut self, bound: &Bound<'_>, tensor: usize, value: &Tensor) -> Result<(), Diagnostic> {
        let root = bound.roots[tensor];
        self.held[root] = Some(in_shape_of(&bound.network.graph.tensors[root], value)?);
        Ok(())
    }
}

/// The same lanes in the shape of another tensor; what is not defined stays so.
fn in_shape_of(info: &GraphTensor, value: &Tensor) -> Result<Tensor, Diagnostic> {
    if info.shape == value.shape() {
        return Ok(value.clone());
    }
    let mut shown = Tensor::undefined(info.dtype, &info.shape).map_err(|error| unlike(info, &error.to_string()))?;
    if shown.lane_count() != value.lane_count() {
        return Err(unlike(info, "it has another number of elements than what it is a view of"));
    }
    for lane in 0..value.lane_count() {
        if let Some(lane_value) = value.get(lane) {
            shown.set(lane, lane_value);
        }
    }
    Ok(shown)
}

fn unlike(info: &GraphTensor, why: &str) -> Diagnostic {
    Diagnostic::error("graph-tensor", None, format!("`{}`: {why}", info.name))
}

/// The fault with the step that it happened in.
fn at(step: &tilewright_ir::GraphStep, fault: EngineFault) -> GraphFault {
    let tell = |text: String| format!("step `{}` in the interpreter: {text}", step.name);
    GraphFault::Engine(match fault {
        EngineFault::Trap { message, is_undefined_read } => {
            EngineFault::Trap { message: tell(message), is_undefined_read }
        }
        EngineFault::Skipped(why) => EngineFault::Skipped(tell(why)),
        EngineFault::Absent(why) => EngineFault::Absent(tell(why)),
        EngineFault::Error(why) => EngineFault::Error(tell(why)),
    })
}
