//! Programs that are hard to print: nested variables that all have one name, constants that need every digit.

use std::convert::Infallible;

use tilewright_ir::visit::{Rewrite, Substitution};
use tilewright_ir::{Expr, For, PrimFunc, Stmt, StmtKind, Var};

/// The program with every loop variable named `i`, and with a third of every float.
pub fn alike(func: &PrimFunc) -> PrimFunc {
    let Ok(body) = Alike.stmt(&func.body);
    PrimFunc { body, ..func.clone() }
}

struct Alike;

impl Rewrite for Alike {
    type Error = Infallible;

    fn expr(&mut self, expr: &Expr) -> Result<Expr, Infallible> {
        match expr {
            Expr::Float { value, ty } => Ok(Expr::float_of(value / 3.0, *ty)),
            _ => self.expr_children(expr),
        }
    }

    fn stmt(&mut self, stmt: &Stmt) -> Result<Stmt, Infallible> {
        let StmtKind::For(inner) = &stmt.kind else { return self.stmt_children(stmt) };
        let var = Var::new("i", inner.var.dtype());
        let body = Substitution::new([&inner.var], [Expr::from(&var)]).apply_stmt(&inner.body);
        let body = self.stmt(&body)?;
        let inner = For { var, body, ..(**inner).clone() };
        Ok(Stmt { kind: StmtKind::For(Box::new(inner)), span: stmt.span })
    }
}
