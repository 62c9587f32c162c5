//! Lifting: the claim that programs compute definitions, and that two definitions are equal, as plain data.
//!
//! ```text
//! for i: for k: C[i] += A[i, k]                  C[i] = C.old[i] + sum over k of A[i, k]
//!
//! for ko, i: for ki: rf[ki, i] += A[i, ..]       rf[ki, i] = sum over ko of A[i, 4 * ko + ki] if 4 * ko + ki < n
//! for i, ki: C[i] += rf[ki, i]                   C[i] = C.old[i] + sum over ki of rf[ki, i]
//! ```
//!
//! Nothing here is believed: the judge ties each program to its definition, and compares the definitions element by element.

use crate::buffer::Buffer;
use crate::definition::{Definition, ReduceOp};
use crate::evidence::{Flow, Reordering};
use crate::expr::Expr;
use crate::var::Var;

/// The claim that two programs compute definitions that are equal.
#[derive(Clone, Debug)]
pub struct Lifting {
    /// What the program before computes.
    pub before: Lifted,
    /// What the program after computes.
    pub after: Lifted,
    /// Which tensors of the definitions are equal, and why.
    pub matching: Matching,
}

/// The claim that a program computes a definition.
#[derive(Clone, Debug)]
pub struct Lifted {
    /// The definition. Its parameters are the buffers of the program's parameters, followed by the tensors of `kept`.
    pub definition: Definition,
    /// For parameters that the program writes, the inputs of the definition that stand for what the call found in them.
    pub kept: Vec<Kept>,
    /// The values of the program before are those of the definition's nests, run one after the other; those of the nests of the
    /// definition after are those of the program after.
    pub flow: Flow,
}

/// An input of a definition that stands for what the call found in a parameter that the program writes.
#[derive(Clone, Debug)]
pub struct Kept {
    /// The input, with the shape of the parameter.
    pub tensor: Buffer,
    /// The parameter.
    pub param: Buffer,
    /// Variables for the axes, as the claims about values name them.
    pub index: Vec<Var>,
}

/// The claim that two definitions are equal: in the order of the tensors after, which of them are tensors before.
#[derive(Clone, Debug, Default)]
pub struct Matching {
    /// One pair for each parameter that both compute, and for each other tensor that is compared by itself. All others are
    /// replaced by their values.
    pub pairs: Vec<TensorPair>,
    /// Whether reductions of floats may be taken in another order: a premise, which the user has to state.
    pub reassociate: bool,
    /// Whether choices inside of the products of a sum are taken apart, so that a product of zeros is none of the summands: what a
    /// padded operand holds.
    pub opens_products: bool,
}

/// The claim that the elements of a tensor after are elements of a tensor before.
#[derive(Clone, Debug)]
pub struct TensorPair {
    /// The tensor before.
    pub before: Buffer,
    /// The tensor after.
    pub after: Buffer,
    /// The element: for a parameter, one variable for each axis before, and else one for each axis after.
    pub index: Vec<Var>,
    /// The index before of that element; `None` for a parameter, whose indices correspond as the claims about buffers say.
    pub element: Option<Vec<Expr>>,
    /// How the values of both are combined of summands; `None` for a value that is not taken apart.
    pub op: Option<ReduceOp>,
    /// The variables of the reduced axes of each summand before, outermost first, and of each one after.
    pub loops: [Vec<Vec<Var>>; 2],
    /// For each summand after, which summands before its iterations are: each summand before exactly once. The loops of a summand
    /// are `index` followed by its reduced axes.
    pub summands: Reordering,
}
