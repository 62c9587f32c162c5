//! The reference interpreter as an engine.
//!
//! A program with very many loop iterations is skipped instead of run for hours: the number of iterations is computed
//! first where extents are known, and limited by the fuel of the configuration otherwise.

use tilewright_interp::{Arguments, Config, RunError, TrapKind, reference, run, run_definition};
use tilewright_ir::{Bindings, Stmt, StmtKind, validate};

use super::engine::{Engine, EngineFault, Ran, StageProgram};

/// The most loop iterations that are run, over all loops. More take longer than some minutes.
pub const MAX_ITERATIONS: u64 = 1 << 33;

/// The reason for skipping a program that is too large.
fn too_long(most: u64) -> String {
    format!("the loops have more than {most} iterations; smaller extents can be run")
}

/// Returns the number of iterations of all loops, ignoring guards. A loop whose extent depends on another loop counts
/// as one iteration.
pub fn n_iterations(stmt: &Stmt, symbols: &Bindings) -> u128 {
    let inside = stmt.children().map(|child| n_iterations(child, symbols));
    let inside = inside.fold(0u128, u128::saturating_add);
    let StmtKind::For(inner) = &stmt.kind else { return inside };
    let extent = inner.extent.eval_index(symbols).unwrap_or(1);
    u128::try_from(extent).unwrap_or(0).saturating_mul(inside.saturating_add(1))
}

/// The interpreter with a configuration: threads, fuel, observers.
#[derive(Clone, Debug, Default)]
pub struct Interpreter {
    /// The configuration of every run.
    pub config: Config,
    /// Whether functions are run by the reference interpreter, which is slow and short enough to be read, instead of the fast
    /// one. Definitions have one interpreter.
    pub is_reference: bool,
}

impl Engine for Interpreter {
    fn name(&self) -> &'static str {
        "interpreter"
    }

    fn device(&self) -> Option<String> {
        None
    }

    fn run(
        &self,
        program: &StageProgram<'_>,
        symbols: &Bindings,
        arguments: &mut Arguments,
    ) -> Result<Ran, EngineFault> {
        if let StageProgram::Func(func) = program
            && n_iterations(&func.body, symbols) > u128::from(MAX_ITERATIONS)
        {
            return Err(EngineFault::Skipped(too_long(MAX_ITERATIONS)));
        }
        let result = match program {
            StageProgram::Definition(definition) => run_definition(definition, arguments, &self.config),
            StageProgram::Func(func) => match validate(func) {
                Ok(valid) if self.is_reference => reference::run(valid, arguments, &self.config),
                Ok(valid) => run(valid, arguments, &self.config),
                Err(found) => {
                    let all: Vec<_> = found.iter().map(ToString::to_string).collect();
                    return Err(EngineFault::Error(all.join("; ")));
                }
            },
        };
        match result {
            Ok(report) => Ok(Ran {
                detail: format!("{} iterations, {} threads", report.iterations, report.threads),
                iterations: report.iterations,
                ..Ran::default()
            }),
            // Running out of fuel says nothing about the program, so it is no trap in the report.
            Err(RunError::Trap(trap)) if trap.kind == TrapKind::FuelExhausted => {
                Err(EngineFault::Skipped(too_long(self.config.fuel.unwrap_or(MAX_ITERATIONS))))
            }
            Err(RunError::Trap(trap)) => Err(EngineFault::Trap {
                message: trap.to_string(),
                is_undefined_read: trap.kind == TrapKind::Undefined,
            }),
            Err(RunError::Input(error)) => Err(EngineFault::Error(error.to_string())),
        }
    }
}
