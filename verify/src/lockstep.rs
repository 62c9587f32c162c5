//! Checks a correspondence: walks two programs along it and collects what has to hold.
//!
//! The program after a pass must do what the program before it does, statement by statement: the same loops, the same
//! conditions, and each access the old one through the claimed maps. Which parts correspond is given
//! ([`crate::correspondence`]) and not believed: whatever it says, the goals suffice for the two programs to do the same, and
//! the walk is stuck where the correspondence does not fit. The walk decides nothing and tries nothing.
//!
//! Declarations of aliases and hints are stepped over, bindings are inlined, and a condition that only one side has must
//! always hold. A loop that became lanes of one statement is followed lane by lane ([`crate::lanes`]).

mod follow;
mod goal;
mod memory;
mod params;
mod values;

use tilewright_ir::{Expr, For, ForKind, PrimFunc, Span, Stmt, StmtKind, UnaryOp, Var, sabotage};
use tilewright_ir::{phases::is_of_group, visit::Substitution};

pub(crate) use goal::{Goal, GoalKind};
pub(crate) use memory::{Choice, Read, loads, with_old_loads};

use crate::claims::Relation;
use crate::correspondence::{Correspondence, LoadPair, Pair, Row, Value};
use crate::forms::{has_value, joined, plain, unfolded};
use crate::judge::Side;
use crate::lanes;
use crate::map::has_operation;
use crate::obligation::Obligation;
use crate::path::{Path, Step, premises, sites_in};
use crate::words::describe;

/// The walk.
pub(crate) struct Lockstep<'a> {
    relation: &'a Relation<'a>,
    /// The program before; none if only values are compared.
    before: Option<&'a PrimFunc>,
    goals: Vec<Goal>,
    path: Path,
    /// Variables of the program after, in terms of those before.
    renames: Substitution,
    subject: String,
    /// The statement that is compared, in the program of `side`, and the one that it is compared with in the other program.
    spans: [Option<Span>; 2],
    side: Side,
    /// The loop whose iterations are lanes after, while its body is walked.
    lane: Option<Var>,
    /// Whether equal parts suffice and are not necessary: the whole may be equal if parts of it are not.
    is_guess: bool,
}

impl<'a> Lockstep<'a> {
    /// Collects the goals for two functions.
    pub(crate) fn run(
        before: &'a PrimFunc,
        after: &PrimFunc,
        relation: &'a Relation<'a>,
        along: &Correspondence,
    ) -> Vec<Goal> {
        let mut walk = Self::at(Path::of(before), relation, "parameters".into());
        walk.before = Some(before);
        walk.renames = Substitution::new(&after.params, before.params.iter().map(Expr::from));
        walk.params(before, after);
        walk.stmts(&[&before.body], &[&after.body], &along.body);
        walk.goals
    }

    /// Collects the goals for two values at the end of one way; `after` is in terms of the same variables.
    pub(crate) fn compare(values: [&Expr; 2], path: Path, relation: &'a Relation<'a>, along: &Value) -> Vec<Goal> {
        let mut walk = Self::at(path, relation, values[1].to_string());
        walk.values(values[0], values[1], along);
        walk.goals
    }

    fn at(path: Path, relation: &'a Relation<'a>, subject: String) -> Self {
        let (goals, renames, spans, side) = (Vec::new(), Substitution::default(), [None; 2], Side::Before);
        Self { relation, before: None, goals, path, renames, subject, spans, side, lane: None, is_guess: false }
    }

    fn goal(&mut self, obligation: Obligation, kind: GoalKind) {
        self.goal_of(obligation, self.subject.clone(), self.path.clone(), kind);
    }

    fn goal_of(&mut self, obligation: Obligation, subject: String, path: Path, kind: GoalKind) {
        let (side, spans, is_guess) = (self.side, self.spans, self.is_guess);
        self.goals.push(Goal { obligation, subject, side, spans, path, is_guess, kind });
    }

    fn stuck(&mut self, why: impl Into<String>) {
        self.goal(Obligation::Simulation, GoalKind::Stuck(why.into()));
    }

    /// Walks on, and comes back to where the path is now.
    fn inside(&mut self, walk: impl FnOnce(&mut Self)) {
        let depth = self.path.steps.len();
        walk(self);
        self.path.steps.truncate(depth);
    }

    /// Walks on where a condition comes out like this.
    fn under(&mut self, cond: &Expr, holds: bool, walk: impl FnOnce(&mut Self)) {
        self.premise(cond, holds);
        self.inside(|this| {
            this.path.steps.push(Step::Guard(cond.clone(), holds));
            walk(this);
        });
    }

    fn stmts(&mut self, before: &[&Stmt], after: &[&Stmt], rows: &[Row]) {
        let after = plain(after);
        self.inside(|this| {
            let (mut after, mut rows) = (after.iter(), rows.iter());
            for old in &plain(before) {
                match rows.next() {
                    Some(Row::Pair(pair)) if let Some(new) = after.next() => this.stmt(old, new, pair),
                    Some(Row::Joined(count, pair)) => this.stmt(old, &joined(after.by_ref().take(*count)), pair),
                    // Other threads wait for what seems to be never reached.
                    Some(Row::Pair(_) | Row::Dropped) | None if is_of_group(old) => this.stuck("a barrier was dropped"),
                    Some(Row::Pair(_) | Row::Dropped) | None => {
                        this.missing(old);
                        continue;
                    }
                }
                if let StmtKind::Assert { cond, .. } = &old.kind {
                    this.premise(cond, true);
                    this.path.steps.push(Step::Guard(cond.clone(), true));
                }
            }
            if let Some(extra) = after.next() {
                this.stuck(format!("the program after has one more statement: `{}`", describe(extra)));
            }
        });
    }

    /// A statement of the program before that the program after does not have: nothing in it is ever reached.
    fn missing(&mut self, old: &Stmt) {
        for site in sites_in(old, &self.path) {
            if matches!(site.stmt.kind, StmtKind::Store { .. } | StmtKind::Assert { .. } | StmtKind::Evaluate(_)) {
                (self.side, self.spans) = (Side::Before, [site.stmt.span, None]);
                self.goal_of(Obligation::Simulation, describe(site.stmt), site.path, GoalKind::Missing);
            }
        }
    }

    fn stmt(&mut self, old: &Stmt, new: &Stmt, pair: &Pair) {
        self.subject = describe(old);
        (self.side, self.spans) = (Side::Before, [old.span, new.span]);
        self.inside(|this| this.pair(old, new, pair));
    }

    fn pair(&mut self, old: &Stmt, new: &Stmt, pair: &Pair) {
        match (pair, &old.kind, &new.kind) {
            (Pair::Loop { min, extent, body }, StmtKind::For(x), StmtKind::For(y)) => {
                self.loops((x, y), [min, extent]);
                self.renames.insert(&y.var, Expr::from(&x.var));
                self.path.enter(x);
                self.stmts(&[&x.body], &[&y.body], body);
            }
            (Pair::Lanes(body), StmtKind::For(x), _) => self.lanes(x, new, body),
            (
                Pair::Store { index, value },
                StmtKind::Store { buffer: x, indices: i, value: old },
                StmtKind::Store { buffer: y, indices: j, value: new },
            ) => {
                if self.access((x, i), (y, &self.all_renamed(j)), index) {
                    let new = self.renames.apply(new);
                    self.goal(Obligation::Simulation, GoalKind::Stored(old.clone(), new.clone()));
                    self.values(old, &new, value);
                }
            }
            (Pair::SharedFirst(pair), StmtKind::If { .. }, _) => {
                match self.lane.as_ref().and_then(|lane| lanes::shared_first(old, lane)) {
                    Some(ordered) => self.stmt(&ordered, new, pair),
                    None => self.stuck(format!("the conditions of `{}` are in order", describe(old))),
                }
            }
            (
                Pair::If { cond, then, otherwise },
                StmtKind::If { cond: x, then_body: a, else_body: b },
                StmtKind::If { cond: y, then_body: c, else_body: d },
            ) if b.is_some() == d.is_some() => {
                if !sabotage::on("lockstep-ignores-conditions") {
                    self.values(x, &self.renames.apply(y), cond);
                }
                self.under(x, true, |this| this.stmts(&[a], &[c], then));
                if let (Some(b), Some(d)) = (b, d) {
                    self.under(x, false, |this| this.stmts(&[b], &[d], otherwise));
                }
            }
            (Pair::Gathered { cond, index, body }, StmtKind::If { cond: c, then_body, else_body: None }, _) => {
                self.gathered((c, then_body), new, (cond, index, body));
            }
            (Pair::CondBefore(rows), StmtKind::If { cond, then_body, else_body: None }, _) => {
                self.subject = format!("{} (which the program after does not ask)", describe(old));
                self.comes_out(cond, true, !sabotage::on("dropped-condition-unchecked"));
                self.stmts(&[then_body], &[new], rows);
            }
            (Pair::CondAfter(rows), _, StmtKind::If { cond, then_body, else_body: None }) => {
                self.subject = format!("{} (which the program before does not ask)", describe(new));
                (self.side, self.spans) = (Side::After, [new.span, old.span]);
                let cond = self.renames.apply(cond);
                // The program before reads nothing here.
                self.in_old_memory(&[], std::slice::from_ref(&cond), &[]);
                self.comes_out(&cond, true, !sabotage::on("added-condition-unchecked"));
                self.stmts(&[old], &[then_body], rows);
            }
            (Pair::Unfolded(Side::Before, pair), ..) if let Some(other) = unfolded(old) => {
                self.pair(&other.stmt, new, pair);
            }
            (Pair::Unfolded(Side::After, pair), ..) if let Some(other) = unfolded(new) => {
                self.have_values(&other.evaluated_early);
                self.pair(old, &other.stmt, pair);
            }
            (
                Pair::Allocate(rows),
                StmtKind::Allocate { buffer: x, body: a },
                StmtKind::Allocate { buffer: y, body: b },
            ) => {
                if !self.relation.relates(x, y) {
                    self.stuck(format!("nothing is claimed of how `{x}` became `{y}`"));
                }
                self.stmts(&[a], &[b], rows);
            }
            (
                Pair::Let { value, body },
                StmtKind::Let { var: x, value: old, body: a },
                StmtKind::Let { var: y, value: new, body: b },
            ) => {
                self.values(old, &self.renames.apply(new), value);
                self.renames.insert(y, Expr::from(x));
                self.path.steps.push(Step::Let(x.clone(), old.clone()));
                self.stmts(&[a], &[b], body);
            }
            // Both wait at the same place of programs that access the same elements everywhere.
            (Pair::Barrier, StmtKind::Barrier, StmtKind::Barrier) => {}
            (Pair::Effect(value), StmtKind::Assert { cond: x, .. }, StmtKind::Assert { cond: y, .. })
            | (Pair::Effect(value), StmtKind::Evaluate(x), StmtKind::Evaluate(y)) => {
                self.values(x, &self.renames.apply(y), value);
            }
            _ => self.stuck(format!("`{}` became `{}`", describe(old), describe(new))),
        }
    }

    /// The heads of two loops: the same kind, type and iterations.
    fn loops(&mut self, (x, y): (&For, &For), loads: [&[LoadPair]; 2]) {
        if x.kind == ForKind::Vectorized && y.kind == ForKind::Serial {
            // Iterations that run at once without a race may run one after the other.
            self.goal(Obligation::Race, GoalKind::Ordered);
        } else if x.kind != y.kind && !sabotage::on("lockstep-ignores-kinds") {
            self.stuck(format!("the loop over `{}` was {:?} and is {:?}", x.var, x.kind, y.kind));
        }
        if x.var.dtype() != y.var.dtype() {
            self.stuck(format!("the loop variable `{}` changed its type", x.var));
        }
        let mut pairs = Vec::new();
        for ((old, new), loads) in [(&x.min, &y.min), (&x.extent, &y.extent)].into_iter().zip(loads) {
            let new = self.in_old_memory(std::slice::from_ref(old), &[self.renames.apply(new)], loads);
            pairs.extend(new.into_iter().map(|new| (old.clone(), new)));
        }
        pairs.truncate(2 - usize::from(sabotage::on("lockstep-ignores-extents")));
        self.fits(pairs.iter().filter(|(old, new)| old != new).flat_map(|(old, new)| [old, new]));
        self.goal(Obligation::Iteration, GoalKind::Equal(pairs));
    }

    /// A condition has a value, and always comes out like this.
    fn comes_out(&mut self, cond: &Expr, holds: bool, is_checked: bool) {
        let goal = if holds { cond.clone() } else { Expr::unary(UnaryOp::Not, cond.clone()) };
        self.fits([cond]);
        if is_checked {
            self.goal(Obligation::Simulation, GoalKind::Holds(goal));
        }
    }

    /// The expressions are what the integers say.
    fn fits<'e>(&mut self, exprs: impl IntoIterator<Item = &'e Expr>) {
        let exprs: Vec<Expr> = exprs.into_iter().filter(|expr| has_operation(expr)).cloned().collect();
        if !exprs.is_empty() {
            self.goal(Obligation::Overflow, GoalKind::Fits(exprs));
        }
    }

    /// What of a condition is assumed below it is what the integers say.
    fn premise(&mut self, cond: &Expr, holds: bool) {
        let used = premises(cond, holds, &self.path.constant);
        self.fits(used.iter().map(|(part, _)| part));
    }

    /// Expressions that the program after evaluates where the one before does not.
    fn have_values(&mut self, exprs: &[Expr]) {
        let why = |expr: &Expr| GoalKind::Stuck(format!("`{expr}` may have no value where it was not asked before"));
        let lacking = exprs.iter().find(|expr| !has_value(expr, self.relation, self.before));
        self.goal(Obligation::Simulation, lacking.map_or(GoalKind::Early, why));
    }

    fn all_renamed(&self, exprs: &[Expr]) -> Vec<Expr> {
        exprs.iter().map(|expr| self.renames.apply(expr)).collect()
    }
}
