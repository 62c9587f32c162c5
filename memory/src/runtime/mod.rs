//! Executes a planned graph on a device. The pools are allocated once, each step runs the kernels of its function,
//! and the tensors that a step writes are compared with the interpreter.
//!
//! ```text
//! graph, plan, functions ── bind ──> a function for each step, its parameters bound to the tensors the step reads
//! and writes
//!    pools ── one image or buffer for each pool, with the inputs in place and the rest poisoned
//!    kernels ── generated for a region of a pool (placed) with checks of every texel (checked); all in one launch
//!    plan
//!    reference ── the same functions in the interpreter, tensor by tensor
//! ```
//!
//! Tensors stay in their pools from one step to the next (texture RFC, "Graph Runtime"); nothing is copied. After the
//! last kernel of a step the pools that it wrote are read back. After the last step the pools of inputs and outputs
//! are read once more, which reveals an input that was overwritten and an output whose memory was reused.
//!
//! The plan is not trusted: a tensor that does not fit its pool is refused here, because a kernel would write past
//! the end. That live tensors do not overlap is for the judge to prove (`Judge::check_plan` of `tilewright-verify`);
//! if they do, the comparison fails.

mod bind;
mod kernels;
mod pools;
mod reference;
mod shipment;

use std::collections::BTreeMap;

use tilewright_device::{DeviceError, LaunchPlan, RunOptions, Session, Snapshot};
use tilewright_interp::Tensor;
use tilewright_ir::{Diagnostic, Graph, GraphStep, MemoryPlan, Module, PrimFunc, TensorRole};

use crate::graph::NamedGraph;
use bind::Bound;
use kernels::Kernels;
use reference::Reference;
use tilewright_compiler::harness::compare::{self, Comparison, Tolerance};
use tilewright_compiler::harness::engine::EngineFault;
use tilewright_compiler::harness::opencl;

pub use shipment::{Shipment, StepLaunches, ship};

/// A graph with its plan and the lowered function of each step.
///
/// The parameters of a function are the tensors that its step reads, then those that it writes, in the order of the
/// step.
#[derive(Clone, Debug)]
pub struct Network<'a> {
    /// The tensors and steps.
    pub graph: &'a Graph,
    /// The places of the tensors.
    pub plan: &'a MemoryPlan,
    /// One function for each step, after the passes.
    pub functions: Vec<&'a PrimFunc>,
    /// What the tensors are compared with.
    pub expected: Expected<'a>,
}

/// What the tensors of a graph are compared with.
#[derive(Clone, Debug, Default)]
pub enum Expected<'a> {
    /// The results of the functions themselves in the interpreter.
    #[default]
    Functions,
    /// The results of other functions in the interpreter, one for each step with the same parameters: those before the passes,
    /// for example, which the interpreter runs faster.
    Others(Vec<&'a PrimFunc>),
    /// Nothing: the caller compares [`StepRun::written`] itself. [`GraphRun::agrees`] is false then.
    Nothing,
}

/// Why executing a graph gave no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GraphFault {
    /// Graph, plan, functions or inputs do not fit together; contains every error.
    Input(Vec<Diagnostic>),
    /// The device or the interpreter failed.
    Engine(EngineFault),
}

/// A tensor that was compared with the interpreter's.
#[derive(Clone, Debug)]
pub struct Compared {
    /// Name of the tensor.
    pub tensor: String,
    /// Result of the comparison.
    pub comparison: Comparison,
}

/// The result of one step.
#[derive(Clone, Debug)]
pub struct StepRun {
    /// Name of the step.
    pub name: String,
    /// Number of kernels it consists of; 0 in the interpreter.
    pub kernels: usize,
    /// Time on the device or in the interpreter, in nanoseconds.
    pub nanoseconds: u64,
    /// The tensors it wrote, compared.
    pub compared: Vec<Compared>,
    /// The tensors it wrote, read back after its last kernel.
    pub written: Vec<Tensor>,
}

/// The result of a graph.
#[derive(Clone, Debug)]
pub struct GraphRun {
    /// One result for each step.
    pub steps: Vec<StepRun>,
    /// Inputs and outputs, read back after the last step.
    pub end: Vec<Compared>,
    /// The outputs, in the order of the graph's tensors.
    pub outputs: Vec<Tensor>,
    /// Total size of the pools in bytes.
    pub pool_bytes: u64,
}

impl<'a> Network<'a> {
    /// Finds the function of each step by name in a module of lowered functions. A step that names no function is run
    /// by the function with the name of the step.
    ///
    /// # Errors
    /// Every step without a function (`graph-function`).
    pub fn new(graph: &'a NamedGraph, plan: &'a MemoryPlan, module: &'a Module) -> Result<Self, Vec<Diagnostic>> {
        let mut faults = Vec::new();
        let mut functions = Vec::new();
        let known: BTreeMap<&str, &PrimFunc> = module.funcs.iter().map(|func| (func.name.as_str(), func)).collect();
        for (number, step) in graph.graph.steps.iter().enumerate() {
            let wanted = graph.functions.get(number).and_then(Option::as_deref).unwrap_or(&step.name);
            if let Some(func) = known.get(wanted) {
                functions.push(*func);
                continue;
            }
            let message = format!("step {number} `{}` is run by `{wanted}`, which there is not", step.name);
            let names = known.keys().copied().collect::<Vec<_>>().join(", ");
            let fault = Diagnostic::error("graph-function", None, message);
            faults.push(fault.with_help(format!("the functions are {names}")));
        }
        if faults.is_empty() {
            Ok(Self { graph: &graph.graph, plan, functions, expected: Expected::Functions })
        } else {
            Err(faults)
        }
    }

    /// Checks that graph, plan, functions and inputs fit together, as [`run_graph`] does.
    ///
    /// # Errors
    /// Everything that does not fit.
    pub fn check(&self, inputs: &[Tensor]) -> Result<(), Vec<Diagnostic>> {
        bind::bind(self, inputs).map(drop)
    }
}

impl GraphRun {
    /// All comparisons: the tensors written by each step, then inputs and outputs at the end.
    pub fn compared(&self) -> impl Iterator<Item = &Compared> {
        self.steps.iter().flat_map(|step| &step.compared).chain(&self.end)
    }

    /// Whether every step wrote something that was compared, and no comparison found a difference.
    pub fn agrees(&self) -> bool {
        let is_compared = |compared: &Compared| compared.comparison.compared > 0;
        let all_steps = self.steps.iter().all(|step| step.compared.iter().any(is_compared));
        !self.steps.is_empty() && all_steps && self.compared().all(|one| one.comparison.mismatches == 0)
    }

    /// The first tensor that differs, in step order.
    pub fn first_mismatch(&self) -> Option<&Compared> {
        self.compared().find(|compared| compared.comparison.mismatches > 0)
    }
}

/// Executes a planned graph on a device and compares every intermediate tensor; `inputs` in the order of the graph's
/// tensors.
///
/// The tolerance for floats is that of the step's function ([`Tolerance::of_func`]) plus that of the tensors it
/// reads.
///
/// # Errors
/// See [`GraphFault`]. Differing values are not an error; see [`GraphRun::agrees`].
pub fn run_graph(network: &Network<'_>, inputs: &[Tensor], session: &Session) -> Result<GraphRun, GraphFault> {
    // The order matters: everything that can be refused without the device is refused before a kernel is built.
    let bound = bind::bind(network, inputs).map_err(GraphFault::Input)?;
    let reference = match &network.expected {
        Expected::Functions => Some(reference::run(&bound, &network.functions, inputs)?),
        Expected::Others(functions) => Some(reference::run(&bound, functions, inputs)?),
        Expected::Nothing => None,
    };
    let mut memory = pools::specs(&bound, inputs).map_err(input_fault)?;
    let kernels = kernels::prepare(&bound, &mut memory, session)?;
    let snapshots = Snapshots::new(&bound, &kernels);
    let plan = LaunchPlan { buffers: memory, launches: kernels.launches.clone() };
    let options = RunOptions { snapshots: snapshots.wanted.clone(), ..RunOptions::default() };
    let programs = kernels.programs();
    let output = session.run_programs(&programs, &plan, &options).map_err(|error| device_fault(&error))?;
    if let Some(message) = kernels.outside_access(&output.buffers, &bound) {
        return Err(GraphFault::Engine(EngineFault::Trap { message, is_undefined_read: false }));
    }
    let read =
        |place: usize| bound.tensor_in_pool(snapshots.tensors[place], &output.snapshots[place]).map_err(input_fault);
    let mut run = GraphRun { steps: Vec::new(), end: Vec::new(), outputs: Vec::new(), pool_bytes: bound.pool_bytes() };
    let mut place = 0;
    for (number, step) in network.graph.steps.iter().enumerate() {
        let (mut compared, mut written) = (Vec::new(), Vec::new());
        for (position, &tensor) in step.writes.iter().enumerate() {
            let got = read(place)?;
            place += 1;
            if let Some(reference) = &reference
                && let Some(expected) = reference.written[number].get(position)
            {
                compared.push(compare_tensor(&bound, reference, tensor, expected, &got)?);
            }
            written.push(got);
        }
        let own = kernels.launches_of(number);
        let nanoseconds = output.launch_nanoseconds[own.clone()].iter().flatten().sum();
        run.steps.push(StepRun { name: step.name.clone(), kernels: own.len(), nanoseconds, compared, written });
    }
    for place in place..snapshots.tensors.len() {
        let (tensor, got) = (snapshots.tensors[place], read(place)?);
        if let Some(reference) = &reference {
            let expected = reference.current_value(&bound, tensor).map_err(input_fault)?;
            run.end.push(compare_tensor(&bound, reference, tensor, &expected, &got)?);
        }
        if network.graph.tensors[tensor].role == TensorRole::Output {
            run.outputs.push(got);
        }
    }
    Ok(run)
}

/// Executes a planned graph in the interpreter, without pools: nothing is compared, times are those of the interpreter, and there are no
/// outputs but what the steps wrote.
///
/// # Errors
/// The parts do not fit together, or the interpreter fails.
pub fn interpret_graph(network: &Network<'_>, inputs: &[Tensor]) -> Result<GraphRun, GraphFault> {
    let bound = bind::bind(network, inputs).map_err(GraphFault::Input)?;
    let Reference { written, nanoseconds, .. } = reference::run(&bound, &network.functions, inputs)?;
    let steps = network.graph.steps.iter().zip(written).zip(nanoseconds);
    let step = |((step, written), nanoseconds): ((&GraphStep, Vec<Tensor>), u64)| StepRun {
        name: step.name.clone(),
        kernels: 0,
        nanoseconds,
        compared: Vec::new(),
        written,
    };
    Ok(GraphRun { steps: steps.map(step).collect(), end: Vec::new(), outputs: Vec::new(), pool_bytes: 0 })
}

/// The pools to read back during the run and at its end.
struct Snapshots {
    wanted: Vec<Snapshot>,
    /// The tensor for which each snapshot is taken.
    tensors: Vec<usize>,
}

impl Snapshots {
    /// The tensors written by each step, after its last kernel; then inputs and outputs after the last kernel of all.
    fn new(bound: &Bound<'_>, kernels: &Kernels) -> Self {
        let mut all = Self { wanted: Vec::new(), tensors: Vec::new() };
        for (number, step) in bound.network.graph.steps.iter().enumerate() {
            for &tensor in &step.writes {
                all.push(bound, kernels.launches_of(number).end - 1, tensor);
            }
        }
        for (tensor, info) in bound.network.graph.tensors.iter().enumerate() {
            if info.role != TensorRole::Intermediate {
                all.push(bound, kernels.launches.len() - 1, tensor);
            }
        }
        all
    }

    /// Requests the pool of a tensor after a launch.
    fn push(&mut self, bound: &Bound<'_>, after: usize, tensor: usize) {
        self.wanted.push(Snapshot { after, memory: bound.network.plan.places[tensor].pool });
        self.tensors.push(tensor);
    }
}

/// Compares a tensor with the interpreter's, within the tolerance of its root.
fn compare_tensor(
    bound: &Bound<'_>,
    reference: &Reference,
    tensor: usize,
    expected: &Tensor,
    got: &Tensor,
) -> Result<Compared, GraphFault> {
    let name = &bound.network.graph.tensors[tensor].name;
    let tolerance = Tolerance { ulp: reference.ulp[bound.roots[tensor]], ..Tolerance::EXACT };
    let comparison = compare::tensors_where_defined(name, expected, got, tolerance)
        .map_err(|text| GraphFault::Engine(EngineFault::Error(format!("internal: {text}"))))?;
    Ok(Compared { tensor: name.clone(), comparison })
}

/// Wraps a single error of the input.
fn input_fault(fault: Diagnostic) -> GraphFault {
    GraphFault::Input(vec![fault])
}

/// Classifies a device error as for single programs.
fn device_fault(error: &DeviceError) -> GraphFault {
    GraphFault::Engine(opencl::fault(error))
}
