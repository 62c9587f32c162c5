//! Graphs of tensors and the steps that write and read them, as text: what a memory planner is given, and the plan it makes.
//!
//! Two forms are read, told apart by their first fields. Ours has names only:
//!
//! ```json
//! {"schema": "tilewright.graph/1",
//!  "tensors": [
//!    {"name": "x", "shape": [1, 2, 7, 7, 4], "dtype": "float16", "scope": "texture"},
//!    {"name": "y", "shape": [1, 2, 7, 7, 4], "dtype": "float16", "scope": "texture"},
//!    {"name": "flat", "shape": [1, 392], "dtype": "float16"},
//!    {"name": "rows", "shape": [8, 49], "dtype": "float16", "view_of": "flat"}],
//!  "steps": [
//!    {"name": "relu", "function": "relu4", "reads": ["x"], "writes": ["y"]},
//!    {"name": "unpack", "reads": ["y"], "writes": ["flat"]}],
//!  "inputs": ["x"],
//!  "outputs": ["rows"]}
//! ```
//!
//! | field of a tensor | meaning |
//! |---|---|
//! | `name` | unique among the tensors |
//! | `shape` | extents in elements, one an axis |
//! | `dtype` | `float16`, `int8`, `float32x4`, ... |
//! | `scope` | `global` if not given, or `texture`, `texture:weight`, `texture:nhwc`; TVM's `global.texture` and its kin are the same |
//! | `axis_separators` | where the columns of a texture begin, if its scope does not say it: a number of axes |
//! | `view_of` | the tensor whose memory it shows in another shape |
//!
//! Steps run in the order of the list. A tensor that is no input and no view is written by exactly one step, and read by
//! later ones only; accumulating into a tensor is not possible, because what a step reads and what it writes may not share
//! memory. Names of steps are unique; `function` is what a runtime calls. Nothing else is allowed in the file.
//!
//! The other form is the JSON of TVM's graph executor, as the texture RFC extends it ("Graph Runtime Codegen"); see
//! [`read`]. It is also what a plan is written as: [`write()`].

pub mod build;
pub mod check;
mod executor;
mod json;
mod native;
mod storage;
mod write;

use tilewright_ir::{Diagnostic, Graph, MemoryPlan, Span};

pub use build::GraphBuilder;
pub(crate) use storage::BYTE;
pub use write::write;

/// A graph with what a runtime needs besides.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NamedGraph {
    /// Tensors and steps.
    pub graph: Graph,
    /// What runs each step, one for each; none if it was not said.
    pub functions: Vec<Option<String>>,
    /// The inputs in the caller's order, as places in `graph.tensors`.
    pub inputs: Vec<usize>,
    /// The outputs in the caller's order; an input may be one, too.
    pub outputs: Vec<usize>,
}

/// What a file holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Document {
    /// The graph.
    pub graph: NamedGraph,
    /// Where its tensors lie, if the file says it.
    pub plan: Option<MemoryPlan>,
}

/// Reads a graph in either form.
///
/// In the form of TVM's graph executor, nodes of op `null` are inputs and those of op `tvm_op` steps; the function `__nop` is
/// a view. A `storage_id` without a list of pools is TVM's own plan: each pool is as large as its largest tensor, a texture in
/// each direction.
///
/// # Errors
/// All that is wrong, each with its place: what is no JSON, a field that is missing or unknown (`graph-json`), names that
/// are unknown or used twice, and what [`check::check`] finds.
pub fn read(text: &str) -> Result<Document, Vec<Diagnostic>> {
    match json::form(text).map_err(|fault| vec![fault])? {
        json::Form::Native => native::read(text).map(|graph| Document { graph, plan: None }),
        json::Form::Executor => executor::read(text),
    }
}

/// Where a text that [`read`] takes names a tensor, for who finds fault with it later; none if it is written with escapes.
pub fn place_of(text: &str, tensor: usize) -> Option<Span> {
    match json::form(text).ok()? {
        json::Form::Native => native::place_of(text, tensor),
        json::Form::Executor => executor::place_of(text, tensor),
    }
}
