//! Graphs of tensors and of the steps that write and read them: the input of a memory planner, and its text forms.
//!
//! Two formats are read; the fields of the outermost object distinguish them. The native format refers to tensors by
//! name:
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
//! | `scope` | `global` (default), `texture`, `texture:weight` or `texture:nhwc`; TVM's `global.texture` and its variants mean the same |
//! | `axis_separators` | the axes at which the columns of a texture begin, if its scope does not decide it |
//! | `view_of` | the tensor whose memory this one shows in another shape |
//!
//! A list `constants` beside `inputs` names the tensors whose contents are the same in every run, such as weights. TVM's JSON does not
//! tell them apart; the extension `tensor_role` does.
//!
//! Steps run in the order of the list. A tensor that is neither an input, a constant nor a view is written by exactly one step,
//! and read only by later ones. Accumulating into a tensor is not possible, because what a step reads and what it
//! writes may not share memory. Names of steps are unique; `function` is the function that a runtime calls. Unknown
//! fields are errors.
//!
//! The other format is the JSON of TVM's graph executor, as the texture RFC extends it ("Graph Runtime Codegen"); see
//! [`read`]. Plans are written in that format, too: [`write()`].

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

/// A graph together with what a runtime needs to execute it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NamedGraph {
    /// Tensors and steps.
    pub graph: Graph,
    /// The name of the function that executes each step, one for each step; `None` if the file does not name one.
    pub functions: Vec<Option<String>>,
    /// The inputs in the caller's order, then the constants, as indices into `graph.tensors`.
    pub inputs: Vec<usize>,
    /// The outputs in the caller's order, as indices into `graph.tensors`; an input may be an output, too.
    pub outputs: Vec<usize>,
}

/// The contents of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Document {
    /// The graph.
    pub graph: NamedGraph,
    /// The memory plan, if the file contains one.
    pub plan: Option<MemoryPlan>,
}

/// Reads a graph in either format.
///
/// In the format of TVM's graph executor, nodes of op `null` are inputs and nodes of op `tvm_op` are steps, except
/// those with the function `__nop`, which are views. A `storage_id` without a list of pools is a plan by TVM's rule:
/// each pool is as large as its largest tensor, for textures in each direction separately.
///
/// # Errors
/// Every error with its span: text that is not JSON, missing and unknown fields (`graph-json`), unknown and duplicate
/// names, and the defects that [`check::check`] finds.
pub fn read(text: &str) -> Result<Document, Vec<Diagnostic>> {
    match json::form(text).map_err(|fault| vec![fault])? {
        json::Form::Native => native::read(text).map(|graph| Document { graph, plan: None }),
        json::Form::Executor => executor::read(text),
    }
}

/// The span of a tensor's name in a text that [`read`] accepts, for diagnostics of later stages. `None` if the name
/// is written with escapes.
pub fn place_of(text: &str, tensor: usize) -> Option<Span> {
    match json::form(text).ok()? {
        json::Form::Native => native::place_of(text, tensor),
        json::Form::Executor => executor::place_of(text, tensor),
    }
}
