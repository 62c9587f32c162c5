//! Finds where the values come from that two programs read, and which stores of both write the same values.
//!
//! ```text
//! before: for i, k: C[i] = C[i] + A[i, k]       the value of C[i] is that of (i, k - 1), or what the call found
//! after:  for i: t[0] = C[i]                    t[0] + ... is C[i] + ... before, since t[0] was copied from C[i], or
//!             for k: t[0] = t[0] + A[i, k]      comes from (i, k - 1) of the same store; the end of C[i] is t[0] of the
//!             C[i] = t[0]                       last k in both
//! ```
//!
//! First each program is looked at by itself (`sources`), then the values that both leave are followed back, side by side
//! (`origins`). Nothing here is believed: the judge checks the claim, and a wrong one is *unknown*.

mod budget;
mod given;
mod origins;
mod samples;
mod sources;
mod writers;

use tilewright_ir::{Evidence, Flow, Origin, PrimFunc, Sources};
use tilewright_verify::Finders;
use tilewright_verify::flow::{Observed, programs};
use tilewright_verify::reorder::Statement;

use budget::Budget;

pub use writers::writers_of;

/// The searches that claim which store of a step writes an element that is read.
pub const FINDERS: Finders<'static> = Finders { sources: &sources_of, writers: &writers_of };

/// How the values of `after` are those of `before`, as far as that is found; the parameters correspond as `evidence` says.
///
/// # Errors
/// Why the programs are not of the kind that the judge takes.
pub fn find(before: &PrimFunc, after: &PrimFunc, evidence: &Evidence) -> Result<Flow, String> {
    find_through([&[], &[]], before, after, evidence)
}

/// [`find`] where some stores before and after have no counterpart: sums are looked into through them.
pub(crate) fn find_through(
    links: [&[usize]; 2],
    before: &PrimFunc,
    after: &PrimFunc,
    evidence: &Evidence,
) -> Result<Flow, String> {
    let [first, second] = programs(before, after, evidence)?;
    let budget = Budget::default();
    let (before, after) = (sources::of(&first, &budget), sources::of(&second, &budget));
    let mut stores = origins::find(&first, &second, ([&before, &after], links), (evidence, &budget));
    given::find(&first, &second, [&before, &after], &mut stores);
    Ok(Flow { index: first.index(), before, after, stores })
}

/// The sources of everything that the stores of a program read.
pub(crate) fn sources(observed: &Observed) -> Vec<Sources> {
    sources::of(observed, &Budget::default())
}

/// For each store of a function, where the values come from that it reads from memory that the function writes; nothing if the judge does
/// not take such functions.
pub fn sources_of(func: &PrimFunc) -> Vec<Sources> {
    let found = programs(func, func, &Evidence::default());
    found.map(|[first, _]| sources(&first)).unwrap_or_default()
}

/// A function from the stores of two programs to the instances of the first one that each store of the second one corresponds to;
/// `None` if the caller does not know them.
pub type Origins<'o> = dyn Fn(&[Statement], &[Statement]) -> Option<Vec<Origin>> + 'o;

/// The claim of [`find`] for a caller that knows which store after is which store before: `origins` says so of the stores of both
/// programs. `None` if it does not, or if the judge does not take such programs.
pub fn known(before: &PrimFunc, after: &PrimFunc, evidence: &Evidence, origins: &Origins<'_>) -> Option<Flow> {
    let [first, second] = programs(before, after, evidence).ok()?;
    let stores = |observed: &Observed| observed.program.statements[..observed.n_stores].to_vec();
    let mut stores = origins(&stores(&first), &stores(&second)).filter(|origins| origins.len() == second.n_stores)?;
    // What is read in the end is compared with what is read in the end, whatever is claimed.
    stores.resize_with(second.program.statements.len(), Origin::default);
    let budget = Budget::default();
    let (before, after) = (sources::of(&first, &budget), sources::of(&second, &budget));
    given::find(&first, &second, [&before, &after], &mut stores);
    Some(Flow { index: first.index(), before, after, stores })
}
