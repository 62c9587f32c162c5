//! Memory of each thread that is allocated outside of the loops over threads: no other thread touches its elements.
//!
//! ```text
//! for b in 4 (blockIdx.x):
//!     acc: local memory (8,)
//!     for t in 8 (threadIdx.x): acc[t] = A[b, t]
//!     for t in 8 (threadIdx.x): B[b, t] = acc[7 - t]       an element of another thread
//! ```
//!
//! A device gives memory in the scope `local` to each thread for itself, so that nobody reads what another one wrote, at whatever time and
//! behind whatever barrier. The statement is about two accesses while the memory is allocated: if they touch the same element, their groups
//! and threads are the same. Both ways are written with one loop in front for each axis of groups and threads, so that the two accesses are
//! those of two iterations of that loop, as in any other race. What is in no loop over an axis belongs to the first thread on it.
//!
//! The interpreter has one memory for all threads, so that no run shows what is wrong; therefore nothing is refuted.

use std::collections::{BTreeMap, HashMap, HashSet};

use tilewright_ir::visit::Substitution;
use tilewright_ir::{BinaryOp, Buffer, Expr, For, ForKind, PrimFunc, Scope, Stmt, StmtKind, ThreadTag, Var};

use super::{Done, Touch, bound_from, is_placed_by, pairs, reads, touches};
use crate::access::Access;
use crate::judge::{Decision, Judge, Report, Side, unsupported};
use crate::method::Method;
use crate::obligation::Obligation;
use crate::path::{Path, Step, each_statement};
use crate::reason::Reason;
use crate::steps::Steps;
use crate::verdict::Verdict;

/// The step of a schedule that binds the loop of a reduction to threads.
const ALLREDUCE: &str = "allreduce";

/// A loop over groups or threads: variable, first value and extent.
type Bound = (Var, Expr, Expr);

/// The end of the subjects of these reports.
pub const OWN_MEMORY: &str = "memory of each thread";

/// One report for each memory whose threads are told apart below its allocation.
pub(super) fn reports(judge: &Judge, func: &PrimFunc) -> Vec<Report> {
    let mut reports = Vec::new();
    each_statement(func, &mut |stmt, path| {
        let StmtKind::Allocate { buffer, body } = &stmt.kind else { return };
        if buffer.scope != Scope::Local {
            return;
        }
        let tags = threads(func, body, buffer);
        let mut all = touches(body, path);
        let written: Vec<Buffer> =
            all.iter().filter(|touch| touch.writes).map(|touch| touch.access.buffer.clone()).collect();
        all.retain(|touch| touch.access.buffer.aliases(buffer));
        let has_owner = |touch: &Touch| touch.access.path.loops().iter().any(|var| tags.contains_key(var));
        if !all.iter().any(has_owner) {
            return;
        }
        let decide = || match in_front(&all, path.steps.len(), &tags) {
            Some((all, loops)) => decide(judge, &all, &loops, (buffer, &written)),
            None => unsupported(format!(
                "the loops over threads around `{buffer}` have bounds, or views of it places, that are not compared"
            )),
        };
        let report = Judge::report(Obligation::Race, format!("`{buffer}`, {OWN_MEMORY}"), decide);
        reports.push(report.placed(Side::Before, buffer.span.or(stmt.span)));
    });
    reports
}

/// The loops over groups and threads in a statement, for the memory `of` a buffer.
fn threads(func: &PrimFunc, body: &Stmt, of: &Buffer) -> HashMap<Var, ThreadTag> {
    let mut found = HashMap::new();
    body.walk(&mut |part| {
        let StmtKind::For(inner) = &part.kind else { return };
        let tag = match inner.kind {
            ForKind::ThreadBinding(tag) => Some(tag),
            ForKind::Serial | ForKind::Unrolled | ForKind::Parallel | ForKind::Vectorized => {
                // The first thread alone stores the result.
                bound_later(func, inner).filter(|_| !stores_to(&inner.body, |stored| stored.aliases(of)))
            }
        };
        found.extend(tag.map(|tag| (inner.var.clone(), tag)));
    });
    found
}

/// The axis of threads that the schedule will bind a loop to: that of a reduction by threads, each of which reads its own value.
fn bound_later(func: &PrimFunc, inner: &For) -> Option<ThreadTag> {
    let steps = func.attrs.schedule.iter().filter(|step| step.primitive == ALLREDUCE);
    let named = steps.filter(|_| is_reduction(inner)).filter_map(|step| step.argument.rsplit_once(':'));
    let mut meant = named.filter(|(name, _)| match name.rsplit_once('.') {
        Some((buffer, var)) => inner.var.name() == var && stores_to(&inner.body, |stored| stored.name == buffer),
        None => inner.var.name() == *name,
    });
    meant.next().and_then(|(_, tag)| tag.trim().parse().ok())
}

/// Whether all iterations of a loop store to one element, and read it.
fn is_reduction(inner: &For) -> bool {
    let mut stores = Vec::new();
    inner.body.walk(&mut |part| {
        if let StmtKind::Store { buffer, indices, value } = &part.kind {
            stores.push((buffer, indices, value));
        }
    });
    let Some(&(buffer, indices, _)) = stores.first() else { return false };
    let result = Expr::load(buffer, indices.clone());
    let is_update = |value: &Expr| {
        let mut found = false;
        value.walk(&mut |part| found |= *part == result);
        found
    };
    !result.vars().contains(&inner.var)
        && stores.iter().all(|(other, at, _)| *other == buffer && *at == indices)
        && stores.iter().any(|(_, _, value)| is_update(value))
}

/// Whether a statement stores to a buffer that is meant.
fn stores_to(stmt: &Stmt, is_meant: impl Fn(&Buffer) -> bool) -> bool {
    let mut found = false;
    stmt.walk(&mut |part| found |= matches!(&part.kind, StmtKind::Store { buffer, .. } if is_meant(buffer)));
    found
}

fn decide(judge: &Judge, all: &[Touch], loops: &[Var], (buffer, written): (&Buffer, &[Buffer])) -> Decision {
    let apart = loops.iter().map(|var| (var.clone(), HashSet::new())).collect();
    let mut done = Done::default();
    match done.decide(judge, &pairs(all, &apart, 0, written), true) {
        None => done.decision(),
        Some((Verdict::Refuted(found), _)) => {
            let text = found.text.trim_end_matches(", which run at once");
            let text = format!(
                "`{buffer}` is memory of each thread, and others touch it: {text}; memory that threads share is in scope `shared`"
            );
            (Verdict::Unknown(Reason::unsupported(text)), Method::Nothing)
        }
        Some(open) => open,
    }
}

/// The accesses with the loops over groups and threads in front of all others below the first `depth` steps, and the variables of these
/// loops, which all accesses share. `None` if such a loop has no bounds that are known there, or begins elsewhere than the others, or if a view
/// has no fixed place.
fn in_front(all: &[Touch], depth: usize, tags: &HashMap<Var, ThreadTag>) -> Option<(Vec<Touch>, Vec<Var>)> {
    let mut shared: BTreeMap<ThreadTag, Bound> = BTreeMap::new();
    for touch in all {
        let mut inside: Vec<&Var> = Vec::new();
        for step in touch.access.path.steps.iter().skip(depth) {
            if let Step::Loop(var, min, extent) = step
                && let Some(tag) = tags.get(var)
            {
                // A loaded value may differ from one loop over threads to the next.
                let is_fixed =
                    |bound: &Expr| !bound.reads_memory() && !bound.vars().iter().any(|used| inside.contains(&used));
                if ![min, extent].into_iter().all(is_fixed) {
                    return None;
                }
                let own = (Var::new(var.name(), var.dtype()), min.clone(), extent.clone());
                let both = shared.remove(tag).map_or(Some(own.clone()), |other| around(other, &own))?;
                shared.insert(*tag, both);
            }
            if let Step::Loop(var, ..) | Step::Let(var, _) = step {
                inside.push(var);
            }
        }
    }
    let moved = all.iter().map(|touch| with_front(touch, depth, tags, &shared)).collect::<Option<_>>()?;
    Some((moved, shared.into_values().map(|(var, ..)| var).collect()))
}

/// The loop over the iterations of both, with the variable of the first one. A thread is the distance from the first value, so that these have
/// to agree.
fn around((var, min, extent): Bound, (other, other_min, other_extent): &Bound) -> Option<Bound> {
    if var.dtype() != other.dtype() || min != *other_min {
        return None;
    }
    if extent == *other_extent {
        return Some((var, min, extent));
    }
    let extent = extent.as_const_int()?.max(other_extent.as_const_int()?);
    let extent = Expr::int_of(extent, var.dtype().scalar)?;
    Some((var, min, extent))
}

/// Whether the place of a view that an access goes through, or that its indices or conditions read, depends on what is inside the allocation.
fn has_moving_view(access: &Access, depth: usize) -> bool {
    let inside = bound_from(access, depth);
    is_placed_by(&access.buffer, &inside) || reads(access, |buffer| is_placed_by(buffer, &inside))
}

/// An access whose way has the shared loops in front.
fn with_front(
    touch: &Touch,
    depth: usize,
    tags: &HashMap<Var, ThreadTag>,
    shared: &BTreeMap<ThreadTag, Bound>,
) -> Option<Touch> {
    let Access { buffer, indices, path, text } = &touch.access;
    if has_moving_view(&touch.access, depth) {
        return None;
    }
    let mut steps: Steps = path.steps.iter().take(depth).cloned().collect();
    let mut missing = shared.clone();
    for (var, min, extent) in shared.values() {
        steps.push(Step::Loop(var.clone(), min.clone(), extent.clone()));
    }
    let mut names = Substitution::default();
    for step in path.steps.iter().skip(depth) {
        match step {
            Step::Loop(var, _, extent) if tags.contains_key(var) => {
                // A second loop on the same axis has no values of its own on a device.
                let (index, first, all) = missing.remove(tags.get(var)?)?;
                let index = Expr::from(&index);
                names.insert(var, index.clone());
                if *extent != all {
                    steps.push(Step::Guard(index.lt(first + extent.clone()), true));
                }
            }
            Step::Loop(var, min, extent) => {
                steps.push(Step::Loop(var.clone(), names.apply(min), names.apply(extent)));
            }
            Step::Let(var, value) => steps.push(Step::Let(var.clone(), names.apply(value))),
            Step::Guard(cond, holds) => steps.push(Step::Guard(names.apply(cond), *holds)),
        }
    }
    for (index, min, _) in missing.values() {
        if min.as_const_int() != Some(0) {
            return None;
        }
        steps.push(Step::Guard(Expr::binary(BinaryOp::Eq, Expr::from(index), min.clone()), true));
    }
    let path = Path { steps, settled: None, ..path.clone() };
    let indices = indices.iter().map(|index| names.apply(index)).collect();
    let access = Access { buffer: buffer.clone(), indices, path, text: text.clone() };
    Some(Touch { access, writes: touch.writes })
}
