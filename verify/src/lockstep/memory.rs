//! What the program after reads, as what the program before reads.
//!
//! Memory corresponds by the claims: an element after holds what its element before does. So a load after has the value of a load
//! before if its index is that one's through the map, which is a goal like any other. Which of several loads it is, samples
//! say; a wrong choice is a goal that does not hold.

use std::convert::Infallible;

use tilewright_ir::visit::Rewrite;
use tilewright_ir::{Bindings, Buffer, Expr};

use super::{GoalKind, Lockstep};
use crate::concrete::tuple;
use crate::sample;

/// Samples on which two loads are compared.
const TRIED: usize = 16;

impl Lockstep<'_> {
    /// Expressions of the program after, with the loads of expressions before. Stuck where nothing before is read like that:
    /// what is read may hold nothing.
    pub(super) fn in_old_memory(&mut self, old: &[Expr], new: &[Expr]) -> Vec<Expr> {
        let before = loads(old);
        let mut rewrite = InOldMemory { walk: self, before: &before, is_chosen: false };
        new.iter().map(|expr| rewrite.expr(expr).unwrap_or_else(|never| match never {})).collect()
    }

    /// Two integers are the same, by a guess of which loads correspond.
    pub(super) fn same(&mut self, old: &Expr, new: &Expr) {
        let outer = std::mem::replace(&mut self.is_guess, true);
        let new = self.in_old_memory(std::slice::from_ref(old), std::slice::from_ref(new));
        let depth = self.path.steps.len();
        for (old, new) in self.per_lane(old.dtype().lanes, std::iter::once(old).zip(&new)) {
            self.goal("simulation", GoalKind::Same(old, new));
        }
        self.path.steps.truncate(depth);
        self.is_guess = outer;
    }

    /// Whether two loads read corresponding elements, as far as samples say.
    fn seems_same(&self, old: &Expr, new: &Expr, samples: &[Bindings]) -> bool {
        let after = |buffer: &Buffer, index: &[i128]| Some(format!("{buffer:?}{}", tuple(index)));
        samples.iter().all(|bindings| {
            let before = |buffer: &Buffer, index: &[i128]| match self.relation.claim_of(buffer) {
                Some(claim) => after(&claim.after, &claim.map.eval(index, bindings).ok()?),
                None => after(buffer, index),
            };
            let (x, y) = (sample::lanes(old, bindings, &before), sample::lanes(new, bindings, &after));
            x.zip(y).is_none_or(|(x, y)| x.iter().zip(&y).all(|(x, y)| x.same(*y)))
        })
    }
}

/// All loads in expressions, and whether a condition decides if they are made.
fn loads(exprs: &[Expr]) -> Vec<(Expr, bool)> {
    fn collect(expr: &Expr, is_chosen: bool, found: &mut Vec<(Expr, bool)>) {
        found.extend(matches!(expr, Expr::Load { .. }).then(|| (expr.clone(), is_chosen)));
        for (number, child) in expr.children().into_iter().enumerate() {
            let is_branch = matches!(expr, Expr::IfThenElse(..)) && number > 0;
            collect(child, is_chosen || is_branch, found);
        }
    }
    let mut found = Vec::new();
    for expr in exprs {
        collect(expr, false, &mut found);
    }
    found
}

/// Puts a load before in the place of each load after.
struct InOldMemory<'w, 'l> {
    walk: &'w mut Lockstep<'l>,
    before: &'w [(Expr, bool)],
    /// Whether a condition decides if this is evaluated.
    is_chosen: bool,
}

impl InOldMemory<'_, '_> {
    fn load(&mut self, buffer: &Buffer, indices: &[Expr], load: &Expr) -> Expr {
        // What is read in one case only may hold nothing in the others.
        let read = self.before.iter().filter(|(_, is_chosen)| self.is_chosen || !is_chosen).map(|(old, _)| old);
        let relation = self.walk.relation;
        if !relation.by_after.contains_key(buffer) && read.clone().any(|old| old == load) {
            return load.clone();
        }
        let candidates: Vec<(&Buffer, &[Expr], &Expr)> = read
            .filter_map(|old| match old {
                Expr::Load { buffer: x, indices: i } => {
                    relation.image(x, buffer, i).filter(|_| old.dtype() == load.dtype()).map(|_| (x, i.as_slice(), old))
                }
                _ => None,
            })
            .collect();
        let samples = self.walk.path.samples(TRIED);
        let found = candidates.into_iter().find(|(.., old)| self.walk.seems_same(old, load, &samples));
        let Some((x, i, old)) = found else {
            self.walk.stuck(format!("`{load}` is read after, and nothing like it before"));
            return load.clone();
        };
        let outer = std::mem::replace(&mut self.walk.is_guess, true);
        self.walk.access(x, i, buffer, indices);
        self.walk.is_guess = outer;
        old.clone()
    }
}

impl Rewrite for InOldMemory<'_, '_> {
    type Error = Infallible;

    fn expr(&mut self, expr: &Expr) -> Result<Expr, Infallible> {
        match expr {
            Expr::Load { buffer, indices } => Ok(self.load(buffer, indices, expr)),
            Expr::IfThenElse(cond, then, otherwise) => {
                let cond = self.expr(cond)?;
                let outer = std::mem::replace(&mut self.is_chosen, true);
                let branches = (self.expr(then)?, self.expr(otherwise)?);
                self.is_chosen = outer;
                Ok(Expr::IfThenElse(cond.into(), branches.0.into(), branches.1.into()))
            }
            _ => self.expr_children(expr),
        }
    }
}
