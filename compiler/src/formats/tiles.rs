//! XLA's tiles as a map: `(8,128)(2,1)` on the last dimensions of any shape, symbolic extents included.
//!
//! ```text
//! (2,4) on [i0, i1]:   i0 // 2, i1 // 4, i0 % 2, i1 % 4    in    [(n0 + 1) // 2, (n1 + 3) // 4, 2, 4]
//! ```
//!
//! Map and way back are those of `tilewright_ir::layout` and [`tilewright_algebra::layouts`], simplified, for a buffer that has one axis for
//! each dimension that the last tile makes.

use tilewright_ir::layout::{ArrayShape, Dimension, Layout, LayoutError, SymbolicTiling};
use tilewright_ir::{Diagnostic, ElementType, Expr, IndexMap, InverseClaim, ScalarType, Var};

use super::splits::typed;
use super::{Named, at_whole, index_map};
use tilewright_algebra::layouts;
use tilewright_algebra::{Ranges, physical_shape, simplify};

/// A tiled layout on a shape.
#[derive(Clone, Debug)]
pub struct Tiled {
    /// From the logical indices to the axes that the last tile makes.
    pub map: IndexMap,
    /// The way back, and which physical indices are padding.
    pub inverse: InverseClaim,
    /// The physical shape: whole tiles.
    pub shape: Vec<Expr>,
    /// Axes of it that may be longer than the largest index needs.
    pub padded_axes: Vec<usize>,
}

/// Reads `(8,128)(2,1)`: tiles on a row-major array.
pub(super) fn read(text: &str, shape: &[Expr]) -> Result<Named, Diagnostic> {
    let layout = tilewright_script::read_xla_tiles(text, shape.len()).map_err(|fault| at_whole(fault, text))?;
    let Tiled { map, shape: physical, padded_axes, .. } =
        tiled(&layout, shape).map_err(|fault| at_whole(fault, text))?;
    let Some((meaning, _)) = tilewright_verify::layout::order_and_tiles(&layout, map.vars(), map.domain()) else {
        return Err(at_whole(Diagnostic::error("tiles", None, "these tiles have no meaning on this shape"), text));
    };
    Ok(Named { map, meaning, shape: physical, padded_axes })
}

/// A layout on a shape, with the indices `i0`, `i1`, ... and `p0`, `p1`, ...
///
/// # Errors
/// Dimensions that the layout does not order, properties that mean nothing for a map, and sizes above 2^63 - 1.
pub fn tiled(layout: &Layout, shape: &[Expr]) -> Result<Tiled, Diagnostic> {
    only_order_and_tiles(layout)?;
    let ty = index_type(shape, least_elements(layout, shape)?);
    let domain: Vec<Expr> = shape.iter().map(|extent| typed(extent, ty)).collect();
    let tiling = SymbolicTiling::with_index_type(layout, &domain, ty).map_err(fault)?;
    let tiled_map = tiling.to_tiled_map().map_err(fault)?;
    let symbols = domain.iter().flat_map(Expr::vars).fold(Ranges::new(), |ranges, var| ranges.with_symbol(&var));
    let within = |vars: &[Var], extents: &[Expr]| {
        vars.iter().zip(extents).fold(symbols.clone(), |ranges, (var, extent)| ranges.with(var, extent))
    };
    // Map and inverse are simplified on their own domains: neither range is known to the other.
    let inside = within(tiled_map.vars(), &domain);
    let outputs = tiled_map.outputs().iter().map(|output| simplify(output, &inside)).collect();
    let map = index_map(IndexMap::new(tiled_map.vars().to_vec(), domain, outputs, Vec::new()))?;
    let shape: Vec<Expr> = tiling.physical_shape().iter().map(|extent| simplify(extent, &symbols)).collect();
    let undone = layouts::tiled_inverse(layout, &tiling);
    let InverseClaim { vars, outputs, padding } =
        undone.ok_or_else(|| Diagnostic::error("layout", None, "this layout cannot be undone"))?;
    let inside = within(&vars, &shape);
    let outputs = outputs.iter().map(|output| simplify(output, &inside)).collect();
    let inverse = InverseClaim { vars, outputs, padding: simplify(&padding, &inside) };
    let padded_axes = match physical_shape(&map, &[]) {
        Ok(least) => (0..shape.len())
            .filter(|axis| least.padded_axes.contains(axis) || least.extents[*axis] != shape[*axis])
            .collect(),
        Err(_) => (0..shape.len()).collect(),
    };
    Ok(Tiled { map, inverse, shape, padded_axes })
}

/// Returns `int64` if an extent has this type, or if the number of elements needs it; otherwise `int32`.
fn index_type(shape: &[Expr], elements: u64) -> ScalarType {
    let wide = shape.iter().any(|extent| extent.dtype().scalar != ScalarType::Int32);
    if wide || i32::try_from(elements).is_err() { ScalarType::Int64 } else { ScalarType::Int32 }
}

/// The layout orders dimensions and tiles them, and does nothing else.
fn only_order_and_tiles(layout: &Layout) -> Result<(), Diagnostic> {
    let extra = [
        (layout.tail_alignment != 1, "tail alignment `L`"),
        (layout.element_bits != 0, "a number of element bits `E`"),
        (layout.is_sparse(), "sparse dimensions `D`"),
        (layout.metadata_prefix_bytes != 0, "a metadata prefix `M`"),
        (layout.memory_space != 0, "a memory space `S`"),
        (!layout.split_configs.is_empty(), "split configurations `SC`"),
        (layout.index_type.is_some() || layout.pointer_type.is_some(), "types of sparse indices"),
        (layout.physical_shape.is_some(), "a physical shape `P`"),
    ];
    let Some((_, what)) = extra.iter().find(|(found, _)| *found) else { return Ok(()) };
    let message = format!("{what} has no meaning for the indices of a buffer");
    Err(Diagnostic::error("layout", None, message).with_help("give the order and the tiles only"))
}

/// Returns the number of elements, padding included, if every symbolic extent is 1.
fn least_elements(layout: &Layout, shape: &[Expr]) -> Result<u64, Diagnostic> {
    let bound = |extent: &Expr| {
        let known = extent.as_const_int().map_or(Ok(1), u64::try_from);
        known
            .map(Dimension::Static)
            .map_err(|_| Diagnostic::error("extent", None, format!("{extent} is no extent of an array")))
    };
    let dimensions = shape.iter().map(bound).collect::<Result<Vec<_>, _>>()?;
    let array = ArrayShape::new(ElementType::Pred, dimensions, Some(layout.clone())).map_err(fault)?;
    Ok(array.tiling().map_err(fault)?.physical_elements())
}

/// The diagnostic of a layout error.
fn fault(error: LayoutError) -> Diagnostic {
    Diagnostic::error(error.code, None, error.message).with_help(error.help)
}
