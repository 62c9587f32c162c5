//! Loops: `T.serial`, `T.grid` and their kin, `range`, thread bindings.

use std::sync::Arc;

use ruff_python_ast as ast;
use ruff_text_size::Ranged;
use tilewright_ir::sabotage::{self, Fault};
use tilewright_ir::{AttrValue, BinaryOp, DataType, Expr, For, ForKind, Stmt, StmtKind, ThreadTag, Var};

use super::promote::Value;
use super::reader::{Binding, Reader, string};
use crate::source::{MAX_NESTING, nearest, span};

/// A loop header: all but variable and body.
struct Header {
    min: Expr,
    extent: Expr,
    kind: ForKind,
    ty: DataType,
    annotations: Vec<(String, AttrValue)>,
}

const LOOPS: &[&str] = &["serial", "parallel", "vectorized", "unroll", "thread_binding", "grid", "range"];

impl<'a> Reader<'a> {
    pub(super) fn for_loop(&mut self, stmt: &'a ast::StmtFor) -> Option<Stmt> {
        if let Some(first) = stmt.orelse.first() {
            return self.error(
                "unsupported",
                first.range(),
                "`for ... else` has no meaning in TVMScript",
                "drop `else`",
            );
        }
        let ast::Expr::Call(call) = &*stmt.iter else {
            return self.error("loop", stmt.iter.range(), "this is nothing to loop over", "such as `T.serial(n)`");
        };
        let targets = match &*stmt.target {
            ast::Expr::Tuple(tuple) => tuple.elts.as_slice(),
            other => std::slice::from_ref(other),
        };
        let headers = self.headers(call)?;
        if headers.len() != targets.len() || headers.len() + self.depth > MAX_NESTING {
            let message = format!("{} variables for {} loops", targets.len(), headers.len());
            return self.error("loop", stmt.target.range(), message, "`T.grid` takes one extent for each variable");
        }
        let scope = self.names.len();
        let mut vars = Vec::new();
        for (target, header) in targets.iter().zip(&headers) {
            let ast::Expr::Name(name) = target else {
                return self.error("loop", target.range(), "a loop variable is a name", "such as `i`");
            };
            let var = Var::new(name.id.as_str(), header.ty);
            self.bind(name.id.as_str(), Binding::Value(Expr::from(&var)));
            vars.push(var);
        }
        let body = self.block(&stmt.body);
        self.names.truncate(scope);
        let place = Some(span(stmt.range()));
        Some(vars.into_iter().zip(headers).rev().fold(body, |body, (var, header)| {
            let Header { min, extent, kind, annotations, .. } = header;
            Stmt::new(StmtKind::For(Arc::new(For { var, min, extent, kind, annotations, body }))).at(place)
        }))
    }

    fn headers(&mut self, call: &'a ast::ExprCall) -> Option<Vec<Header>> {
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
                    .map(|extent| {
                        let extent = self.expr(extent)?;
                        Some(from_zero(extent, ForKind::Serial))
                    })
                    .collect();
            }
            "thread_binding" => return self.thread_binding(call).map(|header| vec![header]),
            _ => {
                let help = nearest(&name, LOOPS.iter().copied()).map_or_else(
                    || format!("loops are {}", LOOPS.join(", ")),
                    |near| format!("did you mean `T.{near}`?"),
                );
                return self.error("loop", call.range(), "this is nothing to loop over", help);
            }
        };
        let args = self.args(call, &name, &["start", "stop", "annotations", "extent", "dtype"], 1)?;
        let annotations = self.annotations(args.get(2))?;
        let mut header = if let Some(extent) = args.get(3) {
            let (min, extent) = (self.expr(args.get(0)?)?, self.expr(extent)?);
            Header { ty: extent.dtype(), min, extent, kind, annotations: Vec::new() }
        } else {
            self.span_of(args.get(0)?, args.get(1), kind)?
        };
        if let Some(dtype) = args.get(4) {
            header.ty = self.dtype(dtype)?;
        }
        Some(vec![Header { annotations, ..header }])
    }

    /// From `start` to `stop`, or from 0 to `start`.
    fn span_of(&mut self, start: &'a ast::Expr, stop: Option<&'a ast::Expr>, kind: ForKind) -> Option<Header> {
        let Some(stop) = stop else { return self.expr(start).map(|extent| from_zero(extent, kind)) };
        let (first, last): (Option<Value>, Option<Value>) = (self.value(start), self.value(stop));
        let (min, stop) = self.unify(first?, last?, start.range())?;
        let ty = stop.dtype();
        let extent = match (&min, stop) {
            (Expr::Int { value: 0, .. }, stop) => stop,
            (Expr::Int { value: a, .. }, Expr::Int { value: b, ty }) => {
                match Expr::int_of(if sabotage::on(Fault::ReaderStopIsExtent) { b } else { b - a }, ty) {
                    Some(extent) => extent,
                    None => return self.error("loop", start.range(), "the loop has too many iterations", "shorten it"),
                }
            }
            (min, Expr::Binary(BinaryOp::Add, base, extent)) if *base == *min => extent.into_expr(),
            (min, stop) => stop - min.clone(),
        };
        Some(Header { min, extent, kind, ty, annotations: Vec::new() })
    }

    /// `T.thread_binding(32, thread="threadIdx.x")`, `T.thread_binding(0, 32, "threadIdx.x")`.
    fn thread_binding(&mut self, call: &'a ast::ExprCall) -> Option<Header> {
        let short = call.arguments.args.len() == 2 && string(&call.arguments.args[1]).is_some();
        let params: &[&str] = if short {
            &["start", "thread", "annotations", "stop", "extent", "dtype"]
        } else {
            &["start", "stop", "thread", "annotations", "extent", "dtype"]
        };
        let args = self.args(call, "thread_binding", params, 1)?;
        let (stop, thread, annotations) =
            if short { (args.get(3), args.get(1), args.get(2)) } else { (args.get(1), args.get(2), args.get(3)) };
        let Some(thread) = thread else {
            return self.error("loop", call.range(), "the thread axis is missing", "add `thread=\"threadIdx.x\"`");
        };
        let kind = ForKind::ThreadBinding(self.thread_tag(thread)?);
        let mut header = if let Some(extent) = args.get(4) {
            let (min, extent) = (self.expr(args.get(0)?)?, self.expr(extent)?);
            Header { ty: extent.dtype(), min, extent, kind, annotations: Vec::new() }
        } else {
            self.span_of(args.get(0)?, stop, kind)?
        };
        if let Some(dtype) = args.get(5) {
            header.ty = self.dtype(dtype)?;
        }
        header.annotations = self.annotations(annotations)?;
        Some(header)
    }

    pub(super) fn thread_tag(&mut self, expr: &'a ast::Expr) -> Option<ThreadTag> {
        match string(expr).map(str::parse) {
            Some(Ok(tag)) => Some(tag),
            _ => self.error(
                "thread",
                expr.range(),
                "this is no thread axis",
                "they are blockIdx.x to .z, threadIdx.x to .z",
            ),
        }
    }
}

fn from_zero(extent: Expr, kind: ForKind) -> Header {
    let ty = extent.dtype();
    Header { min: Expr::Int { value: 0, ty: ty.scalar }, extent, kind, ty, annotations: Vec::new() }
}
