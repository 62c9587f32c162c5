//! Gives every variable and every buffer of a function a name of its own (TVM's `ConvertSSA`).
//!
//! ```text
//! for i in range(n):              for i in range(n):
//!     t = T.alloc_buffer((1,))        t = T.alloc_buffer((1,))
//!     t[0] = A[i]            ->       t[0] = A[i]
//!     B[i] = t[0]                     B[i] = t[0]
//! for i in range(m):              for i_1 in range(m):
//!     t = T.alloc_buffer((1,))        t_1 = T.alloc_buffer((1,))
//!     t[0] = B[i]                     t_1[0] = B[i_1]
//!     C[i] = t[0]                     C[i_1] = t_1[0]
//! ```
//!
//! In the language each variable is bound once and each allocation is one buffer, whatever they are called: the reader sees to it, and
//! passes that copy statements give the copies their own (RFC 63, "Buffer Aliasing"). This pass makes the names say so, for tools that
//! compare names. Parameters and their buffers keep their names, and views keep the memory that they share. Cost: one walk.

use std::collections::HashSet;
use std::convert::Infallible;
use std::sync::Arc;

use tilewright_ir::visit::{Rewrite, Substitution};
use tilewright_ir::{
    Buffer, BufferChange, BufferClaim, DataType, Diagnostic, Evidence, Expr, For, IndexMap, PrimFunc, Stmt, StmtKind,
    Var, sabotage,
};

use super::{Rewritten, lower_blocks};

/// Renames variables and buffers so that no two of them have one name.
///
/// # Errors
/// `blocks`: the function has blocks.
///
/// ```
/// use tilewright_compiler::passes::convert_ssa;
/// let text = r#"
/// @T.prim_func
/// def main(A: T.Buffer((5,), "float32"), B: T.Buffer((7,), "float32")):
///     for i in range(5):
///         A[i] = T.float32(0)
///     for i in range(7):
///         B[i] = T.float32(1)
/// "#;
/// let func = tilewright_script::read_module(text)?.funcs.remove(0);
/// let printed = tilewright_script::print_func(&convert_ssa(&func)?.func);
/// let body: Vec<&str> = printed.lines().skip(2).map(str::trim).collect();
/// assert_eq!(body, [
///     "for i in range(5):",
///     "A[i] = T.float32(0.0)",
///     "for i_1 in range(7):",
///     "B[i_1] = T.float32(1.0)",
/// ]);
/// # Ok::<(), Vec<tilewright_ir::Diagnostic>>(())
/// ```
pub fn convert_ssa(func: &PrimFunc) -> Result<Rewritten, Vec<Diagnostic>> {
    lower_blocks::refuse(func, "convert_ssa")?;
    let mut rename = Rename::new(func);
    let Ok(body) = rename.stmt(&func.body);
    let claim = |(before, after): (Buffer, Buffer)| BufferClaim {
        map: IndexMap::identity(before.shape.clone()),
        before,
        after,
        change: BufferChange::Rename,
        padded_axes: Vec::new(),
    };
    let buffers = rename.buffers.into_iter().map(claim).collect();
    let evidence = Evidence { pass: "convert_ssa".to_owned(), buffers, ..Evidence::default() };
    Ok(Rewritten { func: PrimFunc { body, ..func.clone() }, evidence, notes: Vec::new() })
}

/// The rewrite.
struct Rename {
    /// The names that are taken.
    names: HashSet<String>,
    /// Variables with other names.
    vars: Substitution,
    /// Buffers with other names or on memory with another name, before and after.
    buffers: Vec<(Buffer, Buffer)>,
    /// The same for the memory that is allocated.
    memory: Vec<(Var, Var)>,
}

impl Rename {
    /// The rewrite of a body: parameters, their buffers and their extents keep their names.
    fn new(func: &PrimFunc) -> Self {
        let mut names: HashSet<String> =
            func.params.iter().chain(&func.symbols()).map(|var| var.name().to_owned()).collect();
        names.extend(func.buffer_map.iter().map(|(_, buffer)| buffer.name.clone()));
        Self { names, vars: Substitution::default(), buffers: Vec::new(), memory: Vec::new() }
    }

    /// A name that nothing has: the wanted one, or one with a number.
    fn free(&mut self, wanted: &str) -> String {
        let numbered = (1u32..).map(|number| format!("{wanted}_{number}"));
        let mut names = std::iter::once(wanted.to_owned()).chain(numbered);
        let name = names.find(|name| !self.names.contains(name)).unwrap_or_else(|| wanted.to_owned());
        self.names.insert(name.clone());
        name
    }

    /// A variable where it is bound.
    fn bind(&mut self, var: &Var) -> Var {
        let name = self.free(var.name());
        if name == var.name() {
            return var.clone();
        }
        let renamed = Var::new(name, var.dtype());
        self.vars.insert(var, Expr::from(&renamed));
        renamed
    }

    /// A buffer where it is declared.
    fn declare(&mut self, buffer: &Buffer, allocates: bool) -> Buffer {
        let name = self.free(&buffer.name);
        if allocates && name != buffer.name {
            self.memory.push((buffer.data.clone(), Var::new(name.clone(), DataType::HANDLE)));
        }
        let data = self.memory.iter().find(|(old, _)| *old == buffer.data).map(|(_, new)| new.clone());
        if name == buffer.name && data.is_none() {
            return buffer.clone();
        }
        let renamed = buffer.with(|info| {
            info.name = name;
            info.data = data.unwrap_or_else(|| info.data.clone());
        });
        self.buffers.push((buffer.clone(), renamed.clone()));
        renamed
    }
}

impl Rewrite for Rename {
    type Error = Infallible;

    fn expr(&mut self, expr: &Expr) -> Result<Expr, Infallible> {
        match expr {
            Expr::Var(var) => Ok(self.vars.get(var).unwrap_or(expr).clone()),
            _ => self.expr_children(expr),
        }
    }

    fn buffer(&mut self, buffer: &Buffer) -> Result<Buffer, Infallible> {
        let renamed = self.buffers.iter().find(|(old, _)| old == buffer).filter(|_| !sabotage::on("ssa-forgets-views"));
        Ok(renamed.map_or_else(|| buffer.clone(), |(_, new)| new.clone()))
    }

    fn stmt(&mut self, stmt: &Stmt) -> Result<Stmt, Infallible> {
        let kind = match &stmt.kind {
            StmtKind::For(inner) => {
                let (min, extent) = (self.expr(&inner.min)?, self.expr(&inner.extent)?);
                let var = self.bind(&inner.var);
                let body = self.stmt(&inner.body)?;
                let (kind, annotations) = (inner.kind, inner.annotations.clone());
                StmtKind::For(For { var, min, extent, kind, annotations, body }.into())
            }
            StmtKind::Let { var, value, body } => {
                let value = self.expr(value)?;
                let var = self.bind(var);
                StmtKind::Let { var, value, body: Arc::new(self.stmt(body)?) }
            }
            StmtKind::Allocate { buffer, body } => {
                let buffer = self.declare(buffer, true);
                StmtKind::Allocate { buffer, body: Arc::new(self.stmt(body)?) }
            }
            StmtKind::DeclBuffer { buffer, body } => {
                let buffer = self.declare(buffer, false);
                StmtKind::DeclBuffer { buffer, body: Arc::new(self.stmt(body)?) }
            }
            StmtKind::If { .. }
            | StmtKind::Store { .. }
            | StmtKind::Seq(_)
            | StmtKind::Evaluate(_)
            | StmtKind::Barrier
            | StmtKind::Attr { .. }
            | StmtKind::Assert { .. } => return self.stmt_children(stmt),
        };
        Ok(Stmt { kind, span: stmt.span })
    }
}
