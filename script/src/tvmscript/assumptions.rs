//! Assumptions: what the caller of a function guarantees.
//!
//! ```python
//! T.assume(n % 4 == 0)                  # a statement at the start of the function
//! T.evaluate(T.assume(n % 4 == 0))      # as older releases print it
//! ```
//!
//! An assumption about the integers of a call, in front of all other statements, is a premise of everything that is proved of the function:
//! there it is clear whether any call meets it. A condition in another place, or on memory, is evaluated and not used. It is no
//! premise, and what is proved holds for all calls, also for those that break it; but a run that shows a difference may be such a call,
//! so that it refutes nothing. As an `assert`, a condition is part of what the program does.

use ruff_python_ast as ast;
use std::convert::Infallible;

use tilewright_ir::visit::Rewrite;
use tilewright_ir::{PrimFunc, Stmt, StmtKind, Var};

use super::reader::Reader;

impl<'a> Reader<'a> {
    /// Reads `T.assume(condition)`.
    pub(super) fn assumption(&mut self, call: &'a ast::ExprCall) -> Option<Stmt> {
        let args = self.bind_args(call, "assume", &["cond"], 1)?;
        let cond = self.condition(args.get(0)?)?;
        let message = cond.to_string();
        Some(Stmt::new(StmtKind::Assert { cond, message, is_assumed: true }))
    }
}

/// Turns assumptions that are no premises of the function into conditions that are evaluated for nothing.
pub(super) fn settled(func: PrimFunc) -> PrimFunc {
    let mut assumes = false;
    func.body.walk(&mut |stmt| assumes |= matches!(stmt.kind, StmtKind::Assert { is_assumed: true, .. }));
    if !assumes {
        return func;
    }
    let known: Vec<Var> = func.extents().into_iter().chain(func.scalars()).collect();
    let Ok(body) = Settle { known, is_start: true }.stmt(&func.body);
    PrimFunc { body, ..func }
}

struct Settle {
    /// The integers of a call.
    known: Vec<Var>,
    /// Whether nothing was done yet.
    is_start: bool,
}

impl Rewrite for Settle {
    type Error = Infallible;

    fn stmt(&mut self, stmt: &Stmt) -> Result<Stmt, Infallible> {
        if let StmtKind::Assert { cond, is_assumed: true, .. } = &stmt.kind {
            let is_about_call = !cond.reads_memory() && cond.vars().iter().all(|var| self.known.contains(var));
            if self.is_start && is_about_call {
                return Ok(stmt.clone());
            }
            return Ok(Stmt::new(StmtKind::Evaluate(cond.clone())).at(stmt.span));
        }
        // Memory and assertions may come first.
        self.is_start &= match &stmt.kind {
            StmtKind::Seq(_) | StmtKind::Allocate { .. } | StmtKind::DeclBuffer { .. } | StmtKind::Assert { .. } => {
                true
            }
            StmtKind::For(_) | StmtKind::Store { .. } | StmtKind::If { .. } | StmtKind::Let { .. } => false,
            StmtKind::Evaluate(_) | StmtKind::Barrier | StmtKind::Attr { .. } => false,
        };
        self.stmt_children(stmt)
    }
}
