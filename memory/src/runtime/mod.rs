//! Running a planned graph on a device: the pools are allocated once, every step is the kernels of its function, and what a
//! step leaves behind is compared with the interpreter.
//!
//! ```text
//! graph, plan, functions ── bind ──> a function for each step, its parameters bound to what the step reads and writes
//!    pools ── one image or buffer for each pool, the inputs laid into it, the rest poisoned
//!    kernels ── generated for a part of a pool (placed) and with every texel tested (checked); all of them in one launch plan
//!    reference ── the same functions in the interpreter, tensor by tensor
//! ```
//!
//! Tensors stay in their pools from one step to the next (texture RFC, "Graph Runtime"); nothing is copied. After the last
//! kernel of a step the pools that it wrote are read, and once more after the last step those of inputs and outputs: an
//! input that was overwritten and an output whose memory somebody else used show then.
//!
//! The plan is not believed: what does not fit its pool is refused here, because a kernel would write past the end. That
//! tensors alive at once lie apart is for the judge to say (`Judge::check_plan` of `tilewright-verify`), and where they do
//! not the comparison fails.

mod bind;
mod kernels;
mod pools;
mod reference;

use std::collections::BTreeMap;

use tilewright_device::{DeviceError, LaunchPlan, RunOptions, Session, Snapshot};
use tilewright_interp::Tensor;
use tilewright_ir::{Diagnostic, Graph, MemoryPlan, Module, PrimFunc, TensorRole};

use crate::graph::NamedGraph;
use bind::Bound;
use kernels::Kernels;
use reference::Reference;
use tilewright_compiler::harness::compare::{self, Comparison, Tolerance};
use tilewright_compiler::harness::engine::Fault;

/// A graph with its plan and the lowered function of each step.
///
/// The parameters of a function are what its step reads and then what it writes, in the order of the step.
#[derive(Clone, Debug)]
pub struct Network<'a> {
    /// Tensors and steps.
    pub graph: &'a Graph,
    /// Where the tensors lie.
    pub plan: &'a MemoryPlan,
    /// One for each step, after the passes.
    pub functions: Vec<&'a PrimFunc>,
}

/// Why a graph gave no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GraphFault {
    /// Graph, plan, functions or inputs do not fit together: all that is wrong.
    Input(Vec<Diagnostic>),
    /// The device or the interpreter gave no result.
    Engine(EngineFault),
}

/// A tensor that was compared.
#[derive(Clone, Debug)]
pub struct Compared {
    /// Its name.
    pub tensor: String,
    /// What came of it.
    pub comparison: Comparison,
}

/// What became of a step.
#[derive(Clone, Debug)]
pub struct StepRun {
    /// Its name.
    pub name: String,
    /// How many kernels it is.
    pub kernels: usize,
    /// Time on the device, in nanoseconds.
    pub nanoseconds: u64,
    /// What it wrote, as it was after it.
    pub compared: Vec<Compared>,
}

/// What became of a graph.
#[derive(Clone, Debug)]
pub struct GraphRun {
    /// One for each step.
    pub steps: Vec<StepRun>,
    /// Inputs and outputs after the last step.
    pub end: Vec<Compared>,
    /// The outputs, in the order of the graph's tensors.
    pub outputs: Vec<Tensor>,
    /// Bytes of all pools.
    pub pool_bytes: u64,
}

impl<'a> Network<'a> {
    /// Finds the function of each step by its name in a module of lowered functions; a step that names none is run by the
    /// function that is called like it.
    ///
    /// # Errors
    /// A step without a function (`graph-function`).
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
        if faults.is_empty() { Ok(Self { graph: &graph.graph, plan, functions }) } else { Err(faults) }
    }

    /// Whether graph, plan, functions and inputs fit together; [`run_graph`] asks the same.
    ///
    /// # Errors
    /// All that is wrong.
    pub fn check(&self, inputs: &[Tensor]) -> Result<(), Vec<Diagnostic>> {
        bind::bind(self, inputs).map(drop)
    }
}

impl GraphRun {
    /// Everything that was compared: what each step wrote, then inputs and outputs at the end.
    pub fn compared(&self) -> impl Iterator<Item = &Compared> {
        self.steps.iter().flat_map(|step| &step.compared).chain(&self.end)
    }

    /// Whether every step wrote something that was compared, and nothing differs.
    pub fn agrees(&self) -> bool {
        let is_compared = |compared: &Compared| compared.comparison.compared > 0;
        let all_steps = self.steps.iter().all(|step| step.compared.iter().any(is_compared));
        !self.steps.is_empty() && all_steps && self.compared().all(|one| one.comparison.mismatches == 0)
    }

    /// The first tensor that differs, in the order of the steps.
    pub fn first_mismatch(&self) -> Option<&Compared> {
        self.compared().find(|compared| compared.comparison.mismatches > 0)
    }
}

/// Runs a planned graph on a device and compares every intermediate; `inputs` in the order of the graph's tensors.
///
/// Floats are compared as the functions allow ([`Tolerance::of_func`]), those of the steps before included.
///
/// # Errors
/// See [`GraphFault`]. That values differ is no error: [`GraphRun::agrees`] says so.
pub fn run_graph(network: &Network<'_>, inputs: &[Tensor], session: &Session) -> Result<GraphRun, GraphFault> {
    let bound = bind::bind(network, inputs).map_err(GraphFault::Input)?;
    let reference = reference::run(&bound, inputs)?;
    let mut memory = pools::specs(&bound, inputs).map_err(one)?;
    let kernels = kernels::prepare(&bound, &mut memory, session)?;
    let snapshots = Snapshots::new(&bound, &kernels);
    let plan = LaunchPlan { buffers: memory, launches: kernels.launches.clone() };
    let options = RunOptions { snapshots: snapshots.wanted.clone(), ..RunOptions::default() };
    let programs = kernels.programs();
    let output = session.run_programs(&programs, &plan, &options).map_err(|error| device(&error))?;
    if let Some(message) = kernels.outside(&output.buffers, &bound) {
        return Err(GraphFault::Engine(EngineFault::Trap { message, is_undefined_read: false }));
    }
    let read = |place: usize| bound.cut(snapshots.tensors[place], &output.snapshots[place]).map_err(one);
    let mut run = GraphRun { steps: Vec::new(), end: Vec::new(), outputs: Vec::new(), pool_bytes: bound.pool_bytes() };
    let mut place = 0;
    for (number, step) in network.graph.steps.iter().enumerate() {
        let mut compared = Vec::new();
        for (&tensor, expected) in step.writes.iter().zip(&reference.written[number]) {
            compared.push(hold(&bound, &reference, tensor, expected, &read(place)?)?);
            place += 1;
        }
        let own = kernels.of_step(number);
        let nanoseconds = output.launch_nanoseconds[own.clone()].iter().flatten().sum();
        run.steps.push(StepRun { name: step.name.clone(), kernels: own.len(), nanoseconds, compared });
    }
    for place in place..snapshots.tensors.len() {
        let (tensor, got) = (snapshots.tensors[place], read(place)?);
        run.end.push(hold(&bound, &reference, tensor, &reference.at_end(&bound, tensor).map_err(one)?, &got)?);
        if network.graph.tensors[tensor].role == TensorRole::Output {
            run.outputs.push(got);
        }
    }
    Ok(run)
}

/// What is read in the middle of the run and at its end.
struct Snapshots {
    wanted: Vec<Snapshot>,
    /// The tensor that each shows.
    tensors: Vec<usize>,
}

impl Snapshots {
    /// What each step writes, after its last kernel; then inputs and outputs after the very last.
    fn new(bound: &Bound<'_>, kernels: &Kernels) -> Self {
        let mut all = Self { wanted: Vec::new(), tensors: Vec::new() };
        for (number, step) in bound.network.graph.steps.iter().enumerate() {
            for &tensor in &step.writes {
                all.push(bound, kernels.of_step(number).end - 1, tensor);
            }
        }
        for (tensor, info) in bound.network.graph.tensors.iter().enumerate() {
            if info.role != TensorRole::Intermediate {
                all.push(bound, kernels.launches.len() - 1, tensor);
            }
        }
        all
    }

    fn push(&mut self, bound: &Bound<'_>, after: usize, tensor: usize) {
        self.wanted.push(Snapshot { after, memory: bound.network.plan.places[tensor].pool });
        self.tensors.push(tensor);
    }
}

/// Compares a tensor with what it should be.
fn hold(
    bound: &Bound<'_>,
    reference: &Reference,
    tensor: usize,
    expected: &Tensor,
    got: &Tensor,
) -> Result<Compared, GraphFault> {
    let name = &bound.network.graph.tensors[tensor].name;
    let tolerance = Tolerance { ulp: reference.ulp[bound.roots[tensor]] };
    let comparison = compare::tensors_where_defined(name, expected, got, tolerance)
        .map_err(|text| GraphFault::Engine(EngineFault::Error(format!("internal: {text}"))))?;
    Ok(Compared { tensor: name.clone(), comparison })
}

fn one(fault: Diagnostic) -> GraphFault {
    GraphFault::Input(vec![fault])
}

/// No device, or one that lacks something, is a reason to skip; a device that fails is not.
fn device(error: &DeviceError) -> GraphFault {
    let is_lacking = error.is_absent() || matches!(error, DeviceError::Unsupported { .. });
    let text = error.to_string();
    GraphFault::Engine(if is_lacking { EngineFault::Skipped(text) } else { EngineFault::Error(text) })
}
