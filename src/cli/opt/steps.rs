//! The steps of `tilewright opt`: a pass each, with the program after it, its time, and with `--prove-each` its verdict.

use std::fmt::Write as _;
use std::time::Instant;

use tilewright_ir::{Diagnostic, PrimFunc};
use tilewright_script::{Source, print_func};
use tilewright_verify::{Judge, Report};

use super::super::exit::ExitStatus;
use super::super::failure::Failure;
use super::super::passes::asked_failure;
use super::Args;
use crate::passes::Pipeline;
use crate::pipeline::outcome::{StepOutcome, Summary};
use crate::pipeline::{self, Program};
use crate::report::obligation::Texts;
use crate::report::text::{self, Style};

/// A function and the passes that ran on it.
pub(super) struct Applied {
    /// The name of the function.
    name: String,
    /// The steps: without proofs one for each pass, else also one for the program as it was read or lowered.
    steps: Vec<StepOutcome>,
    /// The programs after the first of these steps.
    programs: Vec<PrimFunc>,
    /// The program after the last pass that ran.
    pub(super) last: PrimFunc,
    /// Warnings of the passes.
    pub(super) notes: Vec<Diagnostic>,
    /// The verdict on all steps; `None` without proofs.
    verdict: Option<Summary>,
}

/// Runs passes on a function without proofs.
///
/// # Errors
/// A pass refuses the program, or takes no such request.
pub(super) fn applied(program: &Program, pipeline: &Pipeline, source: &Source) -> Result<Applied, Failure> {
    let fault = |diagnostics| Failure::input(source, diagnostics);
    let (mut func, mut programs, mut steps, mut notes) =
        (program.scheduled_func().clone(), Vec::new(), Vec::new(), Vec::new());
    for call in pipeline.calls(&func).map_err(fault)? {
        if !call.runs_on(&func) {
            continue;
        }
        let asked = call.ask(&func);
        func = asked.map_err(|fault| asked_failure(call.request.clone().unwrap_or_default(), fault))?;
        let start = Instant::now();
        let rewritten = (call.pass.run)(&func).map_err(fault)?;
        let (name, ms) = (call.pass.name.to_owned(), start.elapsed().as_secs_f64() * 1e3);
        steps.push(StepOutcome { name, ms, reports: Vec::new(), premises: Vec::new(), blocked: None });
        notes.extend(rewritten.notes);
        func = rewritten.func;
        programs.push(func.clone());
    }
    Ok(Applied { name: func.name.clone(), steps, programs, last: func, notes, verdict: None })
}

/// Runs passes on a function; each step is proved before the next one runs.
///
/// # Errors
/// A pass refuses the program, or takes no such request.
pub(super) fn proved(
    program: &Program,
    pipeline: &Pipeline,
    judge: (&Judge, bool),
    source: &Source,
) -> Result<Applied, Failure> {
    let lowering = pipeline::transform(program, pipeline, judge, &mut |_, _| ());
    let lowering = lowering.map_err(|fault| super::super::pipeline_failure(source, fault))?;
    Ok(Applied {
        name: program.func.name.clone(),
        verdict: Some(lowering.summary()),
        programs: lowering.stages.iter().map(|stage| stage.func.clone()).collect(),
        last: lowering.last().clone(),
        notes: lowering.notes,
        steps: lowering.steps,
    })
}

impl Applied {
    /// The exit status: success without proofs.
    pub(super) fn status(&self, allow_unknown: bool) -> ExitStatus {
        if self.steps.iter().flat_map(|step| &step.reports).any(Report::is_internal) {
            return ExitStatus::Internal;
        }
        self.verdict.map_or(ExitStatus::Success, |verdict| ExitStatus::of_summary(verdict, allow_unknown))
    }

    /// What is said on standard error: the programs after the steps, and the table of the steps.
    pub(super) fn messages(&self, args: &Args, source: &Source, style: Style) -> String {
        let mut out = String::new();
        if args.print_after_all {
            for (step, func) in self.steps.iter().zip(&self.programs) {
                let _ = writeln!(out, "# {} after {}\n{}", self.name, step.name, print_func(func).trim_end());
            }
        }
        if self.verdict.is_some() || args.time {
            let title = format!("{}: {}", source.name, self.name);
            out.push_str(&text::steps(&title, &self.steps, Texts::one(source), style));
        }
        if let Some(verdict) = self.verdict.filter(|verdict| *verdict != Summary::Proved) {
            let _ = writeln!(out, "{} is {}", self.name, verdict.word());
        }
        out
    }

    /// The steps as rows of a JSON document.
    pub(super) fn rows(&self, args: &Args) -> Vec<serde_json::Value> {
        let row = |(position, step): (usize, &StepOutcome)| {
            let script = self.programs.get(position).filter(|_| args.print_after_all).map(print_func);
            let verdict = self.verdict.map(|_| step.summary().word());
            serde_json::json!({
                "function": self.name,
                "name": step.name,
                "ms": step.ms,
                "verdict": verdict,
                "n_obligations": step.reports.len(),
                "skipped": step.blocked.as_ref().map(ToString::to_string),
                "script": script,
            })
        };
        self.steps.iter().enumerate().map(row).collect()
    }
}
