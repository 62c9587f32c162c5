//! The readers of TVMScript and TE.

use tilewright_ir::{Module, equal::modules_equal, validate};

use super::{CheckResult, presentable, read, same};
use crate::oracle::{Failure, Tally};
use tilewright_compiler::{pipeline, te};

/// Applies all readers of programs to a text. A program that is read is validated, lowered and printed.
pub(super) fn check_text(text: &str, tally: &mut Tally) -> CheckResult {
    if let Some(module) = read("TVMScript", text, tilewright_script::read_module(text), tally)? {
        prints(&module)?;
        for func in &module.funcs {
            if let Err(found) = validate(func) {
                // Diagnostics of validation have no spans in this text.
                presentable("validation", text, &found)?;
            }
        }
    }
    if let Some(tree) = read("TE", text, tilewright_script::te::read(text), tally)?
        && let Some(lowered) = read("TE evaluation", text, te::evaluate(&tree, None), tally)?
    {
        for lowered in lowered {
            presentable("TE warning", text, &lowered.warnings)?;
            if let Err(found) = validate(&lowered.func) {
                let first = found.first().map(ToString::to_string).unwrap_or_default();
                return Err(Failure::outcome("a lowered TE program does not validate", first));
            }
            prints(&Module { funcs: vec![lowered.func] })?;
        }
    }
    read("pipeline", text, pipeline::read(text, None), tally)?;
    Ok(())
}

/// Checks that a printed module reads back as the same module and prints as the same text. Names
/// may differ from those in the original text: they are printed in ASCII, as TVM does, and with a
/// number if an inner name shadows an outer one.
fn prints(module: &Module) -> CheckResult {
    let printed = tilewright_script::print_module(module);
    let back = tilewright_script::read_module(&printed);
    let is_same =
        back.map(|back| modules_equal(module, &back, false) && tilewright_script::print_module(&back) == printed);
    same("TVMScript", &printed, is_same)
}
