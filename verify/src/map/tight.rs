//! Obligation tight: the physical shape is the smallest one, except on axes that are declared as padded.
//!
//! On every other axis some logical index is mapped to the last index. With symbolic extents a candidate for it is searched
//! for by evaluation on small shapes (`witness`), and given to Z3.
//!
//! ```text
//! lambda i: [i // 4]    on (17) into (6)    refuted: axis 0 has extent 6, but the largest index is 4
//! ```

use tilewright_ir::BinaryOp;

use super::case::{Case, briefly, certified, digits, empty, large, medium, small, wide};
use super::instance::{Answer, Graph, Instance, each_point, too_many};
use super::{Obligation, at, bits, value, witness};
use crate::door::All;
use crate::enumerate::{NodeId, largest};
use crate::judge::{Decision, attempt_of, method_of};
use crate::kernel::Failure;
use crate::method::Method;
use crate::obligation::Obligation as Id;
use crate::reason::Reason;
use crate::translate::Names;
use crate::verdict::{Counterexample, Verdict};

/// The physical shape is the smallest one, except on axes that are declared as padded.
pub(super) const OBLIGATION: Obligation =
    (Id::Tight, exhaustive, &[certified, empty, small, digits, bits::tight, medium, brief, wide, by_z3, large]);

/// The counterexample of an axis whose largest index is smaller than its extent allows.
pub(super) fn loose(instance: &Instance<'_>, axis: usize, largest: i128) -> Counterexample {
    let extent = instance.shape[axis];
    let text = format!("axis {axis} has extent {extent}, but the largest index is {largest}");
    at(instance.claim, &instance.symbols, &[], text)
}

/// Enumerates each axis over the logical axes that its output depends on.
fn exhaustive(instance: &Instance<'_>, limit: u64) -> Answer {
    let (mut points, mut open) = (0, None);
    for axis in (0..instance.shape.len()).filter(|axis| !instance.claim.padded.contains(axis)) {
        match exhaustive_axis(instance, axis, limit) {
            Answer::Holds(more) => points += more,
            Answer::Fails(found) => return Answer::Fails(found),
            Answer::Open(reason) => open = Some(reason),
        }
    }
    open.map_or(Answer::Holds(points), Answer::Open)
}

/// Decides one axis, by the range of its output if that is sufficient.
fn exhaustive_axis(instance: &Instance<'_>, axis: usize, limit: u64) -> Answer {
    let last = instance.shape[axis] - 1;
    let Some(graph) = &instance.graph else { return one_by_one(instance, axis, limit) };
    if let Some(holds) = graph.predicate {
        return restricted_axis(instance, graph, holds, axis, limit);
    }
    let (output, range) = (graph.outputs[axis], graph.builder.range(graph.outputs[axis]));
    let (low, high) = (i128::from(range.low), i128::from(range.high));
    let inside = (low..=high).contains(&last);
    if inside && (range.gap == Some(1) || (range.ends && (last == high || last == low))) {
        return Answer::Holds(0);
    }
    if !inside && range.ends {
        return Answer::Fails(loose(instance, axis, high));
    }
    let program = graph.builder.program(&[output]).filter(|program| program.points() <= limit);
    let Some(program) = program else { return too_many(limit) };
    match largest(&program, i64::try_from(last).unwrap_or(i64::MAX)) {
        (true, _) => Answer::Holds(program.points()),
        (false, largest) => Answer::Fails(loose(instance, axis, largest.into())),
    }
}

/// Decides one axis of a restricted claim by all points. Where the predicate does not hold, the output is replaced by a number
/// that is less than all of its values.
fn restricted_axis(instance: &Instance<'_>, graph: &Graph, holds: NodeId, axis: usize, limit: u64) -> Answer {
    let below = i128::from(graph.builder.range(graph.outputs[axis]).low) - 1;
    let replaced = || {
        let mut builder = graph.builder.clone();
        let (least, zero) = (builder.int(below)?, builder.int(0)?);
        let above = builder.binary(BinaryOp::Sub, graph.outputs[axis], least)?;
        let counts = builder.binary(BinaryOp::Ne, holds, zero)?;
        let value = builder.binary(BinaryOp::Mul, counts, above)?;
        builder.program(&[value])
    };
    let Some(program) = replaced().filter(|program| program.points() <= limit) else { return too_many(limit) };
    let wanted = instance.shape[axis] - 1 - below;
    // A wanted value of 0 or less is below all outputs.
    let wanted = if wanted < 1 { i64::MAX } else { i64::try_from(wanted).unwrap_or(i64::MAX) };
    match largest(&program, wanted) {
        (true, _) => Answer::Holds(program.points()),
        (false, largest) if largest < 1 => Answer::Open(Reason::undecided("the predicate holds nowhere")),
        (false, largest) => Answer::Fails(loose(instance, axis, i128::from(largest) + below)),
    }
}

/// Enumerates all points with the language's own evaluation, for maps that have no graph.
fn one_by_one(instance: &Instance<'_>, axis: usize, limit: u64) -> Answer {
    let (mut largest, mut reached) = (None, false);
    let answer = each_point(&instance.domain, limit, |point| {
        if !instance.claim.admits(point, &instance.symbols) {
            return None;
        }
        let image = instance.claim.map.eval(point, &instance.symbols).ok()?;
        reached |= image[axis] + 1 == instance.shape[axis];
        largest = largest.max(Some(image[axis]));
        None
    });
    match (answer, largest) {
        (Answer::Holds(points), _) if reached => Answer::Holds(points),
        (Answer::Holds(_), Some(largest)) => Answer::Fails(loose(instance, axis, largest)),
        (Answer::Holds(_), None) => Answer::Open(Reason::undecided("no index has an image")),
        (other, _) => other,
    }
}

/// Z3 with a small budget.
fn brief(case: &Case<'_>) -> Option<Decision> {
    briefly(case, by_z3)
}

/// Asks Z3, for each axis, about candidates for an index that reaches its end.
#[expect(clippy::unnecessary_wraps, reason = "the signature of a tier")]
fn by_z3(case: &Case<'_>) -> Option<Decision> {
    let mut names = Names::default();
    let mut question = case.claim.question(case.judge, &mut names);
    case.claim.assume(&mut question, &mut names, "");
    if let Err(failure) = value::shown_or_open(case.claim.map.outputs(), &mut names, &mut question) {
        return Some((Verdict::Unknown(failure.reason()), attempt_of(&question)));
    }
    let mut all = All::default();
    let mut methods: Vec<Method> = Vec::new();
    for axis in (0..case.claim.shape.len()).filter(|axis| !case.claim.padded.contains(axis)) {
        match by_witness(case, axis) {
            (Verdict::Proved(grounds), method) => {
                all.add(grounds);
                methods.push(method);
            }
            other => return Some(other),
        }
    }
    // In the order in which they are printed, each once.
    methods.sort_by_cached_key(Method::to_string);
    methods.dedup();
    Some((all.proved(), if methods.is_empty() { Method::AllPadded } else { Method::Each(methods) }))
}

/// Asks Z3 whether one of the candidates reaches the end of an axis.
fn by_witness(case: &Case<'_>, axis: usize) -> Decision {
    let mut reason = Reason::undecided(format!("no index was found that reaches the end of axis {axis}"));
    let mut method = Method::Nothing;
    // A new question for each candidate: the index is given by terms here, so the premises of other tiers about a general
    // index are not needed.
    for cases in witness::candidates(case, axis) {
        let mut names = Names::default();
        let mut question = case.claim.question(case.judge, &mut names);
        for extent in case.claim.map.domain() {
            let extent = names.term(extent);
            question.assume(&extent.at_least(1), "the domain has an index");
        }
        let from = question.steps().len();
        let goal = witness::goal(case, axis, &cases, &mut names);
        match question.settle(&goal) {
            Ok(grounds) => {
                question.keep_proof("map tight");
                return (Verdict::Proved(grounds), Method::WithWitness(Box::new(method_of(&question, from))));
            }
            Err(failure @ Failure::Internal(_)) => return (Verdict::Unknown(failure.reason()), Method::Z3),
            Err(failure) => {
                reason = failure.reason().after(&format!("that {cases} reaches the end of axis {axis}: "));
                method = attempt_of(&question);
            }
        }
    }
    (Verdict::Unknown(reason), method)
}
