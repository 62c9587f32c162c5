//! Assignments of several names at once, and declarations of symbolic extents.
//!
//! ```python
//! n, m = T.int32(), T.int64()
//! bx, tx = T.env_thread("blockIdx.x"), T.env_thread("threadIdx.x")
//! x, y = y, x
//! ```
//!
//! As in Python, all values are read before the first name gets its meaning.

use ruff_python_ast as ast;
use ruff_text_size::{Ranged, TextRange};
use tilewright_ir::{DataType, Expr};

use super::reader::{Binding, Reader, string};
use super::scopes::ScopeWrapper;
use super::stmt::BlockItem;
use crate::source::MAX_SCOPES;

impl<'a> Reader<'a> {
    /// Returns the names and the types of a statement that declares symbolic extents: `n = T.int32()`,
    /// `n = T.var("int32")`, or several of them, `n, m = T.int32(), T.int32()`. `None` for any other statement.
    pub(super) fn declared_symbols(&self, stmt: &'a ast::Stmt) -> Option<Vec<(&'a ast::ExprName, DataType)>> {
        let ast::Stmt::Assign(assign) = stmt else { return None };
        let [target] = &assign.targets[..] else { return None };
        match (target, &*assign.value) {
            (ast::Expr::Tuple(names), ast::Expr::Tuple(values)) if names.elts.len() == values.elts.len() => {
                names.elts.iter().zip(&values.elts).map(|(name, value)| self.declared_symbol(name, value)).collect()
            }
            (name, value) => Some(vec![self.declared_symbol(name, value)?]),
        }
    }

    /// Returns the name and the type of one symbolic extent.
    pub(super) fn declared_symbol(
        &self,
        name: &'a ast::Expr,
        value: &'a ast::Expr,
    ) -> Option<(&'a ast::ExprName, DataType)> {
        let (ast::Expr::Name(name), ast::Expr::Call(call)) = (name, value) else { return None };
        let args = &call.arguments.args;
        let ty = match self.callee(&call.func)? {
            "var" | "Var" => args.last().and_then(string).unwrap_or("int32").parse().ok(),
            ty if args.is_empty() && call.arguments.keywords.is_empty() => ty.parse::<DataType>().ok(),
            _ => None,
        };
        Some((name, ty?))
    }

    /// Binds the symbolic extents that a statement declares. Returns false for any other statement.
    pub(super) fn declare_symbol(&mut self, stmt: &'a ast::Stmt) -> bool {
        let Some(symbols) = self.declared_symbols(stmt) else { return false };
        for (name, ty) in symbols {
            let var = self.symbols.declare(&name.id, ty);
            self.bind(name.id.as_str(), Binding::Value(var.into()));
        }
        true
    }

    /// Binds the symbolic extents that the shapes of parameters use without a declaration: they are known in the body too.
    pub(super) fn bind_symbols(&mut self) {
        for var in self.symbols.vars().to_vec() {
            if self.lookup(var.name()).is_none() {
                self.bind(var.name(), Binding::Value(Expr::from(&var)));
            }
        }
    }

    /// Reads `x, y = a, b`. Each name is bound as if it stood alone, but after all values were read.
    pub(super) fn tuple(
        &mut self,
        names: &'a [ast::Expr],
        values: &'a [ast::Expr],
        range: TextRange,
    ) -> Option<BlockItem> {
        if names.len() != values.len() {
            let message = format!("{} names for {} values", names.len(), values.len());
            return self.error("unsupported", range, message, "a tuple gives each name one value");
        }
        if let Some(other) = names.iter().find(|name| !matches!(name, ast::Expr::Name(_))) {
            let help = "write one line for each store";
            return self.error("unsupported", other.range(), "a tuple on the left consists of names", help);
        }
        // Each name may open a scope, and the limit of the block counts statements.
        if self.scopes + names.len() > MAX_SCOPES {
            let message = format!("more than {MAX_SCOPES} allocations, bindings and other scopes are open here");
            return self.error("nesting", range, message, "split the function");
        }
        let before = self.names.len();
        let (mut bound, mut wraps, mut failed) = (Vec::new(), Vec::<ScopeWrapper>::new(), false);
        for (name, value) in names.iter().zip(values) {
            match self.assign_one(name, value) {
                Some(BlockItem::Scope(wrap)) => wraps.push(wrap),
                Some(BlockItem::Nothing) => {}
                Some(BlockItem::Stmt(_)) => {
                    let help = "write one line for each statement";
                    return self.error("unsupported", value.range(), "this binds no name", help);
                }
                None => failed = true,
            }
            bound.extend(self.names.split_off(before));
        }
        self.names.extend(bound);
        if failed {
            return None;
        }
        self.scopes += wraps.len().saturating_sub(1);
        Some(BlockItem::Scope(Box::new(move |body| wraps.into_iter().rev().fold(body, |body, wrap| wrap(body)))))
    }
}
