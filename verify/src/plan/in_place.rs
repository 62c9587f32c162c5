//! Obligation plan-in-place: a step may write its result where an operand lies that nobody needs after it.
//!
//! ```text
//! for i in T.thread_binding(504):          x lies at bytes 0..2016 and is read here for the last time;
//!     y[i] = T.max(x[i], T.float32(0))     y lies at bytes 0..2016, too
//! ```
//!
//! The statement, about the function of the step with the operand and the result in one memory: if an iteration reads an element of the
//! operand and an iteration writes the same element of the result, then both are one iteration of one store, lanes included. That
//! store has read the element before it writes it, and nobody else needs it. Nothing is said of an order of iterations, so that
//! threads, and loops that become threads, may run in any order.
//!
//! A tensor is in place of another one if both have the same region of a buffer, the step reads the one for the last time and writes
//! the other for the first time, and the caller owns neither the operand nor a view of it. Then the operand does not
//! live in that step for plan-disjoint: the result has its bytes. Textures are never in place: no kernel of OpenCL 1.2 may read and write one
//! image (plan-access).

use std::collections::HashMap;

use tilewright_ir::visit::Substitution;
use tilewright_ir::{Bindings, Buffer, Expr, PrimFunc, Region, StmtKind, Var, sabotage};

use super::graph::Planned;
use super::live::{Life, moment};
use super::touch::{TRIED, Touch, touches};
use crate::access::at_point;
use crate::concrete::tuple;
use crate::door::{All, everywhere};
use crate::judge::{Decision, Judge, Report, unsupported};
use crate::lanes::{one_to_one, values};
use crate::method::{Method, Points};
use crate::obligation::Obligation;
use crate::path::Step;
use crate::reason::Reason;
use crate::record;
use crate::verdict::{Counterexample, Verdict};

/// A step with a result where an operand lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shared {
    /// The step.
    step: usize,
    /// The root of the operand.
    operand: usize,
    /// The tensor that the step writes.
    result: usize,
}

/// The steps of a plan that write a result in place of an operand, among those whose functions are known.
pub(super) fn shared(planned: &Planned<'_>, lives: &[Option<Life>]) -> Vec<Shared> {
    let mut found = Vec::new();
    for (step, uses) in planned.graph.steps.iter().enumerate() {
        if planned.functions.get(step).copied().flatten().is_none() {
            continue;
        }
        let ends = |root: usize| lives[root].is_some_and(|life| life.last == moment(step) && life.first < life.last);
        let begins = |root: usize| lives[root].is_some_and(|life| life.first == moment(step));
        for &result in uses.writes.iter().filter(|&&tensor| begins(planned.roots[tensor])) {
            let mut operands: Vec<usize> = uses.reads.iter().map(|&tensor| planned.roots[tensor]).collect();
            operands.sort_unstable();
            operands.dedup();
            let is_shared = |operand: &usize| {
                let (place, other) = (planned.place(*operand), planned.place(result));
                let is_written = uses.writes.iter().any(|&tensor| planned.roots[tensor] == *operand);
                let is_bytes = matches!(place.region, Region::Bytes { size, .. } if size > 0);
                place == other && is_bytes && ends(*operand) && !is_written && !planned.taken[*operand]
            };
            let operands = operands.into_iter().filter(|operand| !planned.given[*operand]).filter(is_shared);
            found.extend(operands.map(|operand| Shared { step, operand, result }));
        }
    }
    found
}

/// The lifetimes for plan-disjoint: an operand that a result takes the place of ends before that step.
pub(super) fn shortened(lives: &mut [Option<Life>], shared: &[Shared]) {
    for pair in shared {
        if let Some(life) = &mut lives[pair.operand] {
            life.last = moment(pair.step) - 1;
        }
    }
}

/// The report on each step. A function is decided about once, however many steps run it, unless proofs are kept.
pub(super) fn reports(judge: &Judge, planned: &Planned<'_>, shared: &[Shared]) -> Vec<Report> {
    let mut known: HashMap<Asked, Decision> = HashMap::new();
    shared.iter().map(|pair| report(judge, planned, *pair, &mut known)).collect()
}

/// A function, the positions of its operands and that of its result.
type Asked = (*const PrimFunc, Vec<usize>, usize);

/// The report on one step.
fn report(judge: &Judge, planned: &Planned<'_>, pair: Shared, known: &mut HashMap<Asked, Decision>) -> Report {
    let (operand, result) = (planned.name(pair.operand), planned.name(pair.result));
    let subject = format!("{} writes `{result}` in place of `{operand}`", planned.step_name(pair.step));
    Judge::report(Obligation::PlanInPlace, subject, || {
        let uses = &planned.graph.steps[pair.step];
        let is_operand = |tensor: &usize| planned.roots[*tensor] == pair.operand;
        let read = (0..uses.reads.len()).filter(|&position| is_operand(&uses.reads[position]));
        let written = uses.writes.iter().position(|&tensor| tensor == pair.result);
        let Some(written) = written else { return unsupported("the step does not write the result") };
        let Some(func) = planned.functions.get(pair.step).copied().flatten() else {
            return unsupported("the function of the step is not known");
        };
        if func.params.len() != uses.reads.len() + uses.writes.len() {
            return unsupported(format!("`{}` does not have the parameters of the step", func.name));
        }
        let (read, written) = (read.collect::<Vec<_>>(), uses.reads.len() + written);
        if judge.is_recording() {
            return decide(judge, func, &read, written);
        }
        let asked = (std::ptr::from_ref(func), read.clone(), written);
        known.entry(asked).or_insert_with(|| decide(judge, func, &read, written)).clone()
    })
}

impl Judge {
    /// Decides plan-in-place of a function whose parameters `operands` lie where its parameter `result` lies, each given by its position.
    pub fn check_in_place(&self, func: &PrimFunc, operands: &[usize], result: usize) -> Report {
        Self::report(Obligation::PlanInPlace, format!("`{}` in place", func.name), || {
            decide(self, func, operands, result)
        })
    }
}

/// Decides the statement for one function.
fn decide(judge: &Judge, func: &PrimFunc, operands: &[usize], result: usize) -> Decision {
    let buffer = |position: &usize| func.params.get(*position).and_then(|param| func.param_buffer(param));
    let (Some(read), Some(written)) = (operands.iter().map(buffer).collect::<Option<Vec<_>>>(), buffer(&result)) else {
        return unsupported("a tensor of the step is no buffer of its function");
    };
    let (mut loads, mut stores) = (Vec::new(), Vec::new());
    for touch in touches(func) {
        let is_read = read.iter().any(|buffer| buffer.aliases(&touch.access.buffer));
        if is_read && touch.is_store {
            return unsupported(format!("`{}` writes its operand", func.name));
        }
        if touch.is_store && written.aliases(&touch.access.buffer) {
            stores.push(touch);
        } else if is_read {
            loads.push(touch);
        }
    }
    let all: Vec<&Touch> = loads.iter().chain(&stores).collect();
    if let Some(other) = all.iter().find(|touch| !is_same_memory(&all[0].access.buffer, &touch.access.buffer)) {
        return unsupported(format!(
            "`{}` and `{}` differ in their elements",
            all[0].access.buffer, other.access.buffer
        ));
    }
    let (mut open, mut has_barriers) = (None, false);
    func.body.walk(&mut |stmt| has_barriers |= matches!(stmt.kind, StmtKind::Barrier));
    let (mut grounds, mut method): (All, Option<Method>) = (All::default(), None);
    for load in &loads {
        for store in &stores {
            let found = record::attempt(|| by_map(judge, load, store)).or_else(|| tried(load, store));
            // All threads may have read before one of them writes.
            let found = found.filter(|(verdict, _)| !has_barriers || verdict.is_proved());
            match found {
                Some((Verdict::Proved(found), how)) => {
                    grounds.add(found);
                    method = Some(method.filter(|known| known.weight() >= how.weight()).unwrap_or(how));
                }
                Some(refuted) => return refuted,
                None => {
                    let (load, store) = (&load.access.text, &store.access.text);
                    let text =
                        format!("whether `{load}` is read where another iteration of `{store}` writes is not decided");
                    open = open.or(Some((Verdict::Unknown(Reason::undecided(text)), Method::Nothing)));
                }
            }
        }
    }
    if let Some(open) = open {
        return open;
    }
    (grounds.proved(), method.unwrap_or(Method::Inspection("the operand is not read")))
}

/// Whether elements of two buffers at one place in memory are the same exactly if their indices are.
fn is_same_memory(one: &Buffer, other: &Buffer) -> bool {
    let is_plain = |buffer: &Buffer| {
        buffer.strides.is_none() && buffer.elem_offset.as_const_int() == Some(0) && !buffer.scope.is_texture()
    };
    one.dtype == other.dtype && one.shape == other.shape && is_plain(one) && is_plain(other)
}

/// One store reads and writes at one index, and writes each element in one iteration.
fn by_map(judge: &Judge, load: &Touch, store: &Touch) -> Option<Decision> {
    if load.site != store.site || load.n_lanes != store.n_lanes || store.n_lanes > 1 {
        return None;
    }
    let lanes = |touch: &Touch| touch.loops[touch.loops.len() - touch.n_lanes..].to_vec();
    let renamed = Substitution::new(&lanes(load), lanes(store).iter().map(Expr::from));
    let indices: Vec<Expr> = load.access.indices.iter().map(|index| renamed.apply(index)).collect();
    if indices != store.access.indices {
        return None;
    }
    let of = |step: &Step| match step {
        Step::Loop(var, min, extent) => Some((var.clone(), min.clone(), extent.clone())),
        Step::Let(..) | Step::Guard(..) => None,
    };
    let loops: Vec<(Var, Expr, Expr)> = store.access.path.steps.iter().filter_map(of).collect();
    let (path, shape) = (&store.access.path, &store.access.buffer.shape);
    let (verdict, method) = one_to_one(judge, (path, &[]), &loops, &store.access.indices, shape);
    verdict.is_proved().then(|| (verdict, Method::IndexMaps(vec![method])))
}

/// What all iterations of a load and a store say, or two that share an element; `None` if there are too many, or something has no
/// value.
fn tried(load: &Touch, store: &Touch) -> Option<Decision> {
    if !store.access.path.symbols.is_empty() {
        return None;
    }
    // Two iterations that write an element are enough to find one that is not the one that reads it.
    let mut writers: HashMap<Vec<i128>, Vec<Vec<i128>>> = HashMap::new();
    let (mut is_clear, mut is_open, mut looked_at) = (true, false, 0);
    let (_, all_stores) = store.access.path.each_iteration(&Bindings::new(), TRIED, &mut |bindings| {
        match values(&store.access.indices, bindings).zip(store.iteration(bindings)) {
            Some((index, at)) => {
                let known = writers.entry(index).or_default();
                if known.len() < 2 && !known.contains(&at) {
                    known.push(at);
                }
                looked_at += 1;
            }
            None => is_clear = false,
        }
        None::<()>
    });
    let (found, all_loads) = load.access.path.each_iteration(&Bindings::new(), TRIED, &mut |bindings| {
        let Some((index, at)) = values(&load.access.indices, bindings).zip(load.iteration(bindings)) else {
            is_clear = false;
            return None;
        };
        looked_at += 1;
        let is_own = load.site == store.site && load.n_lanes == store.n_lanes;
        let is_own = is_own || (sabotage::on("in-place-forgets-statements") && load.site != store.site);
        let any = sabotage::on("in-place-takes-any-iteration");
        let mut others = writers.get(&index)?.iter().filter(|other| !is_own || (**other != at && !any));
        let found = others.clone().find(|other| is_conflict((load, &at), (store, other)));
        is_open |= found.is_none() && others.next().is_some();
        found.map(|other| described(load, store, (&index, other), bindings))
    });
    if let Some(found) = found {
        return Some((Verdict::Refuted(found), Method::Evaluation));
    }
    if is_open {
        return None;
    }
    (is_clear && all_stores && all_loads).then_some((everywhere(looked_at), Method::Enumeration(Points::All)))
}

/// Whether an element is read too late for sure: in another iteration of the loops around both, which may run in any order, or behind the
/// statement that writes it.
fn is_conflict((load, at): (&Touch, &[i128]), (store, other): (&Touch, &[i128])) -> bool {
    let common = load.common_loops(store);
    at[..common] != other[..common] || store.site < load.site
}

/// The counterexample: an element that one iteration reads and another one, or another statement, writes.
fn described(load: &Touch, store: &Touch, (index, other): (&[i128], &[i128]), bindings: &Bindings) -> Counterexample {
    let by: Vec<String> = store.loops.iter().zip(other).map(|(var, value)| format!("{var} = {value}")).collect();
    let at = if by.is_empty() { String::new() } else { format!(" in iteration {}", by.join(", ")) };
    let (reader, writer) = (&load.access.text, &store.access.text);
    let text = format!("`{writer}` writes element {}{at}, and `{reader}` reads it", tuple(index));
    at_point(&load.access.path, bindings, text)
}
