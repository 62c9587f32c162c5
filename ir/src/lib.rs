//! The intermediate language of Tilewright. This page is its reference.
//!
//! A program is a [`Module`] of functions. A [`PrimFunc`] takes buffers and scalars, runs a [`Stmt`] and returns
//! nothing; its results are the contents of its buffers. The text form is TVMScript, which `tilewright-script` reads
//! and prints:
//!
//! ```python
//! @T.prim_func
//! def scale(A: T.Buffer((64, 128), "float32"), B: T.Buffer((64, 128), "float32")):
//!     for i, j in T.grid(64, 128):
//!         B[i, j] = A[i, j] * T.float32(2)
//! ```
//!
//! # Values
//! A value has a [`DataType`]: a [`ScalarType`] and a number of lanes. Integers are two's complement and wrap on
//! overflow. Floats are IEEE 754, rounded to nearest even after every operation and never contracted into fused
//! operations. The table in [`op`] lists every operator with its symbol, operand types and meaning; [`scalar`]
//! computes single lanes. Integer division by zero and a shift amount outside `0..bits` trap. Vector operations work
//! lane by lane.
//!
//! # Memory
//! A [`Buffer`] is a typed view of an allocation: element type, shape, strides, offset and storage [`Scope`]. A data
//! variable identifies the allocation, and buffers with the same data variable are aliases. An access outside the
//! shape traps, and so does a read of an element that was never written. Vector elements and vector accesses follow
//! RFC 39 and RFC 63: `A[i]` has the element type of the buffer, and only the last index may be a vector.
//!
//! # Blocks
//! A [`Block`] of S-TIR is an attribute of a statement that has the meaning of the block already. What it says about its axes and its
//! accesses is a claim.
//!
//! # Indices
//! Indices are integers. The meaning of an index expression is defined over the mathematical integers
//! ([`Expr::eval_index`]), with division rounding towards minus infinity as in the RFCs. That no intermediate value
//! leaves its type is the proof obligation *overflow*. Extents may be symbolic: a variable that is an integer of at
//! least 1. A buffer with a symbolic shape has at most [`MAX_SYMBOLIC_ELEMENTS`] elements, which is checked at
//! launch.
//!
//! # Order of evaluation
//! Operands are evaluated from left to right and statements in program order. Loops of kind [`ForKind::Serial`] and
//! [`ForKind::Unrolled`] run their iterations in order. All other kinds run them in any order or concurrently; it is
//! an error (a race) if two of their iterations access the same element and at least one of them writes it. A loop
//! with an extent of 0 or below runs no iteration. Loops of any kind that follow each other run one after the other, also two over the threads
//! of a launch. [`Expr::IfThenElse`] evaluates only the chosen branch,
//! [`Expr::Select`] both; a condition with several lanes chooses for each lane separately.
//!
//! # Groups and barriers
//! The loops bound to `threadIdx` inside of one iteration of all loops bound to `blockIdx` are the threads of a group. A thread
//! that gets to a [`StmtKind::Barrier`] waits until all threads of its group are there, and then sees what they wrote to
//! memory of any kind. Accesses of two threads of a group race only if no barrier is between them. Each loop and each
//! condition around a barrier has to be the same for all threads of the group, or the program traps. A buffer in the scope
//! [`Scope::Shared`] that is allocated inside of such a loop exists once for the whole group, and any other buffer once for each thread.
//! [`phases`] describes a program with barriers as a program without.
//!
//! ```python
//! for b in T.thread_binding(5, thread="blockIdx.x"):
//!     S = T.alloc_buffer((8,), "float32", scope="shared")
//!     for t in T.thread_binding(8, thread="threadIdx.x"):
//!         S[t] = A[b * 8 + t]
//!         T.tvm_storage_sync("shared")
//!         B[b * 8 + t] = S[7 - t]                                  # another thread wrote this element
//! ```
//!
//! # Layouts
//! An [`IndexMap`] takes logical indices to physical ones. The attribute `layout_transform_map` of a function lists
//! the buffers to be transformed, and [`AxisSeparators`] state how a layout is flattened. [`layout`] defines XLA's
//! tiled layouts, [`texture`] 2-d textures, and [`plan`] memory plans. [`evidence`] is what a pass claims about its
//! rewrite, and a [`Definition`] is the tensor computation that a TE program describes.
//!
//! This crate only defines and evaluates. It never simplifies, inverts or optimises an expression, because the judge
//! trusts it.

pub mod block;
pub mod buffer;
pub mod check;
pub mod convention;
pub mod definition;
pub mod device;
pub mod diag;
pub mod digits;
pub mod dtype;
pub mod equal;
pub mod eval;
pub mod evidence;
pub mod expr;
pub mod func;
pub mod index_map;
pub mod interval;
pub mod layout;
pub mod lifting;
pub mod op;
pub mod phases;
pub mod plan;
pub mod sabotage;
pub mod scalar;
pub mod schedule;
pub mod shared;
pub mod stmt;
pub mod texture;
pub mod tile;
pub mod var;
pub mod visit;

pub use block::{AxisKind, BLOCK, Block, BlockAxis, BlockParts, BlockRegion};
pub use buffer::{
    AxisSeparators, Buffer, BufferInfo, MAX_SYMBOLIC_ELEMENTS, Scope, SeparatorError, SizeError, checked_size,
};
pub use check::{Validated, validate};
pub use definition::{Axis, Definition, ReduceOp, Stage, StageBody};
pub use device::{DEVICE_FUNCTION, DeviceCall};
pub use diag::{Diagnostic, Label, Severity, Span};
pub use digits::{DigitCertificate, DigitPlace, DigitSource, DigitSum, DigitView};
pub use dtype::{DataType, DataTypeError, ScalarType, TypeClass};
pub use eval::{Bindings, EvalError};
pub use evidence::{
    BufferChange, BufferClaim, Comparison, Evidence, Flow, Holder, Instance, InverseClaim, LoweringEvidence, Origin,
    PadFill, Phased, Reordering, Scalarization, Sources, StoreClaim, StoreOrigin, StoreRole,
};
pub use expr::Expr;
pub use func::{FuncAttrs, Module, PrimFunc};
pub use index_map::{IndexMap, IndexMapError};
pub use interval::Interval;
pub use layout::{ArrayShape, ElementType, XlaShape};
pub use lifting::{Kept, Lifted, Lifting, Matching, TensorPair};
pub use op::{BinaryOp, MathFn, Traps, UnaryOp};
pub use plan::{
    Graph, GraphStep, GraphTensor, InPlace, MemoryPlan, Pool, PoolPlace, PoolRules, Region, Room, TensorRole,
};
pub use scalar::{Scalar, ScalarError, gcd};
pub use schedule::ScheduleStep;
pub use shared::{Parts, SharedExpr, SharedExprs};
pub use stmt::{AttrValue, For, ForKind, Stmt, StmtKind, THREAD_ALLREDUCE, ThreadTag, VIRTUAL_AXES, VIRTUAL_THREAD};
pub use texture::{CHANNELS, TextureLimits};
pub use tile::TileRequest;
pub use var::Var;
