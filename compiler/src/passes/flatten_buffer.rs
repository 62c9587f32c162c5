//! Flattens buffers to the physical axes of their layout.
//!
//! ```text
//! # A: Buffer((16, 32, 64, 64, 4), axis_separators=[3])
//! A[n, c, h, w, i]
//! # becomes, with A_flattened: Buffer((32768, 256), axis_separators=[1]) declared on the same memory,
//! A_flattened[n * 2048 + c * 64 + h, w * 4 + i]
//! ```
//!
//! Each group of axes between separators is linearized in row-major order (RFC 39, FlattenBuffer). Afterwards there is a
//! separator between all axes, so a second run changes nothing. `buffer_map` is not changed, because it is the calling
//! convention (RFC 63, "Removing pre-flattened buffer"). Strides and `elem_offset` are folded into the index of a buffer
//! with one group. Indices into a buffer of more than 2^31 - 1 elements become `int64`. Cost: one walk.

use tilewright_ir::sabotage;
use tilewright_ir::{
    AxisSeparators, Buffer, BufferChange, DataType, Diagnostic, Expr, IndexMap, PrimFunc, ScalarType, Var, checked_size,
};

use super::Rewritten;
use super::remap::{Move, regrouped, remap, retyped, symbol_ranges};
use tilewright_algebra::{Ranges, n_elements, simplify};

/// Flattens every buffer that the body uses and that is not flat already. Textures are left to `lower_texture`, which needs
/// the axis of their channels.
///
/// # Errors
/// Strides or an offset on a buffer with several physical axes; negative strides; sizes above 2^63 - 1.
pub fn flatten_buffer(func: &PrimFunc) -> Result<Rewritten, Vec<Diagnostic>> {
    let ranges = symbol_ranges(func);
    let (mut moves, mut found) = (Vec::new(), Vec::new());
    let is_param = |buffer: &Buffer| func.buffer_map.iter().any(|(_, param)| param == buffer);
    for buffer in used_buffers(func).into_iter().filter(|buffer| !buffer.scope.is_texture()) {
        match flattened(&buffer, is_param(&buffer), &ranges) {
            Ok(change) => moves.extend(change),
            Err(error) => found.push(error),
        }
    }
    if !found.is_empty() {
        return Err(found);
    }
    let body = remap(func, &moves).map_err(|error| vec![error])?;
    Ok(regrouped(func, body, moves, "flatten_buffer", BufferChange::Flatten))
}

/// Returns the buffers that the body uses. A parameter that is never used needs no flat alias.
fn used_buffers(func: &PrimFunc) -> Vec<Buffer> {
    PrimFunc { buffer_map: Vec::new(), ..func.clone() }.buffers()
}

/// Returns the flat buffer and the map to it; `None` if the buffer is flat already.
fn flattened(buffer: &Buffer, is_param: bool, ranges: &Ranges) -> Result<Option<Move>, Diagnostic> {
    let at_origin = buffer.elem_offset.as_const_int() == Some(0);
    let plain = buffer.strides.is_none() && at_origin;
    let groups = buffer.axis_separators.groups();
    if buffer.axis_separators.rank() != buffer.rank() {
        let message = format!("the axis separators of `{buffer}` belong to another layout than its shape");
        let help = "run apply_buffer_transforms first";
        return Err(Diagnostic::error("axis-separators", buffer.span, message).with_help(help));
    }
    if plain && buffer.axis_separators.is_flat() {
        return Ok(None);
    }
    if !plain && groups.len() > 1 {
        let message = format!("`{buffer}` has strides or an offset and several physical axes");
        let help = "strides and elem_offset are folded into the index of a buffer without axis separators only";
        return Err(Diagnostic::error("strided-axes", buffer.span, message).with_help(help));
    }
    grouped(buffer, &buffer.axis_separators, if is_param { "_flattened" } else { "" }, ranges).map(Some)
}

/// Returns the buffer with one axis for each group of axes between separators, and the map to it. Its name gets a suffix.
pub(super) fn grouped(
    buffer: &Buffer,
    separators: &AxisSeparators,
    suffix: &str,
    ranges: &Ranges,
) -> Result<Move, Diagnostic> {
    let plain = buffer.strides.is_none() && buffer.elem_offset.as_const_int() == Some(0);
    let groups = separators.groups();
    check_forwards(buffer)?;
    let ty = index_type(buffer)?;
    // All parts get the index type before they are multiplied: an int32 product could overflow on the way.
    let exact = |expr: &Expr| retyped(expr, ty, &|_| None);
    let shape: Vec<_> = buffer.shape.iter().map(exact).collect();
    let vars: Vec<_> = (0..buffer.rank()).map(|axis| Var::new(format!("i{axis}"), ty)).collect();
    let indices: Vec<_> = vars.iter().map(Expr::from).collect();
    let (outputs, extents) = if plain {
        let numerals = groups.iter().map(|group| row_major(&indices[group.clone()], &shape[group.clone()], ty));
        let sizes = groups.iter().map(|group| n_elements(&shape[group.clone()], ranges, ty));
        (numerals.collect::<Vec<_>>(), sizes.collect::<Vec<_>>())
    } else {
        folded(buffer, &indices, &shape, ty)
    };
    let inner = vars.iter().zip(&buffer.shape).fold(ranges.clone(), |ranges, (var, extent)| ranges.with(var, extent));
    let outputs: Vec<_> = outputs.iter().map(|output| simplify(output, &inner)).collect();
    let shape: Vec<_> = if plain { extents } else { extents.iter().map(|extent| simplify(extent, ranges)).collect() };
    let after = buffer.with(|info| {
        info.name.push_str(suffix);
        info.axis_separators = separators.flattened();
        info.shape = shape;
        info.strides = None;
        info.elem_offset = Expr::Int { value: 0, ty };
    });
    let map = IndexMap::new(vars, buffer.shape.clone(), outputs, Vec::new());
    let map = map.map_err(|error| Diagnostic::error("index-map", buffer.span, error.to_string()))?;
    Ok(Move { before: buffer.clone(), after, map })
}

/// Refuses memory that an axis walks backwards: its last element is not the last one of the shape, and the extent of the flat
/// buffer would be too small.
fn check_forwards(buffer: &Buffer) -> Result<(), Diagnostic> {
    let strides = buffer.strides.iter().flatten().enumerate();
    let mut backwards =
        strides.filter_map(|(axis, stride)| Some((axis, stride.as_const_int().filter(|value| *value < 0)?)));
    backwards.next().map_or(Ok(()), |(axis, stride)| {
        let message = format!("`{buffer}` has the stride {stride} along axis {axis}, which walks its memory backwards");
        let help =
            "give the buffer strides of at least 0, and count backwards in the index: `A[4 - i, j]` for an extent of 5";
        Err(Diagnostic::error("negative-stride", buffer.span, message).with_help(help))
    })
}

/// Returns the index type: `int64` if an extent has that type or if a buffer of constant shape needs it, else `int32`.
fn index_type(buffer: &Buffer) -> Result<ScalarType, Diagnostic> {
    let too_large = |error: tilewright_ir::SizeError| {
        Diagnostic::error("buffer-size", buffer.span, format!("buffer `{buffer}` cannot be flattened: {error}"))
    };
    let strides = buffer.strides.iter().flatten();
    let mut parts = buffer.shape.iter().chain(strides).chain(std::iter::once(&buffer.elem_offset));
    let mut wide = parts.any(|part| part.dtype() == DataType::scalar(ScalarType::Int64));
    if let Some(extents) = buffer.const_shape() {
        let mut size = checked_size(&extents).map_err(too_large)?;
        if let Some(strides) = &buffer.strides {
            let reach = extents.iter().zip(strides).map(|(extent, stride)| {
                Some(checked_size(&[(*extent - 1).max(0), stride.as_const_int().unwrap_or(1)]))
            });
            for part in reach.flatten() {
                size = size.saturating_add(part.map_err(too_large)?);
            }
        }
        let offset = buffer.elem_offset.as_const_int().unwrap_or(0);
        // The largest index decides the type, and strides and the offset move it beyond the number of elements.
        let end = i128::from(size) + offset;
        if end > i128::from(i64::MAX) {
            return Err(too_large(tilewright_ir::SizeError::Overflow));
        }
        wide |= end > i128::from(i32::MAX);
    }
    Ok(if wide { ScalarType::Int64 } else { ScalarType::Int32 })
}

/// `(i0 * n1 + i1) * n2 + i2`; 0 without axes.
fn row_major(indices: &[Expr], shape: &[Expr], ty: ScalarType) -> Expr {
    let steps = indices.iter().zip(shape).map(|(index, extent)| (index.clone(), extent.clone()));
    let numeral = steps.reduce(|(outer, before), (index, extent)| {
        let stride = if sabotage::on("flatten-swaps-strides") { before } else { extent.clone() };
        let moved = outer * stride;
        (if sabotage::on("flatten-commutes") { index + moved } else { moved + index }, extent)
    });
    numeral.map_or(Expr::Int { value: 0, ty }, |(numeral, _)| numeral)
}

/// The number of elements; 1 without axes.
fn product(shape: &[Expr], ty: ScalarType) -> Expr {
    shape.iter().cloned().reduce(|product, extent| product * extent).unwrap_or(Expr::Int { value: 1, ty })
}

/// Returns index and extent of a buffer with strides or an offset. The extent is one more than the largest index.
fn folded(buffer: &Buffer, indices: &[Expr], shape: &[Expr], ty: ScalarType) -> (Vec<Expr>, Vec<Expr>) {
    let exact = |expr: &Expr| retyped(expr, ty, &|_| None);
    let zero = Expr::Int { value: 0, ty };
    let offset = if sabotage::on("flatten-forgets-offset") { zero } else { exact(&buffer.elem_offset) };
    let one = Expr::Int { value: 1, ty };
    let Some(strides) = &buffer.strides else {
        let numeral = row_major(indices, shape, ty) + offset.clone();
        return (vec![numeral], vec![product(shape, ty) + offset]);
    };
    let along = |(index, stride): (Expr, &Expr)| index * exact(stride);
    let sum = |start: Expr, parts: Vec<Expr>| parts.into_iter().fold(start, |sum, part| sum + part);
    let index = sum(offset.clone(), indices.iter().cloned().zip(strides).map(along).collect());
    let last = shape.iter().map(|extent| extent.clone() - one.clone());
    let end = sum(offset + one.clone(), last.zip(strides).map(along).collect());
    (vec![index], vec![end])
}
