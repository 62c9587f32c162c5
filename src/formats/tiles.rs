//! XLA's tiles as a map: `(8,128)(2,1)` on the last dimensions of any shape, symbolic extents included.
//!
//! ```text
//! (2,4) on [i0, i1]:   i0 // 2, i1 // 4, i0 % 2, i1 % 4    in    [(n0 + 1) // 2, (n1 + 3) // 4, 2, 4]
//! ```
//!
//! Every further tile starts from what the one before it made. The way back is each step undone, the last one first; what
//! a step cannot undo is padding.

use tilewright_ir::layout::{ArrayShape, Dimension, Layout, TileDim};
use tilewright_ir::{BinaryOp, Diagnostic, ElementType, Expr, IndexMap, InverseClaim, ScalarType, Span, Var};

use super::splits::typed;
use super::{Named, at_whole, index_map};
use crate::algebra::{Ranges, physical_shape, simplify};

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
    let order: Vec<String> = (0..shape.len()).rev().map(|axis| axis.to_string()).collect();
    let head = format!("{{{}:T", order.join(","));
    let shift = u32::try_from(head.len()).unwrap_or(0);
    let read = tilewright_script::read_xla_layout(&format!("{head}{text}}}"), shape.len());
    let layout = read.map_err(|found| {
        let mut fault = found.into_iter().next().unwrap_or_else(|| Diagnostic::error("tiles", None, "no tiles"));
        for label in &mut fault.labels {
            let end = u32::try_from(text.len()).unwrap_or(u32::MAX);
            let at = |at: u32| at.saturating_sub(shift).min(end);
            label.span = Span::new(at(label.span.start), at(label.span.end));
        }
        fault
    })?;
    let Tiled { map, shape: physical, padded_axes, .. } =
        tiled(&layout, &names(shape.len()), shape).map_err(|fault| at_whole(fault, text))?;
    let Some((meaning, _)) = tilewright_verify::tiling::meaning(&layout, map.vars(), map.domain()) else {
        return Err(at_whole(Diagnostic::error("tiles", None, "these tiles have no meaning on this shape"), text));
    };
    Ok(Named { map, meaning, shape: physical, padded_axes })
}

/// Most parts of all indices together: tiles with `*` can double them again and again.
const MAX_PARTS: usize = 4096;

fn n_parts(expr: &Expr) -> usize {
    let mut count = 0;
    expr.walk(&mut |_| count += 1);
    count
}

/// `i0`, `i1`, ...
fn names(rank: usize) -> Vec<String> {
    (0..rank).map(|axis| format!("i{axis}")).collect()
}

/// One physical dimension on the way: its index and its extent.
#[derive(Clone)]
struct Dim {
    index: Expr,
    extent: Expr,
}

/// One tile, as it is needed to undo it.
struct Step {
    prepended: usize,
    leading: usize,
    /// Extents of the dimensions that are folded into one, and the size of its tile.
    splits: Vec<(Vec<Expr>, Expr)>,
}

/// A layout on a shape.
///
/// # Errors
/// Dimensions that the layout does not order, properties that mean nothing for a map, and sizes above 2^63 - 1.
pub fn tiled(layout: &Layout, names: &[String], shape: &[Expr]) -> Result<Tiled, Diagnostic> {
    plain(layout, shape)?;
    let ty = index_type(layout, shape);
    let domain: Vec<Expr> = shape.iter().map(|extent| typed(extent, ty)).collect();
    let vars: Vec<Var> = names.iter().map(|name| Var::new(name.as_str(), ty)).collect();
    let symbols = domain.iter().flat_map(Expr::vars).fold(Ranges::new(), |ranges, var| ranges.with_symbol(&var));
    let order: Vec<usize> = layout.minor_to_major.iter().rev().copied().collect();
    let dim = |axis: &usize| Dim { index: Expr::from(&vars[*axis]), extent: domain[*axis].clone() };
    let mut dims: Vec<Dim> = order.iter().map(dim).collect();
    let mut steps = Vec::new();
    for tile in &layout.tiles {
        let step;
        (step, dims) = apply(&tile.0, dims, ty, &symbols);
        if dims.iter().map(|dim| n_parts(&dim.index)).sum::<usize>() > MAX_PARTS {
            let message = "the indices of this layout are too long: its tiles combine dimensions again and again";
            return Err(Diagnostic::error("layout", None, message).with_help("use fewer tiles with `*`"));
        }
        steps.push(step);
    }
    let inside = vars.iter().zip(&domain).fold(symbols.clone(), |ranges, (var, extent)| ranges.with(var, extent));
    let outputs = dims.iter().map(|dim| simplify(&dim.index, &inside)).collect();
    let shape: Vec<Expr> = dims.into_iter().map(|dim| dim.extent).collect();
    let map = index_map(IndexMap::new(vars, domain, outputs, Vec::new()))?;
    let inverse = undo(&steps, &order, &shape, ty, &symbols);
    let padded_axes = match physical_shape(&map, &[]) {
        Ok(least) => (0..shape.len())
            .filter(|axis| least.padded_axes.contains(axis) || least.extents[*axis] != shape[*axis])
            .collect(),
        Err(_) => (0..shape.len()).collect(),
    };
    Ok(Tiled { map, inverse, shape, padded_axes })
}

/// `int64` where an extent is, or a tile needs it.
fn index_type(layout: &Layout, shape: &[Expr]) -> ScalarType {
    let wide = |size: &TileDim| matches!(size, TileDim::Size(size) if i32::try_from(*size).is_err());
    let wide_tile = layout.tiles.iter().flat_map(|tile| &tile.0).any(wide);
    let wide_extent = shape.iter().any(|extent| extent.dtype().scalar != ScalarType::Int32);
    if wide_tile || wide_extent { ScalarType::Int64 } else { ScalarType::Int32 }
}

/// The layout orders these dimensions and tiles them, and does nothing else; constant sizes fit.
fn plain(layout: &Layout, shape: &[Expr]) -> Result<(), Diagnostic> {
    let Layout { minor_to_major: _, dim_attributes: _, tiles: _, .. } = layout;
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
    if let Some((_, what)) = extra.iter().find(|(found, _)| *found) {
        let message = format!("{what} has no meaning for the indices of a buffer");
        return Err(Diagnostic::error("layout", None, message).with_help("give the order and the tiles only"));
    }
    let bound = |extent: &Expr| {
        let known = extent.as_const_int().map_or(Ok(1), u64::try_from);
        known
            .map(Dimension::Static)
            .map_err(|_| Diagnostic::error("extent", None, format!("{extent} is no extent of an array")))
    };
    let dimensions = shape.iter().map(bound).collect::<Result<Vec<_>, _>>()?;
    let fault = |error: tilewright_ir::layout::LayoutError| {
        Diagnostic::error(error.code, None, error.message).with_help(error.help)
    };
    ArrayShape::new(ElementType::Pred, dimensions, Some(layout.clone()))
        .and_then(|array| array.tiling())
        .map_err(fault)?;
    Ok(())
}

fn number(value: u64, ty: ScalarType) -> Expr {
    Expr::int_of(value.into(), ty).unwrap_or(Expr::Int { value: value.into(), ty: ScalarType::Int64 })
}

/// `a * b`, where one of them may be 1.
fn times(a: Expr, b: &Expr) -> Expr {
    match (a.as_const_int(), b.as_const_int()) {
        (_, Some(1)) => a,
        (Some(1), _) => b.clone(),
        _ => a * b.clone(),
    }
}

/// The dimensions after a tile.
fn apply(tile: &[TileDim], dims: Vec<Dim>, ty: ScalarType, symbols: &Ranges) -> (Step, Vec<Dim>) {
    let prepended = tile.len().saturating_sub(dims.len());
    let unit = Dim { index: number(0, ty), extent: number(1, ty) };
    let mut after: Vec<Dim> = std::iter::repeat_n(unit, prepended).chain(dims).collect();
    let rest = after.split_off(after.len() - tile.len());
    let mut step = Step { prepended, leading: after.len(), splits: Vec::new() };
    let (mut folding, mut folded, mut inner): (Vec<Expr>, Option<Dim>, Vec<Dim>) = (Vec::new(), None, Vec::new());
    for (dim, size) in rest.into_iter().zip(tile) {
        folding.push(dim.extent.clone());
        let whole = match folded.take() {
            None => dim,
            Some(high) => Dim {
                index: times(high.index, &dim.extent) + dim.index,
                extent: simplify(&times(high.extent, &dim.extent), symbols),
            },
        };
        let TileDim::Size(size) = size else {
            folded = Some(whole);
            continue;
        };
        let size = number(*size, ty);
        let ceil = match (whole.extent.as_const_int(), size.as_const_int()) {
            (Some(extent), Some(size)) => Expr::int_of((extent + size - 1).div_euclid(size), ty),
            _ => None,
        };
        let ceil = ceil.unwrap_or_else(|| {
            let up = size.clone() - number(1, ty);
            simplify(&(whole.extent.clone() + up).floor_div(size.clone()), symbols)
        });
        after.push(Dim { index: whole.index.clone().floor_div(size.clone()), extent: ceil });
        inner.push(Dim { index: whole.index.floor_mod(size.clone()), extent: size.clone() });
        step.splits.push((std::mem::take(&mut folding), size));
    }
    after.extend(inner);
    (step, after)
}

/// The steps undone. What lies beyond the extent that a step split is padding.
fn undo(steps: &[Step], order: &[usize], shape: &[Expr], ty: ScalarType, symbols: &Ranges) -> InverseClaim {
    let vars: Vec<Var> = (0..shape.len()).map(|axis| Var::new(format!("p{axis}"), ty)).collect();
    let ranges = vars.iter().zip(shape).fold(symbols.clone(), |ranges, (var, extent)| ranges.with(var, extent));
    let mut index: Vec<Expr> = vars.iter().map(Expr::from).collect();
    let mut padding: Option<Expr> = None;
    for step in steps.iter().rev() {
        let mut before = index[..step.leading].to_vec();
        for (position, (extents, size)) in step.splits.iter().enumerate() {
            let (outer, inner) = (&index[step.leading + position], &index[step.leading + step.splits.len() + position]);
            let folded = simplify(&(outer.clone() * size.clone() + inner.clone()), &ranges);
            let whole = extents.iter().fold(number(1, ty), times);
            let whole = simplify(&whole, symbols);
            if simplify(&whole.clone().floor_mod(size.clone()), symbols).as_const_int() != Some(0) {
                let beyond = Expr::binary(BinaryOp::Le, whole, folded.clone());
                padding = Some(match padding {
                    None => beyond,
                    Some(padding) => Expr::binary(BinaryOp::Or, padding, beyond),
                });
            }
            let (mut parts, mut rest) = (Vec::new(), folded);
            for extent in extents.iter().skip(1).rev() {
                parts.push(rest.clone().floor_mod(extent.clone()));
                rest = rest.floor_div(extent.clone());
            }
            parts.push(rest);
            before.extend(parts.into_iter().rev());
        }
        index = before.split_off(step.prepended);
    }
    let mut outputs = vec![number(0, ty); order.len()];
    for (axis, part) in order.iter().zip(index) {
        outputs[*axis] = simplify(&part, &ranges);
    }
    InverseClaim { vars, outputs, padding: padding.unwrap_or_else(|| Expr::bool(false)) }
}
