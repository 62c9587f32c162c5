//! Programs with barriers, compared phase by phase.
//!
//! ```text
//! for tx in 8:                 for tx in 8: S[tx] = A[tx]
//!     S[tx] = A[tx]            for tx in 8: B[tx] = S[7 - tx]
//!     barrier
//!     B[tx] = S[7 - tx]
//! ```
//!
//! The definition of the language says what the phases of a program are ([`tilewright_ir::phases`]). A program without races means the
//! same as its phases: between two barriers, threads touch no element in common that one of them writes, so that they may as well
//! run one after the other, statement by statement. That both programs have no races, and uniform control flow around barriers, is asked of
//! both.
//!
//! The claim names both programs phase by phase. The judge makes them by itself and compares up to names, and then decides
//! whether these mean the same.
//!
//! Programs that differ in their barriers alone need less: a barrier that all threads get to changes nothing in a program without
//! races, because whatever it puts into an order touches no element in common that one side writes. So both programs mean what the one
//! with the barriers of both means.

use tilewright_ir::equal::funcs_equal;
use tilewright_ir::phases::{Barriers, barriers_removed, has_groups, without_barriers};
use tilewright_ir::{Comparison, Evidence, Phased, PrimFunc};

use crate::door::inspected;
use crate::judge::{Judge, Report, Side, unsupported};
use crate::method::Method;
use crate::obligation::Obligation;

impl Judge {
    /// Decides whether two programs mean the same by what they do phase by phase. What is asked of the program after alone is left to
    /// the caller.
    pub(crate) fn check_phased(
        &self,
        (before, after): (&PrimFunc, &PrimFunc),
        evidence: &Evidence,
        claim: &Phased,
    ) -> Vec<Report> {
        let stuck = |reason: String| vec![Self::report(Obligation::Simulation, "phases", || unsupported(reason))];
        let Evidence { pass: _, buffers, fills, guessed: _, comparison: _ } = evidence;
        if !buffers.is_empty() || !fills.is_empty() {
            return stuck("the buffers of a program with barriers are claimed to be moved".into());
        }
        if matches!(claim.evidence.comparison, Comparison::Phases(_)) {
            return stuck("a program without barriers is claimed to have some".into());
        }
        for (func, claimed) in [(before, &claim.before), (after, &claim.after)] {
            if let Err(reason) = has_phases(func, claimed) {
                return stuck(reason);
            }
        }
        let mut reports = self.check_pass(&claim.before, &claim.after, &claim.evidence);
        // Races and barriers, of the program before.
        reports.extend(self.of_before(self.check_program_on(Side::Before, before)));
        reports
    }

    /// Decides whether two programs mean the same that are claimed to differ in their barriers alone. What is asked of the program after
    /// alone, its races and barriers among it, is left to the caller.
    pub(crate) fn check_barriers_alone(
        &self,
        (before, after): (&PrimFunc, &PrimFunc),
        evidence: &Evidence,
    ) -> Vec<Report> {
        let mut reports = vec![Self::report(Obligation::Simulation, "the program apart from its barriers", || {
            if !evidence.buffers.is_empty() || !evidence.fills.is_empty() {
                return unsupported("the buffers of a program are claimed to be moved by barriers");
            }
            if funcs_equal(&bare(before), &bare(after), false) {
                (inspected(), Method::SameText)
            } else {
                unsupported("the programs differ in more than their barriers")
            }
        })];
        // Races and barriers, of the program before.
        reports.extend(self.of_before(self.check_program_on(Side::Before, before)));
        reports
    }
}

/// Says no to a comparison that takes loops over threads for loops whose iterations run one after the other, if there are barriers or
/// memory of a group.
pub(crate) fn across_barriers(before: &PrimFunc, after: &PrimFunc, evidence: &Evidence) -> Option<Report> {
    match &evidence.comparison {
        Comparison::Statements | Comparison::Phases(_) | Comparison::Barriers | Comparison::Packed => return None,
        Comparison::Iterations(_)
        | Comparison::Values(_)
        | Comparison::Definitions(_)
        | Comparison::Scalarized(_)
        | Comparison::Results => {}
    }
    let func = [before, after].into_iter().find(|func| has_groups(&func.body))?;
    let reason =
        format!("`{}` has barriers or memory that threads share, and is compared as if it had none", func.name);
    Some(Judge::report(Obligation::Simulation, "barriers", || unsupported(reason)))
}

/// A function without barriers, and without the attributes that ask for passes or tell other tools something.
fn bare(func: &PrimFunc) -> PrimFunc {
    let mut bare = barriers_removed(func);
    bare.attrs.other.clear();
    bare
}

/// Checks that a function runs phase by phase like the claimed one, up to names inside.
fn has_phases(func: &PrimFunc, claimed: &PrimFunc) -> Result<(), String> {
    let own = without_barriers(func, Barriers::Dropped).map_err(|faults| {
        let first = faults.into_iter().next().map(|fault| fault.message);
        first.unwrap_or_else(|| "the program has no phases".into())
    })?;
    // What the caller passes goes by the same names, since the claims about both programs speak of it.
    let is_same_call = claimed.params == func.params && claimed.symbols() == own.symbols();
    if is_same_call && funcs_equal(&own, claimed, false) {
        Ok(())
    } else {
        Err(format!("`{}` phase by phase is another program than claimed", func.name))
    }
}
