//! Compares two judges: the usual one, with a memo that lives as long as the oracle, and one that gives every goal to Z3
//! and may not enumerate points.
//!
//! | the first | the second | |
//! |---|---|---|
//! | proved | refuted, or vacuous | a failure, and the other way round |
//! | proved or refuted | undecided | counted |
//!
//! What rests on premises that contradict each other may be proved by neither: each case is also judged with an empty
//! axis, or with an assertion that never holds.

use std::time::Duration;

use arbitrary::Unstructured;
use serde::{Deserialize, Serialize};
use tilewright_ir::{Expr, IndexMap, PrimFunc, Stmt, StmtKind, validate};
use tilewright_verify::{Config as JudgeConfig, Judge, MapClaim, Report, Verdict};

use super::recheck::Claim;
use crate::case::Case;
use crate::config::Config;
use crate::oracle::{Environment, Failure, Oracle, Outcome, Tally};

/// Z3's budget per question.
const RLIMIT: u32 = 50_000;

/// A case: a claim.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Compared {
    /// What is judged.
    pub claim: Claim,
    /// The axis that is empty in the second round.
    pub empty: usize,
}

impl Case for Compared {
    fn draw(u: &mut Unstructured<'_>, config: &Config) -> arbitrary::Result<Self> {
        let empty = usize::from(u.int_in_range(0..=5u8)?);
        Ok(Self { claim: Claim::draw(u, config)?, empty })
    }

    fn simpler(&self) -> Vec<Self> {
        self.claim.simpler().into_iter().map(|claim| Self { claim, empty: self.empty }).collect()
    }

    fn features(&self) -> Vec<String> {
        self.claim.features()
    }

    fn text(&self) -> String {
        self.claim.text()
    }

    fn pinned(&self) -> Option<Self> {
        self.claim.pinned().map(|claim| Self { claim, empty: self.empty })
    }
}

/// The oracle `second_judge`; see the module.
#[derive(Debug)]
pub struct SecondJudge {
    first: Judge,
    second: Judge,
}

impl SecondJudge {
    /// Creates the oracle with two judges on one thread.
    ///
    /// # Errors
    /// No suitable solver is available.
    pub fn new(_: &Environment) -> Result<Self, String> {
        let config =
            JudgeConfig { threads: 1, rlimit: RLIMIT, timeout: Duration::from_secs(1), ..JudgeConfig::default() };
        let judge = |config| Judge::new(config, tilewright_search::strategies()).map_err(|error| error.to_string());
        Ok(Self { first: judge(config)?, second: judge(JudgeConfig { most_points: 0, memo: false, ..config })? })
    }
}

/// The subject of the report of a judge that cannot follow a program.
const ITSELF: &str = "the program against itself";

/// Compares the reports of the two judges on one claim.
fn compare(first: &[Report], second: &[Report], tally: &mut Tally) -> Option<Outcome> {
    // A judge that cannot follow a program in its time says that, and nothing else of the pass.
    let is_lost = |report: &Report| report.subject == ITSELF && !report.verdict.is_proved();
    if first.iter().chain(second).any(is_lost) {
        tally.count("a judge does not follow a program", 1);
        return None;
    }
    // What a judge leaves open in its time may lead it on to other claims about the same pass.
    let is_open = |report: &Report| matches!(report.verdict, Verdict::Unknown(_));
    if first.len() != second.len() && first.iter().chain(second).any(is_open) {
        tally.count("a judge goes another way", 1);
        return None;
    }
    if first.len() != second.len() {
        let text = format!("{} and {} reports", first.len(), second.len());
        return Some(Failure::outcome("two judges report different obligations", text));
    }
    for (one, two) in first.iter().zip(second) {
        let (obligation, verdicts) = (one.obligation, (&one.verdict, &two.verdict));
        if (obligation, &one.subject) != (two.obligation, &two.subject) {
            let text = format!("{obligation} {} and {} {}", one.subject, two.obligation, two.subject);
            return Some(Failure::outcome("two judges report different obligations", text));
        }
        let is_contradiction = match verdicts {
            (Verdict::Proved(_), Verdict::Refuted(_) | Verdict::Vacuous(_))
            | (Verdict::Refuted(_) | Verdict::Vacuous(_), Verdict::Proved(_))
            | (Verdict::Refuted(_), Verdict::Vacuous(_))
            | (Verdict::Vacuous(_), Verdict::Refuted(_)) => true,
            _ => one.is_internal() || two.is_internal(),
        };
        if is_contradiction {
            let what =
                format!("{obligation}: {} by one judge, {} by the other", one.verdict.word(), two.verdict.word());
            let text = format!("{}: {} [{}]; {} [{}]", one.subject, one.verdict, one.method, two.verdict, two.method);
            return Some(Failure::outcome(what, text));
        }
        let is_open = |verdict: &Verdict| matches!(verdict, Verdict::Unknown(_));
        let count = match (is_open(verdicts.0), is_open(verdicts.1)) {
            (false, false) => "verdicts compared",
            (false, true) => "verdicts that the second leaves open",
            (true, false) => "verdicts that the first leaves open",
            (true, true) => "verdicts that both leave open",
        };
        tally.count(count, 1);
    }
    None
}

/// The map on a domain with an empty axis.
fn emptied(map: &IndexMap, axis: usize) -> Option<IndexMap> {
    let mut domain = map.domain().to_vec();
    let n_axes = domain.len().max(1);
    *domain.get_mut(axis % n_axes)? = Expr::int(0);
    IndexMap::new(map.vars().to_vec(), domain, map.outputs().to_vec(), Vec::new()).ok()
}

/// The program after an assertion that never holds.
fn impossible(func: &PrimFunc) -> PrimFunc {
    let cond = Expr::int(1).lt(Expr::int(0));
    let assert = Stmt::new(StmtKind::Assert { cond, message: "never".into(), is_assumed: false });
    PrimFunc { body: Stmt::seq(vec![assert, func.body.clone()]), ..func.clone() }
}

impl SecondJudge {
    /// Judges a claim under premises that contradict each other: no judge may call anything proved.
    fn vacuous(&self, case: &Compared, tally: &mut Tally) -> Option<Outcome> {
        for (name, judge) in [("first", &self.first), ("second", &self.second)] {
            let reports = match &case.claim {
                Claim::Map(question) => {
                    let built = question.map.build().ok()?;
                    let map = emptied(&built.map, case.empty)?;
                    judge.check_map(MapClaim::new(&map, &built.shape))
                }
                Claim::Program(program) => {
                    let func = impossible(&program.program.build().ok()?.func);
                    validate(&func).ok()?;
                    judge.check_program(&func)
                }
            };
            tally.count("verdicts without an execution", reports.len() as u64);
            if let Some(report) = reports.iter().find(|report| report.verdict.is_proved()) {
                let what = format!("{} is proved by the {name} judge although nothing is executed", report.obligation);
                return Some(Failure::outcome(what, format!("{} [{}]", report.subject, report.method)));
            }
        }
        None
    }
}

impl Oracle for SecondJudge {
    type Case = Compared;

    const NAME: &'static str = "second_judge";

    fn check(&mut self, case: &Compared, tally: &mut Tally) -> Outcome {
        let (first, second) = match (case.claim.judged(&self.first), case.claim.judged(&self.second)) {
            (Ok(first), Ok(second)) => (first, second),
            (Err(why), _) | (_, Err(why)) => return Outcome::Invalid(why),
        };
        for (one, two) in first.iter().zip(&second) {
            if let Some(failed) = compare(one, two, tally) {
                return failed;
            }
        }
        self.vacuous(case, tally).unwrap_or(Outcome::Held)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilewright_ir::{Var, sabotage};
    use tilewright_verify::{Reason, ReasonKind};

    #[test]
    fn verdicts_that_contradict_each_other_are_noticed() {
        sabotage::switch(None);
        let oracle = SecondJudge::new(&Environment::default()).unwrap();
        let index = Var::index("i");
        let halves = vec![Expr::from(&index).floor_div(Expr::int(4)), Expr::from(&index).floor_mod(Expr::int(4))];
        let map = IndexMap::new(vec![index], vec![Expr::int(17)], halves, Vec::new()).unwrap();
        let shape = [Expr::int(5), Expr::int(4)];
        let reports = oracle.first.check_map(MapClaim::new(&map, &shape));
        let again = oracle.second.check_map(MapClaim::new(&map, &shape));
        assert_eq!(compare(&reports, &again, &mut Tally::default()), None);
        let mut other = again.clone();
        other[0].verdict = Verdict::Vacuous(Reason::new(ReasonKind::Empty, "nothing"));
        assert!(matches!(compare(&reports, &other, &mut Tally::default()), Some(Outcome::Failed(_))));
        other.pop();
        assert!(matches!(compare(&reports, &other, &mut Tally::default()), Some(Outcome::Failed(_))));
    }
}
