//! What holds of the program after because it holds of the program before.
//!
//! ```text
//! for i in 5: B[i] = A[I[i]]        for i in 5: B[4 - i] = A[I[4 - i]]
//! ```
//!
//! Nobody knows whether `I[i]` is inside of `A`, so neither program can be shown to stay in its buffers by itself. But the walk along
//! a correspondence ([`crate::lockstep`]) makes each access after the image of an access before, at the same time: if the program
//! before stays in its buffers, so does the program after. What is taken for granted of the program before is a premise that the
//! report lists. Pairs of foreign programs are judged like that ([`Judge::taking_over`]); our own passes are shown by themselves.

use tilewright_ir::{Comparison, Evidence, Expr, PrimFunc, StmtKind};

use crate::access::{accesses, bounds};
use crate::door::inspected;
use crate::judge::{Judge, Report};
use crate::lockstep::{Goal, GoalKind};
use crate::method::Method;
use crate::obligation::Obligation;
use crate::path::settled_sites;
use crate::reason::Reason;
use crate::verdict::Verdict;

/// Whether each access of the program after is the image of an access before, if these goals hold:
///
/// - no padding is filled, and no lane is written that had no value;
/// - nothing is read that was not, by a condition that is asked earlier or by a choice that evaluates both sides;
/// - what decides what runs where iterations were reordered is shown to be inside by itself: what a condition reads is not paired then.
///
/// That a buffer of the program after lies inside of its memory is not taken over ([`Judge::check_views`]).
/// Other comparisons than these two speak of values, which other accesses may give.
pub(crate) fn is_each_access_paired(judge: &Judge, after: &PrimFunc, evidence: &Evidence, goals: &[Goal]) -> bool {
    let is_more = |goal: &Goal| matches!(goal.kind, GoalKind::Unread(_) | GoalKind::Alone(_) | GoalKind::Early);
    let is_of_accesses = matches!(evidence.comparison, Comparison::Statements | Comparison::Iterations(_));
    let is_reordered = matches!(evidence.comparison, Comparison::Iterations(_));
    let is_unpaired = goals.iter().any(is_more) || has_eager_loads(after);
    let is_paired = is_of_accesses && evidence.fills.is_empty() && !is_unpaired;
    is_paired && (!is_reordered || is_decided_inside(judge, after))
}

/// Whether iterations were reordered that store at an index which is read from memory. Such indices are compared as values, which may
/// wrap, and not as integers.
pub(crate) fn has_scattered(evidence: &Evidence, after: &PrimFunc) -> bool {
    let mut found = false;
    after.body.walk(&mut |stmt| {
        found |= matches!(&stmt.kind, StmtKind::Store { indices, .. } if indices.iter().any(Expr::reads_memory));
    });
    found && matches!(evidence.comparison, Comparison::Iterations(_))
}

/// Whether all that conditions and loops read is inside of its buffer.
fn is_decided_inside(judge: &Judge, func: &PrimFunc) -> bool {
    let decides = |kind: &StmtKind| match kind {
        StmtKind::If { .. } | StmtKind::For(_) => true,
        StmtKind::Seq(_)
        | StmtKind::Store { .. }
        | StmtKind::Allocate { .. }
        | StmtKind::DeclBuffer { .. }
        | StmtKind::Let { .. }
        | StmtKind::Evaluate(_)
        | StmtKind::Barrier
        | StmtKind::Attr { .. }
        | StmtKind::Assert { .. } => false,
    };
    let sites = settled_sites(func);
    let mut read = sites.iter().filter(|site| decides(&site.stmt.kind)).flat_map(accesses);
    read.all(|access| bounds(judge, &access).0.is_proved())
}

/// Whether a `select`, which evaluates both sides, reads memory.
fn has_eager_loads(func: &PrimFunc) -> bool {
    let mut found = false;
    func.body.walk(&mut |stmt| {
        for expr in stmt.exprs() {
            expr.walk(&mut |part| {
                found |= matches!(part, Expr::Select(_, a, b) if a.reads_memory() || b.reads_memory());
            });
        }
    });
    found
}

impl Judge {
    /// The reports about the program after alone. Those of `obligations` that are open hold if they hold of the program before; those that
    /// do not hold are no difference between the two.
    pub(crate) fn given(&self, obligations: &[Obligation], mut reports: Vec<Report>) -> Vec<Report> {
        let obligations = if self.takes_over { obligations } else { &[] };
        for report in reports.iter_mut().filter(|report| obligations.contains(&report.obligation)) {
            match &report.verdict {
                Verdict::Unknown(reason) if !reason.is_internal() => {
                    (report.verdict, report.method) = (inspected(), Method::Before);
                    report.proof.clear();
                }
                Verdict::Refuted(found) => {
                    let text = format!("it does not hold of the program before, either: {found}");
                    report.verdict = Verdict::Unknown(Reason::undecided(text));
                }
                Verdict::Unknown(_) | Verdict::Proved(_) | Verdict::Vacuous(_) | Verdict::Skipped(_) => {}
            }
        }
        reports
    }

    /// The reports about the program before alone, as parts of a comparison of foreign programs: what is wrong with it is no difference
    /// between the two.
    pub(crate) fn of_before(&self, mut reports: Vec<Report>) -> Vec<Report> {
        for report in reports.iter_mut().filter(|_| self.takes_over) {
            if let Verdict::Refuted(found) = &report.verdict {
                let text = format!("the program before is wrong by itself: {found}");
                report.verdict = Verdict::Unknown(Reason::undecided(text));
            }
        }
        reports
    }
}
