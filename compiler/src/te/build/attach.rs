//! The loops of a stage that is computed in a loop of another one: they are split, fused and ordered there.
//!
//! ```text
//! s[A].split(A.op.axis[0], 4)        for i in range(n): A[i] = ...      at the root, and the steps
//! s[A].compute_at(s[B], y)               compute_at=A:B.y, split=A.i:4
//! ```
//!
//! The part of a tensor that one iteration of the other stage reads is known only where the tensor is computed there. So the stage is
//! lowered with one loop for each axis of its definition, and each change of these loops is a step of the schedule behind `compute_at`. It is then about
//! the loops over that part: a factor that does not divide it has a guard, as everywhere else. If a loop over an axis runs inside of a
//! reduction, the identity is stored by a nest of its own, whose loops change in the same way.

use tilewright_ir::{Buffer, Diagnostic, ForKind, ScheduleStep};

use super::Built;
use super::nest::Nest;
use super::stage::{LoopData, Relation, SplitBy, StageData};

/// Most copies of a body that loops marked `unroll` make.
const MOST_COPIES: i128 = 64;

/// Whether the loops of a stage are made by steps of the schedule.
pub(super) fn is_recreated(stage: &StageData) -> bool {
    stage.attached.is_some() && !stage.relations.is_empty()
}

/// Checks that steps can make the loops of a stage again.
///
/// # Errors
/// `compute-at`: loops follow a layout, are bound to threads, have hints, or have the same name; `vectorize-inner` if a vectorized loop
/// is not innermost.
pub(super) fn check(stage: &StageData, buffer: &Buffer) -> Built<()> {
    Nest::new(stage)?;
    let place = stage.attached.and_then(|attached| attached.place);
    let wrong = |why: &str, help: &str| {
        let message = format!("`{buffer}` is computed in a loop of another tensor, and {why}");
        Err(Diagnostic::error("compute-at", place, message).with_help(help))
    };
    if stage.relations.iter().any(|relation| matches!(relation, Relation::Layout { .. })) {
        return wrong(
            "its own loops follow a layout",
            "transform the layout without rewriting the loops, or compute it at the root",
        );
    }
    let leaves = || stage.leaves.iter().map(|&leaf| &stage.loops[leaf]);
    if let Some(run) = leaves().find(|run| matches!(run.kind, ForKind::ThreadBinding(_))) {
        let why = format!("its own loop `{}` is bound to threads", run.name);
        return wrong(&why, "bind loops of the tensor that reads it");
    }
    if let Some(run) = leaves().find(|run| !run.annotations.is_empty()) {
        return wrong(&format!("its own loop `{}` has a pragma", run.name), "leave the pragma out");
    }
    let is_twice = |(at, run): (usize, &LoopData)| stage.loops[..at].iter().any(|other| other.name == run.name);
    if let Some((_, run)) = stage.loops.iter().enumerate().find(|(at, run)| is_twice((*at, run))) {
        return wrong(&format!("several of its loops are called `{}`", run.name), "give its axes different names");
    }
    Ok(())
}

/// The stage with the loops of its definition over its axes. Reduced loops do not depend on the part that is read, and stay as they are
/// scheduled.
pub(super) fn original(stage: &StageData) -> StageData {
    let run = |run: &LoopData| LoopData {
        name: run.name.clone(),
        extent: run.extent.clone(),
        reduce: run.reduce,
        kind: ForKind::Serial,
        kind_place: run.kind_place,
        axis: run.axis.clone(),
        annotations: Vec::new(),
    };
    let mut original = StageData::new(stage.tensor, stage.work, &[], &[]);
    (original.roots, original.reduced) = (stage.roots.clone(), stage.reduced.clone());
    original.layout_axes.clone_from(&stage.roots);
    original.leaves = first_order(stage);
    original.loops = stage.loops.iter().map(run).collect();
    original.relations = stage.relations.iter().filter_map(|relation| of_reduced(stage, relation)).collect();
    original.names_init = is_apart(stage);
    original.scope = stage.scope;
    original.attached = stage.attached;
    original.redirects.clone_from(&stage.redirects);
    original
}

/// A relation of reduced loops.
fn of_reduced(stage: &StageData, relation: &Relation) -> Option<Relation> {
    match relation {
        Relation::Split { parent, outer, inner, factor, exact, by } if stage.loops[*parent].reduce => {
            let (parent, outer, inner) = (*parent, *outer, *inner);
            Some(Relation::Split { parent, outer, inner, factor: factor.clone(), exact: *exact, by: *by })
        }
        Relation::Fuse { outer, inner, fused } if stage.loops[*fused].reduce => {
            Some(Relation::Fuse { outer: *outer, inner: *inner, fused: *fused })
        }
        Relation::Split { .. } | Relation::Fuse { .. } | Relation::Layout { .. } => None,
    }
}

/// Whether a loop over an axis runs inside of a reduced one: then two nests compute the tensor.
fn is_apart(stage: &StageData) -> bool {
    let is_reduced = |&leaf: &usize| stage.loops[leaf].reduce;
    let first = stage.leaves.iter().position(&is_reduced).unwrap_or(stage.leaves.len());
    stage.leaves[first..].iter().any(|leaf| !is_reduced(leaf))
}

/// The loops over the axes of the definition and the reduced loops, outermost first. Reduced loops come first if the identity is
/// stored by a nest of its own.
fn first_order(stage: &StageData) -> Vec<usize> {
    let reduced = stage.leaves.iter().copied().filter(|&leaf| stage.loops[leaf].reduce);
    let spatial = stage.roots.iter().copied();
    if is_apart(stage) { reduced.chain(spatial).collect() } else { spatial.chain(reduced).collect() }
}

/// The steps that make the loops of a stage, behind the one that moves it.
pub(super) fn steps(stage: &StageData, buffer: &str) -> Vec<ScheduleStep> {
    let is_apart = is_apart(stage);
    let mut steps = Vec::new();
    if is_apart {
        let spatial = first_order(stage).into_iter().filter(|&at| !stage.loops[at].reduce).collect();
        steps.extend(Remade::new(stage, buffer, "_init", spatial).steps());
    }
    steps.extend(Remade::new(stage, buffer, "", first_order(stage)).steps());
    steps
}

/// The loops of one nest while steps change them.
struct Remade<'s> {
    stage: &'s StageData,
    buffer: &'s str,
    /// The names that the loops have in the program.
    names: Vec<String>,
    /// The loops, outermost first.
    order: Vec<usize>,
    steps: Vec<ScheduleStep>,
}

impl<'s> Remade<'s> {
    fn new(stage: &'s StageData, buffer: &'s str, suffix: &str, order: Vec<usize>) -> Self {
        let names = stage.loops.iter().map(|run| format!("{}{suffix}", run.name)).collect();
        Self { stage, buffer, names, order, steps: Vec::new() }
    }

    fn steps(mut self) -> Vec<ScheduleStep> {
        for relation in &self.stage.relations {
            match relation {
                Relation::Split { parent, outer, inner, by, .. } => self.split(*parent, [*outer, *inner], *by),
                Relation::Fuse { outer, inner, fused } => self.fuse(*outer, *inner, *fused),
                // `check` refuses them.
                Relation::Layout { .. } => {}
            }
        }
        self.arrange();
        self.kinds();
        self.steps
    }

    fn named(&self, at: usize) -> String {
        format!("{}.{}", self.buffer, self.names[at])
    }

    fn step(&mut self, primitive: &str, argument: String) {
        self.steps.push(ScheduleStep { primitive: primitive.to_owned(), argument, span: None });
    }

    fn position(&self, at: usize) -> Option<usize> {
        self.order.iter().position(|&other| other == at)
    }

    fn split(&mut self, parent: usize, parts: [usize; 2], by: SplitBy) {
        let Some(position) = self.position(parent) else { return };
        let by = match by {
            SplitBy::Factor(factor) => factor.to_string(),
            SplitBy::Parts(n_parts) => format!("{n_parts}:parts"),
        };
        self.step("split", format!("{}:{by}", self.named(parent)));
        for (part, suffix) in parts.into_iter().zip(["outer", "inner"]) {
            self.names[part] = format!("{}_{suffix}", self.names[parent]);
        }
        self.order.splice(position..=position, parts);
    }

    fn fuse(&mut self, outer: usize, inner: usize, fused: usize) {
        let (Some(at), Some(from)) = (self.position(outer), self.position(inner)) else { return };
        if from != at + 1 {
            let mut order = self.order.clone();
            order.retain(|&other| other != inner);
            let behind = order.iter().position(|&other| other == outer).map_or(order.len(), |at| at + 1);
            order.insert(behind, inner);
            self.reorder(order);
        }
        self.step("fuse", format!("{}:{}", self.named(outer), self.named(inner)));
        self.names[fused] = format!("{}_{}_fused", self.names[outer], self.names[inner]);
        let at = self.position(outer).unwrap_or(0);
        self.order.splice(at..=at + 1, [fused]);
    }

    /// The step that gives the loops the order of the schedule.
    fn arrange(&mut self) {
        let order = self.stage.leaves.iter().copied().filter(|leaf| self.order.contains(leaf)).collect();
        self.reorder(order);
    }

    /// The step to another order. Reduced loops keep theirs, and are not named where a statement stands in front of them.
    fn reorder(&mut self, order: Vec<usize>) {
        let is_apart = is_apart(self.stage);
        let named = |order: &[usize]| -> Vec<usize> {
            order.iter().copied().filter(|&at| is_apart || !self.stage.loops[at].reduce).collect()
        };
        let (old, new) = (named(&self.order), named(&order));
        if old != new {
            let names: Vec<String> = new.iter().map(|&at| self.named(at)).collect();
            self.step("reorder", names.join(":"));
        }
        self.order = order;
    }

    /// The steps for kinds of loops, inner ones first. Loops of a constant number of iterations are written out if few copies result.
    fn kinds(&mut self) {
        let mut copies = 1;
        for at in self.order.clone().into_iter().rev() {
            let kind = match self.stage.loops[at].kind {
                ForKind::Serial | ForKind::ThreadBinding(_) => continue,
                ForKind::Parallel => "parallel",
                ForKind::Vectorized => "vectorized",
                ForKind::Unrolled => match self.written_out(at).map(|n| n.saturating_mul(copies)) {
                    Some(all @ ..=MOST_COPIES) => {
                        copies = all;
                        self.step("unroll", self.named(at));
                        continue;
                    }
                    Some(_) | None => "unrolled",
                },
            };
            self.step("loop_kind", format!("{}:{kind}", self.named(at)));
        }
    }

    /// The number of iterations of a loop that does not depend on what is read: that of the inner part of a split.
    fn written_out(&self, at: usize) -> Option<i128> {
        let is_inner = |relation: &Relation| match relation {
            Relation::Split { inner, by, .. } => *inner == at && matches!(by, SplitBy::Factor(_)),
            Relation::Fuse { .. } | Relation::Layout { .. } => false,
        };
        let extent = self.stage.loops[at].extent.as_const_int();
        extent.filter(|_| self.stage.relations.iter().any(is_inner))
    }
}
