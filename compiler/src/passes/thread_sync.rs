//! Inserts the barriers that threads need around shared memory, and no others (TVM's `ThreadSync`).
//!
//! ```text
//! for tx in T.thread_binding(8, thread="threadIdx.x"):       for tx in T.thread_binding(8, thread="threadIdx.x"):
//!     for k in range(n):                                         for k in range(n):
//!         S[tx] = A[k, tx]                                           S[tx] = A[k, tx]
//!         B[k, tx] = S[7 - tx]                           ->          T.tvm_storage_sync("shared")
//!         C[k, tx] = S[tx]                                           B[k, tx] = S[7 - tx]
//!                                                                    C[k, tx] = S[tx]
//!                                                                    T.tvm_storage_sync("shared")
//! ```
//!
//! A program without these barriers races, so it would mean nothing. The pass takes it for the program with a barrier behind each
//! statement on shared memory ([`synchronized`]), as TVM does; `check` does the same with a program that asks for this pass, and with one that
//! has blocks and no barriers, counts the barriers as a premise, and proves that program first. From there the pass only removes barriers: the innermost loops first, each if
//! the program without it still has no races. So none of those that are left can be removed alone. Barriers of the text stay.
//!
//! Nothing is inserted under a condition or in a loop that depends on a thread or on memory, where not all threads may get to. If threads race
//! in one statement, no barrier helps: all barriers stay, and a note says so. Cost: for each barrier, a proof that the rest has no races.

use std::convert::Infallible;

use tilewright_ir::phases::{
    barriers_removed, is_implicit_barrier, leaves_barriers_out, n_implicit_barriers, synchronized,
};
use tilewright_ir::visit::Rewrite;
use tilewright_ir::{Comparison, Diagnostic, Evidence, ForKind, PrimFunc, Stmt, StmtKind, sabotage};
use tilewright_verify::{Config, Judge};

use super::Rewritten;

const NAME: &str = "thread_sync";

/// Inserts the barriers that the accesses of shared memory need.
///
/// # Errors
/// `solver`: there is no solver to look for races with.
///
/// ```
/// use tilewright_compiler::passes::thread_sync;
/// let text = r#"
/// @T.prim_func
/// def main(a: T.handle, b: T.handle, c: T.handle):
///     n = T.int32()
///     A = T.match_buffer(a, (n, 8), "float32")
///     B = T.match_buffer(b, (n, 8), "float32")
///     C = T.match_buffer(c, (n, 8), "float32")
///     S = T.alloc_buffer((8,), "float32", scope="shared")
///     for tx in T.thread_binding(8, thread="threadIdx.x"):
///         for k in range(n):
///             S[tx] = A[k, tx]
///             B[k, tx] = S[7 - tx]
///             C[k, tx] = S[tx]
/// "#;
/// let func = tilewright_script::read_module(text)?.funcs.remove(0);
/// let printed = tilewright_script::print_func(&thread_sync(&func)?.func);
/// let body: Vec<&str> = printed.lines().skip(8).map(str::trim).collect();
/// assert_eq!(body, [
///     "for k in range(n):",
///     "S[tx] = A[k, tx]",
///     r#"T.tvm_storage_sync("shared")"#,
///     "B[k, tx] = S[7 - tx]",
///     "C[k, tx] = S[tx]",
///     r#"T.tvm_storage_sync("shared")"#,
/// ]);
/// # Ok::<(), Vec<tilewright_ir::Diagnostic>>(())
/// ```
pub fn thread_sync(func: &PrimFunc) -> Result<Rewritten, Vec<Diagnostic>> {
    let mut kept = if n_implicit_barriers(&func.body) == 0 { synchronized(func) } else { func.clone() };
    let mut notes = Vec::new();
    if n_implicit_barriers(&kept.body) > 0 {
        let judge = Judge::new(Config::default(), tilewright_search::strategies())
            .map_err(|fault| vec![Diagnostic::error("solver", None, format!("`{NAME}` needs a solver: {fault}"))])?;
        if is_free_of_races(&judge, &kept) {
            kept = irredundant(&judge, kept);
        } else {
            let message = "threads may race in a statement that no barrier can divide; all barriers stay";
            notes.push(Diagnostic::warning("thread-sync", None, message.to_owned()));
        }
    }
    if sabotage::on("thread-sync-drops-barriers") {
        kept = barriers_removed(&kept);
    }
    let Ok(body) = Explicit.stmt(&kept.body);
    let evidence = Evidence { pass: NAME.to_owned(), comparison: Comparison::Barriers, ..Evidence::default() };
    let mut func = PrimFunc { body, ..kept };
    // The text has all barriers now.
    super::answered(&mut func, NAME);
    Ok(Rewritten { func, evidence, notes })
}

/// Returns whether a function asks for the pass, or leaves its barriers to the compiler.
pub(crate) fn is_wanted(func: &PrimFunc) -> bool {
    super::is_asked(func, NAME) || n_implicit_barriers(&func.body) > 0 || leaves_barriers_out(func)
}

/// Whether the judge proves that threads do not race, and that all of them get to each barrier.
fn is_free_of_races(judge: &Judge, func: &PrimFunc) -> bool {
    sabotage::on("thread-sync-sees-no-race") || judge.check_races(func).iter().all(|report| report.verdict.is_proved())
}

/// Removes implicit barriers, one after the other, as long as there are no races.
fn irredundant(judge: &Judge, mut func: PrimFunc) -> PrimFunc {
    let mut depths = Vec::new();
    depths_of(&func.body, 0, &mut depths);
    let mut order: Vec<usize> = (0..depths.len()).collect();
    order.sort_by_key(|position| std::cmp::Reverse(depths[*position]));
    if sabotage::on("thread-sync-other-order") {
        order.reverse();
    }
    // Positions of barriers that are gone, to count those that are left.
    let mut gone: Vec<usize> = Vec::new();
    for position in order {
        let at = position - gone.iter().filter(|other| **other < position).count();
        let Ok(body) = (Without { at, count: 0 }).stmt(&func.body);
        let tried = PrimFunc { body, ..func.clone() };
        if is_free_of_races(judge, &tried) {
            func = tried;
            gone.push(position);
        }
    }
    func
}

/// The number of serial loops around each implicit barrier, in program order.
fn depths_of(stmt: &Stmt, depth: usize, found: &mut Vec<usize>) {
    if is_implicit_barrier(stmt) {
        found.push(depth);
        return;
    }
    let is_loop =
        matches!(&stmt.kind, StmtKind::For(inner) if matches!(inner.kind, ForKind::Serial | ForKind::Unrolled));
    stmt.children().for_each(|child| depths_of(child, depth + usize::from(is_loop), found));
}

/// Removes one implicit barrier, by its position.
struct Without {
    at: usize,
    count: usize,
}

impl Rewrite for Without {
    type Error = Infallible;

    fn stmt(&mut self, stmt: &Stmt) -> Result<Stmt, Infallible> {
        if is_implicit_barrier(stmt) {
            let is_it = self.count == self.at;
            self.count += 1;
            return Ok(if is_it { Stmt::seq(Vec::new()) } else { stmt.clone() });
        }
        parts(self, stmt)
    }
}

/// Makes implicit barriers barriers of the text.
struct Explicit;

impl Rewrite for Explicit {
    type Error = Infallible;

    fn stmt(&mut self, stmt: &Stmt) -> Result<Stmt, Infallible> {
        if is_implicit_barrier(stmt) { Ok(Stmt::new(StmtKind::Barrier)) } else { parts(self, stmt) }
    }
}

/// The statement with its parts rewritten, in which no sequence is inside of a sequence.
fn parts(rewrite: &mut impl Rewrite<Error = Infallible>, stmt: &Stmt) -> Result<Stmt, Infallible> {
    match &stmt.kind {
        StmtKind::Seq(stmts) => {
            let parts = stmts.iter().map(|part| rewrite.stmt(part)).collect::<Result<Vec<_>, _>>()?;
            Ok(Stmt::seq(parts).at(stmt.span))
        }
        _ => rewrite.stmt_children(stmt),
    }
}
