//! Assumptions: what the caller of a function guarantees.
//!
//! ```python
//! T.assume(n % 4 == 0)                  # a statement at the start of the function
//! T.evaluate(T.assume(n % 4 == 0))      # as older releases print it
//! ```
//!
//! An assumption is a premise of everything that is proved of the function, so it is about the integers of a call, and stands in front of
//! all other statements: there it is clear whether any call meets it. A condition in another place, or on memory, is an error here; as
//! an `assert` it is part of what the program does.

use ruff_python_ast as ast;
use tilewright_ir::{Diagnostic, PrimFunc, Stmt, StmtKind, Var};

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

/// The errors about assumptions that are no premises of the function.
pub(super) fn misplaced(func: &PrimFunc) -> Vec<Diagnostic> {
    let known: Vec<Var> = func.extents().into_iter().chain(func.scalars()).collect();
    let mut found = Found { known, is_start: true, errors: Vec::new() };
    found.stmt(&func.body);
    found.errors
}

struct Found {
    /// The integers of a call.
    known: Vec<Var>,
    /// Whether nothing was done yet.
    is_start: bool,
    errors: Vec<Diagnostic>,
}

impl Found {
    fn stmt(&mut self, stmt: &Stmt) {
        if let StmtKind::Assert { cond, is_assumed: true, .. } = &stmt.kind {
            let is_about_call = !cond.reads_memory() && cond.vars().iter().all(|var| self.known.contains(var));
            let message = if !self.is_start {
                "an assumption stands in front of all other statements of the function"
            } else if !is_about_call {
                "an assumption is about scalar parameters and extents alone"
            } else {
                return;
            };
            let help = format!("write `assert {cond}, \"...\"`: the program checks it there");
            self.errors.push(Diagnostic::error("assumption", stmt.span, message).with_help(help));
            return;
        }
        // Memory and assertions may come first.
        self.is_start &= match &stmt.kind {
            StmtKind::Seq(_) | StmtKind::Allocate { .. } | StmtKind::DeclBuffer { .. } | StmtKind::Assert { .. } => {
                true
            }
            StmtKind::For(_) | StmtKind::Store { .. } | StmtKind::If { .. } | StmtKind::Let { .. } => false,
            StmtKind::Evaluate(_) | StmtKind::Barrier | StmtKind::Attr { .. } => false,
        };
        stmt.children().for_each(|child| self.stmt(child));
    }
}
