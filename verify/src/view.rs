//! Obligation bounds for views: a view lies within the memory of the buffer that owns it.
//!
//! A view `B` of `A` with offset 4 and shape (3, 5) ends at element 19 of `A`'s memory; both sizes are compared in bytes,
//! since a view may have another element type.
//!
//! The alignment of the view to its element is not part of this obligation.

use tilewright_ir::{Buffer, Expr, PrimFunc, StmtKind};

use crate::door::All;
use crate::judge::{Decision, Judge, Report, decide};
use crate::obligation::Obligation;
use crate::path::Path;
use crate::reason::Reason;
use crate::term::{Prop, Term};
use crate::translate::Names;
use crate::verdict::Verdict;

impl Judge {
    /// Decides `bounds` for every buffer that is a view of another buffer's memory.
    pub(crate) fn check_views(&self, func: &PrimFunc, buffers: &[Buffer]) -> Vec<Report> {
        let owners = owners(func);
        let report = |view: &Buffer| {
            let owner = owners.iter().find(|owner| owner.aliases(view))?;
            let subject = format!("{view} within {owner}");
            (view != owner).then(|| Self::report(Obligation::Bounds, subject, || within(self, func, view, owner)))
        };
        buffers.iter().filter_map(report).collect()
    }
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
