//! What runs say of two programs, or of one.

use tilewright_interp::{Arguments, Config as Interp, Observers, Order, RunError, Tensor, TrapKind, fill, run};
use tilewright_ir::{Evidence, PrimFunc, validate};

use crate::harness::engine::{Program, Status};
use crate::harness::interpreter::Interpreter;
use crate::harness::stages::{Config, Stage, run_chain};

/// Iterations of a run, at most.
const FUEL: u64 = 1 << 20;

/// What came of running two programs.
#[derive(Debug)]
pub(super) enum Seen {
    /// They leave the same, in so many values.
    Same(u64),
    /// How they differ; or the second one traps.
    Differ(String),
    /// The first has no meaning by itself, or takes too long.
    Nothing,
}

fn interp(order: Order, race: bool) -> Interpreter {
    let observers = Observers { defined: true, race };
    Interpreter { config: Interp { threads: 1, fuel: Some(FUEL), observers, order, ..Interp::default() } }
}

/// Runs both: in order and watching for races, then other values in another order.
pub(super) fn both(before: &PrimFunc, after: &PrimFunc, evidence: &Evidence, seed: u64) -> Seen {
    let engines = [(interp(Order::Program, true), seed), (interp(Order::Shuffled(seed | 1), false), seed ^ 1)];
    let mut compared = 0;
    for (engine, seed) in engines {
        let stages = [
            Stage { name: "before", program: Program::Func(before), evidence: None, reassociates: false },
            Stage { name: "after", program: Program::Func(after), evidence: Some(evidence), reassociates: false },
        ];
        let Ok(report) = run_chain(&stages, &Config { seed, symbols: Vec::new() }, &engine, &[]) else {
            return Seen::Nothing;
        };
        let [first, second] = report.engines.as_slice() else { return Seen::Nothing };
        if first.status != Status::Ok || second.status == Status::Skipped {
            return Seen::Nothing;
        }
        if second.status != Status::Ok {
            return Seen::Differ(second.first.as_ref().map_or_else(|| second.detail.clone(), ToString::to_string));
        }
        compared += second.compared;
    }
    Seen::Same(compared)
}

/// What a program did that has no meaning.
#[derive(Clone, Debug)]
pub(super) struct Trapped {
    pub(super) is_outside: bool,
    pub(super) is_race: bool,
    pub(super) message: String,
}

/// Runs a program by itself, watching for races or not: none if it cannot be run here, else the trap, if there was one.
#[expect(clippy::option_option, reason = "nothing known, no trap, a trap")]
pub(super) fn alone(func: &PrimFunc, watched: bool) -> Option<Option<Trapped>> {
    let mut tensors = Vec::new();
    for (position, (_, buffer)) in (0..).zip(&func.buffer_map) {
        let extents = buffer.const_shape()?;
        let shape: Vec<u64> = extents.iter().map(|&extent| u64::try_from(extent).ok()).collect::<Option<_>>()?;
        let mut tensor = Tensor::undefined(buffer.dtype, &shape).ok()?;
        fill(&mut tensor, position);
        tensors.push(tensor);
    }
    if tensors.len() != func.params.len() {
        return None;
    }
    match run(validate(func).ok()?, &mut Arguments::tensors(tensors), &interp(Order::Program, watched).config) {
        Ok(_) => Some(None),
        Err(RunError::Trap(trap)) if trap.kind == TrapKind::FuelExhausted => None,
        Err(RunError::Trap(trap)) => Some(Some(Trapped {
            is_outside: trap.kind == TrapKind::OutOfBounds,
            is_race: trap.kind == TrapKind::Race,
            message: trap.to_string(),
        })),
        Err(RunError::Input(_)) => None,
    }
}
