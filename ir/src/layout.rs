//! XLA's shapes and tiled layouts.
//!
//! `f32[3,5]{1,0:T(2,2)}` is an [`ArrayShape`]: an element type, extents, and a [`Layout`]. The layout puts the
//! dimensions into their physical order (`minor_to_major`, the most minor first) and then applies its tiles one after
//! the other. [`tiling`] computes the position of each element; `tilewright-script` reads and prints the text.
//!
//! # Rules
//! XLA's page on tiled layouts, the comments in its sources and its size computation disagree in places. Tilewright uses
//! these rules:
//!
//! - A tile applies to a suffix of the *current* physical dimensions. For the first tile these are the dimensions of the
//!   array; for the second tile they are the tile counts and in-tile dimensions that the first tile produced; and so on.
//! - Every tile, not only the first, pads an extent that is not a multiple of the tile size.
//! - If a tile has more dimensions than there are, extents of 1 are added in front.
//! - `*` in a tile combines its dimension with the next more minor one of the same tile, so it cannot be the last.
//! - Tail alignment rounds the final number of elements up, with or without tiles.
//! - Elements occupy whole bytes, or the stated number of bits, packed with the first element in the low bits.
//! - Memory space, split configurations and the metadata prefix do not move elements.

mod element;
mod step;
pub mod symbolic;
pub mod tiling;
mod validate;

pub use element::ElementType;
pub use symbolic::SymbolicTiling;
pub use tiling::Tiling;

/// The largest number of dimensions of an array or a tile.
pub const MAX_RANK: usize = 256;
/// The largest number of tiles of a layout.
pub const MAX_TILES: usize = 64;

/// A shape in XLA's sense: an array, a tuple of shapes, or a value without elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum XlaShape {
    /// `f32[3,5]{1,0}`.
    Array(ArrayShape),
    /// `(f32[3], s8[2,7])`.
    Tuple(Vec<XlaShape>),
    /// `token[]`, which orders side effects.
    Token,
    /// `opaque[]`.
    Opaque,
}

/// An array shape: element type, extents and layout. [`ArrayShape::new`] ensures that the parts fit together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArrayShape {
    element_type: ElementType,
    dimensions: Vec<Dimension>,
    layout: Option<Layout>,
}

/// The extent of a dimension, in elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dimension {
    /// A constant extent.
    Static(u64),
    /// `<=n`: an extent known at run time, at most `n`. Memory is laid out for the bound.
    Bounded(u64),
    /// `?`: an extent known at run time, without a bound.
    Unbounded,
}

impl Dimension {
    /// Returns the extent that memory is laid out for. `None` if there is no bound.
    pub fn bound(self) -> Option<u64> {
        match self {
            Self::Static(extent) | Self::Bounded(extent) => Some(extent),
            Self::Unbounded => None,
        }
    }
}

/// The layout of an array in memory. Plain data; [`ArrayShape::new`] checks whether it fits an array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The logical dimensions, from the most minor to the most major one.
    pub minor_to_major: Vec<usize>,
    /// `D(..)`: the storage of each dimension. Empty if all dimensions are dense.
    pub dim_attributes: Vec<DimAttribute>,
    /// `T(..)(..)`: the tiles, in the order of their application.
    pub tiles: Vec<Tile>,
    /// `L(n)`: the number of elements is rounded up to a multiple of `n`, which is at least 1.
    pub tail_alignment: u64,
    /// `#(u32)`: the type of the indices of a sparse array.
    pub index_type: Option<ElementType>,
    /// `*(u32)`: the type of the pointers of a sparse array.
    pub pointer_type: Option<ElementType>,
    /// `E(n)`: the distance between elements, in bits. 0 stands for the whole bytes of the element type.
    pub element_bits: u64,
    /// `S(n)`: the number of the memory space; 0 is the default.
    pub memory_space: u64,
    /// `SC(..)`: the indices at which dimensions are split between memories.
    pub split_configs: Vec<SplitConfig>,
    /// `P(..)`: the arrays that store a sparse array.
    pub physical_shape: Option<Box<XlaShape>>,
    /// `M(n)`: the number of bytes before the elements that hold the dynamic extents.
    pub metadata_prefix_bytes: u64,
}

/// A tile, from its most major to its most minor dimension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tile(pub Vec<TileDim>);

/// One dimension of a tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TileDim {
    /// A number of elements, at least 1.
    Size(u64),
    /// `*`: the dimension is combined with the next more minor one.
    Combine,
}

/// The storage of one dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DimAttribute {
    /// The kind of storage.
    pub level: DimLevel,
    /// Whether each index is stored at most once. Printed as `+` if not.
    pub unique: bool,
    /// Whether indices are stored in order. Printed as `~` if not.
    pub ordered: bool,
}

/// The kind of storage of a dimension (`DimLevelType` in `xla_data.proto`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DimLevel {
    /// `D`: every index is stored.
    Dense,
    /// `C`: the stored indices, and their positions per parent.
    Compressed,
    /// `S`: one index for each entry of the parent.
    Singleton,
    /// `H`: compressed, with gaps between parents.
    LooseCompressed,
}

/// The split of one dimension between memories: `(1:1024,2048)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SplitConfig {
    /// The logical dimension.
    pub dimension: usize,
    /// The first index of each further piece, in ascending order.
    pub indices: Vec<u64>,
}

/// A part of an array shape, to locate an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LayoutPart {
    /// The whole shape.
    Whole,
    /// The extents.
    Dimensions,
    /// The dimension numbers, or the one at this position.
    MinorToMajor(Option<usize>),
    /// The dimension attributes, or the one at this position.
    DimAttributes(Option<usize>),
    /// The tile with this number, or one dimension of it.
    Tile(usize, Option<usize>),
    /// The tail alignment.
    TailAlignment,
    /// The index type.
    IndexType,
    /// The pointer type.
    PointerType,
    /// The element bits.
    ElementBits,
    /// The split configuration with this number, or one index of it.
    SplitConfig(usize, Option<usize>),
    /// The physical shape.
    PhysicalShape,
}

/// The error for parts that are not an array shape, and for an array shape without a tiling.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct LayoutError {
    /// The part that is wrong.
    pub part: LayoutPart,
    /// A stable short name in kebab case.
    pub code: &'static str,
    /// One sentence without a full stop.
    pub message: String,
    /// How to fix the problem.
    pub help: &'static str,
}

impl Layout {
    /// Creates a layout with the given order of dimensions, without tiles and other properties.
    pub fn new(minor_to_major: Vec<usize>) -> Self {
        Self {
            minor_to_major,
            dim_attributes: Vec::new(),
            tiles: Vec::new(),
            tail_alignment: 1,
            index_type: None,
            pointer_type: None,
            element_bits: 0,
            memory_space: 0,
            split_configs: Vec::new(),
            physical_shape: None,
            metadata_prefix_bytes: 0,
        }
    }

    /// Creates XLA's default layout, in which the last dimension is the most minor one.
    pub fn row_major(rank: usize) -> Self {
        Self::new((0..rank).rev().collect())
    }

    /// Returns the layout with these tiles.
    #[must_use]
    pub fn with_tiles(self, tiles: Vec<Tile>) -> Self {
        Self { tiles, ..self }
    }

    /// Returns whether a dimension is not stored densely.
    pub fn is_sparse(&self) -> bool {
        self.dim_attributes.iter().any(|attribute| attribute.level != DimLevel::Dense)
    }
}

impl Tile {
    /// Creates a tile from the vector form of XLA's interface, where -1 stands for `*`.
    ///
    /// # Errors
    /// A size is 0, or negative and not -1.
    pub fn from_vector(sizes: &[i64]) -> Result<Self, LayoutError> {
        let dim = |(position, &size): (usize, &i64)| match u64::try_from(size) {
            Ok(size) if size > 0 => Ok(TileDim::Size(size)),
            _ if size == -1 => Ok(TileDim::Combine),
            _ => Err(validate::bad_tile_size(0, position, &size.to_string())),
        };
        Ok(Self(sizes.iter().enumerate().map(dim).collect::<Result<_, _>>()?))
    }
}

impl ArrayShape {
    /// Creates an array shape. `dimensions` are in logical order, from major to minor. Without a layout the array has
    /// XLA's default layout.
    ///
    /// # Errors
    /// The parts do not fit together, or the padded size exceeds 2^63 - 1 elements or bytes.
    pub fn new(
        element_type: ElementType,
        dimensions: Vec<Dimension>,
        layout: Option<Layout>,
    ) -> Result<Self, LayoutError> {
        let mut shape = Self { element_type, dimensions, layout };
        shape.validate()?;
        // Normal form: XLA neither prints nor compares attributes that are all dense, nor the empty layout of a scalar.
        if let Some(layout) = shape.layout.as_mut().filter(|layout| !layout.is_sparse()) {
            layout.dim_attributes.clear();
        }
        if shape.dimensions.is_empty() && shape.layout == Some(Layout::row_major(0)) {
            shape.layout = None;
        }
        if !shape.is_sparse() {
            // The sizes must fit for the smallest array: a dimension without a bound has at least one index.
            shape.with_unbounded(Dimension::Static(1)).tiling()?;
        }
        Ok(shape)
    }

    /// Returns the type of the elements.
    pub fn element_type(&self) -> ElementType {
        self.element_type
    }

    /// Returns the extents in logical order, from major to minor.
    pub fn dimensions(&self) -> &[Dimension] {
        &self.dimensions
    }

    /// Returns the stated layout.
    pub fn layout(&self) -> Option<&Layout> {
        self.layout.as_ref()
    }

    /// Returns the stated layout, or XLA's default.
    pub fn layout_or_default(&self) -> Layout {
        self.layout.clone().unwrap_or_else(|| Layout::row_major(self.dimensions.len()))
    }

    /// Returns whether a dimension is not stored densely.
    pub fn is_sparse(&self) -> bool {
        self.layout.as_ref().is_some_and(Layout::is_sparse)
    }

    /// Returns the array with every dimension without a bound replaced.
    fn with_unbounded(&self, stand_in: Dimension) -> Self {
        let known = |dimension: &Dimension| if dimension.bound().is_none() { stand_in } else { *dimension };
        Self { dimensions: self.dimensions.iter().map(known).collect(), ..self.clone() }
    }

    /// Returns the position of each element as an expression. A dimension without a bound, number `k`, has the extent
    /// `d<k>`, an `int64` of at least 1. Without such a dimension this is [`Tiling::to_symbolic`].
    ///
    /// # Errors
    /// The array is sparse.
    pub fn symbolic_tiling(&self) -> Result<SymbolicTiling, LayoutError> {
        SymbolicTiling::for_array(self)
    }

    /// Returns the position of each element.
    ///
    /// # Errors
    /// The array is sparse or has a dimension without a bound, or the padded size exceeds 2^63 - 1 elements or bytes.
    pub fn tiling(&self) -> Result<Tiling, LayoutError> {
        Tiling::new(self)
    }
}

#[cfg(test)]
mod tests;
