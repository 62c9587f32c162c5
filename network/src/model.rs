//! A network as the rest of the crate sees it: values with shapes, and nodes that compute them.
//!
//! ```text
//! data [1, 3, 7, 9] ── Conv ── c [1, 5, 4, 5] ── Relu ── r [1, 5, 4, 5]
//!         weight [5, 3, 3, 3], bias [5]: values with contents
//! ```
//!
//! A value with contents is a constant; every other value has elements of type float32. The semantics of each [`Op`] are
//! those of the ONNX operator of the same name, restricted as its fields say.

/// Values and nodes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Model {
    /// The name of the graph.
    pub name: String,
    /// The values. Nodes refer to them by their index in this list.
    pub values: Vec<Value>,
    /// The nodes, in an order in which they can run.
    pub nodes: Vec<Node>,
    /// The values that the caller supplies.
    pub inputs: Vec<usize>,
    /// The values that the caller takes.
    pub outputs: Vec<usize>,
}

/// A tensor of a model.
#[derive(Clone, Debug, PartialEq)]
pub struct Value {
    /// The name, unique in the model.
    pub name: String,
    /// The extents.
    pub shape: Vec<u64>,
    /// The elements of a constant; `None` for a value that is computed or supplied.
    pub contents: Option<Contents>,
}

/// The elements of a constant, row-major.
#[derive(Clone, Debug, PartialEq)]
pub enum Contents {
    /// One float32 for each element.
    Floats(Vec<f32>),
    /// All elements are the same float32.
    Same(f32),
    /// Integers. They describe shapes, and no kernel reads them.
    Integers(Vec<i64>),
}

/// One operation.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// The name, unique in the model.
    pub name: String,
    /// What it computes.
    pub op: Op,
    /// The values that it reads, in the order of the ONNX operator.
    pub inputs: Vec<usize>,
    /// The value that it computes.
    pub output: usize,
}

/// The positions of a window that slides over the last two axes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Rows and columns of the window.
    pub kernel: [u64; 2],
    /// Distance between adjacent windows.
    pub strides: [u64; 2],
    /// Distance between adjacent elements of a window.
    pub dilations: [u64; 2],
    /// Rows and columns that are added: top, left, bottom, right.
    pub pads: [u64; 4],
}

/// The operator of a node.
#[derive(Clone, Debug, PartialEq)]
pub enum Op {
    /// Convolution of `x[N, C, H, W]` with `w[M, C / groups, kH, kW]`, plus an optional bias `b[M]`.
    Conv {
        /// The window. Elements outside of the input are 0.
        window: Window,
        /// The number of groups of channels.
        groups: u64,
    },
    /// The largest element of each window; elements outside of the input take no part.
    MaxPool(Window),
    /// The mean of each window.
    AveragePool {
        /// The window.
        window: Window,
        /// Whether padding counts as elements with the value 0.
        counts_padding: bool,
    },
    /// The mean over the last two axes.
    GlobalAveragePool,
    /// A function of each element.
    Unary(Unary),
    /// A function of two operands, with NumPy's broadcasting.
    Binary(Binary),
    /// The sum of one or more operands of one shape.
    Sum,
    /// Puts operands one behind the other.
    Concat {
        /// The axis.
        axis: usize,
    },
    /// `(x - mean) / sqrt(var + epsilon) * scale + bias`, each of the four with one element for each channel; operands in
    /// the order x, scale, bias, mean, var.
    BatchNormalization {
        /// Added to the variance.
        epsilon: f32,
    },
    /// `x / (bias + alpha / size * s) ^ beta`, where `s` is the sum of squares over `size` adjacent channels.
    Lrn {
        /// The number of channels.
        size: u64,
        /// Factor of the mean of squares.
        alpha: f32,
        /// The exponent.
        beta: f32,
        /// Added to the mean of squares.
        bias: f32,
    },
    /// `alpha * A * B + beta * C`, with an optional `C` that is broadcast.
    Gemm {
        /// Factor of the product.
        alpha: f32,
        /// Factor of `C`.
        beta: f32,
        /// Whether `A` is transposed.
        transpose_a: bool,
        /// Whether `B` is transposed.
        transpose_b: bool,
    },
    /// The product of two matrices.
    MatMul,
    /// `exp(x)` divided by its sum over the axes `first..end`, after the maximum is subtracted.
    Softmax {
        /// The first axis that the sum runs over.
        first: usize,
        /// The axis behind the last one.
        end: usize,
    },
    /// The same elements in another shape.
    Reshape,
    /// The axes in another order: axis `i` of the result is axis `order[i]` of the operand.
    Transpose {
        /// The order.
        order: Vec<usize>,
    },
    /// Adds elements of a constant value around the operand.
    Pad {
        /// Elements in front, for each axis.
        before: Vec<u64>,
        /// Elements behind, for each axis.
        after: Vec<u64>,
        /// Their value.
        value: f32,
    },
}

/// A function of one element.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Unary {
    /// The larger of the element and 0.
    Relu,
    /// The element, limited to a range.
    Clip {
        /// The least value.
        low: f32,
        /// The greatest value.
        high: f32,
    },
    /// `1 / (1 + exp(-x))`.
    Sigmoid,
    /// The hyperbolic tangent.
    Tanh,
    /// The element, multiplied by a factor if it is negative.
    LeakyRelu {
        /// The factor.
        alpha: f32,
    },
}

/// A function of two elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binary {
    /// The sum.
    Add,
    /// The difference.
    Sub,
    /// The product.
    Mul,
    /// The quotient.
    Div,
}

impl Op {
    /// Returns the name of the ONNX operator; for the operators that differ only in how a shape is stated, `Reshape`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Conv { .. } => "Conv",
            Self::MaxPool(_) => "MaxPool",
            Self::AveragePool { .. } => "AveragePool",
            Self::GlobalAveragePool => "GlobalAveragePool",
            Self::Unary(Unary::Relu) => "Relu",
            Self::Unary(Unary::Clip { .. }) => "Clip",
            Self::Unary(Unary::Sigmoid) => "Sigmoid",
            Self::Unary(Unary::Tanh) => "Tanh",
            Self::Unary(Unary::LeakyRelu { .. }) => "LeakyRelu",
            Self::Binary(Binary::Add) => "Add",
            Self::Binary(Binary::Sub) => "Sub",
            Self::Binary(Binary::Mul) => "Mul",
            Self::Binary(Binary::Div) => "Div",
            Self::Sum => "Sum",
            Self::Concat { .. } => "Concat",
            Self::BatchNormalization { .. } => "BatchNormalization",
            Self::Lrn { .. } => "LRN",
            Self::Gemm { .. } => "Gemm",
            Self::MatMul => "MatMul",
            Self::Softmax { .. } => "Softmax",
            Self::Reshape => "Reshape",
            Self::Transpose { .. } => "Transpose",
            Self::Pad { .. } => "Pad",
        }
    }
}

impl Contents {
    /// Returns the float at a row-major position; `None` for integers and beyond the end.
    pub fn float(&self, position: usize) -> Option<f32> {
        match self {
            Self::Floats(values) => values.get(position).copied(),
            Self::Same(value) => Some(*value),
            Self::Integers(_) => None,
        }
    }

    /// Returns the integers; `None` for floats.
    pub fn integers(&self) -> Option<&[i64]> {
        match self {
            Self::Integers(values) => Some(values),
            Self::Floats(_) | Self::Same(_) => None,
        }
    }
}

impl Value {
    /// The number of elements; the reader keeps it below 2^40.
    pub fn n_elements(&self) -> u64 {
        self.shape.iter().product()
    }
}

impl Model {
    /// Returns the nodes that read a value, by number.
    pub fn readers(&self, value: usize) -> impl Iterator<Item = usize> {
        self.nodes.iter().enumerate().filter(move |(_, node)| node.inputs.contains(&value)).map(|(number, _)| number)
    }
}
