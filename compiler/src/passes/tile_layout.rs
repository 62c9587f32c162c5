//! Puts buffers into the XLA layouts that a function asks for in `tile_layout`.
//!
//! ```text
//! # tile_layout = {A: "{1,0:T(2,4)}"}         # A: Buffer((3, 3, 2, 4)), whole tiles of [5, 11]
//! # A: Buffer((5, 11))
//! A[i, j]                               ->    A[i // 2, j // 4, i % 2, j % 4]
//! ```
//!
//! The physical axes are those after the last tile; flattening them gives XLA's linear index. If there is a pad value, a
//! loop nest over the whole buffer stores it in the padding before any other access; for a parameter that is only read, the
//! caller has to fill the padding. Without a pad value the padding is undefined and never read. The attribute is removed,
//! so a second run changes nothing. Cost: one walk.

use std::sync::Arc;

use tilewright_ir::sabotage;
use tilewright_ir::visit::{Rewrite, Substitution};
use tilewright_ir::{
    AxisSeparators, Buffer, BufferChange, BufferClaim, Diagnostic, Evidence, Expr, ForKind, PadFill, PrimFunc, Scope,
    Span, Stmt, StmtKind, TileRequest, Var,
};

use super::Rewritten;
use super::apply_buffer_transforms::{agrees, is_compact};
use super::remap::relaid;
use crate::formats::{Tiled, tiled};

/// Applies and removes the requests for tiled layouts.
///
/// # Errors
/// A layout does not fit the shape of its buffer, an alias differs in shape or element width, the buffer has strides or an
/// offset, it has other transformations that must be applied first, a pad value is not of the element type.
pub fn tile_layout(func: &PrimFunc) -> Result<Rewritten, Vec<Diagnostic>> {
    let (mut claims, mut fills, mut found) = (Vec::new(), Vec::new(), Vec::new());
    for (position, (data, request)) in func.attrs.tile_layout.iter().enumerate() {
        let earlier = &func.attrs.tile_layout[..position];
        match check_request(func, data, earlier).and_then(|()| moved(func, data, request)) {
            Ok((new, fill)) => {
                claims.extend(new);
                fills.extend(fill);
            }
            Err(error) => found.push(error),
        }
    }
    if !found.is_empty() {
        return Err(found);
    }
    let mut after = relaid(func, &claims).map_err(|error| vec![error])?;
    after.attrs.tile_layout.clear();
    after.body = filled(&after, &fills);
    let evidence = Evidence { pass: "tile_layout".to_owned(), buffers: claims, fills, ..Evidence::default() };
    Ok(Rewritten { func: after, evidence, notes: Vec::new() })
}

/// Adds a request in text form, `A:{1,0:T(8,128)}`, to a function.
///
/// # Errors
/// No such buffer, or a layout that cannot be read.
pub(super) fn request(func: &mut PrimFunc, text: &str) -> Result<(), Diagnostic> {
    let wrong = |message: String| {
        Diagnostic::error("tile-layout", None, message).with_help("such as `tile_layout=A:{1,0:T(8,128)(2,1)}`")
    };
    let Some((name, layout)) = text.split_once(':') else {
        return Err(wrong(format!("`{text}` names no buffer and layout")));
    };
    let buffers = func.buffers();
    let Some(buffer) = buffers.iter().find(|buffer| buffer.name == name.trim()) else {
        let listed: Vec<_> = buffers.iter().map(|buffer| buffer.name.as_str()).collect();
        return Err(wrong(format!("`{}` has no buffer `{}`", func.name, name.trim()))
            .with_help(format!("its buffers are {}", listed.join(", "))));
    };
    let rank = func.attrs.final_rank(&buffer.data, buffer.rank());
    let read = tilewright_script::read_xla_layout(layout, rank);
    // The reader sees only the layout, so its positions are shifted by the name and the colon.
    let shift = u32::try_from(name.len() + 1).unwrap_or(0);
    let layout = read.map_err(|found| {
        let mut fault = found.into_iter().next().unwrap_or_else(|| wrong(format!("`{layout}` is no layout")));
        for label in &mut fault.labels {
            label.span = Span::new(label.span.start + shift, label.span.end + shift);
        }
        fault
    })?;
    let (data, request) = (buffer.data.clone(), TileRequest { layout, pad_value: None });
    let rank = request.physical_rank();
    func.attrs.tile_layout.push((data.clone(), request));
    reset_separators(func, &data, rank);
    Ok(())
}

/// Removes the axis separators of all buffers on the memory `data`: separators belong to the axes of the last layout.
fn reset_separators(func: &mut PrimFunc, data: &Var, rank: usize) {
    let all: Vec<Buffer> = func.buffers().into_iter().filter(|buffer| buffer.data == *data).collect();
    let none = |buffer: &Buffer| buffer.with(|info| info.axis_separators = AxisSeparators::none(rank));
    let mut renamed = Replace { pairs: all.iter().map(|buffer| (buffer.clone(), none(buffer))).collect() };
    for (_, buffer) in &mut func.buffer_map {
        *buffer = renamed.replacement_for(buffer);
    }
    let Ok(body) = renamed.stmt(&func.body);
    func.body = body;
}

/// Replaces buffers by others.
struct Replace {
    pairs: Vec<(Buffer, Buffer)>,
}

impl Replace {
    /// Returns the buffer that replaces `buffer`, or `buffer` itself.
    fn replacement_for(&self, buffer: &Buffer) -> Buffer {
        self.pairs.iter().find(|(old, _)| old == buffer).map_or_else(|| buffer.clone(), |(_, new)| new.clone())
    }
}

impl Rewrite for Replace {
    type Error = std::convert::Infallible;

    fn buffer(&mut self, buffer: &Buffer) -> Result<Buffer, Self::Error> {
        Ok(self.replacement_for(buffer))
    }
}

/// Checks that the memory has only one request, and no layout transformation that must be applied first.
fn check_request(func: &PrimFunc, data: &Var, earlier: &[(Var, TileRequest)]) -> Result<(), Diagnostic> {
    if earlier.iter().any(|(other, _)| other == data) {
        let message = format!("`{data}` appears twice in tile_layout");
        return Err(Diagnostic::error("duplicate-transform", None, message).with_help("a buffer has one tiled layout"));
    }
    if func.attrs.layout_transform_map.iter().any(|(other, maps)| other == data && !maps.is_empty()) {
        let message = format!("`{data}` has transformations that come before its tiled layout");
        return Err(Diagnostic::error("pass-order", None, message).with_help("run apply_buffer_transforms first"));
    }
    Ok(())
}

/// Returns the claims for all buffers on one memory, and the claim about the padding if it has a value.
fn moved(
    func: &PrimFunc,
    data: &Var,
    request: &TileRequest,
) -> Result<(Vec<BufferClaim>, Option<PadFill>), Diagnostic> {
    let aliases: Vec<_> = func.buffers().into_iter().filter(|buffer| buffer.data == *data).collect();
    let Some(first) = aliases.first() else {
        let message = format!("tile_layout names `{data}`, but no buffer lives there");
        return Err(Diagnostic::error("unknown-buffer", None, message));
    };
    let tiled = tiled(&request.layout, &first.shape).map_err(|mut fault| {
        fault.message = format!("`{first}` does not fit its tiled layout: {}", fault.message);
        fault
    })?;
    let mut claims = Vec::new();
    for alias in &aliases {
        agrees(first, alias)?;
        claims.push(claim(alias, &tiled)?);
    }
    let fill = match (request.pad_value, claims.first()) {
        (Some(_), Some(claim)) => Some(fill(func, &aliases, claim, request, tiled)?),
        _ => None,
    };
    Ok((claims, fill))
}

/// Returns the claim that a buffer moves to its tiled layout.
fn claim(buffer: &Buffer, tiled: &Tiled) -> Result<BufferClaim, Diagnostic> {
    if buffer.elem_offset.as_const_int() != Some(0) || !is_compact(buffer) {
        let message = format!("`{buffer}` has strides or an offset, so its layout cannot be changed");
        let help = "tile the whole, compact buffer";
        return Err(Diagnostic::error("strided-layout", buffer.span, message).with_help(help));
    }
    if buffer.axis_separators.rank() != tiled.shape.len() && !buffer.axis_separators.is_empty() {
        let message = format!("`{buffer}` has axis separators that do not fit its tiled layout");
        return Err(Diagnostic::error("axis-separators", buffer.span, message));
    }
    let separators = AxisSeparators::new(buffer.axis_separators.positions().to_vec(), tiled.shape.len());
    let separators = separators.unwrap_or_else(|_| AxisSeparators::none(tiled.shape.len()));
    let after = buffer.with(|info| {
        info.shape.clone_from(&tiled.shape);
        info.strides = None;
        info.axis_separators = separators;
    });
    let (map, padded_axes) = (tiled.map.clone(), tiled.padded_axes.clone());
    Ok(BufferClaim { before: buffer.clone(), after, map, change: BufferChange::Layout, padded_axes })
}

/// Returns the claim about the value of the padding of a buffer.
fn fill(
    func: &PrimFunc,
    aliases: &[Buffer],
    claim: &BufferClaim,
    request: &TileRequest,
    tiled: Tiled,
) -> Result<PadFill, Diagnostic> {
    let buffer = &claim.before;
    let wrong =
        |message: String, help: &str| Diagnostic::error("pad-value", buffer.span, message).with_help(help.to_owned());
    if let Some(other) = aliases.iter().find(|alias| alias.dtype != buffer.dtype) {
        let message = format!("`{other}` sees the padding of `{buffer}` as {}, not as {}", other.dtype, buffer.dtype);
        return Err(wrong(message, "leave the pad value out: aliases of other types would see another value"));
    }
    if !matches!(buffer.scope, Scope::Global) {
        let message = format!("the padding of `{buffer}` in {} memory cannot be given a value", buffer.scope);
        return Err(wrong(message, "leave the pad value out, or keep the buffer in global memory"));
    }
    let Some(value) = request.pad_expr(buffer.dtype) else {
        let message = format!("the pad value of `{buffer}` is no {}", buffer.dtype);
        return Err(wrong(message, "give a number that the element type has"));
    };
    let is_param = func.buffer_map.iter().any(|(_, param)| param == buffer);
    // A parameter that the function only reads arrives with its padding filled by the caller.
    let mut is_written = false;
    func.body.walk(&mut |stmt| {
        is_written |= matches!(&stmt.kind, StmtKind::Store { buffer: stored, .. } if stored.data == buffer.data);
    });
    Ok(PadFill { buffer: claim.after.clone(), inverse: tiled.inverse, value, by_host: is_param && !is_written })
}

/// Returns the body with a loop nest for each padding that the function has to write.
pub(crate) fn filled(func: &PrimFunc, fills: &[PadFill]) -> Stmt {
    let has_padding = |fill: &&PadFill| !matches!(fill.inverse.padding, Expr::Int { value: 0, .. });
    let wanted: Vec<&PadFill> = fills.iter().filter(|fill| !fill.by_host).filter(has_padding).collect();
    let is_param = |fill: &&&PadFill| func.buffer_map.iter().any(|(_, param)| *param == fill.buffer);
    let (at_start, allocated): (Vec<&PadFill>, Vec<&PadFill>) = wanted.iter().partition(|fill| is_param(fill));
    let Ok(body) = Insert { fills: &allocated }.stmt(&func.body);
    if at_start.is_empty() {
        return body;
    }
    Stmt::seq(at_start.into_iter().map(nest).chain([body]).collect())
}

/// Inserts the loop nests behind the allocations of their buffers.
struct Insert<'a> {
    fills: &'a [&'a PadFill],
}

impl Rewrite for Insert<'_> {
    type Error = std::convert::Infallible;

    fn stmt(&mut self, stmt: &Stmt) -> Result<Stmt, Self::Error> {
        let rewritten = self.stmt_children(stmt)?;
        let StmtKind::Allocate { buffer, body } = rewritten.kind else { return Ok(rewritten) };
        let fills = self.fills.iter().filter(|fill| fill.buffer == buffer).map(|fill| nest(fill));
        let body = Arc::new(Stmt::seq(fills.chain([Arc::unwrap_or_clone(body)]).collect()));
        Ok(Stmt { kind: StmtKind::Allocate { buffer, body }, span: rewritten.span })
    }
}

/// Returns loops over the whole buffer that store the pad value under the padding condition.
fn nest(fill: &PadFill) -> Stmt {
    let typed = |(axis, var): (usize, &Var)| Var::new(format!("p{axis}"), var.dtype());
    let vars: Vec<Var> = fill.inverse.vars.iter().enumerate().map(typed).collect();
    let index: Vec<Expr> = vars.iter().map(Expr::from).collect();
    let padding = Substitution::new(&fill.inverse.vars, index.iter().cloned()).apply(&fill.inverse.padding);
    let store = Stmt::guarded(padding, Stmt::store(&fill.buffer, index, fill.value.clone()));
    let reach = |extent: &Expr| match extent.as_const_int() {
        Some(all @ 2..) if sabotage::on("fill-misses-last") => Expr::Int { value: all - 1, ty: extent.dtype().scalar },
        _ => extent.clone(),
    };
    vars.iter()
        .zip(&fill.buffer.shape)
        .rev()
        .fold(store, |body, (var, extent)| Stmt::for_loop(var, reach(extent), ForKind::Serial, body))
}
