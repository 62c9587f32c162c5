//! Calls of functions of the same module.
//!
//! ```python
//! T.call_packed("main_kernel", A.data, x)                                  # and call_cpacked, tvm_call_packed
//! T.call_ffi_kernel("main_kernel", A.data, x, 10, launch_params=["blockIdx.x"], ret_ty="int32")
//! Module.main_kernel(A.data, x)
//! main_kernel(A.data, x)
//!
//! @T.prim_func
//! def main_kernel(A_ptr: T.handle("float32", "global"), x: T.int32):
//!     A = T.decl_buffer((10, 24), "float32", data=A_ptr)
//! ```
//!
//! A call means what the function does, with its parameters replaced by the arguments: memory is the memory that is passed, and a scalar is
//! the value of the argument when the call is made. So the reader reads the body of the function at the place of each call. A buffer that the function
//! declares is the one of its caller if both say the same of the memory, and otherwise a view of it. If the function runs threads, it becomes a
//! device function of its caller ([`tilewright_ir::device`]). A function that is called is no program of its own.
//!
//! TVM passes the numbers of threads behind the arguments. The loops over threads of the function say the same, or the call is an error.

use std::sync::Arc;

use ruff_python_ast as ast;
use ruff_python_ast::visitor::{Visitor, walk_expr};
use ruff_text_size::{Ranged, TextRange};
use tilewright_ir::{Buffer, DataType, Expr, ForKind, Stmt, StmtKind, ThreadTag, Var};

use super::buffer::{Declaration, PARAMS};
use super::func::{is_docstring, is_prim_func};
use super::reader::{Binding, Reader, sequence, string};
use super::scopes::{ScopeWrapper, declare};
use crate::source::span;

/// The functions that call another one by its name in quotes.
const CALLS_BY_NAME: [&str; 4] = ["call_packed", "call_cpacked", "tvm_call_packed", "call_ffi_kernel"];

/// Attributes of a called function that would change what it does.
const REQUESTS: [&str; 7] =
    ["layout_transform_map", "tile_layout", "schedule", "axis_separators", "texture_limits", "extents", "passes"];

/// The functions of a file.
#[derive(Default)]
pub(super) struct Functions<'a> {
    /// Those marked `@T.prim_func`.
    defs: Vec<&'a ast::StmtFunctionDef>,
    /// The names of the classes around them.
    classes: Vec<&'a str>,
    /// Who calls whom.
    calls: Vec<(&'a str, &'a str)>,
    /// The functions whose bodies are being read at the place of a call, outermost first.
    open: Vec<&'a str>,
}

impl<'a> Functions<'a> {
    /// Collects the functions of a file.
    pub(super) fn of(body: &'a [ast::Stmt]) -> Self {
        let mut found = Self::default();
        found.collect(body);
        let calls = |def: &&'a ast::StmtFunctionDef| {
            let caller = def.name.as_str();
            found.called_by(def).into_iter().map(move |callee| (caller, callee)).collect::<Vec<_>>()
        };
        found.calls = found.defs.iter().flat_map(calls).collect();
        found
    }

    fn collect(&mut self, body: &'a [ast::Stmt]) {
        for stmt in body {
            match stmt {
                ast::Stmt::FunctionDef(def) if is_prim_func(def) => self.defs.push(def),
                ast::Stmt::ClassDef(class) => {
                    self.classes.push(&class.name);
                    self.collect(&class.body);
                }
                _ => {}
            }
        }
    }

    fn get(&self, name: &str) -> Option<&'a ast::StmtFunctionDef> {
        self.defs.iter().find(|def| def.name.as_str() == name).copied()
    }

    /// The name of the function that a call is of, and how many arguments of the call are in front of those for it.
    fn named<'e>(&self, call: &'e ast::ExprCall) -> Option<(&'e str, usize)> {
        match &*call.func {
            ast::Expr::Name(name) => self.get(&name.id).map(|_| (name.id.as_str(), 0)),
            ast::Expr::Attribute(attribute) => match &*attribute.value {
                ast::Expr::Name(class) if self.classes.contains(&class.id.as_str()) || class.id.as_str() == "cls" => {
                    Some((attribute.attr.as_str(), 0))
                }
                _ if CALLS_BY_NAME.contains(&attribute.attr.as_str()) => {
                    call.arguments.args.first().and_then(string).map(|name| (name, 1))
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// The names of the functions that a function calls.
    fn called_by(&self, def: &ast::StmtFunctionDef) -> Vec<&'a str> {
        let mut calls = Calls { functions: self, found: Vec::new() };
        def.body.iter().for_each(|stmt| calls.visit_stmt(stmt));
        calls.found
    }

    /// Returns whether a function is called by one that it does not call in turn. Of functions that call each other in a circle none is, so
    /// that they are read, and the circle is reported.
    pub(super) fn is_called(&self, name: &str) -> bool {
        let mut reached = vec![name];
        let mut at = 0;
        while let Some(from) = reached.get(at).copied() {
            at += 1;
            for (_, callee) in self.calls.iter().filter(|(caller, _)| *caller == from) {
                if !reached.contains(callee) {
                    reached.push(callee);
                }
            }
        }
        self.calls.iter().any(|(caller, callee)| *callee == name && !reached.contains(caller))
    }
}

/// Collects the functions of the file that are called.
struct Calls<'s, 'a> {
    functions: &'s Functions<'a>,
    found: Vec<&'a str>,
}

impl<'e> Visitor<'e> for Calls<'_, '_> {
    fn visit_expr(&mut self, expr: &'e ast::Expr) {
        if let ast::Expr::Call(call) = expr {
            let def = self.functions.named(call).and_then(|(name, _)| self.functions.get(name));
            self.found.extend(def.map(|def| def.name.as_str()));
        }
        walk_expr(self, expr);
    }
}

/// A parameter of a called function that is memory.
struct Lent<'a> {
    name: &'a str,
    data: Var,
    /// The buffers of the caller in that memory.
    buffers: Vec<Buffer>,
}

/// The arguments of a call.
#[derive(Default)]
struct Arguments<'a> {
    /// The names that the function knows at its start.
    names: Vec<(String, Binding)>,
    /// Its memory.
    lent: Vec<Lent<'a>>,
    /// The bindings of values around its body, outermost first.
    wraps: Vec<ScopeWrapper>,
    /// The variables that are passed.
    passed: Vec<Var>,
}

impl Arguments<'_> {
    /// Adds a scalar. A value that is neither a variable nor a constant is computed once, in front of the body.
    fn add_scalar(&mut self, name: &str, value: Expr) {
        let inside = match &value {
            Expr::Var(var) => {
                self.passed.push(var.clone());
                value
            }
            _ if value.as_const_int().is_some() => value,
            _ => {
                let var = Var::new(name, value.dtype());
                self.passed.push(var.clone());
                let inside = Expr::from(&var);
                self.wraps.push(Box::new(move |body| Stmt::new(StmtKind::Let { var, value, body: Arc::new(body) })));
                inside
            }
        };
        self.names.push((name.to_owned(), Binding::Value(inside)));
    }
}

impl<'a> Reader<'a> {
    /// Returns whether a call is one of a function of the file, or by name of a function that may be missing.
    pub(super) fn calls_function(&self, call: &ast::ExprCall) -> bool {
        let is_hidden = matches!(&*call.func, ast::Expr::Name(name) if self.lookup(&name.id).is_some());
        !is_hidden && self.functions.named(call).is_some()
    }

    /// Reads a call of a function of the file as what the function does.
    pub(super) fn call_function(&mut self, call: &'a ast::ExprCall) -> Option<Stmt> {
        let (name, n_skipped) = self.functions.named(call)?;
        let Some(def) = self.functions.get(name) else {
            let known: Vec<&str> = self.functions.defs.iter().map(|def| def.name.as_str()).collect();
            let help = format!("the functions are {}", known.join(", "));
            return self.error("unknown-function", call.range(), format!("there is no function `{name}` here"), help);
        };
        if self.functions.defs.iter().filter(|other| other.name.as_str() == name).count() > 1 {
            let help = "give each function of the file a name of its own";
            return self.error("name", call.range(), format!("several functions are called `{name}`"), help);
        }
        if self.functions.open.contains(&name) || self.reading == name {
            let help = "a call is read as what the function does, which never ends here";
            return self.error("recursion", call.range(), format!("`{name}` calls itself"), help);
        }
        let n_errors = self.errors.len();
        let args = &call.arguments.args[n_skipped..];
        let params: Vec<&'a ast::ParameterWithDefault> = def.parameters.iter_non_variadic_params().collect();
        if args.len() < params.len() {
            let message = format!("`{name}` has {} parameters, but {} arguments are given", params.len(), args.len());
            return self.error("arguments", call.range(), message, "pass memory as `A.data`, and each scalar");
        }
        let (own, launch) = args.split_at(params.len());
        let launch = launch.iter().map(|arg| self.expr(arg)).collect::<Option<Vec<_>>>()?;
        let Arguments { names, lent, wraps, passed } = self.arguments(&params, own)?;
        let outer_names = std::mem::replace(&mut self.names, names);
        let outer_changed = std::mem::replace(&mut self.changed, super::scalars::changed_names(def));
        let outer_blocks = std::mem::take(&mut self.blocks);
        self.functions.open.push(&def.name);
        let body = self.called_body(def, &lent);
        self.functions.open.pop();
        (self.names, self.changed, self.blocks) = (outer_names, outer_changed, outer_blocks);
        if self.errors.len() > n_errors {
            return None;
        }
        self.launch_fits(call, def, (&launch, &body))?;
        let body = if runs_threads(&body) { Stmt::device_call(name, passed, body) } else { body };
        let body = wraps.into_iter().rev().fold(body, |body, wrap| wrap(body));
        Some(body.at(Some(span(call.range()))))
    }

    /// Reads the arguments of a call.
    fn arguments(&mut self, params: &[&'a ast::ParameterWithDefault], args: &'a [ast::Expr]) -> Option<Arguments<'a>> {
        let mut found = Arguments::default();
        for (param, arg) in params.iter().zip(args) {
            let name = param.parameter.name.as_str();
            if let Some(ty) = self.scalar_type(param) {
                let value = self.value_in(arg, ty)?;
                found.add_scalar(name, value);
            } else {
                let data = self.memory_passed(arg)?;
                let in_memory = |binding: &Binding| match binding {
                    Binding::Buffer(buffer) | Binding::Pointer(buffer) if buffer.data == data => Some(buffer.clone()),
                    _ => None,
                };
                let buffers: Vec<Buffer> = self.names.iter().rev().filter_map(|(_, known)| in_memory(known)).collect();
                found.names.push((name.to_owned(), Binding::Pointer(buffers.first()?.clone())));
                found.passed.push(data.clone());
                found.lent.push(Lent { name, data, buffers });
            }
        }
        Some(found)
    }

    /// The type of a parameter that is a scalar; `None` for memory.
    fn scalar_type(&self, param: &ast::ParameterWithDefault) -> Option<DataType> {
        let ty: DataType = self.callee(param.parameter.annotation.as_deref()?)?.parse().ok()?;
        (ty != DataType::HANDLE).then_some(ty)
    }

    /// The memory of an argument: `A.data`, or a buffer as a whole.
    fn memory_passed(&mut self, arg: &'a ast::Expr) -> Option<Var> {
        if let ast::Expr::Name(name) = arg
            && let Some(Binding::Buffer(buffer)) = self.lookup(&name.id)
        {
            if buffer.elem_offset.as_const_int() == Some(0) && buffer.strides.is_none() {
                return Some(buffer.data.clone());
            }
            let message =
                format!("`{}` has strides or an offset, which the function that is called does not get", name.id);
            return self.error(
                "arguments",
                arg.range(),
                message,
                "pass its memory, and declare the view in the function",
            );
        }
        self.data(arg)
    }

    /// Reads the body of a called function, whose names are in scope.
    fn called_body(&mut self, def: &'a ast::StmtFunctionDef, lent: &[Lent<'a>]) -> Stmt {
        let mut scopes: Vec<ScopeWrapper> = Vec::new();
        for param in def.parameters.iter_non_variadic_params() {
            if let Some(ast::Expr::Call(call)) = param.parameter.annotation.as_deref()
                && self.callee(&call.func) == Some("Buffer")
                && let Some(args) = self.bind_args(call, "Buffer", PARAMS, 1)
            {
                let name = param.parameter.name.as_str();
                scopes.extend(self.lent_buffer(name, name, &Declaration::new(&args, 0), lent, param.range()));
            }
        }
        let mut rest = Vec::new();
        for (position, stmt) in def.body.iter().enumerate() {
            if let Some(call) = self.statement_call(stmt, "func_attr") {
                self.refuse_requests(def, call);
            } else if let Some((name, memory, declaration)) = self.lent_declaration(stmt)
                && rest.is_empty()
                && lent.iter().any(|lent| lent.name == memory)
            {
                scopes.extend(self.lent_buffer(name, memory, &declaration, lent, stmt.range()));
            } else if !(position == 0 && matches!(stmt, ast::Stmt::Expr(expr) if is_docstring(&expr.value))) {
                rest.push(stmt);
            }
        }
        let body = self.stmts(self.without_return(&rest));
        scopes.into_iter().rev().fold(body, |body, scope| scope(body))
    }

    /// A declaration of a buffer in the memory of a parameter: `A = T.decl_buffer(..., data=A_ptr)`, `A = T.match_buffer(a, ...)`. Returns the
    /// name of the buffer and of the parameter.
    fn lent_declaration(&mut self, stmt: &'a ast::Stmt) -> Option<(&'a str, &'a str, Declaration<'a>)> {
        let ast::Stmt::Assign(assign) = stmt else { return None };
        let ([ast::Expr::Name(name)], ast::Expr::Call(call)) = (&assign.targets[..], &*assign.value) else {
            return None;
        };
        let callee = self.callee(&call.func)?;
        let declaration = match callee {
            "decl_buffer" | "buffer_decl" | "Buffer" => self.declaration(call, callee)?,
            "match_buffer" => {
                let params: Vec<_> = std::iter::once("param").chain(PARAMS.iter().copied()).collect();
                let args = self.bind_args(call, "match_buffer", &params, 2)?;
                Declaration { data: args.get(0), ..Declaration::new(&args, 1) }
            }
            _ => return None,
        };
        match declaration.data {
            Some(ast::Expr::Name(memory)) => Some((&name.id, &memory.id, declaration)),
            _ => None,
        }
    }

    /// Declares a buffer in the memory of a parameter: the one of the caller if they are the same, or a view.
    fn lent_buffer(
        &mut self,
        name: &str,
        memory: &str,
        declaration: &Declaration<'a>,
        lent: &[Lent<'a>],
        range: TextRange,
    ) -> Option<ScopeWrapper> {
        let lent = lent.iter().find(|lent| lent.name == memory)?;
        let given = Declaration { data: None, ..*declaration };
        let declared = self.declare(name, &given, range, false)?;
        // A pointer says the scope of its memory, which a declaration need not repeat.
        let scope = lent.buffers.first()?.scope;
        let declared = declared.with(|info| (info.data, info.scope) = (lent.data.clone(), scope));
        if let Some(same) = lent.buffers.iter().find(|known| is_same(known, &declared)) {
            self.bind(name, Binding::Buffer(same.clone()));
            return None;
        }
        self.bind(name, Binding::Buffer(declared.clone()));
        Some(declare(declared))
    }

    /// Refuses attributes of a called function that would change what it does. What else it says is about the caller or the device.
    fn refuse_requests(&mut self, def: &ast::StmtFunctionDef, call: &'a ast::ExprCall) {
        let Some(ast::Expr::Dict(dict)) = call.arguments.args.first() else { return };
        for item in &dict.items {
            let Some(key) = &item.key else { continue };
            // TVM calls a function by this name in quotes.
            if string(key) == Some("global_symbol") && string(&item.value) != Some(def.name.as_str()) {
                let message = format!("`{}` is called, and has another name as its global_symbol", def.name);
                let _: Option<()> = self.error("attribute", item.value.range(), message, "give it one name");
            }
            if let Some(name) = string(key).filter(|name| REQUESTS.contains(name)) {
                let message = format!("`{name}` is an attribute of a function that is called");
                let _: Option<()> =
                    self.error("attribute", key.range(), message, "give it to the function that calls this one");
            }
        }
    }

    /// Checks that the numbers of threads behind the arguments of a call are those of the loops over threads of the function.
    fn launch_fits(
        &mut self,
        call: &'a ast::ExprCall,
        def: &'a ast::StmtFunctionDef,
        (launch, body): (&[Expr], &Stmt),
    ) -> Option<()> {
        if launch.is_empty() {
            return Some(());
        }
        let tags = self.launch_tags(call, def);
        if tags.len() != launch.len() {
            let help = "pass the parameters, and behind them the number of threads for each axis of `launch_params`";
            return self.error(
                "arguments",
                call.range(),
                format!("`{}` does not take so many arguments", def.name),
                help,
            );
        }
        for (tag, given) in tags.iter().zip(launch) {
            let extents = extents_over(body, tag);
            if extents.is_empty() || extents.iter().any(|extent| extent != given) {
                let own = extents.iter().map(ToString::to_string).collect::<Vec<_>>().join(" and ");
                let message = format!(
                    "the call launches {given} threads on {tag}, but `{}` has {} there",
                    def.name,
                    if own.is_empty() { "no loop" } else { &own }
                );
                return self.error("launch", call.range(), message, "both state the same number");
            }
        }
        Some(())
    }

    /// The axes of a launch, from the call or from the attributes of the function.
    fn launch_tags(&self, call: &'a ast::ExprCall, def: &'a ast::StmtFunctionDef) -> Vec<&'a str> {
        let of_call = call.arguments.find_keyword("launch_params").map(|keyword| &keyword.value);
        let of_def = || {
            let attrs = def.body.iter().find_map(|stmt| self.statement_call(stmt, "func_attr"))?;
            let Some(ast::Expr::Dict(dict)) = attrs.arguments.args.first() else { return None };
            dict.items.iter().find_map(|item| {
                let key = item.key.as_ref().and_then(string)?;
                key.ends_with("kernel_launch_params").then_some(&item.value)
            })
        };
        let tags = of_call.or_else(of_def).and_then(sequence).unwrap_or_default();
        tags.iter().filter_map(string).collect()
    }
}

/// Returns whether two buffers in the same memory are the same, whatever their names.
fn is_same(a: &Buffer, b: &Buffer) -> bool {
    (&a.shape, &a.strides, &a.elem_offset, a.dtype, a.scope, &a.axis_separators)
        == (&b.shape, &b.strides, &b.elem_offset, b.dtype, b.scope, &b.axis_separators)
}

/// Returns whether a statement has a loop that is bound to threads.
fn runs_threads(stmt: &Stmt) -> bool {
    let mut found = false;
    stmt.walk(&mut |part| {
        found |= matches!(&part.kind, StmtKind::For(inner) if matches!(inner.kind, ForKind::ThreadBinding(_)));
    });
    found
}

/// The extents of all loops over one axis of a launch.
fn extents_over(stmt: &Stmt, tag: &str) -> Vec<Expr> {
    let mut found = Vec::new();
    let Ok(tag) = tag.parse::<ThreadTag>() else { return found };
    stmt.walk(&mut |part| {
        if let StmtKind::For(inner) = &part.kind
            && inner.kind == ForKind::ThreadBinding(tag)
            && !found.contains(&inner.extent)
        {
            found.push(inner.extent.clone());
        }
    });
    found
}
