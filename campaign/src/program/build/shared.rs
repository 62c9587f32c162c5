//! Stages that the threads of a group compute together: shared memory, barriers, and memory of each thread that lives across them.
//!
//! ```text
//! for i0 in T.thread_binding(3, thread="blockIdx.x"):
//!     S = T.alloc_buffer((4,), "float32", scope="shared")
//!     for t in T.thread_binding(4, thread="threadIdx.x"):
//!         for c in range(3):                                  rounds of 4 elements of the last axis, which has 10
//!             if c * 4 + t < 10:
//!                 S[t] = A[i0, c * 4 + t]
//!             T.tvm_storage_sync("shared")
//!             if c * 4 + (3 - t) < 10:
//!                 B[i0, c * 4 + (3 - t)] = S[3 - t]
//!             T.tvm_storage_sync("shared")
//! ```
//!
//! No two threads touch the same element between two barriers unless both read it, and all threads reach each barrier.

use std::sync::Arc;

use tilewright_ir::{
    AxisSeparators, BinaryOp, Buffer, Expr, For, ForKind, ScalarType, Scope, Stmt, StmtKind, ThreadTag, Var,
};

use super::index::{Axis, Lanes, Nest};
use super::value::{Values, constant, operator};
use super::{Builder, Target, combine};
use crate::program::recipe::{Binary, Reduce};
use crate::program::shared::{Exchange, Shared, Turn};

/// Limit on the threads of a group.
const THREADS: i64 = 9;

/// The threads, and what each of them computes in a round.
struct Threads {
    ty: ScalarType,
    /// The number of threads.
    count: i64,
    thread: Var,
    /// The rounds, if there are several.
    round: Option<(Var, i64)>,
    /// The loops over all axes but the last.
    outer: Vec<(Var, i64)>,
    /// The loops over reduced axes.
    reduced: Vec<(Var, i64)>,
    /// The axes at the element of the thread, and at that of the thread that it reads from.
    own: Nest,
    other: Nest,
    /// The number of the thread that it reads from.
    partner: Expr,
    /// The conditions that the elements exist; `None` if all do.
    own_exists: Option<Expr>,
    other_exists: Option<Expr>,
    /// The memory of the group.
    shared: Buffer,
    /// The memory of each thread.
    kept: Buffer,
}

impl Threads {
    fn new(target: &Target<'_>, shared: &Shared, prefix: &str) -> Self {
        let ty = if target.stage.wide { ScalarType::Int64 } else { ScalarType::Int32 };
        let int = |value: i64| Expr::Int { value: value.into(), ty };
        let has_two = target.stage.reduce.is_some() && shared.exchange == Exchange::Tree;
        let is_tree = target.stage.reduce.is_none() && shared.exchange == Exchange::Tree;
        let count = shared.threads.clamp(1, THREADS);
        let count = if is_tree { [2, 4, 8][usize::try_from(count).unwrap_or(0) % 3] } else { count };
        let last = target.shape.last().copied().unwrap_or(1);
        let n_rounds = (last + count - 1) / count;
        let thread = Var::new(format!("{prefix}t"), ty);
        let round = (n_rounds > 1).then(|| (Var::new(format!("{prefix}c"), ty), n_rounds));
        let named = |kind: &str, extents: &[i64]| -> Vec<(Var, i64)> {
            let one = |(at, extent): (usize, &i64)| (Var::new(format!("{prefix}{kind}{at}"), ty), *extent);
            extents.iter().enumerate().map(one).collect()
        };
        let outer = named("", &target.shape[..target.shape.len().saturating_sub(1)]);
        let reduced = named("r", if target.stage.reduce.is_some() { &target.reduced } else { &[] });
        let partner = match shared.turn {
            Turn::Reversed => int(count - 1) - Expr::from(&thread),
            Turn::Rotated(by) => (Expr::from(&thread) + int(by.rem_euclid(count))).floor_mod(int(count)),
        };
        let element = |thread: Expr| match &round {
            Some((var, _)) => Expr::from(var) * int(count) + thread,
            None => thread,
        };
        let nest = |index: &Expr| {
            let axis =
                |(var, extent): &(Var, i64)| Axis { base: Expr::from(var), full: Expr::from(var), extent: *extent };
            let along = Axis { base: index.clone(), full: index.clone(), extent: last };
            let axes = outer.iter().map(axis).chain([along]).chain(reduced.iter().map(axis)).collect();
            Nest { axes, ty, lanes: Lanes::None, is_packed: false }
        };
        let (own, other) = (element(Expr::from(&thread)), element(partner.clone()));
        let exists = |index: &Expr| (n_rounds * count > last).then(|| index.clone().lt(int(last)));
        let cells = if has_two { vec![2, count] } else { vec![count] };
        let dtype = target.seen.buffer.dtype;
        let memory = |name: &str, scope: Scope, shape: Vec<i64>| {
            let rank = shape.len();
            let shape = shape.into_iter().map(Expr::int).collect();
            Buffer::compact(format!("{prefix}{name}"), dtype, shape).with(|info| {
                info.scope = scope;
                info.axis_separators = AxisSeparators::none(rank);
            })
        };
        Self {
            ty,
            count,
            own_exists: exists(&own),
            other_exists: exists(&other),
            own: nest(&own),
            other: nest(&other),
            thread,
            round,
            outer,
            reduced,
            partner,
            shared: memory("shared", Scope::Shared, cells),
            kept: memory("kept", Scope::Local, vec![1]),
        }
    }

    fn int(&self, value: i64) -> Expr {
        Expr::Int { value: value.into(), ty: self.ty }
    }

    /// What a thread wrote for the group.
    fn cell(&self, thread: Expr) -> Expr {
        Expr::load(&self.shared, vec![thread])
    }

    fn write(&self, value: Expr) -> Stmt {
        Stmt::store(&self.shared, vec![Expr::from(&self.thread)], value)
    }

    fn keep(&self, value: Expr) -> Stmt {
        Stmt::store(&self.kept, vec![Expr::int(0)], value)
    }

    fn kept(&self) -> Expr {
        Expr::load(&self.kept, vec![Expr::int(0)])
    }
}

/// A barrier.
fn barrier() -> Stmt {
    Stmt::new(StmtKind::Barrier)
}

/// A statement under a condition, if there is one.
fn guarded(cond: Option<&Expr>, stmt: Stmt) -> Stmt {
    match cond {
        Some(cond) => Stmt::guarded(cond.clone(), stmt),
        None => stmt,
    }
}

fn allocated(buffer: &Buffer, body: Stmt) -> Stmt {
    Stmt::new(StmtKind::Allocate { buffer: buffer.clone(), body: Arc::new(body) })
}

fn looped(var: &Var, extent: i64, kind: ForKind, body: Stmt) -> Stmt {
    let int = |value: i64| Expr::Int { value: value.into(), ty: var.dtype().scalar };
    let inner = For { var: var.clone(), min: int(0), extent: int(extent), kind, annotations: Vec::new(), body };
    Stmt::new(StmtKind::For(Arc::new(inner)))
}

impl Builder<'_> {
    /// The loop nest of a stage whose elements are computed by the threads of groups.
    pub(super) fn shared(&mut self, target: &Target<'_>, shared: &Shared, prefix: &str) -> Stmt {
        let threads = Threads::new(target, shared, prefix);
        let body = match &target.stage.reduce {
            Some(reduce) => self.summed(target, &threads, reduce, shared.exchange),
            None => self.exchanged(target, &threads, shared),
        };
        let mut body = allocated(&threads.kept, body);
        // One of the loops may run over groups, around the threads; the others are rounds of each group.
        let block = ForKind::ThreadBinding(ThreadTag::Block(0));
        let (mut around, mut rounds) = (Vec::new(), threads.outer.clone());
        if shared.blocks && !rounds.is_empty() {
            around.push(rounds.remove(0));
        }
        match &threads.round {
            Some(round) if shared.blocks && around.is_empty() => around.push(round.clone()),
            Some(round) => rounds.push(round.clone()),
            None => {}
        }
        if !rounds.is_empty() {
            body = Stmt::seq(vec![body, barrier()]);
        }
        body = rounds.iter().rev().fold(body, |body, (var, extent)| looped(var, *extent, ForKind::Serial, body));
        if !shared.outside {
            body = allocated(&threads.shared, body);
        }
        body = looped(&threads.thread, threads.count, ForKind::ThreadBinding(ThreadTag::Thread(0)), body);
        if shared.outside {
            body = allocated(&threads.shared, body);
        }
        around.iter().rev().fold(body, |body, (var, extent)| looped(var, *extent, block, body))
    }

    /// What a thread does for one element.
    fn exchanged(&mut self, target: &Target<'_>, threads: &Threads, shared: &Shared) -> Stmt {
        let ty = target.seen.buffer.dtype.scalar;
        let sum = operator(Binary::Add, ty.class());
        let mut values = self.values_in(target, &threads.own);
        let value = values.value(&target.stage.value, ty);
        let value = values.wide(value);
        let one = values.wide(constant(1, ty));
        // What the partner wrote, if its element exists.
        let partner = |values: &Values<'_>| match &threads.other_exists {
            Some(exists) => values.select(exists.clone(), threads.cell(threads.partner.clone()), one.clone(), true),
            None => threads.cell(threads.partner.clone()),
        };
        let own = |stmt: Stmt| guarded(threads.own_exists.as_ref(), stmt);
        let is_scalar = target.seen.buffer.dtype.is_scalar();
        let stmt = match shared.exchange {
            Exchange::Plain => {
                let values = self.values_in(target, &threads.other);
                let stored = target.store(&values, threads.cell(threads.partner.clone()));
                let stored = guarded(threads.other_exists.as_ref(), stored);
                vec![own(threads.write(value.clone())), barrier(), stored]
            }
            Exchange::Twice if is_scalar => {
                let kept = Var::new(format!("{}_y", threads.thread.name()), ty);
                let changed = threads.write(Expr::binary(sum, Expr::from(&kept), one.clone()));
                let result = Expr::binary(sum, Expr::from(&kept), partner(&values));
                let stored = own(target.store(&values, result));
                let body = Stmt::seq(vec![barrier(), own(changed), barrier(), stored]);
                let body = Arc::new(body);
                let bound = Stmt::new(StmtKind::Let { var: kept, value: partner(&values), body });
                vec![own(threads.write(value.clone())), barrier(), bound]
            }
            Exchange::Register | Exchange::Twice => {
                let first = own(Stmt::seq(vec![threads.keep(value.clone()), threads.write(threads.kept())]));
                let result = Expr::binary(sum, threads.kept(), partner(&values));
                vec![first, barrier(), own(target.store(&values, result))]
            }
            Exchange::Tree => {
                let first = match &threads.own_exists {
                    None => threads.write(value.clone()),
                    Some(exists) => Stmt::new(StmtKind::If {
                        cond: exists.clone(),
                        then_body: Arc::new(threads.write(value.clone())),
                        else_body: Some(Arc::new(threads.write(one.clone()))),
                    }),
                };
                vec![first, barrier(), tree(threads, sum), own(target.store(&values, threads.cell(threads.int(0))))]
            }
        };
        let stmt = Stmt::seq(stmt);
        let uniform = threads.outer.first().filter(|_| shared.branch);
        let Some((var, _)) = uniform else { return stmt };
        let values = self.values_in(target, &threads.own);
        let alone = own(target.store(&values, value));
        let cond = Expr::binary(BinaryOp::Ne, Expr::from(var).floor_mod(threads.int(3)), threads.int(1));
        let (then_body, else_body) = (Arc::new(stmt), Some(Arc::new(alone)));
        Stmt::new(StmtKind::If { cond, then_body, else_body })
    }

    /// What a thread does for one sum: in each round it writes a summand, and adds that of its partner.
    fn summed(&mut self, target: &Target<'_>, threads: &Threads, reduce: &Reduce, exchange: Exchange) -> Stmt {
        let ty = target.seen.buffer.dtype.scalar;
        let mut values = self.values_in(target, &threads.own);
        let value = values.value(&target.stage.value, ty);
        let (value, init) = (values.wide(value), values.wide(constant(reduce.init, ty)));
        let op = operator(combine(reduce.op), ty.class());
        let number = threads
            .reduced
            .iter()
            .fold(threads.int(0), |number, (var, extent)| number * threads.int(*extent) + Expr::from(var));
        let half = |thread: Expr| match threads.shared.rank() {
            2 => vec![number.clone().floor_mod(threads.int(2)), thread],
            _ => vec![thread],
        };
        let write = Stmt::store(&threads.shared, half(Expr::from(&threads.thread)), value);
        let read = Expr::load(&threads.shared, half(threads.partner.clone()));
        let add = threads.keep(Expr::binary(op, threads.kept(), read));
        let mut round =
            vec![guarded(threads.own_exists.as_ref(), write), barrier(), guarded(threads.other_exists.as_ref(), add)];
        // With two halves, the next round writes to the other one.
        if exchange != Exchange::Tree {
            round.push(barrier());
        }
        let rounds = threads
            .reduced
            .iter()
            .rev()
            .fold(Stmt::seq(round), |body, (var, extent)| looped(var, *extent, ForKind::Serial, body));
        let values = self.values_in(target, &threads.other);
        let stored = guarded(threads.other_exists.as_ref(), target.store(&values, threads.kept()));
        Stmt::seq(vec![threads.keep(init), rounds, stored])
    }
}

/// The sum of the elements of all threads, in the first cell.
fn tree(threads: &Threads, sum: BinaryOp) -> Stmt {
    let step = Var::new(format!("{}_k", threads.thread.name()), threads.ty);
    let width = Expr::binary(BinaryOp::Shr, threads.int(threads.count / 2), Expr::from(&step));
    let thread = Expr::from(&threads.thread);
    let value = Expr::binary(sum, threads.cell(thread.clone()), threads.cell(thread.clone() + width.clone()));
    let body = Stmt::seq(vec![Stmt::guarded(thread.lt(width), threads.write(value)), barrier()]);
    looped(&step, i64::from(threads.count.ilog2()), ForKind::Serial, body)
}
