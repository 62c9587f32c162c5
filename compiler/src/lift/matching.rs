//! Which tensors of two definitions are equal, and which summands of their elements are the same.
//!
//! ```text
//! C[i] = sum over k of A[i, k]                   C[i] = sum over ko, ki of A[i, 4 * ko + ki] if 4 * ko + ki < n
//!                                                k = 4 * ko + ki; ko = k // 4, ki = k % 4
//! ```
//!
//! A parameter is combined of summands as its outermost operation says. A reduction inside of another operation is compared by itself:
//! with one of the same operator whose accesses determine which element it is. The summands are paired like the stores of two programs.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use tilewright_ir::{
    BinaryOp, Bindings, Buffer, Definition, Evidence, Expr, Matching, PrimFunc, ReduceOp, Reordering, StageBody,
    StoreOrigin, TensorPair, UnaryOp, Var,
};
use tilewright_verify::definitions::{Elements, Stuck, Summands, path, statement};
use tilewright_verify::path::{Path, Step};
use tilewright_verify::reorder::Statement;

use crate::reorder::pair;

/// Reductions that are compared by themselves, one inside the other.
const DEPTH: usize = 6;

/// Instances of a summand that are tried.
const TRIED: usize = 24;

/// Why these parameters of two definitions are equal.
///
/// # Errors
/// A tensor has no counterpart, or its summands have none.
pub fn find(
    func: &PrimFunc,
    definitions: [&Definition; 2],
    evidence: &Evidence,
    outputs: &[(Buffer, Buffer)],
) -> Result<Matching, String> {
    // Operands that only one of the programs pads are choices inside of products there alone.
    let [old, new] = definitions.map(has_padded_operands);
    let find = |opens_products| find_with(func, definitions, evidence, outputs, opens_products);
    find(old != new).or_else(|why| find(old == new).map_err(|_| why))
}

/// Whether a factor of a product is a choice.
fn has_padded_operands(definition: &Definition) -> bool {
    let mut found = false;
    let mut look = |part: &Expr| {
        if let Expr::Binary(BinaryOp::Mul, a, b) = part {
            found |= [a, b].into_iter().any(|factor| matches!(**factor, Expr::IfThenElse(..) | Expr::Select(..)));
        }
    };
    for stage in &definition.stages {
        match &stage.body {
            StageBody::Elementwise(value) => value.walk(&mut look),
            StageBody::Reduce { source, .. } => source.walk(&mut look),
        }
    }
    found
}

/// [`find`] with or without choices inside of products taken apart.
fn find_with(
    func: &PrimFunc,
    definitions: [&Definition; 2],
    evidence: &Evidence,
    outputs: &[(Buffer, Buffer)],
    opens_products: bool,
) -> Result<Matching, String> {
    let path = path(func, definitions)?;
    let mut search = Search { path, definitions, evidence, opens_products, known: Vec::new() };
    for (old, new) in outputs {
        let index = axes(old);
        let op = operator(definitions[0], old).or_else(|| operator(definitions[1], new));
        let (before, after, element) = (old.clone(), new.clone(), None);
        let loops = [Vec::new(), Vec::new()];
        search.add(TensorPair { before, after, index, element, op, loops, summands: Reordering::default() }, DEPTH)?;
    }
    Ok(Matching { pairs: search.known, reassociate: false, opens_products })
}

/// New variables for the axes of a tensor.
fn axes(tensor: &Buffer) -> Vec<Var> {
    let name = |(place, extent): (usize, &Expr)| Var::new(format!("x{place}"), extent.dtype());
    tensor.shape.iter().enumerate().map(name).collect()
}

/// The operator that combines the values of a tensor, if there is a reduction among them.
fn operator(definition: &Definition, tensor: &Buffer) -> Option<ReduceOp> {
    match &definition.stage_of(tensor)?.body {
        StageBody::Reduce { op, .. } => Some(*op),
        StageBody::Elementwise(value) => combined(definition, value),
    }
}

fn combined(definition: &Definition, value: &Expr) -> Option<ReduceOp> {
    let of = |part: &Expr| combined(definition, part);
    match value {
        Expr::Load { buffer, .. } => operator(definition, buffer),
        Expr::Binary(BinaryOp::Sub, a, b) => of(a).or_else(|| of(b)).filter(|found| *found == ReduceOp::Sum),
        Expr::Unary(UnaryOp::Neg, a) => of(a).filter(|found| *found == ReduceOp::Sum),
        Expr::Binary(op, a, b) => of(a).or_else(|| of(b)).filter(|found| found.combine() == *op),
        Expr::IfThenElse(_, a, b) | Expr::Select(_, a, b) => of(a).or_else(|| of(b)),
        _ => None,
    }
}

struct Search<'a> {
    path: Path,
    definitions: [&'a Definition; 2],
    evidence: &'a Evidence,
    opens_products: bool,
    known: Vec<TensorPair>,
}

impl Search<'_> {
    fn elements(&self) -> Elements<'_> {
        let (definitions, evidence, opens_products) = (self.definitions, self.evidence, self.opens_products);
        Elements { definitions, evidence, known: &self.known, opens_products }
    }

    /// Adds a pair of tensors with its summands, behind those that are compared by themselves for it.
    fn add(&mut self, mut pair: TensorPair, depth: usize) -> Result<(), String> {
        let sides = self.resolved(depth, |search| search.elements().summands(&pair))?;
        pair.loops = [0, 1].map(|side| sides[side].list.iter().map(|one| loops(&one.steps)).collect());
        let [old, new] = self.elements().programs(&self.path, &pair, &sides)?;
        let found = self.paired(&old.statements, &new.statements);
        pair.summands = found.ok_or_else(|| format!("the summands of `{}` have no counterpart", pair.after))?;
        self.known.push(pair);
        Ok(())
    }

    /// Pairs summands. One that no instance comes to, as far as that is seen, may be any other.
    fn paired(&self, old: &[Statement], new: &[Statement]) -> Option<Reordering> {
        if !self.opens_products || old.is_empty() {
            return pair(old, new, self.evidence);
        }
        let is_reached: Vec<bool> = new.iter().map(|one| one.path.is_reached()).collect();
        let kept: Vec<Statement> =
            new.iter().zip(&is_reached).filter(|(_, is_reached)| **is_reached).map(|(one, _)| one.clone()).collect();
        let mut found = pair(old, &kept, self.evidence)?.stores.into_iter();
        let stores = new
            .iter()
            .zip(is_reached)
            .map(|(one, is_reached)| if is_reached { found.next() } else { Some(vec![first_of(&old[0], one)]) });
        Some(Reordering { stores: stores.collect::<Option<_>>()? })
    }

    /// What is asked for, once the reductions in the way of it are compared by themselves.
    fn resolved<T>(&mut self, depth: usize, ask: impl Fn(&Self) -> Result<T, Stuck>) -> Result<T, String> {
        loop {
            match ask(self) {
                Ok(found) => return Ok(found),
                Err(Stuck::Reduction(tensor)) => self.partner(&tensor, depth)?,
                Err(stuck @ Stuck::Other(_)) => return Err(stuck.to_string()),
            }
        }
    }

    /// Finds what a reduction of one definition is in the other one.
    fn partner(&mut self, tensor: &Buffer, depth: usize) -> Result<(), String> {
        let depth = depth.checked_sub(1).ok_or("reductions are too deep inside of each other")?;
        let side = usize::from(self.definitions[0].stage_of(tensor).is_none());
        let op = operator(self.definitions[side], tensor);
        let others = self.definitions[1 - side].stages.iter().filter(|stage| {
            let is_alike = matches!(&stage.body, StageBody::Reduce { op: other, .. } if Some(*other) == op);
            is_alike && stage.buffer.dtype == tensor.dtype
        });
        let mut others: Vec<Buffer> = others.map(|stage| stage.buffer.clone()).collect();
        // Sums of the same elements may be sums of other values.
        let values = |side: usize, tensor: &Buffer| Values::of(self.definitions[side], tensor, DEPTH);
        let own = values(side, tensor);
        others.sort_by_cached_key(|other| own.distance(&values(1 - side, other)));
        // A part of a reduction looks like the whole of it, but for the iterations that it lacks.
        for is_strict in [true, false] {
            for other in &others {
                let [old, new] = if side == 0 { [tensor, other] } else { [other, tensor] };
                let is_known = |pair: &TensorPair| pair.before == *old && pair.after == *new;
                if self.known.iter().any(is_known) {
                    continue;
                }
                let n_known = self.known.len();
                if self.inside(old, new, op, depth).is_ok() && (!is_strict || self.is_whole()) {
                    return Ok(());
                }
                self.known.truncate(n_known);
            }
        }
        Err(format!("`{tensor}` has no counterpart"))
    }

    /// Whether the summands before that are tried of the last pair are summands after, each of them as claimed.
    fn is_whole(&self) -> bool {
        let Some((pair, known)) = self.known.split_last() else { return false };
        let elements = Elements { known, ..self.elements() };
        let sides = elements.summands(pair).map_err(String::from);
        let programs = sides.and_then(|sides| elements.programs(&self.path, pair, &sides));
        programs.is_ok_and(|[old, new]| all_found(&old.statements, &new.statements, &pair.summands))
    }

    /// Adds a pair of reductions, if the accesses of their summands say which element is which.
    fn inside(&mut self, old: &Buffer, new: &Buffer, op: Option<ReduceOp>, depth: usize) -> Result<(), String> {
        let (theirs, index) = (axes(old), axes(new));
        let at = |vars: &[Var]| vars.iter().map(Expr::from).collect::<Vec<_>>();
        let first = self.resolved(depth, |search| search.elements().views()[0].summands(old, &at(&theirs), op))?;
        let second = self.resolved(depth, |search| search.elements().views()[1].summands(new, &at(&index), op))?;
        let no = || format!("which element of `{old}` is one of `{new}` is not clear");
        let nothing = Buffer::compact("value", new.dtype, Vec::new());
        let stores = |tensor, axes: &[Var], summands| self.stores((tensor, axes), summands, &nothing);
        let (before, after) = (stores(old, &theirs, &first), stores(new, &index, &second));
        let found = pair(&before, &after, self.evidence).ok_or_else(no)?;
        let known =
            |var: &Var| index.contains(var) || self.path.symbols.contains(var) || self.path.scalars.contains(var);
        let is_known = |value: &Expr| value.vars().iter().all(known);
        let n_used = |element: &[Expr]| {
            index.iter().filter(|var| element.iter().any(|value| value.vars().contains(var))).count()
        };
        let elements =
            found.stores.iter().flatten().map(|origin| origin.forward.iter().take(theirs.len()).cloned().collect());
        let mut elements: Vec<Vec<Expr>> =
            elements.filter(|one: &Vec<Expr>| one.len() == theirs.len() && one.iter().all(is_known)).collect();
        // A start value is that of any element.
        elements.sort_by_key(|element| Reverse(n_used(element)));
        let element = elements.into_iter().next().ok_or_else(no)?;
        let (before, after, element) = (old.clone(), new.clone(), Some(element));
        let loops = [Vec::new(), Vec::new()];
        self.add(TensorPair { before, after, index, element, op, loops, summands: Reordering::default() }, depth)
    }

    /// The summands of a tensor as stores of which nothing says which element they are about.
    fn stores(&self, (tensor, axes): (&Buffer, &[Var]), summands: &Summands, to: &Buffer) -> Vec<Statement> {
        let mut path = self.path.clone();
        for (var, extent) in axes.iter().zip(&tensor.shape) {
            let min = Expr::Int { value: 0, ty: var.dtype().scalar };
            path.steps.push(Step::Loop(var.clone(), min, extent.clone()));
        }
        let stores = summands.list.iter().enumerate();
        stores.map(|(place, one)| statement(one.clone(), place, &path, (to, &[]), String::new())).collect()
    }
}

/// How often each operation makes the values of a tensor, through the tensors behind it.
#[derive(Default)]
struct Values(BTreeMap<&'static str, u64>);

impl Values {
    fn of(definition: &Definition, tensor: &Buffer, depth: usize) -> Self {
        let mut values = Self::default();
        values.add(definition, tensor, depth);
        values
    }

    fn add(&mut self, definition: &Definition, tensor: &Buffer, depth: usize) {
        let stage = definition.stage_of(tensor).filter(|_| depth > 0);
        let Some(StageBody::Elementwise(value) | StageBody::Reduce { source: value, .. }) =
            stage.map(|stage| &stage.body)
        else {
            return self.count("load");
        };
        value.walk(&mut |part| match part {
            Expr::Load { buffer, .. } => self.add(definition, buffer, depth - 1),
            Expr::Binary(op, a, _) if a.dtype().scalar.is_float() => self.count(op.info().call),
            Expr::Call(function, _) => self.count(function.info().0),
            Expr::Cast(..) => self.count("cast"),
            _ => {}
        });
    }

    fn count(&mut self, operation: &'static str) {
        let count = self.0.entry(operation).or_default();
        *count = count.saturating_add(1);
    }

    fn distance(&self, other: &Self) -> u64 {
        let of = |values: &Self, key: &str| values.0.get(key).copied().unwrap_or_default();
        let own = self.0.iter().map(|(key, count)| count.abs_diff(of(other, key)));
        let others = other.0.iter().filter(|(key, _)| !self.0.contains_key(*key)).map(|(_, count)| *count);
        own.chain(others).fold(0, u64::saturating_add)
    }
}

/// Whether each instance before that is tried is the instance of a store after that is claimed to be it.
fn all_found(old: &[Statement], new: &[Statement], claim: &Reordering) -> bool {
    let is_found = |place: usize, at: &Bindings| {
        let mut claims =
            new.iter().zip(&claim.stores).flat_map(|(store, origins)| origins.iter().map(move |o| (store, o)));
        claims.any(|(store, origin)| {
            let values: Option<Vec<i128>> = origin.back.iter().map(|value| value.eval_index(at).ok()).collect();
            let Some(values) = values.filter(|_| origin.before == place) else { return false };
            let mut there = at.clone();
            there.extend(store.loops().into_iter().zip(values));
            let again: Vec<Option<i128>> = origin.forward.iter().map(|value| value.eval_index(&there).ok()).collect();
            let itself: Vec<Option<i128>> = old[place].loops().iter().map(|var| at.get(var).copied()).collect();
            store.path.admits(&there) && again == itself
        })
    };
    (0..old.len()).all(|place| old[place].path.samples(TRIED).iter().all(|at| is_found(place, at)))
}

/// The claim that every instance of a summand after is one of a summand before: the loops that both have are the same, and the others
/// at 0.
fn first_of(before: &Statement, after: &Statement) -> StoreOrigin {
    let (old, new) = (before.loops(), after.loops());
    let value = |var: &Var, known: &[Var]| {
        if known.contains(var) { Expr::from(var) } else { Expr::Int { value: 0, ty: var.dtype().scalar } }
    };
    let forward = old.iter().map(|var| value(var, &new)).collect();
    let back = new.iter().map(|var| value(var, &old)).collect();
    StoreOrigin { when: None, before: 0, forward, back }
}

/// The loops among steps.
fn loops(steps: &[Step]) -> Vec<Var> {
    let of = |step: &Step| if let Step::Loop(var, ..) = step { Some(var.clone()) } else { None };
    steps.iter().filter_map(of).collect()
}
