//! Puts the value of a buffer where it is read: `compute_inline=BUFFER`.
//!
//! ```text
//! t = T.alloc_buffer((n, m), "float32")
//! for i, j in T.grid(n, m):
//!     t[i, j] = A[i, j] * 2              ->       for j, i in T.grid(m, n):
//! for j, i in T.grid(m, n):                           C[j, i] = A[i, j] * 2 + 1
//!     C[j, i] = t[i, j] + 1
//! ```
//!
//! The buffer is written by one store, under no condition, whose index is made of one loop variable for each axis; the buffer and
//! its nest go away. A value that is read several times is computed several times. Cost: a few walks, and the search for the
//! evidence.

use std::convert::Infallible;

use tilewright_ir::visit::{Rewrite, Substitution};
use tilewright_ir::{Buffer, Diagnostic, Expr, Origin, PrimFunc, SharedExpr, Stmt, StmtKind, Var, sabotage};
use tilewright_verify::reorder::Statement;

use super::super::Rewritten;
use super::buffers::{allocated, loads, unallocated};
use super::claims::{Claim, unchanged};
use super::producer::{Producer, producer};
use super::{applied, fault};

/// Applies the first step `compute_inline` of the schedule.
///
/// # Errors
/// `schedule`: the step names no buffer that the function allocates, the buffer is not written by one such store, or it is read by
/// vectors.
///
/// ```
/// use tilewright_compiler::passes::compute_inline;
/// let text = r#"
/// @T.prim_func
/// def main(A: T.Buffer((5, 7), "float32"), C: T.Buffer((7, 5), "float32")):
///     T.func_attr({"schedule": ["compute_inline=t"]})
///     t = T.alloc_buffer((5, 7), "float32")
///     for i, j in T.grid(5, 7):
///         t[i, j] = A[i, j] * T.float32(2)
///     for j, i in T.grid(7, 5):
///         C[j, i] = t[i, j] + T.float32(1)
/// "#;
/// let func = tilewright_script::read_module(text)?.funcs.remove(0);
/// let printed = tilewright_script::print_func(&compute_inline(&func)?.func);
/// let body: Vec<&str> = printed.lines().skip(2).map(str::trim).collect();
/// assert_eq!(body, ["for j, i in T.grid(7, 5):", "C[j, i] = A[i, j] * T.float32(2.0) + T.float32(1.0)"]);
/// # Ok::<(), Vec<tilewright_ir::Diagnostic>>(())
/// ```
pub fn compute_inline(func: &PrimFunc) -> Result<Rewritten, Vec<Diagnostic>> {
    applied("compute_inline", func, &|func, argument| {
        let buffer = allocated(func, argument)?;
        let Producer { nests, rest, .. } = producer(func, &buffer)?;
        let element = match nests.as_slice() {
            [nest] => element(nest, &buffer)?,
            _ => return Err(not_inline(&buffer, "it is computed by several nests")),
        };
        if reads_lanes(&rest.body, &buffer) {
            return Err(not_inline(&buffer, "it is read by vectors"));
        }
        let Ok(body) = Inline { buffer: &buffer, element: &element }.stmt(&rest.body);
        let body = unallocated(&body, &buffer);
        Ok((body, Claim::Values(Box::new(move |old, _| Some(origins(old, &buffer))))))
    })
}

/// What each store after is: a store before, with the values of the buffer computed there.
fn origins(old: &[Statement], buffer: &Buffer) -> Vec<Origin> {
    let (inlined, others): (Vec<_>, Vec<_>) =
        old.iter().enumerate().partition(|(_, store): &(usize, &Statement)| store.buffer == *buffer);
    let opened: Vec<usize> = inlined.iter().map(|(position, _)| *position).collect();
    let origin =
        |(position, store): (usize, &Statement)| Origin { opened_before: opened.clone(), ..unchanged(position, store) };
    others.into_iter().map(origin).collect()
}

fn not_inline(buffer: &Buffer, why: &str) -> Diagnostic {
    let help = "it takes one store, under no condition, with one loop variable for each index";
    fault(format!("`{buffer}` cannot be inlined: {why}"), help)
}

/// The value of an element in terms of its indices.
struct Element {
    index: Vec<Var>,
    value: Expr,
}

/// What a nest of loops stores.
fn element(nest: &Stmt, buffer: &Buffer) -> Result<Element, Diagnostic> {
    let (mut stmt, mut bound) = (nest, Vec::new());
    let (indices, value) = loop {
        match &stmt.kind {
            StmtKind::For(inner) => {
                bound.push(&inner.var);
                stmt = &inner.body;
            }
            StmtKind::Store { indices, value, .. } => break (indices, value),
            _ => return Err(not_inline(buffer, "its store is under a condition, or one of several")),
        }
    };
    let as_var = |index: &Expr| match index {
        Expr::Var(var) if bound.contains(&var) => Some(var.clone()),
        _ => None,
    };
    let index: Option<Vec<Var>> = indices.iter().map(as_var).collect();
    let index = index.ok_or_else(|| not_inline(buffer, "an index of its store is no loop variable"))?;
    let is_twice = index.iter().enumerate().any(|(at, var)| index[..at].contains(var));
    if is_twice || loads(value, buffer) || index.len() != bound.len() {
        return Err(not_inline(buffer, "it is a reduction, or its elements are written several times"));
    }
    Ok(Element { index, value: value.clone() })
}

/// Whether several elements are loaded at once.
fn reads_lanes(stmt: &Stmt, buffer: &Buffer) -> bool {
    let mut found = false;
    stmt.walk(&mut |stmt| {
        for expr in stmt.exprs() {
            expr.walk(&mut |part| {
                if let Expr::Load { buffer: read, indices } = part {
                    found |= read == buffer && indices.iter().any(|index| !index.dtype().is_scalar());
                }
            });
        }
    });
    found
}

/// Replaces loads by values.
struct Inline<'a> {
    buffer: &'a Buffer,
    element: &'a Element,
}

impl Rewrite for Inline<'_> {
    type Error = Infallible;

    fn expr(&mut self, expr: &Expr) -> Result<Expr, Infallible> {
        let rewritten = self.expr_children(expr)?;
        match &rewritten {
            Expr::Load { buffer, indices } if buffer == self.buffer => {
                let mut at: Vec<Expr> = indices.to_vec();
                if sabotage::on("inline-swaps-axes") {
                    at.reverse();
                }
                let typed = self.element.index.iter().zip(at).map(|(var, at)| {
                    if at.dtype() == var.dtype() { at } else { Expr::Cast(var.dtype(), SharedExpr::new(at)) }
                });
                Ok(Substitution::new(&self.element.index, typed).apply(&self.element.value))
            }
            _ => Ok(rewritten),
        }
    }
}
