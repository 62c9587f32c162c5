//! Removes statements that do nothing (TVM's `RemoveNoOp`).
//!
//! ```text
//! for i in range(n):                    for i in range(n):
//!     x: T.let = i * 2                      if i >= 4:
//!     if i < 4:                                 B[i] = A[i]
//!         pass                     ->
//!     else:
//!         B[i] = A[i]
//!     for j in range(0):
//!         B[j] = A[i]
//! ```
//!
//! These are loops without iterations, loops and branches with nothing in them, branches that are never taken, names that are not used,
//! values that are evaluated for nothing, and allocations of memory that nothing touches. What may trap stays: a condition or a value that
//! reads memory, divides or shifts, and assertions. A store of the value that an element has already is no statement without effect,
//! since the element may have none. Cost: one walk, and one for each name.

use std::convert::Infallible;
use std::sync::Arc;

use tilewright_algebra::{Ranges, negate, simplify};
use tilewright_ir::visit::Rewrite;
use tilewright_ir::{Buffer, Diagnostic, Evidence, Expr, For, PrimFunc, Stmt, StmtKind, Traps, Var, sabotage};

use super::provenance::{Provenance, unchanged};
use super::remap::{inside, symbol_ranges};
use super::schedule::unroll::{numbered, numbers};
use super::{Rewritten, lower_blocks, schedule};

/// Removes statements without effect.
///
/// # Errors
/// `blocks`: the function has blocks.
///
/// ```
/// use tilewright_compiler::passes::remove_no_op;
/// let text = r#"
/// @T.prim_func
/// def main(A: T.Buffer((7,), "float32"), B: T.Buffer((7,), "float32")):
///     for i in range(7):
///         if i < 4:
///             T.evaluate(0)
///         else:
///             B[i] = A[i]
///         for j in range(0):
///             B[j] = A[i]
/// "#;
/// let func = tilewright_script::read_module(text)?.funcs.remove(0);
/// let printed = tilewright_script::print_func(&remove_no_op(&func)?.func);
/// let body: Vec<&str> = printed.lines().skip(2).map(str::trim).collect();
/// assert_eq!(body, ["for i in range(7):", "if i >= 4:", "B[i] = A[i]"]);
/// # Ok::<(), Vec<tilewright_ir::Diagnostic>>(())
/// ```
pub fn remove_no_op(func: &PrimFunc) -> Result<Rewritten, Vec<Diagnostic>> {
    lower_blocks::refuse(func, "remove_no_op")?;
    let mut provenance = match Provenance::of(func, "remove_no_op") {
        Ok(provenance) => provenance,
        Err(note) => return Ok(unchanged(func, "remove_no_op", note)),
    };
    let body = without_no_op(&func.body, &symbol_ranges(func));
    let after = PrimFunc { body, ..func.clone() };
    if !tilewright_ir::equal::funcs_equal(func, &after, false) {
        // The stores that are left, by their numbers.
        let kept = numbers(&without_no_op(&numbered(&func.body), &symbol_ranges(func)));
        provenance.step(&after, |old, new| schedule::claims::selected(&kept, old, new));
    }
    let evidence = Evidence { pass: "remove_no_op".to_owned(), ..Evidence::default() };
    let comparison = provenance.comparison(func, &after, &evidence);
    Ok(Rewritten { func: after, evidence: Evidence { comparison, ..evidence }, notes: Vec::new() })
}

/// Returns a statement without the parts of it that do nothing; an empty sequence if nothing is left.
pub(super) fn without_no_op(stmt: &Stmt, ranges: &Ranges) -> Stmt {
    let Ok(stmt) = Remove { ranges: ranges.clone() }.stmt(stmt);
    stmt
}

/// Whether a statement is an empty sequence.
pub(super) fn is_empty(stmt: &Stmt) -> bool {
    matches!(&stmt.kind, StmtKind::Seq(parts) if parts.iter().all(is_empty))
}

/// The rewrite, with what is known of variables at the current statement.
struct Remove {
    ranges: Ranges,
}

impl Remove {
    /// A loop, or nothing.
    fn in_loop(&mut self, inner: &For, stmt: &Stmt) -> Stmt {
        let n_iterations = simplify(&inner.extent, &self.ranges).as_const_int();
        let most = i128::from(sabotage::on("remove-no-op-takes-single-loops"));
        let has_none = n_iterations.is_some_and(|n_iterations| n_iterations <= most) && is_harmless(&inner.extent);
        if has_none && is_harmless(&inner.min) {
            return nothing();
        }
        let outer = self.ranges.clone();
        self.ranges = inside(&outer, inner);
        let Ok(body) = self.stmt(&inner.body);
        self.ranges = outer;
        if is_empty(&body) && is_harmless(&inner.min) && is_harmless(&inner.extent) {
            return nothing();
        }
        Stmt::new(StmtKind::For(For { body, ..inner.clone() }.into())).at(stmt.span)
    }

    /// A branch, or what is left of it.
    fn branch(&mut self, cond: &Expr, bodies: [Option<&Arc<Stmt>>; 2], stmt: &Stmt) -> Stmt {
        let [then_body, else_body] = bodies.map(|body| {
            let Ok(body) = body.map_or_else(|| Ok(nothing()), |body| self.stmt(body));
            body
        });
        let known = if is_harmless(cond) { simplify(cond, &self.ranges).as_const_int() } else { None };
        match (known, is_empty(&then_body), is_empty(&else_body)) {
            (Some(0), ..) => else_body,
            (Some(_), ..) => then_body,
            (None, true, true) if is_harmless(cond) => nothing(),
            (None, true, false) if sabotage::on("remove-no-op-forgets-else") => Stmt::guarded(cond.clone(), else_body),
            (None, true, false) => Stmt::guarded(negate(cond), else_body).at(stmt.span),
            (None, _, true) => Stmt::guarded(cond.clone(), then_body).at(stmt.span),
            (None, _, false) => {
                let (then_body, else_body) = (Arc::new(then_body), Some(Arc::new(else_body)));
                Stmt::new(StmtKind::If { cond: cond.clone(), then_body, else_body }).at(stmt.span)
            }
        }
    }
}

impl Rewrite for Remove {
    type Error = Infallible;

    fn stmt(&mut self, stmt: &Stmt) -> Result<Stmt, Infallible> {
        Ok(match &stmt.kind {
            StmtKind::For(inner) => self.in_loop(inner, stmt),
            StmtKind::If { cond, then_body, else_body } => {
                self.branch(cond, [Some(then_body), else_body.as_ref()], stmt)
            }
            StmtKind::Seq(parts) => {
                let parts = parts.iter().map(|part| self.stmt(part)).collect::<Result<Vec<_>, _>>()?;
                Stmt::seq(parts.into_iter().filter(|part| !is_empty(part)).collect()).at(stmt.span)
            }
            StmtKind::Let { var, value, body } => {
                let body = self.stmt(body)?;
                if is_harmless(value) && !uses_var(&body, var) {
                    return Ok(body);
                }
                let (var, value, body) = (var.clone(), value.clone(), Arc::new(body));
                Stmt::new(StmtKind::Let { var, value, body }).at(stmt.span)
            }
            StmtKind::Evaluate(value) if is_harmless(value) => nothing(),
            StmtKind::Allocate { buffer, body } => {
                let body = self.stmt(body)?;
                if !touches(&body, buffer) {
                    return Ok(body);
                }
                Stmt::new(StmtKind::Allocate { buffer: buffer.clone(), body: Arc::new(body) }).at(stmt.span)
            }
            StmtKind::DeclBuffer { .. } | StmtKind::Attr { .. } => {
                let stmt = self.stmt_children(stmt)?;
                if stmt.children().all(is_empty) { nothing() } else { stmt }
            }
            StmtKind::Evaluate(_) | StmtKind::Store { .. } | StmtKind::Barrier | StmtKind::Assert { .. } => {
                stmt.clone()
            }
        })
    }
}

fn nothing() -> Stmt {
    Stmt::seq(Vec::new())
}

/// Whether an expression has a value in any case: it reads no memory, and nothing in it can trap.
fn is_harmless(expr: &Expr) -> bool {
    let mut is_harmless = true;
    expr.walk(&mut |part| {
        is_harmless &= match part {
            Expr::Load { .. } => false,
            Expr::Binary(op, _, by) => match op.traps() {
                Traps::Never => true,
                Traps::ZeroDivisor => by.as_const_int().is_some_and(|by| by != 0),
                Traps::ShiftAmount => by.as_const_int().is_some_and(|by| (0..8).contains(&by)),
            },
            _ => true,
        };
    });
    is_harmless
}

/// Whether a statement uses a variable, shapes of buffers that it declares included.
fn uses_var(stmt: &Stmt, var: &Var) -> bool {
    let has = |expr: &Expr| expr.vars().contains(var);
    let declares = |buffer: &Buffer| {
        let strides = buffer.strides.iter().flatten();
        buffer.shape.iter().chain(strides).chain([&buffer.elem_offset]).any(has)
    };
    let mut found = false;
    stmt.walk(&mut |part| {
        found |= part.exprs().any(has);
        found |= match &part.kind {
            StmtKind::Allocate { buffer, .. } | StmtKind::DeclBuffer { buffer, .. } => declares(buffer),
            StmtKind::Attr { .. } => true,
            _ => false,
        };
    });
    found
}

/// Whether a statement reads, writes or declares a view of the memory of a buffer.
fn touches(stmt: &Stmt, memory: &Buffer) -> bool {
    let mut found = false;
    stmt.walk(&mut |part| {
        found |= match &part.kind {
            StmtKind::Store { buffer, .. } | StmtKind::DeclBuffer { buffer, .. } => buffer.aliases(memory),
            _ => false,
        };
        for expr in part.exprs() {
            expr.walk(&mut |part| found |= matches!(part, Expr::Load { buffer, .. } if buffer.aliases(memory)));
        }
    });
    found
}
