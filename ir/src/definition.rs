//! Tensor definitions: what a TE program computes, independent of any schedule.
//!
//! A definition is the specification of a lowered program. The judge proves the program equal to it, and the
//! interpreter evaluates it directly.

use crate::buffer::Buffer;
use crate::dtype::ScalarType;
use crate::expr::Expr;
use crate::op::BinaryOp;
use crate::scalar::Scalar;
use crate::var::Var;

/// Computed tensors in dependence order, and the tensors that are parameters.
#[derive(Clone, Debug)]
pub struct Definition {
    /// The name of the function that the definition is lowered to.
    pub name: String,
    /// Inputs and outputs, in argument order.
    pub params: Vec<Buffer>,
    /// The computed tensors. A stage reads only inputs and earlier stages.
    pub stages: Vec<Stage>,
}

/// One computed tensor: `buffer[axes] = body`.
#[derive(Clone, Debug)]
pub struct Stage {
    /// The tensor, in its logical shape. The extents of `axes` are its shape.
    pub buffer: Buffer,
    /// The index variables, one per axis of the tensor.
    pub axes: Vec<Axis>,
    /// The value of one element.
    pub body: StageBody,
}

/// An index variable and its range `0..extent`.
#[derive(Clone, Debug)]
pub struct Axis {
    /// The variable.
    pub var: Var,
    /// The number of values.
    pub extent: Expr,
}

/// How the value of an element is computed.
#[derive(Clone, Debug)]
pub enum StageBody {
    /// The value of an expression over the axes of the stage.
    Elementwise(Expr),
    /// A reduction. It starts from the identity of `op` and combines it with the value of `source` at every index of
    /// the reduced axes. The definition leaves the order open; the interpreter uses row-major order.
    Reduce {
        /// How two values are combined.
        op: ReduceOp,
        /// The reduced axes; at least one.
        axes: Vec<Axis>,
        /// An expression over the axes of the stage and the reduced axes.
        source: Expr,
    },
}

impl From<Expr> for StageBody {
    fn from(value: Expr) -> Self {
        Self::Elementwise(value)
    }
}

/// The operator of a reduction.
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
    /// Returns the binary operator that combines two values.
    pub fn combine(self) -> BinaryOp {
        match self {
            Self::Sum => BinaryOp::Add,
            Self::Prod => BinaryOp::Mul,
            Self::Max => BinaryOp::Max,
            Self::Min => BinaryOp::Min,
        }
    }

    /// Returns the start value for elements of type `ty`.
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

    /// Returns [`ReduceOp::identity`] as a constant expression.
    pub fn identity_expr(self, ty: ScalarType) -> Expr {
        match self.identity(ty) {
            Scalar::Int(value) => Expr::Int { value, ty },
            Scalar::Float(value) => Expr::Float { value, ty },
        }
    }
}

impl Definition {
    /// Returns the parameters that no stage computes.
    pub fn inputs(&self) -> Vec<&Buffer> {
        self.params.iter().filter(|buffer| self.stage_of(buffer).is_none()).collect()
    }

    /// Returns the parameters that a stage computes.
    pub fn outputs(&self) -> Vec<&Buffer> {
        self.params.iter().filter(|buffer| self.stage_of(buffer).is_some()).collect()
    }

    /// Returns the stage that computes a tensor, and `None` for an input.
    pub fn stage_of(&self, buffer: &Buffer) -> Option<&Stage> {
        self.stages.iter().find(|stage| stage.buffer == *buffer)
    }
}
