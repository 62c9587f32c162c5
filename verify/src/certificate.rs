//! Certificates: proofs as SMT-LIB 2 files that any solver can check again.
//!
//! A certificate turns the [`Proof`] of each report into lines, each with a rule, a goal and, for an inference, the file of
//! the query and the expected answer. A lemma is proved once, in lines of its own; the file of an instance states the
//! instantiated lemma and the facts that it was applied to. Lines without a file are not inferences: premises, and the
//! discharge of the premises of a fork.
//!
//! ```text
//! 0001-bounds-00-map_bounds-0003.smt2    proof 1, part 0, step 3: the facts and the negated goal, `unsat` expected
//! lemma-Euclid-0001.smt2                 a step in the proof of a lemma
//! ```
//!
//! A solver that answers every file as expected confirms each inference. It does not confirm that the premises are
//! those of the program; they are listed with their reasons for a reader.

use crate::encode::{self, EncodeError, Encoding};
use crate::kernel::{Context, Rule, Step, Theorem};
use crate::record::{Expected, Part, Proof};
use crate::smtlib;
use crate::term::{Prop, Substitution};
use std::collections::{BTreeMap, HashMap};
use tilewright_ir::sabotage;

/// A line of a proof.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Line {
    /// How the goal was obtained: the rule, the lemma, or the reason of a premise.
    pub rule: String,
    /// The goal, in the notation of reports.
    pub goal: String,
    /// The file to give to a solver; `None` if the line is not an inference.
    pub file: Option<String>,
    /// The answer that a solver must give.
    pub expected: &'static str,
}

/// A lemma that proofs used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LemmaProof {
    /// The name, such as `lemma-Euclid`.
    pub name: String,
    /// The lines of its proof.
    pub lines: Vec<Line>,
}

/// The files of some proofs, by name, and the lemmas that they use. It contains no times: equal proofs have equal
/// certificates.
#[derive(Clone, Debug, Default)]
pub struct Certificate {
    /// The number of proofs added so far, which numbers the files.
    proofs: usize,
    /// The text of each file, by name.
    files: BTreeMap<String, String>,
    /// The file of each query, by canonical text: a query that differs in names only is not written again.
    queries: HashMap<String, String>,
    /// The lemmas used so far, in the order of their first use.
    lemmas: Vec<LemmaProof>,
}

impl Certificate {
    /// An empty certificate.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the proof of a verdict and returns its lines. The names of its files begin with a number and `name`.
    ///
    /// # Errors
    /// A goal is too large to be encoded, or uses one name for an integer and for a truth value.
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

    /// Adds the steps of a context and returns their lines.
    ///
    /// # Errors
    /// As [`Certificate::add`].
    pub fn add_context(&mut self, name: &str, context: &Context) -> Result<Vec<Line>, EncodeError> {
        let (prefix, mut lines) = (self.next(name), Vec::new());
        self.steps(&prefix, context.steps(), &mut lines)?;
        Ok(lines)
    }

    /// All files with their texts, in the order of their names. A name consists of letters, digits, `-`, `_` and `.`, and
    /// has no path.
    pub fn files(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files.iter().map(|(name, text)| (name.as_str(), text.as_str()))
    }

    /// The lemmas that were used, in the order of their first use.
    pub fn lemmas(&self) -> &[LemmaProof] {
        &self.lemmas
    }

    /// The number and name that the files of the next proof begin with.
    fn next(&mut self, name: &str) -> String {
        self.proofs += 1;
        format!("{:04}-{}", self.proofs, file_name(name))
    }

    /// Adds the lines of all steps that were shown.
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

    /// The line of an instance of a lemma: the goal follows from the instantiated lemma and the facts. Adds the lemma's own
    /// proof when it occurs first.
    fn instance(
        &mut self,
        file: &str,
        step: &Step,
        theorem: &Theorem,
        values: &Substitution,
    ) -> Result<Line, EncodeError> {
        let lemma = format!("lemma-{}", file_name(theorem.name()));
        if !self.lemmas.iter().any(|known| known.name == lemma) {
            // The position is reserved first, so that the lemmas used in the proof come after it and recursion ends.
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

    /// The line of an obligation that no solver was asked about; without a file if it is too large to be encoded.
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

    /// The line of a goal that follows from facts, with its file.
    fn file(
        &mut self,
        file: &str,
        rule: &str,
        using: &[Prop],
        goal: &Prop,
        encoding: Encoding,
    ) -> Result<Line, EncodeError> {
        let fewer = if sabotage::on("certificate-drops-a-fact") { using.len().saturating_sub(1) } else { using.len() };
        let using = &using[..fewer];
        let query = encode::encode(using, goal, encoding)?;
        Ok(self.query(file, rule, using, goal, &query, Expected::Unsat))
    }

    /// The line and the file of a query; a query that was written before refers to its earlier file.
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

/// The text without tabs and line breaks.
fn one_line(text: &str) -> String {
    text.replace(['\t', '\n', '\r'], " ")
}

/// `name` as part of a file name: other characters than letters, digits and `-` are replaced, and at most 40 are kept.
fn file_name(name: &str) -> String {
    let plain = |letter: char| if letter.is_ascii_alphanumeric() || letter == '-' { letter } else { '_' };
    name.chars().map(plain).take(40).collect()
}
