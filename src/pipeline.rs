//! The main job as a library: read, lower, run every pass, prove every step, run every stage on every engine.
//!
//! ```text
//! text ── read ──> Program ── lower ──> stages [lowered, after apply_buffer_transforms, after flatten_buffer, ...]
//!                                       and a row for each step with its obligations
//! ```
//!
//! A step goes on only if the judge proved it, or if what is not proved is undecided and was allowed. Steps after one
//! that was refused are rows too: skipped, with the reason.

use std::time::{Duration, Instant};

use tilewright_ir::{Definition, Diagnostic, LoweringEvidence, Module, PrimFunc, validate};
use tilewright_verify::{Config, Judge};

use crate::passes::{self, Pass};
use crate::report::check::{CheckReport, FileReport, PassRow, Setting};
use crate::report::diagnostic::DiagnosticRow;
use crate::report::{BufferRow, Dim, ObligationRow, Source, Verdict};
use crate::te;

/// What a run is given.
#[derive(Clone, Debug)]
pub struct Options {
    /// Threads for proving; 0 means all cores.
    pub threads: usize,
    /// Wall clock for one goal.
    pub timeout: Duration,
    /// Seed of the input values.
    pub seed: u64,
    /// Values of symbolic extents for the engines; the harness chooses the others.
    pub shapes: Vec<(String, i64)>,
    /// Where generated kernels run.
    pub device: DeviceChoice,
    /// Whether a step that is not decided may go on.
    pub allow_unknown: bool,
    /// The function that is meant; all of them if none.
    pub function: Option<String>,
}

/// Where generated kernels run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum DeviceChoice {
    /// On the first device that there is.
    #[default]
    First,
    /// On every device.
    All,
    /// Nowhere, because that was asked for.
    None,
    /// On the one with that index or name.
    Named(String),
}

/// A function to be lowered, and where it comes from.
#[derive(Clone, Debug)]
pub struct Program {
    /// The function as it was read or lowered.
    pub func: PrimFunc,
    /// What it computes, if it was written in TE: the definition, and the claim that ties the function to it.
    pub definition: Option<(Definition, LoweringEvidence)>,
}

/// A program after a step.
#[derive(Clone, Debug)]
pub struct Stage {
    /// Name of the step; `input` for the program as it was read, `lower` as it was lowered from TE.
    pub name: String,
    /// The program.
    pub func: PrimFunc,
}

/// A program through all steps.
#[derive(Clone, Debug)]
pub struct Lowering {
    /// The program after each step that went through, the first as it came in.
    pub stages: Vec<Stage>,
    /// A row for each step, those skipped included.
    pub steps: Vec<PassRow>,
    /// Whether every step went through.
    pub complete: bool,
}

/// Called before each step with the function's name and the step's.
pub type Observer<'a> = dyn FnMut(&str, &str) + 'a;

/// Whether a text is TVMScript; if not, it is taken for TE.
pub fn is_tvmscript(text: &str) -> bool {
    let decorators = text.lines().map(str::trim_start).filter_map(|line| line.strip_prefix('@'));
    decorators.into_iter().any(|name| {
        let name = name.split(['(', '#', ' ']).next().unwrap_or_default();
        name.ends_with("prim_func") || name.ends_with("ir_module") || name == "tvm.script.ir_module"
    })
}
