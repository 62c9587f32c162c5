//! The value of an instance, with each value that it reads replaced by the name of the instance that wrote it.

use std::convert::Infallible;

use tilewright_ir::visit::{Rewrite, Substitution};
use tilewright_ir::{Buffer, Expr, Instance, Origin, UnaryOp, sabotage};

use super::{Flowing, Half, pieces};
use crate::claims::Relation;
use crate::finder;
use crate::judge::{Decision, Side, all_of, unsupported};
use crate::lockstep::{GoalKind, Lockstep};
use crate::pass::{decide_goal, fit, holds};
use crate::path::{Path, Step};
use crate::reorder::{Statement, is_partial, values};

/// Cases that the value of one instance may have.
const MOST_CASES: usize = 128;

/// Instances without a counterpart that may be replaced by their values, one inside the other.
const DEPTH: usize = 12;

/// A value, and the conditions under which it is that one.
type Case = (Vec<Step>, Expr);

/// The values that the instances of a store write, as a buffer over its loops.
pub(super) fn name(place: usize, store: &Statement) -> Buffer {
    // A store in no loop has one instance.
    let rank = store.loops().len().max(1);
    Buffer::compact(format!("store {place}"), store.value.dtype(), vec![Expr::int(i64::from(i32::MAX)); rank])
}

impl Flowing<'_> {
    /// An instance after has the value of the instance before, in each case.
    pub(super) fn same(
        &self,
        (path, after): (&Path, usize),
        (before, at): (usize, &Substitution),
        relation: &Relation<'_>,
    ) -> Decision {
        if sabotage::on("flow-ignores-values") {
            return all_of([]);
        }
        let loops = self.after.observed.program.statements[after].loops();
        let itself = Substitution::new(&loops, loops.iter().map(Expr::from));
        let mut reader = Reader { whole: self, origin: &self.origins[after], never: Vec::new() };
        let cases = reader.cases(Side::After, (after, &itself), path, DEPTH).and_then(|new| {
            let old = reader.cases(Side::Before, (before, at), path, DEPTH)?;
            Ok((new, old))
        });
        let (new, old) = match cases {
            Ok(cases) => cases,
            Err(reason) => return unsupported(reason),
        };
        let path = self.with_names(path);
        let compared = new.iter().flat_map(|new| old.iter().map(move |old| (new, old)));
        let compared = compared.map(|(new, old)| self.compared(&path, new, old, relation));
        all_of(reader.never.into_iter().chain(compared))
    }

    /// A way on which the names of values, and what the call found, never change.
    fn with_names(&self, path: &Path) -> Path {
        let mut path = path.clone();
        let found = [&self.before, &self.after].into_iter().flat_map(|half| half.observed.params.clone());
        let constant = path.constant.iter().cloned().chain(self.names.iter().cloned());
        path.constant = constant.chain(found).collect::<Vec<_>>().into();
        path
    }

    /// A value of each program, in cases of both: they are the same, or the cases never come together.
    fn compared(&self, path: &Path, (when, new): &Case, (also, old): &Case, relation: &Relation<'_>) -> Decision {
        let path = with(path, when.iter().chain(also));
        let along = finder::values(old, new, path.clone(), relation);
        let goals = Lockstep::compare([old, new], path.clone(), relation, &along);
        if goals.iter().any(|goal| matches!(goal.kind, GoalKind::Stuck(_))) {
            let never = self.never(&path);
            if never.0.is_proved() {
                return never;
            }
            let mut taken = Taken { whole: self, path: &path, decided: Vec::new() };
            let Ok(new) = taken.expr(new);
            if !taken.decided.is_empty() {
                let along = finder::values(old, &new, path.clone(), relation);
                let goals = Lockstep::compare([old, &new], path.clone(), relation, &along);
                let goals = goals.iter().map(|goal| decide_goal(self.judge, self.evidence, self.base, goal));
                return all_of(taken.decided.into_iter().chain(goals));
            }
        }
        all_of(goals.iter().map(|goal| decide_goal(self.judge, self.evidence, self.base, goal)))
    }

    /// Nothing gets to the end of a way.
    fn never(&self, path: &Path) -> Decision {
        holds(self.judge, path, &Expr::bool(false))
    }
}

/// Takes the sides of conditionals that are chosen wherever a way leads. Their conditions have values, and read nothing.
struct Taken<'a> {
    whole: &'a Flowing<'a>,
    path: &'a Path,
    /// That they are chosen.
    decided: Vec<Decision>,
}

impl Rewrite for Taken<'_> {
    type Error = Infallible;

    fn expr(&mut self, expr: &Expr) -> Result<Expr, Infallible> {
        let Expr::IfThenElse(cond, a, b) = expr else { return self.expr_children(expr) };
        if cond.reads_memory() || is_partial(cond) || !cond.dtype().is_scalar() {
            return self.expr_children(expr);
        }
        let not = Expr::unary(UnaryOp::Not, Expr::clone(cond));
        for (goal, side) in [(Expr::clone(cond), a), (not, b)] {
            let fits = fit(self.path, std::slice::from_ref(&goal), self.whole.base);
            let chosen = all_of([fits, holds(self.whole.judge, self.path, &goal)]);
            if chosen.0.is_proved() {
                self.decided.push(chosen);
                return self.expr(side);
            }
        }
        self.expr_children(expr)
    }
}

/// A path with the conditions of a case. A condition is no premise if it divides by what is no positive constant: a path assumes that
/// its conditions were evaluated, and where a load is not made, the instance that it would read need not have a value.
fn with<'s>(path: &Path, steps: impl IntoIterator<Item = &'s Step>) -> Path {
    let mut path = path.clone();
    for step in steps {
        if !matches!(step, Step::Guard(cond, _) if is_partial(cond)) {
            path.steps.push(step.clone());
        }
    }
    path
}

/// The values that are read for one store after.
struct Reader<'a> {
    whole: &'a Flowing<'a>,
    origin: &'a Origin,
    /// Proofs that some case never comes.
    never: Vec<Decision>,
}

impl<'a> Reader<'a> {
    /// The value of an instance of a store, case by case.
    fn cases(
        &mut self,
        side: Side,
        (store, at): (usize, &Substitution),
        path: &Path,
        depth: usize,
    ) -> Result<Vec<Case>, String> {
        let half = self.half(side);
        let statement = half.statement(store)?;
        let mut found: Vec<(Vec<Step>, Vec<Expr>)> = vec![(Vec::new(), Vec::new())];
        for (read, claimed) in half.observed.reads(statement).iter().zip(&half.sources[store]) {
            let options = self.source(side, (statement, read), claimed, (at, path), depth)?;
            if found.len() * options.len() > MOST_CASES {
                return Err(format!("`{}` has more than {MOST_CASES} cases", statement.subject));
            }
            let with = |(steps, loads): &(Vec<Step>, Vec<Expr>), (more, load): &Case| {
                ([steps.as_slice(), more].concat(), [loads.as_slice(), std::slice::from_ref(load)].concat())
            };
            found = found.iter().flat_map(|one| options.iter().map(move |other| with(one, other))).collect();
        }
        let value = at.apply(&statement.value);
        Ok(found.into_iter().map(|(steps, loads)| (steps, half.observed.with_loads(&value, loads))).collect())
    }

    /// What a load of an instance gives, case by case.
    fn source(
        &mut self,
        side: Side,
        (statement, read): (&Statement, &Expr),
        claimed: &[Instance],
        (at, path): (&Substitution, &Path),
        depth: usize,
    ) -> Result<Vec<Case>, String> {
        let mut found = Vec::new();
        for (steps, piece) in cases_of(&statement.path, &statement.loops(), claimed, at)? {
            let Some(writer) = piece.store else {
                found.push((steps, at.apply(read)));
                continue;
            };
            let path = with(path, &steps);
            if claimed.len() > 1 && self.is_open(side, writer) {
                // What has no counterpart may read itself in cases that never come.
                let never = self.whole.never(&path);
                if never.0.is_proved() {
                    self.never.push(never);
                    continue;
                }
            }
            let theirs = self.half(side).statement(writer)?.loops();
            let there = values(&theirs, &piece.at, &statement.loops(), &statement.path)?;
            let there = Substitution::new(&theirs, theirs.iter().map(|var| at.apply(&there.apply(&Expr::from(var)))));
            let options = self.named(side, (writer, &there), &path, depth)?;
            found.extend(options.into_iter().map(|(more, value)| ([steps.as_slice(), &more].concat(), value)));
        }
        Ok(found)
    }

    /// Whether a store is looked through: what it writes has no name, or not in all cases.
    fn is_open(&self, side: Side, store: usize) -> bool {
        let origins = &self.whole.origins;
        match side {
            _ if self.opened(side).contains(&store) => true,
            Side::Before => !origins.iter().flat_map(|origin| &origin.instances).any(|one| one.store == Some(store)),
            Side::After => origins[store].instances.iter().any(|one| one.store.is_none()),
        }
    }

    fn opened(&self, side: Side) -> &'a [usize] {
        if side == Side::Before { &self.origin.opened_before } else { &self.origin.opened_after }
    }

    /// The value that an instance wrote: the name of the instance before, or its value if it has no counterpart.
    fn named(
        &mut self,
        side: Side,
        (store, at): (usize, &Substitution),
        path: &Path,
        depth: usize,
    ) -> Result<Vec<Case>, String> {
        let deeper = || depth.checked_sub(1).ok_or("values depend on too many that have no counterpart");
        let is_opened = self.opened(side).contains(&store);
        if is_opened || (side == Side::Before && self.is_open(side, store)) {
            return self.cases(side, (store, at), path, deeper()?);
        }
        if side == Side::Before {
            let loops = self.whole.before.statement(store)?.loops();
            let at = loops.iter().map(|var| at.apply(&Expr::from(var))).collect();
            return Ok(vec![(Vec::new(), self.name_at(store, at))]);
        }
        let statement = self.whole.after.statement(store)?;
        let mut found = Vec::new();
        for (steps, origin) in cases_of(&statement.path, &statement.loops(), &self.whole.origins[store].instances, at)?
        {
            let Some(before) = origin.store else {
                let more = self.cases(side, (store, at), &with(path, &steps), deeper()?)?;
                found.extend(more.into_iter().map(|(more, value)| ([steps.as_slice(), &more].concat(), value)));
                continue;
            };
            let loops = self.whole.before.statement(before)?.loops();
            let there = values(&loops, &origin.at, &statement.loops(), &statement.path)?;
            let there = loops.iter().map(|var| at.apply(&there.apply(&Expr::from(var)))).collect();
            found.push((steps, self.name_at(before, there)));
        }
        Ok(found)
    }

    fn name_at(&self, store: usize, at: Vec<Expr>) -> Expr {
        let at = if at.is_empty() { vec![Expr::int(0)] } else { at };
        Expr::load(&self.whole.names[store], at)
    }

    fn half(&self, side: Side) -> &'a Half {
        if side == Side::Before { &self.whole.before } else { &self.whole.after }
    }
}

/// The cases of a claim, each with its conditions, for one instance of the reader.
fn cases_of<'c>(
    path: &Path,
    loops: &[tilewright_ir::Var],
    claimed: &'c [Instance],
    at: &Substitution,
) -> Result<Vec<(Vec<Step>, &'c Instance)>, String> {
    let depth = path.steps.len();
    let steps = |here: &Path| {
        let new = here.steps.iter().skip(depth);
        new.map(|step| match step {
            Step::Guard(cond, holds) => Step::Guard(at.apply(cond), *holds),
            Step::Loop(..) | Step::Let(..) => step.clone(),
        })
        .collect()
    };
    Ok(pieces(path, loops, claimed)?.into_iter().map(|(here, piece)| (steps(&here), piece)).collect())
}
