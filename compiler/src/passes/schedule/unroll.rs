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
//! simplified. A loop of kind `unrolled` that no step names stays a loop, with a hint for the code generator. Cost: some
//! walks for each copy.

use std::convert::Infallible;

use tilewright_algebra::{Ranges, simplify};
use tilewright_ir::visit::{Rewrite, Substitution};
use tilewright_ir::{Diagnostic, Expr, For, PrimFunc, Stmt, StmtKind, StoreOrigin, Var, sabotage};
use tilewright_verify::reorder::Statement;

use super::super::Rewritten;
use super::super::simplify::Simplify;
use super::claims::{Claim, in_iteration, without};
use super::copy::copied;
use super::loops::{check_in_order, loop_named, with_loop};
use super::{applied, fault};

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
    applied("unroll", func, &|func, argument| {
        let found = loop_named(func, argument)?;
        check_in_order(found.inner, "unroll")?;
        let unrolled = Unrolled::of(found.inner, &found.ranges(func))?;
        let body = with_loop(&func.body, &found.inner.var, &unrolled.stmt());
        Ok((body, Claim::Iterations(Box::new(move |old, new| unrolled.origins(old, new)))))
    })
}

/// A loop that is written out.
pub(in crate::passes) struct Unrolled {
    var: Var,
    /// The value of the variable in each copy, the copy, and which of the stores of the body it has.
    copies: Vec<(Expr, Stmt, Vec<usize>)>,
    /// The number of stores of the body.
    n_stores: usize,
}

impl Unrolled {
    /// The copies of the body of a loop, simplified.
    ///
    /// # Errors
    /// `schedule`: the number of iterations is no constant, or too large.
    pub(in crate::passes) fn of(run: &For, ranges: &Ranges) -> Result<Self, Diagnostic> {
        let var = &run.var;
        let help = "split it by a constant factor first, and unroll the inner loop";
        let Some(n_copies) = simplify(&run.extent, ranges).as_const_int() else {
            return Err(fault(format!("`{var}` has {} iterations, which is no constant", run.extent), help));
        };
        if n_copies > MOST_COPIES {
            return Err(fault(
                format!("`{var}` has {n_copies} iterations; at most {MOST_COPIES} are written out"),
                help,
            ));
        }
        let n_copies = if sabotage::on("unroll-drops-last") && n_copies > 1 { n_copies - 1 } else { n_copies };
        let simple = |stmt: &Stmt| {
            let Ok(stmt) = Simplify::within(ranges).stmt(stmt);
            stmt
        };
        let copy = |number: i128| {
            let number = Expr::int_of(number, var.dtype().scalar).unwrap_or_else(|| Expr::int(0));
            let value = simplify(&(run.min.clone() + number), ranges);
            let copy = copied(&run.body, &Substitution::new([var], [value.clone()]));
            // Branches that are never taken go away, and their stores with them.
            let kept = numbers(&simple(&numbered(&copy)));
            let copy = if sabotage::on("unroll-simplifies-twice") { simple(&simple(&copy)) } else { simple(&copy) };
            (value, copy, kept)
        };
        let n_stores = numbers(&numbered(&run.body)).len();
        Ok(Self { var: var.clone(), copies: (0..n_copies).map(copy).collect(), n_stores })
    }

    /// The copies, one after the other.
    pub(in crate::passes) fn stmt(&self) -> Stmt {
        Stmt::seq(self.copies.iter().map(|(_, copy, _)| copy.clone()).collect())
    }

    /// The number of stores of all copies.
    pub(in crate::passes) fn n_stores_after(&self) -> usize {
        self.copies.iter().map(|(_, _, kept)| kept.len()).sum()
    }

    /// The iterations before of each store after.
    pub(in crate::passes) fn origins(&self, old: &[Statement], new: &[Statement]) -> Option<Vec<StoreOrigin>> {
        let first = old.iter().position(|store| store.loops().contains(&self.var)).unwrap_or(old.len());
        let nothing = Expr::int(0);
        // In the order after: stores in front of the loop, those of each copy, and those behind it.
        let mut places: Vec<(usize, &Expr)> = (0..first).map(|position| (position, &nothing)).collect();
        for (value, _, kept) in &self.copies {
            places.extend(kept.iter().map(|store| (first + store, value)));
        }
        places.extend((first + self.n_stores..old.len()).map(|position| (position, &nothing)));
        (places.len() == new.len()).then_some(())?;
        let origin = |((before, value), after): ((usize, &Expr), &Statement)| {
            let forward = in_iteration(old.get(before)?, after, &self.var, value)?;
            let back = without(&old[before], &self.var).iter().map(Expr::from).collect();
            Some(StoreOrigin { when: None, before, forward, back })
        };
        places.into_iter().zip(new).map(origin).collect()
    }
}

/// A statement in which each store writes its number.
pub(in crate::passes) fn numbered(stmt: &Stmt) -> Stmt {
    let Ok(stmt) = Number(0).stmt(stmt);
    stmt
}

struct Number(i64);

impl Rewrite for Number {
    type Error = Infallible;

    fn stmt(&mut self, stmt: &Stmt) -> Result<Stmt, Infallible> {
        let StmtKind::Store { buffer, indices, .. } = &stmt.kind else { return self.stmt_children(stmt) };
        let value = Expr::int(self.0);
        self.0 += 1;
        Ok(Stmt::store(buffer, indices.clone(), value))
    }
}

/// The numbers that a numbered statement writes.
pub(in crate::passes) fn numbers(stmt: &Stmt) -> Vec<usize> {
    let mut found = Vec::new();
    stmt.walk(&mut |part| {
        if let StmtKind::Store { value, .. } = &part.kind {
            found.extend(value.as_const_int().and_then(|number| usize::try_from(number).ok()));
        }
    });
    found
}
