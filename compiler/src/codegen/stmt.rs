//! Statements in C.
//!
//! ```text
//! for j in range(4):              for (int j = 0; j < 4; ++j) {
//!     if i * 4 + j < 30:              if (i * 4 + j < 30) {
//!         B[i * 4 + j] = ..               // B[i * 4 + j] = ..
//!                                         B[i * 4 + j] = ..;
//! ```
//!
//! Every store has the statement of the program as a comment, which is what a person compares it with.

use tilewright_ir::phases::is_of_group;
use tilewright_ir::sabotage;
use tilewright_ir::{Buffer, Diagnostic, Expr, For, ForKind, Stmt, StmtKind};

use super::expr::lane_of;
use super::range::{Mode, constant};
use super::target::Refusal;
use super::writer::{Writer, offset};

impl Writer {
    /// Writes a statement.
    ///
    /// # Errors
    /// Refuses what the target cannot express. The error points to the statement, or to the nearest one around it with a
    /// span.
    pub(crate) fn stmt(&mut self, stmt: &Stmt) -> Result<(), Diagnostic> {
        let outer = self.span;
        self.span = stmt.span.or(outer);
        self.guarded(stmt)?;
        self.span = outer;
        Ok(())
    }

    /// Writes a statement, whether it is below a guard or not.
    pub(super) fn plain(&mut self, stmt: &Stmt) -> Result<(), Diagnostic> {
        match &stmt.kind {
            StmtKind::For(inner) => self.for_loop(inner)?,
            // A store outside some of the bound loops runs once in the program, not once per work-item.
            StmtKind::Store { buffer, indices, value } => self.single(|writer| writer.store(buffer, indices, value))?,
            StmtKind::Allocate { buffer, body } => {
                self.array(buffer)?;
                self.stmt(body)?;
            }
            StmtKind::DeclBuffer { body, .. } | StmtKind::Attr { body, .. } => self.stmt(body)?,
            StmtKind::If { cond, then_body, else_body } => self.branch(cond, then_body, else_body.as_deref())?,
            StmtKind::Let { var, value, body } => {
                self.at_statement(|| format!("{var} = {value}"));
                let code = self.expr(value, Mode::Value)?;
                if !value.dtype().scalar.is_float() {
                    let range = self.ranges.range_of(value, Mode::Value);
                    self.ranges.insert(var, range);
                }
                if self.may_diverge(value) {
                    self.launch.thread_vars.insert(var.clone());
                }
                let name = self.declare(var);
                self.define(&name, var.dtype(), &code.text);
                self.stmt(body)?;
            }
            StmtKind::Seq(stmts) => self.sequence(stmts)?,
            StmtKind::Barrier => self.barrier()?,
            StmtKind::Evaluate(expr) => self.comment(&format!("evaluated for nothing: {expr}")),
            StmtKind::Assert { cond, .. } => {
                self.comment(&format!("assumes {cond}"));
                self.notes.insert(format!("the kernels assume `{cond}`, which only the interpreter checks"));
            }
        }
        Ok(())
    }

    /// Statements one after the other. A statement that declares names gets a block of its own, and work-items wait for
    /// each other in between where the order matters.
    fn sequence(&mut self, stmts: &[Stmt]) -> Result<(), Diagnostic> {
        for (place, stmt) in stmts.iter().enumerate() {
            let binds = matches!(stmt.kind, StmtKind::Let { .. } | StmtKind::Allocate { .. } | StmtKind::For(_));
            let is_bound_loop =
                matches!(&stmt.kind, StmtKind::For(inner) if matches!(inner.kind, ForKind::ThreadBinding(_)));
            let block = stmts.len() > 1 && binds && (is_bound_loop || !matches!(stmt.kind, StmtKind::For(_)));
            if block {
                self.open("");
            }
            self.stmt(stmt)?;
            if block {
                self.close();
            }
            if place + 1 < stmts.len() {
                self.synchronise()?;
            }
        }
        Ok(())
    }

    /// A conditional statement. Below a condition that work-items may disagree on, no barrier is allowed.
    fn branch(&mut self, cond: &Expr, then_body: &Stmt, else_body: Option<&Stmt>) -> Result<(), Diagnostic> {
        self.at_statement(|| format!("if {cond}"));
        let code = self.expr(cond, condition_mode(cond))?;
        if self.is_uniform(cond) && (self.waits(then_body) || else_body.is_some_and(|body| self.waits(body))) {
            return self.guarded_branch(&code, then_body, else_body);
        }
        let outer = self.divergent;
        self.divergent |= self.may_diverge(cond);
        self.open(&format!("if ({})", code.text));
        self.stmt(then_body)?;
        if let Some(body) = else_body {
            self.depth -= 1;
            self.line(if sabotage::on("kernel-drops-else") { "} {" } else { "} else {" });
            self.depth += 1;
            self.stmt(body)?;
        }
        self.close();
        self.divergent = outer;
        Ok(())
    }

    /// A loop: one that a launch axis runs declares its variable, any other is a C loop.
    fn for_loop(&mut self, inner: &For) -> Result<(), Diagnostic> {
        if let Some(axis) = self.launch.automatic_axis(&inner.var) {
            return self.automatic_loop(inner, &axis);
        }
        if let ForKind::ThreadBinding(tag) = inner.kind {
            return self.bound_loop(inner, tag);
        }
        self.at_statement(|| format!("for {} in range({}, {} + {})", inner.var, inner.min, inner.min, inner.extent));
        let min = self.index(&inner.min)?;
        let last = inner.min.clone() + inner.extent.clone();
        let last = if sabotage::on("kernel-loops-to-extent") { inner.extent.clone() } else { last };
        let mut end = match constant(&last) {
            Some(value) => value.to_string(),
            None if constant(&inner.min) == Some(0) => self.index(&inner.extent)?.text,
            None => self.index(&last)?.text,
        };
        if last.reads_memory() {
            // The extent is evaluated once; the body may write what it was read from.
            let name = self.namer.fresh(&format!("{}_end", inner.var.name()));
            self.define(&name, inner.var.dtype(), &end);
            end = name;
        }
        let n_texels = self.texels.len();
        self.hold_texels(inner)?;
        self.ranges.insert_loop(&inner.var, &inner.min, &inner.extent);
        let outer = self.divergent;
        self.divergent |= self.may_diverge(&last);
        let name = self.declare(&inner.var);
        // A loop of unknown extent cannot be unrolled, and PoCL 3.1 crashes on the request next to a barrier.
        let is_unrolled = matches!(inner.kind, ForKind::Unrolled | ForKind::Vectorized);
        if is_unrolled && constant(&inner.extent).is_some() && !is_of_group(&inner.body) {
            self.line(self.target.words.unroll);
        }
        let ty = self.dialect().value_name(inner.var.dtype());
        let (start, goes_on) = self.header(&min, constant(&inner.min).is_some(), &name, &end);
        self.open(&format!("for ({ty} {name} = {start}; {goes_on}; ++{name})"));
        self.below(None, |writer| writer.stmt(&inner.body))?;
        if self.launch.binds_inside(&inner.body) && constant(&inner.extent) != Some(1) {
            self.synchronise()?;
        }
        self.close();
        self.texels.truncate(n_texels);
        self.divergent = outer;
        Ok(())
    }

    /// A store, with the statement of the program as a comment above it.
    fn store(&mut self, buffer: &Buffer, indices: &[Expr], value: &Expr) -> Result<(), Diagnostic> {
        let target = tilewright_ir::Expr::load(buffer, indices.to_vec());
        let text = format!("{target} = {value}");
        self.comment(&text);
        self.at_statement(|| text);
        if self.image(buffer).is_some() {
            return self.image_store(buffer, indices, value);
        }
        let ty = value.dtype();
        let native = self.target.lanes.contains(&ty.lanes);
        let is_vector_index = indices.last().is_some_and(|index| !index.dtype().is_scalar());
        if is_vector_index && !(native && Self::is_contiguous(buffer, indices)) {
            return self.scatter(buffer, &target, value);
        }
        let code = self.expr(value, Mode::Value)?;
        let position = self.position(buffer, indices)?;
        let pointer = self.pointer(buffer, true)?;
        let (position, pointer) =
            if is_vector_index { ("0".to_owned(), offset(&pointer, &position)) } else { (position.text, pointer) };
        let statement = self.write(ty, &position, &pointer, &code.text);
        self.line(&statement);
        Ok(())
    }

    /// A vector store lane by lane: every value is computed before the first is written.
    fn scatter(&mut self, buffer: &Buffer, target: &Expr, value: &Expr) -> Result<(), Diagnostic> {
        let lanes = value.dtype().lanes;
        let unknown = |writer: &Self| {
            writer
                .error(Refusal::VectorIndex, format!("the lanes of `{target} = {value}` cannot be written one by one"))
        };
        // The block limits the scope of the lanes' names to this statement.
        self.open("");
        let mut names = Vec::new();
        if self.target.lanes.contains(&lanes) {
            let code = self.expr(value, Mode::Value)?;
            let name = self.namer.fresh("lanes");
            self.line(&format!("const {} {name} = {};", self.dialect().value_name(value.dtype()), code.text));
            names.extend((0..lanes).map(|k| self.dialect().lane(&name, k)));
        } else {
            for k in 0..lanes {
                let part = lane_of(value, k).ok_or_else(|| unknown(self))?;
                let code = self.expr(&part, Mode::Value)?;
                let name = self.namer.fresh(&format!("lane{k}"));
                self.line(&format!("const {} {name} = {};", self.dialect().value_name(part.dtype()), code.text));
                names.push(name);
            }
        }
        for (k, name) in (0..lanes).zip(&names) {
            let Some(Expr::Load { indices, .. }) = lane_of(target, k) else {
                return Err(unknown(self));
            };
            let position = self.position(buffer, &indices)?;
            let pointer = self.pointer(buffer, true)?;
            let statement = self.write(buffer.dtype, &position.text, &pointer, name);
            self.line(&statement);
        }
        self.close();
        Ok(())
    }
}

/// Returns the arithmetic of a condition: a guard over loop variables and extents is index arithmetic, and a condition that
/// reads memory may wrap.
fn condition_mode(cond: &Expr) -> Mode {
    if cond.reads_memory() { Mode::Value } else { Mode::Index }
}
