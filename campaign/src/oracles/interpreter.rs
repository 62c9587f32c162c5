//! Runs programs in the fast interpreter and in the reference interpreter: both have to leave the same values, bit for
//! bit, with the same elements undefined, or report the same trap at the same statement in the same iteration.
//!
//! The fast interpreter runs on one thread, on several, with the race check (which takes another path through it), and
//! without the check of undefined elements. Run are the program itself, the program after every pass, and versions that
//! trap: with a mistake, with an undefined element in every input, and with too little fuel.

use tilewright_interp::{
    Argument, Arguments, Config, Observers, Report, RunError, Tensor, Trap, TrapKind, reference, run,
};
use tilewright_ir::phases::has_groups;
use tilewright_ir::{PrimFunc, Validated, validate};

use crate::chain::{Chain, PaddingFill, error_kind, interpreter_config};
use crate::inputs::arguments;
use crate::mutate::mutated_program;
use crate::oracle::{Environment, Failure, Oracle, Outcome, Tally};
use crate::program::ProgramCase;

/// Number of programs with a mistake for each case.
const MISTAKES: u64 = 3;
/// Greatest number of iterations of a run. The reference interpreter takes a few microseconds for each.
const FUEL: u64 = 1 << 18;

/// An interpreter.
type Engine = fn(Validated<'_>, &mut Arguments, &Config) -> Result<Report, RunError>;

/// The oracle `interpreter`; see the module.
#[derive(Debug)]
pub struct Interpreter {
    /// The interpreter that is held against the reference.
    fast: Engine,
}

impl Interpreter {
    /// Creates the oracle.
    ///
    /// # Errors
    /// Never.
    pub fn new(_: &Environment) -> Result<Self, String> {
        Ok(Self { fast: run })
    }

    /// Compares all runs of a function on some arguments. Returns the number of iterations, or `None` if it traps.
    fn compare(
        &self,
        version: &str,
        func: &PrimFunc,
        inputs: &Arguments,
        fuel: Option<u64>,
        tally: &mut Tally,
    ) -> Result<Option<u64>, Outcome> {
        let Ok(valid) = validate(func) else { return Ok(None) };
        let config = Config { fuel: Some(fuel.unwrap_or(FUEL)), ..interpreter_config() };
        let result = |engine: Engine, config: &Config| {
            let mut args = inputs.clone();
            engine(valid, &mut args, config).map(|report| (report, args))
        };
        let observed = |defined, race| Config { observers: Observers { defined, race }, ..config.clone() };
        let racing = result(self.fast, &observed(true, true));
        let unwatched = observed(false, false);
        let (expected, unchecked) = (result(reference::run, &config), result(reference::run, &unwatched));
        let mut runs = vec![
            ("on one thread", &expected, result(self.fast, &config)),
            ("without the check of undefined elements", &unchecked, result(self.fast, &unwatched)),
        ];
        // The effect of iterations that race depends on their order, which only one thread keeps.
        if !matches!(&racing, Err(RunError::Trap(trap)) if trap.kind == TrapKind::Race) {
            let threads = |threads| result(self.fast, &Config { threads, ..config.clone() });
            // Without phases a barrier cannot be followed. That is an error of its own, which other runs do not have.
            match &racing {
                Err(RunError::Input(_)) => tally.saw("no race check"),
                _ => runs.push(("with the race check", &expected, racing)),
            }
            runs.push(("on 2 threads", &expected, threads(2)));
            runs.push(("on 5 threads", &expected, threads(5)));
        }
        let has_groups = has_groups(&func.body);
        for (mode, expected, got) in &runs {
            let found =
                if has_groups { group_differences(expected, got, tally) } else { differences(expected, got, tally) };
            found.map_err(|why| failure(version, mode, &why, func))?;
        }
        tally.count("programs compared", 1);
        match &expected {
            Ok((report, _)) => Ok(Some(report.iterations)),
            Err(error) => {
                tally.saw(&format!("trap:{}", error_kind(error)));
                Ok(None)
            }
        }
    }

    /// Compares all versions of a program.
    fn versions(&self, chain: &Chain, inputs: &Arguments, seed: u64, tally: &mut Tally) -> Result<(), Outcome> {
        let first = chain.links.first().ok_or_else(|| Outcome::Invalid("no program".into()))?;
        let iterations = self.compare("the program", &first.func, inputs, None, tally)?;
        let iterations = iterations.ok_or_else(|| Outcome::Invalid("the program stops".into()))?;
        for link in chain.links.iter().skip(1) {
            // Arguments without a place in the new layout are the business of the oracle `passes`.
            if let Ok(packed) = link.pack(inputs, PaddingFill::Undefined) {
                self.compare(link.pass, &link.func, &packed, None, tally)?;
            }
        }
        for number in 0..MISTAKES {
            let wrong = mutated_program(&first.func, seed.wrapping_mul(MISTAKES).wrapping_add(number));
            if let Ok(inputs) = arguments(&wrong, &first.symbols, seed) {
                self.compare("a program with a mistake", &wrong, &inputs, None, tally)?;
            }
        }
        self.compare("the program with an undefined element", &first.func, &with_holes(inputs, seed), None, tally)?;
        if iterations > 0 {
            self.compare("the program with little fuel", &first.func, inputs, Some(seed % iterations), tally)?;
        }
        Ok(())
    }
}

impl Oracle for Interpreter {
    type Case = ProgramCase;

    const NAME: &'static str = "interpreter";

    fn check(&mut self, case: &ProgramCase, tally: &mut Tally) -> Outcome {
        let (chain, inputs) = match Chain::of_case(case) {
            Ok(ready) => ready,
            Err(outcome) => return outcome,
        };
        self.versions(&chain, &inputs, case.seed(), tally).map_or_else(|outcome| outcome, |()| Outcome::Held)
    }
}

/// The failure that a run differs from the reference.
/// A failure of one version of a program in one mode, with the program as text.
///
/// ```text
/// the program after simplify, on 5 threads: B0[3] is 2.5 in the reference, 0.5 here
/// ```
fn failure(version: &str, mode: &str, why: &str, func: &PrimFunc) -> Outcome {
    let what = format!("{version} differs from the reference {mode}");
    Failure::outcome(what, format!("{why}\n{}", tilewright_script::print_func(func)))
}

/// The arguments with one undefined lane in every tensor that has a defined one. Reading it is a trap, which both
/// interpreters have to report at the same place. `seed` chooses the lane.
fn with_holes(inputs: &Arguments, seed: u64) -> Arguments {
    let mut inputs = inputs.clone();
    for argument in &mut inputs.params {
        let Argument::Tensor(tensor) = argument else { continue };
        let mut defined = tensor.defined().into_owned();
        let hole = usize::try_from(seed % (defined.len() as u64).max(1)).unwrap_or(0);
        if let Some(flag) = defined.get_mut(hole) {
            *flag = false;
        }
        if let Ok(holed) = Tensor::from_parts(tensor.dtype(), tensor.shape(), tensor.bytes().to_vec(), defined) {
            *tensor = holed;
        }
    }
    inputs
}

/// The result of a run: the report and the arguments after it.
type RunResult = Result<(Report, Arguments), RunError>;

/// Compares two runs; the error says what differs.
fn differences(expected: &RunResult, got: &RunResult, tally: &mut Tally) -> Result<(), String> {
    match (expected, got) {
        (Ok((expected, want)), Ok((report, have))) => {
            if expected.iterations != report.iterations {
                return Err(format!("{} iterations, not {}", report.iterations, expected.iterations));
            }
            same_arguments(want, have, tally)
        }
        (Err(RunError::Trap(expected)), Err(RunError::Trap(trap))) => {
            tally.count("traps compared", 1);
            let place = |trap: &Trap| (trap.kind, trap.loops.clone(), trap.statement.clone(), trap.span);
            if place(expected) == place(trap) { Ok(()) } else { Err(format!("{trap}, not {expected}")) }
        }
        (Err(RunError::Input(expected)), Err(RunError::Input(refused))) if expected.code == refused.code => Ok(()),
        (expected, got) => {
            let text = |result: &RunResult| result.as_ref().map_or_else(ToString::to_string, |_| "a result".to_owned());
            Err(format!("{}, not {}", text(got), text(expected)))
        }
    }
}

/// Compares two runs of a program whose threads wait for each other. The fast interpreter runs it phase by phase, so that it counts other
/// iterations, may be out of fuel elsewhere, and finds another one of several traps first.
fn group_differences(expected: &RunResult, got: &RunResult, tally: &mut Tally) -> Result<(), String> {
    let is_out_of_fuel =
        |result: &RunResult| matches!(result, Err(RunError::Trap(trap)) if trap.kind == TrapKind::FuelExhausted);
    match (expected, got) {
        _ if is_out_of_fuel(expected) || is_out_of_fuel(got) => Ok(()),
        (Ok((_, want)), Ok((_, have))) => same_arguments(want, have, tally),
        (Err(_), Err(_)) => {
            tally.count("traps of groups", 1);
            Ok(())
        }
        (Ok(_), Err(error)) => Err(format!("{error}, not a result")),
        (Err(error), Ok(_)) => Err(format!("a result, not {error}")),
    }
}

/// Compares what two runs left.
fn same_arguments(want: &Arguments, have: &Arguments, tally: &mut Tally) -> Result<(), String> {
    let tensors = (0..want.params.len()).filter_map(|at| Some((at, want.tensor(at)?, have.tensor(at)?)));
    for (at, want, have) in tensors {
        tally.count("values compared", want.lane_count() as u64);
        same_values(want, have).map_err(|why| format!("parameter {at}: {why}"))?;
    }
    Ok(())
}

/// Compares two tensors: the same lanes have to be defined and hold the same values, where any NaN equals any other.
fn same_values(want: &Tensor, have: &Tensor) -> Result<(), String> {
    if want.bytes() == have.bytes() && want.has_same_flags(have) {
        return Ok(());
    }
    let differs = |lane: &usize| match (want.get(*lane), have.get(*lane)) {
        (Some(want), Some(have)) => !want.same(have),
        (None, None) => false,
        (Some(_), None) | (None, Some(_)) => true,
    };
    match (0..want.lane_count()).find(differs) {
        None => Ok(()),
        Some(lane) => Err(format!("lane {lane} is {:?}, not {:?}", have.get(lane), want.get(lane))),
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use tilewright_ir::visit::Rewrite;
    use tilewright_ir::{BinaryOp, Expr, Scalar};

    use super::*;
    use crate::bytes;
    use crate::session::{Runner, Session};

    /// Runs the first cases with an interpreter, as many as `FUZZ_CASES` says; returns the first difference.
    fn first_failure(fast: Engine, default: u64) -> (Option<String>, Tally) {
        let cases = std::env::var("FUZZ_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(default);
        let mut runner = Session::new(move |_: &Environment| Ok(Interpreter { fast }), Environment::default()).unwrap();
        let mut tally = Tally::default();
        for number in 0..cases {
            let input = bytes::of_case(1, Interpreter::NAME, number);
            if let Some((_, finding)) = runner.run(&[input], &mut tally).into_iter().next() {
                return (Some(format!("{}\n{}", finding.failure.what, finding.failure.detail)), tally);
            }
        }
        (None, tally)
    }

    #[test]
    fn the_fast_interpreter_agrees_with_the_reference() {
        let (failure, tally) = first_failure(run, 40);
        assert_eq!(failure, None, "{tally:#?}");
        assert!(tally.valid_percent() >= 99.0, "{:#?}", tally.invalid);
        assert!(tally.counts["values compared"] > 100_000 && tally.counts["traps compared"] > 100, "{tally:#?}");
        for trap in ["OutOfBounds", "Undefined", "FuelExhausted"] {
            assert!(tally.coverage.contains_key(&format!("trap:{trap}")), "no program stops with {trap}");
        }
    }

    /// Replaces operators.
    struct Replaced(fn(BinaryOp) -> BinaryOp);

    impl Rewrite for Replaced {
        type Error = Infallible;

        fn expr(&mut self, expr: &Expr) -> Result<Expr, Infallible> {
            match self.expr_children(expr)? {
                Expr::Binary(op, a, b) => Ok(Expr::Binary(self.0(op), a, b)),
                other => Ok(other),
            }
        }
    }

    fn run_with(
        replace: fn(BinaryOp) -> BinaryOp,
        valid: Validated<'_>,
        args: &mut Arguments,
        config: &Config,
    ) -> Result<Report, RunError> {
        let Ok(body) = Replaced(replace).stmt(&valid.func().body);
        let func = PrimFunc { body, ..valid.func().clone() };
        run(validate(&func).unwrap(), args, config)
    }

    /// Interpreters with a mistake, and what it is.
    const WRONG: [(&str, Engine); 7] = [
        ("floor modulo truncates", |valid, args, config| {
            run_with(|op| if op == BinaryOp::FloorMod { BinaryOp::TruncMod } else { op }, valid, args, config)
        }),
        ("less is less or equal", |valid, args, config| {
            run_with(|op| if op == BinaryOp::Lt { BinaryOp::Le } else { op }, valid, args, config)
        }),
        ("the last lane of an output is lost", |valid, args, config| {
            let report = run(valid, args, config)?;
            if let Some(Argument::Tensor(tensor)) = args.params.last_mut() {
                let defined =
                    (0..tensor.lane_count()).map(|lane| lane + 1 < tensor.lane_count() && tensor.is_defined(lane));
                let bytes = tensor.bytes().to_vec();
                *tensor = Tensor::from_parts(tensor.dtype(), tensor.shape(), bytes, defined.collect()).unwrap();
            }
            Ok(report)
        }),
        ("what was not written is defined", |valid, args, config| {
            let report = run(valid, args, config)?;
            for argument in &mut args.params {
                let Argument::Tensor(tensor) = argument else { continue };
                for lane in 0..tensor.lane_count() {
                    if tensor.get(lane).is_none() {
                        tensor.set(lane, Scalar::Int(0));
                    }
                }
            }
            Ok(report)
        }),
        ("undefined elements may be read", |valid, args, config| {
            run(valid, args, &Config { observers: Observers { defined: false, ..config.observers }, ..config.clone() })
        }),
        ("there is always fuel", |valid, args, config| run(valid, args, &Config { fuel: None, ..config.clone() })),
        ("threads forget the iteration of a trap", |valid, args, config| {
            run(valid, args, config).map_err(|error| match error {
                RunError::Trap(mut trap) if config.threads > 1 => {
                    trap.loops.clear();
                    RunError::Trap(trap)
                }
                other => other,
            })
        }),
    ];

    #[test]
    fn an_interpreter_with_a_mistake_is_detected() {
        for (mistake, engine) in WRONG {
            let (failure, tally) = first_failure(engine, 60);
            assert!(failure.is_some(), "nothing notices that {mistake}: {tally:#?}");
        }
    }
}
