//! Whether two programs compute the same values, wherever they keep them on the way: in caches, registers, merged or doubled buffers,
//! in buffers of another shape or scope, or nowhere.
//!
//! An *instance* is a store together with the values of the loops around it. The claim says of each value that a store reads which
//! instance wrote it, and of stores after which instances before write the same values (`forward`). Then each element of each
//! parameter holds the same value in the end, if
//!
//! ```text
//! alive       the claimed instance runs before the read and writes the element that is read, in the same allocation; every other
//!             instance that writes this element before the read runs before the claimed one; and where an instance after reads what
//!             a parameter held at the call, some instance before does, too: a parameter that is written first may hold nothing
//! iteration   forward leads into the loops and conditions before
//! simulation  the value of an instance after is that of the instance before, if each value that is read is replaced by the name
//!             of the instance that wrote it; an instance that has no counterpart is replaced by its own value
//! ```
//!
//! By induction over the order after: what an instance reads is what the claimed instances wrote (*alive*), these wrote the same
//! values as their counterparts, and the same operation on the same values has the same value. That is array data-flow analysis
//! (Feautrier 1991), with the analysis left to the search: here its result is only checked. In the end each element of a
//! parameter is read once more ([`programs`]), so that what the programs leave is compared like everything else.
//!
//! It holds under the same conditions as [`crate::reorder`]: loops, conditions and indices depend on parameters and loop
//! variables alone, or on memory that is never written; neither program leaves its buffers, and iterations that run at once do not
//! race. What only the program after computes must not trap.

mod alive;
mod programs;
mod values;

use rayon::prelude::*;
use tilewright_ir::visit::Substitution;
use tilewright_ir::{Buffer, Evidence, Expr, Flow, Instance, Origin, PrimFunc, Sources, Span};

pub use programs::{Observed, programs};

use crate::access::Base;
use crate::claims::{Relation, parameters};
use crate::judge::{Decision, Judge, Report, Side, all_of, suspected, unsupported};
use crate::obligation::Obligation;
use crate::pass::{decide_goal, fit, holds};
use crate::path::{Path, Step};
use crate::reorder::{Statement, domain, is_partial, understood, values};

/// A program and what is claimed of it.
pub(crate) struct Half {
    pub(crate) side: Side,
    pub(crate) observed: Observed,
    pub(crate) sources: Vec<Sources>,
}

impl Half {
    pub(crate) fn statement(&self, position: usize) -> Result<&Statement, String> {
        self.observed.program.statements.get(position).ok_or_else(|| "a store that there is not is claimed".into())
    }
}

/// Two programs and the claim about them.
pub(crate) struct Flowing<'a> {
    pub(crate) judge: &'a Judge,
    evidence: &'a Evidence,
    base: &'a Base<'a>,
    pub(crate) before: Half,
    pub(crate) after: Half,
    /// What is claimed of each store after.
    pub(crate) origins: Vec<Origin>,
    /// What the instances of each store before write, as a buffer whose indices are the loops: the name of a value.
    pub(crate) names: Vec<tilewright_ir::Buffer>,
}

impl Judge {
    /// Decides whether two programs compute the same values, as claimed, with the obligations of the program before by itself.
    pub(crate) fn check_flow(
        &self,
        (before, after): (&PrimFunc, &PrimFunc),
        evidence: &Evidence,
        claim: &Flow,
        base: &Base<'_>,
    ) -> Vec<Report> {
        let stuck = |reason: String| vec![Self::report(Obligation::Simulation, "values", || unsupported(reason))];
        let relation = Relation::new(evidence);
        let flowing = match Flowing::new(self, (before, after), evidence, claim, base) {
            Ok(flowing) => flowing,
            Err(reason) => return stuck(reason),
        };
        let mut reports: Vec<Report> = parameters(before, after, &relation)
            .iter()
            .map(|goal| Self::report(Obligation::Simulation, "parameters", || decide_goal(self, evidence, base, goal)))
            .collect();
        let [old, new] = [&flowing.before, &flowing.after].map(|half| &half.observed.program);
        reports.extend(self.check_accepted((before, old), (after, new)));
        reports.extend(self.in_parallel(|| flowing.decide(&relation)));
        reports.extend(self.of_before(self.check_program_on(Side::Before, before)));
        reports
    }
}

/// Decides whether each value that a function reads from some of its parameters is one that the function itself wrote before, as claimed.
pub(crate) fn is_written_first(judge: &Judge, func: &PrimFunc, params: &[&Buffer], sources: &[Sources]) -> Decision {
    let (evidence, base) = (Evidence::default(), Base::new(judge, func, &[]));
    let decide = || {
        let [before, after] = programs(func, func, &evidence)?;
        if sources.len() != before.program.statements.len() {
            return Err("the claim speaks of more or fewer stores than there are".into());
        }
        let half = |observed| Half { side: Side::Before, observed, sources: sources.to_vec() };
        let (before, after) = (half(before), half(after));
        let flowing =
            Flowing { judge, evidence: &evidence, base: &base, before, after, origins: Vec::new(), names: Vec::new() };
        let half = &flowing.before;
        let mut decisions = Vec::new();
        for (place, store) in half.observed.program.statements[..half.observed.n_stores].iter().enumerate() {
            for (read, claimed) in half.observed.reads(store).iter().zip(&sources[place]) {
                let Expr::Load { buffer, .. } = read else { continue };
                let is_given = params.contains(&buffer) && claimed.iter().any(|piece| piece.store.is_none());
                if is_given {
                    return Err(format!("`{read}` may be read before it is written"));
                }
            }
            decisions.push(flowing.alive(half, place));
        }
        Ok(all_of(decisions))
    };
    decide().unwrap_or_else(unsupported)
}

impl<'a> Flowing<'a> {
    fn new(
        judge: &'a Judge,
        (before, after): (&PrimFunc, &PrimFunc),
        evidence: &'a Evidence,
        claim: &'a Flow,
        base: &'a Base<'a>,
    ) -> Result<Self, String> {
        let [first, second] = programs(before, after, evidence)?;
        let count = |observed: &Observed| observed.program.statements.len();
        let fits = claim.before.len() == count(&first) && claim.after.len() == count(&second);
        if !fits || claim.stores.len() != claim.after.len() {
            return Err("the claim speaks of more or fewer stores than there are".into());
        }
        let mut origins = claim.stores.clone();
        // What is read in the end is compared, whatever is claimed.
        let ends = (first.n_stores..).zip(&second.program.statements[second.n_stores..]);
        for (origin, (old, new)) in origins[second.n_stores..].iter_mut().zip(ends) {
            let at = new.loops().iter().map(Expr::from).collect();
            origin.instances = vec![Instance { when: None, store: Some(old), at }];
        }
        let index: Vec<Expr> = first.index().iter().map(Expr::from).collect();
        if index.len() != claim.index.len() {
            return Err("the claim names other indices than the parameters have".into());
        }
        let names = Substitution::new(&claim.index, index);
        let half = |side: Side, observed: Observed, sources: &[Sources]| {
            let mut sources = sources.to_vec();
            for piece in sources[observed.n_stores..].iter_mut().flatten().flatten() {
                piece.when = piece.when.as_ref().map(|when| names.apply(when));
                piece.at = piece.at.iter().map(|value| names.apply(value)).collect();
            }
            Half { side, observed, sources }
        };
        let stores = first.program.statements.iter().enumerate();
        let values = stores.map(|(place, store)| values::name(place, store)).collect();
        let (before, after) = (half(Side::Before, first, &claim.before), half(Side::After, second, &claim.after));
        Ok(Self { judge, evidence, base, before, after, origins, names: values })
    }

    /// The reports of one kind of condition after the other, until one is not proved.
    fn decide(&self, relation: &Relation<'_>) -> Vec<Report> {
        let is_open = |reports: &[Report]| reports.iter().any(|report| !report.verdict.is_proved());
        let mut reports = Vec::new();
        for half in [&self.after, &self.before] {
            if is_open(&reports) {
                return reports;
            }
            let stores: Vec<usize> = (0..half.observed.program.statements.len()).collect();
            reports.par_extend(stores.par_iter().filter_map(|place| {
                let store = &half.observed.program.statements[*place];
                if half.observed.reads(store).is_empty() {
                    return None;
                }
                let decide = || suspected(self.alive(half, *place));
                Some(Judge::report(Obligation::Alive, store.subject.clone(), decide).placed(half.side, store.span))
            }));
        }
        if !is_open(&reports) {
            let stores: Vec<usize> = (0..self.origins.len()).collect();
            reports.par_extend(stores.par_iter().flat_map(|place| self.store(*place, relation)));
        }
        reports
    }

    /// What is asked of a store after: that its instances are instances before, with the same values.
    fn store(&self, place: usize, relation: &Relation<'_>) -> Vec<Report> {
        let store = &self.after.observed.program.statements[place];
        let report = |obligation, decision: &dyn Fn() -> Decision| {
            Judge::report(obligation, store.subject.clone(), || suspected(decision()))
                .placed(Side::After, store.span)
                .compared_with(Side::Before, self.origin_span(place))
        };
        let into = || self.each_origin(place, |path, before, at| self.into(path, before, at));
        let same = || self.each_origin(place, |path, before, at| self.same((path, place), (before, at), relation));
        vec![report(Obligation::Iteration, &into), report(Obligation::Simulation, &same)]
    }

    /// The place of the store before that a store after is claimed to be, if it is one alone.
    fn origin_span(&self, place: usize) -> Option<Span> {
        let mut stores = self.origins[place].instances.iter().filter_map(|origin| origin.store);
        let first = stores.next().filter(|first| stores.all(|other| other == *first))?;
        self.before.statement(first).ok()?.span
    }

    /// All of the decisions about the stores before that a store after is claimed to be, each under the conditions for it.
    fn each_origin(&self, place: usize, decide: impl Fn(&Path, usize, &Substitution) -> Decision) -> Decision {
        let store = &self.after.observed.program.statements[place];
        let loops = store.loops();
        let decisions = pieces(&store.path, &loops, &self.origins[place].instances).and_then(|pieces| {
            let decide = |(path, origin): &(Path, &Instance)| {
                let Some(position) = origin.store else { return only_after(store) };
                let at = values(&self.before.statement(position)?.loops(), &origin.at, &loops, path)?;
                Ok(all_of([self.has_values(path, &at, position)].into_iter().chain([decide(path, position, &at)])))
            };
            pieces.iter().map(decide).collect::<Result<Vec<_>, String>>()
        });
        decisions.map_or_else(unsupported, all_of)
    }

    /// The claimed values of the loops before are what the integers say.
    fn has_values(&self, path: &Path, at: &Substitution, position: usize) -> Decision {
        let loops = self.before.statement(position).map(Statement::loops).unwrap_or_default();
        let values: Vec<Expr> = loops.iter().map(|var| at.apply(&Expr::from(var))).collect();
        fit(path, &values, self.base)
    }

    /// An instance after is one before.
    fn into(&self, path: &Path, before: usize, at: &Substitution) -> Decision {
        match self.before.statement(before) {
            Ok(before) => all_of(domain(before, at).iter().map(|part| holds(self.judge, path, part))),
            Err(reason) => unsupported(reason),
        }
    }
}

/// An instance that the program before has not: no operation in it traps, as nothing says that it would have trapped before.
fn only_after(store: &Statement) -> Result<Decision, String> {
    if is_partial(&store.value) {
        return Err(format!("`{}` may trap, and only the program after computes it", store.value));
    }
    Ok(all_of([]))
}

/// The cases of a claim, each with the way to it. The claimed conditions have a value everywhere, and the last case has none.
pub(crate) fn pieces<'c>(
    path: &Path,
    loops: &[tilewright_ir::Var],
    claimed: &'c [Instance],
) -> Result<Vec<(Path, &'c Instance)>, String> {
    let mut rest = path.clone();
    let mut found = Vec::new();
    for (position, piece) in claimed.iter().enumerate() {
        let mut here = rest.clone();
        match &piece.when {
            None if position + 1 == claimed.len() => {}
            Some(when) if position + 1 < claimed.len() => {
                understood(when, loops, path)?;
                here.steps.push(Step::Guard(when.clone(), true));
                rest.steps.push(Step::Guard(when.clone(), false));
            }
            Some(_) | None => return Err("what is claimed does not cover all cases".into()),
        }
        found.push((here, piece));
    }
    if found.is_empty() { Err("nothing is claimed of a value that is read".into()) } else { Ok(found) }
}
