//! Copies of statements. Every variable is bound once in a function, and every allocation is one buffer; so a copy has
//! variables and buffers of its own.

use std::convert::Infallible;

use tilewright_ir::visit::{Rewrite, Substitution};
use tilewright_ir::{Buffer, DataType, Expr, For, Stmt, StmtKind, Var};

/// Returns a copy of a statement with variables replaced by values, and with loop variables, names and buffers of its own.
pub(crate) fn copied(stmt: &Stmt, values: &Substitution) -> Stmt {
    let Ok(stmt) = Copy { values: values.clone(), buffers: Vec::new(), memory: Vec::new() }.stmt(stmt);
    stmt
}

struct Copy {
    /// The values of variables, those of the copy among them.
    values: Substitution,
    /// The buffers of the copy, for those that the statement declares.
    buffers: Vec<(Buffer, Buffer)>,
    /// The same for the memory that it allocates.
    memory: Vec<(Var, Var)>,
}

impl Copy {
    /// A variable of the copy for one that the statement binds.
    fn bind(&mut self, var: &Var) -> Var {
        let fresh = Var::new(var.name(), var.dtype());
        self.values.insert(var, Expr::from(&fresh));
        fresh
    }

    /// A buffer of the copy for one that the statement declares.
    fn declare(&mut self, buffer: &Buffer) {
        let data = self.memory.iter().find(|(old, _)| *old == buffer.data).map(|(_, new)| new.clone());
        let shape = buffer.shape.iter().map(|extent| self.values.apply(extent)).collect();
        let strides = buffer.strides.as_ref().map(|all| all.iter().map(|one| self.values.apply(one)).collect());
        let offset = self.values.apply(&buffer.elem_offset);
        let fresh = buffer.with(|info| {
            info.data = data.unwrap_or_else(|| info.data.clone());
            (info.shape, info.strides, info.elem_offset) = (shape, strides, offset);
        });
        self.buffers.push((buffer.clone(), fresh));
    }
}

impl Rewrite for Copy {
    type Error = Infallible;

    fn expr(&mut self, expr: &Expr) -> Result<Expr, Infallible> {
        match expr {
            Expr::Var(var) => {
                let memory = self.memory.iter().find(|(old, _)| old == var).map(|(_, new)| Expr::from(new));
                Ok(memory.unwrap_or_else(|| self.values.get(var).unwrap_or(expr).clone()))
            }
            _ => self.expr_children(expr),
        }
    }

    fn buffer(&mut self, buffer: &Buffer) -> Result<Buffer, Infallible> {
        let copy = self.buffers.iter().find(|(old, _)| old == buffer);
        Ok(copy.map_or_else(|| buffer.clone(), |(_, new)| new.clone()))
    }

    fn stmt(&mut self, stmt: &Stmt) -> Result<Stmt, Infallible> {
        match &stmt.kind {
            StmtKind::For(inner) => {
                let (min, extent) = (self.expr(&inner.min)?, self.expr(&inner.extent)?);
                let var = self.bind(&inner.var);
                let body = self.stmt(&inner.body)?;
                let (kind, annotations) = (inner.kind, inner.annotations.clone());
                Ok(Stmt::new(StmtKind::For(For { var, min, extent, kind, annotations, body }.into())).at(stmt.span))
            }
            StmtKind::Let { var, value, body } => {
                let value = self.expr(value)?;
                let var = self.bind(var);
                let body = self.stmt(body)?.into();
                Ok(Stmt::new(StmtKind::Let { var, value, body }).at(stmt.span))
            }
            StmtKind::Allocate { buffer, .. } => {
                self.memory.push((buffer.data.clone(), Var::new(buffer.data.name(), DataType::HANDLE)));
                self.declare(buffer);
                self.stmt_children(stmt)
            }
            StmtKind::DeclBuffer { buffer, .. } => {
                self.declare(buffer);
                self.stmt_children(stmt)
            }
            _ => self.stmt_children(stmt),
        }
    }
}
