//! Computes a reduction by the threads of a group: `allreduce=LOOP:THREAD`.
//!
//! ```text
//! # allreduce=k_inner:threadIdx.x
//! B[i] = 0                                        for k_inner in T.thread_binding(16, thread="threadIdx.x"):
//! for k_outer in range(7):                            own = T.alloc_buffer((1,), scope="local")
//!     for k_inner in range(16):                       all = T.alloc_buffer((1,), scope="local")
//!         if k_outer * 16 + k_inner < 105:            own[0] = 0
//!             B[i] = B[i] + A[i, ..]       ->         for k_outer in range(7):
//!                                                         if k_outer * 16 + k_inner < 105:
//!                                                             own[0] = own[0] + A[i, ..]
//!                                                     with T.attr([k_inner], "thread_allreduce", 1):
//!                                                         ...   all[0] becomes the sum of own[0] of all threads
//!                                                     if k_inner == 0:
//!                                                         B[i] = all[0]
//! ```
//!
//! Each thread combines its part of the values, in `own`, unless that is a single value. Shared memory has the values of all threads, and
//! the statements under the attribute are those that the reader makes of `T.tvm_thread_allreduce`; `lower_thread_allreduce` makes a tree of
//! them. The first thread stores the result. The values are combined in another order, which is a premise for floats. Cost: one walk,
//! and the search for the evidence.

use std::convert::Infallible;
use std::sync::Arc;

use tilewright_algebra::conjuncts;
use tilewright_ir::visit::Rewrite;
use tilewright_ir::{
    AttrValue, BinaryOp, Buffer, Diagnostic, Expr, For, ForKind, PrimFunc, ReduceOp, Scope, Stmt, StmtKind,
    THREAD_ALLREDUCE, ThreadTag, Var, sabotage,
};

use super::super::Rewritten;
use super::claims::Claim;
use super::loops::{Found, check_in_order, loop_named};
use super::{applied, fault};

/// Most threads of a reduction.
const MOST_THREADS: i128 = 4096;

/// Applies the first step `allreduce` of the schedule.
///
/// # Errors
/// `schedule`: the step names no loop and thread axis; the loop is not that of a reduction whose start value is stored directly in front,
/// or has no constant number of iterations from 0; or a loop around it is bound to the axis.
///
/// ```
/// use tilewright_compiler::passes::allreduce;
/// let text = r#"
/// @T.prim_func
/// def main(A: T.Buffer((7, 12), "int32"), B: T.Buffer((7,), "int32")):
///     T.func_attr({"schedule": ["allreduce=k:threadIdx.x"]})
///     for i in T.thread_binding(7, thread="blockIdx.x"):
///         B[i] = 0
///         for k in range(12):
///             B[i] = B[i] + A[i, k]
/// "#;
/// let func = tilewright_script::read_module(text)?.funcs.remove(0);
/// let printed = tilewright_script::print_func(&allreduce(&func)?.func);
/// let body: Vec<&str> = printed.lines().map(str::trim).filter(|line| line.contains(" = ") && !line.contains("alloc")).collect();
/// assert_eq!(body, ["values[k] = A[i, k]", "all[0] = 0", "all[0] = all[0] + values[k_r]", "B[i] = all[0]"]);
/// # Ok::<(), Vec<tilewright_ir::Diagnostic>>(())
/// ```
pub fn allreduce(func: &PrimFunc) -> Result<Rewritten, Vec<Diagnostic>> {
    applied("allreduce", func, &|func, argument| {
        let parts = argument.rsplit_once(':').and_then(|(name, tag)| Some((name.trim(), tag.trim().parse().ok()?)));
        let thread =
            parts.and_then(|(name, tag)| if let ThreadTag::Thread(_) = tag { Some((name, tag)) } else { None });
        let (name, tag) = thread.ok_or_else(|| {
            let help = "such as `allreduce=k:threadIdx.x`; the threads of one group combine their values";
            fault(format!("`{argument}` is no loop and thread axis"), help)
        })?;
        let body = across_threads(func, &loop_named(func, name)?, tag)?;
        Ok((body, Claim::Threads))
    })
}

/// The body of a function in which the threads of an axis run the iterations of a loop of a reduction.
fn across_threads(func: &PrimFunc, found: &Found<'_>, tag: ThreadTag) -> Result<Stmt, Diagnostic> {
    let run = found.inner;
    check_in_order(run, "allreduce")?;
    let n_threads = run.extent.as_const_int().filter(|count| (1..=MOST_THREADS).contains(count));
    if n_threads.is_none() || run.min.as_const_int() != Some(0) {
        let message =
            format!("`{}` has {} iterations from {}, not a constant number from 0", run.var, run.extent, run.min);
        return Err(fault(message, "split it by a constant factor of at most 4096, and take the inner loop"));
    }
    let tags = |outer: &&For| matches!(outer.kind, ForKind::ThreadBinding(other) if other == tag);
    if let Some(outer) = found.outer.iter().copied().find(tags) {
        let message = format!("{tag} is bound to `{}` already, which is around `{}`", outer.var, run.var);
        return Err(fault(message, "bind one of them to another axis"));
    }
    let is_thread = |outer: &&&For| matches!(outer.kind, ForKind::ThreadBinding(ThreadTag::Thread(_)));
    let around = found.outer.iter().filter(is_thread).map(|outer| (outer.var.clone(), outer.extent.clone())).collect();
    let mut across = Across { run, tag, around, is_done: false, why: None };
    let Ok(body) = across.stmt(&func.body);
    if across.is_done {
        return Ok(body);
    }
    let why = across.why.unwrap_or("its start value is not stored directly in front of its loops");
    let message = format!("`{}` is not bound to {tag}: {why}", run.var);
    Err(fault(
        message,
        "`C[i] = start`, and then loops and conditions around `C[i] = C[i] + value`; also `*`, `T.max`, `T.min`",
    ))
}

/// Replaces the reduction that has a loop.
struct Across<'f> {
    run: &'f For,
    tag: ThreadTag,
    /// The loops over threads of the group around it.
    around: Vec<(Var, Expr)>,
    is_done: bool,
    /// Why a nest with the loop is not replaced.
    why: Option<&'static str>,
}

impl Rewrite for Across<'_> {
    type Error = Infallible;

    fn stmt(&mut self, stmt: &Stmt) -> Result<Stmt, Infallible> {
        let StmtKind::Seq(parts) = &stmt.kind else { return self.started_inside(stmt) };
        let at = parts.iter().position(|part| has_loop(part, &self.run.var));
        let nest = at.filter(|at| *at > 0).and_then(|at| Some((at, Nest::of(&parts[at])?)));
        if let Some((at, nest)) = nest {
            match nest.start_in(&parts[at - 1]).and_then(|start| nest.reduction(start)) {
                Ok(reduction) => {
                    let replaced = self.replaced(&nest, &reduction).at(parts[at].span);
                    let rest = parts[at + 1..].iter().cloned();
                    let all = parts[..at - 1].iter().cloned().chain([replaced]).chain(rest);
                    self.is_done = true;
                    return Ok(Stmt::seq(all.collect()).at(stmt.span));
                }
                Err(why) => self.why = self.why.or(Some(why)),
            }
        }
        let parts = parts.iter().map(|part| self.stmt(part)).collect::<Result<Vec<_>, _>>()?;
        Ok(Stmt::seq(parts).at(stmt.span))
    }
}

impl Across<'_> {
    /// A statement that may be the outermost loop of a reduction whose first iteration stores the start value, as `lower_blocks` makes
    /// them.
    fn started_inside(&mut self, stmt: &Stmt) -> Result<Stmt, Infallible> {
        let nest = Nest::of(stmt).filter(|nest| nest.is_around(stmt, &self.run.var));
        let Some((nest, start)) = nest.and_then(|nest| nest.start.map(|(start, _)| (nest, start))) else {
            return self.stmt_children(stmt);
        };
        match nest.reduction(start) {
            Ok(reduction) => {
                self.is_done = true;
                Ok(self.replaced(&nest, &reduction).at(stmt.span))
            }
            Err(why) => {
                self.why = self.why.or(Some(why));
                self.stmt_children(stmt)
            }
        }
    }
}

/// Whether a statement contains the loop over a variable.
fn has_loop(stmt: &Stmt, var: &Var) -> bool {
    let mut found = false;
    stmt.walk(&mut |part| found |= matches!(&part.kind, StmtKind::For(inner) if inner.var == *var));
    found
}

/// Loops and conditions around one store, outermost first.
struct Nest<'f> {
    levels: Vec<Level<'f>>,
    buffer: &'f Buffer,
    indices: &'f [Expr],
    value: &'f Expr,
    /// The start value, if a condition in front of the store stores it, and the number of levels behind that.
    start: Option<(&'f Expr, usize)>,
}

enum Level<'f> {
    Loop(&'f For),
    Guard(&'f Expr),
}

/// What a nest combines.
struct Reduction {
    op: ReduceOp,
    /// The value that the reduction starts from.
    start: Expr,
    /// The value of an iteration.
    value: Expr,
}

impl<'f> Nest<'f> {
    fn of(stmt: &'f Stmt) -> Option<Self> {
        match &stmt.kind {
            StmtKind::For(inner) => Self::of(&inner.body).map(|nest| nest.inside(Level::Loop(inner))),
            StmtKind::If { cond, then_body, else_body: None } => {
                Self::of(then_body).map(|nest| nest.inside(Level::Guard(cond)))
            }
            StmtKind::Store { buffer, indices, value } => {
                Some(Self { levels: Vec::new(), buffer, indices, value, start: None })
            }
            StmtKind::Seq(parts) => match &**parts {
                [only] => Self::of(only),
                [first, rest] => Self::of(rest)?.started_by(first),
                _ => None,
            },
            StmtKind::If { .. }
            | StmtKind::Let { .. }
            | StmtKind::Allocate { .. }
            | StmtKind::DeclBuffer { .. }
            | StmtKind::Evaluate(_)
            | StmtKind::Barrier
            | StmtKind::Assert { .. }
            | StmtKind::Attr { .. } => None,
        }
    }

    fn inside(mut self, level: Level<'f>) -> Self {
        self.levels.insert(0, level);
        self
    }

    /// The nest behind a statement that stores the start value in the first iteration. That the condition is the one of the first
    /// iteration is for the judge to see.
    fn started_by(mut self, first: &'f Stmt) -> Option<Self> {
        let StmtKind::If { then_body, else_body: None, .. } = &first.kind else { return None };
        self.start = Some((self.start_in(then_body).ok()?, self.levels.len()));
        Some(self)
    }

    /// The conditions without which nothing is stored: those around the start value that no loop of the reduction decides.
    fn needed(&self) -> Vec<Expr> {
        let Some((_, behind)) = self.start else { return Vec::new() };
        let counted = |var: &Var| self.levels.iter().any(|level| matches!(level, Level::Loop(run) if run.var == *var));
        let around = self.levels.iter().take(self.levels.len() - behind);
        let conds = around.flat_map(|level| if let Level::Guard(cond) = level { conjuncts(cond) } else { Vec::new() });
        conds.filter(|cond| !cond.vars().iter().any(counted)).collect()
    }

    /// Whether a statement is a loop of the reduction, like all loops inside, and one of them is the loop over a variable.
    fn is_around(&self, stmt: &Stmt, var: &Var) -> bool {
        let is_reduced = |level: &Level<'_>| match level {
            Level::Loop(run) => !self.indices.iter().any(|index| index.vars().contains(&run.var)),
            Level::Guard(_) => true,
        };
        matches!(stmt.kind, StmtKind::For(_)) && has_loop(stmt, var) && self.levels.iter().all(is_reduced)
    }

    /// The start value that a statement stores.
    fn start_in<'s>(&self, first: &'s Stmt) -> Result<&'s Expr, &'static str> {
        let why = "its start value is not stored directly in front of its loops";
        let StmtKind::Store { buffer, indices, value } = &first.kind else { return Err(why) };
        if buffer == self.buffer && indices.iter().eq(self.indices) { Ok(value) } else { Err(why) }
    }

    /// What the nest combines, from a start value.
    fn reduction(&self, start: &Expr) -> Result<Reduction, &'static str> {
        let is_serial = |level: &Level<'_>| match level {
            Level::Loop(run) => matches!(run.kind, ForKind::Serial | ForKind::Unrolled),
            Level::Guard(_) => true,
        };
        if !self.levels.iter().all(is_serial) {
            return Err("a loop around the store runs its iterations at once");
        }
        let read = Expr::load(self.buffer, self.indices.to_vec());
        let (op, value) = combined(self.value, &read).ok_or("it does not combine one element with one value")?;
        let conds =
            self.levels.iter().filter_map(|level| if let Level::Guard(cond) = level { Some(*cond) } else { None });
        if [&value, start].into_iter().chain(conds).chain(self.indices).any(|expr| reads(expr, self.buffer)) {
            return Err("it reads what it computes");
        }
        if !self.value.dtype().is_scalar() {
            return Err("it combines vectors");
        }
        Ok(Reduction { op, start: start.clone(), value })
    }
}

/// The operator that combines a load with another value, and that value.
fn combined(value: &Expr, read: &Expr) -> Option<(ReduceOp, Expr)> {
    let Expr::Binary(op, a, b) = value else { return None };
    let all = [ReduceOp::Sum, ReduceOp::Prod, ReduceOp::Max, ReduceOp::Min];
    let op = all.into_iter().find(|other| other.combine() == *op)?;
    match (**a == *read, **b == *read) {
        (true, false) => Some((op, Expr::clone(b))),
        (false, true) => Some((op, Expr::clone(a))),
        (true, true) | (false, false) => None,
    }
}

fn reads(expr: &Expr, buffer: &Buffer) -> bool {
    let mut found = false;
    expr.walk(&mut |part| found |= matches!(part, Expr::Load { buffer: read, .. } if read.aliases(buffer)));
    found
}

impl Across<'_> {
    /// The loop over threads that computes a reduction.
    fn replaced(&self, nest: &Nest<'_>, reduction: &Reduction) -> Stmt {
        let element = |name: &str| {
            Buffer::compact(name, nest.buffer.dtype, vec![Expr::int(1)]).with(|info| info.scope = Scope::Local)
        };
        let (own, all) = (element("own"), element("all"));
        let inner: Vec<&Level<'_>> = nest.levels.iter().filter(|level| !self.is_bound(level)).collect();
        let is_alone = !inner.iter().any(|level| matches!(level, Level::Loop(_)));
        let (part, value) = if is_alone {
            (None, chosen(&inner, reduction))
        } else {
            (Some(summed(&own, &inner, reduction)), at_zero(&own))
        };
        let reduced = self.all_of(value, &all, reduction);
        let result = Stmt::store(nest.buffer, nest.indices.to_vec(), at_zero(&all));
        let zero = Expr::Int { value: 0, ty: self.run.var.dtype().scalar };
        let is_first = Expr::binary(BinaryOp::Eq, Expr::from(&self.run.var), zero);
        let is_unguarded = sabotage::on("allreduce-all-threads-store");
        let first = (!is_unguarded).then_some(is_first);
        let conds = nest.needed().into_iter().chain(first).reduce(Expr::and);
        let result = conds.into_iter().fold(result, |result, cond| Stmt::guarded(cond, result));
        let body = Stmt::seq(part.into_iter().chain([reduced, result]).collect());
        let body = allocated(&all, if is_alone { body } else { allocated(&own, body) });
        let run = For { kind: ForKind::ThreadBinding(self.tag), body, ..self.run.clone() };
        Stmt::new(StmtKind::For(run.into()))
    }

    fn is_bound(&self, level: &Level<'_>) -> bool {
        matches!(level, Level::Loop(run) if run.var == self.run.var)
    }

    /// Combines a value of each thread in `all`, as the reader states it for `T.tvm_thread_allreduce`.
    fn all_of(&self, value: Expr, all: &Buffer, reduction: &Reduction) -> Stmt {
        let bound = (self.run.var.clone(), self.run.extent.clone());
        let threads: Vec<(Var, Expr)> = self.around.iter().cloned().chain([bound]).collect();
        let shape = threads.iter().map(|(_, extent)| extent.clone()).collect();
        let values = Buffer::compact("values", all.dtype, shape).with(|info| info.scope = Scope::Shared);
        let own: Vec<Expr> = threads.iter().map(|(var, _)| Expr::from(var)).collect();
        let other = Var::new(format!("{}_r", self.run.var.name()), self.run.var.dtype());
        let mut of_all = own.clone();
        if let Some(last) = of_all.last_mut() {
            *last = Expr::from(&other);
        }
        let update = Expr::binary(reduction.op.combine(), at_zero(all), Expr::load(&values, of_all));
        let update = Stmt::store(all, vec![Expr::int(0)], update);
        let body = Stmt::seq(vec![
            Stmt::store(&values, own, value),
            Stmt::new(StmtKind::Barrier),
            Stmt::store(all, vec![Expr::int(0)], reduction.start.clone()),
            Stmt::for_loop(&other, self.run.extent.clone(), ForKind::Serial, update),
            Stmt::new(StmtKind::Barrier),
        ]);
        let node = AttrValue::List(vec![AttrValue::Var(self.run.var.clone())]);
        let (key, value, body) = (THREAD_ALLREDUCE.to_owned(), AttrValue::Int(1), Arc::new(allocated(&values, body)));
        Stmt::new(StmtKind::Attr { node, key, value, body })
    }
}

/// The only element of a buffer.
fn at_zero(buffer: &Buffer) -> Expr {
    Expr::load(buffer, vec![Expr::int(0)])
}

fn allocated(buffer: &Buffer, body: Stmt) -> Stmt {
    Stmt::new(StmtKind::Allocate { buffer: buffer.clone(), body: Arc::new(body) })
}

/// The value of a thread that has a single one: the neutral value where a condition does not hold.
fn chosen(levels: &[&Level<'_>], reduction: &Reduction) -> Expr {
    let conds =
        levels.iter().filter_map(|level| if let Level::Guard(cond) = level { Some((*cond).clone()) } else { None });
    let neutral = reduction.op.identity_expr(reduction.value.dtype().scalar);
    match conds.reduce(Expr::and) {
        Some(cond) => Expr::IfThenElse(cond.into(), reduction.value.clone().into(), neutral.into()),
        None => reduction.value.clone(),
    }
}

/// The statements that combine the values of one thread.
fn summed(own: &Buffer, levels: &[&Level<'_>], reduction: &Reduction) -> Stmt {
    let at = || vec![Expr::int(0)];
    let start = Stmt::store(own, at(), reduction.op.identity_expr(own.dtype.scalar));
    let update = Expr::binary(reduction.op.combine(), at_zero(own), reduction.value.clone());
    let update = levels.iter().rev().fold(Stmt::store(own, at(), update), |body, level| match level {
        Level::Loop(run) => Stmt::new(StmtKind::For(For { body, ..(*run).clone() }.into())),
        Level::Guard(cond) => Stmt::guarded((*cond).clone(), body),
    });
    Stmt::seq(vec![start, update])
}
