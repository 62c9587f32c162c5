//! The reference interpreter as an engine.

use tilewright_interp::{Arguments, Config, RunError, TrapKind, run, run_definition};
use tilewright_ir::{Bindings, Stmt, StmtKind, validate};

use super::engine::{Engine, Fault, Program, Ran};

/// Most loop iterations of a program that is run, over all loops: minutes of work.
pub const MAX_ITERATIONS: u64 = 1 << 33;

fn too_long() -> String {
    format!("the loops have more than {MAX_ITERATIONS} iterations; smaller extents can be run")
}

/// How many iterations the loops have, guards apart; loops whose extents depend on others count as one.
pub fn n_iterations(stmt: &Stmt, symbols: &Bindings) -> u128 {
    let inside = stmt.children().into_iter().map(|child| n_iterations(child, symbols));
    let inside = inside.fold(0u128, u128::saturating_add);
    let StmtKind::For(inner) = &stmt.kind else { return inside };
    let extent = inner.extent.eval_index(symbols).unwrap_or(1);
    u128::try_from(extent).unwrap_or(0).saturating_mul(inside.saturating_add(1))
}

/// The interpreter with a configuration: threads, fuel, observers.
#[derive(Clone, Debug, Default)]
pub struct Interpreter {
    /// How programs are run.
    pub config: Config,
}

impl Engine for Interpreter {
    fn name(&self) -> &'static str {
        "interpreter"
    }

    fn device(&self) -> Option<String> {
        None
    }

    fn run(&self, program: &Program<'_>, symbols: &Bindings, arguments: &mut Arguments) -> Result<Ran, Fault> {
        if let Program::Func(func) = program
            && n_iterations(&func.body, symbols) > u128::from(MAX_ITERATIONS)
        {
            return Err(Fault::Skipped(too_long()));
        }
        let result = match program {
            Program::Definition(definition) => run_definition(definition, arguments, &self.config),
            Program::Func(func) => match validate(func) {
                Ok(valid) => run(valid, arguments, &self.config),
                Err(found) => {
                    let all: Vec<_> = found.iter().map(ToString::to_string).collect();
                    return Err(Fault::Error(all.join("; ")));
                }
            },
        };
        match result {
            Ok(report) => Ok(Ran {
                detail: format!("{} iterations, {} threads", report.iterations, report.threads),
                notes: Vec::new(),
            }),
            Err(RunError::Trap(trap)) if trap.kind == TrapKind::FuelExhausted => Err(Fault::Skipped(too_long())),
            Err(RunError::Trap(trap)) => {
                Err(Fault::Trap { message: trap.to_string(), is_undefined_read: trap.kind == TrapKind::Undefined })
            }
            Err(RunError::Input(error)) => Err(Fault::Error(error.to_string())),
        }
    }
}
