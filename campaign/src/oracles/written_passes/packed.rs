//! Calls of functions that check the description of their call: the right one, and wrong ones in each part.

use tilewright_interp::{Argument, Arguments, RunError, TrapKind};
use tilewright_ir::convention::packed_fields;
use tilewright_ir::{PrimFunc, Scalar, validate};

use crate::chain::{ChainLink, described, differences, interpreter_config};
use crate::oracle::{Failure, Outcome, Tally};

/// Calls a function after `make_packed_api` with the right description, which has to leave what the function before leaves, and with
/// one part that is one more or one less, which has to be refused.
///
/// # Errors
/// The failure; or [`Outcome::Undecided`] if the function before stops.
pub(super) fn calls(
    before: &ChainLink,
    after: &PrimFunc,
    inputs: &Arguments,
    tally: &mut Tally,
) -> Result<(), Outcome> {
    let fields = packed_fields(&before.func);
    let Some(right) = described(&before.func, &fields, inputs, &before.symbols) else {
        return Err(Outcome::Undecided("a description has no value".into()));
    };
    let mut left = inputs.clone();
    before.run(&mut left, &interpreter_config()).map_err(|_| Outcome::Undecided("the program stops".into()))?;
    let called = call(after, inputs, &right)
        .map_err(|error| Failure::outcome("make_packed_api refuses a right call", error.to_string()))?;
    let tensors =
        |arguments: &Arguments| (0..inputs.params.len()).map(|at| arguments.tensor(at).cloned()).collect::<Vec<_>>();
    if let Some(how) = differences(&before.func, &tensors(&left), &tensors(&called)).1 {
        return Err(Failure::outcome("make_packed_api changes the result", how));
    }
    for (place, field) in fields.iter().enumerate().filter(|(_, field)| field.value.is_some()) {
        for by in [-1, 1] {
            let mut wrong = right.clone();
            wrong[place] += by;
            match call(after, inputs, &wrong) {
                Err(RunError::Trap(trap)) if trap.kind == TrapKind::Assertion => tally.count("wrong calls refused", 1),
                Ok(_) => return Err(Failure::outcome("make_packed_api accepts a wrong call", field.text.clone())),
                Err(error) => {
                    let text = format!("{}: {error}", field.text);
                    return Err(Failure::outcome("make_packed_api does not refuse a wrong call", text));
                }
            }
        }
    }
    Ok(())
}

/// A call with a description.
fn call(func: &PrimFunc, inputs: &Arguments, description: &[i128]) -> Result<Arguments, RunError> {
    let mut arguments = inputs.clone();
    arguments.params.extend(description.iter().map(|value| Argument::Scalar(Scalar::Int(*value))));
    let valid = validate(func).map_err(|mut found| RunError::Input(found.swap_remove(0)))?;
    tilewright_interp::run(valid, &mut arguments, &interpreter_config())?;
    Ok(arguments)
}
