//! Reads `tilewright.graph/1`, which refers to tensors by name.

use std::collections::{HashMap, HashSet};

use serde::Deserialize;
use tilewright_ir::{DataType, Diagnostic, Graph, GraphStep, GraphTensor, Scope, Span, TensorRole};

use super::NamedGraph;
use super::check::{self, Site};
use super::json::{Numbers, Strict, Text, parse, sorted_and_truncated, unreadable};

/// The only supported value of `schema`.
const SCHEMA: &str = "tilewright.graph/1";

/// The top-level object.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileText<'a> {
    #[serde(borrow)]
    schema: Text<'a>,
    tensors: Vec<Strict<TensorText<'a>>>,
    steps: Vec<Strict<StepText<'a>>>,
    inputs: Vec<Text<'a>>,
    #[serde(default)]
    constants: Vec<Text<'a>>,
    outputs: Vec<Text<'a>>,
}

/// An element of `tensors`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TensorText<'a> {
    #[serde(borrow)]
    name: Text<'a>,
    shape: Numbers<u64>,
    dtype: Text<'a>,
    scope: Option<Text<'a>>,
    #[serde(default)]
    axis_separators: Numbers<usize>,
    view_of: Option<Text<'a>>,
}

/// An element of `steps`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StepText<'a> {
    #[serde(borrow)]
    name: Text<'a>,
    function: Option<Text<'a>>,
    reads: Vec<Text<'a>>,
    writes: Vec<Text<'a>>,
}

/// The tensor numbers by name, and the errors found so far.
struct Reader<'a> {
    text: &'a str,
    places: HashMap<String, usize>,
    faults: Vec<Diagnostic>,
}

/// Reads a graph.
///
/// # Errors
/// As [`super::read`].
pub(super) fn read(text: &str) -> Result<NamedGraph, Vec<Diagnostic>> {
    let Strict(file) = parse::<Strict<FileText<'_>>>(text).map_err(|fault| vec![fault])?;
    if file.schema.as_str() != SCHEMA {
        let message = format!("schema `{}` is not known", file.schema.as_str());
        let fault = Diagnostic::error("graph-schema", file.schema.span(text), message);
        return Err(vec![fault.with_help(format!("this version reads `{SCHEMA}`"))]);
    }
    let names = file.tensors.iter().enumerate().rev();
    let places = names.map(|(at, Strict(tensor))| (tensor.name.as_str().to_owned(), at)).collect();
    let mut reader = Reader { text, places, faults: Vec::new() };
    let graph = reader.graph(&file);
    if reader.faults.is_empty() {
        let at = |defect: check::Defect| with_span(defect, &file, text);
        reader.faults.extend(check::check(&graph.graph).into_iter().map(at));
    }
    if reader.faults.is_empty() { Ok(graph) } else { Err(sorted_and_truncated(reader.faults)) }
}

impl Reader<'_> {
    /// The graph. Names that cannot be resolved are reported and left out.
    fn graph(&mut self, file: &FileText<'_>) -> NamedGraph {
        let mut tensors: Vec<GraphTensor> = file.tensors.iter().map(|Strict(tensor)| self.tensor(tensor)).collect();
        // An input that is listed as an output, too, keeps the role of an input: outputs come first.
        let mut inputs = self.list(&file.inputs, "inputs");
        let constants = self.list(&file.constants, "constants");
        let outputs = self.list(&file.outputs, "outputs");
        for &output in &outputs {
            tensors[output].role = TensorRole::Output;
        }
        for &input in &inputs {
            tensors[input].role = TensorRole::Input;
        }
        for &constant in &constants {
            if tensors[constant].role == TensorRole::Input {
                let (name, help) = (&tensors[constant].name, "list it in one of them");
                let message = format!("`{name}` stands in `inputs` and in `constants`");
                self.faults.push(Diagnostic::error("graph-duplicate", None, message).with_help(help));
            }
            tensors[constant].role = TensorRole::Constant;
        }
        inputs.extend(constants);
        let steps = file.steps.iter().map(|Strict(step)| self.step(step)).collect();
        let function =
            |Strict(step): &Strict<StepText<'_>>| step.function.as_ref().map(|name| name.as_str().to_owned());
        let functions = file.steps.iter().map(function).collect();
        NamedGraph { graph: Graph { tensors, steps }, functions, inputs, outputs }
    }

    /// A tensor; an unreadable type or scope is reported and replaced, so that reading goes on.
    fn tensor(&mut self, tensor: &TensorText<'_>) -> GraphTensor {
        let text = self.text;
        let dtype = tensor.dtype.as_str().parse::<DataType>().unwrap_or_else(|error| {
            self.faults.push(unreadable(&tensor.dtype, text, "graph-type", &error));
            DataType::INT32
        });
        let scope = tensor.scope.as_ref().map(|scope| (scope, scope.as_str().parse::<Scope>()));
        let scope = match scope {
            None => Scope::Global,
            Some((_, Ok(scope))) => scope,
            Some((scope, Err(error))) => {
                self.faults.push(unreadable(scope, text, "graph-scope", &error));
                Scope::Global
            }
        };
        GraphTensor {
            name: tensor.name.as_str().to_owned(),
            shape: tensor.shape.to_vec(),
            dtype,
            scope,
            axis_separators: tensor.axis_separators.to_vec(),
            view_of: tensor.view_of.as_ref().and_then(|of| self.named(of)),
            role: TensorRole::Intermediate,
        }
    }

    /// A step with its reads and writes resolved.
    fn step(&mut self, step: &StepText<'_>) -> GraphStep {
        let mut all = |names: &[Text<'_>]| names.iter().filter_map(|name| self.named(name)).collect();
        GraphStep { name: step.name.as_str().to_owned(), reads: all(&step.reads), writes: all(&step.writes) }
    }

    /// The number of the tensor with this name; reports an unknown name.
    fn named(&mut self, name: &Text<'_>) -> Option<usize> {
        let found = self.places.get(name.as_str()).copied();
        if found.is_none() {
            let message = format!("there is no tensor `{}`", name.as_str());
            let fault = Diagnostic::error("graph-unknown-name", name.span(self.text), message);
            self.faults.push(fault.with_help("every tensor has an entry in `tensors`"));
        }
        found
    }

    /// The numbers of the tensors with these names; reports names that occur twice. `what` is the field.
    fn list(&mut self, names: &[Text<'_>], what: &str) -> Vec<usize> {
        let mut seen = HashSet::new();
        let mut places = Vec::new();
        for name in names {
            let Some(at) = self.named(name) else { continue };
            if !seen.insert(at) {
                let message = format!("`{}` stands twice in `{what}`", name.as_str());
                self.faults.push(Diagnostic::error("graph-duplicate", name.span(self.text), message));
            }
            places.push(at);
        }
        places
    }
}

/// Adds to a defect the span of the text that it concerns.
fn with_span(defect: check::Defect, file: &FileText<'_>, text: &str) -> Diagnostic {
    let tensor = |at: usize| file.tensors.get(at).map(|Strict(tensor)| tensor);
    let step = |at: usize| file.steps.get(at).map(|Strict(step)| step);
    let word: Option<&Text<'_>> = match defect.site {
        Site::Graph => None,
        Site::Tensor(at) => tensor(at).map(|tensor| &tensor.name),
        Site::ViewOf(at) => tensor(at).and_then(|tensor| tensor.view_of.as_ref()),
        Site::Step(at) => step(at).map(|step| &step.name),
        Site::Read(at, k) => step(at).and_then(|step| step.reads.get(k)),
        Site::Write(at, k) => step(at).and_then(|step| step.writes.get(k)),
    };
    let at: Option<Span> = word.and_then(|word| word.span(text));
    match at {
        Some(span) => defect.diagnostic.with_label(span, ""),
        None => defect.diagnostic,
    }
}

/// The span of a tensor's name.
pub(super) fn place_of(text: &str, tensor: usize) -> Option<Span> {
    let Strict(file) = parse::<Strict<FileText<'_>>>(text).ok()?;
    let Strict(tensor) = file.tensors.get(tensor)?;
    tensor.name.span(text)
}
