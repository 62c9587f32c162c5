//! Lowers TE programs with random schedules, judges the lowering, and runs it.
//!
//! | checked | a failure is |
//! |---|---|
//! | the program that was lowered | it leaves something else than the definition, traps, or has a race |
//! | the verdicts on the lowering | one is refuted, or an internal error |
//! | the program with a mistake | the judge proves it although it leaves something else than the definition |
//! | the program after each pass | it leaves something else than the one before |

use std::time::Duration;

use tilewright_compiler::te::{Lowered, evaluate};
use tilewright_interp::{Arguments, Config, Observers, RunError, run, run_definition};
use tilewright_ir::{Bindings, PrimFunc, validate};
use tilewright_verify::{Config as JudgeConfig, Judge, Verdict};

use crate::chain::{Chain, ChainLink, differences, error_kind, interpreter_config, written_params};
use crate::inputs::arguments;
use crate::mutate::{mutated_program, reordered_program};
use crate::oracle::{Environment, Failure, Oracle, Outcome, Tally};
use crate::te::Scheduled;

/// Z3's budget per question.
const RLIMIT: u32 = 100_000;
/// Mistakes per case.
const MISTAKES: u64 = 2;

/// The oracle `schedules`; see the module.
#[derive(Debug)]
pub struct Schedules {
    judge: Judge,
}

impl Schedules {
    /// Creates the oracle with a judge of its own on one thread.
    ///
    /// # Errors
    /// No suitable solver is available.
    pub fn new(_: &Environment) -> Result<Self, String> {
        let config =
            JudgeConfig { threads: 1, rlimit: RLIMIT, timeout: Duration::from_secs(1), ..JudgeConfig::default() };
        Ok(Self { judge: Judge::new(config, tilewright_search::strategies()).map_err(|error| error.to_string())? })
    }

    /// Judges the lowering; the text names the first obligation that is open, if one is.
    fn judged(&self, lowered: &Lowered, tally: &mut Tally) -> Result<Option<String>, Outcome> {
        let mut reports = self.judge.check_definition(&lowered.definition);
        reports.extend(self.judge.check_lowering(&lowered.definition, &lowered.func, &lowered.evidence));
        let mut open = None;
        for report in &reports {
            tally.count(&format!("{} {}", report.obligation, report.verdict.word()), 1);
            let wrong = |what: String| Failure::outcome(what, format!("{}: {}", report.subject, report.verdict));
            match &report.verdict {
                _ if report.is_internal() => return Err(wrong("the judge contradicts itself".into())),
                Verdict::Refuted(_) => return Err(wrong(format!("{} of a lowering is refuted", report.obligation))),
                Verdict::Proved(_) => {}
                verdict => drop(open.get_or_insert(format!("{} {}", report.obligation, verdict.word()))),
            }
        }
        Ok(open)
    }

    /// Judges the program with a mistake: if it leaves something else, not everything may be proved.
    fn mistake(&self, lowered: &Lowered, seed: u64, expected: &Runs, tally: &mut Tally) -> Result<(), Outcome> {
        // Wrong orders are rare among all changes, and the judge has a statement about order alone.
        let wrong = if seed.is_multiple_of(3) { reordered_program } else { mutated_program }(&lowered.func, seed);
        if validate(&wrong).is_err() {
            return Ok(());
        }
        let how = match expected.of(&wrong, &interpreter_config()) {
            Ok(left) => {
                let Some(how) = differences(&lowered.func, &expected.outputs, &left).1 else {
                    tally.count("mistakes that change nothing", 1);
                    return Ok(());
                };
                how
            }
            Err(error) => error_kind(&error),
        };
        let reports = self.judge.check_lowering(&lowered.definition, &wrong, &lowered.evidence);
        tally.count("mistakes judged", 1);
        if reports.iter().all(|report| report.verdict.is_proved()) {
            let text = format!("{how}\n{}", tilewright_script::print_func(&wrong));
            return Err(Failure::outcome("a wrong lowering is proved", text));
        }
        Ok(())
    }
}

/// The arguments of a program and what its definition leaves.
struct Runs {
    inputs: Arguments,
    is_written: Vec<bool>,
    outputs: Vec<Option<tilewright_interp::Tensor>>,
}

impl Runs {
    /// Runs the definition.
    fn of_definition(lowered: &Lowered, seed: u64) -> Result<Self, Outcome> {
        let inputs = arguments(&lowered.func, &Bindings::new(), seed).map_err(Outcome::Invalid)?;
        let is_written = written_params(&lowered.func);
        let mut left = inputs.clone();
        run_definition(&lowered.definition, &mut left, &interpreter_config())
            .map_err(|error| Failure::outcome("a definition stops", error.to_string()))?;
        Ok(Self { outputs: outputs(&left, &is_written), inputs, is_written })
    }

    /// What a program leaves on the same arguments.
    fn of(&self, func: &PrimFunc, how: &Config) -> Result<Vec<Option<tilewright_interp::Tensor>>, RunError> {
        let valid = validate(func).map_err(|mut found| RunError::Input(found.swap_remove(0)))?;
        let mut left = self.inputs.clone();
        run(valid, &mut left, how)?;
        Ok(outputs(&left, &self.is_written))
    }
}

/// The tensors that were written.
fn outputs(left: &Arguments, is_written: &[bool]) -> Vec<Option<tilewright_interp::Tensor>> {
    let one = |(param, is_written): (usize, &bool)| left.tensor(param).filter(|_| *is_written).cloned();
    is_written.iter().enumerate().map(one).collect()
}

impl Oracle for Schedules {
    type Case = Scheduled;

    const NAME: &'static str = "schedules";

    fn check(&mut self, case: &Scheduled, tally: &mut Tally) -> Outcome {
        let program = tilewright_script::te::read(&case.source()).and_then(|program| evaluate(&program, None));
        let lowered = match program {
            Ok(mut all) if all.len() == 1 => all.swap_remove(0),
            Ok(_) => return Outcome::Invalid("not one function".into()),
            Err(found) => {
                return Outcome::Invalid(found.first().map_or("refused", |found| found.code).to_owned());
            }
        };
        match self.look(case, &lowered, tally) {
            Ok(None) => Outcome::Held,
            Ok(Some(open)) => Outcome::Undecided(open),
            Err(outcome) => outcome,
        }
    }
}

impl Schedules {
    /// Checks a program that was lowered; the text names the first obligation that is open.
    fn look(&self, case: &Scheduled, lowered: &Lowered, tally: &mut Tally) -> Result<Option<String>, Outcome> {
        let expected = Runs::of_definition(lowered, case.seed)?;
        let watched = Config { observers: Observers { defined: true, race: true }, ..interpreter_config() };
        for (name, how) in [("", interpreter_config()), (" with the race check", watched)] {
            let left = expected.of(&lowered.func, &how).map_err(|error| {
                Failure::outcome(format!("a program that was lowered stops{name}"), error.to_string())
            })?;
            let (lanes, difference) = differences(&lowered.func, &expected.outputs, &left);
            tally.count("values compared", lanes);
            if let Some(how) = difference {
                return Err(Failure::outcome(format!("the lowering changes the result{name}"), how));
            }
        }
        let open = self.judged(lowered, tally)?;
        for number in 0..MISTAKES {
            self.mistake(lowered, case.seed.wrapping_mul(7).wrapping_add(number), &expected, tally)?;
        }
        let chain = Chain::new(ChainLink::first(lowered.func.clone(), Bindings::new()))?;
        super::passes::same(&chain, &expected.inputs, tally)?;
        Ok(open)
    }
}
