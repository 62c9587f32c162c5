//! Validation: every variable is bound, every access has memory, and types and ranks agree.

use std::collections::HashSet;

use crate::buffer::Buffer;
use crate::device::{self, DeviceCall};
use crate::diag::{Diagnostic, Span};
use crate::dtype::{DataType, ScalarType};
use crate::expr::Expr;
use crate::func::PrimFunc;
use crate::phases::is_thread_loop;
use crate::stmt::{ForKind, Stmt, StmtKind};
use crate::var::Var;

/// A function that passed [`validate`]. The interpreter and the code generators accept only this type, so they need
/// not handle ill-formed programs.
#[derive(Clone, Copy, Debug)]
pub struct Validated<'a>(&'a PrimFunc);

impl<'a> Validated<'a> {
    /// Returns the function.
    pub fn func(self) -> &'a PrimFunc {
        self.0
    }
}

/// Checks a function. Every variable is bound exactly once and used only where it is bound; the memory of every
/// buffer belongs to a parameter or is allocated around each access; indices are integers, one per axis; and operands
/// have the types that the operator table requires.
///
/// # Errors
/// All problems, not only the first.
pub fn validate(func: &PrimFunc) -> Result<Validated<'_>, Vec<Diagnostic>> {
    let mut checker = Checker { in_function: true, ..Checker::default() };
    checker.func(func);
    if checker.errors.is_empty() { Ok(Validated(func)) } else { Err(checker.errors) }
}

/// Returns the type of an expression if it and every expression inside it are well typed. Variables need not be
/// bound.
///
/// # Errors
/// The first problem, without a source location.
pub fn type_of(expr: &Expr) -> Result<DataType, Diagnostic> {
    let mut checker = Checker::default();
    let ty = checker.type_of_expr(expr);
    checker.errors.into_iter().next().map_or(Ok(ty), Err)
}

/// The state of a check.
#[derive(Default)]
struct Checker {
    /// Whether names must be bound and memory allocated. False for an expression by itself, of which only types are
    /// checked.
    in_function: bool,
    /// The problems found so far.
    errors: Vec<Diagnostic>,
    /// The source location of the innermost statement or declaration with a location.
    span: Option<Span>,
    /// The variables in scope.
    bound: Vec<Var>,
    /// All variables bound so far, in scope or not.
    ever_bound: HashSet<Var>,
    /// The data variables of all allocations so far, in scope or not.
    ever_allocated: HashSet<Var>,
    /// The data variables whose memory is valid.
    allocated: Vec<Var>,
    /// The kinds of the loops around the current place, outermost first.
    loops: Vec<ForKind>,
}

impl Checker {
    /// Adds an error at the current location.
    fn report(&mut self, code: &'static str, message: String) {
        self.errors.push(Diagnostic::error(code, self.span, message));
    }

    /// Checks the parameters, the buffer map and the body.
    fn func(&mut self, func: &PrimFunc) {
        // A scalar parameter may also be an extent, so it may occur both among the parameters and among the symbols.
        for param in func.params.iter().chain(&func.symbols()) {
            if !self.bound.contains(param) {
                self.bind(param);
            }
        }
        for (position, param) in func.params.iter().enumerate() {
            if func.params[..position].contains(param) {
                self.report("duplicate-parameter", format!("parameter `{param}` appears twice"));
            }
        }
        for extent in &func.attrs.extents {
            if !self.bound.contains(extent) || extent.dtype().scalar.integer_range().is_none() {
                let message = format!("`{extent}` is called an extent, but is no integer of the call");
                self.report("unknown-extent", message);
            }
        }
        for (position, (param, buffer)) in func.buffer_map.iter().enumerate() {
            self.span = buffer.span;
            if let Some((_, first)) = func.buffer_map[..position].iter().find(|(known, _)| known == param) {
                let message =
                    format!("parameter `{param}` is the buffer `{first}` already, and cannot be `{buffer}` too");
                self.report("matched-twice", message);
            }
            if !func.params.contains(param) {
                self.report("unknown-parameter", format!("`{param}` in the buffer map is not a parameter"));
            }
            if self.allocated.contains(&buffer.data) {
                self.report(
                    "shared-data",
                    format!("buffer `{buffer}` has the same memory as the buffer of another parameter"),
                );
            }
            self.allocated.push(buffer.data.clone());
            self.buffer_decl(buffer, func);
        }
        self.stmt(&func.body, func);
        self.errors.extend(device::faults(func));
    }

    /// Checks that what is passed to a device function is known where it is called.
    fn device_args(&mut self, stmt: &Stmt) {
        let Some(call) = DeviceCall::of(stmt) else { return };
        for var in call.passed() {
            if !self.bound.contains(&var) && !self.allocated.contains(&var) {
                self.report("unbound", format!("`{var}` is passed to `{}` where it is not bound", call.name));
            }
        }
    }

    /// Brings a variable into scope, which may happen only once.
    fn bind(&mut self, var: &Var) {
        if !self.ever_bound.insert(var.clone()) {
            self.report("bound-twice", format!("variable `{var}` is bound twice"));
        }
        self.bound.push(var.clone());
    }

    /// Checks the shape, strides, offset and axis separators of a declared buffer.
    fn buffer_decl(&mut self, buffer: &Buffer, func: &PrimFunc) {
        let outer = self.span;
        self.span = buffer.span.or(outer);
        let strides = buffer.strides.iter().flatten();
        for expr in buffer.shape.iter().chain(strides).chain(std::iter::once(&buffer.elem_offset)) {
            self.check_scalar_integer(expr, "extent, stride or offset");
            if expr.reads_memory() {
                let message = format!(
                    "`{expr}` in the layout of `{buffer}` reads memory, which may change while the buffer is in use"
                );
                self.report("layout-reads-memory", message);
            }
        }
        if buffer.strides.as_ref().is_some_and(|strides| strides.len() != buffer.rank()) {
            self.report("rank", format!("buffer `{buffer}` has as many strides as axes, or none"));
        }
        if let Some(&extent) = buffer.const_shape().iter().flatten().find(|&&extent| extent < 0) {
            self.report("negative-extent", format!("buffer `{buffer}` has the negative extent {extent}"));
        }
        let final_rank = func.attrs.final_rank(&buffer.data, buffer.rank());
        if buffer.axis_separators.rank() != final_rank {
            let rank = buffer.axis_separators.rank();
            let message =
                format!("buffer `{buffer}` has separators for rank {rank}, but its layout has rank {final_rank}");
            self.report("axis-separators", message);
        }
        self.span = outer;
    }

    /// Checks a statement and the statements inside it. Variables and memory that it introduces go out of scope
    /// afterwards.
    fn stmt(&mut self, stmt: &Stmt, func: &PrimFunc) {
        let outer = self.span;
        self.span = stmt.span.or(outer);
        let (bound, allocated, loops) = (self.bound.len(), self.allocated.len(), self.loops.len());
        match &stmt.kind {
            StmtKind::For(inner) => {
                self.check_scalar_integer(&inner.min, "start of a loop");
                self.check_scalar_integer(&inner.extent, "extent of a loop");
                if !inner.var.dtype().scalar.is_integer() {
                    self.report("type", format!("loop variable `{}` is not an integer", inner.var));
                }
                // The bounds are evaluated outside the loop, so they were checked before its variable comes into scope.
                self.bind(&inner.var);
                self.loops.push(inner.kind);
            }
            StmtKind::Store { buffer, indices, value } => self.store(buffer, indices, value),
            StmtKind::Allocate { buffer, .. } => {
                if !self.ever_allocated.insert(buffer.data.clone()) || self.allocated.contains(&buffer.data) {
                    self.report("allocated-twice", format!("the memory of `{buffer}` is allocated already"));
                }
                self.allocated.push(buffer.data.clone());
                self.buffer_decl(buffer, func);
            }
            StmtKind::DeclBuffer { buffer, .. } => {
                self.buffer_decl(buffer, func);
                self.check_allocated(buffer);
            }
            StmtKind::If { cond, .. } | StmtKind::Assert { cond, .. } => self.check_condition(cond),
            StmtKind::Let { var, value, .. } => {
                let ty = self.type_of_expr(value);
                if ty != var.dtype() {
                    self.report("type", format!("`{var}` has the type {}, its value {ty}", var.dtype()));
                }
                self.bind(var);
            }
            StmtKind::Evaluate(expr) => drop(self.type_of_expr(expr)),
            StmtKind::Barrier => self.barrier(),
            StmtKind::Attr { .. } => self.device_args(stmt),
            StmtKind::Seq(_) => {}
        }
        for child in stmt.children() {
            self.stmt(child, func);
        }
        self.bound.truncate(bound);
        self.allocated.truncate(allocated);
        self.loops.truncate(loops);
        self.span = outer;
    }

    /// Checks that a barrier is a statement of a thread, and that the loops between the two have an order.
    fn barrier(&mut self) {
        let Some(group) = self.loops.iter().position(|kind| is_thread_loop(*kind)) else {
            let message = "no loop that is bound to threadIdx is around this barrier".to_owned();
            let help =
                "a barrier is for the threads of a group; put it into `T.thread_binding(n, thread=\"threadIdx.x\")`";
            self.errors.push(Diagnostic::error("barrier-place", self.span, message).with_help(help));
            return;
        };
        if self.loops[group..].iter().any(|kind| kind.is_concurrent() && !is_thread_loop(*kind)) {
            let message = "a loop between the threads and this barrier is parallel, vectorized or bound to blockIdx";
            let help = "only serial loops and loops bound to threadIdx may be there";
            self.errors.push(Diagnostic::error("barrier-place", self.span, message).with_help(help));
        }
    }

    /// Checks that a stored value has the type of the elements that it is written to.
    fn store(&mut self, buffer: &Buffer, indices: &[Expr], value: &Expr) {
        let element = self.access(buffer, indices);
        let ty = self.type_of_expr(value);
        if ty != element {
            self.report("type", format!("a value of type {ty} is stored to `{buffer}`, which takes {element}"));
        }
    }

    /// Checks that a condition is a scalar `bool`.
    fn check_condition(&mut self, cond: &Expr) {
        let ty = self.type_of_expr(cond);
        if ty != DataType::BOOL {
            self.report("type", format!("the condition `{cond}` has the type {ty}, not bool"));
        }
    }

    /// Checks that `expr` is a scalar integer; `what` names its role in the error.
    fn check_scalar_integer(&mut self, expr: &Expr, what: &str) {
        let ty = self.type_of_expr(expr);
        if !ty.scalar.is_integer() || !ty.is_scalar() {
            self.report("type", format!("the {what} `{expr}` has the type {ty}, not a scalar integer"));
        }
    }

    /// Checks that the memory of a buffer is valid at this point.
    fn check_allocated(&mut self, buffer: &Buffer) {
        if self.in_function && !self.allocated.contains(&buffer.data) {
            self.report(
                "no-memory",
                format!("buffer `{buffer}` has no memory here: it is neither a parameter nor allocated"),
            );
        }
    }

    /// Checks an access, and returns the type of the value that it reads or writes.
    fn access(&mut self, buffer: &Buffer, indices: &[Expr]) -> DataType {
        self.check_allocated(buffer);
        if indices.len() != buffer.rank() {
            let (given, rank) = (indices.len(), buffer.rank());
            self.report("rank", format!("`{buffer}` has {rank} axes, but {given} indices are given"));
        }
        let mut lanes = 1;
        for (position, index) in indices.iter().enumerate() {
            let ty = self.type_of_expr(index);
            if !ty.scalar.is_integer() {
                self.report("type", format!("the index `{index}` of `{buffer}` has the type {ty}"));
            }
            if ty.is_scalar() {
                continue;
            }
            lanes = ty.lanes;
            if position + 1 != indices.len() {
                self.report("vector-index", format!("`{buffer}` takes a vector index in the last position only"));
            }
            if !buffer.dtype.is_scalar() {
                self.report("vector-index", format!("`{buffer}` holds vectors, so it takes no vector index"));
            }
        }
        buffer.dtype.with_lanes(buffer.dtype.lanes.saturating_mul(lanes))
    }

    /// Returns the type of an expression, and reports all problems inside it. The type of an ill-typed expression is a
    /// guess that lets the check continue.
    fn type_of_expr(&mut self, expr: &Expr) -> DataType {
        // Checks that need more than the types of the operands: memory, scope and the value of a constant.
        match expr {
            Expr::Load { buffer, indices } => return self.access(buffer, indices),
            Expr::Var(var) => {
                if self.in_function && !self.bound.contains(var) {
                    self.report("unbound", format!("variable `{var}` is not bound here"));
                }
                return var.dtype();
            }
            Expr::Int { value, ty } => {
                let in_range = ty.integer_range().is_some_and(|(low, high)| (low..=high).contains(value));
                if !in_range {
                    self.report("constant", format!("{value} is not a value of the type {ty}"));
                }
                return DataType::scalar(*ty);
            }
            Expr::Float { .. }
            | Expr::Binary(..)
            | Expr::Unary(..)
            | Expr::Call(..)
            | Expr::Select(..)
            | Expr::IfThenElse(..)
            | Expr::Cast(..)
            | Expr::Ramp { .. }
            | Expr::Broadcast { .. } => {}
        }
        let types: Vec<_> = expr.children().map(|child| self.type_of_expr(child)).collect();
        let Some(ty) = result_type(expr, &types) else {
            let given: Vec<_> = types.iter().map(ToString::to_string).collect();
            self.report("type", format!("`{expr}` is not defined for operands of the types {}", given.join(", ")));
            return expr.dtype();
        };
        ty
    }
}

/// Returns the type of an expression whose operands have the types `operands`, and `None` if it is not defined for them.
fn result_type(expr: &Expr, operands: &[DataType]) -> Option<DataType> {
    match expr {
        Expr::Int { .. } | Expr::Float { .. } | Expr::Var(_) | Expr::Load { .. } => Some(expr.dtype()),
        Expr::Binary(op, ..) => {
            let &[lhs, rhs] = operands else { return None };
            op.result_type(lhs, rhs)
        }
        Expr::Unary(op, _) => {
            let &[operand] = operands else { return None };
            op.result_type(operand)
        }
        Expr::Call(function, _) => function.result_type(operands),
        Expr::Select(..) | Expr::IfThenElse(..) => {
            let &[condition, a, b] = operands else { return None };
            // A scalar condition chooses between whole vectors, a vector condition for each lane.
            let chooses = condition.scalar == ScalarType::Bool && (condition.is_scalar() || condition.lanes == a.lanes);
            (chooses && a == b).then_some(a)
        }
        Expr::Cast(ty, _) => {
            let &[value] = operands else { return None };
            let has_handle = value.scalar == ScalarType::Handle || ty.scalar == ScalarType::Handle;
            (ty.lanes == value.lanes && !has_handle).then_some(*ty)
        }
        Expr::Ramp { lanes, .. } => {
            let &[base, stride] = operands else { return None };
            let is_scalar_integer = base.is_scalar() && base.scalar.is_integer();
            (base == stride && is_scalar_integer && *lanes > 1).then(|| base.with_lanes(*lanes))
        }
        Expr::Broadcast { lanes, .. } => {
            let &[value] = operands else { return None };
            (value.is_scalar() && *lanes > 1).then(|| value.with_lanes(*lanes))
        }
    }
}
