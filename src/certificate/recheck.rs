//! Checks a certificate again: are the files the ones that were written, and does every solver give the answers expected?
//!
//! Two questions are answered, in this order:
//!
//! 1. [`load`]: is every file present, unchanged (SHA-256) and listed, and does each step expect the answer that its verdict
//!    needs? A proved obligation has goals that are `unsat`, a refuted one has goals that are `sat`.
//! 2. [`ask`]: does every solver give the expected answer to every goal?
//!
//! The check believes nothing that the manifest says about a solver: each goal is decided again from its text.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use rayon::prelude::*;
use serde::Serialize;
use serde::de::IgnoredAny;
use tilewright_verify::solver::text::{self, TextAnswer};
use tilewright_verify::solver::{Budget, z3_version};

use super::cvc5::Cvc5;
use super::folder::{listed, names, read_text};
use super::{MANIFEST, Manifest, SCHEMA, Step, hash, is_goal_name, is_undamaged};
use crate::pipeline::outcome::Summary;

/// A certificate that was read and is undamaged: every listed file is present and has its hash.
#[derive(Debug)]
pub struct Loaded {
    /// The content of `manifest.json`.
    pub manifest: Manifest<IgnoredAny>,
    /// The goals, sorted by the names of their files.
    pub goals: Vec<Goal>,
}

/// A goal to be asked again.
#[derive(Clone, Debug)]
pub struct Goal {
    /// The name of its file.
    pub file: String,
    /// The statement of the first step that refers to this file.
    pub goal: String,
    /// The answer that a solver has to give: `unsat` or `sat`.
    pub expected: String,
    text: String,
}

/// The reason why a folder cannot be checked.
#[derive(Debug)]
pub enum Unloadable {
    /// The folder is not a certificate, for this reason.
    NotOne(String),
    /// The folder holds a certificate that was damaged; these are the faults.
    Damaged(Vec<Damage>),
}

/// A fault of one file of a certificate.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Damage {
    /// The name of the file.
    pub file: String,
    /// A description of the fault.
    pub message: String,
}

/// The fault `message` of a file.
fn damage(file: &str, message: impl Into<String>) -> Damage {
    Damage { file: file.into(), message: message.into() }
}

/// Reads a certificate and compares every file with the manifest.
///
/// # Errors
/// The folder is not a certificate, or is not as it was written. All faults are returned, not only the first one.
pub fn load(folder: &Path) -> Result<Loaded, Unloadable> {
    let not_one = |reason: String| Unloadable::NotOne(format!("{} is no certificate: {reason}", folder.display()));
    let found = names(folder).map_err(|error| not_one(unreadable(&error)))?;
    let is_ours = |text: &str| text.contains(SCHEMA) || found.iter().any(|(name, _)| is_goal_name(name));
    let text = match read_text(&folder.join(MANIFEST)) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(not_one(format!("it has no {MANIFEST}")));
        }
        // A folder that holds goals had a manifest that could be read.
        Err(error) if is_ours("") && error.kind() != io::ErrorKind::PermissionDenied => {
            return Err(Unloadable::Damaged(vec![damage(MANIFEST, error.to_string())]));
        }
        Err(error) => return Err(not_one(format!("its {MANIFEST} cannot be read: {error}"))),
    };
    let manifest: Manifest<IgnoredAny> = serde_json::from_str(&text).map_err(|error| {
        if is_ours(&text) {
            Unloadable::Damaged(vec![damage(MANIFEST, format!("it cannot be read: {error}"))])
        } else {
            not_one(format!("its {MANIFEST} is not that of a certificate: {error}"))
        }
    })?;
    if manifest.schema != SCHEMA {
        return Err(not_one(format!("its schema is `{}`, not `{SCHEMA}`", manifest.schema)));
    }
    let mut damages = Vec::new();
    if !is_undamaged(&text, &manifest.digest) {
        damages.push(damage(MANIFEST, "it was changed: its digest is not that of its text"));
    }
    let goals = goals(folder, &manifest, &mut damages);
    damages.extend(strangers(&found, &manifest));
    damages.sort_unstable();
    damages.dedup();
    if damages.is_empty() { Ok(Loaded { manifest, goals }) } else { Err(Unloadable::Damaged(damages)) }
}

/// Why a folder cannot be looked into.
fn unreadable(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "there is no such folder".into(),
        io::ErrorKind::NotADirectory => "it is no folder".into(),
        _ => format!("it cannot be looked into: {error}"),
    }
}

/// The goals of all steps, each file once.
fn goals(folder: &Path, manifest: &Manifest<IgnoredAny>, damages: &mut Vec<Damage>) -> Vec<Goal> {
    let mut goals: BTreeMap<&str, (Goal, &Step)> = BTreeMap::new();
    let rows = manifest.obligations.iter().map(|row| (row.verdict, &row.steps));
    let lemmas = manifest.lemmas.iter().map(|lemma| (Summary::Proved, &lemma.steps));
    for (verdict, steps) in rows.chain(lemmas) {
        for step in steps {
            let Some(file) = step.file.as_deref() else { continue };
            if !fits(verdict, step) {
                let expected = step.expected.as_deref().unwrap_or("nothing");
                let message = format!("a {} obligation expects `{expected}` of it", verdict.word());
                damages.push(damage(file, message));
            } else if let Some((_, first)) = goals.get(file) {
                if (&first.sha256, &first.expected) != (&step.sha256, &step.expected) {
                    damages.push(damage(file, "two steps say different things of it"));
                }
            } else {
                match goal(folder, file, step) {
                    Ok(goal) => drop(goals.insert(file, (goal, step))),
                    Err(message) => damages.push(damage(file, message)),
                }
            }
        }
    }
    goals.into_values().map(|(goal, _)| goal).collect()
}

/// Whether the expected answer fits the verdict. A goal that shows that an obligation holds is `unsat`; a goal that
/// shows that it fails is `sat`, and its model is the counterexample.
fn fits(verdict: Summary, step: &Step) -> bool {
    match step.expected.as_deref() {
        Some("unsat") => verdict != Summary::Refuted,
        Some("sat") => verdict == Summary::Refuted,
        _ => false,
    }
}

/// Reads a goal and compares it with its step: name, hash, commands, and the answer that the file itself announces.
fn goal(folder: &Path, file: &str, step: &Step) -> Result<Goal, String> {
    if !is_goal_name(file) {
        return Err("that is no name of a goal".into());
    }
    let text = match read_text(&folder.join(file)) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Err("it is missing".into()),
        Err(error) => return Err(format!("it cannot be read: {error}")),
    };
    let expected = step.expected.clone().unwrap_or_default();
    if step.sha256.as_deref() != Some(hash(&text).as_str()) {
        return Err("it was changed: its hash is not the one in the manifest".into());
    }
    if let Some(fault) = text::fault(&text) {
        return Err(fault);
    }
    if !text.lines().any(|line| line == format!("(set-info :status {expected})")) {
        return Err(format!("it does not say that `{expected}` is expected"));
    }
    Ok(Goal { file: file.to_owned(), goal: step.goal.clone(), expected, text })
}

/// The files found that the manifest does not list.
fn strangers(found: &[(String, bool)], manifest: &Manifest<IgnoredAny>) -> Vec<Damage> {
    let listed: BTreeSet<&str> = listed(manifest).chain([MANIFEST]).collect();
    let strange = found.iter().filter(|(name, plain)| !plain || !listed.contains(name.as_str()));
    let why = |plain: &bool| if *plain { "the manifest does not list it" } else { "it is no plain file" };
    strange.map(|(name, plain)| damage(name, why(plain))).collect()
}

/// A solver that is asked.
#[derive(Clone, Debug)]
pub enum Checker {
    /// Z3, through the library.
    Z3,
    /// cvc5, as a process.
    Cvc5(Cvc5),
    /// A solver that is not installed: its name and the reason. It is asked nothing.
    Missing(&'static str, String),
}

impl Checker {
    /// The name, such as `Z3`, also if the solver is missing.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Z3 => "Z3",
            Self::Cvc5(_) => "cvc5",
            Self::Missing(name, _) => name,
        }
    }

    /// The version of the solver; `None` if it is missing.
    pub fn version(&self) -> Option<String> {
        match self {
            Self::Z3 => z3_version().ok().map(|version| version.to_string()),
            Self::Cvc5(cvc5) => Some(cvc5.version.clone()),
            Self::Missing(..) => None,
        }
    }

    /// The answer to one goal; `None` from a solver that is missing. `Err` is an error that the solver reports.
    fn ask(&self, goal: &Goal, limit: Duration) -> Option<Result<TextAnswer, String>> {
        match self {
            Self::Z3 => {
                let timeout_ms = u32::try_from(limit.as_millis()).unwrap_or(u32::MAX).max(1);
                let budget = Budget { rlimit: u32::MAX, timeout_ms, ..Budget::default() };
                Some(text::answer(&goal.text, budget).map_err(|error| error.to_string()))
            }
            Self::Cvc5(cvc5) => Some(cvc5.answer(&goal.text, limit)),
            Self::Missing(..) => None,
        }
    }
}

/// Whether a solver's answer is the expected one. The order is that of severity: the larger, the worse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// The answer is the expected one.
    Agree,
    /// The solver gave no answer.
    Unknown,
    /// The answer is the opposite: `sat` for `unsat`, or the reverse.
    Disagree,
    /// The solver reported an error instead.
    Error,
}

/// A solver's answer to a goal.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AnswerRow {
    /// The name of the solver.
    pub solver: &'static str,
    /// `unsat`, `sat` or `unknown`.
    pub answer: &'static str,
    /// Whether the answer is the expected one.
    pub outcome: Outcome,
    /// The time it took, in milliseconds.
    pub ms: f64,
    /// The reason, if there is no answer.
    pub reason: Option<String>,
}

/// A goal and the answers to it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GoalRow {
    /// The name of its file.
    pub file: String,
    /// The statement.
    pub goal: String,
    /// The expected answer.
    pub expected: String,
    /// One answer for each solver that is installed.
    pub answers: Vec<AnswerRow>,
}

/// Asks every solver about every goal, on all threads, each for at most `limit`. The rows are in the order of the goals;
/// `done` is called after each goal, from any thread.
pub fn ask(goals: &[Goal], checkers: &[Checker], limit: Duration, done: impl Fn() + Sync) -> Vec<GoalRow> {
    let row = |goal: &Goal| {
        let answers = checkers.iter().filter_map(|checker| answer(checker, goal, limit)).collect();
        done();
        GoalRow { file: goal.file.clone(), goal: goal.goal.clone(), expected: goal.expected.clone(), answers }
    };
    goals.par_iter().map(row).collect()
}

/// The row of one solver and one goal; `None` for a solver that is missing.
fn answer(checker: &Checker, goal: &Goal, limit: Duration) -> Option<AnswerRow> {
    let start = Instant::now();
    let found = checker.ask(goal, limit)?;
    let ms = start.elapsed().as_secs_f64() * 1e3;
    let (answer, reason) = match &found {
        Ok(TextAnswer::Unsat) => ("unsat", None),
        Ok(TextAnswer::Sat) => ("sat", None),
        Ok(TextAnswer::Unknown(reason)) | Err(reason) => ("unknown", Some(reason.clone())),
    };
    let outcome = match &found {
        Err(_) => Outcome::Error,
        Ok(TextAnswer::Unknown(_)) => Outcome::Unknown,
        Ok(TextAnswer::Unsat | TextAnswer::Sat) if answer == goal.expected => Outcome::Agree,
        Ok(TextAnswer::Unsat | TextAnswer::Sat) => Outcome::Disagree,
    };
    Some(AnswerRow { solver: checker.name(), answer, outcome, ms, reason })
}
