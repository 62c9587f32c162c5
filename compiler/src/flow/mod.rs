//! Finds where the values come from that two programs read, and which stores of both write the same values.
//!
//! ```text
//! before: for i, k: C[i] = C[i] + A[i, k]       the value of C[i] is that of (i, k - 1), or what the call found
//! after:  for i: t[0] = C[i]                    t[0] + ... is C[i] + ... before, since t[0] was copied from C[i], or
//!             for k: t[0] = t[0] + A[i, k]      comes from (i, k - 1) of the same store; the end of C[i] is t[0] of the
//!             C[i] = t[0]                       last k in both
//! ```
//!
//! First each program is looked at by itself ([`sources`]), then the values that both leave are followed back, side by side
//! ([`origins`]). Nothing here is believed: the judge checks the claim, and a wrong one is *unknown*.

mod given;
mod origins;
mod samples;
mod sources;

use tilewright_ir::{Evidence, Flow, PrimFunc};
use tilewright_verify::flow::programs;

pub(crate) use origins::put;
pub(crate) use sources::of as sources;

/// How the values of `after` are those of `before`, as far as that is found; the parameters correspond as `evidence` says. `None` if
/// the programs are not of the kind that the judge takes.
pub fn find(before: &PrimFunc, after: &PrimFunc, evidence: &Evidence) -> Option<Flow> {
    let [first, second] = programs(before, after, evidence).ok()?;
    let (before, after) = (sources::of(&first), sources::of(&second));
    let mut stores = origins::find(&first, &second, [&before, &after], evidence);
    given::find(&first, &second, [&before, &after], &mut stores);
    Some(Flow { index: first.index(), before, after, stores })
}
