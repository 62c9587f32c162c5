//! Reads memory plans from the JSON of TVM's graph executor: `storage_id`, `storage_scope`, and the shapes of the
//! pools.

use serde::{Deserialize, Serialize};
use tilewright_ir::{
    CHANNELS, DataType, Diagnostic, Graph, MemoryPlan, Pool, PoolPlace, Region, Room, ScalarType, Scope,
};

use super::check::roots_of;
use super::executor::AttrsText;
use super::json::{Number, Numbers, Strict, Text, unreadable};

/// The position of a tensor in its pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(untagged)]
pub(super) enum Offset {
    /// For buffers, in bytes.
    Byte(u64),
    /// For textures: column and row, in texels.
    Texel([u64; 2]),
}

/// A pool: `{"storage_id": 0, "storage_scope": "global", "dtype": "uint8", "shape": [4096]}`. The shape is `[bytes]`
/// for buffers and `[width, height, 4]` for textures.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PoolText<'a> {
    storage_id: Number<usize>,
    #[serde(borrow)]
    storage_scope: Text<'a>,
    dtype: Text<'a>,
    shape: Numbers<u64>,
}

fn error(message: impl Into<String>) -> Diagnostic {
    Diagnostic::error("graph-storage", None, message)
}

/// Reads the plan of a file; `None` if it has none. `index` gives the tensor of each entry.
///
/// # Errors
/// Pools, ids and offsets do not agree with one another or with the graph (`graph-storage`).
pub(super) fn plan(
    attrs: &AttrsText<'_>,
    pools: Option<&[Strict<PoolText<'_>>]>,
    graph: &Graph,
    index: &[usize],
    text: &str,
) -> Result<Option<MemoryPlan>, Diagnostic> {
    let Some((_, ids)) = &attrs.storage_id else {
        let has_places = pools.is_some() || attrs.storage_offset.is_some();
        return if has_places { Err(error("pools or offsets are given, but no `storage_id`")) } else { Ok(None) };
    };
    let offsets = attrs.storage_offset.as_ref().map(|(_, offsets)| offsets.as_slice());
    let mut storage: Vec<(usize, Option<Offset>)> = vec![(0, None); ids.len()];
    for (entry, &tensor) in index.iter().enumerate() {
        storage[tensor] = (ids[entry].0, offsets.map(|offsets| offsets[entry]));
    }
    let roots = roots_of(graph).unwrap_or_default();
    let rooms = graph.tensors.iter().map(tilewright_ir::GraphTensor::room).collect::<Result<Vec<_>, _>>()?;
    // A view shares its root's memory by definition, so a place of its own would contradict the graph.
    if let Some((at, &root)) = roots.iter().enumerate().find(|&(at, &root)| storage[at] != storage[root]) {
        let (view, root) = (&graph.tensors[at].name, &graph.tensors[root].name);
        let fault = error(format!("view `{view}` does not lie where `{root}` lies"));
        return Err(fault.with_help("a view has the storage_id and the offset of its root"));
    }
    let pools = match pools {
        Some(pools) => explicit_pools(pools, text)?,
        None => implied_pools(graph, &rooms, &storage)?,
    };
    let place =
        |((&(pool, offset), room), tensor): ((&(usize, Option<Offset>), &Room), &tilewright_ir::GraphTensor)| {
            let region = region(*room, offset).ok_or_else(|| {
                error(format!("the offset of `{}` is not of its kind: [x, y] for a texture, else bytes", tensor.name))
            })?;
            let kind = pools.get(pool).map(|pool| matches!(pool.room, Room::Bytes(_)));
            if kind != Some(matches!(room, Room::Bytes(_))) {
                return Err(error(format!("`{}` has storage_id {pool}, which is no pool of its kind", tensor.name)));
            }
            Ok(PoolPlace { pool, region })
        };
    let places = storage.iter().zip(&rooms).zip(&graph.tensors).map(place).collect::<Result<Vec<_>, _>>()?;
    Ok(Some(MemoryPlan { pools, places }))
}

/// The region that a tensor occupies at an offset, which defaults to the origin. `None` if the offset is of the wrong
/// kind.
fn region(room: Room, offset: Option<Offset>) -> Option<Region> {
    match (room, offset) {
        (Room::Bytes(size), None) => Some(Region::Bytes { offset: 0, size }),
        (Room::Bytes(size), Some(Offset::Byte(offset))) => Some(Region::Bytes { offset, size }),
        (Room::Texels { width, height }, None) => Some(Region::Texels { x: 0, y: 0, width, height }),
        (Room::Texels { width, height }, Some(Offset::Texel([x, y]))) => Some(Region::Texels { x, y, width, height }),
        (Room::Bytes(_), Some(Offset::Texel(_))) | (Room::Texels { .. }, Some(Offset::Byte(_))) => None,
    }
}

/// The pools as the file lists them.
fn explicit_pools(pools: &[Strict<PoolText<'_>>], text: &str) -> Result<Vec<Pool>, Diagnostic> {
    let pool = |(at, Strict(pool)): (usize, &Strict<PoolText<'_>>)| {
        let wrong = |message: String| Diagnostic::error("graph-storage", pool.storage_scope.span(text), message);
        if pool.storage_id.0 != at {
            return Err(wrong(format!("pool {at} has storage_id {}: they are numbered in order", pool.storage_id.0)));
        }
        let scope = pool.storage_scope.as_str().parse::<Scope>();
        let scope = scope.map_err(|error| unreadable(&pool.storage_scope, text, "graph-scope", &error))?;
        let dtype = pool.dtype.as_str().parse::<DataType>();
        let dtype = dtype.map_err(|error| unreadable(&pool.dtype, text, "graph-type", &error))?;
        let room = match (scope, &*pool.shape) {
            (Scope::Global, &[bytes]) => Room::Bytes(bytes),
            (scope, &[width, height, channels]) if scope.is_texture() && channels == u64::from(CHANNELS) => {
                Room::Texels { width, height }
            }
            (_, shape) => {
                let fault = wrong(format!("pool {at} in scope `{scope}` has the shape {shape:?}"));
                return Err(fault.with_help("[bytes] in scope `global`, [width, height, 4] of a texture"));
            }
        };
        Ok(Pool { scope, dtype, room })
    };
    pools.iter().enumerate().map(pool).collect()
}

/// The pools that follow from the tensors by TVM's rule: a pool is as large as its largest tensor, for textures in
/// each direction separately, and has the scope and element type of its first tensor.
fn implied_pools(graph: &Graph, rooms: &[Room], storage: &[(usize, Option<Offset>)]) -> Result<Vec<Pool>, Diagnostic> {
    let mut pools: Vec<Option<Pool>> = vec![None; storage.len()];
    for ((tensor, room), &(id, _)) in graph.tensors.iter().zip(rooms).zip(storage) {
        let n = pools.len();
        let Some(pool) = pools.get_mut(id) else {
            let message = format!("`{}` has storage_id {id}, but there are only {n} tensors", tensor.name);
            return Err(error(message).with_help("storage ids are numbered from 0"));
        };
        let dtype = if tensor.scope.is_texture() { tensor.dtype } else { BYTE };
        // The first tensor decides. That the others have the same scope and type is an obligation of the plan.
        let new = pool.get_or_insert_with(|| Pool { scope: tensor.scope, dtype, room: *room });
        new.room = match (new.room, *room) {
            (Room::Bytes(bytes), Room::Bytes(more)) => Room::Bytes(bytes.max(more)),
            (Room::Texels { width, height }, Room::Texels { width: w, height: h }) => {
                Room::Texels { width: width.max(w), height: height.max(h) }
            }
            (Room::Bytes(_), Room::Texels { .. }) | (Room::Texels { .. }, Room::Bytes(_)) => {
                return Err(error(format!("storage_id {id} is a buffer and a texture, `{}` says", tensor.name)));
            }
        };
    }
    // There are at most as many pools as tensors, and mostly fewer. Only a gap before the last pool is an error.
    while pools.last().is_some_and(Option::is_none) {
        pools.pop();
    }
    let missing = pools.iter().position(Option::is_none);
    match missing {
        Some(id) => Err(error(format!("no tensor has storage_id {id}")).with_help("ids are numbered without gaps")),
        None => Ok(pools.into_iter().flatten().collect()),
    }
}

/// The element type of pools of buffers, whose sizes are in bytes.
pub(crate) const BYTE: DataType = DataType::scalar(ScalarType::UInt8);
