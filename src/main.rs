//! The `tilewright` program. Everything that it does is in [`tilewright::cli`].

use std::process::ExitCode;

/// Expressions are trees of small boxes: a third of the time of a campaign was spent in the system's allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    tilewright::cli::main().into()
}
