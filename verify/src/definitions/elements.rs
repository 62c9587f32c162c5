//! The elements of two tensors side by side: their summands as the instances of two programs.
//!
//! ```text
//! C[i] before      B[i]                        C.value[i] = B[i]
//!                  A[i, k] for each k          C.value[i] = A[i, k]         in a loop over k
//! ```
//!
//! Both programs have the same loops over the index of the element, and a store for each summand.

use tilewright_ir::visit::Substitution;
use tilewright_ir::{Buffer, Definition, Evidence, Expr, PrimFunc, TensorPair, Var};

use super::summands::{Named, Stuck, Summand, Summands, View};
use crate::claims::Relation;
use crate::path::{Path, Step};
use crate::reorder::{Program, Statement, in_terms_of_before, program, values};

/// Two definitions, and pairs of tensors that are equal, each of which stands under a name.
#[derive(Clone, Copy, Debug)]
pub struct Elements<'a> {
    /// The definition before, and the one after.
    pub definitions: [&'a Definition; 2],
    /// How the inputs and outputs of both correspond.
    pub evidence: &'a Evidence,
    /// The pairs.
    pub known: &'a [TensorPair],
    /// Whether choices inside of the products of a sum are taken apart.
    pub opens_products: bool,
}

/// The way to the elements: the parameters of the function, what it asserts, and all tensors that never change.
///
/// # Errors
/// The function asserts something in another place than its start.
pub fn path(func: &PrimFunc, definitions: [&Definition; 2]) -> Result<Path, String> {
    let mut path = Path::of(func);
    for cond in &program(func)?.asserted {
        path.steps.push(Step::Guard(cond.clone(), true));
    }
    let inputs = definitions.into_iter().flat_map(Definition::inputs).cloned();
    path.constant = path.constant.iter().cloned().chain(inputs).collect::<Vec<_>>().into();
    Ok(path)
}

impl<'a> Elements<'a> {
    /// The definitions, with the names of the tensors that are known to be equal.
    pub fn views(&self) -> [View<'a>; 2] {
        let [mut old, mut new] = self.definitions.map(|definition| View {
            definition,
            named: Vec::new(),
            opens_products: self.opens_products,
        });
        let relation = Relation::new(self.evidence);
        for pair in self.known {
            let index: Vec<Expr> = pair.index.iter().map(Expr::from).collect();
            let element = match &pair.element {
                Some(element) => element.clone(),
                None if relation.image(&pair.before, &pair.after, &index).as_ref() == Some(&index) => index,
                // The index before would be that of the inverse map.
                None => continue,
            };
            let known = old.named.iter().find(|named| named.tensor == pair.before).cloned();
            let named = known.unwrap_or_else(|| {
                let vars: Vec<Var> = pair.before.shape.iter().map(|extent| Var::new("x", extent.dtype())).collect();
                let itself = vars.iter().map(Expr::from).collect();
                let name = Buffer::compact(&pair.before.name, pair.before.dtype, pair.before.shape.clone());
                let named = Named { tensor: pair.before.clone(), name, index: (vars, itself) };
                old.named.push(named.clone());
                named
            });
            let is_new = new.named.iter().all(|other| other.tensor != pair.after);
            if is_new && pair.before.dtype == pair.after.dtype {
                let (tensor, index) = (pair.after.clone(), (pair.index.clone(), element));
                new.named.push(Named { tensor, name: named.name, index });
            }
        }
        [old, new]
    }

    /// The summands of an element before and after, in terms of the index of the pair.
    ///
    /// # Errors
    /// Those of [`View::summands`], and an index that does not fit the tensors.
    pub fn summands(&self, pair: &TensorPair) -> Result<[Summands; 2], Stuck> {
        let index: Vec<Expr> = pair.index.iter().map(Expr::from).collect();
        let [old, new] = self.views();
        let relation = Relation::new(self.evidence);
        let image = || relation.image(&pair.before, &pair.after, &index);
        let (at, there) = match &pair.element {
            Some(element) => (element.clone(), index.clone()),
            None => (index.clone(), image().ok_or("a parameter is compared with one that it did not become")?),
        };
        let is_fit = at.len() == pair.before.rank() && there.len() == pair.after.rank();
        if !is_fit || pair.before.dtype != pair.after.dtype {
            return Err(format!("`{}` and `{}` differ in rank or type", pair.before, pair.after).into());
        }
        Ok([old.summands(&pair.before, &at, pair.op)?, new.summands(&pair.after, &there, pair.op)?])
    }

    /// The summands as programs with one store for each, in the loops over the index of the pair and over the reduced axes, under
    /// the names that the pair gives to these.
    ///
    /// # Errors
    /// The pair gives names that are not new, or for other loops.
    pub fn programs(&self, path: &Path, pair: &TensorPair, sides: &[Summands; 2]) -> Result<[Program; 2], String> {
        let mut path = path.clone();
        let shape = if pair.element.is_some() { &pair.after.shape } else { &pair.before.shape };
        for (var, extent) in pair.index.iter().zip(shape) {
            path.steps.push(Step::Loop(var.clone(), zero(var), extent.clone()));
        }
        if let Some(element) = &pair.element {
            let axes: Vec<Var> = pair.before.shape.iter().map(|extent| Var::new("x", extent.dtype())).collect();
            values(&axes, element, &pair.index, &path)?;
        }
        let names = self.views().into_iter().flat_map(|view| view.named).map(|named| named.name);
        path.constant = path.constant.iter().cloned().chain(names).collect::<Vec<_>>().into();
        let stored = Buffer::compact(format!("{}.value", pair.after.name), pair.after.dtype, shape.clone());
        let mut programs = Vec::new();
        let relation = Relation::new(self.evidence);
        for (side, summands) in sides.iter().enumerate() {
            let loops = &pair.loops[side];
            if loops.len() != summands.list.len() {
                return Err(format!("{} summands are claimed, and there are {}", loops.len(), summands.list.len()));
            }
            let statements = summands.list.iter().zip(loops).enumerate();
            let statements = statements.map(|(place, (summand, loops))| {
                let mut named = named(summand, loops, &pair.index, &path)?;
                if side == 1 {
                    named.steps = in_terms_of_before(&named.steps, &relation)?.iter().cloned().collect();
                }
                let subject = format!("{}: {}", pair.after, summand.value);
                Ok(statement(named, place, &path, (&stored, &pair.index), subject))
            });
            let statements = statements.collect::<Result<_, String>>()?;
            programs.push(Program { statements, asserted: Vec::new(), allocated: Vec::new() });
        }
        programs.try_into().map_err(|_| "a comparison has two sides".into())
    }
}

/// 0 in the type of a variable.
fn zero(var: &Var) -> Expr {
    Expr::Int { value: 0, ty: var.dtype().scalar }
}

/// A summand with other names for its loops: each new, and of the type of the loop.
fn named(summand: &Summand, loops: &[Var], index: &[Var], path: &Path) -> Result<Summand, String> {
    let of = |step: &Step| if let Step::Loop(var, ..) = step { Some(var.clone()) } else { None };
    let vars: Vec<Var> = summand.steps.iter().filter_map(of).collect();
    let all: Vec<&Var> = index.iter().chain(loops).collect();
    let is_new = |(place, var): (usize, &&Var)| {
        !all[..place].contains(var) && !path.symbols.contains(var) && !path.scalars.contains(var)
    };
    let fits = vars.len() == loops.len() && vars.iter().zip(loops).all(|(var, name)| var.dtype() == name.dtype());
    if !fits || !all.iter().enumerate().all(is_new) {
        return Err(format!("the names of the loops of `{}` are not new, or not as many", summand.value));
    }
    let names = Substitution::new(&vars, loops.iter().map(Expr::from));
    let name = |step: &Step| match step {
        Step::Loop(var, min, extent) => {
            let place = vars.iter().position(|other| other == var);
            let var = place.and_then(|place| loops.get(place)).unwrap_or(var);
            Step::Loop(var.clone(), names.apply(min), names.apply(extent))
        }
        Step::Guard(cond, holds) => Step::Guard(names.apply(cond), *holds),
        Step::Let(var, value) => Step::Let(var.clone(), names.apply(value)),
    };
    Ok(Summand { steps: summand.steps.iter().map(name).collect(), value: names.apply(&summand.value) })
}

/// A store for a summand, to an element of a buffer at the end of a way.
pub fn statement(
    Summand { steps, value }: Summand,
    place: usize,
    path: &Path,
    (buffer, index): (&Buffer, &[Var]),
    subject: String,
) -> Statement {
    let mut path = path.clone();
    for step in steps {
        path.steps.push(step);
    }
    let depth = path.loops().len();
    let mut at = vec![0; depth + 1];
    at[0] = place;
    let indices = index.iter().map(Expr::from).collect();
    Statement { path, place: at, buffer: buffer.clone(), indices, value, subject, span: None }
}
