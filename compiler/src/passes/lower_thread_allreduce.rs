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
//! premise of the report. Threads of axes that are not reduced have trees of their own, and of several reduced axes the inner one comes
//! first. Memory may be flattened before: then that of the rounds is flat as well. Cost: linear, and the search for the evidence.

use std::convert::Infallible;
use std::sync::Arc;

use tilewright_ir::device::has_device_functions;
use tilewright_ir::phases::{Barriers, without_barriers};
use tilewright_ir::visit::Rewrite;
use tilewright_ir::{
    AttrValue, BinaryOp, Buffer, Comparison, Diagnostic, Evidence, Expr, For, ForKind, Phased, PrimFunc, Scope, Span,
    Stmt, StmtKind, THREAD_ALLREDUCE, ThreadTag, Var, sabotage,
};

use super::Rewritten;
use super::storage::claims::over_elements;
use super::thread_axes;
use crate::lift;

const NAME: &str = "lower_thread_allreduce";

/// Most threads along an axis.
const MOST_THREADS: i64 = 4096;

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
    if is_wanted(func) && has_device_functions(func) {
        let message = "threads of a device function combine values".to_owned();
        let help = format!("`{NAME}` comes before `split_host_device`, which says what each device function uses");
        return Err(vec![Diagnostic::error("thread-allreduce", None, message).with_help(help)]);
    }
    let mut lowered = Lowered { count: 0, threads: Vec::new() };
    let body = lowered.stmt(&func.body).map_err(|fault| vec![fault])?;
    let after = PrimFunc { body, ..func.clone() };
    let mut evidence = Evidence { pass: NAME.to_owned(), ..Evidence::default() };
    if lowered.count > 0
        && let Some(comparison) = comparison(func, &after, NAME)
    {
        evidence.comparison = comparison;
    }
    Ok(Rewritten { func: after, evidence, notes: Vec::new() })
}

/// Returns whether a function has reductions across threads.
pub(super) fn is_wanted(func: &PrimFunc) -> bool {
    func.body.has_attribute(THREAD_ALLREDUCE)
}

/// The claim that both programs compute the same sums, phase by phase. Without one the judge finds other memory, and the step is
/// unknown.
pub(super) fn comparison(before: &PrimFunc, after: &PrimFunc, pass: &str) -> Option<Comparison> {
    let before = without_barriers(before, Barriers::Dropped).ok()?;
    let after = without_barriers(after, Barriers::Dropped).ok()?;
    let find = |before: &PrimFunc, after: &PrimFunc| {
        let claim = lift::find(before, after, &Evidence::default(), true).ok()?;
        Some(Comparison::Definitions(Box::new(claim)))
    };
    let evidence = Evidence { pass: pass.to_owned(), ..Evidence::default() };
    let comparison = over_elements(&before, &after, &evidence, &find)?;
    let evidence = Evidence { comparison, ..evidence };
    Some(Comparison::Phases(Box::new(Phased { before, after, evidence })))
}

/// Lowers each reduction.
struct Lowered {
    count: usize,
    /// The loops over threads of the group around the statement, outermost first.
    threads: Vec<Arc<For>>,
}

impl Rewrite for Lowered {
    type Error = Diagnostic;

    fn stmt(&mut self, stmt: &Stmt) -> Result<Stmt, Self::Error> {
        match &stmt.kind {
            StmtKind::Attr { node, key, body, .. } if key == THREAD_ALLREDUCE => {
                self.count += 1;
                let fault = |message: &str| fault(message, stmt.span);
                if !self.threads.iter().all(|inner| inner.min.as_const_int() == Some(0)) {
                    return Err(fault("a loop over threads does not begin at 0"));
                }
                let full = thread_axes::unflattened(node, body, &self.threads);
                let found = Reduction::of(node, full.as_ref().unwrap_or(body))
                    .ok_or_else(|| fault("the statements are no reduction across threads"))?;
                if !found.may_be_regrouped() {
                    return Err(fault("the values are combined in a way in which their grouping may matter"));
                }
                let tree = found.tree().ok_or_else(|| fault("the number of threads is no constant from 1 to 4096"))?;
                Ok(if full.is_some() { thread_axes::flattened(&tree, &self.threads) } else { tree })
            }
            StmtKind::For(inner) if matches!(inner.kind, ForKind::ThreadBinding(ThreadTag::Thread(_))) => {
                self.threads.push(inner.clone());
                let rewritten = self.stmt_children(stmt);
                self.threads.pop();
                rewritten
            }
            StmtKind::Seq(stmts) => {
                let parts = stmts.iter().map(|part| self.stmt(part)).collect::<Result<Vec<_>, _>>()?;
                Ok(Stmt::seq(parts).at(stmt.span))
            }
            _ => self.stmt_children(stmt),
        }
    }
}

fn fault(message: &str, span: Option<Span>) -> Diagnostic {
    let help = "a reduction is read from `T.tvm_thread_allreduce`, by a sum, a product, a least or greatest value; its loops begin at 0 and have constant extents";
    Diagnostic::error("thread-allreduce", span, message.to_owned()).with_help(help)
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
        // The tree begins with the first value.
        if !heads.iter().all(|head| head.min.as_const_int() == Some(0)) {
            return None;
        }
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

    /// Whether a tree combines the same values to the same result: by one operator whose operands may be grouped and exchanged, or
    /// by the choice of the lesser or greater one.
    fn may_be_regrouped(&self) -> bool {
        let is = |expr: &Expr, of: &Buffer| matches!(expr, Expr::Load { buffer, .. } if buffer == of);
        let are_both = |a: &Expr, b: &Expr| {
            is(a, &self.result) && is(b, &self.staged) || is(a, &self.staged) && is(b, &self.result)
        };
        match &self.combined {
            Expr::Binary(op, a, b) => are_both(a, b) && is_commutative_monoid(*op),
            Expr::Select(cond, a, b) | Expr::IfThenElse(cond, a, b) => {
                let compares = matches!(&**cond, Expr::Binary(op, x, y) if are_both(x, y) && is_order(*op));
                are_both(a, b) && compares
            }
            _ => false,
        }
    }

    /// The number of threads along each reduced axis, the innermost first.
    fn axes(&self) -> Option<Vec<(usize, i64)>> {
        let axis = |(head, axis): &(Arc<For>, usize)| {
            let extent = i64::try_from(head.extent.as_const_int()?).ok()?;
            (1..=MOST_THREADS).contains(&extent).then_some((*axis, extent))
        };
        self.loops.iter().rev().map(axis).collect()
    }

    /// The statements of the tree.
    fn tree(&self) -> Option<Stmt> {
        let mut stmts =
            vec![Stmt::store(&self.staged, self.own.clone(), self.value.clone()), Stmt::new(StmtKind::Barrier)];
        let mut buffers = vec![self.staged.clone()];
        let mut level = Level { buffer: self.staged.clone(), axes: (0..self.own.len()).collect(), done: Vec::new() };
        let mut axes = self.axes()?;
        if sabotage::on("allreduce-forgets-last-thread") {
            for (_, count) in &mut axes {
                *count = (*count - 1).max(1);
            }
        }
        // The rounds begin with the neutral value of the operator, and the last one with that of the reduction.
        let last = axes.iter().rposition(|(_, count)| *count > 1);
        for (at, (axis, mut count)) in axes.into_iter().enumerate() {
            while count > 1 {
                // The largest power of two below the number of values.
                let half = 1i64 << (63 - (count - 1).leading_zeros());
                let next = self.halved(&level, axis, half);
                let start = if half == 1 && last == Some(at) { self.identity.clone() } else { self.start() };
                stmts.push(self.round((&level, &next), axis, (count, half), start));
                stmts.push(Stmt::new(StmtKind::Barrier));
                buffers.push(next.buffer.clone());
                (level, count) = (next, half);
            }
            level.done.push(axis);
        }
        let all = Expr::load(&level.buffer, level.place(&self.own, None));
        let is_begun = last.is_some() || self.start() == self.identity;
        let value = if is_begun { all } else { self.combine(&self.identity, &all) };
        stmts.push(Stmt::store(&self.result, self.at.clone(), value));
        stmts.push(Stmt::new(StmtKind::Barrier));
        let allocate = |body: Stmt, buffer: Buffer| Stmt::new(StmtKind::Allocate { buffer, body: Arc::new(body) });
        Some(buffers.into_iter().rev().fold(Stmt::seq(stmts), allocate))
    }

    /// The memory of a round that leaves so many values along an axis. Axes that are reduced already are gone.
    fn halved(&self, level: &Level, axis: usize, half: i64) -> Level {
        let axes: Vec<usize> = level.axes.iter().copied().filter(|axis| !level.done.contains(axis)).collect();
        let extent = |kept: &usize| if *kept == axis { Expr::int(half) } else { self.staged.shape[*kept].clone() };
        let shape = axes.iter().map(extent).collect();
        let buffer = Buffer::compact(format!("{}_{half}", self.staged.name), self.staged.dtype, shape)
            .with(|info| info.scope = Scope::Shared);
        Level { buffer, axes, done: level.done.clone() }
    }

    /// A round: each thread of the next level combines two values along an axis with a start value.
    fn round(&self, (level, next): (&Level, &Level), axis: usize, (count, half): (i64, i64), start: Expr) -> Stmt {
        let own = self.own[axis].clone();
        let q = Var::new("q", own.dtype());
        let far = if half == 1 { Expr::from(&q) } else { like(half, &own) * Expr::from(&q) };
        let position = own.clone() + far;
        let place = next.place(&self.own, None);
        let value = Expr::load(&level.buffer, level.place(&self.own, Some((axis, &position))));
        let so_far = Expr::load(&next.buffer, place.clone());
        let update = Stmt::store(&next.buffer, place.clone(), self.combine(&so_far, &value));
        let is_whole = count == 2 * half || sabotage::on("allreduce-unguarded");
        let update = if is_whole { update } else { Stmt::guarded(position.lt(like(count, &own)), update) };
        let pairs = Stmt::for_loop(&q, like(2, &own), ForKind::Serial, update);
        let first = level.done.iter().map(|done| self.own[*done].clone().lt(like(1, &self.own[*done])));
        let half = like(half, &own);
        let is_active = first.fold(own.lt(half), Expr::and);
        Stmt::guarded(is_active, Stmt::seq(vec![Stmt::store(&next.buffer, place, start), pairs]))
    }

    /// The neutral value of the operator, or the value that the reduction begins with if it is another operation.
    fn start(&self) -> Expr {
        let ty = self.staged.dtype.scalar;
        let limit = |is_greatest: bool| match ty.integer_range() {
            Some((low, high)) => Expr::int_of(if is_greatest { high } else { low }, ty),
            None => Some(Expr::float_of(if is_greatest { f64::INFINITY } else { f64::NEG_INFINITY }, ty)),
        };
        let number = |value: i32| {
            if ty.is_float() { Some(Expr::float_of(value.into(), ty)) } else { Expr::int_of(value.into(), ty) }
        };
        let neutral = match &self.combined {
            Expr::Binary(BinaryOp::Add, ..) => number(0),
            Expr::Binary(BinaryOp::Mul, ..) => number(1),
            Expr::Binary(BinaryOp::Max, ..) => limit(false),
            Expr::Binary(BinaryOp::Min, ..) => limit(true),
            _ => None,
        };
        neutral.filter(|_| self.staged.dtype.is_scalar()).unwrap_or_else(|| self.identity.clone())
    }

    /// What two values are combined to.
    fn combine(&self, so_far: &Expr, value: &Expr) -> Expr {
        let Ok(combined) = (Replaced { this: self, so_far, value }).expr(&self.combined);
        combined
    }
}

/// Whether the operands of an operator may be grouped and exchanged; for floats up to rounding, which is a premise.
fn is_commutative_monoid(op: BinaryOp) -> bool {
    match op {
        BinaryOp::Add
        | BinaryOp::Mul
        | BinaryOp::Min
        | BinaryOp::Max
        | BinaryOp::And
        | BinaryOp::Or
        | BinaryOp::BitAnd
        | BinaryOp::BitOr
        | BinaryOp::BitXor => true,
        BinaryOp::Sub
        | BinaryOp::Div
        | BinaryOp::FloorDiv
        | BinaryOp::FloorMod
        | BinaryOp::TruncDiv
        | BinaryOp::TruncMod
        | BinaryOp::Eq
        | BinaryOp::Ne
        | BinaryOp::Lt
        | BinaryOp::Le
        | BinaryOp::Gt
        | BinaryOp::Ge
        | BinaryOp::Shl
        | BinaryOp::Shr => false,
    }
}

/// Whether an operator compares sizes.
fn is_order(op: BinaryOp) -> bool {
    [BinaryOp::Lt, BinaryOp::Le, BinaryOp::Gt, BinaryOp::Ge].contains(&op)
}

/// A number of threads in the type of the loop over them.
fn like(number: i64, thread: &Expr) -> Expr {
    Expr::Int { value: number.into(), ty: thread.dtype().scalar }
}

/// The values that a round leaves.
struct Level {
    buffer: Buffer,
    /// The loops over threads that the axes of the buffer are of.
    axes: Vec<usize>,
    /// Those whose values are combined already.
    done: Vec<usize>,
}

impl Level {
    /// The element of a thread, or that at another position along an axis.
    fn place(&self, own: &[Expr], other: Option<(usize, &Expr)>) -> Vec<Expr> {
        let index = |axis: &usize| match other {
            Some((moved, position)) if moved == *axis => position.clone(),
            _ if self.done.contains(axis) => Expr::int(0),
            _ => own[*axis].clone(),
        };
        self.axes.iter().map(index).collect()
    }
}

/// Puts other values into what two are combined to.
struct Replaced<'a> {
    this: &'a Reduction,
    so_far: &'a Expr,
    value: &'a Expr,
}

impl Rewrite for Replaced<'_> {
    type Error = Infallible;

    fn expr(&mut self, expr: &Expr) -> Result<Expr, Infallible> {
        match expr {
            Expr::Load { buffer, .. } if *buffer == self.this.result => Ok(self.so_far.clone()),
            Expr::Load { buffer, .. } if *buffer == self.this.staged => Ok(self.value.clone()),
            _ => self.expr_children(expr),
        }
    }
}
