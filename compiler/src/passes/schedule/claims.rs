//! What a primitive claims: which store after is which store before, in which iteration of its loops.
//!
//! A primitive knows what it did, so nothing has to be searched for but the stores that wrote what is read
//! ([`crate::flow::known`]). The judge checks both.

use tilewright_ir::{Comparison, Evidence, Expr, Instance, Origin, PrimFunc, Reordering, StoreOrigin, Var};
use tilewright_verify::reorder::{Program, Statement, program};

use super::super::lower_thread_allreduce;
use crate::flow::{self, Origins};

/// What each store after is, as a store before whose iterations were put into another order.
type Reordered = dyn Fn(&[Statement], &[Statement]) -> Option<Vec<StoreOrigin>>;

/// How the stores after are found among the stores before.
pub(crate) enum Claim {
    /// The iterations were put into another order.
    Iterations(Box<Reordered>),
    /// Values are kept in other places, or computed again.
    Values(Box<Origins<'static>>),
    /// Threads that wait for each other compute the same reductions.
    Threads,
}

impl Claim {
    /// What is claimed of two programs. If the stores do not fit, the claim is searched for; if none is found, the judge
    /// will find that the programs differ in structure.
    pub(crate) fn comparison(&self, before: &PrimFunc, after: &PrimFunc, evidence: &Evidence) -> Comparison {
        let values = |origins: &Origins<'_>| flow::known(before, after, evidence, origins).map(Comparison::Values);
        let stated = match self {
            Self::Iterations(origins) if is_reordering(before, after) => reordering(before, after, origins),
            Self::Iterations(origins) => {
                let moved = |origin: StoreOrigin| at(origin.before, origin.forward);
                values(&|old, new| Some(origins(old, new)?.into_iter().map(moved).collect()))
            }
            Self::Values(origins) => values(origins),
            Self::Threads => lower_thread_allreduce::comparison(before, after, &evidence.pass),
        };
        let searched = || flow::find(before, after, evidence).ok().map(Comparison::Values);
        stated.or_else(searched).unwrap_or_default()
    }
}

/// Whether the order of iterations is all that may differ: an allocation in a loop is new memory in each iteration, and becomes
/// several allocations where the loop is written out.
fn is_reordering(before: &PrimFunc, after: &PrimFunc) -> bool {
    let (old, new) = (before.buffers(), after.buffers());
    let has_same_memory = old.len() == new.len() && new.iter().all(|buffer| old.contains(buffer));
    let is_in_loop = |found: Result<Program, String>| {
        found.is_ok_and(|found| found.allocated.iter().any(|(_, n_loops)| *n_loops > 0))
    };
    has_same_memory && !is_in_loop(program(after))
}

/// The claim that each store after has one origin.
fn reordering(before: &PrimFunc, after: &PrimFunc, origins: &Reordered) -> Option<Comparison> {
    let (first, second) = (program(before).ok()?, program(after).ok()?);
    let origins = origins(&first.statements, &second.statements)?;
    let stores: Vec<Vec<StoreOrigin>> = origins.into_iter().map(|origin| vec![origin]).collect();
    (stores.len() == second.statements.len()).then_some(Comparison::Iterations(Reordering { stores }))
}

/// The origin of a store that is a store before in the same loops.
pub(crate) fn unchanged(position: usize, store: &Statement) -> Origin {
    at(position, store.loops().iter().map(Expr::from).collect())
}

/// The origin of a store that is a store before at some values of its loops.
pub(crate) fn at(position: usize, at: Vec<Expr>) -> Origin {
    let instances = vec![Instance { when: None, store: Some(position), at }];
    Origin { instances, ..Origin::default() }
}

/// The loops before of a store whose copy stands in one iteration of a loop, or in another one: that loop has a value, and the
/// others are those of the copy, in their order.
pub(crate) fn in_iteration(before: &Statement, after: &Statement, var: &Var, value: &Expr) -> Option<Vec<Expr>> {
    let (mut others, mut found) = (without(after, var).into_iter(), Vec::new());
    for old in before.loops() {
        found.push(if old == *var { value.clone() } else { Expr::from(others.next()?) });
    }
    others.next().is_none().then_some(found)
}

/// The loops of a store but one.
pub(crate) fn without(store: &Statement, var: &Var) -> Vec<Var> {
    let mut loops = store.loops();
    loops.retain(|other| other != var);
    loops
}

/// The claim that each store after is one of the stores before, in the same loops: those at these positions.
pub(in crate::passes) fn selected(kept: &[usize], old: &[Statement], new: &[Statement]) -> Option<Vec<StoreOrigin>> {
    let origin = |(before, after): (&usize, &Statement)| {
        let (old, new) = (old.get(*before)?.loops(), after.loops());
        (old.len() == new.len()).then_some(())?;
        let back = old.iter().map(Expr::from).collect();
        Some(StoreOrigin { when: None, before: *before, forward: new.iter().map(Expr::from).collect(), back })
    };
    (kept.len() == new.len()).then(|| kept.iter().zip(new).map(origin).collect()).flatten()
}
