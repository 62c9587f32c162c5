//! The language of Tilewright. This page is its reference.
//!
//! A program is a [`Module`] of functions. A [`PrimFunc`] takes buffers and scalars and runs a [`Stmt`]. The text form
//! is TVMScript, which `tilewright-script` reads and prints:
//!
//! ```python
//! @T.prim_func
//! def scale(A: T.Buffer((64, 128), "float32"), B: T.Buffer((64, 128), "float32")):
//!     for i, j in T.grid(64, 128):
//!         B[i, j] = A[i, j] * T.float32(2)
//! ```
//!
//! # Values
//! A value has a [`DataType`]: a [`ScalarType`] and a number of lanes. Integers are two's complement and wrap; floats
//! are IEEE 754, rounded to nearest even after every operation, never contracted. Every operator stands with its
//! symbol, types and meaning in one table, [`op`]; [`scalar`] computes it. Division of integers by zero and shifts
//! out of range trap. Vector operations work lane by lane.
//!
//! # Memory
//! A [`Buffer`] is a view of an allocation, named by its data variable: element type, shape, strides, offset, scope.
//! Buffers on the same data variable are aliases. An access outside the shape traps; so does reading an element that was
//! never written. Vector elements and vector accesses are those of RFC 39 and RFC 63: `A[i]` has the type of the
//! buffer's element, and only the last index may be a vector.
//!
//! # Indices
//! Indices are integers. What an index expression means is defined over the mathematical integers
//! ([`Expr::eval_index`]), with division rounding down as in the RFCs; that no intermediate value leaves its type is
//! the judge's obligation *overflow*. Extents may be symbolic: a variable that is an integer of at least 1; a buffer of
//! symbolic shape has at most [`MAX_SYMBOLIC_ELEMENTS`] elements, which is checked at launch.
//!
//! # Order
//! Operands are evaluated from left to right, statements in order. [`ForKind::Serial`] and [`ForKind::Unrolled`] loops
//! run their iterations in order; the others in any order or at once, and two of their iterations that touch the same
//! element, one of them writing, are a race and an error. A loop of extent 0 or below does nothing.
//! [`Expr::IfThenElse`] evaluates only the chosen branch, [`Expr::Select`] both; a condition of several lanes chooses for
//! each lane.
//!
//! # Layouts
//! An [`IndexMap`] moves logical indices to physical ones. A function's `layout_transform_map` says which buffers are to
//! be moved; [`AxisSeparators`] say how a layout is flattened. XLA's tiled layouts are [`layout`], textures [`texture`], memory plans [`plan`]. What a pass claims is [`evidence`], what a TE
//! program computes is a [`Definition`].
//!
//! This crate defines and evaluates; it never simplifies, inverts or optimises.

pub mod buffer;
pub mod check;
pub mod definition;
pub mod diag;
pub mod digits;
pub mod dtype;
pub mod equal;
pub mod eval;
pub mod evidence;
pub mod expr;
pub mod func;
pub mod index_map;
pub mod layout;
pub mod op;
pub mod plan;
pub mod sabotage;
pub mod scalar;
pub mod shared;
pub mod stmt;
pub mod texture;
pub mod tile;
pub mod var;
pub mod visit;

pub use buffer::{
    AxisSeparators, Buffer, BufferInfo, MAX_SYMBOLIC_ELEMENTS, Scope, SeparatorError, SizeError, checked_size,
};
pub use check::{Validated, validate};
pub use definition::{Axis, Definition, ReduceOp, Stage, StageBody};
pub use diag::{Diagnostic, Label, Severity, Span};
pub use digits::{DigitCertificate, DigitPlace, DigitSource, DigitSum, DigitView};
pub use dtype::{DataType, DataTypeError, ScalarType, TypeClass};
pub use eval::{Bindings, EvalError};
pub use evidence::{
    BufferChange, BufferClaim, Evidence, Holder, InverseClaim, LoweringEvidence, PadFill, StoreClaim, StoreRole,
};
pub use expr::Expr;
pub use func::{FuncAttrs, Module, PrimFunc};
pub use index_map::{IndexMap, IndexMapError};
pub use layout::{ArrayShape, ElementType, XlaShape};
pub use op::{BinaryOp, MathFn, UnaryOp};
pub use plan::{Graph, GraphStep, GraphTensor, MemoryPlan, Pool, PoolPlace, Region, Room, TensorRole};
pub use scalar::{Scalar, ScalarError};
pub use shared::{Parts, SharedExpr, SharedExprs};
pub use stmt::{AttrValue, For, ForKind, Stmt, StmtKind, ThreadTag};
pub use texture::{CHANNELS, TextureLimits};
pub use tile::TileRequest;
pub use var::Var;
