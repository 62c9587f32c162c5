//! Helpers of the integration tests: builders of functions and tensors, and configurations.
#![allow(clippy::unwrap_used, clippy::panic, dead_code, reason = "helpers of tests, each of which uses some")]

use tilewright_interp::{
    Arguments, Config, Observers, Order, Report, RunError, Tensor, Trap, TrapKind, fill, reference, run,
};
use tilewright_ir::{Buffer, DataType, Expr, FuncAttrs, PrimFunc, ScalarType, Stmt, Var, validate};

/// A function whose parameters are the given buffers.
pub(crate) fn func(buffers: &[&Buffer], body: Stmt) -> PrimFunc {
    let params: Vec<_> = buffers.iter().map(|buffer| Var::new(buffer.name.clone(), DataType::HANDLE)).collect();
    let buffer_map = params.iter().cloned().zip(buffers.iter().map(|&buffer| buffer.clone())).collect();
    PrimFunc { name: "test".into(), params, buffer_map, attrs: FuncAttrs::default(), body }
}

pub(crate) fn buffer(name: &str, shape: &[i64]) -> Buffer {
    Buffer::compact(name, ScalarType::Float32, shape.iter().map(|&extent| Expr::int(extent)).collect())
}

pub(crate) fn filled(shape: &[u64], seed: u64) -> Tensor {
    let mut tensor = Tensor::undefined(ScalarType::Float32, shape).unwrap();
    fill(&mut tensor, seed);
    tensor
}

pub(crate) fn empty(shape: &[u64]) -> Tensor {
    Tensor::undefined(ScalarType::Float32, shape).unwrap()
}

pub(crate) fn config(threads: usize) -> Config {
    Config { threads, ..Config::default() }
}

/// One thread, with definedness and races checked.
pub(crate) fn racing() -> Config {
    Config { observers: Observers { defined: true, race: true }, ..config(1) }
}

pub(crate) fn execute(func: &PrimFunc, args: &mut Arguments, config: &Config) -> Result<Report, RunError> {
    run(validate(func).map_err(|found| found[0].clone())?, args, config)
}

/// A run of the reference interpreter.
pub(crate) fn refer(func: &PrimFunc, args: &mut Arguments, config: &Config) -> Result<Report, RunError> {
    reference::run(validate(func).map_err(|found| found[0].clone())?, args, config)
}

/// Asserts that a trap is the one that the reference interpreter reports; only the words of the message may differ.
pub(crate) fn assert_same_trap(trap: &Trap, expected: &Trap) {
    assert_eq!((trap.kind, &trap.loops), (expected.kind, &expected.loops), "{trap} and {expected}");
    assert_eq!((&trap.statement, trap.span), (&expected.statement, expected.span));
}

/// Asserts that two tensors hold the same values, bit for bit, except that any NaN equals any other.
pub(crate) fn assert_same_values(got: Option<&Tensor>, expected: Option<&Tensor>) {
    let (Some(got), Some(expected)) = (got, expected) else { return assert_eq!(got, expected) };
    assert_eq!((got.dtype(), got.shape()), (expected.dtype(), expected.shape()));
    for lane in 0..expected.lane_count() {
        match (got.get(lane), expected.get(lane)) {
            (None, None) => {}
            (Some(got), Some(expected)) if got.same(expected) => {}
            (got, expected) => panic!("lane {lane} is {got:?}, not {expected:?}"),
        }
    }
}

/// The trap of a run that must trap. Unless it is about a race, the reference interpreter must report it too.
pub(crate) fn trap(func: &PrimFunc, args: &Arguments, config: &Config) -> Trap {
    match execute(func, &mut args.clone(), config) {
        Err(RunError::Trap(trap)) if trap.kind == TrapKind::Race => *trap,
        Err(RunError::Trap(trap)) => match refer(func, &mut args.clone(), config) {
            Err(RunError::Trap(expected)) => {
                assert_same_trap(&trap, &expected);
                *trap
            }
            other => panic!("the reference interpreter has no trap, but {other:?}"),
        },
        other => panic!("expected a trap, got {other:?}"),
    }
}

/// Runs with 1, 2 and 7 threads, in three orders, with and without the race check, and in the reference interpreter.
/// Asserts that all results are equal and returns them.
pub(crate) fn run_in_all_configs(func: &PrimFunc, args: &Arguments) -> Arguments {
    let mut first = args.clone();
    refer(func, &mut first, &config(1)).unwrap();
    let mut others = vec![config(1), config(2), config(7), racing()];
    others.extend([Order::Reversed, Order::Shuffled(12345)].map(|order| Config { order, ..config(1) }));
    for config in others {
        let mut again = args.clone();
        execute(func, &mut again, &config).unwrap();
        for position in 0..args.params.len() {
            assert_same_values(again.tensor(position), first.tensor(position));
        }
    }
    first
}

/// Asserts that the fast engine leaves what the reference interpreter leaves, or traps as it does: with the race check, on
/// one thread, and, unless iterations race, on three. Returns the kind of the trap.
pub(crate) fn agree_everywhere(func: &PrimFunc, args: &Arguments, fuel: u64) -> Option<TrapKind> {
    let limited = |config: Config| Config { fuel: Some(fuel), ..config };
    let mut expected = args.clone();
    let reference = refer(func, &mut expected, &limited(config(1)));
    let is_race = |error: &RunError| matches!(error, RunError::Trap(trap) if trap.kind == TrapKind::Race);
    let races = execute(func, &mut args.clone(), &limited(racing())).is_err_and(|error| is_race(&error));
    let configs = if races { vec![config(1)] } else { vec![racing(), config(1), config(3)] };
    for config in configs {
        let mut got = args.clone();
        match (execute(func, &mut got, &limited(config)), &reference) {
            (Ok(report), Ok(expected_report)) => {
                assert_eq!(report.iterations, expected_report.iterations);
                for position in 0..args.params.len() {
                    assert_same_values(got.tensor(position), expected.tensor(position));
                }
            }
            (Err(RunError::Trap(trap)), Err(RunError::Trap(expected))) => assert_same_trap(&trap, expected),
            (got, expected) => panic!("{got:?}, not {expected:?}"),
        }
    }
    match reference {
        Err(RunError::Trap(trap)) => Some(trap.kind),
        Ok(_) | Err(RunError::Input(_)) => None,
    }
}
