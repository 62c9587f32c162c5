//! Index arithmetic of accesses that are known to be inside of their buffers.
//!
//! ```text
//! before: O[k, j] = A[I[k], j]               I[k] is below 4, or the program before traps
//! after:  O[k * 5 + j] = A[I[k] * 5 + j]     so 0 <= I[k] * 5 + j < 20, and I[k] * 5 leaves no type
//! ```

use super::{Access, Base, accesses, add_index, add_other_parts, overflow_of};
use crate::judge::{Decision, all_of};
use crate::path::Site;
use crate::question::Question;
use crate::translate::Names;

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
