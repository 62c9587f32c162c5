//! Compilation of statements.
//!
//! Straight-line code collects in the current level until a loop, an allocation or a declaration ends it; a conditional
//! without any of these stays straight-line code, with jumps.

use tilewright_ir::phases::OF_GROUP;
use tilewright_ir::{Buffer, Diagnostic, Expr, For, ScalarType, Stmt, StmtKind, Var};

use super::{Compiler, Level};
use crate::code::{Code, DynamicShape, Instr, Loop, Node, Op};
use crate::independence::is_independent;
use crate::statement_head::failed_assertion;

/// The extent assumed for a loop of unknown extent when the cost of its body is estimated.
const ASSUMED_EXTENT: u64 = 16;

impl<'a> Compiler<'_, 'a> {
    /// Compiles a statement.
    pub(super) fn stmt(&mut self, stmt: &'a Stmt) -> Result<(), Diagnostic> {
        let (outer_span, outer_site) = (self.span, self.site);
        self.span = stmt.span.or(outer_span);
        // Sequences and attributes compute nothing, so no trap can belong to them.
        if !matches!(stmt.kind, StmtKind::Seq(_) | StmtKind::Attr { .. }) {
            self.site = self.enter_site(stmt)?;
        }
        let result = self.stmt_kind(stmt);
        self.span = outer_span;
        self.site = outer_site;
        result
    }

    /// Compiles a statement after its site was entered.
    fn stmt_kind(&mut self, stmt: &'a Stmt) -> Result<(), Diagnostic> {
        match &stmt.kind {
            StmtKind::For(inner) => self.for_loop(inner),
            StmtKind::Store { buffer, indices, value } => self.store(buffer, indices, value),
            StmtKind::Allocate { buffer, body } => self.allocate(buffer, body),
            StmtKind::DeclBuffer { buffer, body } => {
                if let Some(dims) = self.dynamic_shape(buffer) {
                    // The shape may use a value that the code before computes, so that code becomes a node first.
                    self.flush();
                    let (view, site) = (self.view_number(buffer)?, self.site);
                    self.level().nodes.push(Node::Declare { view, dims: Box::new(dims), site });
                }
                self.stmt(body)
            }
            StmtKind::If { cond, then_body, else_body } => self.if_stmt(cond, then_body, else_body.as_deref()),
            StmtKind::Let { var, value, body } => self.let_stmt(var, value, body),
            StmtKind::Seq(stmts) => stmts.iter().try_for_each(|stmt| self.stmt(stmt)),
            StmtKind::Evaluate(expr) => self.expr(expr).map(drop),
            StmtKind::Barrier => {
                self.flush();
                self.level().nodes.push(Node::Barrier);
                Ok(())
            }
            StmtKind::Attr { body, .. } => self.stmt(body),
            StmtKind::Assert { cond, message, is_assumed } => {
                let cond = self.expr(cond)?[0];
                let number = u32::try_from(self.program.messages.len()).map_err(|_| super::too_large())?;
                self.program.messages.push(failed_assertion(message, *is_assumed));
                self.emit(Instr::new(Op::Assert, ScalarType::Bool, [cond, number, 0]))
            }
        }
    }

    /// Compiles a binding. The lanes of a vector must be in consecutive registers; they are moved if they are not.
    fn let_stmt(&mut self, var: &'a Var, value: &'a Expr, body: &'a Stmt) -> Result<(), Diagnostic> {
        let values = self.expr(value)?;
        let mut in_a_row = values.windows(2).all(|pair| pair[0] + 1 == pair[1]);
        in_a_row &= values.len() == usize::from(var.dtype().lanes);
        let first = if in_a_row {
            values[0]
        } else {
            let depth = self.depth();
            let first = self.registers(values.len(), depth)?;
            for (d, value) in (first..).zip(values) {
                self.emit(Instr { d, ..Instr::new(Op::Move, var.dtype().scalar, [value, 0, 0]) })?;
            }
            first
        };
        self.vars.insert(var.clone(), first);
        self.ranges.bind_let(var, value);
        self.stmt(body)
    }

    /// Compiles a conditional: to jumps in straight-line code if neither branch contains a loop or an allocation, so that
    /// it may be part of a block plan, and to a node otherwise.
    fn if_stmt(&mut self, cond: &'a Expr, then_body: &'a Stmt, else_body: Option<&'a Stmt>) -> Result<(), Diagnostic> {
        let cond = self.expr(cond)?[0];
        let ((), mut then_nodes, then_code) = self.branch(|this| this.stmt(then_body))?;
        let ((), mut else_nodes, else_code) = self.branch(|this| else_body.map_or(Ok(()), |stmt| this.stmt(stmt)))?;
        if then_nodes.is_empty() && else_nodes.is_empty() {
            return self.emit_branches(cond, then_code, else_code);
        }
        let close = |nodes: &mut Vec<Node>, code: Code| {
            if !code.is_empty() {
                nodes.push(Node::Code(code));
            }
        };
        close(&mut then_nodes, then_code);
        close(&mut else_nodes, else_code);
        self.flush();
        self.level().nodes.push(Node::If { cond, then_body: then_nodes, else_body: else_nodes });
        Ok(())
    }

    /// Compiles an allocation.
    fn allocate(&mut self, buffer: &'a Buffer, body: &'a Stmt) -> Result<(), Diagnostic> {
        let dims = self.dynamic_shape(buffer).map(Box::new);
        let (view, site) = (self.view_number(buffer)?, self.site);
        let ((), mut nodes, code) = self.branch(|this| this.stmt(body))?;
        if !code.is_empty() {
            nodes.push(Node::Code(code));
        }
        self.flush();
        self.level().nodes.push(Node::Allocate { view, dims, site, body: nodes });
        Ok(())
    }

    /// The number of a buffer.
    fn view_number(&self, buffer: &Buffer) -> Result<u32, Diagnostic> {
        let missing = || Diagnostic::error("no-memory", buffer.span, format!("buffer `{buffer}` has no memory here"));
        self.views.get(buffer).and_then(|&view| u32::try_from(view).ok()).ok_or_else(missing)
    }

    /// The variables that a buffer's extents, strides and offset depend on; `None` if these are symbols and scalar
    /// parameters only, whose values are known at compile time.
    fn dynamic_shape(&self, buffer: &Buffer) -> Option<DynamicShape> {
        let exprs = buffer.shape.iter().chain(buffer.strides.iter().flatten()).chain([&buffer.elem_offset]);
        let mut vars: Vec<_> = exprs.flat_map(Expr::vars).collect();
        vars.sort();
        vars.dedup();
        vars.retain(|var| !self.setup.bindings.contains_key(var));
        if vars.is_empty() {
            return None;
        }
        let vars = vars.into_iter().map(|var| (var.clone(), self.vars.get(&var).copied().unwrap_or(0))).collect();
        Some(DynamicShape { buffer: buffer.clone(), vars })
    }

    /// Compiles a loop, and its nest in vectorized form if it has one.
    fn for_loop(&mut self, inner: &'a For) -> Result<(), Diagnostic> {
        let min = (self.expr(&inner.min)?[0], inner.min.dtype().scalar);
        let extent = (self.expr(&inner.extent)?[0], inner.extent.dtype().scalar);
        let const_extent = self.constant_value(extent.0).map(|value| u64::try_from(value.cast_signed()).unwrap_or(0));
        // Not computed for a single thread, which has no use for it.
        let independent =
            self.setup.multithreaded && (inner.kind.is_concurrent() || is_independent(inner, &self.ranges));
        self.flush();
        let site = self.site;
        let depth = self.depth() + 1;
        let var = self.registers(1, depth)?;
        self.vars.insert(inner.var.clone(), var);
        self.loops.push((&inner.var, var));
        let outer_ranges = self.ranges.clone();
        self.ranges.bind_loop(inner);
        let (pre, body) = self.body(&inner.body)?;
        let vectorized = self.vectorize_nest(inner, var)?;
        self.ranges = outer_ranges;
        self.loops.pop();
        let costs = Costs::of(&body);
        self.level().nodes.push(Node::Loop(Box::new(Loop {
            var,
            ty: inner.var.dtype().scalar,
            min,
            extent,
            kind: inner.kind,
            of_group: inner.annotations.iter().any(|(key, _)| key == OF_GROUP),
            site,
            pre,
            body,
            vectorized,
            independent,
            inner_independent: costs.independent,
            weight: costs.weight,
            inner_iterations: costs.iterations,
            const_extent,
        })));
        Ok(())
    }

    /// Compiles the body of a loop on a level of its own; returns the loop-invariant code and the body.
    fn body(&mut self, body: &'a Stmt) -> Result<(Code, Vec<Node>), Diagnostic> {
        self.levels.push(Level::default());
        let result = self.stmt(body);
        self.flush();
        let level = self.levels.pop().unwrap_or_default();
        result.map(|()| (level.pre, level.nodes))
    }
}

/// An estimate of the cost of some nodes.
struct Costs {
    /// Number of instructions executed.
    weight: u64,
    /// Greatest number of loop iterations started, if known.
    iterations: Option<u64>,
    /// Whether there is an independent loop.
    independent: bool,
}

impl Costs {
    /// The cost of running `nodes` once. Both branches of a conditional count.
    fn of(nodes: &[Node]) -> Self {
        let mut costs = Self { weight: 0, iterations: Some(0), independent: false };
        for node in nodes {
            match node {
                Node::Code(code) => costs.weight = costs.weight.saturating_add(code.instrs.len() as u64),
                Node::If { then_body, else_body, .. } => {
                    costs.add(&Self::of(then_body), 1);
                    costs.add(&Self::of(else_body), 1);
                }
                Node::Loop(inner) => {
                    let extent = inner.const_extent.unwrap_or(ASSUMED_EXTENT);
                    costs.weight = costs.weight.saturating_add(inner.weight.saturating_mul(extent));
                    costs.iterations = (|| {
                        let each = inner.inner_iterations?.checked_add(1)?;
                        costs.iterations?.checked_add(each.checked_mul(inner.const_extent?)?)
                    })();
                    costs.independent |= inner.independent || inner.inner_independent;
                }
                Node::Allocate { body, .. } => costs.add(&Self::of(body), 1),
                Node::Barrier => {}
                Node::Declare { .. } => costs.weight = costs.weight.saturating_add(ASSUMED_EXTENT),
            }
        }
        costs
    }

    /// Adds the cost of running `other` `times` times.
    fn add(&mut self, other: &Self, times: u64) {
        self.weight = self.weight.saturating_add(other.weight.saturating_mul(times));
        self.iterations = self.iterations.zip(other.iterations).and_then(|(a, b)| a.checked_add(b));
        self.independent |= other.independent;
    }
}
