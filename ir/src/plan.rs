//! Memory plans: a graph of tensors with the steps that write and read them, and where a planner puts each. Plain data;
//! the judge turns a plan into obligations and believes none of it.
//!
//! ```text
//! step 0  conv   reads x, w     writes a        a and c may share memory: a is read last in step 1,
//! step 1  relu   reads a        writes b        c is written first in step 2
//! step 2  conv   reads b, w     writes c
//! ```
//!
//! Tensors live in two kinds of memory: `global` ones are a range of bytes of a pool, those in a texture scope a rectangle
//! of texels of a texture pool (texture RFC, "Addendum: Storage scope based memory planning").

use crate::buffer::{Buffer, Scope};
use crate::diag::Diagnostic;
use crate::dtype::DataType;
use crate::expr::Expr;

/// Tensors and the steps that use them, in the order in which they run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Graph {
    /// The tensors; [`GraphStep`] and [`GraphTensor::view_of`] refer to them by their place.
    pub tensors: Vec<GraphTensor>,
    /// The steps, in order.
    pub steps: Vec<GraphStep>,
}

/// A tensor of a graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphTensor {
    /// Its name, unique in the graph.
    pub name: String,
    /// Extents in elements, one an axis.
    pub shape: Vec<u64>,
    /// Type of an element.
    pub dtype: DataType,
    /// `global` or a texture scope.
    pub scope: Scope,
    /// Where the columns of a texture begin, if its scope's convention does not say it (RFC 39's axis separators).
    pub axis_separators: Vec<usize>,
    /// The tensor whose memory this one shows in another shape, such as a reshape: it has no memory of its own.
    pub view_of: Option<usize>,
    /// What it is to the caller.
    pub role: TensorRole,
}

/// What a tensor is to the caller of the graph.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TensorRole {
    /// Made and used inside.
    #[default]
    Intermediate,
    /// Given by the caller before the first step: lives from the start to the end.
    Input,
    /// Taken by the caller after the last step: lives to the end.
    Output,
}

/// A step of a graph: one kernel or several.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GraphStep {
    /// Its name.
    pub name: String,
    /// The tensors that it reads, by place.
    pub reads: Vec<usize>,
    /// The tensors that it writes, by place. What a step writes may not lie where something lies that it reads.
    pub writes: Vec<usize>,
}

/// How much room a tensor or a pool takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Room {
    /// Bytes of linear memory.
    Bytes(u64),
    /// Texels of a texture of four channels.
    Texels {
        /// Columns.
        width: u64,
        /// Rows.
        height: u64,
    },
}

/// Where a planner puts everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryPlan {
    /// The pools; a `storage_id` is a place in this list.
    pub pools: Vec<Pool>,
    /// One for each tensor of the graph, views included: a view has the place of its root.
    pub places: Vec<PoolPlace>,
}

/// Memory that several tensors share, one after the other or side by side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pool {
    /// `global` or a texture scope.
    pub scope: Scope,
    /// Type of an element; for a texture, of a channel. What a pool of bytes says here binds nobody.
    pub dtype: DataType,
    /// How large it is.
    pub room: Room,
}

/// Where a tensor lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolPlace {
    /// Which pool.
    pub pool: usize,
    /// Where in it, and how much of it.
    pub region: Region,
}

/// A part of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Region {
    /// A range of bytes.
    Bytes {
        /// The first.
        offset: u64,
        /// How many.
        size: u64,
    },
    /// A rectangle of texels.
    Texels {
        /// The first column.
        x: u64,
        /// The first row.
        y: u64,
        /// Columns.
        width: u64,
        /// Rows.
        height: u64,
    },
}

impl GraphTensor {
    /// The buffer that a kernel sees: compact, of this shape, in this scope.
    ///
    /// # Errors
    /// Separators that do not fit the shape, an extent above 2^63 - 1.
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

    /// The room that it takes: bytes, or the rows and columns of its texture.
    ///
    /// # Errors
    /// Sizes above 2^63 - 1, a texture that is none ([`Buffer::texture_separators`]), a scope with no memory of its own.
    pub fn room(&self) -> Result<Room, Diagnostic> {
        let too_large = || Diagnostic::error("graph-tensor", None, format!("`{}` is larger than 2^63 - 1", self.name));
        let product = |extents: &[u64]| {
            let extents: Vec<i128> = extents.iter().copied().map(i128::from).collect();
            crate::buffer::checked_size(&extents).map_err(|_| too_large())
        };
        let buffer = self.buffer()?;
        if self.scope.is_texture() {
            let separators = buffer.texture_separators()?;
            let groups = separators.groups();
            let (rows, columns) = (groups[0].clone(), groups[1].clone());
            return Ok(Room::Texels { width: product(&self.shape[columns])?, height: product(&self.shape[rows])? });
        }
        if self.scope != Scope::Global {
            let message = format!("`{}` is in scope `{}`, which no pool is in", self.name, self.scope);
            return Err(Diagnostic::error("graph-scope", None, message)
                .with_help("tensors of a graph are in scope `global` or in a texture scope"));
        }
        product(&self.shape)?.checked_mul(self.dtype.bytes()).map(Room::Bytes).ok_or_else(too_large)
    }
}

impl Region {
    /// Whether two regions of one pool share a byte or a texel; regions of different kinds share nothing.
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
            _ => false,
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
    fn room_is_bytes_or_rows_and_columns() {
        assert_eq!(tensor(Scope::Global, &[3, 5]).room(), Ok(Room::Bytes(30)));
        assert_eq!(tensor(Scope::Texture, &[2, 3, 5, 7, 4]).room(), Ok(Room::Texels { width: 7, height: 30 }));
        assert_eq!(tensor(Scope::TextureWeight, &[2, 3, 5, 7, 4]).room(), Ok(Room::Texels { width: 105, height: 2 }));
        assert!(tensor(Scope::Local, &[3]).room().is_err());
        assert!(tensor(Scope::Global, &[1 << 62, 2]).room().is_err());
        assert!(tensor(Scope::Texture, &[3, 5]).room().is_err());
    }

    #[test]
    fn rectangles_that_touch_share_nothing() {
        let at = |x, y, width, height| Region::Texels { x, y, width, height };
        assert!(!at(0, 0, 3, 5).overlaps(at(3, 0, 2, 5)));
        assert!(at(0, 0, 3, 5).overlaps(at(2, 4, 2, 5)));
        assert!(!at(0, 0, 3, 5).overlaps(at(2, 5, 2, 5)));
        assert!(!at(0, 0, 0, 5).overlaps(at(0, 0, 3, 5)));
        assert!(Region::Bytes { offset: 4, size: 4 }.overlaps(Region::Bytes { offset: 7, size: 1 }));
        assert!(!Region::Bytes { offset: 4, size: 4 }.overlaps(Region::Bytes { offset: 8, size: 1 }));
    }
}
