//! What the proofs say about a whole array, of which the picture may show only a part.
//!
//! A picture that shows every element shows collisions and places outside of memory, but not indices that leave their type.
//! A picture that is cut shows even less: in `lambda i: [i % 50000]` on 65537 elements, the first collision is far behind
//! the last element drawn.

use tilewright_ir::Expr;
use tilewright_verify::{Judge, Obligation, Report, Verdict};

use super::super::failure::Failure;
use super::super::map::judged;
use super::place::Subject;
use crate::report::draw::{DrawReport, MarkRow};

/// Adds the counterexample to the report, if the array is refuted, and to that of a cut picture the verdict.
///
/// # Errors
/// A fault of the judge, and a proof that contradicts what the picture shows.
pub(super) fn judge(subject: &Subject, judge: &Judge, report: &mut DrawReport) -> Result<(), Failure> {
    let extents: Vec<Expr> =
        subject.extents.iter().filter_map(|&extent| i64::try_from(extent).ok().map(Expr::int)).collect();
    let mut verdicts = judged(judge, &subject.map, &extents);
    // A place may be larger than needed.
    verdicts.retain(|verdict| verdict.obligation != Obligation::Tight);
    if let Some(fault) = verdicts.iter().find(|verdict| verdict.is_internal()) {
        return Err(Failure::Internal(open_reason(fault)));
    }
    let refuted = verdicts.iter().find_map(|verdict| match &verdict.verdict {
        Verdict::Refuted(found) => Some(found),
        _ => None,
    });
    let open = verdicts.iter().find(|verdict| !verdict.verdict.is_proved());
    if let Some(found) = refuted {
        let index = |index: &Vec<i128>| index.iter().map(|&at| u64::try_from(at).ok()).collect::<Option<Vec<_>>>();
        let indices: Vec<_> = found.indices.iter().filter_map(index).collect();
        for element in &mut report.elements {
            element.collides |= indices.len() > 1 && indices.contains(&element.logical);
        }
        report.counterexample = Some(MarkRow { indices, text: found.text.clone() });
    }
    let Some(cut) = &mut report.cut else { return Ok(()) };
    match (open, &report.counterexample) {
        // What the elements drawn show is true of the whole array, too.
        (Some(_), Some(_)) => cut.verdict = "refuted",
        (Some(open), None) => {
            cut.verdict = "unknown";
            cut.reason = Some(open_reason(open));
        }
        (None, Some(mark)) => {
            return Err(Failure::Internal(format!("the proofs find nothing wrong, but {}", mark.text)));
        }
        (None, None) => cut.verdict = "proved",
    }
    Ok(())
}

/// Which obligation is open, and why.
fn open_reason(report: &Report) -> String {
    let reason = report.verdict.reason().map(ToString::to_string).unwrap_or_default();
    format!("{} is {}: {reason}", report.obligation, report.verdict.word())
}
