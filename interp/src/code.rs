//! The compact form that a function is translated to before it is run: registers, straight-line code, loops.

use tilewright_ir::{Buffer, ForKind, ScalarType, Stmt, Var};

use crate::plan::Plan;

/// Number of a register.
pub(crate) type Reg = u32;

/// What an instruction does. `d` is where the result goes, `a`, `b`, `c` are operands; all work on 64-bit registers, see
/// [`crate::num`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Op {
    /// `d = a`
    Move,
    /// Integers of 64 bits, wrapping.
    Add,
    Sub,
    Mul,
    /// The same wrapped to `int32`.
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
    /// The amount is checked against the width of `ty`.
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
    /// Operator number `aux` of the table on operands of the type `ty`.
    Binary,
    /// Minus, not, bitwise not (0, 1, 2 in `aux`) on an operand of the type `ty`.
    Unary,
    /// Function number `aux` of the table, on one or two operands of the type `ty`.
    Call,
    /// From `ty` to `to`.
    Cast,
    /// `d = if a != 0 { b } else { c }`
    Select,
    /// Skips `c` instructions if `a` is 0.
    JumpIfZero,
    /// Skips `c` instructions.
    Jump,
    /// `d` = the element at access number `a`.
    Load,
    /// The element at access number `a` = `b`.
    Store,
    /// `d` = the element at stream number `a`. Only in code that a plan is made from.
    LoadStream,
    /// The element at stream number `a` = `b`. Only in code that a plan is made from.
    StoreStream,
    /// Traps with message number `b` if `a` is 0.
    Assert,
}

/// An instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Instr {
    pub(crate) op: Op,
    pub(crate) ty: ScalarType,
    pub(crate) to: ScalarType,
    pub(crate) aux: u8,
    pub(crate) d: Reg,
    pub(crate) a: Reg,
    pub(crate) b: Reg,
    pub(crate) c: Reg,
}

impl Instr {
    pub(crate) fn new(op: Op, ty: ScalarType, operands: [Reg; 3]) -> Self {
        let [a, b, c] = operands;
        Self { op, ty, to: ty, aux: 0, d: 0, a, b, c }
    }
}

/// Straight-line code with forward jumps; one site an instruction.
#[derive(Clone, Debug, Default)]
pub(crate) struct Code {
    pub(crate) instrs: Vec<Instr>,
    pub(crate) sites: Vec<u32>,
}

impl Code {
    pub(crate) fn push(&mut self, instr: Instr, site: u32) {
        self.instrs.push(instr);
        self.sites.push(site);
    }

    pub(crate) fn append(&mut self, mut other: Self) {
        self.instrs.append(&mut other.instrs);
        self.sites.append(&mut other.sites);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.instrs.is_empty()
    }
}

/// A statement of the program that instructions belong to.
#[derive(Clone, Debug)]
pub(crate) struct Site<'a> {
    pub(crate) stmt: &'a Stmt,
    pub(crate) span: Option<tilewright_ir::Span>,
    /// The loops around it, outermost first.
    pub(crate) loops: Vec<(&'a Var, Reg)>,
}

/// A load or store that checks every index.
#[derive(Clone, Debug)]
pub(crate) struct Access {
    pub(crate) view: u32,
    pub(crate) indices: Vec<Reg>,
    /// Which lane of the element.
    pub(crate) lane: usize,
}

/// One step of a program.
#[derive(Debug)]
pub(crate) enum Node {
    Code(Code),
    If {
        cond: Reg,
        then_body: Vec<Node>,
        else_body: Vec<Node>,
    },
    Loop(Box<Loop>),
    /// Memory for the view, for the time of the body.
    Allocate {
        view: u32,
        dims: Option<Box<Dims>>,
        site: u32,
        body: Vec<Node>,
    },
    /// A view whose extents are known only here.
    Declare {
        view: u32,
        dims: Box<Dims>,
        site: u32,
    },
}

/// What is needed to compute the extents of a view at run time.
#[derive(Debug)]
pub(crate) struct Dims {
    pub(crate) buffer: Buffer,
    pub(crate) vars: Vec<(Var, Reg)>,
}

/// A loop.
#[derive(Debug)]
pub(crate) struct Loop {
    pub(crate) var: Reg,
    pub(crate) ty: ScalarType,
    pub(crate) min: (Reg, ScalarType),
    pub(crate) extent: (Reg, ScalarType),
    pub(crate) kind: ForKind,
    pub(crate) site: u32,
    /// Run once, before the first iteration: what does not change in the loop.
    pub(crate) pre: Code,
    pub(crate) body: Vec<Node>,
    pub(crate) fast: Option<Fast>,
    /// Its iterations may run at once.
    pub(crate) independent: bool,
    /// A loop in it is independent too.
    pub(crate) inner_independent: bool,
    /// About how many instructions an iteration takes.
    pub(crate) weight: u64,
    /// Most loop iterations that one iteration starts, if that is known.
    pub(crate) inner_iterations: Option<u64>,
    /// The extent, if that is known.
    pub(crate) const_extent: Option<u64>,
}

/// An innermost nest of loops, run many iterations at a time. The loop it belongs to is the outermost of the nest.
#[derive(Debug)]
pub(crate) struct Fast {
    pub(crate) pre: Code,
    /// Computes the indices of the streams for the first iteration.
    pub(crate) probe: Code,
    pub(crate) streams: Vec<Stream>,
    /// The other loops of the nest, outermost first.
    pub(crate) inner: Vec<NestLoop>,
    pub(crate) plan: Plan,
}

/// A loop of a nest, whose range is known.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NestLoop {
    pub(crate) var: Reg,
    /// The first value of the variable, as a register.
    pub(crate) min: u64,
    pub(crate) extent: u64,
}

/// An access whose indices all move by constants with the loops of a nest.
#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) view: u32,
    pub(crate) dims: Vec<StreamDim>,
    pub(crate) lane: usize,
}

/// One index of a stream.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct StreamDim {
    /// Its value in the first iteration.
    pub(crate) reg: Reg,
    /// Added to it, for the lanes of a ramp.
    pub(crate) plus: i64,
    /// What it moves by with each loop of the nest, outermost first.
    pub(crate) steps: Vec<i64>,
    /// Greatest value of its type.
    pub(crate) max: i128,
}

/// A translated function.
#[derive(Debug)]
pub(crate) struct Program<'a> {
    /// Values of the registers at the start.
    pub(crate) registers: Vec<u64>,
    pub(crate) nodes: Vec<Node>,
    pub(crate) accesses: Vec<Access>,
    pub(crate) sites: Vec<Site<'a>>,
    pub(crate) messages: Vec<&'a str>,
    pub(crate) buffers: Vec<Buffer>,
    /// Slots of memory: the bytes of a cell, one entry a slot.
    pub(crate) widths: Vec<u64>,
    /// Slot of each buffer.
    pub(crate) slot_of: Vec<usize>,
}
