//! Building of block plans from the register code of a nest's body.
//!
//! Each register of the code becomes a vector register. Values of `float32` have registers of their own kind; where an
//! instruction needs the other kind, for a function such as `exp`, a conversion precedes it.

use std::collections::HashMap;

use tilewright_ir::ScalarType;

use crate::block_plan::{AccessEvent, AccessRef, BlockOp, BlockPlan, Gather, Kind, Reduce, Store, VecReg};
use crate::block_strips::only_computes;
use crate::code::{Access, Code, Instr, Op, Reg, Stream};

/// Greatest number of vector registers in a plan, which limits the values of a phase to 4 MiB.
const MAX_VEC_REGS: usize = 1024;

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
    let mut builder = Builder {
        source,
        plan: BlockPlan::default(),
        vec_regs: HashMap::new(),
        uniforms: HashMap::new(),
        converted: HashMap::new(),
        events: Vec::new(),
    };
    let end = source.code.instrs.len();
    builder.block(0, end, None)?;
    builder.reduction();
    builder.conflicts()?;
    builder.fuse_stores();
    let operands = builder.operands();
    let for_indices = builder.for_indices();
    let mut plan = BlockPlan { events: builder.events, operands, for_indices, ..builder.plan };
    plan.only_computes = only_computes(&plan);
    Some(plan)
}

/// The state while a plan is built.
struct Builder<'a> {
    source: &'a PlanSource<'a>,
    plan: BlockPlan,
    /// Vector register of each scalar register met so far.
    vec_regs: HashMap<Reg, VecReg>,
    /// Vector register of each kind of the scalar registers that the body only reads.
    uniforms: HashMap<(Reg, Kind), VecReg>,
    /// The registers of the other kind that hold the same values as a vector register.
    converted: HashMap<VecReg, VecReg>,
    events: Vec<AccessEvent>,
}

impl Builder<'_> {
    /// A new vector register.
    fn fresh(&mut self, kind: Kind) -> Option<VecReg> {
        let vec_reg = VecReg::try_from(self.plan.kinds.len()).ok()?;
        self.plan.kinds.push(kind);
        (self.plan.kinds.len() <= MAX_VEC_REGS).then_some(vec_reg)
    }

    /// A vector register with the values of a register that is read. One that the body does not write is a loop variable or
    /// uniform.
    fn operand(&mut self, reg: Reg, kind: Kind) -> Option<VecReg> {
        let level = self.source.vars.iter().position(|&var| var == reg);
        let known = match (self.vec_regs.get(&reg), level) {
            (Some(&known), _) => known,
            (None, Some(level)) => {
                let known = self.fresh(Kind::Wide)?;
                self.plan.counters.push((known, level));
                self.vec_regs.insert(reg, known);
                known
            }
            (None, None) => return self.uniform(reg, kind),
        };
        if self.plan.kind(known) == kind {
            return Some(known);
        }
        if let Some(&converted) = self.converted.get(&known) {
            return Some(converted);
        }
        let d = self.fresh(kind)?;
        self.plan.ops.push(BlockOp::Convert { from: known, d });
        self.converted.insert(known, d);
        Some(d)
    }

    /// The vector register of a kind that holds a scalar register's value in every iteration.
    fn uniform(&mut self, reg: Reg, kind: Kind) -> Option<VecReg> {
        if let Some(&known) = self.uniforms.get(&(reg, kind)) {
            return Some(known);
        }
        let vec_reg = self.fresh(kind)?;
        self.plan.uniforms.push((vec_reg, reg));
        self.uniforms.insert((reg, kind), vec_reg);
        Some(vec_reg)
    }

    /// The vector register of a register that is written, by one branch or by both.
    fn target(&mut self, reg: Reg, kind: Kind) -> Option<VecReg> {
        if let Some(&vec_reg) = self.vec_regs.get(&reg) {
            self.converted.remove(&vec_reg);
            return (self.plan.kind(vec_reg) == kind).then_some(vec_reg);
        }
        let vec_reg = self.fresh(kind)?;
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
        let cond = self.operand(instr.a, Kind::Wide)?;
        // The condition is unspecified where the outer mask is 0, so both masks are combined with it.
        let then_mask = match mask {
            None => cond,
            Some(mask) => self.computed(Op::And, mask, cond)?,
        };
        let then_end = if other > 0 { end - 1 } else { end };
        self.block(at, then_end, Some(then_mask))?;
        if other > 0 {
            let zero = match self.plan.zero {
                Some(zero) => zero,
                None => self.fresh(Kind::Wide)?,
            };
            self.plan.zero = Some(zero);
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
        let d = self.fresh(Kind::Wide)?;
        let instr = Instr { d, ..Instr::new(op, ScalarType::Bool, [a, b, a]) };
        self.plan.ops.push(BlockOp::Compute { instr, mask: None });
        Some(d)
    }

    /// Translates one instruction.
    fn instr(&mut self, instr: Instr, mask: Option<VecReg>) -> Option<()> {
        let ty = instr.ty;
        match instr.op {
            Op::LoadStream | Op::Load => {
                let access = self.resolve_access(&instr, false, mask)?;
                // All loads see the memory as it was before the block, so equal loads are merged.
                let same = |op: &BlockOp| match *op {
                    BlockOp::Load { access: other, ty: as_ty, d, mask: under } => {
                        (other == access && as_ty == ty && under == mask).then_some(d)
                    }
                    _ => None,
                };
                if let Some(d) = self.plan.ops.iter().find_map(same) {
                    self.vec_regs.insert(instr.d, d);
                    return Some(());
                }
                let d = self.target(instr.d, kind_of(ty))?;
                self.plan.ops.push(BlockOp::Load { access, ty, d, mask });
            }
            Op::StoreStream | Op::Store => {
                let value = self.operand(instr.b, kind_of(ty))?;
                let access = self.resolve_access(&instr, true, mask)?;
                self.plan.stores.push(Store { access, ty, value, arithmetic: None, mask });
            }
            Op::Assert => {
                let cond = self.operand(instr.a, Kind::Wide)?;
                self.plan.ops.push(BlockOp::Assert { cond, mask });
            }
            Op::JumpIfZero | Op::Jump => return None,
            Op::AddF32 | Op::SubF32 | Op::MulF32 | Op::DivF32 | Op::MinF32 | Op::MaxF32 => {
                let operands = self.floats(&instr)?;
                let d = self.target(instr.d, Kind::Float)?;
                self.plan.ops.push(BlockOp::Arithmetic { op: instr.op, d, operands });
            }
            Op::EqF32 | Op::LtF32 | Op::LeF32 => {
                let operands = self.floats(&instr)?;
                let d = self.target(instr.d, Kind::Wide)?;
                self.plan.ops.push(BlockOp::Compare { op: instr.op, d, operands });
            }
            Op::Select if kind_of(ty) == Kind::Float => {
                let chosen = self.operand(instr.a, Kind::Wide)?;
                let operands = [self.operand(instr.b, Kind::Float)?, self.operand(instr.c, Kind::Float)?];
                let d = self.target(instr.d, Kind::Float)?;
                self.plan.ops.push(BlockOp::Choose { mask: chosen, d, operands });
            }
            Op::Move if kind_of(ty) == Kind::Float => {
                let from = self.operand(instr.a, Kind::Float)?;
                let d = self.target(instr.d, Kind::Float)?;
                self.plan.ops.push(BlockOp::Copy { from, d, mask });
            }
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
            | Op::DivF64
            | Op::AddF64
            | Op::SubF64
            | Op::MulF64
            | Op::Binary
            | Op::Unary
            | Op::Call
            | Op::Cast
            | Op::Select
            | Op::IntToF32 => {
                let mut wide = |reg| self.operand(reg, Kind::Wide);
                let (a, b, c) = (wide(instr.a)?, wide(instr.b)?, wide(instr.c)?);
                let d = self.target(instr.d, Kind::Wide)?;
                self.plan.ops.push(BlockOp::Compute { instr: Instr { d, a, b, c, ..instr }, mask });
            }
        }
        Some(())
    }

    /// The two operands of an operator on `float32`.
    fn floats(&mut self, instr: &Instr) -> Option<[VecReg; 2]> {
        Some([self.operand(instr.a, Kind::Float)?, self.operand(instr.b, Kind::Float)?])
    }

    /// The stream or gather of a load or store, which is recorded as an event.
    fn resolve_access(&mut self, instr: &Instr, write: bool, mask: Option<VecReg>) -> Option<AccessRef> {
        let (access, view) = if matches!(instr.op, Op::LoadStream | Op::StoreStream) {
            (AccessRef::Stream(instr.a), self.source.streams.get(instr.a as usize)?.view)
        } else {
            let access = self.source.accesses.get(instr.a as usize)?;
            let indices =
                access.indices.iter().map(|&reg| self.operand(reg, Kind::Wide)).collect::<Option<Vec<_>>>()?;
            let same =
                |gather: &Gather| gather.view == access.view && gather.lane == access.lane && gather.indices == indices;
            let known = self.plan.gathers.iter().position(same);
            let number = known.unwrap_or(self.plan.gathers.len());
            if known.is_none() {
                let (view, lane, stream) = (access.view, access.lane, access.stream);
                self.plan.gathers.push(Gather { view, lane, indices, stream });
            }
            (AccessRef::Gather(u32::try_from(number).ok()?), access.view)
        };
        let slot = *self.source.slot_of.get(view as usize)?;
        self.events.push(AccessEvent { access, slot, write, always: write && mask.is_none() });
        Some(access)
    }

    /// Recognises `element = element op value` as the only store and turns it into a [`Reduce`].
    ///
    /// The value of the element may be used for nothing else: the computations before the reduction see the element as
    /// it was before the block.
    fn reduction(&mut self) {
        let [store] = self.plan.stores.as_slice() else { return };
        let (access, mask, value) = (store.access, store.mask, store.value);
        let Some(at) = self.plan.ops.iter().position(|op| made_by(op) == Some(value)) else { return };
        let instr = match &self.plan.ops[at] {
            BlockOp::Compute { instr, mask: computed } if *computed == mask => *instr,
            BlockOp::Arithmetic { op, d, operands: [a, b] } => {
                Instr { d: *d, ..Instr::new(*op, ScalarType::Float32, [*a, *b, *a]) }
            }
            _ => return,
        };
        if !reduces(instr.op) || instr.a == instr.b || self.uses(value) != 1 {
            return;
        }
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
            self.plan.reduce = Some(Reduce { access, instr, ty, value: other, product: None, element_first, mask });
            // The reduction loads and stores in program order, so its own load needs no test against its store. All
            // other accesses are still compared with the store.
            let mut first_load = true;
            self.events.retain(|event| {
                let dropped = first_load && !event.write && event.access == access;
                first_load &= !dropped;
                !dropped
            });
            self.events.iter_mut().for_each(|event| event.always = false);
            return;
        }
    }

    /// Makes the last operation on a value that is stored a part of the store, which computes it when the others have run.
    fn fuse_stores(&mut self) {
        for number in 0..self.plan.stores.len() {
            let Some(Store { value, mask: None, .. }) = self.plan.stores.get(number) else { continue };
            let value = *value;
            let mut makers = self.plan.ops.iter().enumerate().filter(|(_, op)| made_by(op) == Some(value));
            let (Some((at, BlockOp::Arithmetic { op, operands, .. })), None) = (makers.next(), makers.next()) else {
                continue;
            };
            // Branches write a register twice.
            let changes = |later: &BlockOp| made_by(later).is_some_and(|made| operands.contains(&made));
            if self.uses(value) != 1 || self.plan.ops.iter().skip(at).any(changes) {
                continue;
            }
            let arithmetic = Some((*op, *operands));
            self.plan.ops.remove(at);
            if let Some(store) = self.plan.stores.get_mut(number) {
                store.arithmetic = arithmetic;
            }
        }
    }

    /// Number of times that a vector register is read.
    fn uses(&self, vec_reg: VecReg) -> usize {
        let count = |operands: &[VecReg]| operands.iter().filter(|&&other| other == vec_reg).count();
        let in_ops: usize = self.plan.ops.iter().map(|op| op.reads(vec_reg)).sum();
        let in_gathers: usize = self.plan.gathers.iter().map(|gather| count(&gather.indices)).sum();
        let of_store = |store: &Store| store.sources().filter(|&other| other == vec_reg).count();
        let in_stores: usize = self.plan.stores.iter().map(of_store).sum();
        in_ops + in_gathers + in_stores
    }

    /// For each vector register whether it is loaded or uniform, and the operand of arithmetic of `float32` only.
    fn operands(&self) -> Vec<bool> {
        let mut operands = vec![false; self.plan.kinds.len()];
        let mut set = |reg: VecReg, value: bool| operands.get_mut(reg as usize).into_iter().for_each(|to| *to = value);
        let known = self.plan.uniforms.iter().map(|(reg, _)| *reg);
        let loaded = self.plan.ops.iter().filter(|op| matches!(op, BlockOp::Load { .. })).filter_map(made_by);
        for reg in known.chain(loaded).filter(|&reg| self.plan.kind(reg) == Kind::Float) {
            set(reg, true);
        }
        for op in self.plan.ops.iter().filter(|op| !matches!(op, BlockOp::Arithmetic { .. })) {
            op.sources().for_each(|reg| set(reg, false));
        }
        self.plan.stores.iter().for_each(|store| set(store.value, false));
        self.plan.reduce.iter().for_each(|reduce| set(reduce.value, false));
        operands
    }

    /// For each operation whether only the indices of gathers need it, and it cannot trap.
    fn for_indices(&self) -> Vec<bool> {
        let mut needed = vec![false; self.plan.kinds.len()];
        let mut need = |reg: VecReg| needed.get_mut(reg as usize).into_iter().for_each(|to| *to = true);
        self.plan.stores.iter().flat_map(Store::sources).for_each(&mut need);
        self.plan.reduce.iter().for_each(|reduce| reduce.mask.into_iter().chain([reduce.value]).for_each(&mut need));
        let mut for_indices = vec![false; self.plan.ops.len()];
        for (op, unneeded) in self.plan.ops.iter().zip(&mut for_indices).rev() {
            let harmless = matches!(op, BlockOp::Compute { instr, .. } if is_index_arithmetic(instr.op));
            let is_needed = made_by(op).is_some_and(|d| needed.get(d as usize) == Some(&true));
            *unneeded = harmless && !is_needed;
            if !*unneeded {
                op.sources().for_each(|reg| needed.get_mut(reg as usize).into_iter().for_each(|to| *to = true));
            }
        }
        for_indices
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

/// Whether an operator computes affine indices and cannot trap.
fn is_index_arithmetic(op: Op) -> bool {
    matches!(op, Op::Move | Op::Add | Op::Sub | Op::Mul | Op::Add32 | Op::Sub32 | Op::Mul32 | Op::Wrap)
}

/// How the values of a type are held.
fn kind_of(ty: ScalarType) -> Kind {
    if ty == ScalarType::Float32 { Kind::Float } else { Kind::Wide }
}

/// The vector register that an operation writes.
fn made_by(op: &BlockOp) -> Option<VecReg> {
    match op {
        BlockOp::Compute { instr, .. } => Some(instr.d),
        BlockOp::Load { d, .. }
        | BlockOp::Arithmetic { d, .. }
        | BlockOp::Compare { d, .. }
        | BlockOp::Choose { d, .. }
        | BlockOp::Copy { d, .. }
        | BlockOp::Convert { d, .. } => Some(*d),
        BlockOp::Assert { .. } => None,
    }
}
