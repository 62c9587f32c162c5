//! The kernels of a planned graph as plain data, for a host that runs them elsewhere.
//!
//! [`ship`] and [`run_graph`](super::run_graph) take kernels, memory and launches from one place, so that what is shipped is
//! what was run. The kernels may differ in one respect: without checks of texel accesses they are shorter.

use tilewright_compiler::codegen::Generated;
use tilewright_device::{BufferSpec, Initial, Launch, POISON};
use tilewright_interp::Tensor;

use super::bind;
use super::{GraphFault, Network, input_fault, kernels, pools};

/// What a host needs to run a planned graph, apart from the contents of its inputs.
#[derive(Clone, Debug)]
pub struct Shipment {
    /// The pools in the order of the plan, then the other memory of kernels. Inputs have no contents here; only reports are
    /// filled, with zeros.
    pub memory: Vec<BufferSpec>,
    /// The kernels of each function, in the order of first use.
    pub programs: Vec<Generated>,
    /// The steps, in execution order.
    pub steps: Vec<StepLaunches>,
}

/// The launches of one step.
#[derive(Clone, Debug)]
pub struct StepLaunches {
    /// The index of its program.
    pub program: usize,
    /// The launches, in execution order.
    pub launches: Vec<Launch>,
    /// The index of the memory that receives the report of accesses outside of textures. Only checked kernels have one.
    pub report: Option<usize>,
}

/// Returns kernels, memory and launches of a planned graph; with `checked`, exactly those of
/// [`run_graph`](super::run_graph). `inputs` are checked as there, and their contents left out.
///
/// # Errors
/// Graph, plan, functions and inputs do not fit together, or the code generator refuses a function.
pub fn ship(network: &Network<'_>, inputs: &[Tensor], checked: bool) -> Result<Shipment, GraphFault> {
    let bound = bind::bind(network, inputs).map_err(GraphFault::Input)?;
    let mut memory = pools::specs(&bound, inputs).map_err(input_fault)?;
    for pool in &mut memory {
        pool.initial = Initial::Fill(POISON);
    }
    let (programs, steps) = kernels::place(&bound, &mut memory, checked)?;
    Ok(Shipment { memory, programs, steps })
}
