//! Whether two programs compute equal definitions: reductions in another order, split, or in several stages.
//!
//! ```text
//! before: for i, k: C[i] += A[i, k]              C[i] = C.old[i] + sum over k of A[i, k]
//! after:  for i, ko, ki: t[i, ki] += A[i, ..]    t[i, ki] = sum over ko of A[i, 4 * ko + ki] if 4 * ko + ki < n
//!         for i, ki: C[i] += t[i, ki]            C[i] = C.old[i] + sum over ki of t[i, ki]
//! ```
//!
//! 1. The program before has the values of the nests of its definition ([`program_of`]), and the nests of the definition after have those
//!    of the program after, as [`crate::flow`] decides. Both programs assert the same, and read the same parameters first.
//! 2. An element is combined of *summands* (`summands`): values, each for some iterations of the reduced axes. Two elements are
//!    equal if the iterations of the summands after are those of the summands before, each of them once, with the same values:
//!
//! ```text
//! iteration    forward leads into the loops and conditions before; back undoes it; each iteration before is one after
//! simulation   the value is that of the iteration before
//! ```
//!
//! These are the obligations of [`crate::reorder`] without the order, as integers may be combined in any order. Of floats that is a
//! premise, unless the order is the same. A tensor that is compared by itself stands under a name in all that comes behind it: by
//! induction over the stages after, its elements are equal.

mod elements;
mod program;
mod summands;

use tilewright_ir::{
    Buffer, BufferChange, BufferClaim, Comparison, Definition, Evidence, Expr, IndexMap, Kept, Lifted, Lifting,
    Matching, PrimFunc, Reordering, Stage, StoreOrigin, TensorPair, sabotage,
};

pub use elements::{Elements, path, statement};
use program::is_read;
pub use program::program_of;
pub use summands::{Named, Stuck, Summand, Summands, View};
use summands::{is_commutative, not_well_formed};

use crate::access::Base;
use crate::claims::{Relation, parameters};
use crate::door::inspected;
use crate::judge::{Judge, Place, Report, Side, suspected, unsupported};
use crate::method::Method;
use crate::obligation::Obligation;
use crate::pass::decide_goal;
use crate::reorder::{Program, Reordered, as_before, is_partial, program};

impl Judge {
    /// Decides whether two programs compute equal definitions, as claimed.
    pub(crate) fn check_lifting(
        &self,
        (before, after): (&PrimFunc, &PrimFunc),
        evidence: &Evidence,
        claim: &Lifting,
        base: &Base<'_>,
    ) -> Vec<Report> {
        let relation = Relation::new(evidence);
        let params = parameters(before, after, &relation);
        let mut reports: Vec<Report> = params
            .iter()
            .map(|goal| Self::report(Obligation::Simulation, "parameters", || decide_goal(self, evidence, base, goal)))
            .collect();
        match (program(before), program(after)) {
            (Ok(first), Ok(second)) => {
                reports.extend(self.check_accepted((before, &first), (after, &second)));
                if let Err(reason) = as_before(&first, second, &relation) {
                    return stuck("the programs", reason);
                }
            }
            (Err(reason), _) | (_, Err(reason)) => return stuck("the programs", reason),
        }
        reports.push(Self::report(Obligation::Simulation, "the program after asks no more of its caller", || {
            match asks_more(evidence, claim) {
                Some(reason) => unsupported(reason),
                None => (inspected(), Method::Inspection("traps, and parameters that are read first")),
            }
        }));
        reports.extend(self.check_lifted(Side::Before, before, &claim.before));
        reports.extend(self.check_lifted(Side::After, after, &claim.after));
        let all = with_kept(evidence, [&claim.before.kept, &claim.after.kept]);
        let definitions = [&claim.before.definition, &claim.after.definition];
        reports.extend(self.check_definitions((before, after), definitions, &all, &claim.matching));
        reports
    }

    /// Decides whether a program computes a definition: it has the values of the definition's nests. What comes later, the nests of
    /// the program before, and the program after, does not trap where the other does not.
    fn check_lifted(&self, side: Side, func: &PrimFunc, lifted: &Lifted) -> Vec<Report> {
        let nests =
            program(func).and_then(|program| program_of(func, &program.asserted, &lifted.definition, &lifted.kept));
        let nests = match nests {
            Ok(nests) => nests,
            Err(reason) => return stuck("the definition", reason),
        };
        let evidence = Evidence { comparison: Comparison::Values(lifted.flow.clone()), ..Evidence::default() };
        let mut reports = match side {
            Side::Before => self.check_pass(func, &nests, &evidence),
            Side::After => self.check_pass(&nests, func, &evidence),
        };
        for report in &mut reports {
            // The nests are in no text.
            report.place = report.place.map(|place| Place { side, ..place });
        }
        reports
    }

    /// Decides whether the parameters that two definitions compute are equal, as claimed. The functions have their parameters; what
    /// the one before asserts is assumed.
    pub fn check_definitions(
        &self,
        (before, after): (&PrimFunc, &PrimFunc),
        definitions: [&Definition; 2],
        evidence: &Evidence,
        matching: &Matching,
    ) -> Vec<Report> {
        let mut buffers = [before.buffers(), after.buffers()].concat();
        for stage in definitions.iter().flat_map(|definition| &definition.stages) {
            buffers.push(stage.buffer.clone());
        }
        let base = Base::new(self, before, &buffers);
        let relation = Relation::new(evidence);
        let mut reports = vec![Self::report(Obligation::Simulation, "each computed parameter is compared", || {
            match misfit(definitions, &relation, matching) {
                Some(reason) => unsupported(reason),
                None => (inspected(), Method::Inspection("tensors of both definitions")),
            }
        })];
        if !reports.iter().all(|report| report.verdict.is_proved()) {
            return reports;
        }
        let path = match path(before, definitions) {
            Ok(path) => path,
            Err(reason) => return stuck("the definitions", reason),
        };
        for place in 0..matching.pairs.len() {
            let pair = &matching.pairs[place];
            let known = &matching.pairs[..place];
            let elements = Elements { definitions, evidence, known, opens_products: matching.opens_products };
            let found = elements.summands(pair).map_err(String::from).and_then(|sides| {
                if !matching.reassociate && is_reassociated(pair, &sides) {
                    return Err(format!("the floats of `{}` are combined in another order", pair.after));
                }
                elements.programs(&path, pair, &sides)
            });
            reports.extend(match found {
                Ok([old, new]) => self.check_instances((&old, &new), evidence, &pair.summands, &base),
                Err(reason) => stuck(&pair.after.name, reason),
            });
        }
        reports
    }

    /// The iterations of summands after are those of summands before, with the same values.
    fn check_instances(
        &self,
        (old, new): (&Program, &Program),
        evidence: &Evidence,
        claim: &Reordering,
        base: &Base<'_>,
    ) -> Vec<Report> {
        match Reordered::new(self, (old, new), evidence, claim, base) {
            Ok(whole) => self.in_parallel(|| whole.instances(&Relation::new(evidence))),
            Err(reason) => stuck("summands", reason),
        }
    }
}

/// The value after that may trap, and is not compared by itself: a stage computes all of its elements, and where its value is put in
/// the place of a load, it may be read under a condition.
fn may_trap(definition: &Definition, matching: &Matching) -> Option<String> {
    let is_compared = |stage: &&Stage| matching.pairs.iter().any(|pair| pair.after == stage.buffer);
    let others = definition.stages.iter().filter(|stage| !is_compared(stage));
    let partial = others.flat_map(|stage| summands::exprs(stage)).find(|expr| is_partial(expr))?;
    Some(format!("`{partial}` may trap, and is not compared by itself"))
}

/// What the program after asks of its caller beside its assertions, and the one before does not: a value that does not trap, or a
/// value in a parameter that it reads first.
fn asks_more(evidence: &Evidence, claim: &Lifting) -> Option<String> {
    if let Some(reason) = may_trap(&claim.after.definition, &claim.matching) {
        return Some(reason);
    }
    let relation = Relation::new(evidence);
    let taken = |lifted: &Lifted| -> Vec<Kept> {
        let is_taken = |one: &&Kept| is_read(&lifted.definition, &lifted.kept, one);
        lifted.kept.iter().filter(is_taken).cloned().collect()
    };
    let (before, after) = (taken(&claim.before), taken(&claim.after));
    let is_new = |new: &&Kept| !before.iter().any(|old| relation.relates(&old.param, &new.param));
    let new = after.iter().find(is_new)?;
    Some(format!("`{}` is read first after, and may hold nothing before", new.param))
}

fn stuck(subject: &str, reason: String) -> Vec<Report> {
    vec![Judge::report(Obligation::Simulation, subject, || suspected(unsupported(reason)))]
}

/// The tensors whose floats may be combined in another order. In doubt a tensor is among them.
pub(crate) fn reassociated(evidence: &Evidence, claim: &Lifting) -> Vec<String> {
    let evidence = with_kept(evidence, [&claim.before.kept, &claim.after.kept]);
    let definitions = [&claim.before.definition, &claim.after.definition];
    reassociated_in(definitions, &evidence, &claim.matching)
}

/// The tensors of two definitions whose floats may be combined in another order. In doubt a tensor is among them.
pub fn reassociated_in(definitions: [&Definition; 2], evidence: &Evidence, matching: &Matching) -> Vec<String> {
    let is_well_formed = definitions.iter().all(|definition| not_well_formed(definition).is_none());
    let in_doubt = |place: usize| {
        let (known, pair) = (&matching.pairs[..place], &matching.pairs[place]);
        let elements = Elements { definitions, evidence, known, opens_products: matching.opens_products };
        !is_well_formed || elements.summands(pair).map_or(true, |sides| is_reassociated(pair, &sides))
    };
    let places = (0..matching.pairs.len()).filter(|place| in_doubt(*place));
    let mut found: Vec<String> = places.map(|place| matching.pairs[place].after.name.clone()).collect();
    found.dedup();
    found
}

/// The claims about parameters, and that what the call found in them corresponds in the same way.
pub fn with_kept(evidence: &Evidence, [before, after]: [&[Kept]; 2]) -> Evidence {
    let mut all = evidence.clone();
    for new in after {
        let claim = evidence.buffers.iter().find(|claim| claim.after == new.param);
        let was = claim.map_or(&new.param, |claim| &claim.before);
        let Some(old) = before.iter().find(|old| old.param == *was) else { continue };
        let identity = || IndexMap::identity(old.tensor.shape.clone());
        let (map, padded_axes) =
            claim.map_or_else(|| (identity(), Vec::new()), |claim| (claim.map.clone(), claim.padded_axes.clone()));
        let change = claim.map_or(BufferChange::Rename, |claim| claim.change);
        let (before, after) = (old.tensor.clone(), new.tensor.clone());
        all.buffers.push(BufferClaim { before, after, map, change, padded_axes });
    }
    all
}

/// Why two definitions cannot be compared: one is not well formed, their parameters differ, or a parameter is not compared.
fn misfit([old, new]: [&Definition; 2], relation: &Relation<'_>, matching: &Matching) -> Option<String> {
    if let Some(wrong) = not_well_formed(old).or_else(|| not_well_formed(new)) {
        return Some(wrong);
    }
    for x in old.outputs() {
        let y = new.outputs().into_iter().find(|y| relation.relates(x, y) && x.dtype == y.dtype);
        let Some(y) = y else { return Some(format!("`{x}` is computed before, and not after")) };
        let is_compared = |pair: &&TensorPair| pair.before == *x && pair.after == *y && pair.element.is_none();
        if matching.pairs.iter().filter(is_compared).count() != 1 {
            return Some(format!("`{x}` is not compared"));
        }
    }
    let is_known = |y: &&Buffer| !old.outputs().iter().any(|x| relation.relates(x, y));
    new.outputs().into_iter().find(is_known).map(|y| format!("`{y}` is computed after, and not before"))
}

/// Whether a pair of tensors is equal only if floats may be combined in another order.
fn is_reassociated(pair: &TensorPair, [old, new]: &[Summands; 2]) -> bool {
    let Some(op) = pair.op else { return false };
    if is_commutative(&pair.after, op) || sabotage::on("summands-forget-floats") {
        return false;
    }
    let is_same = |(place, origins): (usize, &Vec<StoreOrigin>)| {
        let loops = pair.index.iter().chain(pair.loops[1].get(place).into_iter().flatten()).map(Expr::from);
        matches!(origins.as_slice(), [StoreOrigin { when: None, before, forward, .. }]
            if *before == place && *forward == loops.collect::<Vec<_>>())
    };
    let in_order = old.list.len() == new.list.len() && pair.summands.stores.iter().enumerate().all(is_same);
    !(old.is_plain() && new.is_plain() && in_order)
}
