//! The proof as SMT-LIB 2 files that any solver can check again.
//!
//! A certificate turns the [`Proof`] of each report into lines: rule, goal and, where there is something to check, the file
//! of the query and the answer expected of it. A lemma is proved once, in lines of its own; its instances are files that
//! state the instantiated lemma and the facts it was applied to. What has no file is no inference: premises, and the
//! discharge of assumptions that a fork made.

use crate::encode::{self, EncodeError, Encoding};
use crate::kernel::{Context, Rule, Step, Theorem};
use crate::record::{Expected, Part, Proof};
use crate::smtlib;
use crate::term::{Prop, Substitution};
use std::collections::{BTreeMap, HashMap};

/// A line of a proof.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Line {
    /// How the goal came about: by which rule, from which lemma, why it may be assumed.
    pub rule: String,
    /// What is stated.
    pub goal: String,
    /// The file to give to a solver; none if nothing is inferred here.
    pub file: Option<String>,
    /// What a solver has to answer to the file.
    pub expected: &'static str,
}

/// A lemma that proofs used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LemmaProof {
    /// Its name.
    pub name: String,
    /// Its proof.
    pub lines: Vec<Line>,
}

/// The files of proofs by name, and the lemmas. It holds no times and is the same for the same proofs.
#[derive(Clone, Debug, Default)]
pub struct Certificate {
    proofs: usize,
    files: BTreeMap<String, String>,
    /// The file of each query: one that differs in names only is not written again.
    queries: HashMap<String, String>,
    lemmas: Vec<LemmaProof>,
}

impl Certificate {
    /// An empty certificate.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds what a verdict rests on; its number here and `name` begin the names of its files.
    pub fn add(&mut self, name: &str, proof: &Proof) -> Result<Vec<Line>, EncodeError> {
        let prefix = self.next(name);
        let mut lines = Vec::new();
        for (position, part) in proof.parts().iter().enumerate() {
            match part {
                Part::Steps { of, steps } => {
                    self.steps(&format!("{prefix}-{position:02}-{}", file_name(of)), steps, &mut lines)?;
                }
                Part::Statement { using, goal, expected } => {
                    lines.push(self.statement(&format!("{prefix}-{position:02}"), using, goal, *expected));
                }
            }
        }
        let mut seen = std::collections::HashSet::new();
        lines.retain(|line| seen.insert(line.clone()));
        Ok(lines)
    }

    /// Adds the steps of a context.
    pub fn add_context(&mut self, name: &str, context: &Context) -> Result<Vec<Line>, EncodeError> {
        let (prefix, mut lines) = (self.next(name), Vec::new());
        self.steps(&prefix, context.steps(), &mut lines)?;
        Ok(lines)
    }

    /// All files with their texts, in the order of the names. None has a path: a name is letters, digits, `-`, `_` and `.`.
    pub fn files(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files.iter().map(|(name, text)| (name.as_str(), text.as_str()))
    }

    /// The lemmas that were used, in the order of their first use.
    pub fn lemmas(&self) -> &[LemmaProof] {
        &self.lemmas
    }

    fn next(&mut self, name: &str) -> String {
        self.proofs += 1;
        format!("{:04}-{}", self.proofs, file_name(name))
    }

    fn steps(&mut self, name: &str, steps: &[Step], lines: &mut Vec<Line>) -> Result<(), EncodeError> {
        for (position, step) in steps.iter().enumerate().filter(|(_, step)| step.shown) {
            let file = format!("{name}-{position:04}");
            match &step.rule {
                Rule::Premise(reason) => lines.push(bare(&format!("premise: {reason}"), &step.goal)),
                Rule::Given => lines.push(self.file(&file, "given", &step.using, &step.goal, Encoding::Abstract)?),
                Rule::Solver(encoding, _) => {
                    let rule = match encoding {
                        Encoding::Opaque => "derived, opaque",
                        Encoding::Abstract => "derived, abstract",
                        Encoding::Exact => "derived, exact",
                        Encoding::Bits(_) => "derived, bit-vectors",
                    };
                    lines.push(self.file(&file, rule, &step.using, &step.goal, *encoding)?);
                }
                Rule::Theorem(theorem, values) => lines.push(self.instance(&file, step, theorem, values)?),
                Rule::Discharge(inner) => {
                    self.steps(&format!("{file}-fork"), inner, lines)?;
                    lines.push(bare("discharge", &step.goal));
                }
            }
        }
        Ok(())
    }

    fn instance(
        &mut self,
        file: &str,
        step: &Step,
        theorem: &Theorem,
        values: &Substitution,
    ) -> Result<Line, EncodeError> {
        let lemma = format!("lemma-{}", file_name(theorem.name()));
        if !self.lemmas.iter().any(|known| known.name == lemma) {
            // Its own lemmas are there before it; the place is taken first, so that no lemma is its own.
            let place = self.lemmas.len();
            self.lemmas.push(LemmaProof { name: lemma.clone(), lines: Vec::new() });
            let mut lines = Vec::new();
            self.steps(&lemma, theorem.steps(), &mut lines)?;
            self.lemmas[place].lines = lines;
        }
        let hypotheses = Prop::all(theorem.hypotheses().iter().map(|prop| values.prop(prop)));
        let mut using = step.using.clone();
        using.push(hypotheses.implies(values.prop(theorem.conclusion())));
        let values: Vec<String> = values.iter().map(|(symbol, term)| format!("{symbol} := {term}")).collect();
        let rule = format!("{lemma} with {}", values.join(", "));
        self.file(file, &rule, &using, &step.goal, Encoding::Abstract)
    }

    /// The obligation itself; without a file where it is too large to be written.
    fn statement(&mut self, file: &str, using: &[Prop], goal: &Prop, expected: Expected) -> Line {
        let rule = match expected {
            Expected::Unsat => "the obligation itself, not given to a solver",
            Expected::Sat => "the counterexample",
        };
        match encode::encode(using, goal, Encoding::Exact) {
            Ok(query) if !query.approximate || expected == Expected::Unsat => {
                self.query(file, rule, using, goal, &query, expected)
            }
            Ok(_) => bare(&format!("{rule}, which is only approximated in SMT-LIB"), goal),
            Err(error) => bare(&format!("{rule}: {error}"), goal),
        }
    }

    fn file(
        &mut self,
        file: &str,
        rule: &str,
        using: &[Prop],
        goal: &Prop,
        encoding: Encoding,
    ) -> Result<Line, EncodeError> {
        let query = encode::encode(using, goal, encoding)?;
        Ok(self.query(file, rule, using, goal, &query, Expected::Unsat))
    }

    fn query(
        &mut self,
        file: &str,
        rule: &str,
        using: &[Prop],
        goal: &Prop,
        query: &encode::Query,
        expected: Expected,
    ) -> Line {
        let mut title = format!("{rule}\ngoal: {goal}");
        for fact in using {
            title.push_str("\nfrom: ");
            title.push_str(&fact.to_string());
        }
        let file = format!("{file}.smt2");
        let key = format!("{}{}", expected.word(), smtlib::canonical_text(query));
        let known = self.queries.entry(key).or_insert_with(|| file.clone()).clone();
        if known == file {
            self.files.insert(file, smtlib::standalone(query, &title, expected.word()));
        }
        Line { rule: one_line(rule), goal: one_line(&goal.to_string()), file: Some(known), expected: expected.word() }
    }
}

/// A line without a file.
fn bare(rule: &str, goal: &Prop) -> Line {
    Line { rule: one_line(rule), goal: one_line(&goal.to_string()), file: None, expected: Expected::Unsat.word() }
}

fn one_line(text: &str) -> String {
    text.replace(['\t', '\n', '\r'], " ")
}

/// `name` with what file systems dislike replaced, and not longer than they like.
fn file_name(name: &str) -> String {
    let plain = |letter: char| if letter.is_ascii_alphanumeric() || letter == '-' { letter } else { '_' };
    name.chars().map(plain).take(40).collect()
}
