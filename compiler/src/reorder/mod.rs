//! Finds out how the iterations of one program were put into the order of another one.
//!
//! ```text
//! before: for i, j: C[i, j] = A[i, j] + 1           i = 16 * it + ii          from the index of the store
//! after:  for it, j, ii: C[16 * it + ii, j] = ...   it = i // 16, ii = i % 16 from the ranges of `it` and `ii`
//! ```
//!
//! Stores are paired by what they write and read. The indices of accesses that correspond are equations for the loops before in
//! terms of those after; these solved for the loops after are the way back. Nothing here is believed: the judge checks the
//! claim, and a wrong one is *unknown*.

mod equations;
mod forward;
mod pairing;
pub(crate) mod solve;
mod types;

pub(crate) use equations::undo;
pub(crate) use pairing::pair;
use tilewright_ir::{Evidence, PrimFunc, Reordering};
use tilewright_verify::reorder::program;

/// How the iterations of `before` were put into the order of `after`, in so far as the accesses tell; the buffers correspond as
/// `evidence` says.
///
/// # Errors
/// Why not: the programs are not of the kind that the judge takes, or their stores do not correspond.
pub fn find(before: &PrimFunc, after: &PrimFunc, evidence: &Evidence) -> Result<Reordering, String> {
    let (before, after) = (program(before)?, program(after)?);
    let paired = pairing::pair(&before.statements, &after.statements, evidence);
    paired.ok_or_else(|| "a store after corresponds to no store before".into())
}
