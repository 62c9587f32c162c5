//! Applies the layout transformations that a function carries in `layout_transform_map` (RFC 39).
//!
//! ```text
//! # layout_transform_map = {A: [lambda n, h, w, c: [n, c // 4, h, w, c % 4]]}
//! # A: Buffer((16, 64, 64, 128))              # A: Buffer((16, 32, 64, 64, 4))
//! A[n, h, w, c]                          ->   A[n, c // 4, h, w, c % 4]
//! ```
//!
//! Several transformations of one buffer are applied one after the other. All buffers on the same memory get the same
//! layout, parameters included: the caller passes tensors in the new layout. The attribute is removed, so a second run
//! changes nothing. The pass does not check that a map is injective; the judge refutes one that is not. Cost: one walk.

use tilewright_ir::sabotage;
use tilewright_ir::{
    AxisSeparators, Buffer, BufferChange, BufferClaim, Diagnostic, Evidence, Expr, IndexMap, PrimFunc, Var,
};

use super::Rewritten;
use super::remap::relaid;
use tilewright_algebra::{Ranges, physical_shape, simplify};

/// Applies and removes the `layout_transform_map`.
///
/// # Errors
/// A map does not fit the shape of its buffer, an alias differs in shape or element width, separators contradict each
/// other, the buffer has strides or an offset, a physical index may be negative or has no bound.
pub fn apply_buffer_transforms(func: &PrimFunc) -> Result<Rewritten, Vec<Diagnostic>> {
    let (mut claims, mut found) = (Vec::new(), Vec::new());
    for (position, (data, maps)) in func.attrs.layout_transform_map.iter().enumerate() {
        if func.attrs.layout_transform_map[..position].iter().any(|(other, _)| other == data) {
            let message = format!("`{data}` appears twice in layout_transform_map");
            found.push(Diagnostic::error("duplicate-transform", None, message));
            continue;
        }
        match transformed(func, data, maps) {
            Ok(new) => claims.extend(new),
            Err(errors) => found.extend(errors),
        }
    }
    if !found.is_empty() {
        return Err(found);
    }
    let mut after = relaid(func, &claims).map_err(|error| vec![error])?;
    after.attrs.layout_transform_map.clear();
    let evidence = Evidence { pass: "apply_buffer_transforms".to_owned(), buffers: claims, ..Evidence::default() };
    Ok(Rewritten { func: after, evidence, notes: Vec::new() })
}

/// Returns the claims for all buffers on one memory.
fn transformed(func: &PrimFunc, data: &Var, maps: &[IndexMap]) -> Result<Vec<BufferClaim>, Vec<Diagnostic>> {
    let aliases: Vec<_> = func.buffers().into_iter().filter(|buffer| buffer.data == *data).collect();
    let Some(first) = aliases.first() else {
        let message = format!("layout_transform_map names `{data}`, but no buffer lives there");
        return Err(vec![Diagnostic::error("unknown-buffer", None, message)]);
    };
    if maps.is_empty() {
        return Ok(Vec::new());
    }
    let is_tiled = func.attrs.tile_layout.iter().any(|(tiled, _)| tiled == data);
    // What the algebra says of a map has no place of its own.
    let placed = |error: Diagnostic| match func.layout_span(first) {
        Some(span) if error.labels.is_empty() => error.with_label(span, ""),
        _ => error,
    };
    let layout = Layout::new(first, maps).map_err(|error| vec![placed(error)])?;
    let (mut claims, mut found) = (Vec::new(), Vec::new());
    for alias in &aliases {
        match agrees(first, alias).and_then(|()| layout.claim(alias, maps, is_tiled)) {
            Ok(claim) => claims.push(claim),
            Err(error) => found.push(error),
        }
    }
    if found.is_empty() { Ok(claims) } else { Err(found) }
}

/// Checks that the layout of `first` can be applied to `alias` too.
pub(crate) fn agrees(first: &Buffer, alias: &Buffer) -> Result<(), Diagnostic> {
    let extent = |expr: &Expr| simplify(expr, &Ranges::new());
    let shapes = |buffer: &Buffer| buffer.shape.iter().map(extent).collect::<Vec<_>>();
    let listed = |buffer: &Buffer| shapes(buffer).iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    if shapes(first) != shapes(alias) {
        let message = format!(
            "`{alias}` of shape [{}] shares its memory with `{first}` of shape [{}], whose layout is transformed",
            listed(alias),
            listed(first)
        );
        let help = "a layout transformation moves all aliases alike, so they need the same shape";
        return Err(Diagnostic::error("alias-shape", alias.span, message).with_help(help));
    }
    if first.dtype.bytes() != alias.dtype.bytes() {
        let message = format!("`{alias}` has elements of {}, its alias `{first}` of {}", alias.dtype, first.dtype);
        let help = "a layout transformation moves whole elements, so aliases need elements of the same size";
        return Err(Diagnostic::error("alias-element", alias.span, message).with_help(help));
    }
    Ok(())
}

/// Returns the claim that a buffer moves to the layout of these maps.
///
/// # Errors
/// Those of [`apply_buffer_transforms`].
pub(crate) fn layout_claim(buffer: &Buffer, maps: &[IndexMap]) -> Result<BufferClaim, Diagnostic> {
    Layout::new(buffer, maps)?.claim(buffer, maps, false)
}

/// The composition of several maps.
struct Layout {
    /// From the logical indices to the last physical ones.
    map: IndexMap,
    shape: Vec<Expr>,
    padded_axes: Vec<usize>,
}

impl Layout {
    /// Composes the maps of a buffer, and computes the physical shape after each of them.
    fn new(buffer: &Buffer, maps: &[IndexMap]) -> Result<Self, Diagnostic> {
        let wrong = |code, message: String| Diagnostic::error(code, buffer.span, message);
        let mut shape = buffer.shape.clone();
        let mut vars: Option<Vec<Var>> = None;
        let mut outputs: Vec<Expr> = Vec::new();
        for (position, map) in maps.iter().enumerate() {
            if map.vars().len() != shape.len() {
                let message = format!(
                    "transformation {position} of `{buffer}` takes {} indices, but the layout has {} axes there",
                    map.vars().len(),
                    shape.len()
                );
                return Err(wrong("rank", message));
            }
            if position + 1 < maps.len() && !map.axis_separators().is_empty() {
                let message =
                    format!("transformation {position} of `{buffer}` has separators, but is not the last one");
                return Err(wrong("axis-separators", message));
            }
            // Each map is applied to whole blocks, so its domain is the physical shape of the map before it, padding
            // included.
            let placed = placed(map.vars(), &shape, map.outputs()).map_err(|error| wrong("index-map", error))?;
            outputs = if vars.is_some() { map.apply(&outputs) } else { map.outputs().to_vec() };
            vars.get_or_insert_with(|| map.vars().to_vec());
            shape = physical_shape(&placed, &[])?.extents;
        }
        let vars = vars.unwrap_or_default();
        let ranges = vars.iter().zip(&buffer.shape).fold(Ranges::new(), |ranges, (var, ext)| ranges.with(var, ext));
        let outputs: Vec<_> = outputs.iter().map(|output| simplify(output, &ranges)).collect();
        let map = placed(&vars, &buffer.shape, &outputs).map_err(|error| wrong("index-map", error))?;
        let least = physical_shape(&map, &[])?;
        let longer = |axis: usize| least.extents[axis] != shape[axis] && !sabotage::on("padding-not-declared");
        let padded = |axis: &usize| least.padded_axes.contains(axis) || longer(*axis);
        let padded_axes = (0..shape.len()).filter(padded).collect();
        Ok(Self { map, shape, padded_axes })
    }

    /// Returns the claim that `buffer` moves to this layout. If a tiled layout follows (`is_tiled`), the separators of the
    /// buffer belong to that layout.
    fn claim(&self, buffer: &Buffer, maps: &[IndexMap], is_tiled: bool) -> Result<BufferClaim, Diagnostic> {
        if buffer.elem_offset.as_const_int() != Some(0) || !is_compact(buffer) {
            let message = format!("`{buffer}` has strides or an offset, so its layout cannot be transformed");
            let help = "transform the layout of the whole, compact buffer";
            return Err(Diagnostic::error("strided-layout", buffer.span, message).with_help(help));
        }
        let axis_separators = if is_tiled { tiled_separators(buffer, maps)? } else { self.separators(buffer, maps)? };
        let after = buffer.with(|info| {
            info.shape.clone_from(&self.shape);
            info.strides = None;
            info.axis_separators = axis_separators;
        });
        Ok(BufferClaim {
            before: buffer.clone(),
            after,
            map: self.map.clone(),
            change: BufferChange::Layout,
            padded_axes: self.padded_axes.clone(),
        })
    }

    /// Returns the separators of the physical axes: those of the buffer, or those of the last map.
    fn separators(&self, buffer: &Buffer, maps: &[IndexMap]) -> Result<AxisSeparators, Diagnostic> {
        let (own, rank) = (&buffer.axis_separators, self.shape.len());
        let mapped = maps.last().map(IndexMap::axis_separators).filter(|separators| !separators.is_empty());
        match mapped {
            Some(mapped) if own.is_empty() || own == mapped => Ok(mapped.clone()),
            Some(mapped) => {
                let (own, mapped) = (own.positions(), mapped.positions());
                let message = format!("`{buffer}` has the axis separators {own:?}, its transformation {mapped:?}");
                Err(Diagnostic::error("axis-separators", buffer.span, message).with_help("state them once"))
            }
            None if own.rank() == rank => Ok(own.clone()),
            None if own.is_empty() => Ok(AxisSeparators::none(rank)),
            None => {
                let (positions, own) = (own.positions(), own.rank());
                let message =
                    format!("`{buffer}` has axis separators {positions:?} for rank {own}, its layout has rank {rank}");
                Err(Diagnostic::error("axis-separators", buffer.span, message))
            }
        }
    }
}

/// Returns the separators of a buffer that a tiled layout follows: the buffer's own, as the maps must not have any.
fn tiled_separators(buffer: &Buffer, maps: &[IndexMap]) -> Result<AxisSeparators, Diagnostic> {
    if maps.iter().all(|map| map.axis_separators().is_empty()) {
        return Ok(buffer.axis_separators.clone());
    }
    let message = format!("a transformation of `{buffer}` has axis separators, but its tiled layout comes after it");
    let help = "separators stand between the axes of the last layout";
    Err(Diagnostic::error("axis-separators", buffer.span, message).with_help(help))
}

fn placed(vars: &[Var], shape: &[Expr], outputs: &[Expr]) -> Result<IndexMap, String> {
    IndexMap::new(vars.to_vec(), shape.to_vec(), outputs.to_vec(), Vec::new()).map_err(|error| error.to_string())
}

/// Returns whether a buffer has no strides, or the strides of the row-major layout.
pub(super) fn is_compact(buffer: &Buffer) -> bool {
    let Some(strides) = &buffer.strides else { return true };
    let mut expected = Expr::int(1);
    buffer.shape.iter().zip(strides).rev().all(|(extent, stride)| {
        let gap = stride.clone() - expected.clone();
        expected = expected.clone() * extent.clone();
        simplify(&gap, &Ranges::new()).as_const_int() == Some(0)
    })
}
