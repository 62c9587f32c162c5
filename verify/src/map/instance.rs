//! A map claim for one constant shape, decided by a plain loop over all points.
//!
//! Every point is evaluated by the language's own evaluation ([`tilewright_ir::Expr::eval_index`]), and the answer rests on
//! nothing else.
//!
//! # Why parts may be looked at alone
//!
//! An obligation is a conjunction of statements about single outputs. A statement about some axes holds everywhere if it holds
//! on the box in which all other axes are 0. So each part has a box of its own, and in each box the whole conjunction is
//! evaluated.
//!
//! ```text
//! [i // 3, (j + 3) % 1000]   on (50, 1000)     50 points (i, 0) and 1000 points (0, j) instead of 50000
//! ```
//!
//! A predicate that restricts the domain is part of every statement, so the axes that it mentions are in each box.

use std::collections::BTreeSet;
use std::sync::OnceLock;

use rayon::iter::{IntoParallelIterator, ParallelIterator};
use tilewright_ir::{Bindings, Expr, Var};

use super::fast::Graph;
use super::{MapClaim, restriction};
use crate::concrete::{extents, stated_extents};
use crate::judge::Judge;
use crate::reason::{Reason, ReasonKind};
use crate::verdict::Counterexample;

/// Least number of points for which several threads are used.
const PARALLEL: u64 = 1 << 14;
/// Number of points that a thread takes at a time.
const BLOCK: u64 = 1 << 10;

/// The result of looking at all points.
#[derive(Clone, Debug)]
pub(super) enum Answer {
    /// The obligation holds; the number of points looked at.
    Holds(u64),
    /// The obligation fails; the first counterexample.
    Fails(Counterexample),
    /// Undecided, for a reason such as too many points.
    Open(Reason),
}

/// A map claim for one shape.
#[derive(Debug)]
pub(super) struct Instance<'a> {
    /// The judge, for its threads.
    pub(super) judge: &'a Judge,
    /// The claim.
    pub(super) claim: MapClaim<'a>,
    /// The values of the symbolic extents.
    pub(super) symbols: Bindings,
    /// The values of the logical extents.
    pub(super) domain: Vec<i128>,
    /// The values of the physical extents. An axis whose extent is 0 or negative holds no index.
    pub(super) shape: Vec<i128>,
    /// The map for fast evaluation, which is not believed, made when it is asked for; `None` if it cannot be evaluated fast.
    graph: OnceLock<Option<Graph>>,
    /// Whether the domain is known to have an index for which the predicate holds.
    pub(super) is_inhabited: bool,
}

impl<'a> Instance<'a> {
    /// The claim for these values of the symbols; `None` if an extent has no value, or the domain is empty or has no index
    /// for which the predicate holds.
    pub(super) fn new(judge: &'a Judge, claim: MapClaim<'a>, symbols: Bindings) -> Option<Self> {
        let (domain, shape) = (extents(claim.map.domain(), &symbols)?, stated_extents(claim.shape, &symbols)?);
        if domain.contains(&0) {
            return None;
        }
        let graph = OnceLock::new();
        let mut instance = Self { judge, claim, symbols, domain, shape, graph, is_inhabited: false };
        let is_inhabited = restriction::is_inhabited(&instance);
        if is_inhabited == Some(false) {
            return None;
        }
        instance.is_inhabited = is_inhabited.is_some();
        Some(instance)
    }

    /// The claim restricted to a smaller box at the origin. A counterexample there is one of the whole claim.
    pub(super) fn within(&self, domain: Vec<i128>) -> Self {
        Self {
            judge: self.judge,
            claim: self.claim,
            symbols: self.symbols.clone(),
            domain,
            shape: self.shape.clone(),
            graph: OnceLock::new(),
            is_inhabited: false,
        }
    }

    /// The map for fast evaluation; `None` if it cannot be evaluated fast.
    pub(super) fn graph(&self) -> Option<&Graph> {
        self.graph.get_or_init(|| Graph::new(self.claim, &self.domain, &self.symbols)).as_ref()
    }

    /// The number of points of the domain, if it fits 64 bits.
    pub(super) fn points(&self) -> Option<u64> {
        count(&self.domain)
    }

    /// The logical axes that an output of the map depends on.
    pub(super) fn axes_of(&self, output: usize) -> BTreeSet<usize> {
        mentioned(&self.claim.map.outputs()[output], self.claim.map.vars())
    }

    /// The domain with all axes at 0, except these and those that the predicate depends on.
    pub(super) fn box_over(&self, mut axes: BTreeSet<usize>) -> Vec<i128> {
        axes.extend(self.claim.predicate.iter().flat_map(|predicate| mentioned(predicate, self.claim.map.vars())));
        narrowed(&self.domain, &axes)
    }

    /// Looks at all points of several boxes. The counterexample is the one at the first index of all boxes.
    pub(super) fn in_boxes(
        &self,
        mut boxes: Vec<Vec<i128>>,
        limit: u64,
        look: impl Fn(&[i128]) -> Option<Counterexample> + Sync,
    ) -> Answer {
        boxes.sort();
        boxes.dedup();
        let (mut points, mut first) = (0u64, None);
        for extents in boxes {
            let Some(count) = count(&extents).filter(|count| *count <= limit) else { return too_many(limit) };
            points = points.saturating_add(count);
            let found = first_point(self.judge, &extents, &look);
            first = first.into_iter().chain(found).min_by(|(a, _): &(Vec<i128>, _), (b, _)| a.cmp(b));
        }
        first.map_or(Answer::Holds(points), |(_, found)| Answer::Fails(found))
    }
}

/// The positions of the variables that an expression depends on.
pub(super) fn mentioned(expr: &Expr, vars: &[Var]) -> BTreeSet<usize> {
    expr.vars().iter().filter_map(|var| vars.iter().position(|known| known == var)).collect()
}

/// A box with all axes but these at 0.
pub(super) fn narrowed(extents: &[i128], axes: &BTreeSet<usize>) -> Vec<i128> {
    extents
        .iter()
        .enumerate()
        .map(|(axis, &extent)| if axes.contains(&axis) { extent } else { extent.min(1) })
        .collect()
}

/// The number of points of a box, if it fits 64 bits.
pub(super) fn count(extents: &[i128]) -> Option<u64> {
    extents.iter().try_fold(1u64, |points, &extent| points.checked_mul(u64::try_from(extent.max(0)).ok()?))
}

/// The first point of a box, in row-major order, for which `look` returns something. The box has fewer than 2^64 points.
pub(super) fn first_point<T: Send>(
    judge: &Judge,
    extents: &[i128],
    look: impl Fn(&[i128]) -> Option<T> + Sync,
) -> Option<(Vec<i128>, T)> {
    let points = count(extents).unwrap_or(0);
    let block = |block: u64| {
        let start = block * BLOCK;
        let mut index = index_at(extents, start);
        for _ in start..points.min(start + BLOCK) {
            if let Some(found) = look(&index) {
                return Some((index, found));
            }
            advance(&mut index, extents);
        }
        None
    };
    let blocks = 0..points.div_ceil(BLOCK);
    if points < PARALLEL {
        return blocks.into_iter().find_map(block);
    }
    judge.in_parallel(|| blocks.into_par_iter().find_map_first(block))
}

/// What `append` collects at all points of a box, in row-major order; `None` if it fails at one. Each thread collects into a list of
/// its own.
pub(super) fn collected<T: Send>(
    judge: &Judge,
    extents: &[i128],
    append: impl Fn(&[i128], &mut Vec<T>) -> Option<()> + Sync,
) -> Option<Vec<T>> {
    let points = count(extents)?;
    let block = |block: u64| {
        let (start, mut found) = (block * BLOCK, Vec::new());
        let mut index = index_at(extents, start);
        for _ in start..points.min(start + BLOCK) {
            append(&index, &mut found)?;
            advance(&mut index, extents);
        }
        Some(found)
    };
    let blocks = 0..points.div_ceil(BLOCK);
    let lists: Option<Vec<Vec<T>>> = judge.in_parallel(|| blocks.into_par_iter().map(block).collect());
    Some(lists?.into_iter().flatten().collect())
}

/// The index at a position of the row-major order.
fn index_at(extents: &[i128], position: u64) -> Vec<i128> {
    let mut rest = i128::from(position);
    let mut index: Vec<i128> = extents
        .iter()
        .rev()
        .map(|&extent| {
            let at = rest.rem_euclid(extent.max(1));
            rest = rest.div_euclid(extent.max(1));
            at
        })
        .collect();
    index.reverse();
    index
}

/// The next index in row-major order; the first one after the last.
fn advance(index: &mut [i128], extents: &[i128]) {
    for (at, extent) in index.iter_mut().zip(extents).rev() {
        *at += 1;
        if *at < *extent {
            return;
        }
        *at = 0;
    }
}

/// Undecided, because there are too many points.
pub(super) fn too_many(limit: u64) -> Answer {
    Answer::Open(Reason::new(ReasonKind::Budget, format!("more than {limit} points would have to be enumerated")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::concrete::row_major;
    use crate::judge::Config;
    use std::sync::Mutex;

    #[test]
    fn every_point_of_a_box_is_looked_at_once() {
        let judge = Judge::new(Config::default(), tilewright_search::strategies()).unwrap();
        for extents in [vec![], vec![1], vec![3, 1, 7], vec![1025], vec![5, 2049, 3], vec![0, 4], vec![131, 129]] {
            let seen = Mutex::new(Vec::new());
            let found = first_point(&judge, &extents, |point| {
                seen.lock().unwrap().push(point.to_vec());
                None::<()>
            });
            let mut seen = seen.into_inner().unwrap();
            seen.sort();
            assert_eq!(found, None);
            assert_eq!(seen, row_major(&extents), "{extents:?}");
            let append = |point: &[i128], found: &mut Vec<Vec<i128>>| {
                found.push(point.to_vec());
                Some(())
            };
            assert_eq!(collected(&judge, &extents, append).unwrap(), row_major(&extents), "{extents:?}");
        }
    }

    #[test]
    fn the_first_point_is_found_on_any_number_of_threads() {
        let judge = Judge::new(Config::default(), tilewright_search::strategies()).unwrap();
        for wanted in [[0, 0], [0, 1023], [0, 1024], [40, 7], [130, 1028]] {
            let found = first_point(&judge, &[131, 1029], |point| (point >= &wanted[..]).then_some(()));
            assert_eq!(found, Some((wanted.to_vec(), ())));
        }
    }
}
