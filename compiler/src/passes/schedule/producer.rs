//! Takes the nests that compute a buffer out of a function.

use tilewright_ir::visit::Rewrite;
use tilewright_ir::{Buffer, Diagnostic, PrimFunc, Stmt, StmtKind};

use super::buffers::{loads_from, n_loads, stores_to};
use super::fault;

/// The statements that compute a buffer, and the function without them.
#[derive(Clone, Debug)]
pub(super) struct Producer {
    /// The neighbours of one sequence that store to the buffer, and else to memory of their own, in order.
    pub(super) nests: Vec<Stmt>,
    /// The function without them.
    pub(super) rest: PrimFunc,
    /// The statements behind them in the same sequence.
    pub(super) behind: Vec<Stmt>,
    /// The buffer, and those that the nests allocate.
    pub(super) own: Vec<Buffer>,
}

/// Returns the nests that compute a buffer, which come before everything that reads it.
///
/// # Errors
/// Nothing stores to the buffer, other stores are among those, or it is read in front of them.
pub(super) fn producer(func: &PrimFunc, buffer: &Buffer) -> Result<Producer, Diagnostic> {
    let mut take = Take { buffer, nests: Vec::new(), behind: Vec::new() };
    let body = take.stmt(&func.body)?;
    if take.nests.is_empty() {
        return Err(fault(format!("nothing stores to `{buffer}`"), "name a buffer that the function computes"));
    }
    let n_behind: usize = take.behind.iter().map(|stmt| n_loads(stmt, buffer)).sum();
    if n_behind != n_loads(&body, buffer) {
        return Err(take.mixed());
    }
    let mut own = vec![buffer.clone()];
    take.nests.iter().for_each(|nest| own.extend(allocations(nest)));
    Ok(Producer { nests: take.nests, rest: PrimFunc { body, ..func.clone() }, behind: take.behind, own })
}

/// The buffers that a statement allocates.
fn allocations(stmt: &Stmt) -> Vec<Buffer> {
    let mut found = Vec::new();
    stmt.walk(&mut |part| {
        if let StmtKind::Allocate { buffer, .. } = &part.kind {
            found.push(buffer.clone());
        }
    });
    found
}

struct Take<'a> {
    buffer: &'a Buffer,
    nests: Vec<Stmt>,
    behind: Vec<Stmt>,
}

impl Take<'_> {
    fn stores(&self, stmt: &Stmt) -> bool {
        stores_to(stmt, &|stored| stored == self.buffer)
    }

    /// Whether a statement stores to the buffer, and else to memory of its own.
    fn is_nest(&self, stmt: &Stmt) -> bool {
        let own = allocations(stmt);
        let is_other = |stored: &Buffer| stored != self.buffer && !own.iter().any(|buffer| buffer.aliases(stored));
        self.stores(stmt) && !stores_to(stmt, &is_other)
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
        self.behind = parts[last + 1..].to_vec();
        let kept = parts.iter().filter(|part| !self.stores(part)).cloned().collect();
        Ok(Stmt::seq(kept).at(stmt.span))
    }
}
