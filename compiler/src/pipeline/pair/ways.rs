//! The ways in which two functions may be proved equal, one after the other, and why each of them did not.
//!
//! ```text
//! lockstep       statement by statement           A[i] + 1 is not A[i] - 1
//! loops          iteration by iteration           a store after corresponds to no store before
//! values         value by value                   `T[i]` is written, and decides which element is accessed
//! definitions    by what both compute             the program after is not lifted: ...
//! results        both run on terms                the shapes are symbolic
//! ```
//!
//! Programs with vectors are compared in the middle three ways without them, and programs with barriers phase by phase in all ways but
//! the first.

use tilewright_ir::{Buffer, Comparison, Evidence, PrimFunc, StmtKind};
use tilewright_verify::{Judge, Obligation, Reason, ReasonKind, Report, Side, Verdict};

use super::grouped::Grouped;
use super::vectors::Scalar;
use crate::pipeline::executed::{self, Model};
use crate::pipeline::findings::{Tried, Way};
use crate::{flow, lift, reorder};

/// Two functions that correspond as the evidence says.
#[derive(Clone, Copy)]
pub(super) struct Pair<'a> {
    pub(super) before: &'a PrimFunc,
    pub(super) after: &'a PrimFunc,
    /// The claims about buffers.
    pub(super) evidence: &'a Evidence,
    /// Whether every buffer after has a counterpart. If not, only values and results can be compared.
    pub(super) is_whole: bool,
    /// Whether reductions of floats may be taken in another order.
    pub(super) reassociate: bool,
    /// Both without vectors, if there are any.
    pub(super) scalar: Option<&'a Scalar>,
    /// Both phase by phase, if there are barriers, or why they have no phases.
    pub(super) grouped: &'a Result<Option<Grouped>, String>,
}

/// What the judge said of a pair.
pub(super) struct Judgement {
    /// The claims of the way that proves the pair; if none does, of the one that leaves the least open.
    pub(super) evidence: Evidence,
    /// The reports about these claims.
    pub(super) reports: Vec<Report>,
    /// The ways that did not prove it.
    pub(super) tried: Vec<Tried>,
    /// Values at which something failed in some way.
    pub(super) models: Vec<Model>,
}

impl Pair<'_> {
    /// Asks the judge about one way after the other, until one proves the pair.
    pub(super) fn judged(&self, judge: &Judge) -> Judgement {
        let mut best: Option<(Evidence, Vec<Report>)> = None;
        let (mut tried, mut models) = (Vec::new(), Vec::new());
        for way in [Way::Lockstep, Way::Loops, Way::Values, Way::Definitions, Way::Results] {
            if best.is_some() && judge.is_over() {
                tried.push(Tried { way, why: "not tried: the time for this pair is over".into() });
                continue;
            }
            let evidence = match self.claim(way, best.is_some()) {
                Ok(evidence) => evidence,
                Err(why) => {
                    tried.push(Tried { way, why });
                    continue;
                }
            };
            let reports = judge.check_pass(self.before, self.after, &evidence);
            let left = open(&reports).count();
            if left == 0 {
                return Judgement { evidence, reports, tried, models };
            }
            models.extend(executed::models(&reports));
            tried.push(Tried { way, why: why_open(&reports) });
            // A failed comparison of values or results says less than one with a place.
            let is_inside = matches!(way, Way::Lockstep | Way::Loops);
            if best.as_ref().is_none_or(|(_, best)| is_inside && left < open(best).count()) {
                best = Some((evidence, reports));
            }
        }
        let (evidence, reports) = best.unwrap_or_else(|| (self.evidence.clone(), Vec::new()));
        Judgement { evidence, reports, tried, models }
    }

    /// The claims of a way, if it can be taken. Results of symbolic shapes are compared only if there is no other way, so that there
    /// is a report.
    pub(super) fn claim(&self, way: Way, has_other: bool) -> Result<Evidence, String> {
        let Self { before, after, evidence, .. } = *self;
        if way != Way::Lockstep
            && let Some(grouped) = self.grouped.as_ref().map_err(Clone::clone)?
        {
            return grouped.claim(way, self.reassociate, has_other);
        }
        if let (Way::Loops | Way::Values | Way::Definitions, Some(scalar)) = (way, self.scalar) {
            return scalar.claim(way, self.reassociate);
        }
        match way {
            Way::Lockstep | Way::Loops if !self.is_whole => {
                Err("a buffer inside of the function after has no counterpart".into())
            }
            Way::Lockstep | Way::Run => Ok(evidence.clone()),
            Way::Loops => {
                let claim = reorder::find(before, after, evidence)?;
                Ok(Evidence { comparison: Comparison::Iterations(claim), ..evidence.clone() })
            }
            Way::Values => with_values(before, after, evidence),
            Way::Definitions => with_definitions(before, after, evidence, self.reassociate),
            Way::Results if has_other && !is_constant(before) => Err("a shape is symbolic".into()),
            Way::Results => Ok(of_params(before, Evidence { comparison: Comparison::Results, ..evidence.clone() })),
        }
    }
}

/// Takes back what refutes the program after alone if the program before is wrong in the same way: without a run in which they differ,
/// that is no difference.
pub(super) fn take_back(judge: &Judge, before: &PrimFunc, after: &PrimFunc, reports: &mut [Report]) {
    let is_refuted = |report: &Report| matches!(report.verdict, Verdict::Refuted(_));
    let is_after = |report: &Report| report.place.is_some_and(|place| place.side == Side::After);
    if !reports.iter().any(|report| is_refuted(report) && is_after(report)) {
        return;
    }
    take_back_bindings(after, reports);
    let wrong: Vec<Obligation> = judge
        .check_program(before)
        .iter()
        .filter(|report| is_refuted(report))
        .map(|report| report.obligation)
        .collect();
    for report in reports.iter_mut().filter(|report| is_after(report) && wrong.contains(&report.obligation)) {
        if let Verdict::Refuted(found) = &report.verdict {
            let text = format!("it does not hold of the program before, either: {found}");
            report.verdict = Verdict::Unknown(Reason::new(ReasonKind::Undecided, text));
        }
    }
}

/// Takes back that the value of a binding of the program after leaves its type. The value wraps, which changes something only where it is
/// used: a binding may have been moved above the condition under which it is.
fn take_back_bindings(after: &PrimFunc, reports: &mut [Report]) {
    let mut bindings = Vec::new();
    after.body.walk(&mut |stmt| {
        if let (StmtKind::Let { .. }, Some(span)) = (&stmt.kind, stmt.span) {
            bindings.push(span);
        }
    });
    let is_binding = |report: &Report| {
        let place = report.place.filter(|place| place.side == Side::After);
        report.obligation == Obligation::Overflow && place.is_some_and(|place| bindings.contains(&place.span))
    };
    for report in reports.iter_mut().filter(|report| is_binding(report)) {
        if let Verdict::Refuted(found) = &report.verdict {
            let text = format!("the value of a binding wraps, which matters only where it is used: {found}");
            report.verdict = Verdict::Unknown(Reason::new(ReasonKind::Undecided, text));
        }
    }
}

/// The reports that are not proved.
fn open(reports: &[Report]) -> impl Iterator<Item = &Report> {
    reports.iter().filter(|report| !report.verdict.is_proved())
}

/// The first obligation that is not proved, with the reason, and how many more there are.
fn why_open(reports: &[Report]) -> String {
    let Some(first) = open(reports).next() else { return "nothing was to be proved".into() };
    let reason = match &first.verdict {
        Verdict::Refuted(found) => found.to_string(),
        other => other.reason().map(ToString::to_string).unwrap_or_default(),
    };
    let more = match open(reports).count() - 1 {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    format!("{} of {} is {}: {reason}{more}", first.obligation, first.subject, first.verdict.word())
}

/// The claims about parameters, and where the values come from.
///
/// # Errors
/// Why they cannot be compared like that.
pub(super) fn with_values(before: &PrimFunc, after: &PrimFunc, evidence: &Evidence) -> Result<Evidence, String> {
    let evidence = of_params(before, Evidence { comparison: Comparison::default(), ..evidence.clone() });
    let claim = flow::find(before, after, &evidence)?;
    Ok(Evidence { comparison: Comparison::Values(claim), ..evidence })
}

/// The claims about parameters, and what both functions compute.
///
/// # Errors
/// Why one of them is not lifted, or which definitions are not paired.
pub(super) fn with_definitions(
    before: &PrimFunc,
    after: &PrimFunc,
    evidence: &Evidence,
    reassociate: bool,
) -> Result<Evidence, String> {
    let evidence = of_params(before, Evidence { comparison: Comparison::default(), ..evidence.clone() });
    let claim = lift::find(before, after, &evidence, reassociate)?;
    Ok(Evidence { comparison: Comparison::Definitions(Box::new(claim)), ..evidence })
}

/// The claims about parameters alone.
fn of_params(before: &PrimFunc, mut evidence: Evidence) -> Evidence {
    let is_param = |buffer: &Buffer| before.buffer_map.iter().any(|(_, param)| param == buffer);
    evidence.buffers.retain(|claim| is_param(&claim.before));
    evidence
}

/// Whether all parameters have constant shapes.
fn is_constant(func: &PrimFunc) -> bool {
    func.buffer_map.iter().all(|(_, buffer)| buffer.const_shape().is_some())
}
