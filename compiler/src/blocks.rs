//! What is claimed of the blocks of a program for the judge: which iteration has certain values of the axes.
//!
//! ```text
//! for i_0, a, k in T.grid(4, 10, 5):
//!     with T.sblock("P"):
//!         i = T.axis.spatial(34, i_0 * 8 + a)        counted: k -> r
//!         r = T.axis.reduce(5, k)                    anywhere: i_0 -> min(i // 8, 3), a -> i - min(i // 8, 3) * 8, k -> r
//! ```
//!
//! Axes that have loops in common are solved together. Where their map has no inverse, as that of tiles that overlap, an axis that is a
//! sum of loops takes as much of each loop as it can, the one with the greatest factor first.

use std::collections::HashMap;
use std::convert::Infallible;

use tilewright_algebra::{Ranges, inverse, linear_in, physical_shape, simplify};
use tilewright_ir::visit::{Rewrite, Substitution};
use tilewright_ir::{AxisKind, BinaryOp, Block, BlockAxis, Expr, For, IndexMap, PrimFunc, Stmt, StmtKind, Var};
use tilewright_verify::reorder::is_small;
use tilewright_verify::{BlockClaim, Through};

/// Returns a claim for each block, in program order. It is empty where no iteration is found.
pub fn inverses(func: &PrimFunc) -> Vec<BlockClaim> {
    let mut walk = Walk::default();
    let _n_actions = walk.count(&func.body);
    walk.collect(&func.body);
    walk.found
}

/// A walk over the blocks of a function.
#[derive(Default)]
struct Walk<'a> {
    /// The number of stores and calls in each loop.
    actions: HashMap<Var, usize>,
    /// The loops around the statement.
    loops: Vec<&'a For>,
    /// The values of names around the statement.
    names: Substitution,
    found: Vec<BlockClaim>,
}

/// An axis that is to have a value: its variable, less the least value, how many values there are, and the value in the loops.
struct Wanted {
    target: Expr,
    /// `None` where the extent is that of the loops.
    extent: Option<Expr>,
    value: Expr,
}

impl<'a> Walk<'a> {
    fn count(&mut self, stmt: &Stmt) -> usize {
        let is_action = match &stmt.kind {
            StmtKind::Store { .. } => true,
            StmtKind::Evaluate(expr) => expr.as_const_int().is_none(),
            _ => false,
        };
        let inside: usize = stmt.children().map(|child| self.count(child)).sum();
        if let StmtKind::For(inner) = &stmt.kind {
            self.actions.insert(inner.var.clone(), inside);
        }
        usize::from(is_action) + inside
    }

    fn collect(&mut self, stmt: &'a Stmt) {
        let depth = self.loops.len();
        match &stmt.kind {
            StmtKind::For(inner) => self.loops.push(inner),
            StmtKind::Let { var, value, .. } => {
                let value = self.names.apply(value);
                if is_small(&value) {
                    self.names.insert(var, value);
                }
            }
            _ => {}
        }
        if let Some((block, below)) = Block::of(stmt) {
            let claim = self.claim(block, below, stmt).unwrap_or_default();
            self.found.push(claim);
        }
        stmt.children().for_each(|child| self.collect(child));
        self.loops.truncate(depth);
    }

    fn claim(&self, block: &Block, below: &Stmt, stmt: &Stmt) -> Option<BlockClaim> {
        let bindings = block.parts(below)?.bindings;
        let axes = || block.axes.iter().zip(bindings.iter().copied());
        let wanted = |value: &Expr, at: usize| Wanted {
            target: Expr::from(&block.axes[at].var) - block.axes[at].min.clone(),
            extent: Some(block.axes[at].extent.clone()),
            value: value.clone() - block.axes[at].min.clone(),
        };
        let is_counted = |kind: AxisKind| matches!(kind, AxisKind::Reduce | AxisKind::Scan);
        let counted: Vec<Wanted> = axes()
            .enumerate()
            .filter(|(_, (axis, _))| is_counted(axis.kind))
            .map(|(at, (_, value))| wanted(value, at))
            .collect();
        let uses = |inner: &&For| counted.iter().any(|axis| axis.value.vars().contains(&inner.var));
        let counting: Vec<&For> = self.loops.iter().copied().filter(uses).collect();
        let all: Vec<Wanted> =
            axes().enumerate().map(|(at, (_, value))| wanted(&self.names.apply(value), at)).collect();
        let n_actions = Walk::default().count(stmt);
        let first = self.loops.iter().position(|inner| self.actions.get(&inner.var) == Some(&n_actions));
        let (outer, own) = self.loops.split_at(first.unwrap_or(self.loops.len()));
        let local: Vec<Wanted> = axes().map(|(axis, value)| local(&Expr::from(&axis.var), value, outer, own)).collect();
        Some(BlockClaim {
            counted: together(&counted, &counting).unwrap_or_default(),
            anywhere: solved(&all, &self.loops).unwrap_or_default(),
            own: solved(&local, own).unwrap_or_default(),
            through: through(&block.axes, &bindings, &self.loops),
        })
    }
}

/// The number that all axes are quotients and remainders of, if several loops make it, or one of the divisors is no constant: loops that
/// were fused, and split again.
fn through(axes: &[BlockAxis], bindings: &[&Expr], loops: &[&For]) -> Option<Through> {
    let mut numbers: Vec<Expr> = Vec::new();
    let mut is_symbolic = false;
    for binding in bindings {
        binding.walk(&mut |part| {
            if let Expr::Binary(BinaryOp::FloorDiv | BinaryOp::FloorMod, number, divisor) = part {
                let is_part = matches!(&**number, Expr::Binary(BinaryOp::FloorDiv | BinaryOp::FloorMod, ..));
                is_symbolic |= divisor.as_const_int().is_none();
                if !is_part && !numbers.contains(number) {
                    numbers.push(Expr::clone(number));
                }
            }
        });
    }
    let [number] = &numbers[..] else { return None };
    let uses = |inner: &&&For| number.vars().contains(&inner.var);
    (is_symbolic || loops.iter().filter(uses).count() > 1).then_some(())?;
    let name = Var::new("f", number.dtype());
    let extent = axes.iter().map(|axis| axis.extent.clone()).reduce(|size, extent| size * extent)?;
    let Ok(parts) =
        (Named { number, name: &name }).exprs(&bindings.iter().map(|&part| part.clone()).collect::<Vec<_>>());
    let map = IndexMap::new(vec![name.clone()], vec![extent.clone()], parts, Vec::new()).ok()?;
    let shape: Vec<Expr> = axes.iter().map(|axis| axis.extent.clone()).collect();
    let claim = inverse(&map, &shape, &[]).ok()?;
    let back = Substitution::new(&claim.vars, axes.iter().map(|axis| Expr::from(&axis.var)));
    let wanted = Wanted { target: Expr::from(&name), extent: Some(extent.clone()), value: number.clone() };
    let values = solved(&[wanted], loops)?;
    Some(Through { number: number.clone(), value: back.apply(claim.outputs.first()?), extent, name, loops: values })
}

/// Puts a name in the place of a number.
struct Named<'a> {
    number: &'a Expr,
    name: &'a Var,
}

impl Rewrite for Named<'_> {
    type Error = Infallible;

    fn expr(&mut self, expr: &Expr) -> Result<Expr, Infallible> {
        if expr == self.number { Ok(Expr::from(self.name)) } else { self.expr_children(expr) }
    }
}

/// The part of an axis that the inner loops count, if it is a sum of theirs and of a part that the outer loops count.
fn local(axis: &Expr, value: &Expr, outer: &[&For], own: &[&For]) -> Wanted {
    let least = |loops: &[&For]| {
        Substitution::new(loops.iter().map(|inner| &inner.var), loops.iter().map(|inner| inner.min.clone()))
    };
    let (without_own, without_outer) = (least(own), least(outer));
    let start = without_own.apply(value);
    let rest = without_outer.apply(value) - without_outer.apply(&start);
    Wanted { target: axis.clone() - start, extent: None, value: rest }
}

/// The values of loops for all axes, those of loops that no axis needs included.
fn solved(wanted: &[Wanted], loops: &[&For]) -> Option<Vec<(Var, Expr)>> {
    let mut found: Vec<(Var, Expr)> = Vec::new();
    let mut left: Vec<&Wanted> = wanted.iter().collect();
    while let Some(first) = left.pop() {
        let (mut group, mut used) = (vec![first], of(first, loops));
        while let Some(at) = left.iter().position(|axis| of(axis, loops).iter().any(|var| used.contains(var))) {
            let axis = left.remove(at);
            used.extend(of(axis, loops));
            group.push(axis);
        }
        let counting: Vec<&For> = loops.iter().copied().filter(|inner| used.contains(&inner.var)).collect();
        if counting.is_empty() {
            continue;
        }
        found.extend(together(&group, &counting).or_else(|| greedy(&group, &counting))?);
    }
    let is_free = |inner: &&&For| !found.iter().any(|(var, _)| *var == inner.var);
    let free: Vec<_> = loops.iter().filter(is_free).map(|inner| (inner.var.clone(), inner.min.clone())).collect();
    found.extend(free);
    Some(found)
}

/// The loops that an axis needs.
fn of(axis: &Wanted, loops: &[&For]) -> Vec<Var> {
    let vars = axis.value.vars();
    loops.iter().map(|inner| inner.var.clone()).filter(|var| vars.contains(var)).collect()
}

/// The inverse of the map from loops to axes.
fn together(axes: &[impl std::borrow::Borrow<Wanted>], loops: &[&For]) -> Option<Vec<(Var, Expr)>> {
    let axes: Vec<&Wanted> = axes.iter().map(std::borrow::Borrow::borrow).collect();
    let vars: Vec<Var> = loops.iter().map(|inner| inner.var.clone()).collect();
    let from_zero = Substitution::new(&vars, loops.iter().map(|inner| Expr::from(&inner.var) + inner.min.clone()));
    let ranges = loops.iter().fold(Ranges::new(), |ranges, inner| ranges.with(&inner.var, &inner.extent));
    let outputs = axes.iter().map(|axis| simplify(&from_zero.apply(&axis.value), &ranges)).collect();
    let domain = loops.iter().map(|inner| inner.extent.clone()).collect();
    let map = IndexMap::new(vars, domain, outputs, Vec::new()).ok()?;
    let stated: Option<Vec<Expr>> = axes.iter().map(|axis| axis.extent.clone()).collect();
    let shape = match stated {
        Some(shape) => shape,
        None => physical_shape(&map, &[]).ok()?.extents,
    };
    let claim = inverse(&map, &shape, &[]).ok()?;
    let targets = Substitution::new(&claim.vars, axes.iter().map(|axis| axis.target.clone()));
    let value = |(inner, value): (&&For, &Expr)| (inner.var.clone(), targets.apply(value) + inner.min.clone());
    Some(loops.iter().zip(&claim.outputs).map(value).collect())
}

/// For axes that are sums of loops, each of its own ones: as much of each loop as there may be, from the greatest factor on.
fn greedy(axes: &[&Wanted], loops: &[&For]) -> Option<Vec<(Var, Expr)>> {
    let ranges =
        loops.iter().fold(Ranges::new(), |ranges, inner| ranges.with_loop(&inner.var, &inner.min, &inner.extent));
    let mut found: Vec<(Var, Expr)> = Vec::new();
    for axis in axes {
        let mut terms = Vec::new();
        let mut base = axis.value.clone();
        for inner in loops.iter().filter(|inner| axis.value.vars().contains(&inner.var)) {
            let (rest, factor) = linear_in(&base, &inner.var, &ranges)?;
            base = rest + factor.clone() * inner.min.clone();
            match factor.as_const_int().filter(|factor| *factor >= 0)? {
                // A loop of one iteration.
                0 => found.push((inner.var.clone(), inner.min.clone())),
                size => terms.push((size, factor, *inner)),
            }
        }
        terms.sort_by_key(|(size, ..)| std::cmp::Reverse(*size));
        let mut rest = axis.target.clone() - base;
        for (at, (size, factor, inner)) in terms.iter().enumerate() {
            let one = Expr::int_of(1, inner.extent.dtype().scalar)?;
            let most = || inner.extent.clone() - one.clone();
            let whole = if *size == 1 { rest.clone() } else { rest.clone().floor_div(factor.clone()) };
            let is_last = at + 1 == terms.len();
            let count = if is_last { whole } else { Expr::binary(BinaryOp::Min, whole, most()) };
            rest = rest - count.clone() * factor.clone();
            if found.iter().any(|(var, _)| *var == inner.var) {
                return None;
            }
            found.push((inner.var.clone(), simplify(&(count + inner.min.clone()), &ranges)));
        }
    }
    Some(found)
}
