//! The outcome of a run of the pipeline, as data. Reports render it as text and JSON; nothing here is formatted for a
//! reader.
//!
//! ```text
//! CheckOutcome                      a file
//!   FunctionOutcome                 a function: its steps, its buffers, its runs
//!     StepOutcome                   a step: what the judge reports of each obligation
//!     ChainOutcome                  the runs: each stage on each engine, compared with the first
//! ```

use std::fmt;

use serde::{Deserialize, Serialize};
use tilewright_ir::{Buffer, BufferChange, Diagnostic};
use tilewright_verify::{Premise, Report, Verdict};

use super::limits::ChosenLimits;
use super::{Lowering, Stage};
use crate::harness::engine::{EngineOutcome, Status};
use crate::harness::stages::{ChainOutcome, ChainTimes};

/// The pass after which a buffer has its flat shape.
const FLATTEN: &str = "flatten_buffer";

/// The worst verdict of several obligations and runs. A greater value is a worse verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Summary {
    /// Every obligation is proved, and every engine agrees.
    Proved,
    /// Some obligation or run was skipped.
    Skipped,
    /// Some obligation holds only because its premises contradict each other.
    Vacuous,
    /// Some obligation was neither proved nor refuted.
    Unknown,
    /// Two engines computed different values, or a program trapped.
    Mismatch,
    /// Some obligation fails, with a counterexample.
    Refuted,
}

impl Summary {
    /// Returns the word for the verdict in reports.
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

    /// Returns the worst of several summaries; [`Summary::Skipped`] for an empty list, because nothing was proved.
    pub fn worst(parts: impl IntoIterator<Item = Self>) -> Self {
        parts.into_iter().max().unwrap_or(Self::Skipped)
    }

    /// Returns the worst verdict of several reports, as [`Summary::worst`] does.
    pub fn of_reports<'a>(reports: impl IntoIterator<Item = &'a Report>) -> Self {
        Self::worst(reports.into_iter().map(|report| Self::from(&report.verdict)))
    }
}

impl From<&Verdict> for Summary {
    fn from(verdict: &Verdict) -> Self {
        match verdict {
            Verdict::Proved(_) => Self::Proved,
            Verdict::Skipped(_) => Self::Skipped,
            Verdict::Vacuous(_) => Self::Vacuous,
            Verdict::Unknown(_) => Self::Unknown,
            Verdict::Refuted(_) => Self::Refuted,
        }
    }
}

/// The outcome of checking one file.
#[derive(Clone, Debug)]
pub struct CheckOutcome {
    /// How the run was made.
    pub setting: Setting,
    /// Warnings about the text.
    pub warnings: Vec<Diagnostic>,
    /// One outcome for each function, in the order of the file.
    pub functions: Vec<FunctionOutcome>,
    /// Wall time of reading the text, in milliseconds.
    pub reading: f64,
    /// Wall time of everything, in milliseconds.
    pub total: f64,
}

/// What time was spent on, beside steps and engines, which have rows of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum TimePart {
    /// Reading the text.
    Reading,
    /// Opening devices.
    Devices,
    /// Filling inputs.
    Inputs,
    /// Packing inputs into the layout of a stage, and unpacking outputs.
    Packing,
    /// Comparing outputs.
    Comparing,
    /// All that no other row has.
    Other,
}

impl TimePart {
    /// The word for it in reports.
    pub fn word(self) -> &'static str {
        match self {
            Self::Reading => "reading",
            Self::Devices => "devices",
            Self::Inputs => "inputs",
            Self::Packing => "packing",
            Self::Comparing => "comparing",
            Self::Other => "other",
        }
    }
}

/// The parameters of a run that are needed to repeat it.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    /// Solver and version.
    pub solver: String,
    /// Seed of the input values.
    pub seed: u64,
    /// Whether undecided steps were allowed.
    pub allow_unknown: bool,
}

/// The outcome of checking one function.
#[derive(Clone, Debug)]
pub struct FunctionOutcome {
    /// Its name.
    pub name: String,
    /// The steps, in order: reading or lowering first, then the passes.
    pub steps: Vec<StepOutcome>,
    /// Its buffers.
    pub buffers: Vec<BufferOutcome>,
    /// The runs of its stages; empty if it was only lowered.
    pub run: ChainOutcome,
    /// The largest texture and the source of this limit; `None` for a function without textures.
    pub texture_limits: Option<ChosenLimits>,
}

/// A step of a lowering, and the judge's reports about it.
#[derive(Clone, Debug, PartialEq)]
pub struct StepOutcome {
    /// Name of the step.
    pub name: String,
    /// Wall time of the step itself and its proofs, in milliseconds.
    pub ms: f64,
    /// One report for each obligation.
    pub reports: Vec<Report>,
    /// What all of them take for granted.
    pub premises: Vec<Premise>,
    /// The reason why the step did not run; `None` if it ran.
    pub blocked: Option<Blocked>,
}

/// The reason why a step or a run was blocked: something before it was not proved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocked {
    /// The name of what was not proved, such as a step.
    pub by: String,
    /// The verdict on it.
    pub summary: Summary,
}

impl fmt::Display for Blocked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not run, for {} is {}", self.by, self.summary.word())
    }
}

/// A buffer of the first stage, followed through the later ones.
#[derive(Clone, Debug)]
pub struct BufferOutcome {
    /// The buffer as the program declares it.
    pub logical: Buffer,
    /// The buffer after the layout transformations.
    pub physical: Buffer,
    /// The buffer after flattening; `None` if the program was not flattened.
    pub flat: Option<Buffer>,
}

impl CheckOutcome {
    /// Creates an outcome without functions.
    pub fn new(setting: Setting) -> Self {
        Self { setting, warnings: Vec::new(), functions: Vec::new(), reading: 0.0, total: 0.0 }
    }

    /// Where the time went that is in no row of a step or an engine, in milliseconds. With those rows, the parts add up to the total.
    pub fn times(&self) -> Vec<(TimePart, f64)> {
        let runs = || self.functions.iter().map(|function| &function.run);
        let sum = |part: fn(&ChainTimes) -> f64| runs().map(|run| part(&run.times)).sum::<f64>();
        let mut rows = vec![
            (TimePart::Reading, self.reading),
            (TimePart::Devices, sum(|times| times.opening)),
            (TimePart::Inputs, sum(|times| times.inputs)),
            (TimePart::Packing, sum(|times| times.packing)),
            (TimePart::Comparing, sum(|times| times.comparing)),
        ];
        let steps = self.functions.iter().flat_map(|function| &function.steps).map(|step| step.ms);
        let engines = runs().flat_map(|run| &run.engines).map(|row| row.ms);
        let known: f64 = steps.chain(engines).chain(rows.iter().map(|(_, ms)| *ms)).sum();
        rows.push((TimePart::Other, (self.total - known).max(0.0)));
        rows
    }

    /// Returns the worst summary of the functions; `Skipped` for a file without functions.
    pub fn summary(&self) -> Summary {
        Summary::worst(self.functions.iter().map(FunctionOutcome::summary))
    }

    /// The reports of all steps of all functions.
    pub fn reports(&self) -> impl Iterator<Item = &Report> {
        self.functions.iter().flat_map(FunctionOutcome::reports)
    }
}

impl FunctionOutcome {
    /// Creates the outcome of a function that was lowered but not run.
    pub fn of_lowering(name: &str, lowering: &Lowering) -> Self {
        Self {
            name: name.to_owned(),
            steps: lowering.steps.clone(),
            buffers: lowering.buffers(),
            run: ChainOutcome::default(),
            texture_limits: None,
        }
    }

    /// Returns the worst summary of the steps and runs. It is `Proved` only if there was something to prove, all of it is
    /// proved, and every requested engine ran and agrees.
    pub fn summary(&self) -> Summary {
        let nothing_proved = self.reports().next().is_none();
        let nothing_run = !self.run.engines.iter().any(|run| run.summary().is_some());
        let empty = (nothing_proved || nothing_run).then_some(Summary::Skipped);
        let steps = self.steps.iter().map(StepOutcome::summary);
        Summary::worst(steps.chain(self.run.engines.iter().filter_map(EngineOutcome::summary)).chain(empty))
    }

    /// The reports of all steps.
    pub fn reports(&self) -> impl Iterator<Item = &Report> {
        self.steps.iter().flat_map(|step| &step.reports)
    }

    /// What the proofs of all steps take for granted, each premise once.
    pub fn premises(&self) -> Vec<Premise> {
        premises(&self.steps)
    }
}

/// The premises of several steps, each once.
pub fn premises(steps: &[StepOutcome]) -> Vec<Premise> {
    Premise::joined(steps.iter().flat_map(|step| &step.premises))
}

impl StepOutcome {
    /// Returns the worst verdict of the reports; `Proved` without reports, because a step may have nothing to prove.
    pub fn summary(&self) -> Summary {
        if self.blocked.is_some() {
            return Summary::Skipped;
        }
        self.reports.iter().map(|report| Summary::from(&report.verdict)).max().unwrap_or(Summary::Proved)
    }
}

impl EngineOutcome {
    /// Returns the contribution of the run to the summary, as [`Status::summary`] does; `Vacuous` if no element was
    /// compared.
    pub fn summary(&self) -> Option<Summary> {
        match self.status {
            Status::Agrees if self.compared == 0 => Some(Summary::Vacuous),
            status => status.summary(),
        }
    }
}

impl Status {
    /// Returns the contribution of a run with this status to the summary; `None` for a run that was not requested and for
    /// the reference run.
    pub fn summary(self) -> Option<Summary> {
        match self {
            Self::Agrees => Some(Summary::Proved),
            Self::Mismatch | Self::Trap => Some(Summary::Mismatch),
            Self::Failed => Some(Summary::Unknown),
            Self::Skipped | Self::Absent => Some(Summary::Skipped),
            Self::Reference | Self::NotRequested => None,
        }
    }
}

impl BufferOutcome {
    /// Follows a buffer of the first stage through the claims of the later ones.
    pub(super) fn follow(buffer: &Buffer, later: &[Stage]) -> Self {
        let claims = later.iter().filter_map(|stage| stage.evidence.as_ref()).flat_map(|evidence| &evidence.buffers);
        let (mut physical, mut flat) = (buffer.clone(), None);
        for claim in claims {
            let current = flat.as_ref().unwrap_or(&physical);
            if claim.before != *current {
                continue;
            }
            match claim.change {
                BufferChange::Flatten | BufferChange::Texture => flat = Some(claim.after.clone()),
                BufferChange::Layout | BufferChange::Rename if flat.is_none() => physical = claim.after.clone(),
                BufferChange::Layout | BufferChange::Rename => flat = Some(claim.after.clone()),
            }
        }
        let flattened = later.iter().any(|stage| stage.name == FLATTEN);
        let flat = flat.or_else(|| flattened.then(|| physical.clone()));
        Self { logical: buffer.clone(), physical, flat }
    }
}

#[cfg(test)]
pub(crate) mod tests;
