//! Translation of statements.

use tilewright_ir::{Buffer, Diagnostic, Expr, For, ForKind, ScalarType, Stmt, StmtKind, Var};

use super::{Compiler, Level};
use crate::code::{Code, Dims, Instr, Loop, Node, Op};
use crate::independence::independent;

/// What is taken for the extent of a loop when it is not known, where only the cost matters.
const GUESS: u64 = 16;

impl<'a> Compiler<'_, 'a> {
    /// Emits a statement.
    pub(super) fn stmt(&mut self, stmt: &'a Stmt) -> Result<(), Diagnostic> {
        let (outer_span, outer_site) = (self.span, self.site);
        self.span = stmt.span.or(outer_span);
        if !matches!(stmt.kind, StmtKind::Seq(_) | StmtKind::Attr { .. }) {
            self.site = self.enter_site(stmt)?;
        }
        let result = self.stmt_kind(stmt);
        self.span = outer_span;
        self.site = outer_site;
        result
    }

    fn stmt_kind(&mut self, stmt: &'a Stmt) -> Result<(), Diagnostic> {
        match &stmt.kind {
            StmtKind::For(inner) => self.for_loop(inner),
            StmtKind::Store { buffer, indices, value } => self.store(buffer, indices, value),
            StmtKind::Allocate { buffer, body } => self.allocate(buffer, body),
            StmtKind::DeclBuffer { buffer, body } => {
                if let Some(dims) = self.dims(buffer) {
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
            StmtKind::Attr { body, .. } => self.stmt(body),
            StmtKind::Assert { cond, message } => {
                let cond = self.expr(cond)?[0];
                let number = u32::try_from(self.program.messages.len()).map_err(|_| super::too_large())?;
                self.program.messages.push(message);
                self.emit(Instr::new(Op::Assert, ScalarType::Bool, [cond, number, 0]))
            }
        }
    }

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

    fn if_stmt(&mut self, cond: &'a Expr, then_body: &'a Stmt, else_body: Option<&'a Stmt>) -> Result<(), Diagnostic> {
        let cond = self.expr(cond)?[0];
        let ((), mut then_nodes, then_code) = self.branch(|this| this.stmt(then_body))?;
        let ((), mut else_nodes, else_code) = self.branch(|this| else_body.map_or(Ok(()), |stmt| this.stmt(stmt)))?;
        if then_nodes.is_empty() && else_nodes.is_empty() {
            return self.jumps(cond, then_code, else_code);
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

    fn allocate(&mut self, buffer: &'a Buffer, body: &'a Stmt) -> Result<(), Diagnostic> {
        let dims = self.dims(buffer).map(Box::new);
        let (view, site) = (self.view_number(buffer)?, self.site);
        let ((), mut nodes, code) = self.branch(|this| this.stmt(body))?;
        if !code.is_empty() {
            nodes.push(Node::Code(code));
        }
        self.flush();
        self.level().nodes.push(Node::Allocate { view, dims, site, body: nodes });
        Ok(())
    }

    fn view_number(&self, buffer: &Buffer) -> Result<u32, Diagnostic> {
        let missing = || Diagnostic::error("no-memory", buffer.span, format!("buffer `{buffer}` has no memory here"));
        self.views.get(buffer).and_then(|&view| u32::try_from(view).ok()).ok_or_else(missing)
    }

    /// What a buffer's extents depend on, unless symbols and scalar parameters are all.
    fn dims(&self, buffer: &Buffer) -> Option<Dims> {
        let exprs = buffer.shape.iter().chain(buffer.strides.iter().flatten()).chain([&buffer.elem_offset]);
        let mut vars: Vec<_> = exprs.flat_map(Expr::vars).collect();
        vars.sort();
        vars.dedup();
        vars.retain(|var| !self.setup.bindings.contains_key(var));
        if vars.is_empty() {
            return None;
        }
        let vars = vars.into_iter().map(|var| (var.clone(), self.vars.get(&var).copied().unwrap_or(0))).collect();
        Some(Dims { buffer: buffer.clone(), vars })
    }

    fn for_loop(&mut self, inner: &'a For) -> Result<(), Diagnostic> {
        let min = (self.expr(&inner.min)?[0], inner.min.dtype().scalar);
        let extent = (self.expr(&inner.extent)?[0], inner.extent.dtype().scalar);
        let const_extent = self.known(extent.0).map(|value| u64::try_from(value.cast_signed()).unwrap_or(0));
        let is_marked = inner.kind != ForKind::Serial && inner.kind != ForKind::Unrolled;
        // Nobody asks where there is one thread.
        let independent = self.setup.spreads && (is_marked || independent(inner, &self.ranges));
        self.flush();
        let site = self.site;
        let depth = self.depth() + 1;
        let var = self.registers(1, depth)?;
        self.vars.insert(inner.var.clone(), var);
        self.loops.push((&inner.var, var));
        let outer_ranges = self.ranges.clone();
        self.ranges.bind_loop(inner);
        let (pre, body) = self.body(&inner.body)?;
        let fast = self.fast(inner, var, &body)?;
        self.ranges = outer_ranges;
        self.loops.pop();
        let costs = Costs::of(&body);
        self.level().nodes.push(Node::Loop(Box::new(Loop {
            var,
            ty: inner.var.dtype().scalar,
            min,
            extent,
            kind: inner.kind,
            site,
            pre,
            body,
            fast,
            independent,
            inner_independent: costs.independent,
            weight: costs.weight,
            inner_iterations: costs.iterations,
            const_extent,
        })));
        Ok(())
    }

    /// Translates the body of a loop on a level of its own.
    fn body(&mut self, body: &'a Stmt) -> Result<(Code, Vec<Node>), Diagnostic> {
        self.levels.push(Level::default());
        let result = self.stmt(body);
        self.flush();
        let level = self.levels.pop().unwrap_or_default();
        result.map(|()| (level.pre, level.nodes))
    }
}

/// What running some nodes takes.
struct Costs {
    weight: u64,
    /// Loop iterations started; none if that is not known.
    iterations: Option<u64>,
    /// There is an independent loop.
    independent: bool,
}

impl Costs {
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
                    let extent = inner.const_extent.unwrap_or(GUESS);
                    costs.weight = costs.weight.saturating_add(inner.weight.saturating_mul(extent));
                    costs.iterations = (|| {
                        let each = inner.inner_iterations?.checked_add(1)?;
                        costs.iterations?.checked_add(each.checked_mul(inner.const_extent?)?)
                    })();
                    costs.independent |= inner.independent || inner.inner_independent;
                }
                Node::Allocate { body, .. } => costs.add(&Self::of(body), 1),
                Node::Declare { .. } => costs.weight = costs.weight.saturating_add(GUESS),
            }
        }
        costs
    }

    fn add(&mut self, other: &Self, times: u64) {
        self.weight = self.weight.saturating_add(other.weight.saturating_mul(times));
        self.iterations = self.iterations.zip(other.iterations).and_then(|(a, b)| a.checked_add(b));
        self.independent |= other.independent;
    }
}
