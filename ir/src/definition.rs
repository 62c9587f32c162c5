//! Tensor definitions: what a TE program computes, independent of any schedule.
//!
//! A definition is the specification of a lowered program. The judge proves the program equal to it, and the
//! interpreter evaluates it directly.

use crate::buffer::Buffer;
use crate::dtype::ScalarType;
use crate::expr::Expr;
use crate::op::BinaryOp;
use crate::scalar::Scalar;
use crate::stmt::{ForKind, Stmt};
use crate::var::Var;
use crate::visit::Substitution;

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
    /// A reduction. It starts from `init` and combines it with the value of `source` at every index of the reduced axes at
    /// which `condition` holds. The definition leaves the order open; [`Stage::nest`] has row-major order.
    Reduce {
        /// How two values are combined.
        op: ReduceOp,
        /// The reduced axes; at least one. The extent of one may depend on the axes in front of it.
        axes: Vec<Axis>,
        /// The start value, an expression over the axes of the stage; `None` for the identity of `op`.
        init: Option<Expr>,
        /// Over the axes of the stage and the reduced axes; `None` if each index takes part.
        condition: Option<Expr>,
        /// An expression over the axes of the stage and the reduced axes.
        source: Expr,
    },
}

impl StageBody {
    /// Returns the reduction of `source` over `axes` that starts from the identity and leaves nothing out.
    pub fn reduce(op: ReduceOp, axes: Vec<Axis>, source: Expr) -> Self {
        Self::Reduce { op, axes, init: None, condition: None, source }
    }
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

impl Stage {
    /// Returns the nest that computes the tensor: loops of a kind over its axes around a store or, for a reduction, around the
    /// store of the start value and serial loops over the reduced axes in their order. The loops have the variables of the axes.
    ///
    /// ```text
    /// C[i] = sum over k of A[i, k], if k < m     for i: C[i] = 0
    ///                                                   for k: if k < m: C[i] = C[i] + A[i, k]
    /// ```
    pub fn nest(&self, kind: ForKind) -> Stmt {
        let at: Vec<Expr> = self.axes.iter().map(|axis| Expr::from(&axis.var)).collect();
        let store = |value: Expr| Stmt::store(&self.buffer, at.clone(), value);
        let around = |axes: &[Axis], kind, body| {
            let inside = |body, axis: &Axis| Stmt::for_loop(&axis.var, axis.extent.clone(), kind, body);
            axes.iter().rev().fold(body, inside)
        };
        let body = match &self.body {
            StageBody::Elementwise(value) => store(value.clone()),
            StageBody::Reduce { op, axes, init, condition, source } => {
                let start = init.clone().unwrap_or_else(|| op.identity_expr(self.buffer.dtype.scalar));
                let so_far = Expr::load(&self.buffer, at.clone());
                let update = store(Expr::binary(op.combine(), so_far, source.clone()));
                let update = match condition {
                    Some(cond) => Stmt::guarded(cond.clone(), update),
                    None => update,
                };
                Stmt::seq(vec![store(start), around(axes, ForKind::Serial, update)])
            }
        };
        around(&self.axes, kind, body)
    }

    /// Returns the same stage with other variables for its axes. Two stages may share axes, but in a program a variable is bound by
    /// one loop only.
    #[must_use]
    pub fn renewed(&self) -> Self {
        let mut names = Substitution::default();
        let renew = |names: &mut Substitution, axis: &Axis| {
            let var = Var::new(axis.var.name(), axis.var.dtype());
            let extent = names.apply(&axis.extent);
            names.insert(&axis.var, Expr::from(&var));
            Axis { var, extent }
        };
        let axes = self.axes.iter().map(|axis| renew(&mut names, axis)).collect();
        let body = match &self.body {
            StageBody::Elementwise(value) => StageBody::Elementwise(names.apply(value)),
            StageBody::Reduce { op, axes, init, condition, source } => {
                let init = init.as_ref().map(|init| names.apply(init));
                let axes = axes.iter().map(|axis| renew(&mut names, axis)).collect();
                let condition = condition.as_ref().map(|cond| names.apply(cond));
                StageBody::Reduce { op: *op, axes, init, condition, source: names.apply(source) }
            }
        };
        Self { buffer: self.buffer.clone(), axes, body }
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
