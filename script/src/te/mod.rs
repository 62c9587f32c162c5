//! The TE dialect as a syntax tree.
//!
//! A TE program is Python: functions, lambdas, calls of `te.*` and methods of a schedule. [`read`] gives its tree,
//! with a place on every node; what it means is said by `tilewright::te`.
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
    Argument, BinaryOp, CompareOp, Expr, ExprKind, Function, Keyword, LogicOp, Parameter, Program, Stmt, StmtKind,
    Target, TargetKind, UnaryOp,
};

use tilewright_ir::Diagnostic;

/// Reads a TE program.
///
/// # Errors
/// Text that is no Python, and every piece of Python outside the subset, each with its place.
pub fn read(source: &str) -> Result<Program, Vec<Diagnostic>> {
    convert::program(&crate::source::parse_module(source)?)
}
