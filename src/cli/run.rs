//! run
use super::exit::ExitStatus;
use super::failure::Failure;
use super::options::Global;
use super::printer::Printer;
/// Run
#[derive(clap::Args, Debug)]
pub struct Args {}
pub fn run(_: &Args, _: &Global, _: &mut Printer) -> Result<ExitStatus, Failure> {
    Err(Failure::Internal(String::new()))
}
