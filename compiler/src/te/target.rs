//! `tvm.target.Target(...)`: accepted, because programs say it; a warning names the options that change nothing here.
//!
//! ```text
//! target = tvm.target.Target("opencl -device=adreno")
//!                            ^^^^^^^^^^^^^^^^^^^^^^^ warning[target-options]: the option `-device=adreno` has no effect
//! ```
//!
//! Kernels are generated for any device with OpenCL 1.2, and what is special about one device is read from the device.

use tilewright_ir::{Diagnostic, Span};

use super::args::Args;
use super::eval::Interp;
use super::value::Value;

impl<'a> Interp<'a> {
    /// A call of `Target` or `create`: looks at every target that it is given, the host's too.
    pub(super) fn target(&mut self, mut args: Args<'a>) {
        let positional = args.rest();
        let keywords = args.keywords.into_iter().map(|(_, argument)| argument);
        for (value, span) in positional.into_iter().chain(keywords) {
            self.target_options(&value, span);
        }
    }

    /// Warns of the options of a target that is a text or a dictionary.
    pub(super) fn target_options(&mut self, target: &Value<'a>, span: Span) {
        let options: Vec<String> = match target {
            Value::Str(text) => {
                text.split_whitespace().filter(|word| word.starts_with('-')).map(str::to_owned).collect()
            }
            Value::Dict(entries) => {
                let keys =
                    entries.iter().filter_map(|(key, _)| if let Value::Str(key) = key { Some(key) } else { None });
                keys.filter(|key| &***key != "kind").map(ToString::to_string).collect()
            }
            _ => return,
        };
        if options.is_empty() {
            return;
        }
        let (noun, verb) = if options.len() == 1 { ("option", "has") } else { ("options", "have") };
        let message = format!("the target {noun} `{}` {verb} no effect", options.join("`, `"));
        let warning = Diagnostic::warning("target-options", Some(span), message).with_help(
            "kernels are generated for any OpenCL 1.2 device; `--device` chooses one, `--limits` says how large its textures are",
        );
        self.warnings.push(warning);
    }
}
