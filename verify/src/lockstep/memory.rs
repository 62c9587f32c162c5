//! What the program after reads, as what the program before reads.
//!
//! Memory corresponds by the claims: an element after holds what its element before does. So a load after has the value of a load
//! before if its index is that one's through the map, which is a goal like any other. Which of several loads it is, samples
//! say; a wrong choice is a goal that does not hold.

use std::convert::Infallible;

use tilewright_ir::visit::Rewrite;
use tilewright_ir::{Bindings, Buffer, Expr, UnaryOp};

use super::{GoalKind, Lockstep};
use crate::concrete::tuple;
use crate::obligation::Obligation;
use crate::path::Step;
use crate::sample;

/// Samples on which two loads are compared.
const TRIED: usize = 16;

impl Lockstep<'_> {
    /// Expressions of the program after, with the loads of expressions before. Stuck where nothing before is read like that:
    /// what is read may hold nothing.
    pub(super) fn in_old_memory(&mut self, old: &[Expr], new: &[Expr]) -> Vec<Expr> {
        let before = loads(old);
        let mut rewrite = InOldMemory { walk: self, before: &before, choices: Vec::new() };
        new.iter().map(|expr| rewrite.expr(expr).unwrap_or_else(|never| match never {})).collect()
    }

    /// Two integers are the same, by a guess of which loads correspond.
    pub(super) fn same(&mut self, old: &Expr, new: &Expr) {
        let outer = std::mem::replace(&mut self.is_guess, true);
        let new = self.in_old_memory(std::slice::from_ref(old), std::slice::from_ref(new));
        let depth = self.path.steps.len();
        for (old, new) in self.per_lane(old.dtype().lanes, std::iter::once(old).zip(&new)) {
            self.goal(Obligation::Simulation, GoalKind::Same(old, new));
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

/// A condition of a conditional that is evaluated lazily, and how it comes out.
type Choice = (Expr, bool);

/// A load, and what has to come out how for it to be made.
struct Read {
    load: Expr,
    choices: Vec<Choice>,
}

/// All loads in expressions.
fn loads(exprs: &[Expr]) -> Vec<Read> {
    fn collect(expr: &Expr, choices: &[Choice], found: &mut Vec<Read>) {
        if matches!(expr, Expr::Load { .. }) {
            found.push(Read { load: expr.clone(), choices: choices.to_vec() });
        }
        if let Expr::IfThenElse(cond, then, otherwise) = expr {
            let with = |holds| [choices, &[(Expr::clone(cond), holds)]].concat();
            collect(cond, choices, found);
            collect(then, &with(true), found);
            return collect(otherwise, &with(false), found);
        }
        expr.children().for_each(|child| collect(child, choices, found));
    }
    let mut found = Vec::new();
    for expr in exprs {
        collect(expr, &[], &mut found);
    }
    found
}

/// Puts a load before in the place of each load after.
struct InOldMemory<'w, 'l> {
    walk: &'w mut Lockstep<'l>,
    before: &'w [Read],
    /// What has come out how where the walk is, in old memory.
    choices: Vec<Choice>,
}

impl InOldMemory<'_, '_> {
    fn load(&mut self, buffer: &Buffer, indices: &[Expr], load: &Expr) -> Expr {
        let (relation, before) = (self.walk.relation, self.before);
        let is_moved = relation.by_after.contains_key(buffer);
        if !is_moved && before.iter().any(|read| read.load == *load && self.unmet(read).next().is_none()) {
            return load.clone();
        }
        let samples = self.walk.path.samples(TRIED);
        let corresponds = |read: &&Read| match &read.load {
            Expr::Load { buffer: x, indices: i } => {
                relation.image(x, buffer, i).is_some() && read.load.dtype() == load.dtype()
            }
            _ => false,
        };
        let seems = |read: &&Read| self.seems_made(read, &samples) && self.walk.seems_same(&read.load, load, &samples);
        let found = before.iter().filter(corresponds).find(seems);
        let Some((Expr::Load { buffer: x, indices: i }, read)) = found.map(|read| (&read.load, read)) else {
            self.walk.stuck(format!("`{load}` is read after, and nothing like it before"));
            return load.clone();
        };
        let outer = std::mem::replace(&mut self.walk.is_guess, true);
        self.made(read);
        self.walk.access(x, i, buffer, indices);
        self.walk.is_guess = outer;
        read.load.clone()
    }

    /// What a load before waits for, unless it is known to have come out like that.
    fn unmet<'r>(&self, read: &'r Read) -> impl Iterator<Item = &'r Choice> {
        read.choices.iter().filter(|choice| !self.choices.contains(choice))
    }

    /// Whether a load before is made where the walk is, as far as samples say: what is read in one case only may hold nothing
    /// in the others. What memory decides is not said by samples.
    fn seems_made(&self, read: &Read, samples: &[Bindings]) -> bool {
        let comes_out = |(cond, holds): &Choice, bindings: &Bindings| {
            cond.eval_index(bindings).is_ok_and(|value| (value != 0) == *holds)
        };
        let is_here = |bindings: &&Bindings| {
            self.choices.iter().all(|choice| choice.0.reads_memory() || comes_out(choice, bindings))
        };
        let is_made = |choice: &Choice| samples.iter().filter(is_here).all(|bindings| comes_out(choice, bindings));
        self.unmet(read).all(|choice| !choice.0.reads_memory() && is_made(choice))
    }

    /// That a load before is made where the walk is.
    fn made(&mut self, read: &Read) {
        let unmet: Vec<Choice> = self.unmet(read).cloned().collect();
        let depth = self.walk.path.steps.len();
        if !unmet.is_empty() {
            for (cond, holds) in self.choices.iter().filter(|(cond, _)| cond.dtype().is_scalar()) {
                self.walk.premise(cond, *holds);
                self.walk.path.steps.push(Step::Guard(cond.clone(), *holds));
            }
        }
        for (cond, holds) in unmet {
            self.walk.fits([&cond]);
            let goal = if holds { cond } else { Expr::unary(UnaryOp::Not, cond) };
            self.walk.goal(Obligation::Simulation, GoalKind::Holds(goal));
        }
        self.walk.path.steps.truncate(depth);
    }
}

impl Rewrite for InOldMemory<'_, '_> {
    type Error = Infallible;

    fn expr(&mut self, expr: &Expr) -> Result<Expr, Infallible> {
        match expr {
            Expr::Load { buffer, indices } => Ok(self.load(buffer, indices, expr)),
            Expr::IfThenElse(cond, then, otherwise) => {
                let cond = self.expr(cond)?;
                self.choices.push((cond.clone(), true));
                let then = self.expr(then)?;
                self.choices.pop();
                self.choices.push((cond.clone(), false));
                let otherwise = self.expr(otherwise)?;
                self.choices.pop();
                Ok(Expr::IfThenElse(cond.into(), then.into(), otherwise.into()))
            }
            _ => self.expr_children(expr),
        }
    }
}
