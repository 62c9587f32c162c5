//! Obligation plan-disjoint: tensors that are alive at once share no byte and no texel. A sweep over time, pool by pool.
//!
//! The tensors that are alive at a moment are kept ordered by their position, and a tensor whose lifetime begins is compared
//! with its neighbours. At each moment, lifetimes that begin are processed before those that end.
//!
//! ```text
//! moment     0   1   2   3   4        x: bytes 0..60, alive 0..=4        y: bytes 56..116, alive 1..=4
//!            x   x,y ...              y begins at moment 1 and overlaps x at byte 56: refuted
//! ```

use std::collections::BTreeMap;

use tilewright_ir::Region;

use super::graph::Planned;
use super::live::{self, Life};
use crate::reason::{Reason, ReasonKind};
use crate::verdict::{Counterexample, Verdict};

/// Greatest number of pairs of rectangles that are compared: more than ten thousand tensors can have.
const MAX_PAIRS: u64 = 1 << 27;

/// Two roots that are alive at once and share a byte or texel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Conflict {
    /// The two roots.
    tensors: [usize; 2],
}

/// The tensors in a pool that are alive at a moment.
#[derive(Debug, Default)]
struct Occupied {
    /// End and root of each range, by its first byte. No two overlap.
    bytes: BTreeMap<u64, (u128, usize)>,
    /// Rectangles and their roots, by first row and column, and by first column and row.
    by_row: BTreeMap<(u64, u64), (Region, usize)>,
    by_column: BTreeMap<(u64, u64), (Region, usize)>,
    /// Width of the widest rectangle so far, and height of the highest.
    max_width: u64,
    max_height: u64,
}

/// The first position that two ranges, given by start and size, have in common.
fn meet([start, size]: [u64; 2], [other_start, other_size]: [u64; 2]) -> Option<u64> {
    let first = start.max(other_start);
    let inside = |start: u64, size: u64| u128::from(first) < u128::from(start) + u128::from(size);
    (inside(start, size) && inside(other_start, other_size)).then_some(first)
}

/// A byte, or a column and a row, that lies in both regions.
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

/// Decides plan-disjoint, given the lifetimes of the roots.
pub(super) fn sweep(planned: &Planned<'_>, lives: &[Option<Life>]) -> Verdict {
    // Buckets by moment sort the lifetimes in linear time. Both ends of a lifetime are included, so at one moment all
    // lifetimes that begin are entered before those that end are removed.
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
                let text = format!("more than {MAX_PAIRS} pairs of rectangles would have to be looked at");
                return Verdict::Unknown(Reason::new(ReasonKind::Budget, text));
            }
        }
        for &root in end {
            let place = planned.place(root);
            pools[place.pool].leave(place.region);
        }
    }
    crate::door::inspected()
}

impl Occupied {
    /// Adds a tensor; returns a tensor that it overlaps instead, if there is one. Empty regions overlap nothing.
    fn enter(&mut self, root: usize, region: Region, pairs_left: &mut u64) -> Option<usize> {
        match region {
            Region::Bytes { size: 0, .. } => None,
            Region::Texels { width, height, .. } if width == 0 || height == 0 => None,
            Region::Bytes { offset, size } => {
                let end = u128::from(offset) + u128::from(size);
                // Ranges in the map are disjoint. Of those that begin before the end of this one, the last one also
                // ends last, so it is the only one to compare.
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
            Region::Texels { x, y, width, height } => {
                self.max_width = self.max_width.max(width);
                self.max_height = self.max_height.max(height);
                let found = self.meeting(region, [x, y, width, height], pairs_left);
                if found.is_none() {
                    self.by_row.insert((y, x), (region, root));
                    self.by_column.insert((x, y), (region, root));
                }
                found
            }
        }
    }

    /// A tensor whose rectangle shares a texel with this one. Candidates are those that overlap its rows, and those that
    /// overlap its columns; the two lists are searched in step and the search ends with the shorter one.
    fn meeting(&self, region: Region, [x, y, width, height]: [u64; 4], pairs_left: &mut u64) -> Option<usize> {
        // A rectangle can overlap this one only if it begins before the end of this one, and less than the largest size
        // before its start.
        let range = |start: u64, size: u64, largest: u64| {
            (start.saturating_sub(largest - 1), 0)..=(start.saturating_add(size - 1), u64::MAX)
        };
        let in_rows = self.by_row.range(range(y, height, self.max_height));
        let in_columns = self.by_column.range(range(x, width, self.max_width));
        for ((_, one), (_, other)) in in_rows.zip(in_columns) {
            *pairs_left = pairs_left.saturating_sub(2);
            if let Some((_, owner)) = [one, other].into_iter().find(|(met, _)| shared(region, *met).is_some()) {
                return Some(*owner);
            }
        }
        None
    }

    /// Removes a tensor.
    fn leave(&mut self, region: Region) {
        match region {
            Region::Bytes { size: 0, .. } => {}
            Region::Texels { width, height, .. } if width == 0 || height == 0 => {}
            Region::Bytes { offset, .. } => {
                self.bytes.remove(&offset);
            }
            Region::Texels { x, y, .. } => {
                self.by_row.remove(&(y, x));
                self.by_column.remove(&(x, y));
            }
        }
    }
}

/// The counterexample of a conflict, after the conflict has been checked by the definitions: the first step in which both
/// tensors are alive, and the position that they share.
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
        // Without steps, only inputs and outputs are alive.
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

/// The verdict if a conflict does not replay.
fn internal(planned: &Planned<'_>, conflict: Conflict) -> Verdict {
    let [one, other] = conflict.tensors.map(|root| planned.name(root));
    Verdict::Unknown(Reason::no_replay(format_args!("the conflict of `{one}` and `{other}`")))
}

/// The lifetime of a root as text.
fn life_of(planned: &Planned<'_>, life: Option<Life>) -> String {
    let Some(Life { first, last }) = life else { return String::new() };
    let at = |moment: usize| match moment.checked_sub(1) {
        None => "the start".to_owned(),
        Some(step) if step < planned.graph.steps.len() => planned.step_name(step),
        Some(_) => "the end".to_owned(),
    };
    format!(" (alive from {} to {})", at(first), at(last))
}
