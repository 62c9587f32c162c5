//! Mutants with a condition too many: a store that runs in some iterations only.
//!
//! ```text
//! for i in range(7):                 for i in range(7):
//!     B[i] = A[i]                        if i < 6:
//!                                            B[i] = A[i]
//! ```
//!
//! The judge may accept a condition that the program before does not ask only if it always holds.

use std::convert::Infallible;
use std::sync::Arc;

use tilewright_ir::visit::Rewrite;
use tilewright_ir::{Expr, For, PrimFunc, Stmt, StmtKind};

/// The program with a condition around one store inside a loop, which the last iteration of its innermost loop does not
/// pass; unchanged if there is no such store. `seed` chooses the store.
pub fn with_condition(func: &PrimFunc, seed: u64) -> PrimFunc {
    let mut count = 0u64;
    func.body.walk(&mut |stmt| count += u64::from(matches!(stmt.kind, StmtKind::Store { .. })));
    let left = seed % count.max(1);
    let Ok(body) = Guard { left: Some(left), innermost: None }.stmt(&func.body);
    PrimFunc { body, ..func.clone() }
}

/// Finds the store.
struct Guard {
    /// Number of stores before the one to be changed; `None` once it is changed.
    left: Option<u64>,
    /// The last iteration of the innermost loop: its variable and value.
    innermost: Option<(Expr, Expr)>,
}

impl Rewrite for Guard {
    type Error = Infallible;

    fn stmt(&mut self, stmt: &Stmt) -> Result<Stmt, Infallible> {
        match &stmt.kind {
            StmtKind::For(inner) => {
                let last = inner.min.clone() + inner.extent.clone() - Expr::int(1);
                let around = self.innermost.replace((Expr::from(&inner.var), last));
                let body = self.stmt(&inner.body)?;
                self.innermost = around;
                Ok(Stmt::new(StmtKind::For(Arc::new(For { body, ..(**inner).clone() }))))
            }
            StmtKind::Store { .. } => {
                let (here, left) = (self.left == Some(0), self.left.and_then(|left| left.checked_sub(1)));
                self.left = left;
                Ok(match (&self.innermost, here) {
                    (Some((var, last)), true) => Stmt::guarded(var.clone().lt(last.clone()), stmt.clone()),
                    _ => stmt.clone(),
                })
            }
            _ => self.stmt_children(stmt),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_store_gets_a_condition() {
        let text = "from tvm.script import tir as T\n\n@T.prim_func\ndef main(A: T.Buffer((7,), \"int32\")):\n    for i in range(7):\n        A[i] = 1\n    for j in range(7):\n        A[j] = 2\n";
        let func = tilewright_script::read_module(text).unwrap().funcs.remove(0);
        for (seed, var) in [(0, "i"), (1, "j")] {
            let changed = tilewright_script::print_func(&with_condition(&func, seed));
            assert_eq!(changed.matches("if ").count(), 1, "{changed}");
            assert!(changed.contains(&format!("if {var} <")), "{changed}");
        }
    }
}
