//! Applies random schedules to programs with blocks, judges each step, and runs the programs before and after it.
//!
//! | checked | a failure is |
//! |---|---|
//! | the program after a step | it is not valid or not what was asked for; it leaves something else, traps or has a race, and the step is proved, or should be right |
//! | the verdicts on a step, and on what its blocks say | one is refuted although runs agree; an internal error |
//! | a step with a mistake | the judge proves it although it leaves something else |
//! | the program without blocks | it leaves something else |
//!
//! A step may ask for what is wrong, such as a loop of a sum whose iterations run at once: then it must not be proved, and the
//! schedule ends.

use std::time::Duration;

use tilewright_compiler::block_schedule::BlockSchedule;
use tilewright_compiler::blocks::inverses;
use tilewright_compiler::passes::lower_blocks;
use tilewright_interp::{Arguments, Config, Observers};
use tilewright_ir::{Bindings, Evidence, PrimFunc, validate};
use tilewright_script::{print_func, read_module};
use tilewright_verify::{Config as JudgeConfig, Judge, Report, Verdict};

use crate::chain::{ChainLink, Outputs, PaddingFill, differences, error_kind, interpreter_config, written_params};
use crate::inputs::arguments;
use crate::mutate::mutated_program;
use crate::oracle::{Environment, Failure, Oracle, Outcome, Tally};
use crate::scheduled_blocks::{ScheduledBlocks, Step};

/// Z3's budget per question.
const RLIMIT: u32 = 100_000;

/// Extents from which on a buffer does not fit into the memory of a run.
const BEYOND: i128 = 1 << 24;

/// The oracle `block_schedules`; see the module.
#[derive(Debug)]
pub struct BlockSchedules {
    judge: Judge,
}

impl BlockSchedules {
    /// Creates the oracle with a judge of its own on one thread.
    ///
    /// # Errors
    /// No suitable solver is available.
    pub fn new(_: &Environment) -> Result<Self, String> {
        let config =
            JudgeConfig { threads: 1, rlimit: RLIMIT, timeout: Duration::from_secs(1), ..JudgeConfig::default() };
        Ok(Self { judge: Judge::new(config, tilewright_search::strategies()).map_err(|error| error.to_string())? })
    }

    /// All that is asked of a step.
    fn reports(&self, before: &PrimFunc, after: &PrimFunc, evidence: &Evidence) -> Vec<Report> {
        let mut reports = self.judge.check_pass(before, after, evidence);
        reports.extend(self.judge.check_blocks(after, &inverses(after)));
        reports
    }
}

/// The outputs of a run, or the reason why there are none.
type Left = Result<Outputs, Stop>;

/// Why a run left nothing.
struct Stop {
    kind: String,
    text: String,
}

/// The arguments of the first program and what it leaves.
struct Runs<'a> {
    first: &'a PrimFunc,
    inputs: Arguments,
    is_written: Vec<bool>,
    expected: Outputs,
}

impl<'a> Runs<'a> {
    fn of(link: &'a ChainLink, seed: u64) -> Result<Self, Outcome> {
        let inputs = arguments(&link.func, &link.symbols, seed).map_err(Outcome::Invalid)?;
        let is_written = written_params(&link.func);
        let mut runs = Self { first: &link.func, inputs, is_written, expected: Vec::new() };
        runs.expected =
            runs.left(link).map_err(|stop| Outcome::Invalid(format!("the program stops: {}", stop.kind)))?;
        Ok(runs)
    }

    /// The outputs of a run of a program, with the checks of races and of undefined elements.
    fn left(&self, link: &ChainLink) -> Left {
        let how = Config { observers: Observers { defined: true, race: true }, ..interpreter_config() };
        let stopped = |kind: &str, text: String| Stop { kind: kind.to_owned(), text };
        let mut packed = link.pack(&self.inputs, PaddingFill::Undefined).map_err(|why| stopped("arguments", why))?;
        link.run(&mut packed, &how).map_err(|error| stopped(&error_kind(&error), error.to_string()))?;
        link.unpack(&packed, &self.inputs, &self.is_written).map_err(|why| stopped("padding", why))
    }

    /// How a program differs from the first one.
    fn difference(&self, link: &ChainLink, tally: &mut Tally) -> Option<String> {
        let left = match self.left(link) {
            Ok(left) => left,
            Err(stop) => return Some(format!("{}: {}", stop.kind, stop.text)),
        };
        let (lanes, difference) = differences(self.first, &self.expected, &left);
        tally.count("values compared", lanes);
        difference
    }
}

impl Oracle for BlockSchedules {
    type Case = ScheduledBlocks;

    const NAME: &'static str = "block_schedules";

    fn check(&mut self, case: &ScheduledBlocks, tally: &mut Tally) -> Outcome {
        let func = match read_module(&case.source()) {
            Ok(mut module) if module.funcs.len() == 1 => module.funcs.swap_remove(0),
            other => return Failure::outcome("a program with blocks is not read", format!("{other:?}")),
        };
        match self.look(case, &func, tally) {
            Ok(outcome) | Err(outcome) => outcome,
        }
    }
}

impl BlockSchedules {
    fn look(&self, case: &ScheduledBlocks, func: &PrimFunc, tally: &mut Tally) -> Result<Outcome, Outcome> {
        let symbols: Bindings = func.symbols().into_iter().map(|var| (var, case.shape[0].into())).collect();
        let first = ChainLink::first(func.clone(), symbols);
        let runs = Runs::of(&first, case.seed)?;
        let mut schedule = BlockSchedule::new(func);
        let (mut last, mut open, mut is_padded) = (first.clone(), None, false);
        for (number, step) in case.steps.iter().enumerate() {
            let n_steps = schedule.steps().len();
            if let Err(refused) = ScheduledBlocks::apply(&mut schedule, step) {
                tally.count(&format!("{} refused: {}", step.name(), refused.code), 1);
                continue;
            }
            if schedule.steps().len() == n_steps {
                continue;
            }
            if !ScheduledBlocks::is_done(&last.func, &schedule, step) {
                let text = print_func(schedule.func());
                return Err(Failure::outcome(format!("{} does not do what it is asked for", step.name()), text));
            }
            tally.saw(&format!("pass:block {}", step.name()));
            let is_wrong = number == usize::try_from(case.seed % 5).unwrap_or(0);
            let wrong = is_wrong.then_some(case.seed);
            is_padded |= matches!(step, Step::Layout(..));
            let may_be_wrong = may_be_wrong(step, is_padded);
            match self.step(&schedule, &last, &runs, (may_be_wrong, wrong), tally)? {
                Next::Go(link) => last = link,
                Next::Open(link, why) => {
                    open.get_or_insert(why);
                    last = link;
                }
                // The step was wrong, and is not proved.
                Next::Stop => return Ok(Outcome::Held),
            }
        }
        lowered(&last, &runs, tally)?;
        Ok(open.map_or(Outcome::Held, Outcome::Undecided))
    }

    /// Judges the last step of a schedule, and runs the program after it.
    fn step(
        &self,
        schedule: &BlockSchedule,
        last: &ChainLink,
        runs: &Runs<'_>,
        (may_be_wrong, wrong): (bool, Option<u64>),
        tally: &mut Tally,
    ) -> Result<Next, Outcome> {
        let Some(step) = schedule.steps().last() else { return Ok(Next::Stop) };
        let text = || format!("{}\n{}", print_func(&last.func), print_func(&step.func));
        if let Err(found) = validate(&step.func) {
            let why = found.first().map_or_else(String::new, ToString::to_string);
            return Err(Failure::outcome(
                format!("{} makes what is no program", step.name),
                format!("{why}\n{}", text()),
            ));
        }
        let reports = self.reports(&last.func, &step.func, &step.evidence);
        for report in &reports {
            tally.count(&format!("{} {}", report.obligation, report.verdict.word()), 1);
        }
        let line = |report: &Report| format!("{} {}: {}", report.obligation, report.subject, report.verdict);
        if let Some(report) = reports.iter().find(|report| report.is_internal()) {
            return Err(Failure::outcome("the judge contradicts itself", line(report)));
        }
        let link = last.then(step.name, step.func.clone(), &step.evidence);
        let link =
            link.map_err(|why| Failure::outcome(format!("{} moves its arguments to no place", step.name), why))?;
        let difference = runs.difference(&link, tally);
        let refuted = reports.iter().find(|report| matches!(report.verdict, Verdict::Refuted(_)));
        let open = reports.iter().find(|report| !report.verdict.is_proved());
        match (open, difference) {
            (None, Some(how)) => {
                let what = format!("{} on blocks is proved, and the result differs", step.name);
                return Err(Failure::outcome(what, format!("{how}\n{}", text())));
            }
            (Some(report), Some(_)) if may_be_wrong => {
                tally.count(&format!("wrong {} {}", step.name, report.verdict.word()), 1);
                return Ok(Next::Stop);
            }
            (Some(report), Some(how)) => {
                let what = format!("{} on blocks changes the result, and is not proved", step.name);
                return Err(Failure::outcome(what, format!("{how}; {}\n{}", line(report), text())));
            }
            (Some(_), None) if let Some(report) = refuted => {
                if may_be_wrong || is_beyond_runs(report) {
                    // Another size or another order of the iterations may show it.
                    tally.count(&format!("{} refuted, and runs agree", step.name), 1);
                    return Ok(Next::Stop);
                }
                let what = format!("{} on blocks is refuted, and runs agree", step.name);
                return Err(Failure::outcome(what, format!("{}\n{}", line(report), text())));
            }
            (Some(_) | None, None) => {}
        }
        if let Some(seed) = wrong {
            self.mistake(last, (&step.func, &step.evidence), runs, seed, tally)?;
        }
        Ok(match open {
            None => Next::Go(link),
            Some(report) => {
                let why = format!("{} {} {}", step.name, report.obligation, report.verdict.word());
                Next::Open(link, why)
            }
        })
    }

    /// A step with a mistake in the program: if it leaves something else, not all of it is proved.
    fn mistake(
        &self,
        last: &ChainLink,
        (after, evidence): (&PrimFunc, &Evidence),
        runs: &Runs<'_>,
        seed: u64,
        tally: &mut Tally,
    ) -> Result<(), Outcome> {
        let wrong = mutated_program(after, seed);
        if validate(&wrong).is_err() {
            return Ok(());
        }
        let Ok(link) = last.then("mistake", wrong.clone(), evidence) else { return Ok(()) };
        let Some(how) = runs.difference(&link, tally) else {
            tally.count("mistakes that change nothing", 1);
            return Ok(());
        };
        tally.count("mistakes judged", 1);
        let reports = self.reports(&last.func, &wrong, evidence);
        if reports.iter().all(|report| report.verdict.is_proved()) {
            let text = format!("{how}\n{}\n{}", print_func(&last.func), print_func(&wrong));
            return Err(Failure::outcome("a wrong step of a schedule on blocks is proved", text));
        }
        Ok(())
    }
}

/// Whether a refutation names an extent that no run can have: a loop over `n * 4` leaves `int32` at n = 2^29, and small runs agree.
fn is_beyond_runs(report: &Report) -> bool {
    let Verdict::Refuted(found) = &report.verdict else { return false };
    found.shape.iter().any(|(_, extent)| *extent >= BEYOND)
}

/// Lowers the blocks of the last program.
fn lowered(last: &ChainLink, runs: &Runs<'_>, tally: &mut Tally) -> Result<(), Outcome> {
    let Ok(lowered) = lower_blocks(&last.func) else { return Ok(()) };
    let link = last.then("lower_blocks", lowered.func.clone(), &lowered.evidence);
    let link = link.map_err(|why| Failure::outcome("lower_blocks moves its arguments to no place", why))?;
    if let Some(how) = runs.difference(&link, tally) {
        return Err(Failure::outcome("lower_blocks changes the result", format!("{how}\n{}", print_func(&last.func))));
    }
    Ok(())
}

/// The program and the verdict after a step.
enum Next {
    /// It is proved.
    Go(ChainLink),
    /// It is not decided, for this reason.
    Open(ChainLink, String),
    /// It is wrong.
    Stop,
}

/// Whether a program may differ after a step because of what was asked for: loops that run at once or in another order, and copies of
/// whole buffers whose padding may hold nothing.
fn may_be_wrong(step: &Step, is_padded: bool) -> bool {
    match step {
        Step::CacheRead(..) | Step::CacheWrite(..) => is_padded,
        Step::Kind(..) | Step::Reorder(..) | Step::Scope(..) => true,
        Step::Split(..)
        | Step::Fuse(..)
        | Step::ComputeAt(..)
        | Step::ReverseComputeAt(..)
        | Step::Inline(_)
        | Step::ReverseInline(_)
        | Step::Layout(..)
        | Step::Axes(..)
        | Step::Separator(_)
        | Step::Reindex(..)
        | Step::Decompose(..)
        | Step::Annotate(..) => false,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may fail")]

    use arbitrary::Unstructured;

    use super::*;
    use crate::case::Case;
    use crate::{bytes, config};

    fn case(number: u64) -> ScheduledBlocks {
        let bytes = bytes::of_case(1, "block_schedules", number);
        ScheduledBlocks::draw(&mut Unstructured::new(&bytes), &config::Config::default()).unwrap()
    }

    #[test]
    fn every_primitive_is_judged_and_wrong_steps_are_not_proved() {
        let mut oracle = BlockSchedules::new(&Environment::default()).unwrap();
        let cases = std::env::var("FUZZ_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(150);
        let (mut tally, mut bad) = (Tally::default(), Vec::new());
        for number in 0..cases {
            let case = case(number);
            let outcome = oracle.check(&case, &mut tally);
            tally.outcome(&outcome);
            if matches!(outcome, Outcome::Failed(_) | Outcome::Invalid(_)) {
                bad.push((number, outcome, case.text()));
            }
        }
        for (number, outcome, text) in &bad {
            eprintln!("{number}: {outcome:?}\n{text}");
        }
        eprintln!("{tally:#?}");
        assert!(bad.is_empty(), "{} of {cases}", bad.len());
        assert!(tally.counts["mistakes judged"] > 20, "{:?}", tally.counts);
    }
}
