//! Blocks whose heads have the domains of their axes, as TVM printed them until release 0.8.
//!
//! ```python
//! with T.block([128, T.reduce_axis(0, 64)], "C") as [vi, vk]:
//!     T.bind(vi, i)
//!     T.bind(vk, k)
//! ```
//!
//! is `vi = T.axis.spatial(128, i)` and `vk = T.axis.reduce((0, 64), k)`. Each axis needs a `T.bind`.

use ruff_python_ast as ast;
use ruff_text_size::Ranged;
use tilewright_ir::{AxisKind, Expr};

use super::blocks::axis_kind;
use super::reader::{Reader, sequence};

/// An axis of a head: its name, its kind, its start and extent, and its value.
pub(super) type HeadAxis<'a> = (&'a str, AxisKind, ((Expr, Expr), Expr));

const HELP: &str = "write `with T.block([n, T.reduce_axis(0, m)], \"C\") as [vi, vk]:` and `T.bind(vi, i)` for each axis, or \
    `vi = T.axis.spatial(n, i)` in the block";

impl<'a> Reader<'a> {
    /// Returns whether a statement is `T.bind(vi, i)`.
    pub(super) fn is_bind(&self, stmt: &'a ast::Stmt) -> bool {
        self.statement_call(stmt, "bind").is_some()
    }

    /// Reads the axes in the head of a block. Their values are outside of the scope of the axes.
    pub(super) fn head(
        &mut self,
        call: &'a ast::ExprCall,
        axes: &'a [ast::Expr],
        target: Option<&'a ast::Expr>,
        body: &'a [ast::Stmt],
    ) -> Option<Vec<HeadAxis<'a>>> {
        let targets = match target {
            None => &[],
            Some(target) => sequence(target).unwrap_or_else(|| std::slice::from_ref(target)),
        };
        if targets.len() != axes.len() {
            let message = format!("the head has {} axes and {} names", axes.len(), targets.len());
            return self.error("block", call.range(), message, HELP);
        }
        let read: Vec<_> =
            targets.iter().zip(axes).map(|(target, domain)| self.head_axis(target, domain, body)).collect();
        read.into_iter().collect()
    }

    /// Reads one axis.
    fn head_axis(
        &mut self,
        target: &'a ast::Expr,
        domain: &'a ast::Expr,
        body: &'a [ast::Stmt],
    ) -> Option<HeadAxis<'a>> {
        let ast::Expr::Name(name) = target else {
            return self.error("block", target.range(), "an axis has a name", HELP);
        };
        let binds = body.iter().filter_map(|stmt| self.statement_call(stmt, "bind"));
        let found: Vec<_> = binds.filter(|bind| is_of(bind, name)).collect();
        let [bind] = found[..] else {
            let message = format!("`{}` has {} statements `T.bind`", name.id, found.len());
            return self.error("block", target.range(), message, HELP);
        };
        let args = self.bind_args(bind, "bind", &["iter_var", "expr"], 2)?;
        let value = self.value(args.get(1)?)?;
        let (kind, parts) = match domain {
            ast::Expr::Call(call) => {
                let named = self.callee(&call.func).and_then(|name| name.strip_suffix("_axis"));
                let Some(kind) = named.and_then(axis_kind).filter(|_| call.arguments.keywords.is_empty()) else {
                    return self.error("block", domain.range(), "this is no domain of an axis", HELP);
                };
                (kind, &*call.arguments.args)
            }
            other => (AxisKind::Spatial, sequence(other).unwrap_or_else(|| std::slice::from_ref(other))),
        };
        let read = self.axis_domain(parts, value, domain.range())?;
        Some((name.id.as_str(), kind, read))
    }
}

/// Returns whether `T.bind(vi, i)` is about a name.
fn is_of(bind: &ast::ExprCall, name: &ast::ExprName) -> bool {
    matches!(bind.arguments.args.first(), Some(ast::Expr::Name(first)) if first.id == name.id)
}
