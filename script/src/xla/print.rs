//! The printer of XLA's shapes. The text is exactly that of XLA's `Shape::ToString`, layout included.

use std::fmt::{Display, Write as _};

use tilewright_ir::XlaShape;
use tilewright_ir::layout::{ArrayShape, DimAttribute, DimLevel, Dimension, Layout, Tile, TileDim};
use tilewright_ir::sabotage;

/// XLA writes the index of every fifth element of a tuple in a comment.
const INDEX_INTERVAL: usize = 5;

/// Prints a shape as XLA does, with its layout.
pub fn print_xla_shape(shape: &XlaShape) -> String {
    let mut out = String::new();
    write_shape(&mut out, shape);
    out
}

/// Writes a shape.
fn write_shape(out: &mut String, shape: &XlaShape) {
    match shape {
        XlaShape::Array(array) => write_array(out, array),
        XlaShape::Token => out.push_str("token[]"),
        XlaShape::Opaque => out.push_str("opaque[]"),
        XlaShape::Tuple(parts) => {
            out.push('(');
            for (position, part) in parts.iter().enumerate() {
                if position > 0 {
                    out.push_str(", ");
                    if position % INDEX_INTERVAL == 0 {
                        let _ = write!(out, "/*index={position}*/");
                    }
                }
                write_shape(out, part);
            }
            out.push(')');
        }
    }
}

/// Writes an element type, extents and a layout, if one is stated.
fn write_array(out: &mut String, array: &ArrayShape) {
    let extent = |dimension: &Dimension| match dimension {
        Dimension::Static(extent) => extent.to_string(),
        Dimension::Bounded(bound) => format!("<={bound}"),
        Dimension::Unbounded => "?".to_owned(),
    };
    let _ = write!(out, "{}[{}]", array.element_type(), joined(array.dimensions().iter().map(extent)));
    if let Some(layout) = array.layout() {
        write_layout(out, layout);
    }
}

/// Writes a layout. Properties with their default value are left out, and the others are in XLA's order.
fn write_layout(out: &mut String, layout: &Layout) {
    let mut properties = String::new();
    if layout.is_sparse() {
        let _ = write!(properties, "D({})", joined(layout.dim_attributes.iter().copied().map(attribute)));
    }
    if !layout.tiles.is_empty() {
        properties.push('T');
        properties.extend(layout.tiles.iter().map(tile));
    }
    // `L(1)`, and 0 for the other numbers, mean the same as no property, as the reader sets them.
    let number = |properties: &mut String, letter, value: u64, default| {
        if value != default {
            let _ = write!(properties, "{letter}({value})");
        }
    };
    number(&mut properties, "L", layout.tail_alignment, 1);
    for (sign, ty) in [("#", layout.index_type), ("*", layout.pointer_type)] {
        if let Some(ty) = ty {
            let _ = write!(properties, "{sign}({ty})");
        }
    }
    number(&mut properties, "E", layout.element_bits, 0);
    if layout.tiles.is_empty() || !sabotage::on("xla-drops-memory-space") {
        number(&mut properties, "S", layout.memory_space, 0);
    }
    if !layout.split_configs.is_empty() {
        properties.push_str("SC");
        for config in &layout.split_configs {
            let _ = write!(properties, "({}:{})", config.dimension, joined(&config.indices));
        }
    }
    if let Some(physical) = &layout.physical_shape {
        let _ = write!(properties, "P({})", print_xla_shape(physical));
    }
    number(&mut properties, "M", layout.metadata_prefix_bytes, 0);
    let colon = if properties.is_empty() { "" } else { ":" };
    let _ = write!(out, "{{{}{colon}{properties}}}", joined(&layout.minor_to_major));
}

/// Returns the text of a dimension attribute, such as `C+~`.
fn attribute(attribute: DimAttribute) -> String {
    let level = match attribute.level {
        DimLevel::Dense => 'D',
        DimLevel::Compressed => 'C',
        DimLevel::Singleton => 'S',
        DimLevel::LooseCompressed => 'H',
    };
    let (unique, ordered) = (if attribute.unique { "" } else { "+" }, if attribute.ordered { "" } else { "~" });
    format!("{level}{unique}{ordered}")
}

/// Returns the text of a tile, such as `(8,128)`.
fn tile(tile: &Tile) -> String {
    let dim = |dim: &TileDim| match dim {
        TileDim::Size(size) => size.to_string(),
        TileDim::Combine => "*".to_owned(),
    };
    format!("({})", joined(tile.0.iter().map(dim)))
}

/// Joins items with commas.
fn joined(items: impl IntoIterator<Item: Display>) -> String {
    items.into_iter().map(|item| item.to_string()).collect::<Vec<_>>().join(",")
}
