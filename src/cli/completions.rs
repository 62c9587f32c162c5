//! `tilewright completions`: completions for a shell, generated from the definition of the command line.

use clap::CommandFactory;
use clap_complete::Shell;

use super::Cli;
use super::exit::ExitStatus;
use super::failure::Failure;
use super::printer::Printer;

/// Print completions for a shell
#[derive(clap::Args, Debug)]
#[command(
    after_help = "Example:\n  tilewright completions bash > ~/.local/share/bash-completion/completions/tilewright"
)]
pub struct Args {
    /// The shell
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

/// Prints the completion script.
///
/// # Errors
/// Standard output cannot be written.
pub fn run(args: &Args, printer: &mut Printer) -> Result<ExitStatus, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "tilewright", &mut script);
    printer.result(&String::from_utf8_lossy(&script))?;
    Ok(ExitStatus::Success)
}
