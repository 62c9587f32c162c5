//! Modules, function headers and parameters.
//!
//! ```python
//! @T.prim_func
//! def f(A: T.Buffer((n, 64), "float32"), b: T.handle, n: T.int32):
//!     m = T.int32()
//!     B = T.match_buffer(b, (m, n), "float32")
//!     B[0, 0] = A[0, 0]
//! ```
//!
//! Here `n` is a scalar parameter and `m` a symbolic extent. A name in the shape of a parameter that is neither, such
//! as `k` in `A: T.Buffer((k,), "float32")` or `A: T.Buffer(("k",), "float32")`, is a symbolic extent too, of the type
//! `int32` unless the body declares it: `k = T.int64()`.

use ruff_python_ast as ast;
use ruff_text_size::Ranged;
use tilewright_ir::{Buffer, DataType, FuncAttrs, Module, PrimFunc, ScalarType, Var};

use super::buffer::{Declaration, PARAMS};
use super::reader::{Binding, Reader, sequence};
use crate::index_map::Symbols;
use crate::source::span;

/// The statements of a module that are accepted and dropped.
const MODULE_NOTES: [&str; 2] = ["module_attrs", "module_global_infos"];

/// Returns whether a function is decorated with `@T.prim_func` or `@T.prim_func(...)`.
pub(super) fn is_prim_func(def: &ast::StmtFunctionDef) -> bool {
    def.decorator_list.iter().any(|decorator| {
        let expr = match &decorator.expression {
            ast::Expr::Call(call) => &call.func,
            other => other,
        };
        match expr {
            ast::Expr::Attribute(attribute) => attribute.attr.as_str() == "prim_func",
            ast::Expr::Name(name) => name.id.as_str() == "prim_func",
            _ => false,
        }
    })
}

/// Returns whether a decorator is `@tvm.script.tir`, which marked modules and functions before release 0.8.
pub(super) fn marks_old_module(decorator: &ast::Decorator) -> bool {
    let ast::Expr::Attribute(attribute) = &decorator.expression else { return false };
    let of_script = match &*attribute.value {
        ast::Expr::Attribute(inner) => inner.attr.as_str() == "script",
        ast::Expr::Name(name) => name.id.as_str() == "script",
        _ => false,
    };
    of_script && attribute.attr.as_str() == "tir"
}

impl<'a> Reader<'a> {
    /// Reads the statements of a file or of an `ir_module` class, and adds its functions to `module`.
    pub(super) fn module(&mut self, body: &'a [ast::Stmt], module: &mut Module) {
        for stmt in body {
            match stmt {
                // It is read where it is called.
                ast::Stmt::FunctionDef(def) if is_prim_func(def) && self.functions.is_called(&def.name) => {}
                ast::Stmt::FunctionDef(def) if is_prim_func(def) => {
                    // Its errors are recorded; the functions after it are read to report theirs.
                    let Some(func) = self.func(def) else { continue };
                    if module.func(&func.name).is_some() {
                        let message = format!("a function `{}` exists already", func.name);
                        let _: Option<()> = self.error("duplicate", def.name.range(), message, "choose another name");
                    }
                    module.funcs.push(func);
                }
                ast::Stmt::ClassDef(class) => {
                    if let Some(decorator) = class.decorator_list.iter().find(|decorator| marks_old_module(decorator)) {
                        let message =
                            "a class of functions without `@T.prim_func` is the notation of releases before 0.8";
                        let help = "mark the class with `@I.ir_module` and each function in it with `@T.prim_func`";
                        let _: Option<()> = self.error("release", decorator.range(), message, help);
                        continue;
                    }
                    self.module(&class.body, module);
                }
                ast::Stmt::Import(import) => {
                    self.aliases
                        .extend(import.names.iter().filter_map(|name| name.asname.as_ref()).map(ToString::to_string));
                }
                ast::Stmt::ImportFrom(import) => {
                    for name in &import.names {
                        self.aliases.push(name.asname.as_ref().unwrap_or(&name.name).to_string());
                    }
                }
                ast::Stmt::Pass(_) => {}
                ast::Stmt::Expr(expr) if is_docstring(&expr.value) => {}
                ast::Stmt::Assign(assign) if file_symbol(assign).is_some() => {
                    self.file_symbols.extend(file_symbol(assign));
                }
                // What TVM keeps beside the functions says nothing of their meaning, and is dropped.
                _ if MODULE_NOTES.iter().any(|name| self.statement_call(stmt, name).is_some()) => {}
                other => {
                    let message = "only imports, `@T.prim_func` functions and `ir_module` classes are supported here";
                    let _: Option<()> =
                        self.error("unsupported", other.range(), message, "mark a function with `@T.prim_func`");
                }
            }
        }
    }

    /// Reads a function.
    ///
    /// The parts depend on each other, so they are read in this order: attributes that declarations refer to, scalar
    /// parameters, which shapes refer to, buffer parameters, the body with its `T.match_buffer` statements, and the
    /// other attributes. Returns `None` if one of them has an error.
    fn func(&mut self, def: &'a ast::StmtFunctionDef) -> Option<PrimFunc> {
        self.reading = &def.name;
        self.names.clear();
        (self.reducer, self.reducer_failed) = (None, false);
        self.hints.clear();
        self.pointer_scopes.clear();
        self.maps.clear();
        self.tiles.clear();
        self.separators.clear();
        self.forget_lets();
        self.changed = super::scalars::changed_names(def);
        self.scalars.clear();
        self.symbols = Symbols::default();
        let before = self.errors.len();
        let mut attrs = FuncAttrs::default();
        for stmt in &def.body {
            if let Some(call) = self.statement_call(stmt, "func_attr") {
                // Declarations need the layout maps. Other attributes may refer to buffers and are read after them.
                let _ = self.func_attr(call, None);
            }
        }
        let (mut params, mut buffer_map) = (Vec::new(), Vec::new());
        let signature = &def.parameters;
        if let Some(extra) = signature.vararg.as_ref().or(signature.kwarg.as_ref()) {
            let _: Option<()> =
                self.error("parameter", extra.range(), "`*` and `**` parameters are not supported", "write them out");
        }
        // The types of symbolic extents before the shapes that use them: `n = T.int64()` stands below the parameters.
        for stmt in &def.body {
            for (name, ty) in self.declared_symbols(stmt).unwrap_or_default() {
                self.symbols.declare(&name.id, ty);
            }
        }
        for name in &self.file_symbols {
            self.symbols.declare(name, DataType::scalar(ScalarType::Int64));
        }
        // All scalars before all buffers: a shape may refer to a scalar parameter further right.
        for param in signature.iter_non_variadic_params() {
            self.scalar_param(param);
        }
        for param in signature.iter_non_variadic_params() {
            if let Some((var, buffer)) = self.param(param) {
                buffer_map.extend(buffer.map(|buffer| (var.clone(), buffer)));
                params.push(var);
            } else if !self.errors.is_empty() {
                self.bind(param.parameter.name.as_str(), Binding::Failed);
            }
        }
        let (body, matched) = self.func_body(&def.body, &mut params, &mut attrs);
        buffer_map.extend(matched);
        buffer_map.sort_by_key(|(var, _)| params.iter().position(|param| param == var));
        // An entry that no declaration has used names no buffer. After another error that may be a consequence of it.
        for at in 0..self.maps.len() {
            if self.maps[at].resolved.is_none() && self.errors.len() == before {
                let message =
                    format!("`{}` in layout_transform_map is not a buffer of the function", self.maps[at].key);
                let help = "the key is the first buffer on its memory: a parameter or an allocated buffer";
                let _: Option<()> = self.error("unknown-name", self.maps[at].range, message, help);
            }
        }
        for at in 0..self.tiles.len() {
            if self.tiles[at].resolved.is_none() && self.errors.len() == before {
                let message = format!("`{}` in tile_layout is not a buffer of the function", self.tiles[at].key);
                let help = "the key is the first buffer on its memory: a parameter or an allocated buffer";
                let _: Option<()> = self.error("unknown-name", self.tiles[at].value.range(), message, help);
            }
        }
        let tiles = self.tiles.iter().filter_map(|tile| Some((&tile.resolved.as_ref()?.0, tile.value.range())));
        let maps = self.maps.iter().filter_map(|map| Some((&map.resolved.as_ref()?.0, map.entry)));
        attrs.layout_spans = maps.chain(tiles).map(|(data, range)| (data.clone(), span(range))).collect();
        attrs.tile_layout = self.tiles.drain(..).filter_map(|tile| tile.resolved).collect();
        attrs.layout_transform_map = self.maps.drain(..).filter_map(|map| map.resolved).collect();
        if self.errors.len() != before {
            return None;
        }
        let func = PrimFunc { name: def.name.to_string(), params, buffer_map, attrs, body };
        Some(super::assumptions::settled(func))
    }

    /// Binds a parameter whose annotation is an element type, such as `n: T.int32` or `a: T.handle`.
    fn scalar_param(&mut self, param: &'a ast::ParameterWithDefault) {
        if let Some(name) = param.parameter.annotation.as_deref().and_then(|annotation| self.callee_or_call(annotation))
            && let Ok(ty) = name.parse::<DataType>()
        {
            let var = Var::new(param.parameter.name.as_str(), ty);
            let binding = if ty == DataType::HANDLE { Binding::Handle(var) } else { Binding::Value(var.into()) };
            self.bind(param.parameter.name.as_str(), binding);
            // `T.handle("float32", "global")`: a pointer to elements in a scope.
            if let Some(ast::Expr::Call(call)) = param.parameter.annotation.as_deref()
                && let Some(scope) = call.arguments.args.get(1)
            {
                self.pointer_scopes.push((&param.parameter.name, scope));
            }
        }
    }

    /// Returns the name of an element type, also of `T.handle("float32")`.
    fn callee_or_call<'e>(&self, annotation: &'e ast::Expr) -> Option<&'e str> {
        match annotation {
            ast::Expr::Call(call) => self.callee(&call.func).filter(|name| *name == "handle"),
            other => self.callee(other),
        }
    }

    /// Reads a parameter that is a buffer, `A: T.Buffer((64,), "float32")` or, as in RFC 63,
    /// `A: T.Buffer[(64,), "float32"]`. Returns a new handle for it. Scalars and handles were bound by
    /// [`Reader::scalar_param`] and are returned as they are.
    fn param(&mut self, param: &'a ast::ParameterWithDefault) -> Option<(Var, Option<Buffer>)> {
        let name = param.parameter.name.as_str();
        if let Some(default) = &param.default {
            return self.error("parameter", default.range(), "parameters have no default values", "leave it out");
        }
        if let Some(Binding::Value(tilewright_ir::Expr::Var(var)) | Binding::Handle(var)) = self.lookup(name) {
            return Some((var.clone(), None));
        }
        let help = "such as `A: T.Buffer((64,), \"float32\")`, `n: T.int32` or `a: T.handle`";
        let Some(annotation) = param.parameter.annotation.as_deref() else {
            return self.error("parameter", param.range(), format!("`{name}` has no type"), help);
        };
        let declaration = match annotation {
            ast::Expr::Call(call) if self.callee(&call.func) == Some("Buffer") => {
                let args = self.bind_args(call, "Buffer", PARAMS, 1)?;
                Declaration::new(&args, 0)
            }
            ast::Expr::Subscript(subscript) if self.callee(&subscript.value) == Some("Buffer") => {
                let parts = sequence(&subscript.slice);
                // Python parses `[(4, 5)]` as `[4, 5]`, so two items are always a shape and a type.
                let (shape, dtype) = match parts {
                    Some([shape, dtype]) => (shape, Some(dtype)),
                    _ => (&*subscript.slice, None),
                };
                Declaration { shape: Some(shape), dtype, ..Declaration::default() }
            }
            other => return self.error("parameter", other.range(), format!("`{name}` has no type known here"), help),
        };
        let buffer = self.declare(name, &declaration, param.range(), true)?;
        self.bind(name, Binding::Buffer(buffer.clone()));
        Some((Var::new(name, DataType::HANDLE), Some(buffer)))
    }

    /// Returns the call if the statement consists of a call of `T.name(...)`.
    pub(super) fn statement_call(&self, stmt: &'a ast::Stmt, name: &str) -> Option<&'a ast::ExprCall> {
        if let ast::Stmt::Expr(expr) = stmt
            && let ast::Expr::Call(call) = &*expr.value
        {
            return Some(call).filter(|call| self.callee(&call.func) == Some(name));
        }
        None
    }
}

/// Returns whether an expression is a string literal, which has no effect as a statement.
pub(super) fn is_docstring(expr: &ast::Expr) -> bool {
    matches!(expr, ast::Expr::StringLiteral(_))
}

/// Returns the name of a symbolic extent that a file declares beside its functions: `n = TypeVar("n")`, an `int64`.
fn file_symbol(assign: &ast::StmtAssign) -> Option<&str> {
    let ([ast::Expr::Name(name)], ast::Expr::Call(call)) = (&assign.targets[..], &*assign.value) else { return None };
    let is_type_var = matches!(&*call.func, ast::Expr::Name(callee) if callee.id.as_str() == "TypeVar");
    is_type_var.then_some(name.id.as_str())
}
