//! The primitives of a schedule: passes that restructure loops and move storage, each applied where a step asks for it.
//!
//! ```text
//! T.func_attr({"schedule": ["split=i:4", "unroll=i_inner"]})      the attribute of a function
//! tilewright opt -p split=i:4,unroll=i_inner FILE                 the same from the command line
//! ```
//!
//! | step | effect |
//! |---|---|
//! | `split=LOOP:FACTOR` | two loops for one, with a guard if the factor may not divide the extent; `split=LOOP:NUMBER:parts` gives the number of iterations of the outer one |
//! | `fuse=LOOP:LOOP` | one loop for neighbours |
//! | `reorder=LOOP:LOOP` | nested loops in another order |
//! | `loop_kind=LOOP:KIND` | a loop that is `serial`, `parallel`, `vectorized` or `unrolled` |
//! | `allreduce=LOOP:THREAD` | the threads of a group run the iterations of a loop of a reduction, and combine their values |
//! | `unroll=LOOP` | one copy of the body for each iteration |
//! | `compute_at=BUFFER:LOOP` | the part of a buffer that an iteration reads is computed in that iteration |
//! | `compute_inline=BUFFER` | each load of a buffer becomes the value that was stored there |
//! | `double_buffer=BUFFER` | a buffer has two halves: one is filled for the next iteration while the other one is read |
//!
//! A loop is named by its variable; `C.i` is the loop `i` around the stores to `C`, where several loops have that name. Steps
//! are applied in the order of the attribute, each to the result of the one before, and each is judged by itself: a step
//! that changes the meaning is not proved. A primitive claims which store after is which store before, in which iteration: either
//! as another order of the same iterations, or as the same values kept in other places ([`crate::flow`]).

mod allreduce;
pub(crate) mod buffers;
pub(crate) mod claims;
mod compute_at;
mod compute_inline;
pub(crate) mod copy;
mod double_buffer;
mod fuse;
mod loop_kind;
pub(crate) mod loops;
pub(crate) mod nest;
mod producer;
pub(crate) mod region;
mod reorder;
mod split;
pub(super) mod unroll;

use tilewright_ir::{Comparison, Diagnostic, Evidence, Expr, Label, PrimFunc, ScheduleStep, Stmt, StoreOrigin};
use tilewright_verify::reorder::Statement;

pub use allreduce::allreduce;
pub use compute_at::compute_at;
pub use compute_inline::compute_inline;
pub use double_buffer::double_buffer;
pub use fuse::fuse;
pub use loop_kind::loop_kind;
pub use reorder::reorder;
pub use split::split;
pub use unroll::unroll;

use super::Rewritten;
pub(super) use buffers::has_own_memory;
pub(super) use claims::Claim;
pub(super) use claims::{at, unchanged};
pub(super) use copy::copied;
pub(super) use double_buffer::doubled;
pub(super) use region::touched;

/// The names of the primitives.
const PRIMITIVES: [&str; 9] =
    ["split", "fuse", "reorder", "loop_kind", "allreduce", "unroll", "compute_at", "compute_inline", "double_buffer"];

/// Returns the names of the passes that apply the schedule of a function, one for each step.
///
/// # Errors
/// `schedule`: a step is no primitive.
pub(super) fn names(func: &PrimFunc) -> Result<Vec<&'static str>, Vec<Diagnostic>> {
    let name = |step: &ScheduleStep| {
        let known = PRIMITIVES.iter().find(|known| **known == step.primitive);
        known.copied().ok_or_else(|| {
            let near = tilewright_script::nearest(&step.primitive, PRIMITIVES);
            let help = near.map_or_else(
                || format!("the primitives are {}", PRIMITIVES.join(", ")),
                |near| format!("did you mean `{near}`?"),
            );
            vec![placed(fault(format!("`{}` is no primitive of a schedule", step.primitive), help), step)]
        })
    };
    func.attrs.schedule.iter().map(name).collect()
}

/// Returns whether the next step of a function is one of a primitive.
pub(super) fn is_next(func: &PrimFunc, primitive: &str) -> bool {
    func.attrs.schedule.first().is_some_and(|step| step.primitive == primitive)
}

/// What a step makes of the body of a function, and what it claims of that.
type Change<'c> = &'c dyn Fn(&PrimFunc, &str) -> Result<(Stmt, Claim), Diagnostic>;

/// Applies the first step of a primitive and removes it from the schedule. A function without such a step is not changed.
fn applied(primitive: &'static str, func: &PrimFunc, change: Change<'_>) -> Result<Rewritten, Vec<Diagnostic>> {
    let evidence = Evidence { pass: primitive.to_owned(), ..Evidence::default() };
    let Some(at) = func.attrs.schedule.iter().position(|step| step.primitive == primitive) else {
        return Ok(Rewritten { func: func.clone(), evidence, notes: Vec::new() });
    };
    let mut after = func.clone();
    let step = after.attrs.schedule.remove(at);
    let (body, claim) = change(func, &step.argument).map_err(|fault| vec![placed(fault, &step)])?;
    after.body = body;
    let comparison = claim.comparison(func, &after, &evidence);
    Ok(Rewritten { func: after, evidence: Evidence { comparison, ..evidence }, notes: Vec::new() })
}

/// What is claimed of two programs that have the same stores in the same iterations.
pub(crate) fn same_iterations(before: &PrimFunc, after: &PrimFunc, evidence: &Evidence) -> Comparison {
    let origin = |(before, store): (usize, &Statement)| {
        let loops: Vec<Expr> = store.loops().iter().map(Expr::from).collect();
        StoreOrigin { when: None, before, forward: loops.clone(), back: loops }
    };
    let same = move |old: &[Statement], new: &[Statement]| {
        (old.len() == new.len()).then(|| new.iter().enumerate().map(origin).collect())
    };
    Claim::Iterations(Box::new(same)).comparison(before, after, evidence)
}

/// A fault that has no place is one of the step.
fn placed(mut fault: Diagnostic, step: &ScheduleStep) -> Diagnostic {
    if let (true, Some(span)) = (fault.labels.is_empty(), step.span) {
        fault.labels.push(Label { span, message: String::new() });
    }
    fault
}

/// Asks for a primitive as the next step: `opt -p split=i:4` runs it at once.
///
/// # Errors
/// `schedule`: there is no argument.
pub(super) fn request(func: &mut PrimFunc, primitive: &str, argument: &str) -> Result<(), Diagnostic> {
    let step = ScheduleStep::parse(&format!("{primitive}={argument}"), None);
    let step = step.ok_or_else(|| fault(format!("`{primitive}` has no argument"), "such as `split=i:4`"))?;
    func.attrs.schedule.insert(0, step);
    Ok(())
}

/// An error about a step.
fn fault(message: impl Into<String>, help: impl Into<String>) -> Diagnostic {
    Diagnostic::error("schedule", None, message).with_help(help)
}

/// The name that is meant by an unknown one, or else all that there are. Names of one or two letters are near every other.
fn known_names(kind: &str, name: &str, known: &[&str]) -> String {
    let near = tilewright_script::nearest(name, known.iter().copied()).filter(|near| near.len() > 2);
    near.map_or_else(|| format!("its {kind} are {}", known.join(", ")), |near| format!("did you mean `{near}`?"))
}
