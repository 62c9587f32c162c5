//! Fuses two or more loops into one: `fuse=LOOP:LOOP`.
//!
//! ```text
//! for i in range(n):                     for i_j_fused in range(n * 7):
//!     for j in range(7):       ->            B[i_j_fused // 7, i_j_fused % 7] = A[i_j_fused // 7, i_j_fused % 7]
//!         B[i, j] = A[i, j]
//! ```
//!
//! The loops stand directly inside of each other, outermost first, and run one after the other; conditions between them are asked in the
//! new loop. Cost: one walk.

use tilewright_ir::visit::Substitution;
use tilewright_ir::{Diagnostic, Expr, PrimFunc, StoreOrigin, Var, sabotage};
use tilewright_verify::reorder::Statement;

use super::super::Rewritten;
use super::claims::Claim;
use super::loops::{check_in_order, loop_named, with_loop};
use super::nest::{Fused, Nest, loop_of};
use super::{applied, fault};

/// Applies the first step `fuse` of the schedule.
///
/// # Errors
/// `schedule`: the step does not name loops that stand directly inside of each other, run in order, and do not depend on each other.
///
/// ```
/// use tilewright_compiler::passes::fuse;
/// let text = r#"
/// @T.prim_func
/// def main(a: T.handle, b: T.handle):
///     n = T.int32()
///     A = T.match_buffer(a, (n, 7), "float32")
///     B = T.match_buffer(b, (n, 7), "float32")
///     T.func_attr({"schedule": ["fuse=i:j"]})
///     for i, j in T.grid(n, 7):
///         B[i, j] = A[i, j]
/// "#;
/// let func = tilewright_script::read_module(text)?.funcs.remove(0);
/// let printed = tilewright_script::print_func(&fuse(&func)?.func);
/// let body: Vec<&str> = printed.lines().skip(5).map(str::trim).collect();
/// assert_eq!(body, [
///     "for i_j_fused in range(n * 7):",
///     "B[i_j_fused // 7, i_j_fused % 7] = A[i_j_fused // 7, i_j_fused % 7]",
/// ]);
/// # Ok::<(), Vec<tilewright_ir::Diagnostic>>(())
/// ```
pub fn fuse(func: &PrimFunc) -> Result<Rewritten, Vec<Diagnostic>> {
    applied("fuse", func, &|func, argument| {
        let found = argument.split(':').map(|name| loop_named(func, name.trim())).collect::<Result<Vec<_>, _>>()?;
        let [first, .., _] = &found[..] else {
            return Err(fault(format!("`{argument}` does not name two loops"), "such as `fuse=i:j`"));
        };
        let vars: Vec<Var> = found.iter().map(|found| found.inner.var.clone()).collect();
        let nest = Nest::of(first.inner, &vars)?;
        if nest.loops.iter().map(|run| &run.var).ne(&vars) {
            let names: Vec<&str> = nest.loops.iter().map(|run| run.var.name()).collect();
            let message = format!("`{argument}` does not name neighbours, outer loop first");
            return Err(fault(message, format!("the loops are {}", names.join(", "))));
        }
        nest.loops.iter().try_for_each(|run| check_in_order(run, "fuse"))?;
        let mut fused = Fused::of(&nest.loops, &first.ranges(func))?;
        if let (true, [outer, .., inner]) = (sabotage::on("fuse-swaps"), &vars[..]) {
            let swapped = Substitution::new([outer, inner], [Expr::from(inner), Expr::from(outer)]);
            let values =
                vars.iter().map(|var| fused.forward.apply(&swapped.apply(&Expr::from(var)))).collect::<Vec<_>>();
            fused.forward = Substitution::new(&vars, values);
        }
        let body = fused.forward.apply_stmt(&nest.guarded());
        let stmt = loop_of(&fused.var, fused.extent.clone(), first.inner, body);
        let body = with_loop(&func.body, &first.inner.var, &stmt);
        let claim = move |old: &[Statement], new: &[Statement]| {
            let stores = old.iter().zip(new).enumerate();
            Some(stores.map(|(position, (old, new))| origin(&fused, position, old, new)).collect())
        };
        Ok((body, Claim::Iterations(Box::new(claim))))
    })
}

/// The iterations before of a store after.
fn origin(fused: &Fused, before: usize, old: &Statement, new: &Statement) -> StoreOrigin {
    let forward = |var: &Var| fused.forward.get(var).cloned().unwrap_or_else(|| Expr::from(var));
    let back = |var: &Var| if *var == fused.var { fused.number.clone() } else { Expr::from(var) };
    let (forward, back) = (old.loops().iter().map(forward).collect(), new.loops().iter().map(back).collect());
    StoreOrigin { when: None, before, forward, back }
}
