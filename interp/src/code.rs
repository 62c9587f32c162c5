//! The register code that a function is compiled to before it is run.
//!
//! A [`CompiledFunc`] is a tree of [`Node`]s: loops, conditionals, allocations, and straight-line [`Code`] between them.
//! Instructions work on numbered 64-bit registers; each instruction has a [`Site`], the statement it was compiled from,
//! so that a trap can name the place in the source.
//!
//! ```text
//! for i in 8: B[i] = A[i] * 2.0        Loop { var: r1, extent: r2 (= 8), body: [
//!                                        Code: r4 = Load access 0 (A, [r1])
//!                                              r5 = MulF32 r4, r3 (= 2.0)
//!                                              Store access 1 (B, [r1]) = r5 ] }
//! ```

use tilewright_ir::{Buffer, ForKind, ScalarType, Stmt, Var};

use crate::block_plan::{BLOCK, BlockPlan};

/// Number of a register, an index into [`CompiledFunc::registers`].
pub(crate) type Reg = u32;

/// What an instruction does.
///
/// `d` is the destination register, `a`, `b`, `c` are operands. [`crate::num`] says how a value of each type is stored
/// in a 64-bit register. The first group is specialised for one type because it is common; the rest goes through the
/// operator table of `ir`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Op {
    /// `d = a`
    Move,
    /// Wrapping 64-bit integer addition; `Sub` and `Mul` likewise.
    Add,
    Sub,
    Mul,
    /// Addition modulo 2^32 with an `int32` result; `Sub32` and `Mul32` likewise.
    Add32,
    Sub32,
    Mul32,
    /// `a` wrapped into the type `ty`.
    Wrap,
    FloorDiv,
    FloorMod,
    TruncDiv,
    TruncMod,
    Min,
    Max,
    Eq,
    Ne,
    Lt,
    Le,
    And,
    Or,
    Xor,
    /// Left shift; traps unless the amount is less than the width of `ty`. `Shr` likewise.
    Shl,
    Shr,
    AddF32,
    SubF32,
    MulF32,
    DivF32,
    MinF32,
    MaxF32,
    EqF32,
    LtF32,
    LeF32,
    AddF64,
    SubF64,
    MulF64,
    DivF64,
    IntToF32,
    /// Operator number `aux` of `BinaryOp::ALL` on operands of the type `ty`.
    Binary,
    /// Negation, logical not or bitwise not (0, 1, 2 in `aux`) on an operand of the type `ty`.
    Unary,
    /// Function number `aux` of `MathFn::ALL` on one or two operands of the type `ty`.
    Call,
    /// Conversion of `a` from `ty` to `to`.
    Cast,
    /// `d = if a != 0 { b } else { c }`
    Select,
    /// Skips the next `c` instructions if `a` is 0.
    JumpIfZero,
    /// Skips the next `c` instructions.
    Jump,
    /// `d` = the element at access number `a`.
    Load,
    /// The element at access number `a` = `b`.
    Store,
    /// `d` = the element at stream number `a`. Occurs only in code from which a block plan is built.
    LoadStream,
    /// The element at stream number `a` = `b`. Occurs only in code from which a block plan is built.
    StoreStream,
    /// Traps with message number `b` if `a` is 0.
    Assert,
}

/// An instruction. Two instructions that compute the same value compare equal before `d` is assigned, which is what
/// common subexpression elimination relies on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Instr {
    pub(crate) op: Op,
    /// Type of the operands.
    pub(crate) ty: ScalarType,
    /// Type of the result, for [`Op::Cast`].
    pub(crate) to: ScalarType,
    /// Position in an operator table, for [`Op::Binary`], [`Op::Unary`] and [`Op::Call`].
    pub(crate) aux: u8,
    /// Destination register.
    pub(crate) d: Reg,
    pub(crate) a: Reg,
    pub(crate) b: Reg,
    pub(crate) c: Reg,
}

impl Instr {
    /// An instruction on operands of the type `ty`, with no destination yet.
    pub(crate) fn new(op: Op, ty: ScalarType, operands: [Reg; 3]) -> Self {
        let [a, b, c] = operands;
        Self { op, ty, to: ty, aux: 0, d: 0, a, b, c }
    }
}

/// Straight-line code; the only jumps go forward.
#[derive(Clone, Debug, Default)]
pub(crate) struct Code {
    /// The instructions, in order of execution.
    pub(crate) instrs: Vec<Instr>,
    /// The site of each instruction, an index into [`CompiledFunc::sites`].
    pub(crate) sites: Vec<u32>,
}

impl Code {
    /// Appends an instruction that belongs to a site.
    pub(crate) fn push(&mut self, instr: Instr, site: u32) {
        self.instrs.push(instr);
        self.sites.push(site);
    }

    /// Appends all of `other`. Jumps are relative, so they stay valid.
    pub(crate) fn append(&mut self, mut other: Self) {
        self.instrs.append(&mut other.instrs);
        self.sites.append(&mut other.sites);
    }

    /// Whether there are no instructions.
    pub(crate) fn is_empty(&self) -> bool {
        self.instrs.is_empty()
    }
}

/// The statement that an instruction was compiled from.
#[derive(Clone, Debug)]
pub(crate) struct Site<'a> {
    pub(crate) stmt: &'a Stmt,
    /// Source span of the statement, or of the closest one around it that has one.
    pub(crate) span: Option<tilewright_ir::Span>,
    /// Variables and registers of the enclosing loops, outermost first.
    pub(crate) loops: Vec<(&'a Var, Reg)>,
}

/// A load or store whose indices are all checked at run time.
#[derive(Clone, Debug)]
pub(crate) struct Access {
    /// The buffer accessed, an index into [`CompiledFunc::buffers`].
    pub(crate) view: u32,
    /// One register for each axis.
    pub(crate) indices: Vec<Reg>,
    /// The lane of the element, for a buffer of vectors.
    pub(crate) lane: usize,
    /// The stream with the same elements, if the access is part of a plan and its indices are affine.
    pub(crate) stream: Option<u32>,
}

/// A node of a compiled function.
#[derive(Debug)]
pub(crate) enum Node {
    Code(Code),
    If {
        cond: Reg,
        then_body: Vec<Node>,
        else_body: Vec<Node>,
    },
    Loop(Box<Loop>),
    /// Memory for a view, alive while the body runs.
    Allocate {
        view: u32,
        dims: Option<Box<DynamicShape>>,
        site: u32,
        body: Vec<Node>,
    },
    /// The threads of the group that runs wait for each other. The nests of the phases around it stand apart already, so
    /// only the race check takes note.
    Barrier,
    /// A view of existing memory whose extents depend on loop or let-bound variables.
    Declare {
        view: u32,
        dims: Box<DynamicShape>,
        site: u32,
    },
}

/// A buffer whose extents, strides or offset depend on registers.
#[derive(Debug)]
pub(crate) struct DynamicShape {
    pub(crate) buffer: Buffer,
    /// The variables in them and the registers that hold their values.
    pub(crate) vars: Vec<(Var, Reg)>,
}

/// A loop.
#[derive(Debug)]
pub(crate) struct Loop {
    pub(crate) var: Reg,
    pub(crate) ty: ScalarType,
    /// Register and type of the first value.
    pub(crate) min: (Reg, ScalarType),
    /// Register and type of the number of iterations.
    pub(crate) extent: (Reg, ScalarType),
    /// How the source program runs the loop.
    pub(crate) kind: ForKind,
    /// Whether its iterations are threads of a group with barriers, which has a loop for each phase.
    pub(crate) of_group: bool,
    pub(crate) site: u32,
    /// Loop-invariant code, run once before the first iteration.
    pub(crate) pre: Code,
    pub(crate) body: Vec<Node>,
    /// The same nest compiled to run a block of iterations at a time, if that is possible.
    pub(crate) vectorized: Option<VectorizedNest>,
    /// Whether the iterations may run concurrently.
    pub(crate) independent: bool,
    /// Whether some loop inside is independent too.
    pub(crate) inner_independent: bool,
    /// Estimated number of instructions of one iteration.
    pub(crate) weight: u64,
    /// Greatest number of inner loop iterations that one iteration starts, if known.
    pub(crate) inner_iterations: Option<u64>,
    /// The extent, if it is a constant.
    pub(crate) const_extent: Option<u64>,
}

/// An innermost nest of loops, compiled to run many iterations at a time. The [`Loop`] that owns it is the outermost
/// loop of the nest.
#[derive(Debug)]
pub(crate) struct VectorizedNest {
    /// The loops inside the outermost one whose iterations make up blocks, outermost first.
    pub(crate) inner: Vec<NestLoop>,
    /// For each loop of the nest, outermost first, the number `k` by which indices divide its variable: streams see it as two loops,
    /// over `v // k` and over `v % k`, of which `k` divides the first value and the extent. 1 for a loop that is not split.
    pub(crate) splits: Vec<u64>,
    /// Whether the iterations of a block may be numbered in any order: no phase combines them one after the other.
    pub(crate) any_order: bool,
    /// The parts of the body, in program order: a block runs one after the other.
    pub(crate) phases: Vec<Phase>,
    /// Pairs of streams of different phases, each with the number of its phase, that must not have an address in common in
    /// different iterations.
    pub(crate) across: Vec<[(usize, u32); 2]>,
}

impl VectorizedNest {
    /// Whether blocks are whole iterations of the outermost loop, numbered in any order.
    pub(crate) fn boxes(&self) -> bool {
        self.any_order && self.splits.first() == Some(&1) && !self.is_long()
    }

    /// Whether an iteration of the outermost loop has at least a block of iterations.
    pub(crate) fn is_long(&self) -> bool {
        self.inner.iter().fold(1, |count: u64, inner| count.saturating_mul(inner.extent)) >= BLOCK as u64
    }

    /// Whether blocks may run strip by strip (`block_strips`).
    pub(crate) fn only_computes(&self) -> bool {
        matches!(self.phases.as_slice(), [phase] if phase.plan.only_computes && phase.turns.is_empty())
    }

    /// Whether there are only loads, computations and stores of streams.
    pub(crate) fn is_plain(&self) -> bool {
        self.phases
            .iter()
            .all(|phase| phase.turns.is_empty() && phase.plan.reduce.is_none() && phase.plan.gathers.is_empty())
    }
}

/// A part of a nest's body: straight-line code, or a reduction in loops of its own.
#[derive(Debug)]
pub(crate) struct Phase {
    /// Loop-invariant code.
    pub(crate) pre: Code,
    /// Computes the indices of the streams for the first iteration.
    pub(crate) probe: Code,
    /// The affine accesses of the phase, which the plan refers to by number.
    pub(crate) streams: Vec<Stream>,
    /// The loops of the phase, outermost first, which a block runs in turn: every iteration of a block takes part in
    /// each of theirs.
    pub(crate) turns: Vec<NestLoop>,
    /// For each of them the number by which it is split.
    pub(crate) turn_splits: Vec<u64>,
    /// The body.
    pub(crate) plan: BlockPlan,
}

/// An inner loop of a nest, whose range is a constant.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NestLoop {
    pub(crate) var: Reg,
    /// The first value of the variable, encoded as a register.
    pub(crate) min: u64,
    pub(crate) extent: u64,
}

/// An access whose indices are affine in the loop variables of a nest and of a phase: each loop adds a constant to each index.
#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) view: u32,
    /// One entry for each axis.
    pub(crate) dims: Vec<StreamDim>,
    pub(crate) lane: usize,
    /// Whether it may be out of bounds: it stands for accesses in branches, whose indices are checked then.
    pub(crate) is_guarded: bool,
}

/// The index of a stream along one axis.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct StreamDim {
    /// Holds the index of the first iteration.
    pub(crate) reg: Reg,
    /// Constant added to it: the distance to the first lane of a ramp.
    pub(crate) plus: i64,
    /// Change of the index with one iteration of each loop of the nest and of the phase, outermost first. A split loop has
    /// two entries.
    pub(crate) steps: Vec<i64>,
    /// Greatest value of the index type; an index beyond it would wrap.
    pub(crate) max: i128,
}

/// A function compiled for given values of its symbols and scalar parameters.
#[derive(Debug)]
pub(crate) struct CompiledFunc<'a> {
    /// Initial values of the registers: constants, and 0 for the others.
    pub(crate) registers: Vec<u64>,
    /// The body of the function.
    pub(crate) nodes: Vec<Node>,
    /// The loads and stores that check every index.
    pub(crate) accesses: Vec<Access>,
    /// The statements that instructions belong to.
    pub(crate) sites: Vec<Site<'a>>,
    /// Messages of assertions.
    pub(crate) messages: Vec<String>,
    /// The buffers, one view each.
    pub(crate) buffers: Vec<Buffer>,
    /// Bytes of a cell of each memory slot.
    pub(crate) widths: Vec<u64>,
    /// Memory slot of each buffer.
    pub(crate) slot_of: Vec<usize>,
}
