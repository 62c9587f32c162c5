//! The parameters and the results of a run.

use std::fmt;

use tilewright_ir::{Diagnostic, Scalar, Span, Var};

use crate::tensor::Tensor;

/// How a program is run.
#[derive(Clone, Debug)]
pub struct Config {
    /// Number of threads; 0 means one per core. The result does not depend on it.
    pub threads: usize,
    /// Greatest number of loop iterations to start, summed over all loops; `None` for no limit.
    pub fuel: Option<u64>,
    /// Greatest number of bytes of the arguments together with the allocations that are alive at the same time.
    pub max_bytes: u64,
    /// The checks to make. Bounds are always checked.
    pub observers: Observers,
    /// The order in which the iterations of loops that are not serial run.
    pub order: Order,
}

/// Optional checks while a program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Observers {
    /// Trap on a read of an element that was never written. If false, such elements read as 0.
    pub defined: bool,
    /// Trap if two concurrent iterations of a parallel, vectorized or thread-bound loop access the same element and at
    /// least one of them writes it. The run then uses one thread and extra memory for every element.
    pub race: bool,
}

/// The order in which the iterations of a parallel, vectorized or thread-bound loop run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// In program order, or on several threads with the same result.
    Program,
    /// Last iteration first, on one thread. The reported trap is the first one in this order.
    Reversed,
    /// A permutation chosen by the seed, on one thread. The reported trap is the first one in this order.
    Shuffled(u64),
}

impl Default for Config {
    /// All cores, no fuel limit, at most 8 GiB; definedness is checked, races are not.
    fn default() -> Self {
        Self {
            threads: 0,
            fuel: None,
            max_bytes: 8 << 30,
            observers: Observers { defined: true, race: false },
            order: Order::Program,
        }
    }
}

/// The arguments of a function.
#[derive(Clone, Debug, Default)]
pub struct Arguments {
    /// One argument for each parameter, in order. Outputs are passed too; their elements may be undefined.
    pub params: Vec<Argument>,
    /// Values of symbolic variables that no argument's shape determines, such as strides.
    pub symbols: Vec<(Var, i128)>,
}

/// The argument for one parameter.
#[derive(Clone, Debug)]
pub enum Argument {
    /// The value of a buffer parameter, in its logical shape and packed, whatever strides the buffer has.
    Tensor(Tensor),
    /// The value of a scalar parameter.
    Scalar(Scalar),
}

impl Arguments {
    /// Arguments for a function whose parameters are all buffers.
    pub fn tensors(tensors: impl IntoIterator<Item = Tensor>) -> Self {
        Self { params: tensors.into_iter().map(Argument::Tensor).collect(), symbols: Vec::new() }
    }

    /// The tensor passed for a parameter; `None` if the argument is a scalar or missing.
    pub fn tensor(&self, param: usize) -> Option<&Tensor> {
        match self.params.get(param) {
            Some(Argument::Tensor(tensor)) => Some(tensor),
            Some(Argument::Scalar(_)) | None => None,
        }
    }
}

/// Statistics of a completed run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Loop iterations started, summed over all loops. It does not depend on the number of threads.
    pub iterations: u64,
    /// How often a loop was distributed over several threads.
    pub parallel_loops: u64,
    /// Number of threads used.
    pub threads: usize,
}

/// Why a run gave no result. The arguments are then unchanged.
#[derive(Clone, Debug, thiserror::Error)]
pub enum RunError {
    /// The arguments do not fit the function, or the function exceeds a limit of the interpreter or of this machine.
    #[error(transparent)]
    Input(#[from] Diagnostic),
    /// The program executed an operation that has no defined meaning.
    #[error(transparent)]
    Trap(#[from] Box<Trap>),
}

/// An operation without a defined meaning that a program executed.
///
/// If a program contains several, the first one in program order is reported, for any number of threads. As text:
///
/// ```text
/// B[2, 7] is out of bounds on axis 1: the shape is (5, 7) in `B[i, i + j] = 1.0`, at i = 2, j = 5
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trap {
    /// The kind of fault.
    pub kind: TrapKind,
    /// What happened, with the values involved; one sentence without a full stop.
    pub message: String,
    /// Name of the buffer that two iterations touched, for [`TrapKind::Race`].
    pub buffer: Option<String>,
    /// Where the statement stands in the source text, if it was read from one.
    pub span: Option<Span>,
    /// Names and values of the enclosing loop variables, outermost first.
    pub loops: Vec<(String, i128)>,
    /// The first line of the statement, as text.
    pub statement: String,
}

/// The kinds of [`Trap`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TrapKind {
    /// An index outside the shape, or an address outside the allocation.
    OutOfBounds,
    /// A read of an element that was never written.
    Undefined,
    /// Two iterations touched the same element, one of them writing.
    Race,
    /// An integer division or remainder by zero.
    DivisionByZero,
    /// A shift by a negative amount or by at least the width of the type.
    ShiftRange,
    /// A loop variable takes a value outside its type.
    LoopRange,
    /// A false assertion.
    Assertion,
    /// Threads of a group that do not all get to a barrier, or not equally often.
    Barrier,
    /// More loop iterations than [`Config::fuel`] allows.
    FuelExhausted,
    /// An allocation that takes more memory than [`Config::max_bytes`] allows, or than the machine has. It says nothing
    /// about the program: with a larger limit, the run goes on.
    Memory,
    /// An allocation or a view that has no layout: a negative extent, an address before the memory, or one that no
    /// address space has.
    Size,
}

impl fmt::Display for Trap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} in `{}`", self.message, self.statement)?;
        for (position, (name, value)) in self.loops.iter().enumerate() {
            write!(f, "{}{name} = {value}", if position == 0 { ", at " } else { ", " })?;
        }
        Ok(())
    }
}

impl std::error::Error for Trap {}
