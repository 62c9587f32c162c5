//! Loops.
//!
//! | notation | loop |
//! |---|---|
//! | `range(n)`, `T.serial(n)` | serial, from 0 to `n - 1` |
//! | `T.serial(start, stop)` | serial, from `start` to `stop - 1`; the same arguments for the kinds below |
//! | `T.serial(start, extent=n)` | serial, `n` iterations from `start`, possibly of different types |
//! | `range(start, stop, step)`, `T.serial(start, stop, step=step)` | from 0, with `start + i * step` in the place of `i`; release 0.27 |
//! | `T.parallel`, `T.vectorized`, `T.unroll` | the kinds of [`ForKind`] |
//! | `T.thread_binding(n, thread="threadIdx.x")` | bound to a launch axis |
//! | `T.thread_binding(n, thread="vthread.x")` | parallel, with the annotation `virtual_thread` |
//! | `T.grid(n, m)`, `T.grid((1, n), m)` | nested serial loops, one per variable; each from 0, or from a start to an end |
//! | `T.serial(n, unroll=True)` | serial, with the annotation `pragma_unroll`; `False` is `disable_unroll`; release 0.27 |
//!
//! The loop variable has the type of the extent, unless `dtype` states another one. `annotations={...}` adds hints.

use std::sync::Arc;

use ruff_python_ast as ast;
use ruff_text_size::{Ranged, TextRange};
use tilewright_ir::sabotage;
use tilewright_ir::{AttrValue, BinaryOp, DataType, Expr, For, ForKind, Stmt, StmtKind, Var};

use super::promote::Value;
use super::reader::{Binding, Reader, string};
use crate::source::{MAX_NESTING, nearest, span};

/// The header of a loop: everything but its variable and its body.
struct LoopHeader {
    min: Expr,
    extent: Expr,
    kind: ForKind,
    ty: DataType,
    annotations: Vec<(String, AttrValue)>,
    /// The start and the step of the text, where the loop counts its iterations from 0.
    steps: Option<(Expr, Expr)>,
}

/// The names of the loop functions, for hints.
const LOOPS: &[&str] = &["serial", "parallel", "vectorized", "unroll", "thread_binding", "grid", "range"];

impl<'a> Reader<'a> {
    /// Reads a `for` statement, which may introduce several nested loops.
    pub(super) fn for_loop(&mut self, stmt: &'a ast::StmtFor) -> Option<Stmt> {
        if let Some(first) = stmt.orelse.first() {
            return self.error("unsupported", first.range(), "`for ... else` is not part of TVMScript", "drop `else`");
        }
        let ast::Expr::Call(call) = &*stmt.iter else {
            return self.error("loop", stmt.iter.range(), "this is not a loop", "such as `T.serial(n)`");
        };
        let targets = match &*stmt.target {
            ast::Expr::Tuple(tuple) => tuple.elts.as_slice(),
            other => std::slice::from_ref(other),
        };
        let mut headers = self.headers(call)?;
        // `T.grid` nests loops that are not nested in the text, so the limit of the parser does not cover them.
        if headers.len() + self.depth > MAX_NESTING {
            let message = format!("loops nest deeper than {MAX_NESTING} levels here");
            return self.error("nesting", stmt.target.range(), message, "split the function");
        }
        if headers.len() != targets.len() {
            let message = format!("{} variables for {} loops", targets.len(), headers.len());
            return self.error("loop", stmt.target.range(), message, "`T.grid` takes one extent for each variable");
        }
        let scope = self.names.len();
        let mut vars = Vec::new();
        for (target, header) in targets.iter().zip(&mut headers) {
            let ast::Expr::Name(name) = target else {
                return self.error("loop", target.range(), "a loop variable is a name", "such as `i`");
            };
            let var = Var::new(name.id.as_str(), header.ty);
            let value = self.value_of_variable(&var, header, target.range())?;
            self.bind(name.id.as_str(), Binding::Value(value));
            self.remember_range(&var, &header.min, &header.extent);
            self.remember_threads(&var, header.kind, &header.extent);
            // In front of the annotation of virtual threads, which the printer expects at the end.
            header.annotations.splice(0..0, self.hints_of(&name.id));
            vars.push(var);
        }
        self.depth += vars.len();
        let body = self.block(&stmt.body);
        self.depth -= vars.len();
        self.names.truncate(scope);
        let place = Some(span(stmt.range()));
        Some(vars.into_iter().zip(headers).rev().fold(body, |body, (var, header)| {
            let LoopHeader { min, extent, kind, annotations, .. } = header;
            Stmt::new(StmtKind::For(Arc::new(For { var, min, extent, kind, annotations, body }))).at(place)
        }))
    }

    /// Reads the call that a `for` statement iterates over: one header, or one per extent of `T.grid`.
    fn headers(&mut self, call: &'a ast::ExprCall) -> Option<Vec<LoopHeader>> {
        let name = self.callee(&call.func).unwrap_or("?").to_owned();
        let kind = match name.as_str() {
            "serial" | "range" => ForKind::Serial,
            "parallel" => ForKind::Parallel,
            "vectorized" => ForKind::Vectorized,
            "unroll" | "unrolled" => ForKind::Unrolled,
            "grid" => {
                return call
                    .arguments
                    .args
                    .iter()
                    .map(|extent| match extent {
                        // Release 0.27 takes a start and an end, too.
                        ast::Expr::Tuple(ends) if let [start, stop] = &ends.elts[..] => {
                            self.header_from_bounds(start, Some(stop), ForKind::Serial)
                        }
                        extent => self.header_from_bounds(extent, None, ForKind::Serial),
                    })
                    .collect();
            }
            "thread_binding" => return self.thread_binding(call).map(|header| vec![header]),
            _ => {
                let help = nearest(&name, LOOPS.iter().copied()).map_or_else(
                    || format!("loops are {}", LOOPS.join(", ")),
                    |near| format!("did you mean `T.{near}`?"),
                );
                return self.error("loop", call.range(), "this is not a loop", help);
            }
        };
        // As in Python, the step of `range` stands in the third place. TVM takes all but the ends by name.
        let params: &[&str] = match name.as_str() {
            "range" => &["start", "stop", "step", "extent", "dtype", "annotations"],
            _ => &["start", "stop", "annotations", "extent", "dtype", "step", "unroll"],
        };
        let args = self.bind_args(call, &name, params, 1)?;
        let [step, annotations] = if name == "range" { [2, 5] } else { [5, 2] }.map(|at| args.get(at));
        let mut annotations = self.annotations(annotations)?;
        if let Some(unroll) = args.get(6) {
            annotations.push(self.unroll_hint(unroll)?);
        }
        // `extent=` is our own: the printer uses it for an end that `header_from_bounds` would not read as the same extent.
        let mut header = if let Some(extent) = args.get(3) {
            let (min, extent) = (self.expr(args.get(0)?)?, self.expr(extent)?);
            LoopHeader { ty: extent.dtype(), min, extent, kind, annotations: Vec::new(), steps: None }
        } else {
            self.header_from_bounds(args.get(0)?, args.get(1), kind)?
        };
        // The variable has the type of the bounds unless the text gives it another one.
        if let Some(dtype) = args.get(4) {
            header.ty = self.dtype(dtype)?;
        }
        if let Some(step) = step {
            header = self.with_step(header, step)?;
        }
        Some(vec![LoopHeader { annotations, ..header }])
    }

    /// Reads `unroll=True`, `unroll=False` or `unroll=4` as the annotation that TVM makes of it.
    fn unroll_hint(&mut self, unroll: &'a ast::Expr) -> Option<(String, AttrValue)> {
        match self.attr_value(unroll)? {
            AttrValue::Bool(false) => Some(("disable_unroll".to_owned(), AttrValue::Bool(true))),
            value @ (AttrValue::Bool(true) | AttrValue::Int(1..)) => Some(("pragma_unroll".to_owned(), value)),
            _ => {
                self.error("loop", unroll.range(), "`unroll` is `True`, `False` or a positive number", "`unroll=True`")
            }
        }
    }

    /// Returns the header of a loop with a step: it counts the iterations, `(extent + step - 1) // step` of them, from 0.
    fn with_step(&mut self, header: LoopHeader, step: &'a ast::Expr) -> Option<LoopHeader> {
        let ty = header.extent.dtype().scalar;
        let by = self.expr(step)?.as_const_int().filter(|by| *by > 0);
        let Some((by, step_value)) = by.and_then(|by| Some((by, Expr::int_of(by, ty)?))) else {
            let help =
                "count the iterations, `for i in range(n):`, and compute the index in the loop: `A[start + i * step]`";
            return self.error("loop", step.range(), "the step of a loop is a positive constant", help);
        };
        if by == 1 {
            return Some(header);
        }
        let extent = match &header.extent {
            Expr::Int { value, .. } => {
                Expr::int_of(value.max(&0).div_euclid(by) + i128::from(value.max(&0) % by != 0), ty)?
            }
            extent => {
                let last = Expr::int_of(by - 1, ty)?;
                let sum = self.binary(BinaryOp::Add, extent.clone().into(), last.into(), step.range())?;
                self.binary(BinaryOp::FloorDiv, sum.into(), step_value.clone().into(), step.range())?
            }
        };
        let min = Expr::Int { value: 0, ty };
        Some(LoopHeader { extent, min, steps: Some((header.min, step_value)), ..header })
    }

    /// Returns the value that the variable of a loop has in the text: `start + i * step` for a loop with a step.
    fn value_of_variable(&mut self, var: &Var, header: &LoopHeader, range: TextRange) -> Option<Expr> {
        let Some((start, step)) = &header.steps else { return Some(Expr::from(var)) };
        let offset = self.binary(BinaryOp::Mul, Expr::from(var).into(), step.clone().into(), range)?;
        if start.as_const_int() == Some(0) {
            return Some(offset);
        }
        self.binary(BinaryOp::Add, start.clone().into(), offset.into(), range)
    }

    /// Returns the header of a loop from `start` to `stop`, or from 0 to `start` if there is no `stop`.
    ///
    /// The language stores the extent `stop - start`. It is computed for constants, and `start + n` gives the extent `n`, so
    /// that a printed loop is read as the same loop.
    fn header_from_bounds(
        &mut self,
        start: &'a ast::Expr,
        stop: Option<&'a ast::Expr>,
        kind: ForKind,
    ) -> Option<LoopHeader> {
        let Some(stop) = stop else { return self.expr(start).map(|extent| header_from_zero(extent, kind)) };
        let (first, last): (Option<Value>, Option<Value>) = (self.value(start), self.value(stop));
        let (min, stop) = self.unify(first?, last?, start.range())?;
        let ty = stop.dtype();
        let Some(extent) = extent_between(&min, stop) else {
            return self.error("loop", start.range(), "the loop has too many iterations", "shorten it");
        };
        Some(LoopHeader { min, extent, kind, ty, annotations: Vec::new(), steps: None })
    }

    /// Reads `T.thread_binding(32, thread="threadIdx.x")` or `T.thread_binding(0, 32, "threadIdx.x")`. The short form
    /// `T.thread_binding(32, "threadIdx.x")` has another order of parameters.
    fn thread_binding(&mut self, call: &'a ast::ExprCall) -> Option<LoopHeader> {
        // A string in the second place is the thread axis, because a stop is a number.
        let short = call.arguments.args.len() == 2 && string(&call.arguments.args[1]).is_some();
        let params: &[&str] = if short {
            &["start", "thread", "annotations", "stop", "extent", "dtype"]
        } else {
            &["start", "stop", "thread", "annotations", "extent", "dtype"]
        };
        let args = self.bind_args(call, "thread_binding", params, 1)?;
        let (stop, thread, annotations) =
            if short { (args.get(3), args.get(1), args.get(2)) } else { (args.get(1), args.get(2), args.get(3)) };
        let Some(thread) = thread else {
            return self.error("loop", call.range(), "the thread axis is missing", "add `thread=\"threadIdx.x\"`");
        };
        let axis = self.launch_axis(thread)?;
        let kind = axis.kind();
        let mut header = if let Some(extent) = args.get(4) {
            let (min, extent) = (self.expr(args.get(0)?)?, self.expr(extent)?);
            LoopHeader { ty: extent.dtype(), min, extent, kind, annotations: Vec::new(), steps: None }
        } else {
            self.header_from_bounds(args.get(0)?, stop, kind)?
        };
        if let Some(dtype) = args.get(5) {
            header.ty = self.dtype(dtype)?;
        }
        header.annotations = self.annotations(annotations)?;
        header.annotations.extend(axis.annotation());
        Some(header)
    }
}

/// Returns the number of integers from `min` to `stop - 1`: computed for constants, `n` from `min` to `min + n`, and the difference
/// otherwise. `None` if it leaves the type.
pub(super) fn extent_between(min: &Expr, stop: Expr) -> Option<Expr> {
    Some(match (min, stop) {
        (Expr::Int { value: 0, .. }, stop) => stop,
        (Expr::Int { value: a, .. }, Expr::Int { value: b, ty }) => {
            Expr::int_of(if sabotage::on("reader-stop-is-extent") { b } else { b - a }, ty)?
        }
        (min, Expr::Binary(BinaryOp::Add, base, extent)) if *base == *min => extent.into_expr(),
        (min, stop) => stop - min.clone(),
    })
}

/// Returns the header of a loop from 0 to `extent - 1`, with a variable of the extent's type.
fn header_from_zero(extent: Expr, kind: ForKind) -> LoopHeader {
    let ty = extent.dtype();
    LoopHeader { min: Expr::Int { value: 0, ty: ty.scalar }, extent, kind, ty, annotations: Vec::new(), steps: None }
}
