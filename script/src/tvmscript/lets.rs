//! Bindings in the shapes of buffers.
//!
//! TVM's elimination of common subexpressions gives names to extents, too:
//!
//! ```python
//! cse_v1: T.let[T.int32] = n * 64
//! A_1 = A.view(cse_v1)
//! ```
//!
//! The shape is read as `(n * 64,)`: what a buffer is does not depend on a binding beside it.

use tilewright_ir::visit::Substitution;
use tilewright_ir::{Expr, Var};

use super::reader::Reader;

/// The greatest number of nodes of a value that replaces its name. Each binding may name the one before twice, so without a limit
/// values would double with each line.
const MAX_NODES: usize = 64;

impl Reader<'_> {
    /// Remembers what a name is bound to, for shapes that use it. Values that read memory are not extents.
    pub(super) fn remember_let(&mut self, var: &Var, value: &Expr) {
        let is_integer = value.dtype().is_scalar() && value.dtype().scalar.is_integer();
        if !is_integer || value.reads_memory() || !is_small(value) {
            return;
        }
        let value = self.lets.apply(value);
        if is_small(&value) {
            self.lets.insert(var, value);
        }
    }

    /// Returns the expression with the names of bindings replaced by their values.
    pub(super) fn without_lets(&self, expr: &Expr) -> Expr {
        self.lets.apply(expr)
    }

    /// Forgets all bindings, for the next function.
    pub(super) fn forget_lets(&mut self) {
        self.lets = Substitution::default();
    }
}

/// Returns whether an expression has at most [`MAX_NODES`] nodes.
fn is_small(expr: &Expr) -> bool {
    let mut nodes = 0;
    expr.walk(&mut |_| nodes += 1);
    nodes <= MAX_NODES
}
