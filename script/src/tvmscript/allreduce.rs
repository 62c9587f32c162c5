//! Reductions across the threads of a group, as every release of TVM prints them.
//!
//! ```python
//! with T.attr(T.comm_reducer(lambda x, y: x + y, [T.float32(0)]), "reduce_scope", T.reinterpret("handle", T.uint64(0))):
//!     T.tvm_thread_allreduce(T.uint32(1), A[i, t], T.bool(True), R[0], t)
//! ```
//!
//! The language has no such statement. The call is read as what it means: each thread puts its value into shared memory, or the neutral
//! value where the condition does not hold; all threads wait; each combines the values of all threads, in their order; and all wait once
//! more, because the memory may be used again. The attribute `thread_allreduce` marks the statements for the pass
//! `lower_thread_allreduce`, and does not change what they mean.
//!
//! ```python
//! with T.attr("t", "thread_allreduce", 1):
//!     S = T.alloc_buffer((8,), "float32", scope="shared")
//!     S[t] = A[i, t]
//!     T.tvm_storage_sync("shared")
//!     R[0] = T.float32(0)
//!     for r in range(8):
//!         R[0] = R[0] + S[r]
//!     T.tvm_storage_sync("shared")
//! ```
//!
//! Threads of other axes of the launch have values of their own.

use std::sync::Arc;

use ruff_python_ast as ast;
use ruff_text_size::Ranged;
use tilewright_ir::visit::Substitution;
use tilewright_ir::{
    AttrValue, BinaryOp, Bindings, Buffer, Expr, ForKind, Scope, Stmt, StmtKind, THREAD_ALLREDUCE, UnaryOp, Var,
};

use super::reader::{Binding, Reader, sequence};
use super::scopes::ScopeWrapper;

/// How two values are combined, from `T.comm_reducer(lambda x, y: ..., [identity])`.
#[derive(Clone)]
pub(super) struct Reducer {
    /// The names of both values.
    values: [Var; 2],
    /// What they are combined to.
    combined: Expr,
    identity: Expr,
}

/// The parts of a call.
struct AllReduce {
    value: Expr,
    cond: Expr,
    /// The element of each thread that gets the result.
    result: (Buffer, Vec<Expr>),
    /// The loops over threads whose values are combined.
    reduced: Vec<(Var, Expr)>,
    /// All loops over threads around the call.
    around: Vec<(Var, Expr)>,
}

const HELP: &str = "such as `T.tvm_thread_allreduce(T.uint32(1), value, T.bool(True), R[0], threadIdx_x)`";

/// Whether a value changes nothing that it is combined with; true where the operator is none of those that are known. The least and the
/// greatest finite floats count as neutral, as in TVM.
fn is_neutral(combined: &Expr, identity: &Expr) -> bool {
    let Expr::Binary(op, ..) = combined else { return true };
    let ty = identity.dtype().scalar;
    let bounds = ty.integer_range();
    let number = match identity {
        Expr::Float { value, .. } => Some(*value),
        Expr::Unary(UnaryOp::Neg, value) if let Expr::Float { value, .. } = &**value => Some(-*value),
        _ => None,
    };
    let whole = identity.eval_index(&Bindings::new()).ok();
    let is = |wanted: i128, float: f64| whole == Some(wanted) || number == Some(float);
    let beyond = |sign: f64| number.is_some_and(|value| value * sign >= 65504.0);
    match op {
        BinaryOp::Add => is(0, 0.0),
        BinaryOp::Mul => is(1, 1.0),
        BinaryOp::Max => bounds.map_or_else(|| beyond(-1.0), |(low, _)| whole == Some(low)),
        BinaryOp::Min => bounds.map_or_else(|| beyond(1.0), |(_, high)| whole == Some(high)),
        _ => true,
    }
}

impl<'a> Reader<'a> {
    /// Reads the node of `T.attr(T.comm_reducer(...), "reduce_scope", ...)`. The reducer is that of the next reduction.
    pub(super) fn reduce_scope(&mut self, node: &'a ast::Expr) -> Option<ScopeWrapper> {
        let help = "such as `T.comm_reducer(lambda x, y: x + y, [T.float32(0)])`";
        let ast::Expr::Call(call) = node else {
            return self.error("reducer", node.range(), "this is no reducer", help);
        };
        if self.callee(&call.func) != Some("comm_reducer") {
            return self.error("reducer", node.range(), "this is no reducer", help);
        }
        let args = self.bind_args(call, "comm_reducer", &["combiner", "identity"], 2)?;
        let (combiner, identities) = (args.get(0)?, args.get(1)?);
        let ([identity], ast::Expr::Lambda(lambda)) = (sequence(identities).unwrap_or_default(), combiner) else {
            let message = "a reducer of several values at once is not supported here";
            return self.error("reducer", node.range(), message, help);
        };
        let identity = self.expr(identity)?;
        let names: Vec<&str> = lambda
            .parameters
            .iter()
            .flat_map(|params| params.posonlyargs.iter().chain(&params.args))
            .map(|param| param.parameter.name.as_str())
            .collect();
        let [x, y] = names.as_slice() else {
            return self.error("reducer", lambda.range(), "a reducer combines two values", help);
        };
        let values = [x, y].map(|name| Var::new(*name, identity.dtype()));
        let scope = self.names.len();
        for var in &values {
            self.bind(var.name(), Binding::Value(Expr::from(var)));
        }
        let body = match sequence(&lambda.body) {
            Some([only]) => only,
            _ => &lambda.body,
        };
        let combined = self.expr(body);
        self.names.truncate(scope);
        let combined = combined?;
        if !is_neutral(&combined, &identity) {
            let message = format!("`{identity}` is not neutral for `{combined}`");
            let help = "a sum begins with 0, a product with 1, a maximum with the least value of its type, a minimum with the greatest";
            // The reduction that follows is read all the same: one error is enough.
            let _: Option<()> = self.error("reducer", args.get(1)?.range(), message, help);
        }
        self.reducer = Some(Reducer { values, combined, identity });
        Some(Box::new(|body| body))
    }

    /// Reads `T.tvm_thread_allreduce(...)`.
    pub(super) fn allreduce(&mut self, call: &'a ast::ExprCall) -> Option<Stmt> {
        let Some(reducer) = self.reducer.take() else {
            if std::mem::take(&mut self.reducer_failed) {
                return None;
            }
            let message = "nothing says how the values are combined";
            let help = "put it below `with T.attr(T.comm_reducer(...), \"reduce_scope\", ...):`";
            return self.error("reducer", call.range(), message, help);
        };
        let [size, value, cond, result, threads @ ..] = &*call.arguments.args else {
            return self.error("arguments", call.range(), "arguments are missing", HELP);
        };
        if self.expr(size)?.as_const_int() != Some(1) {
            let message = "only reductions of one value at a time are supported";
            return self.error("unsupported", size.range(), message, HELP);
        }
        let (value, cond) = (self.expr(value)?, self.expr(cond)?);
        let result = self.result_of_allreduce(result)?;
        if value.dtype() != reducer.identity.dtype() || value.dtype() != result.0.dtype {
            let message = format!(
                "a value of type {}, the neutral value {} and the result {} have one type",
                value.dtype(),
                reducer.identity.dtype(),
                result.0.dtype
            );
            return self.error("type", call.range(), message, "cast the value");
        }
        let around = self.threads_around();
        let mut reduced = Vec::new();
        for thread in threads {
            let var = self.expr(thread)?;
            let known = around.iter().find(|(known, _)| Expr::from(known) == var);
            let Some(known) = known else {
                let message = "this is no loop over threads of a group around the reduction";
                return self.error("thread", thread.range(), message, HELP);
            };
            reduced.push(known.clone());
        }
        if reduced.is_empty() {
            return self.error("thread", call.range(), "the loops over threads are missing", HELP);
        }
        Some(AllReduce { value, cond, result, reduced, around }.statement(&reducer))
    }

    /// The element for the result: `R[0]`, or the first one of `R.data`.
    fn result_of_allreduce(&mut self, result: &'a ast::Expr) -> Option<(Buffer, Vec<Expr>)> {
        if let ast::Expr::Attribute(_) = result {
            let data = self.data(result)?;
            let found = self.names.iter().rev().find_map(|(_, binding)| match binding {
                Binding::Buffer(buffer) | Binding::Pointer(buffer) if buffer.data == data => Some(buffer.clone()),
                _ => None,
            });
            if let Some(buffer) = found {
                let first = vec![Expr::int(0); buffer.rank()];
                return Some((buffer, first));
            }
        }
        match self.expr(result)? {
            Expr::Load { buffer, indices } => Some((buffer, indices.to_vec())),
            _ => self.error("argument", result.range(), "the result is an element of a buffer", HELP),
        }
    }

    /// The loops over threads of a group around this place, outermost first.
    fn threads_around(&self) -> Vec<(Var, Expr)> {
        let is_open = |var: &Var| {
            self.names.iter().any(|(_, binding)| matches!(binding, Binding::Value(Expr::Var(known)) if known == var))
        };
        self.threads.iter().filter(|(var, _)| is_open(var)).cloned().collect()
    }
}

impl AllReduce {
    /// What the reduction means.
    fn statement(self, reducer: &Reducer) -> Stmt {
        let Self { value, cond, result: (result, at), reduced, around } = self;
        let dtype = value.dtype();
        let extents = around.iter().map(|(_, extent)| extent.clone()).collect();
        let staged = Buffer::compact("S", dtype, extents).with(|info| info.scope = Scope::Shared);
        let own: Vec<Expr> = around.iter().map(|(var, _)| Expr::from(var)).collect();
        let is_always = cond.as_const_int() == Some(1);
        let given = if is_always {
            value
        } else {
            Expr::IfThenElse(cond.into(), value.into(), reducer.identity.clone().into())
        };
        let mut all = Substitution::default();
        let mut loops = Vec::new();
        for (var, extent) in &reduced {
            let fresh = Var::new(format!("{}_r", var.name()), var.dtype());
            all.insert(var, Expr::from(&fresh));
            loops.push((fresh, extent.clone()));
        }
        let of_all: Vec<Expr> = own.iter().map(|index| all.apply(index)).collect();
        let so_far = Expr::load(&result, at.clone());
        let both = Substitution::new(&reducer.values, [so_far, Expr::load(&staged, of_all)]);
        let update = Stmt::store(&result, at.clone(), both.apply(&reducer.combined));
        let update = loops
            .into_iter()
            .rev()
            .fold(update, |body, (var, extent)| Stmt::for_loop(&var, extent, ForKind::Serial, body));
        let body = Stmt::seq(vec![
            Stmt::store(&staged, own, given),
            Stmt::new(StmtKind::Barrier),
            Stmt::store(&result, at, reducer.identity.clone()),
            update,
            Stmt::new(StmtKind::Barrier),
        ]);
        let body = Arc::new(Stmt::new(StmtKind::Allocate { buffer: staged, body: Arc::new(body) }));
        let names = reduced.iter().map(|(var, _)| AttrValue::Var(var.clone())).collect();
        let (node, key, value) = (AttrValue::List(names), THREAD_ALLREDUCE.to_owned(), AttrValue::Int(1));
        Stmt::new(StmtKind::Attr { node, key, value, body })
    }
}
