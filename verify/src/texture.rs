//! Obligations of a buffer that became a texture of texels.
//!
//! What a texture is, stated here by itself and in terms of named axes (texture RFC, "Texture Layout"; RFC 39 for the
//! separators). With `start` axes before the columns, and `r` axes in all:
//!
//! ```text
//! row    = sum of axis k times the extents of the axes after k and before start,  for k in 0 .. start
//! column = sum of axis k times the extents of the axes after k and before r - 1,  for k in start .. r - 1
//! lane   = axis r - 1, of extent 1, 2 or 4
//! ```
//!
//! | id | here |
//! |---|---|
//! | specification | the claimed map is this one, and the texture has exactly the rows and columns that it reaches |
//! | texture | it is a texel buffer of the same scope and type; row, column and lane are in range; no extent above the limit |

mod cover;
mod program;
mod vectors;

use std::ops::Range;

use tilewright_ir::{
    Bindings, Buffer, BufferChange, BufferClaim, Evidence, Expr, IndexMap, PrimFunc, ScalarType, Scope, SharedExpr,
    TextureLimits, Var,
};

use crate::concrete::instances;
use crate::door::inspected;
use crate::judge::{Decision, Judge, Report, free_vars, unsupported};
use crate::map::{MapClaim, decide};
use crate::method::Method;
use crate::obligation::Obligation;
use crate::pass::all_equal;
use crate::verdict::{Counterexample, Verdict};

/// Every buffer that is claimed to be a texture now.
pub(crate) fn requested(judge: &Judge, before: &PrimFunc, after: &PrimFunc, evidence: &Evidence) -> Vec<Report> {
    let claims: Vec<_> = evidence.buffers.iter().filter(|claim| claim.change == BufferChange::Texture).collect();
    let limits = before.attrs.texture_limits.unwrap_or(TextureLimits::PROMISED);
    let mut reports = Vec::new();
    if !claims.is_empty() || before.attrs.texture_limits != after.attrs.texture_limits {
        reports.push(Judge::report(Obligation::Texture, "the limits of the device stay", || {
            match (before.attrs.texture_limits, after.attrs.texture_limits) {
                (old, new) if old == new => (inspected(), Method::Inspection("same limits")),
                (old, new) => {
                    let shown =
                        |limits: Option<TextureLimits>| limits.map_or("none".to_owned(), |limits| limits.to_string());
                    refuted(format!("the limits were {} and are {}", shown(old), shown(new)))
                }
            }
        }));
    }
    let scalars = before.scalars();
    for claim in claims {
        let subject = format!("{} -> {}: {}", claim.before, claim.after, claim.map);
        reports
            .push(Judge::report(Obligation::Specification, subject.clone(), || specification(judge, claim, &scalars)));
        reports.push(Judge::report(Obligation::Texture, subject, || texture(judge, claim, limits, &scalars)));
    }
    reports
}

fn refuted(text: String) -> Decision {
    (Verdict::Refuted(Counterexample { text, ..Counterexample::default() }), Method::Structure)
}

fn unknown(reason: impl Into<String>) -> Decision {
    unsupported(reason)
}

/// Number of axes in the rows.
fn rows(buffer: &Buffer) -> Result<usize, String> {
    let rank = buffer.shape.len();
    let no_texture = |why: String| Err(format!("`{buffer}` in scope `{}` is no texture: {why}", buffer.scope));
    let (conventional, least) = match buffer.scope {
        Scope::Texture => (rank.saturating_sub(2), 3),
        Scope::TextureWeight => (1, 3),
        Scope::TextureNhwc => (2, 4),
        Scope::Global | Scope::Shared | Scope::Local => return no_texture("the scope is none of textures".into()),
    };
    if rank < least {
        return no_texture(format!("it has {rank} axes"));
    }
    let start = match *buffer.axis_separators.positions() {
        [] => conventional,
        [start] if start + 1 < rank => start,
        [start, channel] if channel + 1 == rank => start,
        ref others => return no_texture(format!("its separators are {others:?}")),
    };
    if buffer.scope != Scope::Texture && start != conventional {
        return no_texture(format!("its columns start after axis {start}, those of the scope after {conventional}"));
    }
    if buffer.axis_separators.rank() != rank {
        return no_texture("its separators are those of another layout".into());
    }
    Ok(start)
}

/// An expression in a type; constants are of it already.
fn in_type(expr: &Expr, ty: ScalarType) -> Expr {
    match expr.as_const_int() {
        Some(value) => Expr::Int { value, ty },
        None if expr.dtype().scalar == ty => expr.clone(),
        None => Expr::Cast(ty.into(), SharedExpr::new(expr.clone())),
    }
}

fn product(factors: impl Iterator<Item = Expr>, ty: ScalarType) -> Expr {
    factors.reduce(|product, factor| product * factor).unwrap_or(Expr::Int { value: 1, ty })
}

/// What the texture's coordinates are, and its height and width.
fn meaning(buffer: &Buffer, vars: &[Var]) -> Result<(IndexMap, [Expr; 3]), String> {
    let (start, rank) = (rows(buffer)?, buffer.shape.len());
    let ty = vars.first().map_or(ScalarType::Int32, |var| var.dtype().scalar);
    let extent = |axis: usize| in_type(&buffer.shape[axis], ty);
    let place = |axes: Range<usize>| {
        let weighted = axes.clone().map(|axis| {
            let after = product((axis + 1..axes.end).map(extent), ty);
            if after.as_const_int() == Some(1) { Expr::from(&vars[axis]) } else { Expr::from(&vars[axis]) * after }
        });
        weighted.reduce(|sum, part| sum + part).unwrap_or(Expr::Int { value: 0, ty })
    };
    let outputs = vec![place(0..start), place(start..rank - 1), Expr::from(&vars[rank - 1])];
    let map =
        IndexMap::new(vars.to_vec(), buffer.shape.clone(), outputs, Vec::new()).map_err(|error| error.to_string())?;
    let extents = [product((0..start).map(extent), ty), product((start..rank - 1).map(extent), ty), extent(rank - 1)];
    Ok((map, extents))
}

/// The claimed map and shape are the ones stated here.
fn specification(judge: &Judge, claim: &BufferClaim, scalars: &[Var]) -> Decision {
    if claim.map.vars().len() != claim.before.rank() || claim.map.outputs().len() != 3 || claim.after.rank() != 3 {
        return unknown("the map has another rank than the buffers");
    }
    let (map, extents) = match meaning(&claim.before, claim.map.vars()) {
        Ok(meaning) => meaning,
        Err(reason) => return unknown(reason),
    };
    let pairs: Vec<_> = extents.into_iter().zip(claim.after.shape.iter().cloned()).collect();
    let whole = all_equal(judge, claim, scalars, &pairs);
    if !whole.0.is_proved() {
        return whole;
    }
    decide(
        judge,
        Obligation::Specification,
        MapClaim::new(&claim.map, &claim.after.shape).meaning(&map).scalars(scalars),
    )
}

/// The buffer is a texture that the device can have, and everything lies in it.
fn texture(judge: &Judge, claim: &BufferClaim, limits: TextureLimits, scalars: &[Var]) -> Decision {
    let (before, after) = (&claim.before, &claim.after);
    if before.dtype != after.dtype || before.scope != after.scope {
        return refuted(format!(
            "`{before}` is {} in scope `{}`, but `{after}` is {} in scope `{}`",
            before.dtype, before.scope, after.dtype, after.scope
        ));
    }
    if let Some(reason) = no_texels(after) {
        return refuted(reason);
    }
    let inside = decide(judge, Obligation::Bounds, MapClaim::new(&claim.map, &after.shape).scalars(scalars));
    if !inside.0.is_proved() {
        return inside;
    }
    let within = within(after, limits);
    match (inside, within) {
        ((Verdict::Proved(one), how), (Verdict::Proved(two), other)) => {
            (Verdict::Proved(one.and(two)), Method::Each(vec![how, other]))
        }
        (_, open) => open,
    }
}

/// Why a buffer does not consist of texels; none if it does.
pub(crate) fn no_texels(buffer: &Buffer) -> Option<String> {
    let channels = matches!(
        buffer.dtype.scalar,
        ScalarType::Float16
            | ScalarType::Float32
            | ScalarType::Int8
            | ScalarType::Int16
            | ScalarType::Int32
            | ScalarType::UInt8
            | ScalarType::UInt16
            | ScalarType::UInt32
    );
    let texels = matches!(buffer.scope, Scope::Texture | Scope::TextureWeight | Scope::TextureNhwc);
    let [_, _, lanes] = buffer.shape.as_slice() else {
        return Some(format!("`{buffer}` has {} axes, not height, width and channels", buffer.shape.len()));
    };
    if !matches!(lanes.as_const_int(), Some(1 | 2 | 4)) {
        return Some(format!("`{buffer}` has {lanes} channels, not 1, 2 or 4"));
    }
    if !texels || !channels || buffer.dtype.lanes != 1 {
        return Some(format!("`{buffer}` of {} in scope `{}` has no texels", buffer.dtype, buffer.scope));
    }
    if buffer.strides.is_some() || buffer.elem_offset.as_const_int() != Some(0) {
        return Some(format!("`{buffer}` has strides or an offset, texels have none"));
    }
    (buffer.axis_separators.positions() != [1, 2]).then(|| format!("`{buffer}` is not separated between all axes"))
}

/// Height and width are at most what the device has; of symbolic extents the launch checks it.
fn within(buffer: &Buffer, limits: TextureLimits) -> Decision {
    let mut symbolic = false;
    for (extent, limit, word) in [(0, limits.height, "height"), (1, limits.width, "width")] {
        let extent = &buffer.shape[extent];
        let limit = i128::from(limit);
        if let Some(value) = extent.as_const_int() {
            if value > limit {
                return refuted(format!("`{buffer}` has the {word} {value}, the limit is {limit} (limits {limits})"));
            }
            continue;
        }
        let symbols = free_vars([extent], &[]);
        symbolic |= !symbols.is_empty();
        if symbols.is_empty()
            && let Err(error) = extent.eval_index(&Bindings::new())
        {
            return unknown(format!("the {word} of `{buffer}` has no value: {error}"));
        }
        let above = |symbols: &Bindings| extent.eval_index(symbols).is_ok_and(|value| value > limit);
        let all = instances(&symbols);
        if let Some(smallest) = all.first().filter(|_| all.iter().all(above)) {
            let value = extent.eval_index(smallest).unwrap_or(limit + 1);
            let text = format!(
                "`{buffer}` has the {word} {value} on the smallest shape, the limit is {limit} (limits {limits})"
            );
            let shape = symbols.iter().map(|symbol| (symbol.name().to_owned(), smallest[symbol])).collect();
            return (Verdict::Refuted(Counterexample { shape, text, ..Counterexample::default() }), Method::Evaluation);
        }
    }
    (inspected(), if symbolic { Method::CheckedAtLaunch(limits) } else { Method::WithinLimits(limits) })
}
