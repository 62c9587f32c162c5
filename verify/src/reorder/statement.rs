//! The stores of a program, each with everything that decides when it runs.
//!
//! ```text
//! for i in n:              position 0 of the body
//!     A[i] = 0             position 0 inside the loop over i             place [0, 0], path Loop(i)
//!     if i < m:
//!         for j in k:      position 1 inside the loop over i
//!             B[i, j] = 1  position 0 inside the loop over j             place [0, 1, 0], path Loop(i), Guard(i < m), Loop(j)
//! ```
//!
//! Iterations of two stores run in the order of their places and loop values, alternating: `[0, i, 0]` before
//! `[0, i, 1, j, 0]`. Names for values are replaced by the values.

use std::sync::Arc;

use tilewright_ir::visit::Substitution;
use tilewright_ir::{BinaryOp, Buffer, Expr, For, PrimFunc, Span, Stmt, StmtKind, Traps, Var};

use super::conditions::{is_known, is_known_extent};
use crate::path::{Path, Step};
use crate::words::describe;

/// Stores that one program may have: there are goals for each pair of them.
const MOST: usize = 400;

/// Operations that the value of a name may have.
const MOST_NODES: usize = 2000;

/// A store, and the loops and conditions around it.
#[derive(Clone, Debug)]
pub struct Statement {
    /// The loops and conditions; no names.
    pub path: Path,
    /// The position in the body, and inside each loop, outermost first.
    pub place: Vec<usize>,
    /// The buffer that is written.
    pub buffer: Buffer,
    /// The index of the element.
    pub indices: Vec<Expr>,
    /// What is written.
    pub value: Expr,
    /// The store as text.
    pub subject: String,
    /// The place in the source text.
    pub span: Option<Span>,
}

impl Statement {
    /// The variables of the loops, outermost first.
    pub fn loops(&self) -> Vec<Var> {
        self.path.loops()
    }

    /// The loops that two stores have in common.
    pub(crate) fn shared_loops(&self, other: &Self) -> usize {
        let same = self.place.iter().zip(&other.place).take_while(|(a, b)| a == b).count();
        same.min(self.place.len() - 1).min(other.place.len() - 1)
    }

    /// Whether this store comes before another one inside the loops that they have in common.
    pub(crate) fn is_before(&self, other: &Self) -> bool {
        self.place < other.place
    }

    /// The elements that it touches whenever it runs, as far as that is seen: not those under a condition inside of the value.
    pub(crate) fn always_touches(&self) -> Vec<Touch> {
        let mut found = Vec::new();
        always_loads(&self.value, &mut found);
        found.push(Touch { buffer: self.buffer.clone(), indices: self.indices.clone(), writes: true });
        found
    }

    /// The elements that it touches: what it reads, and last what it writes.
    pub(crate) fn touches(&self) -> Vec<Touch> {
        let mut found: Vec<Touch> = Vec::new();
        for expr in self.indices.iter().chain([&self.value]) {
            expr.walk(&mut |part| {
                if let Expr::Load { buffer, indices } = part {
                    found.push(Touch { buffer: buffer.clone(), indices: indices.to_vec(), writes: false });
                }
            });
        }
        found.push(Touch { buffer: self.buffer.clone(), indices: self.indices.clone(), writes: true });
        found
    }
}

/// The loads that the value of an expression takes in any case: not under a condition.
fn always_loads(expr: &Expr, found: &mut Vec<Touch>) {
    match expr {
        Expr::Load { buffer, indices } => {
            found.push(Touch { buffer: buffer.clone(), indices: indices.to_vec(), writes: false });
        }
        Expr::Binary(BinaryOp::And | BinaryOp::Or, first, _) => always_loads(first, found),
        Expr::Binary(_, a, b) => [a, b].into_iter().for_each(|part| always_loads(part, found)),
        Expr::Unary(_, part) | Expr::Cast(_, part) => always_loads(part, found),
        Expr::Call(_, args) => args.iter().for_each(|part| always_loads(part, found)),
        Expr::Int { .. }
        | Expr::Float { .. }
        | Expr::Var(_)
        | Expr::Select(..)
        | Expr::IfThenElse(..)
        | Expr::Ramp { .. }
        | Expr::Broadcast { .. } => {}
    }
}

/// An element that a store reads or writes.
#[derive(Clone, Debug)]
pub(crate) struct Touch {
    pub(crate) buffer: Buffer,
    pub(crate) indices: Vec<Expr>,
    pub(crate) writes: bool,
}

impl Touch {
    /// What holds if both touch the same element: that their indices are equal, axis by axis. Nothing if the same element may have
    /// different indices (views, strides, vectors). The loops of each instance are given by a substitution.
    pub(crate) fn same_element(&self, other: &Self, one: &Substitution, two: &Substitution) -> Vec<Expr> {
        let is_plain = |touch: &Self| touch.indices.iter().all(|index| index.dtype().is_scalar());
        if self.buffer != other.buffer || self.buffer.strides.is_some() || !is_plain(self) || !is_plain(other) {
            return Vec::new();
        }
        let pairs = self.indices.iter().zip(&other.indices);
        pairs.map(|(a, b)| super::equals(one.apply(a), two.apply(b))).collect()
    }
}

/// The stores of a program, and what it asserts before it does anything else.
#[derive(Clone, Debug)]
pub struct Program {
    /// The stores in program order.
    pub statements: Vec<Statement>,
    /// What is asserted at the start.
    pub asserted: Vec<Expr>,
    /// The buffers that are allocated, each with the number of loops around the allocation.
    pub allocated: Vec<(Buffer, usize)>,
}

/// The stores of a program.
///
/// # Errors
/// What does not fit: an assertion behind a store, a condition that reads memory that may be written, too many stores.
pub fn program(func: &PrimFunc) -> Result<Program, String> {
    let found = Program { statements: Vec::new(), asserted: Vec::new(), allocated: Vec::new() };
    let path = Path::of(func);
    let params = func.buffer_map.iter().map(|(_, buffer)| buffer.clone()).collect();
    let mut walk = Walk { found, path, params, place: vec![0], values: Substitution::default() };
    walk.stmt(&func.body)?;
    Ok(walk.found)
}

struct Walk {
    found: Program,
    path: Path,
    /// The buffers of the parameters.
    params: Vec<Buffer>,
    /// The position of the next statement inside each loop around it.
    place: Vec<usize>,
    /// The values of names.
    values: Substitution,
}

impl Walk {
    fn stmt(&mut self, stmt: &Stmt) -> Result<(), String> {
        match &stmt.kind {
            StmtKind::For(inner) => self.in_loop(inner),
            StmtKind::Store { buffer, indices, value } => {
                if self.found.statements.len() == MOST {
                    return Err(format!("the program has more than {MOST} stores"));
                }
                let of = |expr: &Expr| self.values.apply(expr);
                self.found.statements.push(Statement {
                    path: self.path.clone(),
                    place: self.place.clone(),
                    buffer: buffer.clone(),
                    indices: indices.iter().map(of).collect(),
                    value: of(value),
                    subject: describe(stmt),
                    span: stmt.span,
                });
                self.next();
                Ok(())
            }
            StmtKind::If { cond, then_body, else_body } => {
                let cond = self.values.apply(cond);
                self.decides(&cond)?;
                let depth = self.path.steps.len();
                for (body, holds) in [(Some(then_body), true), (else_body.as_ref(), false)] {
                    self.path.steps.push(Step::Guard(cond.clone(), holds));
                    body.map_or(Ok(()), |body| self.stmt(body))?;
                    self.path.steps.truncate(depth);
                }
                Ok(())
            }
            StmtKind::Let { var, value, body } => {
                let value = self.values.apply(value);
                if value.reads_memory() && !is_kept(var, &value, body) {
                    return Err(format!(
                        "`{var}` is loaded, and not used in any case, or not before the memory is written"
                    ));
                }
                if !is_small(&value) {
                    return Err(format!("the value of `{var}` has more than {MOST_NODES} operations"));
                }
                self.values.insert(var, value);
                self.stmt(body)
            }
            StmtKind::Seq(stmts) => stmts.iter().try_for_each(|stmt| self.stmt(stmt)),
            StmtKind::Allocate { buffer, body } => {
                self.found.allocated.push((buffer.clone(), self.place.len() - 1));
                self.stmt(body)
            }
            StmtKind::DeclBuffer { body, .. } | StmtKind::Attr { body, .. } => self.stmt(body),
            StmtKind::Assert { cond, .. } => self.assertion(cond),
            StmtKind::Barrier => Err("threads wait for each other at a barrier".into()),
            // A constant or a variable has a value and no effect.
            StmtKind::Evaluate(Expr::Int { .. } | Expr::Float { .. } | Expr::Var(_)) => Ok(()),
            StmtKind::Evaluate(expr) => Err(format!("`{expr}` is evaluated and discarded")),
        }
    }

    /// What decides whether a store runs depends on parameters and loop variables, and on memory of the caller that is never written.
    /// Arithmetic on loaded values may wrap, so that only they themselves are looked at.
    fn decides(&self, cond: &Expr) -> Result<(), String> {
        if is_known(cond, &self.inputs()) { Ok(()) } else { known(cond) }
    }

    /// The memory of the caller that is never written.
    fn inputs(&self) -> Vec<Buffer> {
        let inputs = self.path.constant.iter().filter(|buffer| self.params.contains(buffer));
        inputs.cloned().collect()
    }

    fn in_loop(&mut self, inner: &For) -> Result<(), String> {
        let (min, extent) = (self.values.apply(&inner.min), self.values.apply(&inner.extent));
        known(&min)?;
        // A first value behind 0 is added to the extent.
        let is_from_zero = min.as_const_int() == Some(0);
        if !(is_from_zero && is_known_extent(&extent, &self.inputs())) {
            known(&extent)?;
        }
        let depth = self.path.steps.len();
        self.path.steps.push(Step::Loop(inner.var.clone(), min, extent));
        self.place.push(0);
        self.stmt(&inner.body)?;
        self.place.pop();
        self.path.steps.truncate(depth);
        self.next();
        Ok(())
    }

    /// The position behind the statement that was looked at.
    fn next(&mut self) {
        if let Some(place) = self.place.last_mut() {
            *place += 1;
        }
    }

    /// An assertion at the start, of which every call knows whether it holds.
    fn assertion(&mut self, cond: &Expr) -> Result<(), String> {
        let cond = self.values.apply(cond);
        known(&cond)?;
        if !self.found.statements.is_empty() || self.path.steps.iter().any(|step| !self.is_asserted(step)) {
            return Err(format!("`{cond}` is asserted behind a store, in a loop or under a condition"));
        }
        self.found.asserted.push(cond.clone());
        self.path.steps.push(Step::Guard(cond, true));
        Ok(())
    }

    fn is_asserted(&self, step: &Step) -> bool {
        matches!(step, Step::Guard(cond, true) if self.found.asserted.contains(cond))
    }
}

/// What decides whether a store runs depends on parameters and loop variables alone.
fn known(expr: &Expr) -> Result<(), String> {
    if expr.reads_memory() { Err(format!("`{expr}` reads memory, and decides what runs")) } else { Ok(()) }
}

/// Whether a name may be replaced by its value: the value is asked for in any case, and nothing that it reads is written before.
pub(crate) fn is_kept(var: &Var, value: &Expr, body: &Arc<Stmt>) -> bool {
    stays(var, value, body) && is_needed(var, body)
}

/// Whether a name is used in any case: not under a condition. The load of its value is then made where the name is used, and is
/// compared there; a load that nobody needs would be lost, and memory that was never written has no value.
fn is_needed(var: &Var, body: &Stmt) -> bool {
    match &body.kind {
        StmtKind::Store { indices, value, .. } => indices.iter().chain([value]).any(|expr| is_evaluated(var, expr)),
        StmtKind::Let { var: other, value, body } => {
            is_needed(var, body) || (is_evaluated(var, value) && is_needed(other, body))
        }
        StmtKind::DeclBuffer { body, .. } | StmtKind::Attr { body, .. } => is_needed(var, body),
        StmtKind::Seq(stmts) => stmts.iter().any(|stmt| is_needed(var, stmt)),
        // Such a loop has a first iteration.
        StmtKind::For(inner) => {
            inner.extent.as_const_int().is_some_and(|extent| extent > 0) && is_needed(var, &inner.body)
        }
        StmtKind::If { .. }
        | StmtKind::Allocate { .. }
        | StmtKind::Evaluate(_)
        | StmtKind::Barrier
        | StmtKind::Assert { .. } => false,
    }
}

/// Whether the value of a variable is asked for whenever an expression is evaluated.
fn is_evaluated(var: &Var, expr: &Expr) -> bool {
    match expr {
        Expr::Var(other) => other == var,
        Expr::IfThenElse(cond, ..) => is_evaluated(var, cond),
        Expr::Binary(BinaryOp::And | BinaryOp::Or, first, _) => is_evaluated(var, first),
        _ => expr.children().any(|child| is_evaluated(var, child)),
    }
}

/// Whether an expression has few operations. Names that stand for values with names make values that are large.
pub fn is_small(expr: &Expr) -> bool {
    fn left(expr: &Expr, budget: usize) -> Option<usize> {
        expr.children().try_fold(budget.checked_sub(1)?, |budget, child| left(child, budget))
    }
    left(expr, MOST_NODES).is_some()
}

/// Whether a loaded value is what memory holds wherever the body uses it, and it has a value in any case: nothing in it can trap,
/// and the body uses it before it writes the memory that the value is read from.
fn stays(var: &Var, value: &Expr, body: &Stmt) -> bool {
    let mut read: Vec<&Buffer> = Vec::new();
    let mut traps = false;
    value.walk(&mut |part| match part {
        Expr::Load { buffer, .. } => read.push(buffer),
        Expr::Binary(op, ..) => traps |= op.traps() != Traps::Never,
        _ => {}
    });
    !traps && is_used_first(var, body, &read, &mut false)
}

/// Whether a statement uses a variable only before it, or what ran before it (`is_written`), writes some memory.
fn is_used_first(var: &Var, stmt: &Stmt, memory: &[&Buffer], is_written: &mut bool) -> bool {
    let writes = |stmt: &Stmt| matches!(&stmt.kind, StmtKind::Store { buffer, .. } if memory.iter().any(|other| other.aliases(buffer)));
    let uses = |stmt: &Stmt| stmt.exprs().into_iter().any(|expr| expr.vars().contains(var));
    if uses(stmt) && *is_written {
        return false;
    }
    // What an iteration writes comes before what the next one uses.
    if let StmtKind::For(inner) = &stmt.kind {
        let (mut writes_some, mut uses_some) = (false, false);
        inner.body.walk(&mut |part| {
            writes_some |= writes(part);
            uses_some |= uses(part);
        });
        if writes_some && uses_some {
            return false;
        }
    }
    let is_first = stmt.children().all(|child| is_used_first(var, child, memory, is_written));
    *is_written |= writes(stmt);
    is_first
}

/// The conditions that an instance lies in the domain of a store, for some values of its loops.
pub fn domain(store: &Statement, at: &Substitution) -> Vec<Expr> {
    // There are no names in the path of a statement; one would be a condition that never holds.
    let of = |step: &Step| step.conditions(at).unwrap_or_else(|| vec![Expr::bool(false)]);
    store.path.steps.iter().flat_map(of).collect()
}
