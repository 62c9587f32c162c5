//! Whether the parts of an array shape fit together.

use super::{ArrayShape, DimLevel, Dimension, Layout, LayoutError, MAX_RANK, MAX_TILES, Place, TileDim, XlaShape};

type Checked = Result<(), LayoutError>;

fn fault(place: Place, code: &'static str, message: String, help: &'static str) -> LayoutError {
    LayoutError { place, code, message, help }
}

/// The error of a size of 0 or below in a tile.
pub(super) fn bad_tile_size(tile: usize, position: usize, size: &str) -> LayoutError {
    let help = "a tile size is at least 1; `*` folds a dimension into the next more minor one";
    fault(Place::Tile(tile, Some(position)), "tile-size", format!("{size} is no tile size"), help)
}

impl ArrayShape {
    pub(super) fn validate(&self) -> Checked {
        let rank = self.dimensions.len();
        if rank > MAX_RANK {
            let message = format!("the array has {rank} dimensions; at most {MAX_RANK} are read");
            return Err(fault(Place::Dimensions, "rank", message, "split the array"));
        }
        let bound = |dimension: &Dimension| dimension.bound().unwrap_or(0);
        if self.dimensions.iter().any(|dimension| i64::try_from(bound(dimension)).is_err()) {
            let message = "an extent is above 2^63 - 1".to_owned();
            return Err(fault(Place::Dimensions, "size", message, "extents are 64-bit integers"));
        }
        let Some(layout) = &self.layout else { return Ok(()) };
        minor_to_major(layout, rank)?;
        dim_attributes(layout, rank)?;
        tiles(layout)?;
        if layout.tail_alignment == 0 {
            let message = "the tail alignment is 0".to_owned();
            return Err(fault(Place::TailAlignment, "tail-alignment", message, "it is at least 1 element"));
        }
        sparse_parts(layout)?;
        split_configs(layout, &self.dimensions)
    }
}

fn minor_to_major(layout: &Layout, rank: usize) -> Checked {
    let order = &layout.minor_to_major;
    if order.len() != rank {
        let message = format!("the layout orders {} dimensions, but the array has {rank}", order.len());
        let help = "name every dimension of the array once, the most minor one first";
        return Err(fault(Place::MinorToMajor(None), "layout-rank", message, help));
    }
    let mut seen = vec![false; rank];
    for (position, &dimension) in order.iter().enumerate() {
        let place = Place::MinorToMajor(Some(position));
        let Some(seen) = seen.get_mut(dimension) else {
            let message = format!("there is no dimension {dimension}: the array has {rank}, numbered from 0");
            return Err(fault(place, "dimension-range", message, "name every dimension of the array once"));
        };
        if std::mem::replace(seen, true) {
            let message = format!("dimension {dimension} appears twice in the order of the dimensions");
            return Err(fault(place, "duplicate-dimension", message, "name every dimension of the array once"));
        }
    }
    Ok(())
}

fn dim_attributes(layout: &Layout, rank: usize) -> Checked {
    let attributes = &layout.dim_attributes;
    if !attributes.is_empty() && attributes.len() != rank {
        let message = format!("{} dimensions have attributes, but the array has {rank}", attributes.len());
        return Err(fault(Place::DimAttributes(None), "attribute-rank", message, "give every dimension one, or none"));
    }
    let wrong = |attribute: &super::DimAttribute| {
        attribute.level == DimLevel::Dense && !(attribute.unique && attribute.ordered)
    };
    match attributes.iter().position(wrong) {
        Some(position) => {
            let message = "a dense dimension cannot be without order or hold an index twice".to_owned();
            let help = "`+` and `~` go with C, S and H only";
            Err(fault(Place::DimAttributes(Some(position)), "attribute", message, help))
        }
        None => Ok(()),
    }
}

fn tiles(layout: &Layout) -> Checked {
    if layout.tiles.len() > MAX_TILES {
        let message = format!("the layout has {} tiles; at most {MAX_TILES} are read", layout.tiles.len());
        return Err(fault(Place::Tile(MAX_TILES, None), "tiles", message, "use fewer tiles"));
    }
    for (index, tile) in layout.tiles.iter().enumerate() {
        if tile.0.is_empty() {
            let message = "the tile has no dimensions".to_owned();
            return Err(fault(Place::Tile(index, None), "empty-tile", message, "write sizes, such as T(8,128)"));
        }
        if tile.0.len() > MAX_RANK {
            let message = format!("the tile has {} dimensions; at most {MAX_RANK} are read", tile.0.len());
            return Err(fault(Place::Tile(index, None), "rank", message, "use a smaller tile"));
        }
        if let Some(position) = tile.0.iter().position(|dim| *dim == TileDim::Size(0)) {
            return Err(bad_tile_size(index, position, "0"));
        }
        if tile.0.last() == Some(&TileDim::Combine) {
            let place = Place::Tile(index, Some(tile.0.len() - 1));
            let message = "`*` has no dimension after it to fold into".to_owned();
            return Err(fault(place, "combine-last", message, "the last dimension of a tile is a size"));
        }
    }
    Ok(())
}

/// What only sparse arrays have, and what they cannot have.
fn sparse_parts(layout: &Layout) -> Checked {
    if layout.is_sparse() {
        if !layout.tiles.is_empty() {
            let message = "a sparse array has no tiles".to_owned();
            return Err(fault(Place::Tile(0, None), "sparse-tiles", message, "leave out D(..) or T(..)"));
        }
        if layout.physical_shape.as_deref().is_some_and(has_physical_shape) {
            let message = "the layout of a physical shape has a physical shape itself".to_owned();
            return Err(fault(Place::PhysicalShape, "physical-shape", message, "leave out the inner P(..)"));
        }
    } else {
        let dense = [
            (layout.index_type.is_some(), Place::IndexType, "an index type"),
            (layout.pointer_type.is_some(), Place::PointerType, "a pointer type"),
            (layout.physical_shape.is_some(), Place::PhysicalShape, "a physical shape"),
        ];
        if let Some((_, place, what)) = dense.into_iter().find(|(stated, ..)| *stated) {
            let message = format!("the layout has {what}, but the array is dense");
            return Err(fault(place, "dense", message, "only arrays with D(..) of C, S or H have it"));
        }
    }
    for (ty, place) in [(layout.index_type, Place::IndexType), (layout.pointer_type, Place::PointerType)] {
        if let Some(ty) = ty.filter(|ty| !ty.is_unsigned()) {
            let message = format!("{ty} is no unsigned integer type");
            return Err(fault(place, "unsigned", message, "such as u32"));
        }
    }
    Ok(())
}

fn has_physical_shape(shape: &XlaShape) -> bool {
    match shape {
        XlaShape::Array(array) => array.layout().is_some_and(|layout| layout.physical_shape.is_some()),
        XlaShape::Tuple(parts) => parts.iter().any(has_physical_shape),
        XlaShape::Token | XlaShape::Opaque => false,
    }
}

fn split_configs(layout: &Layout, dimensions: &[Dimension]) -> Checked {
    for (config_index, config) in layout.split_configs.iter().enumerate() {
        let place = Place::SplitConfig(config_index, None);
        let Some(dimension) = dimensions.get(config.dimension) else {
            let message = format!("there is no dimension {} to split", config.dimension);
            return Err(fault(place, "split-dimension", message, "dimensions are numbered from 0"));
        };
        let earlier = &layout.split_configs[..config_index];
        if earlier.iter().any(|other| other.dimension == config.dimension) {
            let message = format!("dimension {} is split twice", config.dimension);
            return Err(fault(place, "split-dimension", message, "write all its indices after one `:`"));
        }
        if config.indices.is_empty() {
            let message = format!("the split of dimension {} has no indices", config.dimension);
            return Err(fault(place, "split-indices", message, "write where the pieces begin, such as (1:1024)"));
        }
        let mut last = None;
        for (position, &index) in config.indices.iter().enumerate() {
            let place = Place::SplitConfig(config_index, Some(position));
            if dimension.bound().is_some_and(|extent| index >= extent) {
                let message = format!("split index {index} is outside dimension {}", config.dimension);
                return Err(fault(place, "split-range", message, "split indices are below the extent"));
            }
            if last.is_some_and(|last| index <= last) {
                let message = format!("split index {index} is not above the one before it");
                return Err(fault(place, "split-order", message, "split indices ascend"));
            }
            last = Some(index);
        }
    }
    Ok(())
}
