//! The `tilewright` program: everything it does is in [`tilewright::cli`].

use std::process::ExitCode;

/// Expressions are trees of small boxes: of the time of a campaign a third was the system's allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    tilewright::cli::main().into()
}
