//! Two programs walked side by side.
//!
//! The program after a pass must do what the program before it does, statement by statement: the same loops, the same
//! conditions, and each access the old one through the claimed maps. The walk collects what has to be equal; it decides
//! nothing. Declarations of aliases and hints are stepped over, bindings are inlined, and a condition that only one side
//! has must always hold. A loop that became lanes of one statement is followed lane by lane ([`crate::lanes`]).

mod follow;
mod memory;
mod params;

use std::collections::HashMap;

use tilewright_ir::sabotage;
use tilewright_ir::visit::Substitution;
use tilewright_ir::{Buffer, BufferClaim, Evidence, Expr, PrimFunc, Span, Stmt, StmtKind, Var};

use crate::access::{describe, lane_of};
use crate::judge::Side;
use crate::lanes::{self, Gathered, Unread};
use crate::map::subterms;
use crate::obligation::Obligation;
use crate::path::{Path, Step, premises, sites_in};

/// Something that has to hold, and the way to it in terms of the program before.
#[derive(Clone, Debug)]
pub(crate) struct Goal {
    pub(crate) obligation: Obligation,
    pub(crate) subject: String,
    /// The program that `span` belongs to.
    pub(crate) side: Side,
    /// The statement in the source text.
    pub(crate) span: Option<Span>,
    pub(crate) path: Path,
    pub(crate) kind: GoalKind,
}

impl Goal {
    /// Whether the walk cannot follow here.
    fn is_stuck(&self) -> bool {
        match &self.kind {
            GoalKind::Guess(kind) => matches!(**kind, GoalKind::Stuck(_)),
            kind => matches!(kind, GoalKind::Stuck(_)),
        }
    }

    /// The same place, and another question.
    pub(crate) fn of_kind(&self, kind: &GoalKind) -> Self {
        let (subject, path) = (self.subject.clone(), self.path.clone());
        Self { obligation: self.obligation, subject, side: self.side, span: self.span, path, kind: kind.clone() }
    }
}

#[derive(Clone, Debug)]
pub(crate) enum GoalKind {
    /// The first of each pair, of the program before, equals the second. Integers of one lane.
    Equal(Vec<(Expr, Expr)>),
    /// Two integers are the same value; what they compute may wrap. One lane.
    Same(Expr, Expr),
    /// A goal that need not hold: parts that differ may be the same whole, computed in another way.
    Guess(Box<GoalKind>),
    /// The condition always holds.
    Holds(Expr),
    /// Nothing in the expressions leaves its type, so that they are what the integers say.
    Fits(Vec<Expr>),
    /// The stores write the same value to corresponding elements; for evaluation only, the proof is in other goals.
    Store(Box<StorePair>),
    /// The walk cannot follow here.
    Stuck(String),
    /// A statement of the program before has no counterpart; the way to it is never gone.
    Missing,
    /// A lane that has no value is never read.
    Unread(Box<Unread>),
    /// A gathered store has its texel for itself.
    Alone(Box<Gathered>),
}

/// Two stores side by side.
#[derive(Clone, Debug)]
pub(crate) struct StorePair {
    /// The store before: its index through the claimed map, and its value.
    pub(crate) before: (Vec<Expr>, Expr),
    /// The store after.
    pub(crate) after: (Vec<Expr>, Expr),
}

/// Which buffers became which.
#[derive(Clone, Debug, Default)]
pub(crate) struct Relation<'a> {
    by_after: HashMap<Buffer, &'a BufferClaim>,
    by_before: HashMap<Buffer, &'a BufferClaim>,
}

impl<'a> Relation<'a> {
    pub(crate) fn new(evidence: &'a Evidence) -> Self {
        Self {
            by_after: evidence.buffers.iter().map(|claim| (claim.after.clone(), claim)).collect(),
            by_before: evidence.buffers.iter().map(|claim| (claim.before.clone(), claim)).collect(),
        }
    }

    /// What became of a buffer of the program before, if it became another one.
    fn claim_of(&self, before: &Buffer) -> Option<&'a BufferClaim> {
        self.by_before.get(before).copied()
    }

    /// The index in `after` that corresponds to an index in `before`; none if the buffers do not correspond.
    pub(crate) fn image(&self, before: &Buffer, after: &Buffer, indices: &[Expr]) -> Option<Vec<Expr>> {
        match self.by_after.get(after) {
            Some(claim) if claim.before == *before && indices.len() == claim.map.vars().len() => {
                Some(claim.map.apply(indices))
            }
            Some(_) => None,
            None => (before == after).then(|| indices.to_vec()),
        }
    }
}

/// The walk.
pub(crate) struct Lockstep<'a> {
    relation: &'a Relation<'a>,
    /// The program before; none if only values are compared.
    before: Option<&'a PrimFunc>,
    pub(crate) goals: Vec<Goal>,
    path: Path,
    /// Variables of the program after, in terms of those before.
    renames: Substitution,
    subject: String,
    /// The statement that is compared, in the program of `side`.
    span: Option<Span>,
    side: Side,
    /// The loop whose iterations are lanes after, while its body is walked.
    lane: Option<Var>,
    /// Whether what is compared corresponds by a guess, such as parts of an index that is read, of a buffer that has moved.
    is_guess: bool,
}

impl<'a> Lockstep<'a> {
    /// Collects the goals for two functions.
    pub(crate) fn run(before: &'a PrimFunc, after: &PrimFunc, relation: &'a Relation<'a>) -> Vec<Goal> {
        let mut renames = Substitution::default();
        for (old, new) in before.params.iter().zip(&after.params) {
            renames.insert(new, Expr::from(old));
        }
        let path = Path::of(before);
        let mut walk = Self {
            relation,
            before: Some(before),
            goals: Vec::new(),
            path,
            renames,
            subject: "parameters".into(),
            span: None,
            side: Side::Before,
            lane: None,
            is_guess: false,
        };
        walk.params(before, after);
        walk.stmts(&[&before.body], &[&after.body]);
        walk.goals
    }

    /// Collects the goals for the parameters of two functions.
    pub(crate) fn parameters(before: &'a PrimFunc, after: &PrimFunc, relation: &'a Relation<'a>) -> Vec<Goal> {
        let one = PrimFunc { body: Stmt::seq(Vec::new()), ..before.clone() };
        let two = PrimFunc { body: Stmt::seq(Vec::new()), ..after.clone() };
        Lockstep::run(&one, &two, relation)
    }

    /// Collects the goals for two values at the end of one way; `after` is in terms of the same variables.
    pub(crate) fn compare(before: &Expr, after: &Expr, path: Path, relation: &'a Relation<'a>) -> Vec<Goal> {
        let subject = after.to_string();
        let renames = Substitution::default();
        let mut walk = Self {
            relation,
            before: None,
            goals: Vec::new(),
            path,
            renames,
            subject,
            span: None,
            side: Side::Before,
            lane: None,
            is_guess: false,
        };
        walk.values(before, after);
        walk.goals
    }

    fn goal(&mut self, obligation: Obligation, kind: GoalKind) {
        let (subject, path) = (self.subject.clone(), self.path.clone());
        let kind = if self.is_guess { GoalKind::Guess(Box::new(kind)) } else { kind };
        self.goals.push(Goal { obligation, subject, side: self.side, span: self.span, path, kind });
    }

    fn stuck(&mut self, why: impl Into<String>) {
        self.goal(Obligation::Simulation, GoalKind::Stuck(why.into()));
    }

    fn stmts(&mut self, before: &[&Stmt], after: &[&Stmt]) {
        let (mut before, after) = (plain(before), plain(after));
        let depth = self.path.steps.len();
        if before.len() > after.len() {
            // Branches that seem never to be taken may have been dropped; that they never are is to be shown.
            let (kept, dropped) = before.into_iter().partition(|stmt| !self.seems_dead(stmt));
            before = kept;
            self.missing(&dropped);
        }
        for (old, new) in before.iter().zip(&after) {
            self.stmt(old, new);
            if let StmtKind::Assert { cond, .. } = &old.kind {
                self.premise(cond, true);
                self.path.steps.push(Step::Guard(cond.clone(), true));
            }
        }
        self.missing(before.get(after.len()..).unwrap_or_default());
        if let Some(extra) = after.get(before.len()) {
            self.stuck(format!("the program after has one more statement: `{}`", describe(extra)));
        }
        self.path.steps.truncate(depth);
    }

    /// A branch that no sample takes.
    fn seems_dead(&self, stmt: &Stmt) -> bool {
        let StmtKind::If { cond, else_body: None, .. } = &stmt.kind else { return false };
        let mut inner = self.path.clone();
        inner.steps.push(Step::Guard(cond.clone(), true));
        !inner.is_reached()
    }

    /// Statements of the program before that the program after does not have: nothing in them is ever reached.
    fn missing(&mut self, stmts: &[Stmt]) {
        for stmt in stmts {
            for site in sites_in(stmt, &self.path) {
                if matches!(site.stmt.kind, StmtKind::Store { .. } | StmtKind::Assert { .. } | StmtKind::Evaluate(_)) {
                    let subject = describe(site.stmt);
                    self.goals.push(Goal {
                        obligation: Obligation::Simulation,
                        subject,
                        side: Side::Before,
                        span: site.stmt.span,
                        path: site.path,
                        kind: GoalKind::Missing,
                    });
                }
            }
        }
    }

    fn stmt(&mut self, old: &Stmt, new: &Stmt) {
        self.subject = describe(old);
        (self.side, self.span) = (Side::Before, old.span);
        let depth = self.path.steps.len();
        match (&old.kind, &new.kind) {
            (StmtKind::For(x), StmtKind::For(y)) => {
                let same_type = x.var.dtype() == y.var.dtype();
                if x.kind != y.kind && !sabotage::on("lockstep-ignores-kinds") {
                    self.stuck(format!("the loop over `{}` was {:?} and is {:?}", x.var, x.kind, y.kind));
                } else if !same_type {
                    self.stuck(format!("the loop variable `{}` changed its type", x.var));
                }
                let mut pairs = Vec::new();
                for (old, new) in [(&x.min, &y.min), (&x.extent, &y.extent)] {
                    let new = self.renamed(new);
                    let new = self.in_old_memory(std::slice::from_ref(old), &[new]);
                    pairs.extend(new.into_iter().map(|new| (old.clone(), new)));
                }
                pairs.truncate(2 - usize::from(sabotage::on("lockstep-ignores-extents")));
                self.fits(pairs.iter().filter(|(old, new)| old != new).flat_map(|(old, new)| [old, new]));
                self.goal(Obligation::Iteration, GoalKind::Equal(pairs));
                self.rename(&y.var, &x.var);
                self.path.enter(x);
                self.stmts(&[&x.body], &[&y.body]);
            }
            (
                StmtKind::Store { buffer: x, indices: old_index, value: old_value },
                StmtKind::Store { buffer: y, indices: new_index, value: new_value },
            ) => self.store((x, old_index, old_value), (y, new_index, new_value)),
            (StmtKind::If { .. }, _) if self.split_by_lane(old).is_some() => {
                if let Some(ordered) = self.split_by_lane(old) {
                    self.stmt(&ordered, new);
                }
            }
            (
                StmtKind::If { cond: x, then_body: then_old, else_body: else_old },
                StmtKind::If { cond: y, then_body: then_new, else_body: else_new },
            ) if else_old.is_some() == else_new.is_some() => {
                let y = self.renamed(y);
                if !sabotage::on("lockstep-ignores-conditions") {
                    self.values(x, &y);
                }
                self.branch(x, true, then_old, then_new);
                if let (Some(old), Some(new)) = (else_old, else_new) {
                    self.branch(x, false, old, new);
                }
            }
            (StmtKind::For(x), _) if lanes::vector_store(new).is_some() => self.lanes(x, new),
            (
                StmtKind::If { cond, then_body, else_body: None },
                StmtKind::Store { buffer, indices, value: all @ Expr::IfThenElse(chosen, value, filling) },
            ) if self.is_gathered(cond, then_body, all) => {
                self.gather((cond, then_body), (buffer, indices), (chosen, filling));
                self.branch(cond, true, then_body, &Stmt::store(buffer, indices.clone(), (**value).clone()));
            }
            // A condition that was dropped, or added, must always hold.
            (StmtKind::If { cond, then_body, else_body: None }, _) => {
                self.subject = format!("{} (which the program after does not ask)", describe(old));
                self.fits([cond]);
                if !sabotage::on("dropped-condition-unchecked") {
                    self.goal(Obligation::Simulation, GoalKind::Holds(cond.clone()));
                }
                self.stmts(&[then_body], &[new]);
            }
            (_, StmtKind::If { cond, then_body, else_body: None }) => {
                self.subject = format!("{} (which the program before does not ask)", describe(new));
                (self.side, self.span) = (Side::After, new.span);
                let cond = self.renamed(cond);
                self.in_old_memory(&[], std::slice::from_ref(&cond));
                self.fits([&cond]);
                if !sabotage::on("added-condition-unchecked") {
                    self.goal(Obligation::Simulation, GoalKind::Holds(cond));
                }
                self.stmts(&[old], &[then_body]);
            }
            (StmtKind::Allocate { buffer: x, body: old }, StmtKind::Allocate { buffer: y, body: new }) => {
                if self.relation.image(x, y, &vec![Expr::int(0); x.rank()]).is_none() {
                    self.stuck(format!("nothing is claimed of how `{x}` became `{y}`"));
                }
                self.stmts(&[old], &[new]);
            }
            (StmtKind::Let { var: x, value, body: old }, StmtKind::Let { var: y, value: other, body: new }) => {
                let other = self.renamed(other);
                self.values(value, &other);
                self.rename(y, x);
                self.path.steps.push(Step::Let(x.clone(), value.clone()));
                self.stmts(&[old], &[new]);
            }
            (StmtKind::Assert { cond: x, .. }, StmtKind::Assert { cond: y, .. })
            | (StmtKind::Evaluate(x), StmtKind::Evaluate(y)) => {
                let y = self.renamed(y);
                self.values(x, &y);
            }
            _ => self.stuck(format!("`{}` became `{}`", describe(old), describe(new))),
        }
        self.path.steps.truncate(depth);
    }

    fn branch(&mut self, cond: &Expr, holds: bool, old: &Stmt, new: &Stmt) {
        self.premise(cond, holds);
        self.path.steps.push(Step::Guard(cond.clone(), holds));
        self.stmts(&[old], &[new]);
        self.path.steps.pop();
    }

    /// The expressions are what the integers say.
    fn fits<'e>(&mut self, exprs: impl IntoIterator<Item = &'e Expr>) {
        let computes = |expr: &&Expr| {
            let mut parts = Vec::new();
            subterms(expr, &mut parts);
            !parts.is_empty()
        };
        let exprs: Vec<Expr> = exprs.into_iter().filter(computes).cloned().collect();
        if !exprs.is_empty() {
            self.goal(Obligation::Overflow, GoalKind::Fits(exprs));
        }
    }

    /// What of a condition is assumed below it is what the integers say.
    fn premise(&mut self, cond: &Expr, holds: bool) {
        let used = premises(cond, holds, &self.path.constant);
        self.fits(used.iter().map(|(part, _)| part));
    }

    fn rename(&mut self, new: &Var, old: &Var) {
        self.renames.insert(new, Expr::from(old));
    }

    fn renamed(&self, expr: &Expr) -> Expr {
        self.renames.apply(expr)
    }

    fn store(&mut self, before: (&Buffer, &[Expr], &Expr), after: (&Buffer, &[Expr], &Expr)) {
        let new_index: Vec<_> = after.1.iter().map(|index| self.renamed(index)).collect();
        let new_value = self.renamed(after.2);
        let Some(image) = self.access(before.0, before.1, after.0, &new_index) else { return };
        let pair = StorePair { before: (image, before.2.clone()), after: (new_index, new_value.clone()) };
        self.goal(Obligation::Simulation, GoalKind::Store(Box::new(pair)));
        self.values(before.2, &new_value);
    }

    /// Two accesses to corresponding buffers: the new index is the old one through the map.
    fn access(&mut self, x: &Buffer, old: &[Expr], y: &Buffer, new: &[Expr]) -> Option<Vec<Expr>> {
        let Some(image) = self.relation.image(x, y, old) else {
            self.stuck(format!("`{x}` is accessed before and `{y}` after, and nothing is claimed of them"));
            return None;
        };
        if x.dtype != y.dtype || image.len() != new.len() {
            self.stuck(format!("`{x}` and `{y}` differ in element type or rank"));
            return None;
        }
        let lanes = |indices: &[Expr]| indices.iter().map(|index| index.dtype().lanes).max().unwrap_or(1);
        let lanes = (lanes(old), lanes(new));
        if lanes.0 != lanes.1 {
            self.stuck(format!("`{x}` is accessed with {} lanes before and {} after", lanes.0, lanes.1));
            return None;
        }
        let there = self.in_old_memory(old, new);
        let depth = self.path.steps.len();
        // A map takes scalars: each lane goes through it by itself.
        let lane = self.enter_lanes(lanes.0);
        let at = |indices: &[Expr]| -> Vec<Expr> {
            let lane_of = |index| lane.as_ref().map_or_else(|| Expr::clone(index), |lane| lane_of(index, lane));
            indices.iter().map(lane_of).collect()
        };
        match self.relation.image(x, y, &at(old)) {
            Some(moved) => {
                let skipped = usize::from(sabotage::on("lockstep-ignores-first-axis") && moved.len() > 1);
                self.goal(
                    Obligation::Simulation,
                    GoalKind::Equal(moved.into_iter().zip(at(&there)).skip(skipped).collect()),
                );
            }
            None => self.stuck(format!("the claim of `{x}` does not take its index")),
        }
        self.path.steps.truncate(depth);
        if old != new {
            let indices = self.per_lane(lanes.0, old.iter().map(|index| (index, index)));
            self.fits(indices.iter().map(|(index, _)| index));
            self.path.steps.truncate(depth);
        }
        Some(image)
    }

    /// Pairs of vectors as pairs of scalars under a loop over the lanes, which is entered.
    fn per_lane<'e>(&mut self, lanes: u16, pairs: impl Iterator<Item = (&'e Expr, &'e Expr)>) -> Vec<(Expr, Expr)> {
        match self.enter_lanes(lanes) {
            None => pairs.map(|(old, new)| (old.clone(), new.clone())).collect(),
            Some(lane) => pairs.map(|(old, new)| (lane_of(old, &lane), lane_of(new, &lane))).collect(),
        }
    }

    /// Enters a loop over lanes, if there are several, and gives the number of the lane.
    fn enter_lanes(&mut self, lanes: u16) -> Option<Expr> {
        let lane = (lanes > 1).then(|| Var::index("lane"))?;
        self.path.steps.push(Step::Loop(lane.clone(), Expr::int(0), Expr::int(lanes.into())));
        Some(Expr::from(lane))
    }

    /// Two expressions have the same value. `new` is in terms of the program before's variables.
    fn values(&mut self, old: &Expr, new: &Expr) {
        let ty = old.dtype();
        if ty != new.dtype() {
            return self.stuck(format!("`{old}` has the type {ty}, `{new}` the type {}", new.dtype()));
        }
        let is_integer = ty.scalar.integer_range().is_some();
        if !old.reads_memory() && !new.reads_memory() && is_integer {
            if old != new {
                let depth = self.path.steps.len();
                for (old, new) in self.per_lane(ty.lanes, std::iter::once((old, new))) {
                    self.goal(Obligation::Simulation, GoalKind::Same(old, new));
                }
                self.path.steps.truncate(depth);
            }
            return;
        }
        if ty.lanes > 1 && (chooses_by_lane(old) || chooses_by_lane(new)) {
            let depth = self.path.steps.len();
            for (old, new) in self.per_lane(ty.lanes, std::iter::once((old, new))) {
                self.values(&old, &new);
            }
            return self.path.steps.truncate(depth);
        }
        match (old, new) {
            (Expr::Load { buffer: x, indices: i }, Expr::Load { buffer: y, indices: j }) => {
                self.access(x, i, y, j);
            }
            // A condition that was decided, in front of others.
            (Expr::IfThenElse(c, a, b), Expr::IfThenElse(..)) if conditions(old) > conditions(new) => {
                let outer = std::mem::replace(&mut self.is_guess, true);
                if conditions(a) >= conditions(new) {
                    self.decided(c, true, a, new);
                } else {
                    self.decided(c, false, b, new);
                }
                self.is_guess = outer;
            }
            (Expr::IfThenElse(c, a, b), Expr::IfThenElse(d, x, y)) => {
                self.values(c, d);
                self.under(c, true, a, x);
                self.under(c, false, b, y);
            }
            _ if same_operation(old, new) => {
                // Other operands may come to the same value.
                let outer = std::mem::replace(&mut self.is_guess, true);
                let n_goals = self.goals.len();
                for (old, new) in old.children().zip(new.children()) {
                    self.values(old, new);
                }
                self.is_guess = outer;
                if is_integer && self.goals[n_goals..].iter().any(Goal::is_stuck) {
                    self.goals.truncate(n_goals);
                    self.same(old, new);
                }
            }
            // A condition that was decided always holds, or never: which of the two is a guess.
            (Expr::IfThenElse(c, a, b) | Expr::Select(c, a, b), _) => {
                let outer = std::mem::replace(&mut self.is_guess, true);
                if same_shape(a, new) {
                    self.decided(c, true, a, new);
                } else {
                    self.decided(c, false, b, new);
                }
                self.is_guess = outer;
            }
            _ if is_integer => self.same(old, new),
            _ => self.stuck(format!("`{old}` became `{new}`")),
        }
    }

    fn under(&mut self, cond: &Expr, holds: bool, old: &Expr, new: &Expr) {
        self.premise(cond, holds);
        self.path.steps.push(Step::Guard(cond.clone(), holds));
        self.values(old, new);
        self.path.steps.pop();
    }

    fn decided(&mut self, cond: &Expr, holds: bool, old: &Expr, new: &Expr) {
        let goal = if holds { cond.clone() } else { Expr::unary(tilewright_ir::UnaryOp::Not, cond.clone()) };
        self.fits([cond]);
        self.goal(Obligation::Simulation, GoalKind::Holds(goal));
        self.values(old, new);
    }
}

/// Whether an expression is a conditional that is decided for each lane by itself.
fn chooses_by_lane(expr: &Expr) -> bool {
    matches!(expr, Expr::IfThenElse(cond, ..) if cond.dtype().lanes > 1)
}

/// The statements that do something, with declarations and hints stepped over and bindings inlined.
pub(crate) fn plain(stmts: &[&Stmt]) -> Vec<Stmt> {
    let mut found = Vec::new();
    for stmt in stmts {
        match &stmt.kind {
            StmtKind::DeclBuffer { body, .. } | StmtKind::Attr { body, .. } => found.extend(plain(&[body])),
            StmtKind::Let { var, value, body } if !value.reads_memory() => {
                let inlined = Substitution::new([var], [value.clone()]).apply_stmt(body);
                found.extend(plain(&[&inlined]));
            }
            StmtKind::Seq(inner) => found.extend(plain(&inner.iter().collect::<Vec<_>>())),
            StmtKind::Evaluate(expr) if !expr.reads_memory() => {}
            _ => found.push((*stmt).clone()),
        }
    }
    found
}

/// The same operator, whatever the operands.
pub(crate) fn same_operation(a: &Expr, b: &Expr) -> bool {
    let same = match (a, b) {
        (Expr::Int { .. }, Expr::Int { .. }) => a == b,
        (Expr::Float { value: x, ty }, Expr::Float { value: y, ty: other }) => {
            ty == other && x.to_bits() == y.to_bits()
        }
        (Expr::Var(x), Expr::Var(y)) => x == y,
        (Expr::Binary(op, ..), Expr::Binary(other, ..)) => op == other,
        (Expr::Unary(op, _), Expr::Unary(other, _)) => op == other,
        (Expr::Call(function, _), Expr::Call(other, _)) => function == other,
        (Expr::Cast(ty, x), Expr::Cast(other, y)) => ty == other && x.dtype() == y.dtype(),
        (Expr::Select(..), Expr::Select(..)) => true,
        (Expr::Ramp { lanes, .. }, Expr::Ramp { lanes: other, .. })
        | (Expr::Broadcast { lanes, .. }, Expr::Broadcast { lanes: other, .. }) => lanes == other,
        _ => false,
    };
    same && a.children().len() == b.children().len()
}

/// How many conditionals are in an expression.
fn conditions(expr: &Expr) -> usize {
    let mut count = 0;
    expr.walk(&mut |part| count += usize::from(matches!(part, Expr::IfThenElse(..))));
    count
}

/// Whether two expressions could be the same value: one operation, two loads, two conditionals.
fn same_shape(a: &Expr, b: &Expr) -> bool {
    let same_kind =
        matches!((a, b), (Expr::Load { .. }, Expr::Load { .. }) | (Expr::IfThenElse(..), Expr::IfThenElse(..)));
    same_operation(a, b) || same_kind
}
