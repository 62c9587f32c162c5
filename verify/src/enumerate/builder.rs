//! Expressions as a graph of operations whose values have known ranges.
//!
//! Equal operations share a node, and an operation whose range is a single value becomes a constant. The graph is built in
//! checked arithmetic: an expression that may lack a value, or leave 64 bits, at some point of the box has no node.
//!
//! ```text
//! (i * 4 + j) // 4 on (8, 4)     n0 = axis 0 in 0..=7         n3 = n0 * n2 in 0..=28
//!                                n1 = axis 1 in 0..=3         n4 = n3 + n1 in 0..=31
//!                                n2 = 4                       n5 = n4 // n2 in 0..=7
//! ```
//!
//! The absence of wrap-around is what makes the fast evaluation believable: within the ranges, 64-bit arithmetic agrees
//! with the integers of [`Expr::eval_index`].

use std::collections::HashMap;

use tilewright_ir::sabotage;
use tilewright_ir::{BinaryOp, Bindings, Expr, MathFn, UnaryOp, Var};

use super::program::PointProgram;
use super::range::{self, Range};

/// Number of a node; operands have smaller numbers.
pub(crate) type NodeId = usize;

/// Greatest number of nodes in a graph.
const MAX_NODES: usize = 20_000;

/// The operation that computes a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Instr {
    /// A constant.
    Const(i64),
    /// The index of this axis.
    Axis(usize),
    /// An operator with two operands.
    Binary(BinaryOp, NodeId, NodeId),
    /// `-a`
    Neg(NodeId),
    /// 1 where the operand is 0, else 0.
    Not(NodeId),
    /// `~a`
    BitNot(NodeId),
    /// `|a|`
    Abs(NodeId),
    /// The second operand where the first is not 0, else the third.
    Choose(NodeId, NodeId, NodeId),
}

/// A node of the graph.
#[derive(Clone, Debug)]
pub(super) struct Node {
    /// The operation.
    pub(super) instr: Instr,
    /// The values that it takes over the box.
    pub(super) range: Range,
    /// The axes that the value depends on, increasing.
    pub(super) axes: Vec<usize>,
}

/// Builds the graph of expressions over a box of points.
///
/// Every node has a value at every point of the box that fits 64 bits, as do all values that it is computed from.
#[derive(Clone, Debug)]
pub(crate) struct Builder {
    /// The extents of the box.
    extents: Vec<i64>,
    /// The node that each variable is bound to.
    vars: HashMap<Var, NodeId>,
    /// The nodes, operands first.
    nodes: Vec<Node>,
    /// The node of each operation.
    known: HashMap<Instr, NodeId>,
}

impl Builder {
    /// A builder for the box `0..extents` under the given values of the symbols. `None` if the box is empty or an extent
    /// or a symbol exceeds 2^62.
    pub(crate) fn new(extents: &[i128], symbols: &Bindings) -> Option<Self> {
        let mut builder = Self { extents: Vec::new(), vars: HashMap::new(), nodes: Vec::new(), known: HashMap::new() };
        for &extent in extents {
            Range::index(extent)?;
            builder.extents.push(i64::try_from(extent).ok()?);
        }
        let mut symbols: Vec<(&Var, i128)> = symbols.iter().map(|(var, &value)| (var, value)).collect();
        symbols.sort_unstable();
        for (var, value) in symbols {
            let node = builder.int(value)?;
            builder.bind(var, node);
        }
        Some(builder)
    }

    /// Binds a variable to a node; replaces an earlier binding.
    pub(crate) fn bind(&mut self, var: &Var, node: NodeId) {
        self.vars.insert(var.clone(), node);
    }

    /// Binds `vars` to the indices of the first axes and returns their nodes.
    pub(crate) fn bind_axes(&mut self, vars: &[Var]) -> Option<Vec<NodeId>> {
        let bound = vars.iter().enumerate().map(|(axis, var)| {
            let range = Range::index((*self.extents.get(axis)?).into())?;
            let node = self.add(Instr::Axis(axis), range)?;
            self.bind(var, node);
            Some(node)
        });
        bound.collect()
    }

    /// The range of a node.
    pub(crate) fn range(&self, node: NodeId) -> Range {
        self.nodes[node].range
    }

    /// The axes that a node depends on, increasing.
    pub(crate) fn axes(&self, node: NodeId) -> &[usize] {
        &self.nodes[node].axes
    }

    /// The axis whose index can be computed from the node alone, because the node is a nonzero multiple of it plus a
    /// constant.
    pub(crate) fn determines(&self, node: NodeId) -> Option<usize> {
        let fixed = |node: NodeId| self.range(node).constant();
        match self.nodes[node].instr {
            Instr::Axis(axis) => Some(axis),
            Instr::Neg(a) | Instr::BitNot(a) => self.determines(a),
            Instr::Binary(BinaryOp::Add | BinaryOp::Sub, a, b) if fixed(b).is_some() => self.determines(a),
            Instr::Binary(BinaryOp::Add | BinaryOp::Sub, a, b) if fixed(a).is_some() => self.determines(b),
            Instr::Binary(BinaryOp::Mul, a, b) if fixed(b).is_some_and(|by| by != 0) => self.determines(a),
            Instr::Binary(BinaryOp::Mul, a, b) if fixed(a).is_some_and(|by| by != 0) => self.determines(b),
            Instr::Binary(BinaryOp::FloorDiv, a, _) if sabotage::on("quotient-determines") => self.determines(a),
            _ => None,
        }
    }

    /// A constant.
    pub(crate) fn int(&mut self, value: i128) -> Option<NodeId> {
        self.add(Instr::Const(i64::try_from(value).ok()?), Range::one(value)?)
    }

    /// The node of an expression; `None` if the expression may lack a value, or leave 64 bits, at a point of the box.
    pub(crate) fn expr(&mut self, expr: &Expr) -> Option<NodeId> {
        match expr {
            Expr::Int { value, .. } => self.int(*value),
            Expr::Var(var) => self.vars.get(var).copied(),
            Expr::Binary(op, lhs, rhs) => {
                let (a, b) = (self.expr(lhs)?, self.expr(rhs)?);
                self.binary_of(*op, a, b, lhs.dtype().scalar.bits())
            }
            Expr::Unary(op, operand) => {
                let a = self.expr(operand)?;
                self.unary(*op, a)
            }
            Expr::Call(MathFn::Abs, args) if args.len() == 1 => {
                let a = self.expr(&args[0])?;
                let range = self.range(a).abs()?;
                if self.range(a).low >= 0 { Some(a) } else { self.add(Instr::Abs(a), range) }
            }
            Expr::Select(c, a, b) => {
                let (c, a, b) = (self.expr(c)?, self.expr(a)?, self.expr(b)?);
                self.choose(c, a, b)
            }
            Expr::IfThenElse(c, a, b) => {
                let c = self.expr(c)?;
                // If the condition is decided, the other branch need not have a value.
                match self.range(c) {
                    range if range.constant() == Some(0) => self.expr(b),
                    range if range.low > 0 || range.high < 0 => self.expr(a),
                    _ => {
                        let (a, b) = (self.expr(a)?, self.expr(b)?);
                        self.choose(c, a, b)
                    }
                }
            }
            Expr::Cast(ty, value) if ty.scalar.is_integer() && ty.is_scalar() => {
                let node = self.expr(value)?;
                let (low, high) = ty.scalar.integer_range()?;
                let range = self.range(node);
                (low <= range.low.into() && i128::from(range.high) <= high).then_some(node)
            }
            Expr::Float { .. }
            | Expr::Call(..)
            | Expr::Cast(..)
            | Expr::Ramp { .. }
            | Expr::Broadcast { .. }
            | Expr::Load { .. } => None,
        }
    }

    /// `a op b` of 64-bit operands.
    pub(crate) fn binary(&mut self, op: BinaryOp, a: NodeId, b: NodeId) -> Option<NodeId> {
        self.binary_of(op, a, b, 64)
    }

    /// `a op b` of operands of `bits` bits, simplified where a range or an identity decides it.
    fn binary_of(&mut self, op: BinaryOp, a: NodeId, b: NodeId, bits: u32) -> Option<NodeId> {
        let (left, right) = (self.range(a), self.range(b));
        let range = range::binary(op, left, right, bits)?;
        let same = match op {
            BinaryOp::Add | BinaryOp::Sub if right.constant() == Some(0) => Some(a),
            BinaryOp::Add if left.constant() == Some(0) => Some(b),
            BinaryOp::Mul | BinaryOp::FloorDiv if right.constant() == Some(1) => Some(a),
            BinaryOp::FloorMod if left.low >= 0 && left.high < right.low => Some(a),
            BinaryOp::Min if left.high <= right.low => Some(a),
            BinaryOp::Min if right.high <= left.low => Some(b),
            BinaryOp::Max if left.low >= right.high => Some(a),
            BinaryOp::Max if right.low >= left.high => Some(b),
            _ => None,
        };
        // Both operands are the same node.
        let equal = match op {
            BinaryOp::Eq | BinaryOp::Le | BinaryOp::Ge if a == b => Some(1),
            BinaryOp::Ne | BinaryOp::Lt | BinaryOp::Gt | BinaryOp::Sub if a == b => Some(0),
            _ => None,
        };
        match (same, equal) {
            (Some(node), _) => Some(node),
            (None, Some(value)) => self.int(value),
            (None, None) => self.add(Instr::Binary(op, a, b), range),
        }
    }

    /// `op a`
    pub(crate) fn unary(&mut self, op: UnaryOp, a: NodeId) -> Option<NodeId> {
        let range = self.range(a);
        match op {
            UnaryOp::Neg => self.add(Instr::Neg(a), range.neg()),
            UnaryOp::BitNot => self.add(Instr::BitNot(a), range.bit_not()?),
            UnaryOp::Not => {
                let zero = self.int(0)?;
                let is_zero = range::binary(BinaryOp::Eq, range, self.range(zero), 64)?;
                self.add(Instr::Not(a), is_zero)
            }
        }
    }

    /// `a` where `c` is not 0, else `b`.
    fn choose(&mut self, c: NodeId, a: NodeId, b: NodeId) -> Option<NodeId> {
        let condition = self.range(c);
        if a == b || condition.low > 0 || condition.high < 0 {
            return Some(a);
        }
        if condition.constant() == Some(0) {
            return Some(b);
        }
        let range = self.range(a).either(self.range(b))?;
        self.add(Instr::Choose(c, a, b), range)
    }

    /// 1 where `node` is outside `0..extent`, else 0.
    pub(crate) fn outside(&mut self, node: NodeId, extent: i128) -> Option<NodeId> {
        let zero = self.int(0)?;
        let below = self.binary(BinaryOp::Lt, node, zero)?;
        let extent = if sabotage::on("outside-off-by-one") { extent + 1 } else { extent };
        if i128::from(self.range(node).high) < extent {
            return Some(below);
        }
        let extent = self.int(extent)?;
        let above = self.binary(BinaryOp::Ge, node, extent)?;
        if sabotage::on("outside-end-first") {
            return self.binary(BinaryOp::Or, above, below);
        }
        self.binary(BinaryOp::Or, below, above)
    }

    /// `node` clamped to `0..extent`.
    pub(crate) fn clamped(&mut self, node: NodeId, extent: i128) -> Option<NodeId> {
        let (zero, last) = (self.int(0)?, self.int(extent - 1)?);
        let node = self.binary(BinaryOp::Max, node, zero)?;
        self.binary(BinaryOp::Min, node, last)
    }

    /// A number that determines the tuple of the nodes' values, and an exclusive upper bound of it. `None` if the number
    /// may exceed 2^61.
    pub(crate) fn key(&mut self, nodes: &[NodeId]) -> Option<(NodeId, u64)> {
        let (mut key, mut size) = (self.int(0)?, 1i128);
        for &node in nodes {
            let range = self.range(node);
            let count = self.int(range.count())?;
            let low = self.int(range.low.into())?;
            let digit = self.binary(BinaryOp::Sub, node, low)?;
            let scaled = self.binary(BinaryOp::Mul, key, count)?;
            key = self.binary(BinaryOp::Add, scaled, digit)?;
            size = size.checked_mul(range.count()).filter(|size| *size <= 1 << 61)?;
        }
        Some((key, u64::try_from(size).ok()?))
    }

    /// The row-major position in a box of this shape of the point that the nodes' values give; the point must be inside.
    pub(crate) fn place(&mut self, nodes: &[NodeId], shape: &[i128]) -> Option<NodeId> {
        let mut place = self.int(0)?;
        for (&node, &extent) in nodes.iter().zip(shape) {
            let extent = self.int(extent)?;
            let scaled = self.binary(BinaryOp::Mul, place, extent)?;
            place = self.binary(BinaryOp::Add, scaled, node)?;
        }
        Some(place)
    }

    /// A program that computes `roots` over the axes that they depend on.
    pub(crate) fn program(&self, roots: &[NodeId]) -> Option<PointProgram> {
        let mut axes: Vec<usize> = roots.iter().flat_map(|&root| self.axes(root)).copied().collect();
        axes.sort_unstable();
        axes.dedup();
        self.program_over(roots, &axes)
    }

    /// A program that computes `roots` over `axes`, which must include all axes that they depend on.
    pub(crate) fn program_over(&self, roots: &[NodeId], axes: &[usize]) -> Option<PointProgram> {
        PointProgram::new(&self.nodes, roots, axes, &self.extents)
    }

    /// The node of an operation, shared with an equal one.
    fn add(&mut self, instr: Instr, range: Range) -> Option<NodeId> {
        let instr = range.constant().map_or(instr, Instr::Const);
        if let Some(&node) = self.known.get(&instr) {
            return Some(node);
        }
        if self.nodes.len() >= MAX_NODES {
            return None;
        }
        let mut axes = match instr {
            Instr::Const(_) => Vec::new(),
            Instr::Axis(axis) => vec![axis],
            Instr::Neg(a) | Instr::Not(a) | Instr::BitNot(a) | Instr::Abs(a) => self.axes(a).to_vec(),
            Instr::Binary(_, a, b) => [self.axes(a), self.axes(b)].concat(),
            Instr::Choose(c, a, b) => [self.axes(c), self.axes(a), self.axes(b)].concat(),
        };
        axes.sort_unstable();
        axes.dedup();
        self.nodes.push(Node { instr, range, axes });
        self.known.insert(instr, self.nodes.len() - 1);
        Some(self.nodes.len() - 1)
    }
}
