//! What a run of the pipeline found, as data. Reports render it as text and JSON; nothing here is formatted for a reader.
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
use tilewright_verify::{Report, Verdict};

use super::limits::ChosenLimits;
use super::{Lowering, Stage};
use crate::harness::engine::{EngineOutcome, Status};
use crate::harness::stages::ChainOutcome;

/// The pass after which a buffer has its flat shape.
const FLATTEN: &str = "flatten_buffer";

/// The verdict on a whole: the worst one of its obligations and of its runs. The order is that of severity: the larger, the
/// worse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Summary {
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

impl Summary {
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

    /// The worst of several; [`Summary::Skipped`] of none, because where nothing was checked nothing is proved.
    pub fn worst(parts: impl IntoIterator<Item = Self>) -> Self {
        parts.into_iter().max().unwrap_or(Self::Skipped)
    }

    /// The worst verdict of several reports, as [`Summary::worst`].
    pub fn of_reports<'a>(reports: impl IntoIterator<Item = &'a Report>) -> Self {
        Self::worst(reports.into_iter().map(|report| Self::from(&report.verdict)))
    }
}

impl From<&Verdict> for Summary {
    fn from(verdict: &Verdict) -> Self {
        match verdict {
            Verdict::Proved => Self::Proved,
            Verdict::Skipped(_) => Self::Skipped,
            Verdict::Vacuous(_) => Self::Vacuous,
            Verdict::Unknown(_) => Self::Unknown,
            Verdict::Refuted(_) => Self::Refuted,
        }
    }
}

/// What was found in one file.
#[derive(Clone, Debug)]
pub struct CheckOutcome {
    /// What the run was given and what it ran with.
    pub setting: Setting,
    /// Warnings about the text.
    pub warnings: Vec<Diagnostic>,
    /// One outcome for each function, in the order of the file.
    pub functions: Vec<FunctionOutcome>,
}

/// What a run was given and what it ran with: with it a run can be repeated.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    /// Solver and version.
    pub solver: String,
    /// Seed of the input values.
    pub seed: u64,
    /// Whether steps that are not decided were allowed.
    pub allow_unknown: bool,
}

/// What was found about one function.
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
    /// The largest texture, and who says so; none for a function without textures.
    pub texture_limits: Option<ChosenLimits>,
}

/// A step of a lowering and what the judge reports of it.
#[derive(Clone, Debug, PartialEq)]
pub struct StepOutcome {
    /// Name of the step.
    pub name: String,
    /// Wall time of the step itself and its proofs, in milliseconds.
    pub ms: f64,
    /// One report for each obligation.
    pub reports: Vec<Report>,
    /// Why it did not run, if it did not.
    pub blocked: Option<Blocked>,
}

/// Why something was not run: something before it is not proved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocked {
    /// What is not proved, such as the name of a step.
    pub by: String,
    /// What the judge says of it.
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
    /// As the program declares it.
    pub logical: Buffer,
    /// After the layout transformations.
    pub physical: Buffer,
    /// After flattening; none if the program was not flattened.
    pub flat: Option<Buffer>,
}

impl CheckOutcome {
    /// An outcome without functions.
    pub fn new(setting: Setting) -> Self {
        Self { setting, warnings: Vec::new(), functions: Vec::new() }
    }

    /// The worst of the functions; `Skipped` for a file without any.
    pub fn summary(&self) -> Summary {
        Summary::worst(self.functions.iter().map(FunctionOutcome::summary))
    }

    /// The reports of all steps of all functions.
    pub fn reports(&self) -> impl Iterator<Item = &Report> {
        self.functions.iter().flat_map(FunctionOutcome::reports)
    }
}

impl FunctionOutcome {
    /// The outcome of a function that was lowered and not run.
    pub fn of_lowering(name: &str, lowering: &Lowering) -> Self {
        Self {
            name: name.to_owned(),
            steps: lowering.steps.clone(),
            buffers: lowering.buffers(),
            run: ChainOutcome::default(),
            texture_limits: None,
        }
    }

    /// The worst of everything: `Proved` only if something was proved, and all of it, and every engine that was asked for ran
    /// and agrees.
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
}

impl StepOutcome {
    /// The worst of its reports; `Proved` of none, for a step may have nothing to prove.
    pub fn summary(&self) -> Summary {
        if self.blocked.is_some() {
            return Summary::Skipped;
        }
        self.reports.iter().map(|report| Summary::from(&report.verdict)).max().unwrap_or(Summary::Proved)
    }
}

impl EngineOutcome {
    /// What the run says about the whole, as [`Status::summary`]; `Vacuous` if it agrees on nothing.
    pub fn summary(&self) -> Option<Summary> {
        match self.status {
            Status::Agrees if self.compared == 0 => Some(Summary::Vacuous),
            status => status.summary(),
        }
    }
}

impl Status {
    /// What it says about the whole; none for a run that was not asked for, and for the one that the others are compared with.
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
