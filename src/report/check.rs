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
//! Every row of the three lists names its `function`, so a file with several functions is one document all the same.
//! Fields may be added; those above stay. An extent is a number, or a text where it is symbolic.

use serde::{Deserialize, Serialize, Serializer};
use tilewright_ir::Expr;
use tilewright_verify::Proof;

use super::diagnostic::{DiagnosticRow, Source};
use crate::pipeline::Lowering;
use crate::pipeline::limits::LimitsRow;

/// The answer to the whole, or to one obligation. The order is that of severity: the larger, the worse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Everything was asked, everything holds, every engine agrees.
    Proved,
    /// Something was not asked.
    Skipped,
    /// Something holds only because its premises contradict each other.
    Vacuous,
    /// Something was neither proved nor refuted.
    Unknown,
    /// Two engines computed different values, or a program trapped.
    Mismatch,
    /// Something is wrong, with a counterexample.
    Refuted,
}

impl Verdict {
    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Proved => "proved",
            Self::Skipped => "skipped",
            Self::Vacuous => "vacuous",
            Self::Unknown => "unknown",
            Self::Mismatch => "mismatch",
            Self::Refuted => "refuted",
        }
    }

    /// The worst of several; [`Verdict::Skipped`] of none, because where nothing was checked nothing is proved.
    pub fn worst(verdicts: impl IntoIterator<Item = Self>) -> Self {
        verdicts.into_iter().max().unwrap_or(Self::Skipped)
    }
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
    /// The extent that an expression says.
    pub fn new(expr: &Expr) -> Self {
        let known = expr.as_const_int().and_then(|value| i64::try_from(value).ok());
        known.map_or_else(|| Self::Symbolic(expr.to_string()), Self::Known)
    }

    /// The extents of a shape.
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

/// Everything that was found in one file.
#[derive(Clone, Debug)]
pub struct FileReport {
    /// The path as given; `<stdin>` for standard input.
    pub file: String,
    /// What the run was given and what it ran with.
    pub setting: Setting,
    /// Warnings about the text.
    pub warnings: Vec<DiagnosticRow>,
    /// One report a function, in the order of the file.
    pub functions: Vec<CheckReport>,
}

/// What a run was given and what it ran with: with it a run can be repeated.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Setting {
    /// Solver and version.
    pub solver: String,
    /// Seed of the input values.
    pub seed: u64,
    /// Whether `--allow-unknown` was given.
    pub allow_unknown: bool,
}

/// What was found about one function.
#[derive(Clone, Debug)]
pub struct CheckReport {
    /// Its name.
    pub function: String,
    /// The steps, in order: reading or lowering first, then the passes.
    pub passes: Vec<PassRow>,
    /// Its buffers.
    pub buffers: Vec<BufferRow>,
    /// The symbolic extents and the values that the engines ran with.
    pub shapes: Vec<(String, i128)>,
    /// The engines, each against the reference.
    pub engines: Vec<EngineRow>,
    /// The first stage that trapped or differs from the reference.
    pub blame: Option<String>,
    /// What else is to be known of the runs.
    pub notes: Vec<String>,
    /// The largest texture, and who says so; none for a function without textures.
    pub texture_limits: Option<LimitsRow>,
}

/// A step and its obligations.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PassRow {
    /// Name of the step.
    pub name: String,
    /// Wall time of the step itself and its proofs, in milliseconds.
    pub ms: f64,
    /// What was asked of it.
    pub obligations: Vec<ObligationRow>,
    /// Why it did not run, if it did not.
    pub skipped: Option<String>,
}

/// An obligation and its answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ObligationRow {
    /// Its name, such as `injective`.
    pub obligation: String,
    /// What it is about.
    pub subject: String,
    /// The answer.
    pub verdict: Verdict,
    /// How it was decided.
    pub method: String,
    /// How long that took, in milliseconds.
    pub ms: f64,
    /// Where it fails, if it was refuted.
    pub counterexample: Option<CounterexampleRow>,
    /// Why it is unknown, vacuous or skipped, if it is.
    pub reason: Option<String>,
    /// What it rests on, for a certificate.
    #[serde(skip)]
    pub proof: Proof,
}

/// Concrete values under which an obligation fails.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct CounterexampleRow {
    /// The symbolic extents and their values.
    #[serde(serialize_with = "as_map")]
    pub shape: Vec<(String, i128)>,
    /// The indices of a map that show it: of a collision both, else one; empty if it is not about a map.
    pub indices: Vec<Vec<i128>>,
    /// The values of loop variables and the like.
    #[serde(serialize_with = "as_map")]
    pub values: Vec<(String, i128)>,
    /// What goes wrong there, in words.
    pub text: String,
}

impl From<tilewright_verify::Report> for ObligationRow {
    fn from(report: tilewright_verify::Report) -> Self {
        use tilewright_verify::Verdict as Judged;
        let (verdict, reason, counterexample) = match report.verdict {
            Judged::Proved => (Verdict::Proved, None, None),
            Judged::Skipped(reason) => (Verdict::Skipped, Some(reason), None),
            Judged::Vacuous(reason) => (Verdict::Vacuous, Some(reason), None),
            Judged::Unknown(reason) => (Verdict::Unknown, Some(reason), None),
            Judged::Refuted(found) => (Verdict::Refuted, None, Some(CounterexampleRow::from(found))),
        };
        let obligation = report.obligation.to_owned();
        Self {
            obligation,
            subject: report.subject,
            verdict,
            method: report.method,
            ms: report.ms,
            counterexample,
            reason,
            proof: report.proof,
        }
    }
}

impl From<tilewright_verify::Counterexample> for CounterexampleRow {
    fn from(found: tilewright_verify::Counterexample) -> Self {
        let mut values: Vec<(String, i128)> = Vec::new();
        for (mut name, value) in found.assignments {
            // Two points of one map: the second has primes.
            while values.iter().any(|(other, _)| *other == name) {
                name.push('\'');
            }
            values.push((name, value));
        }
        Self { shape: found.shape, indices: found.indices, values, text: found.text }
    }
}

impl ObligationRow {
    /// A fault of the judge itself: deciders disagree, or a counterexample does not replay.
    pub fn is_internal(&self) -> bool {
        self.reason.as_ref().is_some_and(|reason| reason.starts_with("internal"))
    }
}

/// A buffer through the stages.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BufferRow {
    /// Its name.
    pub name: String,
    /// Its element type.
    pub dtype: String,
    /// The shape in the definition.
    pub logical_shape: Vec<Dim>,
    /// The shape after the layout transformations.
    pub physical_shape: Vec<Dim>,
    /// Positions of the separators in the physical shape: axes before each.
    pub axis_separators: Vec<usize>,
    /// The shape after flattening; null if the program was not flattened.
    pub flat_shape: Option<Vec<Dim>>,
}

/// What came of running an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum EngineStatus {
    /// It ran first, and the others are compared with it.
    #[serde(rename = "reference")]
    Reference,
    /// It ran, and all values are equal.
    #[serde(rename = "agrees")]
    Agrees,
    /// It ran, and values differ.
    #[serde(rename = "mismatch")]
    Mismatch,
    /// The program trapped while it ran: an access out of bounds, a value never written, a race.
    #[serde(rename = "trap")]
    Trap,
    /// The engine itself failed: a kernel that does not build, a driver's error.
    #[serde(rename = "failed")]
    Failed,
    /// It could not run; the reason says why.
    #[serde(rename = "skipped")]
    Skipped,
    /// It was told not to run (`--device none`).
    #[serde(rename = "not requested")]
    NotRequested,
}

impl EngineStatus {
    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Reference => "reference",
            Self::Agrees => "agrees",
            Self::Mismatch => "mismatch",
            Self::Trap => "trap",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
            Self::NotRequested => "not requested",
        }
    }

    /// What it says about the whole; none if it was told not to run, or is what the others are compared with.
    pub fn verdict(self) -> Option<Verdict> {
        match self {
            Self::Agrees => Some(Verdict::Proved),
            Self::Mismatch | Self::Trap => Some(Verdict::Mismatch),
            Self::Failed => Some(Verdict::Unknown),
            Self::Skipped => Some(Verdict::Skipped),
            Self::Reference | Self::NotRequested => None,
        }
    }
}

/// An engine and what it computed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EngineRow {
    /// Which engine: `interpreter` or `opencl`.
    pub engine: String,
    /// What it ran: the definition, or the program after a step.
    pub stage: Option<String>,
    /// The device, where there is one.
    pub device: Option<String>,
    /// What came of it.
    pub status: EngineStatus,
    /// Elements compared.
    pub compared: u64,
    /// Elements that differ.
    pub mismatches: u64,
    /// Largest distance found, in units in the last place.
    pub max_ulp: u64,
    /// Wall time in milliseconds.
    pub ms: f64,
    /// Why, where it is not `agrees`: the first difference, the trap, the error.
    pub reason: Option<String>,
}

impl EngineRow {
    /// What it says about the whole, as [`EngineStatus::verdict`]; vacuous if it agrees on nothing.
    pub fn verdict(&self) -> Option<Verdict> {
        match self.status {
            EngineStatus::Agrees if self.compared == 0 => Some(Verdict::Vacuous),
            status => status.verdict(),
        }
    }
}

impl PassRow {
    /// The worst of its obligations; `proved` of none, for a step may have nothing to prove.
    pub fn verdict(&self) -> Verdict {
        if self.skipped.is_some() {
            return Verdict::Skipped;
        }
        self.obligations.iter().map(|row| row.verdict).max().unwrap_or(Verdict::Proved)
    }
}

impl CheckReport {
    /// The worst of everything: proved only if something was proved, and all of it, and every engine that was asked
    /// for ran and agrees.
    pub fn verdict(&self) -> Verdict {
        let nothing_proved = self.passes.iter().all(|pass| pass.obligations.is_empty());
        let compared = |row: &EngineRow| row.verdict().is_some();
        let nothing_run = !self.engines.iter().any(compared);
        let empty = (nothing_proved || nothing_run).then_some(Verdict::Skipped);
        let passes = self.passes.iter().map(PassRow::verdict);
        Verdict::worst(passes.chain(self.engines.iter().filter_map(EngineRow::verdict)).chain(empty))
    }

    /// The report of a program that was lowered and not run.
    pub fn of_lowering(function: &str, lowering: &Lowering) -> Self {
        Self {
            function: function.to_owned(),
            passes: lowering.steps.clone(),
            buffers: lowering.buffers(),
            shapes: Vec::new(),
            engines: Vec::new(),
            blame: None,
            notes: Vec::new(),
            texture_limits: None,
        }
    }

    /// Number of obligations.
    pub fn n_obligations(&self) -> usize {
        self.passes.iter().map(|pass| pass.obligations.len()).sum()
    }
}

impl FileReport {
    /// A report without functions.
    pub fn empty(source: &Source, setting: Setting) -> Self {
        Self { file: source.name.clone(), setting, warnings: Vec::new(), functions: Vec::new() }
    }

    /// The worst of the functions; `skipped` for a file without any.
    pub fn verdict(&self) -> Verdict {
        Verdict::worst(self.functions.iter().map(CheckReport::verdict))
    }

    /// The JSON document, on one line.
    pub fn to_json(&self) -> String {
        let document = Document {
            schema: "tilewright.check/1",
            file: &self.file,
            verdict: self.verdict(),
            setting: &self.setting,
            functions: self.functions.iter().map(FunctionRow::new).collect(),
            passes: rows(&self.functions, |report| &report.passes),
            buffers: rows(&self.functions, |report| &report.buffers),
            engines: rows(&self.functions, |report| &report.engines),
            warnings: &self.warnings,
        };
        to_line(&document)
    }
}

/// A value as one line of JSON. The data of this module has only text keys, so it always has one.
pub(crate) fn to_line(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_else(|error| unreachable!("a report has text keys only: {error}"))
}

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    file: &'a str,
    verdict: Verdict,
    #[serde(flatten)]
    setting: &'a Setting,
    functions: Vec<FunctionRow<'a>>,
    passes: Vec<Row<'a, PassRow>>,
    buffers: Vec<Row<'a, BufferRow>>,
    engines: Vec<Row<'a, EngineRow>>,
    warnings: &'a [DiagnosticRow],
}

#[derive(Serialize)]
struct FunctionRow<'a> {
    name: &'a str,
    verdict: Verdict,
    #[serde(serialize_with = "as_map")]
    shapes: &'a Vec<(String, i128)>,
    blame: Option<&'a str>,
    notes: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    texture_limits: Option<&'a LimitsRow>,
}

impl<'a> FunctionRow<'a> {
    fn new(report: &'a CheckReport) -> Self {
        Self {
            name: &report.function,
            verdict: report.verdict(),
            shapes: &report.shapes,
            blame: report.blame.as_deref(),
            notes: &report.notes,
            texture_limits: report.texture_limits.as_ref(),
        }
    }
}

#[derive(Serialize)]
struct Row<'a, T> {
    function: &'a str,
    #[serde(flatten)]
    row: &'a T,
}

fn rows<'a, T>(reports: &'a [CheckReport], list: impl Fn(&'a CheckReport) -> &'a Vec<T>) -> Vec<Row<'a, T>> {
    let of_one = |report: &'a CheckReport| list(report).iter().map(|row| Row { function: &report.function, row });
    reports.iter().flat_map(of_one).collect()
}

/// Pairs as an object, in their order.
pub(crate) fn as_map<S: Serializer, T: Serialize>(pairs: &[(String, T)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(pairs.iter().map(|(name, value)| (name, value)))
}

#[cfg(test)]
pub(crate) mod tests;
