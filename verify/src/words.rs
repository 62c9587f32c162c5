//! Statements in the words of reports. No decision depends on them.

use tilewright_ir::{Expr, Stmt, StmtKind};

/// One line for a statement.
pub(crate) fn describe(stmt: &Stmt) -> String {
    let text = match &stmt.kind {
        StmtKind::Store { buffer, indices, .. } => format!("{} = ...", Expr::load(buffer, indices.clone())),
        StmtKind::For(inner) => format!("for {} in {}", inner.var, inner.extent),
        StmtKind::If { cond, .. } => format!("if {cond}"),
        StmtKind::Let { var, value, .. } => format!("{var} = {value}"),
        StmtKind::Assert { cond, is_assumed: true, .. } => format!("assume {cond}"),
        StmtKind::Assert { cond, .. } => format!("assert {cond}"),
        StmtKind::Evaluate(expr) => expr.to_string(),
        StmtKind::Barrier => "barrier".to_owned(),
        StmtKind::Allocate { buffer, .. } => format!("allocate {buffer}"),
        StmtKind::DeclBuffer { buffer, .. } => format!("declare {buffer}"),
        StmtKind::Seq(_) => "sequence".to_owned(),
        StmtKind::Attr { key, .. } => format!("attribute {key}"),
    };
    if text.chars().count() > 120 { text.chars().take(117).chain("...".chars()).collect() } else { text }
}
