//! The map of a format, made as a schedule would make it: parts are fused into their axes, and each axis is split by its
//! innermost block, then what is left by the next one.

use tilewright_ir::{Diagnostic, Expr, IndexMap, ScalarType, SharedExpr, Var};

use super::digits::number;
use super::index_map;
use super::name::{AxisPart, Format};
use tilewright_algebra::{Ranges, simplify};

/// The map from the indices of `source` to those of `target`, whose axes are the same and numbered alike.
pub(super) fn map(source: &Format, target: &Format, shape: &[Expr]) -> Result<IndexMap, Diagnostic> {
    check_shape(source, shape)?;
    let wide = shape.iter().any(|extent| extent.dtype().scalar != ScalarType::Int32);
    let ty = if wide { ScalarType::Int64 } else { ScalarType::Int32 };
    let domain: Vec<Expr> = shape.iter().map(|extent| typed(extent, ty)).collect();
    let vars: Vec<Var> = source.places.iter().map(|place| Var::new(var_name(source, *place), ty)).collect();
    let mut parts: Vec<Vec<Expr>> = Vec::new();
    for (position, axis) in target.axes.iter().enumerate() {
        let mut rest = fused(source, position, &vars, ty);
        let mut levels = Vec::new();
        for &block in axis.blocks.iter().rev() {
            levels.push(rest.clone().floor_mod(number(block, ty)));
            rest = rest.floor_div(number(block, ty));
        }
        levels.push(rest);
        levels.reverse();
        parts.push(levels);
    }
    let ranges = vars.iter().zip(&domain).fold(Ranges::new(), |ranges, (var, extent)| ranges.with(var, extent));
    let outputs = target.places.iter().map(|place| simplify(&parts[place.axis][place.level], &ranges)).collect();
    index_map(IndexMap::new(vars, domain, outputs, Vec::new()))
}

/// Writes an axis in terms of its parts in the source, the outermost first.
fn fused(source: &Format, axis: usize, vars: &[Var], ty: ScalarType) -> Expr {
    let mut fused: Option<Expr> = None;
    for (level, block) in [1].iter().chain(&source.axes[axis].blocks).enumerate() {
        let position = source.places.iter().position(|place| *place == AxisPart { axis, level });
        let part = position.map_or_else(|| number(0, ty), |position| Expr::from(&vars[position]));
        fused = Some(match fused {
            None => part,
            Some(high) => high * number(*block, ty) + part,
        });
    }
    fused.unwrap_or_else(|| number(0, ty))
}

/// An extent in another type.
pub(super) fn typed(extent: &Expr, ty: ScalarType) -> Expr {
    let constant = extent.as_const_int().and_then(|value| Expr::int_of(value, ty));
    match constant {
        Some(constant) => constant,
        None if extent.dtype().scalar == ty => extent.clone(),
        None => Expr::Cast(ty.into(), SharedExpr::new(extent.clone())),
    }
}

/// Checks that a shape has one extent for each part of the format, and that blocks have their size.
fn check_shape(source: &Format, shape: &[Expr]) -> Result<(), Diagnostic> {
    let spelled: String = source.places.iter().map(|place| spelled(source, *place)).collect();
    if shape.len() != source.places.len() {
        let message = format!("{spelled} has {} axes, but the shape has {}", source.places.len(), shape.len());
        let help = format!("give one extent for each of {spelled}, in this order");
        return Err(Diagnostic::error("format-rank", None, message).with_help(help));
    }
    for (place, extent) in source.places.iter().zip(shape) {
        let Some(block) = place.level.checked_sub(1).map(|at| source.axes[place.axis].blocks[at]) else { continue };
        if extent.as_const_int() != Some(block.into()) {
            let message = format!(
                "the block {} has {block} elements, but the shape says {extent}",
                spelled_part(block, source, *place)
            );
            return Err(
                Diagnostic::error("format-block", None, message).with_help("a block has the extent that its name says")
            );
        }
    }
    Ok(())
}

/// A block in TVM's notation, such as `4c`.
fn spelled_part(block: i64, source: &Format, place: AxisPart) -> String {
    format!("{block}{}", source.axes[place.axis].letter.to_ascii_lowercase())
}

/// A part of an axis in TVM's notation.
fn spelled(source: &Format, place: AxisPart) -> String {
    match place.level.checked_sub(1).map(|at| source.axes[place.axis].blocks[at]) {
        None => source.axes[place.axis].letter.to_string(),
        Some(block) => spelled_part(block, source, place),
    }
}

/// `c` for an axis without blocks; `c_outer`, `c_inner`, or with several blocks `c_inner1`, `c_inner2`.
fn var_name(source: &Format, place: AxisPart) -> String {
    let axis = &source.axes[place.axis];
    let small = axis.letter.to_ascii_lowercase();
    match (axis.blocks.len(), place.level) {
        (0, _) => small.to_string(),
        (_, 0) => format!("{small}_outer"),
        (1, _) => format!("{small}_inner"),
        (_, level) => format!("{small}_inner{level}"),
    }
}
