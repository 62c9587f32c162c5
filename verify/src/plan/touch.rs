//! The accesses of the function of a step, one by one, with the loops that they are in.

use tilewright_ir::{Bindings, PrimFunc, StmtKind, Var};

use crate::access::{Access, accesses};
use crate::path::{Step, sites};

/// Most iterations of each access that are tried.
pub(super) const TRIED: usize = 1 << 16;

/// An access to memory.
pub(super) struct Touch {
    /// The number of its statement, in the order of the program.
    pub(super) site: usize,
    /// What is accessed, and the way to it.
    pub(super) access: Access,
    /// Whether it writes.
    pub(super) is_store: bool,
    /// The loops around the statement, and those over lanes.
    pub(super) loops: Vec<Var>,
    /// How many of them are over lanes.
    pub(super) n_lanes: usize,
    /// The number of steps of the way to the statement, without conditions and lanes inside of it.
    pub(super) depth: usize,
}

impl Touch {
    /// The values of the loops of the access.
    pub(super) fn iteration(&self, bindings: &Bindings) -> Option<Vec<i128>> {
        self.loops.iter().map(|var| bindings.get(var).copied()).collect()
    }

    /// The number of outer loops that are around both statements.
    pub(super) fn common_loops(&self, other: &Self) -> usize {
        let around = |touch: &Self| touch.loops.len() - touch.n_lanes;
        let (mine, theirs) = (&self.loops[..around(self)], &other.loops[..around(other)]);
        mine.iter().zip(theirs).take_while(|(one, other)| one == other).count()
    }
}

/// Every access of a function, in the order of the program; what a statement reads comes before what it writes.
pub(super) fn touches(func: &PrimFunc) -> Vec<Touch> {
    let mut found = Vec::new();
    for (site, at) in sites(func).iter().enumerate() {
        let stores_here = matches!(at.stmt.kind, StmtKind::Store { .. });
        let (all, depth) = (accesses(at), at.path.steps.len());
        let last = all.len();
        for (place, access) in all.into_iter().enumerate() {
            let of = |step: &Step| if let Step::Loop(var, ..) = step { Some(var.clone()) } else { None };
            let loops: Vec<Var> = access.path.steps.iter().filter_map(of).collect();
            let n_lanes = access.path.steps.iter().skip(depth).filter_map(of).count();
            let is_store = stores_here && place + 1 == last;
            found.push(Touch { site, access, is_store, loops, n_lanes, depth });
        }
    }
    found
}
