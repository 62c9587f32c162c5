//! Every stage on every engine.
use super::*;
use crate::report::CheckReport;
pub fn run(_: &Program, _: &Lowering, _: &Options, _: &mut Observer<'_>, _: &mut CheckReport) -> Result<(), Fault> {
    Ok(())
}
