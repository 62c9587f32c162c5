//! What a primitive claims: which store after is which store before, in which iteration of its loops.
//!
//! A primitive knows what it did, so nothing has to be searched for but the stores that wrote what is read
//! ([`crate::flow::known`]). The judge checks both.

use tilewright_ir::{Comparison, Evidence, Expr, Instance, Origin, PrimFunc, Reordering, StoreOrigin, Var};
use tilewright_verify::reorder::{Statement, program};

use crate::flow;

/// The stores of a program, in its order.
type Stores<'s> = &'s [Statement];

/// How the stores after are found among the stores before.
pub(super) enum Claim {
    /// The iterations were put into another order.
    Iterations(Box<dyn Fn(Stores<'_>, Stores<'_>) -> Option<Vec<StoreOrigin>>>),
    /// Values are kept in other places, or computed again.
    Values(Box<dyn Fn(Stores<'_>, Stores<'_>) -> Option<Vec<Origin>>>),
}

impl Claim {
    /// What is claimed of two programs. If the stores do not fit, the claim is searched for; if none is found, the judge
    /// will find that the programs differ in structure.
    pub(super) fn comparison(&self, before: &PrimFunc, after: &PrimFunc, evidence: &Evidence) -> Comparison {
        let stated = match self {
            Self::Iterations(origins) => reordering(before, after, origins).map(Comparison::Iterations),
            Self::Values(origins) => flow::known(before, after, evidence, origins).map(Comparison::Values),
        };
        let searched = || flow::find(before, after, evidence).map(Comparison::Values);
        stated.or_else(searched).unwrap_or_default()
    }
}

/// The claim that each store after has one origin.
fn reordering(
    before: &PrimFunc,
    after: &PrimFunc,
    origins: &dyn Fn(Stores<'_>, Stores<'_>) -> Option<Vec<StoreOrigin>>,
) -> Option<Reordering> {
    let (old, new) = (before.buffers(), after.buffers());
    // An allocation in a loop that is written out became several, and that is no matter of order alone.
    let has_same_memory = old.len() == new.len() && new.iter().all(|buffer| old.contains(buffer));
    let (first, second) = (program(before).ok()?, program(after).ok()?);
    let origins = has_same_memory.then(|| origins(&first.statements, &second.statements)).flatten()?;
    let stores: Vec<Vec<StoreOrigin>> = origins.into_iter().map(|origin| vec![origin]).collect();
    (stores.len() == second.statements.len()).then_some(Reordering { stores })
}

/// The origin of a store that is a store before in the same loops.
pub(super) fn unchanged(position: usize, store: &Statement) -> Origin {
    at(position, store.loops().iter().map(Expr::from).collect())
}

/// The origin of a store that is a store before at some values of its loops.
pub(super) fn at(position: usize, at: Vec<Expr>) -> Origin {
    let instances = vec![Instance { when: None, store: Some(position), at }];
    Origin { instances, ..Origin::default() }
}

/// The loops before of a store whose copy stands in one iteration of a loop, or in another one: that loop has a value, and the
/// others are those of the copy, in their order.
pub(super) fn in_iteration(before: &Statement, after: &Statement, var: &Var, value: &Expr) -> Option<Vec<Expr>> {
    let (mut others, mut found) = (without(after, var).into_iter(), Vec::new());
    for old in before.loops() {
        found.push(if old == *var { value.clone() } else { Expr::from(others.next()?) });
    }
    others.next().is_none().then_some(found)
}

/// The loops of a store but one.
pub(super) fn without(store: &Statement, var: &Var) -> Vec<Var> {
    let mut loops = store.loops();
    loops.retain(|other| other != var);
    loops
}
