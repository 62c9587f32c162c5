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
//! domain as it is and run the rest no more. An instance that a condition leaves out and that would write outside of a buffer is none. So each
//! element that is read has to be one whose instance runs, in the same round where the reader is in it, and anywhere otherwise. Other
//! instances that do not run are a reason to doubt the block, and no error: the copy that TVM's `cache_write` makes of a buffer that is
//! written in part has the whole buffer for its domain.

use std::convert::Infallible;

use tilewright_ir::visit::{Rewrite, Substitution};
use tilewright_ir::{Buffer, Expr, PrimFunc, Stmt, StmtKind, Var, sabotage};

use super::{BlockClaim, Placed, Through, same, within};
use crate::access::{Access, accesses};
use crate::judge::{Decision, Judge, all_of, unsupported};
use crate::method::Method;
use crate::path::{Path, Step, is_premise, sites};
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
    pub(super) fn whole(&self, judge: &Judge, claim: &BlockClaim) -> Decision {
        if let Some(through) = claim.through.as_ref().map(|through| self.all_through(judge, through))
            && through.0.is_proved()
        {
            return through;
        }
        let all = self.all_anywhere(judge, &claim.anywhere);
        if all.0.is_proved() {
            return self.reached_by_readers(judge, &claim.anywhere, all);
        }
        match self.read_ones(judge, claim) {
            Some(needed) if needed.0.is_proved() => needed,
            Some((Verdict::Refuted(found), method)) => doubted(&found.text, found.named_values(), method),
            _ => match all {
                (Verdict::Refuted(found), method) => doubted(&found.text, found.named_values(), method),
                open => open,
            },
        }
    }

    /// Whoever reads what the block writes runs only where the block runs, whose instances all run.
    fn reached_by_readers(&self, judge: &Judge, claim: &[(Var, Expr)], all: Decision) -> Decision {
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
        all_of(std::iter::once(all).chain(reached))
    }

    /// Whether an access is one of the block.
    fn is_inside(&self, access: &Access) -> bool {
        let is_axis = |var: &Var| self.block.axes.iter().any(|axis| axis.var == *var);
        access.path.steps.iter().any(|step| matches!(step, Step::Let(var, _) if is_axis(var)))
    }

    /// Whether the block writes memory that each iteration of a loop has its own of: what another iteration computes is not there.
    fn has_own_memory(&self) -> bool {
        self.written().iter().any(|(buffer, _)| !loops_around(&self.func.body, buffer).is_empty())
    }

    /// Each instance of the domain runs somewhere.
    fn all_anywhere(&self, judge: &Judge, claim: &[(Var, Expr)]) -> Decision {
        if self.has_own_memory() {
            return unsupported("each iteration has memory of its own".to_owned());
        }
        let needed = match self.needed(0, claim) {
            Ok(needed) => needed,
            Err(reason) => return unsupported(reason),
        };
        let mut path = Path { steps: needed.outside.into_iter().collect(), ..self.path.clone() };
        // The domain of an axis may depend on a loop whose value is another axis. Of other loops nothing is assumed here.
        let mut known = Substitution::default();
        for (axis, value) in self.axes() {
            path.steps.push(Step::Loop(axis.var.clone(), known.apply(&axis.min), known.apply(&axis.extent)));
            if let Expr::Var(counter) = value {
                known.insert(counter, Expr::from(&axis.var));
            }
        }
        // What `T.where` leaves out may be what would write outside of a buffer.
        let mut written = path.clone();
        written.steps.extend(self.stores_inside());
        let ask = |cond: &Expr, path: &Path| self.holds(judge, path, cond);
        let goals = needed.goals.iter().map(|cond| ask(cond, &path));
        all_of(goals.chain(needed.predicate.iter().map(|cond| ask(cond, &written))))
    }

    /// Each instance of the domain runs somewhere: its number is in range and has its axes, and each number in range is that of an iteration.
    fn all_through(&self, judge: &Judge, claim: &Through) -> Decision {
        if self.has_own_memory() {
            return unsupported("each iteration has memory of its own".to_owned());
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

    /// Conditions that the elements which an instance stores to are in their buffers. What writes outside of them is no instance.
    fn stores_inside(&self) -> Vec<Step> {
        let is_axis = |var: &Var| self.block.axes.iter().any(|axis| axis.var == *var);
        let is_of_call = |var: &Var| self.path.symbols.contains(var) || self.path.scalars.contains(var);
        let is_known =
            |index: &Expr| !index.reads_memory() && index.vars().iter().all(|var| is_axis(var) || is_of_call(var));
        let mut found = Vec::new();
        let mut stores = Vec::new();
        always(self.parts.body, &mut stores);
        for (buffer, indices) in stores {
            let known =
                indices.iter().zip(&buffer.shape).filter(|(index, _)| index.dtype().is_scalar() && is_known(index));
            found.extend(known.map(|(index, extent)| {
                let zero = Expr::int_of(0, index.dtype().scalar).unwrap_or_else(|| index.clone() - index.clone());
                Step::Guard(within(index, &zero, extent), true)
            }));
        }
        found
    }

    /// The conditions under which the claimed iteration runs, and that its instance is the one of the axes; of the steps from `first` on.
    fn needed(&self, first: usize, claim: &[(Var, Expr)]) -> Result<Needed, String> {
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
                // What is read from memory that changes may let some iterations run and others not.
                Step::Guard(cond, _)
                    if first == 0
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
    fn read_ones(&self, judge: &Judge, claim: &BlockClaim) -> Option<Decision> {
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
        (!loads.is_empty()).then(|| all_of(loads.into_iter().map(|load| self.runs_for(judge, load, &written, claim))))
    }

    /// The stores of an instance.
    fn written(&self) -> Vec<(&Buffer, &[Expr])> {
        let mut found = Vec::new();
        self.parts.body.walk(&mut |stmt| {
            if let StmtKind::Store { buffer, indices, .. } = &stmt.kind {
                found.push((buffer, indices.as_slice()));
            }
        });
        found
    }

    /// The instance of the element that a load reads runs: in the round of the reader if it is in it, or else in the same iteration of the
    /// loops around the allocation, each of which has memory of its own.
    fn runs_for(&self, judge: &Judge, load: &Access, written: &[(&Buffer, &[Expr])], claim: &BlockClaim) -> Decision {
        // Of memory that changes, equal texts are two questions.
        let is_shared = |(one, two): &(&Step, &Step)| one == two && !one.exprs().any(|expr| self.changes(expr));
        let common = self.path.steps.iter().zip(load.path.steps.iter()).take_while(is_shared).count();
        let (alone, around) = (self.alone(), loops_around(&self.func.body, &load.buffer));
        let in_round = || self.runs_in(judge, load, written, (alone, &claim.own));
        if common >= alone && around.is_empty() {
            return in_round();
        }
        let kept = |(var, value): &(Var, Expr)| {
            (var.clone(), if around.contains(var) { Expr::from(var) } else { value.clone() })
        };
        let anywhere: Vec<(Var, Expr)> = claim.anywhere.iter().map(kept).collect();
        let anywhere = self.runs_in(judge, load, written, (0, &anywhere));
        if anywhere.0.is_proved() || common < alone { anywhere } else { in_round() }
    }

    /// The instance of the element that a load reads runs in the claimed iteration of the loops from step `first` on.
    fn runs_in(
        &self,
        judge: &Judge,
        load: &Access,
        written: &[(&Buffer, &[Expr])],
        (first, claim): (usize, &[(Var, Expr)]),
    ) -> Decision {
        let is_axis =
            |index: &Expr| matches!(index, Expr::Var(var) if self.block.axes.iter().any(|axis| axis.var == *var));
        let by_axes = |(buffer, indices): &&(&Buffer, &[Expr])| {
            **buffer == load.buffer && indices.iter().all(|index| is_axis(index) || index.as_const_int().is_some())
        };
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
        for axis in &self.block.axes {
            let (min, extent) = (element.apply(&axis.min), element.apply(&axis.extent));
            if let Some(at) = element.get(&axis.var) {
                path.steps.push(Step::Guard(within(at, &min, &extent), true));
                continue;
            }
            // The reader may be in the block, where the axis has a value.
            let any = Var::new(axis.var.name(), axis.var.dtype());
            element.insert(&axis.var, Expr::from(&any));
            path.steps.push(Step::Loop(any, min, extent));
        }
        // The reader may run where the block does not.
        let outside = needed.outside.iter().flat_map(|step| step.conditions(&element).unwrap_or_default());
        let goals = outside.chain(needed.goals.iter().chain(&needed.predicate).map(|cond| element.apply(cond)));
        let goals: Vec<Expr> = goals.collect();
        all_of(goals.iter().map(|cond| self.holds(judge, &path, cond)))
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

/// The stores that run whenever a statement runs.
fn always<'s>(stmt: &'s Stmt, found: &mut Vec<(&'s Buffer, &'s [Expr])>) {
    match &stmt.kind {
        StmtKind::Store { buffer, indices, .. } => found.push((buffer, indices.as_slice())),
        StmtKind::For(_) | StmtKind::If { .. } => {}
        _ => stmt.children().for_each(|child| always(child, found)),
    }
}

/// The loops around the allocation of a buffer.
fn loops_around(stmt: &Stmt, buffer: &Buffer) -> Vec<Var> {
    let mut found = Vec::new();
    stmt.walk(&mut |stmt| {
        if let StmtKind::For(inner) = &stmt.kind
            && allocates(&inner.body, buffer)
        {
            found.push(inner.var.clone());
        }
    });
    found
}

/// The elements that a function reads.
fn loads(func: &PrimFunc) -> Vec<Access> {
    let mut found = Vec::new();
    for site in sites(func) {
        let mut all = accesses(&site);
        if matches!(site.stmt.kind, StmtKind::Store { .. }) {
            all.pop();
        }
        found.extend(all);
    }
    found
}

/// Whether a statement allocates the memory of a buffer.
fn allocates(stmt: &Stmt, buffer: &Buffer) -> bool {
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
