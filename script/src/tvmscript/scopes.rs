//! Calls that open a scope for the rest of their block, such as `A = T.alloc_buffer(...)`, or for the body of a
//! `with` statement, such as `with T.launch_thread(...) as bx:`.
//!
//! | call | effect |
//! |---|---|
//! | `T.alloc_buffer(...)`, `T.decl_buffer(...)` without `data` | allocates a buffer |
//! | `T.decl_buffer(..., data=A.data)`, `T.buffer_decl(..., data=A.data)` | declares a view of existing memory |
//! | `T.Buffer(..., data=A.data)`, `A.view(4, 4)` | the same, as newer releases print it |
//! | `T.alloc_local(...)`, `T.alloc_shared(...)` | allocates a buffer in that scope |
//! | `T.buffer_decl(...)` or `T.Buffer(...)` without `data` | declares a buffer whose memory an `Allocate` provides (RFC 63) |
//! | `T.allocate(...)` | allocates memory; its name is a pointer, for `data=` |
//! | `T.allocate_const(...)` | allocates memory and writes its elements, see `constants` |
//! | `T.realize(A[0:16], "local")` | allocates a buffer that `T.buffer_decl` declared without memory |
//! | `T.texture2d_alloca(...)` | allocates a texel buffer |
//! | `T.LetStmt(x)`, `T.let(...)` | binds a value to a name |
//! | `T.launch_thread("blockIdx.x", n)` | runs the body for each index of a launch axis, see `launches` |
//! | `T.attr(node, "key", value)`, `T.attr({"key": value})` | attaches hints, see `hints` |
//! | `T.Assert(condition, "message")` | asserts a condition |
//!
//! Blocks of S-TIR (`T.sblock`) are statements of their own: [`super::blocks`].

use std::sync::Arc;

use ruff_python_ast as ast;
use ruff_text_size::Ranged;
use tilewright_ir::{Buffer, Scope, Stmt, StmtKind};

use super::buffer::Declaration;
use super::reader::{Binding, Reader};
use super::stmt::BlockItem;
use crate::source::nearest;

/// Wraps the statements inside a scope in the statement that opens the scope.
pub(super) type ScopeWrapper = Box<dyn FnOnce(Stmt) -> Stmt>;

/// The functions that open a scope.
const SCOPES: [&str; 21] = [
    "alloc_buffer",
    "sblock_alloc_buffer",
    "alloc_local",
    "alloc_shared",
    "Buffer",
    "texture2d_alloca",
    "decl_buffer",
    "buffer_decl",
    "allocate",
    "allocate_const",
    "let",
    "Let",
    "LetStmt",
    "attr",
    "launch_thread",
    "block",
    "sblock",
    "init",
    "match_buffer",
    "realize",
    "Assert",
];

impl<'a> Reader<'a> {
    /// Returns whether a call opens a scope.
    pub(super) fn opens_scope(&self, call: &ast::ExprCall) -> bool {
        let is_let = |name: &str| matches!(name, "let" | "Let") && Self::is_let_value(call);
        self.callee(&call.func).is_some_and(|name| SCOPES.contains(&name) && !is_let(name))
    }

    /// Reads a call that opens a scope, and binds the name on its left-hand side, `target`.
    pub(super) fn scope_from_call(
        &mut self,
        target: Option<&'a ast::Expr>,
        call: &'a ast::ExprCall,
    ) -> Option<ScopeWrapper> {
        let name = match target {
            Some(ast::Expr::Name(name)) => name.id.as_str(),
            _ => "buffer",
        };
        let callee = self.callee(&call.func).unwrap_or("?").to_owned();
        match callee.as_str() {
            "alloc_buffer" | "sblock_alloc_buffer" => {
                let declaration = self.declaration(call, &callee)?;
                if let Some(data) = declaration.data {
                    return self.error(
                        "data",
                        data.range(),
                        "`T.alloc_buffer` allocates memory of its own",
                        "use `T.decl_buffer`",
                    );
                }
                let buffer = self.declare(name, &declaration, call.range(), false)?;
                self.bind(name, Binding::Buffer(buffer.clone()));
                Some(allocate(buffer))
            }
            "alloc_local" | "alloc_shared" => {
                let declaration = self.declaration(call, &callee)?;
                if let Some(given) = declaration.scope.or(declaration.data) {
                    let message = format!("`T.{callee}` allocates memory in a scope of its own");
                    return self.error("argument", given.range(), message, "leave out `scope` and `data`");
                }
                let buffer = self.declare(name, &declaration, call.range(), false)?;
                let scope = if callee == "alloc_local" { Scope::Local } else { Scope::Shared };
                let buffer = buffer.with(|info| info.scope = scope);
                self.bind(name, Binding::Buffer(buffer.clone()));
                Some(allocate(buffer))
            }
            "texture2d_alloca" => {
                let buffer = self.texture_alloca(call, name)?;
                self.bind(name, Binding::Buffer(buffer.clone()));
                Some(allocate(buffer))
            }
            "decl_buffer" | "buffer_decl" | "Buffer" => {
                let declaration = self.declaration(call, &callee)?;
                let aliases = declaration.data.is_some();
                let buffer = self.declare(name, &declaration, call.range(), false)?;
                if aliases {
                    self.bind(name, Binding::Buffer(buffer.clone()));
                    return Some(declare(buffer));
                }
                if callee == "decl_buffer" {
                    self.bind(name, Binding::Buffer(buffer.clone()));
                    return Some(allocate(buffer));
                }
                // Nothing to wrap yet: the `Allocate` that provides the memory opens the scope.
                self.bind(name, Binding::Unallocated(buffer));
                Some(Box::new(|body| body))
            }
            "allocate" => {
                let params = ["shape", "dtype", "scope", "condition", "annotations"];
                let args = self.bind_args(call, "allocate", &params, 2)?;
                if let Some(condition) = args.get(3)
                    && !matches!(condition, ast::Expr::BooleanLiteral(literal) if literal.value)
                {
                    return self.error(
                        "unsupported",
                        condition.range(),
                        "conditional allocation is not supported here",
                        "use `if`",
                    );
                }
                let declaration = Declaration {
                    shape: args.get(0),
                    dtype: args.get(1),
                    scope: args.get(2),
                    ..Declaration::default()
                };
                let buffer = self.declare(name, &declaration, call.range(), false)?;
                self.bind(name, Binding::Pointer(buffer.clone()));
                Some(allocate(buffer))
            }
            "allocate_const" => self.allocate_const(name, call),
            "let" | "Let" | "LetStmt" => self.let_scope(target, call, &callee),
            "attr" => self.attr_scope(call),
            "launch_thread" => self.launch_thread(target, call),
            "realize" => {
                let read = self.realize(call);
                if let (None, Some(ast::Expr::Subscript(region))) = (&read, call.arguments.args.first()) {
                    self.fail_unallocated(&region.value);
                }
                read
            }
            "Assert" => {
                let args = self.bind_args(call, "Assert", &["condition", "message"], 2)?;
                let Some(BlockItem::Stmt(assert)) = self.assert(args.get(0)?, args.get(1)) else { return None };
                Some(Box::new(move |body| Stmt::seq(vec![assert, body])))
            }
            "block" | "sblock" | "init" => self.error(
                "block",
                call.range(),
                "a block has statements of its own",
                "write `with T.sblock(\"C\"):` and the statements below it, one block for each `with`",
            ),
            other => {
                let help = nearest(other, SCOPES).map_or_else(
                    || "such as `with T.allocate(...) as p:`".to_owned(),
                    |near| format!("did you mean `T.{near}`?"),
                );
                self.error("unsupported", call.range(), "this does not open a scope here", help)
            }
        }
    }

    /// Reads a binding in one of TVM's three forms: `with T.let(x, v):`, `x = T.let(v)`, `with T.LetStmt(v) as x:`.
    fn let_scope(
        &mut self,
        target: Option<&'a ast::Expr>,
        call: &'a ast::ExprCall,
        callee: &str,
    ) -> Option<ScopeWrapper> {
        let (target, first) = (target.or_else(|| Self::bound_by(call)), call.arguments.args.first());
        #[expect(clippy::manual_let_else, reason = "the two forms read better as arms")]
        let (name, value) = match (target, first, call.arguments.args.get(1)) {
            (Some(ast::Expr::Name(name)), Some(value), None) | (None, Some(ast::Expr::Name(name)), Some(value)) => {
                (name, value)
            }
            _ => {
                let help = format!("`with T.{callee}(value) as x:` or `x = T.{callee}(value)`");
                return self.error("let", call.range(), "a binding has a name and a value", help);
            }
        };
        let Some(value) = self.expr(value) else {
            self.bind(name.id.as_str(), Binding::Failed);
            return None;
        };
        Some(self.bind_let(&name.id, value))
    }

    /// Reads `T.realize(A[0:16], "local")`, with which TVM printed the memory of a buffer until release 0.8. The region is the whole
    /// buffer: TVM subtracted its start from every index later.
    fn realize(&mut self, call: &'a ast::ExprCall) -> Option<ScopeWrapper> {
        let args = self.bind_args(call, "realize", &["buffer_slice", "scope", "condition"], 1)?;
        let region = args.get(0)?;
        let read = self.region(region)?;
        let scope = args.get(1).map_or(Some(Scope::Global), |scope| self.scope(scope))?;
        let is_unallocated =
            |binding: &Binding| matches!(binding, Binding::Unallocated(known) if *known == read.buffer);
        let at = self.names.iter().rposition(|(_, binding)| is_unallocated(binding));
        let is_whole = read.ranges.iter().zip(&read.buffer.shape).all(|((start, extent), whole)| {
            start.as_const_int() == Some(0)
                && (extent == whole || extent.as_const_int().is_some() && extent.as_const_int() == whole.as_const_int())
        });
        let (Some(at), true) = (at, is_whole) else {
            let help = "realize all of a buffer that was declared without memory, `A = T.buffer_decl((16,))` and \
                `T.realize(A[0:16], \"local\")`, or use `T.alloc_buffer`";
            return self.error("unsupported", call.range(), "this realizes no whole buffer", help);
        };
        let buffer = read.buffer.with(|info| info.scope = scope);
        self.names[at].1 = Binding::Buffer(buffer.clone());
        Some(allocate(buffer))
    }

    /// Reads RFC 63's `Allocate(A.data, [16], "float32")`, which provides the memory of a buffer declared without any.
    ///
    /// The language allocates buffers, not bare memory: the result allocates a buffer `A_data` of the stated shape and
    /// declares `A` as a view of it.
    pub(super) fn allocate_declared(&mut self, call: &'a ast::ExprCall) -> Option<ScopeWrapper> {
        let args = self.bind_args(call, "Allocate", &["data", "shape", "dtype", "scope"], 3)?;
        let data = self.data(args.get(0)?)?;
        let waiting = |binding: &Binding| matches!(binding, Binding::Unallocated(buffer) if buffer.data == data);
        let found = self.names.iter().position(|(_, binding)| waiting(binding));
        let Some(at) = found else {
            let help = "`A = T.buffer_decl(...)` without `data` is allocated once";
            return self.error("data", call.range(), "this memory is allocated already", help);
        };
        let Binding::Unallocated(declared) = self.names[at].1.clone() else { return None };
        self.names[at].1 = Binding::Buffer(declared.clone());
        let declaration =
            Declaration { shape: args.get(1), dtype: args.get(2), scope: args.get(3), ..Declaration::default() };
        let name = format!("{}_data", declared.name);
        let memory = self.declare(&name, &declaration, call.range(), false)?;
        let memory = memory.with(|info| info.data = data);
        Some(Box::new(move |body| allocate(memory)(declare(declared)(body))))
    }
}

/// Returns the scope of an allocation.
pub(super) fn allocate(buffer: Buffer) -> ScopeWrapper {
    Box::new(move |body| Stmt::new(StmtKind::Allocate { buffer, body: Arc::new(body) }))
}

/// Returns the scope of a declared view.
pub(super) fn declare(buffer: Buffer) -> ScopeWrapper {
    Box::new(move |body| Stmt::new(StmtKind::DeclBuffer { buffer, body: Arc::new(body) }))
}
