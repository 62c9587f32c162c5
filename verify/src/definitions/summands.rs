//! What the value of an element is combined of, with other tensors replaced by their values.
//!
//! ```text
//! rf[i, ki] = sum over ko of A[i, 4 * ko + ki] if 4 * ko + ki < n
//! C[i]      = B[i] + sum over ki of rf[i, ki]
//!
//! summands of C[i]     B[i]
//!                      A[i, 4 * ko + ki]     for each ki and each ko, if 4 * ko + ki < n
//! ```
//!
//! Sums of sums are one sum, and so are the sums that are added; what is subtracted is added with the other sign, and a sum with
//! the other sign is a sum of values with the other sign. A choice between a value and the identity is a condition. A tensor
//! that is compared by itself stands under a name. Everything else is an operation on values, and stays as it is.

use std::fmt;

use tilewright_ir::visit::{Rewrite, Substitution};
use tilewright_ir::{
    BinaryOp, Buffer, Definition, Expr, ReduceOp, SharedExpr, Stage, StageBody, UnaryOp, Var, sabotage,
};

use crate::forms::{choice, opposite};
use crate::path::Step;
use crate::reorder::{is_known, is_partial};

/// Summands that an element may have, and tensors that are replaced by their values in it.
const MOST: usize = 200;

/// A tensor whose elements stand under a name: those of a tensor before, at other indices.
#[derive(Clone, Debug)]
pub struct Named {
    /// The tensor.
    pub tensor: Buffer,
    /// The name.
    pub name: Buffer,
    /// Variables for the index of the tensor, and the index of the name.
    pub index: (Vec<Var>, Vec<Expr>),
}

/// A definition that is looked into.
#[derive(Clone, Debug)]
pub struct View<'a> {
    /// The definition, which is well formed.
    pub definition: &'a Definition,
    /// The tensors that stand under names.
    pub named: Vec<Named>,
    /// Whether choices inside of the products of a sum are taken apart.
    pub opens_products: bool,
}

/// One summand: the loops over the reduced axes and the conditions under which it takes part, and its value.
#[derive(Clone, Debug)]
pub struct Summand {
    /// Loops and conditions.
    pub steps: Vec<Step>,
    /// The value.
    pub value: Expr,
}

/// Why there are no summands.
#[derive(Clone, Debug, PartialEq)]
pub enum Stuck {
    /// A reduction is neither combined by the operator nor under a name.
    Reduction(Buffer),
    /// What else is wrong.
    Other(String),
}

impl fmt::Display for Stuck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reduction(tensor) => write!(f, "`{tensor}` is a reduction, and nothing is claimed of it"),
            Self::Other(reason) => f.write_str(reason),
        }
    }
}

impl From<String> for Stuck {
    fn from(reason: String) -> Self {
        Self::Other(reason)
    }
}

impl From<&str> for Stuck {
    fn from(reason: &str) -> Self {
        Self::Other(reason.to_owned())
    }
}

impl From<Stuck> for String {
    fn from(stuck: Stuck) -> Self {
        stuck.to_string()
    }
}

/// The summands of an element.
#[derive(Clone, Debug, Default)]
pub struct Summands {
    /// In the order of the text, the start value of a reduction first.
    pub list: Vec<Summand>,
    /// The reductions that were taken apart.
    n_reductions: usize,
    /// Sums, choices and identities that were taken apart.
    n_others: usize,
}

impl Summands {
    /// Whether the value is one reduction of one value, combined in the order of the loops.
    pub fn is_plain(&self) -> bool {
        (self.n_reductions, self.n_others) == (1, 0)
    }
}

impl View<'_> {
    /// The summands of an element of a computed tensor; its value alone if no operator is given.
    ///
    /// # Errors
    /// No stage computes the tensor, a reduction is neither combined by the operator nor under a name, or there are too many.
    pub fn summands(&self, tensor: &Buffer, at: &[Expr], op: Option<ReduceOp>) -> Result<Summands, Stuck> {
        let (steps, found, is_negated) = (Vec::new(), Summands::default(), false);
        let mut open = Open { view: self, op, steps, found, is_negated, left: MOST };
        let stage = self.definition.stage_of(tensor).ok_or_else(|| format!("nothing computes `{tensor}`"))?;
        let ty = tensor.dtype.scalar;
        if op.is_some() && !ty.is_integer() && !ty.is_float() {
            return Err(format!("values of type {ty} are not combined").into());
        }
        open.stage(stage, at)?;
        Ok(open.found)
    }
}

/// The value of a stage at an index: variables and what they stand for.
fn at(stage: &Stage, index: &[Expr]) -> Result<Substitution, Stuck> {
    if stage.axes.len() != index.len() {
        let text = format!("`{}` has {} axes, and {} indices", stage.buffer, stage.axes.len(), index.len());
        return Err(text.into());
    }
    let typed = stage.axes.iter().zip(index).map(|(axis, index)| {
        let ty = axis.var.dtype();
        if index.dtype() == ty { index.clone() } else { Expr::Cast(ty, SharedExpr::new(index.clone())) }
    });
    Ok(Substitution::new(stage.axes.iter().map(|axis| &axis.var), typed))
}

struct Open<'a> {
    view: &'a View<'a>,
    op: Option<ReduceOp>,
    /// The way to the summand that is looked at.
    steps: Vec<Step>,
    found: Summands,
    /// Whether the summands have the other sign.
    is_negated: bool,
    /// Tensors that may still be replaced by their values.
    left: usize,
}

impl Open<'_> {
    /// The summands of an element of a stage; its index is in terms of names already.
    fn stage(&mut self, stage: &Stage, index: &[Expr]) -> Result<(), Stuck> {
        self.left = self.left.checked_sub(1).ok_or("a value is made of too many tensors")?;
        let mut names = at(stage, index)?;
        match &stage.body {
            StageBody::Elementwise(value) => self.split(&names.apply(value)),
            StageBody::Reduce { op, axes, init, condition, source } => {
                if self.op.is_none_or(|own| own != *op && !sabotage::on("summands-ignore-operators")) {
                    return Err(Stuck::Reduction(stage.buffer.clone()));
                }
                self.found.n_reductions += 1;
                if let Some(init) = init {
                    self.split(&names.apply(init))?;
                }
                let depth = self.steps.len();
                for axis in axes {
                    let var = Var::new(axis.var.name(), axis.var.dtype());
                    let extent = self.expr(&names.apply(&axis.extent))?;
                    names.insert(&axis.var, Expr::from(&var));
                    let first = Expr::Int { value: 0, ty: var.dtype().scalar };
                    self.steps.push(Step::Loop(var, first, extent));
                }
                if let Some(cond) = condition
                    && !sabotage::on("summands-ignore-conditions")
                {
                    let cond = self.expr(&names.apply(cond))?;
                    self.steps.push(Step::Guard(cond, true));
                }
                self.split(&names.apply(source))?;
                self.steps.truncate(depth);
                Ok(())
            }
        }
    }

    /// The summands of a value.
    fn split(&mut self, value: &Expr) -> Result<(), Stuck> {
        let Some(op) = self.op else { return self.add(value) };
        if *value == op.identity_expr(value.dtype().scalar) {
            self.found.n_others += 1;
            return Ok(());
        }
        match value {
            Expr::Binary(other, a, b) if *other == op.combine() => {
                self.found.n_others += 1;
                self.split(a)?;
                self.split(b)
            }
            Expr::Binary(BinaryOp::Sub, a, b) if op == ReduceOp::Sum => {
                self.found.n_others += 1;
                self.split(a)?;
                self.negated(b)
            }
            Expr::Unary(UnaryOp::Neg, a) if op == ReduceOp::Sum => {
                self.found.n_others += 1;
                self.negated(a)
            }
            Expr::IfThenElse(..) | Expr::Select(..)
                if let Some([cond, a, b]) = choice(value)
                    && self.is_condition(cond)
                    && !may_trap_unchosen(value) =>
            {
                self.found.n_others += 1;
                let cond = self.expr(cond)?;
                for (value, holds) in [(a, true), (b, false)] {
                    self.steps.push(Step::Guard(cond.clone(), holds));
                    self.split(value)?;
                    self.steps.pop();
                }
                Ok(())
            }
            Expr::Binary(BinaryOp::Mul, ..) if op == ReduceOp::Sum && self.view.opens_products => {
                let product = self.expr(value)?;
                self.product(&product)
            }
            Expr::Load { buffer, indices } if self.named(buffer).is_none() => {
                let Some(stage) = self.view.definition.stage_of(buffer) else { return self.add(value) };
                let indices = self.exprs(indices)?;
                self.stage(stage, &indices)
            }
            _ => self.add(value),
        }
    }

    /// Whether a condition is known wherever it is asked: it reads nothing but inputs, without arithmetic that may wrap.
    fn is_condition(&self, cond: &Expr) -> bool {
        let inputs: Vec<Buffer> = self.view.definition.inputs().into_iter().cloned().collect();
        is_known(cond, &inputs)
    }

    /// The summands of a product: one for each way in which the choices among its factors end. A product of zeros is none, and of
    /// integers a product with a zero.
    fn product(&mut self, product: &Expr) -> Result<(), Stuck> {
        let factors = factors(product);
        let open = factors.iter().enumerate().find_map(|(place, factor)| Some((place, choice(factor)?)));
        let Some((place, [cond, a, b])) = open.filter(|(place, [cond, ..])| {
            !cond.reads_memory() && !is_partial(cond) && !may_trap_unchosen(factors[*place])
        }) else {
            let zero = ReduceOp::Sum.identity_expr(product.dtype().scalar);
            let mut zeros = factors.iter().filter(|factor| ***factor == zero);
            // 0 times infinity is no 0.
            let is_zero = if product.dtype().scalar.is_integer() {
                zeros.next().is_some()
            } else {
                zeros.count() == factors.len()
            };
            if is_zero && !is_partial(product) {
                self.found.n_others += 1;
                return Ok(());
            }
            return self.add(product);
        };
        self.found.n_others += 1;
        for (side, holds) in [(a, true), (b, false)] {
            let chosen = factors.iter().enumerate().map(|(at, factor)| if at == place { side } else { *factor });
            let chosen = chosen.cloned().reduce(|a, b| Expr::binary(BinaryOp::Mul, a, b));
            let chosen = chosen.ok_or("a product has no factors")?;
            self.steps.push(Step::Guard(cond.clone(), holds));
            self.product(&chosen)?;
            self.steps.pop();
        }
        Ok(())
    }

    /// The summands of a value, with the other sign.
    fn negated(&mut self, value: &Expr) -> Result<(), Stuck> {
        let outer = self.is_negated;
        self.is_negated = outer == sabotage::on("summands-lose-signs");
        let split = self.split(value);
        self.is_negated = outer;
        split
    }

    fn add(&mut self, value: &Expr) -> Result<(), Stuck> {
        let mut value = self.expr(value)?;
        if self.is_negated {
            let ty = value.dtype().scalar;
            value = if ty.is_integer() { Expr::Int { value: 0, ty } - value } else { opposite(&value) };
        }
        if self.found.list.len() == MOST {
            return Err(format!("a value is combined of more than {MOST} others").into());
        }
        self.found.list.push(Summand { steps: self.steps.clone(), value });
        Ok(())
    }

    fn named(&self, tensor: &Buffer) -> Option<&Named> {
        self.view.named.iter().find(|named| named.tensor == *tensor)
    }
}

/// The factors of a product, each of which is no product whose order is clear: `a * b * c` is `(a * b) * c`.
fn factors(product: &Expr) -> Vec<&Expr> {
    match product {
        Expr::Binary(BinaryOp::Mul, a, b) => {
            let mut found = factors(a);
            found.push(b);
            found
        }
        _ => vec![product],
    }
}

/// Whether a choice evaluates both sides, and the one that is not chosen may have no value.
fn may_trap_unchosen(value: &Expr) -> bool {
    matches!(value, Expr::Select(_, a, b) if is_partial(a) || is_partial(b))
}

/// Replaces tensors that are computed by their names or values.
impl Rewrite for Open<'_> {
    type Error = Stuck;

    fn expr(&mut self, expr: &Expr) -> Result<Expr, Stuck> {
        let Expr::Load { buffer, indices } = expr else { return self.expr_children(expr) };
        let indices = self.exprs(indices)?;
        if let Some(Named { name, index: (vars, element), .. }) = self.named(buffer) {
            if vars.len() != indices.len() {
                return Err(format!("`{buffer}` is read with {} indices", indices.len()).into());
            }
            let there = Substitution::new(vars, indices);
            return Ok(Expr::load(name, element.iter().map(|value| there.apply(value)).collect::<Vec<_>>()));
        }
        match self.view.definition.stage_of(buffer) {
            None => Ok(Expr::load(buffer, indices)),
            Some(stage) => {
                self.left = self.left.checked_sub(1).ok_or("a value is made of too many tensors")?;
                let StageBody::Elementwise(value) = &stage.body else {
                    return Err(Stuck::Reduction(buffer.clone()));
                };
                self.expr(&at(stage, &indices)?.apply(value))
            }
        }
    }
}

/// What is wrong with a definition: each stage computes another tensor of integers or floats, of its own shape, from inputs and from
/// tensors in front of it.
pub(super) fn not_well_formed(definition: &Definition) -> Option<String> {
    for (position, stage) in definition.stages.iter().enumerate() {
        let tensor = &stage.buffer;
        let shape: Vec<Expr> = stage.axes.iter().map(|axis| axis.extent.clone()).collect();
        if definition.stages[..position].iter().any(|other| other.buffer.aliases(tensor)) {
            return Some(format!("`{tensor}` is computed twice"));
        }
        if shape != tensor.shape || !tensor.dtype.is_scalar() || tensor.strides.is_some() {
            return Some(format!("the axes of `{tensor}` are not those of its shape"));
        }
        if tensor.shape.iter().any(Expr::reads_memory) {
            return Some(format!("memory says how large `{tensor}` is"));
        }
        let mut wrong = None;
        let mut look = |part: &Expr| {
            if let Expr::Load { buffer, .. } = part {
                let is_later = definition.stages[position..].iter().any(|other| other.buffer.aliases(buffer));
                let is_known = definition.params.contains(buffer) || definition.stage_of(buffer).is_some();
                if is_later || !is_known {
                    wrong = Some(format!("`{tensor}` is computed from `{buffer}`, which comes later or never"));
                }
            }
        };
        for expr in exprs(stage) {
            expr.walk(&mut look);
        }
        if wrong.is_some() {
            return wrong;
        }
    }
    None
}

/// The expressions of a stage.
pub(super) fn exprs(stage: &Stage) -> Vec<&Expr> {
    match &stage.body {
        StageBody::Elementwise(value) => vec![value],
        StageBody::Reduce { axes, init, condition, source, .. } => {
            let extents = axes.iter().map(|axis| &axis.extent);
            extents.chain(init).chain(condition).chain([source]).collect()
        }
    }
}

/// Whether values of a type may be combined in any order: integers wrap, and their sums, products, minima and maxima do not depend on it.
/// Those of floats do: sums are rounded, and a minimum may be either zero.
pub(super) fn is_commutative(tensor: &Buffer, op: ReduceOp) -> bool {
    let is_known = matches!(op.combine(), BinaryOp::Add | BinaryOp::Mul | BinaryOp::Min | BinaryOp::Max);
    is_known && tensor.dtype.scalar.is_integer()
}
