//! Counterexamples of map claims for one constant shape, found by fast evaluation of all points. Nothing here is believed.
//!
//! A map becomes a graph of 64-bit operations (`enumerate`), which is evaluated at tens of millions of points a second. What is
//! found is evaluated again as the language says. If nothing is found, that proves nothing: the plain loop of each obligation
//! (`instance`) has to look at the points as well.
//!
//! # Why parts may be looked at alone
//!
//! - *bounds*, *specification*, *inverse* are conjunctions of statements about single outputs. A statement holds everywhere if it
//!   holds on the axes that it depends on; the first index at which the conjunction fails is the first of the indices, 0 on
//!   all other axes, at which a part fails.
//! - *injective*: split the axes into groups such that every output depends on axes of one group only. On a box that is
//!   not empty the map is injective exactly if each group is. Row-major order restricted to a group is that of the group, so
//!   the first collision is the first of the groups' first ones.
//!
//! A predicate that restricts the domain becomes part of each statement about single outputs. For *injective* it is one more
//! output, which is different at all indices for which the predicate does not hold (`injective`).

pub(super) mod injective;
pub(super) mod outputs;
pub(super) mod padding;

use tilewright_ir::{BinaryOp, Bindings};

use super::MapClaim;
use super::instance::Instance;
use crate::concrete::tuple;
use crate::enumerate::{Builder, NodeId, first_nonzero};
use crate::reason::Reason;
use crate::verdict::Counterexample;

/// Greatest number of axes of a map that is evaluated fast.
const MAX_RANK: usize = 1024;

/// What fast evaluation found.
#[derive(Clone, Debug)]
pub(super) enum Seen {
    /// The first counterexample, which was evaluated.
    Fails(Counterexample),
    /// None at any point.
    Nothing,
    /// There are too many points.
    TooMany,
    /// The map cannot be evaluated fast: an operation may lack a value or leave 64 bits, or the obligation is not about maps
    /// of this kind.
    Unfit,
    /// Two evaluations of the same map differ.
    Internal(Reason),
}

/// The graph of a map over its domain.
#[derive(Clone, Debug)]
pub(super) struct Graph {
    /// The graph of operations.
    builder: Builder,
    /// The logical indices.
    axes: Vec<NodeId>,
    /// The outputs of the map.
    outputs: Vec<NodeId>,
    /// The predicate of the claim, 0 where it does not hold.
    predicate: Option<NodeId>,
}

/// The result of a search for the first index at which one of several flags is set.
#[derive(Clone, Debug, Default)]
struct Found {
    /// The index, if there is one.
    first: Option<Vec<i128>>,
    /// Whether some flag had too many points to look at.
    open: bool,
}

impl Graph {
    /// The graph of a claim's map; `None` if some output may lack a value or leave 64 bits.
    pub(super) fn new(claim: MapClaim<'_>, domain: &[i128], symbols: &Bindings) -> Option<Self> {
        if domain.len() > MAX_RANK {
            return None;
        }
        let mut builder = Builder::new(domain, symbols)?;
        let axes = builder.bind_axes(claim.map.vars())?;
        let outputs = claim.map.outputs().iter().map(|output| builder.expr(output)).collect::<Option<_>>()?;
        let predicate = match claim.predicate {
            Some(predicate) => Some(builder.expr(predicate)?),
            None => None,
        };
        Some(Self { builder, axes, outputs, predicate })
    }

    /// An index for which the predicate holds; `None` if there is none, or it was not looked for.
    pub(super) fn admitted(&self, instance: &Instance<'_>, limit: u64) -> Option<Vec<i128>> {
        let program = self.builder.program(&[self.predicate?]).filter(|program| program.points() <= limit)?;
        first_nonzero(instance.judge, &program).map(|place| program.index(place, instance.domain.len()))
    }
}

/// The first logical index, in row-major order, at which one of `flags` is not 0 and the predicate holds. The map's variables
/// are bound to the axes.
fn first_logical(instance: &Instance<'_>, builder: &mut Builder, flags: &[NodeId], limit: u64) -> Option<Found> {
    let Some(predicate) = instance.claim.predicate else {
        return Some(first(instance, builder, instance.domain.len(), flags, limit));
    };
    let holds = builder.expr(predicate)?;
    let flags: Option<Vec<NodeId>> = flags.iter().map(|&flag| builder.binary(BinaryOp::And, holds, flag)).collect();
    Some(first(instance, builder, instance.domain.len(), &flags?, limit))
}

/// The first index, in row-major order, at which one of `flags` is not 0.
fn first(instance: &Instance<'_>, builder: &Builder, rank: usize, flags: &[NodeId], limit: u64) -> Found {
    let mut found = Found::default();
    for &flag in flags {
        if builder.range(flag).constant() == Some(0) {
            continue;
        }
        let Some(program) = builder.program(&[flag]).filter(|program| program.points() <= limit) else {
            found.open = true;
            continue;
        };
        if let Some(place) = first_nonzero(instance.judge, &program) {
            let index = program.index(place, rank);
            found.first = Some(found.first.map_or_else(|| index.clone(), |first| first.min(index.clone())));
        }
    }
    found
}

/// What a search for a violation found; `replay` confirms it by evaluating the map there.
fn settle(found: Option<&Found>, replay: impl FnOnce(&[i128]) -> Option<Counterexample>) -> Seen {
    match found {
        None => Seen::Unfit,
        Some(Found { first: Some(index), .. }) => replay(index).map_or_else(|| does_not_replay(index), Seen::Fails),
        Some(Found { open: true, .. }) => Seen::TooMany,
        Some(_) => Seen::Nothing,
    }
}

/// Two evaluations of the same map differ at an index, which is an internal error.
fn does_not_replay(index: &[i128]) -> Seen {
    Seen::Internal(Reason::no_replay(format_args!("what enumeration found at {}", tuple(index))))
}
