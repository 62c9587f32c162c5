//! Programs whose statements run in another order.
//!
//! ```text
//! C[i] = 0                             for k in range(5):
//! for k in range(5):                       C[i] = 0
//!     C[i] = C[i] + A[i, k]                C[i] = C[i] + A[i, k]
//! ```

use std::convert::Infallible;
use std::sync::Arc;

use tilewright_ir::visit::Rewrite;
use tilewright_ir::{For, PrimFunc, Stmt, StmtKind};

use super::Choices;

/// The program with the statements of one sequence in another order: two exchanged, one moved into the loop behind it or in front of it,
/// or one moved to the other end. As it is if it has no sequence.
pub fn reordered_program(func: &PrimFunc, seed: u64) -> PrimFunc {
    let mut choices = Choices::new(seed);
    let mut count = 0;
    func.body.walk(&mut |stmt| count += usize::from(is_sequence(stmt)));
    let left = choices.below(count);
    let Ok(body) = Change { left, choices: &mut choices }.stmt(&func.body);
    PrimFunc { body, ..func.clone() }
}

fn is_sequence(stmt: &Stmt) -> bool {
    matches!(&stmt.kind, StmtKind::Seq(stmts) if stmts.len() > 1)
}

/// Walks to the sequence with a given number and changes it.
struct Change<'r> {
    left: usize,
    choices: &'r mut Choices,
}

impl Rewrite for Change<'_> {
    type Error = Infallible;

    fn stmt(&mut self, stmt: &Stmt) -> Result<Stmt, Infallible> {
        let StmtKind::Seq(stmts) = &stmt.kind else { return self.stmt_children(stmt) };
        if stmts.len() < 2 || self.left > 0 {
            self.left = self.left.saturating_sub(usize::from(stmts.len() > 1));
            return self.stmt_children(stmt);
        }
        // No other sequence has this number.
        self.left = usize::MAX;
        Ok(Stmt::seq(changed(stmts.to_vec(), self.choices)))
    }
}

fn changed(mut stmts: Vec<Stmt>, choices: &mut Choices) -> Vec<Stmt> {
    let at = choices.below(stmts.len() - 1);
    match choices.below(3) {
        0 => stmts.swap(at, at + 1),
        1 => stmts.rotate_left(1),
        _ => {
            let (first, second) = (stmts[at].clone(), stmts[at + 1].clone());
            let joined = match (&first.kind, &second.kind) {
                (_, StmtKind::For(inner)) => into(inner, |body| vec![first.clone(), body]),
                (StmtKind::For(inner), _) => into(inner, |body| vec![body, second.clone()]),
                _ => {
                    stmts.swap(at, at + 1);
                    return stmts;
                }
            };
            stmts.splice(at..at + 2, [joined]);
        }
    }
    stmts
}

/// A loop whose body is what a function makes of it.
fn into(inner: &For, body: impl FnOnce(Stmt) -> Vec<Stmt>) -> Stmt {
    let body = Stmt::seq(body(inner.body.clone()));
    Stmt::new(StmtKind::For(Arc::new(For { body, ..inner.clone() })))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_change_places_and_nothing_else_changes() {
        let text = "@T.prim_func\ndef main(A: T.Buffer((7, 5), \"int32\"), C: T.Buffer((7,), \"int32\")):\n    for i in range(7):\n        \
                    C[i] = 0\n        for k in range(5):\n            C[i] = C[i] + A[i, k]\n";
        let func = tilewright_script::read_module(text).unwrap().funcs.remove(0);
        let printed: Vec<String> =
            (0..20).map(|seed| tilewright_script::print_func(&reordered_program(&func, seed))).collect();
        assert!(printed.iter().any(|text| text.contains("T.grid(7, 5):\n        C[i] = 0\n")), "{}", printed[0]);
        let behind = "C[i] = C[i] + A[i, k]\n        C[i] = 0\n";
        assert!(printed.iter().any(|text| text.contains(behind)), "{}", printed[0]);
        assert!(printed.iter().all(|text| text.matches("C[i]").count() == 3));
    }
}
