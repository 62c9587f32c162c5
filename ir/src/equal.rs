//! Equality of programs and index maps up to the identity of variables and buffers.
//!
//! Two programs are equal if their variables and buffers can be renamed one to one so that the programs become
//! identical. Tests compare programs this way, and so does the check that printing and reading is the identity.

use std::collections::HashMap;

use crate::block::{Block, BlockRegion};
use crate::buffer::Buffer;
use crate::expr::Expr;
use crate::func::{Module, PrimFunc};
use crate::index_map::IndexMap;
use crate::scalar::Scalar;
use crate::stmt::{AttrValue, Stmt, StmtKind};
use crate::var::Var;

/// Returns whether two functions are equal up to the identity of variables and buffers. With `names`, the names of
/// functions, variables and buffers must be equal too.
pub fn funcs_equal(a: &PrimFunc, b: &PrimFunc, names: bool) -> bool {
    Matcher { names, ..Matcher::default() }.func(a, b)
}

/// Returns whether [`funcs_equal`] holds for every pair of functions, in order.
pub fn modules_equal(a: &Module, b: &Module, names: bool) -> bool {
    a.funcs.len() == b.funcs.len() && a.funcs.iter().zip(&b.funcs).all(|(a, b)| funcs_equal(a, b, names))
}

/// Returns whether two index maps are equal up to the identity of variables, among them symbolic extents. With
/// `names`, the names of the variables must be equal too.
pub fn index_maps_equal(a: &IndexMap, b: &IndexMap, names: bool) -> bool {
    Matcher { names, ..Matcher::default() }.index_map(a, b)
}

/// Returns whether two expressions are one operation, whatever the operands: then they have the same value if the operands do.
/// False of loads and of conditionals that are evaluated lazily: their values depend on more than the values of their operands.
pub fn same_operation(a: &Expr, b: &Expr) -> bool {
    let same = match (a, b) {
        (Expr::Int { .. }, Expr::Int { .. }) => a == b,
        (Expr::Float { value: x, ty }, Expr::Float { value: y, ty: other }) => {
            ty == other && x.to_bits() == y.to_bits()
        }
        (Expr::Var(x), Expr::Var(y)) => x == y,
        (Expr::Binary(op, ..), Expr::Binary(other, ..)) => op == other,
        (Expr::Unary(op, _), Expr::Unary(other, _)) => op == other,
        (Expr::Call(function, _), Expr::Call(other, _)) => function == other,
        (Expr::Cast(ty, x), Expr::Cast(other, y)) => ty == other && x.dtype() == y.dtype(),
        (Expr::Select(..), Expr::Select(..)) => true,
        (Expr::Ramp { lanes, .. }, Expr::Ramp { lanes: other, .. })
        | (Expr::Broadcast { lanes, .. }, Expr::Broadcast { lanes: other, .. }) => lanes == other,
        _ => false,
    };
    same && a.children().len() == b.children().len()
}

/// The correspondence of variables and buffers found so far. It is extended at the first use of a variable or buffer and
/// must stay one to one, hence a map for each direction.
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
            && self.all(tiles.0, tiles.1, |m, a, b| m.var(&a.0, &b.0) && a.1.is_same(&b.1))
            && a.attrs.schedule == b.attrs.schedule
            && a.attrs.texture_limits == b.attrs.texture_limits
            && self.all(&a.attrs.extents, &b.attrs.extents, Self::var)
            && self.entries(&a.attrs.other, &b.attrs.other)
    }

    /// Returns whether two lists have the same length and `same` holds for each pair.
    fn all<T>(&mut self, a: &[T], b: &[T], mut same: impl FnMut(&mut Self, &T, &T) -> bool) -> bool {
        a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(self, a, b))
    }

    /// Returns whether two variables correspond. Variables without a partner become partners if their types are
    /// equal.
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

    /// Returns whether two buffers correspond. Buffers without a partner become partners if their properties are
    /// equal.
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
            && self.data(&x.data, &y.data)
            && self.exprs(&x.shape, &y.shape)
            && self.expr(&x.elem_offset, &y.elem_offset)
    }

    /// Returns whether two data variables correspond. Their names are ignored, because a data variable is printed by
    /// the name of its buffer.
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

    /// Returns whether two expressions are equal. The first match compares the nodes alone; it is exhaustive in `a`,
    /// so that a new kind of expression must be given a comparison.
    fn expr(&mut self, a: &Expr, b: &Expr) -> bool {
        let same_node = match a {
            Expr::Int { .. } => a == b,
            // Two NaNs are the same constant, 0.0 and -0.0 are not.
            Expr::Float { value: x, ty } => {
                matches!(b, Expr::Float { value: y, ty: other } if ty == other && Scalar::Float(*x).same(Scalar::Float(*y)))
            }
            Expr::Var(x) => matches!(b, Expr::Var(y) if self.var(x, y)),
            Expr::Binary(op, ..) => matches!(b, Expr::Binary(other, ..) if op == other),
            Expr::Unary(op, _) => matches!(b, Expr::Unary(other, _) if op == other),
            Expr::Call(function, _) => matches!(b, Expr::Call(other, _) if function == other),
            Expr::Select(..) => matches!(b, Expr::Select(..)),
            Expr::IfThenElse(..) => matches!(b, Expr::IfThenElse(..)),
            Expr::Cast(ty, _) => matches!(b, Expr::Cast(other, _) if ty == other),
            Expr::Ramp { lanes, .. } => matches!(b, Expr::Ramp { lanes: other, .. } if lanes == other),
            Expr::Broadcast { lanes, .. } => matches!(b, Expr::Broadcast { lanes: other, .. } if lanes == other),
            Expr::Load { buffer, .. } => matches!(b, Expr::Load { buffer: other, .. } if self.buffer(buffer, other)),
        };
        let (left, right) = (a.children(), b.children());
        same_node && left.len() == right.len() && left.into_iter().zip(right).all(|(a, b)| self.expr(a, b))
    }

    /// Returns whether two attribute values are equal. Names of variables are ignored, as in [`Matcher::data`].
    fn attr(&mut self, a: &AttrValue, b: &AttrValue) -> bool {
        match a {
            AttrValue::Bool(_) | AttrValue::Int(_) | AttrValue::Float(_) | AttrValue::Str(_) => a == b,
            AttrValue::Var(x) => matches!(b, AttrValue::Var(y) if self.data(x, y)),
            AttrValue::Expr(x) => matches!(b, AttrValue::Expr(y) if self.expr(x, y)),
            AttrValue::List(x) => matches!(b, AttrValue::List(y) if self.all(x, y, Self::attr)),
            AttrValue::Dict(x) => matches!(b, AttrValue::Dict(y) if self.entries(x, y)),
            AttrValue::Block(x) => matches!(b, AttrValue::Block(y) if self.block(x, y)),
        }
    }

    /// Returns whether two blocks say the same.
    fn block(&mut self, a: &Block, b: &Block) -> bool {
        let region = |m: &mut Self, x: &BlockRegion, y: &BlockRegion| {
            let range = |m: &mut Self, x: &(Expr, Expr), y: &(Expr, Expr)| m.expr(&x.0, &y.0) && m.expr(&x.1, &y.1);
            m.buffer(&x.buffer, &y.buffer) && m.all(&x.ranges, &y.ranges, range)
        };
        let regions = |m: &mut Self, x: &Option<Vec<BlockRegion>>, y: &Option<Vec<BlockRegion>>| match (x, y) {
            (Some(x), Some(y)) => m.all(x, y, region),
            (None, None) => true,
            _ => false,
        };
        a.name == b.name
            && (a.has_predicate, a.has_init) == (b.has_predicate, b.has_init)
            && self.all(&a.axes, &b.axes, |m, x, y| {
                x.kind == y.kind && m.var(&x.var, &y.var) && m.expr(&x.min, &y.min) && m.expr(&x.extent, &y.extent)
            })
            && regions(self, &a.reads, &b.reads)
            && regions(self, &a.writes, &b.writes)
            && self.entries(&a.annotations, &b.annotations)
    }

    /// Returns whether two dictionaries have equal keys and values in the same order.
    fn entries(&mut self, a: &[(String, AttrValue)], b: &[(String, AttrValue)]) -> bool {
        self.all(a, b, |matcher, a, b| a.0 == b.0 && matcher.attr(&a.1, &b.1))
    }

    /// Returns whether two statements are equal. Exhaustive in `a`, like [`Matcher::expr`].
    ///
    /// The node is compared before its expressions and its body, so that the variable or buffer it binds is paired
    /// before its first use.
    fn stmt(&mut self, a: &Stmt, b: &Stmt) -> bool {
        let same_node = match &a.kind {
            StmtKind::For(x) => {
                matches!(&b.kind, StmtKind::For(y) if x.kind == y.kind
                    && self.var(&x.var, &y.var)
                    && self.entries(&x.annotations, &y.annotations))
            }
            StmtKind::Store { buffer: x, .. } => {
                matches!(&b.kind, StmtKind::Store { buffer: y, .. } if self.buffer(x, y))
            }
            StmtKind::Allocate { buffer: x, .. } => {
                matches!(&b.kind, StmtKind::Allocate { buffer: y, .. } if self.buffer(x, y))
            }
            StmtKind::DeclBuffer { buffer: x, .. } => {
                matches!(&b.kind, StmtKind::DeclBuffer { buffer: y, .. } if self.buffer(x, y))
            }
            StmtKind::If { else_body: x, .. } => {
                matches!(&b.kind, StmtKind::If { else_body: y, .. } if x.is_some() == y.is_some())
            }
            StmtKind::Let { var: x, .. } => matches!(&b.kind, StmtKind::Let { var: y, .. } if self.var(x, y)),
            StmtKind::Seq(_) => matches!(b.kind, StmtKind::Seq(_)),
            StmtKind::Evaluate(_) => matches!(b.kind, StmtKind::Evaluate(_)),
            StmtKind::Barrier => matches!(b.kind, StmtKind::Barrier),
            StmtKind::Attr { node, key, value, .. } => {
                matches!(&b.kind, StmtKind::Attr { node: n, key: k, value: v, .. }
                    if key == k && self.attr(node, n) && self.attr(value, v))
            }
            StmtKind::Assert { message, is_assumed, .. } => {
                matches!(&b.kind, StmtKind::Assert { message: m, is_assumed: a, .. } if message == m && is_assumed == a)
            }
        };
        let (exprs, stmts) = ((a.exprs(), b.exprs()), (a.children(), b.children()));
        // The lengths are compared because `zip` ends with the shorter list.
        same_node
            && exprs.0.len() == exprs.1.len()
            && exprs.0.zip(exprs.1).all(|(a, b)| self.expr(a, b))
            && stmts.0.len() == stmts.1.len()
            && stmts.0.zip(stmts.1).all(|(a, b)| self.stmt(a, b))
    }
}
