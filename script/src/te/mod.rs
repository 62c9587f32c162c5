//! The TE dialect as a syntax tree.
//!
//! A TE program is Python: functions, lambdas, calls of `te.*` and methods of a schedule. [`read`] returns its syntax
//! tree with a source location on every node. Evaluating the tree, which builds a definition and a schedule, is the
//! task of the compiler crate.
//!
//! # Accepted programs
//! - Statements: `import`, `def`, `return`, assignments to names and tuples of names, `+=` and the like, `if`, `for`,
//!   `pass`, `break`, `continue`, and expressions.
//! - Definitions in TVMScript, of which only the name is kept: [`crate::tvmscript::read_scripted`] reads them.
//! - Functions with positional parameters, defaults and `*args`; lambdas.
//! - Expressions: names, numbers, strings, `None`, `...`, lists, tuples, dictionaries, subscripts and slices, attributes,
//!   calls with positional, `*` and keyword arguments, arithmetic, bitwise, comparison and logical operators,
//!   conditionals, and list comprehensions.
//!
//! Everything else is an error: `while`, `class`, `with`, `try`, decorators, `async`, sets, formatted strings and so on.
//! Integers fit into 64 bits, and nesting is limited, since the evaluator recurses over the tree.
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
