//! The walk through loops that became lanes.

use tilewright_ir::{BinaryOp, Buffer, Expr, For, Stmt, StmtKind};

use super::{Goal, GoalKind, Lockstep, plain};
use crate::access::describe;
use crate::lanes::{self, Apart, Gathered};
use crate::obligation::Obligation;
use crate::path::Step;

impl Lockstep<'_> {
    /// A loop whose iterations are the lanes of one statement after: each lane does what its iteration does.
    pub(super) fn lanes(&mut self, outer: &For, new: &Stmt) {
        let lanes = lanes::vector_store(new).map_or(1, i64::from);
        let pairs = vec![(outer.min.clone(), outer.min.clone()), (outer.extent.clone(), Expr::int(lanes))];
        self.goal(Obligation::Iteration, GoalKind::Equal(pairs));
        if outer.extent.as_const_int() != Some(lanes.into()) {
            return self
                .stuck(format!("the loop over `{}` does not have the {lanes} iterations of the lanes", outer.var));
        }
        let new = self.renames.apply_stmt(new);
        let Some(one) = lanes::one_lane(&new, &lanes::lane_number(outer)) else {
            return self.stuck("the lanes of the statement cannot be told apart");
        };
        match lanes::apart(outer, &one, &self.path) {
            Ok(Apart { path, goals }) => {
                let subject = format!("iterations of `for {}` do not see each other", outer.var);
                for cond in goals {
                    let (path, subject, kind) = (path.clone(), subject.clone(), GoalKind::Holds(cond));
                    self.goals.push(Goal {
                        obligation: Obligation::Simulation,
                        subject,
                        side: self.side,
                        span: self.span,
                        path,
                        kind,
                    });
                }
            }
            Err(reason) => return self.stuck(reason),
        }
        // All of it is in terms of the program before now.
        let renames = std::mem::take(&mut self.renames);
        let around = self.lane.replace(outer.var.clone());
        self.path.enter(outer);
        self.stmts(&[&outer.body], &[&one]);
        self.lane = around;
        self.renames = renames;
    }

    /// Conditions around a store with those in front that are the same in all lanes, as vectors have them: `if own and shared`
    /// is `if shared: if own`. None where they are in that order.
    pub(super) fn split_by_lane(&self, stmt: &Stmt) -> Option<Stmt> {
        let lane = self.lane.as_ref()?;
        let (mut shared, mut own, mut moved) = (Vec::new(), Vec::new(), false);
        let mut inner = stmt.clone();
        while let StmtKind::If { cond, then_body, else_body: None } = &inner.kind {
            let (mut differing, mut common) = (Vec::new(), Vec::new());
            for part in conjuncts(cond) {
                let behind = !differing.is_empty() || !own.is_empty();
                // What is read behind a condition may hold nothing where that one does not hold.
                if part.vars().contains(lane) || (behind && part.reads_memory()) {
                    differing.push(part);
                } else {
                    moved |= behind;
                    common.push(part);
                }
            }
            moved |= !differing.is_empty() && !common.is_empty();
            shared.extend(common.into_iter().reduce(Expr::and));
            own.extend(differing.into_iter().reduce(Expr::and));
            let [only] = plain(&[then_body]).try_into().ok()?;
            inner = only;
        }
        let conditions = shared.into_iter().chain(own).rev();
        moved.then(|| conditions.fold(inner, |body, cond| Stmt::guarded(cond, body)))
    }

    /// Whether a condition differs from lane to lane and guards the store of a texture that the function allocates: it may
    /// become a part of the value. One that always holds was dropped, if the value had a condition before.
    pub(super) fn is_gathered(&self, cond: &Expr, body: &Stmt, after: &Expr) -> bool {
        let Some(Stmt { kind: StmtKind::Store { buffer, value, .. }, .. }) = lanes::single(body) else { return false };
        let differs = self.lane.as_ref().is_some_and(|lane| cond.vars().contains(lane) || cond.reads_memory());
        let all_are = || choices(after) > choices(&value) + lanes::conditions_of(body);
        let chosen = !matches!(value, Expr::IfThenElse(..)) || all_are() || {
            let mut never = self.path.clone();
            never.steps.push(Step::Guard(cond.clone(), false));
            never.is_reached()
        };
        differs && chosen && self.before.is_some_and(|func| lanes::is_scratch_texture(func, &buffer))
    }

    /// A condition that became a part of the value: the same condition, and the lanes where it does not hold are nobody's.
    /// Those are written too, so they have to lie where the map says, whether the condition holds or not.
    pub(super) fn gather(
        &mut self,
        (cond, body): (&Expr, &Stmt),
        (written, at): (&Buffer, &[Expr]),
        (chosen, filling): (&Expr, &Expr),
    ) {
        let chosen = self.renamed(chosen);
        self.values(cond, &chosen);
        self.premise(cond, false);
        if !matches!(filling, Expr::Int { .. } | Expr::Float { .. }) {
            return self.stuck(format!("`{filling}` is no constant, and stands where there is no value"));
        }
        let stored = lanes::single(body);
        let (Some(func), Some(lane), Some(stored)) = (self.before, self.lane.clone(), stored) else {
            return self.stuck("no store is gathered here");
        };
        let StmtKind::Store { buffer, indices, .. } = &stored.kind else { return };
        let at: Vec<_> = at.iter().map(|index| self.renamed(index)).collect();
        self.access(buffer, indices, written, &at);
        let gathered = Gathered { buffer: buffer.clone(), indices: indices.clone(), cond: cond.clone(), lane };
        let path = self.path.clone();
        let statement = describe(&stored);
        let mut add = |obligation, subject, kind| {
            self.goals.push(Goal { obligation, subject, side: self.side, span: self.span, path: path.clone(), kind });
        };
        match lanes::unread(func, &gathered, &path) {
            Ok(loads) => {
                for unread in loads {
                    let subject = format!("lanes without a value of `{statement}` in {}", unread.load.text);
                    add(Obligation::Defined, subject, GoalKind::Unread(Box::new(unread)));
                }
            }
            Err(reason) => {
                add(Obligation::Defined, format!("lanes without a value of `{statement}`"), GoalKind::Stuck(reason));
            }
        }
        let subject = format!("the texel of `{statement}` is written once");
        let kind = match lanes::other_store(func, &gathered) {
            Some(reason) => GoalKind::Stuck(reason),
            None => GoalKind::Alone(Box::new(gathered)),
        };
        add(Obligation::Race, subject, kind);
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

/// The parts of a conjunction.
fn conjuncts(cond: &Expr) -> Vec<Expr> {
    match cond {
        Expr::Binary(BinaryOp::And, a, b) => [conjuncts(a), conjuncts(b)].concat(),
        _ => vec![cond.clone()],
    }
}
