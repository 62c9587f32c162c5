//! Block plans: how an innermost nest of loops runs many iterations at a time.
//!
//! ```text
//! for y in 3: for x in 5:             for each block of up to 256 iterations (y, x):
//!   B[y, x] = A[y, x] * 2.0 + C[x]      load A, load C, multiply, add: each for the whole block
//!                                       store B for the whole block
//! ```
//!
//! All loads and computations of a block precede its first store. A block in which some operation would trap is
//! therefore abandoned before it has changed memory, and its iterations run one by one instead. No iteration may read
//! what another iteration of the block writes: the pairs of accesses that might overlap are listed in
//! [`BlockPlan::apart`] and tested when the nest is entered. A reduction `C[..] = C[..] + x` is treated separately: `x`
//! is computed for the whole block, then the elements are combined in program order. A guard becomes a mask.

use std::collections::HashMap;

use tilewright_ir::ScalarType;

use crate::code::{Access, Code, Instr, Op, Reg, Stream};

/// Greatest number of iterations in a block.
pub(crate) const BLOCK: usize = 256;

/// Greatest number of vector registers in a plan, which limits the values of a thread to 2 MiB.
const MAX_VEC_REGS: usize = 1024;

/// Number of a vector register, which holds one value for each iteration of a block.
pub(crate) type VecReg = u32;

/// A memory access of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AccessRef {
    /// Number of a stream: bounds are checked once for the whole nest.
    Stream(u32),
    /// Number of a gather: bounds are checked for every iteration.
    Gather(u32),
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
    /// Abandons the block if the condition is 0 in some iteration.
    Assert {
        cond: VecReg,
        mask: Option<VecReg>,
    },
}

/// A store of a whole block.
#[derive(Debug)]
pub(crate) struct Store {
    /// The elements stored to.
    pub(crate) access: AccessRef,
    pub(crate) ty: ScalarType,
    pub(crate) value: VecReg,
    pub(crate) mask: Option<VecReg>,
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
    /// Whether the element is the first operand.
    pub(crate) element_first: bool,
    pub(crate) mask: Option<VecReg>,
}

/// The body of a nest in vector form.
#[derive(Debug, Default)]
pub(crate) struct BlockPlan {
    /// Number of vector registers.
    pub(crate) n_vec_regs: usize,
    /// Vector registers that hold the value of a scalar register in every iteration.
    pub(crate) uniforms: Vec<(VecReg, Reg)>,
    /// A vector register that is 0 in every iteration, if one is needed.
    pub(crate) zero: Option<VecReg>,
    /// Vector registers that hold a loop variable; the loops of the nest are counted from the outermost, 0.
    pub(crate) counters: Vec<(VecReg, usize)>,
    /// Loads, computations and assertions, in program order.
    pub(crate) ops: Vec<BlockOp>,
    /// The accesses that [`AccessRef::Gather`] refers to.
    pub(crate) gathers: Vec<Gather>,
    /// The stores, in program order, which run after all operations.
    pub(crate) stores: Vec<Store>,
    /// The reduction, which runs after the operations; there are no stores then.
    pub(crate) reduce: Option<Reduce>,
    /// Pairs of streams, one of them storing, that must not have an address in common. A stream paired with itself must
    /// have a different address in every iteration.
    pub(crate) apart: Vec<(u32, u32)>,
}

/// The register code of a nest's body, from which a plan is built.
pub(crate) struct PlanSource<'a> {
    pub(crate) code: &'a Code,
    /// The streams that the code refers to.
    pub(crate) streams: &'a [Stream],
    /// The checked accesses that the code refers to.
    pub(crate) accesses: &'a [Access],
    /// Memory slot of each view.
    pub(crate) slot_of: &'a [usize],
    /// The registers of the loop variables, outermost first.
    pub(crate) vars: &'a [Reg],
}

/// Builds the plan of a nest's body. Returns `None` if there is none: a memory dependence between iterations cannot be
/// excluded by comparing streams, or the body needs more than [`MAX_VEC_REGS`] vector registers.
pub(crate) fn plan_block(source: &PlanSource<'_>) -> Option<BlockPlan> {
    let mut builder = Builder { source, plan: BlockPlan::default(), vec_regs: HashMap::new(), events: Vec::new() };
    let end = source.code.instrs.len();
    builder.block(0, end, None)?;
    builder.reduction();
    builder.conflicts()?;
    Some(builder.plan)
}

/// A memory access, in program order.
#[derive(Clone, Copy)]
struct AccessEvent {
    access: AccessRef,
    slot: usize,
    write: bool,
}

/// The state while a plan is built.
struct Builder<'a> {
    source: &'a PlanSource<'a>,
    plan: BlockPlan,
    /// Vector register of each scalar register met so far.
    vec_regs: HashMap<Reg, VecReg>,
    events: Vec<AccessEvent>,
}

impl Builder<'_> {
    /// A new vector register.
    fn fresh(&mut self) -> Option<VecReg> {
        let vec_reg = VecReg::try_from(self.plan.n_vec_regs).ok()?;
        self.plan.n_vec_regs += 1;
        (self.plan.n_vec_regs <= MAX_VEC_REGS).then_some(vec_reg)
    }

    /// The vector register of a register that is read. One that the body does not write is a loop variable or uniform.
    fn operand(&mut self, reg: Reg) -> Option<VecReg> {
        if let Some(&vec_reg) = self.vec_regs.get(&reg) {
            return Some(vec_reg);
        }
        let vec_reg = self.fresh()?;
        match self.source.vars.iter().position(|&var| var == reg) {
            Some(level) => self.plan.counters.push((vec_reg, level)),
            None => self.plan.uniforms.push((vec_reg, reg)),
        }
        self.vec_regs.insert(reg, vec_reg);
        Some(vec_reg)
    }

    /// The vector register of a register that is written, by one branch or by both.
    fn target(&mut self, reg: Reg) -> Option<VecReg> {
        if let Some(&vec_reg) = self.vec_regs.get(&reg) {
            return Some(vec_reg);
        }
        let vec_reg = self.fresh()?;
        self.vec_regs.insert(reg, vec_reg);
        Some(vec_reg)
    }

    /// Translates the instructions from `at` to `end`, which run where the mask is not 0.
    fn block(&mut self, mut at: usize, end: usize, mask: Option<VecReg>) -> Option<()> {
        while at < end {
            let instr = *self.source.code.instrs.get(at)?;
            at += 1;
            if instr.op == Op::JumpIfZero {
                at = self.branches(at, &instr, mask)?;
            } else {
                self.instr(instr, mask)?;
            }
        }
        Some(())
    }

    /// Translates a conditional jump over `instr.c` instructions, the last of which jumps over the else branch if there
    /// is one. Both branches become masked code. Returns the position after them.
    fn branches(&mut self, at: usize, instr: &Instr, mask: Option<VecReg>) -> Option<usize> {
        let end = at + instr.c as usize;
        // A jump at the end of the then branch skips the else branch. It cannot be the jump of a conditional inside, which
        // is followed by an else branch of its own.
        let last = *self.source.code.instrs.get(end.checked_sub(1)?)?;
        let other = if instr.c > 0 && last.op == Op::Jump { last.c as usize } else { 0 };
        let cond = self.operand(instr.a)?;
        // The condition is unspecified where the outer mask is 0, so both masks are combined with it.
        let then_mask = match mask {
            None => cond,
            Some(mask) => self.computed(Op::And, mask, cond)?,
        };
        let then_end = if other > 0 { end - 1 } else { end };
        self.block(at, then_end, Some(then_mask))?;
        if other > 0 {
            // The register of zeros takes the next number when it is first needed, and `fresh` then counts it.
            let zero = match self.plan.zero {
                Some(zero) => zero,
                None => *self.plan.zero.insert(VecReg::try_from(self.plan.n_vec_regs).ok()?),
            };
            if zero as usize == self.plan.n_vec_regs {
                self.fresh()?;
            }
            let mut else_mask = self.computed(Op::Eq, cond, zero)?;
            if let Some(mask) = mask {
                else_mask = self.computed(Op::And, mask, else_mask)?;
            }
            self.block(end, end + other, Some(else_mask))?;
        }
        Some(end + other)
    }

    /// Emits an operator on masks.
    fn computed(&mut self, op: Op, a: VecReg, b: VecReg) -> Option<VecReg> {
        let d = self.fresh()?;
        let instr = Instr { d, ..Instr::new(op, ScalarType::Bool, [a, b, a]) };
        self.plan.ops.push(BlockOp::Compute { instr, mask: None });
        Some(d)
    }

    /// Translates one instruction.
    fn instr(&mut self, instr: Instr, mask: Option<VecReg>) -> Option<()> {
        let ty = instr.ty;
        match instr.op {
            Op::LoadStream | Op::Load => {
                let access = self.resolve_access(&instr, false)?;
                // All loads see the memory as it was before the block, so equal loads are merged.
                let same = |op: &BlockOp| match *op {
                    BlockOp::Load { access: other, ty: as_ty, d, mask: under } => {
                        (other == access && as_ty == ty && under == mask).then_some(d)
                    }
                    BlockOp::Compute { .. } | BlockOp::Assert { .. } => None,
                };
                if let Some(d) = self.plan.ops.iter().find_map(same) {
                    self.vec_regs.insert(instr.d, d);
                    return Some(());
                }
                let d = self.target(instr.d)?;
                self.plan.ops.push(BlockOp::Load { access, ty, d, mask });
            }
            Op::StoreStream | Op::Store => {
                let value = self.operand(instr.b)?;
                let access = self.resolve_access(&instr, true)?;
                self.plan.stores.push(Store { access, ty, value, mask });
            }
            Op::Assert => {
                let cond = self.operand(instr.a)?;
                self.plan.ops.push(BlockOp::Assert { cond, mask });
            }
            Op::JumpIfZero | Op::Jump => return None,
            Op::Move
            | Op::Add
            | Op::Sub
            | Op::Mul
            | Op::Add32
            | Op::Sub32
            | Op::Mul32
            | Op::Wrap
            | Op::FloorDiv
            | Op::FloorMod
            | Op::TruncDiv
            | Op::TruncMod
            | Op::Min
            | Op::Max
            | Op::Eq
            | Op::Ne
            | Op::Lt
            | Op::Le
            | Op::And
            | Op::Or
            | Op::Xor
            | Op::Shl
            | Op::Shr
            | Op::AddF32
            | Op::SubF32
            | Op::MulF32
            | Op::DivF32
            | Op::MinF32
            | Op::MaxF32
            | Op::EqF32
            | Op::LtF32
            | Op::LeF32
            | Op::AddF64
            | Op::SubF64
            | Op::MulF64
            | Op::DivF64
            | Op::IntToF32
            | Op::Binary
            | Op::Unary
            | Op::Call
            | Op::Cast
            | Op::Select => {
                let (a, b, c) = (self.operand(instr.a)?, self.operand(instr.b)?, self.operand(instr.c)?);
                let d = self.target(instr.d)?;
                self.plan.ops.push(BlockOp::Compute { instr: Instr { d, a, b, c, ..instr }, mask });
            }
        }
        Some(())
    }

    /// The stream or gather of a load or store, which is recorded as an event.
    fn resolve_access(&mut self, instr: &Instr, write: bool) -> Option<AccessRef> {
        let (access, view) = if matches!(instr.op, Op::LoadStream | Op::StoreStream) {
            (AccessRef::Stream(instr.a), self.source.streams.get(instr.a as usize)?.view)
        } else {
            let access = self.source.accesses.get(instr.a as usize)?;
            let indices = access.indices.iter().map(|&reg| self.operand(reg)).collect::<Option<Vec<_>>>()?;
            let same =
                |gather: &Gather| gather.view == access.view && gather.lane == access.lane && gather.indices == indices;
            let known = self.plan.gathers.iter().position(same);
            let number = known.unwrap_or(self.plan.gathers.len());
            if known.is_none() {
                self.plan.gathers.push(Gather { view: access.view, lane: access.lane, indices });
            }
            (AccessRef::Gather(u32::try_from(number).ok()?), access.view)
        };
        let slot = *self.source.slot_of.get(view as usize)?;
        self.events.push(AccessEvent { access, slot, write });
        Some(access)
    }

    /// Recognises `element = element op value` as the only store and turns it into a [`Reduce`].
    ///
    /// The value of the element may be used for nothing else: the computations before the reduction see the element as
    /// it was before the block.
    fn reduction(&mut self) {
        let [store] = self.plan.stores.as_slice() else { return };
        let (access, mask, value) = (store.access, store.mask, store.value);
        let makes = |op: &BlockOp, vec_reg: VecReg| match op {
            BlockOp::Load { d, .. } => *d == vec_reg,
            BlockOp::Compute { instr, .. } => instr.d == vec_reg,
            BlockOp::Assert { .. } => false,
        };
        let Some(at) = self.plan.ops.iter().position(|op| makes(op, value)) else { return };
        let BlockOp::Compute { instr, mask: computed } = &self.plan.ops[at] else { return };
        if !reduces(instr.op) || *computed != mask || instr.a == instr.b || self.uses(value) != 1 {
            return;
        }
        let instr = *instr;
        for (element, other, element_first) in [(instr.a, instr.b, true), (instr.b, instr.a, false)] {
            let is_element = |op: &BlockOp| {
                matches!(op, BlockOp::Load { access: from, d, mask: under, .. }
                    if *from == access && *d == element && *under == mask)
            };
            let Some(load) = self.plan.ops.iter().position(is_element) else { continue };
            if self.uses(element) != 1 {
                continue;
            }
            let ty = store.ty;
            self.plan.ops.remove(at.max(load));
            self.plan.ops.remove(at.min(load));
            self.plan.stores.clear();
            self.plan.reduce = Some(Reduce { access, instr, ty, value: other, element_first, mask });
            // The reduction loads and stores in program order, so its own load needs no test against its store. All
            // other accesses are still compared with the store.
            let mut first_load = true;
            self.events.retain(|event| {
                let dropped = first_load && !event.write && event.access == access;
                first_load &= !dropped;
                !dropped
            });
            return;
        }
    }

    /// Number of times that a vector register is read.
    fn uses(&self, vec_reg: VecReg) -> usize {
        let count = |operands: &[VecReg]| operands.iter().filter(|&&other| other == vec_reg).count();
        let mask = |mask: &Option<VecReg>| usize::from(*mask == Some(vec_reg));
        let in_ops: usize = self
            .plan
            .ops
            .iter()
            .map(|op| match op {
                BlockOp::Load { mask: under, .. } => mask(under),
                // Operands that are not used are register 0, which no computation writes.
                BlockOp::Compute { instr, mask: under } => count(&[instr.a, instr.b, instr.c]) + mask(under),
                BlockOp::Assert { cond, mask: under } => count(&[*cond]) + mask(under),
            })
            .sum();
        let in_gathers: usize = self.plan.gathers.iter().map(|gather| count(&gather.indices)).sum();
        let in_stores: usize = self.plan.stores.iter().map(|store| count(&[store.value]) + mask(&store.mask)).sum();
        in_ops + in_gathers + in_stores
    }

    /// Lists the pairs of accesses that must not overlap. Returns `None` if such a pair contains a gather, whose
    /// addresses are not known in advance.
    fn conflicts(&mut self) -> Option<()> {
        for (at, &first) in self.events.iter().enumerate() {
            for &second in &self.events[at + 1..] {
                if first.slot != second.slot || !(first.write || second.write) {
                    continue;
                }
                let (AccessRef::Stream(a), AccessRef::Stream(b)) = (first.access, second.access) else { return None };
                // Loads run before stores, so a stream that is loaded after it was stored in the same iteration would
                // read the old value; and only the reduction itself may access the element it updates.
                if a == b && (first.write || self.plan.reduce.is_some()) {
                    return None;
                }
                self.plan.apart.push((a, b));
            }
        }
        Some(())
    }
}

/// Whether [`Reduce`] supports an operator. The types are those whose values survive a store and a load unchanged, so
/// that the running value may stay in a register.
fn reduces(op: Op) -> bool {
    use Op::{Add, Add32, AddF32, AddF64, Max, MaxF32, Min, MinF32, Mul32, MulF32, MulF64};
    matches!(op, Add | Add32 | Mul32 | Min | Max | AddF32 | MulF32 | MinF32 | MaxF32 | AddF64 | MulF64)
}
