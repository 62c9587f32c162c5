//! When each tensor's memory is needed, and which tensors may share a pool at all.

use std::collections::BTreeMap;

use tilewright_ir::sabotage;
use tilewright_ir::{
    DataType, Diagnostic, Graph, MemoryPlan, Pool, PoolPlace, Region, Room, Scope, TensorRole, TextureLimits,
};

use super::ALIGNMENT;
use super::packing::Packing;
use crate::graph::check;

/// The steps during which a tensor's memory is needed, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Lifetime {
    /// The step that writes it; 0 for an input.
    pub first: usize,
    /// The last step that reads it or a view of it, or writes it; of inputs and outputs the last step of all.
    pub last: usize,
}

/// A tensor that needs a place: neither an input nor a view.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    pub(super) first: usize,
    pub(super) last: usize,
    pub(super) room: Room,
}

/// What may share pools: all buffers, or the textures of one scope and element type.
#[derive(Clone, Debug)]
pub(super) struct Group {
    /// In the order in which steps write them.
    pub(super) slots: Vec<Slot>,
    /// What divides the offsets of buffers that share a pool.
    pub(super) alignment: u64,
    /// The tensor of each slot.
    tensors: Vec<usize>,
    /// The steps that read each slot, increasing, each once.
    pub(super) readers: Vec<Vec<usize>>,
}

/// Scope and type; none for buffers.
pub(super) type Kind = Option<(Scope, DataType)>;

/// A graph as planners see it.
#[derive(Debug)]
pub(super) struct Problem<'a> {
    graph: &'a Graph,
    roots: Vec<usize>,
    lifetimes: Vec<Lifetime>,
    rooms: Vec<Room>,
    /// Inputs first, then by step: the order in which storage ids are given.
    order: Vec<usize>,
    pub(super) groups: Vec<Group>,
}

/// What may share pools with a tensor.
pub(super) fn kind(scope: Scope, dtype: DataType) -> Kind {
    scope.is_texture().then_some((scope, dtype))
}

impl<'a> Problem<'a> {
    /// Lifetimes and groups of a graph without faults, whose textures keep the limits.
    pub(super) fn new(graph: &'a Graph, limits: TextureLimits) -> Result<Self, Diagnostic> {
        if let Some(fault) = check::check(graph).into_iter().next() {
            return Err(fault.diagnostic);
        }
        // The check has seen that neither fails.
        let roots = check::roots_of(graph).unwrap_or_default();
        let rooms = graph.tensors.iter().map(|tensor| room_within(tensor, limits)).collect::<Result<Vec<_>, _>>()?;
        let (lifetimes, readers) = live(graph, &roots);
        let mut order: Vec<usize> = (0..graph.tensors.len()).filter(|&at| is_input(graph, at)).collect();
        order.extend(graph.steps.iter().flat_map(|step| step.writes.iter().copied()));
        let mut problem = Self { graph, roots, lifetimes, rooms, order, groups: Vec::new() };
        problem.groups = problem.groups(readers);
        Ok(problem)
    }

    fn groups(&self, mut readers: Vec<Vec<usize>>) -> Vec<Group> {
        let mut groups: BTreeMap<Kind, Group> = BTreeMap::new();
        for &at in self.order.iter().filter(|&&at| !is_input(self.graph, at)) {
            let tensor = &self.graph.tensors[at];
            let empty = || Group { slots: Vec::new(), alignment: ALIGNMENT, tensors: Vec::new(), readers: Vec::new() };
            let group = groups.entry(kind(tensor.scope, tensor.dtype)).or_insert_with(empty);
            let Lifetime { first, last } = self.lifetimes[at];
            group.alignment = group.alignment.max(tensor.dtype.bytes().next_power_of_two());
            group.slots.push(Slot { first, last, room: self.rooms[at] });
            group.tensors.push(at);
            group.readers.push(std::mem::take(&mut readers[at]));
        }
        groups.into_values().collect()
    }

    /// The lifetime of each tensor's memory.
    pub(super) fn lifetimes(&self) -> Vec<Lifetime> {
        self.roots.iter().map(|&root| self.lifetimes[root]).collect()
    }

    /// The room of each tensor.
    pub(super) fn room(&self, tensor: usize) -> Room {
        self.rooms[tensor]
    }

    /// The tensors that have memory of their own.
    pub(super) fn holders(&self) -> impl Iterator<Item = usize> {
        self.order.iter().copied()
    }

    /// A plan from a packing of each group; pools are numbered in the order in which they come into being.
    pub(super) fn assemble(&self, packings: &[Packing]) -> MemoryPlan {
        let mut packed: Vec<Option<(usize, usize)>> = vec![None; self.graph.tensors.len()];
        for (g, group) in self.groups.iter().enumerate() {
            for (slot, &tensor) in group.tensors.iter().enumerate() {
                packed[tensor] = Some((g, slot));
            }
        }
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
                None => PoolPlace { pool: add(self.rooms[at]), region: whole(self.rooms[at]) },
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

/// All of a room.
pub(super) fn whole(room: Room) -> Region {
    match room {
        Room::Bytes(size) => Region::Bytes { offset: 0, size },
        Room::Texels { width, height } => Region::Texels { x: 0, y: 0, width, height },
    }
}

fn is_input(graph: &Graph, at: usize) -> bool {
    graph.tensors[at].role == TensorRole::Input
}

fn room_within(tensor: &tilewright_ir::GraphTensor, limits: TextureLimits) -> Result<Room, Diagnostic> {
    let room = tensor.room()?;
    match room {
        Room::Texels { width, height } if width > limits.width || height > limits.height => {
            let message =
                format!("texture `{}` is {width} wide and {height} high, the limits are {limits}", tensor.name);
            let help = "cut it at other axes, put it in scope `global`, or say what the device has, as WIDTHxHEIGHT";
            Err(Diagnostic::error("texture-limits", None, message).with_help(help))
        }
        room => Ok(room),
    }
}

/// The lifetime of each tensor that is no view, and the steps that read it or a view of it.
fn live(graph: &Graph, roots: &[usize]) -> (Vec<Lifetime>, Vec<Vec<usize>>) {
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
    for (tensor, &root) in graph.tensors.iter().zip(roots) {
        match tensor.role {
            TensorRole::Intermediate => {}
            TensorRole::Output if sabotage::on("planner-frees-outputs") => {}
            TensorRole::Output | TensorRole::Input => lifetimes[root].last = end,
        }
    }
    (lifetimes, readers)
}
