//! The proof as a folder of SMT-LIB 2 files that any solver can check again: each has to answer `unsat`.
//!
//! `MANIFEST.tsv` lists every step that was shown: file, rule, goal. A lemma is proved once, in files of its own; its
//! instances are files that state the instantiated lemma and the facts it was applied to. What has no file is no inference:
//! premises, and the discharge of assumptions that a fork made.

use crate::encode::{self, EncodeError, Encoding};
use crate::kernel::{Context, Rule, Step, Theorem};
use crate::smtlib;
use crate::term::{Prop, Substitution};
use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io;
use std::path::Path;

/// The name of the file that lists the others.
pub const MANIFEST: &str = "MANIFEST.tsv";

/// The files of a proof by name, the manifest among them. It holds no times and is the same for the same proof.
#[derive(Clone, Debug, Default)]
pub struct Certificate {
    contexts: usize,
    files: BTreeMap<String, String>,
    /// The file of each query: one that differs in names only is not written again.
    queries: HashMap<String, String>,
    manifest: String,
}

impl Certificate {
    /// An empty certificate.
    pub fn new() -> Self {
        Self { contexts: 0, files: BTreeMap::new(), queries: HashMap::new(), manifest: "file\trule\tgoal\n".to_owned() }
    }

    /// Adds the steps of a context; its number here and `name` begin its file names.
    pub fn add(&mut self, name: &str, context: &Context) -> Result<(), EncodeError> {
        self.add_steps(name, context.steps())
    }

    /// Adds the steps of a context that is gone.
    pub fn add_steps(&mut self, name: &str, steps: &[Step]) -> Result<(), EncodeError> {
        self.contexts += 1;
        self.steps(&format!("{:04}-{}", self.contexts, file_name(name)), steps)
    }

    /// All files with their texts, the manifest included, in the order of the names.
    pub fn files(&self) -> impl Iterator<Item = (&str, &str)> {
        let files = self.files.iter().map(|(name, text)| (name.as_str(), text.as_str()));
        std::iter::once((MANIFEST, self.manifest.as_str())).chain(files)
    }

    /// Writes all files into `folder`, which is made if need be.
    pub fn write(&self, folder: &Path) -> io::Result<()> {
        fs::create_dir_all(folder)?;
        self.files().try_for_each(|(name, text)| fs::write(folder.join(name), text))
    }

    fn steps(&mut self, name: &str, steps: &[Step]) -> Result<(), EncodeError> {
        for (position, step) in steps.iter().enumerate().filter(|(_, step)| step.shown) {
            let file = format!("{name}-{position:04}");
            match &step.rule {
                Rule::Premise(reason) => self.line("-", &format!("premise: {reason}"), &step.goal),
                Rule::Given => self.file(&file, "given", &step.using, &step.goal, Encoding::Abstract)?,
                Rule::Solver(encoding, _) => {
                    let rule = match encoding {
                        Encoding::Opaque => "derived, opaque",
                        Encoding::Abstract => "derived, abstract",
                        Encoding::Exact => "derived, exact",
                        Encoding::Bits(_) => "derived, bit-vectors",
                    };
                    self.file(&file, rule, &step.using, &step.goal, *encoding)?;
                }
                Rule::Theorem(theorem, values) => self.instance(&file, step, theorem, values)?,
                Rule::Discharge(inner) => {
                    self.steps(&format!("{file}-fork"), inner)?;
                    self.line("-", "discharge", &step.goal);
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
    ) -> Result<(), EncodeError> {
        let lemma = format!("lemma-{}", file_name(theorem.name()));
        let first = format!("{lemma}-");
        if !self.files.keys().any(|known| known.starts_with(&first)) {
            self.steps(&lemma, theorem.steps())?;
        }
        let hypotheses = Prop::all(theorem.hypotheses().iter().map(|prop| values.prop(prop)));
        let mut using = step.using.clone();
        using.push(hypotheses.implies(values.prop(theorem.conclusion())));
        let values: Vec<String> = values.iter().map(|(symbol, term)| format!("{symbol} := {term}")).collect();
        let rule = format!("{lemma} with {}", values.join(", "));
        self.file(file, &rule, &using, &step.goal, Encoding::Abstract)
    }

    fn file(
        &mut self,
        file: &str,
        rule: &str,
        using: &[Prop],
        goal: &Prop,
        encoding: Encoding,
    ) -> Result<(), EncodeError> {
        let query = encode::encode(using, goal, encoding)?;
        let mut title = format!("{rule}\ngoal: {goal}");
        for fact in using {
            title.push_str("\nfrom: ");
            title.push_str(&fact.to_string());
        }
        let file = format!("{file}.smt2");
        let known = self.queries.entry(smtlib::canonical_text(&query)).or_insert_with(|| file.clone()).clone();
        self.line(&known, rule, goal);
        if known == file {
            self.files.insert(file, smtlib::standalone(&query, &title));
        }
        Ok(())
    }

    fn line(&mut self, file: &str, rule: &str, goal: &Prop) {
        let clean = |text: String| text.replace(['\t', '\n', '\r'], " ");
        let line = [file.to_owned(), clean(rule.to_owned()), clean(goal.to_string())].join("\t");
        self.manifest.push_str(&line);
        self.manifest.push('\n');
    }
}

/// `name` with what file systems dislike replaced.
fn file_name(name: &str) -> String {
    let plain = |letter: char| if letter.is_ascii_alphanumeric() || letter == '-' { letter } else { '_' };
    name.chars().map(plain).collect()
}
