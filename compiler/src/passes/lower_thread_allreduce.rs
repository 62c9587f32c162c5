//! Combines the values of threads in a tree (TVM's `LowerThreadAllreduce`).
//!
//! ```text
//! with T.attr([t], "thread_allreduce", 1):                    S = T.alloc_buffer((12,), "float32", scope="shared")
//!     S = T.alloc_buffer((12,), "float32", scope="shared")    S_8 = T.alloc_buffer((8,), "float32", scope="shared")
//!     S[t] = A[i, t]                                          ... S_4, S_2, S_1
//!     T.tvm_storage_sync("shared")                            S[t] = A[i, t]
//!     R[0] = T.float32(0)                              ->     T.tvm_storage_sync("shared")
//!     for t_r in range(12):                                   if t < 8:
//!         R[0] = R[0] + S[t_r]                                    S_8[t] = T.float32(0)
//!     T.tvm_storage_sync("shared")                                for q in range(2):
//!                                                                     if t + 8 * q < 12:
//!                                                                         S_8[t] = S_8[t] + S[t + 8 * q]
//!                                                             T.tvm_storage_sync("shared")
//!                                                             ...
//!                                                             R[0] = S_1[0]
//!                                                             T.tvm_storage_sync("shared")
//! ```
//!
//! The left side is what the reader makes of `T.tvm_thread_allreduce`: every thread combines all values in their order. In the tree half as
//! many threads combine two values each in each round. The number of threads need not be a power of two: the first round leaves
//! the largest power below it. Each round has memory of its own, so the shared memory is at most three times that of the values, and
//! the rounds are reductions that the judge compares with the one before, for all extents around them. For floats the order is a
//! premise of the report. Threads of axes that are not reduced have trees of their own. Cost: linear, and the search for the
//! evidence.

use std::convert::Infallible;
use std::sync::Arc;

use tilewright_ir::phases::{Barriers, without_barriers};
use tilewright_ir::visit::Rewrite;
use tilewright_ir::{
    AttrValue, Buffer, Comparison, Diagnostic, Evidence, Expr, For, ForKind, Phased, PrimFunc, Scope, Span, Stmt,
    StmtKind, THREAD_ALLREDUCE, Var,
};

use super::Rewritten;
use crate::lift;

const NAME: &str = "lower_thread_allreduce";

/// Turns reductions across threads into trees.
///
/// # Errors
/// `thread-allreduce`: the statements under the attribute are no such reduction, or the number of threads is no constant.
///
/// ```
/// use tilewright_compiler::passes::lower_thread_allreduce;
/// let text = r#"
/// @T.prim_func
/// def main(a: T.handle, b: T.handle):
///     n = T.int32()
///     A = T.match_buffer(a, (n, 2), "float32")
///     B = T.match_buffer(b, (n, 2), "float32")
///     for i in T.thread_binding(n, thread="blockIdx.x"):
///         for t in T.thread_binding(2, thread="threadIdx.x"):
///             R = T.alloc_buffer((1,), "float32", scope="local")
///             with T.attr(T.comm_reducer(lambda x, y: x + y, [T.float32(0)]), "reduce_scope", T.reinterpret("handle", T.uint64(0))):
///                 T.tvm_thread_allreduce(T.uint32(1), A[i, t], T.bool(True), R[0], t)
///             B[i, t] = R[0]
/// "#;
/// let func = tilewright_script::read_module(text)?.funcs.remove(0);
/// let printed = tilewright_script::print_func(&lower_thread_allreduce(&func)?.func);
/// let body: Vec<&str> = printed.lines().map(str::trim).skip_while(|line| !line.starts_with("S[t]")).collect();
/// assert_eq!(body, [
///     "S[t] = A[i, t]",
///     r#"T.tvm_storage_sync("shared")"#,
///     "if t < 1:",
///     "S_1[t] = T.float32(0.0)",
///     "for q in range(2):",
///     "S_1[t] = S_1[t] + S[t + q]",
///     r#"T.tvm_storage_sync("shared")"#,
///     "R[0] = S_1[0]",
///     r#"T.tvm_storage_sync("shared")"#,
///     "B[i, t] = R[0]",
/// ]);
/// # Ok::<(), Vec<tilewright_ir::Diagnostic>>(())
/// ```
pub fn lower_thread_allreduce(func: &PrimFunc) -> Result<Rewritten, Vec<Diagnostic>> {
    let mut lowered = Lowered { count: 0 };
    let body = lowered.stmt(&func.body).map_err(|fault| vec![*fault])?;
    let after = PrimFunc { body, ..func.clone() };
    let mut evidence = Evidence { pass: NAME.to_owned(), ..Evidence::default() };
    if lowered.count > 0
        && let Some(comparison) = comparison(func, &after)
    {
        evidence.comparison = comparison;
    }
    Ok(Rewritten { func: after, evidence, notes: Vec::new() })
}

/// Returns whether a function has reductions across threads.
pub(super) fn is_wanted(func: &PrimFunc) -> bool {
    let mut found = false;
    func.body.walk(&mut |stmt| {
        found |= matches!(&stmt.kind, StmtKind::Attr { key, .. } if key == THREAD_ALLREDUCE);
    });
    found
}

/// The claim that both programs compute the same sums, phase by phase. Without one the judge finds other memory, and the step is
/// unknown.
fn comparison(before: &PrimFunc, after: &PrimFunc) -> Option<Comparison> {
    let before = without_barriers(before, Barriers::Dropped).ok()?;
    let after = without_barriers(after, Barriers::Dropped).ok()?;
    let claim = lift::find(&before, &after, &Evidence::default(), true).ok()?;
    let comparison = Comparison::Definitions(Box::new(claim));
    let evidence = Evidence { pass: NAME.to_owned(), comparison, ..Evidence::default() };
    Some(Comparison::Phases(Box::new(Phased { before, after, evidence })))
}

/// Lowers each reduction.
struct Lowered {
    count: usize,
}

impl Rewrite for Lowered {
    type Error = Box<Diagnostic>;

    fn stmt(&mut self, stmt: &Stmt) -> Result<Stmt, Self::Error> {
        match &stmt.kind {
            StmtKind::Attr { node, key, body, .. } if key == THREAD_ALLREDUCE => {
                self.count += 1;
                let fault = |message: &str| fault(message, stmt.span);
                let found =
                    Reduction::of(node, body).ok_or_else(|| fault("the statements are no reduction across threads"))?;
                found.tree().ok_or_else(|| fault("the number of threads is no constant from 1 to 4096"))
            }
            StmtKind::Seq(stmts) => {
                let parts = stmts.iter().map(|part| self.stmt(part)).collect::<Result<Vec<_>, _>>()?;
                Ok(Stmt::seq(parts).at(stmt.span))
            }
            _ => self.stmt_children(stmt),
        }
    }
}

fn fault(message: &str, span: Option<Span>) -> Box<Diagnostic> {
    let help = "a reduction is read from `T.tvm_thread_allreduce`, and its loops over threads have constant extents";
    Box::new(Diagnostic::error("thread-allreduce", span, message.to_owned()).with_help(help))
}

/// A reduction across threads, as the reader makes it.
struct Reduction {
    /// The memory of the values, and the element of this thread.
    staged: Buffer,
    own: Vec<Expr>,
    /// The value of this thread.
    value: Expr,
    /// The element of each thread that gets the result.
    result: Buffer,
    at: Vec<Expr>,
    identity: Expr,
    /// The loops over all values, outermost first, and for each the axis of `staged`.
    loops: Vec<(Arc<For>, usize)>,
    /// What the result and a value are combined to.
    combined: Expr,
}

impl Reduction {
    fn of(node: &AttrValue, stmt: &Stmt) -> Option<Self> {
        let StmtKind::Allocate { buffer: staged, body } = &stmt.kind else { return None };
        let StmtKind::Seq(parts) = &body.kind else { return None };
        let [given, first, start, nest, last] = &**parts else { return None };
        let (StmtKind::Barrier, StmtKind::Barrier) = (&first.kind, &last.kind) else { return None };
        let StmtKind::Store { buffer, indices: own, value } = &given.kind else { return None };
        let StmtKind::Store { buffer: result, indices: at, value: identity } = &start.kind else { return None };
        let (mut inner, mut heads) = (nest, Vec::new());
        while let StmtKind::For(head) = &inner.kind {
            heads.push(head.clone());
            inner = &head.body;
        }
        let StmtKind::Store { buffer: updated, indices: same, value: combined } = &inner.kind else { return None };
        let AttrValue::List(threads) = node else { return None };
        if buffer != staged || updated != result || same != at || staged == result || threads.len() != heads.len() {
            return None;
        }
        // The values that are combined are those of the threads that the node lists.
        let all = threads.iter().map(|thread| match thread {
            AttrValue::Var(var) | AttrValue::Expr(Expr::Var(var)) => own.iter().position(|own| *own == Expr::from(var)),
            _ => None,
        });
        let axes: Vec<usize> = all.collect::<Option<_>>()?;
        let mut read = own.clone();
        for (axis, head) in axes.iter().zip(&heads) {
            read[*axis] = Expr::from(&head.var);
        }
        let reads_value = |expr: &Expr| {
            let mut found = false;
            let value = Expr::load(staged, read.clone());
            expr.walk(&mut |part| found |= *part == value);
            found
        };
        reads_value(combined).then(|| Self {
            staged: staged.clone(),
            own: own.clone(),
            value: value.clone(),
            result: result.clone(),
            at: at.clone(),
            identity: identity.clone(),
            loops: heads.into_iter().zip(axes).collect(),
            combined: combined.clone(),
        })
    }

    /// The extents of the reduced axes.
    fn extents(&self) -> Option<Vec<i64>> {
        let extent = |(head, _): &(Arc<For>, usize)| i64::try_from(head.extent.as_const_int()?).ok();
        self.loops.iter().map(extent).collect()
    }

    /// The statements of the tree.
    fn tree(&self) -> Option<Stmt> {
        let extents = self.extents()?;
        let count = extents.iter().try_fold(1i64, |count, extent| count.checked_mul(*extent))?;
        if !(1..=4096).contains(&count) || extents.iter().any(|extent| *extent < 1) {
            return None;
        }
        let mut stmts =
            vec![Stmt::store(&self.staged, self.own.clone(), self.value.clone()), Stmt::new(StmtKind::Barrier)];
        let mut buffers = vec![self.staged.clone()];
        let mut level = Level { buffer: self.staged.clone(), count };
        while level.count > 1 {
            // The largest power of two below the number of values.
            let half = 1i64 << (63 - (level.count - 1).leading_zeros());
            let next = Level { buffer: self.memory(half), count: half };
            stmts.push(self.round(&level, &next, &extents));
            stmts.push(Stmt::new(StmtKind::Barrier));
            buffers.push(next.buffer.clone());
            level = next;
        }
        let value = self.read(&level, Expr::int(0), &extents);
        stmts.push(Stmt::store(&self.result, self.at.clone(), value));
        stmts.push(Stmt::new(StmtKind::Barrier));
        let allocate = |body: Stmt, buffer: Buffer| Stmt::new(StmtKind::Allocate { buffer, body: Arc::new(body) });
        Some(buffers.into_iter().rev().fold(Stmt::seq(stmts), allocate))
    }

    /// The memory of a round that leaves so many values: an axis for each thread that is not reduced, and one for the values.
    fn memory(&self, count: i64) -> Buffer {
        let mut shape: Vec<Expr> = self.kept().map(|axis| self.staged.shape[axis].clone()).collect();
        shape.push(Expr::int(count));
        Buffer::compact(format!("{}_{count}", self.staged.name), self.staged.dtype, shape)
            .with(|info| info.scope = Scope::Shared)
    }

    /// The axes that are not reduced.
    fn kept(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.own.len()).filter(|axis| self.loops.iter().all(|(_, reduced)| reduced != axis))
    }

    /// The value at a position of a round.
    fn read(&self, level: &Level, position: Expr, extents: &[i64]) -> Expr {
        if level.buffer != self.staged {
            return Expr::load(&level.buffer, self.place(position));
        }
        let mut index = self.own.clone();
        let mut rest = position;
        for (position, (_, axis)) in self.loops.iter().enumerate().rev() {
            let extent = Expr::int(extents[position]);
            // The outermost digit needs no modulo.
            index[*axis] = if position == 0 { rest.clone() } else { rest.clone().floor_mod(extent.clone()) };
            rest = rest.floor_div(extent);
        }
        Expr::load(&self.staged, index)
    }

    /// The element of a round at a position.
    fn place(&self, position: Expr) -> Vec<Expr> {
        self.kept().map(|axis| self.own[axis].clone()).chain([position]).collect()
    }

    /// The position of this thread among those that are reduced, in row-major order.
    fn position(&self, extents: &[i64]) -> Expr {
        let mut axes = self.loops.iter().zip(extents).map(|((_, axis), extent)| (self.own[*axis].clone(), *extent));
        let (first, _) = axes.next().unwrap_or_else(|| (Expr::int(0), 1));
        axes.fold(first, |sum, (own, extent)| sum * Expr::int(extent) + own)
    }

    /// A round: each thread of the next level combines two values.
    fn round(&self, level: &Level, next: &Level, extents: &[i64]) -> Stmt {
        let own = self.position(extents);
        let q = Var::index("q");
        let far = if next.count == 1 { Expr::from(&q) } else { Expr::int(next.count) * Expr::from(&q) };
        let position = own.clone() + far;
        let place = self.place(own.clone());
        let combined = Replaced {
            this: self,
            so_far: Expr::load(&next.buffer, place.clone()),
            value: self.read(level, position.clone(), extents),
        };
        let update = Stmt::store(&next.buffer, place.clone(), combined.of(&self.combined));
        let update = if level.count == 2 * next.count {
            update
        } else {
            Stmt::guarded(position.lt(Expr::int(level.count)), update)
        };
        let start = Stmt::store(&next.buffer, place, self.identity.clone());
        let pairs = Stmt::for_loop(&q, Expr::int(2), ForKind::Serial, update);
        Stmt::guarded(own.lt(Expr::int(next.count)), Stmt::seq(vec![start, pairs]))
    }
}

/// The values that a round leaves.
struct Level {
    buffer: Buffer,
    count: i64,
}

/// What two other values are combined to.
struct Replaced<'a> {
    this: &'a Reduction,
    so_far: Expr,
    value: Expr,
}

impl Replaced<'_> {
    fn of(&self, expr: &Expr) -> Expr {
        struct Loads<'a>(&'a Replaced<'a>);
        impl Rewrite for Loads<'_> {
            type Error = Infallible;

            fn expr(&mut self, expr: &Expr) -> Result<Expr, Infallible> {
                match expr {
                    Expr::Load { buffer, .. } if *buffer == self.0.this.result => Ok(self.0.so_far.clone()),
                    Expr::Load { buffer, .. } if *buffer == self.0.this.staged => Ok(self.0.value.clone()),
                    _ => self.expr_children(expr),
                }
            }
        }
        let Ok(replaced) = Loads(self).expr(expr);
        replaced
    }
}
