//! Recovery after an error: one construct that is not understood is reported once.
//!
//! A name whose declaration has an error is bound to [`Binding::Failed`], and no use of it is reported. The body of a scope that has an
//! error is read, for the errors of its own, as the body of a block: what a block says of itself is no error there.

use ruff_python_ast as ast;

use super::blocks::OpenBlock;
use super::reader::{Binding, Reader};

impl<'a> Reader<'a> {
    /// Gives a name whose declaration has an error a meaning that no use of it reports again. The error was reported
    /// already; without one the name stays unknown, so that no statement is dropped in silence.
    pub(super) fn bind_failed(&mut self, target: &ast::Expr) {
        match target {
            ast::Expr::Name(name) if !self.errors.is_empty() => self.bind(name.id.as_str(), Binding::Failed),
            ast::Expr::Tuple(ast::ExprTuple { elts, .. }) | ast::Expr::List(ast::ExprList { elts, .. }) => {
                for part in elts {
                    self.bind_failed(part);
                }
            }
            ast::Expr::Starred(starred) => self.bind_failed(&starred.value),
            _ => {}
        }
    }

    /// Gives a buffer whose allocation has an error that meaning, also behind the scope of the allocation: it is not reported once more
    /// as one without memory.
    pub(super) fn fail_unallocated(&mut self, buffer: &ast::Expr) {
        let ast::Expr::Name(name) = buffer else { return };
        let is_found = |(known, binding): &&mut (String, Binding)| {
            known == name.id.as_str() && matches!(binding, Binding::Unallocated(_))
        };
        if let Some((_, binding)) = self.names.iter_mut().rev().find(is_found) {
            *binding = Binding::Failed;
        }
    }

    /// Returns whether an expression is a name whose declaration has an error.
    pub(super) fn is_failed(&self, expr: &ast::Expr) -> bool {
        matches!(expr, ast::Expr::Name(name) if matches!(self.lookup(&name.id), Some(Binding::Failed)))
    }

    /// Reads the body of a scope that has an error, for its own errors.
    pub(super) fn block_of_failed(&mut self, body: &'a [ast::Stmt]) {
        let scope = self.names.len();
        self.blocks.push(OpenBlock::default());
        let rest: Vec<_> = body.iter().filter(|stmt| self.block_part(stmt).is_none()).collect();
        self.stmts(&rest);
        self.blocks.pop();
        self.names.truncate(scope);
    }
}
