//! The execution of a statement: program order, and one iteration of a loop of any kind after the other.

use tilewright_ir::{For, Scalar, Stmt, StmtKind};

use super::Interpreter;
use super::expr::is_true;
use super::memory::encode;
use crate::config::{RunError as Stop, TrapKind};

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
                self.allocate(buffer).map_err(|why| self.trap(TrapKind::Size, why))?;
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
            StmtKind::Attr { body, .. } => self.execute(body),
            StmtKind::Assert { cond, message } => {
                let failed = || format!("assertion failed: {message}");
                if is_true(self.scalar(cond)?) { Ok(()) } else { Err(self.trap(TrapKind::Assertion, failed())) }
            }
        }
    }

    /// Runs the iterations of a loop. Fuel for all of them is taken before the first one starts.
    fn for_loop(&mut self, inner: &'a For) -> Result<(), Stop> {
        let mut integer = |expr| self.scalar(expr).map(|value| value.as_int().unwrap_or_default());
        let (min, extent) = (integer(&inner.min)?, integer(&inner.extent)?);
        let Some(count) = u64::try_from(extent).ok().filter(|count| *count > 0) else { return Ok(()) };
        let (ty, last) = (inner.var.dtype().scalar, min + extent - 1);
        let (low, high) = ty.integer_range().unwrap_or((0, 0));
        if min < low || last > high {
            let message = format!("the loop's values {min} to {last} leave its variable's type {ty}");
            return Err(self.trap(TrapKind::LoopRange, message));
        }
        let started = self.iterations.saturating_add(count);
        if let Some(fuel) = self.config.fuel.filter(|fuel| started > *fuel) {
            let message = format!("the loop would start {count} iterations, more than are left of {fuel}");
            return Err(self.trap(TrapKind::FuelExhausted, message));
        }
        self.iterations = started;
        for value in min..=last {
            self.vars.insert(inner.var.clone(), vec![Scalar::Int(value)]);
            self.loops.push((inner.var.name().to_owned(), value));
            self.execute(&inner.body)?;
            self.loops.pop();
        }
        Ok(())
    }
}
