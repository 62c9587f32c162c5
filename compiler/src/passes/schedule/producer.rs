//! Takes the nests that compute a buffer out of a function.

use tilewright_ir::visit::Rewrite;
use tilewright_ir::{Buffer, Diagnostic, PrimFunc, Stmt, StmtKind};

use super::buffers::{loads_from, stores_to};
use super::fault;

/// The statements that compute a buffer, and the function without them.
#[derive(Clone, Debug)]
pub(super) struct Producer {
    /// The neighbours of one sequence that store to the buffer, and to nothing else, in order.
    pub(super) nests: Vec<Stmt>,
    /// The function without them.
    pub(super) rest: PrimFunc,
}

/// Returns the nests that compute a buffer, which come before everything that reads it.
///
/// # Errors
/// Nothing stores to the buffer, other stores are among those, or it is read in front of them.
pub(super) fn producer(func: &PrimFunc, buffer: &Buffer) -> Result<Producer, Diagnostic> {
    let mut take = Take { buffer, nests: Vec::new() };
    let body = take.stmt(&func.body)?;
    if take.nests.is_empty() {
        return Err(fault(format!("nothing stores to `{buffer}`"), "name a buffer that the function computes"));
    }
    Ok(Producer { nests: take.nests, rest: PrimFunc { body, ..func.clone() } })
}

struct Take<'a> {
    buffer: &'a Buffer,
    nests: Vec<Stmt>,
}

impl Take<'_> {
    fn stores(&self, stmt: &Stmt) -> bool {
        stores_to(stmt, &|stored| stored == self.buffer)
    }

    /// Whether a statement stores to the buffer and to nothing else.
    fn is_nest(&self, stmt: &Stmt) -> bool {
        self.stores(stmt) && !stores_to(stmt, &|stored| stored != self.buffer)
    }

    fn mixed(&self) -> Diagnostic {
        let message = format!("`{}` is not computed by nests of its own", self.buffer);
        fault(message, "its stores, and no others, stand in nests in front of all that reads it")
    }
}

impl Rewrite for Take<'_> {
    type Error = Diagnostic;

    fn stmt(&mut self, stmt: &Stmt) -> Result<Stmt, Diagnostic> {
        if !self.stores(stmt) {
            return Ok(stmt.clone());
        }
        let StmtKind::Seq(parts) = &stmt.kind else {
            return if matches!(stmt.kind, StmtKind::Store { .. }) {
                Err(self.mixed())
            } else {
                self.stmt_children(stmt)
            };
        };
        let storing = || parts.iter().filter(|part| self.stores(part));
        if !storing().all(|part| self.is_nest(part)) {
            return if storing().count() == 1 { self.stmt_children(stmt) } else { Err(self.mixed()) };
        }
        let last = parts.iter().rposition(|part| self.stores(part)).unwrap_or(0);
        let is_read_before = parts[..last].iter().any(|part| !self.stores(part) && loads_from(part, self.buffer));
        if is_read_before || !self.nests.is_empty() {
            return Err(self.mixed());
        }
        self.nests = storing().cloned().collect();
        let kept = parts.iter().filter(|part| !self.stores(part)).cloned().collect();
        Ok(Stmt::seq(kept).at(stmt.span))
    }
}
