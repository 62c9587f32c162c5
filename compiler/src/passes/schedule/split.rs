//! Splits a loop in two: `split=LOOP:FACTOR`.
//!
//! ```text
//! for i in range(n):                     for i_outer in range((n + 3) // 4):
//!     B[i] = A[i]              ->            for i_inner in range(4):
//!                                                if i_outer * 4 + i_inner < n:
//!                                                    B[i_outer * 4 + i_inner] = A[i_outer * 4 + i_inner]
//! ```
//!
//! The inner loop has as many iterations as the factor says. There is no guard if the factor divides the extent for all sizes.
//! The new loops are named after the old one, as TVM names them. Cost: one walk, and the search for the evidence.

use tilewright_algebra::{Ranges, simplify};
use tilewright_ir::visit::Substitution;
use tilewright_ir::{Diagnostic, Expr, For, ForKind, PrimFunc, Stmt, Var, sabotage};

use super::super::Rewritten;
use super::loops::{check_in_order, loop_named, with_loop};
use super::{Way, applied, fault};

/// Applies the first step `split` of the schedule.
///
/// # Errors
/// `schedule`: the step names no serial loop and positive factor, or the factor does not fit the type of the loop.
///
/// ```
/// use tilewright_compiler::passes::split;
/// let text = r#"
/// @T.prim_func
/// def main(a: T.handle, b: T.handle):
///     n = T.int32()
///     A = T.match_buffer(a, (n,), "float32")
///     B = T.match_buffer(b, (n,), "float32")
///     T.func_attr({"schedule": ["split=i:4"]})
///     for i in range(n):
///         B[i] = A[i]
/// "#;
/// let func = tilewright_script::read_module(text)?.funcs.remove(0);
/// let printed = tilewright_script::print_func(&split(&func)?.func);
/// let body: Vec<&str> = printed.lines().skip(5).map(str::trim).collect();
/// assert_eq!(body, [
///     "for i_outer in range((n + 3) // 4):",
///     "for i_inner in range(4):",
///     "if i_outer * 4 + i_inner < n:",
///     "B[i_outer * 4 + i_inner] = A[i_outer * 4 + i_inner]",
/// ]);
/// # Ok::<(), Vec<tilewright_ir::Diagnostic>>(())
/// ```
pub fn split(func: &PrimFunc) -> Result<Rewritten, Vec<Diagnostic>> {
    applied("split", func, Way::Iterations, &|func, argument| {
        let help = "such as `split=i:4`: a loop, and the iterations of the inner one";
        let wrong = || fault(format!("`{argument}` is no loop and factor"), help);
        let (name, factor) = argument.rsplit_once(':').ok_or_else(wrong)?;
        let factor: i64 = factor.trim().parse().ok().filter(|factor| *factor > 0).ok_or_else(wrong)?;
        let found = loop_named(func, name.trim())?;
        check_in_order(found.inner, "split")?;
        let split = split_loop(found.inner, factor.into(), &found.ranges(func)).ok_or_else(|| {
            fault(format!("`{}` cannot be split by {factor}", found.inner.var), "give a factor that fits its type")
        })?;
        Ok(with_loop(&func.body, &found.inner.var, &split))
    })
}

/// The two loops for one; `None` if the factor does not fit its type.
fn split_loop(inner: &For, factor: i128, ranges: &Ranges) -> Option<Stmt> {
    let by = Expr::int_of(factor, inner.extent.dtype().scalar)?;
    let round_up = Expr::int_of(factor - 1, inner.extent.dtype().scalar)?;
    let extent = simplify(&inner.extent, ranges);
    let is_exact = simplify(&extent.clone().floor_mod(by.clone()), ranges).as_const_int() == Some(0);
    let named = |suffix: &str| Var::new(format!("{}_{suffix}", inner.var), inner.var.dtype());
    let (high, low) = (named("outer"), named("inner"));
    let round_up =
        if is_exact || sabotage::on("split-drops-rest") { extent.clone() } else { extent.clone() + round_up };
    let n_outer = simplify(&round_up.floor_div(by.clone()), ranges);
    let place = Expr::from(&high) * by.clone() + Expr::from(&low);
    let value = if inner.min.as_const_int() == Some(0) { place.clone() } else { inner.min.clone() + place.clone() };
    let mut body = Substitution::new([&inner.var], [value]).apply_stmt(&inner.body);
    if !is_exact && !sabotage::on("split-unguarded") {
        body = Stmt::guarded(place.lt(extent), body);
    }
    let body = Stmt::for_loop(&low, by, ForKind::Serial, body);
    Some(Stmt::for_loop(&high, n_outer, ForKind::Serial, body))
}
