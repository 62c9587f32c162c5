//! Certificates: what was proved as a folder that other solvers can check, and the check.
//!
//! ```text
//! DIR/manifest.json     what was asked, how it was decided, and a line for each step: rule, goal, file, hash, answer expected
//! DIR/0001-....smt2     a goal: SMT-LIB 2, on which every solver has to give that answer
//! ```
//!
//! `manifest.json` has schema `tilewright.certificate/1`:
//!
//! ```json
//! {"schema": "tilewright.certificate/1", "digest": "...", "solver": {"name": "Z3", "version": "5.4.0.0"}, "encoder": 1,
//!  "obligations": [
//!    {"obligation": "bounds", "subject": "lambda i: [i // 4, i % 4]", "within": "", "verdict": "proved", "method": "z3",
//!     "reason": null, "confirmed": true, "counterexample": null,
//!     "steps": [{"rule": "derived, exact", "goal": "...", "file": "0001-bounds-....smt2", "sha256": "...",
//!                "expected": "unsat"}]}],
//!  "lemmas": [{"name": "lemma-Euclid", "steps": []}]}
//! ```
//!
//! `confirmed` says whether the solver answered the goals when the certificate was written. An obligation that was decided
//! without it (by enumeration, over GF(2)) has itself as its goal, not confirmed, where it can be stated without quantifiers,
//! and no file otherwise. `digest` is the SHA-256 of the manifest with the digest itself left empty: it shows accidents, not
//! forgers, whom the solvers find out.

pub mod cvc5;
pub mod folder;
pub mod recheck;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tilewright_verify::Report;
use tilewright_verify::certificate::{Certificate, Line};
use tilewright_verify::encode::EncodeError;
use tilewright_verify::solver::{ENCODER_VERSION, z3_version};

use crate::json::CounterexampleView;
use crate::pipeline::outcome::Summary;

/// The name of the file that lists the others.
pub const MANIFEST: &str = "manifest.json";

/// The schema of the manifest.
pub const SCHEMA: &str = "tilewright.certificate/1";

/// What a certificate says. `C` is a counterexample: read back, it is skipped.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Manifest<C> {
    /// [`SCHEMA`].
    pub schema: String,
    /// SHA-256 of the manifest with this left empty.
    pub digest: String,
    /// Who answered.
    pub solver: SolverName,
    /// The version of the encoding.
    pub encoder: u32,
    /// What was asked.
    pub obligations: Vec<Obligation<C>>,
    /// The lemmas that the steps use.
    pub lemmas: Vec<Lemma>,
}

/// A solver and its version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SolverName {
    /// Such as `Z3`.
    pub name: String,
    /// Such as `5.4.0.0`.
    pub version: String,
}

/// An obligation, its answer, and what that rests on.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Obligation<C> {
    /// Its id, such as `injective`.
    pub obligation: String,
    /// What it is about.
    pub subject: String,
    /// File, function and step that it belongs to; empty for a map.
    pub within: String,
    /// The answer.
    pub verdict: Summary,
    /// How it was decided.
    pub method: String,
    /// Why it is unknown, vacuous or skipped, if it is.
    pub reason: Option<String>,
    /// Whether the solver answered the goals when they were written.
    pub confirmed: bool,
    /// Where it fails.
    pub counterexample: Option<C>,
    /// The proof.
    pub steps: Vec<Step>,
}

/// A lemma, proved once for all values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lemma {
    /// Its name.
    pub name: String,
    /// Its proof.
    pub steps: Vec<Step>,
}

/// A step of a proof.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// How the goal came about.
    pub rule: String,
    /// What is stated.
    pub goal: String,
    /// The goal as SMT-LIB 2; null where nothing is inferred.
    pub file: Option<String>,
    /// SHA-256 of the file.
    pub sha256: Option<String>,
    /// What a solver has to answer.
    pub expected: Option<String>,
}

/// An obligation to be written: what it is within, and the report on it.
pub type Entry<'a> = (String, &'a Report);

/// The files of a certificate by name, [`MANIFEST`] among them; the same for the same reports.
///
/// # Errors
/// A goal that is too large to be written, no solver that will do.
pub fn files(entries: &[Entry<'_>]) -> Result<BTreeMap<String, String>, Fault> {
    let mut certificate = Certificate::new();
    let mut rows = Vec::new();
    for (within, report) in entries {
        rows.push((within, *report, certificate.add(report.obligation.id(), &report.proof)?));
    }
    let mut files: BTreeMap<String, String> =
        certificate.files().map(|(name, text)| (name.to_owned(), text.to_owned())).collect();
    let hashes: BTreeMap<&str, String> = certificate.files().map(|(name, text)| (name, hash(text))).collect();
    let steps = |lines: &[Line]| lines.iter().map(|line| step(line, &hashes)).collect::<Vec<_>>();
    let lemma = |lemma: &tilewright_verify::certificate::LemmaProof| Lemma {
        name: lemma.name.clone(),
        steps: steps(&lemma.lines),
    };
    let mut manifest = Manifest {
        schema: SCHEMA.into(),
        digest: String::new(),
        solver: SolverName { name: "Z3".into(), version: z3_version()?.to_string() },
        encoder: ENCODER_VERSION,
        obligations: rows.iter().map(|(within, report, lines)| obligation(within, report, steps(lines))).collect(),
        lemmas: certificate.lemmas().iter().map(lemma).collect(),
    };
    manifest.digest = hash(&pretty(&manifest)?);
    files.insert(MANIFEST.into(), pretty(&manifest)?);
    Ok(files)
}

/// Why there is no certificate.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// A goal is too large.
    #[error(transparent)]
    Goal(#[from] EncodeError),
    /// There is no solver.
    #[error(transparent)]
    Solver(#[from] tilewright_verify::solver::SolverError),
    /// The manifest is no JSON.
    #[error("the manifest cannot be written: {0}")]
    Json(#[from] serde_json::Error),
}

fn obligation<'a>(within: &str, report: &'a Report, steps: Vec<Step>) -> Obligation<CounterexampleView<'a>> {
    Obligation {
        obligation: report.obligation.id().to_owned(),
        subject: report.subject.clone(),
        within: within.to_owned(),
        verdict: Summary::from(&report.verdict),
        method: report.method.to_string(),
        reason: report.verdict.reason().map(ToString::to_string),
        confirmed: report.proof.is_confirmed(),
        counterexample: report.verdict.counterexample().map(CounterexampleView::new),
        steps,
    }
}

fn step(line: &Line, hashes: &BTreeMap<&str, String>) -> Step {
    let file = line.file.as_deref();
    Step {
        rule: line.rule.clone(),
        goal: line.goal.clone(),
        file: file.map(str::to_owned),
        sha256: file.and_then(|file| hashes.get(file).cloned()),
        expected: file.map(|_| line.expected.to_owned()),
    }
}

fn pretty<C: Serialize>(manifest: &Manifest<C>) -> Result<String, serde_json::Error> {
    Ok(serde_json::to_string_pretty(manifest)? + "\n")
}

/// Whether the digest of a manifest is that of its text.
fn is_undamaged(text: &str, digest: &str) -> bool {
    let empty = text.replacen(&format!("\"digest\": \"{digest}\""), "\"digest\": \"\"", 1);
    hash(&empty) == digest
}

/// SHA-256 in lower-case hexadecimal.
pub fn hash(text: &str) -> String {
    let mut hex = String::with_capacity(64);
    for byte in Sha256::digest(text.as_bytes()) {
        // Writing to a String cannot fail.
        let _ = write!(hex, "{byte:02x}");
    }
    hex
}

/// Whether a name is one that a certificate gives to a goal: of this folder, and nothing but a goal.
pub fn is_goal_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    name.strip_suffix(".smt2").is_some_and(|stem| !stem.is_empty() && stem.bytes().all(plain))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_sha_256() {
        assert_eq!(hash("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }

    #[test]
    fn names_never_leave_the_folder() {
        for bad in [
            "../a.smt2",
            "a/b.smt2",
            "/a.smt2",
            "a.smt2/..",
            ".smt2",
            "a",
            "a.smt2.x",
            "a b.smt2",
            "ä.smt2",
            "a\0.smt2",
        ] {
            assert!(!is_goal_name(bad), "{bad}");
        }
        assert!(is_goal_name("0001-bounds-00-map_bounds-0003.smt2"));
    }

    #[test]
    fn a_manifest_with_one_character_changed_is_damaged() {
        let files = files(&[]).unwrap();
        let text = &files[MANIFEST];
        let manifest: Manifest<serde::de::IgnoredAny> = serde_json::from_str(text).unwrap();
        assert!(is_undamaged(text, &manifest.digest));
        assert!(!is_undamaged(&text.replace("\"encoder\": 1", "\"encoder\": 2"), &manifest.digest));
        assert!(!is_undamaged(text, "") && !is_undamaged(text, &hash("")));
    }
}
