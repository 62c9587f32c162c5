//! Writes out every loop of kind `unrolled`, and on request serial loops of few statements (TVM's `UnrollLoop`).
//!
//! ```text
//! for i in range(n):                          for i in range(n):
//!     for j in T.unroll(2):                       B[i, 0] = A[i, 0] + A[i, 1]
//!         B[i, j] = A[i, j] + A[i, j + 1]  ->     B[i, 1] = A[i, 1] + A[i, 2]
//! ```
//!
//! Loops inside are written out before those around them. The pass `unroll` does the same with one loop that it is told. A loop with no
//! constant number of iterations, or with more than 64, stays as it is, with a note. `unroll_loop=16` is TVM's `auto_max_step`: serial
//! loops that become at most 16 stores are written out too. Cost: some walks for each copy of a body.

use tilewright_ir::{AttrValue, Diagnostic, Evidence, For, ForKind, PrimFunc, Stmt, StmtKind, Var};

use super::provenance::{Provenance, unchanged};
use super::schedule::loops::{Found, all_loops, with_loop};
use super::schedule::unroll::Unrolled;
use super::{Rewritten, lower_blocks};

/// Most stores of a program after the pass. The judge takes no more.
const MOST_STORES: usize = 400;

/// The attribute that says up to how many stores a serial loop is written out.
const MAX_STEP: &str = "auto_max_step";

/// Writes out loops.
///
/// # Errors
/// `blocks`: the function has blocks.
///
/// ```
/// use tilewright_compiler::passes::unroll_loop;
/// let text = r#"
/// @T.prim_func
/// def main(A: T.Buffer((5, 3), "float32"), B: T.Buffer((5, 2), "float32")):
///     for i in range(5):
///         for j in T.unroll(2):
///             B[i, j] = A[i, j] + A[i, j + 1]
/// "#;
/// let func = tilewright_script::read_module(text)?.funcs.remove(0);
/// let printed = tilewright_script::print_func(&unroll_loop(&func)?.func);
/// let body: Vec<&str> = printed.lines().skip(2).map(str::trim).collect();
/// assert_eq!(body, [
///     "for i in range(5):",
///     "B[i, 0] = A[i, 0] + A[i, 1]",
///     "B[i, 1] = A[i, 1] + A[i, 2]",
/// ]);
/// # Ok::<(), Vec<tilewright_ir::Diagnostic>>(())
/// ```
pub fn unroll_loop(func: &PrimFunc) -> Result<Rewritten, Vec<Diagnostic>> {
    lower_blocks::refuse(func, "unroll_loop")?;
    let mut after = func.clone();
    let max_step = taken_max_step(&mut after);
    let mut provenance = match Provenance::of(func, "unroll_loop") {
        Ok(provenance) => provenance,
        Err(note) => return Ok(unchanged(&after, "unroll_loop", note)),
    };
    while let Some((body, var, unrolled)) = next(&after, max_step) {
        let next = PrimFunc { body: with_loop(&body, &var, &unrolled.stmt()), ..after.clone() };
        provenance.step(&next, |old, new| unrolled.origins(old, new));
        after = next;
    }
    let evidence = Evidence { pass: "unroll_loop".to_owned(), ..Evidence::default() };
    let comparison = provenance.comparison(func, &after, &evidence);
    let notes = all_loops(&after).iter().filter_map(|found| note(found, &after)).collect();
    Ok(Rewritten { func: after, evidence: Evidence { comparison, ..evidence }, notes })
}

/// Returns whether a function has a loop that is to be written out.
pub(super) fn is_wanted(func: &PrimFunc) -> bool {
    max_step(func).is_some() || all_loops(func).iter().any(|found| found.inner.kind == ForKind::Unrolled)
}

/// Asks for serial loops of at most so many stores to be written out: `unroll_loop=16`.
///
/// # Errors
/// `pass-argument`: the text is no whole number.
pub(super) fn request(func: &mut PrimFunc, text: &str) -> Result<(), Diagnostic> {
    let steps: i64 = text.trim().parse().ok().filter(|steps| *steps >= 0).ok_or_else(|| {
        let message = format!("`{text}` is no number of stores");
        Diagnostic::error("pass-argument", None, message).with_help("such as `unroll_loop=16`")
    })?;
    func.attrs.other.push((MAX_STEP.to_owned(), AttrValue::Int(steps)));
    Ok(())
}

/// The number of stores that is asked for.
fn max_step(func: &PrimFunc) -> Option<i64> {
    func.attrs.other.iter().rev().find_map(|(key, value)| match value {
        AttrValue::Int(steps) if key == MAX_STEP => Some(*steps),
        _ => None,
    })
}

/// Takes the request out of the attributes.
fn taken_max_step(func: &mut PrimFunc) -> usize {
    let found = max_step(func);
    func.attrs.other.retain(|(key, _)| key != MAX_STEP);
    found.and_then(|steps| usize::try_from(steps).ok()).unwrap_or(0)
}

/// The next loop to write out, which has none inside: the body that it is in, its variable and its copies.
fn next(func: &PrimFunc, max_step: usize) -> Option<(Stmt, Var, Unrolled)> {
    let found = all_loops(func);
    let mut inner_first = found.iter().rev();
    inner_first.find_map(|found| {
        let unrolled = copies(found, func).ok()?;
        let is_short = found.inner.kind == ForKind::Serial && unrolled.n_stores_after() <= max_step;
        let is_asked = found.inner.kind == ForKind::Unrolled || (is_short && max_step > 0);
        is_asked.then(|| (func.body.clone(), found.inner.var.clone(), unrolled))
    })
}

/// The copies of the body of a loop.
///
/// # Errors
/// Why there are none.
fn copies(found: &Found<'_>, func: &PrimFunc) -> Result<Unrolled, Diagnostic> {
    let unrolled = Unrolled::of(found.inner, &found.ranges(func))?;
    let after = n_stores(&func.body) + unrolled.n_stores_after();
    if after > MOST_STORES {
        let message = format!("`{}` would become {} stores", found.inner.var, unrolled.n_stores_after());
        let help = format!("a program may have {MOST_STORES} stores; leave out that this loop is unrolled");
        return Err(Diagnostic::error("schedule", None, message).with_help(help));
    }
    Ok(unrolled)
}

/// Why a loop of kind `unrolled` was not written out.
fn note(found: &Found<'_>, func: &PrimFunc) -> Option<Diagnostic> {
    let is_left = |inner: &For| inner.kind == ForKind::Unrolled;
    let why = is_left(found.inner).then(|| copies(found, func).err()).flatten()?;
    let message = format!("{}, so that it stays a loop", why.message);
    let note = Diagnostic::warning("not-unrolled", None, message);
    Some(why.help.map_or(note.clone(), |help| note.with_help(help)))
}

/// The number of stores in a statement.
fn n_stores(stmt: &Stmt) -> usize {
    let mut stores = 0;
    stmt.walk(&mut |part| stores += usize::from(matches!(part.kind, StmtKind::Store { .. })));
    stores
}
