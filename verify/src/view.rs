//! Obligation bounds for views and for buffers with strides or an offset.
//!
//! A view lies within the memory of the buffer that owns it: a view `B` of `A` with offset 4 and shape (3, 5) ends at element 19 of
//! `A`'s memory; both sizes are compared in bytes, since a view may have another element type. A buffer that owns memory has
//! memory up to its last element, but nothing in front of it: with strides or an offset, its first element must not lie below 0.
//!
//! The alignment of the view to its element is not part of this obligation.

use tilewright_ir::{Buffer, Expr, PrimFunc, StmtKind};

use crate::access::{Base, entry};
use crate::door::All;
use crate::judge::{Decision, Judge, Report, decide};
use crate::obligation::Obligation;
use crate::path::Path;
use crate::reason::Reason;
use crate::term::{Prop, Term};
use crate::translate::Names;
use crate::verdict::Verdict;

impl Judge {
    /// Decides `bounds` for every buffer that is a view of another buffer's memory, and for the first element of every buffer with
    /// strides or an offset that owns memory.
    pub(crate) fn check_views(&self, func: &PrimFunc, buffers: &[Buffer]) -> Vec<Report> {
        let owners = owners(func);
        let path = entry(func);
        let start = |owner: &Buffer| {
            let subject = format!("{owner} from the start of its memory");
            (!is_plain(owner)).then(|| Self::report(Obligation::Bounds, subject, || starts_inside(self, &path, owner)))
        };
        let mut reports: Vec<Report> = owners.iter().filter_map(start).collect();
        let report = |view: &Buffer| {
            let owner = owners.iter().find(|owner| owner.aliases(view))?;
            let subject = format!("{view} within {owner}");
            (view != owner).then(|| Self::report(Obligation::Bounds, subject, || within(self, func, view, owner)))
        };
        reports.extend(buffers.iter().filter_map(report));
        if reports.is_empty() { reports } else { Base::new(self, func, buffers).grounded(reports) }
    }
}

/// Whether the elements of a buffer fill its memory from the start.
pub(crate) fn is_plain(buffer: &Buffer) -> bool {
    buffer.strides.is_none() && buffer.elem_offset.as_const_int() == Some(0)
}

/// The buffers that own memory: parameters and allocations.
fn owners(func: &PrimFunc) -> Vec<Buffer> {
    let mut found: Vec<Buffer> = func.buffer_map.iter().map(|(_, buffer)| buffer.clone()).collect();
    func.body.walk(&mut |stmt| {
        if let StmtKind::Allocate { buffer, .. } = &stmt.kind {
            found.push(buffer.clone());
        }
    });
    found
}

/// Decides whether no element of a buffer lies in front of its memory. Along an axis with a negative stride, the last element comes
/// first; a stride that may have either sign is not decided.
fn starts_inside(judge: &Judge, path: &Path, owner: &Buffer) -> Decision {
    let mut names = Names::default();
    let mut question = judge.question(&mut names, &path.symbols);
    path.assume(&mut question, &mut names);
    let from = question.steps().len();
    let mut all = All::default();
    let mut show = |goal: &Prop| question.settle(goal).map(|grounds| all.add(grounds));
    let mut first = names.term(&owner.elem_offset);
    let mut result = Ok(());
    for (extent, stride) in owner.shape.iter().zip(owner.strides.iter().flatten()) {
        let stride = names.term(stride);
        if show(&stride.at_least(0)).is_err() {
            result = result.and_then(|()| show(&stride.at_most(Term::int(0))));
            first = first + (names.term(extent) - 1) * stride;
        }
    }
    result = result.and_then(|()| show(&first.at_least(0)));
    let result = result.map(|()| all.grounds());
    match decide("start", result, &question, from, |_| None) {
        (Verdict::Proved(grounds), method) => (Verdict::Proved(grounds), method),
        (_, method) => {
            let reason = format!(
                "{owner} is not seen to begin inside of its memory: its offset or strides may be negative, unless that is asserted or assumed away"
            );
            (Verdict::Unknown(Reason::undecided(reason)), method)
        }
    }
}

/// Decides whether a view lies within its owner: its offset and strides are not negative, and it ends no later.
fn within(judge: &Judge, func: &PrimFunc, view: &Buffer, owner: &Buffer) -> Decision {
    let path = Path::of(func);
    let mut names = Names::default();
    let mut question = judge.question(&mut names, &path.symbols);
    let from = question.steps().len();
    let bytes = |buffer: &Buffer| Term::int(i128::from(buffer.dtype.bytes()));
    let (end, room) = (end(view, &mut names) * bytes(view), end(owner, &mut names) * bytes(owner));
    let mut not_negative = vec![&view.elem_offset];
    not_negative.extend(view.strides.iter().flatten());
    let mut all = All::default();
    let mut show = |goal: &Prop| question.settle(goal).map(|grounds| all.add(grounds));
    let mut result = not_negative.into_iter().try_for_each(|expr| show(&names.term(expr).at_least(0)));
    if result.is_ok() && show(&end.equals(&room)).is_err() {
        result = show(&end.at_most(&room));
    }
    let result = result.map(|()| all.grounds());
    match decide("view", result, &question, from, |_| None) {
        (Verdict::Proved(grounds), method) => (Verdict::Proved(grounds), method),
        (_, method) => {
            let reason = format!("{view} is not seen to lie within the memory of {owner}");
            (Verdict::Unknown(Reason::undecided(reason)), method)
        }
    }
}

/// One more than the position of the last element in the allocation, in elements.
fn end(buffer: &Buffer, names: &mut Names) -> Term {
    let offset = names.term(&buffer.elem_offset);
    let mut term = |expr: &Expr| names.term(expr);
    match &buffer.strides {
        None => offset + buffer.shape.iter().fold(Term::int(1), |size, extent| size * term(extent)),
        Some(strides) => {
            let last = buffer.shape.iter().zip(strides);
            last.fold(offset + 1, |end, (extent, stride)| end + (term(extent) - 1) * term(stride))
        }
    }
}
