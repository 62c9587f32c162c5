//! Whole programs: what they lower to, and that what is claimed of the loops is so.

mod claims;
mod errors;
mod programs;
mod schedules;
mod values;

use std::fmt::Write;

use tilewright_ir::{Diagnostic, ForKind, Stmt, StmtKind};

use super::{Lowered, evaluate};

fn lower(source: &str) -> Result<Vec<Lowered>, Vec<Diagnostic>> {
    evaluate(&tilewright_script::te::read(source)?, None)
}

/// The only function of a program that must be right.
fn lower_one(source: &str) -> Lowered {
    let mut lowered = lower(source).unwrap_or_else(|errors| panic!("{errors:#?}"));
    assert_eq!(lowered.len(), 1);
    lowered.remove(0)
}

/// A program over `A` of shape (2, 7, 9), `B` computed from it, with a schedule `s` and then `rest`.
fn scheduled(rest: &str) -> String {
    format!(
        "A = te.placeholder((2, 7, 9))\nB = te.compute(A.shape, lambda i, j, k: A[i, j, k] + 1)\ns = te.create_schedule(B.op)\ni, j, k = s[B].op.axis\n{rest}"
    )
}

/// The body as text, a line a statement.
fn render(lowered: &Lowered) -> String {
    let mut text = String::new();
    render_stmt(&lowered.func.body, 0, &mut text);
    text
}

fn render_stmt(stmt: &Stmt, depth: usize, text: &mut String) {
    let indent = "  ".repeat(depth);
    let mut children = depth + 1;
    match &stmt.kind {
        StmtKind::For(inner) => {
            let kind = match inner.kind {
                ForKind::Serial => String::new(),
                ForKind::Parallel => " parallel".to_owned(),
                ForKind::Vectorized => " vectorized".to_owned(),
                ForKind::Unrolled => " unrolled".to_owned(),
                ForKind::ThreadBinding(tag) => format!(" {tag}"),
            };
            writeln!(text, "{indent}for {} < {}{kind}", inner.var, inner.extent).unwrap();
        }
        StmtKind::Store { buffer, indices, value } => {
            let indices: Vec<_> = indices.iter().map(ToString::to_string).collect();
            writeln!(text, "{indent}{buffer}[{}] = {value}", indices.join(", ")).unwrap();
        }
        StmtKind::Allocate { buffer, .. } => {
            let shape: Vec<_> = buffer.shape.iter().map(ToString::to_string).collect();
            writeln!(text, "{indent}allocate {buffer}[{}] {}", shape.join(", "), buffer.scope).unwrap();
        }
        StmtKind::If { cond, .. } => writeln!(text, "{indent}if {cond}").unwrap(),
        StmtKind::Seq(_) => children = depth,
        other => panic!("the lowering makes no such statement: {other:?}"),
    }
    for child in stmt.children() {
        render_stmt(child, children, text);
    }
}

#[test]
fn an_elementwise_stage_is_one_nest() {
    let lowered = lower_one(&scheduled(""));
    let expected = "for i < 2\n  for j < 7\n    for k < 9\n      B[i, j, k] = A[i, j, k] + 1.0\n";
    assert_eq!(render(&lowered), expected);
    assert_eq!(lowered.func.name, "main");
    let names: Vec<_> = lowered.func.buffer_map.iter().map(|(_, buffer)| buffer.name.clone()).collect();
    assert_eq!(names, ["A", "B"], "tensors without a name take that of their variable");
}
