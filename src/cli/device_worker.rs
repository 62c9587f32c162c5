//! `tilewright device-worker`: the process in which drivers run. It is started by this program and hidden from help.

use tilewright_device::{DeviceHost, Isolation, PATIENCE};

use super::exit::ExitStatus;
use super::failure::Failure;

/// The name of the command.
const NAME: &str = "device-worker";

/// Answer requests for OpenCL devices
#[derive(clap::Args, Debug)]
#[command(hide = true)]
pub(super) struct Args {}

/// A host that runs drivers in processes of this program, so that a driver that crashes does not take the proofs with it.
pub(super) fn host() -> DeviceHost {
    // If the system does not say where this program is, starting a worker fails, and that is reported.
    let program = std::env::current_exe().unwrap_or_else(|_| "tilewright".into());
    let arguments = vec![NAME.to_owned(), "--threads".to_owned(), "1".to_owned()];
    DeviceHost::new(Isolation::Process { program, arguments, patience: PATIENCE })
}

/// Answers requests on standard input until its end.
///
/// # Errors
/// The answers cannot be written, because the reader is gone.
pub(super) fn run(_: &Args) -> Result<ExitStatus, Failure> {
    tilewright_device::serve().map_err(|error| Failure::Internal(format!("the answers are not read: {error}")))?;
    Ok(ExitStatus::Success)
}
