//! Runs a program in the interpreter before and after every pass; the first pass that changes the
//! result is reported.
//!
//! Outputs are compared bit by bit, and so is their definedness. Reads of undefined elements trap,
//! so reading the padding of a layout is detected. A pass that changes nothing is not counted.

use tilewright_interp::{Arguments, RunError, TrapKind};

use crate::chain::{Chain, ChainLink, PaddingFill, differences, error_kind, interpreter_config, written_params};
use crate::oracle::{Environment, Failure, Oracle, Outcome, Tally};
use crate::program::ProgramCase;

/// The oracle `passes`; see the module.
#[derive(Debug, Default)]
pub struct Passes;

impl Passes {
    /// Creates the oracle.
    ///
    /// # Errors
    /// Never.
    pub fn new(_: &Environment) -> Result<Self, String> {
        Ok(Self)
    }
}

impl Oracle for Passes {
    type Case = ProgramCase;

    const NAME: &'static str = "passes";

    fn check(&mut self, case: &ProgramCase, tally: &mut Tally) -> Outcome {
        let (chain, inputs) = match Chain::of_case(case) {
            Ok(ready) => ready,
            Err(outcome) => return outcome,
        };
        match same(&chain, &inputs, tally) {
            Ok(()) => chain.refused.map_or(Outcome::Held, Outcome::Undecided),
            Err(outcome) => outcome,
        }
    }
}

/// Checks that every program of a chain writes the same values.
pub(super) fn same(chain: &Chain, inputs: &Arguments, tally: &mut Tally) -> Result<(), Outcome> {
    let (input, after) = chain.links.split_first().ok_or_else(|| Outcome::Invalid("no program".into()))?;
    let is_written = written_params(&input.func);
    let mut left = inputs.clone();
    input
        .run(&mut left, &interpreter_config())
        .map_err(|error| Outcome::Invalid(format!("the program stops: {}", error_kind(&error))))?;
    let expected = input.unpack(&left, inputs, &is_written).map_err(Outcome::Invalid)?;
    let lanes: usize = expected.iter().flatten().map(tilewright_interp::Tensor::lane_count).sum();
    tally.count("output elements", lanes as u64);
    for link in after {
        let pass = link.pass;
        // Padding is undefined, so a pass that makes the program read it makes it trap.
        let mut packed = link.pack(inputs, PaddingFill::Undefined).map_err(|why| wrong(link, why))?;
        match link.run(&mut packed, &interpreter_config()) {
            Ok(_) => {}
            Err(RunError::Input(why)) => {
                return Err(Failure::outcome(
                    format!("{pass} makes what is no program: {}", why.code),
                    why.to_string(),
                ));
            }
            // It computes values again, in as many iterations as the loop has, and keeps the smallest box around those that
            // one iteration reads: more iterations or more memory than a run may take say nothing about the result.
            Err(RunError::Trap(trap)) if is_limit(trap.kind) && pass == "compute_at" => {
                return Err(Outcome::Undecided(format!("after {pass} it takes more than a run may: {:?}", trap.kind)));
            }
            Err(RunError::Trap(trap)) => {
                return Err(Failure::outcome(format!("{pass} makes it trap: {:?}", trap.kind), trap.to_string()));
            }
        }
        let outputs = link.unpack(&packed, inputs, &is_written);
        let outputs = outputs.map_err(|why| Failure::outcome(format!("{pass} loses the padding's value"), why))?;
        let (lanes, difference) = differences(&input.func, &expected, &outputs);
        tally.count("values compared", lanes);
        tally.saw(&format!("pass:{pass}"));
        if let Some(why) = difference {
            return Err(Failure::outcome(format!("{pass} changes the result"), why));
        }
    }
    Ok(())
}

/// Whether a trap tells of a limit of the run, not of a mistake in the program.
fn is_limit(kind: TrapKind) -> bool {
    matches!(kind, TrapKind::FuelExhausted | TrapKind::Memory)
}

/// The failure that a pass gives its arguments an impossible layout.
fn wrong(link: &ChainLink, why: String) -> Outcome {
    Failure::outcome(format!("{} moves its arguments to no place", link.pass), why)
}
