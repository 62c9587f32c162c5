//! Graphs for memory planners as recipes: steps that read earlier tensors and write new ones.
//!
//! ```text
//! inputs [4x7 float32, texture 3x5x4 float16]
//! step0  reads 0 back      writes [28 int8]       a view of what is 0 back
//! step1  reads 1, 2 back   writes [4x7 float32]
//! outputs 0 back
//! ```
//!
//! Every recipe is a graph without defects. Tensors are referred to by how far back they are,
//! modulo their number, so that a step can be left out and the others still read something.

mod change;
mod native;
mod network;
mod simulate;
mod tensor;

use arbitrary::Unstructured;
use serde::{Deserialize, Serialize};
use tilewright_ir::{Diagnostic, Scope, TextureLimits};

use super::case::{Case, smaller, without_one};
use super::config::Config;
use tilewright_memory::graph::{GraphBuilder, NamedGraph};
use tilewright_memory::planner::Strategy;

pub use change::{Change, Mutation};
pub use native::native;
pub use network::network;
pub use simulate::{Violation, simulate};
pub use tensor::{Memory, TensorCase};

/// A graph, the texture limits of its device, and changes of its plans.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GraphCase {
    /// The inputs.
    pub inputs: Vec<TensorCase>,
    /// The steps, in order.
    pub steps: Vec<StepCase>,
    /// The outputs in addition to the last tensor, counted back from the last tensor.
    pub outputs: Vec<usize>,
    /// The device's texture limits, as the number of columns and rows by which they exceed the
    /// largest texture of the graph; `None` for the limits that OpenCL guarantees.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spare: Option<[u64; 2]>,
    /// Changes, each applied to a plan of its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<Mutation>,
}

/// A step of a recipe.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StepCase {
    /// The tensors it reads, counted back from the newest one (modulo their number) among inputs,
    /// views and written tensors.
    pub reads: Vec<usize>,
    /// The tensors it writes.
    pub writes: Vec<TensorCase>,
    /// A view created after the step, of the tensor that is this far back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub view: Option<usize>,
    /// Whether the step names a function.
    #[serde(default)]
    pub named: bool,
}

impl GraphCase {
    /// Builds the graph.
    ///
    /// # Errors
    /// The defects of the graph; never for a drawn recipe.
    pub fn build(&self) -> Result<NamedGraph, Vec<Diagnostic>> {
        let mut graph = GraphBuilder::new();
        let mut alive: Vec<usize> = Vec::new();
        for (at, input) in self.inputs.iter().enumerate() {
            let tensor = graph.input(format!("in{at}"), input.shape(), input.dtype, input.memory.scope());
            graph.separators(tensor, input.separators());
            alive.push(tensor);
        }
        for (at, step) in self.steps.iter().enumerate() {
            // Reads are resolved before the step's own tensors exist, so no step reads what it writes.
            let reads: Vec<usize> = step.reads.iter().filter_map(|&back| behind(&alive, back)).collect();
            let mut writes = Vec::with_capacity(step.writes.len());
            for (k, write) in step.writes.iter().enumerate() {
                let tensor = graph.tensor(format!("t{at}_{k}"), write.shape(), write.dtype, write.memory.scope());
                graph.separators(tensor, write.separators());
                writes.push(tensor);
            }
            alive.extend(&writes);
            let number = graph.step(format!("step{at}"), reads, writes);
            if step.named {
                graph.function(number, ["conv", "relu", "add"][at % 3]);
            }
            if let Some(of) = step.view.and_then(|back| behind(&alive, back)) {
                alive.push(view(&mut graph, of, at));
            }
        }
        // The newest tensor is always an output, so that at least one tensor is alive until the end.
        for &back in [0].iter().chain(&self.outputs) {
            if let Some(tensor) = behind(&alive, back) {
                graph.output(tensor);
            }
        }
        graph.finish()
    }

    /// The texture limits of the device.
    pub fn limits(&self) -> TextureLimits {
        let Some([width, height]) = self.spare else { return TextureLimits::PROMISED };
        let tensors = || self.inputs.iter().chain(self.steps.iter().flat_map(|step| &step.writes));
        let extents = || tensors().filter_map(TensorCase::texels);
        let [most_columns, most_rows] = [0, 1].map(|at| extents().map(|texels| texels[at]).max().unwrap_or(1));
        TextureLimits { width: most_columns + width, height: most_rows + height }
    }
}

/// The tensor that is `back` positions before the newest one.
fn behind(alive: &[usize], back: usize) -> Option<usize> {
    (!alive.is_empty()).then(|| alive[alive.len() - 1 - back % alive.len()])
}

/// Adds a view: of a buffer in one dimension, of a texture in its own shape.
fn view(graph: &mut GraphBuilder, of: usize, step: usize) -> usize {
    let root = &graph.graph().tensors[of];
    let (shape, separators) = match root.scope {
        Scope::Global => (vec![root.shape.iter().product()], Vec::new()),
        Scope::Shared | Scope::Local | Scope::Texture | Scope::TextureWeight | Scope::TextureNhwc => {
            (root.shape.clone(), root.axis_separators.clone())
        }
    };
    let view = graph.view(format!("v{step}"), of, shape);
    graph.separators(view, separators);
    view
}

impl StepCase {
    /// Draws a step that reads up to three tensors, writes one or (in a third of the cases) two,
    /// and has a view in a quarter of the cases.
    fn draw(u: &mut Unstructured<'_>, kinds: &[TensorCase], config: &Config) -> arbitrary::Result<Self> {
        let n_reads = u.int_in_range(0..=3)?;
        let reads = (0..n_reads).map(|_| back(u)).collect::<arbitrary::Result<_>>()?;
        let n_writes = if u.ratio(1, 3)? { 2 } else { 1 };
        let mut writes = Vec::with_capacity(n_writes);
        for _ in 0..n_writes {
            // Tensors of few kinds, so that memory can be shared.
            writes.push(if u.ratio(2, 3)? { u.choose(kinds)?.clone() } else { TensorCase::draw(u, config)? });
        }
        let view = if u.ratio(1, 4)? { Some(back(u)?) } else { None };
        Ok(Self { reads, writes, view, named: u.arbitrary()? })
    }

    /// Without the view, the name, a read or a write; with simpler tensors.
    fn simpler(&self) -> Vec<Self> {
        let mut found = Vec::new();
        if self.view.is_some() {
            found.push(Self { view: None, ..self.clone() });
        }
        if self.named {
            found.push(Self { named: false, ..self.clone() });
        }
        found.extend(without_one(&self.reads).into_iter().map(|reads| Self { reads, ..self.clone() }));
        let fewer = without_one(&self.writes).into_iter().filter(|writes| !writes.is_empty());
        found.extend(fewer.map(|writes| Self { writes, ..self.clone() }));
        found.extend(tensors_simpler(&self.writes).map(|writes| Self { writes, ..self.clone() }));
        found
    }
}

/// Draws how far back: mostly up to 3, in one case out of six up to 40.
fn back(u: &mut Unstructured<'_>) -> arbitrary::Result<usize> {
    if u.ratio(1, 6)? { u.int_in_range(0..=40) } else { u.int_in_range(0..=3) }
}

/// The list with one tensor simplified.
fn tensors_simpler(tensors: &[TensorCase]) -> impl Iterator<Item = Vec<TensorCase>> {
    tensors.iter().enumerate().flat_map(move |(at, tensor)| {
        tensor.simpler().into_iter().map(move |simpler| {
            let mut tensors = tensors.to_vec();
            tensors[at] = simpler;
            tensors
        })
    })
}

impl Case for GraphCase {
    /// Draws changes first, so that they do not depend on the graph; then kinds of tensors, inputs,
    /// outputs and steps within the ranges of [`GraphRanges`](crate::config::GraphRanges).
    fn draw(u: &mut Unstructured<'_>, config: &Config) -> arbitrary::Result<Self> {
        let n_changes = u.int_in_range(config.graph.changes.clone())?;
        let changes = (0..n_changes).map(|_| Mutation::draw(u)).collect::<arbitrary::Result<_>>()?;
        let spare = if u.ratio(1, 4)? { Some([u.int_in_range(0..=40)?, u.int_in_range(0..=40)?]) } else { None };
        let n_kinds = u.int_in_range(config.graph.kinds.clone())?;
        let kinds = (0..n_kinds).map(|_| TensorCase::draw(u, config)).collect::<arbitrary::Result<Vec<_>>>()?;
        let n_inputs = u.int_in_range(config.graph.inputs.clone())?;
        let inputs = (0..n_inputs).map(|_| u.choose(&kinds).cloned()).collect::<arbitrary::Result<_>>()?;
        let n_outputs = u.int_in_range(0..=2)?;
        let outputs = (0..n_outputs).map(|_| back(u)).collect::<arbitrary::Result<_>>()?;
        let n_steps = u.int_in_range(config.graph.steps.clone())?;
        let steps = (0..n_steps).map(|_| StepCase::draw(u, &kinds, config)).collect::<arbitrary::Result<_>>()?;
        Ok(Self { inputs, steps, outputs, spare, changes })
    }

    /// Half of the steps, then without a part, then with simpler steps and inputs.
    fn simpler(&self) -> Vec<Self> {
        let mut found = Vec::new();
        let half = self.steps.len() / 2;
        if half > 1 {
            found.push(Self { steps: self.steps[half..].to_vec(), ..self.clone() });
            found.push(Self { steps: self.steps[..half].to_vec(), ..self.clone() });
        }
        found.extend(without_one(&self.changes).into_iter().map(|changes| Self { changes, ..self.clone() }));
        let fewer = without_one(&self.steps).into_iter().filter(|steps| !steps.is_empty());
        found.extend(fewer.map(|steps| Self { steps, ..self.clone() }));
        found.extend(without_one(&self.inputs).into_iter().map(|inputs| Self { inputs, ..self.clone() }));
        found.extend(without_one(&self.outputs).into_iter().map(|outputs| Self { outputs, ..self.clone() }));
        if self.spare.is_some() {
            found.push(Self { spare: None, ..self.clone() });
        }
        for (at, step) in self.steps.iter().enumerate() {
            found.extend(step.simpler().into_iter().map(|step| {
                let mut steps = self.steps.clone();
                steps[at] = step;
                Self { steps, ..self.clone() }
            }));
        }
        found.extend(tensors_simpler(&self.inputs).map(|inputs| Self { inputs, ..self.clone() }));
        found
    }

    fn features(&self) -> Vec<String> {
        let tensors = || self.inputs.iter().chain(self.steps.iter().flat_map(|step| &step.writes));
        let mut found: Vec<String> = Vec::new();
        let mut add = |feature: String| {
            if !found.contains(&feature) {
                found.push(feature);
            }
        };
        for tensor in tensors() {
            add(format!("scope:{}", tensor.memory.scope()));
            add(format!("dtype:{}", tensor.dtype));
            if !tensor.separators().is_empty() {
                add("graph:separators".into());
            }
        }
        self.steps.iter().filter(|step| step.view.is_some()).for_each(|_| add("graph:view".into()));
        self.steps.iter().filter(|step| step.writes.len() > 1).for_each(|_| add("graph:two writes".into()));
        if self.spare.is_some() {
            add("graph:tight limits".into());
        }
        self.changes.iter().for_each(|change| add(format!("change:{}", change.change.name())));
        found
    }

    fn text(&self) -> String {
        match self.build() {
            Ok(graph) => serde_json::to_string_pretty(&native(&graph)).unwrap_or_default(),
            Err(faults) => format!("{self:?}: {faults:?}"),
        }
    }
}

/// The strategy with this number, modulo three.
pub fn strategy(number: u8) -> Strategy {
    [Strategy::Best, Strategy::Compatible, Strategy::Unshared][usize::from(number % 3)]
}

/// The shape without an axis or with one smaller extent.
fn shapes_simpler(shape: &[u64]) -> Vec<Vec<u64>> {
    let mut found: Vec<Vec<u64>> = without_one(shape);
    for (at, &extent) in shape.iter().enumerate() {
        for less in smaller(i64::try_from(extent).unwrap_or(i64::MAX)) {
            let mut shape = shape.to_vec();
            shape[at] = less.unsigned_abs();
            found.push(shape);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes;

    fn drawn(number: u64) -> GraphCase {
        let bytes = bytes::of_case(5, "planner", number);
        GraphCase::draw(&mut Unstructured::new(&bytes), &Config::default()).unwrap()
    }

    #[test]
    fn every_byte_string_is_a_graph_and_so_is_all_that_is_simpler() {
        let none = GraphCase::draw(&mut Unstructured::new(&[]), &Config::default()).unwrap();
        assert!(none.build().is_ok(), "{none:?}");
        for number in 0..300 {
            let case = drawn(number);
            assert!(case.build().is_ok(), "{number}: {:?}", case.build());
            assert!(!case.steps.is_empty());
            if number < 20 {
                for simpler in case.simpler() {
                    assert!(simpler.build().is_ok(), "{number}: {simpler:?}: {:?}", simpler.build());
                    assert_ne!(simpler, case);
                }
            }
        }
    }

    #[test]
    fn a_case_is_the_same_after_its_file() {
        for number in 0..100 {
            let case = drawn(number);
            let text = serde_json::to_string(&case).unwrap();
            assert_eq!(serde_json::from_str::<GraphCase>(&text).unwrap(), case);
        }
    }

    #[test]
    fn reduction_ends_with_one_step_and_little_else() {
        let mut case = drawn(3);
        let mut looks = 0;
        while let Some(simpler) = case.simpler().into_iter().next() {
            case = simpler;
            looks += 1;
            assert!(looks < 2000);
        }
        assert_eq!((case.steps.len(), case.inputs.len(), case.changes.len()), (1, 0, 0), "{case:?}");
    }
}
