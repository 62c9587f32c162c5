//! Spellings of releases before 0.12 that newer ones have other notations for.
//!
//! | written | read as |
//! |---|---|
//! | `T.exp(x, dtype="float32")`, also operators, `T.if_then_else`, `T.likely` | the call without the type, which has to be that of the value |
//! | `with T.attr(T.iter_var(tx, None, "ThreadIndex", "threadIdx.x"), "thread_extent", 8):` | `with T.launch_thread("threadIdx.x", 8) as tx:` |
//! | `with T.LetStmt(v, var=x):` | `with T.LetStmt(v) as x:` |
//! | `T.preflattened_buffer(A, (4, 4), ...)` | nothing: the shape that a parameter had before it was flattened |

use ruff_python_ast as ast;
use ruff_text_size::Ranged;

use super::calls::{binary_named, math_named};
use super::promote::Value;
use super::reader::Reader;
use super::scopes::ScopeWrapper;
use super::stmt::BlockItem;

/// Returns whether older releases print the type of the result with calls of a function.
pub(super) fn may_state_type(name: &str) -> bool {
    let others = ["if_then_else", "likely", "bitwise_not", "tvm_storage_sync"];
    binary_named(name).is_some() || math_named(name).is_some() || others.contains(&name)
}

impl<'a> Reader<'a> {
    /// Checks that a value has the type that its call states.
    pub(super) fn of_stated_type(&mut self, call: &'a ast::ExprCall, value: Value) -> Option<Value> {
        let stated =
            call.arguments.find_keyword("dtype").filter(|_| self.callee(&call.func).is_some_and(may_state_type));
        let Some(stated) = stated else { return Some(value) };
        let (stated_type, ty) = (self.dtype(&stated.value)?, value.expr.dtype());
        if stated_type == ty || value.is_literal {
            return Some(value);
        }
        let message = format!("the value has the type {ty}, and the call states {stated_type}");
        self.error("type", stated.range(), message, "leave out `dtype`, or convert an operand")
    }

    /// Returns the variable in `T.attr(T.iter_var(tx, None, "ThreadIndex", "threadIdx.x"), "thread_extent", 8)`; `None` if the attribute has
    /// no such node.
    pub(super) fn thread_of_attr(&self, node: &'a ast::Expr, key: Option<&str>) -> Option<&'a ast::ExprCall> {
        let ast::Expr::Call(call) = node else { return None };
        let is_launch = matches!(key, Some("thread_extent" | "virtual_thread"));
        (is_launch && self.callee(&call.func) == Some("iter_var")).then_some(call)
    }

    /// The scope of a launch axis with such a variable.
    pub(super) fn iter_var(&mut self, call: &'a ast::ExprCall, extent: &'a ast::Expr) -> Option<ScopeWrapper> {
        let Some(args) = self.bind_args(call, "iter_var", &["var", "dom", "iter_type", "thread_tag"], 4) else {
            call.arguments.args.iter().take(1).for_each(|var| self.bind_failed(var));
            return None;
        };
        let (var, tag) = (args.get(0)?, args.get(3)?);
        let ast::Expr::Name(name) = var else {
            let help = "`T.iter_var(tx, None, \"ThreadIndex\", \"threadIdx.x\")`";
            return self.error("thread", var.range(), "a launch axis has a variable", help);
        };
        let (axis, extent) = (self.launch_axis(tag), self.expr(extent));
        let (Some(axis), Some(extent)) = (axis, extent) else {
            self.bind_failed(var);
            return None;
        };
        Some(self.launched(&name.id, axis, extent))
    }

    /// Reads `T.preflattened_buffer(A, (4, 4), ...)`, which says nothing of what the function does.
    pub(super) fn preflattened(&mut self, call: &'a ast::ExprCall) -> Option<BlockItem> {
        let buffer = call.arguments.args.first().and_then(|first| self.buffer(first));
        buffer.map(|_| BlockItem::Nothing)
    }

    /// Returns the name that `T.LetStmt(v, var=x)` binds.
    pub(super) fn bound_by(call: &'a ast::ExprCall) -> Option<&'a ast::Expr> {
        call.arguments.find_keyword("var").map(|keyword| &keyword.value)
    }
}

/// Returns whether a block that no other one is around says nothing of its accesses: it has no axes, and lists without regions. So TVM
/// prints the block around a whole function, and those that call functions of other libraries.
pub(super) fn says_nothing(has_axes: bool, n_regions: [Option<usize>; 2]) -> bool {
    !has_axes && n_regions == [Some(0); 2]
}
