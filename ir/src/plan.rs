//! Memory plans: the tensors of a graph, the steps that read and write them, and the location that a planner assigns to
//! each tensor. Plain data: the judge turns a plan into proof obligations.
//!
//! ```text
//! step 0  conv   reads x, w     writes a        a and c may share memory: the last read of a is in
//! step 1  relu   reads a        writes b        step 1, and the first write of c is in step 2
//! step 2  conv   reads b, w     writes c
//! ```
//!
//! There are two kinds of memory. A tensor in scope `global` occupies a range of bytes of a pool; a tensor in a texture
//! scope occupies a rectangle of texels of a texture pool (texture RFC, "Addendum: Storage scope based memory planning").

use crate::buffer::{Buffer, Scope};
use crate::diag::Diagnostic;
use crate::dtype::DataType;
use crate::expr::Expr;
use crate::texture::TextureLimits;

/// Tensors, and the steps that use them in execution order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Graph {
    /// The tensors. [`GraphStep`] and [`GraphTensor::view_of`] refer to them by their index in this list.
    pub tensors: Vec<GraphTensor>,
    /// The steps, in execution order.
    pub steps: Vec<GraphStep>,
}

/// A tensor of a graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphTensor {
    /// The name, unique in the graph.
    pub name: String,
    /// The extents in elements, one per axis.
    pub shape: Vec<u64>,
    /// The element type.
    pub dtype: DataType,
    /// `global` or a texture scope.
    pub scope: Scope,
    /// The axis separators of RFC 39 that divide a texture into rows, columns and channels. Empty if the convention
    /// of the scope applies.
    pub axis_separators: Vec<usize>,
    /// The index of the tensor whose memory this one shows in another shape, such as the operand of a reshape. A view
    /// has no memory of its own.
    pub view_of: Option<usize>,
    /// The use of the tensor by the caller of the graph.
    pub role: TensorRole,
}

/// The use of a tensor by the caller of the graph.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TensorRole {
    /// Produced and consumed by steps of the graph.
    #[default]
    Intermediate,
    /// Written by the caller before the first step. Its memory is reserved from the start of the graph to its end.
    Input,
    /// Written by the caller once, and the same in every run: a weight. Its memory is reserved like that of an input.
    Constant,
    /// Read by the caller after the last step. Its memory is reserved to the end of the graph.
    Output,
}

impl TensorRole {
    /// Returns whether the caller supplies the contents, so that no step may write the tensor.
    pub fn is_given(self) -> bool {
        match self {
            Self::Input | Self::Constant => true,
            Self::Intermediate | Self::Output => false,
        }
    }
}

/// A step of a graph: one kernel or several that run together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GraphStep {
    /// The name.
    pub name: String,
    /// The indices of the tensors that the step reads.
    pub reads: Vec<usize>,
    /// The indices of the tensors that the step writes. Their memory must not overlap that of a tensor the step
    /// reads, unless the step works [in place](InPlace).
    pub writes: Vec<usize>,
}

/// A step that may write a result where an operand lies: it reads the operand for the last time, and each element before it writes that
/// element. A claim of a planner, which the judge decides about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InPlace {
    /// The index of the step.
    pub step: usize,
    /// The tensor that owns the memory of the operand.
    pub operand: usize,
    /// The tensor that the step writes.
    pub result: usize,
}

/// The size of a tensor or a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Room {
    /// A number of bytes of linear memory.
    Bytes(u64),
    /// The extents of a texture with four channels.
    Texels {
        /// Texels per row.
        width: u64,
        /// The number of rows.
        height: u64,
    },
}

/// The pools of a graph, and the location of each tensor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryPlan {
    /// The pools. A `storage_id` is an index into this list.
    pub pools: Vec<Pool>,
    /// The location of each tensor of the graph. A view has the location of the tensor it shows.
    pub places: Vec<PoolPlace>,
}

/// Memory that several tensors share, one after the other or side by side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pool {
    /// `global` or a texture scope.
    pub scope: Scope,
    /// The element type; for a texture, the channel type. Informative for a pool of bytes, whose tensors may have any
    /// type.
    pub dtype: DataType,
    /// The size of the pool.
    pub room: Room,
}

/// What a device demands of the extents of texture pools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolRules {
    /// The largest texture.
    pub limits: TextureLimits,
    /// The width of a pool is a multiple of this number of texels; 1 if any width will do. An image that is made from a buffer needs
    /// it (`CL_DEVICE_IMAGE_PITCH_ALIGNMENT` of OpenCL 2.0).
    pub pitch: u64,
}

impl PoolRules {
    /// Rules with these limits, under which pools may have any width.
    pub fn any_width(limits: TextureLimits) -> Self {
        Self { limits, pitch: 1 }
    }

    /// Returns the width of the narrowest pool that is at least so wide.
    pub fn pool_width(self, width: u64) -> u64 {
        width.checked_next_multiple_of(self.pitch.max(1)).unwrap_or(u64::MAX)
    }

    /// Returns the smallest room of a pool that holds this room.
    pub fn pool_room(self, room: Room) -> Room {
        match room {
            Room::Texels { width, height } => Room::Texels { width: self.pool_width(width), height },
            Room::Bytes(bytes) => Room::Bytes(bytes),
        }
    }
}

/// The location of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolPlace {
    /// The index of the pool.
    pub pool: usize,
    /// The part of the pool that the tensor occupies.
    pub region: Region,
}

/// A part of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Region {
    /// A range of bytes.
    Bytes {
        /// The offset of the first byte.
        offset: u64,
        /// The number of bytes.
        size: u64,
    },
    /// A rectangle of texels.
    Texels {
        /// The first column.
        x: u64,
        /// The first row.
        y: u64,
        /// The number of columns.
        width: u64,
        /// The number of rows.
        height: u64,
    },
}

impl GraphTensor {
    /// Returns the buffer that a kernel sees: compact, with this shape, element type and scope.
    ///
    /// # Errors
    /// The separators do not fit the shape, or an extent exceeds 2^63 - 1.
    pub fn buffer(&self) -> Result<Buffer, Diagnostic> {
        let wrong = |message: String| Diagnostic::error("graph-tensor", None, message);
        let extent = |&extent: &u64| {
            i64::try_from(extent).map(Expr::int).map_err(|_| wrong(format!("`{}` has the extent {extent}", self.name)))
        };
        let shape = self.shape.iter().map(extent).collect::<Result<Vec<_>, _>>()?;
        let separators = crate::buffer::AxisSeparators::new(self.axis_separators.clone(), shape.len())
            .map_err(|error| wrong(format!("`{}`: {error}", self.name)))?;
        Ok(Buffer::compact(&self.name, self.dtype, shape).with(|info| {
            info.scope = self.scope;
            info.axis_separators = separators;
        }))
    }

    /// Returns the size of the tensor: bytes, or the extents of its texture.
    ///
    /// # Errors
    /// The size exceeds 2^63 - 1, the tensor does not fit its texture scope ([`Buffer::texture_separators`]), or the
    /// scope is neither `global` nor a texture scope.
    pub fn room(&self) -> Result<Room, Diagnostic> {
        let too_large = || Diagnostic::error("graph-tensor", None, format!("`{}` is larger than 2^63 - 1", self.name));
        let product = |extents: &[u64]| {
            let extents: Vec<i128> = extents.iter().copied().map(i128::from).collect();
            crate::buffer::checked_size(&extents).map_err(|_| too_large())
        };
        let buffer = self.buffer()?;
        if self.scope.is_texture() {
            let separators = buffer.texture_separators()?;
            if buffer.channels() != Some(crate::CHANNELS) {
                let message = format!(
                    "`{}` has {} channels, a texture of a graph has 4",
                    self.name,
                    buffer.shape[buffer.rank() - 1]
                );
                return Err(Diagnostic::error("texture-channels", None, message)
                    .with_help("pack it first, so that the last axis has 4 elements"));
            }
            let groups = separators.groups();
            let (rows, columns) = (groups[0].clone(), groups[1].clone());
            return Ok(Room::Texels { width: product(&self.shape[columns])?, height: product(&self.shape[rows])? });
        }
        if self.scope != Scope::Global {
            let message = format!("`{}` is in scope `{}`, which has no memory pool", self.name, self.scope);
            return Err(Diagnostic::error("graph-scope", None, message)
                .with_help("tensors of a graph are in scope `global` or in a texture scope"));
        }
        product(&self.shape)?.checked_mul(self.dtype.bytes()).map(Room::Bytes).ok_or_else(too_large)
    }
}

impl Region {
    /// Returns whether two regions of one pool share a byte or a texel. An empty region overlaps nothing, and a range
    /// of bytes never overlaps a rectangle of texels.
    pub fn overlaps(self, other: Self) -> bool {
        let meet = |start: u64, size: u64, other_start: u64, other_size: u64| {
            let end = u128::from(start) + u128::from(size);
            let other_end = u128::from(other_start) + u128::from(other_size);
            u128::from(start) < other_end && u128::from(other_start) < end && size > 0 && other_size > 0
        };
        match (self, other) {
            (Self::Bytes { offset, size }, Self::Bytes { offset: at, size: length }) => meet(offset, size, at, length),
            (Self::Texels { x, y, width, height }, Self::Texels { x: p, y: q, width: w, height: h }) => {
                meet(x, width, p, w) && meet(y, height, q, h)
            }
            (Self::Bytes { .. }, Self::Texels { .. }) | (Self::Texels { .. }, Self::Bytes { .. }) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::ScalarType;

    fn tensor(scope: Scope, shape: &[u64]) -> GraphTensor {
        GraphTensor {
            name: "t".into(),
            shape: shape.to_vec(),
            dtype: ScalarType::Float16.into(),
            scope,
            axis_separators: Vec::new(),
            view_of: None,
            role: TensorRole::Intermediate,
        }
    }

    #[test]
    fn size_is_bytes_or_texels_by_scope() {
        assert_eq!(tensor(Scope::Global, &[3, 5]).room(), Ok(Room::Bytes(30)));
        assert_eq!(tensor(Scope::Texture, &[2, 3, 5, 7, 4]).room(), Ok(Room::Texels { width: 7, height: 30 }));
        assert_eq!(tensor(Scope::TextureWeight, &[2, 3, 5, 7, 4]).room(), Ok(Room::Texels { width: 105, height: 2 }));
        assert!(tensor(Scope::Local, &[3]).room().is_err());
        assert!(tensor(Scope::Global, &[1 << 62, 2]).room().is_err());
        assert!(tensor(Scope::Texture, &[3, 5]).room().is_err());
    }

    #[test]
    fn adjacent_regions_do_not_overlap() {
        let at = |x, y, width, height| Region::Texels { x, y, width, height };
        assert!(!at(0, 0, 3, 5).overlaps(at(3, 0, 2, 5)));
        assert!(at(0, 0, 3, 5).overlaps(at(2, 4, 2, 5)));
        assert!(!at(0, 0, 3, 5).overlaps(at(2, 5, 2, 5)));
        assert!(!at(0, 0, 0, 5).overlaps(at(0, 0, 3, 5)));
        assert!(Region::Bytes { offset: 4, size: 4 }.overlaps(Region::Bytes { offset: 7, size: 1 }));
        assert!(!Region::Bytes { offset: 4, size: 4 }.overlaps(Region::Bytes { offset: 8, size: 1 }));
    }
}
