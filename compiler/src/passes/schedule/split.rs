//! Splits a loop in two: `split=LOOP:FACTOR`, or `split=LOOP:NUMBER:parts`.
//!
//! ```text
//! for i in range(n):                     for i_outer in range((n + 3) // 4):
//!     B[i] = A[i]              ->            for i_inner in range(4):
//!                                                if i_outer * 4 + i_inner < n:
//!                                                    B[i_outer * 4 + i_inner] = A[i_outer * 4 + i_inner]
//! ```
//!
//! The inner loop has as many iterations as the factor says; with `parts`, the outer one has that many. There is no guard if the factor divides the extent for all sizes.
//! The new loops are named after the old one, as TVM names them. Cost: one walk.

use tilewright_algebra::{Ranges, simplify};
use tilewright_ir::visit::Substitution;
use tilewright_ir::{Diagnostic, Expr, For, ForKind, PrimFunc, Stmt, StoreOrigin, Var, sabotage};
use tilewright_verify::reorder::Statement;

use super::super::Rewritten;
use super::claims::Claim;
use super::loops::{check_in_order, loop_named, with_loop};
use super::{applied, fault};

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
///     "for i_outer, i_inner in T.grid((n + 3) // 4, 4):",
///     "if i_outer * 4 + i_inner < n:",
///     "B[i_outer * 4 + i_inner] = A[i_outer * 4 + i_inner]",
/// ]);
/// # Ok::<(), Vec<tilewright_ir::Diagnostic>>(())
/// ```
pub fn split(func: &PrimFunc) -> Result<Rewritten, Vec<Diagnostic>> {
    applied("split", func, &|func, argument| {
        let help = "such as `split=i:4`: a loop, and the iterations of the inner one";
        let wrong = || fault(format!("`{argument}` is no loop and factor"), help);
        let (text, is_outer) = argument.strip_suffix(":parts").map_or((argument, false), |text| (text, true));
        let (name, factor) = text.rsplit_once(':').ok_or_else(wrong)?;
        let factor: i64 = factor.trim().parse().ok().filter(|factor| *factor > 0).ok_or_else(wrong)?;
        let found = loop_named(func, name.trim())?;
        check_in_order(found.inner, "split")?;
        let by = if is_outer { Factor::Outer(factor.into()) } else { Factor::Inner(factor.into()) };
        let split = Split::of(found.inner, by, &found.ranges(func)).ok_or_else(|| {
            fault(format!("`{}` cannot be split by {factor}", found.inner.var), "give a factor that fits its type")
        })?;
        let body = with_loop(&func.body, &found.inner.var, &split.stmt(found.inner));
        let claim = move |old: &[Statement], new: &[Statement]| {
            let origins = old.iter().zip(new).enumerate();
            Some(origins.map(|(position, (old, new))| split.origin(position, old, new)).collect())
        };
        Ok((body, Claim::Iterations(Box::new(claim))))
    })
}

/// The number of iterations of one of the two loops.
#[derive(Clone, Copy)]
enum Factor {
    Inner(i128),
    Outer(i128),
}

/// A loop that is split.
struct Split {
    var: Var,
    /// The loops that it becomes, and the number of iterations of the inner one.
    outer: Var,
    inner: Var,
    by: Expr,
    n_outer: Expr,
    /// The variable in terms of the new ones, and the other way round.
    value: Expr,
    back: [Expr; 2],
    guard: Option<Expr>,
}

impl Split {
    /// `None` if the factor does not fit the type of the loop.
    fn of(run: &For, factor: Factor, ranges: &Ranges) -> Option<Self> {
        let ty = run.extent.dtype().scalar;
        let (Factor::Inner(given) | Factor::Outer(given)) = factor;
        let (given, round_up) = (Expr::int_of(given, ty)?, Expr::int_of(given - 1, ty)?);
        let extent = simplify(&run.extent, ranges);
        let by = match factor {
            Factor::Inner(_) => given.clone(),
            Factor::Outer(_) => simplify(&(extent.clone() + round_up.clone()).floor_div(given.clone()), ranges),
        };
        let is_exact = simplify(&extent.clone().floor_mod(given.clone()), ranges).as_const_int() == Some(0);
        let named = |suffix: &str| Var::new(format!("{}_{suffix}", run.var), run.var.dtype());
        let (outer, inner) = (named("outer"), named("inner"));
        let is_cut = is_exact || sabotage::on("split-drops-rest");
        let rounded = if is_cut { extent.clone() } else { extent.clone() + round_up };
        let n_outer = match factor {
            Factor::Inner(_) => simplify(&rounded.floor_div(by.clone()), ranges),
            Factor::Outer(_) => given,
        };
        let number = Expr::from(&outer) * by.clone() + Expr::from(&inner);
        let from_zero = run.min.as_const_int() == Some(0);
        let value = if from_zero { number.clone() } else { run.min.clone() + number.clone() };
        let var = run.var.clone();
        let offset = if from_zero { Expr::from(&var) } else { Expr::from(&var) - run.min.clone() };
        let back = [offset.clone().floor_div(by.clone()), offset.floor_mod(by.clone())];
        let guard = (!is_exact && !sabotage::on("split-unguarded")).then(|| number.lt(extent));
        Some(Self { var, outer, inner, by, n_outer, value, back, guard })
    }

    /// The two loops for one.
    fn stmt(&self, run: &For) -> Stmt {
        let body = Substitution::new([&self.var], [self.value.clone()]).apply_stmt(&run.body);
        let body = match &self.guard {
            Some(guard) => Stmt::guarded(guard.clone(), body),
            None => body,
        };
        let body = Stmt::for_loop(&self.inner, self.by.clone(), ForKind::Serial, body);
        Stmt::for_loop(&self.outer, self.n_outer.clone(), ForKind::Serial, body)
    }

    /// The iterations before of a store after.
    fn origin(&self, before: usize, old: &Statement, new: &Statement) -> StoreOrigin {
        let forward = |var: &Var| if *var == self.var { self.value.clone() } else { Expr::from(var) };
        let back = |var: &Var| match var {
            var if *var == self.outer => self.back[0].clone(),
            var if *var == self.inner => self.back[1].clone(),
            var => Expr::from(var),
        };
        let (forward, back) = (old.loops().iter().map(forward).collect(), new.loops().iter().map(back).collect());
        StoreOrigin { when: None, before, forward, back }
    }
}
