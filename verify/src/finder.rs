//! Finds how the parts of two programs correspond, by their structure and by samples. Nothing here is trusted.
//!
//! The two programs are walked side by side. Where there is a choice (which load of several it is, which statement was
//! dropped, whether a value is compared as a whole or part by part) sampled executions and the looks of the parts decide. What
//! is found is checked by [`crate::lockstep`], which does not know how it was found. A wrong guess makes the result unknown.

mod loads;
mod values;

use tilewright_ir::visit::Substitution;
use tilewright_ir::{Buffer, Expr, For, PrimFunc, Stmt, StmtKind, Var};

use crate::claims::Relation;
use crate::correspondence::{Correspondence, LoadPair, Pair, Row, Value};
use crate::forms::{plain, unfolded};
use crate::judge::Side;
use crate::lanes;
use crate::path::{Path, Step};

/// The walk.
struct Finder<'a> {
    relation: &'a Relation<'a>,
    /// The program before; none if only values are compared.
    before: Option<&'a PrimFunc>,
    path: Path,
    /// Variables of the program after, in terms of those before.
    renames: Substitution,
    /// The loop whose iterations are lanes after, while its body is walked.
    lane: Option<Var>,
    /// Places for which nothing was found.
    n_unknown: usize,
    /// Loads that seem to read other elements than those that they are compared with.
    n_unlike: usize,
}

/// How two functions correspond, whose buffers became one another as in `relation`.
pub(crate) fn functions(before: &PrimFunc, after: &PrimFunc, relation: &Relation<'_>) -> Correspondence {
    let mut finder = Finder::at(Path::of(before), relation);
    finder.before = Some(before);
    finder.renames = Substitution::new(&after.params, before.params.iter().map(Expr::from));
    Correspondence { body: finder.stmts(&[&before.body], &[&after.body]) }
}

/// How two values at the end of a path correspond; `after` is in terms of the same variables.
pub(crate) fn values(before: &Expr, after: &Expr, path: Path, relation: &Relation<'_>) -> Value {
    Finder::at(path, relation).values(before, after)
}

impl<'a> Finder<'a> {
    fn at(path: Path, relation: &'a Relation<'a>) -> Self {
        Self { relation, before: None, path, renames: Substitution::default(), lane: None, n_unknown: 0, n_unlike: 0 }
    }

    fn inside<T>(&mut self, walk: impl FnOnce(&mut Self) -> T) -> T {
        let depth = self.path.steps.len();
        let found = walk(self);
        self.path.steps.truncate(depth);
        found
    }

    fn under<T>(&mut self, cond: &Expr, holds: bool, walk: impl FnOnce(&mut Self) -> T) -> T {
        self.inside(|this| {
            this.path.steps.push(Step::Guard(cond.clone(), holds));
            walk(this)
        })
    }

    fn stmts(&mut self, before: &[&Stmt], after: &[&Stmt]) -> Vec<Row> {
        let (before, after) = (plain(before), plain(after));
        // Branches that no sample takes may have been dropped.
        let may_drop = before.len() > after.len();
        self.inside(|this| {
            let dropped: Vec<bool> = before.iter().map(|stmt| may_drop && this.seems_dead(stmt)).collect();
            let mut after = after.iter();
            let mut rows = Vec::new();
            for (place, (old, dropped)) in before.iter().zip(dropped).enumerate() {
                // With what the other statements need taken away, there are enough statements for those in the condition.
                let n_left = after.len().saturating_sub(before.len() - place - 1);
                if let Some((body, count)) = this.open_body(old).filter(|(_, count)| *count <= n_left) {
                    let these: Vec<&Stmt> = after.by_ref().take(count).collect();
                    let body = this.inside(|this| this.stmts(&[body], &these));
                    rows.push(Row::Joined(count, Pair::CondBefore(body)));
                    continue;
                }
                match after.as_slice().first() {
                    Some(new) if !dropped => {
                        after.next();
                        rows.push(Row::Pair(this.inside(|this| this.pair(old, new))));
                    }
                    _ => {
                        rows.push(Row::Dropped);
                        continue;
                    }
                }
                if let StmtKind::Assert { cond, .. } = &old.kind {
                    this.path.steps.push(Step::Guard(cond.clone(), true));
                }
            }
            rows
        })
    }

    /// The body of a condition that holds in all samples, if it has several statements, and their number.
    fn open_body<'s>(&self, stmt: &'s Stmt) -> Option<(&'s Stmt, usize)> {
        let StmtKind::If { cond, then_body, else_body: None } = &stmt.kind else { return None };
        let count = plain(&[then_body]).len();
        let mut never = self.path.clone();
        never.steps.push(Step::Guard(cond.clone(), false));
        (count > 1 && !never.is_reached()).then_some((&**then_body, count))
    }

    /// A branch that no sample takes.
    fn seems_dead(&self, stmt: &Stmt) -> bool {
        let StmtKind::If { cond, else_body: None, .. } = &stmt.kind else { return false };
        let mut inner = self.path.clone();
        inner.steps.push(Step::Guard(cond.clone(), true));
        !inner.is_reached()
    }

    fn pair(&mut self, old: &Stmt, new: &Stmt) -> Pair {
        if let Some((side, [old, new])) = self.other_form(old, new) {
            return Pair::Unfolded(side, Box::new(self.pair(&old, &new)));
        }
        match (&old.kind, &new.kind) {
            (StmtKind::For(x), StmtKind::For(y)) => self.loops(x, y),
            (
                StmtKind::Store { buffer: x, indices: i, value: old },
                StmtKind::Store { buffer: y, indices: j, value: new },
            ) => {
                let index = self.access((x, i), (y, &self.all_renamed(j)));
                Pair::Store { index, value: self.values(old, &self.renames.apply(new)) }
            }
            (StmtKind::If { .. }, _)
                if let Some(ordered) = self.lane.as_ref().and_then(|lane| lanes::shared_first(old, lane)) =>
            {
                Pair::SharedFirst(Box::new(self.pair(&ordered, new)))
            }
            (
                StmtKind::If { cond: x, then_body: a, else_body: b },
                StmtKind::If { cond: y, then_body: c, else_body: d },
            ) if b.is_some() == d.is_some() => {
                let cond = self.values(x, &self.renames.apply(y));
                let then = self.under(x, true, |this| this.stmts(&[a], &[c]));
                let otherwise = match (b, d) {
                    (Some(b), Some(d)) => self.under(x, false, |this| this.stmts(&[b], &[d])),
                    _ => Vec::new(),
                };
                Pair::If { cond, then, otherwise }
            }
            (StmtKind::For(x), _) if lanes::vector_store(new).is_some() => self.lanes(x, new),
            (StmtKind::If { cond, then_body, else_body: None }, StmtKind::Store { value, .. })
                if self.is_gathered(cond, then_body, value) =>
            {
                self.gathered((cond, then_body), new)
            }
            (StmtKind::If { then_body, else_body: None, .. }, _) => Pair::CondBefore(self.stmts(&[then_body], &[new])),
            (_, StmtKind::If { then_body, else_body: None, .. }) => Pair::CondAfter(self.stmts(&[old], &[then_body])),
            (StmtKind::Allocate { body: old, .. }, StmtKind::Allocate { body: new, .. }) => {
                Pair::Allocate(self.stmts(&[old], &[new]))
            }
            (StmtKind::Let { var: x, value: old, body: a }, StmtKind::Let { var: y, value: new, body: b }) => {
                let value = self.values(old, &self.renames.apply(new));
                self.renames.insert(y, Expr::from(x));
                self.path.steps.push(Step::Let(x.clone(), old.clone()));
                Pair::Let { value, body: self.stmts(&[a], &[b]) }
            }
            (StmtKind::Barrier, StmtKind::Barrier) => Pair::Barrier,
            (StmtKind::Assert { cond: x, .. }, StmtKind::Assert { cond: y, .. })
            | (StmtKind::Evaluate(x), StmtKind::Evaluate(y)) => Pair::Effect(self.values(x, &self.renames.apply(y))),
            _ => Pair::Unknown,
        }
    }

    /// The two statements with one of them in its other form, if memory decides what they do and only one of them has that form.
    fn other_form(&self, old: &Stmt, new: &Stmt) -> Option<(Side, [Stmt; 2])> {
        if self.lane.is_some() {
            return None;
        }
        let unfold_old = || Some((Side::Before, [unfolded(old)?.stmt, new.clone()]));
        let unfold_new = || Some((Side::After, [old.clone(), unfolded(new)?.stmt]));
        match (&old.kind, &new.kind) {
            (StmtKind::If { cond: x, else_body: a, .. }, StmtKind::If { cond: y, else_body: b, .. })
                if a.is_some() == b.is_some() && (x.reads_memory() || y.reads_memory()) =>
            {
                match (unfold_old(), unfold_new()) {
                    (Some(_), Some(_)) => None,
                    (old, new) => old.or(new),
                }
            }
            (StmtKind::Store { .. }, StmtKind::If { else_body: Some(_), .. }) => unfold_old(),
            (StmtKind::If { else_body: Some(_), .. }, StmtKind::Store { .. }) => unfold_new(),
            _ => None,
        }
    }

    fn loops(&mut self, x: &For, y: &For) -> Pair {
        let [min, extent] = [(&x.min, &y.min), (&x.extent, &y.extent)]
            .map(|(old, new)| self.loads(std::slice::from_ref(old), &[self.renames.apply(new)]));
        self.renames.insert(&y.var, Expr::from(&x.var));
        self.path.enter(x);
        Pair::Loop { min, extent, body: self.stmts(&[&x.body], &[&y.body]) }
    }

    /// A loop whose iterations are the lanes of one statement after.
    fn lanes(&mut self, outer: &For, new: &Stmt) -> Pair {
        let new = self.renames.apply_stmt(new);
        let Some(one) = lanes::one_lane(&new, &lanes::lane_number(outer)) else { return Pair::Unknown };
        let renames = std::mem::take(&mut self.renames);
        let around = self.lane.replace(outer.var.clone());
        self.path.enter(outer);
        let body = self.stmts(&[&outer.body], &[&one]);
        self.lane = around;
        self.renames = renames;
        Pair::Lanes(body)
    }

    /// Whether a condition differs from lane to lane and guards the store of a texture that the function allocates: it may
    /// become a part of the value. One that always holds was dropped, if the value had a condition before.
    fn is_gathered(&self, cond: &Expr, body: &Stmt, after: &Expr) -> bool {
        let Some(Stmt { kind: StmtKind::Store { buffer, value, .. }, .. }) = lanes::single(body) else { return false };
        let differs = self.lane.as_ref().is_some_and(|lane| cond.vars().contains(lane) || cond.reads_memory());
        let all_are = || choices(after) > choices(&value) + lanes::conditions_of(body);
        let chosen = !matches!(value, Expr::IfThenElse(..)) || all_are() || {
            let mut never = self.path.clone();
            never.steps.push(Step::Guard(cond.clone(), false));
            never.is_reached()
        };
        let may_be = differs && matches!(after, Expr::IfThenElse(..)) && chosen;
        may_be && self.before.is_some_and(|func| lanes::is_scratch_texture(func, &buffer))
    }

    /// A condition that became a part of the value.
    fn gathered(&mut self, (cond, body): (&Expr, &Stmt), new: &Stmt) -> Pair {
        let stored = lanes::single(body);
        let (
            Some(StmtKind::Store { buffer, indices, .. }),
            StmtKind::Store { buffer: written, indices: at, value: Expr::IfThenElse(asked, value, _) },
        ) = (stored.as_ref().map(|stored| &stored.kind), &new.kind)
        else {
            return Pair::Unknown;
        };
        let chosen = Stmt::store(written, at.clone(), Expr::clone(value));
        Pair::Gathered {
            cond: self.values(cond, &self.renames.apply(asked)),
            index: self.access((buffer, indices), (written, &self.all_renamed(at))),
            body: self.under(cond, true, |this| this.stmts(&[body], &[&chosen])),
        }
    }

    /// The loads in the indices of two accesses.
    fn access(&mut self, (x, old): (&Buffer, &[Expr]), (y, new): (&Buffer, &[Expr])) -> Vec<LoadPair> {
        let lanes = |indices: &[Expr]| indices.iter().map(|index| index.dtype().lanes).max().unwrap_or(1);
        let image = self.relation.image(x, y, old);
        if x.dtype != y.dtype || image.is_none_or(|image| image.len() != new.len()) || lanes(old) != lanes(new) {
            self.n_unknown += 1;
            return Vec::new();
        }
        self.loads(old, new)
    }

    fn all_renamed(&self, exprs: &[Expr]) -> Vec<Expr> {
        exprs.iter().map(|expr| self.renames.apply(expr)).collect()
    }
}

/// How many conditionals there are on the way to the value that all their conditions choose.
fn choices(value: &Expr) -> usize {
    let (mut at, mut count) = (value, 0);
    while let Expr::IfThenElse(_, chosen, _) = at {
        (at, count) = (chosen, count + 1);
    }
    count
}
