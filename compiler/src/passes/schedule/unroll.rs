//! Writes out the iterations of a loop: `unroll=LOOP`.
//!
//! ```text
//! for i in range(n):                     for i in range(n):
//!     for k in range(3):       ->            B[i] = B[i] + A[i, 0]
//!         B[i] = B[i] + A[i, k]              B[i] = B[i] + A[i, 1]
//!                                            B[i] = B[i] + A[i, 2]
//! ```
//!
//! The loop has a constant number of iterations, at most 64; its first value may depend on other loops. The copies are
//! simplified. A loop of kind `unrolled` that no step names stays a loop, with a hint for the code generator. Cost: one
//! walk for each copy, and the search for the evidence.

use tilewright_algebra::{Ranges, simplify};
use tilewright_ir::visit::{Rewrite, Substitution};
use tilewright_ir::{Diagnostic, Expr, For, PrimFunc, Stmt, sabotage};

use super::super::Rewritten;
use super::super::simplify::Simplify;
use super::copy::copied;
use super::loops::{check_in_order, loop_named, with_loop};
use super::{Way, applied, fault};

/// Most copies of one body.
const MOST_COPIES: i128 = 64;

/// Applies the first step `unroll` of the schedule.
///
/// # Errors
/// `schedule`: the step names no serial loop, or one without a constant number of at most 64 iterations.
///
/// ```
/// use tilewright_compiler::passes::unroll;
/// let text = r#"
/// @T.prim_func
/// def main(A: T.Buffer((5, 3), "float32"), B: T.Buffer((5,), "float32")):
///     T.func_attr({"schedule": ["unroll=k"]})
///     for i in range(5):
///         for k in range(3):
///             B[i] = B[i] + A[i, k]
/// "#;
/// let func = tilewright_script::read_module(text)?.funcs.remove(0);
/// let printed = tilewright_script::print_func(&unroll(&func)?.func);
/// let body: Vec<&str> = printed.lines().skip(2).map(str::trim).collect();
/// assert_eq!(body, [
///     "for i in range(5):",
///     "B[i] = B[i] + A[i, 0]",
///     "B[i] = B[i] + A[i, 1]",
///     "B[i] = B[i] + A[i, 2]",
/// ]);
/// # Ok::<(), Vec<tilewright_ir::Diagnostic>>(())
/// ```
pub fn unroll(func: &PrimFunc) -> Result<Rewritten, Vec<Diagnostic>> {
    applied("unroll", func, Way::Iterations, &|func, argument| {
        let found = loop_named(func, argument)?;
        check_in_order(found.inner, "unroll")?;
        let unrolled = unrolled(found.inner, &found.ranges(func))?;
        Ok(with_loop(&func.body, &found.inner.var, &unrolled))
    })
}

/// The copies of the body of a loop.
fn unrolled(inner: &For, ranges: &Ranges) -> Result<Stmt, Diagnostic> {
    let var = &inner.var;
    let help = "split it by a constant factor first, and unroll the inner loop";
    let Some(n_copies) = simplify(&inner.extent, ranges).as_const_int() else {
        return Err(fault(format!("`{var}` has {} iterations, which is no constant", inner.extent), help));
    };
    if n_copies > MOST_COPIES {
        return Err(fault(format!("`{var}` has {n_copies} iterations; at most {MOST_COPIES} are written out"), help));
    }
    let n_copies = if sabotage::on("unroll-drops-last") && n_copies > 1 { n_copies - 1 } else { n_copies };
    let copy = |number: i128| {
        let number = Expr::int_of(number, var.dtype().scalar).unwrap_or_else(|| Expr::int(0));
        let value = simplify(&(inner.min.clone() + number), ranges);
        let copy = copied(&inner.body, &Substitution::new([var], [value]));
        let Ok(copy) = Simplify::within(ranges).stmt(&copy);
        copy
    };
    Ok(Stmt::seq((0..n_copies).map(copy).collect()))
}
