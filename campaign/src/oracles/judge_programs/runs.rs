//! Runs of two programs that should agree, and of one program alone.

use tilewright_interp::{Arguments, Config as Interp, Observers, Order, RunError, TrapKind, run};
use tilewright_ir::{Bindings, Evidence, PrimFunc, validate};

use crate::chain::{ChainLink, PaddingFill, differences, written_params};
use crate::inputs::{arguments, extents, thread_loops_wait};

/// Limit on the iterations of a run.
const FUEL: u64 = 1 << 18;
/// Limit on the elements of an argument.
const ELEMENTS: u64 = 1 << 18;

/// The result of running two programs.
#[derive(Debug)]
pub(super) enum RunComparison {
    /// Both leave the same values; the number of compared lanes.
    Same(u64),
    /// They differ, or the second one traps; the description.
    Differ(String),
    /// The evidence maps elements of an argument to no position, or two of them to the same one.
    NoPlace(String),
    /// Unknown: the first program is undefined by itself, or a run takes too long.
    Nothing,
}

/// The configuration of the interpreter: one thread, reads of undefined elements trap.
fn interp(order: Order, race: bool) -> Interp {
    let observers = Observers { defined: true, race };
    Interp { threads: 1, fuel: Some(FUEL), observers, order, max_bytes: 1 << 26 }
}

/// Whether the arguments are small enough to run.
fn fits(func: &PrimFunc, symbols: &Bindings) -> bool {
    let size = |buffer| extents(buffer, symbols).ok()?.iter().try_fold(1u64, |size, extent| size.checked_mul(*extent));
    func.buffer_map.iter().all(|(_, buffer)| size(buffer).is_some_and(|size| size <= ELEMENTS))
}

/// Runs both programs twice: in program order with the race check, then with other values in a
/// shuffled order.
pub(super) fn compare_runs(
    before: &PrimFunc,
    after: &PrimFunc,
    evidence: &Evidence,
    symbols: &Bindings,
    seed: u64,
) -> RunComparison {
    if [before, after].into_iter().any(|func| !fits(func, symbols)) {
        return RunComparison::Nothing;
    }
    let first = ChainLink::first(before.clone(), symbols.clone());
    let second = match first.then("after", after.clone(), evidence) {
        Ok(second) => second,
        Err(why) => return RunComparison::NoPlace(why),
    };
    if !second.is_one_to_one() {
        return RunComparison::NoPlace("two elements are taken to one place".to_owned());
    }
    let mut compared = 0;
    // `seed ^ 1` gives other values, and at most one of the two seeds puts special floats in the inputs.
    for (how, seed) in [(interp(Order::Program, true), seed), (interp(Order::Shuffled(seed | 1), false), seed ^ 1)] {
        match compare_one_run(&first, &second, &how, seed) {
            RunComparison::Same(lanes) => compared += lanes,
            other => return other,
        }
    }
    RunComparison::Same(compared)
}

/// Runs both programs once and compares what they write.
fn compare_one_run(first: &ChainLink, second: &ChainLink, how: &Interp, seed: u64) -> RunComparison {
    let Ok(inputs) = arguments(&first.func, &first.symbols, seed) else { return RunComparison::Nothing };
    let is_written = written_params(&first.func);
    let mut left = inputs.clone();
    if first.run(&mut left, how).is_err() {
        return RunComparison::Nothing;
    }
    let Ok(expected) = first.unpack(&left, &inputs, &is_written) else { return RunComparison::Nothing };
    let mut packed = match second.pack(&inputs, PaddingFill::Undefined) {
        Ok(packed) => packed,
        Err(why) => return RunComparison::NoPlace(why),
    };
    match second.run(&mut packed, how) {
        Ok(_) => {}
        Err(RunError::Trap(trap)) if trap.kind == TrapKind::FuelExhausted => return RunComparison::Nothing,
        // The check takes code around thread loops of a launch for a thread of its own; for the judge and the generated kernels, they wait.
        Err(RunError::Trap(trap)) if trap.kind == TrapKind::Race && thread_loops_wait(&second.func.body) => {
            return compare_one_run(first, second, &interp(how.order, false), seed);
        }
        Err(RunError::Trap(trap)) => return RunComparison::Differ(trap.to_string()),
        Err(RunError::Input(_)) => return RunComparison::Nothing,
    }
    match second.unpack(&packed, &inputs, &is_written).map(|got| differences(&first.func, &expected, &got)) {
        Ok((lanes, None)) => RunComparison::Same(lanes),
        Ok((_, Some(how))) | Err(how) => RunComparison::Differ(how),
    }
}

/// A trap of a program.
#[derive(Clone, Debug)]
pub(super) struct TrapInfo {
    pub(super) is_outside: bool,
    pub(super) is_race: bool,
    pub(super) message: String,
}

/// Runs one program, without another one to compare it with. `watched` switches the race check on. `None` if
/// the program cannot be run; otherwise the trap, if there was one.
#[expect(clippy::option_option, reason = "nothing known, no trap, a trap")]
pub(super) fn run_alone(func: &PrimFunc, symbols: &Bindings, watched: bool) -> Option<Option<TrapInfo>> {
    let mut inputs: Arguments = arguments(func, symbols, 1).ok()?;
    match run(validate(func).ok()?, &mut inputs, &interp(Order::Program, watched)) {
        Ok(_) => Some(None),
        Err(RunError::Trap(trap)) if trap.kind == TrapKind::FuelExhausted => None,
        Err(RunError::Trap(trap)) => Some(Some(TrapInfo {
            is_outside: trap.kind == TrapKind::OutOfBounds,
            is_race: trap.kind == TrapKind::Race,
            message: trap.to_string(),
        })),
        Err(RunError::Input(_)) => None,
    }
}
