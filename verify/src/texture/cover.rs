//! Whether a store writes a whole texture.
//!
//! It does if its iterations write different texels of it, and are as many as there are. Loops that were split and guarded
//! count as the loop that they came from:
//!
//! ```text
//! for yo in (h + 3) // 4, yi in 4:         yo * 4 + yi takes every value from 0 to h - 1, for h is at most (h + 3) // 4 * 4;
//!     if yo * 4 + yi < h:                  so this is `for y in h`, if yo and yi are used in no other way
//!         T[yo * 4 + yi, x, ...] = ...
//! ```

use std::convert::Infallible;

use tilewright_ir::visit::Rewrite;
use tilewright_ir::{BinaryOp, Expr, IndexMap, Var};

use crate::access::Access;
use crate::door::inspected;
use crate::judge::{Decision, Judge};
use crate::map::{self, MapClaim};
use crate::method::Method;
use crate::obligation::Obligation;
use crate::pass::{equal, holds};
use crate::path::{Path, Step};

/// Loops from 0, each with its extent.
type Loops = Vec<(Var, Expr)>;

/// That a store of whole texels, in a nest that `start` leads to, writes every texel of its buffer; none if this is not seen.
pub(super) fn covers(judge: &Judge, start: &Path, store: &Access) -> Option<Decision> {
    let [row, column, channel] = store.indices.as_slice() else { return None };
    let nowhere = start;
    let around = store.path.steps.len() - own_lanes(store, channel)?;
    let steps: Vec<_> = store.path.steps.iter().collect();
    let steps = steps.get(start.steps.len()..around)?;
    let (loops, texel) = unguarded(judge, nowhere, steps, vec![row.clone(), column.clone()])?;
    let used = texel.iter().chain(loops.iter().map(|(_, extent)| extent)).flat_map(Expr::vars);
    let outside = |var: &Var| nowhere.symbols.contains(var) || nowhere.scalars.contains(var);
    for var in used {
        if !outside(&var) && !loops.iter().any(|(other, _)| *other == var) {
            return None;
        }
    }
    let one_to_one = one_to_one(judge, &nowhere.scalars, &loops, texel, &store.buffer.shape[..2]);
    let counted = counted(judge, nowhere, &loops, &store.buffer.shape[..2]);
    (one_to_one && counted).then_some((inspected(), Method::Inspection("one to one, and as many iterations as texels")))
}

/// How many steps of the way to a store are its own loop over the channels, if it writes all of them: one, or none for the only
/// channel.
fn own_lanes(store: &Access, channel: &Expr) -> Option<usize> {
    let channels = store.buffer.shape.get(2)?.as_const_int()?;
    match (channel, store.path.steps.last()) {
        (Expr::Var(last), Some(Step::Loop(lane, min, lanes))) => {
            (lane == last && min.as_const_int() == Some(0) && lanes.as_const_int() == Some(channels)).then_some(1)
        }
        (channel, _) => (channels == 1 && channel.as_const_int() == Some(0)).then_some(0),
    }
}

fn one_to_one(judge: &Judge, scalars: &[Var], loops: &Loops, texel: Vec<Expr>, shape: &[Expr]) -> bool {
    let vars = loops.iter().map(|(var, _)| var.clone()).collect();
    let domain = loops.iter().map(|(_, extent)| extent.clone()).collect();
    let Ok(map) = IndexMap::new(vars, domain, texel, Vec::new()) else { return false };
    let claim = MapClaim::new(&map, shape).scalars(scalars);
    [Obligation::Injective, Obligation::Bounds].iter().all(|id| map::decide(judge, *id, claim).0.is_proved())
}

/// There are as many iterations as texels; no extent is below 1, or the product would say nothing.
fn counted(judge: &Judge, nowhere: &Path, loops: &Loops, shape: &[Expr]) -> bool {
    let product = |extents: Vec<Expr>| extents.into_iter().reduce(|a, b| a * b).unwrap_or_else(|| Expr::int(1));
    let iterations = product(loops.iter().map(|(_, extent)| extent.clone()).collect());
    let positive = |extent: &Expr| match extent.as_const_int() {
        Some(extent) => extent >= 1,
        None => holds(judge, nowhere, &Expr::int(0).lt(extent.clone())).0.is_proved(),
    };
    loops.iter().all(|(_, extent)| positive(extent))
        && equal(judge, nowhere, &[(iterations, product(shape.to_vec()))]).0.is_proved()
}

/// The loops of a way with those that were split put together again, and the texel in terms of them; none if there is a
/// condition of another kind.
fn unguarded(judge: &Judge, nowhere: &Path, steps: &[&Step], mut texel: Vec<Expr>) -> Option<(Loops, Vec<Expr>)> {
    let mut loops: Loops = Vec::new();
    let mut bounds = Vec::new();
    for step in steps {
        match step {
            Step::Loop(var, min, extent) if min.as_const_int() == Some(0) => loops.push((var.clone(), extent.clone())),
            Step::Guard(cond, true) => upper_bounds(cond, &mut bounds)?,
            _ => return None,
        }
    }
    for (index, bound) in bounds {
        let is_loop = |var: &Var| loops.iter().any(|(other, _)| other == var);
        if bound.reads_memory() || bound.vars().iter().any(is_loop) {
            return None;
        }
        let (digits, total) = fused(&index, &loops)?;
        let enough = Expr::binary(BinaryOp::Le, bound.clone(), total);
        if !holds(judge, nowhere, &enough).0.is_proved() {
            return None;
        }
        let one = Var::new("fused", index.dtype());
        texel = texel.iter().map(|expr| Replace { part: &index, by: &one }.replaced(expr)).collect();
        loops.retain(|(var, _)| !digits.contains(var));
        loops.push((one, bound));
    }
    Some((loops, texel))
}

/// The parts of a condition, each `index < bound`.
fn upper_bounds(cond: &Expr, found: &mut Vec<(Expr, Expr)>) -> Option<()> {
    match cond {
        Expr::Binary(BinaryOp::And, a, b) => {
            upper_bounds(a, found)?;
            upper_bounds(b, found)
        }
        Expr::Binary(BinaryOp::Lt, index, bound) => {
            found.push(((**index).clone(), (**bound).clone()));
            Some(())
        }
        _ => None,
    }
}

/// The loops that an index consists of as digits, and how many values it takes: from 0, without a gap.
fn fused(index: &Expr, loops: &Loops) -> Option<(Vec<Var>, Expr)> {
    let extent_of = |var: &Var| loops.iter().find(|(other, _)| other == var).map(|(_, extent)| extent.clone());
    match index {
        Expr::Var(var) => Some((vec![var.clone()], extent_of(var)?)),
        Expr::Binary(BinaryOp::Add, high, low) => {
            let (Expr::Binary(BinaryOp::Mul, high, radix), Expr::Var(low)) = (&**high, &**low) else { return None };
            let (mut digits, count) = fused(high, loops)?;
            let same = radix.as_const_int()? == extent_of(low)?.as_const_int()?;
            if !same || digits.contains(low) {
                return None;
            }
            digits.push(low.clone());
            Some((digits, count * (**radix).clone()))
        }
        _ => None,
    }
}

struct Replace<'a> {
    part: &'a Expr,
    by: &'a Var,
}

impl Replace<'_> {
    fn replaced(&mut self, expr: &Expr) -> Expr {
        let Ok(replaced) = self.expr(expr);
        replaced
    }
}

impl Rewrite for Replace<'_> {
    type Error = Infallible;

    fn expr(&mut self, expr: &Expr) -> Result<Expr, Infallible> {
        if expr == self.part { Ok(Expr::from(self.by)) } else { self.expr_children(expr) }
    }
}
