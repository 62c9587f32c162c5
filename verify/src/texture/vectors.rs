//! Obligation lanes: what a vector access touches.
//!
//! A texel is read whole or one channel at a time, and written whole: an image has no store of one channel of several, and none
//! of a part. Elsewhere a vector access may have any lanes that lie in the buffer, and a store writes different elements with
//! them.

use tilewright_ir::{BinaryOp, Buffer, Expr, PrimFunc, StmtKind, Var};

use super::no_texels;
use crate::access::{Access, accesses, at_point, bounds, lane_of};
use crate::door::{All, inspected};
use crate::judge::{Decision, Judge, Report};
use crate::method::Method;
use crate::obligation::Obligation;
use crate::pass::holds;
use crate::path::{Site, Step, sites};
use crate::verdict::Verdict;
use crate::words::describe;

impl Judge {
    /// Decides `lanes` for every statement with a vector access, and for every store to a texel.
    pub(crate) fn check_lanes(&self, func: &PrimFunc) -> Vec<Report> {
        let report = |site: &Site<'_>| {
            let found = vectors(site);
            let texel_store = matches!(&site.stmt.kind, StmtKind::Store { buffer, .. } if is_texels(buffer));
            if found.is_empty() && !texel_store {
                return None;
            }
            Some(Self::report(Obligation::Lanes, describe(site.stmt), || lanes(self, site, &found)))
        };
        sites(func).iter().filter_map(report).collect()
    }
}

/// Whether a buffer consists of texels.
pub(super) fn is_texels(buffer: &Buffer) -> bool {
    no_texels(buffer).is_none()
}

/// A vector access as it is written.
struct Vector<'a> {
    buffer: &'a Buffer,
    indices: &'a [Expr],
    writes: bool,
}

fn vectors<'a>(site: &'a Site<'_>) -> Vec<Vector<'a>> {
    let is_vector = |indices: &[Expr]| indices.iter().any(|index| !index.dtype().is_scalar());
    let mut found = Vec::new();
    for expr in site.stmt.exprs() {
        expr.walk(&mut |part| {
            if let Expr::Load { buffer, indices } = part
                && is_vector(indices)
            {
                found.push(Vector { buffer, indices, writes: false });
            }
        });
    }
    if let StmtKind::Store { buffer, indices, .. } = &site.stmt.kind
        && is_vector(indices)
    {
        found.push(Vector { buffer, indices, writes: true });
    }
    found
}

fn lanes(judge: &Judge, site: &Site<'_>, vectors: &[Vector<'_>]) -> Decision {
    if let StmtKind::Store { buffer, indices, .. } = &site.stmt.kind
        && is_texels(buffer)
        && !indices.iter().any(|index| !index.dtype().is_scalar())
        && channels_of(buffer) != Some(1)
    {
        let text = format!("`{buffer}` is written one channel at a time, but a store to an image writes a whole texel");
        return refuted(site, text);
    }
    let mut contiguous = true;
    let mut all = All::default();
    for vector in vectors {
        let (last, before) = (&vector.indices[vector.indices.len() - 1], &vector.indices[..vector.indices.len() - 1]);
        if before.iter().any(|index| !index.dtype().is_scalar()) {
            return refuted(site, format!("an index of `{}` that is not the last one has lanes", vector.buffer));
        }
        if is_texels(vector.buffer) && !is_whole_texel(vector.buffer, last) {
            let does = if vector.writes { "writes" } else { "reads" };
            let all = vector.buffer.shape[vector.buffer.shape.len() - 1].clone();
            let text = format!("`{last}` {does} other lanes of `{}` than its {all} channels in order", vector.buffer);
            return refuted(site, text);
        }
        contiguous &= stride(last) == Some(1);
        if vector.writes {
            match distinct(judge, site, last) {
                (Verdict::Proved(grounds), _) => all.add(grounds),
                other => return other,
            }
        }
    }
    in_range(judge, site, vectors, (contiguous, all))
}

/// The number of channels of a buffer of texels.
fn channels_of(buffer: &Buffer) -> Option<i128> {
    buffer.shape.last().and_then(Expr::as_const_int)
}

/// Whether an index with lanes is the ramp over all channels in order.
fn is_whole_texel(buffer: &Buffer, index: &Expr) -> bool {
    matches!(index, Expr::Ramp { base, lanes, .. }
        if base.as_const_int() == Some(0) && channels_of(buffer) == Some((*lanes).into()))
        && stride(index) == Some(1)
}

fn stride(index: &Expr) -> Option<i128> {
    if let Expr::Ramp { stride, .. } = index { stride.as_const_int() } else { None }
}

/// Different lanes of a store have different elements.
fn distinct(judge: &Judge, site: &Site<'_>, index: &Expr) -> Decision {
    if stride(index).is_some_and(|stride| stride != 0) {
        return (inspected(), Method::Inspection("ramp"));
    }
    let [a, b] = ["lane", "lane'"].map(Var::index);
    let mut path = site.path.clone();
    for var in [&a, &b] {
        path.steps.push(Step::Loop(var.clone(), Expr::int(0), Expr::int(index.dtype().lanes.into())));
    }
    path.steps.push(Step::Guard(Expr::from(&a).lt(Expr::from(&b)), true));
    let [one, other] = [a, b].map(|lane| lane_of(index, &Expr::from(lane)));
    holds(judge, &path, &Expr::binary(BinaryOp::Ne, one, other))
}

/// Every lane lies in its buffer.
fn in_range(judge: &Judge, site: &Site<'_>, vectors: &[Vector<'_>], (contiguous, mut all): (bool, All)) -> Decision {
    let touched = |access: &Access| vectors.iter().any(|vector| *vector.buffer == access.buffer);
    for access in accesses(site).iter().filter(|access| touched(access)) {
        match bounds(judge, access) {
            (Verdict::Proved(grounds), _) => all.add(grounds),
            other => return other,
        }
    }
    let texels = vectors.iter().any(|vector| is_texels(vector.buffer));
    let method = match (contiguous, texels) {
        (true, true) => "whole texels and contiguous vectors, in range",
        (true, false) => "contiguous vectors, in range",
        (false, _) => "in range, and different elements where it is written",
    };
    (all.proved(), Method::Inspection(method))
}

fn refuted(site: &Site<'_>, text: String) -> Decision {
    let at = site.path.samples(1).into_iter().next().unwrap_or_default();
    (Verdict::Refuted(at_point(&site.path, &at, text)), Method::Structure)
}
