//! Equality of programs up to the identity of variables and buffers.

use std::collections::HashMap;

use crate::buffer::Buffer;
use crate::expr::Expr;
use crate::func::{Module, PrimFunc};
use crate::index_map::IndexMap;
use crate::stmt::{AttrValue, Stmt, StmtKind};
use crate::var::Var;

/// Whether two functions are the same but for which variable and buffer objects they use. Names of functions,
/// variables and buffers count as long as `names` is set.
pub fn funcs_equal(a: &PrimFunc, b: &PrimFunc, names: bool) -> bool {
    Matcher { names, ..Matcher::default() }.func(a, b)
}

/// [`funcs_equal`] for every function, in order.
pub fn modules_equal(a: &Module, b: &Module, names: bool) -> bool {
    a.funcs.len() == b.funcs.len() && a.funcs.iter().zip(&b.funcs).all(|(a, b)| funcs_equal(a, b, names))
}

/// Whether two index maps are the same but for which variable objects they use; symbolic extents count as variables. Names
/// count as long as `names` is set.
pub fn index_maps_equal(a: &IndexMap, b: &IndexMap, names: bool) -> bool {
    Matcher { names, ..Matcher::default() }.index_map(a, b)
}

/// Pairs variables and buffers as they are met; a pair must stay one to one.
#[derive(Default)]
struct Matcher {
    names: bool,
    vars: HashMap<Var, Var>,
    vars_back: HashMap<Var, Var>,
    buffers: HashMap<Buffer, Buffer>,
    buffers_back: HashMap<Buffer, Buffer>,
}

impl Matcher {
    fn func(&mut self, a: &PrimFunc, b: &PrimFunc) -> bool {
        let maps = (&a.attrs.layout_transform_map, &b.attrs.layout_transform_map);
        let tiles = (&a.attrs.tile_layout, &b.attrs.tile_layout);
        (!self.names || a.name == b.name)
            && self.all(&a.params, &b.params, Self::var)
            && self.all(&a.buffer_map, &b.buffer_map, |m, a, b| m.var(&a.0, &b.0) && m.buffer(&a.1, &b.1))
            && self.stmt(&a.body, &b.body)
            && self.all(maps.0, maps.1, |m, a, b| m.var(&a.0, &b.0) && m.all(&a.1, &b.1, Self::index_map))
            && self.all(tiles.0, tiles.1, |m, a, b| m.var(&a.0, &b.0) && a.1.same(&b.1))
            && a.attrs.texture_limits == b.attrs.texture_limits
            && self.all(&a.attrs.other, &b.attrs.other, |m, a, b| a.0 == b.0 && m.attr(&a.1, &b.1))
    }

    fn all<T>(&mut self, a: &[T], b: &[T], mut same: impl FnMut(&mut Self, &T, &T) -> bool) -> bool {
        a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(self, a, b))
    }

    fn var(&mut self, a: &Var, b: &Var) -> bool {
        match (self.vars.get(a), self.vars_back.get(b)) {
            (Some(image), Some(preimage)) => image == b && preimage == a,
            (None, None) => {
                self.vars.insert(a.clone(), b.clone());
                self.vars_back.insert(b.clone(), a.clone());
                a.dtype() == b.dtype() && (!self.names || a.name() == b.name())
            }
            _ => false,
        }
    }

    fn buffer(&mut self, a: &Buffer, b: &Buffer) -> bool {
        match (self.buffers.get(a), self.buffers_back.get(b)) {
            (Some(image), Some(preimage)) => return image == b && preimage == a,
            (None, None) => {}
            _ => return false,
        }
        self.buffers.insert(a.clone(), b.clone());
        self.buffers_back.insert(b.clone(), a.clone());
        let (x, y) = (a.info(), b.info());
        let strides = match (&x.strides, &y.strides) {
            (None, None) => true,
            (Some(p), Some(q)) => self.exprs(p, q),
            _ => false,
        };
        strides
            && x.dtype == y.dtype
            && x.scope == y.scope
            && x.axis_separators == y.axis_separators
            && (!self.names || x.name == y.name)
            // A data variable is printed through its buffer; its own name does not count.
            && self.data(&x.data, &y.data)
            && self.exprs(&x.shape, &y.shape)
            && self.expr(&x.elem_offset, &y.elem_offset)
    }

    fn data(&mut self, a: &Var, b: &Var) -> bool {
        let names = std::mem::replace(&mut self.names, false);
        let same = self.var(a, b);
        self.names = names;
        same
    }

    fn index_map(&mut self, a: &IndexMap, b: &IndexMap) -> bool {
        self.all(a.vars(), b.vars(), Self::var)
            && self.exprs(a.domain(), b.domain())
            && self.exprs(a.outputs(), b.outputs())
            && a.axis_separators() == b.axis_separators()
    }

    fn exprs(&mut self, a: &[Expr], b: &[Expr]) -> bool {
        self.all(a, b, Self::expr)
    }

    fn expr(&mut self, a: &Expr, b: &Expr) -> bool {
        let same_node = match (a, b) {
            (Expr::Int { .. }, Expr::Int { .. }) => a == b,
            (Expr::Float { value: x, ty }, Expr::Float { value: y, ty: other }) => {
                ty == other && (x.to_bits() == y.to_bits() || (x.is_nan() && y.is_nan()))
            }
            (Expr::Var(x), Expr::Var(y)) => self.var(x, y),
            (Expr::Binary(op, ..), Expr::Binary(other, ..)) => op == other,
            (Expr::Unary(op, _), Expr::Unary(other, _)) => op == other,
            (Expr::Call(function, _), Expr::Call(other, _)) => function == other,
            (Expr::Select(..), Expr::Select(..)) | (Expr::IfThenElse(..), Expr::IfThenElse(..)) => true,
            (Expr::Cast(ty, _), Expr::Cast(other, _)) => ty == other,
            (Expr::Ramp { lanes, .. }, Expr::Ramp { lanes: other, .. })
            | (Expr::Broadcast { lanes, .. }, Expr::Broadcast { lanes: other, .. }) => lanes == other,
            (Expr::Load { buffer, .. }, Expr::Load { buffer: other, .. }) => self.buffer(buffer, other),
            _ => false,
        };
        let (left, right) = (a.children(), b.children());
        same_node && left.len() == right.len() && left.into_iter().zip(right).all(|(a, b)| self.expr(a, b))
    }

    fn attr(&mut self, a: &AttrValue, b: &AttrValue) -> bool {
        match (a, b) {
            (AttrValue::Var(x), AttrValue::Var(y)) => self.data(x, y),
            (AttrValue::Expr(x), AttrValue::Expr(y)) => self.expr(x, y),
            (AttrValue::List(x), AttrValue::List(y)) => self.all(x, y, Self::attr),
            (AttrValue::Dict(x), AttrValue::Dict(y)) => self.all(x, y, |m, a, b| a.0 == b.0 && m.attr(&a.1, &b.1)),
            _ => a == b,
        }
    }

    fn stmt(&mut self, a: &Stmt, b: &Stmt) -> bool {
        let same_node = match (&a.kind, &b.kind) {
            (StmtKind::For(x), StmtKind::For(y)) => {
                x.kind == y.kind
                    && self.var(&x.var, &y.var)
                    && self.all(&x.annotations, &y.annotations, |m, a, b| a.0 == b.0 && m.attr(&a.1, &b.1))
            }
            (StmtKind::Store { buffer: x, .. }, StmtKind::Store { buffer: y, .. })
            | (StmtKind::Allocate { buffer: x, .. }, StmtKind::Allocate { buffer: y, .. })
            | (StmtKind::DeclBuffer { buffer: x, .. }, StmtKind::DeclBuffer { buffer: y, .. }) => self.buffer(x, y),
            (StmtKind::If { else_body: x, .. }, StmtKind::If { else_body: y, .. }) => x.is_some() == y.is_some(),
            (StmtKind::Let { var: x, .. }, StmtKind::Let { var: y, .. }) => self.var(x, y),
            (StmtKind::Seq(_), StmtKind::Seq(_)) | (StmtKind::Evaluate(_), StmtKind::Evaluate(_)) => true,
            (StmtKind::Attr { node, key, value, .. }, StmtKind::Attr { node: n, key: k, value: v, .. }) => {
                key == k && self.attr(node, n) && self.attr(value, v)
            }
            (StmtKind::Assert { message: x, .. }, StmtKind::Assert { message: y, .. }) => x == y,
            _ => false,
        };
        let (exprs, stmts) = ((a.exprs(), b.exprs()), (a.children(), b.children()));
        same_node
            && exprs.0.len() == exprs.1.len()
            && exprs.0.into_iter().zip(exprs.1).all(|(a, b)| self.expr(a, b))
            && stmts.0.len() == stmts.1.len()
            && stmts.0.into_iter().zip(stmts.1).all(|(a, b)| self.stmt(a, b))
    }
}
