//! Obligation injective: different logical indices have different images.
//!
//! ```text
//! lambda i, j: [i % 4, j]   on (8, 5)     refuted: (0, 0) and (4, 0) both land on (0, 0)
//! lambda i: [i // 4, i % 4] on (n)        proved: i is i // 4 * 4 + i % 4 (Euclid)
//! ```
//!
//! The tiers are, in this order: the digit certificate of a symbolic claim, small shapes, the digit certificate, linear algebra
//! over GF(2), enumeration and Z3 with limits that grow, the claimed inverse.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};

use tilewright_ir::Bindings;

use super::case::{Case, Loops, briefly, certified, digits, empty, large, medium, small, wide};
use super::instance::{Answer, Instance, collected, count, too_many};
use super::{MapClaim, Obligation, at, bits, fast, from_model, symbols_from, value};
use crate::concrete::{row_major, tuple};
use crate::judge::{Decision, decide};
use crate::method::{Method, Points};
use crate::obligation::Obligation as Id;
use crate::reason::Reason;
use crate::term::{Prop, Term};
use crate::translate::Names;
use crate::verdict::{Counterexample, Verdict};

/// Greatest number of images that are remembered one by one.
const REMEMBERED: u64 = 1 << 12;

/// Different logical indices have different images.
pub(super) const OBLIGATION: Obligation = (
    Id::Injective,
    Loops { fast: fast::injective::injective, plain: everywhere },
    &[certified, empty, small, digits, bits::injective, medium, brief, wide, sampled, large, by_left_inverse, by_z3],
);

/// A counterexample if two different points have the same image.
pub(super) fn collision(claim: MapClaim<'_>, symbols: &Bindings, a: &[i128], b: &[i128]) -> Option<Counterexample> {
    if !claim.admits(a, symbols) || !claim.admits(b, symbols) {
        return None;
    }
    let image = claim.map.eval(a, symbols).ok()?;
    let text = format!("{} and {} both land on {}", tuple(a), tuple(b), tuple(&image));
    (a != b && claim.map.eval(b, symbols).ok()? == image).then(|| at(claim, symbols, &[a, b], text))
}

/// Looks at all points of each group of axes: no output depends on axes of two groups. On a box that is not empty the map is
/// injective exactly if each group is. Two indices collide exactly if they do in each group, so a collision differs in some
/// group, and with 0 elsewhere that group alone gives one. An axis that no output depends on is a group by itself, in which
/// all indices collide.
fn everywhere(instance: &Instance<'_>, limit: u64) -> Answer {
    let (mut points, mut first) = (0u64, None);
    for (axes, outputs) in groups(instance) {
        let extents = instance.box_over(axes);
        let Some(count) = count(&extents).filter(|count| *count <= limit) else { return too_many(limit) };
        points = points.saturating_add(count);
        let found =
            if count <= REMEMBERED { collision_in(instance, &extents) } else { apart(instance, &extents, &outputs) };
        match found {
            Ok(found) => first = first.into_iter().chain(found).min(),
            Err(reason) => return Answer::Open(reason),
        }
    }
    let Some((second, first)) = first else { return Answer::Holds(points) };
    match collision(instance.claim, &instance.symbols, &first, &second) {
        Some(found) => Answer::Fails(found),
        None => {
            Answer::Open(Reason::no_replay(format_args!("the collision of {} and {}", tuple(&first), tuple(&second))))
        }
    }
}

/// The axes of more than one index in groups, each with the outputs that depend on them. With a predicate, which is a statement
/// about all axes, there is one group.
fn groups(instance: &Instance<'_>) -> Vec<(BTreeSet<usize>, Vec<usize>)> {
    let moving = |axis: &usize| instance.domain[*axis] > 1;
    let all = (0..instance.domain.len()).filter(moving);
    let outputs = 0..instance.shape.len();
    if instance.claim.predicate.is_some() {
        return vec![(all.collect(), outputs.collect())];
    }
    let mut groups: Vec<(BTreeSet<usize>, Vec<usize>)> = all.map(|axis| ([axis].into(), Vec::new())).collect();
    for output in outputs {
        let axes: BTreeSet<usize> = instance.axes_of(output).into_iter().filter(moving).collect();
        let (joined, others): (Vec<_>, Vec<_>) = groups.into_iter().partition(|(own, _)| !own.is_disjoint(&axes));
        groups = others;
        if !axes.is_empty() {
            let mut outputs: Vec<usize> = joined.iter().flat_map(|(_, outputs)| outputs.clone()).collect();
            outputs.push(output);
            groups.push((joined.into_iter().flat_map(|(own, _)| own).chain(axes).collect(), outputs));
        }
    }
    if groups.is_empty() {
        // There is one index, which has an image or not.
        groups.push((BTreeSet::new(), Vec::new()));
    }
    groups
}

/// Two indices with the same image, the second one first.
type Pair = (Vec<i128>, Vec<i128>);

/// The first collision in a box whose images are all remembered.
fn collision_in(instance: &Instance<'_>, extents: &[i128]) -> Result<Option<Pair>, Reason> {
    let mut seen: HashMap<Vec<i128>, Vec<i128>> = HashMap::new();
    let admitted = row_major(extents).into_iter().filter(|index| instance.claim.admits(index, &instance.symbols));
    for index in admitted {
        let image = instance.claim.map.eval(&index, &instance.symbols);
        let image = image.map_err(|_| Reason::undecided(format!("{} has no image", tuple(&index))))?;
        match seen.entry(image) {
            Entry::Occupied(first) => return Ok(Some((index, first.get().clone()))),
            Entry::Vacant(free) => {
                free.insert(index);
            }
        }
    }
    Ok(None)
}

/// Shows that no two images in a large box are equal, by sorting their positions in the physical shape. A collision is found by
/// others.
fn apart(instance: &Instance<'_>, extents: &[i128], outputs: &[usize]) -> Result<Option<Pair>, Reason> {
    let place = |index: &[i128]| {
        let image = instance.claim.map.eval(index, &instance.symbols).ok()?;
        outputs.iter().try_fold(0u64, |place, &output| {
            let (at, extent) = (image[output], instance.shape[output]);
            let at = u64::try_from(at).ok().filter(|_| at < extent)?;
            place.checked_mul(u64::try_from(extent).ok()?)?.checked_add(at)
        })
    };
    let append = |index: &[i128], places: &mut Vec<u64>| {
        if instance.claim.admits(index, &instance.symbols) {
            places.push(place(index)?);
        }
        Some(())
    };
    let Some(mut places) = collected(instance.judge, extents, append) else {
        return Err(Reason::undecided("an index has no place in the physical shape"));
    };
    places.sort_unstable();
    if places.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err(Reason::undecided("two indices have the same image"));
    }
    Ok(None)
}

/// Tries some points of a shape that is too large for enumeration.
fn sampled(case: &Case<'_>) -> Option<Decision> {
    let instance = case.constant()?;
    let mut seen: HashMap<Vec<i128>, Vec<i128>> = HashMap::new();
    let found = case.claim.sample(|point, image| {
        let first = seen.entry(image).or_insert_with(|| point.to_vec());
        if first == point { None } else { collision(case.claim, &instance.symbols, first, point) }
    })?;
    Some((Verdict::Refuted(found), Method::Enumeration(Points::Some)))
}

/// A map with a left inverse is injective.
fn by_left_inverse(case: &Case<'_>) -> Option<Decision> {
    match super::inverse::left(case)? {
        (Verdict::Proved(grounds), method) => Some((Verdict::Proved(grounds), Method::ByInverse(Box::new(method)))),
        _ => None,
    }
}

/// Z3 with a small budget.
fn brief(case: &Case<'_>) -> Option<Decision> {
    briefly(case, by_z3)
}

/// Asks Z3 whether two indices with the same image are equal.
#[expect(clippy::unnecessary_wraps, reason = "the signature of a tier")]
pub(super) fn by_z3(case: &Case<'_>) -> Option<Decision> {
    let claim = case.claim;
    let mut names = Names::default();
    let mut question = claim.question(case.judge, &mut names);
    let a = claim.assume(&mut question, &mut names, "");
    let valued = value::shown_or_open(claim.map.outputs(), &mut names, &mut question);
    let left = claim.outputs(&mut names);
    let b = claim.assume(&mut question, &mut names, "'");
    let right = claim.outputs(&mut names);
    let from = question.steps().len();
    let images: Vec<(Term, Term)> = left.into_iter().zip(right).collect();
    question.assume_equal(&images, "both have the same image");
    let goal = Prop::all(a.iter().zip(&b).map(|(x, y)| x.equals(y)));
    let result = valued.and_then(|valued| Ok(valued.and(question.settle(&goal)?)));
    Some(decide("map injective", result, &question, from, |model| {
        let (first, second) = (from_model(model, claim.map.vars(), &a)?, from_model(model, claim.map.vars(), &b)?);
        let symbols = symbols_from(model, &mut names, case.symbols());
        collision(claim, &symbols, &first, &second)
    }))
}
