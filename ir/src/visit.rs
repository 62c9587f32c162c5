//! Rewriting of expressions and statements, and substitution of variables.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::Arc;

use crate::buffer::Buffer;
use crate::expr::Expr;
use crate::shared::{SharedExpr, SharedExprs};
use crate::stmt::{AttrValue, For, Stmt, StmtKind};
use crate::var::Var;

/// A rewrite of expressions and statements. The default methods rebuild the tree unchanged; an implementation overrides
/// the ones for the nodes it changes and calls the defaults for all others.
///
/// ```
/// use tilewright_ir::{Expr, Var, visit::Rewrite};
/// struct Increment;
/// impl Rewrite for Increment {
///     type Error = std::convert::Infallible;
///     fn expr(&mut self, expr: &Expr) -> Result<Expr, Self::Error> {
///         match expr {
///             Expr::Int { value, ty } => Ok(Expr::Int { value: value + 1, ty: *ty }),
///             _ => self.expr_children(expr),
///         }
///     }
/// }
/// let Ok(result) = Increment.expr(&(Expr::from(Var::index("i")) * Expr::int(3)));
/// assert_eq!(result.to_string(), "i * 4");
/// ```
pub trait Rewrite {
    /// The error of a rewrite; [`Infallible`] if it cannot fail.
    type Error;

    /// Rewrites an expression. The default rewrites its children.
    fn expr(&mut self, expr: &Expr) -> Result<Expr, Self::Error> {
        self.expr_children(expr)
    }

    /// Rewrites a statement. The default rewrites its children.
    fn stmt(&mut self, stmt: &Stmt) -> Result<Stmt, Self::Error> {
        self.stmt_children(stmt)
    }

    /// Rewrites a use or a declaration of a buffer. The default leaves it unchanged.
    fn buffer(&mut self, buffer: &Buffer) -> Result<Buffer, Self::Error> {
        Ok(buffer.clone())
    }

    /// Rewrites what an attribute is about, or its value. The default rewrites variables and expressions in it, and leaves what a block says.
    fn attr_value(&mut self, value: &AttrValue) -> Result<AttrValue, Self::Error> {
        self.attr_value_children(value)
    }

    /// Returns what an attribute is about with the variables and expressions in it rewritten.
    fn attr_value_children(&mut self, value: &AttrValue) -> Result<AttrValue, Self::Error> {
        let of = |expr: Expr| match expr {
            Expr::Var(var) => AttrValue::Var(var),
            Expr::Int { value, ty } => match i64::try_from(value) {
                Ok(value) if ty.is_integer() => AttrValue::Int(value),
                _ => AttrValue::Expr(Expr::Int { value, ty }),
            },
            other => AttrValue::Expr(other),
        };
        Ok(match value {
            AttrValue::Var(var) => of(self.expr(&Expr::from(var))?),
            AttrValue::Expr(expr) => of(self.expr(expr)?),
            AttrValue::List(list) => {
                AttrValue::List(list.iter().map(|item| self.attr_value(item)).collect::<Result<_, _>>()?)
            }
            AttrValue::Dict(entries) => {
                let entry = |(key, item): &(String, AttrValue)| Ok((key.clone(), self.attr_value(item)?));
                AttrValue::Dict(entries.iter().map(entry).collect::<Result<_, _>>()?)
            }
            AttrValue::Bool(_) | AttrValue::Int(_) | AttrValue::Float(_) | AttrValue::Str(_) | AttrValue::Block(_) => {
                value.clone()
            }
        })
    }

    /// Returns the expression with its children rewritten. Children that do not change stay shared with `expr`.
    fn expr_children(&mut self, expr: &Expr) -> Result<Expr, Self::Error> {
        Ok(match expr {
            Expr::Int { .. } | Expr::Float { .. } | Expr::Var(_) => expr.clone(),
            Expr::Binary(op, a, b) => Expr::Binary(*op, self.shared(a)?, self.shared(b)?),
            Expr::Unary(op, a) => Expr::Unary(*op, self.shared(a)?),
            Expr::Call(function, args) => Expr::Call(*function, self.shared_list(args)?),
            Expr::Select(c, a, b) => Expr::Select(self.shared(c)?, self.shared(a)?, self.shared(b)?),
            Expr::IfThenElse(c, a, b) => Expr::IfThenElse(self.shared(c)?, self.shared(a)?, self.shared(b)?),
            Expr::Cast(ty, value) => Expr::Cast(*ty, self.shared(value)?),
            Expr::Ramp { base, stride, lanes } => {
                Expr::Ramp { base: self.shared(base)?, stride: self.shared(stride)?, lanes: *lanes }
            }
            Expr::Broadcast { value, lanes } => Expr::Broadcast { value: self.shared(value)?, lanes: *lanes },
            Expr::Load { buffer, indices } => {
                let indices = self.shared_list(indices)?;
                Expr::Load { buffer: self.buffer(buffer)?, indices }
            }
        })
    }

    /// An operand, rewritten; the same object if nothing changes.
    fn shared(&mut self, operand: &SharedExpr) -> Result<SharedExpr, Self::Error> {
        let rewritten = self.expr(operand)?;
        Ok(if rewritten.is_same(operand) { operand.clone() } else { SharedExpr::new(rewritten) })
    }

    /// A list of operands, rewritten; the same object if nothing changes.
    fn shared_list(&mut self, operands: &SharedExprs) -> Result<SharedExprs, Self::Error> {
        let rewritten = self.exprs(operands)?;
        let is_same = rewritten.iter().zip(operands).all(|(new, old)| new.is_same(old));
        Ok(if is_same { operands.clone() } else { rewritten.into() })
    }

    /// Rewrites expressions in order.
    fn exprs(&mut self, exprs: &[Expr]) -> Result<Vec<Expr>, Self::Error> {
        exprs.iter().map(|expr| self.expr(expr)).collect()
    }

    /// Returns the statement with its children rewritten, at the same source location.
    fn stmt_children(&mut self, stmt: &Stmt) -> Result<Stmt, Self::Error> {
        // A declaration comes before its body, so that a rewriter that replaces a buffer knows it when it meets the
        // accesses.
        let kind = match &stmt.kind {
            StmtKind::For(inner) => StmtKind::For(Arc::new(For {
                var: inner.var.clone(),
                min: self.expr(&inner.min)?,
                extent: self.expr(&inner.extent)?,
                kind: inner.kind,
                annotations: inner.annotations.clone(),
                body: self.stmt(&inner.body)?,
            })),
            StmtKind::Store { buffer, indices, value } => {
                let indices = self.exprs(indices)?;
                let value = self.expr(value)?;
                StmtKind::Store { buffer: self.buffer(buffer)?, indices, value }
            }
            StmtKind::Allocate { buffer, body } => {
                StmtKind::Allocate { buffer: self.buffer(buffer)?, body: Arc::new(self.stmt(body)?) }
            }
            StmtKind::DeclBuffer { buffer, body } => {
                StmtKind::DeclBuffer { buffer: self.buffer(buffer)?, body: Arc::new(self.stmt(body)?) }
            }
            StmtKind::If { cond, then_body, else_body } => StmtKind::If {
                cond: self.expr(cond)?,
                then_body: Arc::new(self.stmt(then_body)?),
                else_body: else_body.as_ref().map(|body| self.stmt(body).map(Arc::new)).transpose()?,
            },
            StmtKind::Let { var, value, body } => {
                StmtKind::Let { var: var.clone(), value: self.expr(value)?, body: Arc::new(self.stmt(body)?) }
            }
            // Where a statement became several, they are statements of this sequence: as they are read back from text.
            StmtKind::Seq(stmts) => Stmt::seq(stmts.iter().map(|stmt| self.stmt(stmt)).collect::<Result<_, _>>()?).kind,
            StmtKind::Evaluate(expr) => StmtKind::Evaluate(self.expr(expr)?),
            StmtKind::Barrier => StmtKind::Barrier,
            StmtKind::Attr { node, key, value, body } => StmtKind::Attr {
                node: self.attr_value(node)?,
                key: key.clone(),
                value: self.attr_value(value)?,
                body: Arc::new(self.stmt(body)?),
            },
            StmtKind::Assert { cond, message, is_assumed } => {
                StmtKind::Assert { cond: self.expr(cond)?, message: message.clone(), is_assumed: *is_assumed }
            }
        };
        Ok(Stmt { kind, span: stmt.span })
    }
}

/// A simultaneous replacement of variables by expressions. Replacements are not substituted into each other.
#[derive(Clone, Debug, Default)]
pub struct Substitution(HashMap<Var, Expr>);

impl Substitution {
    /// Replaces each variable of `vars` by the expression at the same position of `exprs`.
    pub fn new<'a>(vars: impl IntoIterator<Item = &'a Var>, exprs: impl IntoIterator<Item = Expr>) -> Self {
        Self(vars.into_iter().cloned().zip(exprs).collect())
    }

    /// Adds a replacement.
    pub fn insert(&mut self, var: &Var, expr: Expr) {
        self.0.insert(var.clone(), expr);
    }

    /// Returns the replacement of a variable.
    pub fn get(&self, var: &Var) -> Option<&Expr> {
        self.0.get(var)
    }

    /// Returns the expression with the variables replaced.
    pub fn apply(&self, expr: &Expr) -> Expr {
        let Ok(result) = Substitute(self).expr(expr);
        result
    }

    /// Returns the statement with the uses of the variables replaced. The variable that a loop or a `let` binds is
    /// kept even if it has a replacement, so replaced variables should be free in the statement.
    pub fn apply_stmt(&self, stmt: &Stmt) -> Stmt {
        let Ok(result) = Substitute(self).stmt(stmt);
        result
    }
}

struct Substitute<'a>(&'a Substitution);

impl Rewrite for Substitute<'_> {
    type Error = Infallible;

    fn expr(&mut self, expr: &Expr) -> Result<Expr, Infallible> {
        match expr {
            Expr::Var(var) => Ok(self.0.get(var).unwrap_or(expr).clone()),
            _ => self.expr_children(expr),
        }
    }
}
