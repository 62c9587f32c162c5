//! Writes the certificate of every verdict on a random map or program, and asks Z3 again about each file of it, as text.
//!
//! The answers have to be those that the certificate expects. A file that leaves out a fact or a definition, a step whose
//! goal is not what was proved, and a text that Z3's own parser understands differently are found.

use std::time::Duration;

use arbitrary::Unstructured;
use serde::{Deserialize, Serialize};
use tilewright_ir::{PrimFunc, validate};
use tilewright_verify::certificate::Certificate;
use tilewright_verify::solver::Budget;
use tilewright_verify::solver::text::{TextAnswer, answer};
use tilewright_verify::{Config as JudgeConfig, Judge, MapClaim, Obligation, Report};

use super::judge_maps::Question;
use super::judge_programs::JudgedCase;
use crate::case::Case;
use crate::chain::{Chain, ChainLink};
use crate::config::Config;
use crate::mutate::mutated_program;
use crate::oracle::{Environment, Failure, Oracle, Outcome, Tally};
use tilewright_algebra as algebra;
use tilewright_compiler::passes::{DEFAULT_PIPELINE, pass_by_name};

/// Z3's budget per question, of the judge and of the check.
const RLIMIT: u32 = 100_000;
/// Z3's time limit per question, a safety net beside the budget.
const TIMEOUT: Duration = Duration::from_secs(2);
/// Files of a case that are checked at most.
const FILES: usize = 24;

/// Something that the judge decides.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Claim {
    /// An index map with its inverse.
    Map(Question),
    /// A program, its passes, and its passes with a mistake.
    Program(JudgedCase),
}

impl Case for Claim {
    /// Draws a map in three cases out of four, because programs take longer.
    fn draw(u: &mut Unstructured<'_>, config: &Config) -> arbitrary::Result<Self> {
        if u.ratio(3, 4)? {
            Ok(Self::Map(Question::draw(u, config)?))
        } else {
            let mut case = JudgedCase::draw(u, config)?;
            case.changes.truncate(1);
            Ok(Self::Program(case))
        }
    }

    fn simpler(&self) -> Vec<Self> {
        match self {
            Self::Map(question) => question.simpler().into_iter().map(Self::Map).collect(),
            Self::Program(case) => case.simpler().into_iter().map(Self::Program).collect(),
        }
    }

    fn features(&self) -> Vec<String> {
        match self {
            Self::Map(question) => question.features(),
            Self::Program(case) => case.features(),
        }
    }

    fn text(&self) -> String {
        match self {
            Self::Map(question) => question.text(),
            Self::Program(case) => case.text(),
        }
    }

    fn pinned(&self) -> Option<Self> {
        match self {
            Self::Map(_) => None,
            Self::Program(case) => case.pinned().map(Self::Program),
        }
    }
}

impl Claim {
    /// The reports of one judge about everything in the case, in an order that does not depend on the judge.
    ///
    /// # Errors
    /// The case cannot be built.
    pub(super) fn judged(&self, judge: &Judge) -> Result<Vec<Vec<Report>>, String> {
        match self {
            Self::Map(question) => {
                let built = question.map.build()?;
                let (predicate, inverse) = (question.predicate(&built), question.claimed_inverse(&built));
                let digits = algebra::digit_certificate(&built.map, &built.shape, inverse.as_ref(), None, &[]);
                let claim = MapClaim {
                    inverse: inverse.as_ref(),
                    digits: digits.as_ref(),
                    predicate: predicate.as_ref(),
                    ..MapClaim::new(&built.map, &built.shape)
                };
                Ok(vec![judge.check_map(claim)])
            }
            Self::Program(case) => {
                let built = case.program.build()?;
                let chain = Chain::new(ChainLink::first(built.func.clone(), built.symbols.clone()))
                    .map_err(|_| "no chain".to_owned())?;
                let mut found = vec![judge.check_program(&built.func)];
                for link in &chain.links {
                    found.extend(self.passes_of(judge, &link.func));
                }
                Ok(found)
            }
        }
    }

    /// The reports about the pass that applies to a program, right and with a mistake.
    fn passes_of(&self, judge: &Judge, func: &PrimFunc) -> Vec<Vec<Report>> {
        let Self::Program(case) = self else { return Vec::new() };
        let next = DEFAULT_PIPELINE.iter().filter_map(|name| pass_by_name(name).ok()).find(|pass| (pass.wanted)(func));
        let Some(after) = next.and_then(|pass| (pass.run)(func).ok()) else { return Vec::new() };
        let mut found = vec![judge.check_pass(func, &after.func, &after.evidence)];
        for change in &case.changes {
            let wrong = mutated_program(&after.func, *change);
            if validate(&wrong).is_ok() {
                found.push(judge.check_pass(func, &wrong, &after.evidence));
            }
        }
        found
    }
}

/// The oracle `recheck`; see the module.
#[derive(Debug)]
pub struct Recheck {
    judge: Judge,
}

impl Recheck {
    /// Creates the oracle with a judge that records.
    ///
    /// # Errors
    /// No suitable solver is available.
    pub fn new(_: &Environment) -> Result<Self, String> {
        let config = JudgeConfig { threads: 1, rlimit: RLIMIT, timeout: TIMEOUT, ..JudgeConfig::default() };
        Ok(Self {
            judge: Judge::new(config, tilewright_search::strategies()).map_err(|error| error.to_string())?.recording(),
        })
    }
}

/// Asks Z3 about the files of a certificate. `expected` has the answer that each has to have.
fn ask(certificate: &Certificate, expected: &[(String, &'static str)], tally: &mut Tally) -> Option<Outcome> {
    let timeout_ms = u32::try_from(TIMEOUT.as_millis()).unwrap_or(u32::MAX);
    let budget = Budget { rlimit: 10 * RLIMIT, timeout_ms, ..Budget::default() };
    for (file, text) in certificate.files().take(FILES) {
        let Some((_, wanted)) = expected.iter().find(|(name, _)| name == file) else {
            return Some(Failure::outcome("a file is in no line of its certificate", format!("{file}\n{text}")));
        };
        let got = match answer(text, budget) {
            Ok(TextAnswer::Sat) => "sat",
            Ok(TextAnswer::Unsat) => "unsat",
            Ok(TextAnswer::Unknown(_)) => {
                tally.count("files left open", 1);
                continue;
            }
            Err(error) => {
                return Some(Failure::outcome("a file of a certificate cannot be read", format!("{error}\n{text}")));
            }
        };
        tally.count("files checked", 1);
        if got != *wanted {
            let what = format!("a file of a certificate is {got}, and {wanted} is expected");
            return Some(Failure::outcome(what, format!("{file}\n{text}")));
        }
    }
    None
}

/// The reports, each with whether its certificate states it. That padding is what the map does not reach is stated through
/// the claimed inverse, so where that one is wrong the statement is false although the padding is right.
fn with_statement(reports: &[Report]) -> impl Iterator<Item = (&Report, bool)> {
    let is_open = |report: &&Report| report.obligation == Obligation::Inverse && !report.verdict.is_proved();
    let is_wrong = reports.iter().any(|report| is_open(&report));
    reports.iter().map(move |report| (report, !(is_wrong && report.obligation == Obligation::Padding)))
}

impl Oracle for Recheck {
    type Case = Claim;

    const NAME: &'static str = "recheck";

    fn check(&mut self, case: &Claim, tally: &mut Tally) -> Outcome {
        let groups = match case.judged(&self.judge) {
            Ok(groups) => groups,
            Err(why) => return Outcome::Invalid(why),
        };
        let mut certificate = Certificate::new();
        let mut expected: Vec<(String, &'static str)> = Vec::new();
        for (report, is_stated) in groups.iter().flat_map(|reports| with_statement(reports)) {
            if !is_stated {
                tally.count("padding beside a wrong inverse", 1);
                continue;
            }
            match certificate.add(&report.obligation.to_string(), &report.proof) {
                Ok(lines) => expected.extend(lines.into_iter().filter_map(|line| Some((line.file?, line.expected)))),
                Err(error) => return Outcome::Undecided(error.to_string()),
            }
        }
        for lemma in certificate.lemmas() {
            expected.extend(lemma.lines.iter().filter_map(|line| Some((line.file.clone()?, line.expected))));
        }
        ask(&certificate, &expected, tally).unwrap_or(Outcome::Held)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilewright_ir::{Expr, IndexMap, Var};

    #[test]
    fn another_answer_than_expected_is_noticed() {
        let oracle = Recheck::new(&Environment::default()).unwrap();
        let (index, extent) = (Var::index("i"), Var::index("n"));
        let map = IndexMap::new(vec![index.clone()], vec![Expr::from(&extent)], vec![Expr::from(&index)], Vec::new());
        let (map, shape) = (map.unwrap(), [Expr::from(&extent)]);
        let reports = oracle.judge.check_map(MapClaim::new(&map, &shape));
        let mut certificate = Certificate::new();
        let mut expected = Vec::new();
        for report in &reports {
            let lines = certificate.add("map", &report.proof).unwrap();
            expected.extend(lines.into_iter().filter_map(|line| Some((line.file?, line.expected))));
        }
        for lemma in certificate.lemmas() {
            expected.extend(lemma.lines.iter().filter_map(|line| Some((line.file.clone()?, line.expected))));
        }
        assert!(certificate.files().next().is_some());
        assert_eq!(ask(&certificate, &expected, &mut Tally::default()), None);
        let wrong: Vec<_> = expected.iter().map(|(file, _)| (file.clone(), "sat")).collect();
        assert!(matches!(ask(&certificate, &wrong, &mut Tally::default()), Some(Outcome::Failed(_))));
        assert!(matches!(ask(&certificate, &[], &mut Tally::default()), Some(Outcome::Failed(_))));
    }
}
