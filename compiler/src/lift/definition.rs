//! The definition of a program, along the sources of its values.
//!
//! ```text
//! for i: t[0] = 0                                t.sum[i] = sum over k of A[i, k]
//!        for k: t[0] = t[0] + A[i, k]            C[i] = t.sum[i] * 2
//!        C[i] = t[0] * 2
//! ```
//!
//! The last value of an element of a parameter is that of the store that wrote it. A store whose value is combined with what the same
//! store wrote in an earlier iteration is a reduction over the loops in which that iteration differs; the other loops are the axes of
//! a tensor. That a reader sees the last iteration of a reduction is not looked at: where it does not, the definition is another one,
//! and the judge says so.

use tilewright_algebra::{conjuncts, simplify};
use tilewright_ir::visit::Substitution;
use tilewright_ir::{
    Axis, BinaryOp, Buffer, Definition, Expr, Instance, Kept, PrimFunc, ReduceOp, Sources, Stage, StageBody, UnaryOp,
    Var,
};
use tilewright_verify::flow::Observed;
use tilewright_verify::path::Step;
use tilewright_verify::reorder::Statement;

use super::chain::{Chain, Link, joined, spread};
use crate::flow::sources;
use crate::reorder::solve::{Loop, loops, ranges};

/// Stores that may be replaced by their values, one inside the other.
const DEPTH: usize = 16;

/// Tensors that a definition may have.
const MOST: usize = 60;

/// What a program computes.
pub(super) struct Found {
    pub(super) definition: Definition,
    /// The inputs that stand for what the call found in parameters.
    pub(super) kept: Vec<Kept>,
    /// Stores whose values are no elements of the definition: each is combined with more by a later store.
    pub(super) links: Vec<usize>,
}

/// The definition of a program that computes these parameters.
pub(super) fn lift(func: &PrimFunc, observed: &Observed, outputs: &[Buffer]) -> Result<Found, String> {
    let sources = sources(observed);
    let mut lifter =
        Lifter { observed, sources, stages: Vec::new(), kept: Vec::new(), tensors: Vec::new(), links: Vec::new() };
    for output in outputs {
        let axes = axes(output);
        let body = lifter.output(output, &axes)?;
        lifter.stages.push(Stage { buffer: output.clone(), axes, body });
    }
    let Lifter { stages, kept, links, .. } = lifter;
    let params = func.buffer_map.iter().map(|(_, buffer)| buffer);
    let params = params.chain(kept.iter().map(|kept| &kept.tensor)).cloned().collect();
    Ok(Found { definition: Definition { name: func.name.clone(), params, stages }, kept, links })
}

/// What a value combines with what was read, and how. A number that is subtracted is added with the other sign.
pub(super) fn combined(value: &Expr, read: &Expr) -> Option<(ReduceOp, Expr)> {
    let Expr::Binary(op, a, b) = value else { return None };
    let ty = value.dtype().scalar;
    if *op == BinaryOp::Sub && **a == *read {
        let zero = Expr::Int { value: 0, ty };
        let b = Expr::clone(b);
        return Some((ReduceOp::Sum, if ty.is_integer() { zero - b } else { Expr::unary(UnaryOp::Neg, b) }));
    }
    if *op == BinaryOp::Sub {
        let (found, source) = nested(a, read).filter(|(found, _)| *found == ReduceOp::Sum)?;
        return Some((found, source - Expr::clone(b)));
    }
    let all = [ReduceOp::Sum, ReduceOp::Prod, ReduceOp::Max, ReduceOp::Min];
    let op = all.into_iter().find(|other| other.combine() == *op)?;
    if **a == *read || **b == *read {
        return Some((op, Expr::clone(if **a == *read { b } else { a })));
    }
    let inside = |operand: &Expr| nested(operand, read).filter(|(found, _)| *found == op);
    let joined = |a: Expr, b: Expr| Some((op, Expr::binary(op.combine(), a, b)));
    match (inside(a), inside(b)) {
        (Some((_, source)), _) => joined(source, Expr::clone(b)),
        (None, Some((_, source))) => joined(Expr::clone(a), source),
        (None, None) => None,
    }
}

/// The same for an operand: integers may be combined with others first.
fn nested(operand: &Expr, read: &Expr) -> Option<(ReduceOp, Expr)> {
    if operand.dtype().scalar.is_integer() { combined(operand, read) } else { None }
}

/// The number of iterations of a loop in which a store may run: a condition may leave out those from a constant on.
fn bounded(store: &Statement, Loop { var, min, extent }: &Loop) -> Expr {
    if min.as_const_int() != Some(0) {
        return extent.clone();
    }
    let guards =
        store.path.steps.iter().filter_map(|step| if let Step::Guard(cond, true) = step { Some(cond) } else { None });
    let bound = |cond: Expr| match cond {
        Expr::Binary(BinaryOp::Lt, a, b) if matches!(&*a, Expr::Var(own) if own == var) => b.as_const_int(),
        _ => None,
    };
    let least = guards.flat_map(conjuncts).filter_map(bound).min().filter(|least| *least > 0);
    let is_less = |least: &i128| extent.as_const_int().is_some_and(|extent| *least < extent);
    least.filter(is_less).and_then(|least| Expr::int_of(least, extent.dtype().scalar)).unwrap_or_else(|| extent.clone())
}

/// New axes for a tensor.
fn axes(tensor: &Buffer) -> Vec<Axis> {
    let axis = |(place, extent): (usize, &Expr)| {
        let var = Var::new(format!("x{place}"), extent.dtype());
        Axis { var, extent: extent.clone() }
    };
    tensor.shape.iter().enumerate().map(axis).collect()
}

pub(super) struct Lifter<'a> {
    pub(super) observed: &'a Observed,
    pub(super) sources: Vec<Sources>,
    stages: Vec<Stage>,
    kept: Vec<Kept>,
    /// Reductions that have a tensor: the store, the tensor, and the loops that are its axes. No tensor while it is made.
    tensors: Vec<(usize, Option<Buffer>, Vec<usize>)>,
    /// The stores in front of the last one of each reduction that is spread over several.
    links: Vec<usize>,
}

/// A store that combines what it wrote before with another value.
struct Reduction {
    op: ReduceOp,
    /// The load of what it wrote before, and where that comes from.
    read: Expr,
    pieces: Vec<Instance>,
    /// The stores that combine, the last one first.
    links: Vec<Link>,
    /// The reduced loops, and the others.
    reduced: Vec<usize>,
    outer: Vec<usize>,
}

impl Lifter<'_> {
    pub(super) fn statement(&self, place: usize) -> &Statement {
        &self.observed.program.statements[place]
    }

    /// What an element of a parameter is in the end.
    fn output(&mut self, output: &Buffer, axes: &[Axis]) -> Result<StageBody, String> {
        let index: Vec<Expr> = axes.iter().map(|axis| Expr::from(&axis.var)).collect();
        let ends = self.observed.n_stores..self.observed.program.statements.len();
        let reads_it =
            |place: &usize| matches!(&self.statement(*place).value, Expr::Load { buffer, .. } if buffer == output);
        let Some(end) = ends.into_iter().find(reads_it) else {
            return Ok(StageBody::Elementwise(self.old(output, index)?));
        };
        let there = Substitution::new(&self.statement(end).loops(), index);
        // A reduction that wrote the whole parameter is the definition of it.
        if let [pieces] = self.sources[end].as_slice()
            && let [Instance { when: None, store: Some(writer), at }] = self.merged(pieces).as_slice()
            && let Some(reduction) = self.reduction(*writer)?
        {
            let at: Vec<Expr> = at.iter().map(|value| there.apply(value)).collect();
            let outer = reduction.outer.iter().map(|place| at[*place].clone()).collect::<Vec<_>>();
            return self.body(*writer, &reduction, &outer, DEPTH);
        }
        Ok(StageBody::Elementwise(self.value(end, &there, DEPTH)?))
    }

    /// The input that stands for what the call found in a parameter.
    fn old(&mut self, buffer: &Buffer, index: Vec<Expr>) -> Result<Expr, String> {
        if !self.observed.params.contains(buffer) {
            return Err(format!("`{buffer}` may be read before it is written"));
        }
        let known = self.kept.iter().find(|kept| kept.param == *buffer).map(|kept| kept.tensor.clone());
        let tensor = known.unwrap_or_else(|| {
            let tensor = Buffer::compact(format!("{buffer}.old"), buffer.dtype, buffer.shape.clone());
            let index = axes(buffer).into_iter().map(|axis| axis.var).collect();
            self.kept.push(Kept { tensor: tensor.clone(), param: buffer.clone(), index });
            tensor
        });
        Ok(Expr::load(&tensor, index))
    }

    /// The value that an instance of a store wrote.
    fn value(&mut self, place: usize, at: &Substitution, depth: usize) -> Result<Expr, String> {
        let store = self.statement(place).clone();
        let reads = self.observed.reads(&store);
        let sources = self.sources[place].clone();
        let loads = reads.iter().zip(&sources).map(|(read, pieces)| self.read(read, pieces, at, depth));
        let loads = loads.collect::<Result<Vec<_>, _>>()?;
        Ok(self.observed.with_loads(&at.apply(&store.value), loads))
    }

    /// Cases in which a reduction without iterations is its start value are cases of the reduction.
    fn merged(&self, pieces: &[Instance]) -> Vec<Instance> {
        let reduction = |piece: &Instance| Some((piece.store?, self.reduction(piece.store?).ok()??));
        let first = pieces.iter().enumerate().find_map(|(place, piece)| Some((place, reduction(piece)?)));
        let Some((place, (writer, reduction))) = first else { return pieces.to_vec() };
        let starts = &reduction.pieces;
        let outer = |piece: &Instance| -> Vec<Option<Expr>> {
            reduction.outer.iter().map(|at| piece.at.get(*at).cloned()).collect()
        };
        // What comes behind the start value is taken for a case that never comes.
        let is_start =
            |piece: &Instance| piece.store != Some(writer) && starts.iter().any(|start| start.store == piece.store);
        let mut until = pieces[place..].iter().take_while(|piece| !is_start(piece));
        if !until.all(|piece| piece.store == Some(writer) && outer(piece) == outer(&pieces[place])) {
            return pieces.to_vec();
        }
        let mut found = pieces[..=place].to_vec();
        found[place].when = None;
        found
    }

    /// What a load gives, case by case.
    fn read(&mut self, read: &Expr, pieces: &[Instance], at: &Substitution, depth: usize) -> Result<Expr, String> {
        let mut found: Option<Expr> = None;
        for piece in self.merged(pieces).iter().rev() {
            let value = match piece.store {
                None => {
                    let Expr::Load { buffer, indices } = read else { return Err("a load is no load".into()) };
                    self.old(buffer, indices.iter().map(|index| at.apply(index)).collect())?
                }
                Some(writer) => {
                    let there: Vec<Expr> = piece.at.iter().map(|value| at.apply(value)).collect();
                    self.instance(writer, &there, depth)?
                }
            };
            found = Some(match (found, &piece.when) {
                (Some(rest), Some(when)) => Expr::IfThenElse(at.apply(when).into(), value.into(), rest.into()),
                _ => value,
            });
        }
        found.ok_or_else(|| "nothing is known of where a value comes from".into())
    }

    /// The value that the instance of a store at some values of its loops wrote.
    fn instance(&mut self, writer: usize, at: &[Expr], depth: usize) -> Result<Expr, String> {
        let depth = depth.checked_sub(1).ok_or("values depend on each other, and not by a reduction")?;
        let Some(reduction) = self.reduction(writer)? else {
            return self.value(writer, &Substitution::new(&self.statement(writer).loops(), at.iter().cloned()), depth);
        };
        let tensor = self.tensor(writer, &reduction, depth)?;
        let all = loops(&self.statement(writer).path);
        let known = ranges(&[&self.statement(writer).path]);
        let there = Substitution::new(all.iter().map(|l| &l.var), at.iter().cloned());
        let first = |place: &usize| simplify(&(at[*place].clone() - there.apply(&all[*place].min)), &known);
        let index: Vec<Expr> = reduction.outer.iter().map(first).collect();
        Ok(Expr::load(&tensor, if index.is_empty() { vec![Expr::int(0)] } else { index }))
    }

    /// How a store combines what it wrote before with another value; `None` if it does not read what it wrote.
    fn reduction(&self, place: usize) -> Result<Option<Reduction>, String> {
        let store = self.statement(place);
        let is_own = |pieces: &Vec<Instance>| pieces.iter().any(|piece| piece.store == Some(place));
        let own: Vec<usize> = (0..self.sources[place].len()).filter(|at| is_own(&self.sources[place][*at])).collect();
        let so_far = match own.as_slice() {
            [] => None,
            [only] => Some(*only),
            _ => return Err(format!("`{}` reads what it wrote more than once", store.subject)),
        };
        let Some(so_far) = so_far else {
            let chain = self.chain(place).filter(|chain| chain.links.len() > 1);
            return Ok(chain.map(|chain| self.reduced(place, chain)).or_else(|| self.single(place)));
        };
        let read = self.observed.reads(store)[so_far].clone();
        let no = || format!("`{}` is a recurrence, and no reduction", store.subject);
        let (op, source) = combined(&store.value, &read).ok_or_else(no)?;
        let at = store.loops().iter().map(Expr::from).collect();
        let links = vec![Link { store: place, at, when: None, so_far, source }];
        let pieces = self.sources[place][so_far].clone();
        Ok(Some(self.reduced(place, Chain { op, links, pieces, read })))
    }

    /// The reduction of one value at most: a store below a condition, in a loop of one iteration, that combines a value with the neutral one.
    fn single(&self, place: usize) -> Option<Reduction> {
        let store = self.statement(place);
        let all = loops(&store.path);
        let reduced = all.iter().rposition(|l| l.extent.as_const_int() == Some(1))?;
        store.path.steps.iter().any(|step| matches!(step, Step::Guard(..))).then_some(())?;
        let is_own = |read: &Expr| {
            matches!(read, Expr::Load { buffer, indices }
            if *buffer == store.buffer && indices.iter().eq(&store.indices))
        };
        let reads = self.observed.reads(store);
        let so_far = reads.iter().position(is_own)?;
        let (op, source) = combined(&store.value, &reads[so_far])?;
        let pieces = self.sources[place][so_far].clone();
        let [Instance { when: None, store: Some(start), .. }] = pieces.as_slice() else { return None };
        (self.statement(*start).value == op.identity_expr(store.value.dtype().scalar)).then_some(())?;
        let at = store.loops().iter().map(Expr::from).collect();
        let links = vec![Link { store: place, at, when: None, so_far, source }];
        let outer = (0..all.len()).filter(|at| *at != reduced).collect();
        Some(Reduction { op, read: reads[so_far].clone(), pieces, links, reduced: vec![reduced], outer })
    }

    /// The reduction that a chain of stores is: over the loops in which the value of an earlier iteration differs.
    fn reduced(&self, place: usize, Chain { op, links, pieces, read }: Chain) -> Reduction {
        let vars = self.statement(place).loops();
        let differs = |at: &usize| {
            let mut own = pieces.iter().filter(|piece| piece.store == Some(place));
            own.any(|piece| piece.at.get(*at) != Some(&Expr::from(&vars[*at])))
        };
        let (reduced, outer) = (0..vars.len()).partition(differs);
        Reduction { op, read, pieces, links, reduced, outer }
    }

    /// The tensor of a reduction, whose axes are the loops that are not reduced.
    fn tensor(&mut self, place: usize, reduction: &Reduction, depth: usize) -> Result<Buffer, String> {
        if let Some((_, tensor, _)) = self.tensors.iter().find(|(store, ..)| *store == place) {
            return tensor.clone().ok_or_else(|| "values depend on each other, and not by a reduction".into());
        }
        if self.tensors.len() == MOST {
            return Err(format!("there are more than {MOST} reductions"));
        }
        self.tensors.push((place, None, reduction.outer.clone()));
        let store = self.statement(place).clone();
        let all = loops(&store.path);
        let mut axes: Vec<Axis> = Vec::new();
        let mut names = Substitution::default();
        for at in &reduction.outer {
            let Loop { var, min, extent } = &all[*at];
            if all.iter().any(|other| extent.vars().contains(&other.var)) {
                return Err(format!("the loop over `{var}` does not have the same length in each iteration around it"));
            }
            let axis = Var::new(var.name(), var.dtype());
            names.insert(var, simplify(&(Expr::from(&axis) + names.apply(min)), &ranges(&[&store.path])));
            axes.push(Axis { var: axis, extent: bounded(&store, &all[*at]) });
        }
        let outer: Vec<Expr> = reduction.outer.iter().map(|at| names.apply(&Expr::from(&all[*at].var))).collect();
        if axes.is_empty() {
            axes.push(Axis { var: Var::index("one"), extent: Expr::int(1) });
        }
        let body = self.body(place, reduction, &outer, depth)?;
        let shape = axes.iter().map(|axis| axis.extent.clone()).collect();
        let name = format!("{}.sum{}", store.buffer, self.tensors.len());
        let buffer = Buffer::compact(name, store.value.dtype(), shape);
        self.stages.push(Stage { buffer: buffer.clone(), axes, body });
        if let Some((_, tensor, _)) = self.tensors.iter_mut().find(|(store, ..)| *store == place) {
            *tensor = Some(buffer.clone());
        }
        Ok(buffer)
    }

    /// The value of a reduction, for some values of the loops that are not reduced.
    fn body(&mut self, place: usize, reduction: &Reduction, outer: &[Expr], depth: usize) -> Result<StageBody, String> {
        let store = self.statement(place).clone();
        let all = loops(&store.path);
        let known = ranges(&[&store.path]);
        let mut at = Substitution::new(reduction.outer.iter().map(|at| &all[*at].var), outer.iter().cloned());
        let mut first = at.clone();
        let mut axes: Vec<Axis> = Vec::new();
        for place in &reduction.reduced {
            let Loop { var, min, extent } = &all[*place];
            let axis = Var::new(var.name(), var.dtype());
            let value = simplify(&(Expr::from(&axis) + at.apply(min)), &known);
            axes.push(Axis { var: axis, extent: at.apply(extent) });
            first.insert(var, first.apply(min));
            at.insert(var, value);
        }
        let condition = store.path.steps.iter().filter_map(|step| self.condition(step)).map(|cond| at.apply(&cond));
        let condition = condition.reduce(Expr::and);
        let mut pieces = reduction.pieces.clone();
        pieces.retain(|piece| piece.store != Some(place));
        let init = self.read(&reduction.read, &pieces, &first, depth)?;
        let init = (init != reduction.op.identity_expr(store.value.dtype().scalar)).then_some(init);
        let op = reduction.op;
        let parts = self.parts(reduction, &at, depth)?;
        let nothing = || "a reduction combines nothing".to_owned();
        if parts.len() > 1 && !store.value.dtype().scalar.is_integer() {
            let (axis, when, source) = spread(op, &parts).ok_or_else(nothing)?;
            axes.push(axis);
            let condition = condition.into_iter().chain(when).reduce(Expr::and);
            return Ok(StageBody::Reduce { op, axes, init, condition, source });
        }
        self.links.extend(reduction.links.iter().skip(1).map(|link| link.store));
        let source = joined(op, parts).ok_or_else(nothing)?;
        Ok(StageBody::Reduce { op, axes, init, condition, source })
    }

    /// The values that a reduction combines, in the order in which its stores run, each with the condition under which it is combined.
    fn parts(
        &mut self,
        reduction: &Reduction,
        at: &Substitution,
        depth: usize,
    ) -> Result<Vec<(Option<Expr>, Expr)>, String> {
        let mut parts = Vec::new();
        for link in reduction.links.iter().rev() {
            let store = self.statement(link.store).clone();
            let there = Substitution::new(&store.loops(), link.at.iter().map(|value| at.apply(value)));
            let sources = self.sources[link.store].clone();
            let mut loads = Vec::new();
            for (position, (read, pieces)) in self.observed.reads(&store).iter().zip(&sources).enumerate() {
                if position != link.so_far {
                    loads.push(self.read(read, pieces, &there, depth)?);
                }
            }
            let value = self.observed.with_loads(&there.apply(&link.source), loads);
            parts.push((link.when.as_ref().map(|when| at.apply(when)), value));
        }
        Ok(parts)
    }

    /// A condition on the way to a store that is not asserted in any case.
    fn condition(&self, step: &Step) -> Option<Expr> {
        match step {
            Step::Guard(cond, true) if self.observed.program.asserted.contains(cond) => None,
            Step::Guard(cond, true) => Some(cond.clone()),
            Step::Guard(cond, false) => Some(Expr::unary(UnaryOp::Not, cond.clone())),
            Step::Loop(..) | Step::Let(..) => None,
        }
    }
}
