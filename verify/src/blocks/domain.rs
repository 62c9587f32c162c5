//! Whether the instances of the domain of a block run.
//!
//! ```text
//! for i_0, i_1 in T.grid(5, 8):                          i -> (i // 8, i % 8) is an iteration for each i in 0..37, and leads to i
//!     with T.sblock("C"):
//!         i = T.axis.spatial(37, i_0 * 8 + i_1)
//!         T.where(i_0 * 8 + i_1 < 37)
//! ```
//!
//! Memory that the function allocates may be computed only as far as somebody reads it: `compute_at` and `cache_read` of TVM leave the
//! domain as it is and run the rest no more. An instance that `T.where` leaves out and that would write outside of a buffer is none, and
//! neither is a part of a sum that would read outside of one: `rfactor` of TVM gives each factor as many values of the reduced axis as the
//! one with most has. So each
//! element that is read has to be one whose instance runs, in the same round where the reader is in it, and anywhere otherwise. Other
//! instances that do not run are a reason to doubt the block, and no error: the copy that TVM's `cache_write` makes of a buffer that is
//! written in part has the whole buffer for its domain.

use std::convert::Infallible;

use tilewright_ir::visit::{Rewrite, Substitution};
use tilewright_ir::{Buffer, Expr, ForKind, PrimFunc, Scope, Stmt, StmtKind, ThreadTag, Var, sabotage};

use super::memory::Blocks;
use super::{Placed, Through, declared, same, within};
use crate::access::{Access, accesses};
use crate::judge::{Decision, Judge, all_of, unsupported};
use crate::method::Method;
use crate::path::{Path, Site, Step, is_premise, sites};
use crate::reason::{Reason, ReasonKind};
use crate::reorder::is_small;
use crate::verdict::Verdict;

/// What has to hold of an iteration that is claimed.
#[derive(Default)]
struct Needed {
    /// Conditions outside of all loops: whether the block runs at all.
    outside: Vec<Step>,
    /// Conditions of the iteration, and that it runs the instance of the axes.
    goals: Vec<Expr>,
    /// What `T.where` asks of the iteration.
    predicate: Option<Expr>,
}

impl Placed<'_> {
    /// Each instance of the domain runs, or is one that nobody needs.
    pub(super) fn whole(&self, judge: &Judge, blocks: &Blocks<'_>) -> Decision {
        let claim = self.claim;
        if let Some(var) = self.loop_of_statement(self.in_memory()) {
            return unsupported(format!("an instance depends on loop {var}, and not on its axes alone"));
        }
        if let Some(through) = claim.through.as_ref().map(|through| self.all_through(judge, through))
            && through.0.is_proved()
        {
            return through;
        }
        let fixed = self.in_memory();
        let all = match self.in_one_memory(fixed) {
            Ok(()) => self.all_anywhere(judge, fixed, &claim.anywhere),
            Err(reason) => unsupported(reason),
        };
        let all = if all.0.is_proved() { all } else { self.all_somewhere(judge, fixed).unwrap_or(all) };
        if all.0.is_proved() {
            return self.reached_by_readers(judge, &claim.anywhere, all);
        }
        match self.read_ones(judge, blocks) {
            Some(needed) if needed.0.is_proved() => needed,
            Some((Verdict::Refuted(found), method)) => doubted(&found.text, found.named_values(), method),
            _ => match all {
                (Verdict::Refuted(found), method) => doubted(&found.text, found.named_values(), method),
                open => open,
            },
        }
    }

    /// Whoever reads what the block writes runs only where the block runs, whose instances all run. That of an inner block runs with each
    /// instance of the outer one.
    fn reached_by_readers(&self, judge: &Judge, claim: &[(Var, Expr)], all: Decision) -> Decision {
        if self.outside > 0 {
            return all;
        }
        let outside = match self.needed(0, claim) {
            Ok(needed) => needed.outside,
            Err(reason) => return unsupported(reason),
        };
        let conds: Vec<Expr> =
            outside.iter().flat_map(|step| step.conditions(&Substitution::default()).unwrap_or_default()).collect();
        let written = self.written();
        let loads = loads(self.func);
        let readers = loads.iter().filter(|load| !self.is_inside(load) && is_of(&written, load));
        let reached = readers.flat_map(|load| conds.iter().map(|cond| self.holds(judge, &load.path, cond)));
        match all_of(std::iter::once(all).chain(reached)) {
            // Another statement may have written what is read.
            (Verdict::Refuted(found), method) => doubted(&found.text, found.named_values(), method),
            decided => decided,
        }
    }

    /// Whether an access is one of the block.
    pub(super) fn is_inside(&self, access: &Access) -> bool {
        let is_axis = |var: &Var| self.block.axes.iter().any(|axis| axis.var == *var);
        access.path.steps.iter().any(|step| matches!(step, Step::Let(var, _) if is_axis(var)))
    }

    /// Each instance of the domain runs somewhere, in each instance of the outer block and in each iteration of the first steps.
    fn all_anywhere(&self, judge: &Judge, fixed: usize, claim: &[(Var, Expr)]) -> Decision {
        let needed = match self.needed(fixed, claim) {
            Ok(needed) => needed,
            Err(reason) => return unsupported(reason),
        };
        let outer = self.path.steps.iter().take(fixed).cloned();
        let mut path = Path { steps: outer.chain(needed.outside).collect(), ..self.path.clone() };
        // The domain of an axis may depend on a loop whose value is another axis. Of other loops nothing is assumed here.
        let mut known = Substitution::default();
        for (axis, value) in self.axes() {
            path.steps.push(Step::Loop(axis.var.clone(), known.apply(&axis.min), known.apply(&axis.extent)));
            if let Expr::Var(counter) = value {
                known.insert(counter, Expr::from(&axis.var));
            }
        }
        // An instance that `T.where` leaves out need not run if it would leave a buffer.
        let mut possible = path.clone();
        possible.steps.extend(self.possible(judge).into_iter().map(|cond| Step::Guard(cond, true)));
        let ask = |cond: &Expr, path: &Path| self.holds(judge, path, cond);
        let goals = needed.goals.iter().map(|cond| ask(cond, &path));
        all_of(goals.chain(needed.predicate.iter().map(|cond| ask(cond, &possible))))
    }

    /// Each instance of the domain runs somewhere, in the memory of one thread or group alone, of which the text has one: for elements by
    /// themselves that no sum is made of. What is read was computed in the same memory. `None` if that is not shown.
    fn all_somewhere(&self, judge: &Judge, fixed: usize) -> Option<Decision> {
        let of_text = self.in_memory_of_text();
        let written = self.written();
        let is_one =
            |(buffer, _): &(&Buffer, &[Expr])| buffer.shape.iter().all(|extent| extent.as_const_int() == Some(1));
        (of_text < fixed && self.counted().next().is_none() && written.iter().all(is_one)).then_some(())?;
        self.decided(fixed).ok()?;
        let (mut first, mut goals) = (Substitution::default(), Vec::new());
        for step in self.running().steps.iter().skip(fixed) {
            match step {
                Step::Loop(var, min, _) => first.insert(var, first.apply(min)),
                Step::Let(var, value) => first.insert(var, first.apply(value)),
                Step::Guard(..) => {}
            }
            goals.extend(step.conditions(&first).unwrap_or_default());
        }
        let mut decided = vec![self.all_anywhere(judge, of_text, &self.claim.anywhere)];
        for load in loads(self.func).iter().filter(|load| !self.is_inside(load) && is_of(&written, load)) {
            (self.shared_with(load) >= fixed).then_some(())?;
            decided.extend(goals.iter().map(|cond| self.holds(judge, &load.path, cond)));
        }
        let all = all_of(decided);
        all.0.is_proved().then_some(all)
    }

    /// Each instance of the domain runs somewhere: its number is in range and has its axes, and each number in range is that of an iteration.
    fn all_through(&self, judge: &Judge, claim: &Through) -> Decision {
        if let Err(reason) = self.in_one_memory(0) {
            return unsupported(reason);
        }
        let number = Var::new(claim.name.name(), claim.name.dtype());
        let named = Substitution::new([&claim.name], [Expr::from(&number)]);
        let there = Substitution::new(
            claim.loops.iter().map(|(var, _)| var),
            claim.loops.iter().map(|(_, value)| named.apply(value)),
        );
        let zero = claim.number.clone() - claim.number.clone();
        let mut inside = Path { steps: std::iter::empty().collect(), ..self.path.clone() };
        let mut outside = inside.clone();
        let mut reached = Vec::new();
        for step in &self.path.steps {
            match step {
                Step::Loop(var, ..) if there.get(var).is_some() => {
                    reached.extend(step.conditions(&there).unwrap_or_default());
                }
                Step::Loop(..) | Step::Let(..) | Step::Guard(..) => {
                    return unsupported("the loops are not all that makes the number".to_owned());
                }
            }
        }
        reached.push(same(&there.apply(&claim.number), &Expr::from(&number)));
        let first = Expr::int_of(0, claim.name.dtype().scalar).unwrap_or(zero);
        inside.steps.push(Step::Loop(number, first.clone(), claim.extent.clone()));
        for axis in &self.block.axes {
            outside.steps.push(Step::Loop(axis.var.clone(), axis.min.clone(), axis.extent.clone()));
        }
        let mut needed = vec![within(&claim.value, &first, &claim.extent)];
        let loops = self.path.loops();
        let values = self.axes().map(|(axis, value)| (value, Some(axis)));
        for (expr, axis) in values.chain(self.parts.predicate.map(|cond| (cond, None))) {
            let Ok(cut) = (Cut { number: &claim.number, value: &claim.value }).expr(expr);
            if cut.vars().iter().any(|var| loops.contains(var)) {
                return unsupported(format!("`{expr}` is no part of the number"));
            }
            needed.push(axis.map_or_else(|| cut.clone(), |axis| same(&cut, &Expr::from(&axis.var))));
        }
        let reached = reached.iter().map(|cond| self.holds(judge, &inside, cond));
        all_of(reached.chain(needed.iter().map(|cond| self.holds(judge, &outside, cond))))
    }

    /// The conditions under which the claimed iteration runs, and that its instance is the one of the axes; of the steps from `first` on.
    fn needed(&self, first: usize, claim: &[(Var, Expr)]) -> Result<Needed, String> {
        self.decided(first)?;
        let (mut outside, mut goals) = (Vec::new(), Vec::new());
        let (mut at, mut inside) = (Substitution::default(), Vec::new());
        for step in self.path.steps.iter().skip(first) {
            match step {
                Step::Loop(var, ..) => {
                    let value = claim.iter().find(|(claimed, _)| claimed == var).map(|(_, value)| value.clone());
                    at.insert(var, value.ok_or_else(|| format!("no iteration of loop {var} is claimed"))?);
                    inside.push(var.clone());
                    goals.extend(step.conditions(&at).unwrap_or_default());
                }
                Step::Let(var, value) => {
                    let value = at.apply(value);
                    if !is_small(&value) {
                        return Err(format!("the value of `{var}` has too many operations"));
                    }
                    at.insert(var, value);
                    inside.push(var.clone());
                }
                // An inner block in the `T.init` of an outer one.
                Step::Guard(cond, true) if self.begins.contains(cond) => outside.push(step.clone()),
                // What is read from memory that changes may let some iterations run and others not.
                Step::Guard(cond, _)
                    if self.outside == 0
                        && first == 0
                        && is_premise(cond, &self.path.constant)
                        && !cond.vars().iter().any(|var| inside.contains(var)) =>
                {
                    outside.push(step.clone());
                }
                Step::Guard(..) => goals.extend(step.conditions(&at).unwrap_or_default()),
            }
        }
        let mut predicate = self.parts.predicate.map(|cond| at.apply(cond));
        if sabotage::on("domain-skips-conditions") {
            goals.clear();
            predicate = None;
        }
        goals.extend(self.axes().map(|(axis, value)| same(&at.apply(value), &Expr::from(&axis.var))));
        Ok(Needed { outside, goals, predicate })
    }

    /// The instance of each element that is read runs. `None` if it is not only memory of the function that the block writes, or if
    /// nothing reads it.
    fn read_ones(&self, judge: &Judge, blocks: &Blocks<'_>) -> Option<Decision> {
        let written = self.written();
        let is_own = |buffer| allocates(&self.func.body, buffer);
        (!written.is_empty() && written.iter().all(|(buffer, _)| is_own(buffer))).then_some(())?;
        let loads = loads(self.func);
        let is_read = |load: &&Access| {
            // What is updated is the element of the instance.
            let is_update = self.is_inside(load) && written.contains(&(&load.buffer, load.indices.as_slice()));
            !is_update && is_of(&written, load)
        };
        let loads: Vec<&Access> = loads.iter().filter(is_read).collect();
        let repeats = self.outside == 0 && self.repeats(blocks);
        let runs = |load: &Access| self.runs_for(judge, load, &written, repeats);
        (!loads.is_empty()).then(|| all_of(loads.into_iter().map(runs)))
    }

    /// The stores of an instance, to memory that others see.
    pub(super) fn written(&self) -> Vec<(&Buffer, &[Expr])> {
        let mut found = Vec::new();
        self.parts.body.walk(&mut |stmt| {
            if let StmtKind::Store { buffer, indices, .. } = &stmt.kind {
                found.push((buffer, indices.as_slice()));
            }
        });
        let own = declared(self.parts.body);
        found.retain(|(buffer, _)| !own.iter().any(|other| other.aliases(buffer)));
        found
    }

    /// The instance of the element that a load reads runs: in the same iteration of the loops that the reader shares with the block, or, if
    /// it computes the same whenever it runs, in the same iteration of the loops around the allocation, each of which has memory of its own.
    fn runs_for(&self, judge: &Judge, load: &Access, written: &[(&Buffer, &[Expr])], repeats: bool) -> Decision {
        let in_round = self.runs_beside(judge, load, written);
        if in_round.0.is_proved() || !repeats {
            return in_round;
        }
        let around = loops_around(&self.func.body, &load.buffer);
        let kept = |(var, value): &(Var, Expr)| {
            (var.clone(), if around.contains(var) { Expr::from(var) } else { value.clone() })
        };
        let anywhere: Vec<(Var, Expr)> = self.claim.anywhere.iter().map(kept).collect();
        let anywhere = self.runs_in(judge, load, written, (0, &anywhere));
        if anywhere.0.is_proved() { anywhere } else { in_round }
    }

    /// The number of steps that the ways to a block and to a load share.
    pub(super) fn shared_with(&self, load: &Access) -> usize {
        // Of memory that changes, equal texts are two questions.
        let is_shared = |(one, two): &(&Step, &Step)| one == two && !one.exprs().any(|expr| self.changes(expr));
        self.path.steps.iter().zip(load.path.steps.iter()).take_while(is_shared).count()
    }

    /// The instance of the element that a load reads runs in the same iteration of the loops that both share.
    pub(super) fn runs_beside(&self, judge: &Judge, load: &Access, written: &[(&Buffer, &[Expr])]) -> Decision {
        let common = self.shared_with(load);
        let values = if common >= self.alone() { &self.claim.own } else { &self.claim.anywhere };
        self.runs_in(judge, load, written, (common, values))
    }

    /// The instance of the element that a load reads runs in the claimed iteration of the loops from step `first` on.
    fn runs_in(
        &self,
        judge: &Judge,
        load: &Access,
        written: &[(&Buffer, &[Expr])],
        (first, claim): (usize, &[(Var, Expr)]),
    ) -> Decision {
        let is_axis = |var: &Var| self.block.axes.iter().any(|axis| axis.var == *var);
        let is_known = |index: &Expr| matches!(index, Expr::Var(var) if is_axis(var)) || index.as_const_int().is_some();
        let by_axes = |(buffer, indices): &&(&Buffer, &[Expr])| **buffer == load.buffer && indices.iter().all(is_known);
        // Stores to other elements of the buffer would be those of other instances.
        let mut others = written.iter().filter(|(buffer, _)| buffer.aliases(&load.buffer));
        let found = others.next().filter(by_axes).filter(|first| others.all(|other| other == *first));
        let Some((_, indices)) = found else {
            return unsupported(format!("which instance writes `{}` is not known", load.text));
        };
        let needed = match self.needed(first, claim) {
            Ok(needed) => needed,
            Err(reason) => return unsupported(reason),
        };
        let mut path = load.path.clone();
        let mut element = Substitution::default();
        for (index, at) in indices.iter().zip(&load.indices) {
            match index {
                Expr::Var(var) if element.get(var).is_none() => element.insert(var, at.clone()),
                // Another element than the block writes.
                _ => path.steps.push(Step::Guard(same(&element.apply(index), at), true)),
            }
        }
        let around = loops_around(&self.func.body, &load.buffer);
        // A domain that differs from loop to loop: what is not in this one may be in that of another iteration.
        let moves = |var: &Var| {
            let is_of_call = self.path.symbols.contains(var) || self.path.scalars.contains(var);
            !(is_axis(var) || is_of_call || around.contains(var))
        };
        for axis in &self.block.axes {
            let (min, extent) = (element.apply(&axis.min), element.apply(&axis.extent));
            let moving = axis.min.vars().into_iter().chain(axis.extent.vars()).find(moves);
            if let Some(at) = element.get(&axis.var) {
                path.steps.extend(moving.is_none().then(|| Step::Guard(within(at, &min, &extent), true)));
                continue;
            }
            if let Some(var) = moving {
                return unsupported(format!("the domain of axis {} depends on `{var}`", axis.var));
            }
            // The reader may be in the block, where the axis has a value.
            let any = Var::new(axis.var.name(), axis.var.dtype());
            element.insert(&axis.var, Expr::from(&any));
            path.steps.push(Step::Loop(any, min, extent));
        }
        // The reader may run where the block does not.
        let outside = needed.outside.iter().flat_map(|step| step.conditions(&element).unwrap_or_default());
        let goals: Vec<Expr> = outside.chain(needed.goals.iter().map(|cond| element.apply(cond))).collect();
        let mut possible = path.clone();
        possible.steps.extend(self.possible(judge).into_iter().map(|cond| Step::Guard(element.apply(&cond), true)));
        let predicate = needed.predicate.map(|cond| element.apply(&cond));
        let goals = goals.iter().map(|cond| self.holds(judge, &path, cond));
        all_of(goals.chain(predicate.iter().map(|cond| self.holds(judge, &possible, cond))))
    }
}

/// Puts a value in the place of a number.
struct Cut<'a> {
    number: &'a Expr,
    value: &'a Expr,
}

impl Rewrite for Cut<'_> {
    type Error = Infallible;

    fn expr(&mut self, expr: &Expr) -> Result<Expr, Infallible> {
        if expr == self.number { Ok(self.value.clone()) } else { self.expr_children(expr) }
    }
}

/// Whether an access is one of memory that these stores write.
fn is_of(written: &[(&Buffer, &[Expr])], access: &Access) -> bool {
    written.iter().any(|(buffer, _)| buffer.aliases(&access.buffer))
}

/// The loops around the allocation of a buffer each of whose iterations has memory of its own: shared memory belongs to all threads.
pub(super) fn loops_around(stmt: &Stmt, buffer: &Buffer) -> Vec<Var> {
    let is_shared =
        |kind: ForKind| matches!(kind, ForKind::ThreadBinding(ThreadTag::Thread(_))) && buffer.scope == Scope::Shared;
    let mut found = Vec::new();
    stmt.walk(&mut |stmt| {
        if let StmtKind::For(inner) = &stmt.kind
            && !is_shared(inner.kind)
            && allocates(&inner.body, buffer)
        {
            found.push(inner.var.clone());
        }
    });
    found
}

/// The elements that a function reads.
pub(super) fn loads(func: &PrimFunc) -> Vec<Access> {
    let mut found = Vec::new();
    for site in sites(func) {
        found.extend(loads_at(&site));
    }
    found
}

/// The elements that a statement itself reads.
pub(super) fn loads_at(site: &Site<'_>) -> Vec<Access> {
    let mut found = accesses(site);
    // The element that is stored to comes last.
    if matches!(site.stmt.kind, StmtKind::Store { .. }) {
        found.pop();
    }
    found
}

/// Whether a statement allocates the memory of a buffer.
pub(super) fn allocates(stmt: &Stmt, buffer: &Buffer) -> bool {
    let mut found = false;
    stmt.walk(&mut |stmt| {
        found |= matches!(&stmt.kind, StmtKind::Allocate { buffer: own, .. } if own.aliases(buffer));
    });
    found
}

/// An instance for which no iteration was found; that does not show that there is none.
fn doubted(text: &str, values: Vec<(String, i128)>, method: Method) -> Decision {
    let at = values.iter().map(|(name, value)| format!("{name} = {value}")).collect::<Vec<_>>().join(", ");
    let text = format!("no iteration was found that runs the instance of {at}: {text}");
    (Verdict::Unknown(Reason::new(ReasonKind::Differs, text).seen_at(values)), method)
}
