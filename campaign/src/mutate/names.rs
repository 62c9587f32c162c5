//! Programs that are hard to print: nested variables with equal names, constants that need all
//! their digits.

use std::sync::Arc;

use std::convert::Infallible;

use tilewright_ir::visit::{Rewrite, Substitution};
use tilewright_ir::{BinaryOp, Expr, For, PrimFunc, ScalarType, SharedExpr, Stmt, StmtKind, UnaryOp, Var};

/// The program with every loop variable named `i`, every float divided by three, and positive
/// constants negated where they are added, subtracted or multiplied.
pub fn with_equal_names(func: &PrimFunc) -> PrimFunc {
    let Ok(body) = EqualNames.stmt(&func.body);
    PrimFunc { body, ..func.clone() }
}

struct EqualNames;

impl Rewrite for EqualNames {
    type Error = Infallible;

    fn expr(&mut self, expr: &Expr) -> Result<Expr, Infallible> {
        match expr {
            Expr::Float { value, ty } => Ok(Expr::float_of(value / 3.0, *ty)),
            Expr::Binary(op @ (BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul), a, b)
                if matches!(**b, Expr::Int { value: 1.., ty: ScalarType::Int32 }) =>
            {
                let minus = Expr::Unary(UnaryOp::Neg, b.clone());
                Ok(Expr::Binary(*op, SharedExpr::new(self.expr(a)?), SharedExpr::new(minus)))
            }
            _ => self.expr_children(expr),
        }
    }

    fn stmt(&mut self, stmt: &Stmt) -> Result<Stmt, Infallible> {
        let StmtKind::For(inner) = &stmt.kind else { return self.stmt_children(stmt) };
        let var = Var::new("i", inner.var.dtype());
        let body = Substitution::new([&inner.var], [Expr::from(&var)]).apply_stmt(&inner.body);
        let body = self.stmt(&body)?;
        let inner = For { var, body, ..(**inner).clone() };
        Ok(Stmt { kind: StmtKind::For(Arc::new(inner)), span: stmt.span })
    }
}
