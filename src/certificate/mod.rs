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
//! without it (by enumeration, over GF(2)) has itself as its goal, not confirmed, where it can be stated without
//! quantifiers, and no file otherwise. `digest` is the SHA-256 of the manifest with the digest itself left empty: it
//! shows accidents, not forgers, whom the solvers find out.

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

/// The content of `manifest.json`. `C` is the type of a counterexample; it is only written, and ignored on reading.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Manifest<C> {
    /// Always [`SCHEMA`].
    pub schema: String,
    /// SHA-256 of the text of the manifest with an empty digest, in hexadecimal.
    pub digest: String,
    /// The solver that answered the goals when the certificate was written.
    pub solver: SolverName,
    /// The version of the encoding of goals as SMT-LIB 2.
    pub encoder: u32,
    /// The obligations, in the order in which they were checked.
    pub obligations: Vec<Obligation<C>>,
    /// The lemmas whose instances the steps use as premises.
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

/// An obligation, its verdict, and the steps of its proof.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Obligation<C> {
    /// The id of the obligation, such as `injective`.
    pub obligation: String,
    /// The map, layout, buffer or access that it is about, as text.
    pub subject: String,
    /// The file, function and step that it belongs to, such as `a.py::main flatten_buffer`; empty for a map or a layout.
    pub within: String,
    /// The verdict.
    pub verdict: Summary,
    /// The method by which it was decided, such as enumeration or the solver.
    pub method: String,
    /// The reason, if the verdict is unknown, vacuous or skipped.
    pub reason: Option<String>,
    /// Whether the solver had answered the goals when the certificate was written.
    pub confirmed: bool,
    /// Values for which the obligation fails, if it is refuted.
    pub counterexample: Option<C>,
    /// The steps of the proof.
    pub steps: Vec<Step>,
}

/// A lemma, proved once for all values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lemma {
    /// The name, such as `lemma-Euclid`.
    pub name: String,
    /// Its proof.
    pub steps: Vec<Step>,
}

/// A step of a proof.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// The rule that made the goal, such as `derived, exact`.
    pub rule: String,
    /// The statement, in the notation of reports.
    pub goal: String,
    /// The name of the file with the goal as SMT-LIB 2. Null if the step has no goal to ask a solver about.
    pub file: Option<String>,
    /// SHA-256 of the file, in hexadecimal.
    pub sha256: Option<String>,
    /// The answer that a solver has to give: `unsat`, or `sat` if the obligation is refuted.
    pub expected: Option<String>,
}

/// One obligation to be written: [`Obligation::within`] and the report.
pub type Entry<'a> = (String, &'a Report);

/// The files of a certificate by name, [`MANIFEST`] among them. The same reports always give the same files.
///
/// # Errors
/// A goal is too large to be written, or the solver is missing or too old.
pub fn files(entries: &[Entry<'_>]) -> Result<BTreeMap<String, String>, Fault> {
    let mut certificate = Certificate::new();
    let mut rows = Vec::new();
    for (within, report) in entries {
        rows.push((within, *report, certificate.add(report.obligation.id(), &report.proof)?));
    }
    let mut files: BTreeMap<String, String> =
        certificate.files().map(|(name, text)| (name.to_owned(), text.to_owned())).collect();
    // Two steps may share a file, so the files are complete only after the last obligation was added.
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
    // The digest cannot cover itself: it is the hash of the manifest in which it is empty, as `is_undamaged` restores
    // it.
    manifest.digest = hash(&pretty(&manifest)?);
    files.insert(MANIFEST.into(), pretty(&manifest)?);
    Ok(files)
}

/// The reason why no certificate can be made.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// A goal is too large to be written.
    #[error(transparent)]
    Goal(#[from] EncodeError),
    /// The solver is missing or too old.
    #[error(transparent)]
    Solver(#[from] tilewright_verify::solver::SolverError),
    /// The manifest cannot be represented as JSON.
    #[error("the manifest cannot be written: {0}")]
    Json(#[from] serde_json::Error),
}

/// The entry of the manifest for one report.
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

/// The entry of the manifest for one step. A step without a goal has neither file nor hash nor expected answer.
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

/// The text of a manifest: indented JSON and a newline.
fn pretty<C: Serialize>(manifest: &Manifest<C>) -> Result<String, serde_json::Error> {
    Ok(serde_json::to_string_pretty(manifest)? + "\n")
}

/// Whether `digest` is the hash of the manifest's text with the digest itself left empty.
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

/// Whether a name is one that a certificate gives to a goal: letters, digits, `-` and `_`, then `.smt2`. Such a name
/// has no path separators, so a manifest cannot refer to files outside of its folder.
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
