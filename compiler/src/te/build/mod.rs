//! Builds tensor definitions and schedules from Rust, and lowers them to programs.
//!
//! The evaluator of the TE dialect is one user of this module; a reader of another language is another. Each primitive
//! is implemented here and nowhere else, so that a schedule means the same however it was written.
//!
//! ```
//! use tilewright_compiler::te::build::{Builder, SplitBy};
//! use tilewright_ir::{Expr, ScalarType};
//!
//! let mut te = Builder::new();
//! let shape = [16, 64].map(Expr::int);
//! let a = te.placeholder("A", &shape, ScalarType::Float32)?;
//! let b = te.compute("B", &shape, |te, axes| {
//!     Ok((te.load(a, axes)? + Expr::float_of(1.0, ScalarType::Float32)).into())
//! })?;
//!
//! let mut schedule = te.create_schedule(&[b])?;
//! let mut stage = schedule.stage(b)?;
//! let axes = stage.axes();
//! stage.parallel(axes[0])?;
//! let (_, lanes) = stage.split(axes[1], SplitBy::Factor(4))?;
//! stage.vectorize(lanes)?;
//! let lowered = schedule.lower(&[a.into(), b.into()], "addone").map_err(|mut faults| faults.remove(0))?;
//! assert_eq!(lowered.func.buffer_map.len(), 2);
//! assert!(lowered.warnings.is_empty());
//! # Ok::<(), tilewright_ir::Diagnostic>(())
//! ```
//!
//! # Objects
//!
//! - A [`Builder`] owns tensors, symbolic extents and schedules. [`Tensor`], [`ScheduleId`] and [`Loop`] are handles: small
//!   copies that belong to one builder. A handle that is given to another builder is an error.
//! - A [`Schedule`] is a view of one schedule. It has a [`Stage`] for each tensor that its outputs need, and for each cache.
//! - A stage starts with one loop for each axis of its tensor, outermost first, followed by one for each reduced axis. Every
//!   stage is lowered to a loop nest of its own, at the root of the function, in the order of the definitions.
//!
//! The vocabulary and the meaning of the primitives are TVM's (`tvm.te`, documentation of `tvm.te.Stage`);
//! [`Stage::transform_layout`] and axis separators are those of TVM's RFC 39, "Guide-level explanation".
//!
//! # Errors
//!
//! Every error is a [`Diagnostic`] with a stable code. It has no primary span; a caller that reads a source text adds it.
//! The span set by [`Builder::set_place`] is used for secondary labels, such as where a tensor was defined. After an error
//! the builder is unchanged, unless the method states otherwise.

mod arith;
mod attach;
mod caches;
mod define;
mod inline;
mod lower;
mod maps;
mod names;
mod nest;
mod primitives;
mod rfactor;
mod schedule;
mod stage;
mod unroll;

#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicU64, Ordering};

use tilewright_ir::{self as ir, Diagnostic, Span};

pub use arith::{binary, call, cast, check_size, if_then_else, match_types, unary};
pub use define::{ReduceAxis, axis, check_extent, check_shape, reduce, reduce_axis};
pub use lower::{Lowered, Param};
pub use names::{function_name, tensor_name};
pub use primitives::{LayoutLoops, Stage};
pub use schedule::Schedule;
pub use stage::SplitBy;

pub(super) use arith::check_condition;
pub(super) use define::check_reduce_axes;
pub(super) use primitives::check_pragma;

/// A result, or the first error.
pub(super) type Built<T> = Result<T, Diagnostic>;

/// A tensor of a [`Builder`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Tensor {
    builder: u64,
    pub(super) index: usize,
}

/// The axes of a computed tensor, and those that it reduces over.
pub type DefinitionAxes<'a> = (&'a [ir::Axis], &'a [ir::Axis]);

/// A schedule of a [`Builder`]; [`Builder::schedule`] opens it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ScheduleId {
    builder: u64,
    index: usize,
}

/// A loop of a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Loop {
    schedule: ScheduleId,
    /// The tensor of its stage.
    tensor: usize,
    /// Position among all loops of the stage, including those that were replaced.
    index: usize,
}

/// Tensors, symbolic extents and schedules under construction. The [module page](self) has an example.
#[derive(Debug)]
pub struct Builder {
    /// Different for every builder: handles have a copy.
    id: u64,
    tensors: Vec<TensorData>,
    /// Variables made by [`Builder::symbol`].
    symbols: Vec<ir::Var>,
    schedules: Vec<schedule::ScheduleData>,
    /// Source position of the definitions and primitives that follow.
    place: Option<Span>,
}

/// A tensor.
#[derive(Debug)]
pub(super) struct TensorData {
    /// In its logical shape.
    pub(super) buffer: ir::Buffer,
    pub(super) kind: TensorKind,
    pub(super) place: Option<Span>,
}

/// Where the elements of a tensor come from.
#[derive(Debug)]
pub(super) enum TensorKind {
    /// An argument.
    Input,
    /// A definition.
    Computed { axes: Vec<ir::Axis>, body: ir::StageBody },
    /// Made by `cache_read` or `cache_write`: holds the values of the tensor `base`, which is no cache.
    Cache { base: usize },
}

impl Default for Builder {
    fn default() -> Self {
        Self::new()
    }
}

impl Builder {
    /// A builder without tensors.
    pub fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self {
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            tensors: Vec::new(),
            symbols: Vec::new(),
            schedules: Vec::new(),
            place: None,
        }
    }

    /// Sets the place in a source text of the definitions and primitives that follow. Buffers, statements and later errors
    /// refer to it.
    pub fn set_place(&mut self, place: Option<Span>) {
        self.place = place;
    }

    /// Returns the buffer of a tensor: its name, element type and logical shape, and for a cache its scope.
    ///
    /// # Errors
    /// `foreign-tensor`.
    pub fn buffer(&self, tensor: Tensor) -> Result<&ir::Buffer, Diagnostic> {
        Ok(&self.data(tensor)?.buffer)
    }

    /// The axes of a computed tensor, and those that it reduces over; none for an input or a cache.
    ///
    /// # Errors
    /// `foreign-tensor`.
    pub fn definition_axes(&self, tensor: Tensor) -> Result<Option<DefinitionAxes<'_>>, Diagnostic> {
        Ok(match &self.data(tensor)?.kind {
            TensorKind::Computed { axes, body } => Some((axes, reduced_axes(body))),
            TensorKind::Input | TensorKind::Cache { .. } => None,
        })
    }

    /// Whether a variable is a symbolic extent of this builder.
    pub fn is_symbol(&self, var: &ir::Var) -> bool {
        self.symbols.contains(var)
    }

    /// Opens a schedule.
    ///
    /// # Errors
    /// `foreign-schedule`: the schedule belongs to another builder.
    pub fn schedule(&mut self, id: ScheduleId) -> Result<Schedule<'_>, Diagnostic> {
        if id.builder != self.id {
            return Err(Diagnostic::error("foreign-schedule", None, "the schedule belongs to another builder"));
        }
        Ok(Schedule::open(self, id.index))
    }

    /// The tensor behind a handle.
    pub(super) fn data(&self, tensor: Tensor) -> Built<&TensorData> {
        if tensor.builder == self.id {
            Ok(&self.tensors[tensor.index])
        } else {
            Err(Diagnostic::error("foreign-tensor", None, "the tensor belongs to another builder"))
        }
    }

    /// The tensor behind a handle of this builder; the evaluator has no others.
    pub(super) fn own(&self, tensor: Tensor) -> &TensorData {
        &self.tensors[tensor.index]
    }

    /// The handle of the tensor at a position.
    fn handle(&self, index: usize) -> Tensor {
        Tensor { builder: self.id, index }
    }

    /// Adds a tensor at the current place.
    fn add_tensor(&mut self, buffer: ir::Buffer, kind: TensorKind) -> Tensor {
        self.tensors.push(TensorData { buffer, kind, place: self.place });
        self.handle(self.tensors.len() - 1)
    }
}

/// The axes that a body reduces over.
fn reduced_axes(body: &ir::StageBody) -> &[ir::Axis] {
    match body {
        ir::StageBody::Reduce { axes, .. } => axes,
        ir::StageBody::Elementwise(_) => &[],
    }
}

/// Returns the expression of a body: the value, or the operand of the reduction.
fn body_expr(body: &ir::StageBody) -> &ir::Expr {
    match body {
        ir::StageBody::Elementwise(expr) | ir::StageBody::Reduce { source: expr, .. } => expr,
    }
}
