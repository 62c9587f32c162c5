//! Well-formedness: names are bound, types agree, ranks agree, only allocated memory is used.

use std::collections::HashSet;

use crate::buffer::Buffer;
use crate::diag::{Diagnostic, Span};
use crate::dtype::{DataType, ScalarType};
use crate::expr::Expr;
use crate::func::PrimFunc;
use crate::stmt::{Stmt, StmtKind};
use crate::var::Var;

/// A function that was found well formed. Back ends and the interpreter take only this.
#[derive(Clone, Copy, Debug)]
pub struct Validated<'a>(&'a PrimFunc);

impl<'a> Validated<'a> {
    /// The function.
    pub fn func(self) -> &'a PrimFunc {
        self.0
    }
}

/// Checks a function: every variable is bound where it is used and once only, every buffer's memory is a parameter's
/// or allocated around its use, indices are integers and as many as the buffer has axes, operands have the types
/// that the operator table asks for.
///
/// # Errors
/// All that is wrong, not the first only.
pub fn validate(func: &PrimFunc) -> Result<Validated<'_>, Vec<Diagnostic>> {
    let mut checker = Checker { scoped: true, ..Checker::default() };
    checker.func(func);
    if checker.found.is_empty() { Ok(Validated(func)) } else { Err(checker.found) }
}

/// The type of an expression, if it and everything in it is well typed.
///
/// # Errors
/// The first thing that is wrong, without a place.
pub fn type_of(expr: &Expr) -> Result<DataType, Diagnostic> {
    let mut checker = Checker::default();
    let ty = checker.types(expr);
    checker.found.into_iter().next().map_or(Ok(ty), Err)
}

#[derive(Default)]
struct Checker {
    /// Inside a function, where names must be bound and memory allocated; else types alone are looked at.
    scoped: bool,
    found: Vec<Diagnostic>,
    span: Option<Span>,
    bound: Vec<Var>,
    ever_bound: HashSet<Var>,
    /// The memory that was allocated so far, also where it is gone again.
    ever_allocated: HashSet<Var>,
    allocated: Vec<Var>,
}

impl Checker {
    fn report(&mut self, code: &'static str, message: String) {
        self.found.push(Diagnostic::error(code, self.span, message));
    }

    fn func(&mut self, func: &PrimFunc) {
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
        for (position, (param, buffer)) in func.buffer_map.iter().enumerate() {
            self.span = buffer.span;
            if let Some((_, first)) = func.buffer_map[..position].iter().find(|(known, _)| known == param) {
                let message =
                    format!("parameter `{param}` is the buffer `{first}` already, and cannot be `{buffer}` too");
                self.report("matched-twice", message);
            }
            if !func.params.contains(param) {
                self.report("unknown-parameter", format!("`{param}` in the buffer map is no parameter"));
            }
            if self.allocated.contains(&buffer.data) {
                self.report(
                    "shared-data",
                    format!("buffer `{buffer}` lies where the buffer of another parameter lies"),
                );
            }
            self.allocated.push(buffer.data.clone());
            self.buffer_decl(buffer, func);
        }
        self.stmt(&func.body, func);
    }

    fn bind(&mut self, var: &Var) {
        if !self.ever_bound.insert(var.clone()) {
            self.report("bound-twice", format!("variable `{var}` is bound twice"));
        }
        self.bound.push(var.clone());
    }

    fn buffer_decl(&mut self, buffer: &Buffer, func: &PrimFunc) {
        let outer = self.span;
        self.span = buffer.span.or(outer);
        let strides = buffer.strides.iter().flatten();
        for expr in buffer.shape.iter().chain(strides).chain(std::iter::once(&buffer.elem_offset)) {
            self.index(expr, "extent, stride or offset");
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

    fn stmt(&mut self, stmt: &Stmt, func: &PrimFunc) {
        let outer = self.span;
        self.span = stmt.span.or(outer);
        let (bound, allocated) = (self.bound.len(), self.allocated.len());
        match &stmt.kind {
            StmtKind::For(inner) => {
                self.index(&inner.min, "start of a loop");
                self.index(&inner.extent, "extent of a loop");
                if !inner.var.dtype().scalar.is_integer() {
                    self.report("type", format!("loop variable `{}` is no integer", inner.var));
                }
                self.bind(&inner.var);
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
                self.allocation_of(buffer);
            }
            StmtKind::If { cond, .. } | StmtKind::Assert { cond, .. } => self.condition(cond),
            StmtKind::Let { var, value, .. } => {
                let ty = self.types(value);
                if ty != var.dtype() {
                    self.report("type", format!("`{var}` has the type {}, its value {ty}", var.dtype()));
                }
                self.bind(var);
            }
            StmtKind::Evaluate(expr) => drop(self.types(expr)),
            StmtKind::Seq(_) | StmtKind::Attr { .. } => {}
        }
        for child in stmt.children() {
            self.stmt(child, func);
        }
        self.bound.truncate(bound);
        self.allocated.truncate(allocated);
        self.span = outer;
    }

    fn store(&mut self, buffer: &Buffer, indices: &[Expr], value: &Expr) {
        let element = self.access(buffer, indices);
        let ty = self.types(value);
        if ty != element {
            self.report("type", format!("a value of type {ty} is stored to `{buffer}`, which takes {element}"));
        }
    }

    fn condition(&mut self, cond: &Expr) {
        let ty = self.types(cond);
        if ty != DataType::BOOL {
            self.report("type", format!("the condition `{cond}` has the type {ty}, not bool"));
        }
    }

    fn index(&mut self, expr: &Expr, what: &str) {
        let ty = self.types(expr);
        if !ty.scalar.is_integer() || !ty.is_scalar() {
            self.report("type", format!("the {what} `{expr}` has the type {ty}, not an integer of one lane"));
        }
    }

    fn allocation_of(&mut self, buffer: &Buffer) {
        if self.scoped && !self.allocated.contains(&buffer.data) {
            self.report(
                "no-memory",
                format!("buffer `{buffer}` has no memory here: it is neither a parameter nor allocated"),
            );
        }
    }

    /// Checks an access and gives the type that it reads or writes.
    fn access(&mut self, buffer: &Buffer, indices: &[Expr]) -> DataType {
        self.allocation_of(buffer);
        if indices.len() != buffer.rank() {
            let (given, rank) = (indices.len(), buffer.rank());
            self.report("rank", format!("`{buffer}` has {rank} axes, but {given} indices are given"));
        }
        let mut lanes = 1;
        for (position, index) in indices.iter().enumerate() {
            let ty = self.types(index);
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

    /// The type of an expression; reports what is wrong in it.
    fn types(&mut self, expr: &Expr) -> DataType {
        match expr {
            Expr::Load { buffer, indices } => return self.access(buffer, indices),
            Expr::Var(var) => {
                if self.scoped && !self.bound.contains(var) {
                    self.report("unbound", format!("variable `{var}` is not bound here"));
                }
                return var.dtype();
            }
            Expr::Int { value, ty } => {
                let in_range = ty.integer_range().is_some_and(|(low, high)| (low..=high).contains(value));
                if !in_range {
                    self.report("constant", format!("{value} is no value of the type {ty}"));
                }
                return DataType::scalar(*ty);
            }
            _ => {}
        }
        let types: Vec<_> = expr.children().into_iter().map(|child| self.types(child)).collect();
        let Some(ty) = Self::node_type(expr, &types) else {
            let given: Vec<_> = types.iter().map(ToString::to_string).collect();
            self.report("type", format!("`{expr}` is not defined for operands of the types {}", given.join(", ")));
            return expr.dtype();
        };
        ty
    }

    fn node_type(expr: &Expr, types: &[DataType]) -> Option<DataType> {
        match (expr, types) {
            (Expr::Int { ty, .. } | Expr::Float { ty, .. }, _) => Some(DataType::scalar(*ty)),
            (Expr::Var(var), _) => Some(var.dtype()),
            (Expr::Binary(op, ..), &[a, b]) => op.result_type(a, b),
            (Expr::Unary(op, _), &[a]) => op.result_type(a),
            (Expr::Call(function, _), args) => function.result_type(args),
            (Expr::Select(..) | Expr::IfThenElse(..), &[c, a, b]) => {
                let condition = c.scalar == ScalarType::Bool && (c.is_scalar() || c.lanes == a.lanes);
                (condition && a == b).then_some(a)
            }
            (Expr::Cast(ty, _), &[a]) => {
                let handles = a.scalar == ScalarType::Handle || ty.scalar == ScalarType::Handle;
                (ty.lanes == a.lanes && !handles).then_some(*ty)
            }
            (Expr::Ramp { lanes, .. }, &[base, stride]) => {
                (base == stride && base.is_scalar() && base.scalar.is_integer() && *lanes > 1)
                    .then(|| base.with_lanes(*lanes))
            }
            (Expr::Broadcast { lanes, .. }, &[value]) => {
                (value.is_scalar() && *lanes > 1).then(|| value.with_lanes(*lanes))
            }
            (Expr::Load { .. }, _) => Some(expr.dtype()),
            _ => None,
        }
    }
}
