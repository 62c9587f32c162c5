//! Puts nested loops into another order: `reorder=LOOP:LOOP`, the outermost one first.
//!
//! ```text
//! for i, j in T.grid(n, 7):                  for j, i in T.grid(7, n):
//!     B[i, j] = A[j, i]            ->            B[i, j] = A[j, i]
//! ```
//!
//! Together the loops keep the places that they have; loops between them that are not named stay where they are. Conditions between
//! them are asked inside of all. That dependences keep their order is for the judge to see. Cost: one walk.

use tilewright_ir::{Diagnostic, Expr, PrimFunc, StoreOrigin, Var, sabotage};
use tilewright_verify::reorder::Statement;

use super::super::Rewritten;
use super::claims::Claim;
use super::loops::{loop_named, with_loop};
use super::nest::{Nest, around, ordered};
use super::{applied, fault};

/// Applies the first step `reorder` of the schedule.
///
/// # Errors
/// `schedule`: the step does not name loops that are nested with nothing but conditions between them, or the range of one depends on
/// one that would be inside of it.
///
/// ```
/// use tilewright_compiler::passes::reorder;
/// let text = r#"
/// @T.prim_func
/// def main(a: T.handle, b: T.handle):
///     n = T.int32()
///     A = T.match_buffer(a, (7, n), "float32")
///     B = T.match_buffer(b, (n, 7), "float32")
///     T.func_attr({"schedule": ["reorder=j:i"]})
///     for i, j in T.grid(n, 7):
///         B[i, j] = A[j, i]
/// "#;
/// let func = tilewright_script::read_module(text)?.funcs.remove(0);
/// let printed = tilewright_script::print_func(&reorder(&func)?.func);
/// let body: Vec<&str> = printed.lines().skip(5).map(str::trim).collect();
/// assert_eq!(body, ["for j, i in T.grid(7, n):", "B[i, j] = A[j, i]"]);
/// # Ok::<(), Vec<tilewright_ir::Diagnostic>>(())
/// ```
pub fn reorder(func: &PrimFunc) -> Result<Rewritten, Vec<Diagnostic>> {
    applied("reorder", func, &|func, argument| {
        let named = argument.split(':').map(|name| loop_named(func, name.trim())).collect::<Result<Vec<_>, _>>()?;
        let vars: Vec<Var> = named.iter().map(|found| found.inner.var.clone()).collect();
        if let Some((_, twice)) = vars.iter().enumerate().find(|(at, var)| vars[..*at].contains(var)) {
            return Err(fault(format!("`{twice}` is named twice"), "name each loop once"));
        }
        let top = named.iter().min_by_key(|found| found.outer.len());
        let top = top.ok_or_else(|| fault("`reorder` needs loops", "such as `reorder=j:i`"))?.inner;
        let nest = Nest::of(top, &vars)?;
        let loops = ordered(&nest.loops, &vars)?;
        let inside = if sabotage::on("reorder-drops-guards") { nest.body.clone() } else { nest.guarded() };
        let body = with_loop(&func.body, &top.var, &around(&loops, inside));
        Ok((body, Claim::Iterations(Box::new(|old, new| Some(same_iterations(old, new))))))
    })
}

/// Each store after in an iteration is the store before with the same values of all loops.
pub(super) fn same_iterations(old: &[Statement], new: &[Statement]) -> Vec<StoreOrigin> {
    let values = |store: &Statement| store.loops().iter().map(Expr::from).collect();
    let origin = |(before, (old, new)): (usize, (&Statement, &Statement))| StoreOrigin {
        when: None,
        before,
        forward: values(old),
        back: values(new),
    };
    old.iter().zip(new).enumerate().map(origin).collect()
}
