//! Whether a program is another one whose iterations were put into another order: loops split, fused, interchanged, tiled,
//! unrolled, peeled, shifted, skewed or distributed, in any combination.
//!
//! An *instance* is a store together with the values of the loops around it. The claim says for each store after which store
//! before it is, and which instance (`forward`), and the other way round (`back`). Both programs then leave the same memory, and
//! each instance reads the same values, if
//!
//! ```text
//! iteration    forward leads into the loops and conditions before; back undoes it; two stores after never are one instance
//!              before; each instance before is one after
//! simulation   the element that is stored, and the value, are those of the instance before
//! order        two instances that touch the same element, one of them writing it, run in the same order in both
//! ```
//!
//! This is the reordering theorem of polyhedral compilation (Feautrier; Verdoolaege, Janssens and Bruynooghe 2009). By
//! induction over the order before, each instance finds in memory what it found before, as the last instance that wrote an
//! element is the same one. It holds if loops and conditions depend on parameters, loop variables and memory that neither writes, neither
//! program leaves its buffers, and iterations that run at once do not race; these are obligations of both programs. What
//! touches the same element is asked of the indices before, since buffers that moved did so by an injective map.

mod accepted;
mod conditions;
pub(crate) mod order;
mod statement;

use rayon::prelude::*;
use tilewright_ir::visit::Substitution;
use tilewright_ir::{
    BinaryOp, DataType, Evidence, Expr, PrimFunc, Reordering, SharedExpr, StoreOrigin, Traps, Var, sabotage,
};

pub(crate) use conditions::{as_before, in_terms_of_before, is_known};
pub(crate) use statement::is_kept;
pub use statement::is_small;
pub use statement::{Program, Statement, domain, program};

use crate::access::Base;
use crate::claims::{Relation, parameters};
use crate::finder;
use crate::judge::{Decision, Judge, Report, Side, all_of, suspected, unsupported};
use crate::lanes::renamed;
use crate::lockstep::{Goal, Lockstep};
use crate::obligation::Obligation;
use crate::pass::{decide_goal, equal, fit, holds};
use crate::path::{Path, Step};

pub(crate) fn equals(a: Expr, b: Expr) -> Expr {
    Expr::binary(BinaryOp::Eq, a, b)
}

/// All of the conditions.
pub(crate) fn all(parts: impl IntoIterator<Item = Expr>) -> Expr {
    parts.into_iter().reduce(Expr::and).unwrap_or_else(|| Expr::bool(true))
}

/// One of the conditions.
pub(crate) fn any(parts: impl IntoIterator<Item = Expr>) -> Expr {
    let or = |a, b| Expr::binary(BinaryOp::Or, a, b);
    parts.into_iter().reduce(or).unwrap_or_else(|| Expr::bool(false))
}

/// A store after, the store before that it is said to be, and what is said of their instances.
pub(crate) struct Moved<'a> {
    pub(crate) before: &'a Statement,
    pub(crate) after: Statement,
    /// The loops before in terms of those after.
    pub(crate) forward: Substitution,
    /// The loops after in terms of those before.
    pub(crate) back: Substitution,
}

/// Two programs and the claim about them.
pub(crate) struct Reordered<'a> {
    judge: &'a Judge,
    evidence: &'a Evidence,
    base: &'a Base<'a>,
    before: &'a Program,
    pub(crate) moved: Vec<Moved<'a>>,
    /// Whether it is an obligation, or a premise, that the program before stays in its buffers.
    stays_inside: bool,
}

impl Judge {
    /// Decides whether a program has the instances of another one in an order that does not matter: its stores one by one, as
    /// claimed, with the obligations of the program before by itself.
    pub(crate) fn check_reordering(
        &self,
        (before, after): (&PrimFunc, &PrimFunc),
        evidence: &Evidence,
        claim: &Reordering,
        base: &Base<'_>,
    ) -> Vec<Report> {
        let stuck = |reason: String| vec![Self::report(Obligation::Simulation, "loops", || unsupported(reason))];
        let (first, second) = match (program(before), program(after)) {
            (Ok(first), Ok(second)) => (first, second),
            (Err(reason), _) | (_, Err(reason)) => return stuck(reason),
        };
        let second = match as_before(&first, second, &Relation::new(evidence)) {
            Ok(second) => second,
            Err(reason) => return stuck(reason),
        };
        // A loop that allocates has new memory in each iteration; what was written in another one is lost.
        if second.allocated.iter().any(|(_, loops)| *loops > 0) {
            return stuck("the program after allocates memory inside a loop".into());
        }
        let whole = match Reordered::new(self, (&first, &second), evidence, claim, base) {
            Ok(whole) => Reordered { stays_inside: true, ..whole },
            Err(reason) => return stuck(reason),
        };
        let relation = Relation::new(evidence);
        let mut reports: Vec<Report> = self.check_accepted((before, &first), (after, &second)).into_iter().collect();
        for goal in parameters(before, after, &relation) {
            reports
                .push(Self::report(Obligation::Simulation, "parameters", || decide_goal(self, evidence, base, &goal)));
        }
        reports.extend(self.in_parallel(|| whole.decide(&relation)));
        let alone = self.given(&[Obligation::Bounds], self.check_program_on(Side::Before, before));
        reports.extend(self.of_before(alone));
        reports
    }
}

/// The stores after with their claims, if these fit the programs. A store with several origins stands here once for each, under
/// the conditions that say which one it is.
fn moved<'a>(before: &'a Program, after: &'a Program, claim: &Reordering) -> Result<Vec<Moved<'a>>, String> {
    if claim.stores.len() != after.statements.len() {
        let (claimed, stores) = (claim.stores.len(), after.statements.len());
        return Err(format!("{claimed} stores are claimed, and the program after has {stores}"));
    }
    let mut found = Vec::new();
    for (whole, origins) in after.statements.iter().zip(&claim.stores) {
        let mut rest = whole.clone();
        let last = origins.len().checked_sub(1).ok_or("a store without an origin is claimed")?;
        for (position, origin) in origins.iter().enumerate() {
            let mut after = rest.clone();
            match &origin.when {
                None if position == last => {}
                Some(when) if position < last => {
                    understood(when, &whole.loops(), &whole.path)?;
                    after.path.steps.push(Step::Guard(when.clone(), true));
                    rest.path.steps.push(Step::Guard(when.clone(), false));
                }
                Some(_) | None => return Err("the origins of a store do not cover its iterations".into()),
            }
            found.push(one(before, after, origin)?);
        }
    }
    Ok(found)
}

/// A store after, and the one before that it is claimed to be.
fn one<'a>(before: &'a Program, after: Statement, origin: &StoreOrigin) -> Result<Moved<'a>, String> {
    let before = before.statements.get(origin.before).ok_or("a store that there is not is claimed")?;
    let (x, y) = (after.loops(), before.loops());
    let forward = values(&y, &origin.forward, &x, &after.path)?;
    let back = values(&x, &origin.back, &y, &before.path)?;
    Ok(Moved { before, after, forward, back })
}

/// A claimed condition has a value wherever it is looked at, since it becomes a premise: it divides by constants alone.
pub(crate) fn understood(expr: &Expr, from: &[Var], path: &Path) -> Result<(), String> {
    let known = |var: &Var| from.contains(var) || path.symbols.contains(var) || path.scalars.contains(var);
    if is_partial(expr) || expr.reads_memory() || expr.dtype() != DataType::BOOL || !expr.vars().iter().all(known) {
        return Err(format!("`{expr}` is claimed of loops, and does not follow from them in all cases"));
    }
    Ok(())
}

/// Whether an expression divides or shifts by what is no positive constant, so that it may have no value.
pub(crate) fn is_partial(expr: &Expr) -> bool {
    let mut found = false;
    expr.walk(&mut |part| {
        if let Expr::Binary(op, _, by) = part {
            found |= op.traps() != Traps::Never && by.as_const_int().is_none_or(|by| by <= 0);
        }
    });
    found
}

/// Values for the loop variables `vars`, in the types of these, in terms of the loop variables `from` and of parameters.
pub(crate) fn values(vars: &[Var], values: &[Expr], from: &[Var], path: &Path) -> Result<Substitution, String> {
    if vars.len() != values.len() {
        return Err(format!("{} values are claimed for {} loops", values.len(), vars.len()));
    }
    let known = |var: &Var| from.contains(var) || path.symbols.contains(var) || path.scalars.contains(var);
    let is_integer = |value: &Expr| value.dtype().is_scalar() && value.dtype().scalar.is_integer();
    let wrong = |value: &&Expr| value.reads_memory() || !is_integer(value) || !value.vars().iter().all(known);
    if let Some(value) = values.iter().find(wrong) {
        return Err(format!("the value `{value}` is claimed for a loop, and does not follow from the other loops"));
    }
    let typed = vars.iter().zip(values).map(|(var, value)| {
        let ty = var.dtype();
        if value.dtype() == ty { value.clone() } else { Expr::Cast(ty, SharedExpr::new(value.clone())) }
    });
    Ok(Substitution::new(vars, typed))
}

impl<'a> Reordered<'a> {
    /// The stores of two programs with what is claimed of them.
    ///
    /// # Errors
    /// The claim does not fit the programs.
    pub(crate) fn new(
        judge: &'a Judge,
        (before, after): (&'a Program, &'a Program),
        evidence: &'a Evidence,
        claim: &Reordering,
        base: &'a Base<'a>,
    ) -> Result<Self, String> {
        Ok(Self { judge, evidence, base, before, moved: moved(before, after, claim)?, stays_inside: false })
    }

    /// The reports of one kind of condition after the other, until one is not proved: the later ones cost more.
    fn decide(&self, relation: &Relation<'_>) -> Vec<Report> {
        let mut reports = self.instances(relation);
        if reports.iter().all(|report| report.verdict.is_proved()) {
            reports.par_extend(self.moved.par_iter().map(|moved| {
                let subject = format!("{} and what it conflicts with", moved.after.subject);
                let decide = || suspected(self.ordered(moved));
                Judge::report(Obligation::Order, subject, decide).placed(Side::After, moved.after.span)
            }));
        }
        reports
    }

    /// The reports about instances, whatever their order: each after is one before, with the same value, and each before is one
    /// after.
    pub(crate) fn instances(&self, relation: &Relation<'_>) -> Vec<Report> {
        let mut reports: Vec<Report> =
            self.moved.par_iter().flat_map(|moved| self.one_by_one(moved, relation)).collect();
        let is_open = |reports: &[Report]| reports.iter().any(|report| !report.verdict.is_proved());
        if !is_open(&reports) {
            reports.par_extend(self.before.statements.par_iter().map(|before| {
                let subject = format!("{} (each iteration once)", before.subject);
                let decide = || suspected(all_of([self.apart(before), self.onto(before)]));
                Judge::report(Obligation::Iteration, subject, decide).placed(Side::Before, before.span)
            }));
        }
        reports
    }

    /// What is asked of one store after by itself.
    fn one_by_one(&self, moved: &Moved<'_>, relation: &Relation<'_>) -> [Report; 2] {
        let subject = moved.after.subject.clone();
        // Of a store that no instance comes to, everything holds.
        let or_never = |found: Decision| {
            if found.0.is_proved() {
                return found;
            }
            let never = holds(self.judge, &moved.after.path, &Expr::bool(false));
            if never.0.is_proved() { never } else { found }
        };
        let into = || suspected(or_never(self.into(moved)));
        let into = Judge::report(Obligation::Iteration, subject.clone(), into);
        let same = || suspected(or_never(self.same(moved, relation)));
        let same = Judge::report(Obligation::Simulation, subject, same);
        [into, same]
            .map(|report| report.placed(Side::After, moved.after.span).compared_with(Side::Before, moved.before.span))
    }

    /// An instance after is one before, and no other instance of the same store is that one.
    fn into(&self, moved: &Moved<'_>) -> Decision {
        let path = &moved.after.path;
        let inside = domain(moved.before, &moved.forward);
        let undone: Vec<(Expr, Expr)> =
            moved.after.loops().iter().map(|var| undone(var, &moved.back, &moved.forward)).collect();
        let skipped = sabotage::on("reorder-leaves-domain");
        let parts = inside.iter().filter(|_| !skipped).map(|part| holds(self.judge, path, part));
        all_of([self.has_values(moved)].into_iter().chain(parts).chain([equal(self.judge, path, &undone)]))
    }

    /// The claimed values of the loops before may stand in premises: where they divide by what is no constant, they have a value.
    pub(crate) fn may_be_assumed(&self, moved: &Moved<'_>) -> Decision {
        let loops = moved.before.loops();
        let is_partial = loops.iter().filter_map(|var| moved.forward.get(var)).any(is_partial);
        if is_partial { self.has_values(moved) } else { all_of([]) }
    }

    /// The claimed values of the loops before are what the integers say.
    fn has_values(&self, moved: &Moved<'_>) -> Decision {
        let values: Vec<Expr> = moved.before.loops().iter().map(|var| moved.forward.apply(&Expr::from(var))).collect();
        fit(&moved.after.path, &values, self.base)
    }

    /// Two stores after that are the same store before have no instance in common.
    fn apart(&self, before: &Statement) -> Decision {
        let copies: Vec<&Moved<'_>> = self.moved.iter().filter(|moved| std::ptr::eq(moved.before, before)).collect();
        let pairs =
            copies.iter().enumerate().flat_map(|(place, two)| copies[..place].iter().map(move |one| (one, two)));
        let values =
            if copies.len() > 1 { all_of(copies.iter().map(|moved| self.may_be_assumed(moved))) } else { all_of([]) };
        let apart = pairs.map(|(one, two)| {
            let (mut path, renames) = both(&one.after, &two.after);
            for var in before.loops() {
                let var = Expr::from(&var);
                let same = equals(one.forward.apply(&var), renames.apply(&two.forward.apply(&var)));
                path.steps.push(Step::Guard(same, true));
            }
            holds(self.judge, &path, &Expr::bool(false))
        });
        all_of([values].into_iter().chain(apart))
    }

    /// Each instance before is one after: the one that `back` names, of one of the stores.
    fn onto(&self, before: &Statement) -> Decision {
        if sabotage::on("reorder-loses-instances") {
            return all_of([]);
        }
        let copies = self.moved.iter().filter(|moved| std::ptr::eq(moved.before, before));
        let reached: Vec<Vec<Expr>> = copies
            .map(|moved| {
                let mut parts = domain(&moved.after, &moved.back);
                let back =
                    before.loops().iter().map(|var| undone(var, &moved.forward, &moved.back)).collect::<Vec<_>>();
                parts.extend(
                    back.into_iter().filter(|(var, there)| var != there).map(|(var, there)| equals(var, there)),
                );
                parts
            })
            .collect();
        let path = if self.stays_inside { inside(before) } else { before.path.clone() };
        match reached.as_slice() {
            [only] => all_of(only.iter().map(|part| holds(self.judge, &path, part))),
            several => holds(self.judge, &path, &any(several.iter().cloned().map(all))),
        }
    }

    /// The same element and the same value.
    fn same(&self, moved: &Moved<'_>, relation: &Relation<'_>) -> Decision {
        let (before, after) = (moved.before, &moved.after);
        let index: Vec<Expr> = before.indices.iter().map(|index| moved.forward.apply(index)).collect();
        let lanes = |indices: &[Expr]| indices.iter().any(|index| !index.dtype().is_scalar());
        if lanes(&before.indices) || lanes(&after.indices) {
            return unsupported("vectors are stored");
        }
        let Some(image) = relation.image(&before.buffer, &after.buffer, &index) else {
            let (before, after) = (&before.buffer, &after.buffer);
            return unsupported(format!(
                "`{before}` is written before and `{after}` after, and nothing is claimed of them"
            ));
        };
        if before.buffer.dtype != after.buffer.dtype || image.len() != after.indices.len() {
            return unsupported(format!("`{}` and `{}` differ in type or rank", before.buffer, after.buffer));
        }
        let mut pairs: Vec<(Expr, Expr)> = image.into_iter().zip(after.indices.iter().cloned()).collect();
        let is_loaded = |(old, new): &(Expr, Expr)| old.reads_memory() || new.reads_memory();
        // What is loaded for an index has to be loaded before, too.
        let mut values: Vec<(Expr, Expr)> = pairs.extract_if(.., |pair| is_loaded(pair)).collect();
        values.push((moved.forward.apply(&before.value), after.value.clone()));
        let goals = values.iter().flat_map(|(old, new)| {
            let along = finder::values(old, new, after.path.clone(), relation);
            Lockstep::compare([old, new], after.path.clone(), relation, &along)
        });
        let goals: Vec<Goal> = goals.collect();
        let goals = goals.iter().map(|goal| decide_goal(self.judge, self.evidence, self.base, goal));
        all_of([equal(self.judge, &after.path, &pairs)].into_iter().chain(goals))
    }
}

/// The way to a store of the program before. Where memory says how often a loop runs, the elements that the store touches in any case
/// are inside of their buffers: that the program before leaves none is an obligation of its own, or a premise.
fn inside(before: &Statement) -> Path {
    let mut path = before.path.clone();
    let asks = |step: &Step| matches!(step, Step::Loop(_, _, extent) if extent.reads_memory());
    if !path.steps.iter().any(asks) {
        return path;
    }
    for touch in before.always_touches() {
        for (index, extent) in touch.indices.iter().zip(&touch.buffer.shape) {
            if index.dtype().is_scalar() && !index.reads_memory() && !is_partial(index) && !extent.reads_memory() {
                let Some(zero) = Expr::int_of(0, index.dtype().scalar) else { continue };
                path.steps.push(Step::Guard(Expr::binary(BinaryOp::Le, zero, index.clone()), true));
                path.steps.push(Step::Guard(index.clone().lt(extent.clone()), true));
            }
        }
    }
    path
}

/// A loop variable, and what becomes of it through one substitution after the other.
fn undone(var: &Var, last: &Substitution, first: &Substitution) -> (Expr, Expr) {
    let var = Expr::from(var);
    let there = first.apply(&last.apply(&var));
    (var, there)
}

/// The way to two instances at once, and the names of the loops of the second one.
pub(crate) fn both(one: &Statement, two: &Statement) -> (Path, Substitution) {
    let (other, renames) = renamed(&two.path);
    let mut path = one.path.clone();
    for step in &other.steps {
        path.steps.push(step.clone());
    }
    (path, renames)
}
