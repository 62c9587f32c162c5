//! Blocks of S-TIR: what a program says about a part of itself.
//!
//! A block is an attribute with the key [`BLOCK`] and the value [`AttrValue::Block`]. What it does is the statement
//! below it, written with plain statements; what it says (domains of its axes, the elements it reads and writes) does not
//! change the meaning of the program. These are claims, and the judge asks whether they hold.
//!
//! ```text
//! with T.sblock("C"):                                    attribute "block" of "C": axes i in 0..128, k in 0..96, ...
//!     i = T.axis.spatial(128, i_0 * 5 + i_1)             if i_0 * 5 + i_1 < 128:
//!     k = T.axis.reduce(96, k_0)                             i = i_0 * 5 + i_1
//!     T.where(i_0 * 5 + i_1 < 128)                 =         k = k_0
//!     T.reads(A[i, k])                                       if k == 0:
//!     T.writes(C[i])                                             C[i] = T.float32(0)
//!     with T.init():                                         C[i] = C[i] + A[i, k]
//!         C[i] = T.float32(0)
//!     C[i] = C[i] + A[i, k]
//! ```

use std::fmt;

use crate::buffer::Buffer;
use crate::expr::Expr;
use crate::op::BinaryOp;
use crate::stmt::{AttrValue, Stmt, StmtKind};
use crate::var::Var;

/// The key of the attribute that makes a statement a block.
pub const BLOCK: &str = "block";

/// What a block says about the statement below it.
#[derive(Clone, Debug, PartialEq)]
pub struct Block {
    /// The name.
    pub name: String,
    /// The axes, in the order of their bindings.
    pub axes: Vec<BlockAxis>,
    /// Whether the outermost statement below is the predicate (`T.where`).
    pub has_predicate: bool,
    /// Whether a part of the statement is the initialisation of a reduction (`T.init`).
    pub has_init: bool,
    /// The elements that the block reads. `None` if it does not say.
    pub reads: Option<Vec<BlockRegion>>,
    /// The elements that the block writes. `None` if it does not say.
    pub writes: Option<Vec<BlockRegion>>,
    /// Hints in source order.
    pub annotations: Vec<(String, AttrValue)>,
}

/// One axis of the domain of a block.
#[derive(Clone, Debug, PartialEq)]
pub struct BlockAxis {
    /// The variable; a `let` below the block binds it.
    pub var: Var,
    /// What the axis is for.
    pub kind: AxisKind,
    /// The least value.
    pub min: Expr,
    /// The number of values.
    pub extent: Expr,
}

/// What an axis of a block is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AxisKind {
    /// Instances with other values do not depend on each other.
    Spatial,
    /// The values are combined into one element.
    Reduce,
    /// The values are visited in order.
    Scan,
    /// Nothing is said.
    Opaque,
}

impl fmt::Display for AxisKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Spatial => "spatial",
            Self::Reduce => "reduce",
            Self::Scan => "scan",
            Self::Opaque => "opaque",
        })
    }
}

/// A box of elements of a buffer.
#[derive(Clone, Debug, PartialEq)]
pub struct BlockRegion {
    /// The buffer.
    pub buffer: Buffer,
    /// The least index and the number of indices on each axis.
    pub ranges: Vec<(Expr, Expr)>,
}

/// The parts of the statement of a block.
#[derive(Clone, Debug)]
pub struct BlockParts<'a> {
    /// The condition under which an instance runs.
    pub predicate: Option<&'a Expr>,
    /// The value of each axis, in the order of [`Block::axes`].
    pub bindings: Vec<&'a Expr>,
    /// What an instance does.
    pub body: &'a Stmt,
}

impl Block {
    /// Returns the block that a statement is, and the statement below it.
    pub fn of(stmt: &Stmt) -> Option<(&Self, &Stmt)> {
        match &stmt.kind {
            StmtKind::Attr { value: AttrValue::Block(block), body, .. } => Some((block, body)),
            _ => None,
        }
    }

    /// Returns the parts of the statement below the block. `None` if it does not bind the axes of the block, in their order,
    /// under its predicate.
    pub fn parts<'a>(&self, below: &'a Stmt) -> Option<BlockParts<'a>> {
        let (predicate, mut rest) = match &below.kind {
            StmtKind::If { cond, then_body, else_body: None } if self.has_predicate => (Some(cond), &**then_body),
            _ if self.has_predicate => return None,
            _ => (None, below),
        };
        let mut bindings = Vec::new();
        for axis in &self.axes {
            let StmtKind::Let { var, value, body } = &rest.kind else { return None };
            (*var == axis.var).then_some(())?;
            bindings.push(value);
            rest = body;
        }
        Some(BlockParts { predicate, bindings, body: rest })
    }

    /// Returns whether an instance is the first one of its reduction: all reduced axes have their least value. `None` if there
    /// are none; then each instance is.
    pub fn is_first(&self) -> Option<Expr> {
        let reduced = self.axes.iter().filter(|axis| axis.kind == AxisKind::Reduce);
        let equal = |axis: &BlockAxis| Expr::binary(BinaryOp::Eq, Expr::from(&axis.var), axis.min.clone());
        reduced.map(equal).reduce(Expr::and)
    }
}

impl Stmt {
    /// Creates a block.
    pub fn block(block: Block, below: Self) -> Self {
        Self::new(StmtKind::Attr {
            node: AttrValue::Str(block.name.clone()),
            key: BLOCK.to_owned(),
            value: AttrValue::Block(block.into()),
            body: below.into(),
        })
    }
}
