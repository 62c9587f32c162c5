//! A map claim for one constant shape, decided by looking at every point.
//!
//! # Why parts may be looked at alone
//!
//! - *bounds*, *specification*, *inverse* are conjunctions of statements about single outputs. A statement holds everywhere if it
//!   holds on the axes that it depends on; the first index at which the conjunction fails is the first of the indices, 0 on
//!   all other axes, at which a part fails.
//! - *injective*: split the axes into groups such that every output depends on axes of one group only. On a box that is
//!   not empty the map is injective exactly if each group is: two indices collide exactly if they do in each group, so a
//!   collision differs in some group, and with 0 elsewhere that group alone gives one. An axis that no output depends
//!   on is a group without outputs: injective only if its extent is 1. Row-major order restricted to a group is that of
//!   the group, so the first collision is the first of the groups' first ones.
//!
//! A predicate that restricts the domain becomes part of each statement about single outputs. For *injective* it is one more
//! output, which is different at all indices for which the predicate does not hold (`injective`).

use tilewright_ir::Bindings;

use super::{MapClaim, restriction};
use crate::concrete::{extents, stated_extents};
use crate::enumerate::{Builder, NodeId, first_nonzero};
use crate::judge::Judge;
use crate::reason::{Reason, ReasonKind};
use crate::verdict::Counterexample;

/// Greatest number of points of a map that has to be evaluated one point at a time, because an operation may lack a value
/// or leave 64 bits.
pub(super) const SLOW_POINTS: u64 = 1 << 15;
/// Greatest number of axes of a map that is enumerated.
const MAX_RANK: usize = 1024;

/// The result of looking at all points.
#[derive(Clone, Debug)]
pub(super) enum Answer {
    /// The obligation holds; the number of points looked at, 0 if the ranges were sufficient.
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
    /// The map as a graph; `None` if some output or the predicate may lack a value or leave 64 bits.
    pub(super) graph: Option<Graph>,
    /// Whether the domain has an index for which the predicate holds; false if that is not known.
    pub(super) is_inhabited: bool,
}

/// The graph of a map over its domain.
#[derive(Clone, Debug)]
pub(super) struct Graph {
    /// The graph of operations.
    pub(super) builder: Builder,
    /// The logical indices.
    pub(super) axes: Vec<NodeId>,
    /// The outputs of the map.
    pub(super) outputs: Vec<NodeId>,
    /// The predicate of the claim, 0 where it does not hold.
    pub(super) predicate: Option<NodeId>,
}

/// The result of a search for the first index at which one of several flags is set.
#[derive(Clone, Debug, Default)]
pub(super) struct Found {
    /// The index, if there is one.
    pub(super) first: Option<Vec<i128>>,
    /// The number of points looked at.
    pub(super) points: u64,
    /// Whether some flag had too many points to look at.
    pub(super) open: bool,
}

impl<'a> Instance<'a> {
    /// The claim for these values of the symbols; `None` if an extent has no value, or the domain is empty or has no index
    /// for which the predicate holds.
    pub(super) fn new(judge: &'a Judge, claim: MapClaim<'a>, symbols: Bindings) -> Option<Self> {
        let (domain, shape) = (extents(claim.map.domain(), &symbols)?, stated_extents(claim.shape, &symbols)?);
        if domain.contains(&0) {
            return None;
        }
        let graph = (domain.len() <= MAX_RANK).then(|| Graph::new(claim, &domain, &symbols)).flatten();
        let is_inhabited = restriction::is_inhabited(judge, claim, &domain, &symbols, graph.as_ref());
        if is_inhabited == Some(false) {
            return None;
        }
        Some(Self { judge, claim, symbols, domain, shape, graph, is_inhabited: is_inhabited.is_some() })
    }

    /// The claim restricted to a smaller box at the origin. A counterexample there is one of the whole claim.
    pub(super) fn within(&self, domain: Vec<i128>) -> Self {
        let graph = Graph::new(self.claim, &domain, &self.symbols);
        Self {
            judge: self.judge,
            claim: self.claim,
            symbols: self.symbols.clone(),
            domain,
            shape: self.shape.clone(),
            graph,
            is_inhabited: false,
        }
    }

    /// The number of points of the domain, if it fits 64 bits.
    pub(super) fn points(&self) -> Option<u64> {
        self.domain.iter().try_fold(1u64, |points, &extent| points.checked_mul(u64::try_from(extent).ok()?))
    }

    /// The first logical index, in row-major order, at which one of `flags` is not 0 and the predicate holds. The map's
    /// variables are bound to the axes.
    pub(super) fn first_logical(&self, builder: &mut Builder, flags: &[NodeId], limit: u64) -> Option<Found> {
        let Some(predicate) = self.claim.predicate else {
            return Some(self.first(builder, self.domain.len(), flags, limit));
        };
        let holds = builder.expr(predicate)?;
        let flags: Option<Vec<NodeId>> =
            flags.iter().map(|&flag| builder.binary(tilewright_ir::BinaryOp::And, holds, flag)).collect();
        Some(self.first(builder, self.domain.len(), &flags?, limit))
    }

    /// The first index, in row-major order, at which one of `flags` is not 0.
    pub(super) fn first(&self, builder: &Builder, rank: usize, flags: &[NodeId], limit: u64) -> Found {
        let mut found = Found::default();
        for &flag in flags {
            if builder.range(flag).constant() == Some(0) {
                continue;
            }
            let Some(program) = builder.program(&[flag]).filter(|program| program.points() <= limit) else {
                found.open = true;
                continue;
            };
            found.points += program.points();
            if let Some(place) = first_nonzero(self.judge, &program) {
                let index = program.index(place, rank);
                found.first = Some(found.first.map_or_else(|| index.clone(), |first| first.min(index.clone())));
            }
        }
        found
    }
}

impl Graph {
    /// The graph of a claim's map; `None` if some output may lack a value or leave 64 bits.
    fn new(claim: MapClaim<'_>, domain: &[i128], symbols: &Bindings) -> Option<Self> {
        let mut builder = Builder::new(domain, symbols)?;
        let axes = builder.bind_axes(claim.map.vars())?;
        let outputs = claim.map.outputs().iter().map(|output| builder.expr(output)).collect::<Option<_>>()?;
        let predicate = match claim.predicate {
            Some(predicate) => Some(builder.expr(predicate)?),
            None => None,
        };
        Some(Self { builder, axes, outputs, predicate })
    }
}

/// Calls `look` with every point until it finds a counterexample, up to [`SLOW_POINTS`].
pub(super) fn each_point(
    domain: &[i128],
    limit: u64,
    mut look: impl FnMut(&[i128]) -> Option<Counterexample>,
) -> Answer {
    let limit = limit.min(SLOW_POINTS);
    let points = domain.iter().try_fold(1u64, |points, &extent| points.checked_mul(u64::try_from(extent.max(0)).ok()?));
    let Some(points) = points.filter(|points| *points <= limit) else { return too_many(limit) };
    let mut index = vec![0; domain.len()];
    for _ in 0..points {
        if let Some(found) = look(&index) {
            return Answer::Fails(found);
        }
        for (at, extent) in index.iter_mut().zip(domain).rev() {
            *at += 1;
            if *at < *extent {
                break;
            }
            *at = 0;
        }
    }
    Answer::Holds(points)
}

/// The answer of a search for a violation; `replay` confirms the violation by evaluating the map there.
pub(super) fn settle(found: &Found, limit: u64, replay: impl FnOnce(&[i128]) -> Option<Counterexample>) -> Answer {
    match &found.first {
        Some(index) => replay(index).map_or_else(|| does_not_replay(index), Answer::Fails),
        None if found.open => too_many(limit),
        None => Answer::Holds(found.points),
    }
}

/// Undecided, because there are too many points.
pub(super) fn too_many(limit: u64) -> Answer {
    Answer::Open(Reason::new(ReasonKind::Budget, format!("more than {limit} points would have to be enumerated")))
}

/// Undecided because two evaluations of the same map differ, which is an internal error.
pub(super) fn does_not_replay(index: &[i128]) -> Answer {
    Answer::Open(Reason::no_replay(format_args!("what enumeration found at {}", crate::concrete::tuple(index))))
}
