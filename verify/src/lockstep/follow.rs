//! The walk through loops that became lanes.

use tilewright_ir::{Expr, For, Stmt, StmtKind};

use super::{GoalKind, Lockstep};
use crate::correspondence::{LoadPair, Row, Value};
use crate::lanes::{self, Apart, Gathered};
use crate::obligation::Obligation;
use crate::words::describe;

impl Lockstep<'_> {
    /// A loop whose iterations are the lanes of one statement after: each lane does what its iteration does.
    pub(super) fn lanes(&mut self, outer: &For, new: &Stmt, along: &[Row]) {
        let Some(lanes) = lanes::vector_store(new).map(i64::from) else {
            return self.stuck(format!("`{}` is no store of several lanes", describe(new)));
        };
        self.goal(Obligation::Iteration, GoalKind::Equal(vec![(outer.extent.clone(), Expr::int(lanes))]));
        let new = self.renames.apply_stmt(new);
        let Some(one) = lanes::one_lane(&new, &lanes::lane_number(outer)) else {
            return self.stuck("the lanes of the statement cannot be told apart");
        };
        match lanes::apart(outer, &one, &self.path) {
            Ok(Apart { path, goals }) => {
                let subject = format!("iterations of `for {}` do not see each other", outer.var);
                for cond in goals {
                    self.goal_of(Obligation::Simulation, subject.clone(), path.clone(), GoalKind::Holds(cond));
                }
            }
            Err(reason) => return self.stuck(reason),
        }
        // All of it is in terms of the program before now.
        let renames = std::mem::take(&mut self.renames);
        let around = self.lane.replace(outer.var.clone());
        self.path.enter(outer);
        self.stmts(&[&outer.body], &[&one], along);
        self.lane = around;
        self.renames = renames;
    }

    /// A condition that became a part of the value: the same condition, and the lanes where it does not hold are nobody's.
    /// Those are written too, so they have to lie where the map says, whether the condition holds or not.
    pub(super) fn gathered(
        &mut self,
        (cond, body): (&Expr, &Stmt),
        new: &Stmt,
        (chosen, index, along): (&Value, &[LoadPair], &[Row]),
    ) {
        let stored = lanes::single(body);
        let (
            (Some(func), Some(lane), Some(store @ Stmt { kind: StmtKind::Store { buffer, indices, .. }, .. })),
            StmtKind::Store { buffer: written, indices: at, value: Expr::IfThenElse(asked, value, filling) },
        ) = ((self.before, self.lane.clone(), stored.as_ref()), &new.kind)
        else {
            return self.stuck(format!("`{}` does not gather the stores of lanes", describe(new)));
        };
        if !lanes::is_scratch_texture(func, buffer) {
            return self.stuck(format!("`{buffer}` is no texture of this function: its lanes may be read by others"));
        }
        if !matches!(&**filling, Expr::Int { .. } | Expr::Float { .. }) {
            return self.stuck(format!("`{filling}` is no constant, and stands where there is no value"));
        }
        self.values(cond, &self.renames.apply(asked), chosen);
        self.premise(cond, false);
        self.access((buffer, indices), (written, &self.all_renamed(at)), index);
        let gathered = Gathered { buffer: buffer.clone(), indices: indices.clone(), cond: cond.clone(), lane };
        self.fillings_are_unread(&describe(store), &gathered);
        let chosen = Stmt::store(written, at.clone(), Expr::clone(value));
        self.under(cond, true, |this| this.stmts(&[body], &[&chosen], along));
    }

    /// The lanes without a value that a gathered store writes are read nowhere, and its texel is its own.
    fn fillings_are_unread(&mut self, statement: &str, gathered: &Gathered) {
        let Some(func) = self.before else { return };
        let path = self.path.clone();
        let lanes = format!("lanes without a value of `{statement}`");
        match lanes::unread(func, gathered, &path) {
            Ok(loads) => {
                for unread in loads {
                    let subject = format!("{lanes} in {}", unread.load.text);
                    self.goal_of(Obligation::Defined, subject, path.clone(), GoalKind::Unread(Box::new(unread)));
                }
            }
            Err(reason) => self.goal_of(Obligation::Defined, lanes, path.clone(), GoalKind::Stuck(reason)),
        }
        let kind = match lanes::other_store(func, gathered) {
            Some(reason) => GoalKind::Stuck(reason),
            None => GoalKind::Alone(Box::new(gathered.clone())),
        };
        self.goal_of(Obligation::Race, format!("the texel of `{statement}` is written once"), path, kind);
    }
}
