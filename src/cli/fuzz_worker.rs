//! `tilewright fuzz-worker`: a worker process of a campaign. It is started by `tilewright fuzz` and hidden from help.

use super::exit::ExitStatus;
use super::failure::Failure;
use super::options::Global;
use tilewright_campaign::Environment;
use tilewright_campaign::campaign::worker;
use tilewright_campaign::faults;
use tilewright_ir::sabotage;

/// Look at the cases that a coordinator sends
#[derive(clap::Args, Debug)]
#[command(hide = true)]
pub struct Args {
    /// A fault that is on
    #[arg(long, value_name = "NAME")]
    fault: Option<String>,
}

/// Answers requests on standard input until its end.
///
/// # Errors
/// The fault does not exist in this build, or the answers cannot be written.
pub fn run(args: &Args, global: &Global) -> Result<ExitStatus, Failure> {
    if let Some(name) = &args.fault {
        let fault = faults::by_name(name).filter(|_| sabotage::AVAILABLE);
        let fault = fault.ok_or_else(|| Failure::Internal(format!("no fault `{name}` can be switched on here")))?;
        sabotage::switch(Some(fault.name));
    }
    let (device, optimiser) = (super::fuzz::devices(global), super::device_worker::host());
    let environment = Environment { device, optimiser, ..Environment::default() };
    worker::serve(environment).map_err(|error| Failure::Internal(format!("nobody reads the answers: {error}")))?;
    Ok(ExitStatus::Success)
}
