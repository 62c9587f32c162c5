//! Fast evaluation of the obligations that are statements about single outputs: bounds, overflow, inverse, specification.

use tilewright_ir::{BinaryOp, Expr, InverseClaim, UnaryOp};

use super::super::instance::Instance;
use super::super::{MapClaim, bounds, inverse, overflow, specification};
use super::{Seen, first, first_logical, settle};
use crate::enumerate::{Builder, NodeId};

/// Each output, over the axes that it depends on.
pub(in super::super) fn bounds(instance: &Instance<'_>, limit: u64) -> Seen {
    let Some(graph) = instance.graph() else { return Seen::Unfit };
    let mut builder = graph.builder.clone();
    let pairs = graph.outputs.iter().zip(&instance.shape);
    let flags: Option<Vec<_>> = pairs.map(|(&output, &extent)| builder.outside(output, extent)).collect();
    let found = flags.and_then(|flags| first_logical(instance, &mut builder, &flags, limit));
    settle(found.as_ref(), |index| bounds::outside(instance.claim, &instance.symbols, &instance.shape, index))
}

/// Each output and its meaning, over the axes that they depend on.
pub(in super::super) fn specification(instance: &Instance<'_>, limit: u64) -> Seen {
    let found = differences(instance).and_then(|(mut builder, flags)| {
        let flags: Vec<NodeId> = flags;
        first_logical(instance, &mut builder, &flags, limit)
    });
    settle(found.as_ref(), |index| specification::different(instance.claim, &instance.symbols, index))
}

/// Flags that are set where an output differs from its meaning.
fn differences(instance: &Instance<'_>) -> Option<(Builder, Vec<NodeId>)> {
    let (graph, meaning) = (instance.graph()?, instance.claim.meaning?);
    let mut builder = graph.builder.clone();
    for (var, &axis) in meaning.vars().iter().zip(&graph.axes) {
        builder.bind(var, axis);
    }
    let pairs = graph.outputs.iter().zip(meaning.outputs());
    let flags = pairs.map(|(&output, stated)| {
        let stated = builder.expr(stated)?;
        builder.binary(BinaryOp::Ne, output, stated)
    });
    let flags = flags.collect::<Option<_>>()?;
    Some((builder, flags))
}

/// Each subterm, over the axes that it depends on; mostly its range decides.
pub(in super::super) fn overflow(instance: &Instance<'_>, limit: u64) -> Seen {
    if !instance.symbols.is_empty() {
        return Seen::TooMany;
    }
    let found =
        overflows(instance).and_then(|(mut builder, flags)| first_logical(instance, &mut builder, &flags, limit));
    match settle(found.as_ref(), |index| overflow::first_fault(instance.claim, &instance.symbols, index)) {
        // The subterm may belong to a branch that is not taken at that index.
        Seen::Internal(_) if has_branches(instance.claim) => Seen::Unfit,
        seen => seen,
    }
}

/// Whether some operation is evaluated only under a condition.
fn has_branches(claim: MapClaim<'_>) -> bool {
    let mut found = false;
    for output in claim.map.outputs() {
        output.walk(&mut |part| found |= matches!(part, Expr::IfThenElse(..)));
    }
    found
}

/// Flags that are set where a subterm leaves its type; none for subterms whose range fits.
fn overflows(instance: &Instance<'_>) -> Option<(Builder, Vec<NodeId>)> {
    let mut builder = instance.graph()?.builder.clone();
    let mut parts = Vec::new();
    for output in instance.claim.map.outputs() {
        overflow::subterms(output, &mut parts);
    }
    let mut flags = Vec::new();
    for part in parts {
        let node = builder.expr(part)?;
        let Some((low, high)) = part.dtype().scalar.integer_range() else { continue };
        let range = builder.range(node);
        if i128::from(range.low) < low {
            let low = builder.int(low)?;
            flags.push(builder.binary(BinaryOp::Lt, node, low)?);
        }
        if high < i128::from(range.high) {
            let high = builder.int(high)?;
            flags.push(builder.binary(BinaryOp::Gt, node, high)?);
        }
    }
    Some((builder, flags))
}

/// Each component of both compositions, over the axes that it depends on.
pub(in super::super) fn inverse(instance: &Instance<'_>, limit: u64) -> Seen {
    let Some(inverse) = instance.claim.inverse else { return Seen::Unfit };
    let there = not_back(instance, inverse)
        .and_then(|(mut builder, flags)| first_logical(instance, &mut builder, &flags, limit));
    let lost = |index: &[i128]| inverse::lost(instance.claim, inverse, &instance.symbols, index);
    match settle(there.as_ref(), lost) {
        Seen::Nothing => {}
        seen => return seen,
    }
    if instance.shape.iter().any(|&extent| extent < 1) {
        return Seen::Nothing;
    }
    let again = not_again(instance, inverse)
        .map(|(builder, flags)| first(instance, &builder, instance.shape.len(), &flags, limit));
    settle(again.as_ref(), |place| inverse::unreached(instance.claim, inverse, &instance.symbols, place))
}

/// Flags that are set where the inverse does not map the image of a logical index back to it.
fn not_back(instance: &Instance<'_>, inverse: &InverseClaim) -> Option<(Builder, Vec<NodeId>)> {
    let graph = instance.graph()?;
    let mut builder = graph.builder.clone();
    for (var, &output) in inverse.vars.iter().zip(&graph.outputs) {
        builder.bind(var, output);
    }
    let pairs = inverse.outputs.iter().zip(&graph.axes);
    let flags = pairs.map(|(back, &axis)| {
        let back = builder.expr(back)?;
        builder.binary(BinaryOp::Ne, back, axis)
    });
    let flags = flags.collect::<Option<_>>()?;
    Some((builder, flags))
}

/// Where a physical index is no padding and the map does not take its inverse back.
fn not_again(instance: &Instance<'_>, inverse: &InverseClaim) -> Option<(Builder, Vec<NodeId>)> {
    let mut builder = Builder::new(&instance.shape, &instance.symbols)?;
    let places = builder.bind_axes(&inverse.vars)?;
    let padding = builder.expr(&inverse.padding)?;
    let used = builder.unary(UnaryOp::Not, padding)?;
    let mut wrong = Vec::new();
    for ((var, back), &extent) in instance.claim.map.vars().iter().zip(&inverse.outputs).zip(&instance.domain) {
        let back = builder.expr(back)?;
        wrong.push(builder.outside(back, extent)?);
        let inside = builder.clamped(back, extent)?;
        builder.bind(var, inside);
    }
    if let Some(predicate) = instance.claim.predicate {
        let holds = builder.expr(predicate)?;
        wrong.push(builder.unary(UnaryOp::Not, holds)?);
    }
    for (output, &place) in instance.claim.map.outputs().iter().zip(&places) {
        let again = builder.expr(output)?;
        wrong.push(builder.binary(BinaryOp::Ne, again, place)?);
    }
    let flags = wrong.into_iter().map(|wrong| builder.binary(BinaryOp::And, used, wrong)).collect::<Option<_>>()?;
    Some((builder, flags))
}
