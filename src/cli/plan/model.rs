//! Models: `tilewright plan MODEL.onnx` reads a model, decides what is in textures and makes the kernels; with `--run` they are proved,
//! run on the devices, and every tensor is compared with the reference of `tilewright-network`.

use std::fs;
use std::path::Path;

use tilewright_interp::Tensor;
use tilewright_ir::{Diagnostic, TextureLimits};
use tilewright_script::Source;
use tilewright_verify::Judge;

use super::run::{self, Proved, Request};
use crate::cli::failure::Failure;
use crate::cli::output;
use crate::cli::printer::Printer;
use crate::harness::inputs::Numbers;
use crate::harness::opencl::OpenCl;
use crate::network::lower::{self, Network};
use crate::network::model::{Model, Value};
use crate::network::npy::{self, Array};
use crate::network::profile::{PROFILES, Profile};
use crate::network::scopes::{self, Storage};
use crate::network::{onnx, reference, run as comparison};
use crate::pipeline::engines;
use crate::pipeline::outcome::Summary;
use crate::report::model::ModelReport;
use crate::report::plan_run::{DeviceRow, DifferenceRow, RunReport};
use crate::runtime::{self, Expected, GraphFault, run_graph};

/// Longest model read, in bytes: the weights of the classic networks are below 600 MB.
const MAX_BYTES: u64 = 1 << 30;

/// The name of the interpreter among the devices.
const INTERPRETER: &str = "the interpreter";

/// Options that only models have.
#[derive(clap::Args, Debug)]
pub(super) struct ModelArgs {
    /// For a model: what it is planned for, `opencl`, `opencl --device=adreno` (the default) or `opencl --device=mali`
    #[arg(long, value_name = "TARGET")]
    target: Option<Profile>,
    /// For a model: list where each value is kept, and why
    #[arg(long)]
    explain: bool,
    /// For a model: the contents of an input, as `.npy`, or as `.pb` as ONNX ships test data; random numbers if not given
    #[arg(long = "input", value_name = "NAME=FILE", value_parser = pair)]
    inputs: Vec<(String, String)>,
    /// For a model: an expected output, which is compared with the device's
    #[arg(long = "expect", value_name = "NAME=FILE", value_parser = pair)]
    expected: Vec<(String, String)>,
    /// For a model: write an output of the device to a `.npy` file
    #[arg(long = "save", value_name = "NAME=FILE", value_parser = pair)]
    saved: Vec<(String, String)>,
    /// For a model: compare every tensor with the interpreter's as well, value by value
    #[arg(long)]
    compare: bool,
}

/// `NAME=FILE`; a name may contain `=`.
fn pair(text: &str) -> Result<(String, String), String> {
    match text.rsplit_once('=') {
        Some((name, file)) if !name.is_empty() && !file.is_empty() => Ok((name.to_owned(), file.to_owned())),
        Some(_) | None => Err("expected NAME=FILE".to_owned()),
    }
}

impl ModelArgs {
    /// The first of these options that was given.
    pub(super) fn first_used(&self) -> Option<&'static str> {
        let used = [
            ("--target", self.target.is_some()),
            ("--explain", self.explain),
            ("--input", !self.inputs.is_empty()),
            ("--expect", !self.expected.is_empty()),
            ("--save", !self.saved.is_empty()),
            ("--compare", self.compare),
        ];
        used.iter().find(|(_, used)| *used).map(|(name, _)| *name)
    }

    /// The target.
    pub(super) fn profile(&self) -> Profile {
        target_or_default(self.target.as_ref())
    }

    /// Refuses names that are no inputs or outputs of the model.
    ///
    /// # Errors
    /// The first of them.
    pub(super) fn check_names(&self, path: &str, loaded: &Loaded) -> Result<(), Failure> {
        let model = &loaded.model;
        for (option, named, known) in [
            ("--input", &self.inputs, &model.inputs),
            ("--expect", &self.expected, &model.outputs),
            ("--save", &self.saved, &model.outputs),
        ] {
            let names: Vec<&str> = known.iter().map(|&value| model.values[value].name.as_str()).collect();
            if let Some((name, _)) = named.iter().find(|(name, _)| !names.contains(&name.as_str())) {
                let failure = Failure::plain(path, "model-value", format!("{option} names `{name}`, which it cannot"));
                return Err(failure.with_help(&format!("it can name {}", names.join(", "))));
            }
        }
        Ok(())
    }

    /// What the width of each texture is a multiple of.
    pub(super) fn pitch(&self, path: &str) -> u64 {
        if is_model(path) { self.profile().pitch } else { 1 }
    }

    /// The largest texture: as stated; that of the target for a model; what every device has for a graph.
    pub(super) fn limits(&self, path: &str, stated: Option<TextureLimits>) -> TextureLimits {
        let default = || if is_model(path) { self.profile().limits } else { TextureLimits::PROMISED };
        stated.unwrap_or_else(default)
    }
}

/// The target of a model: that which was named, or a device with textures.
pub(in crate::cli) fn target_or_default(named: Option<&Profile>) -> Profile {
    named.cloned().unwrap_or_else(|| PROFILES[1].clone())
}

/// Whether a path names a model.
pub(in crate::cli) fn is_model(path: &str) -> bool {
    Path::new(path).extension().is_some_and(|suffix| suffix.eq_ignore_ascii_case("onnx"))
}

/// A model as a graph with kernels.
pub(in crate::cli) struct Loaded {
    pub(in crate::cli) model: Model,
    pub(in crate::cli) storage: Vec<Option<Storage>>,
    pub(in crate::cli) network: Network,
    pub(in crate::cli) profile: Profile,
}

/// Reads a model and lowers it.
///
/// # Errors
/// The file cannot be read, is no model, or has a node that is not supported.
pub(in crate::cli) fn load(path: &str, profile: &Profile, limits: TextureLimits) -> Result<(Loaded, Source), Failure> {
    let source = Source { name: path.to_owned(), text: String::new() };
    let wrong = |faults: Vec<Diagnostic>| Failure::input(&source, faults);
    let model = onnx::read(&contents(path)?).map_err(wrong)?;
    let profile = Profile { limits, ..profile.clone() };
    let storage = scopes::collect_storage_info(&model, &profile);
    let network = lower::lower(&model, &storage, &profile).map_err(wrong)?;
    Ok((Loaded { model, storage, network, profile }, source))
}

/// The bytes of a file.
fn contents(path: &str) -> Result<Vec<u8>, Failure> {
    let cannot = |error: std::io::Error| Failure::plain(path, "cannot-read", format!("cannot read {path}: {error}"));
    if fs::metadata(path).map_err(cannot)?.len() > MAX_BYTES {
        return Err(Failure::plain(path, "too-long", format!("{path} is longer than {} MiB", MAX_BYTES >> 20)));
    }
    fs::read(path).map_err(cannot)
}

/// The array in a file, which has to have the shape of a value.
fn array(path: &str, value: &Value) -> Result<Array, Failure> {
    let bytes = contents(path)?;
    let is_message = Path::new(path).extension().is_some_and(|suffix| suffix.eq_ignore_ascii_case("pb"));
    let read = if is_message { npy::read_message(&bytes) } else { npy::read(&bytes) };
    let wrong = |what: String| Failure::plain(path, "model-array", format!("{path}: {what}"));
    let array = read.map_err(wrong)?;
    if array.shape == value.shape {
        return Ok(array);
    }
    Err(wrong(format!("its shape is {:?}, and `{}` has the shape {:?}", array.shape, value.name, value.shape)))
}

impl Loaded {
    /// The report on the model.
    pub(super) fn report(&self, args: &ModelArgs) -> ModelReport {
        ModelReport::new(&self.model, &self.storage, &self.network, self.profile.name, args.explain)
    }

    /// Proves the kernels and runs them on the devices. Nothing is run unless the plan and all kernels are proved.
    ///
    /// # Errors
    /// A file cannot be read or written, or a kernel does not fit its step.
    pub(super) fn run(
        &self,
        request: &Request<'_>,
        args: &ModelArgs,
        (judge, printer): (&Judge, &mut Printer),
    ) -> Result<RunReport, Failure> {
        let given = self.given(args, request.options.seed)?;
        let source = Source { name: self.model_name(request), text: String::new() };
        let programs = self.network.programs.iter().cloned();
        let (functions, proved) = run::lowered(programs, request, judge, &source, printer)?;
        let mut report = RunReport { kernels: source, seed: request.options.seed, functions, devices: Vec::new() };
        let Some(proved) = proved.filter(|_| request.summary == Summary::Proved) else {
            report.devices.push(run::blocked(request.summary, &report.functions));
            return Ok(report);
        };
        let prepared = self.prepared(request, &given, args)?;
        for opened in engines::open(&request.options.device, &request.options.host) {
            report.devices.push(match opened {
                Ok(device) => self.on_device(request, &prepared, &proved, (args, &device))?,
                Err(fault) => DeviceRow::fault(None, fault),
            });
        }
        if report.devices.is_empty() {
            report.devices.push(self.interpreted(request, &prepared, &proved, args)?);
        }
        Ok(report)
    }

    fn model_name(&self, request: &Request<'_>) -> String {
        format!("{} for {}", request.source.name, self.profile.name)
    }

    /// The logical elements of each input of the model: read from files, or random numbers.
    fn given(&self, args: &ModelArgs, seed: u64) -> Result<Vec<Vec<f32>>, Failure> {
        let element = |(&value, part): (&usize, u64)| {
            let value = &self.model.values[value];
            if let Some((_, file)) = args.inputs.iter().find(|(name, _)| *name == value.name) {
                return Ok(array(file, value)?.elements);
            }
            let mut numbers = Numbers::new(seed, part);
            let count = usize::try_from(value.n_elements()).unwrap_or(usize::MAX);
            #[expect(clippy::cast_possible_truncation, reason = "the numbers are those of float32")]
            let number = |_| match numbers.value(tilewright_ir::ScalarType::Float32) {
                tilewright_ir::Scalar::Float(number) => number as f32,
                tilewright_ir::Scalar::Int(_) => 0.0,
            };
            Ok((0..count).map(number).collect())
        };
        self.model.inputs.iter().zip(0..).map(element).collect()
    }

    /// The inputs of the graph, the reference and the expected outputs.
    fn prepared(&self, request: &Request<'_>, given: &[Vec<f32>], args: &ModelArgs) -> Result<Prepared, Failure> {
        let wrong = |what: String| Failure::plain(&request.source.name, "model-inputs", what);
        let tensor = |value: &Value| {
            let known =
                self.model.inputs.iter().position(|&input| std::ptr::eq(&raw const self.model.values[input], value));
            let elements =
                known.and_then(|at| given.get(at)).ok_or_else(|| format!("`{}` is not given", value.name))?;
            let plain = crate::network::place::Operand::plain(&value.shape);
            plain.packed(|at| elements[at]).map_err(|error| format!("input `{}`: {error}", value.name))
        };
        let inputs = self.network.inputs(&self.model, &tensor).map_err(wrong)?;
        let reference = reference::evaluate(&self.model, given).map_err(wrong)?;
        let mut expected = Vec::new();
        for (name, file) in &args.expected {
            let value = self.model.values.iter().find(|value| value.name == *name);
            let value = value.ok_or_else(|| wrong(format!("there is no value `{name}`")))?;
            expected.push((name.clone(), file.clone(), array(file, value)?.elements));
        }
        Ok(Prepared { inputs, reference, expected })
    }

    /// Runs the kernels in the interpreter, as `--device none` asks.
    fn interpreted(
        &self,
        request: &Request<'_>,
        prepared: &Prepared,
        proved: &Proved,
        args: &ModelArgs,
    ) -> Result<DeviceRow, Failure> {
        let of_graph = |faults| Failure::input(request.source, faults);
        let network = runtime::Network::new(request.graph, request.plan, &proved.module).map_err(of_graph)?;
        let written = match runtime::interpret_graph(&network, &prepared.inputs) {
            Ok(written) => written,
            Err(GraphFault::Input(faults)) => return Err(of_graph(faults)),
            Err(GraphFault::Engine(fault)) => return Ok(DeviceRow::fault(Some(INTERPRETER.to_owned()), fault)),
        };
        let written: Vec<&[Tensor]> = written.iter().map(Vec::as_slice).collect();
        let mut rows = self.rows(prepared, &written);
        self.against_files(prepared, args, &mut rows, |name| self.written(name, &written))?;
        Ok(DeviceRow::interpreted(INTERPRETER.to_owned(), rows))
    }

    /// Compares and writes the outputs that options name; `output` returns the elements of one.
    fn against_files(
        &self,
        prepared: &Prepared,
        args: &ModelArgs,
        rows: &mut Vec<DifferenceRow>,
        output: impl Fn(&str) -> Option<Vec<f32>>,
    ) -> Result<(), Failure> {
        let found = |name: &str| output(name).ok_or_else(|| Failure::Internal(format!("`{name}` was not read back")));
        for (name, file, expected) in &prepared.expected {
            rows.push(difference(comparison::compare(name, expected, &found(name)?), file));
        }
        for (name, file) in &args.saved {
            let value = self.model.values.iter().find(|value| value.name == *name);
            let shape = value.map(|value| value.shape.clone()).unwrap_or_default();
            let bytes = npy::write(&Array { shape, elements: found(name)? }).map_err(Failure::Internal)?;
            output::write_bytes(Path::new(file), &bytes)?;
        }
        Ok(())
    }

    /// The elements of an output, from the tensors that the steps wrote: those of the tensor that it shows, if it is a view.
    fn written(&self, name: &str, written: &[&[Tensor]]) -> Option<Vec<f32>> {
        let graph = &self.network.graph.graph;
        let mut tensor = self
            .network
            .graph
            .outputs
            .iter()
            .copied()
            .find(|&output| self.model.values[self.network.tensors[output].value].name == name)?;
        while let Some(root) = graph.tensors[tensor].view_of {
            tensor = root;
        }
        let (step, position) = graph.steps.iter().enumerate().find_map(|(number, step)| {
            step.writes.iter().position(|&other| other == tensor).map(|position| (number, position))
        })?;
        written.get(step)?.get(position).map(|found| self.network.tensors[tensor].operand.unpacked(found))
    }

    /// The tensors that the steps wrote, compared with the reference.
    fn rows(&self, prepared: &Prepared, written: &[&[Tensor]]) -> Vec<DifferenceRow> {
        let all = self.network.differences(&self.model, &prepared.reference, written);
        all.into_iter().flatten().map(|one| difference(one, "the reference")).collect()
    }

    /// Runs the model on one device.
    fn on_device(
        &self,
        request: &Request<'_>,
        prepared: &Prepared,
        proved: &Proved,
        (args, device): (&ModelArgs, &OpenCl),
    ) -> Result<DeviceRow, Failure> {
        let of_graph = |faults| Failure::input(request.source, faults);
        let mut network = runtime::Network::new(request.graph, request.plan, &proved.module).map_err(of_graph)?;
        network.expected = if args.compare {
            let before = runtime::Network::new(request.graph, request.plan, &proved.before).map_err(of_graph)?;
            Expected::Others(before.functions)
        } else {
            Expected::Nothing
        };
        let label = device.session().info().label();
        let run = match run_graph(&network, &prepared.inputs, device.session()) {
            Ok(run) => run,
            Err(GraphFault::Input(faults)) => return Err(of_graph(faults)),
            Err(GraphFault::Engine(fault)) => return Ok(DeviceRow::fault(Some(label), fault)),
        };
        let written: Vec<&[Tensor]> = run.steps.iter().map(|step| step.written.as_slice()).collect();
        let mut rows = self.rows(prepared, &written);
        self.against_files(prepared, args, &mut rows, |name| self.output(name, &run))?;
        Ok(DeviceRow::ran_model(label, &run, rows, args.compare))
    }

    /// The elements of an output of the model.
    fn output(&self, name: &str, run: &runtime::GraphRun) -> Option<Vec<f32>> {
        let graph = &self.network.graph.graph;
        let outputs = graph.tensors.iter().zip(&self.network.tensors);
        let outputs = outputs.filter(|(tensor, _)| tensor.role == tilewright_ir::TensorRole::Output);
        let place = outputs.zip(&run.outputs).find(|((_, known), _)| self.model.values[known.value].name == *name);
        place.map(|((_, known), tensor)| known.operand.unpacked(tensor))
    }
}

/// What the devices get and are compared with.
struct Prepared {
    inputs: Vec<Tensor>,
    reference: Vec<Option<Vec<f32>>>,
    /// Name, file and elements.
    expected: Vec<(String, String, Vec<f32>)>,
}

fn difference(one: comparison::Difference, against: &str) -> DifferenceRow {
    let comparison::Difference { tensor, compared, different, largest, .. } = one;
    DifferenceRow { tensor, against: against.to_owned(), compared, different, largest }
}
