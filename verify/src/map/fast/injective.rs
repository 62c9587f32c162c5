//! Fast evaluation of the obligation injective.

use tilewright_ir::BinaryOp;

use super::super::injective::collision;
use super::super::instance::Instance;
use super::{Graph, Seen, does_not_replay};
use crate::enumerate::{self, Builder, NodeId};

/// Group by group: the first collision of each group of axes.
pub(in super::super) fn injective(instance: &Instance<'_>, limit: u64) -> Seen {
    let Some(graph) = instance.graph() else { return Seen::Unfit };
    let Some((builder, outputs)) = told_apart(graph, &instance.domain) else { return Seen::Unfit };
    let mut first: Option<(Vec<i128>, Vec<i128>)> = None;
    let mut open = false;
    for group in groups(&builder, &graph.axes, &outputs) {
        match first_of_group(instance, &builder, &group, limit) {
            Some(None) => {}
            Some(Some(pair)) => first = Some(first.map_or_else(|| pair.clone(), |first| first.min(pair.clone()))),
            None => open = true,
        }
    }
    match first {
        Some((second, first)) => collision(instance.claim, &instance.symbols, &first, &second)
            .map_or_else(|| does_not_replay(&second), Seen::Fails),
        None if open => Seen::TooMany,
        None => Seen::Nothing,
    }
}

/// A set of outputs and the axes that they depend on, which no other output depends on.
#[derive(Debug, Default)]
struct Group {
    /// The axes, increasing.
    axes: Vec<usize>,
    /// The outputs that depend on them.
    outputs: Vec<NodeId>,
}

/// The groups of some outputs. An axis that no output depends on is a group without outputs; an axis of extent 1 is in no group.
fn groups(builder: &Builder, axes: &[NodeId], outputs: &[NodeId]) -> Vec<Group> {
    let moving = |axis: &usize| builder.range(axes[*axis]).constant().is_none();
    let mut groups: Vec<Group> =
        (0..axes.len()).filter(moving).map(|axis| Group { axes: vec![axis], outputs: Vec::new() }).collect();
    for &output in outputs {
        let used = builder.axes(output);
        let (joined, others): (Vec<Group>, Vec<Group>) =
            groups.into_iter().partition(|group| group.axes.iter().any(|axis| used.contains(axis)));
        groups = others;
        let mut all = Group::default();
        for group in joined {
            all.axes.extend(group.axes);
            all.outputs.extend(group.outputs);
        }
        if !all.axes.is_empty() {
            all.axes.sort_unstable();
            all.outputs.push(output);
            groups.push(all);
        }
    }
    groups
}

/// The outputs of a map, and for a restricted claim one more: it is 0 at the indices for which the predicate holds, and has a
/// value of its own at each other one, so that only collisions between the former are left.
fn told_apart(graph: &Graph, domain: &[i128]) -> Option<(Builder, Vec<NodeId>)> {
    let (mut builder, mut outputs) = (graph.builder.clone(), graph.outputs.clone());
    if let Some(holds) = graph.predicate {
        let (zero, one) = (builder.int(0)?, builder.int(1)?);
        let fails = builder.binary(BinaryOp::Eq, holds, zero)?;
        let place = builder.place(&graph.axes, domain)?;
        let own = builder.binary(BinaryOp::Add, place, one)?;
        outputs.push(builder.binary(BinaryOp::Mul, fails, own)?);
    }
    Some((builder, outputs))
}

/// The first collision of a group, as its second and its first index, if there is one. `None` if there are too many points.
#[expect(clippy::option_option, reason = "no collision, and no answer")]
fn first_of_group(
    instance: &Instance<'_>,
    builder: &Builder,
    group: &Group,
    limit: u64,
) -> Option<Option<(Vec<i128>, Vec<i128>)>> {
    let rank = instance.domain.len();
    let determined: Vec<usize> = group.outputs.iter().filter_map(|&output| builder.determines(output)).collect();
    if group.axes.iter().all(|axis| determined.contains(axis)) {
        return Some(None);
    }
    if group.outputs.is_empty() {
        let mut second = vec![0; rank];
        second[group.axes[0]] = 1;
        return Some(Some((second, vec![0; rank])));
    }
    let mut builder = builder.clone();
    let key = builder.key(&group.outputs);
    let roots = key.map_or_else(|| group.outputs.clone(), |(key, _)| vec![key]);
    let program = builder.program_over(&roots, &group.axes).filter(|program| program.points() <= limit)?;
    let found = enumerate::collision(instance.judge, &program, roots.len(), key.map(|(_, size)| size));
    let index = |place| program.index(place, rank);
    Some(found.map(|found| (index(found.second), index(found.first))))
}
