//! The lifetimes of tensors' memory, and the groups of tensors that may share pools.

use std::collections::{BTreeMap, BTreeSet};

use tilewright_ir::sabotage;
use tilewright_ir::{
    DataType, Diagnostic, Graph, InPlace, MemoryPlan, Pool, PoolPlace, PoolRules, Region, Room, Scope, TensorRole,
};

use super::ALIGNMENT;
use super::packing::Packing;
use crate::graph::check;

/// The range of steps, both ends included, during which a tensor's memory is in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Lifetime {
    /// The step that writes the tensor; 0 for an input.
    pub first: usize,
    /// The last step that reads or writes the tensor or a view of it; for inputs and outputs the last step of the
    /// graph.
    pub last: usize,
}

/// A tensor that needs a place: neither an input nor a view; or several, each in place of the one before. `first` and `last` are
/// its lifetime.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    pub(super) first: usize,
    pub(super) last: usize,
    pub(super) room: Room,
}

/// The tensors that may share pools: all buffers, or the textures of one scope and element type.
#[derive(Clone, Debug)]
pub(super) struct Group {
    /// In the order in which steps write the tensors.
    pub(super) slots: Vec<Slot>,
    /// Offsets of buffers that share a pool are multiples of this number of bytes.
    pub(super) alignment: u64,
    /// The tensors of each slot.
    tensors: Vec<Vec<usize>>,
    /// The steps that read each slot or a view of it, in increasing order without repetition.
    pub(super) readers: Vec<Vec<usize>>,
}

/// Tensors share pools only with tensors of the same kind: scope and element type for textures, `None` for buffers.
pub(super) type PoolKind = Option<(Scope, DataType)>;

/// A graph with everything that planners derive from it; the vectors have one element for each tensor.
#[derive(Debug)]
pub(super) struct Problem<'a> {
    graph: &'a Graph,
    roots: Vec<usize>,
    lifetimes: Vec<Lifetime>,
    rooms: Vec<Room>,
    /// The tensors that own memory, inputs first, then by step. Pools are numbered in this order.
    order: Vec<usize>,
    pub(super) groups: Vec<Group>,
}

/// The kind of a tensor or a pool.
pub(super) fn pool_kind(scope: Scope, dtype: DataType) -> PoolKind {
    scope.is_texture().then_some((scope, dtype))
}

#[cfg(test)]
impl Group {
    /// A group of slots with the steps that read each.
    pub(super) fn for_test(slots: Vec<Slot>, readers: Vec<Vec<usize>>) -> Self {
        let tensors = (0..slots.len()).map(|slot| vec![slot]).collect();
        Self { slots, alignment: ALIGNMENT, tensors, readers }
    }
}

impl<'a> Problem<'a> {
    /// Computes lifetimes and groups, without steps in place.
    ///
    /// # Errors
    /// The first defect of the graph, or the first texture that exceeds the limits.
    pub(super) fn new(graph: &'a Graph, rules: PoolRules) -> Result<Self, Diagnostic> {
        Self::in_place(graph, rules, &[])
    }

    /// Computes lifetimes and groups. A result in place of an operand has the slot of the operand.
    ///
    /// # Errors
    /// As for [`Self::new`].
    pub(super) fn in_place(graph: &'a Graph, rules: PoolRules, pairs: &[InPlace]) -> Result<Self, Diagnostic> {
        if let Some(fault) = check::check(graph).into_iter().next() {
            return Err(fault.diagnostic);
        }
        // A graph without defects has roots, and each of its tensors has a size.
        let roots = check::roots_of(graph).unwrap_or_default();
        let rooms = graph.tensors.iter().map(|tensor| room_within(tensor, rules)).collect::<Result<Vec<_>, _>>()?;
        let (lifetimes, readers) = lifetimes_and_readers(graph, &roots);
        let mut order: Vec<usize> = (0..graph.tensors.len()).filter(|&at| is_input(graph, at)).collect();
        order.extend(graph.steps.iter().flat_map(|step| step.writes.iter().copied()));
        let mut problem = Self { graph, roots, lifetimes, rooms, order, groups: Vec::new() };
        let operands = problem.operands(pairs);
        problem.groups = problem.groups(readers, &operands);
        Ok(problem)
    }

    /// The pairs of an operand and a result that could share memory if the step worked in place: buffers of one size and type, and the
    /// operand is needed no longer.
    pub(super) fn candidates(&self) -> Vec<InPlace> {
        let tensors = &self.graph.tensors;
        // The tensors of which the caller takes one or a view of it.
        let outputs = tensors.iter().zip(&self.roots).filter(|(tensor, _)| tensor.role == TensorRole::Output);
        let taken: BTreeSet<usize> = outputs.map(|(_, &root)| root).collect();
        let mut found: Vec<InPlace> = Vec::new();
        for (step, uses) in self.graph.steps.iter().enumerate() {
            for (&result, &read) in
                uses.writes.iter().flat_map(|result| uses.reads.iter().map(move |read| (result, read)))
            {
                let operand = self.roots[read];
                let is_same = tensors[operand].scope == tensors[result].scope
                    && tensors[operand].dtype == tensors[result].dtype
                    && self.rooms[operand] == self.rooms[result];
                let is_buffer = matches!(self.rooms[result], Room::Bytes(size) if size > 0);
                let Lifetime { first, last } = self.lifetimes[operand];
                let ends = !is_input(self.graph, operand) && first < step && last == step && !taken.contains(&operand);
                let pair = InPlace { step, operand, result };
                // Pairs are found step by step: a known one is among the last.
                let is_known = || found.iter().rev().take_while(|known| known.step == step).any(|known| *known == pair);
                if is_same && is_buffer && ends && !is_known() {
                    found.push(pair);
                }
            }
        }
        found
    }

    /// The operand that each result takes the place of: the first one that no other result of the step has.
    fn operands(&self, pairs: &[InPlace]) -> BTreeMap<usize, usize> {
        let (mut operands, mut used) = (BTreeMap::new(), BTreeSet::new());
        let possible = if pairs.is_empty() { Vec::new() } else { self.candidates() };
        let possible: BTreeSet<InPlace> = possible.into_iter().collect();
        for pair in pairs.iter().filter(|pair| possible.contains(*pair)) {
            if !operands.contains_key(&pair.result) && used.insert(pair.operand) {
                operands.insert(pair.result, pair.operand);
            }
        }
        operands
    }

    /// The slots of each kind.
    fn groups(&self, mut readers: Vec<Vec<usize>>, operands: &BTreeMap<usize, usize>) -> Vec<Group> {
        let mut groups: BTreeMap<PoolKind, Group> = BTreeMap::new();
        let mut slot_of: BTreeMap<usize, usize> = BTreeMap::new();
        for &at in self.order.iter().filter(|&&at| !is_input(self.graph, at)) {
            let tensor = &self.graph.tensors[at];
            let empty = || Group { slots: Vec::new(), alignment: ALIGNMENT, tensors: Vec::new(), readers: Vec::new() };
            let group = groups.entry(pool_kind(tensor.scope, tensor.dtype)).or_insert_with(empty);
            let Lifetime { first, last } = self.lifetimes[at];
            group.alignment = group.alignment.max(tensor.dtype.bytes().next_power_of_two());
            let own_readers = std::mem::take(&mut readers[at]);
            if let Some(&slot) = operands.get(&at).and_then(|operand| slot_of.get(operand)) {
                slot_of.insert(at, slot);
                group.slots[slot].last = group.slots[slot].last.max(last);
                group.tensors[slot].push(at);
                group.readers[slot].extend(own_readers);
                continue;
            }
            slot_of.insert(at, group.slots.len());
            group.slots.push(Slot { first, last, room: self.rooms[at] });
            group.tensors.push(vec![at]);
            group.readers.push(own_readers);
        }
        groups.into_values().collect()
    }

    /// The lifetime of each tensor's memory; that of a view is its root's.
    pub(super) fn lifetimes(&self) -> Vec<Lifetime> {
        self.roots.iter().map(|&root| self.lifetimes[root]).collect()
    }

    /// The size of a tensor.
    pub(super) fn room(&self, tensor: usize) -> Room {
        self.rooms[tensor]
    }

    /// The tensors that own memory.
    pub(super) fn holders(&self) -> impl Iterator<Item = usize> {
        self.order.iter().copied()
    }

    /// The group of a kind, unless only inputs and constants are of that kind.
    pub(super) fn group(&self, kind: PoolKind) -> Option<&Group> {
        let kind_of = |group: &Group| {
            group
                .tensors
                .iter()
                .flatten()
                .next()
                .map(|&at| &self.graph.tensors[at])
                .map(|tensor| pool_kind(tensor.scope, tensor.dtype))
        };
        self.groups.iter().find(|group| kind_of(group) == Some(kind))
    }

    /// Builds a plan from the packing of each group. Pools are numbered in the order of their first tensors.
    pub(super) fn assemble(&self, packings: &[Packing], rules: PoolRules) -> MemoryPlan {
        let mut packed: Vec<Option<(usize, usize)>> = vec![None; self.graph.tensors.len()];
        for (g, group) in self.groups.iter().enumerate() {
            for (slot, tensors) in group.tensors.iter().enumerate() {
                for &tensor in tensors {
                    packed[tensor] = Some((g, slot));
                }
            }
        }
        // A pool of a packing gets its number when its first tensor is placed; the order of groups has no influence.
        let mut pools: Vec<Pool> = Vec::new();
        let mut numbers: Vec<Vec<Option<usize>>> =
            packings.iter().map(|packing| vec![None; packing.pools.len()]).collect();
        let mut places = vec![PoolPlace { pool: 0, region: Region::Bytes { offset: 0, size: 0 } }; packed.len()];
        for &at in &self.order {
            let tensor = &self.graph.tensors[at];
            let dtype = if tensor.scope.is_texture() { tensor.dtype } else { crate::graph::BYTE };
            let mut add = |room| {
                pools.push(Pool { scope: tensor.scope, dtype, room });
                pools.len() - 1
            };
            places[at] = match packed[at] {
                None => PoolPlace { pool: add(rules.pool_room(self.rooms[at])), region: whole_region(self.rooms[at]) },
                Some((g, slot)) => {
                    let (pool, region) = packings[g].places[slot];
                    let number = *numbers[g][pool].get_or_insert_with(|| add(packings[g].pools[pool]));
                    PoolPlace { pool: number, region }
                }
            };
        }
        let places = self.roots.iter().map(|&root| places[root]).collect();
        MemoryPlan { pools, places }
    }
}

/// The region that covers a whole pool.
pub(super) fn whole_region(room: Room) -> Region {
    match room {
        Room::Bytes(size) => Region::Bytes { offset: 0, size },
        Room::Texels { width, height } => Region::Texels { x: 0, y: 0, width, height },
    }
}

fn is_input(graph: &Graph, at: usize) -> bool {
    graph.tensors[at].role.is_given()
}

/// The size of a tensor, or an error if it is a texture larger than the limits.
fn room_within(tensor: &tilewright_ir::GraphTensor, rules: PoolRules) -> Result<Room, Diagnostic> {
    let (room, limits) = (tensor.room()?, rules.limits);
    match room {
        Room::Texels { width, height } if rules.pool_width(width) > limits.width || height > limits.height => {
            let message =
                format!("texture `{}` is {width} wide and {height} high, the limits are {limits}", tensor.name);
            let help = "cut it at other axes, put it in scope `global`, or say what the device has, as WIDTHxHEIGHT";
            Err(Diagnostic::error("texture-limits", None, message).with_help(help))
        }
        room => Ok(room),
    }
}

/// The lifetime of each root, and the steps that read it or a view of it. Values at the indices of views are
/// meaningless.
fn lifetimes_and_readers(graph: &Graph, roots: &[usize]) -> (Vec<Lifetime>, Vec<Vec<usize>>) {
    let end = graph.steps.len().saturating_sub(1);
    let mut lifetimes = vec![Lifetime { first: 0, last: 0 }; roots.len()];
    let mut readers: Vec<Vec<usize>> = vec![Vec::new(); roots.len()];
    for (step, uses) in graph.steps.iter().enumerate() {
        for &at in &uses.reads {
            let root = roots[at];
            if at == root || !sabotage::on("planner-ignores-views") {
                lifetimes[root].last = step;
            }
            if readers[root].last() != Some(&step) {
                readers[root].push(step);
            }
        }
        for &at in &uses.writes {
            lifetimes[at] = Lifetime { first: step, last: step };
        }
    }
    // The caller may read inputs and outputs after the last step.
    for (tensor, &root) in graph.tensors.iter().zip(roots) {
        match tensor.role {
            TensorRole::Intermediate => {}
            TensorRole::Output if sabotage::on("planner-frees-outputs") => {}
            TensorRole::Output | TensorRole::Input | TensorRole::Constant => lifetimes[root].last = end,
        }
    }
    (lifetimes, readers)
}
