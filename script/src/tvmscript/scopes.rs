//! Calls that open a scope for the rest of their block, such as `A = T.alloc_buffer(...)` or `with T.launch_thread(...)`.

use std::sync::Arc;

use ruff_python_ast as ast;
use ruff_text_size::Ranged;
use tilewright_ir::{AttrValue, Buffer, Expr, ForKind, Stmt, StmtKind, Var};

use super::buffer::Declaration;
use super::reader::{Binding, Reader, string};
use super::stmt::Part;

/// Puts a body into the scope that a statement opens.
pub(super) type Wrap = Box<dyn FnOnce(Stmt) -> Stmt>;

impl<'a> Reader<'a> {
    pub(super) fn opens_scope(&self, call: &ast::ExprCall) -> bool {
        let scopes = [
            "alloc_buffer",
            "texture2d_alloca",
            "decl_buffer",
            "buffer_decl",
            "allocate",
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
        self.callee(&call.func).is_some_and(|name| scopes.contains(&name))
    }

    /// A call that opens a scope, and the name that it gives.
    pub(super) fn scope_of(&mut self, target: Option<&'a ast::Expr>, call: &'a ast::ExprCall) -> Option<Wrap> {
        let name = match target {
            Some(ast::Expr::Name(name)) => name.id.as_str(),
            _ => "buffer",
        };
        let callee = self.callee(&call.func).unwrap_or("?").to_owned();
        match callee.as_str() {
            "alloc_buffer" => {
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
            "texture2d_alloca" => {
                let buffer = self.texture_alloca(call, name)?;
                self.bind(name, Binding::Buffer(buffer.clone()));
                Some(allocate(buffer))
            }
            "decl_buffer" | "buffer_decl" => {
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
                self.bind(name, Binding::Unallocated(buffer));
                Some(Box::new(|body| body))
            }
            "allocate" => {
                let params = ["shape", "dtype", "scope", "condition", "annotations"];
                let args = self.args(call, "allocate", &params, 2)?;
                if let Some(condition) = args.get(3)
                    && !matches!(condition, ast::Expr::BooleanLiteral(literal) if literal.value)
                {
                    return self.error(
                        "unsupported",
                        condition.range(),
                        "conditional allocation has no meaning here",
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
            "let" | "Let" | "LetStmt" => self.let_scope(target, call, &callee),
            "attr" => {
                let args = self.args(call, "attr", &["node", "attr_key", "value"], 3)?;
                let (node, value) = (self.attr_value(args.get(0)?), self.attr_value(args.get(2)?));
                let Some(key) = args.get(1).and_then(string).map(str::to_owned) else {
                    return self.error("attribute", call.range(), "the key of an attribute is a string", "\"key\"");
                };
                Some(attr(node?, key, value?))
            }
            "launch_thread" => self.launch_thread(target, call),
            "Assert" => {
                let args = self.args(call, "Assert", &["condition", "message"], 2)?;
                let Some(Part::Stmt(assert)) = self.assert(args.get(0)?, args.get(1)) else { return None };
                Some(Box::new(move |body| Stmt::seq(vec![assert, body])))
            }
            "block" | "sblock" | "init" => self.error(
                "unsupported",
                call.range(),
                "blocks of S-TIR are not read yet",
                "write the loops and stores without `T.block`, the axes as loop variables, `T.init` as an `if`",
            ),
            _ => self.error(
                "unsupported",
                call.range(),
                "this opens no scope here",
                "such as `with T.allocate(...) as p:`",
            ),
        }
    }

    /// `with T.let(x, v):`, `x = T.let(v)`, `with T.LetStmt(v) as x:`.
    fn let_scope(&mut self, target: Option<&'a ast::Expr>, call: &'a ast::ExprCall, callee: &str) -> Option<Wrap> {
        let first = call.arguments.args.first();
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
        let value = self.expr(value)?;
        Some(self.bind_let(&name.id, value))
    }

    /// `with T.launch_thread("blockIdx.x", 4) as bx:`.
    fn launch_thread(&mut self, target: Option<&'a ast::Expr>, call: &'a ast::ExprCall) -> Option<Wrap> {
        let args = self.args(call, "launch_thread", &["thread", "extent"], 2)?;
        let thread = args.get(0)?;
        let (tag, given) = match thread {
            ast::Expr::Name(name) => match self.lookup(&name.id) {
                Some(Binding::Thread(tag)) => (Some(*tag), Some(name.id.as_str())),
                _ => (None, None),
            },
            _ => (self.thread_tag(thread), None),
        };
        let name = match target {
            Some(ast::Expr::Name(name)) => Some(name.id.as_str()),
            _ => given,
        };
        let extent = self.expr(args.get(1)?)?;
        let (Some(tag), Some(name)) = (tag, name) else {
            let help = "`with T.launch_thread(\"blockIdx.x\", 4) as bx:`";
            return self.error("thread", call.range(), "a launch has an axis and a variable", help);
        };
        let var = Var::new(name, extent.dtype());
        self.bind(name, Binding::Value(Expr::from(&var)));
        Some(Box::new(move |body| Stmt::for_loop(&var, extent, ForKind::ThreadBinding(tag), body)))
    }

    /// RFC 63's `Allocate(A.data, [16], "float32")` for a buffer declared without memory.
    pub(super) fn allocate_declared(&mut self, call: &'a ast::ExprCall) -> Option<Wrap> {
        let args = self.args(call, "Allocate", &["data", "shape", "dtype", "scope"], 3)?;
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

fn allocate(buffer: Buffer) -> Wrap {
    Box::new(move |body| Stmt::new(StmtKind::Allocate { buffer, body: Arc::new(body) }))
}

fn declare(buffer: Buffer) -> Wrap {
    Box::new(move |body| Stmt::new(StmtKind::DeclBuffer { buffer, body: Arc::new(body) }))
}

fn attr(node: AttrValue, key: String, value: AttrValue) -> Wrap {
    Box::new(move |body| Stmt::new(StmtKind::Attr { node, key, value, body: Arc::new(body) }))
}
