//! Compares what is proved of definitions with runs in the interpreter.
//!
//! | checked | a failure is |
//! |---|---|
//! | a pair of programs that combine values in different ways | proved, and the runs differ |
//! | a pair without a mistake, of integers | the runs differ, which is a mistake of the generator |
//! | a program and the nests of its definition | proved, and the runs differ |
//! | the same with a definition that was bent | proved, and the runs differ |

use std::time::Duration;

use tilewright_compiler::flow;
use tilewright_compiler::pipeline::pair;
use tilewright_ir::{BinaryOp, Comparison, Definition, Evidence, Expr, Lifted, Lifting, PrimFunc, ReduceOp, StageBody};
use tilewright_verify::definitions::program_of;
use tilewright_verify::{Config as Budget, Judge, Report};

use super::judge_pairs::observe;
use crate::oracle::{Environment, Failure, Oracle, Outcome, Tally};
use crate::reductions::{Bend, Reduction};

/// Z3's budget per question.
const RLIMIT: u32 = 200_000;
/// Z3's time limit per question, a safety net beside the budget.
const TIMEOUT: Duration = Duration::from_secs(1);

/// The oracle `lifting`; see the module.
#[derive(Debug)]
pub struct Definitions {
    judge: Judge,
}

impl Definitions {
    /// Creates the oracle with a judge of its own on one thread.
    ///
    /// # Errors
    /// No suitable solver is available.
    pub fn new(_: &Environment) -> Result<Self, String> {
        let budget = Budget { threads: 1, timeout: TIMEOUT, rlimit: RLIMIT, ..Budget::default() };
        Ok(Self { judge: Judge::new(budget, tilewright_search::strategies()).map_err(|error| error.to_string())? })
    }

    /// Whether a program is proved to have the values of the nests of a definition, which are given.
    fn is_tied(&self, func: &PrimFunc, nests: &PrimFunc) -> bool {
        let Ok(claim) = flow::find(func, nests, &Evidence::default()) else { return false };
        let evidence = Evidence { comparison: Comparison::Values(claim), ..Evidence::default() };
        is_proved(&self.judge.check_pass(func, nests, &evidence))
    }

    /// Compares a program with the definition that was lifted from it: if they are proved equal, runs of both agree.
    fn definition(&self, func: &PrimFunc, lifted: &Lifted, seed: u64, tally: &mut Tally) -> Result<(), Outcome> {
        let nests = nests(func, lifted).map_err(|why| Failure::outcome("a definition has no nests", why))?;
        let seen = observe(func, &nests, seed);
        match (self.is_tied(func, &nests), seen.difference) {
            (true, Some(how)) => {
                let detail = format!("{how}\n{}\n{}", text(func), text(&nests));
                Err(Failure::outcome("a program is proved to compute a definition, and does not", detail))
            }
            (true, None) => {
                tally.count("definitions proved", 1);
                Ok(())
            }
            (false, _) => {
                tally.count("definitions open", 1);
                Ok(())
            }
        }
    }

    /// A definition that was bent, against the program: it is not proved, unless runs show no difference.
    fn bent(&self, func: &PrimFunc, lifted: &Lifted, case: &Reduction, tally: &mut Tally) -> Result<(), Outcome> {
        let Some(definition) = bent(&lifted.definition, case.bend) else { return Ok(()) };
        let other = Lifted { definition, ..lifted.clone() };
        let Ok(nests) = nests(func, &other) else { return Ok(()) };
        if tilewright_ir::validate(&nests).is_err() {
            return Ok(());
        }
        let seen = observe(func, &nests, case.seed);
        tally.count("definitions bent", 1);
        match seen.difference {
            Some(how) if self.is_tied(func, &nests) => {
                let detail = format!("{how}\n{}\n{}", text(func), text(&nests));
                Err(Failure::outcome("a program is proved to compute a definition that was bent", detail))
            }
            _ => Ok(()),
        }
    }
}

impl Oracle for Definitions {
    type Case = Reduction;

    const NAME: &'static str = "lifting";

    fn check(&mut self, case: &Reduction, tally: &mut Tally) -> Outcome {
        self.decide(case, tally).unwrap_or_else(|outcome| outcome)
    }
}

impl Definitions {
    fn decide(&self, case: &Reduction, tally: &mut Tally) -> Result<Outcome, Outcome> {
        let texts = case.texts();
        let [before, after] = [read(&texts[0])?, read(&texts[1])?];
        let seen = observe(&before, &after, case.seed);
        if let (None, false, Some(how)) = (case.mistake, case.floats, &seen.difference)
            && !case.differs()
        {
            let detail = format!("{how}\nbefore:\n{}\nafter:\n{}", texts[0], texts[1]);
            return Err(Failure::outcome("the generator calls programs equal that differ", detail));
        }
        let Some((after, evidence)) = pair::definitions_claim(&before, &after, false) else {
            return Ok(Outcome::Undecided("a program is not lifted".into()));
        };
        let Comparison::Definitions(claim) = &evidence.comparison else {
            return Ok(Outcome::Undecided("a program is not lifted".into()));
        };
        let Lifting { before: first, after: second, .. } = claim.as_ref();
        for (func, lifted) in [(&before, first), (&after, second)] {
            self.definition(func, lifted, case.seed, tally)?;
            self.bent(func, lifted, case, tally)?;
        }
        let is_proved = is_proved(&self.judge.check_pass(&before, &after, &evidence));
        match (is_proved, seen.difference) {
            (true, Some(how)) => {
                let detail = format!("{how}\nbefore:\n{}\nafter:\n{}", texts[0], texts[1]);
                Err(Failure::outcome("programs that differ are proved equal by their definitions", detail))
            }
            (true, None) => {
                tally.count("pairs proved", 1);
                Ok(Outcome::Held)
            }
            (false, Some(_)) => Ok(Outcome::Held),
            (false, None) => Ok(Outcome::Undecided("nothing is proved of programs that runs do not tell apart".into())),
        }
    }
}

fn is_proved(reports: &[Report]) -> bool {
    !reports.is_empty() && reports.iter().all(|report| report.verdict.is_proved())
}

fn text(func: &PrimFunc) -> String {
    tilewright_script::print_func(func)
}

fn read(text: &str) -> Result<PrimFunc, Outcome> {
    let invalid = |why: String| Outcome::Invalid(why.lines().next().unwrap_or_default().to_owned());
    let module = tilewright_script::read_module(text).map_err(|found| invalid(format!("{:?}", found.first())))?;
    module.funcs.into_iter().next().ok_or_else(|| invalid("no function".into()))
}

/// The nests of a definition, as a program with the parameters of a function that asserts nothing.
fn nests(func: &PrimFunc, lifted: &Lifted) -> Result<PrimFunc, String> {
    program_of(func, &[], &lifted.definition, &lifted.kept)
}

/// A definition with one change to its last reduction; none if there is no place for it.
fn bent(definition: &Definition, bend: Bend) -> Option<Definition> {
    let mut other = definition.clone();
    let last = other.stages.iter_mut().rev().find(|stage| matches!(stage.body, StageBody::Reduce { .. }))?;
    let StageBody::Reduce { op, axes, init, condition, source } = &mut last.body else { return None };
    match bend {
        Bend::Condition => drop(condition.take()?),
        Bend::Start => drop(init.take()?),
        Bend::Operator => *op = if *op == ReduceOp::Sum { ReduceOp::Max } else { ReduceOp::Sum },
        Bend::Source => *source = Expr::binary(BinaryOp::Add, source.clone(), source.clone()),
        Bend::Extent => {
            let axis = axes.last_mut()?;
            axis.extent = axis.extent.clone() - Expr::int(1);
        }
    }
    Some(other)
}

#[cfg(test)]
mod tests {
    use arbitrary::Unstructured;

    use super::*;
    use crate::bytes;
    use crate::case::Case;

    /// A case of a campaign.
    fn case(number: u64) -> Reduction {
        let bytes = bytes::of_case(1, Definitions::NAME, number);
        Reduction::draw(&mut Unstructured::new(&bytes), &crate::config::Config::default()).unwrap()
    }

    #[test]
    fn pairs_are_proved_bent_definitions_are_tried_and_nothing_fails() {
        let mut oracle = Definitions::new(&Environment::default()).unwrap();
        let mut tally = Tally::default();
        for number in 0..40 {
            let outcome = oracle.check(&case(number), &mut tally);
            assert!(!matches!(outcome, Outcome::Failed(_) | Outcome::Invalid(_)), "{outcome:?}");
            tally.outcome(&outcome);
        }
        let count = |what: &str| tally.counts.get(what).copied().unwrap_or_default();
        assert!(count("pairs proved") > 4, "{tally:?}");
        assert!(count("definitions proved") > 25 && count("definitions bent") > 15, "{tally:?}");
    }

    #[test]
    fn a_definition_that_is_not_what_a_program_computes_differs_in_a_run() {
        let texts = (0..99).map(case).find(|case| case.operator == crate::reductions::Operator::Sum).unwrap().texts();
        let func = read(&texts[0]).unwrap();
        let lifted =
            tilewright_compiler::lift::lift(&func, &[func.buffer_map[1].1.clone()], tilewright_verify::Side::Before)
                .unwrap();
        let other = Lifted { definition: bent(&lifted.definition, Bend::Source).unwrap(), ..lifted.clone() };
        assert!(observe(&func, &nests(&func, &lifted).unwrap(), 7).difference.is_none());
        assert!(observe(&func, &nests(&func, &other).unwrap(), 7).difference.is_some());
    }
}
