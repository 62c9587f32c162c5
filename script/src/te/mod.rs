//! The TE dialect as a syntax tree.
//!
//! A TE program is Python: functions, lambdas, calls of `te.*` and methods of a schedule. [`read`] returns its syntax
//! tree with a source location on every node. Evaluating the tree, which builds a definition and a schedule, is the
//! task of the compiler crate.
//!
//! ```
//! let program = tilewright_script::te::read("A = te.placeholder((2, 7), name='A')")?;
//! assert_eq!(program.body.len(), 1);
//! let errors = tilewright_script::te::read("while True: pass").unwrap_err();
//! assert_eq!(errors[0].code, "unsupported-syntax");
//! # Ok::<(), Vec<tilewright_ir::Diagnostic>>(())
//! ```

mod ast;
mod convert;

pub use ast::{
    Argument, BinaryOp, CompareOp, Expr, ExprKind, Function, Keyword, LogicOp, Parameter, SourceFile, Stmt, StmtKind,
    Target, TargetKind, UnaryOp,
};

use tilewright_ir::Diagnostic;

/// Reads a TE program.
///
/// # Errors
/// The text is not valid Python, or it uses Python outside the subset. All problems are returned, each with its
/// location.
pub fn read(source: &str) -> Result<SourceFile, Vec<Diagnostic>> {
    convert::source_file(&crate::source::parse_module(source)?)
}
