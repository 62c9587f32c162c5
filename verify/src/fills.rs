//! Padding that has a stated value, and buffers that are asked to be tiled.
//!
//! ```text
//! for p0, p1, p2, p3 in T.grid(3, 3, 2, 4):        a pass claims this nest: it runs over all of the physical box,
//!     if 5 <= p0 * 2 + p2 or 11 <= ...:            stores where the claimed padding predicate holds, and nowhere else,
//!         A[p0, p1, p2, p3] = 0.0                  and stands first where the memory comes to be
//! ```
//!
//! The nest is compared with the claim, part by part; that the predicate holds on exactly the elements that nothing maps to
//! is the obligation padding. So every element of the padding is written, before anything else, and no other is touched: the
//! program without the nest is what has to agree with the program before.

use std::sync::Arc;

use std::convert::Infallible;

use tilewright_ir::equal::same_operation;
use tilewright_ir::visit::{Rewrite, Substitution};
use tilewright_ir::{
    Buffer, BufferChange, BufferClaim, Evidence, Expr, ForKind, PadFill, PrimFunc, Stmt, StmtKind, TileRequest, Var,
};

use crate::claims::is_memory_of;
use crate::door::inspected;
use crate::judge::{Decision, Judge, Report, unsupported};
use crate::layout::order_and_tiles;
use crate::map::MapClaim;
use crate::method::Method;
use crate::obligation::Obligation;
use crate::pass::all_equal;

/// The program without the nests that are claimed to fill padding.
///
/// # Errors
/// Which nest is not where it is claimed to be.
pub(crate) fn without(after: &PrimFunc, evidence: &Evidence) -> Result<PrimFunc, String> {
    if evidence.fills.is_empty() {
        return Ok(after.clone());
    }
    let is_param = |buffer: &Buffer| after.buffer_map.iter().any(|(_, param)| param == buffer);
    let awaited = evidence.fills.iter().filter(|fill| !fill.by_host && !holds_nothing(fill));
    let mut strip = Strip { awaited: awaited.collect() };
    let body = strip.leading(&after.body, is_param);
    let Ok(body) = strip.stmt(&body);
    match strip.awaited.first() {
        Some(fill) => Err(format!("nothing at the start of `{}` writes its padding as claimed", fill.buffer)),
        None => Ok(PrimFunc { body, ..after.clone() }),
    }
}

/// Whether there is no padding, as the claim says; whether that is true is the obligation padding.
fn holds_nothing(fill: &PadFill) -> bool {
    matches!(fill.inverse.padding, Expr::Int { value: 0, .. })
}

struct Strip<'a> {
    awaited: Vec<&'a PadFill>,
}

impl Strip<'_> {
    /// The statements without the fills of some buffers at their start.
    fn leading(&mut self, body: &Stmt, of: impl Fn(&Buffer) -> bool) -> Stmt {
        let stmts = match &body.kind {
            StmtKind::Seq(stmts) => &**stmts,
            _ => std::slice::from_ref(body),
        };
        let mut rest = stmts;
        while let Some((first, others)) = rest.split_first() {
            let found = self.awaited.iter().position(|fill| of(&fill.buffer) && is_nest(first, fill));
            let Some(found) = found else { break };
            self.awaited.remove(found);
            rest = others;
        }
        if rest.len() == stmts.len() { body.clone() } else { Stmt::seq(rest.to_vec()) }
    }
}

impl Rewrite for Strip<'_> {
    type Error = Infallible;

    fn stmt(&mut self, stmt: &Stmt) -> Result<Stmt, Infallible> {
        let StmtKind::Allocate { buffer, body } = &stmt.kind else { return self.stmt_children(stmt) };
        let body = self.leading(body, |filled| filled == buffer);
        let body = Arc::new(self.stmt(&body)?);
        Ok(Stmt { kind: StmtKind::Allocate { buffer: buffer.clone(), body }, span: stmt.span })
    }
}

/// Whether a statement is the nest that a claim describes.
fn is_nest(stmt: &Stmt, fill: &PadFill) -> bool {
    let (mut at, mut vars): (&Stmt, Vec<Var>) = (stmt, Vec::new());
    for extent in &fill.buffer.shape {
        let StmtKind::For(inner) = &at.kind else { return false };
        let whole = inner.min.as_const_int() == Some(0) && inner.extent == *extent && inner.kind == ForKind::Serial;
        if !whole || vars.contains(&inner.var) {
            return false;
        }
        vars.push(inner.var.clone());
        at = &inner.body;
    }
    let index: Vec<Expr> = vars.iter().map(Expr::from).collect();
    let StmtKind::If { cond, then_body, else_body: None } = &at.kind else { return false };
    let padding = Substitution::new(&fill.inverse.vars, index.iter().cloned()).apply(&fill.inverse.padding);
    let StmtKind::Store { buffer, indices, value } = &then_body.kind else { return false };
    fill.inverse.vars.len() == vars.len()
        && *cond == padding
        && *buffer == fill.buffer
        && *indices == index
        && is_same_constant(value, &fill.value)
}

/// The same constant, bit for bit.
fn is_same_constant(a: &Expr, b: &Expr) -> bool {
    matches!(a, Expr::Int { .. } | Expr::Float { .. }) && same_operation(a, b)
}

impl Judge {
    /// What is claimed of padding: which it is (inverse, padding), and that it is written or passed in.
    pub(crate) fn check_fills(&self, before: &PrimFunc, after: &PrimFunc, evidence: &Evidence) -> Vec<Report> {
        let (mut reports, scalars) = (Vec::new(), before.scalars());
        for fill in &evidence.fills {
            let subject = format!("padding of {} is {}", fill.buffer, fill.value);
            let Some(claim) = evidence.buffers.iter().find(|claim| claim.after == fill.buffer) else {
                let reason = format!("nothing is claimed of where the elements of `{}` lie", fill.buffer);
                reports.push(Self::report(Obligation::Padding, subject, || unsupported(reason)));
                continue;
            };
            let map = MapClaim::new(&claim.map, &claim.after.shape).padded(&claim.padded_axes).inverse(&fill.inverse);
            let map = map.scalars(&scalars);
            let asked = |report: &Report| matches!(report.obligation, Obligation::Inverse | Obligation::Padding);
            let found = self.check_map(map);
            if !found.iter().any(|report| report.obligation == Obligation::Padding) {
                let reason = format!("the claimed padding of `{}` does not fit its shape", fill.buffer);
                reports.push(Self::report(Obligation::Padding, &*subject, || unsupported(reason)));
            }
            reports.extend(found.into_iter().filter(asked));
            reports.push(Self::report(Obligation::Padding, subject, || written(before, after, claim, fill)));
        }
        reports
    }
}

/// That the nest is there was seen when it was taken out; what the caller passes in is not written here.
fn written(before: &PrimFunc, after: &PrimFunc, claim: &BufferClaim, fill: &PadFill) -> Decision {
    let unknown = |reason: String| unsupported(reason);
    if claim.change != BufferChange::Layout {
        return unknown(format!("the memory of `{}` was not rearranged", fill.buffer));
    }
    if !fill.by_host {
        return (inspected(), Method::Inspection("a nest over the whole buffer writes exactly the padding"));
    }
    let is_param = |func: &PrimFunc, buffer: &Buffer| func.buffer_map.iter().any(|(_, param)| param == buffer);
    if !is_param(before, &claim.before) || !is_param(after, &claim.after) {
        return unknown(format!("`{}` is no parameter, so nobody passes its padding in", fill.buffer));
    }
    if writes(before, &claim.before) || writes(after, &claim.after) {
        return unknown(format!("`{}` is an output, so its padding has to be written", fill.buffer));
    }
    (inspected(), Method::Inspection("stated of what the caller passes in"))
}

fn writes(func: &PrimFunc, memory: &Buffer) -> bool {
    let mut found = false;
    func.body.walk(&mut |stmt| {
        found |= matches!(&stmt.kind, StmtKind::Store { buffer, .. } if buffer.aliases(memory));
    });
    found
}

/// Every buffer that the program before wants tiled is tiled so in the program after: the map is what the layout means, the
/// shape is whole tiles, and the padding is as asked for.
pub(crate) fn requested(judge: &Judge, before: &PrimFunc, after: &PrimFunc, evidence: &Evidence) -> Vec<Report> {
    let mut reports = Vec::new();
    let (buffers, scalars) = (before.buffers(), before.scalars());
    for (data, _) in &after.attrs.tile_layout {
        if !before.attrs.tile_layout.iter().any(|(other, _)| is_memory_of(evidence, other, data)) {
            let reason =
                format!("the program after asks for a layout of `{data}` that the one before does not ask for");
            reports.push(Judge::report(Obligation::Specification, data.name(), || unknown(reason)));
        }
    }
    for (data, request) in &before.attrs.tile_layout {
        let kept = after.attrs.tile_layout.iter().find(|(other, _)| is_memory_of(evidence, data, other));
        if let Some((_, kept)) = kept {
            if !kept.is_same(request) {
                let reason = format!("the layout asked for `{data}` was changed into another one");
                reports.push(Judge::report(Obligation::Specification, data.name(), || unknown(reason)));
            }
            continue;
        }
        for buffer in buffers.iter().filter(|buffer| buffer.data == *data) {
            let subject = format!("`{buffer}` in the tiled layout asked for");
            let is_move = |claim: &&BufferClaim| claim.before == *buffer && claim.change == BufferChange::Layout;
            let Some(claim) = evidence.buffers.iter().find(is_move) else {
                let reason = format!("a layout is asked for `{buffer}`, but no claim says that it was applied");
                reports.push(Judge::report(Obligation::Specification, subject, || unknown(reason)));
                continue;
            };
            reports.extend(tiled(judge, claim, &scalars, request, subject));
            reports.push(Judge::report(Obligation::Padding, format!("padding asked of `{buffer}`"), || {
                padded(claim, request, evidence)
            }));
        }
    }
    reports
}

fn unknown(reason: String) -> Decision {
    unsupported(reason)
}

fn tiled(judge: &Judge, claim: &BufferClaim, scalars: &[Var], request: &TileRequest, subject: String) -> Vec<Report> {
    let Some((meaning, shape)) = order_and_tiles(&request.layout, claim.map.vars(), claim.map.domain()) else {
        let reason = "the layout asked for has no meaning on this shape".to_owned();
        return vec![Judge::report(Obligation::Specification, subject, || unknown(reason))];
    };
    if shape.len() != claim.after.rank() {
        let reason = format!("`{}` has another rank than the layout asked for", claim.after);
        return vec![Judge::report(Obligation::Specification, subject, || unknown(reason))];
    }
    let map =
        MapClaim::new(&claim.map, &claim.after.shape).padded(&claim.padded_axes).meaning(&meaning).scalars(scalars);
    let found = judge.check_map(map).into_iter().filter(|report| report.obligation == Obligation::Specification);
    let mut reports: Vec<Report> = found.map(|report| Report { subject: subject.clone(), ..report }).collect();
    if reports.is_empty() {
        let reason = "the layout asked for could not be compared".to_owned();
        reports.push(Judge::report(Obligation::Specification, &*subject, || unknown(reason)));
    }
    reports.push(Judge::report(Obligation::Tiling, format!("`{}` is whole tiles", claim.after), || {
        if claim.after.axis_separators.positions() != claim.before.axis_separators.positions() {
            return unknown(format!("`{}` has other axis separators than asked for", claim.after));
        }
        let pairs: Vec<_> = shape.iter().cloned().zip(claim.after.shape.iter().cloned()).collect();
        all_equal(judge, claim, scalars, &pairs)
    }));
    reports
}

fn padded(claim: &BufferClaim, request: &TileRequest, evidence: &Evidence) -> Decision {
    let fill = evidence.fills.iter().find(|fill| fill.buffer == claim.after);
    match (request.pad_value, fill) {
        (None, None) => (inspected(), Method::Inspection("no value is asked for, so it holds none")),
        (None, Some(_)) => unknown("the padding is claimed to have a value, but none was asked for".into()),
        (Some(_), None) if is_alias(claim, evidence) => (inspected(), Method::Inspection("an alias fills it")),
        (Some(_), None) => unknown("a value is asked for, but nothing is claimed to write it".into()),
        (Some(_), Some(fill))
            if request.pad_expr(claim.after.dtype).is_some_and(|value| is_same_constant(&value, &fill.value)) =>
        {
            (inspected(), Method::Inspection("the value asked for"))
        }
        (Some(_), Some(fill)) => {
            unknown(format!("the padding is claimed to be {}, which was not asked for", fill.value))
        }
    }
}

/// Whether the same memory is filled through another buffer of the same shape and element type.
fn is_alias(claim: &BufferClaim, evidence: &Evidence) -> bool {
    evidence.fills.iter().any(|fill| {
        let same = fill.buffer.dtype == claim.after.dtype && fill.buffer.shape == claim.after.shape;
        same && fill.buffer.aliases(&claim.after)
    })
}
