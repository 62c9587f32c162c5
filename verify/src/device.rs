//! What the host passes to device functions.
//!
//! ```text
//! def main(A, n): for r in n: main_kernel(A.data, r)        def main_kernel(A_ptr, r): for i in 10 (blockIdx.x): A[i] = r
//! ```
//!
//! A call of a device function is an attribute of what it does ([`tilewright_ir::device`]), so a program with device functions is walked like
//! any other. What an attribute says changes nothing there. It has to be right all the same: a function that is written on its own has no other values than
//! its arguments, and what the host calls in parallel, or runs itself, is no launch of its own.

use tilewright_ir::device::{faults, has_device_functions};
use tilewright_ir::{DeviceCall, PrimFunc};

use crate::door::inspected;
use crate::judge::{Judge, Report, Side, unsupported};
use crate::method::Method;
use crate::obligation::Obligation;

impl Judge {
    /// Decides whether each device function of a program after a pass is passed what it uses; nothing if it has none.
    pub(crate) fn check_device_functions(after: &PrimFunc) -> Vec<Report> {
        if !has_device_functions(after) {
            return Vec::new();
        }
        let faults = faults(after);
        if let Some(fault) = faults.first() {
            let (reason, span) = (fault.message.clone(), fault.labels.first().map(|label| label.span));
            let report = Self::report(Obligation::Simulation, "device functions", || unsupported(reason));
            return vec![report.placed(Side::After, span)];
        }
        let mut reports = Vec::new();
        after.body.walk(&mut |stmt| {
            let Some(call) = DeviceCall::of(stmt) else { return };
            let subject = format!("what is passed to {}", call.name);
            let report =
                Self::report(Obligation::Simulation, subject, || (inspected(), Method::Inspection("device function")));
            reports.push(report.placed(Side::After, stmt.span));
        });
        reports
    }
}
