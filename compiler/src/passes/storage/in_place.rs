//! Whether values may overwrite those that they are computed from.
//!
//! ```text
//! for i, j in T.grid(7, 5):
//!     u[i, j] = t[i, j] * T.float32(2)        t may be the memory of u: each element is read in the iteration that writes it
//! ```

use tilewright_ir::{Buffer, Expr, Stmt, StmtKind, Var, sabotage};

/// Returns whether the only store to `after` in a statement writes each element once, and the statement reads of `before` that element
/// alone, in the value that is stored there.
pub(in crate::passes) fn is_in_place(stmt: &Stmt, before: &Buffer, after: &Buffer) -> bool {
    let mut found = Found { before, after, loops: Vec::new(), n_stores: 0, is_apart: true };
    found.stmt(stmt);
    found.is_apart && found.n_stores == 1
}

struct Found<'a> {
    before: &'a Buffer,
    after: &'a Buffer,
    /// The loops around the current statement.
    loops: Vec<&'a Var>,
    n_stores: usize,
    is_apart: bool,
}

impl<'a> Found<'a> {
    fn stmt(&mut self, stmt: &'a Stmt) {
        match &stmt.kind {
            StmtKind::Store { buffer, indices, value } if buffer.aliases(self.after) => {
                self.n_stores += 1;
                let is_one = |load: &Buffer, at: &[Expr]| *load == *self.before && (at == indices || anywhere());
                let is_apart = buffer == self.after
                    && each_index_once(indices, &self.loops)
                    && indices.iter().all(|index| self.reads_none(index))
                    && loads(value).into_iter().all(|(load, at)| {
                        !load.aliases(self.after) && (!load.aliases(self.before) || is_one(load, at))
                    });
                self.is_apart &= is_apart;
            }
            StmtKind::Store { buffer, .. } if buffer.aliases(self.before) => self.is_apart = false,
            StmtKind::For(inner) => {
                self.is_apart &= stmt.exprs().all(|expr| self.reads_none(expr));
                self.loops.push(&inner.var);
                self.stmt(&inner.body);
                self.loops.pop();
            }
            _ => {
                self.is_apart &= stmt.exprs().all(|expr| self.reads_none(expr));
                stmt.children().for_each(|child| self.stmt(child));
            }
        }
    }

    /// Whether an expression reads neither memory.
    fn reads_none(&self, expr: &Expr) -> bool {
        !loads(expr).iter().any(|(load, _)| load.aliases(self.before) || load.aliases(self.after))
    }
}

/// Whether other elements may be read, too: an injected fault.
fn anywhere() -> bool {
    sabotage::on("storage-in-place-anywhere")
}

/// Whether the indices are the variables of the loops, each of which is one of them: then each iteration has an element of its own.
fn each_index_once(indices: &[Expr], loops: &[&Var]) -> bool {
    let is_index =
        |var: &&&Var| indices.iter().filter(|index| matches!(index, Expr::Var(one) if one == **var)).count() == 1;
    loops.iter().filter(is_index).count() == loops.len()
}

/// The loads in an expression.
fn loads(expr: &Expr) -> Vec<(&Buffer, &[Expr])> {
    let mut found: Vec<(&Buffer, &[Expr])> = Vec::new();
    expr.walk(&mut |part| {
        if let Expr::Load { buffer, indices } = part {
            found.push((buffer, indices));
        }
    });
    found
}
