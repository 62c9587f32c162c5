//! Statements as one line of text, for messages.

use tilewright_ir::{Buffer, Expr, Stmt, StmtKind};

/// Expressions separated by commas.
fn list(items: &[Expr]) -> String {
    items.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// Name, element type and shape of a buffer.
fn declared(buffer: &Buffer) -> String {
    format!("{buffer}: {}[{}]", buffer.dtype, list(&buffer.shape))
}

/// The first line of a statement, without its body.
pub(crate) fn statement_head(stmt: &Stmt) -> String {
    match &stmt.kind {
        StmtKind::For(inner) => format!("for {} in {} for {} iterations", inner.var, inner.min, inner.extent),
        StmtKind::Store { buffer, indices, value } => format!("{buffer}[{}] = {value}", list(indices)),
        StmtKind::Allocate { buffer, .. } => format!("allocate {}", declared(buffer)),
        StmtKind::DeclBuffer { buffer, .. } => format!("declare {}", declared(buffer)),
        StmtKind::If { cond, .. } => format!("if {cond}"),
        StmtKind::Let { var, value, .. } => format!("{var} = {value}"),
        StmtKind::Seq(_) => "a sequence".to_owned(),
        StmtKind::Evaluate(expr) => expr.to_string(),
        StmtKind::Barrier => "barrier".to_owned(),
        StmtKind::Attr { key, .. } => format!("attribute {key}"),
        StmtKind::Assert { cond, is_assumed: true, .. } => format!("assume {cond}"),
        StmtKind::Assert { cond, .. } => format!("assert {cond}"),
    }
}

/// The message of a trap where a condition does not hold: the program asserts it, or its caller guarantees it.
pub(crate) fn failed_assertion(message: &str, is_assumed: bool) -> String {
    if is_assumed {
        format!("the call breaks an assumption of the function: {message}")
    } else {
        format!("assertion failed: {message}")
    }
}
