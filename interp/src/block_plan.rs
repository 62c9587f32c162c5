//! Block plans: how an innermost nest of loops runs many iterations at a time.
//!
//! ```text
//! for y in 3: for x in 5:             for each block of up to 512 iterations (y, x):
//!   B[y, x] = A[y, x] * 2.0 + C[x]      load A, load C, multiply, add: each for the whole block
//!                                       store B for the whole block
//! ```
//!
//! All loads and computations of a block precede its first store. A block in which some operation would trap is
//! therefore abandoned before it has changed memory, and its iterations run one by one instead. No iteration may read
//! what another iteration of the block writes: the pairs of accesses that might overlap are listed in
//! [`BlockPlan::apart`] and tested when the nest is entered. A reduction `C[..] = C[..] + x` is treated separately: `x`
//! is computed for the whole block, then the elements are combined in program order; one in loops of its own runs turn by
//! turn (`block_scratch`). A guard becomes a mask.

use tilewright_ir::ScalarType;

use crate::code::{Instr, Op, Reg};

/// Greatest number of iterations in a block.
pub(crate) const BLOCK: usize = 512;

/// Number of a vector register, which holds one value for each iteration of a block.
pub(crate) type VecReg = u32;

/// How a vector register holds its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    /// As 64-bit registers.
    Wide,
    /// As `float32`, of which more fit a register of the processor.
    Float,
}

/// A memory access of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AccessRef {
    /// Number of a stream: bounds are checked once for the whole nest.
    Stream(u32),
    /// Number of a gather: bounds are checked for every iteration.
    Gather(u32),
}

impl AccessRef {
    /// The number of the stream, if it is one.
    pub(crate) fn stream(self) -> Option<u32> {
        match self {
            Self::Stream(number) => Some(number),
            Self::Gather(_) => None,
        }
    }
}

/// An access whose indices are computed separately for every iteration.
#[derive(Debug)]
pub(crate) struct Gather {
    /// Number of the buffer.
    pub(crate) view: u32,
    /// The lane of the element, for a buffer of vectors.
    pub(crate) lane: usize,
    /// One vector register for each axis.
    pub(crate) indices: Vec<VecReg>,
    /// The stream with the same elements, if there is one; it may be out of bounds.
    pub(crate) stream: Option<u32>,
}

/// An operation on a whole block, before its stores. A mask limits it to the iterations in which the mask is not 0.
#[derive(Debug)]
pub(crate) enum BlockOp {
    Load {
        access: AccessRef,
        ty: ScalarType,
        d: VecReg,
        mask: Option<VecReg>,
    },
    /// A computation on vector registers; its result is unspecified where the mask is 0.
    Compute {
        instr: Instr,
        mask: Option<VecReg>,
    },
    /// An arithmetic operator of `float32` on registers of floats, two of which are its operands.
    Arithmetic {
        op: Op,
        d: VecReg,
        operands: [VecReg; 2],
    },
    /// A comparison of registers of floats.
    Compare {
        op: Op,
        d: VecReg,
        operands: [VecReg; 2],
    },
    /// Values of a register of floats, chosen by a mask.
    Choose {
        mask: VecReg,
        d: VecReg,
        operands: [VecReg; 2],
    },
    /// A copy of a register of floats; where the mask is 0, the destination keeps its value.
    Copy {
        from: VecReg,
        d: VecReg,
        mask: Option<VecReg>,
    },
    /// The values of a register as a register of the other kind.
    Convert {
        from: VecReg,
        d: VecReg,
    },
    /// Abandons the block if the condition is 0 in some iteration.
    Assert {
        cond: VecReg,
        mask: Option<VecReg>,
    },
}

impl BlockOp {
    /// The vector registers that are read.
    pub(crate) fn sources(&self) -> impl Iterator<Item = VecReg> {
        let read: [Option<VecReg>; 4] = match *self {
            Self::Load { mask, .. } => [mask, None, None, None],
            // Operands that are not used are register 0, which no computation writes.
            Self::Compute { instr, mask } => [Some(instr.a), Some(instr.b), Some(instr.c), mask],
            Self::Arithmetic { operands: [a, b], .. } | Self::Compare { operands: [a, b], .. } => {
                [Some(a), Some(b), None, None]
            }
            Self::Choose { mask, operands: [a, b], .. } => [Some(a), Some(b), Some(mask), None],
            Self::Copy { from, mask, .. } => [Some(from), mask, None, None],
            Self::Convert { from, .. } => [Some(from), None, None, None],
            Self::Assert { cond, mask } => [Some(cond), mask, None, None],
        };
        read.into_iter().flatten()
    }

    /// Number of times that a vector register is read.
    pub(crate) fn reads(&self, vec_reg: VecReg) -> usize {
        self.sources().filter(|&other| other == vec_reg).count()
    }
}

/// A store of a whole block.
#[derive(Debug)]
pub(crate) struct Store {
    /// The elements stored to.
    pub(crate) access: AccessRef,
    pub(crate) ty: ScalarType,
    pub(crate) value: VecReg,
    /// The operator on `float32` and the operands that make the value, if nothing else needs it: no operation computes it then, and
    /// the result goes to memory at once where it can.
    pub(crate) arithmetic: Option<(Op, [VecReg; 2])>,
    pub(crate) mask: Option<VecReg>,
}

impl Store {
    /// The vector registers that are read.
    pub(crate) fn sources(&self) -> impl Iterator<Item = VecReg> {
        let [a, b] = match self.arithmetic {
            Some((_, [a, b])) => [Some(a), Some(b)],
            None => [Some(self.value), None],
        };
        [a, b, self.mask].into_iter().flatten()
    }
}

/// A reduction: the element is combined with a value and stored again, one iteration after the other.
#[derive(Debug)]
pub(crate) struct Reduce {
    /// The elements updated.
    pub(crate) access: AccessRef,
    /// The operator; its register operands are not used.
    pub(crate) instr: Instr,
    pub(crate) ty: ScalarType,
    pub(crate) value: VecReg,
    /// The factors of the value, if it is a product of `float32` that is added and not needed otherwise: no operation
    /// computes the value then.
    pub(crate) product: Option<[VecReg; 2]>,
    /// Whether the element is the first operand.
    pub(crate) element_first: bool,
    pub(crate) mask: Option<VecReg>,
}

/// A memory access, in program order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AccessEvent {
    pub(crate) access: AccessRef,
    pub(crate) slot: usize,
    pub(crate) write: bool,
    /// Whether it is a store that runs in every iteration and does not depend on the element.
    pub(crate) always: bool,
}

/// The body of a nest in vector form.
#[derive(Debug, Default)]
pub(crate) struct BlockPlan {
    /// The vector registers.
    pub(crate) kinds: Vec<Kind>,
    /// For each of them whether it is the operand of arithmetic of `float32` only, which takes its values from elsewhere, too.
    pub(crate) operands: Vec<bool>,
    /// Vector registers that hold the value of a scalar register in every iteration.
    pub(crate) uniforms: Vec<(VecReg, Reg)>,
    /// A vector register that is 0 in every iteration, if one is needed.
    pub(crate) zero: Option<VecReg>,
    /// Vector registers that hold a loop variable; the loops of the nest are counted from the outermost, 0.
    pub(crate) counters: Vec<(VecReg, usize)>,
    /// Loads, computations and assertions, in program order.
    pub(crate) ops: Vec<BlockOp>,
    /// For each of them whether only the indices of gathers need it, and it cannot trap.
    pub(crate) for_indices: Vec<bool>,
    /// The accesses that [`AccessRef::Gather`] refers to.
    pub(crate) gathers: Vec<Gather>,
    /// The stores, in program order, which run after all operations.
    pub(crate) stores: Vec<Store>,
    /// The reduction, which runs after the operations; there are no stores then.
    pub(crate) reduce: Option<Reduce>,
    /// Pairs of streams, one of them storing, that must not have an address in common. A stream paired with itself must
    /// have a different address in every iteration.
    pub(crate) apart: Vec<(u32, u32)>,
    /// All accesses.
    pub(crate) events: Vec<AccessEvent>,
    /// Whether it only computes (`block_strips`).
    pub(crate) only_computes: bool,
}

impl BlockPlan {
    /// Whether a register is the operand of arithmetic of `float32` only.
    pub(crate) fn is_operand(&self, vec_reg: VecReg) -> bool {
        self.operands.get(vec_reg as usize).copied().unwrap_or(false)
    }

    /// The stream of the elements of the reduction, which replaces a gather of the same elements.
    pub(crate) fn reduce_by_stream(&mut self) -> Option<u32> {
        let reduce = self.reduce.as_mut()?;
        let AccessRef::Gather(number) = reduce.access else { return reduce.access.stream() };
        let stream = self.gathers.get(number as usize)?.stream?;
        let gather = std::mem::replace(&mut reduce.access, AccessRef::Stream(stream));
        for event in self.events.iter_mut().filter(|event| event.access == gather) {
            event.access = AccessRef::Stream(stream);
        }
        Some(stream)
    }

    /// Makes the value of the reduction a part of it, if it is a product that is added.
    pub(crate) fn fuse_product(&mut self) {
        let Some(reduce) = self.reduce.as_mut().filter(|reduce| reduce.instr.op == Op::AddF32) else { return };
        let (value, uses) = (reduce.value, self.ops.iter().map(|op| op.reads(reduce.value)).sum::<usize>());
        let is_product = |op: &BlockOp| matches!(op, BlockOp::Arithmetic { op: Op::MulF32, d, .. } if *d == value);
        let Some(at) = self.ops.iter().position(is_product).filter(|_| uses == 0) else { return };
        self.for_indices.remove(at);
        if let BlockOp::Arithmetic { operands, .. } = self.ops.remove(at) {
            reduce.product = Some(operands);
        }
    }

    /// How a vector register holds its values.
    pub(crate) fn kind(&self, vec_reg: VecReg) -> Kind {
        self.kinds.get(vec_reg as usize).copied().unwrap_or(Kind::Wide)
    }
}
