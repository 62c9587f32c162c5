//! Says how the iterations of a loop run: `loop_kind=LOOP:KIND`.
//!
//! ```text
//! for i in range(n):                     for i in T.parallel(n):
//!     B[i] = A[i]              ->            B[i] = A[i]
//! ```
//!
//! The kinds are `serial`, `parallel`, `vectorized` and `unrolled`. Memory of one thread that only the loop uses is allocated in each of
//! its iterations if these run at once. That they may do so is for the judge to see. Cost: one walk.

use tilewright_ir::{Diagnostic, For, ForKind, PrimFunc, Stmt, StmtKind};

use super::super::Rewritten;
use super::buffers::{is_private, with_own_memory};
use super::claims::Claim;
use super::loops::{loop_named, with_loop};
use super::nest::KINDS;
use super::reorder::same_iterations;
use super::{applied, fault};

/// Applies the first step `loop_kind` of the schedule.
///
/// # Errors
/// `schedule`: the step names no loop and kind, or the loop is to become lanes and has no constant number of iterations or another loop
/// inside.
///
/// ```
/// use tilewright_compiler::passes::loop_kind;
/// let text = r#"
/// @T.prim_func
/// def main(A: T.Buffer((6,), "float32"), B: T.Buffer((6,), "float32")):
///     T.func_attr({"schedule": ["loop_kind=i:parallel"]})
///     for i in range(6):
///         B[i] = A[i]
/// "#;
/// let func = tilewright_script::read_module(text)?.funcs.remove(0);
/// let printed = tilewright_script::print_func(&loop_kind(&func)?.func);
/// let body: Vec<&str> = printed.lines().skip(2).map(str::trim).collect();
/// assert_eq!(body, ["for i in T.parallel(6):", "B[i] = A[i]"]);
/// # Ok::<(), Vec<tilewright_ir::Diagnostic>>(())
/// ```
pub fn loop_kind(func: &PrimFunc) -> Result<Rewritten, Vec<Diagnostic>> {
    applied("loop_kind", func, &|func, argument| {
        let kind = argument.rsplit_once(':').and_then(|(name, kind)| {
            let known = KINDS.iter().find(|(known, _)| *known == kind.trim())?;
            Some((name.trim(), known.1))
        });
        let (name, kind) = kind.ok_or_else(|| {
            let help = "such as `loop_kind=i:parallel`; the kinds are serial, parallel, vectorized and unrolled";
            fault(format!("`{argument}` is no loop and kind"), help)
        })?;
        let run = loop_named(func, name)?.inner;
        if kind == ForKind::Vectorized {
            check_lanes(run)?;
        }
        let changed = Stmt::new(StmtKind::For(For { kind, ..run.clone() }.into()));
        let mut body = with_loop(&func.body, &run.var, &changed);
        for buffer in func.buffers().iter().filter(|buffer| is_private(buffer, kind)) {
            body = with_own_memory(&body, &run.var, buffer);
        }
        Ok((body, Claim::Iterations(Box::new(|old, new| Some(same_iterations(old, new))))))
    })
}

/// Checks that a loop may become lanes.
fn check_lanes(run: &For) -> Result<(), Diagnostic> {
    if run.extent.as_const_int().is_none() {
        let message = format!("`{}` has {} iterations, which is no constant number of lanes", run.var, run.extent);
        return Err(fault(message, "split it by a constant factor, and take the inner loop"));
    }
    let mut inner = None;
    run.body.walk(&mut |part| {
        if let StmtKind::For(found) = &part.kind {
            inner.get_or_insert_with(|| found.var.clone());
        }
    });
    inner.map_or(Ok(()), |inner| {
        let message = format!("the loop `{inner}` is inside of `{}`, which cannot become lanes", run.var);
        Err(fault(message, "reorder the loops first"))
    })
}
