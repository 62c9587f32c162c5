//! Compares the interpreter's race check, and the judge, with the orders in which the iterations of a tiny program can run.
//!
//! | the orders | the race check |
//! |---|---|
//! | two of them leave different contents | has to report a race |
//! | two accesses of one element may be swapped, one of them a write | has to report a race |
//! | otherwise | may report none; one, two and four threads, reversed and shuffled iterations leave what the orders leave |
//!
//! Two accesses may be swapped in two iterations of one execution of a loop that is not serial, if no barrier of a group is between them. The
//! judge may prove *race* only where no two may be swapped, and refute it only where two may.

use tilewright_interp::{
    Argument, Arguments, Config, Observers, Order, Report, RunError, Tensor, TrapKind, reference, run,
};
use tilewright_ir::{Scalar, ScalarType, Validated, validate};
use tilewright_verify::{Config as Budget, Judge, Verdict};

use crate::chain::interpreter_config;
use crate::oracle::{Environment, Failure, Oracle, Outcome, Tally};
use crate::tiny::{CELLS, Event, Tiny, conflict, outcomes};

/// An interpreter.
type Engine = fn(Validated<'_>, &mut Arguments, &Config) -> Result<Report, RunError>;

/// The oracle `interleavings`; see the module.
#[derive(Debug)]
pub struct Interleavings {
    judge: Judge,
}

impl Interleavings {
    /// Creates the oracle.
    ///
    /// # Errors
    /// There is no judge on this machine.
    pub fn new(_: &Environment) -> Result<Self, String> {
        let budget = Budget { threads: 1, rlimit: 1_000_000, ..Budget::default() };
        Ok(Self { judge: Judge::new(budget, tilewright_search::strategies()).map_err(|error| error.to_string())? })
    }

    /// Compares the judge's verdicts on races and barriers with the accesses that may be swapped.
    fn judged(&self, case: &Tiny, events: &[Event], tally: &mut Tally) -> Result<(), Outcome> {
        let reports = self.judge.check_races(&case.func());
        let is_proved = reports.iter().all(|report| report.verdict.is_proved());
        let refuted = reports.iter().find(|report| matches!(report.verdict, Verdict::Refuted(_)));
        tally.count(if is_proved { "races proved absent" } else { "races not proved absent" }, 1);
        match (conflict(events), refuted) {
            (Some((a, b)), _) if is_proved => {
                let text = format!("{:?} and {:?} may be swapped", events[a], events[b]);
                Err(Failure::outcome("the judge proves that there is no race", text))
            }
            (None, Some(report)) => {
                Err(Failure::outcome("the judge refutes a program without a race", report.subject.clone()))
            }
            (Some(_), _) | (None, None) => Ok(()),
        }
    }
}

/// The contents before a run.
const START: [i64; CELLS] = [1, 2, 3, 4];

/// Runs the program and returns what it leaves.
fn left(case: &Tiny, engine: Engine, how: &Config) -> Result<Vec<i64>, RunError> {
    let func = case.func();
    let valid = validate(&func).map_err(|mut found| RunError::Input(found.swap_remove(0)))?;
    let mut tensor = Tensor::undefined(ScalarType::Int32, &[4])
        .map_err(|error| RunError::Input(tilewright_ir::Diagnostic::error("tensor", None, error.to_string())))?;
    for (lane, value) in START.into_iter().enumerate() {
        tensor.set(lane, Scalar::Int(i128::from(value)));
    }
    let mut arguments = Arguments::tensors([tensor]);
    engine(valid, &mut arguments, how)?;
    let Some(Argument::Tensor(tensor)) = arguments.params.first() else { return Ok(Vec::new()) };
    let value = |lane| match tensor.get(lane) {
        Some(Scalar::Int(value)) => i64::try_from(value).unwrap_or(i64::MAX),
        _ => i64::MIN,
    };
    Ok((0..CELLS).map(value).collect())
}

impl Oracle for Interleavings {
    type Case = Tiny;

    const NAME: &'static str = "interleavings";

    fn check(&mut self, case: &Tiny, tally: &mut Tally) -> Outcome {
        let events = case.events();
        if !Tiny::is_small(&events) {
            return Outcome::Undecided("too many accesses".into());
        }
        let racing = conflict(&events);
        if let Err(outcome) = self.judged(case, &events, tally) {
            return outcome;
        }
        let Some(possible) = outcomes(&events, START) else { return Outcome::Undecided("too many orders".into()) };
        tally.count("contents found", possible.len() as u64);
        if possible.len() > 1 && racing.is_none() {
            return Failure::outcome("orders differ without a conflict", format!("{possible:?}"));
        }
        let watched = Config { observers: Observers { defined: true, race: true }, ..interpreter_config() };
        let report = match left(case, run, &watched) {
            Ok(_) => None,
            Err(RunError::Trap(trap)) if trap.kind == TrapKind::Race => Some(trap.to_string()),
            Err(error) => return Failure::outcome("a tiny program stops", error.to_string()),
        };
        match (&report, racing) {
            (None, Some((a, b))) => {
                let text = format!("{:?} and {:?} may be swapped; contents {possible:?}", events[a], events[b]);
                return Failure::outcome("a race is not reported", text);
            }
            (Some(text), None) => return Failure::outcome("a race is reported where there is none", text.clone()),
            (Some(_), Some(_)) => tally.count("races found", 1),
            (None, None) => {
                tally.count("programs without a race", 1);
                return same_in_any_order(case, &possible.into_iter().next().unwrap_or(START), tally);
            }
        }
        Outcome::Held
    }
}

/// Runs a program without a race on threads and in other orders.
fn same_in_any_order(case: &Tiny, expected: &[i64; CELLS], tally: &mut Tally) -> Outcome {
    let mode = |threads, order| Config { threads, order, fuel: None, ..interpreter_config() };
    let modes: [(&str, Engine, Config); 6] = [
        ("in the reference", reference::run, mode(1, Order::Program)),
        ("on one thread", run, mode(1, Order::Program)),
        ("on 2 threads", run, mode(2, Order::Program)),
        ("on 4 threads", run, mode(4, Order::Program)),
        ("in reversed order", run, mode(1, Order::Reversed)),
        ("in shuffled order", run, mode(1, Order::Shuffled(7))),
    ];
    for (name, engine, how) in modes {
        match left(case, engine, &how) {
            Ok(found) if found == expected => tally.count("runs compared", 1),
            Ok(found) => {
                let text = format!("{found:?} instead of {expected:?}");
                return Failure::outcome(format!("{name} a program without a race leaves something else"), text);
            }
            Err(error) => return Failure::outcome(format!("{name} a program without a race stops"), error.to_string()),
        }
    }
    Outcome::Held
}
