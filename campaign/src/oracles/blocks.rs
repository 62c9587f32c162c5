//! Compares the judge's verdicts on what blocks of S-TIR say of themselves with every iteration, and the program, lowered and not,
//! with what the block means.

use tilewright_compiler::blocks::inverses;
use tilewright_compiler::passes::lower_blocks;
use tilewright_interp::{Argument, Arguments, Tensor, run};
use tilewright_ir::{PrimFunc, Scalar, ScalarType, validate};
use tilewright_script::read_module;
use tilewright_verify::{Judge, Obligation, Report, Verdict};

use crate::blocked::{Blocked, CELLS, Truth};
use crate::case::Case;
use crate::chain::interpreter_config;
use crate::oracle::{Environment, Failure, Oracle, Outcome, Tally};

/// The oracle `blocks`; see the module.
#[derive(Debug)]
pub struct Blocks {
    judge: Judge,
}

impl Blocks {
    /// Creates the oracle.
    ///
    /// # Errors
    /// There is no solver.
    pub fn new(_: &Environment) -> Result<Self, String> {
        let judge = Judge::new(tilewright_verify::Config::default(), tilewright_search::strategies());
        Ok(Self { judge: judge.map_err(|error| error.to_string())? })
    }
}

impl Oracle for Blocks {
    type Case = Blocked;

    const NAME: &'static str = "blocks";

    fn check(&mut self, case: &Blocked, tally: &mut Tally) -> Outcome {
        let func = match read_module(&case.text()) {
            Ok(mut module) if module.funcs.len() == 1 => module.funcs.swap_remove(0),
            other => return Failure::outcome("a block is not read", format!("{other:?}")),
        };
        let truth = case.truth();
        // Memory of the function begins with no values, which the block may read.
        if case.reader.is_none() {
            let Some(found) = left(&func) else { return Outcome::Invalid("the program traps".into()) };
            if let Some(failed) = differs("the program", &found, &truth) {
                return failed;
            }
        }
        let is_written =
            |report: &&Report| report.obligation == Obligation::Region && report.subject.contains("written");
        let reports = self.judge.check_blocks(&func, &inverses(&func));
        // The first store is that of the initialisation.
        let initial =
            reports.iter().find(is_written).filter(|_| case.has_init).map(|report| (report, truth.initialised));
        for report in &reports {
            let truth = match initial {
                Some((first, holds)) if std::ptr::eq(first, report) => {
                    Truth { regions: [truth.regions[0], holds], ..truth.clone() }
                }
                _ => truth.clone(),
            };
            if let Some(failed) = contradicts(report, &truth, tally) {
                return failed;
            }
        }
        // A question that is not asked has no wrong answer. Without an initialisation none has to come first.
        let init = truth.init || !case.has_init;
        let all = [truth.updated, truth.once_alone, truth.all, truth.whole, truth.upwards, init];
        let holds = truth.domains.iter().chain(&truth.regions).chain(&all);
        if reports.iter().all(|report| report.verdict.is_proved()) && !holds.into_iter().all(|holds| *holds) {
            return Failure::outcome("a false claim of a block is not asked about", format!("{truth:?}"));
        }
        let Ok(lowered) = lower_blocks(&func) else {
            return Failure::outcome("a block is not lowered", case.text());
        };
        for report in self.judge.check_pass(&func, &lowered.func, &lowered.evidence) {
            match report.verdict {
                Verdict::Proved(_) => {}
                // A run in order does not show races.
                _ if report.obligation == Obligation::Race && case.parallel.is_some() => {
                    return Outcome::Invalid("the program may race".into());
                }
                other => return Failure::outcome("the lowering is not proved", format!("{}: {other}", report.subject)),
            }
        }
        if case.reader.is_some() {
            return Outcome::Held;
        }
        let Some(found) = left(&lowered.func) else {
            return Failure::outcome("the lowered program traps", case.text());
        };
        differs("the lowered program", &found, &truth).unwrap_or(Outcome::Held)
    }
}

/// Runs the program and returns the elements of `C` afterwards; `None` if it traps.
fn left(func: &PrimFunc) -> Option<Vec<i64>> {
    let valid = validate(func).ok()?;
    let size = usize::try_from(CELLS).ok()?;
    let tensor = |value: &dyn Fn(usize) -> i128| {
        let mut tensor = Tensor::undefined(ScalarType::Int32, &[size.try_into().ok()?]).ok()?;
        (0..size).for_each(|at| tensor.set(at, Scalar::Int(value(at))));
        Some(tensor)
    };
    let mut arguments = Arguments::tensors([tensor(&|at| i128::try_from(at).unwrap_or(0))?, tensor(&|_| 1)?]);
    run(valid, &mut arguments, &interpreter_config()).ok()?;
    let Some(Argument::Tensor(found)) = arguments.params.get(1) else { return None };
    let value = |at| match found.get(at) {
        Some(Scalar::Int(value)) => i64::try_from(value).ok(),
        _ => None,
    };
    (0..size).map(value).collect()
}

/// A failure if a run leaves something else than the block means.
fn differs(who: &str, found: &[i64], truth: &Truth) -> Option<Outcome> {
    let at = found.iter().zip(&truth.result).position(|(one, two)| one != two)?;
    let text = format!("C[{at}] is {}, not {}", found[at], truth.result[at]);
    Some(Failure::outcome(format!("{who} does not mean the block"), text))
}

/// A failure if a verdict contradicts what every iteration shows.
fn contradicts(report: &Report, truth: &Truth, tally: &mut Tally) -> Option<Outcome> {
    let holds = match report.obligation {
        Obligation::Bounds => truth.domains[usize::from(report.subject.starts_with("axis r"))],
        Obligation::Region if report.subject.starts_with('A') => truth.regions[0],
        Obligation::Region if report.subject.contains("written") => truth.regions[1],
        Obligation::Region => truth.updated,
        Obligation::Iteration if report.subject.starts_with("reduced") => truth.all,
        Obligation::Iteration if report.subject.starts_with("domain") => truth.whole,
        // An instance that runs again, in a loop outside of those that count the reduced axis, is a reason for doubt and no refutation.
        Obligation::Iteration if matches!(report.verdict, Verdict::Refuted(_)) => truth.once,
        Obligation::Iteration => truth.once_alone,
        Obligation::Order if report.subject.starts_with("scanned") => truth.upwards,
        Obligation::Order => truth.init,
        _ => return Some(Failure::outcome("an obligation that no block has", report.subject.clone())),
    };
    let text = || format!("{} {}: {}", report.obligation, report.subject, report.verdict);
    match (&report.verdict, holds) {
        (Verdict::Proved(_), false) => Some(Failure::outcome("a false claim of a block is proved", text())),
        (Verdict::Refuted(_), true) => Some(Failure::outcome("a true claim of a block is refuted", text())),
        (verdict, _) => {
            let what = match verdict {
                Verdict::Proved(_) => "claims proved",
                Verdict::Refuted(_) => "claims refuted",
                _ if holds => "true claims open",
                _ => "false claims open",
            };
            tally.count(what, 1);
            None
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may fail")]

    use arbitrary::Unstructured;

    use super::*;
    use crate::config::Config;

    /// Cases from bytes that a fixed generator makes.
    fn cases() -> impl Iterator<Item = Blocked> {
        (0_u64..150).map(|seed| {
            let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
            let mut next = || {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state >> 56).to_le_bytes()[0]
            };
            let bytes: Vec<u8> = (0..256).map(|_| next()).collect();
            Blocked::draw(&mut Unstructured::new(&bytes), &Config::default()).unwrap()
        })
    }

    #[test]
    fn claims_are_proved_refuted_and_never_contradict_every_iteration() {
        let mut oracle = Blocks::new(&Environment::default()).unwrap();
        let mut tally = Tally::default();
        let mut n_invalid = 0;
        for case in cases() {
            match oracle.check(&case, &mut tally) {
                Outcome::Held => {}
                Outcome::Invalid(_) => n_invalid += 1,
                other => panic!("{other:?}: {}", case.text()),
            }
        }
        assert!(n_invalid < 50, "{n_invalid} of 150 cases");
        let count = |what: &str| tally.counts.get(what).copied().unwrap_or(0);
        assert!(count("claims proved") > 200 && count("claims refuted") > 100, "{:?}", tally.counts);
        assert!(count("true claims open") * 5 < count("claims proved"), "{:?}", tally.counts);
    }

    #[test]
    fn a_wrong_truth_is_noticed() {
        let oracle = Blocks::new(&Environment::default()).unwrap();
        let (mut noticed, mut tried) = (0, 0);
        for case in cases() {
            let func = read_module(&case.text()).unwrap().funcs.swap_remove(0);
            let truth = case.truth();
            let not = |holds: [bool; 2]| holds.map(|holds| !holds);
            let wrong = Truth {
                domains: not(truth.domains),
                regions: not(truth.regions),
                initialised: !truth.initialised,
                updated: !truth.updated,
                once: !truth.once,
                once_alone: !truth.once_alone,
                all: !truth.all,
                whole: !truth.whole,
                upwards: !truth.upwards,
                init: !truth.init,
                result: truth.result.iter().map(|value| value + 1).collect(),
            };
            // Memory of the function begins with no values, and iterations that run at once may race.
            let Some(found) = left(&func) else { continue };
            tried += 1;
            assert!(differs("", &found, &wrong).is_some());
            let reports = oracle.judge.check_blocks(&func, &inverses(&func));
            noticed +=
                usize::from(reports.iter().any(|report| contradicts(report, &wrong, &mut Tally::default()).is_some()));
        }
        assert!(tried >= 40, "{tried} cases");
        assert_eq!(noticed, tried);
    }
}
