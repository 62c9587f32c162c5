//! The data of `tilewright check`, and its JSON: schema `tilewright.check/1`.
//!
//! One document a file, on one line:
//!
//! ```json
//! {"schema":"tilewright.check/1","file":"a.py","verdict":"proved",
//!  "passes":[{"name":"flatten_buffer","ms":1.2,"obligations":[{"obligation":"flatten","subject":"B","verdict":"proved",
//!             "method":"z3","ms":0.4,"counterexample":null}]}],
//!  "buffers":[{"name":"B","logical_shape":[3,8],"physical_shape":[3,2,4],"axis_separators":[],"flat_shape":[24]}],
//!  "engines":[{"engine":"opencl","device":"0: pthread","status":"agrees","compared":24,"mismatches":0,"max_ulp":0,
//!              "ms":3.5}]}
//! ```
//!
//! Every row of the three lists names its `function`, so a file with several functions still gives a single document.
//! Fields may be added; those above stay. An extent is a number, or a text if it is symbolic.

use serde::Serialize;
use tilewright_ir::{Buffer, Expr, Span};
use tilewright_script::Source;
use tilewright_script::diagnostic::Region;
use tilewright_verify::{Reason, Report, Verdict};

use super::diagnostic::DiagnosticRow;
use super::obligation::Texts;
use crate::harness::engine::{EngineOutcome, Status};
use crate::json::{CounterexampleView, as_map, to_line};
use crate::pipeline::limits::ChosenLimits;
use crate::pipeline::outcome::{BufferOutcome, CheckOutcome, FunctionOutcome, StepOutcome, Summary, TimePart};

/// The report of one file: its outcome and its text.
#[derive(Clone, Copy, Debug)]
pub struct FileReport<'a> {
    /// The text and its name; `<stdin>` for standard input.
    pub source: &'a Source,
    /// The steps, buffers and runs of its functions.
    pub outcome: &'a CheckOutcome,
}

/// An extent: a number, or a text where it is symbolic.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Dim {
    /// A constant.
    Known(i64),
    /// An expression in Python's notation, or a constant outside 64 bits.
    Symbolic(String),
}

impl Dim {
    /// The extent that an expression denotes.
    pub fn new(expr: &Expr) -> Self {
        let known = expr.as_const_int().and_then(|value| i64::try_from(value).ok());
        known.map_or_else(|| Self::Symbolic(expr.to_string()), Self::Known)
    }

    /// The extents of a shape, in order.
    pub fn shape(shape: &[Expr]) -> Vec<Self> {
        shape.iter().map(Self::new).collect()
    }
}

impl std::fmt::Display for Dim {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Known(value) => write!(f, "{value}"),
            Self::Symbolic(text) => f.write_str(text),
        }
    }
}

impl FileReport<'_> {
    /// The JSON document, on one line.
    pub fn to_json(&self) -> String {
        let Self { source, outcome } = *self;
        let functions = &outcome.functions;
        let document = Document {
            schema: "tilewright.check/1",
            file: &source.name,
            verdict: outcome.summary(),
            solver: &outcome.setting.solver,
            seed: outcome.setting.seed,
            allow_unknown: outcome.setting.allow_unknown,
            functions: functions.iter().map(FunctionView::new).collect(),
            passes: rows(functions, |function| {
                function.steps.iter().map(|step| StepView::new(step, Texts::one(source)))
            }),
            buffers: rows(functions, |function| function.buffers.iter().map(BufferView::new)),
            engines: rows(functions, |function| function.run.engines.iter().map(EngineView::new)),
            times: outcome.times().into_iter().map(|(part, ms)| TimeView { part, ms }).collect(),
            warnings: outcome.warnings.iter().map(|warning| DiagnosticRow::new(source, warning)).collect(),
        };
        to_line(&document)
    }
}

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    file: &'a str,
    verdict: Summary,
    solver: &'a str,
    seed: u64,
    allow_unknown: bool,
    functions: Vec<FunctionView<'a>>,
    passes: Vec<Row<'a, StepView<'a>>>,
    buffers: Vec<Row<'a, BufferView>>,
    engines: Vec<Row<'a, EngineView<'a>>>,
    times: Vec<TimeView>,
    warnings: Vec<DiagnosticRow>,
}

/// Time that no step and no engine has.
#[derive(Serialize)]
struct TimeView {
    part: TimePart,
    ms: f64,
}

#[derive(Serialize)]
struct FunctionView<'a> {
    name: &'a str,
    verdict: Summary,
    #[serde(serialize_with = "as_map")]
    shapes: &'a [(String, i128)],
    blame: Option<&'a str>,
    notes: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    texture_limits: Option<LimitsView<'a>>,
}

#[derive(Serialize)]
struct LimitsView<'a> {
    width: u64,
    height: u64,
    from: &'a str,
    checked_at_launch: &'a [String],
}

impl<'a> FunctionView<'a> {
    fn new(function: &'a FunctionOutcome) -> Self {
        let limits = |chosen: &'a ChosenLimits| LimitsView {
            width: chosen.limits.width,
            height: chosen.limits.height,
            from: &chosen.from,
            checked_at_launch: &chosen.checked_at_launch,
        };
        Self {
            name: &function.name,
            verdict: function.summary(),
            shapes: &function.run.symbols,
            blame: function.run.blame.as_deref(),
            notes: &function.run.notes,
            texture_limits: function.texture_limits.as_ref().map(limits),
        }
    }
}

#[derive(Serialize)]
struct Row<'a, T> {
    function: &'a str,
    #[serde(flatten)]
    row: T,
}

/// The lists of all functions as one list whose rows name their function.
fn rows<'a, T, I: Iterator<Item = T>>(
    functions: &'a [FunctionOutcome],
    list: impl Fn(&'a FunctionOutcome) -> I,
) -> Vec<Row<'a, T>> {
    let of_one = |function: &'a FunctionOutcome| list(function).map(|row| Row { function: &function.name, row });
    functions.iter().flat_map(of_one).collect()
}

/// A step and its obligations.
#[derive(Serialize)]
pub(crate) struct StepView<'a> {
    name: &'a str,
    ms: f64,
    obligations: Vec<ObligationView<'a>>,
    premises: Vec<String>,
    /// The reason why it did not run, if it did not.
    skipped: Option<String>,
}

impl<'a> StepView<'a> {
    /// The JSON form of `step`.
    pub(crate) fn new(step: &'a StepOutcome, texts: Texts<'a>) -> Self {
        Self {
            name: &step.name,
            ms: step.ms,
            obligations: step.reports.iter().map(|report| ObligationView::placed(report, texts)).collect(),
            premises: step.premises.iter().map(ToString::to_string).collect(),
            skipped: step.blocked.as_ref().map(ToString::to_string),
        }
    }
}

/// An obligation and its verdict. `ms` is the time of the check in milliseconds.
#[derive(Serialize)]
pub(crate) struct ObligationView<'a> {
    obligation: &'static str,
    subject: &'a str,
    verdict: &'static str,
    method: String,
    ms: f64,
    counterexample: Option<CounterexampleView<'a>>,
    reason: Option<&'a str>,
    /// The first line of the part of the program that an obligation is about, if it is refuted or unknown and in a source text.
    #[serde(skip_serializing_if = "Option::is_none")]
    place: Option<PlaceView<'a>>,
    /// The first line of the part of the other program that it is compared with.
    #[serde(skip_serializing_if = "Option::is_none")]
    counterpart: Option<PlaceView<'a>>,
}

/// A place in a source text. Lines and columns count from 1, columns in characters; the end is exclusive.
#[derive(Serialize)]
pub(crate) struct PlaceView<'a> {
    file: &'a str,
    line: usize,
    column: usize,
    end_line: usize,
    end_column: usize,
    /// The text of the line.
    text: &'a str,
}

impl<'a> ObligationView<'a> {
    /// The JSON form of `report`, without a place.
    pub(crate) fn new(report: &'a Report) -> Self {
        Self {
            obligation: report.obligation.id(),
            subject: &report.subject,
            verdict: report.verdict.word(),
            method: report.method.to_string(),
            ms: report.ms,
            counterexample: report.verdict.counterexample().map(CounterexampleView::new),
            reason: report.verdict.reason().map(Reason::text),
            place: None,
            counterpart: None,
        }
    }

    /// The JSON form of `report`, with its places in the source texts if it is refuted or unknown.
    fn placed(report: &'a Report, texts: Texts<'a>) -> Self {
        let is_shown = matches!(report.verdict, Verdict::Refuted(_) | Verdict::Unknown(_));
        let [place, counterpart] = [report.place, report.counterpart].map(|place| {
            let place = place.filter(|_| is_shown)?;
            Some(PlaceView::new(texts.of(place)?, place.span))
        });
        Self { place, counterpart, ..Self::new(report) }
    }
}

impl<'a> PlaceView<'a> {
    /// The JSON form of the first line of a place.
    pub(super) fn new(source: &'a Source, span: Span) -> Self {
        let span = source.first_line(span);
        let Region { line, column, end_line, end_column } = source.region(span);
        let text = source.text.lines().nth(line - 1).unwrap_or_default();
        Self { file: &source.name, line, column, end_line, end_column, text }
    }
}

/// Serializes reports as a list of [`ObligationView`].
pub(super) fn obligations<S: serde::Serializer>(reports: &[Report], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(reports.iter().map(ObligationView::new))
}

/// Serializes steps as a list of [`StepView`].
pub(super) fn steps<S: serde::Serializer>(steps: &[StepOutcome], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(steps.iter().map(|step| StepView::new(step, Texts::default())))
}

/// Serializes the status of a run as its word.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
pub(super) fn status<S: serde::Serializer>(status: &Status, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(status.word())
}

/// A buffer before and after its layout was applied, and after flattening.
#[derive(Serialize)]
struct BufferView {
    name: String,
    dtype: String,
    logical_shape: Vec<Dim>,
    physical_shape: Vec<Dim>,
    axis_separators: Vec<usize>,
    flat_shape: Option<Vec<Dim>>,
}

impl BufferView {
    fn new(buffer: &BufferOutcome) -> Self {
        let shape = |buffer: &Buffer| Dim::shape(&buffer.shape);
        Self {
            name: buffer.logical.name.clone(),
            dtype: buffer.logical.dtype.to_string(),
            logical_shape: shape(&buffer.logical),
            physical_shape: shape(&buffer.physical),
            axis_separators: buffer.physical.axis_separators.positions().to_vec(),
            flat_shape: buffer.flat.as_ref().map(shape),
        }
    }
}

/// The run of one stage on one engine, compared with the reference. `max_ulp` is the largest distance of two values in
/// units in the last place.
#[derive(Serialize)]
struct EngineView<'a> {
    engine: &'a str,
    stage: Option<&'a str>,
    device: Option<&'a str>,
    status: &'static str,
    compared: u64,
    mismatches: u64,
    max_ulp: u64,
    ms: f64,
    reason: Option<String>,
}

impl<'a> EngineView<'a> {
    fn new(run: &'a EngineOutcome) -> Self {
        Self {
            engine: &run.engine,
            stage: run.stage.as_deref(),
            device: run.device.as_deref(),
            status: run.status.word(),
            compared: run.compared,
            mismatches: run.mismatches,
            max_ulp: run.max_ulp,
            ms: run.ms,
            reason: reason(run),
        }
    }
}

/// The explanation of a run's status: the first difference, the trap, the error, or a remark on a run that agrees.
pub(super) fn reason(run: &EngineOutcome) -> Option<String> {
    let detail = Some(run.detail.clone()).filter(|detail| !detail.is_empty());
    let mut reason = run.first.as_ref().map(ToString::to_string).or(detail);
    if run.agrees_unoptimised {
        let advice = "; compiled with -cl-opt-disable, the kernels agree: this points to the optimiser of the driver";
        reason = reason.map(|reason| reason + advice);
    }
    advised(run.status, reason)
}

/// A reason with advice: for a device that is absent it names the option `--device none`.
pub(super) fn advised(status: Status, reason: Option<String>) -> Option<String> {
    match status {
        Status::Absent => reason.map(|reason| format!("{reason}; run with --device none to do without")),
        Status::NotRequested => Some("--device none".to_owned()),
        Status::Reference | Status::Agrees | Status::Mismatch | Status::Trap | Status::Failed | Status::Skipped => {
            reason
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
