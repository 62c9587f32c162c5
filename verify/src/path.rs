//! The path to a statement: the loops, bindings, guards and assertions under which it runs (its path condition).
//!
//! ```text
//! for i in n:
//!     if i < m:          path of the store: Loop(i, 0, n), Guard(i < m, true)
//!         A[i] = 0       premises: 0 <= i < 0 + n, i < m
//! ```
//!
//! Premises must be true wherever the statement runs. A loaded value is a premise only if memory cannot have changed since: if
//! nothing under the condition writes its buffer, through no view of it. Arithmetic on loaded values may have wrapped, so that
//! only comparisons of the loaded values themselves are premises.

mod samples;

use std::collections::HashMap;
use std::sync::Arc;

use tilewright_ir::sabotage;
use tilewright_ir::visit::Substitution;
use tilewright_ir::{BinaryOp, Bindings, Buffer, Expr, For, PrimFunc, ScalarType, Stmt, StmtKind, Traps, UnaryOp, Var};

use crate::goal::Kind;
use crate::question::Question;
use crate::steps::Steps;
use crate::term::Term;
use crate::translate::Names;

/// One step of a path.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// A loop: variable, first value and extent.
    Loop(Var, Expr, Expr),
    /// A name for a value.
    Let(Var, Expr),
    /// A condition, and whether it holds.
    Guard(Expr, bool),
}

impl Step {
    /// The expressions of the step.
    pub(crate) fn exprs(&self) -> impl Iterator<Item = &Expr> {
        let (first, second) = match self {
            Self::Loop(_, min, extent) => (min, Some(extent)),
            Self::Let(_, value) | Self::Guard(value, _) => (value, None),
        };
        std::iter::once(first).chain(second)
    }

    /// The conditions that the step is taken, with other values of its variables. `None` for a name, which any value may have.
    pub fn conditions(&self, at: &Substitution) -> Option<Vec<Expr>> {
        match self {
            Self::Loop(var, min, extent) => {
                let (value, min, extent) = (at.apply(&Expr::from(var)), at.apply(min), at.apply(extent));
                Some(vec![Expr::binary(BinaryOp::Le, min.clone(), value.clone()), value.lt(min + extent)])
            }
            Self::Guard(cond, true) => Some(vec![at.apply(cond)]),
            Self::Guard(cond, false) => Some(vec![Expr::unary(UnaryOp::Not, at.apply(cond))]),
            Self::Let(..) => None,
        }
    }
}

/// Names stand for values of at most this many operations where they are written out.
const MOST_OPERATIONS: usize = 500;

/// The number of operations of a value in which each name is written out.
fn size(value: &Expr, names: &HashMap<&Var, usize>) -> usize {
    let mut size = 0_usize;
    value.walk(&mut |part| {
        let own = if let Expr::Var(var) = part { names.get(var).copied().unwrap_or(1) } else { 1 };
        size = size.saturating_add(own);
    });
    size
}

/// The path from the start of a function to a statement, outermost step first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Path {
    /// The symbolic extents: at least 1.
    pub symbols: Vec<Var>,
    /// Integers of the call that are no extents. They may have any value of their type.
    pub scalars: Vec<Var>,
    /// The steps, shared with the paths that begin alike.
    pub steps: Steps,
    /// The buffers whose memory the function never writes: each load of an element gives the same value.
    pub constant: Arc<Vec<Buffer>>,
    /// Buffers that nothing writes from a condition to the end of the path, each with the number of steps before that condition.
    /// `None` where nobody has looked, or where two iterations are looked at.
    pub(crate) settled: Option<Vec<(Buffer, usize)>>,
}

impl Path {
    /// The path to the body of a function: no steps.
    pub fn of(func: &PrimFunc) -> Self {
        let constant = Arc::new(never_written(func));
        Self { symbols: func.extents(), scalars: func.scalars(), steps: Steps::default(), constant, settled: None }
    }

    /// Adds the step into a loop.
    pub fn enter(&mut self, inner: &For) {
        self.steps.push(Step::Loop(inner.var.clone(), inner.min.clone(), inner.extent.clone()));
    }

    /// Adds a condition, and that it holds or not for these statements.
    fn guard<'a>(&mut self, cond: &Expr, holds: bool, body: impl IntoIterator<Item = &'a Stmt>) {
        if self.settled.is_some() && cond.reads_memory() {
            let written: Vec<Buffer> = body.into_iter().flat_map(written).collect();
            self.settle(cond, &written);
        }
        self.steps.push(Step::Guard(cond.clone(), holds));
    }

    /// Takes back all steps but the first ones.
    fn leave(&mut self, steps: usize) {
        self.steps.truncate(steps);
        if let Some(settled) = &mut self.settled {
            settled.retain(|(_, depth)| *depth < steps);
        }
    }

    /// Adds a condition inside an expression: nothing is written before the expression has its value.
    pub(crate) fn choose(&mut self, cond: &Expr, holds: bool) {
        self.settle(cond, &[]);
        self.steps.push(Step::Guard(cond.clone(), holds));
    }

    /// From the next step on, the buffers that a condition reads are those that it has read, if they are not `written`.
    fn settle(&mut self, cond: &Expr, written: &[Buffer]) {
        let (Some(settled), depth) = (&mut self.settled, self.steps.len()) else { return };
        cond.walk(&mut |part| {
            if let Expr::Load { buffer, .. } = part
                && (!written.iter().any(|other| other.aliases(buffer)) || sabotage::on("condition-outlives-write"))
            {
                settled.push((buffer.clone(), depth));
            }
        });
    }

    /// The buffers whose loads have one value from a step to the end of the path, if `before` are those one step earlier.
    fn constant_from(&self, step: usize, before: Arc<Vec<Buffer>>) -> Arc<Vec<Buffer>> {
        let mut new = self.settled.iter().flatten().filter(|(_, depth)| *depth == step).peekable();
        match new.peek() {
            Some(_) => Arc::new(before.iter().chain(new.map(|(buffer, _)| buffer)).cloned().collect()),
            None => before,
        }
    }

    /// The variables of the loops, outermost first.
    pub fn loops(&self) -> Vec<Var> {
        let of = |step: &Step| if let Step::Loop(var, ..) = step { Some(var.clone()) } else { None };
        self.steps.iter().filter_map(of).collect()
    }

    /// Assumes the steps as premises.
    pub fn assume(&self, question: &mut Question, names: &mut Names) {
        let mut constant = Arc::clone(&self.constant);
        let mut sizes: HashMap<&Var, usize> = HashMap::new();
        names.never_written(&constant);
        for scalar in &self.scalars {
            let term = names.var(scalar);
            if let Some((low, high)) = scalar.dtype().scalar.integer_range() {
                question.assume(&term.at_least(low).and(term.at_most(high)), "a parameter of this type");
            }
        }
        for (position, step) in self.steps.iter().enumerate() {
            // Memory may change between two steps, so their loads of buffers that are written are unrelated.
            names.next_statement();
            constant = self.constant_from(position, constant);
            names.never_written(&constant);
            match step {
                Step::Loop(var, min, extent) => {
                    question.declare(names, var, Kind::Index { min, extent });
                }
                // Arithmetic on a loaded value may have wrapped: only the type of the variable is known.
                Step::Let(var, value) if !is_same_everywhere(value, &constant) => {
                    let (ty, term) = (var.dtype(), names.var(var));
                    if let Some((low, high)) = ty.scalar.integer_range().filter(|_| ty.is_scalar()) {
                        question.assume(&term.at_least(low).and(term.at_most(high)), "a value of this type");
                    }
                }
                Step::Let(var, value) => {
                    let size = size(value, &sizes);
                    let value = names.term(value);
                    if size <= MOST_OPERATIONS {
                        sizes.insert(var, size);
                        names.bind(var, value);
                    } else {
                        // Names that stand for names twice double what is written out: from here on the name stands for itself.
                        question.assume(&names.var(var).equals(&value), "a name for a value");
                    }
                }
                Step::Guard(cond, holds) => {
                    for (part, holds) in premises(cond, *holds, &constant) {
                        // The part was evaluated, so its divisors are not zero.
                        for divisor in divisors(&part) {
                            let divisor = names.term(divisor);
                            question.assume(&divisor.differs(0), "a division on the way has a value");
                        }
                        let part = names.prop(&part);
                        question.assume(&if holds { part } else { part.negate() }, "a condition on the way");
                    }
                }
            }
        }
        names.assume_types(question);
    }

    /// Integers that are equal by conditions on the way, which read no memory.
    pub(crate) fn equalities(&self, names: &mut Names) -> Vec<(Term, Term)> {
        let mut found = Vec::new();
        for step in &self.steps {
            let Step::Guard(cond, holds) = step else { continue };
            for (part, _) in premises(cond, *holds, &[]).into_iter().filter(|(_, holds)| *holds) {
                if let Expr::Binary(BinaryOp::Eq, a, b) = part {
                    found.push((names.term(&a), names.term(&b)));
                }
            }
        }
        found
    }

    /// Whether one of a few concrete executions gets to the end of the path. False does not mean that none does.
    pub fn is_reached(&self) -> bool {
        self.is_reached_where(|_| true)
    }

    /// The same for executions that meet a further condition.
    pub(crate) fn is_reached_where(&self, is_met: impl Fn(&Bindings) -> bool) -> bool {
        self.candidates().any(|found| self.is_execution(&found) && is_met(&found))
    }

    /// Whether concrete values are those of an execution: each parameter has a value that it can have, and the path admits all.
    fn is_execution(&self, bindings: &Bindings) -> bool {
        let within = |var: &Var, low: i128| {
            let (least, greatest) = var.dtype().scalar.integer_range().unwrap_or((i128::MIN, i128::MAX));
            bindings.get(var).is_some_and(|value| (low.max(least)..=greatest).contains(value))
        };
        self.symbols.iter().all(|symbol| within(symbol, 1))
            && self.scalars.iter().all(|scalar| within(scalar, i128::MIN))
            && self.admits(bindings)
    }

    /// Calls `visit` at the end of the path for every iteration in order, until it returns something or `limit`
    /// iterations of loops were begun. Returns what was found, and whether every iteration was visited: a guard or
    /// extent without a known value leaves iterations out.
    pub(crate) fn each_iteration<T>(
        &self,
        symbols: &Bindings,
        limit: usize,
        visit: &mut impl FnMut(&Bindings) -> Option<T>,
    ) -> (Option<T>, bool) {
        let mut bindings = symbols.clone();
        self.give_scalars(&mut bindings);
        let mut walk = Walk { left: limit, complete: self.scalars.is_empty() };
        let found = walk.steps(self.steps.iter().as_slice(), &mut bindings, visit);
        (found, walk.complete)
    }

    /// The expressions on the path.
    pub(crate) fn exprs(&self) -> impl Iterator<Item = &Expr> {
        self.steps.iter().flat_map(|step| match step {
            Step::Loop(_, min, extent) => vec![min, extent],
            Step::Let(_, value) | Step::Guard(value, _) => vec![value],
        })
    }

    /// Whether loaded values decide which iterations get to the end of the path, or with which bindings.
    pub(crate) fn asks_memory(&self) -> bool {
        self.exprs().any(Expr::reads_memory)
    }

    /// Whether something on the way may have no value as an integer: a division, or a shift, whose right operand is no constant, or a
    /// conversion of a number that the type may not have.
    pub(crate) fn is_partial(&self) -> bool {
        let mut found = false;
        for expr in self.exprs() {
            expr.walk(&mut |part| {
                found |= trapping_operand(part).is_some_and(|(by, _)| by.as_const_int().is_none());
                found |= matches!(part, Expr::Cast(ty, value) if is_partial_conversion(ty.scalar, value));
            });
        }
        found
    }

    /// Whether concrete values are an execution of this path: every loop and guard agrees with them.
    pub fn admits(&self, bindings: &Bindings) -> bool {
        let mut bindings = bindings.clone();
        self.steps.iter().all(|step| match step {
            Step::Let(var, value) => {
                if let Ok(value) = value.eval_index(&bindings) {
                    bindings.insert(var.clone(), value);
                }
                true
            }
            Step::Guard(cond, holds) => cond.eval_index(&bindings).is_ok_and(|value| (value != 0) == *holds),
            Step::Loop(var, min, extent) => {
                let range = min.eval_index(&bindings).and_then(|min| Ok((min, extent.eval_index(&bindings)?)));
                let value = bindings.get(var).copied();
                range.is_ok_and(|(min, extent)| value.is_some_and(|value| (min..min + extent).contains(&value)))
            }
        })
    }
}

/// Whether a conversion may have no value: its operand has another type with more values, or may have left its own, as the variable of a
/// loop whose extent did.
fn is_partial_conversion(ty: ScalarType, value: &Expr) -> bool {
    let own = value.dtype().scalar;
    let is_open = match value {
        Expr::Int { .. } | Expr::Load { .. } => false,
        Expr::Var(_) => !is_narrower(own, ty),
        _ => ty.is_integer(),
    };
    is_narrower(ty, own) || is_open
}

/// Whether an integer type lacks values of another one.
fn is_narrower(ty: ScalarType, other: ScalarType) -> bool {
    let ranges = ty.integer_range().zip(other.integer_range());
    ty != ScalarType::Bool && ranges.is_some_and(|((low, high), (least, most))| least < low || high < most)
}

/// A walk over all iterations of a path.
struct Walk {
    /// Iterations that may still be begun.
    left: usize,
    /// Whether every iteration was visited so far.
    complete: bool,
}

impl Walk {
    /// Walks the rest of a path.
    fn steps<T>(
        &mut self,
        steps: &[&Step],
        bindings: &mut Bindings,
        visit: &mut impl FnMut(&Bindings) -> Option<T>,
    ) -> Option<T> {
        let Some((step, rest)) = steps.split_first() else { return visit(bindings) };
        match step {
            Step::Let(var, value) => {
                match value.eval_index(bindings) {
                    Ok(value) => drop(bindings.insert(var.clone(), value)),
                    // A value from an earlier iteration must not be taken for this one.
                    Err(_) => drop(bindings.remove(var)),
                }
                self.steps(rest, bindings, visit)
            }
            Step::Guard(cond, holds) => match cond.eval_index(bindings) {
                Ok(value) if (value != 0) == *holds => self.steps(rest, bindings, visit),
                Ok(_) => None,
                Err(_) => {
                    // Without the value of the guard it is not known whether these iterations get to the end.
                    self.complete = false;
                    None
                }
            },
            Step::Loop(var, min, extent) => {
                let (Ok(min), Ok(extent)) = (min.eval_index(bindings), extent.eval_index(bindings)) else {
                    self.complete = false;
                    return None;
                };
                for value in min..min.saturating_add(extent) {
                    if self.left == 0 {
                        self.complete = false;
                        return None;
                    }
                    self.left -= 1;
                    bindings.insert(var.clone(), value);
                    if let Some(found) = self.steps(rest, bindings, visit) {
                        return Some(found);
                    }
                }
                None
            }
        }
    }
}

/// Whether all parts of a condition are premises below it, and mean what the integers say: see [`premises`].
pub(crate) fn is_premise(cond: &Expr, constant: &[Buffer]) -> bool {
    match cond {
        Expr::Unary(UnaryOp::Not, inner) => is_premise(inner, constant),
        Expr::Binary(BinaryOp::And | BinaryOp::Or, a, b) => is_premise(a, constant) && is_premise(b, constant),
        Expr::Binary(BinaryOp::Eq | BinaryOp::Ne | BinaryOp::Lt | BinaryOp::Le | BinaryOp::Gt | BinaryOp::Ge, a, b) => {
            is_fixed(a, constant) && is_fixed(b, constant)
        }
        Expr::Load { .. } => is_fixed(cond, constant),
        _ => !cond.reads_memory(),
    }
}

/// The parts of a condition that are premises below it, each with whether it holds: those that read no memory, and truth values
/// and comparisons of numbers that were loaded from the buffers in `constant`.
pub(crate) fn premises(cond: &Expr, holds: bool, constant: &[Buffer]) -> Vec<(Expr, bool)> {
    let parts = |part: &Expr| premises(part, holds, constant);
    match cond {
        Expr::Unary(UnaryOp::Not, inner) => premises(inner, !holds, constant),
        Expr::Binary(BinaryOp::And, a, b) if holds => [parts(a), parts(b)].concat(),
        Expr::Binary(BinaryOp::Or, a, b) if !holds => [parts(a), parts(b)].concat(),
        Expr::Binary(BinaryOp::Eq | BinaryOp::Ne | BinaryOp::Lt | BinaryOp::Le | BinaryOp::Gt | BinaryOp::Ge, a, b)
            if is_fixed(a, constant) && is_fixed(b, constant) =>
        {
            vec![(cond.clone(), holds)]
        }
        Expr::Load { .. } if is_fixed(cond, constant) => vec![(cond.clone(), holds)],
        _ if cond.reads_memory() => Vec::new(),
        _ => vec![(cond.clone(), holds)],
    }
}

/// The same as [`is_same_everywhere`], also of a float that is loaded: comparisons of floats are no order of the integers, but one
/// comparison of the same values gives the same answer everywhere.
fn is_fixed(expr: &Expr, constant: &[Buffer]) -> bool {
    match expr {
        Expr::Load { buffer, indices } if buffer.dtype.is_scalar() && buffer.dtype.scalar.is_float() => {
            constant.contains(buffer) && indices.iter().all(|index| reads_only(index, constant))
        }
        _ => is_same_everywhere(expr, constant),
    }
}

/// Whether an expression has the same value wherever it is evaluated with the same variables, without arithmetic on
/// loaded values, which may wrap: it reads no memory, or it is an integer loaded from a buffer in `constant`, possibly
/// converted to a type that holds all values of its own.
fn is_same_everywhere(expr: &Expr, constant: &[Buffer]) -> bool {
    match expr {
        Expr::Load { buffer, indices } => {
            let is_integer = buffer.dtype.is_scalar() && buffer.dtype.scalar.integer_range().is_some();
            // The arithmetic of an index does not wrap: that is an obligation of the access.
            is_integer && constant.contains(buffer) && indices.iter().all(|index| reads_only(index, constant))
        }
        Expr::Cast(ty, value) if value.reads_memory() => {
            let ranges = ty.scalar.integer_range().zip(value.dtype().scalar.integer_range());
            let is_wider = ranges.is_some_and(|((low, high), (least, greatest))| low <= least && greatest <= high);
            is_wider && ty.is_scalar() && is_same_everywhere(value, constant)
        }
        _ => !expr.reads_memory(),
    }
}

/// Whether every load in an expression is of one of these buffers.
fn reads_only(expr: &Expr, buffers: &[Buffer]) -> bool {
    let mut found = true;
    expr.walk(&mut |part| found &= !matches!(part, Expr::Load { buffer, .. } if !buffers.contains(buffer)));
    found
}

/// The buffers that a statement writes.
fn written(stmt: &Stmt) -> Vec<Buffer> {
    let mut written: Vec<Buffer> = Vec::new();
    stmt.walk(&mut |stmt| {
        if let StmtKind::Store { buffer, .. } = &stmt.kind
            && !written.contains(buffer)
        {
            written.push(buffer.clone());
        }
    });
    written
}

/// The buffers of a function that its caller fills, and whose memory it never writes, through no view of it.
fn never_written(func: &PrimFunc) -> Vec<Buffer> {
    let written = written(&func.body);
    let mut buffers = func.buffers();
    let is_of_caller = |buffer: &Buffer| func.buffer_map.iter().any(|(_, other)| other.aliases(buffer));
    buffers.retain(|buffer| is_of_caller(buffer) && !written.iter().any(|other| other.aliases(buffer)));
    buffers
}

/// The right operand of a division or a shift of integers, which may have no value for it.
fn trapping_operand(expr: &Expr) -> Option<(&Expr, Traps)> {
    let Expr::Binary(op, _, operand) = expr else { return None };
    match op.traps() {
        Traps::Never => None,
        traps @ (Traps::ZeroDivisor | Traps::ShiftAmount) => Some((operand, traps)),
    }
}

/// The integer divisors in a condition that are evaluated whenever it is; those that are no constants and read no memory.
/// The second operand of `and` and `or`, and the arms of a choice, may be left out.
fn divisors(cond: &Expr) -> Vec<&Expr> {
    let mut found = Vec::new();
    let mut rest = vec![cond];
    while let Some(expr) = rest.pop() {
        match expr {
            Expr::Binary(BinaryOp::And | BinaryOp::Or, first, _) => rest.push(first),
            Expr::IfThenElse(cond, ..) => rest.push(cond),
            _ => {
                let is_known = |by: &Expr| by.as_const_int().is_none() && !by.reads_memory();
                let is_integer = |by: &Expr| by.dtype().is_scalar() && by.dtype().scalar.integer_range().is_some();
                let divisor = match trapping_operand(expr) {
                    Some((by, Traps::ZeroDivisor)) => Some(by),
                    Some((_, Traps::ShiftAmount | Traps::Never)) | None => None,
                };
                found.extend(divisor.filter(|by| is_known(by) && is_integer(by)));
                rest.extend(expr.children());
            }
        }
    }
    found
}

/// A statement together with the path to it.
#[derive(Clone, Debug)]
pub struct Site<'a> {
    /// The statement: a store, an evaluation, a loop head, a condition.
    pub stmt: &'a Stmt,
    /// The path to it.
    pub path: Path,
}

/// Every statement of a function that evaluates anything, in program order.
pub fn sites(func: &PrimFunc) -> Vec<Site<'_>> {
    sites_in(&func.body, &Path::of(func))
}

/// The same for questions about one execution of one statement: conditions that read memory which nobody writes after them are
/// premises, too.
/// The declarations of views are among them: their layouts are computed.
pub(crate) fn settled_sites(func: &PrimFunc) -> Vec<Site<'_>> {
    let mut found = Vec::new();
    let mut path = Path { settled: Some(Vec::new()), ..Path::of(func) };
    collect(&func.body, &mut path, &mut |stmt, path| {
        if !stmt.exprs().is_empty() || matches!(stmt.kind, StmtKind::DeclBuffer { .. }) {
            found.push(Site { stmt, path: path.clone() });
        }
    });
    found
}

/// [`sites`] of one statement at the end of a path.
pub(crate) fn sites_in<'a>(stmt: &'a Stmt, path: &Path) -> Vec<Site<'a>> {
    let mut found = Vec::new();
    let mut add = |stmt: &'a Stmt, path: &Path| {
        if !stmt.exprs().is_empty() {
            found.push(Site { stmt, path: path.clone() });
        }
    };
    collect(stmt, &mut path.clone(), &mut add);
    found
}

/// Calls `visit` for each statement of a function and the path to it, in program order.
pub(crate) fn each_statement<'a>(func: &'a PrimFunc, visit: &mut impl FnMut(&'a Stmt, &Path)) {
    collect(&func.body, &mut Path::of(func), visit);
}

/// [`each_statement`] of one statement at the end of a path.
pub(crate) fn each_statement_in<'a>(stmt: &'a Stmt, path: &Path, visit: &mut impl FnMut(&'a Stmt, &Path)) {
    collect(stmt, &mut path.clone(), visit);
}

/// Calls `visit` for each statement in a statement. The path is restored on return.
fn collect<'a>(stmt: &'a Stmt, path: &mut Path, visit: &mut impl FnMut(&'a Stmt, &Path)) {
    visit(stmt, path);
    let depth = path.steps.len();
    match &stmt.kind {
        StmtKind::For(inner) => {
            path.enter(inner);
            collect(&inner.body, path, visit);
        }
        StmtKind::Let { var, value, body } => {
            path.steps.push(Step::Let(var.clone(), value.clone()));
            collect(body, path, visit);
        }
        StmtKind::If { cond, then_body, else_body } => {
            path.guard(cond, true, [&**then_body]);
            collect(then_body, path, visit);
            path.leave(depth);
            if let Some(else_body) = else_body {
                path.guard(cond, sabotage::on("else-is-not-negated"), [&**else_body]);
                collect(else_body, path, visit);
            }
        }
        StmtKind::Seq(stmts) => {
            for (position, stmt) in stmts.iter().enumerate() {
                collect(stmt, path, visit);
                // An assertion holds for the statements after it.
                if let StmtKind::Assert { cond, .. } = &stmt.kind {
                    path.guard(cond, true, &stmts[position + 1..]);
                }
            }
        }
        StmtKind::Allocate { body, .. } | StmtKind::DeclBuffer { body, .. } | StmtKind::Attr { body, .. } => {
            collect(body, path, visit);
        }
        StmtKind::Store { .. } | StmtKind::Evaluate(_) | StmtKind::Barrier | StmtKind::Assert { .. } => {}
    }
    path.leave(depth);
}
