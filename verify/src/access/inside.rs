//! The arithmetic of an index, and of one that is known to be inside of its buffer.
//!
//! ```text
//! before: O[k, j] = A[I[k], j]               I[k] is below 4, or the program before traps
//! after:  O[k * 5 + j] = A[I[k] * 5 + j]     so 0 <= I[k] * 5 + j < 20, and I[k] * 5 leaves no type
//! ```

use tilewright_ir::{Expr, Var, sabotage};

use super::{Access, Base, accesses, add_other_parts, add_parts, overflow_of};
use crate::judge::{Decision, all_of};
use crate::path::{Path, Site, Step};
use crate::question::Question;
use crate::translate::Names;

/// Adds the integer operations of the index of an access, and of the loaded values that names in it stand for: an index is compared with
/// others as if their values were written in it.
pub(super) fn add_index(access: &Access, found: &mut Vec<(Expr, Path)>) {
    let path = &access.path;
    access.indices.iter().for_each(|index| add_parts(index, path, found));
    let mut names: Vec<Var> = access.indices.iter().flat_map(Expr::vars).collect();
    let mut at = 0;
    while let Some(name) = names.get(at).cloned() {
        at += 1;
        let value = path.steps.iter().find_map(|step| match step {
            Step::Let(var, value) if *var == name => Some(value),
            Step::Let(..) | Step::Loop(..) | Step::Guard(..) => None,
        });
        let Some(value) = value else { continue };
        if value.reads_memory() && !sabotage::on("names-of-loaded-values-fit") {
            add_parts(value, path, found);
        }
        let more: Vec<Var> = value.vars().into_iter().filter(|var| !names.contains(var)).collect();
        names.extend(more);
    }
}

/// Index arithmetic of a statement whose accesses are inside of their buffers. What stands in an index is evaluated for its access alone.
pub(super) fn overflow(site: &Site<'_>, base: &Base<'_>) -> Decision {
    let mut others = Vec::new();
    add_other_parts(site, &mut others);
    let found = accesses(site);
    let indices = found.iter().map(|access| {
        let mut parts = Vec::new();
        add_index(access, &mut parts);
        overflow_of(&parts, base, Some(access))
    });
    all_of(indices.chain([overflow_of(&others, base, None)]))
}

/// The access is inside of its buffer.
pub(super) fn assume(access: &Access, question: &mut Question, names: &mut Names) {
    for (index, extent) in access.indices.iter().zip(&access.buffer.shape) {
        let (index, extent) = (names.term(index), names.term(extent));
        question
            .assume(&index.at_least(0).and(index.less(extent)), "the access is inside, as that of the program before");
    }
}
