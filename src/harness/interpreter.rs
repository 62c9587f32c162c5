//! The reference interpreter as an engine.

use tilewright_interp::{Arguments, Config, RunError, TrapKind, run, run_definition};
use tilewright_ir::{Bindings, validate};

use super::engine::{Engine, Fault, Program, Ran};

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

    fn run(&self, program: &Program<'_>, _: &Bindings, arguments: &mut Arguments) -> Result<Ran, Fault> {
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
            Ok(report) => Ok(Ran { detail: format!("{} iterations, {} threads", report.iterations, report.threads) }),
            Err(RunError::Trap(trap)) => {
                Err(Fault::Trap { message: trap.to_string(), is_undefined_read: trap.kind == TrapKind::Undefined })
            }
            Err(RunError::Input(error)) => Err(Fault::Error(error.to_string())),
        }
    }
}
