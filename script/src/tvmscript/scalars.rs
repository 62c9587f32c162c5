//! Scalars that change.
//!
//! ```python
//! x: T.int32 = n + 1
//! for i in range(4):
//!     x = x + i
//! B[0] = x
//! ```
//!
//! Since release 0.27, TVM prints a local buffer of one element like this. A name that is assigned in an inner block after it was
//! bound in an outer one, or updated with `+=`, is such a scalar, and is read as the buffer. A name that is only bound again in the
//! same block needs none: its uses below have the new value either way. `x: T.let[T.int32] = ...` is always a binding.

use std::sync::Arc;

use ruff_python_ast as ast;
use ruff_text_size::{Ranged, TextRange};
use tilewright_ir::{Buffer, BufferInfo, DataType, Expr, Scope, Stmt, StmtKind, Var};

use super::promote::Value;
use super::reader::{Binding, Reader};
use super::scopes::ScopeWrapper;
use super::stmt::BlockItem;
use crate::source::span;

/// Returns the names that a function changes, in the order in which they are found.
pub(super) fn changed_names(def: &ast::StmtFunctionDef) -> Vec<&str> {
    let mut names = Names::default();
    let params = def.parameters.iter_non_variadic_params().map(|param| param.parameter.name.as_str()).collect();
    names.block(params, &def.body);
    names.changed
}

/// The names that are bound so far, by block, and those that were changed.
#[derive(Default)]
struct Names<'a> {
    blocks: Vec<Vec<&'a str>>,
    changed: Vec<&'a str>,
}

impl<'a> Names<'a> {
    /// Visits a block in which `bound` are known from the start.
    fn block(&mut self, bound: Vec<&'a str>, body: &'a [ast::Stmt]) {
        self.blocks.push(bound);
        for stmt in body {
            self.stmt(stmt);
        }
        self.blocks.pop();
    }

    /// Visits a statement. Kinds that are not listed bind no names, or are errors of the reader.
    fn stmt(&mut self, stmt: &'a ast::Stmt) {
        match stmt {
            ast::Stmt::Assign(assign) => assign.targets.iter().for_each(|target| self.assigned(target)),
            ast::Stmt::AnnAssign(assign) => self.declare(&assign.target),
            ast::Stmt::AugAssign(assign) => {
                if let ast::Expr::Name(name) = &*assign.target {
                    self.change(&name.id);
                }
            }
            ast::Stmt::For(inner) => self.block(names_in(&inner.target), &inner.body),
            ast::Stmt::While(inner) => self.block(Vec::new(), &inner.body),
            ast::Stmt::With(inner) => {
                let bound = inner.items.iter().filter_map(|item| item.optional_vars.as_deref());
                self.block(bound.flat_map(names_in).collect(), &inner.body);
            }
            ast::Stmt::If(inner) => {
                self.block(Vec::new(), &inner.body);
                for clause in &inner.elif_else_clauses {
                    self.block(Vec::new(), &clause.body);
                }
            }
            _ => {}
        }
    }

    /// Visits the target of an assignment: a new name, one of the same block again, or one of a block around it, which changes.
    fn assigned(&mut self, target: &'a ast::Expr) {
        for name in names_in(target) {
            let is_known = |block: &Vec<&str>| block.contains(&name);
            match self.blocks.iter().rposition(is_known) {
                Some(at) if at + 1 < self.blocks.len() => self.change(name),
                Some(_) => {}
                None => self.bind(name),
            }
        }
    }

    fn declare(&mut self, target: &'a ast::Expr) {
        for name in names_in(target) {
            self.bind(name);
        }
    }

    fn bind(&mut self, name: &'a str) {
        if let Some(innermost) = self.blocks.last_mut() {
            innermost.push(name);
        }
    }

    fn change(&mut self, name: &'a str) {
        if !self.changed.contains(&name) {
            self.changed.push(name);
        }
    }
}

/// Returns the names in a target: a name, or a tuple of them.
fn names_in(target: &ast::Expr) -> Vec<&str> {
    match target {
        ast::Expr::Name(name) => vec![name.id.as_str()],
        ast::Expr::Tuple(tuple) => tuple.elts.iter().flat_map(names_in).collect(),
        _ => Vec::new(),
    }
}

impl<'a> Reader<'a> {
    /// Returns whether the function changes the value of a name.
    pub(super) fn is_changed(&self, name: &str) -> bool {
        self.changed.contains(&name)
    }

    /// Reads the assignment of a value to a name that the function changes: the declaration of a scalar, or a store.
    pub(super) fn assign_scalar(&mut self, name: &'a ast::ExprName, value: &'a ast::Expr) -> Option<BlockItem> {
        match self.lookup(&name.id) {
            None | Some(Binding::Declared(_)) => {
                let value = self.expr(value)?;
                Some(BlockItem::Scope(self.declare_scalar(&name.id, value, name.range())))
            }
            Some(Binding::Failed) => None,
            Some(_) => {
                let buffer = self.scalar(name)?;
                let read = self.value(value)?;
                let value = self.coerce(read, buffer.dtype, value.range())?;
                Some(BlockItem::Stmt(Stmt::store(&buffer, vec![Expr::int(0)], value)))
            }
        }
    }

    /// Declares a scalar: a local buffer of one element, which is written, for the rest of the block.
    pub(super) fn declare_scalar(&mut self, name: &str, value: Expr, range: TextRange) -> ScopeWrapper {
        let buffer = scalar_buffer(name, value.dtype(), range);
        self.scalars.push(buffer.clone());
        self.bind(name, Binding::Value(Expr::load(&buffer, vec![Expr::int(0)])));
        Box::new(move |body| {
            let first = Stmt::store(&buffer, vec![Expr::int(0)], value).at(Some(span(range)));
            Stmt::new(StmtKind::Allocate { buffer, body: Arc::new(Stmt::seq(vec![first, body])) })
        })
    }

    /// Reads `x += value` for a scalar.
    pub(super) fn update_scalar(&mut self, name: &'a ast::ExprName, assign: &'a ast::StmtAugAssign) -> Option<Stmt> {
        if self.is_failed(&assign.target) {
            return None;
        }
        let (buffer, read) = (self.scalar(name), self.value(&assign.value));
        let (buffer, rhs) = (buffer?, read?);
        let Some(op) = super::expr::operator(assign.op) else {
            return self.error(
                "unsupported",
                assign.range(),
                "this operator is not supported here",
                "use + - * / // %",
            );
        };
        let before = Expr::load(&buffer, vec![Expr::int(0)]);
        let value = Value::from(self.binary(op, before.into(), rhs, assign.range())?);
        let value = self.coerce(value, buffer.dtype, assign.range())?;
        Some(Stmt::store(&buffer, vec![Expr::int(0)], value))
    }

    /// Returns the buffer of a scalar. A parameter, a loop variable or an axis of a block cannot change.
    fn scalar(&mut self, name: &'a ast::ExprName) -> Option<Buffer> {
        if let Some(Binding::Value(Expr::Load { buffer, .. })) = self.lookup(&name.id)
            && self.scalars.contains(buffer)
        {
            return Some(buffer.clone());
        }
        let message = format!("`{}` is assigned here, and has its meaning from a block around this one", name.id);
        let help = "TVM's releases disagree on whether this changes it: choose another name for another value, or \
            write `x: T.int32 = ...` first for one that changes";
        self.error("reassigned", name.range(), message, help)
    }
}

/// Returns the buffer of a scalar.
fn scalar_buffer(name: &str, dtype: DataType, range: TextRange) -> Buffer {
    Buffer::new(BufferInfo {
        name: name.to_owned(),
        dtype,
        shape: vec![Expr::int(1)],
        strides: None,
        elem_offset: Expr::int(0),
        axis_separators: tilewright_ir::AxisSeparators::none(1),
        scope: Scope::Local,
        data: Var::new(name, DataType::HANDLE),
        span: Some(span(range)),
    })
}
