//! Views of the memory of one thread, where all threads have a copy of it.
//!
//! ```text
//! for tx in 8 (threadIdx.x):                     R: (8, 4)
//!     R: (4,)                                    V: (8, 2) on R, strides (4, 1), offset 2
//!     V: (2,) on R, offset 2             ->      for tx in 8: V[tx, 0] = A[tx]
//!     V[0] = A[tx]                               for tx in 8: B[tx] = V[tx, 0]
//!     barrier
//!     B[tx] = V[0]
//! ```

use std::sync::Arc;

use crate::buffer::{AxisSeparators, Buffer};
use crate::expr::Expr;
use crate::stmt::For;

/// Returns the view of the memory of all threads that stands for a view of the memory of one, `base`, which is allocated inside of loops over
/// `threads`. `None` where a size is no constant, the type is another one, or the view leaves the memory: then it would be that of
/// another thread.
pub(super) fn of_all_threads(base: &Buffer, threads: &[Arc<For>], view: &Buffer) -> Option<Buffer> {
    if view.dtype != base.dtype || view.scope.is_texture() || view.axis_separators.rank() != view.rank() {
        return None;
    }
    let sizes = |buffer: &Buffer| -> Option<Vec<i64>> {
        buffer.const_shape()?.into_iter().map(|extent| i64::try_from(extent).ok()).collect()
    };
    let (memory, shape) = (sizes(base)?, sizes(view)?);
    let constant = |expr: &Expr| expr.as_const_int().and_then(|value| i64::try_from(value).ok());
    let extents: Vec<i64> = threads.iter().map(|inner| constant(&inner.extent)).collect::<Option<_>>()?;
    let size = product(&memory)?;
    let strides = match &view.strides {
        Some(strides) => strides.iter().map(constant).collect::<Option<Vec<i64>>>()?,
        None => row_major(&shape, 1)?,
    };
    let offset = constant(&view.elem_offset)?;
    let is_forwards = offset >= 0 && strides.len() == shape.len() && strides.iter().all(|stride| *stride >= 0);
    if !is_forwards || shape.iter().chain(&extents).chain(&memory).any(|extent| *extent < 1) {
        return None;
    }
    let mut last = offset;
    for (extent, stride) in shape.iter().zip(&strides) {
        last = last.checked_add((extent - 1).checked_mul(*stride)?)?;
    }
    if last >= size {
        return None;
    }
    let is_whole = view.strides.is_none() && offset == 0 && product(&shape)? == size;
    let of_threads = row_major(&extents, size)?;
    let rank = view.rank() + threads.len();
    let separators = view.axis_separators.positions().iter().map(|position| position + threads.len()).collect();
    let axis_separators = AxisSeparators::new(separators, rank).ok()?;
    Some(view.with(|info| {
        info.shape.splice(0..0, threads.iter().map(|inner| inner.extent.clone()));
        info.axis_separators = axis_separators;
        if !is_whole {
            let own = info.strides.take().unwrap_or_else(|| strides.iter().copied().map(Expr::int).collect());
            info.strides = Some(of_threads.into_iter().map(Expr::int).chain(own).collect());
        }
    }))
}

/// The number of elements.
fn product(shape: &[i64]) -> Option<i64> {
    shape.iter().try_fold(1_i64, |product, extent| product.checked_mul(*extent))
}

/// The strides of a compact array of parts of `size` elements.
fn row_major(shape: &[i64], size: i64) -> Option<Vec<i64>> {
    let mut strides = vec![0; shape.len()];
    let mut stride = size;
    for (axis, extent) in shape.iter().enumerate().rev() {
        strides[axis] = stride;
        stride = stride.checked_mul(*extent)?;
    }
    Some(strides)
}
