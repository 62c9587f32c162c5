//! Obligation defined of steps: a step reads an element of its result only after it has written it.
//!
//! ```text
//! for i in 504:                  y lies in a pool, where other tensors were before:
//!     y[i] = y[i] + x[i]         y[i] is read, and nothing has written it
//! ```
//!
//! The statement, about the function of the step: each load of a buffer that is a result of the step is made after a store to the same
//! element. It is asked of every step whose function is known and reads a result at all, whether the result is in place of an operand or
//! not: a function that works in place reads its operand by the parameter of the operand.
//!
//! A load is decided by the first that answers of: a store in front of it, in the same iteration and at the same index
//! ([`is_dominated`]); all iterations of the loads and stores ([`tried`]); and a claim about the stores that wrote what is read, checked by
//! [`crate::flow`]. The last one takes the order of a loop of threads for the order of its iterations, as *race* of the same function
//! allows.

use std::collections::HashMap;

use tilewright_ir::visit::Substitution;
use tilewright_ir::{Bindings, Buffer, Expr, PrimFunc, Sources, StmtKind, Var, sabotage};

use super::graph::Planned;
use super::touch::{TRIED, Touch, touches};
use crate::access::at_point;
use crate::concrete::tuple;
use crate::door::{everywhere, inspected};
use crate::flow::is_written_first;
use crate::judge::{Decision, Judge, Report, all_of, suspected, unsupported};
use crate::lanes::values;
use crate::method::{Method, Points};
use crate::obligation::Obligation;
use crate::path::Step;
use crate::record;
use crate::verdict::Verdict;

/// Finds for each store of a function where the values come from that it reads from memory that the function writes. It is not trusted.
pub type FindSources<'f> = dyn Fn(&PrimFunc) -> Vec<Sources> + 'f;

/// The report on each step that reads a result. A function is decided about once, however many steps run it, unless proofs are kept.
pub(super) fn reports(judge: &Judge, planned: &Planned<'_>, find: &FindSources<'_>) -> Vec<Report> {
    let mut known: HashMap<(*const PrimFunc, usize), Decision> = HashMap::new();
    let mut found = Vec::new();
    for (number, uses) in planned.graph.steps.iter().enumerate() {
        let Some(func) = planned.functions.get(number).copied().flatten() else { continue };
        if sabotage::on("steps-may-read-their-results") || !reads_result(func, uses.reads.len()) {
            continue;
        }
        let names: Vec<String> = uses.writes.iter().map(|&tensor| format!("`{}`", planned.name(tensor))).collect();
        let subject = format!("{} reads {} as it writes it", planned.step_name(number), names.join(" or "));
        found.push(Judge::report(Obligation::Defined, subject, || {
            if func.params.len() != uses.reads.len() + uses.writes.len() {
                return unsupported(format!("`{}` does not have the parameters of the step", func.name));
            }
            if judge.is_recording() {
                return decide(judge, func, uses.reads.len(), find);
            }
            let asked = (std::ptr::from_ref(func), uses.reads.len());
            known.entry(asked).or_insert_with(|| decide(judge, func, uses.reads.len(), find)).clone()
        }));
    }
    found
}

/// The buffers of the parameters behind the operands.
fn results(func: &PrimFunc, n_operands: usize) -> Vec<&Buffer> {
    func.params.iter().skip(n_operands).filter_map(|param| func.param_buffer(param)).collect()
}

/// Whether a function reads memory that a result lies in.
fn reads_result(func: &PrimFunc, n_operands: usize) -> bool {
    let results = results(func, n_operands);
    let is_result = |buffer: &Buffer| results.iter().any(|result| result.aliases(buffer));
    touches(func).iter().any(|touch| !touch.is_store && is_result(&touch.access.buffer))
}

/// Decides the statement for one function, whose first parameters are operands.
fn decide(judge: &Judge, func: &PrimFunc, n_operands: usize, find: &FindSources<'_>) -> Decision {
    let results = results(func, n_operands);
    let all: Vec<Touch> = touches(func);
    let mut concurrent: Vec<Var> = Vec::new();
    func.body.walk(&mut |stmt| {
        if let StmtKind::For(inner) = &stmt.kind
            && inner.kind.is_concurrent()
        {
            concurrent.push(inner.var.clone());
        }
    });
    let is_result = |touch: &Touch| results.iter().any(|result| result.aliases(&touch.access.buffer));
    let (stores, others): (Vec<&Touch>, Vec<&Touch>) =
        all.iter().filter(|touch| is_result(touch)).partition(|touch| touch.is_store);
    let mut written: Vec<(&Buffer, Written)> = Vec::new();
    let (mut decisions, mut is_open) = (Vec::new(), false);
    for load in others {
        let buffer = &load.access.buffer;
        let of: Vec<&Touch> = stores.iter().copied().filter(|store| store.access.buffer.aliases(buffer)).collect();
        if of.iter().any(|store| store.access.buffer != *buffer) {
            return unsupported(format!("`{}` sees memory that is written under another name", load.access.text));
        }
        if of.iter().any(|store| is_dominated(load, store)) {
            decisions.push((inspected(), Method::Inspection("a store in front")));
            continue;
        }
        if !written.iter().any(|(known, _)| *known == buffer) {
            written.push((buffer, Written::new(&of, &concurrent)));
        }
        let known = written.iter().find(|(known, _)| *known == buffer);
        match known.and_then(|(_, written)| tried(load, &of, written, &concurrent)) {
            Some((Verdict::Refuted(found), method)) => return (Verdict::Refuted(found), method),
            Some(decision) => decisions.push(decision),
            None => is_open = true,
        }
    }
    if is_open {
        return flown(judge, func, &results, find);
    }
    all_of(decisions)
}

/// Whether a store writes the element that a load reads, in a statement in front of it that runs whenever that of the load runs.
fn is_dominated(load: &Touch, store: &Touch) -> bool {
    let steps = |touch: &Touch| touch.access.path.steps.iter().take(touch.depth).cloned().collect::<Vec<Step>>();
    let (mine, theirs) = (steps(load), steps(store));
    // What is read on the way could have another value on the second way; without it, equal steps go the same way.
    let reads = theirs.iter().flat_map(Step::exprs).chain(&store.access.indices).any(Expr::reads_memory);
    let leads = mine.starts_with(&theirs) || sabotage::on("defined-forgets-conditions");
    store.site < load.site && leads && !reads && same_index(load, store)
}

/// Whether two accesses are at one index, lane by lane.
fn same_index(load: &Touch, store: &Touch) -> bool {
    let lanes = |touch: &Touch| touch.loops[touch.loops.len() - touch.n_lanes..].to_vec();
    let extents = |touch: &Touch| -> Vec<Expr> {
        let of = |step: &Step| if let Step::Loop(_, _, extent) = step { Some(extent.clone()) } else { None };
        touch.access.path.steps.iter().skip(touch.depth).filter_map(of).collect()
    };
    let renamed = Substitution::new(&lanes(load), lanes(store).iter().map(Expr::from));
    let indices = load.access.indices.iter().map(|index| renamed.apply(index));
    load.n_lanes <= 1 && extents(load) == extents(store) && indices.eq(store.access.indices.iter().cloned())
}

/// The elements of a buffer that stores write.
struct Written {
    /// For each element the first iteration of each store that writes it, for each thread.
    first: HashMap<Vec<i128>, Vec<(usize, Vec<i128>)>>,
    /// Whether these are all of them.
    is_complete: bool,
    looked_at: u64,
}

impl Written {
    fn new(stores: &[&Touch], concurrent: &[Var]) -> Self {
        let mut written = Self { first: HashMap::new(), is_complete: true, looked_at: 0 };
        for (number, store) in stores.iter().enumerate() {
            let threads = |at: &[i128]| -> Vec<i128> {
                store
                    .loops
                    .iter()
                    .zip(at)
                    .filter(|(var, _)| concurrent.contains(var))
                    .map(|(_, value)| *value)
                    .collect()
            };
            let (_, is_complete) = store.access.path.each_iteration(&Bindings::new(), TRIED, &mut |bindings| {
                let Some((index, at)) = values(&store.access.indices, bindings).zip(store.iteration(bindings)) else {
                    written.is_complete = false;
                    return None::<()>;
                };
                let known = written.first.entry(index).or_default();
                if !known.iter().any(|(other, first)| *other == number && threads(first) == threads(&at)) {
                    known.push((number, at));
                }
                written.looked_at += 1;
                None
            });
            // With strides, two indices may be one element.
            written.is_complete &= is_complete && store.access.buffer.strides.is_none();
        }
        written
    }
}

/// What all iterations of a load and of the stores say: that each element was written before, or one that was not. `None` if there are too
/// many, if something has no value, or if that depends on the order of threads.
fn tried(load: &Touch, stores: &[&Touch], written: &Written, concurrent: &[Var]) -> Option<Decision> {
    if !load.access.path.symbols.is_empty() {
        return None;
    }
    let (mut is_open, mut looked_at) = (false, written.looked_at);
    let (found, is_complete) = load.access.path.each_iteration(&Bindings::new(), TRIED, &mut |bindings| {
        let Some((index, at)) = values(&load.access.indices, bindings).zip(load.iteration(bindings)) else {
            is_open = true;
            return None;
        };
        looked_at += 1;
        let writers = written.first.get(&index).into_iter().flatten();
        let orders: Vec<Option<bool>> =
            writers.map(|(number, first)| is_before((stores[*number], first), (load, &at), concurrent)).collect();
        if orders.contains(&Some(true)) {
            return None;
        }
        let is_unwritten = written.is_complete && !orders.contains(&None);
        is_open |= !is_unwritten;
        is_unwritten.then(|| {
            let text = format!("`{}` reads element {}, which nothing has written", load.access.text, tuple(&index));
            at_point(&load.access.path, bindings, text)
        })
    });
    if let Some(found) = found {
        return Some((Verdict::Refuted(found), Method::Evaluation));
    }
    (!is_open && is_complete).then_some((everywhere(looked_at), Method::Enumeration(Points::All)))
}

/// Whether an iteration of a store runs before one of a load; `None` if they are of two threads.
fn is_before((store, first): (&Touch, &[i128]), (load, at): (&Touch, &[i128]), concurrent: &[Var]) -> Option<bool> {
    let common = store.common_loops(load);
    let differs = (0..common).find(|&place| first[place] != at[place]);
    if (0..common).any(|place| first[place] != at[place] && concurrent.contains(&store.loops[place])) {
        return None;
    }
    let is_own = store.site == load.site && sabotage::on("defined-takes-own-store");
    Some(differs.map_or(store.site < load.site || is_own, |place| first[place] < at[place]))
}

/// What a claim about the stores that wrote what is read says.
fn flown(judge: &Judge, func: &PrimFunc, results: &[&Buffer], find: &FindSources<'_>) -> Decision {
    if !func.extents().is_empty() {
        return unsupported("the shapes of the function are symbolic");
    }
    let decided = record::attempt(|| Some(suspected(is_written_first(judge, func, results, &find(func)))));
    decided.unwrap_or_else(|| unsupported("nothing is claimed"))
}
