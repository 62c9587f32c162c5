//! Models: `tilewright plan MODEL.onnx` reads a model, decides what is in textures and makes the kernels; with `--run` they are proved,
//! run on the devices, and every tensor is compared with the reference of `tilewright-network`.

use std::path::Path;

use tilewright_device::DeviceHost;
use tilewright_interp::Tensor;
use tilewright_ir::{Diagnostic, TextureLimits};
use tilewright_script::Source;
use tilewright_verify::Judge;

use super::arrays::{ArrayArgs, Contents, Exchanged, Known, contents};
use super::run::{self, Kernels, Proved, Request};
use crate::cli::failure::Failure;
use crate::cli::printer::Printer;
use crate::cli::target::Target;
use crate::harness::inputs::Numbers;
use crate::harness::opencl::OpenCl;
use crate::network::lower::{self, Network};
use crate::network::model::{Model, Value};
use crate::network::npy::Array;
use crate::network::profile::Profile;
use crate::network::run::Tolerance;
use crate::network::scopes::{self, Storage};
use crate::network::{onnx, reference, run as comparison};
use crate::pipeline::outcome::Summary;
use crate::pipeline::{Options, engines};
use crate::report::model::ModelReport;
use crate::report::plan_run::{DeviceRow, DifferenceRow, RunReport};
use crate::runtime::{self, Expected, GraphFault, run_graph};

/// The name of the interpreter among the devices.
const INTERPRETER: &str = "the interpreter";

/// Options that only models have.
#[derive(clap::Args, Debug)]
pub(super) struct ModelArgs {
    /// For a model: what it is planned for, `opencl`, `opencl --device=adreno` (the default), `opencl --device=mali`, or `device` or `device:ID`,
    /// which is read; with the options --pitch=N, --group=N and --half
    #[arg(long, value_name = "TARGET")]
    target: Option<Target>,
    /// For a model: list where each value is kept, and why
    #[arg(long)]
    explain: bool,
    /// For a model: compare every tensor with the interpreter's as well, value by value
    #[arg(long)]
    compare: bool,
}

impl ModelArgs {
    /// The first of these options that was given.
    pub(super) fn first_used(&self) -> Option<&'static str> {
        let used = [("--target", self.target.is_some()), ("--explain", self.explain), ("--compare", self.compare)];
        used.iter().find(|(_, used)| *used).map(|(name, _)| *name)
    }

    /// The target of a model; nothing for a graph, which says itself what is in textures.
    ///
    /// # Errors
    /// It is to be read from a device that is not there.
    pub(super) fn profile(&self, path: &str, host: &DeviceHost) -> Result<Option<Profile>, Failure> {
        if is_model(path) { Target::profile(self.target.as_ref(), host).map(Some) } else { Ok(None) }
    }
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

impl Loaded {
    /// Reads the files of arrays that options name.
    ///
    /// # Errors
    /// A name is no input or output of the model, or a file is no array of its shape.
    pub(super) fn exchanged(&self, args: &ArrayArgs, path: &str) -> Result<Exchanged, Failure> {
        let known = |values: &[usize]| -> Vec<Known<'_>> {
            values.iter().map(|&value| &self.model.values[value]).map(|value| (&*value.name, &*value.shape)).collect()
        };
        args.read(path, &known(&self.model.inputs), &known(&self.model.outputs))
    }

    /// The report on the model.
    pub(super) fn report(&self, args: &ModelArgs) -> ModelReport {
        ModelReport::new(&self.model, &self.storage, &self.network, &self.profile.label(), args.explain)
    }

    /// Proves the kernels.
    ///
    /// # Errors
    /// A pass refuses a kernel.
    pub(super) fn kernels(
        &self,
        file: &str,
        options: &Options,
        judge: &Judge,
        printer: &Printer,
    ) -> Result<Kernels, Failure> {
        let source = Source { name: format!("{file} for {}", self.profile.label()), text: String::new() };
        let programs = self.network.programs.iter().cloned();
        let (functions, proved) = run::lowered(programs, (self.profile.limits, options), judge, &source, printer)?;
        Ok(Kernels { source, functions, proved })
    }

    /// Runs the kernels on the devices. Nothing is run unless the plan and all kernels are proved.
    ///
    /// # Errors
    /// A file cannot be read or written, or a kernel does not fit its step.
    pub(super) fn run(
        &self,
        request: &Request<'_>,
        kernels: Kernels,
        (args, exchanged): (&ModelArgs, &Exchanged),
        printer: &mut Printer,
    ) -> Result<RunReport, Failure> {
        let given = self.given(exchanged, request.options.seed);
        let Kernels { source, functions, proved } = kernels;
        let mut report = RunReport { kernels: source, seed: request.options.seed, functions, devices: Vec::new() };
        let Some(proved) = proved.filter(|_| request.summary == Summary::Proved) else {
            report.devices.push(run::blocked(request.summary, &report.functions));
            return Ok(report);
        };
        let progress = printer.progress();
        progress.set_message("computing the reference");
        progress.tick();
        let prepared = self.prepared(request, &given, exchanged)?;
        progress.set_message("running and comparing");
        progress.tick();
        for opened in engines::open(&request.options.device, &request.options.host) {
            report.devices.push(match opened {
                Ok(device) => self.on_device(request, &prepared, &proved, (args, &device))?,
                Err(fault) => DeviceRow::fault(None, fault),
            });
        }
        if report.devices.is_empty() {
            report.devices.push(self.interpreted(request, &prepared, &proved)?);
        }
        progress.finish_and_clear();
        Ok(report)
    }

    fn tolerance(&self) -> Tolerance {
        Tolerance::of(&self.profile)
    }

    /// The logical elements of each input of the model: read from files, or random numbers.
    fn given(&self, exchanged: &Exchanged, seed: u64) -> Vec<Vec<f32>> {
        let element = |(&value, part): (&usize, u64)| {
            let value = &self.model.values[value];
            if let Some(elements) = exchanged.input(&value.name) {
                return elements.to_vec();
            }
            let mut numbers = Numbers::new(seed, part);
            let count = usize::try_from(value.n_elements()).unwrap_or(usize::MAX);
            #[expect(clippy::cast_possible_truncation, reason = "the numbers are those of float32")]
            let number = |_| match numbers.value(tilewright_ir::ScalarType::Float32) {
                tilewright_ir::Scalar::Float(number) => number as f32,
                tilewright_ir::Scalar::Int(_) => 0.0,
            };
            (0..count).map(number).collect()
        };
        self.model.inputs.iter().zip(0..).map(element).collect()
    }

    /// The inputs of the graph, the reference and the expected outputs.
    fn prepared<'a>(
        &self,
        request: &Request<'_>,
        given: &[Vec<f32>],
        exchanged: &'a Exchanged,
    ) -> Result<Prepared<'a>, Failure> {
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
        Ok(Prepared { inputs, reference, exchanged })
    }

    /// Runs the kernels in the interpreter, as `--device none` asks.
    fn interpreted(
        &self,
        request: &Request<'_>,
        prepared: &Prepared<'_>,
        proved: &Proved,
    ) -> Result<DeviceRow, Failure> {
        let of_graph = |faults| Failure::input(request.source, faults);
        let network = runtime::Network::new(request.graph, request.plan, &proved.module).map_err(of_graph)?;
        let run = match runtime::interpret_graph(&network, &prepared.inputs) {
            Ok(run) => run,
            Err(GraphFault::Input(faults)) => return Err(of_graph(faults)),
            Err(GraphFault::Engine(fault)) => return Ok(DeviceRow::fault(Some(INTERPRETER.to_owned()), fault)),
        };
        let written: Vec<&[Tensor]> = run.steps.iter().map(|step| step.written.as_slice()).collect();
        let mut rows = self.rows(prepared, &written);
        self.against_files(prepared, &mut rows, |name| self.written(name, &written))?;
        Ok(DeviceRow::ran_model(INTERPRETER.to_owned(), &run, rows, false))
    }

    /// Compares and writes the outputs that options name; `output` returns the elements of one.
    fn against_files(
        &self,
        prepared: &Prepared<'_>,
        rows: &mut Vec<DifferenceRow>,
        output: impl Fn(&str) -> Option<Vec<f32>>,
    ) -> Result<(), Failure> {
        let found = |name: &str| output(name).ok_or_else(|| Failure::Internal(format!("`{name}` was not read back")));
        for Contents { name, file, elements } in &prepared.exchanged.expected {
            rows.push(difference(comparison::compare(name, (elements, &found(name)?), self.tolerance()), file));
        }
        prepared.exchanged.save(|name| {
            let value = self.model.values.iter().find(|value| value.name == *name);
            let shape = value.map(|value| value.shape.clone()).unwrap_or_default();
            Ok(Array { shape, elements: found(name)? })
        })
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
    fn rows(&self, prepared: &Prepared<'_>, written: &[&[Tensor]]) -> Vec<DifferenceRow> {
        let all = self.network.differences(&self.model, &prepared.reference, written, self.tolerance());
        all.into_iter().flatten().map(|one| difference(one, "the reference")).collect()
    }

    /// Runs the model on one device.
    fn on_device(
        &self,
        request: &Request<'_>,
        prepared: &Prepared<'_>,
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
        self.against_files(prepared, &mut rows, |name| self.output(name, &run))?;
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
struct Prepared<'a> {
    inputs: Vec<Tensor>,
    reference: Vec<Option<Vec<f32>>>,
    exchanged: &'a Exchanged,
}

/// The row of a comparison.
pub(super) fn difference(one: comparison::Difference, against: &str) -> DifferenceRow {
    let comparison::Difference { tensor, compared, different, largest, first: _, overflow } = one;
    let out_of_range = overflow.as_ref().map_or(0, |overflow| overflow.elements);
    DifferenceRow { tensor, against: against.to_owned(), compared, different, largest, out_of_range, overflow }
}
