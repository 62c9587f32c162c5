//! The threads of a group: they run together from barrier to barrier.
//!
//! ```text
//! for tx in 2 (threadIdx.x):      both threads together
//!     S[tx] = A[tx]               thread 0, then thread 1
//!     barrier                     both are here
//!     if n > 3:                   both have to agree, because a barrier is inside
//!         B[tx] = S[1 - tx]       thread 0, then thread 1
//!         barrier
//! ```
//!
//! A thread has variables and memory of its own. Shared memory, and what is around the group, belongs to all threads. The
//! iterations of the loops over threads are counted once for each statement that the threads run one after the other.

use std::collections::HashMap;

use tilewright_ir::phases::is_of_group;
use tilewright_ir::{Buffer, For, ForKind, Scalar, Scope, Stmt, StmtKind, ThreadTag, Var};

use super::expr::is_true;
use super::{Interpreter, Value};
use crate::config::{RunError as Stop, TrapKind};

/// A thread that is not running.
#[derive(Clone)]
struct Thread {
    vars: HashMap<Var, Value>,
    loops: Vec<(String, i128)>,
    /// The memory of the thread: data variables, and the numbers of their memory in [`Interpreter::resting`]. Threads of
    /// loops inside have the same memory.
    memory: Vec<(Var, usize)>,
}

/// Threads that run together.
struct Group {
    threads: Vec<Thread>,
    /// Iterations of the loops over threads.
    iterations: u64,
}

impl<'a> Interpreter<'a> {
    /// Executes an outermost loop over threads with barriers or shared memory inside.
    pub(super) fn group(&mut self, stmt: &'a Stmt) -> Result<(), Stop> {
        let thread = Thread { vars: self.vars.clone(), loops: self.loops.clone(), memory: Vec::new() };
        self.together(stmt, &mut Group { threads: vec![thread], iterations: 0 })
    }

    /// Executes a statement with all threads of a group, of which there is at least one.
    fn together(&mut self, stmt: &'a Stmt, group: &mut Group) -> Result<(), Stop> {
        if !is_of_group(stmt) {
            return self.in_turn(&[stmt], group);
        }
        let span = self.span;
        self.enter()?;
        (self.stmt, self.span) = (stmt, stmt.span.or(span));
        self.together_by_kind(stmt, group)?;
        (self.depth, self.span) = (self.depth - 1, span);
        Ok(())
    }

    fn together_by_kind(&mut self, stmt: &'a Stmt, group: &mut Group) -> Result<(), Stop> {
        match &stmt.kind {
            StmtKind::For(inner) => self.loop_together(stmt, inner, group),
            StmtKind::Seq(stmts) => {
                // As many statements as possible are run by one thread after the other.
                let mut own: Vec<&'a Stmt> = Vec::new();
                for stmt in stmts.iter() {
                    if !is_of_group(stmt) {
                        own.push(stmt);
                        continue;
                    }
                    self.in_turn(&std::mem::take(&mut own), group)?;
                    self.together(stmt, group)?;
                }
                self.in_turn(&own, group)
            }
            StmtKind::If { cond, then_body, else_body } => {
                let holds = self.agreed(stmt, group, |this| Ok(is_true(this.scalar(cond)?)))?;
                let chosen = if holds { Some(then_body) } else { else_body.as_ref() };
                chosen.map_or(Ok(()), |body| self.together(body, group))
            }
            StmtKind::Let { var, value, body } => {
                if value.reads_memory() {
                    self.start(group.iterations)?;
                }
                self.each(group, |this| {
                    let value = this.value(value, None)?;
                    this.vars.insert(var.clone(), value);
                    Ok(())
                })?;
                self.together(body, group)
            }
            StmtKind::Allocate { buffer, body } => self.allocated_together(stmt, buffer, body, group),
            StmtKind::DeclBuffer { buffer, body } => {
                self.each(group, |this| this.layout(buffer).map(drop).map_err(|why| this.trap(TrapKind::Size, why)))?;
                self.together(body, group)
            }
            StmtKind::Attr { body, .. } => self.together(body, group),
            // All threads are here.
            StmtKind::Barrier => Ok(()),
            // No part of these is a barrier.
            StmtKind::Store { .. } | StmtKind::Evaluate(_) | StmtKind::Assert { .. } => Ok(()),
        }
    }

    /// Statements that one thread after the other executes.
    fn in_turn(&mut self, stmts: &[&'a Stmt], group: &mut Group) -> Result<(), Stop> {
        if stmts.is_empty() {
            return Ok(());
        }
        self.start(group.iterations)?;
        self.each(group, |this| stmts.iter().try_for_each(|stmt| this.execute(stmt)))
    }

    /// A loop around a barrier or shared memory.
    fn loop_together(&mut self, stmt: &'a Stmt, inner: &'a For, group: &mut Group) -> Result<(), Stop> {
        let Some((min, count)) = self.agreed(stmt, group, |this| this.bounds(inner))? else { return Ok(()) };
        let values = min..min + i128::from(count);
        let enter = |thread: &mut Thread, value: i128| {
            thread.vars.insert(inner.var.clone(), vec![Scalar::Int(value)]);
            thread.loops.push((inner.var.name().to_owned(), value));
        };
        match inner.kind {
            ForKind::ThreadBinding(ThreadTag::Thread(_)) => {
                let mut threads = Vec::new();
                for thread in &group.threads {
                    threads.extend(values.clone().map(|value| {
                        let mut thread = thread.clone();
                        enter(&mut thread, value);
                        thread
                    }));
                }
                let iterations = group.iterations.saturating_add(threads.len() as u64);
                self.together(&inner.body, &mut Group { threads, iterations })
            }
            ForKind::Serial
            | ForKind::Unrolled
            | ForKind::Parallel
            | ForKind::Vectorized
            | ForKind::ThreadBinding(ThreadTag::Block(_)) => {
                self.start(count)?;
                for value in values {
                    group.threads.iter_mut().for_each(|thread| enter(thread, value));
                    self.together(&inner.body, group)?;
                    group.threads.iter_mut().for_each(|thread| drop(thread.loops.pop()));
                }
                Ok(())
            }
        }
    }

    /// Memory around a barrier: of the group in the scope `shared`, else of each thread.
    fn allocated_together(
        &mut self,
        stmt: &'a Stmt,
        buffer: &'a Buffer,
        body: &'a Stmt,
        group: &mut Group,
    ) -> Result<(), Stop> {
        let live = self.live;
        if buffer.scope == Scope::Shared {
            self.agreed(stmt, group, |this| this.layout(buffer).map_err(|why| this.trap(TrapKind::Size, why)))?;
            let first = group.threads.first().map(|thread| thread.vars.clone()).unwrap_or_default();
            let vars = std::mem::replace(&mut self.vars, first);
            self.allocate(buffer).map_err(|(kind, why)| self.trap(kind, why))?;
            self.vars = vars;
            self.together(body, group)?;
            self.memories.remove(&buffer.data);
        } else {
            let mut numbers = Vec::new();
            self.each(group, |this| {
                this.allocate(buffer).map_err(|(kind, why)| this.trap(kind, why))?;
                let number = this.resting.len();
                this.resting.insert(number, this.memories.remove(&buffer.data).unwrap_or_default());
                numbers.push(number);
                Ok(())
            })?;
            let pairs = group.threads.iter_mut().zip(&numbers);
            pairs.for_each(|(thread, number)| thread.memory.push((buffer.data.clone(), *number)));
            self.together(body, group)?;
            group.threads.iter_mut().for_each(|thread| drop(thread.memory.pop()));
            self.resting.retain(|number, _| !numbers.contains(number));
        }
        self.live = live;
        Ok(())
    }

    /// Does something as each thread of a group, in order.
    fn each(&mut self, group: &mut Group, mut run: impl FnMut(&mut Self) -> Result<(), Stop>) -> Result<(), Stop> {
        group.threads.iter_mut().try_for_each(|thread| self.as_thread(thread, &mut run))
    }

    /// What all threads of a group compute.
    ///
    /// # Errors
    /// Two of them do not agree, so that not all would get to a barrier equally often.
    fn agreed<T: PartialEq>(
        &mut self,
        stmt: &'a Stmt,
        group: &mut Group,
        mut compute: impl FnMut(&mut Self) -> Result<T, Stop>,
    ) -> Result<T, Stop> {
        let mut common: Option<T> = None;
        self.each(group, |this| {
            let own = compute(this)?;
            if common.as_ref().is_some_and(|common| *common != own) {
                this.stmt = stmt;
                let message = "threads of one group differ in how they get to a barrier or to shared memory".to_owned();
                return Err(this.trap(TrapKind::Barrier, message));
            }
            common.get_or_insert(own);
            Ok(())
        })?;
        // A group has a thread: a loop over threads without iterations is not entered.
        common.ok_or_else(|| self.trap(TrapKind::Barrier, "a group has no threads".to_owned()))
    }

    /// Does something as one thread: with its variables, its loops and its memory.
    fn as_thread(
        &mut self,
        thread: &mut Thread,
        run: &mut impl FnMut(&mut Self) -> Result<(), Stop>,
    ) -> Result<(), Stop> {
        std::mem::swap(&mut self.vars, &mut thread.vars);
        std::mem::swap(&mut self.loops, &mut thread.loops);
        for (data, number) in &thread.memory {
            let memory = self.resting.get_mut(number).map(std::mem::take).unwrap_or_default();
            self.memories.insert(data.clone(), memory);
        }
        run(self)?;
        for (data, number) in &thread.memory {
            let memory = self.memories.remove(data).unwrap_or_default();
            self.resting.insert(*number, memory);
        }
        std::mem::swap(&mut self.loops, &mut thread.loops);
        std::mem::swap(&mut self.vars, &mut thread.vars);
        Ok(())
    }
}
