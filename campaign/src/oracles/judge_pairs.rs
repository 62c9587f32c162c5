//! Compares the judge's verdicts on pairs of programs, and on single programs, with runs in the interpreter.
//!
//! | checked | a failure is |
//! |---|---|
//! | a pair whose runs differ, or that asks for other layouts | *proved* |
//! | a pair of equal programs | *refuted*; or their runs differ, which is a mistake of the generator |
//! | a program that traps | accesses, iterations that run at once or loads are proved, and the trap is about them |
//!
//! Scalars and loaded integers have any sign in the runs, and premises that no input fulfils are left out of them: nothing
//! that does not hold without them may be proved from them. See [`crate::pairs`].

mod runs;

use std::time::Duration;

use tilewright_compiler::passes::{DEFAULT_PIPELINE, pass_by_name};
use tilewright_compiler::pipeline::pair;
use tilewright_interp::{Trap, TrapKind};
use tilewright_ir::PrimFunc;
use tilewright_verify::{Config as Budget, Judge, Obligation, Report, Verdict};

use self::runs::Observed;
pub(crate) use self::runs::observe;
use crate::oracle::{Environment, Failure, Oracle, Outcome, Tally};
use crate::pairs::{Known, PairCase, PairTexts};

/// Z3's budget per question.
const RLIMIT: u32 = 200_000;
/// Z3's time limit per question, a safety net beside the budget.
const TIMEOUT: Duration = Duration::from_secs(1);

/// Steps of a part of a run on terms, for every other pair: the programs are tiny, and would be run undivided otherwise.
const PART_STEPS: u64 = 200;

/// The oracle `judge_pairs`; see the module.
#[derive(Debug)]
pub struct JudgePairs {
    judge: Judge,
    /// A judge that runs programs on terms in small parts.
    in_parts: Judge,
}

/// What is true of a pair, as far as runs and its recipe say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Truth {
    /// The programs compute the same.
    Equal,
    /// The programs differ; how.
    Different(String),
    /// Neither is known.
    Unknown,
}

/// A pair that was read and run.
#[derive(Debug)]
pub struct Examined {
    /// Both programs.
    pub programs: [PrimFunc; 2],
    /// What is true of the pair.
    pub truth: Truth,
    /// What is not true of each program alone, with the traps that show it.
    pub wrong: [Vec<(Obligation, String)>; 2],
}

impl JudgePairs {
    /// Creates the oracle with a judge of its own on one thread.
    ///
    /// # Errors
    /// No suitable solver is available.
    pub fn new(_: &Environment) -> Result<Self, String> {
        let budget = Budget { threads: 1, timeout: TIMEOUT, rlimit: RLIMIT, ..Budget::default() };
        let small = Budget { part_steps: PART_STEPS, ..budget };
        let make = |budget| Judge::new(budget, tilewright_search::strategies()).map_err(|error| error.to_string());
        Ok(Self { judge: make(budget)?, in_parts: make(small)? })
    }
}

impl JudgePairs {
    /// The verdicts on all passes of the pipeline about loads of elements that were never written.
    fn after_passes(&self, func: &PrimFunc) -> Vec<Report> {
        let (mut func, mut reports) = (func.clone(), Vec::new());
        for pass in DEFAULT_PIPELINE.iter().filter_map(|name| pass_by_name(name).ok()) {
            let Ok(done) = (pass.run)(&func) else { break };
            reports.extend(self.judge.check_pass(&func, &done.func, &done.evidence));
            func = done.func;
        }
        reports.retain(|report| report.obligation == Obligation::Defined);
        reports
    }
}

impl Oracle for JudgePairs {
    type Case = PairCase;

    const NAME: &'static str = "judge_pairs";

    fn check(&mut self, case: &PairCase, tally: &mut Tally) -> Outcome {
        let texts = case.texts();
        let examined = match examine(&texts) {
            Ok(examined) => examined,
            Err(outcome) => return outcome,
        };
        let [before, after] = &examined.programs;
        for (func, wrong) in [before, after].into_iter().zip(&examined.wrong) {
            let mut reports = self.judge.check_program(func);
            count("programs", &reports, tally);
            if wrong.iter().any(|(obligation, _)| *obligation == Obligation::Defined) {
                reports.extend(self.after_passes(func));
            }
            if let Some(outcome) = false_proof(wrong, &reports, func) {
                return outcome;
            }
        }
        let judge = if texts.after.len().is_multiple_of(2) { &self.judge } else { &self.in_parts };
        let reports = match pair::validate(before, after, &[], judge) {
            Ok(judged) => judged.reports,
            Err(_) if matches!(examined.truth, Truth::Different(_)) => return Outcome::Held,
            Err(_) => return Outcome::Undecided("the programs cannot be paired".into()),
        };
        count(&format!("{} pairs", examined.truth.word()), &reports, tally);
        judged(&examined.truth, &reports, &texts)
    }
}

impl Truth {
    /// A word for the truth.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Equal => "equal",
            Self::Different(_) => "different",
            Self::Unknown => "unknown",
        }
    }
}

/// Reads and runs a pair.
///
/// # Errors
/// The outcome, if a program cannot be read, or if equal programs differ.
pub fn examine(texts: &PairTexts) -> Result<Examined, Outcome> {
    let programs = [read(&texts.before)?, read(&texts.after)?];
    let observed = match &texts.executed {
        None => observe(&programs[0], &programs[1], texts.seed),
        Some([before, after]) => observe(&read(before)?, &read(after)?, texts.seed),
    };
    let truth = truth(texts, &observed)?;
    let wrong = observed.traps.each_ref().map(|traps| {
        let mut wrong = contradicted(traps);
        // Of a program with other sizes, only races are known.
        wrong.retain(|(obligation, _)| !texts.is_resized || *obligation != Obligation::Bounds);
        wrong
    });
    Ok(Examined { programs, truth, wrong })
}

/// Reads a function.
fn read(text: &str) -> Result<PrimFunc, Outcome> {
    let invalid = |why: String| Outcome::Invalid(why.lines().next().unwrap_or_default().to_owned());
    let module = tilewright_script::read_module(text).map_err(|found| invalid(format!("{:?}", found.first())))?;
    let func = module.funcs.into_iter().next().ok_or_else(|| invalid("no function".into()))?;
    match tilewright_ir::validate(&func) {
        Ok(_) => Ok(func),
        Err(found) => {
            Err(invalid(found.first().map_or_else(String::new, |first| format!("{}: {}", first.code, first.message))))
        }
    }
}

/// What is true of a pair.
fn truth(texts: &PairTexts, observed: &Observed) -> Result<Truth, Outcome> {
    match (texts.known, &observed.difference) {
        (Known::Equal, Some(difference)) => {
            let detail = format!("{difference}\nbefore:\n{}\nafter:\n{}", texts.before, texts.after);
            Err(Failure::outcome("the generator calls programs equal that differ", detail))
        }
        (Known::Equal, None) => Ok(Truth::Equal),
        (Known::Different, _) => Ok(Truth::Different("the programs ask for other layouts".into())),
        // A trap may be one of the smaller sizes alone.
        (Known::Nothing, Some(_)) if texts.is_resized => Ok(Truth::Unknown),
        (Known::Nothing, Some(difference)) => Ok(Truth::Different(difference.clone())),
        (Known::Nothing, None) => Ok(Truth::Unknown),
    }
}

/// The obligations that traps contradict, with their texts.
pub(crate) fn contradicted(traps: &[Trap]) -> Vec<(Obligation, String)> {
    traps.iter().filter_map(|trap| Some((obligation(trap.kind)?, trap.to_string()))).collect()
}

/// The obligation that a trap contradicts.
fn obligation(kind: TrapKind) -> Option<Obligation> {
    match kind {
        TrapKind::Race => Some(Obligation::Race),
        TrapKind::Barrier => Some(Obligation::Barrier),
        TrapKind::OutOfBounds => Some(Obligation::Bounds),
        TrapKind::Undefined => Some(Obligation::Defined),
        TrapKind::DivisionByZero
        | TrapKind::ShiftRange
        | TrapKind::LoopRange
        | TrapKind::Assertion
        | TrapKind::FuelExhausted
        | TrapKind::Memory
        | TrapKind::Size => None,
    }
}

/// A failure if something is proved of a program that is not true of it.
pub(crate) fn false_proof(wrong: &[(Obligation, String)], reports: &[Report], func: &PrimFunc) -> Option<Outcome> {
    // Accesses are inside if these three hold together.
    let parts = |obligation| match obligation {
        Obligation::Bounds => vec![Obligation::Bounds, Obligation::Overflow, Obligation::Lanes],
        other => vec![other],
    };
    wrong.iter().find_map(|(obligation, trap)| {
        let parts = parts(*obligation);
        let mut of = reports.iter().filter(|report| parts.contains(&report.obligation)).peekable();
        let is_proved = of.peek().is_some() && of.all(|report| report.verdict.is_proved());
        let detail = || format!("{trap}\n{}", tilewright_script::print_func(func));
        is_proved.then(|| Failure::outcome(format!("{obligation} is proved of a program that traps"), detail()))
    })
}

/// The outcome of a pair.
fn judged(truth: &Truth, reports: &[Report], texts: &PairTexts) -> Outcome {
    let detail = |why: &str| format!("{why}\nbefore:\n{}\nafter:\n{}", texts.before, texts.after);
    // Equal programs may leave a buffer or race in the same way; only these two obligations compare them.
    let compares = |report: &&Report| {
        matches!(
            report.obligation,
            Obligation::Simulation | Obligation::Iteration | Obligation::Order | Obligation::Alive
        )
    };
    let mut compared = reports.iter().filter(compares);
    let refuted = compared.find(|report| matches!(report.verdict, Verdict::Refuted(_)));
    let is_proved = !reports.is_empty() && reports.iter().all(|report| report.verdict.is_proved());
    match (truth, refuted) {
        (Truth::Different(how), _) if is_proved => {
            Failure::outcome("programs that differ are proved equal", detail(how))
        }
        (Truth::Equal, Some(report)) if report.obligation == Obligation::Simulation => Failure::outcome(
            "equal programs are refuted",
            detail(&format!("{}: {}", report.obligation, report.verdict)),
        ),
        (Truth::Equal, _) if !is_proved => Outcome::Undecided("equal programs are not proved".into()),
        (Truth::Unknown, _) => Outcome::Undecided("runs do not tell the programs apart".into()),
        _ => Outcome::Held,
    }
}

/// Counts the worst verdict, and what is refuted.
fn count(what: &str, reports: &[Report], tally: &mut Tally) {
    for report in reports.iter().filter(|report| matches!(report.verdict, Verdict::Refuted(_))) {
        tally.count(&format!("{what} refuted: {}", report.obligation), 1);
    }
    let worst = Verdict::worst(reports.iter().map(|report| report.verdict.clone()));
    tally.count(&format!("{what} {}", worst.as_ref().map_or("without obligation", Verdict::word)), 1);
}

#[cfg(test)]
mod tests;
