//! Tensor definitions: what a TE program computes, before any schedule says how.
//!
//! A definition is the specification that a lowered program is held against, by the judge and by the interpreter.

use crate::buffer::Buffer;
use crate::dtype::ScalarType;
use crate::expr::Expr;
use crate::op::BinaryOp;
use crate::scalar::Scalar;
use crate::var::Var;

/// Tensors in the order of their definition, and which of them are parameters.
#[derive(Clone, Debug)]
pub struct Definition {
    /// Name of the function that it becomes.
    pub name: String,
    /// Inputs and outputs in the order of the arguments.
    pub params: Vec<Buffer>,
    /// The computed tensors; a stage reads only inputs and stages before it.
    pub stages: Vec<Stage>,
}

/// A computed tensor: `buffer[axes] = body`.
#[derive(Clone, Debug)]
pub struct Stage {
    /// The tensor, in its logical shape. The extents of `axes` are its shape.
    pub buffer: Buffer,
    /// One index variable an axis.
    pub axes: Vec<Axis>,
    /// The value of an element.
    pub body: StageBody,
}

/// An index variable and its range `0..extent`.
#[derive(Clone, Debug)]
pub struct Axis {
    /// The variable.
    pub var: Var,
    /// Number of values.
    pub extent: Expr,
}

/// The value of an element of a stage.
#[derive(Clone, Debug)]
pub enum StageBody {
    /// An expression over the axes.
    Elementwise(Expr),
    /// A reduction. It starts from the identity of `op` and combines the values of `source` for every index of
    /// `axes`. The definition leaves their order open; the interpreter takes row-major order.
    Reduce {
        /// How two values are combined.
        op: ReduceOp,
        /// The reduced axes; may not be empty.
        axes: Vec<Axis>,
        /// An expression over both kinds of axes.
        source: Expr,
    },
}

/// How a reduction combines values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ReduceOp {
    /// Sum, from 0.
    Sum,
    /// Product, from 1.
    Prod,
    /// Maximum, from the least value of the type (minus infinity for floats).
    Max,
    /// Minimum, from the greatest value of the type (infinity for floats).
    Min,
}

impl ReduceOp {
    /// The operator that combines two values.
    pub fn combine(self) -> BinaryOp {
        match self {
            Self::Sum => BinaryOp::Add,
            Self::Prod => BinaryOp::Mul,
            Self::Max => BinaryOp::Max,
            Self::Min => BinaryOp::Min,
        }
    }

    /// The value that it starts from.
    pub fn identity(self, ty: ScalarType) -> Scalar {
        let float = ty.is_float();
        let (low, high) = ty.integer_range().unwrap_or((0, 0));
        match self {
            Self::Sum if float => Scalar::Float(0.0),
            Self::Sum => Scalar::Int(0),
            Self::Prod if float => Scalar::Float(1.0),
            Self::Prod => Scalar::Int(1),
            Self::Max if float => Scalar::Float(f64::NEG_INFINITY),
            Self::Max => Scalar::Int(low),
            Self::Min if float => Scalar::Float(f64::INFINITY),
            Self::Min => Scalar::Int(high),
        }
    }

    /// [`ReduceOp::identity`] as an expression.
    pub fn identity_expr(self, ty: ScalarType) -> Expr {
        match self.identity(ty) {
            Scalar::Int(value) => Expr::Int { value, ty },
            Scalar::Float(value) => Expr::Float { value, ty },
        }
    }
}

impl Definition {
    /// The parameters that no stage computes.
    pub fn inputs(&self) -> Vec<&Buffer> {
        self.params.iter().filter(|buffer| self.stage_of(buffer).is_none()).collect()
    }

    /// The parameters that a stage computes.
    pub fn outputs(&self) -> Vec<&Buffer> {
        self.params.iter().filter(|buffer| self.stage_of(buffer).is_some()).collect()
    }

    /// The stage that computes a tensor; none for an input.
    pub fn stage_of(&self, buffer: &Buffer) -> Option<&Stage> {
        self.stages.iter().find(|stage| stage.buffer == *buffer)
    }
}
