//! Obligation tight: the physical shape is the smallest one, except on axes that are declared as padded.
//!
//! On every other axis some logical index is mapped to the last index. With symbolic extents a candidate for it is searched
//! for by evaluation on small shapes (`witness`), and given to Z3.
//!
//! ```text
//! lambda i: [i // 4]    on (17) into (6)    refuted: axis 0 has extent 6, but the largest index is 4
//! ```

use std::sync::{Mutex, PoisonError};

use tilewright_ir::sabotage;

use super::case::{Case, Loops, briefly, certified, digits, empty, large, medium, small, wide};
use super::instance::{Answer, Instance, count, first_point, too_many};
use super::{Obligation, at, bits, fast, value, witness};
use crate::door::All;
use crate::judge::{Decision, attempt_of, method_of};
use crate::kernel::Failure;
use crate::method::Method;
use crate::obligation::Obligation as Id;
use crate::reason::Reason;
use crate::translate::Names;
use crate::verdict::{Counterexample, Verdict};

/// How all points are looked at: there is nothing to find fast.
const LOOPS: Loops = Loops { fast: |_, _| fast::Seen::Unfit, plain: everywhere };

/// The physical shape is the smallest one, except on axes that are declared as padded.
pub(super) const OBLIGATION: Obligation =
    (Id::Tight, LOOPS, &[certified, empty, small, digits, bits::tight, medium, brief, wide, large, by_z3]);

/// The counterexample of an axis whose largest index is smaller than its extent allows.
pub(super) fn loose(instance: &Instance<'_>, axis: usize, largest: i128) -> Counterexample {
    let extent = instance.shape[axis];
    let text = format!("axis {axis} has extent {extent}, but the largest index is {largest}");
    at(instance.claim, &instance.symbols, &[], text)
}

/// Whether the map takes an index of the domain to the last index of an axis.
pub(super) fn reaches(instance: &Instance<'_>, axis: usize, index: &[i128]) -> bool {
    let is_inside = index.iter().zip(&instance.domain).all(|(at, extent)| (0..*extent).contains(at));
    let image = instance.claim.map.eval(index, &instance.symbols);
    is_inside
        && index.len() == instance.domain.len()
        && (instance.claim.admits(index, &instance.symbols) || sabotage::on("any-index-reaches"))
        && image.is_ok_and(|image| image[axis] + 1 == instance.shape[axis])
}

/// Looks at each output at the points of the axes that it depends on, until one reaches the end.
fn everywhere(instance: &Instance<'_>, limit: u64) -> Answer {
    let mut points = 0u64;
    for axis in (0..instance.shape.len()).filter(|axis| !instance.claim.padded.contains(axis)) {
        let extents = instance.box_over(instance.axes_of(axis));
        // Most outputs are greatest at the last index.
        let last: Vec<i128> = extents.iter().map(|extent| extent - 1).collect();
        if reaches(instance, axis, &last) {
            points += 1;
            continue;
        }
        let Some(count) = count(&extents).filter(|count| *count <= limit) else { return too_many(limit) };
        if first_point(instance.judge, &extents, |index| reaches(instance, axis, index).then_some(())).is_none() {
            return match largest(instance, axis, &extents) {
                Some(largest) => Answer::Fails(loose(instance, axis, largest)),
                None => Answer::Open(Reason::undecided("an index has no image")),
            };
        }
        points = points.saturating_add(count);
    }
    Answer::Holds(points)
}

/// The largest value of an output in a box where the predicate holds; `None` if an index has no image, so that one outside of the
/// box may have a larger value.
fn largest(instance: &Instance<'_>, axis: usize, extents: &[i128]) -> Option<i128> {
    let largest = Mutex::new(None);
    let without_image = |index: &[i128]| {
        if !instance.claim.admits(index, &instance.symbols) {
            return None;
        }
        let Ok(image) = instance.claim.map.eval(index, &instance.symbols) else { return Some(()) };
        let mut largest = largest.lock().unwrap_or_else(PoisonError::into_inner);
        *largest = (*largest).max(Some(image[axis]));
        None
    };
    let is_partial = first_point(instance.judge, extents, without_image).is_some();
    largest.into_inner().unwrap_or_else(PoisonError::into_inner).filter(|_| !is_partial)
}

/// Z3 with a small budget.
fn brief(case: &Case<'_>) -> Option<Decision> {
    briefly(case, by_z3)
}

/// Asks Z3, for each axis, about candidates for an index that reaches its end.
#[expect(clippy::unnecessary_wraps, reason = "the signature of a tier")]
pub(super) fn by_z3(case: &Case<'_>) -> Option<Decision> {
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
    let memory = &case.judge.memory;
    for cases in witness::candidates(case, axis, memory.reaching(case.text(), axis)) {
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
                memory.remember_reaching(case.text(), axis, &cases.places);
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
