//! Device functions alone.
//!
//! ```python
//! @T.prim_func
//! def main_kernel(A_ptr: T.handle("float32", "global"), n: T.int32):
//!     A = T.decl_buffer((n, 16), "float32", data=A_ptr)
//!     A_1 = T.decl_buffer((n * 16,), "float32", data=A_ptr)
//! ```
//!
//! TVM's SplitHostDevice passes memory by pointers, and the device function declares the buffers in it. A device function beside its
//! caller is read where it is called, see `device`. Alone, its first declaration in the memory of a parameter, at the start of the body,
//! is the buffer of that parameter, as if it were `A = T.match_buffer(A_ptr, (n, 16), "float32")`. The others are views of it.

use ruff_python_ast as ast;
use ruff_text_size::Ranged;
use tilewright_ir::{Buffer, Var};

use super::buffer::Declaration;
use super::reader::{Binding, Reader};

impl<'a> Reader<'a> {
    /// Reads the declaration of the buffer of a parameter, and returns the parameter and the buffer, without a buffer if the declaration has
    /// an error. `None` for any other statement.
    pub(super) fn buffer_of_pointer(&mut self, stmt: &'a ast::Stmt) -> Option<(Var, Option<Buffer>)> {
        let ast::Stmt::Assign(assign) = stmt else { return None };
        let ([ast::Expr::Name(name)], ast::Expr::Call(call)) = (&assign.targets[..], &*assign.value) else {
            return None;
        };
        let callee = self.callee(&call.func).filter(|name| ["decl_buffer", "buffer_decl", "Buffer"].contains(name))?;
        let Some(ast::Expr::Name(param)) = call.arguments.find_keyword("data").map(|keyword| &keyword.value) else {
            return None;
        };
        let Some(Binding::Handle(handle)) = self.lookup(&param.id).cloned() else { return None };
        let read =
            self.declaration(call, callee).and_then(|declaration| self.in_pointer(name, param, &declaration, stmt));
        if read.is_none() {
            self.bind_failed(&assign.targets[0]);
        }
        Some((handle, read))
    }

    /// Reads the declaration of a buffer in the memory of a parameter, and binds its name and the pointer.
    fn in_pointer(
        &mut self,
        name: &'a ast::ExprName,
        param: &'a ast::ExprName,
        declaration: &Declaration<'a>,
        stmt: &'a ast::Stmt,
    ) -> Option<Buffer> {
        let pointer_scope = self.pointer_scopes.iter().find(|(known, _)| *known == param.id.as_str());
        let pointer_scope = pointer_scope.map(|(_, scope)| *scope);
        let given = Declaration { data: None, scope: declaration.scope.or(pointer_scope), ..*declaration };
        let buffer = self.declare(&name.id, &given, stmt.range(), false)?;
        if let Some(scope) = pointer_scope
            && self.scope(scope)? != buffer.scope
        {
            let message = format!("`{}` points to memory of another scope than {}", param.id, buffer.scope);
            return self.error("data", stmt.range(), message, "the scope of a buffer is that of its memory");
        }
        self.bind(name.id.as_str(), Binding::Buffer(buffer.clone()));
        self.bind(param.id.as_str(), Binding::Pointer(buffer.clone()));
        Some(buffer)
    }
}
