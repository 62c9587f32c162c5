//! Obligation defined of results: every element of a result that someone reads is written.
//!
//! ```text
//! step 0 `work`:  for i in 59: y[i] = x[i]        y has 60 elements, and y[59] is what another tensor left there
//! step 1 `next`:  for i in 60: z[i] = y[i]        y[59] is read
//! ```
//!
//! The statement, about the function of a step and a result that a later step reads or the caller takes: for each element, some iteration of
//! some store gets to the store and writes that element. The first of these decides that answers:
//!
//! - A claim that names for each case of the element a store and the values of its loops. The judge asks that this iteration gets to the store,
//!   and that the store has the index of the element.
//! - All iterations of the stores, if they are few.
//! - If those leave elements out: all elements that later steps read, if these are few.
//!
//! Whatever depends on loaded values is unknown. Lanes are loops, so that the lanes of texels are elements like others.

use std::collections::{BTreeSet, HashMap};

use tilewright_ir::visit::Substitution;
use tilewright_ir::{Bindings, Buffer, Expr, Instance, PrimFunc, Var, sabotage};

use super::graph::Planned;
use super::touch::{TRIED, Touch, touches};
use crate::access::{Base, at_point};
use crate::concrete::tuple;
use crate::door::everywhere;
use crate::flow::pieces;
use crate::judge::{Decision, Judge, Report, all_of, suspected, unsupported};
use crate::lanes::values;
use crate::method::{Method, Points};
use crate::obligation::Obligation;
use crate::pass::{equal, fit, holds};
use crate::path::{Path, Step};
use crate::record;
use crate::reorder;
use crate::steps::Steps;
use crate::verdict::{Counterexample, Verdict};

/// The stores of a function to one of its parameters, for the search.
#[derive(Debug)]
pub struct Stores<'s> {
    /// The way to an element: a loop over each axis.
    pub element: &'s Path,
    /// The way to each store, the loops over its lanes included, and the index that it writes. No names are bound on the way.
    pub stores: &'s [(Path, Vec<Expr>)],
}

/// Finds for each element a store that writes it, and the values of the loops of that store in terms of those over the element. It is not
/// trusted.
pub type FindWriters<'f> = dyn Fn(&Stores<'_>) -> Vec<Instance> + 'f;

/// A result that someone reads.
struct Written {
    step: usize,
    /// The position of its parameter.
    param: usize,
    tensor: usize,
}

/// What is known of the elements of a parameter.
enum Elements {
    /// All of them are written.
    Written(Decision),
    /// All iterations leave these out, given by their row-major numbers.
    Left { elements: BTreeSet<usize>, looked_at: u64 },
    /// It is not known.
    Open(Decision),
}

/// The report on the results that are written, and one on each other result. A function is decided about once, however many steps run it.
pub(super) fn reports(judge: &Judge, planned: &Planned<'_>, find: &FindWriters<'_>) -> Vec<Report> {
    if sabotage::on("results-may-stay-unwritten") {
        return Vec::new();
    }
    let (mut known, mut open, mut steps) = (HashMap::new(), Vec::new(), BTreeSet::new());
    let mut whole = Judge::report(Obligation::Defined, "", || {
        let mut decisions = Vec::new();
        for result in results(planned) {
            match record::attempt(|| Some(result.decide(judge, planned, &mut known, find))) {
                Some(decision) if decision.0.is_proved() => {
                    steps.insert(result.step);
                    decisions.push(decision);
                }
                Some(decision) => open.push((result, decision)),
                None => {}
            }
        }
        all_of(decisions)
    });
    whole.subject = format!("{} of {} steps write all that is read", steps.len(), planned.graph.steps.len());
    let open = open.into_iter().map(|(result, decision)| {
        let (step, name) = (planned.step_name(result.step), planned.name(result.tensor));
        Judge::report(Obligation::Defined, format!("{step} writes all that is read of `{name}`"), || decision)
    });
    (!steps.is_empty()).then_some(whole).into_iter().chain(open).collect()
}

/// The results of steps with known functions that a later step reads or that the caller takes.
fn results(planned: &Planned<'_>) -> Vec<Written> {
    let mut found = Vec::new();
    for (step, uses) in planned.graph.steps.iter().enumerate() {
        if planned.functions.get(step).copied().flatten().is_none() {
            continue;
        }
        for (position, &tensor) in uses.writes.iter().enumerate() {
            if planned.taken[planned.roots[tensor]] || readers(planned, step, tensor).next().is_some() {
                found.push(Written { step, param: uses.reads.len() + position, tensor });
            }
        }
    }
    found
}

/// The later steps that read the memory of a tensor, each with the position of the parameter.
fn readers<'p>(planned: &'p Planned<'_>, step: usize, tensor: usize) -> impl Iterator<Item = (usize, usize)> + 'p {
    let later = planned.graph.steps.iter().enumerate().skip(step + 1);
    let is_same = move |other: usize| planned.roots[other] == planned.roots[tensor];
    later.flat_map(move |(step, uses)| {
        let read = uses.reads.iter().enumerate().filter(move |(_, other)| is_same(**other));
        read.map(move |(position, _)| (step, position))
    })
}

/// The buffer of a parameter of the function of a step, if it has as many elements of the same size as the tensor.
fn param<'p>(planned: &Planned<'p>, step: usize, position: usize) -> Result<(&'p PrimFunc, &'p Buffer), String> {
    let (uses, name) = (&planned.graph.steps[step], planned.step_name(step));
    let func =
        planned.functions.get(step).copied().flatten().ok_or_else(|| format!("the function of {name} is not known"))?;
    let tensors: Vec<usize> = uses.reads.iter().chain(&uses.writes).copied().collect();
    if func.params.len() != tensors.len() {
        return Err(format!("`{}` does not have the parameters of the step", func.name));
    }
    let tensor = &planned.graph.tensors[tensors[position]];
    let buffer = func.param_buffer(&func.params[position]);
    let buffer = buffer.ok_or_else(|| format!("`{}` is no buffer of `{}`", tensor.name, func.name))?;
    // Symbolic extents are those of the tensor when the step runs, as the runtime checks.
    let count: u64 = tensor.shape.iter().product();
    let is_other = n_elements(buffer).is_some_and(|found| u64::try_from(found) != Ok(count));
    if is_other || buffer.dtype.bytes() != tensor.dtype.bytes() {
        return Err(format!("`{buffer}` of `{}` is not as large as `{}`", func.name, tensor.name));
    }
    Ok((func, buffer))
}

impl Written {
    fn decide(
        &self,
        judge: &Judge,
        planned: &Planned<'_>,
        known: &mut HashMap<(*const PrimFunc, usize), Elements>,
        find: &FindWriters<'_>,
    ) -> Decision {
        let (func, buffer) = match param(planned, self.step, self.param) {
            Ok(found) => found,
            Err(reason) => return unsupported(reason),
        };
        let asked = (std::ptr::from_ref(func), self.param);
        match known.entry(asked).or_insert_with(|| elements(judge, func, buffer, find)) {
            Elements::Written(decision) | Elements::Open(decision) => decision.clone(),
            Elements::Left { elements, looked_at } => self.left(planned, (func, buffer), elements, *looked_at),
        }
    }

    /// Elements that the step leaves out matter only to those who read them.
    fn left(
        &self,
        planned: &Planned<'_>,
        (func, buffer): (&PrimFunc, &Buffer),
        left: &BTreeSet<usize>,
        looked_at: u64,
    ) -> Decision {
        let root = planned.roots[self.tensor];
        let writes = planned.graph.steps.iter().flat_map(|step| &step.writes);
        if writes.filter(|&&tensor| planned.roots[tensor] == root).count() > 1 {
            return unsupported(format!("several steps write `{}`", planned.name(root)));
        }
        let unwritten = |element: usize| {
            let index = tuple(&index_of(buffer, element));
            format!("`{}` writes no element {index} of `{}`", func.name, planned.name(self.tensor))
        };
        if let Some(&first) = left.first().filter(|_| planned.taken[root]) {
            let text = format!("{}, and the caller takes it", unwritten(first));
            return (Verdict::Refuted(Counterexample { text, ..Counterexample::default() }), Method::Evaluation);
        }
        for (step, position) in readers(planned, self.step, self.tensor) {
            let name = planned.step_name(step);
            let reader = param(planned, step, position)
                .and_then(|(func, other)| same_size(other, buffer).map(|()| (func, other)));
            match reader.and_then(|(func, buffer)| read(func, buffer, left)) {
                Ok(None) => {}
                Ok(Some((found, element))) => {
                    let text = format!("{}, and {name} reads it: {}", unwritten(element), found.text);
                    return (Verdict::Refuted(Counterexample { text, ..found }), Method::Evaluation);
                }
                Err(reason) => {
                    let first = unwritten(left.first().copied().unwrap_or_default());
                    return unsupported(format!("{first}, and whether {name} reads it is not known: {reason}"));
                }
            }
        }
        (everywhere(looked_at), Method::Enumeration(Points::All))
    }
}

/// What the stores of a function do with the elements of a parameter.
fn elements(judge: &Judge, func: &PrimFunc, buffer: &Buffer, find: &FindWriters<'_>) -> Elements {
    let all = touches(func);
    let stores: Vec<&Touch> =
        all.iter().filter(|touch| touch.is_store && touch.access.buffer.aliases(buffer)).collect();
    let mut open = unsupported("nothing writes it");
    for (place, store) in stores.iter().enumerate() {
        let seen = &store.access.buffer;
        if stores[..place].iter().any(|other| other.access.buffer == *seen) {
            continue;
        }
        let decide = || suspected(by_claim(judge, func, (buffer, seen), &stores, find).unwrap_or_else(unsupported));
        match record::attempt(|| Some(decide())) {
            Some(decision) if decision.0.is_proved() => return Elements::Written(decision),
            Some(decision) => open = decision,
            None => {}
        }
    }
    match tried(buffer, &stores) {
        Some(Tried { left, looked_at, .. }) if left.is_empty() => {
            Elements::Written((everywhere(looked_at), Method::Enumeration(Points::All)))
        }
        Some(Tried { left, looked_at, is_complete: true }) => Elements::Left { elements: left, looked_at },
        Some(_) | None => Elements::Open(open),
    }
}

/// For each element, the claimed iteration gets to the claimed store, which has the index of the element. The elements are those of a view of
/// the parameter that has as many of the same size, one behind the other as well.
fn by_claim(
    judge: &Judge,
    func: &PrimFunc,
    (param, seen): (&Buffer, &Buffer),
    stores: &[&Touch],
    find: &FindWriters<'_>,
) -> Result<Decision, String> {
    same_size(seen, param)?;
    let is_plain = |buffer: &Buffer| buffer.strides.is_none() && buffer.elem_offset.as_const_int() == Some(0);
    if let Some(other) = [param, seen].into_iter().find(|buffer| !is_plain(buffer)) {
        return Err(format!("`{other}` has strides or an offset"));
    }
    let count = |buffer: &Buffer| buffer.shape.iter().cloned().reduce(|all, extent| all * extent);
    let as_many: Vec<(Expr, Expr)> = count(seen).into_iter().zip(count(param)).filter(|_| seen != param).collect();
    if as_many.is_empty() && seen != param {
        return Err(format!("`{seen}` or `{param}` has no axes"));
    }
    let mut element = Path::of(func);
    for (axis, extent) in seen.shape.iter().enumerate() {
        element.steps.push(Step::Loop(Var::new(format!("x{axis}"), extent.dtype()), Expr::int(0), extent.clone()));
    }
    let own = stores.iter().filter(|store| store.access.buffer == *seen);
    let stores: Vec<(Path, Vec<Expr>)> =
        own.map(|store| without_names(&store.access.path, &store.access.indices)).collect();
    let (axes, base) = (element.loops(), Base::new(judge, func, &[]));
    let claimed = find(&Stores { element: &element, stores: &stores });
    if claimed.is_empty() {
        let mut all = stores.iter().flat_map(|(way, index)| way.exprs().chain(index));
        let reason =
            all.find(|expr| expr.reads_memory()).map(|expr| format!("`{expr}` is read, and decides what is written"));
        return Err(reason.unwrap_or_else(|| format!("no store of `{seen}` is found for each element")));
    }
    let decide = |(path, case): (Path, &Instance)| {
        let store = case.store.and_then(|store| stores.get(store));
        let (way, index) = store.ok_or_else(|| format!("no store of `{}` is claimed to write it", func.name))?;
        let at = reorder::values(&way.loops(), &case.at, &axes, &path)?;
        let there: Vec<Expr> = way.loops().iter().map(|var| at.apply(&Expr::from(var))).collect();
        let written: Vec<Expr> = index.iter().map(|index| at.apply(index)).collect();
        let runs: Vec<Expr> = way.steps.iter().flat_map(|step| conditions(step, &at)).collect();
        if let Some(expr) = written.iter().chain(&runs).find(|expr| expr.reads_memory()) {
            return Err(format!("`{expr}` is read, and decides what is written"));
        }
        let same: Vec<(Expr, Expr)> = written.into_iter().zip(axes.iter().map(Expr::from)).collect();
        let runs = runs.into_iter().filter(|_| !sabotage::on("writers-need-not-run"));
        let runs = runs.map(|cond| holds(judge, &path, &cond));
        Ok(all_of([equal(judge, &path, &same), fit(&path, &there, &base)].into_iter().chain(runs)))
    };
    let cases = pieces(&element, &axes, &claimed)?;
    let decisions = cases.into_iter().map(decide).collect::<Result<Vec<_>, _>>()?;
    Ok(all_of([equal(judge, &Path::of(func), &as_many)].into_iter().chain(decisions)))
}

/// The conditions that a step of the way to a store is taken.
fn conditions(step: &Step, at: &Substitution) -> Vec<Expr> {
    // No names are bound on the way; one would be a condition that never holds.
    step.conditions(at).unwrap_or_else(|| vec![Expr::bool(false)])
}

/// A way and an index with the values of names in their place.
fn without_names(path: &Path, index: &[Expr]) -> (Path, Vec<Expr>) {
    let (mut names, mut steps) = (Substitution::default(), Steps::default());
    for step in &path.steps {
        match step {
            Step::Let(var, value) => {
                let value = names.apply(value);
                names.insert(var, value);
            }
            Step::Loop(var, min, extent) => steps.push(Step::Loop(var.clone(), names.apply(min), names.apply(extent))),
            Step::Guard(cond, holds) => steps.push(Step::Guard(names.apply(cond), *holds)),
        }
    }
    let index = index.iter().map(|index| names.apply(index)).collect();
    (Path { steps, settled: None, ..path.clone() }, index)
}

/// What all iterations of some stores say.
struct Tried {
    /// The elements that no iteration is known to write.
    left: BTreeSet<usize>,
    looked_at: u64,
    /// Whether these are written by none.
    is_complete: bool,
}

/// All iterations of some stores; `None` if there are too many elements, or if the call decides which iterations there are.
fn tried(buffer: &Buffer, stores: &[&Touch]) -> Option<Tried> {
    let n_elements = n_elements(buffer).filter(|n| *n <= TRIED)?;
    let mut found = Tried { left: (0..n_elements).collect(), looked_at: 0, is_complete: true };
    for store in stores {
        let Tried { left, looked_at, is_complete } = &mut found;
        let (_, is_known) = each_element(store, buffer, &mut |element, _| {
            left.remove(&element);
            *looked_at += 1;
            None::<()>
        })?;
        *is_complete &= is_known;
    }
    if sabotage::on("tried-stores-forget-last") {
        found.left.remove(&(n_elements.saturating_sub(1)));
    }
    Some(found)
}

/// An iteration of a function that reads one of these elements of a parameter, and the element.
///
/// # Errors
/// There are too many iterations, or something decides about them that is not known.
fn read(func: &PrimFunc, buffer: &Buffer, left: &BTreeSet<usize>) -> Result<Option<(Counterexample, usize)>, String> {
    let all = touches(func);
    let (stores, loads): (Vec<&Touch>, Vec<&Touch>) =
        all.iter().filter(|touch| touch.access.buffer.aliases(buffer)).partition(|touch| touch.is_store);
    if let Some(store) = stores.first() {
        return Err(format!("it stores to `{}`", store.access.text));
    }
    for load in loads {
        let text = &load.access.text;
        let tried = each_element(load, buffer, &mut |element, bindings| {
            let here = || at_point(&load.access.path, bindings, format!("`{text}`"));
            left.contains(&element).then(|| (here(), element))
        });
        match tried {
            Some((Some(found), _)) => return Ok(Some(found)),
            Some((None, true)) => {}
            Some((None, false)) | None => return Err(format!("not all iterations of `{text}` are known")),
        }
    }
    Ok(None)
}

/// Calls `visit` for each iteration of an access to a parameter, with the row-major number of its element. Returns what was found, and
/// whether all iterations are known; `None` if the call decides which there are.
fn each_element<T>(
    touch: &Touch,
    param: &Buffer,
    visit: &mut impl FnMut(usize, &Bindings) -> Option<T>,
) -> Option<(Option<T>, bool)> {
    let (path, buffer) = (&touch.access.path, &touch.access.buffer);
    if !path.symbols.is_empty() || !path.scalars.is_empty() || buffer.dtype.bytes() != param.dtype.bytes() {
        return None;
    }
    let mut is_known = true;
    let (found, is_complete) = path.each_iteration(&Bindings::new(), TRIED, &mut |bindings| {
        let index = values(&touch.access.indices, bindings);
        let element = index.and_then(|index| number_of(buffer, &index));
        is_known &= element.is_some();
        visit(element?, bindings)
    });
    Some((found, is_known && is_complete))
}

/// Whether the elements of two buffers have the same size, so that their row-major numbers are places of one memory.
fn same_size(one: &Buffer, other: &Buffer) -> Result<(), String> {
    let is_same = one.dtype.bytes() == other.dtype.bytes();
    is_same.then_some(()).ok_or_else(|| format!("`{one}` shows the memory of `{other}` with elements of another size"))
}

/// The number of elements of a buffer; `None` for a symbolic shape.
fn n_elements(buffer: &Buffer) -> Option<usize> {
    let mut extents = buffer.shape.iter().map(|extent| usize::try_from(extent.as_const_int()?).ok());
    extents.try_fold(1usize, |all, extent| all.checked_mul(extent?))
}

/// The row-major number of an element that is inside of a buffer; `None` if its elements are not one behind the other from the start of the
/// memory.
fn number_of(buffer: &Buffer, index: &[i128]) -> Option<usize> {
    if buffer.strides.is_some() || buffer.elem_offset.as_const_int() != Some(0) {
        return None;
    }
    buffer.shape.iter().zip(index).try_fold(0usize, |number, (extent, &index)| {
        let (extent, index) = (usize::try_from(extent.as_const_int()?).ok()?, usize::try_from(index).ok()?);
        number.checked_mul(extent)?.checked_add(index).filter(|_| index < extent)
    })
}

/// The index of an element given by its row-major number.
fn index_of(buffer: &Buffer, element: usize) -> Vec<i128> {
    let mut rest = i128::try_from(element).unwrap_or(0);
    let mut index: Vec<i128> = Vec::new();
    for extent in buffer.shape.iter().rev() {
        let extent = extent.as_const_int().filter(|extent| *extent > 0).unwrap_or(1);
        index.push(rest % extent);
        rest /= extent;
    }
    index.reverse();
    index
}
