//! The uses of a buffer below its allocation, each with the concurrent loops around it.

use std::convert::Infallible;
use std::sync::Arc;

use crate::buffer::Buffer;
use crate::expr::Expr;
use crate::stmt::{AttrValue, For, ForKind, Stmt, StmtKind, ThreadTag};
use crate::visit::Rewrite;

/// A load or a store of memory.
#[derive(Clone, Debug)]
pub struct Use {
    /// The buffer through which the memory is seen, which may be a view.
    pub buffer: Buffer,
    /// The indices, one for each axis of the buffer.
    pub indices: Vec<Expr>,
    /// The loops over groups, threads and virtual threads and the parallel loops between the allocation and this place, outermost first;
    /// vectors belong to one thread and are none of them.
    pub loops: Vec<Arc<For>>,
}

impl Use {
    /// The loops over threads around the use, in the order of their axes.
    pub fn threads(&self) -> Vec<(ThreadTag, &Arc<For>)> {
        let tagged = self.loops.iter().filter_map(|inner| match inner.kind {
            ForKind::ThreadBinding(tag @ ThreadTag::Thread(_)) => Some((tag, inner)),
            _ => None,
        });
        let mut threads: Vec<_> = tagged.collect();
        threads.sort_by_key(|(tag, _)| *tag);
        threads
    }

    /// Whether the indices of the threads stand in front, each below the extent of its axis: no thread uses what belongs to another one.
    pub fn is_of_its_thread(&self) -> bool {
        let threads = self.threads();
        let is_index = |((_, inner), (index, extent)): (&(ThreadTag, &Arc<For>), (&Expr, &Expr))| {
            *index == Expr::from(&inner.var) && *extent == inner.extent
        };
        threads.len() <= self.indices.len()
            && threads.iter().zip(self.indices.iter().zip(&self.buffer.shape)).all(is_index)
    }
}

/// All uses of the memory of a buffer in a statement.
#[derive(Clone, Debug, Default)]
pub struct Uses {
    /// The loads and stores, in program order.
    pub elements: Vec<Use>,
    /// Whether a view of the memory is declared, or an attribute names it.
    pub is_seen_otherwise: bool,
}

/// Finds the uses of the memory of `buffer` in a statement.
pub fn uses_of(buffer: &Buffer, body: &Stmt) -> Uses {
    let mut walk = Walk { buffer, open: Vec::new(), found: Uses::default() };
    let Ok(_) = walk.stmt(body);
    walk.found
}

struct Walk<'a> {
    buffer: &'a Buffer,
    open: Vec<Arc<For>>,
    found: Uses,
}

impl Walk<'_> {
    fn used(&mut self, buffer: &Buffer, indices: &[Expr]) {
        if buffer.aliases(self.buffer) {
            self.found.elements.push(Use {
                buffer: buffer.clone(),
                indices: indices.to_vec(),
                loops: self.open.clone(),
            });
        }
    }
}

impl Rewrite for Walk<'_> {
    type Error = Infallible;

    fn expr(&mut self, expr: &Expr) -> Result<Expr, Infallible> {
        if let Expr::Load { buffer, indices } = expr {
            self.used(buffer, indices);
        }
        self.expr_children(expr)
    }

    fn attr_value(&mut self, value: &AttrValue) -> Result<AttrValue, Infallible> {
        self.found.is_seen_otherwise |= *value == AttrValue::Var(self.buffer.data.clone());
        self.attr_value_children(value)
    }

    fn stmt(&mut self, stmt: &Stmt) -> Result<Stmt, Infallible> {
        match &stmt.kind {
            StmtKind::Store { buffer, indices, .. } => self.used(buffer, indices),
            StmtKind::DeclBuffer { buffer, .. } => self.found.is_seen_otherwise |= buffer.aliases(self.buffer),
            StmtKind::For(inner) if is_concurrent(inner) => {
                let (Ok(_), Ok(_)) = (self.expr(&inner.min), self.expr(&inner.extent));
                self.open.push(inner.clone());
                let Ok(_) = self.stmt(&inner.body);
                self.open.pop();
                return Ok(stmt.clone());
            }
            _ => {}
        }
        self.stmt_children(stmt)
    }
}

fn is_concurrent(inner: &For) -> bool {
    matches!(inner.kind, ForKind::ThreadBinding(_) | ForKind::Parallel)
}
