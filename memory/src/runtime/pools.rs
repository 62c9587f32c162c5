//! Pools as device memory, and the tensors read back from them.

use tilewright_device::{BufferSpec, MemoryKind, POISON};
use tilewright_interp::Tensor;
use tilewright_ir::{Diagnostic, Pool, Region, Room};

use super::bind::Bound;
use tilewright_compiler::codegen::channel_type;

fn fault(message: impl Into<String>) -> Diagnostic {
    Diagnostic::error("graph-pool", None, message)
}

/// Limit on the size of a pool that contains inputs, in bytes: the host holds a copy of it.
const MAX_BYTES: u64 = 1 << 33;

/// The memory object of each pool. Inputs are copied to their places and everything else is poisoned. A texture
/// without inputs is scratch memory, which the session may reuse.
pub(super) fn specs(bound: &Bound<'_>, inputs: &[Tensor]) -> Result<Vec<BufferSpec>, Diagnostic> {
    let plan = bound.network.plan;
    let mut specs: Vec<BufferSpec> =
        plan.pools.iter().enumerate().map(|(number, pool)| spec(number, pool)).collect::<Result<_, _>>()?;
    let mut contents: Vec<Option<Vec<u8>>> = vec![None; specs.len()];
    let tensors = bound.network.graph.tensors.iter().zip(&plan.places);
    let given = tensors.filter(|(tensor, _)| tensor.role.is_given());
    for ((_, place), input) in given.zip(inputs) {
        if specs[place.pool].bytes > MAX_BYTES {
            return Err(fault(format!("pool {} has {} bytes", place.pool, specs[place.pool].bytes)));
        }
        let pool = contents[place.pool].get_or_insert_with(|| vec![POISON; host_size(specs[place.pool].bytes)]);
        for (row, (start, length)) in rows(&plan.pools[place.pool], place.region).enumerate() {
            pool[start..start + length].copy_from_slice(&input.bytes()[row * length..(row + 1) * length]);
        }
    }
    for (spec, contents) in specs.iter_mut().zip(contents) {
        *spec = match contents {
            Some(contents) => spec.clone().with_data(contents),
            None if matches!(spec.kind, MemoryKind::Image2d { .. }) => spec.clone().scratch(),
            None => spec.clone(),
        };
    }
    Ok(specs)
}

impl Bound<'_> {
    /// The tensor whose place is in a pool with these contents.
    pub(super) fn tensor_in_pool(&self, tensor: usize, contents: &[u8]) -> Result<Tensor, Diagnostic> {
        let (info, place) = (&self.network.graph.tensors[tensor], self.network.plan.places[tensor]);
        let parts = rows(&self.network.plan.pools[place.pool], place.region);
        let bytes = parts.flat_map(|(start, length)| contents[start..start + length].iter().copied()).collect();
        Tensor::from_bytes(info.dtype, &info.shape, bytes).map_err(|error| fault(format!("`{}`: {error}", info.name)))
    }

    /// Total size of the pools in bytes; saturates.
    pub(super) fn pool_bytes(&self) -> u64 {
        let bytes = |pool: &Pool| match pool.room {
            Room::Bytes(bytes) => bytes,
            Room::Texels { width, height } => width.saturating_mul(height).saturating_mul(texel_bytes(pool)),
        };
        self.network.plan.pools.iter().map(bytes).fold(0, u64::saturating_add)
    }
}

/// The memory object of a pool, without contents.
fn spec(number: usize, pool: &Pool) -> Result<BufferSpec, Diagnostic> {
    let name = format!("pool {number}");
    match pool.room {
        Room::Bytes(bytes) => Ok(BufferSpec::new(name, bytes)),
        Room::Texels { width, height } => {
            let channel = channel_type(pool.dtype.scalar).filter(|_| pool.dtype.is_scalar());
            let channel = channel.ok_or_else(|| fault(format!("{name} holds {}, as no image does", pool.dtype)))?;
            Ok(BufferSpec::image2d(name, width, height, channel))
        }
    }
}

/// Size of a texel in bytes.
fn texel_bytes(pool: &Pool) -> u64 {
    u64::from(tilewright_ir::CHANNELS) * pool.dtype.scalar.bytes()
}

/// The rows of a region of a pool, as offset and length in bytes; a buffer is a single row.
///
/// The region fits the pool: [`super::bind`] has checked it.
fn rows(pool: &Pool, region: Region) -> impl Iterator<Item = (usize, usize)> {
    let (first, pitch, length, n_rows) = match (region, pool.room) {
        (Region::Texels { x, y, width, height }, Room::Texels { width: columns, .. }) => {
            let texel = texel_bytes(pool);
            ((y * columns + x) * texel, columns * texel, width * texel, height)
        }
        (Region::Bytes { offset, size }, _) => (offset, 0, size, 1),
        (Region::Texels { .. }, Room::Bytes(_)) => (0, 0, 0, 0),
    };
    (0..n_rows).map(move |row| (host_size(first + row * pitch), host_size(length)))
}

/// A size that fits into the memory of the host.
fn host_size(size: u64) -> usize {
    usize::try_from(size).unwrap_or(usize::MAX)
}
