//! How a program is run and what comes back.

use std::fmt;

use tilewright_ir::{Diagnostic, Scalar, Span, Var};

use crate::tensor::Tensor;

/// How a program is run.
#[derive(Clone, Debug)]
pub struct Config {
    /// Number of threads; 0 means one a core. The result does not depend on it.
    pub threads: usize,
    /// Most loop iterations that may be started, counted over all loops; none means any number.
    pub fuel: Option<u64>,
    /// Most bytes that the arguments and the allocations alive at once in one iteration may take.
    pub max_bytes: u64,
    /// What is watched, besides bounds, which always are.
    pub observers: Observers,
    /// The order in which the iterations of loops that are not serial run.
    pub order: Order,
}

/// What is watched while a program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Observers {
    /// Reading what was never written is a trap. If it is off, such elements are 0.
    pub defined: bool,
    /// Two iterations of a loop that is not serial which touch the same element, one of them writing, are a trap.
    /// The run takes one thread then, and memory for every element.
    pub race: bool,
}

/// The order in which the iterations of a loop that is not serial run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// As if it were serial, or on several threads at once, which gives the same.
    Program,
    /// The last first, on one thread. The trap reported is the first one met in this order.
    Reversed,
    /// Shuffled by a seed, on one thread. The trap reported is the first one met in this order.
    Shuffled(u64),
}

impl Default for Config {
    /// All cores, no fuel limit, 8 GiB, definedness watched, races not.
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

/// What is passed to a function.
#[derive(Clone, Debug, Default)]
pub struct Arguments {
    /// One a parameter, in order. Outputs are passed too; they may be undefined.
    pub params: Vec<Argument>,
    /// Symbolic extents that no argument's shape binds, such as strides.
    pub symbols: Vec<(Var, i128)>,
}

/// What is passed for one parameter.
#[derive(Clone, Debug)]
pub enum Argument {
    /// For a buffer, in its shape and packed, whatever strides the buffer has.
    Tensor(Tensor),
    /// For a scalar.
    Scalar(Scalar),
}

impl Arguments {
    /// Tensors for all parameters.
    pub fn tensors(tensors: impl IntoIterator<Item = Tensor>) -> Self {
        Self { params: tensors.into_iter().map(Argument::Tensor).collect(), symbols: Vec::new() }
    }

    /// The tensor of a parameter; none if it is a scalar or there is none.
    pub fn tensor(&self, param: usize) -> Option<&Tensor> {
        match self.params.get(param) {
            Some(Argument::Tensor(tensor)) => Some(tensor),
            Some(Argument::Scalar(_)) | None => None,
        }
    }
}

/// What a run did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Loop iterations started, over all loops. It does not depend on the number of threads.
    pub iterations: u64,
    /// How often a loop was spread over several threads.
    pub parallel_loops: u64,
    /// Threads at work.
    pub threads: usize,
}

/// Why a run gave no result. The arguments are then as they were.
#[derive(Clone, Debug, thiserror::Error)]
pub enum RunError {
    /// The arguments do not fit the function, or the function asks for what this machine refuses.
    #[error(transparent)]
    Input(#[from] Diagnostic),
    /// The program did what has no meaning.
    #[error(transparent)]
    Trap(#[from] Box<Trap>),
}

/// What a program did that has no meaning. Of several it is the first in program order, for any number of threads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trap {
    /// What it is.
    pub kind: TrapKind,
    /// What happened, with the values at hand; one sentence without a full stop.
    pub message: String,
    /// Where the statement was written.
    pub place: Option<Span>,
    /// The values of the loop variables around it, outermost first.
    pub loops: Vec<(String, i128)>,
    /// The statement.
    pub statement: String,
}

/// What a trap is about.
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
    /// A shift by an amount out of range.
    ShiftRange,
    /// A loop variable leaves its type.
    LoopRange,
    /// An assertion that is false.
    Assertion,
    /// Too many iterations.
    FuelExhausted,
    /// An allocation or a view whose size is negative or too large.
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
