//! Attributes of statements.
//!
//! | notation | meaning |
//! |---|---|
//! | `T.attr(A.data, "key", value)` | a hint about memory or a variable, for the statements in its scope |
//! | `T.attr({"key": value, "other": 1})` | hints about nothing, as release 0.27 prints those whose node is `0` |
//! | `k = T.int32()`, `T.attr(k, "pragma_unroll_explicit", 1)` and a loop over `k` below | an annotation of that loop |
//! | `T.attr(T.comm_reducer(...), "reduce_scope", ...)` | see `allreduce` |
//! | `T.attr(T.iter_var(...), "thread_extent", 8)` | see `older` |
//!
//! TVM's LowerOpaqueBlock makes the third form of `for k in T.serial(n, annotations={"pragma_unroll_explicit": 1})`. The reader takes it
//! back, because a variable has no meaning outside of its loop. Where NarrowDataType has given the loop another variable, no loop has the
//! one of the hint, which is then a hint about nothing. In TVM such a hint is about the statements in its scope, whatever its node is.

use std::cell::Cell;
use std::rc::Rc;

use ruff_python_ast as ast;
use ruff_text_size::Ranged;
use tilewright_ir::{AttrValue, Expr, Stmt, StmtKind};

use super::reader::{Binding, Reader, string};
use super::scopes::ScopeWrapper;

/// A hint about the variable of a loop that follows.
pub(super) struct PendingHint<'a> {
    /// The name of the variable.
    name: &'a str,
    key: String,
    value: AttrValue,
    /// Whether a loop has the hint as an annotation. Otherwise it becomes one without a node.
    is_taken: Rc<Cell<bool>>,
}

impl<'a> Reader<'a> {
    /// Reads `T.attr(...)`.
    pub(super) fn attr_scope(&mut self, call: &'a ast::ExprCall) -> Option<ScopeWrapper> {
        if let ([dict @ ast::Expr::Dict(_)], []) = (&call.arguments.args[..], &call.arguments.keywords[..]) {
            let hints = self.annotations(Some(dict))?;
            let attr = |body, (key, value)| attr(AttrValue::Int(0), key, value, body);
            return Some(Box::new(move |body| hints.into_iter().rev().fold(body, attr)));
        }
        let args = self.bind_args(call, "attr", &["node", "attr_key", "value"], 3)?;
        let key = args.get(1).and_then(string);
        if key == Some("reduce_scope") {
            let read = self.reduce_scope(args.get(0)?);
            self.reducer_failed = read.is_none();
            return read;
        }
        if let Some(thread) = self.thread_of_attr(args.get(0)?, key) {
            return self.iter_var(thread, args.get(2)?);
        }
        if let (ast::Expr::Name(name), Some(key)) = (args.get(0)?, key)
            && key.starts_with("pragma_")
            && self.has_no_value(name)
        {
            let value = self.attr_value(args.get(2)?)?;
            let (is_taken, key) = (Rc::new(Cell::new(false)), key.to_owned());
            let hint =
                PendingHint { name: &name.id, key: key.clone(), value: value.clone(), is_taken: is_taken.clone() };
            self.hints.push(hint);
            return Some(Box::new(
                move |body| {
                    if is_taken.get() { body } else { attr(AttrValue::Int(0), key, value, body) }
                },
            ));
        }
        let (node, value) = (self.attr_value(args.get(0)?), self.attr_value(args.get(2)?));
        let Some(key) = key.map(str::to_owned) else {
            return self.error("attribute", call.range(), "the key of an attribute is a string", "\"key\"");
        };
        let (node, value) = (node?, value?);
        Some(Box::new(move |body| attr(node, key, value, body)))
    }

    /// Returns whether a name is declared, as by `k = T.int32()`, and means nothing yet.
    pub(super) fn has_no_value(&self, name: &ast::ExprName) -> bool {
        match self.lookup(&name.id) {
            Some(Binding::Declared(_)) => true,
            Some(Binding::Value(Expr::Var(var))) => self.symbols.vars().contains(var) && !self.is_extent(var),
            _ => false,
        }
    }

    /// Takes the hints about the variable of a loop, in their order.
    pub(super) fn hints_of(&mut self, name: &str) -> Vec<(String, AttrValue)> {
        let mut found = Vec::new();
        for hint in self.hints.iter().filter(|hint| hint.name == name && !hint.is_taken.get()) {
            hint.is_taken.set(true);
            found.push((hint.key.clone(), hint.value.clone()));
        }
        found
    }
}

/// Returns a statement with a hint.
fn attr(node: AttrValue, key: String, value: AttrValue, body: Stmt) -> Stmt {
    Stmt::new(StmtKind::Attr { node, key, value, body: body.into() })
}
