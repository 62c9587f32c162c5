//! Two programs that are the same up to the names of variables and buffers: what the one does, the other does.
//!
//! ```text
//! for i in n: if i > 0 and 6 // i >= 3: B[i] = A[i]        for j in k: if j > 0 and 6 // j >= 3: D[j] = C[j]
//! ```
//!
//! Nothing has to be followed for that, not even a statement that the judge cannot follow. What is asked of one program alone
//! (bounds, overflow, race, defined) is decided as ever; what is left open holds if it holds of the program before.

use tilewright_ir::equal::funcs_equal;
use tilewright_ir::{BufferClaim, Evidence, Expr, PrimFunc};

use crate::access::Base;
use crate::door::inspected;
use crate::judge::{Judge, Report, Side};
use crate::method::Method;
use crate::obligation::Obligation;

impl Judge {
    /// Decides about two programs of which [`is_same`] holds.
    pub(crate) fn check_same(&self, after: &PrimFunc) -> Vec<Report> {
        let base = Base::new(self, after, &after.buffers());
        let mut reports = vec![Self::report(Obligation::Simulation, "the program is the same up to names", || {
            (inspected(), Method::Inspection("same program"))
        })];
        reports.extend(self.given(&Obligation::ALL, self.check_program_on(Side::After, after)));
        base.grounded(reports)
    }
}

/// Whether two programs are the same up to names, and nothing is claimed to have moved: a caller passes to both the same
/// arguments in the same places.
pub(crate) fn is_same(before: &PrimFunc, after: &PrimFunc, evidence: &Evidence) -> bool {
    let Evidence { pass: _, buffers, fills, guessed: _, comparison: _ } = evidence;
    fills.is_empty() && buffers.iter().all(moves_nothing) && funcs_equal(before, after, false)
}

fn moves_nothing(claim: &BufferClaim) -> bool {
    let index = claim.map.vars().iter().map(Expr::from);
    claim.map.outputs().len() == index.len() && index.zip(claim.map.outputs()).all(|(index, output)| index == *output)
}
