//! Executes a plan in simulated memory, cell by cell, as a device would that relies on the plan.
//!
//! A pool is an array of bytes or texels with guard bands around it. Each step reads its inputs,
//! writes its outputs, and checks both again, which covers kernels whose work-items run in any
//! order. A tensor is poisoned after its last use. Each cell contains its tensor and its position
//! in the tensor, so every overlap is detected.
//!
//! The simulation is independent of planner and judge: it computes lifetimes and sizes itself.
//!
//! ```text
//! pool of 4 bytes, guard bands of 16 on either side; tensor a (2 bytes) at 0, tensor b (2 bytes) at 2
//!
//! G .. G  a0 a1 b0 b1  G .. G      after the step that writes b: both are intact
//! G .. G  P  P  b0 b1  G .. G      after the last step that reads a
//! G .. G  P  b0 b1 ..              b at 1 instead would overwrite a1, which the next reader of a detects
//! ```

use tilewright_ir::texture::is_channel_type;
use tilewright_ir::{Graph, GraphTensor, MemoryPlan, Pool, Region, Room, Scope, TensorRole};

/// Limit on the number of cells of all pools.
const MAX_CELLS: u64 = 1 << 23;
/// Width of the guard bands in cells.
const GUARD: u64 = 16;
/// The contents of guard bands.
const GUARDED: u64 = u64::MAX;
/// The contents of memory that belongs to no tensor.
const POISON: u64 = u64::MAX - 1;

/// A violation found by the simulation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The kind of violation, in a few words.
    pub what: &'static str,
    /// The tensor and the step.
    pub detail: String,
}

/// The error value of a violation.
fn violation<T>(what: &'static str, detail: impl Into<String>) -> Result<T, Violation> {
    Err(Violation { what, detail: detail.into() })
}

/// Executes a plan. `None` if it is too large.
///
/// # Errors
/// The first violation.
pub fn simulate(graph: &Graph, plan: &MemoryPlan) -> Option<Result<(), Violation>> {
    let extents = graph.tensors.iter().map(extents).collect::<Option<Vec<_>>>()?;
    let cells = |[width, height]: [u64; 2]| width.checked_add(2 * GUARD)?.checked_mul(height.checked_add(2 * GUARD)?);
    let sizes = plan.pools.iter().map(|pool| cells(pool_extents(pool))).collect::<Option<Vec<_>>>()?;
    let total = sizes.iter().try_fold(0_u64, |sum, &size| sum.checked_add(size))?;
    if total > MAX_CELLS || plan.places.len() != graph.tensors.len() {
        return None;
    }
    Some(run(graph, plan, &extents))
}

/// Checks the plan statically, then executes the steps in order.
fn run(graph: &Graph, plan: &MemoryPlan, extents: &[[u64; 2]]) -> Result<(), Violation> {
    plan.pools.iter().try_for_each(can_be_had)?;
    for (at, tensor) in graph.tensors.iter().enumerate() {
        lies_well(tensor, plan, at, extents[at])?;
    }
    let roots: Vec<usize> = (0..graph.tensors.len()).map(|at| root(graph, at)).collect();
    // An empty tensor contains nothing that could be wrong, so its views are checked here.
    let moved = |(at, root): &(usize, &usize)| extents[*at].contains(&0) && plan.places[*at] != plan.places[**root];
    if let Some((at, _)) = roots.iter().enumerate().find(moved) {
        return violation("an empty view lies elsewhere", graph.tensors[at].name.clone());
    }
    let pools = plan.pools.iter().map(Cells::new).collect();
    let mut device = Device { graph, plan, extents, roots, pools };
    for at in 0..graph.tensors.len() {
        if graph.tensors[at].role.is_given() {
            device.write(at)?;
        }
    }
    // A view of an input shows its contents from the beginning.
    let is_given = |&at: &usize| graph.tensors[root(graph, at)].role.is_given();
    (0..graph.tensors.len()).filter(is_given).try_for_each(|at| device.is_intact(at, "the caller gives"))?;
    let dies_after = device.dies_after();
    for (number, step) in graph.steps.iter().enumerate() {
        let when = |what: &str| format!("step `{}` {what}", step.name);
        for &read in &step.reads {
            device.is_intact(read, &when("reads"))?;
            let pool = plan.places[read].pool;
            let both = step.writes.iter().find(|&&write| plan.places[write].pool == pool);
            if let Some(&write) = both.filter(|_| plan.pools[pool].scope.is_texture()) {
                let names = [read, write].map(|at| graph.tensors[at].name.as_str());
                let detail = format!("{} {} and writes {}", when("reads"), names[0], names[1]);
                return violation("one texture is read and written", detail);
            }
        }
        step.writes.iter().try_for_each(|&write| device.write(write))?;
        for &at in step.writes.iter().chain(&step.reads) {
            device.is_intact(at, &when("is done with"))?;
        }
        // Views of a written tensor show its contents from now on.
        for view in (0..graph.tensors.len()).filter(|&view| step.writes.contains(&root(graph, view))) {
            device.is_intact(view, &when("makes"))?;
        }
        let dead = (0..dies_after.len()).filter(|&root| dies_after[root] == Some(number));
        dead.collect::<Vec<_>>().into_iter().for_each(|root| device.poison(root));
    }
    for (at, tensor) in graph.tensors.iter().enumerate() {
        if tensor.role != TensorRole::Intermediate {
            device.is_intact(at, "the caller takes")?;
        }
    }
    device.guards_are_intact()
}

/// The tensor at the end of the chain of views.
fn root(graph: &Graph, mut at: usize) -> usize {
    while let Some(of) = graph.tensors[at].view_of {
        at = of;
    }
    at
}

/// The extents of a tensor in cells: `[bytes, 1]` for buffers, columns and rows for textures.
/// `None` on overflow or if the rank is too small.
fn extents(tensor: &GraphTensor) -> Option<[u64; 2]> {
    let product = |extents: &[u64]| extents.iter().try_fold(1_u64, |product, &extent| product.checked_mul(extent));
    let shape = &tensor.shape;
    let rank = shape.len();
    let rows = match (tensor.scope, tensor.axis_separators.as_slice()) {
        (Scope::Texture, [cut, ..]) => *cut,
        (Scope::Texture, []) => rank.checked_sub(2)?,
        (Scope::TextureWeight, _) => 1,
        (Scope::TextureNhwc, _) => 2,
        (Scope::Global | Scope::Shared | Scope::Local, _) => {
            return Some([product(shape)?.checked_mul(tensor.dtype.bytes())?, 1]);
        }
    };
    Some([product(shape.get(rows..rank.checked_sub(1)?)?)?, product(shape.get(..rows)?)?])
}

/// The extents of a pool in cells.
fn pool_extents(pool: &Pool) -> [u64; 2] {
    match pool.room {
        Room::Bytes(bytes) => [bytes, 1],
        Room::Texels { width, height } => [width, height],
    }
}

/// Checks that a device can allocate the pool: a buffer in global memory, or a texture with a
/// scalar channel type.
fn can_be_had(pool: &Pool) -> Result<(), Violation> {
    let can = match pool.room {
        Room::Bytes(_) => pool.scope == Scope::Global,
        Room::Texels { .. } => pool.scope.is_texture() && pool.dtype.lanes == 1 && is_channel_type(pool.dtype.scalar),
    };
    if can { Ok(()) } else { violation("no device has such a pool", format!("{pool:?}")) }
}

/// Checks the place of a tensor without executing anything: the pool exists and is of the right kind, the
/// region has the size of the tensor, and its first element is aligned and inside the pool.
fn lies_well(tensor: &GraphTensor, plan: &MemoryPlan, at: usize, [width, height]: [u64; 2]) -> Result<(), Violation> {
    let place = plan.places[at];
    let Some(pool) = plan.pools.get(place.pool) else {
        return violation("the pool is not there", tensor.name.as_str());
    };
    // The end of the region is not checked here: a tensor that overhangs its pool writes to a guard band or to another
    // tensor, which the execution detects. An empty tensor may begin at the end of its pool.
    let (needs, begins, end) = match (place.region, pool.room) {
        (Region::Bytes { offset, size }, Room::Bytes(bytes)) => ([size, 1], offset, offset > bytes),
        (Region::Texels { x, y, width, height }, Room::Texels { width: w, height: h }) => {
            ([width, height], 0, x > w || y > h)
        }
        _ => return violation("the region is of another kind than the pool", tensor.name.as_str()),
    };
    let texture = tensor.scope.is_texture();
    // OpenCL aligns a vector to its size, and a vector of three lanes like one of four.
    let alignment = tensor.dtype.bytes().max(1).next_power_of_two();
    if pool.scope != tensor.scope || (texture && pool.dtype != tensor.dtype) {
        return violation("the pool is of another type", tensor.name.as_str());
    }
    if needs != [width, height] {
        return violation("the region is not the tensor's", tensor.name.as_str());
    }
    if end {
        return violation("the tensor begins outside of the pool", tensor.name.as_str());
    }
    if begins % alignment != 0 {
        return violation("an address is not aligned", tensor.name.as_str());
    }
    Ok(())
}

/// The contents of a pool, with guard bands on all sides.
struct Cells {
    /// The extents of the pool without guard bands.
    extents: [u64; 2],
    cells: Vec<u64>,
}

impl Cells {
    /// A poisoned pool with intact guard bands.
    fn new(pool: &Pool) -> Self {
        let extents = pool_extents(pool);
        let [width, height] = extents.map(|extent| usize::try_from(extent + 2 * GUARD).unwrap_or(0));
        let mut pool = Self { extents, cells: vec![GUARDED; width * height] };
        for row in 0..extents[1] {
            if let Some(row) = pool.row([0, row], extents[0]) {
                row.fill(POISON);
            }
        }
        pool
    }

    /// Part of a row, which may lie in the guard bands; `None` if it reaches beyond them.
    fn row(&mut self, [x, y]: [u64; 2], width: u64) -> Option<&mut [u64]> {
        let [columns, rows] = self.extents.map(|extent| extent + 2 * GUARD);
        let (x, y) = (x.checked_add(GUARD)?, y.checked_add(GUARD)?);
        let end = x.checked_add(width).filter(|&end| end <= columns && y < rows)?;
        let at = |x: u64| usize::try_from(y * columns + x).ok();
        self.cells.get_mut(at(x)?..at(end)?)
    }
}

/// The simulated device.
struct Device<'a> {
    graph: &'a Graph,
    plan: &'a MemoryPlan,
    extents: &'a [[u64; 2]],
    roots: Vec<usize>,
    pools: Vec<Cells>,
}

impl Device<'_> {
    /// Calls `look` for each row of a tensor with the expected contents of its first cell; those of
    /// the others follow by counting. Stops when `look` returns false.
    fn rows(&mut self, tensor: usize, mut look: impl FnMut(&mut [u64], u64) -> bool) -> Result<bool, Violation> {
        let place = self.plan.places[tensor];
        let (x, y) = match place.region {
            Region::Bytes { offset, .. } => (offset, 0),
            Region::Texels { x, y, .. } => (x, y),
        };
        let [width, height] = self.extents[tensor];
        let owner = u64::try_from(self.roots[tensor] + 1).unwrap_or(0) << 32;
        for row in (0..height).filter(|_| width > 0) {
            let Some(cells) = self.pools[place.pool].row([x, y + row], width) else {
                return violation("an access far outside of the pool", self.graph.tensors[tensor].name.as_str());
            };
            if !look(cells, owner + row * width) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Writes the expected contents of a tensor.
    fn write(&mut self, tensor: usize) -> Result<(), Violation> {
        self.rows(tensor, |cells, first| {
            cells.iter_mut().zip(first..).for_each(|(cell, mark)| *cell = mark);
            true
        })?;
        Ok(())
    }

    /// Poisons the memory of a tensor.
    fn poison(&mut self, tensor: usize) {
        // Only tensors that were written are poisoned, so the rows can be reached.
        let _ = self.rows(tensor, |cells, _| {
            cells.fill(POISON);
            true
        });
    }

    /// Checks that a tensor has its expected contents; `who` begins the message.
    fn is_intact(&mut self, tensor: usize, who: &str) -> Result<(), Violation> {
        let intact = self.rows(tensor, |cells, first| cells.iter().zip(first..).all(|(&cell, mark)| cell == mark))?;
        let name = &self.graph.tensors[tensor].name;
        if intact { Ok(()) } else { violation("memory is overwritten", format!("{who} `{name}`, which is not intact")) }
    }

    /// The last step that reads or writes each root or a view of it; `None` for inputs and outputs,
    /// which the caller may use at any time.
    fn dies_after(&self) -> Vec<Option<usize>> {
        let mut dies = vec![None; self.roots.len()];
        for (number, step) in self.graph.steps.iter().enumerate() {
            step.reads.iter().chain(&step.writes).for_each(|&at| dies[self.roots[at]] = Some(number));
        }
        for (at, tensor) in self.graph.tensors.iter().enumerate() {
            if tensor.role != TensorRole::Intermediate {
                dies[self.roots[at]] = None;
            }
        }
        dies
    }

    /// Checks the guard bands of all pools. The cells inside are overwritten for that, so this
    /// comes last.
    fn guards_are_intact(&mut self) -> Result<(), Violation> {
        for (number, pool) in self.pools.iter_mut().enumerate() {
            let [width, height] = pool.extents;
            for row in 0..height {
                if let Some(row) = pool.row([0, row], width) {
                    row.fill(GUARDED);
                }
            }
            if pool.cells.iter().any(|&cell| cell != GUARDED) {
                return violation("a guard band is overwritten", format!("pool {number}"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilewright_ir::ScalarType;
    use tilewright_memory::graph::GraphBuilder;
    use tilewright_memory::planner::{Strategy, plan};

    /// x in, a, b, c in a chain: a and c share.
    fn chain(scope: Scope) -> (Graph, MemoryPlan) {
        let mut graph = GraphBuilder::new();
        let mut last = graph.input("x", [3, 5, 4], ScalarType::Float32, scope);
        for name in ["a", "b", "c"] {
            let next = graph.tensor(name, [3, 5, 4], ScalarType::Float32, scope);
            graph.step(name, [last], [next]);
            last = next;
        }
        graph.output(last);
        let graph = graph.finish().unwrap().graph;
        let plan = plan(&graph, Strategy::Best).unwrap();
        (graph, plan)
    }

    fn wrong(graph: &Graph, plan: &MemoryPlan) -> Option<&'static str> {
        simulate(graph, plan).unwrap().err().map(|violation| violation.what)
    }

    #[test]
    fn a_plan_that_shares_too_early_is_seen() {
        for scope in [Scope::Global, Scope::Texture] {
            let (graph, good) = chain(scope);
            assert_eq!(wrong(&graph, &good), None);
            let mut plan = good.clone();
            plan.places[2] = plan.places[1];
            assert!(wrong(&graph, &plan).is_some());
            let mut plan = good.clone();
            plan.places[3] = plan.places[0];
            assert_eq!(wrong(&graph, &plan), Some("memory is overwritten"));
        }
    }

    #[test]
    fn a_write_behind_the_pool_is_seen_on_the_guard() {
        for scope in [Scope::Global, Scope::Texture] {
            let (graph, mut plan) = chain(scope);
            match &mut plan.pools[0].room {
                Room::Bytes(bytes) => *bytes -= 1,
                Room::Texels { height, .. } => *height -= 1,
            }
            assert_eq!(wrong(&graph, &plan), Some("a guard band is overwritten"));
        }
    }

    #[test]
    fn far_addresses_allocate_nothing() {
        let (graph, mut plan) = chain(Scope::Global);
        plan.places[1].region = Region::Bytes { offset: u64::MAX - 63, size: 240 };
        assert!(wrong(&graph, &plan).is_some());
        plan.pools[1].room = Room::Bytes(1 << 60);
        assert_eq!(simulate(&graph, &plan), None);
    }
}
