//! Fast evaluation of the obligation padding.

use tilewright_ir::{BinaryOp, InverseClaim, UnaryOp};

use super::super::instance::Instance;
use super::super::inverse::is_padding;
use super::super::padding;
use super::{Seen, does_not_replay, first_logical, settle};
use crate::enumerate::{Builder, MAX_BITS, NodeId, first_wrong_padding};

/// Whether a logical index is mapped to padding; then all places that are reached are marked and compared with the predicate.
pub(in super::super) fn padding(instance: &Instance<'_>, limit: u64) -> Seen {
    let Some(inverse) = instance.claim.inverse else { return Seen::Unfit };
    let found = lands_on_padding(instance, inverse)
        .and_then(|(mut builder, flag)| first_logical(instance, &mut builder, &[flag], limit));
    let hit = |index: &[i128]| padding::hit(instance.claim, inverse, &instance.symbols, index);
    match settle(found.as_ref(), hit) {
        Seen::Nothing if instance.shape.iter().all(|&extent| extent >= 1) => {}
        seen => return seen,
    }
    match wrongly_used(instance, inverse, limit) {
        None => Seen::Unfit,
        Some(Wrong::TooMany) => Seen::TooMany,
        Some(Wrong::At(None)) => Seen::Nothing,
        Some(Wrong::At(Some(place))) if is_padding(inverse, &instance.symbols, &place) == Some(false) => {
            Seen::Fails(padding::nothing_there(instance, inverse, &place))
        }
        Some(Wrong::At(Some(place))) => does_not_replay(&place),
    }
}

/// A flag that is set where a logical index is mapped to padding.
fn lands_on_padding(instance: &Instance<'_>, inverse: &InverseClaim) -> Option<(Builder, NodeId)> {
    let graph = instance.graph()?;
    let mut builder = graph.builder.clone();
    for (var, &output) in inverse.vars.iter().zip(&graph.outputs) {
        builder.bind(var, output);
    }
    let flag = builder.expr(&inverse.padding)?;
    Some((builder, flag))
}

/// The first physical index that is not padding and not reached.
enum Wrong {
    At(Option<Vec<i128>>),
    TooMany,
}

/// Compares the places that are reached with the padding predicate. `None` if the predicate has no graph.
fn wrongly_used(instance: &Instance<'_>, inverse: &InverseClaim, limit: u64) -> Option<Wrong> {
    let graph = instance.graph()?;
    let mut physical = Builder::new(&instance.shape, &instance.symbols)?;
    physical.bind_axes(&inverse.vars)?;
    let padding = physical.expr(&inverse.padding)?;
    let axes = |rank: usize| (0..rank).collect::<Vec<_>>();
    let padding = physical.program_over(&[padding], &axes(instance.shape.len()));
    let Some(padding) = padding.filter(|padding| padding.points() <= limit.min(MAX_BITS)) else {
        return Some(Wrong::TooMany);
    };
    let mut builder = graph.builder.clone();
    // A logical index outside of the restricted domain reaches nothing.
    let mut outside = match graph.predicate {
        Some(holds) => builder.unary(UnaryOp::Not, holds)?,
        None => builder.int(0)?,
    };
    let mut inside = Vec::new();
    for (&output, &extent) in graph.outputs.iter().zip(&instance.shape) {
        let wrong = builder.outside(output, extent)?;
        outside = builder.binary(BinaryOp::Or, outside, wrong)?;
        inside.push(builder.clamped(output, extent)?);
    }
    let place = builder.place(&inside, &instance.shape)?;
    // Over the axes that the outputs depend on: the others reach no further position.
    let map = builder.program(&[outside, place]);
    let Some(map) = map.filter(|map| map.points() <= limit) else { return Some(Wrong::TooMany) };
    let found = first_wrong_padding(&map, &padding).map(|place| padding.index(place, instance.shape.len()));
    Some(Wrong::At(found))
}
