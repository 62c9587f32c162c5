//! What runs say of two programs, or of one.

use tilewright_interp::{Arguments, Config as Interp, Observers, Order, RunError, TrapKind, run};
use tilewright_ir::{Bindings, Evidence, PrimFunc, validate};

use crate::chain::{Blank, Link, differences, is_written};
use crate::inputs::{arguments, extents};

/// Iterations of a run, at most.
const FUEL: u64 = 1 << 18;
/// Elements of an argument, at most.
const ELEMENTS: u64 = 1 << 18;

/// What came of running two programs.
#[derive(Debug)]
pub(super) enum Seen {
    /// They leave the same, in so many values.
    Same(u64),
    /// How they differ; or the second one traps.
    Differ(String),
    /// The evidence takes elements of an argument to no place, or two to one.
    NoPlace(String),
    /// The first has no meaning by itself, or takes too long.
    Nothing,
}

fn interp(order: Order, race: bool) -> Interp {
    let observers = Observers { defined: true, race };
    Interp { threads: 1, fuel: Some(FUEL), observers, order, max_bytes: 1 << 26 }
}

/// Whether the arguments are of a size that can be run.
fn fits(func: &PrimFunc, symbols: &Bindings) -> bool {
    let size = |buffer| extents(buffer, symbols).ok()?.iter().try_fold(1u64, |size, extent| size.checked_mul(*extent));
    func.buffer_map.iter().all(|(_, buffer)| size(buffer).is_some_and(|size| size <= ELEMENTS))
}

/// Runs both: in order and watching for races, then other values in another order.
pub(super) fn both(before: &PrimFunc, after: &PrimFunc, evidence: &Evidence, symbols: &Bindings, seed: u64) -> Seen {
    if [before, after].into_iter().any(|func| !fits(func, symbols)) {
        return Seen::Nothing;
    }
    let first = Link::first(before.clone(), symbols.clone());
    let second = match first.then("after", after.clone(), evidence) {
        Ok(second) => second,
        Err(why) => return Seen::NoPlace(why),
    };
    if !second.is_one_to_one() {
        return Seen::NoPlace("two elements are taken to one place".to_owned());
    }
    let mut compared = 0;
    for (how, seed) in [(interp(Order::Program, true), seed), (interp(Order::Shuffled(seed | 1), false), seed ^ 1)] {
        match once(&first, &second, &how, seed) {
            Seen::Same(lanes) => compared += lanes,
            other => return other,
        }
    }
    Seen::Same(compared)
}

fn once(first: &Link, second: &Link, how: &Interp, seed: u64) -> Seen {
    let Ok(inputs) = arguments(&first.func, &first.symbols, seed) else { return Seen::Nothing };
    let is_written = is_written(&first.func);
    let mut left = inputs.clone();
    if first.run(&mut left, how).is_err() {
        return Seen::Nothing;
    }
    let Ok(expected) = first.unpack(&left, &inputs, &is_written) else { return Seen::Nothing };
    let mut packed = match second.pack(&inputs, Blank::Undefined) {
        Ok(packed) => packed,
        Err(why) => return Seen::NoPlace(why),
    };
    match second.run(&mut packed, how) {
        Ok(_) => {}
        Err(RunError::Trap(trap)) if trap.kind == TrapKind::FuelExhausted => return Seen::Nothing,
        Err(RunError::Trap(trap)) => return Seen::Differ(trap.to_string()),
        Err(RunError::Input(_)) => return Seen::Nothing,
    }
    match second.unpack(&packed, &inputs, &is_written).map(|got| differences(&first.func, &expected, &got)) {
        Ok((lanes, None)) => Seen::Same(lanes),
        Ok((_, Some(how))) | Err(how) => Seen::Differ(how),
    }
}

/// What a program did that has no meaning.
#[derive(Clone, Debug)]
pub(super) struct Trapped {
    pub(super) is_outside: bool,
    pub(super) is_race: bool,
    /// The buffer of the race.
    pub(super) buffer: Option<String>,
    pub(super) message: String,
}

/// Runs a program by itself, watching for races or not: none if it cannot be run here, else the trap, if there was one.
#[expect(clippy::option_option, reason = "nothing known, no trap, a trap")]
pub(super) fn alone(func: &PrimFunc, symbols: &Bindings, watched: bool) -> Option<Option<Trapped>> {
    let mut inputs: Arguments = arguments(func, symbols, 1).ok()?;
    match run(validate(func).ok()?, &mut inputs, &interp(Order::Program, watched)) {
        Ok(_) => Some(None),
        Err(RunError::Trap(trap)) if trap.kind == TrapKind::FuelExhausted => None,
        Err(RunError::Trap(trap)) => Some(Some(Trapped {
            is_outside: trap.kind == TrapKind::OutOfBounds,
            is_race: trap.kind == TrapKind::Race,
            message: trap.to_string(),
            buffer: trap.buffer,
        })),
        Err(RunError::Input(_)) => None,
    }
}
