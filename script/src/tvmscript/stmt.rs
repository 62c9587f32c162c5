//! Statements and blocks.
//!
//! A statement that opens a scope without a `with`, such as `A = T.alloc_buffer(...)`, contains all later statements
//! of its block.

use std::sync::Arc;

use ruff_python_ast as ast;
use ruff_text_size::{Ranged, TextRange};
use tilewright_ir::{Buffer, DataType, Expr, FuncAttrs, Stmt, StmtKind, Var};

use super::buffer::{Declaration, PARAMS};
use super::func::is_docstring;
use super::promote::Value;
use super::reader::{Binding, Reader, string};
use super::scopes::ScopeWrapper;
use crate::source::{MAX_NESTING, MAX_SCOPES, span};

/// The contribution of a statement to its block.
pub(super) enum BlockItem {
    /// A statement.
    Stmt(Stmt),
    /// A scope that contains the rest of the block.
    Scope(ScopeWrapper),
    /// No statement, as for `pass` and docstrings.
    Nothing,
}

impl<'a> Reader<'a> {
    /// Reads the body of a function and its other attributes. Returns the body, and the buffers that `T.match_buffer`
    /// assigns to handle parameters.
    ///
    /// `T.match_buffer` statements and symbolic extents are read first, wherever they stand, because they declare the
    /// parameters. Attributes are read before the other statements, but after the buffers that they refer to.
    pub(super) fn func_body(
        &mut self,
        body: &'a [ast::Stmt],
        params: &mut [Var],
        attrs: &mut FuncAttrs,
    ) -> (Stmt, Vec<(Var, Buffer)>) {
        let mut matched = Vec::new();
        let mut rest = Vec::new();
        for stmt in body {
            if self.statement_call(stmt, "func_attr").is_some() || self.declare_symbol(stmt) {
                continue;
            }
            if let ast::Stmt::Assign(assign) = stmt
                && let ast::Expr::Call(call) = &*assign.value
                && self.callee(&call.func) == Some("match_buffer")
            {
                let found = self.match_buffer(assign, call, params, &matched);
                if found.is_none() {
                    assign.targets.iter().for_each(|target| self.bind_failed(target));
                }
                matched.extend(found);
            } else if rest.is_empty()
                && let Some((handle, found)) = self.buffer_of_pointer(stmt)
            {
                matched.extend(found.map(|buffer| (handle, buffer)));
            } else {
                rest.push(stmt);
            }
        }
        self.bind_symbols();
        // The buffers of `T.match_buffer` have their names now, and layout attributes refer to them.
        for call in body.iter().filter_map(|stmt| self.statement_call(stmt, "func_attr")).collect::<Vec<_>>() {
            let _ = self.func_attr(call, Some(&mut *attrs));
        }
        (self.stmts(self.without_return(&rest)), matched)
    }

    /// Reads `A = T.match_buffer(a, (64,), "float32")` and returns the handle and the buffer. A handle can be matched
    /// only once.
    fn match_buffer(
        &mut self,
        assign: &'a ast::StmtAssign,
        call: &'a ast::ExprCall,
        params: &mut [Var],
        matched: &[(Var, Buffer)],
    ) -> Option<(Var, Buffer)> {
        let names: Vec<_> = std::iter::once("param").chain(PARAMS.iter().copied()).collect();
        let args = self.bind_args(call, "match_buffer", &names, 2)?;
        let help = "write `A = T.match_buffer(a, (64,), \"float32\")` for a parameter `a: T.handle`";
        let ([ast::Expr::Name(target)], Some(ast::Expr::Name(param))) = (&assign.targets[..], args.get(0)) else {
            return self.error(
                "match-buffer",
                call.range(),
                "`T.match_buffer` takes a parameter and names a buffer",
                help,
            );
        };
        let Some(Binding::Handle(var)) = self.lookup(&param.id).cloned() else {
            if matches!(self.lookup(&param.id), Some(Binding::Failed)) {
                return None;
            }
            let message = format!("`{}` is not a parameter of the type handle", param.id);
            return self.error("match-buffer", param.range(), message, help);
        };
        if let Some((_, first)) = matched.iter().find(|(known, _)| *known == var) {
            let message = format!("parameter `{}` is the buffer `{first}` already", param.id);
            let help = format!("for another view of it, write `{} = T.decl_buffer(..., data={first}.data)`", target.id);
            return self.error("matched-twice", param.range(), message, help);
        }
        let buffer = self.declare(&target.id, &Declaration::new(&args, 1), assign.range(), true)?;
        // The printer names the handle of buffer `A` `var_A`, since `A` names the buffer. Undo that.
        let mut handle = var.clone();
        if param.id.strip_prefix("var_") == Some(target.id.as_str()) {
            handle = Var::new(target.id.as_str(), DataType::HANDLE);
            params.iter_mut().filter(|known| **known == var).for_each(|known| *known = handle.clone());
        }
        self.bind(target.id.as_str(), Binding::Buffer(buffer.clone()));
        Some((handle, buffer))
    }

    /// Reads a block. Names that it introduces go out of scope at its end.
    pub(super) fn block(&mut self, body: &'a [ast::Stmt]) -> Stmt {
        let stmts: Vec<_> = body.iter().collect();
        self.stmts(&stmts)
    }

    /// Reads the statements of a block, and nests the scopes that they open.
    pub(super) fn stmts(&mut self, body: &[&'a ast::Stmt]) -> Stmt {
        let (scope, scopes, n_hints) = (self.names.len(), self.scopes, self.hints.len());
        self.depth += 1;
        let mut open: Vec<(ScopeWrapper, Vec<Stmt>, TextRange)> = Vec::new();
        let mut current = Vec::new();
        for stmt in body {
            let too_deep = match () {
                () if self.depth > MAX_NESTING => Some(format!("blocks nest deeper than {MAX_NESTING} levels here")),
                () if self.scopes > MAX_SCOPES => {
                    Some(format!("more than {MAX_SCOPES} allocations, bindings and other scopes are open here"))
                }
                () => None,
            };
            if let Some(message) = too_deep {
                let _: Option<()> = self.error("nesting", stmt.range(), message, "split the function");
                break;
            }
            match self.stmt(stmt) {
                Some(BlockItem::Stmt(read)) => current.push(read.at(Some(span(stmt.range())))),
                Some(BlockItem::Scope(wrap)) => {
                    self.scopes += 1;
                    open.push((wrap, std::mem::take(&mut current), stmt.range()));
                }
                Some(BlockItem::Nothing) | None => {}
            }
        }
        // A buffer that was declared without memory must get it in the same block.
        for (name, binding) in &self.names[scope..] {
            if let Binding::Unallocated(buffer) = binding {
                let message = format!("buffer `{name}` has no memory");
                let help = format!("allocate it, `T.Allocate({name}.data, [...], \"...\")`, or use `T.alloc_buffer`");
                self.errors.push(tilewright_ir::Diagnostic::error("no-memory", buffer.span, message).with_help(help));
            }
        }
        self.names.truncate(scope);
        self.hints.truncate(n_hints);
        self.scopes = scopes;
        self.depth -= 1;
        let innermost = Stmt::seq(current);
        open.into_iter().rev().fold(innermost, |body, (wrap, mut before, range)| {
            let scope = wrap(body);
            let is_binding = matches!(scope.kind, StmtKind::Let { .. });
            before.push(if is_binding { scope.at(Some(span(range))) } else { scope });
            Stmt::seq(before)
        })
    }

    /// Reads a statement. A table: a kind of Python statement that is not listed is an error.
    fn stmt(&mut self, stmt: &'a ast::Stmt) -> Option<BlockItem> {
        let range = stmt.range();
        match stmt {
            ast::Stmt::For(inner) => self.for_loop(inner).map(BlockItem::Stmt),
            ast::Stmt::If(inner) => self.branch(inner).map(BlockItem::Stmt),
            ast::Stmt::With(inner) => self.with(inner).map(BlockItem::Stmt),
            ast::Stmt::Assign(assign) => {
                let item = self.assign(assign);
                if item.is_none() {
                    assign.targets.iter().for_each(|target| self.bind_failed(target));
                }
                item
            }
            ast::Stmt::AnnAssign(assign) => {
                let item = self.annotated(assign);
                if item.is_none() {
                    self.bind_failed(&assign.target);
                }
                item
            }
            ast::Stmt::AugAssign(assign) => self.augmented(assign).map(BlockItem::Stmt),
            ast::Stmt::Assert(assert) => self.assert(&assert.test, assert.msg.as_deref()),
            ast::Stmt::Expr(expr) => self.expression_stmt(&expr.value),
            ast::Stmt::Pass(_) => Some(BlockItem::Nothing),
            ast::Stmt::Return(_) => self.ends_early("return", range),
            ast::Stmt::Break(_) => self.ends_early("break", range),
            ast::Stmt::Continue(_) => self.ends_early("continue", range),
            ast::Stmt::While(_) => {
                self.error("unsupported", range, "only counted loops are supported", "write `for i in T.serial(n):`")
            }
            _ => self.error(
                "unsupported",
                range,
                "this kind of Python statement is not part of TVMScript",
                "statements are loops, `if`, stores `A[i] = x`, allocations, `T.attr`, `assert`",
            ),
        }
    }

    /// Reads `if`. An `elif` becomes an `if` in the `else` branch. The clauses are read in source order, so that
    /// errors are reported in that order, and nested from the last to the first.
    fn branch(&mut self, stmt: &'a ast::StmtIf) -> Option<Stmt> {
        let cond = self.condition(&stmt.test);
        let then_body = self.block(&stmt.body);
        let mut clauses = Vec::new();
        for clause in &stmt.elif_else_clauses {
            let test = clause.test.as_ref().map(|test| self.condition(test));
            clauses.push((test, self.block(&clause.body), clause.range()));
        }
        let mut orelse = None;
        for (test, body, range) in clauses.into_iter().rev() {
            orelse = Some(match test {
                None => body,
                Some(test) => branch(test?, body, orelse).at(Some(span(range))),
            });
        }
        Some(branch(cond?, then_body, orelse))
    }

    /// Reads `with a, b as x:`; later items are inside the scope of earlier ones.
    fn with(&mut self, stmt: &'a ast::StmtWith) -> Option<Stmt> {
        if let [item] = &stmt.items[..]
            && let ast::Expr::Call(call) = &item.context_expr
        {
            if self.opens_block(call) {
                return self.block_stmt(call, item.optional_vars.as_deref(), &stmt.body);
            }
            if self.callee(&call.func) == Some("init") {
                return self.init_stmt(call, &stmt.body);
            }
        }
        let (scope, n_hints) = (self.names.len(), self.hints.len());
        let mut wraps = Vec::new();
        for item in &stmt.items {
            let ast::Expr::Call(call) = &item.context_expr else {
                return self.error(
                    "unsupported",
                    item.range(),
                    "this does not open a scope",
                    "such as `with T.allocate(...) as p:`",
                );
            };
            let wrap = self.scope_from_call(item.optional_vars.as_deref(), call);
            if let (None, Some(target)) = (&wrap, &item.optional_vars) {
                self.bind_failed(target);
            }
            wraps.push(wrap);
        }
        let (n_scopes, wraps): (usize, Option<Vec<ScopeWrapper>>) = (wraps.len(), wraps.into_iter().collect());
        self.scopes += n_scopes;
        let read = if let Some(wraps) = wraps {
            let body = self.block(&stmt.body);
            Some(wraps.into_iter().rev().fold(body, |body, wrap| wrap(body)))
        } else {
            self.block_of_failed(&stmt.body);
            None
        };
        self.scopes -= n_scopes;
        self.names.truncate(scope);
        self.hints.truncate(n_hints);
        read
    }

    /// Reads an assignment: a store `A[i] = x`, a scope `A = T.alloc_buffer(...)`, another name for a buffer, or the
    /// binding of a value.
    fn assign(&mut self, assign: &'a ast::StmtAssign) -> Option<BlockItem> {
        let [target] = &assign.targets[..] else {
            return self.error("unsupported", assign.range(), "one assignment at a time", "write one line for each");
        };
        match (target, &*assign.value) {
            (ast::Expr::Tuple(names), ast::Expr::Tuple(values)) => {
                self.tuple(&names.elts, &values.elts, assign.range())
            }
            (target, value) => self.assign_one(target, value),
        }
    }

    /// Reads the assignment of one value. From the special to the general: any value that is not listed before the last arm
    /// of a name is bound as a `let`.
    pub(super) fn assign_one(&mut self, target: &'a ast::Expr, value: &'a ast::Expr) -> Option<BlockItem> {
        match (target, value) {
            (ast::Expr::Subscript(target), value) => self.store(target, value).map(BlockItem::Stmt),
            (ast::Expr::Name(name), ast::Expr::Call(call)) if self.callee(&call.func) == Some("env_thread") => {
                self.env_thread(&name.id, call).map(|()| BlockItem::Nothing)
            }
            (ast::Expr::Name(name), ast::Expr::Call(call)) if self.is_view(call) => {
                self.view(&name.id, call).map(BlockItem::Scope)
            }
            (ast::Expr::Name(name), ast::Expr::Call(call))
                if self.callee(&call.func) == Some("match_buffer") && !self.blocks.is_empty() =>
            {
                let read = self.window(&name.id, call);
                if read.is_none() {
                    self.layout_failed(call);
                }
                read.map(|()| BlockItem::Nothing)
            }
            (ast::Expr::Name(_), ast::Expr::Call(call)) if self.opens_scope(call) => {
                self.scope_from_call(Some(target), call).map(BlockItem::Scope)
            }
            (ast::Expr::Name(name), ast::Expr::Name(other))
                if matches!(self.lookup(&other.id), Some(Binding::Buffer(_))) =>
            {
                let binding = self.name(other)?;
                self.bind(name.id.as_str(), binding);
                Some(BlockItem::Nothing)
            }
            // The name of a binding or a loop that follows, as in `with T.LetStmt(v, var=x):`. Until then it means nothing.
            (target, value) if let Some((name, ty)) = self.declared_symbol(target, value) => {
                self.bind(name.id.as_str(), Binding::Declared(ty));
                Some(BlockItem::Nothing)
            }
            (ast::Expr::Name(name), value) if self.is_changed(&name.id) => self.assign_scalar(name, value),
            (ast::Expr::Name(name), value) => {
                let value = self.expr(value)?;
                Some(BlockItem::Scope(self.bind_let(&name.id, value)))
            }
            (other, _) => self.error(
                "unsupported",
                other.range(),
                "this cannot be assigned to",
                "store with `A[i] = x`, bind with `x = ...`",
            ),
        }
    }

    /// Reads `x: T.int32 = value` or `x: T.let[T.int32] = value`, a binding with a stated type.
    fn annotated(&mut self, assign: &'a ast::StmtAnnAssign) -> Option<BlockItem> {
        let (ast::Expr::Name(name), Some(value)) = (&*assign.target, &assign.value) else {
            return self.error(
                "unsupported",
                assign.range(),
                "a declaration has a name and a value",
                "`x: T.int32 = 4`",
            );
        };
        // TVM marks a binding that is no buffer: `x: T.let[T.int32] = value`.
        let (annotation, is_let) = match &*assign.annotation {
            ast::Expr::Subscript(marked) if self.callee(&marked.value) == Some("let") => (&marked.slice, true),
            _ => (&assign.annotation, false),
        };
        // `x: T.let = value` has the type of the value.
        if self.callee(annotation) == Some("let") {
            let value = self.expr(value)?;
            return Some(BlockItem::Scope(self.bind_let(&name.id, value)));
        }
        if let Some(memory) = self.texture_memory(annotation, value) {
            let buffer = self.memory_of(&name.id, memory)?;
            self.bind(name.id.as_str(), Binding::Buffer(buffer.clone()));
            return Some(BlockItem::Scope(super::scopes::allocate(buffer)));
        }
        let ty = match &**annotation {
            ast::Expr::Call(call) => self.dtype(&call.func)?,
            annotation => self.dtype(annotation)?,
        };
        let value = self.value_in(value, ty)?;
        if !is_let && self.is_changed(&name.id) {
            return Some(BlockItem::Scope(self.declare_scalar(&name.id, value, name.range())));
        }
        Some(BlockItem::Scope(self.bind_let(&name.id, value)))
    }

    /// Binds a name to a value for the rest of the block.
    pub(super) fn bind_let(&mut self, name: &str, value: Expr) -> ScopeWrapper {
        let var = Var::new(name, value.dtype());
        self.remember_let(&var, &value);
        self.bind(name, Binding::Value(Expr::from(&var)));
        Box::new(move |body| Stmt::new(StmtKind::Let { var, value, body: Arc::new(body) }))
    }

    /// Reads `A[i, j] = value`. The value is converted to the type of the element.
    fn store(&mut self, target: &'a ast::ExprSubscript, value: &'a ast::Expr) -> Option<Stmt> {
        let (access, read) = (self.access(target), self.value(value));
        let (buffer, indices) = access?;
        let ty = Expr::load(&buffer, indices.clone()).dtype();
        let value = self.coerce(read?, ty, value.range())?;
        Some(Stmt::new(StmtKind::Store { buffer, indices, value }))
    }

    /// Reads `A[i] += x` as `A[i] = A[i] + x`.
    fn augmented(&mut self, assign: &'a ast::StmtAugAssign) -> Option<Stmt> {
        if let ast::Expr::Name(name) = &*assign.target {
            return self.update_scalar(name, assign);
        }
        let ast::Expr::Subscript(target) = &*assign.target else {
            return self.error(
                "unsupported",
                assign.target.range(),
                "only elements are updated",
                "such as `A[i] += x`",
            );
        };
        let (access, rhs) = (self.access(target), self.value(&assign.value));
        let ((buffer, indices), rhs) = (access?, rhs?);
        let before = Expr::load(&buffer, indices.clone());
        let ty = before.dtype();
        let Some(op) = super::expr::operator(assign.op) else {
            return self.error(
                "unsupported",
                assign.range(),
                "this operator is not supported here",
                "use + - * / // % & | ^",
            );
        };
        let value = Value::from(self.binary(op, before.into(), rhs, assign.range())?);
        let value = self.coerce(value, ty, assign.range())?;
        Some(Stmt::new(StmtKind::Store { buffer, indices, value }))
    }

    /// Reads `assert cond, "message"`. An assertion about `.dtype`, as in the examples of RFC 63, is checked by the reader
    /// and leaves no statement.
    pub(super) fn assert(&mut self, test: &'a ast::Expr, message: Option<&'a ast::Expr>) -> Option<BlockItem> {
        if let ast::Expr::Compare(compare) = test
            && let (ast::Expr::Attribute(attribute), [ast::CmpOp::Eq], [expected]) =
                (&*compare.left, &*compare.ops, &*compare.comparators)
            && attribute.attr.as_str() == "dtype"
        {
            return self.dtype_assert(&attribute.value, expected, test.range());
        }
        let cond = self.condition(test);
        let message = match message {
            None => String::new(),
            Some(message) => match assert_message(message) {
                Some(text) => text,
                None => return self.error("assert", message.range(), "the message is a string", "write it in quotes"),
            },
        };
        Some(BlockItem::Stmt(Stmt::new(StmtKind::Assert { cond: cond?, message, is_assumed: false })))
    }

    /// Checks `assert A[0].dtype == "float32x4"`.
    fn dtype_assert(&mut self, value: &'a ast::Expr, expected: &'a ast::Expr, range: TextRange) -> Option<BlockItem> {
        let buffer = match value {
            ast::Expr::Name(name) => match self.lookup(&name.id) {
                Some(Binding::Buffer(buffer)) => Some(buffer.dtype),
                _ => None,
            },
            _ => None,
        };
        let actual = buffer.map_or_else(|| self.expr(value).map(|expr| expr.dtype()), Some)?;
        let expected = self.dtype(expected)?;
        if actual == expected {
            return Some(BlockItem::Nothing);
        }
        let message = format!("the assertion is false: the type is \"{actual}\", not \"{expected}\"");
        self.error("dtype-assert", range, message, "an access has the lanes of the element times those of the index")
    }

    /// Reads an expression as a statement: a docstring, a call that acts as a statement, or a value to evaluate.
    fn expression_stmt(&mut self, expr: &'a ast::Expr) -> Option<BlockItem> {
        if is_docstring(expr) {
            return Some(BlockItem::Nothing);
        }
        if matches!(expr, ast::Expr::EllipsisLiteral(_)) {
            return self.error(
                "unfinished",
                expr.range(),
                "`...` is not a statement",
                "write the missing code, or `pass`",
            );
        }
        let ast::Expr::Call(call) = expr else {
            return self.expr(expr).map(|value| BlockItem::Stmt(Stmt::new(StmtKind::Evaluate(value))));
        };
        if self.calls_function(call) {
            return self.call_function(call).map(BlockItem::Stmt);
        }
        match self.callee(&call.func) {
            Some("tvm_storage_sync") => self.barrier(call).map(BlockItem::Stmt),
            Some("tvm_thread_allreduce") => self.allreduce(call).map(BlockItem::Stmt),
            Some("evaluate") => {
                let args = self.bind_args(call, "evaluate", &["value"], 1)?;
                if let ast::Expr::Call(inner) = args.get(0)? {
                    if self.calls_function(inner) {
                        return self.call_function(inner).map(BlockItem::Stmt);
                    }
                    match self.callee(&inner.func) {
                        Some("ret") => return self.ends_early("ret", inner.range()),
                        Some("tvm_storage_sync") => return self.barrier(inner).map(BlockItem::Stmt),
                        Some("tvm_thread_allreduce") => return self.allreduce(inner).map(BlockItem::Stmt),
                        _ => {}
                    }
                }
                if let ast::Expr::Call(inner) = args.get(0)?
                    && let Some(found) = self.positional_texture(inner).filter(|found| found.name == "texture2d_store")
                {
                    return self.texture_store_at(found).map(BlockItem::Stmt);
                }
                if let ast::Expr::Call(inner) = args.get(0)?
                    && self.callee(&inner.func) == Some("assume")
                {
                    return self.assumption(inner).map(BlockItem::Stmt);
                }
                self.expr(args.get(0)?).map(|value| BlockItem::Stmt(Stmt::new(StmtKind::Evaluate(value))))
            }
            Some("assume") => self.assumption(call).map(BlockItem::Stmt),
            Some("Assert") => {
                let args = self.bind_args(call, "Assert", &["condition", "message"], 2)?;
                self.assert(args.get(0)?, args.get(1))
            }
            // `buffer_store` and a nested `func_attr` are matched for their help; as values they would be unknown functions.
            Some("buffer_store") => self.error("unsupported", call.range(), "stores are assignments", "`A[i] = x`"),
            Some("func_attr") => {
                self.error("attribute", call.range(), "`T.func_attr` must be at the top of a function", "move it there")
            }
            Some(word @ ("ret" | "break_loop" | "continue_loop")) => {
                let word = word.to_owned();
                self.ends_early(&word, call.range())
            }
            Some("texture2d_store") => self.texture_store(call).map(BlockItem::Stmt),
            Some("call_intrin" | "call_pure_intrin")
                if let Some(found) = self.positional_texture(call).filter(|found| found.name == "texture2d_store") =>
            {
                self.texture_store_at(found).map(BlockItem::Stmt)
            }
            Some("preflattened_buffer") => self.preflattened(call),
            Some("Allocate") => self.allocate_declared(call).map(BlockItem::Scope),
            _ if self.opens_scope(call) => self.scope_from_call(None, call).map(BlockItem::Scope),
            _ => self.expr(expr).map(|value| BlockItem::Stmt(Stmt::new(StmtKind::Evaluate(value)))),
        }
    }
}

/// Creates an `if` statement.
fn branch(cond: Expr, then_body: Stmt, else_body: Option<Stmt>) -> Stmt {
    Stmt::new(StmtKind::If { cond, then_body: Arc::new(then_body), else_body: else_body.map(Arc::new) })
}

/// Returns the message of an assertion: a string or, as release 0.27 prints it, the kind of the error and the parts of the message,
/// `("RuntimeError", ["..."])`.
fn assert_message(message: &ast::Expr) -> Option<String> {
    match super::reader::sequence(message) {
        None => string(message).map(str::to_owned),
        Some([kind, parts]) => {
            string(kind)?;
            super::reader::sequence(parts)?.iter().map(string).collect()
        }
        Some(_) => None,
    }
}
