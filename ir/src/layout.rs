//! XLA's shapes and tiled layouts.
//!
//! `f32[3,5]{1,0:T(2,2)}` is an [`ArrayShape`]: an element type, extents, and a [`Layout`]. The layout puts the
//! dimensions into their physical order (`minor_to_major`, the most minor first) and then applies its tiles, one after
//! the other. [`tiling`] computes where each element lies; `tilewright-script` reads and prints the text.
//!
//! # Rules
//! Where the sources disagree (XLA's page on tiled layouts, its comments, its size computation), this is what holds:
//!
//! - A tile applies to a suffix of the *current* physical dimensions. For the first tile those are the array's; for the
//!   second they are the tile counts and in-tile dimensions that the first one made; and so on.
//! - Every tile pads where an extent is not a multiple of the tile size, later tiles too.
//! - A tile with more dimensions than there are sees extents of 1 in front.
//! - `*` in a tile folds its dimension into the next more minor one of the same tile, so there has to be one.
//! - Tail alignment rounds the final number of elements up, with or without tiles.
//! - Elements take whole bytes, or the stated number of bits, packed with the first element in the low bits.
//! - Memory space, split configurations and the metadata prefix move no element.

mod element;
mod step;
pub mod symbolic;
pub mod tiling;
mod validate;

pub use element::ElementType;
pub use symbolic::SymbolicTiling;
pub use tiling::Tiling;

/// Most dimensions of an array, and of one tile.
pub const MAX_RANK: usize = 256;
/// Most tiles of a layout.
pub const MAX_TILES: usize = 64;

/// A shape as XLA writes it.
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

/// An array: element type, extents, layout. The parts fit together: [`ArrayShape::new`] sees to that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArrayShape {
    element_type: ElementType,
    dimensions: Vec<Dimension>,
    layout: Option<Layout>,
}

/// The extent of a dimension, in elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dimension {
    /// Always this.
    Static(u64),
    /// `<=n`: known when the program runs, at most this. Memory is laid out for the bound.
    Bounded(u64),
    /// `?`: known when the program runs, without a bound.
    Unbounded,
}

impl Dimension {
    /// The extent that memory is laid out for; none if there is no bound.
    pub fn bound(self) -> Option<u64> {
        match self {
            Self::Static(extent) | Self::Bounded(extent) => Some(extent),
            Self::Unbounded => None,
        }
    }
}

/// How an array lies in memory. Plain data; [`ArrayShape::new`] says whether it fits an array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Logical dimensions from the most minor one to the most major one.
    pub minor_to_major: Vec<usize>,
    /// `D(..)`: how each dimension is stored; empty if all are dense.
    pub dim_attributes: Vec<DimAttribute>,
    /// `T(..)(..)`: tiles, in the order in which they are applied.
    pub tiles: Vec<Tile>,
    /// `L(n)`: the number of elements is rounded up to a multiple of this, which is at least 1.
    pub tail_alignment: u64,
    /// `#(u32)`: the type of the indices of a sparse array.
    pub index_type: Option<ElementType>,
    /// `*(u32)`: the type of the pointers of a sparse array.
    pub pointer_type: Option<ElementType>,
    /// `E(n)`: bits from one element to the next; 0 means the element type's whole bytes.
    pub element_bits: u64,
    /// `S(n)`: the memory space; 0 is the default one.
    pub memory_space: u64,
    /// `SC(..)`: where dimensions are split between memories.
    pub split_configs: Vec<SplitConfig>,
    /// `P(..)`: how a sparse array is stored.
    pub physical_shape: Option<Box<XlaShape>>,
    /// `M(n)`: bytes before the elements that hold the dynamic extents.
    pub metadata_prefix_bytes: u64,
}

/// One tile, from its most major dimension to its most minor one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tile(pub Vec<TileDim>);

/// One dimension of a tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TileDim {
    /// That many elements, at least 1.
    Size(u64),
    /// `*`: the dimension is folded into the next more minor one.
    Combine,
}

/// How one dimension is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DimAttribute {
    /// The kind of storage.
    pub level: DimLevel,
    /// Whether no index appears twice; `+` if not.
    pub unique: bool,
    /// Whether indices are in order; `~` if not.
    pub ordered: bool,
}

/// The kind of storage of a dimension (`DimLevelType` in `xla_data.proto`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DimLevel {
    /// `D`: every index.
    Dense,
    /// `C`: positions and indices.
    Compressed,
    /// `S`: one index for each of the parent's.
    Singleton,
    /// `H`: compressed with gaps.
    LooseCompressed,
}

/// Where one dimension is split: `(1:1024,2048)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SplitConfig {
    /// The logical dimension.
    pub dimension: usize,
    /// Where the pieces begin, ascending.
    pub indices: Vec<u64>,
}

/// Which part of an array shape is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// All of it.
    Whole,
    /// The extents.
    Dimensions,
    /// The dimension numbers, or one of them.
    MinorToMajor(Option<usize>),
    /// The dimension attributes, or one of them.
    DimAttributes(Option<usize>),
    /// A tile, or one dimension of it.
    Tile(usize, Option<usize>),
    /// The tail alignment.
    TailAlignment,
    /// The index type.
    IndexType,
    /// The pointer type.
    PointerType,
    /// The element bits.
    ElementBits,
    /// A split configuration, or one index of it.
    SplitConfig(usize, Option<usize>),
    /// The physical shape.
    PhysicalShape,
}

/// Parts that make no array shape, or an array shape that has no tiling.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct LayoutError {
    /// Which part is wrong.
    pub place: Place,
    /// Stable short name in kebab case.
    pub code: &'static str,
    /// One sentence without a full stop.
    pub message: String,
    /// What to do about it.
    pub help: &'static str,
}

impl Layout {
    /// The layout without tiles and properties, the dimensions ordered as stated.
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

    /// XLA's default: the last dimension is the most minor one.
    pub fn row_major(rank: usize) -> Self {
        Self::new((0..rank).rev().collect())
    }

    /// The same with these tiles.
    #[must_use]
    pub fn with_tiles(self, tiles: Vec<Tile>) -> Self {
        Self { tiles, ..self }
    }

    /// Whether some dimension is not stored densely.
    pub fn is_sparse(&self) -> bool {
        self.dim_attributes.iter().any(|attribute| attribute.level != DimLevel::Dense)
    }
}

impl Tile {
    /// The tile in the vector form of XLA's interface, where -1 stands for `*`.
    ///
    /// # Errors
    /// A size of 0 or below other than -1.
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
    /// An array of these extents, from major to minor in the logical order; without a layout it has XLA's default.
    ///
    /// # Errors
    /// Parts that do not fit together, and a padded size above 2^63 - 1 elements or bytes.
    pub fn new(
        element_type: ElementType,
        dimensions: Vec<Dimension>,
        layout: Option<Layout>,
    ) -> Result<Self, LayoutError> {
        let mut shape = Self { element_type, dimensions, layout };
        shape.validate()?;
        // XLA neither prints nor compares attributes that are all dense, nor a scalar's empty layout.
        if let Some(layout) = shape.layout.as_mut().filter(|layout| !layout.is_sparse()) {
            layout.dim_attributes.clear();
        }
        if shape.dimensions.is_empty() && shape.layout == Some(Layout::row_major(0)) {
            shape.layout = None;
        }
        if !shape.is_sparse() {
            // A dimension without a bound has at least one index.
            shape.with_unbounded(Dimension::Static(1)).tiling()?;
        }
        Ok(shape)
    }

    /// The type of its elements.
    pub fn element_type(&self) -> ElementType {
        self.element_type
    }

    /// The extents, from major to minor in the logical order.
    pub fn dimensions(&self) -> &[Dimension] {
        &self.dimensions
    }

    /// The stated layout.
    pub fn layout(&self) -> Option<&Layout> {
        self.layout.as_ref()
    }

    /// The stated layout, or XLA's default.
    pub fn layout_or_default(&self) -> Layout {
        self.layout.clone().unwrap_or_else(|| Layout::row_major(self.dimensions.len()))
    }

    /// Whether some dimension is not stored densely.
    pub fn is_sparse(&self) -> bool {
        self.layout.as_ref().is_some_and(Layout::is_sparse)
    }

    /// The same array in which every dimension without a bound is this one.
    fn with_unbounded(&self, stand_in: Dimension) -> Self {
        let known = |dimension: &Dimension| if dimension.bound().is_none() { stand_in } else { *dimension };
        Self { dimensions: self.dimensions.iter().map(known).collect(), ..self.clone() }
    }

    /// Where each element lies, as expressions: dimension `k`, if it has no bound, has the extent `d<k>`, an `int64` of at
    /// least 1. Without such a dimension this is [`Tiling::to_symbolic`].
    ///
    /// # Errors
    /// A sparse array.
    pub fn symbolic_tiling(&self) -> Result<SymbolicTiling, LayoutError> {
        SymbolicTiling::of(self)
    }

    /// Where each element lies.
    ///
    /// # Errors
    /// A sparse array, a dimension without a bound, and a padded size above 2^63 - 1 elements or bytes.
    pub fn tiling(&self) -> Result<Tiling, LayoutError> {
        Tiling::new(self)
    }
}

#[cfg(test)]
mod tests;
