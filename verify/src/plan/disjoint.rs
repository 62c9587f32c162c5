//! Tensors that live at once share no byte and no texel: a sweep over time, pool by pool.
//!
//! What lives at a moment is kept in the order of its place, and a tensor that begins to live is held against its
//! neighbours there. A tensor that ends at a moment leaves after all that begin at it have come.

use std::collections::BTreeMap;

use tilewright_ir::Region;

use super::graph::Planned;
use super::live::{self, Life};
use crate::verdict::{Counterexample, Verdict};

/// Pairs of rectangles that are looked at, at most; a pool has to hold thousands of them side by side, all the time, to
/// come near.
const MAX_PAIRS: u64 = 1 << 31;

/// Two roots that live at once and share a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Conflict {
    tensors: [usize; 2],
}

/// What lives in a pool at a moment.
#[derive(Debug, Default)]
struct Occupied {
    /// By first byte: the end, and whose it is. No two overlap.
    bytes: BTreeMap<u64, (u128, usize)>,
    /// By first row and column.
    rectangles: BTreeMap<(u64, u64), (Region, usize)>,
    /// Rows of the highest rectangle so far.
    max_height: u64,
}

/// The first position that two ranges share.
fn meet([start, size]: [u64; 2], [other_start, other_size]: [u64; 2]) -> Option<u64> {
    let first = start.max(other_start);
    let inside = |start: u64, size: u64| u128::from(first) < u128::from(start) + u128::from(size);
    (inside(start, size) && inside(other_start, other_size)).then_some(first)
}

/// A byte, or a column and a row, that lies in both.
pub(super) fn shared(one: Region, other: Region) -> Option<Vec<(String, i128)>> {
    let at = |name: &str, value: u64| (name.to_owned(), i128::from(value));
    match (one, other) {
        (Region::Bytes { offset, size }, Region::Bytes { offset: o, size: s }) => {
            Some(vec![at("byte", meet([offset, size], [o, s])?)])
        }
        (Region::Texels { x, y, width, height }, Region::Texels { x: p, y: q, width: w, height: h }) => {
            let (column, row) = (meet([x, width], [p, w])?, meet([y, height], [q, h])?);
            Some(vec![at("column", column), at("row", row)])
        }
        _ => None,
    }
}

/// Decides it, given the lives of the roots.
pub(super) fn sweep(planned: &Planned<'_>, lives: &[Option<Life>]) -> Verdict {
    let n_moments = live::end(planned) + 1;
    let (mut begins, mut ends) = (vec![Vec::new(); n_moments], vec![Vec::new(); n_moments]);
    for (root, life) in lives.iter().enumerate() {
        if let Some(life) = life {
            begins[life.first].push(root);
            ends[life.last].push(root);
        }
    }
    let mut pools: Vec<Occupied> = planned.plan.pools.iter().map(|_| Occupied::default()).collect();
    let mut pairs_left = MAX_PAIRS;
    for (begin, end) in begins.iter().zip(&ends) {
        for &root in begin {
            let place = planned.place(root);
            if let Some(other) = pools[place.pool].enter(root, place.region, &mut pairs_left) {
                return replay(planned, Conflict { tensors: [other, root] }, lives);
            }
            if pairs_left == 0 {
                return Verdict::Unknown(format!(
                    "more than {MAX_PAIRS} pairs of rectangles would have to be looked at"
                ));
            }
        }
        for &root in end {
            let place = planned.place(root);
            pools[place.pool].leave(place.region);
        }
    }
    Verdict::Proved
}

impl Occupied {
    /// Adds a tensor, unless it shares something with another one: that one.
    fn enter(&mut self, root: usize, region: Region, pairs_left: &mut u64) -> Option<usize> {
        match region {
            Region::Bytes { size: 0, .. } => None,
            Region::Texels { width, height, .. } if width == 0 || height == 0 => None,
            Region::Bytes { offset, size } => {
                let end = u128::from(offset) + u128::from(size);
                // Of those that begin before its end, the last one ends last.
                let latest = u64::try_from(end - 1).unwrap_or(u64::MAX);
                let before = self.bytes.range(..=latest).next_back();
                if let Some((_, &(other_end, other))) = before
                    && other_end > u128::from(offset)
                {
                    return Some(other);
                }
                self.bytes.insert(offset, (end, root));
                None
            }
            Region::Texels { x, y, height, .. } => {
                self.max_height = self.max_height.max(height);
                // None that begins higher reaches down to it, and none that begins at its end or below reaches up.
                let from = (y.saturating_sub(self.max_height - 1), 0);
                let to = (y.saturating_add(height - 1), u64::MAX);
                for &(other, owner) in self.rectangles.range(from..=to).map(|(_, entry)| entry) {
                    *pairs_left = pairs_left.saturating_sub(1);
                    if shared(region, other).is_some() {
                        return Some(owner);
                    }
                }
                self.rectangles.insert((y, x), (region, root));
                None
            }
        }
    }

    fn leave(&mut self, region: Region) {
        match region {
            Region::Bytes { size: 0, .. } => {}
            Region::Texels { width, height, .. } if width == 0 || height == 0 => {}
            Region::Bytes { offset, .. } => {
                self.bytes.remove(&offset);
            }
            Region::Texels { x, y, .. } => {
                self.rectangles.remove(&(y, x));
            }
        }
    }
}

/// The conflict as a counterexample, after a look at the definitions: the first step in which both live, and what they share.
fn replay(planned: &Planned<'_>, conflict: Conflict, lives: &[Option<Life>]) -> Verdict {
    let [one, other] = conflict.tensors;
    let (place, other_place) = (planned.place(one), planned.place(other));
    let point = shared(place.region, other_place.region).filter(|_| place.pool == other_place.pool);
    let n_steps = planned.graph.steps.len();
    let is_alive = |root: usize, step: usize| step < n_steps && live::is_alive(planned, root, step);
    let both = |step: &usize| is_alive(one, *step) && is_alive(other, *step);
    let suspected = lives[one].zip(lives[other]).map(|(a, b)| a.first.max(b.first));
    let step = suspected.map(|moment| moment.saturating_sub(1)).filter(both);
    let always = |root: usize| planned.given[root] || planned.taken[root];
    let (when, step) = match (step, n_steps) {
        (Some(step), _) => (format!("in {}", planned.step_name(step)), Some(step)),
        // What lives at the end alone lives in no step.
        (None, 0) if always(one) && always(other) => ("all the time".to_owned(), None),
        _ => return internal(planned, conflict),
    };
    let (Some(point), true) = (point, one != other) else { return internal(planned, conflict) };
    let number = |value: usize| i128::try_from(value).unwrap_or(i128::MAX);
    let mut assignments = vec![("pool".to_owned(), number(place.pool))];
    assignments.extend(step.map(|step| ("step".to_owned(), number(step))));
    assignments.extend(point);
    let [a, b] = [one, other].map(|root| format!("`{}`{}", planned.name(root), life_of(planned, lives[root])));
    let text = format!("{a} and {b} share memory {when}");
    Verdict::Refuted(Counterexample { assignments, text, ..Counterexample::default() })
}

fn internal(planned: &Planned<'_>, conflict: Conflict) -> Verdict {
    let [one, other] = conflict.tensors.map(|root| planned.name(root));
    Verdict::Unknown(format!("internal: the conflict of `{one}` and `{other}` does not replay"))
}

/// When a root lives, in words.
fn life_of(planned: &Planned<'_>, life: Option<Life>) -> String {
    let Some(Life { first, last }) = life else { return String::new() };
    let at = |moment: usize| match moment.checked_sub(1) {
        None => "the start".to_owned(),
        Some(step) if step < planned.graph.steps.len() => planned.step_name(step),
        Some(_) => "the end".to_owned(),
    };
    format!(" (alive from {} to {})", at(first), at(last))
}
