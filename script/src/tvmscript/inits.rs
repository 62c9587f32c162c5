//! Where `with T.init():` may stand in a block: directly in it, in front of everything that the block does.
//!
//! ```python
//! with T.sblock("C"):
//!     ...
//!     C[i] = C[i] + A[i, k]
//!     with T.init():          # an error: TVM runs it before the update, wherever it is written
//!         C[i] = T.float32(0)
//! ```
//!
//! An initialisation is read as a condition at its place, so this place has to be that at which TVM runs it.

use ruff_python_ast as ast;
use ruff_text_size::Ranged;

use super::reader::Reader;

const HELP: &str = "write it directly in the block, in front of all other statements";

impl<'a> Reader<'a> {
    /// Checks the places of the initialisations of a block with these statements.
    pub(super) fn check_inits(&mut self, stmts: &[&'a ast::Stmt]) -> Option<()> {
        let mut acts = false;
        let mut is_right = true;
        for stmt in stmts {
            if let Some(call) = self.init_call(stmt) {
                if acts {
                    let message = "`T.init` stands behind other statements, and runs before them";
                    is_right &= self.error::<()>("block", call.range(), message, HELP).is_some();
                }
            } else {
                // Memory, parts of buffers and names stand in front.
                acts |= !matches!(stmt, ast::Stmt::AnnAssign(_)) && !is_name(stmt);
                is_right &= self.check_inside(stmt).is_some();
            }
        }
        is_right.then_some(())
    }

    /// Checks that no initialisation stands inside of a statement of a block.
    fn check_inside(&mut self, stmt: &'a ast::Stmt) -> Option<()> {
        let bodies: Vec<&'a [ast::Stmt]> = match stmt {
            ast::Stmt::For(inner) => vec![&inner.body],
            ast::Stmt::If(inner) => {
                let others = inner.elif_else_clauses.iter().map(|clause| &*clause.body);
                std::iter::once(&*inner.body).chain(others).collect()
            }
            ast::Stmt::With(inner) if !self.opens_inner_block(inner) => vec![&inner.body],
            _ => Vec::new(),
        };
        for stmt in bodies.into_iter().flatten() {
            if let Some(call) = self.init_call(stmt) {
                return self.error("block", call.range(), "`T.init` stands in a statement of the block", HELP);
            }
            self.check_inside(stmt)?;
        }
        Some(())
    }

    fn opens_inner_block(&self, with: &ast::StmtWith) -> bool {
        with.items.iter().any(|item| matches!(&item.context_expr, ast::Expr::Call(call) if self.opens_block(call)))
    }

    /// The call of `with T.init():`.
    fn init_call(&self, stmt: &'a ast::Stmt) -> Option<&'a ast::ExprCall> {
        let ast::Stmt::With(with) = stmt else { return None };
        let [item] = &with.items[..] else { return None };
        let ast::Expr::Call(call) = &item.context_expr else { return None };
        (self.callee(&call.func) == Some("init")).then_some(call)
    }
}

/// Returns whether a statement gives a name to something.
fn is_name(stmt: &ast::Stmt) -> bool {
    matches!(stmt, ast::Stmt::Assign(assign) if assign.targets.iter().all(|target| !matches!(target, ast::Expr::Subscript(_))))
}
