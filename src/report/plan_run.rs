//! The results of running a planned graph: the field `run` of `tilewright.plan/1`, and its text.
//!
//! ```json
//! {"kernels":"block.py","seed":0,
//!  "functions":[{"name":"relu","verdict":"proved","passes":[{"name":"input","ms":0.3,"obligations":[],"skipped":null}]}],
//!  "devices":[{"device":"0: cpu","status":"agrees","pool_bytes":17372,"reason":null,
//!    "steps":[{"name":"relu","kernels":1,"ms":0.02,
//!              "compared":[{"tensor":"y","compared":240,"mismatches":0,"max_ulp":0,"first":null}]}],
//!    "end":[{"tensor":"x","compared":240,"mismatches":0,"max_ulp":0,"first":null}]}]}
//! ```
//!
//! `compared` counts values (lanes) that were compared with the interpreter's; `end` are inputs and outputs after the
//! last step.

use serde::Serialize;
use tilewright_script::Source;
use tilewright_verify::Report;

use super::check::{advised, status, steps};
use super::lines::{line, table};
use super::obligation::{Texts, obligation, under};
use super::text::Style;
use crate::harness::compare::Mismatch;
use crate::harness::engine::{EngineFault, Status};
use crate::network::run::Overflow;
use crate::pipeline::outcome::{StepOutcome, Summary, premises};
use crate::runtime::{Compared, GraphRun};

/// The kernels of a planned graph: their proofs and their results.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunReport {
    /// The file of the kernels; the JSON document has its name.
    #[serde(serialize_with = "name")]
    pub kernels: Source,
    /// Seed of the input values.
    pub seed: u64,
    /// The functions that the steps name, in the order of the file.
    pub functions: Vec<FunctionRow>,
    /// One for each device that was asked for.
    pub devices: Vec<DeviceRow>,
}

/// A function and the obligations of each pass on it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FunctionRow {
    /// Its name.
    pub name: String,
    /// The worst of its steps.
    pub verdict: Summary,
    /// The steps of its lowering.
    #[serde(rename = "passes", serialize_with = "steps")]
    pub steps: Vec<StepOutcome>,
}

/// The run on a device.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DeviceRow {
    /// The device; none if there was none to open.
    pub device: Option<String>,
    /// How its run ended.
    #[serde(serialize_with = "status")]
    pub status: Status,
    /// Bytes of all pools; 0 if it did not run.
    pub pool_bytes: u64,
    /// The steps, each with the tensors that it wrote.
    pub steps: Vec<StepRow>,
    /// Inputs and outputs after the last step.
    pub end: Vec<ComparedRow>,
    /// For a model: the tensors, compared with its reference and with expected outputs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub differences: Vec<DifferenceRow>,
    /// The reason, if the status is not `agrees`.
    pub reason: Option<String>,
}

/// A tensor of a model, compared as a logical tensor: without padding, and within a tolerance.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DifferenceRow {
    /// The name of the tensor.
    pub tensor: String,
    /// What it is compared with: `reference`, or the name of a file.
    pub against: String,
    /// Elements compared.
    pub compared: usize,
    /// Elements beyond the tolerance.
    pub different: usize,
    /// The largest distance.
    pub largest: f32,
    /// For a tensor of float16: elements that are numbers in the reference and infinite in float16.
    pub out_of_range: usize,
    /// More about them.
    #[serde(skip)]
    pub overflow: Option<Overflow>,
}

/// A step on a device.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StepRow {
    /// Its name.
    pub name: String,
    /// How many kernels it is; 0 in the interpreter.
    pub kernels: usize,
    /// Time on the device or in the interpreter, in milliseconds.
    pub ms: f64,
    /// The tensors that it wrote.
    pub compared: Vec<ComparedRow>,
}

/// A tensor, compared with the interpreter's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ComparedRow {
    /// Its name.
    pub tensor: String,
    /// Values compared.
    pub compared: u64,
    /// Values that differ.
    pub mismatches: u64,
    /// Largest distance found, in units in the last place.
    pub max_ulp: u64,
    /// The first value that differs.
    pub first: Option<Mismatch>,
}

impl RunReport {
    /// The worst of its functions and devices.
    pub fn summary(&self) -> Summary {
        let functions = self.functions.iter().map(|function| function.verdict);
        Summary::worst(functions.chain(self.devices.iter().filter_map(|device| device.status.summary())))
    }

    /// The reports on all functions.
    pub fn reports(&self) -> impl Iterator<Item = &Report> {
        self.functions.iter().flat_map(|function| &function.steps).flat_map(|step| &step.reports)
    }
}

impl DeviceRow {
    /// The time of all steps in milliseconds; none if it did not run.
    pub fn total_ms(&self) -> Option<f64> {
        (!self.steps.is_empty()).then(|| self.steps.iter().map(|step| step.ms).sum())
    }

    /// A graph that ran.
    pub fn ran(device: String, run: &GraphRun) -> Self {
        let (status, reason) = match run.first_mismatch() {
            Some(first) => (Status::Mismatch, first.comparison.first.as_ref().map(Mismatch::to_string)),
            None if run.agrees() => (Status::Agrees, None),
            None => (Status::Skipped, Some("a step has nothing to compare: it wrote no defined value".into())),
        };
        let step = |step: &crate::runtime::StepRun| StepRow {
            name: step.name.clone(),
            kernels: step.kernels,
            ms: std::time::Duration::from_nanos(step.nanoseconds).as_secs_f64() * 1e3,
            compared: step.compared.iter().map(ComparedRow::new).collect(),
        };
        Self {
            device: Some(device),
            status,
            pool_bytes: run.pool_bytes,
            steps: run.steps.iter().map(step).collect(),
            end: run.end.iter().map(ComparedRow::new).collect(),
            differences: Vec::new(),
            reason,
        }
    }

    /// A model that ran. `differences` are those of all tensors; `interpreted` says whether the tensors were compared with the
    /// interpreter's as well.
    pub fn ran_model(device: String, run: &GraphRun, differences: Vec<DifferenceRow>, interpreted: bool) -> Self {
        let first = differences.iter().find(|row| row.different > 0);
        let mut row = Self::ran(device, run);
        if !interpreted {
            // Nothing was compared with the interpreter, so that the verdict is that of the differences alone.
            let is_compared = differences.iter().any(|row| row.compared > 0);
            (row.status, row.reason) = if is_compared {
                (Status::Agrees, None)
            } else {
                (Status::Skipped, Some("no tensor was compared".to_owned()))
            };
        }
        if let Some(first) = first {
            let (tensor, against, different, compared) =
                (&first.tensor, &first.against, first.different, first.compared);
            row.status = Status::Mismatch;
            let text = format!(
                "`{tensor}` is the first tensor that differs from {against}: {different} of {compared} elements, by up to {}",
                first.largest
            );
            row.reason = Some(text + &beyond_half(&differences));
        }
        Self { differences, ..row }
    }

    /// A graph that did not run, or gave no result.
    pub fn fault(device: Option<String>, fault: EngineFault) -> Self {
        let (status, why) = fault.into_status();
        Self {
            device,
            status,
            pool_bytes: 0,
            steps: Vec::new(),
            end: Vec::new(),
            differences: Vec::new(),
            reason: advised(status, Some(why)),
        }
    }

    /// A graph that was not to be run.
    pub fn not_requested() -> Self {
        let status = Status::NotRequested;
        let reason = advised(status, None);
        Self {
            device: None,
            status,
            pool_bytes: 0,
            steps: Vec::new(),
            end: Vec::new(),
            differences: Vec::new(),
            reason,
        }
    }
}

/// The first tensor that float16 cannot hold, as a further sentence of a reason; nothing if there is none.
fn beyond_half(differences: &[DifferenceRow]) -> String {
    let first = differences.iter().find_map(|row| row.overflow.as_ref().map(|overflow| (row, overflow)));
    let Some((row, Overflow { step, elements, largest })) = first else { return String::new() };
    format!(
        "; `{}` of step `{step}` is the first tensor that leaves the range of float16, whose largest number is 65504: {elements} of {} \
         elements are infinite, of a magnitude of up to {largest:e}. Leave out --half for this model, or scale the weights in front of `{step}`",
        row.tensor, row.compared
    )
}

impl ComparedRow {
    fn new(of: &Compared) -> Self {
        let comparison = &of.comparison;
        Self {
            tensor: of.tensor.clone(),
            compared: comparison.compared,
            mismatches: comparison.mismatches,
            max_ulp: comparison.max_ulp,
            first: comparison.first.clone(),
        }
    }
}

fn name<S: serde::Serializer>(source: &Source, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&source.name)
}

/// The functions and the devices, as people read them.
pub(super) fn text(out: &mut String, run: &RunReport, style: Style) {
    line(out, &style.paint("1", &format!("kernels of {}", run.kernels.name)), style);
    let mut rows = vec![vec!["function".to_owned(), "obligations proved".to_owned()]];
    let proved = |row: &FunctionRow| {
        let all = || row.steps.iter().flat_map(|step| &step.reports);
        let proved = format!("{} of {}", all().filter(|report| report.verdict.is_proved()).count(), all().count());
        proved + &under(row.verdict, premises(&row.steps).len())
    };
    rows.extend(run.functions.iter().map(|row| vec![row.name.clone(), proved(row)]));
    table(out, &rows, style);
    for row in &run.functions {
        for premise in premises(&row.steps) {
            line(out, &format!("  premise of {}: {premise}", row.name), style);
        }
    }
    for report in run.reports().filter(|report| style.verbose || !report.verdict.is_proved()) {
        obligation(out, report, Texts::one(&run.kernels), style);
    }
    for device in &run.devices {
        out.push('\n');
        device_text(out, device, style);
    }
}

fn device_text(out: &mut String, row: &DeviceRow, style: Style) {
    if !row.differences.is_empty() {
        differences(out, row, style);
    }
    if row.steps.iter().any(|step| !step.compared.is_empty()) {
        let head = ["step", "wrote", "compared", "different", "max ulp", "ms"];
        let mut rows = vec![head.map(str::to_owned).to_vec()];
        for step in &row.steps {
            let ms = format!("{:.3}", step.ms);
            rows.extend(step.compared.iter().map(|one| compared(&step.name, one, &ms)));
        }
        rows.extend(row.end.iter().map(|one| compared("at the end", one, "")));
        table(out, &rows, style);
    }
    let status = style.status(row.status, 0);
    match &row.device {
        Some(device) => {
            let time = row.total_ms().map_or(String::new(), |ms| format!(", {ms:.3} ms in all steps"));
            line(out, &format!("  on {device}: {status}, {} bytes of pools{time}", row.pool_bytes), style);
        }
        None => line(out, &format!("  opencl: {status}"), style),
    }
    for said in row.reason.iter().flat_map(|reason| reason.lines()) {
        line(out, &format!("    {said}"), style);
    }
}

/// The tensors of a model with their distances, and the times of the steps that wrote them.
fn differences(out: &mut String, row: &DeviceRow, style: Style) {
    let head = ["tensor", "against", "compared", "different", "largest distance", "ms"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    let mut steps = row.steps.iter();
    for one in &row.differences {
        // Each step of a model writes one tensor, and their rows come first.
        let ms = steps.next().map_or(String::new(), |step| format!("{:.3}", step.ms));
        let numbers = [one.compared.to_string(), one.different.to_string(), format!("{:.1e}", one.largest), ms];
        rows.push([one.tensor.clone(), one.against.clone()].into_iter().chain(numbers).collect());
    }
    table(out, &rows, style);
}

fn compared(step: &str, row: &ComparedRow, ms: &str) -> Vec<String> {
    let far = if row.max_ulp == u64::MAX { "far".to_owned() } else { row.max_ulp.to_string() };
    let numbers = [row.compared.to_string(), row.mismatches.to_string(), far, ms.to_owned()];
    [step.to_owned(), row.tensor.clone()].into_iter().chain(numbers).collect()
}
