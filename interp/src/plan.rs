//! Plans: how an innermost nest of loops is run many iterations at a time.
//!
//! ```text
//! for y in 3: for x in 5:             for each block of up to 256 iterations (y, x):
//!   B[y, x] = A[y, x] * 2.0 + C[x]      load A, load C, multiply, add: each for the whole block
//!                                       store B for the whole block
//! ```
//!
//! All loads and computations of a block come before its first store, so a block in which anything would trap is given
//! up before it has changed anything, and the iterations are run one by one from there. What a store writes is not
//! read in the block by another iteration: pairs of accesses that might meet are held against each other when the nest
//! is entered. A reduction `C[..] = C[..] + x` is its own case: `x` is computed for the whole block, then the elements
//! are added in program order. A guard becomes a mask.

use std::collections::HashMap;

use tilewright_ir::ScalarType;

use crate::code::{Access, Code, Instr, Op, Reg, Stream};

/// Iterations that are run at a time.
pub(crate) const BLOCK: usize = 256;

/// Number of a register that has one value for each iteration of a block.
pub(crate) type Lane = u32;

/// An access of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Number of a stream: in bounds for the whole nest once that is checked.
    Stream(u32),
    /// Number of a gather: every index is checked.
    Gather(u32),
}

/// An access with an index of its own in every iteration.
#[derive(Debug)]
pub(crate) struct Gather {
    pub(crate) view: u32,
    pub(crate) lane: usize,
    pub(crate) indices: Vec<Lane>,
}

/// What is done for a whole block before its stores; operands are numbers of lanes.
#[derive(Debug)]
pub(crate) enum Step {
    Load {
        place: Place,
        ty: ScalarType,
        d: Lane,
        mask: Option<Lane>,
    },
    /// A computation; where the mask is 0 it does not matter what comes out.
    Compute {
        instr: Instr,
        mask: Option<Lane>,
    },
    /// The block is given up if this is 0 anywhere.
    Assert {
        cond: Lane,
        mask: Option<Lane>,
    },
}

/// A store.
#[derive(Debug)]
pub(crate) struct Store {
    pub(crate) place: Place,
    pub(crate) ty: ScalarType,
    pub(crate) value: Lane,
    pub(crate) mask: Option<Lane>,
}

/// An element combined with a value, and put back, in program order.
#[derive(Debug)]
pub(crate) struct Reduce {
    pub(crate) place: Place,
    pub(crate) instr: Instr,
    pub(crate) ty: ScalarType,
    pub(crate) value: Lane,
    /// The element is the first operand.
    pub(crate) element_first: bool,
    pub(crate) mask: Option<Lane>,
}

/// A nest's body in vector form.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    /// How many lanes there are.
    pub(crate) lanes: usize,
    /// Lanes that have the value of a register in every iteration.
    pub(crate) uniforms: Vec<(Lane, Reg)>,
    /// A lane that is 0 in every iteration, if one is needed.
    pub(crate) zero: Option<Lane>,
    /// Lanes that have the variable of a loop of the nest, counted from the outside.
    pub(crate) counters: Vec<(Lane, usize)>,
    pub(crate) steps: Vec<Step>,
    pub(crate) gathers: Vec<Gather>,
    pub(crate) stores: Vec<Store>,
    pub(crate) reduce: Option<Reduce>,
    /// Streams that must not meet, one of them storing. A stream paired with itself must not meet itself in another
    /// iteration.
    pub(crate) apart: Vec<(u32, u32)>,
}

/// What a plan is made from.
pub(crate) struct Source<'a> {
    pub(crate) code: &'a Code,
    pub(crate) streams: &'a [Stream],
    pub(crate) accesses: &'a [Access],
    /// Slot of each view.
    pub(crate) slot_of: &'a [usize],
    /// The loops' variables, outermost first.
    pub(crate) vars: &'a [Reg],
}

/// The plan of some code; none if it has none.
pub(crate) fn plan(source: &Source<'_>) -> Option<Plan> {
    let mut builder = Builder { source, plan: Plan::default(), lanes: HashMap::new(), events: Vec::new() };
    let end = source.code.instrs.len();
    builder.block(0, end, None)?;
    builder.reduction();
    builder.conflicts()?;
    Some(builder.plan)
}

/// An access in program order.
#[derive(Clone, Copy)]
struct Event {
    place: Place,
    slot: usize,
    write: bool,
}

struct Builder<'a> {
    source: &'a Source<'a>,
    plan: Plan,
    lanes: HashMap<Reg, Lane>,
    events: Vec<Event>,
}

impl Builder<'_> {
    fn fresh(&mut self) -> Option<Lane> {
        let lane = Lane::try_from(self.plan.lanes).ok()?;
        self.plan.lanes += 1;
        (self.plan.lanes <= 1024).then_some(lane)
    }

    /// The lane of a register that is read.
    fn operand(&mut self, reg: Reg) -> Option<Lane> {
        if let Some(&lane) = self.lanes.get(&reg) {
            return Some(lane);
        }
        let lane = self.fresh()?;
        match self.source.vars.iter().position(|&var| var == reg) {
            Some(level) => self.plan.counters.push((lane, level)),
            None => self.plan.uniforms.push((lane, reg)),
        }
        self.lanes.insert(reg, lane);
        Some(lane)
    }

    /// The lane of a register that is written, by one or both branches.
    fn target(&mut self, reg: Reg) -> Option<Lane> {
        if let Some(&lane) = self.lanes.get(&reg) {
            return Some(lane);
        }
        let lane = self.fresh()?;
        self.lanes.insert(reg, lane);
        Some(lane)
    }

    /// The instructions from `at` to `end`, which run where the mask is not 0.
    fn block(&mut self, mut at: usize, end: usize, mask: Option<Lane>) -> Option<()> {
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

    /// A conditional jump over `instr.c` instructions, whose last one jumps over the other branch if there is one. Gives
    /// where it goes on.
    fn branches(&mut self, at: usize, instr: &Instr, mask: Option<Lane>) -> Option<usize> {
        let end = at + instr.c as usize;
        let last = *self.source.code.instrs.get(end.checked_sub(1)?)?;
        let other = if instr.c > 0 && last.op == Op::Jump { last.c as usize } else { 0 };
        let cond = self.operand(instr.a)?;
        let then_mask = match mask {
            None => cond,
            Some(mask) => self.computed(Op::And, mask, cond)?,
        };
        let then_end = if other > 0 { end - 1 } else { end };
        self.block(at, then_end, Some(then_mask))?;
        if other > 0 {
            let zero = match self.plan.zero {
                Some(zero) => zero,
                None => *self.plan.zero.insert(Lane::try_from(self.plan.lanes).ok()?),
            };
            if zero as usize == self.plan.lanes {
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

    fn computed(&mut self, op: Op, a: Lane, b: Lane) -> Option<Lane> {
        let d = self.fresh()?;
        let instr = Instr { d, ..Instr::new(op, ScalarType::Bool, [a, b, a]) };
        self.plan.steps.push(Step::Compute { instr, mask: None });
        Some(d)
    }

    fn instr(&mut self, instr: Instr, mask: Option<Lane>) -> Option<()> {
        let ty = instr.ty;
        match instr.op {
            Op::LoadStream | Op::Load => {
                let place = self.place(&instr, false)?;
                // All loads see the memory as it was before the block, so one is enough.
                let same = |step: &Step| match *step {
                    Step::Load { place: other, ty: as_ty, d, mask: under } => {
                        (other == place && as_ty == ty && under == mask).then_some(d)
                    }
                    Step::Compute { .. } | Step::Assert { .. } => None,
                };
                if let Some(d) = self.plan.steps.iter().find_map(same) {
                    self.lanes.insert(instr.d, d);
                    return Some(());
                }
                let d = self.target(instr.d)?;
                self.plan.steps.push(Step::Load { place, ty, d, mask });
            }
            Op::StoreStream | Op::Store => {
                let value = self.operand(instr.b)?;
                let place = self.place(&instr, true)?;
                self.plan.stores.push(Store { place, ty, value, mask });
            }
            Op::Assert => {
                let cond = self.operand(instr.a)?;
                self.plan.steps.push(Step::Assert { cond, mask });
            }
            Op::JumpIfZero | Op::Jump => return None,
            _ => {
                let (a, b, c) = (self.operand(instr.a)?, self.operand(instr.b)?, self.operand(instr.c)?);
                let d = self.target(instr.d)?;
                self.plan.steps.push(Step::Compute { instr: Instr { d, a, b, c, ..instr }, mask });
            }
        }
        Some(())
    }

    fn place(&mut self, instr: &Instr, write: bool) -> Option<Place> {
        let (place, view) = if matches!(instr.op, Op::LoadStream | Op::StoreStream) {
            (Place::Stream(instr.a), self.source.streams.get(instr.a as usize)?.view)
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
            (Place::Gather(u32::try_from(number).ok()?), access.view)
        };
        let slot = *self.source.slot_of.get(view as usize)?;
        self.events.push(Event { place, slot, write });
        Some(place)
    }

    /// Recognises `element = element op value` as the only store.
    fn reduction(&mut self) {
        let [store] = self.plan.stores.as_slice() else { return };
        let (place, mask, value) = (store.place, store.mask, store.value);
        let makes = |step: &Step, lane: Lane| match step {
            Step::Load { d, .. } => *d == lane,
            Step::Compute { instr, .. } => instr.d == lane,
            Step::Assert { .. } => false,
        };
        let Some(at) = self.plan.steps.iter().position(|step| makes(step, value)) else { return };
        let Step::Compute { instr, mask: computed } = &self.plan.steps[at] else { return };
        if !reduces(instr.op) || *computed != mask || instr.a == instr.b || self.uses(value) != 1 {
            return;
        }
        let instr = *instr;
        for (element, other, element_first) in [(instr.a, instr.b, true), (instr.b, instr.a, false)] {
            let is_element = |step: &Step| {
                matches!(step, Step::Load { place: from, d, mask: under, .. }
                    if *from == place && *d == element && *under == mask)
            };
            let Some(load) = self.plan.steps.iter().position(is_element) else { continue };
            if self.uses(element) != 1 {
                continue;
            }
            let ty = store.ty;
            self.plan.steps.remove(at.max(load));
            self.plan.steps.remove(at.min(load));
            self.plan.stores.clear();
            self.plan.reduce = Some(Reduce { place, instr, ty, value: other, element_first, mask });
            // Its load and store are in order already; what is left is that nothing else meets it.
            let mut first_load = true;
            self.events.retain(|event| {
                let dropped = first_load && !event.write && event.place == place;
                first_load &= !dropped;
                !dropped
            });
            return;
        }
    }

    /// How often a lane is read.
    fn uses(&self, lane: Lane) -> usize {
        let count = |lanes: &[Lane]| lanes.iter().filter(|&&other| other == lane).count();
        let mask = |mask: &Option<Lane>| usize::from(*mask == Some(lane));
        let in_steps: usize = self
            .plan
            .steps
            .iter()
            .map(|step| match step {
                Step::Load { mask: under, .. } => mask(under),
                // Operands that are not used are register 0, which no computation writes.
                Step::Compute { instr, mask: under } => count(&[instr.a, instr.b, instr.c]) + mask(under),
                Step::Assert { cond, mask: under } => count(&[*cond]) + mask(under),
            })
            .sum();
        let in_gathers: usize = self.plan.gathers.iter().map(|gather| count(&gather.indices)).sum();
        let in_stores: usize = self.plan.stores.iter().map(|store| count(&[store.value]) + mask(&store.mask)).sum();
        in_steps + in_gathers + in_stores
    }

    /// Lists the pairs of accesses to be held against each other; none if some cannot be.
    fn conflicts(&mut self) -> Option<()> {
        for (at, &first) in self.events.iter().enumerate() {
            for &second in &self.events[at + 1..] {
                if first.slot != second.slot || !(first.write || second.write) {
                    continue;
                }
                let (Place::Stream(a), Place::Stream(b)) = (first.place, second.place) else { return None };
                // In one iteration, too, a store may not come before what it meets; and nothing meets a reduction.
                if a == b && (first.write || self.plan.reduce.is_some()) {
                    return None;
                }
                self.plan.apart.push((a, b));
            }
        }
        Some(())
    }
}

/// Operators that [`Reduce`] knows: on values that memory keeps as they are.
fn reduces(op: Op) -> bool {
    use Op::{Add, Add32, AddF32, AddF64, Max, MaxF32, Min, MinF32, Mul32, MulF32, MulF64};
    matches!(op, Add | Add32 | Mul32 | Min | Max | AddF32 | MulF32 | MinF32 | MaxF32 | AddF64 | MulF64)
}
