//! Printing of statements.
//!
//! A scope that extends to the end of its block is printed as an assignment, any other as a `with` statement:
//!
//! ```python
//! @T.prim_func
//! def f(B: T.Buffer((4,), "float32")):
//!     with T.alloc_buffer((4,), "float32") as A:
//!         A[0] = T.float32(1.0)
//!     A_1 = T.alloc_buffer((4,), "float32")
//!     A_1[0] = T.float32(2.0)
//!     B[0] = A_1[0]
//! ```

use tilewright_ir::sabotage;
use tilewright_ir::{
    AttrValue, BinaryOp, DeviceCall, Expr, For, ForKind, Stmt, StmtKind, VIRTUAL_AXES, VIRTUAL_THREAD,
};

use super::Printer;
use super::expr::quote;

impl Printer {
    /// Prints the lines of a block; `pass` if there are none.
    pub(super) fn body(&mut self, stmt: &Stmt) {
        if matches!(&stmt.kind, StmtKind::Seq(stmts) if stmts.is_empty()) {
            self.line("pass");
        } else {
            self.stmt(stmt, true);
        }
    }

    /// Prints a block one level deeper.
    pub(super) fn nested(&mut self, stmt: &Stmt) {
        self.indent += 1;
        self.inside(|printer| printer.body(stmt));
        self.indent -= 1;
    }

    /// Prints a statement; `last` states whether it is the last one of its block.
    pub(super) fn stmt(&mut self, stmt: &Stmt, last: bool) {
        match &stmt.kind {
            StmtKind::Seq(stmts) => {
                for (position, inner) in stmts.iter().enumerate() {
                    self.stmt(inner, last && position + 1 == stmts.len());
                }
            }
            StmtKind::For(inner) => self.for_loop(inner),
            StmtKind::Store { buffer, indices, value } => {
                let line = self
                    .texture_store_call(buffer, indices, value)
                    .unwrap_or_else(|| format!("{} = {}", self.access(buffer, indices), self.expr(value)));
                self.line(&line);
            }
            StmtKind::Allocate { buffer, body } | StmtKind::DeclBuffer { buffer, body } => {
                let alias = matches!(stmt.kind, StmtKind::DeclBuffer { .. });
                let call = if alias { None } else { self.texture_alloca_call(buffer) };
                let of_block = !alias && self.is_block_memory;
                let call = call.unwrap_or_else(|| {
                    let name = if alias { "decl_buffer" } else { self.dialect.allocation(of_block) };
                    format!("T.{name}({})", self.declaration(buffer, alias))
                });
                self.names.claim_data(buffer);
                let name = self.names.buffer(buffer);
                // In TVM, memory of a block is there for the whole block.
                let is_flat = self.dialect.is_flat() || of_block && self.dialect.is_tvm();
                let print = |printer: &mut Self| {
                    if is_flat && !last {
                        printer.line(&format!("{name} = {call}"));
                        printer.stmt(body, false);
                    } else {
                        printer.scope(&call, Some(&name), body, last);
                    }
                };
                if of_block { print(self) } else { self.inside(print) }
            }
            StmtKind::If { cond, then_body, else_body } => self.branch("if", cond, then_body, else_body.as_deref()),
            StmtKind::Let { var, value, body } => {
                // The value is printed first, because it is outside the scope of the name.
                let value = self.expr(value);
                let name = self.names.bind(var);
                if last || self.dialect.is_flat() {
                    self.line(&format!("{name}: {} = {value}", self.dialect.binding(var.dtype())));
                    self.inside(|printer| printer.stmt(body, last));
                } else {
                    self.line(&format!("with T.LetStmt({value}) as {name}:"));
                    self.nested(body);
                }
                self.names.unbind();
                if self.dialect.is_flat() {
                    // The statements below are in the same block.
                    self.names.take(name);
                }
            }
            StmtKind::Evaluate(value) => {
                let line = format!("T.evaluate({})", self.expr(value));
                self.line(&line);
            }
            StmtKind::Barrier => self.line("T.tvm_storage_sync(\"shared\")"),
            StmtKind::Attr { value: AttrValue::Block(block), body, .. } => self.block(block, body, last),
            StmtKind::Attr { .. } if DeviceCall::of(stmt).is_some() => {
                if let Some(call) = DeviceCall::of(stmt) {
                    self.device_call(call, stmt.span);
                }
            }
            StmtKind::Attr { node, key, value, body } => {
                let call = format!("T.attr({}, {}, {})", self.attr(node), quote(key), self.attr(value));
                self.inside(|printer| printer.scope(&call, None, body, last));
            }
            StmtKind::Assert { cond, is_assumed: true, .. } => {
                let line = format!("T.assume({})", self.expr(cond));
                self.line(&line);
            }
            StmtKind::Assert { cond, message, .. } => {
                let line = format!("assert {}, {}", self.expr(cond), quote(message));
                self.line(&line);
            }
        }
    }

    /// Prints the statements that follow in the same block. An empty sequence needs no line there.
    pub(super) fn rest(&mut self, body: &Stmt) {
        self.stmt(body, true);
    }

    /// Prints a scope: `name = call` and the rest of the block, or `with call as name:` and a nested block.
    fn scope(&mut self, call: &str, name: Option<&str>, body: &Stmt, last: bool) {
        if last {
            self.line(&name.map_or_else(|| call.to_owned(), |name| format!("{name} = {call}")));
            self.rest(body);
        } else {
            self.line(&format!("with {call}{}:", name.map_or_else(String::new, |name| format!(" as {name}"))));
            self.nested(body);
        }
    }

    /// Prints an `if` or, for an `if` that is the whole `else` branch, an `elif`.
    fn branch(&mut self, word: &str, cond: &Expr, then_body: &Stmt, else_body: Option<&Stmt>) {
        let is_init =
            word == "if" && else_body.is_none() && self.inits.last().is_some_and(|init| init.as_ref() == Some(cond));
        if is_init {
            self.inits.pop();
            self.inits.push(None);
            self.line("with T.init():");
            self.nested(then_body);
            return;
        }
        let line = format!("{word} {}:", self.expr(cond));
        self.line(&line);
        self.nested(then_body);
        match else_body.map(|body| (body, &body.kind)) {
            Some((_, StmtKind::If { cond, then_body, else_body })) => {
                self.branch("elif", cond, then_body, else_body.as_deref());
            }
            Some((body, _)) => {
                self.line("else:");
                self.nested(body);
            }
            None => {}
        }
    }

    /// Prints a loop, or a nest of loops as `T.grid`.
    fn for_loop(&mut self, inner: &For) {
        let grid = grid_nest(inner);
        if grid.len() > 1 {
            // All extents are printed before the variables take their names: `T.grid` evaluates them outside the loops.
            let extents: Vec<_> = grid.iter().map(|inner| self.expr(&inner.extent)).collect();
            let vars: Vec<_> = grid.iter().map(|inner| self.names.bind(&inner.var)).collect();
            self.line(&format!("for {} in T.grid({}):", vars.join(", "), extents.join(", ")));
            self.nested(&grid[grid.len() - 1].body);
            for _ in &grid {
                self.names.unbind();
            }
            return;
        }
        let virtual_axis = inner.annotations.last().filter(|_| inner.kind == ForKind::Parallel).and_then(axis_of);
        let (call, thread) = match inner.kind {
            ForKind::Serial => ("serial", None),
            ForKind::Parallel => match virtual_axis {
                Some(axis) => ("thread_binding", Some(axis.to_owned())),
                None => ("parallel", None),
            },
            ForKind::Vectorized => ("vectorized", None),
            ForKind::Unrolled if sabotage::on("printer-unroll-is-serial") => ("serial", None),
            ForKind::Unrolled => ("unroll", None),
            ForKind::ThreadBinding(tag) => ("thread_binding", Some(tag.to_string())),
        };
        let mut args = self.bounds(inner);
        args.extend(thread.map(|axis| format!("thread=\"{axis}\"")));
        let n_hints = inner.annotations.len() - usize::from(virtual_axis.is_some());
        if n_hints > 0 {
            args.push(format!("annotations={}", self.annotations(&inner.annotations[..n_hints])));
        }
        if inner.var.dtype() != inner.extent.dtype() {
            args.push(format!("dtype=\"{}\"", inner.var.dtype()));
        }
        let name = self.names.bind(&inner.var);
        let call = if call == "serial" && args.len() == 1 { "range".to_owned() } else { format!("T.{call}") };
        self.line(&format!("for {name} in {call}({}):", args.join(", ")));
        self.nested(&inner.body);
        self.names.unbind();
    }

    /// Prints the annotations of a loop.
    fn annotations(&mut self, annotations: &[(String, AttrValue)]) -> String {
        self.dict(annotations)
    }

    /// Returns the arguments for the start and the end of a loop. The reader computes the same extent from them: it
    /// knows `start + n` and constant ends; `extent=n` covers all other cases.
    fn bounds(&mut self, inner: &For) -> Vec<String> {
        let (min, extent) = (&inner.min, &inner.extent);
        // The reader finds `min` in the end by comparison, which fails if `min` contains a NaN.
        let recognised = *min == min.clone();
        if min.dtype() != extent.dtype() || !recognised {
            if self.dialect.is_tvm() {
                let help = "give the start and the extent one type";
                self.refuse(None, &format!("a loop from `{min}` of another type than its extent"), help);
            }
            return vec![self.expr(min), format!("extent={}", self.expr(extent))];
        }
        let sum = |lhs: &Expr, rhs: &Expr| Expr::binary(BinaryOp::Add, lhs.clone(), rhs.clone());
        let stop = match (min, extent) {
            (Expr::Int { value: 0, .. }, extent) => return vec![self.expr(extent)],
            (Expr::Int { value: a, .. }, Expr::Int { value: b, ty }) => {
                Expr::int_of(a + b, *ty).unwrap_or_else(|| sum(min, extent))
            }
            (min, Expr::Binary(BinaryOp::Sub, stop, start)) if **start == *min && !loses_difference(min, stop) => {
                (**stop).clone()
            }
            _ => sum(min, extent),
        };
        vec![self.expr(min), self.expr(&stop)]
    }
}

/// Returns whether the reader would read a loop from `min` to `stop` with an extent other than `stop - min`.
fn loses_difference(min: &Expr, stop: &Expr) -> bool {
    match stop {
        Expr::Binary(BinaryOp::Add, base, _) => **base == *min,
        Expr::Int { .. } => matches!(min, Expr::Int { .. }),
        _ => false,
    }
}

/// Returns the loops that `T.grid` can print together: serial, from 0, and with extents that do not depend on the
/// loops around them.
fn grid_nest(outer: &For) -> Vec<&For> {
    let mut loops: Vec<&For> = Vec::new();
    let mut next = Some(outer);
    while let Some(inner) = next {
        let zero = inner.min == Expr::Int { value: 0, ty: inner.extent.dtype().scalar };
        let is_default = inner.kind == ForKind::Serial && zero && inner.annotations.is_empty();
        let typed = inner.var.dtype() == inner.extent.dtype();
        let free = inner.extent.vars().iter().all(|var| loops.iter().all(|outer| outer.var != *var));
        if !(is_default && typed && free) {
            break;
        }
        loops.push(inner);
        next = if let StmtKind::For(inner) = &inner.body.kind { Some(&**inner) } else { None };
    }
    loops
}

/// The axis of virtual threads that an annotation names.
fn axis_of((key, value): &(String, AttrValue)) -> Option<&str> {
    match value {
        AttrValue::Str(axis) if key == VIRTUAL_THREAD => Some(axis.as_str()).filter(|axis| VIRTUAL_AXES.contains(axis)),
        AttrValue::Str(_) | AttrValue::Bool(_) | AttrValue::Int(_) | AttrValue::Float(_) | AttrValue::Var(_) => None,
        AttrValue::Expr(_) | AttrValue::List(_) | AttrValue::Dict(_) | AttrValue::Block(_) => None,
    }
}
