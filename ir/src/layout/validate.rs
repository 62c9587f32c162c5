//! Checks that the parts of an array shape fit together.
//!
//! The rules are those of XLA's `LayoutUtil::ValidateLayoutForShape`, and limits on sizes that keep the arithmetic in
//! 64 bits.

use super::{ArrayShape, DimLevel, Dimension, Layout, LayoutError, LayoutPart, MAX_RANK, MAX_TILES, TileDim, XlaShape};

/// The result of a check without a value.
type Checked = Result<(), LayoutError>;

/// Creates the error that `part` is wrong.
fn invalid(part: LayoutPart, code: &'static str, message: String, help: &'static str) -> LayoutError {
    LayoutError { part, code, message, help }
}

/// Creates the error for a tile size below 1. `tile` and `position` locate it, `size` is its text.
pub(super) fn bad_tile_size(tile: usize, position: usize, size: &str) -> LayoutError {
    let help = "a tile size is at least 1; `*` folds a dimension into the next more minor one";
    invalid(LayoutPart::Tile(tile, Some(position)), "tile-size", format!("{size} is not a tile size"), help)
}

impl ArrayShape {
    /// Checks the extents and the layout.
    ///
    /// # Errors
    /// The first problem found; a later check may rely on the earlier ones.
    pub(super) fn validate(&self) -> Checked {
        let rank = self.dimensions.len();
        if rank > MAX_RANK {
            let message = format!("the array has {rank} dimensions; at most {MAX_RANK} are read");
            return Err(invalid(LayoutPart::Dimensions, "rank", message, "split the array"));
        }
        let bound = |dimension: &Dimension| dimension.bound().unwrap_or(0);
        if self.dimensions.iter().any(|dimension| i64::try_from(bound(dimension)).is_err()) {
            let message = "an extent is above 2^63 - 1".to_owned();
            return Err(invalid(LayoutPart::Dimensions, "size", message, "extents are 64-bit integers"));
        }
        let Some(layout) = &self.layout else { return Ok(()) };
        minor_to_major(layout, rank)?;
        dim_attributes(layout, rank)?;
        tiles(layout)?;
        if layout.tail_alignment == 0 {
            let message = "the tail alignment is 0".to_owned();
            return Err(invalid(LayoutPart::TailAlignment, "tail-alignment", message, "it is at least 1 element"));
        }
        sparse_parts(layout)?;
        split_configs(layout, &self.dimensions)
    }
}

/// Checks that the order is a permutation of the dimensions.
fn minor_to_major(layout: &Layout, rank: usize) -> Checked {
    let order = &layout.minor_to_major;
    if order.len() != rank {
        let message = format!("the layout orders {} dimensions, but the array has {rank}", order.len());
        let help = "name every dimension of the array once, the most minor one first";
        return Err(invalid(LayoutPart::MinorToMajor(None), "layout-rank", message, help));
    }
    let mut seen = vec![false; rank];
    for (position, &dimension) in order.iter().enumerate() {
        let place = LayoutPart::MinorToMajor(Some(position));
        let Some(seen) = seen.get_mut(dimension) else {
            let message = format!("there is no dimension {dimension}: the array has {rank}, numbered from 0");
            return Err(invalid(place, "dimension-range", message, "name every dimension of the array once"));
        };
        if std::mem::replace(seen, true) {
            let message = format!("dimension {dimension} appears twice in the order of the dimensions");
            return Err(invalid(place, "duplicate-dimension", message, "name every dimension of the array once"));
        }
    }
    Ok(())
}

/// Checks that each dimension has an attribute, or none has. A dense dimension stores each index once and in order.
fn dim_attributes(layout: &Layout, rank: usize) -> Checked {
    let attributes = &layout.dim_attributes;
    if !attributes.is_empty() && attributes.len() != rank {
        let message = format!("{} dimensions have attributes, but the array has {rank}", attributes.len());
        return Err(invalid(
            LayoutPart::DimAttributes(None),
            "attribute-rank",
            message,
            "give every dimension one, or none",
        ));
    }
    let wrong = |attribute: &super::DimAttribute| {
        attribute.level == DimLevel::Dense && !(attribute.unique && attribute.ordered)
    };
    match attributes.iter().position(wrong) {
        Some(position) => {
            let message = "a dense dimension cannot be unordered or non-unique".to_owned();
            let help = "`+` and `~` go with C, S and H only";
            Err(invalid(LayoutPart::DimAttributes(Some(position)), "attribute", message, help))
        }
        None => Ok(()),
    }
}

/// Checks the number and the dimensions of the tiles.
fn tiles(layout: &Layout) -> Checked {
    if layout.tiles.len() > MAX_TILES {
        let message = format!("the layout has {} tiles; at most {MAX_TILES} are read", layout.tiles.len());
        return Err(invalid(LayoutPart::Tile(MAX_TILES, None), "tiles", message, "use fewer tiles"));
    }
    for (index, tile) in layout.tiles.iter().enumerate() {
        if tile.0.is_empty() {
            let message = "the tile has no dimensions".to_owned();
            return Err(invalid(LayoutPart::Tile(index, None), "empty-tile", message, "write sizes, such as T(8,128)"));
        }
        if tile.0.len() > MAX_RANK {
            let message = format!("the tile has {} dimensions; at most {MAX_RANK} are read", tile.0.len());
            return Err(invalid(LayoutPart::Tile(index, None), "rank", message, "use a smaller tile"));
        }
        if let Some(position) = tile.0.iter().position(|dim| *dim == TileDim::Size(0)) {
            return Err(bad_tile_size(index, position, "0"));
        }
        if tile.0.last() == Some(&TileDim::Combine) {
            let place = LayoutPart::Tile(index, Some(tile.0.len() - 1));
            let message = "`*` has no dimension after it to fold into".to_owned();
            return Err(invalid(place, "combine-last", message, "the last dimension of a tile is a size"));
        }
    }
    Ok(())
}

/// Checks the properties that only sparse arrays have, and those that they cannot have.
fn sparse_parts(layout: &Layout) -> Checked {
    if layout.is_sparse() {
        if !layout.tiles.is_empty() {
            let message = "a sparse array has no tiles".to_owned();
            return Err(invalid(LayoutPart::Tile(0, None), "sparse-tiles", message, "leave out D(..) or T(..)"));
        }
        if layout.physical_shape.as_deref().is_some_and(has_physical_shape) {
            let message = "the layout of a physical shape has a physical shape itself".to_owned();
            return Err(invalid(LayoutPart::PhysicalShape, "physical-shape", message, "leave out the inner P(..)"));
        }
    } else {
        let dense = [
            (layout.index_type.is_some(), LayoutPart::IndexType, "an index type"),
            (layout.pointer_type.is_some(), LayoutPart::PointerType, "a pointer type"),
            (layout.physical_shape.is_some(), LayoutPart::PhysicalShape, "a physical shape"),
        ];
        if let Some((_, place, what)) = dense.into_iter().find(|(stated, ..)| *stated) {
            let message = format!("the layout has {what}, but the array is dense");
            return Err(invalid(place, "dense", message, "only arrays with D(..) of C, S or H have it"));
        }
    }
    // Only sparse layouts get here with one of these types.
    for (ty, place) in [(layout.index_type, LayoutPart::IndexType), (layout.pointer_type, LayoutPart::PointerType)] {
        if let Some(ty) = ty.filter(|ty| !ty.is_unsigned()) {
            let message = format!("{ty} is not an unsigned integer type");
            return Err(invalid(place, "unsigned", message, "such as u32"));
        }
    }
    Ok(())
}

/// Returns whether an array in `shape` states a physical shape.
fn has_physical_shape(shape: &XlaShape) -> bool {
    match shape {
        XlaShape::Array(array) => array.layout().is_some_and(|layout| layout.physical_shape.is_some()),
        XlaShape::Tuple(parts) => parts.iter().any(has_physical_shape),
        XlaShape::Token | XlaShape::Opaque => false,
    }
}

/// Checks that each dimension is split at most once, at ascending indices inside it.
fn split_configs(layout: &Layout, dimensions: &[Dimension]) -> Checked {
    for (config_index, config) in layout.split_configs.iter().enumerate() {
        let place = LayoutPart::SplitConfig(config_index, None);
        let Some(dimension) = dimensions.get(config.dimension) else {
            let message = format!("there is no dimension {} to split", config.dimension);
            return Err(invalid(place, "split-dimension", message, "dimensions are numbered from 0"));
        };
        let earlier = &layout.split_configs[..config_index];
        if earlier.iter().any(|other| other.dimension == config.dimension) {
            let message = format!("dimension {} is split twice", config.dimension);
            return Err(invalid(place, "split-dimension", message, "write all its indices after one `:`"));
        }
        if config.indices.is_empty() {
            let message = format!("the split of dimension {} has no indices", config.dimension);
            return Err(invalid(place, "split-indices", message, "write where the pieces begin, such as (1:1024)"));
        }
        let mut last = None;
        for (position, &index) in config.indices.iter().enumerate() {
            let place = LayoutPart::SplitConfig(config_index, Some(position));
            // A dimension without a bound may be split at any index.
            if dimension.bound().is_some_and(|extent| index >= extent) {
                let message = format!("split index {index} is outside dimension {}", config.dimension);
                return Err(invalid(place, "split-range", message, "split indices are below the extent"));
            }
            if last.is_some_and(|last| index <= last) {
                let message = format!("split index {index} is not above the one before it");
                return Err(invalid(place, "split-order", message, "split indices ascend"));
            }
            last = Some(index);
        }
    }
    Ok(())
}
