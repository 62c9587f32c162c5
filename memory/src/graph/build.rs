//! A builder that creates a graph step by step, in the order in which the steps run.

use tilewright_ir::{DataType, Diagnostic, Graph, GraphStep, GraphTensor, Scope, TensorRole};

use super::{NamedGraph, check};

/// A graph under construction. Tensors and steps are numbered from 0 in the order in which they are added.
///
/// ```
/// use tilewright_memory::graph::GraphBuilder;
/// use tilewright_memory::planner::{Strategy, plan};
/// use tilewright_ir::{ScalarType, Scope};
///
/// let mut graph = GraphBuilder::new();
/// let x = graph.input("x", [3, 5], ScalarType::Float32, Scope::Global);
/// let a = graph.tensor("a", [3, 5], ScalarType::Float32, Scope::Global);
/// let b = graph.tensor("b", [3, 5], ScalarType::Float32, Scope::Global);
/// let c = graph.tensor("c", [3, 5], ScalarType::Float32, Scope::Global);
/// let flat = graph.view("flat", c, [15]);
/// graph.step("one", [x], [a]);
/// graph.step("two", [a], [b]);
/// graph.step("three", [b], [c]);
/// graph.output(flat);
/// let graph = graph.finish().map_err(|mut faults| faults.remove(0))?;
/// let plan = plan(&graph.graph, Strategy::Compatible)?;
/// assert_eq!(plan.pools.len(), 3); // x; a and c, one after the other; b
/// assert_eq!(plan.places[a], plan.places[c]);
/// assert_eq!(plan.places[c], plan.places[flat]);
/// # Ok::<(), tilewright_ir::Diagnostic>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct GraphBuilder {
    graph: NamedGraph,
}

impl GraphBuilder {
    /// Creates a builder for a graph without tensors and steps.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an intermediate tensor, which one step writes and later steps read, and returns its number; `shape` in
    /// elements.
    pub fn tensor(
        &mut self,
        name: impl Into<String>,
        shape: impl Into<Vec<u64>>,
        dtype: impl Into<DataType>,
        scope: Scope,
    ) -> usize {
        self.graph.graph.tensors.push(GraphTensor {
            name: name.into(),
            shape: shape.into(),
            dtype: dtype.into(),
            scope,
            axis_separators: Vec::new(),
            view_of: None,
            role: TensorRole::Intermediate,
        });
        self.graph.graph.tensors.len() - 1
    }

    /// Adds a tensor whose contents the caller supplies, and returns its number.
    pub fn input(
        &mut self,
        name: impl Into<String>,
        shape: impl Into<Vec<u64>>,
        dtype: impl Into<DataType>,
        scope: Scope,
    ) -> usize {
        let at = self.tensor(name, shape, dtype, scope);
        self.graph.graph.tensors[at].role = TensorRole::Input;
        self.graph.inputs.push(at);
        at
    }

    /// Adds a constant, whose contents the caller supplies once for all runs, and returns its number.
    pub fn constant(
        &mut self,
        name: impl Into<String>,
        shape: impl Into<Vec<u64>>,
        dtype: impl Into<DataType>,
        scope: Scope,
    ) -> usize {
        let at = self.input(name, shape, dtype, scope);
        self.graph.graph.tensors[at].role = TensorRole::Constant;
        at
    }

    /// Adds a view, which shows the memory of tensor `of` in another shape, and returns its number. The view has the
    /// element type and the scope of `of`; whether it fits is checked by [`finish`](Self::finish).
    pub fn view(&mut self, name: impl Into<String>, of: usize, shape: impl Into<Vec<u64>>) -> usize {
        let root = self.graph.graph.tensors.get(of);
        let (dtype, scope) = root
            .map_or((DataType::scalar(tilewright_ir::ScalarType::Float32), Scope::Global), |root| {
                (root.dtype, root.scope)
            });
        let at = self.tensor(name, shape, dtype, scope);
        self.graph.graph.tensors[at].view_of = Some(of);
        at
    }

    /// Sets the axis separators of a texture: the axes at which its columns begin. Has no effect if there is no such
    /// tensor.
    pub fn separators(&mut self, tensor: usize, positions: impl Into<Vec<usize>>) {
        if let Some(tensor) = self.graph.graph.tensors.get_mut(tensor) {
            tensor.axis_separators = positions.into();
        }
    }

    /// Adds a step, which runs after all steps added so far, and returns its number.
    pub fn step(
        &mut self,
        name: impl Into<String>,
        reads: impl Into<Vec<usize>>,
        writes: impl Into<Vec<usize>>,
    ) -> usize {
        self.graph.graph.steps.push(GraphStep { name: name.into(), reads: reads.into(), writes: writes.into() });
        self.graph.functions.push(None);
        self.graph.functions.len() - 1
    }

    /// Names the function that executes a step. Has no effect if there is no such step.
    pub fn function(&mut self, step: usize, name: impl Into<String>) {
        if let Some(function) = self.graph.functions.get_mut(step) {
            *function = Some(name.into());
        }
    }

    /// Declares a tensor an output of the graph; an input may be an output, too.
    pub fn output(&mut self, tensor: usize) {
        self.graph.outputs.push(tensor);
        if let Some(tensor) = self.graph.graph.tensors.get_mut(tensor)
            && tensor.role == TensorRole::Intermediate
        {
            tensor.role = TensorRole::Output;
        }
    }

    /// The graph built so far, unchecked.
    pub fn graph(&self) -> &Graph {
        &self.graph.graph
    }

    /// Checks the graph and returns it.
    ///
    /// All defects that [`check::check`] finds, and each output that is not a tensor (`graph-index`).
    pub fn finish(self) -> Result<NamedGraph, Vec<Diagnostic>> {
        let mut faults: Vec<Diagnostic> =
            check::check(&self.graph.graph).into_iter().map(|fault| fault.diagnostic).collect();
        let n = self.graph.graph.tensors.len();
        for &output in self.graph.outputs.iter().filter(|&&output| output >= n) {
            let message = format!("output {output} is no tensor: there are only {n}");
            faults.push(Diagnostic::error("graph-index", None, message));
        }
        if faults.is_empty() { Ok(self.graph) } else { Err(faults) }
    }
}
