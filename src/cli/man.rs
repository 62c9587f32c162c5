//! `tilewright man`: writes the man pages of `make dist` and `make install`, from the definition of the command line.

use std::io;
use std::path::{Path, PathBuf};

use clap::CommandFactory;

use super::Cli;
use super::exit::ExitStatus;
use super::failure::Failure;

/// Write the man pages, one a command
#[derive(clap::Args, Debug)]
#[command(hide = true)]
pub(super) struct Args {
    /// A folder
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

/// Writes `tilewright.1` and a page for each command that help lists.
///
/// # Errors
/// The folder cannot be written to.
pub(super) fn run(args: &Args) -> Result<ExitStatus, Failure> {
    write(&args.folder).map_err(|error| {
        let name = args.folder.display().to_string();
        Failure::plain(&name, "cannot-write", format!("cannot write man pages to {name}: {error}"))
    })?;
    Ok(ExitStatus::Success)
}

/// Writes the pages to a folder, which is made if it does not exist.
fn write(folder: &Path) -> io::Result<()> {
    std::fs::create_dir_all(folder)?;
    // `help` has no page of its own.
    clap_mangen::generate_to(Cli::command().disable_help_subcommand(true), folder)
}
