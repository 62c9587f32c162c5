//! The `tilewright` program: everything it does is in [`tilewright::cli`].

use std::process::ExitCode;

fn main() -> ExitCode {
    tilewright::cli::main().into()
}
