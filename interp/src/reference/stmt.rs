//! The execution of a statement: program order, and one iteration of a loop of any kind after the other.

use tilewright_ir::phases::group_loop;
use tilewright_ir::{For, Scalar, Stmt, StmtKind};

use super::Interpreter;
use super::expr::is_true;
use super::memory::encode;
use crate::config::{RunError as Stop, TrapKind};
use crate::statement_head::failed_assertion;

impl<'a> Interpreter<'a> {
    /// Executes a statement. Traps in its own expressions, all of which are evaluated before its body, belong to it.
    pub(super) fn execute(&mut self, stmt: &'a Stmt) -> Result<(), Stop> {
        let span = self.span;
        self.enter()?;
        (self.stmt, self.span) = (stmt, stmt.span.or(span));
        self.execute_kind(stmt)?;
        (self.depth, self.span) = (self.depth - 1, span);
        Ok(())
    }

    fn execute_kind(&mut self, stmt: &'a Stmt) -> Result<(), Stop> {
        match &stmt.kind {
            StmtKind::For(_) if group_loop(stmt).is_some() => self.group(stmt),
            StmtKind::For(inner) => self.for_loop(inner),
            StmtKind::Store { buffer, indices, value } => {
                let indices = self.values(&Vec::from_iter(indices), None)?;
                let value = self.value(value, None)?;
                value.iter().enumerate().try_for_each(|(lane, value)| {
                    self.write(buffer, &indices, lane, &encode(buffer.dtype.scalar, *value))
                })
            }
            StmtKind::Allocate { buffer, body } => {
                let live = self.live;
                self.allocate(buffer).map_err(|(kind, why)| self.trap(kind, why))?;
                self.execute(body)?;
                self.memories.remove(&buffer.data);
                self.live = live;
                Ok(())
            }
            StmtKind::DeclBuffer { buffer, body } => {
                self.layout(buffer).map_err(|why| self.trap(TrapKind::Size, why))?;
                self.execute(body)
            }
            StmtKind::If { cond, then_body, else_body } => {
                let chosen = if is_true(self.scalar(cond)?) { Some(then_body) } else { else_body.as_ref() };
                chosen.map_or(Ok(()), |body| self.execute(body))
            }
            StmtKind::Let { var, value, body } => {
                let value = self.value(value, None)?;
                self.vars.insert(var.clone(), value);
                self.execute(body)
            }
            StmtKind::Seq(stmts) => stmts.iter().try_for_each(|stmt| self.execute(stmt)),
            StmtKind::Evaluate(expr) => self.value(expr, None).map(drop),
            // The only thread of a loop that is no group's has nobody to wait for.
            StmtKind::Barrier => Ok(()),
            StmtKind::Attr { body, .. } => self.execute(body),
            StmtKind::Assert { cond, message, is_assumed } => {
                let failed = || failed_assertion(message, *is_assumed);
                if is_true(self.scalar(cond)?) { Ok(()) } else { Err(self.trap(TrapKind::Assertion, failed())) }
            }
        }
    }

    /// The first value of a loop variable and the number of iterations, which is at least 1; `None` if there are none.
    pub(super) fn bounds(&mut self, inner: &For) -> Result<Option<(i128, u64)>, Stop> {
        let mut integer = |expr| self.scalar(expr).map(|value| value.as_int().unwrap_or_default());
        let (min, extent) = (integer(&inner.min)?, integer(&inner.extent)?);
        let Some(count) = u64::try_from(extent).ok().filter(|count| *count > 0) else { return Ok(None) };
        let (ty, last) = (inner.var.dtype().scalar, min + extent - 1);
        let (low, high) = ty.integer_range().unwrap_or((0, 0));
        if min < low || last > high {
            let message = format!("the loop's values {min} to {last} leave its variable's type {ty}");
            return Err(self.trap(TrapKind::LoopRange, message));
        }
        Ok(Some((min, count)))
    }

    /// Takes fuel for iterations before the first of them starts.
    pub(super) fn start(&mut self, count: u64) -> Result<(), Stop> {
        let started = self.iterations.saturating_add(count);
        if let Some(fuel) = self.config.fuel.filter(|fuel| started > *fuel) {
            let message = format!("the loop would start {count} iterations, more than are left of {fuel}");
            return Err(self.trap(TrapKind::FuelExhausted, message));
        }
        self.iterations = started;
        Ok(())
    }

    /// Runs the iterations of a loop.
    fn for_loop(&mut self, inner: &'a For) -> Result<(), Stop> {
        let Some((min, count)) = self.bounds(inner)? else { return Ok(()) };
        self.start(count)?;
        for value in min..min + i128::from(count) {
            self.vars.insert(inner.var.clone(), vec![Scalar::Int(value)]);
            self.loops.push((inner.var.name().to_owned(), value));
            self.execute(&inner.body)?;
            self.loops.pop();
        }
        Ok(())
    }
}
