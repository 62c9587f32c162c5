//! What the program after reads, as what the program before reads.
//!
//! Memory corresponds by the claims: an element after holds what its element before does. So a load after has the value of a load
//! before if its index is that one's through the map, which is a goal like any other. Which of several loads it is, the
//! correspondence says; a wrong choice is a goal that does not hold.

use std::convert::Infallible;

use tilewright_ir::Expr;
use tilewright_ir::visit::Rewrite;

use super::Lockstep;
use crate::correspondence::LoadPair;
use crate::path::Step;

/// A condition of a conditional that is evaluated lazily, and how it comes out.
pub(crate) type Choice = (Expr, bool);

/// A load, and what has to come out how for it to be made.
pub(crate) struct Read {
    pub(crate) load: Expr,
    choices: Vec<Choice>,
}

impl Read {
    /// What the load waits for, unless it is known to have come out like that.
    pub(crate) fn unmet<'r>(&'r self, known: &'r [Choice]) -> impl Iterator<Item = &'r Choice> {
        self.choices.iter().filter(|choice| !known.contains(choice))
    }
}

impl Lockstep<'_> {
    /// Expressions of the program after, with the loads of expressions before. Stuck where nothing before is read like that:
    /// what is read may hold nothing.
    pub(super) fn in_old_memory(&mut self, old: &[Expr], new: &[Expr], along: &[LoadPair]) -> Vec<Expr> {
        let (before, mut along) = (loads(old), along.iter());
        with_old_loads(new, |load, known| self.old_load(load, &before, known, along.next()))
    }

    /// The load before that has the value of a load after, where these choices are known.
    fn old_load(&mut self, load: &Expr, before: &[Read], known: &[Choice], pair: Option<&LoadPair>) -> Expr {
        let found = match pair {
            Some(LoadPair::Same) if self.relation.keeps(load) => {
                let is_made = |read: &&Read| read.load == *load && read.unmet(known).next().is_none();
                before.iter().find(is_made).map(|read| (read, None))
            }
            Some(LoadPair::Moved(position, along)) => before.get(*position).map(|read| (read, Some(along))),
            Some(LoadPair::Same | LoadPair::Unknown) | None => None,
        };
        let Some((read, along)) = found else {
            self.stuck(format!("`{load}` is read after, and nothing like it before"));
            return load.clone();
        };
        if let (Expr::Load { buffer: x, indices: i }, Expr::Load { buffer: y, indices: j }, Some(along)) =
            (&read.load, load, along)
        {
            self.as_guess(|this| {
                this.made(read, known);
                this.access((x, i), (y, j), along);
            });
        }
        read.load.clone()
    }

    /// That a load before is made where the walk is.
    fn made(&mut self, read: &Read, known: &[Choice]) {
        self.inside(|this| {
            if read.unmet(known).next().is_some() {
                for (cond, holds) in known.iter().filter(|(cond, _)| cond.dtype().is_scalar()) {
                    this.premise(cond, *holds);
                    this.path.steps.push(Step::Guard(cond.clone(), *holds));
                }
            }
            for (cond, holds) in read.unmet(known) {
                this.comes_out(cond, *holds, true);
            }
        });
    }
}

/// All loads in expressions, outer ones first.
pub(crate) fn loads(exprs: &[Expr]) -> Vec<Read> {
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

/// Expressions with another one in the place of each outermost load. `put` gets the load, and the choices that are known where
/// it is made, in terms of what was put.
pub(crate) fn with_old_loads(exprs: &[Expr], put: impl FnMut(&Expr, &[Choice]) -> Expr) -> Vec<Expr> {
    let mut rewrite = WithOldLoads { put, known: Vec::new() };
    exprs.iter().map(|expr| rewrite.expr(expr).unwrap_or_else(|never| match never {})).collect()
}

struct WithOldLoads<F> {
    put: F,
    known: Vec<Choice>,
}

impl<F: FnMut(&Expr, &[Choice]) -> Expr> Rewrite for WithOldLoads<F> {
    type Error = Infallible;

    fn expr(&mut self, expr: &Expr) -> Result<Expr, Infallible> {
        match expr {
            Expr::Load { .. } => Ok((self.put)(expr, &self.known)),
            Expr::IfThenElse(cond, then, otherwise) => {
                let cond = self.expr(cond)?;
                let mut branch = |value, holds| {
                    self.known.push((cond.clone(), holds));
                    let rewritten = self.expr(value);
                    self.known.pop();
                    rewritten
                };
                let (then, otherwise) = (branch(then, true)?, branch(otherwise, false)?);
                Ok(Expr::IfThenElse(cond.into(), then.into(), otherwise.into()))
            }
            _ => self.expr_children(expr),
        }
    }
}
